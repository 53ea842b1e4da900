"""How many of the truly most associated SNPs come back: plain DP beside bounded priors.

Contract: simulated studies with stated seeds, the same ones for every setting; selection by the
same mechanism as a release (exponential noise, the M largest), with numpy's randomness. A setting
is a relation, and an ε that gives the same γ: plain DP needs ε = ln γ against every prior, and
ε = ln g(p, γ) is enough against people whose prior is p (Tramèr et al. 2015; ln(2γ−1) at ½).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin import families
from whosin.calibration import Gamma, calibrate
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import Array
from whosin.gwas.reading import Progress, instance, listener, several
from whosin.gwas.scoring import GENOME_WIDE, SCORES, score_sensitivity, scores
from whosin.gwas.sensitivities import RELATIONS
from whosin.gwas.simulation import Simulation
from whosin.gwas.statistics import allelic_chi2
from whosin.validation import whole

PRIVACY = ("plain", "bounded")


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
    threshold: Fraction = GENOME_WIDE
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("studies", "draws", "snps"):
            whole(getattr(self, name), name, 1)
        whole(self.seed, "seed", 0)
        for name in ("gammas", "tops", "people"):
            several(getattr(self, name), name)
        for top in self.tops:
            if whole(top, "top", 1) > self.snps:
                raise InvalidInput("top", f"from 1 to {self.snps}", top)
        for people in self.people:
            whole(people, "people", 20)
        if self.score not in SCORES:
            raise UnknownName("score", str(self.score), SCORES)

    def levels(self) -> dict[tuple[object, str], float]:
        """ε for each γ, with plain DP and with bounded priors."""
        result = {}
        for gamma in self.gammas:
            bounded = calibrate(Gamma(gamma), families.FixedSize(self.prior, self.prior))
            plain = calibrate(Gamma(gamma), families.FixedSize())
            result[gamma, "plain"], result[gamma, "bounded"] = plain.epsilon, bounded.epsilon
        return result


def run(experiment: Experiment, progress: Progress | None = None) -> list[Outcome]:
    """Recovery in every setting, means over studies and draws."""
    instance(experiment, Experiment, "experiment", "an Experiment")
    tell = listener(progress)
    levels = experiment.levels()
    outcomes: list[Outcome] = []
    total = len(experiment.people) * experiment.studies
    for number, people in enumerate(experiment.people):
        shares: dict[tuple[object, int, str, str], list[float]] = {}
        for repeat in range(experiment.studies):
            rng = np.random.default_rng([experiment.seed + repeat, people, 7])
            _one_study(experiment, people, repeat, levels, rng, shares)
            if tell is not None:
                tell(number * experiment.studies + repeat + 1, total)
        for (gamma, top, relation, privacy), result in shares.items():
            spread = float(np.std(result, ddof=1)) if len(result) > 1 else 0.0
            outcomes.append(
                Outcome(
                    people,
                    float(Fraction(str(gamma))),
                    top,
                    experiment.score,
                    relation,
                    privacy,
                    levels[gamma, privacy],
                    float(np.mean(result)),
                    spread / len(result) ** 0.5,
                )
            )
    return outcomes


def _one_study(
    experiment: Experiment,
    people: int,
    repeat: int,
    levels: dict[tuple[object, str], float],
    rng: np.random.Generator,
    shares: dict[tuple[object, int, str, str], list[float]],
) -> None:
    """Add one study's shares, each the mean over draws."""
    cases = people // 2
    study = Simulation(
        cases,
        people - cases,
        experiment.snps,
        experiment.causal,
        experiment.odds_ratio,
        seed=experiment.seed + repeat,
    ).study()
    best = np.argsort(-allelic_chi2(study.counts), kind="stable")
    for relation in RELATIONS:
        values = scores(experiment.score, study.counts, relation, experiment.threshold)
        change = score_sensitivity(experiment.score, study.cases, study.controls, relation)
        for gamma in experiment.gammas:
            for privacy in PRIVACY:
                for top in experiment.tops:
                    scale = 2 * top * change / levels[gamma, privacy]
                    share = _recovered(values, best[:top], scale, experiment.draws, rng)
                    shares.setdefault((gamma, top, relation, privacy), []).append(share)


def _recovered(
    values: Array, truth: Array, scale: float, draws: int, rng: np.random.Generator
) -> float:
    """The mean share of the truth among the largest noisy values."""
    noisy = values + scale * rng.standard_exponential((draws, len(values)))
    top = len(truth)
    chosen = np.argpartition(-noisy, top - 1, axis=1)[:, :top]
    return float(np.isin(chosen, truth).mean())
