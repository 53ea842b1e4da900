"""Mechanisms: their closed forms, their tables against brute force, and what they refuse."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import oracle
import whosin as wi
from amounts import cases
from checking import random_priors
from refusals import refused
from whosin import families, mechanisms, statistics
from whosin.errors import NoPureLevel, Unsupported, WhosinError
from whosin.notions import DifferentialPrivacy, PositiveMembership

HALF = Fraction(1, 2)


def gamma(mechanism, family, space=None):
    return PositiveMembership(family).measure(mechanism, space).value


def epsilon(mechanism, space=None, relation="add-remove"):
    return DifferentialPrivacy(relation).measure(mechanism, space).value


def exact_rows(channel: wi.Channel) -> list[list[Fraction]]:
    exact = channel.on_worlds().exact
    assert exact is not None
    return [[wi.exact.rational(entry) for entry in row] for row in exact]


def random_channel(rng: random.Random, n: int, outputs: int = 3) -> tuple[dict, wi.Channel]:
    truth = oracle.random_channel(rng, n, outputs)
    return truth, wi.Channel(wi.Subsets(n), oracle.table(truth))


# Noise with a density: THEORY F10.


def density_ratio(prior, space, centres, entity: int, point, scale: float) -> float:
    """Pr[point|t] / Pr[point|¬t] for Laplace noise, from the definition in floats."""
    sides = [0.0, 0.0]
    totals = [0.0, 0.0]
    for world, mass in enumerate(prior.probabilities(space)):
        apart = sum(abs(float(a) - b) for a, b in zip(centres[world], point, strict=True))
        side = world >> entity & 1
        sides[side] += float(mass) * math.exp(-apart / scale)
        totals[side] += float(mass)
    return sides[1] / totals[1] / (sides[0] / totals[0])


@pytest.mark.parametrize(
    "statistic",
    [
        statistics.Count(),
        statistics.Sum([2, -1, Fraction(1, 2)]),
        statistics.Max([1, 3, 3]),
        statistics.Histogram("aab"),
    ],
    ids=repr,
)
@cases(1, 8)
def test_laplace_is_decided_on_the_product_grid(statistic, count):
    """F10: on a fine grid of outputs no mixture exceeds the level, and a deciding point has it."""
    rng, space, scale = random.Random(1), wi.Subsets(3), 1.5
    labels, by_class = statistic.lattice(space).labels(), statistic.centres(space)
    centres = [by_class[label] for label in labels]
    axes = [sorted({float(c[i]) for c in centres}) for i in range(len(centres[0]))]
    fine = [np.arange(axis[0] - 1, axis[-1] + 1.01, 0.25) for axis in axes]
    for prior in [prior for _ in range(count) for prior in random_priors(rng, 3)]:
        unsure = [t for t in range(3) if 0 < prior.belief(space, t) < 1]
        level = gamma(mechanisms.Laplace(statistic, scale), families.Explicit(prior), space)

        def worst(points, prior=prior, unsure=unsure) -> Fraction | float:
            found: list[Fraction | float] = [1.0]
            for t, point in product(unsure, points):
                ratio = density_ratio(prior, space, centres, t, point, scale)
                found.append(wi.beliefs.gamma(ratio, float(prior.belief(space, t))))
            return max(found)

        assert worst(product(*fine)) <= level * (1 + 1e-12)
        assert worst(product(*axes)) == pytest.approx(float(level), rel=1e-12)


def test_centres_are_not_enough_in_two_dimensions():
    """F10: ½{(0,1),(1,0)} against (0,0) has ratio e at (1,1) and cosh 1 = 1.543 at centres."""
    space = wi.Subsets(["t", "u"])
    where = {frozenset("t"): (0, 1), frozenset("tu"): (1, 0)}
    mechanism = mechanisms.Laplace(lambda world: where.get(world, (0, 0)), 1)
    channel = mechanism.channel(space)
    assert set(channel.outputs) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    top = [(space.index("t"), HALF), (space.index("tu"), HALF)]
    ratios = {
        output: channel.ratio(top, [(space.index(()), Fraction(1))], number)
        for number, output in enumerate(channel.outputs)
    }
    assert float(ratios.pop((1, 1))) == pytest.approx(math.e, rel=1e-15)
    assert float(max(ratios.values())) == pytest.approx(math.cosh(1), rel=1e-15)
    prior = wi.priors.Table({(): HALF, "t": HALF / 2, "tu": HALF / 2})
    assert gamma(channel, families.Explicit(prior)) >= (math.e + 1) / 2


def test_laplace_levels_are_sensitivity_over_scale():
    """ε = Δ/scale exactly, where 1/scale is a float: add-remove and replace (THEORY 8)."""
    space = wi.Subsets(4)
    values = statistics.Sum([1, -2, 3, 3])
    assert epsilon(mechanisms.Laplace(statistics.Count(), 2), space) == 0.5
    assert epsilon(mechanisms.Laplace(statistics.Count(), 2), space, "replace") == 0
    assert epsilon(mechanisms.Laplace(values, 4), space) == 0.75
    assert epsilon(mechanisms.Laplace(values, 4), space, "replace") == 1.25
    assert epsilon(mechanisms.Laplace(statistics.Histogram("aabb"), 2), space, "replace") == 1
    assert epsilon(mechanisms.Laplace("max", 2), space) == 2
    assert epsilon(mechanisms.Laplace(len, "1/3"), space) == 3


def test_small_noise_does_not_underflow():
    """A likelihood below the range of doubles is neither 0 nor anybody's excuse: one entity brings
    5 and 800 bring 1, at scale 1; the level is 5."""
    statistic = statistics.Sum([1] * 800 + [5])
    assert epsilon(mechanisms.Laplace(statistic, 1), wi.Subsets(801)) == 5
    alpha = mechanisms.Geometric(statistic, alpha=Fraction(1, 3))
    assert epsilon(alpha, wi.Subsets(801)) == pytest.approx(5 * math.log(3))
    level = gamma(mechanisms.Laplace("count", 1), families.Uninformed(), wi.Subsets(500))
    assert level == pytest.approx((math.e + 1) / 2, rel=1e-12)


def test_geometric_by_alpha_and_by_scale():
    """α = e^(−1/scale): the same levels, and a rational α gives exact ones."""
    rng, space = random.Random(2), wi.Subsets(3)
    exact = mechanisms.Geometric(statistics.Count(), alpha=HALF)
    near = mechanisms.Geometric(statistics.Count(), scale=1 / math.log(2))
    for prior in random_priors(rng, 3):
        family = families.Explicit(prior)
        assert isinstance(gamma(exact, family, space), Fraction)
        assert gamma(exact, family, space) == pytest.approx(gamma(near, family, space), rel=1e-12)
    assert gamma(exact, families.Independent(), space) == 2
    assert gamma(exact, families.Cliques(3), space) == 8


def test_geometric_tails_add_nothing():
    """F10: the deciding points are worth the whole line of integers, summed far out."""
    rng, space, alpha = random.Random(3), wi.Subsets(3), Fraction(2, 3)
    for prior in random_priors(rng, 3):
        masses = dict(zip(oracle.worlds(3), prior.probabilities(space), strict=True))
        column = {w: [alpha ** abs(len(w) - o) for o in range(-3, 7)] for w in masses}
        pieces = [{w: [row[o]] for w, row in column.items()} for o in range(10)]
        truth = max(oracle.positive(masses, piece, 3) for piece in pieces)
        assert gamma(
            mechanisms.Geometric("count", alpha=alpha), families.Explicit(prior), space
        ) == (truth)


def test_gaussian_has_no_pure_level():
    """Unbounded ratios: refused, with the reason."""
    with pytest.raises(NoPureLevel, match="failure probability"):
        gamma(mechanisms.Gaussian("count", 1), families.Independent(), wi.Subsets(2))


# Finite mechanisms.


def test_exponential_mechanism_is_private():
    """Scores of sensitivity 1 give ε-DP; monotone scores do so without the 2."""
    rng = random.Random(4)
    for _ in range(12):
        n, outputs = rng.randint(1, 4), ["a", "b", "c"]
        liked = {o: set(rng.sample(range(n), rng.randint(0, n))) for o in outputs}

        def score(world, output, liked=liked) -> int:
            return len(world & liked[output])

        budget = Fraction(rng.randint(0, 30), 10)
        for monotone in (False, True):
            mechanism = mechanisms.Exponential(score, outputs, budget, monotone=monotone)
            assert epsilon(mechanism, wi.Subsets(n)) <= float(budget) + 1e-12
    table = [[0, 1], [1, 0]]
    assert epsilon(mechanisms.Exponential(table, "xy", 2), wi.Subsets(1)) == pytest.approx(1)


@pytest.mark.parametrize(
    "space", [wi.Subsets(1), wi.Subsets(3), wi.Records(2, 3), wi.Records(3, 2)]
)
def test_randomized_response(space):
    """The level is ε; entries are products over rows, and outputs are in the worlds' order."""
    subsets = isinstance(space, wi.Subsets)
    values = 2 if subsets else space.values
    relation = "add-remove" if subsets else "replace"
    for budget in (0, 0.5, 2):
        mechanism = mechanisms.RandomizedResponse(budget)
        assert epsilon(mechanism, space, relation) == pytest.approx(budget, abs=1e-12)
    keep = Fraction(3, 5)
    channel = mechanisms.RandomizedResponse(keep=keep).channel(space)
    move = (1 - keep) / (values - 1)
    for number, row in enumerate(exact_rows(channel)):
        world = space.world(number)
        true = [int(e in world) for e in space.entities] if subsets else list(world)
        assert list(channel.outputs[number]) == true
        for output, entry in zip(channel.outputs, row, strict=True):
            agree = [a == b for a, b in zip(true, output, strict=True)]
            assert entry == math.prod(keep if same else move for same in agree)
    ratio = keep / move
    assert epsilon(channel, relation=relation) == pytest.approx(math.log(ratio), abs=1e-12)


