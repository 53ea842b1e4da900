"""Answers: what may be shown, with its error and its price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whosin.ledger import Standing
from whosin.ledger.charge import Cost
from whosin.showing import Shown


@dataclass(frozen=True)
class Answer(Shown):
    """The answer to one query.

    Attributes:
        question: what was asked, as data.
        columns, rows: the answer as a table; `low` and `high` are a 95% interval for the bounded
            answer: clamping and bounding are not covered.
        noise: what noise it has, in words.
        cost: what it cost under the plan's relation.
    """

    title: str
    question: Mapping[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    noise: str
    cost: Cost

    @property
    def value(self) -> Any:
        """The single number of an answer without cells; otherwise the column of numbers, or of
        what was selected."""
        if "value" in self.columns:
            values = [row[self.columns.index("value")] for row in self.rows]
        else:
            start = 1 if self.columns[0] == "rank" else 0
            values = [row[start] if len(row) == start + 1 else row[start:] for row in self.rows]
        single = self.columns[0] in ("value", "file")
        return values[0] if single and len(values) == 1 else values

    @property
    def interval(self) -> Any:
        """(low, high) of a single number."""
        if "low" not in self.columns or len(self.rows) != 1:
            return None
        row = dict(zip(self.columns, self.rows[0], strict=True))
        return row["low"], row["high"]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "title": self.title,
            "question": dict(self.question),
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "noise": self.noise,
            "cost": vars(self.cost),
        }

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        import pyarrow as pa

        columns = zip(*self.rows, strict=True) if self.rows else [[] for _ in self.columns]
        arrays = [pa.array(_alike(list(column))) for column in columns]
        return pa.table(dict(zip(self.columns, arrays, strict=True)))

    def to_pandas(self) -> Any:
        """A pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A Polars frame."""
        import polars

        return polars.from_arrow(self.to_arrow())


@dataclass(frozen=True)
class Release(Shown):
    """A batch of answers, and where the dataset stands after it."""

    request: str
    answers: tuple[Answer, ...]
    standing: Standing

    def __iter__(self) -> Any:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, key: int | str) -> Answer:
        if isinstance(key, str):
            found = [answer for answer in self.answers if answer.title == key]
            if not found:
                raise KeyError(key)
            return found[0]
        return self.answers[key]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "request": self.request,
            "answers": [answer.to_dict() for answer in self.answers],
            "standing": self.standing.to_dict(),
        }


def _alike(values: Sequence[Any]) -> Sequence[Any]:
    """Values of one type: numbers as they are, anything mixed as texts."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float}:
        return [float(value) for value in values] if float in kinds else values
    return values if len(kinds) == 1 else [str(value) for value in values]
