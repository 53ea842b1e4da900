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

MANY, SOME = 2000, 200
"""More than a few nested events count as this many when the search judges its own estimates; fewer
where values or a classifier order them, and their tails are no accident."""
SCARCE = 12
"""Below this many counts their logarithm is too rough to judge an event by."""
MODEST = math.log(2)
"""What is promised at most where counts are scarce: too hopeful a slope costs the whole bound."""
FAR = 2.0
"""An estimate that is this much above its promise comes from an event that the other world hardly
has."""
HOPE, FAINT = 1.0, 1e-3
"""Where nothing is sure, an event of a smooth ordering is worth trying that is this many standard
errors above 0; it promises next to nothing."""
DARING, AMPLE = 1.0, 200
"""How many standard errors below its likely value an event is taken for, and how often each world
must have it: the best of many rarer ones is an accident."""
CERTAIN = 0.9
"""An event that happens this often in its own world shows as much with any κ."""
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
        sure: what counting shows almost surely, no more than the promise.
        slopes: κ for the exact test, by the promise: too small a κ costs little, one beyond the
            true ratio everything. Where the other world hardly has the event, a small κ costs more
            than one in e: then a second one, near the estimate, shares the error.
    """

    event: Event
    promise: float
    estimate: float
    share: float = 0.0
    sure: float = -math.inf

    @property
    def slopes(self) -> tuple[float, ...]:
        logs = [max(self.promise, 0.0)]
        if self.estimate - self.promise > FAR and self.share < CERTAIN:
            logs.append(self.estimate - 1)
        return tuple(math.exp(min(log, 30.0)) for log in logs)


@dataclass(frozen=True, eq=False)
class Nested:
    """The events {score ≥ t} of one ordering in one direction, a level each.

    Attributes:
        promise: what counting shows almost surely, for all that the search has seen.
        estimate: ln r as seen by the search; `doubt` is its standard error, and `loss` how far the
            bound of a count will be below the true ln r.
        share: how often the favoured world has the event; `ample` where both have it often.
    """

    trial: Trial
    favours: str
    levels: Array
    promise: Array
    estimate: Array
    doubt: Array
    loss: Array
    share: Array
    ample: Array

    @classmethod
    def of(cls, trial: Trial, favours: str, draws: int, error: float, delta: float) -> Nested:
        """Every level, judged by the trial's scores."""
        from scipy.special import ndtri

        scores, others = _sorted(trial, favours)
        levels = _levels(trial, favours)
        # The more events there are to choose from, the more the best of them flatters itself.
        many = MANY if not trial.smooth else SOME
        # A classifier with few scores was one of many that could have been learnt.
        few = len(levels) <= FEW and not (trial.smooth and trial.matched is not None)
        caution = math.sqrt(2 * math.log(1 + (len(levels) if few else many)))
        hits = len(scores) - np.searchsorted(scores, levels, side="left")
        counts = len(others) - np.searchsorted(others, levels, side="left")
        # Half an imagined draw in each world keeps empty counts finite.
        p, q = (hits + 0.5) / (len(scores) + 1), (counts + 0.5) / (len(others) + 1)
        excess = np.maximum(p - delta, 1e-12)
        estimate = np.log(excess) - np.log(q)
        spread = np.sqrt((1 - p) * p / excess**2 + (1 - q) / q)
        z, size = -float(ndtri(error)), len(scores)
        promise = estimate - spread * math.sqrt(z * z / draws + caution**2 / size)
        # A tail of single draws is an accident for smooth orderings, too.
        most = caution if few else max(caution, math.sqrt(2 * math.log(1 + MANY)))
        rare = _rare(excess * size, q * size, math.sqrt(z * z * size / draws + most**2))
        promise = np.where(counts < SCARCE, np.maximum(promise, np.minimum(rare, MODEST)), promise)
        # With a handful of hits to come no test says anything.
        promise = np.where(p * draws >= 3, promise, -np.inf)
        ample = (counts >= AMPLE) & (hits >= AMPLE)
        doubt, loss = spread / math.sqrt(size), spread * z / math.sqrt(draws)
        if promise.max() <= 0 and many < MANY:  # nothing is sure: the likeliest, if it is one
            hope = estimate - np.hypot(loss, HOPE * doubt)
            promise = np.maximum(promise, FAINT * np.where(counts < SCARCE, -np.inf, hope))
        return cls(trial, favours, levels, promise, estimate, doubt, loss, p, ample)

    def likely(self, scale: float) -> Array:
        """What counting is likely to show, where leaks are about as large as `scale`; no less than
        what is sure, and no more where chance orders the tail.

        An event that was rarely seen is drawn towards the scale (the posterior mean of a normal
        variable with mean and standard deviation `scale`), and `DARING` standard errors are left.
        """
        if not self.trial.smooth:
            return self.promise
        weight = scale**2 / (scale**2 + self.doubt**2)
        mean = scale + weight * (self.estimate - scale)
        hope = mean - DARING * self.doubt * np.sqrt(weight) - self.loss
        return np.maximum(self.promise, np.where(self.ample, hope, -np.inf))

    def choice(self, promise: Array) -> Choice:
        """The event that promises most."""
        at = int(promise.argmax())
        trial, sign = self.trial, 1 if self.favours == WITH else -1
        # As much of the favoured world, and as little of the other one as possible.
        threshold = float(self.levels[self.share == self.share[at]].max())
        if trial.matched is not None:
            scores, others = _sorted(trial, self.favours)
            reached = [len(part) - np.searchsorted(part, threshold) for part in (scores, others)]
            share = sum(reached) / (len(scores) + len(others))
            threshold = _level(sign * trial.matched, float(share))
        event = Event(trial.ordering, sign * threshold, self.favours)
        seen = (float(each[at]) for each in (promise, self.estimate, self.share, self.promise))
        return Choice(event, *seen)


