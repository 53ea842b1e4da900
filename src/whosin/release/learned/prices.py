"""From a share of the budget to the noise of every part of a learned table, and to its price.

Contract: all prices are exact rationals, or OpenDP's own figure for a choice, which is rounded up;
together they are within the share. What is chosen later does not change them: every table of counts
costs the same whichever columns it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from whosin.errors import InvalidInput
from whosin.exact import rational
from whosin.ledger.charge import RELATIONS, Cost
from whosin.marginals import Measurement
from whosin.noise import discrete_gaussian, discrete_laplace, selection_epsilon, selection_rho
from whosin.release.learned.distances import sensitivity
from whosin.release.many_tables.noise import NoisyTable
from whosin.release.prices.pricing import LARGEST_SCALE, SLIGHTLY_MORE, Share

QUALITY = Fraction(1, 50)
"""The part of the budget that measures how good the finished table is."""


@dataclass(frozen=True)
class WholeNumber:
    """Noise for one whole number: the sum of distances of several tables."""

    gaussian: bool
    width: Fraction
    tables: int
    rows: int

    @classmethod
    def within(cls, share: Share, tables: int, rows: int) -> WholeNumber:
        """Noise whose price is a share."""
        reach = tables * sensitivity(share.relation, rows)
        if share.rho:
            return cls(True, Fraction(reach**2) / (2 * share.rho), tables, rows)
        return cls(False, reach / share.epsilon, tables, rows)

    def cost(self, relation: str) -> Fraction:
        """ε or ρ."""
        reach = self.tables * sensitivity(relation, self.rows)
        return reach**2 / (2 * self.width) if self.gaussian else reach / self.width

    def draw(self) -> int:
        """Exact noise."""
        if self.gaussian:
            return int(discrete_gaussian(None, variance=self.width))
        return int(discrete_laplace(self.width))

    @property
    def reach(self) -> float:
        """The noise is this near to 0, or nearer, with a probability of 95%."""
        if self.gaussian:
            return 1.96 * math.sqrt(self.width)
        return float(self.width) * math.log(20)


@dataclass(frozen=True)
class Choices:
    """Several choices by the exponential mechanism, each with noise of one scale."""

    gaussian: bool
    scale: Fraction
    rounds: int
    rows: int

    @classmethod
    def within(cls, share: Share, rounds: int, rows: int) -> Choices:
        """Choices that together cost a share."""
        reach = sensitivity(share.relation, rows)
        if share.rho:  # a choice costs (reach/scale)²/2
            scale = Fraction(math.sqrt(Fraction(rounds) / (2 * share.rho))) * reach
        else:
            scale = 2 * reach * rounds / share.epsilon
        return cls(bool(share.rho), scale * SLIGHTLY_MORE, rounds, rows)

    def cost(self, relation: str) -> Fraction:
        """ε or ρ of all of them."""
        price = selection_rho if self.gaussian else selection_epsilon
        return self.rounds * rational(price(sensitivity(relation, self.rows), self.scale))


def part(share: Share, size: Fraction) -> Share:
    """A part of a share."""
    return replace(share, epsilon=share.epsilon * size, rho=share.rho * size)


def equal_noise(share: Share, count: int, rows: int) -> tuple[str, Fraction]:
    """The kind and width of noise for a number of tables of counts, which costs a share."""
    one = Measurement((0,))
    if share.rho:
        return "gaussian", count * one.squared((), share.relation, rows) / (2 * share.rho)
    return "laplace", count * one.sensitivity((), share.relation, rows) / share.epsilon


def total_costs(
    tables: Sequence[NoisyTable],
    sizes: tuple[int, ...],
    rows: int,
    others: Callable[[str], Fraction],
) -> dict[str, Cost]:
    """What tables and everything else together cost under each relation."""
    result = {}
    for relation in RELATIONS:
        spent = sum((each.cost(sizes, relation, rows) for each in tables), others(relation))
        gaussian = tables[0].kind == "gaussian"
        result[relation] = Cost.gaussian(spent) if gaussian else Cost.pure(spent)
    return result


def require_drawable(kind: str, *widths: Fraction) -> None:
    """Refuse noise that no sampler draws, before any debit."""
    most = LARGEST_SCALE**2 if kind == "gaussian" else LARGEST_SCALE
    if max(widths) > most:
        accepted = "of a scale of at most 2^52: more budget, or fewer tables"
        raise InvalidInput("noise", accepted, f"{float(max(widths)):.3g}")
