"""Every theorem against brute force: both sides of it, from the definitions, in exact rationals.

The left side and the right side of a theorem are measured separately with `oracle`, on random
channels, and the map in `whosin.theorems` has to link them: exactly where the theorem is an
equivalence, as a bound with a case that attains it otherwise. Each comparison is a function of the
map, so that a wrong map can be put in its place and be seen to fail.
"""

from __future__ import annotations

import math
import random
import re
import unicodedata
from dataclasses import MISSING
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

import oracle
import whosin as wi
from refusals import refused
from whosin import beliefs, theorems
from whosin.errors import WhosinError
from whosin.exact import Number
from whosin.notions import (
    NOTION_KINDS,
    DifferentialIdentifiability,
    DifferentialPrivacy,
    NegativeMembership,
    Notion,
    PositiveMembership,
    SampledDifferentialPrivacy,
)
from whosin.references import PAPERS, THEOREMS

NEAR = Fraction(1, 10**9)
"""How close to its limit a ratio must come when a belief is taken towards 0 or 1."""


class Amount:
    """How many random cases each theorem has: a share in `make test`, all in `make soak`."""

    cases = 1000


@pytest.fixture(params=[40, pytest.param(1000, marks=pytest.mark.soak)], autouse=True)
def amount(request, monkeypatch):
    monkeypatch.setattr(Amount, "cases", request.param)


def instances(seed: int, count: int | None = None, least: int = 1):
    """(rng, n, channel) with n ≤ 3, one time in forty 4, and at most 3 outputs."""
    rng = random.Random(seed)
    for _ in range(count or Amount.cases):
        n = 4 if rng.random() < 1 / 40 else rng.randint(least, 3)
        yield rng, n, oracle.random_channel(rng, n, rng.randint(1, 3), rng.choice([0, 0.25]))


def carried(value: Number, source: Notion, target: Notion) -> Number:
    """The level of another notion that the map makes of one."""
    return theorems.convert(wi.notions.Level(value, None, True, (), notion=source), target).value


UDP = DifferentialPrivacy("add-remove")
SIGNED = {side: DifferentialPrivacy("add-remove", side) for side in ("positive", "negative")}
BDP = DifferentialPrivacy("replace")


def engine(channel: dict, n: int) -> wi.Channel:
    return wi.Channel(wi.Subsets(n), oracle.table(channel))


def random_prior(rng: random.Random, n: int) -> dict:
    """Any distribution over the worlds, those of mass 0 left out."""
    masses = oracle.random_distribution(rng, 2**n, 0.3)
    return {w: mass for w, mass in zip(oracle.worlds(n), masses, strict=True) if mass}


def chances(rng: random.Random, n: int) -> list[Fraction]:
    """A probability for each entity, 0 and 1 among them."""
    return [Fraction(rng.randint(0, 6), 6) for _ in range(n)]


def independent(p: list[Fraction]) -> dict:
    """An independent prior, worlds of mass 0 left out."""
    return {world: mass for world, mass in oracle.independent(p).items() if mass}


def ratios(prior: dict, channel: dict, n: int) -> dict:
    """t → (largest Pr[S|t]/Pr[S|¬t], largest inverse) over all S, for the uncertain entities."""
    found = {}
    for t in range(n):
        sides = [{w: m for w, m in prior.items() if (t in w) == inside} for inside in (True, False)]
        if all(sides):
            pairs = [conditional(sides, channel, event) for event in events(channel)]
            up = max(oracle.ratio(inside, outside) for inside, outside in pairs)
            down = max(oracle.ratio(outside, inside) for inside, outside in pairs)
            found[t] = up, down
    return found


def conditional(sides: list[dict], channel: dict, event: tuple[int, ...]) -> list[Fraction]:
    """(Pr[S|t], Pr[S|¬t])."""
    return [
        sum(mass * oracle.probability(channel, w, event) for w, mass in side.items())
        / sum(side.values())
        for side in sides
    ]


