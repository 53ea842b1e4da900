"""Writing a synthetic table, batch by batch, and only whole: a broken file never gets the name."""

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
    rows = 0
    try:
        with pq.ParquetWriter(partial, decoded(np.empty(0, np.int64), cells).schema) as writer:
            for batch in table.engine.batches(expression, BATCH):
                codes = batch.column(0).to_numpy(zero_copy_only=False).astype(np.int64)
                writer.write_batch(decoded(response.draw(codes), cells))
                rows += len(codes)
        with partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return rows, digest
