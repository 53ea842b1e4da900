"""Readers of foreign binary formats, for processes of their own.

Whatever a damaged file does to a library (errors of all kinds, crashes, hangs) happens in another
process; what comes back is plain data, or `InvalidInput` without a word of the file. This module
imports its libraries when it is called and nothing of ours, so that it starts quickly.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput

REFERENCE, HETEROZYGOUS, ALTERNATE = 0, 1, 2
"""cyvcf2's genotype types with gts012; 3 is unknown."""


def check_arrow(path: str) -> None:
    """Read an Arrow file whole and see that every buffer is what its type says: a reader trusts
    lengths and offsets. Whether texts are UTF-8 is not looked at, since that depends on rows."""
    import pyarrow as pa

    try:
        with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
            for number in range(reader.num_record_batches):
                for column in reader.get_batch(number).columns:
                    _column_bytes(column, pa).validate(full=True)
    except Exception:
        message = f"{Path(path).name} is damaged, or is not an Arrow file"
        raise InvalidInput(message, field="table", value=Path(path).name) from None


def _column_bytes(column: Any, pa: Any) -> Any:
    kind = column.type
    if pa.types.is_string(kind):
        return column.view(pa.binary())
    if pa.types.is_large_string(kind):
        return column.view(pa.large_binary())
    if pa.types.is_dictionary(kind):
        column.indices.validate(full=True)
        values = _column_bytes(column.dictionary, pa)
        values.validate(full=True)
        return pa.DictionaryArray.from_arrays(column.indices, values)
    return column


def vcf_samples(path: str) -> list[str]:
    """The people of a VCF file."""
    try:
        return [str(name) for name in _read_vcf(path).samples]
    except Exception:
        raise _no_vcf(path) from None


def vcf_counts(
    path: str, cases: list[bool], controls: list[bool]
) -> tuple[bytes, list[tuple[str, str, int, str, str]], int]:
    """(counts of each variant as 9 whole numbers of 64 bits: three genotypes of cases, then of
    controls, then of others; chromosome, name, position, A1, A2 of each; variants left out)."""
    import numpy as np

    labelled = (np.array(cases, dtype=bool), np.array(controls, dtype=bool))
    groups = (*labelled, ~(labelled[0] | labelled[1]))
    kinds = (REFERENCE, HETEROZYGOUS, ALTERNATE)
    counts, snps, left_out = array("q"), [], 0
    try:
        for variant in _read_vcf(path):
            if len(variant.ALT) != 1:
                left_out += 1
                continue
            types = variant.gt_types
            counts.extend(int(np.count_nonzero(types[g] == kind)) for g in groups for kind in kinds)
            name = variant.ID or f"{variant.CHROM}:{variant.POS}"
            position = int(variant.POS)
            snps.append((str(variant.CHROM), str(name), position, str(variant.ALT[0]), variant.REF))
        return counts.tobytes(), snps, left_out
    except Exception:
        raise _no_vcf(path) from None


def _read_vcf(path: str) -> Any:
    from cyvcf2 import VCF

    return VCF(path, gts012=True, strict_gt=True)


def _no_vcf(path: str) -> InvalidInput:
    return InvalidInput(f"{Path(path).name} is not a VCF file", field=Path(path).name)
