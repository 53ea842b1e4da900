"""`calibrate`: from an adversary and a target to a plan; plans for series; targets and families
from sections.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from whosin import beliefs
from whosin.calibration.failure import (
    gaussian_plan,
    hockey_stick_multiplier,
    least_scale,
    out_of_reach,
    rate_multiplier,
    smallest_scale,
)
from whosin.calibration.plan import Fallback, Plan, PlannedNoise, PlannedQuery
from whosin.calibration.rate_targets import RateTarget
from whosin.calibration.targets import HIPAA_TARGET, Epsilon, Target
from whosin.errors import (
    InvalidInput,
    Mistakes,
    UnknownName,
    WhosinError,
    at,
    check_kind,
    check_range,
    invalid_value,
    read_whole,
    shorten_value,
    spell,
)
from whosin.exact import (
    Number,
    exact_fraction,
    exp_float,
    exp_up,
    float_at_least,
    float_at_most,
    log_down,
    rational,
    read_ranged,
    round_down,
    round_up,
)
from whosin.families import FAMILY_KINDS, Adversary, AtMostKnown, Family, Independent, read_family
from whosin.noise.distributions import GaussianNoise, LaplaceNoise
from whosin.scenario_model import AdversarySection, TargetSection, Written, locate_errors
from whosin.spaces import Records

if TYPE_CHECKING:
    from whosin.notions.base import Level
    from whosin.priors import Prior

# `calibrate`: from an adversary and a target to a plan, on the safe side and re-checked.

ANY_BELIEFS = "any beliefs, everyone else known"
SIZE_KNOWN = "any beliefs, and the size known"
NOT_WHO_IS_IN = "about who is in, if the size is not known"
ANY_VALUE = "any beliefs about the value, or about who is in if the size is known"
LINKED_PEOPLE = "anything, such as that all are in or none"
MAX_ENLARGEMENTS = 60
"""How often the noise on a series is at least doubled before the search ends."""


def calibrate(  # noqa: C901 (a case for each kind of target and family)
    target: Target | None = None,
    family: Family | None = None,
    delta: float = 0.0,
    query: PlannedQuery | str | None = None,
    entities: int | None = None,
    reserve: object = 0.0,
    **said: object,
) -> Plan:
    """The largest ε, and so the least noise, that keeps the target against the family.

    `calibrate(posterior=0.6, prior=(0.05, 0.5))` says both by the keys of a scenario.

    Args:
        target: how sure an adversary may become.
        family: who may be looking; by default anyone with independent beliefs (one of m
            candidates for `Rho`).
        delta: the probability, given that a person is in, with which the promise may fail; 0 for
            none. Gaussian noise needs one. Promises about rates (`Advantage`, `Detection`,
            `BayesRisk`) do not fail: there it is the δ of (ε, δ)-DP, and is counted in.
        query: what is asked, to plan its noise: a `PlannedQuery`, or its kind such as "count".
        entities: how many people there are at the least; only `AtMostKnown` with a δ needs it.
        reserve: an ε that a ledger keeps for pure answers beside Gaussian ones, below the plan's.
        said: instead of `target` and `family`, the keys of [target] and [adversary].

    Raises:
        ImpossibleTarget: no useful mechanism meets the target; the message names the nearest.
    """
    if said:
        said |= {"delta": delta, "people": entities, "reserve": reserve}
        return _calibrate_said(target, family, said, query)
    if not isinstance(target, Target):
        message = f"{shorten_value(target)} is not a target"
        hint = "give Gamma(…), Posterior(…), Epsilon(…) or another one"
        raise InvalidInput(message, field="target", value=target, hint=hint)
    if isinstance(query, str):
        query = PlannedQuery(query)
    if query is not None:
        check_kind(
            query, PlannedQuery, "query", "a kind of query, such as count, or a PlannedQuery(…)"
        )
    if family is None:
        family = target.default_family()
    failing = read_ranged(delta, "delta", "at least 0 and below 1")
    if failing and not float_at_most(failing):
        raise invalid_value("delta", "0, or large enough for a float", delta)
    if entities is not None:
        entities = read_whole(entities, "entities", 1)
    adversary = target.against(family)
    if failing and isinstance(target, RateTarget):
        ratio: Number = target.ratio_with(failing)
    else:
        ratio = target.ratio(adversary.low, adversary.high)
    if ratio == math.inf:
        raise InvalidInput(
            "target rules nothing out: it is met without noise", field="target", value=target
        )
    epsilon, dp_delta, noise = _pure_epsilon(target, adversary, ratio, failing), 0.0, None
    if not epsilon:  # it is rounded down
        raise InvalidInput(
            "target leaves an ε that is too small for a float", field="target", value=target
        )
    theorems = (*adversary.theorems, *target.theorems)
    failing_at = float_at_most(failing)
    # (ε, δ)-DP, which needs no T18
    private = bool(failing) and (target.stated_epsilon is not None or target.averages)
    if query is not None:
        noise = laplace_noise(query.l1_sensitivity(adversary.relation) / rational(epsilon))
    if failing and isinstance(family, AtMostKnown):
        epsilon, dp_delta, noise = _plan_uncertain_count(
            family, target, ratio, failing_at, query, entities
        )
        theorems = theorems if private else (*theorems, "T18")
    elif failing:
        if adversary.group > 1:
            message = "a delta is not known for groups of people"
            raise InvalidInput(message, field="delta", value=delta, hint="leave it out")
        if private:
            dp_delta = failing_at
            # For one answer by itself all of its profile counts, not one ε.
            if isinstance(target, RateTarget):
                multiplier = rate_multiplier(target)
            else:
                multiplier = hockey_stick_multiplier(rational(epsilon), rational(dp_delta))
        else:
            most = round_down(exact_fraction(ratio))
            multiplier, _, *searched = gaussian_plan(most, failing_at)
            epsilon, dp_delta = (float_at_most(Fraction(each)) for each in searched)
            theorems = (*theorems, "T18")
        if query is not None:
            sigma = multiplier * query.l2_sensitivity(adversary.relation) * (1 + 2**-50)
            noise = continuous_noise(GaussianNoise(Fraction(sigma) ** 2), sigma)
    if not failing:
        fallback = list_fallbacks(adversary, exp_float(epsilon), exp_float(2 * epsilon), "T12")
        if adversary.group > 1:
            grouped = exp_float(adversary.group * epsilon)
            among = f"groups of up to {adversary.group}"
            fallback = (Fallback("D_NI^k", among, grouped, "T7"), *fallback)
    elif private or family.hides_others:
        # (ε, δ)-DP bounds no belief at this δ; a count that rests on uncertainty has nothing else.
        fallback = list_fallbacks(adversary, math.inf)
    else:
        sized = ratio_of_replacement(rational(epsilon), rational(dp_delta), rational(failing_at))
        fallback = list_fallbacks(adversary, round_up(exact_fraction(ratio)), sized)
    if family.about_records:
        words = {"D_I": NOT_WHO_IS_IN, "D_B": ANY_VALUE}
        fallback = tuple(
            replace(each, words=words.get(each.family, each.words)) for each in fallback
        )
    baseline = target.baseline()
    kept = read_ranged(reserve, "reserve", "at least 0")
    if kept and not (dp_delta and family.composes):
        message = "reserve needs a delta, and a promise that several releases share"
        raise InvalidInput(message, field="reserve", value=reserve, hint="leave it out")
    if kept >= rational(epsilon):
        raise invalid_value("reserve", f"below the ε of the plan, {spell(epsilon)}", reserve)
    return Plan(
        target=target,
        family=family,
        epsilon=epsilon,
        relation=adversary.relation,
        gamma=math.inf if private else _plan_gamma(target, adversary, ratio),
        baseline_epsilon=None if baseline is None else _log_ratio_down(target, baseline),
        theorems=tuple(dict.fromkeys((*theorems, "T12"))),
        tight=adversary.tight and (private or not failing),
        composes=family.composes,
        delta=failing_at,
        entities=entities,
        dp_delta=dp_delta,
        query=query,
        noise=noise,
        fallback=fallback,
        reserve=float_at_most(kept),
    )


def _calibrate_said(
    target: Target | None,
    family: Family | None,
    said: Written,
    query: PlannedQuery | str | None,
) -> Plan:
    """The plan for keys of a scenario that a caller gave by name."""
    given = {name.replace("_", "-"): each for name, each in said.items() if each not in (None, 0)}
    if target is not None or family is not None:
        name = next(iter(given))
        message = f"target and family are given as objects, and {name} by name"
        raise InvalidInput(message, field=name, hint="give both by name, or both as objects")
    promise, doubt = TargetSection.known_keys(), AdversarySection.known_keys()
    for name in given:
        if name not in promise and name not in doubt:
            raise UnknownName("argument", name, [*promise, *doubt])
    return read_plan(
        {name: each for name, each in given.items() if name in doubt},
        {name: each for name, each in given.items() if name in promise},
        query,
    )


def laplace_noise(scale: Fraction) -> PlannedNoise:
    """Laplace noise, its scale rounded up."""
    rounded = float_at_least(scale)
    return continuous_noise(LaplaceNoise(Fraction(rounded)), rounded)


def continuous_noise(noise: LaplaceNoise | GaussianNoise, scale: float) -> PlannedNoise:
    """What a plan says of noise before there is a grid: how far the continuous one strays."""
    return PlannedNoise(noise.kind, scale, noise.continuous_error, noise.continuous_quantile(0.95))


def _plan_uncertain_count(
    family: AtMostKnown,
    target: Target,
    ratio: Number,
    delta: float,
    query: PlannedQuery | None,
    entities: int | None,
) -> tuple[float, float, PlannedNoise]:
    """(ε, δ, noise) for a count whose other people the adversary is uncertain about (F19)."""
    if query is None or query.kind != "count":
        message = "at-most-known with a delta is planned for a count only"
        raise InvalidInput(
            message, field="query", value=query and query.kind, hint='use query="count"'
        )
    if entities is None or entities < 2:
        message = "at-most-known with a delta needs at least 2 people who could be in"
        raise InvalidInput(message, field="entities", value=entities)
    if target.stated_epsilon is not None or target.averages:
        scale, epsilon, dp_delta = least_scale(
            entities, family, _log_ratio_down(target, ratio), delta
        )
    else:
        most = round_down(exact_fraction(ratio))
        scale, _, epsilon, dp_delta = smallest_scale(entities, family, most, delta)
    if scale == 0:
        return epsilon, dp_delta, PlannedNoise("none", 0.0, 0.0, 0.0)
    noise = LaplaceNoise(Fraction(scale))  # of whole numbers: the geometric distribution
    within = float(noise.quantile(0.95))
    return epsilon, dp_delta, PlannedNoise("geometric", scale, noise.mean_error, within)


def _log_ratio_down(target: Target, ratio: Number) -> float:
    """ln ratio, or the ε that the target is, rounded down."""
    if target.stated_epsilon is not None:
        return float_at_most(target.stated_epsilon)
    return log_down(ratio if isinstance(ratio, float) else Fraction(ratio))


def _pure_epsilon(target: Target, adversary: Adversary, ratio: Number, delta: Fraction) -> float:
    """The largest ε with e^(group · ε) ≤ ratio, then checked against the target's definition."""
    epsilon = _log_ratio_down(target, ratio) / adversary.group
    for _ in range(64):
        if target.stated_epsilon is not None and adversary.group == 1:
            return epsilon
        worst = exp_up(rational(epsilon) * adversary.group)
        if isinstance(target, RateTarget):
            kept = target.met_with(worst, delta)
        else:
            kept = target.met(worst, adversary.low, adversary.high)
        if kept:
            return epsilon
        epsilon = math.nextafter(epsilon, 0)
    raise WhosinError("calibration did not meet its own target; please report this")


