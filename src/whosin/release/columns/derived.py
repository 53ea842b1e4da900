"""Cells made from a declared column by a function: month(visit), decade(age).

Contract: the cells follow from the declared domain alone. A row is placed by looking at it alone;
what is outside the column's domain is outside here, and goes where that domain says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from whosin.errors import InvalidInput, UnknownName
from whosin.release.columns.dates import PARTS, Dates, code_of
from whosin.release.columns.domains import Domain, Range
from whosin.release.columns.levels import UpperLevel
from whosin.release.columns.outside import OTHER, check_closed

DECADE = "decade"
MOST_DECADES = 1_000
FORM = re.compile(r"([a-z]+)\((.+)\)", re.DOTALL)


@dataclass(frozen=True)
class Derived:
    """A function of a column, as cells.

    Attributes:
        function: its name.
        column: the column that it is computed from.
        domain: what that column may hold.
    """

    function: str
    column: str
    domain: Dates | Range

    def __post_init__(self) -> None:
        if isinstance(self.domain, Range):
            low, high = self.domain.bounds
            if high // 10 - low // 10 >= MOST_DECADES:
                accepted = f"a range of at most {MOST_DECADES} decades"
                raise InvalidInput(f"domain of {self.column}", accepted, "a wider one")
        if self.outside is not None:
            check_closed(len(self.values))

    @property
    def constant(self) -> bool:
        """Whether it is the same in all rows of an entity, since the column is."""
        return self.domain.constant

    @property
    def outside(self) -> str | None:
        """What becomes of values outside the column's domain."""
        return self.domain.outside

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell."""
        return self.outside is not None

    @property
    def beyond(self) -> int:
        """The number of the cell of what is outside; -1 where it does not count."""
        return -1 if self.drops else len(self.values)

    @property
    def values(self) -> tuple[int, ...]:
        """What the function can be on the declared domain, rising."""
        return _values(self)

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The cells, with "other" at the end of a domain that is open."""
        return self.values if self.outside is not None else (*self.values, OTHER)

    def numbered_days(self) -> tuple[tuple[int, int], ...]:
        """For a function of dates: the code of each declared day, with the number of its cell."""
        assert isinstance(self.domain, Dates)
        numbers, part = {each: at for at, each in enumerate(self.values)}, PARTS[self.function]
        return tuple((code_of(day), numbers[part(day)]) for day in self.domain.days)


@dataclass(frozen=True)
class Grouped:
    """Cells of something, some of them taken together.

    Attributes:
        name: whose cells they are: a column, or a function of one.
        domain: its domain.
        parts: for each cell the number of what it is taken into.
        labels: what these are called.
    """

    name: str
    domain: Cellular
    parts: tuple[int, ...]
    labels: tuple[str, ...]

    @property
    def constant(self) -> bool:
        """Whether it is the same in all rows of an entity."""
        return self.domain.constant

    @property
    def outside(self) -> object:
        """What becomes of values outside."""
        return self.domain.outside

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell."""
        return self.domain.drops

    @property
    def beyond(self) -> int:
        """The number of the cell of what is outside; -1 where it does not count."""
        return -1 if self.domain.beyond < 0 else self.parts[self.domain.beyond]


Cellular: TypeAlias = Domain | Derived | UpperLevel | Grouped


@lru_cache(maxsize=256)
def _values(derived: Derived) -> tuple[int, ...]:
    if isinstance(derived.domain, Dates):
        return tuple(sorted({PARTS[derived.function](day) for day in derived.domain.days}))
    low, high = derived.domain.bounds
    return tuple(range(int(low // 10) * 10, int(high // 10) * 10 + 1, 10))


def column_of(name: str) -> str:
    """The column that a name such as month(visit) is about; any other name is the column's own."""
    result = FORM.fullmatch(name)
    return result[2].strip() if result else name


def derive(name: str, column: str, domain: Domain) -> Derived:
    """What a name such as month(visit) means, for a column with a domain."""
    result = FORM.fullmatch(name)
    assert result is not None
    function = result[1]
    if isinstance(domain, Dates):
        known = tuple(PARTS)
    elif isinstance(domain, Range):
        known = (DECADE,)
    else:
        accepted = "a range of numbers or dates, to derive something from it"
        raise InvalidInput(f"domain of {column}", accepted, "a list of values")
    if function not in known:
        raise UnknownName(f"function of {column}", function, known)
    assert isinstance(domain, Dates | Range)
    return Derived(function, column, domain)
