"""The samplers follow their laws exactly: by going through all words, by algebra in balls, and by
statistics that also notice a scale that is 1% off."""

from __future__ import annotations

import ast
import math
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import whosin as wi
from amounts import cases, some
from chance import likely_counts
from refusals import refused
from sources import Scripted, Seeded
from whosin.errors import InvalidInput, Unsupported
from whosin.exact import ball_exp
from whosin.noise import additive, selection
from whosin.noise import source as noise_source
from whosin.noise.source import Inversion

noise = wi.noise

# ---- laws, written from their definitions, sharing no code with the samplers


def decimal(number: Any) -> Decimal:
    ratio = Fraction(number)
    return Decimal(ratio.numerator) / Decimal(ratio.denominator)


def laplace_cdf(scale: object, first: int, last: int) -> list[Decimal]:
    """P(k ≤ j) for j from first to last, of P(k) ∝ e^(−|k|/s)."""
    ratio = (-1 / decimal(scale)).exp()
    reach = max(-first, last) + int(decimal(scale) * 150) + 2  # e^-150 is 10^-65
    weights = [Decimal(1)]
    for _ in range(reach):
        weights.append(weights[-1] * ratio)
    norm = 2 * sum(weights) - 1
    total, found = sum(weights[-first + 1 :]), []
    for j in range(first, last + 1):
        total += weights[abs(j)]
        found.append(total / norm)
    return found


def gaussian_cdf(sigma: object, first: int, last: int) -> list[Decimal]:
    width = decimal(sigma)
    reach = int(width * 20) + 5
    weights = {k: (-decimal(k * k) / (2 * width**2)).exp() for k in range(-reach, reach + 1)}
    norm, found = sum(weights.values()), []
    total = sum((weight for k, weight in weights.items() if k < first), Decimal(0))
    for j in range(first, last + 1):
        total += weights[j]
        found.append(total / norm)
    return found


def laplace_pmf(scale: float, reach: int) -> np.ndarray:
    return np.tanh(0.5 / scale) * np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)


def gaussian_pmf(sigma: float, reach: int) -> np.ndarray:
    weights = np.exp(-((np.arange(-reach, reach + 1) / sigma) ** 2) / 2)
    return weights / weights.sum()


def fit(draws: np.ndarray, pmf: np.ndarray) -> float:
    """The p-value of Pearson's test; all beyond the probabilities given is one more cell."""
    reach = len(pmf) // 2
    seen = np.bincount(np.clip(draws, -reach - 1, reach + 1) + reach + 1, minlength=len(pmf) + 2)
    expected = draws.size * np.concatenate([[0], pmf, [0]])
    rest = (draws.size - expected.sum()) / 2
    expected[0] += rest
    expected[-1] += rest
    keep = expected >= 10
    seen = np.append(seen[keep], seen[~keep].sum())
    expected = np.append(expected[keep], max(expected[~keep].sum(), 1e-9))
    statistic = ((seen - expected) ** 2 / expected)[expected > 5].sum()
    return float(stats.chi2.sf(statistic, (expected > 5).sum() - 1))


# ---- every word of a small width


def table_of(law: str, parameter: str, word_bits: int = 16) -> tuple[Inversion, list[Decimal]]:
    """A table read with 8 and then 16 bits, and its cumulative probabilities in decimals."""
    with localcontext() as context:
        context.prec = 60
        if law == "laplace":
            sampler = additive.DiscreteLaplace(Fraction(parameter), 8, word_bits)
            return sampler.top, laplace_cdf(parameter, -sampler.last - 2, sampler.last)
        if law == "gaussian":
            wide = additive.DiscreteGaussian(Fraction(parameter) ** 2, 8, word_bits)
            return wide.top, gaussian_cdf(parameter, -wide.last - 1, wide.last)
        chances = [Fraction(part) for part in parameter.split()]
        sums = [sum(chances[: i + 1]) for i in range(len(chances) - 1)]
        table = selection._table(tuple(chances))
        small = Inversion(table.thresholds, np.arange(len(chances)), 8, word_bits)
        return small, [decimal(value) for value in sums]


LAWS = [
    ("laplace", "1"),
    ("laplace", "10"),
    ("laplace", "1/7"),
    ("laplace", "0.001"),
    ("gaussian", "1"),
    ("gaussian", "7.5"),
    ("gaussian", "0.2"),
    ("categorical", "1/3 1/2 1/6"),
    ("categorical", "0 1/4 0 1/2 1/4 0"),
    ("categorical", "1/256 1/65536 65279/65536"),
]