def _plan_gamma(target: Target, adversary: Adversary, ratio: Number) -> float:
    stated = target.stated_epsilon
    exact = exact_fraction(ratio) if stated is None else exp_up(stated)
    return round_up(Fraction(beliefs.worst_belief(exact, adversary.low, adversary.high).gamma))


def ratio_of_replacement(epsilon: Fraction, dp_delta: Fraction, failing: Fraction) -> float:
    """The ratio that someone who knows the size reaches but for the same failure probability, where
    (ε, δ) was accounted for additions and removals; infinite where it bounds nothing.

    Replacing a person is a removal and an addition: (2ε, (1 + e^ε)δ). By F9 a ratio of g is then
    exceeded with probability at most (1 + e^ε)δ/(1 − e^(2ε)/g), which is the failure probability f
    for g = e^(2ε)/(1 − (1 + e^ε)δ/f).
    """
    room = 1 - (1 + exp_up(epsilon)) * dp_delta / failing
    return round_up(exp_up(2 * epsilon) / room) if room > 0 else math.inf


def list_fallbacks(
    adversary: Adversary, ratio: float, sized: float = math.inf, theorem: str = "T18"
) -> tuple[Fallback, ...]:
    """What a bound on the ratio between the adversary's neighbours promises against those who know
    more: without exception (T12), or but for a failure probability, whatever the prior (T18).

    Args:
        sized: for whoever knows the size, where the neighbours differ by one addition.
    """
    unbounded = adversary.relation == "add-remove"
    return (
        Fallback("D_I", ANY_BELIEFS, ratio if unbounded else math.inf, theorem),
        Fallback("D_B", SIZE_KNOWN, sized if unbounded else ratio, theorem),
        Fallback("D_U", LINKED_PEOPLE, math.inf, "T3"),
    )