# Combinators against brute force.


def test_mixture():
    """Rows are weighted sums; equal outputs are one, different ones stay apart."""
    rng = random.Random(5)
    for _ in range(25):
        n, weight = rng.randint(1, 3), Fraction(rng.randint(0, 5), 5)
        first, one = random_channel(rng, n, 2)
        second, two = random_channel(rng, n, 3)
        two = wi.Channel(two.space, oracle.table(second), [1, 2, "new"])
        mixed = mechanisms.Mixture([one, two], [weight, 1 - weight]).channel()
        assert mixed.outputs == (0, 1, 2, "new")
        for world, row in zip(oracle.worlds(n), exact_rows(mixed), strict=True):
            a, b = first[world], second[world]
            a, b = [*a, 0, 0], [0, *b]
            assert row == [weight * x + (1 - weight) * y for x, y in zip(a, b, strict=True)]


def test_mixture_of_different_lattices():
    """Parts that see different statistics are spread over all worlds, in the worlds' order."""
    space = wi.Subsets(3)
    rows = [["1/2", "1/2"], ["1/3", "2/3"]]
    parts = []
    for entity in range(3):
        statistic = statistics.Histogram(["x" if e == entity else "y" for e in range(3)])
        lattice = statistic.lattice(space)
        side = [int(centre[0 if entity == 0 else 1] > 0) for centre in statistic.centres(space)]
        parts.append(wi.Channel(space, [rows[s] for s in side], lattice=lattice))
    single = wi.Channel(wi.Subsets(2), [["1/2", "1/2"]] * 4)
    mixed = mechanisms.Mixture(parts).channel()
    for world, row in zip(oracle.worlds(3), exact_rows(mixed), strict=True):
        assert row[0] == sum(Fraction(1, 3) if e in world else HALF for e in range(3)) / 3
    with refused("parts"):
        mechanisms.Mixture([parts[0], single]).channel()


