"""Scores of members and non-members of a model's training data.

Contract: scores are independent draws, members' from one distribution and non-members' from another
(higher: more likely a member). Nothing is chosen: the events are fixed ranks of the other side's
scores, from the median to the most extreme one, and each takes an equal part of the error
(`ranks`). So bounds reach low false positive rates, ties never help, and no score is spent on a
search. True positive rates at a false positive rate rest on ranks too (order statistics; Clopper
and Pearson).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from whosin.audit import confidence as exact
from whosin.audit.counting import log_ratio
from whosin.audit.events import WITH, WITHOUT, Event
from whosin.audit.orderings import ByValue
from whosin.audit.ranks import RankTest, ranks
from whosin.audit.result import AuditBounds, EventCount
from whosin.audit.terms import read_delta, read_seed
from whosin.errors import InvalidInput
from whosin.exact import Array, ranged

FEWEST = 20
POINTS = 24
"""Points of the drawn curve, all of whose bounds hold together."""


@dataclass(frozen=True)
class Rate:
    """An attack of a false positive rate of at most `fpr`, and its true positive rate.

    `low` and the bound on the false positive rate hold together at the confidence, and so do `high`
    and that bound; `tpr` is what was seen.
    """

    fpr: float
    tpr: float
    low: float
    high: float
    threshold: float


@dataclass(frozen=True)
class Scores(AuditBounds):
    """The result of `scores`."""

    counts: tuple[EventCount, ...]
    members: Array = field(repr=False)
    non_members: Array = field(repr=False)

    @property
    def blind(self) -> bool:
        """Whether all scores were the same, so that nothing could be learnt."""
        return len(np.unique(np.concatenate([self.members, self.non_members]))) == 1

    def tpr_at(self, fpr: object) -> Rate:
        """The true positive rate of an attack whose false positive rate is surely at most `fpr`.

        Raises:
            InvalidInput: there are too few non-members to be sure of a rate that low.
        """
        most = ranged(fpr, "fpr", "strictly between 0 and 1")
        error = exact.read_confidence(self.confidence)[1] / 2
        allowed = _false_positives(len(self.non_members), float(most), error)
        if allowed < 0:
            needed = math.ceil(math.log(error) / math.log1p(-float(most)))
            accepted = f"at least {needed:,} to be sure of a false positive rate of {float(most):g}"
            raise InvalidInput("non_members", accepted, f"{len(self.non_members):,}")
        threshold = float(np.sort(self.non_members)[::-1][allowed])
        hits, count = int((self.members > threshold).sum()), len(self.members)
        low, high = exact.lower(hits, count, error), exact.upper(hits, count, error)
        return Rate(float(most), hits / count, low, high, threshold)

    def curve(self) -> list[Rate]:
        """Rates from the lowest false positive rate that can be shown to 1; all hold together.

        Each point takes an equal part of the error.
        """
        error = exact.read_confidence(self.confidence)[1] / POINTS / 3  # three bounds a point
        count, total = len(self.non_members), len(self.members)
        ranked = np.sort(self.non_members)[::-1]
        ranks = np.unique(np.geomspace(1, count, POINTS).astype(int)) - 1
        result = []
        for rank in ranks.tolist():
            # At most `rank` non-members are above the score of that rank.
            fpr = exact.upper(rank, count, error)
            hits = int((self.members > ranked[rank]).sum())
            low, high = exact.lower(hits, total, error), exact.upper(hits, total, error)
            result.append(Rate(fpr, hits / total, low, high, float(ranked[rank])))
        return result

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        rates: dict[str, object] = {}
        for fpr in (0.1, 0.01, 0.001):
            try:
                rates[str(fpr)] = vars(self.tpr_at(fpr))
            except InvalidInput:
                rates[str(fpr)] = None
        return {
            **super().to_dict(),
            "members": len(self.members),
            "non_members": len(self.non_members),
            "counts": [count.to_dict() for count in self.counts],
            "tpr_at_fpr": rates,
            "blind": self.blind,
        }


def _false_positives(count: int, fpr: float, error: float) -> int:
    """The most false positives among `count` that still prove a rate of at most `fpr`; −1: none."""
    from scipy.stats import binom

    allowed = int(binom.ppf(error, count, fpr)) + 1
    while allowed >= 0 and exact.upper(allowed, count, error) > fpr:
        allowed -= 1
    return min(allowed, count - 1)


def scores(
    members: object,
    non_members: object,
    confidence: object = 0.95,
    *,
    delta: object = 0,
    seed: int | None = None,
) -> Scores:
    """Bound from below what an attack's scores tell about membership.

    Args:
        members, non_members: scores of people in the training data and of others like them; lists,
            arrays, or mappings from a person to a score (then nobody may be in both).
        delta: granted to the mechanism.
        seed: has no effect, because nothing is drawn; for scripts that name it.
    """
    read_seed(seed)
    (level, _error), granted = exact.read_confidence(confidence), read_delta(delta)
    _check_people(members, non_members)
    inside, outside = read_scores(members, "members"), read_scores(non_members, "non_members")
    for name, values in (("members", inside), ("non_members", outside)):
        if len(values) < FEWEST:
            accepted = f"at least {FEWEST} scores (some 1,000 show most leaks)"
            raise InvalidInput(name, accepted, len(values))
    _check_values(inside, outside)
    return compare(inside, outside, level, granted)


def compare(inside: Array, outside: Array, level: float, granted: float) -> Scores:
    """What scores of members and of others show, at a confidence and granting a δ."""
    error = exact.read_confidence(level)[1]
    share = error / (len(ranks(len(outside))) + len(ranks(len(inside))))
    counts = [
        max(_counts(inside, outside, favours, share, granted), key=lambda count: count.log_ratio)
        for favours in (WITH, WITHOUT)
    ]
    counts.sort(key=lambda count: -count.log_ratio)
    if counts[1].event.favours == WITHOUT:
        del counts[1]  # the event for ε is the one for γ
    return Scores(
        epsilon=counts[0].log_ratio,
        log_ratio=log_ratio(counts),
        confidence=level,
        delta=granted,
        counts=tuple(counts),
        members=inside,
        non_members=outside,
    )


def _counts(
    inside: Array, outside: Array, favours: str, error: float, delta: float
) -> list[EventCount]:
    """What the members above each rank of the others show, or the others below each of theirs."""
    sign = 1 if favours == WITH else -1
    favoured, other = (sign * inside, sign * outside)[::sign]
    ranked, result = np.sort(other)[::-1], []
    for rank in ranks(len(other)):
        beyond = float(ranked[rank])
        hits = int((favoured > beyond).sum()), int((other > beyond).sum())
        bound = RankTest(hits[0], len(favoured), rank, len(other), delta).bound(error)
        event = Event(ByValue(), sign * math.nextafter(beyond, math.inf), favours)
        with_hits, without_hits = hits[::sign]
        result.append(EventCount(event, with_hits, without_hits, len(inside), len(outside), bound))
    return result


def most_scores(
    members: int, non_members: int, confidence: object = 0.95, delta: object = 0
) -> float:
    """The largest ε that this many scores could show: where all members are above all others."""
    inside = np.arange(members) + float(non_members) + 1
    return scores(inside, np.arange(non_members) * 1.0, confidence, delta=delta).epsilon


def read_scores(values: object, name: str) -> Array:
    """A list of numbers (or the values of a mapping), of which some may be infinite."""
    if hasattr(values, "keys") and hasattr(values, "values") and callable(values.values):
        values = list(values.values())
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(name, "a list of numbers", type(values).__name__) from None
    if array.ndim != 1:
        raise InvalidInput(name, "a list of numbers", f"an array of shape {array.shape}")
    if np.isnan(array).any():
        raise InvalidInput(name, "numbers (infinite ones count as the surest)", "NaN")
    return array


def _check_people(members: object, non_members: object) -> None:
    keys = [set(each.keys()) if hasattr(each, "keys") else set() for each in (members, non_members)]
    shared = len(keys[0] & keys[1])
    if shared:
        accepted = "other people than members"
        raise InvalidInput("non_members", accepted, f"{shared} who are in both")


def _check_values(members: Array, non_members: Array) -> None:
    """Refuse lists that share too many scores: the same people in both."""
    one, two = np.unique(members), np.unique(non_members)
    smooth = len(one) > 0.9 * len(members) and len(two) > 0.9 * len(non_members)
    shared = len(np.intersect1d(one, two))
    if smooth and shared > 0.1 * min(len(one), len(two)):
        accepted = "other people than members"
        raise InvalidInput("non_members", accepted, f"{shared} scores that are in both lists")
