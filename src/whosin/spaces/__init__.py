"""Worlds: what the data might be, and what of it a mechanism can see (F11).

Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin.spaces.quotients import CountLattice as CountLattice
from whosin.spaces.quotients import Lattice as Lattice
from whosin.spaces.quotients import MaximumLattice as MaximumLattice
from whosin.spaces.statistics import Count as Count
from whosin.spaces.statistics import Histogram as Histogram
from whosin.spaces.statistics import Max as Max
from whosin.spaces.statistics import Statistic as Statistic
from whosin.spaces.statistics import Sum as Sum
from whosin.spaces.statistics import WorldFunction as WorldFunction
from whosin.spaces.statistics import read_statistic as read_statistic
from whosin.spaces.worlds import Records as Records
from whosin.spaces.worlds import Subsets as Subsets

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
    "read_statistic",
]


def __dir__() -> list[str]:
    return __all__


Space = Subsets | Records
