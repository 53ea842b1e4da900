"""Plans: the numbers to meet, the safe side in exact arithmetic, and the engine as judge.

A plan's ε is enclosed by Arb (`exact.exp_up` is at least e^ε), and every promise is checked again
from its definition. The engine then measures what a noisy answer really leaks.
"""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product

import pytest

import oracle
import whosin as wi
from amounts import cases
from checking import fraction
from refusals import refused
from whosin import statistics, theorems
from whosin.calibration import HIPAA_TARGET, PlannedQuery, calibrate
from whosin.errors import InvalidInput, Unsupported, WhosinError
from whosin.exact import exp_up, log_down, log_up, rational
from whosin.families import (
    AnyPrior,
    AtMostKnown,
    Cliques,
    Explicit,
    Family,
    FixedProbability,
    FixedSize,
    Independent,
    OneOf,
    OneOfTwo,
    SwapOfTwo,
    Uninformed,
)
from whosin.notions import DifferentialIdentifiability, DifferentialPrivacy, PositiveMembership

ZERO, ONE = Fraction(0), Fraction(1)


def after(r: Fraction, p: Fraction) -> Fraction:
    return r * p / (r * p + 1 - p)


# The numbers of the specification.


@pytest.mark.parametrize(
    ("gamma", "low", "high", "epsilon"),
    [
        ("1.5", "0", "1", 0.405),
        ("1.5", "0.5", "0.5", 0.693),
        ("1.5", "0.4", "0.4", 0.811),
        ("1.5", "0.25", "0.75", 0.511),
        ("1.5", "0.05", "0.5", 0.432),
    ],
)
def test_numbers_to_meet(gamma, low, high, epsilon):
    """γ = 1.5 in nats, to three digits."""
    assert round(calibrate(wi.Gamma(gamma), Independent(low, high)).epsilon, 3) == epsilon


def test_more_numbers_to_meet():
    """γ = 2 at prior 1/2, and those of THEORY 11."""
    assert round(calibrate(wi.Gamma(2), Independent("0.5", "0.5")).epsilon, 4) == 1.0986
    assert round(calibrate(wi.Gamma(2), Independent()).epsilon, 3) == 0.693
    assert round(calibrate(wi.Gamma(2), Independent("0.25", "0.75")).epsilon, 3) == 0.847
    assert round(calibrate(wi.Gamma(2), Independent("0.05", "0.5")).epsilon, 3) == 0.747
    best = calibrate(wi.Gamma(2), Independent("1/3", "1/3"))
    assert best.epsilon == pytest.approx(2 * math.log(2), rel=1e-12)


def test_rho_is_a_posterior_at_one_in_m():
    """ε = ln(ρ(m−1)/(1−ρ)), replace, as DESIGN says."""
    for rho, m in product((0.3, 0.6, 0.9), (5, 20)):
        plan = calibrate(wi.Rho(rho, m))
        assert plan.epsilon == pytest.approx(math.log(rho * (m - 1) / (1 - rho)), rel=1e-12)
        assert (plan.relation, plan.baseline_epsilon) == ("replace", None)
        assert plan.family == OneOf(m)
        band = calibrate(wi.Rho(rho, m), FixedSize("0.01", "0.5"))
        assert band.epsilon == plan.epsilon
    for family in (Independent(), OneOf(6), FixedSize("0.3", "0.5"), Cliques(2)):
        with refused("family"):
            calibrate(wi.Rho("0.5", 5), family)


def test_the_preset_of_lee_and_clifton():
    """1.5% from a prior of 1%: a factor of about 1.5."""
    plan = calibrate(HIPAA_TARGET, Independent("0.001", "0.01"))
    assert plan.epsilon == pytest.approx(math.log(0.015 * 0.99 / (0.01 * 0.985)), rel=1e-12)


# The safe side.


def random_family(rng: random.Random) -> Family:
    low, high = sorted(Fraction(rng.randint(1, 99), 100) for _ in range(2))
    return rng.choice(
        [
            Independent(),
            Independent(low, high),
            Independent(0, high),
            Independent(low, 1),
            OneOfTwo(low, high),
            FixedSize(),
            FixedSize(low, high),
            SwapOfTwo(low, 1 - low) if low <= Fraction(1, 2) else SwapOfTwo(),
            OneOf(rng.randint(2, 20)),
            FixedProbability(low),
            Uninformed(),
            Cliques(rng.randint(1, 5)),
            AtMostKnown(rng.randint(0, 9), low, high),
            Explicit([wi.priors.Independent([low, high, 0]), wi.priors.Uniform()]),
        ]
    )


