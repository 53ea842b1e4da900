"""Forecasts: their sums against enumeration, their chances against simulated releases, advice."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import whosin as wi
from amounts import cases, some
from refusals import refused
from whosin import gwas
from whosin.gwas import forecast
from whosin.gwas.association import allelic_chi2
from whosin.gwas.forecast import StudySettings, advise_study, forecast_study
from whosin.gwas.people import allele_counts
from whosin.gwas.prospects import AlleleFrequencies, Hope, PublicStudy, hope_tables, null_tables
from whosin.gwas.question import Question, estimate_study_cost
from whosin.gwas.release import draw_answer
from whosin.gwas.scores import score_sensitivity, selection_scores

LN3 = math.log(3)
REAL_STUDY = PublicStudy(500, 500, 28_501)
"""The sizes of a published study with one hit, p = 2·10⁻⁹ (χ² = 36)."""
POINTS = 0.03


# The sums, in exact rationals from the definition: integer geometric noise, ties in a fixed order.


def chance_in_one_order(scores, which, top, ratio, order, terms):
    """Pr[candidate `which` is among the `top` largest of scores with geometric noise], all ties in
    the order of a list."""
    total = Fraction(0)
    for drawn in range(terms):
        value = scores[which] + drawn
        few = [Fraction(1)]  # of how many are ahead
        for other, score in enumerate(scores):
            if other == which:
                continue
            least = value - score + (order.index(other) > order.index(which))
            ahead = ratio ** max(least, 0)  # Pr[noise ≥ least]
            few = [
                (few[n] if n < len(few) else 0) * (1 - ahead) + (few[n - 1] if n else 0) * ahead
                for n in range(len(few) + 1)
            ]
        total += (1 - ratio) * ratio**drawn * sum(few[:top])
    return total


def enumerated_chance(candidates, which, top, ratio):
    """The same over the candidates' distributions of scores and over all orders, to 1e-10."""
    orders = list(permutations(range(len(candidates))))
    terms = math.ceil(-23.1 / math.log(ratio))
    total = Fraction(0)
    for chosen in product(*(each.items() for each in candidates)):
        weight = math.prod(part for _, part in chosen)
        scores = [score for score, _ in chosen]
        total += weight * sum(
            chance_in_one_order(scores, which, top, ratio, order, terms) for order in orders
        )
    return total / len(orders)


def distribution(parts):
    values = np.array(list(parts), dtype=np.int64)
    return forecast.ScoreDistribution(values, np.array([float(parts[v]) for v in parts]))


CANDIDATES = [
    ({0: Fraction(1, 2), 3: Fraction(1, 2)}, [{2: Fraction(1)}], 1),
    ({-4: Fraction(9, 10), 5: Fraction(1, 10)}, [{0: Fraction(1, 3), 4: Fraction(2, 3)}], 2),
    ({1: Fraction(1)}, [{1: Fraction(1)}, {1: Fraction(1, 4), 2: Fraction(3, 4)}], 2),
    ({0: Fraction(1, 5), 1: Fraction(4, 5)}, [{-3: Fraction(1)}, {6: Fraction(1)}], 1),
]


@pytest.mark.parametrize(("null", "hopes", "top"), CANDIDATES)
@pytest.mark.parametrize("ratio", some([Fraction(1, 5), Fraction(2, 5)], 1))
def test_chances_are_those_of_the_definition(null, hopes, top, ratio):
    others = 2
    scale = -1 / math.log(ratio)
    found = forecast._chances(
        distribution(null), [distribution(each) for each in hopes], scale, top, others
    )
    candidates = [*hopes, *[null] * others]
    for which, chance in enumerate(found):
        assert math.isclose(chance, enumerated_chance(candidates, which, top, ratio), abs_tol=1e-9)


def test_enough_places_are_for_everybody():
    null, hope = distribution({0: Fraction(1)}), distribution({-50: Fraction(1)})
    assert forecast._chances(null, [hope], 1.0, 3, 2) == [pytest.approx(1)]
    assert forecast._chances(null, [hope], 1.0, 1, 0) == [pytest.approx(1)]


# The tables.


