"""Choosing a few rows of each group at random, in the engine.

Contract: each group's rows are chosen by looking at that group alone, every set of the allowed size
being as likely as any other. A random column, the lots, is made first and ordered by afterwards,
since engines refuse, or repeat, random numbers inside a window. The columns of `sample_rows` and
`sum_sampled_rows` have names of ours, which differ from the names that are added here; those of
`whole_rows` may have any.

One row of each group is chosen while rows are aggregated, by `arg_min(value, lot)`: one pass that
holds one row a group. More are ranked by their lots. DuckDB holds all rows of a group in memory for
that, so where a group has very many, those with large lots, which have no chance, are left out
before (`_thin_large_homes`). Spark spills by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import sqrt
from typing import Any

from whosin.release.column_expressions import select_columns

LOT_COLUMN = "lot"
RANK_COLUMN = "rank"
SIZE_COLUMN = "whosin_rows"
MOST_HELD = 100_000
"""Rows of a group that are ranked together, besides those that are chosen."""


def sample_rows(base: Any, home: Sequence[str], most: int, *, crowded: bool = True) -> Any:
    """At most `most` rows of each home, at random; all where there is no column of privacy units,
    since each row is one person. No other column may have missing values where one row is chosen.

    Args:
        home: columns; rows with the same first one, the privacy unit, may be very many.
        crowded: whether they may be; a set of cells, for example, has an end.
    """
    if home[0] not in base.columns:
        return base
    if not _is_duckdb(base):
        return _rank_lots(_add_lots(base), home, most, base.columns)
    if most == 1 and len(base.columns) > len(home):
        return _sample_one_row(base, home)
    lots = _add_lots(base)
    if crowded:
        lots = _thin_large_homes(base, lots, home, most)
    return _rank_lots(lots, home, most, base.columns)


def whole_rows(base: Any, owner: str, most: int) -> Any:
    """At most `most` rows of each owner, at random, as `sample_rows`; values may be missing, and
    columns may be called anything."""
    ours = {name: f"column_{index}" for index, name in enumerate(base.columns)}
    plain = base.select(select_columns({ours[name]: base[name] for name in base.columns}))
    if most > 1 or not _is_duckdb(base):
        chosen = sample_rows(plain, [ours[owner]], most)
    else:
        lots = _add_lots(plain)
        kept = {ours[name]: lots[ours[name]] for name in base.columns if name != owner}
        kept = {
            name: _value_of_smallest_lot(value, lots[LOT_COLUMN]) for name, value in kept.items()
        }
        chosen = lots.group_by(ours[owner]).aggregate(**kept)
    return chosen.select(select_columns({name: chosen[ours[name]] for name in base.columns}))


def sum_sampled_rows(base: Any, home: Sequence[str], most: int, names: Sequence[str]) -> Any:
    """For each home the sums of some columns over at most `most` of its rows, at random.

    Most homes have no more rows than that, and are summed as they are: only of the others are rows
    ranked. A home has one row here, with the sum of all its rows where they are few and otherwise
    of the chosen ones; so it never comes to more, even if an engine reads random rows twice.
    """
    import ibis

    if not _is_duckdb(base):
        rows = sample_rows(base, home, most)
        return rows.group_by(list(home)).aggregate(**{name: rows[name].sum() for name in names})
    sums = {name: base[name].sum() for name in names}
    every = base.group_by(list(home)).aggregate(**{SIZE_COLUMN: base.count()}, **sums)
    lots = _add_sizes(_add_lots(base), every.filter(every[SIZE_COLUMN] > most), home)
    rows = _rank_lots(
        _drop_hopeless_lots(lots.filter(lots[SIZE_COLUMN].notnull()), most),
        home,
        most,
        base.columns,
    )
    few = rows.group_by(list(home)).aggregate(**{name: rows[name].sum() for name in names}).view()
    joined = every.left_join(few, [every[name] == few[name] for name in home])
    chosen = {
        name: ibis.cases((every[SIZE_COLUMN] <= most, every[name]), else_=few[name].fill_null(0))
        for name in names
    }
    return joined.select(**{name: every[name] for name in home}, **chosen)


def _is_duckdb(base: Any) -> bool:
    return bool(base.get_backend().name == "duckdb")


def _add_lots(base: Any) -> Any:
    import ibis

    return base.mutate(**{LOT_COLUMN: ibis.random()})


def _rank_lots(lots: Any, home: Sequence[str], most: int, columns: Sequence[str]) -> Any:
    import ibis

    rank = ibis.row_number().over(group_by=list(home), order_by=LOT_COLUMN)
    ranked = lots.mutate(**{RANK_COLUMN: rank})
    return ranked.filter(ranked[RANK_COLUMN] < most).select(*columns)


def _sample_one_row(base: Any, home: Sequence[str]) -> Any:
    """One row of each home."""
    lots = _add_lots(base)
    others = [name for name in base.columns if name not in home]
    kept = {name: lots[name].argmin(lots[LOT_COLUMN]) for name in others}
    return lots.group_by(list(home)).aggregate(**kept).select(*base.columns)


def _thin_large_homes(base: Any, lots: Any, home: Sequence[str], most: int) -> Any:
    """Rows with their lots, without those of large homes that have no chance."""
    sizes = base.group_by(list(home)).aggregate(**{SIZE_COLUMN: base.count()})
    large = sizes.filter(sizes[SIZE_COLUMN] > MOST_HELD)
    return _drop_hopeless_lots(_add_sizes(lots, large, home), most).select(*lots.columns)


def _add_sizes(lots: Any, sizes: Any, home: Sequence[str]) -> Any:
    """Rows with how many rows their home has, missing where it is not listed."""
    listed = sizes.select(
        **{f"size_{name}": sizes[name] for name in home}, **{SIZE_COLUMN: sizes[SIZE_COLUMN]}
    )
    known = listed.view()
    joined = lots.left_join(known, [lots[name] == known[f"size_{name}"] for name in home])
    return joined.select(*lots.columns, SIZE_COLUMN)


def _drop_hopeless_lots(lots: Any, most: int) -> Any:
    """Rows without those whose lots are too large to be among the chosen ones.

    Of n rows those with lots below t = (most + 10 √most + 100) / n stay: n t of them on average,
    and fewer than `most` with probability below e^-50 (Chernoff).
    """
    enough = most + 10 * sqrt(most) + 100
    return lots.filter(lots[SIZE_COLUMN].isnull() | (lots[LOT_COLUMN] * lots[SIZE_COLUMN] < enough))


def _value_of_smallest_lot(value: Any, lot: Any) -> Any:
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
