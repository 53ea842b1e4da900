"""Mutual information, its capacity over all priors, and the mean shift of beliefs (T23)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from whosin.errors import Unsupported, spell
from whosin.exact import (
    BALL_BITS,
    Array,
    Rational,
    ball_up,
    exact_fraction,
    flint_rational,
    is_exact,
    rational,
    round_up,
)
from whosin.mechanisms import Channel, read_channel
from whosin.notions.base import Level, Notion, OfOnePrior
from whosin.notions.certificates import bracket_level, record_channel
from whosin.notions.leakage import row_worlds
from whosin.notions.prior_sets import (
    FLOAT_SLACK,
    SetCorners,
    enclose_maximum,
    mix_corners,
    product_masses,
)
from whosin.priors import Prior, PriorSet, WorldTable
from whosin.priors.sets import Row, RowSet, member_prior
from whosin.spaces import Records, Space
from whosin.spaces.arrays import scaled_products

MAX_BALL_ENTRIES = 1 << 16
"""Up to this many entries are summed in balls, more in floats with a bound on their error."""

BALL_PRECISIONS = (BALL_BITS, 4 * BALL_BITS, 16 * BALL_BITS)
"""Bits of the balls, until the sum is known to `ENOUGH_BITS` of them: terms may nearly cancel."""
ENOUGH_BITS = 64


@dataclass(frozen=True)
class MutualInformation(OfOnePrior):
    """I(X; Y) in nats (Wang, Ying, Zhang 2014), rounded up: an average, so no single case stands
    behind it and the witness is None.

    Args:
        prior: a prior on records, or a set of them (`Hull`, `Box`); then the largest level of any
            member counts, between two certified numbers, and `Level.prior` attains the lower one.
    """

    unit: ClassVar[str] = "nats"
    averages: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return f"{super().title} between the records and the output"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel, records = record_channel(mechanism, space)
        channel.need_finite("mutual information")
        if isinstance(self.prior, PriorSet):
            return _information_over(self, channel, self.prior, records)
        mass = self.prior.on_records(records, flint_rational)
        if channel.likelihoods.size <= MAX_BALL_ENTRIES:
            return Level(sum_information(mass, channel.rationals), None, True, (), notion=self)
        value, least = _float_information(mass, channel)
        exact, lower = bracket_level(value, least)
        return Level(value, None, exact, (), lower, notion=self)


def sum_information(mass: Array, table: Array, *, up: bool = True) -> float:
    """Σ Pr[x,y] ln(Pr[y|x]/Pr[y]) of FLINT rationals, each ratio exact and its logarithm a ball;
    rounded up, or down."""
    from flint import arb, ctx

    weight: dict[Any, Any] = {}
    for column in table.T:
        joint = mass * column
        total = joint.sum()
        for both, likelihood in zip(joint, column, strict=True):
            if both != 0:
                ratio = likelihood / total
                weight[ratio] = weight.get(ratio, 0) + both
    for bits in BALL_PRECISIONS:
        with ctx.workprec(bits):
            terms = [arb(ratio).log() * arb(both) for ratio, both in weight.items() if ratio != 1]
            total = sum(terms, arb(0))
            if total.rel_accuracy_bits() > ENOUGH_BITS:
                break
    return max(ball_up(total) if up else -ball_up(-total), 0.0)


def _float_information(mass: Array, channel: Channel) -> tuple[float, float]:
    """The same sum in floats, plus and minus more than its rounding.

    Every input is within 2^−52 of the truth, a sum over N worlds within N times that, and a
    logarithm errs by as much more as it is large; fsum adds without error.
    """
    weights, array = scaled_products(mass, channel.wide)
    joint = weights[:, None] * array
    outputs = joint.sum(axis=0)
    scale = np.frexp(channel.wide.max(axis=0))[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.ldexp(joint, scale) * (np.log(array) - np.log(outputs))
        size = np.ldexp(joint, scale) * (np.abs(np.log(array)) + np.abs(np.log(outputs)) + 1)
    possible = joint > 0
    value = math.fsum(np.where(possible, terms, 0.0).ravel().tolist())
    rounding = float(np.where(possible, size, 0.0).sum()) * (len(mass) + 16) * 2.0**-52
    above, below = math.nextafter(value + rounding, math.inf), value - rounding
    return max(above, 0.0), max(math.nextafter(below, -math.inf), 0.0)


# Mutual information over a set of priors.
#
# For any output probabilities q, I(p) ≤ Σ_x p(x) KL(A_x ‖ q), linear in p. I is concave in one row
# (or in whole tables), and the best mixture of corners is found as the capacity is, corners coming
# in one by one: the bound closes. In several rows it is not concave, and cells close in.

MAX_SET_ROUNDS = 200
"""Corners that come in."""


def _information_over(notion: Notion, channel: Channel, prior: PriorSet, space: Records) -> Level:
    table = np.asarray(channel.wide, dtype=float)
    negative, parts = negative_entropies(table), prior.parts(space)
    if len(parts) == 1:
        points, weights = _best_mixture(parts[0], table, negative)
        rows = [[mix_corners(points, weights, plain)] for plain in (True, False)]
        outputs = weights @ floats_of_rows(points) @ table
        far = _divergences(channel, table, outputs)
        worst = parts[0].worst(far.tolist())
        high = sum(float(p) * far[x] for x, p in enumerate(worst) if p) * FLOAT_SLACK
        members = [member_prior(each, space) for each in rows]
    else:
        known = SetCorners(prior, space)

        def bound(points: list[Array]) -> tuple[float, Array]:
            masses = product_masses(points)
            rows, means = masses @ table, masses @ negative
            seen = rows.max(axis=0) > 0
            chosen, weights = _best_prior(rows[:, seen], means)
            shares = np.zeros(len(masses))
            shares[chosen] = weights
            far = _divergences(channel, table, shares @ rows)
            possible = masses.max(axis=0) > 0
            return float((masses[:, possible] @ far[possible]).max()) * FLOAT_SLACK, shares

        def information(mass: Array) -> float:
            used, q = mass > 0, mass @ table
            with np.errstate(divide="ignore"):
                logs = np.where(q > 0, np.log(q), 0.0)
            return float(mass[used] @ negative[used] - q @ logs)

        high, mixed = enclose_maximum(known, bound, information)
        members = [known.mix(mixed, plain) for plain in (True, False)]
    low, member = max(
        ((_information_below(each, channel, space), each) for each in members),
        key=lambda case: case[0],
    )
    high = max(math.nextafter(high, math.inf), low)
    exact, lower = bracket_level(high, low)
    return Level(high, None, exact, (), lower, notion=notion, prior=member)


def _information_below(prior: Prior, channel: Channel, space: Records) -> float:
    """I(X; Y) under one prior, rounded down."""
    mass = prior.on_records(space, flint_rational)
    if channel.likelihoods.size <= MAX_BALL_ENTRIES:
        return sum_information(mass, channel.rationals, up=False)
    return _float_information(mass, channel)[1]


def _best_mixture(members: RowSet, table: Array, negative: Array) -> tuple[list[Row], Array]:
    """Members of one part and the weights of their mixture that is nearly best."""
    points = list(dict.fromkeys(members.likeliest(value) for value in range(members.values)))
    for _ in range(MAX_SET_ROUNDS):
        masses = floats_of_rows(points)
        rows = masses @ table
        seen = rows.max(axis=0) > 0
        weights = _capacity_weights(rows[:, seen], masses @ negative)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(seen, np.log(weights @ rows), 0.0)
        far = np.where(masses.max(axis=0) > 0, negative - table @ logs, 0.0)
        worst = members.worst(far.tolist())
        reached = float(weights @ masses @ far)
        if worst in points or float(floats_of_rows([worst])[0] @ far) <= reached + CAPACITY_GAP:
            break
        points.append(worst)
    return points, weights


def floats_of_rows(rows: list[Row]) -> Array:
    return np.array([[float(p) for p in row] for row in rows])


# Capacity: mutual information over all priors, between two certified numbers.
#
# For any prior π with output probabilities q, I(π) ≤ capacity ≤ max_x KL(A_x ‖ q) (Blahut and
# Arimoto's bound), so that what is reported does not depend on how well the method did. The largest
# I(π) is a concave problem, in which no more worlds matter than there are outputs: an interior-
# point Newton method works on some of the rows, and rows whose KL is larger are added until there
# are none.

CAPACITY_GAP = 1e-11
"""The gap at which the method stops, in nats; 1e-9 is what is promised."""
CAPACITY_STEPS, CAPACITY_ROUNDS = 120, 60
CAPACITY_BLOCK_ROWS = 64
"""Rows to begin with, and to add at a time."""
MAX_CAPACITY_OUTPUTS = 2048


@dataclass(frozen=True)
class Capacity(Notion):
    """The largest I(X; Y) over all priors, in nats: an upper bound, with a lower one that the prior
    `Level.prior` attains."""

    unit: ClassVar[str] = "nats"
    averages: ClassVar[bool] = True
    about_records: ClassVar[None] = None  # type: ignore[misc]

    title = "Capacity (mutual information, any prior)"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = read_channel(mechanism, space)
        channel.need_finite("capacity")
        table = np.asarray(channel.wide, dtype=float)
        table = table[:, table.max(axis=0) > 0]
        if table.shape[1] > MAX_CAPACITY_OUTPUTS:
            message = f"the capacity of {spell(table.shape[1])} outputs takes too long"
            hint = f"use at most {spell(MAX_CAPACITY_OUTPUTS)}"
            raise Unsupported(message, field="mechanism", value=table.shape[1], hint=hint)
        chosen, weights = _best_prior(table, negative_entropies(table))
        mass = {int(row): Fraction(float(w)) for row, w in zip(chosen, weights, strict=True) if w}
        total = sum(mass.values())
        shares = np.array([flint_rational(share / total) for share in mass.values()], dtype=object)
        columns = range(channel.likelihoods.shape[1])
        rows = np.array(
            [[channel.entries.at(row, column) for column in columns] for row in mass], dtype=object
        )
        low = sum_information(shares, rows, up=False)
        high = max(_capacity_above(channel, shares @ rows), low)
        exact, lower = bracket_level(high, low)
        worlds = row_worlds(channel)
        prior = WorldTable({worlds[row]: share / total for row, share in mass.items()})
        return Level(high, None, exact, (), lower, notion=self, prior=prior)


def _capacity_above(channel: Channel, outputs: Array) -> float:
    """max_x KL(A_x ‖ q) for these output probabilities, rounded up."""
    q = np.array([float(rational(each)) for each in outputs])
    far = _divergences(channel, np.asarray(channel.wide, dtype=float), q)
    return max(math.nextafter(float(far.max()), math.inf), 0.0)


def _divergences(channel: Channel, table: Array, q: Array) -> Array:
    """KL(A_x ‖ q) for each world, rounded up; infinite where q misses an output.

    Sums of K terms in floats, whose inputs are within 2^−52 of the truth. Rows of floats may miss a
    sum of 1 by a little; KL of the output probabilities is then at least minus twice that.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(table) - np.log(q)
        terms = np.where(table > 0, table * logs, 0.0)
        size = np.where(table > 0, table * (np.abs(np.log(table)) + np.abs(np.log(q)) + 1), 0.0)
    value = terms.sum(axis=1) + size.sum(axis=1) * (table.shape[1] + 16) * 2.0**-52
    off = 0.0 if channel.exact is not None else 2 * float(np.abs(table.sum(axis=1) - 1).max())
    return np.asarray(value + off)


