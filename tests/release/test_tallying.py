"""Counting packed rows: against a plain loop, in parts, and where this package is not."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from whosin.release import scan
from whosin.release.engines.spark_workers import tally_batches
from whosin.release.scan import make_row_counter, pack_bits

SHAPES = [
    ((3, 2, 5), ((0, 1), (2,))),
    ((1, 7), ((), (0,), (0, 1))),
    ((2**20, 2**21, 2**22, 3, 2**30), ((0,), (3,), (2, 3))),  # three packed numbers
]


def packed(sizes: tuple[int, ...], places: np.ndarray) -> list[np.ndarray]:
    bits = pack_bits(sizes)
    columns = [np.zeros(len(places), np.int64) for _ in range(bits[-1][0] + 1)]
    for each, (number, start) in enumerate(bits):
        columns[number] += places[:, each] << start
    return columns


def batches(columns: list[np.ndarray], *ends: int) -> list[pa.RecordBatch]:
    names = [str(number) for number in range(len(columns))]
    return [
        pa.RecordBatch.from_arrays([pa.array(part[first:last]) for part in columns], names=names)
        for first, last in zip((0, *ends), (*ends, len(columns[0])), strict=True)
    ]


@pytest.mark.parametrize(("sizes", "blocks"), SHAPES)
@pytest.mark.parametrize("batch", [1, 50, 10**6])
def test_cells_are_those_of_a_plain_loop(
    sizes: tuple[int, ...],
    blocks: tuple[tuple[int, ...], ...],
    batch: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scan, "BATCH_ROWS", batch)
    rng = np.random.default_rng(5)
    places = np.stack([rng.integers(0, size, 200) for size in sizes], axis=1)
    places[0], places[1] = 0, np.array(sizes) - 1
    found = make_row_counter(sizes, blocks)(batches(packed(sizes, places), 0, 3, 3, 150))
    start = 0
    for block in blocks:
        shape = [sizes[each] for each in block]
        cells = found[start : start + prod(shape)].reshape(shape)
        wanted = Counter(tuple(row) for row in places[:, list(block)].tolist())
        assert {tuple(map(int, at)): int(cells[tuple(at)]) for at in np.argwhere(cells)} == wanted
        start += cells.size
    assert start == len(found)


def test_workers_need_none_of_our_packages(tmp_path: Path) -> None:
    """A worker unpickles what it is sent in a Python without whosin."""
    from pyspark import cloudpickle

    count = make_row_counter((3, 4), ((0,), (0, 1)))
    columns = packed((3, 4), np.array([[2, 3], [0, 1], [2, 3]]))
    sent = tmp_path / "sent"
    sent.write_bytes(cloudpickle.dumps((tally_batches(count), batches(columns, 2))))
    program = (
        "import sys, pickle; sys.modules['whosin'] = None\n"
        f"work, batches = pickle.load(open({str(sent)!r}, 'rb'))\n"
        "(result,) = work(iter(batches)); print(result.to_pydict())"
    )
    python = [sys.executable, "-c", program]
    shown = subprocess.run(python, capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str({"code": [0, 2, 4, 14], "rows": [1, 2, 1, 2]})
