"""Writing a Parquet file whole: a broken one never gets the name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whosin.release.engines.base import Written


def write_whole(batches: Iterable[Any], schema: Any, path: Path) -> Written:
    """Write RecordBatches beside the file's place, and move the file there when it is complete."""
    import pyarrow.parquet as pq

    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    rows = 0
    try:
        with pq.ParquetWriter(partial, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        with partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return Written(rows, digest)
