"""From a request to a scenario on the served folder, and from a scenario to TOML or a script."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from fractions import Fraction
from itertools import chain, islice
from math import prod
from pathlib import Path
from typing import Any

from whosin.app.web import folder
from whosin.app.web.access import Settings, Visitor, has_ledger
from whosin.app.web.bodies import InspectionBody, RequestRefused, ScenarioBody, body_data
from whosin.calibration import Plan, Target, read_plan
from whosin.errors import (
    BudgetRefused,
    InvalidInput,
    WhosinError,
    at,
    invalid_value,
    require_extras,
)
from whosin.families import Family
from whosin.ledger import BudgetState, Ledger, registry
from whosin.ledger.budget import Budget, Cost, price_spend
from whosin.ledger.encoding import canonical_json
from whosin.ledger.registration import RegisteredTable, Registration
from whosin.ledger.registry import (
    PeopleBudget,
    check_schedule,
    describe_unnamed,
    group_by_people,
)
from whosin.ledger.store import read_url
from whosin.release import QUERIES, CostEstimate, Release, Session, Table
from whosin.release.admission import check_batch, left_for_questions
from whosin.release.conditions import canonical_question
from whosin.release.contribution_bounds import column_behind
from whosin.release.cost import paid_estimates
from whosin.release.domains import Domain, read_domain
from whosin.release.queries import Marginals, Query, read_query
from whosin.release.requests import NamedBatch, name_debits
from whosin.release.scenario import Scenario, read_scenario
from whosin.release.synthetic_tables import remove_drafts
from whosin.release.table import dataset_name, fingerprint_of_source, register_table
from whosin.scenario_model import (
    AdversarySection,
    FurtherTableSection,
    ScenarioModel,
    TargetSection,
)

# From a request to a scenario on the served folder, to a cost, to a release. A table is a file of
# the folder, the ledger is the server's, the dataset is named after the file, so that nobody gets a
# second budget by another name. Errors say which field they mean.


MOST_VALUES, MOST_CELLS, MOST_CANDIDATES = 2_000, 20_000, 5_000
"""What a page takes: values of a column, cells of an answer, candidates of a maximum."""
MOST_WHERE = 4_000
"""Letters of all conditions: an engine takes long to plan lists of thousands of numbers."""
MOST_PEOPLE = 5_000
"""Whose doubts a page works out while someone waits."""
USE_RELEASE = "whosin release takes more"


def make_page_plan(
    adversary: AdversarySection, target: TargetSection, query: str | None = None
) -> Plan:
    """A plan that a page works out while someone waits."""
    _check_people(adversary)
    return read_plan(adversary, target, query)


def _check_people(adversary: AdversarySection) -> None:
    people = adversary.people
    if people is not None and people > MOST_PEOPLE:
        with at("adversary.people"):
            raise invalid_value("people", f"at most {MOST_PEOPLE:,}", f"{people:,}", USE_RELEASE)


def table_scenario(body: InspectionBody) -> ScenarioBody:
    """A scenario on a table, for what needs the table alone: any target and any question will
    do."""
    return ScenarioBody(
        target=TargetSection.read({"epsilon": 1.0}, "target"),
        table=body.table,
        domains=body.domains,
        tables=body.tables,
        features=body.features,
        queries=[{"kind": "count"}],
    )


def full_data(settings: Settings, body: ScenarioBody) -> dict[str, Any]:
    """The keys of a scenario file, with the server's ledger, for a person to keep."""
    ledger = {"url": ledger_url(settings)}
    if body.continues:
        ledger["dataset"] = body.continues
    return body_data(body) | {"ledger": ledger}


def ledger_url(settings: Settings) -> str:
    """Where the server's ledger is, as seen from the served folder, without a password."""
    ledger, home = read_url(settings.ledger), settings.folder.resolve()
    if ledger.path is None:
        return ledger.name
    path = Path(ledger.path)
    return str(path.relative_to(home) if path.is_relative_to(home) else path)


def ledger_command(settings: Settings, verb: str, dataset: str) -> str:
    """What a curator runs in the served folder, with the scenario that the page saved there."""
    words = ["whosin", "ledger", verb, ledger_url(settings), dataset]
    return shlex.join([*words, "--scenario", "scenario.toml"])


