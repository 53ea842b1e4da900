"""Why one notion does not imply another, where an example is known."""

from __future__ import annotations

from whosin import families as f
from whosin.notions import (
    DifferentialIdentifiability,
    DifferentialPrivacy,
    Notion,
    PositiveMembership,
)


def counterexample(source: Notion, target: Notion) -> str | None:
    """Why one notion cannot imply another, where an example is known."""
    sized, unsized = _about_size(source), _about_size(target)
    family = source.family if isinstance(source, PositiveMembership) else None
    if isinstance(family, f.Uninformed) and source.positive:  # type: ignore[attr-defined]
        return "k-Max has a finite level under D_N and none under larger families or NMP (Li13 5.1)"
    many = _smallest_choice(source) > 2
    if sized is True and unsized is False:
        return "publishing |T| is 0-BDP and leaks everything without a known size (T6)"
    if many and unsized is True and _smallest_choice(target) == 2:
        return "the mechanism of Theorem 5.7 has (ρ, m)-DI and violates every ε-BDP (T9)"
    if sized is True or unsized is True:
        return None
    both = isinstance(target, DifferentialPrivacy) and target.direction == "both"
    if _sign(source) is True and (_sign(target) is False or both):
        return "an output possible only for the empty set proves absence and never presence"
    if _sign(source) is False and (_sign(target) is True or both):
        return "an output possible only when everyone is in proves presence and never absence"
    return None


def _smallest_choice(notion: Notion) -> int:
    """Among how many candidates a notion about one size hides at least: m, or two for D_B."""
    match notion:
        case DifferentialIdentifiability(m=m) | PositiveMembership(family=f.OneOf(m=m)):
            return m
    return 2


def _about_size(notion: Notion) -> bool | None:
    """True where all worlds of a comparison have one size, False where they differ by one."""
    match notion:
        case DifferentialPrivacy(relation=relation):
            return relation == "replace"
        case DifferentialIdentifiability():
            return True
        case PositiveMembership(family=family) if family.relation == "replace":
            return True
        case PositiveMembership(family=f.Independent() | f.Cliques() | f.AnyPrior()):
            return False
    return None


def _sign(notion: Notion) -> bool | None:
    """True for positive notions, False for negative ones, None for those that are both."""
    match notion:
        case PositiveMembership(family=family):
            return None if isinstance(family, f.FixedSize | f.AnyPrior) else notion.positive
        case DifferentialPrivacy(relation="add-remove", direction=direction):
            return {"positive": True, "negative": False}.get(direction)
    return None
