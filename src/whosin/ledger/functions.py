"""The functions of a ledger on PostgreSQL: the only way to write, and who may call which.

Contract: nobody but the owner of the tables may change them. Each function runs with the owner's
rights, locks the dataset, computes the new sums itself from the entry's cost, sees that the budget
holds, that the entry says these sums and these terms, and that its digest continues the chain; only
then does it write. So whoever may only debit cannot set a sum back, raise a budget or forget an
entry, whatever program is used. It trusts registrars to have computed a budget from its plan.
"""

from __future__ import annotations

from whosin.ledger import schema, units

_TYPES = {"alone": "integer", "epsilon": "bigint", "rho": "bigint", "delta": "bigint"}
"""The types of the arguments that are not text."""
CALLS = {
    "lock": ("dataset",),
    "debit": ("dataset", "request", "body", "head"),
    "answer": ("dataset", "request", "body", "head", "answer"),
    "halt": ("dataset", "body", "head"),
    "resume": ("dataset", "body", "head"),
    "close": ("dataset", "body", "head"),
    "amend": ("dataset", "body", "head", "binding"),
    "register": ("dataset", "relation", *_TYPES, "plan", "binding", "body", "head"),
}
"""What a client may call, if it was granted: whosin_lock, whosin_debit and so on, and with what."""


_JSON = """
-- A text as Python writes it in JSON: everything beyond ASCII escaped.
DECLARE
  found text := ''; letter text; code integer;
BEGIN
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
"""

_DIGEST = """
BEGIN
  RETURN encode(sha256(convert_to(p_text, 'UTF8')), 'hex');
END
"""

_WRITE = """
-- Append an entry and repeat its sums: d is the dataset as it will be, but for the chain.
DECLARE
  said jsonb := p_body::jsonb;
  linked text;
BEGIN
  IF said->'sums' IS DISTINCT FROM jsonb_build_object('debits', d.debits, 'state', d.state,
      'epsilon', d.spent_epsilon, 'rho', d.spent_rho, 'delta', d.spent_delta) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'the sums of the entry are wrong';
  END IF;
  IF said->>'terms' IS DISTINCT FROM whosin_digest(
      concat_ws(' ', d.relation, d.alone, d.epsilon, d.rho, d.delta)
      || E'\\n' || d.plan || E'\\n' || coalesce('bound ' || d.binding, 'none')) THEN
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
    entries = d.entries + 1, head = p_head, last = said->>'when', binding = d.binding
    WHERE name = d.name;
END
"""

_FIND = """
  SELECT * INTO d FROM whosin_datasets WHERE name = p_dataset FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'there is no such dataset';
  END IF;
"""


def _changing(kind: str, change: str, request: str = "NULL") -> str:
    """A function that changes a dataset, found and locked as d, and appends an entry."""
    return f"""
DECLARE
  d whosin_datasets;
BEGIN
{_FIND}{change}  PERFORM whosin_write(d, '{kind}', {request}, p_body, p_head);
END
"""


_LOCK = """
BEGIN
  PERFORM 1 FROM whosin_datasets WHERE name = p_dataset FOR UPDATE;
END
"""

_DEBIT = f"""
DECLARE
  infinite CONSTANT bigint := {units.INFINITE};
  d whosin_datasets;
  said jsonb := p_body::jsonb;
  cost jsonb;
  spent bigint[];
  by_itself boolean := coalesce((said->>'alone')::boolean, false);
BEGIN
{_FIND}
  cost := said->'costs'->d.relation;
  spent := ARRAY[coalesce((cost->>'epsilon')::bigint, infinite),
    coalesce((cost->>'rho')::bigint, infinite), coalesce((cost->>'delta')::bigint, 0)];
  IF d.state <> 'open' OR p_request IS NULL
      OR NOT (0 <= ALL (spent) AND infinite >= ALL (spent))
      OR (d.debits > 0 AND (by_itself OR d.alone = 1)) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this debit is not allowed';
  END IF;
  d.spent_epsilon := least(infinite - spent[1], d.spent_epsilon) + spent[1];
  d.spent_rho := least(infinite - spent[2], d.spent_rho) + spent[2];
  d.spent_delta := least(infinite - spent[3], d.spent_delta) + spent[3];
  IF NOT (by_itself AND cost IS NULL) AND NOT (d.spent_delta <= d.delta
      AND (d.spent_epsilon <= d.epsilon OR (d.rho > 0 AND d.spent_rho <= d.rho))) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this debit is more than the budget';
  END IF;
  d.debits := d.debits + 1;
  IF by_itself OR d.alone = 1 THEN
    d.state := 'complete';
  END IF;
  PERFORM whosin_write(d, 'debit', p_request, p_body, p_head);
END
"""

