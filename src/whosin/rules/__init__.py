"""The rules that offices use today, and what they leak: suppression, rounding, cell keys.

The rules are mechanisms on a count, and work wherever one does.
Numbers such as F21 or T18 are explained in docs/theory/numbers.md.
"""

from whosin.mechanisms.count_rules import CellKey as CellKey
from whosin.mechanisms.count_rules import Exact as Exact
from whosin.mechanisms.count_rules import FromTable as FromTable
from whosin.mechanisms.count_rules import RandomRound as RandomRound
from whosin.mechanisms.count_rules import Round as Round
from whosin.mechanisms.count_rules import Rule as Rule
from whosin.mechanisms.count_rules import Suppress as Suppress
from whosin.rules.publication import NextSmallest as NextSmallest
from whosin.rules.publication import Publication as Publication
from whosin.rules.published import CellFinding as CellFinding
from whosin.rules.published import check_published as check_published
from whosin.rules.published import posteriors as posteriors
from whosin.rules.rule_plans import Failure as Failure
from whosin.rules.rule_plans import RulePlan as RulePlan
from whosin.rules.rule_plans import failure as failure
from whosin.rules.rule_plans import plan_rule as plan_rule
from whosin.rules.rule_plans import profile as profile

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
