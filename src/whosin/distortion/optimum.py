"""What the search for a best mechanism returns: at one level, and in all."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from whosin.mechanisms import Mechanism
from whosin.spaces import Records

NOTIONS = ("dp", "identifiability", "mutual-information")


@dataclass(frozen=True, eq=False)
class BestAtLevel:
    """A mechanism that keeps a level.

    Attributes:
        distortion: of the mechanism, or just above it.
        bound: no mechanism that keeps the level has less.
        form: how it was found: "E_d", "E_i", "likeliest", "constant" (closed forms that are optimal
            by a theorem), or "program".
        basis: for the solver to start from at a nearby level.
        trouble: why the solver stopped, where that was before the optimum.
    """

    distortion: Fraction
    bound: Fraction
    mechanism: Mechanism
    form: str = "program"
    basis: Any = None
    trouble: str = ""

    @property
    def gap(self) -> Fraction:
        return max(self.distortion - self.bound, Fraction(0))


@dataclass(frozen=True, eq=False)
class Optimum:
    """The least distortion for a level of privacy, or the least level for a distortion.

    Attributes:
        distortion: E d(X, Y) of the mechanism.
        epsilon: its guaranteed level under the notion (ε, or nats of mutual information).
        mutual_information: I(X; Y) of the mechanism, in nats.
        mechanism: it can be measured (`channel`) and sampled (`sample`); None where a curve point
            was asked for without one.
        gap: by how much the quantity that was not given may be above the true optimum; certified.
        lower, upper: closed-form bounds for the quantity that was not given (T16, T17).
        given: "epsilon" or "distortion".
        note: what there is to say about this case.
    """

    space: Records
    notion: str
    given: str
    distortion: float
    epsilon: float
    mutual_information: float
    mechanism: Mechanism
    gap: float
    lower: float
    upper: float
    theorems: tuple[str, ...] = ()
    note: str = field(default="")

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        about = {"notion": self.notion, "rows": self.space.rows, "values": self.space.values}
        names = ("given", "distortion", "epsilon", "mutual_information", "gap", "lower", "upper")
        result = {name: getattr(self, name) for name in names}
        return {**about, **result, "theorems": list(self.theorems), "note": self.note}
