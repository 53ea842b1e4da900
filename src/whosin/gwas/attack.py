"""The attack that private releases stop: placing a known genome among the cases.

Given frequencies of A1 among cases at M SNPs, frequencies of a reference, and a genome, say how
well its owner can be told from people who are not in the study. Homer et al. (2008): Σ |g/2 − p| −
|g/2 − f|; the likelihood ratio (Sankararaman et al. 2009): Σ g ln(f/p) + (2 − g) ln((1−f)/(1−p)),
where g = copies of A1, f = case and p = reference frequency.

Cases are the members. Controls are halved at random: one half is the reference, the other half are
the outsiders, whose scores set the threshold for a false-positive rate. It works on the curator's
exact data with a stated seed, and is for the curator to see; nothing here is a release.

*Published tables* (`attack_tables`) take the place of the study's own frequencies: those of PLINK
2, REGENIE or SAIGE. Odds ratios betray people, too: with x a genome, standardised by the reference,
and z a table's estimates over their standard errors, Σ x z is larger for cases. Of R tables about
the same people each is a direction among their genomes, whatever the phenotypes are: the share of x
that lies in the space of all R, bᵀ(ZᵀZ)⁻¹b with b = Zᵀx, is about R/N for a member of a study of N
people and R/M for others, so that several phenotypes identify even whoever is a case of none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from whosin.errors import InvalidInput, read_path, read_whole, spell
from whosin.exact import Array, exact_fraction, read_ranged
from whosin.gwas.association import sensitivity
from whosin.gwas.bed import MISSING_GENOTYPE, Groups, count_rows, open_bed, sibling_path
from whosin.gwas.people import (
    Progress,
    Snps,
    StudyFilter,
    check_instance,
    check_progress,
    check_sequence,
    count_lines,
    read_bim,
)
from whosin.gwas.results import ResultsTable, check_same_snps, match_snps
from whosin.gwas.study import COUNT_TABLE_SUFFIXES, VARIANT_SUFFIXES, GenotypeView, open_view
from whosin.noise import LaplaceNoise

ATTACK_STATISTICS = ("homer", "likelihood-ratio")
REGRESSION_STATISTIC = "regression"
FREQUENCY_SOURCES = ("exact", "released")
ATTACK_CHUNK_SNPS = 2_000


@dataclass(frozen=True)
class AttackPoint:
    """How well one test does on the frequencies of `snps` SNPs.

    Attributes:
        snps: M.
        statistic: "homer", "likelihood-ratio", or "regression" on the tables' odds ratios.
        source: "exact" frequencies, "released" ones with the plan's noise, or a "published" table.
        recognised, cases: how many of the cases are recognised.
        mistaken, outsiders: how many outsiders are taken for cases.
    """

    snps: int
    statistic: str
    source: str
    recognised: int
    cases: int
    mistaken: int
    outsiders: int

    @property
    def power(self) -> float:
        return self.recognised / self.cases

    @property
    def false_positives(self) -> float:
        return self.mistaken / self.outsiders

    @property
    def power_interval(self) -> tuple[float, float]:
        """The exact 95% interval of the power (Clopper and Pearson): what sampling the cases leaves
        open."""
        from scipy.stats import binomtest

        low, high = binomtest(self.recognised, self.cases).proportion_ci()
        return float(low), float(high)

    def posterior(self, prior: float) -> float:
        """How sure one may be of whoever is recognised, having been `prior` sure."""
        hit, miss = self.power * prior, self.false_positives * (1 - prior)
        return hit / (hit + miss) if hit + miss else prior


@dataclass(frozen=True, eq=False)
class GenotypePanel:
    """Whose genomes are tried: cases, outsiders; and the reference's frequencies."""

    bed: GenotypeView
    cases: Array
    outsiders: Array
    reference: Array
    controls: int

    def with_all_outsiders(self) -> GenotypePanel:
        """The same people, with all controls as outsiders: the reference is another study."""
        both = np.concatenate([self.outsiders, self.reference])
        return replace(self, outsiders=both, reference=both[:0])

    @classmethod
    def of(
        cls,
        path: str | Path,
        phenotypes: str | Path | None = None,
        seed: int = 1,
        filters: StudyFilter | None = None,
    ) -> GenotypePanel:
        file = read_path(path, "study")
        if file.name.lower().endswith((*COUNT_TABLE_SUFFIXES, *VARIANT_SUFFIXES)):
            message = (
                f"{file.name} is not read for the attack, which needs genotypes of single people"
            )
            hint = "give PLINK files; `plink2 --vcf … --make-bed` makes them from a VCF file"
            raise InvalidInput(message, field="study", value=file.name, hint=hint)
        read_whole(seed, "seed", 0)
        bed, groups = open_view(path, phenotypes, filters or StudyFilter())
        controls = np.random.default_rng([seed, 0]).permutation(np.flatnonzero(groups.controls))
        half, cases = len(controls) // 2, np.flatnonzero(groups.cases)
        return cls(bed, cases, controls[half:], controls[:half], len(controls))


