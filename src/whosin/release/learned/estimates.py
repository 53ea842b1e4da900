"""What noisy tables say about other tables: a quick maximum-entropy model, in NumPy.

Choosing what to measure next needs a new model in every round. Compiling one with JAX takes longer
than fitting it, so rounds use this one; the finished table is made by `models`. Both start from
even shares and follow the gradient of the squared error, each table weighted by its noise (mirror
descent; McKenna, Sheldon and Miklau 2019). It is given noisy numbers and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whosin.exact import Array
from whosin.marginals.workload import Attributes
from whosin.release.learned.trees import Conditionals, JunctionTree

ITERATIONS = 100
EVERY, LITTLE = 25, 1e-6
"""It ends where this many steps gain less than this part of the squared error."""
UP, DOWN = 1.1, 0.5


@dataclass(frozen=True)
class Averaged:
    """All noisy counts of one table, as one: their mean, the less noisy ones counting more.

    Attributes:
        weight: 1/variance.
    """

    values: Array
    weight: float

    def and_then(self, values: Array, variance: float) -> Averaged:
        """With another measurement of the same table."""
        together = self.weight + 1 / variance
        mean = (self.values * self.weight + values / variance) / together
        return Averaged(mean, together)


Known = Mapping[Attributes, Averaged]
Potentials = dict[Attributes, Array]


def with_new(known: Averaged | None, values: Array, variance: float) -> Averaged:
    """A table that was measured once more, or for the first time."""
    if known is None:
        return Averaged(np.asarray(values, np.float64), 1 / variance)
    return known.and_then(values, variance)


def rows_known(known: Known) -> float:
    """The number of rows, from noisy tables."""
    sums = [float(each.values.sum()) for each in known.values()]
    weights = [each.weight / each.values.size for each in known.values()]
    return max(1.0, float(np.average(sums, weights=weights)))


class Estimate:
    """A model of noisy tables."""

    def __init__(
        self,
        sizes: Sequence[int],
        known: Known,
        start: Potentials | None = None,
        iterations: int | None = None,
    ) -> None:
        """Fit it, from the potentials of an earlier one if there are any."""
        self.total = rows_known(known)
        self._sets = list(known)
        self._known = [known[each] for each in self._sets]
        self._tree = JunctionTree.of(sizes, self._sets)
        self._homes = [self._tree.smallest(each) or 0 for each in self._sets]
        start = start or {}
        potentials = [
            start.get(each, np.zeros(table.values.shape))
            for each, table in zip(self._sets, self._known, strict=True)
        ]
        most = ITERATIONS if iterations is None else iterations
        self._potentials, self._conditionals = self._fitted(potentials, most)

    @property
    def potentials(self) -> Potentials:
        """Where the next one can start."""
        return dict(zip(self._sets, self._potentials, strict=True))

    def tables(self, wanted: Iterable[Attributes]) -> dict[Attributes, Array]:
        """Estimated counts of any tables."""
        shares = self._tree.margins(self._conditionals, wanted)
        return {each: self.total * table for each, table in shares.items()}

    def _fitted(self, potentials: list[Array], most: int) -> tuple[list[Array], Conditionals]:
        weight = max(each.weight for each in self._known)
        step = 2 / (weight * self.total)
        conditionals, counts = self._counts(potentials)
        error, slopes = self._error(counts)
        before = error
        for number in range(1, most + 1):
            moved = [each - step * slope for each, slope in zip(potentials, slopes, strict=True)]
            new, new_counts = self._counts(moved)
            new_error, new_slopes = self._error(new_counts)
            if new_error <= error:
                potentials, conditionals, counts = moved, new, new_counts
                error, slopes = new_error, new_slopes
                step *= UP
            else:
                step *= DOWN
            if number % EVERY == 0:
                if before - error <= LITTLE * max(error, 1.0):
                    break
                before = error
        return potentials, conditionals

    def _counts(self, potentials: list[Array]) -> tuple[Conditionals, list[Array]]:
        """The model, and the estimated counts of what was measured."""
        tree = self._tree
        together = dict(zip(self._sets, potentials, strict=True))
        conditionals = tree.conditionals(tree.gathered(together))
        shares = tree.shares(conditionals)
        counts = [
            self.total * shares[at].sum(axis=tree.others(each, at))
            for each, at in zip(self._sets, self._homes, strict=True)
        ]
        return conditionals, counts

    def _error(self, counts: list[Array]) -> tuple[float, list[Array]]:
        """The weighted squared error, and its slope in each cell."""
        far = [one - each.values for one, each in zip(counts, self._known, strict=True)]
        error = sum(
            each.weight * float(np.square(one).sum())
            for one, each in zip(far, self._known, strict=True)
        )
        return error / 2, [each.weight * one for one, each in zip(far, self._known, strict=True)]
