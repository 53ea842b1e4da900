"""The maximum-entropy model of noisy marginals: junction trees, estimates, and drawn rows.

*Junction trees.* Columns are removed one by one, always the one that makes the smallest table with
all those that it shares a set with; these then share a set. Each of these tables hangs from a later
one that holds what the two have in common, its separator. A model is then a table of shares at each
root, and below it, for each table, the shares of its cells given those of its separator
(`Conditionals`).

*Rows* are drawn so that their tables are near to the model's; independent ones would add the error
of a sample. Table by table of the junction tree, parents first: rows with the same values in the
separator are a group, and their new cells are at evenly spaced levels of the conditional shares,
one level for each row, shifted at random. So each group has every cell as often as the model says,
to within one row. Which row of the group gets which level is random: any rule by the other columns
would tie tables together that have nothing in common beyond the separator.

*The finished model* is fitted in a new process that is given noisy numbers, the sizes of domains
and a seed, and nothing else. JAX, with its threads, is never imported in the process that holds
rows, or in one that forks. NumPy draws from a seed of 256 secure bits: what is drawn from noisy
numbers needs no exact noise of its own. *In rounds*, where compiling a model with JAX takes longer
than fitting it, `MarginalEstimate` does the same in NumPy. Both start from even shares and follow
the gradient of the squared error, each table weighted by its noise (mirror descent; McKenna,
Sheldon and Miklau 2019).

*The distance* of a table of counts from an estimate of it is Σ |S·count − e| over the cells, where
S is `STEPS_PER_COUNT` and e the estimate in steps, rounded to whole numbers: no rounding of floats
enters the sensitivity. What one person changes, whose rows that count are at most r: the estimate
stays the same, since it is made of noisy numbers that are already out. A person who is there or not
changes counts by at most r in all, and each |S·count − e| by at most S times what its count changes
(the triangle inequality): at most S·r together. Replacing a person: at most r counts fall by one
and r rise, S·2r. Both are reached: where all r rows of a person are in one cell that is below its
estimate, and those of the other in one that is above it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from whosin import isolation
from whosin.errors import InvalidInput, spell
from whosin.exact import Array
from whosin.isolation import TaskLimits
from whosin.marginals.estimation import Measurement, project_to_simplex
from whosin.marginals.workload import Attributes

Conditionals = list[Array]


@dataclass(frozen=True)
class JunctionTree:
    """The tables of a model; parents come before their children.

    Attributes:
        sizes: how many values each column has.
        tables: the columns of each table, rising.
        separators: those that each table has in common with its parent.
        parents: the index of each table's parent, None for a root.
    """

    sizes: tuple[int, ...]
    tables: tuple[Attributes, ...]
    separators: tuple[Attributes, ...]
    parents: tuple[int | None, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], sets: Iterable[Attributes]) -> JunctionTree:
        removed = elimination_order(sizes, sets)
        turn = {gone: number for number, (gone, _) in enumerate(removed)}
        tables: list[set[int]] = []
        separators: list[Attributes] = []
        parents: list[int | None] = []
        table_of: dict[int, int] = {}
        for gone, around in reversed(removed):
            parent = table_of[min(around, key=turn.__getitem__)] if around else None
            if parent is not None and around == tables[parent]:
                tables[parent] = around | {gone}
                table_of[gone] = parent
                continue
            table_of[gone] = len(tables)
            tables.append(around | {gone})
            separators.append(tuple(sorted(around)))
            parents.append(parent)
        columns = tuple(tuple(sorted(each)) for each in tables)
        return cls(tuple(sizes), columns, tuple(separators), tuple(parents))

    def shape(self, at: int) -> tuple[int, ...]:
        return tuple(self.sizes[each] for each in self.tables[at])

    def shape_within(self, attributes: Attributes, at: int) -> tuple[int, ...]:
        """The shape of a smaller table so that it can be multiplied with this one."""
        return tuple(self.sizes[each] if each in attributes else 1 for each in self.tables[at])

    def others(self, attributes: Attributes, at: int) -> tuple[int, ...]:
        """The axes of a table that are of other columns."""
        return tuple(axis for axis, each in enumerate(self.tables[at]) if each not in attributes)

    def smallest(self, attributes: Attributes) -> int | None:
        """The index of the smallest table that holds these columns, if one does."""
        asked = set(attributes)
        holding = [at for at, table in enumerate(self.tables) if asked.issubset(table)]
        return min(holding, key=lambda at: prod(self.shape(at)), default=None)

    def gathered(self, potentials: Mapping[Attributes, Array]) -> list[Array]:
        """The sums of tables, each put into the smallest of the tree that holds it."""
        sums = [np.zeros(self.shape(at)) for at in range(len(self.tables))]
        for attributes, table in potentials.items():
            at = self.smallest(attributes)
            if at is None:
                raise ValueError(f"no table of the tree has the columns {attributes}")
            sums[at] += table.reshape(self.shape_within(attributes, at))
        return sums

    def conditionals(self, logarithms: list[Array]) -> Conditionals:
        """The model whose joint shares are, up to a factor, the product of some tables."""
        tables = [np.exp(each - each.max()) for each in logarithms]
        for at in reversed(range(len(tables))):
            table, parent = tables[at], self.parents[at]
            axes = self.others(self.separators[at], at)
            total = table.sum(axis=axes, keepdims=True)
            tables[at] = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
            if parent is not None:
                shape = self.shape_within(self.separators[at], parent)
                tables[parent] *= (total / total.max()).reshape(shape)
        return tables

    def shares(self, conditionals: Conditionals) -> list[Array]:
        result: list[Array] = []
        for at, (given, parent) in enumerate(zip(conditionals, self.parents, strict=True)):
            if parent is None:
                result.append(given)
                continue
            common = self.separators[at]
            known = result[parent].sum(axis=self.others(common, parent))
            result.append(given * known.reshape(self.shape_within(common, at)))
        return result

    def margins(
        self, conditionals: Conditionals, wanted: Iterable[Attributes]
    ) -> dict[Attributes, Array]:
        """The shares of any sets of columns, rising ones, within a table of the tree or not."""
        shares = self.shares(conditionals)
        result = {}
        for attributes in wanted:
            at = self.smallest(attributes)
            if at is None:
                result[attributes] = self._across(conditionals, shares, attributes)
            else:
                result[attributes] = shares[at].sum(axis=self.others(attributes, at))
        return result

    def _across(
        self, conditionals: Conditionals, shares: list[Array], attributes: Attributes
    ) -> Array:
        """From the leaves up: each table that has some of the columns tells its parent about them,
        until one table knows of all. Columns that no table connects are independent."""
        asked = set(attributes)
        told: dict[int, list[tuple[Array, list[int]]]] = {}
        ends: list[tuple[Array, list[int]]] = []
        for at in reversed(range(len(self.tables))):
            messages, own = told.pop(at, []), set(self.tables[at])
            if not messages and not (own - set(self.separators[at])) & asked:
                continue
            known = (own & asked).union(*(set(columns) & asked for _, columns in messages))
            parent = self.parents[at]
            whole = parent is None or known == asked
            kept = known if whole else known | set(self.separators[at])
            held = (shares if whole else conditionals)[at], list(self.tables[at])
            message = _combine_messages(held, messages, kept)
            if whole:
                ends.append(message)
            else:
                told.setdefault(parent or 0, []).append(message)
            if known == asked:
                break
        result = ends[0]
        for each in ends[1:]:
            result = _combine_messages(result, [each], asked)
        return np.asarray(np.einsum(result[0], result[1], list(attributes)))


def fit_potentials(
    sizes: Sequence[int], potentials: Mapping[Attributes, Array]
) -> tuple[JunctionTree, Conditionals]:
    """The model whose logarithms of joint shares are, up to a constant, a sum of tables."""
    tree = JunctionTree.of(sizes, potentials)
    return tree, tree.conditionals(tree.gathered(potentials))


def elimination_order(
    sizes: Sequence[int], sets: Iterable[Attributes]
) -> list[tuple[int, set[int]]]:
    """Each column in the order of removal, with those that it shares a set with by then."""
    near: dict[int, set[int]] = {each: set() for each in range(len(sizes))}
    for attributes in sets:
        for each in attributes:
            near[each] |= set(attributes) - {each}
    removed = []
    while near:
        cells = {each: sizes[each] * prod(sizes[other] for other in near[each]) for each in near}
        gone = min(cells, key=cells.__getitem__)
        around = near.pop(gone)
        removed.append((gone, around))
        for each in around:
            near[each] = (near[each] | around) - {each, gone}
    return removed


def _combine_messages(
    table: tuple[Array, list[int]], messages: list[tuple[Array, list[int]]], kept: set[int]
) -> tuple[Array, list[int]]:
    """The product of a table with messages, summed over the columns that nobody needs later."""
    numbers, columns = table
    for index, (message, given) in enumerate(messages):
        later = {each for _, others in messages[index + 1 :] for each in others}
        out = [each for each in dict.fromkeys(columns + given) if each in kept | later]
        first = [each for each in columns if each in set(given) | set(out)]
        numbers = np.einsum(numbers, columns, first)  # what is in no message goes first
        numbers, columns = np.einsum(numbers, first, message, given, out, optimize=True), out
    out = [each for each in columns if each in kept]
    return np.asarray(np.einsum(numbers, columns, out)), out


def draw_rows(
    tree: JunctionTree, conditionals: Conditionals, length: int, rng: np.random.Generator
) -> list[Array]:
    """For each column the numbers of values, in no order that means anything."""
    drawn: dict[int, Array] = {}
    for at, given in enumerate(conditionals):
        old = tree.separators[at]
        new = tuple(each for each in tree.tables[at] if each not in old)
        axes = [tree.tables[at].index(each) for each in old + new]
        groups = int(np.prod([tree.sizes[each] for each in old], dtype=np.int64))
        shares = given.transpose(axes).reshape(groups, -1)
        group = _code_rows(drawn, old, tree.sizes, length)
        cells = _spread_rows(group, shares, rng)
        shape = tuple(tree.sizes[each] for each in new)
        for each, values in zip(new, np.unravel_index(cells, shape), strict=True):
            drawn[each] = np.asarray(values, np.int32)
    order = rng.permutation(length)
    return [drawn[each][order] for each in range(len(tree.sizes))]


def _code_rows(
    drawn: dict[int, Array], columns: tuple[int, ...], sizes: tuple[int, ...], length: int
) -> Array:
    if not columns:
        return np.zeros(length, np.int64)
    shape = tuple(sizes[each] for each in columns)
    return np.asarray(np.ravel_multi_index(tuple(drawn[each] for each in columns), shape))


def _spread_rows(group: Array, shares: Array, rng: np.random.Generator) -> Array:
    """A cell for each row, by its group's shares."""
    length = len(group)
    order = np.lexsort((rng.random(length), group))
    sorted_group = group[order]
    counts = np.bincount(group, minlength=len(shares))
    starts = np.cumsum(counts) - counts
    ranks = np.arange(length) - starts[sorted_group]
    levels = (ranks + rng.random(len(shares))[sorted_group]) / counts[sorted_group]
    ends = np.cumsum(shares, axis=1)
    cells = np.empty(length, np.int64)
    for each in np.flatnonzero(counts):
        here = slice(starts[each], starts[each] + counts[each])
        last = ends[each, -1]
        drawn = np.searchsorted(ends[each], levels[here] * last, side="right")
        cells[here] = np.minimum(drawn, np.flatnonzero(shares[each])[-1] if last > 0 else 0)
    result = np.empty(length, np.int64)
    result[order] = cells
    return result


