"""Best mechanisms: claims proved in whole numbers, independent parts, a solver in trouble."""

from __future__ import annotations

import math
import os
import signal
import threading
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whosin as wi
from amounts import some
from distortion_oracle import full_program
from whosin.distortion import best, program, row_mechanisms
from whosin.distortion.closed_forms import check_cost, likeliest_values_mechanism
from whosin.distortion.program import CertifiedProgram, integer_shares
from whosin.distortion.symmetry import find_structure
from whosin.exact import exp_down, exp_up
from whosin.notions import DifferentialPrivacy, Identifiability, MutualInformation

DP = DifferentialPrivacy("replace")
IID = wi.priors.Independent


def linear(space, prior, notion="dp", cost=None):
    return CertifiedProgram(find_structure(space, prior), check_cost(space, cost), notion)


def urns(rows, one=Fraction(1, 10), two=Fraction(2, 5)):
    """Rows drawn from one of two urns: exchangeable, and far from independent."""
    return wi.priors.Exchangeable(
        [
            math.comb(rows, k)
            * ((1 - one) ** (rows - k) * one**k + (1 - two) ** (rows - k) * two**k)
            / 2
            for k in range(rows + 1)
        ]
    )


# Three values: the full program, by type and by rows.


@pytest.mark.parametrize("notion", ["dp", "identifiability"])
def test_three_rows_of_three_values_against_the_full_program(notion):
    space, p = wi.Records(3, 3), ("0.5", "0.3", "0.2")
    mass = IID(p).on_records(space, float)
    expected = full_program(3, 3, mass, 1.0, notion)
    apart = best(space, IID(p), epsilon=1, notion=notion)
    together = linear(space, IID(p), notion).at(1.0)
    if notion == "dp":
        assert expected == pytest.approx(1.24545941, abs=1e-7)
    assert apart.distortion == pytest.approx(expected, abs=1e-7)
    assert float(together.distortion) == pytest.approx(expected, abs=1e-7)
    assert together.gap < Fraction(1, 10**9) and apart.gap < 1e-9


def test_exchangeable_rows_of_three_values():
    space = wi.Records(3, 3)
    urn = [
        (Fraction(5, 10), Fraction(3, 10), Fraction(2, 10)),
        (Fraction(1, 5),) * 2 + (Fraction(3, 5),),
    ]
    mass = [sum(math.prod(q[v] for v in x) for q in urn) / 2 for x in space]
    prior = wi.priors.Table(mass)
    assert find_structure(space, prior).groups == ((0, 1, 2),)
    found = best(space, prior, epsilon=1)
    assert found.distortion == pytest.approx(full_program(3, 3, list(map(float, mass)), 1, "dp"))
    level = DP.measure(found.mechanism, space)
    assert level.exact and level.value <= 1 and found.gap < 1e-9


# T20 and T21.


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 6), st.floats(0.02, 5), st.integers(0, 10**6))
def test_one_row_has_a_closed_form(values, epsilon, seed):
    """T21, against the linear program."""
    p = np.random.default_rng(seed).dirichlet(np.ones(values))
    row = tuple(Fraction(float(q)) / sum(Fraction(float(r)) for r in p) for q in p)
    found = likeliest_values_mechanism(row, epsilon)
    expected = full_program(1, values, [float(q) for q in row], epsilon, "dp")
    assert float(found.distortion) == pytest.approx(expected, abs=1e-8)
    assert found.bound <= found.distortion <= found.bound + Fraction(1, 10**15)
    level = DP.measure(found.mechanism, wi.Records(1, values))
    assert level.exact and level.value <= epsilon


@pytest.mark.parametrize("notion", ["dp", "identifiability"])
@pytest.mark.parametrize("seed", some(range(3), 2))
def test_independent_rows_are_solved_apart(notion, seed):
    """T20, against the full program, with rows of several kinds and any distortion."""
    rng = np.random.default_rng(seed)
    rows, values = ((3, 2), (2, 3), (2, 4))[seed]
    p = [tuple(float(q) for q in rng.dirichlet(np.full(values, 6.0))) for _ in range(rows)]
    space, prior = wi.Records(rows, values), IID(p)
    mass = prior.on_records(space, float)
    cost = rng.uniform(0.5, 2, (values, values)) * (1 - np.eye(values))
    spread = find_structure(space, prior).spread
    for price, extra in product((None, cost), (0.05, 0.7)):
        epsilon = extra + (spread if notion == "identifiability" else 0)
        found = best(space, prior, epsilon=epsilon, notion=notion, cost=price)
        expected = full_program(rows, values, mass, epsilon, notion, price)
        assert found.distortion == pytest.approx(expected, abs=1e-7)
        assert found.gap < 1e-9
        measured = (DP if notion == "dp" else Identifiability(prior)).measure(
            found.mechanism, space
        )
        assert measured.exact and measured.value <= epsilon


