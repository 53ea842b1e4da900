"""The JSON Schema of scenario files, for editors: `python -m whosin.app.scenario_schema`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from inspect import getdoc
from typing import Any

from whosin.release.engines import ENGINE_KINDS
from whosin.release.features import FEATURE_AGGREGATES
from whosin.release.queries import QUERIES, Query
from whosin.scenario_model import ScenarioModel

TEXT_LIST = {"type": "array", "items": {"type": "string"}}
NUMBER_LIST = {"type": "array", "items": {"type": ["number", "string"]}}
QUERY_KEY_TYPES: dict[str, tuple[str, dict[str, Any]]] = {
    "str": ("text", {"type": "string"}),
    "str | None": ("text", {"type": "string"}),
    "int": ("whole", {"type": "integer"}),
    "int | None": ("whole", {"type": "integer"}),
    "bool": ("flag", {"type": "boolean"}),
    "bool | str": ("flag", {"type": ["boolean", "string"]}),
    "object": ("number", {"type": ["number", "string"]}),
    "Sequence[str]": ("columns", TEXT_LIST),
    "Sequence[str] | str": ("columns", {**TEXT_LIST, "type": ["array", "string"]}),
    "Sequence[object] | None": ("numbers", NUMBER_LIST),
    "Sequence[Sequence[str]] | None": ("sets", {"type": "array", "items": TEXT_LIST}),
    "Sequence[Sequence[Any]]": ("pairs", {"type": "array", "items": {"type": "array"}}),
    "Mapping[str, Sequence[object]] | None": (
        "ranges",
        {"type": "object", "additionalProperties": NUMBER_LIST},
    ),
}
"""What a key of a query takes, and its JSON Schema, by the type of its attribute."""


@dataclass(frozen=True)
class QueryKey:
    """A key of a kind of query, from its attribute and the docstring.

    `takes` is "whole", "number", "text", "flag", "numbers", "sets" (lists of columns), "ranges"
    (pairs of ends by column), or what a page asks for in its own way; with `choices` it is one of
    them, or for a flag true as well. With `only_with` it belongs to one word of another key.
    """

    key: str
    takes: str
    choices: Sequence[str]
    default: str
    only_with: Sequence[str]
    help: str
    required: bool
    type: dict[str, Any]


def query_keys(kind: type[Query]) -> Iterator[QueryKey]:
    described = _argument_words(kind)
    for each in fields(kind):
        takes, schema = QUERY_KEY_TYPES[str(each.type)]
        choices = kind.choices.get(each.name, ())
        if choices:
            flags = [True, False] if isinstance(each.default, bool) else []
            schema = {"enum": [*flags, *choices]}
        yield QueryKey(
            each.name,
            takes,
            choices,
            "" if each.default in (None, MISSING, False) else str(each.default),
            (),
            described.get(each.name, ""),
            each.default is MISSING,
            schema,
        )


def _argument_words(kind: type[Query]) -> dict[str, str]:
    """What the docstrings of a kind say of each argument."""
    result: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        listed = (getdoc(each) or "").partition("Args:\n")[2].partition("\n\n")[0]
        attributes = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", listed, flags=re.MULTILINE)
        result |= {name: re.sub(r"\s+", " ", words) for name, words in attributes}
    return result


def scenario_schema() -> dict[str, Any]:
    """The whole schema, from the model of a scenario and the kinds of queries."""
    schema = ScenarioModel.json_schema()
    keys = schema["properties"]
    keys["table"]["properties"]["engine"]["enum"] = list(ENGINE_KINDS)
    keys["features"]["items"]["properties"]["kind"]["enum"] = list(FEATURE_AGGREGATES)
    keys["queries"]["items"] = {"oneOf": [_query_schema(kind) for kind in QUERIES.values()]}
    schema["required"] += ["queries"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_text() -> str:
    return json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"


def _query_schema(kind: type[Query]) -> dict[str, Any]:
    keys = list(query_keys(kind))
    return {
        "type": "object",
        "title": kind.kind,
        "description": (getdoc(kind) or "").partition("\n\n")[0].replace("\n", " "),
        "additionalProperties": False,
        "required": ["kind", *(key.key for key in keys if key.required)],
        "properties": {
            "kind": {"const": kind.kind},
            **{key.key: {**key.type, "description": key.help} for key in keys},
        },
    }


if __name__ == "__main__":
    print(schema_text(), end="")
