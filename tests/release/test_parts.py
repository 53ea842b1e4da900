"""Parts: who is in which, by the rows of each person alone; neighbours attacked over several."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

import part_oracle
import release_oracle as oracle
import whosin as wi
from amounts import cases
from refusals import refused
from whosin import release
from whosin.errors import BudgetRefused, InvalidInput
from whosin.ledger import verify
from whosin.release import Session, Values
from whosin.release.answer import read_releases
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.cost import batch_cost
from whosin.release.sql import parse_queries
from whosin.report.accounts import accounts_lines

REGIONS = part_oracle.REGIONS
DOMAINS = {"region": REGIONS, "age": (0, 100)}
Rows = list[tuple[object, object, int]]


def make_table(rows: Rows, part: str = "least(region)", **options) -> wi.Table:
    names = ("who", "region", "age")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    kinds = {"who": pa.string(), "region": pa.string(), "age": pa.int64()}
    data = pa.table({name: pa.array(columns[name], kinds[name]) for name in names})
    return oracle.table(data, DOMAINS | options.pop("domains", {}), part=part, **options)


def random_rows(chance: random.Random) -> Rows:
    who = [None, *"abcdef"]
    regions = [*REGIONS, "west", None]
    return [
        (chance.choice(who), chance.choice(regions), chance.randint(0, 90))
        for _ in range(chance.randint(1, 25))
    ]


def count_people(query: release.Count, table: wi.Table) -> int:
    return oracle.exact(query, query.restrict_table(table))[0][0]


@cases(8, 50)
@pytest.mark.parametrize("by_row", [False, True])
def test_a_part_has_the_people_that_its_rule_says(by_row, count):
    for seed in range(count):
        rows = random_rows(random.Random(seed))
        if by_row:
            table = make_table(rows, "region", privacy_unit="row")
            people = Counter(region for _, region, _ in rows)
            older = Counter(region for _, region, age in rows if age > 40)
        else:
            table = make_table(rows)
            everyone = {who for who, _, _ in rows} - {None}
            people = Counter(part_oracle.find_part(rows, who) for who in everyone)
            older = Counter(
                region
                for who, region in {
                    (who, region) for who, region, age in rows if who is not None and age > 40
                }
            )
        for part in REGIONS:
            assert count_people(release.Count(part=part), table) == people[part]
            where = f"region = '{part}' and age > 40"
            assert count_people(release.Count(where=where), table) == older[part]


def changed_counts(rows: Rows, other: Rows) -> dict[str | None, int]:
    """By how much the exact count of everyone and of each part differs."""
    queries = {None: release.Count(), **{each: release.Count(part=each) for each in REGIONS}}
    tables = make_table(rows), make_table(other)
    return {
        part: abs(count_people(query, tables[0]) - count_people(query, tables[1]))
        for part, query in queries.items()
    }


@cases(12, 80)
def test_neighbours_differ_in_one_part_or_move_between_two(count):
    """A person with rows in several parts comes or goes, or is replaced by one who is elsewhere:
    what is paid covers the likelihood ratio of exact Laplace noise on all parts together."""
    moved = 0
    for seed in range(count):
        chance = random.Random(seed)
        rest = [each for each in random_rows(chance) if each[0] != "x"]
        own: list[Rows] = [
            [("x", chance.choice(REGIONS), 1) for _ in range(chance.randint(1, 3))]
            for _ in range(2)
        ]
        removed = changed_counts(rest + own[0], rest or [(None, None, 0)])
        assert sum(removed[part] for part in REGIONS) == 1 == removed[None]
        replaced = changed_counts(rest + own[0], rest + own[1])
        ways = sum(replaced[part] for part in REGIONS)
        assert ways in (0, 2) and replaced[None] == 0
        moved += ways == 2
    assert (
        moved > count / 4
    )  # as two entries and exits, which the budget for replaced people counts


@pytest.mark.parametrize("relation", oracle.PLANS)
def test_a_batch_over_parts_pays_for_those_that_one_person_can_be_in(relation, tmp_path):
    table = make_table([("a", "north", 1), ("b", "south", 2), ("c", "east", 3)])
    queries = [release.Count(part=each) for each in REGIONS]
    with Session(table, oracle.PLANS[relation], tmp_path / "l.db", share=1) as session:
        estimates = session.dry_run(queries)
        shares = [each.share.epsilon for each in estimates]
        assert shares == [1 if relation == "add-remove" else 0.5] * 3
        assert batch_cost(estimates, oracle.PLANS[relation]).epsilon <= 10**12
        state = session.release(queries).budget_state
        assert state.epsilon == pytest.approx(1)
        with pytest.raises(BudgetRefused):
            session.release(release.Count(), share="1/10")
        assert verify(session.ledger, "people").debits == 3


def test_sessions_on_other_parts_have_their_own_budget(tmp_path):
    table = make_table([("a", "north", 1), ("b", "south", 2)])
    for part in REGIONS:
        query = release.Count(part=part)
        plan, books = oracle.PLANS["add-remove"], tmp_path / "l.db"
        with Session(table, plan, books, share=1, queries=[query]) as session:
            session.release(query)
    with wi.Ledger(tmp_path / "l.db") as ledger:
        assert ledger.budget_state("people").epsilon == pytest.approx(1)
        assert len(ledger.part_levels("people")) == 3
    with pytest.raises(BudgetRefused), Session(table, plan, books, share=1) as session:
        session.release(query, again=True)


def test_a_question_by_the_parts_column_is_about_everyone(tmp_path):
    table = make_table([("a", "north", 1), ("b", "south", 2)])
    with Session(table, oracle.PLANS["add-remove"], tmp_path / "l.db", share=1) as session:
        for query in (
            release.Count(by="region"),
            release.Count(where="region = 'north' or age > 3"),
            release.Count(where="region in ('north', 'south')"),
            release.Count(where="not region = 'north'"),
            release.Count(where="region = 'west'"),
        ):
            (estimate,) = session.dry_run(query)
            assert estimate.spend.part is None


def test_a_condition_selects_a_part_only_where_it_means_the_same():
    """Under least(region) someone with rows in two regions is in the first one's part alone, and
    yet meets a condition about either."""
    rows: Rows = [("a", "south", 1), ("a", "north", 2), ("b", "north", 3)]
    query = release.Count(where="(age > 1) and ('north' = region)")
    constant = {"region": Values(REGIONS, constant=True)}
    for table, part, people in (
        (make_table(rows), None, 2),
        (make_table(rows[1:], "region", domains=constant), "north", 2),
        (make_table(rows, "region", privacy_unit="row"), "north", 2),
        (make_table(rows, privacy_unit="row"), "north", 2),
    ):
        assert query.find_part(table) == part
        assert count_people(query, table) == people
        (asked,) = parse_queries(f"SELECT COUNT(*) FROM people WHERE {query.where}", table)
        assert asked.find_part(table) == part
    assert count_people(release.Count(part="north"), make_table(rows)) == 1


def test_what_makes_no_parts_is_refused(tmp_path):
    rows: Rows = [("a", "north", 1)]
    with refused("part", "region"):  # neither constant nor a rule
        make_table(rows, "region")
    make_table(rows, "region", domains={"region": Values(REGIONS, constant=True)})
    with refused("part"):
        make_table(rows, "least(age)")
    with refused("part"):
        make_table(rows, "county")
    table = make_table(rows)
    with pytest.raises(InvalidInput, match="north"):
        release.Count(part="nort").find_part(table)
    with refused("part", "north"):
        release.Count(part="north").find_part(oracle.table({"who": ["a"]}))
    assert not (tmp_path / "l.db").exists()


def test_a_table_that_lives_needs_a_column_that_never_changes(tmp_path):
    import duckdb

    with duckdb.connect(str(tmp_path / "x.duckdb")) as base:
        base.execute("CREATE TABLE t AS SELECT 'a' AS who, 'north' AS region, 1 AS age")
    table = make_table([("a", "north", 1)])
    assert table.part is not None
    with pytest.raises(InvalidInput, match="may change"):
        table.part.require_fixed({"place": "x", "rows": "y", "table": "z"})
    with pytest.raises(InvalidInput, match="may change"):
        table.part.require_fixed({"place": "x"})
    table.part.require_fixed({"place": "x", "rows": "y"})


def test_a_mistake_is_at_the_number_that_the_question_has_in_its_batch():
    table = make_table([("a", "north", 1)])
    queries = [
        release.Count(),
        release.Count(part="north"),
        release.Sum(column="region", part="north"),
    ]
    with pytest.raises(InvalidInput) as raised:
        estimate_batch_cost(table, oracle.PLANS["add-remove"], queries)
    assert raised.value.path.startswith("queries[2]")


def test_an_answer_names_its_part_and_a_release_what_each_has_left(tmp_path):
    table = make_table([("a", "north", 1), ("b", "south", 2)])
    queries = [release.Count(part="north"), release.Count(part="south")]
    queries += [release.Count(), release.Count(by="age", part="north", where="age > 0")]
    table.domains["age"] = release.Range(0, 100, edges=(0, 50, 100))
    with Session(table, oracle.PLANS["add-remove"], tmp_path / "l.db", share=1) as session:
        made = session.release(queries, split="optimal")
        again = read_releases(session.ledger, "people")[0]
    for released in (made, again):
        told = [each.to_dict()["statement"] for each in released]
        assert [next((p for p in REGIONS if p in each), None) for each in told] == [
            *("north", "south", None, "north")
        ]
        assert [each.question["counted"].get("part", {}).get("name") for each in released] == [
            *("north", "south", None, "north")
        ]
        listed = released.to_dict()["budget_state"]["parts"]
        left = {each["part"]: each["left"] for each in listed["listed"]}
        assert left["north"] < 1e-9 < left["south"] < 1
        assert left["south"] < listed["unasked"]["left"] == pytest.approx(1 - listed["everyone"])
        shown = " ".join(map(str, accounts_lines(released.budget_state)))
        assert "Part north: " in shown and "Part south: " in shown


@cases(2, 12)
@pytest.mark.parametrize("part", ["least(region)", "region"])
def test_parts_with_further_tables_and_features_are_those_of_the_definition(part, count):
    for seed in range(count):
        part_oracle.check_parts(seed, part=part)
