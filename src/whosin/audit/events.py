"""Events to count: how they are chosen, what their counts show, and the bounds of an audit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from whosin import beliefs
from whosin.audit.confidence import RatioTest, log_interval_ratio, log_ratio_bound
from whosin.audit.distinguisher_search import FEW_OUTPUTS, DistinguisherScores
from whosin.audit.distinguishers import Distinguisher
from whosin.audit.outputs import Outputs, count_draws, read_outputs
from whosin.audit.sampling import read_epsilon
from whosin.exact import Array, exact_fraction, exp_up, probability, round_up

# Events, and the choice of the one to count. Everything here happens on samples that are not
# counted afterwards, so approximations are allowed: they cost strength, never validity.


MANY, SOME = 2000, 200
"""More than a few nested events count as this many when the search judges its own estimates; fewer
where values or a classifier order them, and their tails are no accident."""
SCARCE_COUNT = 12
"""Below this many counts their logarithm is too rough to judge an event by."""
MODEST_LOG_RATIO = math.log(2)
"""What is promised at most where counts are scarce: too hopeful a slope costs the whole bound."""
FAR_DEVIATIONS = 2.0
"""An estimate that is this much above its promise comes from an event that the other input hardly
has."""
HOPE, FAINT = 1.0, 1e-3
"""Where nothing is sure, an event of a smooth ordering is worth trying that is this many standard
errors above 0; it promises next to nothing."""
DARING, AMPLE = 1.0, 200
"""How many standard errors below its likely value an event is taken for, and how often each input
must have it: the best of many rarer ones is an accident."""
CERTAIN_SHARE = 0.9
"""An event that happens this often on its own input shows as much with any κ."""
PLAIN_MARGIN = 0.05
"""What a less plain event must promise more, as a part, to be chosen."""
SEEN_ERROR = 0.01
"""An event that the other input hardly has is believed where two exact intervals, each with this
error, still tell the search's own counts apart: 13 against none."""
RARE_EVENT_DEPTH = 0.85
"""Of the hits of such an event: as far from all that the other input has shown as this part of them
is, because just beyond its last draw there will be more of its draws.
"""
RARE_SHARE = 0.5
"""The part of the error that pays for events which the other input hardly has, where there are."""
WITH, WITHOUT = "with", "without"


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs that is more likely on one input than on the other: a witness.

    `contains` tells for any outputs of the mechanism which of them are in it, so that anyone can
    draw afresh and count again. Without `float_bits`, −0.0 is 0.0 and every NaN the same.
    """

    ordering: Distinguisher
    threshold: float
    favours: str
    float_bits: bool = True

    @property
    def above(self) -> bool:
        return self.favours == WITH

    def contains(self, outputs: object) -> Array:
        """Which outputs are in the event."""
        if not isinstance(outputs, Outputs):
            outputs = read_outputs(outputs, count_draws(outputs))
        if not self.float_bits:
            outputs = outputs.without_float_bits()
        scores = self.ordering.score(outputs)
        return np.asarray(scores >= self.threshold if self.above else scores <= self.threshold)

    def data(self) -> dict[str, object]:
        """The event for programs."""
        return self.ordering.data(self.threshold, self.above)

    def __str__(self) -> str:
        return self.ordering.about(self.threshold, self.above)


@dataclass(frozen=True)
class EventChoice:
    """An event with what the search expects of it.

    Attributes:
        promise: the bound on ln r that counting is expected to show.
        estimate: ln r as seen by the search.
        share: how often the favoured input has it.
        sure: what counting shows almost surely, no more than the promise.
        slopes: κ for the exact test, by the promise: too small a κ costs little, one beyond the
            true ratio everything. Where the other input hardly has the event, a small κ costs more
            than one in e: then a second one, near the estimate, shares the error.
        rare: what two exact intervals are expected to show, where the other input hardly has the
            event; `exclusive` where it is counted by them, and not by κ.
    """

    event: Event
    promise: float
    estimate: float
    share: float = 0.0
    sure: float = -math.inf
    rare: float = -math.inf
    exclusive: bool = False

    @property
    def slopes(self) -> tuple[float, ...]:
        logs = [max(self.promise, 0.0)]
        if self.estimate - self.promise > FAR_DEVIATIONS and self.share < CERTAIN_SHARE:
            logs.append(self.estimate - 1)
        return tuple(math.exp(min(log, 30.0)) for log in logs)


@dataclass(frozen=True)
class Choices:
    """The events that a search would count.

    Attributes:
        usual: for each direction the event that promises most.
        rare: for a direction, where there is one, an event that the other input hardly has and that
            is expected to show more than the usual one: a sentinel, an exception, a tail that
            was cut off. It has a share of the error of its own.
    """

    usual: dict[str, EventChoice]
    rare: dict[str, EventChoice]

    @property
    def best(self) -> EventChoice:
        """The usual event that promises most."""
        return max(self.usual.values(), key=lambda choice: choice.promise)

    @property
    def promise(self) -> float:
        """The largest bound that counting is expected to show."""
        return max(each.promise for each in (*self.usual.values(), *self.rare.values()))

    @property
    def estimate(self) -> float:
        """The largest ln r that the search has seen."""
        return max(each.estimate for each in (*self.usual.values(), *self.rare.values()))


@dataclass(frozen=True, eq=False)
class NestedEvents:
    """The events {score ≥ t} of one ordering in one direction, a level each.

    Attributes:
        promise: what counting shows almost surely, for all that the search has seen.
        estimate: ln r as seen by the search; `doubt` is its standard error, and `loss` how far the
            bound of a count will be below the true ln r.
        share: how often the favoured input has the event; `ample` where both have it often.
        rare: what two exact intervals are expected to show, −∞ where the other input has the event
            more than a few times, or the search has not seen enough to believe in it.
    """

    scored: DistinguisherScores
    favours: str
    levels: Array
    promise: Array
    estimate: Array
    doubt: Array
    loss: Array
    share: Array
    ample: Array
    rare: Array

    @classmethod
    def of(
        cls, scored: DistinguisherScores, favours: str, draws: int, error: float, delta: float
    ) -> NestedEvents:
        """Every level, judged by the scores of a distinguisher."""
        from scipy.special import ndtri

        scores, others = _sort_scores(scored, favours)
        levels = _tried_levels(scored, favours)
        # The more events there are to choose from, the more the best of them flatters itself.
        many = MANY if not scored.smooth else SOME
        # A classifier with few scores was one of many that could have been learnt.
        few = len(levels) <= FEW_OUTPUTS and not (scored.smooth and scored.matched is not None)
        caution = math.sqrt(2 * math.log(1 + (len(levels) if few else many)))
        hits = len(scores) - np.searchsorted(scores, levels, side="left")
        counts = len(others) - np.searchsorted(others, levels, side="left")
        # Half an imagined draw on each input keeps empty counts finite.
        p, q = (hits + 0.5) / (len(scores) + 1), (counts + 0.5) / (len(others) + 1)
        excess = np.maximum(p - delta, 1e-12)
        estimate = np.log(excess) - np.log(q)
        spread = np.sqrt((1 - p) * p / excess**2 + (1 - q) / q)
        z, size = -float(ndtri(error)), len(scores)
        promise = estimate - spread * math.sqrt(z * z / draws + caution**2 / size)
        # A tail of single draws is an accident for smooth orderings, too.
        most = caution if few else max(caution, math.sqrt(2 * math.log(1 + MANY)))
        told = _rare_log_ratio(excess * size, q * size, math.sqrt(z * z * size / draws + most**2))
        promise = np.where(
            counts < SCARCE_COUNT, np.maximum(promise, np.minimum(told, MODEST_LOG_RATIO)), promise
        )
        # With a handful of hits to come no test says anything.
        promise = np.where(p * draws >= 3, promise, -np.inf)
        ample = (counts >= AMPLE) & (hits >= AMPLE)
        doubt, loss = spread / math.sqrt(size), spread * z / math.sqrt(draws)
        if promise.max() <= 0 and many < MANY:  # nothing is sure: the likeliest, if it is one
            hope = estimate - np.hypot(loss, HOPE * doubt)
            promise = np.maximum(promise, FAINT * np.where(counts < SCARCE_COUNT, -np.inf, hope))
        rare = _promise_rare_events(hits, counts, (len(scores), len(others)), draws, error, delta)
        return cls(scored, favours, levels, promise, estimate, doubt, loss, p, ample, rare)

    def likely(self, scale: float) -> Array:
        """What counting is likely to show, where leaks are about as large as `scale`; no less than
        what is sure, and no more where chance orders the tail.

        An event that was rarely seen is drawn towards the scale (the posterior mean of a normal
        variable with mean and standard deviation `scale`), and `DARING` standard errors are left.
        """
        if not self.scored.smooth:
            return self.promise
        weight = scale**2 / (scale**2 + self.doubt**2)
        mean = scale + weight * (self.estimate - scale)
        hope = mean - DARING * self.doubt * np.sqrt(weight) - self.loss
        return np.maximum(self.promise, np.where(self.ample, hope, -np.inf))

    def deep(self, promise: Array) -> Array:
        """The largest promise, of the rarest event that keeps `RARE_EVENT_DEPTH` of the hits and
        promises.
        """
        at = int(promise.argmax())
        kept = np.flatnonzero(
            (self.share >= RARE_EVENT_DEPTH * self.share[at]) & np.isfinite(promise)
        )
        result = np.full(len(promise), -np.inf)
        result[kept[self.share[kept].argmin()]] = promise[at]
        return result

    def choice(self, promise: Array) -> EventChoice:
        """The event that promises most."""
        at = int(promise.argmax())
        scored, sign = self.scored, 1 if self.favours == WITH else -1
        # As much of the favoured input, and as little of the other one as possible.
        threshold = float(self.levels[self.share == self.share[at]].max())
        if scored.matched is not None:
            scores, others = _sort_scores(scored, self.favours)
            reached = [len(part) - np.searchsorted(part, threshold) for part in (scores, others)]
            share = sum(reached) / (len(scores) + len(others))
            threshold = _level_at_share(sign * scored.matched, float(share))
        event = Event(scored.ordering, sign * threshold, self.favours, scored.float_bits)
        return EventChoice(
            event,
            promise=float(promise[at]),
            estimate=float(self.estimate[at]),
            share=float(self.share[at]),
            sure=float(self.promise[at]),
            rare=float(self.rare[at]),
        )


def _sort_scores(scored: DistinguisherScores, favours: str) -> tuple[Array, Array]:
    """The scores of the favoured input and of the other one, high where they favour it."""
    first, other = scored.sorted_scores
    return (first, other) if favours == WITH else (-other[::-1], -first[::-1])


def _tried_levels(scored: DistinguisherScores, favours: str) -> Array:
    """The levels that are tried."""
    levels = scored.levels if favours == WITH else -scored.levels[::-1]
    if len(levels) > 4000:
        # Every level in the tail, where single draws matter, then evenly spaced ones.
        levels = np.concatenate([levels[:-2000:-1], levels[-2000 :: -(len(levels) // 2000)]])
    return levels


def choose_events(
    candidates: Sequence[DistinguisherScores], draws: int, error: float, delta: float = 0.0
) -> Choices:
    """For each direction the event whose count on `draws` draws promises the largest bound.

    First what is sure of any event. The best of these promises then says how large leaks are here,
    and what is likely, rather than sure, may be a rarer event that shows more. Events that the
    other input hardly has are judged apart from these.
    """
    usual: dict[str, EventChoice] = {}
    rare: dict[str, EventChoice] = {}
    for favours in (WITH, WITHOUT):
        families = [NestedEvents.of(scored, favours, draws, error, delta) for scored in candidates]
        best, promise = _best_family(families, [family.promise for family in families])
        scale = float(promise.max())
        if scale > 0:
            best, promise = _best_family(families, [family.likely(scale) for family in families])
        usual[favours] = best.choice(promise)
        best, promise = _best_family(families, [family.rare for family in families])
        shown = max(usual[favours].promise, usual[favours].rare, 0.0)
        if promise.max() > shown * (1 + PLAIN_MARGIN):
            rare[favours] = replace(best.choice(best.deep(promise)), exclusive=True)
    return Choices(usual, rare)


def _best_family(
    families: Sequence[NestedEvents], promises: Sequence[Array]
) -> tuple[NestedEvents, Array]:
    """Whose largest promise is the largest, the plainer first."""
    best, most = families[0], promises[0]
    for family, promise in zip(families[1:], promises[1:], strict=True):
        least = most.max()
        if promise.max() > (least + PLAIN_MARGIN * abs(least) if np.isfinite(least) else least):
            best, most = family, promise
    return best, most


def _level_at_share(scores: Array, share: float) -> float:
    """The score that as near as possible to this share of all scores reach, by their ratio: half of
    a frequent output is to become all of it, and not some rare one beside it."""
    levels, counts = np.unique(scores, return_counts=True)
    reached = counts[::-1].cumsum()[::-1] / len(scores)
    return float(levels[np.argmin(np.abs(np.log(reached) - math.log(max(share, 1e-12))))])


def _promise_rare_events(
    hits: Array, counts: Array, sizes: tuple[int, int], draws: int, error: float, delta: float
) -> Array:
    """What two exact intervals are expected to show of events that the other input hardly has."""
    result = np.full(len(hits), -np.inf)
    scarce = np.flatnonzero((counts < SCARCE_COUNT) & (hits > counts))
    if not len(scarce):
        return result
    hits, counts, scales = hits[scarce], counts[scarce], [draws / size for size in sizes]
    seen = log_interval_ratio(hits, sizes[0], counts, sizes[1], 2 * SEEN_ERROR, delta, even=True)
    # Half an imagined draw: what was never seen is not impossible.
    expected = log_interval_ratio(
        hits * scales[0],
        draws,
        (counts + 0.5) * scales[1],
        draws,
        error * RARE_SHARE,
        delta,
    )
    result[scarce] = np.where(seen > 0, expected, -np.inf)
    return result


def _rare_log_ratio(hits: Array, counts: Array, doubt: float) -> Array:
    """ln of the ratio that two small counts still speak for, `doubt` standard errors away.

    Square roots of counts have a spread of 1/2: the largest κ with
    2(√hits − √(κ counts)) ≥ doubt √(1 + κ), a quadratic equation for √κ.
    """
    a, b = 2 * np.sqrt(hits), 2 * np.sqrt(counts)
    room = np.maximum(a**2 - doubt**2, 0.0)
    root = room / (a * b + doubt * np.sqrt(room + b**2))
    return np.where(root > 0, 2 * np.log(np.maximum(root, 1e-12)), -np.inf)


# What an audit shows: lower bounds, at a stated confidence, that hold all together. `epsilon`,
# `gamma`, `ratio` and every posterior of one result hold *simultaneously* with the stated
# confidence. They are lower bounds on what leaks, for the inputs that were tried: an audit can
# refute a claim of privacy, never confirm one.


@dataclass(frozen=True)
class AuditBounds:
    """Lower bounds on leakage.

    Attributes:
        epsilon: on ε, in nats: no smaller ε (with this δ) is true of the mechanism.
        log_ratio: on ln r, r = Pr[S|t]/Pr[S|¬t] of some event S: evidence that someone is *in*.
        delta: the δ that is granted to the mechanism.
        relation: which neighbours the bounds are about: "add-remove" where inclusion was random,
            "replace" where members are compared with others like them; None where two inputs were
            given, which are neighbours in whatever sense whoever gave them meant.
    """

    relation: ClassVar[str | None] = None
    epsilon: float
    log_ratio: float
    confidence: float
    delta: float = field(default=0.0, kw_only=True)

    @property
    def ratio(self) -> float:
        """The lower bound on r itself, rounded down."""
        return math.exp(self.log_ratio) * (1 - 1e-15) if self.log_ratio > 0 else 1.0

    @property
    def gamma(self) -> float:
        """The factor by which some adversary's belief grows at least (T1, T4): r itself."""
        return self.ratio

    def gamma_at(self, prior: object) -> float:
        """The γ that is violated at one prior belief (F4)."""
        return float(beliefs.gamma(self.ratio, float(probability(prior, "prior"))))

    def posterior(self, prior: object = 0.5) -> float:
        """How sure someone with this prior becomes at least, on seeing the event (F1)."""
        return float(beliefs.posterior(self.ratio, float(probability(prior, "prior"))))

    def refutes(self, epsilon: object) -> bool:
        """Whether the claim of ε-DP (with the δ of this audit) is refuted at the confidence."""
        return self.epsilon > read_epsilon(epsilon)

    def to_dict(self) -> dict[str, object]:
        """The bounds for programs."""
        bounds = {"epsilon": self.epsilon, "gamma": self.gamma, "posterior": self.posterior(0.5)}
        about = {"confidence": self.confidence, "delta": self.delta, "relation": self.relation}
        return {**bounds, **about}


