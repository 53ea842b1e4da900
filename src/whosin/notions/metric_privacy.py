"""Metric privacy (d-privacy; Chatzikokolakis et al. 2013): how much may depend on how far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from whosin.documents import check_keys, read_object
from whosin.errors import InvalidInput, UnknownName, Unsupported
from whosin.exact import Array, ball, ball_up, precisely, ranged, rational
from whosin.mechanisms import Channel, as_channel
from whosin.notions.base import Notion, exact_or_up
from whosin.notions.certain import bracket
from whosin.notions.differential_privacy import DifferentialPrivacy
from whosin.notions.gains.base import world_name
from whosin.notions.level import Level, Witness
from whosin.spaces import Records, Space
from whosin.validation import listed

NAMED = ("hamming", "difference")
MOST = 1 << 12
"""Worlds of a metric that is written out."""
NEAR = 2.0**-38
"""More than the relative error of a logarithm of a ratio of floats."""

Pairs = tuple[Array, Array, list[Any], Array]
"""Worlds, worlds, their distances (exact), and in floats."""


@dataclass(frozen=True)
class MetricPrivacy(Notion):
    """ln Pr[y|x] − ln Pr[y|x'] ≤ ε d(x, x') for all worlds, in nats per unit of distance.

    Args:
        metric: "hamming" (rows or entities that differ), "difference" (on records the sum of
            |x_i − x_i'|), or a list of lists: the distance between any two worlds, in world order;
            infinity (or "inf") where nothing is asked. It must be symmetric and 0 from a world to
            itself; worlds at distance 0 must look alike.
    """

    metric: object = "hamming"
    unit: ClassVar[str] = "ε"
    about_records: ClassVar[None] = None  # type: ignore[misc]
    short_names: ClassVar[tuple[str, ...]] = ("d-privacy",)

    def __post_init__(self) -> None:
        if isinstance(self.metric, str):
            if self.metric not in NAMED:
                raise UnknownName("metric", self.metric, NAMED)
        else:
            object.__setattr__(self, "metric", _matrix(self.metric))

    @property
    def title(self) -> str:
        name = self.metric if isinstance(self.metric, str) else "a metric on worlds"
        return f"Metric privacy ({name})"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = as_channel(mechanism, space)
        if self.metric == "hamming":
            relation = "replace" if isinstance(channel.space, Records) else "add-remove"
            return replace(DifferentialPrivacy(relation).measure(channel), notion=self)
        channel = channel.on_worlds()
        channel.need_finite("metric privacy")
        search = _Search(channel)
        for pairs in _pairs(self.metric, channel.space):
            search.add(pairs)
        return search.level(self)


def read_metric(text: str | Path) -> object:
    """A metric by its name, or from a file: an object with `distances`, a list of lists."""
    if str(text) in NAMED:
        return str(text)
    if not str(text).endswith(".json"):
        raise UnknownName("metric", str(text), (*NAMED, "a file that ends in .json"))
    data = read_object(Path(text), "metric")
    check_keys(data, ("distances",), "metric")
    return data.get("distances")


def _matrix(metric: object) -> tuple[tuple[Fraction | float, ...], ...]:
    accepted = "hamming, difference, or rows with the distance to each world"
    rows = [listed(row, "metric", accepted) for row in listed(metric, "metric", accepted)]
    if not rows or any(len(row) != len(rows) for row in rows):
        sizes = f"{len(rows)} rows of {sorted({len(row) for row in rows})} numbers"
        raise InvalidInput(
            "metric", "the same number of rows and columns, one for each world", sizes
        )
    result = tuple(tuple(_distance(each) for each in row) for row in rows)
    for one, row in enumerate(result):
        if row[one] != 0:
            raise InvalidInput("metric", "0 from a world to itself", f"world {one}")
        for two, distance in enumerate(row):
            if distance != result[two][one]:
                pair = f"two distances of worlds {one} and {two}"
                raise InvalidInput("metric", "symmetric", pair)
    return result


def _distance(value: object) -> Fraction | float:
    if value in (math.inf, "inf"):
        return math.inf
    return ranged(value, "metric", "at least 0")


def _pairs(metric: object, space: Space) -> Iterator[Pairs]:
    """Pairs of worlds that decide: all of them, or where steps of distance 1 lead everywhere, those
    (a ratio along a path is a product of its steps)."""
    if not isinstance(metric, str):
        yield from _listed_pairs(metric, space)
        return
    if not isinstance(space, Records):
        raise Unsupported("differences are between values of rows: this metric needs Records")
    worlds = np.arange(space.worlds)
    for row in range(space.rows):
        stride = space.stride(row)
        value = worlds // stride % space.values
        first = worlds[value + 1 < space.values]
        yield first, first + stride, [1] * len(first), np.ones(len(first))


def _listed_pairs(metric: Any, space: Space) -> Iterator[Pairs]:
    if len(metric) != space.worlds:
        raise InvalidInput("metric", f"{space.worlds} rows, one for each world", len(metric))
    if space.worlds > MOST:
        raise Unsupported(f"a metric that is written out has at most {MOST:,} worlds")
    for one, row in enumerate(metric):
        others = np.array([two for two in range(one) if row[two] != math.inf], dtype=int)
        if others.size:
            distances = [row[two] for two in others]
            floats = np.array([float(each) for each in distances])
            yield np.full(len(others), one), others, distances, floats


class _Search:
    """The pairs and outputs whose level may be the largest, found in floats.

    The logarithm of a ratio near 1 is taken of its distance from 1, so that floats are compared
    with a relative error alone; entries that are rationals were rounded once, which is the
    absolute part.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel, self.table = channel, channel.wide
        self.rounding = 0.0 if channel.exact is None else 2.0**-49
        self.least, self.whole = 0.0, True
        self.cases: list[tuple[float, Any, tuple[int, int, int]]] = []

    def add(self, pairs: Pairs) -> None:
        """Keep what may be largest among these pairs."""
        first, second, distances, floats = pairs
        top = np.maximum(self.table[first], self.table[second])
        bottom = np.minimum(self.table[first], self.table[second])
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.log(top) - np.log(bottom)
            away = np.where(top <= 2 * bottom, np.log1p((top - bottom) / bottom), far)
            error = away * NEAR + self.rounding
            high, low = (each / floats[:, None] for each in (away + error, away - error))
        if self.channel.exact is not None:
            alike = (self.channel.exact[first] == self.channel.exact[second]).astype(bool)
        else:
            alike = top == bottom
        high, low = (np.where(alike | np.isnan(each), 0.0, each) for each in (high, low))
        self.least = max(self.least, float(low.max(initial=0.0)))
        largest = np.argwhere((high >= self.least) & (high > 0))
        if self.least == math.inf:
            largest = largest[:1]
        for pair, y in largest:
            if len(self.cases) >= MOST:
                self.cases = [case for case in self.cases if case[0] >= self.least]
                self.whole &= len(self.cases) < MOST
            if len(self.cases) < MOST:
                indices = (int(first[pair]), int(second[pair]), int(y))
                self.cases.append((float(high[pair, y]), distances[pair], indices))
            else:
                self.most = max(getattr(self, "most", 0.0), float(high[pair, y]))

    def level(self, notion: Notion) -> Level:
        """The largest level, certified; a bracket where too many cases tie to look at each."""
        best: tuple[float, tuple[int, int, int]] | None = None
        for high, distance, case in self.cases:
            if high >= self.least:
                value = _level(self.channel, distance, case)
                if best is None or value > best[0]:
                    best = value, case
        if best is None:
            return Level(0.0, None, True, (), notion=notion)
        most = best[0] if self.whole else max(best[0], math.nextafter(self.most, math.inf))
        exact, lower = bracket(most, best[0])
        return Level(most, _witness(self.channel, best[1]), exact, (), lower, notion=notion)


def _level(channel: Channel, distance: Any, case: tuple[int, int, int]) -> float:
    """|ln of the ratio| / distance, rounded up."""
    one, two, output = case
    top, bottom = channel.entries.at(one, output), channel.entries.at(two, output)
    if top == bottom:
        return 0.0
    if distance == 0 or top == 0 or bottom == 0:
        return math.inf
    with precisely():
        return ball_up(abs(ball(top / bottom).log()) / ball(distance))


def _witness(channel: Channel, case: tuple[int, int, int]) -> Witness:
    """Two worlds, as likely as each other before, and the output that tells them apart."""
    one, two, output = case
    if channel.entries.at(one, output) < channel.entries.at(two, output):
        one, two = two, one
    top, bottom = (rational(channel.entries.at(world, output)) for world in (one, two))
    ratio = math.inf if bottom == 0 else top / bottom
    exact = channel.exact is not None
    return Witness(
        output=channel.outputs[output],
        prior=exact_or_up(Fraction(1, 2), exact),
        posterior=exact_or_up(top / (top + bottom), exact),
        ratio=exact_or_up(ratio, exact),
        guess=world_name(channel.space, one),
        against=world_name(channel.space, two),
    )
