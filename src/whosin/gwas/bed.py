"""PLINK's .bed files: two bits per genotype, SNP-major, memory-mapped.

Contract: after three bytes of magic, SNP j fills bytes j·stride to (j+1)·stride, where
stride = ⌈people/4⌉, the first person in the lowest bits: 00 two copies of A1, 01 missing, 10 one
copy, 11 none. A file that is not exactly that long, or not of this kind, is refused by name before
anything is counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whosin.errors import InvalidInput
from whosin.validation import path_of

if TYPE_CHECKING:
    from whosin.exact import Array

MAGIC = b"\x6c\x1b"
SNP_MAJOR, PERSON_MAJOR = 1, 0
HEADER = 3
SUFFIXES = (".bed", ".bim", ".fam")
MISSING = -1
COPIES = np.array([2, MISSING, 1, 0], dtype=np.int8)
"""Copies of A1, by the two bits of a genotype."""
CODES = np.array([3, 2, 0, 1], dtype=np.uint8)
"""The two bits, by copies of A1; the last one is also index −1, missing."""


@dataclass(frozen=True)
class Bed:
    """A .bed file that was checked: `snps` rows of `stride` bytes for `people` people."""

    path: Path
    people: int
    snps: int

    @property
    def stride(self) -> int:
        return -(-self.people // 4)

    def rows(self, first: int = 0, last: int | None = None) -> Array:
        """The packed rows of some SNPs, mapped and not read (SNPs × stride, bytes)."""
        end = self.snps if last is None else last
        shape = (end - first, self.stride)
        if 0 in shape:
            return np.zeros(shape, dtype=np.uint8)
        start = HEADER + first * self.stride
        return np.memmap(self.path, dtype=np.uint8, mode="r", offset=start, shape=shape)

    def genotypes(self, snps: Array, people: Array | None = None) -> Array:
        """Copies of A1 (SNPs × people, int8), −1 where missing, for chosen SNPs."""
        packed = np.asarray(self.rows()[snps])
        bits = packed[:, :, None] >> np.arange(0, 8, 2, dtype=np.uint8) & 3
        copies: Array = COPIES[bits.reshape(len(packed), 4 * self.stride)[:, : self.people]]
        return copies if people is None else copies[:, people]


def prefix(path: str | Path) -> Path:
    """`study` for `study`, `study.bed`, `study.bim` and `study.fam`."""
    file = path_of(path, "study")
    return file.with_suffix("") if file.suffix in SUFFIXES else file


def beside(path: str | Path, suffix: str) -> Path:
    """The file of a study with another suffix (names may hold dots)."""
    base = prefix(path)
    return base.with_name(base.name + suffix)


def files_of(path: str | Path) -> list[Path]:
    """The three files of a PLINK study."""
    return [beside(path, suffix) for suffix in SUFFIXES]


def open_bed(path: str | Path, people: int, snps: int | None = None) -> Bed:
    """Check a .bed file against the numbers of people (.fam) and, if given, of SNPs (.bim)."""
    bed_path = beside(path, ".bed")
    size = os.stat(bed_path).st_size
    with bed_path.open("rb") as file:
        magic = file.read(HEADER)
    if len(magic) < HEADER or magic[:2] != MAGIC:
        raise InvalidInput(bed_path.name, "a PLINK .bed file (it begins with 6c 1b)", _hex(magic))
    if magic[2] == PERSON_MAJOR:
        raise InvalidInput(
            bed_path.name,
            "SNP-major; `plink1.9 --bfile … --make-bed` writes one from an individual-major file",
            "an individual-major file",
        )
    if magic[2] != SNP_MAJOR:
        raise InvalidInput(f"third byte of {bed_path.name}", "01 (SNP-major)", _hex(magic[2:]))
    stride = -(-people // 4)
    rows = (size - HEADER) // stride if snps is None else snps
    if size != HEADER + rows * stride:
        wanted = (
            f"whole rows of {stride} bytes for {people} people"
            if snps is None
            else f"{HEADER + rows * stride} bytes long for {people} people and {snps} SNPs"
        )
        raise InvalidInput(bed_path.name, wanted, f"{size} bytes, truncated or of another study")
    return Bed(bed_path, people, rows)


def pack(copies: Array) -> bytes:
    """The .bed bytes of copies of A1 (SNPs × people; −1 is missing)."""
    snps, people = copies.shape
    codes = np.zeros((snps, -(-people // 4) * 4), dtype=np.uint8)
    codes[:, :people] = CODES[copies]
    quads = codes.reshape(snps, -1, 4) << np.arange(0, 8, 2, dtype=np.uint8)
    packed: Array = np.bitwise_or.reduce(quads, axis=2)
    return packed.tobytes()


def write_bed(path: str | Path, blocks: Iterable[Array]) -> None:
    """Write blocks of copies of A1, one after the other."""
    with beside(path, ".bed").open("wb") as file:
        file.write(MAGIC + bytes([SNP_MAJOR]))
        for block in blocks:
            file.write(pack(block))


def _hex(data: bytes) -> str:
    return data.hex(" ") or "an empty file"
