"""Maximal leakage: the most that any guesser gains, whatever is guessed (Issa et al. 2020)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from whosin.exact import log_up, rational
from whosin.mechanisms import Channel, as_channel
from whosin.notions.base import Notion, exact_or_up
from whosin.notions.gains.base import world_name
from whosin.notions.level import Level, Witness
from whosin.priors import WorldTable
from whosin.spaces import Space, Subsets


@dataclass(frozen=True)
class MaximalLeakage(Notion):
    """ln Σ_y max_x Pr[y|x], in nats: over all priors and gains no guess becomes better by a larger
    factor. Worlds that are all alike before, one of which is guessed, attain it."""

    unit: ClassVar[str] = "nats"
    averages: ClassVar[bool] = True
    about_records: ClassVar[None] = None  # type: ignore[misc]

    @property
    def title(self) -> str:
        return "Maximal leakage (any prior, any gain)"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = as_channel(mechanism, space)
        channel.need_finite("maximal leakage")
        values, rows = largest_likelihoods(channel)
        factor = max(sum(values, Fraction(0)), Fraction(1))
        count, exact = channel.likelihoods.shape[0], channel.exact is not None
        case = Witness(
            output=None,
            prior=exact_or_up(Fraction(1, count), exact),
            posterior=exact_or_up(factor / count, exact),
            ratio=exact_or_up(factor, exact),
            guess=row_name(channel, 0),
            strategy={
                name: row_name(channel, row)
                for name, row, value in zip(channel.outputs, rows, values, strict=True)
                if value
            },
            adversary=lambda: WorldTable(dict.fromkeys(row_worlds(channel), Fraction(1, count))),
        )
        return Level(log_up(factor), case, True, (), notion=self)


def largest_likelihoods(channel: Channel) -> tuple[list[Fraction], list[int]]:
    """For each output the largest likelihood, exactly, and the row that has it."""
    wide = channel.wide
    near = wide >= wide.max(axis=0) * (1 - 2.0**-50)
    values, rows = [], []
    for output in range(wide.shape[1]):
        listed = np.flatnonzero(near[:, output])
        if channel.exact is None:
            listed = listed[np.argmax(wide[listed, output])][None]
        best = max((channel.entries.at(int(row), output), -int(row)) for row in listed)
        values.append(rational(best[0]))
        rows.append(-best[1])
    return values, rows


def row_name(channel: Channel, row: int) -> Hashable:
    """A world of a channel's row, as people write it."""
    lattice = channel.lattice
    if lattice is None or lattice.is_single:
        return world_name(channel.space, row)
    assert isinstance(channel.space, Subsets)
    present = lattice.representative(row)
    return tuple(channel.space.entities[entity] for entity in present)


def row_worlds(channel: Channel) -> list[int]:
    """One world for each row."""
    lattice = channel.lattice
    if lattice is None or lattice.is_single:
        return list(range(channel.likelihoods.shape[0]))
    rows = range(channel.likelihoods.shape[0])
    return [sum(1 << entity for entity in lattice.representative(row)) for row in rows]
