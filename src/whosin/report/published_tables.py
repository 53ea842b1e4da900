"""What a table would say of people, cell by cell, for whoever is about to publish it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from whosin.beliefs import percent
from whosin.report.terminal_tables import columns_table, print_table
from whosin.rules import CellFinding
from whosin.rules.published import PRIVATE

MOST_ROWS = 30
SECRETS = {
    "membership": ("is in the data", "could be in it"),
    "attribute": ("has the value", "are known to be in it, and could have the value"),
}
"""What someone becomes sure of about a person, and what the population is."""

Labels = tuple[Sequence[str], Sequence[str]]


def findings_data(findings: Sequence[CellFinding], labels: Labels) -> dict[str, Any]:
    """The findings as plain data."""
    return {
        "private": True,
        "warning": PRIVATE,
        "worked_out": sum(each.worked_out for each in findings),
        "within_one": sum(each.within_one for each in findings),
        "cells": [
            {
                "row": labels[0][each.row],
                "column": labels[1][each.column],
                "people": each.people,
                "shown": each.shown,
                "population": each.population,
                "prior": each.prior,
                "posterior": each.posterior,
                "low": each.low,
                "high": each.high,
                "exact": each.exact,
                "bound": each.bound,
            }
            for each in findings
        ],
    }


def print_findings(findings: Sequence[CellFinding], labels: Labels, secret: str) -> None:
    """The cells that say most, first; and what can be worked out."""
    console = Console(highlight=False)
    console.print(PRIVATE)
    ends, could = SECRETS[secret]
    told = [each for each in findings if each.population]
    hidden = [each for each in told if each.shown is None and each.people in ("all", "stayed")]
    open_cells = sum(each.worked_out for each in hidden)
    near = sum(each.within_one for each in hidden)
    if hidden:
        console.print(
            f"{len(hidden)} cells are suppressed: {open_cells} can be worked out exactly, {near} "
            "more up to 1 more or less.",
            soft_wrap=True,
        )
    if not told:
        console.print("Nobody could be in any of these cells.")
        return
    ranked = sorted(told, key=lambda each: -abs(float(each.posterior) - float(each.prior)))
    top = max(told, key=lambda each: each.posterior)
    at_most = "at most " if any(each.bound for each in told) else ""
    console.print(
        f"Of a person behind the cells someone was {percent(top.prior)} sure that this person "
        f"{ends}; they become {at_most}{percent(top.posterior)} sure (in {_name(top, labels)}).",
        soft_wrap=True,
    )
    table = columns_table(
        "cell", "shown", "people", "before", "after", "count",
        right=("shown", "people", "before", "after", "count"),
    )  # fmt: skip
    for each in ranked[:MOST_ROWS]:
        shown = "–" if each.shown is None else str(each.shown)
        shown = "" if each.people in ("left", "joined") else shown
        count = str(each.low) if each.low == each.high else f"{each.low} to {each.high}"
        after = ("≤ " if each.bound else "") + percent(each.posterior)
        table.add_row(
            _name(each, labels), shown, str(each.population), percent(each.prior), after, count
        )
    print_table(console, table)
    if len(ranked) > MOST_ROWS:
        console.print(f"… and {len(ranked) - MOST_ROWS} cells that say less (--json has them all).")
    console.print(f"people: how many {could}. count: what fits everything that is shown.")
    if any(each.bound for each in told):
        console.print(
            "≤: too many tables fit to sum over them; the bound holds whatever the counts are.",
            soft_wrap=True,
        )


def _name(finding: CellFinding, labels: Labels) -> str:
    people = {"left": ", who left", "joined": ", who joined"}.get(finding.people, "")
    return escape(f"{labels[0][finding.row]}, {labels[1][finding.column]}{people}")
