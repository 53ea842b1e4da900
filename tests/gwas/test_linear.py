"""Linear scores against enumeration of all neighbours; strata, covariates, dosages and loci."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import whosin as wi
from refusals import refused
from whosin import gwas
from whosin.gwas import bed
from whosin.gwas.linear import (
    LINEAR_SCORE_UNITS,
    RESIDUAL_UNITS,
    Design,
    span_columns,
    stratify_study,
    stratum_terms,
)
from whosin.gwas.people import read_loci, window_loci
from whosin.gwas.question import Question, estimate_study_cost
from whosin.gwas.release import draw_answer, score_study

THRESHOLD = Fraction(2)
MISSING = -1


def count_strata(copies: np.ndarray, cases: np.ndarray, strata: np.ndarray):
    """(strata × SNPs × 6 counts, strata × 2 sizes) of genotypes, SNPs × people."""
    tables, sizes = [], []
    for stratum in range(strata.max() + 1):
        groups = [cases & (strata == stratum), ~cases & (strata == stratum)]
        counted = [(copies[:, group] == k).sum(axis=1) for group in groups for k in range(3)]
        tables.append(np.stack(counted, axis=1))
        sizes.append([int(group.sum()) for group in groups])
    return np.array(tables), np.array(sizes)


def labellings(relation: str, cases: np.ndarray, strata: np.ndarray):
    """Every labelling that a chain of neighbours leads to, and its neighbours."""
    people = range(len(cases))
    if relation == "label":
        every = [np.array(bits, dtype=bool) for bits in product((0, 1), repeat=len(cases))]
    else:
        every = [np.isin(people, chosen) for chosen in combinations(people, int(cases.sum()))]
    if relation == "stratum-swap":
        sizes = np.bincount(strata[cases], minlength=strata.max() + 1)
        every = [
            each
            for each in every
            if (np.bincount(strata[each], minlength=strata.max() + 1) == sizes).all()
        ]
    for labels in every:
        near = []
        if relation == "label":
            for person in people:
                other = labels.copy()
                other[person] = ~other[person]
                near.append(other)
        else:
            for a, b in product(np.flatnonzero(labels), np.flatnonzero(~labels)):
                if relation == "label-swap" or strata[a] == strata[b]:
                    other = labels.copy()
                    other[[a, b]] = other[[b, a]]
                    near.append(other)
        yield labels, near


def terms_by(labels, copies, strata, numbers, relation):
    """By counts where there are no covariates, else by blocks of genotypes."""
    if numbers is None:
        return stratum_terms(*count_strata(copies, labels, strata), relation)
    design = Design(labels, strata, numbers)
    values = np.where(copies < 0, np.nan, copies).astype(np.float32)
    return design.terms([values[:2], values[2:]], relation)


CASES = np.array([True, True, False, False, True, False])
STRATA = np.array([0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("relation", ["label-swap", "stratum-swap", "label"])
@pytest.mark.parametrize("covariates", [False, True])
def test_labels_move_scores_by_one_neighbour(relation, covariates):
    """Every labelling and every neighbour: U moves by at most what was measured, by that much
    somewhere, and scores by at most C; and nothing else depends on labels."""
    rng = np.random.default_rng(5)
    copies = rng.integers(-1, 3, (9, 6))
    copies[0], copies[1] = 1, [0, 2, 0, 0, 0, 0]  # nothing varies; one double carrier
    numbers = None
    if covariates:
        columns = np.stack([STRATA == 0, STRATA == 1, [1, 2, 5, 1, 0, 3]], axis=1)
        numbers = np.linalg.qr(columns.astype(float))[0]
    known = {}

    def terms(labels):
        key = labels.tobytes()
        if key not in known:
            known[key] = terms_by(labels, copies, STRATA, numbers, relation)
        return known[key]

    most = np.zeros(len(copies), dtype=np.int64)
    for labels, near in labellings(relation, CASES, STRATA):
        mine = terms(labels)
        scores = mine.scores(THRESHOLD, 6)
        for other in map(terms, near):
            assert (mine.change == other.change).all() and (mine.deviation == other.deviation).all()
            most = np.maximum(most, np.abs(mine.statistic - other.statistic))
            assert np.abs(scores - other.scores(THRESHOLD, 6)).max() <= LINEAR_SCORE_UNITS
    assert (most == mine.change).all()
    flat = mine.scores(THRESHOLD, 6)[mine.change == 0]
    assert len(flat) and (flat == -4 * LINEAR_SCORE_UNITS * 6).all()


def test_strata_alone_and_as_covariates_agree():
    """Within the rounding of the grid."""
    rng = np.random.default_rng(7)
    strata = rng.integers(0, 3, 60)
    cases = rng.random(60) < 0.4
    copies = rng.binomial(2, 0.3, (40, 60))
    copies[rng.random(copies.shape) < 0.05] = MISSING
    basis = span_columns(strata, np.zeros((60, 0)))
    for relation in ("label-swap", "stratum-swap", "label", "genotype"):
        one = terms_by(cases, copies, strata, None, relation)
        other = terms_by(cases, copies, strata, basis, relation)
        unit = 64 if relation == "genotype" else 1  # dosages have a grid of their own
        assert np.abs(one.statistic * unit - other.statistic).max() <= 60 * unit
        assert np.abs(one.change * unit - other.change).max() <= 2 * unit * 64
        np.testing.assert_allclose(one.deviation, other.deviation, rtol=0.02)
    # The mean of a stratum is what PLINK's missing genotypes are left out of.
    exact = one_by_definition(copies[0], cases, strata)
    swapped = terms_by(cases, copies, strata, None, "label-swap").statistic[0]
    assert abs(swapped - float(exact * RESIDUAL_UNITS)) <= 60


def one_by_definition(copies, cases, strata) -> Fraction:
    total = Fraction(0)
    for stratum in set(strata.tolist()):
        own = (strata == stratum) & (copies >= 0)
        mean = Fraction(int(copies[own].sum()), int(own.sum()))
        total += sum(int(g) - mean for g in copies[own & cases])
    return total


def test_the_obvious_range_fails_beside_a_covariate():
    """THEORY F27: covariate (1, 2, 5), genotypes (0, 2, 0)."""
    columns = np.stack([np.ones(3), [1, 2, 5]], axis=1)
    design = Design(np.array([True, False, False]), np.zeros(3, int), np.linalg.qr(columns)[0])
    residuals = design.residuals(np.array([[0, 2, 0]], dtype=np.float32))[0] / RESIDUAL_UNITS
    assert math.isclose(residuals.max() - residuals.min(), 2.154, abs_tol=1e-3)
    terms = design.terms([np.array([[0, 2, 0]], dtype=np.float32)], "label-swap")
    assert terms.change[0] > 2 * RESIDUAL_UNITS


def genotype_neighbours(copies: tuple[int, ...]):
    for person, new in product(range(len(copies)), (MISSING, 0, 1, 2)):
        yield (*copies[:person], new, *copies[person + 1 :])


@pytest.mark.parametrize("covariates", [False, True])
def test_genotypes_move_scores_by_one_neighbour(covariates):
    """Every genotype of five people, and every change of one of them."""
    cases, strata = np.array([True, False, False, True, False]), np.array([0, 0, 1, 1, 1])
    numbers = None
    if covariates:
        columns = np.stack([strata == 0, strata == 1, [1, 2, 5, 1, 0]], axis=1)
        numbers = np.linalg.qr(columns.astype(float))[0]
    every = list(product((MISSING, 0, 1, 2), repeat=5))
    terms = terms_by(cases, np.array(every), strata, numbers, "genotype")
    scores = dict(zip(every, terms.scores(THRESHOLD, 5).tolist(), strict=True))
    statistic = dict(zip(every, terms.statistic.tolist(), strict=True))
    assert len(set(terms.change.tolist())) == 1 and not terms.deviation.any()
    most = 0
    for copies in every:
        for other in genotype_neighbours(copies):
            most = max(most, abs(statistic[copies] - statistic[other]))
            assert abs(scores[copies] - scores[other]) <= LINEAR_SCORE_UNITS
    assert most == terms.change[0]


def test_a_fitted_value_fails_where_genotypes_are_secret():
    """THEORY F27: a missing genotype at the mean of the others moves U three times as far as 2
    max|e| says."""
    cases = np.array([True, True, True, False, False, False])

    def fitted(copies) -> Fraction:
        known = [g for g in copies if g >= 0]
        mean = Fraction(sum(known), max(len(known), 1))
        return sum(
            (g - mean for g, case in zip(copies, cases, strict=True) if case and g >= 0),
            Fraction(0),
        )

    most = max(
        abs(fitted(copies) - fitted(other))
        for copies in product((MISSING, 0, 2), repeat=6)
        for other in genotype_neighbours(copies)
    )
    stated = 2 * Fraction(1, 2)
    assert most > stated
    assert most >= Fraction(3, 2) * stated


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A study of 300 people in two strata that differ in frequencies and in how many are cases."""
    rng = np.random.default_rng(11)
    path = tmp_path_factory.mktemp("linear") / "study"
    strata = rng.integers(0, 2, 300)
    cases = rng.random(300) < np.where(strata, 0.7, 0.3)
    frequency = rng.uniform(0.2, 0.5, (200, 2))
    frequency[:, 1] = np.clip(frequency[:, 1] + rng.normal(0, 0.15, 200), 0.05, 0.95)
    copies = rng.binomial(2, frequency[:, strata]).astype(np.int8)
    copies[17] = rng.binomial(2, np.where(cases, 0.65, 0.3))
    copies[rng.random(copies.shape) < 0.01] = MISSING
    bed.write_bed(path, [copies])
    bed.sibling_path(path, ".bim").write_text(
        "".join(f"{1 + i // 100} rs{i} 0 {1 + 5000 * (i % 100)} A C\n" for i in range(200))
    )
    bed.sibling_path(path, ".fam").write_text(
        "".join(f"f{i} p{i} 0 0 1 {1 + cases[i]}\n" for i in range(300))
    )
    (path.parent / "strata.txt").write_text(
        "".join(f"f{i} p{i} pop{strata[i]}\n" for i in reversed(range(300)))
    )
    components = rng.normal(size=300) + 3 * strata
    (path.parent / "pcs.txt").write_text(
        "#IID PC1\n" + "".join(f"p{i} {components[i]}\n" for i in range(300))
    )
    return path


