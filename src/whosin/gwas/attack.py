"""The attack that private releases stop: placing a known genome among the cases.

Given frequencies of A1 among cases at M SNPs, frequencies of a reference, and a genome, say how
well its owner can be told from people who are not in the study. Homer et al. (2008): Σ |g/2 − p| −
|g/2 − f|; the likelihood ratio (Sankararaman et al. 2009): Σ g ln(f/p) + (2 − g) ln((1−f)/(1−p)),
where g = copies of A1, f = case and p = reference frequency.

Cases are the members. Controls are halved at random: one half is the reference, the other half are
the outsiders, whose scores set the threshold for a false-positive rate. It works on the curator's
exact data with a stated seed, and is for the curator to see; nothing here is a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import betaincinv

from whosin.errors import InvalidInput, spell
from whosin.exact import Array, exact_fraction, read_ranged
from whosin.gwas.association import sensitivity
from whosin.gwas.bed import MISSING_GENOTYPE
from whosin.gwas.people import (
    Progress,
    StudyFilter,
    check_instance,
    check_progress,
    check_sequence,
)
from whosin.gwas.study import COUNT_TABLE_SUFFIXES, VARIANT_SUFFIXES, GenotypeView, open_view
from whosin.noise import LaplaceNoise
from whosin.validation import read_path, read_whole

ATTACK_STATISTICS = ("homer", "likelihood-ratio")
FREQUENCY_SOURCES = ("exact", "released")
ATTACK_CHUNK_SNPS = 2_000


@dataclass(frozen=True)
class AttackPoint:
    """How well one test does on the frequencies of `snps` SNPs.

    Attributes:
        snps: M.
        statistic: "homer" or "likelihood-ratio".
        source: "exact" frequencies, or "released" ones with the plan's noise.
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
        """The 95% interval of the power: what sampling the cases leaves open."""
        return share_interval(self.recognised, self.cases)

    def posterior(self, prior: float) -> float:
        """How sure one may be of whoever is recognised, having been `prior` sure."""
        hit, miss = self.power * prior, self.false_positives * (1 - prior)
        return hit / (hit + miss) if hit + miss else prior


def share_interval(count: int, total: int, error: float = 0.05) -> tuple[float, float]:
    """The exact interval (Clopper and Pearson) of a share that `count` of `total` showed."""
    low = betaincinv(count, total - count + 1, error / 2) if count else 0.0
    high = betaincinv(count + 1, total - count, 1 - error / 2) if count < total else 1.0
    return float(low), float(high)


@dataclass(frozen=True, eq=False)
class GenotypePanel:
    """Whose genomes are tried: cases, outsiders; and the reference's frequencies."""

    bed: GenotypeView
    cases: Array
    outsiders: Array
    reference: Array
    controls: int

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
    read_ranged(rate, "false-positive rate", "strictly between 0 and 1")
    if len(crowd.outsiders) * rate < 1:
        least = 2 * int(np.ceil(1 / rate))
        message = (
            f"a false-positive rate of {spell(rate)} needs at least {least} controls, and the "
            f"study has {crowd.controls}"
        )
        raise InvalidInput(message, field="controls", value=crowd.controls)
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
    members = np.zeros((len(tests), len(crowd.cases)))
    outsiders = np.zeros((len(tests), len(crowd.outsiders)))
    for first in range(0, len(snps), ATTACK_CHUNK_SNPS):
        genotypes = crowd.bed.genotypes(snps[first : first + ATTACK_CHUNK_SNPS])
        cases, others = genotypes[:, crowd.cases], genotypes[:, crowd.outsiders]
        case, size = _allele_frequency(cases)
        reference, _ = _allele_frequency(genotypes[:, crowd.reference])
        reference = np.clip(reference, 0.5 / len(crowd.reference), 1 - 0.5 / len(crowd.reference))
        noisy = _guess_frequencies(case, reference, size, scale, rng)
        frequencies = {"exact": case, "released": noisy}
        tables = [
            _score_table(statistic, frequencies[source], reference) for statistic, source in tests
        ]
        members += _score_people(np.array(tables), cases)
        outsiders += _score_people(np.array(tables), others)
    points = []
    allowed = int(rate * len(crowd.outsiders))
    for index, (statistic, source) in enumerate(tests):
        threshold = np.sort(outsiders[index])[-allowed - 1]
        hits, misses = members[index] > threshold, outsiders[index] > threshold
        seen = int(hits.sum()), len(hits), int(misses.sum()), len(misses)
        points.append(AttackPoint(len(snps), statistic, source, *seen))
    return points


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


def _score_people(tables: Array, genotypes: Array) -> Array:
    """Tests × people: Σ over SNPs of the table's entry; missing genotypes add nothing."""
    total = np.zeros((len(tables), genotypes.shape[1]))
    for copies in range(3):
        has = (genotypes == copies).astype(np.float32)
        total += tables[:, :, copies].astype(np.float32) @ has
    return total
