"""Columns of our own beside a table's, whatever these are called.

Contract: a name that we add is one that no column of the table has, in whatever letters, since
engines take names that differ only in small and capital letters for one. Columns are handed to Ibis
with their names inside, never as Python's keywords: a column may be called self.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def folded(name: str) -> str:
    """A name, the same for all that some engine may take for one."""
    return name.upper().lower()


def unused(wanted: str, taken: Iterable[str]) -> str:
    """A name that is not taken: the wanted one, or one made from it."""
    known = {folded(each) for each in taken}
    while folded(wanted) in known:
        wanted += "_"
    return wanted


def called(columns: Mapping[str, Any]) -> list[Any]:
    """Columns by their names, as Ibis takes them in a list."""
    return [column.name(name) for name, column in columns.items()]


def beside(rows: Any, known: Any, on: Sequence[tuple[str, str]], columns: Mapping[str, str]) -> Any:
    """All rows, each with columns of the row of another table that has the same key, which must be
    there once; missing where there is none.

    Args:
        on: the columns that make the key, here and there.
        columns: what is taken of the other table, by the names that it gets here.
    """
    used = dict.fromkeys([*(there for _, there in on), *columns.values()])
    ours = {name: unused(f"joined_{index}", rows.columns) for index, name in enumerate(used)}
    other = known.select(called({ours[name]: known[name] for name in used})).view()
    joined = rows.left_join(other, [rows[here] == other[ours[there]] for here, there in on])
    kept = {name: joined[name] for name in rows.columns}
    return joined.select(called(kept | {name: joined[ours[at]] for name, at in columns.items()}))