@pytest.mark.parametrize(("law", "parameter"), some(LAWS, 5, several=True))
def test_every_word_is_decided_rightly_or_straddles(law, parameter):
    """All 2^16 words: one that is decided lies within its outcome's interval; one that is not has a
    threshold in its cell, or at its border."""
    table, cdf = table_of(law, parameter)
    first = np.arange(256)
    late = np.flatnonzero(table.guide == table.undecided)
    words = [int(w) for w in late for _ in range(256)]
    bits = np.tile(first, late.size)

    class Straddles(Scripted):
        def integer(self, bits: int) -> int:
            raise KeyError

    with localcontext() as context:
        context.prec = 60
        edges = [Decimal(0), *cdf, Decimal(1)]
        first_outcome = int(table.outcomes[0])
        for cell in np.flatnonzero(table.guide != table.undecided):
            place = int(table.guide[cell]) - first_outcome
            assert edges[place] <= decimal(Fraction(int(cell), 256))
            assert decimal(Fraction(int(cell) + 1, 256)) <= edges[place + 1]
        undecided = 0
        for top, rest in zip(words, bits, strict=True):
            source = Straddles([[rest]])
            word = Fraction(top * 256 + int(rest), 2**16)
            low, high = decimal(word), decimal(word + Fraction(1, 2**16))
            try:
                place = int(table._settle(source, np.array([top]))[0]) - first_outcome
            except KeyError:
                undecided += 1
                assert any(low <= edge <= high for edge in cdf)
            else:
                assert edges[place] <= low and high <= edges[place + 1]
        assert undecided <= len(cdf)


