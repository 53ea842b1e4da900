"""Every line of the printed map, walked through `convert` and held against brute force.

Each notion of the map stands here with its level from the definition, in exact rationals by
`oracle` and `record_oracle`. A line is sound when the level carried along it is never below the
other end's own; it is tight when some channel attains it, and equal on every channel where
`convert` calls it exact. Lines that are printed in both directions are walked in both.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import pytest

import oracle
import record_oracle as records
import whosin as wi
from refusals import refused
from whosin import families as f
from whosin import notions as n
from whosin import priors
from whosin.errors import NoImplication
from whosin.notions import Level
from whosin.theorems import convert
from whosin.theorems.notion_map import NOTION_EDGES

PEOPLE = 3
BETA, BAND = Fraction(1, 3), (Fraction(1, 5), Fraction(2, 3))
PMP, NMP = n.PositiveMembership, n.NegativeMembership


def log(ratio) -> float:
    """ln, rounded up, without the engine."""
    if ratio in (1, math.inf):
        return 0.0 if ratio == 1 else math.inf
    return math.nextafter(math.log(math.nextafter(float(ratio), math.inf)), math.inf)


def gamma_at(ratio, belief: Fraction):
    """The smallest γ of F2 for one ratio and one belief, from the posterior."""
    if ratio == math.inf:
        return math.inf
    after = ratio * belief / (ratio * belief + 1 - belief)
    return max(after / belief, (1 - belief) / (1 - after))


def worst(ratio, beliefs):
    return max(gamma_at(ratio, belief) for belief in beliefs)


# Who is in: a channel is {set: [probability of each output]}.


def both(c):
    return oracle.largest(c, oracle.added(PEOPLE) + oracle.reverse(oracle.added(PEOPLE)))


def up(c):
    return oracle.largest(c, oracle.added(PEOPLE))


def down(c):
    return oracle.largest(c, oracle.reverse(oracle.added(PEOPLE)))


def swap(c):
    return oracle.largest(c, oracle.swapped(PEOPLE))


def finite(name: str, parameter=None):
    listed = oracle.family_priors(name, PEOPLE, parameter)
    return lambda c: max(oracle.positive(prior, c, PEOPLE) for prior in listed)


def posterior_of_one_of(c, m: int):
    """ρ: the largest posterior of one of m candidates."""
    return max(
        oracle.beliefs(prior, c, t, event)[1] or Fraction(0)
        for prior in oracle.family_priors("one-of", PEOPLE, m)
        for t in frozenset.union(*prior) - frozenset.intersection(*prior)
        for event in oracle.events(len(c[frozenset()]))
    )


def some_bounded_sizes(c):
    """The largest γ of fixed-size priors whose beliefs lie in the band: of swaps at its ends, and
    of all equally likely; a lower end of the family's level."""
    listed = [
        oracle.two(a, b, p)
        for a, b in oracle.swapped(PEOPLE)
        for p in (Fraction(1, 3), Fraction(1, 2), Fraction(2, 3))
    ]
    listed += [oracle.fixed_size([Fraction(1, 2)] * PEOPLE, k) for k in (1, 2)]
    return max(oracle.positive(prior, c, PEOPLE) for prior in listed)


def one_known(c):
    """At most one person known, the others at an end of the band."""
    ends = [
        p
        for p in product((Fraction(0), Fraction(1), *BAND), repeat=PEOPLE)
        if sum(each in (0, 1) for each in p) <= 1
    ]
    listed = [{w: m for w, m in oracle.independent(list(p)).items() if m} for p in ends]
    return max(oracle.positive(prior, c, PEOPLE) for prior in listed)


@dataclass(frozen=True)
class Spot:
    """A notion of the map, and its level on a channel, by brute force."""

    notion: n.Notion
    brute: Callable


