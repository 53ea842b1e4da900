"""Private selection (noisy max with its gap, OpenDP's top-k), and exact draws from lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from whosin.errors import (
    InvalidInput,
    invalid_value,
    read_list,
    read_whole,
    require_extras,
    shorten,
)
from whosin.exact import Array, ball, probability, rational, round_up
from whosin.noise.additive import geometric
from whosin.noise.source import (
    SYSTEM_SOURCE,
    Inversion,
    Shape,
    Size,
    Source,
    checked_source,
    count_draws,
    shape_draws,
)

MAX_GAP_SCORE = 2**61

# Choosing the best of many, privately: OpenDP's noisy top-k and noisy max.
#
# Only positions are released, never noisy scores. Each score gets exponential noise of the scale
# (permute-and-flip; McKenna and Sheldon 2020), drawn exactly by OpenDP from its own secure
# randomness, and the largest win. With scores that change by at most Δ each between neighbours, one
# selection costs ε = 2Δ/scale, k of them k times that; half of it if all scores move the same way
# (`monotonic`). With Gumbel noise instead (`gumbel`; the exponential mechanism), a selection has
# the same ε and costs ρ = ε²/8 of zero-concentrated DP, a quarter of what ε alone proves. The
# figures are OpenDP's own privacy maps, rounded up.
#
# *Why ε²/8.* The largest of the scores with Gumbel noise is i with probability e^(qᵢ/s)/Σⱼ e^(qⱼ/s)
# (Gumbel), so between neighbours with changes dᵢ the privacy loss at i is dᵢ/s plus a constant: all
# losses lie in an interval of the length (max d − min d)/s ≤ 2Δ/s = ε, or Δ/s where all dᵢ have one
# sign (bounded range; Dong, Durfee and Rogers 2020). A loss Z under P with E[e^(−Z)] = 1, in an
# interval of length ε, has ln E[e^((α−1)Z)] ≤ (α−1)E[Z] + (α−1)²ε²/8 and, at −1 in place of α−1,
# E[Z] ≤ ε²/8 (Hoeffding's lemma), so its Rényi divergence is at most ε²/8 + (α−1)ε²/8 = α·ε²/8
# (Cesar and Rogers 2021). The k largest are k such selections in turn, each among what is left
# (Durfee and Rogers 2019), and cost k times that. Exponential noise has no such range: there a loss
# of ε and one of −ε can meet.


def noisy_max(
    scores: npt.ArrayLike, scale: object, *, negate: bool = False, gumbel: bool = False
) -> int:
    """The position of (nearly) the largest score; as `top_k` with k = 1."""
    return int(top_k(scores, 1, scale, negate=negate, gumbel=gumbel)[0])


def top_k(
    scores: npt.ArrayLike, k: int, scale: object, *, negate: bool = False, gumbel: bool = False
) -> Array:
    """The positions of (nearly) the k largest scores, best first, by exponential noise.

    Costs ε = 2kΔ/scale for scores of sensitivity Δ each, kΔ/scale if monotonic
    (`selection_epsilon`).

    Args:
        scores: integers, or finite floats.
        k: how many, from 1 to the number of scores.
        scale: of the noise, above 0.
        negate: for the smallest instead.
        gumbel: with Gumbel noise, which costs less ρ (`selection_rho`).
    """
    values = np.ascontiguousarray(scores)
    if values.ndim != 1 or not values.size or values.dtype.kind not in "iuf":
        message = "scores must be a list of whole numbers or floats, and not empty"
        raise InvalidInput(message, field="scores", value=values.dtype)
    values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    if not np.isfinite(values).all():
        raise InvalidInput("scores must be finite", field="scores")
    width = _positive_float(scale, "scale")
    count = read_whole(k, "k", 1, values.size)
    kind = "f64" if values.dtype.kind == "f" else "i64"
    chosen = _measurement(kind, count, width, False, negate, gumbel)(values)
    return np.asarray(chosen, dtype=np.int64)


def selection_epsilon(
    sensitivity: object, scale: object, k: int = 1, *, monotonic: bool = False
) -> float:
    """The ε that `top_k` costs: 2kΔ/scale, or kΔ/scale if a neighbour never raises one score and
    lowers another; never less.

    Args:
        sensitivity: Δ, the most that one score can change.
        scale: of the noise.
        k: how many positions are selected.
        monotonic: whether all scores move the same way.
    """
    return _selection_cost(sensitivity, scale, k, monotonic, gumbel=False)


def selection_rho(
    sensitivity: object, scale: object, k: int = 1, *, monotonic: bool = False
) -> float:
    """The ρ of zero-concentrated DP that `top_k` with Gumbel noise costs: kε²/8 for the ε of one
    selection, so k(Δ/scale)²/2, or a quarter of that if monotonic; never less. Its arguments are
    those of `selection_epsilon`."""
    return _selection_cost(sensitivity, scale, k, monotonic, gumbel=True)


def _selection_cost(
    sensitivity: object, scale: object, k: int, monotonic: bool, *, gumbel: bool
) -> float:
    change = _positive_float(sensitivity, "sensitivity")
    count, width = read_whole(k, "k", 1), _positive_float(scale, "scale")
    return float(_measurement("f64", count, width, monotonic, False, gumbel).map(change))


def _positive_float(value: object, field: str) -> float:
    number = round_up(rational(value, field))
    if not 0 < number < math.inf:
        raise invalid_value(field, "above 0 and finite", value)
    return number


@lru_cache(maxsize=32)
def _measurement(
    kind: str, k: int, scale: float, monotonic: bool, negate: bool, gumbel: bool = False
) -> Any:
    require_extras("selection")
    # Not through opendp.prelude, which imports scikit-learn: seconds, for nothing that is used.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_top_k
    from opendp.measures import max_divergence, zero_concentrated_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    atom = atom_domain(T=kind, nan=False) if kind == "f64" else atom_domain(T=kind)
    return make_noisy_top_k(
        vector_domain(atom),
        linf_distance(T=kind, monotonic=monotonic),
        zero_concentrated_divergence() if gumbel else max_divergence(),
        k=k,
        scale=scale,
        negate=negate,
    )


# The best of many, and how far it is ahead.
#
# Whole scores q get independent geometric noise, P(Z = k) = (1 − ρ)ρ^k with ρ = e^(−1/scale); of
# equal sums r the earlier one wins. With the winner i goes its *lexicographic* gap, the least r_i −
# r_j − [j before i] over all others j, which is at least 0. If scores move by c between neighbours,
# the chance of (i, g) moves by at most the factor ρ^(−max|c_i − c_j|), so both together cost
# 2Δ/scale as the winner alone does, or Δ/scale where all scores move the same way. With T the
# largest r_j + [j before i] of the others, (i, g) has the chance (1 − ρ) Σ_{T ≥ a} P(T) ρ^(T−a)
# where a = q_i − g; P(T) ρ^(−T) rises with T, because each r_j has a chance as ρ^(r_j) from its
# start on and all the distribution functions rise; so P(a) ≤ (1/ρ − ρ) times the sum from a + 1 on,
# and a shift of a by one moves the sum by at most the factor 1/ρ either way. The *plain* gap, r_i −
# r_j with ties in a fixed order, costs twice: from (2, 1, −2) to (1, 2, −1) "the second one, gap 0"
# becomes ρ^(−4) times as likely. (Ding et al. 2021 have the gap for continuous noise, which has no
# ties). Whoever is to win where nobody is good must be a candidate with a score, and noise.


def noisy_max_gap(
    scores: npt.ArrayLike, scale: object, *, source: Source = SYSTEM_SOURCE
) -> tuple[int, int]:
    """The position of (nearly) the largest score, and its lexicographic gap to the next one.

    Costs ε = 2Δ/scale for scores of sensitivity Δ each, Δ/scale if monotonic; the gap is free.

    Args:
        scores: integers; their order is public, and earlier ones win ties.
        scale: of the geometric noise, above 0.
    """
    values = np.ascontiguousarray(scores)
    if values.ndim != 1 or values.size < 2 or values.dtype.kind not in "iu":
        message = "scores must be a list of two whole numbers or more"
        raise InvalidInput(message, field="scores", value=values.dtype)
    if np.abs(values).max() >= MAX_GAP_SCORE:
        raise InvalidInput("scores must be below 2^61 in size", field="scores")
    noisy = values.astype(np.int64) + geometric(scale, values.size, source=source)
    best = int(noisy.argmax())
    ahead = [noisy[best] - rest.max() for rest in (noisy[:best], noisy[best + 1 :]) if rest.size]
    if best:
        ahead[0] -= 1
    return best, int(min(ahead))


# Draws from a list of exact probabilities, and randomised responses.
#
# Outcome i has the i-th probability, exactly; the probabilities are rational and add up to 1
# (floats are read by their decimals, so write 1/3 as a Fraction or "1/3").


@overload
def categorical(
    probabilities: Sequence[object],
    size: None = None,
    *,
    dtype: npt.DTypeLike = np.int64,
    source: Source = SYSTEM_SOURCE,
) -> int: ...
@overload
def categorical(
    probabilities: Sequence[object],
    size: Shape,
    *,
    dtype: npt.DTypeLike = np.int64,
    source: Source = SYSTEM_SOURCE,
) -> Array: ...
def categorical(
    probabilities: Sequence[object],
    size: Size = None,
    *,
    dtype: npt.DTypeLike = np.int64,
    source: Source = SYSTEM_SOURCE,
) -> Array | int:
    """Positions of the list, each with its probability, exactly.

    Args:
        probabilities: numbers from 0 up whose sum is exactly 1.
        size: how many, or a shape; None for one Python integer.
        dtype: the integer type of the draws.
    """
    table = _table(_read_probabilities(probabilities, "probabilities"))
    count = count_draws(size)
    kind = _code_type(dtype, len(probabilities))
    return shape_draws(table.draw(checked_source(source), count).astype(kind), size)


def randomized_response(
    codes: npt.ArrayLike, rows: Sequence[Sequence[object]], *, source: Source = SYSTEM_SOURCE
) -> Array:
    """Each code replaced by a draw from its row: code c becomes j with probability rows[c][j].

    If rows[c][j] ≤ e^ε rows[c'][j] for all c, c' and j, each answer is ε-locally differentially
    private (Warner 1965 is the case of two codes).

    Args:
        codes: integers from 0 to the number of rows − 1.
        rows: for each code the probabilities of the answers, as in `categorical`.
    """
    read_list(rows, "rows", "a list of the probabilities of each code's answers")
    values = np.asarray(codes)
    if values.dtype.kind not in "iu" or not len(rows):
        raise InvalidInput(
            "codes must be whole numbers, and rows not empty", field="codes", value=values.dtype
        )
    if values.size and not 0 <= values.min() <= values.max() < len(rows):
        raise InvalidInput(f"codes must be between 0 and {len(rows) - 1}", field="codes")
    read = [_read_probabilities(row, f"rows[{code}]") for code, row in enumerate(rows)]
    _code_type(values.dtype, max(len(row) for row in read))
    answers = np.empty_like(values)
    source = checked_source(source)
    for code, row in enumerate(read):
        positions = np.nonzero(values == code)
        answers[positions] = _table(row).draw(source, positions[0].size)
    return answers


def _read_probabilities(probabilities: Sequence[object], field: str) -> tuple[Fraction, ...]:
    if isinstance(probabilities, str) or not hasattr(probabilities, "__len__"):
        raise invalid_value(field, "a list of probabilities", repr(probabilities))
    read = tuple(probability(value, f"{field}[{i}]") for i, value in enumerate(probabilities))
    if sum(read) != 1:
        message = f"{field} must add up to exactly 1, not {shorten(sum(read))}"
        raise InvalidInput(message, field=field, value=sum(read))
    return read


def _code_type(dtype: npt.DTypeLike, outcomes: int) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind.kind not in "iu" or np.iinfo(kind).max < outcomes - 1:
        raise invalid_value("dtype", f"an integer type that holds {outcomes - 1}", kind)
    return kind


@lru_cache(maxsize=256)
def _table(probabilities: tuple[Fraction, ...]) -> Inversion:
    sums = list(accumulate(probabilities))[:-1]

    def thresholds(precision: int) -> list[Any]:
        from flint import ctx

        with ctx.workprec(precision):
            return list(map(ball, sums))

    return Inversion(thresholds, np.arange(len(probabilities)))
