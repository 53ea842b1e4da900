"""Labels that are randomised once: their probabilities, their budget, and what is corrected."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

import amounts
import whosin as wi
from refusals import refused
from whosin import beliefs, gwas
from whosin.errors import BudgetRefused, ImpossibleTarget
from whosin.exact import exp_up
from whosin.gwas import labels, results
from whosin.gwas.bed import Groups
from whosin.gwas.labels import LabelDraw, LabelGroup, LabelledPeople, label_rates, plan_labels
from whosin.gwas.people import Snps
from whosin.gwas.question import Question
from whosin.gwas.release import publish_study

ANYONE = wi.families.Independent(0, "0.5")
SURE = wi.Posterior("0.75")


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "l.db") as opened:
        yield opened


def crowd(cases, controls):
    size = cases + controls
    mine = np.arange(size) < cases
    return LabelledPeople([(f"f{i}", f"i{i}") for i in range(size)], Groups(mine, ~mine))


def randomise(people, ledger, method="symmetric", dataset="study", target=SURE, **more):
    plan = plan_labels(target, ANYONE, method)
    return labels.randomise_labels(people, plan, ledger, dataset, **more)


@pytest.mark.parametrize("method", labels.LABEL_METHODS)
@pytest.mark.parametrize("sized", [False, True])
def test_no_belief_exceeds_the_promise(method, sized):
    """Every output of three people's labels, by definition and in exact rationals: independent
    priors, and priors given the number of cases."""
    if sized and method == "one-sided":
        return
    family = wi.families.FixedSize(0, "0.5") if sized else ANYONE
    [ratio] = plan_labels(SURE, family, method).ratios
    alpha, beta = label_rates(ratio, method)
    worlds = list(product((0, 1), repeat=3))
    priors = [(Fraction(1, 2), Fraction(1, 2), Fraction(1, 3)), (Fraction(1, 2),) * 3]
    worst = Fraction(0)
    for chances, size in product(priors, (1, 2) if sized else (None,)):
        weight = {
            world: math.prod(p if there else 1 - p for p, there in zip(chances, world, strict=True))
            for world in worlds
            if size is None or sum(world) == size
        }
        total = sum(weight.values())
        for output in worlds:
            joint = {
                world: chance
                * math.prod(
                    (alpha if there else beta) if said else 1 - (alpha if there else beta)
                    for there, said in zip(world, output, strict=True)
                )
                for world, chance in weight.items()
            }
            seen = sum(joint.values())
            for person in range(3):
                before = sum(p for world, p in weight.items() if world[person]) / total
                if seen and 0 < before <= Fraction(1, 2):
                    after = sum(p for world, p in joint.items() if world[person]) / seen
                    assert after <= Fraction(3, 4)
                    worst = max(worst, after)
    assert worst > Fraction(74, 100) or sized


def test_an_exact_number_of_cases_breaks_one_sided_labels():
    """Two people, one case, both called cases or one: where one label says control, the other is
    certain. So a fixed size is refused, and so are sizes that were published."""
    alpha, beta = label_rates(Fraction(3), "one-sided")
    chances = {(1, 0): alpha * (1 - beta), (0, 1): 0}  # of the output (case, control), by world
    assert beliefs.posterior(math.inf, Fraction(1, 2)) == 1 and chances[0, 1] == 0 < chances[1, 0]
    with refused("one-sided"):
        plan_labels(SURE, wi.families.FixedSize(0, "0.5"), "one-sided")


def test_targets_about_absence_are_refused_for_one_side():
    with refused("target"):
        plan_labels(wi.Epsilon(1), ANYONE, "one-sided")
    [ratio] = plan_labels(wi.Epsilon(1), ANYONE).ratios
    assert math.e * (1 - 1e-11) < ratio <= exp_up(Fraction(1))


@amounts.cases(60, 2000)
def test_personal_ratios_keep_the_promise(count):
    """r = q(1−b)/(b(1−q)), and the smaller g for a γ, rounded down and hardly below."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        low, high = sorted(Fraction(int(n), 1000) for n in rng.integers(1, 740, 2))
        for target, ratio in (
            (SURE, beliefs.ratio_for_posterior(Fraction(3, 4), high)),
            (wi.Gamma(2), beliefs.ratio_for_gamma(Fraction(2), low, high)),
        ):
            [drawn] = plan_labels(target, ANYONE, "one-sided", [(low, high)]).ratios
            assert drawn <= ratio < drawn * (1 + Fraction(1, 10**10))
    with pytest.raises(ImpossibleTarget):
        plan_labels(SURE, ANYONE, "one-sided", [(Fraction(1, 2), Fraction(3, 4))])


