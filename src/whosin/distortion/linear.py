"""PD-DP and PD-I: the best mechanism at one ε, repaired, checked and certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosin.distortion.by_type import ByType
from whosin.distortion.optimal_forms import randomized_response
from whosin.distortion.per_row import constant
from whosin.distortion.program import SMALL, Program
from whosin.distortion.repair import closed, keeps, level, overshoot
from whosin.distortion.structure import MOST_TYPES, Structure, best_constant
from whosin.exact import Array
from whosin.mechanisms import Mechanism

ENOUGH = 5e-10
"""A gap at which the search stops."""


@dataclass(frozen=True, eq=False)
class Answer:
    """A mechanism that keeps ε, its distortion, a lower bound on every mechanism's, and how the
    pairs (x, y) fall into types."""

    distortion: float
    bound: float
    mechanism: Mechanism
    weights: Array
    level: float
    basis: object = None


class Linear:
    """The program of one prior, distortion and notion, to be solved at any ε."""

    def __init__(self, structure: Structure, cost: Array, notion: str) -> None:
        self.structure, self.cost, self.notion = structure, cost, notion
        structure.within(MOST_TYPES)
        types = structure.types
        odds = np.ones(len(types.moves.source)) if notion == "dp" else structure.odds
        self.program = Program(types, structure.masses, types.cost(cost), odds)
        self.floor = 0.0 if notion == "dp" else structure.spread

    def at(self, epsilon: float, start: object = None) -> Answer:
        """The best mechanism found at ε ≥ ε_X (≥ 0 for differential privacy), with its bound."""
        best = self._constant()
        program = self.program
        if self.notion == "dp":
            if epsilon == 0:  # neighbours answer alike, so all worlds do
                return Answer(best.distortion, best.distortion, best.mechanism, best.weights, 0.0)
            best = min(best, self._response(epsilon), key=lambda answer: answer.distortion)
        bound, basis, margin = 0.0, start, 2e-11 * max(1.0, epsilon)
        if program.types.size > SMALL:
            rough = program.rough(epsilon, basis)
            bound, basis = program.bound(rough, epsilon), rough.basis
            if best.distortion - bound <= ENOUGH:
                margin = 0.0
        if margin == 0:
            bound = min(bound, best.distortion)
            return Answer(best.distortion, bound, best.mechanism, best.weights, best.level, basis)
        for _ in range(4):
            if epsilon - margin <= self.floor:
                margin = (epsilon - self.floor) / 2
            found = program.solve(epsilon - max(margin, 0.0), basis)
            basis = found.basis
            bound = max(bound, program.bound(found, epsilon))
            if best.distortion - bound <= ENOUGH or margin <= 0:
                break
            weights = closed(program, found.weights, epsilon - margin)
            if keeps(program, weights, epsilon):
                made = self._typed(weights)
                best = min(best, made, key=lambda answer: answer.distortion)
                break
            beyond = overshoot(program, weights, epsilon - margin)
            margin = max(4 * margin, 2 * beyond) if beyond < epsilon / 8 else 4 * margin
        bound = min(bound, best.distortion)
        return Answer(best.distortion, bound, best.mechanism, best.weights, best.level, basis)

    def _typed(self, weights: Array) -> Answer:
        structure = self.structure
        made = ByType(structure.space, structure.groups, structure.types, weights)
        spent = level(self.program, weights)
        return Answer(float(self.program.objective @ weights), 0.0, made, weights, spent)

    def _constant(self) -> Answer:
        value, shown = best_constant(self.structure, self.cost)
        types, m = self.structure.types, self.structure.space.values
        firsts = [shown[group[0]] for group in self.structure.groups]
        alike = np.ones(1, dtype=bool)
        for part, answer in zip(types.groups, firsts, strict=True):
            mine = part.tables[:, :, answer].sum(axis=1) == part.rows
            alike = (alike[:, None] & mine[None, :]).ravel()
        return Answer(value, 0.0, constant(shown, m), alike.astype(float), self.floor)

    def _response(self, epsilon: float) -> Answer:
        types, m = self.structure.types, self.structure.space.values
        made = randomized_response(epsilon, m)
        letter = np.array([[float(p) for p in line] for line in made.matrices[0]])
        weights = np.exp(types.log_ways + types.cost(np.log(letter)))
        value = sum(
            len(group)
            * float(
                np.array([float(p) for p in self.structure.marginals[group[0]]])
                @ (letter * self.cost).sum(axis=1)
            )
            for group in self.structure.groups
        )
        return Answer(value, 0.0, made, weights, epsilon)


def smallest_epsilon(
    linear: Linear, distortion: float, low: float, high: float, tolerance: float = 1e-9
) -> tuple[float, Answer, float]:
    """The least ε at which the distortion can be had, its answer, and a certified gap in ε.

    `high` must reach the distortion. The curve falls with ε: a search by false position, the bound
    proving that an ε is too small and a mechanism that one is enough.
    """
    top = linear.at(high)
    bottom_value, top_value = None, top.distortion - distortion
    proved = low
    start = top.basis
    for step in range(60):
        if high - proved <= tolerance:
            break
        if bottom_value is None or step % 4 == 3:
            middle = (low + high) / 2 if step else low + (high - low) / 2
        else:
            share = bottom_value / (bottom_value - top_value)
            middle = low + (high - low) * share
            middle = min(max(middle, low + tolerance / 4), high - tolerance / 4)
        if not low < middle < high:
            break
        answer = linear.at(middle, start)
        start = answer.basis
        value = answer.distortion - distortion
        if value <= 0:
            high, top, top_value = middle, answer, value
        else:
            if answer.bound > distortion:
                proved = middle
            low, bottom_value = middle, value
        if bottom_value is not None and top_value > -1e-12 * max(1.0, distortion):
            top_value = -1e-12
        if high - low <= tolerance / 2:
            break
    for power in range(12):
        if high - proved <= 4 * tolerance:
            break
        below = high - tolerance * 4**power
        if below <= proved:
            break
        if linear.at(below, start).bound > distortion:
            proved = below
    return high, top, max(0.0, high - proved)
