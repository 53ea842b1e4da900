"""`choose = "adaptive"`: tables are chosen and measured in rounds (AIM; McKenna, Mullins, Sheldon
and Miklau 2022).

In each round a model of all noisy tables so far says what it expects of every table that may be
chosen: those inside the wanted ones. The one that the model is most wrong about is chosen: wrong
beyond the error that measuring it would have, and weighted by how much it has in common with what
is wanted. Where a new measurement moved the model less than its noise does, later ones get less
noise and there are fewer of them.

*The price.* The budget is a number of units, `units`. A round takes u of them: its choice u/units
of the part for choosing, its measurement u/units of the part for measuring. The rounds go on until
the last unit is spent, so what they cost together is fixed before the first, whichever way they go.
How many units a round takes depends on noisy numbers. Its cost given all that came before is then
ε_t or ρ_t, with Σ ε_t = ε or Σ ρ_t = ρ always. For ε: the likelihoods of any course of rounds in
two neighbouring worlds differ by a product of factors of at most e^(ε_t) each, which is at most
e^ε. For ρ and any α > 1: write L_t for the ratio of the likelihoods of the first t rounds and
M_t = L_t^α exp(−α(α−1) Σ_{s≤t} ρ_s). As round t has given the past a Rényi divergence of order α of
at most αρ_t, the mean of M_t given the past, in the second world, is at most M_{t−1}; so the mean
of the last one is at most 1. Since Σ ρ_t = ρ always, the Rényi divergence of all rounds is at most
αρ, which is ρ-zCDP.

*The sensitivity of a score.* W·(D − b), where W is a whole weight of at most `WEIGHTS`, D the
distance of the counts from what the model expects (`distances`) and b is public: a person moves it
by at most `WEIGHTS` times what they move a distance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.marginals import Measurement, Workload
from whosin.marginals.workload import Attributes, subsets
from whosin.noise import noisy_max
from whosin.release.learned import prices
from whosin.release.learned.distances import STEPS, distance, sensitivity
from whosin.release.learned.estimates import Estimate, Known, Potentials, with_new
from whosin.release.learned.models import model_cells
from whosin.release.learned.ways import Counts, Measured, measured
from whosin.release.many_tables.noise import NoisyTable
from whosin.release.prices.pricing import SLIGHTLY_MORE, Share

UNITS = 15
"""Units for each column, besides one for its own table."""
WEIGHTS = 64
MOST_CELLS = 2**17
"""Cells of the model's tables in the last round; in earlier ones in proportion to what is spent."""
MOST_CANDIDATES = 2_000
FARTHEST = 2**52