SETS = {
    "UDP": Spot(n.DifferentialPrivacy(), lambda c: log(both(c))),
    "positive UDP": Spot(n.DifferentialPrivacy("add-remove", "positive"), lambda c: log(up(c))),
    "negative UDP": Spot(n.DifferentialPrivacy("add-remove", "negative"), lambda c: log(down(c))),
    "BDP": Spot(n.DifferentialPrivacy("replace"), lambda c: log(swap(c))),
    "PMP under D_I": Spot(PMP(f.Independent()), up),
    "NMP under D_I": Spot(NMP(f.Independent()), down),
    "PMP under D_I^[a,b]": Spot(PMP(f.Independent(*BAND)), lambda c: worst(up(c), BAND)),
    "PMP under D_NI^k": Spot(
        PMP(f.Cliques(2)), lambda c: oracle.largest(c, oracle.grouped(PEOPLE, 2))
    ),
    "PMP under D_B": Spot(PMP(f.FixedSize()), swap),
    "PMP under D_B^[a,b]": Spot(PMP(f.FixedSize(*BAND)), some_bounded_sizes),
    "PMP under D_U": Spot(PMP(f.AnyPrior()), lambda c: oracle.largest(c, oracle.separated(PEOPLE))),
    "PMP under D_F^β": Spot(PMP(f.FixedProbability("1/3")), finite("fixed-probability", BETA)),
    "PMP under D_N": Spot(PMP(f.Uninformed()), finite("uninformed")),
    "PMP under D_K^k": Spot(PMP(f.AtMostKnown(1, *BAND)), one_known),
    "PMP under D_C^m": Spot(PMP(f.OneOf(3)), finite("one-of", 3)),
    "(ρ, m)-DI": Spot(n.DifferentialIdentifiability(3), lambda c: posterior_of_one_of(c, 3)),
    "(ρ, 2)-DI": Spot(n.DifferentialIdentifiability(2), lambda c: posterior_of_one_of(c, 2)),
    "(β, ε)-DPS": Spot(
        n.SampledDifferentialPrivacy(BETA, "positive"),
        lambda c: log(up(oracle.sample(c, PEOPLE, BETA))),
    ),
}


def random_sets(rng: random.Random) -> dict:
    return oracle.random_channel(rng, PEOPLE, rng.randint(2, 3), rng.choice([0, 0, 0.15]))


def only_the_first(share: Fraction) -> dict:
    """Output 1 depends on the first person alone: 1/5 without, `share`/5 with."""
    chance = {True: Fraction(share) / 5, False: Fraction(1, 5)}
    return {w: [1 - chance[0 in w], chance[0 in w]] for w in oracle.worlds(PEOPLE)}


def noisy_count() -> dict:
    """Geometric noise with ratio 2, cut off at 0 and n."""
    channel = {}
    for world in oracle.worlds(PEOPLE):
        row = [Fraction(1, 3) * Fraction(1, 2) ** abs(o - len(world)) for o in range(PEOPLE + 1)]
        row[0], row[-1] = 2 * row[0], 2 * row[-1]
        channel[world] = row
    return channel


def apart() -> dict:
    """Likelihoods 4 and 1 for the first and the second person alone, 2 otherwise."""
    of = {frozenset({0}): Fraction(4, 10), frozenset({1}): Fraction(1, 10)}
    return {
        w: [of.get(w, Fraction(2, 10)), 1 - of.get(w, Fraction(2, 10))] for w in oracle.worlds(3)
    }


def hidden(likely: int) -> dict:
    """Output 1 is four times as likely when the first is in and the other two are out."""
    of = {frozenset({0}): Fraction(likely, 10)}
    chance = {w: of.get(w, Fraction(1, 10)) for w in oracle.worlds(PEOPLE)}
    return {w: [p, 1 - p] for w, p in chance.items()}


