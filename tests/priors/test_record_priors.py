"""Priors on records, and households in the subset model, against enumeration."""

from __future__ import annotations

import random
import time
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import oracle
import record_oracle as records
import whosin as wi
from refusals import refused
from whosin import families, priors, statistics
from whosin.errors import InvalidInput, Unsupported
from whosin.exact import flint_rational, rational
from whosin.notions import BayesianDifferentialPrivacy, NegativeMembership, PositiveMembership

HALF = Fraction(1, 2)
INSTANCES = 24


def matrix(rng: random.Random, m: int, zeros: float) -> list:
    return [records.random_distribution(rng, m, zeros) for _ in range(m)]


def random_network(rng: random.Random, n: int, m: int) -> list:
    nodes = []
    for row in range(n):
        parents = tuple(parent for parent in range(row) if rng.random() < 0.6)
        keys = product(range(m), repeat=len(parents))
        nodes.append((parents, {key: records.random_distribution(rng, m) for key in keys}))
    return nodes


def record_cases(rng: random.Random, n: int, m: int) -> list[tuple[priors.Prior, dict]]:
    """Each kind of prior with its distribution, enumerated from the definition."""
    one = records.random_distribution(rng, m)
    rows = [records.random_distribution(rng, m) for _ in range(n)]
    table = records.random_prior(rng, n, m, 0.3)
    step, steps = matrix(rng, m, 0.3), [matrix(rng, m, 0.3) for _ in range(n - 1)]
    nodes = random_network(rng, n, m)
    listed = [
        (priors.Independent(one), records.independent([one] * n)),
        (priors.Independent(rows), records.independent(rows)),
        (priors.Uniform(), dict.fromkeys(table, Fraction(1, m**n))),
        (priors.Table(list(table.values())), table),
        (priors.Table({x: p for x, p in table.items() if p}), table),
        (priors.Table(dict(enumerate(table.values()))), table),
        (priors.MarkovChain(one, step), records.markov(one, [step] * (n - 1))),
        (priors.Network(nodes), records.network(nodes, m)),
    ]
    if n > 1:
        listed.append((priors.MarkovChain(one, steps), records.markov(one, steps)))
    if m == 2:
        sizes = records.random_distribution(rng, n + 1)
        listed.append((priors.Exchangeable(sizes), records.exchangeable(sizes, n)))
    return listed


def test_probabilities_of_tables():
    """Pr[x] of every prior and every table is that of the definition: exactly, and in floats."""
    rng = random.Random(1)
    for _ in range(INSTANCES):
        n, m = rng.randint(1, 3), rng.randint(2, 3)
        space = wi.Records(n, m)
        for prior, truth in record_cases(rng, n, m):
            assert sum(truth.values()) == 1
            found = prior.on_records(space, flint_rational)
            assert [rational(p) for p in found] == [truth[x] for x in space]
            floats = prior.on_records(space, float)
            assert list(floats) == pytest.approx([float(truth[x]) for x in space], abs=1e-14)


def test_marginals_of_a_chain():
    """Pr[x_j = v] is the sum over all tables with that value."""
    rng = random.Random(2)
    for _ in range(INSTANCES):
        n, m = rng.randint(1, 4), rng.randint(2, 3)
        one, step = records.random_distribution(rng, m), matrix(rng, m, 0.3)
        truth = records.markov(one, [step] * (n - 1))
        found = priors.MarkovChain(one, step).marginals(n)
        for j, v in product(range(n), range(m)):
            share = sum(p for x, p in truth.items() if x[j] == v)
            assert found[j, v] == pytest.approx(float(share), abs=1e-14)
            assert (found[j, v] > 0) == (share > 0)


def random_block(rng: random.Random, members: tuple) -> tuple:
    chosen = records.subsets(members)
    return members, dict(zip(chosen, records.random_distribution(rng, len(chosen)), strict=True))


def random_blocks(rng: random.Random, n: int) -> list:
    people, listed = list(range(n)), []
    rng.shuffle(people)
    while people:
        size = rng.randint(1, min(3, len(people)))
        listed.append(random_block(rng, tuple(people[:size])))
        people = people[size:]
    return listed


def lattices(rng: random.Random, space: wi.Subsets) -> list:
    n = space.size
    kinds = [
        statistics.Count(),
        statistics.Count(of=rng.sample(range(n), rng.randint(0, n))),
        statistics.Sum([rng.randint(1, 2) for _ in range(n)]),
        statistics.Histogram([rng.choice("ab") for _ in range(n)]),
        statistics.Max([rng.randint(1, 9) for _ in range(n)]),
    ]
    return [wi.spaces.CountLattice.single(space), *(s.lattice(space) for s in kinds)]


