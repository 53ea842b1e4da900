"""The ledger on a real PostgreSQL: the same promises, with kills, lost connections and races."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

import postgres
import whosin as wi
from ledger_programs import kill_until, run_kills
from refusals import refused
from reserve_checks import check_reserve
from suspending_checks import check_a_release_of_its_own, check_forking, check_suspending, fail
from whosin.app.cli.main import main
from whosin.app.example_data import write_hospital
from whosin.errors import BrokenHistory, BudgetRefused, EmptyLedger, StoreFailed
from whosin.ledger import Cost, JointBudget, Spend, encoding, entries, store, verify
from whosin.ledger import budget_state as states
from whosin.ledger.budget import Accounts
from whosin.ledger.registration import Registration
from whosin.ledger.store import format_moment

PLAN = wi.calibrate(wi.Epsilon(1))
PRICE = Spend({"query": "count"}, {"add-remove": Cost.pure("0.1")})


@pytest.fixture(scope="session")
def server():
    postgres.require()
    with postgres.server() as running:
        yield running


@pytest.fixture
def admin(server):
    """Runs a statement beside the ledger."""

    def run(statement: str) -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(statement)

    return run


@pytest.fixture
def url(server, admin, request):
    """An empty database of its own."""
    name = f"test_{abs(hash(request.node.name)) % 10**9}"
    admin(f"CREATE DATABASE {name}")
    yield server.url.replace("/postgres?", f"/{name}?")
    admin(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def ledger(url):
    with wi.Ledger(url, who="tester", wait=5) as opened:
        yield opened


def cut_connections(admin) -> None:
    """What a restart of the server, or a firewall, does to all other connections."""
    admin(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


def test_the_whole_way(ledger):
    ledger.register("Ärzte [red]", PLAN)
    assert ledger.answer("Ärzte [red]", PRICE, lambda: {"é": 1}, "r") == {"é": 1}
    assert ledger.answer("Ärzte [red]", PRICE, lambda: 2, "r") == {"é": 1}
    for number in range(9):
        ledger.debit("Ärzte [red]", f"{number}", PRICE)
    with pytest.raises(BudgetRefused, match="has 0 left"):
        ledger.debit("Ärzte [red]", "more", PRICE)
    ledger.close("Ärzte [red]")
    assert verify(ledger, "Ärzte [red]").debits == 10
    assert postgres.PASSWORD not in ledger.name and ledger.name.startswith("postgresql://whosin:")
    with pytest.raises(BudgetRefused):
        ledger.register("Ärzte [red]", PLAN)


def test_joint_releases_race_for_one_budget(url, ledger):
    """Eight clients measure at the same time: what was measured without the last debit is refused,
    and what stands adds up to the joint level of all that was paid."""
    ledger.register("days", wi.calibrate(wi.Epsilon(1), wi.families.ValueOfOne()))
    chain = {"initial": ["1/2", "1/2"], "transition": [["0.8", "0.2"], ["0.3", "0.7"]]}
    model = {"chain": chain, "rows": 4}

    def ask(worker: int) -> str:
        with wi.Ledger(url, who=f"client {worker}", wait=30) as own:
            budget = JointBudget(own, "days", model)
            for _ in range(20):
                try:
                    budget.debit({"query": "sum", "scale": 12 + worker}, str(worker))
                    return "paid"
                except BudgetRefused as error:
                    if error.field == "budget":
                        return "too much"
        return "lost every race"

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(ask, range(8)))
    budget = JointBudget(ledger, "days", model)
    paid = budget.releases()
    assert 1 < outcomes.count("paid") == len(paid) < 8 and "too much" in outcomes
    spent = ledger.budget_state("days").spent.epsilon / encoding.EPSILON_UNITS
    assert budget.level(paid) == pytest.approx(spent, abs=1e-9) and spent <= 1
    assert verify(ledger, "days").debits == len(paid)


def test_eight_processes_and_kill_9(url, tmp_path):
    found = run_kills(url, tmp_path, "--debits", "32", "--kills", "6")
    assert found["kills"] >= 6 and found["debits"] == 144 and found["refused"] == 48


@pytest.mark.soak
def test_two_thousand_kills(url, tmp_path, capsys) -> None:
    kill_until(2000, url, tmp_path, 500, capsys)


@pytest.mark.soak
@pytest.mark.parametrize("more", [(), ("--lapses",)])
def test_sixty_four_analysts_over_parts_periods_and_quotas(url, tmp_path, more) -> None:
    options = ("--workers", "64", "--debits", "8", "--kills", "64", "--accounts", *more)
    found = run_kills(url, tmp_path, *options)
    assert found["kills"] >= 64 and found["refused"] > 50 and found["debits"] > 150


def test_threads_never_overdraw_and_views_are_consistent(ledger):
    """Ten threads pay while another verifies: a reader must never see half of a debit."""
    ledger.register("d", wi.calibrate(wi.Epsilon(5)))
    outcomes, problems, done = [], [], threading.Event()

    def ask(worker):
        for number in range(10):
            try:
                ledger.answer("d", PRICE, lambda: worker, f"{worker}/{number}")
                outcomes.append(True)
            except BudgetRefused:
                outcomes.append(False)

    def look():
        while not done.is_set():
            try:
                verify(ledger, "d")
            except BrokenHistory as error:
                problems.append(error)

    threads = [threading.Thread(target=ask, args=(worker,)) for worker in range(10)]
    reader = threading.Thread(target=look)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    assert problems == []
    assert (outcomes.count(True), outcomes.count(False)) == (50, 50)


def test_first_users_at_once(url):
    outcomes = []
    barrier = threading.Barrier(8)

    def begin(worker):
        barrier.wait(300)
        with wi.Ledger(url, who=f"{worker}") as ledger:
            try:
                ledger.register("d", PLAN)
                outcomes.append("registered")
            except BudgetRefused:
                outcomes.append("refused")
            ledger.admit("d", PLAN)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin, range(8)))
    assert sorted(outcomes) == ["refused"] * 7 + ["registered"]


def test_two_who_register_the_same_rows_at_once_get_one_budget(url):
    """The second one waits until the first is seen."""
    rows = Registration("who", {}, source={"rows": "3 abc"})
    barrier = threading.Barrier(4)

    def register(number: int) -> bool:
        with wi.Ledger(url) as ledger:
            ledger.datasets()
            barrier.wait()
            try:
                ledger.register(f"name {number}", PLAN, rows)
            except BudgetRefused:
                return False
            return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(register, range(4))) == 1


def test_a_connection_lost_before_a_debit_is_made_again(ledger, admin, caplog):
    ledger.register("d", PLAN)
    cut_connections(admin)
    assert ledger.answer("d", PRICE, lambda: 1, "r") == 1
    cut_connections(admin)
    assert ledger.budget_state("d").debits == 1
    cut_connections(admin)
    assert ledger.admit("d", PLAN, resume=True).debits == 1
    assert caplog.records == []


def test_an_answer_takes_four_round_trips(ledger, monkeypatch):
    """Lock and look, change and commit, twice; each trip waits for the server once."""
    from whosin.ledger.transaction import Transaction

    trips, run = [], Transaction._run
    ledger.register("d", PLAN)

    def count(turn, statements):
        trips.append([text.split()[0] for text, _ in statements])
        return run(turn, statements)

    monkeypatch.setattr(Transaction, "_run", count)
    with monkeypatch.context() as patch:
        # Whatever is sent besides would be a trip more: a ping, a BEGIN, a COMMIT.
        patch.setattr(psycopg.Connection, "commit", lambda _: pytest.fail("a trip more"))
        patch.setattr(psycopg.Cursor, "executemany", lambda *_: pytest.fail("a trip more"))
        assert ledger.answer("d", PRICE, lambda: 1, "r") == 1
    look, change = ["BEGIN", *["SELECT"] * 6], ["SELECT", "COMMIT"]
    assert trips == [look, change, look, change]


def test_a_retry_that_waited_for_the_first_sees_its_debit(ledger):
    """Both ask the same at once: who waits for the lock must see what was written meanwhile."""
    ledger.register("d", PLAN)
    shown, barrier = [], threading.Barrier(6)

    def ask(worker):
        for number in range(8):
            barrier.wait(300)
            shown.append((number, ledger.answer("d", PRICE, lambda: worker, f"{number}")))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, range(6)))
    assert len(shown) == 48 and len(set(shown)) == 8
    assert verify(ledger, "d").debits == 8


def test_a_disk_that_fails_at_the_commit_leaves_nothing(ledger, admin, monkeypatch):
    """An error inside the last trip: the statements after it, and the commit, do not happen."""
    from whosin.ledger import transaction

    ledger.register("d", PLAN)
    broken = {"call debit": "SELECT 1 / 0"}
    real = transaction.statement_text
    monkeypatch.setattr(
        transaction, "statement_text", lambda name, on: broken.get(name) or real(name, on)
    )
    with pytest.raises(StoreFailed, match="no answer was given"):
        ledger.answer("d", PRICE, lambda: 1, "r")
    monkeypatch.undo()
    assert verify(ledger, "d").entries == 1
    assert ledger.answer("d", PRICE, lambda: 1, "r") == 1


def test_a_connection_lost_inside_a_debit(ledger, admin, monkeypatch):
    from whosin.ledger import budget_state as states

    ledger.register("d", PLAN)
    pay = states.pay_debits
    monkeypatch.setattr(states, "pay_debits", lambda *a: cut_connections(admin) or pay(*a))
    with pytest.raises(StoreFailed, match=r"the connection was lost \(.*\); no answer was"):
        ledger.answer("d", PRICE, lambda: 1, "r")
    monkeypatch.undo()
    assert ledger.budget_state("d").debits == 0
    assert ledger.answer("d", PRICE, lambda: 1, "r") == 1


def test_a_connection_lost_between_debit_and_answer(ledger, admin):
    ledger.register("d", PLAN)

    def draw():
        cut_connections(admin)
        return "shown"

    assert ledger.answer("d", PRICE, draw, "r") == "shown"
    assert verify(ledger, "d").debits == 1


def test_a_server_that_crashes_between_debit_and_answer(server, url):
    with wi.Ledger(url, who="tester", wait=2) as ledger:
        ledger.register("d", PLAN)

        def draw():
            server.stop("immediate")
            return "not shown"

        try:
            with pytest.raises(StoreFailed) as caught:
                ledger.answer("d", PRICE, draw, "r")
        finally:
            server.start()
        assert "\n" not in str(caught.value) and postgres.PASSWORD not in str(caught.value)
        assert verify(ledger, "d").unanswered == ("r",)
        assert ledger.answer("d", PRICE, lambda: "shown", "r") == "shown"
        assert ledger.budget_state("d").debits == 1


def test_a_server_that_crashes_anywhere_is_one_sentence(server, url, run, caplog):
    """Before, inside and after a statement, in calls of every kind, and on the command."""
    with wi.Ledger(url, who="tester", wait=2) as ledger:
        ledger.register("d", PLAN)
        for call in (
            lambda: verify(ledger, "d"),
            lambda: ledger.register("e", PLAN),
            lambda: ledger.debit("d", "r", PRICE),
        ):
            ledger.budget_state("d")
            begun = ledger._store.reading()
            connection = begun.__enter__()
            server.stop()
            with pytest.raises(StoreFailed) as caught:
                call()
            try:
                connection.execute("SELECT 1")
            except Exception as error:
                with pytest.raises(StoreFailed) as inside:
                    begun.__exit__(type(error), error, None)
            code, out, err = run("ledger verify", url)
            server.start()
            assert (code, out) == (3, "") and err.startswith("whosin: ") and err.count("\n") == 1
            for message in (str(caught.value), str(inside.value)):
                assert "\n" not in message and message.endswith("no answer was given")
        assert verify(ledger, "d").entries == 1
    assert caplog.records == []


@pytest.mark.parametrize("state", ["starting up", "in recovery mode", "shutting down"])
def test_a_server_that_is_not_ready_says_so(state):
    error = psycopg.OperationalError(f"connection failed: FATAL:  the database system is {state}")
    assert store.describe_failure(error) == "the server is starting or stopping"


def test_a_server_without_a_free_connection_is_waited_for(url, admin, as_role):
    """Where a team asks all at once, whoever comes later waits, and for no longer than was said."""
    as_role("analysts").dispose()
    admin("ALTER ROLE analysts CONNECTION LIMIT 1")
    there = url.replace(f"whosin:{postgres.PASSWORD}", "analysts:few-rights")

    def take_the_last() -> psycopg.Connection:
        """A server knows a little later than its client that a connection has ended."""
        end = time.monotonic() + 120
        while True:
            try:
                return psycopg.connect(there)
            except psycopg.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    with take_the_last() as taken:
        threading.Timer(1, taken.close).start()
        with wi.Ledger(there, wait=120) as ledger:
            assert ledger.datasets() == []
    with take_the_last(), pytest.raises(StoreFailed) as caught:
        wi.Ledger(there, wait=0.3)
    assert "used: the server has no connection left (" in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        "sorry, too many clients already",
        'too many connections for role "ann"',
        "remaining connection slots are reserved for non-replication superuser connections",
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
    ],
)
def test_every_word_for_no_connection_left_is_known(words):
    error = psycopg.OperationalError(f"connection to server failed: FATAL:  {words}")
    assert store.describe_failure(error) == "the server has no connection left"


def test_a_dataset_locked_by_someone(url, admin):
    with wi.Ledger(url, wait=0.3) as ledger:
        ledger.register("d", PLAN)
        ledger.register("other", PLAN)
        with psycopg.connect(url) as connection:
            connection.execute("SELECT * FROM whosin_datasets WHERE name = 'd' FOR UPDATE")
            with pytest.raises(StoreFailed, match="locked by another session; no answer"):
                ledger.answer("d", PRICE, lambda: 1, "r")
            assert ledger.answer("other", PRICE, lambda: 1, "r") == 1
            connection.rollback()
        assert ledger.answer("d", PRICE, lambda: 1, "r") == 1


def test_a_server_set_to_other_habits(url, admin):
    """Asynchronous commits and stricter isolation, set for the whole database, change nothing."""
    name = url.split("/")[3].split("?")[0]
    admin(f"ALTER DATABASE {name} SET synchronous_commit TO off")
    admin(f"ALTER DATABASE {name} SET default_transaction_isolation TO serializable")
    with wi.Ledger(url, wait=5) as ledger:
        ledger.register("d", PLAN)
        with ledger._store.writing() as connection:
            ledger._store.stamp(connection)
            shown = [
                connection.execute(f"SHOW {setting}").fetchone()[0]
                for setting in ("synchronous_commit", "transaction_isolation", "lock_timeout")
            ]
        with ledger._store.reading() as connection:
            view = connection.execute("SHOW transaction_isolation").fetchone()[0]
        assert (shown, view) == (["on", "read committed", "5s"], "repeatable read")
        with ledger._store.turn("d", "r") as turn:
            shown = [
                turn.connection.execute(f"SHOW {setting}").fetchone()[0]
                for setting in ("synchronous_commit", "transaction_isolation", "lock_timeout")
            ]
        assert shown == ["on", "read committed", "5s"]
        assert ledger.answer("d", PRICE, lambda: 1, "r") == 1


def test_a_database_that_may_not_be_written(url, admin):
    wi.Ledger(url).dispose()
    name = url.split("/")[3].split("?")[0]
    admin(f"ALTER DATABASE {name} SET default_transaction_read_only TO on")
    with wi.Ledger(url) as ledger, pytest.raises(StoreFailed, match="database cannot be written"):
        ledger.register("d", PLAN)


def test_wrong_passwords_and_places_are_not_shown(url):
    wrong = url.replace(postgres.PASSWORD, "guessed-it")
    for address in (wrong, url.replace("host=", "host=/nowhere"), url.replace("test_", "no_")):
        with pytest.raises(StoreFailed) as caught:
            wi.Ledger(address, wait=2)
        message = str(caught.value)
        assert "guessed-it" not in message and postgres.PASSWORD not in message
        assert "\n" not in message and message.endswith("no answer was given")
    with pytest.raises(StoreFailed, match="refused the user or password"):
        wi.Ledger(wrong, wait=2)


@pytest.fixture
def as_role(url, ledger):
    """Opens the ledger in a role that has the rights of the documentation, and no other."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "postgres.md").read_text(
        encoding="utf-8"
    )
    grants = page.split("```sql\n")[1].split("```")[0]
    roles = ("analysts", "curators", "closers")
    with ledger._store.writing() as connection:
        for role in roles:
            connection.execute(f"DROP ROLE IF EXISTS {role}")
            connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'few-rights'")
        for statement in grants.strip().split(";")[:-1]:
            connection.execute(statement)
    opened = []

    def connect(role: str) -> wi.Ledger:
        there = url.replace(f"whosin:{postgres.PASSWORD}", f"{role}:few-rights")
        opened.append(wi.Ledger(there, who=role))
        return opened[-1]

    yield connect
    for each in opened:
        each.dispose()
    with ledger._store.writing() as connection:
        for role in roles:
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")


