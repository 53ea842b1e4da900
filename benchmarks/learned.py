"""Learned synthetic tables beside MST and AIM as mbi's repository has them, at the same (ε, δ), in
one run.

All draw as many rows as there are people. The error is the mean over all tables of three columns
of the share of rows that would have to move. Pairs with nearly equal scores make one run differ
from the next by a tenth, so that several are averaged.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

import peers
import whosin as wi
from measuring import Row
from peers import table as counts
from whosin.exact import Array
from whosin.release import Session, Synthetic, Table

EPSILON, DELTA = 1, "1e-6"


def rows(table: Table, path: Path, name: str, times: int = 2) -> Iterator[Row]:
    """Both ways of choosing on a table, one row a person."""
    sizes = tuple(len(domain.labels) for domain in table.domains.values())
    truth = _codes(path, table)
    rho = peers.rho_of(EPSILON, float(DELTA))
    for way, order, peer in (("adaptive", 3, "AIM of mbi"), ("tree", 2, "MST of mbi")):
        ours, theirs = [], []
        for _ in range(times):
            ours.append(_error(truth, _ours(table, len(truth[0]), way, order), sizes))
            other = (
                peers.aim(truth, sizes, rho, order)
                if way == "adaptive"
                else peers.mst(truth, sizes, rho)
            )
            theirs.append(_error(truth, other, sizes))
        found, other_error = float(np.mean(ours)), float(np.mean(theirs))
        work = f"{name}, synthetic rows, {way}, error of all 3-way tables, ({EPSILON}, {DELTA})"
        met = found <= 1.02 * other_error
        yield Row(work, found, "no worse", met, peer, other_error, unit="")


def _ours(table: Table, length: int, way: str, order: int) -> list[Array]:
    plan = wi.calibrate(wi.Epsilon(EPSILON), wi.families.Independent(), delta=DELTA)
    with tempfile.TemporaryDirectory() as folder:
        query = Synthetic(
            columns=list(table.domains),
            path=str(Path(folder) / "learned.parquet"),
            method="marginals",
            choose=way,
            order=order,
            length=length,
        )
        with wi.Ledger(Path(folder) / "ledger.db") as ledger:
            session = Session(table, plan, ledger, share=1, preflight=False, dataset="learned")
            session.ask(query, noise="gaussian")
        return _codes(Path(query.path), table)


def _codes(path: Path, table: Table) -> list[Array]:
    """The place of each value in its domain, "other" last."""
    read = parquet.read_table(path)
    found = []
    for name, domain in table.domains.items():
        place = {str(label): number for number, label in enumerate(domain.labels)}
        last = len(domain.labels) - 1
        found.append(np.array([place.get(str(value), last) for value in read[name].to_pylist()]))
    return found


def _error(truth: list[Array], drawn: list[Array], sizes: tuple[int, ...]) -> float:
    far = [
        np.abs(
            counts(truth, sizes, each) / len(truth[0]) - counts(drawn, sizes, each) / len(drawn[0])
        )
        for each in combinations(range(len(sizes)), 3)
    ]
    return float(np.mean([each.sum() / 2 for each in far]))
