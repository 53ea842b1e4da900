"""Whether sums over a prior were lost to the range of floats (see `spaces.width`).

A sum of probabilities times likelihoods that underflows looks like an impossible output, whose
ratio is 0/0 = 1. So sums that are suspiciously small are compared with what is really possible.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from whosin.exact import Array, flint_rational
from whosin.priors import Independent, Prior, Uniform
from whosin.spaces.lattice import Lattice
from whosin.spaces.width import Underflow, trust

FEW = 900
"""Up to this many coins the probability of all of them is a float."""


def sums_given(
    prior: Prior, lattice: Lattice, entity: int, array: Array, largest: Array
) -> tuple[Array, Array]:
    """(Pr[o|t], Pr[o|¬t]) for an entity that is uncertain.

    Args:
        largest: the largest likelihood of each output.

    Raises:
        Underflow: a search in floats lost some of them.
    """
    exact = array.dtype == object
    present, absent = prior.given(lattice, entity, flint_rational if exact else float)
    if not exact:
        for side in (present, absent):
            if not abs(side.sum() - 1) < 1e-6:
                raise Underflow
    sides = present @ array, absent @ array
    if not exact:
        for which, sums in enumerate(sides):
            trust(
                sums,
                largest,
                lambda which=which: possible(prior, lattice, entity)[which] @ (array > 0),  # type: ignore[misc]
            )
    return sides


def possible(prior: Prior, lattice: Lattice, entity: int) -> tuple[Array, Array]:
    """The classes of worlds that are possible given that the entity is in, and that it is out."""
    coins = _coins(prior, lattice)
    if coins is not None:
        present, absent = coins.given(lattice, entity, float)
    else:
        present, absent = prior.given(lattice, entity, flint_rational)
    return _positive(present), _positive(absent)


def support(prior: Prior, lattice: Lattice) -> Array:
    """The classes of worlds that are possible."""
    coins = _coins(prior, lattice)
    if coins is not None:
        return _positive(coins.mass(lattice, float))
    return _positive(prior.mass(lattice, flint_rational))


def _coins(prior: Prior, lattice: Lattice) -> Independent | None:
    """For few independent entities the prior with the same worlds and no small probabilities."""
    if not isinstance(prior, Independent | Uniform) or lattice.space.size > FEW:
        return None
    beliefs = [prior.belief(lattice.space, other) for other in range(lattice.space.size)]
    return Independent([p if p in (0, 1) else Fraction(1, 2) for p in beliefs])


def _positive(mass: Array) -> Array:
    return np.asarray(mass != 0, dtype=bool)
