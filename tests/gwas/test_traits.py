"""Quantitative traits: sensitivities by enumeration, effects against PLINK, coverage, budgets."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import whosin as wi
from amounts import some
from command import answer
from environments import require_program
from refusals import refused
from whosin import gwas
from whosin.errors import BudgetRefused, WhosinError
from whosin.gwas import bed, release, traits
from whosin.gwas.linear import DOSE_UNITS, LINEAR_SCORE_UNITS, RESIDUAL_UNITS, Design, span_columns
from whosin.gwas.question import Question, estimate_study_cost
from whosin.gwas.release import draw_answer, publish_study
from whosin.gwas.traits import EFFECT_UNITS, TraitRange, TraitStudy, read_trait_study
from whosin.ledger import Ledger, encoding

PLAN = wi.calibrate(wi.Epsilon(1), wi.families.FixedSize())
EXACT = wi.calibrate(wi.Epsilon(700), wi.families.FixedSize())
MISSING = -1
HEIGHT = TraitRange(Fraction(140), Fraction(210))


@dataclass
class Panel:
    """Genotypes in memory, as a .bed file gives them."""

    copies: np.ndarray

    @property
    def people(self) -> int:
        return self.copies.shape[1]

    def genotypes(self, snps, people):
        return self.copies[snps][:, people]


def made_study(copies, values, trait=HEIGHT, basis=None) -> TraitStudy:
    """A study of people who all have a value, in units of the trait."""
    copies, people = np.asarray(copies, dtype=np.int8), len(values)
    snps = len(copies)
    names = gwas.Snps(
        ["1"] * snps, [f"s{i}" for i in range(snps)], np.arange(snps), ["A"] * snps, ["C"] * snps
    )
    counts = np.stack([(copies == k).sum(axis=1) for k in range(3)], axis=1)
    counts = np.concatenate([counts, np.zeros_like(counts)], axis=1)
    none = np.zeros(people, dtype=np.int64)
    basis = span_columns(none, np.zeros((people, 0))) if basis is None else basis
    return TraitStudy(
        names,
        counts,
        people,
        0,
        design=Design(none == 0, none, basis),
        people_places=np.arange(people),
        trait=trait,
        values=trait.units(np.asarray(values, dtype=float)),
        genotypes=Panel(copies),  # type: ignore[arg-type]
        places=np.arange(snps),
    )


BASES = {
    "mean": None,
    "strata": np.linalg.qr(np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1.0]]).T)[0],
    "covariate": np.linalg.qr(np.stack([np.ones(5), [1, 2, 5, 0, 1.0]], axis=1))[0],
}


@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_values_move_scores_and_numbers_by_one_neighbour(basis, monkeypatch):
    """Every value of five people on a coarse grid, and every change of one of them: U moves by at
    most what was measured for the SNP, and by that much somewhere; nothing else moves."""
    monkeypatch.setattr(traits, "TRAIT_UNITS", 2)
    rng = np.random.default_rng(3)
    copies = rng.integers(-1, 3, (7, 5))
    copies[0], copies[1], copies[2] = 1, [0, 2, 0, 0, 0], [2, MISSING, 0, 0, 1]
    trait = TraitRange(Fraction(0), Fraction(2), Fraction(1, 2))
    start, everyone = made_study(copies, [0] * 5, trait, basis), np.arange(7)
    known = {}
    for values in product(range(3), repeat=5):
        study = replace(start, values=np.array(values))
        known[values] = study.terms("trait"), *study.effect_numbers(everyone, "trait")
    most, spread = np.zeros(7, dtype=np.int64), np.zeros(7, dtype=np.int64)
    first = known[(0,) * 5]
    for values, (terms, numbers, public) in known.items():
        assert public == first[2] and (terms.change == first[0].change).all()
        assert (terms.deviation == first[0].deviation).all()
        for person, new in product(range(5), range(3)):
            other, shifted, _ = known[(*values[:person], new, *values[person + 1 :])]
            most = np.maximum(most, np.abs(terms.statistic - other.statistic))
            spread = np.maximum(spread, np.abs(numbers - shifted)[:, 0])
            gap = np.abs(terms.scores(Fraction(2), 5) - other.scores(Fraction(2), 5))
            assert gap.max() <= LINEAR_SCORE_UNITS
    assert (most == first[0].change).all() and most[0] == 0 and most[1:3].all()
    assert spread.max() == EFFECT_UNITS and (spread[most > 0] >= EFFECT_UNITS - 1).all()


@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_genotypes_move_scores_and_numbers_by_one_neighbour(basis):
    """Every genotype of five people, and every change of one of them; U and copies of A1."""
    every = list(product((MISSING, 0, 1, 2), repeat=5))
    study = made_study(every, [141.5, 170, 300, 155.2, 190], basis=basis)
    terms = study.terms("genotype")
    numbers, public = study.effect_numbers(np.arange(len(every)), "genotype")
    assert set(public) == {"change"} and len(set(public["change"])) == 1
    assert len(set(terms.change.tolist())) == 1 and not terms.deviation.any()
    scores, place = terms.scores(Fraction(2), 5), {g: i for i, g in enumerate(every)}
    most, moved = 0, np.zeros(2, dtype=np.int64)
    for copies, at in place.items():
        for person, new in product(range(5), (MISSING, 0, 1, 2)):
            to = place[(*copies[:person], new, *copies[person + 1 :])]
            most = max(most, abs(int(terms.statistic[at] - terms.statistic[to])))
            moved = np.maximum(moved, np.abs(numbers[at] - numbers[to]))
            assert abs(scores[at] - scores[to]) <= LINEAR_SCORE_UNITS
    assert most == terms.change[0] and moved.tolist() == [EFFECT_UNITS, EFFECT_UNITS]


def test_the_statistic_is_the_one_defined():
    """U, Σg̃² and 2 max|e| in exact rationals, without covariates, within the grids' rounding."""
    rng = np.random.default_rng(11)
    copies = rng.integers(-1, 3, (20, 30))
    values = [Fraction(int(v), 8) for v in rng.integers(1000, 1800, 30)]  # some beyond the range
    clamped = [min(max(v, HEIGHT.low), HEIGHT.high) for v in values]
    study = made_study(copies, [float(v) for v in values])
    secret, known = study.terms("trait"), study.terms("genotype")
    middle, mean = (HEIGHT.low + HEIGHT.high) / 2, sum(clamped) / 30
    unit = HEIGHT.width / traits.TRAIT_UNITS
    for place, row in enumerate(copies.tolist()):
        there = [g for g in row if g >= 0]
        own = Fraction(sum(there), len(there))
        left = [Fraction(0) if g < 0 else g - own for g in row]
        u = sum(g * (y - middle) for g, y in zip(left, clamped, strict=True))
        assert abs(float(secret.statistic[place] * unit / RESIDUAL_UNITS - u)) < 1
        squares = float(sum(g * g for g in left))
        assert math.isclose(secret.squares[place] / RESIDUAL_UNITS**2, squares, rel_tol=1e-3)
        v = sum((1 if g < 0 else g) * (y - mean) for g, y in zip(row, clamped, strict=True))
        assert abs(float(known.statistic[place] * unit / DOSE_UNITS - v)) < 1
    largest = 2 * max(abs(y - mean) for y in clamped)
    assert abs(float(known.change[0] * unit / DOSE_UNITS - largest)) < 0.05