SWAPS = wi.calibrate(wi.Epsilon(8), wi.families.FixedSize())
LABELS = wi.calibrate(wi.Epsilon(8), wi.families.Independent())


def test_strata_and_covariates_take_out_what_they_explain(files):
    """Without them the study's scores are inflated (THEORY 16: λ = 1.79), and with them the hit is
    ahead of all others."""
    study = gwas.read_study(files)
    folder = files.parent
    plain = Question(1, "label-swap", "linear", threshold=4, share="0.7")
    within = stratify_study(study, files, within=folder / "strata.txt")
    beside = stratify_study(study, files, covar=folder / "pcs.txt")
    spread = {}
    for name, each in (("plain", study), ("within", within), ("beside", beside)):
        scores = score_study(estimate_study_cost(SWAPS, plain, each), each)
        spread[name] = np.quantile(np.delete(scores, 17), 0.9)
        if name != "plain":
            assert scores.argmax() == 17 and scores[17] > spread[name] + 5 * LINEAR_SCORE_UNITS
    assert spread["plain"] > max(spread["within"], spread["beside"]) + 2 * LINEAR_SCORE_UNITS
    for asked, plan in (
        (plain, SWAPS),
        (Question(1, "stratum-swap", "linear", threshold=4, share="0.7"), SWAPS),
        (Question(1, "label", "linear", "nothing", threshold=4), LABELS),
        (Question(1, "genotype", "linear", threshold=4, share="0.7"), SWAPS),
    ):
        answer = draw_answer(estimate_study_cost(plan, asked, within), within)
        assert answer["places"] == [17], asked.relation


