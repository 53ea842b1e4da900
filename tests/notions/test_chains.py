"""Leakage over Markov chains (THEORY F13) against brute force over all sets of known rows."""

from __future__ import annotations

import json
import math
import random
import time
from fractions import Fraction
from itertools import pairwise

import pytest

import record_oracle as records
import whosin as wi
from amounts import cases
from refusals import refused
from whosin import statistics
from whosin.calibration import planning
from whosin.errors import Unsupported
from whosin.mechanisms import Composed, Geometric, Laplace
from whosin.notions import (
    BayesianDifferentialPrivacy,
    DifferentialPrivacy,
    bayesian_privacy,
    prior_sets,
)
from whosin.notions.bayesian_privacy import noisy_sum
from whosin.priors import Box, ChainBox, MarkovChain, Table

HALF = Fraction(1, 2)


def sticky(stay) -> MarkovChain:
    """Two values, a uniform start, and a probability to stay."""
    return MarkovChain((HALF, HALF), ((stay, 1 - stay), (1 - stay, stay)))


def matrix(rng: random.Random, m: int, zeros: float) -> list:
    return [records.random_distribution(rng, m, zeros) for _ in range(m)]


def random_chain(rng: random.Random, n: int, m: int, steps: bool):
    """(initial, a matrix a step, the chain), with zeros in either or neither."""
    start = records.random_distribution(rng, m, rng.choice([0, 0.4]))
    zeros = rng.choice([0, 0.3])
    if steps and n > 2:
        listed = [matrix(rng, m, zeros) for _ in range(n - 1)]
        return start, listed, MarkovChain(start, listed)
    one = matrix(rng, m, zeros)
    return start, [one] * (n - 1), MarkovChain(start, one)


def random_query(rng: random.Random, kind: str, m: int):
    """(mechanism, what each value adds, the base of the noise in each coordinate)."""
    scale: Fraction = rng.choice([HALF, Fraction(1), Fraction(2), Fraction(7, 3)])
    base = math.exp(-1 / scale)
    if kind == "count":
        of = rng.sample(range(m), rng.randint(0, m))
        return (
            Laplace(statistics.Count(of=of), scale),
            [(int(v in of),) for v in range(m)],
            [base],
        )
    if kind == "histogram":
        cells = [tuple(int(v == c) for c in range(m)) for v in range(m)]
        return Laplace(statistics.Histogram(), scale), cells, [base] * m
    if kind == "alpha":
        alpha, weights = Fraction(rng.randint(1, 4), 5), [rng.randint(-2, 3) for _ in range(m)]
        return Geometric(statistics.Sum(weights), alpha=alpha), [(w,) for w in weights], [alpha]
    if kind == "twice":
        weights = [rng.randint(0, 2) for _ in range(m)]
        parts = [Laplace(statistics.Sum(), scale), Geometric(statistics.Sum(weights), scale=2)]
        both = [(v, weights[v]) for v in range(m)]
        return Composed(parts), both, [base, math.exp(-0.5)]
    if kind == "weights":
        parts_of = [Fraction(rng.randint(-4, 4), rng.choice([1, 2, 3])) for _ in range(m)]
        return Laplace(statistics.Sum(parts_of), scale), [(w,) for w in parts_of], [base]
    return Laplace(statistics.Sum(), scale), [(v,) for v in range(m)], [base]


def place(outputs: list, output) -> int:
    """The number of a witness's output among those of the oracle."""
    flat = output if isinstance(output, tuple) else (output,)
    apart = [sum(abs(float(a) - float(b)) for a, b in zip(o, flat, strict=True)) for o in outputs]
    assert min(apart) < 1e-9
    return apart.index(min(apart))


