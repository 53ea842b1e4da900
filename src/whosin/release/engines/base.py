"""What an engine must do. Contract: whatever it raises about rows never reaches a user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from whosin.errors import InvalidInput

Progress = Callable[[float], None]
"""Told how much of a scan is done, from 0 to 1."""

KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
ARROW = {".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}


class Engine(Protocol):
    """Opens tables and runs expressions."""

    name: str

    def open(self, source: object) -> Any:
        """The source as an Ibis table. Text files have text columns only: types that are guessed
        from rows would make refusals depend on them."""

    def run(self, expression: Any, progress: Progress | None = None) -> Any:
        """The result as a pyarrow Table; small, for aggregates."""

    def batches(self, expression: Any, rows: int) -> Iterator[Any]:
        """The result as pyarrow RecordBatches of about so many rows, never all at once."""


def kind_of(path: str) -> str:
    """The format of a file, by its name; a folder or a pattern counts by what it ends in."""
    suffix = Path(path.rstrip("/*")).suffix.lower()
    if suffix == ".gz":
        suffix = Path(path[: -len(".gz")]).suffix.lower()
    found = (KINDS | ARROW).get(suffix)
    if found is None:
        accepted = "a .parquet, .csv or .arrow file, or database::table"
        raise InvalidInput("table", accepted, Path(path).name)
    return found