def test_the_grants_of_the_documentation_are_enough(as_role):
    as_role("curators").register("d", PLAN)
    analyst = as_role("analysts")
    assert analyst.admit("d", PLAN).debits == 0
    assert analyst.answer("d", PRICE, lambda: 1, "r") == 1
    assert verify(analyst, "d").debits == 1
    with pytest.raises(MemoryError):
        analyst.answer("d", PRICE, fail, "s")
    assert as_role("curators").resume("d").suspensions == 1
    assert as_role("closers").close("d").state == "closed"


def test_the_grants_of_the_documentation_allow_no_more(as_role, ledger):
    """Neither a statement of one's own nor another role's function."""
    ledger.register("d", PLAN)
    analyst, curator, closer = (as_role(role) for role in ("analysts", "curators", "closers"))
    for session in (analyst, curator, closer):
        for statement in (
            "UPDATE whosin_datasets SET spent_epsilon = 0",
            "UPDATE whosin_datasets SET epsilon = 10 * epsilon",
            "INSERT INTO whosin_entries VALUES ('d', 2, 'debit', 'x', '{}', '')",
            "INSERT INTO whosin_answers VALUES ('d', 'x', '1')",
            "DELETE FROM whosin_answers",
            "TRUNCATE whosin_entries",
            "CREATE TRIGGER t BEFORE INSERT ON whosin_entries EXECUTE FUNCTION whosin_lock('d')",
            "SELECT whosin_write(d, 'debit', 'x', '{}', '') FROM whosin_datasets d",
        ):
            refused = pytest.raises(StoreFailed, match="permission denied")
            with refused, session._store.writing() as connection:
                connection.execute(statement)
    for function, call in (
        ("register", lambda: analyst.register("e", PLAN)),
        ("register", lambda: analyst.admit("e", PLAN)),
        ("quota", lambda: analyst.set_quota("d", "eve", "1/4")),
        ("close", lambda: analyst.close("d")),
        ("register", lambda: closer.register("e", PLAN)),
        ("debit", lambda: closer.debit("d", "r", PRICE)),
        ("close", lambda: curator.close("d")),
        ("debit", lambda: curator.debit("d", "r", PRICE)),
        ("resume", lambda: (analyst.suspend("d"), analyst.resume("d"))),
        ("resume", lambda: closer.resume("d")),
    ):  # and it says who may
        with pytest.raises(StoreFailed, match=f"permission denied.* whosin_{function}"):
            call()
    assert ledger.datasets() == ["d"] and verify(ledger, "d").entries == 2