MODEL_LIMITS = TaskLimits(3600.0, 8 << 30, "fewer tables, or smaller ones, make a smaller model")
ITERATIONS, WARM_ITERATIONS = 1500, 300
MAX_MODEL_CELLS = 2**22
"""Cells of all tables of a model together."""


def require_small(sizes: Sequence[int], sets: Sequence[Attributes], field: str) -> int:
    """The cells of the model of some tables.

    Raises:
        InvalidInput: there are too many.
    """
    cells = model_cells(sizes, sets)
    if cells > MAX_MODEL_CELLS:
        message = (
            f"the model of these tables would have {spell(cells)} cells; at most "
            f"{spell(MAX_MODEL_CELLS)} fit"
        )
        raise InvalidInput(message, field=field, value=cells, hint="choose = true keeps it small")
    return cells


def model_cells(sizes: Sequence[int], sets: Sequence[Attributes]) -> int:
    """How many cells the tables have that a model of these sets works with."""
    return sum(
        sizes[gone] * prod(sizes[each] for each in around)
        for gone, around in elimination_order(sizes, sets)
    )


def draw_model_rows(
    sizes: Sequence[int],
    noisy: Sequence[tuple[Measurement, Array, float]],
    total: float,
    length: int,
    start: Mapping[Attributes, Array],
) -> tuple[Array, ...]:
    """Rows of the model, for each column the numbers of values in its domain.

    Args:
        noisy: each measurement with its noisy numbers and the variance of their noise.
        total: the noisy number of all rows.
        length: how many rows to draw.
        start: potentials of an estimate from the same numbers, where the fit begins.
    """
    seed = os.urandom(32)
    given = [  # without classes of ours
        (each.attributes, each.differences, _float_bytes(values), variance**0.5)
        for each, values, variance in noisy
    ]
    begin = [(each, _float_bytes(table)) for each, table in start.items()]
    result = isolation.run_isolated(
        fit_and_draw, tuple(sizes), given, total, length, begin, seed, limits=MODEL_LIMITS
    )
    return tuple(np.frombuffer(column, np.int32) for column in result)


