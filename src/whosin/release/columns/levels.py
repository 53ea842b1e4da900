"""An upper level of a column as cells: by = "canton", where rows have a municipality.

Contract: a row's parent follows from its value alone, in the engine, by looking the value up. A
value outside the domain is outside at every level: in "other", dropped, or at the parent of the
value as which it counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from whosin.errors import InvalidInput
from whosin.release.columns.domains import Domain, Values
from whosin.release.columns.free_names import folded
from whosin.release.columns.outside import DROP, check_closed, other_beside
from whosin.release.columns.parents import Parents


@dataclass(frozen=True)
class UpperLevel:
    """The parents of a column's values, as cells.

    Attributes:
        column: whose values they are the parents of.
        domain: what that column may hold.
        parents: the level.
    """

    column: str
    domain: Values
    parents: Parents

    def __post_init__(self) -> None:
        if self.domain.outside is not None:
            check_closed(len(self.parents.labels))

    @property
    def constant(self) -> bool:
        """Whether it is the same in all rows of an entity, since the column is."""
        return self.domain.constant

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell."""
        return self.domain.drops

    @property
    def outside(self) -> str | None:
        """What becomes of a value outside: "drop", or the parent at which it counts."""
        if self.domain.outside is None:
            return None
        return DROP if self.drops else self.parents.labels[self.beyond]

    @property
    def beyond(self) -> int:
        """The number of the cell of what is outside; -1 where it does not count."""
        if self.domain.outside is None:
            return len(self.parents.labels)
        return -1 if self.drops else self.parents.numbers[self.domain.beyond]

    @property
    def values(self) -> tuple[str, ...]:
        """The parents."""
        return self.parents.labels

    @property
    def labels(self) -> tuple[str, ...]:
        """The cells, with "other" at the end of a domain that is open."""
        if self.domain.outside is not None:
            return self.values
        return (*self.values, other_beside(self.values))


def levels_of(domains: Mapping[str, Domain]) -> dict[str, tuple[str, Parents]]:
    """Every level that was declared, with the column that it is of."""
    return {
        each.name: (column, each)
        for column, domain in domains.items()
        if isinstance(domain, Values)
        for each in domain.levels
    }


def check_levels(domains: Mapping[str, Domain], columns: tuple[str, ...]) -> None:
    """No level has the name of a column or of a level of another column, in whatever letters."""
    owners: dict[str, str] = {}
    taken = set(map(folded, columns))
    for column, domain in domains.items():
        for each in domain.levels if isinstance(domain, Values) else ():
            field = f"domains.{column}.parents"
            name = folded(each.name)
            if name in taken:
                raise InvalidInput(field, "a level with a name that no column has", repr(each.name))
            if name in owners:
                accepted = f"another level than {owners[name]} has"
                raise InvalidInput(field, accepted, repr(each.name))
            owners[name] = column


def root_of(domains: Mapping[str, Domain], name: str) -> str:
    """The column whose level this is; any other name is itself the column."""
    known = levels_of(domains)
    return known[name][0] if name not in domains and name in known else name
