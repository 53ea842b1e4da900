"""Entries of a history: their tables, rows and running sums.

The tables of a ledger. `entries` is only ever appended to; `datasets` repeats its last sums, and
`parts` what each part has come to. Format 3: every entry holds the sums after it and the digest of
the dataset's terms (see `running_sums`).

Running sums in every entry, so that the chain of digests covers what a debit relies on. An entry's
body has the `running_sums` of its dataset after it (what was spent, how many debits, the state, the
digest of `budget.Accounts`) and `terms_digest`, the digest of what is fixed (the budget, the plan,
the registration, the schedule). A row of the
table of datasets that says anything else than the last entry is a `BrokenHistory`, and each writer
looks before it changes anything.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections import namedtuple
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from whosin.calibration import Fallback, Plan, PlannedNoise
from whosin.calibration.plan import decode_object
from whosin.errors import BrokenHistory, WhosinError
from whosin.ledger import encoding
from whosin.ledger.budget import COUNTED_NOTION, Accounts, Budget, Cost, PartLevel, Schedule
from whosin.ledger.budget_state import BudgetState
from whosin.ledger.registration import RegisteredTable, Registration


@dataclass(frozen=True)
class Entry:
    """One line of a dataset's history.

    Attributes:
        kind: "registered", "amended", "quota", "debit", "answer", "suspended", "resumed" or
            "closed".
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
        """Return the fields as plain data for JSON."""
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


@dataclass(frozen=True)
class ReleaseRecord:
    """A release as the history of its dataset knows it.

    Attributes:
        when: it was paid for.
        table: what it was asked of was called then.
        went_on_from: the table that the dataset was registered with before that one, and until
            which moment; empty where it was the first one.
        cost: of all its answers.
    """

    request: str
    when: str
    table: str
    went_on_from: tuple[str, ...]
    cost: Cost


def list_publications(history: Iterable[Entry], relation: str) -> tuple[ReleaseRecord, ...]:
    """The answered releases of a dataset, oldest first."""
    found, answered = dict[str, ReleaseRecord](), set[str]()
    accounts, levels = dict[str, Accounts](), dict[tuple[str, str | None], PartLevel | None]()
    source, name, went_on_from = None, "", tuple[str, ...]()
    for entry in history:
        body, request = entry.body, str(entry.request)
        request = request.rpartition("/")[0] or request
        if entry.kind == "answer":
            answered.add(request)
        if entry.kind in ("registered", "amended") and (kept := body.get("registration")):
            if source not in (None, kept["source"]):
                went_on_from = name, body["when"]
            source, name = kept["source"], body.get("table", "")
        if entry.kind == "debit":
            part, before = body.get("part"), accounts.get(request, Accounts())
            level = None if part is None else levels.get((request, part)) or PartLevel()
            cost, entering = (
                Cost(**body["costs"][each]) if each in body["costs"] else encoding.INFINITE_COST
                for each in (relation, "add-remove")
            )
            accounts[request], levels[request, part] = before.pay_costs(
                cost, entering, relation, level, None
            )
            first = ReleaseRecord(request, body["when"], name, went_on_from, cost)
            found[request] = replace(
                found.get(request, first), when=body["when"], cost=accounts[request].total
            )
    return tuple(each for each in found.values() if each.request in answered)


def same_question(before: Entry | Debit, what: Mapping[str, Any]) -> bool:
    """Whether a debit is for this question, at whatever cost and whatever it counts of the rows."""
    paid, asked = (
        encoding.canonical_json({key: each[key] for key in each if key != COUNTED_NOTION})
        for each in (before.body["what"], what)
    )
    return paid == asked


FORMAT_VERSION = 3
FORMAT_KIND = "whosin ledger"