ATTAINED_BY_SETS = {
    ("UDP", "negative UDP"): only_the_first(Fraction(1, 3)),
    ("UDP", "BDP"): apart(),
    ("positive UDP", "PMP under D_NI^k"): noisy_count(),
    ("BDP", "PMP under D_B^[a,b]"): None,  # a bound only, unless a + b = 1
    ("BDP", "PMP under D_C^m"): hidden(4),
    ("PMP under D_B", "PMP under D_C^m"): None,  # one of three has a belief of 1/3, D_B any
    ("PMP under D_I^[a,b]", "PMP under D_F^β"): None,  # at the ends of the band γ is larger
    ("PMP under D_I^[a,b]", "PMP under D_N"): None,
    ("PMP under D_NI^k", "PMP under D_I"): only_the_first(Fraction(3)),
    ("PMP under D_U", "PMP under D_NI^k"): only_the_first(Fraction(3)),
    ("PMP under D_U", "PMP under D_B"): only_the_first(Fraction(3)),
}
"""Channels on which a line leaves nothing to spare; `only_the_first` where none is named."""

# The values of rows: a channel is {tuple: [probability of each output]}.

DEFAULT = 0


@dataclass(frozen=True)
class Case:
    """A channel on records with a prior."""

    rows: int
    values: int
    prior: dict
    belief: wi.priors.Prior
    channel: dict


def random_records(rng: random.Random, full: bool, alone: bool, binary: bool) -> Case:
    rows, values = rng.choice([(1, 2), (2, 2)] if binary else [(1, 2), (1, 3), (2, 2), (2, 3)])
    zeros = 0 if full else 0.2
    belief: wi.priors.Prior
    if alone:
        listed = [records.random_distribution(rng, values, zeros) for _ in range(rows)]
        prior, belief = records.independent(listed), priors.Independent(listed)
    else:
        prior = records.random_prior(rng, rows, values, zeros)
        belief = priors.Table(list(prior.values()))
    channel = records.random_channel(rng, rows, values, rng.randint(2, 3), rng.choice([0, 0.15]))
    return Case(rows, values, prior, belief, channel)


def semantic(case: Case, prior: dict | None) -> float:
    """The best two-point belief; of two ratios for one (row, known, output)."""
    cases = records.semantic_cases(prior, case.channel, case.rows, DEFAULT)
    found = max((records.best_two_point(one, two) for *_, one, two in cases), default=0.0)
    return 1.0 if found > 1 - 1e-9 else found  # a limit: some likelihood is 0


def mean_shift(case: Case) -> Fraction:
    """The mean of |Pr[v|y] − Pr[v]| over y, half its sum over v; the largest over rows."""
    found = []
    for row in range(case.rows):
        total = Fraction(0)
        for y in range(len(next(iter(case.channel.values())))):
            seen = sum(p * case.channel[x][y] for x, p in case.prior.items())
            for value in range(case.values):
                before = sum(p for x, p in case.prior.items() if x[row] == value)
                joint = sum(
                    p * case.channel[x][y] for x, p in case.prior.items() if x[row] == value
                )
                total += abs(joint - before * seen) / 2
        found.append(total)
    return max(found)


def as_people(case: Case) -> dict:
    """The prior over sets of people: value 1 of row i is person i being in."""
    return {frozenset(i for i, v in enumerate(x) if v): p for x, p in case.prior.items() if p}


def membership(case: Case):
    channel = {frozenset(i for i, v in enumerate(x) if v): row for x, row in case.channel.items()}
    return oracle.positive(as_people(case), channel, case.rows)


def people(case: Case) -> wi.priors.Prior:
    number = {sum(1 << t for t in world): p for world, p in as_people(case).items()}
    return priors.Table(number)


ROWS = {
    "DP on records": (
        lambda case: n.DifferentialPrivacy("replace"),
        lambda case: log(records.replace_ratio(case.channel, case.rows, case.values)),
    ),
    "semantic privacy": (
        lambda case: n.SemanticPrivacy(DEFAULT),
        lambda case: semantic(case, None),
    ),
    "Bayesian DP": (
        lambda case: n.BayesianDifferentialPrivacy(case.belief),
        lambda case: log(records.bayesian_ratio(case.prior, case.channel, case.rows)),
    ),
    "Bayesian SP": (
        lambda case: n.BayesianSemanticPrivacy(case.belief, DEFAULT),
        lambda case: semantic(case, case.prior),
    ),
    "identifiability": (
        lambda case: n.Identifiability(case.belief),
        lambda case: log(records.identifiability(case.prior, case.channel, case.rows, case.values)),
    ),
    "PMP under D_*": (
        lambda case: n.RecordMembership(case.belief),
        lambda case: records.bayesian_ratio(case.prior, case.channel, case.rows),
    ),
    "PMP under {p_X}": (lambda case: PMP(f.Explicit([people(case)])), membership),
    "mutual information": (
        lambda case: n.MutualInformation(case.belief),
        lambda case: records.mutual_information(case.prior, case.channel),
    ),
    "mean shift": (lambda case: n.MeanShift(case.belief), mean_shift),
}