def check_witness(case, prior: dict, outputs: list, channel: dict, level: float) -> None:
    """Row, known rows, values and output, replayed from the definition, have the ratio."""
    assert case.row not in case.known
    output = place(outputs, case.output)
    found = records.replayed(prior, channel, case.row, case.known, case.values, output)
    assert records.log(found) == pytest.approx(level, abs=1e-9)
    assert case.ratio == pytest.approx(float(found), rel=1e-9)
    assert case.posterior == pytest.approx(float(found / (1 + found)), rel=1e-9)


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("kind", ["sum", "count", "histogram", "alpha", "twice", "weights"])
def test_every_set_of_known_rows(kind, steps):
    """F13: windows are enough. The level is that of all sets S, for one matrix and for a matrix a
    step, starts and steps with zeros; its witness shows it."""
    rng = random.Random(f"{kind} {steps}")
    for _ in range(6):
        m = rng.choice([2, 2, 3])
        most = {2: 5, 3: 3 if kind == "histogram" else 4}[m]
        n = rng.randint(1, most)
        start, listed, chain = random_chain(rng, n, m, steps)
        mechanism, weights, bases = random_query(rng, kind, m)
        prior = records.markov(start, listed)
        outputs, channel = records.noisy_sums(n, weights, bases)
        truth = records.log(records.bayesian_ratio(prior, channel, n))
        space = wi.Records(n, m)
        level = bayesian_privacy.measure_chain_leakage(chain, space, noisy_sum(mechanism, space))
        assert level.exact or level.value < 1e-13
        assert level.value == pytest.approx(truth, abs=1e-9)
        check_witness(level.witness, prior, outputs, channel, truth)


def test_the_table_method_agrees():
    """The same leakage from the table over all sets of known rows, for up to eight rows."""
    rng = random.Random(3)
    for trial in range(8):
        m = rng.choice([2, 3])
        n = rng.randint(4, 8 if m == 2 else 5)
        _start, _listed, chain = random_chain(rng, n, m, trial % 2 == 1)
        mechanism, _weights, _bases = random_query(rng, rng.choice(["sum", "count", "alpha"]), m)
        space = wi.Records(n, m)
        level = BayesianDifferentialPrivacy(chain).measure(mechanism, space)
        listed = Table(list(chain.on_records(space, float)))
        table = BayesianDifferentialPrivacy(listed).measure(mechanism.channel(space))
        assert float(level.value) == pytest.approx(float(table.value), abs=1e-9)


NUMBERS = [
    (6, 0.9, 3.850822),
    (6, 0.75, 2.353159),
    (6, 0.6, 1.432780),
    (6, 0.3, 1.0),
    (4, 0.9, 3.066303),
]


@pytest.mark.parametrize(("rows", "stay", "leakage"), NUMBERS)
def test_numbers_to_meet(rows, stay, leakage):
    """Two values, uniform start, Laplace scale 1 on the sum."""
    level = BayesianDifferentialPrivacy(sticky(stay)).measure(
        Laplace(statistics.Sum(), 1), wi.Records(rows, 2)
    )
    assert level.exact
    assert level.value == pytest.approx(leakage, abs=1e-6 if stay != 0.3 else 1e-12)


def cut_chains(rng: random.Random):
    """Chains of eight to twelve rows that mix, with values that are impossible at first."""
    for trial in range(12):
        m = 2 if trial % 3 else 3
        n = rng.randint(8, 12) if m == 2 else rng.randint(8, 9)
        start = records.random_distribution(rng, m, 0.5 if trial % 2 else 0)
        step = matrix(rng, m, 0)
        if trial % 4 == 0:
            # Zeros that the second step fills.
            step[0] = [Fraction(0), *records.random_distribution(rng, m - 1, 0)]
        yield n, m, MarkovChain(start, step)


@pytest.mark.parametrize("reach", [1, 2, 3, 5])
def test_the_cut_is_certified(monkeypatch, reach):
    """lower ≤ truth ≤ upper when windows are cut at `reach`, where the truth is measured without
    cutting; the witness attains the lower end; a level that calls itself exact is."""
    rng, brackets = random.Random(4), 0
    for n, m, chain in cut_chains(rng):
        space = wi.Records(n, m)
        query = noisy_sum(Laplace(statistics.Sum(), rng.choice([1, 2, 4])), space)
        whole = bayesian_privacy.measure_chain_leakage(chain, space, query)
        assert whole.exact
        with monkeypatch.context() as patch:
            patch.setattr(bayesian_privacy, "WINDOW_LENGTHS", (reach,))
            patch.setattr(
                bayesian_privacy,
                "MAX_SWEEP_OPERATIONS",
                bayesian_privacy.estimate_sweep(reach, query, m) * 1.01,
            )
            if any(0 in row for row in chain.steps[0]) and reach == 1:
                # A step is impossible within the window: no bound, and it says so.
                with refused("rows", kind=Unsupported):
                    bayesian_privacy.measure_chain_leakage(chain, space, query)
                continue
            cut = bayesian_privacy.measure_chain_leakage(chain, space, query)
        truth = whole.value
        if cut.exact:
            assert cut.value == pytest.approx(truth, abs=1e-10)
            continue
        brackets += 1
        assert cut.lower <= truth + 1e-12
        assert truth <= cut.value + 1e-12
        assert cut.lower < cut.value
        assert cut.witness.ratio == pytest.approx(math.exp(cut.lower), rel=1e-9)
    assert brackets >= 2


