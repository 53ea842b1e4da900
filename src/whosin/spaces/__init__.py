"""Worlds: what the data might be, and what of it a mechanism can see (F11).

Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin.spaces.count_lattice import CountLattice as CountLattice
from whosin.spaces.lattice import Lattice as Lattice
from whosin.spaces.maximum_lattice import MaximumLattice as MaximumLattice
from whosin.spaces.records import Records as Records
from whosin.spaces.statistics import Count as Count
from whosin.spaces.statistics import Histogram as Histogram
from whosin.spaces.statistics import Max as Max
from whosin.spaces.statistics import Statistic as Statistic
from whosin.spaces.statistics import Sum as Sum
from whosin.spaces.statistics import WorldFunction as WorldFunction
from whosin.spaces.statistics import as_statistic as as_statistic
from whosin.spaces.subsets import Subsets as Subsets

Space = Subsets | Records
