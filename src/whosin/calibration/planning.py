"""`calibrate`: from an adversary and a target to a plan, on the safe side and re-checked."""

from __future__ import annotations

import math
from fractions import Fraction

from whosin import beliefs
from whosin.calibration.counts import least_scale, smallest_scale
from whosin.calibration.failure import gaussian_plan, hockey_stick_multiplier, rate_multiplier
from whosin.calibration.plan import Fallback, Noise, Plan
from whosin.calibration.queries import PlannedQuery
from whosin.calibration.rate_targets import RateTarget
from whosin.calibration.target import Target
from whosin.errors import InvalidInput, WhosinError
from whosin.exact import Number, exp_float, exp_up, log_down, ranged, rational, round_down, round_up
from whosin.families import Adversary, AtMostKnown, Family
from whosin.validation import of_kind, whole

TAIL_95 = math.log(20)
ANYTHING = "any beliefs, everyone else known"
SIZED = "any beliefs, and the size known"
LINKED = "anything, such as that all are in or none"
NORMAL_95 = 1.959963984540054


def calibrate(
    target: Target,
    family: Family | None = None,
    delta: float = 0.0,
    query: PlannedQuery | str | None = None,
    entities: int | None = None,
) -> Plan:
    """The largest ε, and so the least noise, that keeps the target against the family.

    Args:
        target: how sure an adversary may become.
        family: who may be looking; by default anyone with independent beliefs (one of m
            candidates for `Rho`).
        delta: the probability, given that a person is in, with which the promise may fail; 0 for
            none. Gaussian noise needs one. Promises about rates (`Advantage`, `Detection`,
            `BayesRisk`) do not fail: there it is the δ of (ε, δ)-DP, and is counted in.
        query: what is asked, to plan its noise: a `PlannedQuery`, or its kind such as "count".
        entities: how many people there are at the least; only `AtMostKnown` with a δ needs it.

    Raises:
        ImpossibleTarget: no useful mechanism meets the target; the message names the nearest.
    """
    if not isinstance(target, Target):
        raise InvalidInput("target", "Gamma(…), Posterior(…), Epsilon(…), …", repr(target))
    if isinstance(query, str):
        query = PlannedQuery(query)
    if query is not None:
        of_kind(
            query, PlannedQuery, "query", "a kind of query, such as count, or a PlannedQuery(…)"
        )
    if family is None:
        family = target.default_family()
    failing = ranged(delta, "delta", "at least 0 and below 1")
    if entities is not None:
        entities = whole(entities, "entities", 1)
    adversary = target.against(family)
    if failing and isinstance(target, RateTarget):
        ratio: Number = target.ratio_with(failing)
    else:
        ratio = target.ratio(adversary.low, adversary.high)
    if ratio == math.inf:
        raise InvalidInput("target", "one that rules something out", "one met without any noise")
    epsilon, dp_delta, noise = _pure(target, adversary, ratio, failing), 0.0, None
    if not epsilon:  # it is rounded down
        raise InvalidInput("target", "one that leaves an ε that a float can hold", "a smaller one")
    theorems = (*adversary.theorems, *target.theorems)
    failing_at = round_down(failing)
    # (ε, δ)-DP, which needs no T18
    private = bool(failing) and (target.stated_epsilon is not None or target.averages)
    if query is not None:
        noise = laplace(query.sensitivity(adversary.relation) / Fraction(epsilon))
    if failing and isinstance(family, AtMostKnown):
        epsilon, dp_delta, noise = _uncertain(family, target, ratio, failing_at, query, entities)
        theorems = theorems if private else (*theorems, "T18")
    elif failing:
        if adversary.group > 1:
            raise InvalidInput("delta", "0 for groups", delta)
        if private:
            dp_delta = failing_at
            multiplier = _private_multiplier(target, rational(epsilon), rational(dp_delta))
        else:
            gaussian = gaussian_plan(round_down(rational(ratio)), failing_at)
            multiplier, epsilon, dp_delta = gaussian.multiplier, gaussian.epsilon, gaussian.delta
            theorems = (*theorems, "T18")
        if query is not None:
            sigma = multiplier * query.euclidean(adversary.relation) * (1 + 2**-50)
            error = sigma * math.sqrt(2 / math.pi)
            noise = Noise("gaussian", sigma, error, NORMAL_95 * sigma)
    if not failing:
        fallback = fallbacks(epsilon, adversary)
    elif private or family.hides_others:
        # (ε, δ)-DP bounds no belief at this δ; a count that rests on uncertainty has nothing else.
        fallback = failing_fallbacks(math.inf, adversary)
    else:
        fallback = failing_fallbacks(round_up(rational(ratio)), adversary)
    baseline = target.baseline()
    return Plan(
        target=target,
        family=family,
        epsilon=epsilon,
        relation=adversary.relation,
        gamma=math.inf if private else _gamma(target, adversary, ratio),
        baseline_epsilon=None if baseline is None else _log(target, baseline),
        theorems=tuple(dict.fromkeys((*theorems, "T12"))),
        tight=adversary.tight and (private or not failing),
        composes=family.composes,
        delta=failing_at,
        entities=entities,
        dp_delta=dp_delta,
        query=query,
        noise=noise,
        fallback=fallback,
    )