# From sections to a target, a family and a plan, for files, the command and the page. An error says
# at which key it is (`path`), such as adversary.prior.


def read_target(data: Written | TargetSection) -> Target:
    """The one target that was said."""
    from whosin.calibration import TARGET_KINDS

    with at("target"):
        said = TargetSection.read(data, "target").given
    order = list(TargetSection.known_keys())
    kinds = sorted(TARGET_KINDS.values(), key=lambda kind: order.index(kind.words_taken[0]))
    chosen = [kind for kind in kinds if kind.words_taken[0] in said]
    named = [*(kind.words_taken[0] for kind in chosen), *(["hipaa"] if "hipaa" in said else [])]
    with at("target"):
        beside = ((kind.words_taken[0], word) for kind in kinds for word in kind.words_taken[1:])
        for first, word in beside:
            if not named and word in said:  # said alone, such as fpr without tpr
                raise _refuse_missing(first, word)
        if len(named) != 1:
            listed = ", ".join([*(kind.words_taken[0] for kind in kinds), "hipaa"])
            several = f"target is stated {len(named)} times: {' and '.join(named)}"
            message = several if named else "target is missing"
            raise InvalidInput(message, field="target", value=named, hint=f"give one of {listed}")
        taken = chosen[0].words_taken if chosen else ("hipaa",)
        for word in said:
            if word not in (*taken, "delta", "reserve"):
                with at(word):
                    message = f"{word} has no meaning with {named[0]}"
                    raise InvalidInput(message, field=word, value=said[word], hint="leave it out")
        if not chosen:
            return HIPAA_TARGET
        for word in taken:
            if word not in said:
                raise _refuse_missing(word, taken[0])
        names = [each.name for each in fields(chosen[0])]  # type: ignore[arg-type]
        words = {name: chosen[0].spelled_as.get(name, name) for name in names}
        values = {name: said[word] for name, word in words.items()}
        return locate_errors(lambda: chosen[0](**values), {"": taken[0], **words})