@contextmanager
def opened(
    settings: Settings, body: ScenarioBody, visitor: Visitor, request: str | None = None
) -> Iterator[tuple[Scenario, Table]]:
    """A scenario and its table, checked by its schema.

    Args:
        request: whose files it writes, as the ledger keeps it.
    """
    require_extras("release")
    given = body_data(body)
    with at("table.source"):
        folder.find_table(settings.folder, body.table.source, visitor.tables(settings))
    _check_tables(settings, body, visitor)
    _check_people(body.adversary)
    letters = 0
    for index, query in enumerate(given["queries"]):
        with at(f"queries[{index}]"):
            where = query.get("where")
            letters += len(where) if isinstance(where, str) else 0
            if letters > MOST_WHERE:
                words = (
                    f"the conditions have {letters:,} letters in all, and the page takes at most"
                )
                with at("where"):
                    raise InvalidInput(
                        f"{words} {MOST_WHERE:,}", field="where", value=letters, hint=USE_RELEASE
                    )
            if read_query(query, QUERIES).writes_file:
                with at("path"):
                    name = folder.plain_name(query["path"])
                    home = folder.output_home(settings, visitor, request)
                    folder.make_home(home)
                    query["path"] = str(home.absolute() / name)
    given["table"]["memory"] = f"{settings.scan_memory // 2}B"  # beyond it the engine spills
    if body.continues or body.new_people:
        visitor.require_curator("says whose people these are", "continues")
    scenario = replace(
        read_scenario(given, settings.folder),
        dataset=body_dataset(body),
        ledger=str(settings.ledger),
    )
    table = _open_table(scenario)
    try:
        yield replace(scenario, opened=table), table
    finally:
        table.engine.close()


def _check_tables(settings: Settings, body: ScenarioBody, visitor: Visitor) -> None:
    """Further tables are files of the folder. A user who may not decide can only name those that
    the budget is bound to. That is checked before any is opened, since errors about a public table
    may quote rows."""
    seen = visitor.tables(settings)
    registered = None if seen is None else seen.get(dataset_name(body.table.source))
    for index, each in enumerate(body.tables):
        with at(f"tables[{index}].source"):
            if seen is None:
                folder.find_table(settings.folder, each.source)
            elif registered is None or not _is_registered(settings, each, registered):
                raise InvalidInput(
                    f"the budget does not cover a table {each.source!r}",
                    field="source",
                    value=each.source,
                    hint="ask its curator which tables it is for",
                )


def _is_registered(
    settings: Settings, table: FurtherTableSection, registered: RegisteredTable
) -> bool:
    """Whether a further table is the one that a budget is bound to. A file of another name, one
    that is not there and one that cannot be read are all the same: users learn no names."""
    try:
        prints = fingerprint_of_source(folder.find_table(settings.folder, table.source))
    except (WhosinError, OSError):
        return False
    return registered.has_table(table.name, table.public, prints)


def _open_table(scenario: Scenario) -> Table:
    listed = {name: each for name, each in scenario.domains.items() if not _looked_up(each)}
    for column, domain in listed.items():
        with at(f"domains.{column}"):
            _check_domain(read_domain(column, domain))
    table = scenario.open_table()
    try:
        for column in scenario.domains.keys() - listed:
            with at(f"domains.{column}"):
                _check_domain(table.domains[column])
    except BaseException:
        table.engine.close()
        raise
    return table


def _looked_up(domain: object) -> bool:
    """Whether the values are those of a public table, which has to be opened first."""
    values = domain.get("values") if isinstance(domain, Mapping) else domain
    return isinstance(values, str) and ".." not in values


def _check_domain(domain: Domain) -> None:
    size = len(domain.labels)
    if size > MOST_VALUES:
        words = (
            f"the column has {size:,} declared values, and the page takes at most {MOST_VALUES:,}"
        )
        raise InvalidInput(words, field="domain", value=size, hint=USE_RELEASE)


def body_dataset(body: ScenarioBody) -> str:
    """The dataset whose budget pays: that of the file, or the one that it continues."""
    return body.continues or dataset_name(body.table.source)


def estimates_for(scenario: Scenario, table: Table, paid_by: str = "") -> list[CostEstimate]:
    """The cost of a batch that is not too large for a page; errors name the query."""
    for index, query in enumerate(scenario.queries):
        with at(f"queries[{index}]"), query.at_own_key():
            _check_size(query, table)
    return scenario.estimate_cost(table, paid_by)


