"""From words to a target, a family and a plan: the one reader for files, the command and the page.

Contract: the words are those of `vocabulary`. An error says at which word it is (`path`), such as
adversary.prior.
"""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction

from whosin import vocabulary
from whosin.calibration.plan import Plan
from whosin.calibration.planning import calibrate
from whosin.calibration.queries import PlannedQuery
from whosin.calibration.target import Target
from whosin.calibration.targets import HIPAA, TARGETS
from whosin.errors import InvalidInput, WhosinError, at
from whosin.families import FAMILIES, Family, Independent, read_family
from whosin.validation import of_kind
from whosin.words import Said, at_its_word, value_of, words_said

WORD_ORDER = list(vocabulary.TARGET)


def read_target(data: Said) -> Target:
    """The one target that was said."""
    said = words_said(data, vocabulary.TARGET, "target")
    kinds = sorted(TARGETS.values(), key=lambda kind: WORD_ORDER.index(kind.words_taken[0]))
    chosen = [kind for kind in kinds if kind.words_taken[0] in said]
    named = [*(kind.words_taken[0] for kind in chosen), *(["hipaa"] if "hipaa" in said else [])]
    with at("target"):
        if not named:
            _need_first_words(kinds, said)
        if len(named) != 1:
            listed = ", ".join([*(kind.words_taken[0] for kind in kinds), "hipaa"])
            got = " and ".join(named) or "none of them"
            raise InvalidInput("target", f"exactly one of {listed}", got)
        taken = chosen[0].words_taken if chosen else ("hipaa",)
        for word in said:
            if word not in (*taken, "delta"):
                with at(word):
                    raise InvalidInput(word, f"left out with {named[0]}", said[word])
        if not chosen:
            return HIPAA
        for word in taken:
            if word not in said:
                raise _missing(word, taken[0])
        names = [each.name for each in fields(chosen[0])]  # type: ignore[arg-type]
        words = {name: chosen[0].spelled_as.get(name, name) for name in names}
        values = {
            name: value_of(vocabulary.TARGET[word], said[word]) for name, word in words.items()
        }
        return at_its_word(lambda: chosen[0](**values), {"": taken[0], **words})


def _need_first_words(kinds: list[type[Target]], said: Said) -> None:
    """A word that belongs to another, such as fpr to tpr, and was said alone."""
    for kind in kinds:
        for word in kind.words_taken[1:]:
            if word in said:
                raise _missing(kind.words_taken[0], word)


def _missing(word: str, beside: str) -> InvalidInput:
    meaning = vocabulary.TARGET[word].help.removeprefix("Or ").rstrip(".")
    accepted = f"given with {beside}: {meaning[0].lower()}{meaning[1:]}"
    error = InvalidInput(word, accepted, "nothing")
    error.path = word
    return error


def read_adversary(data: Said, target: Target) -> Family:
    """The family of adversaries that was said; anyone, if nothing was."""
    of_kind(target, Target, "target")  # type: ignore[type-abstract]
    said = words_said(data, vocabulary.ADVERSARY, "adversary")
    with at("adversary"):
        if "family" in said:
            others = [word for word in said if word not in ("family", "people")]
            with at("family"):
                if others:
                    raise InvalidInput(
                        "family", f"given without {', '.join(others)}", said["family"]
                    )
                return read_family(said["family"])  # type: ignore[arg-type]
        prior = value_of(vocabulary.ADVERSARY["prior"], said["prior"]) if "prior" in said else None
        chosen = [kind for kind in FAMILIES.values() if kind.key in said]
        if len(chosen) > 1:
            words = " and ".join(kind.key for kind in chosen)
            with at(chosen[1].key):
                raise InvalidInput("adversary", "one kind of adversary", words)
        if chosen:
            key = chosen[0].key
            value = value_of(vocabulary.ADVERSARY[key], said[key])
            range_words = dict.fromkeys(("low", "high", "low and high"), "prior")
            return at_its_word(lambda: chosen[0].chosen(value, prior), {"": key, **range_words})
        if prior is None:
            return target.default_family()
        with at("prior"):
            return Independent(*prior)


def read_plan(adversary: Said, target: Said, query: PlannedQuery | str | None = None) -> Plan:
    """The plan for an adversary and a target, and for a query if one is named."""
    wanted = read_target(target)
    family = read_adversary(adversary, wanted)
    delta = Fraction(0)
    if target.get("delta") is not None:
        with at("target"):
            delta = value_of(vocabulary.TARGET["delta"], target["delta"])
            if not 0 <= delta < 1:  # before it becomes a float, which may not hold it
                with at("delta"):
                    raise InvalidInput("delta", "at least 0 and below 1", target["delta"])
    people = adversary.get("people")
    rests = family.hides_others and bool(delta)  # on what nobody knows of the others
    with at("adversary.people"):
        if people is not None and not rests:
            raise InvalidInput("people", "left out, unless known and a delta are given", people)
        if people is None and rests:
            accepted = "given with known and a delta: how many could be in the data, at the least"
            raise InvalidInput("people", accepted, "nothing")
    lead = next(word for word in words_said(target, vocabulary.TARGET, "target") if word != "delta")
    try:
        # This plan is for one count, alone; nothing else draws on what nobody knows.
        kind = query if query is not None or not rests else "count"
        return calibrate(wanted, family, float(delta), kind, people)  # type: ignore[arg-type]
    except WhosinError as error:
        named = {"delta": "target.delta", "entities": "adversary.people"}
        error.path = named.get(getattr(error, "field", ""), f"target.{lead}")
        raise
