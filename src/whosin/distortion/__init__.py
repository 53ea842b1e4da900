"""The best mechanism for a distortion: closed forms, linear programs by type, rate–distortion.

`best` is the entry: D from ε or ε from D, under differential privacy, identifiability or mutual
information, with a mechanism that keeps the level exactly and a certified optimality gap. Numbers
such as T16 or F14 are explained in docs/theory/numbers.md.
"""

from whosin.distortion.closed_forms import (
    h_inverse,
    hamming_distortion,
    identifiable_mechanism,
    least_threshold,
    randomized_response,
    stated_threshold,
)
from whosin.distortion.row_mechanisms import NOTION_NAMES, ByType, Optimum, PerBlock, PerRow
from whosin.distortion.search import Curves, best, curves
from whosin.distortion.symmetry import Structure, find_structure

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
