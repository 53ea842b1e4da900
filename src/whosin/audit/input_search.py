"""A search over pairs of inputs that spends its samples where leakage shows.

Contract: pairs compete on samples that are not counted afterwards. In each round every pair that is
left gets the same number of fresh draws, and the half that promises more goes on (successive
halving: Jamieson and Talwalkar 2016). The one pair that is left is counted on fresh draws, so its
bounds are as valid as those of `two_worlds`, however many pairs were tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

import numpy as np

from whosin.audit.calling import Mechanism
from whosin.audit.inputs import InputPair, shifted
from whosin.audit.result import Audit
from whosin.audit.sampling import World, vectorised
from whosin.audit.terms import FEWEST, Progress, Terms
from whosin.audit.world_pairs import Seen, conclude, explore, open_worlds
from whosin.errors import InvalidInput
from whosin.validation import whole

COMPETING = 0.4
"""The part of the samples on which pairs compete, and the last pair's event is chosen."""
MOST = 1000
"""Pairs that are tried at most."""
NEARBY = 4
"""Pairs that compete at each step of a climb: the best one and others near it."""
Move = Callable[[InputPair, np.random.Generator], InputPair]


def search(
    mechanism: Mechanism,
    pairs: Iterable[object],
    samples: int,
    confidence: object = 0.95,
    *,
    delta: object = 0,
    seed: int | None = None,
    progress: Progress | None = None,
    climb: int = 0,
    move: Move = shifted,
    timing: bool = False,
) -> Audit:
    """Find the pair of neighbouring inputs that leaks most, and bound its leakage from below.

    Args:
        mechanism: as for `two_worlds`.
        pairs: of inputs (with, without): from `neighbours`, or any of your own, also a generator.
        samples: draws of each world, over all pairs and stages together.
        climb: how many times the best pair competes with pairs nearby (hill climbing), on a part
            of the same samples.
        move: makes a pair nearby, `move(pair, rng)`; by default answers of a vector are moved in
            both inputs alike.
        timing: as for `two_worlds`.
    """
    terms = Terms.read(samples, confidence, delta, seed, progress)
    draw, entrants = vectorised(mechanism), _read(pairs)
    rounds = max(1, math.ceil(math.log2(len(entrants))))
    climbs = whole(climb, "climb", 0)
    share = int(terms.samples * COMPETING) // (rounds + climbs)
    if share // max(len(entrants), NEARBY if climbs else 1) < FEWEST // 4:
        needed = math.ceil(FEWEST // 4 * len(entrants) * (rounds + climbs) / COMPETING)
        raise InvalidInput("samples", f"at least {needed:,} for {len(entrants)} pairs", samples)
    seeds = terms.seeds.spawn(2 * len(entrants))
    quiet = replace(terms, tell=lambda _count: None)
    left: list[tuple[InputPair, tuple[World, World], Seen | None]] = []
    for index, pair in enumerate(entrants):
        own = seeds[2 * index : 2 * index + 2]
        coins = terms.seeds.spawn(1)[0] if timing else None
        worlds = open_worlds(draw, pair.with_, pair.without, own, pair.name, coins=coins)
        left.append((pair, worlds, None))
    spent = 0
    for step in range(rounds):
        size = share // len(left)
        judged = []
        for pair, worlds, seen in left:
            fresh = explore(worlds, size, quiet)
            seen = fresh if seen is None else seen.joined(fresh)
            chosen = seen.choices(round(terms.samples * (1 - COMPETING)), terms)
            promise = max(choice.promise for choice in chosen.values())
            judged.append((promise, (pair, worlds, seen), chosen))
        terms.tell(size * len(left))
        spent += size * len(left)
        judged.sort(key=lambda each: -each[0])
        keep = 1 if step == rounds - 1 else max(2, math.ceil(len(left) / 2))
        left = [each for _promise, each, _chosen in judged[:keep]]
    _promise, (pair, worlds, seen), chosen = judged[0]
    rng = np.random.default_rng(terms.seeds.spawn(1)[0])
    for _ in range(climbs):
        size, judged = share // NEARBY, []
        nearby = [pair, *(move(pair, rng) for _ in range(NEARBY - 1))]
        for each in nearby:
            own = terms.seeds.spawn(2)
            coins = terms.seeds.spawn(1)[0] if timing else None
            around = open_worlds(draw, each.with_, each.without, own, each.name, coins=coins)
            fresh = explore(around, size, quiet)
            chosen = fresh.choices(round(terms.samples * (1 - COMPETING)), terms)
            promise = max(choice.promise for choice in chosen.values())
            judged.append((promise, (each, around, fresh), chosen))
        terms.tell(size * NEARBY)
        spent += size * NEARBY
        best = max(judged, key=lambda each: each[0])
        if best is judged[0] and seen is not None:  # the old pair, better known
            seen = seen.joined(best[1][2])
        else:
            _promise, (pair, worlds, seen), _chosen = best
        chosen = seen.choices(round(terms.samples * (1 - COMPETING)), terms)
    return conclude(worlds, seen, terms.samples - spent, terms, chosen=chosen, pattern=pair.name)


def _read(pairs: Iterable[object]) -> list[InputPair]:
    """The pairs, named."""
    result = []
    try:
        items = list(islice(pairs, MOST + 1))
    except TypeError:
        accepted = "pairs of inputs, (with, without)"
        raise InvalidInput("pairs", accepted, type(pairs).__name__) from None
    for index, item in enumerate(items):
        if isinstance(item, InputPair):
            result.append(item)
        elif isinstance(item, tuple | list) and len(item) == 2:
            result.append(InputPair(f"pair {index}", item[0], item[1]))
        else:
            raise InvalidInput("pairs", "pairs of inputs, (with, without)", f"{item!r:.60}")
    if not 1 <= len(result) <= MOST:
        got = "none" if not result else f"more than {MOST}"
        raise InvalidInput("pairs", f"1 to {MOST} pairs of inputs", got)
    return result
