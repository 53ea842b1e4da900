"""Conditions on an engine, beside what they mean."""

from __future__ import annotations

import where_oracle
from whosin.release.conditions import parse_condition
from whosin.release.engines.base import Engine


def check_where(engine: Engine, drawn: where_oracle.Drawn, count: int) -> None:
    """Conditions as columns of a few queries, beside what they mean."""
    rows = where_oracle.rows()
    data = engine.open(where_oracle.table(rows))
    kept = 0
    for start in range(0, count, 100):
        cases = [drawn.condition() for _ in range(start, min(count, start + 100))]
        marks = {f"c{place}": parse_condition(text, data) for place, (text, _) in enumerate(cases)}
        result = engine.run(data.select("who", **marks)).sort_by("who")
        for place, (text, meaning) in enumerate(cases):
            expected = [meaning(row) is True for row in rows]
            assert result.column(f"c{place}").to_pylist() == expected, text
            kept += sum(expected)
    assert 0.2 < kept / (count * len(rows)) < 0.8  # the test can fail
