"""Eight processes pay and answer on one ledger while a ninth kills them at random with kill -9.

    python tests/helpers/ledger_kills.py URL FOLDER --debits 200 --kills 100

It is a program of its own, so that it can fork: children start at once, with everything imported,
and die in the middle of anything. With --accounts the questions are about parts, the budget has a
schedule, and half of the children have quotas; with --lapses, too, what a period leaves is lost,
half of the questions have Gaussian noise, and in a file a month passes in a second; with
--running, too, no clock runs, and each asks for running totals, step by step, in sessions. A child
that died is started again and asks its last questions once more. Half of the questions are asked by
two children under one id. Everything that a child shows is written to a file in FOLDER; at the end
one JSON object says what was seen.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import whosin as wi
from whosin.errors import BudgetRefused
from whosin.ledger import Cost, Entry, Spend, encoding, verify
from whosin.ledger.budget import Budget, Schedule
from whosin.ledger.encoding import INFINITE_UNITS
from whosin.ledger.registration import Registration

WORKERS = 8
PAUSE = 0.01
"""Seconds between two kills, on average."""
CURRENCIES = ("epsilon", "rho")
SPEED = 86_400 * 30
"""Of the clock that runs ahead: a month a second."""
BACK = 4
"""How many of its last questions a child asks again after it was killed."""


PERIODS = 6
"""Of running totals."""
RUNNING = "running"
RUNNING_EVERY = 40
"""Debits between two steps of running totals that a child asks for."""
NAMED_PARTS = ("north", "south", "east")
PARTS = (None, *NAMED_PARTS)
TABLE = Registration("who", part={"column": "region", "rule": "constant"})


def question(request: str, given: argparse.Namespace, budget: Budget) -> Spend:
    """What a request asks: of everyone, or of the part that its number says."""
    number = int(request.rpartition(" ")[2])
    cost = Cost.pure("0.001")
    if given.lapses:  # a share of ρ, with pure or with Gaussian noise
        rho = budget.rho * 16 // (given.workers * given.debits * 9)
        pure = encoding.epsilon_from_rho(rho) if number // len(PARTS) % 2 else INFINITE_UNITS
        cost = Cost(pure, rho)
    if not given.accounts:
        return Spend({"query": "count"}, {"add-remove": cost})
    part = PARTS[number % len(PARTS)]
    return Spend({"query": "count"}, {"add-remove": cost}, registration=given.table, part=part)


class Totals:
    """Running totals of everyone and of one part, in one session of one child."""

    def __init__(self, ledger: wi.Ledger, dataset: str) -> None:
        self._ledger, self._dataset = ledger, dataset
        self._session: Any = None

    def ask(self, upto: int) -> dict[str, list[float]]:
        """What is shown of the steps up to one, by stream and period; nothing of a stream that has
        not been paid for and cannot be."""
        from whosin.release import Running, Session

        found: dict[str, list[float]] = {}
        queries = [Running(column="month", upto=str(upto), part=part) for part in (None, "north")]
        for query in queries:
            with suppress(BudgetRefused):
                self._session = self._session or Session(
                    make_table(),
                    self._ledger.budget_state(self._dataset).plan,
                    self._ledger,
                    dataset=self._dataset,
                    share="1/100",
                    preflight=False,
                    queries=queries,
                )
                (answer,) = self._session.release(query, noise="gaussian")
                found |= {f"{query.part} {row[0]}": row[1:] for row in answer.rows}
        return found


def make_table() -> wi.Table:
    """Sixty people in three parts, each in one period."""
    import pyarrow as pa

    from whosin.release import DuckDB, Values

    people = range(60)
    columns = {
        "who": [f"p{each}" for each in people],
        "region": [NAMED_PARTS[each % 3] for each in people],
        "month": [1 + each % PERIODS for each in people],
    }
    domains = {
        "region": Values(NAMED_PARTS, constant=True),
        "month": Values(tuple(range(1, PERIODS + 1))),
    }
    return wi.Table(
        pa.table(columns),
        "who",
        name="people",
        domains=domains,
        part="region",
        engine=DuckDB(threads=1),
    )


def register_people() -> Registration:
    from whosin.release.table import register_table

    return register_table(make_table(), rows=True)


def hurry(given: argparse.Namespace) -> None:
    """Let the clock of a file's ledger run ahead, in all processes alike; a server has its own."""
    if given.hurries:
        began = datetime.fromtimestamp(given.began, UTC)
        encoding.utc_now = lambda: began + SPEED * (datetime.now(UTC) - began)


def requests(worker: int, debits: int) -> list[str]:
    """The ids of a child's questions; every other one is shared with its neighbour."""
    return [f"{worker // 2 if i % 2 else f'own {worker}'}: {i}" for i in range(debits)]