def write_study(folder, copies, values, covariates=None):
    """PLINK files, a trait file (NaN is missing) and a covariate file."""
    people, base = copies.shape[1], folder / "s"
    bed.write_bed(base, [copies.astype(np.int8)])
    fam = "".join(f"f{i} i{i} 0 0 {1 + i % 2} -9\n" for i in range(people))
    base.with_suffix(".fam").write_text(fam)
    rows = (f"1 s{j} 0 {1 + 1000 * j} A C\n" for j in range(len(copies)))
    base.with_suffix(".bim").write_text("".join(rows))
    words = ["NA" if math.isnan(v) else repr(float(v)) for v in values]
    lines = "".join(f"f{i} i{i} {word}\n" for i, word in enumerate(words))
    (folder / "height.txt").write_text("FID IID height\n" + lines)
    if covariates is not None:
        lines = "".join(f"f{i} i{i} {c}\n" for i, c in enumerate(covariates))
        (folder / "covar.txt").write_text(lines)
    return base


@pytest.fixture
def heights(tmp_path):
    """Four hundred people, of whom some have no value or no genotype."""
    rng = np.random.default_rng(2)
    copies = rng.binomial(2, 0.3, (8, 400))
    age = rng.normal(50, 10, 400)
    values = 165 + 4 * copies[2] + 0.2 * age + rng.normal(0, 6, 400)
    values[::40] = np.nan
    copies[5, ::7], copies[7] = MISSING, 0
    return write_study(tmp_path, copies, values, age)


