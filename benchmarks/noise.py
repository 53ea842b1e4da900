"""Exact noise: a million draws beside OpenDP's exact ones and NumPy's, which are neither."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import opendp.prelude as dp

import whosin as wi
from measuring import Row, best_of
from whosin.noise.cumulative import CumulativeNoise, fresh_factor

DRAWS = 10**6
SCALE = 10.0


def opendp_seconds(law: str) -> float:
    """One run of OpenDP's integer mechanism on a vector of zeros."""
    dp.enable_features("contrib")
    metric = dp.l1_distance(T=int) if law == "laplace" else dp.l2_distance(T=float)
    make = dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian
    mechanism = make(dp.vector_domain(dp.atom_domain(T=int)), metric, scale=SCALE)
    zeros = [0] * DRAWS
    mechanism([0] * 1000)
    return best_of(partial(mechanism, zeros), repeats=1)


def numpy_draws(law: str, generator: np.random.Generator) -> object:
    """What people write instead: floats, or the difference of two geometrics."""
    if law == "laplace":
        chance = -np.expm1(-1 / SCALE)
        return generator.geometric(chance, DRAWS) - generator.geometric(chance, DRAWS)
    return np.rint(generator.normal(0, SCALE, DRAWS)).astype(np.int64)


def rows() -> Iterator[Row]:
    generator = np.random.default_rng()
    for law, ours in (
        ("laplace", wi.noise.discrete_laplace),
        ("gaussian", wi.noise.discrete_gaussian),
    ):
        seconds = best_of(partial(ours, SCALE, DRAWS), repeats=7)
        work = f"10^6 exact discrete {law.capitalize()} draws"
        theirs = opendp_seconds(law)
        yield Row(work, seconds, "100 times faster", theirs / seconds >= 100, "OpenDP", theirs)
        insecure = best_of(partial(numpy_draws, law, generator), repeats=7)
        near = insecure / seconds >= 0.25
        yield Row(work, seconds, "within 4 of NumPy", near, "NumPy, insecure", insecure)
    floats = best_of(partial(generator.laplace, 0, SCALE, DRAWS), repeats=7)
    seconds = best_of(partial(wi.noise.discrete_laplace, SCALE, DRAWS), repeats=7)
    yield Row(
        "10^6 exact discrete Laplace draws",
        seconds,
        "within 4 of NumPy",
        floats / seconds >= 0.25,
        "NumPy, insecure floats",
        floats,
    )
    stream = CumulativeNoise.choose(365)
    factor, fresh = stream.error_factor(), fresh_factor(365)
    work = "running totals of 365 periods, times the noise of one count"
    yield Row(work, factor, "at most 2.95", factor <= 2.95, "fresh noise", fresh, unit="times")
    for scale in (1e3, 1e9):
        seconds = best_of(partial(wi.noise.discrete_laplace, scale, DRAWS), repeats=5)
        yield Row(f"the same, scale {scale:.0e}", seconds, "under 0.2 s", seconds < 0.2)
        seconds = best_of(partial(wi.noise.discrete_gaussian, scale, DRAWS), repeats=5)
        yield Row(f"10^6 discrete Gaussian, σ {scale:.0e}", seconds, "under 0.2 s", seconds < 0.2)
    scores = np.random.default_rng(0).integers(0, 1000, DRAWS)
    seconds = best_of(partial(wi.noise.top_k, scores, 10, 2), repeats=2)
    yield Row("top 10 of 10^6 scores (OpenDP)", seconds, "under 1 s", seconds < 1)
