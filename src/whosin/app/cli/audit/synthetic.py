"""The form `whosin audit --synthetic train.csv holdout.csv synthetic.csv`: three tables.

Contract: cells are private: none is quoted. All three have the same columns, in any order.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whosin.app.cli.audit.claims import Claim
from whosin.errors import InvalidInput

if TYPE_CHECKING:
    from whosin.audit import SyntheticAudit

NAMES = ("train", "holdout", "synthetic")


def of_tables(
    paths: tuple[Path, Path, Path], confidence: object, claim: Claim, seed: int | None
) -> SyntheticAudit:
    """The audit of three files."""
    from whosin import audit as room
    from whosin.documents import read_rows

    tables = []
    header: list[str] = []
    for path, name in zip(paths, NAMES, strict=True):
        rows = read_rows(path)
        if len(rows) < 2:
            raise InvalidInput(f"--synthetic, {name}", "CSV with a header and rows", "none")
        header = header or rows[0]
        if sorted(rows[0]) != sorted(header) or len(set(rows[0])) != len(rows[0]):
            accepted = f"the columns of {paths[0].name}, each once"
            raise InvalidInput(f"--synthetic, {name}", accepted, "others")
        order = [rows[0].index(column) for column in header]
        if any(len(row) != len(header) for row in rows):
            raise InvalidInput(f"--synthetic, {name}", "rows as long as the header", "others")
        tables.append([[row[place] for place in order] for row in rows[1:]])
    train, holdout, made = tables
    return room.synthetic_table(train, holdout, made, confidence, delta=claim.delta, seed=seed)