@pytest.mark.parametrize("sizes", [(500, 500), (60, 400), (7, 5)])
def test_tables_without_an_association_are_as_sampled(sizes):
    study = PublicStudy(*sizes, 10, AlleleFrequencies.listed(["0.2", "0.4"]))
    table, weights = null_tables(study)
    assert (table >= 0).all() and (table[:, :3].sum(axis=1) == sizes[0]).all()
    assert math.isclose(weights.sum(), 1)
    chi2 = allelic_chi2(table)
    people = sum(sizes)  # given the margins χ² has the mean 2N/(2N − 1)
    assert math.isclose(weights @ chi2, 2 * people / (2 * people - 1), rel_tol=0.02)


@pytest.mark.parametrize("hope", [Hope(0.3, 1.5), Hope(0.07, 2.2), Hope(0.5, 0.6)])
def test_tables_of_a_hope_are_as_sampled(hope):
    study = PublicStudy(500, 900, 10)
    table, weights = hope_tables(study, hope)
    x, y = allele_counts(table)
    for copies, share, size in zip((x, y), hope.frequencies(study), (500, 900), strict=True):
        mean = weights @ copies
        assert math.isclose(mean, 2 * size * share, rel_tol=2e-3)
        spread = math.sqrt(weights @ (copies - mean) ** 2)
        assert math.isclose(spread, math.sqrt(2 * size * share * (1 - share)), rel_tol=0.02)
    twos = weights @ table[:, 2]
    assert math.isclose(twos, 500 * hope.frequencies(study)[0] ** 2, rel_tol=0.03)


def test_a_stated_chi_square_is_met():
    table, weights = hope_tables(REAL_STUDY, Hope(0.3, chi2=36))
    assert math.isclose(weights @ allelic_chi2(table), 36, rel_tol=0.01)


# Against simulated releases.


def draw_tables(rng, shares, sizes):
    """Cases' and controls' genotypes, people by people's law."""
    groups = (
        rng.multinomial(size, np.stack([(1 - p) ** 2, 2 * p * (1 - p), p * p], axis=-1))
        for size, p in zip(sizes, shares, strict=True)
    )
    return np.concatenate(list(groups), axis=1)


