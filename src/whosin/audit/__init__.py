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

from whosin.audit.events import Audit as Audit
from whosin.audit.events import AuditBounds as AuditBounds
from whosin.audit.events import Event as Event
from whosin.audit.events import EventCount as EventCount
from whosin.audit.gradients import StepAudit as StepAudit
from whosin.audit.gradients import StepFinding as StepFinding
from whosin.audit.gradients import gradient_step as gradient_step
from whosin.audit.input_search import InputPair as InputPair
from whosin.audit.input_search import neighbour_tables as neighbour_tables
from whosin.audit.input_search import neighbouring_vectors as neighbouring_vectors
from whosin.audit.input_search import search as search
from whosin.audit.model_scores import Rate as Rate
from whosin.audit.model_scores import Scores as Scores
from whosin.audit.model_scores import most_scores as most_scores
from whosin.audit.model_scores import score_loss as score_loss
from whosin.audit.model_scores import score_text_loss as score_text_loss
from whosin.audit.model_scores import scores as scores
from whosin.audit.neighbouring_inputs import check_claim as check_claim
from whosin.audit.neighbouring_inputs import samples as samples
from whosin.audit.neighbouring_inputs import two_worlds as two_worlds
from whosin.audit.sampling import one_draw as one_draw
from whosin.audit.single_run import OneRun as OneRun
from whosin.audit.single_run import one_run as one_run
from whosin.audit.synthetic_membership import SyntheticAudit as SyntheticAudit
from whosin.audit.synthetic_membership import synthetic as synthetic
from whosin.audit.synthetic_membership import synthetic_score as synthetic_score
from whosin.audit.tradeoff_claims import ApproximateCurve as ApproximateCurve
from whosin.audit.tradeoff_claims import CurveRun as CurveRun
from whosin.audit.tradeoff_claims import GaussianCurve as GaussianCurve
from whosin.audit.tradeoff_claims import curve_run as curve_run
from whosin.audit.training_runs import TrainingAudit as TrainingAudit
from whosin.audit.training_runs import training as training
from whosin.extras import require_extras

require_extras("audit")

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
    "gradient_step",
    "most_scores",
    "neighbour_tables",
    "neighbouring_vectors",
    "one_draw",
    "one_run",
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
