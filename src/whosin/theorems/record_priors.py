"""What theorems about records ask of a prior: support, spread, independence, defaults.

A prior on records with the same distribution for every row, or one for each, answers without a
space; others are written out, for which they need one. `None` means: not without the space.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from whosin import priors
from whosin.exact import Array, flint_rational, rational
from whosin.priors import Prior
from whosin.priors.records import distribution
from whosin.spaces import Records, Space, Subsets

LARGEST = 1 << 16
"""Tables of more worlds are not written out: no theorem is used rather than a slow one."""
HALF = Fraction(1, 2)
Rows = tuple[tuple[Fraction, ...], ...]


def independent_rows(prior: Prior) -> Rows | None:
    """The rows' distributions where rows are independent; one where all rows share it."""
    if type(prior) is not priors.Independent or not isinstance(prior.p, tuple):
        return None
    return tuple(distribution(row, "prior") for row in (prior.p if prior.by_row else (prior.p,)))


def rows_are_independent(prior: Prior) -> bool:
    """Whether rows are known to be independent of each other."""
    return isinstance(prior, priors.Uniform) or independent_rows(prior) is not None


def spread(prior: Prior, space: Space | None) -> Fraction | None:
    """e^ε_X: the largest ratio of the probabilities of two tables that differ in one row; None
    where it is infinite or not known."""
    rows = independent_rows(prior)
    if isinstance(prior, priors.Uniform):
        return Fraction(1)
    if isinstance(prior, priors.PriorSet):
        largest = prior.spread
        return largest if isinstance(largest, Fraction) else None
    if rows is not None:
        if any(min(row) == 0 for row in rows):
            return None
        return max(max(row) / min(row) for row in rows)
    mass = written_out(prior, space)
    if mass is None or not np.all(mass > 0):
        return None
    assert isinstance(space, Records)
    views = [space.axis(mass[:, None], row) for row in range(space.rows)]
    return max(rational(max((view.max(axis=1) / view.min(axis=1)).ravel())) for view in views)


def full_support(prior: Prior, space: Space | None) -> bool:
    """Whether every table is known to be possible."""
    return spread(prior, space) is not None


def default_is_possible(prior: Prior, default: int, space: Space | None) -> bool:
    """Whether the default is known to be possible in each row beside every possible rest."""
    rows = independent_rows(prior)
    if isinstance(prior, priors.Uniform):
        return True
    if rows is not None:
        return all(default < len(row) and row[default] > 0 for row in rows)
    mass = written_out(prior, space)
    if mass is None:
        return False
    assert isinstance(space, Records)
    if not 0 <= default < space.values:
        return False
    for row in range(space.rows):
        possible = space.axis(mass[:, None], row) > 0
        if np.any(possible.any(axis=1) & ~possible[:, default]):
            return False
    return True


def binary_rows(prior: Prior, space: Space | None) -> list[Fraction] | None:
    """Pr[value 1] of each row, where rows are independent and binary and their number known."""
    rows = independent_rows(prior)
    records = space if isinstance(space, Records) else None
    if isinstance(prior, priors.Uniform):
        return [HALF] * records.rows if records is not None and records.values == 2 else None
    if rows is None or any(len(row) != 2 for row in rows):
        return None
    listed = not needs_space(prior)
    if records is not None:
        if records.values != 2 or (listed and len(rows) != records.rows):
            return None
        return [row[1] for row in (rows if listed else rows * records.rows)]
    return [row[1] for row in rows] if listed else None


def beliefs_in_people(prior: Prior, people: Prior, space: Space | None) -> list[Fraction] | None:
    """Each person's prior probability of being in, where a prior on binary records and a prior on
    sets of people are known to be the same: value 1 of row i is entity i being in."""
    rows = independent_rows(prior)
    if rows is not None and all(len(row) == 2 for row in rows):
        inside = [row[1] for row in rows]
        if isinstance(people, priors.Uniform):
            return inside if set(inside) == {HALF} else None
        if type(people) is priors.Independent:
            given = [rational(p) for p in people.parameters]
            alike = len(given) == 1 or len(inside) == 1
            same = set(given) == set(inside) and len(set(given)) == 1 if alike else given == inside
            return inside if same else None
    if not isinstance(space, Records) or space.values != 2:
        return None
    mass = written_out(prior, space)
    if mass is None:
        return None
    subsets = Subsets(space.rows)
    try:
        other = people.probabilities(subsets)
    except Exception:  # a prior about something else
        return None
    for number, world in enumerate(space):
        if rational(mass[number]) != other[sum(value << row for row, value in enumerate(world))]:
            return None
    return [people.belief(subsets, entity) for entity in range(space.rows)]


@lru_cache(maxsize=64)
def written_out(prior: Prior, space: Space | None) -> Array | None:
    """The probability of each table, exactly, where it can be written out."""
    if not isinstance(space, Records) or space.worlds > LARGEST:
        return None
    if isinstance(prior, priors.PriorSet):
        return None
    return prior.on_records(space, flint_rational)


def needs_space(prior: Prior) -> bool:
    """Whether more can be said of a prior once the space is known."""
    return not (type(prior) is priors.Independent and prior.by_row)
