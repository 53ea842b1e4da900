"""Bounded group-by counts: a whole release beside DuckDB alone, and beside other DP tools."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

import whosin as wi
from measuring import Row, best_of, peer
from whosin.release import Rows, Session, Table

PEOPLE, GROUPS, ROWS, CELLS = 10**5, 20, 2, 3
RECORDED = {"OpenDP": 4.5, "SmartNoise": 10.0, "Tumult": 17.0}
GENERATE = f"""
    COPY (SELECT (hash(range) % {PEOPLE})::BIGINT AS person,
                 'w' || (hash(range + 1) % {GROUPS}) AS ward
          FROM range(1000000)) TO '{{path}}'
"""
# What one writes by hand: at most 2 rows in each of at most 3 wards, chosen at random.
BY_HAND = f"""
    WITH each AS (
        SELECT person, ward, least(count(*), {ROWS}) AS rows, random() AS lot
        FROM read_parquet('{{path}}') WHERE person IS NOT NULL GROUP BY person, ward),
    ranked AS (
        SELECT *, row_number() OVER (PARTITION BY person ORDER BY lot) AS rank FROM each)
    SELECT ward, sum(rows) FROM ranked WHERE rank <= {CELLS} GROUP BY ward
"""
OPENDP = """
import json, sys, time
import opendp.prelude as dp, polars as pl
dp.enable_features("contrib")
def run():
    context = dp.Context.compositor(
        data=pl.scan_parquet("{path}"),
        privacy_unit=dp.unit_of(contributions=[
            dp.polars.Bound(per_group={rows}), dp.polars.Bound(by=["ward"], num_groups={cells})],
            identifier="person"),
        privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1)
    keys = pl.LazyFrame({{"ward": ["w%d" % i for i in range({groups})]}})
    query = context.query().filter(pl.col("person").is_not_null())
    query = query.truncate_per_group({rows}).truncate_num_groups({cells}, by=["ward"], keep="first")
    return query.group_by("ward").agg(dp.len()).with_keys(keys).release().collect()
run()
start = time.perf_counter(); run()
print(json.dumps({{"seconds": time.perf_counter() - start}}))
"""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "visits.parquet"
        numbers = itertools.count()
        with duckdb.connect() as connection:
            connection.execute(GENERATE.format(path=path))
            wards = [f"w{place}" for place in range(GROUPS)]
            table = Table(path, "person", {"ward": wards}, rows=ROWS, groups=CELLS)
            plan = wi.calibrate(wi.Gamma(2), wi.families.Independent("0.05", "0.5"))

            def release() -> object:
                ledger = wi.Ledger(Path(folder) / f"ledger-{next(numbers)}.db")
                try:
                    return Session(table, plan, ledger, share=1).ask(Rows(by="ward"))
                finally:
                    ledger.dispose()

            def by_hand() -> object:
                return connection.sql(BY_HAND.format(path=path)).fetchall()

            seconds = best_of(release, repeats=5)
            alone = best_of(by_hand, repeats=5)
            work = "bounded group-by, 10^6 rows, ledger included"
            yield Row(work, seconds, "within 1.3", seconds <= 1.3 * alone, "DuckDB alone", alone)
            query = Rows(by="ward")
            ours = table.engine.run
            expression = query.exact(table, query.cells(table))
            scan = best_of(partial(ours, expression), repeats=5)
            work = "the same, beside its own scan"
            yield Row(work, seconds, "within 1.3", seconds <= 1.3 * scan, "our SQL alone", scan)
            script = OPENDP.format(path=path, rows=ROWS, cells=CELLS, groups=GROUPS)
            measured = {"OpenDP": peer("opendp-polars", ["opendp[polars]"], script)}
            for name, figure in RECORDED.items():
                found = measured.get(name)
                theirs = figure if found is None else found["seconds"]
                work = "bounded group-by, 10^6 rows"
                faster = theirs >= seconds
                yield Row(work, seconds, "faster", faster, name, theirs, recorded=found is None)
