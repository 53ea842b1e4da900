"""What a rule leaks to people who are uncertain of most others: exact profiles and brackets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from whosin.families import Family
from whosin.mechanisms import Mechanism
from whosin.notions import failing
from whosin.notions.failing import Cases, cases_of
from whosin.priors import Prior
from whosin.spaces import Subsets
from whosin.validation import of_kind, whole

MOST_PEOPLE = 10_000_000


@dataclass(frozen=True)
class FailureWitness:
    """Who may learn more than the ratio, and from what.

    Attributes:
        outputs: the outputs whose likelihood ratio exceeds it.
        distribution: what that person believes; entity 0 is the one in question.
        words: the same in words, for a count of many people.
        probability: how likely these outputs are, given that the entity is in.
    """

    outputs: tuple[object, ...]
    distribution: Prior
    words: str
    probability: float | Fraction
    entity: int = 0


@dataclass(frozen=True)
class Failure:
    """How likely it is, given that a person is in, that an output's likelihood ratio exceeds a
    number, for the worst prior of a family.

    Attributes:
        lower: it is at least this likely, for the witness.
        upper: it is at most this likely, for everyone in the family (F9).
        exact: whether the two are one exact number.
    """

    ratio: Fraction | float
    lower: float | Fraction
    upper: float | Fraction
    exact: bool
    witness: FailureWitness


def profile(rule: Mechanism, people: int, family: Family, epsilon: object) -> float:
    """The exact δ(ε) of F21, rounded up: the sup over the family of
    Σ_o max(0, Pr[o|t] − e^ε Pr[o|¬t]).

    Args:
        rule: a rule, or any mechanism that sees how many are in.
        people: how many could be in, the person in question included.
        family: AtMostKnown, FixedProbability, Uninformed, Independent or Explicit.
    """
    return failing.profile(_cases(rule, people, family), epsilon)


def failure(rule: Mechanism, people: int, family: Family, ratio: object) -> Failure:
    """A bracket for the probability, given that the person is in, that the likelihood ratio of what
    is shown exceeds `ratio`."""
    result = failing.failure(_cases(rule, people, family), ratio)
    case = result.case
    witness = FailureWitness(
        result.outputs, case.prior(case.high), case.words, result.lower, case.entity
    )
    return Failure(result.ratio, result.lower, result.upper, result.exact, witness)


def _cases(rule: Mechanism, people: int, family: Family) -> Cases:
    of_kind(rule, Mechanism, "rule", "a rule, or another mechanism on a count")  # type: ignore[type-abstract]
    of_kind(family, Family, "family", "a family of priors")  # type: ignore[type-abstract]
    space = Subsets(whole(people, "people", 1, MOST_PEOPLE))
    return cases_of(rule, space, family, positive=True)
