"""One writer's transaction on a dataset in two round trips, and the functions of a PostgreSQL
ledger.

`Transaction.commit` is where a debit becomes durable: it returns when the disk has the entry, the
new sums and the answer, and otherwise nothing happened. `begin` waits until no other writer has the
dataset and only then looks, each statement at the state of its own moment, so that what the last
writer committed is seen. On a server statements travel together (psycopg's pipeline mode), since
waiting for each costs more than the work.

On PostgreSQL its functions are the only way to write. Nobody but the owner of the tables may change
them. Each function runs with the owner's rights, locks the dataset, computes the new sums itself
from the entry's cost, sees that the budget holds, that the entry says these sums and these terms,
and that its digest continues the chain; only then does it write. So whoever may only debit cannot
set a sum back, raise a budget or forget an entry, whatever program is used. It trusts registrars to
have computed a budget from its plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

from whosin.ledger import encoding
from whosin.ledger import entries as ledger_entries
from whosin.ledger.budget import PartLevel
from whosin.ledger.entries import (
    ANSWERS_TABLE,
    DATASETS_TABLE,
    ENTRIES_TABLE,
    PART_COLUMNS,
    PARTS_TABLE,
    Entry,
    EntryRow,
    insert_sql,
    read_entry,
    read_level,
    select_sql,
    server_text,
)

_COLUMN_TYPES = {"alone": "integer", "epsilon": "bigint", "rho": "bigint", "delta": "bigint"}
"""The types of the arguments that are not text."""
FUNCTION_ARGUMENTS = {
    "lock": ("dataset",),
    "debit": ("dataset", "request", "body", "head", "accounts"),
    "answer": ("dataset", "request", "body", "head", "answer"),
    "suspend": ("dataset", "body", "head"),
    "resume": ("dataset", "body", "head", "accounts"),
    "close": ("dataset", "body", "head"),
    "amend": ("dataset", "body", "head", "registration", "accounts"),
    "quota": ("dataset", "body", "head", "accounts"),
    "register": (
        *("dataset", "relation", *_COLUMN_TYPES, "plan", "registration", "schedule", "body"),
        "head",
    ),
}
"""What a client may call, if it was granted: whosin_lock, whosin_debit and so on, and with what."""

_FIND_DATASET = """
  SELECT * INTO d FROM whosin_datasets WHERE name = p_dataset FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'there is no such dataset';
  END IF;
"""


def _changing_function(kind: str, change: str, request: str = "NULL") -> str:
    """A function that changes a dataset, found and locked as d, and appends an entry."""
    return f"""
DECLARE
  d whosin_datasets;
BEGIN
{_FIND_DATASET}{change}  PERFORM whosin_write(d, '{kind}', {request}, p_body, p_head);
END
"""


FUNCTION_BODIES = {
    "json": """
-- A text as Python writes it in JSON: everything beyond ASCII escaped.
DECLARE
  found text := ''; letter text; code integer;
BEGIN
  IF p_text ~ '^[a-zA-Z0-9 _./:-]*$' THEN
    RETURN '"' || p_text || '"';
  END IF;
  FOREACH letter IN ARRAY regexp_split_to_array(p_text, '') LOOP
    code := CASE WHEN letter = '' THEN 32 ELSE ascii(letter) END;
    found := found || CASE
      WHEN letter IN ('"', '\\') THEN '\\' || letter
      WHEN code BETWEEN 32 AND 126 THEN letter
      WHEN code < 65536 THEN '\\u' || lpad(to_hex(code), 4, '0')
      ELSE '\\u' || to_hex(55296 + ((code - 65536) >> 10))
        || '\\u' || to_hex(56320 + ((code - 65536) & 1023))
    END;
  END LOOP;
  RETURN '"' || found || '"';
END
""",
    "digest": """
BEGIN
  RETURN encode(sha256(convert_to(p_text, 'UTF8')), 'hex');
END
""",
    "write": """
