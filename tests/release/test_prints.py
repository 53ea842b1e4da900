"""What tables, sessions, estimates and plans print in Python: short, and nothing of a row."""

from __future__ import annotations

import pyarrow as pa
import pytest

import whosin as wi
from refusals import refused
from whosin.errors import WhosinError
from whosin.release import Count, Dates, Histogram, Range

LINES, LETTERS = 12, 100


@pytest.fixture
def table():
    rows = {"who": ["SECRET"], "ward": ["x"], "days": [1], "seen": ["2024-01-01"]}
    domains = {
        "ward": [f"ward {number}" for number in range(40)],
        "days": Range(0, 10),
        "seen": Dates("2024-01-01", "2024-12-31"),
    }
    return wi.Table(pa.table(rows), "who", name="visits", domains=domains)


def test_prints_are_short_and_tell_no_row(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = wi.calibrate(posterior=0.6, prior=(0.05, 0.5))
    with wi.Session(table, plan, "l.db", share=1, request="r1") as session:
        estimates = session.dry_run([Count(), Histogram(column="ward")])
        for thing in (table, session, plan, *estimates):
            lines = repr(thing).replace(str(tmp_path), "").splitlines()
            assert len(lines) <= LINES and max(map(len, lines)) <= LETTERS, repr(thing)
            assert "SECRET" not in repr(thing)
        assert "visits" in repr(session) and "r1" in repr(session)
    shown = repr(table)
    assert "0..10" in shown and "2024-01-01..2024-12-31" in shown and "ward 0, ward 1" in shown
    assert "None" not in shown and "False" not in shown
    assert "60.0%" in repr(plan) and "0.405465" in repr(plan)


def test_a_posterior_and_a_prior_are_a_plan():
    expected = wi.calibrate(wi.Posterior(0.6), wi.families.Independent(0.05, 0.5))
    for prior in ((0.05, 0.5), "0.05..0.5"):
        made = wi.calibrate(posterior=0.6, prior=prior)
        assert (made.epsilon, made.relation, made.gamma) == (
            expected.epsilon,
            expected.relation,
            expected.gamma,
        )
        assert made.beliefs == expected.beliefs
    single = wi.calibrate(wi.Posterior(0.6), wi.families.Independent(0.1, 0.1))
    assert wi.calibrate(posterior=0.6, prior=0.1).epsilon == single.epsilon
    with pytest.raises(WhosinError):
        wi.calibrate(posterior=0.6, prior=(0.5, 0.05))
    with pytest.raises(WhosinError):
        wi.calibrate(posterior=60, prior=(0.05, 0.5))
    with refused("target"):
        wi.calibrate(prior=(0.05, 0.5))
