"""What is wrong with the shape of a request, as one sentence.

Contract: every complaint of the framework becomes (field, "field must be …; got …") in the words of
`whosin.errors`. What came is named by its kind only, since it can be long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException

from whosin.app.web.models import REQUEST, REQUEST_WORDS

JSON_BODY = "the body must be a JSON object, sent with the header Content-Type: application/json"
SPELLED = ("constrained-str", "float")
"""How the framework names the two ways to write a number; no part of a request has one of these
names."""

ACCEPTED: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "string_type": lambda _: "a text",
    "string_too_long": lambda limits: f"a text of at most {limits['max_length']:,} letters",
    "string_pattern_mismatch": lambda limits: {REQUEST: REQUEST_WORDS}[limits["pattern"]],
    "bool_type": lambda _: "true or false",
    "int_type": lambda _: "a whole number",
    "int_parsing": lambda _: "a whole number",
    "int_parsing_size": lambda _: "a whole number of reasonable size",
    "int_from_float": lambda _: "a whole number",
    "greater_than_equal": lambda limits: f"at least {limits['ge']}",
    "less_than_equal": lambda limits: f"at most {limits['le']}",
    "list_type": lambda _: "a list",
    "too_short": lambda limits: f"at least {limits['min_length']} of them",
    "too_long": lambda limits: f"at most {limits['max_length']} of them",
    "dict_type": lambda _: "an object with keys",
    "model_type": lambda _: "an object with keys",
    "model_attributes_type": lambda _: "an object with keys",
}
KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number"}


def sentence(complaints: Sequence[Mapping[str, Any]]) -> tuple[str | None, str]:
    """The field and the sentence for the first of the framework's complaints."""
    first = complaints[0]
    kind, limits = str(first["type"]), first.get("ctx", {})
    path = [part for part in first["loc"] if part not in ("body", "query")]
    if kind == "json_invalid":
        return None, f"the body must be JSON; it is not, from character {path[0]} on"
    if not path:
        sent = first.get("input")
        got = "" if sent is None or isinstance(sent, bytes) else f"; got {_kind(sent)}"
        return None, JSON_BODY + got
    if path[-1] == "[key]":
        field = str(path[0])
        return (
            field,
            f"the names in {field} must be at most {limits['max_length']} letters long",
        )
    spelled = path[-1] in SPELLED and kind != "extra_forbidden"
    field = ".".join(map(str, path[:-1] if spelled else path))
    if kind == "missing":
        return field, f"{field} must be given"
    if kind == "extra_forbidden":
        return field, f"{field[:120]} must be left out: there is no such key"
    if spelled:
        accepted = 'a finite number, or a short text that spells one, such as "0.6"'
    else:
        spell = ACCEPTED.get(kind)
        accepted = "as /api describes it" if spell is None else spell(limits)
    if kind in ("too_short", "too_long", "greater_than_equal", "less_than_equal"):
        return field, f"{field} must be {accepted}"
    return field, f"{field} must be {accepted}; got {_kind(first.get('input'))}"


def refused(error: HTTPException) -> str:
    """The sentence for what the framework refuses by a status alone."""
    if error.status_code == 404:
        return "there is nothing at this address; /api lists the routes"
    if error.status_code == 405:
        return f"this address takes {(error.headers or {}).get('Allow', 'another method')} only"
    if error.status_code == 400:
        return "the body must be JSON in UTF-8, without very deep nesting or very long numbers"
    return str(error.detail)


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, float):
        return "a number" if abs(value) < float("inf") else "a number that is not finite"
    if isinstance(value, str) and len(value) > 40:
        return f"a text of {len(value):,} letters"
    return KINDS.get(type(value), "something else")
