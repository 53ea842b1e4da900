"""Spark, local or a cluster, through the same Ibis expressions. An extra: `whosin[spark]`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput, Unsupported
from whosin.release.engines.base import Progress, kind_of


class Spark:
    """Spark.

    Args:
        master: a Spark master URL, or "local[*]".
        session: a SparkSession to use instead of a new one.
        settings: Spark settings for a new session.
    """

    name = "spark"

    def __init__(
        self, master: str = "local[*]", session: Any = None, settings: dict[str, str] | None = None
    ) -> None:
        try:
            import ibis
            from pyspark.sql import SparkSession
        except ImportError:
            raise Unsupported(
                "Spark needs the package pyspark: pip install 'whosin[spark]'"
            ) from None
        self._own = session is None
        if session is None:
            builder = SparkSession.builder.master(master).appName("whosin")
            if master.startswith("local"):
                builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
                builder = builder.config("spark.driver.host", "127.0.0.1")
            fixed = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
            for key, value in (fixed | (settings or {})).items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("OFF")  # a log line may quote rows
        self.session = session
        self._ibis = ibis.pyspark.connect(session)

    def open(self, source: object) -> Any:
        """A path, or the name of a table of the catalogue."""
        import ibis

        if isinstance(source, ibis.Table):
            return source
        if isinstance(source, Path):
            source = str(source)
        if not isinstance(source, str):
            raise InvalidInput("table", "a path or a table's name", type(source).__name__)
        if source.startswith("::"):
            return self._ibis.table(source.removeprefix("::"))
        kind = kind_of(source)
        reader = self.session.read
        if kind == "csv":
            frame = reader.option("header", "true").option("mode", "PERMISSIVE").csv(source)
        elif kind == "parquet":
            frame = reader.parquet(source)
        else:
            raise InvalidInput("table", "a .parquet or .csv file, or ::table, on Spark", source)
        name = f"whosin_{abs(hash(source)):x}"
        frame.createOrReplaceTempView(name)
        return self._ibis.table(name)

    def run(self, expression: Any, progress: Progress | None = None) -> Any:
        """Run an aggregate."""
        return expression.to_pyarrow()

    def batches(self, expression: Any, rows: int) -> Iterator[Any]:
        """Stream the rows, a partition at a time."""
        yield from expression.to_pyarrow_batches(chunk_size=rows)

    def close(self) -> None:
        """Stop a session of our own."""
        if self._own:
            self.session.stop()