def spread(lattice, distribution: dict) -> list[Fraction]:
    """The distribution over the classes of a lattice, world by world."""
    out = [Fraction(0)] * lattice.worlds
    for present, mass in distribution.items():
        out[lattice.class_of(present)] += mass
    return out


def test_blocks_against_enumeration():
    """Blocks: mass, conditionals and beliefs on worlds, counts, sums, histograms and maxima."""
    rng = random.Random(4)
    for _ in range(INSTANCES):
        n = rng.randint(1, 5)
        space, listed = wi.Subsets(n), random_blocks(rng, n)
        prior, truth = priors.Blocks(listed), records.blocks(listed)
        assert sum(truth.values()) == 1
        assert prior.probabilities(space) == [
            truth.get(world, Fraction(0)) for world in oracle.worlds(n)
        ]
        for lattice in lattices(rng, space):
            mass = [rational(p) for p in prior.mass(lattice, flint_rational)]
            assert mass == spread(lattice, truth)
            for entity in range(n):
                inside = {w: p for w, p in truth.items() if entity in w}
                outside = {w: p for w, p in truth.items() if entity not in w}
                belief = sum(inside.values(), Fraction(0))
                assert prior.belief(space, entity) == belief
                if not 0 < belief < 1:
                    continue
                for part, share, found, floats in zip(
                    (inside, outside),
                    (belief, 1 - belief),
                    prior.given(lattice, entity, flint_rational),
                    prior.given(lattice, entity, float),
                    strict=True,
                ):
                    expected = spread(lattice, {w: p / share for w, p in part.items()})
                    assert [rational(p) for p in found] == expected
                    assert list(floats) == pytest.approx([float(p) for p in expected], abs=1e-14)


def test_cliques_are_blocks():
    """Blocks.cliques: every group together with probability p, or not at all."""
    rng = random.Random(5)
    for _ in range(20):
        n, p = rng.randint(1, 5), Fraction(rng.randint(0, 6), 6)
        groups = [members for members, _table in random_blocks(rng, n)]
        whole = {frozenset(): Fraction(1)}
        for group in groups:
            whole = {
                w | (frozenset(group) if present else frozenset()): mass * (p if present else 1 - p)
                for w, mass in whole.items()
                for present in (True, False)
            }
        found = priors.Blocks.cliques(groups, p).probabilities(wi.Subsets(n))
        assert found == [whole.get(world, Fraction(0)) for world in oracle.worlds(n)]


def noisy(statistic, n: int, alpha: Fraction) -> dict:
    """Geometric noise on a whole-number statistic of the set, at its possible values."""
    values = {world: statistic(world) for world in oracle.worlds(n)}
    outputs = sorted(set(values.values()))
    return {world: [alpha ** abs(v - y) for y in outputs] for world, v in values.items()}


def columns(channel: dict) -> list[dict]:
    count = len(next(iter(channel.values())))
    return [{world: [row[y]] for world, row in channel.items()} for y in range(count)]


def test_levels_of_blocks():
    """Explicit([Blocks]) on noisy counts, sums and maxima: the level of Li13 Definition 3.1 by
    enumeration. People of one household with the same belief as people of another must not be
    taken for alike."""
    rng = random.Random(6)
    for _ in range(INSTANCES):
        n, alpha = rng.randint(1, 4), Fraction(rng.randint(1, 4), 5)
        space = wi.Subsets(n)
        listed = [random_blocks(rng, n) for _ in range(2)]
        if rng.random() < 0.5:
            groups = [members for members, _table in listed[0]]
            listed[0] = [(g, {g: HALF, (): HALF}) for g in groups]
        family = families.Explicit([priors.Blocks(blocks) for blocks in listed])
        weights = [rng.randint(1, 2) for _ in range(n)]
        for statistic, function in (
            (statistics.Count(), len),
            (statistics.Sum(weights), lambda world, w=weights: sum(w[t] for t in world)),
            (statistics.Max(), lambda world: max((t + 1 for t in world), default=0)),
        ):
            channel = noisy(function, n, alpha)
            for notion, smallest in (
                (PositiveMembership(family), oracle.positive),
                (NegativeMembership(family), oracle.negative),
            ):
                truth = max(
                    smallest(records.blocks(blocks), column, n)
                    for blocks in listed
                    for column in columns(channel)
                )
                exact = notion.measure(wi.mechanisms.Geometric(statistic, alpha=alpha), space)
                assert exact.value == truth


def test_households_of_different_kinds():
    """A person alone and a couple that comes together, all with belief 1/2: the couple
    leaks more, and hiding it behind the single would understate the level."""
    prior = priors.Blocks([((0,), {(0,): HALF, (): HALF}), ((1, 2), {(1, 2): HALF, (): HALF})])
    notion = PositiveMembership(families.Explicit([prior]))
    level = notion.measure(wi.mechanisms.Geometric(statistics.Count(), alpha=HALF), wi.Subsets(3))
    assert level.value == Fraction(5, 2)
    assert level.witness.entity in (1, 2)