def test_spreading_kinds_in_another_order():
    """A lattice of single entities in another order is not the order of the worlds."""
    space = wi.Subsets(2)
    counted = mechanisms.Geometric(statistics.Count(of=[1]), alpha=HALF).channel(space)
    assert exact_rows(counted) == [[1, HALF], [1, HALF], [HALF, 1], [HALF, 1]]


def test_post_processed():
    """A table, a mapping and a function, against the product of the matrices."""
    rng = random.Random(6)
    for _ in range(25):
        n = rng.randint(1, 3)
        truth, channel = random_channel(rng, n, 3)
        stage = [oracle.random_distribution(rng, 2) for _ in range(3)]
        after = mechanisms.PostProcessed(channel, stage, ["yes", "no"]).channel()
        assert after.outputs == ("yes", "no")
        merged = mechanisms.PostProcessed(channel, {0: "low", 1: "high", 2: "high"}).channel()
        same = mechanisms.PostProcessed(channel, lambda o: "low" if o == 0 else "high").channel()
        assert merged.outputs == same.outputs == ("low", "high")
        assert exact_rows(merged) == exact_rows(same)
        for world, row, halves in zip(
            oracle.worlds(n), exact_rows(after), exact_rows(merged), strict=True
        ):
            old = truth[world]
            assert row == [sum(old[i] * stage[i][j] for i in range(3)) for j in range(2)]
            assert halves == [old[0], old[1] + old[2]]


