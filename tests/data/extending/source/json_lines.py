"""Tables of JSON lines, on DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whosin.release.engines.duckdb import DuckDB


class JsonLines(DuckDB):
    """DuckDB, for files of JSON lines.

    Args:
        memory: the most memory to use, such as "4GB"; what does not fit spills.
    """

    name = "json-lines"
    keys = ("memory",)

    def open(self, source: object) -> Any:
        """A file of JSON lines; it is read whole."""
        from pyarrow import json

        return super().open(json.read_json(str(Path(str(source)))))