def _check_size(query: Query, table: Table) -> None:
    """Refuse more cells or candidates than a page can show."""
    by = getattr(query, "by", ())
    listed = by if isinstance(by, list | tuple) else [by]  # what is no list, the estimate refuses
    names = {name for name in listed if isinstance(name, str)}
    declared = table.domains
    known = [table.grouping(name) for name in names if column_behind(declared, name) in declared]
    if (count := prod(len(domain.labels) for domain in known)) > MOST_CELLS:
        raise _too_many_cells("by", count)
    if isinstance(query, Marginals) and (count := query.cells_in_all(table)) > MOST_CELLS:
        raise _too_many_cells("columns", count)
    universe = getattr(query, "universe", ())
    if isinstance(universe, list | tuple) and len(universe) > MOST_CANDIDATES:
        words = f"universe has {len(universe):,} candidates, and the page takes at most"
        raise InvalidInput(
            f"{words} {MOST_CANDIDATES:,}", field="universe", value=len(universe), hint=USE_RELEASE
        )


def _too_many_cells(field: str, count: int) -> InvalidInput:
    words = f"this has {count:,} cells in all, and the page takes at most {MOST_CELLS:,}"
    return InvalidInput(words, field=field, value=count, hint=USE_RELEASE)


def dataset_budget_state(settings: Settings, dataset: str) -> BudgetState | None:
    """Where a dataset stands, if its ledger knows it; nothing is made."""
    if not has_ledger(settings):
        return None
    with Ledger(settings.ledger, create=False) as ledger:
        known = dataset in ledger.datasets()
        return ledger.budget_state(dataset, parts=True) if known else None


def left_today(
    settings: Settings, visitor: Visitor, opened: tuple[Scenario, Table], state: BudgetState | None
) -> float | None:
    """The ε that a visitor may spend today on these questions: quotas and periods keep the rest."""
    if state is None:
        return None
    scenario, table = opened
    with visitor.ledger(settings, create=False) as ledger:
        return left_for_questions(ledger, state, scenario.queries, table)


def find_lookalikes(settings: Settings, body: ScenarioBody, table: Table) -> list[str]:
    """Datasets with the privacy unit and the columns of a table that has no budget yet: perhaps
    these are their people."""
    if not has_ledger(settings) or dataset_budget_state(settings, body_dataset(body)):
        return []
    with Ledger(settings.ledger, create=False) as ledger:
        return ledger.lookalikes(body_dataset(body), register_table(table))


def find_people(
    settings: Settings,
    body: ScenarioBody,
    opened: tuple[Scenario, Table],
    estimates: list[CostEstimate],
) -> PeopleBudget | None:
    """What a release would leave of the budgets of all datasets that may be about its people; None
    where there is one alone, or where its promise does not add to others."""
    scenario, table = opened
    if not has_ledger(settings) or any(estimate.spend.alone for estimate in estimates):
        return None
    dataset, plan = body_dataset(body), scenario.plan
    asked = [estimate.spend for estimate in paid_estimates(estimates)]
    with Ledger(settings.ledger, create=False) as ledger:
        states = {name: ledger.budget_state(name) for name in ledger.datasets()}
        own = states.get(dataset)
        if own is None:
            apart = ledger.lookalikes(dataset, register_table(table)) if body.new_people else []
            said = replace(register_table(table), apart_from=dict.fromkeys(apart))
            registered, nothing = RegisteredTable.of(said), Cost(0, 0)
            budget = Budget.of(plan)
            own = BudgetState(dataset, "open", plan, budget, nothing, 0, 0, "", "", registered)
    cost = sum((price_spend(each, own.plan).cost(plan.relation) for each in asked), own.spent)
    states[dataset] = replace(own, spent=cost, debits=own.debits + len(asked))
    groups = group_by_people(list(states.values()))
    return next((each for each in groups if states[dataset] in each.states), None)


