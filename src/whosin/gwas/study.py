"""A study: its SNPs, genotype counts and sizes of groups, from whatever file holds them.

Contract: `counts` are exact and private; SNPs and sizes are public. Rows hold at most `cases` and
`controls` people, fewer where genotypes are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whosin.documents import MOST_STUDY, read_text
from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.gwas.bed import beside, open_bed
from whosin.gwas.counting import count_open
from whosin.gwas.people import check_sizes, read_groups
from whosin.gwas.reading import Progress, instance
from whosin.gwas.snps import Snps, read_bim
from whosin.gwas.tables import complete, read_counts
from whosin.validation import path_of

PUBLIC = ("CHR", "SNP", "BP", "A1", "A2")
COUNTS = ("CASE_0", "CASE_1", "CASE_2", "CONTROL_0", "CONTROL_1", "CONTROL_2")
"""Columns of a table of counts: people with 0, 1 and 2 copies of A1."""
TABLES = (".tsv", ".txt")
VARIANTS = (".vcf", ".vcf.gz", ".bcf")


@dataclass(frozen=True, eq=False)
class Study:
    """Genotype counts (SNPs × 6) of `cases` and `controls`; `left_out` SNPs were not counted."""

    snps: Snps
    counts: Array
    cases: int
    controls: int
    left_out: int = 0

    def __post_init__(self) -> None:
        instance(self.snps, Snps, "snps", "Snps")
        table = read_counts(self.counts)
        check_sizes(self.cases, self.controls)
        complete(table, self.cases, self.controls)
        if len(table) != len(self.snps):
            raise InvalidInput("counts", f"one row for each of {len(self.snps)} SNPs", len(table))
        object.__setattr__(self, "counts", table)

    def complete(self) -> Array:
        """Counts of one public size, a missing genotype read as no copy of A1."""
        return complete(self.counts, self.cases, self.controls)


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
    file = path_of(path, "study")
    name = file.name.lower()
    if name.endswith(TABLES):
        if phenotypes is not None:
            raise InvalidInput("phenotype file", "left out with a table of counts", phenotypes)
        return read_table(file)
    if name.endswith(VARIANTS):
        from whosin.gwas.vcf import count_vcf

        if phenotypes is None:
            raise InvalidInput("phenotype file", "given with a VCF file, which has none", "nothing")
        snps, counts, sizes, left_out = count_vcf(path, phenotypes)
        return _diploid(snps, counts, sizes, left_out)
    groups = read_groups(beside(path, ".fam"), phenotypes, leave_out_no_sex)
    snps = read_bim(beside(path, ".bim"))
    bed = open_bed(path, groups.people, len(snps))
    return _diploid(
        snps, count_open(bed, groups, processes=processes, progress=progress), groups.sizes, 0
    )


def _diploid(snps: Snps, counts: Array, sizes: tuple[int, int], left_out: int) -> Study:
    kept = snps.autosomal()
    if kept.all():
        return Study(snps, counts, *sizes, left_out)
    indices = np.flatnonzero(kept)
    return Study(snps.take(indices), counts[indices], *sizes, left_out + int((~kept).sum()))


def read_table(path: Path) -> Study:
    """Read a table of counts: a header line with CHR SNP BP A1 A2 and the six counts, in any order
    and among other columns; before it, perhaps, a line `# cases 500 controls 480`, which is needed
    where genotypes are missing."""
    lines = read_text(path, path.name, MOST_STUDY).splitlines()
    sizes = _sizes(lines[0], path.name) if lines and lines[0].startswith("#") else None
    rows = [line.split() for line in lines[sizes is not None :] if line.strip()]
    header = rows[0] if rows else []
    missing = [column for column in (*PUBLIC, *COUNTS) if column not in header]
    if missing:
        accepted = f"one that has the column {missing[0]}"
        raise InvalidInput(f"header of {path.name}", accepted, "none")
    if any(len(row) != len(header) for row in rows):
        accepted = f"text with {len(header)} columns in every line"
        raise InvalidInput(path.name, accepted, "another number")
    where = {column: header.index(column) for column in (*PUBLIC, *COUNTS)}
    chromosome, name, position, a1, a2 = ([row[where[c]] for row in rows[1:]] for c in PUBLIC)
    try:
        positions = np.array([int(word) for word in position], dtype=np.int64)
        counts = np.array([[int(row[where[c]]) for c in COUNTS] for row in rows[1:]], np.int64)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"counts and positions in {path.name}", "whole numbers", "others"
        ) from None
    counts = read_counts(counts.reshape(-1, 6))
    if sizes is None:
        sizes = _constant_sizes(counts, path.name)
    return _diploid(Snps(chromosome, name, positions, a1, a2), counts, sizes, 0)


def write_table(study: Study, path: Path) -> None:
    """Write the exact counts of a study, for `read_table`. They are private."""
    columns = (*study.snps.columns(), *study.counts.T.tolist())
    with path.open("w", encoding="utf-8") as file:
        file.write(f"# cases {study.cases} controls {study.controls}\n")
        file.write("\t".join((*PUBLIC, *COUNTS)) + "\n")
        line = "\t".join(["%s"] * len(columns)) + "\n"
        file.writelines(line % row for row in zip(*columns, strict=True))


def _sizes(line: str, name: str) -> tuple[int, int]:
    words = line.lstrip("#").split()
    if len(words) == 4 and words[0] == "cases" and words[2] == "controls":
        try:
            return int(words[1]), int(words[3])
        except ValueError:
            pass
    raise InvalidInput(f"first line of {name}", "like '# cases 500 controls 480'", repr(line[:40]))


def _constant_sizes(counts: Array, name: str) -> tuple[int, int]:
    cases, controls = counts[:, :3].sum(axis=1), counts[:, 3:].sum(axis=1)
    if not len(counts) or (cases != cases[0]).any() or (controls != controls[0]).any():
        wanted = "'# cases … controls …', since not every SNP has a genotype for everybody"
        raise InvalidInput(f"first line of {name}", wanted, "none")
    return int(cases[0]), int(controls[0])
