"""Samples that somebody else drew: refuse the ones that are plainly not independent draws.

Contract: a refusal of honest draws has a chance of about one in a million, unless they are floats
of full precision that come again and are on no grid, such as √count: whoever asks then says that
they may. What is not refused may still be dependent. Looked for: blocks of outputs that come again,
in one sample or in both (a file that was cycled, or copied); full-precision floats that come again
here and there (a bootstrap); draws that predict later ones (a chain, a sorted file); draws that
predict those of the other sample (one seed for both).
"""

from __future__ import annotations

import math

import numpy as np

from whosin.audit.outputs import FORMS, NUMBERS, Outputs, alike
from whosin.errors import InvalidInput
from whosin.exact import Array

LAGS = (1, 2, 3, 5, 10, 20, 50, 100)
FAR = 18.0
"""Chance reaches a rank correlation with a probability of about e^-18."""
LONGEST = 400
"""Outputs in a block that is looked for; nearly constant samples would need longer ones."""
DIGITS, LAST_BITS = 12, 8
"""A float that differs from its first 12 digits in more than its last bits was not rounded: chance
does not draw it twice, unless all are on a grid."""
FINE, COARSE = 1e-10, 1e-4
"""Of the range of numbers: what arithmetic with floats may blur, and the least step of a grid."""
REPEATED, OFTEN = 0.02, 20
"""A share of unrounded floats that come again, each at most this often, is that of a bootstrap."""
COLUMNS = 16
RECENT = 5_000
"""Draws of a mechanism that are looked at for a memory."""


def check_independent(with_: Outputs, without: Outputs, *, repeats: bool = False) -> None:
    """Refuse samples that are plainly not independent draws of two worlds.

    Args:
        repeats: unrounded floats may come again: the mechanism has few outputs.
    """
    first, second = alike([with_, without])
    codes = _codes(first, second)
    _check_blocks(*codes)
    if not repeats:
        for outputs, name in ((first, "with"), (second, "without")):
            _check_bootstrap(outputs, name)
    series = [_series(each) for each in (first, second)]
    for name, columns in zip(("with", "without"), series, strict=True):
        lag = _memory(columns)
        if lag is not None:
            got = f"draws that depend on the one {lag} before (sorted, or a chain)"
            raise _refused(name, got)
    least = min(len(first), len(second))
    for one, two in zip(*series, strict=True):
        if _far(one[:least], two[:least]):
            raise _refused("with and without", "draws that go together (one seed for both)")


def check_memory(outputs: Outputs) -> None:
    """Refuse draws of a mechanism that depend on those before them: it has a state."""
    lag = _memory(_series(outputs.part(0, RECENT)))
    if lag is not None:
        accepted = "a function whose draws do not depend on earlier ones"
        raise InvalidInput("mechanism", accepted, f"draws that depend on the one {lag} before")


def _memory(columns: list[Array]) -> int | None:
    """How many draws before, where a column of ranks depends on earlier draws."""
    for column in columns:
        for lag in LAGS:
            if len(column) > 4 * lag and _far(column[:-lag], column[lag:]):
                return lag
    return None


def _refused(name: str, got: str) -> InvalidInput:
    return InvalidInput(f"samples {name}", "independent draws, each made afresh", got)


def _codes(first: Outputs, second: Outputs) -> tuple[Array, Array]:
    """Equal outputs of both samples as equal whole numbers."""
    if first.kind == FORMS:
        known: dict[object, int] = {}
        both = [known.setdefault(item, len(known)) for item in (*first.values, *second.values)]
        codes = np.array(both, dtype=np.int64)
    else:
        keys = np.concatenate([first.keys(), second.keys()])
        codes = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return codes[: len(first)], codes[len(first) :]


