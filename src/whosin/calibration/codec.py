"""Targets, families and queries as JSON and back; exact numbers as strings."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any

from whosin.calibration.queries import PlannedQuery
from whosin.calibration.target import Target
from whosin.calibration.targets import TARGETS
from whosin.documents import check_keys
from whosin.errors import InvalidInput, UnknownName, Unsupported
from whosin.families import FAMILIES, Family


def encode(thing: Target | Family | PlannedQuery) -> dict[str, object]:
    """{"name": …, field: value, …}."""
    names = {kind: name for name, kind in [*TARGETS.items(), *FAMILIES.items()]}
    name = "query" if isinstance(thing, PlannedQuery) else names[type(thing)]
    if name == "explicit":
        raise Unsupported("a plan for explicit priors cannot be written to a file")
    return {"name": name} | {each.name: _plain(getattr(thing, each.name)) for each in fields(thing)}  # type: ignore[arg-type]


def decode_target(data: object) -> Target:
    """The target of a file."""
    return _decode(data, "target", TARGETS)  # type: ignore[no-any-return]


def decode_family(data: object) -> Family:
    """The family of a file."""
    return _decode(data, "family", FAMILIES)  # type: ignore[no-any-return]


def decode_query(data: object) -> PlannedQuery:
    """The query of a file."""
    return _decode(data, "query", {"query": PlannedQuery})  # type: ignore[no-any-return]


def _decode(data: object, what: str, known: dict[str, Any]) -> Any:
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise InvalidInput(what, "an object with a name", type(data).__name__)
    if data["name"] not in known:
        raise UnknownName(what, data["name"], known)
    kind = known[data["name"]]
    allowed = {each.name for each in fields(kind)}
    given = {key: value for key, value in data.items() if key != "name"}
    check_keys(given, allowed, what)
    try:
        return kind(**given)
    except TypeError:
        missing = ", ".join(sorted(allowed - set(given)))
        raise InvalidInput(what, f"an object with {missing}", "none") from None


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Fraction) else value
