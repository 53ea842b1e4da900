"""Sessions: debit before scan, one answer a question, nothing of the engine's words."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

import release_oracle as oracle
import whosin as wi
from refusals import refused
from whosin import release
from whosin.errors import BudgetRefused, InvalidInput, ScanFailed, StoreFailed
from whosin.exact import format_epsilon
from whosin.ledger import Cost, Spend, encoding
from whosin.release import Count, Rows, Session, Sum, inspection
from whosin.release.column_expressions import GroupGrid
from whosin.release.engines.base import share_scans

DATA = {"who": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}
PLAN = oracle.PLANS["add-remove"]


@pytest.fixture(scope="module")
def data() -> wi.Table:
    return oracle.table(DATA, {"x": (0, 5)})


@pytest.fixture
def ledger(tmp_path) -> Iterator[wi.Ledger]:
    with wi.Ledger(tmp_path / "ledger.db", who="tests") as found:
        yield found


def debits(ledger: wi.Ledger) -> int:
    return sum(entry.kind == "debit" for entry in ledger.history("people"))


def spent(ledger: wi.Ledger) -> float:
    return ledger.budget_state("people").spent.epsilon / encoding.EPSILON_UNITS


class Failing(Count):
    """A count whose scan fails as often as it is told."""

    failures = 0
    error: BaseException = RuntimeError("row of ann: cannot cast 'private' to DOUBLE")

    def answer(self, table, estimate, progress=None):
        if type(self).failures:
            type(self).failures -= 1
            raise self.error
        return super().answer(table, estimate, progress)


@pytest.fixture(autouse=True)
def _reset() -> None:
    Failing.failures, Failing.error = 0, RuntimeError("row of ann: cannot cast 'private'")


def test_answers_cost_what_the_dry_run_says(data, ledger) -> None:
    session = Session(data, PLAN, ledger, share=1)
    batch = [Count(name="n"), Rows(weight=2), Sum(column="x")]
    estimates = session.dry_run(batch, share="1/2")
    assert debits(ledger) == 0
    found = session.release(batch, share="1/2")
    assert [answer.cost for answer in found] == [o.spend.cost("add-remove") for o in estimates]
    assert spent(ledger) == pytest.approx(0.5, abs=1e-11)
    assert found["n"] is found[0] and len(found) == 3
    low, high = found["n"].interval
    assert low < found["n"].value < high
    with pytest.raises(KeyError):
        found["m"]


@pytest.mark.parametrize("several", [[Count(), Count(where="x > 1")], (Count(),), []])
def test_ask_takes_one_query_and_refuses_a_list_before_it_pays(data, ledger, several) -> None:
    session = Session(data, PLAN, ledger)
    with refused("query", hint=True):
        session.ask(several, share="1/3")
    assert debits(ledger) == 0
    assert len(session.release([Count(), Count(where="x > 1")], share="1/3")) == 2


def test_what_is_left_has_the_same_digits_wherever_it_is_said(data, ledger) -> None:
    with Session(data, PLAN, ledger, share="1/3") as first:
        first.ask(Count())
    assert ledger.name in repr(ledger) and "0x" not in repr(ledger)
    left = format_epsilon(ledger.budget_state("people").spendable)
    with Session(data, PLAN, ledger, share="1/2") as second:
        assert f"ε = {left} left" in second.notes[0]
    with pytest.raises(BudgetRefused) as refusal:
        Session(data, PLAN, ledger, share=1, again=True)
    assert left == "0.666666" and f"has {left} left" in str(refusal.value)


def test_a_batch_is_priced_once(data, ledger, monkeypatch) -> None:
    priced: list[object] = []
    own = Count.estimate_cost

    def estimate(self, table, share):
        priced.append(self)
        return own(self, table, share)

    monkeypatch.setattr(Count, "estimate_cost", estimate)
    session = Session(data, PLAN, ledger, share=1)
    batch = [Count(where=f"x > {bound}") for bound in range(3)]
    session.dry_run(batch, share="1/2")
    session.release(batch, share="1/2")
    assert priced == batch
    session.release(batch, share="1/4")
    assert priced == [*batch, *batch]


@pytest.mark.parametrize(
    "query",
    [
        Count(),
        Count(by="ward", max_groups=2),
        Rows(by="ward", max_groups=2, max_rows_per_group=3),
        Sum(column="x", by="ward", max_groups=2, max_rows_per_group=3),
        wi.queries.Mean(column="x", max_rows_per_group=3),
    ],
)
def test_a_shape_on_the_rows_of_a_condition_is_the_whole_question(query) -> None:
    rows = {"who": list("aaabbc"), "x": [1, 2, 3, 4, 5, None], "ward": list("uuvvwu")}
    table = oracle.table(rows, {"x": (0, 5), "ward": ["u", "v"]})
    for where in (None, "x > 1", "x > 2 and ward = 'v'", "ward <> 'u' or x is null"):
        asked = replace(query, where=where)
        scan = asked.plan_scan(table, lambda each, known: each.exact(known, each.cells(known)))
        whole = table.engine.run(asked.exact(table, asked.cells(table)))
        found = table.engine.run(scan)
        assert found.schema == whole.schema
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, whole.to_pylist()))
    assert sum(isinstance(key, str) for key in table.kept) == 1 + 3  # expressions


def test_a_condition_that_is_spelled_like_none_is_one() -> None:
    table = oracle.table({"who": list("abc"), "None": [True, False, None]})
    for where, people in ((None, 3), ("None", 1)):
        estimate = Count(where=where).estimate_cost(table, oracle.share())
        assert table.engine.run(estimate.expression).to_pylist() == [{"people": people}]


SHAPES = [
    Count(),
    Count(by="ward", max_groups=2),
    Rows(max_rows_per_group=3),
    Rows(by=["ward", "whosin_question"], max_groups=9, max_rows_per_group=3),
    Sum(column="x", by="ward", max_groups=2, max_rows_per_group=3),
    wi.queries.Mean(column="x", by="ward", max_rows_per_group=3, max_groups=3),
    release.Top(by="ward", k=1),
    release.Median(column="x", max_rows_per_group=3),
    release.Median(column="x", by="ward", max_rows_per_group=3, max_groups=3),
    Sum(column="t", by="canton", max_groups=2, max_rows_per_group=3),
]
TEXTS = ["9007199254740993", "1e1", " 2", "2.", "NaN", "", "-Infinity"]


def nonzero_rows(result) -> list[str]:
    """The rows of a result that are about any row of the table, in one order."""
    return sorted(
        str(row)
        for row in result.to_pylist()
        if any(value for name, value in row.items() if not name.startswith("key_"))
    )


@pytest.mark.parametrize("limit", [2**18, 0])
@pytest.mark.parametrize("query", SHAPES, ids=lambda query: f"{query.kind} {query.by}")
def test_one_statement_answers_questions_of_one_shape(query, limit, monkeypatch) -> None:
    monkeypatch.setattr("whosin.release.engines.duckdb.MAX_SHARED_BYTES", limit)
    rows = {"who": list("aaabbcd"), "x": [1, 2, 3, 4, 5, None, 9], "ward": list("uuvvwuv")}
    name = "whosin_question" if "whosin_question" in query.by else "other"
    rows |= {name: list("pqpqpqp"), "t": TEXTS}
    cantons = {"canton": {"A": ["u"], "B": ["v"]}}
    domains = {"x": (0, 5), "t": (0, 9), "ward": {"parents": cantons}, name: ["p", "q"]}
    table = oracle.table(rows, domains, engine=release.DuckDB(threads=1))
    conditions = (None, "x > 1", "x > 100", "x > 2 and ward = 'v'", "ward <> 'u' or x is null")
    conditions += ("t > 2", "t = 9007199254740992", "t + x < 9 or canton = 'A'")
    times = 1 if not limit else 14 if query is SHAPES[0] else 2  # so many that one is not enough
    asked = [replace(query, where=where) for where in conditions * times]
    share = oracle.share()
    scans = share_scans({n: q.estimate_cost(table, share).expression for n, q in enumerate(asked)})
    statements, cells = [], GroupGrid.of(table, query.by)
    own = table.engine._fetch
    monkeypatch.setattr(table.engine, "_fetch", lambda *each: statements.append(each) or own(*each))
    run = [table.engine.run(scans[number]) for number in range(len(asked))]
    shared = 2 + (times == 14)  # canton is joined to the rows of some
    assert len(statements) == (shared if limit and name == "other" else len(asked))
    for number, each in enumerate(asked[: len(conditions)]):
        build = type(each).exact if hasattr(each, "exact") else type(each)._expression
        whole = table.engine.run(build(each, table, cells))
        for found in run[number :: len(conditions)]:
            assert found.schema == whole.schema
            assert nonzero_rows(found) == nonzero_rows(whole)


@pytest.mark.parametrize("kind", [Sum, release.Median])
def test_questions_of_one_statement_choose_rows_and_groups_each_for_itself(kind) -> None:
    """Somebody with a row worth 0 and one worth 1 in each of two wards, of whom one row in one ward
    counts: each choice is right half the time, whatever other questions chose."""
    rows = {"who": list("aaaa"), "x": [0, 1, 0, 1], "ward": list("uuvv")}
    domains = {"x": (0, 1), "ward": ["u", "v"]}
    table = oracle.table(rows, domains, engine=release.DuckDB(threads=1))
    query = kind(column="x", by="ward", max_groups=1, max_rows_per_group=1)
    scan = query.estimate_cost(table, oracle.share()).expression
    scans = share_scans(dict.fromkeys(range(320), scan))
    found = [table.engine.run(each) for each in scans.values()]
    assert all(each.num_rows == 1 for each in found)
    wards = [each["key_0"][0].as_py() for each in found]
    value = "sum" if kind is Sum else "position"
    assert kind is Sum or all(each["rows"].to_pylist() == [1] for each in found)
    ones = [each[value][0].as_py() > 0 for each in found]
    agree = sum(one == other for one, other in itertools.pairwise(zip(wards, ones, strict=True)))
    # Six standard deviations of 320 fair coins are 54; neighbours agree in a quarter of the cases.
    assert abs(sum(wards) - 160) < 54 and abs(sum(ones) - 160) < 54 and abs(agree - 80) < 54


def test_answers_that_were_drawn_before_a_failure_are_stored_and_kept(data, ledger) -> None:
    ledger.register("d", PLAN)
    costs = {"add-remove": Cost.pure("0.1")}
    paid = ledger.debits("d", {f"r/{n}": Spend({"query": n}, costs) for n in range(3)})

    def draw(number: int) -> object:
        return 1 / 0 if number == 1 else number

    with pytest.raises(ScanFailed) as caught:
        ledger.answer_debits(paid, "r", draw)
    assert caught.value.__context__ is None and ledger.budget_state("d").suspended
    assert ledger.unanswered("d") == {"r/1", "r/2"}
    ledger.resume("d")
    again = ledger.debits("d", {f"r/{n}": Spend({"query": n}, costs) for n in (1, 2, 0)})
    assert ledger.answer_debits(again, "r", lambda number: 10 + number) == [10, 11, 0]
    assert wi.ledger.verify(ledger, "d").unanswered == ()


def test_a_failed_scan_keeps_its_debit_and_its_silence(data, ledger) -> None:
    session = Session(data, PLAN, ledger, request="monday", share=1)
    Failing.failures = 1
    with pytest.raises(ScanFailed) as caught:
        session.ask(Failing())
    assert "ann" not in str(caught.value) and "private" not in repr(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "the debit stands" in str(caught.value)
    assert "request monday then continues without paying again" in str(caught.value)
    assert debits(ledger) == 1 and spent(ledger) == 1
    ledger.resume("people")
    again = session.ask(Failing())
    assert debits(ledger) == 1 and spent(ledger) == 1
    resumed = Session(data, PLAN, ledger, request="monday", share=1).ask(Failing())
    assert resumed == again, "the stored answer, not a new one"


@pytest.mark.parametrize(
    "error",
    [InvalidInput("row x is ann's", field="row", value="ann's"), OSError("ann"), MemoryError()],
)
def test_whatever_a_scan_raises_is_one_error(data, ledger, error) -> None:
    Failing.failures, Failing.error = 1, error
    with pytest.raises(ScanFailed, match=r"^the engine failed: the debit stands") as caught:
        Session(data, PLAN, ledger, share=1).ask(Failing())
    assert caught.value.__context__ is None


def test_a_batch_that_failed_halfway_goes_on_in_the_same_session(data, ledger) -> None:
    session = Session(data, PLAN, ledger, share=1)
    batch = [Count(), Failing(weight=2), Rows()]
    Failing.failures = 1
    with pytest.raises(ScanFailed):
        session.release(batch)
    assert debits(ledger) == 3, "a batch is paid as one"
    first = ledger.record("people")[2]
    ledger.resume("people")
    found = session.release(batch)
    assert debits(ledger) == 3 and spent(ledger) <= 1
    assert first[f"{session.request}/0"] == ledger.record("people")[2][f"{session.request}/0"]
    assert len(found) == 3


def test_another_question_after_a_failure_pays_from_the_rest(data, ledger) -> None:
    session = Session(data, PLAN, ledger, share=1)
    Failing.failures = 1
    with pytest.raises(ScanFailed):
        session.release([Failing()], share="1/4")
    ledger.resume("people")
    session.ask(Rows(), share="1/4")
    assert debits(ledger) == 2 and spent(ledger) == pytest.approx(0.5)
    session.ask(Count())
    assert spent(ledger) <= 1
    with refused("share", kind=BudgetRefused):
        session.ask(Count(), again=True)
    assert debits(ledger) == 3


def test_an_interrupt_says_whether_the_debit_stands(data, ledger, monkeypatch) -> None:
    session = Session(data, PLAN, ledger, request="r", share=1)
    Failing.failures, Failing.error = 1, KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt, match="the debit stands; request r continues"):
        session.ask(Failing())
    assert debits(ledger) == 1

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    small = wi.calibrate(wi.Epsilon(0.1), wi.families.Independent())
    people = oracle.table({"who": ["d"], "x": [1.0]}, {"x": (0, 5)}, name="other")
    other = Session(people, small, ledger, share=1, new_people=True)
    with monkeypatch.context() as patch:
        patch.setattr(wi.Ledger, "debits", interrupted)
        with pytest.raises(KeyboardInterrupt, match="nothing was debited"):
            other.ask(Count())
    assert len(ledger.history("other")) == 1
    other.ask(Count())


def test_an_interrupt_while_planning_is_an_interrupt(data, monkeypatch) -> None:
    """DuckDB in the main thread would hear it first, and call it a query that failed."""
    base = duckdb.connect()
    long = "SELECT sum(hash(a.range + b.range)) FROM range(10000000) a, range(10000000) b"
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))

    def plan(*_: object) -> object:
        timer.start()
        return base.execute(long).fetchall()

    monkeypatch.setattr(type(data.engine), "check", plan)
    try:
        with pytest.raises(KeyboardInterrupt):
            data.check(data.data.limit(1))
    finally:
        timer.cancel()
        base.interrupt()


def test_a_store_that_fails_keeps_its_own_words(data, ledger, monkeypatch) -> None:
    session = Session(data, PLAN, ledger, share=1)

    def full(*_: object) -> None:
        raise StoreFailed("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(wi.Ledger, "store_answers", full)
        with pytest.raises(StoreFailed, match="the disk is full"):
            session.ask(Count())
    assert debits(ledger) == 1
    session.ask(Count())
    assert debits(ledger) == 1


def test_a_request_resumes_in_another_process_as_it_was(data, ledger) -> None:
    batch = [Count(), Rows(), Failing()]
    Failing.failures = 1
    with pytest.raises(ScanFailed):
        Session(data, PLAN, ledger, request="job", share=1).release(batch)
    ledger.resume("people")
    resumed = Session(data, PLAN, ledger, request="job", share=1)
    found = resumed.release(batch)
    assert debits(ledger) == 3
    assert (
        Session(data, PLAN, ledger, request="job", share=1).release(batch).answers == found.answers
    )
    with refused("request", kind=BudgetRefused):
        Session(data, PLAN, ledger, request="job", share=1).release([Rows(), Rows(), Rows()])
    assert debits(ledger) == 3
    with pytest.raises(BudgetRefused):
        Session(data, PLAN, ledger, request="jo", share=1)


def test_asking_does_not_read_the_history(data, ledger, monkeypatch) -> None:
    """It may have tens of thousands of entries."""
    for name in ("history", "record"):
        monkeypatch.setattr(wi.Ledger, name, lambda *_: pytest.fail("it read the history"))
    for _ in range(2):
        Session(data, PLAN, ledger, request="job", share=1).release([Count(), Rows()])


def test_two_sessions_share_a_budget(data, ledger) -> None:
    half = wi.calibrate(wi.Epsilon(0.5), wi.families.Independent())
    ledger.register("people", PLAN)
    first, second, third = (Session(data, half, ledger, share=1, again=True) for _ in range(3))
    first.ask(Count())
    second.ask(Count())
    with refused("budget", kind=BudgetRefused):
        third.ask(Count())
    with refused("share", kind=BudgetRefused):
        Session(data, half, ledger, share=1, again=True)
    assert debits(ledger) == 2 and spent(ledger) == 1


def test_a_spent_session_refuses_without_a_debit(data, ledger) -> None:
    session = Session(data, PLAN, ledger, share=1, again=True)
    session.ask(Count())
    for call in (session.ask, session.release, session.dry_run):
        with pytest.raises(BudgetRefused):
            call(Count())
    assert debits(ledger) == 1


def test_a_default_share_above_what_is_left_is_refused(data, ledger) -> None:
    """It took what was left, with more noise than the batches before, without a word."""
    session = Session(data, PLAN, ledger, share="2/5", again=True)
    costs = [session.ask(Count()).cost.epsilon for _ in range(2)]
    assert costs[0] == costs[1]
    for call in (session.ask, session.release, session.dry_run):
        with pytest.raises(BudgetRefused, match=r"at most 0\.2"):
            call(Count())
    assert debits(ledger) == 2
    session.ask(Count(), share="1/5")
    assert spent(ledger) == pytest.approx(1)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_what_is_left_counts_what_other_sessions_spent(data, ledger, noise) -> None:
    """It said that a half was left of a dataset that had nothing left."""
    plan = wi.calibrate(wi.Epsilon(1), delta=1e-6) if noise == "gaussian" else PLAN
    first, second = (Session(data, plan, ledger, again=True) for _ in range(2))
    first.ask(Count(), share="1/2", noise=noise)
    second.ask(Count(), share="1/4", noise=noise)
    with pytest.raises(BudgetRefused, match=r"and 0\.2\d* of .* is left in dataset 'people'"):
        first.ask(Count(), share=1, noise=noise)
    second.ask(Count(), share="0.2499999999", noise=noise)
    with pytest.raises(BudgetRefused, match="nothing of the plan's budget is left") as said:
        first.ask(Count(), share=1, noise=noise)
    assert "at most" not in str(said.value) and debits(ledger) == 3


def test_a_default_share_of_all_is_all_that_is_left(data, ledger) -> None:
    session = Session(data, PLAN, ledger, share=1)
    session.ask(Count(), share="1/4")
    session.ask(Count())
    assert spent(ledger) == pytest.approx(1)


def test_gaussian_noise_and_selections_share_a_session(ledger) -> None:
    data = oracle.table(DATA | {"w": ["A", "B", "A"]}, {"x": (0, 5), "w": ["A", "B"]})
    session = Session(data, oracle.WITH_DELTA["replace"], ledger, share=1)
    found = session.release(
        [
            Count(),
            release.Mean(column="x", by="w"),
            release.Top(by="w", k=1),
            release.Quantile(column="x", points=5),
            release.Keys(column="w"),
        ],
        noise="gaussian",
        share="1/2",
    )
    assert found[2].value[0] in ("A", "B") and "Gaussian" in found[0].noise
    later = session.ask(Count(), share="1/4")
    assert "Laplace" in later.noise
    session.ask(Count(), noise="gaussian")
    budget_state = ledger.budget_state("people")
    assert budget_state.budget.holds(budget_state.spent)


def test_plans_and_sessions_of_another_relation_are_refused(data, ledger) -> None:
    Session(data, PLAN, ledger, share=1)
    with refused("plan", kind=BudgetRefused):
        Session(data, oracle.PLANS["replace"], ledger, share=1)


def test_a_release_of_its_own_is_alone(ledger) -> None:
    data = oracle.table(DATA)
    plan = wi.calibrate(wi.Gamma(1.5), wi.families.Uninformed())
    query = release.Maximum(universe=[(name, n) for n, name in enumerate("abcdef")])
    session = Session(data, plan, ledger, share=1)
    with refused("queries"):
        session.release([query, Count()])
    session.ask(query)
    for again in (lambda: session.ask(Count()), lambda: Session(data, plan, ledger, again=True)):
        with pytest.raises(BudgetRefused):
            again()
    assert debits(ledger) == 1


def test_answers_become_frames(ledger) -> None:
    data = oracle.table(
        {"who": ["a"], "x": [1.0], "value": ["v"], "n": [1]},
        {"value": ["v", "w"], "n": [1, 2], "x": (0, 5)},
    )
    session = Session(data, PLAN, ledger, share=1)
    found = session.release([Count(by=("value", "n")), release.Top(by="n", k=2), Sum(column="x")])
    frame = found[0].to_pandas()
    assert list(frame.columns) == ["value_", "n", "value", "low", "high"] and len(frame) == 9
    assert found[0].to_polars().shape == (9, 5)
    assert len(found[0].value) == 9 and found[0].interval is None
    assert set(found[1].value) == {1, 2}
    assert found[2].to_arrow().column_names == ["value", "low", "high"]
    assert found.to_dict()["answers"][2]["cost"]["epsilon"] > 0


def test_progress_is_told_and_titles_are_named(data, ledger) -> None:
    heard = []
    session = Session(data, PLAN, ledger, share=1)
    session.release([Count(name="people in"), Rows()], watch=lambda title: heard.append(title))
    assert heard == ["people in", "rows"]


@pytest.mark.looks
def test_the_look_stops_for_rows_that_count(tmp_path):
    """Undeclared values outside a question's condition stopped it, and only skipping the look
    helped, which misses what is misspelt."""
    lines = [f"p{n},{'north' if n % 4 else 'south'},{'abcd'[n % 4]},{n % 4}" for n in range(200)]
    path, days = tmp_path / "visits.csv", {"lower": 0, "upper": 1}
    path.write_text("\n".join(["who,region,ward,days", *lines, ""]))
    south, north = "region = 'south'", "region = 'north'"

    def ask(*queries: release.Query, wards: list[str], regions: tuple[str, ...] = ()) -> str:
        domains = {"ward": {"values": wards}, "days": days, "region": ["north", "south", *regions]}
        table = wi.Table(path, "who", domains, name=f"t{len(list(tmp_path.iterdir()))}")
        with Session(table, PLAN, tmp_path / f"{table.name}.db", share=1) as session:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                try:
                    session.release(queries)
                except BudgetRefused as error:
                    return str(error).partition(";")[0].rpartition("because of ")[2]
            return ""

    by, total = Count(by="ward", where=south), Sum(column="days", where=south)
    assert ask(by, total, wards=["a"]) == ""
    assert ask(replace(by, where=north), wards=["a"]) == "column ward"
    assert ask(by, replace(by, where=north), wards=["a"]) == "column ward"
    assert ask(Count(by="ward"), wards=["a"]) == "column ward"
    assert ask(replace(total, where=north), wards=["a"]) == "column days"
    assert ask(Count(where="ward <> 'a' and days > 1"), wards=["a"]) == ""
    # What may be misspelt is looked for in all rows, and in conditions too.
    assert ask(by, wards=["a", "B"]) == "column ward"
    assert ask(Count(where="region <> 'nort'"), wards=["a"], regions=("nort",)) == "column region"


@pytest.mark.looks
def test_a_session_looks_at_the_rows_before_it_pays(tmp_path):
    """A misspelt category spent a budget from a notebook, where the command stops."""
    path, ledger = tmp_path / "visits.csv", tmp_path / "ledger.db"
    people = [f"p{number},{'Female' if number % 2 else 'Male'},{number}" for number in range(300)]
    path.write_text("\n".join(["who,sex,age", *people, ",Male,3"]) + "\n")

    def session(*sexes: str, **choices: object) -> Session:
        table = wi.Table(path, "who", {"sex": list(sexes), "age": (0, 300)})
        return Session(table, PLAN, ledger, share="1/8", **choices)

    wrong = session("male", "Female")
    with pytest.raises(BudgetRefused, match=r"column sex;(.|\n)*'Male' \(151\)") as caught:
        wrong.ask(Count(by=["sex"]))
    assert "preflight=False" in str(caught.value) and wrong.budget_state.debits == 0
    with pytest.raises(BudgetRefused, match="before anything was spent"):
        wrong.ask(Count(where="age > 1000"), share="1/8")
    right = session("Male", "Female")  # nothing was paid for with the misspelt one
    with pytest.warns(UserWarning, match="1 of 301 rows have no privacy unit") as told:
        right.ask(Count(by=["sex"]))
    assert told[0].filename == __file__  # it pointed into the module of sessions
    assert any("for the curator alone" in note for note in right.notes)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        right.ask(wi.queries.Mean(column="age", where="age < 3"), share="1/8")
    assert any("whole declared range" in str(each.message) for each in said)
    assert any("whole declared range" in note for note in right.notes)
    assert session("male", "Female", amend=True, preflight=False).ask(Count(by=["sex"]))
    analyst = session("male", "Female", curator=False)  # never looks
    assert analyst.ask(Count(by=["sex"])) and not any("declared" in each for each in analyst.notes)
    assert analyst.budget_state.debits == 4


@pytest.mark.looks
@pytest.mark.parametrize("first", [True, False])
def test_a_release_that_is_stopped_amends_nothing(tmp_path, first):
    """A misspelt domain became part of the history, although the release was stopped."""
    rows = [f"p{number},{'mf'[number % 2]}" for number in range(400)]
    path, ledger = tmp_path / "visits.csv", wi.Ledger(tmp_path / "ledger.db")
    path.write_text("\n".join(["who,sex", *rows]) + "\n")

    def session(values: str, **choices: object) -> Session:
        table = wi.Table(path, "who", {"sex": list(values)}, name="visits")
        return Session(table, PLAN, ledger, share="1/3", **choices)

    opened = session("mf")
    if first:
        opened.ask(Count(by="sex"))
    kept = ledger.budget_state("visits").head
    wrong = session("mx", dataset="visits", amend=first)
    for request in (wrong, session("mx", dataset="visits", amend=first, request="monday")):
        with pytest.raises(BudgetRefused, match="before anything was spent"):
            request.ask(Count(by="sex"))
    assert ledger.budget_state("visits").head == kept
    right = session("fm", dataset="visits", amend=first)
    assert ledger.budget_state("visits").head == kept
    assert right.ask(Count(by="sex"))
    kinds = [entry.kind for entry in ledger.history("visits")]
    assert kinds.count("amended") == 1 and kinds[-2] == "debit"


@pytest.mark.looks
def test_bounds_that_cut_many_people_are_said_before_a_session_pays(tmp_path):
    path = tmp_path / "visits.csv"
    rows = [f"p{number},{'xy'[number % 2]}" for number in range(200)]
    path.write_text("\n".join(["who,ward", *rows, *rows[:70]]) + "\n")
    table = wi.Table(path, "who", {"ward": ["x", "y"]})
    session = Session(table, PLAN, tmp_path / "ledger.db", share="1/2")
    with pytest.warns(
        UserWarning, match=r"70 of 270 rows \(25\.9%\), of 35\.0% of the people; with 2: 0"
    ):
        session.ask(Rows(by="ward"))
    assert session.budget_state.debits == 1
    session.ask(Count(by=["ward"]))  # of which everyone is counted once


@pytest.mark.looks
def test_constants_of_features_are_said_and_stop(tmp_path) -> None:
    """Those of a feature that no question is about are not."""
    path = tmp_path / "people.csv"
    path.write_text("who,sex\na,male\nb,female\nb,female\n")
    features = [
        release.Feature("men", "count", where="sex = 'mal'"),
        release.Feature("women", "count", where="sex in ('female')"),
    ]
    domains = {"sex": ["male", "female"], "men": (0, 3), "women": (0, 3)}
    table = wi.Table(path, "who", domains, features=features)
    asked = [release.Mean(column="men"), release.Mean(column="women"), Count(where="men > 1")]
    with Session(table, PLAN, tmp_path / "l.db", share="1/9") as session:
        estimates = session.dry_run(asked)
        found = [[each.nearest for each in one.cautions if each.constant] for one in estimates]
        assert found == [["male"], [], ["male"]]
        with pytest.raises(BudgetRefused, match="'mal' in where"):
            session.ask(asked[0])
        with pytest.warns(UserWarning, match="fewer than"):
            session.ask(asked[1])


@pytest.mark.looks
@pytest.mark.parametrize(
    ("where", "undeclared"),
    [
        ("Sex in ('Male', 'femal')", {"femal": "Female"}),
        ("'MALE' <> Sex or age > 3", {"MALE": "Male"}),
        ("not (Sex = ' Male' and land = 'DE')", {" Male": "Male", "DE": None}),
        ("ward = 4 or ward in (1, '2', 7.0, -1)", {"4": None, "7.0": None, "-1": None}),
        ("case Sex when 'femal' then 1 else 0 end = 1", {"femal": "Female"}),
        ("Sex = 'Male' or ward = 2.0 or land <> 'CH' or note = 'femal' or age = 77", {}),
        ("lower(Sex) = 'male' or Sex like 'femal'", {}),
    ],
)
def test_constants_that_are_not_declared_are_said_and_stop(tmp_path, where, undeclared):
    """'femal' was released without a word, as nobody."""
    path = tmp_path / "visits.csv"
    rows = [f"p{n},{'Female' if n % 2 else 'Male'},{n % 3 + 1},x,{n}" for n in range(60)]
    path.write_text("\n".join(["who,Sex,ward,note,age", *rows, ""]))
    sexes = {"values": ["Male", "Female"], "parents": {"land": {"CH": ["Male"], "A": ["Female"]}}}
    domains = {"Sex": sexes, "ward": [1, 2, 3], "age": (0, 60)}

    def session(**choices: bool) -> Session:
        return Session(wi.Table(path, "who", domains), PLAN, tmp_path / "l.db", **choices)

    asked = Count(where=where)
    with session(share=1) as opened:
        (estimate,) = opened.dry_run([asked])
        cautions = [each for each in estimate.cautions if each.about == "where"]
        assert {each.constant: each.nearest for each in cautions} == undeclared
        assert all(each.to_dict()["words"] for each in cautions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            if undeclared:
                with pytest.raises(BudgetRefused) as caught:
                    opened.ask(asked)
                assert all(repr(each) in str(caught.value) for each in undeclared)
            else:
                opened.ask(asked)
    assert opened.budget_state.debits == (not undeclared)
    if undeclared:  # an analyst is told beforehand, and never stopped by a look
        with session(share="1/2", curator=False) as analyst:
            assert analyst.dry_run([asked])[0].cautions == estimate.cautions
            assert analyst.ask(asked)


@pytest.mark.looks
@pytest.mark.parametrize(
    ("held", "stopped"),
    [
        ("male", ["Male"]),
        (" Male", ["Male"]),
        ("M\u00a0ale ", ["Male"]),
        ("zürich  WEST", ["Zürich West"]),
        ("Zürich-West", []),
        ("femal", []),
        ("", []),
    ],
)
def test_values_that_differ_in_letter_case_or_spaces_stop(tmp_path, held, stopped):
    """A few 'male' among 'Male' were a line on standard error, and paid for in the same breath."""
    path = tmp_path / "visits.csv"
    rows = [f"p{n},{('Male', 'Female', 'Zürich West')[n % 3]}" for n in range(300)]
    rows += [f"q{n}{letter},{letter}" for n in range(9) for letter in "abcdef"]
    path.write_text("\n".join(["who,sex", *rows, f'r,"{held}"', ""]), encoding="utf-8")
    table = wi.Table(path, "who", {"sex": ["Male", "Female", "Zürich West"]})
    for asked in (Count(by="sex"), Count(where="sex = 'Male'")):
        found = inspection.run_preflight(table, [asked.contribution_policy(table)], [asked])
        (column,) = found.columns
        assert list(column.alike) == [(held, each, 1) for each in stopped]
        assert found.stops is bool(stopped) and len(column.named) == 5
        assert not stopped or repr(held) in str(found.refuse("skip", details=True))
