"""The best mechanism for a distortion: against the full program, brute force and Shannon."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whosin as wi
from amounts import some
from distortion_oracle import full_program
from refusals import refused
from whosin.distortion import (
    best,
    h_inverse,
    hamming_distortion,
    identifiable_mechanism,
    least_threshold,
    randomized_response,
)
from whosin.distortion.closed_forms import check_cost
from whosin.distortion.program import CertifiedProgram
from whosin.distortion.rate import find_saddle, table_letter
from whosin.distortion.symmetry import find_structure
from whosin.errors import ImpossibleTarget, UnknownName, Unsupported
from whosin.notions import DifferentialPrivacy, Identifiability, MutualInformation

DP = DifferentialPrivacy("replace")
IID = wi.priors.Independent


def random_prior(rng, worlds, alpha=2.0):
    return [float(p) for p in rng.dirichlet(np.full(worlds, alpha))]


# Numbers to meet.


@pytest.mark.parametrize(
    ("rows", "p", "value", "digits"),
    [
        (4, ("1/2", "1/2"), 1.0757656855, 1e-9),
        (5, ("0.9", "0.1"), 0.5, 1e-9),
        (3, ("0.5", "0.3", "0.2"), 1.24545941, 1e-8),
        (20, ("0.7", "0.3"), 5.37882843, 1e-7),
        (30, ("0.7", "0.3"), 8.06824264, 1e-7),
    ],
)
def test_known_optima(rows, p, value, digits):
    found = best(wi.Records(rows, len(p)), IID(p), epsilon=1)
    assert found.distortion == pytest.approx(value, abs=digits)
    assert 0 <= found.gap < 1e-9
    assert found.lower <= found.distortion + 1e-9 and found.distortion <= found.upper + 1e-9


def test_uniform_priors_have_a_closed_form_of_any_size():
    space = wi.Records(10**5, 4)
    found = best(space, wi.priors.Uniform(), epsilon=1)
    assert (
        found.distortion == pytest.approx(hamming_distortion(space, 1.0), rel=1e-14)
        and found.gap == 0
    )
    out = found.mechanism.sample(np.zeros(10**5, dtype=int), np.random.default_rng(1))
    assert abs(np.count_nonzero(out) - hamming_distortion(space, 1.0)) < 5 * math.sqrt(10**5 / 4)


# By type against the full program.


@pytest.mark.parametrize("notion", ["dp", "identifiability"])
@pytest.mark.parametrize(
    ("rows", "p", "epsilon"),
    [
        (2, (0.8, 0.2), 0.7),
        (3, (0.75, 0.25), 0.9),
        (4, (0.72, 0.28), 1.0),
        (2, (0.5, 0.3, 0.2), 0.95),
        (2, (0.6, 0.3, 0.1), 1.9),
    ],
)
def test_types_agree_with_the_full_program(rows, p, epsilon, notion):
    space, prior = wi.Records(rows, len(p)), IID(p)
    mass = prior.on_records(space, float)
    expected = full_program(rows, len(p), mass, epsilon, notion)
    if expected is None:
        with refused("epsilon", kind=ImpossibleTarget):
            best(space, prior, epsilon=epsilon, notion=notion)
        return
    found = best(space, prior, epsilon=epsilon, notion=notion)
    assert found.distortion == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("seed", some(range(4), 2))
@pytest.mark.parametrize("notion", ["dp", "identifiability"])
def test_priors_without_symmetry_and_other_distortions(seed, notion):
    rng = np.random.default_rng(seed)
    rows, values = ((3, 2), (2, 3))[seed % 2]
    mass = random_prior(rng, values**rows, 8.0)
    space, prior = wi.Records(rows, values), wi.priors.Table(mass)
    known = find_structure(space, prior)
    assert len(known.groups) == rows
    epsilon = (known.spread if notion == "identifiability" else 0.3) + 0.4
    cost = rng.uniform(0.5, 2, (values, values)) * (1 - np.eye(values))
    for price in (None, cost):
        expected = full_program(rows, values, mass, epsilon, notion, price)
        found = best(space, prior, epsilon=epsilon, notion=notion, cost=price)
        assert found.distortion == pytest.approx(expected, abs=1e-6)
        measure = DP if notion == "dp" else Identifiability(prior)
        assert measure.measure(found.mechanism, space).value <= epsilon


def test_groups_of_exchangeable_rows_are_found_and_used():
    space = wi.Records(3, 2)
    prior = IID([(0.7, 0.3), (0.6, 0.4), (0.7, 0.3)])
    table = wi.priors.Table([float(p) for p in prior.on_records(space, float)])
    tenths = [(Fraction(k, 10), Fraction(10 - k, 10)) for k in (7, 6, 7)]
    exact = wi.priors.Table([math.prod(q) for q in product(*tenths)])
    assert find_structure(space, prior).groups == ((0, 2), (1,))
    assert find_structure(space, exact).groups == ((0, 2), (1,))
    values = [best(space, one, epsilon=0.6).distortion for one in (prior, exact, table)]
    full = full_program(3, 2, prior.on_records(space, float), 0.6, "dp")
    assert values == pytest.approx([full] * 3, abs=1e-7)


# Laws on random priors.


@settings(max_examples=6, deadline=None)
@given(
    st.integers(2, 5),
    st.floats(0.05, 0.95),
    st.floats(0.05, 2.5),
    st.sampled_from(["iid", "exchangeable"]),
)
def test_repaired_mechanisms_never_exceed_their_level(rows, p, epsilon, kind):
    """By the exact engine, which measures the floats as the rationals they are."""
    space = wi.Records(rows, 2)
    prior = IID((p, 1 - p))
    if kind == "exchangeable":
        sizes = np.random.default_rng(int(p * 1e6)).dirichlet(np.ones(rows + 1))
        prior = wi.priors.Exchangeable([float(s) for s in sizes])
    found = best(space, prior, epsilon=epsilon)
    assert DP.measure(found.mechanism, space).value <= epsilon
    assert found.lower - 1e-9 <= found.distortion <= found.upper + 1e-9  # T16
    assert 0 <= found.gap < 1e-8
    spread = find_structure(space, prior).spread
    at = spread + epsilon
    other = best(space, prior, epsilon=at, notion="identifiability")
    assert Identifiability(prior).measure(other.mechanism, space).value <= at
    assert other.distortion >= hamming_distortion(space, at) - 1e-9  # T16
    assert other.gap < 1e-7
    information = MutualInformation(prior).measure(found.mechanism, space).value
    assert found.mutual_information == pytest.approx(information, abs=1e-9)


def test_curves_fall_and_go_back():
    space, prior = wi.Records(6, 2), IID((0.78, 0.22))
    levels = np.linspace(0.2, 3, 8)
    values = [best(space, prior, epsilon=float(e)).distortion for e in levels]
    assert all(a >= b - 1e-9 for a, b in pairwise(values))
    for epsilon, value in list(zip(levels, values, strict=True))[3:6]:
        back = best(space, prior, distortion=value)
        assert back.epsilon <= epsilon + 1e-8 and back.distortion <= value
        assert back.gap < 1e-6
        assert back.lower - 1e-9 <= back.epsilon <= back.upper + 1e-8


def test_identifiability_between_the_two_thresholds():
    prior, space = IID(("0.5", "0.3", "0.2")), wi.Records(2, 3)
    known = find_structure(space, prior)
    assert known.spread == pytest.approx(math.log(2.5))
    assert least_threshold(known) == pytest.approx(math.log(3))
    at = best(space, prior, epsilon=known.spread, notion="identifiability")
    assert at.distortion == pytest.approx(1.0)
    assert Identifiability(prior).measure(at.mechanism, space).value <= known.spread
    between = best(space, prior, distortion=0.9, notion="identifiability")
    assert between.epsilon >= max(h_inverse(space, 0.9), known.spread)
    assert between.distortion <= 0.9
    with refused("epsilon", 0.5, kind=ImpossibleTarget):
        best(space, prior, epsilon=0.5, notion="identifiability")


# Closed forms.


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_randomised_response_is_exact(epsilon):
    space = wi.Records(3, 3)
    level = DP.measure(randomized_response(epsilon, 3), space)
    assert level.exact and level.value <= epsilon
    assert level.value == pytest.approx(epsilon, abs=1e-12)
    assert h_inverse(space, hamming_distortion(space, epsilon)) == pytest.approx(epsilon, abs=1e-12)


@pytest.mark.parametrize("seed", some([0, 3, 1, 2, 4, 5], 3))
def test_t16_t17_on_random_priors(seed):
    """At and above ε̃_X, E_i attains h(ε), is ε-identifiable, and has the least information."""
    rng = np.random.default_rng(seed)
    space = wi.Records(2, 3) if seed % 2 else wi.Records(3, 2)
    rows = [tuple(float(p) for p in rng.dirichlet(np.full(space.values, 5.0)))] * space.rows
    prior = IID(rows) if seed < 3 else wi.priors.Table(random_prior(rng, space.worlds, 9.0))
    known = find_structure(space, prior)
    least = least_threshold(known)
    assert least >= known.spread - 1e-9
    for epsilon in (least, least + 0.5):
        made = identifiable_mechanism(known, epsilon)
        level = Identifiability(prior).measure(made, space)
        assert level.value <= epsilon + 1e-15
        assert level.value == pytest.approx(epsilon, abs=1e-9)
        found = best(space, prior, epsilon=epsilon, notion="identifiability")
        assert found.distortion == pytest.approx(hamming_distortion(space, epsilon), abs=1e-12)
        rate = best(space, prior, distortion=found.distortion, notion="mutual-information")
        assert rate.mutual_information == pytest.approx(found.mutual_information, abs=1e-9)
        assert rate.gap < 1e-9
    linear = CertifiedProgram(known, check_cost(space, None), "identifiability")
    assert linear.at(least + 0.5).distortion == pytest.approx(
        hamming_distortion(space, least + 0.5), abs=1e-8
    )


def test_the_bounds_are_not_always_tight():
    space, prior = wi.Records(4, 2), IID((0.8, 0.2))
    found = best(space, prior, epsilon=1)
    assert found.lower + 0.05 < found.distortion < found.upper - 0.05


@pytest.mark.parametrize("notion", ["dp", "identifiability", "mutual-information"])
def test_a_level_beyond_floats_is_refused(notion):
    with refused("epsilon"):
        best(wi.Records(2, 2), wi.priors.Uniform(), epsilon=10**400, notion=notion)


def test_full_support_is_needed():
    """E8."""
    space, prior = wi.Records(2, 2), IID((1, 0))
    known = find_structure(space, prior)
    assert known.spread == math.inf and least_threshold(known) == math.inf
    with refused("epsilon", 3.0, kind=ImpossibleTarget):
        best(space, prior, epsilon=3, notion="identifiability")
    any_ = best(space, prior, distortion=1, notion="identifiability")
    assert any_.epsilon == math.inf and "zeros" in any_.note
    assert best(space, prior, epsilon=1).distortion == 0


# Mutual information.


@pytest.mark.parametrize("p", [(0.7, 0.3), (0.5, 0.3, 0.2), (0.4, 0.3, 0.2, 0.1)])
@pytest.mark.parametrize("share", [0.2, 0.6, 1.0])
def test_shannons_formula(p, share):
    rows, m = 50, len(p)
    d = share * (m - 1) * min(p)
    expected = -sum(q * math.log(q) for q in p)
    expected -= -d * math.log(d) - (1 - d) * math.log(1 - d) + d * math.log(m - 1)
    found = best(wi.Records(rows, m), IID(p), distortion=rows * d, notion="mutual-information")
    assert found.mutual_information == pytest.approx(rows * expected, abs=1e-9)
    assert found.gap < 1e-9 and found.distortion <= rows * d + 1e-9


def blahut_arimoto(p, d, slope, steps=20000):
    q = np.full(len(p), 1 / len(p))
    kernel = np.exp(-slope * d)
    for _ in range(steps):
        q = q * (kernel.T @ (p / (kernel @ q)))
    channel = kernel * q / (kernel @ q)[:, None]
    return channel, float((p[:, None] * channel * d).sum())


@pytest.mark.parametrize("seed", some(range(3), 1))
def test_rate_distortion_against_blahut_arimoto(seed):
    rng = np.random.default_rng(seed)
    space = wi.Records(3, 2)
    mass = np.array(random_prior(rng, 8, 0.7))
    worlds = np.array(list(space))
    d = (worlds[:, None] != worlds[None]).sum(axis=2)
    channel, distortion = blahut_arimoto(mass, d, 1.3)
    expected = MutualInformation(wi.priors.Table(mass.tolist())).measure(
        wi.Channel(space, channel / channel.sum(axis=1, keepdims=True))
    )
    prior = wi.priors.Table(mass.tolist())
    found = best(space, prior, distortion=distortion, notion="mutual-information")
    assert found.mutual_information == pytest.approx(expected.value, abs=1e-6)
    again = MutualInformation(prior).measure(found.mechanism, space).value
    assert again == pytest.approx(found.mutual_information, abs=1e-9)
    back = best(space, prior, epsilon=found.mutual_information, notion="mutual-information")
    assert back.distortion == pytest.approx(distortion, abs=1e-6)


def test_rows_of_several_kinds_share_a_slope():
    space = wi.Records(3, 2)
    prior = IID([(0.7, 0.3), (0.55, 0.45), (0.9, 0.1)])
    table = wi.priors.Table([float(p) for p in prior.on_records(space, float)])
    for d in (0.2, 0.4, 0.7):
        one, other = (
            best(space, q, distortion=d, notion="mutual-information") for q in (prior, table)
        )
        assert one.mutual_information == pytest.approx(other.mutual_information, abs=1e-8)
        assert one.gap < 1e-9


def test_a_saddle_point_needs_few_steps():
    """Weights and slope together, where rare outputs leave the optimum and where they do not."""
    rng = np.random.default_rng(5)
    space = wi.Records(6, 2)
    for mass in (rng.lognormal(0, 2.5, 64), rng.dirichlet(np.ones(64))):
        known = find_structure(space, wi.priors.Table((mass / mass.sum()).tolist()))
        letter = table_letter(known.types, known.masses, check_cost(space, None))
        for d in (0.05, 0.6, 1.2):
            found = find_saddle([letter], d, tolerance=1e-11)
            assert found.gap <= 1e-11 and found.steps < 40
            (weights,) = found.weights
            assert weights.sum() == pytest.approx(1) and weights.min() >= 0
            assert letter.distortion(letter.conditionals(weights, found.slope)) == pytest.approx(d)


# Sampling.


def test_sampling_by_type_draws_from_the_channel():
    space, prior = wi.Records(4, 2), wi.priors.Exchangeable((0.1, 0.3, 0.1, 0.2, 0.3))
    made = best(space, prior, epsilon=1).mechanism
    assert isinstance(made, wi.distortion.ByType)
    channel = made.channel()
    rng = np.random.default_rng(3)
    x = (0, 1, 0, 1)
    seen = np.zeros(16)
    for _ in range(2000):
        seen[space.index(made.sample(x, rng).tolist())] += 1
    expected = channel.likelihoods[space.index(x)] * 2000
    used = expected > 5
    statistic = float((((seen - expected) ** 2)[used] / expected[used]).sum())
    assert statistic < 2.5 * used.sum() + 15
    wrong = channel.likelihoods[space.index((0, 0, 0, 0))] * 2000 + 1
    assert float(((seen - wrong) ** 2 / wrong).sum()) > 60


def test_rows_are_sampled_one_by_one():
    made = randomized_response(1.0, 3)
    out = made.sample([2] * 30000, np.random.default_rng(2))
    share = np.bincount(out, minlength=3) / 30000
    keep = math.e / (math.e + 2)
    assert share == pytest.approx([(1 - keep) / 2, (1 - keep) / 2, keep], abs=0.015)
    with refused("table", (1,)):
        made.sample([3], np.random.default_rng(2))


# Bad input.


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"epsilon": -1}, "epsilon"),
        ({"distortion": 4}, "distortion"),
        ({"distortion": -0.5}, "distortion"),
        ({}, "epsilon or distortion"),
        ({"epsilon": 1, "distortion": 1}, "epsilon or distortion"),
        ({"epsilon": 1, "cost": [[0, 1], [1, 1]]}, "cost"),
        ({"epsilon": 1, "cost": [[0, 1]]}, "cost"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "x"}, "epsilon"),
        ({"epsilon": 1e6}, "epsilon"),
        ({"distortion": math.nan}, "distortion"),
        ({"distortion": math.inf}, "distortion"),
        ({"epsilon": 1, "cost": "x"}, "cost"),
        ({"epsilon": 1, "cost": [[0, math.nan], [1, 0]]}, "cost"),
        ({"epsilon": 1, "cost": [[0, -1], [1, 0]]}, "cost"),
    ],
)
def test_bad_input(arguments, field):
    with refused(field):
        best(wi.Records(3, 2), IID((0.7, 0.3)), **arguments)


def test_bad_names_priors_and_sizes():
    with refused("notion", "dpp", kind=UnknownName):
        best(wi.Records(2, 2), IID((0.7, 0.3)), epsilon=1, notion="dpp")
    with refused("distribution of row 0"):
        best(wi.Records(2, 2), IID((0.7, 0.4)), epsilon=1)
    rows = [(0.5 + k / 100, 0.5 - k / 100) for k in range(12)]
    chain = wi.priors.MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    assert best(wi.Records(12, 2), IID(rows), epsilon=1).gap == 0  # T20: rows are solved apart
    with refused("space", 262144, kind=Unsupported):
        best(wi.Records(9, 2), chain, epsilon=1)
    with refused("space", 1373701, kind=Unsupported):
        best(wi.Records(200, 2), wi.priors.Exchangeable([0.5, *[0] * 199, 0.5]), epsilon=1)
    with refused("prior", 8192, kind=Unsupported):
        best(wi.Records(13, 2), chain, epsilon=1)
    cost = 2.0 * (1 - np.eye(80))
    with refused("space", 505600, kind=Unsupported):
        best(wi.Records(2, 80), wi.priors.Uniform(), epsilon=1, cost=cost)
    with refused("space", "Subsets(3)"):
        best(wi.Subsets(3), IID((0.7, 0.3)), epsilon=1)


def test_the_ends_of_the_curves():
    space, prior = wi.Records(3, 2), IID((0.7, 0.3))
    for notion in wi.distortion.NOTION_NAMES:
        exact = best(space, prior, distortion=0, notion=notion)
        assert exact.distortion == 0
        assert exact.epsilon == (exact.mutual_information if "mutual" in notion else math.inf)
        nothing = best(space, prior, distortion=3, notion=notion)
        assert nothing.mutual_information == 0 and nothing.distortion == pytest.approx(0.9)
    assert best(space, prior, epsilon=0).distortion == pytest.approx(0.9)
    assert best(space, prior, epsilon=math.inf).distortion == 0
