"""A scenario: the adversary, the target, the table, the queries, in one TOML file.

Everything is checked before a row is read, and all mistakes of a file are said at once, each by its
line. Paths in a scenario are relative to its file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from whosin.calibration import Epsilon, Plan, calibrate, read_plan
from whosin.documents import MAX_TOML_LENGTH, parse_toml, read_text, toml_line, toml_lines
from whosin.errors import (
    EmptyLedger,
    InvalidInput,
    Mistakes,
    SeveralMistakes,
    UnknownName,
    WhosinError,
    at,
    at_keys,
    require_extras,
    shorten,
    suggest_columns,
)
from whosin.ledger import BudgetState, Ledger, encoding
from whosin.ledger.budget import Budget, Schedule
from whosin.ledger.registration import Registration
from whosin.release.answer import Release, read_releases
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.column_expressions import group_domain
from whosin.release.contribution_bounds import ContributionPolicy, contribution_policies
from whosin.release.cost import CostEstimate
from whosin.release.domains import FROM_ROWS, read_domain
from whosin.release.engines import read_engine
from whosin.release.engines.base import ADBC_PREFIX, FILE_ENDINGS
from whosin.release.queries import QUERIES, Count, Query, read_query
from whosin.release.requests import NamedBatch, continue_streams, describe_batch, name_streams
from whosin.release.session import Session, Watch
from whosin.release.table import COLUMN, ROW, Table, register_table
from whosin.scenario_model import (
    ABOUT_UNSAID,
    AboutSection,
    BudgetSection,
    ScenarioModel,
    TableSection,
)

if TYPE_CHECKING:
    from whosin.release.features import Feature
    from whosin.release.inspection import Preflight
    from whosin.release.related_tables import Further

Found = TypeVar("Found")
MAX_ATTEMPTS = 4  # to open a table without what is wrong with it, and find what else is


@dataclass(frozen=True)
class ScenarioText:
    """A scenario as its file has it, to say where in it something is wrong.

    Attributes:
        name: the file's name.
        data: its keys.
        lines: the line of each section and key, by its path.
    """

    name: str
    data: Mapping[str, Any]
    lines: Mapping[str, int]

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Errors in this block say on which line they are, and what to paste there."""
        try:
            yield
        except WhosinError as error:
            for each in suggest_columns(error).parts:
                each.args = (each.message.replace("plan SCENARIO", f"plan {self.name}"),)
                path = self._find_path(each)
                told = path.partition(".")[0].partition("[")[0] in self.data  # not an option's
                each.place = self._describe_place(path, each.message) if told else ""
                each.paste = each.paste or self._correct_line(each, path)
            if isinstance(error, SeveralMistakes):
                error.what = self.name
                last = 1 + max(self.lines.values(), default=0)  # what is missing comes last
                lines = {id(e): self._find_line(self._find_path(e)) for e in error.mistakes}
                error.mistakes = tuple(sorted(error.mistakes, key=lambda e: lines[id(e)] or last))
            raise

    def _find_line(self, path: str) -> int | None:
        """The line of a path, or of the nearest section around it."""
        keys = path.split(".")
        around = [".".join(keys[:end]) for end in range(len(keys), 0, -1)]
        name = keys[0].partition("[")[0]
        known = (self.lines.get(each) for each in (*around, name, f"{name}[0]"))
        return next((line for line in known if line is not None), None)

    def _find_path(self, error: WhosinError) -> str:
        """The path of an error, down to the key that holds the value it is about."""
        path, value = error.path, error.value
        inside = self._value(path)
        if isinstance(inside, Mapping) and isinstance(value, str):
            pairs = (
                (key, each if isinstance(each, list) else [each]) for key, each in inside.items()
            )
            own = [key for key, listed in pairs if value in (key, *listed)]
            path = ".".join(filter(None, (path, *own[:1])))
        return path

    def _describe_place(self, path: str, message: str) -> str:
        """A path in words: "line 12, question 3 (ages), by"; the key where no message names it."""
        head, *keys = path.split(".")
        name, _, number = head.rstrip("]").partition("[")
        line = self._find_line(path)
        where = [] if line is None else [f"line {line}"]
        if not number.isdecimal():
            where += [f"[{name}]"] if isinstance(self.data.get(name), Mapping) else [name]
        else:
            word = "question" if name == "queries" else f"[[{name}]]"
            called = self._value(f"{head}.name")
            given = f" ({shorten(called)})" if isinstance(called, str) and called else ""
            where.append(f"{word} {int(number) + 1}{given}")
        return ", ".join([*where, *(key for key in keys[:1] if key not in message)])

    def _correct_line(self, error: WhosinError, path: str) -> str:
        """The line with what was probably meant, where somebody knows it."""
        meant, wrong = getattr(error, "nearest", None), error.value
        key, value = path.rpartition(".")[2], self._value(path)
        if not isinstance(error, InvalidInput) or meant is None or value is None:
            return ""
        if key == wrong != value:
            return toml_line(meant, value)
        if isinstance(value, list):
            return toml_line(key, [meant if each == wrong else each for each in value])
        if isinstance(value, str) and isinstance(wrong, str) and wrong != value:
            return toml_line(key, re.sub(rf"\b{re.escape(wrong)}\b", lambda _: meant, value))
        return "" if isinstance(value, Mapping) else toml_line(key, meant)

    def _value(self, path: str) -> Any:
        """What the file has at a path; None if nothing."""
        value: Any = self.data
        for name, number in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
            if number and isinstance(value, list) and int(number) < len(value):
                value = value[int(number)]
            elif name and isinstance(value, Mapping):
                value = value.get(name)
            else:
                return None
        return value