def ask(study, relation, folder):
    """Effects of all SNPs with next to no noise."""
    asked = Question(None, relation, "linear", "effects", named=tuple(study.snps.name))
    with Ledger(folder / f"{relation}.db") as ledger:
        return publish_study(study, EXACT, asked, ledger, "s")


@pytest.mark.parametrize("covar", [False, True])
def test_effects_are_those_of_plink(heights, tmp_path, covar):
    """With next to no noise: BETA and SE of `plink1.9 --linear`, where a trait is secret; where
    genotypes are, Hardy–Weinberg proportions are an estimate, and missing genotypes one copy."""
    require_program("plink1.9")
    extra = ["--covar", str(tmp_path / "covar.txt"), "hide-covar"] if covar else []
    hide = extra.pop() if extra else None
    command = ["plink1.9", "--bfile", str(heights), "--pheno", str(tmp_path / "height.txt")]
    command += ["--linear", *([hide] if hide else []), *extra, "--keep-allele-order"]
    command += ["--allow-no-sex", "--out", str(tmp_path / "p")]
    subprocess.run(command, check=True, capture_output=True)
    head, *rows = (row.split() for row in (tmp_path / "p.assoc.linear").read_text().splitlines())
    beta, stat = ([row[head.index(name)] for row in rows] for name in ("BETA", "STAT"))
    wanted = np.array([math.nan if b == "NA" else float(b) for b in beta])
    errors = wanted / np.array([math.nan if s == "NA" else float(s) for s in stat])
    left = 6.0 if covar else 6.5  # the deviation of what the SNP and age leave
    trait = replace(HEIGHT, deviation=Fraction(left))
    extra = {"covar": tmp_path / "covar.txt"} if covar else {}
    study = read_trait_study(heights, tmp_path / "height.txt", trait, **extra)
    assert study.cases == 390 and study.unlabelled == 10
    found, near = (ask(study, relation, tmp_path).effects() for relation in ("trait", "genotype"))
    known = np.isfinite(wanted)
    assert known.tolist() == [True] * 7 + [False]
    np.testing.assert_allclose(found.beta[known], wanted[known], atol=0.04)
    np.testing.assert_allclose(found.se[known], errors[known], rtol=0.25)
    np.testing.assert_allclose(near.beta[2], wanted[2], rtol=0.15)
    assert np.abs(near.beta - wanted)[known].max() < 2 * errors[known].max()
    for column in ("beta", "se", "low", "high", "p"):
        assert math.isnan(getattr(found, column)[7])
    # A clamp that bites, or another SNP's effect, is seen.
    narrow = replace(study, values=TraitRange(Fraction(175), Fraction(180)).units(np.zeros(390)))
    assert abs(narrow.terms("trait").statistic).max() < abs(study.terms("trait").statistic).max()
    assert abs(found.beta[2] - wanted[3]) > 1


@pytest.mark.parametrize("relation", some(["trait", "genotype"], 1))
def test_intervals_cover_the_effect(relation):
    """Studies drawn anew, with as much noise as sampling error: 95% of intervals hold the effect;
    those that forget the noise, or take half the deviation, do not."""
    rng, studies, people, effect = np.random.default_rng(8), 200, 150, 3.0
    trait = replace(HEIGHT, deviation=Fraction(8))
    plan = wi.calibrate(wi.Epsilon("0.7"), wi.families.FixedSize())
    asked = Question(None, relation, "linear", "effects", named=("s0",))
    rows, public = [], []
    for _ in range(studies):
        copies = rng.binomial(2, 0.4, (1, people))
        values = 172 + effect * (copies[0] - 0.8) + rng.normal(0, 8, people)
        study = made_study(copies, values, trait)
        estimate = estimate_study_cost(plan, asked, study)
        drawn = draw_answer(estimate, study, np.array([0]))
        rows += drawn["noisy"]
        public.append(drawn["public"])
    numbers = np.array(rows) * float(estimate.step)
    about = {name: [each[name][0] for each in public] for name in public[0]}
    noise = estimate.published_noise

    def coverage(deviation, noise):
        found = traits.estimate_effects(numbers, about, people, deviation, noise)
        return float(((found.low <= effect) & (effect <= found.high)).mean())

    assert coverage(8.0, noise) > 0.87, "five deviations below 95%"
    assert coverage(8.0, replace(noise, scale=noise.scale / 4)) < 0.89
    assert coverage(2.0, replace(noise, scale=noise.scale / 2)) < 0.89
    found = traits.estimate_effects(numbers, about, people, 8.0, noise)
    if relation == "trait":  # P and the interval say the same of 0
        assert ((found.p < 0.05) == ((found.low > 0) | (found.high < 0))).all()


