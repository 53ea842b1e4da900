"""PLINK's .bed files: two bits a genotype, memory-mapped, counted by popcount.

After three bytes of magic, SNP j fills bytes j·stride to (j+1)·stride, where stride = ⌈people/4⌉,
the first person in the lowest bits: 00 two copies of A1, 01 missing, 10 one copy, 11 none. A file
that is not exactly that long, or not of this kind, is refused by name before anything is counted.

Genotype counts of cases and controls, by popcounts of packed words. One kernel for files, processes
and Spark; counts are exact, whatever the padding bits hold. With h and l the high and low bit of a
genotype: both set means no copy of A1, h alone one, l alone missing, neither two. So three
popcounts per group are enough, and the controls' are those of everyone who is counted less the
cases'.

A row is cut in two halves and their bits are merged, so that one word holds the low (or high) bits
of 64 people: half as many words to mask and to count.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whosin.errors import InvalidInput, invalid_value, read_path
from whosin.plain_files import create_file

if TYPE_CHECKING:
    from whosin.exact import Array
    from whosin.gwas.relatives import Families


BED_MAGIC = b"\x6c\x1b"
SNP_MAJOR, PERSON_MAJOR = 1, 0
HEADER_BYTES = 3
PLINK_SUFFIXES = (".bed", ".bim", ".fam")
STUDY_SUFFIXES = (*PLINK_SUFFIXES, ".pgen", ".pvar.zst", ".pvar", ".psam")
MISSING_GENOTYPE = -1
COPIES_BY_CODE = np.array([2, MISSING_GENOTYPE, 1, 0], dtype=np.int8)
"""Copies of A1, by the two bits of a genotype."""
CODES_BY_COPIES = np.array([3, 2, 0, 1], dtype=np.uint8)
"""The two bits, by copies of A1; the last one is also index −1, missing."""
OTHER_FORMATS = {
    ".bgen": ("a BGEN file", "plink2 --bgen {0}.bgen ref-first --sample {0}.sample"),
    ".gen": ("an Oxford file", "plink2 --gen {0}.gen ref-first --sample {0}.sample"),
    ".gen.gz": ("an Oxford file", "plink2 --gen {0}.gen.gz ref-first --sample {0}.sample"),
    ".haps": ("a file of haplotypes", "plink2 --haps {0}.haps ref-first --sample {0}.sample"),
    ".ped": ("a PLINK text file", "plink1.9 --file {}"),
    ".tped": ("a transposed PLINK text file", "plink1.9 --tfile {}"),
    ".vcf.zst": ("a VCF file compressed by Zstandard", "plink2 --vcf {0}.vcf.zst"),
}
"""Genotype files that are not read: what they are, and what reads them."""


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
        start = HEADER_BYTES + first * self.stride
        return np.memmap(self.path, dtype=np.uint8, mode="r", offset=start, shape=shape)

    def genotypes(self, snps: Array, people: Array | None = None) -> Array:
        """Copies of A1 (SNPs × people, int8), −1 where missing, for chosen SNPs."""
        packed = np.asarray(self.rows()[snps])
        bits = packed[:, :, None] >> np.arange(0, 8, 2, dtype=np.uint8) & 3
        copies: Array = COPIES_BY_CODE[bits.reshape(len(packed), 4 * self.stride)[:, : self.people]]
        return copies if people is None else copies[:, people]


def study_prefix(path: str | Path) -> Path:
    """`study` for `study`, `study.bed`, `study.bim`, `study.fam` and PLINK 2's endings."""
    file = read_path(path, "study")
    ending = next((suffix for suffix in STUDY_SUFFIXES if file.name.endswith(suffix)), "")
    return file.with_name(file.name.removesuffix(ending)) if file.name != ending else file


def sibling_path(path: str | Path, suffix: str) -> Path:
    """The file of a study with another suffix (names may hold dots)."""
    base = study_prefix(path)
    return base.with_name(base.name + suffix)


