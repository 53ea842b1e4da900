"""Exact noise from the operating system's secure randomness.

Every sampler follows its distribution *exactly*, not up to a rounding error: a draw that the bits
so far do not decide draws more bits (docs/noise.md has the proof). All randomness comes from
`os.urandom`; there is no seed, no global state and no buffer, so a fork repeats nothing. Noise is
integers and is added to integers: what is not an integer is first put on a `Grid`, whose
sensitivity is accounted.
"""

from whosin.noise.additive import cube, discrete_gaussian, discrete_laplace, geometric
from whosin.noise.distributions import CubeNoise, GaussianNoise, Grid, LaplaceNoise
from whosin.noise.selection import (
    categorical,
    noisy_max,
    noisy_max_gap,
    randomized_response,
    selection_epsilon,
    selection_rho,
    top_k,
)
from whosin.noise.source import Source, bernoulli, exp_minus, uniform

__all__ = [
    "SAMPLERS",
    "SELECTIONS",
    "CubeNoise",
    "GaussianNoise",
    "Grid",
    "LaplaceNoise",
    "Source",
    "bernoulli",
    "categorical",
    "cube",
    "discrete_gaussian",
    "discrete_laplace",
    "exp_minus",
    "geometric",
    "noisy_max",
    "noisy_max_gap",
    "randomized_response",
    "selection_epsilon",
    "selection_rho",
    "top_k",
    "uniform",
]


def __dir__() -> list[str]:
    return __all__


SAMPLERS = (
    discrete_laplace,
    discrete_gaussian,
    geometric,
    cube,
    uniform,
    bernoulli,
    categorical,
    randomized_response,
)
SELECTIONS = (noisy_max, noisy_max_gap, top_k, selection_epsilon, selection_rho)
