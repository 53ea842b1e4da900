"""Which guesses one run allows: whole groups of equal scores, the surest first.

Contract: a guess says "in" of the highest scores or "out" of the lowest. Which canaries are
guessed, and how many, depends on the scores alone, never on who was in. Canaries with one score are
guessed together or not at all, so the order of a list never matters and constant scores leave
nothing to tell. Where numbers of guesses must be fixed beforehand (with δ), ties are broken against
the finding: of canaries with one score, those whose guess is wrong come first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosin.exact import Array

FEWEST = 5
"""Fewer guesses can show nothing."""


@dataclass(frozen=True)
class Guesses:
    """How many of the surest guesses were right, for each number of guesses that was tried.

    Attributes:
        tried: guesses in all; `inside` of them say "in" (all of them, where it is left out).
    """

    tried: tuple[int, ...]
    right: tuple[int, ...]
    inside: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.inside:
            object.__setattr__(self, "inside", self.tried)

    def to_dict(self) -> dict[str, object]:
        """The guesses for programs."""
        return {"tried": list(self.tried), "in": list(self.inside), "right": list(self.right)}


def guess(truth: Array, scores: Array, *, both: bool, fixed: bool) -> Guesses:
    """The guesses on both sides, or "in" guesses alone.

    Args:
        truth: whether each canary was in.
        fixed: numbers of guesses come from the number of canaries alone.
    """
    count = len(truth)
    ends = np.arange(1, count + 1) if fixed else _group_ends(scores)
    # With δ few and large numbers: what δ allows weighs most among few guesses.
    parts = [1 / 2**step for step in range(4)] if fixed else [0.5 ** (s / 2) for s in range(15)]
    targets = [count * part for part in reversed(parts)]
    nothing: list[int] = [0] * len(targets)
    if both:
        middle = int(ends[np.argmin(np.abs(ends - count / 2))])
        highs = _nearest(ends[ends <= middle], [target / 2 for target in targets])
        rest = (count - ends[(ends >= middle) & (ends < count)])[::-1]
        lows = _nearest(rest, [target / 2 for target in targets]) if len(rest) else nothing
    else:
        highs, lows = _nearest(ends, targets), nothing
    sizes = [pair for pair in dict.fromkeys(zip(highs, lows, strict=True)) if sum(pair) >= FEWEST]
    tops, bottoms = right_guesses(truth, scores), right_guesses(~truth, -scores)
    return Guesses(
        tuple(high + low for high, low in sizes),
        tuple(int(tops[high] + bottoms[low]) for high, low in sizes),
        tuple(high for high, _low in sizes),
    )


def _group_ends(scores: Array) -> Array:
    """How many canaries have a score of at least the first, second, … highest value."""
    return np.cumsum(np.unique(-scores, return_counts=True)[1])


def _nearest(ends: Array, targets: list[float]) -> list[int]:
    """The end that is nearest to each target, by their ratio."""
    distances = [np.abs(np.log(ends / max(target, 0.5))) for target in targets]
    return [int(ends[np.argmin(each)]) for each in distances]


def right_guesses(truth: Array, scores: Array) -> Array:
    """How many of the first 0, 1, 2 … highest scores are right, wrong ones first among equals."""
    order = np.lexsort((truth, -scores))
    return np.concatenate([[0], np.cumsum(truth[order])])
