"""A scenario: the adversary, the target, the table, the queries, in one TOML file.

Contract: an unknown key is an error that names the nearest known one; everything is checked before
a row is read. Paths in a scenario are relative to its file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from whosin import calibration, families
from whosin.calibration import Plan, Target, calibrate
from whosin.documents import read_toml
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.extras import needs
from whosin.release.batch_price import price
from whosin.release.engines import DuckDB, Engine, Spark
from whosin.release.pricing import Offer
from whosin.release.queries import QUERIES, Query, Synthetic, read_query
from whosin.release.session import Session
from whosin.release.table import Table

KEYS = {
    "scenario": ("adversary", "target", "table", "domains", "ledger", "budget", "queries", "title"),
    "adversary": ("prior", "size-known", "linked", "known", "people", "uninformed"),
    "target": ("posterior", "gamma", "gain", "epsilon", "rho", "candidates", "delta"),
    "table": (
        *("source", "entity", "rows", "groups", "name"),
        *("engine", "memory", "spill", "master", "views"),
    ),
    "ledger": ("url", "dataset"),
    "budget": ("split", "noise", "share"),
}
ENGINES = {"duckdb": ("memory", "spill", "views"), "spark": ("master", "spill")}
"""The engines, with the settings that each has."""


@dataclass(frozen=True)
class Scenario:
    """What a scenario file says, checked."""

    title: str
    plan: Plan
    table: Mapping[str, Any]
    domains: Mapping[str, Any]
    queries: tuple[Query, ...]
    ledger: str
    dataset: str | None
    budget: Mapping[str, Any]

    def open_table(self) -> Table:
        """The table on its engine; only the schema is read."""
        data = self.table
        return Table(
            data["source"],
            data["entity"],
            self.domains,
            rows=data.get("rows"),
            groups=data.get("groups"),
            name=data.get("name"),
            engine=_engine(data),
        )

    def price(self) -> list[Offer]:
        """What the queries cost and how good the answers will be; nothing is written or spent."""
        return price(self.open_table(), self.plan, self.queries, **self.budget)

    def open_session(
        self, ledger: object = None, request: str | None = None, *, amend: bool = False
    ) -> Session:
        """A session for the scenario's one batch, in its ledger or another one."""
        return Session(
            self.open_table(),
            self.plan,
            ledger if ledger is not None else self.ledger,
            dataset=self.dataset,
            request=request,
            share=self.budget.get("share", 1),
            amend=amend,
            queries=self.queries,
        )


def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario file."""
    needs("release")
    file = Path(path)
    data = read_toml(file, file.name)
    return read_scenario(data, file.parent, title=file.stem)


def read_scenario(data: Mapping[str, Any], folder: Path, title: str = "release") -> Scenario:
    """A scenario from its keys; paths are relative to the folder."""
    _check(data, "scenario")
    for key in ("target", "table", "queries"):
        if key not in data:
            form = "[[queries]]" if key == "queries" else f"[{key}]"
            raise InvalidInput("scenario", f"given with {form}", f"a file without {form}")
    parts = {key: _part(data, key) for key in ("adversary", "target", "table", "ledger", "budget")}
    plan = read_plan(parts["adversary"], parts["target"])
    table = dict(parts["table"])
    for key in ("source", "entity"):
        if not isinstance(table.get(key), str):
            raise InvalidInput(f"{key} of the table", "given as a text", repr(table.get(key)))
    table["source"] = _beside(folder, table["source"])
    listed = data["queries"]
    if not isinstance(listed, list) or not listed:
        raise InvalidInput("queries", "one [[queries]] or more", "none")
    queries = tuple(_placed(read_query(each, QUERIES), folder) for each in listed)
    _check_names(queries)
    domains = data.get("domains", {})
    if not isinstance(domains, Mapping):
        raise InvalidInput("domains", "a table of columns", repr(domains))
    url = parts["ledger"].get("url", "ledger.db")
    if not isinstance(url, str):
        raise InvalidInput("url of the ledger", "a file or a database URL", repr(url))
    name = data.get("title", title)
    if not isinstance(name, str):
        raise InvalidInput("title", "a text", repr(name))
    return Scenario(
        name,
        plan,
        table,
        domains,
        queries,
        url if "://" in url else _beside(folder, url),
        parts["ledger"].get("dataset"),
        parts["budget"],
    )


def read_plan(
    adversary: Mapping[str, Any], target: Mapping[str, Any], query: str | None = None
) -> Plan:
    """The plan of a scenario's [adversary] and [target], for a kind of query if one is named."""
    _check(adversary, "adversary")
    _check(target, "target")
    wanted = _target(target)
    delta = float(_number(target.get("delta", 0), "delta"))
    family, people = _family(adversary, wanted), adversary.get("people")
    if not isinstance(family, families.AtMostKnown) or not delta:
        if people is not None:
            raise InvalidInput("people", "left out, unless known and a delta are given", people)
        return calibrate(wanted, family, delta, query)
    if people is None:
        accepted = "given with known and a delta: how many could be in the data, at the least"
        raise InvalidInput("people", accepted, "nothing")
    # Such a plan is for one count, alone; nothing else draws on what nobody knows.
    return calibrate(wanted, family, delta, "count", entities=people)