@pytest.mark.parametrize(
    ("rows", "p", "epsilon"), some([(20, 0.7, 1.0), (16, 0.9, 2.0)], 1, several=True)
)
def test_many_rows_by_type_agree_with_rows_apart(rows, p, epsilon):
    space, prior = wi.Records(rows, 2), IID((p, 1 - p))
    by_type = linear(space, prior).at(epsilon)
    apart = best(space, prior, epsilon=epsilon)
    assert apart.gap == 0
    assert 0 <= by_type.gap < Fraction(1, 10**9)
    assert float(by_type.distortion) == pytest.approx(apart.distortion, abs=1e-9)


def test_as_many_rows_as_one_likes():
    space = wi.Records(10**5, 3)
    found = best(space, IID(("0.5", "0.3", "0.2")), epsilon=1)
    assert found.distortion == pytest.approx(10**5 * 1.24545941 / 3, rel=1e-8)
    drawn = found.mechanism.sample(np.zeros(10**5, dtype=int), np.random.default_rng(1))
    assert set(np.unique(drawn)) == {0, 1}


BLOCKS = [
    ((0, 2), {(): "0.4", (0, 2): "0.35", (0,): "0.15", (2,): "0.1"}),
    ((1,), {(): "0.7", (1,): "0.3"}),
    ((3,), {(): "0.7", (3,): "0.3"}),
]


@pytest.mark.parametrize("notion", wi.distortion.NOTION_NAMES)
def test_blocks_are_solved_apart(notion):
    space, prior = wi.Records(4, 2), wi.priors.Blocks(BLOCKS)
    known = find_structure(space, prior)
    assert [len(block.copies) for block in known.blocks] == [1, 2]
    mass = prior.on_records(space, float)
    table = wi.priors.Table([Fraction(p) for p in prior.on_records(space, Fraction)])
    whole = find_structure(space, table)
    assert known.spread == whole.spread and known.entropy == pytest.approx(whole.entropy)
    if notion == "mutual-information":
        found, other = (best(space, q, distortion=0.5, notion=notion) for q in (prior, table))
        assert found.mutual_information == pytest.approx(other.mutual_information, abs=1e-9)
        measured = MutualInformation(prior).measure(found.mechanism, space).value
        assert measured == pytest.approx(found.mutual_information, abs=1e-9)
        return
    epsilon = 0.8 if notion == "dp" else known.spread + 0.3
    found = best(space, prior, epsilon=epsilon, notion=notion)
    assert found.distortion == pytest.approx(full_program(4, 2, mass, epsilon, notion), abs=1e-7)
    measured = (DP if notion == "dp" else Identifiability(prior)).measure(found.mechanism, space)
    assert measured.exact and measured.value <= epsilon
    information = MutualInformation(prior).measure(found.mechanism, space).value
    assert found.mutual_information == pytest.approx(information, abs=1e-9)
    drawn = found.mechanism.sample([0, 1, 0, 1], np.random.default_rng(1))
    assert drawn.shape == (4,) and set(drawn.tolist()) <= {0, 1}


def test_hundreds_of_households():
    sets = {(): "1/2", (0, 1, 2): "3/10", (0,): "1/5"}
    blocks = [
        (range(3 * k, 3 * k + 3), {tuple(3 * k + who for who in s): q for s, q in sets.items()})
        for k in range(200)
    ]
    found = best(wi.Records(600, 2), wi.priors.Blocks(blocks), epsilon=1)
    one = best(wi.Records(3, 2), wi.priors.Blocks(blocks[:1]), epsilon=1)
    assert found.distortion == pytest.approx(200 * one.distortion) and found.gap < 1e-8