DATASETS_TABLE, ENTRIES_TABLE = "whosin_datasets", "whosin_entries"
ANSWERS_TABLE, ABOUT_TABLE = "whosin_answers", "whosin_ledger"
PARTS_TABLE = "whosin_parts"
LEVEL_COLUMNS = ("epsilon", "rho", "delta", "in_epsilon", "in_rho", "in_delta")
"""A part's level, and that of entering and leaving it."""
_OF_DATASET = f"FOREIGN KEY (dataset) REFERENCES {DATASETS_TABLE} (name)"
TABLE_COLUMNS = {
    DATASETS_TABLE: {
        "name": "VARCHAR(200) NOT NULL PRIMARY KEY",
        "state": "VARCHAR(24) NOT NULL",
        "relation": "VARCHAR(16) NOT NULL",
        "alone": "INTEGER NOT NULL",
        "epsilon": "BIGINT NOT NULL",
        "rho": "BIGINT NOT NULL",
        "delta": "BIGINT NOT NULL",
        "spent_epsilon": "BIGINT NOT NULL",
        "spent_rho": "BIGINT NOT NULL",
        "spent_delta": "BIGINT NOT NULL",
        "debits": "INTEGER NOT NULL",
        "entries": "INTEGER NOT NULL",
        "head": "VARCHAR(64) NOT NULL",
        "last": "VARCHAR(32) NOT NULL",
        "plan": "TEXT NOT NULL",
        "registration": "TEXT",
        "schedule": "TEXT",
        "accounts": "TEXT",
    },
    PARTS_TABLE: {
        "dataset": "VARCHAR(200) NOT NULL",
        "part": "VARCHAR(200) NOT NULL",
        "epoch": "INTEGER NOT NULL",
        **dict.fromkeys(LEVEL_COLUMNS, "BIGINT NOT NULL"),
    },
    ABOUT_TABLE: {"kind": "VARCHAR(32) NOT NULL PRIMARY KEY", "version": "INTEGER NOT NULL"},
    ANSWERS_TABLE: {
        "dataset": "VARCHAR(200) NOT NULL",
        "request": "VARCHAR(200) NOT NULL",
        "answer": "TEXT NOT NULL",
    },
    ENTRIES_TABLE: {
        "dataset": "VARCHAR(200) NOT NULL",
        "number": "INTEGER NOT NULL",
        "kind": "VARCHAR(16) NOT NULL",
        # Sorted by bytes whatever the database's language, so that an index finds a beginning.
        "request": "VARCHAR(200) {bytewise}",
        "body": "TEXT NOT NULL",
        "head": "VARCHAR(64) NOT NULL",
    },
}
"""The tables of a ledger, in the order in which they are made, and their columns."""
_TABLE_CONSTRAINTS = {
    ANSWERS_TABLE: ("PRIMARY KEY (dataset, request)", _OF_DATASET),
    PARTS_TABLE: ("PRIMARY KEY (dataset, part)", _OF_DATASET),
    # At most one debit and one answer for a request, whatever two processes do at once.
    ENTRIES_TABLE: (
        "PRIMARY KEY (dataset, number)",
        "CONSTRAINT whosin_once UNIQUE (dataset, request, kind)",
        _OF_DATASET,
    ),
}


def table_statements(*, server: bool) -> list[str]:
    """What makes the tables of a ledger that are not there yet."""
    bytewise, made = 'COLLATE "C"' if server else "", []
    for table, columns in TABLE_COLUMNS.items():
        listed = [f'"{name}" {kind.format(bytewise=bytewise)}' for name, kind in columns.items()]
        parts = ", ".join([*listed, *_TABLE_CONSTRAINTS.get(table, ())])
        made.append(f"CREATE TABLE IF NOT EXISTS {table} ({parts})")
    return made


def select_sql(table: str, condition: str = "", columns: Sequence[str] = ()) -> str:
    """SELECT of a table's columns, by name; all of them by default."""
    listed = ", ".join(f'"{name}"' for name in columns or TABLE_COLUMNS[table])
    return f"SELECT {listed} FROM {table} {condition and 'WHERE '}{condition}".rstrip()


def insert_sql(table: str) -> str:
    """INSERT of a whole row, with its columns as named values."""
    names = TABLE_COLUMNS[table]
    columns, values = (", ".join(form.format(name) for name in names) for form in ('"{}"', ":{}"))
    return f"INSERT INTO {table} ({columns}) VALUES ({values})"


def server_text(text: str) -> str:
    """A statement with named values, :name, as psycopg writes them."""
    return re.sub(r":(\w+)", r"%(\1)s", text)


def execute_sql(connection: Any, text: str, **values: object) -> Any:
    """The cursor of a statement with named values, on either driver's connection."""
    if not values:
        return connection.execute(text)
    sqlite = isinstance(connection, sqlite3.Connection)
    return connection.execute(text if sqlite else server_text(text), values)


DatasetRow = namedtuple("DatasetRow", list(TABLE_COLUMNS[DATASETS_TABLE]))  # type: ignore[misc]
EntryRow = namedtuple("EntryRow", list(TABLE_COLUMNS[ENTRIES_TABLE]))  # type: ignore[misc]

SUSPENDED_MARK = "suspended"
BASIC_STATES = ("open", "complete", "closed")


