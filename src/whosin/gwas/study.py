"""A study from whatever file holds it: .bed, .pgen, VCF or tables of counts; counting in shards, on
Spark too.

`counts` are exact and private; SNPs and sizes are public. Rows hold at most `cases` and `controls`
people, fewer where genotypes are missing.

Counts are the same whatever the number of processes. A worker gets a range of SNPs and the groups,
never rows of the file; Spark runs the same shards. Its executors open the file themselves, so its
path must be one that they all can read (a shared disk, or local mode).

In a VCF file, read through cyvcf2 (the extra `vcf`), A1 is the alternate allele and A2 the
reference, as PLINK reads it with `--keep-allele-order`; a genotype with an unknown allele is
missing. Only variants with one alternate allele have three genotypes; others are left out and their
number is returned. The file is read in a process of its own: a damaged one can crash its reader.

*X*: a male has one copy of what lies outside the pseudo-autosomal regions. Files hold it as none or
two, and so it is counted (Clayton 2008): every person has one of three genotypes, so scores, counts
and their sensitivities for both relations are those of other SNPs. Two copies that are always equal
vary twice as much as two independent ones, so the sampling variance of a copy count on X is 1 + m
times as large, with m the share of males among cases and controls (`Study.variance_factors`). The
numbers of males are kept beside (`Study.haploid`), since PLINK's `--assoc` counts them once.
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
from whosin.errors import (
    Crashed,
    InvalidInput,
    OutOfMemory,
    invalid_value,
    read_path,
    read_whole,
    require_extras,
)
from whosin.exact import Array
from whosin.gwas.bed import Bed, Groups, count_rows, open_bed, refuse_other_formats, sibling_path
from whosin.gwas.people import (
    HAPLOID_CHROMOSOMES,
    X_CHROMOSOMES,
    KeepList,
    PersonName,
    Progress,
    Snps,
    StudyFilter,
    check_instance,
    check_progress,
    check_sizes,
    count_lines,
    missing_genotypes,
    read_bim,
    read_counts,
    read_people,
    sample_groups,
)
from whosin.gwas.pgen import Pgen, open_pgen, pgen_siblings
from whosin.gwas.relatives import Families, read_kinship
from whosin.isolation import TaskLimits
from whosin.plain_files import create_file

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
    path: str | Path, phenotypes: str | Path | None = None, leave_out_no_sex: bool = False
) -> tuple[Bed, Groups]:
    """A PLINK study's genotypes, checked, and who is a case or a control in it."""
    refuse_other_formats(path)
    groups = read_people(sibling_path(path, ".fam"), phenotypes, leave_out_no_sex)[1]
    return open_bed(path, groups.people, count_lines(sibling_path(path, ".bim"))), groups


def open_genotypes(
    path: str | Path,
    phenotypes: str | Path | None,
    leave_out_no_sex: bool = False,
    keep: KeepList = None,
) -> tuple[Bed | Pgen, Snps, Groups]:
    """The same of a .bed or a .pgen file, with its SNPs. Where both have the name, the .bed."""
    refuse_other_formats(path)
    groups = read_people(people_file(path), phenotypes, leave_out_no_sex, keep)[1]
    return *open_snps(path, groups.people), groups


def open_snps(path: str | Path, people: int) -> tuple[Bed | Pgen, Snps]:
    """Genotypes of so many people and their SNPs, whatever the phenotype."""
    refuse_other_formats(path)
    if is_pgen(path):
        return open_pgen(path, people)
    snps = read_bim(sibling_path(path, ".bim"))
    return open_bed(path, people, len(snps)), snps


@dataclass(frozen=True, eq=False)
class GenotypeView:
    """Genotypes of single people at some SNPs of a file; `names` are those SNPs."""

    file: Bed | Pgen
    names: Snps
    places: Array

    @property
    def snps(self) -> int:
        return len(self.places)

    def genotypes(self, snps: Array, people: Array | None = None) -> Array:
        """Copies of A1 (SNPs × people, int8), −1 where missing."""
        return self.file.genotypes(self.places[snps], people)


def open_view(
    path: str | Path, phenotypes: str | Path | None, filters: StudyFilter
) -> tuple[GenotypeView, Groups]:
    """The genotypes of a .bed or .pgen file at the SNPs that filters choose, without Y and MT."""
    file, snps, groups = open_genotypes(path, phenotypes, keep=filters.keep)
    chosen = np.flatnonzero(filters.chosen_snps(snps) & ~snps.on(HAPLOID_CHROMOSOMES))
    names = snps if len(chosen) == len(snps) else snps.take(chosen)
    return GenotypeView(file, names, chosen), groups