# Certificates.


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 4), st.floats(0.1, 2.5), st.integers(0, 10**6), st.booleans())
def test_keeping_is_decided_exactly(rows, epsilon, seed, private):
    """Against every pair of worlds, from the definition; and one unit more is refused."""
    rng = np.random.default_rng(seed)
    sizes = [float(s) for s in rng.dirichlet(np.full(rows + 1, 3.0))]
    space, prior = wi.Records(rows, 2), wi.priors.Exchangeable(sizes)
    solver = linear(space, prior, "dp" if private else "identifiability")
    level = epsilon + solver.floor
    made = solver.at(level).mechanism
    if not isinstance(made, wi.distortion.ByType):
        return
    assert solver.certificate.keeps(made.shares, level)
    mass = [1] * space.worlds if private else prior.on_records(space, Fraction)
    entries = made.channel().exact
    worst = Fraction(0)
    for x, z in product(range(space.worlds), repeat=2):
        if bin(x ^ z).count("1") == 1:
            for y in range(space.worlds):
                top, bottom = (
                    Fraction(int(e.p), int(e.q)) * mass[w]
                    for w, e in ((x, entries[x, y]), (z, entries[z, y]))
                )
                if top:
                    worst = max(worst, top / bottom)
    assert worst <= exp_down(level)
    # The largest level that would be refused: just below the worst ratio.
    above = math.nextafter(float(math.log(worst)), -math.inf) - 1e-15
    assert not solver.certificate.keeps(made.shares, above) or exp_down(above) >= worst


def test_one_unit_too_much_is_refused():
    """Randomised response at exactly g ≤ e^ε passes; its likeliest share one unit up does not."""
    space = wi.Records(2, 2)
    solver = linear(space, urns(2))
    g = exp_down(1.0)
    types = solver.structure.types
    changed = types.cost(1 - np.eye(2)).astype(int)
    shares = np.array(
        [
            ways * g.numerator ** (2 - d) * g.denominator**d
            for ways, d in zip(types.ways.tolist(), changed.tolist(), strict=True)
        ],
        dtype=object,
    )
    assert solver.certificate.keeps(shares, 1.0)
    for place in np.flatnonzero(changed == 0):
        wrong = shares.copy()
        wrong[place] += 1
        assert not solver.certificate.keeps(wrong, 1.0)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.2, 2), st.sampled_from(["dp", "identifiability"]))
def test_any_multipliers_give_a_bound(seed, epsilon, notion):
    """Below the optimum whatever they are; and close to it for the solver's."""
    rng = np.random.default_rng(seed)
    space = wi.Records(3, 2)
    prior = wi.priors.Table([float(p) for p in rng.dirichlet(np.full(8, 6.0))])
    solver = linear(space, prior, notion)
    level = epsilon + solver.floor
    best_ = solver.at(level)
    _, (_, found) = solver.program.solve(level).guesses
    for multipliers in (found, found * rng.uniform(0, 2, len(found)), rng.random(len(found)) / 50):
        assert solver.certificate.bound(multipliers, level) <= best_.distortion
    assert best_.distortion - solver.certificate.bound(found, level) < Fraction(1, 10**9)


def test_the_bound_is_the_definition_in_rationals():
    """One small program, every number a fraction."""
    space, prior = wi.Records(2, 2), urns(2)
    solver = linear(space, prior)
    types, moves = solver.structure.types, solver.structure.types.moves
    _, multipliers = next(solver.program.solve(0.7).guesses)
    top = exp_up(0.7)
    reduced = [
        solver.certificate.masses[r] * int(d)
        for r, d in zip(types.inputs, types.cost(1 - np.eye(2)), strict=True)
    ]
    for i, u in enumerate(multipliers):
        ratio = Fraction(int(moves.above[i]), int(moves.below[i]))
        reduced[moves.source[i]] += Fraction(float(u)) * ratio
        reduced[moves.target[i]] -= Fraction(float(u)) * top
    exact = sum(
        min(reduced[t] for t in np.flatnonzero(types.inputs == r)) for r in set(types.inputs)
    )
    bound = solver.certificate.bound(multipliers, 0.7)
    assert exact - Fraction(1, 2**100) <= bound <= exact


