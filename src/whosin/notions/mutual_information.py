"""Mutual information between the table and the output (Wang, Ying, Zhang 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whosin.mechanisms import as_channel
from whosin.notions.base import Notion
from whosin.notions.bayesian_differential_privacy import on_records
from whosin.notions.level import Level
from whosin.priors import Prior
from whosin.spaces import Records, Space


@dataclass(frozen=True)
class MutualInformation(Notion):
    """I(X; Y) in nats: an average, so no single case stands behind it and the witness is None.

    Args:
        prior: a prior on records.
    """

    prior: Prior
    unit: ClassVar[str] = "nats"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = on_records(as_channel(mechanism, space))
        channel.need_finite("mutual information")
        assert isinstance(channel.space, Records)
        mass = self.prior.on_records(channel.space, float)
        joint = mass[:, None] * channel.likelihoods
        outputs = joint.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = joint * (np.log(channel.likelihoods) - np.log(outputs))
        value = float(np.where(joint > 0, terms, 0.0).sum())
        return Level(max(value, 0.0), None, True, (), notion=self)