def response(rows: int, keep: Fraction, chances: list[Fraction]) -> Case:
    """Randomised response on binary rows under independent beliefs."""
    channel = {
        x: [
            math.prod(keep if a == b else 1 - keep for a, b in zip(x, y, strict=True))
            for y in records.worlds(rows, 2)
        ]
        for x in records.worlds(rows, 2)
    }
    listed = [[1 - p, p] for p in chances]
    return Case(rows, 2, records.independent(listed), priors.Independent(listed), channel)


def parity() -> Case:
    """Whether two rows agree, answered by randomised response: a ratio of 2 to the default in one
    table, of 1/2 in another."""
    channel = {x: [Fraction(1 + (sum(x) % 2), 3)] for x in records.worlds(2, 2)}
    channel = {x: [row[0], 1 - row[0]] for x, row in channel.items()}
    listed = [[Fraction(1, 3), Fraction(2, 3)]] * 2
    return Case(2, 2, records.independent(listed), priors.Independent(listed), channel)


EVEN, LEANING = Fraction(1, 2), Fraction(3, 4)
ATTAINED_BY_ROWS = {
    ("DP on records", "semantic privacy"): parity(),
    ("semantic privacy", "DP on records"): response(1, LEANING, [EVEN]),
    ("Bayesian DP", "Bayesian SP"): parity(),
    ("Bayesian SP", "Bayesian DP"): response(1, LEANING, [EVEN]),
    ("DP on records", "identifiability"): response(1, LEANING, [LEANING]),
    ("identifiability", "DP on records"): response(1, LEANING, [EVEN]),
    ("identifiability", "PMP under {p_X}"): response(1, LEANING, [EVEN]),
    ("DP on records", "mutual information"): response(2, LEANING, [Fraction(1, 3), LEANING]),
    ("mutual information", "mean shift"): None,  # Pinsker's inequality is never attained
}
"""Cases on which a line leaves nothing to spare; randomised response where none is named."""


def walked() -> list[tuple[str, str]]:
    """Every line of the map in the directions in which it is printed."""
    lines = [(edge.source, edge.target) for edge in NOTION_EDGES]
    return lines + [(edge.target, edge.source) for edge in NOTION_EDGES if edge.both_ways]


def carried(value, source: n.Notion, target: n.Notion, space=None) -> Level:
    return convert(Level(value, None, True, (), notion=source), target, space)


def never_below(found, truth) -> bool:
    """Exactly for fractions, and up to the rounding of a logarithm otherwise."""
    if isinstance(truth, Fraction):
        return found == math.inf or Fraction(found) >= truth
    return found >= truth * (1 - 1e-15) - 1e-15


def test_every_notion_of_the_map_is_here():
    """No line can be printed without being walked."""
    names = {name for edge in NOTION_EDGES for name in (edge.source, edge.target)}
    assert names == set(SETS) | set(ROWS)


@pytest.mark.parametrize("line", [line for line in walked() if line[0] in SETS], ids=" to ".join)
def test_lines_about_who_is_in(line):
    """Sound on random channels, equal where exact, and attained where that is claimed."""
    source, target = (SETS[name] for name in line)
    rng = random.Random(str(line))
    for _ in range(8):
        channel = random_sets(rng)
        found = carried(source.brute(channel), source.notion, target.notion)
        truth = target.brute(channel)
        assert never_below(found.value, truth)
        if found.exact:
            assert float(found.value) == pytest.approx(float(truth), rel=1e-12, abs=1e-12)
    channel = ATTAINED_BY_SETS.get(line, only_the_first(Fraction(3)))
    if channel is not None:
        found = carried(source.brute(channel), source.notion, target.notion)
        assert float(found.value) == pytest.approx(float(target.brute(channel)), rel=1e-12)


