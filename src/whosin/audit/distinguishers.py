"""Distinguishers: orderings of outputs from "without" to "with", by value, frequency, bin, token,
code and float bits.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from whosin.audit.sampling import FORMS, NUMBERS, VECTORS, Outputs
from whosin.audit.snapshots import (
    BuiltFrom,
    HasToken,
    Place,
    SkeletonShape,
    Token,
    TokenAt,
    place_words,
    token_words,
)
from whosin.errors import spell
from whosin.exact import Array

# Distinguishers order outputs from "without" to "with", each learnt from samples. An ordering gives
# every output a score; the events that are tried are {score ≥ t} and {score ≤ t}. It is learnt on
# samples that are used for nothing else, so it may be as clever, or as wrong, as it likes: a poor
# ordering finds less, and never invents anything. An output of another kind than it was learnt on
# has the score NaN, which is in no event. `about` puts an event in words, `data` as plain data.


MAX_SHOWN_WORDS = 6
"""The most outputs, or intervals, of an event that are put in words."""
SMOOTHING_COUNT = 0.5
"""Added to each count, so that one sighting of a rare output is no proof."""
BIN_COUNT = 64
TAIL_LEVELS = (1e-4, 3e-4, 1e-3, 2e-3, 5e-3)
"""Bins of equal frequency, and finer ones in the tails, where the largest ratios often are."""
ROWS_PER_SLICE = 20_000
"""Forms that are described at a time, to save memory."""


class Distinguisher(ABC):
    """A score for every output: high where "with" seems more likely than "without".

    Attributes:
        kind, width: of the outputs that it orders.
    """

    kind: str
    width: int

    def score(self, outputs: Outputs) -> Array:
        """A number per draw."""
        if outputs.kind == FORMS and len(outputs) > ROWS_PER_SLICE:
            starts = range(0, len(outputs), ROWS_PER_SLICE)
            return np.concatenate(
                [self.score(outputs.part(at, at + ROWS_PER_SLICE)) for at in starts]
            )
        fits, inside = outputs.matching(self.kind, self.width)
        if fits.all():
            return self._score(inside)
        scores = np.full(len(outputs), np.nan)
        if len(inside):
            scores[fits] = self._score(inside)
        return scores

    @abstractmethod
    def _score(self, outputs: Outputs) -> Array:
        """A number a draw, of outputs of its own kind."""

    @abstractmethod
    def about(self, threshold: float, above: bool) -> str:
        """The event {score ≥ t}, or {score ≤ t}, in words."""

    def data(self, threshold: float, above: bool) -> dict[str, object]:
        return {"words": self.about(threshold, above)}


@dataclass(frozen=True, eq=False)
class ByValue(Distinguisher):
    """Numbers as they are (sign 1), or the least first (sign −1): the events are half-lines.

    Attributes:
        place: of the number in outputs that are no numbers themselves; `missing` where there is
            none.
    """

    kind: str = NUMBERS
    width: int = 0
    sign: int = 1
    place: Place = ()
    missing: float = 0.0

    def _score(self, outputs: Outputs) -> Array:
        if self.kind == FORMS:
            found = [about.numbers.get(self.place, self.missing) for about in outputs.descriptions]
            return self.sign * np.array(found, dtype=np.float64)
        values = outputs.values if self.kind == NUMBERS else outputs.values[:, self.place[0]]
        return self.sign * values.astype(np.float64)

    def _half_line(self, threshold: float, above: bool) -> tuple[str, str, float]:
        """{sign · value ≥ t}, or ≤ t, as a sign, a key and a limit of the value itself."""
        up = above == (self.sign > 0)
        return (*(("≥", "at_least") if up else ("≤", "at_most")), self.sign * threshold)

    def about(self, threshold: float, above: bool) -> str:
        symbol, _key, limit = self._half_line(threshold, above)
        where = f"output{place_words(self.place)}" if self.place else "the output"
        return f"{'output' if self.kind == NUMBERS else where} {symbol} {spell(limit)}"

    def data(self, threshold: float, above: bool) -> dict[str, object]:
        _symbol, key, limit = self._half_line(threshold, above)
        place = {} if self.kind == NUMBERS else {"place": [str(step) for step in self.place]}
        return {**super().data(threshold, above), **place, key: limit}


@dataclass(frozen=True, eq=False)
class ByFrequency(Distinguisher):
    """Outputs that come again, by the ratio of their counts; unseen ones are in the middle."""

    kind: str
    width: int
    scores: dict[Any, float]
    originals: dict[Any, Any] = field(repr=False)
    _keys: Array | None = field(repr=False, default=None)
    _scores: Array | None = field(repr=False, default=None)

    @classmethod
    def learn(cls, with_: Outputs, without: Outputs) -> ByFrequency:
        if with_.kind == FORMS:
            return cls._of_objects(with_, without)
        keys = np.concatenate([with_.keys(), without.keys()])
        values = np.concatenate([with_.values, without.values])
        kinds, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        counts = [np.bincount(part, minlength=len(kinds)) for part in np.split(codes, [len(with_)])]
        if len(kinds) > len(keys) / 2:  # what is there once says nothing of fresh draws
            again = counts[0] + counts[1] > 1
            kinds, first, counts = kinds[again], first[again], [each[again] for each in counts]
        logs = log_ratios(counts[0], counts[1], len(with_), len(without))
        originals = dict(zip(kinds.tolist(), values[first].tolist(), strict=True))
        table = dict(zip(kinds.tolist(), logs.tolist(), strict=True))
        return cls(with_.kind, with_.width, table, originals, kinds, logs)

    @classmethod
    def _of_objects(cls, with_: Outputs, without: Outputs) -> ByFrequency:
        counts: dict[Any, list[int]] = {}
        for side, outputs in enumerate((with_, without)):
            for value in outputs.values.tolist():
                counts.setdefault(value, [0, 0])[side] += 1
        table = np.array(list(counts.values()))
        logs = log_ratios(table[:, 0], table[:, 1], len(with_), len(without))
        scores = dict(zip(counts, logs.tolist(), strict=True))
        return cls(FORMS, 0, scores, {key: key for key in counts})

    def _score(self, outputs: Outputs) -> Array:
        if self._keys is None or self._scores is None:
            find = self.scores.get
            return np.array([find(value, 0.0) for value in outputs.values.tolist()])
        keys = outputs.keys()
        if not len(self._keys):
            return np.zeros(len(keys))
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[places] == keys, self._scores[places], 0.0)

    def _members(self, threshold: float, above: bool) -> list[Any]:
        chosen = [
            (value, key)
            for key, value in self.scores.items()
            if (value >= threshold if above else value <= threshold)
        ]
        chosen.sort(key=lambda pair: pair[0], reverse=above)
        return [self.originals[key] for _, key in chosen]

    def about(self, threshold: float, above: bool) -> str:
        members = self._members(threshold, above)
        return f"output is {join_words((repr(member) for member in members), len(members))}"

    def data(self, threshold: float, above: bool) -> dict[str, object]:
        members = self._members(threshold, above)
        return {**super().data(threshold, above), "outputs": members[:1000]}


def log_ratios(hits: Array, other: Array, trials: int, others: int) -> Array:
    """ln of the ratio of frequencies, with `SMOOTHING_COUNT` imagined draws."""
    ratio = np.log((hits + SMOOTHING_COUNT) / (trials + SMOOTHING_COUNT)) - np.log(
        (other + SMOOTHING_COUNT) / (others + SMOOTHING_COUNT)
    )
    return np.asarray(ratio)


def join_words(words: Iterable[str], count: int) -> str:
    """The first few of many, joined by "or"."""
    some = [word for word, _ in zip(words, range(MAX_SHOWN_WORDS), strict=False)]
    more = f" or {count - MAX_SHOWN_WORDS} more" if count > MAX_SHOWN_WORDS else ""
    return " or ".join(some) + more


@dataclass(frozen=True, eq=False)
class ByTellingPart(Distinguisher):
    """Outputs by the one part that speaks most for "with" (sign 1) or for "without" (sign −1)."""

    part: ClassVar[str]
    lead: ClassVar[str] = "output "
    kind: str
    width: int
    sign: int

    def about(self, threshold: float, above: bool) -> str:
        if not threshold or above != (self.sign > 0):
            sign = "≥" if above else "≤"
            return f"output without a telling {self.part} (score {sign} {spell(threshold)})"
        words = self._words(abs(threshold))
        return self.lead + join_words(words, len(words))

    def _words(self, least: float) -> list[str]:
        """What outputs of at least this score have, the most telling first."""
        ranked = sorted(self._parts(), key=lambda part: -part[0])
        return [token_words(token, absent) for value, token, absent in ranked if value >= least]

    def _parts(self) -> Iterator[tuple[float, Token, bool]]:
        """How telling each part is, the part, and whether it is its absence that tells."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class ByBin(Distinguisher):
    """Numbers in bins, by the ratio of counts: the events are unions of intervals."""

    edges: Array
    scores: Array
    kind: str = NUMBERS
    width: int = 0

    @classmethod
    def learn(cls, with_: Outputs, without: Outputs) -> ByBin:
        """Bins between quantiles of both inputs together."""
        values = [each.values.astype(np.float64) for each in (with_, without)]
        both = np.concatenate(values)
        levels = np.concatenate(
            [TAIL_LEVELS, np.arange(1, BIN_COUNT) / BIN_COUNT, 1 - np.array(TAIL_LEVELS)]
        )
        edges = np.unique(np.quantile(both, np.sort(levels), method="inverted_cdf"))
        counts = [
            np.bincount(np.searchsorted(edges, part, side="right"), minlength=len(edges) + 1)
            for part in values
        ]
        return cls(edges, log_ratios(counts[0], counts[1], len(with_), len(without)))

    def _score(self, outputs: Outputs) -> Array:
        places = np.searchsorted(self.edges, outputs.values.astype(np.float64), side="right")
        return np.asarray(self.scores[places])

    def _intervals(self, threshold: float, above: bool) -> list[tuple[float, float]]:
        inside = self.scores >= threshold if above else self.scores <= threshold
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        result: list[tuple[float, float]] = []
        for bin_ in np.flatnonzero(inside):
            low, high = float(ends[bin_]), float(ends[bin_ + 1])
            if result and result[-1][1] == low:
                result[-1] = (result[-1][0], high)
            else:
                result.append((low, high))
        return result

    def about(self, threshold: float, above: bool) -> str:
        result = self._intervals(threshold, above)
        words = [f"[{spell(low)}, {spell(high)})" for low, high in result]
        return f"output in {join_words(words, len(words))}"

    def data(self, threshold: float, above: bool) -> dict[str, object]:
        result = [list(each) for each in self._intervals(threshold, above)]
        return {**super().data(threshold, above), "intervals": result}