@pytest.mark.parametrize(("law", "parameter"), some([*LAWS[:3], *LAWS[4:7]], 3, several=True))
def test_straddling_words_go_on_to_any_depth(law, parameter):
    """The bits of a threshold itself, fed word by word, stay undecided; one unit beside them at any
    depth decides, on the right side."""
    table, cdf = table_of(law, parameter)
    with localcontext() as context:
        context.prec = 150
        _, cdf = table_of(law, parameter)
        for place in {0, len(cdf) // 2, len(cdf) - 1}:
            with ctx.workprec(600):
                ball = table.thresholds(500)[place]
                low, high = noise_source.bracket_thresholds([ball], 16 + 64 * 4)[0]
            assert low == high
            top = low >> 256
            script = [(low >> shift) % 2**64 for shift in (192, 128, 64, 0)]
            for depth in range(1, 4):
                for side in (-1, 1):
                    fed = [*script[:depth], (script[depth] + side)]
                    if not 0 <= fed[-1] < 2**64:
                        continue
                    source = Scripted([[top & 255]], fed)
                    drawn = int(table._settle(source, np.array([top >> 8]))[0])
                    first = int(table.outcomes[0])
                    assert source.asked == depth + 1
                    assert drawn == first + place + (side > 0)


@given(st.fractions("0.01", 200, max_denominator=1000))
@settings(max_examples=10, deadline=None)
def test_thresholds_enclose_the_law_of_any_scale(scale):
    """The balls of the table hold cumulative sums made in decimals, and are narrow."""
    sampler = additive.DiscreteLaplace(scale)
    narrow = additive.DiscreteGaussian((scale / 10) ** 2)
    with localcontext() as context, ctx.workprec(400):
        context.prec = 60
        cdfs = [(narrow, gaussian_cdf(scale / 10, -narrow.last - 1, narrow.last))]
        if not sampler.digits:
            cdfs.append((sampler, laplace_cdf(scale, -sampler.last - 2, sampler.last)))
        for tables, cdf in cdfs:
            for ball, true in zip(tables.top.thresholds(160), cdf, strict=True):
                assert ball.rad() < arb(2) ** -160
                assert abs(ball - arb(f"{true:f}")) < arb("1e-50")


# ---- splits, by algebra in balls


def probabilities(thresholds: list[arb]) -> list[arb]:
    return [
        high - low for low, high in zip([arb(0), *thresholds], [*thresholds, arb(1)], strict=True)
    ]


@pytest.mark.parametrize("scale", some(["129", "1000", "5000.5", "1e6"], 2))
def test_laplace_digits_multiply_to_the_law(scale):
    sampler = additive.DiscreteLaplace(Fraction(scale))
    assert sampler.digits
    with ctx.workprec(300):
        top = probabilities(sampler.top.thresholds(200))
        digits = [(shift, probabilities(table.thresholds(200))) for shift, table in sampler.digits]
        ratio = ball_exp(-1 / Fraction(scale), 300)
        norm = (1 - ratio) / (1 + ratio)
        reach = sampler.last << sampler.low_bits
        for k in [*range(-40, 40), *np.random.default_rng(1).integers(-reach, reach, 200).tolist()]:
            magnitude = k if k >= 0 else -1 - k
            high = magnitude >> sampler.low_bits
            chance = top[(high if k >= 0 else -1 - high) + sampler.last + 2]
            for position, (shift, table) in enumerate(digits):
                width = (
                    digits[position + 1][0] if position + 1 < len(digits) else sampler.low_bits
                ) - shift
                chance *= table[(magnitude >> shift) % 2**width]
            true = norm * ratio ** abs(k)
            assert abs(chance - true) < true * arb(2) ** -100


@pytest.mark.parametrize("sigma", some(["129", "1000", "33333.25"], 2))
def test_gaussian_blocks_and_thinning_multiply_to_the_law(sigma):
    sampler = additive.DiscreteGaussian(Fraction(sigma) ** 2)
    bits, square = sampler.low_bits, Fraction(sigma) ** 2
    assert bits
    with ctx.workprec(300):
        top = probabilities(sampler.top.thresholds(200))
        norm = top[sampler.last + 2]
        assert abs(top[sampler.last + 1] - norm) < arb(2) ** -150
        for k in np.random.default_rng(2).integers(0, sampler.last << bits, 200).tolist():
            high, low = k >> bits, k % 2**bits
            start = high << bits
            kept = ball_exp(-Fraction(2 * start * low + low**2) / (2 * square), 300)
            for name in (high, -1 - high):
                chance = top[name + sampler.last + 2] * kept / norm
                true = ball_exp(-Fraction(k * k) / (2 * square), 300)
                assert abs(chance - true) < true * arb(2) ** -100


def test_digits_are_put_together_rightly():
    """Scripted words: the middle of the table, all digits known."""
    sampler = additive.DiscreteLaplace(Fraction(2**20))
    cells = {}
    for shift, table in sampler.digits:
        cell = int(np.flatnonzero(table.guide != table.undecided)[777])
        cells[shift] = (cell, int(table.guide[cell]))
    for sign in (1, -1):
        known = sampler.top.guide != sampler.top.undecided
        cell = int(np.flatnonzero(known & (sampler.top.guide * sign > 0))[100])
        named = int(sampler.top.guide[cell])
        source = Scripted([[cell], *([value[0]] for value in cells.values())])
        low = sum(digit << shift for shift, (_, digit) in cells.items())
        magnitude = ((named if named >= 0 else -1 - named) << sampler.low_bits) + low
        drawn = int(sampler.draw(source, 1)[0])
        assert drawn == (magnitude if named >= 0 else -1 - magnitude)


# ---- tails


def test_beyond_the_table_the_geometric_starts_again():
    sampler = additive.DiscreteLaplace(Fraction(1))
    end = sampler.last + 1
    ones, zeros = [2**16 - 1], [0]
    high, low = [2**64 - 1], [0]
    middle = [int(np.flatnonzero(sampler.top.guide == 3)[0])]
    source = Scripted([ones, high, zeros, low, ones, high, middle], [2**64 - 1, 0, 2**64 - 1])
    assert int(sampler.draw(source, 1)[0]) == 3 * end + 3
    source = Scripted([zeros, low, ones, high, middle], [0, 2**64 - 1])
    assert int(sampler.draw(source, 1)[0]) == -1 - (2 * end + 3)


def test_short_tables_give_the_same_law(monkeypatch):
    """With tables of one scale the tails are drawn all the time."""
    monkeypatch.setattr(additive, "TAIL_SCALES", 1)
    monkeypatch.setattr(additive, "TAIL_WIDTHS", 1)
    long = additive.DiscreteLaplace(Fraction(5)).draw(Seeded(1), 3 * 10**5)
    assert fit(long, laplace_pmf(5, 200)) > 1e-4
    assert fit(long, laplace_pmf(5.3, 200)) < 1e-9
    wide = additive.DiscreteGaussian(Fraction(16)).draw(Seeded(2), 20_000)
    assert np.abs(wide).max() > 12
    assert fit(wide, gaussian_pmf(4, 60)) > 1e-4
    assert fit(wide, gaussian_pmf(4.3, 60)) < 1e-9


class AllOnes(Scripted):
    """Every word is the largest: the tail of the tail."""

    def __init__(self) -> None:
        super().__init__([])

    def words(self, bits: int, count: int) -> np.ndarray:
        return np.full(count, 2**bits - 1, dtype=f"<u{bits // 8}")


def test_a_draw_beyond_64_bits_is_an_error():
    with refused("scale", kind=Unsupported):
        noise.discrete_laplace(2**52, 3, source=AllOnes())


class Told:
    """A table whose draws are given."""

    def __init__(self, *draws: int) -> None:
        self.draws = list(draws)

    def draw(self, _source: object, count: int) -> np.ndarray:
        return np.array([self.draws.pop(0) for _ in range(count)])


@pytest.mark.parametrize("sign", [1, -1])
def test_laplace_noise_stays_below_two_to_the_62(sign):
    """So that a count can be added to it; the first that does not is an error."""
    sampler = additive.DiscreteLaplace(Fraction(2**52))
    limit, tail = 2**62 >> sampler.low_bits, sampler.last + 1
    named = tail if sign > 0 else -1 - tail
    sampler.top = Told(named, limit - 1 - tail, 0)
    (drawn,) = sampler._top(Seeded(1), 1).tolist()
    assert drawn == (limit - 1 if sign > 0 else -limit)
    sampler.top = Told(named, limit - tail, 0)
    with refused("scale", kind=Unsupported):
        sampler._top(Seeded(1), 1)


def test_gaussian_noise_stays_below_two_to_the_62(monkeypatch):
    sampler = additive.DiscreteGaussian(Fraction(2**100))
    limit = (2**62 >> sampler.low_bits) - sampler.last - 1
    monkeypatch.setattr(additive, "is_below", lambda *_: True)
    monkeypatch.setattr(additive, "geometric", lambda *_, **__: limit - 1)
    assert sampler._beyond(Seeded(1)) == limit - 1
    monkeypatch.setattr(additive, "geometric", lambda *_, **__: limit)
    with refused("sigma", kind=Unsupported):
        sampler._beyond(Seeded(1))


# ---- goodness of fit


DRAWN = {
    "laplace": (noise.discrete_laplace, laplace_pmf, 40),
    "gaussian": (noise.discrete_gaussian, gaussian_pmf, 20),
}


@cases(10**6, 10**7)
@pytest.mark.parametrize("law", DRAWN)
def test_draws_of_the_system_s_randomness_fit(law, count):
    """A true sampler fails this once in a thousand million runs."""
    draw, pmf, widths = DRAWN[law]
    draws = draw(10, count)
    assert draws.dtype == np.int64
    assert fit(draws, pmf(10, 10 * widths)) > 1e-9
    assert fit(draws, pmf(10.5 if count < 10**7 else 10.1, 10 * widths)) < 1e-30
    assert np.abs(draws).max() > (100 if law == "laplace" else 43)  # beyond the tables' middle


@pytest.mark.parametrize("law", DRAWN)
@pytest.mark.parametrize("scale", some([0.3, 1, 100, 150, 3000], 3))
def test_draws_fit(law, scale):
    draw, pmf, widths = DRAWN[law]
    draws, reach = draw(scale, 10**6, source=Seeded(3)), int(widths * scale / 2) + 5
    assert fit(draws, pmf(scale, reach)) > 1e-4
    assert fit(draws, pmf(scale * 1.05, reach)) < 1e-9


@pytest.mark.parametrize("scale", some([0.3, 1, 100, 150, 3000], 2))
def test_geometric_draws_fit(scale):
    draws, reach = noise.geometric(scale, 10**6, source=Seeded(4)), int(20 * scale) + 5
    assert draws.min() == 0
    for wrong, fits in ((1, True), (1.05, False)):
        pmf = -np.expm1(-1 / scale / wrong) * np.exp(-np.arange(reach + 1) / scale / wrong)
        chance = fit(draws, np.concatenate([np.zeros(reach), pmf]))
        assert chance > 1e-4 if fits else chance < 1e-9


@pytest.mark.parametrize("law", DRAWN)
@pytest.mark.parametrize("scale", some([1e9, 1e12, 2**52], 1))
def test_large_scales(scale, law):
    """Indistinguishable from the continuous law; low bits are fair."""
    draws = DRAWN[law][0](scale, 100_000, source=Seeded(6))
    continuous = {"laplace": "laplace", "gaussian": "norm"}[law]
    assert stats.kstest(draws / scale, continuous).pvalue > 1e-4
    assert stats.kstest(draws / scale * 1.05, continuous).pvalue < 1e-6
    for shift in (0, 7):
        counts = np.bincount((draws >> shift) & 1023, minlength=1024)
        assert stats.chisquare(counts).pvalue > 1e-4


def test_tiny_scales_and_a_variance_instead_of_a_width():
    for draw in (noise.discrete_laplace, noise.discrete_gaussian, noise.geometric):
        assert not draw("1e-299", 1000).any()
    assert not noise.discrete_laplace("1e-3", 1000).any()
    draws = noise.discrete_gaussian(None, 10**6, variance=2, source=Seeded(8))
    assert fit(draws, gaussian_pmf(2**0.5, 30)) > 1e-4


# ---- OpenDP's samplers


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_agreement_with_opendp(law):
    from opendp.domains import atom_domain, vector_domain  # the prelude takes seconds
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    metric = l1_distance(T="i32") if law == "laplace" else l2_distance(T="f64")
    make = make_laplace if law == "laplace" else make_gaussian
    runs, values = 60_000, np.arange(-60, 61)
    theirs = np.array(make(vector_domain(atom_domain(T="i32")), metric, scale=5.0)([0] * runs))
    pmf = laplace_pmf if law == "laplace" else gaussian_pmf

    def agrees(scale: float) -> bool:
        """No count is one that hardly ever comes: nothing repeats OpenDP's draws."""
        chances = pmf(scale, 60)
        at = [(theirs == value, values == value) for value in range(-30, 31)]
        within = [(abs(theirs) <= far, abs(values) <= far) for far in range(30)]
        for seen, part in at + within:
            low, high = likely_counts(chances[part].sum(), runs)
            if not low <= seen.sum() <= high:
                return False
        return True

    assert agrees(5)
    assert not agrees(5.4)


# ---- uniform integers and coins


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 16, 100, 250, 4096])
def test_uniform_gives_equally_many_words_to_each(n):
    bits = 8 if n <= 16 else 16
    words = np.arange(1 << bits)
    spare = (1 << bits) % n
    again = [np.zeros(spare, dtype=int)] if spare else []
    drawn = noise_source.draw_below(n, words.size, Scripted([words, *again]))
    kept = drawn[: words.size - spare]
    assert (np.bincount(kept, minlength=n) == (1 << bits) // n).all()


def test_uniform_of_any_size():
    assert noise.uniform(1) == 0
    for n in (10, 1000, 10**6, 10**12, 2**63, 3 * 2**61):
        draws = noise.uniform(n, 10**5, source=Seeded(10))
        assert draws.min() >= 0 and int(draws.max()) < n
        assert stats.kstest(draws / n, "uniform").pvalue > 1e-4 or n == 10


def test_coins_follow_their_probability():
    for probability, value in [("1/3", 1 / 3), (0.25, 0.25), (noise.exp_minus("1/2"), 0.60653066)]:
        found = noise.bernoulli(probability, 10**6, source=Seeded(11)).mean()
        assert abs(found - value) < 5 * (value * (1 - value) / 10**6) ** 0.5
    assert noise.bernoulli(0, 1000).sum() == 0 and noise.bernoulli(1, 1000).sum() == 1000
    assert noise.bernoulli(0) == 0 and noise.bernoulli(1) == 1
    few = [noise.bernoulli("1/3", source=source) for source in [Seeded(12)] for _ in range(3000)]
    assert abs(sum(few) - 1000) < 130


def test_a_real_whose_balls_never_close_on_a_binary_fraction():
    """e^(−ln 2) is 1/2, and no ball says so; coins are drawn all the same."""

    def half(precision: int) -> arb:
        with ctx.workprec(precision):
            return (-arb(2).log()).exp()

    source = Scripted([], [2**63, 0, 1])
    assert noise_source.is_below(source, half) is False and source.asked == 3
    found = noise.bernoulli(half, 10**6, source=Seeded(13)).mean()
    assert abs(found - 0.5) < 0.0025


@given(st.floats(0, 3), st.integers(-2, 2))
@settings(max_examples=100, deadline=None)
def test_coins_of_an_exponent_agree_with_the_exact_comparison(exponent, beside):
    """Words at and beside 2^32 e^(−y), where a float's last bits matter."""
    exact = Fraction(exponent)
    ball = ball_exp(-exact, 300)
    low, high = noise_source.bracket_thresholds([ball], 96)[0]
    word, rest = divmod(low, 2**64)
    word = min(max(word + beside, 0), 2**32 - 1)
    for fed in (rest - 1, rest + 1):
        if not 0 <= fed < 2**64:
            continue
        source = Scripted([[word]], [fed])
        found = noise_source.bernoulli_exp(np.array([exponent]), lambda _: exact, source)
        if low == high and (low >> 64) < 2**32:
            assert bool(found[0]) == (word * 2**64 + fed < low)


# ---- choices


def test_categorical_follows_its_probabilities():
    chances = ["0.2", 0, "1/3", Fraction(7, 15), 0]
    draws = noise.categorical(chances, (1000, 1000), dtype=np.uint8, source=Seeded(14))
    assert draws.dtype == np.uint8 and draws.shape == (1000, 1000)
    counts = np.bincount(draws.reshape(-1), minlength=5)
    assert counts[1] == counts[4] == 0
    expected = 10**6 * np.array([0.2, 1 / 3, 7 / 15])
    assert stats.chisquare(counts[[0, 2, 3]], expected).pvalue > 1e-4
    assert noise.categorical([1]) == 0


def test_an_impossible_outcome_never_comes_even_at_the_extreme_words():
    table, _ = table_of("categorical", "0 1/4 0 1/2 1/4 0")
    for first, rest, more in [(0, 0, [0, 1]), (255, 255, [2**64 - 1, 2**64 - 2])]:
        drawn = int(table._settle(Scripted([[rest]], more), np.array([first]))[0])
        assert drawn == (1 if first == 0 else 4)


def test_randomized_response():
    rows = [["3/4", "1/4"], ["1/4", "3/4"]]
    codes = np.tile(np.array([0, 1, 1], dtype=np.uint8), 10**5)
    answers = noise.randomized_response(codes, rows, source=Seeded(15))
    assert answers.dtype == np.uint8
    assert abs(answers[codes == 0].mean() - 0.25) < 0.01
    assert abs(answers[codes == 1].mean() - 0.75) < 0.01


def test_selections_cost_what_opendp_says():
    assert noise.selection_epsilon(1, 2) == 1 and noise.selection_epsilon(1, 2, 3) == 3
    assert noise.selection_epsilon(1, 2, 3, monotonic=True) == 1.5
    assert noise.selection_epsilon("0.1", 1) >= Fraction(1, 5)
    assert noise.selection_rho(1, 2) == 0.125 and noise.selection_rho(1, 2, 3) == 0.375
    assert noise.selection_rho("0.1", 1) >= Fraction(1, 200)


# ---- the grid


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    st.sampled_from(["1", "0.01", "1/3", "2.5", "1e-9", "1e30"]),
)
@settings(max_examples=80, deadline=None)
def test_units_are_the_exact_rounding(values, step):
    grid = wi.noise.Grid(step)
    for value, unit in zip(values, grid.units(values), strict=True):
        true = (Fraction(value) / grid.step + Fraction(1, 2)).__floor__()
        assert int(unit) == min(max(true, -(2**62)), 2**62)