def test_who_is_asked_for_is_who_is_scored(files):
    """Extracted SNPs and kept people, whatever the order of the file of strata."""
    folder = files.parent
    (folder / "some.txt").write_text("rs17\nrs150\nrs3\n")
    (folder / "keep.txt").write_text("".join(f"f{i} p{i}\n" for i in range(20, 300)))
    filters = gwas.people.StudyFilter(keep=folder / "keep.txt", extract=folder / "some.txt")
    part = gwas.read_study(files, filters=filters)
    found = stratify_study(part, files, keep=filters.keep, within=folder / "strata.txt")
    assert found.snps.name == ["rs3", "rs17", "rs150"] and found.places.tolist() == [3, 17, 150]
    assert (found.tables.sum(axis=0) == part.counts).all()
    beside = stratify_study(part, files, keep=filters.keep, covar=folder / "pcs.txt")
    [block] = beside.blocks()
    assert ((block[:, beside.design.cases] == 2).sum(axis=1) == part.counts[:, 2]).all()


def test_strata_bind_the_budget_of_their_relation(files, tmp_path):
    """Exchanges inside other strata are other neighbours."""
    from whosin.gwas.release import publish_study

    study, folder = gwas.read_study(files), files.parent
    (folder / "halves.txt").write_text("".join(f"f{i} p{i} {i % 2}\n" for i in range(300)))
    first = stratify_study(study, files, within=folder / "strata.txt")
    second = stratify_study(study, files, within=folder / "halves.txt")
    asked = Question(1, "stratum-swap", "linear", "nothing", threshold=4)
    with wi.Ledger(tmp_path / "l.db") as ledger:
        ledger.register("s:stratum-swap", wi.calibrate(wi.Epsilon(30), wi.families.FixedSize()))
        made = publish_study(first, SWAPS, asked, ledger, "s")
        assert made.snps.name == ["rs17"] and made.gap is not None
        with pytest.raises(wi.errors.BudgetRefused, match="'strata' as"):
            publish_study(second, SWAPS, asked, ledger, "s")
        with pytest.raises(wi.errors.BudgetRefused, match="two relations"):
            publish_study(first, SWAPS, Question(1, "label-swap", "linear", "nothing"), ledger, "s")