def test_sampled():
    """Keeping each entity with probability β, against all samples; also on a quotient."""
    rng = random.Random(7)
    for _ in range(16):
        n, beta = rng.randint(1, 4), Fraction(rng.randint(1, 6), 6)
        truth, channel = random_channel(rng, n)
        sampled = mechanisms.Sampled(channel, beta).channel()
        assert exact_rows(sampled) == oracle.table(oracle.sample(truth, n, beta))
        space = wi.Subsets(n)
        for statistic in (
            statistics.Count(),
            statistics.Histogram([rng.choice("ab") for _ in range(n)]),
            "max",
        ):
            noisy = mechanisms.Geometric(statistic, alpha=HALF)
            rows = dict(zip(oracle.worlds(n), exact_rows(noisy.channel(space)), strict=True))
            after = mechanisms.Sampled(noisy, beta).channel(space)
            assert exact_rows(after) == oracle.table(oracle.sample(rows, n, beta))


def test_sampled_laplace_matches_the_closed_form():
    """Amplification by sampling for a count: r = 1 + β(e^ε − 1)."""
    beta = Fraction(1, 4)
    mechanism = mechanisms.Sampled(mechanisms.Laplace("count", 1), beta)
    level = DifferentialPrivacy(direction="positive").measure(mechanism, wi.Subsets(5))
    assert level.value == pytest.approx(math.log1p(0.25 * (math.e - 1)), rel=1e-14)


def test_composed():
    """The joint channel is the product of the parts, world by world."""
    rng = random.Random(8)
    for _ in range(25):
        n = rng.randint(1, 3)
        (first, one), (second, two) = random_channel(rng, n, 2), random_channel(rng, n, 3)
        joint = mechanisms.Composed([one, two]).channel()
        assert joint.outputs == tuple(product(range(2), range(3)))
        for world, row in zip(oracle.worlds(n), exact_rows(joint), strict=True):
            assert row == [a * b for a, b in product(first[world], second[world])]


def test_composed_noise_adds_its_epsilon():
    """Under D_I the ε of Laplace counts add, also of different statistics and at small scales."""
    space = wi.Subsets(3)
    one, two = mechanisms.Laplace("count", 2), mechanisms.Laplace("count", 4)
    assert epsilon(mechanisms.Composed([one, two]), space) == 0.75
    of_one = mechanisms.Laplace(statistics.Count(of=[2]), 4)
    assert epsilon(mechanisms.Composed([one, of_one]), space) == 0.75
    tiny = mechanisms.Laplace("count", Fraction(1, 200))
    assert epsilon(mechanisms.Composed([tiny, tiny]), space) == 400
    growth = gamma(mechanisms.Composed([one, two]), families.Independent(), space)
    assert growth == pytest.approx(math.exp(0.75), rel=1e-15)


def test_combinators_need_finitely_many_outputs():
    """A density at its deciding points is not a distribution: no mixing, no post-processing."""
    noise, space = mechanisms.Laplace("count", 1), wi.Subsets(2)
    for mechanism in (mechanisms.Mixture([noise]), mechanisms.PostProcessed(noise, round)):
        with refused("mechanism", kind=Unsupported):
            mechanism.channel(space)


# Reading channels.