def refuse_other_formats(study: str | Path) -> None:
    """Refuse genotype files of other programs by what they are, and say how to turn them into one
    that is read; also where a study is named without an ending and only such a file is there."""
    path = read_path(study, "study")
    endings = [ending for ending in OTHER_FORMATS if path.name.lower().endswith(ending)]
    if endings:
        found = [path]
    elif any(sibling_path(path, ending).exists() for ending in (".bed", ".pgen")):
        return
    else:
        found = [path.with_name(path.name + ending) for ending in OTHER_FORMATS]
        found = [file for file in found if file.is_file()]
    for file in found[:1]:
        ending = max((e for e in OTHER_FORMATS if file.name.lower().endswith(e)), key=len)
        kind, command = OTHER_FORMATS[ending]
        stem = file.name[: -len(ending)]
        message = f"{file.name} is {kind}, which is not read here"
        hint = f"make a .bed of it with `{command.format(stem)} --make-bed --out {stem}`"
        raise InvalidInput(message, field="study", value=file.name, hint=hint)


def study_files(path: str | Path) -> list[Path]:
    return [sibling_path(path, suffix) for suffix in PLINK_SUFFIXES]


def open_bed(path: str | Path, people: int, snps: int | None = None) -> Bed:
    """Check a .bed file against the numbers of people (.fam) and, if given, of SNPs (.bim)."""
    bed_path = sibling_path(path, ".bed")
    size = os.stat(bed_path).st_size
    with bed_path.open("rb") as file:
        magic = file.read(HEADER_BYTES)
    if len(magic) < HEADER_BYTES or magic[:2] != BED_MAGIC:
        message = (
            f"{bed_path.name} is not a PLINK .bed file: it begins with {_format_hex(magic)}, not "
            "6c 1b"
        )
        raise InvalidInput(message, field=bed_path.name, value=_format_hex(magic))
    if magic[2] == PERSON_MAJOR:
        message = f"{bed_path.name} is individual-major, and only SNP-major files are read"
        raise InvalidInput(
            message, field=bed_path.name, hint="`plink1.9 --bfile … --make-bed` writes one from it"
        )
    if magic[2] != SNP_MAJOR:
        raise invalid_value(
            f"third byte of {bed_path.name}", "01 (SNP-major)", _format_hex(magic[2:])
        )
    stride = -(-people // 4)
    rows = (size - HEADER_BYTES) // stride if snps is None else snps
    if size != HEADER_BYTES + rows * stride:
        wanted = (
            f"whole rows of {stride} bytes for {people} people"
            if snps is None
            else f"{HEADER_BYTES + rows * stride} bytes for {people} people and {snps} SNPs"
        )
        message = (
            f"{bed_path.name} is {size} bytes long and should have {wanted}: it is truncated, or "
            "belongs to another study"
        )
        raise InvalidInput(message, field=bed_path.name, value=size)
    return Bed(bed_path, people, rows)


def write_bed(path: str | Path, blocks: Iterable[Array]) -> None:
    """Write copies of A1 (SNPs × people; −1 is missing), block by block."""
    with create_file(sibling_path(path, ".bed"), binary=True) as file:
        file.write(BED_MAGIC + bytes([SNP_MAJOR]))
        for copies in blocks:
            snps, people = copies.shape
            codes = np.zeros((snps, -(-people // 4) * 4), dtype=np.uint8)
            codes[:, :people] = CODES_BY_COPIES[copies]
            quads = codes.reshape(snps, -1, 4) << np.arange(0, 8, 2, dtype=np.uint8)
            file.write(np.bitwise_or.reduce(quads, axis=2).tobytes())


def _format_hex(data: bytes) -> str:
    return data.hex(" ") or "an empty file"


CHUNK_BYTES = 1 << 19
"""Rows are handled in chunks that stay in the second-level cache."""
LOW, HIGH = np.uint64(0x5555_5555_5555_5555), np.uint64(0xAAAA_AAAA_AAAA_AAAA)
UINT64_ONE = np.uint64(1)
MAX_WORDS = 1000
"""How many popcounts, of at most 64 each, add up in 16 bits."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Who is a case and who is a control; nobody is both, and others are left out. `related` has
    the families, where some of them are relatives, and `males` who is male, where the file says
    it."""

    cases: Array
    controls: Array
    related: Families | None = None
    males: Array | None = None

    @property
    def people(self) -> int:
        return len(self.cases)

    @property
    def sizes(self) -> tuple[int, int]:
        return int(self.cases.sum()), int(self.controls.sum())


def count_rows(rows: Array, groups: Groups) -> Array:
    """Count SNPs × 6: people with 0, 1, 2 copies of A1 among cases, then among controls."""
    snps, stride = rows.shape
    counts = np.empty((snps, 6), dtype=np.int64)
    half = -(-stride // 16)
    chunk = max(1, min(CHUNK_BYTES // (16 * half), snps))
    work = _Work(chunk, half, groups)
    for first in range(0, snps, chunk):
        part = rows[first : first + chunk]
        counts[first : first + len(part)] = work.count(part)
    return counts


class _Work:
    """Buffers of one worker; every pass writes into memory that is already in the cache."""

    def __init__(self, chunk: int, half: int, groups: Groups) -> None:
        self.half, self.sizes = half, groups.sizes
        counted = groups.cases | groups.controls
        self.everyone = bool(counted.all()) and groups.people % 4 == 0
        self.cases = np.tile(_member_mask(groups.cases, half), chunk)
        self.counted = self.cases if self.everyone else np.tile(_member_mask(counted, half), chunk)
        self.front = np.zeros((chunk, 8 * half), dtype=np.uint8)
        self.back = np.zeros((chunk, 8 * half), dtype=np.uint8)
        self.low = np.empty(chunk * half, dtype=np.uint64)
        self.other = np.empty_like(self.low)
        self.ones = np.empty((6, chunk * half), dtype=np.uint8)

    def count(self, part: Array) -> Array:
        snps, cut = len(part), 8 * self.half
        self.front[:snps, : min(cut, part.shape[1])] = part[:, :cut]
        self.back[:snps, : max(part.shape[1] - cut, 0)] = part[:, cut:]
        used = snps * self.half
        front, back = (b.view(np.uint64).reshape(-1)[:used] for b in (self.front, self.back))
        low, other, ones = self.low[:used], self.other[:used], self.ones[:, :used]
        np.left_shift(back, UINT64_ONE, out=low)
        _merge_bits(front, low, HIGH, other)
        np.right_shift(front, UINT64_ONE, out=front)
        _merge_bits(back, front, LOW, low)
        low, high, both = other, low, front
        if not self.everyone:
            np.bitwise_and(low, self.counted[:used], out=low)
            np.bitwise_and(high, self.counted[:used], out=high)
        np.bitwise_and(low, high, out=both)
        for index, bits in enumerate((low, high, both)):
            np.bitwise_count(bits, out=ones[index])
            np.bitwise_and(bits, self.cases[:used], out=bits)
            np.bitwise_count(bits, out=ones[index + 3])
        sums, table = np.zeros((6, snps), dtype=np.int64), ones.reshape(6, snps, -1)
        for first in range(0, table.shape[2], MAX_WORDS):
            some = table[:, :, first : first + MAX_WORDS]
            sums += np.add.reduce(some, axis=2, dtype=np.uint16)
        cases = _genotype_counts(sums[3:], self.sizes[0])
        total = _genotype_counts(sums[:3], sum(self.sizes))
        return np.concatenate([cases, total - cases], axis=1)


def _merge_bits(base: Array, other: Array, where: np.uint64, out: Array) -> None:
    """The bits of `other` where the mask is set, those of `base` elsewhere."""
    np.bitwise_xor(base, other, out=out)
    np.bitwise_and(out, where, out=out)
    np.bitwise_xor(out, base, out=out)


def _genotype_counts(sums: Array, size: int) -> Array:
    """(0, 1, 2 copies) from the numbers of low bits, of high bits and of both."""
    low, high, both = sums
    return np.stack([both, high - both, size - low - high + both], axis=1)


def _member_mask(members: Array, half: int) -> Array:
    """Members' bits in merged words: those of the back half one bit higher. Made from bytes, so
    that the order of bytes in a word does not matter."""
    bits = np.zeros(half * 64, dtype=np.uint8)
    bits[: len(members)] = members
    quads = bits.reshape(2, -1, 4) << np.arange(0, 8, 2, dtype=np.uint8)
    front, back = np.bitwise_or.reduce(quads, axis=2)
    return np.asarray((front | back << 1).view(np.uint64))