def _float_bytes(numbers: Array) -> bytes:
    return np.ascontiguousarray(numbers, np.float64).tobytes()


def fit_and_draw(
    sizes: tuple[int, ...],
    noisy: list[tuple[Any, ...]],
    total: float,
    length: int,
    start: list[tuple[Attributes, bytes]],
    seed: bytes,
) -> list[bytes]:
    """Fit and draw; a task for a process of its own."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    from mbi import CliqueVector, Domain, Factor, LinearMeasurement
    from mbi.estimation import MirrorDescent

    measured = []
    for attributes, inner, values, deviation in noisy:
        shape = tuple(sizes[each] for each in attributes)
        axes = tuple(index for index, each in enumerate(attributes) if each in inner)
        query = _Differences(shape, axes)
        result = np.frombuffer(values, np.float64)
        measured.append(LinearMeasurement(result, tuple(attributes), deviation, query))
    domain = Domain(tuple(range(len(sizes))), tuple(sizes))
    begin, iterations = None, ITERATIONS
    if start:
        iterations = WARM_ITERATIONS
        factors = {}
        for attributes, numbers in start:
            part = domain.project(attributes)
            factors[attributes] = Factor(part, np.frombuffer(numbers).reshape(part.shape))
        begin = CliqueVector(domain, tuple(factors), factors)
    model = MirrorDescent().estimate(
        domain, measured, total, iters=iterations, tol=1e-7, warm_start=begin
    )
    tables = {
        tuple(factor.domain.attributes): np.asarray(factor.values, np.float64)
        for factor in model.potentials.tables.values()
    }
    tree, conditionals = fit_potentials(sizes, tables)
    rng = np.random.default_rng(np.frombuffer(seed, np.uint32))
    return [each.tobytes() for each in draw_rows(tree, conditionals, length, rng)]


@dataclass(frozen=True)
class _Differences:
    """What a `Measurement` is of the counts of its table, for `mbi`."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def __call__(self, factor: Any) -> Any:
        result = factor.datavector(flatten=False)
        for axis in self.axes:
            size = self.shape[axis]
            if size == 2:
                result = result.take(np.array([0]), axis) - result.take(np.array([1]), axis)
            else:
                result = size * result - result.sum(axis=axis, keepdims=True)
        return result.ravel()

    def op_norm_sq(self) -> float:
        """The largest factor by which it makes squares larger."""
        sizes = [self.shape[axis] for axis in self.axes]
        return float(prod(2 if size == 2 else size**2 for size in sizes))