def state_after_suspension(state: str) -> str:
    """The state after a suspension."""
    if is_suspended(state):
        return state
    return SUSPENDED_MARK if state == "open" else f"{SUSPENDED_MARK} {state}"


def state_after_resuming(state: str) -> str:
    """The state after the curator has looked."""
    return state.removeprefix(SUSPENDED_MARK).strip() or "open"


def state_after_closing(state: str) -> str:
    """The state after closing; a suspension stays."""
    return state_after_suspension("closed") if is_suspended(state) else "closed"


def is_suspended(state: str) -> bool:
    """Whether nothing is drawn."""
    return state.startswith(SUSPENDED_MARK)


KNOWN_STATES = (*BASIC_STATES, *map(state_after_suspension, BASIC_STATES))


DATASET_COUNT_COLUMNS = ("alone", "epsilon", "rho", "delta", "debits", "entries")
DATASET_TEXT_COLUMNS = ("name", "state", "relation", "head", "last", "plan")


def dataset_row(connection: Any, name: str) -> Any:
    """The row of a dataset; None where there is none."""
    found = execute_sql(connection, select_sql(DATASETS_TABLE, "name = :name"), name=name)
    result = found.fetchone()
    return None if result is None else DatasetRow._make(result)


def dataset_names(connection: Any) -> list[str]:
    """The names of all datasets."""
    return [str(name) for (name,) in connection.execute(f"SELECT name FROM {DATASETS_TABLE}")]


def registrations(connection: Any) -> dict[str, RegisteredTable]:
    """What each dataset with a table is registered for, by name."""
    condition = "registration IS NOT NULL"
    kept = connection.execute(select_sql(DATASETS_TABLE, condition, ("name", "registration")))
    return {str(name): RegisteredTable.read(text) for name, text in kept}


def find_copies(connection: Any, name: str, registration: Registration | None) -> list[str]:
    """Other datasets with the same rows, as far as fingerprints tell."""
    if registration is None:
        return []
    return sorted(
        other
        for other, registered in registrations(connection).items()
        if other != name and registered.holds_rows_of(registration)
    )


def find_lookalikes(connection: Any, name: str, registration: Registration) -> list[str]:
    """Other datasets with the same privacy unit and columns."""
    return sorted(
        other
        for other, registered in registrations(connection).items()
        if other != name and registered.has_shape_of(registration)
    )


def count_suspensions(connection: Any, dataset: str) -> int:
    """How often a dataset was suspended; found through an index."""
    mine = "dataset = :dataset AND request IS NULL AND kind = 'suspended'"
    count = f"SELECT count(*) FROM {ENTRIES_TABLE} WHERE {mine}"
    return int(execute_sql(connection, count, dataset=dataset).fetchone()[0])


def read_budget_state(row: Any, suspensions: int = 0) -> BudgetState:
    """Where a dataset stands, by its row."""
    numbers = all(type(getattr(row, name)) is int for name in DATASET_COUNT_COLUMNS)
    texts = all(type(getattr(row, name)) is str for name in DATASET_TEXT_COLUMNS)
    if not (numbers and texts and row.alone in (0, 1) and row.state in KNOWN_STATES):
        raise BrokenHistory(str(row.name), "its row in the table of datasets is not readable")
    try:
        return BudgetState(
            dataset=row.name,
            state=state_after_resuming(row.state),
            suspended=is_suspended(row.state),
            suspensions=suspensions,
            plan=_read_plan(row.plan),
            budget=Budget(row.relation, row.epsilon, row.rho, row.delta, bool(row.alone)),
            spent=Cost(row.spent_epsilon, row.spent_rho, row.spent_delta),
            debits=row.debits,
            entries=row.entries,
            head=row.head,
            last=row.last,
            registered=None if row.registration is None else RegisteredTable.read(row.registration),
            accounts=Accounts.read(
                row.accounts, Cost(row.spent_epsilon, row.spent_rho, row.spent_delta)
            ),
            schedule=None if row.schedule is None else Schedule.read(row.schedule),
        )
    except (WhosinError, ValueError, TypeError, KeyError, AttributeError):
        words = "its plan, its table, its schedule or what was spent is not readable"
        raise BrokenHistory(row.name, words) from None


def read_entry(row: Any) -> Entry:
    """An entry, by its row."""
    return Entry(row.dataset, row.number, row.kind, row.request, read_entry_body(row), row.head)


