"""Correlated records: a long Markov chain, and every set of known rows at once."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

import whosin as wi
from measuring import Row, best_of
from whosin.gwas.relatives import find_families


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
    people = [("x", name, "0", "0", "0", "1") for name in ("f", "m")]
    for home in range(20):
        people.append(("x", f"c{home}", "f", "m", "0", "1"))
        people += [("x", f"{home}.{child}", f"c{home}", "0", "0", "1") for child in range(2)]
    seconds = best_of(lambda: find_families(people).worst_factor(1.0), repeats=1)
    yield Row("what 61 relatives add, 80 transmissions", seconds, "seconds", seconds < 10)
    grid = [_like([c for c in (r - 10, r - (r % 10 > 0)) if 0 <= c < r]) for r in range(100)]
    wide, noisy = wi.priors.Network(grid), wi.mechanisms.Laplace("sum", 5)
    seconds = best_of(
        lambda: wi.notions.BayesianDifferentialPrivacy(wide).measure(noisy, wi.Records(100, 2)),
        repeats=1,
    )
    yield Row("Bayesian DP, a grid of 100 rows, a bracket", seconds, "20 s", seconds < 20)
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


def _like(parents: list[int]) -> tuple[list[int], dict[tuple[int, ...], Any]]:
    """A row that is like its parents: 1 with 1/5, and 3/5 more of their share of ones."""
    table = {}
    for values in product(range(2), repeat=len(parents)):
        share = Fraction(sum(values), len(parents)) if parents else Fraction(1, 2)
        table[values] = (
            Fraction(4, 5) - Fraction(3, 5) * share,
            Fraction(1, 5) + Fraction(3, 5) * share,
        )
    return parents, table
