"""A scenario: the adversary, the target, the table, the queries, in one TOML file.

Contract: an unknown key is an error that names the nearest known one; everything is checked before
a row is read. Paths in a scenario are relative to its file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whosin.calibration import Plan, read_plan
from whosin.documents import read_toml
from whosin.errors import EmptyLedger, InvalidInput, UnknownName, WhosinError, at, at_keys
from whosin.extras import require_extras
from whosin.ledger import BudgetState, Ledger
from whosin.release.answer import Release
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.contribution_bounds import ContributionPolicy
from whosin.release.cost import CostEstimate
from whosin.release.domains import FROM_ROWS
from whosin.release.engines import ENGINE_KINDS, DuckDB, Engine
from whosin.release.engines.base import ADBC_PREFIX, FILE_ENDINGS
from whosin.release.queries import QUERIES, Query, read_query
from whosin.release.queries.base import scenario_keys
from whosin.release.session import Session, Watch, name_request
from whosin.release.table import Table
from whosin.scenario_model import (
    ABOUT_UNSAID,
    AboutSection,
    BudgetSection,
    ScenarioModel,
    TableSection,
)

if TYPE_CHECKING:
    from whosin.release.features import Feature
    from whosin.release.related_tables import Further


@dataclass(frozen=True)
class Scenario:
    """What a scenario file says, checked."""

    title: str
    plan: Plan
    table: TableSection
    domains: Mapping[str, Any]
    queries: tuple[Query, ...]
    ledger: str
    dataset: str | None
    budget: Mapping[str, Any]
    tables: tuple[Further, ...] = ()
    features: tuple[Feature, ...] = ()
    about: AboutSection = ABOUT_UNSAID

    @property
    def looked_up(self) -> tuple[str, ...]:
        """The columns whose domains were chosen by looking at the rows."""
        return tuple(
            column
            for column, domain in self.domains.items()
            if (isinstance(domain, Mapping) and domain.get(FROM_ROWS) is True)
            or getattr(domain, FROM_ROWS, False)
        )

    def open_table(self) -> Table:
        """The table on its engine; only the schema is read."""
        data = self.table
        try:
            return Table(
                data.source,
                data.privacy_unit,
                self.domains,
                max_rows_per_group=data.max_rows_per_group,
                max_groups=data.max_groups,
                name=data.name,
                engine=_read_engine(data.given),
                tables=self.tables,
                features=self.features,
                people=data.people,
            )
        except WhosinError as error:
            field = error.field if error.field in data.known_keys() else "source"
            error.path = error.path or f"table.{field}"
            raise

    def asking(self, sql: str) -> Scenario:
        """The same scenario with the queries that a SELECT asks, and no others."""
        from whosin.release.sql import parse_queries

        table = self.open_table()
        try:
            known = (self.dataset,) if self.dataset else ()
            return replace(self, queries=parse_queries(sql, table, known))
        finally:
            table.engine.close()

    def estimate_cost(self, table: Table | None = None) -> list[CostEstimate]:
        """What the queries cost and how good the answers will be; nothing is written or spent."""
        opened = self.open_table() if table is None else table
        with self.at_budget():
            return estimate_batch_cost(opened, self.plan, self.queries, **self.budget)

    def contribution_policies(self, table: Table) -> list[ContributionPolicy]:
        """What of the rows counts in each answer."""
        result = []
        for index, query in enumerate(self.queries):
            with at(f"queries[{index}]"), query.at_own_key():
                result.append(query.contribution_policy(query.restrict_table(table)))
        return result

    def release(self, session: Session, watch: Watch | None = None) -> Release:
        """Have a session answer the queries."""
        with self.at_budget():
            return session.release(self.queries, watch=watch, **self.budget)

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
        again: bool = True,
        new_people: bool | None = None,
    ) -> Session:
        """A session for the scenario's one batch, in its ledger or another one. The cost of the
        batch is estimated before a new request, so that what is wrong with it is found before a
        budget is opened.

        Args:
            again: False where the same batch of the same rows is not asked anew (see `Session`).
            new_people: as for `Session`; copies of rows are refused too, unless it is None.
        """
        table = self.open_table()
        if request is None:
            self.estimate_cost(table)
            for index, query in enumerate(self.queries):
                with at(f"queries[{index}]"), query.at_own_key():
                    query.require_new_file()
        with self.at_budget():
            return Session(
                table,
                self.plan,
                ledger if ledger is not None else self.ledger,
                dataset=self.dataset,
                request=request,
                share=self.budget.get("share", 1),
                amend=amend,
                copies="warn" if new_people is None else "refuse",
                new_people=new_people,
                batch=None if again else self.batch_data(),
                queries=self.queries,
            )

    def read_budget_state(self, ledger: object = None) -> BudgetState | None:
        """Where the dataset stands in its ledger or another one, which is not made; None where it
        has no budget yet."""
        url = ledger if ledger is not None else self.ledger
        if "://" not in str(url) and not Path(str(url)).exists():
            return None
        name = self.dataset or self.open_table().name
        try:
            with Ledger(url, create=False) as opened:
                return opened.budget_state(name) if name in opened.datasets() else None
        except EmptyLedger:
            return None

    def was_asked(self, ledger: object = None, request: str | None = None) -> bool:
        """Whether this request was paid before; by default this very batch, of the table as it is
        registered now."""
        url = ledger if ledger is not None else self.ledger
        if "://" not in str(url) and not Path(str(url)).exists():
            return False
        name = self.dataset or self.open_table().name
        try:
            with Ledger(url, create=False) as opened:
                if name not in opened.datasets():
                    return False
                if request is None:
                    request = name_request(opened, name, self.plan, self.batch_data())
                return bool(opened.requests(name, f"{request}/"))
        except EmptyLedger:
            return False

    def batch_data(self) -> dict[str, Any]:
        """What is asked, as plain data, which `name_request` names."""
        budget = {key: str(value) for key, value in self.budget.items()}
        return {"queries": [scenario_keys(query) for query in self.queries], "budget": budget}


def load_scenario(path: str | Path, *, asked: bool | None = True) -> Scenario:
    """Read a scenario file.

    Args:
        asked: whether its queries are asked; otherwise it needs none, and those it has are left.
            With None they are asked if it has any.
    """
    require_extras("release")
    file = Path(path)
    ending = Path(file.name.removesuffix(".gz")).suffix.lower()
    if ending == ".json" or ending in FILE_ENDINGS.keys() - {".txt"}:
        message = f"{file.name} is {'a JSON file' if ending == '.json' else 'a table'}"
        hint = "give a .toml file that names a table, an adversary, a target and questions"
        raise InvalidInput(
            f"{message}, not a scenario", field="scenario", value=file.name, hint=hint
        )
    data = read_toml(file, file.name)
    return read_scenario(data, file.parent, title=file.stem, asked=asked)


def read_scenario(
    data: Mapping[str, Any], folder: Path, title: str = "release", *, asked: bool | None = True
) -> Scenario:
    """A scenario from its keys; paths are relative to the folder."""
    model = ScenarioModel.read(data, "scenario")
    asked = model.queries is not None if asked is None else asked
    if asked and model.queries is None:
        raise model.refuse_missing("queries")
    plan = read_plan(model.adversary, model.target)
    listed = model.queries if asked else []
    if isinstance(listed, Mapping):
        hint = "write it in double brackets, [[queries]], once for each question"
        raise InvalidInput("queries is written [queries]", field="queries", hint=hint)
    if asked and (not isinstance(listed, list) or not listed):
        hint = "ask something with [[queries]]"
        raise InvalidInput("queries is empty", field="queries", value=listed, hint=hint)
    queries = tuple(_read_scenario_query(each, index, folder) for index, each in enumerate(listed))
    named = Counter(query.name for query in queries if query.name)
    if twice := next((name for name, count in named.items() if count > 1), None):
        message = f"two queries have the name {twice!r}"  # answers are found by name
        raise InvalidInput(message, field="name of a query", value=twice)
    tables: tuple[Further, ...] = ()
    features: tuple[Feature, ...] = ()
    if model.tables:
        from whosin.release.related_tables import read_tables

        tables = tuple(
            replace(each, source=_resolve_path(folder, each.source))
            for each in read_tables(model.tables)
        )
    if model.features:
        from whosin.release.features import read_features

        features = read_features(model.features)
    url = model.ledger.url
    return Scenario(
        title if model.title is None else model.title,
        plan,
        replace(model.table, source=_resolve_path(folder, model.table.source)),
        {} if model.domains is None else model.domains,
        queries,
        url if "://" in url else _resolve_path(folder, url),
        model.ledger.dataset,
        model.budget.given,
        tables,
        features,
        model.about,
    )


def _read_engine(data: Mapping[str, Any]) -> Engine:
    name = data.get("engine", DuckDB.name)
    if name not in ENGINE_KINDS:
        raise UnknownName("engine", str(name), ENGINE_KINDS)
    kind = ENGINE_KINDS[name]
    for key in {key for each in ENGINE_KINDS.values() for key in each.keys}.intersection(data):
        if key not in kind.keys:
            message = f"{key} has no meaning for the engine {name}"
            raise InvalidInput(message, field=key, value=data[key], hint="leave it out")
    return kind(**{key: data[key] for key in kind.keys if key in data})


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