def read_entry_body(row: Any) -> dict[str, Any]:
    """What an entry says, by its row."""
    try:
        body: dict[str, Any] = json.loads(row.body)
        types = (type(row.number), type(row.kind), type(row.head), type(row.request or ""))
        sound = isinstance(body, dict) and types == (int, str, str, str)
        if sound and encoding.canonical_json(body) == row.body:
            return body
    except (WhosinError, ValueError, TypeError, RecursionError):
        pass
    raise BrokenHistory(str(row.dataset), f"entry {row.number} was changed")


MAX_FRAMES = 1_000
"""How many bodies a reader remembers, and how many questions."""


class BodyReader:
    """Reads bodies as `read_entry_body` does, most of them without decoding them.

    The spelling of a mapping is its keys, in order, with the spellings of their values. So the text
    around the values that vary is decoded once: with any other values in one spelling it spells the
    same mapping with these. What stands before such a value must be found once in the body that was
    decoded, and that body must have the key itself: then no inner mapping has it.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, dict[str, Any]]] = {}

    def read(self, row: Any) -> tuple[dict[str, Any], str]:
        """What an entry says, without its question where that was not decoded; and its sums in the
        spelling that they have, which whoever asks compares."""
        front, _, back = row.body.partition(',"sums":')
        key, mark = ("digest", '"digest":"') if row.kind == "answer" else ("part", '"part":"')
        front, found, rest = front.partition(mark)
        value, closing, rest = rest.partition('"')
        outer = f"{front}{found}{closing}{rest}"
        middle, known = self._known.get(outer, ("", None))
        size = back.find("}") + 1
        sums = back[:size]
        what, _, rest = back[size + len(middle) :].partition(',"when":"')
        when, _, who = rest.partition('","who":"')
        plain = f"{value}{when}{who[:-2]}"
        if (
            known is not None
            and back.startswith(middle, size)
            and (_is_spelled(what) if middle.endswith(":") else not what)
            and who.endswith('"}')
            and _is_plain(plain)
        ):
            said = {**known, "when": when, "who": who[:-2]}
            if found:
                said[key] = value
            return said, sums
        body = read_entry_body(row)
        middle, asked, _ = back[size:].partition(',"what":')
        middle = middle + asked if asked else middle.partition(',"when":"')[0]
        said = {"when": when, "who": who[:-2]} | ({key: value} if found else {})
        marks = {',"sums":', ',"when":"', '","who":"', asked, found} - {""}
        if (
            _is_plain(plain)
            and all(body.get(each) == text for each, text in said.items())
            and all(row.body.count(each) == 1 for each in marks)
        ):
            if len(self._known) >= MAX_FRAMES:
                self._known.clear()
            kept = body.keys() - said.keys() - {"sums", "what"}
            self._known[outer] = middle, {each: body[each] for each in kept}
        return body, encoding.canonical_json(body.get("sums"))


def _is_plain(text: str) -> bool:
    """Whether a text in quotes is its own spelling in JSON."""
    return text.isascii() and text.isprintable() and not ('"' in text or "\\" in text)


@lru_cache(maxsize=MAX_FRAMES)
def _is_spelled(text: str) -> bool:
    """Whether this is JSON in one spelling."""
    try:
        return encoding.canonical_json(json.loads(text)) == text
    except (WhosinError, ValueError, RecursionError):
        return False


def entry_values(entry: Entry) -> dict[str, object]:
    """An entry as a row."""
    return {**vars(entry), "body": encoding.canonical_json(entry.body)}


def read_history(connection: Any, dataset: str) -> list[Entry]:
    """All entries of a dataset, oldest first."""
    query = select_sql(ENTRIES_TABLE, "dataset = :dataset ORDER BY number")
    found = execute_sql(connection, query, dataset=dataset)
    return [read_entry(EntryRow._make(row)) for row in found]


_MAX_ROWS_AT_ONCE = 2_000


def stream_history(connection: Any, dataset: str) -> Generator[tuple[Any, object]]:
    """The rows of all entries of a dataset, oldest first and some at a time, each with the stored
    answer where it is the entry of one."""
    listed = ", ".join(f"e.{name}" for name in TABLE_COLUMNS[ENTRIES_TABLE])
    query = (
        f"SELECT {listed}, a.answer FROM {ENTRIES_TABLE} e LEFT JOIN {ANSWERS_TABLE} a "
        "ON e.kind = 'answer' AND a.dataset = e.dataset AND a.request = e.request "
        "WHERE e.dataset = :dataset ORDER BY e.number"
    )
    if isinstance(connection, sqlite3.Connection):
        found = connection.execute(query, {"dataset": dataset})
    else:
        found = connection.cursor("history")
        found.itersize = _MAX_ROWS_AT_ONCE
        found.execute(server_text(query), {"dataset": dataset})
    with closing(found):
        for *entry, answer in found:
            yield EntryRow._make(entry), answer


def find_stray_answer(connection: Any, dataset: str, kind: str) -> str | None:
    """A request with a stored answer and no entry of this kind; None where each has one."""
    query = (
        f"SELECT a.request FROM {ANSWERS_TABLE} a WHERE a.dataset = :dataset AND NOT EXISTS "
        f"(SELECT 1 FROM {ENTRIES_TABLE} e WHERE e.dataset = a.dataset AND e.request = a.request "
        "AND e.kind = :kind) LIMIT 1"
    )
    row = execute_sql(connection, query, dataset=dataset, kind=kind).fetchone()
    return None if row is None else str(row[0])


def unanswered_requests(connection: Any, dataset: str) -> list[str]:
    """The requests that were paid for and have no stored answer, oldest first."""
    query = (
        f"SELECT e.request FROM {ENTRIES_TABLE} e WHERE e.dataset = :dataset AND e.kind = 'debit' "
        f"AND NOT EXISTS (SELECT 1 FROM {ANSWERS_TABLE} a WHERE a.dataset = e.dataset "
        "AND a.request = e.request) ORDER BY e.number"
    )
    return [str(request) for (request,) in execute_sql(connection, query, dataset=dataset)]


def find_debit(connection: Any, dataset: str, request: str) -> Entry | None:
    """The debit of a request, if there is one."""
    mine = "dataset = :dataset AND request = :request AND kind = 'debit'"
    query = select_sql(ENTRIES_TABLE, mine)
    row = execute_sql(connection, query, dataset=dataset, request=request).fetchone()
    return None if row is None else read_entry(EntryRow._make(row))


def find_requests(
    connection: Any, dataset: str, prefix: str, *, answered: bool, who: str | None = None
) -> set[str]:
    """The requests of debits, or of answers, that begin with a text; those that one person paid
    for, or all. Found through an index: no request contains the last code point, which is not
    printable, and what begins with a text sorts between it and it with that code point."""
    mine = "dataset = :dataset AND kind = :kind AND request >= :first AND request < :last"
    named = {"dataset": dataset, "first": prefix, "last": prefix + chr(sys.maxunicode)}

    def find(kind: str) -> Iterator[Any]:
        rows = execute_sql(connection, select_sql(ENTRIES_TABLE, mine), **named, kind=kind)
        return map(EntryRow._make, rows)

    found = {str(row.request) for row in find("answer" if answered else "debit")}
    if who is None:
        return found
    paid = map(read_entry, find("debit"))
    return found & {str(entry.request) for entry in paid if entry.body.get("who") == who}


def part_levels(connection: Any, dataset: str, most: int = -1) -> dict[str, PartLevel]:
    """What parts have come to, the largest ε first; all of them by default."""
    if not most:
        return {}
    first = "ORDER BY epoch DESC, epsilon DESC, rho DESC, part"
    limit = "" if most < 0 else f" LIMIT {most}"
    query = select_sql(PARTS_TABLE, f"dataset = :dataset {first}{limit}", PART_COLUMNS)
    return dict(map(read_level, execute_sql(connection, query, dataset=dataset).fetchall()))


def read_levels(connection: Any, dataset: str) -> Iterator[tuple[str, PartLevel]]:
    """Each part with what it has come to, in no order."""
    query = select_sql(PARTS_TABLE, "dataset = :dataset", PART_COLUMNS)
    return map(read_level, execute_sql(connection, query, dataset=dataset))


def part_level(connection: Any, dataset: str, part: str | None) -> PartLevel:
    """What one part has come to."""
    query = select_sql(PARTS_TABLE, "dataset = :dataset AND part = :part", PART_COLUMNS)
    row = None
    if part is not None:
        row = execute_sql(connection, query, dataset=dataset, part=part).fetchone()
    return PartLevel() if row is None else read_level(row)[1]


PART_COLUMNS = ("part", "epoch", *LEVEL_COLUMNS)


def read_level(row: Sequence[Any]) -> tuple[str, PartLevel]:
    """A part's name and level, by its row."""
    part, epoch, *numbers = row
    return str(part), PartLevel(Cost(*numbers[:3]), Cost(*numbers[3:]), epoch)


