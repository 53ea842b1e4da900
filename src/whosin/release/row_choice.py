"""Choosing a few rows of each group at random, in the engine.

Contract: each group's rows are chosen by looking at that group alone, every set of the allowed size
being as likely as any other. A random column, the lots, is made first and ordered by afterwards,
since engines refuse, or repeat, random numbers inside a window.

Rows are ranked by their lots. DuckDB holds all rows of a group in memory for that, so there the
rows of an entity with very many are chosen while they are aggregated, by `arg_min(value, lot,
most)`, which holds `most` rows per group and takes half as long again. Spark spills by itself.
One row per group of one value each is chosen that way at once, since it takes half as long: 10^6
people, one row each, 0.2 s of processor time instead of 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

LOT = "lot"
RANK = "rank"
ROW = "whosin_row"
MOST_HELD = 100_000
"""Rows that a group may hold in memory: those that are ranked, and those that are chosen."""


def first(base: Any, home: Sequence[str], most: int, *, crowded: bool = True) -> Any:
    """At most `most` rows of each home, at random; all where there is no column of entities, since
    each row is one person. No other column may have missing values.

    Args:
        home: columns; rows with the same first one, the entity, may be very many.
        crowded: whether they may be; a set of cells, for example, has an end.
    """
    if home[0] not in base.columns:
        return base
    if most == 1 and len(set(base.columns) - set(home)) == 1 and _on_duckdb(base):
        return _single(base, home)
    if not crowded or most > MOST_HELD or not _on_duckdb(base):
        return _ranked(base, home, most)
    sizes = base.group_by(home[0]).aggregate(whosin_rows=base.count())
    large = sizes.filter(sizes["whosin_rows"] > MOST_HELD)
    usual = _ranked(base.anti_join(large, home[0]), home, most)
    return usual.union(_aggregated(base.semi_join(large, home[0]), home, most))


def whole_rows(base: Any, owner: str, most: int) -> Any:
    """At most `most` rows of each owner, at random, as `first`; values may be missing."""
    import ibis

    others = [name for name in base.columns if name != owner]
    if not _on_duckdb(base):
        return _ranked(base, [owner], most)
    if most > 1:
        packed = base.select(owner, **{ROW: ibis.struct({name: base[name] for name in others})})
        chosen = first(packed, [owner], most)
        return chosen.select(owner, **{name: chosen[ROW][name] for name in others})
    drawn = base.mutate(**{LOT: ibis.random()})
    kept = {name: _kept(drawn[name], drawn[LOT]) for name in others}
    return drawn.group_by(owner).aggregate(**kept)


def _ranked(base: Any, home: Sequence[str], most: int) -> Any:
    import ibis

    drawn = base.mutate(**{LOT: ibis.random()})
    rank = ibis.row_number().over(group_by=list(home), order_by=LOT)
    ranked = drawn.mutate(**{RANK: rank})
    return ranked.filter(ranked[RANK] < most).select(*base.columns)


def _on_duckdb(base: Any) -> bool:
    return bool(base.get_backend().name == "duckdb")


def _single(base: Any, home: Sequence[str]) -> Any:
    """One row of each home, which has one value besides."""
    import ibis

    drawn = base.mutate(**{LOT: ibis.random()})
    (value,) = (name for name in base.columns if name not in home)
    chosen = drawn.group_by(list(home)).aggregate(**{value: drawn[value].argmin(drawn[LOT])})
    return chosen.select(*base.columns)


def _aggregated(base: Any, home: Sequence[str], most: int) -> Any:
    import ibis

    drawn = base.mutate(**{LOT: ibis.random()})
    others = [name for name in base.columns if name not in home]
    chosen = {name: _smallest(drawn[name], drawn[LOT], most) for name in others}
    lists = drawn.group_by(list(home)).aggregate(**chosen)
    spread = lists.mutate(**{name: lists[name].unnest() for name in others})
    return spread.select(*base.columns)


def _smallest(value: Any, lot: Any, most: int) -> Any:
    """The values with the smallest lots, as a list."""
    return _arg_min(value.type().copy(nullable=True))(value, lot, most)


def _kept(value: Any, lot: Any) -> Any:
    """The value with the smallest lot, missing where that one is."""
    return _arg_min_null(value.type().copy(nullable=True))(value, lot)


@cache
def _arg_min_null(held: Any) -> Any:
    """DuckDB's aggregate that keeps missing values, for values of a type."""
    import ibis
    from ibis.expr import datatypes as dt

    def arg_min_null(value, lot):  # type: ignore[no-untyped-def]
        ...

    arg_min_null.__annotations__ = {"value": held, "lot": dt.float64, "return": held}
    return ibis.udf.agg.builtin(arg_min_null)


@cache
def _arg_min(held: Any) -> Any:
    """DuckDB's aggregate for values of a type."""
    import ibis
    from ibis.expr import datatypes as dt

    def arg_min(value, lot, most):  # type: ignore[no-untyped-def]
        ...

    arg_min.__annotations__ = {"value": held, "lot": dt.float64, "most": dt.int64}
    arg_min.__annotations__["return"] = dt.Array(held)
    return ibis.udf.agg.builtin(arg_min)
