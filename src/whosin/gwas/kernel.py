"""Genotype counts of cases and controls, by popcounts of packed words.

Contract: one kernel for files, processes and Spark; counts are exact, whatever the padding bits
hold. With h and l the high and low bit of a genotype: both set means no copy of A1, h alone one,
l alone missing, neither two. So three popcounts per group are enough, and the controls' are
those of everyone who is counted less the cases'.

A row is cut in two halves and their bits are merged, so that one word holds the low (or high) bits
of 64 people: half as many words to mask and to count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from whosin.exact import Array


CHUNK_BYTES = 1 << 19
"""Rows are handled in chunks that stay in the second-level cache."""
LOW, HIGH = np.uint64(0x5555_5555_5555_5555), np.uint64(0xAAAA_AAAA_AAAA_AAAA)
ONE = np.uint64(1)
WIDEST = 1000
"""How many popcounts, of at most 64 each, add up in 16 bits."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Who is a case and who is a control; nobody is both, and others are left out."""

    cases: Array
    controls: Array

    @property
    def people(self) -> int:
        return len(self.cases)

    @property
    def sizes(self) -> tuple[int, int]:
        return int(self.cases.sum()), int(self.controls.sum())


def count_rows(rows: Array, groups: Groups) -> Array:
    """Count SNPs × 6: people with 0, 1, 2 copies of A1 among cases, then among controls."""
    snps, stride = rows.shape
    counts = np.empty((snps, 6), dtype=np.int64)
    half = -(-stride // 16)
    chunk = max(1, min(CHUNK_BYTES // (16 * half), snps))
    work = _Work(chunk, half, groups)
    for first in range(0, snps, chunk):
        part = rows[first : first + chunk]
        counts[first : first + len(part)] = work.count(part)
    return counts


class _Work:
    """Buffers of one worker; every pass writes into memory that is already in the cache."""

    def __init__(self, chunk: int, half: int, groups: Groups) -> None:
        self.half, self.sizes = half, groups.sizes
        counted = groups.cases | groups.controls
        self.everyone = bool(counted.all()) and groups.people % 4 == 0
        self.cases = np.tile(_mask(groups.cases, half), chunk)
        self.counted = self.cases if self.everyone else np.tile(_mask(counted, half), chunk)
        self.front = np.zeros((chunk, 8 * half), dtype=np.uint8)
        self.back = np.zeros((chunk, 8 * half), dtype=np.uint8)
        self.low = np.empty(chunk * half, dtype=np.uint64)
        self.other = np.empty_like(self.low)
        self.ones = np.empty((6, chunk * half), dtype=np.uint8)

    def count(self, part: Array) -> Array:
        snps, cut = len(part), 8 * self.half
        self.front[:snps, : min(cut, part.shape[1])] = part[:, :cut]
        self.back[:snps, : max(part.shape[1] - cut, 0)] = part[:, cut:]
        used = snps * self.half
        front, back = (b.view(np.uint64).reshape(-1)[:used] for b in (self.front, self.back))
        low, other, ones = self.low[:used], self.other[:used], self.ones[:, :used]
        np.left_shift(back, ONE, out=low)
        _merge(front, low, HIGH, other)
        np.right_shift(front, ONE, out=front)
        _merge(back, front, LOW, low)
        low, high, both = other, low, front
        if not self.everyone:
            np.bitwise_and(low, self.counted[:used], out=low)
            np.bitwise_and(high, self.counted[:used], out=high)
        np.bitwise_and(low, high, out=both)
        for index, bits in enumerate((low, high, both)):
            np.bitwise_count(bits, out=ones[index])
            np.bitwise_and(bits, self.cases[:used], out=bits)
            np.bitwise_count(bits, out=ones[index + 3])
        sums = _row_sums(ones, snps)
        cases = _genotypes(sums[3:], self.sizes[0])
        total = _genotypes(sums[:3], sum(self.sizes))
        return np.concatenate([cases, total - cases], axis=1)


def _merge(base: Array, other: Array, where: np.uint64, out: Array) -> None:
    """The bits of `other` where the mask is set, those of `base` elsewhere."""
    np.bitwise_xor(base, other, out=out)
    np.bitwise_and(out, where, out=out)
    np.bitwise_xor(out, base, out=out)


def _genotypes(sums: Array, size: int) -> Array:
    """(0, 1, 2 copies) from the numbers of low bits, of high bits and of both."""
    low, high, both = sums
    return np.stack([both, high - both, size - low - high + both], axis=1)


def _row_sums(ones: Array, snps: int) -> Array:
    """Sums of popcounts over each row."""
    table = ones.reshape(6, snps, -1)
    total = np.zeros((6, snps), dtype=np.int64)
    for first in range(0, table.shape[2], WIDEST):
        total += np.add.reduce(table[:, :, first : first + WIDEST], axis=2, dtype=np.uint16)
    return total


def _mask(members: Array, half: int) -> Array:
    """Members' bits in merged words: those of the back half one bit higher. Made from bytes, so
    that the order of bytes in a word does not matter."""
    bits = np.zeros(half * 64, dtype=np.uint8)
    bits[: len(members)] = members
    quads = bits.reshape(2, -1, 4) << np.arange(0, 8, 2, dtype=np.uint8)
    front, back = np.bitwise_or.reduce(quads, axis=2)
    mask: Array = (front | back << 1).view(np.uint64)
    return mask
