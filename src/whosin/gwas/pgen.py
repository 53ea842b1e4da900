"""PLINK 2's .pgen files, read through pgenlib (the extra `pgen`), each in a process of its own.

A1 is the alternate allele and A2 the reference, so a .pgen that was made from a .bed has the same
counts. Variants with several alternate alleles have more than three genotypes: they are left out,
and their number is returned. Phase does not matter, and counts are those of hard calls, as in
`plink2 --geno-counts`; `Pgen.dosages` reads dosages. Beside `x.pgen` lie `x.pvar` or `x.pvar.zst`
(or `x.bim`), and `x.psam` (or `x.fam`).

pgenlib counts a variant for a subset of people from its packed record. That takes some 2 µs for
5,000 people, three quarters of the time of unpacking it to bytes before anything is counted. So
groups are counted one after the other, everybody last, and whoever is in no group is the rest.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from whosin import binary_readers, isolation
from whosin.errors import Crashed, InvalidInput, OutOfMemory
from whosin.exact import Array
from whosin.extras import require_extras
from whosin.gwas.bed import MISSING_GENOTYPE, sibling_path
from whosin.gwas.people import Progress, Snps
from whosin.isolation import TaskLimits

PGEN_MAGIC = b"\x6c\x1b"
PGEN_LIMITS = TaskLimits(7 * 86400.0, 8 << 30)
"""A file may be long, and what is kept of it is some bytes a variant."""
TASK_BYTES = 512 << 20
"""What one process counts: starting it costs a quarter of a second."""
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
        size = max(1, self.path.stat().st_size // max(1, len(self.alleles)))
        parts = _split_variants(wanted, max(1, TASK_BYTES // size), how.get("processes"))

        def count(part: Array) -> Array:
            found = self._run(binary_readers.pgen_counts, part, groups)
            counts = np.frombuffer(found, dtype=np.int64)
            return counts.reshape(len(part), 3 * (len(groups) + 1))

        counts = np.empty((len(wanted), 3 * (len(groups) + 1)), dtype=np.int64)
        tell: Progress | None = how.get("progress")
        done = 0
        with ThreadPoolExecutor(_worker_count(parts, how.get("processes"))) as threads:
            for found in threads.map(count, parts):
                counts[done : done + len(found)] = found
                done += len(found)
                if tell is not None:
                    tell(done, len(counts))
        return counts

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
    found = _run_reader(binary_readers.pvar_columns, listed, str(listed))
    chromosome, name, a1, a2 = (found[column].split("\n") for column in (0, 1, 3, 4))
    position = np.frombuffer(found[2], dtype=np.int64)
    alleles = np.frombuffer(found[5], dtype=np.int64)
    if not len(alleles):
        raise InvalidInput(f"{listed.name} lists no variant", field=listed.name)
    names = [
        f"{where}:{at}" if own == "." else own
        for own, where, at in zip(name, chromosome, position.tolist(), strict=True)
    ]
    snps = Snps(chromosome, names, position, a1, a2)
    variants = np.flatnonzero(alleles == 2)
    kept = snps if len(variants) == len(snps) else snps.take(variants)
    return Pgen(file, people, variants, alleles), kept


def _run_reader(reader: Any, path: Path, *arguments: Any) -> Any:
    try:
        return isolation.run_isolated(reader, *arguments, limits=PGEN_LIMITS)
    except (Crashed, OutOfMemory):
        message = f"{path.name} is damaged: reading it failed"
        raise InvalidInput(message, field=path.name, value=path.name) from None


def _split_variants(variants: Array, step: int, processes: int | None) -> list[Array]:
    pieces = max(processes or 1, -(-len(variants) // step))
    return [part for part in np.array_split(variants, pieces) if len(part)]


def _worker_count(parts: Sequence[Array], processes: int | None) -> int:
    most = processes or os.cpu_count() or 1
    return max(1, min(most, len(parts)))
