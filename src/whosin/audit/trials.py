"""What is tried on the outputs of a search: orderings, with scores for draws they have not seen.

Contract: everything here happens on samples that are not counted afterwards. `WAYS` are the kinds
of orderings, the plainest first: each says by itself to which outputs it applies.
What is cheap to learn is learnt three times: each half of the samples judges what the other half
learnt, and both together order the outputs of the final event. Places are chosen on the first half
alone, and single places and the bits of floats at many places are judged by the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whosin.audit.cells import ByCell, CellCounts
from whosin.audit.columns import OutputColumns, is_among_the_best
from whosin.audit.float_bits import ByBits, has_floats
from whosin.audit.orderings import BINS, ByBin, ByFrequency, ByPart, ByValue, Ordering
from whosin.audit.outputs import FORMS, NUMBERS, VECTORS, Outputs, alike, join
from whosin.audit.threads import one_thread
from whosin.audit.token_pairs import TOKENS, ByPair, PairCounts, telling_cells
from whosin.audit.tokens import SKELETON, ByToken, TokenCounts
from whosin.exact import Array

if TYPE_CHECKING:
    from whosin.audit.classifiers import Learnt, Tables

FEW = 64
"""Up to this many different outputs a table of counts leaves nothing for a classifier to find."""
Pair = tuple[Outputs, Outputs]
"""Outputs with and without."""
SIGNS = (1, -1)
"""For "with", and for "without"."""
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

    @cached_property
    def sorted_scores(self) -> tuple[Array, Array]:
        """With and without."""
        return np.sort(self.with_scores), np.sort(self.without_scores)

    @cached_property
    def levels(self) -> Array:
        """The different scores of both worlds, the least first."""
        levels = np.concatenate(self.sorted_scores)
        levels.sort(kind="stable")  # which merges what is sorted already
        return np.asarray(levels[np.append(True, levels[1:] != levels[:-1])])


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

    @property
    def comes_again(self) -> bool:
        """Whether whole outputs are worth counting."""
        draws = len(self.both[0]) + len(self.both[1])
        return self.distinct <= draws / 2 or self.kind == FORMS

    @cached_property
    def columns(self) -> OutputColumns:
        """The parts of outputs that differ most in the first half."""
        return OutputColumns.of(*self.first)

    @property
    def pairs(self) -> tuple[Pair, Pair, Pair]:
        """Each half, and both together."""
        return self.first, self.second, self.both

    @cached_property
    def token_counts(self) -> list[TokenCounts]:
        """Of each half, and of both together."""
        return [TokenCounts.of(*pair) for pair in self.pairs]

    @cached_property
    def cell_counts(self) -> list[CellCounts]:
        """Of vectors: of each half, and of both together."""
        return [CellCounts.of(*pair) for pair in self.pairs]

    def crossed(self, learn: Learn) -> Trial:
        """Each half judged by what the other half learnt."""
        return self.exchanged(*(learn(*pair) for pair in self.pairs))

    def exchanged(self, one: Ordering, two: Ordering, final: Ordering) -> Trial:
        """Each half judged by the ordering of the other one."""
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
    if both[0].kind == FORMS:
        return len(set(both[0].keys().tolist()) | set(both[1].keys().tolist()))
    return len(np.unique(np.concatenate([each.keys() for each in both])))


def by_value(halves: Halves) -> Iterator[Trial]:
    """Numbers as they are; the least first, too, where a table of counts would be long."""
    if halves.kind == NUMBERS and halves.distinct > 2:
        for sign in SIGNS if halves.distinct > FEW else SIGNS[:1]:
            value = ByValue(sign=sign)
            one, two = (value.score(each) for each in halves.both)
            yield Trial(value, one, two, smooth=True)


def by_frequency(halves: Halves) -> Iterator[Trial]:
    """Whole outputs that come again."""
    if halves.comes_again:
        yield halves.crossed(ByFrequency.learn)


def by_bin(halves: Halves) -> Iterator[Trial]:
    """Numbers in bins."""
    if halves.kind == NUMBERS and halves.distinct > BINS:
        yield halves.crossed(ByBin.learn)


def _has_parts(halves: Halves) -> bool:
    return halves.kind != NUMBERS and (halves.distinct > FEW or not halves.comes_again)


def by_tokens(halves: Halves) -> Iterator[Trial]:
    """What an output contains or lacks."""
    if _has_parts(halves):
        for sign in SIGNS:
            if halves.kind == FORMS:
                yield halves.exchanged(*(ByToken.learn(each, sign) for each in halves.token_counts))
            else:
                yield halves.exchanged(*(ByCell.learn(each, sign) for each in halves.cell_counts))


def by_skeleton(halves: Halves) -> Iterator[Trial]:
    """How an output is built: types, keys, lengths, exceptions, missing fields."""
    if halves.kind == FORMS and _has_parts(halves):
        for sign in SIGNS:
            learnt = [ByToken.learn(each, sign, SKELETON) for each in halves.token_counts]
            if learnt[-1].present or learnt[-1].absent:
                yield halves.exchanged(*learnt)


def by_pairs(halves: Halves) -> Iterator[Trial]:
    """Two parts of an output at once."""
    if not _has_parts(halves):
        return
    if halves.kind == FORMS:
        chosen = [counts.least_known(TOKENS) for counts in halves.token_counts]
    else:
        chosen = [telling_cells(*pair) for pair in halves.pairs]
    if min(len(tokens) for tokens in chosen) < 2:
        return
    counted = [
        PairCounts.of(*pair, tokens) for pair, tokens in zip(halves.pairs, chosen, strict=True)
    ]
    for sign in SIGNS:
        yield halves.exchanged(*(ByPair.learn(each, sign) for each in counted))


def by_part(halves: Halves) -> Iterator[Trial]:
    """The number that differs most; where a column of vectors does so in both halves, both judge
    it."""
    if _has_parts(halves) and halves.columns.places:
        of, columns = halves.first[0], halves.columns
        agreed = of.kind == VECTORS and is_among_the_best(columns.places[0], *halves.second)
        for sign in SIGNS:
            part = ByPart(of.kind, of.width, columns.places[0], columns.medians[0], sign)
            if agreed:
                one, two = (part.score(each) for each in halves.both)
                yield Trial(part, one, two, smooth=True)
            else:
                yield halves.judged(part, smooth=True)


def by_classifier(halves: Halves) -> Iterator[Trial]:
    """What classifiers learn from all parts together, the small net only where it tells more."""
    if halves.kind != NUMBERS and halves.distinct > FEW and halves.columns.count:
        from whosin.audit.classifiers import KINDS, Tables, learn_net, net_pays

        cut = len(halves.first[0]), len(halves.first[1])
        tables = Tables.of(*halves.both, halves.columns)
        halved = tables.split(cut)
        second = []
        for learn in KINDS:
            learnt = learn(*halved)
            if learnt is not None:
                trial = _classified(learnt, tables, cut)
                second.append((trial.with_scores[cut[0] :], trial.without_scores[cut[1] :]))
                yield trial
        if net_pays(*halved, second):
            yield _classified(learn_net(*halved), tables, cut)


def _classified(learnt: Learnt, tables: Tables, cut: tuple[int, int]) -> Trial:
    """Each half judged by what the other half taught a classifier."""
    (one, all_one), (two, all_two) = (
        learnt.judged(table, here, tables.columns.count)
        for table, here in zip(tables.worlds, cut, strict=True)
    )
    matched = np.concatenate([all_one, all_two])
    return Trial(learnt.ordering(tables), one, two, matched, smooth=True)


def by_bits(halves: Halves) -> Iterator[Trial]:
    """The bits of floats."""
    if halves.distinct > FEW and has_floats(halves.both[0]):
        if halves.kind == NUMBERS:
            learnt = [ByBits.learn(*pair) for pair in halves.pairs]
            for sign in SIGNS:
                yield halves.exchanged(*(replace(each, sign=sign) for each in learnt))
        else:  # judged by as many draws as other parts are
            once = ByBits.learn(*halves.first)
            for sign in SIGNS:
                yield halves.judged(replace(once, sign=sign))


WAYS = [
    by_value,
    by_frequency,
    by_bin,
    by_tokens,
    by_part,
    by_skeleton,
    by_pairs,
    by_classifier,
    by_bits,
]


def trials_of(first: Pair, second: Pair) -> list[Trial]:
    """What is worth trying for outputs of this kind, the plainest first; at least one."""
    halves = Halves.of(first, second)
    with one_thread():
        return [trial for way in WAYS for trial in way(halves)]
