"""Learned synthetic tables beside MST as mbi's repository has it, at the same ρ, in one run.

Both draw as many rows as there are people. The error is the mean over all tables of three columns
of the share of rows that would have to move. Pairs with nearly equal scores make one run differ
from the next by a tenth, so that several are averaged.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

import whosin as wi
from measuring import Row
from whosin.exact import Array
from whosin.release import Session, Synthetic, Table

DELTA = "1e-6"


def rows(table: Table, path: Path, name: str, times: int = 3) -> Iterator[Row]:
    """Both methods on a table, one row a person, at ε = 1 and a δ."""
    sizes = tuple(len(domain.labels) for domain in table.domains.values())
    truth = _codes(path, table)
    ours, theirs = [], []
    for _ in range(times):
        places, rho = _ours(table, len(truth[0]))
        ours.append(_error(truth, places, sizes))
        theirs.append(_error(truth, mst(truth, sizes, float(rho)), sizes))
    found, other = float(np.mean(ours)), float(np.mean(theirs))
    work = f"{name}, synthetic rows, error of all 3-way tables, (1, {DELTA})"
    yield Row(work, found, "no worse", found <= 1.02 * other, "MST of mbi", other, unit="")


def _ours(table: Table, length: int) -> tuple[list[Array], Fraction]:
    plan = wi.calibrate(wi.Epsilon(1), wi.families.Independent(), delta=DELTA)
    with tempfile.TemporaryDirectory() as folder:
        query = Synthetic(
            columns=list(table.domains),
            path=str(Path(folder) / "learned.parquet"),
            method="marginals",
            choose=True,
            length=length,
        )
        with wi.Ledger(Path(folder) / "ledger.db") as ledger:
            session = Session(table, plan, ledger, share=1, dataset="learned")
            answer = session.ask(query, noise="gaussian")
        return _codes(Path(query.path), table), Fraction(answer.cost.rho, 10**12)


def _codes(path: Path, table: Table) -> list[Array]:
    """The place of each value in its domain, "other" last."""
    read = parquet.read_table(path)
    found = []
    for name, domain in table.domains.items():
        place = {str(label): number for number, label in enumerate(domain.labels)}
        last = len(domain.labels) - 1
        found.append(np.array([place.get(str(value), last) for value in read[name].to_pylist()]))
    return found


def _table(places: list[Array], sizes: tuple[int, ...], columns: tuple[int, ...]) -> Array:
    shape = tuple(sizes[each] for each in columns)
    codes = np.ravel_multi_index(tuple(places[each] for each in columns), shape)
    return np.bincount(codes, minlength=math.prod(shape)).reshape(shape)


def _error(truth: list[Array], drawn: list[Array], sizes: tuple[int, ...]) -> float:
    far = [
        np.abs(
            _table(truth, sizes, each) / len(truth[0]) - _table(drawn, sizes, each) / len(drawn[0])
        )
        for each in combinations(range(len(sizes)), 3)
    ]
    return float(np.mean([each.sum() / 2 for each in far]))


def mst(truth: list[Array], sizes: tuple[int, ...], rho: float) -> list[Array]:
    """mechanisms/mst.py of mbi's repository: a third of ρ for single columns, for choosing and for
    pairs, with noise of NumPy. Its merging of rare values is left out here, as it is in ours."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    from mbi import Domain, LinearMeasurement
    from mbi.estimation import MirrorDescent

    rng, count = np.random.default_rng(), len(sizes)
    names = tuple(range(count))

    def measured(sets: list[tuple[int, ...]]) -> list[LinearMeasurement]:
        sigma = math.sqrt(3 * len(sets) / (2 * rho))
        found = []
        for each in sets:
            counts = _table(truth, sizes, each)
            noisy = counts + rng.normal(0, sigma, counts.shape)
            found.append(LinearMeasurement(noisy.ravel(), each, sigma))
        return found

    ones = measured([(each,) for each in names])
    margins = [np.maximum(np.asarray(each.noisy_measurement), 0) for each in ones]
    total = float(np.mean([each.sum() for each in margins]))
    scores = {
        pair: np.abs(
            _table(truth, sizes, pair)
            - np.outer(margins[pair[0]] / margins[pair[0]].sum(), margins[pair[1]])
            * (total / margins[pair[1]].sum())
        ).sum()
        for pair in combinations(names, 2)
    }
    epsilon, group, chosen = math.sqrt(8 * rho / 3 / (count - 1)), list(names), []
    while len(chosen) < count - 1:
        joining = [pair for pair in scores if group[pair[0]] != group[pair[1]]]
        noisy = [epsilon / 2 * scores[pair] + rng.gumbel() for pair in joining]
        one, other = joining[int(np.argmax(noisy))]
        chosen.append((one, other))
        group = [group[one] if each == group[other] else each for each in group]
    model = MirrorDescent().estimate(Domain(names, sizes), ones + measured(chosen), iters=5000)
    data = model.synthetic_data(len(truth[0])).data
    return [np.asarray(data[name]) for name in names]