def test_whoever_signed_in_asks(url, as_role, ledger, monkeypatch):
    """Neither a login's name, nor a name that is given, nor a program of one's own spends what is
    kept for others, or leaves one's own quota; who may keep quotas may ask for anyone."""
    monkeypatch.setenv("LOGNAME", "eve")
    ledger.register("d", PLAN)
    with pytest.warns(UserWarning, match="no role 'eve': only a curator could ask"):
        ledger.set_quota("d", "eve", "1/4")
    ledger.set_quota("d", "analysts", "1/4")
    there = url.replace(f"whosin:{postgres.PASSWORD}", "analysts:few-rights")
    with refused("who"):
        as_role("analysts")
        wi.Ledger(there, who="eve")
    with wi.Ledger(there) as analyst:
        assert analyst.who == "analysts"
        analyst.answer("d", PRICE, lambda: 1, "mine")
        for lie in (("who", "eve"), ("find_quota", lambda *_: None)):
            with monkeypatch.context() as lies:
                lies.setattr(analyst if lie[0] == "who" else Accounts, *lie)
                with pytest.raises(StoreFailed, match="its rules refuse this entry"):
                    analyst.debit("d", "a lie", PRICE)
    with wi.Ledger(url) as owner, wi.Ledger(url, who="eve") as eve:
        assert (owner.who, eve.who, as_role("curators").who) == ("whosin", "eve", "curators")
        eve.debit("d", "for eve", PRICE)
    paid = [each.body.get("quota") for each in ledger.history("d") if each.kind == "debit"]
    assert paid == ["analysts", "eve"] and verify(ledger, "d").debits == 2