def _refuse_missing(word: str, beside: str) -> InvalidInput:
    meaning = TargetSection.known_keys()[word].description.removeprefix("Or ").rstrip(".")
    hint = f"with {beside}, say {meaning[0].lower()}{meaning[1:]}"
    error = InvalidInput(f"{word} is missing", field=word, hint=hint)
    error.path = word
    return error


def read_adversary(data: Written | AdversarySection, target: Target) -> Family:
    """The family of adversaries that was said; anyone, if nothing was."""
    check_kind(target, Target, "target")  # type: ignore[type-abstract]
    with at("adversary"):
        said = AdversarySection.read(data, "adversary").given
        if said.get("secret") == "membership":
            del said["secret"]
        if "family" in said:
            others = [word for word in said if word not in ("family", "people")]
            with at("family"):
                if others:
                    message = f"family already says who looks, and {', '.join(others)} does too"
                    raise InvalidInput(
                        message, field="family", value=said["family"], hint="keep one of them"
                    )
                return read_family(said["family"])
        prior = said.get("prior")
        chosen = [kind for kind in FAMILY_KINDS.values() if kind.key in said]
        if len(chosen) > 1:
            words = " and ".join(kind.key for kind in chosen)
            with at(chosen[1].key):
                message = f"{words} are different adversaries"
                raise InvalidInput(message, field="adversary", value=words, hint="keep one of them")
        if chosen:
            key, value = chosen[0].key, said[chosen[0].key]
            range_words = dict.fromkeys(("low", "high", "low and high"), "prior")
            return locate_errors(lambda: chosen[0].chosen(value, prior), {"": key, **range_words})
        if prior is None:
            return target.default_family()
        with at("prior"):
            if all(1 < end < 100 for end in prior):
                meant = "..".join(spell(end / 100) for end in dict.fromkeys(prior))
                error = invalid_value("prior", "between 0 and 1", "a percentage", f"write {meant}")
                error.value, error.nearest = None, meant
                raise error
            return Independent(*prior)