def is_pgen(path: str | Path) -> bool:
    """Whether a study is PLINK 2's: by its ending, or because there is no other file."""
    if str(path).endswith((".pgen", ".pvar", ".pvar.zst", ".psam")):
        return True
    return not sibling_path(path, ".bed").exists() and sibling_path(path, ".pgen").exists()


def people_file(path: str | Path) -> Path:
    """The file that names a study's people: .fam, or .psam beside a .pgen."""
    return pgen_siblings(path)[2] if is_pgen(path) else sibling_path(path, ".fam")


def replace_relatives(
    study: Study,
    path: str | Path,
    phenotypes: str | Path | None,
    kinship: str | Path | None,
    keep: KeepList = None,
) -> Study:
    """The study with the families of a kinship table, where one is given, not of its pedigree."""
    if kinship is None:
        return study
    names, groups = read_people(people_file(path), phenotypes, keep=keep)
    found = read_kinship(kinship, names, groups.cases | groups.controls)
    return replace(study, related=found)


def keep_first(
    path: str | Path,
    phenotypes: str | Path | None = None,
    kinship: str | Path | None = None,
    keep: KeepList = None,
) -> frozenset[PersonName]:
    """Whom to keep of a study: the first of every family in the order of the file, of those who
    have a phenotype, and everybody without relatives. Whose the phenotype is does not matter."""
    names, groups = read_people(people_file(path), phenotypes, keep=keep)
    counted = groups.cases | groups.controls
    found = groups.related if kinship is None else read_kinship(kinship, names, counted)
    kept = counted if found is None else counted & found.kept
    return frozenset(names[place] for place in np.flatnonzero(kept).tolist())


def count_open(
    bed: Bed, groups: Groups, *, processes: int | None = None, progress: Progress | None = None
) -> Array:
    tell, size = check_progress(progress), bed.snps * bed.stride
    workers = 1 if size < ONE_PROCESS else os.cpu_count() or 1
    if processes is not None:
        workers = read_whole(processes, "processes", 1)
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


