"""Where tables live and queries run: engines open sources as Ibis tables, and run expressions.

`ENGINE_KINDS` lists every engine by its name in a scenario file.
"""

from whosin.release.engines.base import Engine
from whosin.release.engines.duckdb import DuckDB
from whosin.release.engines.spark import Spark

ENGINE_KINDS: dict[str, type[Engine]] = {kind.name: kind for kind in (DuckDB, Spark)}

__all__ = ["ENGINE_KINDS", "DuckDB", "Engine", "Spark"]
