"""Statistics, sensitivities and distance scores against enumeration of every small table."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gwas_oracle as oracle
import whosin as wi
from amounts import some
from whosin import gwas
from whosin.errors import InvalidInput
from whosin.gwas import genotype_changes
from whosin.gwas.threshold import first_above, is_above

THRESHOLDS = ["1/50", "2/3", "1", "2", "3.84", "4", "N", "2N"]
SHAPES = [*product(range(2, 5), repeat=2), (2, 5), (5, 2), (5, 5), (3, 11), (7, 7)]


def threshold(text: str, people: int) -> Fraction:
    return Fraction(people * (2 if text == "2N" else 1) if text.endswith("N") else text)


@pytest.mark.parametrize("relation", oracle.RELATIONS)
@pytest.mark.parametrize(("cases", "controls"), some(SHAPES, 6, several=True))
def test_distance_scores_are_breadth_first_search(cases, controls, relation):
    for text in THRESHOLDS:
        c = threshold(text, cases + controls)
        if c > 2 * (cases + controls):
            continue
        every, wanted = oracle.scores(cases, controls, Fraction(c), relation)
        assert gwas.distance_scores(every, c, relation).tolist() == wanted, (text, relation)


def test_the_corner_alone_is_not_enough():
    """THEORY 11: the far corner jumps over the band of insignificant tables."""
    assert gwas.distance_scores([[2, 0, 0, 7, 7, 0]], 1).tolist() == [1]
    every = [t for t in oracle.tables(2, 14) if oracle.allelic(t) >= Fraction(1, 50)]
    above = [t for t in every if 14 * (t[1] + 2 * t[2]) > 2 * (t[4] + 2 * t[5])]
    corner, jumped = genotype_changes._leave(np.array(above), Fraction(1, 50))
    scores = gwas.distance_scores(above, "1/50")
    assert jumped.any() and (scores[jumped] >= corner[jumped]).all()
    assert (scores[jumped] > corner[jumped]).any() and (scores == corner)[~jumped].all()


def test_swaps_move_the_genotype_score_by_two():
    before, after = (0, 0, 4, 1, 2, 1), (1, 0, 3, 0, 2, 2)
    assert after in oracle.label_swaps(before)
    assert gwas.distance_scores([before, after], 3.84).tolist() == [1, -1]
    first, second = gwas.distance_scores([before, after], 3.84, "label-swap")
    assert abs(first - second) <= 1


people = st.integers(2, 4000)


@st.composite
def studies(draw):
    """A table of some thousand people, and a neighbour of either kind."""
    parts = []
    for _ in range(2):
        size = draw(people)
        cuts = sorted([draw(st.integers(0, size)), draw(st.integers(0, size))])
        parts += [cuts[0], cuts[1] - cuts[0], size - cuts[1]]
    table = tuple(parts)
    relation = draw(st.sampled_from(list(oracle.RELATIONS)))
    near = list(oracle.RELATIONS[relation](table))
    return table, draw(st.sampled_from(near)) if near else table, relation


@settings(max_examples=120, deadline=None)
@given(studies(), st.floats(0.01, 8))
def test_neighbours_differ_by_at_most_one(pair, c):
    table, other, relation = pair
    first, second = gwas.distance_scores([table, other], c, relation)
    assert abs(int(first) - int(second)) <= 1
    chi2 = gwas.allelic_chi2([table, other])
    sizes = sum(table[:3]), sum(table[3:])
    most = float(gwas.sensitivity("allelic-chi2", *sizes, relation))
    assert abs(chi2[0] - chi2[1]) <= most * (1 + 1e-9)
    assert (first > 0) == (chi2[0] >= c) or math.isclose(chi2[0], c)


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 10**6), st.integers(2, 10**6), st.floats(0, 1), st.floats(1e-3, 100))
def test_crossings_are_where_integers_say(cases, controls, share, c):
    y = np.array([int(share * 2 * controls)])
    r, s, exact = np.array([cases]), np.array([controls]), Fraction(c)
    if exact > 2 * (cases + controls):
        return
    x = first_above(y, r, s, exact)
    inside = x[0] <= 2 * cases
    assert not is_above(np.minimum(x - 1, 2 * r), y, r, s, exact)[0]
    assert not inside or is_above(x, y, r, s, exact)[0]


def largest_change(statistic, cases: int, controls: int, relation: str) -> Fraction:
    values = {table: statistic(table) for table in oracle.tables(cases, controls)}
    step = oracle.RELATIONS[relation]
    return max(abs(values[table] - values[other]) for table in values for other in step(table))


@pytest.mark.parametrize("relation", oracle.RELATIONS)
@pytest.mark.parametrize(
    ("cases", "controls"), [(2, 2), (2, 3), (3, 2), (3, 3), (2, 6), (6, 2), (4, 5), (5, 5), (7, 3)]
)
def test_sensitivities_are_exact(cases, controls, relation):
    for name, statistic in (
        ("allelic-chi2", oracle.allelic),
        ("genotypic-chi2", oracle.genotypic),
        ("case-frequency", lambda t: Fraction(t[1] + 2 * t[2], 2 * sum(t[:3]))),
    ):
        wanted = largest_change(statistic, cases, controls, relation)
        assert gwas.sensitivity(name, cases, controls, relation) == wanted, name


def test_allele_counts_move_together():
    for relation, step in oracle.RELATIONS.items():
        most = 0
        for table in oracle.tables(3, 4):
            for other in step(table):
                change = [2 * (b[2] - a[2]) + b[1] - a[1] for a, b in _groups(table, other)]
                most = max(most, sum(map(abs, change)))
        assert gwas.sensitivity("allele-counts", 3, 4, relation) == most
    assert gwas.sensitivity("allele-counts", 3, 4, "genotype", snps=7) == 14


def _groups(table, other):
    return [(table[:3], other[:3]), (table[3:], other[3:])]


def test_the_published_sensitivity_is_too_small():
    """E6: the published maximum assumes that all three genotypes stay present."""
    r = s = 10
    n = r + s
    published = max(
        Fraction(8 * n * n * s, r * (2 * s + 3) * (2 * s + 1)),
        Fraction(
            4 * n * n * ((2 * r * r - 1) * (2 * s - 1) - 1),
            r * s * (2 * r + 1) * (2 * r - 1) * (2 * s + 1),
        ),
    )
    assert f"{float(published):.3f}" == "7.218"
    assert published < gwas.sensitivity("allelic-chi2", r, s)


def test_chi2_is_pearsons():
    every = [t for size in (2, 3, 5) for t in oracle.tables(size, 4)]
    by_size = [np.array([t for t in every if sum(t[:3]) == size]) for size in (2, 3, 5)]
    for table in by_size:
        for ours, exact in (
            (gwas.allelic_chi2, oracle.allelic),
            (gwas.genotypic_chi2, oracle.genotypic),
        ):
            wanted = [float(exact(tuple(map(int, row)))) for row in table]
            np.testing.assert_allclose(ours(table), wanted, rtol=1e-12, atol=1e-15)


def test_nothing_varies():
    flat = [[5, 0, 0, 4, 0, 0], [0, 0, 5, 0, 0, 4], [0, 5, 0, 0, 4, 0]]
    assert gwas.allelic_chi2(flat).tolist() == [0, 0, 0]
    assert gwas.genotypic_chi2(flat).tolist() == [0, 0, 0]
    assert (gwas.distance_scores(flat, 3.84) <= 0).all()
    assert (gwas.p_values(gwas.allelic_chi2(flat)) == 1).all()


def test_ties_are_decided_by_integers():
    """A threshold that is exactly a table's χ², and one a hair above it."""
    rng = np.random.default_rng(8)
    for _ in range(80):
        table = tuple(int(k) for k in rng.integers(1, 10**5, 6))
        c = oracle.allelic(table)
        if c > 0:
            assert gwas.distance_scores([table], c)[0] >= 1
            assert gwas.distance_scores([table], c + Fraction(1, 10**40))[0] == 0