def test_a_failure_after_a_debit_suspends_the_dataset(ledger):
    check_suspending(ledger)


def test_a_release_of_its_own_stays_the_only_one(ledger):
    check_a_release_of_its_own(ledger)


def test_a_program_of_ones_own_draws_nothing_while_it_is_suspended(ledger, monkeypatch):
    ledger.register("d", PLAN)
    debit = ledger.debit("d", "r", PRICE)
    ledger.suspend("d", "r")
    monkeypatch.setattr(states, "refuse_suspended", lambda _: None)
    for call in (
        lambda: ledger.store(debit, 1),
        lambda: ledger.debit("d", "s", PRICE),
        lambda: ledger.debits("d", {"s": PRICE}),
    ):
        with pytest.raises(StoreFailed, match="its rules refuse this entry"):
            call()
    monkeypatch.undo()
    assert verify(ledger, "d").entries == 3 and ledger.resume("d").debits == 1


FORGERIES = {
    "the sums stay": lambda row, entry: (row, {**entry, "sums": entries.running_sums(row)}),
    "a cost below zero": lambda row, entry: (row, priced(entry, -1)),
    "no cost": lambda row, entry: (row, {**entry, "costs": {}}),
    "more than the budget": lambda row, entry: (row, priced(entry, 2 * encoding.EPSILON_UNITS)),
    "other terms": lambda row, entry: (row._replace(epsilon=2 * row.epsilon), entry),
    "another head": lambda row, entry: (row._replace(head="0" * 64), entry),
    "another number": lambda row, entry: (row._replace(entries=7), entry),
}