def _check_names(queries: Sequence[Query]) -> None:
    """Answers are found by name, so a name that was given is given once."""
    named = [query.name for query in queries if query.name]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput("name of a query", "different from the others'", f"{twice!r} twice")


def _part(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = data.get(key, {})
    if not isinstance(part, Mapping):
        raise InvalidInput(key, f"a table: [{key}]", repr(part))
    _check(part, key)
    return part


def _check(data: Mapping[str, Any], part: str) -> None:
    for key in data:
        if key not in KEYS[part]:
            raise UnknownName(f"key of the {part}", str(key), KEYS[part])


def _target(data: Mapping[str, Any]) -> Target:
    chosen = [key for key in data if key not in ("delta", "candidates")]
    if len(chosen) != 1:
        names = "posterior, gamma, gain, epsilon, rho"
        raise InvalidInput("target", f"exactly one of {names}", f"{len(chosen)} of them")
    name = chosen[0]
    if name == "rho":
        if not isinstance(data.get("candidates"), int):
            raise InvalidInput("candidates", "given with rho, a whole number", "nothing")
        return calibration.Rho(_number(data[name], name), data["candidates"])
    if "candidates" in data:
        raise InvalidInput("candidates", f"left out with {name}", data["candidates"])
    return calibration.TARGETS[name](_number(data[name], name))  # type: ignore[call-arg]


def _family(data: Mapping[str, Any], target: Target) -> families.Family:
    special = [
        key for key in ("linked", "known", "uninformed") if data.get(key, False) is not False
    ]
    if len(special) > 1:
        raise InvalidInput("adversary", f"one of {', '.join(special)}", "several")
    for key in ("size-known", "uninformed"):
        if not isinstance(data.get(key, False), bool):
            raise InvalidInput(key, "true or false", repr(data[key])[:80])
    if data.get("uninformed"):
        if len(data) > 1:
            raise InvalidInput("uninformed", "given alone", ", ".join(data))
        return families.Uninformed()
    low, high = _range(data["prior"]) if "prior" in data else (0, 1)
    if "linked" in special:
        if "prior" in data or data.get("size-known"):
            raise InvalidInput("linked", "given without prior and size-known", data["linked"])
        return families.Cliques(data["linked"])
    if "known" in special:
        if data.get("size-known"):
            raise InvalidInput("known", "given without size-known", data["known"])
        return families.AtMostKnown(data["known"], low, high)
    if isinstance(target, calibration.Rho) and "prior" not in data:
        return families.OneOf(target.m)
    sized = families.FixedSize if data.get("size-known") else families.Independent
    return sized(low, high)


def _range(value: object) -> tuple[Any, Any]:
    if isinstance(value, str) and ".." in value:
        low, _, high = value.partition("..")
        return rational(low, "prior"), rational(high, "prior")
    if isinstance(value, list) and len(value) == 2:
        return _number(value[0], "prior"), _number(value[1], "prior")
    return _number(value, "prior"), _number(value, "prior")


def _number(value: object, field: str) -> Fraction:
    """A number; TOML's true is none, though Python would take it for 1."""
    if isinstance(value, bool):
        raise InvalidInput(field, "a number such as 0.5", str(value).lower())
    return rational(value, field)


def _engine(data: Mapping[str, Any]) -> Engine:
    name = data.get("engine", "duckdb")
    if name not in ENGINES:
        raise UnknownName("engine", str(name), ENGINES)
    for key in {key for keys in ENGINES.values() for key in keys}.intersection(data):
        if key not in ENGINES[name]:
            raise InvalidInput(key, f"left out with the engine {name}", repr(data[key])[:80])
    settings = {key: data[key] for key in ENGINES[name] if key in data}
    return Spark(**settings) if name == "spark" else DuckDB(**settings)


def _beside(folder: Path, name: str) -> str:
    """A path of a scenario, relative to its folder; a catalogue's table stays as it is."""
    return name if name.startswith("::") or Path(name).is_absolute() else str(folder / name)


def _placed(query: Query, folder: Path) -> Query:
    """A query whose output lies beside the scenario too."""
    if isinstance(query, Synthetic) and isinstance(query.path, str):
        return replace(query, path=_beside(folder, query.path))
    return query
