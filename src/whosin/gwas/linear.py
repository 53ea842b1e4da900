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
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.exact import Array
from whosin.gwas.people import allele_counts, missing_genotypes

RESIDUAL_UNITS = 1 << 12
"""The grid of residuals, in units a copy."""
MAX_RESIDUAL = 4 * RESIDUAL_UNITS
"""Residuals are cut to four copies; beyond two they come from covariates alone."""
LINEAR_SCORE_UNITS = 64
"""C: the grid of scores, in units a neighbour."""


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
        parts = [make(np.asarray(block, dtype=np.float32), relation) for block in blocks]
        columns = zip(*((t.statistic, t.change, t.deviation) for t in parts), strict=True)
        return LinearTerms(*(np.concatenate(column) for column in columns))

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
        weights = np.rint(left * RESIDUAL_UNITS)
        doses = np.rint(np.clip(np.nan_to_num(copies, nan=1.0), 0, 2) * DOSE_UNITS)
        # Whole numbers below 2^53 in size: the sums are exact.
        statistic = (doses.astype(np.float64) @ weights).astype(np.int64)
        change = 2 * DOSE_UNITS * int(np.abs(weights).max())
        return LinearTerms(statistic, np.full(len(copies), change), np.zeros(len(copies)))


FIT_ROUNDS = 3
DOSE_UNITS = 64
"""The grid of dosages, in units a copy."""
