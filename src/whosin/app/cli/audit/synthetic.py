"""The form `whosin audit --synthetic train.csv holdout.csv synthetic.csv`: three tables.

Contract: cells are private: none is quoted. All three have the same columns, in any order.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from whosin.app.cli.audit.claims import Claim
from whosin.errors import at

if TYPE_CHECKING:
    from whosin.audit import SyntheticAudit


def of_tables(
    paths: tuple[Path, Path, Path], confidence: object, claim: Claim, seed: int | None
) -> SyntheticAudit:
    """The audit of three files."""
    from whosin import audit as room
    from whosin.csv_files import columns_like, read_csv
    from whosin.documents import MOST_STUDY

    with at("--synthetic"):
        files = [read_csv(path, MOST_STUDY) for path in paths]
        first = files[0]
        train, holdout, made = (columns_like(each, first.header, first.name) for each in files)
    return room.synthetic_table(train, holdout, made, confidence, delta=claim.delta, seed=seed)
