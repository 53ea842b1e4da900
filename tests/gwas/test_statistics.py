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
from refusals import refused
from whosin import gwas
from whosin.gwas.people import allele_counts, imputed_copies
from whosin.gwas.scores import is_above

THRESHOLDS = ["1/50", "2/3", "1", "2", "3.84", "4", "N", "2N"]
SHAPES = [*product(range(2, 5), repeat=2), (2, 5), (5, 2), (5, 5), (3, 11), (7, 7)]


def threshold(text: str, people: int) -> Fraction:
    return Fraction(people * (2 if text == "2N" else 1) if text.endswith("N") else text)


@pytest.mark.parametrize("relation", oracle.RELATIONS)
@pytest.mark.parametrize(("cases", "controls"), some(SHAPES, 3, several=True))
def test_distance_scores_are_breadth_first_search(cases, controls, relation):
    for text in THRESHOLDS:
        c = threshold(text, cases + controls)
        if c > 2 * (cases + controls):
            continue
        every, wanted = oracle.scores(cases, controls, Fraction(c), relation)
        assert gwas.distance_scores(every, c, relation).tolist() == wanted, (text, relation)


@pytest.mark.parametrize("relation", oracle.RELATIONS)
@pytest.mark.parametrize(
    ("cases", "controls"), some([(2, 2), (3, 2), (3, 3), (2, 4)], 2, several=True)
)
def test_scores_with_missing_genotypes_move_by_one(cases, controls, relation):
    """Every table with missing genotypes and every neighbour: χ² is that of those who are known,
    the sensitivity is 1, the side is right, and the score is that of a search where nothing is
    missing."""
    for text in ("1/2", "1", "2", "4"):
        every, searched = oracle.scores(cases, controls, Fraction(text), relation, kinds=4)
        known = [table[:3] + table[4:7] for table in every]
        found = gwas.distance_scores(known, text, relation, (cases, controls)).tolist()
        scores = dict(zip(every, found, strict=True))
        least = -min(cases, controls)
        for table, wanted in zip(every, searched, strict=True):
            score = scores[table]
            if not table[3] and not table[7]:
                assert score == wanted, (table, text)
            elif wanted > least or relation == "genotype":
                assert (score > 0) == (wanted > 0) == (oracle.allelic(table) >= Fraction(text))
                assert abs(score - Fraction(1, 2)) <= abs(wanted - Fraction(1, 2))
            for other in oracle.RELATIONS[relation](table):
                assert abs(score - scores[other]) <= 1, (table, other, text)


def test_missing_genotypes_are_not_an_allele():
    """Half of the controls' genotypes are missing and the known ones are like the cases': as "no
    copy of A1" they made χ² = 59."""
    row = [[25, 50, 25, 12, 26, 12]]
    assert gwas.allelic_chi2(row)[0] == 0 and gwas.allelic_chi2([[25, 50, 25, 62, 26, 12]])[0] > 20
    for relation in oracle.RELATIONS:
        known = gwas.distance_scores([[25, 50, 25, 25, 50, 25]], 4, relation)
        assert gwas.distance_scores(row, 4, relation, (100, 100))[0] < 0
        assert abs(gwas.distance_scores(row, 4, relation, (100, 100)) - known)[0] <= 4


def test_what_no_label_can_change_is_never_chosen():
    """THEORY F26: one double carrier, χ² about 2 whoever is a case; it had +501 of 500 and 500."""
    rows = [[499, 0, 1, 500, 0, 0], [500, 0, 0, 499, 0, 1], [500, 0, 0, 500, 0, 0]]
    assert gwas.allelic_chi2(rows)[0] > 1
    assert gwas.distance_scores(rows, 1, "label-swap").tolist() == [-500] * 3
    assert gwas.distance_scores(rows, 1)[0] == 1, "another genotype changes it"
    near = [[400, 90, 10, 420, 75, 5]]
    assert gwas.distance_scores(near, 1, "label-swap")[0] > 0


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


