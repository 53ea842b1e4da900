"""Correlated records: a long Markov chain, and every set of known rows at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import whosin as wi
from measuring import Row, best_of


def rows() -> Iterator[Row]:
    chain = wi.priors.MarkovChain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
    notion = wi.notions.BayesianDifferentialPrivacy(chain)
    noisy, space = wi.mechanisms.Laplace("sum", 1), wi.Records(1000, 2)
    seconds = best_of(lambda: notion.measure(noisy, space), repeats=1)
    exact = notion.measure(noisy, space).exact
    yield Row(
        "Bayesian DP of a noisy sum, chain of 1,000 rows",
        seconds,
        "exact, seconds",
        exact and seconds < 10,
    )
    people = {}
    for home in range(30):
        f, m = f"f{home}", f"m{home}"
        people |= {f: (None, None), m: (None, None)}
        people |= {f"c{home}.{child}": (f, m) for child in range(3)}
    families = wi.notions.BayesianDifferentialPrivacy(wi.priors.Network.pedigree(people, "0.1"))
    noisy, space = wi.mechanisms.Laplace("sum", 2), wi.Records(150, 3)
    seconds = best_of(lambda: families.measure(noisy, space), repeats=1)
    yield Row("Bayesian DP of a noisy sum, 30 families of 5", seconds, "seconds", seconds < 10)
    series = wi.priors.GaussianVector.autoregressive(["0.5", "0.3"], rows=100)
    release = [wi.notions.GaussianRelease([1] * 100, 5)]
    seconds = best_of(
        lambda: wi.notions.measure_gaussian_leakage(series, release, "1e-6"), repeats=1
    )
    yield Row("Bayesian DP with δ, AR(2) series of 100 rows", seconds, "seconds", seconds < 10)
    table = np.random.default_rng(0).random((2**14, 8))
    table /= table.sum(axis=1, keepdims=True)
    channel = wi.Channel(wi.Records(14, 2), table)
    full = wi.notions.BayesianDifferentialPrivacy(wi.priors.Independent([0.6, 0.4]))
    seconds = best_of(lambda: full.measure(channel), repeats=1)
    yield Row("Bayesian DP, 14 binary rows, 8 outputs", seconds, "seconds", seconds < 10)