def random_target(rng: random.Random) -> wi.calibration.Target:
    inside = Fraction(rng.randint(1, 999), 1000)
    return rng.choice(
        [
            wi.Gamma(1 + inside * rng.choice([1, 10])),
            wi.Gamma(float(1 + inside)),
            wi.Posterior(inside),
            wi.Gain(inside),
            wi.Gain(float(inside)),
            wi.Advantage(inside),
            wi.Epsilon(float(inside * 5)),
        ]
    )


def kept(target: wi.calibration.Target, r: Fraction, low: Fraction, high: Fraction) -> bool:
    """The promise at the ends of the range, and at the peak of a gain, from the definitions."""
    match target:
        case wi.Advantage(advantage=most):
            return (r - 1) / (r + 1) <= fraction(most)
        case wi.Epsilon(epsilon=epsilon):
            return r <= exp_up(fraction(epsilon))
    points = {low, high}
    if isinstance(target, wi.Gain):
        points |= {min(max((1 - fraction(target.gain)) / 2, low), high)}
    for p in points:
        q = after(r, p)
        match target:
            case wi.Gamma(gamma=gamma):
                top, bottom = r / ((r - 1) * p + 1), (r - 1) * p + 1  # F4, limits at 0 and 1
                if max(top, bottom) > fraction(gamma):
                    return False
            case wi.Posterior(posterior=most):
                if q > fraction(most):
                    return False
            case wi.Gain(gain=most):
                if q - p > fraction(most):
                    return False
    return True


@cases(150, 1000)
def test_plans_are_on_the_safe_side(count):
    """e^(group·ε), from above, keeps the target; and ε is the largest to within 1e-9."""
    rng, made = random.Random(11), 0
    while made < count:
        target, family = random_target(rng), random_family(rng)
        try:
            plan = calibrate(target, family)
        except (InvalidInput, wi.errors.ImpossibleTarget):
            continue
        made += 1
        adversary = family.adversary()
        r = exp_up(rational(plan.epsilon) * adversary.group)
        assert kept(target, r, adversary.low, adversary.high), (target, family)
        more = exp_up(rational(plan.epsilon) * adversary.group * Fraction(1 + 1e-9))
        assert not kept(target, more, adversary.low, adversary.high), (target, family)
        worst = max(r / ((r - 1) * adversary.low + 1), (r - 1) * adversary.high + 1)
        assert worst <= Fraction(plan.gamma) <= worst * Fraction(1 + 1e-9)


def test_families_decide_the_relation():
    """D_I-like families mean add-remove, D_B-like ones replace; D_U has no ε."""
    for family in (Independent(), Uninformed(), FixedProbability(0.3), Cliques(2)):
        assert calibrate(wi.Gamma(2), family).relation == "add-remove"
    for family in (FixedSize(), SwapOfTwo(), OneOf(4)):
        assert calibrate(wi.Gamma(2), family).relation == "replace"
    with refused("family", kind=Unsupported):
        calibrate(wi.Gamma(2), AnyPrior())
    with refused("priors", kind=Unsupported):
        calibrate(wi.Gamma(2), Explicit(wi.priors.FixedSize(0.5, 1)))
    with refused("priors", kind=Unsupported):
        calibrate(wi.Gamma(2), Explicit(wi.priors.Independent([0, 1])))


# T11 and T12 against the levels of random channels.


def engine(channel: dict, n: int) -> wi.Channel:
    return wi.Channel(wi.Subsets(n), oracle.table(channel))


def channels(seed: int, count: int):
    rng = random.Random(seed)
    for _ in range(count):
        n = rng.randint(1, 3)
        yield rng, n, oracle.random_channel(rng, n, rng.randint(2, 3), rng.choice([0, 0.2]))


