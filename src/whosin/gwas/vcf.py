"""Counting a VCF file, through cyvcf2 (the extra `vcf`).

Contract: A1 is the alternate allele and A2 the reference, as PLINK reads a VCF with
`--keep-allele-order`; a genotype with an unknown allele is missing. Only variants with one
alternate allele have three genotypes; others are left out and their number is returned. The file is
read in a process of its own: a damaged one can crash its reader.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from whosin import isolation
from whosin.errors import Crashed, InvalidInput, OutOfMemory
from whosin.exact import Array
from whosin.extras import needs
from whosin.gwas.people import sample_groups
from whosin.gwas.snps import Snps
from whosin.isolation import Limits, readers

LIMITS = Limits(7 * 86400.0, 8 << 30)
"""A file may be long, and what is kept of it is some bytes a variant."""


def count_vcf(path: str | Path, phenotypes: str | Path) -> tuple[Snps, Array, tuple[int, int], int]:
    """(SNPs, counts SNPs × 6, sizes of the groups, variants left out)."""
    needs("vcf")
    file = Path(path)
    file.open("rb").close()  # a missing file is reported as one
    try:
        samples = isolation.run(readers.vcf_samples, str(file), limits=LIMITS)
        groups = sample_groups(samples, phenotypes)
        counted, result, left_out = isolation.run(
            readers.vcf_counts,
            str(file),
            groups.cases.tolist(),
            groups.controls.tolist(),
            limits=LIMITS,
        )
    except (Crashed, OutOfMemory):
        raise InvalidInput(file.name, "a VCF file", "one that its reader cannot read") from None
    counts = np.frombuffer(counted, dtype=np.int64).reshape(-1, 6).copy()
    chromosome, name, position, a1, a2 = ([row[column] for row in result] for column in range(5))
    snps = Snps(chromosome, name, np.array(position, dtype=np.int64), a1, a2)
    return snps, counts, groups.sizes, left_out
