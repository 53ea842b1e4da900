"""Where tables live and queries run: engines open sources as Ibis tables, and run expressions.

`ENGINE_KINDS` lists every engine by its name in a scenario file.
"""

from collections.abc import Mapping
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.release.engines.base import Engine
from whosin.release.engines.duckdb import DuckDB
from whosin.release.engines.spark import Spark

ENGINE_KINDS: dict[str, type[Engine]] = {kind.name: kind for kind in (DuckDB, Spark)}

__all__ = ["ENGINE_KINDS", "DuckDB", "Engine", "Spark", "read_engine"]


def read_engine(data: Mapping[str, Any]) -> Engine:
    """The engine that the keys of [table] name."""
    name = data.get("engine", DuckDB.name)
    if name not in ENGINE_KINDS:
        raise UnknownName("engine", str(name), ENGINE_KINDS)
    kind = ENGINE_KINDS[name]
    for key in {key for each in ENGINE_KINDS.values() for key in each.keys}.intersection(data):
        if key not in kind.keys:
            message = f"{key} has no meaning for the engine {name}"
            raise InvalidInput(message, field=key, value=data[key], hint="leave it out")
    return kind(**{key: data[key] for key in kind.keys if key in data})
