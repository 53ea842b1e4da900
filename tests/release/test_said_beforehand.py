"""What is refused, marked or said where a choice is made: shares, noisy answers, advice."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import postgres
import whosin as wi
from release_oracle import ENGINE
from whosin import release
from whosin.documents import read_csv
from whosin.errors import BudgetRefused, InvalidInput
from whosin.ledger import Ledger
from whosin.noise import LaplaceNoise
from whosin.release.answer import noisy_note, too_noisy
from whosin.release.queries.sums import noise_of_count
from whosin.release.scenario import load_scenario

COLUMNS = ("value", "low", "high")


def people(count: int = 60, **domains: Any) -> release.Table:
    data = {"who": [f"p{i}" for i in range(count)], "ward": [f"w{i % 3 % 2}" for i in range(count)]}
    named: Any = {"privacy_unit": "who", "name": "people", "engine": ENGINE}
    return release.Table(pa.table(data), domains=domains, **named)


def test_a_share_above_what_is_left_is_refused(tmp_path) -> None:
    session = release.Session(people(), wi.calibrate(wi.Epsilon(1)), tmp_path / "l.db", share=1)
    session.ask(release.Count(), share="3/4")
    for asked in (session.ask, session.dry_run):
        with pytest.raises(BudgetRefused):
            asked(release.Count(), share="1/2")
    assert session.budget_state.debits == 1 and session.budget_state.spendable == 0.25
    session.ask(release.Count(), share="1/4")
    assert session.budget_state.spendable == 0


def test_shares_that_add_up_to_the_whole_are_all_answered(tmp_path) -> None:
    for noise, delta in (("laplace", 0), ("gaussian", 1e-6)):
        plan = wi.calibrate(wi.Epsilon(1), delta=delta)
        session = release.Session(people(), plan, tmp_path / f"{noise}.db", share=1, again=True)
        for _ in range(3):
            session.ask(release.Count(), share="1/3", noise=noise)
        with pytest.raises(BudgetRefused):
            session.ask(release.Count(), share="1/3", noise=noise)


@pytest.mark.parametrize(
    ("ends", "row", "marked"),
    [
        ((0, 30), (1, 1, 2), False),  # a median to the next day
        ((0, 120), (38, 18, 58), True),  # a mean age of anyone
        ((-40, 50), (0.2, -0.3, 0.7), False),  # a temperature has no 0 of its own
        ((0, 120), (60, 0, 120), True),
        ((0, 120), (60, 54, 66), False),
        ((-30, 180), (9, -10, 25), True),  # most of what mean delays vary
    ],
)
def test_one_rule_marks_what_is_too_noisy(ends, row, marked) -> None:
    assert too_noisy(COLUMNS, [row], ends=ends) == (marked,)
    assert bool(noisy_note((marked,), of_range=True)) == marked


@pytest.mark.parametrize(
    ("kind", "more"), [(release.Mean, {}), (release.Median, {"interval": True})]
)
def test_means_and_medians_are_marked_alike(tmp_path, kind: Any, more: dict[str, Any]) -> None:
    """Of a few people the answer is anywhere in the range; of many it is not."""
    for count, marked in ((3, True), (20_000, False)):
        data = {"who": [str(i) for i in range(count)], "age": [20 + i % 41 for i in range(count)]}
        table = release.Table(
            pa.table(data), privacy_unit="who", name=f"n{count}", domains={"age": (0, 120)}
        )
        plan, ledger = wi.calibrate(wi.Epsilon(1)), tmp_path / f"{kind.kind}{count}.db"
        answer = release.Session(table, plan, ledger, share=1).ask(kind(column="age", **more))
        assert answer.noisy == (marked,)


def test_a_linear_function_of_a_column_is_judged_by_its_own_range(tmp_path) -> None:
    """In the range from -233 to 7, of which the interval is a small part."""
    data = {"who": [str(i) for i in range(20_000)], "age": [20 + i % 41 for i in range(20_000)]}
    table = release.Table(pa.table(data), privacy_unit="who", name="n", domains={"age": (0, 120)})
    session = release.Session(table, wi.calibrate(wi.Epsilon(1)), tmp_path / "ledger.db", share=1)
    answer = session.ask(release.Mean(column="age", factor=-2, offset=7))
    ((value, low, high),) = answer.rows
    assert answer.noisy == (False,) and low <= value <= high
    assert value == pytest.approx(7 - 2 * 40, abs=5)


def test_keys_come_by_their_size(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(LaplaceNoise, "draw", lambda self, size: np.zeros(size, np.int64))
    sizes = {"a": 900, "b": 1200, "c": 1000, "d": 1000}
    data = [name for name, size in sizes.items() for _ in range(size)]
    source = pa.table({"who": [str(i) for i in range(len(data))], "town": data})
    table = release.Table(source, privacy_unit="who", name="towns")
    plan = wi.calibrate(wi.Epsilon(1), delta=1e-6)
    session = release.Session(table, plan, tmp_path / "l.db", share=1)
    answer = session.ask(release.Keys(column="town"))
    assert [row[0] for row in answer.rows] == ["b", "c", "d", "a"]


def test_advice_names_no_domain_that_a_column_cannot_have() -> None:
    query = release.Keys(column="ward")
    [undeclared] = query.cautions(people())
    [declared] = query.cautions(people(ward=["w0", "w1"]))
    assert "constant" not in undeclared.words and "ward" in undeclared.words
    assert "constant" in declared.words


def test_a_column_twice_is_named(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(InvalidInput) as caught:
        read_csv(tmp_path / "t.csv")
    assert caught.value.value == "a"


SQL_ONLY = """
[table]
source = "visits.csv"
privacy_unit = "who"

