"""Audits: exact coverage by enumeration, false alarms, power on the classical mechanisms."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import attacked
import whosin as wi
from amounts import cases, some
from attacked import alarms, most_alarms
from refusals import about
from whosin.audit import bounds as exact_bounds
from whosin.audit import one_run
from whosin.audit.bounds import RankTest
from whosin.audit.sampling import read_outputs
from whosin.audit.single_run import RunTest
from whosin.audit.snapshots import OUTPUT_FIELD
from whosin.errors import InvalidInput

run_module = import_module("whosin.audit.single_run")
scores_module = import_module("whosin.audit.model_scores")
counting_module = import_module("whosin.audit.bounds")


def exact_tail(hits: int, trials: int, p: Fraction) -> Fraction:
    return sum(
        (math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(hits, trials + 1)),
        Fraction(0),
    )


@pytest.mark.parametrize("error", [0.05, 0.001])
def test_clopper_pearson_is_on_the_safe_side_and_tight(error):
    for trials in (1, 7, 30):
        for hits in range(trials + 1):
            low, high = (
                side(hits, trials, error)
                for side in (exact_bounds.lower_bound, exact_bounds.upper_bound)
            )
            assert exact_tail(hits, trials, Fraction(low)) <= Fraction(error) or hits == 0
            assert exact_tail(trials - hits, trials, 1 - Fraction(high)) <= Fraction(error) or (
                hits == trials
            )
            if hits:
                assert exact_tail(hits, trials, Fraction(low * (1 + 1e-6))) > Fraction(error)


def coverage(trials: int, others: int, error: float, slope: float, delta: float) -> list[float]:
    """Exact probabilities that the bound on ε is above the truth, over a grid of truths."""
    bounds = np.array(
        [
            [
                exact_bounds.RatioTest(x, trials, y, others, error, slope, delta).bound()
                for y in range(others + 1)
            ]
            for x in range(trials + 1)
        ]
    )
    wrong = []
    for p, q in itertools.product(np.linspace(0.02, 1, 25), np.linspace(0.005, 1, 40)):
        truth = max(0.0, math.log(max(p - delta, 1e-12) / q))
        weights = np.outer(
            binom.pmf(np.arange(trials + 1), trials, p), binom.pmf(np.arange(others + 1), others, q)
        )
        wrong.append(float(weights[bounds > truth].sum()))
    return wrong


@pytest.mark.parametrize(
    ("trials", "others", "error", "slope", "delta"),
    [(10, 10, 0.05, 1.5, 0.0), (12, 8, 0.1, 3.0, 0.0), (10, 10, 0.1, 1.0, 0.1)],
)
def test_the_bound_on_a_ratio_covers_exactly(trials, others, error, slope, delta):
    wrong = coverage(trials, others, error, slope, delta)
    assert max(wrong) <= error
    assert max(wrong) > error / 4, "the bound is uselessly wide"


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 25),
    st.integers(1, 25),
    st.floats(0.5, 4),
    st.floats(0.01, 0.99),
    st.floats(0.01, 0.99),
    st.data(),
)
def test_the_tail_of_the_statistic(trials, others, slope, p, q, data):
    x, y = data.draw(st.integers(0, trials)), data.draw(st.integers(0, others))
    test = exact_bounds.RatioTest(x, trials, y, others, 0.05, slope)
    found = test._tail(np.array([p]), np.array([q]))[0]
    truth = sum(
        binom.pmf(a, trials, p) * binom.pmf(b, others, q)
        for a in range(trials + 1)
        for b in range(others + 1)
        if a - slope * b >= x - slope * y - 1e-9
    )
    assert truth - 1e-12 <= found <= truth + 1e-6


def test_the_joint_bound_beats_two_intervals():
    for x, y, n, slope in ((38_600, 35_700, 750_000, 1.07), (100, 60, 7_500, 1.4)):
        joint = exact_bounds.RatioTest(x, n, y, n, 0.05, slope).bound()
        apart = math.log(
            exact_bounds.lower_bound(x, n, 0.025) / exact_bounds.upper_bound(y, n, 0.025)
        )
        assert apart < joint < math.log(x / y)


def test_one_run_sees_a_leak_and_tells_the_sides_apart():
    rng = np.random.default_rng(3)
    inside = rng.random(1000) < 0.5
    told = np.where(rng.random(1000) < 0.9, inside, ~inside) + rng.random(1000) / 10
    found = one_run(inside, told)
    assert 1.6 < found.epsilon < math.log(9)
    assert found.epsilon >= found.log_ratio > 1.2
    assert 0 < one_run(inside, told, delta=1e-4).epsilon < found.epsilon
    # "out" is always right, "in" no better than a coin: ε is large, and r is at most 2.
    never = np.where(inside, 1.0, np.where(rng.random(1000) < 0.5, 0.0, 1.0)) + rng.random(1000) / 9
    one_sided = one_run(inside, never)
    assert one_sided.epsilon > 1 and one_sided.ratio < 2


FEW = 12  # the soak has a thousand


@pytest.fixture
def only_at(monkeypatch):
    """Decide only whether a bound is above the truth: the same alarms, in a tenth of the time.

    Rejection is monotone in ε, so the bound is above the truth exactly where the truth itself is
    rejected. `careless` multiplies the error.
    """

    def patch(truth: float, careless: float = 1.0) -> None:
        class Above(exact_bounds.RatioTest):
            def __init__(self, x, n, y, m, error, slope, delta):
                super().__init__(x, n, y, m, careless * error, slope, delta)

            def bound(self):
                return math.nextafter(truth, 9) if self.hits and self.rejects(truth) else 0.0

        class Guessed(RunTest):
            @classmethod
            def of(cls, guesses, canaries, error, delta, rates, rate):
                return super().of(guesses, canaries, error * careless, delta, rates, rate)

            def bound(self, error):
                return math.nextafter(truth, 9) if self.p_value(truth) <= careless * error else 0.0

        class Ranked(RankTest):
            def bound(self, error):
                rejected = self.p_value(truth) <= careless * error
                return math.nextafter(truth, 9) if rejected else 0.0

        monkeypatch.setattr(counting_module, "RatioTest", Above)
        monkeypatch.setattr(run_module, "RunTest", Guessed)
        monkeypatch.setattr(scores_module, "RankTest", Ranked)

    return patch


def respond(truth):
    return lambda run: wi.audit.two_worlds(attacked.response(truth), 1, 0, 600, seed=run).epsilon


def search_pairs(truth):
    def draw(value, size, rng):
        return attacked.response(truth)(int(value > 0), size, rng)

    pairs = [(value, 0) for value in range(1, 5)]
    return lambda run: wi.audit.search(draw, pairs, 900, seed=run).epsilon


def score_people(truth):
    rng = np.random.default_rng(11)

    def audit(_run):
        members, others = rng.laplace(truth, 1, 200), rng.laplace(0, 1, 200)
        return wi.audit.scores(members, others).epsilon

    return audit


def run_once(truth):
    rng = np.random.default_rng(12)
    keep = 1 / (1 + math.exp(-truth))

    def audit(_run):
        inside = rng.random(100) < 0.5
        told = np.where(rng.random(100) < keep, inside, ~inside)
        try:
            return one_run(inside, told + rng.random(100) / 10).epsilon
        except InvalidInput:  # coins that do not look fair are refused, now and then
            return 0.0

    return audit


ENTRIES = {
    "two worlds": respond,
    "search": search_pairs,
    "scores": score_people,
    "one run": run_once,
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_false_alarms(entry, truth, only_at):
    only_at(truth)
    assert alarms(ENTRIES[entry](truth), truth, FEW) <= most_alarms(FEW)


@pytest.mark.parametrize(
    ("entry", "careless", "runs"),
    some(
        [("search", 16, 30), ("scores", 8, 150), ("two worlds", 16, 45), ("one run", 24, 60)],
        2,
        several=True,
    ),
)
def test_audits_that_do_not_pay_are_caught(entry, careless, runs, only_at):
    """The same test fails when bounds are taken at many times the error; of one run, which spends
    half of it on "in" guesses that hold at every possible rate, at more."""
    only_at(1.0, careless=careless)
    assert alarms(ENTRIES[entry](1.0), 1.0, runs) > most_alarms(runs)


@pytest.mark.soak
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("truth", [0.0, 0.3, 1.0])
def test_false_alarms_over_a_thousand_runs(entry, truth):
    """Full size, with the bounds that users get: within the stated level (one in a million)."""
    assert alarms(ENTRIES[entry](truth), truth, 1000) <= most_alarms(1000)


def test_the_best_of_many_thresholds_uncorrected_is_no_audit():
    """What a public tool does: it reports leakage where there is none, far too often."""
    rng = np.random.default_rng(5)

    def careless(_run):
        members, others = rng.normal(size=400), rng.normal(size=400)
        for level in np.quantile(members, np.linspace(0.03, 0.97, 48)):
            hits = int((members >= level).sum()), int((others >= level).sum())
            test = exact_bounds.RatioTest(hits[0], 400, hits[1], 400, 0.05)
            if test.suggests(0.0):
                return 1.0
        return 0.0

    assert alarms(careless, 0.0, 40) > most_alarms(40)


@pytest.mark.parametrize(
    ("mechanism", "inputs", "least", "most"),
    [
        (attacked.laplace, (1.0, 0.0), 0.09, 0.1),
        pytest.param(
            attacked.noisy_max,
            (np.eye(6)[0], 1 - np.eye(6)[0]),
            0.0873,
            0.1,
            marks=pytest.mark.soak,
        ),
        pytest.param(attacked.svt1, attacked.step(7, 1), 0.06, 0.1, marks=pytest.mark.soak),
        pytest.param(attacked.svt4, attacked.step(10, 5), 0.105, 0.175, marks=pytest.mark.soak),
        pytest.param(attacked.svt3, attacked.step(10, 5), 0.105, 1.0, marks=pytest.mark.soak),
    ],
    ids=["laplace", "noisy max", "svt1", "svt4", "svt3"],
)
def test_a_million_samples_of_the_classical_mechanisms(mechanism, inputs, least, most):
    found = wi.audit.two_worlds(mechanism, *inputs, 1_000_000, seed=3)
    assert least <= found.epsilon <= most
    # The witness can be re-run, on draws of one's own.
    rng = np.random.default_rng(99)
    share = [found.event.contains(mechanism(value, 100_000, rng)).mean() for value in inputs]
    count = found.counts[0]
    seen = count.with_hits / count.trials, count.without_hits / count.others
    assert share == pytest.approx(seen, abs=5 * math.sqrt(max(seen) / 100_000))


def test_few_samples_of_a_plain_leak_show_it():
    """What the search saw never in one world may come in the count: that must not cost it all."""
    keep = math.exp(4) / (math.exp(4) + 2)

    def draw(value, size, rng):
        changed = (value + rng.integers(1, 3, size)) % 3
        return np.where(rng.random(size) < keep, value, changed).astype(str)

    bounds = [wi.audit.two_worlds(draw, 0, 1, 500, seed=seed).epsilon for seed in range(8)]
    assert min(bounds) > 1.5 and sum(bound > 4 for bound in bounds) <= most_alarms(8)


def test_rare_events_are_reached():
    def draw(value, size, rng):
        return rng.random(size) < (2e-3 if value else 4e-4)

    found = wi.audit.two_worlds(draw, 1, 0, 300_000, seed=1)
    assert 1.1 < found.epsilon <= math.log(5)


@pytest.mark.parametrize("seed", some(range(3), 1))
def test_cross_check_with_the_exact_engine(seed):
    """Random finite mechanisms: below the exact level, and above 80% of it."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(5, 8.0), size=2)
    channel = wi.Channel(wi.Subsets(1), rows)
    exact = wi.notions.DifferentialPrivacy().measure(channel).value

    def draw(world, size, stream):
        return stream.choice(5, size, p=rows[world])

    found = wi.audit.two_worlds(draw, 1, 0, 1_000_000, seed=seed)
    assert 0.8 * exact <= found.epsilon <= exact
    positive = wi.notions.DifferentialPrivacy(direction="positive").measure(channel).value
    assert found.log_ratio <= positive


