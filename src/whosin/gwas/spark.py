"""Counting a .bed file over Spark, with the same kernel and the same shards.

Contract: equal to `count_bed`. Executors open the file themselves, so its path must be one that
they all can read (a shared disk, or local mode); only ranges travel to them and counts back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.gwas.bed import beside, open_bed
from whosin.gwas.counting import SHARD_BYTES, count_shard, shards
from whosin.gwas.people import read_groups
from whosin.gwas.snps import count_lines
from whosin.validation import whole


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
        raise InvalidInput("session", "a SparkSession", type(session).__name__)
    groups = read_groups(beside(path, ".fam"), phenotypes, leave_out_no_sex)
    bed = open_bed(Path(path).resolve(), groups.people, count_lines(beside(path, ".bim")))
    context = session.sparkContext
    ranges = shards(bed, whole(shard_bytes, "shard_bytes", 1))
    shared = context.broadcast((bed, groups))

    def count(part: tuple[int, int]) -> tuple[int, Array]:
        file, people = shared.value
        return count_shard((file, people, *part))

    result = context.parallelize(ranges, max(1, len(ranges))).map(count).collect()
    shared.unpersist()
    return np.concatenate([part for _, part in sorted(result, key=lambda each: each[0])])