def test_many_households():
    """Sixty households of three, of two kinds: seconds, and the level is that of the
    distribution of the count, one household after the other."""
    began = time.process_time()
    joint = {(0, 1, 2): 0.3, (0, 1): 0.1, (2,): 0.1, (): 0.5}
    alone = dict.fromkeys(records.subsets(range(3)), 0.125)
    listed, scale = [], 2
    for house in range(60):
        table = joint if house % 2 else alone
        members = tuple(range(3 * house, 3 * house + 3))
        listed.append((members, {tuple(members[i] for i in s): p for s, p in table.items()}))
    family = families.Explicit([priors.Blocks(listed)])
    level = PositiveMembership(family).measure(
        wi.mechanisms.Laplace(statistics.Count(), scale), wi.Subsets(180)
    )
    assert time.process_time() - began < 60

    def added(counts, table):
        longer = np.zeros(len(counts) + 3)
        for present, p in table.items():
            longer[len(present) : len(present) + len(counts)] += p * counts
        return longer

    noise = np.exp(-np.abs(np.subtract.outer(np.arange(181), np.arange(181))) / scale)
    worst = 1.0
    for own, other in ((joint, alone), (alone, joint)):
        rest = np.ones(1)
        for table in [own] * 29 + [other] * 30:
            rest = added(rest, table)
        for person in range(3):
            inside = {s: p for s, p in own.items() if person in s}
            outside = {s: p for s, p in own.items() if person not in s}
            belief = sum(inside.values())
            ratio = (added(rest, inside) @ noise / belief) / (
                added(rest, outside) @ noise / (1 - belief)
            )
            r = ratio.max()
            worst = max(worst, r / ((r - 1) * belief + 1), (r - 1) * belief + 1)
    assert float(level.value) == pytest.approx(worst, rel=1e-9)


BAD = [
    (lambda: priors.MarkovChain((0.5, 0.6), ((1, 0), (0, 1))), "initial distribution"),
    (lambda: priors.MarkovChain((1, 0), ((1, 0), (0.5, 0.4))), "transition row 1"),
    (
        lambda: priors.MarkovChain((1, 0), [((1, 0), (0, 1)), ((0.7, 0.2), (0, 1))]),
        "transition 1, row 0",
    ),
    (lambda: priors.MarkovChain((1, 0), ((1, 0),)), "transition"),
    (lambda: priors.MarkovChain((1, 0), ((1, 0, 0), (0, 1, 0))), "transition"),
    (lambda: priors.MarkovChain((1, 0), ()), "transition"),
    (lambda: priors.MarkovChain((1.5, -0.5), ((1, 0), (0, 1))), "initial distribution"),
    (lambda: priors.Independent([[0.5, 0.4], [0.5, 0.5]]), "distribution of row 0"),
    (lambda: priors.Network([((), {(): (0.5, 0.4)})]), "row 0 given ()"),
    (lambda: priors.Network([((0,), {(0,): (1, 0)})]), "parents of row 0"),
    (
        lambda: priors.Network([((), {(): (1, 0)}), ((2,), {(0,): (1, 0)}), ((), {(): (1, 0)})]),
        "parents of row 1",
    ),
    (lambda: priors.Network([((), {(0,): (1, 0)})]), "table of row 0"),
    (lambda: priors.Blocks([((0, 1), {(): 1}), ((1,), {(): 1})]), "block 1"),
    (lambda: priors.Blocks([((0, 0), {(): 1})]), "block 0"),
    (lambda: priors.Blocks([((0,), {(0, 5): 1})]), "block 0"),
    (lambda: priors.Blocks([((0,), {(0,): 0.5, (): 0.4})]), "block 0"),
    (lambda: priors.Exchangeable([0.5, 0.4]), "sizes"),
    (lambda: priors.Table([0.5, 0.4]), "probabilities"),
]


@pytest.mark.parametrize(("build", "field"), BAD)
def test_bad_input_is_named(build, field):
    """A distribution that does not sum to 1 says which and by how much; wrong sizes, later parents
    and overlapping blocks are named."""
    with refused(field):
        build()


def test_exact_rows_must_sum_exactly():
    """Rationals are not forgiven what floats are."""
    third = Fraction(333333333333, 10**12)
    with refused("transition row 0"):
        priors.MarkovChain((1, 0), ((third, 2 * third), (0, 1)))
    priors.MarkovChain((1, 0), ((0.1 + 0.2, 0.7), (0, 1)))


