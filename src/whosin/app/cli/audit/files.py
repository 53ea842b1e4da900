"""Scores from files: of members and others, of one run, or a folder with a file for each run.

Contract: cells are private: none is quoted. A column `person` joins the canaries of one person.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput

FLAGS = dict.fromkeys(("1", "1.0", "true", "yes"), True)
FLAGS |= dict.fromkeys(("0", "0.0", "false", "no"), False)
PERSON = "person"


def of_scores(path: Path, confidence: object, delta: float) -> Any:
    """The audit of a file with the columns member and score."""
    from whosin import audit as room

    flags, values, _people = read_flags(path, "member")
    return room.scores(values[flags], values[~flags], confidence, delta=delta)


def of_run(
    path: Path,
    confidence: object,
    delta: float,
    rate: str | None,
    *,
    known: bool = False,
    gaussian: bool = False,
) -> Any:
    """The audit of a file with the columns included and score, or of a folder of such files."""
    from whosin import audit as room
    from whosin.exact import rational

    coins = rational("0.5" if rate is None else rate, "--rate")
    flags, values, people = read_runs(path)
    terms: dict[str, Any] = {"rate": coins, "known_rate": known, "people": people}
    if gaussian:
        return room.curve_run(flags, values, confidence, **terms)
    return room.one_run(flags, values, confidence, delta, **terms)


def read_runs(path: Path) -> tuple[Any, Any, Any]:
    """All runs of a folder together, or the one of a file: flags, scores, people."""
    import numpy as np

    if not path.is_dir():
        return read_flags(path, "included")
    files = sorted(path.glob("*.csv"))
    if not files:
        raise InvalidInput("--one-run", "a CSV file, or a folder with some", "none")
    parts = [read_flags(file, "included") for file in files]
    named = {people is not None for _flags, _values, people in parts}
    if len(named) > 1:
        raise InvalidInput("--one-run", f"the column {PERSON} in all files or in none", "both")
    people = None
    if named == {True}:  # who is in two runs has two coins
        people = np.array([f"{run}/{who}" for run, part in enumerate(parts) for who in part[2]])
    flags, values = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
    return flags, values, people


def read_flags(path: Path, flag: str) -> tuple[Any, Any, Any]:
    """A 0/1 column, scores, and people where there is such a column."""
    import numpy as np

    flags, values, people = [], [], []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or ()
            if not {flag, "score"} <= set(names):
                got = f"{len(names)} other columns" if names else "nothing"
                raise InvalidInput(path.name, f"CSV with the columns {flag} and score", got)
            for line, row in enumerate(reader, start=2):
                try:
                    flags.append(FLAGS[(row[flag] or "").strip().lower()])
                except KeyError:
                    got = "something else" if row[flag] else "nothing"
                    raise InvalidInput(f"{flag} in line {line}", "1 or 0", got) from None
                values.append(_score(row["score"], line))
                people.append(row.get(PERSON) or "")
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(path.name, "CSV text", "something else") from None
    named = np.array(people) if PERSON in names else None
    return np.array(flags, dtype=bool), np.array(values, dtype=float), named


def _score(cell: str | None, line: int) -> float:
    try:
        number = float(cell or "")
    except ValueError:
        got = "something else" if cell else "nothing"
        raise InvalidInput(f"score in line {line}", "a number", got) from None
    if number != number:
        raise InvalidInput(f"score in line {line}", "a number", "NaN")
    return number
