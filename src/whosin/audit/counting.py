"""From chosen events to bounds: which events are counted, and what their counts show.

Contract: the error is shared by the events that are counted, which are picked before any count. If
the event that promises most favours the world *with* the person, all of the error is spent on it;
otherwise half is, and half on the best event that favours "with", which alone speaks of γ and
posteriors.
"""

from __future__ import annotations

from collections.abc import Sequence

from whosin.audit.events import WITH, WITHOUT, Choice
from whosin.audit.ratio import RatioTest
from whosin.audit.result import EventCount

WORTH = 1.1
"""How many times more the direction "without" must promise to be worth half of the error."""


def pick(chosen: dict[str, Choice]) -> list[Choice]:
    """The events to count."""
    favoured, other = chosen[WITH], chosen[WITHOUT]
    return [other, favoured] if other.promise > max(favoured.promise * WORTH, 0) else [favoured]


def judge(
    picked: Sequence[Choice],
    hits: Sequence[tuple[int, int]],
    trials: tuple[int, int],
    error: float,
    delta: float,
) -> tuple[EventCount, ...]:
    """What the hits of each event (with, without), in `trials` fresh draws of each world, show; the
    strongest first."""
    counts = []
    for choice, (first, second) in zip(picked, hits, strict=True):
        pairs = ((first, trials[0]), (second, trials[1]))
        favoured, other = pairs if choice.event.above else pairs[::-1]
        share = error / len(picked) / len(choice.slopes)
        bound = max(
            RatioTest(*favoured, *other, share, slope, delta).bound() for slope in choice.slopes
        )
        counts.append(EventCount(choice.event, first, second, *trials, bound))
    return tuple(sorted(counts, key=lambda count: -count.log_ratio))


def log_ratio(counts: Sequence[EventCount]) -> float:
    """The bound on ln r: from events that favour "with" alone."""
    return max(count.log_ratio for count in counts if count.event.above)