def priced(body, epsilon):
    return {**body, "costs": {"add-remove": {"epsilon": epsilon, "rho": 0, "delta": 0}}}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_the_functions_believe_nothing(as_role, ledger, forgery):
    """An analyst with a program of one's own, who computes sums and digests as it pleases."""
    ledger.register("d", PLAN)
    ledger.debit("d", "first", PRICE)
    analyst = as_role("analysts")
    with analyst._store.turn("d", ["r"]) as turn:
        body = {"who": "eve", "when": format_moment(), **PRICE.to_dict()}
        row, body = FORGERIES[forgery](turn.row, body)
        said = body.pop("sums", None)
        cost = body["costs"].get("add-remove", {"epsilon": 0})
        entry, after = entries.next_entry(
            row, "debit", "r", body, debits=2, spent_epsilon=row.spent_epsilon + cost["epsilon"]
        )
        if said is not None:
            entry = replace(entry, body={**entry.body, "sums": said})
            entry = replace(entry, head=encoding.link_digest(row.head, entry.linked()))
        with pytest.raises(psycopg.Error) as caught:
            turn.commit(after, entry)
        assert caught.value.sqlstate == "WH001"
    assert verify(ledger, "d").debits == 1


def test_a_release_closes_its_connections(url, tmp_path):
    """The command left the ledger's open until the process ended."""
    assert main(["release", str(write_hospital(tmp_path, 500)), "--ledger", url]) == 0
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    deadline = time.monotonic() + 60  # the server hears of an end a little later
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(f"SELECT count(*) {others}").fetchone() != (0,):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_an_empty_database_is_not_a_ledger_yet(url):
    """Nor is one with other tables, which is not empty."""
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE flights (who int)")
    with pytest.raises(EmptyLedger) as caught:
        wi.Ledger(url, create=False)
    assert caught.value.field == "ledger" and "empty" not in str(caught.value)