def level_values(dataset: str, part: str, level: PartLevel) -> dict[str, object]:
    """A part's level as a row."""
    numbers = (*vars(level.own).values(), *vars(level.entering).values())
    named = {"dataset": dataset, "part": part, "epoch": level.epoch}
    return {**named, **dict(zip(LEVEL_COLUMNS, numbers, strict=True))}


def stored_answers(connection: Any, dataset: str, prefix: str = "") -> dict[str, str]:
    """The stored answers by request; of those that begin with a text."""
    mine, named = "dataset = :dataset", {"dataset": dataset}
    if prefix:
        mine += " AND request >= :first AND request < :last"
        named |= {"first": prefix, "last": prefix + chr(sys.maxunicode)}
    query = select_sql(ANSWERS_TABLE, mine, ("request", "answer"))
    return dict(execute_sql(connection, query, **named).fetchall())


@lru_cache(maxsize=256)
def _read_plan(text: str) -> Plan:
    """The plan as it was registered.

    `Plan.from_dict` would plan again and refuse what a later version plans differently; here the
    promise that was made is the one that is kept.
    """
    data = json.loads(text)
    query, noise = data["query"], data["noise"]
    known = {each.name for each in fields(Plan)}
    values = {key: value for key, value in data.items() if key in known}
    values |= {
        "target": decode_object(data["target"], "target"),
        "family": decode_object(data["family"], "family"),
        "query": None if query is None else decode_object(query, "query"),
        "noise": None if noise is None else PlannedNoise(**noise),
        "gamma": float(data["gamma"]),
        "theorems": tuple(data["theorems"]),
        "fallback": tuple(
            Fallback(**{**each, "gamma": float(each["gamma"])}) for each in data["fallback"]
        ),
    }
    plan = Plan(**values)
    if encoding.canonical_json(plan.to_dict()) != text:
        raise ValueError("another plan")
    return plan


