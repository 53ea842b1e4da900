"""The map of notions: edges, counterexamples, and `convert` along the best walk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from whosin import families as f
from whosin.errors import InvalidInput, NoImplication, check_kind
from whosin.exact import Number
from whosin.mechanisms.channel import need_space
from whosin.notions import (
    DifferentialIdentifiability,
    DifferentialPrivacy,
    Level,
    Notion,
    PositiveMembership,
)
from whosin.spaces import Records, Space
from whosin.theorems import steps
from whosin.theorems.steps import Step


# The map of notions as it is printed and drawn: a line for each implication and counterexample.
#
# `convert` walks every line; `tests/theorems/test_map_edges.py` holds each against brute force.
@dataclass(frozen=True)
class Edge:
    """A line of the drawn map.

    Attributes:
        theorem: its number, or one of `EDGE_REASONS`.
        formula: the level of the target, and on what condition.
        both_ways: whether it is walked in both directions.
    """

    source: str
    target: str
    theorem: str
    formula: str
    both_ways: bool = False


EDGE_REASONS = {
    "definition": "By definition.",
    "subfamily": "A smaller family of adversaries.",
    "amplification": "Nobody knows who is in a random sample.",
    "independent rows": "Rows that do not depend on each other say nothing about each other.",
}
"""Why an implication holds, where it needs no theorem."""

NOTION_EDGES: tuple[Edge, ...] = (
    Edge("UDP", "positive UDP", "definition", "ε"),
    Edge("UDP", "negative UDP", "definition", "ε"),
    Edge("UDP", "BDP", "T6", "2ε"),
    Edge("UDP", "(β, ε)-DPS", "amplification", "ln(1 + β(e^ε − 1))"),
    Edge("positive UDP", "PMP under D_I", "T4", "γ = e^ε", True),
    Edge("negative UDP", "NMP under D_I", "T4", "γ = e^ε", True),
    Edge("positive UDP", "PMP under D_I^[a,b]", "T11", "γ(e^ε, [a,b])", True),
    Edge("positive UDP", "PMP under D_NI^k", "T7", "γ = e^(kε)"),
    Edge("BDP", "PMP under D_B", "T5", "γ = e^ε", True),
    Edge("BDP", "PMP under D_B^[a,b]", "T11", "γ(e^ε, [a,b]); back if a+b = 1"),
    Edge("PMP under D_U", "PMP under D_NI^k", "subfamily", "γ"),
    Edge("PMP under D_U", "PMP under D_B", "subfamily", "γ"),
    Edge("PMP under D_NI^k", "PMP under D_I", "subfamily", "γ"),
    Edge("PMP under D_I^[a,b]", "PMP under D_F^β", "subfamily", "γ, a ≤ β ≤ b"),
    Edge("PMP under D_I^[a,b]", "PMP under D_N", "subfamily", "γ, a ≤ 1/2 ≤ b"),
    Edge("PMP under D_I^[a,b]", "PMP under D_K^k", "subfamily", "γ"),
    Edge("PMP under D_B", "PMP under D_C^m", "subfamily", "γ"),
    Edge("BDP", "PMP under D_C^m", "T11", "γ(e^ε, 1/m)"),
    Edge("(ρ, m)-DI", "PMP under D_C^m", "T8", "γ = max(ρm, (m−1)/(m(1−ρ)))", True),
    Edge("(ρ, 2)-DI", "BDP", "T9", "ε = ln(ρ/(1−ρ))", True),
    Edge("(β, ε)-DPS", "PMP under D_F^β", "T10", "γ = max(e^ε, (e^ε−1+β)/(βe^ε))", True),
    Edge("DP on records", "semantic privacy", "T15", "tanh(ε/2); back 4 artanh", True),
    Edge("Bayesian DP", "Bayesian SP", "T15", "tanh(ε/2); back 4 artanh, default possible", True),
    Edge("Bayesian DP", "DP on records", "T19", "ε, prior of full support"),
    Edge("DP on records", "Bayesian DP", "independent rows", "ε, independent rows"),
    Edge("Bayesian SP", "semantic privacy", "T19", "the same level, prior of full support"),
    Edge("semantic privacy", "Bayesian SP", "independent rows", "the same level, independent rows"),
    Edge("DP on records", "identifiability", "T19", "ε + ε_X", True),
    Edge("Bayesian DP", "PMP under D_*", "T14", "γ = e^ε", True),
    Edge(
        "identifiability",
        "PMP under {p_X}",
        "T22",
        "γ = max(q/p, (1−p)/(1−q)), q = 1/(1+e^−ε), binary rows",
    ),
    Edge(
        "DP on records",
        "mutual information",
        "T24",
        "Σ [H(p(1−q)+(1−p)q) − H(q)], q = 1/(1+e^ε), independent binary rows",
    ),
    Edge("mutual information", "mean shift", "T23", "√(ι/2)"),
)


@dataclass(frozen=True)
class Barrier:
    source: str
    target: str
    reason: str


NOTION_BARRIERS: tuple[Barrier, ...] = (
    Barrier("BDP", "UDP", "publishing |T| is 0-BDP and no UDP (T6)"),
    Barrier("(ρ, m)-DI", "BDP", "m > 2: the mechanism of Theorem 5.7 (T9)"),
    Barrier("PMP under D_N", "PMP under D_I", "k-Max is finite under D_N only (Li13 5.1)"),
    Barrier("positive UDP", "negative UDP", "an output possible only for the empty set"),
)
"""Where no implication can hold."""


def find_counterexample(source: Notion, target: Notion) -> str | None:
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
    if _notion_sign(source) is True and (_notion_sign(target) is False or both):
        return "an output possible only for the empty set proves absence and never presence"
    if _notion_sign(source) is False and (_notion_sign(target) is True or both):
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


def _notion_sign(notion: Notion) -> bool | None:
    """True for positive notions, False for negative ones, None for those that are both."""
    match notion:
        case PositiveMembership(family=family):
            return None if isinstance(family, f.FixedSize | f.AnyPrior) else notion.positive
        case DifferentialPrivacy(relation="add-remove", direction=direction):
            return {"positive": True, "negative": False}.get(direction)
    return None


# `convert`: the best level of one notion that a level of another implies.
#
# Every step of the map is an increasing map of levels, so the best chain keeps the smallest level
# at each notion (shortest paths). Where the level is tight and a chain of equivalences leads to the
# other notion, its level is tight too, and that chain is taken; otherwise the best chain of all.
@dataclass(frozen=True)
class MapNode:
    """A notion on the map; differential privacy by replacing exists on records and on sets."""

    notion: Notion
    records: bool


Reached = tuple[Number, tuple[str, ...]]
"""The best level found at a node, and the steps that led there."""


def convert(level: Level, to: Notion, space: Space | None = None) -> Level:
    """The best level of another notion that a level implies, with the theorems used.

    Args:
        level: what a notion measured.
        to: the other notion.
        space: the worlds. Some theorems about records ask it of a prior: how many rows there are,
            or which tables are possible.

    Raises:
        NoImplication: no chain of theorems leads there; `find_counterexample` says why, if known.
    """
    source = check_kind(level, Level, "level").notion
    check_kind(to, Notion, "to", "a notion of privacy")  # type: ignore[type-abstract]
    if not isinstance(source, Notion):
        raise InvalidInput("level was not measured by a notion", field="level", value=level)
    if space is not None:
        need_space(space, "convert")
    start, end = _map_ends(level, source.canonical(), to.canonical(), space)
    nodes = _intermediate_notions(start, end)
    for tight in (True, False) if level.exact else (False,):
        if result := _best_walk(start, end, level.value, nodes, space, tight):
            value, chain = result
            theorems = tuple(dict.fromkeys(name for name in chain if name[:1] == "T"))
            return Level(value, None, tight, theorems, notion=to)
    raise _no_implication(start, end, space)


def _best_walk(
    start: MapNode,
    end: MapNode,
    value: Number,
    nodes: list[MapNode],
    space: Space | None,
    tight: bool,
) -> Reached | None:
    """The best way to the end, by equivalences only or by all steps."""
    best: dict[MapNode, Reached] = {start: (value, ())}
    fresh = [start]
    while fresh:
        better: dict[MapNode, None] = {}
        for here in fresh:
            level, chain = best[here]
            if len(chain) >= len(nodes):
                continue
            for there in nodes:
                for step in _steps_between(here, there, space):
                    if tight and not step.tight:
                        continue
                    carried = step(level)
                    if there not in best or carried < best[there][0]:
                        best[there] = carried, (*chain, step.theorem)
                        better[there] = None
        fresh = list(better)
    return best.get(end)


def _steps_between(here: MapNode, there: MapNode, space: Space | None) -> Iterable[Step]:
    if here == there or (there.records and not here.records):
        return ()
    if here.records:
        return steps.steps_record_steps(here.notion, there.notion, space)
    return steps.steps(here.notion, there.notion)


def _intermediate_notions(start: MapNode, end: MapNode) -> list[MapNode]:
    """The notions a chain may pass through: those without parameters, and kin of the two ends."""
    ends = [each.notion for each in (start, end)]
    kin = (kin for end in ends for kin in steps.related_notions(end))
    nodes = [start, end, *(MapNode(notion, False) for notion in (*steps.common_notions(), *kin))]
    if start.records:
        nodes += [MapNode(notion, True) for notion in steps.kin_record_steps(*ends)]
    return list(dict.fromkeys(nodes))


def _map_ends(
    level: Level, source: Notion, target: Notion, space: Space | None
) -> tuple[MapNode, MapNode]:
    """Both ends on the map. The case behind the level says which kind of replacing is meant, or the
    space does, or the other end."""
    case = level.witness
    measured = None
    if case is not None and (case.row is not None or case.entity is not None):
        measured = case.row is not None
    elif space is not None:
        measured = isinstance(space, Records)
    on = [notion.about_records for notion in (source, target)]
    first = on[0] if on[0] is not None else measured
    if first is None:
        first = bool(on[1])
    second = on[1] if on[1] is not None else first
    return MapNode(source, first), MapNode(target, second)


def _no_implication(start: MapNode, end: MapNode, space: Space | None) -> NoImplication:
    message = f"no implication is known from {start.notion!r} to {end.notion!r}"
    reason = None if start.records or end.records else find_counterexample(start.notion, end.notion)
    if start.records != end.records:
        reason = "one is about the values of rows, the other about who is in"
    if reason is not None:
        return NoImplication(f"{message}: {reason}", reason)
    priors, hint = [p for each in (start, end) for p in each.notion.priors], ""
    if space is None and any(steps.needs_space(prior) for prior in priors):
        hint = "say the space, as in convert(level, to, Records(rows, values))"
    elif priors:
        hint = "the theorems need a prior of full support, a possible default, or independent rows"
    return NoImplication(message, None, hint)