@pytest.mark.parametrize("method", labels.LABEL_METHODS)
def test_labels_follow_their_probabilities(ledger, method):
    people = crowd(20_000, 30_000)
    made = randomise(people, ledger, method)
    alpha, beta = label_rates(made.plan.ratios[0], method)
    for who, rate in ((people.groups.cases, alpha), (people.groups.controls, beta)):
        found = stats.binomtest(int(made.labels[who].sum()), int(who.sum()), float(rate))
        assert found.pvalue > 1e-4
        other = min(float(rate) + 0.02, 1.0) if rate < 1 else 0.98
        assert stats.binomtest(int(made.labels[who].sum()), int(who.sum()), other).pvalue < 1e-4
    purity = made.draw.purity()
    assert abs(purity.cases - 20_000) < 4 * purity.cases_error


def test_labels_are_drawn_once(ledger):
    """Asked again, in another order of people or under another name, the same ones come back."""
    people = crowd(300, 500)
    first = randomise(people, ledger)
    spent = ledger.budget_state("study:label").epsilon
    assert not first.again and 0 < spent - math.log(3) + 1e-9 < 1e-8
    turned = LabelledPeople(
        people.names[::-1], Groups(people.groups.cases[::-1], people.groups.controls[::-1])
    )
    for who, name in ((turned, "study"), (people, "other")):
        again = randomise(who, ledger, dataset=name)
        labelled = dict(zip(again.people.names, again.labels.tolist(), strict=True))
        assert [labelled[name] for name in people.names] == first.labels.tolist()
        assert again.again and again.dataset == "study:label"
    assert ledger.budget_state("study:label").epsilon == spent
    for target in (wi.Posterior("0.7"), wi.Posterior("0.8")):  # a second draw would be averaged
        with pytest.raises(BudgetRefused, match="left"):
            randomise(people, ledger, target=target)


def test_phenotypes_of_the_same_people_share_a_budget(ledger):
    """Three phenotypes by other names get one budget; the curator may say that they are apart."""
    people = crowd(300, 500)
    randomise(people, ledger)
    for number in (1, 2):
        mine = np.roll(people.groups.cases, 7 * number)
        other = LabelledPeople(people.names, Groups(mine, ~mine))
        with pytest.raises(BudgetRefused, match="left"):
            randomise(other, ledger, dataset=f"phenotype {number}")
    made = randomise(other, ledger, dataset="apart", own_budget=True)
    assert made.dataset == "apart:label" and "phenotype" in made.notes[0]
    first = randomise(people, ledger, dataset="by another name", own_budget=True)
    assert first.again  # the very same labels are never drawn twice


def test_sizes_and_one_sided_labels_exclude_each_other(tmp_path):
    made = gwas.Simulation(60, 70, 30, 2)
    path = made.write(tmp_path / "s")
    study, people = gwas.read_study(path), LabelledPeople.read(path)
    plan = wi.calibrate(wi.Gamma(2), wi.families.FixedSize("0.5", "0.5"))
    for relation in gwas.STUDY_RELATIONS[:2]:
        with wi.Ledger(tmp_path / f"{relation}.db") as ledger:
            publish_study(study, plan, Question(2, relation), ledger, "released")
            with pytest.raises(BudgetRefused, match="how many cases"):
                randomise(people, ledger, "one-sided", dataset="labels")
    with wi.Ledger(tmp_path / "labels.db") as ledger:
        randomise(people, ledger, "one-sided", dataset="labels")
        for relation in gwas.STUDY_RELATIONS[:2]:
            with pytest.raises(BudgetRefused, match="how many cases"):
                publish_study(study, plan, Question(2, relation), ledger, "released")
        exact = {"60", "70"}
        state = ledger.budget_state("labels:label").registered
        values = {value["values"][0] for value in state.registration.domains.values()}
        assert not exact & values


@pytest.mark.parametrize("relation", gwas.STUDY_RELATIONS[:2])
def test_a_study_and_labels_at_once_exclude_each_other(tmp_path, monkeypatch, relation):
    """One is published when the other has looked already for budgets of the same people."""
    path = gwas.Simulation(60, 70, 30, 2).write(tmp_path / "s")
    study, people = gwas.read_study(path), LabelledPeople.read(path)
    plan = wi.calibrate(wi.Gamma(2), wi.families.FixedSize("0.5", "0.5"))
    refuse = labels._refuse_other_relations
    with wi.Ledger(tmp_path / "l.db") as ledger:

        def refuse_too_early(*asked):
            refuse(*asked)
            publish_study(study, plan, Question(2, relation), ledger, "released")

        monkeypatch.setattr(labels, "_refuse_other_relations", refuse_too_early)
        with pytest.raises(BudgetRefused, match="released"):
            randomise(people, ledger, "one-sided", dataset="labels", own_budget=True)
        assert ledger.datasets() == [f"released:{relation}"]


def test_a_draw_survives_its_file(tmp_path):
    draw = LabelDraw(
        "one-sided", (LabelGroup(Fraction(7, 3), 10, 4), LabelGroup(Fraction(2), 5, 3))
    )
    draw.save(tmp_path / "x.labels.json")
    assert LabelDraw.load(tmp_path / "x.labels.json") == draw
    for text in (
        "[]",
        '{"labels": "one-sided", "groups": [{"ratio": "1/2", "people": 3, "labelled": 1}]}',
        '{"labels": "x", "groups": [{"ratio": 2}]}',
    ):
        (tmp_path / "y.json").write_text(text)
        with pytest.raises(wi.errors.InvalidInput):
            LabelDraw.load(tmp_path / "y.json")


