"""Results: a level of privacy with the case that attains it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from whosin.errors import InvalidInput
from whosin.exact import Number, rational
from whosin.notebook_display import Displayed
from whosin.priors import Prior

TOLERANCE = 1e-12


@dataclass(frozen=True)
class Witness:
    """The worst case: who learns what about whom, and how.

    Attributes:
        entity: the person concerned (None on records).
        output: what is seen.
        prior, posterior: the belief that the entity is in the data, before and after.
        ratio: r = Pr[output | in] / Pr[output | out].
        attained: False where the level is a limit; `distribution` is then a prior close to it.
        row, known, values: on records, the row, the other rows' values, and the two values of the
            row that the ratio compares.
        rows_known: for Bayesian semantic privacy, which rows are known.
        guess, strategy: for leakages, the best guess before, and the best one for each output;
            `prior` and `posterior` are then what they are worth. For a ratio of two worlds, the
            likelier one.
        against: the world that it is compared with.
        group: for groups of rows, the two values that each row of the group has.
    """

    output: Hashable
    prior: Number
    posterior: Number
    ratio: Number
    attained: bool = True
    entity: Hashable | None = None
    adversary: Callable[[], Prior] | None = field(default=None, repr=False, compare=False)
    row: int | None = None
    known: dict[int, int] | None = None
    values: tuple[int, int] | None = None
    rows_known: tuple[int, ...] | None = None
    guess: Hashable | None = None
    strategy: dict[Hashable, Hashable] | None = None
    against: Hashable | None = None
    group: dict[int, tuple[int, int]] | None = None

    @cached_property
    def distribution(self) -> Prior | None:
        """The adversary's prior, built when it is asked for."""
        return None if self.adversary is None else self.adversary()


@dataclass(frozen=True)
class Level(Displayed):
    """How much a mechanism leaks under a notion.

    Attributes:
        value: γ, ε in nats or ρ; a fraction where all inputs are exact; may be infinite.
        witness: the case behind it; None when the family leaves nobody uncertain, or when the value
            is a bound and no prior of the family was found.
        exact: whether `value` is the tight level; otherwise it is an upper bound.
        theorems: the numbers of the theorems it rests on.
        lower: for a bound, the level that the witness does attain; for averages a lower bound.
        notion: what was measured.
        note: what the level leaves out, in a sentence; empty where it leaves out nothing.
        nearer: where the level is a limit, the case of the same kind that is above a given claim.
        prior: for an average over all priors, the one that attains `lower`.
    """

    value: Number
    witness: Witness | None
    exact: bool
    theorems: tuple[str, ...]
    lower: Number | None = None
    notion: object = field(default=None, repr=False)
    note: str = ""
    nearer: Callable[[Fraction], Witness] | None = field(default=None, repr=False, compare=False)
    prior: Prior | None = field(default=None, repr=False, compare=False)

    def holds(self, at_most: object) -> bool | None:
        """Whether the level is at most a claim: True, False, or None where it is undecided.

        A bound that is above the claim refutes nothing: only a case above the claim does, and
        `refutation` has it. Compared exactly for exact values, and otherwise up to one part in
        10^12, the accuracy of floating-point input.
        """
        claim = _claim(at_most)
        if _at_most(self.value, claim):
            return True
        if self.exact:
            return False
        return None if self.lower is None or _at_most(self.lower, claim) else False

    def refutation(self, at_most: object) -> Witness | None:
        """The case whose level is above the claim; None where the claim is not refuted, and for
        averages, which no single case attains."""
        if self.holds(at_most) is not False or self.witness is None:
            return None
        if self.witness.attained or self.nearer is None:
            return self.witness
        return self.nearer(rational(at_most, "claim"))

    def __float__(self) -> float:
        return float(self.value)


def _claim(value: object) -> Fraction | float:
    """A claim, which may be infinite."""
    if isinstance(value, float) and math.isnan(value):
        raise InvalidInput("claim", "a number", value)
    return math.inf if value == math.inf else rational(value, "claim")


def _at_most(level: Number, claim: Fraction | float) -> bool:
    if isinstance(level, float):
        return bool(level <= float(claim) * (1 + TOLERANCE))
    return bool(level <= claim)
