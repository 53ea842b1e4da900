"""The exact engine: one level at n = 10, every family at n = 20, and n = 24 in bounded memory."""

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
