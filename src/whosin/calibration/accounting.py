"""Noise for processes accounted by privacy-loss distributions: subsampled, repeated, DP-SGD."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from whosin.calibration.failure import (
    DeltaProfile,
    certified_rate,
    failure_bound,
    gaussian_delta,
    gaussian_profile,
    hockey_stick_multiplier,
    out_of_reach,
    rate_multiplier,
    smallest_multiplier,
)
from whosin.calibration.rate_targets import RateTarget
from whosin.calibration.targets import Target
from whosin.errors import (
    InvalidInput,
    UnknownName,
    Unsupported,
    WhosinError,
    check_kind,
    invalid_value,
    read_whole,
    require_extras,
)
from whosin.exact import Array, exact_fraction, read_ranged, round_down, round_up
from whosin.families import Family

# A distribution of privacy losses on a grid, and what it bounds.
#
# A loss is ln Pr[o with the person]/Pr[o without]. A distribution of losses that was rounded to the
# safe side has at least the hockey-stick divergence of what it stands for, at every ε; by
# Blackwell's theorem every test does at least as well on it. It does not bound tails (see
# `failure`).


@dataclass(frozen=True)
class LossDistribution:
    """Masses, given that the person is in, of the losses first·grid, (first + 1)·grid, …, ∞.

    Attributes:
        infinite: the mass of outputs that are impossible without the person.
    """

    first: int
    grid: float
    masses: Array
    infinite: float

    @classmethod
    def of(cls, accounted: Any) -> LossDistribution:
        """Read a distribution that dp-accounting computed."""
        dense = accounted.to_dense_pmf()
        masses = np.maximum(dense._probs, 0.0)  # what a Fourier transform leaves below 0
        return cls(dense._lower_loss, dense._discretization, masses, dense._infinity_mass)

    @cached_property
    def losses(self) -> Array:
        """The finite losses, in order."""
        return (np.arange(len(self.masses)) + self.first) * self.grid

    @cached_property
    def tails(self) -> tuple[Array, Array]:
        """The mass at and above each loss, with the person and without; one entry more, for ∞."""
        with np.errstate(divide="ignore", over="ignore"):
            without = np.exp(np.log(self.masses) - self.losses)
        above = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0) + self.infinite
        below = np.append(np.cumsum(without[::-1])[::-1], 0.0)
        return above, below

    def delta(self, epsilons: Array) -> Array:
        """δ(ε) at each ε."""
        above, below = self.tails
        after = np.searchsorted(self.losses, epsilons, side="right")
        deltas = above[after] - np.exp(epsilons) * below[after]
        return np.asarray(np.clip(deltas, 0.0, 1.0))

    def corners(self) -> tuple[Array, Array]:
        """(FPR, TPR) of the tests that say "in" from each loss on: the best ones, the strictest
        first."""
        above, below = self.tails
        return np.minimum(below[::-1], 1.0), np.minimum(above[::-1], 1.0)


# Noise for processes accounted by privacy-loss distributions: subsampled, repeated, DP-SGD.
#
# dp-accounting gives an upper bound on the hockey-stick divergence between "with the person" and
# "without", on a grid of privacy losses; the finer the grid, the closer and the slower. The search
# runs on a coarse grid and is carried to finer ones; what is returned meets the target on the
# finest grid used. Beliefs go through F9 (`failure_bound`), never through tails of the
# distribution; a target that is an ε is (ε, δ)-differential privacy, read off the divergence
# itself, in both directions.

LOSS_GRID_STEPS = (1e-2, 1e-3, 1e-4)
MIN_MULTIPLIER = 0.1
"""Below this multiplier distributions of losses grow too wide, and noise no longer matters."""
BACKWARD_STEPS = 12
"""How often noise is enlarged for the other direction, each time by twice as much."""
MIN_LIMIT_STEPS = 100
MIN_GUESSED_MULTIPLIER = 0.2
"""With fewer steps, or noise, the central limit says little."""
PROCESS_NOISES = ("gaussian", "laplace", "discrete-gaussian")


@dataclass(frozen=True)
class Process:
    """A mechanism of sensitivity 1 with noise of scale `multiplier`, run several times.

    Args:
        noise: "gaussian", "laplace" or "discrete-gaussian".
        sample_rate: each run sees each person with this probability (Poisson sampling).
        steps: how many runs, all parameters fixed in advance. DP-SGD is a Gaussian process.
    """

    noise: str = "gaussian"
    sample_rate: float = 1.0
    steps: int = 1

    def __post_init__(self) -> None:
        if self.noise not in PROCESS_NOISES:
            raise UnknownName("noise", str(self.noise), PROCESS_NOISES)
        read_ranged(self.sample_rate, "sample rate", "above 0 and at most 1")
        object.__setattr__(self, "steps", read_whole(self.steps, "steps", 1))

    @property
    def is_plain(self) -> bool:
        """Gaussian noise without sampling: n runs are one with noise of σ/√n, in closed form."""
        return self.noise == "gaussian" and self.sample_rate == 1

    def profile(
        self, multiplier: float, grid: float = LOSS_GRID_STEPS[-1], *, reverse: bool = False
    ) -> DeltaProfile:
        """δ(ε) of (with the person ‖ without), from above, on a grid of privacy losses.

        Args:
            reverse: take (without ‖ with the person) instead.
        """
        if self.is_plain:
            return gaussian_profile(multiplier / math.sqrt(self.steps))
        return self.losses(multiplier, grid, reverse=reverse).delta

    def losses(
        self, multiplier: float, grid: float = LOSS_GRID_STEPS[-1], *, reverse: bool = False
    ) -> LossDistribution:
        """The privacy losses of all runs together, rounded to the safe side."""
        require_extras("accounting")
        once = _loss_distribution(self, multiplier, grid, reverse)
        return LossDistribution.of(once if self.steps == 1 else once.self_compose(self.steps))


def _loss_distribution(
    process: Process, multiplier: float, grid: float, reverse: bool = False
) -> Any:
    """One run's distribution of privacy losses, pessimistic, in one direction."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld import privacy_loss_mechanism as mechanisms
    from scipy.special import log_ndtr

    common = {"sampling_prob": float(process.sample_rate)}
    if process.noise == "discrete-gaussian":
        whole = pld.from_discrete_gaussian_mechanism(
            multiplier, value_discretization_interval=grid, use_connect_dots=True, **common
        )
        # "remove": upper with the person, lower without
        return whole._pmf_add if reverse else whole._pmf_remove
    kind = {"gaussian": mechanisms.GaussianPrivacyLoss, "laplace": mechanisms.LaplacePrivacyLoss}[
        process.noise
    ]
    adjacency = mechanisms.AdjacencyType.ADD if reverse else mechanisms.AdjacencyType.REMOVE
    loss = kind(multiplier, adjacency_type=adjacency, **common)
    ends = loss.connect_dots_bounds()
    low, high = math.floor(ends.epsilon_lower / grid), math.ceil(ends.epsilon_upper / grid)
    epsilons = np.arange(low, high + 1) * grid
    if process.noise == "gaussian" and not reverse:
        # dp-accounting inverts this loss number by number: 0.37 of 0.89 s for DP-SGD's noise.
        deltas = gaussian_profile(multiplier, float(process.sample_rate), log_ndtr)(epsilons)
    else:
        deltas = loss.get_delta_for_epsilon(epsilons)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, low, high, deltas)


