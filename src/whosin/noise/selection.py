"""Choosing the best of many, privately: OpenDP's noisy top-k and noisy max.

Contract: only positions are released, never noisy scores. Each score gets exponential noise of the
scale (permute-and-flip; McKenna and Sheldon 2020), drawn exactly by OpenDP from its own secure
randomness, and the largest win. With scores that change by at most Δ each between neighbours, one
selection costs ε = 2Δ/scale, k of them k times that; half of it if all scores move the same way
(`monotonic`). With Gumbel noise instead (`gumbel`; the exponential mechanism), a selection has the
same ε and costs less ρ of zero-concentrated DP, (Δ/scale)²/2, since the range of its privacy loss
is bounded (Cesar and Rogers 2021). The figures are OpenDP's own privacy maps, rounded up.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from whosin.errors import InvalidInput
from whosin.exact import Array, rational, round_up
from whosin.extras import needs
from whosin.validation import whole


def noisy_max(
    scores: npt.ArrayLike, scale: object, *, negate: bool = False, gumbel: bool = False
) -> int:
    """The position of (nearly) the largest score, by exponential noise.

    Costs ε = 2Δ/scale for scores of sensitivity Δ each, Δ/scale if monotonic
    (`selection_epsilon`).

    Args:
        scores: integers, or finite floats.
        scale: of the noise, above 0.
        negate: for the smallest instead.
        gumbel: with Gumbel noise, which costs less ρ (`selection_rho`).
    """
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
        raise InvalidInput("scores", "a list of integers or floats", "something else")
    values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    if not np.isfinite(values).all():
        raise InvalidInput("scores", "finite", "a value that is not")
    width = _positive_float(scale, "scale")
    count = whole(k, "k", 1, values.size)
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
    change = _positive_float(sensitivity, "sensitivity")
    count, width = whole(k, "k", 1), _positive_float(scale, "scale")
    return float(_measurement("f64", count, width, monotonic, False).map(change))


def selection_rho(sensitivity: object, scale: object, k: int = 1) -> float:
    """The ρ of zero-concentrated DP that `top_k` with Gumbel noise costs: k(Δ/scale)²/2; never
    less.

    Args:
        sensitivity: Δ, the most that one score can change.
        scale: of the noise.
        k: how many positions are selected.
    """
    change = _positive_float(sensitivity, "sensitivity")
    count, width = whole(k, "k", 1), _positive_float(scale, "scale")
    return float(_measurement("f64", count, width, False, False, True).map(change))


def _positive_float(value: object, field: str) -> float:
    number = round_up(rational(value, field))
    if not 0 < number < math.inf:
        raise InvalidInput(field, "a number above 0", value)
    return number


@lru_cache(maxsize=32)
def _measurement(
    kind: str, k: int, scale: float, monotonic: bool, negate: bool, gumbel: bool = False
) -> Any:
    needs("selection")
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