-- Append an entry and repeat its sums: d is the dataset as it will be, but for the chain.
DECLARE
  said jsonb := p_body::jsonb;
  linked text;
  moment timestamptz := said->>'when';
BEGIN
  -- A suspension must not wait for a clock, and is dated like the last entry where that is later.
  IF NOT coalesce(moment BETWEEN clock_timestamp() - interval '10 minutes'
        AND clock_timestamp() + interval '1 second'
        OR (p_kind = 'suspended' AND said->>'when' = d.last), false)
      OR (p_kind <> 'resumed' AND whosin_behind(d, said->>'when')) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'the time of the entry is wrong';
  END IF;
  -- Only who may keep quotas may ask for others.
  IF said->>'who' IS DISTINCT FROM session_user AND NOT has_function_privilege(session_user,
      'whosin_quota(text, text, text, text)', 'EXECUTE') THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'the entry is in another name';
  END IF;
  IF said->'sums' IS DISTINCT FROM jsonb_build_object('debits', d.debits, 'state', d.state,
      'epsilon', d.spent_epsilon, 'rho', d.spent_rho, 'delta', d.spent_delta,
      'accounts', whosin_digest(d.accounts)) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'the sums of the entry are wrong';
  END IF;
  IF said->>'terms' IS DISTINCT FROM whosin_digest(
      concat_ws(' ', d.relation, d.alone, d.epsilon, d.rho, d.delta)
      || E'\\n' || d.plan || E'\\n' || coalesce('registered ' || d.registration, 'none')
      || E'\\n' || coalesce(d.schedule, 'always')) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'the terms of the entry are wrong';
  END IF;
  linked := '{"body":' || p_body || ',"dataset":' || whosin_json(d.name)
    || ',"kind":"' || p_kind || '","number":' || d.entries + 1
    || ',"request":' || coalesce(whosin_json(p_request), 'null') || '}';
  IF p_head IS DISTINCT FROM whosin_digest(d.head || E'\\n' || linked) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'the entry does not continue the chain';
  END IF;
  INSERT INTO whosin_entries (dataset, number, kind, request, body, head)
    VALUES (d.name, d.entries + 1, p_kind, p_request, p_body, p_head);
  UPDATE whosin_datasets SET state = d.state, spent_epsilon = d.spent_epsilon,
    spent_rho = d.spent_rho, spent_delta = d.spent_delta, debits = d.debits,
    entries = d.entries + 1, head = p_head, last = said->>'when', registration = d.registration,
    accounts = d.accounts
    WHERE name = d.name;
END
""",
    "behind": """
-- Whether dates decide, and this moment is before the last entry.
BEGIN
  RETURN d.last <> '' AND p_when::timestamptz < d.last::timestamptz - interval '1 minute'
    AND (d.schedule IS NOT NULL OR d.accounts::jsonb->'quotas' <> '{}');
END
""",
    "lock": """
BEGIN
  PERFORM 1 FROM whosin_datasets WHERE name = p_dataset FOR UPDATE;
END
""",
    "debit": f"""
DECLARE
  infinite CONSTANT bigint := {encoding.INFINITE_UNITS};
  d whosin_datasets;
  said jsonb := p_body::jsonb;
  cost jsonb;
  spent bigint[];
  accounts jsonb;
  by_itself boolean := coalesce((said->>'alone')::boolean, false);
  last_one boolean;
