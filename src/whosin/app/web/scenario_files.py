"""A scenario as files: TOML for `whosin release`, and a Python script that makes the same run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from whosin import vocabulary
from whosin.calibration import Plan, Target
from whosin.errors import InvalidInput
from whosin.families import Family
from whosin.release import QUERIES

PARTS = ("adversary", "target", "table", *vocabulary.LISTS, "domains", "ledger", "budget")


def toml_text(data: Mapping[str, Any]) -> str:
    """The scenario as TOML, without its empty parts; reading it gives the same keys and values."""
    import tomli_w

    known = {
        key: data[key]
        for key in ("title", *PARTS, "queries")
        if key in data and (key == "title" or data[key])
    }
    return tomli_w.dumps(_given(known))


def _given(value: Any) -> Any:
    """The same without missing values, which TOML cannot write."""
    if isinstance(value, Mapping):
        return {key: _given(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        if None in value:
            raise InvalidInput("a list", "without null, which TOML cannot write", None)
        return [_given(each) for each in value]
    return value


SCRIPT = """\
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
plan = wi.calibrate(target, adversaries, delta={delta!r})
table = wi.Table(
    folder / {source!r},
    {entity!r},
    {domains!r},{options}
)
queries = [{queries}
]
session = wi.Session(table, plan, ledger{request}, share={share!r})
made = session.release({batch})

print(title)
for answer in made:
    print(answer.title)
    print(*answer.columns, sep="\\t")
    for row in answer.rows:
        print(*row, sep="\\t")
print(f"left: {{made.standing.spendable:.6g}} of ε = {{plan.epsilon:.6g}}")
"""


def script_text(data: Mapping[str, Any], plan: Plan, request: str | None) -> str:
    """A script that makes the run again; under the same request and ledger it pays nothing."""
    table, budget, url = data["table"], data.get("budget", {}), data["ledger"]["url"]
    options = [f"{key}={table[key]!r}" for key in ("rows", "groups") if key in table]
    if data.get("tables"):
        options.append(f"tables=[{', '.join(map(_further, data['tables']))}]")
    if data.get("features"):
        options.append(f"features={list(data['features'])!r}")
    return SCRIPT.format(
        title=data.get("title", "Release"),
        ledger=repr(url) if "://" in url else f"folder / {url!r}",
        target=_made(plan.target),
        family=_made(plan.family),
        delta=plan.delta,
        source=table["source"],
        entity=table["entity"],
        domains=dict(data.get("domains", {})),
        options="".join(f"\n    {option}," for option in options),
        queries="".join(f"\n    {_query(query)}," for query in data["queries"]),
        request="" if request is None else f", request={request!r}",
        share=budget.get("share", 1),
        batch=", ".join(["queries", *(f"{key}={value!r}" for key, value in budget.items())]),
    )


def _made(thing: Target | Family) -> str:
    """The call that makes a target or a family, with exact numbers as texts."""
    room = "wi.families." if isinstance(thing, Family) else "wi."
    values = [getattr(thing, each.name) for each in fields(thing)]  # type: ignore[arg-type]
    given = [_exact(v) if isinstance(v, Fraction) else repr(v) for v in values]
    return f"{room}{type(thing).__name__}({', '.join(given)})"


def _exact(value: Fraction) -> str:
    """A text that spells the number, or the float that it came from."""
    binary = value.denominator > 10**6 and Fraction(float(value)) == value
    return repr(float(value)) if binary else repr(str(value))


def _further(table: Mapping[str, Any]) -> str:
    """A further table, whose file lies in the folder too."""
    keys = (f"{key!r}: {value!r}" for key, value in table.items() if key != "source")
    return f"{{{', '.join(keys)}, 'source': folder / {table['source']!r}}}"


def _query(query: Mapping[str, Any]) -> str:
    options = [
        f"{key}=str(folder / {value!r})" if key == "path" else f"{key}={value!r}"
        for key, value in query.items()
        if key != "kind"
    ]
    return f"release.{QUERIES[query['kind']].__name__}({', '.join(options)})"