# An ordering by the bits of the numbers in an output: sign, exponent and lowest bit. Noise that is
# added in floating point leaves traces that the value itself does not show: 1 + noise is a multiple
# of 2^-53 where noise alone, close to 0, is finer (Mironov 2012). Every float of an output is
# looked at, wherever it is. A float has two *marks*: the place of its lowest bit, with its sign;
# and its exponent, with both; 0 and −0 have one each. Whole numbers have the same, so that it shows
# whether they are odd. An output is judged by its most telling mark. Marks are counted on samples
# that are not counted afterwards.


MAX_FLOATS = 4_000_000
"""Floats of each input that are looked at."""
MAX_GLANCED_OUTPUTS = 1000
"""Outputs among which there must be a float that is no whole number."""
MAX_TABLES = 16
"""Places of floats that are kept: the ones whose marks differ most."""
DOUBT_COUNT = 10
"""A mark that this many floats have is believed by half: there are many marks."""
MIN_SHARE = 0.002
"""A place in a smaller share of the outputs is left out."""

MANTISSA_BITS, EXPONENT_BIAS, EXPONENT_COUNT = 52, 1023, 2048
LOWEST_EXPONENT = -1074
"""The lowest bit that a float can have is 2^-1074."""
NO_FLOAT_CODE = 2 * (EXPONENT_COUNT + MANTISSA_BITS)
"""The mark of 0, and of what is no finite float; the next one is that of −0."""
MAX_EXACT_INTEGER = 2**53
"""Whole numbers from here on are not all floats."""
COARSE_GRAIN, FINE_GRAIN = "coarse", "fine"


