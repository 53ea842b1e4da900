"""A study from whatever file holds it: .bed, VCF or tables of counts; counting in shards, on Spark
too.

`counts` are exact and private; SNPs and sizes are public. Rows hold at most `cases` and `controls`
people, fewer where genotypes are missing.

Counts are the same whatever the number of processes. A worker gets a range of SNPs and the groups,
never rows of the file; Spark runs the same shards. Its executors open the file themselves, so its
path must be one that they all can read (a shared disk, or local mode).

In a VCF file, read through cyvcf2 (the extra `vcf`), A1 is the alternate allele and A2 the
reference, as PLINK reads it with `--keep-allele-order`; a genotype with an unknown allele is
missing. Only variants with one alternate allele have three genotypes; others are left out and their
number is returned. The file is read in a process of its own: a damaged one can crash its reader.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from whosin import binary_readers, isolation
from whosin.documents import MAX_STUDY_BYTES, read_text
from whosin.errors import Crashed, InvalidInput, OutOfMemory, invalid_value
from whosin.exact import Array
from whosin.extras import require_extras
from whosin.gwas.bed import Bed, Groups, count_rows, open_bed, refuse_other_formats, sibling_path
from whosin.gwas.people import (
    Progress,
    Snps,
    check_instance,
    check_progress,
    check_sizes,
    count_lines,
    missing_genotypes,
    read_bim,
    read_counts,
    read_groups,
    sample_groups,
)
from whosin.gwas.relatives import Families
from whosin.isolation import TaskLimits
from whosin.plain_files import create_file
from whosin.validation import read_path, read_whole

SHARD_BYTES = 32 << 20
ONE_PROCESS = 2 << 30
"""Below this size a second process costs more time to start than it saves."""

THREAD_COUNT = min(2, os.cpu_count() or 1)
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
    bed, groups = open_study(path, phenotypes, leave_out_no_sex)
    return count_open(bed, groups, processes=processes, progress=progress)


def open_study(
    path: str | Path, phenotypes: str | Path | None, leave_out_no_sex: bool = False
) -> tuple[Bed, Groups]:
    """A PLINK study's genotypes, checked, and who is a case or a control in it."""
    refuse_other_formats(path)
    groups = read_groups(sibling_path(path, ".fam"), phenotypes, leave_out_no_sex)
    return open_bed(path, groups.people, count_lines(sibling_path(path, ".bim"))), groups


def count_open(
    bed: Bed, groups: Groups, *, processes: int | None = None, progress: Progress | None = None
) -> Array:
    tell, workers = check_progress(progress), _worker_count(bed, processes)
    counts = np.empty((bed.snps, 6), dtype=np.int64)
    tasks = [(bed, groups, first, last) for first, last in split_shards(bed)]
    if workers > 1:
        from multiprocessing import get_context

        with get_context("spawn").Pool(min(workers, len(tasks))) as pool:
            return _collect_counts(counts, pool.imap(count_shard, tasks), tell)
    if processes is None and len(tasks) > 1:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(THREAD_COUNT) as threads:
            return _collect_counts(counts, threads.map(count_shard, tasks), tell)
    return _collect_counts(counts, map(count_shard, tasks), tell)


