"""Mutual information: the optimum under it (PD-MIP), and that of any mechanism found."""

from __future__ import annotations

import math

import numpy as np

from whosin.distortion.closed.bounds import distortion_bounds, epsilon_bounds, known_threshold
from whosin.distortion.closed.costs import best_constant, is_hamming
from whosin.distortion.closed.hamming import h, h_inverse
from whosin.distortion.mechanisms.by_type import ByType
from whosin.distortion.mechanisms.per_block import PerBlock
from whosin.distortion.mechanisms.per_row import PerRow, as_matrix
from whosin.distortion.optimum import Optimum
from whosin.distortion.program.certificate import shares_of
from whosin.distortion.program.independent_parts import combined
from whosin.distortion.rate.least_information import at_distortion, at_information
from whosin.distortion.rate.letters import (
    MOST_COMPONENTS,
    Letter,
    row_information,
    row_letter,
    table_letter,
    type_information,
)
from whosin.distortion.symmetry.detection import blocks
from whosin.distortion.symmetry.parts import Block, Structure
from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.mechanisms import Mechanism


def rate_optimum(
    known: Structure,
    cost: Array,
    *,
    epsilon: float | None = None,
    distortion: float | None = None,
) -> Optimum:
    """The rate–distortion function at a distortion, or its inverse at an information."""
    space, plain, parts = known.space, is_hamming(cost), blocks(known)
    letters = [_letter(block, cost) for block in parts]
    if distortion is not None:
        steep = h_inverse(space, distortion) if plain else 1.0
        point = at_distortion(letters, distortion, min(max(steep, 0.1), 50.0))
        bounds = epsilon_bounds(known, cost, "mutual-information", distortion)
        given, level = "distortion", point.information
    else:
        assert epsilon is not None
        point = at_information(letters, epsilon, float(best_constant(known, cost)[0]))
        bounds = distortion_bounds(known, cost, "mutual-information", epsilon)
        given, level = "epsilon", epsilon
    tight = (
        plain and known.spread < math.inf and point.distortion <= h(space, known_threshold(known))
    )
    made = [
        _mechanism(block.structure, channel)
        for block, channel in zip(parts, point.conditionals, strict=True)
    ]
    result = (point.distortion, level, point.information, combined(known, parts, made), point.gap)
    reasons = (("T17",), "Shannon's bound is attained") if tight else ((), "")
    return Optimum(space, "mutual-information", given, *result, *bounds, *reasons)


def _letter(block: Block, cost: Array) -> Letter:
    known, times = block.structure, len(block.copies)
    if known.rows is not None:
        return row_letter(np.array([float(p) for p in known.rows[0]]), cost, times)
    if len(known.masses) > MOST_COMPONENTS:
        raise Unsupported(
            f"rate–distortion over {len(known.masses):,} kinds of tables, of at most "
            f"{MOST_COMPONENTS:,}: independent rows are solved one by one, exchangeable by count"
        )
    return table_letter(known.types, known.masses, cost, times)


def _mechanism(known: Structure, channel: Array) -> Mechanism:
    if known.rows is not None:
        return PerRow((as_matrix(channel),))
    return ByType(known.space, known.groups, known.types, shares_of(channel))


def information_of(known: Structure, mechanism: Mechanism) -> float:
    """I(X;Y) of a mechanism that was found."""
    if isinstance(mechanism, PerBlock):
        total = 0.0
        for block, (made, copies) in zip(known.blocks, mechanism.parts, strict=True):
            assert isinstance(made, Mechanism)
            total += len(copies) * information_of(block.structure, made)
        return total
    if isinstance(mechanism, PerRow) and known.rows is not None:
        kinds = [(len(group), group[0], known.rows[group[0]]) for group in known.groups]
        return sum(
            many * row_information(np.array([float(p) for p in masses]), _floats(mechanism, row))
            for many, row, masses in kinds
        )
    if isinstance(mechanism, PerRow):
        weights = np.zeros(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            for group, part in zip(known.groups, known.types.groups, strict=True):
                logs = np.log(_floats(mechanism, group[0]))
                mine = np.where(part.tables > 0, part.tables * logs, 0.0).sum(axis=(1, 2))
                weights = np.add.outer(weights, part.log_ways + mine).ravel()
        return type_information(known.types, known.masses, np.exp(weights))
    if isinstance(mechanism, ByType):
        return type_information(known.types, known.masses, mechanism.weights)
    from whosin.notions import MutualInformation

    return float(MutualInformation(known.prior).measure(mechanism, known.space).value)


def _floats(mechanism: PerRow, row: int) -> Array:
    return np.array([[float(p) for p in line] for line in mechanism.of_row(row)])
