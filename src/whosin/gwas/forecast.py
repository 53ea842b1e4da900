"""What a release will give back, forecast from public facts alone, and the settings that give most.

The chance that a SNP one hopes for is among the `top` that come back (F30) is summed with exact
scores over the tables of `prospects`: the largest of many scores decides, and samples have no such
tail. Nothing is read and nothing is spent.

*The choice.* A SNP comes back if its score plus exponential noise of scale b = 2·top·Δ/ε is among
the `top` largest, for scores of sensitivity Δ (`noise.top_k`). Integer geometric noise of ratio
e^(−1/b) with ties in a fixed order is the same for a SNP whose place in that order is random:
⌊Exp(b)⌋ is geometric, and its fractional part, which breaks ties, is independent of it.

*The others.* With p(t) = E min(1, e^(−(t−s)/b)) the chance that a SNP without an association
exceeds t, the number of those that do is binomial for independent SNPs (Poisson in the limit).
SNPs one hopes for exceed t independently of them and of each other. SNPs that lie close together
are not independent: they count as clumps (`PublicStudy.effective_snps`). Under label swaps real
studies came out up to 25 points lower than this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from whosin.errors import InvalidInput, UnknownName, invalid_value, read_whole
from whosin.exact import Array, read_ranged
from whosin.gwas.association import check_relation
from whosin.gwas.people import check_instance, check_sequence
from whosin.gwas.prospects import (
    HOPE_NODES,
    Hope,
    PublicStudy,
    hope_tables,
    ladder_tables,
    null_tables,
)
from whosin.gwas.scores import (
    SELECTION_THRESHOLD,
    SNP_SCORE_KINDS,
    read_threshold,
    score_sensitivity,
    selection_scores,
)

NUMBER_KINDS = ("counts", "chi2", "nothing")
ONE_LABEL = "label"
"""The relation for independent beliefs: one label changes, and the number of cases with it."""
GOOD_CHANCE = 0.95
MAX_HOPES = 100


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
        none_score: the score of "none of them", where it competes.
    """

    relation: str
    epsilon: float
    top: int = 1
    score: str = "distance"
    threshold: Fraction | None = None
    numbers: str = "counts"
    share: Fraction | None = None
    none_score: int | None = None

    def __post_init__(self) -> None:
        if self.relation != ONE_LABEL:
            check_relation(self.relation)
        elif (self.score, self.numbers) != ("linear", "nothing"):
            message = "where one label changes, SNPs are chosen by linear scores, without numbers"
            hint = "score linear, numbers nothing"
            raise InvalidInput(message, field="relation", value=self.relation, hint=hint)
        if not 0 < self.epsilon < math.inf:
            raise invalid_value("epsilon", "above 0", self.epsilon)
        read_whole(self.top, "top", 1)
        for name, known in (("score", SNP_SCORE_KINDS), ("numbers", NUMBER_KINDS)):
            if getattr(self, name) not in known:
                raise UnknownName(name, str(getattr(self, name)), known)
        if self.threshold is not None:
            threshold = read_ranged(self.threshold, "threshold", "above 0")
            object.__setattr__(self, "threshold", threshold)
        if self.numbers == "nothing":
            object.__setattr__(self, "share", Fraction(1))
        elif self.share is not None:
            share = read_ranged(self.share, "share", "strictly between 0 and 1")
            object.__setattr__(self, "share", share)


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
    def least_chance(self) -> float:
        return min(each.chance for each in self.hopes)

    @property
    def information(self) -> float:
        return sum(each.information for each in self.hopes) / len(self.hopes)


