"""What is public of a study before it is read, what one hopes to find in it, and the tables of
counts that follow from both.

SNPs without an association have frequencies from a public reference. Given the copies m of A1 among
everybody, the copies among cases are hypergeometric. A SNP one hopes for has binomial copies among
cases and among controls, by its odds ratio; or exactly the χ² that one states. Genotypes are as
random mating has them. Nothing here reads a study, so nothing here is private.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from whosin.documents import MAX_STUDY_BYTES, read_words
from whosin.errors import InvalidInput, invalid_value, read_whole, spell
from whosin.exact import Array, number_range, rational, read_ranged
from whosin.gwas.association import chi2_of_copies
from whosin.gwas.people import check_instance, check_sizes

FREQUENCY_NODES = 32
MAX_COPY_NODES = 160
"""Numbers of copies among cases that are looked at for one frequency: all of them in studies of up
to some thousand people, evenly spaced ones in larger studies."""
HOPE_NODES = 4_096
"""Places at which the sampling of a SNP one hopes for is looked at, spread evenly (Kronecker's
sequence): evenly spaced counts would meet the steps of a score in step."""
NULL_DEVIATIONS, HOPE_DEVIATIONS = 8.5, 5.0
"""How far counts are followed, in standard deviations: one of 10⁹ SNPs is within the first."""
FREQUENCY_COLUMNS = ("MAF", "ALT_FREQS", "A1_FREQ", "FREQUENCY")


@dataclass(frozen=True)
class AlleleFrequencies:
    """A distribution of public allele frequencies, as nodes with weights."""

    nodes: tuple[float, ...]
    weights: tuple[float, ...]

    @classmethod
    def uniform(cls, low: object = "0.05", high: object = "0.5") -> AlleleFrequencies:
        """Frequencies spread evenly from low to high."""
        within = "strictly between 0 and 1"
        ends = [float(read_ranged(end, "frequencies", within)) for end in (low, high)]
        if ends[0] > ends[1]:
            raise invalid_value("frequencies", "from a lower to a higher one", f"{low}..{high}")
        places, weights = np.polynomial.legendre.leggauss(FREQUENCY_NODES)
        nodes = ends[0] + (ends[1] - ends[0]) * (places + 1) / 2
        return cls(tuple(nodes.tolist()), tuple((weights / 2).tolist()))

    @classmethod
    def listed(cls, values: Iterable[object]) -> AlleleFrequencies:
        """The frequencies of a list, in bins by the rarer allele."""
        try:
            given = np.array([float(value) for value in values])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise InvalidInput("some frequencies are not numbers", field="frequencies") from None
        if not given.size or not ((given >= 0) & (given <= 1)).all():
            message = "frequencies are numbers between 0 and 1, and at least one is needed"
            raise InvalidInput(message, field="frequencies")
        rarer = np.minimum(given, 1 - given)
        bins = np.minimum((rarer * 4 * FREQUENCY_NODES).astype(np.int64), 2 * FREQUENCY_NODES - 1)
        sizes = np.bincount(bins)
        kept = np.flatnonzero(sizes)
        means = np.bincount(bins, rarer)[kept] / sizes[kept]
        return cls(tuple(means.tolist()), tuple((sizes[kept] / given.size).tolist()))

    @classmethod
    def read(cls, text: str) -> AlleleFrequencies:
        """Frequencies as people write them: 0.05..0.5, or 0.1,0.2,0.3, or a file of a public
        reference (.frq or .afreq of PLINK, or one number a line)."""
        if ".." in text and not Path(text).exists():
            return cls.uniform(*number_range(text, "frequencies"))
        if "," in text or text.replace(".", "", 1).isdigit():
            return cls.listed(part for part in text.split(",") if part.strip())
        path = Path(text)
        rows = read_words(path, MAX_STUDY_BYTES)
        if len(rows[0]) == 1 and not rows[0][0][0].isalpha():
            return cls.listed(row[0] for row in rows)
        names = [name.upper() for name in rows[0]]
        place = next((names.index(each) for each in FREQUENCY_COLUMNS if each in names), None)
        if place is None or any(len(row) <= place for row in rows):
            message = f"{path.name} has no column of frequencies in every line"
            hint = "take PLINK's .frq or .afreq of a public reference, or one number a line"
            raise InvalidInput(message, field="frequencies", value=text, hint=hint)
        return cls.listed(row[place] for row in rows[1:] if row[place].upper() not in ("NA", "NAN"))

    def quantile(self, share: float) -> float:
        order = np.argsort(self.nodes)
        place = np.searchsorted(np.cumsum(np.array(self.weights)[order]), share - 1e-12)
        return float(self.nodes[order[min(int(place), len(order) - 1)]])

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Frequencies of simulated SNPs: quantiles between the nodes."""
        order = np.argsort(self.nodes)
        nodes, weights = np.array(self.nodes)[order], np.array(self.weights)[order]
        return np.asarray(np.interp(rng.random(count), weights.cumsum() - weights / 2, nodes))