def attack_study(
    crowd: GenotypePanel,
    sizes: Sequence[int],
    epsilon: float,
    relation: str = "label-swap",
    *,
    rate: float = 0.01,
    seed: int = 1,
    progress: Progress | None = None,
) -> list[AttackPoint]:
    """The power of both tests on M SNPs, for each M, from exact frequencies and from a release.

    Args:
        sizes: the numbers of SNPs, the same SNPs first.
        epsilon: what a release of the allele counts of M SNPs may cost.
        relation: the relation of that release.
        rate: the false-positive rate that outsiders allow.
        seed: for the choice of SNPs and the noise.
    """
    check_instance(
        crowd, GenotypePanel, "crowd", "a GenotypePanel, as GenotypePanel.of(…) makes one"
    )
    spent, tell = float(read_ranged(epsilon, "epsilon", "above 0")), check_progress(progress)
    read_whole(seed, "seed", 0)
    _check_rate(crowd, rate)
    field = "numbers of SNPs"
    wanted = [read_whole(size, field, 1, crowd.bed.snps) for size in check_sequence(sizes, field)]
    order = np.random.default_rng([seed, 1]).permutation(crowd.bed.snps)
    points: list[AttackPoint] = []
    ordered = sorted(set(wanted))
    for done, size in enumerate(ordered, start=1):
        rng = np.random.default_rng([seed, 2, size])
        cost = sensitivity("allele-counts", len(crowd.cases), crowd.controls, relation, size)
        points.extend(_run_tests(crowd, np.sort(order[:size]), float(cost) / spent, rate, rng))
        if tell is not None:
            tell(done, len(ordered))
    return points


def _run_tests(
    crowd: GenotypePanel, snps: Array, scale: float, rate: float, rng: np.random.Generator
) -> list[AttackPoint]:
    tests = [(statistic, source) for source in FREQUENCY_SOURCES for statistic in ATTACK_STATISTICS]
    scores = _TestScores(crowd, len(tests))
    for first in range(0, len(snps), ATTACK_CHUNK_SNPS):
        genotypes = crowd.bed.genotypes(snps[first : first + ATTACK_CHUNK_SNPS])
        case, size = _allele_frequency(genotypes[:, crowd.cases])
        reference, _ = _allele_frequency(genotypes[:, crowd.reference])
        reference = np.clip(reference, 0.5 / len(crowd.reference), 1 - 0.5 / len(crowd.reference))
        noisy = _guess_frequencies(case, reference, size, scale, rng)
        frequencies = {"exact": case, "released": noisy}
        tables = [
            _score_table(statistic, frequencies[source], reference) for statistic, source in tests
        ]
        scores.add(np.array(tables), genotypes)
    return scores.judge(rate, [(len(snps), *test) for test in tests])


