"""What a release will give back, forecast from public facts alone, and the settings that give most.

Before anything is counted or spent the public facts are: how many cases, controls and SNPs there
are, how frequent alleles are in a public reference, and the settings. From these follows the chance
that a SNP one hopes for is among the `top` that come back (F30), by summation with exact scores:
the largest of many scores decides, and samples have no such tail.

*The choice.* A SNP comes back if its score plus exponential noise of scale b is among the `top`
largest. b = 2·top·Δ/ε for scores of sensitivity Δ (`noise.top_k`). Integer geometric noise of
ratio e^(−1/b) with ties in a fixed order (F25) is the same law for a SNP whose place in the order
is random: ⌊Exp(b)⌋ is geometric, and its fractional part, which breaks ties, is independent of it.

*The other SNPs* have no association. Given its copies m, the copies among cases are hypergeometric;
frequencies are drawn from the public distribution, genotypes are in Hardy–Weinberg proportions.
With p(t) = E min(1, e^(−(t−s)/b)) the chance that one of them exceeds t, the number that do is
binomial for independent SNPs (Poisson in F30; the limit for many). SNPs one hopes for exceed t
independently of each other, each with its own A(t).

SNPs that lie close together are not independent: they count as clumps (`effective_snps`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from whosin.errors import InvalidInput, UnknownName, invalid_value
from whosin.exact import Array, rational, read_ranged
from whosin.gwas.association import check_relation, chi2_of_copies
from whosin.gwas.people import check_instance, check_sizes
from whosin.gwas.scores import (
    SELECTION_THRESHOLD,
    SNP_SCORE_KINDS,
    read_threshold,
    score_sensitivity,
    selection_scores,
)
from whosin.validation import read_whole

FREQUENCY_NODES = 32
MAX_COPY_NODES = 240
"""Numbers of copies among cases that are looked at for one frequency: all of them in studies of up
to some thousand people, evenly spaced ones in larger studies."""
HOPE_NODES = 4_096
"""Places at which the sampling of a SNP one hopes for is looked at, spread evenly (Kronecker's
sequence): evenly spaced counts would meet the steps of a score in step."""
NOISE_NODES = 5
NULL_DEVIATIONS, HOPE_DEVIATIONS = 8.5, 5.0
"""How far counts are followed, in standard deviations: one of 10⁹ SNPs is within the first."""
TAIL_SCALES = 40
BINS_PER_SCALE = 64


@dataclass(frozen=True)
class AlleleFrequencies:
    """A distribution of public allele frequencies, as nodes with weights."""

    nodes: tuple[float, ...]
    weights: tuple[float, ...]

    @classmethod
    def uniform(cls, low: object = "0.05", high: object = "0.5") -> AlleleFrequencies:
        """Frequencies spread evenly from low to high."""
        ends = [
            float(read_ranged(end, "frequency", "strictly between 0 and 1")) for end in (low, high)
        ]
        if ends[0] > ends[1]:
            raise invalid_value("frequencies", "from a lower to a higher one", f"{low}..{high}")
        places, weights = np.polynomial.legendre.leggauss(FREQUENCY_NODES)
        nodes = ends[0] + (ends[1] - ends[0]) * (places + 1) / 2
        return cls(tuple(nodes.tolist()), tuple((weights / 2).tolist()))

    @classmethod
    def listed(cls, values: Iterable[object]) -> AlleleFrequencies:
        """The frequencies of a list, in bins of the rarer allele."""
        try:
            given = np.array([float(value) for value in values])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise InvalidInput("some frequencies are not numbers", field="frequencies") from None
        if not given.size or not ((given >= 0) & (given <= 1)).all():
            raise InvalidInput(
                "frequencies must be between 0 and 1, and at least one", field="frequencies"
            )
        rarer = np.minimum(given, 1 - given)
        bins = np.minimum((rarer * 4 * FREQUENCY_NODES).astype(np.int64), 2 * FREQUENCY_NODES - 1)
        sizes = np.bincount(bins)
        kept = np.flatnonzero(sizes)
        means = np.bincount(bins, rarer)[kept] / sizes[kept]
        return cls(tuple(means.tolist()), tuple((sizes[kept] / given.size).tolist()))

    def quantile(self, share: float) -> float:
        order = np.argsort(self.nodes)
        place = np.searchsorted(np.cumsum(np.array(self.weights)[order]), share - 1e-12)
        return float(self.nodes[order[min(int(place), len(order) - 1)]])


@dataclass(frozen=True)
class PublicStudy:
    """What is public of a study before it is read.

    Args:
        cases, controls, snps: how many there are.
        frequencies: of alleles, from a public reference.
        effective_snps: how many independent ones the SNPs count for, where they lie close together.
    """

    cases: int
    controls: int
    snps: int
    frequencies: AlleleFrequencies = field(default_factory=AlleleFrequencies.uniform)
    effective_snps: int | None = None

    def __post_init__(self) -> None:
        check_sizes(self.cases, self.controls)
        read_whole(self.snps, "snps", 1)
        check_instance(
            self.frequencies, AlleleFrequencies, "frequencies", "an AlleleFrequencies, or nothing"
        )
        if self.effective_snps is not None:
            read_whole(self.effective_snps, "effective SNPs", 1, self.snps)

    @property
    def people(self) -> int:
        return self.cases + self.controls

    @property
    def competitors(self) -> int:
        return self.snps if self.effective_snps is None else self.effective_snps

    def with_people(self, people: int) -> PublicStudy:
        """The same study with so many people, and cases and controls in proportion."""
        cases = min(max(2, round(people * self.cases / self.people)), people - 2)
        return replace(self, cases=cases, controls=people - cases)


@dataclass(frozen=True)
class Hope:
    """A SNP that one hopes to see.

    Args:
        frequency: of A1, among controls; with `chi2` among everybody.
        odds_ratio: of each copy of A1. What the study sees of it varies by sampling.
        chi2: instead, the χ² that the study itself shows.
    """

    frequency: float
    odds_ratio: float | None = None
    chi2: float | None = None

    def __post_init__(self) -> None:
        frequency = float(read_ranged(self.frequency, "frequency", "strictly between 0 and 1"))
        object.__setattr__(self, "frequency", frequency)
        if (self.odds_ratio is None) == (self.chi2 is None):
            message = "a hope is an odds ratio or a χ², and not both"
            raise InvalidInput(message, field="odds ratio", value=self.odds_ratio)
        for name, most in (("odds_ratio", 1e6), ("chi2", 1e9)):
            if (value := getattr(self, name)) is not None:
                number = float(rational(value, name))
                if not 0 < number < most:
                    raise invalid_value(name.replace("_", " "), f"above 0 and below {most}", value)
                object.__setattr__(self, name, number)

    def frequencies(self, study: PublicStudy) -> tuple[float, float]:
        """The frequencies of A1 to be expected among cases and among controls."""
        f = self.frequency
        if self.odds_ratio is not None:
            return self.odds_ratio * f / (1 - f + self.odds_ratio * f), f
        copies = _copies_of_chi2(study, f, float(self.chi2 or 0))
        case = min(max(copies / (2 * study.cases), 0.0), 1.0)
        return case, (f * study.people - case * study.cases) / study.controls


@dataclass(frozen=True)
class StudySettings:
    """How a release chooses SNPs and what it publishes about them.

    Args:
        relation: between which studies ε is measured.
        epsilon: all that is spent.
        top: how many SNPs are chosen.
        score, threshold: what they are chosen by; without a threshold the best one.
        numbers: what is published about them: "counts", "chi2" or "nothing".
        share: how much of ε pays for the choice; without it the best one.
    """

    relation: str
    epsilon: float
    top: int = 1
    score: str = "distance"
    threshold: Fraction | None = None
    numbers: str = "counts"
    share: Fraction | None = None

    def __post_init__(self) -> None:
        check_relation(self.relation)
        if not 0 < self.epsilon < math.inf:
            raise invalid_value("epsilon", "above 0", self.epsilon)
        read_whole(self.top, "top", 1)
        if self.score not in SNP_SCORE_KINDS:
            raise UnknownName("score", str(self.score), SNP_SCORE_KINDS)
        if self.numbers not in NUMBER_KINDS:
            raise UnknownName("numbers", str(self.numbers), NUMBER_KINDS)
        if self.numbers == "nothing":
            object.__setattr__(self, "share", Fraction(1))
        elif self.share is not None:
            share = read_ranged(self.share, "share", "strictly between 0 and 1")
            object.__setattr__(self, "share", share)


NUMBER_KINDS = ("counts", "chi2", "nothing")


@dataclass(frozen=True)
class HopeForecast:
    """What becomes of one hope.

    Attributes:
        chance: how probably it comes back.
        noise: the standard deviation that noise adds to what is published of it: to the logarithm
            of the odds ratio (counts), or to χ²; None without numbers.
        sampling_error: of the same number in the study itself.
    """

    hope: Hope
    chance: float
    noise: float | None
    sampling_error: float

    @property
    def information(self) -> float:
        """The chance, times the share of information that noise leaves in the number."""
        if self.noise is None:
            return self.chance
        return self.chance / (1 + (self.noise / self.sampling_error) ** 2)


@dataclass(frozen=True)
class Forecast:
    """What a release with these settings will give back."""

    study: PublicStudy
    settings: StudySettings
    hopes: tuple[HopeForecast, ...]

    @property
    def chance(self) -> float:
        """The share of the hopes that comes back, on average."""
        return sum(each.chance for each in self.hopes) / len(self.hopes)

    @property
    def information(self) -> float:
        return sum(each.information for each in self.hopes) / len(self.hopes)


def forecast_study(study: PublicStudy, settings: StudySettings, hopes: Sequence[Hope]) -> Forecast:
    """The chance of each hope to come back, and the noise on what is published of it."""
    check_instance(study, PublicStudy, "study", "a PublicStudy")
    check_instance(settings, StudySettings, "settings", "StudySettings")
    listed = [check_instance(hope, Hope, "hopes", "a list of Hope") for hope in hopes]
    if not listed:
        raise InvalidInput("state at least one hope", field="hopes")
    if max(settings.top, len(listed)) > study.snps:
        raise invalid_value(
            "top" if settings.top > study.snps else "hopes", f"at most {study.snps}", settings.top
        )
    settled = settle(study, settings)
    assert settled.threshold is not None and settled.share is not None
    scored = [_hope_scores(study, hope, *_score_key(settled)) for hope in listed]
    chances = _chances(
        _null_scores(study, *_score_key(settled)),
        scored,
        _noise_scale(study, settled),
        settled.top,
        max(study.competitors - len(listed), 0),
    )
    results = [
        HopeForecast(hope, chance, *_number_errors(study, settled, hope))
        for hope, chance in zip(listed, chances, strict=True)
    ]
    return Forecast(study, settled, tuple(results))


def settle(study: PublicStudy, settings: StudySettings) -> StudySettings:
    """The settings with the best threshold and the best share where none was given."""
    if settings.threshold is None:
        settings = replace(settings, threshold=best_threshold(study, settings))
    read_threshold(settings.threshold, study.people)
    if settings.share is None:
        settings = replace(settings, share=best_share(study, settings))
    return settings


# Which threshold and which share, where nobody says what is hoped for: those for the weakest SNP
# that comes back in 95 of 100 releases while all other places go to other true SNPs.

GOOD_CHANCE = 0.95
THRESHOLD_STEPS = tuple(map(Fraction, (1, 2, 4, 6, 10, 15, 20, 30)))
SHARE_STEPS = tuple(Fraction(n, 20) for n in range(2, 20))
USUAL_SHARE = Fraction(7, 10)
LADDER_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
LADDER_NODES = 100
CLEAR_GAIN = 1.02
"""A threshold other than the usual one has to lower the χ² that is needed by 2%."""


@lru_cache(maxsize=256)
def best_threshold(study: PublicStudy, settings: StudySettings) -> Fraction:
    """The χ² to measure distances from so that the weakest SNPs come back: the one for which the
    least χ² is enough for a chance of 95%, on average over common and rare SNPs (F26)."""
    if settings.score == "chi2":
        return SELECTION_THRESHOLD
    asked = replace(settings, share=settings.share or USUAL_SHARE)
    needed = {
        threshold: _needed_chi2(study, replace(asked, threshold=threshold))
        for threshold in THRESHOLD_STEPS
        if threshold <= 2 * study.people
    }
    least = min(needed.values())
    if not math.isfinite(least):
        return min(SELECTION_THRESHOLD, Fraction(2 * study.people))
    good = [threshold for threshold, chi2 in needed.items() if chi2 <= CLEAR_GAIN * least]
    return min(good, key=lambda threshold: abs(math.log(threshold / SELECTION_THRESHOLD)))


@lru_cache(maxsize=256)
def best_share(study: PublicStudy, settings: StudySettings) -> Fraction:
    """The share of ε for the choice under which one learns most about the weakest SNP that all of
    ε brings back in 95 of 100 releases: the chance that it comes back, times the share of the
    information about its odds ratio that noise leaves."""
    if settings.numbers == "nothing":
        return Fraction(1)
    threshold = settings.threshold or best_threshold(study, settings)
    whole = replace(settings, threshold=threshold, numbers="nothing")
    needed = _needed_chi2(study, whole)
    if not math.isfinite(needed):
        return USUAL_SHARE
    hope = Hope(study.frequencies.quantile(0.5), chi2=needed)
    asked = replace(settings, threshold=threshold)
    return max(SHARE_STEPS, key=lambda share: _lone_information(study, asked, hope, share))


def _lone_information(
    study: PublicStudy, settings: StudySettings, hope: Hope, share: Fraction
) -> float:
    tried = replace(settings, share=share)
    null, hoped = (
        _null_scores(study, *_score_key(tried)),
        _hope_scores(study, hope, *_score_key(tried)),
    )
    (chance,) = _chances(null, [hoped], _noise_scale(study, tried), 1, study.competitors - 1)
    return HopeForecast(hope, chance, *_number_errors(study, tried, hope)).information


def _needed_chi2(study: PublicStudy, settings: StudySettings) -> float:
    """The least χ² with a chance of 95% against all other SNPs, the mean over frequencies."""
    null, scale = _null_scores(study, *_score_key(settings)), _noise_scale(study, settings)
    floor = _hopeless_score(null, 1, study.competitors, scale)
    ladders = _ladder_scores(study, *_score_key(settings))
    grid = _NoiseGrid(scale, floor, [null, *ladders])
    wins = grid.chance_by_score(grid.exceeds(null), study.competitors - 1, [], 1)
    needed = []
    for (_, chi2), ladder in zip(_ladder_tables(study), ladders, strict=True):
        chances = np.maximum.accumulate(wins[grid.bins(ladder.values)])
        reached = float(np.interp(GOOD_CHANCE, chances, chi2))
        needed.append(reached if chances[-1] >= GOOD_CHANCE else math.inf)
    return sum(needed) / len(needed)


ScoreKey = tuple[str, str, Fraction]


def _score_key(settings: StudySettings) -> ScoreKey:
    threshold = settings.threshold
    assert threshold is not None
    return settings.score, settings.relation, threshold


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """Scores with their probabilities."""

    values: Array
    weights: Array


def _spread_evenly(count: int, dimension: int) -> Array:
    """Points of (0, 1) that fill it evenly, one sequence a dimension: multiples of powers of the
    root of x⁵ = x + 1, modulo 1."""
    root = 1.1673039782614187
    return (0.5 + np.arange(1, count + 1) * root ** -(dimension + 1)) % 1.0


def _likely_genotypes(copies: Array, people: int, dimension: int) -> Array:
    """People with 0, 1 and 2 copies, of so many in all, as random mating has them: a mean of
    np² with 2 copies, and a standard deviation of √n·p(1−p), at evenly spread quantiles."""
    from scipy.special import ndtri

    share = copies / (2 * people)
    shift = ndtri(_spread_evenly(len(copies), dimension)) * np.sqrt(people) * share * (1 - share)
    two = np.rint(people * share * share + shift).astype(np.int64)
    two = np.clip(two, np.maximum(0, copies - people), copies // 2)
    one = copies - 2 * two
    return np.stack([people - one - two, one, two], axis=1)


def _likely_tables(x: Array, y: Array, study: PublicStudy) -> Array:
    groups = ((x, study.cases, 2), (y, study.controls, 3))
    return np.concatenate([_likely_genotypes(*group) for group in groups], axis=1)


def _spread_nodes(low: int, high: int, most: int) -> Array:
    """Whole numbers from low to high, evenly spaced where there are more than `most`."""
    return np.arange(low, high + 1, max(1, -(-(high - low + 1) // most)))


def _null_scores(
    study: PublicStudy, score: str, relation: str, threshold: Fraction
) -> ScoreDistribution:
    """The score of a SNP without an association."""
    return _reference_scores(study, score, relation, threshold)[0]


def _ladder_scores(
    study: PublicStudy, score: str, relation: str, threshold: Fraction
) -> Sequence[ScoreDistribution]:
    return _reference_scores(study, score, relation, threshold)[1:]


@lru_cache(maxsize=256)
def _reference_scores(
    study: PublicStudy, score: str, relation: str, threshold: Fraction
) -> tuple[ScoreDistribution, ...]:
    """Scores of SNPs without an association, and of the ladders, looked up at once."""
    table, weights = _null_tables(study)
    ladders = [table for table, _ in _ladder_tables(study)]
    sizes = study.cases, study.controls
    every = np.concatenate([table, *ladders])
    scores = selection_scores(score, every, relation, threshold, sizes)
    ends = np.cumsum([len(table), *map(len, ladders)])
    null, *rest = np.split(scores, ends[:-1])
    return ScoreDistribution(null, weights), *(
        ScoreDistribution(each, np.full(len(each), 1 / len(each))) for each in rest
    )


@lru_cache(maxsize=16)
def _ladder_tables(study: PublicStudy) -> list[tuple[Array, Array]]:
    """Tables from no association to the strongest, with their χ², for some frequencies."""
    ladders = []
    for share in LADDER_QUANTILES:
        copies = max(round(2 * study.people * study.frequencies.quantile(share)), 1)
        low, high = math.ceil(copies * study.cases / study.people), min(copies, 2 * study.cases)
        steps = np.linspace(0, 1, LADDER_NODES) ** 2
        x = np.unique((low + np.ceil((high - low) * steps)).astype(np.int64))
        y = copies - x
        chi2 = chi2_of_copies(x, y, study.cases, study.controls)
        ladders.append((_likely_tables(x, y, study), chi2))
    return ladders


@lru_cache(maxsize=16)
def _null_tables(study: PublicStudy) -> tuple[Array, Array]:
    from scipy.special import gammaln

    cases, alleles = 2 * study.cases, 2 * study.people
    tables, weights = [], []
    for frequency, weight in zip(study.frequencies.nodes, study.frequencies.weights, strict=True):
        m = round(alleles * frequency)
        variance = m / alleles * (1 - m / alleles) * cases * (alleles - cases) / (alleles - 1)
        middle, reach = m * cases / alleles, NULL_DEVIATIONS * math.sqrt(variance) + 1
        low = max(0, m - (alleles - cases), math.floor(middle - reach))
        high = min(m, cases, math.ceil(middle + reach))
        x = _spread_nodes(low, high, MAX_COPY_NODES)
        below = (x, m - x, cases - x, alleles - cases - m + x)
        log = -sum(gammaln(each + 1.0) for each in below)
        chance = np.exp(log - log.max())
        tables.append(_likely_tables(x, m - x, study))
        weights.append(weight * chance / chance.sum())
    return np.concatenate(tables), np.concatenate(weights)


@lru_cache(maxsize=1024)
def _hope_scores(
    study: PublicStudy, hope: Hope, score: str, relation: str, threshold: Fraction
) -> ScoreDistribution:
    """The score of a SNP one hopes for."""
    if hope.odds_ratio is None:
        copies = round(2 * study.people * hope.frequency)
        exact = _copies_of_chi2(study, hope.frequency, float(hope.chi2 or 0))
        x = math.floor(exact) + np.arange(2)
        y, weights = copies - x, np.array([1 - exact % 1, exact % 1])
        possible = (x <= min(copies, 2 * study.cases)) & (y >= 0)
        if not possible.any():
            raise InvalidInput(
                "no study of this size has such a χ² at this frequency",
                field="chi2",
                value=hope.chi2,
            )
        x, y, weights = x[possible], y[possible], weights[possible] / weights[possible].sum()
    else:
        shares = hope.frequencies(study)
        x = _binomial_quantiles(2 * study.cases, shares[0], _spread_evenly(HOPE_NODES, 0))
        y = _binomial_quantiles(2 * study.controls, shares[1], _spread_evenly(HOPE_NODES, 1))
        weights = np.full(HOPE_NODES, 1 / HOPE_NODES)
    table = _likely_tables(x, y, study)
    sizes = study.cases, study.controls
    return ScoreDistribution(selection_scores(score, table, relation, threshold, sizes), weights)


def _copies_of_chi2(study: PublicStudy, frequency: float, chi2: float) -> float:
    """The copies x among cases for which 2N(xS − yR)²/(RS m(2N−m)) = χ², x + y = m = 2Nf."""
    n, m = study.people, round(2 * study.people * frequency)
    gap = math.sqrt(chi2 * study.cases * study.controls * m * (2 * n - m) / (2 * n))
    return (m * study.cases + gap) / n


def _binomial_quantiles(trials: int, share: float, places: Array) -> Array:
    from scipy.special import gammaln

    reach = HOPE_DEVIATIONS * math.sqrt(trials * share * (1 - share)) + 1
    low = max(0, math.floor(trials * share - reach))
    x = np.arange(low, min(trials, math.ceil(trials * share + reach)) + 1)
    log = x * math.log(share) + (trials - x) * math.log1p(-share)
    log = log - gammaln(x + 1.0) - gammaln(trials - x + 1.0)
    chance = np.exp(log - log.max())
    return low + np.searchsorted(chance.cumsum() / chance.sum(), places)


def _noise_scale(study: PublicStudy, settings: StudySettings) -> float:
    """The scale of the noise on scores: 2·top·Δ over the ε of the choice."""
    change = score_sensitivity(settings.score, study.cases, study.controls, settings.relation)
    share = settings.share or Fraction(1)
    return 2 * settings.top * change / (settings.epsilon * float(share))


def _chances(
    null: ScoreDistribution,
    hopes: Sequence[ScoreDistribution],
    scale: float,
    top: int,
    competitors: int,
) -> list[float]:
    """The chance of each hope to be among the `top` largest with noise."""
    floor = _hopeless_score(null, top, competitors, scale)
    grid = _NoiseGrid(scale, floor, [null, *hopes])
    exceeds = {id(hope): grid.exceeds(hope) for hope in hopes}
    others = grid.exceeds(null)
    found: dict[int, float] = {}
    for number, hope in enumerate(hopes):
        if id(hope) not in found:
            rivals = [exceeds[id(each)] for place, each in enumerate(hopes) if place != number]
            wins = grid.chance_by_score(others, competitors, rivals, top)
            found[id(hope)] = float(np.clip(wins[grid.bins(hope.values)] @ hope.weights, 0, 1))
    return [found[id(hope)] for hope in hopes]


def _hopeless_score(null: ScoreDistribution, top: int, competitors: int, scale: float) -> float:
    """A score below which nothing wins, so that lower ones may count as this one: noise lifts none
    of them, except with probability e^(−20), to where more scores lie than there are places."""
    order = np.argsort(null.values)
    above = competitors * null.weights[order][::-1].cumsum()[::-1]
    many = np.flatnonzero(above >= top + 10 * math.sqrt(top) + 60)
    crowded = null.values[order[many[-1] if len(many) else 0]]
    return float(crowded) - scale * (math.log(max(competitors, 1)) + 20)


class _NoiseGrid:
    """Sums over scores with exponential noise, on bins of a whole score or of 1/64 of the scale.

    With ρ = e^(−1/b), b in bins, the chance that a score with noise exceeds k + φ, 0 ≤ φ < 1, is
    v·L(k) + T(k): v = e^(−φ/b), T(k) the probability of scores above k, L(k) = Σ over scores s ≤ k
    of p(s)ρ^(k−s). A score of k wins with chance R(k) = ∫ F dv over (ρ, 1) + ρR(k+1), F the chance
    that few enough others exceed; the integral by Gauss and Legendre's rule.
    """

    def __init__(self, scale: float, floor: float, scored: Sequence[ScoreDistribution]) -> None:
        self.unit = max(1.0, scale / BINS_PER_SCALE)
        width = scale / self.unit
        lowest = min(int(each.values.min()) for each in scored)
        self.floor = max(math.floor(floor), lowest)
        highest = max(int(each.values.max()) for each in scored)
        top_bin = int(max(highest - self.floor, 0) / self.unit)
        self.size = top_bin + math.ceil(TAIL_SCALES * width) + 2
        self.ratio = math.exp(-1 / width)
        places, weights = np.polynomial.legendre.leggauss(NOISE_NODES)
        self.places = self.ratio + (1 - self.ratio) * (places + 1) / 2
        self.weights = (1 - self.ratio) * weights / 2

    def bins(self, scores: Array) -> Array:
        return np.asarray(np.maximum(scores - self.floor, 0) / self.unit).astype(np.int64)

    def exceeds(self, scored: ScoreDistribution) -> Array:
        """bins × nodes: the chance to exceed each place."""
        share = np.bincount(self.bins(scored.values), scored.weights, self.size)
        near = np.array(list(accumulate(share.tolist(), lambda sum_, p: self.ratio * sum_ + p)))
        far = share[::-1].cumsum()[::-1] - share
        return np.clip(near[:, None] * self.places + far[:, None], 0.0, 1.0)

    def chance_by_score(
        self, others: Array, competitors: int, rivals: Sequence[Array], top: int
    ) -> Array:
        """The chance to win of each bin, against so many SNPs without an association and rivals."""
        from scipy.special import bdtr

        most = min(top - 1, len(rivals))
        ahead = np.zeros((most + 1, *others.shape))
        ahead[0] = 1
        for rival in rivals:
            ahead[1:] = ahead[1:] * (1 - rival) + ahead[:-1] * rival
            ahead[0] *= 1 - rival
        few = sum(
            part
            * (
                1.0
                if top - 1 - count >= competitors
                else bdtr(top - 1 - count, competitors, others)
            )
            for count, part in enumerate(ahead)
        )
        wins = (few @ self.weights)[::-1].tolist()
        return np.array(list(accumulate(wins, lambda sum_, g: self.ratio * sum_ + g)))[::-1]


def _number_errors(
    study: PublicStudy, settings: StudySettings, hope: Hope
) -> tuple[float | None, float]:
    """(standard deviation of the noise, sampling error) of what is published about a hope."""
    case, control = hope.frequencies(study)
    cells = [2 * study.cases * case, 2 * study.controls * control]
    inverse = [
        1 / max(copies, 0.5) + 1 / max(2 * size - copies, 0.5)
        for copies, size in zip(cells, (study.cases, study.controls), strict=True)
    ]
    sampling = math.sqrt(sum(inverse))
    if settings.numbers == "nothing":
        return None, sampling
    epsilon = settings.epsilon * (1 - float(settings.share or 1))
    deviation = math.sqrt((settings.top + 1) * (settings.top + 2) / 3) * 2 / epsilon
    if settings.relation == "label-swap":
        return deviation * sum(inverse), sampling
    return deviation * math.hypot(*inverse), sampling