def events(channel: dict):
    return oracle.events(len(next(iter(channel.values()))))


def scaled(prior: dict, t: int, belief: Fraction) -> dict:
    """The t-scaled prior of Li13 Definition 3.3 with Pr[t] = belief."""
    now = sum(mass for world, mass in prior.items() if t in world)
    factors = {True: belief / now, False: (1 - belief) / (1 - now)}
    return {world: mass * factors[t in world] for world, mass in prior.items()}


def tiny(ratio: Fraction | float) -> Fraction:
    """A belief at which this ratio gives a γ within `NEAR` of it."""
    return NEAR / ratio if isinstance(ratio, Fraction) else Fraction(1, 2)


def reaches(value: Fraction | float, limit: Fraction | float) -> bool:
    """At most the limit, and within `NEAR` of it."""
    return limit * (1 - NEAR) <= value <= limit


def close(value: float, truth: Fraction | float) -> bool:
    """Equal up to the rounding of a logarithm or an exponential."""
    return value == truth or value == pytest.approx(float(truth), rel=1e-12, abs=1e-12)


def log(ratio: Fraction | float) -> float:
    return math.log(ratio)


# T1 and T2: likelihood ratios and beliefs.


def test_t1_a_ratio_bounds_beliefs_under_every_prior():
    """r ≤ γ for all S, t gives γ-PMP; a prior's γ is that of its ratios at its beliefs (F4)."""
    for rng, n, channel in instances(101):
        prior = random_prior(rng, n)
        found = ratios(prior, channel, n)
        level = oracle.positive(prior, channel, n)
        assert level <= max((up for up, _ in found.values()), default=1)
        at = {t: sum(m for w, m in prior.items() if t in w) for t in found}
        assert level == max((beliefs.gamma(up, at[t]) for t, (up, _) in found.items()), default=1)


def test_t2_the_mirror_for_absence():
    """1/r ≤ γ for all S, t gives γ-NMP, and F4 at Pr[¬t] is exact."""
    for rng, n, channel in instances(102):
        prior = random_prior(rng, n)
        found = ratios(prior, channel, n)
        level = oracle.negative(prior, channel, n)
        assert level <= max((down for _, down in found.values()), default=1)
        out = {t: sum(m for w, m in prior.items() if t not in w) for t in found}
        pairs = ((beliefs.gamma(down, out[t])) for t, (_, down) in found.items())
        assert level == max(pairs, default=1)


def test_t1_t2_are_equivalences_where_priors_can_be_scaled():
    """Scaling Pr[t] towards 0 (PMP), or 1 (NMP), drives γ to the ratio itself."""
    for rng, n, channel in instances(103):
        prior = random_prior(rng, n)
        for t, (up, down) in ratios(prior, channel, n).items():
            low, high = scaled(prior, t, tiny(up)), scaled(prior, t, 1 - tiny(down))
            assert only(t, low, channel, positive=True) == beliefs.gamma(up, tiny(up))
            assert reaches(only(t, low, channel, positive=True), up)
            assert reaches(only(t, high, channel, positive=False), down)


def only(t: int, prior: dict, channel: dict, positive: bool) -> Fraction | float:
    """The smallest γ of Definition 3.1 (or 3.8) for one entity."""
    worst: Fraction | float = Fraction(1)
    for event in events(channel):
        before, after = oracle.beliefs(prior, channel, t, event)
        if after is not None:
            if not positive:
                before, after = 1 - before, 1 - after
            worst = max(worst, after / before, oracle.ratio(1 - before, 1 - after))
    return worst


def test_t1_needs_scaling_to_be_an_equivalence():
    """Under the uniform prior alone a ratio of 3 is 2-PMP: γ = (r + 1)/2 (F7)."""
    channel = {frozenset(): [Fraction(1, 4), Fraction(3, 4)]}
    channel[frozenset({0})] = [Fraction(3, 4), Fraction(1, 4)]
    assert oracle.positive(oracle.independent([Fraction(1, 2)]), channel, 1) == 2
    assert oracle.largest(channel, oracle.added(1)) == 3


