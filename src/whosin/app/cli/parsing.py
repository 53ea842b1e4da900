"""Notions as the command and the page name them: the one reader for both.

Contract: a notion takes its own options and no others; what it needs must be given. Numbers are
read exactly as they are spelled (0.3 is 3/10), so results can be ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.families import read_family
from whosin.notions import NOTIONS, Notion

ALIASES = {
    "membership": "positive-membership",
    "pmp": "positive-membership",
    "nmp": "negative-membership",
    "dp": "differential-privacy",
    "di": "differential-identifiability",
    "bayesian-dp": "bayesian-differential-privacy",
    "semantic": "semantic-privacy",
    "bayesian-semantic": "bayesian-semantic-privacy",
    "dps": "sampled-differential-privacy",
    "sampled-dp": "sampled-differential-privacy",
}
OPTIONS = {"m": "--candidates", "prior": "--prior-file"}
"""Options that are not called like the attribute of a notion that they set."""
READERS: dict[str, Callable[[Any], object]] = {
    "family": read_family,
    "beta": lambda spelled: rational(spelled, "--beta"),
}


def takes(name: str, attribute: str) -> bool:
    """Whether a notion of this name has such an attribute."""
    kind = NOTIONS.get(ALIASES.get(name, name))
    return kind is not None and attribute in {each.name for each in fields(kind)}  # type: ignore[arg-type]


def read_notion(name: str, given: Mapping[str, object]) -> Notion:
    """A notion by its name or a short one, with what was given for its attributes."""
    full = ALIASES.get(name, name)
    if full not in NOTIONS:
        raise UnknownName("notion", name, [*NOTIONS, *ALIASES])
    known = {each.name: each for each in fields(NOTIONS[full])}  # type: ignore[arg-type]
    said = {word: value for word, value in given.items() if value is not None}
    for word, value in said.items():
        if word not in known:
            shown = "a file" if word == "prior" else value
            raise InvalidInput(_option(word), f"left out with --notion {name}", shown)
    if "family" in known:
        said.setdefault("family", "independent")
    for word, each in known.items():
        if each.default is MISSING and word not in said:
            raise InvalidInput(_option(word), f"given with --notion {name}", "nothing")
    values = {
        word: READERS[word](value) if word in READERS else value for word, value in said.items()
    }
    kind: Callable[..., Notion] = NOTIONS[full]
    return kind(**values)


def _option(word: str) -> str:
    return OPTIONS.get(word, f"--{word}")