class Releases:
    """Simulated releases: SNPs from a pool of drawn ones, hopes drawn anew for every release."""

    def __init__(self, study, score, relation, threshold, pool, rng):
        self.study, self.rng = study, rng
        self.by = score, relation, threshold, (study.cases, study.controls)
        p = rng.uniform(0.05, 0.5, pool)
        self.values, self.counts = np.unique(self.scores((p, p)), return_counts=True)

    def scores(self, shares):
        kind, relation, threshold, sizes = self.by
        table = draw_tables(self.rng, shares, sizes)
        return selection_scores(kind, table, relation, threshold, sizes)

    def run(self, hopes, epsilon, top, trials):
        """The share of releases in which each hope is back."""
        sizes = self.study.cases, self.study.controls
        scale = 2 * top * score_sensitivity(self.by[0], *sizes, self.by[1]) / epsilon
        shares = [hope.frequencies(self.study) for hope in hopes]
        drawn = [self.scores(tuple(np.full(trials, p) for p in pair)) for pair in shares]
        hoped = np.stack(drawn, axis=1)
        hoped = hoped + scale * self.rng.standard_exponential(hoped.shape)
        others = self.study.snps - len(hopes)
        best = self.best_of_few if others <= len(self.values) else self.best_of_many
        step = max(1, 1_000_000 // min(others, len(self.values)))
        parts = [best(others, scale, top, min(step, trials - n)) for n in range(0, trials, step)]
        everybody = np.concatenate([np.concatenate(parts), hoped], axis=1)
        ahead = (everybody[:, None, :] > hoped[:, :, None]).sum(axis=2)
        return (ahead < top).mean(axis=0)

    def best_of_few(self, others, scale, top, trials):
        """The `top` largest of all scores with noise."""
        shares = self.counts / self.counts.sum()
        noisy = self.rng.choice(self.values, (trials, others), p=shares).astype(float)
        noisy += scale * self.rng.standard_exponential(noisy.shape)
        return -np.partition(-noisy, top - 1, axis=1)[:, :top]

    def best_of_many(self, others, scale, top, trials):
        """The same by how many SNPs have each score, and the largest noise of so many."""
        shares = self.counts / self.counts.sum()
        many = self.rng.multinomial(others, shares, trials).astype(float)
        rank, best = np.ones_like(many), []
        for place in range(top):
            left = np.maximum(many - place, 1)
            rank = np.where(many > place, rank * self.rng.random(rank.shape) ** (1 / left), 0)
            noisy = self.values - scale * np.log1p(-rank)
            best.append(np.where(many > place, noisy, -np.inf))
        return -np.partition(-np.concatenate(best, axis=1), top - 1, axis=1)[:, :top]


SMALL = [(PublicStudy(150, 150, 200), (2.0, 2.5)), (PublicStudy(80, 240, 120), (2.2, 3.0))]
LARGE = [(REAL_STUDY, (1.55, 1.8)), (PublicStudy(300, 900, 5_000), (1.6, 1.8))]
SETTINGS = [
    ("genotype", LN3, 1, "distance", 2),
    ("genotype", 3.0, 3, "distance", 15),
    ("label-swap", 1.8, 1, "distance", 15),
    ("label-swap", 5.0, 3, "distance", 4),
    ("label", 1.5, 1, "linear", 4),
]
"""Relation, ε, top, score, threshold."""


def compare(studies, pool, trials):
    """Forecast and simulation of several SNPs in many settings, and forecasts that are wrong: of a
    study with four times the SNPs, and with a quarter more ε."""
    rng = np.random.default_rng()
    found = []
    for (study, odds_ratios), setting in product(studies, SETTINGS):
        relation, epsilon, top, score, threshold = setting
        releases = Releases(study, score, relation, threshold, pool, rng)
        hopes = [Hope(f, odds_ratios[n % 2]) for n, f in enumerate((0.1, 0.2, 0.3, 0.45))]
        for listed in [hopes] if top > 1 else [[hope] for hope in hopes[1:]]:
            seen = releases.run(listed, epsilon, top, trials)
            settings = StudySettings(relation, epsilon, top, score, threshold, "nothing")
            forecasts = [
                forecast_study(about, chosen, listed).hopes
                for about, chosen in (
                    (study, settings),
                    (replace(study, snps=4 * study.snps), settings),
                    (study, replace(settings, epsilon=1.25 * epsilon)),
                )
            ]
            chances = [[each.chance for each in made] for made in forecasts]
            found += zip(seen, *chances, strict=True)
    return np.array(found)


def check_against_simulation(studies, pool, trials):
    seen, right, *wrong = compare(studies, pool, trials).T
    assert len(seen) == 34
    assert ((seen > 0.1) & (seen < 0.9)).sum() >= 10  # these could fail
    assert np.abs(right - seen).max() <= POINTS
    for perturbed in wrong:
        assert np.abs(perturbed - seen).max() > 2 * POINTS


def test_forecasts_are_within_three_points_of_simulated_releases():
    check_against_simulation(SMALL, 25_000, 6_000)


@pytest.mark.soak
def test_forecasts_of_whole_studies_are_within_three_points():
    check_against_simulation(LARGE, 4_000_000, 10_000)


# What is known of one study, and advice.


def chances(relation, settings, hope):
    return [
        forecast_study(REAL_STUDY, replace(settings, relation=relation, epsilon=ε), [hope]).chance
        for ε in (math.log(2), LN3, math.log(9))
    ]


def test_the_forecast_of_a_known_study():
    """500 + 500, one SNP of χ² = 36, top 1 by the distance from χ² = 4, all of ε: the simulated
    shares at ln 2, ln 3, ln 9."""
    settings = StudySettings("genotype", 1.0, 1, "distance", Fraction(4), "nothing")
    common = Hope(0.45, chi2=36)
    assert chances("genotype", settings, common) == pytest.approx([1, 1, 1], abs=0.02)
    assert chances("label-swap", settings, common) == pytest.approx([0.3, 0.98, 1], abs=0.05)
    split = StudySettings("genotype", LN3, 1, "distance", Fraction(4), "counts", Fraction(7, 10))
    (made,) = forecast_study(REAL_STUDY, split, [Hope(0.45, chi2=36)]).hopes
    assert made.chance > 0.985 and 0.045 < made.noise < 0.065


def test_the_noise_of_a_forecast_is_that_of_the_release():
    """The standard deviation of released log odds ratios, noise alone."""
    plan = wi.calibrate(wi.Epsilon(2), wi.families.FixedSize())
    table, _ = hope_tables(REAL_STUDY, Hope(0.3, chi2=36), 512)
    study = gwas.Simulation(500, 500, 40, 0, seed=3).study()
    study.counts[7] = table[0]
    for relation, many in product(gwas.STUDY_RELATIONS, (1, 3)):
        named = tuple(study.snps.name[7 : 7 + many])
        estimate = estimate_study_cost(plan, Question(None, relation, named=named), study)
        drawn = [
            draw_answer(estimate, study, np.arange(7, 7 + many))["noisy"][0] for _ in range(250)
        ]
        x, y = np.array(drawn, dtype=float).T * float(estimate.step)
        logs = np.log(x * (1000 - y) / (y * (1000 - x)))
        settings = StudySettings(
            relation, float(sum(estimate.epsilons)) * 2, many, "distance", 4, "counts", "0.5"
        )
        noise, _ = forecast._number_errors(REAL_STUDY, settings, Hope(0.3, chi2=36))
        assert math.isclose(logs.std(), noise, rel_tol=0.2)


@pytest.mark.parametrize("relation", gwas.STUDY_RELATIONS)
def test_the_weakest_snp_comes_back_as_it_should(relation):
    study = replace(REAL_STUDY, frequencies=AlleleFrequencies.uniform("0.29", "0.31"))
    settings = forecast.settle(study, StudySettings(relation, LN3))
    weakest = forecast.weakest_chi2(study, settings)
    made = forecast_study(study, settings, [Hope(0.3, chi2=weakest)])
    assert made.chance == pytest.approx(0.95, abs=0.02)
    assert 0.5 <= settings.share <= 0.9
    for threshold in forecast.THRESHOLD_STEPS:
        other = forecast.weakest_chi2(study, replace(settings, threshold=threshold))
        assert weakest <= 1.03 * other


def test_more_of_everything_helps():
    hope = Hope(0.3, 1.6)
    base = StudySettings("genotype", LN3, 1, "distance", 4, "counts", Fraction(1, 2))
    least = forecast_study(REAL_STUDY, base, [hope]).chance
    for study, settings in (
        (REAL_STUDY.resize(1_400), base),
        (replace(REAL_STUDY, snps=2_000), base),
        (replace(REAL_STUDY, effective_snps=2_000), base),
        (REAL_STUDY, replace(base, epsilon=2 * LN3)),
        (REAL_STUDY, replace(base, share=Fraction(3, 4))),
    ):
        assert forecast_study(study, settings, [hope]).chance > least + 0.02


def test_advice_is_at_least_as_good_as_other_settings():
    hopes = [Hope(0.3, 1.8), Hope(0.2, 1.9)]
    study = PublicStudy(400, 600, 3_000)
    advice = advise_study(study, hopes, {"genotype": LN3, "label-swap": LN3})
    assert [each.settings.relation for each in advice.forecasts] == ["genotype", "label-swap"]
    for made, least in zip(advice.forecasts, advice.smallest, strict=True):
        for top, threshold, share in product((1, 2, 3), (4, 20), ("0.55", "0.8")):
            other = replace(
                made.settings, top=top, threshold=Fraction(threshold), share=Fraction(share)
            )
            assert forecast_study(study, other, hopes).information <= 1.15 * made.information
        assert least.least_chance >= 0.945
        assert least.study.cases / least.study.people == pytest.approx(0.4, abs=0.01)
        fewer = least.study.resize(round(0.93 * least.study.people))
        assert forecast_study(fewer, least.settings, hopes).least_chance < 0.95


@pytest.mark.parametrize("relation", gwas.STUDY_RELATIONS)
def test_forecasts_and_advice_are_quick(relation):
    study = PublicStudy(4_321, 5_432, 654_321)
    start = time.process_time()
    forecast_study(study, StudySettings(relation, 1.2), [Hope(0.31, 1.4)])
    assert time.process_time() - start < 2  # under 1 when nothing else runs
    start = time.process_time()
    advise_study(study, [Hope(0.32, 1.4)], {relation: 1.2})
    assert time.process_time() - start < 8  # under 5


@cases(8, 200)
def test_the_advised_release_returns_the_hit_of_a_real_study(count):
    """28,500 SNPs without an association and one with p = 2·10⁻⁹, at posterior 0.75 from prior 0.5
    under genotype changes: the hit comes back with its numbers in 95 of 100 releases."""
    plan = wi.calibrate(wi.Posterior("0.75"), wi.families.FixedSize("0.5", "0.5"))
    hope = Hope(0.3, chi2=36)
    advice = advise_study(REAL_STUDY, [hope], {"genotype": plan.epsilon}, sizes=False)
    best = advice.forecasts[0]
    assert best.chance > 0.97 and best.settings.top == 1
    study = gwas.Simulation(500, 500, 28_501, 0, seed=count).study()
    place = 12_345
    study.counts[place] = hope_tables(REAL_STUDY, hope, 16)[0][3]
    asked = best.settings
    question = Question(
        asked.top, "genotype", asked.score, "counts", asked.threshold, share=asked.share
    )
    estimate = estimate_study_cost(plan, question, study)
    answers = [draw_answer(estimate, study) for _ in range(count)]
    assert all(len(each["noisy"][0]) == 2 for each in answers)
    returned = sum(each["places"] == [place] for each in answers)
    assert returned >= 0.95 * count - (1 if count < 20 else 0)


# Public frequencies, and what is refused.


def test_frequencies_are_read_from_what_people_have(tmp_path):
    frq = tmp_path / "ref.frq"
    frq.write_text(
        " CHR SNP A1 A2 MAF NCHROBS\n 1 rs1 A G 0.1 200\n 1 rs2 A G NA 0\n 1 rs3 C T 0.3 200\n"
    )
    afreq = tmp_path / "ref.afreq"
    afreq.write_text("#CHROM\tID\tREF\tALT\tALT_FREQS\tOBS_CT\n1\trs1\tA\tG\t0.9\t200\n"
                     "1\trs3\tC\tT\t0.3\t200\n")  # fmt: skip
    plain = tmp_path / "ref.txt"
    plain.write_text("0.1\n0.7\n")
    want = AlleleFrequencies.listed([0.1, 0.3])
    for text in (str(frq), str(afreq), str(plain), "0.1,0.3", "0.9, 0.7"):
        found = AlleleFrequencies.read(text)
        assert found.nodes == pytest.approx(want.nodes) and found.weights == want.weights
    even = AlleleFrequencies.read("0.1..0.3")
    assert np.dot(even.nodes, even.weights) == pytest.approx(0.2)
    drawn = even.draw(20_000, np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(0.2, abs=0.003) and drawn.std() == pytest.approx(
        0.2 / math.sqrt(12), rel=0.03
    )


def test_wrong_facts_are_refused(tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("CHR SNP\n1 rs1\n")
    for text in (str(bad), "0.4..0.1", "0.1,x", "0.1,1.2"):
        with refused("frequencies"):
            AlleleFrequencies.read(text)
    with refused("frequency"):
        Hope(0, 2)
    with refused("odds ratio"):
        Hope(0.3)
    with refused("odds ratio"):
        Hope(0.3, 2, 36)
    with refused("chi2"):
        forecast_study(PublicStudy(10, 10, 5), StudySettings("genotype", 1), [Hope(0.1, chi2=36)])
    with refused("effective SNPs"):
        PublicStudy(10, 10, 5, effective_snps=6)
    with refused("share"):
        StudySettings("genotype", 1, share=1)
    with refused("top"):
        forecast_study(PublicStudy(10, 10, 5), StudySettings("genotype", 1, 6), [Hope(0.3, 2)])
    with refused("threshold"):
        forecast_study(
            PublicStudy(10, 10, 5), StudySettings("genotype", 1, threshold=99), [Hope(0.3, 2)]
        )
    with refused("hopes"):
        forecast_study(REAL_STUDY, StudySettings("genotype", 1), [])