ESTIMATES_ITERATIONS = 100
EVERY, LITTLE = 25, 1e-6
"""It ends where this many steps gain less than this part of the squared error."""
UP, DOWN = 1.1, 0.5


@dataclass(frozen=True)
class AveragedMarginal:
    """All noisy counts of one table, as one: their mean, the less noisy ones counting more.

    Attributes:
        weight: 1/variance.
    """

    values: Array
    weight: float

    def and_then(self, values: Array, variance: float) -> AveragedMarginal:
        together = self.weight + 1 / variance
        mean = (self.values * self.weight + values / variance) / together
        return AveragedMarginal(mean, together)


Known = Mapping[Attributes, AveragedMarginal]
Potentials = dict[Attributes, Array]


def rows_known(known: Known) -> float:
    if not known:
        return 1.0
    sums = [float(each.values.sum()) for each in known.values()]
    weights = [each.weight / each.values.size for each in known.values()]
    return max(1.0, float(np.average(sums, weights=weights)))


class MarginalEstimate:
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
        most = ESTIMATES_ITERATIONS if iterations is None else iterations
        self._potentials, self._conditionals = self._fitted(potentials, most)

    @property
    def potentials(self) -> Potentials:
        """Where the next one can start."""
        return dict(zip(self._sets, self._potentials, strict=True))

    def tables(self, wanted: Iterable[Attributes]) -> dict[Attributes, Array]:
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


