"""Simulated studies: cases and controls, some SNPs causal. For trying things out; nothing here is
private, and its randomness is numpy's, with a stated seed.

Contract: SNPs are independent and in Hardy–Weinberg proportions. Controls have A1 with frequency
p ~ uniform(low, 1/2); at a causal SNP cases have it with odds `odds_ratio` times as large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, rational
from whosin.gwas.bed import beside, prefix, write_bed
from whosin.gwas.people import check_sizes
from whosin.gwas.snps import Snps
from whosin.gwas.study import Study
from whosin.validation import whole

BLOCK = 1 << 24
CHROMOSOMES = 22


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
        if whole(self.causal, "causal", 0) > whole(self.snps, "snps", 1):
            raise InvalidInput("causal", f"at most {self.snps}, the number of SNPs", self.causal)
        if not 0 < float(rational(self.odds_ratio, "odds ratio")) < 1e6:
            raise InvalidInput("odds ratio", "above 0 and below a million", self.odds_ratio)
        if not 0 <= float(rational(self.lowest, "lowest frequency")) <= 0.5:
            raise InvalidInput("lowest frequency", "between 0 and 0.5", self.lowest)
        whole(self.seed, "seed", 0)

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
        """Blocks of copies of A1 (SNPs × people), cases first."""
        cases, controls, _ = self.frequencies()
        rng = np.random.default_rng([self.seed, 2])
        step = max(1, BLOCK // (self.cases + self.controls))
        for first in range(0, self.snps, step):
            parts = []
            for size, p in ((self.cases, cases), (self.controls, controls)):
                here = p[first : first + step, None]
                copies = [rng.random((len(here), size), dtype=np.float32) < here for _ in range(2)]
                parts.append(copies[0].astype(np.int8) + copies[1])
            yield np.concatenate(parts, axis=1)

    def names(self) -> Snps:
        """SNPs spread evenly over 22 chromosomes."""
        number = np.arange(self.snps)
        chromosome = number * CHROMOSOMES // self.snps
        position = 10_000 * (1 + number - np.searchsorted(chromosome, chromosome))
        names = [f"rs{i + 1}" for i in number]
        return Snps(
            [str(i + 1) for i in chromosome],
            names,
            position,
            ["A"] * self.snps,
            ["G"] * self.snps,
        )

    def write(self, path: str | Path) -> Path:
        """Write .bed, .bim and .fam; labels come in random order, so that files show nothing."""
        order = np.random.default_rng([self.seed, 3]).permutation(self.cases + self.controls)
        write_bed(path, (block[:, order] for block in self.genotypes()))
        snps = self.names()
        with beside(path, ".bim").open("w", encoding="utf-8") as file:
            for row in zip(
                snps.chromosome, snps.name, snps.position, snps.a1, snps.a2, strict=True
            ):
                file.write("{}\t{}\t0\t{}\t{}\t{}\n".format(*row))
        with beside(path, ".fam").open("w", encoding="utf-8") as file:
            for number, person in enumerate(order, start=1):
                status = 2 if person < self.cases else 1
                file.write(f"p{number}\tp{number}\t0\t0\t{1 + number % 2}\t{status}\n")
        return prefix(path)
