"""Draws from a list of exact probabilities, and randomised responses.

Contract: outcome i has the i-th probability, exactly; the probabilities are rational and add up to
1 (floats count as the binary fractions that they are, so write 1/3 as a Fraction or "1/3").
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from whosin.errors import InvalidInput
from whosin.exact import Array, ball, probability
from whosin.noise.inversion import Inversion
from whosin.noise.parameters import Shape, Size, count_of, shaped
from whosin.noise.source import SYSTEM, Source, checked_source
from whosin.validation import listed


@overload
def categorical(
    probabilities: Sequence[object],
    size: None = None,
    *,
    dtype: npt.DTypeLike = np.int64,
    source: Source = SYSTEM,
) -> int: ...
@overload
def categorical(
    probabilities: Sequence[object],
    size: Shape,
    *,
    dtype: npt.DTypeLike = np.int64,
    source: Source = SYSTEM,
) -> Array: ...
def categorical(
    probabilities: Sequence[object],
    size: Size = None,
    *,
    dtype: npt.DTypeLike = np.int64,
    source: Source = SYSTEM,
) -> Array | int:
    """Positions of the list, each with its probability, exactly.

    Args:
        probabilities: numbers from 0 up whose sum is exactly 1.
        size: how many, or a shape; None for one Python integer.
        dtype: the integer type of the draws.
    """
    table = _table(_read(probabilities, "probabilities"))
    count = count_of(size)
    kind = _code_type(dtype, len(probabilities))
    return shaped(table.draw(checked_source(source), count).astype(kind), size)


def randomized_response(
    codes: npt.ArrayLike, rows: Sequence[Sequence[object]], *, source: Source = SYSTEM
) -> Array:
    """Each code replaced by a draw from its row: code c becomes j with probability rows[c][j].

    If rows[c][j] ≤ e^ε rows[c'][j] for all c, c' and j, each answer is ε-locally differentially
    private (Warner 1965 is the case of two codes).

    Args:
        codes: integers from 0 to the number of rows − 1.
        rows: for each code the probabilities of the answers, as in `categorical`.
    """
    listed(rows, "rows", "a list of the probabilities of each code's answers")
    values = np.asarray(codes)
    if values.dtype.kind not in "iu" or not len(rows):
        raise InvalidInput("codes", "an array of integers, and rows not empty", values.dtype)
    if values.size and not 0 <= values.min() <= values.max() < len(rows):
        raise InvalidInput("codes", f"integers from 0 to {len(rows) - 1}", "another one")
    read = [_read(row, f"rows[{code}]") for code, row in enumerate(rows)]
    _code_type(values.dtype, max(len(row) for row in read))
    answers = np.empty_like(values)
    source = checked_source(source)
    for code, row in enumerate(read):
        positions = np.nonzero(values == code)
        answers[positions] = _table(row).draw(source, positions[0].size)
    return answers


def _read(probabilities: Sequence[object], field: str) -> tuple[Fraction, ...]:
    if isinstance(probabilities, str) or not hasattr(probabilities, "__len__"):
        raise InvalidInput(field, "a list of probabilities", repr(probabilities))
    read = tuple(probability(value, f"{field}[{i}]") for i, value in enumerate(probabilities))
    if sum(read) != 1:
        raise InvalidInput(field, "probabilities that add up to exactly 1", f"a sum of {sum(read)}")
    return read


def _code_type(dtype: npt.DTypeLike, outcomes: int) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind.kind not in "iu" or np.iinfo(kind).max < outcomes - 1:
        raise InvalidInput("dtype", f"an integer type that holds {outcomes - 1}", kind)
    return kind


@lru_cache(maxsize=256)
def _table(probabilities: tuple[Fraction, ...]) -> Inversion:
    sums = list(accumulate(probabilities))[:-1]

    def thresholds(precision: int) -> list[Any]:
        from flint import ctx

        with ctx.workprec(precision):
            return list(map(ball, sums))

    return Inversion(thresholds, np.arange(len(probabilities)))