def attack(estimate, worlds, narrow):
    cube = estimate.number_noise
    estimate = replace(
        estimate,
        selection_spread=estimate.selection_spread / narrow,
        number_noise=replace(cube, scale=cube.scale / narrow),
    )

    def draw(world):
        made = draw_answer(estimate, worlds[world])
        [row] = made["noisy"]
        return (*made["places"], made["gap"] // 64, *(value // 2048 for value in row))

    return wi.audit.two_worlds(draw, 1, 0, 400, "0.999")


@pytest.fixture
def counted_once(monkeypatch):
    """What is no matter of chance is computed once for each world."""
    for owner, name in ((release, "score_study"), (TraitStudy, "effect_numbers")):
        monkeypatch.setattr(owner, name, remember(getattr(owner, name)))


def remember(function):
    known = {}

    def call(first, second, third=None):
        key = tuple(map(str, second)) if third else (), id(second if third is None else first)
        if key not in known:
            known[key] = function(first, second, *([third] if third else []))
        return known[key]

    return call


@pytest.mark.usefixtures("counted_once")
def test_neighbours_stay_below_the_plan():
    """Two studies that differ by one value, or by one person's genotypes, through what is drawn."""
    copies = np.array(
        [[2, 2, 0, 0, 1, 0, 0, 0], [0, 1, 0, 2, 0, 1, 0, 0], [0, 0, 1, 0, 2, 0, 1, 1]]
    )
    values = np.array([210, 205, 150, 160, 180, 140, 145, 171.0])
    for relation in ("trait", "genotype"):
        other, moved = copies.copy(), values.copy()
        if relation == "trait":
            moved[0] = 140
        else:
            other[:, 0] = [0, 2, 2]
        worlds = made_study(copies, values), made_study(other, moved)
        asked = Question(1, relation, "linear", "effects", share="0.5")
        first, second = (estimate_study_cost(PLAN, asked, world) for world in worlds)
        assert first.spend().what == second.spend().what, "the cost shows nothing"

        assert attack(first, worlds, 1).epsilon <= PLAN.epsilon
        assert attack(first, worlds, 8).refutes(PLAN.epsilon)


def test_a_choice_finds_a_strong_effect(tmp_path, run):
    """From files to a table by the command, the study's budget debited once."""
    rng = np.random.default_rng(4)
    copies = rng.binomial(2, 0.4, (40, 600))
    base = write_study(tmp_path, copies, 170 + 12 * (copies[9] - 0.8) + rng.normal(0, 4, 600))
    common = f"gwas release {base} --trait {tmp_path / 'height.txt'} --trait-range 140..200 --top 1"
    for relation in ("trait", "genotype"):
        line = (
            f"{common} --relation {relation} --epsilon 3 --ledger {tmp_path / relation}.db --json"
        )
        dry = answer(run(f"{line} --dry-run"))
        assert (dry["people"], dry["cases"], dry["numbers"]) == (600, None, "effects")
        made = answer(run(line))
        [row] = made["snps"]
        assert row["SNP"] == "s9" and made["gap"] > 0
        assert abs(row["BETA"] - 12) < 6 and row["P"] < 1e-3 and 0.3 < row["F"] < 0.5
        with Ledger(f"{tmp_path / relation}.db") as ledger:
            state = ledger.budget_state(f"s:{relation}")
            assert Fraction(state.spent.epsilon, encoding.EPSILON_UNITS) == made["epsilon"]
        assert json.loads(run(line)[1])["snps"] == made["snps"], "the stored answer"
        assert run(f"{line} --again")[0] == 1, "nothing is left"


def test_phenotypes_of_the_same_people_share_the_budget_of_genomes(heights, tmp_path):
    """A trait under genotype changes is paid by the budget that these genomes have already; where
    traits are secret the same one gets no second budget, whatever its range."""
    fam = heights.with_suffix(".fam").read_text().splitlines()
    cases = "".join(f"{' '.join(row.split()[:2])} {1 + i % 2}\n" for i, row in enumerate(fam))
    (tmp_path / "cases.txt").write_text(cases)
    study = read_trait_study(heights, tmp_path / "height.txt", HEIGHT)
    plain = gwas.read_study(heights, tmp_path / "cases.txt")
    asked = Question(1, "genotype", "linear", "effects", share="0.5")
    with Ledger(tmp_path / "l.db") as ledger:
        publish_study(plain, PLAN, Question(1, "genotype", share="0.5"), ledger, "cases")
        with pytest.raises(BudgetRefused) as caught:
            publish_study(study, PLAN, asked, ledger, "height")
        assert "cases:genotype" in str(caught.value)
        assert ledger.datasets() == ["cases:genotype"]
    secret = Question(1, "trait", "linear", "effects", share="0.5")
    other = TraitRange(Fraction(100), Fraction(250))
    wide = read_trait_study(heights, tmp_path / "height.txt", other)
    with Ledger(tmp_path / "m.db") as ledger:
        publish_study(study, PLAN, secret, ledger, "height", new_people=False)
        with pytest.raises(WhosinError):
            publish_study(wide, PLAN, secret, ledger, "other", new_people=False)
        with pytest.raises(BudgetRefused):
            publish_study(wide, PLAN, secret, ledger, "height", new_people=False)
        assert ledger.datasets() == ["height:trait"]


WRONG_FILES = {
    "text": ("f0 i0 tall\n", "--trait"),
    "infinite": ("f0 i0 inf\n", "--trait"),
    "twice": ("f1 i1 170\n", "height.txt"),
}


@pytest.mark.parametrize("kind", WRONG_FILES)
def test_wrong_trait_files(heights, tmp_path, kind):
    more, field = WRONG_FILES[kind]
    path = tmp_path / "height.txt"
    lines = path.read_text().splitlines(keepends=True)
    kept = lines if kind == "twice" else [lines[0], *lines[2:]]  # the first person has a new line
    path.write_text("".join([*kept, more]))
    with refused(field, hint=True) as caught:
        read_trait_study(heights, path, HEIGHT)
    assert "tall" not in str(caught.value) and "i1" not in str(caught.value)


def test_wrong_values_and_ranges(heights, tmp_path, run):
    """One sentence each, before a ledger is opened."""
    path = tmp_path / "height.txt"
    line = f"gwas release {heights} --trait {path} --top 1 --relation trait --epsilon 1"
    line += f" --ledger {tmp_path / 'none.db'}"
    good = "--trait-range 140..210"
    wrong = [
        ("", "--trait-range"),
        ("--trait-range 210..140", "--trait-range"),
        ("--trait-range 1.4..2.1", "--trait-range"),
        ("--trait-range x..2", "--trait-range"),
        (f"{good} --trait-sd 36", "--trait-sd"),
        (f"{good} --trait-sd 0", "--trait-sd"),
        (f"{good} --numbers counts", "numbers"),
        (f"{good} --score chi2", "score"),
        (f"{good} --none-of-them", "none"),
        (f"{good} --phenotypes {path}", "--phenotypes"),
        (f"{good} --families first", "--families"),
        (f"{good} --save x.ssf.tsv", "x.ssf.tsv"),
    ]
    for more, word in wrong:
        code, out, err = run(f"{line} {more}")
        assert (code, out) == (2, "") and len(err.strip().splitlines()) == 1, (more, err)
        assert word in err, err
    swapped = line.replace("--relation trait", "--relation label-swap")
    assert run(f"{swapped} {good}")[0] == 2
    rows = path.read_text().splitlines()[1:]
    path.write_text("".join(f"{' '.join(r.split()[:2])} {1 + i % 2}\n" for i, r in enumerate(rows)))
    code, _, err = run(f"{line} --trait-range 1..2")
    assert code == 2 and "--phenotypes" in err, err
    path.write_text("f1 i1 170\nf2 i2 180\n")
    assert run(f"{line} {good}")[0] == 2
    assert run(f"{line} {good}".replace(str(heights), "counts.tsv"))[0] == 2
    assert not (tmp_path / "none.db").exists()
    cases = f"gwas release {heights} --top 1 --epsilon 1 --phenotypes {path}"
    code, _, err = run(f"{cases} --relation genotype")
    assert code == 2 and "--trait" in err, "a quantitative trait as phenotypes"
    with refused("relation", "trait"):
        counts = np.full((1, 6), 2)
        names = gwas.Snps(["1"], ["a"], np.array([1]), ["A"], ["C"])
        asked = Question(1, "trait", "linear", "nothing")
        estimate_study_cost(PLAN, asked, gwas.Study(names, counts, 6, 6))