def test_wider_windows_narrow_the_bracket(monkeypatch):
    """The bracket shrinks with the window, at the rate at which the chain forgets."""
    space, chain = wi.Records(40, 2), sticky(Fraction(3, 4))
    query = noisy_sum(Laplace(statistics.Sum(), 1), space)
    truth, widths = bayesian_privacy.measure_chain_leakage(chain, space, query).value, []
    for reach in (2, 4, 8, 16):
        with monkeypatch.context() as patch:
            patch.setattr(bayesian_privacy, "WINDOW_LENGTHS", (reach,))
            patch.setattr(
                bayesian_privacy,
                "MAX_SWEEP_OPERATIONS",
                bayesian_privacy.estimate_sweep(reach, query, 2) * 1.01,
            )
            level = bayesian_privacy.measure_chain_leakage(chain, space, query)
        lower = level.value if level.lower is None else level.lower
        assert lower <= truth + 1e-10 <= level.value + 2e-10
        widths.append(level.value - lower)
    assert all(narrow == 0 or wide > 2 * narrow for wide, narrow in pairwise(widths))
    assert widths[0] > 0


def test_the_closing_tolerance_only_renames(monkeypatch):
    """With CLOSED as wide as the bracket a bound is called exact, but the value stays the upper
    end."""
    space, chain = wi.Records(12, 2), sticky(Fraction(9, 10))
    query = noisy_sum(Laplace(statistics.Sum(), 1), space)
    truth = bayesian_privacy.measure_chain_leakage(chain, space, query).value
    monkeypatch.setattr(bayesian_privacy, "WINDOW_LENGTHS", (6,))
    monkeypatch.setattr(bayesian_privacy, "CLOSED_ETA", 100.0)
    level = bayesian_privacy.measure_chain_leakage(chain, space, query)
    assert level.exact and level.value >= truth - 1e-12


def test_a_lone_exact_chain_beside_a_bound(monkeypatch):
    """A list's lower end is the largest that a witness of any chain attains."""
    space = wi.Records(12, 2)
    mechanism = Laplace(statistics.Sum(), 1)
    listed = [sticky(Fraction(9, 10)), sticky(Fraction(3, 10))]
    query = noisy_sum(mechanism, space)
    truth = max(
        bayesian_privacy.measure_chain_leakage(chain, space, query).value for chain in listed
    )
    monkeypatch.setattr(bayesian_privacy, "WINDOW_LENGTHS", (1,))
    monkeypatch.setattr(
        bayesian_privacy,
        "MAX_SWEEP_OPERATIONS",
        bayesian_privacy.estimate_sweep(1, query, 2) * 1.01,
    )
    level = BayesianDifferentialPrivacy(listed).measure(mechanism, space)
    singles = [bayesian_privacy.measure_chain_leakage(chain, space, query) for chain in listed]
    assert not level.exact
    assert level.value == max(each.value for each in singles) >= truth
    shown = max(each.value if each.lower is None else each.lower for each in singles)
    assert level.lower == shown <= truth + 1e-12


def test_longer_series_never_leak_less(monkeypatch):
    """A window whose right end is a known row fits into every longer series from the same start,
    so the most that such windows leak never falls, and the level is never below it. (The level
    itself may fall: the next test.)"""
    rng, original = random.Random(5), bayesian_privacy._right_sides

    def known(*given):
        sides, densities, norms = original(*given)
        kept = [number for number, side in enumerate(sides) if side.value is not None]
        return [sides[k] for k in kept], densities[kept], norms[kept]

    for _ in range(3):
        _start, _listed, chain = random_chain(rng, 3, 2, steps=False)
        mechanism, _weights, _bases = random_query(rng, "sum", 2)
        inner = []
        for n in range(2, 10):
            space = wi.Records(n, 2)
            query = noisy_sum(mechanism, space)
            with monkeypatch.context() as patch:
                patch.setattr(bayesian_privacy, "_right_sides", known)
                worst = bayesian_privacy.WorstWindow()
                bayesian_privacy.sweep_windows(
                    chain, n, query, chain.marginals(n), n - 1, None, worst
                )
                inner.append(worst.value)
            level = bayesian_privacy.measure_chain_leakage(chain, space, query)
            assert level.exact and level.value >= inner[-1] - 1e-12
        assert all(a <= b + 1e-12 for a, b in pairwise(inner))