def test_from_function():
    """Outputs come in the order in which they first appear; missing ones have probability 0."""
    space = wi.Subsets(["ann", "bob"])
    channel = wi.Channel.from_function(
        space, lambda world: {"in": 1} if "ann" in world else {"out": HALF, "in": HALF}
    )
    assert channel.outputs == ("out", "in")
    assert exact_rows(channel) == [[HALF, HALF], [0, 1], [HALF, HALF], [0, 1]]


def write(tmp_path, content):
    path = tmp_path / "channel.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


SUBSETS = {"kind": "subsets", "entities": ["ann"]}


def test_load_exact_strings_and_decimals(tmp_path):
    """Strings are exact ratios, and decimals are what they spell where the rows then sum to 1."""
    rows = [["1/3", "2/3"], [0.1, 0.9]]
    path = write(tmp_path, {"space": SUBSETS, "outputs": ["x", "y"], "probabilities": rows})
    channel = wi.Channel.load(path)
    assert channel.outputs == ("x", "y") and channel.space.entities == ("ann",)
    assert exact_rows(channel) == [
        [Fraction(1, 3), Fraction(2, 3)],
        [Fraction(1, 10), Fraction(9, 10)],
    ]
    near = {"space": SUBSETS, "probabilities": [[0.3333333333, 0.6666666666], [1, 0]]}
    assert wi.Channel.load(write(tmp_path, near)).exact is None


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("{", "channel file"),
        ("[]", "channel file"),
        ({"space": SUBSETS}, "probabilities"),
        ({"space": SUBSETS, "probabilities": [[1], [1]], "output": []}, "key of the channel file"),
        ({"space": {"kind": "set"}, "probabilities": []}, "space kind"),
        ({"space": {**SUBSETS, "size": 2}, "probabilities": []}, "key of the space"),
        ({"space": {"kind": "subsets"}, "probabilities": []}, "entities"),
        ({"space": {"kind": "records", "rows": 1}, "probabilities": []}, "values"),
        ({"space": SUBSETS, "probabilities": 3}, "probabilities"),
        ({"space": SUBSETS, "probabilities": [[1], [None]]}, "probability in row 1, column 0"),
        ({"space": SUBSETS, "probabilities": [[1], [True]]}, "probability in row 1, column 0"),
        ({"space": SUBSETS, "probabilities": [[1], [0.5]]}, "sum of row 1 (world {ann})"),
        ('{"space": {"kind": "subsets", "entities": 1}, "probabilities": [[NaN], [1]]}', ""),
    ],
)
def test_load_refuses_bad_files(tmp_path, content, field):
    """One line that names the field, what is accepted and what came."""
    with refused(field):
        wi.Channel.load(write(tmp_path, content))


BAD_TABLES = [
    ([[0.5, 0.5], [0.5, 0.6]], "sum of row 1 (world {0})"),
    ([["1/2", "1/2"], ["1/2", "1/3"]], "sum of row 1 (world {0})"),
    ([[1.5, -0.5], [1, 0]], "probability in row 0 (world {}), column 1"),
    ([[Fraction(3, 2), Fraction(-1, 2)], [1, 0]], "probability in row 0 (world {}), column 1"),
    ([[1, 0], [math.nan, 1]], "probability in row 1 (world {0}), column 0"),
    ([[HALF, HALF], [math.nan, HALF]], "probability in row 1, column 0"),
    ([[1, 0], [math.inf, 0]], "sum of row 1 (world {0})"),
    ([[1, 0], ["nan", 0]], "probability in row 1, column 0"),
    ([[1, 0], ["x", 0]], "probability in row 1, column 0"),
    ([[1, 0], [None, 0]], "probability in row 1, column 0"),
    ([[1j, 0], [1, 0]], "probability in row 0, column 0"),
    ([[1, 0]], "number of rows"),
    ([[1, 0]] * 4, "number of rows"),
    ([[1, 0], [1]], "probabilities"),
    ([1, 0], "probabilities"),
    ([[], []], "probabilities"),
    (None, "probabilities"),
    ("text", "probabilities"),
]


