"""Which rows a prior treats alike, and what it says about counts (F14).

Contract: groups of rows such that exchanging two rows of a group leaves the prior as it is. A prior
of independent rows says so itself; for any other one transpositions are tried on its table, with
exact rationals. "Can be exchanged" is an equivalence, so the groups are its classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from whosin.distortion.types import Types, number_of_types, types
from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array, flint_rational, log_up, rational
from whosin.priors import Exchangeable, Independent, Prior, Uniform
from whosin.spaces import Records, Space

MOST_TYPES = 20_000
"""Of a linear program."""
MOST_KINDS = 1 << 20
"""Of a table that is only summed over."""
MOST_WORLDS = 4096


@dataclass(frozen=True, eq=False)
class Structure:
    """A prior on records, seen through its symmetry.

    Args:
        space: the tables.
        prior: the prior.
        groups: rows that can be exchanged, each row in one group.
        rows: the distribution of each row where rows are independent, else nothing.
        table: the exact mass of each world, where the prior was written out.
    """

    space: Records
    prior: Prior
    groups: tuple[tuple[int, ...], ...]
    rows: tuple[tuple[Fraction, ...], ...] | None
    table: tuple[Fraction, ...] | None = None

    @cached_property
    def types(self) -> Types:
        """The joint types."""
        self.within(MOST_KINDS)
        return types(tuple(len(group) for group in self.groups), self.space.values)

    def within(self, most: int) -> None:
        """Refuse more types than that.

        Raises:
            Unsupported: there are too many; the message says which structure would help.
        """
        sizes = tuple(len(group) for group in self.groups)
        needed = number_of_types(sizes, self.space.values)
        if needed > most:
            n, m = self.space.rows, self.space.values
            alike = number_of_types((n,), m)
            fit = n
            while number_of_types((fit,), m) > MOST_TYPES:
                fit -= 1
            better = (
                f"if the prior treated all rows alike (i.i.d., exchangeable) it would be {alike:,}"
                if alike <= MOST_TYPES
                else f"with rows that the prior treats alike {fit} rows of {m} values fit; a "
                "uniform prior, identifiability from ε̃_X on, and mutual information of independent "
                "rows have closed or single-letter forms of any size"
            )
            raise Unsupported(
                f"the best mechanism for {n} rows of {m} values in groups of "
                f"{', '.join(map(str, sizes))} needs {needed:,} variables, of at most "
                f"{most:,}: {better}"
            )

    @cached_property
    def world_masses(self) -> list[Fraction]:
        """The probability of *one* world with these counts, for each combination of counts."""
        if self.rows is not None:
            first = [self.rows[group[0]] for group in self.groups]
            return [
                math.prod(
                    (
                        p**c
                        for row, part in zip(first, counts, strict=True)
                        for p, c in zip(row, part, strict=True)
                    ),
                    start=Fraction(1),
                )
                for counts in self.types.counts
            ]
        if isinstance(self.prior, Exchangeable):
            return [
                rational(self.prior.sizes[ones]) / math.comb(self.space.rows, ones)
                for ((_zeros, ones),) in self.types.counts
            ]
        assert self.table is not None
        found = []
        for counts in self.types.counts:
            world = [0] * self.space.rows
            for group, part in zip(self.groups, counts, strict=True):
                values = [value for value, count in enumerate(part) for _ in range(count)]
                for row, value in zip(group, values, strict=True):
                    world[row] = value
            found.append(self.table[self.space.index(world)])
        return found

    @cached_property
    def masses(self) -> Array:
        """The probability of each combination of counts."""
        logs = self.types.log_arrangements
        found = np.array([_log(mass) for mass in self.world_masses]) + logs
        return np.asarray(np.exp(found) / np.exp(found).sum())

    @cached_property
    def odds(self) -> Array:
        """p(x)/p(x') for each move."""
        logs = np.array([_log(mass) for mass in self.world_masses])
        moves = self.types.moves
        place = self.types.inputs
        return np.asarray(np.exp(logs[place[moves.source]] - logs[place[moves.target]]))

    @cached_property
    def marginals(self) -> tuple[tuple[Fraction, ...], ...]:
        """The distribution of each row."""
        if self.rows is not None:
            return self.rows
        found: list[tuple[Fraction, ...]] = [()] * self.space.rows
        masses = [
            mass
            * math.prod(part.arrangements(i) for part, i in zip(self.types.groups, at, strict=True))
            for mass, at in zip(
                self.world_masses, np.ndindex(*self.types.counts_shape), strict=True
            )
        ]
        for number, group in enumerate(self.groups):
            shares = [Fraction(0)] * self.space.values
            for mass, counts in zip(masses, self.types.counts, strict=True):
                for value, count in enumerate(counts[number]):
                    shares[value] += mass * Fraction(count, len(group))
            total = sum(shares, Fraction(0))
            for row in group:
                found[row] = tuple(share / total for share in shares)
        return tuple(found)

    @cached_property
    def spread(self) -> float:
        """ε_X = max over neighbours of ln p_X(x)/p_X(x'); infinite where the prior has zeros."""
        if self.rows is not None:
            kinds = [self.rows[group[0]] for group in self.groups]
            ratios = [max(row) / min(row) if min(row) else math.inf for row in kinds]
            return log_up(max(ratios))
        masses = self.world_masses if self.table is None else list(self.table)
        if not all(masses):
            return math.inf
        if self.table is not None:
            shape = (self.space.values,) * self.space.rows
            cube = np.array(self.table, dtype=object).reshape(shape)
            return log_up(max((cube.max(a) / cube.min(a)).max() for a in range(cube.ndim)))
        moves, place = self.types.moves, self.types.inputs
        pairs = set(zip(place[moves.source].tolist(), place[moves.target].tolist(), strict=True))
        return log_up(max(masses[i] / masses[j] for i, j in pairs))

    @cached_property
    def entropy(self) -> float:
        """H(X) in nats."""
        if self.rows is not None:
            kinds = [(len(group), self.rows[group[0]]) for group in self.groups]
            return -sum(many * float(p) * _log(p) for many, row in kinds for p in row if p)
        logs = np.array([_log(mass) for mass in self.world_masses])
        seen = self.masses > 0
        return -float(np.sum(self.masses[seen] * logs[seen]))


def structure(space: Space, prior: Prior) -> Structure:
    """The symmetry of a prior on records.

    Raises:
        InvalidInput: the space is not one of records, or the prior does not fit it.
        Unsupported: a prior without declared structure is too large to write out.
    """
    if not isinstance(space, Records):
        raise InvalidInput("space", "Records(rows, values)", repr(space))
    if not isinstance(prior, Prior):
        raise InvalidInput("prior", "a prior on records", repr(prior))
    if isinstance(prior, Uniform):
        row = (Fraction(1, space.values),) * space.values
        return Structure(space, prior, (tuple(range(space.rows)),), (row,) * space.rows)
    if isinstance(prior, Independent):
        rows = tuple(prior.rows(space))
        alike: dict[tuple[Fraction, ...], list[int]] = {}
        for number, row in enumerate(rows):
            alike.setdefault(row, []).append(number)
        return Structure(space, prior, tuple(map(tuple, alike.values())), rows)
    if isinstance(prior, Exchangeable):
        if space.values != 2 or len(prior.sizes) != space.rows + 1:
            raise InvalidInput(
                "prior", f"Exchangeable with {space.rows + 1} sizes, for two values", repr(prior)
            )
        return Structure(space, prior, (tuple(range(space.rows)),), None)
    if space.worlds > MOST_WORLDS:
        raise Unsupported(
            f"{space.worlds:,} worlds are too many for a prior without declared structure (at most "
            f"{MOST_WORLDS:,}): use Independent, Uniform or Exchangeable"
        )
    table = prior.on_records(space, flint_rational)
    groups = _groups(table.reshape((space.values,) * space.rows))
    return Structure(space, prior, groups, None, tuple(rational(mass) for mass in table))


def _groups(table: Array) -> tuple[tuple[int, ...], ...]:
    """Classes of rows that can be exchanged."""
    groups: list[list[int]] = []
    for row in range(table.ndim):
        for group in groups:
            if bool((np.swapaxes(table, group[0], row) == table).all()):
                group.append(row)
                break
        else:
            groups.append([row])
    return tuple(map(tuple, groups))


def _log(value: Fraction) -> float:
    """ln, also of fractions too small for a float."""
    if not value:
        return -math.inf
    return math.log(value.numerator) - math.log(value.denominator)


def check_cost(space: Records, cost: object) -> Array:
    """A distortion matrix: what it costs to show b for a. Hamming where none is given."""
    if cost is None:
        return 1.0 - np.eye(space.values)
    try:
        matrix = np.asarray(cost, dtype=float)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape != (space.values,) * 2:
        raise InvalidInput("cost", f"{space.values} × {space.values} numbers", repr(cost))
    if not np.isfinite(matrix).all() or (matrix < 0).any() or np.diag(matrix).any():
        raise InvalidInput("cost", "finite, at least 0, and 0 on the diagonal", repr(cost))
    return matrix


def is_hamming(cost: Array) -> bool:
    return bool((cost == 1.0 - np.eye(len(cost))).all())


def best_constant(structure: Structure, cost: Array) -> tuple[float, Sequence[int]]:
    """The answer that ignores the data: its distortion, and the value shown for each row."""
    total, shown = 0.0, [0] * structure.space.rows
    for group in structure.groups:
        expected = np.array([float(p) for p in structure.marginals[group[0]]]) @ cost
        total += len(group) * float(expected.min())
        for row in group:
            shown[row] = int(expected.argmin())
    return total, shown