@settings(max_examples=60, deadline=None)
@given(studies(), st.floats(0.01, 8))
def test_neighbours_differ_by_at_most_one(pair, c):
    table, other, relation = pair
    first, second = gwas.distance_scores([table, other], c, relation)
    assert abs(int(first) - int(second)) <= 1
    chi2 = gwas.allelic_chi2([table, other])
    sizes = sum(table[:3]), sum(table[3:])
    most = float(gwas.sensitivity("allelic-chi2", *sizes, relation))
    assert abs(chi2[0] - chi2[1]) <= most * (1 + 1e-9)
    always = relation == "label-swap" and first == -min(sizes)
    assert (first > 0) == (chi2[0] >= c) or math.isclose(chi2[0], c) or always


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=4, max_size=4), st.floats(1e-3, 100))
def test_a_side_is_decided_as_integers_say(counts, c):
    """And more copies of A1 among cases, or of A2 among controls, never lead back."""
    x, w, y, v = counts
    exact, gap, n = Fraction(c), x * v - y * w, x + w + y + v
    wanted = gap > 0 and n * gap**2 >= exact * (x + w) * (y + v) * (x + y) * (w + v)
    rows = np.array([counts, [x + 2, w, y, v], [x, w, y, v + 1], [x, w + 1, y, v]])
    found = is_above(*rows.T, exact).tolist()
    assert found[0] == wanted and found[1] >= found[0] <= found[2] and found[3] <= found[0]