@cases(80, 400)
def test_t11_for_independent_priors_both_ways(count):
    """Positive ε-UDP gives exactly the γ of T11 under D_I^[a,b], and that γ gives back ε."""
    for rng, n, channel in channels(21, count):
        low, high = sorted(Fraction(rng.randint(1, 19), 20) for _ in range(2))
        ratio = oracle.largest(channel, oracle.added(n))
        epsilon = DifferentialPrivacy("add-remove", "positive").measure(engine(channel, n)).value
        level = PositiveMembership(Independent(low, high)).measure(engine(channel, n)).value
        if ratio == math.inf:
            assert level == math.inf == theorems.bounded_from_epsilon(epsilon, low, high)
            continue
        gamma = theorems.bounded_from_epsilon(epsilon, low, high)
        assert level <= Fraction(gamma) and gamma == pytest.approx(float(level), rel=1e-12)
        back = theorems.epsilon_from_bounded(level, low, high)
        assert back == pytest.approx(math.log(ratio), rel=1e-9, abs=1e-12)
        assert back <= epsilon


@cases(60, 400)
def test_t11_for_fixed_sizes_is_a_bound(count):
    """ε-BDP bounds every prior of D_B^[a,b], tried at random; with a + b = 1 it is attained."""
    for rng, n, channel in channels(22, count):
        low, high = sorted(Fraction(rng.randint(1, 19), 20) for _ in range(2))
        epsilon = DifferentialPrivacy("replace").measure(engine(channel, n)).value
        gamma = theorems.bounded_from_epsilon(epsilon, low, high)
        for _ in range(6):
            p = [Fraction(rng.randint(0, 20), 20) for _ in range(n)]
            prior = oracle.fixed_size(p, rng.randint(0, n))
            if prior is None:
                continue
            held = [sum(m for w, m in prior.items() if t in w) for t in range(n)]
            if all(b in (0, 1) or low <= b <= high for b in held):
                assert oracle.positive(prior, channel, n) <= gamma
        half = min(low, 1 - low)
        level = PositiveMembership(FixedSize(half, 1 - half)).measure(engine(channel, n))
        assert level.exact
        even = theorems.bounded_from_epsilon(epsilon, half, 1 - half)
        assert even == pytest.approx(float(level.value), rel=1e-12) or even == level.value
        assert even >= level.value


def test_t11_for_fixed_sizes_is_not_an_equivalence():
    """a = b = 1/3, one of three is in, likelihoods .5, .05, .45: 1.5-PMP, though its ε is 2.30."""
    third = Fraction(1, 3)
    likelihoods = [Fraction(1, 2), Fraction(1, 20), Fraction(9, 20)]
    channel = {world: [third, 1 - third] for world in oracle.worlds(3)}
    for t, likelihood in enumerate(likelihoods):
        channel[frozenset([t])] = [likelihood, 1 - likelihood]
    prior = oracle.fixed_size([Fraction(1, 2)] * 3, 1)
    column = {world: [row[0]] for world, row in channel.items()}
    assert oracle.positive(prior, column, 3) == Fraction(3, 2)
    assert math.log(likelihoods[0] / likelihoods[1]) == pytest.approx(2.30, abs=0.005)
    assert theorems.bounded_from_epsilon(2.302, third, third) > 2
    assert not calibrate(wi.Gamma("1.5"), FixedSize(third, third)).tight


@cases(60, 400)
def test_t12_fallbacks_hold_for_random_channels(count):
    """Without bounds ε-UDP gives e^ε under D_I and e^(2ε) under D_B; ε-BDP e^ε under D_B."""
    for _rng, n, channel in channels(23, count):
        made = engine(channel, n)
        free = PositiveMembership(Independent()).measure(made).value
        sized = PositiveMembership(FixedSize()).measure(made).value
        unbounded = theorems.fallback(DifferentialPrivacy().measure(made).value, "add-remove")
        bounded = theorems.fallback(DifferentialPrivacy("replace").measure(made).value, "replace")
        assert free <= unbounded["D_I"] and sized <= unbounded["D_B"]
        assert sized <= bounded["D_B"] and bounded["D_I"] == math.inf