def test_a_newer_version(url, ledger):
    with ledger._store.writing() as connection:
        connection.execute("UPDATE whosin_ledger SET version = 7")
    with pytest.raises(StoreFailed, match="format 7, written by a newer whosin"):
        wi.Ledger(url)


def test_a_changed_row_shows(ledger):
    ledger.register("d", PLAN)
    ledger.answer("d", PRICE, lambda: 1, "r")
    with ledger._store.writing() as connection:
        connection.execute("UPDATE whosin_answers SET answer = '2'")
    with pytest.raises(BrokenHistory, match="answer to request 'r' was changed"):
        verify(ledger, "d")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_opens_its_own_connections(ledger):
    check_forking(ledger)


def test_the_servers_clock_counts(ledger, monkeypatch):
    from whosin.ledger import store

    ledger.register("d", PLAN)
    real = store.format_moment
    monkeypatch.setattr(store, "format_moment", lambda *given: real(*given) if given else "2001")
    assert ledger.answer("d", PRICE, lambda: 1, "r") == 1
    assert verify(ledger, "d").debits == 1
    assert all(entry.body["when"] > "2025" for entry in ledger.history("d"))


@pytest.mark.parametrize("day", ["2001-01-01", "2999-01-01"])
def test_a_client_cannot_move_the_clock(url, ledger, monkeypatch, day):
    """An answer dated 2999 would have locked out everyone whose budget has dates; the server's own
    clock can go back, and its curator says so."""
    year = datetime.now(UTC).year
    ledger.register("d", PLAN, schedule={"every": "year", "until": f"{year + 1}"})
    debit = ledger.debit("d", "first", PRICE)
    with monkeypatch.context() as lies:
        lies.setattr(store, "format_moment", lambda *_: f"{day}T00:00:00.000000Z")
        for check in ("check_clock", "check_limits"):
            lies.setattr(states, check, lambda *_: None)
        for entry in (
            lambda: ledger.store(debit, 1),
            lambda: ledger.close("d"),
            lambda: ledger.debit("d", "second", PRICE),
            lambda: ledger.set_quota("d", "ann", "1/4"),
            lambda: ledger.register("e", PLAN),
        ):
            with pytest.raises(StoreFailed, match="its rules refuse this entry"):
                entry()
    assert [each.kind for each in ledger.history("d")] == ["registered", "debit"]
    with pytest.raises(BudgetRefused, match="is not suspended"):
        ledger.resume("d")
    last = f"{year + 1}-12-31T00:00:00.000000Z"
    lie_about_the_last(url, ledger, last)
    with pytest.raises(BudgetRefused, match="the clock says"):
        ledger.store(debit, 1)
    ledger.suspend("d")
    assert ledger.budget_state("d").last == last
    ledger.resume("d")
    ledger.store(debit, 1)
    assert verify(ledger, "d").debits == 1


