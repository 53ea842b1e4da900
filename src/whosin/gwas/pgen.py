"""PLINK 2's .pgen files, read through pgenlib (the extra `pgen`), each in a process of its own.

A1 is the alternate allele and A2 the reference, so a .pgen that was made from a .bed has the same
counts. Variants with several alternate alleles have more than three genotypes: they are left out,
and their number is returned. Phase does not matter, and counts are those of hard calls, as in
`plink2 --geno-counts`; `Pgen.dosages` reads dosages. Beside `x.pgen` lie `x.pvar` or `x.pvar.zst`
(or `x.bim`), and `x.psam` (or `x.fam`).

*Counting.* A record that is not compressed has two bits a person, as in a .bed, in another code: 00
no copy of A1, 01 one, 10 two, 11 missing. Where all records are such they are mapped and counted by
the kernel for .bed files; the index of the file says where they are, and is believed only if it
fits the file to the byte. pgenlib counts other files, each record for a subset of people: some 2 µs
for 5,000 people. There groups are counted one after the other, everybody last, and whoever is in no
group is the rest.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from whosin import binary_readers, isolation
from whosin.documents import MAX_STUDY_BYTES, read_text
from whosin.errors import Crashed, InvalidInput, OutOfMemory, require_extras
from whosin.exact import Array
from whosin.gwas.bed import MISSING_GENOTYPE, Groups, count_rows, sibling_path
from whosin.gwas.people import Progress, Snps, count_lines
from whosin.isolation import TaskLimits

PGEN_MAGIC = b"\x6c\x1b"
PGEN_LIMITS = TaskLimits(7 * 86400.0, 8 << 30)
"""A file may be long, and what is kept of it is some bytes a variant."""
SHARD_BYTES = 32 << 20
"""What is counted of plain records at once."""
TASK_BYTES = 512 << 20
"""What one process counts of others: starting it costs a quarter of a second."""
GENOTYPE_TASK_CELLS = 1 << 28
"""Genotypes that one process unpacks at a time."""


@dataclass(frozen=True, eq=False)
class Pgen:
    """A .pgen file of `people`; `variants` are the indices of those with two alleles, and `alleles`
    how many every variant of the file has."""

    path: Path
    people: int
    variants: Array = field(repr=False)
    alleles: Array = field(repr=False)

    @property
    def snps(self) -> int:
        return len(self.variants)

    def count_groups(
        self, members: Sequence[Array], snps: Array | None = None, **how: Any
    ) -> Array:
        """SNPs × 3(groups + 1): people with 0, 1 and 2 copies of A1 in each group (masks of
        people; nobody in two), then among everybody else.

        Args:
            snps: indices of SNPs; by default all of them.
            how: `processes` and `progress`, as for `study.read_study`.
        """
        wanted = self.variants if snps is None else self.variants[snps]
        groups = [np.flatnonzero(mask).astype(np.uint32).tobytes() for mask in members]
        rest = np.ones(self.people, dtype=bool)
        for mask in members:
            rest &= ~mask
        everybody = [*members, rest]

        def count(task: tuple[Array, int | None]) -> Array:
            part, start = task
            if start is not None:
                # Records of two bits a person, mapped and not read.
                shape = (len(part), -(-self.people // 4))
                rows = np.memmap(self.path, dtype=np.uint8, mode="r", offset=start, shape=shape)
                return _count_plain(rows, everybody)
            found = self._run(binary_readers.pgen_counts, wanted[part], groups)
            counts = np.frombuffer(found, dtype=np.int64)
            return counts.reshape(len(part), 3 * len(everybody))

        counts = np.empty((len(wanted), 3 * len(everybody)), dtype=np.int64)
        tell: Progress | None = how.get("progress")
        done, tasks = 0, self._split_tasks(wanted, how.get("processes"))
        workers = max(1, min(how.get("processes") or os.cpu_count() or 1, len(tasks)))
        with ThreadPoolExecutor(workers) as threads:
            for (part, _), found in zip(tasks, threads.map(count, tasks), strict=True):
                counts[part] = found
                done += len(part)
                if tell is not None:
                    tell(done, len(counts))
        return counts

    def _split_tasks(self, wanted: Array, processes: int | None) -> list[tuple[Array, int | None]]:
        """Which of the wanted variants are counted at once, and where they begin in the file, if
        all are plain records one behind the other: a few of them among others gain nothing."""
        starts = plain_records(self.path, self.people, len(self.alleles))[wanted]
        every, stride = np.arange(len(wanted)), -(-self.people // 4)
        if len(wanted) and starts[0] >= 0 and (np.diff(starts) == stride).all():
            parts = np.array_split(every, -(-len(every) * stride // SHARD_BYTES))
            return [(part, int(starts[part[0]])) for part in parts if len(part)]
        size = max(1, self.path.stat().st_size // max(1, len(self.alleles)))
        pieces = max(processes or 1, -(-len(every) * size // TASK_BYTES))
        return [(part, None) for part in np.array_split(every, pieces) if len(part)]

    def genotypes(self, snps: Array, people: Array | None = None) -> Array:
        """Copies of A1 (SNPs × people, int8), −1 where missing, for chosen SNPs."""
        copies = np.maximum(self._unpack(snps, np.int8), np.int8(MISSING_GENOTYPE))
        return copies if people is None else copies[:, people]

    def dosages(self, snps: Array, people: Array | None = None) -> Array:
        """Expected copies of A1 (SNPs × people, float32 between 0 and 2), NaN where missing: stored
        dosages, or hard calls where there are none."""
        copies = self._unpack(snps, np.float32)
        copies[copies < 0] = np.nan
        return copies if people is None else copies[:, people]

    def _unpack(self, snps: Array, kind: type[np.int8] | type[np.float32]) -> Array:
        copies = np.empty((len(snps), self.people), dtype=kind)
        step = max(1, GENOTYPE_TASK_CELLS // self.people)
        for first in range(0, len(snps), step):
            part = self.variants[snps[first : first + step]]
            found = self._run(binary_readers.pgen_genotypes, part, kind is np.float32)
            copies[first : first + step] = np.frombuffer(found, dtype=kind).reshape(len(part), -1)
        return copies

    def _run(self, reader: Any, variants: Array, *more: Any) -> bytes:
        alleles = self.alleles.astype(np.int64).tobytes()
        given = (str(self.path), self.people, alleles, variants.astype(np.uint32).tobytes())
        return bytes(_run_reader(reader, self.path, *given, *more))


def pgen_siblings(path: str | Path) -> tuple[Path, Path, Path]:
    """The genotypes, the variants and the people of a study."""
    variants = [sibling_path(path, suffix) for suffix in (".pvar", ".pvar.zst", ".bim")]
    people = [sibling_path(path, suffix) for suffix in (".psam", ".fam")]
    listed, named = (
        next((file for file in files if file.exists()), files[0]) for files in (variants, people)
    )
    return sibling_path(path, ".pgen"), listed, named


def open_pgen(path: str | Path, people: int) -> tuple[Pgen, Snps]:
    """A .pgen file and its SNPs with two alleles; its numbers are checked when it is read."""
    require_extras("pgen")
    file, listed, _ = pgen_siblings(path)
    with file.open("rb") as opened:
        magic = opened.read(len(PGEN_MAGIC))
    if magic != PGEN_MAGIC:
        message = f"{file.name} is not a PLINK 2 .pgen file: it does not begin with 6c 1b"
        raise InvalidInput(message, field=file.name, value=magic.hex(" "))
    listed.open("rb").close()  # a missing file is reported as one
    snps, alleles = _read_pvar(listed)
    if not len(alleles):
        raise InvalidInput(f"{listed.name} lists no variant", field=listed.name)
    variants = np.flatnonzero(alleles == 2)
    kept = snps if len(variants) == len(snps) else snps.take(variants)
    return Pgen(file, people, variants, alleles), kept


PVAR_HEADER = ("#CHROM", "POS", "ID", "REF", "ALT")


def _read_pvar(path: Path) -> tuple[Snps, Array]:
    """The variants of a file, and how many alleles each has. Where there is nothing but the five
    columns in plain text they are read here, which is faster; pgenlib reads all else."""
    with path.open("rb") as file:
        first = file.readline(1 << 10).decode("utf-8", "replace").split()
    if path.suffix == ".pvar" and tuple(first) == PVAR_HEADER:
        words = read_text(path, path.name, MAX_STUDY_BYTES).split()[len(PVAR_HEADER) :]
        try:
            position = np.array([int(word) for word in words[1::5]], dtype=np.int64)
        except (ValueError, OverflowError):
            position = np.zeros(0, dtype=np.int64)
        if len(words) == 5 * len(position) == 5 * (count_lines(path) - 1):
            chromosome, name, a2, a1 = (words[column::5] for column in (0, 2, 3, 4))
            alleles = np.array([2 + word.count(",") for word in a1], dtype=np.int64)
            return _name_variants(Snps(chromosome, name, position, a1, a2)), alleles
    found = _run_reader(binary_readers.pvar_columns, path, str(path))
    chromosome, name, a1, a2 = (found[column].split("\n") for column in (0, 1, 3, 4))
    position = np.frombuffer(found[2], dtype=np.int64)
    snps = _name_variants(Snps(chromosome, name, position, a1, a2))
    return snps, np.frombuffer(found[5], dtype=np.int64)


def _name_variants(snps: Snps) -> Snps:
    """Variants without a name are called by their place, as in a VCF file."""
    if "." not in snps.name:
        return snps
    places = zip(snps.name, snps.chromosome, snps.position.tolist(), strict=True)
    names = [f"{where}:{at}" if own == "." else own for own, where, at in places]
    return replace(snps, name=names)


def _run_reader(reader: Any, path: Path, *arguments: Any) -> Any:
    try:
        return isolation.run_isolated(reader, *arguments, limits=PGEN_LIMITS)
    except (Crashed, OutOfMemory):
        message = f"{path.name} is damaged: reading it failed"
        raise InvalidInput(message, field=path.name, value=path.name) from None


def _count_plain(rows: Array, members: Sequence[Array]) -> Array:
    """Counts of plain records for groups of people, two at a time by the kernel for .bed files. It
    takes 11 for no copy, 10 for one and 00 for two; here these are missing, two and none."""
    counts = np.zeros((len(rows), 3 * len(members)), dtype=np.int64)
    there = [place for place, mask in enumerate(members) if mask.any()]
    nobody = np.zeros_like(members[0])
    for pair in (there[at : at + 2] for at in range(0, len(there), 2)):
        groups = Groups(members[pair[0]], members[pair[1]] if len(pair) > 1 else nobody)
        found = count_rows(rows, groups)
        for column, place in enumerate(pair):
            missing, two, none = found[:, 3 * column : 3 * column + 3].T
            one = groups.sizes[column] - missing - two - none
            counts[:, 3 * place : 3 * place + 3] = np.stack([none, one, two], axis=1)
    return counts


VARIABLE_WIDTH = 0x10
BLOCK_RECORDS = 1 << 16
INDEX_START = 12


def plain_records(path: Path, people: int, variants: int) -> Array:
    """Where each variant's record begins in a .pgen file, if it is two bits a person and nothing
    else; −1 where it is not, and everywhere if the index is not one that fits the file.

    The file begins with the magic, a mode (0x10), the numbers of variants and people (32 bits) and
    a byte that says how the index is stored. For each block of 65,536 variants there is a place in
    the file (64 bits); then, for each block, types of records (4 or 8 bits), their lengths (1 to 4
    bytes), perhaps numbers of alleles and flags. Type 0 is a plain record.
    """
    nowhere = np.full(variants, -1, dtype=np.int64)
    blocks = -(-variants // BLOCK_RECORDS)
    with path.open("rb") as file:
        head = file.read(INDEX_START)
        if len(head) < INDEX_START or head[2] != VARIABLE_WIDTH or head[11] & 8:
            return nowhere
        if np.frombuffer(head[3:11], dtype="<u4").tolist() != [variants, people]:
            return nowhere
        # How many bits of each block's index a variant has: type, length, alleles, flag.
        how, flags = head[11], 1 if head[11] >> 6 == 3 else 0
        bits = 8 if how & 4 else 4, 8 * (1 + (how & 3)), 8 * (how >> 4 & 3), flags
        index = file.read(8 * blocks + blocks * sum(-(-BLOCK_RECORDS * b // 8) for b in bits))
    at, end, starts = 8 * blocks, -1, []
    for block, place in enumerate(np.frombuffer(index[:at], dtype="<u8").astype(np.int64).tolist()):
        many = min(BLOCK_RECORDS, variants - block * BLOCK_RECORDS)
        sizes = [-(-many * b // 8) for b in bits]
        if at + sum(sizes) > len(index) or end not in (-1, place):
            return nowhere
        kinds = np.frombuffer(index, dtype=np.uint8, count=sizes[0], offset=at)
        if bits[0] == 4:
            kinds = np.stack([kinds & 15, kinds >> 4], axis=1).ravel()[:many]
        digits = np.frombuffer(index, dtype=np.uint8, count=sizes[1], offset=at + sizes[0])
        places = np.arange(bits[1] // 8)
        lengths = (digits.reshape(many, -1).astype(np.int64) << 8 * places).sum(axis=1)
        ends = place + np.cumsum(lengths)
        plain = (kinds == 0) & (lengths == -(-people // 4))
        starts.append(np.where(plain, ends - lengths, -1))
        at, end = at + sum(sizes), int(ends[-1])
    first = int.from_bytes(index[:8], "little")
    fits = len(starts) == blocks and end == path.stat().st_size and first == INDEX_START + at
    return np.concatenate(starts) if fits else nowhere
