"""Mutual information: the optimum under it (PD-MIP), and that of any mechanism found."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from whosin.distortion.bounds import distortion_bounds, epsilon_bounds, known_threshold
from whosin.distortion.by_type import ByType
from whosin.distortion.closed_forms import h
from whosin.distortion.linear import Answer
from whosin.distortion.optimum import Optimum
from whosin.distortion.per_row import PerRow, as_matrix
from whosin.distortion.rate import (
    MOST_COMPONENTS,
    Letter,
    row_letter,
    solve,
    table_letter,
    type_information,
)
from whosin.distortion.structure import Structure, is_hamming
from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.mechanisms import Mechanism


def rate_optimum(
    known: Structure, cost: Array, *, epsilon: float | None = None, distortion: float | None = None
) -> Optimum:
    space, plain = known.space, is_hamming(cost)
    letters, kinds = _letters(known, cost)
    point, gap = solve(letters, distortion=distortion, information=epsilon)
    if known.rows is not None:
        made = [as_matrix(channel) for channel in point.conditionals]
        order = [kinds[row] for row in known.rows]
        mechanism: Mechanism = PerRow(
            (made[0],) if len(made) == 1 else tuple(made[i] for i in order)
        )
    else:
        mechanism = ByType(space, known.groups, known.types, point.conditionals[0])
    if distortion is not None:
        bounds = epsilon_bounds(known, cost, "mutual-information", distortion)
        given, level = "distortion", point.information
    else:
        assert epsilon is not None
        bounds = distortion_bounds(known, cost, "mutual-information", epsilon)
        given, level = "epsilon", epsilon
    tight = (
        plain and known.spread < math.inf and point.distortion <= h(space, known_threshold(known))
    )
    note = "Shannon's bound is attained" if tight else ""
    return Optimum(
        space,
        "mutual-information",
        given,
        point.distortion,
        level,
        point.information,
        mechanism,
        gap,
        *bounds,
        ("T17",) if tight else (),
        note,
    )


def _letters(known: Structure, cost: Array) -> tuple[list[Letter], dict[tuple[Fraction, ...], int]]:
    if known.rows is not None:
        kinds: dict[tuple[Fraction, ...], int] = {}
        for number, group in enumerate(known.groups):
            kinds[known.rows[group[0]]] = number
        many = {known.rows[group[0]]: len(group) for group in known.groups}
        return [
            row_letter(np.array([float(p) for p in row]), cost, many[row]) for row in kinds
        ], kinds
    if len(known.masses) > MOST_COMPONENTS:
        raise Unsupported(
            f"rate–distortion over {len(known.masses):,} kinds of tables, of at most "
            f"{MOST_COMPONENTS:,}: independent rows are solved one by one, exchangeable by count"
        )
    return [table_letter(known.types, known.masses, cost)], {}


def typed_information(known: Structure, answer: Answer) -> float:
    return type_information(known.types, known.masses, answer.weights)


def information_of(known: Structure, mechanism: Mechanism) -> float:
    """I(X;Y) of a closed form."""
    space = known.space
    if isinstance(mechanism, PerRow) and known.rows is not None:
        total = 0.0
        for group in known.groups:
            masses = np.array([float(p) for p in known.rows[group[0]]])
            lines = mechanism.of_row(group[0])
            channel = np.array([[float(p) for p in line] for line in lines])
            total += len(group) * row_letter(masses, channel, 1).information(channel)
        return total
    # T17: E_i attains Shannon's bound.
    from whosin.notions import MutualInformation

    if space.worlds <= 1024:
        return float(MutualInformation(known.prior).measure(mechanism, space).value)
    return math.nan