@dataclass(frozen=True)
class Scenario:
    """What a scenario file says, checked."""

    title: str
    plan: Plan
    table: TableSection
    domains: Mapping[str, Any]
    queries: tuple[Query, ...]
    ledger: Any
    dataset: str | None
    budget: Mapping[str, Any]
    tables: tuple[Further, ...] = ()
    features: tuple[Feature, ...] = ()
    about: AboutSection = ABOUT_UNSAID
    schedule: Mapping[str, Any] = field(default_factory=dict)
    text: ScenarioText | None = field(default=None, compare=False, repr=False)
    opened: Table | None = field(default=None, compare=False, repr=False)

    @property
    def looked_up(self) -> tuple[str, ...]:
        """As `Table.looked_up`, without opening it."""
        bounds = ("max_groups", "max_rows_per_group") if self.table.from_rows else ()
        stated = (each for each in bounds if getattr(self.table, each) is not None)
        marks = (
            (
                name,
                each.get(FROM_ROWS) if isinstance(each, Mapping) else getattr(each, FROM_ROWS, 0),
            )
            for name, each in self.domains.items()
        )
        return (*(name for name, mark in marks if mark is True), *stated)

    def open_table(self) -> Table:
        """The table on its engine; only the schema is read."""
        if self.opened is not None:
            return self.opened
        with self.locate_errors():
            try:
                return _open_table(self.table, self.domains, self.tables, self.features)
            except WhosinError as error:
                if self.text is None:
                    raise
                found = Mistakes()
                with found.collect():
                    raise error
                self.find_mistakes(found)
                found.raise_all()
                raise

    def keep_table(self) -> Scenario:
        """The same scenario with its table open: it is opened, and the batch priced, once."""
        return replace(self, opened=self.open_table())

    def find_mistakes(self, found: Mistakes, queries: Mapping[int, Query] | None = None) -> None:
        """What is wrong with the table, its domains and the questions, beside what was found: each
        is looked at as though what is wrong with the others were left out.

        Args:
            queries: those that can be read, by their numbers; all by default.
        """
        asked = dict(enumerate(self.queries)) if queries is None else queries
        domains, wrong = dict(self.domains), set[str]()
        for _ in range(MAX_ATTEMPTS):
            for error in found.found:
                section, _, column = error.path.partition(".")
                meant = getattr(error, "nearest", None)
                apart = {str(meant)} - {"None", *self.domains}  # the domain that it was to be
                wrong |= {column} | apart if section == "domains" else set()
            try:
                rest = {name: each for name, each in domains.items() if name not in wrong}
                table = _open_table(self._usable_table(found), rest, self.tables, self.features)
            except OSError as error:
                message = f"source cannot be read: {(error.strerror or 'no such file').lower()}"
                hint = "paths are relative to the scenario"
                with found.collect("table.source"):
                    raise InvalidInput(message, field="source", hint=hint) from None
                for column, domain in domains.items():
                    with found.collect(f"domains.{column}"):
                        read_domain(column, domain)
                return
            except WhosinError as error:
                known = {(each.path, each.message) for each in found.found}
                new = [each for each in error.parts if (each.path, each.message) not in known]
                found.found += new
                if not new:
                    return
            else:
                found.found += self._find_query_mistakes(table, asked, wrong)
                table.engine.close()
                return

    def _usable_table(self, found: Mistakes) -> TableSection:
        """The table, with a privacy unit that was probably meant where there is no such column; if
        nobody knows which, another column stands in, spelled as no name that was declared."""
        wrong = [each for each in found.found if each.field == "privacy_unit"]
        meant = [each.nearest for each in wrong if isinstance(each, InvalidInput) and each.nearest]
        if meant or not wrong:
            return replace(self.table, privacy_unit=meant[0]) if meant else self.table
        apart = replace(
            self.table, privacy_unit=ROW, max_rows_per_group=None, max_groups=None, part=None
        )
        with Mistakes().collect():
            opened = _open_table(apart, {}, (), ())
            opened.engine.close()
            free = [each for each in opened.columns if each not in self.domains]
            return replace(self.table, privacy_unit=COLUMN + (free or opened.columns)[0])
        return self.table

    def _find_query_mistakes(
        self, table: Table, queries: Mapping[int, Query], wrong: set[str]
    ) -> list[WhosinError]:
        """What is wrong with each question by itself; what follows from a domain that cannot be
        read is not said again."""
        result, noise = [], self.budget.get("noise", "laplace") if self.plan.delta else "laplace"
        for index, query in queries.items():
            own = Mistakes()
            with own.collect():
                estimate_batch_cost(table, self.plan, query, noise=noise)
            if own.found:  # what else is wrong with it
                for key in ("column", "by"):
                    named = getattr(query, key, ())
                    listed = named if isinstance(named, list | tuple) else [named]
                    for name in (each for each in listed if isinstance(each, str)):
                        with own.collect(f"queries[0].{key}"):
                            (group_domain if key == "by" else Table.grouping)(table, name)
                with own.collect():
                    estimate_batch_cost(table, self.plan, Count(where=query.where))
            for each in own.found:
                each.path = each.path.replace("queries[0]", f"queries[{index}]", 1)
            distinct = {each.message: each for each in reversed(own.found)}
            result += [each for each in distinct.values() if not _names_any(each, wrong)]
        return result

    def locate_errors(self) -> AbstractContextManager[None]:
        """Errors in this block say where in the scenario's file they are."""
        return nullcontext() if self.text is None else self.text.locate_errors()

    def asking(self, sql: str) -> Scenario:
        """The same scenario with the queries that a SELECT asks, and no others."""
        from whosin.release.sql import parse_queries

        table = self.open_table()
        try:
            known = (self.dataset,) if self.dataset else ()
            return replace(self, queries=parse_queries(sql, table, known))
        except InvalidInput as error:
            raise (error if self.text is None else suggest_columns(error)) from None
        finally:
            if table is not self.opened:
                table.engine.close()

    def estimate_cost(self, table: Table | None = None, paid_by: str = "") -> list[CostEstimate]:
        """What the queries cost and how good the answers will be, or are under a request that paid
        for them; nothing is written or spent."""
        opened = self.open_table() if table is None else table
        with self.locate_errors(), self.at_budget():
            try:
                paid = self._read_streams(opened, paid_by and f"{paid_by}/0")
                budget = self.period_budget()
                new = [query for number, query in enumerate(self.queries) if number not in paid]
                rest = iter(estimate_batch_cost(opened, self.plan, new, **budget) if new else ())
                return [paid.get(number) or next(rest) for number in range(len(self.queries))]
            except InvalidInput as error:
                found, asked = Mistakes(), dict(enumerate(self.queries))
                found.found += self._find_query_mistakes(opened, asked, set())
                if len(found.found) > 1:
                    found.raise_all()
                raise error from None

    def _read_streams(self, table: Table, beside: str) -> dict[int, CostEstimate]:
        asked: dict[str, Any] = {"table": table, "plan": self.plan, "queries": self.queries}
        look = partial(continue_streams, beside=beside, **asked)
        return self.read_ledger(look, {}) if name_streams(self.queries, table) else {}

    def period_share(self, *, new: bool = False) -> Fraction | None:
        """The share of today's period, which a batch spends by default; None without a schedule of
        the dataset, or of this scenario for a new one. What a known dataset has answered it shows
        on any day; `new` says that it is not that."""
        state = self.read_budget_state()
        schedule = self.schedule if state is None else state.schedule
        if not schedule:
            return None
        with at("schedule"):
            budget, today = Budget.of(self.plan), encoding.today()
            if isinstance(schedule, Schedule):
                return schedule.share(today, budget, near=not new)
            return Schedule.plan(schedule, budget, today).share(today, budget)

    def period_budget(self) -> dict[str, Any]:
        """[budget], with the share of today's period where it has none of its own."""
        return {"share": self.period_share(), **self.budget}

    def own_share(self, state: BudgetState | None) -> object:
        """The share that it says; else all that its dataset, which may be a new one, has left, or
        None where periods have shares."""
        dated = self.schedule if state is None else state.schedule
        return self.budget.get("share", None if dated else 1)

    def contribution_policies(self, table: Table) -> list[ContributionPolicy]:
        """What of the rows counts in each answer."""
        with self.locate_errors():
            return contribution_policies(table, self.queries)

    def release(self, session: Session, watch: Watch | None = None) -> Release:
        """Have a session answer the queries."""
        with self.locate_errors(), self.at_budget():
            made = session.release(self.queries, watch=watch, **self.budget)
        return replace(made, publications=session.list_publications())

    @staticmethod
    def at_budget() -> AbstractContextManager[None]:
        """Errors in this block that are about a key of [budget] say so in their path."""
        return at_keys(BudgetSection.known_keys(), "budget")

    def open_session(
        self,
        ledger: object = None,
        request: str | None = None,
        *,
        amend: bool = False,
        again: bool = False,
        new_people: bool = False,
        preflight: bool = False,
    ) -> Session:
        """A session for the scenario's one batch, in its ledger or another one. The cost of the
        batch is estimated before a new request, so that what is wrong with it is found before a
        budget is opened.

        Args:
            new_people: as for `Session`.
            preflight: look at the rows before anything is paid, where nobody did (`run_preflight`).
        """
        table = self.open_table()
        asked = replace(self, ledger=self.ledger if ledger is None else ledger)
        if request is None:
            asked.estimate_cost(table)
            for index, query in enumerate(self.queries):
                with at(f"queries[{index}]"), query.at_own_key():
                    query.require_new_file()
        with self.at_budget():
            return Session(
                table,
                self.plan,
                asked.ledger,
                dataset=self.dataset,
                request=request,
                share=self.own_share(asked.read_budget_state()),
                schedule=self.schedule or None,
                amend=amend,
                new_people=new_people,
                again=again,
                preflight=preflight,
                about={**self.about.written, "title": self.title},
                queries=self.queries,
            )

    def run_preflight(self, table: Table) -> Preflight:
        """The curator's look at the rows before the first debit; nothing is spent.

        Raises:
            ScanFailed: the engine failed; its words, which may name rows, are not repeated.
        """
        from whosin.release.inspection import look_before_debit

        look = partial(look_before_debit, table, self.queries, self.estimate_cost(table))
        with self.locate_errors():
            return self.read_ledger(look, None) or look()

    def read_budget_state(self) -> BudgetState | None:
        """Where the dataset stands in its ledger, which is not made; None without a budget."""
        return self.read_ledger(partial(Ledger.budget_state, parts=True), None)

    def read_releases(self) -> list[Release]:
        """The releases of the dataset whose answers are stored there, oldest first."""
        return self.read_ledger(read_releases, [])

    def find_dataset(self) -> str:
        """The dataset that this is about: its own, or the one that holds all answers to this very
        batch of these very rows, such as another month's that it continued."""

        def look(opened: Ledger, name: str) -> str:
            if name in opened.datasets():
                return name
            asked = register_table(table, self.queries, rows=True)
            held = opened.copies(name, asked)
            named = (self.name_batch(opened, each, table, asked) for each in held)
            return next((each.dataset for each in named if each.find_answered()), name)

        table = self.open_table()
        return self.read_ledger(look, self.dataset or table.name, registered=False)

    def read_ledger(
        self, read: Callable[[Ledger, str], Found], unknown: Found, *, registered: bool = True
    ) -> Found:
        """What its ledger, which is not made, says of the dataset, known to it if `registered`."""
        url, given = self.ledger, isinstance(self.ledger, Ledger)
        if not given and "://" not in str(url) and not Path(str(url)).exists():
            return unknown
        name = self.dataset or self.open_table().name
        try:
            with nullcontext(url) if given else Ledger(url, create=False) as opened:
                known = not registered or name in opened.datasets()
                return read(opened, name) if known else unknown
        except EmptyLedger:
            return unknown

    def find_request(self, request: str | None = None, *, amend: bool = False) -> str | None:
        """This request, or by default that of this very batch, of the table as it is or was
        registered, if it was paid before.

        Args:
            amend: whether the dataset may go on with another table, of which nothing was asked.

        Raises:
            BudgetRefused: it was asked of rows that have changed since.
        """

        def look(opened: Ledger, name: str) -> str | None:
            if request is not None:
                return request if opened.requests(name, f"{request}/") else None
            table, registered = self.open_table(), opened.budget_state(name).registered
            asked = register_table(table, self.queries, rows=True)
            batch = self.name_batch(opened, name, table, asked)
            changed = registered is None or registered.difference(asked) is not None
            if changed and (amend or batch.find_answered() is not None):
                return batch.find_answered()
            if not amend:
                batch.require_same_rows(batch.name())
            return batch.name() if opened.requests(name, f"{batch.name()}/") else None

        return self.read_ledger(look, None)

    def name_batch(
        self, ledger: Ledger, dataset: str, table: Table, asked: Registration, who: str = ""
    ) -> NamedBatch:
        """What is asked, as a ledger knows it; see `NamedBatch`."""
        state = ledger.budget_state(dataset) if dataset in ledger.datasets() else None
        said = {**self.budget, "share": self.own_share(state)}
        words = describe_batch(table, self.plan, self.queries, **said)
        return NamedBatch(ledger, dataset, self.plan, words, asked, who)


