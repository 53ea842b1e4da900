"""Ways to order outputs from "without" to "with", each learnt from samples.

Contract: an ordering gives every output a score; the events that are tried are {score ≥ t} and
{score ≤ t}. It is learnt on samples that are used for nothing else, so it may be as clever, or as
wrong, as it likes: a poor ordering finds less, and never invents anything. An output of another
kind than it was learnt on has the score NaN, which is in no event. `about` puts an event in words,
`data` as plain data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whosin.audit.describing import Place, place_words
from whosin.audit.outputs import FORMS, NUMBERS, VECTORS, Outputs
from whosin.exact import Array

SHOWN = 6
"""The most outputs, or intervals, of an event that are put in words."""
SMOOTH = 0.5
"""Added to each count, so that one sighting of a rare output is no proof."""
BINS = 64
TAILS = (1e-4, 3e-4, 1e-3, 2e-3, 5e-3)
"""Bins of equal frequency, and finer ones in the tails, where the largest ratios often are."""
SLICE = 20_000
"""Forms that are described at a time, to save memory."""


class Ordering(ABC):
    """A score for every output: high where "with" seems more likely than "without".

    Attributes:
        kind, width: of the outputs that it orders.
    """

    kind: str
    width: int

    def score(self, outputs: Outputs) -> Array:
        """A number per draw."""
        if outputs.kind == FORMS and len(outputs) > SLICE:
            starts = range(0, len(outputs), SLICE)
            return np.concatenate([self.score(outputs.part(at, at + SLICE)) for at in starts])
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
        """The event as plain data."""
        return {"words": self.about(threshold, above)}


def _half_line(threshold: float, above: bool, sign: int) -> tuple[str, str, float]:
    """{sign · value ≥ t}, or ≤ t, as a sign, a key and a limit of the value itself."""
    up = above == (sign > 0)
    return ("≥", "at_least", sign * threshold) if up else ("≤", "at_most", sign * threshold)


@dataclass(frozen=True, eq=False)
class ByValue(Ordering):
    """Numbers as they are (sign 1), or the least first (sign −1): the events are half-lines."""

    kind: str = NUMBERS
    width: int = 0
    sign: int = 1

    def _score(self, outputs: Outputs) -> Array:
        return self.sign * outputs.values.astype(np.float64)

    def about(self, threshold: float, above: bool) -> str:
        symbol, _key, limit = _half_line(threshold, above, self.sign)
        return f"output {symbol} {limit:.6g}"

    def data(self, threshold: float, above: bool) -> dict[str, object]:
        _symbol, key, limit = _half_line(threshold, above, self.sign)
        return {**super().data(threshold, above), key: limit}


@dataclass(frozen=True, eq=False)
class ByPart(Ordering):
    """Outputs by the number at one place; `missing` where there is none."""

    kind: str
    width: int
    place: Place
    missing: float
    sign: int = 1

    def _score(self, outputs: Outputs) -> Array:
        if self.kind == VECTORS:
            return self.sign * outputs.values[:, self.place[0]].astype(np.float64)
        values = [about.numbers.get(self.place, self.missing) for about in outputs.descriptions]
        return self.sign * np.array(values, dtype=np.float64)

    def about(self, threshold: float, above: bool) -> str:
        symbol, _key, limit = _half_line(threshold, above, self.sign)
        where = "the output" if not self.place else f"output{place_words(self.place)}"
        return f"{where} {symbol} {limit:.6g}"

    def data(self, threshold: float, above: bool) -> dict[str, object]:
        _symbol, key, limit = _half_line(threshold, above, self.sign)
        place = [str(step) for step in self.place]
        return {**super().data(threshold, above), "place": place, key: limit}


@dataclass(frozen=True, eq=False)
class ByFrequency(Ordering):
    """Outputs that come again, by the ratio of their counts; unseen ones are in the middle."""

    kind: str
    width: int
    scores: dict[Any, float]
    originals: dict[Any, Any] = field(repr=False)
    _keys: Array | None = field(repr=False, default=None)
    _scores: Array | None = field(repr=False, default=None)

    @classmethod
    def learn(cls, with_: Outputs, without: Outputs) -> ByFrequency:
        """Count outputs in both worlds."""
        if with_.kind == FORMS:
            return cls._of_objects(with_, without)
        keys = np.concatenate([with_.keys(), without.keys()])
        values = np.concatenate([with_.values, without.values])
        kinds, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        counts = [np.bincount(part, minlength=len(kinds)) for part in np.split(codes, [len(with_)])]
        logs = log_ratios(counts[0], counts[1], len(with_), len(without))
        originals = dict(zip(kinds.tolist(), values[first].tolist(), strict=True))
        table = dict(zip(kinds.tolist(), logs.tolist(), strict=True))
        return cls(with_.kind, with_.width, table, originals, kinds, logs)

    @classmethod
    def _of_objects(cls, with_: Outputs, without: Outputs) -> ByFrequency:
        counts: dict[Any, list[int]] = {}
        for world, outputs in enumerate((with_, without)):
            for value in outputs.values.tolist():
                counts.setdefault(value, [0, 0])[world] += 1
        table = np.array(list(counts.values()))
        logs = log_ratios(table[:, 0], table[:, 1], len(with_), len(without))
        scores = dict(zip(counts, logs.tolist(), strict=True))
        return cls(FORMS, 0, scores, {key: key for key in counts})

    def _score(self, outputs: Outputs) -> Array:
        if self._keys is None or self._scores is None:
            find = self.scores.get
            return np.array([find(value, 0.0) for value in outputs.values.tolist()])
        keys = outputs.keys()
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
        return f"output is {listed((repr(member) for member in members), len(members))}"

    def data(self, threshold: float, above: bool) -> dict[str, object]:
        members = self._members(threshold, above)
        return {**super().data(threshold, above), "outputs": members[:1000]}


def log_ratios(hits: Array, other: Array, trials: int, others: int) -> Array:
    """ln of the ratio of frequencies, with `SMOOTH` imagined draws."""
    ratio = np.log((hits + SMOOTH) / (trials + SMOOTH)) - np.log(
        (other + SMOOTH) / (others + SMOOTH)
    )
    return np.asarray(ratio)


def listed(words: Iterable[str], count: int) -> str:
    """The first few of many, joined by "or"."""
    some = [word for word, _ in zip(words, range(SHOWN), strict=False)]
    more = f" or {count - SHOWN} more" if count > SHOWN else ""
    return " or ".join(some) + more


@dataclass(frozen=True, eq=False)
class ByBin(Ordering):
    """Numbers in bins, by the ratio of counts: the events are unions of intervals."""

    edges: Array
    scores: Array
    kind: str = NUMBERS
    width: int = 0

    @classmethod
    def learn(cls, with_: Outputs, without: Outputs) -> ByBin:
        """Bins between quantiles of both worlds together."""
        values = [each.values.astype(np.float64) for each in (with_, without)]
        both = np.concatenate(values)
        levels = np.concatenate([TAILS, np.arange(1, BINS) / BINS, 1 - np.array(TAILS)])
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
        return f"output in {listed((f'[{a:.6g}, {b:.6g})' for a, b in result), len(result))}"

    def data(self, threshold: float, above: bool) -> dict[str, object]:
        result = [list(each) for each in self._intervals(threshold, above)]
        return {**super().data(threshold, above), "intervals": result}
