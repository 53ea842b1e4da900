"""Is there as much noise as claimed, everywhere, and new noise at each call?

Contract: without gradients a sum is noise alone, N(0, deviation²) in each coordinate and call. Sums
of squares of independent ones are χ²: over all, in each coordinate, of differences of neighbouring
coordinates (the same noise everywhere has none). Calls that repeat the noise of others exactly, or
whose noise points the same way as that of the call before more often than fair coins would, reuse a
seed; what follows assumes that none does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from whosin.audit.gradients.findings import NOISE, SEED, StepFinding
from whosin.exact import Array


def check_seed(sums: Array) -> Iterator[StepFinding]:
    """Whether noise is new at each call, by the sums of calls without gradients."""
    calls = len(sums)
    if not sums.any() or not np.isfinite(sums).all():
        return  # no noise at all
    repeated = calls - len(np.unique(sums, axis=0))
    if repeated:
        said = f"{repeated:,} of {calls:,} calls had exactly the noise of another: a seed is reused"
        yield StepFinding(SEED, said, 0.0)
        return
    first, second = sums[0 : calls // 2 * 2 : 2], sums[1::2]
    yield StepFinding(SEED, "consecutive calls have noise alike", _correlated(first, second))


def check_noise(sums: Array, deviation: float) -> Iterator[StepFinding]:
    """How much there is, and where, if calls are independent."""
    if not np.isfinite(sums).all():
        yield StepFinding(NOISE, "without gradients the sum is not finite", 0.0)
        return
    scaled = sums / deviation
    yield _too_little(scaled, deviation)
    if sums.any():
        yield _somewhere(scaled, deviation)
        yield _alike(scaled[:, : scaled.shape[1] // 2 * 2])


def _too_little(scaled: Array, deviation: float) -> StepFinding:
    squares = float((scaled**2).sum())
    seen = math.sqrt(squares / scaled.size) * deviation
    said = f"its standard deviation is about {seen:.3g}, not {deviation:g}"
    return StepFinding(NOISE, said, _chi(squares, scaled.size))


def _somewhere(scaled: Array, deviation: float) -> StepFinding:
    """The coordinate with the least noise; the p-value pays for all of them."""
    squares = (scaled**2).sum(axis=0)
    coordinate = int(np.argmin(squares))
    seen = math.sqrt(float(squares[coordinate]) / len(scaled)) * deviation
    said = (
        f"coordinate {coordinate} has a standard deviation of about {seen:.3g}, not {deviation:g}"
    )
    p_value = min(1.0, _chi(float(squares[coordinate]), len(scaled)) * scaled.shape[1])
    return StepFinding(NOISE, said, p_value)


def _alike(scaled: Array) -> StepFinding:
    """Differences of pairs of coordinates: half of their squares are χ² as well."""
    pairs = scaled[:, 0::2] - scaled[:, 1::2]
    said = "the noise of neighbouring coordinates is alike"
    return StepFinding(NOISE, said, _chi(float((pairs**2).sum()) / 2, pairs.size))


def _correlated(first: Array, second: Array) -> float:
    """The sign test: how unlikely this many pairs of like sign are, a call a sign, either way."""
    from whosin.audit.confidence import at_least

    signs = ((first * second).sum(axis=1) > 0).sum()
    hits = max(int(signs), len(first) - int(signs))
    return min(1.0, 2 * at_least(hits, len(first), 0.5))


def _chi(squares: float, count: int) -> float:
    """Pr[χ² with this many degrees of freedom ≤ squares]."""
    from scipy.special import gammainc

    return float(gammainc(count / 2, squares / 2))
