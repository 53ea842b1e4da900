"""Two worlds: how well can one tell from its output which of two inputs a mechanism had?

Contract: the event is chosen on one set of samples and counted on fresh ones, by the exact test of
`ratio`; the bounds of one result hold together at the stated confidence. If the event that promises
most favours the world *with* the person, all of the error is spent on it; otherwise half is, and
half on the best event that favours "with", which alone speaks of γ and posteriors (THEORY 10).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whosin.audit.confidence import read_confidence
from whosin.audit.events import WITH, WITHOUT, Choice, Pair, choose, trials_of
from whosin.audit.ratio import ratio_bound
from whosin.audit.result import Audit, Count, most_that_can_show, trials_to_show
from whosin.audit.sampling import Mechanism, World, check_fresh, chunks, is_constant, vectorised
from whosin.errors import InvalidInput
from whosin.exact import rational

SEARCH = 0.25
"""The part of the samples that looks for the event; the rest is counted."""
FEWEST = 40
"""Below so many samples no event can be both found and counted."""
WORTH = 1.1
"""The direction "without" must promise so many times more to be worth half of the error."""

Progress = Callable[[int], None]
"""Called with the number of draws of each world that were made since the last call."""


def two_worlds(
    mechanism: Mechanism,
    with_: object,
    without: object,
    samples: int,
    confidence: object = 0.95,
    *,
    delta: object = 0,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Bound from below how much the mechanism's output tells the input `with_` from `without`.

    Args:
        mechanism: `m(input, size, rng)` with `size` independent outputs, or one draw a call,
            `m(input, rng)` or `m(input)`.
        with_, without: neighbouring inputs, with someone's data and without.
        samples: draws of each world, all stages together.
        confidence: with which all bounds of the result hold.
        delta: granted to the mechanism: bounds are then on the ε of an (ε, δ) claim.
        seed: for a repeatable run.
    """
    (level, error), granted = read_confidence(confidence), read_delta(delta)
    check_samples(samples)
    draw = vectorised(mechanism)
    streams = seeded(seed).spawn(2)
    worlds = (
        World(draw, with_, "with_", np.random.default_rng(streams[0])),
        World(draw, without, "without", np.random.default_rng(streams[1])),
    )
    tell = progress or (lambda _count: None)
    seen = explore(worlds, round(samples * SEARCH), tell)
    trials = samples - seen.draws
    chosen = seen.choices(trials, error, granted)
    return conclude(
        worlds,
        chosen,
        trials,
        error,
        granted,
        confidence=level,
        samples=samples,
        seen=seen,
        tell=tell,
    )


def seeded(seed: object) -> np.random.SeedSequence:
    """Where randomness begins: a whole number for a repeatable run, None for a fresh one."""
    whole = isinstance(seed, int) and not isinstance(seed, bool)
    if seed is not None and (not whole or seed < 0):  # type: ignore[operator]
        raise InvalidInput("seed", "a whole number of at least 0", repr(seed))
    return np.random.SeedSequence(seed)  # type: ignore[arg-type]


def read_delta(delta: object) -> float:
    """A δ in [0, 1)."""
    number = rational(delta, "delta")
    if not 0 <= number < 1:
        raise InvalidInput("delta", "at least 0 and below 1", delta)
    return float(number)


def check_samples(samples: object, fewest: int = FEWEST) -> None:
    """A whole number of samples that can say something."""
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < fewest:
        accepted = f"a whole number of at least {fewest} (some 100,000 show most leaks)"
        raise InvalidInput("samples", accepted, repr(samples))


def check_claim(epsilon: float, samples: int, confidence: object) -> None:
    """Refuse so few samples that no outcome whatever could refute a claim; say how many could."""
    error, share = read_confidence(confidence)[1], 1 - SEARCH
    if most_that_can_show(max(1, round(samples * share)), error) < epsilon:
        needed = round(trials_to_show(epsilon, error) * 1.05 / share)
        accepted = f"at least {needed:,} to be able to refute ε = {epsilon:g}"
        raise InvalidInput("samples", accepted, f"{samples:,}")


@dataclass(frozen=True)
class Seen:
    """Samples of both worlds that are spent on the search, in two halves."""

    first: Pair
    second: Pair

    @property
    def draws(self) -> int:
        return len(self.first[0]) + len(self.second[0])

    def choices(self, trials: int, error: float, delta: float) -> dict[str, Choice]:
        """The best event in each direction, for a count on so many draws."""
        return choose(trials_of(self.first, self.second), trials, error, delta)

    def notes(self) -> tuple[str, ...]:
        """What is odd about the outputs."""
        if not all(is_constant(*pair) for pair in zip(self.first, self.second, strict=True)):
            return ()
        if is_constant(*self.first):
            return ("the output was the same in every draw of both worlds",)
        return ("no randomness: each world has one output, so any claim of privacy is false",)


def explore(worlds: tuple[World, World], size: int, tell: Progress) -> Seen:
    """Draw what the search looks at."""
    halves = []
    for part in (size // 2, size - size // 2):
        halves.append((worlds[0].draw(part), worlds[1].draw(part)))
        tell(part)
    for world in (0, 1):
        check_fresh(halves[0][world], halves[1][world])
    check_fresh(halves[0][0], halves[1][1])
    return Seen(halves[0], halves[1])


def conclude(
    worlds: tuple[World, World],
    chosen: dict[str, Choice],
    trials: int,
    error: float,
    delta: float,
    *,
    confidence: float,
    samples: int,
    seen: Seen,
    tell: Progress,
    pattern: str | None = None,
) -> Audit:
    """Count the chosen events on fresh draws."""
    favoured, other = chosen[WITH], chosen[WITHOUT]
    against = other.promise > max(favoured.promise * WORTH, 0)
    picked = [other, favoured] if against else [favoured]
    hits = np.zeros((len(picked), 2), dtype=np.int64)
    for size in chunks(trials):
        for world in (0, 1):
            outputs = worlds[world].draw(size)
            for place, choice in enumerate(picked):
                hits[place, world] += np.count_nonzero(choice.event.contains(outputs))
        tell(size)
    counts = []
    for choice, (first, second) in zip(picked, hits.tolist(), strict=True):
        pair = (first, second) if choice.event.above else (second, first)
        bound = ratio_bound(
            pair[0], trials, pair[1], trials, error / len(picked), choice.slope, delta
        )
        counts.append(Count(choice.event, first, second, trials, trials, bound))
    counts.sort(key=lambda count: -count.log_ratio)
    return Audit(
        epsilon=counts[0].log_ratio,
        log_ratio=max(count.log_ratio for count in counts if count.event.above),
        confidence=confidence,
        delta=delta,
        counts=tuple(counts),
        samples=samples,
        with_=worlds[0].value,
        without=worlds[1].value,
        notes=seen.notes(),
        pattern=pattern,
    )