def float_marks(values: Array) -> dict[str, Array]:
    """Both marks of every float, as whole numbers."""
    if values.dtype.kind in "iu" and values.size and np.abs(values).max() >= MAX_EXACT_INTEGER:
        signed = values.astype(np.int64)
        values = np.where(
            np.abs(signed) < MAX_EXACT_INTEGER, signed, np.sign(signed) * (signed & -signed)
        )
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    power = ((bits >> np.uint64(MANTISSA_BITS)) & np.uint64(EXPONENT_COUNT - 1)).astype(np.int64)
    leading = (power > 0).astype(np.uint64) << np.uint64(MANTISSA_BITS)
    fraction = (bits & np.uint64(2**MANTISSA_BITS - 1)) | leading
    lowest = fraction & (~fraction + np.uint64(1))
    zeros = (lowest.astype(np.float64).view(np.uint64) >> np.uint64(MANTISSA_BITS)).astype(np.int64)
    zeros -= EXPONENT_BIAS
    sign = (bits >> np.uint64(63)).astype(np.int64)
    plain = (fraction != 0) & (power < EXPONENT_COUNT - 1)
    unit = np.maximum(power, 1) - 1 + zeros  # above `LOWEST_EXPONENT`
    zero = bits << np.uint64(1) == 0
    coarse = np.where(plain, 2 * unit + sign, NO_FLOAT_CODE + (zero & (sign == 1)))
    fine = np.where(plain, ((power * (MANTISSA_BITS + 1)) + zeros) * 2 + sign, 0)
    return {COARSE_GRAIN: coarse, FINE_GRAIN: fine}


