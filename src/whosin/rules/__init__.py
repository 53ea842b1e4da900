"""The rules that offices use today, and what they leak: suppression, rounding, cell keys.

The rules are mechanisms on a count, and work wherever one does.
Numbers such as F21 or T18 are explained in docs/theory/numbers.md.
"""

from whosin.mechanisms.count_rules import (
    CellKey,
    Exact,
    FromTable,
    RandomRound,
    Round,
    Rule,
    Suppress,
)
from whosin.rules.publication import NextSmallest, Publication
from whosin.rules.published import CellFinding, check_published, posteriors
from whosin.rules.rule_plans import Failure, RulePlan, failure, plan_rule, profile

__all__ = [
    "CellFinding",
    "CellKey",
    "Exact",
    "Failure",
    "FromTable",
    "NextSmallest",
    "Publication",
    "RandomRound",
    "Round",
    "Rule",
    "RulePlan",
    "Suppress",
    "check_published",
    "failure",
    "plan_rule",
    "posteriors",
    "profile",
]


def __dir__() -> list[str]:
    return __all__