def work(given: argparse.Namespace, dataset: str, worker: int) -> None:
    """A child: ask everything in order, and show what came."""
    shown = os.open(given.folder / f"shown-{worker}", os.O_CREAT | os.O_APPEND | os.O_RDWR)
    lines = os.pread(shown, 1 << 24, 0).decode().splitlines()
    done = {json.loads(line)[0] for line in lines if line.endswith("]")}
    asked = requests(worker, given.debits)
    start = max(0, sum(request in done for request in asked) - BACK)
    ledger = wi.Ledger(given.url, who=f"worker {worker}", wait=120)
    budget, totals = ledger.budget_state(dataset).budget, Totals(ledger, dataset)
    for number, request in enumerate(asked[start:], start):
        if given.running and not number % RUNNING_EVERY:
            for period, values in totals.ask(1 + PERIODS * number // given.debits).items():
                os.write(shown, (json.dumps([f"{RUNNING} {period}", values]) + "\n").encode())
        try:
            price, draw = question(request, given, budget), random.SystemRandom().random
            answer = ledger.answer(dataset, price, draw, request)
        except BudgetRefused:
            answer = None
        os.write(shown, (json.dumps([request, answer]) + "\n").encode())


def run(given: argparse.Namespace, dataset: str) -> int:
    """Run all children to the end; returns how many were killed on the way."""
    kills, seed = given.kills, given.seed
    chance, killed, alive = random.Random(seed), 0, {}

    def start(worker: int) -> None:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work(given, dataset, worker)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        alive[child] = worker

    for worker in range(given.workers):
        start(worker)
    while alive:
        time.sleep(chance.expovariate(1 / PAUSE))
        if killed < kills:
            victim = chance.choice(sorted(alive))
            if given.running and chance.random() < 0.8:  # else no session would live to its end
                wait_for_more(victim, given.folder / f"shown-{alive[victim]}", chance)
            os.kill(victim, signal.SIGKILL)
        child, status = os.waitpid(-1, 0)
        worker = alive.pop(child)
        if os.WIFSIGNALED(status):
            killed += 1
            start(worker)
        elif os.WEXITSTATUS(status):
            raise SystemExit(f"child {worker} failed")
        elif killed < kills:  # on a fast machine all is asked before all are killed: ask again
            start(worker)
    return killed


def wait_for_more(child: int, path: Path, chance: random.Random) -> None:
    """Wait until a child shows something or ends, and a random while after it."""
    before, ended = path.stat().st_size if path.exists() else 0, os.WEXITED | os.WNOHANG
    while not path.exists() or path.stat().st_size == before:
        if os.waitid(os.P_PID, child, ended | os.WNOWAIT) is not None:
            return
        time.sleep(PAUSE)
    time.sleep(chance.expovariate(1 / PAUSE))


def check(given: argparse.Namespace, dataset: str) -> dict[str, int]:
    """What must hold at the end, from the files that the children wrote and the ledger itself."""
    shown: dict[str, set[float]] = defaultdict(set)
    totals: dict[str, set[tuple[float, ...]]] = defaultdict(set)
    refused: set[str] = set()
    for path in given.folder.glob("shown-*"):
        for line in path.read_text().splitlines():
            request, answer = json.loads(line)
            if answer is None:
                refused.add(request)
            elif request.startswith(RUNNING):
                totals[request].add(tuple(answer))
            else:
                shown[request].add(answer)
    with wi.Ledger(given.url, create=False) as ledger:
        if given.running:  # what was begun is drawn to its end; what was shown stays
            for period, values in Totals(ledger, dataset).ask(PERIODS).items():
                totals[f"{RUNNING} {period}"].add(tuple(values))
        state, entries, answers = ledger.record(dataset)
        found = verify(ledger, dataset)
    assert all(len(values) == 1 for values in totals.values()), "a step was drawn twice"
    steps = [each for each in entries if each.kind == "debit" and "step" in each.body["what"]]
    for each in steps:
        first = each.body["what"]["step"] == 1
        assert first == (each.body["costs"]["add-remove"]["rho"] > 0), "a stream was paid twice"
    assert {*totals} <= name_steps(steps), "a step without a debit"
    paid = [e.request for e in entries if e.kind == "debit" and e not in steps]
    asked = {each for worker in range(given.workers) for each in requests(worker, given.debits)}
    assert len(set(paid)) == len(paid), "a request was paid for twice"
    assert set(paid) | refused == asked
    assert given.accounts or not set(paid) & refused  # with quotas it depends on who asks
    assert all(len(values) == 1 for values in shown.values()), "a request had two answers"
    assert set(shown) <= set(paid), "an answer without a debit"
    assert all(json.loads(answers[request]) in values for request, values in shown.items())
    paid_for: Counter[tuple[str | None, str]] = Counter()
    by_quota: Counter[tuple[str | None, str]] = Counter()
    begun: dict[str, dict[str, int]] = {}
    spent = dict.fromkeys(CURRENCIES, 0)
    for entry in entries:
        if entry.kind != "debit":
            continue
        before = spent
        for key in CURRENCIES:
            cost = entry.body["costs"]["add-remove"][key]
            paid_for[entry.body.get("part"), key] += cost
            by_quota[entry.body.get("quota"), key] += cost
        spent = {
            key: paid_for[None, key] + max(paid_for[part, key] for part in PARTS if part)
            for key in CURRENCIES
        }
        if state.schedule is not None and spent != before:  # steps were paid for at their first
            check_period(state.schedule, entry.body["when"][:10], begun, before, spent)
    end = {key: min(each, INFINITE_UNITS) for key, each in spent.items()}
    assert end == {key: vars(state.spent)[key] for key in CURRENCIES}
    assert any(end[key] <= vars(state.budget)[key] for key in CURRENCIES), "overspent"
    least = encoding.EPSILON_UNITS // 1000
    assert given.accounts or not refused or end["epsilon"] + least > state.budget.epsilon
    for name, quota in state.accounts.quotas.items():
        mine = Cost(*(min(by_quota[name, key], INFINITE_UNITS) for key in CURRENCIES))
        assert mine == quota.spent and mine.within(quota.limit), "more than a quota"
    return {
        "requests": len(asked),
        "debits": len(paid),
        "refused": len(refused),
        "answers": len(answers),
        "shown": sum(map(len, shown.values())),
        "unanswered": len(found.unanswered),
        "steps": len(steps),
    }


def name_steps(steps: Sequence[Entry]) -> set[str]:
    """Steps as children name what they show of them."""
    split = [(str(each.request).rpartition("/"), each.body["what"]) for each in steps]
    parts = {home: asked.get("part") for (home, _, _), asked in split if asked["step"] == 1}
    return {f"{RUNNING} {parts[home]} {asked['step']}" for (home, _, _), asked in split}


def check_period(
    schedule: Schedule,
    day: str,
    begun: dict[str, dict[str, int]],
    before: dict[str, int],
    spent: dict[str, int],
) -> None:
    """A debit is within what its period allows, in a currency that can express it: all up to now,
    or where they lapse its own share since it began."""
    period = schedule.find_period(day)
    assert period is not None, "a debit in no period"
    since, limits = dict.fromkeys(CURRENCIES, 0), [period]
    if schedule.lapses:
        since = begun.setdefault(period.first, before)
    else:
        limits = [each for each in schedule.periods if each.first <= day]
    assert any(
        spent[key] < INFINITE_UNITS
        and spent[key] - since[key] <= sum(vars(each.limit)[key] for each in limits)
        for key in CURRENCIES
    ), "more than a period allows"


def plan_periods(given: argparse.Namespace) -> dict[str, object]:
    """Half of the budget in the first of two periods; where a clock runs, two years of months."""
    year, unspent = datetime.now(UTC).year, "lapses" if given.lapses else "rolls-on"
    if given.hurries:
        return {"every": "month", "until": f"{year + 2}-12", "unspent": unspent}
    return {"periods": [f"{year}..{year + 1}", f"{year + 2}..{year + 9}"], "unspent": unspent}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("url")
    options.add_argument("folder", type=Path)
    options.add_argument("--debits", type=int, default=200)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--accounts", action="store_true")
    options.add_argument("--workers", type=int, default=WORKERS)
    options.add_argument("--lapses", action="store_true")
    options.add_argument("--running", action="store_true")
    given = options.parse_args()
    given.began = time.time()
    given.hurries = given.lapses and not given.running and "://" not in given.url
    dataset = given.folder.name
    hurry(given)
    given.table = TABLE
    if given.running:  # in a process of its own: no engine may be open where children are made
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            given.table = pool.submit(register_people).result()
    with wi.Ledger(given.url) as ledger:  # closed before the first child is made
        # Three quarters of all requests can be paid for.
        most = (given.workers * given.debits * 9 // 16 + 0.5) / 1000  # half a price for rounding
        plan = wi.calibrate(wi.Epsilon(str(most)), delta=1e-6 if given.lapses else 0)
        if given.accounts:
            others = ledger.datasets()
            ledger.register(
                dataset, plan, given.table, schedule=plan_periods(given), new_people=others
            )
            for worker in range(0, given.workers, 2):
                ledger.set_quota(dataset, f"worker {worker}", f"1/{2 * given.workers}")
        else:
            ledger.register(dataset, plan)
    began = time.perf_counter()
    killed = run(given, dataset)
    seconds = round(time.perf_counter() - began, 1)
    counts = check(given, dataset)
    print(json.dumps({"kills": killed, "seconds": seconds, **counts}))


if __name__ == "__main__":
    main()