def test_a_longer_series_may_leak_less():
    """Where the end of the series is in the window more rows can hide a row: an alternating series
    of even length has one possible sum and tells nothing, of odd length it tells the first row."""
    chain = MarkovChain((HALF, HALF), ((0, 1), (1, 0)))
    for rows in range(1, 8):
        level = BayesianDifferentialPrivacy(chain).measure(
            Laplace(statistics.Sum(), HALF), wi.Records(rows, 2)
        )
        assert level.value == pytest.approx(2 * (rows % 2), abs=1e-12)


@pytest.mark.parametrize("stay", [0.3, 0.6, pytest.param(0.9, marks=pytest.mark.soak)])
def test_a_thousand_rows(stay):
    """Exactly, in seconds, and no less than a short series of the same chain; the witness names
    every row outside the window."""
    began = time.process_time()
    level = BayesianDifferentialPrivacy(sticky(stay)).measure(
        Laplace(statistics.Sum(), 1), wi.Records(1000, 2)
    )
    assert time.process_time() - began < 60
    assert level.exact
    short = BayesianDifferentialPrivacy(sticky(stay)).measure(
        Laplace(statistics.Sum(), 1), wi.Records(12, 2)
    )
    assert level.value >= short.value - 1e-9
    assert level.value == pytest.approx(1) if stay == 0.3 else level.value > 1
    case = level.witness
    unknown = sorted(set(range(1000)) - set(case.known))
    assert case.row in unknown
    assert unknown == list(range(unknown[0], unknown[-1] + 1))


def test_a_long_witness_is_replayed_in_its_window():
    """The window of a long series, cut out and enumerated, has the ratio that is claimed."""
    chain = sticky(Fraction(7, 10))
    level = BayesianDifferentialPrivacy(chain).measure(
        Laplace(statistics.Sum(), HALF), wi.Records(60, 2)
    )
    case = level.witness
    unknown = [row for row in range(60) if row not in case.known]
    low, high = max(unknown[0] - 1, 0), min(unknown[-1] + 1, 59)
    n = high - low + 1
    assert n <= 14
    step = [[Fraction(7, 10), Fraction(3, 10)], [Fraction(3, 10), Fraction(7, 10)]]
    prior = records.markov([HALF, HALF], [step] * (n - 1))
    outputs, channel = records.noisy_sums(n, [(0,), (1,)], [math.exp(-2)])
    outside = sum(v for row, v in case.known.items() if not low <= row <= high)
    known = {row - low: v for row, v in case.known.items() if low <= row <= high}
    output = place(outputs, case.output - outside)
    found = records.replayed(prior, channel, case.row - low, known, case.values, output)
    assert records.log(found) == pytest.approx(float(level.value), abs=1e-9)


@pytest.mark.parametrize(("stay", "epsilon"), [(0.9, 1.0), (0.6, 0.5), (0.75, 2.0)])
def test_smallest_scale(stay, epsilon):
    """What is returned keeps ε; a thousandth less does not; and it is between plain and group
    privacy."""
    space = wi.Records(20, 2)
    scale = planning.plan_series([sticky(stay)], space, statistics.Sum(), epsilon).scale
    notion = BayesianDifferentialPrivacy(sticky(stay))
    assert notion.measure(Laplace(statistics.Sum(), scale), space).value <= epsilon
    assert notion.measure(Laplace(statistics.Sum(), scale * 0.999), space).value > epsilon
    assert 1 / epsilon < scale < 20 / epsilon


def test_smallest_scale_of_independent_rows_is_the_sensitivity():
    """Independent rows need what DP needs: for a histogram 2/ε, for a sum its span."""
    third = Fraction(1, 3)
    chain = MarkovChain((third,) * 3, ((third,) * 3,) * 3)
    space = wi.Records(3, 3)
    for statistic, span in (
        (statistics.Histogram(), 2),
        (statistics.Sum((-1, 0, 4)), 5),
        (statistics.Count(), 1),
    ):
        scale = planning.plan_series([chain], space, statistic, 0.5).scale
        assert scale == pytest.approx(2 * span, rel=1e-6)


