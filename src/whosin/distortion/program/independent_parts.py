"""PD-DP and PD-I of a whole prior: its independent parts, each solved on its own (T20).

Twenty independent rows are no harder than one; the proof is in docs/theory/numbers.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any

from whosin.distortion.closed.bounds import known_threshold
from whosin.distortion.closed.costs import is_hamming
from whosin.distortion.closed.one_row import likeliest
from whosin.distortion.closed.optimal_forms import (
    MOST_WRITTEN,
    identifiable,
    randomized_response,
)
from whosin.distortion.mechanisms.by_type import ByType
from whosin.distortion.mechanisms.per_block import PerBlock
from whosin.distortion.mechanisms.per_row import Matrix, PerRow
from whosin.distortion.optimum import BestAtLevel
from whosin.distortion.program.linear import CertifiedProgram
from whosin.distortion.symmetry.detection import blocks
from whosin.distortion.symmetry.parts import Block, Structure
from whosin.errors import ImpossibleTarget
from whosin.exact import Array, exp_down, exp_up
from whosin.mechanisms import Mechanism


class IndependentPart:
    """One kind of block: closed forms where there are, else the linear program."""

    def __init__(self, block: Block, cost: Array, notion: str) -> None:
        self.structure, self.copies = block.structure, block.copies
        self.cost, self.notion = cost, notion
        self.plain = is_hamming(cost)

    @cached_property
    def linear(self) -> CertifiedProgram:
        return CertifiedProgram(self.structure, self.cost, self.notion)

    @cached_property
    def form_from(self) -> float:
        """Where E_i takes over: ε̃_X, or never where it would have to be written out at length."""
        known = self.structure
        if not self.plain or (known.rows is None and known.space.worlds > MOST_WRITTEN):
            return float("inf")
        return known_threshold(known)

    def at(self, epsilon: float, start: Any = None) -> BestAtLevel:
        known = self.structure
        if self.notion == "identifiability" and epsilon >= self.form_from:
            with suppress(ImpossibleTarget):  # ε̃_X of dependent rows is known to 1e-11 only
                return self._attains_h(identifiable(known, epsilon), epsilon, "E_i")
        if self.notion == "dp" and self.plain and known.rows is not None:
            return likeliest(known.rows[0], epsilon)
        if self.notion == "dp" and self.plain and known.spread == 0:
            response = randomized_response(epsilon, known.space.values)
            return self._attains_h(response, epsilon, "E_d")
        return self.linear.at(epsilon, start)

    def _attains_h(self, mechanism: Mechanism, epsilon: float, form: str) -> BestAtLevel:
        """T16: no mechanism has less than h(ε)."""
        value, bound = (
            Fraction(self.structure.space.rows) / (1 + g / (self.structure.space.values - 1))
            for g in (exp_down(epsilon), exp_up(epsilon))
        )
        return BestAtLevel(value, bound, mechanism, form)


class PriorProblem:
    """One prior, distortion and notion, at any finite ε that is not below its floor."""

    def __init__(self, known: Structure, cost: Array, notion: str) -> None:
        self.known = known
        self.blocks = blocks(known)
        self.parts = [IndependentPart(block, cost, notion) for block in self.blocks]
        self.floor = 0.0 if notion == "dp" else known.spread

    def at(self, epsilon: float, start: Any = None) -> BestAtLevel:
        """The best mechanism at ε."""
        starts = start if start is not None else [None] * len(self.parts)
        result = [part.at(epsilon, one) for part, one in zip(self.parts, starts, strict=True)]
        times = [len(part.copies) for part in self.parts]
        forms = {answer.form for answer in result}
        return BestAtLevel(
            sum((n * a.distortion for n, a in zip(times, result, strict=True)), Fraction(0)),
            sum((n * a.bound for n, a in zip(times, result, strict=True)), Fraction(0)),
            combined(self.known, self.blocks, [answer.mechanism for answer in result]),
            forms.pop() if len(forms) == 1 else "program" if "program" in forms else "likeliest",
            [answer.basis for answer in result],
            next((answer.trouble for answer in result if answer.trouble), ""),
        )


def combined(known: Structure, parts: Sequence[Block], made: list[Mechanism]) -> Mechanism:
    """The product of the blocks' mechanisms."""
    space = known.space
    if known.rows is None:
        if len(parts) == 1 and len(parts[0].copies) == 1:
            return made[0]
        copies = (part.copies for part in parts)
        return PerBlock(space, tuple(zip(made, copies, strict=True)))  # type: ignore[arg-type]
    matrices = [as_row(mechanism) for mechanism in made]
    if len(matrices) == 1:
        return PerRow((matrices[0],))
    each: list[Matrix] = [matrices[0]] * space.rows
    for part, matrix in zip(parts, matrices, strict=True):
        for (row,) in part.copies:
            each[row] = matrix
    return PerRow(tuple(each))


def as_row(mechanism: Mechanism) -> Matrix:
    """The matrix of a mechanism on one row."""
    if isinstance(mechanism, PerRow):
        return mechanism.matrices[0]
    assert isinstance(mechanism, ByType) and mechanism.space.rows == 1
    m = mechanism.space.values
    lines = [[Fraction(0)] * m for _ in range(m)]
    totals = mechanism.totals[mechanism.types.inputs]
    for table, share, total in zip(
        mechanism.types.groups[0].tables, mechanism.shares, totals, strict=True
    ):
        a, b = divmod(int(table.argmax()), m)
        lines[a][b] = Fraction(int(share), int(total))
    return tuple(tuple(line) for line in lines)
