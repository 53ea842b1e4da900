"""Sets of priors: the adversaries that a notion of privacy defends against.

A family describes itself: what it is called and how it is spelled, who it is in plain words, which
beliefs and neighbours it has, and which other families it includes. `FAMILY_KINDS` is the registry:
the command, scenario files, the page, the reference and the contract tests find a family there.
Numbers such as T7, F12 or E2 are explained in docs/theory/numbers.md.
"""

from whosin.errors import InvalidInput, UnknownName, invalid_value
from whosin.families.base import Adversary, Family, Worst
from whosin.families.explicit import Explicit
from whosin.families.fixed_size import FixedSize, OneOf, SwapOfTwo
from whosin.families.independent import AnyPrior, Cliques, Independent, OneOfTwo
from whosin.families.uncertain import AtMostKnown, FixedProbability, Uninformed, ValueOfOne

__all__ = ["FAMILY_KINDS", "Adversary", "AnyPrior", "AtMostKnown", "Cliques", "Explicit", "Family"]
__all__ += ["FixedProbability", "FixedSize", "Independent", "OneOf", "OneOfTwo", "SwapOfTwo"]
__all__ += ["Uninformed", "ValueOfOne", "Worst", "read_family"]


def __dir__() -> list[str]:
    return __all__


FAMILY_KINDS: dict[str, type[Family]] = {
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
        ValueOfOne,
        Explicit,
    )
}


def read_family(text: str) -> Family:
    """A family from text: `independent`, `independent=0.05..0.5`, `one-of=3`, …"""
    if not isinstance(text, str):
        raise invalid_value("family", "a text such as independent=0.05..0.5", text)
    name, equals, argument = text.strip().partition("=")
    known = {name: kind for name, kind in FAMILY_KINDS.items() if kind.example}
    if name not in known:
        raise UnknownName("family", name, known)
    kind = known[name]
    if (equals and not kind.form) or (kind.form.startswith("=") and not argument):
        message = f"the family {name} {'needs its' if kind.form else 'takes no'} parameter"
        raise InvalidInput(message, field="family", value=text, hint=f"write {name}{kind.form}")
    return kind.parse(argument)
