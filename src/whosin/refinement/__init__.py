"""Refinement: whether what one channel shows can be simulated from what another one shows.

A channel A is refined by B (A = B·R for a stochastic R) if and only if nobody gains more from A
than from B, whatever they believe and whatever they want to guess (the coriaceous theorem; McIver
et al. 2014). Both answers are proved in rationals: R itself, or a prior and a gain that A serves
better.
"""

from whosin.refinement.comparison import Comparison as Comparison
from whosin.refinement.comparison import simulates as simulates