@dataclass(frozen=True)
class EventCount:
    """How often an event happened on both inputs, in fresh draws, and the bound that this gives.

    Attributes:
        trials, others: draws with and without.
        log_ratio: the lower bound on ln of the ratio, favoured input over the other.
    """

    event: Event
    with_hits: int
    without_hits: int
    trials: int
    others: int
    log_ratio: float

    @property
    def estimate(self) -> float:
        """ln of the ratio of frequencies, favoured input over the other; not a bound."""
        hits, other = self.with_hits * self.others, self.without_hits * self.trials
        if self.event.favours == "without":
            hits, other = other, hits
        if hits == 0:
            return -math.inf if other else 0.0
        return math.log(hits / other) if other else math.inf

    def to_dict(self) -> dict[str, object]:
        """The count for programs."""
        numbers = ("with_hits", "without_hits", "trials", "others", "log_ratio", "estimate")
        about = {**self.event.data(), "favours": self.event.favours}
        return about | {key: getattr(self, key) for key in numbers}


@dataclass(frozen=True)
class Audit(AuditBounds):
    """The result of `two_worlds` and `search`.

    Attributes:
        counts: what was counted; the first one gives `epsilon` its event.
        samples: draws of each input, all stages together.
        notes: what one should know besides, such as that the mechanism has no randomness.
        blind: every output was the same; or every output was distinct, and none had a number or a
            part that comes again. Nothing could be learnt, whatever leaks.
        with_, without: the inputs.
        pattern: the name of the pair of inputs, where a search chose it.
        timing: the time of each call was a part of its output: the bounds are of both together.
        float_bits: the bits of floats counted; False: bounds are on what leaks apart from these.
    """

    counts: tuple[EventCount, ...]
    samples: int
    with_: object
    without: object
    notes: tuple[str, ...] = ()
    pattern: str | None = None
    blind: bool = False
    timing: bool = False
    float_bits: bool = True

    @property
    def event(self) -> Event:
        """The witness: an event whose probability differs by this much between the inputs."""
        return self.counts[0].event

    def could_refute(self, epsilon: object) -> bool:
        """Whether an event that all draws with and none without are in would refute this claim."""
        claim, count = read_epsilon(epsilon), self.counts[0]
        error, slope = 1 - self.confidence, math.exp(min(claim, 30.0))
        test = RatioTest(count.trials, count.trials, 0, count.others, error, slope, self.delta)
        return test.rejects(claim)

    def samples_to_refute(self, epsilon: object) -> int | None:
        """About how many samples would refute a claim, if the frequencies seen are the truth; None
        where they do not speak against it. A guess, for planning the next audit."""
        count = self.counts[0]
        seen = (count.with_hits, count.trials), (count.without_hits, count.others)
        spread = sum(1 / max(hits, 1) - 1 / trials for hits, trials in seen)
        margin = count.estimate - read_epsilon(epsilon)
        if margin <= math.sqrt(spread) or self.delta:  # within what chance alone does
            return None
        error = 1 - self.confidence
        needed = self.samples * spread * -2 * math.log(error) / min(margin, 50.0) ** 2
        return max(math.ceil(needed), self.samples)

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        return {
            **super().to_dict(),
            "samples": self.samples,
            "with": repr(self.with_),
            "without": repr(self.without),
            "pattern": self.pattern,
            "event": self.counts[0].to_dict(),
            "counts": [count.to_dict() for count in self.counts],
            "notes": list(self.notes),
            "blind": self.blind,
            "timing": self.timing,
            "float_bits": self.float_bits,
        }


