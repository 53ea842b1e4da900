"""What is secret about a person: being in the data, or a value where everyone is known to be in.

The arithmetic is the same; only the words differ.
"""

from __future__ import annotations

from dataclasses import dataclass

from whosin.errors import InvalidInput


@dataclass(frozen=True)
class SecretWords:
    """How one reading is worded.

    Attributes:
        ends: what someone becomes sure of, after "this person …".
        population: who is counted in a population, after "how many …".
        sure: what a promise is about, after "sure".
        given: what a failure probability is given, after "given that …".
        jump: when a count jumps, after "the count jump when …".
    """

    ends: str
    population: str
    sure: str
    given: str
    jump: str


SECRETS = {
    "membership": SecretWords(
        "is in the data", "could be in it", "", "the person is in", "the person joins"
    ),
    "attribute": SecretWords(
        "has the value",
        "are known to be in it, and could have the value",
        " that a person, known to be in the data, has the value",
        "the person has it",
        "the person has the value",
    ),
}


def secret_words(secret: object, field: str = "secret") -> SecretWords:
    """The words of a reading."""
    if not isinstance(secret, str) or secret not in SECRETS:
        raise InvalidInput(field, " or ".join(SECRETS), repr(secret))
    return SECRETS[secret]
