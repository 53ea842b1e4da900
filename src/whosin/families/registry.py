"""Every family by its name, and how a family is read from text."""

from __future__ import annotations

from whosin.errors import InvalidInput, UnknownName
from whosin.families.any_prior import AnyPrior
from whosin.families.at_most_known import AtMostKnown
from whosin.families.base import Family
from whosin.families.cliques import Cliques
from whosin.families.explicit import Explicit
from whosin.families.fixed_probability import FixedProbability
from whosin.families.fixed_size import FixedSize, SwapOfTwo
from whosin.families.independent import Independent, OneOfTwo
from whosin.families.one_of import OneOf
from whosin.families.uninformed import Uninformed

FAMILIES: dict[str, type[Family]] = {
    kind.name: kind
    for kind in (
        AnyPrior,
        Independent,
        OneOfTwo,
        FixedSize,
        SwapOfTwo,
        OneOf,
        FixedProbability,
        Uninformed,
        Cliques,
        AtMostKnown,
        Explicit,
    )
}
"""Contract, property and documentation tests find a family here, and so do the command, scenario
files, the page and the reference."""


def spellings() -> list[str]:
    """How each family is written: independent[=0.05..0.5], one-of=m, …"""
    return [kind.name + kind.form for kind in FAMILIES.values() if kind is not Explicit]


def read_family(text: str) -> Family:
    """A family from text: `independent`, `independent=0.05..0.5`, `one-of=3`, …"""
    if not isinstance(text, str):
        raise InvalidInput("family", "a text such as independent=0.05..0.5", text)
    name, equals, argument = text.strip().partition("=")
    known = {name: kind for name, kind in FAMILIES.items() if kind is not Explicit}
    if name not in known:
        raise UnknownName("family", name, known)
    kind = known[name]
    if equals and not kind.form:
        raise InvalidInput("family", f"{name} without a parameter", repr(text))
    if kind.form.startswith("=") and not argument:
        raise InvalidInput("family", f"{name}{kind.form}", repr(text))
    return kind.parse(argument)
