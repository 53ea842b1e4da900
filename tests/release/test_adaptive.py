"""Choosing tables in rounds: what a person can move, what the rounds cost, and their models."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
import pytest

import release_oracle as oracle
from refusals import refused
from whosin.marginals import Workload
from whosin.noise import noisy_max, selection_epsilon, selection_rho
from whosin.release import Synthetic, synthetic_selection
from whosin.release.synthetic_models import (
    AveragedMarginal,
    JunctionTree,
    Known,
    MarginalEstimate,
    distance_sensitivity,
    draw_rows,
    fit_potentials,
)
from whosin.release.synthetic_selection import (
    WEIGHT_STEPS,
    Adaptive,
    SpanningTree,
    candidate_tables,
)
from whosin.release.synthetic_tables import MarginalSelection

SETS = [each for size in range(1, 5) for each in combinations(range(4), size)]
RELATIONS = ("add-remove", "replace")


def way(
    rho=0, relation: str = "add-remove", rows: int = 1, sizes=(2, 2, 3), order: int = 2
) -> Adaptive:
    share = oracle.share(1, rho=rho, relation=relation)
    return Adaptive.within(share, Workload.up_to(sizes, order), rows, Fraction(1, 10))


def counted(people, sizes, sets):
    """The tables of people, each a list of rows."""
    found = {each: np.zeros([sizes[at] for at in each], np.int64) for each in sets}
    for row in (row for rows in people for row in rows):
        for each, table in found.items():
            table[tuple(row[at] for at in each)] += 1
    return found


@pytest.mark.parametrize("rows", [1, 2])
def test_one_person_moves_a_score_by_its_sensitivity_at_most(rows) -> None:
    """All that one person can hold beside another, and all their neighbours, by every score."""
    sizes = (2, 2)
    rounds = way(sizes=sizes, rows=rows)
    cells = list(product(*map(range, sizes)))
    ways = [each for n in range(rows + 1) for each in product(cells, repeat=n)]
    rng = np.random.default_rng(8)
    expected = [
        {each: rng.random([sizes[at] for at in each]) * 3 for each in rounds.counted}
        for _ in range(3)
    ]
    expected.append({each: np.zeros([sizes[at] for at in each]) for each in rounds.counted})
    reached = dict.fromkeys(RELATIONS, 0)
    for model, units in product(expected, (1, 4)):

        def scores(*people, model=model, units=units):
            counts = counted(people, sizes, rounds.counted)
            return [rounds.score(counts[each], model[each], each, units) for each in counts]

        for other in ways[:: 1 if rows == 1 else 5]:
            alone = scores(other)
            found = [scores(one, other) for one in ways]
            for one in found:
                moved = max(abs(a - b) for a, b in zip(one, alone, strict=True))
                reached["add-remove"] = max(reached["add-remove"], moved)
                for another in found:
                    moved = max(abs(a - b) for a, b in zip(one, another, strict=True))
                    reached["replace"] = max(reached["replace"], moved)
    for relation, most in reached.items():
        assert most == WEIGHT_STEPS * distance_sensitivity(relation, rows)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rho", [0, Fraction(1, 40)])
def test_a_round_costs_its_units_and_no_more(relation, rho) -> None:
    """By OpenDP's figure for a choice, and by the definition of each noise."""
    rounds = way(rho, relation, rows=3)
    most = WEIGHT_STEPS * distance_sensitivity(relation, 3)
    price = selection_rho if rho else selection_epsilon
    allowed = rounds.cost(relation, 3) - rounds.choosing_cost(relation)
    for units in range(1, rounds.units + 1):
        part = Fraction(units, rounds.units)
        choice = Fraction(price(most, rounds.scale(units)))
        assert rounds.chosen * part * (1 - Fraction(1, 10**4)) < choice <= rounds.chosen * part
        table = rounds.noise((0, 1), units).cost((), relation, 3)
        assert table == allowed * part
    other = next(each for each in RELATIONS if each != relation)
    factor = Fraction(4 if rho else 2) ** (1 if relation == "add-remove" else -1)
    assert rounds.choosing_cost(other) == factor * rounds.chosen


@pytest.mark.parametrize("rho", [0, Fraction(1, 40), 3])
def test_the_rounds_spend_every_unit(monkeypatch, rho) -> None:
    """Whichever way they go: by the noise of what was measured, and by the scales of choices."""
    rounds = way(rho, sizes=(2, 3, 2), order=3)
    scales = []

    def spied(scores, scale, *, gumbel):
        assert gumbel == bool(rho) and scores.dtype == np.int64
        scales.append(scale)
        return noisy_max(scores, scale, gumbel=gumbel)

    monkeypatch.setattr(synthetic_selection, "noisy_max", spied)
    rng = np.random.default_rng(0)
    people = [[tuple(rng.integers(0, size) for size in (2, 3, 2))] for _ in range(50)]
    counts = counted(people, (2, 3, 2), rounds.counted)
    first: Known = {(at,): AveragedMarginal(counts[at,].astype(float), 1.0) for at in range(3)}
    found, _ = rounds.measure(counts, first)
    units = [rounds.unit.width / noisy.noise.width for noisy, _ in found]
    assert all(each.denominator == 1 for each in units) and sum(units) == rounds.units
    assert scales == [rounds.scale(int(each)) for each in units]
    spent = sum(noisy.cost((), "add-remove", 1) for noisy, _ in found)
    assert spent + rounds.choosing_cost("add-remove") == rounds.cost("add-remove", 1)