def test_plans_carry_their_fallbacks():
    """e^ε and e^(2ε) rounded up, e^(kε) for groups, and nothing against D_U."""
    plan = calibrate(wi.Gamma("1.5"), Independent("0.05", "0.5"))
    found = {each.family: each.gamma for each in plan.fallback}
    assert found["D_I"] >= exp_up(plan.epsilon) and found["D_U"] == math.inf
    assert found["D_I"] == pytest.approx(math.exp(plan.epsilon), rel=1e-12)
    assert found["D_B"] == pytest.approx(math.exp(2 * plan.epsilon), rel=1e-12)
    plan = calibrate(wi.Gamma("1.5"), FixedSize("0.05", "0.5"))
    found = {each.family: each.gamma for each in plan.fallback}
    assert found["D_I"] == math.inf
    assert found["D_B"] == pytest.approx(math.exp(plan.epsilon), rel=1e-12)
    plan = calibrate(wi.Gamma(2), Cliques(4))
    assert plan.fallback[0].gamma == pytest.approx(2, rel=1e-12)


# The noise, measured.


def measured(plan: wi.Plan, n: int) -> Fraction | float:
    """The level of Laplace noise with the plan's scale on a filtered count of n people."""
    assert plan.noise is not None and plan.noise.kind == "laplace"
    counted = (
        statistics.Sum([1] * (n - 1) + [0]) if plan.relation == "replace" else statistics.Count()
    )
    noisy = wi.mechanisms.Laplace(counted, plan.noise.scale)
    return PositiveMembership(plan.family).measure(noisy, wi.Subsets(n)).value