def load_scenario(
    path: str | Path, *, asked: bool | None = True, ledger: str | None = None
) -> Scenario:
    """Read a scenario file.

    Args:
        ledger: another ledger than the one that it names.
        asked: whether its queries are asked; otherwise it needs none, and those it has are left.
            With None they are asked if it has any.
    """
    require_extras("release")
    file = Path(path)
    ending = Path(file.name.removesuffix(".gz")).suffix.lower()
    if ending == ".json" or ending in FILE_ENDINGS.keys() - {".txt"}:
        kind = "a JSON file" if ending == ".json" else "a table"
        hint = "give a .toml file that names a table, an adversary, a target and questions"
        message = f"{file.name} is {kind}, not a scenario"
        raise InvalidInput(message, field="scenario", value=file.name, hint=hint)
    text = read_text(file, file.name, MAX_TOML_LENGTH)
    data = parse_toml(text, file.name)
    source = ScenarioText(file.name, data, toml_lines(text))
    with source.locate_errors():
        result = read_scenario(data, file.parent, title=file.stem, asked=asked, text=source)
    return result if ledger is None else replace(result, ledger=ledger)


def read_scenario(
    data: Mapping[str, Any],
    folder: Path,
    title: str = "release",
    *,
    asked: bool | None = True,
    text: ScenarioText | None = None,
) -> Scenario:
    """A scenario from its keys; paths are relative to the folder.

    Args:
        text: its file. All mistakes of a file are said at once, those that need its table too.
    """
    mistakes = Mistakes()
    values = ScenarioModel.read_values(data, mistakes)
    if "table" not in values and text is not None:
        values["table"] = _readable_table(data.get("table"), mistakes.found)
    model = ScenarioModel(**{"target": None, "table": None} | values)
    plan = None
    if not any(each.path.startswith(("target", "adversary")) for each in mistakes.found):
        with mistakes.collect():
            plan = read_plan(model.adversary, model.target) if model.target is not None else None
    listed: Sequence[Any] = ()
    with mistakes.collect():
        listed = _list_queries(model, asked)
    queries: dict[int, Query] = {}
    for index, each in enumerate(listed):
        with mistakes.collect():
            queries[index] = _read_scenario_query(each, index, folder)
        if index not in queries and text is not None:
            here = [error for error in mistakes.found if error.path.startswith(f"queries[{index}]")]
            with mistakes.collect():
                repaired = _repair_keys(each, here)
                if repaired is not None:
                    queries[index] = _read_scenario_query(repaired, index, folder)
    named = Counter(query.name for query in queries.values() if query.name)
    with mistakes.collect():
        if twice := next((name for name, count in named.items() if count > 1), None):
            message = f"two queries have the name {twice!r}"  # answers are found by name
            raise InvalidInput(message, field="name of a query", value=twice)
    tables: tuple[Further, ...] = ()
    features: tuple[Feature, ...] = ()
    with mistakes.collect():
        if model.tables:
            from whosin.release.related_tables import read_tables

            tables = tuple(
                replace(each, source=_resolve_path(folder, each.source))
                for each in read_tables(model.tables)
            )
    with mistakes.collect():
        if model.features:
            from whosin.release.features import read_features

            features = read_features(model.features)
    if mistakes.found and (text is None or model.table is None):
        mistakes.raise_all()
    result = Scenario(
        title if model.title is None else model.title,
        plan if plan is not None else calibrate(Epsilon(1)),
        replace(model.table, source=_resolve_path(folder, model.table.source)),
        {} if model.domains is None else model.domains,
        tuple(queries.values()),
        _resolve_path(folder, model.ledger.url),
        model.ledger.dataset,
        model.budget.given,
        tables,
        features,
        model.about,
        model.schedule.given,
        text,
    )
    if mistakes.found:
        result.find_mistakes(mistakes, queries)
        mistakes.raise_all()
    return result


