"""Sets of priors: the adversaries that a notion of privacy defends against (THEORY 1).

A family describes itself: what it is called and how it is spelled, who it is in plain words, which
beliefs and neighbours it has, and which other families it includes. `FAMILIES` is the registry.
"""

from whosin.errors import InvalidInput, UnknownName
from whosin.families.any_prior import AnyPrior
from whosin.families.at_most_known import AtMostKnown
from whosin.families.base import Adversary, Family, Worst
from whosin.families.cliques import Cliques
from whosin.families.explicit import Explicit
from whosin.families.fixed_probability import FixedProbability
from whosin.families.fixed_size import FixedSize, SwapOfTwo
from whosin.families.independent import Independent, OneOfTwo
from whosin.families.one_of import OneOf
from whosin.families.uninformed import Uninformed

__all__ = [
    "FAMILIES",
    "Adversary",
    "AnyPrior",
    "AtMostKnown",
    "Cliques",
    "Explicit",
    "Family",
    "FixedProbability",
    "FixedSize",
    "Independent",
    "OneOf",
    "OneOfTwo",
    "SwapOfTwo",
    "Uninformed",
    "Worst",
    "read_family",
]

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


def read_family(text: str) -> Family:
    """A family from text: `independent`, `independent=0.05..0.5`, `one-of=3`, …"""
    if not isinstance(text, str):
        raise InvalidInput("family", "a text such as independent=0.05..0.5", text)
    name, equals, argument = text.strip().partition("=")
    known = {name: kind for name, kind in FAMILIES.items() if kind.example}
    if name not in known:
        raise UnknownName("family", name, known)
    kind = known[name]
    if equals and not kind.form:
        raise InvalidInput("family", f"{name} without a parameter", repr(text))
    if kind.form.startswith("=") and not argument:
        raise InvalidInput("family", f"{name}{kind.form}", repr(text))
    return kind.parse(argument)