def test_scores_rank_by_strength():
    """Of SNPs with the same margins, the one with the larger χ² never scores less."""
    rows = [[100 - k, 0, k, 50 + k, 0, 50 - k] for k in range(0, 50, 3)]
    scores = gwas.distance_scores(rows, 29.7, "label-swap")
    chi2 = gwas.allelic_chi2(rows)
    order = np.argsort(chi2)
    assert all(a <= b for a, b in pairwise(scores[order]))


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: gwas.distance_scores([[1, 1, 1, 1, 1]], 1), "counts"),
        (lambda: gwas.distance_scores([[1, 1, 1, 1, 1, -1]], 1), "counts"),
        (lambda: gwas.distance_scores([[1, 1, 1, 1, 1, 0.5]], 1), "counts"),
        (lambda: gwas.distance_scores([[1, 1, 1, 1, 1, math.nan]], 1), "counts"),
        (lambda: gwas.distance_scores([[1, 1, 1], [2]], 1), "counts"),
        (lambda: gwas.distance_scores([["a"] * 6], 1), "counts"),
        (lambda: gwas.distance_scores([[1, 0, 0, 1, 1, 1]], 1), "counts"),
        (lambda: gwas.distance_scores([[2, 0, 0, 1, 1, 1]], math.nan), "threshold"),
        (lambda: gwas.distance_scores([[2, 0, 0, 1, 1, 1]], math.inf), "threshold"),
        (lambda: gwas.distance_scores([[2, 0, 0, 1, 1, 1]], 0), "threshold"),
        (lambda: gwas.distance_scores([[2, 0, 0, 1, 1, 1]], 10.1), "threshold"),
        (lambda: gwas.distance_scores([[2, 0, 0, 1, 1, 1]], 1, "labels"), "relation"),
        (lambda: gwas.sensitivity("allelic-chi2", 1, 5), "cases"),
        (lambda: gwas.sensitivity("allelic-chi2", 5, 2.5), "controls"),  # type: ignore[arg-type]
        (lambda: gwas.sensitivity("odds-ratio", 5, 5), "statistic"),
        (lambda: gwas.sensitivity("allelic-chi2", 5, 5, "swap"), "relation"),
        (lambda: gwas.sensitivity("allelic-chi2", 5, 5, snps=0), "snps"),
    ],
)
def test_bad_input_is_named(call, field):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert caught.value.field == field


def test_names_outside_scripts_rely_on():
    assert wi.gwas.sensitivity("genotypic-chi2", 10, 10) == Fraction(80, 22)
    assert wi.gwas.distance_scores(np.zeros((0, 6)), 3.84).shape == (0,)
