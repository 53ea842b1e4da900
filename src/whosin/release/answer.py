"""Answers as data, and the mark for those too noisy to read.

Cells that are too noisy to read, by one rule: the 95% interval against what it is measured by. This
looks at an answer that was paid for and at nothing else. Amounts (counts, sums) are measured by
themselves, as statistical offices do: a relative standard error above 30%, taken as how far the
farther end of the interval is from the value, over what one Laplace noise has there (2.12), or a
normal one (1.96): sums of Laplace noises are between, so that no cell that is too noisy goes
unmarked, and none whose interval was cut off. What cannot be
below 0 and is below it has no size to be measured by. Points of a column (means, medians,
quantiles) have no 0 of their own: they are measured by the column's declared range, of which their
interval may cover at most a tenth. A rank without an interval cannot be marked: its statement says
how many rows it needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import permutations, product
from typing import Any

from whosin.errors import UnknownName, spell
from whosin.exact import format_decimals, rational, round_up
from whosin.ledger import BudgetState, Ledger, encoding
from whosin.ledger.budget import Cost
from whosin.ledger.entries import Entry, ReleaseRecord, list_publications
from whosin.ledger.registry import STEP_KEY, PeopleBudget
from whosin.notebook_display import Displayed
from whosin.release.column_expressions import free_column_name
from whosin.release.contribution_bounds import bounds_statement
from whosin.release.cost import (
    NOISY_LEVEL,
    OPTIMAL_SPLIT,
    apportion_cost,
    interval_deviations,
    is_too_noisy,
)
from whosin.release.queries import QUERIES
from whosin.release.queries.base import POINT, RANK_ROWS, distinct_titles

NOISY_MARK = "*"


def too_noisy(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    ends: tuple[float, float] | None = None,
    **about: Any,
) -> tuple[bool, ...]:
    """For each row whether its interval is too wide; nothing for answers without intervals. The
    arguments are those of `is_too_noisy`."""
    if not {"value", "low", "high"} <= set(columns):
        return ()
    at = [columns.index(name) for name in ("value", "low", "high")]
    cells = ([row[index] for index in at] for row in rows)
    return tuple(is_too_noisy(value, low, high, ends, **about) for value, low, high in cells)


def noisy_note(marks: Sequence[bool], *, of_range: bool = False) -> str:
    """What the mark means, where there is one."""
    if not any(marks):
        return ""
    many = "" if len(marks) == 1 else f" ({spell(sum(marks))} of {spell(len(marks))} cells)"
    why = f"a relative standard error above {spell(100 * NOISY_LEVEL)}%"
    if of_range:
        why = "the interval covers more than a tenth of the column's range"
    return f"{NOISY_MARK} Too noisy to read: {why}{many}."


SEVERAL_TABLES_NOTE = (
    "Each cell is between low and high with 95% probability, and all cells of a table between "
    "all_low and all_high with 95% probability. The tables agree with each other; whole is a "
    "version of whole numbers from 0 up, with one total in all tables, and is biased."
)
"""What an answer with several tables says about them."""

RANK_KINDS = ("median", "quantile")
CUT_OFF = (
    "A mean is kept within its range: where the interval reaches an end of the range, the mean is "
    "biased away from that end."
)
"""What the answer with a mean near an end of its range says about it."""

RANK_NOTE = (
    "No star can mark a value without an interval: with fewer than about {rows} rows that count, a "
    "value says nothing. Count the rows of the same groups, or ask with interval = true."
)
"""What an answer with medians or quantiles without intervals says about them."""

SYNTHETIC_NOTE = (
    "The rows are nobody's: they were drawn from a model of noisy tables. On average over its "
    "{tables} tables of up to {columns} columns, {distance} of the rows would have to move for "
    "a table to be the true one, give or take {within} with 95% probability."
)
"""What an answer with a synthetic table says about it."""
MAX_NAMED_TITLES = 12
"""Tables that the statement names; the details have all."""


@dataclass(frozen=True)
class Answer(Displayed):
    """The answer to one query.

    Attributes:
        question: what was asked, as data; `counted` in it says what of the rows counts.
        columns, rows: the answer as a table; `low` and `high` are a 95% interval for the bounded
            answer: clamping and bounding are not covered.
        noise: what noise it has, in words.
        cost: what it cost under the plan's relation.
        details: for an answer with several tables, the labels of their columns, what each is worth,
            and what was measured, so that others can estimate again. For a synthetic table: what
            was measured and chosen, at which cost, how good it is, and the plan's promise.
    """

    title: str
    question: Mapping[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    noise: str
    cost: Cost
    details: Mapping[str, Any] | None = None

    @cached_property
    def tables(self) -> tuple[Answer, ...]:
        """The tables of an answer that has several, each with a column for each of its keys."""
        if not self.details or "tables" not in self.details:
            return ()
        result, start, labels = [], 0, self.details["domains"]
        for each in self.details["tables"]:
            keys = product(*(labels[column] for column in each["columns"]))
            rows = self.rows[start : start + each["cells"]]
            headings = [free_column_name(column, self.columns[2:]) for column in each["columns"]]
            result.append(
                replace(
                    self,
                    title=rows[0][0],
                    columns=(*headings, *self.columns[2:]),
                    rows=tuple((*key, *row[2:]) for key, row in zip(keys, rows, strict=True)),
                    details={"standard_error": each["standard_error"]},
                )
            )
            start += each["cells"]
        return tuple(result)

    def table(self, *columns: str) -> Answer:
        """The table of these columns, in any order, of an answer that has several."""
        tables, details = self.tables, (self.details or {}).get("tables", ())
        for each, one in zip(tables, details, strict=True):
            if sorted(one["columns"]) == sorted(columns):
                return each
        known = [each.title for each in tables]
        raise UnknownName("table", ", ".join(columns), known)

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

    @property
    def noisy(self) -> tuple[bool, ...]:
        """For each row whether it is too noisy to read: a relative standard error above 30%, or of
        a mean, median or quantile an interval over more than a tenth of the column's range.
        Nothing for answers without intervals."""
        about: Any = {"deviations": interval_deviations(self.noise)}
        return too_noisy(self.columns, self.rows, self._ends, signed=self._is_signed, **about)

    @property
    def _ends(self) -> tuple[float, float] | None:
        """Of the range that a mean, median or quantile is in."""
        counted, column = self.question.get("counted"), self.question.get("column")
        kind = QUERIES.get(str(self.question.get("query")))
        if kind is None or kind.scale != POINT or counted is None or column is None:
            return None
        return self._read_range(counted, column)

    @property
    def _is_signed(self) -> bool:
        """Whether its numbers can be below 0 without noise: sums of what can be."""
        asked, counted = self.question, self.question.get("counted") or {}
        if asked.get("query") == "sum" and counted:
            return self._read_range(counted, asked["column"])[0] < 0
        ends = counted.get("ranges", {}).values()
        summed = self.details is not None and "sums" in self.details
        return summed and any(rational(low) < 0 for low, _ in ends)

    def _read_range(self, counted: Mapping[str, Any], column: str) -> tuple[float, float]:
        """The range of a column, as the question transforms it."""
        factor, offset = (
            float(rational(self.question.get(key, plain)))
            for key, plain in (("factor", 1), ("offset", 0))
        )
        low, high = sorted(float(end) * factor + offset for end in counted["ranges"][column])
        return low, high

    @property
    def _at_end(self) -> bool:
        """Whether the interval of a mean reaches an end of the range; quantiles are no averages."""
        if self._ends is None or "low" not in self.columns or self.question["query"] in RANK_KINDS:
            return False
        (low, high), at = self._ends, [self.columns.index(name) for name in ("low", "high")]
        return any(row[at[0]] <= low or row[at[1]] >= high for row in self.rows)

    @property
    def noisy_note(self) -> str:
        """What the mark of noisy rows means; empty where there are none."""
        return noisy_note(self.noisy, of_range=self._ends is not None)

    @property
    def about(self) -> dict[str, Any]:
        """What goes with the numbers wherever they go: the title, the noise, what counts."""
        counted = self.question.get("counted")
        data = {"title": self.title, "noise": self.noise, "statement": self.statement}
        return data if counted is None else {**data, "counted": counted}

    @property
    def statement(self) -> str:
        """What counts in the answer, in words: whose rows, how many, between which ends; and that
        the interval does not cover what this leaves out."""
        counted = self.question.get("counted")
        interval, kind = "low" in self.columns, self.question.get("query")
        said = "" if counted is None else bounds_statement(counted, interval, kind)
        if where := self.question.get("where"):
            said = f"Only rows where {where} count" + (said and f"; {said[0].lower()}{said[1:]}")
        if self._at_end:
            said += f" {CUT_OFF}"
        if self.details and RANK_ROWS in self.details:
            said += f" {RANK_NOTE.format(rows=spell(self.details[RANK_ROWS]))}"
        if "all_low" in self.columns:
            return f"{said} {SEVERAL_TABLES_NOTE}"
        if self.details and "quality" in self.details:
            quality = dict(self.details["quality"])
            quality["distance"] = f"{format_decimals(100 * quality['distance'], 1)}%"
            quality["within"] = f"{format_decimals(100 * quality['within'], 1, 'up')}%"
            chosen = _describe_chosen_tables(self.details)
            return f"{said} {SYNTHETIC_NOTE.format(**quality)}{chosen}"
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        data: dict[str, Any] = {
            "title": self.title,
            "question": dict(self.question),
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "noise": self.noise,
            "statement": self.statement,
            "cost": cost_data(self.cost),
        }
        if self.noisy:
            data |= {"noisy": list(self.noisy), "noisy_note": self.noisy_note}
        return data if self.details is None else data | {"details": dict(self.details)}

    def to_arrow(self) -> Any:
        """A pyarrow Table; its schema's metadata has `about` under "whosin", as JSON."""
        import pyarrow as pa

        columns = zip(*self.rows, strict=True) if self.rows else [[] for _ in self.columns]
        arrays = [pa.array(_align_types(list(column))) for column in columns]
        made = pa.table(dict(zip(self.columns, arrays, strict=True)))
        return made.replace_schema_metadata({"whosin": json.dumps(self.about, ensure_ascii=False)})

    def to_pandas(self) -> Any:
        """A pandas frame; its `attrs` have `about` under "whosin"."""
        frame = self.to_arrow().replace_schema_metadata(None).to_pandas()
        frame.attrs["whosin"] = self.about
        return frame

    def to_polars(self) -> Any:
        """A Polars frame, which has no place for `about`."""
        import polars

        return polars.from_arrow(self.to_arrow())


