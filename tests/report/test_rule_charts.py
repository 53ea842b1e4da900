"""Charts about rules show the numbers of `rules`."""

from __future__ import annotations

import whosin as wi
from whosin.report.rules import failure_chart, posterior_chart


def rows(chart) -> list[dict]:
    return chart.to_dict()["data"]["values"]


def test_failures_against_what_is_known():
    rules = {"exact": wi.rules.Exact(), "rounded": wi.rules.RandomRound(5)}
    drawn = rows(failure_chart(rules, 12, ("0.05", "0.5"), "3/2"))
    assert {row["rule"] for row in drawn} == set(rules)
    for row in drawn:
        family = wi.families.AtMostKnown(row["known"], "0.05", "0.5")
        found = wi.rules.failure(rules[row["rule"]], 12, family, "3/2")
        if row["end"] == "at most":
            assert row["fails"] == float(found.upper)
        else:
            assert float(found.lower) <= row["fails"] <= float(found.upper)


def test_posteriors_against_priors():
    table = wi.rules.Publication([[None, None, 3]], [[4, 6]], wi.rules.Suppress(3))
    drawn = rows(posterior_chart({"with its total": table}, (0, 1)))
    assert len(drawn) == 49
    for row in drawn[::12]:
        step = round(row["prior"] * 50)
        (found,) = wi.rules.posteriors(table.cells, table.population, f"{step}/50", rule=table.rule)
        assert row["posterior"] == float(found[1])
