"""Answers as the ledger stores them, to the questions as they were paid for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whosin.ledger import units
from whosin.ledger.charge import Cost
from whosin.release.answer import Answer
from whosin.release.queries.together import apportioned, questions


def answers_of(paid: Mapping[str, Any], stored: Any, noise: str, relation: str) -> list[Answer]:
    """The answer of a debit, or those of all questions that were paid for at once.

    Args:
        paid: the debit's entry, as data.
        stored: its answer, as data.
        noise: what noise it has, for entries that do not say it.
    """
    what, cost = paid["what"], paid["costs"].get(relation)
    whole = Cost(units.INFINITE, units.INFINITE) if cost is None else Cost(**cost)
    several = "answers" in stored
    asked = questions(what) if several else [dict(what)]
    answers = stored["answers"] if several else [stored]
    return [
        Answer(
            question.get("name") or question["query"],
            question,
            tuple(answer["columns"]),
            tuple(tuple(row) for row in answer["rows"]),
            stored.get("noise", noise),
            own,
            answer.get("details"),
        )
        for question, answer, own in zip(
            asked, answers, apportioned(whole, len(asked)), strict=True
        )
    ]
