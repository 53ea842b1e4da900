"""Counting a .bed file: shards are byte ranges, counts of shards are stacked.

Contract: the same counts whatever the number of processes. A worker gets a range of SNPs and the
groups, never rows of the file; Spark (`whosin.gwas.spark`) runs the same shards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whosin.gwas.bed import Bed, beside, open_bed
from whosin.gwas.kernel import Groups, count_rows
from whosin.gwas.people import read_groups
from whosin.gwas.reading import Progress, listener
from whosin.gwas.snps import count_lines
from whosin.validation import whole

if TYPE_CHECKING:
    from whosin.exact import Array

SHARD_BYTES = 32 << 20
ONE_PROCESS = 2 << 30
"""Below this size a second process costs more time to start than it saves."""

THREADS = min(2, os.cpu_count() or 1)
"""numpy lets go of the interpreter while it counts; more than two threads wait for it."""


def count_bed(
    path: str | Path,
    phenotypes: str | Path | None = None,
    *,
    processes: int | None = None,
    leave_out_no_sex: bool = False,
    progress: Progress | None = None,
) -> Array:
    """Genotype counts of a PLINK study (.bed, .bim, .fam): SNPs × 6.

    Columns are people with 0, 1 and 2 copies of A1 among cases, then among controls; missing
    genotypes are in none. Alleles are those of the .bim file, never turned to the minor one
    (PLINK's `--keep-allele-order`); every SNP is counted as diploid.

    Args:
        path: the study, with or without .bed.
        phenotypes: a file with FID, IID and 1 or 2, instead of the .fam file's sixth column.
        processes: how many; by default one with two threads for files below 2 GiB, else one per
            core.
        leave_out_no_sex: leave out people of unknown sex, as PLINK does without --allow-no-sex.
        progress: called with the numbers of SNPs done and in all.
    """
    groups = read_groups(beside(path, ".fam"), phenotypes, leave_out_no_sex)
    bed = open_bed(path, groups.people, count_lines(beside(path, ".bim")))
    return count_open(bed, groups, processes=processes, progress=progress)


def count_open(
    bed: Bed, groups: Groups, *, processes: int | None = None, progress: Progress | None = None
) -> Array:
    """Counts of a file that was opened, for given groups."""
    tell, workers = listener(progress), _workers(bed, processes)
    counts = np.empty((bed.snps, 6), dtype=np.int64)
    tasks = [(bed, groups, first, last) for first, last in shards(bed)]
    if workers > 1:
        from multiprocessing import get_context

        with get_context("spawn").Pool(min(workers, len(tasks))) as pool:
            return _collect(counts, pool.imap(count_shard, tasks), tell)
    if processes is None and len(tasks) > 1:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(THREADS) as threads:
            return _collect(counts, threads.map(count_shard, tasks), tell)
    return _collect(counts, map(count_shard, tasks), tell)


def shards(bed: Bed, size: int = SHARD_BYTES) -> list[tuple[int, int]]:
    """Ranges of SNPs of about `size` bytes each."""
    step = max(1, size // bed.stride)
    return [(first, min(first + step, bed.snps)) for first in range(0, bed.snps, step)]


def count_shard(task: tuple[Bed, Groups, int, int]) -> tuple[int, Array]:
    """Counts of one range of SNPs, with where it begins."""
    bed, groups, first, last = task
    return first, count_rows(bed.rows(first, last), groups)


def _collect(counts: Array, parts: Iterator[tuple[int, Array]], progress: Progress | None) -> Array:
    done = 0
    for first, part in parts:
        counts[first : first + len(part)] = part
        done += len(part)
        if progress is not None:
            progress(done, len(counts))
    return counts


def _workers(bed: Bed, processes: int | None) -> int:
    if processes is None:
        size = bed.snps * bed.stride
        return 1 if size < ONE_PROCESS else os.cpu_count() or 1
    return whole(processes, "processes", 1)
