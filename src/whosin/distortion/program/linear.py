"""PD-DP and PD-I: the best mechanism at one ε, repaired and certified."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.distortion.closed.costs import best_constant, exact_cost, expected_cost
from whosin.distortion.closed.optimal_forms import randomized_response
from whosin.distortion.mechanisms.by_type import ByType
from whosin.distortion.mechanisms.per_row import constant
from whosin.distortion.optimum import BestAtLevel
from whosin.distortion.program.certificate import ShareCertificate, shares_of
from whosin.distortion.program.solver import Program
from whosin.distortion.symmetry.parts import Structure
from whosin.distortion.symmetry.size_limits import MOST_TYPES, need_moves, need_types
from whosin.exact import Array

ENOUGH = Fraction(1, 10**11)
"""A gap at which a closed form is preferred to the program's own answer."""
CLOSE = Fraction(5, 10**10)
"""A gap that ends the attempts."""
MARGIN = 1e-12
"""By how much less than ε the program is first asked for."""
ATTEMPTS = 5
SMALLEST = 1e-280


def closed(program: Program, weights: Array, epsilon: float) -> Array:
    """From a solver's answer to a mechanism that keeps the promise.

    The closure A'(y|x) = max over x' of e^(−ε' d(x,x')) A(y|x') of a nearly feasible A keeps ε' for
    the unnormalised masses, by relaxation along moves until nothing changes. Scaling the rows back
    to sum 1 moves neighbours' ratios by how much their sums differ, very little, which ε' = ε − η
    leaves room for. Whether that was enough is decided in whole numbers (`certificate`).
    """
    moves = program.types.moves
    factor = program.left * math.exp(-epsilon)
    current = np.where(weights < SMALLEST, 0.0, weights)
    for _ in range(4 * sum(program.types.sizes) + 8):
        before = current
        current = before.copy()
        np.maximum.at(current, moves.target, before[moves.source] * factor)
        if (current <= before * (1 + 1e-15)).all():
            break
    sums = np.bincount(program.types.inputs, current, len(program.masses))
    if not (sums > 0).all():
        return np.zeros_like(current)
    return np.asarray(current / sums[program.types.inputs])


class CertifiedProgram:
    """The program of one prior, distortion and notion, to be solved at any ε."""

    def __init__(self, structure: Structure, cost: Array, notion: str) -> None:
        self.structure, self.cost, self.notion = structure, cost, notion
        need_types(structure.sizes, structure.space.values, MOST_TYPES)
        need_moves(structure.sizes, structure.space.values)
        types = structure.types
        private = notion == "dp"
        odds = np.ones(len(types.moves.source)) if private else structure.odds
        self.program = Program(types, structure.masses, types.cost(cost), odds)
        self.certificate = ShareCertificate(
            types,
            structure.exact_masses,
            exact_cost(cost),
            None if private else structure.world_masses,
        )
        self.floor = 0.0 if private else structure.spread

    def at(self, epsilon: float, start: Any = None) -> BestAtLevel:
        """The best mechanism found at ε ≥ ε_X (≥ 0 for differential privacy), with its bound."""
        best = self._constant()
        if self.notion == "dp":
            if epsilon == 0:  # neighbours answer alike, so all worlds do
                return replace(best, bound=best.distortion, form="constant")
            best = min(best, self._response(epsilon), key=lambda answer: answer.distortion)
        bound, basis, trouble = Fraction(0), start, ""
        margin = MARGIN * max(1.0, epsilon)
        for _ in range(ATTEMPTS):
            if epsilon - margin <= self.floor:
                margin = (epsilon - self.floor) / 2
            result = self.program.solve(epsilon - margin, basis)
            for weights, multipliers in result.guesses:
                bound = max(bound, self.certificate.bound(multipliers, epsilon))
                if best.distortion - bound > ENOUGH:
                    made = self._repaired(weights, epsilon, epsilon - margin)
                    best = min(best, made or best, key=lambda answer: answer.distortion)
                if best.distortion - bound <= CLOSE:
                    break
            trouble = result.trouble
            basis = None if trouble else result.basis  # a lost solver starts afresh
            if best.distortion - bound <= CLOSE:
                trouble = ""
                break
            if margin <= 0 or "limit" in trouble:
                break
            margin *= 8
        return replace(best, bound=min(bound, best.distortion), basis=basis, trouble=trouble)

    def _repaired(self, weights: Array, epsilon: float, inner: float) -> BestAtLevel | None:
        """Weights closed at a level below ε, if they provably keep ε."""
        shares = shares_of(closed(self.program, weights, inner))
        if not self.certificate.keeps(shares, epsilon):
            return None
        structure = self.structure
        made = ByType(structure.space, structure.groups, structure.types, shares)
        return BestAtLevel(self.certificate.distortion(shares), Fraction(0), made)

    def _constant(self) -> BestAtLevel:
        value, table = best_constant(self.structure, self.cost)
        return BestAtLevel(value, Fraction(0), constant(table, self.structure.space.values))

    def _response(self, epsilon: float) -> BestAtLevel:
        made = randomized_response(epsilon, self.structure.space.values)
        rows = [(len(group), self.structure.marginals[group[0]]) for group in self.structure.groups]
        value = sum(
            (many * expected_cost(row, made.matrices[0], self.cost) for many, row in rows),
            Fraction(0),
        )
        return BestAtLevel(value, Fraction(0), made)
