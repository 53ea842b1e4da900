"""One adversary's belief about the world.

Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin.priors.base import Prior
from whosin.priors.correlated import Blocks, GaussianVector, MarkovChain, Network
from whosin.priors.independent import Exchangeable, FixedSize, Independent, Uniform
from whosin.priors.sets import Box, ChainBox, Hull
from whosin.priors.sets import PriorSet as PriorSet
from whosin.priors.table import WorldTable

Table = WorldTable
"""Its short name, for scripts."""

__all__ = [
    "Blocks",
    "Box",
    "ChainBox",
    "Exchangeable",
    "FixedSize",
    "GaussianVector",
    "Hull",
    "Independent",
]
__all__ += ["MarkovChain", "Network", "Prior", "Uniform", "WorldTable"]


def __dir__() -> list[str]:
    return __all__