CONDITIONS = {  # (full support, independent rows, binary rows)
    ("Bayesian SP", "Bayesian DP"): (True, False, False),
    ("Bayesian DP", "DP on records"): (True, False, False),
    ("DP on records", "Bayesian DP"): (False, True, False),
    ("Bayesian SP", "semantic privacy"): (True, False, False),
    ("semantic privacy", "Bayesian SP"): (False, True, False),
    ("DP on records", "identifiability"): (True, False, False),
    ("identifiability", "DP on records"): (True, False, False),
    ("identifiability", "PMP under {p_X}"): (True, False, True),
    ("DP on records", "mutual information"): (False, True, True),
}


@pytest.mark.parametrize("line", [line for line in walked() if line[0] in ROWS], ids=" to ".join)
def test_lines_about_rows(line):
    """The same on records, under the conditions that the map prints."""
    (start, before), (end, after) = (ROWS[name] for name in line)
    full, alone, binary = CONDITIONS.get(line, (False, False, False))
    rng = random.Random(str(line))
    for number in range(20):
        case = random_records(rng, full, alone or number % 3 == 0, binary)
        if line == ("semantic privacy", "Bayesian SP") and not default_possible(case):
            continue
        space = wi.Records(case.rows, case.values)
        found = carried(before(case), start(case), end(case), space)
        truth = after(case)
        if (isinstance(truth, float) and "SP" in line[1] + line[0]) or "privacy" in line[1]:
            assert found.value >= float(truth) - 1e-9  # the brute force takes square roots
        else:
            assert never_below(found.value, truth)
        if found.exact:
            assert float(found.value) == pytest.approx(float(truth), rel=1e-9, abs=1e-9)
    case = ATTAINED_BY_ROWS.get(line, response(2, LEANING, [EVEN, EVEN]))
    if case is not None:
        space = wi.Records(case.rows, case.values)
        found = carried(before(case), start(case), end(case), space)
        assert float(found.value) == pytest.approx(float(after(case)), rel=1e-9)


def default_possible(case: Case) -> bool:
    return all(
        case.prior[records.replaced(x, row, DEFAULT)] > 0
        for x, p in case.prior.items()
        if p
        for row in range(case.rows)
    )


def test_the_notions_at_the_ends_are_measured_by_their_definitions():
    """`RecordMembership` and `MeanShift` against brute force, in rationals; floats never below."""
    rng = random.Random(33)
    for _ in range(30):
        case = random_records(rng, False, rng.random() < 0.5, False)
        rows = [case.channel[x] for x in records.worlds(case.rows, case.values)]
        made = wi.Channel(wi.Records(case.rows, case.values), rows)
        level = n.RecordMembership(case.belief).measure(made)
        assert level.exact and level.value == ROWS["PMP under D_*"][1](case)
        assert n.MeanShift(case.belief).measure(made).value == mean_shift(case)
        floats = wi.Channel(made.space, made.likelihoods)
        near = n.MeanShift(case.belief).measure(floats).value
        assert isinstance(near, float) and near == pytest.approx(float(mean_shift(case)), abs=1e-12)


# What was wrong, or not walked at all.


