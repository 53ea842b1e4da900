"""The entries of a channel, for certificates: rationals, floats, powers, exponents or balls.

`at` is the entry itself, up to one factor common to all worlds: a FLINT rational, or an Arb ball
where e^x enters. `ratio` is exact, or just above where balls are (F12).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any

from whosin.exact import (
    Array,
    ball_exp,
    ball_sum,
    divide_up,
    exact_fraction,
    flint_float,
    flint_rational,
    rational,
)

Weighted = Iterable[tuple[int, Fraction]]


class Entries(ABC):
    """The entries of a channel: worlds × outputs."""

    in_balls = False
    """Whether entries are balls: then each is computed when it is asked for, and takes longer."""

    @abstractmethod
    def at(self, world: int, output: int) -> Any:
        """One entry, a FLINT rational or an Arb ball."""

    @abstractmethod
    def rows(self, labels: Array) -> Entries:
        """Rows taken by number."""

    @abstractmethod
    def ratio(self, top: Weighted, bottom: Weighted, output: int) -> Fraction | float:
        """Σ weight · entry over one set of worlds, over another. 0/0 is 1 and x/0 infinite."""

    def log_ratio(self, top: int, bottom: int, output: int) -> Fraction | None:
        """ln of the ratio of two entries where it is a rational number by construction."""
        return None


class Floats(Entries):
    """Binary fractions: what the floats of a table are."""

    def __init__(self, table: Array) -> None:
        self.table = table

    def at(self, world: int, output: int) -> Any:
        return flint_float(self.table[world, output])

    def rows(self, labels: Array) -> Entries:
        return type(self)(self.table[labels])

    def ratio(self, top: Weighted, bottom: Weighted, output: int) -> Fraction | float:
        one, two = (self._sum(worlds, output) for worlds in (top, bottom))
        if two == 0:
            return float("inf") if one else Fraction(1)
        return one / two

    def _sum(self, worlds: Weighted, output: int) -> Fraction:
        if isinstance(worlds, tuple) and len(worlds) == 1:
            world, weight = worlds[0]
            return exact_fraction(self.at(world, output)) * weight
        total = flint_rational(0)
        for world, weight in worlds:
            total += self.at(world, output) * flint_rational(weight)
        return rational(total)


class Rationals(Floats):
    """A table of FLINT rationals: levels may be shown as ratios."""

    def at(self, world: int, output: int) -> Any:
        return self.table[world, output]


class Computed(Rationals):
    """FLINT rationals from a function of world and output; `tabulate` makes the table of all."""

    def __init__(self, entry: Callable[[int, int], Any], tabulate: Callable[[], Array]) -> None:
        self._entry, self._tabulate = entry, tabulate

    def at(self, world: int, output: int) -> Any:
        return self._entry(world, output)

    def rows(self, labels: Array) -> Entries:
        return Rationals(self.table[labels])

    @cached_property
    def table(self) -> Array:  # type: ignore[override]
        return self._tabulate()


class Powers(Floats):
    """a^(n − d) b^d with rational a and b, where a table says how many of the n factors are b.

    Each entry is a rational of its own, however small it is, made when it is asked for.
    """

    def __init__(self, table: Array, factors: tuple[Any, Any], count: int) -> None:
        super().__init__(table)
        self.factors, self.count = factors, count

    def at(self, world: int, output: int) -> Any:
        (one, two), others = self.factors, int(self.table[world, output])
        return one ** (self.count - others) * two**others

    def rows(self, labels: Array) -> Entries:
        return Powers(self.table[labels], self.factors, self.count)


class Balls(Entries):
    """Arb balls around entries, from a function of world and output."""

    in_balls = True

    def __init__(self, ball: Callable[[int, int], Any]) -> None:
        self.ball = ball

    def at(self, world: int, output: int) -> Any:
        return self.ball(world, output)

    def rows(self, labels: Array) -> Entries:
        return Balls(lambda world, output: self.at(int(labels[world]), output))

    def ratio(self, top: Weighted, bottom: Weighted, output: int) -> Fraction | float:
        above, below = (
            ball_sum((self.at(world, output), weight) for world, weight in worlds)
            for worlds in (top, bottom)
        )
        return divide_up(above, below)


class Exponents(Balls):
    """e to rational powers, from a function of world and output."""

    def __init__(self, exponent: Callable[[int, int], Fraction]) -> None:
        super().__init__(lambda world, output: ball_exp(exponent(world, output)))
        self.exponent = exponent

    def rows(self, labels: Array) -> Entries:
        return Exponents(lambda world, output: self.exponent(int(labels[world]), output))

    def log_ratio(self, top: int, bottom: int, output: int) -> Fraction | None:
        return self.exponent(top, output) - self.exponent(bottom, output)
