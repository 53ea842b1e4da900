"""A study as a budget is bound to it: see `whosin.ledger.binding`.

Contract: the numbers of cases and controls and the list of SNPs are public and kept as they are;
the counts are recognised by a fingerprint, which the ledger seals. It is the same in whatever file
the study lies and in whatever order its SNPs are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from whosin.gwas.study import Study
from whosin.ledger.binding import Binding

ENTITY = "person"
DIGEST_LETTERS = 16
"""Digits of a digest that people see."""


def binding_of(study: Study) -> Binding:
    """What a budget for a study is bound to."""
    public = study.snps.columns()
    listed = f"{len(study.snps)} of digest {_digest(zip(*public, strict=True))[:DIGEST_LETTERS]}"
    fixed = {"cases": str(study.cases), "controls": str(study.controls), "SNPs": listed}
    counted = _digest(zip(*public, *study.counts.T.tolist(), strict=True))
    return Binding(
        entity=ENTITY,
        domains={name: {"values": [value]} for name, value in fixed.items()},
        source={"rows": f"{study.cases} {study.controls} {counted}"},
    )


def _digest(lines: Iterable[tuple[object, ...]]) -> str:
    """A digest of lines in any order: how many there are, and the sum of their digests."""
    total = many = 0
    for line in lines:
        text = "\x1f".join(map(str, line)).encode("utf-8", "surrogatepass")
        total += int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
        many += 1
    return hashlib.sha256(f"{many} {total}".encode()).hexdigest()
