"""Worlds: what the data might be, and what of it a mechanism can see (F11).

Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin.spaces.quotients import CountLattice, Lattice, MaximumLattice
from whosin.spaces.statistics import Among, Count, Histogram, Max, Statistic, Sum, WorldFunction
from whosin.spaces.statistics import read_statistic as read_statistic
from whosin.spaces.worlds import Records, Subsets

__all__ = ["Among", "Count", "CountLattice", "Histogram", "Lattice", "Max", "MaximumLattice"]
__all__ += ["Records", "Space", "Statistic", "Subsets", "Sum", "WorldFunction", "read_statistic"]


def __dir__() -> list[str]:
    return __all__


Space = Subsets | Records
