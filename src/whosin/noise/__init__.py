"""Exact noise from the operating system's secure randomness.

Contract: every sampler follows its distribution *exactly*, not up to a rounding error: a draw that
the bits so far do not decide draws more bits (docs/noise.md has the proof). All randomness comes
from `os.urandom`; there is no seed, no global state and no buffer, so a fork repeats nothing.
Noise is integers and is added to integers: what is not an integer is first put on a `Grid`, whose
sensitivity is accounted.
"""

from whosin.noise.choices import categorical, randomized_response
from whosin.noise.coins import bernoulli, exp_minus
from whosin.noise.gaussian import discrete_gaussian
from whosin.noise.grid import Grid
from whosin.noise.integers import uniform
from whosin.noise.laplace import discrete_laplace, geometric
from whosin.noise.selection import noisy_max, selection_epsilon, selection_rho, top_k
from whosin.noise.source import Source

SAMPLERS = (
    discrete_laplace,
    discrete_gaussian,
    geometric,
    uniform,
    bernoulli,
    categorical,
    randomized_response,
)
SELECTIONS = (noisy_max, top_k, selection_epsilon, selection_rho)

__all__ = [
    "Grid",
    "Source",
    "bernoulli",
    "categorical",
    "discrete_gaussian",
    "discrete_laplace",
    "exp_minus",
    "geometric",
    "noisy_max",
    "randomized_response",
    "selection_epsilon",
    "selection_rho",
    "top_k",
    "uniform",
]
