"""The two pictures of a plan or an ε: how sure anyone can become, and what the best test reaches.

Which one comes first depends on the target: a target about rates is a point of the second.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from whosin.calibration import Plan, Process, ProcessPlan, Profile
from whosin.curves import of as curve_of
from whosin.report import card
from whosin.report.charts import belief_chart, rates_chart
from whosin.report.explanation import Explanation
from whosin.report.sufficiency import Sufficiency

BELIEFS = "How sure anyone can become"
RATES = "How many of those who are in the best test recognises"


def plan_charts(plan: Plan, title: str = BELIEFS) -> list[Any]:
    """Both pictures of a plan, the target's own first."""
    allowed = plan.target.points if isinstance(plan.target, Profile) else ()
    pictures = [
        belief_chart(card.curves(plan), card.band(plan), title, allowed),
        rates_chart(curve_of(plan), RATES, card.promised_rates(plan.target)),
    ]
    return pictures[::-1] if plan.target.averages else pictures


def process_chart(plan: ProcessPlan) -> Any:
    """What the best test reaches after all runs."""
    title = f"What the best test reaches after {runs(plan.process)}"
    return rates_chart(curve_of(plan), title, card.promised_rates(plan.target))


def runs(process: Process) -> str:
    """How often a process runs, in words."""
    return "one step" if process.steps == 1 else f"{process.steps:,} steps"


def explanation_chart(
    meaning: Explanation,
    verdict: Sufficiency | None = None,
    band: tuple[Fraction, Fraction] | None = None,
) -> Any:
    """An ε in beliefs; in rates, where it is held against a target about them."""
    title = f"What {meaning.numbers} means"
    if verdict is not None and verdict.target.averages:
        return rates_chart(meaning.tests(), title, card.promised_rates(verdict.target))
    low, high = (float(end) for end in band or (0, 1))
    return belief_chart(meaning.curves(), (low, high), title)
