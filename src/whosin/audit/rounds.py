"""An audit that stops as soon as a claim is refuted.

Contract: the samples come in rounds of growing size, and each round has a share of the error that
was fixed beforehand, so the bounds of all rounds hold together whenever one stops. In each round an
event is chosen by everything that was searched so far and counted on fresh draws.
"""

from __future__ import annotations

from dataclasses import replace

from whosin.audit.result import Audit
from whosin.audit.sampling import World
from whosin.audit.terms import FEWEST, Terms
from whosin.audit.world_pairs import SEARCH, Seen, conclude, explore

ROUNDS = ((1 / 64, 1 / 32), (1 / 16, 1 / 16), (1 / 4, 1 / 8))
"""Shares of the samples and of the error, of all rounds but the last, which has the rest."""


def plan(samples: int) -> list[tuple[int, float]]:
    """The size of each round and its share of the error; small rounds are left out."""
    result = [(round(samples * size), error) for size, error in ROUNDS]
    result = [(size, error) for size, error in result if size >= 4 * FEWEST]
    left = samples - sum(size for size, _ in result)
    return [*result, (left, 1 - sum(error for _, error in result))]


def in_rounds(worlds: tuple[World, World], claim: float, terms: Terms) -> Audit:
    """Audit round by round until the claim is refuted or the samples are spent."""
    seen: Seen | None = None
    done: list[Audit] = []
    spent = 0
    for size, share in plan(terms.samples):
        part = replace(terms, error=terms.error * share)
        looked = round(size * SEARCH)
        fresh = explore(worlds, looked, part)
        seen = fresh if seen is None else seen.joined(fresh)
        done.append(conclude(worlds, seen, size - looked, part))
        spent += size
        if done[-1].refutes(claim):
            break
    best = max(done, key=lambda each: each.epsilon)
    return replace(best, log_ratio=max(each.log_ratio for each in done), samples=spent)
