"""A notion from its name and words, for the command and the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from whosin import vocabulary
from whosin.documents import read_object
from whosin.errors import UnknownName, at
from whosin.families import read_family
from whosin.notions import NOTIONS
from whosin.notions.base import Notion
from whosin.notions.gains import read_gain
from whosin.notions.metric_privacy import read_metric
from whosin.priors.files import prior_of
from whosin.validation import of_kind
from whosin.words import describe, takes, words_said

READERS: dict[str, Callable[[Any], object]] = {
    "family": read_family,
    "gain": read_gain,
    "metric": read_metric,
    "prior-file": lambda file: prior_of(
        read_object(Path(file), Path(file).name, "a prior, in JSON")
    ),
}
"""Words whose value is an object of its own."""


def notion_names() -> dict[str, type[Notion]]:
    """Every notion by its name, and by its short names."""
    short = {each: kind for kind in NOTIONS.values() for each in kind.short_names}
    return {**NOTIONS, **short}


def read_notion(name: str, data: Mapping[str, object]) -> Notion:
    """A notion with the words that it takes; others said with it are refused."""
    of_kind(name, str, "notion")
    words = vocabulary.NOTION
    if name not in notion_names():
        raise UnknownName("notion", name, notion_names())
    kind = notion_names()[name]
    said = words_said(data, words, "notion")
    with at("notion"):
        for word, read in READERS.items():
            if word in (takes(kind, words) or ()):
                value = said.get(word, words[word].default)
                if value:
                    with at(word):
                        said[word] = read(value)
        return describe(kind, f"the notion {name}", said, words)


def plain_words(notion: Notion) -> dict[str, object]:
    """The words that read a notion back, apart from its family and a prior's file."""
    taken = takes(type(notion), vocabulary.NOTION) or {}
    words = [word for word in taken if word not in ("family", "prior-file")]
    values = {word: getattr(notion, taken[word].name) for word in words}
    return {word: getattr(value, "spelled", value) for word, value in values.items()}
