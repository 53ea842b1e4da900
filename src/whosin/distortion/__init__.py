"""The best mechanism for a distortion: closed forms, linear programs by type, rate–distortion.

`best` is the entry: D from ε or ε from D, under differential privacy, identifiability or mutual
information, with a mechanism that keeps the level exactly and a certified optimality gap. Numbers
such as T16 or F14 are explained in docs/theory/numbers.md.
"""

from whosin.distortion.closed.bounds import stated_threshold as stated_threshold
from whosin.distortion.closed.hamming import h as h
from whosin.distortion.closed.hamming import h_inverse as h_inverse
from whosin.distortion.closed.optimal_forms import identifiable as identifiable
from whosin.distortion.closed.optimal_forms import randomized_response as randomized_response
from whosin.distortion.closed.optimal_forms import threshold as threshold
from whosin.distortion.curve import Curves as Curves
from whosin.distortion.curve import curves as curves
from whosin.distortion.mechanisms.by_type import ByType as ByType
from whosin.distortion.mechanisms.per_block import PerBlock as PerBlock
from whosin.distortion.mechanisms.per_row import PerRow as PerRow
from whosin.distortion.optimum import NOTIONS as NOTIONS
from whosin.distortion.optimum import Optimum as Optimum
from whosin.distortion.solving import best as best
from whosin.distortion.symmetry.detection import structure as structure
from whosin.distortion.symmetry.parts import Structure as Structure