# T3: against every prior.


def test_t3_ratio_between_any_worlds_is_the_level_against_every_prior():
    """The statement's ratio, the measured level and the definition agree: no prior exceeds it, and
    some prior on two worlds comes as close as one likes."""
    for rng, n, channel in instances(3):
        bound = max([Fraction(1), oracle.largest(channel, oracle.separated(n))])
        assert bound == PositiveMembership(wi.families.AnyPrior()).measure(engine(channel, n)).value
        assert oracle.positive(random_prior(rng, n), channel, n) <= bound
        assert reaches(over_two_worlds(channel, oracle.separated(n), tiny(bound)), bound)


def over_two_worlds(
    channel: dict, pairs: list, belief: Fraction, positive: bool = True
) -> Fraction | float:
    """The largest γ over the priors that put `belief` on one world and the rest on another, for the
    entities in which the two differ."""
    best: Fraction | float = Fraction(1)
    for with_t, without in pairs:
        t = min(with_t - without)
        best = max(best, only(t, oracle.two(with_t, without, belief), channel, positive))
    return best


# T4 and T5: differential privacy.


def test_t4_unbounded_dp_is_membership_privacy_against_independent_priors():
    """No independent prior exceeds e^ε of the definition's ε, and those in which one entity is
    uncertain approach it (D_I²); the same for negative UDP, NMP and beliefs near 1."""
    for rng, n, channel in instances(4):
        prior = independent(chances(rng, n))
        for direction, smallest in (("positive", oracle.positive), ("negative", oracle.negative)):
            positive = direction == "positive"
            pairs = oracle.added(n)
            ratio = oracle.largest(channel, pairs if positive else oracle.reverse(pairs))
            epsilon = SIGNED[direction].measure(engine(channel, n)).value
            kind = PositiveMembership if positive else NegativeMembership
            against = kind(wi.families.Independent())
            assert close(carried(epsilon, SIGNED[direction], against), ratio)
            assert close(carried(ratio, against, SIGNED[direction]), log(ratio))
            assert smallest(prior, channel, n) <= ratio
            belief = tiny(ratio) if positive else 1 - tiny(ratio)
            assert reaches(over_two_worlds(channel, pairs, belief, positive), ratio)


def test_t5_bounded_dp_is_membership_privacy_against_fixed_sizes():
    """No fixed-size prior exceeds e^ε, and swaps of two approach it (D_B²), also for NMP."""
    tried = 0
    for rng, n, channel in instances(5, 2 * Amount.cases, least=2):
        prior = oracle.fixed_size(chances(rng, n), rng.randint(1, n - 1))
        if prior is None:
            continue
        tried += 1
        ratio = oracle.largest(channel, oracle.swapped(n))
        epsilon = DifferentialPrivacy("replace").measure(engine(channel, n)).value
        assert close(carried(epsilon, BDP, PositiveMembership(wi.families.FixedSize())), ratio)
        assert oracle.positive(prior, channel, n) <= ratio
        assert oracle.negative(prior, channel, n) <= ratio
        assert reaches(over_two_worlds(channel, oracle.swapped(n), tiny(ratio)), ratio)
    assert tried >= Amount.cases


# T6 and T7: from single additions to swaps and groups.


def partition(rng: random.Random, n: int, k: int) -> list[list[int]]:
    """The entities in random groups of at most k."""
    people, groups = rng.sample(range(n), n), []
    while people:
        size = rng.randint(1, min(k, len(people)))
        groups.append(people[:size])
        people = people[size:]
    return groups