def test_a_swap_of_two_has_beliefs_p_and_1_minus_p():
    """Swaps with beliefs in 0.1..0.6 are swaps in 0.4..0.6 (THEORY 15): the ratio that a γ stands
    for is read there, not at 0.1, and a range without a pair is refused."""
    channel = only_the_first(Fraction(9, 2))
    ratio = swap(channel)
    low, high = Fraction(2, 5), Fraction(3, 5)
    family = f.SwapOfTwo("0.1", "0.6")
    level = PMP(family).measure(wi.Channel(wi.Subsets(PEOPLE), oracle.table(channel)))
    assert level.value == worst(ratio, (low, high))
    back = convert(level, n.DifferentialPrivacy("replace"))
    assert back.exact and back.value == pytest.approx(math.log(ratio), rel=1e-12)
    assert Fraction(convert(level, PMP(f.FixedSize())).value) >= ratio
    for empty in (("0.6", "0.9"), ("0.1", "0.4")):
        with refused("low and high"):
            f.SwapOfTwo(*empty)
    plan = wi.calibrate(wi.Gamma("1.5"), family)
    assert plan.tight and plan.epsilon == pytest.approx(math.log(11 / 6))


def test_equal_families_are_one_place():
    """However their numbers are spelt."""
    for one, other in [
        (f.FixedProbability("0.5"), f.FixedProbability(Fraction(1, 2))),
        (f.Independent("0.25", 0.75), f.Independent(0.25, Fraction(3, 4))),
        (f.Cliques(1), f.Independent()),
        (f.Explicit([priors.Uniform()]), f.Uninformed()),
        (
            f.Explicit([priors.Independent("0.3")]),
            f.Explicit([priors.Independent(Fraction(3, 10))]),
        ),
        (f.SwapOfTwo("0.1", "0.6"), f.SwapOfTwo("0.4", "0.6")),
        (f.OneOf(2), f.SwapOfTwo(0.5, 0.5)),
        (f.AtMostKnown(0, 0.5, 0.5), f.Uninformed()),
    ]:
        for source, target in ((one, other), (other, one)):
            level = carried(Fraction(3, 2), PMP(source), PMP(target))
            assert level.exact and level.value == Fraction(3, 2)
    sampled = [n.SampledDifferentialPrivacy(beta) for beta in ("1/4", 0.25)]
    assert carried(0.5, *sampled).value == 0.5
    assert carried(0.5, n.SampledDifferentialPrivacy(1), n.DifferentialPrivacy()).exact


def test_the_literal_reading_is_a_smaller_family():
    for source, target in [
        (PMP(f.OneOf(3)), PMP(f.OneOf(3, literal=True))),
        (n.DifferentialIdentifiability(3), n.DifferentialIdentifiability(3, literal=True)),
        (n.DifferentialIdentifiability(3), PMP(f.OneOf(3, literal=True))),
    ]:
        assert not carried(Fraction(1), source, target).exact
        with pytest.raises(NoImplication):
            carried(Fraction(1), target, source)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_conversions_are_the_best(epsilon):
    """UDP to D_N, D_F^β, at most k known and samples: T11 and amplification (THEORY 15)."""
    r, start = math.exp(epsilon), Level(epsilon, None, True, (), notion=n.DifferentialPrivacy())
    third = 1 / 3
    for target, value in [
        (PMP(f.Uninformed()), (r + 1) / 2),
        (PMP(f.FixedProbability(BETA)), max(r / ((r - 1) * third + 1), (r - 1) * third + 1)),
        (NMP(f.FixedProbability(BETA)), max(3 * r / (2 * r + 1), (2 * r + 1) / 3)),
        (PMP(f.AtMostKnown(5, 0.25, 0.5)), max(r / ((r - 1) / 4 + 1), (r + 1) / 2)),
        (PMP(f.Explicit([priors.Independent(0.5)])), (r + 1) / 2),
        (n.SampledDifferentialPrivacy(BETA), math.log(1 + third * (r - 1))),
        (n.SampledDifferentialPrivacy(BETA, "positive"), math.log(1 + third * (r - 1))),
        (n.SampledDifferentialPrivacy(BETA, "negative"), -math.log(1 - third * (1 - 1 / r))),
    ]:
        found = convert(start, target)
        assert found.value == pytest.approx(value, rel=1e-12) and not found.exact
        positive = Level(
            epsilon, None, True, (), notion=n.DifferentialPrivacy(direction="positive")
        )
        negative = isinstance(target, NMP) or getattr(target, "direction", "") in (
            "both",
            "negative",
        )
        if negative:
            with pytest.raises(NoImplication):
                convert(positive, target)
        else:
            assert convert(positive, target).value == found.value


