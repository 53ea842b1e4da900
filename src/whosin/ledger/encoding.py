"""How a ledger writes things: units of ε, ρ and δ, what ρ means at a δ, digests, JSON, names.

Costs as whole numbers, so that sums are exact: ε and ρ in 10^-12, δ in 10^-18. What is spent is
rounded up, what may be spent is rounded down. `INFINITE_UNITS` stands for a cost that a reading
cannot express (Gaussian noise has no pure ε), and sums stop there.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

from whosin.errors import InvalidInput, invalid_value, shorten
from whosin.exact import ball, ball_end, format_epsilon, format_figures, rational

EPSILON_UNITS = 10**12
DELTA_UNITS = 10**18
INFINITE_UNITS = 2**62
MAX_LEDGER_EPSILON = 10**6
"""A larger ε protects nobody, and its ρ would not fit into a database's integers."""


def cost_units(value: object, field: str, units: int = EPSILON_UNITS) -> int:
    """A cost in units, rounded up."""
    return -(-_scale_value(value, field, units) // 1)


def budget_units(value: object, field: str, units: int = EPSILON_UNITS) -> int:
    """A budget in units, rounded down."""
    return _scale_value(value, field, units) // 1


def rho_from_epsilon(epsilon: int) -> int:
    """ρ of an ε-DP answer: ε²/2, in units, rounded up (Bun and Steinke 2016, Proposition 1.4)."""
    if epsilon >= INFINITE_UNITS:
        return INFINITE_UNITS
    return min(-(-(epsilon**2) // (2 * EPSILON_UNITS)), INFINITE_UNITS)


def epsilon_from_rho(rho: int) -> int:
    """The largest ε, in units, whose ε²/2 is within ρ."""
    return isqrt(2 * EPSILON_UNITS * max(rho, 0))


def distinguish_units(needed: int, left: int, scale: int = EPSILON_UNITS) -> tuple[str, str]:
    """Two numbers of units with as many digits as it takes to tell them apart."""
    first, second, digits = "", "", 6
    while first == second and digits < 18:
        first = format_figures(Fraction(max(0, needed), scale), digits)
        second = format_epsilon(Fraction(max(0, left), scale), digits=digits)
        digits += 1
    return first, second


def number_from_units(units: int, scale: int = EPSILON_UNITS) -> Fraction | float:
    """Back from units to a number."""
    return float("inf") if units >= INFINITE_UNITS else Fraction(units, scale)


def _scale_value(value: object, field: str, units: int) -> Fraction:
    result = rational(value, field)
    largest = MAX_LEDGER_EPSILON if units == EPSILON_UNITS else 1
    if not 0 <= result <= largest:
        raise invalid_value(field, f"a number from 0 to {largest}", value)
    return result * units


@dataclass(frozen=True)
class Cost:
    """The cost of one answer between neighbours of one relation, in units (see `units`).

    Attributes:
        epsilon: pure ε; `INFINITE_UNITS` where there is none.
        rho: ρ of zero-concentrated DP.
        delta: δ of an answer that is only (ε, δ)-DP, or δ-approximately ρ-zCDP.
    """

    epsilon: int
    rho: int
    delta: int = 0

    def __post_init__(self) -> None:
        if type(self.epsilon) is type(self.rho) is type(self.delta) is int and (
            0 <= self.epsilon <= INFINITE_UNITS
            and 0 <= self.rho <= INFINITE_UNITS
            and 0 <= self.delta <= INFINITE_UNITS
        ):
            return
        for name, value in vars(self).items():
            if type(value) is not int or not 0 <= value <= INFINITE_UNITS:
                raise invalid_value(
                    f"{name} of a cost", "a whole number of ledger units", repr(value)
                )

    @classmethod
    def pure(cls, epsilon: object, delta: object = 0, *, rho: object = None) -> Cost:
        """An ε-DP answer, or an (ε, δ)-DP one, which is δ-approximately ε²/2-zCDP.

        Args:
            rho: what the answer is proved to cost in ρ by itself, where that is less than ε²/2.
        """
        failing = cost_units(delta, "delta", DELTA_UNITS)
        if isinstance(epsilon, float) and math.isinf(epsilon) and epsilon > 0:
            return cls(INFINITE_UNITS, INFINITE_UNITS, failing)
        level = cost_units(epsilon, "epsilon")
        concentrated = rho_from_epsilon(level)
        if rho is not None:
            own = rational(rho, "rho") * EPSILON_UNITS
            concentrated = min(concentrated, max(0, math.ceil(own)))
        return cls(level, concentrated, failing)

    @classmethod
    def gaussian(cls, rho: object, delta: object = 0) -> Cost:
        """An answer with Gaussian noise, by its ρ = Δ²/(2σ²)."""
        failing = cost_units(delta, "delta", DELTA_UNITS)
        return cls(INFINITE_UNITS, cost_units(rho, "rho"), failing)

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            raise invalid_value("cost", "a Cost", repr(other))
        if not (other.epsilon or other.rho or other.delta):
            return self
        sums = self.epsilon + other.epsilon, self.rho + other.rho, self.delta + other.delta
        if max(sums) <= INFINITE_UNITS:
            return Cost(*sums)
        return Cost(*(min(each, INFINITE_UNITS) for each in sums))

    def larger(self, other: Cost) -> Cost:
        """The larger of two costs, currency by currency."""
        if self.epsilon >= other.epsilon and self.rho >= other.rho and self.delta >= other.delta:
            return self
        return Cost(*map(max, vars(self).values(), vars(other).values()))

    def less(self, other: Cost) -> Cost:
        """What is left of it after another one; never below 0."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Cost(*(max(0, mine - its) for mine, its in pairs))

    def within(self, limit: Cost) -> bool:
        """Whether it is within a limit, by one of the accountings."""
        concentrated = limit.rho > 0 and self.rho <= limit.rho
        return self.delta <= limit.delta and (self.epsilon <= limit.epsilon or concentrated)


ZERO_COST = Cost(0, 0)
INFINITE_COST = Cost(INFINITE_UNITS, INFINITE_UNITS)
"""Where there is no finite one."""


# From ρ to (ε, δ): which of these a history is within is for `budget` to say.

CERTIFYING_BITS = 200
ORDER_RANGE = (-16.0, 28.0)
"""Where ln(α − 1) is looked for: the best α − 1 is about √(ln(1/δ)/ρ)."""


@lru_cache(maxsize=1024)
def epsilon_of(rho: int, delta: Fraction) -> int:
    """An ε, in units and rounded up, that ρ-zCDP is proved to give at δ.

    ε = αρ + (ln(1/δ) + (α−1) ln(1−1/α) − ln α) / (α−1) for any order α > 1 (Canonne, Kamath and
    Steinke 2020, Corollary 13): the best order is looked for in floats, its ε is certified.
    """
    if rho == 0:
        return 0
    if rho >= INFINITE_UNITS or delta <= 0:
        return INFINITE_UNITS
    at, log_delta = rho / EPSILON_UNITS, _log_down(delta)
    order = _best_order(lambda a: a * at + _order_excess(a, log_delta))
    certified = math.ceil(_epsilon_at_order(order, delta, Fraction(rho, EPSILON_UNITS)))
    return min(INFINITE_UNITS, max(0, certified))


def epsilon_from_zcdp(rho: Fraction, delta: Fraction) -> Fraction:
    """The least ε, rounded up to a unit, that is proved for ρ-zCDP at δ; see `epsilon_of`."""
    return Fraction(epsilon_of(math.ceil(rho * EPSILON_UNITS), delta), EPSILON_UNITS)


@lru_cache(maxsize=1024)
def concentrated_limit(epsilon: int, delta: Fraction, order: Fraction | None = None) -> int:
    """The largest ρ, in units, that is proved to give (ε, δ)-DP; 0 where there is none.

    Args:
        order: where it is the Rényi divergence at this order, over the order.
    """
    if delta <= 0 or epsilon <= 0:
        return 0
    level, log_delta = epsilon / EPSILON_UNITS, _log_down(delta)
    if order is None:
        order = _best_order(lambda a: (_order_excess(a, log_delta) - level) / a)
    left = epsilon - _epsilon_at_order(order, delta, Fraction(0))
    return min(INFINITE_UNITS - 1, max(0, math.floor(left / order)))


def concentrated_budget(epsilon: int, delta: Fraction, order: Fraction | None = None) -> int:
    """A little less than the limit, so that every machine's search for the order proves it."""
    limit = concentrated_limit(epsilon, delta, order)
    return max(0, limit - limit // 2**40 - 2)


FIXED_ORDERS = [
    1 + Fraction(32 + step, 32) * Fraction(2) ** octave
    for octave in range(-10, 28)
    for step in range(32)
]
"""Orders a thirty-second of an octave apart, so that every machine chooses the same."""


@lru_cache(maxsize=256)
def order_beside(epsilon: int, delta: Fraction) -> Fraction:
    """The order among `FIXED_ORDERS` at which most ρ is left within (ε, δ)."""
    level, log_delta = epsilon / EPSILON_UNITS, _log_down(delta)
    return min(FIXED_ORDERS, key=lambda a: (_order_excess(float(a), log_delta) - level) / float(a))


@lru_cache(maxsize=4096)
def response_at_order(epsilon: int, order: Fraction) -> int:
    """At least R/α, in units, for R = ln((e^(αε) + e^((1−α)ε)) / (1 + e^ε)) / (α − 1), the Rényi
    divergence of randomised response, which every ε-DP answer is a function of."""
    from flint import ctx

    with ctx.workprec(CERTIFYING_BITS):
        a, e = ball(order), ball(Fraction(epsilon, EPSILON_UNITS))
        moment = ((a * e).exp() + ((1 - a) * e).exp()) / (1 + e.exp())
        return math.ceil(ball_end((EPSILON_UNITS * moment.log() / (a * (a - 1))).upper()))


def filter_level(rho: int, budget: int) -> tuple[int, int]:
    """(j, ρⱼ) of the lowest level that ends at ρ or above; ρⱼ = budget·2^(−j/4), rounded down."""
    assert 0 < rho <= budget
    result = max(0, math.floor(4 * math.log2(budget / rho)) + 1)
    while _level_end(result, budget) < rho:
        result -= 1
    return result, _level_end(result, budget)


def level_share(number: int) -> Fraction:
    """The part of δ that pays for reading at a level."""
    return Fraction(1, 4 * number * (number + 1)) if number else Fraction(1, 2)


def _level_end(number: int, budget: int) -> int:
    return math.isqrt(math.isqrt(budget**4 >> number))


def _order_excess(order: float, log_delta: float) -> float:
    return (-log_delta - math.log(order)) / (order - 1) + math.log1p(-1 / order)


def _epsilon_at_order(order: Fraction, delta: Fraction, rho: Fraction) -> Fraction:
    """At least the ε of the order, in units."""
    from flint import ctx

    with ctx.workprec(CERTIFYING_BITS):
        a, d, r = map(ball, (order, delta, rho))
        result = EPSILON_UNITS * (a * r + (-d.log() - a.log()) / (a - 1) + (1 - 1 / a).log())
        return ball_end(result.upper())


def _best_order(score: Callable[[float], float]) -> Fraction:
    """An order of about the least score: a grid in ln(α − 1), then golden sections."""
    low, high = ORDER_RANGE
    steps = [low + (high - low) * step / 88 for step in range(89)]
    start = min(steps, key=lambda x: score(1 + math.exp(x)))
    low, high = start - 0.5, start + 0.5
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(50):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if score(1 + math.exp(left)) < score(1 + math.exp(right)):
            high = right
        else:
            low = left
    return Fraction(1 + math.exp((low + high) / 2))


def _log_down(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


FIRST_HEAD = "0" * 64


_quote_text = json.encoder.encode_basestring_ascii
# `JSONEncoder.encode` makes this anew for each text, which is half of its time.
_encode_json = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, json.JSONEncoder().default, _quote_text, None, ":", ",", True, False, False
)


def canonical_json(data: object, field: str = "entry") -> str:
    """JSON in one spelling, so that equal data have equal digests."""
    try:
        return "".join(_encode_json(data, 0))
    except (TypeError, ValueError, RecursionError):
        message = f"{field} holds something that JSON cannot store"
        hint = "use text, finite numbers, booleans, lists and mappings"
        raise InvalidInput(message, field=field, hint=hint) from None


def plain_copy(data: Mapping[str, Any], field: str) -> dict[str, Any]:
    """A copy as a file would give it back: text as keys, lists for tuples."""
    copy: dict[str, Any] = json.loads(canonical_json(dict(data), field)) if data else {}
    return copy


MARK_DIGITS = 12
"""Digits of the digest of a user's name, in that user's request ids."""


def digest_text(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def mark_asker(who: str) -> str:
    """What tells the requests of someone, and their folder, from those of others."""
    return digest_text(who)[:MARK_DIGITS]


def link_digest(previous: str, entry: Mapping[str, Any]) -> str:
    """The digest of an entry that follows another."""
    return digest_text(f"{previous}\n{canonical_json(entry)}")


def link_text(previous: str, entry: Any) -> str:
    """The same of an entry as its row, whose body is in the one spelling already."""
    request = "null" if entry.request is None else _quote_text(entry.request)
    return digest_text(
        f'{previous}\n{{"body":{entry.body},"dataset":{_quote_text(entry.dataset)},'
        f'"kind":{_quote_text(entry.kind)},"number":{entry.number},"request":{request}}}'
    )


MAX_DATASET_NAME_LENGTH = 200


def read_name(value: object, field: str) -> str:
    """A name as it is stored; a letter and its accent, or the accented letter, are the same."""
    if not isinstance(value, str) or not value or value != value.strip():
        accepted = "a name, not empty and without spaces around it"
        raise invalid_value(field, accepted, repr(value)[:MAX_DATASET_NAME_LENGTH])
    # Three letters can come of one: what is stored is what must fit.
    name = unicodedata.normalize("NFC", value[: MAX_DATASET_NAME_LENGTH + 1])
    if max(len(value), len(name)) > MAX_DATASET_NAME_LENGTH:
        message = f"{field} has {len(value)} characters; at most {MAX_DATASET_NAME_LENGTH} fit"
        raise InvalidInput(message, field=field, value=len(value))
    if not name.isprintable():
        message = f"{field} has characters that cannot be printed: {shorten(repr(value))}"
        raise InvalidInput(message, field=field, value=value)
    return name


def utc_now() -> datetime:
    """The clock of this machine, by which days are reckoned where no server has one."""
    return datetime.now(UTC)


def today() -> str:
    """The day by that clock."""
    return utc_now().date().isoformat()


def current_user() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