def cliques(groups: list[list[int]], p: list[Fraction]) -> dict:
    """Each group present with its probability, as one, independently of the others."""
    prior = {}
    for chosen in product([True, False], repeat=len(groups)):
        mass = math.prod(q if c else 1 - q for q, c in zip(p, chosen, strict=True))
        world = frozenset(e for group, c in zip(groups, chosen, strict=True) if c for e in group)
        if mass:
            prior[world] = mass
    return prior


def test_t7_groups_of_k_pay_k_times():
    """ε-positive UDP gives e^(kε) against groups of at most k who come and go together."""
    for rng, n, channel in instances(7, least=2):
        k = rng.randint(1, n)
        ratio = oracle.largest(channel, oracle.added(n))
        groups = partition(rng, n, k)
        level = oracle.positive(cliques(groups, chances(rng, len(groups))), channel, n)
        assert level <= ratio**k
        epsilon = DifferentialPrivacy("add-remove", "positive").measure(engine(channel, n)).value
        against = PositiveMembership(wi.families.Cliques(k))
        assert level <= carried(epsilon, SIGNED["positive"], against) * (1 + 1e-12)


# T8 and T9: differential identifiability.


def identifiability(channel: dict, n: int, m: int) -> Fraction:
    """ρ of Li13 Definition 5.4, from the definition."""
    return max(
        oracle.beliefs(prior, channel, t, event)[1] or Fraction(0)
        for prior in oracle.family_priors("one-of", n, m)
        for t in frozenset.union(*prior) - frozenset.intersection(*prior)
        for event in events(channel)
    )


def disagreements_t8(forth, back, count: int | None = None) -> int:
    """On how many instances the measured ρ and γ under D_C^m are not linked by two maps."""
    wrong = 0
    for rng, n, channel in instances(8, count, least=2):
        m = rng.randint(2, n)
        rho = identifiability(channel, n, m)
        gamma = max(oracle.positive(p, channel, n) for p in oracle.family_priors("one-of", n, m))
        wrong += forth(rho, m) != gamma or back(gamma, m) != rho
    return wrong


def test_t8_identifiability_is_membership_privacy_of_one_among_m():
    """(ρ, m)-DI ⇔ (D_C^m, γ)-PMP: each measured alone, the maps carry one into the other."""
    assert not disagreements_t8(
        theorems.one_of_from_identifiability, theorems.identifiability_from_one_of
    )


def scarcely_more(map_):
    """The map with its result enlarged by one part in a million."""
    return lambda value, parameter: map_(value, parameter) * Fraction(1_000_001, 1_000_000)


@pytest.mark.parametrize(
    "forth",
    [
        lambda rho, m: rho * m,
        lambda rho, m: math.inf if rho == 1 else Fraction(m - 1, m) / (1 - rho),
        lambda rho, m: math.inf if rho == 1 else max(rho * m, 1 / (1 - rho) / m),
        scarcely_more(theorems.one_of_from_identifiability),
    ],
    ids=["first branch", "second branch", "another constant", "scarcely more"],
)
def test_t8_can_fail(forth):
    assert disagreements_t8(forth, theorems.identifiability_from_one_of, 100) > 3


def test_t8_inverse_can_fail():
    back = scarcely_more(theorems.identifiability_from_one_of)
    assert disagreements_t8(theorems.one_of_from_identifiability, back, 60) == 60


def test_t8_maps_stay_within_range_in_floats():
    """Rounding never makes the result of one map unacceptable to the other."""
    for m in range(2, 200):
        rho = theorems.identifiability_from_one_of(1.0, m)
        assert theorems.one_of_from_identifiability(rho, m) == pytest.approx(1, rel=1e-12)
        assert theorems.one_of_from_identifiability(1 / m, m) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("m", [3, 4, 5, 6])