@given(
    st.floats(-1e6, 1e6), st.fractions(0, 100), st.sampled_from(["1", "0.01", "1/3", "2.5", "7"])
)
@settings(max_examples=100, deadline=None)
def test_the_grid_accounts_for_its_rounding(value, change, step):
    grid = wi.noise.Grid(step)
    exact = np.array([Fraction(value), Fraction(value) + change], dtype=object)
    low, high = grid.units(exact)
    assert change == 0 or 0 <= high - low <= grid.sensitivity(change)


@pytest.mark.parametrize("step", [3, 7, 2**53, 2**53 + 1])
def test_grid_points_are_rounded_once(step):
    """Neither factor may have been rounded before they are multiplied."""
    units = [sign * (2**53 + more) for more in (-(2**53) + 3, *range(40)) for sign in (1, -1)]
    for exact in (Fraction(step), Fraction(1, step)):
        assert noise.Grid(exact).values(units).tolist() == [float(unit * exact) for unit in units]


def test_the_grid_s_sensitivity_is_attained():
    grid = wi.noise.Grid("0.5")
    assert grid.sensitivity("0.6") == 2
    low, high = grid.units(np.array([Fraction("0.2"), Fraction("0.8")], dtype=object))
    assert high - low == 2
    # Two coordinates that move by 0.3 each: one step each, though 0.6 alone is two.
    assert grid.sensitivity("0.6", coordinates=2) == 3