TABLE_SIZES = {
    COARSE_GRAIN: NO_FLOAT_CODE + 2,
    FINE_GRAIN: EXPONENT_COUNT * (MANTISSA_BITS + 1) * 2,
}


@dataclass(frozen=True, eq=False)
class MarkTable:
    """What each mark of the floats at one place tells: sign · ln of the ratio of counts, or 0."""

    place: Place
    grain: str
    scores: Array = field(repr=False)
    strength: float

    @classmethod
    def of(cls, place: Place, grain: str, counts: list[Array], sizes: list[int]) -> MarkTable:
        spread = np.sqrt(np.maximum(counts[0] + counts[1], 1.0))
        strength = float((np.abs(counts[0] - counts[1]) / spread).max())
        total = counts[0] + counts[1]
        logs = log_ratios(counts[0], counts[1], sizes[0], sizes[1]) * (
            total / (total + DOUBT_COUNT)
        )
        return cls(place, grain, logs.astype(np.float32), strength)


@dataclass(frozen=True, eq=False)
class ByBits(ByTellingPart):
    """Outputs by their most telling float mark."""

    part: ClassVar[str] = "bit"
    lead: ClassVar[str] = ""
    tables: list[MarkTable] = field(repr=False)

    @classmethod
    def learn(cls, with_: Outputs, without: Outputs, sign: int = 1) -> ByBits:
        """Count the marks at every place on both inputs; the sign changes nothing in them."""
        most = max(2000, MAX_FLOATS // max(1, with_.width))
        samples = with_.part(0, most), without.part(0, most)
        sizes = [len(each) for each in samples]
        tables = []
        for place, columns in _float_columns(*samples):
            both = [float_marks(column) for column in columns]
            for grain in (COARSE_GRAIN, FINE_GRAIN):
                counts = [np.bincount(each[grain], minlength=TABLE_SIZES[grain]) for each in both]
                tables.append(MarkTable.of(place, grain, counts, sizes))
            if len(tables) > 4 * MAX_TABLES:
                tables = _strongest_tables(tables)
        return cls(with_.kind, with_.width, sign, _strongest_tables(tables))

    def _score(self, outputs: Outputs) -> Array:
        best = np.zeros(len(outputs))
        seen: dict[Place, tuple[Array, dict[str, Array]]] = {}
        for table in self.tables:
            if table.place not in seen:
                there, values = _read_place(outputs, table.place)
                seen[table.place] = there, float_marks(values)
            there, both = seen[table.place]
            best[there] = np.maximum(best[there], self.sign * table.scores[both[table.grain]])
        return self.sign * best

    def _words(self, least: float) -> list[str]:
        told = {
            (table.place, table.grain): np.flatnonzero(self.sign * table.scores >= least).tolist()
            for table in self.tables
        }
        coarse_words, fine_words = [], []
        for place in dict.fromkeys(table.place for table in self.tables):
            where = f"output{place_words(place)}" if place else "the output"
            coarse, fine = (told.get((place, grain), []) for grain in (COARSE_GRAIN, FINE_GRAIN))
            coarse_words += [f"{where} {words}" for words in _coarse_words(coarse)]
            fine_words += [f"{where} {words}" for words in _fine_words(fine, set(coarse))]
        return coarse_words + fine_words


def _strongest_tables(tables: list[MarkTable]) -> list[MarkTable]:
    return sorted(tables, key=lambda table: -table.strength)[: 2 * MAX_TABLES]


def _float_columns(with_: Outputs, without: Outputs) -> Iterator[tuple[Place, tuple[Array, Array]]]:
    """The floats at every place, on both inputs."""
    if with_.kind == NUMBERS:
        yield (), (with_.values, without.values)
    elif with_.kind == VECTORS:
        for column in range(with_.width):
            yield (column,), (with_.values[:, column], without.values[:, column])
    else:
        places: dict[Place, int] = {}
        for outputs in (with_, without):
            for about in outputs.descriptions:
                for place, number in about.numbers.items():
                    if _has_bits(number):
                        places[place] = places.get(place, 0) + 1
        least = max(2, MIN_SHARE * (len(with_) + len(without)))
        for place in [place for place, count in places.items() if count >= least]:
            yield place, (_read_place(with_, place)[1], _read_place(without, place)[1])


def _read_place(outputs: Outputs, place: Place) -> tuple[Array, Array]:
    """Which draws have a number at a place, and these numbers."""
    if outputs.kind == FORMS:
        numbers = [about.numbers.get(place) for about in outputs.descriptions]
        there = np.array([number is not None for number in numbers], dtype=bool)
        return there, np.array([number for number in numbers if number is not None], dtype=float)
    values = outputs.values if outputs.kind == NUMBERS else outputs.values[:, place[0]]
    return np.ones(len(outputs), dtype=bool), values


def has_bits(outputs: Outputs, *, floats: bool = True) -> bool:
    """Whether there is a number whose bits can be looked at; without floats, a whole one."""
    if outputs.kind == FORMS:
        return floats and _has_fractions(outputs)
    return floats or not _has_fractions(outputs)


def _has_fractions(outputs: Outputs) -> bool:
    """Whether there is a float that is no whole number."""
    if outputs.kind != FORMS:
        some = outputs.values[:MAX_GLANCED_OUTPUTS]
        return outputs.values.dtype.kind == "f" and bool((some != np.floor(some)).any())
    return any(
        _has_bits(number)
        for about in outputs.descriptions[:MAX_GLANCED_OUTPUTS]
        for number in about.numbers.values()
    )


def _has_bits(number: float) -> bool:
    return isinstance(number, float) and not number.is_integer()


def _coarse_words(told: list[int]) -> Iterator[str]:
    """Marks by the place of the lowest bit, in ranges."""
    for sign in (0, 1):
        kind = "negative" if sign else "positive"
        places = sorted(mark // 2 for mark in told if mark < NO_FLOAT_CODE and mark % 2 == sign)
        for _start, run in groupby(enumerate(places), key=lambda pair: pair[1] - pair[0]):
            kept = [place for _number, place in run]
            low, high = kept[0], kept[-1]
            last = f"2^{low + LOWEST_EXPONENT}" + (
                f" to 2^{high + LOWEST_EXPONENT}" if high > low else ""
            )
            yield f"is {kind} with the lowest bit {last}"
    if NO_FLOAT_CODE in told:
        yield "is 0 or not finite"
    if NO_FLOAT_CODE + 1 in told:
        yield "is −0.0"


def _fine_words(told: list[int], known: set[int]) -> Iterator[str]:
    """Marks by the exponent, too; not those that a coarse one has said."""
    for mark in told:
        power, zeros = divmod(mark // 2, MANTISSA_BITS + 1)
        lowest, sign = max(power, 1) - 1 + zeros, mark % 2
        if 2 * lowest + sign not in known and mark:
            start = (
                f"{'−' if sign else ''}{'1' if power else '0'}.…·2^{max(power, 1) - EXPONENT_BIAS}"
            )
            yield f"is {start} with the lowest bit 2^{lowest + LOWEST_EXPONENT}"


# Orderings by what an output contains or lacks: rare words, keys, values at a place. An output is
# judged by its most telling token alone, so the events are unions, "contains this word or that
# one", and reach what one draw in a thousand shows inside outputs that are otherwise all different.
# Tokens are counted on samples that are not counted afterwards.


COMMON_SHARE = 0.05
"""A token in a smaller share of the outputs says nothing by its absence."""
MAX_TOKENS = 5000
"""Tokens that are kept."""

TOKEN_PLAINNESS = {HasToken: 0, TokenAt: 1, BuiltFrom: 2, SkeletonShape: 3}


def count_tokens(outputs: Outputs) -> Counter[Token]:
    """In how many draws each token is."""
    result: Counter[Token] = Counter()
    for each in outputs.descriptions:
        result.update(each.tokens.keys())
    return result


@dataclass(frozen=True)
class TokenCounts:
    """In how many draws of each input a token is.

    Attributes:
        marks: a mark of the draws that have a token, the same for the same draws; of all draws for
            None.
        trials: draws with and without.
    """

    counts: dict[Token, list[int]]
    marks: dict[Token | None, int]
    trials: tuple[int, int]

    @classmethod
    def of(cls, with_: Outputs, without: Outputs) -> TokenCounts:
        bits = random.Random(2023)
        counts: dict[Token, list[int]] = {}
        marks: dict[Token | None, int] = {None: 0}
        for side, outputs in enumerate((with_, without)):
            for about in outputs.descriptions:
                mark = bits.getrandbits(64)
                marks[None] ^= mark
                for token in about.tokens:
                    counts.setdefault(token, [0, 0])[side] += 1
                    marks[token] = marks.get(token, 0) ^ mark
        return cls(counts, marks, (len(with_), len(without)))

    def distinct_tokens(self) -> dict[int, Token]:
        """Tokens that are in some draws and not in all, by their mark: of those that are in the
        same draws the plainest."""
        result: dict[int, Token] = {}
        for token in sorted(self.counts, key=lambda token: TOKEN_PLAINNESS[type(token)]):
            if 1 < sum(self.counts[token]) < sum(self.trials):
                result.setdefault(self.marks[token], token)
        return result


@dataclass(frozen=True, eq=False)
class ByToken(ByTellingPart):
    """Forms by their most telling token.

    Attributes:
        present, absent: the ln of the ratio of counts, times the sign, where it is positive.
    """

    part: ClassVar[str] = "part"
    present: dict[Token, float] = field(repr=False)
    absent: dict[Token, float] = field(repr=False)

    @classmethod
    def learn(cls, counted: TokenCounts, sign: int) -> ByToken:
        counts, marks, trials = counted.counts, counted.marks, counted.trials
        by_draws = counted.distinct_tokens()
        tokens = list(by_draws.values())
        other = [marks[None] ^ mark not in by_draws for mark in by_draws]
        table = np.array([counts[token] for token in tokens]).reshape(-1, 2).T
        here = sign * log_ratios(table[0], table[1], *trials)
        gone = sign * log_ratios(trials[0] - table[0], trials[1] - table[1], *trials)
        common = (table.sum(axis=0) >= COMMON_SHARE * sum(trials)) & np.array(other, dtype=bool)
        kept = _best_tokens(tokens, here), _best_tokens(tokens, np.where(common, gone, 0.0))
        return cls(FORMS, 0, sign, *kept)

    def _score(self, outputs: Outputs) -> Array:
        known: dict[int, float] = {}
        scores = np.empty(len(outputs))
        for number, about in enumerate(outputs.descriptions):
            score = known.get(id(about))
            if score is None:
                result = [self.present[token] for token in about.tokens if token in self.present]
                lacks = (value for token, value in self.absent.items() if token not in about.tokens)
                score = known[id(about)] = max(max(result, default=0.0), next(lacks, 0.0))
            scores[number] = score
        return self.sign * scores

    def _parts(self) -> Iterator[tuple[float, Token, bool]]:
        for absent, tokens in ((False, self.present), (True, self.absent)):
            yield from ((value, token, absent) for token, value in tokens.items())


def _best_tokens(tokens: list[Token], scores: Array) -> dict[Token, float]:
    order = np.argsort(-scores, kind="stable")[:MAX_TOKENS]
    return {tokens[index]: float(scores[index]) for index in order.tolist() if scores[index] > 0}


# An ordering of vectors by the values in columns of codes: numbers that come again. An output is
# judged by its most telling value alone. Values are counted on samples that are not counted
# afterwards.


REPEATED_SHARE = 0.05
"""A column whose values number at most this share of the draws is one of codes."""
GLANCE_DRAWS = 5000
"""Draws that are looked at first for values that come again."""
SENTINEL_SHARE, MIN_SENTINEL_CELLS, MAX_SENTINELS = 0.0005, 10, 64
"""A value in this share of a column, and so often, is a code among numbers of which hardly any
comes again; this many of them are kept."""


def code_values(column: Array) -> tuple[Array, Array] | None:
    """The values of a column that come again, in order, and how often each is there: all of them in
    a column of codes, the commonest in another; nothing where there are none.

    Of `GLANCE_DRAWS` draws with v values at least about GLANCE²/2v come again: where not half as
    many do, the column is not one of codes. It is sorted all the same where a value of the first
    draws comes again.
    """
    most = REPEATED_SHARE * len(column)
    some = column[:: max(1, len(column) // GLANCE_DRAWS)]
    again = len(some) - len(np.unique(some))
    if not again:
        return None
    values, counts = np.unique(column, return_counts=True)
    if again >= min(len(some), len(some) ** 2 / (2 * most)) / 4 and len(values) <= most:
        return (values, counts) if len(values) > 1 else None
    often = np.flatnonzero(counts >= max(MIN_SENTINEL_CELLS, SENTINEL_SHARE * len(column)))
    kept = np.sort(often[np.argsort(-counts[often], kind="stable")[:MAX_SENTINELS]])
    return (values[kept], counts[kept]) if len(kept) else None


@dataclass(frozen=True, eq=False)
class ByCell(ByTellingPart):
    """Vectors by the most telling value in a column whose values come again.

    Attributes:
        columns: the values of a column, in order, and the ln of the ratio of their counts.
    """

    part: ClassVar[str] = "value"
    columns: dict[int, tuple[Array, Array]] = field(repr=False)

    @classmethod
    def learn(cls, with_: Outputs, without: Outputs, sign: int = 1) -> ByCell:
        """Count the values of each column on both inputs; the sign changes nothing in them."""
        columns = {}
        for column in range(with_.width):
            samples = [each.values[:, column].astype(np.float64) for each in (with_, without)]
            known = code_values(np.concatenate(samples))
            if known is not None:
                found = [_find_values(known[0], cells) for cells in samples]
                hits, other = (
                    np.bincount(at[there], minlength=len(known[0])) for at, there in found
                )
                columns[column] = known[0], log_ratios(hits, other, len(with_), len(without))
        return cls(VECTORS, with_.width, sign, columns)

    def _score(self, outputs: Outputs) -> Array:
        best = np.zeros(len(outputs))
        for column, (values, logs) in self.columns.items():
            places, found = _find_values(values, outputs.values[:, column].astype(np.float64))
            best = np.maximum(best, np.where(found, self.sign * logs[places], 0.0))
        return self.sign * best

    def _parts(self) -> Iterator[tuple[float, Token, bool]]:
        for column, (values, logs) in self.columns.items():
            for value, log in zip(values.tolist(), logs.tolist(), strict=True):
                yield self.sign * log, TokenAt((column,), value), False


def _find_values(values: Array, cells: Array) -> tuple[Array, Array]:
    places = np.minimum(np.searchsorted(values, cells), len(values) - 1)
    return places, values[places] == cells
