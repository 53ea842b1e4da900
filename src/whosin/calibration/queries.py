"""How far one person can move an answer, and what that costs in accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.validation import whole

KINDS = ("count", "rows", "sum", "histogram")


@dataclass(frozen=True)
class PlannedQuery:
    """A query whose noise is to be planned.

    Args:
        kind: "count" (entities), "rows", "sum" (of clamped values) or "histogram".
        lower, upper: the clamp of a sum.
        rows: the most rows an entity may have (in each cell, for a histogram).
        cells: the most cells of a histogram that an entity may be in.
    """

    kind: str = "count"
    lower: object = 0
    upper: object = 1
    rows: int = 1
    cells: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownName("query", str(self.kind), KINDS)
        for field in ("rows", "cells"):
            object.__setattr__(self, field, whole(getattr(self, field), field, 1))
        if rational(self.lower, "lower") >= rational(self.upper, "upper"):
            raise InvalidInput("lower", f"below upper ({self.upper})", self.lower)

    def sensitivity(self, relation: str) -> Fraction:
        """The L1 sensitivity: how far one entity can move the answer in total."""
        replace = relation == "replace"
        if self.kind == "count":
            return Fraction(1)
        if self.kind == "rows":
            return Fraction(self.rows)
        if self.kind == "histogram":
            return Fraction(self.cells * self.rows * (2 if replace else 1))
        low, high = rational(self.lower), rational(self.upper)
        if replace:
            return self.rows * (max(high, Fraction(0)) - min(low, Fraction(0)))
        return self.rows * max(abs(low), abs(high))

    def euclidean(self, relation: str) -> float:
        """The L2 sensitivity, which Gaussian noise needs."""
        if self.kind != "histogram":
            return float(self.sensitivity(relation))
        return self.rows * math.sqrt(self.cells * (2 if relation == "replace" else 1))

    def words(self) -> str:
        """The query in words."""
        most = f"at most {self.rows} row{'s' if self.rows > 1 else ''} a person"
        if self.kind == "sum":
            low, high = float(rational(self.lower)), float(rational(self.upper))
            return f"a sum of values clamped to {low:g}..{high:g}, {most}"
        if self.kind == "histogram":
            return f"a histogram, a person in at most {self.cells} cells, {most} in each"
        return "a count of people" if self.kind == "count" else f"a count of rows, {most}"