@pytest.mark.parametrize(
    "family",
    [
        Independent(),
        Independent("0.05", "0.5"),
        Independent("0.4", "0.4"),
        OneOfTwo("0.25", "0.75"),
        FixedSize(),
        FixedSize("0.25", "0.75"),
        FixedSize("0.1", "0.3"),
        SwapOfTwo("0.1", "0.9"),
        OneOf(2),
        OneOf(4),
        FixedProbability("0.3"),
        Uninformed(),
        Cliques(1),
        Cliques(3),
        AtMostKnown(1, "0.2", "0.7"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("gamma", ["1.2", "1.5", "3"])
def test_the_noise_of_a_plan_meets_it(family, gamma):
    """The engine's level of the noisy count is at most γ, and γ itself where the plan is tight.

    The engine rounds up, so it is met to within its rounding; ε times the scale is at least 1.
    """
    plan = calibrate(wi.Gamma(gamma), family, query="count")
    level = measured(plan, 6)
    assert Fraction(plan.noise.scale) * Fraction(plan.epsilon) >= 1
    assert level <= fraction(gamma) * Fraction(1 + 1e-13)
    if plan.tight:
        assert float(level) == pytest.approx(float(gamma), rel=1e-9)


def test_the_noise_for_groups_is_tight_for_counts():
    """T7: k people together move a count by k, and no less noise would do."""
    for k in (1, 2, 3):
        plan = calibrate(wi.Gamma(2), Cliques(k), query="count")
        assert plan.epsilon == pytest.approx(math.log(2) / k, rel=1e-12)
        assert float(measured(plan, 5)) == pytest.approx(2, rel=1e-9)
        less = wi.mechanisms.Laplace(statistics.Count(), plan.noise.scale * (1 - 1e-6))
        assert PositiveMembership(Cliques(k)).measure(less, wi.Subsets(5)).value > 2


@pytest.mark.parametrize(("rho", "m"), [("0.6", 2), ("0.5", 3), ("0.4", 5)])
def test_the_noise_for_candidates_is_enough(rho, m):
    """(ρ, m)-DI of the noisy answer, measured; attained with two candidates."""
    plan = calibrate(wi.Rho(rho, m), query="count")
    noisy = wi.mechanisms.Laplace(statistics.Sum([1] + [0] * (m - 1)), plan.noise.scale)
    level = DifferentialIdentifiability(m).measure(noisy, wi.Subsets(m)).value
    assert level <= fraction(rho)
    assert float(level) == pytest.approx(float(rho), rel=1e-9)  # one counted among m does it


def test_expected_errors_are_those_of_the_noise():
    """Laplace noise of scale b has mean error b, and is within b ln 20 in 95% of cases."""
    plan = calibrate(wi.Epsilon("0.5"), query=PlannedQuery("sum", 0, 10, max_rows_per_group=2))
    assert plan.noise.scale == plan.noise.error == 40
    assert math.exp(-plan.noise.within / plan.noise.scale) == pytest.approx(0.05)
    plan = calibrate(wi.Gamma(2), delta=1e-6, query="count")
    assert plan.noise.kind == "gaussian"
    assert math.erfc(plan.noise.within / plan.noise.scale / math.sqrt(2)) == pytest.approx(0.05)
    assert plan.noise.error == pytest.approx(plan.noise.scale * math.sqrt(2 / math.pi))


# Sensitivities, by brute force over everything that one entity can hold.


def holdings(query: PlannedQuery, cells: int) -> list[tuple[Fraction, ...]]:
    """All the answers that one entity's rows alone can give."""
    low, high = fraction(query.lower), fraction(query.upper)
    if query.kind == "count":
        return [(ZERO,), (ONE,)]  # filtered out, or in
    if query.kind == "rows":
        return [(Fraction(rows),) for rows in range(query.max_rows_per_group + 1)]
    if query.kind == "sum":
        values = [low, (low + high) / 2, high, *([ZERO] if low <= 0 <= high else [])]
        several = (product(values, repeat=rows) for rows in range(query.max_rows_per_group + 1))
        return [(sum(rows, ZERO),) for way in several for rows in way]
    ways = product(range(query.max_rows_per_group + 1), repeat=cells)
    return [tuple(map(Fraction, way)) for way in ways if sum(map(bool, way)) <= query.max_groups]


def moved(query: PlannedQuery, relation: str) -> tuple[Fraction, float]:
    """The largest L1 and L2 change of the answer when one entity is added, or replaced."""
    cells = 2 * query.max_groups if query.kind == "histogram" else 1
    one = holdings(query, cells)
    other = one if relation == "replace" else [(ZERO,) * cells]
    changes = [tuple(a - b for a, b in zip(x, y, strict=True)) for x in one for y in other]
    return (
        max(sum(map(abs, change), ZERO) for change in changes),
        math.sqrt(max(sum(part * part for part in change) for change in changes)),
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "query",
    [
        PlannedQuery(),
        *(PlannedQuery("rows", max_rows_per_group=c) for c in (1, 2, 5)),
        *(
            PlannedQuery("sum", low, high, max_rows_per_group=c)
            for low, high in ((0, 1), (-1, 1), (2, 5), (-7, -3), (-1, 4), ("-0.5", "2.5"), (0, 3))
            for c in (1, 2, 3)
        ),
        *(
            PlannedQuery("histogram", max_rows_per_group=k, max_groups=c)
            for k in (1, 2, 3)
            for c in (1, 2)
        ),
    ],
    ids=repr,
)
def test_sensitivities(query, relation):
    """THEORY 8 against brute force, in L1 and in L2."""
    taxicab, euclidean = moved(query, relation)
    assert query.l1_sensitivity(relation) == taxicab
    assert query.l2_sensitivity(relation) == pytest.approx(euclidean, rel=1e-12)
    assert query.words()


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: PlannedQuery("median"), "query"),
        (lambda: PlannedQuery("sum", 1, 0), "lower"),
        (lambda: PlannedQuery("sum", 1, 1), "lower"),
        (lambda: PlannedQuery("sum", "x", 1), "lower"),
        (lambda: PlannedQuery(max_rows_per_group=0), "max_rows_per_group"),
        (lambda: PlannedQuery(max_groups=1.5), "max_groups"),  # type: ignore[arg-type]
        (lambda: PlannedQuery(max_rows_per_group=True), "max_rows_per_group"),
    ],
)
def test_bad_queries(make, field):
    """Unknown kinds and empty clamps are refused by name."""
    with refused(field):
        make()


# What a plan says about itself.


def test_baseline_epsilon():
    """ln γ for Gamma, ε for Epsilon, the free answers for Gain and Advantage; none for the rest."""
    family = Independent("0.05", "0.5")
    assert calibrate(wi.Gamma("1.5"), family).baseline_epsilon == pytest.approx(math.log(1.5))
    assert calibrate(wi.Gamma("1.5"), family).baseline_epsilon <= log_down(Fraction(3, 2))
    assert calibrate(wi.Epsilon(1), family).baseline_epsilon == 1
    assert calibrate(wi.Posterior("0.6"), family).baseline_epsilon is None
    assert calibrate(wi.Rho("0.6", 3)).baseline_epsilon is None
    gain = calibrate(wi.Gain("0.2"), Independent("0.05", "0.1")).baseline_epsilon
    assert gain == pytest.approx(4 * math.atanh(0.2))
    advantage = calibrate(wi.Advantage("0.1"), family).baseline_epsilon
    assert advantage == pytest.approx(2 * math.atanh(0.1))


