"""Rules about counts for people: plans, and findings about a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whosin.errors import invalid_value
from whosin.exact import format_figures, format_percent
from whosin.families import FixedProbability
from whosin.report.document import (
    Document,
    TextTable,
    Theorems,
    make_document,
    make_table,
    rounding_side,
)
from whosin.rules import CellFinding, RulePlan
from whosin.rules.published import PRIVATE_NOTE
from whosin.rules.rule_plans import MAX_ROUNDING_BASE, MAX_RULE_PEOPLE

RULE_WORDS = {
    "suppress": "Suppress counts below {}",
    "round": "Round to the nearest {}",
    "random-round": "Round at random to multiples of {}",
    "population": "Publish exact counts where every finest cell could have at least {:,} members",
}
NO_RULE_SENTENCES = {
    "suppress": "No threshold keeps this promise, not even one that hides every count but 0.",
    "round": "No base up to {base:,} keeps this promise.",
    "random-round": "No base up to {base:,} keeps this promise.",
    "population": "No population of up to {population:,} behind a cell keeps this promise.",
}
ALONE_SENTENCE = (
    "No population keeps this promise: someone may be sure that nobody else in the cell is in."
)


def describe_rule_plan(plan: RulePlan, secret: str = "membership") -> Document:
    """The rule, how often it fails, for whom it holds and for whom not, and noise beside it."""
    words = secret_words(secret)
    title = _no_rule(plan)
    failing = []
    if plan.parameter is not None:
        title = RULE_WORDS[plan.kind].format(plan.parameter)
        failing.append(f"It fails with probability {_bracket_text(*plan.failure)}.")
    if plan.without is not None:
        failing.append(
            f"The exact count of {plan.people:,} people would fail with probability "
            f"{_bracket_text(*plan.without)}."
        )
    return make_document(
        title,
        f"Promise: whoever is looking {plan.target.words()}{words.sure}, except with probability "
        f"{plan.delta:g} given that {words.given}. A likelihood ratio of {plan.ratio:.4g} is "
        "allowed.",
        f"It is for {plan.family.words()}{_people_text(plan)}.",
        *failing,
        _cost_table(plan),
        *([_knowledge_table(plan)] if plan.remains else []),
        "It does not hold for someone who may know everyone else: they see the count jump when "
        f"{words.jump}. Noise does. Nor does a rule promise anything about two tables together.",
        Theorems(plan.theorems),
    )


def _no_rule(plan: RulePlan) -> str:
    """What was tried, where nothing keeps the promise."""
    if plan.kind == "population" and isinstance(plan.family, FixedProbability):
        return ALONE_SENTENCE
    base = min(plan.people or MAX_ROUNDING_BASE, MAX_ROUNDING_BASE)
    return NO_RULE_SENTENCES[plan.kind].format(base=base, population=MAX_RULE_PEOPLE)


def _people_text(plan: RulePlan) -> str:
    """For how many people a rule is."""
    if plan.kind == "population" or plan.people is None:
        return ""
    if plan.at_least:
        return f", and for {plan.people:,} people or any larger number"
    return (
        f", and for exactly {plan.people:,} people: for more it may fail more often, and there are "
        "too many numbers of people to check"
    )


def _cost_table(plan: RulePlan) -> TextTable:
    rows = [
        (
            f"this rule, {format_percent(cost.belief)} in",
            "–" if math.isnan(cost.error) else f"{cost.error:.3g}",
            format_percent(min(max(cost.suppressed, 0.0), 1.0)),
            "those above",
        )
        for cost in plan.costs
    ]
    for each in plan.beside:
        name = "no noise at all" if each.kind == "none" else f"{each.kind} noise"
        rows.append((name, f"{each.error:.3g}", "0%", each.against))
    numbers = ("expected error", "counts hidden")
    return make_table(("cost", *numbers, "holds for"), rows, right=numbers)


def _knowledge_table(plan: RulePlan) -> TextTable:
    more = " or more" if plan.at_least else ""
    of = f", of {plan.people:,} people{more}," if plan.people and plan.kind != "population" else ""
    rows = [
        (f"{each.known:,} others", _bracket_text(each.lower, each.upper)) for each in plan.remains
    ]
    return make_table((f"if they know{of}", "the promise fails with probability"), rows)


def _bracket_text(lower: float, upper: float | None) -> str:
    """A failure bracket in words: one number where its ends agree."""
    if upper is None:
        return f"at least {format_figures(lower, 3, 'down')}"
    if upper <= lower * (1 + 1e-6):
        return f"{upper:.3g}"
    most = format_figures(upper, 3, "up")
    return (
        f"between {format_figures(lower, 3, 'down')} and {most}" if lower > 0 else f"at most {most}"
    )


# What is secret about a person: being in the data, or a value where everyone is known to be in. The
# arithmetic is the same; only the words differ.


@dataclass(frozen=True)
class SecretWords:
    """How one reading is worded.

    Attributes:
        ends: what someone becomes sure of, after "this person …".
        population: who is counted in a population, after "how many …".
        sure: what a promise is about, after "sure".
        given: what a failure probability is given, after "given that …".
        jump: when a count jumps, after "the count jump when …".
    """

    ends: str
    population: str
    sure: str
    given: str
    jump: str


SECRET_WORDS = {
    "membership": SecretWords(
        "is in the data", "could be in it", "", "the person is in", "the person joins"
    ),
    "attribute": SecretWords(
        "has the value",
        "are known to be in it, and could have the value",
        " that a person, known to be in the data, has the value",
        "the person has it",
        "the person has the value",
    ),
}


def secret_words(secret: object, field: str = "secret") -> SecretWords:
    """The words for what is secret: being in the data, or having a value."""
    if not isinstance(secret, str) or secret not in SECRET_WORDS:
        raise invalid_value(field, " or ".join(SECRET_WORDS), repr(secret))
    return SECRET_WORDS[secret]


MAX_FINDING_ROWS = 30
FINDING_KEYS = (
    *("people", "shown", "population", "prior", "posterior"),
    *("most", "low", "high", "exact", "bound"),
)
Labels = tuple[Sequence[str], Sequence[str]]


def findings_data(findings: Sequence[CellFinding], labels: Labels, secret: str) -> dict[str, Any]:
    return {
        "private": True,
        "warning": PRIVATE_NOTE,
        "secret": secret,
        "summary": summarise_findings(findings, labels, secret),
        "worked_out": sum(each.worked_out for each in findings),
        "within_one": sum(each.within_one for each in findings),
        "cells": [
            {"row": labels[0][each.row], "column": labels[1][each.column]}
            | {key: getattr(each, key) for key in FINDING_KEYS}
            for each in findings
        ],
    }


def summarise_findings(findings: Sequence[CellFinding], labels: Labels, secret: str) -> list[str]:
    """What can be worked out, and how sure anyone becomes, in sentences."""
    told = [each for each in findings if each.population]
    if not told:
        return ["Nobody could be in any of these cells."]
    result = []
    hidden = [each for each in told if each.shown is None and each.people in ("all", "stayed")]
    if hidden:
        open_cells = sum(each.worked_out for each in hidden)
        near = sum(each.within_one for each in hidden)
        are = "1 cell is" if len(hidden) == 1 else f"{len(hidden)} cells are"
        result.append(
            f"{are} suppressed: {open_cells} can be worked out exactly, and {near} more to within "
            "±1."
        )
    top = max(told, key=lambda each: each.posterior)
    after = format_percent(top.posterior, rounding_side(not top.bound))
    after = f"at most {after}" if top.bound else after
    result.append(
        f"Of a person behind the cells someone was {format_percent(top.prior)} sure that this "
        f"person {secret_words(secret).ends}; they become {after} sure (in "
        f"{_finding_name(top, labels)})."
    )
    return result


FINDING_HEADS = ("cell", "shown", "people", "before", "after", "count")


def finding_rows(findings: Sequence[CellFinding], labels: Labels) -> list[tuple[str, ...]]:
    """A row of texts under `FINDING_HEADS` for each cell, those that say most first."""
    told = [each for each in findings if each.population]
    result: list[tuple[str, ...]] = []
    for each in sorted(told, key=lambda each: -abs(float(each.posterior) - float(each.prior))):
        number = "–" if each.shown is None else str(each.shown)
        number = "" if each.people in ("left", "joined") else number
        count = str(each.low) if each.low == each.high else f"{each.low} to {each.high}"
        after = format_percent(each.posterior, rounding_side(not each.bound))
        beliefs = format_percent(each.prior), f"≤ {after}" if each.bound else after
        name = _finding_name(each, labels)
        result.append((name, number, str(each.population), *beliefs, count))
    return result


def finding_notes(findings: Sequence[CellFinding], secret: str) -> list[str]:
    """Notes under the table of findings: what its columns mean."""
    could = secret_words(secret).population
    result = [f"people: how many {could}. count: what fits everything that is shown."]
    if any(each.bound for each in findings if each.population):
        result.append(
            "≤: too many tables fit to sum over them; the bound holds whatever the counts are."
        )
    if any(each.people == "stayed" for each in findings):
        result.append(
            "Of two tables' people as many as possible are taken to be the same; who else moved "
            "between cells, or left while another joined, is not seen."
        )
    return result


def describe_findings(findings: Sequence[CellFinding], labels: Labels, secret: str) -> Document:
    """The cells that say most, first; and what can be worked out."""
    summary = summarise_findings(findings, labels, secret)
    ranked = finding_rows(findings, labels)
    if not ranked:
        return make_document("", PRIVATE_NOTE, *summary)
    table = make_table(FINDING_HEADS, ranked[:MAX_FINDING_ROWS], right=FINDING_HEADS[1:])
    more = len(ranked) - MAX_FINDING_ROWS
    rest = [f"… and {more} cells that say less (--json has them all)."] if more > 0 else []
    notes = finding_notes(findings, secret)
    return make_document("", PRIVATE_NOTE, *summary, table, *rest, *notes)


def _finding_name(finding: CellFinding, labels: Labels) -> str:
    people = {"left": ", who left", "joined": ", who joined"}.get(finding.people, "")
    return f"{labels[0][finding.row]}, {labels[1][finding.column]}{people}"