def draw_of(method, ratio, truth, rng):
    """Labels of people by an independent sampler, and their draw."""
    alpha, beta = map(float, label_rates(ratio, method))
    said = rng.random(len(truth)) < np.where(truth, alpha, beta)
    return said, LabelDraw(method, (LabelGroup(ratio, len(truth), int(said.sum())),))


@pytest.mark.parametrize("method", labels.LABEL_METHODS)
def test_purity_is_that_of_the_labels(method):
    rng, truth = np.random.default_rng(2), np.arange(9_000) < 2_000
    errors = []
    for _ in range(200):
        said, draw = draw_of(method, Fraction(3), truth, rng)
        purity = draw.purity()
        exact = np.array([truth[said].mean(), truth[~said].mean()])
        found = np.array([purity.among_cases, purity.among_controls])
        spread = np.array(purity.covariance)
        gap = np.array([1.0, -1.0])
        errors.append((found - exact) @ gap / math.sqrt(gap @ spread @ gap))
    assert abs(np.mean(errors)) < 0.25 and 0.85 < np.std(errors) < 1.15


def test_variance_factors_are_the_closed_forms():
    """(r + S/R)/(r − 1) one-sided, ((r + 1)/(r − 1))² symmetric at R = S, at the expected
    numbers."""
    for r, cases, controls in ((Fraction(3), 600, 1800), (Fraction(9), 900, 900)):
        labelled = cases + controls // r
        factor = LabelDraw("one-sided", (LabelGroup(r, cases + controls, labelled),)).purity()
        assert math.isclose(factor.variance_factor, (r + Fraction(controls, cases)) / (r - 1))
        assert math.isclose(factor.cases, cases)
    draw = LabelDraw("symmetric", (LabelGroup(Fraction(3), 2000, 1000),))
    assert math.isclose(draw.purity().variance_factor, 4)


def logistic_table(genotypes, said):
    """Allelic odds ratios as a table of results: many SNPs at once."""
    counts = []
    for who in (said, ~said):
        copies = genotypes[:, who].sum(axis=1)
        counts += [copies + 0.5, 2 * who.sum() - copies + 0.5]
    a, b, c, d = counts
    names = [f"rs{i}" for i in range(len(genotypes))]
    snps = Snps(
        ["1"] * len(names), names, np.arange(len(names)), ["A"] * len(names), ["G"] * len(names)
    )
    case, control = a / (a + b), c / (c + d)
    beta, error = np.log(a * d / (b * c)), np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    pooled = genotypes.mean(axis=1) / 2
    return results.ResultsTable("plink2", "x", snps, case, control, pooled, beta, error, beta * 0)


@pytest.mark.parametrize("method", labels.LABEL_METHODS)
@pytest.mark.parametrize(("odds", "cases"), [(1.0, 3000), (1.8, 3000), (1.8, 600)])
def test_corrected_intervals_cover_the_truth(method, odds, cases):
    """Bias and coverage over studies; the table's own odds ratio is biased, and so is a correction
    for other labels."""
    rng = np.random.default_rng(int(10 * odds) + cases)
    snps, people = 40, 6000
    truth = np.arange(people) < cases
    f_u = rng.uniform(0.2, 0.5, snps)
    f_a = odds * f_u / (1 + (odds - 1) * f_u)
    z, naive, wrong = [], [], []
    for _ in range(12):
        rates = np.where(truth, f_a[:, None], f_u[:, None])
        genotypes = rng.binomial(2, rates)
        said, draw = draw_of(method, Fraction(9), truth, rng)
        table = logistic_table(genotypes, said)
        made = results.correct_results(table, draw)
        z.append((made.beta - math.log(odds)) / made.error)
        naive.append((table.beta - math.log(odds)) / table.error)
        other = LabelDraw(method, (LabelGroup(Fraction(30), people, int(said.sum())),))
        worse = results.correct_results(table, other)
        wrong.append((worse.beta - math.log(odds)) / worse.error)
    z, naive, wrong = (np.array(each) for each in (z, naive, wrong))
    assert np.isfinite(z).all()
    covered = (np.abs(z) < 1.96).mean()
    assert 0.92 < covered < 0.98 and abs(z.mean()) < 0.25
    if odds > 1:
        assert naive.mean() < -0.5 and wrong.mean() < -0.5


def test_frequencies_among_controls_come_from_pooled_ones():
    rng = np.random.default_rng(4)
    control, odds, share = rng.uniform(0.01, 0.99, 50), np.exp(rng.normal(0, 1, 50)), 0.3
    case = odds * control / (1 + (odds - 1) * control)
    pooled = share * case + (1 - share) * control
    found = results.control_frequencies(pooled, np.log(odds), share)
    assert np.allclose(found, control, rtol=1e-9)