WRONG_SIZE = [
    (priors.Independent((HALF, HALF)), wi.Records(2, 3)),
    (priors.Independent([(HALF, HALF)] * 3), wi.Records(2, 2)),
    (priors.Independent(HALF), wi.Records(2, 2)),
    (priors.Exchangeable([HALF, HALF]), wi.Records(2, 2)),
    (priors.Exchangeable([HALF, HALF, 0]), wi.Records(2, 3)),
    (priors.Table([HALF, HALF]), wi.Records(2, 2)),
    (priors.Table({4: 1}), wi.Records(2, 2)),
    (priors.Table({-1: 1}), wi.Records(2, 2)),
    (priors.Table({(0, 2): 1}), wi.Records(2, 2)),
    (priors.Table({(0,): 1}), wi.Records(2, 2)),
    (priors.MarkovChain((HALF, HALF), [(HALF, HALF)] * 2), wi.Records(2, 3)),
    (priors.MarkovChain((HALF, HALF), [[(HALF, HALF)] * 2] * 3), wi.Records(2, 2)),
    (priors.Network([((), {(): (HALF, HALF)})]), wi.Records(2, 2)),
    (priors.Network([((), {(): (HALF, HALF)}), ((0,), {(0,): (1, 0)})]), wi.Records(2, 2)),
    (priors.Network([((), {(): (1, 0, 0)})]), wi.Records(1, 2)),
]


@pytest.mark.parametrize(("prior", "space"), WRONG_SIZE)
def test_wrong_sizes_are_refused(prior, space):
    """A prior for another number of rows or values, or with a table that lacks a case."""
    with pytest.raises(InvalidInput):
        prior.on_records(space, float)


def test_chains_refuse_a_space_of_another_size():
    """Also where no table is made."""
    chain = priors.MarkovChain((HALF, HALF), [[(HALF, HALF)] * 2] * 3)
    for space in (wi.Records(3, 2), wi.Records(4, 3)):
        with pytest.raises(InvalidInput):
            BayesianDifferentialPrivacy(chain).measure(
                wi.mechanisms.Laplace(statistics.Sum(), 1), space
            )


RECORD_ONLY = [
    priors.MarkovChain((HALF, HALF), [(HALF, HALF)] * 2),
    priors.Network([((), {(): (HALF, HALF)})]),
]


@pytest.mark.parametrize("prior", RECORD_ONLY)
def test_record_priors_are_refused_on_subsets(prior):
    """A prior about records says nothing about who is in."""
    space = wi.Subsets(2)
    lattice = wi.spaces.CountLattice.single(space)
    for act in (
        lambda: prior.check(space),
        lambda: prior.mass(lattice, float),
        lambda: prior.given(lattice, 0, float),
        lambda: prior.belief(space, 0),
        lambda: PositiveMembership(families.Explicit([prior])).measure(
            wi.mechanisms.Laplace(statistics.Count(), 1), space
        ),
    ):
        with refused("prior", kind=Unsupported):
            act()


@pytest.mark.parametrize("prior", [priors.FixedSize(HALF, 1)])
def test_subset_priors_are_refused_on_records(prior):
    """And the reverse."""
    with refused("prior", kind=Unsupported):
        prior.on_records(wi.Records(2, 2), float)
    with refused("prior", kind=Unsupported):
        BayesianDifferentialPrivacy(prior).measure(
            wi.mechanisms.Laplace(statistics.Sum(), 1), wi.Records(2, 2)
        )


def test_rows_of_distributions_are_refused_on_subsets():
    """Independent with a distribution a row is about records, too."""
    with refused("p"):
        priors.Independent([(HALF, HALF)] * 2).check(wi.Subsets(2))


def test_blocks_cover_everyone():
    """An entity in no block, or a block with a stranger, is refused."""
    prior = priors.Blocks([((0,), {(): 1})])
    for space in (wi.Subsets(2), wi.Subsets(["ann"])):
        with refused("blocks", (0,)):
            prior.check(space)
    prior.check(wi.Subsets(1))


def test_values_that_never_occur_are_passed_over():
    """A value with no probability conditions nothing: the level is that of the others alone."""
    chain = priors.MarkovChain((HALF, HALF, 0), ((HALF, HALF, 0), (HALF, HALF, 0), (0, 0, 1)))
    two = priors.MarkovChain((HALF, HALF), ((HALF, HALF), (HALF, HALF)))
    mechanism = wi.mechanisms.Laplace(statistics.Sum((0, 1, 9)), 1)
    level = BayesianDifferentialPrivacy(chain).measure(mechanism, wi.Records(3, 3))
    plain = BayesianDifferentialPrivacy(two).measure(
        wi.mechanisms.Laplace(statistics.Sum(), 1), wi.Records(3, 2)
    )
    assert level.value == pytest.approx(float(plain.value), abs=1e-9) == pytest.approx(1)
    assert 2 not in level.witness.values
