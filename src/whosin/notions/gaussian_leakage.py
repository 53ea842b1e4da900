"""Bayesian differential privacy with δ: Gaussian noise on sums over Gaussian vectors and series."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from whosin.errors import InvalidInput, check_count, check_kind, invalid_value, read_list
from whosin.exact import Array, rational
from whosin.priors.correlated import GaussianVector

# With x Gaussian of precision Q and y = A x + noise of covariance Λ, y given x_i and the known
# rows is Gaussian, and its mean moves with x_i: two values of row i at a distance d are told apart
# as two normal distributions at the distance μ d, where, U being the unknown rows,
#
#     μ² = (Q' / Q'_UU)_ii − (Q / Q_UU)_ii,    Q' = Q + AᵀΛ⁻¹A,
#
# a difference of Schur complements: what y and the known rows know of x_i, less what these know
# alone. Both fall as U grows, so rows that must be unknown and rows that must be known bound μ²
# over everything in between: branch and bound, the nearest rows first, finds the worst set. Far
# rows hardly matter, so it ends early; where it does not, the result is a bracket.

MAX_BRANCHES = 20_000
"""Sets of known and unknown rows that are looked at."""
CLOSED_GAP = 1e-9
"""A bracket of μ² that is closed, relative to it: of the order of rounding."""
MAX_GAUSSIAN_ROWS = 400


@dataclass(frozen=True)
class GaussianRelease:
    """A weighted sum of the rows with Gaussian noise.

    Args:
        weights: what each row is multiplied by: 1 for a sum, 1/n for a mean, 0 for rows outside.
        sigma: the standard deviation of the noise.
    """

    weights: Sequence[object]
    sigma: object

    def __post_init__(self) -> None:
        for weight in read_list(self.weights, "weights", "a number for each row"):
            rational(weight, "weights")
        if rational(self.sigma, "sigma") <= 0:
            raise invalid_value("sigma", "above 0", self.sigma)


@dataclass(frozen=True)
class GaussianLeakage:
    """What releases tell about one row, whatever else is known, but for a probability δ.

    Attributes:
        epsilon: no more leaks, in nats: (ε, δ) between any two values of a row at the distance.
        lower: what the worst set that was found leaks; `epsilon` where that is proved.
        separation: μ: the releases are as two normal distributions of variance 1 at this distance.
        row: the row that the worst set is about, and `unknown`, the rows that are not known in it.
        exact: whether the worst set is proved to be the worst.
    """

    epsilon: float
    lower: float
    separation: float
    row: int
    unknown: tuple[int, ...]
    exact: bool
    delta: float = field(default=0.0)


def measure_gaussian_leakage(
    prior: GaussianVector,
    releases: Sequence[GaussianRelease],
    delta: object,
    distance: object = 1,
) -> GaussianLeakage:
    """The leakage of all releases together about a row of a Gaussian vector.

    Args:
        releases: what is published, with independent noise; several are measured jointly.
        delta: the probability with which the promise may fail, above 0.
        distance: how far apart two values of a row are that must not be told apart.
    """
    check_kind(prior, GaussianVector, "prior", "a GaussianVector(…)")
    failing = rational(delta, "delta")
    if not 0 < failing < 1:
        raise invalid_value("delta", "above 0 and below 1: Gaussian noise has no pure level", delta)
    apart = rational(distance, "distance")
    if apart <= 0:
        raise invalid_value("distance", "above 0", distance)
    covariance = prior.matrix
    rows = len(covariance)
    if rows > MAX_GAUSSIAN_ROWS:
        raise invalid_value("prior", f"about at most {MAX_GAUSSIAN_ROWS} rows", rows)
    if not releases:
        raise InvalidInput("there is no release to measure", field="releases")
    knowledge = np.zeros((rows, rows))
    for release in releases:
        check_kind(release, GaussianRelease, "releases", "a list of GaussianRelease(…)")
        check_count(len(release.weights), rows, "weights", "numbers", "rows")
        weights = np.array([float(rational(w, "weights")) for w in release.weights])
        knowledge += np.outer(weights, weights) / float(rational(release.sigma, "sigma")) ** 2
    search = _GaussianSearch(covariance, knowledge)
    search.run()
    ends = [math.sqrt(max(0.0, each)) for each in (search.lower, search.upper)]
    levels = [epsilon_of_separation(each * float(apart), float(failing)) for each in ends]
    closed = search.upper - search.lower <= CLOSED_GAP * max(search.upper, CLOSED_GAP)
    return GaussianLeakage(
        levels[1],
        levels[0],
        ends[0] * float(apart),
        search.row,
        search.unknown,
        closed,
        float(failing),
    )


class _GaussianSearch:
    """Branch and bound over rows i and sets of unknown rows."""

    def __init__(self, covariance: Array, knowledge: Array) -> None:
        self.covariance = covariance
        self.precision = np.linalg.inv(covariance)
        self.posterior = self.precision + knowledge
        self.lower, self.upper = 0.0, 0.0
        self.row = 0
        self.unknown: tuple[int, ...] = ()

    def run(self) -> None:
        """Look at the rows, those whose own bound is largest first."""
        rows = range(len(self.covariance))
        queue: list[tuple[float, int, int, tuple[int, ...], tuple[int, ...]]] = []
        for row in rows:
            self._try_set(row, ())
            heapq.heappush(queue, (-self._bound(row, (), ()), len(queue), row, (), ()))
        number = len(queue)
        while queue:
            bound, _, row, unknown, known = heapq.heappop(queue)
            if -bound <= self.lower * (1 + CLOSED_GAP / 2) + 1e-300 or number > MAX_BRANCHES:
                self.upper = max(self.lower, -bound)
                return
            left = [r for r in self._near(row) if r not in unknown and r not in known]
            if not left:
                continue
            for more, less in (((*unknown, left[0]), known), (unknown, (*known, left[0]))):
                self._try_set(row, more)
                number += 1
                heapq.heappush(queue, (-self._bound(row, more, less), number, row, more, less))
        self.upper = self.lower

    def _near(self, row: int) -> list[int]:
        """The other rows, the most strongly correlated first."""
        scale = np.sqrt(np.diag(self.covariance))
        strength = np.abs(self.covariance[row] / scale)
        return [int(r) for r in np.argsort(-strength, kind="stable") if r != row]

    def _bound(self, row: int, unknown: tuple[int, ...], known: tuple[int, ...]) -> float:
        """No set of unknown rows that has the first and none of the second has a larger μ²."""
        above = _schur_complement(self.posterior, row, unknown)
        return above - 1 / _schur_complement(self.covariance, row, known)

    def _try_set(self, row: int, unknown: tuple[int, ...]) -> None:
        above = _schur_complement(self.posterior, row, unknown)
        value = above - _schur_complement(self.precision, row, unknown)
        if value > self.lower:
            self.lower, self.row, self.unknown = value, row, tuple(sorted(unknown))


def _schur_complement(matrix: Array, row: int, others: tuple[int, ...]) -> float:
    """matrix_ii − matrix_iU matrix_UU⁻¹ matrix_Ui."""
    if not others:
        return float(matrix[row, row])
    listed = list(others)
    across = matrix[listed, row]
    solved = np.linalg.solve(matrix[np.ix_(listed, listed)], across)
    return float(matrix[row, row] - across @ solved)


def epsilon_of_separation(separation: float, delta: float) -> float:
    """The ε at δ of two normal distributions of variance 1 at a distance (Balle and Wang 2018):
    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ); rounded up by 10⁻⁹."""
    from scipy.special import log_ndtr

    def failing(epsilon: float) -> float:
        first = log_ndtr(separation / 2 - epsilon / separation)
        second = epsilon + log_ndtr(-separation / 2 - epsilon / separation)
        return float(math.exp(first) * -math.expm1(min(0.0, second - first)))

    if separation == 0 or failing(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while failing(high) > delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if failing(middle) > delta else (low, middle)
    return high * (1 + 1e-9)
