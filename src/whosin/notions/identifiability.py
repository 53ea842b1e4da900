"""Identifiability (Wang, Ying, Zhang 2014, Definition 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from whosin.exact import flint_rational, is_exact, log_up, rational
from whosin.mechanisms import as_channel
from whosin.notions.base import Notion, shown
from whosin.notions.bayesian_differential_privacy import on_records
from whosin.notions.level import Level, Witness
from whosin.priors import Prior
from whosin.spaces import Records, Space


@dataclass(frozen=True)
class Identifiability(Notion):
    """Pr[x|y] ≤ e^ε Pr[x'|y] for tables x, x' that differ in one row: who it is stays open.

    Pairs of which neither is possible with y are passed over. Unlike the other notions it can be
    violated by the prior alone: no mechanism is below ε_X.

    Args:
        prior: a prior on records.
    """

    prior: Prior
    unit: ClassVar[str] = "ε"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = on_records(as_channel(mechanism, space))
        records = channel.space
        assert isinstance(records, Records)
        mass = self.prior.on_records(records, float)
        joint = mass[:, None] * channel.wide
        best: tuple[Any, int, tuple[Any, ...]] | None = None
        for row in range(records.rows):
            view = records.axis(joint, row)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = view.max(axis=1) / view.min(axis=1)
            ratio = np.where(np.isnan(ratio), 1.0, ratio)
            value = ratio.max()
            if best is None or value > best[0]:
                best = value, row, np.unravel_index(int(ratio.argmax()), ratio.shape)
        assert best is not None
        _, row, (before, rest) = best
        after, output = divmod(int(rest), joint.shape[1])
        column = records.axis(joint, row)[int(before), :, int(rest)]
        high, low = int(np.argmax(column)), int(np.argmin(column))
        stride = records.stride(row)
        worlds = [(int(before) * records.values + value) * stride + after for value in (high, low)]
        exact_mass = self.prior.on_records(records, flint_rational)
        top, bottom = ([(world, rational(exact_mass[world]))] for world in worlds)
        ratio_at = channel.ratio(top, bottom, output)
        exact = channel.exact is not None and is_exact(*self.prior.parameters)
        known = dict(enumerate(records.world(worlds[0])))
        del known[row]
        belief = (
            Fraction(1) if ratio_at == math.inf else Fraction(ratio_at) / (1 + Fraction(ratio_at))
        )
        odds = top[0][1] + bottom[0][1]
        case = Witness(
            output=channel.outputs[output],
            prior=shown(top[0][1] / odds if odds else Fraction(1, 2), exact),
            posterior=shown(belief, exact),
            ratio=shown(ratio_at, exact),
            row=row,
            known=known,
            values=(high, low),
        )
        return Level(max(log_up(ratio_at), 0.0), case, True, (), notion=self)
