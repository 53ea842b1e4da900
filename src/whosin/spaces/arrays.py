"""Searching arrays of likelihoods in bounded memory, with floats of enough range."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from whosin.errors import TooLarge, Unsupported, spell
from whosin.exact import Array

# Finding the largest likelihood ratio in arrays of any size, in bounded memory.
#
# 0/0 counts as 1 and x/0 as infinity (F1). Works alike on floats and on FLINT rationals, whose
# results are exact. Blocks keep temporaries at `BLOCK_ELEMENTS` elements.

BLOCK_ELEMENTS = 1 << 18
RATIO_SLACK = 1e-15


def cut_blocks(shape: tuple[int, ...], limit: int = BLOCK_ELEMENTS) -> Iterator[tuple[slice, ...]]:
    """Cut an array of this shape into pieces of at most about `limit` elements, in order."""
    if math.prod(shape) <= limit:
        yield (slice(0, None),) * len(shape)
        return
    inner = math.prod(shape[1:])
    if inner <= limit or len(shape) == 1:
        step = max(1, limit // inner)
        rest = (slice(0, None),) * (len(shape) - 1)
        for start in range(0, shape[0], step):
            yield (slice(start, start + step), *rest)
    else:
        for row in range(shape[0]):
            for piece in cut_blocks(shape[1:], limit):
                yield (slice(row, row + 1), *piece)


def exceeds_best(value: Any, best: Any) -> bool:
    """value > best for ratios, which may be FLINT rationals or infinite; None is below all."""
    if best is None or value == math.inf:
        return best is None or best != math.inf
    return bool(best != math.inf and value > best)


def largest_ratios(top: Array, bottom: Array) -> tuple[Any, Any]:
    """(max top/bottom, max bottom/top): both directions, for floats with one division each.

    The caller silences NumPy (`ignore_division`): here that would cost as much as a small division.
    """
    if top.dtype == object:
        return largest_ratio(top, bottom), largest_ratio(bottom, top)
    most = least = top.dtype.type(1)
    cut = ((top[piece], bottom[piece]) for piece in cut_blocks(top.shape))
    for above, below in ((top, bottom),) if top.size <= BLOCK_ELEMENTS else cut:
        quotient = above / below
        most = max(most, np.fmax.reduce(quotient, axis=None))
        least = min(least, np.fmin.reduce(quotient, axis=None))
    return most, (1 / least if least > 0 else math.inf)


def ignore_division() -> np.errstate:
    """Divisions by zero are results here, not accidents."""
    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


def largest_ratio(top: Array, bottom: Array) -> Any:
    """max top/bottom over all elements, at least 1; infinite where only the bottom is 0."""
    best: Any = 1.0 if top.dtype != object else 1
    for piece in cut_blocks(top.shape):
        above, below = top[piece], bottom[piece]
        if top.dtype != object:
            with ignore_division():
                best = np.fmax(best, np.fmax.reduce(above / below, axis=None))
        elif ((below == 0) & (above > 0)).any():
            best = math.inf
        else:
            best = max([best, *(above[below != 0] / below[below != 0])])
        if best == math.inf:
            break
    return best


def first_at_least(top: Array, bottom: Array, value: Any) -> tuple[int, ...]:
    """Where the ratio is the value that `largest_ratio` returned: the first element that has it,
    up to rounding when the value came from the inverse."""
    for piece in cut_blocks(top.shape):
        above, below = top[piece], bottom[piece]
        if above.dtype != object:
            with ignore_division():
                hit = above / below >= value * (1 - RATIO_SLACK)
        elif value == math.inf:
            hit = (below == 0) & (above > 0)
        else:
            hit = (above >= value * below) & ((below != 0) | ((above == 0) & (value == 1)))
        if hit.any():
            inside = np.unravel_index(int(np.argmax(hit)), hit.shape)
            return tuple(
                int(part.start) + int(offset) for part, offset in zip(piece, inside, strict=True)
            )
    # Rounding may leave every ratio just below the floor of 1: then no cell is worse than another.
    return (0,) * top.ndim


# Floats with enough range: a likelihood that underflows to 0 would pass for an impossible output.
#
# A search in floats may only be trusted where every positive entry stays far from the end of the
# range, so that its products with prior probabilities and its ratios stay inside. Where doubles do
# not reach, extended ones do (e^±11355 on most machines), and where these do not either the work is
# refused: a level that cannot be computed is an error, never a guess.
class Underflow(Exception):
    """A search in floats met a sum so small that terms may have been lost: it must be repeated
    with scaled columns, or exactly. Never leaves the library."""


MIN_LIKELIHOOD = 2.0**-900
"""Sums of probabilities below this, relative to the largest likelihood of their output, may have
lost terms: those are below 2^−1022, and there may be many."""
EXPONENT_SHARE = 0.5
"""The part of a type's range of exponents that entries may use; the rest is for products."""


def smallest_float(dtype: Any) -> Any:
    """The least positive number of a float type that a search may meet."""
    return np.ldexp(dtype.type(1), int(np.finfo(dtype).minexp * EXPONENT_SHARE))


def is_narrow(array: Array) -> bool:
    """Whether some positive entry is too small for its own type of float."""
    least = smallest_float(array.dtype)
    return any(
        bool(((array[piece] > 0) & (array[piece] < least)).any())
        for piece in cut_blocks(array.shape)
    )


