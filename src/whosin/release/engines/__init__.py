"""Where tables live and queries run: engines open sources as Ibis tables, and run expressions."""

from whosin.release.engines.base import Engine
from whosin.release.engines.embedded import DuckDB
from whosin.release.engines.spark import Spark

__all__ = ["DuckDB", "Engine", "Spark"]