@dataclass(frozen=True)
class ProcessPlan:
    """The least noise for a process.

    Attributes:
        multiplier: σ (or the Laplace scale) over the sensitivity.
        bound: what it was seen to achieve: the advantage, or the failure probability.
        goal: what it had to stay below.
        grid: the grid of privacy losses on which that was certified.
    """

    process: Process
    target: Target
    multiplier: float
    bound: float
    goal: float
    grid: float
    theorems: tuple[str, ...]


def calibrate_process(
    target: Target,
    process: Process,
    family: Family | None = None,
    delta: float = 0.0,
) -> ProcessPlan:
    """The least noise multiplier for which a process keeps a target.

    Args:
        target: those about rates (`Advantage`, `Detection`, `BayesRisk`) need no δ; all others
            may fail with probability δ.
        family: who may be looking, by default anyone with independent beliefs.

    Raises:
        Unsupported: a family for which sampled processes have no known accounting.
    """
    check_kind(target, Target, "target")  # type: ignore[type-abstract]
    if not check_kind(process, Process, "process").is_plain:
        require_extras("accounting")
    adversary = target.against(family or target.default_family())
    if adversary.group > 1 or (adversary.relation == "replace" and process.sample_rate != 1):
        message = "sampled processes are accounted for families with relation add-remove only"
        raise Unsupported(message, field="family", value=family)
    failing = float(read_ranged(delta, "delta", "at least 0 and below 1"))
    if isinstance(target, RateTarget):
        return _plan_rate(target, process)

    if not 0 < failing < 1:
        raise invalid_value("delta", "strictly between 0 and 1 for this target", delta)
    if target.stated_epsilon is not None:
        return _plan_epsilon_delta(target, target.stated_epsilon, process, failing)
    ratio = float(target.ratio(adversary.low, adversary.high))
    if ratio == math.inf:
        raise InvalidInput(
            "target rules nothing out: it is met without noise", field="target", value=target
        )

    def measured(profile: DeltaProfile) -> float:
        return failure_bound(profile, ratio)[0]

    multiplier, value, grid = _least_multiplier(measured, process, failing)
    return ProcessPlan(process, target, multiplier, value, failing, grid, ("T18",))


