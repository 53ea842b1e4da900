"""Which marginals a synthetic table is made from: adaptive (AIM) or a spanning tree (MST).

A strategy is made from a share of the budget before anything is read, and its cost is known then,
whatever it will choose: costs are exact rationals, or OpenDP's own figure for a selection, which is
rounded up, and together they are within the share. Every table of counts costs the same whichever
columns it has. A strategy is given exact counts, and lets noisy tables out, nothing else.

MST (McKenna, Miklau and Sheldon 2021) scores a pair of columns by how far its table is from what
its columns' noisy counts say if they had nothing to do with each other. In each round the best pair
that joins two groups of columns is chosen by the exponential mechanism and joins them, as Kruskal's
algorithm would. Every round reads scores with the sensitivity `distance_sensitivity`, and is paid
for; what was chosen before is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np

from whosin.errors import InvalidInput, spell
from whosin.exact import Array, exact_fraction
from whosin.ledger.budget import NEIGHBOUR_RELATIONS, Cost
from whosin.marginals import Measurement, Workload
from whosin.marginals.workload import Attributes, list_subsets
from whosin.noise import GaussianNoise, LaplaceNoise, noisy_max, selection_epsilon, selection_rho
from whosin.noise.distributions import Noise
from whosin.release.cost import SELECTION_MARGIN, Share
from whosin.release.marginal_workloads import FEWER_TABLES, NoisyTable
from whosin.release.synthetic_models import (
    STEPS_PER_COUNT,
    AveragedMarginal,
    Known,
    MarginalEstimate,
    Potentials,
    distance_sensitivity,
    independent_table,
    model_cells,
    rows_known,
    table_distance,
)

Counts = Mapping[Attributes, Array]
Measured = tuple[NoisyTable, Array]


def measure_table(noisy: NoisyTable, counts: Counts) -> Measured:
    """Measure a table of counts with its exact noise."""
    exact = noisy.measurement.of_counts(counts[noisy.measurement.attributes])
    return noisy, np.asarray(exact + noisy.noise.draw(exact.shape))


def average_counts(measured: Iterable[Measured], before: Known | None = None) -> Known:
    """What noisy tables of counts say of each table, with what was known before; differences are
    left out."""
    result = dict(before or {})
    for noisy, values in measured:
        attributes, variance = noisy.measurement.attributes, noisy.noise.variance
        if noisy.measurement.differences:
            continue
        if attributes in result:
            result[attributes] = result[attributes].and_then(values, variance)
        else:
            numbers = np.asarray(values, np.float64)
            result[attributes] = AveragedMarginal(numbers, 1 / variance)
    return result


QUALITY_SHARE = Fraction(1, 50)
"""The part of the budget that measures how good the finished table is."""


def affordable_noise(
    share: Share, sensitivity: int, squared: Fraction | int | None = None
) -> Noise:
    """The noise that costs a share, for an L1 sensitivity and a squared L2 one, that of one number
    by default."""
    noise: Noise
    if share.rho:
        square = sensitivity**2 if squared is None else squared
        noise = GaussianNoise(Fraction(square) / (2 * share.rho))
    else:
        noise = LaplaceNoise.at_epsilon(sensitivity, share.epsilon)
    return noise.check_drawable(FEWER_TABLES)


@dataclass(frozen=True)
class WholeNumber:
    """Noise for one whole number: the sum of distances of several tables."""

    noise: Noise
    tables: int
    rows: int

    @classmethod
    def within(cls, share: Share, tables: int, rows: int) -> WholeNumber:
        sensitivity = tables * distance_sensitivity(share.relation, rows)
        return cls(affordable_noise(share, sensitivity), tables, rows)

    def cost(self, relation: str) -> Fraction:
        sensitivity = self.tables * distance_sensitivity(relation, self.rows)
        gaussian = isinstance(self.noise, GaussianNoise)
        return self.noise.cost(sensitivity**2 if gaussian else sensitivity)


@dataclass(frozen=True)
class SelectionCost:
    """Several choices by the exponential mechanism, each with noise of one scale."""

    gaussian: bool
    scale: Fraction
    rounds: int
    rows: int

    @classmethod
    def within(cls, share: Share, rounds: int, rows: int) -> SelectionCost:
        sensitivity = distance_sensitivity(share.relation, rows)
        if share.rho:  # a choice costs (sensitivity/scale)²/2
            scale = Fraction(math.sqrt(Fraction(rounds) / (2 * share.rho))) * sensitivity
        else:
            scale = 2 * sensitivity * rounds / share.epsilon
        return cls(bool(share.rho), scale * SELECTION_MARGIN, rounds, rows)

    def cost(self, relation: str) -> Fraction:
        price = selection_rho if self.gaussian else selection_epsilon
        return self.rounds * exact_fraction(
            price(distance_sensitivity(relation, self.rows), self.scale)
        )


def take_part(share: Share, size: Fraction) -> Share:
    return replace(share, epsilon=share.epsilon * size, rho=share.rho * size)


def equal_noise(share: Share, count: int, rows: int) -> Noise:
    """The noise for a number of tables of counts that together cost a share."""
    one = Measurement((0,))
    square = count * one.squared_l2_sensitivity((), share.relation, rows)
    return affordable_noise(share, count * one.l1_sensitivity((), share.relation, rows), square)


def total_costs(
    tables: Sequence[NoisyTable],
    sizes: tuple[int, ...],
    rows: int,
    others: Callable[[str], Fraction],
) -> dict[str, Cost]:
    """What tables and everything else together cost under each relation."""
    result = {}
    for relation in NEIGHBOUR_RELATIONS:
        spent = sum((each.cost(sizes, relation, rows) for each in tables), others(relation))
        gaussian = tables[0].noise.kind == "gaussian"
        result[relation] = Cost.gaussian(spent) if gaussian else Cost.pure(spent)
    return result


# `choose = "adaptive"`: tables are chosen and measured in rounds (AIM; McKenna, Mullins, Sheldon
# and Miklau 2022).
#
# In each round a model of all noisy tables so far says what it expects of every table that may be
# chosen: those inside the wanted ones. The one that the model is most wrong about is chosen: wrong
# beyond the error that measuring it would have, and weighted by how much it has in common with what
# is wanted. Where a new measurement moved the model less than its noise does, later ones get less
# noise and there are fewer of them.
#
# *The cost.* The budget is a number of units, `units`. A round takes u of them: its choice u/units
# of the part for choosing, its measurement u/units of the part for measuring. The rounds go on
# until the last unit is spent, so what they cost together is fixed before the first, whichever way
# they go. How many units a round takes depends on noisy numbers. Its cost given all that came
# before is then ε_t or ρ_t, with Σ ε_t = ε or Σ ρ_t = ρ always. For ε: the likelihoods of any
# course of rounds in two neighbouring worlds differ by a product of factors of at most e^(ε_t)
# each, which is at most e^ε. For ρ and any α > 1: write L_t for the ratio of the likelihoods of the
# first t rounds and M_t = L_t^α exp(−α(α−1) Σ_{s≤t} ρ_s). As round t has given the past a Rényi
# divergence of order α of at most αρ_t, the mean of M_t given the past, in the second world, is at
# most M_{t−1}; so the mean of the last one is at most 1. Since Σ ρ_t = ρ always, the Rényi
# divergence of all rounds is at most αρ, which is ρ-zCDP.
#
# *The sensitivity of a score.* W·(D − b), where W is a whole weight of at most `WEIGHT_STEPS`, D
# the distance of the counts from what the model expects (`distances`) and b is public: a person
# moves it by at most `WEIGHT_STEPS` times what they move a distance.


UNIT_COUNT = 15
"""Units for each column, besides one for its own table."""
WEIGHT_STEPS = 64
MAX_TREE_CELLS = 2**17
"""Cells of the model's tables in the last round; in earlier ones in proportion to what is spent."""
MAX_CANDIDATES = 2_000
MAX_DISTANCE = 2**52


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
    unit: Noise
    chosen: Fraction

    @classmethod
    def within(cls, share: Share, workload: Workload, rows: int, choosing: Fraction) -> Adaptive:
        if too_many(workload):
            message = (
                f'choose = "{cls.name}" would have more than {spell(MAX_CANDIDATES)} tables to '
                "choose from"
            )
            hint = 'use choose = "tree", or fewer columns'
            raise InvalidInput(message, field="choose", value=cls.name, hint=hint)
        columns = len(workload.sizes)
        measuring = take_part(share, 1 - choosing)
        unit = equal_noise(measuring, columns * (1 + UNIT_COUNT), rows)
        part = (share.rho or share.epsilon) * choosing
        result = cls(workload, rows, share.relation, unit, part)
        LaplaceNoise(result.scale(1)).check_drawable(FEWER_TABLES)
        return result

    @property
    def units(self) -> int:
        return UNIT_COUNT * len(self.workload.sizes)

    @property
    def first(self) -> NoisyTable:
        """The noise of the tables of single columns: one unit each."""
        return self.noise((0,), 1)

    @property
    def spreads(self) -> tuple[float, float]:
        return self.unit.at_cost(self.units).spread, self.unit.spread

    @cached_property
    def counted(self) -> tuple[Attributes, ...]:
        return candidate_tables(self.workload)

    @cached_property
    def weights(self) -> dict[Attributes, int]:
        """How much each has in common with the wanted tables; whole, and at most `WEIGHT_STEPS`."""
        wanted = [set(each) for each in self.workload.sets]
        common = {each: sum(len(one.intersection(each)) for one in wanted) for each in self.counted}
        most = max(common.values())
        return {each: max(1, WEIGHT_STEPS * number // most) for each, number in common.items()}

    def noise(self, attributes: Attributes, units: int) -> NoisyTable:
        """A table with the noise that some units pay for."""
        return NoisyTable(Measurement(attributes), self.unit.at_cost(units))

    def scale(self, units: int) -> Fraction:
        """The scale of a choice's noise whose cost is these units: 2Δ/scale, or ρ = (Δ/scale)²/2.
        Rounded up."""
        most = WEIGHT_STEPS * distance_sensitivity(self.relation, self.rows)
        price = self.chosen * units / self.units
        if self._gaussian:
            exact = Fraction(math.isqrt(math.ceil(most**2 / (2 * price))) + 1)
        else:
            exact = 2 * most / price
        return exact * SELECTION_MARGIN

    def cost(self, relation: str, rows: int) -> Fraction:
        tables = self.units * self.noise((0,), 1).cost((), relation, rows)
        return tables + self.choosing_cost(relation)

    def choosing_cost(self, relation: str) -> Fraction:
        ratio = Fraction(
            distance_sensitivity(relation, self.rows),
            distance_sensitivity(self.relation, self.rows),
        )
        return self.chosen * (ratio**2 if self._gaussian else ratio)

    def words(self) -> str:
        return f"tables chosen in up to {self.units} rounds"

    def measure(self, counts: Counts, first: Known) -> tuple[list[Measured], Potentials]:
        known, result = first, list[Measured]()
        sizes = self.workload.sizes
        model = MarginalEstimate(sizes, known)
        units, left = 1, self.units
        while left:
            units = left if left < 2 * units else units
            left -= units
            open_to = self.small_enough(list(known), 1 - Fraction(left, self.units))
            expected = model.tables(open_to)
            scores = [self.score(counts[each], expected[each], each, units) for each in open_to]
            winner = noisy_max(np.array(scores, np.int64), self.scale(units), gumbel=self._gaussian)
            attributes = open_to[winner]
            result.append(measure_table(self.noise(attributes, units), counts))
            known = average_counts(result[-1:], known)
            model = MarginalEstimate(sizes, known, model.potentials)
            moved = np.abs(model.tables([attributes])[attributes] - expected[attributes]).sum()
            if moved <= self.error(attributes, units):
                units *= 4 if self._gaussian else 2  # half the noise
        return result, model.potentials

    def small_enough(self, known: list[Attributes], spent: Fraction) -> list[Attributes]:
        """What may be chosen: the model stays small, in proportion to what is spent by then."""
        inside = {part for each in known for part in list_subsets(each)}
        most = spent * MAX_TREE_CELLS
        return [
            each
            for each in self.counted
            if each in inside or model_cells(self.workload.sizes, [*known, each]) <= most
        ]

    def score(self, counts: Array, expected: Array, attributes: Attributes, units: int) -> int:
        """How wrong the model is about a table, beyond the error that measuring it has."""
        error = min(MAX_DISTANCE, round(STEPS_PER_COUNT * self.error(attributes, units)))
        return self.weights[attributes] * (table_distance(counts, expected) - error)

    def error(self, attributes: Attributes, units: int) -> float:
        """The mean sum of the noise of a table's cells, without their signs."""
        noise = self.noise(attributes, units).noise
        mean = math.sqrt(2 / math.pi * noise.variance) if self._gaussian else noise.spread
        return mean * self.workload.cells(attributes)

    @property
    def _gaussian(self) -> bool:
        return self.unit.kind == "gaussian"


def candidate_tables(workload: Workload) -> tuple[Attributes, ...]:
    """Every table of one column or more that is inside a wanted one, and fits in a model; single
    columns always do."""
    inside = {part for each in workload.sets for part in list_subsets(each) if part}
    fitting = (each for each in inside if len(each) == 1 or workload.cells(each) <= MAX_TREE_CELLS)
    return tuple(sorted(fitting, key=lambda each: (len(each), each)))


def too_many(workload: Workload) -> bool:
    seen: set[Attributes] = set()
    for each in workload.sets:
        if 2 ** len(each) > 2 * MAX_CANDIDATES or len(seen) > MAX_CANDIDATES:
            return True
        seen.update(list_subsets(each))
    return len(seen) > MAX_CANDIDATES


Pair = tuple[int, int]


def spanning_tree(
    columns: int, scores: Mapping[Pair, int], choose: Callable[[Array], int]
) -> list[Pair]:
    """The pairs of a spanning tree, in the order in which they were chosen.

    Args:
        scores: the score of every pair.
        choose: the index of (nearly) the largest of some scores.
    """
    group = list(range(columns))
    chosen: list[Pair] = []
    while len(chosen) < columns - 1:
        joining = [pair for pair in sorted(scores) if group[pair[0]] != group[pair[1]]]
        listed = np.array([scores[pair] for pair in joining], np.int64)
        one, other = joining[choose(listed) if len(joining) > 1 else 0]
        chosen.append((one, other))
        group = [group[one] if each == group[other] else each for each in group]
    return chosen


def spanning_rounds(columns: int) -> int:
    """How many choices a spanning tree takes; two columns leave none."""
    return columns - 1 if columns > 2 else 0


FIRST_SHARE = Fraction(1, 4)
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
    choices: SelectionCost | None

    @classmethod
    def within(
        cls, share: Share, workload: Workload, rows: int, choosing: Fraction
    ) -> SpanningTree:
        columns = len(workload.sizes)
        chosen = choosing if spanning_rounds(columns) else Fraction(0)
        rest = 1 - chosen
        first = equal_noise(take_part(share, rest * FIRST_SHARE), columns, rows)
        later = equal_noise(take_part(share, rest * (1 - FIRST_SHARE)), columns - 1, rows)
        choices = None
        if chosen:
            choices = SelectionCost.within(take_part(share, chosen), spanning_rounds(columns), rows)
        pair = NoisyTable(Measurement((0, 1)), later)
        return cls(columns, NoisyTable(Measurement((0,)), first), pair, choices)

    @property
    def counted(self) -> tuple[Attributes, ...]:
        return tuple(combinations(range(self.columns), 2))

    def cost(self, relation: str, rows: int) -> Fraction:
        pairs = (self.columns - 1) * self.pair.cost((), relation, rows)
        return pairs + self.choosing_cost(relation)

    def choosing_cost(self, relation: str) -> Fraction:
        return Fraction(0) if self.choices is None else self.choices.cost(relation)

    @property
    def spreads(self) -> tuple[float, float]:
        return self.pair.noise.spread, self.pair.noise.spread

    def words(self) -> str:
        return f"{self.columns - 1} chosen pairs" if self.columns > 2 else "1 pair"

    def measure(self, counts: Counts, first: Known) -> tuple[list[Measured], Potentials]:
        margins = [first[(each,)].values for each in range(self.columns)]
        total = rows_known(first)
        scores = {
            (one, other): table_distance(
                counts[one, other], independent_table([margins[one], margins[other]], total)
            )
            for one, other in self.counted
        }
        choices = self.choices

        def choose(scores: Array) -> int:
            if choices is None:
                return 0  # there is but one pair
            return noisy_max(scores, choices.scale, gumbel=choices.gaussian)

        chosen = spanning_tree(self.columns, scores, choose)
        noisy = [NoisyTable(Measurement(each), self.pair.noise) for each in chosen]
        # No estimate: there is one model at the end.
        return [measure_table(each, counts) for each in noisy], {}


SelectionStrategy = Adaptive | SpanningTree
SELECTION_STRATEGIES: dict[str, type[Adaptive] | type[SpanningTree]] = {
    each.name: each for each in (Adaptive, SpanningTree)
}
"""How tables can be chosen, after those of single columns were measured."""
