"""Search for events: which distinguishers are tried, and which of their events are counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from whosin.audit import classifiers
from whosin.audit.bounds import RARE_SHARE, AuditTerms, log_interval_ratio
from whosin.audit.classifiers import ByClassifier, HalfTables, OutputColumns, is_among_the_best
from whosin.audit.distinguishers import (
    BIN_COUNT,
    ByBin,
    ByBits,
    ByCell,
    ByFrequency,
    ByTellingPart,
    ByToken,
    ByValue,
    Distinguisher,
    TokenCounts,
    has_bits,
)
from whosin.audit.sampling import (
    FORMS,
    NUMBERS,
    VECTORS,
    Outputs,
    align_kinds,
    count_draws,
    count_repeats,
    drop_time,
    join_outputs,
    one_thread,
    read_outputs,
)
from whosin.exact import Array

# What is tried on the outputs of a search: orderings, with scores for draws they have not seen.
# Everything here happens on samples that are not counted afterwards. `DISTINGUISHER_STRATEGIES` are
# the kinds of orderings, the plainest first: each says by itself to which outputs it applies. What
# is cheap to learn is learnt three times: each half of the samples judges what the other half
# learnt, and both together order the outputs of the final event. Places are chosen on the first
# half alone, and single places and the bits of floats at many places are judged by the second.


FEW_OUTPUTS = 64
"""Up to this many different outputs a table of counts leaves nothing for a classifier to find."""
SENTINEL_SHARE, MIN_SENTINEL_DRAWS = 0.0005, 10
"""An output in this share of all draws, and so often, is one by itself among floats of which hardly
any comes again."""
Pair = tuple[Outputs, Outputs]
"""Outputs with and without."""
ORDER_SIGNS = (1, -1)
"""For "with", and for "without"."""
Learn = Callable[[Outputs, Outputs], Distinguisher]


@dataclass(frozen=True)
class DistinguisherScores:
    """An ordering with scores that it gave to draws it was not learnt on, on both inputs.

    `matched` are the scores by which a share of the draws is turned into a threshold: of the final
    ordering, where the distinguisher's own scores came from orderings learnt on one half each.
    `smooth` orderings put draws in the tail for a reason, not by chance. Without `float_bits`
    outputs are ordered apart from these.
    """

    ordering: Distinguisher
    with_scores: Array
    without_scores: Array
    matched: Array | None = None
    smooth: bool = False
    float_bits: bool = True

    @cached_property
    def sorted_scores(self) -> tuple[Array, Array]:
        return np.sort(self.with_scores), np.sort(self.without_scores)

    @cached_property
    def levels(self) -> Array:
        """The different scores of both inputs, the least first."""
        levels = np.concatenate(self.sorted_scores)
        levels.sort(kind="stable")  # which merges what is sorted already
        return np.asarray(levels[np.append(True, levels[1:] != levels[:-1])])


@dataclass(frozen=True)
class SampleHalves:
    """Two halves of the samples that are spent on the search; orderings are learnt where all
    outputs are of one kind (`of`)."""

    first: Pair
    second: Pair
    float_bits: bool = True

    @classmethod
    def of(cls, first: Pair, second: Pair, *, float_bits: bool = True) -> SampleHalves:
        """The halves, as one kind; apart from the bits of floats, where these do not count."""
        given = [*first, *second]
        parts = align_kinds(given if float_bits else [each.without_float_bits() for each in given])
        if parts[0].kind == FORMS:
            for part in parts:
                _ = part.descriptions  # once, for all that follows
        return cls((parts[0], parts[1]), (parts[2], parts[3]), float_bits)

    @property
    def draws(self) -> int:
        return len(self.first[0]) + len(self.second[0])

    @property
    def parts(self) -> list[Outputs]:
        """The outputs alone, without the time of timed calls."""
        return [drop_time(each) for each in (*self.first, *self.second)]

    def join(self, fresh: SampleHalves) -> SampleHalves:
        first, second = (
            (join_outputs([old[0], new[0]]), join_outputs([old[1], new[1]]))
            for old, new in ((self.first, fresh.first), (self.second, fresh.second))
        )
        return SampleHalves(first, second)

    def choose(self, trials: int, terms: AuditTerms) -> Choices:
        """The best events in each direction, for a count on `trials` draws."""
        tried = score_distinguishers(self.first, self.second, float_bits=terms.float_bits)
        return choose_events(tried, trials, terms.error, terms.delta)

    @cached_property
    def both(self) -> Pair:
        return join_outputs([self.first[0], self.second[0]]), join_outputs(
            [self.first[1], self.second[1]]
        )

    @property
    def kind(self) -> str:
        return self.first[0].kind

    @cached_property
    def repeats(self) -> Array:
        return count_repeats(self.both)

    @property
    def distinct(self) -> int:
        return len(self.repeats)

    @property
    def comes_again(self) -> bool:
        """Whether whole outputs are worth counting: most come again, or one does so often."""
        draws = len(self.both[0]) + len(self.both[1])
        often = int(self.repeats.max()) >= max(MIN_SENTINEL_DRAWS, SENTINEL_SHARE * draws)
        return self.kind == FORMS or self.distinct <= draws / 2 or often

    @cached_property
    def columns(self) -> OutputColumns:
        """The parts of outputs that differ most in the first half."""
        return OutputColumns.of(*self.first)

    @property
    def pairs(self) -> tuple[Pair, Pair, Pair]:
        return self.first, self.second, self.both

    def cross_learn(self, learn: Learn) -> DistinguisherScores:
        """Each half judged by what the other half learnt."""
        return self.cross_score(*(learn(*pair) for pair in self.pairs))

    def cross_learn_signs(
        self, learn: Callable[[Outputs, Outputs], ByTellingPart]
    ) -> Iterator[DistinguisherScores]:
        """The same for what speaks for "with", and for what speaks for "without"."""
        learnt = [learn(*pair) for pair in self.pairs]
        for sign in ORDER_SIGNS:
            yield self.cross_score(*(replace(each, sign=sign) for each in learnt))

    def cross_score(
        self, one: Distinguisher, two: Distinguisher, final: Distinguisher
    ) -> DistinguisherScores:
        """Each half judged by the ordering of the other one."""
        scores = [
            np.concatenate([one.score(self.second[side]), two.score(self.first[side])])
            for side in (0, 1)
        ]
        matched = np.concatenate([final.score(each) for each in self.both])
        return DistinguisherScores(final, scores[0], scores[1], matched)

    def score_second_half(
        self, ordering: Distinguisher, *, smooth: bool = False
    ) -> DistinguisherScores:
        """The second half judged by what the first half learnt."""
        scores = ordering.score(self.second[0]), ordering.score(self.second[1])
        return DistinguisherScores(ordering, *scores, smooth=smooth)


def try_values(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """Numbers as they are; the least first, too, where a table of counts would be long."""
    if halves.kind == NUMBERS and halves.distinct > 2:
        for sign in ORDER_SIGNS if halves.distinct > FEW_OUTPUTS else ORDER_SIGNS[:1]:
            value = ByValue(sign=sign)
            one, two = (value.score(each) for each in halves.both)
            yield DistinguisherScores(value, one, two, smooth=True)


def try_frequencies(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    if halves.comes_again:
        yield halves.cross_learn(ByFrequency.learn)


def try_bins(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    if halves.kind == NUMBERS and halves.distinct > BIN_COUNT:
        yield halves.cross_learn(ByBin.learn)


def _has_parts(halves: SampleHalves) -> bool:
    return halves.kind != NUMBERS and (halves.distinct > FEW_OUTPUTS or not halves.comes_again)


def try_tokens(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """What an output contains or lacks."""
    if _has_parts(halves) and halves.kind == FORMS:
        counted = [TokenCounts.of(*pair) for pair in halves.pairs]
        for sign in ORDER_SIGNS:
            yield halves.cross_score(*(ByToken.learn(each, sign) for each in counted))
    elif _has_parts(halves):
        yield from halves.cross_learn_signs(ByCell.learn)


def try_parts(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """The number that differs most; where a column of vectors does so in both halves, both judge
    it."""
    if _has_parts(halves) and halves.columns.places:
        of, columns = halves.first[0], halves.columns
        agreed = of.kind == VECTORS and is_among_the_best(columns.places[0], *halves.second)
        for sign in ORDER_SIGNS:
            part = ByValue(of.kind, of.width, sign, columns.places[0], columns.medians[0])
            if agreed:
                one, two = (part.score(each) for each in halves.both)
                yield DistinguisherScores(part, one, two, smooth=True)
            else:
                yield halves.score_second_half(part, smooth=True)


def try_classifiers(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """What classifiers learn from all parts together, the small net only where it tells more."""
    if halves.kind != NUMBERS and halves.distinct > FEW_OUTPUTS and halves.columns.count:
        cut = len(halves.first[0]), len(halves.first[1])
        tables = HalfTables.of(*halves.both, halves.columns)
        halved = tables.split(cut)
        second = []
        for learn in classifiers.CLASSIFIER_LEARNERS:
            learnt = learn(*halved)
            if learnt is not None:
                scored = _cross_classify(learnt, tables.matrices, cut)
                second.append((scored.with_scores[cut[0] :], scored.without_scores[cut[1] :]))
                yield scored
        if classifiers.net_pays(*halved, second):
            yield _cross_classify(classifiers.learn_net(*halved), tables.matrices, cut)


def _cross_classify(
    ordering: ByClassifier, tables: tuple[Array, Array], cut: tuple[int, int]
) -> DistinguisherScores:
    """Each half judged by what the other half taught a classifier."""
    scores = [ordering.score_halves(table) for table in tables]
    one, two = (
        np.concatenate([each[:here, 1], each[here:, 0]])
        for each, here in zip(scores, cut, strict=True)
    )
    matched = np.concatenate([each[:, 2] for each in scores])
    return DistinguisherScores(ordering, one, two, matched, smooth=True)


def try_float_bits(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    if halves.distinct > FEW_OUTPUTS and has_bits(halves.both[0], floats=halves.float_bits):
        if halves.kind == NUMBERS:
            yield from halves.cross_learn_signs(ByBits.learn)
        else:  # judged by as many draws as other parts are
            once = ByBits.learn(*halves.first)
            for sign in ORDER_SIGNS:
                yield halves.score_second_half(replace(once, sign=sign))


DISTINGUISHER_STRATEGIES = [
    try_values,
    try_frequencies,
    try_bins,
    try_tokens,
    try_parts,
    try_classifiers,
    try_float_bits,
]


def score_distinguishers(
    first: Pair, second: Pair, *, float_bits: bool = True
) -> list[DistinguisherScores]:
    """What is worth trying for outputs of this kind, the plainest first; at least one."""
    halves = SampleHalves.of(first, second, float_bits=float_bits)
    with one_thread():
        tried = [scored for strategy in DISTINGUISHER_STRATEGIES for scored in strategy(halves)]
    return tried if float_bits else [replace(each, float_bits=False) for each in tried]


# Events, and the choice of the one to count. Everything here happens on samples that are not
# counted afterwards, so approximations are allowed: they cost strength, never validity.


ROUGH_EVENT_COUNT, SMOOTH_EVENT_COUNT = 2000, 200
"""More than a few nested events count as this many when the search judges its own estimates; fewer
where values or a classifier order them, and their tails are no accident."""
SCARCE_COUNT = 12
"""Below this many counts their logarithm is too rough to judge an event by."""
MODEST_LOG_RATIO = math.log(2)
"""What is promised at most where counts are scarce: too hopeful a slope costs the whole bound."""
FAR_DEVIATIONS = 2.0
"""An estimate that is this much above its promise comes from an event that the other input hardly
has."""
HOPED_DEVIATIONS, FAINT_PROMISE = 1.0, 1e-3
"""Where nothing is sure, an event of a smooth ordering is worth trying that is this many standard
errors above 0; it promises next to nothing."""
LIKELY_DEVIATIONS, MIN_AMPLE_DRAWS = 1.0, 200
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
        levels = scored.levels if favours == WITH else -scored.levels[::-1]
        if len(levels) > 4000:
            # Every level in the tail, where single draws matter, then evenly spaced ones.
            levels = np.concatenate([levels[:-2000:-1], levels[-2000 :: -(len(levels) // 2000)]])
        # The more events there are to choose from, the more the best of them flatters itself.
        many = ROUGH_EVENT_COUNT if not scored.smooth else SMOOTH_EVENT_COUNT
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
        most = caution if few else max(caution, math.sqrt(2 * math.log(1 + ROUGH_EVENT_COUNT)))
        told = _rare_log_ratio(excess * size, q * size, math.sqrt(z * z * size / draws + most**2))
        promise = np.where(
            counts < SCARCE_COUNT, np.maximum(promise, np.minimum(told, MODEST_LOG_RATIO)), promise
        )
        # With a handful of hits to come no test says anything.
        promise = np.where(p * draws >= 3, promise, -np.inf)
        ample = (counts >= MIN_AMPLE_DRAWS) & (hits >= MIN_AMPLE_DRAWS)
        doubt, loss = spread / math.sqrt(size), spread * z / math.sqrt(draws)
        if (
            promise.max() <= 0 and many < ROUGH_EVENT_COUNT
        ):  # nothing is sure: the likeliest, if it is one
            hope = estimate - np.hypot(loss, HOPED_DEVIATIONS * doubt)
            promise = np.maximum(
                promise, FAINT_PROMISE * np.where(counts < SCARCE_COUNT, -np.inf, hope)
            )
        rare = _promise_rare_events(hits, counts, (len(scores), len(others)), draws, error, delta)
        return cls(scored, favours, levels, promise, estimate, doubt, loss, p, ample, rare)

    def likely(self, scale: float) -> Array:
        """What counting is likely to show, where leaks are about as large as `scale`; no less than
        what is sure, and no more where chance orders the tail.

        An event that was rarely seen is drawn towards the scale (the posterior mean of a normal
        variable with mean and standard deviation `scale`), and `LIKELY_DEVIATIONS` standard errors
        are left.
        """
        if not self.scored.smooth:
            return self.promise
        weight = scale**2 / (scale**2 + self.doubt**2)
        mean = scale + weight * (self.estimate - scale)
        hope = mean - LIKELY_DEVIATIONS * self.doubt * np.sqrt(weight) - self.loss
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
        hits * scales[0], draws, (counts + 0.5) * scales[1], draws, error * RARE_SHARE, delta
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


WORTHWHILE_FACTOR = 1.1
"""How many times more the direction "without" must promise to be worth half of the error."""


def pick_events(chosen: Choices) -> list[EventChoice]:
    favoured, other = chosen.usual[WITH], chosen.usual[WITHOUT]
    turned = other.promise > max(favoured.promise * WORTHWHILE_FACTOR, 0)
    usual = [other, favoured] if turned else [favoured]
    rare = [chosen.rare[WITH]] if WITH in chosen.rare else []
    known = max(each.promise for each in (favoured, other, *rare))
    if WITHOUT in chosen.rare and chosen.rare[WITHOUT].promise > known * WORTHWHILE_FACTOR:
        rare.append(chosen.rare[WITHOUT])
    return usual + rare