def test_t9_more_candidates_are_not(m):
    """The mechanism of the proof is (ρ, m)-DI from ρ = 1/(m−1) on, and ε-BDP for no ε."""
    space, mechanism = wi.Subsets(m), wi.mechanisms.ExceptFirst()
    rows = mechanism.channel(space).on_worlds().exact
    channel = {
        w: [Fraction(int(v.p), int(v.q)) for v in row]
        for w, row in zip(oracle.worlds(m), rows, strict=True)
    }
    assert identifiability(channel, m, m) == Fraction(1, m - 1)
    assert oracle.largest(channel, oracle.swapped(m)) == math.inf
    assert DifferentialIdentifiability(m).measure(mechanism, space).value == Fraction(1, m - 1)
    assert DifferentialPrivacy("replace").measure(mechanism, space).value == math.inf


# T10: sampling.


def disagreements_t10(forth, back, count: int | None = None) -> int:
    """On how many instances e^ε of positive DPS and γ under D_F^β are not linked by two maps."""
    wrong = 0
    for rng, n, channel in instances(10, count):
        beta = Fraction(rng.randint(1, 19), 20)
        growth = oracle.largest(oracle.sample(channel, n, beta), oracle.added(n))
        priors = oracle.family_priors("fixed-probability", n, beta)
        priors = [{w: mass for w, mass in prior.items() if mass} for prior in priors]
        gamma = max(oracle.positive(prior, channel, n) for prior in priors)
        wrong += forth(growth, beta) != gamma or back(gamma, beta) != growth
    return wrong


def test_t10_privacy_under_sampling_is_membership_privacy_at_one_probability():
    """(β, ε)-positive DPS ⇔ (D_F^β, γ)-PMP: each measured alone, on the sampled channel and under
    the priors, the maps carry one into the other."""
    assert not disagreements_t10(theorems.sampled_from_sampling, theorems.sampling_from_sampled)


@pytest.mark.parametrize(
    "forth",
    [
        lambda growth, beta: growth,
        lambda growth, beta: max(growth, (growth - 1 + beta) / beta),
        lambda growth, beta: (
            growth if growth == math.inf else max(growth, (growth - 1 + beta) / growth)
        ),
        scarcely_more(theorems.sampled_from_sampling),
    ],
    ids=["first branch", "without e^ε", "without β", "scarcely more"],
)
def test_t10_can_fail(forth):
    assert disagreements_t10(forth, theorems.sampling_from_sampled, 50) > 5


def test_t10_inverse_can_fail():
    back = scarcely_more(theorems.sampling_from_sampled)
    assert disagreements_t10(theorems.sampled_from_sampling, back, 50) > 5


def test_t10_says_nothing_at_beta_one():
    """With β = 1 nobody is uncertain: every mechanism is 1-PMP, so PMP cannot give DPS."""
    channel = {frozenset(): [Fraction(1), Fraction(0)], frozenset({0}): [Fraction(0), Fraction(1)]}
    priors = oracle.family_priors("fixed-probability", 1, Fraction(1))
    assert max(oracle.positive(prior, channel, 1) for prior in priors) == 1
    assert SampledDifferentialPrivacy(1, "positive").measure(engine(channel, 1)).value == math.inf
    for map_ in (theorems.sampled_from_sampling, theorems.sampling_from_sampled):
        with refused("beta", 1):
            map_(Fraction(2), 1)


# T13: the two axioms.


def random_map(rng: random.Random, outputs: int) -> list[list[Fraction]]:
    """For each output a distribution over three new ones."""
    return [oracle.random_distribution(rng, 3, 0.3) for _ in range(outputs)]


def mixture(first: dict, second: dict, p: Fraction) -> dict:
    """`first` with probability p, otherwise `second`; the same outputs."""
    return {
        w: [p * a + (1 - p) * b for a, b in zip(first[w], second[w], strict=True)] for w in first
    }


def test_t13_a_mixture_is_no_worse_than_the_worse_part():
    """Under one prior, and so under every family: γ of the mixture ≤ the larger γ; NMP alike."""
    for rng, n, first in instances(13):
        second = oracle.random_channel(rng, n, len(first[frozenset()]))
        p = Fraction(rng.randint(0, 8), 8)
        mixed = mixture(first, second, p)
        prior = random_prior(rng, n)
        for smallest in (oracle.positive, oracle.negative):
            parts = [smallest(prior, part, n) for part in (first, second)]
            assert smallest(prior, mixed, n) <= theorems.mixed(*parts)