STEPS_PER_COUNT = 1024
"""Steps that a row is divided into: estimates of cells with less than one row count too."""
MAX_STEPS = 2.0**42
"""Rows of an estimate: with this many counted ones too, sums stay within 64 bits."""


def distance_sensitivity(relation: str, rows: int) -> int:
    """How far one person can move a distance."""
    return STEPS_PER_COUNT * rows * (2 if relation == "replace" else 1)


def table_distance(counts: Array, expected: Array) -> int:
    """From counts to an estimate that is public."""
    return int(np.abs(STEPS_PER_COUNT * counts.astype(np.int64) - estimate_steps(expected)).sum())


def estimate_steps(expected: Array) -> Array:
    """An estimate in whole steps; cells below 0 count as 0, and one that is too large shrinks."""
    result = np.maximum(np.nan_to_num(np.asarray(expected, np.float64)), 0.0)
    total = float(result.sum())
    if total > MAX_STEPS:
        result = result * (MAX_STEPS / total)
    return np.asarray(np.rint(result * STEPS_PER_COUNT), np.int64)


def independent_table(margins: Sequence[Array], total: float) -> Array:
    """The table in which columns have these (noisy) margins and nothing to do with each other."""
    return reduce(np.multiply.outer, map(margin_shares, margins), np.array(float(total)))


def margin_shares(margin: Array) -> Array:
    """Noisy counts as shares: those nearest to them, in least squares, that are not below 0 and add
    up to 1. Where noise makes the total 0 or less, even ones."""
    noisy = np.asarray(margin, np.float64).ravel()
    total = float(noisy.sum())
    if total <= 0:
        return np.full(margin.shape, 1 / noisy.size)
    result = project_to_simplex(noisy, total)
    return np.asarray(result / result.sum()).reshape(margin.shape)