def test_what_composes():
    """World-level ε adds; at most k known does not, nor does anything with a δ (THEORY 9)."""
    for family in (Independent("0.1", "0.5"), FixedSize(), Cliques(2), OneOf(3)):
        assert calibrate(wi.Gamma(2), family).composes
    assert not calibrate(wi.Gamma(2), AtMostKnown(2, "0.1", "0.9")).composes
    assert calibrate(wi.Gamma(2), Independent(), delta=1e-6).composes  # in zCDP


def test_theorems_are_named():
    """Each plan names the theorems it rests on, and they exist."""
    rng = random.Random(5)
    for _ in range(40):
        family = random_family(rng)
        plan = calibrate(wi.Gamma(2), family)
        assert plan.theorems and set(plan.theorems) <= set(wi.references.THEOREMS)
    assert "T18" in calibrate(wi.Gamma(2), delta=1e-6).theorems
    assert "T7" in calibrate(wi.Gamma(2), Cliques(2)).theorems


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: calibrate(wi.Gamma(2), delta=1), "delta"),
        (lambda: calibrate(wi.Gamma(2), delta=-0.1), "delta"),
        (lambda: calibrate(wi.Gamma(2), delta=math.nan), "delta"),
        (lambda: calibrate(wi.Gamma(2), Cliques(2), delta=1e-6), "delta"),
        (lambda: calibrate(wi.Advantage(0.1), delta=0.9), "delta"),
        (lambda: calibrate(wi.Gamma(2), entities=0), "entities"),
        (lambda: calibrate(wi.Gamma(2), entities="many"), "entities"),  # type: ignore[arg-type]
        (lambda: calibrate(wi.Gamma(2), AtMostKnown(1, 0.1, 0.9), 1e-6), "query"),
        (lambda: calibrate(wi.Gamma(2), AtMostKnown(1, 0.1, 0.9), 1e-6, "count"), "entities"),
        (
            lambda: calibrate(
                wi.Gamma(2), AtMostKnown(1, 0.1, 0.9), 1e-6, PlannedQuery("rows"), 50
            ),
            "query",
        ),
        (lambda: calibrate(wi.Gamma(2), "independent"), "family"),  # type: ignore[arg-type]
        (lambda: calibrate(1.5), "target"),  # type: ignore[arg-type]
    ],
)
def test_bad_calls(call, field):
    """The field is named; an advantage is an average over outputs, so a δ says nothing of it."""
    with refused(field):
        call()


# Files.


@cases(25, 150)
def test_plans_survive_a_file(tmp_path, count):
    """to_dict, JSON, from_dict: the same plan, for every family that has a name."""
    rng, made = random.Random(31), 0
    while made < count:
        target, family = random_target(rng), random_family(rng)
        query = rng.choice(
            [None, PlannedQuery(), PlannedQuery("sum", "-1/3", 2.5, max_rows_per_group=2)]
        )
        delta = 0 if isinstance(family, AtMostKnown | Cliques) else rng.choice([0, 0, 1e-6])
        try:
            plan = calibrate(target, family, delta, query)
        except (InvalidInput, wi.errors.ImpossibleTarget):
            continue
        if isinstance(family, Explicit):
            with refused("family", kind=Unsupported):
                plan.to_dict()
            continue
        made += 1
        path = tmp_path / "plan.json"
        plan.save(path)
        again = wi.Plan.load(path)
        assert again.to_dict() == plan.to_dict()
        assert again.epsilon == plan.epsilon and again.noise == plan.noise
        assert again.fallback == plan.fallback
    plan = calibrate(wi.Gamma(2), AtMostKnown(2, "0.2", "0.8"), 1e-4, "count", 60)
    plan.save(tmp_path / "plan.json")
    assert wi.Plan.load(tmp_path / "plan.json") == plan