def test_smallest_scale_for_a_list():
    """The largest of the chains' own scales."""
    space, listed = wi.Records(10, 2), [sticky(0.3), sticky(0.8), sticky(0.7)]
    together = planning.plan_series(listed, space, statistics.Sum(), 1.0).scale
    alone = [planning.plan_series([chain], space, statistics.Sum(), 1.0).scale for chain in listed]
    assert together == pytest.approx(max(alone), rel=3e-6)
    for wrong in (0, -1, math.nan):
        with refused("epsilon"):
            planning.plan_series(listed, space, statistics.Sum(), wrong)


NO_MIXING = {
    "copies": (((1, 0), (0, 1)), 4.0),
    "alternates": (((0, 1), (1, 0)), None),
    "periodic": (((0, 1, 0), (0, 0, 1), (1, 0, 0)), None),
}


@pytest.mark.parametrize("name", NO_MIXING)
def test_chains_that_never_mix(name):
    """Exact when short, refused with the reason when long: there is no place to cut."""
    step, leakage = NO_MIXING[name]
    m = len(step)
    start = [Fraction(1, m)] * m
    level = BayesianDifferentialPrivacy(MarkovChain(start, step)).measure(
        Laplace(statistics.Sum(), 1), wi.Records(4, m)
    )
    prior = records.markov(start, [step] * 3)
    _outputs, channel = records.noisy_sums(4, [(v,) for v in range(m)], [math.exp(-1)])
    truth = records.log(records.bayesian_ratio(prior, channel, 4))
    assert level.exact and level.value == pytest.approx(truth, abs=1e-9)
    assert leakage is None or level.value == pytest.approx(leakage)
    with refused("rows", 5000, kind=Unsupported):
        BayesianDifferentialPrivacy(MarkovChain(start, step)).measure(
            Laplace(statistics.Sum(), 1), wi.Records(5000, m)
        )


def test_deterministic_rows_leak_nothing():
    """Rows that are certain have nothing to tell; the witness compares a value with itself."""
    chain = MarkovChain((1, 0), ((0, 1), (1, 0)))
    level = BayesianDifferentialPrivacy(chain).measure(
        Laplace(statistics.Sum(), 1), wi.Records(5, 2)
    )
    assert level.value == 0 and level.exact
    assert level.witness.values[0] == level.witness.values[1]


def test_a_matrix_a_step_has_its_limits():
    """Long series with a matrix a step are refused with the reason."""
    step = ((0.9, 0.1), (0.1, 0.9))
    chain = MarkovChain((0.5, 0.5), [step] * 1999)
    with refused("rows", 2000, kind=Unsupported):
        BayesianDifferentialPrivacy(chain).measure(
            Laplace(statistics.Sum(), 1), wi.Records(2000, 2)
        )


def test_too_little_noise_is_refused_not_wrong():
    """From scale 1/5 to 1/5000 the leakage is right to 1e-9 or refused, never anything else."""
    rows, answered, refused = 4, 0, 0
    prior = records.markov([HALF] * 2, [[[0.9, 0.1], [0.1, 0.9]]] * (rows - 1))
    excess = None
    for steps in (5, 20, 80, 160, 320, 500, 640, 660, 700, 709, 720, 740, 745, 800, 5000):
        scale = Fraction(1, steps)
        try:
            level = BayesianDifferentialPrivacy(sticky(0.9)).measure(
                Laplace(statistics.Sum(), scale), wi.Records(rows, 2)
            )
        except Unsupported:
            refused += 1
            continue
        answered += 1
        if steps <= 80:
            _outputs, channel = records.noisy_sums(rows, [(0,), (1,)], [math.exp(-steps)])
            truth = records.log(records.bayesian_ratio(prior, channel, rows))
            excess = truth - steps
        # What it leaks beyond the row's own 1/scale is settled from there on.
        assert level.value == pytest.approx(steps + excess, abs=1e-7)
    assert answered >= 6 and refused >= 3