def find_refusal(
    settings: Settings,
    body: ScenarioBody,
    opened: tuple[Scenario, Table],
    estimates: list[CostEstimate],
    visitor: Visitor,
) -> tuple[str, bool] | None:
    """Why the ledger would refuse this now, and whether that is for want of budget."""
    (scenario, table), dataset = opened, body_dataset(body)
    budget_state = dataset_budget_state(settings, dataset)
    try:
        if budget_state is None:
            check_budget(settings, body, table, visitor)
            return None
        registered, registration = budget_state.registered, register_table(table, scenario.queries)
        if registered is None and not visitor.curator:
            return describe_unnamed(dataset), False
        if registered is not None:
            if visitor.curator and registered.registration.universe is None:
                registration = replace(registration, universe=None)
            if not body.continues:
                registered.check(dataset, registration)
        check_schedule(budget_state, scenario.schedule or None)
        share, amended = scenario.own_share(budget_state), bool(body.continues)
        about = table, scenario.plan, estimates, registration
        with visitor.ledger(settings, create=False) as ledger:
            check_batch(ledger, budget_state, *about, share=share, amended=amended)
    except (BudgetRefused, RequestRefused) as error:
        return str(error), error.field in ("share", "budget", "quota")
    return None


def check_budget(settings: Settings, body: ScenarioBody, table: Table, visitor: Visitor) -> None:
    """Only a curator opens a budget, where the server lets them, and says whose people they are
    where the ledger may know them."""
    dataset = body_dataset(body)
    if dataset_budget_state(settings, dataset) is not None:
        return
    if body.continues:
        raise RequestRefused(409, f"the ledger has no dataset {dataset!r}", "continues")
    if not visitor.curator:
        ask = "ask its curator to open one"
        raise RequestRefused(409, f"dataset {dataset!r} has no budget", "table.source", ask)
    if not settings.register:
        raise RequestRefused(
            409,
            f"{dataset!r} has no budget, and this server opens none",
            "table.source",
            f"run {ledger_command(settings, 'create', dataset)} in the served folder (“Save the "
            "scenario” writes the file), or start the server with --register",
        )
    if others := [] if body.new_people else find_lookalikes(settings, body, table):
        raise RequestRefused(
            409,
            registry.describe_lookalike(dataset, others),
            "continues",
            f"say that this continues {' or '.join(others)} if people may be in both, or that they "
            "are new",
        )


def release_scenario(
    settings: Settings, body: ScenarioBody, given: str | None, visitor: Visitor
) -> tuple[Scenario, Release]:
    """Answer a scenario; every debit is on disk before its noise is drawn.

    Args:
        given: the id of the request; without one it is named after what is asked.
    """
    dataset = body_dataset(body)
    with opened(settings, body, visitor, given and visitor.request(given)) as (scenario, table):
        check_budget(settings, body, table, visitor)
        with visitor.ledger(settings) as ledger:
            if writes_files(scenario.queries):
                request = find_request(settings, (scenario, table), given, visitor)
                debited = ledger.requests(dataset, f"{request}/")
                debits = _find_debits(scenario, table, str(request))
                own = [index for index, each in enumerate(debits) if debited >= each]
                folder.check_outputs(folder.output_home(settings, visitor, request), body, own)
                for each in folder.all_homes(settings):
                    remove_drafts(ledger, dataset, each)
            session = Session(
                table,
                scenario.plan,
                ledger,
                dataset=dataset,
                request=given and visitor.request(given),
                share=scenario.own_share(dataset_budget_state(settings, dataset)),
                schedule=scenario.schedule or None,
                amend=body.continues is not None,
                curator=visitor.curator,
                new_people=body.new_people,
                preflight=False,
                about={**scenario.about.written, "title": scenario.title},
                queries=scenario.queries,
            )
            return scenario, scenario.release(session)


def find_request(
    settings: Settings, opened: tuple[Scenario, Table], given: str | None, visitor: Visitor
) -> str | None:
    """A request as the ledger keeps it: by its id, or named after what is asked of the table that
    its dataset is registered with, or was when it was answered; None where it is not registered
    yet."""
    if given is not None:
        return visitor.request(given)
    (scenario, table), dataset = opened, str(opened[0].dataset)
    if dataset_budget_state(settings, dataset) is None:
        return None
    with visitor.ledger(settings, create=False) as ledger:
        return (
            _find_earlier(ledger, scenario, table, visitor)
            or _name_batch(ledger, scenario, table, visitor).name()
        )


def _name_batch(
    ledger: Ledger, scenario: Scenario, table: Table, visitor: Visitor, *, rows: bool = False
) -> NamedBatch:
    asked = register_table(table, scenario.queries, rows=rows)
    who = "" if visitor.curator else ledger.who
    return scenario.name_batch(ledger, str(scenario.dataset), table, asked, who)


