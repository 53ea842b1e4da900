"""Worlds: what the data might be, and what of it a mechanism can see (THEORY 1, F11)."""

from whosin.spaces.count_lattice import CountLattice
from whosin.spaces.lattice import Lattice
from whosin.spaces.maximum_lattice import MaximumLattice
from whosin.spaces.records import Records
from whosin.spaces.statistics import (
    Count,
    Histogram,
    Max,
    Statistic,
    Sum,
    WorldFunction,
    as_statistic,
)
from whosin.spaces.subsets import Subsets

Space = Subsets | Records

__all__ = [
    "Count",
    "CountLattice",
    "Histogram",
    "Lattice",
    "Max",
    "MaximumLattice",
    "Records",
    "Space",
    "Statistic",
    "Subsets",
    "Sum",
    "WorldFunction",
    "as_statistic",
]