def _plan_rate(target: RateTarget, process: Process) -> ProcessPlan:
    """The least noise that keeps a rate of all tests: what they gain on guessing is searched."""
    target.need_room()
    if process.is_plain:
        return _plain_rate(target, process)
    limit, guessing = round_down(target.limit), float(target.guessing)

    def measured(profile: DeltaProfile) -> float:
        return target.reached(profile)[0] - guessing

    multiplier, value, grid = _least_multiplier(measured, process, limit - guessing)
    rate = min(value + guessing, limit)
    return ProcessPlan(process, target, multiplier, rate, float(target.limit), grid, ())


def _plain_rate(target: RateTarget, process: Process) -> ProcessPlan:
    """Without sampling the runs are one Gaussian, which balls certify."""
    root = math.sqrt(process.steps)
    multiplier = rate_multiplier(target) * root * (1 + 2**-50)
    bound = min(certified_rate(target, multiplier / root), target.limit)
    return ProcessPlan(
        process, target, multiplier, round_up(bound), round_up(target.limit), 0.0, ()
    )


def _plan_epsilon_delta(
    target: Target, exact: Fraction, process: Process, delta: float
) -> ProcessPlan:
    """The least noise that is (ε, δ)-differentially private, for this ε.

    Sampling makes the two directions differ. Presence shows more, so it is searched; absence is
    then checked at the noise that was found.
    """
    if process.is_plain:
        root = math.sqrt(process.steps)
        multiplier = hockey_stick_multiplier(exact, exact_fraction(delta)) * root * (1 + 2**-50)
        bound = min(float(gaussian_delta(multiplier / root, exact)), delta)
        return ProcessPlan(process, target, multiplier, bound, delta, 0.0, ())
    at = np.array([float(exact)])

    def measured(profile: DeltaProfile) -> float:
        return float(profile(at)[0])

    def back(multiplier: float, grid: float) -> float:
        return measured(process.profile(multiplier, grid, reverse=True))

    multiplier, value, grid = _least_multiplier(measured, process, delta)
    if process.sample_rate == 1:
        return ProcessPlan(process, target, multiplier, value, delta, grid, ())
    for step in range(BACKWARD_STEPS):
        worst = max(value, back(multiplier, grid))
        if worst <= delta:
            return ProcessPlan(process, target, multiplier, worst, delta, grid, ())
        multiplier *= 1 + 0.001 * 2**step
        value = measured(process.profile(multiplier, grid))
    raise out_of_reach("its other direction, absence, was not seen to keep it")