def _find_earlier(ledger: Ledger, scenario: Scenario, table: Table, visitor: Visitor) -> str | None:
    """The request with all answers to this about a table that the dataset was registered with
    before it went on with another one, such as an earlier month's; for curators."""
    dataset, queries = str(scenario.dataset), scenario.queries
    if not visitor.curator or _holds_registration(ledger, dataset, register_table(table, queries)):
        return None
    if all(entry.kind != "amended" for entry in ledger.history(dataset)):
        return None  # and no row is read
    return _name_batch(ledger, scenario, table, visitor, rows=True).find_answered()


def _holds_registration(ledger: Ledger, dataset: str, registration: Registration) -> bool:
    registered = ledger.budget_state(dataset).registered
    return registered is not None and registered.difference(registration) is None


def find_stored(
    settings: Settings, scenario: Scenario, table: Table, visitor: Visitor
) -> str | None:
    """The request under which these very questions about this very table were paid before."""
    dataset = str(scenario.dataset)
    if dataset_budget_state(settings, dataset) is None:
        return None
    with visitor.ledger(settings, create=False) as ledger:
        if earlier := _find_earlier(ledger, scenario, table, visitor):
            return earlier
        if not _holds_registration(ledger, dataset, register_table(table, scenario.queries)):
            return None
        request = _name_batch(ledger, scenario, table, visitor).name()
        return request if ledger.requests(dataset, f"{request}/") else None


def list_paid(
    settings: Settings, opened: tuple[Scenario, Table], estimates: list[CostEstimate], who: Visitor
) -> list[str | None]:
    """For each question the newest request that has its answer, of this very table."""
    (scenario, table), paid = opened, dict[str, str]()
    dataset, unpaid = str(scenario.dataset), list[str | None]([None] * len(estimates))
    if dataset_budget_state(settings, dataset) is None:
        return unpaid
    with Ledger(settings.ledger, create=False) as ledger:
        if not _holds_registration(ledger, dataset, register_table(table, scenario.queries)):
            return unpaid
        _, history, answers = ledger.record(dataset)
    for entry in history:
        if entry.kind in ("registered", "amended"):
            paid.clear()
        elif entry.kind == "debit" and entry.request in answers and who.sees(entry):
            what = canonical_json(canonical_question(entry.body["what"]))
            paid[what] = str(entry.request).rpartition("/")[0]
    return [paid.get(canonical_json(canonical_question(each.spend.what))) for each in estimates]


def _find_debits(scenario: Scenario, table: Table, request: str) -> list[set[str]]:
    """The names of the debits of each query in a request: the steps of a stream have several, and
    queries that are measured at once share one."""
    estimates = scenario.estimate_cost(table)
    paid = paid_estimates(estimates)
    steps = [each.query.steps(each.query.restrict_table(table), each) for each in paid]
    split = scenario.budget.get("split", "weights")
    names = iter(name_debits(list(chain.from_iterable(steps)), request, split))
    found = {id(each): {*islice(names, len(own))} for each, own in zip(paid, steps, strict=True)}
    return [found[id(each.paid)] for each in estimates]


def writes_files(queries: Iterable[Query]) -> bool:
    return any(query.writes_file for query in queries)


def is_paid(
    settings: Settings, opened: tuple[Scenario, Table], given: str | None, visitor: Visitor
) -> bool:
    """Whether something was debited for this before, so that it goes on, or is shown again."""
    dataset = str(opened[0].dataset)
    if dataset_budget_state(settings, dataset) is None:
        return False
    request = find_request(settings, opened, given, visitor)
    with visitor.ledger(settings, create=False) as ledger:
        return bool(ledger.requests(dataset, f"{request}/"))


def stored_release(
    settings: Settings, body: ScenarioBody, given: str | None, visitor: Visitor
) -> tuple[Scenario, Release]:
    """A release that was made before; nothing is paid, nothing is drawn."""
    if dataset_budget_state(settings, body_dataset(body)) is not None:
        with opened(settings, body, visitor, given and visitor.request(given)) as found:
            request = find_request(settings, found, given, visitor)
            debits = set[str]().union(*_find_debits(*found, str(request)))
        with visitor.ledger(settings, create=False) as ledger:
            answered = [each.answer for each in ledger.find_debits(body_dataset(body), debits)]
        if len(answered) == len(debits) and None not in answered:  # else it would be paid for
            return release_scenario(settings, body, request, visitor)
    raise RequestRefused(404, "no release of this id has been answered", "request")


