"""What another tool promises, in our words, and what it costs in a ledger.

Contract: what a tool says is taken at its word; what follows from it is rounded towards privacy.
Where a tool protects single rows and people have several, group privacy makes the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.exact import exp_up, ranged, round_up
from whosin.ledger.charge import RELATIONS, Charge, Cost
from whosin.validation import whole


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy as another tool states it, or ρ-zCDP.

    Attributes:
        tool, version: who says so.
        epsilon: ε; infinite where only ρ is known.
        delta: δ.
        relation: "add-remove" or "replace".
        rho: ρ of zero-concentrated DP, if that is what the tool states.
        says: where the numbers come from, in a few words.
    """

    tool: str
    version: str
    epsilon: Fraction | float
    delta: Fraction = Fraction(0)
    relation: str = "add-remove"
    rho: Fraction | None = None
    says: str = ""

    def __post_init__(self) -> None:
        if self.relation not in RELATIONS:
            raise UnknownName("relation", str(self.relation), RELATIONS)
        if self.epsilon != math.inf:
            object.__setattr__(self, "epsilon", ranged(self.epsilon, "epsilon", "at least 0"))
        elif self.rho is None:
            raise InvalidInput("epsilon", "finite: the tool promises nothing", "infinite")
        object.__setattr__(self, "delta", ranged(self.delta, "delta", "between 0 and 1"))
        if self.rho is not None:
            object.__setattr__(self, "rho", ranged(self.rho, "rho", "at least 0"))

    def for_group(self, size: int) -> Guarantee:
        """The same for people who have up to this many rows: kε, k·e^((k−1)ε)·δ, and k²ρ."""
        k = whole(size, "rows", 1)
        if k == 1:
            return self
        if self.rho is not None and self.delta:
            raise InvalidInput("rows", "1 for ρ with a δ", k)
        rho = None if self.rho is None else k * k * self.rho
        delta = self.delta
        if delta:
            assert isinstance(self.epsilon, Fraction)
            delta = min(k * exp_up((k - 1) * self.epsilon) * delta, Fraction(1))
        says = f"{self.says}; people have up to {k} rows"
        stated = (self.tool, self.version, k * self.epsilon, delta, self.relation, rho, says)
        return Guarantee(*stated)

    def at(self, delta: Fraction) -> Guarantee:
        """The ε that a ρ has at a δ: ρ + 2√(ρ ln 1/δ), rounded up (Bun and Steinke 2016)."""
        if self.rho is None or self.epsilon != math.inf:
            return self
        failing = ranged(delta, "delta", "strictly between 0 and 1") - self.delta
        if failing <= 0:
            raise InvalidInput("delta", f"above {float(self.delta):g}, the tool's own", delta)
        rho = float(self.rho)
        epsilon = (rho + 2 * math.sqrt(rho * -math.log(failing))) * (1 + 2**-45)
        says = f"{self.says}; ρ = {rho:g} at this δ"
        return Guarantee(
            self.tool, self.version, Fraction(epsilon), Fraction(delta), self.relation, None, says
        )

    @property
    def costs(self) -> dict[str, Cost]:
        """The costs by relation. Replacing a person is removing one and adding one, so an
        add-remove guarantee holds for replacing as it does for a group of two. The reverse does not
        hold."""
        result = {self.relation: self._cost}
        if self.relation == "add-remove" and not (self.rho is not None and self.delta):
            twice = self.for_group(2)
            if twice.delta < 1:
                result["replace"] = twice._cost
        return result

    @property
    def _cost(self) -> Cost:
        if self.rho is not None:
            return Cost.gaussian(self.rho, self.delta)
        return Cost.pure(self.epsilon, self.delta)

    def charge(self, title: str) -> Charge:
        """What a ledger is debited for a release that the other tool makes."""
        if not isinstance(title, str) or not title.strip():
            raise InvalidInput("title", "what was published, in a few words", repr(title))
        what = {"kind": "external", "name": title, "tool": f"{self.tool} {self.version}"}
        what |= {"relation": self.relation, "says": self.says}
        return Charge(what, self.costs, guarantee=f"external: {self.tool}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "tool": self.tool,
            "version": self.version,
            "epsilon": round_up(self.epsilon) if self.epsilon != math.inf else "inf",
            "delta": round_up(self.delta),
            "rho": None if self.rho is None else round_up(self.rho),
            "relation": self.relation,
            "says": self.says,
        }
