"""Which SNPs a study looked at: chromosome, name, position, and the two alleles. All of it public.

Contract: order is that of the file. Chromosomes X, Y and the mitochondrial one are haploid in some
people, so their genotypes are not three classes; `autosomal` says which SNPs may be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.documents import MOST_STUDY, read_text
from whosin.errors import InvalidInput

if TYPE_CHECKING:
    from whosin.exact import Array

HAPLOID = frozenset({"23", "24", "26", "X", "Y", "MT", "M"})


@dataclass(frozen=True, eq=False)
class Snps:
    """SNPs in the order of their counts; `a1` is the allele that is counted."""

    chromosome: list[str]
    name: list[str]
    position: Array
    a1: list[str]
    a2: list[str]

    def __len__(self) -> int:
        return len(self.name)

    def take(self, which: Array) -> Snps:
        """Some of the SNPs, by index."""
        words = self.chromosome, self.name, self.a1, self.a2
        chromosome, name, a1, a2 = ([column[int(index)] for index in which] for column in words)
        return Snps(chromosome, name, self.position[which], a1, a2)

    def columns(self) -> tuple[list[Any], ...]:
        """Chromosome, name, position, A1 and A2, as lists."""
        return self.chromosome, self.name, self.position.tolist(), self.a1, self.a2

    def autosomal(self) -> Array:
        """Which SNPs are diploid in everybody."""
        haploid = {name for name in set(self.chromosome) if _plain(name) in HAPLOID}
        if not haploid:
            return np.ones(len(self), dtype=bool)
        return np.array([chromosome not in haploid for chromosome in self.chromosome])


def _plain(chromosome: str) -> str:
    return chromosome.upper().removeprefix("CHR")


def read_bim(path: Path) -> Snps:
    """Read a .bim file: chromosome, name, centimorgans, position, A1, A2."""
    words = read_text(path, path.name, MOST_STUDY).split()
    if not words:
        raise InvalidInput(path.name, "text with at least one line", "an empty file")
    if len(words) != 6 * count_lines(path):
        raise InvalidInput(path.name, "text with six columns in every line", f"{len(words)} words")
    try:
        position = np.array([int(word) for word in words[3::6]], dtype=np.int64)
    except (ValueError, OverflowError):
        raise InvalidInput(f"positions in {path.name}", "whole numbers", "something else") from None
    return Snps(words[0::6], words[1::6], position, words[4::6], words[5::6])


def count_lines(path: Path) -> int:
    """How many lines a file has that are not empty."""
    data = path.read_bytes()
    if b"\n\n" in data or b"\r" in data:
        return sum(1 for line in data.splitlines() if line.strip())
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
