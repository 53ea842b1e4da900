"""Simulated studies, and experiments on how many true SNPs come back.

Nothing here is private, and its randomness is NumPy's, with a stated seed. SNPs are independent and
in Hardy–Weinberg proportions. Controls have A1 with frequency p ~ uniform(low, 1/2); at a causal
SNP cases have it with odds `odds_ratio` times as large.

How many of the truly most associated SNPs come back is asked of plain DP beside bounded priors: the
same studies for every setting; selection by the same mechanism as a release (exponential noise, the
M largest). A setting is a relation, and an ε that gives the same γ: plain DP needs ε = ln γ against
every prior, and ε = ln g(p, γ) is enough against people whose prior is p (Tramèr et al. 2015;
ln(2γ−1) at ½).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np

from whosin import families
from whosin.calibration import Gamma, calibrate
from whosin.errors import UnknownName, invalid_value
from whosin.exact import Array, rational
from whosin.gwas.association import STUDY_RELATIONS, allelic_chi2
from whosin.gwas.bed import sibling_path, study_prefix, write_bed
from whosin.gwas.people import (
    Progress,
    Snps,
    check_instance,
    check_progress,
    check_sequence,
    check_sizes,
)
from whosin.gwas.scores import (
    SELECTION_THRESHOLD,
    SNP_SCORE_KINDS,
    score_sensitivity,
    selection_scores,
)
from whosin.gwas.study import Study
from whosin.plain_files import create_file
from whosin.validation import read_whole

BLOCK_GENOTYPES = 1 << 24
CHROMOSOME_COUNT = 22


@dataclass(frozen=True)
class Simulation:
    """What to simulate.

    Args:
        cases, controls: the sizes of the groups.
        snps: how many SNPs.
        causal: how many of them are associated with the disease.
        odds_ratio: the odds ratio of each copy of A1 at a causal SNP.
        lowest: the smallest frequency of A1 among controls.
        seed: the seed of numpy's generator.
    """

    cases: int
    controls: int
    snps: int
    causal: int = 10
    odds_ratio: float = 1.5
    lowest: float = 0.05
    seed: int = 1

    def __post_init__(self) -> None:
        check_sizes(self.cases, self.controls, "a simulation")
        read_whole(self.causal, "causal", 0, read_whole(self.snps, "snps", 1))
        if not 0 < float(rational(self.odds_ratio, "odds ratio")) < 1e6:
            raise invalid_value("odds ratio", "above 0 and below a million", self.odds_ratio)
        if not 0 <= float(rational(self.lowest, "lowest frequency")) <= 0.5:
            raise invalid_value("lowest frequency", "between 0 and 0.5", self.lowest)
        read_whole(self.seed, "seed", 0)

    def frequencies(self) -> tuple[Array, Array, Array]:
        """(frequencies among cases, among controls, indices of the causal SNPs)."""
        rng = np.random.default_rng(self.seed)
        controls = rng.uniform(self.lowest, 0.5, self.snps)
        causal = np.sort(rng.choice(self.snps, self.causal, replace=False))
        cases = controls.copy()
        odds = self.odds_ratio * controls[causal] / (1 - controls[causal])
        cases[causal] = odds / (1 + odds)
        return cases, controls, causal

    def study(self) -> Study:
        """Counts alone, drawn from their distribution; much faster than people."""
        cases, controls, _ = self.frequencies()
        rng = np.random.default_rng([self.seed, 1])
        parts = [
            rng.multinomial(size, np.stack([(1 - p) ** 2, 2 * p * (1 - p), p**2], axis=1))
            for size, p in ((self.cases, cases), (self.controls, controls))
        ]
        return Study(self.names(), np.concatenate(parts, axis=1), self.cases, self.controls)

    def genotypes(self) -> Iterator[Array]:
        cases, controls, _ = self.frequencies()
        rng = np.random.default_rng([self.seed, 2])
        step = max(1, BLOCK_GENOTYPES // (self.cases + self.controls))
        for first in range(0, self.snps, step):
            parts = []
            for size, p in ((self.cases, cases), (self.controls, controls)):
                here = p[first : first + step, None]
                copies = [rng.random((len(here), size), dtype=np.float32) < here for _ in range(2)]
                parts.append(copies[0].astype(np.int8) + copies[1])
            yield np.concatenate(parts, axis=1)

    def names(self) -> Snps:
        number = np.arange(self.snps)
        chromosome = number * CHROMOSOME_COUNT // self.snps
        position = 10_000 * (1 + number - np.searchsorted(chromosome, chromosome))
        words, names = [str(i + 1) for i in chromosome], [f"rs{i + 1}" for i in number]
        return Snps(words, names, position, ["A"] * self.snps, ["G"] * self.snps)

    def write(self, path: str | Path) -> Path:
        """Write .bed, .bim and .fam; labels come in random order, so that files show nothing."""
        order = np.random.default_rng([self.seed, 3]).permutation(self.cases + self.controls)
        write_bed(path, (block[:, order] for block in self.genotypes()))
        snps = self.names()
        with create_file(sibling_path(path, ".bim")) as file:
            for row in zip(*snps.columns(), strict=True):
                file.write("{}\t{}\t0\t{}\t{}\t{}\n".format(*row))
        with create_file(sibling_path(path, ".fam")) as file:
            for number, person in enumerate(order, start=1):
                status = 2 if person < self.cases else 1
                file.write(f"p{number}\tp{number}\t0\t0\t{1 + number % 2}\t{status}\n")
        return study_prefix(path)


PRIVACY_KINDS = ("plain", "bounded")


@dataclass(frozen=True)
class Outcome:
    """The mean share of the true top M that came back in one setting, with its standard error."""

    people: int
    gamma: float
    top: int
    score: str
    relation: str
    privacy: str
    epsilon: float
    recovered: float
    error: float


@dataclass(frozen=True)
class Experiment:
    """What to compare.

    Args:
        gammas: the most a belief may grow.
        tops: how many SNPs are asked for.
        people: sizes of the study, half of them cases.
        prior: how sure the adversary is before.
        snps, causal, odds_ratio: as for a simulated study.
        studies: how many studies of each size.
        draws: how often each is released.
        score: "distance" or "chi2".
        threshold: the χ² that the distance is measured from.
        seed: the seed of the first study; the next ones follow.
    """

    gammas: Sequence[object] = ("1.5", "2", "3")
    tops: Sequence[int] = (3, 10)
    people: Sequence[int] = (1_000, 2_000, 5_000, 10_000, 20_000)
    prior: object = "0.5"
    snps: int = 5_000
    causal: int = 10
    odds_ratio: float = 1.5
    studies: int = 10
    draws: int = 10
    score: str = "distance"
    threshold: Fraction = SELECTION_THRESHOLD
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("studies", "draws", "snps"):
            read_whole(getattr(self, name), name, 1)
        read_whole(self.seed, "seed", 0)
        for name in ("gammas", "tops", "people"):
            check_sequence(getattr(self, name), name)
        for top in self.tops:
            read_whole(top, "top", 1, self.snps)
        for people in self.people:
            read_whole(people, "people", 20)
        if self.score not in SNP_SCORE_KINDS:
            raise UnknownName("score", str(self.score), SNP_SCORE_KINDS)

    def levels(self) -> dict[tuple[object, str], float]:
        """ε for each γ, with plain DP and with bounded priors."""
        result = {}
        for gamma in self.gammas:
            bounded = calibrate(Gamma(gamma), families.FixedSize(self.prior, self.prior))
            plain = calibrate(Gamma(gamma), families.FixedSize())
            result[gamma, "plain"], result[gamma, "bounded"] = plain.epsilon, bounded.epsilon
        return result


def run_experiment(experiment: Experiment, progress: Progress | None = None) -> list[Outcome]:
    check_instance(experiment, Experiment, "experiment", "an Experiment")
    tell = check_progress(progress)
    levels = experiment.levels()
    outcomes: list[Outcome] = []
    total = len(experiment.people) * experiment.studies
    for number, people in enumerate(experiment.people):
        shares: dict[tuple[object, int, str, str], list[float]] = {}
        for repeat in range(experiment.studies):
            for setting, share in _recovered_shares(experiment, people, repeat, levels).items():
                shares.setdefault(setting, []).append(share)
            if tell is not None:
                tell(number * experiment.studies + repeat + 1, total)
        for (gamma, top, relation, privacy), result in shares.items():
            error = float(np.std(result, ddof=1)) / len(result) ** 0.5 if len(result) > 1 else 0.0
            asked = float(Fraction(str(gamma))), top, experiment.score, relation, privacy
            epsilon, mean = levels[gamma, privacy], float(np.mean(result))
            outcomes.append(Outcome(people, *asked, epsilon, mean, error))
    return outcomes


def _recovered_shares(
    experiment: Experiment, people: int, repeat: int, levels: dict[tuple[object, str], float]
) -> dict[tuple[object, int, str, str], float]:
    """One study's share in each setting, the mean over draws."""
    rng = np.random.default_rng([experiment.seed + repeat, people, 7])
    sizes, seed = (people // 2, people - people // 2), experiment.seed + repeat
    causal, odds_ratio = experiment.causal, experiment.odds_ratio
    study = Simulation(*sizes, experiment.snps, causal, odds_ratio, seed=seed).study()
    best = np.argsort(-allelic_chi2(study.counts), kind="stable")
    result = {}
    for relation in STUDY_RELATIONS:
        values = selection_scores(experiment.score, study.counts, relation, experiment.threshold)
        change = score_sensitivity(experiment.score, *sizes, relation)
        settings = product(experiment.gammas, PRIVACY_KINDS, experiment.tops)
        for gamma, privacy, top in settings:
            scale = 2 * top * change / levels[gamma, privacy]
            share = _recovered_share(values, best[:top], scale, experiment.draws, rng)
            result[gamma, top, relation, privacy] = share
    return result


def _recovered_share(
    values: Array, truth: Array, scale: float, draws: int, rng: np.random.Generator
) -> float:
    noisy = values + scale * rng.standard_exponential((draws, len(values)))
    top = len(truth)
    chosen = np.argpartition(-noisy, top - 1, axis=1)[:, :top]
    return float(np.isin(chosen, truth).mean())
