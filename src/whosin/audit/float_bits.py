"""An ordering by the bits of the floats in an output: sign, exponent and lowest bit.

Contract: noise that is added in floating point leaves traces that the value itself does not show:
1 + noise is a multiple of 2^-53 where noise alone, close to 0, is finer (Mironov 2012). Every float
of an output is looked at, wherever it is. A float has two *marks*: the place of its lowest bit,
with its sign; and its exponent, with both. An output is judged by its most telling mark. Marks are
counted on samples that are not counted afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from whosin.audit.describing import Place, place_words
from whosin.audit.orderings import Ordering, listed, log_ratios
from whosin.audit.outputs import FORMS, NUMBERS, VECTORS, Outputs
from whosin.exact import Array

LOOKED = 4_000_000
"""Floats of each world that are looked at."""
LEAST_LOOKED = 1000
"""Outputs among which there must be a float that is no whole number."""
KEPT = 16
"""Places of floats that are kept: the ones whose marks differ most."""
DOUBT = 10
"""A mark that this many floats have is believed by half: there are many marks."""
FEWEST = 0.002
"""A place in a smaller share of the outputs is left out."""

MANTISSA, BIAS, POWERS = 52, 1023, 2048
LOWEST = -1074
"""The lowest bit that a float can have is 2^-1074."""
NOTHING = 2 * (POWERS + MANTISSA)
"""The mark of 0, and of what is no finite float."""
COARSE, FINE = "coarse", "fine"


def marks(values: Array) -> dict[str, Array]:
    """Both marks of every float, as whole numbers."""
    bits = (np.ascontiguousarray(values, dtype=np.float64) + 0.0).view(np.uint64)
    power = ((bits >> np.uint64(MANTISSA)) & np.uint64(POWERS - 1)).astype(np.int64)
    leading = (power > 0).astype(np.uint64) << np.uint64(MANTISSA)
    fraction = (bits & np.uint64(2**MANTISSA - 1)) | leading
    lowest = fraction & (~fraction + np.uint64(1))
    zeros = (lowest.astype(np.float64).view(np.uint64) >> np.uint64(MANTISSA)).astype(np.int64)
    zeros -= BIAS
    sign = (bits >> np.uint64(63)).astype(np.int64)
    plain = (fraction != 0) & (power < POWERS - 1)
    unit = np.maximum(power, 1) - 1 + zeros  # above `LOWEST`
    coarse = np.where(plain, 2 * unit + sign, NOTHING)
    fine = np.where(plain, ((power * (MANTISSA + 1)) + zeros) * 2 + sign, 0)
    return {COARSE: coarse, FINE: fine}


SIZES = {COARSE: NOTHING + 1, FINE: POWERS * (MANTISSA + 1) * 2}


@dataclass(frozen=True, eq=False)
class MarkTable:
    """What each mark of the floats at one place tells: sign · ln of the ratio of counts, or 0."""

    place: Place
    grain: str
    scores: Array = field(repr=False)
    strength: float

    @classmethod
    def of(cls, place: Place, grain: str, counts: list[Array], sizes: list[int]) -> MarkTable:
        """From the counts of each mark, with and without."""
        spread = np.sqrt(np.maximum(counts[0] + counts[1], 1.0))
        strength = float((np.abs(counts[0] - counts[1]) / spread).max())
        total = counts[0] + counts[1]
        logs = log_ratios(counts[0], counts[1], sizes[0], sizes[1]) * (total / (total + DOUBT))
        return cls(place, grain, logs.astype(np.float32), strength)


@dataclass(frozen=True, eq=False)
class ByBits(Ordering):
    """Outputs by the float mark that speaks most for "with" (sign 1) or "without" (sign −1)."""

    kind: str
    width: int
    sign: int
    tables: list[MarkTable] = field(repr=False)

    @classmethod
    def learn(cls, with_: Outputs, without: Outputs, sign: int = 1) -> ByBits:
        """Count the marks at every place in both worlds; the sign changes nothing in them."""
        most = max(2000, LOOKED // max(1, with_.width))
        worlds = with_.part(0, most), without.part(0, most)
        sizes = [len(each) for each in worlds]
        tables = []
        for place, columns in _columns(*worlds):
            both = [marks(column) for column in columns]
            for grain in (COARSE, FINE):
                counts = [np.bincount(each[grain], minlength=SIZES[grain]) for each in both]
                tables.append(MarkTable.of(place, grain, counts, sizes))
            if len(tables) > 4 * KEPT:
                tables = _strongest(tables)
        return cls(with_.kind, with_.width, sign, _strongest(tables))

    def _score(self, outputs: Outputs) -> Array:
        best = np.zeros(len(outputs))
        seen: dict[Place, tuple[Array, dict[str, Array]]] = {}
        for table in self.tables:
            if table.place not in seen:
                there, values = _at(outputs, table.place)
                seen[table.place] = there, marks(values)
            there, both = seen[table.place]
            best[there] = np.maximum(best[there], self.sign * table.scores[both[table.grain]])
        return self.sign * best

    def about(self, threshold: float, above: bool) -> str:
        if not threshold or above != (self.sign > 0):
            return f"output without a telling bit (score {'≥' if above else '≤'} {threshold:.6g})"
        told = {
            (table.place, table.grain): np.flatnonzero(self.sign * table.scores >= abs(threshold))
            for table in self.tables
        }
        parts = []
        for place in dict.fromkeys(table.place for table in self.tables):
            where = f"output{place_words(place)}" if place else "the output"
            coarse = told.get((place, COARSE), np.zeros(0, dtype=int)).tolist()
            fine = told.get((place, FINE), np.zeros(0, dtype=int)).tolist()
            parts += [(0, f"{where} {words}") for words in _coarse_words(coarse)]
            parts += [(1, f"{where} {words}") for words in _fine_words(fine, set(coarse))]
        parts.sort(key=lambda part: part[0])
        return listed((words for _, words in parts), len(parts))


def _strongest(tables: list[MarkTable]) -> list[MarkTable]:
    return sorted(tables, key=lambda table: -table.strength)[: 2 * KEPT]


def _columns(with_: Outputs, without: Outputs) -> Iterator[tuple[Place, tuple[Array, Array]]]:
    """The floats at every place, in both worlds."""
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
        least = max(2, FEWEST * (len(with_) + len(without)))
        for place in [place for place, count in places.items() if count >= least]:
            yield place, (_at(with_, place)[1], _at(without, place)[1])


def _at(outputs: Outputs, place: Place) -> tuple[Array, Array]:
    """Which draws have a number at a place, and these numbers."""
    if outputs.kind == FORMS:
        numbers = [about.numbers.get(place) for about in outputs.descriptions]
        there = np.array([number is not None for number in numbers], dtype=bool)
        return there, np.array([number for number in numbers if number is not None], dtype=float)
    values = outputs.values if outputs.kind == NUMBERS else outputs.values[:, place[0]]
    return np.ones(len(outputs), dtype=bool), values


def has_floats(outputs: Outputs) -> bool:
    """Whether there is a float whose bits can be looked at."""
    if outputs.kind != FORMS:
        some = outputs.values[:LEAST_LOOKED]
        return outputs.values.dtype.kind == "f" and bool((some != np.floor(some)).any())
    return any(
        _has_bits(number)
        for about in outputs.descriptions[:LEAST_LOOKED]
        for number in about.numbers.values()
    )


def _has_bits(number: float) -> bool:
    return isinstance(number, float) and not number.is_integer()


def _coarse_words(told: list[int]) -> Iterator[str]:
    """Marks by the place of the lowest bit, in ranges."""
    for sign in (0, 1):
        places = [mark // 2 for mark in told if mark < NOTHING and mark % 2 == sign]
        for low, high in _ranges(places):
            kind = "negative" if sign else "positive"
            last = f"2^{low + LOWEST}" + (f" to 2^{high + LOWEST}" if high > low else "")
            yield f"is {kind} with the lowest bit {last}"
    if NOTHING in told:
        yield "is 0 or not finite"


def _fine_words(told: list[int], known: set[int]) -> Iterator[str]:
    """Marks by the exponent, too; not those that a coarse one has said."""
    for mark in told:
        power, zeros = divmod(mark // 2, MANTISSA + 1)
        lowest, sign = max(power, 1) - 1 + zeros, mark % 2
        if 2 * lowest + sign not in known and mark:
            start = f"{'−' if sign else ''}{'1' if power else '0'}.…·2^{max(power, 1) - BIAS}"
            yield f"is {start} with the lowest bit 2^{lowest + LOWEST}"


def _ranges(places: list[int]) -> Iterator[tuple[int, int]]:
    start = previous = None
    for each in sorted(places):
        if start is None or previous is None:
            start = each
        elif each != previous + 1:
            yield start, previous
            start = each
        previous = each
    if start is not None and previous is not None:
        yield start, previous
