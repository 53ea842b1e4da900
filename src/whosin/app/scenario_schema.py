"""The JSON Schema of scenario files, for editors: `python -m whosin.app.scenario_schema`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from inspect import getdoc
from typing import Any

from whosin import vocabulary
from whosin.release.engines import ENGINE_KINDS
from whosin.release.features import FEATURE_AGGREGATES
from whosin.release.queries import QUERIES, Query
from whosin.vocabulary import Word

SCHEMA_TYPES: dict[str, Any] = {
    "number": {"type": ["number", "string"]},
    "whole": {"type": "integer"},
    "range": {"type": ["number", "string", "array"]},
    "profile": {"type": ["string", "object"]},
    "text": {"type": "string"},
    "flag": {"type": "boolean"},
}
DOMAIN_SCHEMA = {
    "description": "The values of a column, or the range of its numbers; public knowledge.",
    "type": ["array", "object", "string"],
}


def scenario_schema() -> dict[str, Any]:
    """The whole schema, from the words and the kinds of queries."""
    sections = {
        name: _section_schema(words) for name, words in vocabulary.SCENARIO_SECTIONS.items()
    }
    sections["table"]["required"] = ["source", "privacy_unit"]
    sections["table"]["properties"]["engine"]["enum"] = list(ENGINE_KINDS)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A whosin scenario",
        "type": "object",
        "additionalProperties": False,
        "required": ["target", "table", "queries"],
        "properties": {
            "title": {"type": "string"},
            **sections,
            **{
                name: _list_schema(name, words) for name, words in vocabulary.SCENARIO_LISTS.items()
            },
            "domains": {"type": "object", "additionalProperties": DOMAIN_SCHEMA},
            "queries": {
                "type": "array",
                "minItems": 1,
                "items": {"oneOf": [_query_schema(kind) for kind in QUERIES.values()]},
            },
        },
    }


def schema_text() -> str:
    """Return the JSON Schema as the text of its file."""
    return json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"


def _section_schema(words: Mapping[str, Word]) -> dict[str, Any]:
    keys = {
        word.name: {**SCHEMA_TYPES[word.takes], "description": word.help} for word in words.values()
    }
    return {"type": "object", "additionalProperties": False, "properties": keys}


def _list_schema(name: str, words: Mapping[str, Word]) -> dict[str, Any]:
    """A list whose entries have words of their own."""
    each = _section_schema(words)
    if name == "features":
        each["required"] = ["name", "kind"]
        each["properties"]["kind"]["enum"] = list(FEATURE_AGGREGATES)
    else:
        each["required"] = ["name", "source"]
    return {"type": "array", "items": each}


def _query_schema(kind: type[Query]) -> dict[str, Any]:
    own = fields(kind)
    return {
        "type": "object",
        "title": kind.kind,
        "description": (getdoc(kind) or "").partition("\n\n")[0].replace("\n", " "),
        "additionalProperties": False,
        "required": ["kind", *(each.name for each in own if each.default is MISSING)],
        "properties": {
            "kind": {"const": kind.kind},
            **{each.name: _word_schema(kind, each) for each in own},
        },
    }


def _word_schema(kind: type[Query], key: Field[Any]) -> dict[str, Any]:
    """The words that a key takes, where it takes words."""
    if key.name not in kind.choices:
        return {}
    flags = [True, False] if isinstance(key.default, bool) else []
    return {"enum": [*flags, *kind.choices[key.name]]}


if __name__ == "__main__":
    print(schema_text(), end="")