def _list_queries(model: ScenarioModel, asked: bool | None) -> Sequence[Any]:
    """The queries that are asked, as they were written."""
    asked = model.queries is not None if asked is None else asked
    if asked and model.queries is None:
        raise model.refuse_missing("queries")
    listed = model.queries if asked else []
    if isinstance(listed, Mapping):
        hint = "write it in double brackets, [[queries]], once for each question"
        raise InvalidInput("queries is written [queries]", field="queries", hint=hint)
    if asked and (not isinstance(listed, list) or not listed):
        hint = "ask something with [[queries]]"
        raise InvalidInput("queries is empty", field="queries", value=listed, hint=hint)
    return listed


def _readable_table(data: object, found: list[WhosinError]) -> TableSection | None:
    """The table by what can be read or was probably meant; a misspelt key is not missing too."""
    if not isinstance(data, Mapping):
        return None
    here = [each for each in found if each.path.startswith("table")]
    repaired = _repair_keys(data, here) or data
    again = [each for each in here if each.field in repaired.keys() - data.keys()]
    found[:] = [each for each in found if each not in again]
    values = TableSection.read_values(repaired, Mistakes())
    return TableSection(**{"privacy_unit": ROW} | values) if "source" in values else None


def _repair_keys(data: object, wrong: Sequence[WhosinError]) -> dict[str, Any] | None:
    """A section or question with the kind and keys that were meant; None where it has them."""
    if not isinstance(data, Mapping):
        return None
    result = dict(data)
    for error in wrong:
        meant = getattr(error, "nearest", None)
        if isinstance(error, UnknownName) and error.value in result:
            value = result.pop(error.value)
            result |= {} if meant is None else {meant: value}
        elif isinstance(error, UnknownName) and result.get("kind") == error.value and meant:
            result["kind"] = meant
    return None if result == dict(data) else result


