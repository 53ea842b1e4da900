"""What a table would say of people, cell by cell, for whoever is about to publish it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from whosin.beliefs import percent
from whosin.report.numbers import side
from whosin.report.secrets import secret_words
from whosin.report.terminal_tables import columns_table, print_table
from whosin.rules import CellFinding
from whosin.rules.published import PRIVATE

MOST_ROWS = 30
Labels = tuple[Sequence[str], Sequence[str]]


def findings_data(findings: Sequence[CellFinding], labels: Labels, secret: str) -> dict[str, Any]:
    """The findings as plain data."""
    return {
        "private": True,
        "warning": PRIVATE,
        "secret": secret,
        "summary": summary(findings, labels, secret),
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
                "most": each.most,
                "low": each.low,
                "high": each.high,
                "exact": each.exact,
                "bound": each.bound,
            }
            for each in findings
        ],
    }


def summary(findings: Sequence[CellFinding], labels: Labels, secret: str) -> list[str]:
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
    after = ("at most " if top.bound else "") + percent(top.posterior, side(not top.bound))
    result.append(
        f"Of a person behind the cells someone was {percent(top.prior)} sure that this person "
        f"{secret_words(secret).ends}; they become {after} sure (in "
        f"{_name(top, labels)})."
    )
    return result


HEADS = ("cell", "shown", "people", "before", "after", "count")


def rows(findings: Sequence[CellFinding], labels: Labels) -> list[tuple[str, ...]]:
    """A row of texts under `HEADS` for each cell, those that say most first."""
    told = [each for each in findings if each.population]
    result: list[tuple[str, ...]] = []
    for each in sorted(told, key=lambda each: -abs(float(each.posterior) - float(each.prior))):
        number = "–" if each.shown is None else str(each.shown)
        number = "" if each.people in ("left", "joined") else number
        count = str(each.low) if each.low == each.high else f"{each.low} to {each.high}"
        after = f"≤ {percent(each.posterior, 'up')}" if each.bound else percent(each.posterior)
        result.append(
            (
                _name(each, labels),
                number,
                str(each.population),
                percent(each.prior),
                after,
                count,
            )
        )
    return result


def notes(findings: Sequence[CellFinding], secret: str) -> list[str]:
    """What the columns mean."""
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


def print_findings(findings: Sequence[CellFinding], labels: Labels, secret: str) -> None:
    """The cells that say most, first; and what can be worked out."""
    console = Console(highlight=False)
    console.print(PRIVATE)
    for line in summary(findings, labels, secret):
        console.print(escape(line), soft_wrap=True)
    ranked = rows(findings, labels)
    if not ranked:
        return
    table = columns_table(*HEADS, right=HEADS[1:])
    for each in ranked[:MOST_ROWS]:
        table.add_row(*map(escape, each))
    print_table(console, table)
    if len(ranked) > MOST_ROWS:
        console.print(f"… and {len(ranked) - MOST_ROWS} cells that say less (--json has them all).")
    for line in notes(findings, secret):
        console.print(line, soft_wrap=True)


def _name(finding: CellFinding, labels: Labels) -> str:
    people = {"left": ", who left", "joined": ", who joined"}.get(finding.people, "")
    return f"{labels[0][finding.row]}, {labels[1][finding.column]}{people}"