def test_without_noise_the_worst_table_is_chosen_first() -> None:
    """Two columns are equal, the third and fourth have nothing to do with anything."""
    rounds = way(10**9, sizes=(3, 3, 2, 2))
    rng = np.random.default_rng(1)
    people = [[(a, a, b, c)] for a, b, c in rng.integers(0, (3, 2, 2), (300, 3)).tolist()]
    counts = counted(people, (3, 3, 2, 2), rounds.counted)
    first: Known = {(at,): AveragedMarginal(counts[at,].astype(float), 1e3) for at in range(4)}
    found, _ = rounds.measure(counts, first)
    assert found[0][0].measurement.attributes == (0, 1)


def test_the_candidates_are_inside_the_wanted_tables() -> None:
    workload = Workload((2, 3, 400, 400), ((0, 1), (1, 2, 3)))
    inside = {(0,), (1,), (2,), (3,), (0, 1), (1, 2), (1, 3), (2, 3)}
    assert 3 * 400 * 400 > synthetic_selection.MAX_TREE_CELLS >= 400 * 400 * 0.8
    assert set(candidate_tables(workload)) == {
        each for each in inside if prod(workload.shape(each)) <= synthetic_selection.MAX_TREE_CELLS
    }
    weights = way(sizes=(2, 2, 3), order=3).weights
    assert max(weights.values()) == weights[0, 1, 2] == WEIGHT_STEPS
    assert weights[0, 1] == WEIGHT_STEPS * 2 // 3 and weights[0,] == WEIGHT_STEPS // 3


def test_a_model_stays_small(monkeypatch) -> None:
    rounds = way(sizes=(50, 50, 50), order=3)
    known: list[tuple[int, ...]] = [(0,), (1,), (2,)]
    monkeypatch.setattr(synthetic_selection, "MAX_TREE_CELLS", 6_000)
    assert rounds.small_enough(known, Fraction(1, 10)) == known
    assert rounds.small_enough(known, Fraction(1)) == [*known, (0, 1), (0, 2), (1, 2)]
    assert rounds.small_enough([*known, (0, 1, 2)], Fraction(0)) == list(rounds.counted)


def test_many_tables_are_chosen_as_a_tree() -> None:
    many = Workload.up_to((2,) * 70, 2)
    share = oracle.share(1)
    assert isinstance(MarginalSelection.read(True, None).way(share, many, 1), SpanningTree)  # type: ignore[union-attr]
    few = Workload.up_to((2,) * 5, 2)
    assert isinstance(MarginalSelection.read(True, None).way(share, few, 1), Adaptive)  # type: ignore[union-attr]
    with refused("choose"):
        MarginalSelection.read("adaptive", None).way(share, many, 1)  # type: ignore[union-attr]
    assert synthetic_selection.too_many(Workload((2,) * 20, (tuple(range(20)),)))


# ---- models


def test_a_junction_tree_equals_the_joint_table() -> None:
    """Every margin, against the sum over all cells."""
    rng = np.random.default_rng(0)
    for _ in range(80):
        columns = int(rng.integers(1, 6))
        sizes = tuple(int(each) for each in rng.integers(1, 4, columns))
        sets = [
            tuple(sorted(rng.choice(columns, rng.integers(1, min(3, columns) + 1), replace=False)))
            for _ in range(int(rng.integers(0, 5)))
        ]
        tree = JunctionTree.of(sizes, sets)
        logarithms = [np.zeros(tree.shape(at)) for at in range(len(tree.tables))]
        joint = np.ones(sizes)
        for each in sets:
            table = rng.normal(size=[sizes[at] for at in each])
            at = tree.smallest(each)
            assert at is not None
            logarithms[at] += table.reshape(tree.shape_within(each, at))
            joint = joint * np.exp(
                table.reshape([sizes[at] if at in each else 1 for at in range(columns)])
            )
        joint /= joint.sum()
        wanted = [each for n in range(columns + 1) for each in combinations(range(columns), n)]
        found = tree.margins(tree.conditionals(logarithms), wanted)
        for each in wanted:
            truth = joint.sum(axis=tuple(at for at in range(columns) if at not in each))
            assert found[each].shape == truth.shape
            assert np.allclose(found[each], truth, rtol=1e-9, atol=1e-12), (sizes, sets, each)