def test_weights_far_apart_are_refused_not_wrong():
    """Values 0, 1 and 1000 with scale 1: beyond doubles, and it says so."""
    third = Fraction(1, 3)
    chain = MarkovChain((third,) * 3, ((third,) * 3,) * 3)
    for weights in ((0, 1, 1000), (0, 0, 1000)):
        with refused("scale", kind=Unsupported):
            BayesianDifferentialPrivacy(chain).measure(
                Laplace(statistics.Sum(weights), 1), wi.Records(3, 3)
            )
    level = BayesianDifferentialPrivacy(chain).measure(
        Laplace(statistics.Sum((0, 1, 600)), 1), wi.Records(3, 3)
    )
    assert level.value == pytest.approx(600, abs=1e-9)


def test_geometric_noise_needs_whole_numbers():
    """As on a table: fractions with whole-number noise are refused, not taken for Laplace."""
    space, mechanism = wi.Records(2, 2), Geometric(statistics.Sum((0, HALF)), alpha=HALF)
    with refused("statistic"):
        BayesianDifferentialPrivacy(sticky(0.9)).measure(mechanism, space)
    with refused("statistic"):
        mechanism.channel(space)


def test_levels_do_not_add():
    """THEORY 9: there is a skewed pair for which two releases of the sum leak more than twice what
    one does, while what DP says adds."""
    space, one = wi.Records(2, 2), Laplace(statistics.Sum(), 1)
    worst, found = 0.0, None
    for start in (0.01, 0.05, 0.2, 0.5):
        for a in (0.02, 0.3, 0.7):
            for b in (0.02, 0.3, 0.7):
                chain = MarkovChain((start, 1 - start), ((a, 1 - a), (b, 1 - b)))
                notion = BayesianDifferentialPrivacy(chain)
                single = float(notion.measure(one, space).value)
                double = float(notion.measure(Composed([one, one]), space).value)
                if double - 2 * single > worst:
                    worst, found = double - 2 * single, (chain, single, double)
    assert worst > 0.01
    chain, single, double = found
    prior = records.markov(list(chain.start), [chain.steps[0]])
    for times, level in ((1, single), (2, double)):
        weights = [(v,) * times for v in range(2)]
        _outputs, channel = records.noisy_sums(2, weights, [math.exp(-1)] * times)
        truth = records.log(records.bayesian_ratio(prior, channel, 2))
        assert level == pytest.approx(truth, abs=1e-9)
    plain = DifferentialPrivacy("replace")
    assert float(plain.measure(Composed([one, one]).channel(space)).value) == pytest.approx(2)


@pytest.mark.parametrize(
    ("start", "transition", "quilt", "scale"),
    [
        (["1", "0"], [["0.9", "0.1"], ["0.4", "0.6"]], 13.02, 3.384),
        (["0.9", "0.1"], [["0.8", "0.2"], ["0.3", "0.7"]], 10.64, 3.024),
    ],
)
def test_the_scales_of_the_markov_quilt(start, transition, quilt, scale):
    """The two-state chains of Song, Wang and Chaudhuri (2017), T = 100 and ε = 1: the least scale,
    beside that of their mechanism."""
    space = wi.Records(100, 2)
    plan = planning.plan_series([MarkovChain(start, transition)], space, "sum", 1.0, 1e-4)
    assert plan.scale == pytest.approx(scale, abs=1e-3)
    assert plan.scale < quilt / 3


def random_bounds(rng: random.Random, m: int) -> tuple[Box, list[list[Fraction]]]:
    """Bounds around a distribution, some of them a point, zeros that stay; and members."""
    middle = records.random_distribution(rng, m, rng.choice([0, 0, 0.4]))
    width = rng.choice([Fraction(0), Fraction(1, 100), Fraction(1, 4), Fraction(9, 10)])
    low = [p * (1 - width) for p in middle]
    high = [p + (1 - p) * width if p else Fraction(0) for p in middle]
    box = Box(low, high)
    (bounds,) = box.sets
    members = [bounds.worst(rng.sample(range(m), m)) for _ in range(3)]
    mean = [sum(entries) / 3 for entries in zip(*members, strict=True)]
    return box, [*members, mean]