def read_plan(
    adversary: Written | AdversarySection,
    target: Written | TargetSection,
    query: PlannedQuery | str | None = None,
) -> Plan:
    """The plan for an adversary and a target, and for a query if one is named."""
    with at("target"):
        promise = TargetSection.read(target, "target")
    with at("adversary"):
        doubt = AdversarySection.read(adversary, "adversary")
    mistakes, people = Mistakes(), doubt.people
    wanted: Target = Epsilon(1)
    with mistakes.collect():
        wanted = read_target(promise)
    with mistakes.collect():
        family = read_adversary(doubt, wanted)
    mistakes.raise_all()
    delta = Fraction(0) if promise.delta is None else promise.delta
    if not 0 <= delta < 1:  # before it becomes a float, which may not hold it
        with at("target.delta"):
            raise invalid_value("delta", "at least 0 and below 1", promise.written["delta"])
    rests = family.hides_others and bool(delta)  # on what nobody knows of the others
    with at("adversary.people"):
        if people is not None and not rests:
            message = "people has a meaning only with known and a delta"
            raise InvalidInput(message, field="people", value=people, hint="leave it out")
        if people is None and rests:
            message = "people is missing"
            hint = "with known and a delta, say how many could be in the data, at the least"
            raise InvalidInput(message, field="people", hint=hint)
    lead = next(word for word in promise.given if word not in ("delta", "reserve"))
    try:
        # This plan is for one count, alone; nothing else draws on what nobody knows.
        kind = query if query is not None or not rests else "count"
        return calibrate(wanted, family, float(delta), kind, people, promise.reserve or 0)
    except WhosinError as error:
        named = {"delta": "target.delta", "entities": "adversary.people"}
        named["reserve"] = "target.reserve"
        error.path = named.get(getattr(error, "field", ""), f"target.{lead}")
        raise