[target]
epsilon = 1

[domains]
days = { lower = 0, upper = 30 }
"""


def test_the_curator_looks_at_a_scenario_that_is_made_for_sql(tmp_path, run, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("who,days\np1,3\np1,40\np2,5\n")
    (tmp_path / "s.toml").write_text(SQL_ONLY)
    code, out, _ = run("inspect s.toml --json")
    assert code == 0 and '"findings"' in out
    assert run("release s.toml --dry-run")[0] == 2  # which has nothing to release


@pytest.mark.parametrize(
    ("target", "delta"), [(wi.Posterior("0.6"), 0), (wi.Posterior("0.6"), 1e-6), (wi.Epsilon(1), 0)]
)
def test_a_count_by_itself_has_the_error_that_the_panel_shows(tmp_path, target, delta) -> None:
    plan = wi.calibrate(target, wi.families.Independent("0.05", "0.5"), delta=delta)
    session = release.Session(people(), plan, tmp_path / "l.db", share=1)
    for noise in ("laplace", "gaussian") if delta else ("laplace",):
        shown = noise_of_count(plan, noise)
        [estimate] = session.dry_run(release.Count(), noise=noise)
        assert shown is not None
        assert (shown.error, shown.interval_radius()) == (estimate.error, estimate.within)
    assert noise_of_count(wi.calibrate(wi.Epsilon(1)), "gaussian") is None


def test_a_dry_run_takes_an_empty_database_for_a_ledger_that_is_not_there_yet(
    tmp_path, run, monkeypatch
) -> None:
    postgres.require()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("who,days\np1,3\np2,5\n")
    (tmp_path / "s.toml").write_text(SQL_ONLY + '[[queries]]\nkind = "count"\n')
    with postgres.server() as server:
        code, out, _ = run(f"release s.toml --dry-run --json --ledger {server.url}")
        assert code == 0 and json.loads(out)["remaining_epsilon"] is None
        scenario = load_scenario(tmp_path / "s.toml")
        with Ledger(server.url) as ledger:  # closed here, as the command's is when it ends
            table = scenario.open_table()
            release.Session(table, scenario.plan, ledger, share=1).release(scenario.queries)
        code, out, _ = run(f"release s.toml --dry-run --json --ledger {server.url}")
        assert code == 0 and json.loads(out)["remaining_epsilon"] == 0
