"""The best mechanism for a level of privacy, or the most privacy for a distortion."""

from __future__ import annotations

import math

from whosin.distortion.at_distortion import at_distortion
from whosin.distortion.at_epsilon import at_epsilon
from whosin.distortion.closed.costs import check_cost
from whosin.distortion.optimum import NOTIONS, Optimum
from whosin.distortion.symmetry.detection import structure
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.extras import needs
from whosin.priors import Prior
from whosin.spaces import Space

LARGEST = 700.0
"""ε beyond which e^ε is no float, and every mechanism is as good as the data themselves."""


def best(
    space: Space,
    prior: Prior,
    epsilon: object = None,
    distortion: object = None,
    notion: str = "dp",
    cost: object = None,
) -> Optimum:
    """The mechanism with the least distortion at ε, or with the least ε at a distortion.

    Args:
        space: `Records(rows, values)`.
        prior: how the data are distributed. Independent rows or blocks, and rows that it treats
            alike, make large tables possible.
        epsilon: the level: ε, or nats of mutual information.
        distortion: or the expected distortion to stay within.
        notion: "dp" (replace), "identifiability" or "mutual-information".
        cost: m × m, what showing b for a costs; Hamming by default.

    Raises:
        MissingExtra: whosin[tradeoff] is not installed.
        InvalidInput: a negative ε, a distortion outside [0, n], a prior that does not fit.
        ImpossibleTarget: identifiability below ε_X, which no mechanism reaches.
        Unsupported: a size beyond reach; the message says which structure would help.
    """
    needs("tradeoff")
    if notion not in NOTIONS:
        raise UnknownName("notion", str(notion), NOTIONS)
    if (epsilon is None) == (distortion is None):
        raise InvalidInput("epsilon or distortion", "given, one of the two", "both or none")
    known = structure(space, prior)
    matrix = check_cost(known.space, cost)
    if epsilon is not None:
        return at_epsilon(known, matrix, notion, _level(epsilon, notion))
    most = rational(known.space.rows) * rational(float(matrix.max()))
    wanted = rational(distortion, "distortion")
    if not 0 <= wanted <= most:
        raise InvalidInput("distortion", f"from 0 to {float(most):g}", f"{float(wanted):g}")
    return at_distortion(known, matrix, notion, wanted)


def _level(epsilon: object, notion: str) -> float:
    value = math.inf if epsilon in (math.inf, "inf") else float(rational(epsilon, "epsilon"))
    if value < 0:
        raise InvalidInput("epsilon", "at least 0", f"{value:g}")
    if LARGEST < value < math.inf and notion != "mutual-information":
        raise InvalidInput("epsilon", f"at most {LARGEST:g}, or infinite", f"{value:g}")
    return value
