"""How far beliefs about one row move on average over outputs (T23)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from whosin.exact import Array, Rational, flint_rational, is_exact, rational, round_up
from whosin.notions.base import OfOnePrior
from whosin.notions.certain import on_records
from whosin.notions.level import Level
from whosin.spaces import Records, Space

EXACT_ENTRIES = 1 << 16
"""Up to this many probabilities sums are exact; beyond it floats, enlarged by their rounding."""


@dataclass(frozen=True)
class MeanShift(OfOnePrior):
    """The mean over outputs of the total variation between what is believed about one row after
    and before, the largest over rows; for a binary row that is |posterior − prior|.

    It is an average, so no single case stands behind it and the witness is None.

    Args:
        prior: a prior on records.
    """

    unit: ClassVar[str] = "level"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel, records = on_records(mechanism, space)
        channel.need_finite("the mean shift of beliefs")
        if channel.likelihoods.size > EXACT_ENTRIES:
            mass = self.prior.on_records(records, float)
            value = max(_shifts(mass[:, None] * channel.likelihoods, mass, records))
            slack = 1 + Fraction(8 * (records.worlds + records.rows + 8), 2**53)
            return Level(round_up(rational(value) * slack), None, False, (), notion=self)
        exact_mass = self.prior.on_records(records, flint_rational)
        joint = exact_mass[:, None] * channel.rationals
        result = rational(max(_shifts(joint, exact_mass, records)))
        exact = channel.exact is not None and is_exact(*self.prior.parameters)
        return Level(Rational(result) if exact else round_up(result), None, True, (), notion=self)


def _shifts(joint: Array, mass: Array, space: Records) -> list[Any]:
    """½ Σ |Pr[v, y] − Pr[v] Pr[y]| over a row's values v and the outputs y, for each row."""
    outputs = joint.sum(axis=0)
    result = []
    for row in range(space.rows):
        view = space.axis(joint, row)
        both = view.sum(axis=0).reshape(space.values, -1, joint.shape[1]).sum(axis=1)
        alone = space.axis(mass[:, None], row).sum(axis=0).reshape(space.values, -1).sum(axis=1)
        result.append(np.abs(both - alone[:, None] * outputs[None, :]).sum() / 2)
    return result