def plan_data() -> dict:
    plan = calibrate(wi.Posterior("0.6"), Independent("0.05", "0.5"), query="count")
    return json.loads(json.dumps(plan.to_dict()))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"epsilon": 0.41}, "epsilon of the plan"),
        ({"epsilon": 0.2}, "epsilon of the plan"),
        ({"epsilon": "0.4"}, "epsilon of the plan"),
        ({"epsilon": None}, "epsilon of the plan"),
        ({"epsilon": True}, "epsilon of the plan"),
        ({"relation": "replace"}, "relation of the plan"),
        ({"gamma": 1.1}, "gamma of the plan"),
        (
            {"noise": {"kind": "laplace", "scale": 0.1, "error": 0.1, "within": 0.3}},
            "noise of the plan",
        ),
        ({"noise": None}, "noise of the plan"),
        ({"composes": False}, "composes of the plan"),
        ({"tight": 1}, "tight of the plan"),
        ({"dp_delta": 0.1}, "dp_delta of the plan"),
        ({"theorems": ["T4"]}, "theorems of the plan"),
        ({"fallback": []}, "fallback of the plan"),
        ({"version": 2}, "version of the plan"),
        ({"version": None}, "version of the plan"),
        ({"epsilom": 1}, "key of the plan"),
        ({"target": {"name": "posterior", "posterior": "0.9"}}, "epsilon of the plan"),
        ({"target": {"name": "posterior"}}, "target"),
        ({"target": {"name": "posteriors", "posterior": "0.6"}}, "target"),
        ({"target": "posterior"}, "target"),
        ({"target": {"name": "posterior", "posterior": "0.6", "m": 2}}, "key of the target"),
        ({"family": {"name": "independent", "low": "0.3", "high": "0.2"}}, "low"),
        ({"family": {"name": "independent", "low": [], "high": 1}}, "low"),
        ({"family": {"name": "cliques", "k": 2, "j": 1}}, "key of the family"),
        ({"family": {"name": "any"}}, "family"),
        ({"query": {"name": "query", "kind": "median"}}, "query"),
        ({"query": []}, "query"),
        ({"entities": "x"}, "entities"),
        ({"delta": 2}, "delta"),
    ],
    ids=str,
)
def test_tampered_plans_are_refused(change, field):
    """Whatever is not what planning finds again is refused by name."""
    assert wi.Plan.from_dict(plan_data()).epsilon == pytest.approx(0.405, abs=1e-3)
    with refused(field, kind=WhosinError):
        wi.Plan.from_dict({**plan_data(), **change})


@pytest.mark.parametrize("key", ["version", "target", "family", "epsilon", "relation"])
def test_incomplete_plans_are_refused(key):
    """The message names what is missing."""
    data = plan_data()
    del data[key]
    with refused("plan") as caught:
        wi.Plan.from_dict(data)
    assert key in str(caught.value)


def test_files_that_are_no_plans(tmp_path):
    """Not JSON, not text, not an object."""
    path = tmp_path / "plan.json"
    for text in (b"{'a': 1}", b"\xff\xfe\x00", b"", b"[1]", b"3"):
        path.write_bytes(text)
        with pytest.raises(InvalidInput) as caught:
            wi.Plan.load(path)
        assert caught.value.field in ("plan", "plan file")
    with pytest.raises(FileNotFoundError):
        wi.Plan.load(tmp_path / "none.json")


def test_logarithms_are_rounded_the_safe_way():
    """log_down ≤ ln ≤ log_up, within a few units in the last place."""
    rng = random.Random(41)
    for _ in range(100):
        r = 1 + Fraction(rng.randint(1, 10**6), rng.randint(1, 10**6))
        low, high = log_down(r), log_up(r)
        assert exp_up(low) <= r * (1 + Fraction(1, 2**100)) and exp_up(high) >= r
        assert high - low <= 4 * math.ulp(high)


@pytest.mark.parametrize("target", [wi.Posterior("0.6"), wi.Gain("0.2")])
def test_a_prior_that_hardly_any_float_holds(target):
    """The likelihood ratio it allows is larger than any float."""
    plan = wi.calibrate(target, wi.families.Independent(5e-324, 5e-324), 1e-6)
    assert 600 < plan.epsilon < 750


def test_a_search_for_noise_on_a_count_ends():
    """A δ below what sums in floats can show was searched for with ever more noise."""
    near = wi.families.AtMostKnown(2, "0.1", "0.5")
    with refused("target"):
        wi.calibrate(wi.Posterior("0.6"), near, 1e-16, "count", 20)


def test_a_delta_too_small_for_a_float_is_refused():
    with refused("delta"):
        wi.calibrate(wi.Gamma(2), wi.families.Independent(), delta=Fraction(1, 10**400))