def _sorted(trial: Trial, favours: str) -> tuple[Array, Array]:
    """The scores of the favoured world and of the other one, high where they favour it."""
    first, other = trial.sorted_scores
    return (first, other) if favours == WITH else (-other[::-1], -first[::-1])


def _levels(trial: Trial, favours: str) -> Array:
    """The levels that are tried."""
    levels = trial.levels if favours == WITH else -trial.levels[::-1]
    if len(levels) > 4000:
        # Every level in the tail, where single draws matter, then evenly spaced ones.
        levels = np.concatenate([levels[:-2000:-1], levels[-2000 :: -(len(levels) // 2000)]])
    return levels


def choose(
    trials: Sequence[Trial], draws: int, error: float, delta: float = 0.0
) -> dict[str, Choice]:
    """For each direction the event whose count on `draws` draws promises the largest bound.

    First what is sure of any event. The best of these promises then says how large leaks are here,
    and what is likely, rather than sure, may be a rarer event that shows more.
    """
    result: dict[str, Choice] = {}
    for favours in (WITH, WITHOUT):
        families = [Nested.of(trial, favours, draws, error, delta) for trial in trials]
        best, promise = _best(families, [family.promise for family in families])
        scale = float(promise.max())
        if scale > 0:
            best, promise = _best(families, [family.likely(scale) for family in families])
        result[favours] = best.choice(promise)
    return result


def _best(families: Sequence[Nested], promises: Sequence[Array]) -> tuple[Nested, Array]:
    """Whose largest promise is the largest, the plainer first."""
    best, most = families[0], promises[0]
    for family, promise in zip(families[1:], promises[1:], strict=True):
        if promise.max() > most.max() + PLAIN * abs(most.max()):
            best, most = family, promise
    return best, most


def _level(scores: Array, share: float) -> float:
    """The score that as near as possible to this share of all scores reach, by their ratio: half of
    a frequent output is to become all of it, and not some rare one beside it."""
    levels, counts = np.unique(scores, return_counts=True)
    reached = counts[::-1].cumsum()[::-1] / len(scores)
    return float(levels[np.argmin(np.abs(np.log(reached) - math.log(max(share, 1e-12))))])


def _rare(hits: Array, counts: Array, doubt: float) -> Array:
    """ln of the ratio that two small counts still speak for, `doubt` standard errors away.

    Square roots of counts have a spread of 1/2: the largest κ with
    2(√hits − √(κ counts)) ≥ doubt √(1 + κ), a quadratic equation for √κ.
    """
    a, b = 2 * np.sqrt(hits), 2 * np.sqrt(counts)
    room = np.maximum(a**2 - doubt**2, 0.0)
    root = room / (a * b + doubt * np.sqrt(room + b**2))
    return np.where(root > 0, 2 * np.log(np.maximum(root, 1e-12)), -np.inf)