def read_said(bodies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the debits of a release say of it, as `Release` has it."""
    said: dict[str, Any] = {"table": str(bodies[-1].get("table", "")) if bodies else ""}
    for key in ("about", "declared"):
        said[key] = next((each[key] for each in bodies if each.get(key)), {})
    domains = (each.get("registration", {}).get("domains", {}) for each in bodies)
    return said | {"domains": {name: kept for each in domains for name, kept in each.items()}}


@dataclass(frozen=True)
class Release(Displayed):
    """A batch of answers, and where the dataset stands after it.

    Attributes:
        when: it was paid for.
        people: the datasets that may be about the same people, where there are several and whoever
            asks may know of them.
        about: who answers for it, and why, as the ledger keeps it: what [about] said when it was
            paid for.
        declared: of the table: how many `people` it has, if public; which columns were `looked_up`.
        domains: what the columns of its questions were declared to hold, as plain data.
        table: what it was called when it was paid for, such as this month's file.
        publications: all releases of the dataset so far, oldest first; nothing where nobody looked,
            or whoever asks may not know of all.
    """

    request: str
    answers: tuple[Answer, ...]
    budget_state: BudgetState
    when: str = ""
    people: PeopleBudget | None = None
    about: Mapping[str, Any] = field(default_factory=dict, hash=False)
    declared: Mapping[str, Any] = field(default_factory=dict, hash=False)
    domains: Mapping[str, Any] = field(default_factory=dict, hash=False)
    table: str = ""
    publications: tuple[ReleaseRecord, ...] = ()

    def __post_init__(self) -> None:
        titles = [each.title for each in self.answers]
        own = distinct_titles(titles, [each.question for each in self.answers])
        changed = (replace(a, title=b) for a, b in zip(self.answers, own, strict=True))
        object.__setattr__(self, "answers", tuple(changed))

    def __iter__(self) -> Any:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, key: int | str) -> Answer:
        if isinstance(key, str):
            return {answer.title: answer for answer in reversed(self.answers)}[key]
        return self.answers[key]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the published numbers, with what was asked, in the order
        of their texts: the same when they are opened again from the ledger, and in any order."""
        listed = ([dict(each.question), each.columns, each.rows] for each in self.answers)
        texts = sorted(encoding.canonical_json(each, "answers") for each in listed)
        return encoding.digest_text(f"[{','.join(texts)}]")

    @property
    def independence_note(self) -> str:
        """That answers of which one is sums of the other have noise of their own, where there are
        such; empty otherwise. Those that were measured at once agree."""
        for (first, inner), (second, outer) in permutations(enumerate(self.answers, 1), 2):
            if _is_contained(inner, outer):
                both = f"{inner.title} and {outer.title}"
                if inner.title == outer.title:
                    both = f"Questions {first} and {second} ({inner.title})"
                return (
                    f"{both} have noise of their own and do not add up; "
                    f"{_agreement_hint(inner, outer)}."
                )
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        return {
            "request": self.request,
            "when": self.when,
            "table": self.table,
            "digest": self.digest,
            "independent": self.independence_note,
            "answers": [answer.to_dict() for answer in self.answers],
            "budget_state": self.budget_state.to_dict(),
            **({} if self.people is None else {"together": self.people.to_dict()}),
        }


SUMMED_KINDS = {"count": "count", "histogram": "count", "rows": "rows", "sum": "sum"}


def _is_contained(inner: Answer, outer: Answer) -> bool:
    """Whether an answer without noise, or a table of it, would be sums of groups of another one, or
    the same groups, and the two were not measured at once."""
    if _is_joint(inner) and _is_joint(outer) and inner.noise == outer.noise:
        return False
    return any(
        kind == other and columns <= more
        for kind, columns in _group_columns(inner)
        for other, more in _group_columns(outer)
    )


def _is_joint(answer: Answer) -> bool:
    """Whether a count was measured at once with others: such answers have details."""
    return bool(answer.details) and answer.question.get("query") in SUMMED_KINDS


def _agreement_hint(inner: Answer, outer: Answer) -> str:
    """What to do where two answers should agree: only counts are measured at once, and not where
    that costs more than the width of each."""
    if all(
        SUMMED_KINDS.get(str(each.question.get("query"))) in ("count", "rows")
        and "within" not in each.question
        and not _is_joint(each)
        for each in (inner, outer)
    ):
        return f'split = "{OPTIMAL_SPLIT}" measures them at once, and they agree'
    return f"where they should agree, add up the groups of {outer.title}"


def _group_columns(answer: Answer) -> list[tuple[object, frozenset[str]]]:
    """(what is counted or summed, by which columns) of each table whose groups add up."""
    question, counted = answer.question, answer.question.get("counted") or {}
    kind = SUMMED_KINDS.get(str(question.get("query")))
    if question.get("query") == "marginals" and counted.get("max_rows_per_group") in (None, 1):
        tables = (answer.details or {}).get("tables", ())
        about = "count", question.get("where"), None
        return [(about, frozenset(each["columns"])) for each in tables]
    if kind is None or counted.get("max_groups") not in (None, 1):
        return []
    by = question.get("by", ())
    columns = {by} if isinstance(by, str) else set(by)
    if question["query"] == "histogram":
        columns |= {question["column"]}
    summed = question.get("column") if kind == "sum" else None
    return [((kind, question.get("where"), summed), frozenset(columns))]


def read_releases(
    ledger: Ledger, dataset: str, visible: Callable[[Entry], bool] | None = None
) -> list[Release]:
    """The releases of a dataset whose answers are stored, oldest first; nothing is spent. What is
    no answer of a session (an association study) is left out.

    Args:
        visible: which debits whoever asks may see; all by default, and then which other datasets
            may be about the same people, too.
    """
    state, history, stored = ledger.record(dataset)
    found: dict[str, list[Answer]] = {}
    paid: dict[str, str] = {}
    bodies: dict[str, list[Mapping[str, Any]]] = {}
    streams: dict[str, list[tuple[Mapping[str, Any], Any]]] = {}
    for entry in history:
        if entry.kind != "debit" or entry.request not in stored:
            continue
        if visible is not None and not visible(entry):
            continue
        data = json.loads(stored[entry.request])
        if isinstance(data, dict) and ("columns" in data or "answers" in data):
            request = entry.request.rpartition("/")[0]
            own = found.setdefault(request, [])
            if STEP_KEY in entry.body["what"]:
                streams.setdefault(request, []).append((entry.body, data))
            else:
                own += read_answers([(entry.body, data)], "", state.plan.relation)
            bodies.setdefault(request, []).append(entry.body)
            paid[request] = max(paid.get(request, ""), str(entry.body.get("when", "")))
    for request, steps in streams.items():
        found[request] += read_answers(steps, "", state.plan.relation)
    about: dict[str, Any] = {"budget_state": state}
    if visible is None:
        about["people"] = ledger.people_budget(dataset)
        about["publications"] = list_publications(history, state.plan.relation)
    return [
        Release(name, tuple(own), when=paid[name], **about, **read_said(bodies[name]))
        for name, own in found.items()
    ]


def cost_data(cost: Cost) -> dict[str, float | None]:
    """A cost as plain data: ε and ρ in nats, δ as a probability, rounded up; None for infinite."""
    scales = {"epsilon": encoding.EPSILON_UNITS, "rho": encoding.EPSILON_UNITS}
    amounts = {key: getattr(cost, key) for key in ("epsilon", "rho", "delta")}
    return {
        key: None
        if amount >= encoding.INFINITE_UNITS
        else round_up(Fraction(amount, scales.get(key, encoding.DELTA_UNITS)))
        for key, amount in amounts.items()
    }


def _align_types(values: Sequence[Any]) -> Sequence[Any]:
    """Values of one type: numbers as they are, anything mixed as texts."""
    kinds = {type(value) for value in values}
    if kinds <= {int, float}:
        return [float(value) for value in values] if float in kinds else values
    return values if len(kinds) == 1 else [str(value) for value in values]


def _describe_chosen_tables(details: Mapping[str, Any]) -> str:
    """Which tables a learned one was made from, besides those of single columns."""
    chosen = details.get("chosen", {}).get("tables", ())
    named = list(dict.fromkeys(" × ".join(each) for each in chosen if len(each) > 1))
    if not named:
        return ""
    more = len(named) - MAX_NAMED_TITLES
    listed = ", ".join(named[:MAX_NAMED_TITLES]) + (f" and {more} more" if more > 0 else "")
    return f" Besides single columns it knows these tables, in the order of their choice: {listed}."


def read_answers(
    steps: Sequence[tuple[Mapping[str, Any], Any]], noise: str, relation: str
) -> list[Answer]:
    """The answer of a debit, those of all questions that were paid for at once, or that of a
    stream.

    Args:
        steps: the entry of each debit and its stored answer, as data: one, or those of a stream.
        noise: what noise it has, for entries that do not say it.
    """
    (paid, stored), what = steps[0], steps[0][0]["what"]
    cost = paid["costs"].get(relation)
    whole = Cost(encoding.INFINITE_UNITS, encoding.INFINITE_UNITS) if cost is None else Cost(**cost)
    asked, answers, costs = [dict(what)], [stored], [whole]
    if STEP_KEY in what:
        from whosin.release.queries.running import read_totals

        answers = [read_totals(steps)]
        asked = [{key: what[key] for key in what if key not in ("coefficients", "periods")}]
    if "answers" in stored:
        from whosin.release.queries.together import paid_questions

        asked, answers = paid_questions(what), stored["answers"]
        costs = apportion_cost(whole, len(asked))
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
        for question, answer, own in zip(asked, answers, costs, strict=True)
    ]
