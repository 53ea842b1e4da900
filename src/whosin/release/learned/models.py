"""The maximum-entropy model of noisy tables, and rows drawn from it; by `mbi`.

Contract: a new process is given noisy numbers, the sizes of domains and a seed, and nothing else;
it answers with the numbers of values in the domains of each drawn row. JAX, with its threads, is
never imported in the process that holds rows, or in one that forks. Rows are drawn (`drawing`) by
NumPy from a seed of 256 secure bits: what is drawn from noisy numbers needs no exact noise of its
own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from whosin import isolation
from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.isolation import Limits
from whosin.marginals.measurements import Measurement
from whosin.marginals.workload import Attributes
from whosin.release.learned.drawing import rows_of
from whosin.release.learned.trees import elimination, with_potentials

LIMITS = Limits(3600.0, 8 << 30, "fewer tables, or smaller ones, make a smaller model")
ITERATIONS, FROM_AN_ESTIMATE = 1500, 300
MOST_MODEL = 2**22
"""Cells of all tables of a model together."""


@dataclass(frozen=True)
class Noisy:
    """A measurement as the model sees it."""

    attributes: Attributes
    differences: Attributes
    values: Array
    deviation: float

    @classmethod
    def of(cls, measurement: Measurement, values: Array, variance: float) -> Noisy:
        """Noisy numbers of a measurement, with the variance of their noise."""
        return cls(measurement.attributes, measurement.differences, values, variance**0.5)

    def to_plain(self) -> tuple[Any, ...]:
        """Without classes of ours."""
        numbers = np.ascontiguousarray(self.values, np.float64)
        return self.attributes, self.differences, numbers.tobytes(), self.deviation


def require_small(sizes: Sequence[int], sets: Sequence[Attributes], field: str) -> int:
    """The cells of the model of some tables.

    Raises:
        InvalidInput: there are too many.
    """
    cells = model_cells(sizes, sets)
    if cells > MOST_MODEL:
        accepted = f"tables whose model has at most {MOST_MODEL:,} cells (choose = true keeps it"
        raise InvalidInput(field, f"{accepted} small)", f"{cells:,}")
    return cells


def model_cells(sizes: Sequence[int], sets: Sequence[Attributes]) -> int:
    """How many cells the tables have that a model of these sets works with."""
    return sum(
        sizes[gone] * prod(sizes[each] for each in around)
        for gone, around in elimination(sizes, sets)
    )


def draw(
    sizes: Sequence[int],
    noisy: Sequence[Noisy],
    total: float,
    length: int,
    start: Mapping[Attributes, Array],
) -> tuple[Array, ...]:
    """Rows of the model, for each column the numbers of values in its domain.

    Args:
        total: the noisy number of all rows.
        length: how many rows to draw.
        start: potentials of an estimate from the same numbers, where the fit begins.
    """
    seed = os.urandom(32)
    given = [each.to_plain() for each in noisy]
    begin = [(each, np.ascontiguousarray(table).tobytes()) for each, table in start.items()]
    result = isolation.run(drawn, tuple(sizes), given, total, length, begin, seed, limits=LIMITS)
    return tuple(np.frombuffer(column, np.int32) for column in result)


def drawn(
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
        iterations = FROM_AN_ESTIMATE
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
    tree, conditionals = with_potentials(sizes, tables)
    rng = np.random.default_rng(np.frombuffer(seed, np.uint32))
    return [each.tobytes() for each in rows_of(tree, conditionals, length, rng)]


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