@pytest.mark.parametrize(("table", "field"), BAD_TABLES)
def test_bad_tables(table, field):
    """A table that is not a channel gets one clear message: where, what is accepted, what came."""
    with refused(field):
        wi.Channel(wi.Subsets(1), table)


@pytest.mark.parametrize(
    ("outputs", "field"),
    [
        (["a"], "outputs"),
        (["a", "a"], "outputs"),
        ("ab", "outputs"),
        (3, "outputs"),
        (["a", {}], "outputs"),
    ],
)
def test_bad_outputs(outputs, field):
    """Names of outputs: one for each column, distinct."""
    with refused(field):
        wi.Channel(wi.Subsets(1), [[1, 0], [1, 0]], outputs)


def test_records_rows_are_named_by_their_values():
    """The message says which table of values the row is about."""
    with refused("sum of row 2 (world (1, 0))"):
        wi.Channel(wi.Records(2, 2), [[1], [1], ["1/2"], [1]])


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: mechanisms.KMax(1), "k"),
        (lambda: mechanisms.KMax(True), "k"),
        (lambda: mechanisms.KMax(2.0), "k"),  # type: ignore[arg-type]
        (lambda: mechanisms.KMax(3).channel(wi.Subsets(2)), "k"),
        (lambda: mechanisms.Laplace("count", 0), "scale"),
        (lambda: mechanisms.Laplace("count", math.inf), "scale"),
        (lambda: mechanisms.Laplace("counts", 1), "statistic"),
        (lambda: mechanisms.Laplace("count", 1).channel(), "space"),
        (lambda: mechanisms.Gaussian("count", -1), "scale"),
        (lambda: mechanisms.Geometric("count"), "scale or alpha"),
        (lambda: mechanisms.Geometric("count", 1, HALF), "scale or alpha"),
        (lambda: mechanisms.Geometric("count", alpha=1), "alpha"),
        (lambda: mechanisms.Geometric("count", alpha=2), "alpha"),
        (
            lambda: mechanisms.Geometric(statistics.Sum(["1/2"]), 1).channel(wi.Subsets(1)),
            "statistic",
        ),
        (lambda: mechanisms.RandomizedResponse(), "epsilon or keep"),
        (lambda: mechanisms.RandomizedResponse(-1), "epsilon"),
        (lambda: mechanisms.RandomizedResponse(keep=2), "keep"),
        (lambda: mechanisms.Exponential([[0]], ["a"], -1), "epsilon"),
        (lambda: mechanisms.Exponential([[0]], [], 1), "outputs"),
        (lambda: mechanisms.Exponential([[0]], ["a"], 1, sensitivity=0), "sensitivity"),
        (lambda: mechanisms.Exponential([[0]], ["a"], 1).channel(wi.Subsets(1)), "score"),
        (lambda: mechanisms.Sampled(mechanisms.KMax(2), 0), "beta"),
        (lambda: mechanisms.Sampled(mechanisms.KMax(2), 1.5), "beta"),
        (lambda: mechanisms.Mixture([]), "parts"),
        (lambda: mechanisms.Mixture([mechanisms.KMax(2)], [HALF, HALF]), "weights"),
        (lambda: mechanisms.Mixture([mechanisms.KMax(2)], [HALF]), "weights"),
        (lambda: mechanisms.Composed([]), "parts"),
        (lambda: mechanisms.ExceptFirst().channel(wi.Subsets(1)), "entities"),
        (lambda: mechanisms.PostProcessed(mechanisms.KMax(2), {}).channel(wi.Subsets(2)), "map"),
        (
            lambda: mechanisms.PostProcessed(mechanisms.KMax(2), [[1]]).channel(wi.Subsets(2)),
            "number of rows",
        ),
        (lambda: statistics.Sum([1]).lattice(wi.Subsets(2)), "values"),
        (lambda: statistics.Sum({0: 1}).lattice(wi.Subsets(2)), "values"),
        (lambda: statistics.Histogram("ab").lattice(wi.Subsets(3)), "cells"),
        (lambda: statistics.Count(of=["zoe"]).lattice(wi.Subsets(2)), "entity"),
    ],
)
def test_bad_parameters(make, field):
    """Every parameter outside its range is named, with the range and what came."""
    with refused(field):
        make()