def test_wrong_strata_and_covariates_are_refused(files, tmp_path):
    study = gwas.read_study(files)
    text = (files.parent / "pcs.txt").read_text()
    alone = "".join(f"f{i} p{i} {'x' if i else 'y'}\n" for i in range(300))
    for name, content, field in (
        ("missing.txt", text.replace("\np7 ", "\nq7 "), "--covar"),
        ("na.txt", "".join(f"f{i} p{i} {'NA' if i == 9 else i}\n" for i in range(300)), "--covar"),
        ("words.txt", "".join(f"f{i} p{i} red\n" for i in range(300)), "--covar"),
        ("twice.txt", text + "p7 1.0\n", "--covar"),
        ("short.txt", "f1 p1\n", "--covar"),
        ("alone.txt", alone, "--within"),
        ("many.txt", "".join(f"f{i} p{i} {i // 2}\n" for i in range(300)), "--covar"),
    ):
        (tmp_path / name).write_text(content)
        given = {field[2:]: tmp_path / name} if name != "many.txt" else {"within": tmp_path / name}
        with refused(field):
            stratify_study(study, files, **given)
    with refused("relation"):
        estimate_study_cost(SWAPS, Question(1, "stratum-swap", "linear", threshold=4), study)
    with refused("score"):
        Question(1, "label", "distance", "nothing")
    with refused("numbers"):
        Question(1, "label", "linear")
    for plan, relation in ((SWAPS, "label"), (LABELS, "label-swap")):
        with refused("plan"):
            asked = Question(1, relation, "linear", "nothing", threshold=4)
            estimate_study_cost(plan, asked, study)


def test_loci_keep_sensitivity_and_direction():
    """The largest score of a locus, over all changes of all scores by at most 1."""
    snps = gwas.Snps(
        ["1", "1", "1", "2"], list("abcd"), np.array([1, 900, 1500, 10]), *(["A"] * 4,) * 2
    )
    loci = window_loci(snps, 1)
    assert loci.names == ("1:0-999", "1:1000-1999", "2:0-999")
    assert [loci.members(i).tolist() for i in range(3)] == [[0, 1], [2], [3]]
    for scores in product((0, 2), (0, 1), (1,), (3,)):
        for change in product((-1, 0, 1), repeat=4):
            old, new = (loci.largest(np.array(each)) for each in (scores, np.add(scores, change)))
            assert np.abs(new - old).max() <= 1
            if min(change) >= 0:
                assert (new >= old).all()


def test_loci_are_read_from_maps(tmp_path):
    snps = gwas.Snps(
        ["1", "1", "chr2", "3"], ["a", "b", "c", "d"], np.array([5, 50, 7, 9]), *(["A"] * 4,) * 2
    )
    genes = tmp_path / "genes.txt"
    genes.write_text("# a list\n1 1 60 LONG\n1 40 60 SHORT\n2 1 10 OTHER\n9 1 2 NOWHERE\n")
    loci = read_loci(genes, snps)
    assert loci.names == ("LONG", "SHORT", "OTHER")
    assert [loci.members(i).tolist() for i in range(3)] == [[0, 1], [1], [2]]
    genes.write_text("SNP LOCUS\na x\nd x\nb y\n")
    loci = read_loci(genes, snps)
    assert loci.names == ("x", "y") and loci.largest(np.array([1, 5, 9, 2])).tolist() == [2, 5]
    for wrong in ("9 1 2 N\n", "1 9 2 N\n", "1 x 2 N\n", "a x\nz x\n", "a\n", "a x\n1 1 2 y\n"):
        genes.write_text(wrong)
        with refused("--loci"):
            read_loci(genes, snps)
    for wrong in (0, -1, "x", 10**9):
        with pytest.raises(wi.errors.InvalidInput):
            window_loci(snps, wrong)


def test_a_locus_is_chosen_with_its_best_snp(files):
    study = gwas.read_study(files)
    loci = window_loci(study.snps, 50)
    asked = Question(1, "genotype", threshold=4, share="0.7", loci=loci)
    estimate = estimate_study_cost(SWAPS, asked, study)
    chosen, _ = estimate.epsilons
    assert 2 / estimate.selection_spread + 2 / estimate.lead_spread == chosen
    answer = draw_answer(estimate, study)
    assert answer["places"] == [17] and answer["loci"] == ["1:50000-99999"]
    alone = Question(2, "genotype", numbers="nothing", threshold=4, loci=loci)
    answer = draw_answer(estimate_study_cost(SWAPS, alone, study), study)
    assert answer["places"] == [] and "1:50000-99999" in answer["loci"]
    with refused("top"):
        estimate_study_cost(SWAPS, Question(len(loci) + 1, "genotype", loci=loci), study)
