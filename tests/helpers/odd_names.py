"""Tables whose columns are called what the package calls its own, against plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import whosin as wi
from whosin.release import Count, Feature, FurtherTable, LookupTable, Values

WORDS = ("self", "by", "having", "metrics", "exprs", "value", "line", "fields", "c", "c0_0", "t1")
"""Names that Python's functions, SQL and the readers of files have for things of theirs."""
ROWS = (1, 2, 5)
"""How many rows of a further table are joined."""
VISITS = [(1, 10), (1, 11), (1, 12), (2, 20), (2, 21), (3, None), (5, 50), (None, 60)]
PEOPLE = [1, 2, 3, 4, 2]


def worth(name: str, place: int | None, who: int | None) -> int | None:
    """What the rows of a further table, of the table itself (place is None) have in a column."""
    if place is not None and place % 7 == 4:
        return None
    return sum(map(ord, name)) % 97 * 1000 + (who or 0) * 100 + (place or 0)


def opened(engine: Any, names: list[str], most: int) -> wi.Table:
    """Every name is a column of the table, of a further one and of a public one; the features are
    called by the same names, in the order of the alphabet, with "_of" after them."""
    main = {"who": PEOPLE, "ward": ["A", "B", "A", None, "C"]}
    main |= {name: [worth(name, None, who) for who in PEOPLE] for name in names}
    visits = {"who": [who for who, _ in VISITS], "at": [at for _, at in VISITS]}
    visits |= {name: [worth(name, at, who) for who, at in VISITS] for name in names}
    public = {"ward": ["A", "B"]} | {name: [f"{name} of {at}" for at in "AB"] for name in names}
    regions = {"region": {"north": ["A"], "south": ["B", "C"]}}
    return wi.Table(
        pa.table(main),
        "who",
        {"ward": Values(("A", "B", "C"), parents=regions)},
        name="p",
        engine=engine,
        tables=[
            FurtherTable("v", pa.table(visits), max_rows=most),
            LookupTable("w", pa.table(public), key="ward"),
        ],
        features=[Feature(f"{name}_of", "max", name, "v") for name in names],
    )


def inside(table: wi.Table) -> set[str]:
    """The names of all columns that appear on the way to some answers, our own among them."""
    from ibis.expr.operations import Relation

    assert table.database is not None
    queries = [Count(by=("region",), where="region = 'north'"), Count(by=("ward",), max_groups=2)]
    expressions = [
        table.data,
        table.about([*table.database.features]).data,
        *(query.exact(table, query.cells(table)) for query in queries),
    ]
    return {
        name
        for expression in expressions
        for relation in [expression.op(), *expression.op().find(Relation)]
        for name in relation.schema.names
    }


def check_names(engine: Any, names: list[str], most: int) -> None:
    """What the tables hold, joined, features computed and looked up, is what Python finds."""
    table = opened(engine, names, most)
    rows = engine.run(table.data).to_pylist()
    visits = {(who, at) for who, at in VISITS}
    for row in rows:
        who, at = row["who"], row["at"]
        own = [place for person, place in VISITS if person == who]
        assert (who, at) in visits or (at is None and not own)
        for name in names:
            assert row[name] == worth(name, None, who), name
            joined = worth(name, at, who) if own else None
            assert row[f"v.{name}"] == joined, name
            known = f"{name} of {row['ward']}" if row["ward"] in ("A", "B") else None
            assert row[f"w.{name}"] == known, name
            values = [worth(name, place, who) for place in own]
            largest = max((each for each in values if each is not None), default=None)
            assert row[f"{name}_of"] == largest, name
    sizes = {who: sum(1 for person, _ in VISITS if person == who) for who in set(PEOPLE)}
    for who, count in sizes.items():
        joined = min(most, count) or 1
        assert sum(row["who"] == who for row in rows) == PEOPLE.count(who) * joined
    condition = " and ".join(f'"{name}" >= 0' for name in names)
    for word, expected in (("north", 2), ("south", 1)):
        # A level is looked up beside all these columns.
        query = Count(by=("region",), where=f"region = '{word}' and {condition}")
        found = engine.run(query.exact(table, query.cells(table))).to_pylist()
        assert [row["people"] for row in found] == [expected]


def check_word(engine: Any, name: str, most: int = 2) -> None:
    """The entity, a feature, a level and the key of a public table have that name."""
    visits = pa.table({name: [who for who, _ in VISITS], "x": [at for _, at in VISITS]})
    made = wi.Table(
        pa.table({name: PEOPLE}),
        name,
        name="p",
        engine=engine,
        tables=[FurtherTable("v", visits, max_rows=most)],
        features=[Feature("n", "count", "x", "v")],
    )
    counts = {who: sum(p == who and at is not None for p, at in VISITS) for who in PEOPLE}
    found = engine.run(made.about(["n", "x"]).data).to_pylist()
    assert {row[name]: row["n"] for row in found} == counts
    made = wi.Table(
        pa.table({"who": PEOPLE, "ward": ["A", "B", "A", None, "C"]}),
        "who",
        {"ward": Values(("A", "B", "C"), parents={f"{name}!": {"n": ["A"], "s": ["B", "C"]}})},
        name="p",
        engine=engine,
        tables=[
            FurtherTable("v", visits.rename_columns(["who", "x"])),
            LookupTable("w", pa.table({name: ["A", "B"], "y": [1, 2]}), key=name, on="ward"),
        ],
        features=[Feature(name, "count", "x", "v")],
    )
    query = Count(by=(f"{name}!",), where=f"\"{name}!\" = 'n' and y = 1")
    found = engine.run(query.exact(made, query.cells(made))).to_pylist()
    assert [row["people"] for row in found] == [2]
    found = engine.run(made.about([name]).data).to_pylist()
    assert {row["who"]: row[name] for row in found} == counts
