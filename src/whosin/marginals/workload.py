"""Which marginals are wanted: sets of attributes, sums over cells, covers by larger tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from whosin.errors import InvalidInput, read_whole, spell
from whosin.exact import Array

# Sums over cells of one attribute: ranges, cumulative counts, the upper level of a hierarchy.
#
# Where a table asks for sums of an attribute, it has a row for each sum instead of one for each
# cell. A sum is a run of cells, in an order of the cells that all sums of one `Sums` share. No
# matrix is made: a sum of l of n cells has l − l²/n of its squared length in the residual and l/n
# of the total, which is all that F20 needs, and running totals give the sums themselves.


@dataclass(frozen=True)
class Sums:
    """Rows that are sums of cells.

    Args:
        size: how many cells the attribute has.
        spans: (start, end) of each sum, the end not in it.
        order: the cells in the order that spans are about; their own order by default.
    """

    size: int
    spans: tuple[tuple[int, int], ...]
    order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.spans or not all(0 <= a < b <= self.size for a, b in self.spans):
            message = f"spans must be pairs (first, end) within {self.size} cells"
            raise InvalidInput(message, field="spans", value=self.spans[:5])
        if self.order and sorted(self.order) != list(range(self.size)):
            message = f"order must have each of the cells 0 to {self.size - 1} once"
            raise InvalidInput(message, field="order", value=self.order[:5])

    @property
    def lengths(self) -> Array:
        return np.array([end - start for start, end in self.spans], np.float64)

    @property
    def within(self) -> Array:
        """For each sum what it has of the residual, squared: l − l²/n."""
        return np.asarray(self.lengths * (1 - self.lengths / self.size))

    @property
    def evenly(self) -> Array:
        """For each sum its square share of the total, as if cells were equal: (l/n)²."""
        return np.asarray((self.lengths / self.size) ** 2)

    @property
    def kinds(self) -> Array:
        """One sum of each length: others of the same length are as exact."""
        return np.unique(self.lengths, return_index=True)[1]

    @property
    def kind_of(self) -> Array:
        return np.unique(self.lengths, return_inverse=True)[1]

    def of(self, table: Array, axis: int) -> Array:
        """A table with the sums instead of the cells of an axis."""
        if self.order:
            table = table.take(self.order, axis=axis)
        running = np.cumsum(table, axis=axis)
        first = np.zeros_like(running.take([0], axis=axis))
        running = np.concatenate([first, running], axis=axis)
        starts, ends = zip(*self.spans, strict=True)
        return np.asarray(running.take(ends, axis=axis) - running.take(starts, axis=axis))


def sum_cells(table: Array, sums: Sequence[Sums | None]) -> Array:
    """A table with sums for some of its attributes; axes before those of the table stay."""
    start = table.ndim - len(sums)
    for axis, each in enumerate(sums, start):
        if each is not None:
            table = each.of(table, axis)
    return table


# Which tables are wanted: sets of attributes, each attribute with a number of values.
#
# Attributes are numbered from 0; a set is a rising tuple of these numbers, and the empty set is the
# total. A table C is the sum of its residuals R_A, A ⊆ C, where R_A is the part of the table A that
# no smaller one knows. `residuals` has every A that some table needs, smaller ones first. A table
# may be asked by sums of its cells (`Sums`) instead of the cells themselves.


MAX_MARGINALS = 100_000
MAX_MARGINAL_CELLS = 10**7
Attributes = tuple[int, ...]


@dataclass(frozen=True)
class Workload:
    """Tables with their weights.

    Args:
        sizes: how many values each attribute has.
        sets: the attributes of each table.
        weights: how much the mean variance of a table's cells counts; 1 each by default.
        sums: for each table and each of its attributes which sums of its cells are asked; None for
            the cells themselves. By default cells everywhere.
    """

    sizes: tuple[int, ...]
    sets: tuple[Attributes, ...]
    weights: tuple[float, ...] = ()
    sums: tuple[tuple[Sums | None, ...], ...] = ()

    def __post_init__(self) -> None:
        for size in self.sizes:
            read_whole(size, "size of an attribute", 2, MAX_MARGINAL_CELLS)
        if not self.sets or len(self.sets) > MAX_MARGINALS:
            message = f"sets has {len(self.sets)} tables"
            hint = f"give 1 to {spell(MAX_MARGINALS)}"
            raise InvalidInput(message, field="sets", value=len(self.sets), hint=hint)
        self._sort()
        ordered = self.sets
        for each in ordered:
            self._check(each)
        for each, sums in zip(ordered, self.sums, strict=True):
            if any(one and one.size != self.sizes[i] for i, one in zip(each, sums, strict=True)):
                message = "sums are over another number of cells than their attribute has"
                raise InvalidInput(message, field="sums")
        asked = list(zip(ordered, self.sums, strict=True))
        if len(set(asked)) != len(asked):
            twice = next(each for each, _ in asked if ordered.count(each) > 1)
            raise InvalidInput(f"sets has the table {list(twice)} twice", field="sets", value=twice)
        if not self.weights:
            object.__setattr__(self, "weights", (1.0,) * len(ordered))
        if len(self.weights) != len(ordered):
            message = f"weights has {len(self.weights)} numbers for {len(ordered)} tables"
            raise InvalidInput(message, field="weights", value=len(self.weights))
        if not all(0 < each < float("inf") for each in self.weights):
            message = "weights must be finite and above 0"
            raise InvalidInput(message, field="weights", value=min(self.weights))

    def _sort(self) -> None:
        given = self.sums or tuple((None,) * len(each) for each in self.sets)
        if [len(each) for each in given] != [len(each) for each in self.sets]:
            message = "sums must have one entry for each attribute of each table"
            raise InvalidInput(message, field="sums")
        sets, sums = [], []
        for attributes, own in zip(self.sets, given, strict=True):
            if any(each is not None and not each.within.any() for each in own):
                message = "sums of an attribute only has sums over all its cells"
                raise InvalidInput(
                    message, field="sums", hint="give a sum that leaves a cell out, or None"
                )
            pairs = sorted(zip(attributes, own, strict=True), key=lambda pair: pair[0])
            sets.append(tuple(each for each, _ in pairs))
            sums.append(tuple(each for _, each in pairs))
        object.__setattr__(self, "sets", tuple(sets))
        object.__setattr__(self, "sums", tuple(sums))

    def _check(self, each: Attributes) -> None:
        if len(set(each)) != len(each):
            message = f"sets has a table with an attribute twice: {list(each)}"
            raise InvalidInput(message, field="sets", value=list(each))
        if each and not (each[0] >= 0 and each[-1] < len(self.sizes)):
            message = f"sets has a table of unknown attributes: {list(each)}"
            hint = f"attributes are 0 to {len(self.sizes) - 1}"
            raise InvalidInput(message, field="sets", value=list(each), hint=hint)
        if self.cells(each) > MAX_MARGINAL_CELLS:
            message = (
                f"the table {list(each)} has {spell(self.cells(each))} cells, more than "
                f"{spell(MAX_MARGINAL_CELLS)}"
            )
            raise InvalidInput(message, field="sets", value=self.cells(each))

    @classmethod
    def up_to(cls, sizes: Sequence[int], order: int) -> Workload:
        """All tables of 1 to `order` attributes."""
        read_whole(order, "order", 1, len(sizes))
        return cls(tuple(sizes), tuple(list_sets(len(sizes), order)))

    def cells(self, attributes: Attributes) -> int:
        return prod(self.sizes[each] for each in attributes)

    @property
    def cells_in_all(self) -> int:
        return sum(prod(self.asked(number)) for number in range(len(self.sets)))

    def asked(self, number: int) -> tuple[int, ...]:
        """The shape of a table as it is asked, with sums where they are."""
        return tuple(
            self.sizes[each] if sums is None else len(sums.spans)
            for each, sums in zip(self.sets[number], self.sums[number], strict=True)
        )

    def alike(self, number: int) -> bool:
        """Whether all numbers of a table are equally exact, being cells."""
        return all(each is None for each in self.sums[number])

    def shape(self, attributes: Attributes) -> tuple[int, ...]:
        return tuple(self.sizes[each] for each in attributes)

    @cached_property
    def residuals(self) -> tuple[Attributes, ...]:
        result = {part for each in self.sets for part in list_subsets(each)}
        return tuple(sorted(result, key=lambda part: (len(part), part)))

    @cached_property
    def index_of(self) -> dict[Attributes, int]:
        return {part: index for index, part in enumerate(self.residuals)}

    @cached_property
    def spread(self) -> Array:
        """p_A = ∏(1 − 1/n_i): how much of one person is in the residual, squared."""
        return np.array(
            [prod(1 - 1 / self.sizes[i] for i in part) for part in self.residuals], np.float64
        )

    @cached_property
    def uses(self) -> tuple[Array, Array, Array]:
        """(tables, residuals, factors): the mean variance of a table's cells is Σ factor / π_A, the
        factor being ∏_{i∈A}(1 − 1/n_i) ∏_{j∈C∖A} n_j^−2 (F20). For sums of l cells they are the
        means of l − l²/n and of (l/n)²: the mean over a product of sums is one of means."""
        tables, residuals, factors = [], [], []
        for number, each in enumerate(self.sets):
            inside, outside = self._means(number)
            for part in list_subsets(each):
                tables.append(number)
                residuals.append(self.index_of[part])
                factors.append(prod(inside[i] if i in part else outside[i] for i in each))
        return np.array(tables), np.array(residuals), np.array(factors)

    def _means(self, number: int) -> tuple[dict[int, float], dict[int, float]]:
        """For each attribute of a table the mean over its rows of what is in the residual, and of
        what is spread evenly."""
        inside, outside = {}, {}
        for each, sums in zip(self.sets[number], self.sums[number], strict=True):
            size = self.sizes[each]
            inside[each] = 1 - 1 / size if sums is None else float(sums.within.mean())
            outside[each] = size**-2 if sums is None else float(sums.evenly.mean())
        return inside, outside

    def importance(self, weights: Array | None = None) -> Array:
        """The weight of each residual's 1/π_A in the mean variance over the tables."""
        given = np.array(self.weights) if weights is None else weights
        tables, residuals, factors = self.uses
        shares = given / given.sum()
        return np.bincount(residuals, factors * shares[tables], len(self.residuals))


