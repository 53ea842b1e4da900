"""Quantitative traits: values clamped to a public range, linear scores, effects with noise.

A trait file has FID, IID and a number on each line. Values are clamped to a public range and put on
a grid of K units over it. People without a value (NA, -9, or not in the file) are left out, as
PLINK does, and *who has a value is public*. Effects are in units of the trait a copy of A1.

*Traits secret* (relation "trait": one participant has another value, anywhere in the range; genomes
and covariates are known): U = Σ g̃ y, with g̃ the genotype less its fitted value on strata and
covariates (`gwas.linear`), 0 where missing. g̃ is public, so Δ = K·max|g̃| is measured for each SNP,
and β = U/Σg̃² is PLINK's `--linear`, of clamped values, with noise on U alone.

*Genotypes secret* (traits are known): U = Σ g e, with e the residual of y on strata and covariates.
One genotype moves it by at most Δ = 2 max|e|. Σg̃² is secret too: it is estimated from the number of
copies of A1, published with noise beside U, as 2f(1 − f)N: in Hardy–Weinberg proportions, and for a
SNP that covariates do not predict.

*Numbers* are ⌊C·U/Δ⌋: whole numbers that a neighbour moves by at most C, whatever the SNP, since
the floors of two numbers that differ by at most C do. Copies are put on the same scale.

Standard errors have the sampling error, from a deviation of the trait that is public: the one that
is given; else half the range, which values inside it never exceed; or, where traits are known, that
of e.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, invalid_value, read_path, spell
from whosin.exact import Array, number_range, rational
from whosin.gwas.association import NORMAL_95, two_sided
from whosin.gwas.linear import (
    DOSE_UNITS,
    RESIDUAL_UNITS,
    LinearTerms,
    StratifiedStudy,
    locate_snps,
    read_design,
    weigh_genotypes,
)
from whosin.gwas.people import Progress, StudyFilter, read_trait_people
from whosin.gwas.study import (
    COUNT_TABLE_SUFFIXES,
    VARIANT_SUFFIXES,
    Study,
    count_study,
    open_snps,
    people_file,
)
from whosin.noise import CubeNoise
from whosin.noise.additive import MAX_CUBE_DIMENSIONS

TRAIT_UNITS = 1 << 12
"""K: the grid of values, in units over the range."""
EFFECT_UNITS = 1 << 12
"""C: the grid of published numbers, in units a neighbour."""
MIN_TRAIT_PEOPLE = 4
CHOICE_SHARE = Fraction(7, 10)
"""How much of ε the choice gets by default."""
TRAIT_RELATIONS = ("trait", "genotype")


@dataclass(frozen=True)
class TraitRange:
    """What is public about a trait.

    Args:
        low, high: the range that values are clamped to.
        deviation: a public standard deviation, if one is known.
    """

    low: Fraction
    high: Fraction
    deviation: Fraction | None = None

    def __post_init__(self) -> None:
        if self.low >= self.high:
            ends = f"{spell(self.low)}..{spell(self.high)}"
            message = f"--trait-range {ends} does not run from a lower to a higher value"
            hint = "write the least value first, such as 140..210"
            raise InvalidInput(message, field="--trait-range", value=ends, hint=hint)
        if self.deviation is not None and not 0 < self.deviation <= self.width / 2:
            most = f"above 0 and at most {spell(self.width / 2)}, half of the range"
            raise invalid_value("--trait-sd", most, spell(self.deviation))

    @classmethod
    def parse(cls, text: str, deviation: object = None) -> TraitRange:
        """A range as people write it, 140..210."""
        low, high = number_range(text, "--trait-range")
        known = None if deviation is None else rational(deviation, "--trait-sd")
        return cls(low, high, known)

    @property
    def width(self) -> Fraction:
        return self.high - self.low

    def units(self, values: Array) -> Array:
        """Values clamped and on the grid, from 0 to K."""
        low, high = float(self.low), float(self.high)
        share = (np.clip(values, low, high) - low) / (high - low)
        return np.clip(np.rint(share * TRAIT_UNITS), 0, TRAIT_UNITS).astype(np.int64)


@dataclass(frozen=True, eq=False)
class TraitTerms(LinearTerms):
    """Linear terms with what effects need besides, in units of the grids.

    Attributes:
        squares: Σ g̃², where genomes are known; NaN elsewhere.
        copies: copies of A1, in units of `DOSE_UNITS`; a missing genotype has its fitted value, or
            one copy where genotypes are secret.
    """

    squares: Array
    copies: Array


@dataclass(frozen=True, eq=False)
class TraitStudy(StratifiedStudy):
    """A study of a quantitative trait. Everybody who has a value is among `cases`, and there are no
    controls.

    Attributes:
        trait: what is public about the trait.
        values: units of each person's value, in the order of genotypes. Private.
        digest: names the values as they were before they were clamped.
    """

    trait: TraitRange = TraitRange(Fraction(0), Fraction(1))
    values: Array | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        assert not self.controls and self.values is not None and len(self.values) == self.cases
        if self.cases < MIN_TRAIT_PEOPLE:
            least = f"at least {MIN_TRAIT_PEOPLE} who are in the study"
            raise invalid_value("people with a value of the trait", least, self.cases)

    def take(self, indices: Array) -> TraitStudy:
        """The study of some of its SNPs."""
        assert self.places is not None
        part = super().take(indices)
        assert isinstance(part, TraitStudy)
        return replace(part, places=self.places[indices])

    def terms(self, relation: str) -> TraitTerms:
        """What scores and effects are made of."""
        make = self._genotype_block if relation == "genotype" else self._trait_block
        return TraitTerms.join(make(np.asarray(block, np.float32)) for block in self.blocks())

    def residuals(self) -> Array:
        """e: values less their fitted values on strata and covariates, in whole units."""
        assert self.design is not None and self.values is not None
        basis = self.design.basis
        left = self.values - basis @ (basis.T @ self.values)
        return np.asarray(np.rint(left), dtype=np.int64)

    def deviation(self, relation: str) -> float:
        """The trait's standard deviation as far as it is public."""
        if self.trait.deviation is not None:
            return float(self.trait.deviation)
        if relation != "genotype":
            return float(self.trait.width / 2)
        assert self.design is not None
        left = self.residuals().astype(float)
        free = max(self.cases - self.design.basis.shape[1], 1)
        return math.sqrt(float(left @ left) / free) * float(self.trait.width) / TRAIT_UNITS

    def _trait_block(self, copies: Array) -> TraitTerms:
        assert self.design is not None and self.values is not None
        units = self.design.residuals(copies)
        # Whole numbers below 2^53 in size: the sums are exact.
        wide = units.astype(np.float64)
        statistic = (wide @ (self.values - TRAIT_UNITS // 2)).astype(np.int64)
        change = np.abs(units).max(axis=1).astype(np.int64) * TRAIT_UNITS
        squares = np.einsum("ij,ij->i", wide, wide)
        known = self.trait.deviation
        share = 0.0 if known is None else float(known / self.trait.width) * TRAIT_UNITS
        here = ~np.isnan(copies)
        mean = np.nansum(copies, axis=1) / np.maximum(here.sum(axis=1), 1)
        doses = np.rint(mean * self.cases * DOSE_UNITS).astype(np.int64)
        return TraitTerms(statistic, change, share * np.sqrt(squares), squares, doses)

    def _genotype_block(self, copies: Array) -> TraitTerms:
        statistic, change, total = weigh_genotypes(copies, self.residuals())
        unknown = np.full(len(copies), np.nan)
        return TraitTerms(statistic, change, np.zeros(len(copies)), unknown, total)

    def effect_numbers(self, chosen: Array, relation: str) -> tuple[Array, dict[str, list[float]]]:
        """(SNPs × numbers in units that a neighbour moves by C at most, what is public about each):
        U, and copies of A1 where genotypes are secret."""
        if not len(chosen):
            return np.zeros((0, 1), dtype=np.int64), {"change": [], "squares": [], "copies": []}
        found = self.take(chosen).terms(relation)
        pairs = zip(found.statistic.tolist(), found.change.tolist(), strict=True)
        columns = [[EFFECT_UNITS * u // d if d else 0 for u, d in pairs]]
        per_copy = DOSE_UNITS if relation == "genotype" else RESIDUAL_UNITS
        unit = float(self.trait.width) / (per_copy * TRAIT_UNITS)
        public = {"change": (found.change * unit).tolist()}
        if relation == "genotype":
            columns.append((found.copies * EFFECT_UNITS // (2 * DOSE_UNITS)).tolist())
        else:
            public["squares"] = (found.squares / RESIDUAL_UNITS**2).tolist()
            public["copies"] = (found.copies / DOSE_UNITS).tolist()
        return np.array(columns, dtype=np.int64).T, public


def effect_noise(size: int, relation: str, epsilon: Fraction) -> CubeNoise:
    """The noise on the numbers of `size` SNPs: one person moves every one of them by C at most."""
    dimensions = size * (2 if relation == "genotype" else 1)
    if dimensions > MAX_CUBE_DIMENSIONS:
        most = f"at most {spell(MAX_CUBE_DIMENSIONS * size // dimensions)} SNPs with numbers"
        raise invalid_value("top", most, size)
    made = CubeNoise.at_epsilon(EFFECT_UNITS, epsilon, dimensions)
    return made.check_drawable("plan for a larger ε", "epsilon of the plan")


@dataclass(frozen=True, eq=False)
class Effects:
    """Estimates for each SNP, NaN where they have no meaning.

    Attributes:
        frequency: of A1; exact where genomes are known.
        beta, se: units of the trait a copy of A1, and the standard error, noise included.
        low, high: a 95% interval.
        p: of no effect, sampling and noise together.
        noise: 95% of the noise on beta is within ± that much.
    """

    frequency: Array
    beta: Array
    se: Array
    low: Array
    high: Array
    p: Array
    noise: Array


def estimate_effects(
    numbers: Array,
    public: dict[str, list[float]],
    people: int,
    deviation: float,
    noise: CubeNoise,
    inflation: Array | float = 1.0,
) -> Effects:
    """Effects that follow from published numbers (in units of what a neighbour moves) alone.

    Args:
        public: as `TraitStudy.effect_numbers` says it.
        deviation: of the trait.
        noise: on each number.
        inflation: how many times larger the variance of copies is (`Study.variance_factors`).
    """
    change, spread = np.array(public["change"], dtype=float), math.sqrt(noise.variance)
    known = "squares" in public
    copies = np.array(public["copies"], dtype=float) if known else 2 * numbers[:, 1]
    frequency = np.clip(copies / (2 * people), 0, 1)
    rare, around = np.minimum(frequency, 1 - frequency), noise.continuous_quantile(0.95)
    if known:
        squares, loose = np.array(public["squares"], dtype=float), np.zeros(len(change))
        void = (squares <= 0) | (change <= 0)
    else:
        squares = 2 * frequency * (1 - frequency) * people * inflation
        void = rare * people < around  # less than the noise on copies, of which a person has two
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (1 - 2 * frequency) / (frequency * (1 - frequency))
        # Relative: a sample is not exactly in Hardy–Weinberg proportions, and the noise on copies.
        loose = np.sqrt(1 / people + (np.where(void, 0, slope) * spread / people) ** 2)
    squares, change = np.where(void, 1.0, squares), np.where(void, 1.0, change)
    sampling, scale = deviation * np.sqrt(squares) / change, change / squares
    beta = numbers[:, 0] * scale
    p = two_sided(np.abs(numbers[:, 0]), sampling, noise, [1.0])
    within = _half_widths(sampling, noise) * scale
    half = np.hypot(within, NORMAL_95 * beta * loose)
    se = np.sqrt((sampling * scale) ** 2 + (spread * scale) ** 2 + (beta * loose) ** 2)
    columns = [beta, se, beta - half, beta + half, p, around * scale]
    return Effects(frequency, *(np.where(void, np.nan, column) for column in columns))


def _half_widths(sampling: Array, noise: CubeNoise) -> Array:
    """w with P(|sampling error + noise| ≥ w) = 5%, by secants on the logarithm of the tail: noise
    has wider tails than a normal deviate."""
    start = NORMAL_95 * np.sqrt(sampling**2 + noise.variance)
    points = [start, 1.1 * start]
    tails = [np.log(two_sided(point, sampling, noise, [1.0])) for point in points]
    for _ in range(SECANT_STEPS):
        slope = (tails[1] - tails[0]) / (points[1] - points[0])
        moved = np.clip((math.log(0.05) - tails[1]) / slope, -0.2 * start, 0.2 * start)
        if np.abs(moved).max(initial=0.0) <= 1e-6 * start.min(initial=math.inf):
            break
        points = [points[1], points[1] + moved]
        tails = [tails[1], np.log(two_sided(points[1], sampling, noise, [1.0]))]
    return np.asarray(points[1])


SECANT_STEPS = 4
"""The logarithm of the tail is nearly straight over a tenth of its range."""


def read_trait_study(
    path: str | Path,
    trait_file: str | Path,
    trait: TraitRange,
    *,
    filters: StudyFilter | None = None,
    within: str | Path | None = None,
    covar: str | Path | None = None,
    progress: Progress | None = None,
) -> TraitStudy:
    """A study of a quantitative trait, from .bed or .pgen files.

    Args:
        path: the study.
        trait_file: FID, IID and a number on each line.
        trait: the range that values are clamped to.
        filters: which people and SNPs are studied; within, covar: public strata and covariates.
    """
    file, values_file = read_path(path, "study"), read_path(trait_file, "--trait")
    if file.name.lower().endswith((*COUNT_TABLE_SUFFIXES, *VARIANT_SUFFIXES)):
        message = f"a quantitative trait needs the people of PLINK files, which {file.name} is not"
        hint = "make a .bed or .pgen of it with plink2"
        raise InvalidInput(message, field="--trait", value=file.name, hint=hint)
    chosen = filters or StudyFilter()
    names, words, groups = read_trait_people(people_file(path), values_file, chosen.keep)
    valued = groups.cases | groups.controls
    (places,) = np.nonzero(valued)
    raw = _read_values([words[place] for place in places], values_file.name)
    _check_values(raw, trait, values_file.name)
    design = read_design(
        np.ones(len(raw), dtype=bool), [names[place] for place in places], within, covar
    )
    genotypes, snps = open_snps(path, groups.people)
    counted = count_study(genotypes, snps, groups, chosen, progress=progress)
    return TraitStudy(
        **vars(counted) | _merge_turns(counted),
        design=design,
        genotypes=genotypes,
        places=locate_snps(counted.snps, snps),
        people_places=places,
        trait=trait,
        values=trait.units(raw),
        digest=hashlib.sha256(repr(sorted(raw.tolist())).encode()).hexdigest(),
    )


def _merge_turns(study: Study) -> dict[str, Any]:
    """The counts of everybody who has a value, who were counted in two groups."""
    counts = study.counts[:, :3] + study.counts[:, 3:]
    males = study.haploid
    if males is not None:
        none = np.minimum(males[:, 2:], 0)  # −1 where a SNP is not on X
        males = np.concatenate([np.maximum(males[:, :2] + males[:, 2:], none), none], axis=1)
    return {
        "counts": np.concatenate([counts, np.zeros_like(counts)], axis=1),
        "cases": study.cases + study.controls,
        "controls": 0,
        "haploid": males,
    }


def _read_values(words: list[str], source: str) -> Array:
    try:
        values = np.array([float(word) for word in words])
    except ValueError:
        message = f"some values in {source} are not numbers"
        hint = "write NA where a value is missing, and decimals with a point"
        raise InvalidInput(message, field="--trait", value=source, hint=hint) from None
    if not np.isfinite(values).all():
        hint = "write NA where a value is missing"
        raise InvalidInput(
            f"some values in {source} are not finite", field="--trait", value=source, hint=hint
        )
    return values


def _check_values(values: Array, trait: TraitRange, source: str) -> None:
    if len(values) < MIN_TRAIT_PEOPLE:
        least = f"at least {MIN_TRAIT_PEOPLE}, by the names in the study"
        raise invalid_value(f"people with a value in {source}", least, len(values))
    if np.isin(values, (1, 2)).all():
        message = f"{source} has the values 1 and 2 alone, which are controls and cases"
        hint = "give it as --phenotypes instead, without --trait"
        raise InvalidInput(message, field="--trait", value=source, hint=hint)
    if not ((values >= float(trait.low)) & (values <= float(trait.high))).any():
        ends = f"{spell(trait.low)}..{spell(trait.high)}"
        message = f"no value in {source} is inside --trait-range {ends}"
        hint = "see whether the file has other units than the range"
        raise InvalidInput(message, field="--trait-range", value=ends, hint=hint)