def _names_any(error: WhosinError, columns: set[str]) -> bool:
    """Whether an error is about one of these columns, in whatever letters."""
    return str(error.value).casefold() in {column.casefold() for column in columns}


def _open_table(
    data: TableSection,
    domains: Mapping[str, Any],
    tables: tuple[Further, ...],
    features: tuple[Feature, ...],
) -> Table:
    try:
        return Table(
            data.source,
            data.privacy_unit,
            domains,
            max_rows_per_group=data.max_rows_per_group,
            max_groups=data.max_groups,
            name=data.name,
            engine=read_engine(data.given),
            tables=tables,
            features=features,
            from_rows=data.from_rows,
            people=data.people,
            part=data.part,
        )
    except WhosinError as error:
        for each in error.parts:
            named = each.field if each.field in data.known_keys() else "source"
            each.path = each.path or f"table.{named}"
        error.path = error.parts[0].path
        raise


def _resolve_path(folder: Path, name: str) -> str:
    """A path of a scenario, relative to its folder; what is no path stays as it is."""
    elsewhere = name.startswith(("::", ADBC_PREFIX)) or "://" in name
    return name if elsewhere or Path(name).is_absolute() else str(folder / name)


def _read_scenario_query(data: object, index: int, folder: Path) -> Query:
    """A query, whose output lies beside the scenario too."""
    with at(f"queries[{index}]"):
        query = read_query(data, QUERIES)
    path = getattr(query, "path", None)
    if not isinstance(path, str):
        return query
    return replace(query, path=_resolve_path(folder, path))  # type: ignore[call-arg]
