"""The coupling of Li13 Lemma 4.9, built by maximum flow on small spaces.

Under a prior of known size k, the data given t ∈ T (less t) and the data given t ∉ T can be drawn
together so that the first is always contained in the second: T2 ⊂ T1, |T2| = k − 1, |T1| = k. Then
T2 ∪ {t} and T1 exchange one entity, which is why bounded DP covers all of D_B (T5).
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from itertools import pairwise

from whosin.errors import InvalidInput, WhosinError
from whosin.exact import flint_rational, rational
from whosin.priors import Prior
from whosin.spaces import CountLattice, Subsets
from whosin.validation import excerpt, of_kind, whole

World = frozenset[int]
Node = tuple[str, World]


def coupling(prior: Prior, space: Subsets, entity: int) -> dict[tuple[World, World], Fraction]:
    """Pr[T1, T2] with T2 ⊂ T1, exactly; its margins are Pr[T1 | ¬t] and Pr[T2 ∪ {t} | t].

    Raises:
        InvalidInput: the entity is certain under the prior, so there is nothing to couple.
        WhosinError: there is no coupling; the lemma is about independent priors of known size,
            and others need not have one.
    """
    if not isinstance(prior, Prior):
        raise InvalidInput("prior", "a prior of known size", excerpt(prior))
    of_kind(space, Subsets, "space")
    if whole(entity, "entity", 0) >= space.size:
        raise InvalidInput("entity", f"from 0 to {space.size - 1}", entity)
    if not 0 < prior.belief(space, entity) < 1:
        raise InvalidInput("entity", "uncertain under the prior", space.entities[entity])
    without, with_it = _conditionals(prior, space, entity)
    source, sink = ("source", World()), ("sink", World())
    room: dict[Node, dict[Node, Fraction]] = {source: {}, sink: {}}
    for world, mass in without.items():
        room[source]["out", world] = mass
        room["out", world] = {
            ("in", world - {gone}): Fraction(1) for gone in world if world - {gone} in with_it
        }
    for world, mass in with_it.items():
        room.setdefault(("in", world), {})[sink] = mass
    flow: dict[tuple[World, World], Fraction] = {}
    shipped = Fraction(0)
    while path := _shortest_path(room, source, sink):
        steps = list(pairwise(path))
        amount = min(room[tail][head] for tail, head in steps)
        for tail, head in steps:
            room[tail][head] -= amount
            room[head][tail] = room[head].get(tail, Fraction(0)) + amount
        shipped += amount
    if shipped != 1:
        raise WhosinError(f"no coupling exists: only {shipped} of the mass can be paired")
    for world in without:
        for gone in world:
            paired = room.get(("in", world - {gone}), {}).get(("out", world), Fraction(0))
            if paired:
                flow[world, world - {gone}] = paired
    return flow


def _conditionals(
    prior: Prior, space: Subsets, entity: int
) -> tuple[dict[World, Fraction], dict[World, Fraction]]:
    """(T1 → Pr[T1 | ¬t], T2 → Pr[T2 ∪ {t} | t])."""
    lattice = CountLattice.single(space)
    present, absent = (
        {frozenset(lattice.representative(w)): rational(m) for w, m in enumerate(side) if m != 0}
        for side in prior.given(lattice, entity, flint_rational)
    )
    return absent, {world - {entity}: mass for world, mass in present.items()}


def _shortest_path(
    room: dict[Node, dict[Node, Fraction]], source: Node, sink: Node
) -> list[Node] | None:
    """The nodes of a shortest path with room left, breadth first (Edmonds and Karp)."""
    came: dict[Node, Node] = {source: source}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        if node == sink:
            path = [sink]
            while path[-1] != source:
                path.append(came[path[-1]])
            return path[::-1]
        for head, left in room[node].items():
            if left > 0 and head not in came:
                came[head] = node
                queue.append(head)
    return None
