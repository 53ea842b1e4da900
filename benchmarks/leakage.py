"""Leakages of large channels beside qif's, sets of priors, and refinement of 64 × 64 channels."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import whosin as wi
from measuring import Row, best_of, peer

QIF = """
import json, time
import numpy as np, qif
rng = np.random.default_rng(0)
table = rng.random((2**10, 8))
table /= table.sum(axis=1, keepdims=True)
start = time.perf_counter()
value = qif.measure.shannon.add_capacity(table)[0]
print(json.dumps({"seconds": time.perf_counter() - start, "value": float(value)}))
"""
REFINED = """
import json, time
import numpy as np, qif
rng = np.random.default_rng(1)
source = rng.integers(1, 99, (64, 64)).astype(float)
source /= source.sum(axis=1, keepdims=True)
garbling = rng.integers(1, 9, (64, 64)).astype(float)
garbling /= garbling.sum(axis=1, keepdims=True)
start = time.perf_counter()
held = qif.refinement.refined_by(source, source @ garbling)
print(json.dumps({"seconds": time.perf_counter() - start, "value": float(held)}))
"""


def channel(entities: int) -> wi.Channel:
    table = np.random.default_rng(0).random((2**entities, 8))
    table /= table.sum(axis=1, keepdims=True)
    return wi.Channel(wi.Subsets(entities), table)


def rationals(table: np.ndarray) -> np.ndarray:
    return np.array([[Fraction(int(v), int(row.sum())) for v in row] for row in table])


def sets_of_priors() -> Iterator[Row]:
    """Priors that are only roughly known: any mixture of three, or anything between bounds."""
    hull = wi.priors.Hull([("0.4", "0.3", "0.2", "0.1"), ("0.1", "0.2", "0.3", "0.4"), ["1/4"] * 4])
    box = wi.priors.Box(["0.1"] * 4, ["0.5"] * 4)
    table = np.random.default_rng(3).random((4**5, 8))
    on_rows = wi.Channel(wi.Records(5, 4), table / table.sum(axis=1, keepdims=True))
    many = wi.Records(1_000_000, 4)
    for name, prior in (("hull", hull), ("box", box)):
        notion = wi.notions.Identifiability(prior)
        seconds = best_of(lambda notion=notion: notion.measure(on_rows), repeats=1)  # type: ignore[misc]
        yield Row(f"identifiability over a {name}, 4^5 worlds × 8", seconds, "seconds", seconds < 5)
        seconds = best_of(lambda prior=prior: wi.distortion.best(many, prior, epsilon=1), repeats=1)  # type: ignore[misc]
        yield Row(f"best mechanism, a {name}, 10^6 rows of 4", seconds, "seconds", seconds < 5)
    table = np.random.default_rng(4).random((16, 6))
    few = wi.Channel(wi.Records(2, 4), table / table.sum(axis=1, keepdims=True))
    for name, prior in (("hull", hull), ("box", box)):
        start = time.process_time()
        level = wi.notions.MutualInformation(prior).measure(few)
        seconds = time.process_time() - start
        gap = 0.0 if level.lower is None else float(level.value) - float(level.lower)
        about = f"information over a {name}, 2 rows of 4 (of CPU; gap {gap:.0e})"
        yield Row(about, seconds, "10 s", seconds < 10)
    swings = [[["9/10", "1/10"], ["1/10", "9/10"]], [["3/5", "2/5"], ["2/5", "3/5"]]]
    chains = wi.priors.Hull([wi.priors.MarkovChain(["1/2", "1/2"], each) for each in swings])
    start = time.process_time()
    found = wi.distortion.best(wi.Records(5, 2), chains, epsilon=1)
    seconds = time.process_time() - start
    about = f"best mechanism, mixtures of two chains, 5 rows (of CPU; gap {found.gap:.0e})"
    yield Row(about, seconds, "10 s", seconds < 10 and found.gap < 1e-8)


def rows() -> Iterator[Row]:
    large, uniform = channel(16), wi.priors.Uniform()
    for name, notion in (
        ("leakage, one try", wi.notions.Leakage("identity", uniform)),
        ("leakage, five tries", wi.notions.Leakage("tries=5", wi.priors.Independent("0.3"))),
        ("maximal leakage", wi.notions.MaximalLeakage()),
        ("pointwise leakage", wi.notions.PointwiseLeakage(uniform)),
        ("capacity", wi.notions.Capacity()),
    ):
        seconds = best_of(lambda notion=notion: notion.measure(large), repeats=1)  # type: ignore[misc]
        yield Row(f"{name}, 2^16 worlds × 8 outputs", seconds, "under 2 s", seconds < 2)
    yield from sets_of_priors()
    small, notion = channel(10), wi.notions.Capacity()
    theirs = peer("qif", ["qif==1.6.0", "numpy"], QIF)
    seconds = best_of(lambda: notion.measure(small), repeats=3)
    if theirs:
        assert abs(theirs["value"] * np.log(2) - float(notion.measure(small).value)) < 1e-4
    yield Row(
        "capacity, 2^10 worlds × 8 outputs, gap 1e-9",
        seconds,
        "as fast",
        theirs is None or seconds <= theirs["seconds"],
        "qif" if theirs else None,
        theirs["seconds"] if theirs else None,
    )
    rng, space = np.random.default_rng(1), wi.Records(1, 64)
    source = rationals(rng.integers(1, 99, (64, 64)))
    target = source @ rationals(rng.integers(1, 9, (64, 64)))
    both = wi.Channel(space, source), wi.Channel(space, target)
    assert wi.refinement.simulates(*both).holds
    theirs = peer("qif", ["qif==1.6.0", "numpy"], REFINED)
    seconds = best_of(lambda: wi.refinement.simulates(*both), repeats=1)
    yield Row(
        "refinement of 64 × 64 channels, proved",
        seconds,
        "seconds",
        seconds < 10,
        "qif" if theirs else None,
        theirs["seconds"] if theirs else None,
    )
    start = time.process_time()
    assert wi.refinement.simulates(*both[::-1]).holds is False
    seconds = time.process_time() - start
    yield Row("the other way round, refuted by a gain (of CPU)", seconds, "seconds", seconds < 10)