@pytest.mark.parametrize(
    ("rows", "notion", "epsilon"),
    some(
        [(20, "dp", 1.0), (20, "identifiability", 0.5), (30, "identifiability", 0.5)],
        1,
        several=True,
    ),
)
def test_large_exchangeable_priors(rows, notion, epsilon):
    """Programs whose optimum is no closed form: repaired, checked in whole numbers, certified."""
    space, prior = wi.Records(rows, 2), urns(rows)
    solver = linear(space, prior, notion)
    level = epsilon + solver.floor
    found = solver.at(level)
    assert isinstance(found.mechanism, wi.distortion.ByType) and not found.trouble
    assert solver.certificate.keeps(found.mechanism.shares, level)
    assert found.gap < Fraction(1, 10**9)
    drawn = found.mechanism.sample([0, 1] * (rows // 2), np.random.default_rng(1))
    assert drawn.shape == (rows,)


def test_floats_become_whole_numbers_exactly():
    weights = np.array([0.1, 0.0, 1.0, 3e-200, 0.7])
    shares = integer_shares(weights)
    assert shares[1] == 0
    for i in (0, 3, 4):
        assert Fraction(int(shares[i]), int(shares[2])) == Fraction(float(weights[i]))


def test_a_distortion_is_never_passed():
    space, prior = wi.Records(4, 2), urns(4)
    for wanted in ("0.5", "0.731", Fraction(2, 3)):
        found = best(space, prior, distortion=wanted)
        assert Fraction(found.distortion) <= Fraction(wanted)
        assert DP.measure(found.mechanism, space).value <= found.epsilon
        assert found.gap < 1e-8
        below = best(space, prior, epsilon=found.epsilon - 1e-6)
        assert below.distortion - below.gap > float(Fraction(wanted)) - 1e-9


# A solver in trouble.


def test_out_of_time_is_said(monkeypatch):
    """A feasible answer, a note, and a gap that is true."""
    space, prior = wi.Records(12, 2), urns(12)
    truth = best(space, prior, epsilon=1)
    monkeypatch.setattr(program, "MAX_PROGRAM_SECONDS", 0.0)
    found = best(space, prior, epsilon=1)
    assert "time limit" in found.note and found.gap > 1e-6
    assert found.distortion >= truth.distortion - 1e-9
    assert found.distortion - found.gap <= truth.distortion + 1e-12


def test_a_solver_without_an_answer_is_not_believed(monkeypatch):
    space, prior = wi.Records(5, 2), urns(5)

    def lost(self, epsilon, start=None):
        size, moves = self.types.size, len(self.types.moves.source)
        return program.Solution(iter([(np.zeros(size), np.zeros(moves))]), None, "unknown")

    monkeypatch.setattr(program.Program, "solve", lost)
    found = best(space, prior, epsilon=1)
    assert "unknown" in found.note and found.gap == pytest.approx(found.distortion)
    assert DP.measure(found.mechanism, space).value <= 1


# Exact draws.


def test_bits_are_revealed_until_a_draw_is_certain(monkeypatch):
    """With two bits at a time almost every draw needs more of them."""
    monkeypatch.setattr(row_mechanisms, "WORD_BITS", 2)
    table = (Fraction(1, 3), Fraction(2, 7), Fraction(1), Fraction(0))
    table = (*table[:2], 1 - sum(table[:2]), Fraction(0))
    rng = np.random.default_rng(4)
    size = 10_000
    seen = np.bincount(
        row_mechanisms.draw_choices([table], np.zeros(size, dtype=int), rng), minlength=4
    )
    expected = np.array([float(p) * size for p in table])
    assert seen[3] == 0
    statistic = float(((seen - expected)[:3] ** 2 / expected[:3]).sum())
    assert statistic < 14  # two degrees of freedom: 1 in 1,000
    wrong = np.array([0.25, 0.25, 0.5]) * size  # what two bits alone would give
    assert float(((seen[:3] - wrong) ** 2 / wrong).sum()) > 100


def test_whole_numbers_are_uniform():
    rng = np.random.default_rng(5)
    seen = np.bincount([row_mechanisms.draw_below(5, rng) for _ in range(5000)], minlength=5)
    assert len(seen) == 5 and float(((seen - 1000) ** 2 / 1000).sum()) < 18.5
    huge = 10**40 + 1
    assert all(0 <= row_mechanisms.draw_below(huge, rng) < huge for _ in range(100))
    places = [row_mechanisms.drawn_index([1, 1, 4], rng) for _ in range(2000)]
    assert set(places) == {0, 2} and abs(places.count(0) - 500) < 100


def test_ctrl_c_stops_a_program():
    """The solver is told to stop, and has stopped before Ctrl-C is raised."""

    class Slow:
        stopped, ended = threading.Event(), False

        def run(self):
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            self.stopped.wait(60)
            self.ended = True

        def cancelSolve(self):  # noqa: N802
            self.stopped.set()

    slow = Slow()
    with pytest.raises(KeyboardInterrupt):
        program._run_solver(slow, program.SMALL_PROGRAM_ROWS)
    assert slow.ended
