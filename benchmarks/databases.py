"""A question to a table on PostgreSQL beside a plain Arrow fetch of the columns that it needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from measuring import Row, best_of
from whosin.release import Mean, Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

ROWS = 2_000_000
GOAL = 1.5
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
        table = Table(f"{place}::visits", "patient", domains, rows=10, groups=8)
        query = Mean(column="days", by="ward")
        expression = query.exact(table, query.cells(table))

        def fetch() -> object:
            with dbapi.connect(place) as connection, connection.cursor() as cursor:
                cursor.execute("SELECT patient, ward, days FROM visits")
                return cursor.fetch_arrow_table()

        ours = best_of(lambda: table.engine.run(expression), 3)
        plain = best_of(fetch, 3)
        work = f"PostgreSQL, mean by group of {ROWS:,} rows"
        met = ours <= GOAL * plain
        yield Row(work, ours, f"<= {GOAL} × fetch", met, "Arrow fetch of the columns", plain)
