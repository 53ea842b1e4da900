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

from whosin.audit.attack_scores import Rate, Scores, scores
from whosin.audit.events import Event
from whosin.audit.input_search import search
from whosin.audit.inputs import InputPair, neighbours
from whosin.audit.result import Audit, Bounds, Count
from whosin.audit.sampling import one_draw
from whosin.audit.single_run import OneRun, one_run
from whosin.audit.world_pairs import check_claim, two_worlds
from whosin.extras import needs

needs("audit")

__all__ = [
    "Audit",
    "Bounds",
    "Count",
    "Event",
    "InputPair",
    "OneRun",
    "Rate",
    "Scores",
    "check_claim",
    "neighbours",
    "one_draw",
    "one_run",
    "scores",
    "search",
    "two_worlds",
]
