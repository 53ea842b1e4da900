"""Which rows a prior treats alike, and which are independent of each other (F14, T20).

A prior of independent rows, of blocks or of exchangeable rows says so itself; for any other one
transpositions are tried on its table, with exact rationals. "Can be exchanged" is an equivalence,
so the groups are its classes.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from whosin.distortion.symmetry.parts import Block, Structure
from whosin.distortion.symmetry.size_limits import need_worlds
from whosin.errors import InvalidInput
from whosin.exact import Array, flint_rational, rational
from whosin.priors import Blocks, Exchangeable, Independent, Prior, PriorSet, Table, Uniform
from whosin.spaces import Records, Space


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
        if all(row is rows[0] for row in rows):
            return Structure(space, prior, (tuple(range(space.rows)),), rows)
        alike: dict[tuple[Fraction, ...], list[int]] = {}
        for number, row in enumerate(rows):
            alike.setdefault(row, []).append(number)
        return Structure(space, prior, tuple(map(tuple, alike.values())), rows)
    if isinstance(prior, Exchangeable):
        if space.values != 2 or len(prior.sizes) != space.rows + 1:
            raise InvalidInput(
                "prior", f"Exchangeable with {space.rows + 1} sizes, for two values", repr(prior)
            )
        return Structure(space, prior, (tuple(range(space.rows)),))
    if isinstance(prior, Blocks):
        return _of_blocks(space, prior)
    if not isinstance(prior, PriorSet):  # which is refused at any size
        need_worlds(space.worlds)
    table = prior.on_records(space, flint_rational)
    groups = _groups(table.reshape((space.values,) * space.rows))
    return Structure(space, prior, groups, None, tuple(rational(mass) for mass in table))


def blocks(known: Structure) -> tuple[Block, ...]:
    """The independent parts: single rows where rows are independent, or the whole table."""
    if known.blocks:
        return known.blocks
    if known.rows is None:
        return (Block(known, (tuple(range(known.space.rows)),)),)
    result: dict[tuple[Fraction, ...], list[tuple[int, ...]]] = {}
    for group in known.groups:
        result.setdefault(known.rows[group[0]], []).extend((row,) for row in group)
    return tuple(Block(one_row(row), tuple(copies)) for row, copies in result.items())


@lru_cache(maxsize=256)
def one_row(row: tuple[Fraction, ...]) -> Structure:
    """One row on its own."""
    return Structure(Records(1, len(row)), Independent([row]), ((0,),), (row,))


def _of_blocks(space: Records, prior: Blocks) -> Structure:
    prior.check_records(space)
    result: dict[tuple[Fraction, ...], list[tuple[int, ...]]] = {}
    for positions, masses in prior.tables():
        need_worlds(len(masses))
        result.setdefault(masses, []).append(positions)
    if len(prior.blocks) == 1:
        return structure(space, Table(next(iter(result))))
    made, groups = [], []
    for masses, copies in result.items():
        small = Records(len(copies[0]), 2)
        inside = structure(small, Table(masses))
        made.append(Block(inside, tuple(copies)))
        for copy in copies:
            groups += [tuple(copy[row] for row in group) for group in inside.groups]
    return Structure(space, prior, tuple(groups), blocks=tuple(made))


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
