"""What `whosin audit` attacks besides functions: channels, plans, trainings, files of scores.

A finite mechanism of ours is drawn row by row, and shown with its exact level. Cells of files are
private: no message quotes one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from whosin.app.cli.main import load_object, load_with_module
from whosin.errors import InvalidInput, UnknownName, Unsupported, at, require_extras

if TYPE_CHECKING:
    import numpy as np

    from whosin.audit import InputPair
    from whosin.calibration import Plan
    from whosin.mechanisms import Channel

MAX_PAIRS = 1000
"""Pairs of neighbours of a channel that are searched; with more, the user names one."""


@dataclass(frozen=True)
class Subject:
    """Something to audit.

    Attributes:
        pairs: neighbouring inputs to search, where the subject knows them.
        channel: the exact mechanism, where it is one of ours.
    """

    mechanism: Callable[..., Any]
    name: str
    pairs: tuple[InputPair, ...] = ()
    channel: Channel | None = None

    def exact_levels(self, with_: object, without: object) -> dict[str, float]:
        """The exact ε of a mechanism of ours: of this pair, and over all neighbouring inputs."""
        import numpy as np

        from whosin.notions import DifferentialPrivacy
        from whosin.spaces import Records

        assert self.channel is not None
        first, second = (
            self.channel.likelihoods[self.channel.index(world)] for world in (with_, without)
        )
        some = (first > 0) | (second > 0)
        with np.errstate(divide="ignore"):
            pair = float(np.abs(np.log(first[some]) - np.log(second[some])).max())
        relation = "replace" if isinstance(self.channel.space, Records) else "add-remove"
        return {
            "pair": pair,
            "epsilon": float(DifferentialPrivacy(relation).measure(self.channel).value),
        }


def channel_subject(channel: Channel, name: str) -> Subject:
    """A finite mechanism as a sampler, with all its pairs of neighbours."""
    if channel.is_density:
        raise Unsupported(
            f"{name} has no finite table to draw from; write a function that draws its noise"
        )
    draw = channel.sampler([str(output) for output in channel.outputs])
    return Subject(draw, name, tuple(_neighbour_pairs(channel)), channel.on_worlds())


def _neighbour_pairs(channel: Channel) -> list[InputPair]:
    from whosin.audit import InputPair
    from whosin.spaces import Subsets

    space = channel.space
    result: list[InputPair] = []
    for number in range(space.worlds):
        if len(result) > MAX_PAIRS:
            return []  # too many to try all: the user names a pair
        if isinstance(space, Subsets):
            for index, who in enumerate(space.entities):
                if number >> index & 1:
                    other = number ^ (1 << index)
                    result.append(
                        InputPair(f"{who} in or out", space.world(number), space.world(other))
                    )
        else:
            world = space.world(number)
            for row in range(space.rows):
                for value in range(world[row]):
                    changed = (*world[:row], value, *world[row + 1 :])
                    result.append(InputPair(f"row {row}", world, changed))
    return result


def plan_subject(plan: Plan) -> Subject:
    """The noise that a plan asks for, by the sampler that releases use."""
    from whosin import noise
    from whosin.audit import InputPair

    if plan.noise is None or plan.query is None or plan.noise.kind not in ("laplace", "gaussian"):
        got = "no noise" if plan.noise is None else f"{plan.noise.kind} noise"
        message = f"the plan has {got}, which no sampler of ours draws"
        raise InvalidInput(message, field="target", value=got, hint="name a function to audit")
    kind, scale = plan.noise.kind, plan.noise.scale
    sampler = noise.discrete_laplace if kind == "laplace" else noise.discrete_gaussian
    sensitivity = math.ceil(plan.query.l1_sensitivity(plan.relation))

    def draw(answer: object, size: int, _rng: np.random.Generator) -> Any:
        assert isinstance(answer, int)
        return answer + sampler(scale, size)

    pair = InputPair("one person more", sensitivity, 0)
    return Subject(draw, f"the plan's own noise (discrete {kind}, scale {scale:.4g})", (pair,))


def find_training(
    fit: str, rows: str | None, label: str | None, score: str | None
) -> tuple[Any, Any, Any]:
    """The fit, its rows, and the score where there is one: named, or of the module of the fit."""
    named, module = load_with_module(fit)
    scoring = getattr(module, "score", None) if score is None else load_object(score)
    return named, _load_rows(rows, label, module), scoring


def _load_rows(named: str | None, label: str | None, module: ModuleType) -> Any:
    if named is not None and named.endswith(".csv"):
        return _load_table(Path(named), label)
    if label is not None:
        message = "--label is for rows from a CSV file"
        raise InvalidInput(message, field="--label", value=label, hint="add --rows x.csv")
    if named is not None:
        rows = load_object(named)
    elif hasattr(module, "rows"):
        rows = module.rows
    else:
        message = f"{module.__name__} has no rows to train on"
        hint = "define rows in it, or name them by --rows"
        raise InvalidInput(message, field="--rows", hint=hint)
    return rows() if callable(rows) else rows


def _load_table(path: Path, label: str | None) -> Any:
    """A frame, or (frame, labels)."""
    from whosin.documents import MAX_STUDY_BYTES, read_csv

    require_extras("frames")
    import pandas

    with at("--rows"):
        table = read_csv(path, MAX_STUDY_BYTES)
    frame = pandas.DataFrame({name: table.column(name) for name in table.header})
    if label is None:
        return frame
    if label not in table.header:
        raise UnknownName("--label", label, table.header)
    return frame.drop(columns=label), frame[label]


FLAG_WORDS = dict.fromkeys(("1", "1.0", "true", "yes"), True)
FLAG_WORDS |= dict.fromkeys(("0", "0.0", "false", "no"), False)
PERSON_COLUMN = "person"


def read_runs(path: Path) -> tuple[Any, Any, Any]:
    """All runs of a folder together, or the one of a file: flags, scores, people."""
    import numpy as np

    if not path.is_dir():
        return read_flags(path, "included")
    files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    others = [file.name for file in files if file.is_dir() or file.suffix.lower() != ".csv"]
    if others or not files:
        message = f"{path.name} is an empty folder"
        if others:
            message = f"{path.name} holds {others[0]}, and may hold CSV files alone"
        raise InvalidInput(message, field="file", value=others[0] if others else path.name)
    parts = [read_flags(file, "included") for file in files]
    named = {people is not None for _flags, _values, people in parts}
    if len(named) > 1:
        message = f"some files of {path.name} have the column {PERSON_COLUMN} and some have not"
        raise InvalidInput(message, field="file", value=path.name)
    people = None
    if named == {True}:  # who is in two runs has two inclusion bits
        people = np.array([f"{run}/{who}" for run, part in enumerate(parts) for who in part[2]])
    flags, values = (np.concatenate([part[field] for part in parts]) for field in (0, 1))
    return flags, values, people


def read_flags(path: Path, flag: str) -> tuple[Any, Any, Any]:
    """A 0/1 column, scores, and people where there is a column of them."""
    import numpy as np

    from whosin.documents import MAX_STUDY_BYTES, read_csv, read_number

    table = read_csv(path, MAX_STUDY_BYTES, (flag, "score"))
    places = [table.header.index(name) for name in (flag, "score")]
    flags, values = [], []
    for line, row in zip(table.lines, table.rows, strict=True):
        where = f"in line {line} of {path.name}"
        member, score = (row[column] for column in places)
        if member.lower() not in FLAG_WORDS:
            raise InvalidInput(f"{flag} must be 1 or 0 {where}", field=flag, value=line)
        value = read_number(score, table.separator)
        if value is None:
            message = f"score must be a number such as 0.5 {where}"
            raise InvalidInput(message, field="score", value=line)
        flags.append(FLAG_WORDS[member.lower()])
        values.append(value)
    people = None
    if PERSON_COLUMN in table.header:
        people = np.array([row[table.header.index(PERSON_COLUMN)] for row in table.rows])
    return np.array(flags, dtype=bool), np.array(values, dtype=float), people
