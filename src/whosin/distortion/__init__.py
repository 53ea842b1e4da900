"""The best mechanism for a distortion: closed forms, linear programs by type, rate–distortion.

`best` is the entry: D from ε or ε from D, under differential privacy, identifiability or mutual
information, with a mechanism that keeps the level exactly and a certified optimality gap.
"""

from whosin.distortion.closed.bounds import stated_threshold
from whosin.distortion.closed.hamming import h, h_inverse
from whosin.distortion.closed.optimal_forms import identifiable, randomized_response, threshold
from whosin.distortion.curve import Curves, curves
from whosin.distortion.mechanisms.by_type import ByType
from whosin.distortion.mechanisms.per_block import PerBlock
from whosin.distortion.mechanisms.per_row import PerRow
from whosin.distortion.optimum import NOTIONS, Optimum
from whosin.distortion.solving import best
from whosin.distortion.symmetry.detection import structure
from whosin.distortion.symmetry.parts import Structure

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