@pytest.mark.parametrize("name", mechanisms.MECHANISM_KINDS)
def test_records_are_answered_or_refused(name):
    """A mechanism about entities says so on records; nothing fails in another way."""
    made = {
        "channel": lambda: wi.Channel(wi.Subsets(1), [[1], [1]]),
        "laplace": lambda: mechanisms.Laplace("count", 1),
        "geometric": lambda: mechanisms.Geometric("count", 1),
        "gaussian": lambda: mechanisms.Gaussian("count", 1),
        "exponential": lambda: mechanisms.Exponential([[0]] * 4, ["a"], 1),
        "randomized-response": lambda: mechanisms.RandomizedResponse(1),
        "k-max": lambda: mechanisms.KMax(2),
        "k-max-published": lambda: mechanisms.KMaxAsPublished(2),
        "except-first": lambda: mechanisms.ExceptFirst(),
        "exact": lambda: mechanisms.Exact(),
        "suppress": lambda: mechanisms.Suppress(5),
        "round": lambda: mechanisms.Round(5),
        "random-round": lambda: mechanisms.RandomRound(5),
        "cell-key": lambda: mechanisms.CellKey({0: {0: 1}}),
        "from-table": lambda: mechanisms.FromTable([[1], [1]]),
        "mixture": lambda: mechanisms.Mixture([mechanisms.RandomizedResponse(1)]),
        "post-processed": lambda: mechanisms.PostProcessed(
            mechanisms.RandomizedResponse(1), lambda o: o[0]
        ),
        "sampled": lambda: mechanisms.Sampled(mechanisms.RandomizedResponse(1), HALF),
        "composed": lambda: mechanisms.Composed([mechanisms.RandomizedResponse(1)] * 2),
    }
    answered = {"laplace", "geometric", "exponential", "randomized-response"}
    answered |= {"mixture", "post-processed", "composed"}
    if name in answered:
        assert made[name]().channel(wi.Records(2, 2)).space == wi.Records(2, 2)
    else:
        with pytest.raises(WhosinError):
            made[name]().channel(wi.Records(2, 2))


@pytest.mark.parametrize("budget", [20, 30, 34, 40, 400, "1/1000"])
@pytest.mark.parametrize("space", [wi.Subsets(2), wi.Records(2, 3)])
def test_randomized_response_keeps_its_level_however_large(budget, space):
    """1 − keep is a difference that floats lose: at 30 the level was 30.001, at 40 infinite."""
    mechanism = mechanisms.RandomizedResponse(epsilon=budget)
    relation = "add-remove" if isinstance(space, wi.Subsets) else "replace"
    level = wi.notions.DifferentialPrivacy(relation).measure(mechanism, space)
    claim = Fraction(budget)
    assert level.value == pytest.approx(float(claim), rel=1e-15)
    assert level.holds(claim) is True
    assert level.holds(claim * (1 - Fraction(1, 10**9))) is False
    channel = mechanism.channel(space)
    for floats, row in zip(channel.likelihoods, channel.rationals, strict=True):
        assert sum(row) == 1
        for near, entry in zip(floats, row, strict=True):
            truth = Fraction(int(entry.p), int(entry.q))
            assert abs(Fraction(*near.as_integer_ratio()) / truth - 1) < 1e-12


def test_likelihoods_too_small_for_doubles_are_not_impossible():
    dp, space = wi.notions.DifferentialPrivacy(), wi.Subsets(2)
    response = mechanisms.RandomizedResponse(epsilon=400)
    steep = mechanisms.Exponential(lambda world, o: len(world) * o, [0, 1], 2000)
    for mechanism, truth in (
        (mechanisms.Composed([response, response]), 800),
        (mechanisms.Mixture([response, response]), 400),
        (mechanisms.PostProcessed(response, lambda output: output), 400),
        (steep, 1000),
    ):
        assert dp.measure(mechanism, space).value == pytest.approx(truth, rel=1e-12)
    with refused("epsilon", "1e9"):
        mechanisms.RandomizedResponse(epsilon="1e9")
    with refused("epsilon"):
        mechanisms.Exponential(lambda world, o: len(world) * o, [0, 1], 10**400)
