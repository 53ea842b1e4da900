"""What every query has and must do; sums over rows in groups.

A query is data. `estimate_cost` reads the schema and a share of the budget and says what it will
cost and how good the answer will be; `answer` scans the rows, draws the noise and returns JSON data
whose shape the domains fix. The ledger's debit comes between the two.
"""

from __future__ import annotations

import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from whosin.errors import InvalidInput, Mistakes, UnknownName, at_keys, invalid_value, spell
from whosin.exact import Array, rational
from whosin.ledger.budget import COUNTED_NOTION, Cost, Spend, describe_promise
from whosin.ledger.encoding import canonical_json
from whosin.release.column_expressions import GroupGrid, base_column, root_column
from whosin.release.conditions import add_condition, condition_columns, equal_constants
from whosin.release.contribution_bounds import (
    Aggregate,
    ContributionBounds,
    ContributionPolicy,
    CostWarning,
    clamp_ends,
    eligible_rows,
    may_vary,
    outside_values,
    select_part,
    split_condition,
)
from whosin.release.cost import (
    CONFIDENCE_LEVEL,
    NOISY_LEVEL,
    CostEstimate,
    ExpectedError,
    NoisyAggregate,
    Share,
    interval_deviations,
    noise_costs,
    noise_words,
    noisy_parts,
)
from whosin.release.domains import MAX_BOUND
from whosin.release.engines.base import QUESTION_COLUMN, FilteredScan, Progress
from whosin.release.row_values import number_value
from whosin.release.table import Table

MAX_NAME_LENGTH = 120
MAX_FACTOR = 10**9
STATISTIC_WORDS = (
    *("average", "avg", "max", "median", "min", "minimum", "mode", "percentile"),
    *("quartile", "range", "std", "stddev", "var"),
)
"""Other statistics: whoever asks for one of them did not mean one with a similar name."""

FILE_COLUMNS = ["file", "rows", "digest"]
"""The columns of an answer that is a file."""
AMOUNT, POINT, NAME = "amount", "point", "name"
"""What a number may be: how many or how much, a point of a column (perhaps a year), or a name."""
RANK_ROWS = "needed_rows"
"""In the details of a rank's answer: with fewer rows 95% of the noise reaches an end of them."""


def describe_title(title: str, question: Mapping[str, Any]) -> str:
    """A title with what its question is about: "rows by carrier", "mean of age"."""
    by = question.get("by", question.get("columns", ()))
    title += f" of {question['column']}" if "column" in question else ""
    return f"{title} by {', '.join([by] if isinstance(by, str) else map(str, by))}" if by else title


def distinct_titles(
    titles: Sequence[str], questions: Sequence[Mapping[str, Any]]
) -> tuple[str, ...]:
    """The titles, where two would be alike with what is asked: by which columns, then where."""
    for say in (describe_title, add_condition):
        pairs = zip(titles, questions, strict=True)
        titles = [say(*each) if titles.count(each[0]) > 1 else each[0] for each in pairs]
    return tuple(titles)