def test_an_estimate_agrees_with_what_was_measured() -> None:
    """A tree of exact pairs: its model has these margins, and independence given what they share;
    a table that was measured twice counts with both."""
    rng = np.random.default_rng(4)
    joint = rng.integers(1, 40, (2, 3)) / 1.0
    other = rng.integers(1, 40, (3, 2)) / 1.0
    other *= (joint.sum(0) / other.sum(1))[:, None]
    known: Known = {
        (0, 1): AveragedMarginal(joint - 1, 0.5).and_then(joint + 1, 2.0),
        (1, 2): AveragedMarginal(other, 1.0),
    }
    found = MarginalEstimate((2, 3, 2), known).tables([(0, 1), (1, 2), (0, 1, 2)])
    assert np.allclose(found[0, 1], joint, atol=0.2) and np.allclose(found[1, 2], other, atol=0.2)
    between = found[0, 1][:, :, None] * found[1, 2][None] / found[0, 1].sum(0)[None, :, None]
    assert np.allclose(found[0, 1, 2], between, rtol=1e-6)


def test_an_estimate_of_noise_alone_is_a_number() -> None:
    """Totals below 0, cells of huge noise: every score stays a whole number."""
    rng = np.random.default_rng(6)
    for size in (1e3, 1e15):
        known: Known = {
            each: AveragedMarginal(rng.normal(0, size, [3] * len(each)), size**-2.0)
            for each in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2))
        }
        found = MarginalEstimate((3, 3, 3), known).tables([(0, 1, 2), (0,)])
        assert all(np.isfinite(each).all() and (each >= 0).all() for each in found.values())
        rounds = way(sizes=(3, 3, 3), order=3)
        score = rounds.score(np.zeros((3, 3, 3), int), found[0, 1, 2], (0, 1, 2), 1)
        assert abs(score) < 2**62


@pytest.mark.parametrize("pairs", [((0, 1), (1, 2), (2, 3)), ((0, 1), (0, 2), (0, 3))])
def test_drawn_rows_are_near_to_their_model(pairs) -> None:
    """Within one row in every cell, given the separator; tables across the tree, a chain or a star,
    are as near as those of as many independent rows, to within the spread of these."""
    rng = np.random.default_rng(7)
    sizes, length = (3, 4, 3, 2), 6_000
    potentials = {each: rng.normal(size=[sizes[at] for at in each]) for each in pairs}
    tree, conditionals = fit_potentials(sizes, potentials)
    drawn = draw_rows(tree, conditionals, length, rng)
    assert {len(each) for each in drawn} == {length}
    counts = counted([list(zip(*(each.tolist() for each in drawn), strict=True))], sizes, SETS)
    for at, given in enumerate(conditionals):
        found = counts[tree.tables[at]]
        common = found.sum(axis=tree.others(tree.separators[at], at), keepdims=True)
        assert np.abs(found - given * common).max() <= 1 + 1e-6
    across = [each for each in SETS if tree.smallest(each) is None]
    shares = tree.margins(conditionals, [*across, SETS[-1]])
    sample = rng.multinomial(length, shares[SETS[-1]].ravel(), 200).reshape(200, *sizes)
    for each in across:
        ours = np.abs(counts[each] - length * shares[each]).sum()
        others = tuple(1 + at for at in range(4) if at not in each)
        far = np.abs(sample.sum(axis=others) - length * shares[each]).reshape(200, -1).sum(axis=1)
        assert ours <= far.max()


def test_rows_of_a_large_star_tie_nothing_together() -> None:
    """Columns that have one in common and nothing else: their tables are as near to the model as
    those of a sample, whose mean distance is Σ √(2np(1−p)/π)."""
    rng = np.random.default_rng(3)
    sizes, length = (2, *[9] * 11), 4_000
    potentials: dict[tuple[int, ...], np.ndarray] = {
        (0, at): rng.normal(size=(2, 9)) for at in range(1, 12)
    }
    tree, conditionals = fit_potentials(sizes, potentials)
    drawn = draw_rows(tree, conditionals, length, rng)
    wanted = list(combinations(range(1, 12), 3))
    for each, shares in tree.margins(conditionals, wanted).items():
        codes = np.ravel_multi_index([drawn[at] for at in each], shares.shape)
        found = np.bincount(codes, minlength=shares.size).reshape(shares.shape)
        sampled = np.sqrt(2 * length * shares * (1 - shares) / np.pi).sum()
        assert np.abs(found - length * shares).sum() <= 1.2 * sampled, each


# ---- asking


def test_sets_can_be_what_rounds_should_be_good_at(tmp_path) -> None:
    data = oracle.table(
        {"who": [1], "one": ["a"], "two": ["a"], "three": ["a"]},
        {name: ["a", "b"] for name in ("one", "two", "three")},
    )
    query = Synthetic(
        columns=["one", "two", "three"],
        path=str(tmp_path / "x.parquet"),
        method="marginals",
        sets=[["one", "two"], ["three"]],
        choose=True,
    )
    learned = query.estimate_cost(data, oracle.share(1)).details
    assert learned.way.name == "adaptive"
    assert set(learned.way.counted) == {(0,), (1,), (2,), (0, 1)}
    assert "3 columns and tables chosen in up to" in learned.words()
    assert synthetic_selection.SELECTION_STRATEGIES.keys() == {"adaptive", "tree"}