def _least_multiplier(
    measured: Callable[[DeltaProfile], float], process: Process, goal: float
) -> tuple[float, float, float]:
    """(multiplier, bound, grid): the least multiplier, found on ever finer grids."""
    grids: Sequence[float] = LOSS_GRID_STEPS

    def bound(multiplier: float, grid: float) -> float:
        return measured(process.profile(multiplier, grid))

    multiplier = _limit_guess(measured, process, goal)
    if multiplier is not None and len(grids) > 1:
        grids = grids[1:]  # the guess is nearer than what the coarsest grid could find
    else:
        # A first guess: the noise that composes like √steps, thinned by sampling.
        start = max(0.3, math.sqrt(process.steps) * float(process.sample_rate))
        multiplier = smallest_multiplier(
            lambda m: bound(m, grids[0]), goal, start, 5e-2, MIN_MULTIPLIER
        )
        if multiplier < 2 * MIN_MULTIPLIER and bound(multiplier / 1.1, grids[0]) <= goal:
            # The target is met with hardly any noise: look no further.
            return multiplier, bound(multiplier, grids[0]), grids[0]
    slope, value = -2.0, math.nan
    for grid in grids:
        accuracy = 2e-4 if grid == grids[-1] else 1e-3
        at_grid = partial(bound, grid=grid)
        multiplier, value, slope = _carry_to_goal(at_grid, goal, multiplier, slope, accuracy)
        if multiplier <= MIN_MULTIPLIER:
            return multiplier, value, grid
    return multiplier, value, grids[-1]


def _limit_guess(
    measured: Callable[[DeltaProfile], float], process: Process, goal: float
) -> float | None:
    """The multiplier at which many sampled steps are, in the limit, like one Gaussian that meets
    the goal: 1/σ there is q √steps √(e^(1/σ²) Φ(3/2σ) + 3 Φ(−1/2σ) − 2) (Bu et al. 2020). Where
    steps are few, or the noise is little, there is none."""
    if process.noise == "laplace" or process.steps < MIN_LIMIT_STEPS:
        return None
    plain = smallest_multiplier(lambda m: measured(gaussian_profile(m)), goal, accuracy=1e-3)
    scale = float(process.sample_rate) * math.sqrt(process.steps)

    def together(multiplier: float) -> float:
        below = (0.5 * math.erfc(-x / multiplier / math.sqrt(2)) for x in (1.5, -0.5))
        return scale * math.sqrt(math.exp(multiplier**-2) * next(below) + 3 * next(below) - 2)

    guess = smallest_multiplier(together, 1 / plain, accuracy=1e-4, floor=MIN_GUESSED_MULTIPLIER)
    return guess if guess > 2 * MIN_GUESSED_MULTIPLIER else None


def _carry_to_goal(
    bound: Callable[[float], float], goal: float, start: float, slope: float, accuracy: float
) -> tuple[float, float, float]:
    """(multiplier, bound, slope) just inside the goal, from a start nearby, by secants in
    logarithms; the slope of one grid is a good first guess for the next. Where the bound falls off
    a cliff (pure mechanisms), secants that leave the bracket give way to bisection."""
    aim = math.log(goal) - accuracy / 2
    points: list[tuple[float, float]] = []
    best: tuple[float, float] | None = None
    short = 0.0
    at = start
    for _ in range(30):
        value = bound(at)
        if value <= goal and (best is None or at < best[0]):
            best = at, value
        if value > goal:
            short = max(short, at)
        elif at <= MIN_MULTIPLIER or math.log(goal) - math.log(max(value, 1e-300)) <= accuracy:
            return at, value, slope
        if best is not None and best[0] <= short * (1 + accuracy / 2):
            break
        points.append((math.log(at), math.log(max(value, 1e-300))))
        slope = _log_slope(points, slope)
        step = (aim - points[-1][1]) / slope
        at = max(math.exp(points[-1][0] + min(max(step, -0.5), 0.5)), MIN_MULTIPLIER)
        if best is not None and short and (not short < at < best[0] or len(points) > 6):
            at = math.sqrt(short * best[0])
    if best is None:
        raise WhosinError("the search for the noise did not converge; try a finer grid")
    return (*best, slope)


def _log_slope(points: list[tuple[float, float]], guess: float) -> float:
    """d ln bound / d ln multiplier from the last two points; always falling."""
    if len(points) < 2 or points[-1][0] == points[-2][0]:
        return guess
    (x0, y0), (x1, y1) = points[-2:]
    return min((y1 - y0) / (x1 - x0), -0.05)
