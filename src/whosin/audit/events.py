"""Events, and the choice of the one to count.

Contract: everything here happens on samples that are not counted afterwards, so approximations are
allowed: they cost strength, never validity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass

import numpy as np

from whosin.audit.orderings import Ordering
from whosin.audit.outputs import Outputs, read
from whosin.audit.trials import FEW, Trial
from whosin.exact import Array

MANY, SOME = 2000, 20
"""More than a few nested events count as this many when the search judges its own estimates; fewer
where a classifier ordered them."""
SCARCE = 12
"""Below this many counts their logarithm is too rough to judge an event by."""
MODEST = math.log(2)
"""What is promised at most where counts are scarce: too hopeful a slope costs the whole bound."""
FAR = 2.0
"""An estimate that is so much above its promise comes from an event that the other world hardly
has."""
CERTAIN = 0.9
"""An event that happens so often in its own world shows as much with any κ."""
PLAIN = 0.05
"""What a less plain event must promise more, as a part, to be chosen."""
WITH, WITHOUT = "with", "without"


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs that is more likely in one world than in the other: a witness.

    `contains` tells for any outputs of the mechanism which of them are in it, so that anyone can
    draw afresh and count again.
    """

    ordering: Ordering
    threshold: float
    favours: str

    @property
    def above(self) -> bool:
        return self.favours == WITH

    def contains(self, outputs: object) -> Array:
        """Which outputs are in the event."""
        if not isinstance(outputs, Outputs):
            outputs = read(outputs, len(outputs) if isinstance(outputs, Sized) else 0)
        scores = self.ordering.score(outputs)
        return np.asarray(scores >= self.threshold if self.above else scores <= self.threshold)

    def data(self) -> dict[str, object]:
        """The event for programs."""
        return self.ordering.data(self.threshold, self.above)

    def __str__(self) -> str:
        return self.ordering.about(self.threshold, self.above)


@dataclass(frozen=True)
class Choice:
    """An event with what the search expects of it.

    Attributes:
        promise: the bound on ln r that counting is expected to show.
        estimate: ln r as seen by the search.
        share: how often the favoured world has it.
        slopes: κ for the exact test, by the promise: too small a κ costs little, one beyond the
            true ratio everything. Where the other world hardly has the event, a small κ costs more
            than one in e: then a second one, near the estimate, shares the error.
    """

    event: Event
    promise: float
    estimate: float
    share: float = 0.0

    @property
    def slopes(self) -> tuple[float, ...]:
        logs = [max(self.promise, 0.0)]
        if self.estimate - self.promise > FAR and self.share < CERTAIN:
            logs.append(self.estimate - 1)
        return tuple(math.exp(min(log, 30.0)) for log in logs)


def choose(
    trials: Sequence[Trial], draws: int, error: float, delta: float = 0.0
) -> dict[str, Choice]:
    """For each direction the event whose count on `draws` draws promises the largest bound."""
    result: dict[str, Choice] = {}
    for trial in trials:
        for favours in (WITH, WITHOUT):
            sign = 1 if favours == WITH else -1
            first, other = (sign * trial.with_scores, sign * trial.without_scores)[::sign]
            threshold, promise, estimate, common = _threshold(
                first, other, draws, error, delta, MANY if not trial.smooth else SOME
            )
            if favours in result:
                best = result[favours].promise
                if promise <= best + PLAIN * abs(best):
                    continue
            if trial.matched is not None:
                share = ((first >= threshold).sum() + (other >= threshold).sum()) / (
                    len(first) + len(other)
                )
                threshold = _level(sign * trial.matched, share)
            event = Event(trial.ordering, sign * threshold, favours)
            result[favours] = Choice(event, promise, estimate, common)
    return result


def _level(scores: Array, share: float) -> float:
    """The score that as near as possible to this share of all scores reach, by their ratio: half of
    a frequent output is to become all of it, and not some rare one beside it."""
    levels, counts = np.unique(scores, return_counts=True)
    reached = counts[::-1].cumsum()[::-1] / len(scores)
    return float(levels[np.argmin(np.abs(np.log(reached) - math.log(max(share, 1e-12))))])


def _threshold(
    scores: Array, others: Array, draws: int, error: float, delta: float, many: int
) -> tuple[float, float, float, float]:
    """(t, promise, estimate, share) where {score ≥ t} promises the largest ln ratio."""
    from scipy.special import ndtri

    levels = np.unique(np.concatenate([scores, others]))
    # The more events there are to choose from, the more the best of them flatters itself.
    caution = math.sqrt(2 * math.log(1 + (len(levels) if len(levels) <= FEW else many)))
    if len(levels) > 4000:
        # Every level in the tail, where single draws matter, then evenly spaced ones.
        levels = np.concatenate([levels[:-2000:-1], levels[-2000 :: -(len(levels) // 2000)]])
    hits = len(scores) - np.searchsorted(np.sort(scores), levels, side="left")
    counts = len(others) - np.searchsorted(np.sort(others), levels, side="left")
    # Half an imagined draw in each world keeps empty counts finite.
    p, q = (hits + 0.5) / (len(scores) + 1), (counts + 0.5) / (len(others) + 1)
    excess = np.maximum(p - delta, 1e-12)
    estimate = np.log(excess) - np.log(q)
    spread = np.sqrt((1 - p) * p / excess**2 + (1 - q) / q)
    z = -float(ndtri(error))
    doubt = math.sqrt(z * z / draws + caution**2 / len(scores))
    promise = estimate - spread * doubt
    rare = _rare(excess * len(scores), q * len(scores), doubt * math.sqrt(len(scores)))
    promise = np.where(counts < SCARCE, np.maximum(promise, np.minimum(rare, MODEST)), promise)
    # With a handful of hits to come no test says anything.
    promise = np.where(p * draws >= 3, promise, -np.inf)
    best = int(np.argmax(promise))
    return float(levels[best]), float(promise[best]), float(estimate[best]), float(p[best])


def _rare(hits: Array, counts: Array, doubt: float) -> Array:
    """ln of the ratio that two small counts still speak for, `doubt` standard errors away.

    Square roots of counts have a spread of 1/2: the largest κ with
    2(√hits − √(κ counts)) ≥ doubt √(1 + κ), a quadratic equation for √κ.
    """
    a, b = 2 * np.sqrt(hits), 2 * np.sqrt(counts)
    room = np.maximum(a**2 - doubt**2, 0.0)
    root = room / (a * b + doubt * np.sqrt(room + b**2))
    return np.where(root > 0, 2 * np.log(np.maximum(root, 1e-12)), -np.inf)
