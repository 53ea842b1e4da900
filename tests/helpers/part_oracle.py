"""Parts from the definition, in plain Python: on random tables with further tables and features."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

import release_oracle as oracle
import whosin as wi
from whosin.release import Count, Feature, FurtherTable, Range, Sum, Values

REGIONS = ["south", "north", "east"]
PERSON = "x"
KINDS = {
    "people": {"who": pa.string(), "region": pa.string(), "age": pa.int64()},
    "visits": {"who": pa.string(), "days": pa.int64()},
}
Rows = list[tuple[Any, ...]]
Put = Callable[[str, pa.Table], Any]


def make_frame(name: str, rows: Rows) -> pa.Table:
    """Rows as a table, also where there are none."""
    kinds = KINDS[name]
    columns = zip(*rows, strict=True) if rows else ([] for _ in kinds)
    named = zip(kinds.items(), columns, strict=True)
    return pa.table({column: pa.array(list(values), kind) for (column, kind), values in named})


def ask_parts(
    people: Rows, visits: Rows, engine: Any, put: Put | None, part: str, named: Sequence[str]
) -> list[int]:
    """What the engine finds before noise, part by part: people, those with a long visit, those of
    an age, visits in all, and people with several rows."""
    sources = {"people": make_frame("people", people), "visits": make_frame("visits", visits)}
    placed = {name: rows if put is None else put(name, rows) for name, rows in sources.items()}
    table = wi.Table(
        placed["people"],
        "who",
        {
            "region": Values(tuple(REGIONS), constant=part == "region"),
            "visited": Range(0, 100, step=1),
            "own": Range(0, 100, step=1),
        },
        name="people",
        engine=engine,
        part=part,
        tables=[FurtherTable("visits", placed["visits"], max_rows=1000)],
        features=[Feature("visited", "count", table="visits"), Feature("own", "count")],
    )
    found = []
    for each in named:
        for query in (
            Count(part=each),
            Count(part=each, where="days > 4"),
            Count(part=each, where="age > 40"),
            Sum(column="visited", part=each),
            Count(part=each, where="own > 1"),
        ):
            found.append(oracle.exact(query, query.restrict_table(table))[0][0])
    return found


def expect_parts(people: Rows, visits: Rows, named: Sequence[str]) -> list[int]:
    """The same from the definitions."""
    found = []
    everyone = {who for who, _, _ in people} - {None}
    for each in named:
        inside = {who for who in everyone if find_part(people, who) == each}
        old = {who for who, _, age in people if age > 40} & inside
        visited = [who for who, _ in visits if who in inside]
        found += [
            len(inside),
            len({who for who, days in visits if days > 4} & inside),
            len(old),
            len(visited),
            sum(sum(who == each for who, _, _ in people) > 1 for each in inside),
        ]
    return found


def find_part(people: Rows, who: object) -> str | None:
    """The first of a person's declared regions, in the declared order."""
    mine = {region for each, region, _ in people if each == who}
    return next((each for each in REGIONS if each in mine), None)


def check_parts(
    seed: int,
    engine: Any = oracle.ENGINE,
    put: Put | None = None,
    part: str = "least(region)",
    named: Sequence[str] = REGIONS,
) -> None:
    """Whoever has rows in several parts is in one, whatever is joined. One person's rows, in all
    tables, move that person's part alone; between replaced people the two that they were in."""
    chance = random.Random(seed)

    def own(who: Any, count: int) -> tuple[Rows, Rows]:
        regions = [*REGIONS, "west", None]
        return (
            [(who(), chance.choice(regions), chance.randint(0, 90)) for _ in range(count)],
            [(who(), chance.randint(0, 9)) for _ in range(count)],
        )

    rest = own(lambda: chance.choice([None, *"abcdefghijkl"]), 16)
    mine = [own(lambda: PERSON, chance.randint(2, 4)) for _ in range(2)]
    found, parts = [], []
    for added in (([], []), *mine):
        people, visits = rest[0] + added[0], rest[1] + added[1]
        found.append(ask_parts(people, visits, engine, put, part, named))
        assert found[-1] == expect_parts(people, visits, named), seed
        parts.append(find_part(people, PERSON))
    per = len(found[0]) // len(named)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        changed = {
            named[at // per] for at in range(len(found[0])) if found[one][at] != found[other][at]
        }
        assert changed <= {parts[one], parts[other]} - {None}