def forecast_study(study: PublicStudy, settings: StudySettings, hopes: Sequence[Hope]) -> Forecast:
    """The chance of each hope to come back, and the noise on what is published of it."""
    check_instance(study, PublicStudy, "study", "a PublicStudy")
    check_instance(settings, StudySettings, "settings", "StudySettings")
    listed = _read_hopes(study, hopes)
    if settings.top > study.snps:
        raise invalid_value("top", f"at most {study.snps}, the number of SNPs", settings.top)
    nodes = max(512, 2 * HOPE_NODES // (1 + len(set(listed))))
    return _forecast(study, settle(study, settings), listed, nodes)


def settle(study: PublicStudy, settings: StudySettings) -> StudySettings:
    """The settings with the best threshold and the best share where none was given."""
    if settings.threshold is None:
        settings = replace(settings, threshold=best_threshold(study, settings))
    read_threshold(settings.threshold, study.people)
    if settings.share is None:
        settings = replace(settings, share=best_share(study, settings))
    return settings


def _read_hopes(study: PublicStudy, hopes: object) -> tuple[Hope, ...]:
    listed = tuple(
        check_instance(each, Hope, "hopes", "a list of Hope")
        for each in check_sequence(hopes, "hopes")
    )
    if len(listed) > min(study.snps, MAX_HOPES):
        raise invalid_value("hopes", f"at most {min(study.snps, MAX_HOPES)}", len(listed))
    return listed


def _forecast(
    study: PublicStudy, settings: StudySettings, hopes: Sequence[Hope], nodes: int = HOPE_NODES
) -> Forecast:
    null, *_ = _reference_scores(study, *_score_key(settings))
    kinds = tuple(dict.fromkeys(hopes))
    found = _hope_scores(study, kinds, *_score_key(settings), nodes)
    scored = dict(zip(kinds, found, strict=True))
    others = max(study.independent_snps - len(hopes), 0)
    candidates = [scored[hope] for hope in hopes]
    if settings.none_score is not None:
        candidates.append(ScoreDistribution(np.array([settings.none_score]), np.ones(1)))
    scale = _noise_scale(study, settings)
    chances = _chances(null, candidates, scale, settings.top, others)
    return Forecast(
        study,
        settings,
        tuple(
            HopeForecast(hope, chance, *_number_errors(study, settings, hope))
            for hope, chance in zip(hopes, chances, strict=False)
        ),
    )


EXPECTED_HOPES = tuple(Hope(0.3, odds_ratio) for odds_ratio in (1.3, 1.5, 2.0, 3.0))
"""What the card of a release tells the chance of."""


def compare_settings(
    study: PublicStudy, settings: StudySettings, hopes: Sequence[Hope] = EXPECTED_HOPES
) -> list[tuple[Forecast, Forecast]]:
    """For each hope by itself: the forecast with these settings, and with the best ones under the
    same promise."""
    epsilons = {settings.relation: settings.epsilon}
    pairs = []
    for hope in hopes:
        made = forecast_study(study, settings, [hope])
        best = advise_study(study, [hope], epsilons, settings.numbers, sizes=False).forecasts[0]
        pairs.append((made, max(made, best, key=lambda each: each.chance)))
    return pairs


# Which threshold and which share, where nobody says what is hoped for: those for the weakest SNP
# that comes back in 95 of 100 releases while all other places go to other true SNPs.

THRESHOLD_STEPS = tuple(map(Fraction, (1, 2, 4, 6, 10, 15, 20, 30)))
SHARE_STEPS = tuple(Fraction(n, 20) for n in range(2, 20))
FEW_SHARES = tuple(map(Fraction, ("0.4", "0.55", "0.7", "0.85")))
USUAL_SHARE = Fraction(7, 10)
CLEAR_GAIN = 1.02
"""A threshold or a score other than the usual one has to lower the χ² that is needed by 2%, or to
tell 2% more about hopes."""
FLAT_INFORMATION = 0.9
"""Shares that tell almost as much as the best one: of these, the one with the largest chance."""


@lru_cache(maxsize=256)
def best_threshold(study: PublicStudy, settings: StudySettings) -> Fraction:
    """The χ² to measure distances from so that the weakest SNPs come back: the one for which the
    least χ² is enough for a chance of 95%, on average over common and rare SNPs."""
    if settings.score == "chi2":
        return SELECTION_THRESHOLD
    asked = replace(settings, share=settings.share or USUAL_SHARE)
    needed = {
        threshold: weakest_chi2(study, replace(asked, threshold=threshold))
        for threshold in _possible_thresholds(study)
    }
    least = min(needed.values())
    if not math.isfinite(least):
        return min(SELECTION_THRESHOLD, Fraction(2 * study.people))
    return _usual_threshold(each for each, chi2 in needed.items() if chi2 <= CLEAR_GAIN * least)


def _usual_threshold(thresholds: Iterable[Fraction]) -> Fraction:
    """The one closest to the usual one."""
    return min(thresholds, key=lambda each: abs(math.log(each / SELECTION_THRESHOLD)))


def _possible_thresholds(study: PublicStudy) -> list[Fraction]:
    return [threshold for threshold in THRESHOLD_STEPS if threshold <= 2 * study.people]


@lru_cache(maxsize=256)
def best_share(study: PublicStudy, settings: StudySettings) -> Fraction:
    """The share of ε for the choice under which one learns most about the weakest SNP that all of
    ε brings back in 95 of 100 releases: the chance that it comes back, times the share of the
    information about its odds ratio that noise leaves."""
    if settings.numbers == "nothing":
        return Fraction(1)
    asked = replace(settings, threshold=settings.threshold or best_threshold(study, settings))
    needed = weakest_chi2(study, replace(asked, numbers="nothing"))
    if not math.isfinite(needed):
        return USUAL_SHARE
    hope = Hope(study.frequencies.quantile(0.5), chi2=needed)
    null, *_ = _reference_scores(study, *_score_key(asked))
    hoped = _hope_scores(study, (hope,), *_score_key(asked), 512)

    def run(share: Fraction) -> Forecast:
        tried = replace(asked, share=share)
        scale = _noise_scale(study, tried)
        (chance,) = _chances(null, hoped, scale, 1, study.independent_snps - 1)
        found = HopeForecast(hope, chance, *_number_errors(study, tried, hope))
        return Forecast(study, tried, (found,))

    return _surest(map(run, SHARE_STEPS)).settings.share or USUAL_SHARE


def _surest(forecasts: Iterable[Forecast]) -> Forecast:
    """The largest chance among those that tell about as much as the best."""
    tried = list(forecasts)
    most = max(each.information for each in tried)
    good = [each for each in tried if each.information >= FLAT_INFORMATION * most]
    return max(good, key=lambda each: each.chance)


def weakest_chi2(study: PublicStudy, settings: StudySettings) -> float:
    """The least χ² that comes back with a chance of 95%, the mean over frequencies; infinite where
    none does. The settings have a threshold and a share."""
    null, *ladders = _reference_scores(study, *_score_key(settings))
    scale = _noise_scale(study, settings)
    floor = _hopeless_score(null, 1, study.independent_snps, scale)
    grid = _NoiseGrid(scale, floor, [null, *ladders])
    wins = grid.chance_by_score(grid.few_exceed(null, study.independent_snps - 1, 1, 1), [])
    needed = []
    for (_, chi2), ladder in zip(ladder_tables(study), ladders, strict=True):
        chances = np.maximum.accumulate(wins[grid.bins(ladder.values)])
        reached = float(np.interp(GOOD_CHANCE, chances, chi2))
        needed.append(reached if chances[-1] >= GOOD_CHANCE else math.inf)
    return sum(needed) / len(needed)


# Advice for stated hopes.

MAX_ADVISED_PEOPLE = 10_000_000
SIZE_PRECISION = 1.02


@dataclass(frozen=True)
class Advice:
    """The best settings for stated hopes.

    Attributes:
        forecasts: for each relation that was asked about, the one that tells most first; those
            without the numbers that were asked for last.
        smallest: for each of them the smallest study of these proportions (to within 2%) in which
            every hope comes back in 95 of 100 releases, by the share of the advice; None where
            ten million people are not enough.
    """

    forecasts: tuple[Forecast, ...]
    smallest: tuple[Forecast | None, ...]


def advise_study(
    study: PublicStudy,
    hopes: Sequence[Hope],
    epsilons: Mapping[str, float],
    numbers: str = "counts",
    *,
    top: int | None = None,
    sizes: bool = True,
) -> Advice:
    """Pick top, score, threshold and share, and compare relations: what gives back most of the
    information about the hopes.

    Args:
        epsilons: the relations that come into question, with what may be spent under each.
        numbers: what else is to be published; nothing where one label changes.
        top: how many SNPs are chosen, where that is decided already.
        sizes: also look for the smallest study.
    """
    check_instance(study, PublicStudy, "study", "a PublicStudy")
    listed = _read_hopes(study, hopes)
    if not epsilons:
        raise InvalidInput("name at least one relation", field="relation")
    found = []
    for relation, epsilon in epsilons.items():
        about = ("linear", "nothing") if relation == ONE_LABEL else ("distance", numbers)
        many = len(listed) if top is None else top
        start = StudySettings(relation, float(epsilon), many, about[0], SELECTION_THRESHOLD,
                              about[1], USUAL_SHARE)  # fmt: skip
        best = _improve(study, start, listed, top)
        found.append((best, _smallest_study(best, listed) if sizes else None))
    found.sort(key=lambda pair: (pair[0].settings.numbers != numbers, -pair[0].information))
    return Advice(*map(tuple, zip(*found, strict=True)))


def _improve(
    study: PublicStudy, start: StudySettings, hopes: Sequence[Hope], top: int | None
) -> Forecast:
    """The best settings near these: one after the other, thresholds, scores, tops, shares."""
    nodes = _search_nodes(hopes)

    def vary(best: StudySettings, name: str, values: Iterable[object]) -> list[Forecast]:
        tried = [replace(best, **{name: value}) for value in values]  # type: ignore[arg-type]
        return [_forecast(study, settings, hopes, nodes) for settings in tried]

    def choose(best: StudySettings, name: str, values: Iterable[object]) -> StudySettings:
        return max(vary(best, name, values), key=lambda each: each.information).settings

    def choose_threshold(best: StudySettings) -> StudySettings:
        tried = vary(best, "threshold", _possible_thresholds(study))
        most = max(each.information for each in tried)
        good = (each.settings for each in tried if CLEAR_GAIN * each.information >= most)
        return replace(best, threshold=_usual_threshold(_score_key(each)[2] for each in good))

    best = choose_threshold(start)
    if start.relation != ONE_LABEL:
        usual, *others = vary(best, "score", ["distance", *SNP_SCORE_KINDS])
        most = max(others, key=lambda each: each.information)
        if most.information > CLEAR_GAIN * usual.information:
            best = most.settings
    count = len(hopes)
    tops = sorted({max(1, count // 2), count, count + 1}) if top is None else [top]
    tops = [each for each in tops if each <= study.snps]
    if start.numbers == "nothing":
        return forecast_study(study, choose(best, "top", tops), hopes)
    tried = [each for many in tops for each in vary(replace(best, top=many), "share", FEW_SHARES)]
    best = max(tried, key=lambda each: each.information).settings
    best = choose_threshold(_surest(vary(best, "share", SHARE_STEPS)).settings)
    return forecast_study(study, best, hopes)


def _search_nodes(hopes: Sequence[Hope]) -> int:
    """Fewer places than a forecast looks at: enough to compare settings."""
    return max(256, HOPE_NODES // (2 + 2 * len(set(hopes))))


def _smallest_study(best: Forecast, hopes: Sequence[Hope]) -> Forecast | None:
    """The smallest study in which every hope has a chance of 95%, by bisection; the settings are
    improved once, where the size has come close."""

    def resize(people: int) -> tuple[PublicStudy, list[Hope]]:
        """A study of so many people with the same frequencies: χ² grows with its size."""
        factor = people / best.study.people
        same = [each if each.chi2 is None else replace(each, chi2=each.chi2 * factor)
                for each in hopes]  # fmt: skip
        return best.study.resize(people), same

    def run(people: int, settings: StudySettings) -> Forecast:
        study, same = resize(people)
        return _forecast(study, settings, same, _search_nodes(hopes))

    def is_enough(people: int, settings: StudySettings) -> bool:
        return run(people, settings).least_chance >= GOOD_CHANCE

    settings = replace(best.settings, top=max(best.settings.top, len(hopes)))
    people = _least_size(lambda size: is_enough(size, settings), best.study.people, 1.3)
    if people is None:
        return None
    tried = [
        run(people, replace(settings, threshold=threshold))
        for threshold in _possible_thresholds(best.study.resize(people))
    ]
    settings = max(tried, key=lambda each: each.least_chance).settings
    people = _least_size(lambda size: is_enough(size, settings), people, SIZE_PRECISION)
    if people is None:
        return None
    study, same = resize(people)
    return forecast_study(study, settings, same)


def _least_size(is_enough: Callable[[int], bool], start: int, precision: float) -> int | None:
    """The least number of people that is enough, up to a factor, where more are always enough."""
    low = high = start
    while not is_enough(high):
        low, high = high, 2 * high
        if high > MAX_ADVISED_PEOPLE:
            return None
    if low == high:
        while low > 8 and is_enough(low):
            low, high = low // 2, low
        high = min(high, 2 * low) if not is_enough(low) else low
    while high > low * precision and high - low > 1:
        middle = math.isqrt(low * high)
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return high


# Scores of tables, and sums over scores with noise.


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """Scores with their probabilities."""

    values: Array
    weights: Array


def _score_key(settings: StudySettings) -> tuple[str, str, Fraction]:
    return settings.score, settings.relation, settings.threshold or SELECTION_THRESHOLD


@lru_cache(maxsize=128)
def _reference_scores(
    study: PublicStudy, score: str, relation: str, threshold: Fraction
) -> tuple[ScoreDistribution, ...]:
    """Scores of SNPs without an association, then of the ladders, computed at once."""
    table, weights = null_tables(study)
    parts = [table, *(table for table, _ in ladder_tables(study))]
    sizes = study.cases, study.controls
    scores = selection_scores(score, np.concatenate(parts), relation, threshold, sizes)
    null, *rest = np.split(scores, np.cumsum([len(part) for part in parts])[:-1])
    ladders = (ScoreDistribution(each, np.full(len(each), 1 / len(each))) for each in rest)
    return ScoreDistribution(null, weights), *ladders


@lru_cache(maxsize=128)
def _hope_scores(
    study: PublicStudy,
    hopes: tuple[Hope, ...],
    score: str,
    relation: str,
    threshold: Fraction,
    nodes: int,
) -> list[ScoreDistribution]:
    tables, weights = zip(*(hope_tables(study, hope, nodes) for hope in hopes), strict=True)
    sizes = study.cases, study.controls
    scores = selection_scores(score, np.concatenate(tables), relation, threshold, sizes)
    parts = zip(np.split(scores, len(hopes)), weights, strict=True)
    return [ScoreDistribution(*part) for part in parts]


def _noise_scale(study: PublicStudy, settings: StudySettings) -> float:
    """The scale of the noise on scores: 2·top·Δ over the ε of the choice."""
    change = score_sensitivity(settings.score, study.cases, study.controls, settings.relation)
    return 2 * settings.top * change / (settings.epsilon * float(settings.share or 1))


def _chances(
    null: ScoreDistribution,
    hopes: Sequence[ScoreDistribution],
    scale: float,
    top: int,
    others: int,
) -> list[float]:
    """The chance of each hope to be among the `top` largest with noise."""
    grid = _NoiseGrid(scale, _hopeless_score(null, top, others, scale), [null, *hopes])
    exceeds = {id(hope): grid.exceeds(hope) for hope in hopes}
    few = grid.few_exceed(null, others, top, len(hopes))
    found: dict[int, float] = {}
    for number, hope in enumerate(hopes):
        if id(hope) not in found:
            rivals = [exceeds[id(each)] for place, each in enumerate(hopes) if place != number]
            wins = grid.chance_by_score(few, rivals)
            found[id(hope)] = float(np.clip(wins[grid.bins(hope.values)] @ hope.weights, 0, 1))
    return [found[id(hope)] for hope in hopes]


def _hopeless_score(null: ScoreDistribution, top: int, others: int, scale: float) -> float:
    """A score below which nothing wins, so that lower ones may count as this one: noise lifts none
    of them, except with probability e^(−20), to where more scores lie than there are places."""
    order = np.argsort(null.values)
    above = others * null.weights[order][::-1].cumsum()[::-1]
    many = np.flatnonzero(above >= top + 10 * math.sqrt(top) + 60)
    crowded = null.values[order[many[-1] if len(many) else 0]]
    return float(crowded) - scale * (math.log(max(others, 1)) + 20)


NOISE_NODES = 3
TAIL_SCALES = 25
BINS_PER_SCALE = 32


class _NoiseGrid:
    """Sums over scores with exponential noise, on bins of a whole score or of 1/32 of the scale.

    With ρ = e^(−1/b), b in bins, the chance that a score with noise exceeds k + φ, 0 ≤ φ < 1, is
    v·L(k) + T(k): v = e^(−φ/b), T(k) the probability of scores above k, L(k) = Σ over scores s ≤ k
    of p(s)ρ^(k−s). A score of k wins with chance W(k) = ∫ F dv over (ρ, 1) + ρW(k+1), F the chance
    that few enough others exceed; the integral by Gauss and Legendre's rule.
    """

    def __init__(self, scale: float, floor: float, scored: Sequence[ScoreDistribution]) -> None:
        self.unit = max(1.0, scale / BINS_PER_SCALE)
        width = scale / self.unit
        lowest = min(int(each.values.min()) for each in scored)
        highest = max(int(each.values.max()) for each in scored)
        self.floor = max(math.floor(floor), lowest)
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
        near = self._decay(share)
        far = share[::-1].cumsum()[::-1] - share
        return np.clip(near[:, None] * self.places + far[:, None], 0.0, 1.0)

    def few_exceed(self, null: ScoreDistribution, others: int, top: int, hopes: int) -> list[Array]:
        """bins × nodes: the chance that at most top − 1 − j of the SNPs without an association
        exceed a place, for j = 0, 1, … others ahead of them."""
        from scipy.special import bdtr

        exceeds = self.exceeds(null)
        return [
            np.ones_like(exceeds) if places >= others else bdtr(places, others, exceeds)
            for places in range(top - 1, max(top - 1 - hopes, -1), -1)
        ]

    def chance_by_score(self, few: Sequence[Array], rivals: Sequence[Array]) -> Array:
        """The chance to win of each bin, against SNPs without an association and rivals."""
        ahead = np.zeros((min(len(few) - 1, len(rivals)) + 1, *few[0].shape))
        ahead[0] = 1
        for rival in rivals:
            ahead[1:] = ahead[1:] * (1 - rival) + ahead[:-1] * rival
            ahead[0] *= 1 - rival
        both = sum(part * chance for part, chance in zip(ahead, few, strict=False))
        return self._decay((both @ self.weights)[::-1])[::-1]

    def _decay(self, values: Array) -> Array:
        """Each value plus ρ times the sum before it."""
        ratio = self.ratio
        return np.array(list(accumulate(values.tolist(), lambda total, each: ratio * total + each)))


def _number_errors(
    study: PublicStudy, settings: StudySettings, hope: Hope
) -> tuple[float | None, float]:
    """(standard deviation of the noise, sampling error) of what is published about a hope.

    Noise on the cube, a density ∝ e^(−ε‖v‖∞/Δ) over `top` numbers, has the variance
    (top+1)(top+2)/3 · (Δ/ε)² each. Allele counts have Δ = 2; where genotypes are secret, x and y
    have independent noise, and where labels are, x + y is exact.
    """
    shares = hope.frequencies(study)
    slopes = [
        1 / max(2 * size * share, 0.5) + 1 / max(2 * size * (1 - share), 0.5)
        for share, size in zip(shares, (study.cases, study.controls), strict=True)
    ]
    sampling, swaps = math.sqrt(sum(slopes)), settings.relation != "genotype"
    if settings.numbers == "nothing":
        return None, sampling
    epsilon = settings.epsilon * (1 - float(settings.share or 1))
    deviation = math.sqrt((settings.top + 1) * (settings.top + 2) / 3) / epsilon
    if settings.numbers == "counts":
        return 2 * deviation * (sum(slopes) if swaps else math.hypot(*slopes)), sampling
    change = (4 if swaps else 2) * study.people**2 / (study.cases * study.controls)
    mean = (shares[0] * study.cases + shares[1] * study.controls) / study.people
    spread = mean * (1 - mean) * study.people / (2 * study.cases * study.controls)
    chi2 = (shares[0] - shares[1]) ** 2 / spread
    return deviation * change, 2 * math.sqrt(max(chi2, 1))