SUM_COLUMNS = {
    "debits": "debits",
    "epsilon": "spent_epsilon",
    "rho": "spent_rho",
    "delta": "spent_delta",
    "state": "state",
}
"""Keys of an entry's sums, and the columns that repeat them."""


def running_sums(row: Any) -> dict[str, object]:
    """The sums of a dataset, by its row."""
    accounts = None if row.accounts is None else encoding.digest_text(row.accounts)
    sums = {key: getattr(row, column) for key, column in SUM_COLUMNS.items()}
    return {**sums, "accounts": accounts}


def terms_digest(row: Any) -> str:
    """The digest of what is fixed about a dataset. PostgreSQL computes the same (`transaction`)."""
    numbers = f"{row.relation} {row.alone} {row.epsilon} {row.rho} {row.delta}"
    registration = "none" if row.registration is None else f"registered {row.registration}"
    return encoding.digest_text(
        f"{numbers}\n{row.plan}\n{registration}\n{row.schedule or 'always'}"
    )


def next_entry(
    row: Any, kind: str, request: str | None, body: dict[str, Any], **changes: object
) -> tuple[Entry, Any]:
    """The entry that comes next, and the row after it.

    Args:
        row: the dataset before the entry, as a named tuple.
        changes: what the entry changes about it.
    """
    after = row._replace(**changes)
    full = {**body, "sums": running_sums(after), "terms": terms_digest(after)}
    entry = Entry(row.name, row.entries + 1, kind, request, full, "")
    entry = replace(entry, head=encoding.link_digest(row.head, entry.linked()))
    return entry, after._replace(entries=entry.number, head=entry.head, last=body["when"])


def check_row(row: Any, last: Sequence[Entry]) -> None:
    """See that a dataset's row is what its last entry says.

    Args:
        last: the last two entries, or the only one, newest first.
    """
    end = last[0] if last else None
    if end is None or (end.number, end.head) != (row.entries, row.head):
        raise BrokenHistory(row.name, "its end does not fit the dataset's head")
    before = last[1].head if len(last) > 1 else encoding.FIRST_HEAD
    if end.number != 1 + (last[1].number if len(last) > 1 else 0):
        raise BrokenHistory(row.name, f"entry {end.number - 1} is missing")
    if encoding.link_digest(before, end.linked()) != end.head:
        raise BrokenHistory(row.name, f"entry {end.number} was changed")
    if end.body.get("sums") != running_sums(row):
        raise BrokenHistory(row.name, "its sums are not those of its last entry")
    if end.body.get("terms") != terms_digest(row):
        raise BrokenHistory(row.name, "its budget, plan or table is not that of its last entry")
    if end.body.get("when") != row.last:
        raise BrokenHistory(row.name, "its time is not that of its last entry")