def _check_blocks(first: Array, second: Array) -> None:
    """Refuse a block that comes again, so long that chance does not repeat it."""
    codes = np.concatenate([first, second])
    kinds = int(codes.max()) + 1
    shares = [np.bincount(each, minlength=kinds) / len(each) for each in (first, second)]
    # Two draws of one world are alike at least as often as one of each world.
    same = max(float((each**2).sum()) for each in shares)
    if same >= 1:
        return
    needed = (2 * math.log(len(codes)) + math.log(1e12)) / -math.log(max(same, 1e-12))
    length = max(2, math.ceil(needed))
    if length > min(LONGEST, len(first) // 2, len(second) // 2):
        return
    marks = np.random.default_rng(2023).integers(1, 2**62, kinds, dtype=np.uint64)
    blocks = [_blocks(marks[each], length) for each in (first, second)]
    for name, own in zip(("with", "without"), blocks, strict=True):
        if len(np.unique(own)) < len(own):
            raise _refused(name, f"a block of {length} or more outputs that comes again")
    if len(np.unique(np.concatenate(blocks))) < sum(len(each) for each in blocks):
        got = f"a block of {length} or more outputs that is in both"
        raise _refused("with and without", got)


def _blocks(marks: Array, length: int) -> Array:
    """A mark of every block of this many outputs in a row."""
    count = len(marks) - length + 1
    result = np.zeros(count, dtype=np.uint64)
    for step in range(length):
        result = result * np.uint64(0x9E3779B97F4A7C15) + marks[step : step + count]
    return result


def _check_bootstrap(outputs: Outputs, name: str) -> None:
    if outputs.kind == FORMS or outputs.values.dtype.kind != "f":
        return
    keys, index, counts = np.unique(outputs.keys(), return_index=True, return_counts=True)
    again = (counts > 1) & (counts <= OFTEN)
    share = counts[again].sum() / len(outputs)
    if share < REPEATED:
        return
    values = outputs.values[index].reshape(len(keys), -1)[again][:2000]
    if any(_unrounded(column) and not _on_a_grid(column) for column in values.T):
        got = f"{share:.0%} unrounded numbers that come again (a bootstrap?)"
        raise _refused(name, f"{got}; say repeats=True where the mechanism has few outputs")


def _unrounded(values: Array) -> bool:
    """Whether most have all the digits of a float. What arithmetic does to the last bits of a
    rounded number (0.1 × 3) adds none."""
    rounded = np.array([float(f"{value:.{DIGITS}g}") for value in values.tolist()])
    with np.errstate(invalid="ignore"):
        return bool(
            np.mean(np.abs(values - rounded) > LAST_BITS * np.spacing(np.abs(values))) > 0.5
        )


def _on_a_grid(values: Array) -> bool:
    """Whether all are whole multiples of one step apart: Euclid's algorithm on their distances."""
    distances = np.unique(values[np.isfinite(values)])
    distances = distances - distances[:1]
    if len(distances) < 3:
        return True  # two numbers are on some grid
    fine, step = float(distances[-1]) * FINE, 0.0
    for distance in distances[1:].tolist():
        common, rest = distance, step
        while rest > fine:
            common, rest = rest, abs(math.remainder(common, rest))
        # A whole part of the distance again: what rounding blurred would grow from step to step.
        step = distance / round(distance / common)
    return step > float(distances[-1]) * COARSE


def _series(outputs: Outputs) -> list[Array]:
    """Ranks of the numbers, column by column; of forms, whether an output is a common one."""
    from scipy.stats import rankdata

    if outputs.kind == NUMBERS:
        return [rankdata(outputs.values)]
    if outputs.kind == FORMS:
        items = outputs.values.tolist()
        counts: dict[object, int] = {}
        for item in items:
            counts[item] = counts.get(item, 0) + 1
        return [rankdata([counts[item] for item in items])]
    return [rankdata(column) for column in outputs.values.T[:COLUMNS]]


def _far(one: Array, two: Array) -> bool:
    """Whether the ranks go together more than chance makes them.

    By Bernstein's inequality for the sum of the products: a few rare outputs that meet are soon
    many standard errors away.
    """
    if min(len(one), len(two)) < 30:
        return False
    one, two = one - one.mean(), two - two.mean()
    spread = math.sqrt(len(one)) * float(np.std(one) * np.std(two))
    if spread == 0:
        return False
    errors = abs(float(one @ two)) / spread
    largest = float(np.abs(one).max() * np.abs(two).max()) / spread
    return errors**2 / 2 > FAR * (1 + largest * errors / 3)
