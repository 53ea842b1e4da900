"""Audits: attack a black box and report a lower bound that is valid.

Contract: every bound is a lower confidence bound with exact coverage, after all choices (of events,
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

from whosin.audit.attack_scores import Rate as Rate
from whosin.audit.attack_scores import Scores as Scores
from whosin.audit.attack_scores import most_scores as most_scores
from whosin.audit.attack_scores import scores as scores
from whosin.audit.curves.claims import ApproximateCurve as ApproximateCurve
from whosin.audit.curves.claims import GaussianCurve as GaussianCurve
from whosin.audit.curves.run import CurveRun as CurveRun
from whosin.audit.curves.run import curve_run as curve_run
from whosin.audit.events import Event as Event
from whosin.audit.gradients.findings import StepFinding as StepFinding
from whosin.audit.gradients.step import StepAudit as StepAudit
from whosin.audit.gradients.step import gradient_step as gradient_step
from whosin.audit.input_search import search as search
from whosin.audit.inputs import InputPair as InputPair
from whosin.audit.inputs import neighbours as neighbours
from whosin.audit.models.scoring import from_loss as from_loss
from whosin.audit.models.scoring import from_text_loss as from_text_loss
from whosin.audit.models.training import ModelAudit as ModelAudit
from whosin.audit.models.training import model as model
from whosin.audit.recorded import two_samples as two_samples
from whosin.audit.result import Audit as Audit
from whosin.audit.result import AuditBounds as AuditBounds
from whosin.audit.result import EventCount as EventCount
from whosin.audit.sampling import one_draw as one_draw
from whosin.audit.single_run import OneRun as OneRun
from whosin.audit.single_run import one_run as one_run
from whosin.audit.synthetic.membership import from_synthetic as from_synthetic
from whosin.audit.synthetic.tables import SyntheticAudit as SyntheticAudit
from whosin.audit.synthetic.tables import synthetic_table as synthetic_table
from whosin.audit.table_pairs import neighbour_tables as neighbour_tables
from whosin.audit.world_pairs import check_claim as check_claim
from whosin.audit.world_pairs import two_worlds as two_worlds
from whosin.extras import needs

needs("audit")
