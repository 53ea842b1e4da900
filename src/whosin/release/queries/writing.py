"""Writing a synthetic table, batch by batch, and only whole: a broken file never gets the name.

Contract: rows come out in the order of their cells. The order in which an engine finds entities
depends on who they are: where one is replaced by another, the rows of all between their places
would shift, and show far more than one row's ε. Sorted, only the number of rows in each cell shows.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.release.cells import Cells
from whosin.release.queries.responses import Response
from whosin.release.table import Table

BATCH = 1_000_000


def decoded(codes: Array, cells: Cells) -> Any:
    """Cells as a pyarrow RecordBatch of their keys."""
    import pyarrow as pa

    columns, rest = [], codes
    for domain in reversed(cells.domains):
        labels = [str(label) for label in domain.labels]
        places = pa.array((rest % len(labels)).astype(np.int32))
        columns.append(pa.DictionaryArray.from_arrays(places, pa.array(labels)))
        rest = rest // len(labels)
    return pa.RecordBatch.from_arrays(columns[::-1], names=list(cells.columns))


def write_parquet(
    table: Table, expression: Any, cells: Cells, response: Response, path: Path
) -> tuple[int, str]:
    """(rows, SHA-256 of the file) of a finished synthetic table."""
    import pyarrow.parquet as pq

    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    counts = np.zeros(cells.count, np.int64)
    for batch in table.engine.batches(expression, BATCH):
        codes = batch.column(0).to_numpy(zero_copy_only=False).astype(np.int64)
        counts += np.bincount(response.draw(codes), minlength=cells.count)
    ends = np.cumsum(counts)
    rows = int(ends[-1])
    try:
        with pq.ParquetWriter(partial, decoded(np.empty(0, np.int64), cells).schema) as writer:
            for start in range(0, rows, BATCH):
                places = np.arange(start, min(start + BATCH, rows))
                writer.write_batch(decoded(np.searchsorted(ends, places, side="right"), cells))
        with partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return rows, digest