def test_noise_on_a_grid():
    grid = wi.noise.Grid("0.01")
    units = grid.add_laplace(np.zeros(10**5, dtype=np.int64), grid.sensitivity(1), "1/2")
    assert units.dtype == np.int64
    assert abs(np.abs(units).mean() - 200) < 5
    points = grid.values(units)
    assert (points == units / 100).all()
    assert grid.exact(units[:3]).tolist() == [Fraction(int(unit), 100) for unit in units[:3]]
    wide = grid.add_gaussian(np.zeros(10**5, dtype=np.int64), 100, "1/2")
    assert abs(wide.std() - 100) < 2
    ends = grid.add_laplace(np.array([2**63 - 1, -(2**63)]), 1, 1)
    assert abs(ends.astype(float)).max() <= 2.0**62
    assert grid.units(np.array([3, 2**64 - 1], dtype=np.uint64))[0] == 300


# ---- randomness discipline


def sourced_calls(code: str) -> list[str]:
    """Calls of samplers, by whatever way to their name, that pass a source or hide keywords."""
    names = {sampler.__name__ for sampler in (*noise.SAMPLERS, *noise.SELECTIONS)}
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and {keyword.arg for keyword in node.keywords} & {"source", None}
        and ast.unparse(node.func).rpartition(".")[2] in names
    ]