def check_underflow(sums: Array, largest: Array, possible: Callable[[], Array]) -> None:
    """Check sums of probabilities times likelihoods, one for each output (the last axis).

    Args:
        largest: the largest likelihood of each output.
        possible: which sums are positive in truth; asked for only where some are small.
    """
    if sums.dtype == object:
        return
    least = np.ldexp(sums.dtype.type(1), np.finfo(sums.dtype).minexp + 122)
    low = sums < np.maximum(largest * MIN_LIKELIHOOD, least)
    if low.any() and (low & possible()).any():
        raise Underflow


def scale_columns(array: Array) -> Array:
    """The array with each column times a power of two, so that its largest entry is about 1."""
    return np.asarray(np.ldexp(array, -np.frexp(array.max(axis=0))[1]))


def extended_float(value: Any) -> Any:
    """A FLINT rational in the widest floats there are, however small it is."""
    power = _binary_exponent(value)
    # Powers of two apart, the quotient is a double.
    near = Fraction(int(value.p), int(value.q)) / Fraction(2) ** power
    return np.ldexp(np.longdouble(float(near)), power)


def scaled_products(weights: Array, array: Array) -> tuple[Array, Array]:
    """FLINT rationals, one for each row, and the array's columns. Each is scaled by a power of two,
    and both are in floats so wide that no product of the two underflows.
    """
    array = scale_columns(array)
    least = np.min(array, where=array > 0, initial=1)
    kinds = dict.fromkeys(weights)  # often few
    lowest = min((_binary_exponent(w) - 1 for w in kinds if w != 0), default=0) + int(
        np.frexp(least)[1]
    )
    for dtype in (np.dtype(np.float64), np.dtype(np.longdouble)):
        if lowest - 4 > np.finfo(dtype).minexp and dtype.itemsize >= array.dtype.itemsize:
            number: Any = extended_float if dtype != np.float64 else lambda w: int(w.p) / int(w.q)
            numbers = {w: number(w) if w != 0 else 0 for w in kinds}
            rows = np.array([numbers[w] for w in weights], dtype=dtype)
            return rows, array.astype(dtype, copy=False)
    raise Unsupported(
        f"a probability of about 2^{lowest} under this prior is below the smallest float",
        field="prior",
        hint="give very unlikely worlds more probability, or none",
    )


def _binary_exponent(value: Any) -> int:
    """About the binary logarithm of a FLINT rational."""
    return int(value.p).bit_length() - int(value.q).bit_length()


def widen_floats(array: Array) -> Array:
    return array.astype(np.longdouble)


def widest_exp(exponents: Array) -> Array:
    """e^exponents, in doubles where they reach and else in extended floats."""
    lowest = float(exponents.min(initial=0.0))
    for dtype in (np.dtype(np.float64), np.dtype(np.longdouble)):
        if lowest >= float(np.log(smallest_float(dtype))):
            return np.asarray(np.exp(exponents.astype(dtype, copy=False)))
    raise Unsupported(
        "the noise is too small for the range of the statistic: a likelihood of "
        f"e^{spell(lowest, 4)} is below the smallest float",
        field="scale",
        hint="use a larger scale or fewer entities",
    )


CGROUP_MEMBERSHIPS = Path("/proc/self/cgroup")
CGROUP_FOLDER = Path("/sys/fs/cgroup")
ALWAYS_ALLOWED_BYTES = 256 << 20  # what work may take on any machine: nobody is asked about less


def available_memory() -> int:
    """Bytes of memory that work may take: what the system can give without swapping, and the limits
    of this process's control groups leave, less a fifth for everything else."""
    import psutil

    free = min([int(psutil.virtual_memory().available), *_cgroup_limits()])
    return max(free * 4 // 5, ALWAYS_ALLOWED_BYTES)


def _cgroup_limits() -> list[int]:
    """What is left to each control group that this process is in, from its own up to the root."""
    try:
        lines = CGROUP_MEMBERSHIPS.read_text().splitlines()
    except OSError:
        return []
    left = []
    for line in lines:
        number, names, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not names:  # version 2
            home, files = CGROUP_FOLDER, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in names.split(","):
            home = CGROUP_FOLDER / "memory"
            files = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        lowest = home / path.lstrip("/")
        for folder in (lowest, *lowest.parents):
            if home in (folder, *folder.parents):
                left += _cgroup_left(folder, *files)
    return left


def _cgroup_left(folder: Path, limit: str, used: str, cache: str) -> list[int]:
    try:
        most, now = (int((folder / name).read_text()) for name in (limit, used))
        lines = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # no limit is the word max
        return []
    caches = [int(line.split()[1]) for line in lines if line.split()[:1] == [cache]]
    return [max(0, most - now + sum(caches))]


def require_memory(what: str, needed: int, fits: str | Callable[[int], str] | None = None) -> None:
    """Raise `TooLarge`, with the size and the largest that fits, unless `needed` bytes are free.

    Args:
        fits: what would fit, or what says so when it is told the bytes that are free.
    """
    if needed <= ALWAYS_ALLOWED_BYTES or needed <= (limit := available_memory()):
        return
    said = fits(limit) if callable(fits) else fits
    raise TooLarge(what, needed, limit, said or "use a structured mechanism or fewer worlds")


def require_table(what: str, worlds: int, outputs: int, base: int = 2) -> None:
    """Check an array of likelihoods; the message says how many entities (or rows) would fit."""

    def fits(limit: int) -> str:
        fit = next(n for n in count() if base ** (n + 1) * outputs * 8 > limit)
        entities = "entities" if base == 2 else f"rows of {base} values"
        return f"with {outputs} outputs {fit} {entities} fit"

    require_memory(what, worlds * outputs * 8, fits)
