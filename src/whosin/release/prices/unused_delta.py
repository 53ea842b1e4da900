"""Whether a plan's δ is of any use to a batch.

A plan with a δ promises less, and yet allows a smaller ε: its ε is the one of Gaussian noise, which
needs the δ. Answers whose noise is pure, such as Laplace noise, would keep the stronger promise
with the larger ε of the plan without a δ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from whosin.calibration import Plan, calibrate
from whosin.errors import WhosinError
from whosin.exact import figures
from whosin.ledger import units
from whosin.release.prices.pricing import Offer
from whosin.release.what_counts import Caution


def with_unused_delta(plan: Plan, offers: Sequence[Offer]) -> list[Offer]:
    """The offers, with a caution each where none uses the plan's δ and the plan would allow more
    without it."""
    if not plan.delta or any(_uses_delta(offer.paid, plan.relation) for offer in offers):
        return list(offers)
    try:
        pure = calibrate(plan.target, plan.family, query=plan.query, entities=plan.entities)
    except WhosinError:  # there is no such plan
        return list(offers)
    allowed = tuple(figures(each.epsilon, 4, "down") for each in (pure, plan))
    if pure.relation != plan.relation or pure.epsilon <= plan.epsilon or len(set(allowed)) == 1:
        return list(offers)
    said = Caution("delta", epsilons=(pure.epsilon, plan.epsilon))
    return [replace(offer, cautions=(*offer.cautions, said)) for offer in offers]


def _uses_delta(offer: Offer, relation: str) -> bool:
    """Whether what is debited is not pure ε, or is a promise of its own."""
    if offer.charge.alone:
        return True
    cost = offer.charge.cost(relation)
    return cost.delta > 0 or cost.epsilon == units.INFINITE
