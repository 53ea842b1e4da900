"""Everyone but one person: some are known, and the others are at one of two beliefs.

These are the priors at which profiles of counts are largest (F21), and some families have no other
priors. Contract: whoever is known is known to be in or out for certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from whosin.beliefs import chosen_percent
from whosin.exact import Array, flint_rational
from whosin.priors import Independent, Prior
from whosin.spaces.binomials import two_binomials


@dataclass(frozen=True)
class OtherPeople:
    """The others: how many are at which belief, and how many known ones may be in.

    Attributes:
        people: how many there are, the person in question included.
        at_low, at_high: how many others are in with probability low, and high.
        inside: the numbers of known people who may be in; all other known ones are out.
    """

    people: int
    at_low: int
    at_high: int
    low: Fraction
    high: Fraction
    inside: range

    @property
    def unsure(self) -> int:
        """How many others are uncertain."""
        return self.at_low + self.at_high

    @property
    def known(self) -> int:
        """How many others are known."""
        return self.people - 1 - self.unsure

    @property
    def weights(self) -> tuple[int, Array]:
        """(first, weights): how many of the uncertain others are in."""
        return two_binomials(self.at_low, float(self.low), self.at_high, float(self.high))

    @cached_property
    def rationals(self) -> Array:
        """The same, exactly, from 0 on."""
        from flint import fmpq_poly

        low, high = flint_rational(self.low), flint_rational(self.high)
        product = fmpq_poly([1 - low, low]) ** self.at_low
        product *= fmpq_poly([1 - high, high]) ** self.at_high
        values = np.empty(self.unsure + 1, dtype=object)
        values[:] = [product[power] for power in range(self.unsure + 1)]
        return values

    def prior(self, inside: int, belief: Any) -> Prior:
        """The prior with this belief in entity 0 and `inside` of the known others in."""
        out = self.known - inside
        return Independent(
            [
                belief,
                *[Fraction(1)] * inside,
                *[Fraction(0)] * out,
                *[self.low] * self.at_low,
                *[self.high] * self.at_high,
            ]
        )

    def words(self, inside: int) -> str:
        """Who is looking, as a clause."""
        parts = []
        if self.known:
            out = self.known - inside
            parts.append(f"knows about {_others(self.known)} ({inside} in, {out} out)")
        sure = [(self.at_low, self.low), (self.at_high, self.high)]
        parts += [
            f"is {chosen_percent(p, 'nearest')} sure of {_others(count)}"
            for count, p in sure
            if count
        ]
        return " and ".join(parts) or "has nobody else to think of"


def _others(count: int) -> str:
    return "one other" if count == 1 else f"{count} others"