BEGIN
{_FIND_DATASET}
  last_one := by_itself
    OR (d.alone = 1 AND (said->'after' IS NULL OR d.registration IS NOT NULL));
  cost := said->'costs'->d.relation;
  spent := ARRAY[coalesce((cost->>'epsilon')::bigint, infinite),
    coalesce((cost->>'rho')::bigint, infinite), coalesce((cost->>'delta')::bigint, 0)];
  IF d.state <> 'open' OR p_request IS NULL
      OR NOT (0 <= ALL (spent) AND infinite >= ALL (spent))
      OR (d.debits > 0 AND last_one) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this debit is not allowed';
  END IF;
  IF coalesce(d.accounts, d.schedule, said->>'part', said->>'quota') IS NULL THEN
    d.spent_epsilon := least(infinite - spent[1], d.spent_epsilon) + spent[1];
    d.spent_rho := least(infinite - spent[2], d.spent_rho) + spent[2];
    d.spent_delta := least(infinite - spent[3], d.spent_delta) + spent[3];
  ELSE
    accounts := whosin_pay(d, said, to_jsonb(spent));
    d := whosin_settle(d, accounts, p_accounts, said->>'when');
  END IF;
  IF NOT (by_itself AND cost IS NULL) AND NOT (d.spent_delta <= d.delta
      AND (d.spent_epsilon <= d.epsilon OR (d.rho > 0 AND d.spent_rho <= d.rho))) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this debit is more than the budget';
  END IF;
  d.debits := d.debits + 1;
  IF last_one THEN
    d.state := 'complete';
  END IF;
  PERFORM whosin_write(d, 'debit', p_request, p_body, p_head);
END
""",
    "answer": _changing_function(
        "answer",
        """
  PERFORM 1 FROM whosin_entries
    WHERE dataset = p_dataset AND request = p_request AND kind = 'debit';
  IF NOT FOUND OR p_body::jsonb->>'digest' IS DISTINCT FROM whosin_digest(p_answer) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this answer was not paid for';
  END IF;
  IF left(d.state, 9) = 'suspended' THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'it is suspended';
  END IF;
  INSERT INTO whosin_answers (dataset, request, answer) VALUES (p_dataset, p_request, p_answer);
""",
        "p_request",
    ),
    "suspend": _changing_function(
        "suspended",
        """
  d.state := CASE WHEN d.state = 'open' THEN 'suspended'
    WHEN left(d.state, 9) = 'suspended' THEN d.state ELSE 'suspended ' || d.state END;
""",
    ),
    "resume": _changing_function(
        "resumed",
        """
  IF whosin_behind(d, p_body::jsonb->>'when') THEN
    d := whosin_settle(d, whosin_accounts(d) || '{"period": "", "begun": [0, 0, 0]}', p_accounts,
      NULL);
  ELSIF left(d.state, 9) <> 'suspended' THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'it is not suspended';
  END IF;
  d.state := CASE WHEN d.state = 'suspended' THEN 'open'
    WHEN left(d.state, 9) = 'suspended' THEN substr(d.state, 11) ELSE d.state END;
""",
    ),
    "close": _changing_function(
        "closed",
        """
  IF right(d.state, 6) = 'closed' THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'it is closed already';
  END IF;
  d.state := CASE WHEN left(d.state, 9) = 'suspended' THEN 'suspended closed' ELSE 'closed' END;
""",
    ),
    "amend": _changing_function(
        "amended",
        """
  d.registration := p_registration;
  d := whosin_settle(d, whosin_begin_parts(whosin_accounts(d)), p_accounts, NULL);
""",
    ),
    "quota": _changing_function(
        "quota",
        """
  IF coalesce(p_accounts::jsonb - 'quotas', whosin_accounts(d) - 'quotas')
      <> whosin_accounts(d) - 'quotas' OR d.state <> 'open' THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'a quota changes nothing that was spent';
  END IF;
  d := whosin_settle(d, coalesce(p_accounts::jsonb, whosin_accounts(d) - 'quotas'
    || '{"quotas": {}}'), p_accounts, p_body::jsonb->>'when');
""",
    ),
    "accounts": """
-- Where a dataset has spent what.
BEGIN
  RETURN coalesce(d.accounts::jsonb, jsonb_build_object(
    'everyone', jsonb_build_array(d.spent_epsilon, d.spent_rho, d.spent_delta),
    'largest', '[0, 0, 0]'::jsonb, 'first', '[0, 0, 0]'::jsonb, 'second', '[0, 0, 0]'::jsonb,
    'begun', '[0, 0, 0]'::jsonb, 'epoch', 0, 'period', '', 'quotas', '{}'::jsonb));
