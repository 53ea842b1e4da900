"""Reading families, ranges and notions from the command line.

Contract: numbers are read exactly as they are spelled (0.3 is 3/10), so results can be ratios.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from whosin import families, notions
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.priors import Prior


def number_range(text: str, field: str) -> tuple[Fraction, Fraction]:
    """ "0.05..0.5", or one number for a range of one point."""
    low, dots, high = text.partition("..")
    first = rational(low.strip(), field)
    return first, rational(high.strip(), field) if dots else first


def whole(text: str, field: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(field, "a whole number", repr(text)) from None


def _bounded(kind: type[families.Independent] | type[families.FixedSize]) -> Callable[..., object]:
    return lambda text: kind(*number_range(text, "prior range")) if text else kind()


_READERS: dict[str, tuple[Callable[[str], object], str]] = {
    "any": (lambda _: families.AnyPrior(), ""),
    "independent": (_bounded(families.Independent), "[=0.05..0.5]"),
    "one-of-two": (lambda _: families.OneOfTwo(), ""),
    "fixed-size": (_bounded(families.FixedSize), "[=0.05..0.5]"),
    "swap-of-two": (lambda _: families.SwapOfTwo(), ""),
    "one-of": (lambda text: families.OneOf(whole(text, "m in one-of=m")), "=m"),
    "fixed-probability": (
        lambda text: families.FixedProbability(rational(text, "β in fixed-probability=β")),
        "=β",
    ),
    "uninformed": (lambda _: families.Uninformed(), ""),
    "at-most-known": (lambda text: _at_most_known(text), "=k:0.1..0.9"),
    "cliques": (lambda text: families.Cliques(whole(text, "k in cliques=k")), "=k"),
}


def _at_most_known(text: str) -> families.AtMostKnown:
    known, colon, band = text.partition(":")
    if not colon:
        raise InvalidInput("family", "at-most-known=k:0.1..0.9", repr(f"at-most-known={text}"))
    bounds = number_range(band, "prior range")
    return families.AtMostKnown(whole(known, "k in at-most-known=k:0.1..0.9"), *bounds)


def family(text: str) -> families.Family:
    """Read a family: `independent`, `independent=0.05..0.5`, `one-of=3`, …"""
    name, equals, argument = text.strip().partition("=")
    if name not in _READERS:
        raise UnknownName("family", name, _READERS)
    read, shape = _READERS[name]
    if equals and not shape:
        raise InvalidInput("family", f"{name} without a parameter", repr(text))
    if shape.startswith("=") and not argument:
        raise InvalidInput("family", f"{name}{shape}", repr(text))
    found = read(argument)
    assert isinstance(found, families.Family)
    return found


_WITH_PRIOR: dict[str, Callable[[Prior], notions.Notion]] = {
    "bayesian-differential-privacy": notions.BayesianDifferentialPrivacy,
    "bayesian-semantic-privacy": notions.BayesianSemanticPrivacy,
    "identifiability": notions.Identifiability,
    "mutual-information": notions.MutualInformation,
    "record-membership": notions.RecordMembership,
    "mean-shift": notions.MeanShift,
}

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


def notion(
    name: str,
    *,
    adversaries: str | None,
    relation: str,
    direction: str,
    m: int | None,
    beta: str | None,
    prior: Prior | None = None,
) -> notions.Notion:
    """Read a notion with the options that it takes; others given with it are refused."""
    full = ALIASES.get(name, name)
    if full not in notions.NOTIONS:
        raise UnknownName("notion", name, [*notions.NOTIONS, *ALIASES])
    if full in _WITH_PRIOR:
        if prior is None:
            raise InvalidInput("--prior-file", f"given with --notion {name}", "nothing")
        return _WITH_PRIOR[full](prior)
    if prior is not None:
        raise InvalidInput("--prior-file", f"left out with --notion {name}", "a file")
    if full == "semantic-privacy":
        return notions.SemanticPrivacy()
    membership = full.endswith("membership")
    given = {"family": adversaries, "m": m, "beta": beta}
    takes = {"differential-identifiability": {"m"}, "sampled-differential-privacy": {"beta"}}
    for option, value in given.items():
        allowed = {"family"} if membership else takes.get(full, set())
        if value is not None and option not in allowed:
            flag = "-m" if option == "m" else f"--{option}"
            raise InvalidInput(flag, f"left out with --notion {name}", value)
    if full == "positive-membership":
        return notions.PositiveMembership(family(adversaries or "independent"))
    if full == "negative-membership":
        return notions.NegativeMembership(family(adversaries or "independent"))
    if full == "differential-privacy":
        return notions.DifferentialPrivacy(relation, direction)
    if full == "differential-identifiability":
        if m is None:
            raise InvalidInput("-m", "given: the number of candidates", "nothing")
        return notions.DifferentialIdentifiability(m)
    if beta is None:
        raise InvalidInput("--beta", "given: the sampling probability", "nothing")
    return notions.SampledDifferentialPrivacy(rational(beta, "--beta"), direction)
