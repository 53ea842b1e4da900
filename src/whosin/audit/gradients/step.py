"""Audit one step of private gradient descent, so that a finding names the part that is broken.

Contract: every check has an equal part of the error, so that a step which keeps its claims is
blamed for anything with at most that probability. Last, the step as a whole: examples with
gradients at the limit, each along a coordinate of its own (gradient canaries), are in or out by
coins, and the noisy sums are their scores. Gaussian noise of multiplier σ is (1/σ)-GDP, which
`curve_run` tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.audit import confidence as exact
from whosin.audit.curves.claims import GaussianCurve
from whosin.audit.curves.run import CurveRun, curve_run
from whosin.audit.gradients.batches import check_batches
from whosin.audit.gradients.clipping import check_clipping
from whosin.audit.gradients.findings import WHOLE, CalledStep, StepClaims, StepFinding
from whosin.audit.gradients.noising import check_noise, check_seed
from whosin.errors import InvalidInput, MechanismFailed, WhosinError
from whosin.exact import figures, ranged
from whosin.validation import whole

CHECKS = 16
"""More than there are checks: each has this part of the error."""
RUNS = 20
"""Calls whose coins are guessed together."""


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


def gradient_step(
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
    level, error = exact.read_confidence(confidence)
    claims = _read(clip, noise, rate if sample is None else 1, share, examples, dimension)
    drawn = float(ranged(rate, "rate", "above 0 and at most 1"))
    count = whole(calls, "calls", 20)
    if not callable(step):
        raise InvalidInput("step", "a function of gradients", type(step).__name__)
    asked = CalledStep(step, claims)
    part = error / CHECKS
    findings: list[StepFinding] = []
    checked = ["clipping", "noise", "seed"]
    try:
        silent = asked.sums(np.zeros((claims.examples, claims.dimension)), count)
        findings += _below(check_seed(silent), part)
        independent = not findings
        if independent:
            findings += _below(check_noise(silent, claims.deviation), part)
        findings += _below(check_clipping(asked, silent, independent=independent), part)
        if sample is not None:
            findings += _below(check_batches(sample, claims.examples * 4, drawn, count), part)
            checked.append("sampling")
        run, whole_step = _as_a_whole(asked, part, seed)
    except WhosinError:
        raise
    except Exception as problem:
        words = f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"
        raise MechanismFailed(f"the step failed with {words}") from problem
    if whole_step is not None and not findings:
        findings.append(whole_step)
    findings.sort(key=lambda finding: finding.p_value)
    return StepAudit(tuple(findings), level, run, (*checked, WHOLE))


def _read(
    clip: object, noise: object, rate: object, share: object, examples: object, dimension: object
) -> StepClaims:
    few, wide = whole(examples, "examples", 2), whole(dimension, "dimension", 2)
    if few > wide:
        raise InvalidInput("dimension", f"at least {few}, the number of examples", wide)
    return StepClaims(
        float(ranged(clip, "clip", "above 0")),
        float(ranged(noise, "noise", "above 0")),
        float(ranged(rate, "rate", "above 0 and at most 1")),
        float(ranged(share, "share", "above 0")),
        few,
        wide,
    )


def _below(findings: Iterable[StepFinding | None], part: float) -> list[StepFinding]:
    return [each for each in findings if each is not None and each.p_value <= part]


def _as_a_whole(step: CalledStep, part: float, seed: object) -> tuple[CurveRun, StepFinding | None]:
    """Gradient canaries, each with a coin and a coordinate of its own."""
    claims = step.claims
    rng = np.random.default_rng(None if seed is None else whole(seed, "seed", 0))
    coins = rng.random((RUNS, claims.examples)) < 0.5
    told = []
    for flips in coins:
        gradients = np.eye(claims.examples, claims.dimension) * claims.clip * flips[:, None]
        told.append(step.sums(gradients, 1)[0, : claims.examples])
    scores = np.nan_to_num(np.concatenate(told), nan=0.0)
    run = curve_run(coins.reshape(-1), scores, 1 - part, known_rate=True)
    if not run.refutes(GaussianCurve(1 / claims.noise)):
        return run, None
    said = f"μ is at least {figures(run.mu, 3, 'down')}, not {1 / claims.noise:.3g}"
    return run, StepFinding(WHOLE, said, part)
