"""Reading notions from the command line.

Contract: numbers are read exactly as they are spelled (0.3 is 3/10), so results can be ratios.
"""

from __future__ import annotations

from collections.abc import Callable

from whosin import notions
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.families import read_family
from whosin.priors import Prior

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
        return notions.PositiveMembership(read_family(adversaries or "independent"))
    if full == "negative-membership":
        return notions.NegativeMembership(read_family(adversaries or "independent"))
    if full == "differential-privacy":
        return notions.DifferentialPrivacy(relation, direction)
    if full == "differential-identifiability":
        if m is None:
            raise InvalidInput("-m", "given: the number of candidates", "nothing")
        return notions.DifferentialIdentifiability(m)
    if beta is None:
        raise InvalidInput("--beta", "given: the sampling probability", "nothing")
    return notions.SampledDifferentialPrivacy(rational(beta, "--beta"), direction)
