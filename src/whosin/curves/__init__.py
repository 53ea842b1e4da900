"""Trade-off curves: what the best test of membership reaches, by its false-positive rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whosin.beliefs import NEIGHBOUR_RELATIONS
from whosin.calibration import Plan, Process, ProcessPlan
from whosin.curves.curve import CornerCurve, TradeOff, below_lines
from whosin.curves.mechanism_curves import (
    LaplaceCurve,
    LossCurve,
    NormalCurve,
    channel_curve,
    family_curve,
    gaussian_curve,
    geometric_curve,
    laplace_curve,
    pure_curve,
)
from whosin.errors import UnknownName, invalid_value
from whosin.exact import exp_up, rational
from whosin.families import Family
from whosin.mechanisms import Gaussian, Geometric, Laplace, Mechanism, read_channel
from whosin.mechanisms.channel import need_space
from whosin.spaces import Space

__all__ = ["CornerCurve", "LaplaceCurve", "LossCurve", "NormalCurve", "TradeOff", "process_curve"]
__all__ += ["tradeoff"]


def __dir__() -> list[str]:
    return __all__


NOISE_CURVES: dict[type, Callable[[Any, Space, str], TradeOff]] = {
    Laplace: laplace_curve,
    Gaussian: gaussian_curve,
    Geometric: geometric_curve,
}
"""Noise whose curve has a form of its own; other mechanisms have the curve of their channel."""


def tradeoff(
    mechanism: object,
    space: Space | None = None,
    relation: str | None = None,
    family: Family | None = None,
) -> TradeOff:
    """The trade-off curve of a mechanism, a channel, a plan, or a plan for a process.

    Args:
        space: the worlds, for mechanisms that do not bring them.
        relation: between which worlds: "add-remove" (with the person against without; the default)
            or "replace". A plan has its own.
        family: instead, over all priors of a family: "in" against "out" of any one person.
    """
    if relation is not None and relation not in NEIGHBOUR_RELATIONS:
        raise UnknownName("relation", str(relation), NEIGHBOUR_RELATIONS)
    own = mechanism.relation if isinstance(mechanism, Plan) else "add-remove"
    if isinstance(mechanism, Plan | ProcessPlan) and relation not in (None, own):
        raise invalid_value("relation", f"that of the plan, {own}", relation)
    if isinstance(mechanism, Plan):
        return _plan_tradeoff(mechanism)
    if isinstance(mechanism, ProcessPlan):
        return process_curve(mechanism.process, mechanism.multiplier)
    relation = relation or own
    if not isinstance(mechanism, Mechanism):
        raise invalid_value("mechanism", "a mechanism, a channel or a plan", repr(mechanism))
    if family is not None:
        return family_curve(mechanism, space, family)
    special = NOISE_CURVES.get(type(mechanism))
    if special is not None:
        return special(mechanism, need_space(space, type(mechanism).__name__), relation)
    return channel_curve(read_channel(mechanism, space), relation)


def process_curve(process: Process, multiplier: float, *, reverse: bool = False) -> TradeOff:
    """The curve of a process with noise of some multiplier: "in" against "out", or the reverse."""
    if process.is_plain:
        return NormalCurve(multiplier / process.steps**0.5 * (1 - 2**-50), exact=False)
    return LossCurve(process.losses(multiplier, reverse=reverse))


def _plan_tradeoff(plan: Plan) -> TradeOff:
    """The curve of a plan's Gaussian noise for a query; otherwise of all that its (ε, δ) allows."""
    if plan.query is not None and plan.noise is not None and plan.noise.kind == "gaussian":
        moves = plan.query.l2_sensitivity(plan.relation)
        return NormalCurve(plan.noise.scale / moves * (1 - 2**-50), exact=False)
    together = plan.target.against(plan.family).group  # those who come and go with someone
    ratio, failing = exp_up(together * rational(plan.epsilon)), rational(plan.dp_delta)
    if plan.one_way:
        return below_lines([(ratio, failing)])
    relation = plan.relation if together == 1 else f"{plan.relation}, groups of {together}"
    return pure_curve(ratio, failing, relation=relation if plan.composes else None)
