"""Which distinguishers are tried on the outputs of a search, and warnings about odd outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whosin.audit.distinguishers import (
    BIN_COUNT,
    ByBin,
    ByBits,
    ByFrequency,
    ByPart,
    ByValue,
    Distinguisher,
    has_bits,
)
from whosin.audit.output_features import (
    SKELETON_TOKENS,
    TOKEN_PAIRS_TOKENS,
    ByCell,
    ByPair,
    ByToken,
    CellCounts,
    OutputColumns,
    PairCounts,
    TokenCounts,
    count_tokens,
    is_among_the_best,
    telling_cells,
)
from whosin.audit.outputs import FORMS, NUMBERS, VECTORS, Outputs, Token, align_kinds, join_outputs
from whosin.audit.outputs import MAX_PARTS as DESCRIBED
from whosin.audit.sampling import count_exceptions, is_constant, one_thread
from whosin.audit.snapshots import Raised
from whosin.errors import InvalidInput, spell
from whosin.exact import Array

if TYPE_CHECKING:
    from whosin.audit.classifiers import HalfTables, LearntClassifier


# What is tried on the outputs of a search: orderings, with scores for draws they have not seen.
# Everything here happens on samples that are not counted afterwards. `STRATEGIES` are the kinds of
# orderings, the plainest first: each says by itself to which outputs it applies. What is cheap to
# learn is learnt three times: each half of the samples judges what the other half learnt, and both
# together order the outputs of the final event. Places are chosen on the first half alone, and
# single places and the bits of floats at many places are judged by the second.


FEW_OUTPUTS = 64
"""Up to this many different outputs a table of counts leaves nothing for a classifier to find."""
SENTINEL, OFTEN = 0.0005, 10
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
        """Return the scores with and without the person, each sorted."""
        return np.sort(self.with_scores), np.sort(self.without_scores)

    @cached_property
    def levels(self) -> Array:
        """The different scores of both inputs, the least first."""
        levels = np.concatenate(self.sorted_scores)
        levels.sort(kind="stable")  # which merges what is sorted already
        return np.asarray(levels[np.append(True, levels[1:] != levels[:-1])])


@dataclass(frozen=True)
class SampleHalves:
    """Two halves of the search's samples, all outputs of one kind."""

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

    @cached_property
    def both(self) -> Pair:
        """Return the two halves as one sample of each input."""
        return join_outputs([self.first[0], self.second[0]]), join_outputs(
            [self.first[1], self.second[1]]
        )

    @property
    def kind(self) -> str:
        return self.first[0].kind

    @cached_property
    def distinct(self) -> int:
        """How many different outputs there are."""
        return distinct_outputs(self.both)

    @cached_property
    def comes_again(self) -> bool:
        """Whether whole outputs are worth counting: most come again, or one does so often."""
        draws = len(self.both[0]) + len(self.both[1])
        if self.kind == FORMS or self.distinct <= draws / 2:
            return True
        return self.distinct < draws and most_repeats(self.both) >= max(OFTEN, SENTINEL * draws)

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

    def cross_learn(self, learn: Learn) -> DistinguisherScores:
        """Each half judged by what the other half learnt."""
        return self.cross_score(*(learn(*pair) for pair in self.pairs))

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


def most_repeats(both: Pair) -> int:
    """How often the commonest output is there, on both inputs together."""
    keys = np.sort(np.concatenate([each.keys() for each in both]))
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return int(np.diff(np.append(starts, len(keys))).max())


def distinct_outputs(both: Pair) -> int:
    """How many different outputs there are on both inputs."""
    if both[0].kind == FORMS:
        return len(set(both[0].keys().tolist()) | set(both[1].keys().tolist()))
    return len(np.unique(np.concatenate([each.keys() for each in both])))


