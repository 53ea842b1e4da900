"""The form `whosin audit train.py:fit`: a training, by coins, shadow models and canaries.

Contract: the function's module has `score(model, rows)`, unless models have a known method, and
`rows` (or a function of that name), unless `--rows` names a CSV file or another function. What fit
returns decides: a model is asked for scores, a table is attacked as synthetic data.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from whosin.app.cli.audit.claims import Claim
from whosin.app.cli.output import progress_bar
from whosin.errors import InvalidInput, at
from whosin.extras import needs

if TYPE_CHECKING:
    from whosin.audit import ModelAudit


@dataclass(frozen=True)
class Training:
    """Options of this form; None where an option was left out."""

    rows: str | None = None
    score: str | None = None
    label: str | None = None
    runs: int | None = None
    shadows: int | None = None
    canaries: int | None = None
    kind: str | None = None
    state: Path | None = None

    def given(self) -> dict[str, object]:
        """What was given, by option."""
        return {f"--{name}": value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Loaded:
    """What a target names, and the module that has it."""

    named: Any
    module: ModuleType

    def is_fit(self, options: Training) -> bool:
        """Whether it is a fit: rows are named, or its module has some."""
        return options.rows is not None or hasattr(self.module, "rows")


def load_target(target: str) -> Loaded | None:
    """What a target names; None for a channel file."""
    from whosin.app.cli import named_objects

    return None if target.endswith(".json") else Loaded(*named_objects.load_with_module(target))


def of_training(
    loaded: Loaded, options: Training, confidence: object, claim: Claim, seed: int | None
) -> ModelAudit:
    """The audit of a fit, with a bar."""
    from whosin import audit as room
    from whosin.app.cli import named_objects

    score = getattr(loaded.module, "score", None)
    if options.score is not None:
        score = named_objects.load(options.score)
    rows = _rows(options, loaded.module)
    chosen = {name: getattr(options, name) for name in ("runs", "shadows", "canaries", "kind")}
    terms: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    terms |= {"confidence": confidence, "delta": claim.delta, "state": options.state, "seed": seed}
    with progress_bar() as bar:
        task = bar.add_task("training", total=terms.get("runs", 1) + terms.get("shadows", 8))
        terms["progress"] = lambda count: bar.advance(task, count)
        return room.model(loaded.named, rows, score, **terms)


def _rows(options: Training, module: Any) -> Any:
    from whosin.app.cli import named_objects

    if options.rows is None:
        rows = module.rows
    elif options.rows.endswith(".csv"):
        return _table(Path(options.rows), options.label)
    else:
        rows = named_objects.load(options.rows)
    if options.label is not None:
        raise InvalidInput("--label", "given with --rows and a CSV file", options.label)
    return rows() if callable(rows) else rows


def _table(path: Path, label: str | None) -> Any:
    """A frame, or (frame, labels)."""
    from whosin.csv_files import read_csv
    from whosin.documents import MOST_STUDY

    needs("frames")
    import pandas

    with at("--rows"):
        table = read_csv(path, MOST_STUDY)
    frame = pandas.DataFrame({name: table.column(name) for name in table.header})
    if label is None:
        return frame
    if label not in table.header:
        raise InvalidInput("--label", f"a column of {path.name}", label)
    return frame.drop(columns=label), frame[label]