def negative_entropies(table: Array) -> Array:
    """Σ_y A(y|x) ln A(y|x) of each row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(table > 0, table * np.log(table), 0.0).sum(axis=1))


def _best_prior(table: Array, negative: Array) -> tuple[Array, Array]:
    """Rows and their weights, nearly best.

    Args:
        negative: minus the mean entropy of the output given what a row stands for.
    """
    count, columns = table.shape
    if count <= max(2 * CAPACITY_BLOCK_ROWS, 2 * columns):
        chosen = np.arange(count)
        return chosen, _capacity_weights(table, negative)
    chosen = np.unique(np.argmax(table, axis=0))
    extra = np.argsort(-negative)[:CAPACITY_BLOCK_ROWS]
    chosen = np.unique(np.concatenate([chosen, extra]))
    for _ in range(CAPACITY_ROUNDS):
        weights = _capacity_weights(table[chosen], negative[chosen])
        far = negative - table @ np.log(weights @ table[chosen])
        reached = float(weights @ far[chosen])
        beyond = np.flatnonzero(far > reached + CAPACITY_GAP)
        new = np.setdiff1d(
            beyond[np.argsort(-far[beyond])[: max(CAPACITY_BLOCK_ROWS, columns)]], chosen
        )
        if not new.size:
            break
        kept = chosen[(weights > 1e-12) | (far[chosen] > reached - 1e-4)]
        chosen = np.unique(np.concatenate([kept, new, np.argmax(table, axis=0)]))
    return chosen, weights


def _capacity_weights(table: Array, negative: Array) -> Array:
    """The best weights of these rows: π, z ≥ 0 with λ − KL(A_x ‖ q) = z_x and π_x z_x = μ → 0."""
    count = len(table)
    weights = np.full(count, 1.0 / count)
    best, least = weights, math.inf
    far = negative - table @ np.log(weights @ table)
    level = float(far.max()) + 1e-2
    z = level - far
    for _ in range(CAPACITY_STEPS):
        q = weights @ table
        far = negative - table @ np.log(q)
        gap = float(far.max() - weights @ far / weights.sum())
        if gap < least:
            best, least = weights / weights.sum(), gap
        if gap <= CAPACITY_GAP:
            break
        moved = _capacity_step(table / np.sqrt(q), weights, z, far, level)
        if moved is None:
            break
        weights, z, level = moved
    return best


def _capacity_step(
    scaled: Array, weights: Array, z: Array, far: Array, level: float
) -> tuple[Array, Array, float] | None:
    """One predictor–corrector step: weights, slacks, level."""
    system = scaled @ scaled.T
    system[np.diag_indices(len(z))] += z / weights
    pressure = float(weights @ z) / len(z)
    sums = 1.0 - weights.sum()

    def direction(aim: Array) -> tuple[Array, Array, float]:
        # system · dπ + dλ = KL − λ + aim/π,   Σ dπ = sums,   z + dz = (aim − z dπ)/π
        right = far - level + aim / weights
        both = np.linalg.solve(system, np.column_stack([right, np.ones(len(z))]))
        turn = (both[:, 0].sum() - sums) / both[:, 1].sum()
        move = both[:, 0] - turn * both[:, 1]
        return move, (aim - z * move) / weights - z, float(turn)

    try:
        move, swing, _ = direction(np.zeros(len(z)))
        reach = min(_largest_step(weights, move), _largest_step(z, swing))
        ahead = float((weights + reach * move) @ (z + reach * swing)) / len(z)
        aim = pressure * min(max((ahead / pressure) ** 3, 1e-8), 0.5)
        move, swing, turn = direction(aim - move * swing)
    except np.linalg.LinAlgError:
        return None
    reach = 0.99 * min(_largest_step(weights, move), _largest_step(z, swing))
    weights, z = weights + reach * move, z + reach * swing
    if not (np.isfinite(weights).all() and (weights > 0).all() and (z > 0).all()):
        return None
    return weights, z, level + reach * turn


def _largest_step(values: Array, direction: Array) -> float:
    """The largest step up to 1 that keeps values positive."""
    falling = direction < 0
    return min(1.0, float((-values[falling] / direction[falling]).min(initial=1.0)))


MAX_EXACT_PROBABILITIES = 1 << 16
"""Up to this many probabilities sums are exact; beyond it floats, enlarged by their rounding."""


@dataclass(frozen=True)
class MeanShift(OfOnePrior):
    """The mean over outputs of the total variation between what is believed about one row after
    and before, the largest over rows; for a binary row that is |posterior − prior| (T23).

    It is an average, so no single case stands behind it and the witness is None.
    """

    unit: ClassVar[str] = "level"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel, records = record_channel(mechanism, space)
        channel.need_finite("the mean shift of beliefs")
        if channel.likelihoods.size > MAX_EXACT_PROBABILITIES:
            mass = self.prior.on_records(records, float)
            value = max(_row_shifts(mass[:, None] * channel.likelihoods, mass, records))
            slack = 1 + Fraction(8 * (records.worlds + records.rows + 8), 2**53)
            return Level(round_up(exact_fraction(value) * slack), None, False, (), notion=self)
        exact_mass = self.prior.on_records(records, flint_rational)
        joint = exact_mass[:, None] * channel.rationals
        result = rational(max(_row_shifts(joint, exact_mass, records)))
        exact = channel.exact is not None and is_exact(*self.prior.parameters)
        return Level(Rational(result) if exact else round_up(result), None, True, (), notion=self)


def _row_shifts(joint: Array, mass: Array, space: Records) -> list[Any]:
    """½ Σ |Pr[v, y] − Pr[v] Pr[y]| over a row's values v and the outputs y, for each row."""
    outputs = joint.sum(axis=0)
    result = []
    for row in range(space.rows):
        view = space.axis(joint, row)
        both = view.sum(axis=0).reshape(space.values, -1, joint.shape[1]).sum(axis=1)
        alone = space.axis(mass[:, None], row).sum(axis=0).reshape(space.values, -1).sum(axis=1)
        result.append(np.abs(both - alone[:, None] * outputs[None, :]).sum() / 2)
    return result
