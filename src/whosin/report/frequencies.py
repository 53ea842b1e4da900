"""Probabilities as people out of 1,000, with a picture in which each mark stands for ten of them.

This is the form that was understood best in a study with 963 people (Nanayakkara et al. 2023).
Numbers are rounded towards the greater risk.
"""

from __future__ import annotations

from dataclasses import dataclass

from whosin.exact import decimals

MARKS, LINE = 100, 20
BEFORE, AFTER, NEVER = "●", "◐", "○"


def of_thousand(share: float) -> int:
    """People out of 1,000, rounded up."""
    return min(1000, int(decimals(share * 1000, 0, "up")))


def of_hundred(share: float) -> int:
    """Marks out of a hundred, rounded up."""
    return min(MARKS, int(decimals(share * MARKS, 0, "up")))


@dataclass(frozen=True)
class Marks:
    """A hundred marks, ten people each.

    Attributes:
        before: how many are full before, rounded up.
        after: how many can be full after, at most.
        when: when that is, in words.
    """

    before: int
    after: int
    when: tuple[str, str] = ("before", "after")

    @classmethod
    def of(cls, before: float, after: float, *when: str) -> Marks:
        """The marks of two probabilities."""
        numbers = of_hundred(before), max(of_hundred(before), of_hundred(after))
        return cls(*numbers, (when[0], when[1])) if when else cls(*numbers)

    def lines(self) -> list[str]:
        """Five lines of twenty marks."""
        row = BEFORE * self.before + AFTER * (self.after - self.before)
        row += NEVER * (MARKS - self.after)
        return [row[start : start + LINE] for start in range(0, MARKS, LINE)]

    def words(self) -> str:
        """What the marks mean."""
        first, then = self.when
        return f"Each mark is 10 people: {BEFORE} {first}, {BEFORE} and {AFTER} at most {then}."