def test_other_rooms_never_pass_a_source():
    """A source can only be given by keyword, and nobody outside `noise` does."""
    root = Path(wi.__file__).parent
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.parent.name != "noise" and ("source=" in text or "**" in text):
            assert sourced_calls(text) == [], path
    assert sourced_calls("wi.noise.uniform(3, source=mine)") and sourced_calls("geometric(1, **a)")


def test_the_package_has_no_seed():
    for path in (Path(wi.__file__).parent / "noise").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "default_rng" not in text and "environ" not in text and "np.random" not in text
    with refused("source", "Generator"):
        noise.discrete_laplace(1, 5, source=np.random.default_rng(0))


def test_a_fork_does_not_repeat_its_parent():
    code = (
        "import os, whosin as wi\n"
        "wi.noise.discrete_laplace(1e6, 10)\n"
        "reader, writer = os.pipe()\n"
        "child = os.fork()\n"
        "draws = wi.noise.discrete_laplace(1e6, 8).tobytes()\n"
        "if child == 0: os.write(writer, draws); os._exit(0)\n"
        "assert os.read(reader, 64) != draws\n"
        "os.waitpid(child, 0)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_share_the_samplers():
    """FLINT's precision is global to the process: a thread that changes it only widens balls."""

    def work(seed: int) -> float:
        scale = 1 + Fraction(seed, 7)
        draws = noise.discrete_laplace(scale, 50_000, source=Seeded(seed))
        return fit(draws, laplace_pmf(float(scale), 100))

    with ThreadPoolExecutor(8) as pool:
        assert min(pool.map(work, range(16))) > 1e-5


# ---- shapes and bad input


def test_sizes():
    assert isinstance(noise.discrete_laplace(3), int)
    assert isinstance(noise.discrete_gaussian(3), int)
    assert noise.discrete_laplace(3, 0).shape == (0,)
    assert noise.discrete_laplace(3, (2, 0, 3)).shape == (2, 0, 3)
    assert noise.discrete_gaussian(300, np.int64(4)).shape == (4,)


@pytest.mark.parametrize("sampler", [noise.discrete_laplace, noise.discrete_gaussian])
@pytest.mark.parametrize(
    "scale",
    [0, -1, float("nan"), float("inf"), 1e16, 2**52 + 1, "x", None, [1], True, b"1", "1e9999", 1j],
)
def test_bad_scales(sampler, scale):
    with pytest.raises(InvalidInput) as caught:
        sampler(scale, 3)
    assert caught.value.field in ("scale", "sigma", "sigma or variance")


@pytest.mark.parametrize("size", [-1, 1.5, "3", (2, -1), True, [None], 2**70, {}])
def test_bad_sizes(size):
    for sampler in (
        noise.discrete_laplace,
        noise.discrete_gaussian,
        noise.geometric,
        noise.uniform,
    ):
        with refused("size"):
            sampler(3, size)
    with refused("size"):
        noise.bernoulli("1/2", size)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: noise.uniform(0), "n"),
        (lambda: noise.uniform(2**63 + 1), "n"),
        (lambda: noise.uniform(1.5), "n"),  # type: ignore[call-overload]
        (lambda: noise.bernoulli(1.5), "probability"),
        (lambda: noise.bernoulli("x"), "probability"),
        (lambda: noise.bernoulli(lambda precision: 0.5), "probability"),
        (lambda: noise.bernoulli(lambda precision: arb(2)), "probability"),
        (lambda: noise.exp_minus(-1), "exponent"),
        (lambda: noise.categorical([0.5, 0.4]), "probabilities"),
        (lambda: noise.categorical([]), "probabilities"),
        (lambda: noise.categorical("11"), "probabilities"),
        (lambda: noise.categorical([2, -1]), "probabilities"),
        (lambda: noise.categorical([1], dtype=float), "dtype"),
        (lambda: noise.categorical(["1/300"] * 300, 3, dtype=np.uint8), "dtype"),
        (lambda: noise.randomized_response([0, 2], [[1], [1]]), "codes"),
        (lambda: noise.randomized_response([0.5], [[1]]), "codes"),
        (lambda: noise.discrete_gaussian(), "sigma"),
        (lambda: noise.discrete_gaussian(1, 1, variance=1), "sigma"),
        (lambda: noise.discrete_gaussian(None, 1, variance=-1), "variance"),
        (lambda: noise.top_k([1, 2], 3, 1), "k"),
        (lambda: noise.top_k([1, 2], 0, 1), "k"),
        (lambda: noise.top_k([], 1, 1), "scores"),
        (lambda: noise.top_k([1, float("nan")], 1, 1), "scores"),
        (lambda: noise.top_k(["a"], 1, 1), "scores"),
        (lambda: noise.noisy_max([1, 2], 0), "scale"),
        (lambda: noise.selection_epsilon(-1, 1), "sensitivity"),
        (lambda: wi.noise.Grid(0), "step"),
        (lambda: wi.noise.Grid(-1), "step"),
        (lambda: wi.noise.Grid("nan"), "step"),
        (lambda: wi.noise.Grid(1).units([1.0, float("nan")]), "values"),
        (lambda: wi.noise.Grid(1).units([math.inf, 1.0]), "values"),
        (lambda: wi.noise.Grid(1).units(["a"]), "values"),
        (lambda: wi.noise.Grid(1).sensitivity(0), "sensitivity"),
        (lambda: wi.noise.Grid(1).add_laplace([1.5], 1, 1), "units"),
        (lambda: wi.noise.Grid(1).add_laplace([1], 0.5, 1), "sensitivity"),  # type: ignore[arg-type]
        (lambda: wi.noise.Grid(1).add_laplace([1], 1, 0), "epsilon"),
        (lambda: wi.noise.Grid(1).add_laplace([1], 1, 1e-30), "epsilon"),
        (lambda: wi.noise.Grid(1).add_gaussian([1], 1, 1e-40), "rho"),
    ],
)
def test_bad_input(call, field):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.field.startswith(field)


