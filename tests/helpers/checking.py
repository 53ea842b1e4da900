"""What several test files need: instances of every family, and witnesses replayed as proofs."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

import oracle
import whosin as wi


def fraction(value: Any) -> Fraction:
    """A number as the caller gave it, which the package takes in any form."""
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def agree(value: Fraction | float, truth: Fraction | float) -> None:
    """Exactly, when the engine had rationals; to 1e-12 when it had floats."""
    if isinstance(value, float) and not math.isinf(value):
        assert value == pytest.approx(float(truth), rel=1e-12)
    else:
        assert value == truth


def check_witness(
    notion: Any,
    level: wi.notions.Level,
    channel: oracle.Channel,
    n: int,
    outputs: Sequence[Any] | None = None,
) -> None:
    """The witness is a proof: its prior, replayed from the definitions, shows the level.

    Args:
        channel: the truth, by world and number of the output.
        outputs: the names of the outputs, where they are not their numbers.
    """
    case: Any = level.witness
    if case is None:
        return
    space, output = wi.Subsets(n), case.output if outputs is None else outputs.index(case.output)
    prior = dict(zip(oracle.worlds(n), case.distribution.probabilities(space), strict=True))
    assert sum(prior.values()) == 1
    assert notion.family.contains(case.distribution, space)
    before, after = oracle.beliefs(prior, channel, case.entity, (output,))
    assert before == case.prior
    assert after is None or after == case.posterior
    smallest = oracle.positive if notion.positive else oracle.negative
    shown = max(smallest(prior, part, n) for part in pieces(channel))
    assert shown <= level.value
    if level.exact:
        assert shown == level.value if case.attained else shown >= level.value * 0.999999
    elif level.lower is not None:
        assert shown >= level.lower * Fraction(999999, 1000000)


def pieces(channel: oracle.Channel) -> list[oracle.Channel]:
    """A channel with few outputs as it is, so that all events are tried; else its columns (F3)."""
    count = len(next(iter(channel.values())))
    if count <= 3:
        return [channel]
    return [{world: [row[o]] for world, row in channel.items()} for o in range(count)]


def probability(rng: random.Random, ends: bool = True) -> Fraction:
    """A probability with a small denominator, 0 and 1 included or not."""
    return Fraction(rng.randint(0, 6), 6) if ends else Fraction(rng.randint(1, 5), 6)


def random_priors(rng: random.Random, n: int) -> list[wi.priors.Prior]:
    """One of each kind of prior."""
    p = [probability(rng) for _ in range(n)]
    unsure = [probability(rng, ends=False) for _ in range(n)]
    return [
        wi.priors.Independent(p),
        wi.priors.Independent(probability(rng, ends=False)),
        wi.priors.FixedSize(unsure, rng.randint(0, n)),
        wi.priors.Uniform(),
        wi.priors.Exchangeable(oracle.random_distribution(rng, n + 1)),
        wi.priors.Table(oracle.random_distribution(rng, 2**n)),
    ]


def bounds(rng: random.Random) -> tuple[Fraction, Fraction]:
    """A range of beliefs, possibly a point, possibly with an end at 0 or 1."""
    low, high = sorted(probability(rng) for _ in range(2))
    return (low, high) if low < high or 0 < low < 1 else (Fraction(1, 4), Fraction(2, 3))


def family_instances(rng: random.Random, n: int) -> dict[str, list[wi.families.Family]]:
    """Members of the registry of families with parameters that suit n entities."""
    low, high = bounds(rng)
    half = Fraction(rng.randint(1, 3), 6)
    known: dict[str, list[wi.families.Family]] = {
        "any": [wi.families.AnyPrior()],
        "independent": [wi.families.Independent(), wi.families.Independent(low, high)],
        "one-of-two": [wi.families.OneOfTwo(), wi.families.OneOfTwo(low, high)],
        "fixed-size": [
            wi.families.FixedSize(),
            wi.families.FixedSize(low, high),
            wi.families.FixedSize(half, 1 - half),
        ],
        "swap-of-two": [wi.families.SwapOfTwo(), wi.families.SwapOfTwo(half, 1 - half)],
        "one-of": [],
        "fixed-probability": [wi.families.FixedProbability(probability(rng, ends=False))],
        "uninformed": [wi.families.Uninformed()],
        "cliques": [wi.families.Cliques(rng.randint(1, n + 1))],
        "at-most-known": [wi.families.AtMostKnown(rng.randint(0, n), half, 1 - half / 2)],
        "explicit": [wi.families.Explicit(random_priors(rng, n))],
    }
    if n >= 2:
        m = rng.randint(2, n)
        known["one-of"] = [wi.families.OneOf(m), wi.families.OneOf(m, literal=True)]
    for name, kind in wi.families.FAMILY_KINDS.items():
        if name not in known and not kind.about_records:
            known[name] = [wi.families.read_family(kind.example)]
    return known
