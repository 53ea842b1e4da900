"""Rules about counts, for people: what keeps a promise, for whom, and what it costs."""

from __future__ import annotations

import math

from rich.console import Console

from whosin.beliefs import percent
from whosin.exact import figures
from whosin.report.secrets import secret_words
from whosin.report.terminal_tables import columns_table, print_table
from whosin.report.text import print_filled, print_reasons
from whosin.rules import RulePlan

RULE_WORDS = {
    "suppress": "Suppress counts below {}",
    "round": "Round to the nearest {}",
    "random-round": "Round at random to multiples of {}",
    "population": "Publish exact counts where every finest cell could have at least {:,} members",
}
NONE = {
    "suppress": "No threshold keeps this promise, not even one that hides every count but 0.",
    "round": "No base up to the number of people keeps this promise.",
    "random-round": "No base up to the number of people keeps this promise.",
    "population": "No population of up to 100,000 behind a cell keeps this promise.",
}


def print_rule_plan(plan: RulePlan, secret: str = "membership") -> None:
    """The rule, how often it fails, for whom it holds and for whom not, and noise beside it."""
    words = secret_words(secret)
    console = Console(highlight=False)
    if plan.parameter is None:
        console.print(f"[bold]{NONE[plan.kind]}[/bold]", soft_wrap=True)
    else:
        console.print(
            f"[bold]{RULE_WORDS[plan.kind].format(plan.parameter)}[/bold]", soft_wrap=True
        )
    print_filled(
        f"Promise: whoever is looking {plan.target.words()}{words.sure}, except with probability "
        f"{plan.delta:g} given that {words.given}. A likelihood ratio of {plan.ratio:.4g} is "
        "allowed."
    )
    print_filled(f"It is for {plan.family.words()}.")
    if plan.parameter is not None:
        print_filled(f"It fails with probability {_between(*plan.failure)}.")
    if plan.without is not None:
        print_filled(
            f"The exact count of {plan.people:,} people would fail with probability "
            f"{_between(*plan.without)}."
        )
    _print_costs(console, plan)
    _print_remains(console, plan)
    print_filled(
        "It does not hold for someone who may know everyone else: they see the count jump when "
        f"{words.jump}. Noise does. Nor does a rule promise anything about two tables together."
    )
    print_reasons(console, plan.theorems)


def _print_costs(console: Console, plan: RulePlan) -> None:
    numbers = ("expected error", "counts hidden")
    table = columns_table("cost", *numbers, "holds for", right=numbers)
    for cost in plan.costs:
        error = "–" if math.isnan(cost.error) else f"{cost.error:.3g}"
        name = f"this rule, {percent(cost.belief)} in"
        table.add_row(name, error, percent(min(max(cost.suppressed, 0.0), 1.0)), "those above")
    for each in plan.beside:
        name = "no noise at all" if each.kind == "none" else f"{each.kind} noise"
        table.add_row(name, f"{each.error:.3g}", "0%", each.against)
    print_table(console, table)


def _print_remains(console: Console, plan: RulePlan) -> None:
    table = columns_table("if they know", "the promise fails with probability")
    for each in plan.remains:
        table.add_row(f"{each.known:,} others", _between(each.lower, each.upper))
    if plan.remains:
        print_table(console, table)


def _between(lower: float, upper: float) -> str:
    """A bracket in words."""
    if upper <= lower * (1 + 1e-6):
        return f"{upper:.3g}"
    most = figures(upper, 3, "up")
    return f"between {figures(lower, 3, 'down')} and {most}" if lower > 0 else f"at most {most}"