def test_one_direction_only():
    """Never 0 with the person, half of the time without: ε = ∞, but r = 2 (THEORY 10)."""

    def draw(value, size, rng):
        return np.where((rng.random(size) < 0.5) & (value == 0), 0, 1)

    found = wi.audit.two_worlds(draw, 1, 0, 100_000, seed=1)
    assert found.epsilon > 8 and found.event.favours == "without"
    assert 1.9 < found.gamma <= 2 and 0.65 < found.posterior(0.5) <= 2 / 3
    assert wi.beliefs.gamma(found.ratio, 0.5) <= 1.5
    turned = wi.audit.two_worlds(draw, 0, 1, 100_000, seed=1)
    assert turned.event.favours == "with" and turned.gamma > 1000


def test_delta_is_granted():
    def draw(value, size, rng):
        noise = attacked.response(1.0)(value, size, rng)
        return np.where((rng.random(size) < 0.01) & (value == 1), 7, noise)

    strict = wi.audit.two_worlds(draw, 1, 0, 50_000, seed=1)
    granted = wi.audit.two_worlds(draw, 1, 0, 50_000, delta=0.011, seed=1)
    assert strict.epsilon > 3 and 0.9 < granted.epsilon <= 1 and not granted.refutes(1)


OUTPUTS = {
    "text": lambda bits: np.where(bits == 1, "yes", "no"),
    "bits": lambda bits: bits == 1,
    "vectors": lambda bits: np.column_stack([bits, bits * 0]),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_arrays_of_every_kind(kind):
    """Outputs of one draw a call, of 25 kinds: `test_outputs`."""

    def draw(value, size, rng):
        return OUTPUTS[kind](attacked.response(1.0)(value, size, rng))

    found = wi.audit.two_worlds(draw, 1, 0, 5_000, seed=2)
    assert 0.7 < found.epsilon <= 1.0, str(found.event)


def test_one_draw_a_call():
    def with_rng(value, rng):
        return value + rng.geometric(0.5) - rng.geometric(0.5)

    rng = np.random.default_rng(1)
    found = wi.audit.two_worlds(with_rng, 1, 0, 4_000, seed=1)
    assert 0.5 < found.epsilon <= math.log(2)
    alone = wi.audit.two_worlds(lambda value: with_rng(value, rng), 1, 0, 4_000, seed=1)
    assert 0.5 < alone.epsilon <= math.log(2)

    def misleading(value, scale=1, more=2):
        return with_rng(value, rng)

    found = wi.audit.two_worlds(wi.audit.one_draw(lambda v: misleading(v)), 1, 0, 4_000, seed=1)
    assert 0.5 < found.epsilon <= math.log(2)


def test_the_search_finds_the_pair_that_leaks():
    def draw(queries, size, rng):
        return (queries + rng.laplace(0, [50, 50, 1, 50], (size, 4))).round(4)

    pairs = [(np.eye(4)[place], np.zeros(4)) for place in range(4)]
    found = wi.audit.search(draw, pairs, 12_000, seed=1)
    assert found.pattern == "pair 2" and 0.7 < found.epsilon <= 1  # by patterns: docs/audit.md


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_patterns_are_neighbours(relation):
    pairs = wi.audit.neighbouring_vectors(5, relation)
    for pair in pairs:
        change = pair.with_ - pair.without
        assert 0 < np.abs(change).max() <= 1
        assert relation == "replace" or (change >= 0).all()
    assert any((pair.with_ - pair.without == 1).all() for pair in pairs)
    assert any(np.count_nonzero(pair.with_ - pair.without) == 1 for pair in pairs)


def test_scores_and_rates():
    rng = np.random.default_rng(1)
    found = wi.audit.scores(rng.normal(1.5, 1, 3000), rng.normal(size=3000))
    assert found.epsilon > 1.5 and found.log_ratio > 1.5
    rate = found.tpr_at(0.01)
    truth = 1 - 0.5 * (1 + math.erf((2.326 - 1.5) / math.sqrt(2)))
    assert rate.low <= truth and rate.high >= rate.tpr >= rate.low > 0.1
    curve = found.curve()
    assert all(one.fpr < two.fpr for one, two in itertools.pairwise(curve))
    assert all(rate.low <= rate.tpr <= rate.high for rate in curve)
    with pytest.raises(InvalidInput, check=about("non_members", 3000)):
        found.tpr_at(1e-4)


@cases(40, 3000)
def test_the_false_positive_rate_is_surely_so_low(count):
    """The rank that `tpr_at` takes: the true rate is above the stated one in 2.5% of runs."""
    rng = np.random.default_rng(2)

    def rate_is_exceeded(_run):
        threshold = wi.audit.scores(rng.random(50), rng.random(400)).tpr_at(0.05).threshold
        return float(1 - threshold > 0.05)

    wrong = alarms(rate_is_exceeded, 0.5, count)
    assert wrong <= most_alarms(count, 0.025)


def good(value, size, rng):
    return value + rng.random(size)


def raising(value, size, rng):
    raise RuntimeError("no\nluck")


@pytest.mark.parametrize(
    ("mechanism", "field", "value"),
    [
        (raising, "mechanism", "RuntimeError"),
        (lambda v, s, r: r.random(s - 1), OUTPUT_FIELD, 83),
        (lambda v, s, r: 3.0, OUTPUT_FIELD, "float"),
        (lambda v, s, r: None, OUTPUT_FIELD, "NoneType"),
        (lambda v, s, r: "text", OUTPUT_FIELD, "str"),
        (lambda v, s, r: {}, OUTPUT_FIELD, "dict"),
        (lambda v, s, r: [object() for _ in range(s)], OUTPUT_FIELD, "object"),
        (lambda v, s, r: [("no", object())] * s, OUTPUT_FIELD, "object inside another"),
        (lambda v, s, r: np.random.default_rng(1).random(s), "mechanism", 250),
        (lambda a, b, c, d: 0, "mechanism", "<lambda>(a, b, c, d)"),
        (lambda: 0, "mechanism", "<lambda>()"),
        (3, "mechanism", "int"),
    ],
)
def test_bad_mechanisms(mechanism, field, value):
    with pytest.raises(InvalidInput, check=about(field, value)):
        wi.audit.two_worlds(mechanism, 1, 0, 2_000)


@pytest.mark.parametrize(
    "change",
    [
        {"samples": 10},
        {"samples": 1e6},
        {"samples": True},
        {"confidence": 95},
        {"confidence": 1},
        {"confidence": "x"},
        {"delta": 1},
        {"delta": -0.1},
    ],
)
def test_bad_parameters(change):
    given_ = {"samples": 1000, "confidence": 0.95, **change}
    with pytest.raises(InvalidInput, check=about(*change)):
        wi.audit.two_worlds(good, 1, 0, **given_)


def test_bad_searches_and_claims():
    for pairs, field in (
        ([], "pairs"),
        (3, "pairs"),
        ([1, 2], "pairs"),
        ([(1, 0)] * 2000, "pairs"),
        ([(1, 0)] * 300, "samples"),
    ):
        with pytest.raises(InvalidInput, check=about(field)):
            wi.audit.search(good, pairs, 1000)
    with pytest.raises(InvalidInput, check=about("relation", "swap")):
        wi.audit.neighbouring_vectors(3, "swap")
    with pytest.raises(InvalidInput, check=about("length")):
        wi.audit.neighbouring_vectors(0)
    with pytest.raises(InvalidInput, check=about("samples", 1000)):
        wi.audit.check_claim(9.0, 1000, 0.95)
    wi.audit.check_claim(1.0, 1000, 0.95)


def test_without_randomness():
    same = wi.audit.two_worlds(lambda v, s, r: np.zeros(s), 1, 0, 1000)
    assert same.epsilon == 0 and "the same in every draw" in same.notes[0]
    told = wi.audit.two_worlds(lambda v, s, r: np.full(s, v), 1, 0, 1000)
    assert told.epsilon > 5 and "no randomness" in told.notes[0]
    # As many samples as `check_claim` asks for do refute the claim when nothing is hidden.
    for claim in (3.0, 5.0):
        with pytest.raises(InvalidInput) as refused:
            wi.audit.check_claim(claim, 40, 0.95)
        needed = int(re.sub(r"\D", "", refused.value.hint))
        found = wi.audit.two_worlds(lambda v, s, r: np.full(s, v), 1, 0, needed + 40)
        assert found.refutes(claim)


@pytest.mark.parametrize("odd", [None, object(), "x", -1, 1.5, [], good])
def test_values_of_wrong_types(odd):
    """One clear message for whatever Python hands over."""
    shown = wi.audit.two_worlds(good, 1, 0, 100, seed=1)
    wrong = {
        "seed": lambda: wi.audit.two_worlds(good, 1, 0, 100, seed=odd),
        "samples": lambda: wi.audit.check_claim(1, odd, 0.95),
        "epsilon": lambda: wi.audit.check_claim(odd, 1000, 0.95),
        "to refute": lambda: shown.samples_to_refute(odd),
        "relation": lambda: wi.audit.neighbouring_vectors(3, odd),
        "progress": lambda: wi.audit.two_worlds(good, 1, 0, 100, progress=odd),
        "outputs": lambda: shown.event.contains(odd),
    }
    fine = {
        "seed": odd is None,
        "epsilon": odd == 1.5,
        "to refute": odd == 1.5,
        "progress": odd is None or odd is good,
        "outputs": isinstance(odd, list),
    }
    for name, call in wrong.items():
        if not fine.get(name, False):
            with pytest.raises(InvalidInput):
                call()


def test_bad_scores():
    values = np.random.default_rng(1).normal(size=100)
    for members, others, field in (
        (values, values, "non_members"),
        (values[:60], values[40:], "non_members"),
        ({1: 0.5, 2: 0.1}, {2: 0.3}, "non_members"),
        (values[:10], -values, "members"),
        (values, [*(-values), math.nan], "non_members"),
        ("abc", values, "members"),
        (np.ones((3, 3)), values, "members"),
    ):
        with pytest.raises(InvalidInput, check=about(field)):
            wi.audit.scores(members, others)
    with pytest.raises(InvalidInput, check=about("fpr")):
        wi.audit.scores(values, -values - 0.1).tpr_at(0)


def test_bad_runs():
    coins = np.random.default_rng(1).random(200) < 0.5
    for included, scores_, field in (
        (coins[:5], np.arange(5), "included"),
        (coins, np.arange(199), "included"),
        (np.ones(200), np.arange(200), "included"),
        (coins * 2, np.arange(200), "included"),
        (coins, [math.nan] * 200, "scores"),
    ):
        with pytest.raises(InvalidInput, check=about(field)):
            one_run(included, scores_)
    with pytest.raises(InvalidInput, check=about("prior")):
        one_run(coins, np.arange(200)).posterior(2)


def test_equal_outputs_have_equal_keys():
    whole, real = read_outputs([1, 2, 0], 3), read_outputs([1.0, 2.0, 0.0], 3)
    assert whole.keys().tolist() == real.keys().tolist()
    assert read_outputs([1.0, -0.0], 2).keys().tolist()[1] != whole.keys().tolist()[2]
    rows = read_outputs(np.array([[1, 2], [2, 1], [1, 2]]), 3).keys()
    assert rows[0] == rows[2] != rows[1]


def test_a_result_for_programs():
    found = wi.audit.two_worlds(attacked.response(1.0), 1, 0, 5_000, seed=1)
    data = found.to_dict()
    assert data["epsilon"] == found.epsilon and data["event"]["outputs"] == [1]
    assert found.refutes(0.5) and not found.refutes("0.999")
    needed = found.samples_to_refute(0.9)
    assert needed is None or needed >= 5_000
    with pytest.raises(InvalidInput, check=about("epsilon", -1)):
        found.refutes(-1)


def test_sub_commands_have_their_names_in_python():
    names = [
        command.name for command in import_module("whosin.app.cli.audit").app.registered_commands
    ]
    assert sorted(names) == ["function", "run", "samples", "scores", "synthetic", "training"]
    assert all(callable(getattr(wi.audit, name)) and name in wi.audit.__all__ for name in names)
    assert wi.audit.function is wi.audit.two_worlds and wi.audit.run is wi.audit.one_run