def lie_about_the_last(url, ledger, when):
    """The last entry as a server writes it whose clock is ahead."""
    history = ledger.history("d")
    *_, before, end = history
    entry = replace(end, body={**end.body, "when": when})
    head = encoding.link_digest(before.head, entry.linked())
    with psycopg.connect(url) as base:
        body = encoding.canonical_json(entry.body)
        base.execute(
            "UPDATE whosin_entries SET body = %s, head = %s WHERE number = %s",
            (body, head, end.number),
        )
        base.execute("UPDATE whosin_datasets SET last = %s, head = %s", (when, head))


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
            "CREATE TRIGGER t BEFORE INSERT ON whosin_entries FOR EACH ROW EXECUTE FUNCTION f()",
            "it has a trigger, 't'",
        ),
        ("CREATE RULE r AS ON UPDATE TO whosin_datasets DO INSTEAD NOTHING", "it has a rule, 'r'"),
        ("ALTER TABLE whosin_entries ENABLE ROW LEVEL SECURITY", "a table with row security"),
        ("CREATE TABLE child () INHERITS (whosin_entries)", "it has a child table"),
        ("ALTER TABLE whosin_answers ADD COLUMN more text", "the columns of whosin_answers"),
        (
            "CREATE OR REPLACE FUNCTION whosin_lock(p_dataset text) RETURNS void LANGUAGE sql "
            "AS 'SELECT'",
            "its functions are not those of a ledger",
        ),
        ("DROP FUNCTION whosin_close", "its functions are not those of a ledger"),
        (
            "ALTER TABLE whosin_entries DROP CONSTRAINT whosin_entries_dataset_fkey; "
            "ALTER TABLE whosin_answers DROP CONSTRAINT whosin_answers_dataset_fkey; "
            "DELETE FROM whosin_datasets",
            "it has entries, and the dataset itself is gone",
        ),
    ],
)
def test_what_no_history_covers_shows(url, ledger, statement, reason):
    ledger.register("d", PLAN)
    assert verify(ledger, "d").entries == 1
    with psycopg.connect(url, autocommit=True) as base:
        base.execute(statement)
    with pytest.raises(BrokenHistory) as caught:
        verify(ledger, "d")
    assert reason in str(caught.value)


