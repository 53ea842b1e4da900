"""Scores from files: of members and others, of one run, or a folder with a file for each run.

Contract: cells are private: none is quoted. A column `person` joins the canaries of one person.
"""

from __future__ import annotations

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
    """The audit of a file with the columns included and score, or of a folder of these files."""
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
    files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    others = [file.name for file in files if file.is_dir() or file.suffix.lower() != ".csv"]
    if others or not files:
        accepted = "a CSV file, or a folder of CSV files and nothing else"
        raise InvalidInput("--one-run", accepted, others[0] if others else "an empty folder")
    parts = [read_flags(file, "included") for file in files]
    named = {people is not None for _flags, _values, people in parts}
    if len(named) > 1:
        raise InvalidInput("--one-run", f"the column {PERSON} in all files or in none", "both")
    people = None
    if named == {True}:  # who is in two runs has two coins
        people = np.array([f"{run}/{who}" for run, part in enumerate(parts) for who in part[2]])
    flags, values = (np.concatenate([part[field] for part in parts]) for field in (0, 1))
    return flags, values, people


def read_flags(path: Path, flag: str) -> tuple[Any, Any, Any]:
    """A 0/1 column, scores, and people where there is a column of them."""
    import numpy as np

    from whosin.csv_files import number, read_csv
    from whosin.documents import MOST_STUDY

    table = read_csv(path, MOST_STUDY, (flag, "score"))
    places = [table.header.index(name) for name in (flag, "score")]
    flags, values = [], []
    for line, row in zip(table.lines, table.rows, strict=True):
        where = f"in line {line} of {path.name}"
        member, score = (row[column] for column in places)
        if member.lower() not in FLAGS:
            raise InvalidInput(f"{flag} {where}", "1 or 0", _kind(member))
        value = number(score, table.separator)
        if value is None:
            raise InvalidInput(f"score {where}", "a number such as 0.5", _kind(score))
        flags.append(FLAGS[member.lower()])
        values.append(value)
    people = None
    if PERSON in table.header:
        people = np.array([row[table.header.index(PERSON)] for row in table.rows])
    return np.array(flags, dtype=bool), np.array(values, dtype=float), people


def _kind(cell: str) -> str:
    return "something else" if cell else "nothing"
