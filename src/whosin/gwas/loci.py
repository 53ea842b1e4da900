"""Loci: sets of SNPs that are chosen as one, from a public map or from windows along the genome.

SNPs that lie close together are inherited together, and compete for being chosen where one of them
is enough. A locus has the largest score of its SNPs: a neighbour moves it by at most as much as any
of them, and the same way if all move the same way. The loci are public, and may overlap.

A map has lines of chromosome, first and last position and name (as PLINK's lists of genes), or of a
SNP and the name of its locus. SNPs in no locus are not chosen.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whosin.documents import MAX_STUDY_BYTES, read_words
from whosin.errors import InvalidInput, invalid_value, read_path, spell
from whosin.exact import Array, rational
from whosin.gwas.people import Snps

MAX_WINDOW_KB = 1_000_000


@dataclass(frozen=True, eq=False)
class Loci:
    """SNPs by locus: those of locus i are `places[starts[i]:starts[i + 1]]`.

    Attributes:
        names: of the loci.
        places: indices of SNPs.
        starts: one more than there are loci.
    """

    names: tuple[str, ...]
    places: Array
    starts: Array

    def __len__(self) -> int:
        return len(self.names)

    def largest(self, scores: Array) -> Array:
        """The largest score in each locus."""
        return np.asarray(np.maximum.reduceat(scores[self.places], self.starts[:-1]))

    def digest(self) -> str:
        """Names the loci and their SNPs, for the ledger."""
        parts = "\x1f".join(self.names).encode("utf-8", "surrogatepass")
        numbers = self.places.astype(np.int64).tobytes() + self.starts.astype(np.int64).tobytes()
        return hashlib.sha256(parts + b"\0" + numbers).hexdigest()[:16]

    def members(self, locus: int) -> Array:
        return np.asarray(self.places[self.starts[locus] : self.starts[locus + 1]])


def window_loci(snps: Snps, kilobases: object) -> Loci:
    """Windows of so many kilobases, from the start of each chromosome."""
    width = rational(kilobases, "--clump-kb") * 1000
    if not 0 < width <= MAX_WINDOW_KB * 1000:
        raise invalid_value("--clump-kb", f"above 0 and at most {spell(MAX_WINDOW_KB)}", kilobases)
    whole = max(1, round(width))
    numbers = (snps.position // whole).tolist()
    keys = list(zip(snps.chromosome, numbers, strict=True))
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    names = [f"{c}:{n * whole}-{(n + 1) * whole - 1}" for c, n in order]
    pairs = [(order[key], place) for place, key in enumerate(keys)]
    return _collect_loci(names, pairs)


def read_loci(path: str | Path, snps: Snps) -> Loci:
    """The loci of a map file that have SNPs in this study."""
    file = read_path(path, "--loci")
    rows = [row for row in read_words(file, MAX_STUDY_BYTES) if not row[0].startswith("#")]
    lengths = {len(row) for row in rows}
    if lengths == {2}:
        pairs, names = _named_members(rows, snps, file)
    elif lengths == {4}:
        pairs, names = _interval_members(rows, snps, file)
    else:
        message = f"the lines of {file.name} need CHR START END NAME, or a SNP and its locus"
        raise InvalidInput(message, field="--loci", value=file.name)
    if not pairs:
        message = f"no SNP of the study lies in a locus of {file.name}"
        hint = "see that chromosomes have the same names and positions the same genome build"
        raise InvalidInput(message, field="--loci", value=file.name, hint=hint)
    return _collect_loci(names, pairs)


def _named_members(
    rows: list[list[str]], snps: Snps, file: Path
) -> tuple[list[tuple[int, int]], list[str]]:
    places = {name: place for place, name in enumerate(snps.name)}
    if rows and rows[0][0].upper() == "SNP":
        rows = rows[1:]
    absent = sum(row[0] not in places for row in rows)
    if absent:
        message = f"{file.name} names {spell(absent)} SNPs that the study does not have"
        raise InvalidInput(message, field="--loci", value=absent, hint="leave them out of the map")
    order = {name: number for number, name in enumerate(dict.fromkeys(row[1] for row in rows))}
    return [(order[row[1]], places[row[0]]) for row in rows], list(order)


def _interval_members(
    rows: list[list[str]], snps: Snps, file: Path
) -> tuple[list[tuple[int, int]], list[str]]:
    try:
        ends = [(int(row[1]), int(row[2])) for row in rows]
    except ValueError:
        message = f"some positions in {file.name} are not whole numbers"
        raise InvalidInput(message, field="--loci", value=file.name) from None
    if any(first > last for first, last in ends):
        message = f"some loci of {file.name} end before they begin"
        raise InvalidInput(message, field="--loci", value=file.name)
    chromosomes = np.array(snps.chromosome)
    own: dict[str, tuple[Array, Array]] = {}
    for name in set(snps.chromosome):
        where = np.flatnonzero(chromosomes == name)
        order = where[np.argsort(snps.position[where], kind="stable")]
        own[name.upper().removeprefix("CHR")] = order, snps.position[order]
    pairs = []
    nothing = np.zeros(0, dtype=np.int64)
    for number, (row, (first, last)) in enumerate(zip(rows, ends, strict=True)):
        order, at = own.get(row[0].upper().removeprefix("CHR"), (nothing, nothing))
        inside = order[np.searchsorted(at, first) : np.searchsorted(at, last, side="right")]
        pairs += [(number, int(place)) for place in inside]
    return pairs, [row[3] for row in rows]


def _collect_loci(names: list[str], pairs: list[tuple[int, int]]) -> Loci:
    """Loci that have SNPs, in the order of their names."""
    ordered = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
    kept, starts = np.unique(ordered[:, 0], return_index=True)
    ends = np.append(starts, len(ordered))
    return Loci(tuple(names[number] for number in kept), ordered[:, 1], ends)