def test_a_debit_trusts_no_cell(url, ledger):
    """Not even the owner's: what was spent is what the last entry says."""
    ledger.register("d", PLAN)
    ledger.debit("d", "first", PRICE)
    for change in ("spent_epsilon = 0", "epsilon = 2 * epsilon", "registration = ''"):
        with psycopg.connect(url) as base:
            base.execute(f"UPDATE whosin_datasets SET {change}")
            base.commit()
            with pytest.raises(BrokenHistory):
                ledger.debit("d", "r", PRICE)
            base.execute(
                "UPDATE whosin_datasets SET spent_epsilon = 100000000000, epsilon = 1000000000000,"
                " registration = NULL"
            )
    assert ledger.debit("d", "r", PRICE).new


def test_tables_are_bound_amended_and_paid_in_batches(ledger):
    from whosin.ledger.registration import Registration

    table = Registration("patient", schema={"patient": "string"}, source={"bytes": "a"})
    ledger.register("d", PLAN, table)
    asked = replace(PRICE, registration=table)
    ledger.debits("d", {f"r/{place}": asked for place in range(3)})
    changed = replace(table, source={"bytes": "b"})
    later = replace(asked, registration=changed)
    with pytest.raises(BudgetRefused, match="the source has changed"):
        ledger.debit("d", "next month", later)
    ledger.amend("d", changed)
    ledger.debit("d", "next month", later)
    with pytest.raises(BudgetRefused, match="once and for all"):
        ledger.amend("d", Registration("visit"))
    with pytest.raises(BudgetRefused, match="left"):
        ledger.debits("d", {f"s/{place}": later for place in range(8)})
    assert ledger.budget_state("d").debits == 4
    assert ledger.copies("other", changed) == ["d"]
    verify(ledger, "d")


def test_a_budget_with_a_reserve_holds_it_and_no_more(ledger):
    check_reserve(ledger)
