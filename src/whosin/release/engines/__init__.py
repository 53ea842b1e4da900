"""Where tables live and queries run: engines open sources as Ibis tables, and run expressions.

`ENGINES` lists every engine by its name in a scenario file.
"""

from whosin.release.engines.base import Engine
from whosin.release.engines.embedded import DuckDB
from whosin.release.engines.spark import Spark

ENGINES: dict[str, type[Engine]] = {kind.name: kind for kind in (DuckDB, Spark)}

__all__ = ["ENGINES", "DuckDB", "Engine", "Spark"]