def count_everybody(
    file: Bed | Pgen, groups: Groups, snps: Array | None = None, **how: Any
) -> Array:
    """SNPs × 9: people with 0, 1 and 2 copies of A1 among cases, controls and others.

    Args:
        snps: indices of SNPs; by default all of them.
        how: `processes` and `progress`.
    """
    if isinstance(file, Pgen):
        if how.get("processes") is not None:
            read_whole(how["processes"], "processes", 1)
        check_progress(how.get("progress"))
        return file.count_groups([groups.cases, groups.controls], snps, **how)
    rest = ~(groups.cases | groups.controls)
    others = Groups(rest, np.zeros(len(rest), dtype=bool))
    parts = [groups, others] if rest.any() else [groups]
    if snps is None:
        counts = [count_open(file, part, **how) for part in parts]
    else:
        rows = file.rows()
        step = max(1, SHARD_BYTES // file.stride)
        blocks = [np.asarray(rows[snps[at : at + step]]) for at in range(0, len(snps), step)]
        counts = [np.concatenate([count_rows(each, part) for each in blocks]) for part in parts]
    none = np.zeros((len(counts[0]), 3), dtype=np.int64)
    return np.concatenate([counts[0], counts[1][:, :3] if rest.any() else none], axis=1)


def split_shards(bed: Bed) -> list[tuple[int, int]]:
    step = max(1, SHARD_BYTES // bed.stride)
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


PUBLIC_COLUMNS = ("CHR", "SNP", "BP", "A1", "A2")
GENOTYPE_COUNT_COLUMNS = ("CASE_0", "CASE_1", "CASE_2", "CONTROL_0", "CONTROL_1", "CONTROL_2")
"""Columns of a table of counts: people with 0, 1 and 2 copies of A1."""
HAPLOID_COLUMNS = ("MALE_CASE_0", "MALE_CASE_1", "MALE_CONTROL_0", "MALE_CONTROL_1")
"""Further columns where there are SNPs on X: males among them, −1 on other chromosomes."""
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
        haploid: SNPs × 4, on X males with none and with one copy of A1 among cases, then among
            controls (of those in `counts`, where one copy counts as two); −1 on other chromosomes.
        males: how many males there are among cases and controls.
        origin: the study of which this one has some SNPs. A budget is bound to all of them.
    """

    snps: Snps
    counts: Array
    cases: int
    controls: int
    left_out: int = 0
    others: Array | None = None
    unlabelled: int = 0
    related: Families | None = None
    haploid: Array | None = None
    males: int = 0
    origin: Study | None = None

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

    def variance_factors(self) -> Array:
        """How many times larger the sampling variance of copies of A1 is than for two independent
        copies a person: 1 + m on X, with m the share of males, and 1 elsewhere."""
        factors = np.ones(len(self.snps))
        if self.haploid is not None:
            factors[self.haploid[:, 0] >= 0] += self.males / (self.cases + self.controls)
        return factors

    def alleles(self) -> Array:
        """SNPs × 4: copies of A1 and of A2 among cases, then among controls, where a male has one
        on X."""
        none, one, two, other_none, other_one, other_two = self.counts.T
        copies = np.stack(
            [one + 2 * two, one + 2 * none, other_one + 2 * other_two, other_one + 2 * other_none],
            axis=1,
        )
        if self.haploid is not None:
            copies -= np.maximum(self.haploid, 0)[:, [1, 0, 3, 2]]
        return copies

    def take(self, indices: Array) -> Study:
        """The study of some of its SNPs."""
        return replace(
            self,
            snps=self.snps.take(indices),
            counts=self.counts[indices],
            others=None if self.others is None else self.others[indices],
            haploid=None if self.haploid is None else self.haploid[indices],
        )


def read_study(
    path: str | Path,
    phenotypes: str | Path | None = None,
    *,
    processes: int | None = None,
    leave_out_no_sex: bool = False,
    progress: Progress | None = None,
    filters: StudyFilter | None = None,
) -> Study:
    """Read a study: PLINK's .bed, .bim and .fam, PLINK 2's .pgen, .pvar and .psam, a VCF file, or a
    table of counts (.tsv).

    Left out are SNPs on Y and on the mitochondrial chromosome, those on X where the file does not
    say who is male, and variants with several alternate alleles. `filters` choose people and SNPs.
    """
    file, chosen = read_path(path, "study"), filters or StudyFilter()
    name = file.name.lower()
    if name.endswith(COUNT_TABLE_SUFFIXES):
        for option, given in (("phenotype file", phenotypes), ("--keep", chosen.keep)):
            if given is not None:
                message = f"{file.name} has counts of cases and controls, and no single people"
                raise InvalidInput(message, field=option, value=given, hint="leave it out")
        return _filter_snps(read_table(file), chosen)
    if name.endswith(VARIANT_SUFFIXES):
        if phenotypes is None:
            message = f"{file.name} is a VCF file, which does not say who is a case"
            raise InvalidInput(message, field="phenotype file", hint="give a phenotype file")
        snps, counts, groups, left_out = count_vcf(path, phenotypes, chosen.keep)
        return _filter_snps(_make_study(snps, counts, groups, left_out), chosen)
    opened = open_genotypes(path, phenotypes, leave_out_no_sex, chosen.keep)
    return count_study(*opened, chosen, processes=processes, progress=progress)


def count_study(
    genotypes: Bed | Pgen,
    snps: Snps,
    groups: Groups,
    chosen: StudyFilter,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Study:
    """Count the SNPs of an open file, and keep those that are chosen."""
    counts = count_everybody(genotypes, groups, processes=processes, progress=progress)
    (on_x,) = np.nonzero(snps.x_linked(chosen.split_par))
    left_out = len(genotypes.alleles) - len(snps) if isinstance(genotypes, Pgen) else 0
    if not len(on_x) or groups.males is None:
        return _filter_snps(_make_study(snps, counts, groups, left_out), chosen)
    males = _count_males(genotypes, groups, groups.males, on_x)
    counts[on_x[:, None], HETEROZYGOUS_COLUMNS] -= males[:, HETEROZYGOUS_COLUMNS]
    haploid = np.full((len(snps), 4), -1, dtype=np.int64)
    haploid[on_x] = males[:, [0, 2, 3, 5]]
    made = _make_study(snps, counts, groups, left_out, haploid)
    known = (groups.cases | groups.controls) & groups.males
    return _filter_snps(replace(made, males=int(known.sum())), chosen)


HETEROZYGOUS_COLUMNS = np.array([1, 4, 7])
"""People with one copy of A1, of nine counts a SNP."""


def _count_males(file: Bed | Pgen, groups: Groups, males: Array, snps: Array) -> Array:
    """SNPs × 9, as `count_everybody`, of males alone."""
    cases, controls = groups.cases & males, groups.controls & males
    others = males & ~(groups.cases | groups.controls)
    if isinstance(file, Pgen):
        return file.count_groups([cases, controls, others], snps)[:, :9]
    rest = count_everybody(file, Groups(others, ~males), snps)[:, :3]
    return np.concatenate(
        [count_everybody(file, Groups(cases, controls), snps)[:, :6], rest], axis=1
    )


def _make_study(
    snps: Snps, counts: Array, groups: Groups, left_out: int, haploid: Array | None = None
) -> Study:
    """A study of counts (SNPs × 9), without the SNPs that males or some people have once."""
    unlabelled = groups.people - sum(groups.sizes)
    others = counts[:, 6:] if unlabelled else None
    sizes = groups.sizes
    found = Study(
        snps, counts[:, :6], *sizes, left_out, others, unlabelled, groups.related, haploid
    )
    return _keep_diploid(found)


def _filter_snps(study: Study, filters: StudyFilter) -> Study:
    chosen = filters.chosen_snps(study.snps)
    if chosen.all():
        return study
    return replace(study.take(np.flatnonzero(chosen)), origin=study)


def read_public_sizes(path: str | Path) -> tuple[int, int, int]:
    """How many cases, controls and SNPs a study has, without counting any genotype."""
    _, snps, groups = open_genotypes(path, None)
    return *groups.sizes, int((~_haploid_snps(snps, groups.males is not None)).sum())


def _haploid_snps(snps: Snps, males_known: bool) -> Array:
    """SNPs that everybody has once, or males where nobody says who is one."""
    gone = snps.on(HAPLOID_CHROMOSOMES)
    return gone if males_known else gone | snps.on(X_CHROMOSOMES)


def _keep_diploid(study: Study) -> Study:
    gone = _haploid_snps(study.snps, study.haploid is not None)
    if not gone.any():
        return study
    kept = study.take(np.flatnonzero(~gone))
    return replace(kept, left_out=study.left_out + int(gone.sum()))


def read_table(path: Path) -> Study:
    """Read a table of counts: a header line with CHR SNP BP A1 A2 and the six counts, in any order
    and among other columns; before it, perhaps, a line `# cases 500 controls 480`, which is needed
    where genotypes are missing."""
    lines = read_text(path, path.name, MAX_STUDY_BYTES).splitlines()
    sizes = _read_sizes(lines[0], path.name) if lines and lines[0].startswith("#") else None
    rows = [line.split() for line in lines[sizes is not None :] if line.strip()]
    header = rows[0] if rows else []
    wanted = [*PUBLIC_COLUMNS, *GENOTYPE_COUNT_COLUMNS]
    if missing := [column for column in wanted if column not in header]:
        message = f"the header of {path.name} has no column {missing[0]}"
        raise InvalidInput(message, field=path.name, value=missing[0])
    if any(len(row) != len(header) for row in rows):
        message = f"some lines of {path.name} do not have the {len(header)} columns of its header"
        raise InvalidInput(message, field=path.name)
    if sizes is not None and sizes[2] is not None and set(HAPLOID_COLUMNS) <= set(header):
        wanted += HAPLOID_COLUMNS
    at = [header.index(column) for column in wanted]
    columns = [[row[place] for row in rows[1:]] for place in at]
    chromosome, name, position, a1, a2 = columns[:5]
    try:
        positions = np.array(list(map(int, position)), np.int64)
        numbers = np.array([list(map(int, column)) for column in columns[5:]], np.int64).T
    except (ValueError, OverflowError):
        message = f"some counts or positions in {path.name} are not whole numbers"
        raise InvalidInput(message, field=path.name) from None
    numbers = numbers.reshape(-1, len(wanted) - len(PUBLIC_COLUMNS))
    counts = read_counts(numbers[:, :6])
    cases, controls, males = sizes or (*_constant_sizes(counts, path.name), None)
    snps = Snps(chromosome, name, positions, a1, a2)
    found = Study(snps, counts, cases, controls, males=males or 0)
    if numbers.shape[1] > 6:
        found = replace(found, haploid=_read_haploid(numbers[:, 6:], counts, path.name))
    return _keep_diploid(found)


def _read_haploid(haploid: Array, counts: Array, name: str) -> Array:
    """Males on X, of whom there are as many as counts allow, or −1 four times."""
    diploid = (haploid == -1).all(axis=1)
    fits = ((haploid >= 0) & (haploid <= counts[:, [0, 2, 3, 5]])).all(axis=1)
    if not (diploid | fits).all():
        message = f"{name} has more males with a genotype than people, or fewer than none"
        raise InvalidInput(message, field=name, hint="write -1 four times for SNPs not on X")
    return haploid


def write_table(study: Study, path: Path) -> None:
    """Write the exact counts of a study, for `read_table`. They are private."""
    sizes = f"# cases {study.cases} controls {study.controls}"
    names = [*PUBLIC_COLUMNS, *GENOTYPE_COUNT_COLUMNS]
    numbers = study.counts
    if study.haploid is not None:
        sizes, names = f"{sizes} males {study.males}", [*names, *HAPLOID_COLUMNS]
        numbers = np.concatenate([numbers, study.haploid], axis=1)
    with create_file(path, "--save", private=True) as file:
        file.write(f"{sizes}\n")
        file.write("\t".join(names) + "\n")
        line = "\t".join(["%s"] * len(names)) + "\n"
        for first in range(0, len(study.snps), TABLE_BLOCK_SNPS):
            block = np.arange(first, min(first + TABLE_BLOCK_SNPS, len(study.snps)))
            columns = (*study.snps.take(block).columns(), *numbers[block].T.tolist())
            file.writelines(line % row for row in zip(*columns, strict=True))


TABLE_BLOCK_SNPS = 1 << 16
"""SNPs that are written at a time: Python's numbers take ten times the memory of numpy's."""


def _read_sizes(line: str, name: str) -> tuple[int, int, int | None]:
    """(cases, controls, males where they are said)."""
    words = line.lstrip("#").split()
    if words[::2] in (["cases", "controls"], ["cases", "controls", "males"]):
        with contextlib.suppress(ValueError):
            cases, controls, *males = map(int, words[1::2])
            if not males or 0 <= males[0] <= cases + controls:
                return cases, controls, males[0] if males else None
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


def count_bed_spark(path: str | Path, session: Any, phenotypes: str | Path | None = None) -> Array:
    """Genotype counts of a PLINK study (SNPs × 6), by the executors of a Spark session."""
    if not hasattr(session, "sparkContext"):
        raise invalid_value("session", "a SparkSession", type(session).__name__)
    bed, groups = open_study(Path(path).resolve(), phenotypes)
    context = session.sparkContext
    ranges = split_shards(bed)
    shared = context.broadcast((bed, groups))

    def count(part: tuple[int, int]) -> tuple[int, Array]:
        file, people = shared.value
        return count_shard((file, people, *part))

    result = context.parallelize(ranges, max(1, len(ranges))).map(count).collect()
    shared.unpersist()
    return np.concatenate([part for _, part in sorted(result, key=lambda each: each[0])])


VARIANT_READER_LIMITS = TaskLimits(7 * 86400.0, 8 << 30)
"""A file may be long, and what is kept of it is some bytes a variant."""


def count_vcf(
    path: str | Path, phenotypes: str | Path, keep: KeepList = None
) -> tuple[Snps, Array, Groups, int]:
    """(SNPs, counts SNPs × 9 of cases, controls and others, the groups, variants left out)."""
    require_extras("vcf")
    file = Path(path)
    file.open("rb").close()  # a missing file is reported as one
    try:
        run = partial(isolation.run_isolated, limits=VARIANT_READER_LIMITS)
        groups = sample_groups(run(binary_readers.vcf_samples, str(file)), phenotypes, keep)
        labels = groups.cases.tolist(), groups.controls.tolist()
        counted, result, left_out = run(binary_readers.vcf_counts, str(file), *labels)
    except (Crashed, OutOfMemory):
        message = f"{file.name} is not a VCF file that can be read"
        raise InvalidInput(message, field="study", value=file.name) from None
    counts = np.frombuffer(counted, dtype=np.int64).reshape(-1, 9).copy()
    chromosome, name, position, a1, a2 = ([row[column] for row in result] for column in range(5))
    snps = Snps(chromosome, name, np.array(position, dtype=np.int64), a1, a2)
    return snps, counts, groups, left_out