def try_values(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """Numbers as they are; the least first, too, where a table of counts would be long."""
    if halves.kind == NUMBERS and halves.distinct > 2:
        for sign in ORDER_SIGNS if halves.distinct > FEW_OUTPUTS else ORDER_SIGNS[:1]:
            value = ByValue(sign=sign)
            one, two = (value.score(each) for each in halves.both)
            yield DistinguisherScores(value, one, two, smooth=True)


def try_frequencies(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """Whole outputs that come again."""
    if halves.comes_again:
        yield halves.cross_learn(ByFrequency.learn)


def try_bins(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """Try numbers by the bin that they are in."""
    if halves.kind == NUMBERS and halves.distinct > BIN_COUNT:
        yield halves.cross_learn(ByBin.learn)


def _has_parts(halves: SampleHalves) -> bool:
    return halves.kind != NUMBERS and (halves.distinct > FEW_OUTPUTS or not halves.comes_again)


def try_tokens(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """What an output contains or lacks."""
    if _has_parts(halves):
        for sign in ORDER_SIGNS:
            if halves.kind == FORMS:
                yield halves.cross_score(
                    *(ByToken.learn(each, sign) for each in halves.token_counts)
                )
            else:
                yield halves.cross_score(*(ByCell.learn(each, sign) for each in halves.cell_counts))


def try_skeletons(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """How an output is built: types, keys, lengths, exceptions, missing fields."""
    if halves.kind == FORMS and _has_parts(halves):
        for sign in ORDER_SIGNS:
            learnt = [ByToken.learn(each, sign, SKELETON_TOKENS) for each in halves.token_counts]
            if learnt[-1].present or learnt[-1].absent:
                yield halves.cross_score(*learnt)


def try_token_pairs(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """Two parts of an output at once."""
    if not _has_parts(halves):
        return
    if halves.kind == FORMS:
        chosen = [counts.least_known(TOKEN_PAIRS_TOKENS) for counts in halves.token_counts]
    else:
        chosen = [telling_cells(*pair) for pair in halves.pairs]
    if min(len(tokens) for tokens in chosen) < 2:
        return
    counted = [
        PairCounts.of(*pair, tokens) for pair, tokens in zip(halves.pairs, chosen, strict=True)
    ]
    for sign in ORDER_SIGNS:
        yield halves.cross_score(*(ByPair.learn(each, sign) for each in counted))


def try_parts(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """The number that differs most; where a column of vectors does so in both halves, both judge
    it."""
    if _has_parts(halves) and halves.columns.places:
        of, columns = halves.first[0], halves.columns
        agreed = of.kind == VECTORS and is_among_the_best(columns.places[0], *halves.second)
        for sign in ORDER_SIGNS:
            part = ByPart(of.kind, of.width, columns.places[0], columns.medians[0], sign)
            if agreed:
                one, two = (part.score(each) for each in halves.both)
                yield DistinguisherScores(part, one, two, smooth=True)
            else:
                yield halves.score_second_half(part, smooth=True)


def try_classifiers(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """What classifiers learn from all parts together, the small net only where it tells more."""
    if halves.kind != NUMBERS and halves.distinct > FEW_OUTPUTS and halves.columns.count:
        from whosin.audit.classifiers import CLASSIFIER_LEARNERS, HalfTables, learn_net, net_pays

        cut = len(halves.first[0]), len(halves.first[1])
        tables = HalfTables.of(*halves.both, halves.columns)
        halved = tables.split(cut)
        second = []
        for learn in CLASSIFIER_LEARNERS:
            learnt = learn(*halved)
            if learnt is not None:
                scored = _cross_classify(learnt, tables, cut)
                second.append((scored.with_scores[cut[0] :], scored.without_scores[cut[1] :]))
                yield scored
        if net_pays(*halved, second):
            yield _cross_classify(learn_net(*halved), tables, cut)


def _cross_classify(
    learnt: LearntClassifier, tables: HalfTables, cut: tuple[int, int]
) -> DistinguisherScores:
    """Each half judged by what the other half taught a classifier."""
    (one, all_one), (two, all_two) = (
        learnt.cross_scores(table, here, tables.columns.count)
        for table, here in zip(tables.matrices, cut, strict=True)
    )
    matched = np.concatenate([all_one, all_two])
    return DistinguisherScores(learnt.ordering(tables), one, two, matched, smooth=True)


def try_float_bits(halves: SampleHalves) -> Iterator[DistinguisherScores]:
    """The bits of numbers."""
    if halves.distinct > FEW_OUTPUTS and has_bits(halves.both[0], floats=halves.float_bits):
        if halves.kind == NUMBERS:
            learnt = [ByBits.learn(*pair) for pair in halves.pairs]
            for sign in ORDER_SIGNS:
                yield halves.cross_score(*(replace(each, sign=sign) for each in learnt))
        else:  # judged by as many draws as other parts are
            once = ByBits.learn(*halves.first)
            for sign in ORDER_SIGNS:
                yield halves.score_second_half(replace(once, sign=sign))


STRATEGIES = [
    try_values,
    try_frequencies,
    try_bins,
    try_tokens,
    try_parts,
    try_skeletons,
    try_token_pairs,
    try_classifiers,
    try_float_bits,
]


def score_distinguishers(
    first: Pair, second: Pair, *, float_bits: bool = True
) -> list[DistinguisherScores]:
    """What is worth trying for outputs of this kind, the plainest first; at least one."""
    halves = SampleHalves.of(first, second, float_bits=float_bits)
    with one_thread():
        tried = [scored for strategy in STRATEGIES for scored in strategy(halves)]
    return tried if float_bits else [replace(each, float_bits=False) for each in tried]


# What is odd about the outputs of a search, and what is refused for it. An audit that could not
# have seen anything says so; it never passes for one that looked.


BLIND_WARNING = (
    "every output was distinct, without a number and without a part that comes again, so nothing "
    "could be learnt: let the mechanism return what an observer would compare"
)
NON_NUMBER_SHARE = 0.001
"""What comes again in a smaller share of the draws comes again by chance."""
NUMBERED_SHARE = 0.01
"""Numbers in a smaller share of the draws are an accident of random text."""


def output_warnings(parts: Sequence[Outputs]) -> Iterator[str]:
    """Sentences about the outputs of a search: with, without, with, without."""
    if is_constant(*parts):
        yield "the output was the same in every draw of both inputs"
    elif all(is_constant(*pair) for pair in (parts[0::2], parts[1::2])):
        yield "no randomness: each input has one output, so any claim of privacy is false"
    elif is_blind(parts):
        yield BLIND_WARNING
    draws = sum(len(part) for part in parts)
    for name, count in sum((count_exceptions(part) for part in parts), Counter()).most_common(3):
        yield f"{spell(count)} of {spell(draws)} draws raised {name}, which counts as an output"
    if any(_is_cut(part) for part in parts):
        most = spell(DESCRIBED)
        yield f"of outputs with more than {most} parts the others were compared as a whole"


def is_blind(parts: Sequence[Outputs]) -> bool:
    """Whether no event could have told anything: every output is the same, or none comes again."""
    if is_constant(*parts):
        return True
    if len({(part.kind, part.width) for part in parts}) == 1 and parts[0].kind != FORMS:
        return False
    both = join_outputs(parts[0::2]), join_outputs(parts[1::2])
    both = tuple(align_kinds(both))  # type: ignore[assignment]
    draws = len(both[0]) + len(both[1])
    if both[0].kind != FORMS or distinct_outputs(both) < draws:
        return False
    numbered = sum(bool(_has_numbers(each)) for each in _describe_both(both))
    counts: Counter[Token] = count_tokens(both[0]) + count_tokens(both[1])
    least = max(3, NON_NUMBER_SHARE * draws)
    again = any(least <= count <= draws - least for count in counts.values())
    return not again and numbered < NUMBERED_SHARE * draws


def _describe_both(both: Sequence[Outputs]) -> Iterator[object]:
    for outputs in both:
        yield from outputs.descriptions


def _has_numbers(about: object) -> bool:
    return any(place[-1:] != ("length",) for place in about.numbers)  # type: ignore[attr-defined]


def _is_cut(outputs: Outputs) -> bool:
    return outputs.kind == FORMS and any(not about.whole for about in outputs.descriptions)


def check_returns(parts: Sequence[Outputs]) -> None:
    """Refuse a mechanism that never returned, for one and the same reason in every draw."""
    if all(part.kind != NUMBERS for part in parts) and is_constant(*parts):
        first = parts[0].as_forms().values[0]
        if isinstance(first, Raised):
            message = (
                f"the mechanism raised {first.name} in every draw of both inputs: {first.text}"
            )
            hint = "catch it and return it where an observer would see it"
            raise InvalidInput(message, field="mechanism", value=first.name, hint=hint)
