"""The exact engine: one level at n = 10, every family at n = 20, n = 24 in bounded memory, noise on
a count of 10,000 and of a million people, and maxima of 10,000."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import whosin as wi
from measuring import Row, alone, best_of, peer

QIF = """
import json, time
import numpy as np, qif
table = np.random.default_rng(0).random((2**10, 8))
table /= table.sum(axis=1, keepdims=True)
distance = lambda x, y: float((int(x) ^ int(y)).bit_count())
times = []
for _ in range(3):
    start = time.perf_counter()
    value = qif.measure.d_privacy.smallest_epsilon(table, distance)
    times.append(time.perf_counter() - start)
print(json.dumps({"seconds": min(times), "value": value}))
"""

LARGE = """
import json, resource, time
import numpy as np, whosin as wi
table = np.random.default_rng(0).random((2**24, 8), dtype=np.float64)
total = table.sum(axis=1, keepdims=True)
table /= total
del total
channel = wi.Channel(wi.Subsets(24), table)
notion = wi.notions.PositiveMembership(wi.families.Independent())
start = time.perf_counter()
notion.measure(channel)
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"seconds": seconds, "memory": peak}))
"""


def channel(entities: int, outputs: int) -> wi.Channel:
    table = np.random.default_rng(0).random((2**entities, outputs))
    table /= table.sum(axis=1, keepdims=True)
    return wi.Channel(wi.Subsets(entities), table)


def rows() -> Iterator[Row]:
    small, notion = channel(10, 8), wi.notions.DifferentialPrivacy()
    found = peer("qif", ["qif==1.6.0", "numpy"], QIF)
    seconds = best_of(lambda: notion.measure(small), repeats=20, each=10)
    if found:
        assert abs(found["value"] - notion.measure(small).value) < 1e-9
    theirs = found["seconds"] if found else 0.36
    yield Row(
        "exact level, 2^10 worlds × 8 outputs",
        seconds,
        "1,000 times faster",
        theirs / seconds >= 1000,
        "qif",
        theirs,
        recorded=found is None,
    )
    large = channel(20, 8)
    families = [
        wi.families.AnyPrior(),
        wi.families.Independent(),
        wi.families.FixedSize(),
        wi.families.OneOf(3),
        wi.families.FixedProbability(0.3),
        wi.families.Uninformed(),
        wi.families.Cliques(3),
    ]
    for family in families:
        measured = wi.notions.PositiveMembership(family)
        seconds = best_of(partial(measured.measure, large), repeats=1)
        yield Row(f"{family.symbol}, n = 20, 8 outputs", seconds, "under 5 s", seconds < 5)
    alone_result = alone(LARGE)
    seconds, memory = alone_result["seconds"], alone_result["memory"]
    yield Row(
        "D_I, n = 24, 8 outputs",
        seconds,
        "under 15 s, 4 GiB",
        seconds < 15 and memory < 4,
        memory=memory,
    )
    yield from sizes()


def sizes() -> Iterator[Row]:
    """A count of half the people with Laplace noise against every family, and the two maxima."""
    half, bounded = wi.exact.ONE_HALF, wi.families.FixedSize("0.05", "0.5")
    families = [
        wi.families.Independent(),
        wi.families.FixedSize(),
        wi.families.Uninformed(),
        wi.families.FixedProbability("0.3"),
        wi.families.OneOf(3),
        wi.families.Cliques(3),
        wi.families.AtMostKnown(10, "0.1", "0.9"),
        wi.families.Independent("0.05", half),
        bounded,
    ]
    for people, most in ((10_000, 5), (1_000_000, 20)):
        space = wi.Subsets(people)
        noisy = wi.mechanisms.Laplace(wi.statistics.Count(of=range(people // 2)), 3)
        for family in families:
            measured = partial(wi.notions.PositiveMembership(family).measure, noisy, space)
            seconds, name = best_of(measured, repeats=1), family.spelled
            yield Row(
                f"Laplace count, {name}, n = {people:,}", seconds, f"under {most} s", seconds < most
            )
    rules = [wi.mechanisms.Suppress(10), wi.mechanisms.Round(5), wi.mechanisms.RandomRound(5)]
    for rule in rules:
        for family in families:
            measured = partial(
                wi.notions.PositiveMembership(family).measure, rule, wi.Subsets(10_000)
            )
            seconds, name = best_of(measured, repeats=1), f"{rule!r}, {family.spelled}"
            yield Row(f"{name}, n = 10,000", seconds, "under 5 s", seconds < 5)
    likely, many = wi.families.FixedProbability("0.3"), wi.Subsets(10_000)
    for rule in (*rules, wi.mechanisms.Suppress(10, "hidden")):
        measured = partial(wi.notions.NegativeMembership(likely).measure, rule, many)
        seconds = best_of(measured, repeats=1)
        yield Row(f"NMP, {rule!r}, D_F^0.3, n = 10,000", seconds, "under 5 s", seconds < 5)
    cells = wi.mechanisms.Laplace(wi.statistics.Histogram([i % 3 for i in range(3_000)]), 2)
    known = wi.notions.PositiveMembership(wi.families.FixedSize("0.35", "0.4"))
    seconds = best_of(partial(known.measure, cells, wi.Subsets(3_000)), repeats=1)
    yield Row("D_B^[.35, .4], histogram, n = 3,000", seconds, "under 5 s", seconds < 5)
    summed = wi.mechanisms.Laplace(wi.statistics.Sum(range(1_000)), 3)
    narrow = wi.families.FixedSize("0.3", "0.4")
    bracket = partial(wi.notions.PositiveMembership(narrow).measure, summed, wi.Subsets(1_000))
    assert not bracket().exact  # its ends do not meet
    seconds = best_of(bracket, repeats=1)
    yield Row("Laplace sum, a bracket, n = 1,000", seconds, "under 5 s", seconds < 5)
    uninformed = wi.notions.PositiveMembership(wi.families.Uninformed())
    seconds = best_of(partial(uninformed.measure, wi.mechanisms.KMax(3), many), repeats=1)
    yield Row("k-Max, k = 3, D_N, n = 10,000", seconds, "under 2 s", seconds < 2)
    maximum = wi.mechanisms.Laplace(wi.statistics.Max(), 50)
    for family in families:
        measured = partial(wi.notions.PositiveMembership(family).measure, maximum, many)
        seconds, name = best_of(measured, repeats=1), family.spelled
        yield Row(f"Laplace maximum, {name}, n = 10,000", seconds, "under 5 s", seconds < 5)