@dataclass(frozen=True, kw_only=True)
class Query(ABC):
    """A question to a table.

    Args:
        name: what to call the answer.
        where: a condition on rows, such as "age >= 65 and ward = 'A'".
        weight: how much of a batch's budget this query gets, relative to the others.
        magnitude: how large the answer is thought to be, for splitting a budget by relative error.
            Say what is publicly known: it must not come from the data.
        within: accuracy first: the query gets just the budget with which 95% of the answers are
            within ± this.
        part: the one part whose people it is about; by default what its condition selects, or all.
    """

    kind: ClassVar[str]
    choices: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Keys that take one of some words, the default first."""
    needs_delta: ClassVar[bool] = False
    """Whether it needs a part of the plan's δ."""
    writes_file: ClassVar[bool] = False
    """Whether its answer is a file, at `path`."""
    sums: ClassVar[bool] = False
    """Whether Gaussian noise can be added to the answer."""
    selects: ClassVar[bool] = False
    """Whether the answer is selected, which has a cost in ρ of its own."""
    about_rows: ClassVar[bool] = False
    """Whether it is about rows, also where it names a person's features alone."""
    scale: ClassVar[str] = AMOUNT
    """What its values are: amounts, points of a column, or names."""
    of_things: ClassVar[bool] = False
    """Whether its numbers are of people or rows, which have no decimals."""
    further_numbers: ClassVar[tuple[str, ...]] = ()
    """Columns of numbers of its answer beside `value` and its interval."""
    no_width: ClassVar[tuple[str, str]] = ("its noise is not chosen by its share", "leave it out")
    """Why `within` cannot be asked of it, and what to do instead, where that is so."""
    name: str = ""
    where: str | None = None
    weight: object = 1
    magnitude: object = None
    within: object = None
    part: object = None

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or len(name) > MAX_NAME_LENGTH or not name.isprintable():
            accepted = f"printable text of at most {MAX_NAME_LENGTH} characters"
            raise invalid_value("name of a query", accepted, repr(name)[:80])
        if rational(self.weight, "weight") <= 0:
            raise invalid_value("weight", "above 0", self.weight)
        if self.magnitude is not None and rational(self.magnitude, "magnitude") <= 0:
            raise invalid_value("magnitude", "above 0", self.magnitude)
        if isinstance(self.within, bool) or (
            self.within is not None and rational(self.within, "within") < 0
        ):
            raise invalid_value("within", "0 or above", self.within)

    @property
    def takes_gaussian(self) -> bool:
        """Whether this query can have Gaussian noise."""
        return self.sums

    @abstractmethod
    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        """The cost and the expected error. Raises for a query that does not fit the schema."""

    @abstractmethod
    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        """Scan, add noise, and return JSON data: {"columns": […], "rows": [[…], …], …}."""

    @abstractmethod
    def contribution_policy(self, table: Table) -> ContributionPolicy:
        """What of a privacy unit's rows counts in the answer."""

    def plan_noise(self, table: Table, share: Share) -> Any:
        """The noise that a share buys, where `expected_error` can say what it does: None for kinds
        that `within` cannot be asked of."""
        return None

    @classmethod
    def takes_width(cls) -> bool:
        """Whether `within` can be asked of it."""
        return cls.plan_noise is not Query.plan_noise

    def keeps_width(self, table: Table, noise: Any) -> bool | None:
        """Whether 95% of the answers are within `within`, for the public number of people, spread
        evenly over groups and range; None where that number is not public."""
        if table.people is None:
            return None
        found = self.expected_error(table, noise, max(1, table.people // self.group_count(table)))
        if found is None or found.within is None:
            return False
        return found.within <= rational(self.within, "within")

    def expected_error(self, table: Table, noise: Any, rows: int) -> ExpectedError | None:
        """How good an answer about a group of so many rows is, where that depends on them."""
        return None

    def expected_errors(self, table: Table, estimate: CostEstimate) -> tuple[ExpectedError, ...]:
        """How good the answer will be: at the public size of a group if people are spread evenly,
        with one row each and with all that count; otherwise at a few round sizes."""
        noise, people = estimate.parts or estimate.details, table.people
        sizes: tuple[int, ...] = ROUND_SIZES
        if people is not None:
            least = max(1, people // self.group_count(table))
            sizes = tuple(sorted({least, least * self.bounds(table).max_rows_per_group}))
        error = self._errors_by_size(table, noise)
        known = [found for found in map(error, sizes) if found is not None]
        if known or (estimate.error is None and estimate.within is None):
            return tuple(known)
        return (ExpectedError(None, estimate.error, estimate.within),)

    def _errors_by_size(self, table: Table, noise: Any) -> Callable[[int], ExpectedError | None]:
        """`expected_error`, found once for all questions of a table with this noise that differ in
        their names, weights and conditions alone."""
        if type(self).expected_error is Query.expected_error:
            return partial(self.expected_error, table, noise)
        told = [each.name for each in fields(self) if each.name not in ("name", "weight", "where")]
        key = type(self), repr([getattr(self, name) for name in told]), repr(noise)
        known = table.kept[key] if key in table.kept else table.keep(key, {})

        def error(rows: int) -> ExpectedError | None:
            if rows not in known:
                known[rows] = self.expected_error(table, noise, rows)
            found: ExpectedError | None = known[rows]
            return found

        return error

    def group_count(self, table: Table) -> int:
        """How many groups were declared: "other" is none of them."""
        return 1

    def readable_size(self, table: Table, estimate: CostEstimate) -> tuple[float | None, str]:
        """(the least size of a group that can be read, its unit), by the rule of `is_too_noisy`.
        Where it depends on the rows it is found to two digits; None beyond `MAX_READABLE_ROWS`."""
        if not estimate.expected or estimate.expected[0].rows is None:
            return self.fixed_size(table, estimate)
        size = self._least_rows(table, estimate, lambda found: found.noisy)
        return None if size is None else float(size), "rows"

    def told_size(self, table: Table, estimate: CostEstimate) -> int | None:
        """The least number of rows in a group whose interval is not the whole declared range, found
        as `readable_size` is; None where two rows are enough, or no range was declared."""
        if not any(each.rows is not None for each in estimate.expected):
            return None
        size = self._least_rows(table, estimate, lambda found: found.fills)
        return MAX_READABLE_ROWS if size is None else size if size > 2 else None

    def _least_rows(
        self, table: Table, estimate: CostEstimate, is_bad: Callable[[ExpectedError], bool]
    ) -> int | None:
        error = self._errors_by_size(table, estimate.parts or estimate.details)
        low, high = 0, MAX_READABLE_ROWS
        rows = high
        while high - low > max(1, high // 100):
            found = error(rows)
            small = found is None or is_bad(found)
            if small and rows == MAX_READABLE_ROWS:
                return None
            low, high = (rows, high) if small else (low, rows)
            rows = max(low + 1, round(math.sqrt(max(low, 1) * high)))
        return high

    def fixed_size(self, table: Table, estimate: CostEstimate) -> tuple[float | None, str]:
        """The same, where errors do not depend on the rows of a group."""
        return None, "rows"

    def names(self, table: Table) -> frozenset[str]:
        """The declared columns that it may use, and what it calls them."""
        result: set[str] = set()
        for field in ("column", "by", "columns"):
            named = getattr(self, field, ())
            result |= {named} if isinstance(named, str) else _read_texts(named)
        for named in _read_list(getattr(self, "sets", None)):
            result |= _read_texts(named)
        result |= {base_column(name) for name in result}  # cumulative(month(visit)), or less
        result |= {base_column(name) for name in result}
        result |= {name for name in table.levels if name in str(self.where)}
        if table.part is not None and self.find_part(table) is not None:
            result.add(table.part.column)
        return frozenset(result | {root_column(table.domains, name) for name in result})

    def restrict_table(self, table: Table) -> Table:
        """The table as this query needs it: with the rows of its part, if it is about one."""
        return self.take_part(table, lambda: self.take_columns(table))

    def take_columns(self, table: Table) -> Table:
        """The table with what this query names."""
        if table.database is None:
            return table
        return table.about(self.names(table) | condition_columns(self.where), rows=self.about_rows)

    def take_part(self, table: Table, made: Callable[[], Table]) -> Table:
        """A table with the rows of this query's part; one that is used again is made once."""
        part = self.find_part(table) if table.split else None
        if part is None:
            return made()
        if table.database is not None:
            return select_part(made(), part)
        key = "part", part
        if key not in table.kept:
            table.keep(key, select_part(table, part))
        kept: Table = table.kept[key]
        return kept

    def find_part(self, table: Table) -> str | None:
        """The part that it names, or that its condition selects where nobody has rows of two."""
        if table.part is None:
            if self.part is not None:
                message = f"this table has no parts, and {self.title!r} is about {self.part!r}"
                hint = "name the column in [table]: part = 'region'"
                raise InvalidInput(message, field="part", value=self.part, hint=hint)
            return None
        if self.part is not None:
            return table.part.find(self.part)
        found = equal_constants(self.where, table.part.column) & set(map(str, table.part.values))
        alike = table.by_row or table.part.rule == "constant"
        return min(found) if found and alike else None

    def plan_scan(
        self, table: Table, build: Callable[..., Any], cells: GroupGrid | None = None
    ) -> Any:
        """What the engine will scan, checked. What is asked without the condition is built and
        compiled once, on the rows that meet it.

        Args:
            build: the expression of a query of this kind on a table.
            cells: what it groups by and is also given, where it can tell questions apart.
        """
        rows, known = table.split_source(cells is not None), () if cells is None else (cells,)
        if rows is None:
            return table.check(build(self, table, *known))
        if cells is not None and QUESTION_COLUMN in rows.columns:
            known = (replace(cells, question=(QUESTION_COLUMN,)),)
        source, condition = split_condition(table, self.where)
        shape = replace(self, where=None, name="", within=None)
        key = canonical_json(shape.question())
        if key not in table.kept:
            table.keep(key, build(shape, table.on_rows(rows), *known))
        return table.check(FilteredScan(source, (condition,), table.kept[key]))

    def bounds(self, table: Table) -> ContributionBounds:
        """How many rows and cells of a privacy unit count, at most."""
        own = (getattr(self, name, None) for name in ("max_rows_per_group", "max_groups"))
        return ContributionBounds(*map(table.bound, ("max_rows_per_group", "max_groups"), own))

    def ranked(self) -> list[tuple[Any, Fraction]]:
        """Everyone who could be in, with a public value each, where the query names them."""
        return []

    def cautions(self, table: Table) -> tuple[CostWarning, ...]:
        """What to decide before asking, from what was declared."""
        return ()

    def caution(
        self, table: Table, about: str, columns: tuple[str, ...]
    ) -> tuple[CostWarning, ...]:
        """That "max_rows_per_group" or "max_groups" is at its default, where a column may differ
        between the rows of one privacy unit."""
        others = tuple(name for name in columns if name != table.privacy_unit)
        varying = may_vary(table.domains, others)
        alone = varying and table.at_default(about, getattr(self, about))
        return (CostWarning(about, varying),) if alone else ()

    def require_new_file(self) -> None:
        """Refuse a place that is taken, where the answer is a file, before it is paid for: nothing
        is replaced. See `publish` for what takes the place later."""
        path = getattr(self, "path", None)
        if self.writes_file and isinstance(path, str | Path) and os.path.lexists(path):
            raise InvalidInput(
                f"path {Path(path).name} is there already, and nothing is overwritten",
                field="path",
                value=Path(path).name,
                hint="choose a new name, or remove the file",
            )

    def steps(self, table: Table, estimate: CostEstimate) -> list[CostEstimate]:
        """What is debited for an estimate, in turn: itself, or the steps of a stream."""
        return [estimate]

    def publish(self, table: Table, drawn: Any, stored: Any) -> str | None:
        """Show what the stored answer wrote outside the ledger; remove what else was drawn.

        Args:
            drawn: what `answer` returned now; None where the answer was stored before.
            stored: what the ledger stored; None where it could not.

        Returns:
            what to tell people, if something of the answer is not there.
        """
        return None

    @classmethod
    @contextmanager
    def at_own_key(cls) -> Iterator[None]:
        """Errors in this block that are about a key of the query say so in their path."""
        with at_keys({each.name for each in fields(cls)}):
            yield

    @property
    def title(self) -> str:
        """What to call the answer."""
        return self.name or self.kind

    def describe_question(self, table: Table) -> dict[str, Any]:
        """The question to a table, with what counts in its answer: what the ledger keeps."""
        policy = replace(self.contribution_policy(table), part=self.describe_part(table))
        return self.question() | {COUNTED_NOTION: policy.to_dict()}

    def describe_part(self, table: Table) -> dict[str, str] | None:
        """The part that it is about, as plain data; None where it is about everyone."""
        part, rule = self.find_part(table), table.part
        return None if part is None or rule is None else {**rule.to_dict(), "name": part}

    def paying_part(self, table: Table) -> str | None:
        """The part that it is paid from; None where everyone pays."""
        return self.find_part(table)

    def make_spend(self, table: Table, costs: Mapping[str, Cost]) -> Spend:
        """What is debited for it: everyone pays, or its part alone."""
        return Spend(self.describe_question(table), costs, part=self.paying_part(table))

    def spend_alone(self, table: Table, share: Share, words: str) -> Spend:
        """The spend of a release with a promise of its own, which must be a dataset's only one."""
        own: Any = {"promise": describe_promise(share.plan), "part": self.find_part(table)}
        return Spend(self.describe_question(table), {}, words, alone=True, **own)

    def question(self) -> dict[str, Any]:
        """The query as JSON data: what was asked."""
        data: dict[str, Any] = {"query": self.kind}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("weight", "magnitude") and value != field.default:
                data[field.name] = _plain_json(value)
        return data


ROUND_SIZES = (100, 1_000, 10_000)
"""Sizes of a group at which errors are shown where its size is not public."""
MAX_READABLE_ROWS = 10**9


class QueryKinds(Mapping[str, type[Query]]):
    """Queries by their kinds, each imported when it is looked up. A kind is its class in small
    letters; `__init__.pyi` lists the classes, in the order in which people are shown them."""

    @cached_property
    def classes(self) -> dict[str, str]:
        """The name of each kind's class."""
        listed = Path(__file__).with_name("__init__.pyi").read_text("utf-8")
        named = re.findall(r" as (\w+)$", listed, flags=re.MULTILINE)
        return {name.lower(): name for name in named if name.istitle() and name != "Query"}

    def __getitem__(self, kind: str) -> type[Query]:
        found: type[Query] = getattr(import_module("whosin.release.queries"), self.classes[kind])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.classes)

    def __len__(self) -> int:
        return len(self.classes)


QUERIES = QueryKinds()


def scenario_keys(query: Query) -> dict[str, Any]:
    """A query as the keys of a scenario file, which `read_query` takes."""
    asked = query.question()
    return {"kind": asked.pop("query"), **asked}


def read_query(data: object, kinds: Mapping[str, type[Query]]) -> Query:
    """A query from the keys of a scenario file."""
    if not isinstance(data, Mapping):
        raise invalid_value("query", "a table of keys", repr(data))
    if "kind" not in data:
        slips = [UnknownName("key of a query", str(key), ["kind"]) for key in data]
        if slip := next((each for each in slips if each.nearest is not None), None):
            raise slip
        raise InvalidInput(
            "the query has no kind",
            field="kind of a query",
            hint=f"give it one of {', '.join(sorted(kinds))}",
        )
    kind = data["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise UnknownName("kind of a query", str(kind), kinds, STATISTIC_WORDS)
    known = {field.name: field for field in fields(kinds[kind])}
    mistakes = Mistakes()
    for key in data:
        with mistakes.collect():
            if key != "kind" and key not in known:
                raise UnknownName(f"key of a {kind} query", str(key), [*known, "kind"])
    meant = {each.nearest for each in mistakes.found if isinstance(each, UnknownName)}
    missing = [
        name
        for name, each in known.items()
        if each.default is MISSING and name not in data and name not in meant
    ]
    with mistakes.collect():
        if missing:
            raise InvalidInput(
                f"a query of kind {kind} needs {', '.join(missing)}",
                field=f"{kind} query",
                value=missing,
            )
    mistakes.raise_all()
    with kinds[kind].at_own_key():
        return kinds[kind](**{key: value for key, value in data.items() if key != "kind"})


def _read_list(value: object) -> Sequence[Any]:
    """A list, or none: what is no list is refused elsewhere."""
    return value if isinstance(value, list | tuple) else ()


def _read_texts(value: object) -> set[str]:
    return {str(name) for name in _read_list(value)}


def _plain_json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain_json(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _plain_json(each) for key, each in value.items()}
    return value if isinstance(value, str | int | bool | None) else str(value)


@dataclass(frozen=True, kw_only=True)
class GroupedQuery(Query):
    """A query with an answer for each group.

    Args:
        by: declared columns to group by.
        max_rows_per_group: how many rows of a privacy unit count in a cell; the table's own bound
            by default.
        max_groups: how many cells a privacy unit may be in; likewise.
    """

    by: Sequence[str] | str = ()
    max_rows_per_group: int | None = None
    max_groups: int | None = None

    def cells(self, table: Table) -> GroupGrid:
        """What the answer is grouped by."""
        return GroupGrid.of(table, self.by)

    def group_count(self, table: Table) -> int:
        domains = self.cells(table).domains
        return math.prod(max(1, len(each.labels) - (each.outside is None)) for each in domains)

    def bounds(self, table: Table) -> ContributionBounds:
        """How much of a privacy unit counts. Nobody is in more cells than there are, or in more
        than columns that were declared constant allow."""
        own = super().bounds(table)
        return replace(own, max_groups=min(own.max_groups, self.cells(table).most))

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        cells, bounds = self.cells(table), self.bounds(table)
        groups = bounds.max_groups if cells.columns else None
        outside = outside_values(cells.columns, cells.domains)
        return ContributionPolicy(
            table.privacy_unit, bounds.max_rows_per_group, groups, **outside, by_row=table.by_row
        )

    def cautions(self, table: Table) -> tuple[CostWarning, ...]:
        return self.caution(table, "max_groups", self.cells(table).columns)


@dataclass(frozen=True, kw_only=True)
class Linear(GroupedQuery):
    """Sums over rows in cells."""

    sums: ClassVar[bool] = True

    @abstractmethod
    def parts(self, table: Table) -> tuple[Aggregate, ...]:
        """Return the aggregates that are summed over rows."""

    @abstractmethod
    def exact(self, table: Table, cells: GroupGrid) -> Any:
        """The bounded sums, as an expression with one column per part. Never shown."""

    def finish(
        self, table: Table, sums: Sequence[Array], noisy: Sequence[NoisyAggregate]
    ) -> tuple[Array, Array, Array]:
        """(values, lower ends, upper ends) from the noisy sums in units."""
        part, within = noisy[0].part, noisy[0].noise.quantile(CONFIDENCE_LEVEL)
        value, low, high = (
            units_to_numbers(sums[0] + side, part.unit) for side in (0, -within, within)
        )
        return value, low, high

    def plan_noise(self, table: Table, share: Share) -> tuple[NoisyAggregate, ...]:
        grouped = bool(self.cells(table).columns)
        return noisy_parts(self.parts(table), share, self.bounds(table), grouped)

    def fixed_size(self, table: Table, estimate: CostEstimate) -> tuple[float | None, str]:
        if estimate.within is None or len(self.parts(table)) > 1:
            return None, "rows"
        unit = self.parts(table)[0].name
        size = estimate.within / (NOISY_LEVEL * interval_deviations(estimate.noise))
        return (size if unit == "sum" else float(math.ceil(size))), unit

    def estimate_as_planned(self, table: Table, share: Share) -> CostEstimate | None:
        """The cost of the one answer that a plan is about, where this is its question."""
        return None

    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        planned = self.estimate_as_planned(table, share)
        if planned is not None:
            return planned
        cells, bounds = self.cells(table), self.bounds(table)
        grouped = bool(cells.columns)
        noisy = self.plan_noise(table, share)
        expression = self.plan_scan(table, type(self).exact, cells)
        spend = self.make_spend(table, noise_costs(noisy, bounds, grouped))
        estimate = CostEstimate(
            self, share, spend, _describe_noises(noisy), parts=noisy, expression=expression
        )
        if len(noisy) > 1:
            return estimate
        return replace(estimate, error=noisy[0].error, within=noisy[0].interval_radius())

    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        cells = self.cells(table)
        result = table.engine.run(estimate.expression, progress)
        exact = cells.dense(result, [each.part.name for each in estimate.parts])
        sums = []
        for one, each in zip(exact, estimate.parts, strict=True):
            sums.append(one + each.noise.draw(cells.count))
        values, low, high = self.finish(table, sums, estimate.parts)
        rows = [
            [*label, plain_number(value), plain_number(least), plain_number(most)]
            for label, value, least, most in zip(cells.labels(), values, low, high, strict=True)
        ]
        names = ("value", "low", "high")
        return {"columns": [*cells.headings(*names), *names], "rows": rows}


@dataclass(frozen=True, kw_only=True)
class NumberQuery(GroupedQuery):
    """A query about a column of numbers with a declared range.

    Args:
        column: the column. Rows without a number there do not count.
    """

    column: str

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        ranges = {self.column: clamp_ends(table.range(self.column))}
        return replace(super().contribution_policy(table), ranges=ranges)

    def cautions(self, table: Table) -> tuple[CostWarning, ...]:
        by_rows = self.caution(table, "max_rows_per_group", (self.column,))
        return (*by_rows, *super().cautions(table))

    def present(self, table: Table) -> Any:
        """The rows that have a number there."""
        rows = eligible_rows(table, self.where)
        return rows.filter(number_value(rows[table.column(self.column)]).notnull())


@dataclass(frozen=True, kw_only=True)
class Numeric(NumberQuery, Linear):
    """Sums of a column of numbers.

    Args:
        factor, offset: the answer is about factor · column + offset, the column clamped first.
    """

    factor: object = 1
    offset: object = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= abs(rational(self.factor, "factor")) * MAX_FACTOR <= MAX_FACTOR**2:
            most = spell(MAX_FACTOR)
            accepted = f"from 1/{most} to {most}, or the negative of such a number"
            raise invalid_value("factor", accepted, self.factor)
        if abs(rational(self.offset, "offset")) > MAX_BOUND:
            raise invalid_value("offset", "between -1e100 and 1e100", self.offset)

    @property
    def transformation(self) -> tuple[Fraction, Fraction]:
        """The factor and the offset as exact rationals."""
        return rational(self.factor, "factor"), rational(self.offset, "offset")


def _describe_noises(noisy: Sequence[NoisyAggregate]) -> str:
    if len(noisy) == 1:
        return noise_words(noisy[0])
    if noisy[0].part.paired:
        return f"two sums: {noise_words(noisy[0])}"
    return "; ".join(f"{each.part.name}: {noise_words(each)}" for each in noisy)


def units_to_numbers(whole: Array, unit: Fraction) -> Array:
    """Whole units as numbers, each correctly rounded where the unit is a simple ratio."""
    return whole * float(unit.numerator) / float(unit.denominator)


def plain_number(value: Any) -> int | float:
    """A number for JSON, whole where it is."""
    result = float(value)
    return int(result) if result.is_integer() and abs(result) < 2**53 else result
