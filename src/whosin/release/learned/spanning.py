"""`choose = "tree"`: a tree of pairs that spans all columns (MST; McKenna, Miklau and Sheldon
2021). One model at the end, so it is quick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

from whosin.exact import Array
from whosin.marginals import Measurement, Workload
from whosin.marginals.workload import Attributes
from whosin.noise import noisy_max
from whosin.release.learned import prices
from whosin.release.learned.choosing import rounds, spanning_tree
from whosin.release.learned.distances import distance, independent
from whosin.release.learned.estimates import Known, Potentials, rows_known
from whosin.release.learned.prices import Choices
from whosin.release.learned.ways import Counts, Measured, measured
from whosin.release.many_tables.noise import NoisyTable
from whosin.release.prices.pricing import Share

FIRST = Fraction(1, 4)
"""The part of what measures tables that goes to those of one column."""


@dataclass(frozen=True)
class SpanningTree:
    """Pairs that join all columns, chosen one by one, then measured with equal noise.

    Attributes:
        columns: how many there are.
        first: the noise of the tables of single columns.
        pair: the noise of a pair.
        choices: the noise of the choices, where there are any.
    """

    name: ClassVar[str] = "tree"
    choosing: ClassVar[Fraction] = Fraction(1, 6)
    columns: int
    first: NoisyTable
    pair: NoisyTable
    choices: Choices | None

    @classmethod
    def within(
        cls, share: Share, workload: Workload, rows: int, choosing: Fraction
    ) -> SpanningTree:
        """What costs a share."""
        columns = len(workload.sizes)
        chosen = choosing if rounds(columns) else Fraction(0)
        rest = 1 - chosen
        kind, first = prices.equal_noise(prices.part(share, rest * FIRST), columns, rows)
        kind, later = prices.equal_noise(prices.part(share, rest * (1 - FIRST)), columns - 1, rows)
        choices = None
        if chosen:
            choices = Choices.within(prices.part(share, chosen), rounds(columns), rows)
        prices.require_drawable(kind, first, later)
        noises = (NoisyTable(Measurement((0,)), kind, first), NoisyTable(PAIR, kind, later))
        return cls(columns, *noises, choices)

    @property
    def counted(self) -> tuple[Attributes, ...]:
        """What must be counted for it."""
        return tuple(combinations(range(self.columns), 2))

    def cost(self, relation: str, rows: int) -> Fraction:
        """The cost of everything after the tables of single columns."""
        pairs = (self.columns - 1) * self.pair.cost((), relation, rows)
        return pairs + self.choosing_cost(relation)

    def choosing_cost(self, relation: str) -> Fraction:
        """The cost of all choices."""
        return Fraction(0) if self.choices is None else self.choices.cost(relation)

    @property
    def widths(self) -> tuple[Fraction, Fraction]:
        """All pairs have the same."""
        return self.pair.width, self.pair.width

    def words(self) -> str:
        """What will be chosen, in words."""
        return f"{self.columns - 1} chosen pairs" if self.columns > 2 else "1 pair"

    def measure(self, counts: Counts, first: Known) -> tuple[list[Measured], Potentials]:
        """Choose and measure."""
        margins = [first[(each,)].values for each in range(self.columns)]
        total = rows_known(first)
        scores = {
            (one, other): distance(
                counts[one, other], independent([margins[one], margins[other]], total)
            )
            for one, other in self.counted
        }
        pair = self.pair
        chosen = spanning_tree(self.columns, scores, self._choose())
        noisy = [NoisyTable(Measurement(each), pair.kind, pair.width) for each in chosen]
        return [measured(each, counts) for each in noisy], {}  # no estimate: one model at the end

    def _choose(self) -> Callable[[Array], int]:
        choices = self.choices
        if choices is None:
            return lambda scores: 0  # there is but one pair
        return lambda scores: noisy_max(scores, choices.scale, gumbel=choices.gaussian)


PAIR = Measurement((0, 1))
