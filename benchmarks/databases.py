"""A table on PostgreSQL beside a plain Arrow fetch of the same columns, and a question to it beside
the fetch and the same question in memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import Row, best_of
from whosin.release import Mean, Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

ROWS = 2_000_000
GOAL = 1.5
COLUMNS = ("patient", "ward", "days")
FILL = f"""
CREATE TABLE visits AS
SELECT i / 10 AS patient, i % 8 AS ward, (i::int8 * 7919 % 1000) / 10.0::float8 AS days,
       md5(i::text) AS note FROM generate_series(1, {ROWS}) i
"""


def rows() -> Iterator[Row]:
    import psycopg
    from adbc_driver_postgresql import dbapi

    import postgres

    if reason := postgres.missing():
        print(f"bench: {reason}", file=sys.stderr)
        return
    with postgres.server() as server:
        with psycopg.connect(server.url, autocommit=True) as base:
            base.execute(FILL)
            base.execute("VACUUM ANALYZE visits")
        os.environ["PGPASSWORD"] = postgres.PASSWORD
        place = f"postgresql://whosin@/postgres?host={server.folder}"
        domains = {"ward": list(range(8)), "days": {"lower": 0, "upper": 100}}
        table = Table(f"{place}::visits", "patient", domains, max_rows_per_group=10, max_groups=8)
        data = table.data
        scan = data.aggregate(**{f"most_{name}": data[name].max() for name in COLUMNS})

        def fetch() -> Any:
            with dbapi.connect(place) as connection, connection.cursor() as cursor:
                cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM visits")
                return cursor.fetch_arrow_table()

        plain = best_of(fetch, 3)
        ours = best_of(lambda: table.engine.run(scan), 3)
        work = f"PostgreSQL, a scan of {len(COLUMNS)} columns of {ROWS:,} rows"
        met = ours <= GOAL * plain
        yield Row(work, ours, f"<= {GOAL} × fetch", met, "Arrow fetch of the columns", plain)
        query = Mean(column="days", by="ward")
        held = Table(
            fetch(), "patient", domains, max_rows_per_group=10, max_groups=8, name="visits"
        )
        here = best_of(lambda: held.engine.run(query.exact(held, query.cells(held))), 3)
        ours = best_of(lambda: table.engine.run(query.exact(table, query.cells(table))), 3)
        work = f"PostgreSQL, mean by group of {ROWS:,} rows, ten a person"
        met = ours <= GOAL * (plain + here)
        peer = "Arrow fetch, then the same in memory"
        yield Row(work, ours, f"<= {GOAL} × both", met, peer, plain + here)
