"""What a query costs: sensitivity over scale, never more than its share, exact where it can be."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

import release_oracle as oracle
import whosin as wi
from amounts import some
from refusals import refused
from whosin import release
from whosin.distortion import PerRow
from whosin.ledger import encoding
from whosin.ledger.budget import NEIGHBOUR_RELATIONS
from whosin.ledger.encoding import concentrated_budget
from whosin.noise import GaussianNoise, LaplaceNoise
from whosin.release.budget_allocation import RemainingBudget, estimate_batch_cost, split_budget
from whosin.release.cost import NoisyAggregate, Share
from whosin.release.queries.keys import _key_delta, _key_threshold
from whosin.release.queries.synthetic import prior_response, uniform_response

DOMAINS = {"ward": ["A", "B", "C"], "x": release.Range(-2, 3, step="1/10", edges=(-2, 0, 3))}
LINEAR = [
    release.Count(),
    release.Count(by="ward", max_groups=2),
    release.Rows(max_rows_per_group=3),
    release.Rows(by="ward", max_rows_per_group=3, max_groups=2),
    release.Sum(column="x"),
    release.Sum(column="x", by="ward", max_rows_per_group=2, max_groups=3),
    release.Mean(column="x", max_rows_per_group=2),
    release.Variance(column="x", by="ward"),
    release.Histogram(column="x", by="ward", max_groups=2),
]
SELECTIONS = [release.Quantile(column="x", points=11), release.Top(by="ward", k=2)]


@pytest.fixture(scope="module")
def data() -> wi.Table:
    return oracle.table({"who": ["a", "b"], "ward": ["A", "B"], "x": [1.0, 2.0]}, DOMAINS)


def named(query: release.Query) -> str:
    return f"{query.kind}-{getattr(query, 'by', '')}"


def priced(estimate) -> list[NoisyAggregate]:
    """The parts that are paid for: of two paired ones the first, whose sensitivity is both's."""
    assert len({each.noise for each in estimate.parts if each.part.paired}) <= 1
    return [each for each in estimate.parts if not each.part.paired or each is estimate.parts[0]]


@pytest.mark.parametrize("split", ["weights", "optimal"])
def test_an_estimate_says_the_cost_that_its_answer_has(data, tmp_path, split) -> None:
    queries = [
        release.Count(),
        release.Count(by="x" if "x" in data.domains else next(iter(data.domains))),
    ]
    with wi.Session(data, wi.calibrate(wi.Epsilon(1)), tmp_path / "a.db", share="1/2") as session:
        foreseen = [each.cost for each in session.dry_run(queries, split=split)]
        assert foreseen == [each.cost for each in session.release(queries, split=split)]


