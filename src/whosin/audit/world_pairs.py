"""Two worlds: how well can one tell from its output which of two inputs a mechanism had?

Contract: the event is chosen on one set of samples and counted on fresh ones, by the exact test of
`ratio`; the bounds of one result hold together at the stated confidence (`counting`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.audit.calling import Call, Mechanism
from whosin.audit.confidence import read_confidence
from whosin.audit.counting import judge, log_ratio, pick
from whosin.audit.dependence import check_memory
from whosin.audit.events import Choice, choose
from whosin.audit.outputs import NUMBERS, Outputs, join
from whosin.audit.remarks import check_returns, is_blind, remarks
from whosin.audit.result import Audit, most_that_can_show, trials_to_show
from whosin.audit.sampling import World, check_fresh, chunks, vectorised
from whosin.audit.terms import Progress, Terms, read_delta, read_epsilon, read_samples
from whosin.audit.timing import timed_worlds, without_time
from whosin.audit.trials import Pair, trials_of
from whosin.errors import InvalidInput

SEARCH = 0.25
"""The part of the samples that usually looks for the event; the rest is counted."""
STAGES = (1 / 16, SEARCH, 1 / 2)
"""A first look, the usual one, and a long one where nothing shows."""
CLEAR, FAINT = 0.8, 0.01
"""After the first look an event is counted if it surely shows this part of its estimate; after the
usual one, if it promises anything."""
LARGE = 1.0
"""Leaks that look larger are worth the usual look: more of it finds rarer events, and a longer
count adds little."""
GLANCE = 5000
"""Draws that a first look needs."""


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
    stop_at: object = None,
    timing: bool = False,
) -> Audit:
    """Bound from below how much the mechanism's output tells the input `with_` from `without`.

    Args:
        mechanism: `m(input, size, rng)` with `size` independent outputs, or one draw per call,
            `m(input, rng)` or `m(input)`. Outputs may be anything; an exception is one, too
            (`sampling` says which are not).
        with_, without: neighbouring inputs, with someone's data and without.
        samples: draws of each world, all stages together.
        confidence: with which all bounds of the result hold.
        delta: granted to the mechanism: bounds are then on the ε of an (ε, δ) claim.
        seed: for a repeatable run.
        stop_at: an ε that is claimed: stop as soon as it is refuted (`rounds`).
        timing: an observer also sees how long each call takes (`timing`).
    """
    terms = Terms.read(samples, confidence, delta, seed, progress)
    seeds = terms.seeds.spawn(2)
    coins = terms.seeds.spawn(1)[0] if timing else None
    worlds = open_worlds(vectorised(mechanism), with_, without, seeds, coins=coins)
    if stop_at is not None:
        from whosin.audit.rounds import in_rounds

        return in_rounds(worlds, read_epsilon(stop_at), terms)
    seen, chosen = look(worlds, terms)
    return conclude(worlds, seen, terms.samples - seen.draws, terms, chosen=chosen)


def open_worlds(
    draw: Call,
    with_: object,
    without: object,
    seeds: list[np.random.SeedSequence],
    pattern: str | None = None,
    *,
    coins: np.random.SeedSequence | None = None,
) -> Any:
    """Both inputs of a mechanism, each with randomness of its own; timed, where there are coins."""
    of = "" if pattern is None else f" of {pattern}"
    worlds = (
        World(draw, with_, f"“with”{of}", np.random.default_rng(seeds[0])),
        World(draw, without, f"“without”{of}", np.random.default_rng(seeds[1])),
    )
    return worlds if coins is None else timed_worlds(worlds, coins)


def check_claim(epsilon: object, samples: object, confidence: object, delta: object = 0) -> None:
    """Refuse too few samples for any outcome to refute a claim, and say how many are enough."""
    error, share, granted = read_confidence(confidence)[1], 1 - SEARCH, read_delta(delta)
    claim, size = read_epsilon(epsilon), read_samples(samples)
    if most_that_can_show(max(1, round(size * share)), error, granted) < claim:
        needed = round(trials_to_show(claim, error, granted) * 1.05 / share)
        accepted = f"at least {needed:,} to be able to refute ε = {claim:g}"
        raise InvalidInput("samples", accepted, f"{size:,}")


@dataclass(frozen=True)
class Seen:
    """Samples of both worlds that are spent on the search, in two halves."""

    first: Pair
    second: Pair

    @property
    def draws(self) -> int:
        return len(self.first[0]) + len(self.second[0])

    @property
    def parts(self) -> list[Outputs]:
        """The outputs alone, without the time of timed calls."""
        return [without_time(each) for each in (*self.first, *self.second)]

    def joined(self, fresh: Seen) -> Seen:
        """What was seen before and now."""
        first, second = (
            (join([old[0], new[0]]), join([old[1], new[1]]))
            for old, new in ((self.first, fresh.first), (self.second, fresh.second))
        )
        return Seen(first, second)

    def choices(self, trials: int, terms: Terms) -> dict[str, Choice]:
        """The best event in each direction, for a count on `trials` draws."""
        return choose(trials_of(self.first, self.second), trials, terms.error, terms.delta)

    def notes(self) -> tuple[str, ...]:
        """What is odd about the outputs."""
        return tuple(remarks(self.parts))


def explore(worlds: tuple[World, World], size: int, terms: Terms) -> Seen:
    """Draw what the search looks at."""
    halves = []
    for part in (size // 2, size - size // 2):
        halves.append((worlds[0].explore(part), worlds[1].explore(part)))
        terms.tell(part)
    for world in worlds:  # where one world raises, the other may
        world.singly = worlds[0].singly or worlds[1].singly
    seen = Seen(halves[0], halves[1])
    one, two, again, other = seen.parts
    for first, second in ((one, again), (two, other), (one, other)):
        check_fresh(first, second)
    check_returns(seen.parts)
    for outputs in seen.parts:
        check_memory(outputs)
    return seen


def look(worlds: tuple[World, World], terms: Terms) -> tuple[Seen, dict[str, Choice]]:
    """Search as long as it pays: samples go where leakage shows, or into a longer search."""
    seen: Seen | None = None
    chosen: dict[str, Choice] = {}
    for share, enough in zip(STAGES, (CLEAR, FAINT, 0.0), strict=True):
        size = round(terms.samples * share)
        if share < SEARCH and size < GLANCE:
            continue
        fresh = explore(worlds, size - (seen.draws if seen else 0), terms)
        seen = fresh if seen is None else seen.joined(fresh)
        if share < SEARCH and seen.first[0].kind != NUMBERS:
            continue  # classifiers learn more from more
        chosen = seen.choices(terms.samples - size, terms)
        best = max(chosen.values(), key=lambda choice: choice.promise)
        large = share < SEARCH and max(each.estimate for each in chosen.values()) > LARGE
        promise = best.sure if share < SEARCH else best.promise
        if (promise > enough * best.estimate and not large) or size < GLANCE:
            break
    assert seen is not None
    return seen, chosen


def conclude(
    worlds: tuple[World, World],
    seen: Seen,
    trials: int,
    terms: Terms,
    *,
    chosen: dict[str, Choice] | None = None,
    pattern: str | None = None,
) -> Audit:
    """Count the chosen events, by default the best of what was seen, on fresh draws."""
    picked = pick(chosen or seen.choices(trials, terms))
    hits = np.zeros((len(picked), 2), dtype=np.int64)
    for size in chunks(trials):
        for world in (0, 1):
            outputs = worlds[world].draw(size)
            for index, choice in enumerate(picked):
                hits[index, world] += np.count_nonzero(choice.event.contains(outputs))
        terms.tell(size)
    pairs = [(int(first), int(second)) for first, second in hits]
    timed = worlds[0].timed
    counts = judge(picked, pairs, (trials, trials), terms.error, terms.delta)
    return Audit(
        epsilon=counts[0].log_ratio,
        log_ratio=log_ratio(counts),
        confidence=terms.confidence,
        delta=terms.delta,
        counts=counts,
        samples=terms.samples,
        with_=worlds[0].value,
        without=worlds[1].value,
        notes=seen.notes(),
        blind=not timed and is_blind(seen.parts),
        pattern=pattern,
        timing=timed,
    )
