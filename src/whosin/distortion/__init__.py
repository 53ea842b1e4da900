"""The best mechanism for a distortion: closed forms, linear programs by type, rate–distortion.

`best` is the entry: D from ε or ε from D, under differential privacy, identifiability or mutual
information, with a mechanism that keeps the level exactly and a certified optimality gap. Numbers
such as T16 or F14 are explained in docs/theory/numbers.md.
"""

from whosin.distortion.closed_forms import h_inverse as h_inverse
from whosin.distortion.closed_forms import hamming_distortion as hamming_distortion
from whosin.distortion.closed_forms import identifiable_mechanism as identifiable_mechanism
from whosin.distortion.closed_forms import least_threshold as least_threshold
from whosin.distortion.closed_forms import randomized_response as randomized_response
from whosin.distortion.closed_forms import stated_threshold as stated_threshold
from whosin.distortion.row_mechanisms import NOTION_NAMES as NOTION_NAMES
from whosin.distortion.row_mechanisms import ByType as ByType
from whosin.distortion.row_mechanisms import Optimum as Optimum
from whosin.distortion.row_mechanisms import PerBlock as PerBlock
from whosin.distortion.row_mechanisms import PerRow as PerRow
from whosin.distortion.search import Curves as Curves
from whosin.distortion.search import best as best
from whosin.distortion.search import curves as curves
from whosin.distortion.symmetry import Structure as Structure
from whosin.distortion.symmetry import find_structure as find_structure

__all__ = [
    "NOTION_NAMES",
    "ByType",
    "Curves",
    "Optimum",
    "PerBlock",
    "PerRow",
    "Structure",
    "best",
    "curves",
    "find_structure",
    "h_inverse",
    "hamming_distortion",
    "identifiable_mechanism",
    "least_threshold",
    "randomized_response",
    "stated_threshold",
]


def __dir__() -> list[str]:
    return __all__
