"""The best mechanism for a distortion: closed forms, linear programs by type, rate–distortion.

`best` is the entry: D from ε or ε from D, under differential privacy, identifiability or mutual
information, with a mechanism that keeps the level exactly and a certified optimality gap.
"""

from whosin.distortion.best import best
from whosin.distortion.bounds import stated_threshold
from whosin.distortion.by_type import ByType
from whosin.distortion.closed_forms import h, h_inverse
from whosin.distortion.curve import Curves, curves
from whosin.distortion.optimal_forms import identifiable, randomized_response, threshold
from whosin.distortion.optimum import NOTIONS, Optimum
from whosin.distortion.per_block import PerBlock
from whosin.distortion.per_row import PerRow
from whosin.distortion.structure import Structure
from whosin.distortion.symmetry import structure

__all__ = [
    "NOTIONS",
    "ByType",
    "Curves",
    "Optimum",
    "PerBlock",
    "PerRow",
    "Structure",
    "best",
    "curves",
    "h",
    "h_inverse",
    "identifiable",
    "randomized_response",
    "stated_threshold",
    "structure",
    "threshold",
]