def test_t13_post_processing_does_not_raise_the_level():
    """Under one prior, and so under every family, for random maps of the outputs; NMP alike."""
    for rng, n, channel in instances(14):
        table = random_map(rng, len(channel[frozenset()]))
        after = {
            w: [sum(v * row[o] for v, row in zip(values, table, strict=True)) for o in range(3)]
            for w, values in channel.items()
        }
        prior = random_prior(rng, n)
        for smallest in (oracle.positive, oracle.negative):
            level = smallest(prior, channel, n)
            assert smallest(prior, after, n) <= theorems.post_processed(level)


# Lemma 4.9: the coupling.


def fixed_size_priors(seed: int, count: int):
    """(rng, n, p, size, the prior from its definition): n ≤ 5, zeros and ones among p."""
    rng = random.Random(seed)
    found = 0
    while found < count:
        n = rng.randint(1, 5)
        p, size = chances(rng, n), rng.randint(0, n)
        prior = oracle.fixed_size(p, size)
        if prior is not None:
            found += 1
            yield rng, n, p, size, prior


def is_coupling(pairs: dict, prior: dict, t: int) -> bool:
    """T2 ⊂ T1, one smaller, with margins Pr[T1 | ¬t] and Pr[T2 ∪ {t} | t] exactly."""
    belief = sum(mass for world, mass in prior.items() if t in world)
    without = {w: mass / (1 - belief) for w, mass in prior.items() if t not in w}
    with_it = {w - {t}: mass / belief for w, mass in prior.items() if t in w}
    nested = all(small < large and len(large - small) == 1 for large, small in pairs)
    margins: tuple[dict, dict] = ({}, {})
    for worlds, mass in pairs.items():
        for margin, world in zip(margins, worlds, strict=True):
            margin[world] = margin.get(world, Fraction(0)) + mass
    return nested and min(pairs.values()) > 0 and margins == (without, with_it)


def test_coupling_has_the_margins_and_is_nested():
    """Lemma 4.9 holds for every uncertain entity; a certain one is refused."""
    coupled = certain = 0
    for _rng, n, p, size, prior in fixed_size_priors(49, 2 * Amount.cases):
        space, stated = wi.Subsets(n), wi.priors.FixedSize(p, size)
        for t in range(n):
            if 0 < sum(mass for world, mass in prior.items() if t in world) < 1:
                assert is_coupling(theorems.build_coupling(stated, space, t), prior, t)
                coupled += 1
            else:
                with refused("entity"):
                    theorems.build_coupling(stated, space, t)
                certain += 1
    assert coupled >= Amount.cases and certain >= Amount.cases


def test_coupling_check_can_fail():
    """Moving a thousandth of the mass, or pairing with the other world, is noticed."""
    moved = 0
    for rng, n, p, size, prior in fixed_size_priors(50, 80):
        for t in range(n):
            if not 0 < sum(mass for world, mass in prior.items() if t in world) < 1:
                continue
            pairs = theorems.build_coupling(wi.priors.FixedSize(p, size), wi.Subsets(n), t)
            chosen = rng.choice(sorted(pairs, key=str))
            assert not is_coupling({**pairs, chosen: pairs[chosen] * Fraction(999, 1000)}, prior, t)
            assert not is_coupling({(b, a): mass for (a, b), mass in pairs.items()}, prior, t)
            moved += 1
    assert moved > 40


def test_coupling_does_not_exist_for_every_prior_of_known_size():
    """The lemma needs independence: with {0,1} or {2,3} in, no nested pairing exists."""
    correlated = wi.priors.Table({0b0011: Fraction(1, 2), 0b1100: Fraction(1, 2)})
    with pytest.raises(WhosinError, match="no coupling exists: only 0 of the mass"):
        theorems.build_coupling(correlated, wi.Subsets(4), 0)


