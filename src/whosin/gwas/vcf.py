"""Counting a VCF file, through cyvcf2 (the extra `vcf`).

Contract: A1 is the alternate allele and A2 the reference, as PLINK reads a VCF with
`--keep-allele-order`; a genotype with an unknown allele is missing. Only variants with one
alternate allele have three genotypes; others are left out and their number is returned.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array
from whosin.gwas.people import sample_groups
from whosin.gwas.snps import Snps

REFERENCE, HETEROZYGOUS, ALTERNATE = 0, 1, 2
"""cyvcf2's genotype types with gts012; 3 is unknown."""


def count_vcf(path: str | Path, phenotypes: str | Path) -> tuple[Snps, Array, tuple[int, int], int]:
    """(SNPs, counts SNPs × 6, sizes of the groups, variants left out)."""
    try:
        from cyvcf2 import VCF
    except ImportError:
        raise Unsupported("reading VCF needs cyvcf2: install whosin with the extra 'vcf'") from None
    place = Path(path)
    place.open("rb").close()  # a missing file is reported as one
    try:
        file = VCF(str(place), gts012=True, strict_gt=True)
    except Exception:
        raise InvalidInput(place.name, "a VCF file", "something else") from None
    groups = sample_groups(list(file.samples), phenotypes)
    rows: list[Array] = []
    found: list[tuple[str, str, int, str, str]] = []
    left_out = 0
    for variant in file:
        if len(variant.ALT) != 1:
            left_out += 1
            continue
        types = variant.gt_types
        rows.append(
            np.array(
                [
                    np.count_nonzero(types[group] == kind)
                    for group in (groups.cases, groups.controls)
                    for kind in (REFERENCE, HETEROZYGOUS, ALTERNATE)
                ]
            )
        )
        name = variant.ID or f"{variant.CHROM}:{variant.POS}"
        found.append((variant.CHROM, name, variant.POS, variant.ALT[0], variant.REF))
    counts = np.array(rows, dtype=np.int64).reshape(-1, 6)
    snps = Snps(
        [row[0] for row in found],
        [row[1] for row in found],
        np.array([row[2] for row in found], dtype=np.int64),
        [row[3] for row in found],
        [row[4] for row in found],
    )
    return snps, counts, groups.sizes, left_out