def split_shards(bed: Bed, size: int = SHARD_BYTES) -> list[tuple[int, int]]:
    step = max(1, size // bed.stride)
    return [(first, min(first + step, bed.snps)) for first in range(0, bed.snps, step)]


def count_shard(task: tuple[Bed, Groups, int, int]) -> tuple[int, Array]:
    bed, groups, first, last = task
    return first, count_rows(bed.rows(first, last), groups)


def _collect_counts(
    counts: Array, parts: Iterator[tuple[int, Array]], progress: Progress | None
) -> Array:
    done = 0
    for first, part in parts:
        counts[first : first + len(part)] = part
        done += len(part)
        if progress is not None:
            progress(done, len(counts))
    return counts


def _worker_count(bed: Bed, processes: int | None) -> int:
    if processes is None:
        size = bed.snps * bed.stride
        return 1 if size < ONE_PROCESS else os.cpu_count() or 1
    return read_whole(processes, "processes", 1)


PUBLIC_COLUMNS = ("CHR", "SNP", "BP", "A1", "A2")
GENOTYPE_COUNT_COLUMNS = ("CASE_0", "CASE_1", "CASE_2", "CONTROL_0", "CONTROL_1", "CONTROL_2")
"""Columns of a table of counts: people with 0, 1 and 2 copies of A1."""
COUNT_TABLE_SUFFIXES = (".tsv", ".txt")
VARIANT_SUFFIXES = (".vcf", ".vcf.gz", ".bcf")


@dataclass(frozen=True, eq=False)
class Study:
    """Genotype counts (SNPs × 6) of `cases` and `controls`.

    Attributes:
        left_out: how many SNPs were not counted.
        others: SNPs × 3, people who were genotyped and are neither cases nor controls, and
            `unlabelled` is how many there are: a budget for genomes is theirs too.
        related: the families, where the file says that some people are relatives.
    """

    snps: Snps
    counts: Array
    cases: int
    controls: int
    left_out: int = 0
    others: Array | None = None
    unlabelled: int = 0
    related: Families | None = None

    def __post_init__(self) -> None:
        check_instance(self.snps, Snps, "snps", "Snps")
        table = read_counts(self.counts)
        check_sizes(self.cases, self.controls)
        missing_genotypes(table, self.cases, self.controls)
        if len(table) != len(self.snps):
            message = f"there are {len(self.snps)} SNPs and {len(table)} rows of counts"
            raise InvalidInput(message, field="counts", value=len(table))
        object.__setattr__(self, "counts", table)

    @property
    def people(self) -> int:
        return self.cases + self.controls + self.unlabelled

    def genotyped(self) -> Array:
        """SNPs × 3: people with 0, 1 and 2 copies of A1, whatever their phenotype."""
        both: Array = self.counts[:, :3] + self.counts[:, 3:]
        return both if self.others is None else both + self.others


def read_study(
    path: str | Path,
    phenotypes: str | Path | None = None,
    *,
    processes: int | None = None,
    leave_out_no_sex: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Read a study: PLINK's .bed, .bim and .fam, a VCF file, or a table of counts (.tsv).

    SNPs on chromosomes that some people have once (X, Y, mitochondrial) are left out, and variants
    of a VCF file with several alternate alleles.
    """
    file = read_path(path, "study")
    name = file.name.lower()
    if name.endswith(COUNT_TABLE_SUFFIXES):
        if phenotypes is not None:
            message = "a table of counts needs no phenotype file: it has cases and controls already"
            raise InvalidInput(message, field="phenotype file", value=phenotypes)
        return read_table(file)
    if name.endswith(VARIANT_SUFFIXES):
        if phenotypes is None:
            message = f"{file.name} is a VCF file, which does not say who is a case"
            raise InvalidInput(message, field="phenotype file", hint="give a phenotype file")
        snps, counts, groups, left_out = count_vcf(path, phenotypes)
        unlabelled = groups.people - sum(groups.sizes)
        found = Study(
            snps, counts[:, :6], *groups.sizes, left_out, counts[:, 6:], unlabelled=unlabelled
        )
        return _keep_diploid(found)
    refuse_other_formats(path)
    snps = read_bim(sibling_path(path, ".bim"))
    bed, groups = open_study(path, phenotypes, leave_out_no_sex)
    counts = count_open(bed, groups, processes=processes, progress=progress)
    found = Study(snps, counts, *groups.sizes, related=groups.related)
    rest = ~(groups.cases | groups.controls)
    if rest.any():
        nobody = np.zeros(len(rest), dtype=bool)
        others = count_open(bed, Groups(rest, nobody), processes=processes)[:, :3]
        found = replace(found, others=others, unlabelled=int(rest.sum()))
    return _keep_diploid(found)


def _keep_diploid(study: Study) -> Study:
    kept = study.snps.autosomal()
    if kept.all():
        return study
    indices = np.flatnonzero(kept)
    return replace(
        study,
        snps=study.snps.take(indices),
        counts=study.counts[indices],
        others=None if study.others is None else study.others[indices],
        left_out=study.left_out + int((~kept).sum()),
    )


def read_table(path: Path) -> Study:
    """Read a table of counts: a header line with CHR SNP BP A1 A2 and the six counts, in any order
    and among other columns; before it, perhaps, a line `# cases 500 controls 480`, which is needed
    where genotypes are missing."""
    lines = read_text(path, path.name, MAX_STUDY_BYTES).splitlines()
    sizes = _read_sizes(lines[0], path.name) if lines and lines[0].startswith("#") else None
    rows = [line.split() for line in lines[sizes is not None :] if line.strip()]
    header = rows[0] if rows else []
    wanted = (*PUBLIC_COLUMNS, *GENOTYPE_COUNT_COLUMNS)
    if missing := [column for column in wanted if column not in header]:
        message = f"the header of {path.name} has no column {missing[0]}"
        raise InvalidInput(message, field=path.name, value=missing[0])
    if any(len(row) != len(header) for row in rows):
        message = f"some lines of {path.name} do not have the {len(header)} columns of its header"
        raise InvalidInput(message, field=path.name)
    at = [header.index(column) for column in wanted]
    columns = [[row[place] for row in rows[1:]] for place in at]
    chromosome, name, position, a1, a2 = columns[:5]
    try:
        positions = np.array(list(map(int, position)), np.int64)
        counts = np.array([list(map(int, column)) for column in columns[5:]], np.int64).T
    except (ValueError, OverflowError):
        message = f"some counts or positions in {path.name} are not whole numbers"
        raise InvalidInput(message, field=path.name) from None
    counts = read_counts(counts.reshape(-1, 6))
    if sizes is None:
        sizes = _constant_sizes(counts, path.name)
    return _keep_diploid(Study(Snps(chromosome, name, positions, a1, a2), counts, *sizes))


def write_table(study: Study, path: Path) -> None:
    """Write the exact counts of a study, for `read_table`. They are private."""
    columns = (*study.snps.columns(), *study.counts.T.tolist())
    with create_file(path, "--save", private=True) as file:
        file.write(f"# cases {study.cases} controls {study.controls}\n")
        file.write("\t".join((*PUBLIC_COLUMNS, *GENOTYPE_COUNT_COLUMNS)) + "\n")
        line = "\t".join(["%s"] * len(columns)) + "\n"
        file.writelines(line % row for row in zip(*columns, strict=True))


def _read_sizes(line: str, name: str) -> tuple[int, int]:
    words = line.lstrip("#").split()
    if len(words) == 4 and words[::2] == ["cases", "controls"]:
        with contextlib.suppress(ValueError):
            return int(words[1]), int(words[3])
    message = f"the first line of {name} is {line[:40]!r}"
    raise InvalidInput(
        message, field=name, value=line[:40], hint="write it like '# cases 500 controls 480'"
    )


def _constant_sizes(counts: Array, name: str) -> tuple[int, int]:
    cases, controls = counts[:, :3].sum(axis=1), counts[:, 3:].sum(axis=1)
    if not len(counts) or (cases != cases[0]).any() or (controls != controls[0]).any():
        message = (
            f"{name} does not say how many people the study has, and not every SNP has a genotype "
            "for everybody"
        )
        hint = "add a first line such as '# cases 500 controls 480'"
        raise InvalidInput(message, field=name, hint=hint)
    return int(cases[0]), int(controls[0])


def count_bed_spark(
    path: str | Path,
    session: Any,
    phenotypes: str | Path | None = None,
    *,
    leave_out_no_sex: bool = False,
    shard_bytes: int = SHARD_BYTES,
) -> Array:
    """Genotype counts of a PLINK study (SNPs × 6), by the executors of a Spark session."""
    if not hasattr(session, "sparkContext"):
        raise invalid_value("session", "a SparkSession", type(session).__name__)
    bed, groups = open_study(Path(path).resolve(), phenotypes, leave_out_no_sex)
    context = session.sparkContext
    ranges = split_shards(bed, read_whole(shard_bytes, "shard_bytes", 1))
    shared = context.broadcast((bed, groups))

    def count(part: tuple[int, int]) -> tuple[int, Array]:
        file, people = shared.value
        return count_shard((file, people, *part))

    result = context.parallelize(ranges, max(1, len(ranges))).map(count).collect()
    shared.unpersist()
    return np.concatenate([part for _, part in sorted(result, key=lambda each: each[0])])


VARIANT_READER_LIMITS = TaskLimits(7 * 86400.0, 8 << 30)
"""A file may be long, and what is kept of it is some bytes a variant."""


def count_vcf(path: str | Path, phenotypes: str | Path) -> tuple[Snps, Array, Groups, int]:
    """(SNPs, counts SNPs × 9 of cases, controls and others, the groups, variants left out)."""
    require_extras("vcf")
    file = Path(path)
    file.open("rb").close()  # a missing file is reported as one
    try:
        run = partial(isolation.run_isolated, limits=VARIANT_READER_LIMITS)
        groups = sample_groups(run(binary_readers.vcf_samples, str(file)), phenotypes)
        labels = groups.cases.tolist(), groups.controls.tolist()
        counted, result, left_out = run(binary_readers.vcf_counts, str(file), *labels)
    except (Crashed, OutOfMemory):
        message = f"{file.name} is not a VCF file that can be read"
        raise InvalidInput(message, field="study", value=file.name) from None
    counts = np.frombuffer(counted, dtype=np.int64).reshape(-1, 9).copy()
    chromosome, name, position, a1, a2 = ([row[column] for row in result] for column in range(5))
    snps = Snps(chromosome, name, np.array(position, dtype=np.int64), a1, a2)
    return snps, counts, groups, left_out
