"""Audits: attack a black box and report a lower bound that is valid.

Every bound is a lower confidence bound with exact coverage, after all choices (of events,
thresholds, directions, numbers of guesses, inputs) have been paid for. This room does not import
the exact engine, so that each can check the other. An audit refutes, or does not; it never proves
privacy.

>>> import numpy as np
>>> import whosin as wi
>>> def response(truth, size, rng):  # keeps the truth three times out of four
...     return np.where(rng.random(size) < 0.75, truth, 1 - truth)
>>> found = wi.audit.two_worlds(response, 1, 0, samples=100_000, seed=1)
>>> print(f"{found.epsilon:.2f} of {np.log(3):.2f}; {found.event}")
1.09 of 1.10; output is 1
>>> print(f"from 50% to at least {found.posterior(0.5):.1%}")
from 50% to at least 74.8%
"""

from whosin.audit.bounds import Audit, AuditBounds, EventCount
from whosin.audit.event_search import Event
from whosin.audit.gradients import StepAudit, StepFinding, gradient_step
from whosin.audit.model_scores import Rate, Scores, most_scores, score_loss, score_text_loss, scores
from whosin.audit.neighbouring_inputs import (
    InputPair,
    check_claim,
    neighbour_tables,
    neighbouring_vectors,
    search,
    two_worlds,
)
from whosin.audit.recorded_samples import samples
from whosin.audit.sampling import one_draw
from whosin.audit.single_run import OneRun, one_run
from whosin.audit.synthetic_data import SyntheticAudit, synthetic, synthetic_score
from whosin.audit.tradeoff_claims import ApproximateCurve, CurveRun, GaussianCurve, curve_run
from whosin.audit.training_runs import TrainingAudit, training
from whosin.errors import require_extras

require_extras("audit")

function, run = two_worlds, one_run
"""By the names of `whosin audit`, which `samples`, `scores`, `training` and `synthetic` have."""

__all__ = [
    "ApproximateCurve",
    "Audit",
    "AuditBounds",
    "CurveRun",
    "Event",
    "EventCount",
    "GaussianCurve",
    "InputPair",
    "OneRun",
    "Rate",
    "Scores",
    "StepAudit",
    "StepFinding",
    "SyntheticAudit",
    "TrainingAudit",
    "check_claim",
    "curve_run",
    "function",
    "gradient_step",
    "most_scores",
    "neighbour_tables",
    "neighbouring_vectors",
    "one_draw",
    "one_run",
    "run",
    "samples",
    "score_loss",
    "score_text_loss",
    "scores",
    "search",
    "synthetic",
    "synthetic_score",
    "training",
    "two_worlds",
]


def __dir__() -> list[str]:
    return __all__