def test_samples_of_samples_and_both_directions_of_amplification():
    """Measured on random channels, and attained by one person's randomised response."""
    rng = random.Random(31)
    for _ in range(12):
        channel = random_sets(rng)
        for direction, ratio in (("positive", up), ("negative", down), ("both", both)):
            half = log(ratio(oracle.sample(channel, PEOPLE, Fraction(1, 2))))
            whole = log(ratio(channel))
            truth = log(ratio(oracle.sample(channel, PEOPLE, BETA)))
            target = n.SampledDifferentialPrivacy(BETA, direction)
            for value, source in (
                (whole, n.DifferentialPrivacy("add-remove", direction)),
                (half, n.SampledDifferentialPrivacy("1/2", direction)),
            ):
                assert carried(value, source, target).value >= truth * (1 - 1e-15)
    channel = only_the_first(4)
    found = carried(log(both(channel)), n.DifferentialPrivacy(), n.SampledDifferentialPrivacy(BETA))
    assert found.value == pytest.approx(log(both(oracle.sample(channel, PEOPLE, BETA))), rel=1e-12)


def test_more_candidates_hide_better():
    """One of three gives a level for one of four, on both sides of membership."""
    rng = random.Random(32)
    for _ in range(25):
        channel = oracle.random_channel(rng, 4, 2, 0.1)
        made = wi.Channel(wi.Subsets(4), oracle.table(channel))
        for kind, brute in ((PMP, oracle.positive), (NMP, oracle.negative)):
            level = kind(f.OneOf(3)).measure(made)
            truth = max(brute(p, channel, 4) for p in oracle.family_priors("one-of", 4, 4))
            found = convert(level, kind(f.OneOf(4))).value
            assert found == math.inf or Fraction(found) >= truth


def test_a_default_that_cannot_be_is_refused():
    """Prior (0, 1/2, 1/2) and the identity: Bayesian semantic privacy has nothing to compare with,
    Bayesian DP is infinite; the converse of T15 would say 0 (THEORY T15)."""
    half = Fraction(1, 2)
    prior = priors.Independent([[0, half, half]])
    semantic_ = n.BayesianSemanticPrivacy(prior, 0)
    for target in (n.BayesianDifferentialPrivacy(prior), n.RecordMembership(prior)):
        with refused("to", kind=NoImplication):
            carried(0.0, semantic_, target, wi.Records(1, 3))
    table = priors.Table({(0, 1): half, (1, 0): half})
    with pytest.raises(NoImplication):
        carried(
            0.0,
            n.BayesianSemanticPrivacy(table, 0),
            n.BayesianDifferentialPrivacy(table),
            wi.Records(2, 2),
        )


def test_lists_of_priors_carry_levels_both_ways():
    """T15 and T19 for the worst of several priors: the level that is carried to some of them, or to
    all, is not below theirs; one that rules out a default carries none to itself."""
    rng, walked_ = random.Random(15), 0
    for _ in range(60):
        first = random_records(rng, rng.random() < 0.5, False, False)
        listed = [first.prior]
        listed += [records.random_prior(rng, first.rows, first.values, 0.3) for _ in range(2)]
        cases = [replace(first, prior=prior) for prior in listed]
        beliefs = [priors.Table(list(prior.values())) for prior in listed]
        space = wi.Records(first.rows, first.values)
        leaks = [log(records.bayesian_ratio(p, first.channel, first.rows)) for p in listed]
        spreads = [semantic(case, case.prior) for case in cases]
        possible = [
            not any(
                p and not prior[records.replaced(x, row, DEFAULT)]
                for x, p in prior.items()
                for row in range(first.rows)
            )
            for prior in listed
        ]
        full = any(all(prior.values()) for prior in listed)
        dp = log(records.replace_ratio(first.channel, first.rows, first.values))
        every = n.BayesianDifferentialPrivacy(beliefs)
        semantic_ = n.BayesianSemanticPrivacy(beliefs, DEFAULT)
        asked = [
            (max(leaks), every, n.DifferentialPrivacy("replace"), dp, full),
            (max(leaks), every, n.BayesianSemanticPrivacy(beliefs), max(spreads), True),
            (max(leaks), every, n.BayesianSemanticPrivacy(beliefs[1:]), max(spreads[1:]), True),
            (max(spreads), semantic_, every, max(leaks), all(possible)),
        ]
        asked += [
            (max(spreads), semantic_, n.BayesianDifferentialPrivacy(each), leak, known)
            for each, leak, known in zip(beliefs, leaks, possible, strict=True)
        ]
        for value, source, target, truth, known in asked:
            if known:
                walked_ += 0 < truth < math.inf
                assert carried(value, source, target, space).value >= truth * (1 - 1e-9)
            else:
                with refused("to", kind=NoImplication):
                    carried(value, source, target, space)
    assert walked_ > 50