def laplace(scale: Fraction) -> Noise:
    """Laplace noise, its scale rounded up."""
    rounded = round_up(scale)
    return Noise("laplace", rounded, rounded, TAIL_95 * rounded)


def _uncertain(
    family: AtMostKnown,
    target: Target,
    ratio: Number,
    delta: float,
    query: PlannedQuery | None,
    entities: int | None,
) -> tuple[float, float, Noise]:
    """(ε, δ, noise) for a count whose other people the adversary is uncertain about (F19)."""
    if query is None or query.kind != "count":
        raise InvalidInput("query", "count, for at-most-known with a delta", query and query.kind)
    if entities is None or entities < 2:
        raise InvalidInput("entities", "at least 2, for at-most-known with a delta", entities)
    if target.stated_epsilon is not None or target.averages:
        scale, epsilon, dp_delta = least_scale(entities, family, _log(target, ratio), delta)
    else:
        most = round_down(rational(ratio))
        scale, _, epsilon, dp_delta = smallest_scale(entities, family, most, delta)
    if scale == 0:
        return epsilon, dp_delta, Noise("none", 0.0, 0.0, 0.0)
    alpha = math.exp(-1 / scale)
    within = max(0, math.ceil(math.log(0.05 * (1 + alpha) / 2) / math.log(alpha)) - 1)
    return epsilon, dp_delta, Noise("geometric", scale, 2 * alpha / (1 - alpha**2), float(within))


def _log(target: Target, ratio: Number) -> float:
    """ln ratio, or the ε that the target is, rounded down."""
    if target.stated_epsilon is not None:
        return round_down(target.stated_epsilon)
    return log_down(ratio if isinstance(ratio, float) else Fraction(ratio))


def _private_multiplier(target: Target, epsilon: Fraction, delta: Fraction) -> float:
    """The least Gaussian noise for a target that means (ε, δ)-DP, or that bounds a rate: for one
    answer by itself all of its profile counts, not one ε."""
    if isinstance(target, RateTarget):
        return rate_multiplier(target)
    return hockey_stick_multiplier(epsilon, delta)


def _pure(target: Target, adversary: Adversary, ratio: Number, delta: Fraction) -> float:
    """The largest ε with e^(group · ε) ≤ ratio, then checked against the target's definition."""
    epsilon = _log(target, ratio) / adversary.group
    for _ in range(64):
        if target.stated_epsilon is not None and adversary.group == 1:
            return epsilon
        worst = exp_up(Fraction(epsilon) * adversary.group)
        if isinstance(target, RateTarget):
            kept = target.met_with(worst, delta)
        else:
            kept = target.met(worst, adversary.low, adversary.high)
        if kept:
            return epsilon
        epsilon = math.nextafter(epsilon, 0)
    raise WhosinError("calibration did not meet its own target; please report this")


def _gamma(target: Target, adversary: Adversary, ratio: Number) -> float:
    stated = target.stated_epsilon
    exact = rational(ratio) if stated is None else exp_up(stated)
    return round_up(Fraction(beliefs.worst_belief(exact, adversary.low, adversary.high).gamma))


def fallbacks(epsilon: float, adversary: Adversary) -> tuple[Fallback, ...]:
    """T12: what ε between these neighbours promises against adversaries who know more."""
    unbounded = adversary.relation == "add-remove"
    rows = []
    if adversary.group > 1:
        grouped = exp_float(adversary.group * epsilon)
        rows.append(Fallback("D_NI^k", f"groups of up to {adversary.group}", grouped, "T7"))
    any_belief = exp_float(epsilon) if unbounded else math.inf
    sized = exp_float(2 * epsilon if unbounded else epsilon)
    return (
        *rows,
        Fallback("D_I", ANYTHING, any_belief, "T12"),
        Fallback("D_B", SIZED, sized, "T12"),
        Fallback("D_U", LINKED, math.inf, "T3"),
    )


def failing_fallbacks(ratio: float, adversary: Adversary) -> tuple[Fallback, ...]:
    """The same with a failure probability: the bound on the ratio holds whatever the prior (T18),
    between the neighbours that were accounted for."""
    unbounded = adversary.relation == "add-remove"
    return (
        Fallback("D_I", ANYTHING, ratio if unbounded else math.inf, "T18"),
        Fallback("D_B", SIZED, math.inf if unbounded else ratio, "T18"),
        Fallback("D_U", LINKED, math.inf, "T3"),
    )
