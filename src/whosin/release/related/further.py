"""Further tables: of the same people, or public.

Contract: a private table is joined on the entity and on nothing else, so that what comes to a
person's row is that person's own. A public table is looked up by a column whose values are unique
in it. Nothing here looks at rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeAlias

from whosin.errors import InvalidInput, UnknownName
from whosin.release.related.named_lists import check_keys, check_name, read_named
from whosin.validation import whole

MOST_TABLES = 50
MOST_ROWS = 10**9
REASON = (
    "the entity alone, since any other join lets one person's rows meet another's, who could then "
    "move more than their own; a table that is no secret may be public = true"
)


@dataclass(frozen=True)
class FurtherTable:
    """Another table with rows of the same entities.

    Args:
        name: what features and the error messages call it.
        source: as for `Table`.
        entity: the column there that says whose row it is; by default it is called as in the table
            itself.
        rows: how many rows of an entity are joined to each of its rows of the table itself, at
            most, chosen at random; 1 by default. Features look at all of them.
    """

    public: ClassVar[bool] = False
    name: str
    source: Any
    entity: str | None = None
    rows: int = 1

    def __post_init__(self) -> None:
        _check_texts(self, ("name", "entity"))
        whole(self.rows, "rows", 1, MOST_ROWS)


@dataclass(frozen=True)
class LookupTable:
    """A public table whose rows are found by their key: the region of a ward.

    Args:
        name: what domains and error messages call it.
        source: as for `Table`.
        key: its column that is looked up; no value is there twice.
        on: the column that holds the key where it is looked up; by default it is called the same.
        to: the further table whose rows look up; by default the table itself.
    """

    public: ClassVar[bool] = True
    name: str
    source: Any
    key: str
    on: str | None = None
    to: str | None = None

    def __post_init__(self) -> None:
        _check_texts(self, ("name", "key", "on", "to"))


Further: TypeAlias = FurtherTable | LookupTable


def _check_texts(table: Further, names: Sequence[str]) -> None:
    needed = {each.name for each in fields(table) if each.default is MISSING}
    for name in names:
        value = getattr(table, name)
        if not isinstance(value, str) and (value is not None or name in needed):
            raise InvalidInput(name, "a text", repr(value)[:80])
    check_name(table.name, "name")
    if "." in table.name:
        raise InvalidInput("name", "a name without a point", repr(table.name))


def read_tables(given: object) -> tuple[Further, ...]:
    """Further tables as people write them: `FurtherTable(…)`, `LookupTable(…)`, or the keys of a
    scenario file."""
    kinds, written = (FurtherTable, LookupTable), "FurtherTable(…) or LookupTable(…)"
    return read_named(given, "tables", written, MOST_TABLES, kinds, _from_keys)


def _from_keys(data: Mapping[str, Any]) -> Further:
    public = data.get("public", False)
    if not isinstance(public, bool):
        raise InvalidInput("public", "true or false", repr(public)[:80])
    kind = LookupTable if public else FurtherTable
    known = {each.name for each in fields(kind)}
    others = {each.name for every in (LookupTable, FurtherTable) for each in fields(every)}
    for key in data:
        if not public and key in ("on", "key", "to"):
            raise InvalidInput(key, f"left out: a table of people is joined on {REASON}", "given")
        if key in others - known:
            raise InvalidInput(key, "left out for a public table, which has no people", "given")
        if key not in known and key != "public":
            raise UnknownName(
                "key of a table", str(key), [each.name for each in fields(kind)] + ["public"]
            )
    check_keys(kind, data, "table")
    return kind(**{key: value for key, value in data.items() if key != "public"})