@pytest.mark.parametrize("relation", oracle.RELATIONS)
def test_imputed_numbers_move_as_little_as_stated(relation):
    """Every table of a few people; then random large ones."""
    from whosin.gwas.scores import imputed_chi2

    step = oracle.RELATIONS[relation]
    for cases, controls in ((2, 2), (3, 2), (2, 4)):
        every = oracle.tables(cases, controls, 4)
        _moves_within(every, [list(step(t)) for t in every], cases, controls, relation)
    rng = np.random.default_rng(5)
    for cases, controls in ((60, 80), (400, 45)):
        rows = [
            tuple(int(k) for size in (cases, controls) for k in rng.multinomial(size, shares))
            for shares in rng.dirichlet([1, 1, 1, 0.05], 60)
        ]
        _moves_within(rows, [list(step(t)) for t in rows], cases, controls, relation)
    full = np.array([[4, 3, 2, 5, 5, 5]])
    x, y = imputed_copies(full, 9, 15, relation)
    assert (int(x[0]) // 256, int(y[0]) // 256) == (7, 15)
    np.testing.assert_allclose(imputed_chi2(full, 9, 15, relation), gwas.allelic_chi2(full))


def _moves_within(every, near, cases, controls, relation):
    from whosin.gwas.association import imputed_sensitivity
    from whosin.gwas.scores import imputed_chi2

    flat = [*every, *(other for others in near for other in others)]
    known = np.array([t[:3] + t[4:7] for t in flat])
    copies = np.stack(imputed_copies(known, cases, controls, relation), axis=1) / 256
    chi2 = imputed_chi2(known, cases, controls, relation)
    of = {t: (c, value) for t, c, value in zip(flat, copies, chi2, strict=True)}
    stated = [
        float(imputed_sensitivity(name, cases, controls, relation))
        for name in ("allele-counts", "allelic-chi2")
    ]
    largest = 0.0
    for table, others in zip(every, near, strict=True):
        for other in others:
            moved = of[table][0] - of[other][0]
            largest = max(largest, float(np.abs(moved).max()))
            # A genotype moves one of the two numbers, an exchange leaves their sum alone.
            assert (np.abs(moved).min() == 0) if relation == "genotype" else moved.sum() == 0
            assert abs(of[table][1] - of[other][1]) <= stated[1] * (1 + 1e-12)
    assert stated[0] / 2 < largest <= stated[0] == 2


def test_imputed_numbers_are_near_plinks():
    """χ² of imputed copies is that of the known people less about the missing share, where "no
    copy" moved it by several units."""
    from whosin.gwas.scores import imputed_chi2

    rng = np.random.default_rng(6)
    copies = rng.binomial(2, rng.uniform(0.3, 0.9, (300, 1)), (300, 1000))
    copies[rng.random(copies.shape) < np.where(np.arange(1000) < 500, 0.0, 0.02)] = 3
    label = np.arange(1000) < 500
    table = np.stack([(copies[:, g] == k).sum(1) for g in (label, ~label) for k in range(3)], 1)
    plinks = gwas.allelic_chi2(table)
    ours = imputed_chi2(table, 500, 500, "label-swap")
    assert (np.abs(ours - plinks) < 0.01 + 0.05 * plinks).all()
    as_none = table.copy()
    as_none[:, 0] += 500 - table[:, :3].sum(axis=1)
    as_none[:, 3] += 500 - table[:, 3:].sum(axis=1)
    worst = np.abs(gwas.allelic_chi2(as_none) - plinks).max()
    assert worst > 1.5 and np.abs(imputed_chi2(table, 500, 500, "genotype") - plinks).max() < worst
    assert allele_counts(as_none)[0].tolist() == allele_counts(table)[0].tolist()


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
        wanted = [float(oracle.allelic(tuple(map(int, row)))) for row in table]
        np.testing.assert_allclose(gwas.allelic_chi2(table), wanted, rtol=1e-12, atol=1e-15)


def test_nothing_varies():
    flat = [[5, 0, 0, 4, 0, 0], [0, 0, 5, 0, 0, 4], [0, 5, 0, 0, 4, 0]]
    assert gwas.allelic_chi2(flat).tolist() == [0, 0, 0]
    assert (gwas.distance_scores(flat, 3.84) <= 0).all()
    assert (gwas.p_values(gwas.allelic_chi2(flat)) == 1).all()


def test_ties_are_decided_by_integers():
    """A threshold that is exactly a table's χ², and one a hair above it."""
    rng = np.random.default_rng(8)
    for _ in range(10):
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


SCORED = [2, 0, 0, 1, 1, 1]
WRONG_SCORES = [
    ([[1, 1, 1, 1, 1]], 1, "counts"),
    ([[1, 1, 1, 1, 1, -1]], 1, "counts"),
    ([[1, 1, 1, 1, 1, 0.5]], 1, "counts"),
    ([[1, 1, 1, 1, 1, math.nan]], 1, "counts"),
    ([[1, 1, 1], [2]], 1, "counts"),
    ([["a"] * 6], 1, "counts"),
    ([[1, 0, 0, 1, 1, 1]], 1, "counts"),
    *(([SCORED], wrong, "threshold") for wrong in (math.nan, math.inf, 0, 10.1)),
]
WRONG_SENSITIVITIES = [
    (("allelic-chi2", 1, 5), "cases"),
    (("allelic-chi2", 5, 2.5), "controls"),
    (("odds-ratio", 5, 5), "statistic"),
    (("allelic-chi2", 5, 5, "swap"), "relation"),
    (("allelic-chi2", 5, 5, "genotype", 0), "snps"),
]


def test_bad_input_is_named():
    for counts, c, field in WRONG_SCORES:
        with refused(field):
            gwas.distance_scores(counts, c)
    with refused("relation"):
        gwas.distance_scores([SCORED], 1, "labels")
    for arguments, field in WRONG_SENSITIVITIES:
        with refused(field):
            gwas.sensitivity(*arguments)


def test_names_outside_scripts_rely_on():
    assert wi.gwas.sensitivity("genotypic-chi2", 10, 10) == Fraction(80, 22)
    assert wi.gwas.distance_scores(np.zeros((0, 6)), 3.84).shape == (0,)