def test_units_of_values_near_a_boundary_are_exact():
    """Half-way between two grid points a rounding of a float could go either way."""
    rng = random.Random(8)
    for step in (Fraction(1, 10), Fraction(3), Fraction(1, 7), Fraction(10**6, 3)):
        values = []
        for _ in range(200):
            border = float((rng.randrange(-(10**6), 10**6) + Fraction(1, 2)) * step)
            values += [border, math.nextafter(border, math.inf), math.nextafter(border, -math.inf)]
        truth = [math.floor(Fraction(value) / step + Fraction(1, 2)) for value in values]
        assert wi.noise.Grid(step).units(values).tolist() == truth


def test_exact_exponents_are_those_that_floats_stand_for(monkeypatch):
    """Coins ask for the exact exponent where floats cannot decide, next to never."""
    compared = []

    def compare(exponents, exact, source):
        for place in range(0, exponents.size, 97):
            compared.append((exponents[place], exact(place)))
        return np.ones(exponents.size, dtype=bool)

    monkeypatch.setattr(additive, "bernoulli_exp", compare)
    for variance in (Fraction(10**9), Fraction(10**13, 7)):
        additive.DiscreteGaussian(variance)._proposals(Seeded(4), 2000)
    assert len(compared) > 30 and max(exact for _, exact in compared) > 0
    for rounded, exact in compared:
        assert rounded == pytest.approx(float(exact), rel=1e-12)
