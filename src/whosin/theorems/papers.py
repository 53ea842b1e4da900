"""Theorems of the papers as maps between parameters: Li13, Tramèr15, Zhao17, Wang14, T22 to T24."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any

from whosin import beliefs
from whosin.errors import (
    InvalidInput,
    WhosinError,
    check_kind,
    check_numbers,
    check_range,
    invalid_value,
    read_list,
    read_real,
    read_whole,
    shorten_value,
)
from whosin.exact import (
    BALL_BITS,
    MAX_FLOAT_EXPONENT,
    Number,
    ball,
    ball_ratio_upper,
    ball_up,
    certificate_precision,
    exact_fraction,
    exp_float,
    exp_up,
    flint_rational,
    log_down,
    log_up,
    probability,
    rational,
    read_ranged,
    round_up,
)
from whosin.priors import Prior
from whosin.spaces import CountLattice, Subsets


# Theorems of Li et al. 2013 as maps between parameters: T8, T9, T10 and T13.
#
# T1 and T2, on which the rest stands, are `beliefs.gamma` and its sup `beliefs.worst_belief`: a
# ratio bound r gives γ = r for every prior, and exactly that over a scalable family. T3 is the
# level under `AnyPrior`; T4 to T7 follow from what a family says of its neighbours (`steps`).
#
# Each map takes and returns γ, ε (nats) or ρ. Exact rationals stay exact wherever no exponential
# enters. Checked here: that parameters are in range. The caller ensures that the premise holds.
@check_numbers
def one_of_from_identifiability(rho: Number, m: int) -> Number:
    """T8, Li13 Theorem 5.6: (ρ, m)-DI ⇔ (D_C^m, γ)-PMP, γ = max(ρm, (m−1)/(m(1−ρ)))."""
    if m < 2:
        raise invalid_value("m", "at least 2", m)
    if not _uniform_belief(rho, m) <= rho <= 1:
        raise invalid_value("rho", f"between 1/{m} and 1", rho)
    return math.inf if rho == 1 else max(rho * m, (m - 1) / (m * (1 - rho)))


@check_numbers
def identifiability_from_one_of(gamma: Number, m: int) -> Number:
    """T8, the other way: ρ = min(γ/m, 1 − (m−1)/(mγ))."""
    if m < 2:
        raise invalid_value("m", "at least 2", m)
    gamma = _read_gamma(gamma)
    return max(min(gamma / m, 1 - (m - 1) / (m * gamma)), _uniform_belief(gamma, m))


@check_numbers
def bounded_from_identifiability(rho: Number) -> float:
    """T9, Li13 Theorem 5.7 for two candidates: (ρ, 2)-DI ⇔ ln(ρ/(1−ρ))-BDP.

    For m > 2 there is no map: `mechanisms.ExceptFirst` is the counterexample.
    """
    if not Fraction(1, 2) <= rho <= 1:
        raise invalid_value("rho", "between 1/2 and 1", rho)
    return math.inf if rho == 1 else log_up(rho / (1 - rho))


@check_numbers
def identifiability_from_bounded(epsilon: Number) -> float:
    """T9, the other way: ε-BDP ⇔ (1/(1+e^−ε), 2)-DI."""
    if check_range(epsilon, "epsilon", "at least 0") >= MAX_FLOAT_EXPONENT:
        return 1.0
    odds = exp_up(epsilon)
    return round_up(odds / (1 + odds))


@check_numbers
def sampled_from_sampling(growth: Number, beta: Number) -> Number:
    """T10, Li13 Theorem 5.10: (β, ε)-positive DPS ⇔ (D_F^β, γ)-PMP with e^ε = `growth` and
    γ = max(e^ε, (e^ε − 1 + β)/(β e^ε)).

    β < 1: at β = 1 nobody in D_F^β is uncertain, every mechanism is 1-PMP, and only ⇒ is left.
    """
    check_range(beta, "beta", "strictly between 0 and 1")
    if growth < 1:
        raise invalid_value("growth", "at least 1, as e^ε is", growth)
    if growth == math.inf:
        return math.inf
    return max(growth, (growth - 1 + beta) / (beta * growth))


@check_numbers
def sampling_from_sampled(gamma: Number, beta: Number) -> Number:
    """T10, the other way: the largest e^ε of positive DPS that gives γ under D_F^β.

    Both branches of γ must stay below: e^ε ≤ γ, and where γβ < 1, e^ε ≤ (1−β)/(1−γβ).
    """
    check_range(beta, "beta", "strictly between 0 and 1")
    gamma = _read_gamma(gamma)
    return min(gamma, (1 - beta) / (1 - gamma * beta)) if gamma * beta < 1 else gamma


@check_numbers
def mixed(*gammas: Number) -> Number:
    """T13, Li13 Theorem 3.11: a mixture of (D, γ_i)-PMP mechanisms is (D, max γ_i)-PMP.

    The paper's proof averages posteriors with weights p and 1 − p; the right weights are
    p Pr[A1∈S] and (1−p) Pr[A2∈S] (erratum E7). The theorem stands.
    """
    if not gammas:
        raise InvalidInput("gammas is empty", field="gammas", hint="give the γ of each part")
    return max(_read_gamma(gamma) for gamma in gammas)


@check_numbers
def post_processed(gamma: Number) -> Number:
    """T13, Li13 Theorem 3.12: post-processing keeps (D, γ)-PMP."""
    return _read_gamma(gamma)


def _read_gamma(value: Number) -> Number:
    check_range(value, "gamma", "at least 1")
    return Fraction(value) if isinstance(value, int) else value


def _uniform_belief(like: Number, m: int) -> Number:
    """1/m as a float beside a float, so that rounding does not refuse a ρ of 1/m."""
    return 1 / m if isinstance(like, float) else Fraction(1, m)


# Bounded priors (Tramèr et al. 2015): T11, and what is left when the bounds are wrong, T12.
@check_numbers
def bounded_from_epsilon(epsilon: float, low: Fraction, high: Fraction) -> float:
    """T11: ε-UDP ⇒ (γ, D_I^[a,b])-PMP and ε-BDP ⇒ (γ, D_B^[a,b])-PMP for the γ returned.

    γ = max( e^ε / ((e^ε−1)a + 1), (e^ε−1)b + 1 ), rounded up. Tight for positive UDP; for BDP
    when a + b = 1, otherwise sufficient only.
    """
    check_range(epsilon, "epsilon", "at least 0")
    ratio = exp_up(epsilon) if epsilon < math.inf else math.inf
    gamma = beliefs.worst_belief(ratio, rational(low), rational(high)).gamma
    return gamma if isinstance(gamma, float) else round_up(Fraction(gamma))


@check_numbers
def epsilon_from_bounded(gamma: Number, low: Fraction, high: Fraction) -> float:
    """T11, the other way: the largest ε that keeps γ at every prior in [a, b], rounded down.

    e^ε = min(g(a, γ), g(b, γ)). It is what a level of PMP under D_I^[a,b] says about positive UDP.
    """
    ratio = beliefs.ratio_for_gamma(gamma, rational(low), rational(high))
    return log_down(ratio if isinstance(ratio, float) else Fraction(ratio))


def fallback(epsilon: float, relation: str) -> dict[str, float]:
    """T12: γ under D_I and under D_B when nothing bounds the priors.

    ε-UDP gives e^ε and e^(2ε); ε-BDP gives nothing under D_I and e^ε under D_B.
    """
    check_range(read_real(epsilon, "epsilon"), "epsilon", "at least 0")
    if relation == "add-remove":
        return {"D_I": exp_float(epsilon), "D_B": exp_float(2 * epsilon)}
    if relation == "replace":
        return {"D_I": math.inf, "D_B": exp_float(epsilon)}
    raise invalid_value("relation", "add-remove or replace", relation)


# Identifiability and differential privacy on records (Wang et al. 2014, eq. 28): T19.
@check_numbers
def identifiability_from_dp(epsilon: Number, prior_spread: Number) -> float:
    """T19: ε-DP ⇒ (ε + ε_X)-identifiability, ε_X the largest log ratio of neighbours' priors;
    rounded up."""
    for field, value in (("epsilon", epsilon), ("prior spread", prior_spread)):
        check_range(value, field, "at least 0")
    if math.inf in (epsilon, prior_spread):
        return math.inf
    return round_up(exact_fraction(epsilon) + exact_fraction(prior_spread))


dp_from_identifiability = identifiability_from_dp
"""T19, the other way: ε-identifiability ⇒ (ε + ε_X)-DP."""


# Semantic privacy and differential privacy (Zhao 2017), tightened: T15 and erratum E3.
#
# Semantic privacy at level s: for every belief b over records, every output y and every row i, the
# posteriors with and without row i's data differ by at most s in total variation. An output that is
# possible with row i's data and impossible without leaves the second posterior undefined; it counts
# as level 1, without which the second claim below would be false.
#
# The proof is in docs/correlated.md. Between the Bayesian pair the second claim needs a default
# that is possible beside everything that may be known; a measured level names T15 only where it is.
# What is returned is rounded up: no level is understated.

SATURATED_EPSILON = 300
"""From here on tanh(ε/2) is 1 in floats, and e^(2ε) is more than any level."""


@check_numbers
def bayesian_from_membership(gamma: Number) -> float:
    """T14 backwards: (D_*, γ)-PMP ⇒ ln γ-Bayesian DP. D_* puts mass p on (x_i, x_K), 1 − p on
    (x_i', x_K) and lets the other rows follow the data; it is downward scalable in p."""
    check_range(gamma, "gamma", "at least 1")
    return log_up(gamma if gamma == math.inf else exact_fraction(gamma))


@check_numbers
def semantic_from_dp(epsilon: Number) -> float:
    """T15: ε-DP ⇒ tanh(ε/2)-semantic privacy; the same for Bayesian DP and Bayesian SP."""
    if check_range(epsilon, "epsilon", "at least 0") >= SATURATED_EPSILON:
        return 1.0
    return min(_round_ball_up(lambda x: x.tanh(), epsilon / 2), 1.0)


@check_numbers
def dp_from_semantic(level: Number) -> float:
    """T15, the other way: level-semantic privacy ⇒ ε-DP with ε = 4 artanh(level)."""
    check_range(level, "level", "between 0 and 1")
    return math.inf if level == 1 else _round_ball_up(lambda x: 4 * x.atanh(), level)


@check_numbers
def semantic_from_dp_as_published(epsilon: Number) -> float:
    """Zhao17 Theorems 1, 2: e^(2ε) − 1, which says nothing from ε = 0.35 on."""
    if check_range(epsilon, "epsilon", "at least 0") > SATURATED_EPSILON:
        return math.inf
    return _round_ball_up(lambda e: (2 * e).expm1(), epsilon)


@check_numbers
def dp_from_semantic_as_published(level: float) -> float:
    """Zhao17 Theorems 1, 2: (1/2 − 1/(e^ε+1))-SP ⇒ ε-DP, for levels below 1/2 only."""
    if not 0 <= level < 0.5:
        raise invalid_value("level", "at least 0 and below 1/2", level)
    return _round_ball_up(lambda x: 2 * x.atanh(), 2 * exact_fraction(level))


def _round_ball_up(function: Callable[[Any], Any], value: Number) -> float:
    """A function of an exact number, rounded up."""
    from flint import ctx

    with ctx.workprec(2 * BALL_BITS):
        return ball_up(function(ball(value)))


# Membership, identifiability and mutual information on records: T22, T23, T24.
#
# Rows are people, present (1) or absent (0), where a statement speaks of them. The proofs are in
# docs/theory/numbers.md.

MAX_INFORMATION_EPSILON = 700


def membership_from_identifiability(
    epsilon: Number, beliefs: Iterable[object], positive: bool = True
) -> float:
    """T22: ε-identifiability under p_X ⇒ ({p_X}, γ)-PMP, for the γ returned, rounded up.

    γ = max over people of max(q/p, (1−p)/(1−q)), q = 1/(1+e^−ε). A finite ε forces full support.

    Args:
        beliefs: each person's prior probability p of being in.
        positive: False for NMP, which has 1 − p in place of p.
    """
    check_range(read_real(epsilon, "epsilon"), "epsilon", "at least 0")
    people = [probability(p, "beliefs") for p in read_list(beliefs, "beliefs", "a list of numbers")]
    if not people or not all(0 < p < 1 for p in people):
        accepted = "numbers strictly between 0 and 1, one for each person"
        raise invalid_value("beliefs", accepted, beliefs)
    if epsilon >= MAX_INFORMATION_EPSILON:
        return math.inf
    odds = exp_up(epsilon)
    sides = [p if positive else 1 - p for p in people]
    most = max(max(odds / ((1 + odds) * p), (1 - p) * (1 + odds)) for p in sides)
    return round_up(max(most, Fraction(1)))


def shift_from_information(nats: Number) -> float:
    """T23: I(X;Y) ≤ ι ⇒ the mean over outputs of |posterior − prior| is at most √(ι/2) for every
    person, and for every row the mean total variation between posterior and prior; rounded up."""
    check_range(read_real(nats, "information"), "information", "at least 0")
    if nats >= 2:
        return 1.0
    half = exact_fraction(nats) / 2
    root = math.sqrt(round_up(half))
    while Fraction(root) ** 2 < half:
        root = math.nextafter(root, math.inf)
    return min(root, 1.0)


def divergence_from_information(nats: Number, delta: Number) -> float:
    """T23, pointwise: with probability at least 1 − δ over outputs from their marginal, for every
    person at once, KL(posterior ‖ prior) ≤ ι/δ; rounded up.

    It is not the failure probability of a plan: given that a person is in, it is at most δ/p.
    """
    check_range(read_real(nats, "information"), "information", "at least 0")
    failing = read_ranged(delta, "delta", "above 0 and at most 1")
    return math.inf if nats == math.inf else round_up(exact_fraction(nats) / failing)


def information_from_dp(epsilon: Number, beliefs: Iterable[object]) -> float:
    """T24: ε-DP on independent binary rows ⇒ I(X;Y) ≤ Σ [H(p(1−q) + (1−p)q) − H(q)], rounded up.

    q = 1/(1+e^ε) and H is the entropy of a coin; randomised response attains it. Rows that depend
    on each other break it.

    Args:
        beliefs: the probability of value 1, one for each row.
    """
    check_range(read_real(epsilon, "epsilon"), "epsilon", "at least 0")
    listing = read_list(beliefs, "beliefs", "a list of probabilities, one for each row")
    exact = (probability(each, "beliefs") for each in listing)
    counted = Counter(min(p, 1 - p) for p in exact if 0 < p < 1)
    if epsilon == 0 or not counted:
        return 0.0
    with certificate_precision():
        flip = 1 / (1 + ball(epsilon).exp()) if epsilon < math.inf else ball(0)
        total = ball(0)
        for p, rows in counted.items():
            mixed = ball(p) * (1 - flip) + (1 - ball(p)) * flip
            total += rows * (_ball_entropy(mixed) - _ball_entropy(flip))
        return max(0.0, round_up(ball_ratio_upper(total, 1)))


def _ball_entropy(share: Any) -> Any:
    """−x ln x − (1−x) ln(1−x) of a ball, 0 at 0."""
    if share == 0:
        return share
    return -share * share.log() - (1 - share) * (1 - share).log()


# The coupling of Li13 Lemma 4.9, built by maximum flow on small spaces.
#
# Under a prior of known size k, the data given t ∈ T (less t) and the data given t ∉ T can be drawn
# together so that the first is always contained in the second: T2 ⊂ T1, |T2| = k − 1, |T1| = k.
# Then T2 ∪ {t} and T1 exchange one entity, which is why bounded DP covers all of D_B (T5).

World = frozenset[int]
Node = tuple[str, World]


def build_coupling(
    prior: Prior, space: Subsets, entity: int
) -> dict[tuple[World, World], Fraction]:
    """Pr[T1, T2] with T2 ⊂ T1, exactly; its margins are Pr[T1 | ¬t] and Pr[T2 ∪ {t} | t].

    Raises:
        InvalidInput: the entity is certain under the prior, so there is nothing to couple.
        WhosinError: there is no coupling; the lemma is about independent priors of known size,
            and others need not have one.
    """
    check_kind(prior, Prior, "prior", "a prior of known size")  # type: ignore[type-abstract]
    check_kind(space, Subsets, "space")
    read_whole(entity, "entity", 0, space.size - 1)
    if not 0 < prior.belief(space, entity) < 1:
        name, hint = space.entities[entity], "choose one with a belief strictly between 0 and 1"
        message = f"the prior is certain about {shorten_value(name)}"
        raise InvalidInput(message, field="entity", value=name, hint=hint)
    lattice = CountLattice.single(space)
    present, without = (
        {World(lattice.representative(w)): rational(m) for w, m in enumerate(side) if m != 0}
        for side in prior.given(lattice, entity, flint_rational)
    )
    with_it = {world - {entity}: mass for world, mass in present.items()}
    source, sink = ("source", World()), ("sink", World())
    room: dict[Node, dict[Node, Fraction]] = {source: {}, sink: {}}
    for world, mass in without.items():
        room[source]["out", world] = mass
        room["out", world] = {
            ("in", world - {gone}): Fraction(1) for gone in world if world - {gone} in with_it
        }
    for world, mass in with_it.items():
        room.setdefault(("in", world), {})[sink] = mass
    shipped = Fraction(0)
    while path := _shortest_path(room, source, sink):
        steps = list(pairwise(path))
        amount = min(room[tail][head] for tail, head in steps)
        for tail, head in steps:
            room[tail][head] -= amount
            room[head][tail] = room[head].get(tail, Fraction(0)) + amount
        shipped += amount
    if shipped != 1:
        raise WhosinError(f"no coupling exists: only {shipped} of the mass can be paired")
    pairs = ((world, world - {gone}) for world in without for gone in world)
    flow = {(one, two): room.get(("in", two), {}).get(("out", one)) for one, two in pairs}
    return {pair: paired for pair, paired in flow.items() if paired}


def _shortest_path(
    room: dict[Node, dict[Node, Fraction]], source: Node, sink: Node
) -> list[Node] | None:
    """The nodes of a shortest path with room left, breadth first (Edmonds and Karp)."""
    came: dict[Node, Node] = {source: source}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        if node == sink:
            path = [sink]
            while path[-1] != source:
                path.append(came[path[-1]])
            return path[::-1]
        for head, left in room[node].items():
            if left > 0 and head not in came:
                came[head] = node
                queue.append(head)
    return None