class _TestScores:
    """Scores of cases and of outsiders (tests × people), SNPs added up by and by."""

    def __init__(self, crowd: GenotypePanel, tests: int) -> None:
        self.groups = crowd.cases, crowd.outsiders
        self.totals = [np.zeros((tests, len(group))) for group in self.groups]

    def add(self, tables: Array, genotypes: Array) -> None:
        """Add what 0, 1 and 2 copies say (tests × SNPs × 3); missing genotypes add nothing."""
        for total, group in zip(self.totals, self.groups, strict=True):
            for copies in range(3):
                has = (genotypes[:, group] == copies).astype(np.float32)
                total += tables[:, :, copies].astype(np.float32) @ has

    def judge(self, rate: float, about: Sequence[tuple[int, str, str]]) -> list[AttackPoint]:
        """How many cases score above all but a share of the outsiders, by each test."""
        points = []
        inside, outside = self.totals
        for members, outsiders, test in zip(inside, outside, about, strict=True):
            threshold = np.sort(outsiders)[-int(rate * len(outsiders)) - 1]
            hits, misses = members > threshold, outsiders > threshold
            counts = int(hits.sum()), len(hits), int(misses.sum()), len(misses)
            points.append(AttackPoint(*test, *counts))
        return points


def _check_rate(crowd: GenotypePanel, rate: float) -> None:
    read_ranged(rate, "false-positive rate", "strictly between 0 and 1")
    if len(crowd.outsiders) * rate < 1:
        least = int(np.ceil(1 / rate)) * (2 if len(crowd.reference) else 1)
        message = (
            f"a false-positive rate of {spell(rate)} needs at least {least} controls, and the "
            f"study has {crowd.controls}"
        )
        raise InvalidInput(message, field="controls", value=crowd.controls)


def attack_tables(
    crowd: GenotypePanel,
    tables: Sequence[ResultsTable],
    sizes: Sequence[int] | None = None,
    *,
    reference: str | Path | None = None,
    rate: float = 0.01,
    seed: int = 1,
) -> list[AttackPoint]:
    """The power of tests on published tables: on frequencies of the first one, if it has any, and
    on the odds ratios of all.

    Args:
        crowd: whose genomes are tried: cases are in the study of the tables, controls are not.
        tables: tables of one study, with the same SNPs; several are of several phenotypes.
        sizes: numbers of SNPs, the same SNPs first; by default all that the tables and the
            genomes have.
        reference: PLINK files of other people, for frequencies; by default half of the controls.
        rate: the false-positive rate that outsiders allow.
    """
    check_sequence(tables, "tables")
    check_same_snps(tables)
    read_whole(seed, "seed", 0)
    ours, theirs, turned = match_snps(tables[0].snps, crowd.bed.names)
    if reference is not None:
        crowd = crowd.with_all_outsiders()
        expected = _reference_frequencies(reference, crowd.bed.names)
        found = ~np.isnan(expected[theirs])
        ours, theirs, turned = ours[found], theirs[found], turned[found]
    _check_rate(crowd, rate)
    if not len(ours):
        message = f"no SNP of {tables[0].source} is among those of the genomes, by name and alleles"
        raise InvalidInput(message, field=tables[0].source)
    field = "numbers of SNPs"
    listed = [len(ours)] if sizes is None else check_sequence(sizes, field)
    wanted = sorted({min(read_whole(size, field, 1), len(ours)) for size in listed})
    with_frequencies = not np.isnan(tables[0].case).all()
    if not with_frequencies:
        tables[0].require("odds ratios")
    order = np.random.default_rng([seed, 1]).permutation(len(ours))
    points = []
    for size in wanted:
        chosen = np.sort(order[:size])
        places, flip = theirs[chosen], turned[chosen]
        known = None
        if reference is not None:
            known = np.where(flip, 1 - expected[places], expected[places])
        snps = ours[chosen], places, flip
        points += _run_table_tests(crowd, tables, with_frequencies, snps, known, rate)
    return points


