"""The claim that an audit attacks, and whether the audit could have refuted it at all.

Contract: a gate never passes by accident. Where the evidence could not have refuted the claim,
whatever leaks, it is undecided.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whosin.errors import InvalidInput

if TYPE_CHECKING:
    from whosin.calibration import Plan


@dataclass(frozen=True)
class Claim:
    """(ε, δ), by itself or of a plan; ε is None where nothing is claimed."""

    epsilon: float | None = None
    delta: float = 0.0
    plan: Plan | None = None


def read_claim(epsilon: str | None, delta: str | None, against: Path | None) -> Claim:
    """The claim that the options state."""
    from whosin.calibration import Plan
    from whosin.exact import ranged

    if against is not None:
        for option, value in (("--at-most", epsilon), ("--delta", delta)):
            if value is not None:
                raise InvalidInput(option, "left out with --against", value)
        plan = Plan.load(against)
        return Claim(plan.epsilon, plan.dp_delta, plan)
    if epsilon is None:
        if delta is not None:
            raise InvalidInput("--delta", "given with --at-most", delta)
        return Claim()
    claim = ranged(epsilon, "--at-most", "at least 0")
    granted = ranged(delta or 0, "--delta", "at least 0 and below 1")
    return Claim(float(claim), float(granted))


def why_undecided(bounds: Any, claim: Claim) -> str | None:
    """Why this audit could not have refuted its claim, if that is so."""
    from whosin.audit import (
        Audit,
        ModelAudit,
        OneRun,
        Scores,
        SyntheticAudit,
        most_scores,
    )
    from whosin.exact import decimals

    if getattr(bounds, "blind", False):
        return "nothing could be learnt"
    run = bounds.run if isinstance(bounds, ModelAudit) else bounds
    if claim.epsilon is not None and isinstance(run, OneRun):
        most = run.most
        if most <= claim.epsilon:
            return f"{run.canaries:,} coins could show no more than ε = {decimals(most, 2, 'up')}"
    if claim.epsilon is not None and isinstance(run, Audit) and not run.could_refute(claim.epsilon):
        trials = run.counts[0].trials
        return f"{trials:,} counted draws could not refute ε = {claim.epsilon:g}, whatever leaks"
    if claim.epsilon is not None and isinstance(run, Scores | SyntheticAudit):
        told = run.membership if isinstance(run, SyntheticAudit) else run
        most = most_scores(len(told.members), len(told.non_members), told.confidence, claim.delta)
        if most <= claim.epsilon:
            scores = len(told.members) + len(told.non_members)
            return f"{scores:,} scores could show no more than ε = {decimals(most, 2, 'up')}"
    return None
