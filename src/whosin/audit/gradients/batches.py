"""Is a batch drawn as claimed: each example by itself, with one probability, anew each time?

Contract: `sample(n)` returns the places (or a mask) of one batch. Under Poisson sampling the
inclusions of n examples in N batches are nN independent coins of the claimed rate, so how often any
is in, how often each is in, and how often one is in two batches in a row are binomial, and batches
of one size in all calls are as unlikely as that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from whosin.audit.confidence import at_least
from whosin.audit.gradients.findings import SAMPLING, StepFinding
from whosin.audit.models.scoring import numbers
from whosin.errors import InvalidInput
from whosin.exact import Array


def check_batches(
    sample: Callable[[int], Any], examples: int, rate: float, calls: int
) -> Iterator[StepFinding]:
    """Rates, sizes, and what follows on what."""
    masks = np.array([_mask(sample(examples), examples) for _ in range(calls)])
    yield _rate(masks, rate)
    yield _each(masks, rate)
    yield _sizes(masks, rate)
    yield from _in_a_row(masks, rate)


def _mask(batch: Any, examples: int) -> Array:
    values = numbers(batch).reshape(-1)
    if len(values) == examples and np.isin(values, (0, 1)).all():
        return values.astype(bool)
    if not ((values >= 0) & (values < examples) & (values == np.floor(values))).all():
        accepted = f"a function that returns a mask of {examples}, or places below {examples}"
        raise InvalidInput("sample", accepted, "others")
    mask = np.zeros(examples, dtype=bool)
    mask[values.astype(int)] = True
    return mask


def _rate(masks: Array, rate: float) -> StepFinding:
    hits = int(masks.sum())
    said = f"an example is in a batch with probability {hits / masks.size:.3g}, not {rate:g}"
    return StepFinding(SAMPLING, said, at_least(hits, masks.size, rate))


def _each(masks: Array, rate: float) -> StepFinding:
    """The example that is in most often; the p-value pays for all of them."""
    calls, examples = masks.shape
    hits = masks.sum(axis=0)
    example = int(np.argmax(hits))
    said = f"example {example} is in {hits[example] / calls:.3g} of the batches, not {rate:g}"
    p_value = min(1.0, at_least(int(hits[example]), calls, rate) * examples)
    return StepFinding(SAMPLING, said, p_value)


def _sizes(masks: Array, rate: float) -> StepFinding:
    from scipy.stats import binom

    sizes = masks.sum(axis=1)
    size = int(sizes[0])
    said = f"every batch has {size} examples: batches are dealt out, not drawn by coins"
    if rate == 1 or not (sizes == size).all():
        return StepFinding(SAMPLING, said, 1.0)
    chances = binom.pmf(np.arange(masks.shape[1] + 1), masks.shape[1], rate)
    return StepFinding(SAMPLING, said, float((chances ** len(sizes)).sum()))


def _in_a_row(masks: Array, rate: float) -> Iterator[StepFinding]:
    pairs = masks[0 : len(masks) // 2 * 2 : 2] & masks[1::2][: len(masks) // 2]
    twice, count = int(pairs.sum()), pairs.size
    said = "who is in one batch is in the next {} than by chance: batches depend on each other"
    fewer = 1 - at_least(twice + 1, count, rate**2)
    yield StepFinding(SAMPLING, said.format("less often"), fewer)
    yield StepFinding(SAMPLING, said.format("more often"), at_least(twice, count, rate**2))
