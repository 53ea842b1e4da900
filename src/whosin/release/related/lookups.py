"""Public tables, held in memory: each row is found by its key.

Contract: the rows are no secret, so errors may quote them. They are read once, when the table is
opened: keys that were unique then stay so, and no row of a person can ever be doubled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from whosin.errors import InvalidInput
from whosin.release.columns.domains import MOST_VALUES
from whosin.release.columns.free_names import called, unused
from whosin.release.conditions.casts import cast, usable
from whosin.release.conditions.predicate import unknown_column
from whosin.release.engines.base import Engine
from whosin.release.related.further import LookupTable

MOST_KEYS = 1_000_000


@dataclass(frozen=True, eq=False)
class Lookup:
    """A public table that was read.

    Attributes:
        declared: what was said about it.
        rows: its usable columns, and the key as the private column has it, in an Arrow table.
        key: what that key is called there.
        names: what its columns are called beside the others, by their own names.
    """

    declared: LookupTable
    rows: Any
    key: str
    names: dict[str, str]

    @property
    def on(self) -> str:
        """The column that holds the key where it is looked up."""
        return self.declared.on or self.declared.key

    @cached_property
    def listed(self) -> Any:
        """The rows as a list that an expression brings along."""
        import ibis

        return ibis.memtable(self.rows)

    def values(self, column: str) -> list[Any]:
        """The different values of a column, sorted: they may be a domain."""
        known = [name for name in self.rows.column_names if name != self.key]
        if column not in known:
            accepted = f"a column of {self.declared.name}: {', '.join(known)}"
            raise InvalidInput("values", accepted, repr(column))
        distinct = self.rows.column(column).unique().drop_null().to_pylist()
        if not distinct or len(distinct) > MOST_VALUES or not isinstance(distinct[0], str | int):
            accepted = f"a column of 1 to {MOST_VALUES:,} texts, whole numbers or truths"
            raise InvalidInput("values", accepted, repr(column))
        return sorted(distinct)


def read_lookup(engine: Engine, declared: LookupTable, opened: Any, held: Any) -> Lookup:
    """Read a public table.

    Args:
        held: the type of the private column that holds the key.
    """
    if declared.key not in opened.columns:
        raise unknown_column("key", declared.key, opened)
    key = unused("key", opened.columns)
    kept = {name: opened[name] for name, kind in opened.schema().items() if usable(kind)}
    known = opened.select(called({key: _fitting(opened[declared.key], held)} | kept))
    known = known.filter(known[key].notnull())
    try:
        rows = engine.run(known.limit(MOST_KEYS + 1))
    except InvalidInput:
        raise
    except Exception:
        raise InvalidInput("source", "a table that can be read", "another") from None
    if len(rows) > MOST_KEYS:
        raise InvalidInput("source", f"a public table of at most {MOST_KEYS:,} rows", "more")
    counts = rows.column(key).value_counts()
    twice = next((each for each in counts.to_pylist() if each["counts"] > 1), None)
    if twice is not None:
        got = f"{twice['values']!r} {twice['counts']} times"
        raise InvalidInput("key", f"a column of {declared.name} with each value once", got)
    return Lookup(declared, rows, key, {})


def _fitting(key: Any, held: Any) -> Any:
    """The key as the private column has it: texts spell whole numbers in text files."""
    kind = key.type()
    if held.is_string() and (kind.is_string() or kind.is_integer()):
        return key.cast("string")
    if held.is_integer() and (kind.is_string() or kind.is_integer()):
        return cast(key, "whole") if kind.is_string() else key
    if (held.is_boolean() and kind.is_boolean()) or (held.is_date() and kind.is_date()):
        return key
    accepted = f"a column of the type of the one that looks it up, {held}: texts or whole numbers"
    raise InvalidInput("key", accepted, str(kind))