def most_that_can_show(trials: int, error: float, delta: float = 0.0) -> float:
    """About the largest ε that this many counted draws of each input could ever show: all hits on
    one input and none on the other."""
    log = -math.log(error)
    return max(0.0, math.log(max(math.exp(-log / trials) - delta, 1e-300) * trials / log))


def trials_to_show(epsilon: float, error: float, delta: float = 0.0) -> int:
    """About how many counted draws of each input an event without misses needs to show ε."""
    ratio = round_up(exp_up(exact_fraction(min(epsilon, 60.0)))) + 1
    return math.ceil(ratio * -math.log(error) / (1 - delta)) + 1


# From chosen events to bounds: which events are counted, and what their counts show. The error is
# shared by the events that are counted, which are picked before any count. If the event that
# promises most favours the input *with* the person, all of the error is spent on it; otherwise half
# is, and half on the best event that favours "with", which alone speaks of γ and posteriors. Events
# that the other input hardly has, where the search has seen one, are counted besides, by an exact
# interval for each of the two probabilities, with `RARE_SHARE` of the error: the slope of a joint
# test would have to be guessed from counts that are next to nothing.


WORTHWHILE_FACTOR = 1.1
"""How many times more the direction "without" must promise to be worth half of the error."""


def pick_events(chosen: Choices) -> list[EventChoice]:
    """The events to count."""
    favoured, other = chosen.usual[WITH], chosen.usual[WITHOUT]
    usual = (
        [other, favoured]
        if other.promise > max(favoured.promise * WORTHWHILE_FACTOR, 0)
        else [favoured]
    )
    rare = [chosen.rare[WITH]] if WITH in chosen.rare else []
    known = max(each.promise for each in (favoured, other, *rare))
    if WITHOUT in chosen.rare and chosen.rare[WITHOUT].promise > known * WORTHWHILE_FACTOR:
        rare.append(chosen.rare[WITHOUT])
    return usual + rare