def test_coupling_carries_bounded_dp_to_fixed_sizes():
    """Equation (11): Pr[S|t] and Pr[S|¬t] are the same mixture of neighbouring worlds."""
    for rng, n, p, size, prior in fixed_size_priors(51, 80):
        channel = oracle.random_channel(rng, n, 2)
        for t in range(n):
            sides = [{w: m for w, m in prior.items() if (t in w) == side} for side in (True, False)]
            if not all(sides):
                continue
            pairs = theorems.build_coupling(wi.priors.FixedSize(p, size), wi.Subsets(n), t)
            inside = sum(mass * channel[small | {t}][0] for (_, small), mass in pairs.items())
            outside = sum(mass * channel[large][0] for (large, _), mass in pairs.items())
            assert [inside, outside] == conditional(sides, channel, (0,))


# Parameters out of range.


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: theorems.one_of_from_identifiability(Fraction(1, 2), 1), "m"),
        (lambda: theorems.one_of_from_identifiability(Fraction(1, 4), 3), "rho"),
        (lambda: theorems.identifiability_from_one_of(2, 1), "m"),
        (lambda: theorems.bounded_from_identifiability(0.4), "rho"),
        (lambda: theorems.identifiability_from_bounded(-1), "epsilon"),
        (lambda: theorems.sampled_from_sampling(2, 0), "beta"),
        (lambda: theorems.sampled_from_sampling(Fraction(1, 2), Fraction(1, 2)), "growth"),
        (lambda: theorems.sampling_from_sampled(0, Fraction(1, 2)), "gamma"),
        (lambda: theorems.mixed(), "gammas"),
        (lambda: theorems.mixed(2, Fraction(1, 2)), "gamma"),
        (lambda: theorems.post_processed(0), "gamma"),
        (lambda: theorems.identifiability_from_dp(-1, 0), "epsilon"),
        (lambda: theorems.dp_from_identifiability(1, -1), "prior spread"),
    ],
)
def test_parameters_out_of_range_are_refused(call, field):
    with refused(field):
        call()


def test_infinite_and_enormous_levels_pass_through():
    """No level is too large: infinity maps to infinity or certainty, huge ratios are computed."""
    huge = Fraction(10) ** 400
    anyone, pairs = (
        PositiveMembership(each) for each in (wi.families.Independent(), wi.families.Cliques(2))
    )
    assert carried(800.0, SIGNED["positive"], anyone) == math.inf
    assert carried(400.0, SIGNED["positive"], pairs) == math.inf
    assert close(carried(huge, anyone, SIGNED["positive"]), 400 * math.log(10))
    assert close(theorems.bounded_from_identifiability(huge / (1 + huge)), 400 * math.log(10))
    assert theorems.bounded_from_identifiability(1) == math.inf
    assert theorems.identifiability_from_bounded(math.inf) == 1
    assert theorems.one_of_from_identifiability(1, 3) == math.inf
    assert theorems.identifiability_from_one_of(math.inf, 3) == 1
    assert theorems.sampled_from_sampling(math.inf, Fraction(1, 2)) == math.inf
    assert theorems.sampled_from_sampling(huge, Fraction(1, 2)) == huge
    assert theorems.sampling_from_sampled(math.inf, Fraction(1, 2)) == math.inf
    assert beliefs.gamma(huge, Fraction(1, 2)) == (huge + 1) / 2
    assert beliefs.posterior(huge, Fraction(1, 2)) == huge / (1 + huge)
    assert beliefs.worst_belief(huge, Fraction(0), Fraction(1)).gamma == huge
    assert beliefs.largest_ratio(0, math.inf) == math.inf


