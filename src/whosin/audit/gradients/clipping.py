"""Is the norm of each example's gradient limited?

Contract: one example has a gradient far beyond the limit, along one coordinate or spread over all;
the others have none. Along its direction it moves the sum by `clip` at most, and the sums of calls
without gradients say how much noise there is: Student's t, with the spread of those alone, is exact
for Gaussian noise of any size (that a batch may leave the example out only makes it smaller).
Where calls are not independent, ranks are compared instead. A gradient that is not finite must not
reach the sum. And examples that are all at the limit must all count: a step that clips their sum
instead would let one example push the others away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from whosin.audit.gradients.findings import CLIPPING, CalledStep, StepFinding
from whosin.exact import Array

BEYOND = 1000.0
CLOSE = 0.999
"""How near to the limit a gradient is that no step should change."""


def check_clipping(
    step: CalledStep, silent: Array, *, independent: bool
) -> Iterator[StepFinding | None]:
    """Two directions of gradients, gradients that are not finite, and all at the limit.

    Args:
        silent: the sums of calls without gradients.
        independent: whether calls have noise of their own.
    """
    claims = step.claims
    one = np.eye(claims.dimension)[0]
    spread = np.full(claims.dimension, 1 / math.sqrt(claims.dimension))
    for words, direction in (("along one coordinate", one), ("spread over all", spread)):
        gradients = np.zeros((claims.examples, claims.dimension))
        gradients[0] = direction * BEYOND * claims.clip
        along = step.sums(gradients, len(silent)) @ direction
        yield _too_far(along, silent @ direction, claims.clip, words, independent)
    yield _not_finite(step)
    if independent:
        yield _all_together(step, one, silent @ one)


def _too_far(
    along: Array, usual: Array, clip: float, words: str, independent: bool
) -> StepFinding | None:
    if not np.isfinite(along).all():
        return StepFinding(CLIPPING, f"a large gradient {words} gives no finite sum", 0.0)
    moved = float(along.mean() - usual.mean())
    said = (
        f"a gradient of norm {BEYOND * clip:g} {words} moves the sum by about {moved:.3g}, "
        f"not by {clip:g} at most"
    )
    test = _student if independent else _ranks
    return StepFinding(CLIPPING, said, test(along - clip, usual))


def _student(larger: Array, usual: Array) -> float:
    """How unlikely a mean this much larger is, if both are equal; the spread is that of `usual`."""
    from scipy.special import stdtr

    count = len(usual)
    beyond = float(larger.mean() - usual.mean())
    spread = float(usual.std(ddof=1)) * math.sqrt(2 / count)
    if spread <= 1e-12 * abs(beyond):
        return float(beyond <= 1e-9)
    return float(stdtr(count - 1, -beyond / spread))


def _ranks(larger: Array, usual: Array) -> float:
    """How unlikely it is that this many of `larger` are above all of `usual`, in any order."""
    count = len(usual)
    above = int((larger > usual.max() + 1e-9).sum())
    return math.prod((count - step) / (2 * count - step) for step in range(above))


def _not_finite(step: CalledStep) -> StepFinding | None:
    """A gradient of infinities, which a division by its norm turns into NaN."""
    claims = step.claims
    gradients = np.zeros((claims.examples, claims.dimension))
    gradients[0] = math.inf
    with np.errstate(all="ignore"):
        if np.isfinite(step.sums(gradients, 1 if claims.rate == 1 else 20)).all():
            return None
    return StepFinding(CLIPPING, "a gradient that is not finite reaches the sum", 0.0)


def _all_together(step: CalledStep, direction: Array, usual: Array) -> StepFinding | None:
    """All examples at the limit, in one direction: their sum is not limited."""
    claims, calls = step.claims, len(usual)
    gradients = np.tile(direction * claims.clip * CLOSE, (claims.examples, 1))
    along = step.sums(gradients, calls) @ direction
    expected = claims.rate * claims.examples * claims.clip * CLOSE
    mean = float(along.mean())
    said = (
        f"{claims.examples} gradients at the limit add up to about {mean:.3g} instead of "
        f"{expected:.3g}: their sum is clipped, not each of them"
    )
    if claims.rate == 1:
        return StepFinding(CLIPPING, said, _student(expected - along, -usual))
    # A sum of independent bounded and normal terms: sub-Gaussian.
    deviation = max(claims.deviation, float(usual.std()))
    width = deviation**2 + claims.examples * claims.clip**2 / 4
    below = max(0.0, expected - mean)
    return StepFinding(CLIPPING, said, math.exp(-(below**2) * calls / (2 * width)))
