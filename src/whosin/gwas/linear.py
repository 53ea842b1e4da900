"""Linear scores: how far the genotypes of cases are from what public strata and covariates predict.

The score of a SNP is (|U| − tσ)/Δ: how many neighbours away its statistic U is from t standard
deviations, where t² is the selection threshold. U, tσ and Δ are whole numbers, so that the score,
⌊C(|U| − tσ)/Δ⌋, has the sensitivity C exactly: U moves by at most Δ.

*Labels secret* (genomes and covariates are known): a person's residual g̃, the genotype less its
fitted value on strata and covariates, is public, and rounded to a grid before labels are looked at.
A missing genotype has its fitted value, so its residual is 0. U = Σ g̃ over cases, and Δ is
measured for each SNP: the range of g̃ over everybody where any two labels may be exchanged
("label-swap"), its largest range inside a stratum where only such are exchanged and a stratum's
number of cases is public ("stratum-swap"), max|g̃| where one label changes ("label"). Strata alone
keep g̃ between −2 and 2, and its range at 2 at most; with a covariate (1, 2, 5) and genotypes (0,
2, 0) the range is 2.154. σ is that of random labels: of the public number of cases, in all or in
each stratum, or, where one label changes and that number with it, of half of the people.

*Genotypes secret* (labels are known): U = Σ g e, with e the residual of the labels on strata and
covariates. One genotype moves it by at most 2 max|e|. A missing genotype has one copy: the fitted
value would move with the genotypes of others. tσ would too, so it is left out.

*Files.* `--within` has FID, IID and the name of a stratum on each line, `--covar` FID, IID and
numbers (principal components, age, sex); a header may stand above, and may begin with #FID or #IID.
Both are public: under a promise about labels they may come from the same genomes, under one about
genotypes principal components must come from a public reference. Everybody who is counted needs a
value.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Self

import numpy as np

from whosin.errors import InvalidInput, read_path, spell
from whosin.exact import Array
from whosin.gwas.bed import MISSING_GENOTYPE, Bed, Groups
from whosin.gwas.people import (
    MISSING_WORDS,
    KeepList,
    PersonName,
    Snps,
    allele_counts,
    find_people,
    missing_genotypes,
    read_people,
    read_person_words,
)
from whosin.gwas.pgen import Pgen
from whosin.gwas.study import (
    COUNT_TABLE_SUFFIXES,
    VARIANT_SUFFIXES,
    Study,
    count_everybody,
    open_genotypes,
    people_file,
)

RESIDUAL_UNITS = 1 << 12
"""The grid of residuals, in units a copy."""
MAX_RESIDUAL = 4 * RESIDUAL_UNITS
"""Residuals are cut to four copies; beyond two they come from covariates alone."""
LINEAR_SCORE_UNITS = 64
"""C: the grid of scores, in units a neighbour."""
BLOCK_GENOTYPES = 1 << 23
MAX_COVARIATE_DIVISOR = 10
"""At most one column for so many people: with more, fitted values are the genotypes."""


@dataclass(frozen=True, eq=False)
class LinearTerms:
    """For every SNP, in units of the grid.

    Attributes:
        statistic: U.
        change: how far a neighbour moves it; 0 where nothing moves it.
        deviation: its standard deviation where there is no association; 0 where that is not public.
    """

    statistic: Array
    change: Array
    deviation: Array

    @classmethod
    def join(cls, parts: Iterable[Self]) -> Self:
        """The terms of all SNPs, which came in blocks."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))

    def scores(self, threshold: Fraction, people: int) -> Array:
        """⌊C(|U| − tσ)/Δ⌋, and the least where no neighbour is different."""
        offset = np.ceil(math.sqrt(threshold) * self.deviation).astype(np.int64)
        above = LINEAR_SCORE_UNITS * (np.abs(self.statistic) - offset)
        least = -4 * LINEAR_SCORE_UNITS * people
        scores = np.where(self.change > 0, above // np.maximum(self.change, 1), least)
        return np.asarray(np.maximum(scores, least), dtype=np.int64)


def stratum_terms(tables: Array, sizes: Array, relation: str) -> LinearTerms:
    """The terms of strata without covariates, from counts alone.

    Args:
        tables: strata × SNPs × 6, people with 0, 1 and 2 copies of A1 among cases, then controls.
        sizes: strata × 2, how many cases and controls there are in each.
    """
    if relation == "genotype":
        return _genotype_terms(tables, sizes)
    snps = tables.shape[1]
    statistic, low, high, inside = (np.zeros(snps, dtype=np.int64) for _ in range(4))
    squares, variance = np.zeros(snps), np.zeros(snps)
    for table, (cases, controls) in zip(tables, sizes.tolist(), strict=True):
        pooled = table[:, :3] + table[:, 3:]
        known = np.maximum(pooled.sum(axis=1), 1)
        mean = (pooled[:, 1] + 2 * pooled[:, 2]) * RESIDUAL_UNITS
        none = -((2 * mean + known) // (2 * known))  # less the mean, to the nearest unit
        least, most = np.zeros(snps, dtype=np.int64), np.zeros(snps, dtype=np.int64)
        own = np.zeros(snps)
        for copies in range(3):
            residual = none + copies * RESIDUAL_UNITS
            statistic += table[:, copies] * residual
            own += pooled[:, copies] * residual.astype(float) ** 2
            there = residual * (pooled[:, copies] > 0)
            np.minimum(least, there, out=least)
            np.maximum(most, there, out=most)
        low, high = np.minimum(low, least), np.maximum(high, most)
        if cases and controls:
            inside = np.maximum(inside, most - least)
            variance += own * label_variance(cases, controls)
        squares += own
    if relation == "stratum-swap":
        return LinearTerms(statistic, inside, np.sqrt(variance))
    return _everybody_terms(statistic, low, high, squares, sizes, relation)


def label_variance(cases: int, controls: int) -> float:
    """The variance of Σ g̃ over random cases, by Σ g̃² of everybody: RS / (N(N − 1))."""
    people = cases + controls
    return cases * controls / (people * max(people - 1, 1))


def _everybody_terms(
    statistic: Array, low: Array, high: Array, squares: Array, sizes: Array, relation: str
) -> LinearTerms:
    """The terms where any two labels are exchanged, or one changes: nothing uses a stratum's own
    number of cases, and with one label not even the number of all."""
    cases, controls = sizes.sum(axis=0).tolist()
    people = cases + controls
    if relation == "label":
        deviation = np.sqrt(squares * people / (people - 1)) / 2
        return LinearTerms(statistic, np.maximum(high, -low), deviation)
    return LinearTerms(statistic, high - low, np.sqrt(squares * label_variance(cases, controls)))


def _genotype_terms(tables: Array, sizes: Array) -> LinearTerms:
    """The terms where genotypes are secret: labels less their mean in each stratum."""
    snps = tables.shape[1]
    statistic, largest = np.zeros(snps, dtype=np.int64), 0
    for table, (cases, controls) in zip(tables, sizes.tolist(), strict=True):
        share = Fraction(cases, max(cases + controls, 1))
        case, control = (round(each * RESIDUAL_UNITS) for each in (1 - share, -share))
        x, y = allele_counts(table)
        missing = missing_genotypes(table, cases, controls)
        statistic += case * (x + missing[:, 0]) + control * (y + missing[:, 1])
        largest = max(largest, abs(case) if cases else 0, abs(control) if controls else 0)
    return LinearTerms(statistic, np.full(snps, 2 * largest), np.zeros(snps))


@dataclass(frozen=True, eq=False)
class Design:
    """People in the order of their genotypes, and what is public about them.

    Attributes:
        cases: who is a case.
        strata: which stratum each person is in, from 0 up.
        basis: people × p, orthonormal columns that span strata and covariates.
    """

    cases: Array
    strata: Array
    basis: Array

    def sizes(self) -> Array:
        """Strata × 2: cases and controls."""
        many = int(self.strata.max()) + 1
        groups = (self.cases, ~self.cases)
        return np.stack([np.bincount(self.strata[g], minlength=many) for g in groups], axis=1)

    def terms(self, blocks: Iterable[Array], relation: str) -> LinearTerms:
        """The terms of SNPs whose genotypes come in blocks (SNPs × people: copies of A1 or dosages,
        NaN where missing)."""
        make = self._genotype_block if relation == "genotype" else self._label_block
        return LinearTerms.join(make(np.asarray(block, np.float32), relation) for block in blocks)

    def residuals(self, copies: Array) -> Array:
        """Genotypes less their fitted values, on the grid; 0 where missing. It sees no labels."""
        gone = np.isnan(copies)
        basis = self.basis.astype(np.float32)
        rows = np.flatnonzero(gone.any(axis=1))
        filled = copies
        if len(rows):
            filled = copies.copy()
            some, holes = copies[rows], gone[rows]
            known = np.maximum((~holes).sum(axis=1), 1)
            fitted = np.broadcast_to((np.nansum(some, axis=1) / known)[:, None], some.shape)
            for _ in range(FIT_ROUNDS):  # missing genotypes at their fitted value
                some = np.where(holes, fitted, copies[rows])
                fitted = (some @ basis) @ basis.T
            filled[rows] = some
        left = filled - (filled @ basis) @ basis.T
        units = np.clip(np.rint(left * RESIDUAL_UNITS), -MAX_RESIDUAL, MAX_RESIDUAL)
        units[gone] = 0
        return np.asarray(units, dtype=np.int32)

    def _label_block(self, copies: Array, relation: str) -> LinearTerms:
        units = self.residuals(copies)
        statistic = units[:, self.cases].sum(axis=1, dtype=np.int64)
        if relation == "stratum-swap":
            return self._stratum_block(units, statistic)
        low, high = (each.astype(np.int64) for each in (units.min(axis=1), units.max(axis=1)))
        squares = np.einsum("ij,ij->i", units, units, dtype=np.float64)
        return _everybody_terms(statistic, low, high, squares, self.sizes(), relation)

    def _stratum_block(self, units: Array, statistic: Array) -> LinearTerms:
        change, variance = np.zeros(len(units), dtype=np.int64), np.zeros(len(units))
        for stratum, (cases, controls) in enumerate(self.sizes().tolist()):
            if cases and controls:
                own = units[:, self.strata == stratum]
                change = np.maximum(change, own.max(axis=1) - own.min(axis=1))
                centred = own - own.mean(axis=1, keepdims=True)
                variance += (centred**2).sum(axis=1) * label_variance(cases, controls)
        return LinearTerms(statistic, change, np.sqrt(variance))

    def _genotype_block(self, copies: Array, _: str) -> LinearTerms:
        left = self.cases - self.basis @ (self.basis.T @ self.cases)
        statistic, change = weigh_genotypes(copies, np.rint(left * RESIDUAL_UNITS))[:2]
        return LinearTerms(statistic, change, np.zeros(len(copies)))


FIT_ROUNDS = 3
DOSE_UNITS = 64
"""The grid of dosages, in units a copy."""


def weigh_genotypes(copies: Array, weights: Array) -> tuple[Array, Array, Array]:
    """(U = Σ g e, how far a genotype moves it, Σ g), for each SNP in units of the grids, where a
    missing genotype has one copy."""
    doses = np.rint(np.clip(np.nan_to_num(copies, nan=1.0), 0, 2) * DOSE_UNITS)
    # Whole numbers below 2^53 in size: the sums are exact.
    statistic = (doses.astype(np.float64) @ weights).astype(np.int64)
    change = np.full(len(copies), 2 * DOSE_UNITS * int(np.abs(weights).max()))
    return statistic, change, doses.astype(np.int64).sum(axis=1)


@dataclass(frozen=True, eq=False)
class StratifiedStudy(Study):
    """A study whose linear scores are computed within strata and beside covariates.

    Attributes:
        design: the people's strata and covariates.
        tables: strata × SNPs × 6, counts in each stratum; where there are no covariates.
        genotypes, places, people_places: the file, and which of its SNPs and people are studied.
    """

    design: Design | None = None
    tables: Array | None = None
    genotypes: Bed | Pgen | None = None
    places: Array | None = None
    people_places: Array | None = None

    def terms(self, relation: str) -> LinearTerms:
        """What linear scores are made of."""
        assert self.design is not None
        if self.tables is not None:
            return stratum_terms(self.tables, self.design.sizes(), relation)
        return self.design.terms(self.blocks(), relation)

    def blocks(self) -> Iterator[Array]:
        """Genotypes of the study's SNPs and people: dosages where the file has them."""
        assert self.genotypes is not None and self.places is not None
        step = max(1, BLOCK_GENOTYPES // self.genotypes.people)
        for first in range(0, len(self.places), step):
            part = self.places[first : first + step]
            if isinstance(self.genotypes, Pgen):
                yield self.genotypes.dosages(part, self.people_places)
            else:
                copies = self.genotypes.genotypes(part, self.people_places).astype(np.float32)
                copies[copies == MISSING_GENOTYPE] = np.nan
                yield copies

    def strata_digest(self) -> str:
        """Names who is in which stratum, for the registration of a promise about strata."""
        assert self.design is not None
        return hashlib.sha256(self.design.strata.astype(np.int64).tobytes()).hexdigest()[:16]


def stratify_study(
    study: Study,
    path: str | Path,
    phenotypes: str | Path | None = None,
    keep: KeepList = None,
    within: str | Path | None = None,
    covar: str | Path | None = None,
) -> StratifiedStudy:
    """The study with public strata and covariates of its people.

    Args:
        study: as `read_study` read it from these files.
        within: a file of strata.
        covar: a file of covariates.
    """
    file = read_path(path, "study")
    if file.name.lower().endswith((*COUNT_TABLE_SUFFIXES, *VARIANT_SUFFIXES)):
        message = f"strata and covariates need the people of PLINK files, which {file.name} is not"
        hint = "make a .bed or .pgen of it with plink2"
        raise InvalidInput(message, field="--within" if within else "--covar", hint=hint)
    genotypes, snps, groups = open_genotypes(path, phenotypes, False, keep)
    counted = groups.cases | groups.controls
    (places,) = np.nonzero(counted)
    everybody, _ = read_people(people_file(path), phenotypes)
    names = [everybody[place] for place in places]
    design = read_design(groups.cases[counted], names, within, covar)
    strata = design.strata
    chosen = locate_snps(study.snps, snps)
    tables = None
    if covar is None:
        listed = []
        for stratum in range(int(strata.max()) + 1):
            own = np.zeros(groups.people, dtype=bool)
            own[places[strata == stratum]] = True
            inside = Groups(groups.cases & own, groups.controls & own)
            listed.append(count_everybody(genotypes, inside, chosen)[:, :6])
        tables = np.stack(listed)
    return StratifiedStudy(
        **vars(study),
        design=design,
        tables=tables,
        genotypes=genotypes,
        places=chosen,
        people_places=places,
    )


def read_design(
    cases: Array, names: list[PersonName], within: str | Path | None, covar: str | Path | None
) -> Design:
    """The strata and covariates of named people, of whom some are cases."""
    strata = np.zeros(len(names), dtype=np.int64) if within is None else _read_strata(within, names)
    numbers = np.zeros((len(names), 0)) if covar is None else _read_covariates(covar, names)
    return Design(cases, strata, span_columns(strata, numbers))


def span_columns(strata: Array, numbers: Array) -> Array:
    """Orthonormal columns that span the strata's indicators and the numbers."""
    people = len(strata)
    indicators = strata[:, None] == np.arange(int(strata.max()) + 1)
    spread = numbers.std(axis=0)
    scaled = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1)
    columns = np.concatenate([indicators.astype(float), scaled], axis=1)
    if columns.shape[1] * MAX_COVARIATE_DIVISOR > max(people, MAX_COVARIATE_DIVISOR):
        message = (
            f"there are {columns.shape[1]} strata and covariates for {spell(people)} people, and "
            f"genotypes can be compared beside one for {MAX_COVARIATE_DIVISOR} people at most"
        )
        raise InvalidInput(message, field="--covar", value=columns.shape[1])
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(basis[:, sizes > 1e-9 * sizes.max()])


def locate_snps(wanted: Snps, listed: Snps) -> Array:
    """Where the SNPs of a study are in its file: they come in the same order."""
    rows = enumerate(zip(*listed.columns(), strict=True))
    found = []
    for key in zip(*wanted.columns(), strict=True):
        found.append(next(place for place, row in rows if row == key))
    return np.array(found, dtype=np.int64)


def _read_strata(path: str | Path, names: list[PersonName]) -> Array:
    file = read_path(path, "--within")
    words = [row[0] for row in _read_values(file, names, "--within")]
    kinds = sorted(set(words))
    strata = np.array([kinds.index(word) for word in words], dtype=np.int64)
    alone = np.flatnonzero(np.bincount(strata) < 2)
    if len(alone):
        message = f"stratum {kinds[alone[0]]!r} of {file.name} has one person, who fits it exactly"
        hint = "merge it with another stratum, or leave that person out with --keep"
        raise InvalidInput(message, field="--within", value=kinds[alone[0]], hint=hint)
    return strata


def _read_covariates(path: str | Path, names: list[PersonName]) -> Array:
    file = read_path(path, "--covar")
    rows = _read_values(file, names, "--covar")
    try:
        numbers = np.array([[float(word) for word in row] for row in rows])
    except ValueError:
        message = f"some covariates in {file.name} are not numbers"
        hint = "write words as strata (--within), or as columns of 0 and 1"
        raise InvalidInput(message, field="--covar", value=file.name, hint=hint) from None
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"some covariates in {file.name} are not finite", field="--covar")
    return numbers


def _read_values(file: Path, names: list[PersonName], field: str) -> list[list[str]]:
    """What a file says of each of these people; a missing value is refused."""
    listed = read_person_words(file)
    if not listed or len({len(words) for _, words in listed}) > 1 or not listed[0][1]:
        message = f"the lines of {file.name} need FID, IID and as many values on each"
        raise InvalidInput(message, field=field, value=file.name)
    given = dict(listed)
    if len(given) < len(listed):
        raise InvalidInput(f"{file.name} has a person more than once", field=field, value=file.name)
    found = find_people(names, given, file, [])
    gone = sum(not row or any(word.lower() in MISSING_WORDS for word in row) for row in found)
    if gone:
        message = (
            f"{file.name} has no value for {spell(gone)} of the {spell(len(names))} people who are "
            "counted"
        )
        hint = "fill it in, or leave them out with --keep"
        raise InvalidInput(message, field=field, value=gone, hint=hint)
    return found