@cases(10, 1000)
def test_chains_between_bounds(count, monkeypatch):
    """No chain in the box leaks more than the bracket's upper end over any set of known rows, and
    one in it attains the lower end."""
    rng = random.Random(41)
    monkeypatch.setattr(prior_sets, "MAX_CHAIN_CELLS", 12)
    for _ in range(count):
        n, m = rng.choice([1, 2, 3, 3, 4]), rng.choice([2, 2, 3])
        drawn = [random_bounds(rng, m) for _ in range(m + 1)]
        box = ChainBox(drawn[0][0], [each for each, _ in drawn[1:]])
        noisy, weights, bases = random_query(rng, rng.choice(["sum", "count", "weights"]), m)
        level = BayesianDifferentialPrivacy(box).measure(noisy, wi.Records(n, m))
        _, channel = records.noisy_sums(n, weights, bases)
        for _ in range(4):
            start, *rows = [rng.choice(members) for _, members in drawn]
            truth = records.bayesian_ratio(records.markov(start, [rows] * (n - 1)), channel, n)
            assert records.log(truth) <= level.value + 1e-9
        if level.exact:
            continue
        member = level.prior
        for row, bounds in zip((member.start, *member.steps[0]), box.rows, strict=True):
            assert all(a <= p <= b for a, p, b in zip(bounds.low, row, bounds.high, strict=True))
        truth = records.bayesian_ratio(
            records.markov(member.start, [member.steps[0]] * (n - 1)), channel, n
        )
        assert records.log(truth) == pytest.approx(level.lower, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_steps_may_not_differ_by_more_than_their_slack(seed):
    """Two probabilities in the numerator and two in the denominator, each with another chain."""
    rng = random.Random(seed)
    boxes = [random_bounds(rng, 3) for _ in range(4)]
    cell = tuple(box.sets[0].tightened() for box, _ in boxes)
    measured = [row.middle() for row in cell]
    changes = [
        member[value] / middle[value]
        for (_, members), middle in zip(boxes, measured, strict=True)
        for member in members
        for value in range(3)
        if middle[value]
    ]
    most = 2 * math.log(max(changes) / min(changes)) if min(changes) else 0.0
    assert most <= prior_sets.step_slack(cell, measured) + 1e-12


def test_a_short_chain_closes_to_the_stated_gap():
    rows = [Box(["0.78", "0.2"], ["0.8", "0.22"]), Box(["0.2", "0.78"], ["0.22", "0.8"])]
    level = BayesianDifferentialPrivacy(ChainBox((HALF, HALF), rows)).measure(
        Laplace("sum", 1), wi.Records(3, 2)
    )
    assert not level.exact
    assert 0 < level.lower < level.value <= level.lower * (1 + prior_sets.CHAIN_GAP) + 1e-9


def test_bounds_that_cannot_be_searched_are_refused():
    noisy = Laplace("sum", 1)
    with refused("prior", kind=Unsupported):  # possible or not
        rows = [Box([0, HALF], [HALF, 1]), (HALF, HALF)]
        BayesianDifferentialPrivacy(ChainBox((HALF, HALF), rows)).measure(noisy, wi.Records(3, 2))
    with refused("low and high"):  # an empty box
        ChainBox((HALF, HALF), [Box(["0.6", "0.6"], ["0.7", "0.7"]), (HALF, HALF)])
    with refused("mechanism", kind=Unsupported):
        box = ChainBox((HALF, HALF), [(HALF, HALF)] * 2)
        BayesianDifferentialPrivacy(box).measure(
            wi.mechanisms.RandomizedResponse(keep="3/4"), wi.Records(2, 2)
        )
    with refused("prior", kind=Unsupported):
        wi.notions.Identifiability(box).measure(noisy, wi.Records(2, 2))


def test_a_file_of_chains_between_bounds(tmp_path, run):
    unsure = {"low": ["0.8", "0.15"], "high": ["0.85", "0.2"]}
    chain = {"initial": ["1/2", "1/2"], "transition": [unsure, ["1/5", "4/5"]]}
    path = tmp_path / "days.json"
    path.write_text(json.dumps({"chain": chain, "rows": 10, "query": "sum", "scale": 2}))
    found, out, _ = run("verify", path, "--json")
    level = json.loads(out)
    assert found == 0 and level["value"] > 0
    path.write_text(
        json.dumps({"chain": {**chain, "initial": {"low": [0]}}, "rows": 10, "scale": 2})
    )
    found, out, err = run("verify", path)
    assert (found, out) == (2, "") and len(err.strip().splitlines()) <= 2