# The least Laplace noise that a series needs, beside what other methods would add.


@dataclass(frozen=True)
class ChainPlan:
    """The noise for a series.

    Attributes:
        epsilon: the leakage that is allowed.
        scale: the least Laplace scale that keeps it, and `leakage`, what was measured there.
        plain_scale: what differential privacy would add for the same ε, and `plain_leakage`, what
            that really leaks about a row of this series.
        group_scale: what group privacy would add, treating all rows as one.
        exact: whether the leakages are exact; otherwise upper bounds.
    """

    epsilon: float
    scale: float
    leakage: float
    plain_scale: float
    plain_leakage: float
    group_scale: float
    exact: bool


def measure_leakage(
    prior: Sequence[Prior], space: Records, statistic: object, scale: float
) -> Level:
    """The leakage of Laplace noise of this scale, the largest over the priors."""
    from whosin.mechanisms import Laplace
    from whosin.notions.bayesian_privacy import BayesianDifferentialPrivacy

    return BayesianDifferentialPrivacy(prior).measure(Laplace(statistic, scale), space)


def plan_series(
    prior: Sequence[Prior],
    space: Records,
    statistic: object,
    epsilon: float,
    accuracy: float = 1e-6,
) -> ChainPlan:
    """The least Laplace noise on a series whose leakage is at most ε, beside what others would add.

    More Laplace noise is post-processing of less (the quotient of the characteristic functions is
    a characteristic function), so the leakage falls with the scale; what is returned was measured.
    """
    from whosin.mechanisms import Laplace
    from whosin.notions.bayesian_privacy import noisy_sum

    check_range(epsilon, "epsilon", "above 0")
    asked = noisy_sum(Laplace(statistic, 1), space)
    assert asked is not None
    moved = asked.weights * np.array([float(step) for step in asked.step])  # by each row
    plain = float(np.abs(moved[:, None] - moved[None]).sum(axis=2).max()) / epsilon
    if plain == 0:
        message = "query is the same for every row, so there is nothing to protect"
        raise InvalidInput(message, field="query", value=asked)
    at_plain = measure_leakage(prior, space, statistic, plain)
    scale, best = plain, at_plain
    if float(at_plain.value) > epsilon * (1 + 1e-12):
        leaks = partial(measure_leakage, prior, space, statistic)
        scale, best = _least_scale(leaks, epsilon, plain, at_plain, accuracy)
    exact, leaked = best.exact and at_plain.exact, float(best.value)
    other = (plain, float(at_plain.value), plain * space.rows)
    return ChainPlan(epsilon, scale, leaked, *other, exact)


def _least_scale(
    leaks: Callable[[float], Level], epsilon: float, low: float, at_low: Level, accuracy: float
) -> tuple[float, Level]:
    """The least scale above `low` that keeps ε, by secants in logarithms inside a bracket."""
    high, at_high = low, at_low
    for _ in range(MAX_ENLARGEMENTS):
        if float(at_high.value) <= epsilon:
            break
        low, at_low = high, at_high
        high *= max(2.0, min(float(at_high.value) / epsilon, 1e6))
        at_high = leaks(high)
    else:
        raise out_of_reach("no Laplace noise was found whose leakage is below this epsilon")
    aim = math.log(epsilon) - accuracy / 4
    while high / low > 1 + accuracy and float(at_high.value) < epsilon * (1 - accuracy):
        drop = math.log(float(at_low.value)) - math.log(float(at_high.value))
        share = (math.log(float(at_low.value)) - aim) / drop if drop > 0 else 0.5
        # Stay inside, and never creep: at least a fiftieth of the bracket goes each time.
        share = min(max(share, 0.02), 0.98)
        middle = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        tried = leaks(middle)
        if float(tried.value) <= epsilon:
            high, at_high = middle, tried
        else:
            low, at_low = middle, tried
    return high, at_high