def test_differential_privacy_is_never_negative():
    """Rows of floats sum to 1 only nearly; the level that comes of it is still at least 0."""
    channel = wi.Channel(wi.Subsets(1), [[0.5 + 2e-10] * 2, [0.5 - 2e-10] * 2])
    assert DifferentialPrivacy("add-remove", "positive").measure(channel).value == 0


# The references that levels print.


def every_level():
    """A level from each notion, against each family where it takes one."""
    channel = wi.Channel(wi.Subsets(2), [[1, 0], [0, 1], [0, 1], [1, 0]])
    small = {"one-of": wi.families.OneOf(2), "cliques": wi.families.Cliques(2)}
    small["explicit"] = wi.families.Explicit(wi.priors.Uniform())
    families = [
        small[name] if name in small else wi.families.read_family(kind.example)
        for name, kind in wi.families.FAMILY_KINDS.items()
        if not kind.about_records
    ]
    families += [wi.families.Independent(), wi.families.FixedSize()]
    band = (Fraction(1, 4), Fraction(1, 2))
    families += [wi.families.Independent(*band), wi.families.FixedSize(*band)]
    for family, notion in product(families, (PositiveMembership, NegativeMembership)):
        yield type(notion(family)), notion(family).measure(channel)
    for relation in ("add-remove", "replace"):
        yield DifferentialPrivacy, DifferentialPrivacy(relation).measure(channel)
    yield DifferentialIdentifiability, DifferentialIdentifiability(2).measure(channel)
    yield SampledDifferentialPrivacy, SampledDifferentialPrivacy(0.5).measure(channel)
    response = wi.mechanisms.RandomizedResponse(keep=Fraction(3, 4)).channel(wi.Records(2, 2))
    prior = wi.priors.Uniform()
    yield wi.notions.SemanticPrivacy, wi.notions.SemanticPrivacy().measure(response)
    for kind in NOTION_KINDS.values():
        fields = {
            name for name, each in kind.__dataclass_fields__.items() if each.default is MISSING
        }
        about_both = kind not in (SampledDifferentialPrivacy, DifferentialPrivacy)
        if about_both and fields <= {"prior", "gain"}:
            given = {"prior": prior, "gain": "identity"}
            yield kind, kind(**{name: given[name] for name in fields}).measure(response)


def test_every_theorem_of_a_level_is_in_the_references():
    levels = list(every_level())
    assert {notion for notion, _ in levels} == set(NOTION_KINDS.values())
    for _notion, level in levels:
        assert set(level.theorems) <= set(THEOREMS)


def test_every_theorem_of_a_family_is_in_the_references():
    for family in wi.families.FAMILY_KINDS.values():
        assert set(family.theorems) <= set(THEOREMS)


def test_every_theorem_number_in_the_code_is_in_the_references():
    """Also those in branches that no level above went through."""
    used = set()
    for path in Path(wi.__file__).parent.rglob("*.py"):
        used.update(re.findall(r'"(T\d+)"', path.read_text(encoding="utf-8")))
    assert {"T1", "T11"} <= used <= set(THEOREMS)


def keys_named(source: str) -> set[str]:
    """The keys of papers named as in "Tramèr15, Definition 8"."""
    plain = unicodedata.normalize("NFKD", source).encode("ascii", "ignore").decode()
    return {name.lower() for name in re.findall(r"\b[A-Z][a-z]+\d\d\b", plain)}


def test_every_paper_is_in_the_references():
    for number, theorem in THEOREMS.items():
        assert theorem.number == number and theorem.statement and theorem.source
        assert theorem.papers and set(theorem.papers) <= set(PAPERS)
        assert keys_named(theorem.source) <= set(theorem.papers)
    for family in wi.families.FAMILY_KINDS.values():
        assert keys_named(family.source) <= set(PAPERS)
    for key, paper in PAPERS.items():
        assert paper.key == key
        assert paper.bibtex().startswith(f"@misc{{{key}, author = {{")
        assert str(paper.year) in str(paper)
