"""`convert`: the best level of one notion that a level of another implies.

Every step of the map is an increasing map of levels, so the best chain keeps the smallest level at
each notion (shortest paths). Where the level is tight and a chain of equivalences leads to the
other notion, its level is tight too, and that chain is taken; otherwise the best chain of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from whosin.errors import InvalidInput, NoImplication
from whosin.exact import Number
from whosin.notions import Level, Notion
from whosin.spaces import Records, Space, Subsets
from whosin.theorems import record_priors, record_steps, subset_steps
from whosin.theorems.counterexamples import counterexample
from whosin.theorems.step import Step
from whosin.validation import excerpt, of_kind


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
        NoImplication: no chain of theorems leads there; `counterexample` says why, if known.
    """
    source = of_kind(level, Level, "level").notion
    if not isinstance(to, Notion):
        raise InvalidInput("to", "a notion of privacy", excerpt(to))
    if not isinstance(source, Notion):
        raise InvalidInput("level", "one that a notion measured", "one without a notion")
    if space is not None and not isinstance(space, Subsets | Records):
        raise InvalidInput("space", "Subsets(…) or Records(…)", excerpt(space))
    start, end = _ends(level, source.canonical(), to.canonical(), space)
    nodes = _between(start, end)
    result = _walk(start, end, level.value, nodes, space, tight=True) if level.exact else None
    exact = result is not None
    if result is None:
        result = _walk(start, end, level.value, nodes, space, tight=False)
    if result is None:
        raise _none(start, end, space)
    value, chain = result
    theorems = tuple(dict.fromkeys(name for name in chain if name[:1] == "T"))
    return Level(value, None, exact, theorems, notion=to)


def _walk(
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
                for step in _steps(here, there, space):
                    if tight and not step.tight:
                        continue
                    carried = step(level)
                    if there not in best or carried < best[there][0]:
                        best[there] = carried, (*chain, step.theorem)
                        better[there] = None
        fresh = list(better)
    return best.get(end)


def _steps(here: MapNode, there: MapNode, space: Space | None) -> Iterable[Step]:
    if here == there:
        return ()
    if here.records:
        return record_steps.steps(here.notion, there.notion, space)
    return () if there.records else subset_steps.steps(here.notion, there.notion)


def _between(start: MapNode, end: MapNode) -> list[MapNode]:
    """The notions a chain may pass through: those without parameters, and kin of the two ends."""
    result = {start: None, end: None}
    ends = [each.notion for each in (start, end)]
    unsized = (*subset_steps.common(), *(kin for end in ends for kin in subset_steps.kin(end)))
    for notion in unsized:
        result[MapNode(notion, False)] = None
    if start.records:
        for notion in record_steps.kin(*ends):
            result[MapNode(notion, True)] = None
    return list(result)


def _ends(
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


def _none(start: MapNode, end: MapNode, space: Space | None) -> NoImplication:
    words = f"no implication is known from {start.notion!r} to {end.notion!r}"
    reason = None if start.records or end.records else counterexample(start.notion, end.notion)
    if start.records != end.records:
        reason = "one is about the values of rows, the other about who is in"
    if reason is not None:
        return NoImplication(f"{words}: {reason}", reason)
    priors = [p for each in (start, end) for p in each.notion.priors]
    if space is None and any(record_priors.needs_space(prior) for prior in priors):
        words += "; say the space, as in convert(level, to, Records(rows, values))"
    elif priors:
        words += "; the theorems need a prior of full support, a possible default, or rows that "
        words += "are independent"
    return NoImplication(words, None)