_ANSWER = _changing(
    "answer",
    """
  PERFORM 1 FROM whosin_entries
    WHERE dataset = p_dataset AND request = p_request AND kind = 'debit';
  IF NOT FOUND OR p_body::jsonb->>'digest' IS DISTINCT FROM whosin_digest(p_answer) THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'this answer was not paid for';
  END IF;
  IF left(d.state, 6) = 'halted' THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'it is halted';
  END IF;
  INSERT INTO whosin_answers (dataset, request, answer) VALUES (p_dataset, p_request, p_answer);
""",
    "p_request",
)

_CLOSE = _changing(
    "closed",
    """
  IF right(d.state, 6) = 'closed' THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'it is closed already';
  END IF;
  d.state := CASE WHEN left(d.state, 6) = 'halted' THEN 'halted closed' ELSE 'closed' END;
""",
)

_HALT = _changing(
    "halted",
    """
  d.state := CASE WHEN d.state = 'open' THEN 'halted'
    WHEN left(d.state, 6) = 'halted' THEN d.state ELSE 'halted ' || d.state END;
""",
)

_RESUME = _changing(
    "resumed",
    """
  IF left(d.state, 6) <> 'halted' THEN
    RAISE EXCEPTION USING ERRCODE = 'WH001', MESSAGE = 'it is not halted';
  END IF;
  d.state := CASE WHEN d.state = 'halted' THEN 'open' ELSE substr(d.state, 8) END;
""",
)

_AMEND = _changing(
    "amended",
    """
  d.binding := p_binding;
""",
)

_REGISTER = f"""
-- Whether the dataset is new.
DECLARE
  d whosin_datasets;
BEGIN
  INSERT INTO whosin_datasets (name, state, relation, alone, epsilon, rho, delta, spent_epsilon,
      spent_rho, spent_delta, debits, entries, head, last, plan, binding)
    VALUES (p_dataset, 'open', p_relation, p_alone, p_epsilon, p_rho, p_delta, 0, 0, 0, 0, 0,
      repeat('0', 64), '', p_plan, p_binding) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
{_FIND}
  PERFORM whosin_write(d, 'registered', NULL, p_body, p_head);
  RETURN true;
END
"""

_BODIES = {
    "json": _JSON,
    "digest": _DIGEST,
    "write": _WRITE,
    "lock": _LOCK,
    "debit": _DEBIT,
    "answer": _ANSWER,
    "halt": _HALT,
    "resume": _RESUME,
    "close": _CLOSE,
    "amend": _AMEND,
    "register": _REGISTER,
}
_INNER = {"json": ("text",), "digest": ("text",), "write": ("kind", "request", "body", "head")}
"""Functions that only the others call."""
_RETURNS = {"json": "text", "digest": "text", "register": "boolean"}


def sources() -> dict[str, str]:
    """The text of each function, by its name."""
    return {f"whosin_{name}": body for name, body in _BODIES.items()}


def statements(schema: str) -> list[str]:
    """What makes the functions in a schema of the database; nobody else may call them yet."""
    made = []
    for name, body in _BODIES.items():
        taken = CALLS.get(name) or _INNER[name]
        arguments = [f"p_{each} {_TYPES.get(each, 'text')}" for each in taken]
        if name == "write":
            arguments.insert(0, "d whosin_datasets")
        kinds = ", ".join(argument.split()[1] for argument in arguments)
        returns = _RETURNS.get(name, "void")
        rights = "SECURITY DEFINER" if name in CALLS else "SECURITY INVOKER"
        strict = "IMMUTABLE STRICT" if name in ("json", "digest") else "VOLATILE"
        made.append(
            f"CREATE OR REPLACE FUNCTION whosin_{name}({', '.join(arguments)}) RETURNS {returns} "
            f"LANGUAGE plpgsql {strict} {rights} SET search_path = {schema}, pg_temp "
            f"AS $whosin${body}$whosin$"
        )
        made.append(f"REVOKE ALL ON FUNCTION whosin_{name}({kinds}) FROM PUBLIC")
    return made


def withdrawals() -> list[str]:
    """What takes back every right to write directly that format 1 gave, except the owner's."""
    tables = ", ".join(f"'{name}'" for name in sorted(schema.metadata.tables))
    return [
        f"""DO $whosin$ DECLARE given record; BEGIN
  FOR given IN SELECT c.relname AS part, r.rolname AS who
      FROM pg_class c, aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
      WHERE c.relnamespace = current_schema()::regnamespace AND c.relname IN ({tables})
        AND a.grantee <> c.relowner AND a.privilege_type <> 'SELECT' LOOP
    EXECUTE 'REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON '
      || quote_ident(given.part) || ' FROM ' || coalesce(quote_ident(given.who), 'PUBLIC');
  END LOOP;
END $whosin$"""
    ]
