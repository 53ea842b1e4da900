"""Writing a synthetic table: cells drawn batch by batch, where the engine has the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.release.cells import Cells
from whosin.release.engines.base import Progress, Written
from whosin.release.queries.responses import Response
from whosin.release.table import Table


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
    """Randomise each row's cell and write the table.

    The rows' order is drawn anew: where an entity stands in an engine's own order depends on who
    the others are, which the level of a single row does not cover.
    """

    def change(batch: Any) -> Any:
        codes = batch.column(0).to_numpy(zero_copy_only=False).astype(np.int64)
        return decoded(response.draw(codes), cells)

    schema = decoded(np.empty(0, np.int64), cells).schema
    return table.engine.write(expression, change, schema, path, progress)
