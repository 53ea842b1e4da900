"""One adversary's belief about the world.

Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin.priors.base import Prior
from whosin.priors.blocks import Blocks
from whosin.priors.box import Box
from whosin.priors.exchangeable import Exchangeable
from whosin.priors.fixed_size import FixedSize
from whosin.priors.hull import Hull
from whosin.priors.independent import Independent
from whosin.priors.markov_chain import MarkovChain
from whosin.priors.network import Network
from whosin.priors.sets import PriorSet as PriorSet
from whosin.priors.table import WorldTable
from whosin.priors.uniform import Uniform

Table = WorldTable
"""Its short name, for scripts."""

__all__ = [
    "Blocks",
    "Box",
    "Exchangeable",
    "FixedSize",
    "Hull",
    "Independent",
    "MarkovChain",
    "Network",
    "Prior",
    "Uniform",
    "WorldTable",
]