@dataclass(frozen=True)
class Adaptive:
    """Rounds of choosing and measuring.

    Attributes:
        unit: the width of the noise of a table that gets one unit.
        chosen: the part of the budget for choosing, for neighbours of `relation`.
    """

    name: ClassVar[str] = "adaptive"
    choosing: ClassVar[Fraction] = Fraction(1, 10)
    workload: Workload
    rows: int
    relation: str
    kind: str
    unit: Fraction
    chosen: Fraction

    @classmethod
    def within(cls, share: Share, workload: Workload, rows: int, choosing: Fraction) -> Adaptive:
        """What costs a share."""
        if too_many(workload):
            accepted = f'"tree", or at most {MOST_CANDIDATES:,} tables to choose from'
            raise InvalidInput("choose", accepted, f'"{cls.name}" with more')
        columns = len(workload.sizes)
        measuring = prices.part(share, 1 - choosing)
        kind, unit = prices.equal_noise(measuring, columns * (1 + UNITS), rows)
        prices.require_drawable(kind, unit)
        part = (share.rho or share.epsilon) * choosing
        result = cls(workload, rows, share.relation, kind, unit, part)
        prices.require_drawable("laplace", result.scale(1))
        return result

    @property
    def units(self) -> int:
        """The units of all rounds together."""
        return UNITS * len(self.workload.sizes)

    @property
    def first(self) -> NoisyTable:
        """The noise of the tables of single columns: one unit each."""
        return self.noise((0,), 1)

    @property
    def widths(self) -> tuple[Fraction, Fraction]:
        """If one round took all units, and in the first rounds."""
        return self.unit / self.units, self.unit

    @cached_property
    def counted(self) -> tuple[Attributes, ...]:
        """All that may be chosen."""
        return candidates(self.workload)

    @cached_property
    def weights(self) -> dict[Attributes, int]:
        """How much each has in common with the wanted tables; whole, and at most `WEIGHTS`."""
        wanted = [set(each) for each in self.workload.sets]
        common = {each: sum(len(one.intersection(each)) for one in wanted) for each in self.counted}
        most = max(common.values())
        return {each: max(1, WEIGHTS * number // most) for each, number in common.items()}

    def noise(self, attributes: Attributes, units: int) -> NoisyTable:
        """The noise of a table that gets some units: the width of either noise is as 1/price."""
        return NoisyTable(Measurement(attributes), self.kind, self.unit / units)

    def scale(self, units: int) -> Fraction:
        """The scale of a choice's noise whose price is these units: 2Δ/scale, or ρ = (Δ/scale)²/2.
        Rounded up."""
        most = WEIGHTS * sensitivity(self.relation, self.rows)
        price = self.chosen * units / self.units
        if self.kind == "gaussian":
            exact = Fraction(math.isqrt(math.ceil(most**2 / (2 * price))) + 1)
        else:
            exact = 2 * most / price
        return exact * SLIGHTLY_MORE

    def cost(self, relation: str, rows: int) -> Fraction:
        """The cost of all rounds, whichever way they go."""
        tables = self.units * self.noise((0,), 1).cost((), relation, rows)
        return tables + self.choosing_cost(relation)

    def choosing_cost(self, relation: str) -> Fraction:
        """The cost of all choices: as their sensitivity for ε, as its square for ρ."""
        ratio = Fraction(sensitivity(relation, self.rows), sensitivity(self.relation, self.rows))
        return self.chosen * (ratio**2 if self.kind == "gaussian" else ratio)

    def words(self) -> str:
        """What will be chosen, in words."""
        return f"tables chosen in up to {self.units} rounds"

    def measure(self, counts: Counts, first: Known) -> tuple[list[Measured], Potentials]:
        """Choose and measure, round by round."""
        known, result = dict(first), list[Measured]()
        sizes = self.workload.sizes
        model = Estimate(sizes, known)
        units, left = 1, self.units
        while left:
            units = left if left < 2 * units else units
            left -= units
            open_to = self.small_enough(list(known), 1 - Fraction(left, self.units))
            expected = model.tables(open_to)
            scores = [self.score(counts[each], expected[each], each, units) for each in open_to]
            winner = noisy_max(np.array(scores, np.int64), self.scale(units), gumbel=self._gaussian)
            attributes = open_to[winner]
            noisy, values = measured(self.noise(attributes, units), counts)
            result.append((noisy, values))
            known[attributes] = with_new(known.get(attributes), values, noisy.variance)
            model = Estimate(sizes, known, model.potentials)
            moved = np.abs(model.tables([attributes])[attributes] - expected[attributes]).sum()
            if moved <= self.error(attributes, units):
                units *= 4 if self._gaussian else 2  # half the noise
        return result, model.potentials

    def small_enough(self, known: list[Attributes], spent: Fraction) -> list[Attributes]:
        """What may be chosen: the model stays small, in proportion to what is spent by then."""
        inside = {part for each in known for part in subsets(each)}
        most = spent * MOST_CELLS
        return [
            each
            for each in self.counted
            if each in inside or model_cells(self.workload.sizes, [*known, each]) <= most
        ]

    def score(self, counts: Array, expected: Array, attributes: Attributes, units: int) -> int:
        """How wrong the model is about a table, beyond the error that measuring it has."""
        error = min(FARTHEST, round(STEPS * self.error(attributes, units)))
        return self.weights[attributes] * (distance(counts, expected) - error)

    def error(self, attributes: Attributes, units: int) -> float:
        """The mean sum of the noise of a table's cells, without their signs."""
        noisy = self.noise(attributes, units)
        mean = math.sqrt(2 / math.pi * noisy.variance) if self._gaussian else float(noisy.width)
        return mean * self.workload.cells(attributes)

    @property
    def _gaussian(self) -> bool:
        return self.kind == "gaussian"


def candidates(workload: Workload) -> tuple[Attributes, ...]:
    """Every table of one column or more that is inside a wanted one, and fits in a model; single
    columns always do."""
    inside = {part for each in workload.sets for part in subsets(each) if part}
    fitting = (each for each in inside if len(each) == 1 or workload.cells(each) <= MOST_CELLS)
    return tuple(sorted(fitting, key=lambda each: (len(each), each)))


def too_many(workload: Workload) -> bool:
    """Whether rounds would take too long."""
    seen: set[Attributes] = set()
    for each in workload.sets:
        if 2 ** len(each) > 2 * MOST_CANDIDATES or len(seen) > MOST_CANDIDATES:
            return True
        seen.update(subsets(each))
    return len(seen) > MOST_CANDIDATES