def _run_table_tests(
    crowd: GenotypePanel,
    tables: Sequence[ResultsTable],
    with_frequencies: bool,
    snps: tuple[Array, Array, Array],
    known: Array | None,
    rate: float,
) -> list[AttackPoint]:
    """The tests of some SNPs: their rows in the tables, their places among the genotypes, and
    whether the alleles are turned; `known` are frequencies of other people."""
    rows, places, flip = snps
    given = [each for each in tables if each.beta is not None and each.error is not None]
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = [each.beta[rows] / each.error[rows] for each in given]  # type: ignore[index]
    z = np.nan_to_num(np.array(columns), nan=0.0, posinf=0.0, neginf=0.0)
    frequencies, odds = _TestScores(crowd, len(ATTACK_STATISTICS)), _TestScores(crowd, len(given))
    least = 0.5 / max(len(crowd.reference), len(crowd.outsiders))
    for first in range(0, len(rows), ATTACK_CHUNK_SNPS):
        part = slice(first, first + ATTACK_CHUNK_SNPS)
        genotypes = crowd.bed.genotypes(places[part])
        there = genotypes != MISSING_GENOTYPE
        genotypes = np.where(there & flip[part, None], 2 - genotypes, genotypes)
        usual = (
            _allele_frequency(genotypes[:, crowd.reference])[0] if known is None else known[part]
        )
        p = np.clip(usual, least, 1 - least)
        if with_frequencies:
            case = tables[0].case[rows[part]]
            f = np.where(np.isnan(case), p, case)
            told = [_score_table(statistic, f, p) for statistic in ATTACK_STATISTICS]
            frequencies.add(np.array(told), genotypes)
        if given:
            genome = (np.arange(3) - 2 * p[:, None]) / np.sqrt(2 * p * (1 - p))[:, None]
            odds.add(z[:, part, None] * genome, genotypes)
    made = []
    if with_frequencies:
        about = [(len(rows), statistic, "published") for statistic in ATTACK_STATISTICS]
        made += frequencies.judge(rate, about)
    if given:
        if len(given) > 1:
            inverse = np.linalg.pinv(z @ z.T)
            odds.totals = [((inverse @ b) * b).sum(axis=0)[None] for b in odds.totals]
        made += odds.judge(rate, [(len(rows), REGRESSION_STATISTIC, "published")])
    return made


def _reference_frequencies(path: str | Path, snps: Snps) -> Array:
    """Frequencies of the A1 of these SNPs among other people; NaN where they were not looked at."""
    people = count_lines(sibling_path(path, ".fam"))
    others = read_bim(sibling_path(path, ".bim"))
    bed = open_bed(path, people, len(others))
    everybody = np.ones(people, dtype=bool)
    counts = count_rows(bed.rows(), Groups(everybody, ~everybody))[:, :3]
    copies, alleles = counts[:, 1] + 2 * counts[:, 2], 2 * counts.sum(axis=1)
    frequency = np.where(alleles > 0, copies / np.maximum(alleles, 1), np.nan)
    ours, theirs, turned = match_snps(snps, others)
    found = np.full(len(snps), np.nan)
    found[ours] = np.where(turned, 1 - frequency[theirs], frequency[theirs])
    return found


def _allele_frequency(genotypes: Array) -> tuple[Array, Array]:
    """(frequency of A1, known alleles) a SNP; ½ where nobody is known."""
    known = genotypes != MISSING_GENOTYPE
    alleles = 2 * known.sum(axis=1)
    copies = np.where(known, genotypes, 0).sum(axis=1, dtype=np.int64)
    return np.where(alleles > 0, copies / np.maximum(alleles, 1), 0.5), alleles


def _guess_frequencies(
    case: Array, reference: Array, alleles: Array, scale: float, rng: np.random.Generator
) -> Array:
    """Case frequencies as an attacker guesses them from noisy counts: drawn towards the reference
    by as much as the noise outweighs sampling. (Simulated noise, with a seed.)"""
    chance = -np.expm1(-1 / scale)
    draws = rng.geometric(chance, len(case)) - rng.geometric(chance, len(case))
    sampling = reference * (1 - reference) / np.maximum(alleles, 1)
    noise = LaplaceNoise(exact_fraction(scale)).variance / np.maximum(alleles, 1) ** 2
    trust = sampling / (sampling + noise)
    return np.asarray(reference + trust * (case + draws / np.maximum(alleles, 1) - reference))


def _score_table(statistic: str, case: Array, reference: Array) -> Array:
    """SNPs × 3: what 0, 1 and 2 copies add to a test."""
    copies = np.arange(3)
    f, p = case[:, None], reference[:, None]
    if statistic == "homer":
        return np.abs(copies / 2 - p) - np.abs(copies / 2 - f)
    table: Array
    f = np.clip(f, 1e-4, 1 - 1e-4)
    table = copies * np.log(f / p) + (2 - copies) * np.log((1 - f) / (1 - p))
    return table
