"""What of the rows counts in an answer, and what to be careful about before asking.

Contract: everything here is declared, nothing comes from the rows. An answer's interval is about
its noise; what bounding and clamping leave out of the answer is said here, in words, because no
interval covers it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whosin.exact import figures
from whosin.release.columns.derived import Cellular, column_of
from whosin.release.columns.domains import Domain, Range
from whosin.release.columns.levels import root_of
from whosin.release.columns.outside import CLAMP, DROP, OTHER

NOT_COVERED = "The interval is for the noise: it does not cover what this leaves out."


@dataclass(frozen=True)
class Counted:
    """How much of an entity counts, and between which ends numbers are taken.

    Attributes:
        entity: the column that says whose row it is, or "row" where each row is one person.
        rows: how many rows of an entity count, at most; None where their number plays no part.
        groups: how many cells an entity is in, at most; None where it is in all its cells.
        ranges: the ends to which each column is clamped, as texts.
        others: columns whose undeclared values have a cell of their own, with what it is called:
            "other", or "other_" where a declared value is called so.
        outside: what becomes of other values of columns with closed domains: "drop", "clamp", or
            the declared value, as a text in quotes, as which they count.
        by_row: whether each row is one person.
        unnamed: columns whose undeclared values count, and are never named.
    """

    entity: str
    rows: int | None = None
    groups: int | None = None
    ranges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    outside: Mapping[str, str] = field(default_factory=dict)
    by_row: bool = False
    unnamed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "entity": self.entity,
            "rows": self.rows,
            "groups": self.groups,
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "others": list(self.others),
            "other_cells": dict(self.others),
            "outside": dict(self.outside),
            "by_row": self.by_row,
            "unnamed": list(self.unnamed),
        }


@dataclass(frozen=True)
class Caution:
    """Something to decide before asking.

    Attributes:
        about: "rows" or "groups", which is at its default, or "delta", which nothing uses.
        columns: columns that may differ between rows of one entity.
        epsilons: what a plan would allow without its δ, and what it allows.
    """

    about: str
    columns: tuple[str, ...] = ()
    epsilons: tuple[float, float] | None = None

    @property
    def words(self) -> str:
        """In the words of a scenario file."""
        if self.epsilons is not None:
            pure, allowed = (figures(each, 4, "down") for each in self.epsilons)
            return (
                f"no answer uses delta: without it the plan would allow ε = {pure} instead of "
                f"{allowed}, so less noise"
            )
        constant = ""
        if self.columns:
            several = _listed(self.columns, "and")
            constant = f", or constant = true in the domain of {several} if it never differs"
            if len(self.columns) > 1:
                constant = f", or constant = true in the domains of {several} if they never differ"
        if self.about == "groups":
            return (
                f"{several} may differ between the rows of one person, who then counts in one cell "
                f"only, since groups is at its default, 1: say groups{constant}"
            )
        return (
            "only one row of a person counts, chosen at random, since rows is at its default, 1: "
            f"say rows{constant}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"about": self.about, "columns": list(self.columns), "words": self.words}


def statement(counted: Mapping[str, Any], interval: bool) -> str:
    """What counts in an answer, in a sentence or two, from its plain data.

    Args:
        interval: whether the answer has one.
    """
    rows, groups, whose = counted["rows"], counted["groups"], counted["entity"]
    parts = ["each row is one person" if counted["by_row"] else f"a person is one {whose}"]
    if not counted["by_row"] and whose.lower() == "person":
        parts = [f"the column {whose} says whose row it is"]
    if rows is not None and not counted["by_row"]:
        noun, verb = ("rows", "count") if rows > 1 else ("row", "counts")
        parts.append(f"at most {rows} {noun} of a person {verb}")
    if groups is not None and not counted["by_row"]:
        parts.append(f"a person is in at most {groups} {'cells' if groups > 1 else 'cell'}")
    for column, (low, high) in counted["ranges"].items():
        parts.append(f"{column} is clamped to {low}..{high}")
    cells = counted.get("other_cells", {})  # older ledgers have none
    called = {column: cells.get(column, OTHER) for column in counted["others"]}
    for cell in dict.fromkeys(called.values()):
        several = _listed([column for column, own in called.items() if own == cell], "and")
        why = "" if cell == OTHER else ", which no declared value is called"
        parts.append(f'values of {several} that were not declared are in "{cell}"{why}')
    if unnamed := counted.get("unnamed", ()):  # older ledgers have none
        several = _listed(unnamed, "and")
        parts.append(f"values of {several} that were not declared are never named")
    outside = counted.get("outside", {})  # older ledgers have none
    for how in dict.fromkeys(outside.values()):
        parts.append(_closed([column for column, own in outside.items() if own == how], how))
    text = "; ".join(parts)
    said = f"{text[0].upper()}{text[1:]}."
    leaves_out = not counted["by_row"] and (rows is not None or groups is not None)
    changes = leaves_out or counted["ranges"] or outside
    return f"{said} {NOT_COVERED}" if interval and changes else said


def _closed(columns: Sequence[str], how: str) -> str:
    """What becomes of a value outside closed domains."""
    if how == DROP:
        return f"rows whose {_listed(columns, 'or')} was not declared do not count"
    several = _listed(columns, "and")
    if how == CLAMP:
        return (
            f"{several} beyond the bins {'is' if len(columns) == 1 else 'are'} in the first or the "
            "last one, and rows without a value there do not count"
        )
    return f"values of {several} that were not declared count as {how}"


def _listed(names: Sequence[str], last: str) -> str:
    """Names as a sentence lists them."""
    *most, end = names
    return f"{', '.join(most)} {last} {end}" if most else end


def beyond(columns: Sequence[str], domains: Sequence[Cellular]) -> dict[str, Any]:
    """`others` and `outside` of what counts, for columns that an answer is grouped by."""
    pairs = list(zip(columns, domains, strict=True))
    return {
        "others": {name: str(each.labels[-1]) for name, each in pairs if each.outside is None},
        "outside": {
            name: str(each.outside) if each.drops else f'"{each.outside}"'
            for name, each in pairs
            if each.outside is not None
        },
    }


def clamp(domain: Range) -> tuple[str, str]:
    """The ends of a range as texts."""
    low, high = (repr(float(end)).removesuffix(".0") for end in domain.bounds)
    return low, high


def column_behind(domains: Mapping[str, Domain], name: str) -> str:
    """The column that a level such as canton, or a function such as month(visit), is of."""
    return name if name in domains else column_of(root_of(domains, name))


def may_vary(domains: Mapping[str, Domain], columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that were not declared to be the same in all rows of an entity."""
    own = dict.fromkeys(column_behind(domains, name) for name in columns)
    return tuple(name for name in own if name not in domains or not domains[name].constant)