@pytest.mark.parametrize("relation", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize("query", LINEAR, ids=named)
def test_a_sum_costs_its_sensitivity_over_its_scale(data, query, relation) -> None:
    epsilon = Fraction(1, 7)
    estimate = query.estimate_cost(data, oracle.share(epsilon, relation=relation))
    bounds, grouped = query.bounds(data), bool(query.cells(data).columns)
    for each in NEIGHBOUR_RELATIONS:
        parts = [
            Fraction(noisy.part.l1_sensitivity(each, bounds, grouped)) / noisy.noise.width
            for noisy in priced(estimate)
        ]
        assert estimate.spend.cost(each).epsilon == math.ceil(sum(parts) * encoding.EPSILON_UNITS)
    assert sum(parts if relation == "replace" else [epsilon]) == epsilon
    assert estimate.spend.cost(relation).epsilon == math.ceil(epsilon * encoding.EPSILON_UNITS)
    assert len({noisy.part.l1_sensitivity(relation, bounds, grouped) / noisy.noise.width
                for noisy in estimate.parts}) == 1, "an even split"  # fmt: skip


@pytest.mark.parametrize("relation", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize("query", LINEAR, ids=named)
def test_gaussian_noise_costs_its_rho(data, query, relation) -> None:
    rho = Fraction(1, 90)
    estimate = query.estimate_cost(data, oracle.share(0, rho=rho, relation=relation))
    bounds, grouped = query.bounds(data), bool(query.cells(data).columns)
    for each in NEIGHBOUR_RELATIONS:
        total = sum(
            Fraction(noisy.part.squared_l2_sensitivity(each, bounds, grouped))
            / (2 * noisy.noise.width)
            for noisy in priced(estimate)
        )
        cost = estimate.spend.cost(each)
        assert cost.rho == math.ceil(total * encoding.EPSILON_UNITS)
        assert cost.epsilon == encoding.INFINITE_UNITS
        if each == relation:
            assert rho * (1 - Fraction(1, 10**12)) < total <= rho


@pytest.mark.parametrize("relation", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize("query", SELECTIONS, ids=named)
@pytest.mark.parametrize("epsilon", [Fraction(333_333, 10**6), Fraction(1, 10**6), Fraction(17)])
def test_a_selection_stays_within_its_share_and_uses_it(data, query, relation, epsilon) -> None:
    estimate = query.estimate_cost(data, oracle.share(epsilon, relation=relation))
    cost = Fraction(estimate.spend.cost(relation).epsilon, encoding.EPSILON_UNITS)
    assert epsilon * (1 - Fraction(1, 10**9)) - Fraction(1, 10**11) <= cost <= epsilon


@pytest.mark.parametrize("relation", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize("query", SELECTIONS, ids=named)
@pytest.mark.parametrize("rho", [Fraction(226, 10**4), Fraction(1, 10**6), Fraction(17)])
def test_a_selection_is_priced_in_rho(data, query, relation, rho) -> None:
    """Its ρ is ε²/8 for the ε of each of its selections, k in all, and uses all of its share."""
    estimate = query.estimate_cost(data, oracle.share(0, rho=rho, relation=relation))
    cost, number = estimate.spend.cost(relation), getattr(query, "k", 1)
    assert rho * (1 - Fraction(1, 10**9)) - Fraction(1, 10**11) <= Fraction(cost.rho, 10**12) <= rho
    each = cost.epsilon / 10**12 / number
    assert number * each**2 / 8 == pytest.approx(float(rho), rel=1e-5)


def test_a_selection_under_a_gaussian_plan_has_half_the_noise_it_had(data) -> None:
    """At (1, 10^-6) a median had 4.7 times the noise of the pure one; now it has 2.4 times that."""
    budget = concentrated_budget(10**12, Fraction(1, 2 * 10**6))
    purse = RemainingBudget(oracle.PLANS["add-remove"], 10**12, budget, 0)
    query = release.Median(column="x")
    scales = {}
    for noise in ("laplace", "gaussian"):
        (given,) = split_budget([query], data, purse, "weights", noise)
        scales[noise] = query.estimate_cost(data, given).details.scale
    assert 2.2 < scales["gaussian"] / scales["laplace"] < 2.5


def test_where_laplace_noise_would_be_less_a_caution_says_so(data) -> None:
    """And how much less, as asking for it shows."""
    plan = wi.calibrate(wi.Epsilon(1), delta=1e-6)
    wide = release.Count(by="ward", max_groups=4)
    batch = [release.Median(column="x", max_rows_per_group=1), release.Top(by="ward", k=1), wide]
    batch += [release.Count(), release.Top(by="ward", k=3)]
    estimates = {
        noise: estimate_batch_cost(data, plan, batch, noise=noise)
        for noise in ("laplace", "gaussian")
    }
    assert all(
        each.about != "noise" for estimate in estimates["laplace"] for each in estimate.cautions
    )
    for own, other in zip(estimates["gaussian"], estimates["laplace"], strict=True):
        said = [each.times for each in own.cautions if each.about == "noise"]
        if own.query.selects:
            ratio = float(own.details.scale / other.details.scale)
        else:
            ratio = (own.parts[0].noise.variance / other.parts[0].noise.variance) ** 0.5
        assert said == ([pytest.approx(ratio, rel=1e-6)] if ratio > 1.1 else [])
        assert all(each.about != "delta" for each in own.cautions), "ρ needs the δ"
    told = estimate_batch_cost(data, plan, batch[:1], noise="gaussian")[0].cautions[-1]
    assert told.about == "noise" and told.words.startswith('noise = "laplace" would give this 2.3')


def test_a_batch_stays_within_the_budget_whatever_the_weights(data) -> None:
    rng = random.Random(3)
    for relation, noise in itertools.product(NEIGHBOUR_RELATIONS, ("laplace", "gaussian")):
        purse = RemainingBudget(oracle.PLANS[relation], 10**12 - 7, 10**10 + 3, 10**11)
        for _ in range(3):
            batch = [
                type(query)(**{**vars(query), "weight": Fraction(rng.randint(1, 99), 7)})
                for query in rng.sample(LINEAR + SELECTIONS, 4)
            ]
            batch.append(release.Keys(column="ward", weight="0.3"))
            given = split_budget(batch, data, purse, "weights", noise)
            estimates = [
                query.estimate_cost(data, each) for query, each in zip(batch, given, strict=True)
            ]
            spent = [estimate.spend.cost(relation) for estimate in estimates]
            assert sum(cost.delta for cost in spent) <= purse.delta
            if noise == "laplace":
                assert purse.epsilon - 100 <= sum(cost.epsilon for cost in spent) <= purse.epsilon
            else:
                assert purse.rho * 0.999 <= sum(cost.rho for cost in spent) <= purse.rho


def test_laplace_noise_after_gaussian_noise_counts_by_its_rho(data) -> None:
    purse = RemainingBudget(oracle.PLANS["replace"], 0, 10**10, 0)
    given = split_budget([release.Count(), release.Rows()], data, purse, "weights", "laplace")
    spent = [
        q.estimate_cost(data, s)
        for q, s in zip([release.Count(), release.Rows()], given, strict=True)
    ]
    assert 0 < sum(estimate.spend.cost("replace").rho for estimate in spent) <= purse.rho


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [10**10, 10**12, 2 * 10**13])
def test_relative_errors_come_out_equal(data, noise, epsilon) -> None:
    batch: list[Any] = [
        release.Count(magnitude=10_000),
        release.Rows(max_rows_per_group=4, magnitude=300),
        release.Sum(column="x", max_rows_per_group=2, magnitude=70),
        release.Count(by="ward", max_groups=2, magnitude=2_000),
    ]
    purse = RemainingBudget(oracle.PLANS["add-remove"], epsilon, epsilon, 0)
    given = split_budget(batch, data, purse, "relative-error", noise)
    relative = [
        query.estimate_cost(data, each).error / float(query.magnitude)
        for query, each in zip(batch, given, strict=True)
    ]
    # shares are whole units: 10^-12 of ε or ρ
    assert max(relative) / min(relative) < 1 + 1e-4
    pot = sum(each.rho if noise == "gaussian" else each.epsilon for each in given)
    assert Fraction(epsilon - 10, 10**12) <= pot <= Fraction(epsilon, 10**12)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_relative_errors_leave_means_what_their_weight_gives_them(data, noise) -> None:
    batch: list[Any] = [
        release.Count(magnitude=10_000),
        release.Mean(column="x", weight=2),
        release.Count(by="ward", max_groups=2, magnitude=500),
        release.Median(column="x"),
    ]
    purse = RemainingBudget(oracle.PLANS["add-remove"], 10**12, 10**12, 0)
    given = split_budget(batch, data, purse, "relative-error", noise)
    plain = split_budget(batch, data, purse, "weights", noise)
    for at in (1, 3):
        kept = [float(each[at].rho or each[at].epsilon) for each in (given, plain)]
        assert kept[0] == pytest.approx(kept[1], rel=1e-9)
    first, second = (batch[at].estimate_cost(data, given[at]).error for at in (0, 2))
    assert first / 10_000 == pytest.approx(second / 500, rel=1e-4)
    halves = [
        sum(float(each.rho or each.epsilon) for each in listed[::2]) for listed in (given, plain)
    ]
    assert halves[0] == pytest.approx(halves[1])


def test_relative_errors_need_magnitudes_and_an_error_that_is_known(data) -> None:
    purse = RemainingBudget(oracle.PLANS["add-remove"], 10**12, 0, 0)
    with refused("magnitude"):
        split_budget(
            [release.Count(), release.Mean(column="x")], data, purse, "relative-error", "laplace"
        )
    query = release.Mean(column="x", magnitude=5)
    with refused("split"):
        split_budget([query], data, purse, "relative-error", "laplace")


@pytest.mark.parametrize("scale", [Fraction(1, 900), Fraction(1, 3), 1, 7, 10**4, 10**15, 2**52])
def test_intervals_hold_95_percent_of_the_noise_and_hardly_more(scale) -> None:
    noise = LaplaceNoise(Fraction(scale))
    within = noise.quantile(0.95)

    def outside(width: int) -> float:  # Pr[|X| > width]
        a = math.exp(-1 / float(scale))
        return 2 * math.exp(-(width + 1) / float(scale)) / (1 + a)

    assert noise.tail(within) == pytest.approx(outside(within), rel=1e-9)
    assert outside(within) <= 0.05 * (1 + 1e-12)
    assert within == 0 or outside(within - 1) > 0.05 * (1 - 1e-9)
    if scale == 1:
        spread = [abs(k) * math.tanh(0.5) * math.exp(-abs(k)) for k in range(-60, 61)]
        assert noise.mean_error == pytest.approx(math.fsum(spread))


@pytest.mark.parametrize("sigma", [Fraction(1, 5), 1, Fraction(29, 10), 40])
def test_gaussian_intervals_hold_95_percent(sigma) -> None:
    within = GaussianNoise(Fraction(sigma) ** 2).quantile(0.95)
    weights = {k: math.exp(-(k**2) / (2 * float(sigma) ** 2)) for k in range(-600, 601)}
    inside = math.fsum(weight for k, weight in weights.items() if abs(k) <= within)
    assert 0.95 <= inside / math.fsum(weights.values()) <= max(0.98, 0.95 + 1 / float(sigma))


# Thresholding: the release as a distribution over answers, in exact rationals of a = e^(−1/scale).


def shown_counts(count: int, a: Fraction, threshold: int, top: int) -> dict:
    """What is shown of one key: None, or its noisy count; all from `top` up are one answer,
    which costs nothing where both counts are below it: their ratio is the same for all of them."""
    weight = (1 - a) / (1 + a)
    if count == 0:
        return {None: Fraction(1)}
    found: dict[int | None, Fraction] = {
        noisy: weight * a ** abs(noisy - count) for noisy in range(threshold, top)
    }
    found[top] = a ** (top - count) / (1 + a)
    found[None] = 1 - sum(found.values(), Fraction(0))
    return found


def divergence(first: dict, second: dict, ratio: Fraction, a: Fraction, threshold: int) -> Fraction:
    """The hockey-stick divergence of the thresholded counts of two tables, by enumeration."""
    keys = sorted(first.keys() | second.keys())
    top = max(threshold, 0, *first.values(), *second.values()) + 1
    spread = [
        (shown_counts(first.get(k, 0), a, threshold, top),
         shown_counts(second.get(k, 0), a, threshold, top))
        for k in keys
    ]  # fmt: skip
    total = Fraction(0)
    answers = itertools.product(*(sorted({*p, *q}, key=str) for p, q in spread))
    for answer in answers:
        pairs = list(zip(answer, spread, strict=True))
        one = math.prod((p.get(x, Fraction(0)) for x, (p, _) in pairs), start=Fraction(1))
        other = math.prod((q.get(x, Fraction(0)) for x, (_, q) in pairs), start=Fraction(1))
        total += max(Fraction(0), one - ratio * other)
    return total


def neighbours(groups: int, relation: str):
    """Tables as counts by key: others' counts, and what one privacy unit, or two, can add."""
    keys = range(2 * groups)
    holdings = [c for n in range(groups + 1) for c in itertools.combinations(keys, n)]
    for others in itertools.product((0, 1, 2), repeat=len(keys)):
        if groups == 2 and sum(others) > 1:
            continue
        for one, other in itertools.product(holdings, holdings):
            if relation == "add-remove" and one and other:
                continue
            tables = []
            for held in (one, other):
                counts = {key: count + (key in held) for key, count in enumerate(others)}
                tables.append({key: count for key, count in counts.items() if count})
            yield tables[0], tables[1]


@pytest.mark.parametrize("relation", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize(
    ("groups", "a", "threshold"),
    some(
        [
            (1, Fraction(1, 2), 1),
            (1, Fraction(9, 10), 1),
            (1, Fraction(9, 10), 3),
            (1, Fraction(1, 3), 4),
            (2, Fraction(1, 2), 2),
            (2, Fraction(9, 10), 2),
        ],
        3,
        several=True,
    ),
)
def test_thresholding_fails_no_more_often_than_is_charged(relation, groups, a, threshold) -> None:
    """δ = g·a^(τ−1)/(1+a) at ε = Δ/scale bounds every pair; where g = 1 it is attained."""
    ratio = (1 / a) ** (groups * (2 if relation == "replace" else 1))
    claimed = groups * a ** (threshold - 1) / (1 + a)
    worst = max(
        divergence(first, second, ratio, a, threshold)
        for first, second in neighbours(groups, relation)
    )
    shown = claimed / groups
    assert worst == 1 - (1 - shown) ** groups <= claimed


def test_the_threshold_is_the_least_that_the_share_allows() -> None:
    for scale, groups, delta in itertools.product(
        (Fraction(1, 50), Fraction(1, 3), Fraction(2), Fraction(40), Fraction(10**6)),
        (1, 5),
        (Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**15)),
    ):
        found = _key_threshold(scale, groups, delta)
        assert _key_delta(scale, groups, found) <= delta
        assert found == 1 or _key_delta(scale, groups, found - 1) > delta
        a = math.exp(-1 / float(scale))
        truth = groups * math.exp(-(found - 1) / float(scale)) / (1 + a)
        assert float(_key_delta(scale, groups, found)) == pytest.approx(truth, rel=1e-9)


def test_keys_are_charged_their_delta(data) -> None:
    for relation in NEIGHBOUR_RELATIONS:
        query = release.Keys(column="ward", max_groups=2)
        estimate = query.estimate_cost(
            data, oracle.share("1/2", delta=Fraction(1, 10**6), relation=relation)
        )
        scale, threshold = estimate.parts[0].noise.width, estimate.details
        assert scale == (8 if relation == "replace" else 4)
        failing = 2 * math.exp(-(threshold - 1) / scale) / (1 + math.exp(-1 / scale))
        for each in NEIGHBOUR_RELATIONS:
            charged = estimate.spend.cost(each)
            assert charged.delta == pytest.approx(failing * encoding.DELTA_UNITS, rel=1e-9)
            factor = 4 if each == "replace" else 2
            assert Fraction(charged.epsilon, encoding.EPSILON_UNITS) == factor / scale


# Randomised rows: the level that the exact engine measures is what is charged.


@pytest.mark.parametrize("cells", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), 1, Fraction(5, 2)])
def test_a_uniform_response_is_charged_what_it_measures(cells, epsilon) -> None:
    response = uniform_response(cells, Fraction(epsilon))
    other = (1 - response.kept) / (cells - 1)
    matrix = tuple(
        tuple(response.kept if row == column else other for column in range(cells))
        for row in range(cells)
    )
    measured = wi.notions.DifferentialPrivacy("replace").measure(
        PerRow((matrix, matrix)).channel(wi.Records(rows=2, values=cells))
    )
    assert response.epsilon == pytest.approx(measured.value, abs=1e-15)
    assert measured.value <= response.epsilon <= epsilon
    assert response.epsilon > float(epsilon) - 1e-9


def matrix_of(response) -> list[list[Fraction]]:
    """Pr[answer given cell], from the words of T21: randomised response among the shown cells,
    anything among them for the others."""
    shown = range(response.cells) if response.outputs is None else response.outputs
    other = (1 - response.kept) / max(1, len(shown) - 1)

    def entry(row: int, column: int) -> Fraction:
        if column not in shown:
            return Fraction(0)
        if row not in shown or len(shown) == 1:
            return Fraction(1, len(shown))
        return response.kept if row == column else other

    cells = range(response.cells)
    return [[entry(row, column) for column in cells] for row in cells]


PRIORS = [
    (("0.7", "0.3"), "1.8473"),
    ((0.7, 0.3), 2),
    (("1/2", "1/4", "1/4"), 3),
    (("0.9", "0.1"), "0.5"),
    (("0.4", "0.35", "0.15", "0.1", "0"), 1),
]


@pytest.mark.parametrize(("prior", "epsilon"), PRIORS)
def test_a_response_for_a_prior_is_charged_what_it_measures(prior, epsilon) -> None:
    """And changes no more rows than E_d at the same price: it is the best for the prior (T21)."""
    response = prior_response(len(prior), prior, Fraction(epsilon))
    matrix = matrix_of(response)
    assert all(sum(row) == 1 for row in matrix)
    measured = wi.notions.DifferentialPrivacy("replace").measure(
        PerRow((tuple(map(tuple, matrix)),)).channel(wi.Records(rows=1, values=len(prior)))
    )
    assert response.epsilon == pytest.approx(measured.value, abs=1e-15)
    assert measured.value <= response.epsilon <= Fraction(epsilon)
    mean = sum(Fraction(p) * (1 - matrix[cell][cell]) for cell, p in enumerate(prior))
    assert float(response.changed) == pytest.approx(float(mean), abs=1e-15)
    assert response.changed <= uniform_response(len(prior), Fraction(epsilon)).changed
    best = wi.distortion.best(
        wi.Records(1, len(prior)),
        wi.priors.Independent([list(prior)]),
        epsilon=float(Fraction(epsilon)),
    )
    assert float(response.changed) == pytest.approx(best.distortion, abs=1e-9)


def test_a_prior_that_leans_hides_the_rare_cells() -> None:
    """(.7, .3) at the price 1.8473: .136 of the rows change, where E_i changed .269 of them. With
    one likely value the answer is that value, and costs nothing."""
    response = prior_response(2, ("0.7", "0.3"), Fraction("1.8473"))
    assert float(response.changed) == pytest.approx(0.1362, abs=1e-4)
    alone = prior_response(3, ("0.9", "0.05", "0.05"), Fraction(1))
    assert alone.outputs == (0,) and alone.epsilon == 0 and float(alone.changed) == 0.1
    assert "always the likeliest" in alone.words()


def test_responses_follow_their_matrix() -> None:
    import numpy as np

    codes = np.repeat(np.arange(5), 20_000)
    for response in (
        uniform_response(5, Fraction(1)),
        prior_response(5, ("0.1", "0.4", "0.3", "0.1", "0.1"), Fraction(1)),
        prior_response(5, ("0.96", "0.01", "0.01", "0.01", "0.01"), Fraction(1)),
    ):
        drawn, matrix = response.draw(codes).reshape(5, -1), matrix_of(response)
        for row in range(5):
            counts = np.bincount(drawn[row], minlength=5)
            for count, chance in zip(counts, matrix[row], strict=True):
                spread = (20_000 * float(chance * (1 - chance))) ** 0.5
                assert abs(count - 20_000 * float(chance)) <= 6 * spread


def test_synthetic_rows_are_charged_under_replace_only(data, tmp_path) -> None:
    query = release.Synthetic(columns=["ward"], path=str(tmp_path / "o.parquet"))
    estimate = query.estimate_cost(data, oracle.share(1, relation="replace"))
    assert estimate.spend.cost("replace").epsilon <= encoding.EPSILON_UNITS
    assert estimate.spend.cost("add-remove").epsilon == encoding.INFINITE_UNITS


def test_noise_that_cannot_be_drawn_is_refused_in_the_estimate(data) -> None:
    tiny = Share(oracle.PLANS["replace"], Fraction(1, 10**12))
    huge = oracle.table(
        {"who": ["a"], "x": [1.0]}, {"x": release.Range(0, 1)}, max_rows_per_group=10**9
    )
    with refused("noise"):
        release.Sum(column="x").estimate_cost(huge, tiny)
