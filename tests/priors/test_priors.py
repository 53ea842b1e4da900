"""Priors against brute force, and families that contain what they say they contain."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest

import oracle
import whosin as wi
from checking import bounds, probability, random_priors
from refusals import refused
from whosin import families, priors

HALF = Fraction(1, 2)
THIRD = Fraction(1, 3)


def cases(rng: random.Random, n: int) -> list[tuple[priors.Prior, dict]]:
    """Each kind of prior with its distribution, enumerated from the definition."""
    p = [probability(rng) for _ in range(n)]
    unsure = [probability(rng, ends=False) for _ in range(n)]
    one, size = probability(rng, ends=False), rng.randint(0, n)
    sizes = oracle.random_distribution(rng, n + 1)
    table = oracle.random_distribution(rng, 2**n)
    by_set = {w: m for w, m in zip(oracle.worlds(n), table, strict=True) if m}
    everywhere = {w: math.comb(n, len(w)) for w in oracle.worlds(n)}
    listed: list[tuple[priors.Prior, Any]] = [
        (priors.Independent(p), oracle.independent(p)),
        (priors.Independent(one), oracle.independent([one] * n)),
        (priors.Uniform(), {w: Fraction(1, 2**n) for w in everywhere}),
        (priors.FixedSize(unsure, size), oracle.fixed_size(unsure, size)),
        (priors.FixedSize(one, size), oracle.fixed_size([one] * n, size)),
        (priors.Exchangeable(sizes), {w: sizes[len(w)] / c for w, c in everywhere.items()}),
        (priors.Table(table), by_set),
        (priors.Table(by_set), by_set),
    ]
    if mixed := oracle.fixed_size(p, size):
        listed.append((priors.FixedSize(p, size), mixed))
    return listed


def instances(seed: int, count: int = 16, least: int = 1):
    rng = random.Random(seed)
    for _ in range(count):
        n = rng.randint(least, 4)
        yield rng, n, wi.Subsets(n)


def test_probabilities():
    """Pr[T] for every world, exactly."""
    for rng, n, space in instances(1):
        for prior, truth in cases(rng, n):
            expected = [truth.get(world, Fraction(0)) for world in oracle.worlds(n)]
            assert prior.probabilities(space) == expected
            assert prior.as_table(space).probabilities(space) == expected


def test_beliefs():
    """Pr[t ∈ T] for every entity, exactly."""
    for rng, n, space in instances(2):
        for prior, truth in cases(rng, n):
            for t in range(n):
                assert prior.belief(space, t) == sum(m for w, m in truth.items() if t in w)


def conditional(truth: dict, n: int, t: int, inside: bool) -> list[Fraction]:
    kept = {w: m for w, m in truth.items() if (t in w) == inside}
    return [kept.get(w, Fraction(0)) / sum(kept.values()) for w in oracle.worlds(n)]


def test_conditionals():
    """Pr[· | t] and Pr[· | ¬t], exactly and in floats."""
    for rng, n, space in instances(3):
        lattice = wi.spaces.CountLattice.single(space)
        for prior, truth in cases(rng, n):
            for t in range(n):
                if not 0 < prior.belief(space, t) < 1:
                    continue
                expected = [conditional(truth, n, t, inside) for inside in (True, False)]
                exact = prior.given(lattice, t, wi.exact.flint_rational)
                assert [list(map(wi.exact.rational, side)) for side in exact] == expected
                for side, right in zip(prior.given(lattice, t, float), expected, strict=True):
                    assert side.dtype == float
                    assert list(side) == pytest.approx([float(v) for v in right], abs=1e-15)


def moved(prior: priors.Prior, space: wi.Subsets, t: int, wanted: Fraction) -> priors.Prior:
    """The t-scaled prior with Pr[t] as wanted (Li13 Definition 3.3)."""
    now = prior.belief(space, t)
    factors = (1 - wanted) / (1 - now), wanted / now
    return priors.Table(
        {w: mass * factors[w >> t & 1] for w, mass in enumerate(prior.probabilities(space)) if mass}
    )


def test_tables_by_names():
    """Worlds may be written as sets of names, as numbers, or as a list in world order."""
    space = wi.Subsets(["ann", "bob"])
    by_name = priors.Table({frozenset(): HALF, frozenset({"bob"}): HALF})
    for same in (priors.Table({0: HALF, 2: HALF}), priors.Table([HALF, 0, HALF, 0])):
        assert same.probabilities(space) == by_name.probabilities(space)


def test_large_priors_stay_cheap():
    """Beliefs of priors over many entities need no table."""
    space = wi.Subsets(60)
    assert priors.FixedSize(HALF, 6).belief(space, 3) == Fraction(1, 10)
    assert priors.Exchangeable([0] * 30 + [1] + [0] * 30).belief(space, 3) == HALF
    assert priors.Independent(0.25).belief(space, 59) == Fraction(1, 4)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: priors.Independent(2), "p"),
        (lambda: priors.Independent([HALF, -1]), "p"),
        (lambda: priors.Independent([]), "p"),
        (lambda: priors.Independent(math.nan), "p"),
        (lambda: priors.Independent("half"), "p"),
        (lambda: priors.Independent([HALF]).check(wi.Subsets(2)), "p"),
        (lambda: priors.FixedSize(HALF, -1), "size"),
        (lambda: priors.FixedSize(HALF, 1.0), "size"),  # type: ignore[arg-type]
        (lambda: priors.FixedSize(HALF, True), "size"),
        (lambda: priors.FixedSize(2, 1), "p"),
        (lambda: priors.FixedSize(HALF, 3).check(wi.Subsets(2)), "size"),
        (lambda: priors.FixedSize([1, 1], 1).check(wi.Subsets(2)), "size"),
        (lambda: priors.Exchangeable([HALF]), "sizes"),
        (lambda: priors.Exchangeable([2, -1]), "sizes"),
        (lambda: priors.Exchangeable([0, 1]).check(wi.Subsets(2)), "sizes"),
        (lambda: priors.Table([HALF]), "probabilities"),
        (lambda: priors.Table([2, -1]), "probabilities"),
        (lambda: priors.Table([HALF, HALF]).check(wi.Subsets(2)), "probabilities"),
        (lambda: priors.Table({4: 1}).check(wi.Subsets(2)), "world"),
        (lambda: priors.Table({("zoe",): 1}).check(wi.Subsets(2)), "entity"),
    ],
)
def test_wrong_priors(make, field):
    """A prior that is none says which field, what is accepted and what came."""
    with refused(field):
        make()


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: families.Independent(0.6, 0.4), "low"),
        (lambda: families.Independent(0, 0), "low and high"),
        (lambda: families.FixedSize(-1, 1), "low"),
        (lambda: families.FixedSize(1, 1), "low and high"),
        (lambda: families.OneOf(1), "m"),
        (lambda: families.OneOf(2.0), "m"),  # type: ignore[arg-type]
        (lambda: families.OneOf(3).check(wi.Subsets(2)), "m"),
        (lambda: families.FixedProbability(0), "beta"),
        (lambda: families.FixedProbability(1), "beta"),
        (lambda: families.FixedProbability(2), "beta"),
        (lambda: families.Cliques(0), "k"),
        (lambda: families.Cliques(True), "k"),
        (lambda: families.Explicit([]), "priors"),
        (lambda: families.Explicit([HALF]), "priors"),  # type: ignore[list-item]
        (lambda: families.Explicit(priors.Table([1, 0])).check(wi.Subsets(2)), "probabilities"),
    ],
)
def test_wrong_families(make, field):
    """A family that is none says which field, what is accepted and what came."""
    with refused(field):
        make()


# Members of families, drawn at random from the definitions.


def beliefs_in(rng: random.Random, n: int, low: Fraction, high: Fraction) -> list[Fraction]:
    inside = [low + (high - low) * Fraction(rng.randint(0, 4), 4) for _ in range(n)]
    return [rng.choice([p, p, p, Fraction(0), Fraction(1)]) for p in inside]


def clique_prior(rng: random.Random, n: int, k: int) -> priors.Prior:
    """Disjoint groups of at most k entities, each in or out as one."""
    entities = rng.sample(range(n), n)
    groups = []
    while entities:
        size = rng.randint(1, k)
        groups.append(entities[:size])
        entities = entities[size:]
    mass: dict[frozenset, Fraction] = {frozenset(): Fraction(1)}
    for group in groups:
        p = probability(rng)
        mass = {
            world | extra: m * q
            for world, m in mass.items()
            for extra, q in ((frozenset(group), p), (frozenset(), 1 - p))
            if q
        }
    return priors.Table(mass)


def member(rng: random.Random, family: families.Family, n: int) -> priors.Prior:
    """A prior of the family on n entities."""
    match family:
        case families.AnyPrior():
            return rng.choice(random_priors(rng, n))
        case families.AtMostKnown():
            low, high = family.bounds
            p = [low + (high - low) * Fraction(rng.randint(0, 4), 4) for _ in range(n)]
            for known in rng.sample(range(n), min(family.k, n)):
                p[known] = rng.choice([p[known], Fraction(0), Fraction(1)])
            return priors.Independent(p)
        case families.OneOfTwo():
            low, high = family.bounds
            p = [Fraction(rng.randint(0, 1)) for _ in range(n)]
            p[rng.randrange(n)] = (low + high) / 2
            return priors.Independent(p)
        case families.Independent():
            return priors.Independent(beliefs_in(rng, n, *family.bounds))
        case families.SwapOfTwo():
            order = rng.sample(range(n), n)
            known = rng.randint(0, n - 2)
            sure = {e: Fraction(1) for e in order[2 : 2 + known]}
            sure |= {order[0]: HALF, order[1]: HALF}
            return priors.FixedSize([sure.get(e, Fraction(0)) for e in range(n)], known + 1)
        case families.FixedSize():
            odds = [rng.choice([Fraction(0), HALF, HALF, Fraction(1)]) for _ in range(n)]
            return priors.FixedSize(
                odds, odds.count(Fraction(1)) + rng.randint(0, odds.count(HALF))
            )
        case families.OneOf():
            order = rng.sample(range(n), n)
            one = dict.fromkeys(order[: family.m], HALF)
            others = [e for e in order[family.m :] if family.literal or rng.random() < 0.5]
            one |= dict.fromkeys(others, Fraction(1))
            odds = [one.get(e, Fraction(0)) for e in range(n)]
            return priors.FixedSize(odds, 1 + odds.count(Fraction(1)))
        case families.FixedProbability():
            return priors.Independent([rng.choice([family.beta, 0]) for _ in range(n)])
        case families.Uninformed():
            return rng.choice([priors.Uniform(), priors.Independent(HALF)])
        case families.Cliques():
            return clique_prior(rng, n, family.k)
        case families.Explicit():
            return rng.choice(family.priors)
    raise AssertionError(family)


def one_of_each(rng: random.Random, n: int) -> list[families.Family]:
    low, high = bounds(rng)
    return [
        families.AnyPrior(),
        families.Independent(),
        families.Independent(low, high),
        families.OneOfTwo(),
        families.FixedSize(),
        families.SwapOfTwo(),
        families.OneOf(2),
        families.OneOf(n),
        families.OneOf(n, literal=True),
        families.FixedProbability(THIRD),
        families.Uninformed(),
        families.Cliques(rng.randint(1, n)),
        families.AtMostKnown(rng.randint(0, n), THIRD, Fraction(3, 4)),
        families.Explicit([priors.Independent(Fraction(1, 5)), priors.FixedSize(HALF, 1)]),
    ]


def test_every_family_is_drawn_from():
    """A new family must be added to these tests."""
    covered = {type(family) for family in one_of_each(random.Random(0), 3)}
    kinds = {kind for kind in families.FAMILY_KINDS.values() if not kind.about_records}
    assert covered == kinds


def test_families_contain_their_priors():
    """Members are recognised, also when they are written out world by world."""
    for rng, n, space in instances(5, least=2):
        for family in one_of_each(rng, n):
            prior = member(rng, family, n)
            assert family.contains(prior, space), (family, prior)
            assert family.contains(prior.as_table(space), space), (family, prior)


STRANGERS = [
    (families.Independent(), priors.Table({(): HALF, (0, 1): HALF})),
    (families.Independent(), priors.FixedSize(HALF, 1)),
    (families.Independent(THIRD, HALF), priors.Independent([HALF, HALF, Fraction(1, 4), 0])),
    (families.Independent(THIRD, HALF), priors.Independent([HALF, HALF, Fraction(3, 4), 1])),
    (families.OneOfTwo(), priors.Independent([HALF, HALF, 0, 1])),
    (families.OneOfTwo(), priors.Independent([1, 0, 0, 1])),
    (families.OneOfTwo(HALF, HALF), priors.Independent([THIRD, 0, 0, 1])),
    (families.FixedSize(), priors.Uniform()),
    (families.FixedSize(), priors.Table({(0, 1): HALF, (2, 3): HALF})),
    (families.FixedSize(), priors.Table({(0, 1): HALF, (0, 2): HALF / 2, (0,): HALF / 2})),
    (families.FixedSize(THIRD, HALF), priors.FixedSize([HALF, Fraction(1, 9), HALF, 1], 2)),
    (families.SwapOfTwo(), priors.FixedSize(HALF, 1)),
    (families.SwapOfTwo(), priors.Table({(0,): 1})),
    (families.OneOf(2), priors.FixedSize([HALF, THIRD, 0, 1], 2)),
    (families.OneOf(2), priors.FixedSize([HALF, HALF, HALF, 0], 1)),
    (families.OneOf(3), priors.FixedSize([HALF, HALF, HALF, 0], 2)),
    (families.OneOf(2, literal=True), priors.FixedSize([HALF, HALF, 0, 1], 2)),
    (families.FixedProbability(THIRD), priors.Independent([THIRD, 0, HALF, 0])),
    (families.FixedProbability(THIRD), priors.Independent([THIRD, 0, 1, 0])),
    (families.Uninformed(), priors.Independent([HALF, HALF, HALF, THIRD])),
    (families.Cliques(1), priors.Table({(): HALF, (0, 1): HALF})),
    (families.Cliques(2), priors.Table({(): HALF, (0, 1, 2): HALF})),
    (families.Cliques(4), priors.FixedSize(HALF, 1)),
    (families.AtMostKnown(1, THIRD, HALF), priors.Independent([HALF, HALF, 0, 1])),
    (families.AtMostKnown(4, THIRD, HALF), priors.Independent([HALF, HALF, 0, Fraction(1, 4)])),
    (families.AtMostKnown(4, THIRD, HALF), priors.FixedSize(HALF, 1)),
    (families.Explicit(priors.Uniform()), priors.Independent(THIRD)),
]


@pytest.mark.parametrize(("family", "stranger"), STRANGERS)
def test_families_refuse_strangers(family, stranger):
    """What lacks the structure, or leaves the bounds, is not a member."""
    assert not family.contains(stranger, wi.Subsets(4))


def test_mutated_tables_are_out():
    """Moving mass between two worlds of a full table breaks every structure on it."""
    rng, space = random.Random(6), wi.Subsets(3)
    for family in (families.Independent(), families.Cliques(3), families.Uninformed()):
        prior = priors.Uniform()
        masses = prior.probabilities(space)
        for a, b in combinations(range(8), 2):
            moved = list(masses)
            moved[a], moved[b] = moved[a] / 2, moved[b] + moved[a] / 2
            assert not family.contains(priors.Table(moved), space)
    masses = priors.FixedSize([THIRD, HALF, Fraction(3, 4), Fraction(1, 5)], 2).probabilities(
        wi.Subsets(4)
    )
    inside = [world for world, mass in enumerate(masses) if mass]
    for _ in range(20):
        a, b = rng.sample(inside, 2)
        moved = list(masses)
        moved[a], moved[b] = moved[a] / 2, moved[b] + moved[a] / 2
        assert not families.FixedSize().contains(priors.Table(moved), wi.Subsets(4))


NEAR = {"downward": Fraction(1, 10**6), "upward": 1 - Fraction(1, 10**6)}


def flagged(rng: random.Random, n: int) -> list[families.Family]:
    return [
        *one_of_each(rng, n),
        families.Independent(0, HALF),
        families.Independent(HALF, 1),
        families.OneOfTwo(0, HALF),
        families.FixedSize(0, HALF),
        families.FixedSize(HALF, 1),
        families.FixedSize(THIRD, 1 - THIRD),
        families.SwapOfTwo(HALF, HALF),
    ]


@pytest.mark.parametrize("direction", NEAR)
def test_declared_scalability_is_true(direction):
    """Li13 3.5, 3.9: a family that says it is scalable contains its members scaled to the end."""
    for rng, n, space in instances(7, least=2):
        for family in flagged(rng, n):
            prior = member(rng, family, n)
            if not getattr(family, direction) or not family.contains(prior, space):
                continue
            for t in range(n):
                if 0 < prior.belief(space, t) < 1:
                    assert family.contains(moved(prior, space, t, NEAR[direction]), space), family


@pytest.mark.parametrize("direction", NEAR)
def test_denied_scalability_has_a_counterexample(direction):
    """A family that says it is not has a member which leaves it when scaled to the end."""
    rng, n, space = random.Random(8), 3, wi.Subsets(3)
    for family in flagged(rng, n):
        if getattr(family, direction):
            continue
        members = (member(rng, family, n) for _ in range(100))
        assert any(
            not family.contains(moved(prior, space, t, NEAR[direction]), space)
            for prior in members
            if family.contains(prior, space)
            for t in range(n)
            if 0 < prior.belief(space, t) < 1
        ), family
