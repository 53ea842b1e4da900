"""Simulated studies, and experiments on how many true SNPs come back.

Nothing here is private, and its randomness is NumPy's, with a stated seed. SNPs are independent and
in Hardy–Weinberg proportions. Controls have A1 with frequency p ~ uniform(low, 1/2), or from a
public distribution; at a causal SNP cases have it with odds `odds_ratio` times as large.

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
from whosin.errors import InvalidInput, invalid_value, read_whole
from whosin.exact import Array, rational
from whosin.gwas.association import STUDY_RELATIONS, allelic_chi2
from whosin.gwas.bed import sibling_path, study_prefix, write_bed
from whosin.gwas.forecast import StudySettings, settle
from whosin.gwas.people import (
    Progress,
    Snps,
    check_instance,
    check_progress,
    check_sequence,
    check_sizes,
)
from whosin.gwas.prospects import AlleleFrequencies, PublicStudy
from whosin.gwas.scores import SELECTION_THRESHOLD, score_sensitivity, selection_scores
from whosin.gwas.study import Study
from whosin.plain_files import create_file

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
        reference: public frequencies of A1 among controls, instead of `lowest` to 1/2.
    """

    cases: int
    controls: int
    snps: int
    causal: int = 10
    odds_ratio: float = 1.5
    lowest: float = 0.05
    seed: int = 1
    reference: AlleleFrequencies | None = None

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
        if self.reference is None:
            controls = rng.uniform(self.lowest, 0.5, self.snps)
        else:
            controls = self.reference.draw(self.snps, rng)
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
    cases: int
    controls: int
    gamma: float
    top: int
    score: str
    relation: str
    privacy: str
    epsilon: float
    share: float
    recovered: float
    error: float


@dataclass(frozen=True)
class Experiment:
    """What to compare.

    Args:
        gammas: the most a belief may grow.
        tops: how many SNPs are asked for.
        people: sizes of the study, half of them cases.
        cases, controls: instead, the sizes of both groups, as many of one as of the other.
        prior: how sure the adversary is before.
        snps, causal, odds_ratio, frequencies: as for a simulated study.
        studies: how many studies of each size.
        draws: how often each is released.
        score: "distance" or "chi2".
        threshold: the χ² that the distance is measured from; None for the best by the forecast.
        relations: between which studies ε is measured.
        numbers: what else is paid for ("counts", "chi2"); "nothing" leaves all of ε to the choice.
        share: how much of ε the choice has beside numbers; None for the best by the forecast.
        seed: the seed of the first study; the next ones follow.
    """

    gammas: Sequence[object] = ("1.5", "2", "3")
    tops: Sequence[int] = (3, 10)
    people: Sequence[int] = (1_000, 2_000, 5_000, 10_000, 20_000)
    cases: Sequence[int] = ()
    controls: Sequence[int] = ()
    prior: object = "0.5"
    snps: int = 5_000
    causal: int = 10
    odds_ratio: float = 1.5
    studies: int = 10
    draws: int = 10
    score: str = "distance"
    threshold: Fraction | None = SELECTION_THRESHOLD
    relations: Sequence[str] = STUDY_RELATIONS
    numbers: str = "nothing"
    share: Fraction | None = None
    frequencies: AlleleFrequencies | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("studies", "draws", "snps"):
            read_whole(getattr(self, name), name, 1)
        read_whole(self.seed, "seed", 0)
        for name in ("gammas", "tops", "people", "relations"):
            check_sequence(getattr(self, name), name)
        for people in self.people:
            read_whole(people, "people", 20)
        if len(self.cases) != len(self.controls):
            message = "cases and controls are the sizes of the same studies: name as many of each"
            raise InvalidInput(message, field="cases", value=tuple(self.cases))
        for cases, controls in self.sizes():
            check_sizes(cases, controls, "an experiment")
        for relation in self.relations:  # refuses wrong settings
            StudySettings(relation, 1.0, 1, self.score, self.threshold, self.numbers, self.share)
        for top in self.tops:
            read_whole(top, "top", 1, self.snps)

    def sizes(self) -> list[tuple[int, int]]:
        """Cases and controls of each study."""
        if len(self.cases):
            return list(zip(self.cases, self.controls, strict=True))
        return [(people // 2, people - people // 2) for people in self.people]

    def settle(
        self, relation: str, epsilon: float, top: int, sizes: tuple[int, int]
    ) -> StudySettings:
        """The settings of one release, with what the forecast finds best where it is asked to."""
        about = () if self.frequencies is None else (self.frequencies,)
        asked = StudySettings(
            relation, epsilon, top, self.score, self.threshold, self.numbers, self.share
        )
        return settle(PublicStudy(*sizes, self.snps, *about), asked)

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
    outcomes: list[Outcome] = []
    total, levels = len(experiment.sizes()) * experiment.studies, experiment.levels()
    for number, sizes in enumerate(experiment.sizes()):
        settings = {
            (gamma, top, relation, privacy): experiment.settle(
                relation, levels[gamma, privacy], top, sizes
            )
            for relation in experiment.relations
            for gamma, privacy, top in product(experiment.gammas, PRIVACY_KINDS, experiment.tops)
        }
        shares: dict[Setting, list[float]] = {setting: [] for setting in settings}
        for repeat in range(experiment.studies):
            for setting, share in _recovered_shares(experiment, sizes, repeat, settings).items():
                shares[setting].append(share)
            if tell is not None:
                tell(number * experiment.studies + repeat + 1, total)
        for (gamma, top, relation, privacy), result in shares.items():
            error = float(np.std(result, ddof=1)) / len(result) ** 0.5 if len(result) > 1 else 0.0
            used = settings[gamma, top, relation, privacy]
            asked = float(Fraction(str(gamma))), top, experiment.score, relation, privacy
            spent = used.epsilon, float(used.share or 1)
            mean = float(np.mean(result))
            outcomes.append(Outcome(sum(sizes), sizes[0], sizes[1], *asked, *spent, mean, error))
    return outcomes


Setting = tuple[object, int, str, str]
"""γ, top, relation, and which priors."""


def _recovered_shares(
    experiment: Experiment,
    sizes: tuple[int, int],
    repeat: int,
    settings: dict[Setting, StudySettings],
) -> dict[Setting, float]:
    """One study's share in each setting, the mean over draws."""
    rng = np.random.default_rng([experiment.seed + repeat, sum(sizes), 7])
    about = experiment.causal, experiment.odds_ratio
    study = Simulation(
        *sizes, experiment.snps, *about, seed=experiment.seed + repeat,
        reference=experiment.frequencies,
    ).study()  # fmt: skip
    best = np.argsort(-allelic_chi2(study.counts), kind="stable")
    scores: dict[tuple[str, object], Array] = {}
    result = {}
    for setting, used in settings.items():
        by = used.relation, used.threshold
        if by not in scores:
            scores[by] = selection_scores(used.score, study.counts, *by)
        change = score_sensitivity(used.score, *sizes, used.relation)
        scale = 2 * used.top * change / (used.epsilon * float(used.share or 1))
        noise = scale * rng.standard_exponential((experiment.draws, len(best)))
        chosen = np.argpartition(-(scores[by] + noise), used.top - 1, axis=1)[:, : used.top]
        result[setting] = float(np.isin(chosen, best[: used.top]).mean())
    return result
