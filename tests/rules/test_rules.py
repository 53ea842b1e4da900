"""The rules as mechanisms: what they show for each count, alone, in chains, and on noisy counts."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from math import comb

import numpy as np
import pytest

import whosin as wi
from refusals import refused
from whosin import families, mechanisms, rules
from whosin.errors import Unsupported, WhosinError

HALF = Fraction(1, 2)
KEYS = {0: {0: 1}, 1: {-1: "1/2", 1: "1/2"}, 2: {-1: "1/4", 0: "1/2", 1: "1/4"}}


def shown(mechanism, people: int) -> list[dict]:
    """{output: probability} for each count, from the channel that everything else works on."""
    channel = mechanism.channel(wi.Subsets(people))
    assert channel.exact is not None and len(channel.likelihoods) == people + 1
    rows = []
    for exact, near in zip(channel.exact, channel.likelihoods, strict=True):
        row = {o: wi.exact.rational(p) for o, p in zip(channel.outputs, exact, strict=True) if p}
        assert [float(wi.exact.rational(p)) for p in exact] == list(near)
        assert sum(row.values()) == 1
        rows.append(row)
    return rows


def test_what_each_rule_shows():
    assert shown(rules.Exact(), 3) == [{0: 1}, {1: 1}, {2: 1}, {3: 1}]
    hidden = {"suppressed": 1}
    assert shown(rules.Suppress(3), 4) == [{0: 1}, hidden, hidden, {3: 1}, {4: 1}]
    assert shown(rules.Suppress(3, zeros="hidden"), 4) == [hidden] * 3 + [{3: 1}, {4: 1}]
    assert shown(rules.Suppress(1), 1) == [{0: 1}, {1: 1}]
    assert shown(rules.Suppress(9, zeros="hidden"), 4) == [hidden] * 5
    rounded = [0, 0, 0, 5, 5, 5, 5, 5, 10, 10, 10]
    assert shown(rules.Round(5), 10) == [{number: 1} for number in rounded]
    assert shown(rules.Round(2), 3) == [{0: 1}, {2: 1}, {2: 1}, {4: 1}]  # halves go up
    third = Fraction(1, 3)
    assert shown(rules.RandomRound(3), 4) == [
        {0: 1},
        {0: 2 * third, 3: third},
        {0: third, 3: 2 * third},
        {3: 1},
        {3: 2 * third, 6: third},
    ]
    assert shown(rules.FromTable([[1, 0], ["1/3", "2/3"]], ["no", "yes"]), 1) == [
        {"no": 1},
        {"no": third, "yes": 2 * third},
    ]


def test_random_rounding_is_right_on_average():
    for count, row in enumerate(shown(rules.RandomRound(7), 30)):
        assert sum(output * p for output, p in row.items()) == count


def test_a_cell_key_uses_its_last_rows_for_larger_counts():
    assert shown(rules.CellKey(KEYS), 4)[1:] == [
        {0: HALF, 2: HALF},
        {1: HALF / 2, 2: HALF, 3: HALF / 2},
        {2: HALF / 2, 3: HALF, 4: HALF / 2},
        {3: HALF / 2, 4: HALF, 5: HALF / 2},
    ]
    turned = shown(rules.CellKey(KEYS, period=2), 5)
    assert (
        turned[3] == {2: HALF, 4: HALF} and turned[4][4] == HALF and turned[5] == {4: HALF, 6: HALF}
    )


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_p_tables_of_the_two_usual_kinds(tmp_path, mark):
    moves = tmp_path / "moves.csv"
    lines = ["i,j,p,v,p_int_lb,p_int_ub,type", "0,0,1,0,0,1,all", "1,0,0.5,-1,0,0.5,all"]
    lines += ["1,2,0.5,1,0.5,1,all", "2,1,.25,-1,0,.25,all", "2,2,.5,0,.25,.75,all"]
    lines += ["2,3,.25,1,.75,1,all"]
    moves.write_text("\n".join(lines).replace(",", mark), "utf-8")
    assert rules.CellKey(moves) == rules.CellKey(KEYS)
    assert rules.CellKey(str(moves)) == rules.CellKey(KEYS)
    keys = tmp_path / "keys.csv"
    rows = [(1, key, -1 if key < 2 else 1) for key in range(4)]
    rows += [(2, key, (-1, 0, 0, 1)[key]) for key in range(4)]
    text = "\n".join(["pcv,ckey,pvalue", *(",".join(map(str, row)) for row in rows)])
    keys.write_text(text.replace(",", mark) + "\n", "utf-8")
    assert rules.CellKey(keys) == rules.CellKey(KEYS)  # a count of 0 stays 0


def test_keys_of_750_counts_repeat_the_last_250(tmp_path):
    path = tmp_path / "keys.csv"
    lines = [f"{count},{key},{(key * count) % 3 - 1}" for count in range(1, 751) for key in (0, 1)]
    path.write_text("\n".join(["pcv,ckey,pvalue", *lines]), "utf-8")
    rule = rules.CellKey(path)
    assert rule.period == 250
    changes = [{o - count for o, _ in rule.spread(count)} for count in (751, 1001, 501)]
    assert changes[0] == changes[1] == changes[2]


ONE_ROW = "i,j,p\n0,0,1\n"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("i,j,p\n0,0,0.9\n", "sum of the probabilities of count 0"),
        ("i,j,p\n0,0,1.5\n", "probability in line 2 of the p-table"),
        ("i,j,p\n0,-1,1\n", "change in row 0 of table"),
        ("i,j,p\n1,1,1\n", "table"),
        ("i,j,p\n0,0,1\n0,0,1\n", "line 3 of the p-table"),
        ("i,j,p\n0,half,1\n", "line 2 of the p-table"),
        ("i,j,p\n0,0.5,1\n", "line 2 of the p-table"),
        ("i,j,p\n0,0\n", "line 2 of the p-table"),
        ("a,b\n0,0\n", "columns of the p-table"),
        ("i,j,p\n", "p-table"),
        ("\n", "p-table"),
        ("i,j,p\n\n0,0,half\n", "probability in line 3 of the p-table"),
        ('i,j,p\n0,"0,1\n', "p-table"),
        ("i,j,p\n0,0,1" + "0" * 200_000, "p-table"),
        ("pcv,ckey,pvalue\n1,0,0\n1,0,1\n", "line 3 of the p-table"),
        ("pcv,ckey,pvalue\n1,0,0\n1,1,1\n2,0,0\n", "keys of count 2 in the p-table"),
    ],
)
def test_p_tables_that_make_no_sense_are_refused(tmp_path, text, field):
    path = tmp_path / "keys.csv"
    path.write_text(text, "utf-8")
    with refused(field):
        rules.CellKey(path)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: rules.Suppress(0), "below"),
        (lambda: rules.Suppress(Fraction(5, 2)), "below"),  # type: ignore[arg-type]
        (lambda: rules.Suppress(5, zeros="yes"), "zeros"),
        (lambda: rules.Round(1), "base"),
        (lambda: rules.Round(True), "base"),
        (lambda: rules.RandomRound(1), "base"),
        (lambda: rules.CellKey({}), "table"),
        (lambda: rules.CellKey({1: {0: 1}}), "table"),
        (lambda: rules.CellKey({0: {0: "1/2"}}), "sum of row 0 of table"),
        (lambda: rules.CellKey({0: {0: 0.9999}}), "sum of row 0 of table"),
        (lambda: rules.CellKey({0: {-1: 1}}), "change in row 0 of table"),
        (lambda: rules.CellKey({0: {0: 1}}, period=2), "period"),
        (lambda: rules.FromTable([[1]]), "matrix"),
        (lambda: rules.FromTable(3), "matrix"),
        (lambda: rules.FromTable([[1], ["1/2"]]), "sum of row 1 of matrix"),
        (lambda: rules.FromTable([[1], [1]]).channel(wi.Subsets(2)), "rows of matrix"),
        (lambda: rules.Exact().channel(wi.Records(2, 2)), "space"),
        (lambda: rules.Exact().channel(), "space"),
    ],
)
def test_rules_that_make_no_sense_are_refused(make, field):
    with refused(field, kind=WhosinError):
        make()


def test_chains_pass_what_is_suppressed_along():
    chain = mechanisms.PostProcessed(
        mechanisms.PostProcessed(rules.RandomRound(3), rules.Suppress(4)), rules.Round(2)
    )
    third = Fraction(1, 3)
    assert shown(chain, 4) == [
        {0: 1},
        {0: 2 * third, "suppressed": third},
        {0: third, "suppressed": 2 * third},
        {"suppressed": 1},
        {"suppressed": 2 * third, 6: third},
    ]
    doubled = mechanisms.PostProcessed(rules.Exact(), lambda count: min(count, 2))
    assert shown(doubled, 3) == [{0: 1}, {1: 1}, {2: 1}, {2: 1}]


def noisy(count: int, output: int, alpha: Fraction) -> Fraction:
    return (1 - alpha) / (1 + alpha) * alpha ** abs(output - count)


@pytest.mark.parametrize(
    "rule", [rules.Suppress(3), rules.Suppress(9, "hidden"), rules.Round(5), rules.RandomRound(3)]
)
def test_a_rule_on_a_noisy_count_against_a_long_sum(rule):
    """Noisy counts far out taken together: each output that is told apart has the probability that
    summing over all whole numbers gives it, and the rest is in proportion to the last of them."""
    people, alpha, far = 4, Fraction(1, 3), 60
    table = shown(
        mechanisms.PostProcessed(mechanisms.Geometric("count", alpha=alpha), rule), people
    )
    left = 2 * alpha**far
    for count, row in enumerate(table):
        truth: dict = {}
        for output in range(-far, people + far + 1):
            for name, p in rule.spread(output):
                truth[name] = truth.get(name, 0) + p * noisy(count, output, alpha)
        for name, p in row.items():
            if name in truth and _core(rule, name, people):
                assert truth[name] <= p <= truth[name] + left
    outer = {name for row in table for name in row if not _core(rule, name, people)}
    for name in outer:  # seen only beyond 0 … people: one ratio for every pair of counts
        steps = {table[c + 1][name] / table[c][name] for c in range(people)}
        assert steps <= {alpha, 1 / alpha} and len(steps) == 1


def _core(rule, name, people: int) -> bool:
    """Whether an output is shown for some count of 0 … people."""
    return any(name == each for count in range(people + 1) for each, _ in rule.spread(count))


def test_noise_by_scale_is_on_the_safe_side():
    chain = mechanisms.PostProcessed(mechanisms.Geometric("count", scale=2), rules.Round(3))
    level = wi.notions.PositiveMembership(families.Independent()).measure(chain, wi.Subsets(5))
    assert 1 < level.value <= np.exp(0.5) * (1 + 1e-9)
    with refused("scale", kind=Unsupported):
        mechanisms.PostProcessed(
            mechanisms.Geometric("count", scale="1/100"), rules.Round(3)
        ).channel(wi.Subsets(50))


def test_cell_keys_refuse_counts_below_0():
    noise = mechanisms.Geometric("count", alpha=HALF)
    with refused("count", -2, kind=Unsupported):
        mechanisms.PostProcessed(noise, rules.CellKey(KEYS)).channel(wi.Subsets(3))
    raised = mechanisms.PostProcessed(noise, lambda count: max(count, 0))
    rows = shown(mechanisms.PostProcessed(raised, rules.CellKey(KEYS)), 3)
    assert all(sum(row.values()) == 1 for row in rows)


def test_levels_of_rules_by_hand():
    """Uninformed people and a count of n shown exactly: the output n proves that all are in."""
    measure = wi.notions.PositiveMembership(families.Uninformed()).measure
    assert measure(rules.Exact(), wi.Subsets(6)).value == wi.exact.math.inf
    # Rounded to 5, n = 10: "10" is a count of 8, 9 or 10; of 9 others 7, 8, 9 or 8, 9.
    ways = [sum(comb(9, others) for others in range(first, 10)) for first in (7, 8)]
    ratio = Fraction(ways[0], ways[1])
    level = measure(rules.Round(5), wi.Subsets(10))
    assert level.value == (ratio + 1) / 2 and level.witness.output == 10


def test_a_rule_works_on_many_people_and_draws():
    channel = rules.Suppress(5).channel(wi.Subsets(1000))
    draw = channel.sampler()
    rng = np.random.default_rng(7)
    assert set(draw(range(7), 5, rng)) == {7} and set(draw([3, 9], 5, rng)) == {"suppressed"}
    level = wi.notions.PositiveMembership(families.Independent()).measure(channel)
    assert level.value == np.inf


def test_a_file_with_a_row_for_each_count(tmp_path):
    path = tmp_path / "rule.json"
    before = rules.RandomRound(3).channel(wi.Subsets(30))
    before.save(path)
    assert json.loads(path.read_text("utf-8"))["space"] == {"kind": "counts", "entities": 30}
    again = wi.Channel.load(path)
    assert again.outputs == before.outputs and (again.exact == before.exact).all()
    assert again.lattice == before.lattice
    data = {"space": {"kind": "counts", "entities": 3}, "probabilities": [[1], [1]]}
    with refused("number of rows", 2):
        wi.Channel.from_dict(data)


def test_two_publications_are_composed():
    both = mechanisms.Composed([rules.Round(5), rules.Round(3)])
    rows = shown(both, 12)
    assert rows[7] == {(5, 6): 1} and rows[8] == {(10, 9): 1}


@pytest.mark.parametrize("seed", range(5))
def test_a_random_chain_is_the_product_of_its_tables(seed):
    rng = random.Random(seed)
    people = rng.randint(1, 8)
    stages = [
        rng.choice(
            [
                rules.Suppress(rng.randint(1, 6)),
                rules.Round(rng.randint(2, 5)),
                rules.RandomRound(rng.randint(2, 5)),
            ]
        )
        for _ in range(3)
    ]
    chain = stages[0]
    for stage in stages[1:]:
        chain = mechanisms.PostProcessed(chain, stage)
    for count, row in enumerate(shown(chain, people)):
        truth = {count: Fraction(1)}
        for stage in stages:
            after: dict = {}
            for name, p in truth.items():
                for output, q in [(name, 1)] if name == "suppressed" else stage.spread(name):
                    after[output] = after.get(output, 0) + p * q
            truth = after
        assert row == truth
