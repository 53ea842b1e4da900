"""One step of private gradient descent: clipping, noise and sampling, each attacked by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.audit.bounds import binomial_tail, read_confidence
from whosin.audit.model_scores import read_numbers
from whosin.audit.tradeoff_claims import CurveRun, GaussianCurve, curve_run
from whosin.errors import (
    InvalidInput,
    MechanismFailed,
    WhosinError,
    invalid_value,
    read_whole,
    spell,
)
from whosin.exact import Array, format_figures, read_ranged

# What a check of one part of a step says, and how a step is called. A finding has a p-value: if the
# claims are true, it is that unlikely, at most, that the check finds as much. Special functions are
# exact up to rounding; nothing is approximated.


CLIPPING, NOISE, SEED, SAMPLING, WHOLE = "clipping", "noise", "seed", "sampling", "the whole step"


@dataclass(frozen=True)
class StepFinding:
    """A part of a step that is not as claimed.

    Attributes:
        part: clipping, noise, seed, sampling, or the whole step.
        words: what is wrong with it.
    """

    part: str
    words: str
    p_value: float

    def __str__(self) -> str:
        return f"{self.part}: {self.words}"

    def to_dict(self) -> dict[str, object]:
        """The finding for programs."""
        return dict(vars(self))


@dataclass(frozen=True)
class CalledStep:
    """A step that can be called, and what it claims: norms of at most `clip`, Gaussian noise of
    standard deviation `noise` × `clip` on the sum, each example in a batch with probability `rate`;
    `share` is what the step divides the noisy sum by."""

    function: Callable[[Array], Any]
    clip: float
    noise: float
    rate: float
    share: float
    examples: int
    dimension: int

    @property
    def deviation(self) -> float:
        """Of the noise on each coordinate of the sum."""
        return self.noise * self.clip

    def sums(self, gradients: Array, calls: int) -> Array:
        """The noisy sums of this many calls, a row each."""
        rows = [read_numbers(self.function(gradients.copy())).reshape(-1) for _ in range(calls)]
        for count in {len(row) for row in rows} - {self.dimension}:
            message = f"step returned {count} numbers, and a gradient has {self.dimension}"
            raise InvalidInput(message, field="step", value=count)
        return np.array(rows) * self.share


# Is a batch drawn as claimed: each example by itself, with one probability, anew each time?
# `sample(n)` returns the places (or a mask) of one batch. Under Poisson sampling the inclusions of
# n examples in N batches are nN independent Bernoulli variables of the claimed rate, so how often
# any is in, how often each is in, and how often one is in two batches in a row are binomial, and
# batches of one size in all calls are as unlikely as that.


def check_batches(
    sample: Callable[[int], Any], examples: int, rate: float, calls: int
) -> Iterator[StepFinding]:
    """Rates, sizes, and what follows on what."""
    from scipy.stats import binom

    masks = np.array([_batch_mask(sample(examples), examples) for _ in range(calls)])
    hits, claimed = int(masks.sum()), spell(rate)
    said = f"an example is in a batch with probability {spell(hits / masks.size, 3)}, not {claimed}"
    yield StepFinding(SAMPLING, said, binomial_tail(hits, masks.size, rate))
    # The example that is in most often; the p-value pays for all of them.
    each = masks.sum(axis=0)
    example = int(np.argmax(each))
    share = spell(each[example] / calls, 3)
    said = f"example {example} is in {share} of the batches, not {claimed}"
    p_value = binomial_tail(int(each[example]), calls, rate) * examples
    yield StepFinding(SAMPLING, said, min(1.0, p_value))
    sizes = masks.sum(axis=1)
    if rate < 1 and (sizes == sizes[0]).all():
        said = f"every batch has {sizes[0]} examples: batches are dealt out, not sampled"
        chances = binom.pmf(np.arange(examples + 1), examples, rate)
        yield StepFinding(SAMPLING, said, float((chances**calls).sum()))
    pairs = masks[0 : calls // 2 * 2 : 2] & masks[1::2]
    twice, count = int(pairs.sum()), pairs.size
    said = "who is in one batch is in the next {} than by chance: batches depend on each other"
    fewer = 1 - binomial_tail(twice + 1, count, rate**2)
    yield StepFinding(SAMPLING, said.format("less often"), fewer)
    yield StepFinding(SAMPLING, said.format("more often"), binomial_tail(twice, count, rate**2))


def _batch_mask(batch: Any, examples: int) -> Array:
    values = read_numbers(batch).reshape(-1)
    if len(values) == examples and np.isin(values, (0, 1)).all():
        return values.astype(bool)
    if not ((values >= 0) & (values < examples) & (values == np.floor(values))).all():
        message = f"sample must return a mask of {examples} examples, or places below {examples}"
        raise InvalidInput(message, field="sample")
    mask = np.zeros(examples, dtype=bool)
    mask[values.astype(int)] = True
    return mask


# Is the norm of each example's gradient limited? One example has a gradient far beyond the limit,
# along one coordinate or spread over all; the others have none. Along its direction it moves the
# sum by `clip` at most, and the sums of calls without gradients say how much noise there is:
# Student's t, with the spread of those alone, is exact for Gaussian noise of any size (that a batch
# may leave the example out only makes it smaller). Where calls are not independent, ranks are
# compared instead. A gradient that is not finite must not reach the sum. And examples that are all
# at the limit must all count: a step that clips their sum instead would let one example push the
# others away.


GRADIENT_FACTOR = 1000.0
CLOSE_SHARE = 0.999
"""How near to the limit a gradient is that no step should change."""


def check_clipping(step: CalledStep, silent: Array, *, independent: bool) -> Iterator[StepFinding]:
    """Two directions of gradients, gradients that are not finite, and all at the limit.

    Args:
        silent: the sums of calls without gradients.
        independent: whether calls have noise of their own.
    """
    one = np.eye(step.dimension)[0]
    spread = np.full(step.dimension, 1 / math.sqrt(step.dimension))
    for words, direction in (("along one coordinate", one), ("spread over all", spread)):
        gradients = np.zeros((step.examples, step.dimension))
        gradients[0] = direction * GRADIENT_FACTOR * step.clip
        along = step.sums(gradients, len(silent)) @ direction
        yield _check_reach(along, silent @ direction, step.clip, words, independent)
    # A gradient of infinities, which a division by its norm turns into NaN.
    gradients = np.zeros((step.examples, step.dimension))
    gradients[0] = math.inf
    with np.errstate(all="ignore"):
        sums = step.sums(gradients, 1 if step.rate == 1 else 20)
    if not np.isfinite(sums).all():
        yield StepFinding(CLIPPING, "a gradient that is not finite reaches the sum", 0.0)
    if independent:
        yield _check_sum_clipping(step, one, silent @ one)


def _check_reach(
    along: Array, usual: Array, clip: float, words: str, independent: bool
) -> StepFinding:
    if not np.isfinite(along).all():
        return StepFinding(CLIPPING, f"a large gradient {words} gives no finite sum", 0.0)
    moved = float(along.mean() - usual.mean())
    said = (
        f"a gradient of norm {spell(GRADIENT_FACTOR * clip)} {words} moves the sum by about "
        f"{spell(moved, 3)}, "
        f"not by {spell(clip)} at most"
    )
    test = _student_p_value if independent else _rank_p_value
    return StepFinding(CLIPPING, said, test(along - clip, usual))


def _student_p_value(larger: Array, usual: Array) -> float:
    """How unlikely a mean this much larger is, if both are equal; the spread is that of `usual`."""
    from scipy.special import stdtr

    count = len(usual)
    beyond = float(larger.mean() - usual.mean())
    spread = float(usual.std(ddof=1)) * math.sqrt(2 / count)
    if spread <= 1e-12 * abs(beyond):
        return float(beyond <= 1e-9)
    return float(stdtr(count - 1, -beyond / spread))


def _rank_p_value(larger: Array, usual: Array) -> float:
    """How unlikely it is that this many of `larger` are above all of `usual`, in any order."""
    count = len(usual)
    above = int((larger > usual.max() + 1e-9).sum())
    return math.prod((count - step) / (2 * count - step) for step in range(above))


def _check_sum_clipping(step: CalledStep, direction: Array, usual: Array) -> StepFinding:
    """All examples at the limit, in one direction: their sum is not limited."""
    calls = len(usual)
    gradients = np.tile(direction * step.clip * CLOSE_SHARE, (step.examples, 1))
    along = step.sums(gradients, calls) @ direction
    expected = step.rate * step.examples * step.clip * CLOSE_SHARE
    mean = float(along.mean())
    said = (
        f"{step.examples} gradients at the limit add up to about {spell(mean, 3)} instead of "
        f"{spell(expected, 3)}: their sum is clipped, not each of them"
    )
    if step.rate == 1:
        return StepFinding(CLIPPING, said, _student_p_value(expected - along, -usual))
    # A sum of independent bounded and normal terms: sub-Gaussian.
    deviation = max(step.deviation, float(usual.std()))
    width = deviation**2 + step.examples * step.clip**2 / 4
    below = max(0.0, expected - mean)
    return StepFinding(CLIPPING, said, math.exp(-(below**2) * calls / (2 * width)))


# Is there as much noise as claimed, everywhere, and new noise at each call? Without gradients a sum
# is noise alone, N(0, deviation²) in each coordinate and call. Sums of squares of independent ones
# are χ²: over all, in each coordinate, of differences of neighbouring coordinates (the same noise
# everywhere has none). Calls that repeat the noise of others exactly, or whose noise points the
# same way as that of the call before more often than chance makes it, reuse a seed; what follows
# assumes that none does.


def check_seed(sums: Array) -> Iterator[StepFinding]:
    """Whether noise is new at each call, by the sums of calls without gradients."""
    calls = len(sums)
    if not sums.any() or not np.isfinite(sums).all():
        return  # no noise at all
    repeated = calls - len(np.unique(sums, axis=0))
    if repeated:
        share = f"{spell(repeated)} of {spell(calls)} calls"
        yield StepFinding(SEED, f"{share} had exactly the noise of another: a seed is reused", 0.0)
        return
    # The sign test: how unlikely this many pairs of like sign are, a call a sign, either way.
    pairs = sums[0 : calls // 2 * 2 : 2] * sums[1::2]
    like = int((pairs.sum(axis=1) > 0).sum())
    p_value = 2 * binomial_tail(max(like, len(pairs) - like), len(pairs), 0.5)
    yield StepFinding(SEED, "consecutive calls have noise alike", min(1.0, p_value))


def check_noise(sums: Array, deviation: float) -> Iterator[StepFinding]:
    """How much there is, and where, if calls are independent."""
    if not np.isfinite(sums).all():
        yield StepFinding(NOISE, "without gradients the sum is not finite", 0.0)
        return
    scaled, claimed = sums / deviation, spell(deviation)
    squares = (scaled**2).sum(axis=0)
    seen = math.sqrt(float(squares.sum()) / scaled.size) * deviation
    said = f"its standard deviation is about {spell(seen, 3)}, not {claimed}"
    yield StepFinding(NOISE, said, _chi_square_cdf(float(squares.sum()), scaled.size))
    if not sums.any():
        return
    # The coordinate with the least noise; the p-value pays for all of them.
    least = int(np.argmin(squares))
    seen = math.sqrt(float(squares[least]) / len(scaled)) * deviation
    said = f"coordinate {least} has a standard deviation of about {spell(seen, 3)}, not {claimed}"
    p_value = _chi_square_cdf(float(squares[least]), len(scaled)) * len(squares)
    yield StepFinding(NOISE, said, min(1.0, p_value))
    # Differences of pairs of coordinates: half of their squares are χ² as well.
    even = len(squares) // 2 * 2
    pairs = scaled[:, 0:even:2] - scaled[:, 1:even:2]
    said = "the noise of neighbouring coordinates is alike"
    yield StepFinding(NOISE, said, _chi_square_cdf(float((pairs**2).sum()) / 2, pairs.size))


def _chi_square_cdf(squares: float, count: int) -> float:
    """Pr[χ² with this many degrees of freedom ≤ squares]."""
    from scipy.special import gammainc

    return float(gammainc(count / 2, squares / 2))


# Audit one step of private gradient descent, so that a finding names the part that is broken. Every
# check has an equal part of the error, so that a step which keeps its claims is blamed for anything
# with at most that probability. Last, the step as a whole: examples with gradients at the limit,
# each along a coordinate of its own (gradient canaries), are in or out at random, and the noisy
# sums are their scores. Gaussian noise of multiplier σ is (1/σ)-GDP, which `curve_run` tests.


CHECK_COUNT = 16
"""More than there are checks: each has this part of the error."""
RUN_COUNT = 20
"""Calls whose inclusion bits are guessed together."""


@dataclass(frozen=True)
class StepAudit:
    """The result of `gradient_step`.

    Attributes:
        findings: parts that are not as claimed, the clearest first.
        run: the gradient canaries: `run.mu` is a lower bound on the μ of the step.
    """

    findings: tuple[StepFinding, ...]
    confidence: float
    run: CurveRun
    checked: tuple[str, ...]

    @property
    def refuted(self) -> bool:
        """Whether some part is not as claimed."""
        return bool(self.findings)

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        findings = [finding.to_dict() for finding in self.findings]
        about = {"refuted": self.refuted, "confidence": self.confidence, "findings": findings}
        return {**about, "checked": list(self.checked), "run": self.run.to_dict()}


def gradient_step(  # noqa: PLR0913 (public parameters, all by name)
    step: Callable[[Any], Any],
    *,
    clip: object,
    noise: object,
    sample: Callable[[int], Any] | None = None,
    rate: object = 1,
    share: object = 1,
    examples: object = 32,
    dimension: object = 64,
    calls: object = 200,
    confidence: object = 0.95,
    seed: object = None,
) -> StepAudit:
    """Attack the clipping, the noise and the sampling of one step, and the step as a whole.

    Args:
        step: `step(gradients)` is given one gradient a row, and returns the clipped, noisy sum.
        clip, noise: the claimed norm, and noise multiplier (its standard deviation over `clip`).
        sample: `sample(n)` draws the places of one batch; left out, sampling is checked only by how
            much gradients count, if `step` draws batches itself.
        rate: with which each example is in a batch, by `sample` or inside of `step`.
        share: what the step divides its sum by, such as a batch size.
        examples, dimension: of the gradients that are tried.
        seed: for canaries that repeat themselves.

    Raises:
        MechanismFailed: the step raised.
    """
    level, error = read_confidence(confidence)
    drawn = float(read_ranged(rate, "rate", "above 0 and at most 1"))
    count = read_whole(calls, "calls", 20)
    few, wide = read_whole(examples, "examples", 2), read_whole(dimension, "dimension", 2)
    if few > wide:
        raise invalid_value("dimension", f"at least {few}, the number of examples", wide)
    if not callable(step):
        raise invalid_value("step", "a function of gradients", type(step).__name__)
    given = (("clip", clip), ("noise", noise), ("share", share))
    clip, noise, share = (float(read_ranged(each, name, "above 0")) for name, each in given)
    asked = CalledStep(step, clip, noise, drawn if sample is None else 1.0, share, few, wide)
    part = error / CHECK_COUNT
    findings: list[StepFinding] = []
    checked = ["clipping", "noise", "seed"]
    try:
        silent = asked.sums(np.zeros((asked.examples, asked.dimension)), count)
        findings += _findings_below(check_seed(silent), part)
        independent = not findings
        if independent:
            findings += _findings_below(check_noise(silent, asked.deviation), part)
        findings += _findings_below(check_clipping(asked, silent, independent=independent), part)
        if sample is not None:
            findings += _findings_below(
                check_batches(sample, asked.examples * 4, drawn, count), part
            )
            checked.append("sampling")
        run, whole_step = _audit_whole_step(asked, part, seed)
    except WhosinError:
        raise
    except Exception as problem:
        words = f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
        raise MechanismFailed(f"the step failed with {words}") from problem
    if whole_step is not None and not findings:
        findings.append(whole_step)
    findings.sort(key=lambda finding: finding.p_value)
    return StepAudit(tuple(findings), level, run, (*checked, WHOLE))


def _findings_below(findings: Iterable[StepFinding], part: float) -> list[StepFinding]:
    return [each for each in findings if each.p_value <= part]


def _audit_whole_step(
    step: CalledStep, part: float, seed: object
) -> tuple[CurveRun, StepFinding | None]:
    """Gradient canaries, each included at random, with a coordinate of its own."""
    rng = np.random.default_rng(None if seed is None else read_whole(seed, "seed", 0))
    included = rng.random((RUN_COUNT, step.examples)) < 0.5
    told = []
    for flips in included:
        gradients = np.eye(step.examples, step.dimension) * step.clip * flips[:, None]
        told.append(step.sums(gradients, 1)[0, : step.examples])
    scores = np.nan_to_num(np.concatenate(told), nan=0.0)
    run = curve_run(included.reshape(-1), scores, 1 - part, known_rate=True)
    if not run.refutes(GaussianCurve(1 / step.noise)):
        return run, None
    said = f"μ is at least {format_figures(run.mu, 3, 'down')}, not {spell(1 / step.noise, 3)}"
    return run, StepFinding(WHOLE, said, part)