END
""",
    "each": f"""
-- Two costs, currency by currency: their sum (+), or the second where it is infinite (^); what is
-- left (-); the larger (>) or the smaller (<).
BEGIN
  RETURN (SELECT jsonb_agg(CASE p_how
      WHEN '+' THEN least({encoding.INFINITE_UNITS}, one.value::numeric + other.value::numeric)
      WHEN '^' THEN CASE WHEN one.value::numeric + other.value::numeric < {encoding.INFINITE_UNITS}
        THEN one.value::numeric + other.value::numeric ELSE other.value::numeric END
      WHEN '-' THEN greatest(0, one.value::numeric - other.value::numeric)
      WHEN '>' THEN greatest(one.value::numeric, other.value::numeric)
      ELSE least(one.value::numeric, other.value::numeric) END ORDER BY one.ordinality)
    FROM jsonb_array_elements_text(p_one) WITH ORDINALITY AS one
    JOIN jsonb_array_elements_text(p_other) WITH ORDINALITY AS other USING (ordinality));
END
""",
    "within": """
BEGIN
  RETURN (p_one->>2)::numeric <= (p_other->>2)::numeric
    AND ((p_one->>0)::numeric <= (p_other->>0)::numeric
      OR ((p_other->>1)::numeric > 0 AND (p_one->>1)::numeric <= (p_other->>1)::numeric));
END
""",
    "total": """
BEGIN
  RETURN whosin_each('+', p_accounts->'everyone', whosin_each('>', p_accounts->'largest',
    whosin_each('+', p_accounts->'first', p_accounts->'second')));
END
""",
    "begin_parts": """
BEGIN
  IF p_accounts->'largest' = '[0, 0, 0]' AND p_accounts->'first' = '[0, 0, 0]' THEN
    RETURN p_accounts;
  END IF;
  RETURN p_accounts || jsonb_build_object('everyone', whosin_total(p_accounts),
    'largest', '[0, 0, 0]'::jsonb, 'first', '[0, 0, 0]'::jsonb, 'second', '[0, 0, 0]'::jsonb,
    'epoch', (p_accounts->>'epoch')::integer + 1);
END
""",
    "pay": f"""
-- The accounts after a debit, and the level of its part, which is kept.
DECLARE
  accounts jsonb := whosin_accounts(d);
  day text := left(said->>'when', 10);
  quota text := said->>'quota';
  kept jsonb := accounts->'quotas'->quota;
  period jsonb;
  before whosin_parts;
  own jsonb := '[0, 0, 0]';
  entering jsonb := '[0, 0, 0]';
  cost jsonb := said->'costs'->'add-remove';
  paid jsonb;
  first bigint;
