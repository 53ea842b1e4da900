"""What the ways of choosing tables have in common.

Contract: a way is made from a share of the budget before anything is read, and its price is known
then, whatever it will choose. It is given exact counts, and lets noisy tables out, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from whosin.exact import Array
from whosin.marginals.workload import Attributes
from whosin.release.learned.estimates import Known, Potentials
from whosin.release.many_tables.noise import NoisyTable

Counts = Mapping[Attributes, Array]
Measured = tuple[NoisyTable, Array]


class Way(Protocol):
    """How tables are chosen, after those of single columns were measured."""

    name: ClassVar[str]
    choosing: ClassVar[Fraction]
    """The part of the budget for choosing, where nothing else is said."""

    @property
    def first(self) -> NoisyTable:
        """The noise of the tables of single columns."""

    @property
    def counted(self) -> tuple[Attributes, ...]:
        """What must be counted for it."""

    @property
    def widths(self) -> tuple[Fraction, Fraction]:
        """The least and the largest width that the noise of a chosen table can have."""

    def cost(self, relation: str, rows: int) -> Fraction:
        """ε or ρ of everything after the tables of single columns."""

    def choosing_cost(self, relation: str) -> Fraction:
        """ε or ρ of all choices, within the above."""

    def words(self) -> str:
        """What will be chosen, in words."""

    def measure(self, counts: Counts, first: Known) -> tuple[list[Measured], Potentials]:
        """Choose and measure, in the order of the choices; with the potentials of an estimate from
        all noisy tables, where the last model can begin, if it made one."""


def measured(noisy: NoisyTable, counts: Counts) -> Measured:
    """A noisy table."""
    exact = noisy.measurement.of_counts(counts[noisy.measurement.attributes])
    return noisy, np.asarray(exact + noisy.draw(exact.shape))