def test_theorems_about_records_ask_for_what_they_need():
    """Full support, independent rows, binary rows, or the space; the message says so."""
    half = Fraction(1, 2)
    dp = n.DifferentialPrivacy("replace")
    chain = priors.MarkovChain([half, half], [[LEANING, 1 - LEANING], [1 - LEANING, LEANING]])
    with refused("to", kind=NoImplication):
        carried(1.0, n.BayesianDifferentialPrivacy(chain), dp)
    assert carried(1.0, n.BayesianDifferentialPrivacy(chain), dp, wi.Records(2, 2)).value == 1.0
    with refused("to", kind=NoImplication):
        carried(1.0, dp, n.MutualInformation(chain), wi.Records(2, 2))
    alone = priors.Independent([half, half])
    with refused("to", kind=NoImplication):
        carried(1.0, dp, n.MutualInformation(alone))
    one, two = (
        carried(1.0, dp, n.MutualInformation(alone), wi.Records(k, 2)).value for k in (1, 2)
    )
    assert two == pytest.approx(2 * one)
    with pytest.raises(NoImplication):
        carried(1.0, dp, n.MutualInformation(priors.Independent([0.2, 0.3, 0.5])), wi.Records(2, 3))


def test_dependent_rows_break_t24():
    """Two rows that are always equal, and an answer that leans one way by their sum: more
    information than T24 allows for independent rows, so it is not estimate for others."""
    half = Fraction(1, 2)
    prior = {(0, 0): half, (0, 1): Fraction(0), (1, 0): Fraction(0), (1, 1): half}
    channel = {x: [Fraction(4 + sum(x), 10), Fraction(6 - sum(x), 10)] for x in prior}
    epsilon = log(records.replace_ratio(channel, 2, 2))
    bound = wi.theorems.information_from_dp(epsilon, [half, half])
    assert records.mutual_information(prior, channel) > 1.5 * bound
    table = priors.Table(list(prior.values()))
    with pytest.raises(NoImplication):
        carried(
            epsilon, n.DifferentialPrivacy("replace"), n.MutualInformation(table), wi.Records(2, 2)
        )


def test_rows_and_people_are_not_mixed_up():
    """A level of replacing a row's value says nothing about exchanging people, nor the reverse."""
    measured = n.DifferentialPrivacy("replace").measure(
        wi.Channel(wi.Records(1, 2), [["3/4", "1/4"], ["1/4", "3/4"]])
    )
    with refused("to", kind=NoImplication):
        convert(measured, PMP(f.FixedSize()))
    assert convert(measured, n.SemanticPrivacy()).value == pytest.approx(0.5)
    people = n.DifferentialPrivacy("replace").measure(
        wi.Channel(wi.Subsets(2), [[1, 0], ["3/4", "1/4"], ["1/4", "3/4"], [1, 0]])
    )
    with refused("to", kind=NoImplication):
        convert(people, n.SemanticPrivacy())
    assert convert(people, PMP(f.FixedSize())).value == pytest.approx(3)