BEGIN
  IF d.schedule IS NOT NULL AND (d.schedule::jsonb->>'lapses')::boolean THEN
    SELECT value INTO period FROM jsonb_array_elements(d.schedule::jsonb->'periods')
      WHERE value->>0 <= day AND day < value->>1;
    IF FOUND AND period->>0 > accounts->>'period' THEN
      accounts := accounts || jsonb_build_object('period', period->>0, 'begun',
        whosin_total(accounts));
    END IF;
  END IF;
  IF quota IS DISTINCT FROM (SELECT key FROM jsonb_each(accounts->'quotas')
      WHERE value->'members' ? (said->>'who') AND (value->>'until' = '' OR day <= value->>'until')
      ORDER BY key COLLATE "C" LIMIT 1) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this debit is paid from a wrong quota';
  END IF;
  IF quota IS NOT NULL THEN
    paid := whosin_each('+', kept->'spent', p_cost);
    IF NOT whosin_within(paid, kept->'limit') THEN
      RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this debit is more than its quota';
    END IF;
    accounts := jsonb_set(accounts, ARRAY['quotas', quota, 'spent'], paid);
  END IF;
  IF said->>'part' IS NULL THEN
    RETURN accounts || jsonb_build_object('everyone',
      whosin_each('+', accounts->'everyone', p_cost));
  END IF;
  IF d.registration::jsonb->'registration'->'part' IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this dataset has no parts';
  END IF;
  SELECT * INTO before FROM whosin_parts
    WHERE dataset = d.name AND part = said->>'part'
      AND epoch = (accounts->>'epoch')::integer;
  IF FOUND THEN
    own := jsonb_build_array(before.epsilon, before.rho, before.delta);
    entering := jsonb_build_array(before.in_epsilon, before.in_rho, before.in_delta);
  END IF;
  own := whosin_each('+', own, p_cost);
  paid := whosin_each('+', entering, jsonb_build_array(
    coalesce((cost->>'epsilon')::bigint, {encoding.INFINITE_UNITS}),
    coalesce((cost->>'rho')::bigint, {encoding.INFINITE_UNITS}),
    coalesce((cost->>'delta')::bigint, 0)));
  accounts := jsonb_set(accounts, '{{largest}}', whosin_each('>', accounts->'largest', own));
  IF d.relation = 'replace' THEN
    FOR each IN 0..2 LOOP
      first := accounts->'first'->>each;
      IF entering->each = accounts->'first'->each THEN
        accounts := jsonb_set(accounts, ARRAY['first', each::text], paid->each);
      ELSE
        accounts := jsonb_set(accounts, ARRAY['first', each::text],
          to_jsonb(greatest(first, (paid->>each)::bigint)));
        accounts := jsonb_set(accounts, ARRAY['second', each::text], to_jsonb(least(first,
          greatest((accounts->'second'->>each)::bigint, (paid->>each)::bigint))));
      END IF;
    END LOOP;
  END IF;
  INSERT INTO whosin_parts VALUES (d.name, said->>'part', (accounts->>'epoch')::integer,
      (own->>0)::bigint, (own->>1)::bigint, (own->>2)::bigint,
      (paid->>0)::bigint, (paid->>1)::bigint, (paid->>2)::bigint)
    ON CONFLICT (dataset, part) DO UPDATE SET epoch = excluded.epoch, epsilon = excluded.epsilon,
      rho = excluded.rho, delta = excluded.delta, in_epsilon = excluded.in_epsilon,
      in_rho = excluded.in_rho, in_delta = excluded.in_delta;
  RETURN accounts;
END
""",
    "settle": """
-- A dataset with these accounts, once they were seen to be within its budget, its schedule and what
-- quotas keep, and to be the ones that the client wrote.
DECLARE
  total jsonb := whosin_total(p_accounts);
  day text := left(p_when, 10);
  kept jsonb := '[0, 0, 0]';
  ceiling jsonb := '[0, 0, 0]';
  each jsonb;
  known boolean := false;
  lapses boolean := coalesce((d.schedule::jsonb->>'lapses')::boolean, false);
BEGIN
  IF p_when IS NOT NULL THEN
    FOR each IN SELECT value FROM jsonb_each(p_accounts->'quotas') LOOP
      IF each->>'until' = '' OR day <= each->>'until' THEN
        kept := whosin_each('+', kept, whosin_each('-', each->'limit', each->'spent'));
      END IF;
    END LOOP;
    IF NOT whosin_within(whosin_each('+', total, kept),
        jsonb_build_array(d.epsilon, d.rho, d.delta)) THEN
      RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this is more than the budget';
    END IF;
  END IF;
  IF p_when IS NOT NULL AND d.schedule IS NOT NULL
      AND total <> jsonb_build_array(d.spent_epsilon, d.spent_rho, d.spent_delta) THEN
    FOR each IN SELECT value FROM jsonb_array_elements(d.schedule::jsonb->'periods') LOOP
      known := known OR (each->>0 <= day AND day < each->>1);
      IF (lapses AND each->>0 = p_accounts->>'period') OR (NOT lapses AND each->>0 <= day) THEN
        ceiling := whosin_each('+', ceiling, jsonb_build_array(each->2, each->3, each->4));
      END IF;
    END LOOP;
    IF NOT known OR NOT whosin_within(total,
        whosin_each('^', p_accounts->'begun', ceiling)) THEN
      RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this is more than the period allows';
    END IF;
  END IF;
  d.spent_epsilon := total->>0;
  d.spent_rho := total->>1;
  d.spent_delta := total->>2;
  d.accounts := NULL;
  IF p_accounts || '{"everyone": 0}' = whosin_accounts(d) || '{"everyone": 0}' THEN
    p_text := NULL;
  ELSIF p_text IS NULL OR p_text::jsonb <> p_accounts THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'the accounts of the entry are wrong';
  END IF;
  d.accounts := p_text;
  RETURN d;
