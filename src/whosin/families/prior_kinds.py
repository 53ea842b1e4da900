"""Recognising what kind of prior a distribution is, exactly, on spaces small enough to list."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from whosin.errors import InvalidInput
from whosin.priors import FixedSize, Independent, Prior, Uniform
from whosin.spaces.subsets import Subsets
from whosin.validation import excerpt, of_kind


def check_prior(prior: Prior, space: Subsets) -> None:
    """Refuse what is not a prior, not a space, or a prior of another space."""
    if not isinstance(prior, Prior):
        raise InvalidInput("prior", "a prior, such as Independent([0.5, 0.2])", excerpt(prior))
    prior.check(of_kind(space, Subsets, "space", "Subsets(…)"))


def independent_beliefs(prior: Prior, space: Subsets) -> tuple[Fraction, ...] | None:
    """p_t for each entity if the prior is independent, otherwise None."""
    check_prior(prior, space)
    if isinstance(prior, Independent):
        return prior.beliefs(space)
    if isinstance(prior, Uniform):
        return (Fraction(1, 2),) * space.size
    beliefs = tuple(prior.belief(space, entity) for entity in range(space.size))
    same = Independent(beliefs).probabilities(space) == prior.probabilities(space)
    return beliefs if same else None


def fixed_size_structure(
    prior: Prior, space: Subsets
) -> tuple[frozenset[int], dict[int, Fraction], int] | None:
    """(entities surely in, odds of the uncertain ones, size) if the prior is independent given a
    size; otherwise nothing."""
    check_prior(prior, space)
    worlds = {
        frozenset(e for e in range(space.size) if number >> e & 1): mass
        for number, mass in enumerate(prior.probabilities(space))
        if mass
    }
    sizes = {len(world) for world in worlds}
    if len(sizes) != 1:
        return None
    size = sizes.pop()
    known = frozenset.intersection(*worlds)
    unsure = sorted(frozenset.union(*worlds) - known)
    if not unsure:
        return known, {}, size
    expected = {known | set(chosen) for chosen in combinations(unsure, size - len(known))}
    if expected != set(worlds):
        return None
    # Odds relative to the first uncertain entity, read off one exchange each, then checked.
    odds = {unsure[0]: Fraction(1)}
    for entity in unsure[1:]:
        with_first = next(w for w in worlds if unsure[0] in w and entity not in w)
        odds[entity] = worlds[with_first - {unsure[0]} | {entity}] / worlds[with_first]
    rebuilt = FixedSize(
        [
            Fraction(e in known) if e not in odds else odds[e] / (1 + odds[e])
            for e in range(space.size)
        ],
        size,
    )
    return (
        (known, odds, size) if rebuilt.probabilities(space) == prior.probabilities(space) else None
    )
