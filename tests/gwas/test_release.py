"""Releases: what they cost, their noise, what follows from them; the attack; the experiment."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import whosin as wi
from amounts import some
from refusals import refused
from whosin import gwas, noise
from whosin.errors import BudgetRefused, InvalidInput
from whosin.gwas import association, attack, simulation
from whosin.gwas import scores as gwas_scores
from whosin.gwas.people import allele_counts
from whosin.gwas.question import Question
from whosin.gwas.release import publish_study, study_registration
from whosin.report.gwas import exact_statistics

PLAN = wi.calibrate(wi.Gamma(2), wi.families.FixedSize("0.5", "0.5"))


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "l.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def strong():
    return gwas.Simulation(3000, 3000, 400, 4, odds_ratio=3, seed=5).study()


@pytest.mark.parametrize("relation", gwas.STUDY_RELATIONS)
@pytest.mark.parametrize("numbers", ["counts", "chi2", "nothing"])
@pytest.mark.parametrize("score", gwas_scores.SNP_SCORE_KINDS)
def test_a_release_pays_what_it_says(strong, ledger, relation, numbers, score):
    asked = Question(4, relation, score, numbers)
    made = publish_study(strong, PLAN, asked, ledger, "study")
    budget_state = ledger.budget_state(f"study:{relation}")
    assert budget_state.epsilon <= PLAN.epsilon < budget_state.epsilon + 1e-11
    chosen, rest = made.estimate.epsilons
    assert chosen + rest <= PLAN.epsilon and (rest == 0) == (numbers == "nothing")
    sensitivity = gwas_scores.score_sensitivity(score, 3000, 3000, relation)
    paid = noise.selection_epsilon(sensitivity, made.estimate.selection_spread, 4)
    assert chosen * (1 - 1e-9) < paid <= chosen
    copies = {"label-swap": 4, "genotype": 2}[relation]
    cube = made.estimate.published_noise
    if numbers == "counts":
        assert cube.dimensions == 4 and cube.cost(2) == rest, "each count moves by 2"
    if numbers == "chi2":
        change = 4 * copies  # N²/(RS) for each copy
        assert change <= cube.scale * rest <= Fraction("1.01") * change
    if numbers == "nothing" and score == "chi2":
        assert math.isclose(made.estimate.selection_scale, made.estimate.selection_spread / 256)
        assert (
            4 * copies * 8 / chosen <= made.estimate.selection_scale <= 4.01 * copies * 8 / chosen
        )
    assert made.snps.name == [strong.snps.name[place] for place in made.places]
    with pytest.raises(BudgetRefused):
        publish_study(strong, PLAN, asked, ledger, "study", request="anew")


@pytest.mark.filterwarnings("ignore:the rows of")
def test_strong_associations_come_back(strong, tmp_path):
    """At ε = 20 the four causal SNPs are chosen; at ε = 0.001 they hardly are."""
    causal = set(gwas.Simulation(3000, 3000, 400, 4, odds_ratio=3, seed=5).frequencies()[2])
    loud = wi.calibrate(wi.Epsilon(20), wi.families.FixedSize())
    quiet = wi.calibrate(wi.Epsilon("0.001"), wi.families.FixedSize())
    for relation in gwas.STUDY_RELATIONS:
        asked, places = Question(4, relation), []
        for name, plan in (("loud", loud), ("quiet", quiet)):
            with wi.Ledger(tmp_path / f"{name} {relation}.db") as ledger:
                places.append(set(publish_study(strong, plan, asked, ledger, "study").places))
        assert places[0] == causal != places[1]


def test_a_retry_is_paid_once(strong, ledger):
    asked = Question(3, "label-swap")
    first = publish_study(strong, PLAN, asked, ledger, "study", request="main table")
    again = publish_study(strong, PLAN, asked, ledger, "study", request="main table")
    assert (first.places == again.places).all() and (first.numbers == again.numbers).all()
    with refused("request", kind=BudgetRefused):
        publish_study(
            strong, PLAN, Question(4, "label-swap"), ledger, "study", request="main table"
        )
    assert ledger.budget_state("study:label-swap").debits == 1


def test_named_snps_get_all_of_epsilon(strong, ledger):
    asked = Question(None, "label-swap", named=("rs7", "rs3"))
    made = publish_study(strong, PLAN, asked, ledger, "study")
    assert made.places.tolist() == [6, 2] and made.snps.name == ["rs7", "rs3"]
    assert made.estimate.epsilons[0] == 0 and made.estimate.epsilons[1] <= PLAN.epsilon
    assert math.isclose(made.estimate.published_noise.scale, 2 / PLAN.epsilon, rel_tol=1e-9)
    with refused("SNP"):
        publish_study(strong, PLAN, Question(None, "genotype", named=("rt7",)), ledger, "other")
    for wrong in ({"named": ()}, {"named": ("a", "a")}, {"named": ("a",), "numbers": "nothing"}):
        with pytest.raises(InvalidInput):
            Question(None, "genotype", **wrong)
    with refused("top"):
        Question(3, "genotype", named=("rs1",))
    assert ledger.datasets() == ["study:label-swap"]


@pytest.mark.parametrize("relation", gwas.STUDY_RELATIONS)
def test_the_same_question_is_paid_once(strong, ledger, relation):
    """Its stored answer is shown again; another question, plan or request pays."""
    name = f"study:{relation}"
    ledger.register(name, wi.calibrate(wi.Epsilon(10), wi.families.FixedSize()))
    first = publish_study(strong, PLAN, Question(3, relation), ledger, "study")
    with pytest.warns(UserWarning, match="asked before"):
        again = publish_study(strong, PLAN, Question(3, relation), ledger, "study")
    assert again.request == first.request and np.array_equal(again.numbers, first.numbers)
    assert ledger.budget_state(name).debits == 1
    other = wi.calibrate(wi.Epsilon(1), wi.families.FixedSize())
    asked = [(PLAN, Question(2, relation), None), (other, Question(3, relation), None)]
    for plan, question, request in [*asked, (PLAN, Question(3, relation), "anew")]:
        made = publish_study(strong, plan, question, ledger, "study", request=request)
        assert made.request != first.request
    assert ledger.budget_state(name).debits == 4


def test_a_plan_in_another_spelling_is_the_same_question(strong, ledger):
    asked, family = Question(3, "label-swap"), wi.families.FixedSize()
    publish_study(strong, wi.calibrate(wi.Gamma("3/2"), family), asked, ledger, "study")
    for gamma in (1.5, "1.50"):
        with pytest.warns(UserWarning, match="asked before"):
            publish_study(strong, wi.calibrate(wi.Gamma(gamma), family), asked, ledger, "study")
    assert ledger.budget_state("study:label-swap").debits == 1


def test_a_budget_is_for_one_study(strong, ledger, tmp_path):
    """Other people or SNPs under its name are refused, until the curator says that it goes on."""
    ledger.register("study:label-swap", wi.calibrate(wi.Epsilon(10), wi.families.FixedSize()))
    small = wi.calibrate(wi.Epsilon(1), wi.families.FixedSize())
    asked = Question(3, "label-swap")
    publish_study(strong, small, asked, ledger, "study", request="first")
    state = ledger.budget_state("study:label-swap")
    assert state.registered is not None, "the first release binds it"
    counts = strong.counts.copy()
    counts[7, [0, 1]] += (-1, 1)
    fewer = gwas.Study(strong.snps.take(np.arange(399)), strong.counts[:399], 3000, 3000)
    larger = gwas.Study(strong.snps, strong.counts, 3000, 3001)
    for other, words in (
        (gwas.Study(strong.snps, counts, 3000, 3000), "another table: the source has changed"),
        (fewer, r"'SNPs' as 400 of digest .*, and this has 399 of digest"),
        (larger, "'controls' as 3000, and this has 3001"),
    ):
        with pytest.raises(BudgetRefused, match=words):
            publish_study(other, small, asked, ledger, "study")
    assert ledger.budget_state("study:label-swap").debits == 1
    publish_study(larger, small, asked, ledger, "study", amend=True)
    with pytest.raises(BudgetRefused, match="release --amend"):
        publish_study(strong, small, asked, ledger, "study")
    again = publish_study(strong, small, asked, ledger, "study", request="first")
    assert again.request == "first" and ledger.budget_state("study:label-swap").debits == 2
    before = ledger.history("study:label-swap")
    large = wi.calibrate(wi.Epsilon(9), wi.families.FixedSize())
    with pytest.raises(BudgetRefused, match="left"):  # what is refused is not recorded
        publish_study(strong, large, asked, ledger, "study", amend=True)
    assert ledger.history("study:label-swap") == before
    wi.ledger.verify(ledger, "study:label-swap")


def test_one_study_under_two_names_is_noticed(strong, ledger, tmp_path):
    """In another file, another order of SNPs, under the other relation: the same people."""
    from whosin.gwas.study import read_study, write_table

    publish_study(strong, PLAN, Question(3, "label-swap"), ledger, "study")
    write_table(strong, tmp_path / "copy.tsv")
    copy = read_study(tmp_path / "copy.tsv")
    order = np.arange(400)[::-1]
    turned = gwas.Study(strong.snps.take(order), strong.counts[order], 3000, 3000)
    for other in (copy, turned):
        with pytest.raises(BudgetRefused, match=r"the rows of .* are those of dataset '"):
            publish_study(other, PLAN, Question(3, "genotype"), ledger, "copy", new_people=True)
    new = gwas.Simulation(50, 50, 40, 1, seed=2).study()
    asked = Question(3, "genotype")
    assert publish_study(new, PLAN, asked, ledger, "new", new_people=True).notes == ()


PHENOTYPES = 3


@pytest.fixture
def cohort(tmp_path):
    """People with three phenotypes, some of each unknown; the third study has its people in another
    order, other file names and the alleles exchanged."""
    from whosin.gwas import bed

    rng = np.random.default_rng(11)
    copies = rng.binomial(2, rng.uniform(0.1, 0.9, (50, 1)), (50, 90)).astype(np.int8)
    copies[rng.random(copies.shape) < 0.02] = -1
    studies = []
    for number in range(PHENOTYPES):
        order = rng.permutation(90) if number == 2 else np.arange(90)
        status = rng.choice([1, 2, -9], 90, p=[0.5, 0.4, 0.1])
        path = tmp_path / f"file{number if number == 2 else 0}"
        turned = np.where(copies < 0, copies, 2 - copies) if number == 2 else copies
        alleles = "C A" if number == 2 else "A C"
        bed.write_bed(path, [turned[:, order]])
        lines = "".join(f"1 rs{i} 0 {i + 1} {alleles}\n" for i in range(50))
        bed.sibling_path(path, ".bim").write_text(lines)
        people = "".join(f"f{i} p{i} 0 0 1 {status[i]}\n" for i in order)
        bed.sibling_path(path, ".fam").write_text(people)
        studies.append(gwas.read_study(path))
    return studies


def test_phenotypes_of_the_same_people_share_a_budget(cohort, ledger):
    """THEORY 16: three phenotypes at ln 3 each are 96.4%, not 75%."""
    asked = Question(2, "genotype")
    sizes = {(study.cases, study.controls) for study in cohort}
    assert len(sizes) == PHENOTYPES
    first = publish_study(cohort[0], PLAN, asked, ledger, "height", request="table")
    for number, study in enumerate(cohort[1:]):
        for name in ("height", f"other {number}"):
            with pytest.raises(BudgetRefused, match="has 0 left"):
                publish_study(study, PLAN, asked, ledger, name)
        with refused("request", kind=BudgetRefused):
            publish_study(study, PLAN, asked, ledger, "height", request="table")
    assert (
        ledger.datasets() == ["height:genotype"]
        and ledger.budget_state("height:genotype").debits == 1
    )
    again = publish_study(cohort[0], PLAN, asked, ledger, "height", request="table")
    assert again.snps.name == first.snps.name and (again.numbers == first.numbers).all()


def test_a_shared_budget_pays_for_each_phenotype(cohort, ledger):
    ledger.register("all:genotype", wi.calibrate(wi.Epsilon(3), wi.families.FixedSize()))
    small, asked = wi.calibrate(wi.Epsilon(1), wi.families.FixedSize()), Question(2, "genotype")
    publish_study(cohort[0], small, asked, ledger, "all")
    for number in (1, 2):
        with pytest.warns(UserWarning, match="its budget pays"):
            made = publish_study(cohort[number], small, asked, ledger, f"name {number}")
        assert made.dataset == "all:genotype" and len(made.notes) == 1
    assert ledger.budget_state("all:genotype").debits == PHENOTYPES
    assert ledger.datasets() == ["all:genotype"]
    wi.ledger.verify(ledger, "all:genotype")


def test_labels_have_a_budget_for_each_phenotype(cohort, ledger):
    """Under label swaps the secrets of two phenotypes are two; that the people are the same is
    said."""
    publish_study(cohort[0], PLAN, Question(2, "label-swap"), ledger, "height")
    with pytest.raises(BudgetRefused, match=r"another table|'cases' as"):
        publish_study(cohort[1], PLAN, Question(2, "label-swap"), ledger, "height")
    for number, name in enumerate(("weight", "shoe size"), 1):
        with pytest.warns(UserWarning, match="are those of dataset"):
            made = publish_study(cohort[number], PLAN, Question(2, "label-swap"), ledger, name)
        assert made.dataset == f"{name}:label-swap"
    with pytest.raises(BudgetRefused, match="are those of dataset"):
        publish_study(cohort[1], PLAN, Question(2, "label-swap"), ledger, "copy", new_people=True)


def test_other_people_have_a_budget_of_their_own(cohort, ledger):
    asked = Question(2, "genotype")
    publish_study(cohort[0], PLAN, asked, ledger, "height")
    counts = cohort[1].counts.copy()
    place = int(np.flatnonzero(counts[:, 0])[0])
    counts[place, [0, 1]] += (-1, 1)
    fewer = gwas.Study(cohort[1].snps, counts, cohort[1].cases, cohort[1].controls)
    with pytest.raises(BudgetRefused, match="dataset 'height:genotype'"):
        publish_study(fewer, PLAN, asked, ledger, "weight")
    made = publish_study(fewer, PLAN, asked, ledger, "weight", new_people=True)
    assert made.dataset == "weight:genotype"
    with pytest.raises(BudgetRefused, match="two budgets for the same people"):
        publish_study(cohort[1], PLAN, asked, ledger, "weight", amend=True)


def test_a_retry_with_turned_snps_shows_the_same_table(strong, ledger):
    asked = Question(3, "label-swap")
    first = publish_study(strong, PLAN, asked, ledger, "study", request="r")
    order = np.arange(400)[::-1]
    turned = gwas.Study(strong.snps.take(order), strong.counts[order], 3000, 3000)
    again = publish_study(turned, PLAN, asked, ledger, "study", request="r")
    assert again.snps.name == first.snps.name
    assert turned.snps.take(again.places).name == first.snps.name


def test_relatives_are_mentioned(tmp_path, ledger):
    """A family or a parent in common; a .fam file where one word names everybody's family says
    none."""
    made = gwas.Simulation(30, 40, 20, 2)
    path = made.write(tmp_path / "s")
    fam = path.with_name("s.fam")
    rows = [line.split() for line in fam.read_text().splitlines()]
    assert not gwas.read_study(path).related

    def related(change):
        changed = [list(row) for row in rows]
        change(changed)
        fam.write_text("".join(" ".join(row) + "\n" for row in changed))
        return gwas.read_study(path).related

    def one_family(changed):
        changed[3][0] = changed[9][0]

    def one_parent(changed):
        changed[3][2:4] = ["p", "q"]
        changed[3][0] = changed[4][0] = "0"
        changed[4][2] = "p"

    def everybody(changed):
        for row in changed:
            row[0] = "study"

    def own_parent(changed):
        everybody(changed)
        changed[5][3] = changed[8][1]

    def absent_parents(changed):
        changed[3][2:4] = ["x", "y"]

    found = [related(each) is not None for each in (one_family, one_parent, own_parent)]
    assert found == [True] * 3 and not related(everybody) and not related(absent_parents)
    assert related(one_family)
    with pytest.warns(UserWarning, match="relatives"):
        released = publish_study(gwas.read_study(path), PLAN, Question(2, "genotype"), ledger, "s")
    assert len(released.notes) == 1


def test_a_study_that_cannot_be_drawn_is_suspended(strong, ledger, monkeypatch):
    from whosin.errors import ScanFailed
    from whosin.gwas import release

    asked = Question(3, "label-swap")
    with monkeypatch.context() as patch:
        patch.setattr(release, "draw_answer", lambda *_: 1 / 0)
        with pytest.raises(ScanFailed, match="request r then continues") as caught:
            publish_study(strong, PLAN, asked, ledger, "study", request="r")
    assert caught.value.__context__ is None
    with pytest.raises(BudgetRefused, match="is suspended"):
        publish_study(strong, PLAN, asked, ledger, "study", request="r")
    ledger.resume("study:label-swap")
    publish_study(strong, PLAN, asked, ledger, "study", request="r")
    assert ledger.budget_state("study:label-swap").debits == 1


def test_relations_do_not_mix(strong, ledger):
    publish_study(strong, PLAN, Question(3, "label-swap"), ledger, "study")
    with refused("relation", kind=BudgetRefused):
        publish_study(strong, PLAN, Question(3, "genotype"), ledger, "study")
    assert ledger.datasets() == ["study:label-swap"]


WRONG_PLAN = wi.calibrate(wi.Gamma(2), wi.families.Independent("0.5", "0.5"))
WRONG_QUESTIONS = [
    (lambda: Question(0, "genotype"), "top"),
    (lambda: Question(401, "genotype"), "top"),
    (lambda: Question(1, "labels"), "relation"),
    (lambda: Question(1, "genotype", "odds"), "score"),
    (lambda: Question(1, "genotype", numbers="p-values"), "numbers"),
    (lambda: Question(1, "genotype", threshold=math.nan), "threshold"),
    (lambda: Question(1, "genotype", threshold=-1), "threshold"),
    (lambda: Question(1, "genotype", threshold=12_001), "threshold"),
]


def test_wrong_questions_cost_nothing(strong, ledger):
    for ask, field in WRONG_QUESTIONS:
        with refused(field):
            publish_study(strong, PLAN, ask(), ledger, "s")
    with refused("plan"):
        publish_study(strong, WRONG_PLAN, Question(1, "genotype"), ledger, "s")
    assert ledger.datasets() == []


def test_one_exchange_of_labels_stays_within_the_sensitivities():
    """Whole studies: exchange a case and a control, or change a person, and look at all SNPs."""
    rng = np.random.default_rng(4)
    copies = rng.binomial(2, rng.uniform(0, 1, (60, 1)), (60, 40))
    label = np.resize([True, False], 40)
    for _ in range(40):
        case, control = rng.choice(np.flatnonzero(label)), rng.choice(np.flatnonzero(~label))
        swapped, changed = label.copy(), copies.copy()
        swapped[[case, control]] = swapped[[control, case]]
        changed[:, case] = rng.integers(0, 3, 60)
        before = table(copies, label)
        for relation, after in (
            ("label-swap", table(copies, swapped)),
            ("genotype", table(changed, label)),
        ):
            for kind in gwas_scores.SNP_SCORE_KINDS:
                first, second = (
                    gwas_scores.selection_scores(kind, each, relation, 3.84)
                    for each in (before, after)
                )
                most = gwas_scores.score_sensitivity(kind, 20, 20, relation)
                assert np.abs(first - second).max() <= most
            moved = np.abs(np.array(allele_counts(before)) - np.array(allele_counts(after))).sum()
            assert moved <= gwas.sensitivity("allele-counts", 20, 20, relation, 60)


def table(copies: np.ndarray, label: np.ndarray) -> np.ndarray:
    groups = (copies[:, label], copies[:, ~label])
    return np.stack([(g == k).sum(axis=1) for g in groups for k in range(3)], axis=1)


@pytest.mark.filterwarnings("ignore:the rows of")
def test_the_noise_has_the_stated_scale(tmp_path):
    """Released counts less exact ones, over many releases: neither half nor twice the scale."""
    study = gwas.Simulation(50, 50, 40, 0, seed=2).study()
    exact = np.stack(allele_counts(study.counts), axis=1)
    plan = wi.calibrate(wi.Epsilon(4), wi.families.FixedSize())
    gaps = []
    with wi.Ledger(tmp_path / "many.db") as opened:
        about = study_registration(study, "genotype")
        for number in range(12):
            opened.register(f"s{number}:genotype", plan, about, new_people=None)
            asked = Question(40, "genotype", share="1/2")
            made = publish_study(study, plan, asked, opened, f"s{number}")
            gaps.append((made.numbers - exact[made.places]).T.ravel())
    gaps = np.abs(np.concatenate(gaps))
    cube = made.estimate.published_noise
    assert (cube.scale, cube.dimensions) == (1, 40), "2 copies / (4 / 2)"
    # Of a vector of 40, which share a radius, one.
    assert stats.kstest(gaps[::40], lambda x: 1 - cube.continuous_tail(x)).pvalue > 1e-4
    assert stats.kstest(gaps[::40], lambda x: 1 - cube.continuous_tail(x / 4)).pvalue < 1e-4


def noisy_counts(rng, sizes: tuple[int, int], p, cube, pooled: bool):
    """Copies of A1 among cases and controls by frequencies, with the continuous noise of a release,
    one cube for each SNP."""
    counts = [rng.binomial(2 * size, each) for size, each in zip(sizes, p, strict=True)]
    radius = float(cube.scale) * rng.gamma(cube.dimensions + 1, size=(2, len(counts[0])))
    v, w = radius * rng.uniform(-1, 1, radius.shape)
    return counts[0] + v, counts[1] + (-v if pooled else w)


@pytest.mark.parametrize("pooled", some([False, True], 1))
@pytest.mark.parametrize("dimensions", [1, 6])
def test_p_values_have_the_noise_in_them(pooled, dimensions):
    """Uniform under the null with the noise, and far from it if the noise is left out."""
    rng = np.random.default_rng(1)
    sizes, cube = (800, 1200), noise.CubeNoise(Fraction(40, dimensions), dimensions)
    p = rng.uniform(0.2, 0.5, 3_000)
    x, y = noisy_counts(rng, sizes, (p, p), cube, pooled)
    right = association.estimate_association(x, y, *sizes, cube, pooled=pooled)
    wrong = association.estimate_association(x, y, *sizes)
    assert stats.kstest(right.p, "uniform").statistic < 0.035
    assert (right.p < 1e-3).mean() < 4e-3
    assert (wrong.p < 1e-3).mean() > 0.02
    np.testing.assert_allclose(stats.chi2.sf(right.chi2, 1), right.p, rtol=1e-6)


def integrated_tail(cube, sigma: float, t: float) -> float:
    """P(|Z + V| ≥ t) by quadrature over the density of |V|."""
    from scipy.integrate import quad

    def weighted(v: float) -> float:
        density = float(cube.continuous_tail(v - 1e-4) - cube.continuous_tail(v + 1e-4)) / 2e-4
        return density * (stats.norm.sf(t - v, scale=sigma) + stats.norm.sf(t + v, scale=sigma))

    ends = sorted({1e-4, 4.0, t, t + 30, 300.0})
    return sum(quad(weighted, a, b, limit=300)[0] for a, b in pairwise(ends))


def test_tails_of_sampling_and_noise_together():
    """Far out too, and where sampling or the noise is small."""
    for dimensions, sigma in ((1, 1.0), (3, 0.02), (3, 30.0), (1, 1e4)):
        cube = noise.CubeNoise(Fraction(2), dimensions)
        for t in (0.5, 8.0, 60.0):
            found = association.two_sided(np.array([t]), np.array([sigma]), cube, [1.0])[0]
            wanted = integrated_tail(cube, sigma, t)
            assert math.isclose(found, wanted, rel_tol=5e-3), (dimensions, sigma, t)


@pytest.mark.parametrize("pooled", some([True, False], 1))
def test_odds_ratios_are_covered(pooled):
    rng = np.random.default_rng(2)
    people, truth, cube = 2000, 1.4, noise.CubeNoise(Fraction(12), 4)
    p = rng.uniform(0.2, 0.5, 2500)
    odds = truth * p / (1 - p)
    x, y = noisy_counts(rng, (people, people), (odds / (1 + odds), p), cube, pooled)
    for made, low, high in ((cube, 0.935, 0.97), (None, 0.5, 0.93)):
        found = association.estimate_association(x, y, people, people, made, pooled=pooled)
        lower, upper = found.interval
        assert low < ((lower < truth) & (truth < upper)).mean() < high


def test_without_noise_it_is_plinks():
    study = gwas.Simulation(300, 500, 200, 5, seed=3).study()
    x, y = allele_counts(study.counts)
    found = association.estimate_association(x, y, 300, 500)
    chi2 = gwas.allelic_chi2(study.counts)
    np.testing.assert_allclose(found.chi2, chi2, rtol=1e-6)
    np.testing.assert_allclose(found.p, gwas.p_values(chi2), rtol=1e-6)
    np.testing.assert_allclose(found.odds_ratio, exact_statistics(study)[4], rtol=0.05)


def test_noisy_chi2_tails():
    rng = np.random.default_rng(3)
    for scale in (0.5, 3.0, 40.0):
        draws = rng.chisquare(1, 200_000) + rng.laplace(0, scale, 200_000)
        at = np.quantile(draws, [0.1, 0.5, 0.9, 0.99])
        np.testing.assert_allclose(
            association.noisy_chi2_p(at, noise.CubeNoise(Fraction(scale), 1)),
            [0.9, 0.5, 0.1, 0.01],
            atol=4e-3,
        )


def test_released_numbers_may_leave_their_range():
    found = association.estimate_association(
        np.array([-500, 99_999]), np.array([3, 2]), 10, 10, noise.CubeNoise(Fraction(50), 1)
    )
    assert found.f_a.tolist() == [0, 1] and np.isfinite(found.odds_ratio).all()
    assert np.isinf(found.se).all() and found.interval[0].tolist() == [0, 0]
    assert ((found.p >= 0) & (found.p <= 1)).all() and np.isfinite(found.chi2).all()
    flat = association.estimate_association(np.array([0, 20]), np.array([-3, 20]), 10, 10)
    assert np.isnan([flat.chi2, flat.p, flat.odds_ratio]).all(), "NA, as in PLINK"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    made = gwas.Simulation(200, 800, 4000, 5, seed=7)
    return attack.GenotypePanel.of(made.write(tmp_path_factory.mktemp("gwas") / "study"), seed=1)


def test_exact_frequencies_give_cases_away(crowd):
    points = attack.attack_study(crowd, [30, 4000], PLAN.epsilon, seed=3)
    power = {(p.snps, p.statistic, p.source): p.power for p in points}
    assert all(p.false_positives <= 0.01 for p in points)
    for statistic in attack.ATTACK_STATISTICS:
        assert power[4000, statistic, "exact"] > 0.5
        assert power[30, statistic, "exact"] < 0.2
        # The plan allows e^ε · 0.01 = 3%; four standard errors of 200 people are allowed too.
        assert power[4000, statistic, "released"] < 0.03 + 4 * math.sqrt(0.03 / 200)
    loud = attack.attack_study(crowd, [4000], 1e6, seed=3)
    assert max(p.power for p in loud if p.source == "released") > 0.5


def test_homers_statistic_by_hand():
    table = attack._score_table("homer", np.array([0.7]), np.array([0.4]))
    np.testing.assert_allclose(table, [[0.4 - 0.7, 0.1 - 0.2, 0.6 - 0.3]])
    ratio = attack._score_table("likelihood-ratio", np.array([0.7]), np.array([0.4]))
    np.testing.assert_allclose(ratio[0, 2], 2 * math.log(0.7 / 0.4))
    scores = attack._TestScores(SimpleNamespace(cases=range(4), outsiders=[]), 2)
    scores.add(np.stack([table, ratio]), np.array([[0, 1, 2, -1]], dtype=np.int8))
    np.testing.assert_allclose(scores.totals[0][0], [-0.3, -0.1, 0.3, 0], atol=1e-6)
    point = attack.AttackPoint(10, "homer", "exact", 30, 100, 1, 100)
    assert math.isclose(point.posterior(0.5), 0.3 / 0.31)


def test_wrong_attacks_are_refused(crowd):
    for sizes, rate, field in (
        ([0], 0.01, "numbers of SNPs"),
        ([4001], 0.01, "numbers of SNPs"),
        ([5], 0.0, "false-positive rate"),
        ([5], 0.001, "controls"),
    ):
        with refused(field):
            attack.attack_study(crowd, sizes, 1.0, rate=rate)


def test_the_experiment_shows_gain_and_price():
    """And THEORY F26: from χ² = 4, more of the true top comes back than from p = 5·10⁻⁸."""
    shape = {"gammas": ["2"], "tops": [3], "people": [1000], "snps": 1000, "studies": 6}
    asked = simulation.Experiment(**shape, draws=20)
    assert math.isclose(asked.levels()["2", "bounded"], math.log(3), rel_tol=1e-12)
    seen = []

    def recovered(asked, progress=None):
        found = simulation.run_experiment(asked, progress)
        return {(each.relation, each.privacy): each.recovered for each in found}

    found = recovered(asked, lambda *at: seen.append(at))
    assert found == recovered(asked), "seeds decide everything"
    for relation in gwas.STUDY_RELATIONS:
        assert found[relation, "bounded"] > found[relation, "plain"] + 0.05
    assert found["genotype", "plain"] > found["label-swap", "plain"]
    assert seen[-1] == (6, 6)
    assert Question(3, "genotype").threshold is None
    genome_wide = recovered(simulation.Experiment(**shape, threshold=Fraction("29.7168")))
    assert found["genotype", "bounded"] > genome_wide["genotype", "bounded"] + 0.05


WRONG_EXPERIMENTS = [
    *({"studies": 0}, {"draws": 0}, {"gammas": []}, {"gammas": ["0.5"]}, {"tops": [0]}),
    *({"tops": [9], "snps": 8}, {"people": [3]}, {"score": "odds"}, {"odds_ratio": -1.0}),
    {"causal": 9, "snps": 8, "tops": [1]},
]


def test_wrong_experiments_are_refused():
    small = {"snps": 10, "people": [40], "studies": 1, "tops": [1]}
    for wrong in WRONG_EXPERIMENTS:
        with pytest.raises(InvalidInput):
            simulation.run_experiment(simulation.Experiment(**small | wrong))


def test_simulated_people_and_simulated_counts_agree(tmp_path):
    made = gwas.Simulation(150, 250, 300, 30, odds_ratio=4, lowest=0.1, seed=9)
    path = made.write(tmp_path / "s")
    found = gwas.read_study(path)
    assert (found.cases, found.controls, len(found.snps)) == (150, 250, 300)
    case, control, causal = made.frequencies()
    for study in (found, made.study()):
        f_a, f_u = exact_statistics(study)[:2]
        for seen, truth, size in ((f_a, case, 150), (f_u, control, 250)):
            z = (seen - truth) / np.sqrt(truth * (1 - truth) / (2 * size))
            assert abs(z.mean()) < 0.25 and 0.8 < z.std() < 1.2
    assert gwas.allelic_chi2(found.counts)[causal].mean() > 15
    assert gwas.count_bed(made.write(tmp_path / "t")).tolist() == found.counts.tolist()


@pytest.mark.parametrize("odd", [None, object(), "x", -1, 1.5, [], True, math.nan, print])
def test_values_of_wrong_types(odd, tmp_path):
    """Whatever Python hands over, one clear message; a name is that of a file that is missing."""
    made = gwas.Simulation(30, 40, 20, 2)
    path = made.write(tmp_path / "study")
    study, plan = made.study(), wi.calibrate(wi.Epsilon(1), wi.families.FixedSize())
    asked, crowd = gwas.Question(2, "genotype"), attack.GenotypePanel.of(path)
    for call in (
        lambda: gwas.read_study(odd),
        lambda: gwas.count_bed(odd),
        lambda: gwas.read_study(path, odd or 3),
        lambda: gwas.estimate_study_cost(odd, asked, study),
        lambda: gwas.estimate_study_cost(plan, odd, study),
        lambda: gwas.estimate_study_cost(plan, asked, odd),
        lambda: gwas.publish_study(study, plan, asked, odd, "study"),
        lambda: gwas.Question(None, "genotype", named=odd),
        lambda: gwas.Study(odd, study.counts, 30, 40),
        lambda: gwas.Study(study.snps, study.counts, odd, 40),
        lambda: gwas.Simulation(30, 40, 20, seed=odd if odd is not True else -1),
        lambda: gwas.Simulation(odd, 40, 20),
        lambda: gwas.Simulation(30, 40, odd),
        lambda: gwas.count_bed_spark(path, odd),
        lambda: attack.attack_study(odd, [2], 1.0),
        lambda: attack.attack_study(crowd, odd, 1.0, rate=0.2),
        lambda: attack.GenotypePanel.of(path, seed=odd if odd is not True else -1),
        lambda: simulation.Experiment(tops=odd),
        lambda: simulation.Experiment(studies=odd),
        lambda: simulation.run_experiment(odd),
    ):
        with pytest.raises((InvalidInput, FileNotFoundError)):
            call()
    if odd is not None and odd is not print:
        with refused("progress"):
            gwas.count_bed(path, progress=odd)