END
""",
    "register": f"""
-- Whether the dataset is new.
DECLARE
  d whosin_datasets;
BEGIN
  INSERT INTO whosin_datasets (name, state, relation, alone, epsilon, rho, delta, spent_epsilon,
      spent_rho, spent_delta, debits, entries, head, last, plan, registration, schedule)
    VALUES (p_dataset, 'open', p_relation, p_alone, p_epsilon, p_rho, p_delta, 0, 0, 0, 0, 0,
      repeat('0', 64), '', p_plan, p_registration, p_schedule) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
{_FIND_DATASET}
  PERFORM whosin_write(d, 'registered', NULL, p_body, p_head);
  RETURN true;
END
""",
}
"""The text of each function, by what it does."""
_INNER_FUNCTIONS = {
    "json": "p_text text",
    "digest": "p_text text",
    "accounts": "d whosin_datasets",
    "each": "p_how text, p_one jsonb, p_other jsonb",
    "within": "p_one jsonb, p_other jsonb",
    "behind": "d whosin_datasets, p_when text",
    "total": "p_accounts jsonb",
    "begin_parts": "p_accounts jsonb",
    "pay": "d whosin_datasets, said jsonb, p_cost jsonb",
    "settle": "d whosin_datasets, p_accounts jsonb, p_text text, p_when text",
    "write": "d whosin_datasets, p_kind text, p_request text, p_body text, p_head text",
}
"""Functions that only the others call, with their arguments."""
_RETURN_TYPES = {"json": "text", "digest": "text", "register": "boolean"}
_RETURN_TYPES |= dict.fromkeys(("within", "behind"), "boolean")
_RETURN_TYPES |= dict.fromkeys(("accounts", "each", "total", "begin_parts", "pay"), "jsonb")
_RETURN_TYPES["settle"] = "whosin_datasets"


def function_statements(schema: str) -> list[str]:
    """What makes the functions in a schema of the database; nobody else may call them yet."""
    made = []
    for name, body in FUNCTION_BODIES.items():
        taken = FUNCTION_ARGUMENTS.get(name, ())
        listed = ", ".join(f"p_{each} {_COLUMN_TYPES.get(each, 'text')}" for each in taken)
        arguments = listed or _INNER_FUNCTIONS[name]
        kinds = ", ".join(argument.split()[1] for argument in arguments.split(", "))
        returns = _RETURN_TYPES.get(name, "void")
        rights = "SECURITY DEFINER" if name in FUNCTION_ARGUMENTS else "SECURITY INVOKER"
        strict = "IMMUTABLE STRICT" if name in ("json", "digest") else "VOLATILE"
        made.append(
            f"CREATE OR REPLACE FUNCTION whosin_{name}({arguments}) RETURNS {returns} "
            f"LANGUAGE plpgsql {strict} {rights} SET search_path = {schema}, pg_temp "
            f"AS $whosin${body}$whosin$"
        )
        made.append(f"REVOKE ALL ON FUNCTION whosin_{name}({kinds}) FROM PUBLIC")
    return made


_CHANGED_COLUMNS = (
    *(*ledger_entries.SUM_COLUMNS.values(), "entries", "head", "last", "registration"),
    "accounts",
)
_LAST_TWO = f"(SELECT entries - 1 FROM {DATASETS_TABLE} WHERE name = :dataset)"
_NAMED_REQUESTS = "dataset = :dataset AND request IN (SELECT value FROM json_each(:requests))"
_STATEMENTS = {
    "dataset": select_sql(DATASETS_TABLE, "name = :dataset"),
    "last": select_sql(
        ENTRIES_TABLE, f"dataset = :dataset AND number >= {_LAST_TWO} ORDER BY number DESC"
    ),
    "first debit": select_sql(
        ENTRIES_TABLE, "dataset = :dataset AND kind = 'debit' ORDER BY number LIMIT 1"
    ),
    "debits": select_sql(ENTRIES_TABLE, f"{_NAMED_REQUESTS} AND kind = 'debit'"),
    "answers": select_sql(ANSWERS_TABLE, _NAMED_REQUESTS, ("request", "answer")),
    # A server set to answer before its disk does is told not to, for this transaction.
    "time": "SELECT clock_timestamp(), set_config('synchronous_commit', 'on', true)",
    "parts": select_sql(PARTS_TABLE, _NAMED_REQUESTS.replace("request ", "part ", 1), PART_COLUMNS),
    "change part": insert_sql(PARTS_TABLE).replace("INSERT", "INSERT OR REPLACE", 1),
    "add entry": insert_sql(ENTRIES_TABLE),
    "add answer": insert_sql(ANSWERS_TABLE),
    "change dataset": f"UPDATE {DATASETS_TABLE} SET "
    + ", ".join(f"{name} = :{name}" for name in _CHANGED_COLUMNS)
    + " WHERE name = :dataset",
    # On a server the same is done by functions that check it.
    **{
        f"call {name}": f"SELECT whosin_{name}({', '.join(f':{each}' for each in arguments)})"
        for name, arguments in FUNCTION_ARGUMENTS.items()
    },
}
"""Statements with named values."""
_FUNCTION_NAMES = {"debit": "debit", "answer": "answer", "closed": "close", "amended": "amend"}
_FUNCTION_NAMES |= {"suspended": "suspend", "resumed": "resume", "quota": "quota"}

Statement = tuple[str, Mapping[str, object]]


class Transaction:
    """A transaction that holds a dataset.

    Attributes:
        connection: that it holds it with.
        row: the dataset's row; None where there is no such dataset.
        last: its last two entries, newest first.
        debits: the debits of the requests that were paid for before.
        answers: the stored answers of the requests.
        levels: those of the parts that were asked about and had been paid for before.
        time: of this turn: the server's where there is one, since machines' clocks differ.
        after: the dataset's row after a commit.
        settles: whether a file has to be whole without its log before this turn ends: where answers
            were found or stored, and after entries that have no answer. A debit has one, later.
    """

    def __init__(self, connection: Any, *, server: bool) -> None:
        self.connection, self._server = connection, server
        self.row: Any = None
        self.last: list[Entry] = []
        self.debits: dict[str, Entry] = {}
        self.answers: dict[str, str] = {}
        self.levels: dict[str, PartLevel] = {}
        self.time: Any = None
        self.after: Any = None
        self.settles = False

    def begin(self, dataset: str, requests: Sequence[str] = (), parts: Sequence[str] = ()) -> None:
        """Lock the dataset, on a server, and look at it, at the requests and at parts."""
        asked = {"dataset": dataset}
        statements: list[Statement] = []  # a file's writer has its turn already
        if self._server:
            statements = [
                ("BEGIN ISOLATION LEVEL READ COMMITTED", {}),
                (self._text("call lock"), asked),
                (self._text("time"), {}),
            ]
        first = len(statements)
        statements += [(self._text("dataset"), asked), (self._text("last"), asked)]
        if requests or parts:  # all at once, however many they are
            listed, called = (
                list(each) if self._server else json.dumps(list(each)) for each in (requests, parts)
            )
            named = {**asked, "requests": listed}
            statements += [(self._text("debits"), named), (self._text("answers"), named)]
            if parts:
                statements.append((self._text("parts"), {**asked, "requests": called}))
        results = self._run(statements)
        self.time = results[first - 1][0][0] if self._server else None
        result, last, *rest = results[first:]
        self.row = ledger_entries.DatasetRow._make(result[0]) if result else None
        self.last = [_read_row(row) for row in last]
        if rest:
            debits, answers, *levels = rest
            self.levels = dict(map(read_level, *levels)) if levels else {}
            found = {entry.request: entry for entry in map(_read_row, debits)}
            self.debits = {each: found[each] for each in requests if each in found}
            self.answers, self.settles = dict(answers), bool(answers)

    def commit(
        self,
        row: Any,
        *made: Entry,
        answers: Mapping[str, str] | None = None,
        accounts: Sequence[str | None] = (),
        levels: Mapping[str, PartLevel] | None = None,
        settle: bool = True,
    ) -> None:
        """Append entries, with the answers that they are about; all of it is on disk then.

        Args:
            row: the dataset's row after them.
            answers: by request.
            accounts: those after each entry, where there are several; otherwise the row's.
            levels: of the parts that they were paid from.
            settle: whether something may be shown after it: see `settles`.
        """
        statements: list[Statement] = []
        told = answers or {}
        if self._server:
            for each, after in zip(made, accounts or [row.accounts] * len(made), strict=True):
                values = {
                    **ledger_entries.entry_values(each),
                    "accounts": after,
                    "answer": told.get(str(each.request)),
                    "registration": row.registration,
                }
                statements.append((self._text(f"call {_FUNCTION_NAMES[each.kind]}"), values))
        else:
            for request, answer in told.items():
                values = {"dataset": row.name, "request": request, "answer": answer}
                statements.append((self._text("add answer"), values))
            statements += [
                (self._text("add entry"), ledger_entries.entry_values(each)) for each in made
            ]
            for part, level in (levels or {}).items():
                values = ledger_entries.level_values(row.name, part, level)
                statements.append((self._text("change part"), values))
            changed = {name: getattr(row, name) for name in _CHANGED_COLUMNS}
            statements.append((self._text("change dataset"), {**changed, "dataset": row.name}))
        self._run([*statements, ("COMMIT", {})])
        self.after, self.settles = row, settle or self.settles

    def first_debit(self) -> Entry:
        """The oldest debit of a dataset that has some."""
        ((row,),) = self._run([(self._text("first debit"), {"dataset": self.row.name})])
        return _read_row(row)

    def end(self) -> None:
        """Let go of the dataset, where nothing had to be written."""
        if self.after is None:
            self._run([("COMMIT", {})])

    def _text(self, name: str) -> str:
        return statement_text(name, self._server)

    def _run(self, statements: Iterable[Statement]) -> list[list[tuple[Any, ...]]]:
        failed: Exception | None = None
        cursors = []
        try:
            with self.connection.pipeline() if self._server and _pipelines() else nullcontext():
                try:
                    cursors = [self.connection.execute(*each) for each in statements]
                except Exception as error:  # raised below: a pipeline that it leaves logs a warning
                    failed = error
        except Exception as error:  # the statements after the first that failed fail too
            failed = failed or error
        if failed is not None:
            raise failed
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _read_row(row: Any) -> Entry:
    return read_entry(EntryRow._make(row))


@cache
def statement_text(name: str, server: bool) -> str:
    """A statement by its name, as a driver reads it."""
    if not server:
        return _STATEMENTS[name]
    listed = "IN (SELECT value FROM json_each(:requests))"
    return server_text(_STATEMENTS[name].replace(listed, "= ANY(:requests)"))


@cache
def _pipelines() -> bool:
    """Whether the driver's library has them (libpq 14); if not, each statement waits."""
    import psycopg

    return psycopg.Pipeline.is_supported()
