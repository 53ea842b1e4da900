"""Writing a synthetic table.

Contract: the order of its rows says nothing. The order in which an engine finds entities depends on
who they are: where one is replaced by another, the rows of all between their places would shift,
and show far more than one row's ε. So only how many rows each cell has is read, answers are drawn
for that many, and they are written in the order of their cells. Spark's workers draw answers where
the rows are, after these were put into random order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.release.cells import Cells
from whosin.release.engines import Spark, parquet
from whosin.release.engines.base import Progress, Written
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


def write_synthetic(
    table: Table,
    expression: Any,
    cells: Cells,
    response: Response,
    path: str,
    progress: Progress | None = None,
) -> Written:
    """Randomise each row's cell and write the table, as a draft.

    Args:
        expression: one row an entity, its cell's place in the column `code`.
    """
    schema = decoded(np.empty(0, np.int64), cells).schema
    if isinstance(table.engine, Spark):

        def change(batch: Any) -> Any:
            codes = batch.column(0).to_numpy(zero_copy_only=False).astype(np.int64)
            return decoded(response.draw(codes), cells)

        return table.engine.write(expression, change, schema, path, progress)
    counted = expression.group_by("code").aggregate(rows=expression.count())
    result = table.engine.run(counted, progress)
    rows = np.zeros(cells.count, np.int64)
    rows[result.column("code").to_numpy()] = result.column("rows").to_numpy()
    answers = np.zeros_like(rows)
    for codes in _spelled_out(rows):
        answers += np.bincount(response.draw(codes), minlength=cells.count)
    batches = (decoded(codes, cells) for codes in _spelled_out(answers))
    return parquet.write_draft(batches, schema, Path(path))


def publish(table: Table, path: str, digest: str) -> bool:
    """Give a draft its public name; whether the table is there now."""
    if isinstance(table.engine, Spark):
        return table.engine.publish(path, digest)
    return parquet.publish(Path(path), digest)


def discard(table: Table, path: str, digest: str) -> None:
    """Remove a draft whose digest was not stored."""
    if isinstance(table.engine, Spark):
        table.engine.discard(path, digest)
    else:
        parquet.discard(Path(path), digest)


def _spelled_out(rows: Array) -> Iterator[Array]:
    """Each cell's place as often as it has rows, in batches."""
    ends = np.cumsum(rows)
    for start in range(0, int(ends[-1]), BATCH):
        places = np.arange(start, min(start + BATCH, ends[-1]))
        yield np.searchsorted(ends, places, side="right")