def judge_events(
    picked: Sequence[EventChoice],
    hits: Sequence[tuple[int, int]],
    trials: tuple[int, int],
    error: float,
    delta: float,
) -> tuple[EventCount, ...]:
    """What the hits of each event (with, without), in `trials` fresh draws of each input, show; the
    strongest first."""
    rare = sum(choice.exclusive for choice in picked)
    shares = {True: RARE_SHARE / max(rare, 1)}
    shares[False] = (1 - RARE_SHARE if rare else 1) / (len(picked) - rare)
    counts = []
    for choice, (first, second) in zip(picked, hits, strict=True):
        pairs = ((first, trials[0]), (second, trials[1]))
        favoured, other = pairs if choice.event.above else pairs[::-1]
        share = error * shares[choice.exclusive]
        if choice.exclusive:
            bound = log_ratio_bound(*favoured, *other, share, delta)
        else:
            each = share / len(choice.slopes)
            tests = (RatioTest(*favoured, *other, each, kappa, delta) for kappa in choice.slopes)
            bound = max(test.bound() for test in tests)
        counts.append(EventCount(choice.event, first, second, *trials, bound))
    return tuple(sorted(counts, key=lambda count: -count.log_ratio))


def log_ratio(counts: Sequence[EventCount]) -> float:
    """The bound on ln r: from events that favour "with" alone."""
    return max(count.log_ratio for count in counts if count.event.above)