@dataclass(frozen=True)
class PublicStudy:
    """What is public of a study before it is read.

    Args:
        cases, controls, snps: how many there are.
        frequencies: of alleles, from a public reference and never from the study itself.
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
        accepted = "AlleleFrequencies, such as AlleleFrequencies.uniform()"
        check_instance(self.frequencies, AlleleFrequencies, "frequencies", accepted)
        if self.effective_snps is not None:
            read_whole(self.effective_snps, "effective SNPs", 1, self.snps)

    @property
    def people(self) -> int:
        return self.cases + self.controls

    @property
    def independent_snps(self) -> int:
        return self.snps if self.effective_snps is None else self.effective_snps

    def resize(self, people: int) -> PublicStudy:
        """The same study with so many people, cases and controls in proportion."""
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
        within = "strictly between 0 and 1"
        frequency = float(read_ranged(self.frequency, "frequency", within))
        object.__setattr__(self, "frequency", frequency)
        if (self.odds_ratio is None) == (self.chi2 is None):
            message = "state either the odds ratio of the SNP one hopes for, or its χ²"
            raise InvalidInput(message, field="odds ratio", value=self.odds_ratio)
        for name in ("odds_ratio", "chi2"):
            if (value := getattr(self, name)) is not None:
                number = float(rational(value, name.replace("_", " ")))
                if not 0 < number < 1e6:
                    field_name = name.replace("_", " ")
                    raise invalid_value(field_name, "above 0 and below a million", value)
                object.__setattr__(self, name, number)

    def frequencies(self, study: PublicStudy) -> tuple[float, float]:
        """The frequencies of A1 to be expected among cases and among controls."""
        f = self.frequency
        if self.odds_ratio is not None:
            return self.odds_ratio * f / (1 - f + self.odds_ratio * f), f
        x, m = self.case_copies(study), round(2 * study.people * f)
        return x / (2 * study.cases), (m - x) / (2 * study.controls)

    def case_copies(self, study: PublicStudy) -> float:
        """The copies x among cases for which 2N(xS − yR)²/(RS m(2N−m)) = χ², x + y = m = 2Nf."""
        n, m = study.people, round(2 * study.people * self.frequency)
        spread = study.cases * study.controls * m * (2 * n - m) / (2 * n)
        x = (m * study.cases + math.sqrt((self.chi2 or 0.0) * spread)) / n
        if not m or x > min(m, 2 * study.cases):
            who = f"among {spell(study.cases)} cases and {spell(study.controls)} controls"
            message = f"no SNP of frequency {spell(self.frequency)} has such a χ² {who}"
            raise InvalidInput(message, field="chi2", value=self.chi2)
        return x


WeightedTables = tuple[Array, Array]
"""Tables of counts (SNPs × 6), and their probabilities."""


@lru_cache(maxsize=16)
def null_tables(study: PublicStudy) -> WeightedTables:
    """Tables of a SNP without an association."""
    from scipy.special import gammaln

    cases, alleles = 2 * study.cases, 2 * study.people
    copies, weights = [], []
    for frequency, weight in zip(study.frequencies.nodes, study.frequencies.weights, strict=True):
        m = round(alleles * frequency)
        variance = m / alleles * (1 - m / alleles) * cases * (alleles - cases) / (alleles - 1)
        middle, reach = m * cases / alleles, NULL_DEVIATIONS * math.sqrt(variance) + 1
        low = max(0, m - (alleles - cases), math.floor(middle - reach))
        high = min(m, cases, math.ceil(middle + reach))
        x = np.arange(low, high + 1, max(1, -(-(high - low + 1) // MAX_COPY_NODES)))
        if study.cases == study.controls:  # both groups are alike: x and m − x are one
            x = x[2 * x >= m]
        log = -sum(gammaln(each + 1.0) for each in (x, m - x, cases - x, alleles - cases - m + x))
        chance = np.exp(log - log.max())
        if study.cases == study.controls:
            chance[2 * x == m] /= 2
        copies.append(np.stack([x, m - x]))
        weights.append(weight * chance / chance.sum())
    x, y = np.concatenate(copies, axis=1)
    return _likely_tables(x, y, study), np.concatenate(weights)


@lru_cache(maxsize=256)
def hope_tables(study: PublicStudy, hope: Hope, nodes: int = HOPE_NODES) -> WeightedTables:
    """Tables of a SNP one hopes for, all as probable."""
    places = _spread_evenly(nodes, 0), _spread_evenly(nodes, 1)
    if hope.odds_ratio is None:
        x = np.floor(hope.case_copies(study) + places[0]).astype(np.int64)
        y = round(2 * study.people * hope.frequency) - x
        x, y = x + np.minimum(y, 0), np.maximum(y, 0)
    else:
        shares = hope.frequencies(study)
        x = _binomial_quantiles(2 * study.cases, shares[0], places[0])
        y = _binomial_quantiles(2 * study.controls, shares[1], places[1])
    return _likely_tables(x, y, study), np.full(nodes, 1 / nodes)


LADDER_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
LADDER_NODES = 100


@lru_cache(maxsize=16)
def ladder_tables(study: PublicStudy) -> list[tuple[Array, Array]]:
    """Tables from no association to the strongest with their χ², for rarer and commoner alleles."""
    ladders = []
    for share in LADDER_QUANTILES:
        copies = max(round(2 * study.people * study.frequencies.quantile(share)), 1)
        low, high = math.ceil(copies * study.cases / study.people), min(copies, 2 * study.cases)
        steps = np.linspace(0, 1, LADDER_NODES) ** 2
        x = np.unique((low + np.ceil((high - low) * steps)).astype(np.int64))
        chi2 = chi2_of_copies(x, copies - x, study.cases, study.controls)
        ladders.append((_likely_tables(x, copies - x, study, spread=0.0), chi2))
    return ladders


def _spread_evenly(count: int, dimension: int) -> Array:
    """Points of (0, 1) that fill it evenly, one sequence a dimension: multiples of powers of the
    root of x⁵ = x + 1, modulo 1."""
    root = 1.1673039782614187
    return np.asarray((0.5 + np.arange(1, count + 1) * root ** -(dimension + 1)) % 1.0)


def _likely_tables(x: Array, y: Array, study: PublicStudy, spread: float = 1.0) -> Array:
    groups = ((x, study.cases, 2), (y, study.controls, 3))
    return np.concatenate([_likely_genotypes(*group, spread) for group in groups], axis=1)


def _likely_genotypes(copies: Array, people: int, dimension: int, spread: float) -> Array:
    """People with 0, 1 and 2 copies, of so many copies in all: a mean of np² have 2, with a
    standard deviation of √n·p(1−p), at evenly spread quantiles."""
    from scipy.special import ndtri

    share = copies / (2 * people)
    shift = ndtri(_spread_evenly(len(copies), dimension)) * math.sqrt(people) * share * (1 - share)
    two = np.rint(people * share * share + spread * shift).astype(np.int64)
    two = np.clip(two, np.maximum(0, copies - people), copies // 2)
    one = copies - 2 * two
    return np.stack([people - one - two, one, two], axis=1)


def _binomial_quantiles(trials: int, share: float, places: Array) -> Array:
    from scipy.special import gammaln

    reach = HOPE_DEVIATIONS * math.sqrt(trials * share * (1 - share)) + 1
    low = max(0, math.floor(trials * share - reach))
    x = np.arange(low, min(trials, math.ceil(trials * share + reach)) + 1)
    log = x * math.log(share) + (trials - x) * math.log1p(-share)
    log = log - gammaln(x + 1.0) - gammaln(trials - x + 1.0)
    chance = np.exp(log - log.max())
    return np.asarray(low + np.searchsorted(chance.cumsum() / chance.sum(), places))