def toml_text(data: Mapping[str, Any]) -> str:
    """The scenario as TOML, without its empty parts; reading it gives the same keys and values."""
    import tomli_w

    known = {
        key: data[key]
        for key in ScenarioModel.known_keys()
        if key in data and (key == "title" or data[key])
    }
    return tomli_w.dumps(_drop_missing(known))


def _drop_missing(value: Any) -> Any:
    """The same without missing values, which TOML cannot write."""
    if isinstance(value, Mapping):
        return {key: _drop_missing(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        if None in value:
            raise InvalidInput("a list has a null in it, which TOML cannot write")
        return [_drop_missing(each) for each in value]
    return value


SCRIPT_TEMPLATE = """\
\"""A release made with whosin, as a script.

The first argument is the folder of the table, the second a ledger. In the ledger of
the first run the stored answers come back and nothing is paid; in another one they
are drawn anew and paid for.
\"""

import sys
from pathlib import Path

import whosin as wi
from whosin import release

title = {title!r}
folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
ledger = sys.argv[2] if len(sys.argv) > 2 else {ledger}

# Who may be looking, and how sure they may become.
target = {target}
adversaries = {family}
plan = wi.calibrate(target, adversaries, delta={delta!r}{reserve})
table = wi.Table(
    folder / {source!r},
    {privacy_unit!r},
    {domains!r},{options}
)
queries = [{queries}
]
with wi.Session(table, plan, ledger{session}) as session:
    made = session.release({batch})

print(title)
for answer in made:
    print(answer.title)
    print(*answer.columns, sep="\\t")
    for row in answer.rows:
        print(*row, sep="\\t")
print(f"left: {{made.budget_state.spendable:.6g}} of ε = {{plan.epsilon:.6g}}")
"""


def script_text(data: Mapping[str, Any], plan: Plan, request: str | None, share: object) -> str:
    """A script that makes the run again; under the same request and ledger it pays nothing.

    Args:
        share: of the session; None for that of its period.
    """
    table, budget, url = data["table"], data.get("budget", {}), data["ledger"]["url"]
    sized = all(query.get("within") is not None for query in data["queries"])
    session = {"request": request, "dataset": data["ledger"].get("dataset")}
    share = None if sized and "share" not in budget else share
    session |= {"schedule": data.get("schedule") or None, "share": share}
    keys = ("max_rows_per_group", "max_groups", "from_rows", "people", "part")
    options = [f"{key}={table[key]!r}" for key in keys if key in table]
    if data.get("tables"):
        options.append(f"tables=[{', '.join(map(_further_table_call, data['tables']))}]")
    if data.get("features"):
        options.append(f"features={list(data['features'])!r}")
    return SCRIPT_TEMPLATE.format(
        title=data.get("title", "Release"),
        ledger=repr(url) if "://" in url else f"folder / {url!r}",
        target=_constructor_call(plan.target),
        family=_constructor_call(plan.family),
        delta=plan.delta,
        reserve=f", reserve={plan.reserve!r}" if plan.reserve else "",
        source=table["source"],
        privacy_unit=table["privacy_unit"],
        domains=dict(data.get("domains", {})),
        options="".join(f"\n    {option}," for option in options),
        queries="".join(f"\n    {_query_call(query)}," for query in data["queries"]),
        session="".join(f", {key}={word!r}" for key, word in session.items() if word is not None),
        batch=", ".join(["queries", *(f"{key}={value!r}" for key, value in budget.items())]),
    )


def _constructor_call(thing: Target | Family) -> str:
    """The call that makes a target or a family, with exact numbers as texts."""
    room = "wi.families." if isinstance(thing, Family) else "wi."
    values = [getattr(thing, each.name) for each in fields(thing)]  # type: ignore[arg-type]
    given = [repr(str(v) if isinstance(v, Fraction) else v) for v in values]
    return f"{room}{type(thing).__name__}({', '.join(given)})"


def _further_table_call(table: Mapping[str, Any]) -> str:
    """A further table, whose file lies in the folder too."""
    keys = (f"{key!r}: {value!r}" for key, value in table.items() if key != "source")
    return f"{{{', '.join(keys)}, 'source': folder / {table['source']!r}}}"


def _query_call(query: Mapping[str, Any]) -> str:
    options = [
        f"{key}=str(folder / {value!r})" if key == "path" else f"{key}={value!r}"
        for key, value in query.items()
        if key != "kind"
    ]
    return f"release.{QUERIES[query['kind']].__name__}({', '.join(options)})"
