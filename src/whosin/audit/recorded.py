"""Two worlds from samples that were drawn beforehand, in memory or in files.

Contract: the samples are checked for plain dependence (`dependence`), put in a random order, and
split: one part chooses the event, the other is counted. What cannot be checked, that each draw was
made afresh, the caller must ensure.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whosin.audit.dependence import check_independent
from whosin.audit.outputs import Outputs, alike, read
from whosin.audit.result import Audit
from whosin.audit.terms import FEWEST, Terms
from whosin.audit.world_pairs import check_claim, conclude, look
from whosin.csv_files import number, read_records
from whosin.documents import MOST_STUDY, read_text
from whosin.errors import InvalidInput

READERS = (".csv", ".txt", ".jsonl", ".npy")


@dataclass
class RecordedWorld:
    """Draws of one world that are handed out once each."""

    outputs: Outputs
    value: object
    name: str
    singly: bool = False
    spent: int = 0
    timed: bool = False

    def explore(self, size: int) -> Outputs:
        """The next draws."""
        return self.draw(size)

    def draw(self, size: int) -> Outputs:
        """The next draws."""
        self.spent += size
        return self.outputs.part(self.spent - size, self.spent)


def two_samples(
    with_: object,
    without: object,
    confidence: object = 0.95,
    *,
    delta: object = 0,
    seed: int | None = None,
    repeats: bool = False,
    claim: object = None,
) -> Audit:
    """Bound from below how much two samples of outputs tell their worlds apart.

    Args:
        with_, without: independent draws of the mechanism on two neighbouring inputs: arrays or
            lists, or paths of files (.npy, .jsonl, or .csv and .txt with an output a line).
        repeats: unrounded floats may come again: the mechanism has few outputs.
        claim: an ε; samples that are too few to refute it are refused before any is looked at.
    """
    both = _read(with_, "with"), _read(without, "without")
    size = min(len(each) for each in both)
    if size < FEWEST:
        raise InvalidInput("samples", f"at least {FEWEST} draws of each world", size)
    terms = Terms.read(size, confidence, delta, seed, None)
    if claim is not None:
        check_claim(claim, size, confidence, delta)
    check_independent(*both, repeats=repeats)
    worlds = []
    for outputs, given, name in zip(both, (with_, without), ("with", "without"), strict=True):
        order = np.random.default_rng(terms.seeds.spawn(1)[0]).permutation(len(outputs))
        label = str(given) if isinstance(given, str | Path) else f"{len(outputs):,} draws"
        mixed = Outputs(outputs.kind, outputs.values[order])
        worlds.append(RecordedWorld(mixed, label, f"“{name}”"))
    pair: Any = tuple(worlds)
    seen, chosen = look(pair, terms)
    return conclude(pair, seen, size - seen.draws, terms, chosen=chosen)


def _read(given: object, name: str) -> Outputs:
    if isinstance(given, str | Path):
        given = _file(Path(given))
    if getattr(given, "shape", None) == ():
        raise InvalidInput(f"samples {name}", "an array, a list or a path", "one number")
    if not hasattr(given, "__len__"):
        accepted = "an array, a list or a path"
        raise InvalidInput(f"samples {name}", accepted, type(given).__name__)
    if len(given) == 0:
        raise InvalidInput(f"samples {name}", f"at least {FEWEST} draws", 0)
    return alike([read(given, len(given))])[0]


def _file(path: Path) -> Any:
    """The outputs in a file; no cell is quoted."""
    kind = path.suffix.lower()
    if kind not in READERS:
        raise InvalidInput(path.name, f"a file that ends in {', '.join(READERS)}", path.suffix)
    try:
        if kind == ".npy":
            return np.load(path, allow_pickle=False)
        if kind == ".csv":
            return _table(path)
        text = read_text(path, path.name, MOST_STUDY)
        lines = [line for line in text.split("\n") if line.strip()]
        if kind == ".jsonl":
            return [json.loads(line) for line in lines]
        return [_cell(line.rstrip("\r"), "") for line in lines]
    except FileNotFoundError:
        raise InvalidInput(path.name, "a file", "nothing there") from None
    except InvalidInput:
        raise
    except (ValueError, OSError):
        raise InvalidInput(path.name, f"outputs in {path.suffix} format", "not that") from None


def _table(path: Path) -> list[Any]:
    """The rows of a CSV file, without a line of names."""
    _lines, rows, separator = read_records(path, MOST_STUDY)
    values = [tuple(_cell(text, separator) for text in row) for row in rows]
    if len(values) > 1 and _text(values[0]) and not _text(values[1]):
        values = values[1:]
    return [value[0] if len(value) == 1 else value for value in values]


def _cell(text: str, separator: str) -> float | str:
    value = number(text, separator)
    if value is not None:
        return value
    return math.nan if text.lower() == "nan" else text


def _text(value: tuple[float | str, ...]) -> bool:
    return all(isinstance(cell, str) for cell in value)
