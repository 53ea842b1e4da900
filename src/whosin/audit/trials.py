"""What is tried on the outputs of a search: orderings, with scores for draws they have not seen.

Contract: everything here happens on samples that are not counted afterwards. `WAYS` are the kinds
of orderings, the plainest first: each says by itself whether outputs are such that it applies.
Tables of counts are cheap to learn: each half of the samples judges what the other half learnt, and
both together order the outputs of the final event. What chooses places or learns from them does so
on the first half only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from whosin.audit.columns import OutputColumns
from whosin.audit.float_bits import ByBits, has_floats
from whosin.audit.orderings import BINS, ByBin, ByFrequency, ByPart, ByValue, Ordering
from whosin.audit.outputs import FORMS, NUMBERS, Outputs, alike, join
from whosin.audit.tokens import ByCell, ByToken
from whosin.exact import Array

FEW = 64
"""Up to this many different outputs a table of counts leaves nothing for a classifier to find."""
Pair = tuple[Outputs, Outputs]
"""Outputs with and without."""
Learn = Callable[[Outputs, Outputs], Ordering]


@dataclass(frozen=True)
class Trial:
    """An ordering with scores that it gave to draws it was not learnt on, in both worlds.

    `matched` are the scores by which a share of the draws is turned into a threshold: of the final
    ordering, where the trial's own scores came from orderings learnt on one half each. `smooth`
    orderings put draws in the tail for a reason, not by chance.
    """

    ordering: Ordering
    with_scores: Array
    without_scores: Array
    matched: Array | None = None
    smooth: bool = False


@dataclass(frozen=True)
class Halves:
    """Two halves of the search's samples, all outputs of one kind."""

    first: Pair
    second: Pair

    @classmethod
    def of(cls, first: Pair, second: Pair) -> Halves:
        """The halves, as one kind."""
        parts = alike([*first, *second])
        if parts[0].kind == FORMS:
            for part in parts:
                _ = part.descriptions  # once, for all that follows
        return cls((parts[0], parts[1]), (parts[2], parts[3]))

    @cached_property
    def both(self) -> Pair:
        """The halves together."""
        return join([self.first[0], self.second[0]]), join([self.first[1], self.second[1]])

    @property
    def kind(self) -> str:
        return self.first[0].kind

    @cached_property
    def distinct(self) -> int:
        """How many different outputs there are."""
        return distinct_outputs(self.both)

    @cached_property
    def columns(self) -> OutputColumns:
        """The parts of outputs that differ most in the first half."""
        return OutputColumns.of(*self.first)

    def crossed(self, learn: Learn) -> Trial:
        """Each half judged by what the other half learnt."""
        one, two, final = learn(*self.first), learn(*self.second), learn(*self.both)
        scores = [
            np.concatenate([one.score(self.second[world]), two.score(self.first[world])])
            for world in (0, 1)
        ]
        matched = np.concatenate([final.score(each) for each in self.both])
        return Trial(final, scores[0], scores[1], matched)

    def judged(self, ordering: Ordering, *, smooth: bool = False) -> Trial:
        """The second half judged by what the first half learnt."""
        scores = ordering.score(self.second[0]), ordering.score(self.second[1])
        return Trial(ordering, *scores, smooth=smooth)


def distinct_outputs(both: Pair) -> int:
    """How many different outputs there are in both worlds."""
    return len(set(both[0].keys().tolist()) | set(both[1].keys().tolist()))


def by_value(halves: Halves) -> Iterator[Trial]:
    """Numbers as they are."""
    if halves.kind == NUMBERS and halves.distinct > 2:
        value = ByValue()
        yield Trial(value, value.score(halves.both[0]), value.score(halves.both[1]))


def by_frequency(halves: Halves) -> Iterator[Trial]:
    """Whole outputs that come again."""
    draws = len(halves.both[0]) + len(halves.both[1])
    if halves.distinct <= draws / 2 or halves.kind == FORMS:
        yield halves.crossed(ByFrequency.learn)


def by_bin(halves: Halves) -> Iterator[Trial]:
    """Numbers in bins."""
    if halves.kind == NUMBERS and halves.distinct > BINS:
        yield halves.crossed(ByBin.learn)


def _has_parts(halves: Halves) -> bool:
    return halves.kind != NUMBERS and (
        halves.distinct > FEW or next(by_frequency(halves), None) is None
    )


def by_tokens(halves: Halves) -> Iterator[Trial]:
    """What an output contains or lacks."""
    if _has_parts(halves):
        table: Callable[..., Ordering] = ByToken.learn if halves.kind == FORMS else ByCell.learn
        for sign in (1, -1):
            yield halves.crossed(partial(table, sign=sign))


def by_part(halves: Halves) -> Iterator[Trial]:
    """The number that differs most."""
    if _has_parts(halves) and halves.columns.places:
        of, columns = halves.first[0], halves.columns
        yield halves.judged(ByPart(of.kind, of.width, columns.places[0], columns.medians[0]))


def by_classifier(halves: Halves) -> Iterator[Trial]:
    """What classifiers learn from all parts together."""
    if halves.kind != NUMBERS and halves.distinct > FEW and halves.columns.count:
        from whosin.audit.classifiers import learn

        for ordering in learn(*halves.first, halves.columns):
            yield halves.judged(ordering, smooth=True)


def by_bits(halves: Halves) -> Iterator[Trial]:
    """The bits of floats."""
    if halves.distinct > FEW and has_floats(halves.both[0]):
        for sign in (1, -1):
            if halves.kind == NUMBERS:
                yield halves.crossed(partial(ByBits.learn, sign=sign))
            else:  # judged by as many draws as other parts are
                yield halves.judged(ByBits.learn(*halves.first, sign=sign))


WAYS = [by_value, by_frequency, by_bin, by_tokens, by_part, by_classifier, by_bits]


def trials_of(first: Pair, second: Pair) -> list[Trial]:
    """What is worth trying for outputs of this kind, the plainest first; at least one."""
    halves = Halves.of(first, second)
    return [trial for way in WAYS for trial in way(halves)]
