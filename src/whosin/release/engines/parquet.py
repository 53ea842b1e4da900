"""Writing a Parquet file in two steps: a draft under a hidden name, then its public one.

Contract: a draft is whole, and its digest names it. It gets the public name after the ledger has
stored that digest: a table that was drawn and not stored is never published, and one that was
stored is still there after a crash. What a killed process leaves is for its owner only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whosin.release.engines.base import Written, draft_name

PRIVATE = 0o600


def write_draft(batches: Iterable[Any], schema: Any, path: Path) -> Written:
    """Write RecordBatches beside the file's place."""
    import pyarrow.parquet as pq

    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    rows = 0
    try:
        partial.unlink(missing_ok=True)
        made = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(made, "wb") as out, pq.ParquetWriter(out, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        with partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        partial.replace(path.with_name(draft_name(path.name, digest)))
    finally:
        partial.unlink(missing_ok=True)
    return Written(rows, digest)


def publish(path: Path, digest: str) -> bool:
    """Give a draft its public name; whether the file of this digest is there now."""
    draft = path.with_name(draft_name(path.name, digest))
    with contextlib.suppress(FileNotFoundError):
        draft.replace(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError:
        return False


def discard(path: Path, digest: str) -> None:
    """Remove a draft that was not stored."""
    path.with_name(draft_name(path.name, digest)).unlink(missing_ok=True)
