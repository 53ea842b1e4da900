"""The map of notions: which level of one notion gives which level of another.

`convert` walks it. Every step is a theorem with its map of parameters; all maps are increasing, so
the best chain keeps the smallest level at each notion (shortest paths). Where no chain exists, a
known counterexample says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from whosin import families as f
from whosin.arguments import of_kind, shown
from whosin.errors import InvalidInput, NoImplication
from whosin.exact import Number, exp_up, log_up, rational, round_up
from whosin.notions import (
    DifferentialIdentifiability,
    DifferentialPrivacy,
    Level,
    NegativeMembership,
    Notion,
    PositiveMembership,
    SampledDifferentialPrivacy,
)
from whosin.theorems import li13, tramer15


@dataclass(frozen=True)
class Step:
    """One implication: the theorem, its map of levels, and whether it also holds backwards."""

    theorem: str
    carry: Callable[[Number], Number]
    equivalence: bool = False


UDP = DifferentialPrivacy("add-remove")
UDP_POSITIVE = DifferentialPrivacy("add-remove", "positive")
UDP_NEGATIVE = DifferentialPrivacy("add-remove", "negative")
BDP = DifferentialPrivacy("replace")


def convert(level: Level, to: Notion) -> Level:
    """The best level of another notion that a level implies, with the theorems used.

    Raises:
        NoImplication: no chain of theorems leads there; `counterexample` says why, if known.
    """
    source = of_kind(level, Level, "level").notion
    if not isinstance(to, Notion):
        raise InvalidInput("to", "a notion of privacy", shown(to))
    if not isinstance(source, Notion):
        raise InvalidInput("level", "one that a notion measured", "one without a notion")
    nodes = _nodes(source, to)
    best: dict[Notion, tuple[Number, tuple[str, ...], bool]] = {
        source: (level.value, (), level.exact)
    }
    fresh = [source]
    for _ in nodes:
        better: dict[Notion, None] = {}
        for start in fresh:
            value, chain, exact = best[start]
            for end in nodes:
                for step in steps(start, end):
                    carried = _carried(step, value)
                    if end not in best or carried < best[end][0]:
                        best[end] = carried, (*chain, step.theorem), exact and step.equivalence
                        better[end] = None
        fresh = list(better)
    if to not in best:
        reason = counterexample(source, to)
        raise NoImplication(
            f"no implication is known from {source!r} to {to!r}"
            + (f": {reason}" if reason else ""),
            reason,
        )
    value, chain, exact = best[to]
    theorems = tuple(dict.fromkeys(name for name in chain if name.startswith("T")))
    return Level(value, None, exact, theorems, notion=to)


def _carried(step: Step, value: Number) -> Number:
    """A step in exact arithmetic; a float comes out rounded up, so that no level is understated."""
    if not isinstance(value, float) or math.isinf(value):
        return step.carry(value)
    found = step.carry(Fraction(value))
    return round_up(found) if isinstance(found, Fraction) else found


def _nodes(source: Notion, target: Notion) -> list[Notion]:
    """The notions a chain may pass through: those without parameters, and kin of the two ends."""
    nodes: dict[Notion, None] = dict.fromkeys(
        [source, target, UDP, UDP_POSITIVE, UDP_NEGATIVE, BDP]
    )
    for kind in (PositiveMembership, NegativeMembership):
        for family in (f.Independent(), f.FixedSize(), f.AnyPrior()):
            nodes[kind(family)] = None
    for end in (source, target):
        match end:
            case DifferentialIdentifiability(m=m, literal=False):
                nodes[PositiveMembership(f.OneOf(m))] = None
            case PositiveMembership(family=f.OneOf(m=m, literal=False)):
                nodes[DifferentialIdentifiability(m)] = None
            case SampledDifferentialPrivacy(beta=beta) if rational(beta) < 1:
                nodes[SampledDifferentialPrivacy(beta, "positive")] = None
                nodes[PositiveMembership(f.FixedProbability(beta))] = None
            case PositiveMembership(family=f.FixedProbability(beta=beta)):
                nodes[SampledDifferentialPrivacy(beta, "positive")] = None
    return list(nodes)


def steps(source: Notion, target: Notion) -> Iterator[Step]:
    """The theorems that lead from one notion to another directly."""
    if source == target:
        return
    match source, target:
        case DifferentialPrivacy(relation="add-remove", direction="both"), DifferentialPrivacy():
            if target.relation == "add-remove":
                yield Step("definition", _same)
            else:
                yield Step("T6", lambda e: li13.bounded_from_unbounded(float(e)))
        case DifferentialPrivacy(), PositiveMembership():
            yield from _from_dp(source, target)
        case PositiveMembership(), DifferentialPrivacy():
            yield from _to_dp(source, target)
        case DifferentialIdentifiability(m=m), PositiveMembership(family=f.OneOf(m=n)) if m == n:
            if source.literal == _literal(target) and target.positive:
                yield Step("T8", lambda rho: li13.one_of_from_identifiability(rho, m), True)
        case PositiveMembership(family=f.OneOf(m=n)), DifferentialIdentifiability(m=m) if m == n:
            if target.literal == _literal(source) and source.positive:
                yield Step("T8", lambda g: li13.identifiability_from_one_of(g, m), True)
        case DifferentialIdentifiability(m=2, literal=False), DifferentialPrivacy(
            relation="replace"
        ):
            yield Step("T9", li13.bounded_from_identifiability, True)
        case DifferentialPrivacy(relation="replace"), DifferentialIdentifiability(
            m=2, literal=False
        ):
            yield Step("T9", lambda e: li13.identifiability_from_bounded(float(e)), True)
        case SampledDifferentialPrivacy(beta=b, direction="both"), SampledDifferentialPrivacy(
            beta=c
        ):
            if b == c:
                yield Step("definition", _same)
        case SampledDifferentialPrivacy(beta=b, direction="positive"), PositiveMembership(
            family=f.FixedProbability(beta=c)
        ) if b == c and target.positive:
            beta = rational(b)
            yield Step("T10", lambda e: li13.sampled_from_sampling(_exp(e), beta), True)
        case PositiveMembership(family=f.FixedProbability(beta=b)), SampledDifferentialPrivacy(
            beta=c, direction="positive"
        ) if b == c and source.positive:
            beta = rational(b)
            yield Step("T10", lambda g: log_up(_ratio(li13.sampling_from_sampled(g, beta))), True)
        case PositiveMembership(), PositiveMembership():
            if type(source) is type(target) and includes(source.family, target.family):
                yield Step("subfamily", _same, includes(target.family, source.family))


def _literal(notion: PositiveMembership) -> bool:
    return isinstance(notion.family, f.OneOf) and notion.family.literal


def _from_dp(source: DifferentialPrivacy, target: PositiveMembership) -> Iterator[Step]:
    """T4, T5, T7 and T11 from ε to γ."""
    family, positive = target.family, target.positive
    if source.relation == "replace":
        if isinstance(family, f.FixedSize):
            yield _bounded_step(family, positive, "T5", family.tight)
        elif isinstance(family, f.OneOf) and positive and not family.literal:
            low = Fraction(1, family.m)
            yield Step("T11", lambda e: tramer15.bounded_from_epsilon(float(e), low, low))
        return
    if source.direction != ("positive" if positive else "negative"):
        return
    if isinstance(family, f.Independent):
        yield _bounded_step(family, positive, "T4", True)
    elif isinstance(family, f.Cliques) and positive:
        yield Step("T7", lambda e: li13.cliques_from_unbounded(float(e), family.k))


def _bounded_step(
    family: f.Independent | f.FixedSize, positive: bool, theorem: str, tight: bool
) -> Step:
    low, high = family.bounds if positive else (1 - family.bounds[1], 1 - family.bounds[0])
    if (low, high) == (Fraction(0), Fraction(1)):
        return Step(theorem, lambda e: li13.independent_from_unbounded(float(e)), True)
    return Step("T11", lambda e: tramer15.bounded_from_epsilon(float(e), low, high), tight)


def _to_dp(source: PositiveMembership, target: DifferentialPrivacy) -> Iterator[Step]:
    """T4, T5 and T11 from γ to ε."""
    family, positive = source.family, source.positive
    if target.relation == "replace":
        matches = isinstance(family, f.FixedSize) and family.tight
        theorem = "T5"
    else:
        sign = "positive" if positive else "negative"
        matches = isinstance(family, f.Independent) and target.direction == sign
        theorem = "T4"
    if not matches:
        return
    assert isinstance(family, f.FixedSize | f.Independent)
    low, high = family.bounds if positive else (1 - family.bounds[1], 1 - family.bounds[0])
    bounded = (low, high) != (Fraction(0), Fraction(1))

    def carry(gamma: Number) -> Number:
        from whosin.beliefs import ratio_for_gamma

        return log_up(_ratio(ratio_for_gamma(gamma, low, high)))

    yield Step("T11" if bounded else theorem, carry, True)


def includes(larger: f.Family, smaller: f.Family) -> bool:
    """Whether one family is known to contain another, whatever the space."""
    match larger, smaller:
        case f.AnyPrior(), _:
            return True
        case f.Cliques(k=k), f.Cliques(k=j):
            return j <= k
        case f.Cliques(), f.Independent() | f.FixedProbability() | f.Uninformed():
            return True
        case f.Independent(), f.Independent() | f.AtMostKnown():
            nested = larger.bounds[0] <= smaller.bounds[0] and smaller.bounds[1] <= larger.bounds[1]
            return nested and _fits(larger, smaller, f.OneOfTwo)
        case f.Independent(), f.FixedProbability(beta=beta):
            return type(larger) is f.Independent and _within(larger, rational(beta))
        case f.Independent(), f.Uninformed():
            return type(larger) is f.Independent and _within(larger, Fraction(1, 2))
        case f.FixedSize(), f.FixedSize():
            nested = larger.bounds[0] <= smaller.bounds[0] and smaller.bounds[1] <= larger.bounds[1]
            return nested and _fits(larger, smaller, f.SwapOfTwo)
        case f.FixedSize(), f.OneOf(m=m):
            return type(larger) is f.FixedSize and _within(larger, Fraction(1, m))
    return larger == smaller


def _fits(larger: f.Family, smaller: f.Family, special: type[f.Family]) -> bool:
    """D_I² and D_B² are smaller than D_I and D_B."""
    return not isinstance(larger, special) or isinstance(smaller, special)


def _within(family: f.Independent | f.FixedSize, belief: Fraction) -> bool:
    return bool(family.bounds[0] <= belief <= family.bounds[1])


def counterexample(source: Notion, target: Notion) -> str | None:
    """Why one notion cannot imply another, where an example is known."""
    sized, unsized = _about_size(source), _about_size(target)
    if _is_uninformed(source):
        return "k-Max has a finite level under D_N and none under larger families or NMP (Li13 5.1)"
    many = isinstance(source, DifferentialIdentifiability) and source.m > 2
    many |= (
        isinstance(source, PositiveMembership)
        and isinstance(source.family, f.OneOf)
        and source.family.m > 2
    )
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


def _is_uninformed(notion: Notion) -> bool:
    match notion:
        case PositiveMembership(family=f.Uninformed()):
            return notion.positive
    return False


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
        case PositiveMembership(family=f.FixedSize() | f.OneOf()):
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


def _same(value: Number) -> Number:
    return value


def _exp(epsilon: Number) -> Fraction | float:
    return exp_up(Fraction(epsilon)) if epsilon < li13.LARGEST else math.inf


def _ratio(value: Number) -> Fraction | float:
    return value if isinstance(value, float) else Fraction(value)


@dataclass(frozen=True)
class Edge:
    """A line of the drawn map."""

    source: str
    target: str
    theorem: str
    formula: str
    both_ways: bool = False


EDGES: tuple[Edge, ...] = (
    Edge("UDP", "positive UDP", "definition", "ε"),
    Edge("UDP", "negative UDP", "definition", "ε"),
    Edge("UDP", "BDP", "T6", "2ε"),
    Edge("positive UDP", "PMP under D_I", "T4", "γ = e^ε", True),
    Edge("negative UDP", "NMP under D_I", "T4", "γ = e^ε", True),
    Edge("positive UDP", "PMP under D_I^[a,b]", "T11", "γ(e^ε, [a,b])", True),
    Edge("positive UDP", "PMP under D_NI^k", "T7", "γ = e^(kε)"),
    Edge("BDP", "PMP under D_B", "T5", "γ = e^ε", True),
    Edge("BDP", "PMP under D_B^[a,b]", "T11", "γ(e^ε, [a,b]); back if a+b = 1"),
    Edge("PMP under D_U", "PMP under D_NI^k", "subfamily", "γ"),
    Edge("PMP under D_U", "PMP under D_B", "subfamily", "γ"),
    Edge("PMP under D_NI^k", "PMP under D_I", "subfamily", "γ"),
    Edge("PMP under D_I", "PMP under D_F^β", "subfamily", "γ"),
    Edge("PMP under D_I", "PMP under D_N", "subfamily", "γ"),
    Edge("PMP under D_B", "PMP under D_C^m", "subfamily", "γ"),
    Edge("(ρ, m)-DI", "PMP under D_C^m", "T8", "γ = max(ρm, (m−1)/(m(1−ρ)))", True),
    Edge("(ρ, 2)-DI", "BDP", "T9", "ε = ln(ρ/(1−ρ))", True),
    Edge("(β, ε)-DPS", "PMP under D_F^β", "T10", "γ = max(e^ε, (e^ε−1+β)/(βe^ε))", True),
    Edge("DP on records", "semantic privacy", "T15", "tanh(ε/2); back 4 artanh", True),
    Edge("Bayesian DP", "Bayesian SP", "T15", "tanh(ε/2); back 4 artanh", True),
    Edge("Bayesian DP", "DP on records", "T19", "ε, prior of full support"),
    Edge("DP on records", "identifiability", "T19", "ε + ε_X", True),
    Edge("Bayesian DP", "PMP under D_*", "T14", "γ = e^ε"),
)


@dataclass(frozen=True)
class Barrier:
    """A known counterexample."""

    source: str
    target: str
    reason: str


BARRIERS: tuple[Barrier, ...] = (
    Barrier("BDP", "UDP", "publishing |T| is 0-BDP and no UDP (T6)"),
    Barrier("(ρ, m)-DI", "BDP", "m > 2: the mechanism of Theorem 5.7 (T9)"),
    Barrier("PMP under D_N", "PMP under D_I", "k-Max is finite under D_N only (Li13 5.1)"),
    Barrier("positive UDP", "negative UDP", "an output possible only for the empty set"),
)
"""Where no implication can hold."""

__all__ = ["BARRIERS", "EDGES", "Barrier", "Edge", "Step", "convert", "counterexample", "steps"]
