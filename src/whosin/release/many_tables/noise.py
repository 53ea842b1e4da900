"""The noise of each measured table: from a share of the budget to exact noise, and to its price.

Contract: prices are exact rationals that add up to at most the share, and the noise is drawn for
exactly the price that was paid. Samplers keep tables for each width of noise, which take longer to
make than a table of noise to draw, so there are few widths: parts of ε are put on a few levels, and
variances on multiples of a common one by powers of 2^(1/8).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.ledger.charge import RELATIONS, Cost
from whosin.ledger.units import EPSILON_UNITS
from whosin.marginals import Measurement, Spending
from whosin.noise import discrete_gaussian, discrete_laplace
from whosin.release.prices.pricing import LARGEST_SCALE, Share, noise_variance

LEVELS = 16
FINEST = math.log(1.02)
"""Parts of ε that are closer than this need no levels of their own."""
GRID = 8
"""Widths of Gaussian noise in each doubling of the variance."""
FEW = 16
"""Up to this many different widths are taken as they are."""
STEPS = 2**40


@dataclass(frozen=True)
class NoisyTable:
    """A measurement with its noise.

    Attributes:
        width: the scale of discrete Laplace noise, or the parameter σ² of discrete Gaussian noise.
    """

    measurement: Measurement
    kind: str
    width: Fraction

    def draw(self, shape: tuple[int, ...]) -> Array:
        """Exact noise."""
        if self.kind == "gaussian":
            return discrete_gaussian(None, shape, variance=self.width)
        return discrete_laplace(self.width, shape)

    @property
    def variance(self) -> float:
        """The variance of one number of the noise; just above 0 where that is always 0."""
        return noise_variance(self.kind, float(self.width))

    def cost(self, sizes: tuple[int, ...], relation: str, rows: int) -> Fraction:
        """ε or ρ between neighbours of a relation."""
        if self.kind == "gaussian":
            return self.measurement.squared(sizes, relation, rows) / (2 * self.width)
        return self.measurement.sensitivity(sizes, relation, rows) / self.width

    def to_dict(self, names: tuple[str, ...]) -> dict[str, Any]:
        """What is measured and how, as plain data; exact."""
        word = "variance" if self.kind == "gaussian" else "scale"
        return {**self.measurement.to_dict(names), "noise": self.kind, word: str(self.width)}


def measured(noisy: Sequence[NoisyTable], counts: Sequence[Array]) -> list[Array]:
    """What is measured of the true counts, each with its noise."""
    exact = [each.measurement.of_counts(one) for each, one in zip(noisy, counts, strict=True)]
    return [each.draw(one.shape) + one for each, one in zip(noisy, exact, strict=True)]


def noisy_tables(
    spending: Spending, sizes: tuple[int, ...], share: Share, rows: int
) -> tuple[NoisyTable, ...]:
    """The measurements with noise whose price is within the share."""
    if spending.noise == "gaussian":
        widths = _variances(spending, sizes, share, rows)
    else:
        widths = _scales(spending, sizes, share, rows)
    if max(widths) > (LARGEST_SCALE**2 if spending.noise == "gaussian" else LARGEST_SCALE):
        accepted = "of a scale of at most 2^52: more budget, or fewer tables"
        raise InvalidInput("noise", accepted, f"{float(max(widths)):.3g}")
    result = zip(spending.measurements, widths, strict=True)
    return tuple(NoisyTable(each, spending.noise, width) for each, width in result)


def table_costs(tables: Sequence[NoisyTable], sizes: tuple[int, ...], rows: int) -> dict[str, Cost]:
    """What all measurements cost under each relation. The ρ of Laplace noise is that of each table,
    ε²/2, added up: less than of one answer with all of the ε."""
    result = {}
    for relation in RELATIONS:
        # Equal prices first: sums of few different denominators are short.
        prices = Counter(each.cost(sizes, relation, rows) for each in tables)
        total = sum((price * count for price, count in prices.items()), Fraction(0))
        if tables[0].kind == "gaussian":
            result[relation] = Cost.gaussian(total)
        else:
            rho = sum((price**2 * count for price, count in prices.items()), Fraction(0)) / 2
            result[relation] = replace(Cost.pure(total), rho=Cost.gaussian(rho).rho)
    return result


def noise_words(noisy: Sequence[NoisyTable]) -> str:
    """How many tables are measured, with which noise."""
    kind = "Gaussian, σ" if noisy[0].kind == "gaussian" else "Laplace, scale"
    widths = [float(each.width) for each in noisy]
    ends = [min(widths), max(widths)]
    if noisy[0].kind == "gaussian":
        ends = [end**0.5 for end in ends]
    about = f"{ends[0]:.4g}" if ends[0] == ends[1] else f"{ends[0]:.4g} to {ends[1]:.4g}"
    count = "1 table" if len(noisy) == 1 else f"{len(noisy)} tables"
    return f"{count} measured, {kind} {about}"


def _scales(spending: Spending, sizes: tuple[int, ...], share: Share, rows: int) -> list[Fraction]:
    """Scales whose ε, in whole units, add up to the share at most."""
    pot = int(share.epsilon * EPSILON_UNITS)
    levels = _levelled(spending.parts)
    units = [int(pot * Fraction(part)) for part in levels / levels.sum() * (1 - 2.0**-40)]
    if min(units) < 1 or sum(units) > pot:
        raise InvalidInput("weight", "large enough to get any budget", "less")
    return [
        Fraction(each.sensitivity(sizes, share.relation, rows) * EPSILON_UNITS, unit)
        for each, unit in zip(spending.measurements, units, strict=True)
    ]


def _levelled(parts: Array) -> Array:
    """Parts on a few levels at equal ratios, each on the nearest."""
    logs = np.log(parts)
    span = float(logs.max() - logs.min())
    if span < 1e-9:
        return np.full(len(parts), 1.0)
    steps = min(LEVELS - 1, max(1, math.ceil(span / FINEST)))
    levels = np.rint((logs - logs.min()) / span * steps)
    return np.asarray(np.exp(levels * (span / steps)))


def _variances(
    spending: Spending, sizes: tuple[int, ...], share: Share, rows: int
) -> list[Fraction]:
    """Variances, on the grid times one common number, whose ρ add up to the share at most."""
    squares = [each.squared(sizes, share.relation, rows) for each in spending.measurements]
    ideal = [
        float(square) / (2 * float(part) * float(share.rho))
        for square, part in zip(squares, spending.parts, strict=True)
    ]
    if len(set(ideal)) <= FEW:
        widths = [Fraction(each) for each in ideal]
    else:
        widths = [_on_grid(each) for each in ideal]
    sums: dict[Fraction, Fraction] = {}
    for width, square in zip(widths, squares, strict=True):
        sums[width] = sums.get(width, Fraction(0)) + square / 2
    spent = sum((moved / width for width, moved in sums.items()), Fraction(0))
    common = Fraction(math.ceil(spent / share.rho * STEPS), STEPS)
    return [width * common for width in widths]


def _on_grid(value: float) -> Fraction:
    """The nearest power of 2^(1/8), its fraction of a power of 4 to 24 bits."""
    fours, eighths = divmod(round(GRID * math.log2(value)), 2 * GRID)
    return Fraction(round(2 ** (eighths / GRID) * 2**24), 2**24) * Fraction(4) ** fours