def list_subsets(attributes: Attributes) -> list[Attributes]:
    return [part for size in range(len(attributes) + 1) for part in combinations(attributes, size)]


def list_sets(attributes: int, order: int) -> list[Attributes]:
    """All sets of 1 to `order` attributes, refused before they are listed where they are many."""
    count, result = 0, 1
    for size in range(1, order + 1):
        result = result * (attributes - size + 1) // size
        count += result
    if count > MAX_MARGINALS:
        message = (
            f"tables of up to {order} attributes are {spell(count)}, more than "
            f"{spell(MAX_MARGINALS)}"
        )
        raise InvalidInput(message, field="order", value=order, hint="use a smaller order")
    return [part for size in range(1, order + 1) for part in combinations(range(attributes), size)]


# Larger tables that hold the wanted ones: few of them, each of a limited number of cells.


def cover_sets(
    sizes: Sequence[int], sets: Sequence[Attributes], cells: int
) -> tuple[Attributes, ...]:
    """Sets of attributes, found greedily. Each wanted set is inside one of them.

    Args:
        cells: how many cells a table may have; one that is wanted may have more.
    """
    member = np.zeros((len(sets), len(sizes)), np.float32)
    for number, each in enumerate(sets):
        member[number, list(each)] = 1
    lengths = np.log(np.asarray(sizes, np.float64))
    order = np.argsort(-(member @ lengths), kind="stable")
    # The attributes of each set in a row, filled up with a number that stands for none.
    listed = np.full((len(sets), max(map(len, sets), default=0)), len(sizes), np.int64)
    for row, number in enumerate(order):
        listed[row, : len(sets[number])] = sets[number]
    holders = [np.flatnonzero(column) for column in member[order].T]
    left = np.ones(len(sets), bool)  # those that are inside none yet
    wanted = np.array([len(sets[number]) for number in order], np.int16)
    most, count = np.log(cells) + 1e-9, len(sizes)

    def grow(first: Attributes) -> Attributes:
        """Add attributes one by one, after those of the first set. Each time it is the one that
        completes most sets for its length; where none completes any, the one that is in most sets
        that are partly inside. Sets that are inside at the end are left no longer."""
        inside, missing = np.zeros(count, bool), wanted.copy()
        added: Sequence[int] = first
        while True:
            for each in added:
                inside[each] = True
                missing[holders[each]] -= 1
            fits = ~inside & (lengths + lengths[inside].sum() <= most)
            completed = np.zeros(count, np.int64)
            for some in (missing == 1, missing > 1):
                if fits.any() and not completed[fits].any():
                    named = listed[left & some].ravel()
                    completed = np.bincount(named, minlength=count + 1)[:count]
            if not completed[fits].any():
                left[missing == 0] = False
                return tuple(np.flatnonzero(inside).tolist())
            added = (int(np.argmax(np.where(fits, completed / lengths, -1.0))),)

    return tuple(grow(sets[order[row]]) for row in range(len(sets)) if left[row])


def maximal_sets(sets: Sequence[Attributes]) -> set[Attributes]:
    inside = {part for each in sets for part in list_subsets(each) if part != each}
    return set(sets) - inside
