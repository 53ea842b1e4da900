"""Entries of a history, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One line of a dataset's history.

    Attributes:
        kind: "registered", "amended", "debit", "answer", "halted", "resumed" or "closed".
        request: the id of the question that a debit or an answer belongs to.
        body: who, when, and what the kind has to say: a plan, a question with its cost under each
            relation, the digest of an answer.
        head: the digest of this entry and all before it.
    """

    dataset: str
    number: int
    kind: str
    request: str | None
    body: dict[str, Any]
    head: str

    def linked(self) -> dict[str, Any]:
        """What the digest covers."""
        return {key: value for key, value in vars(self).items() if key != "head"}

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class Debit:
    """A debit that stands.

    Attributes:
        new: whether this call made it; False for a retry of an earlier question.
        answer: the answer that is already stored, if there is one: show that, draw nothing.
        body: what was paid for, as its entry says: the question with its costs and its table.
    """

    dataset: str
    request: str
    new: bool
    answer: str | None
    body: Mapping[str, Any] = field(default_factory=dict)
