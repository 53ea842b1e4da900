"""Eight processes pay and answer on one ledger while a ninth kills them at random with kill -9.

    python tests/helpers/ledger_kills.py URL FOLDER --debits 200 --kills 100

It is a program of its own, so that it can fork: children start at once, with everything imported,
and die in the middle of anything. With --accounts the questions are about parts, the budget has a
schedule, and half of the children have quotas. A child that died is started again and asks its last
questions once more. Half of the questions are asked by two children under one id. Everything
that a child shows is written to a file in FOLDER; at the end one JSON object says what was seen.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import time
import traceback
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

import whosin as wi
from whosin.errors import BudgetRefused
from whosin.ledger import Cost, Spend, encoding, verify
from whosin.ledger.registration import Registration

WORKERS = 8
PAUSE = 0.01
"""Seconds between two kills, on average."""
BACK = 4
"""How many of its last questions a child asks again after it was killed."""


PARTS = (None, "north", "south", "east")
TABLE = Registration("who", part={"column": "region", "rule": "constant"})


def question(request: str, accounts: bool) -> Spend:
    """What a request asks: of everyone, or of the part that its number says."""
    cost = {"add-remove": Cost.pure("0.001")}
    if not accounts:
        return Spend({"query": "count"}, cost)
    part = PARTS[int(request.rpartition(" ")[2]) % len(PARTS)]
    return Spend({"query": "count"}, cost, registration=TABLE, part=part)


def requests(worker: int, debits: int) -> list[str]:
    """The ids of a child's questions; every other one is shared with its neighbour."""
    return [f"{worker // 2 if i % 2 else f'own {worker}'}: {i}" for i in range(debits)]


def work(url: str, folder: Path, dataset: str, worker: int, debits: int, accounts: bool) -> None:
    """A child: ask everything in order, and show what came."""
    shown = os.open(folder / f"shown-{worker}", os.O_CREAT | os.O_APPEND | os.O_RDWR)
    lines = os.pread(shown, 1 << 24, 0).decode().splitlines()
    done = {json.loads(line)[0] for line in lines if line.endswith("]")}
    asked = requests(worker, debits)
    start = max(0, sum(request in done for request in asked) - BACK)
    ledger = wi.Ledger(url, who=f"worker {worker}", wait=120)
    for request in asked[start:]:
        try:
            price, draw = question(request, accounts), random.SystemRandom().random
            answer = ledger.answer(dataset, price, draw, request)
        except BudgetRefused:
            answer = None
        os.write(shown, (json.dumps([request, answer]) + "\n").encode())


def run(given: argparse.Namespace, dataset: str) -> int:
    """Run all children to the end; returns how many were killed on the way."""
    folder, kills, seed = given.folder, given.kills, given.seed
    chance, killed, alive = random.Random(seed), 0, {}

    def start(worker: int) -> None:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work(given.url, folder, dataset, worker, given.debits, given.accounts)
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


def check(
    url: str,
    folder: Path,
    dataset: str,
    debits: int,
    accounts: bool = False,
    workers: int = WORKERS,
) -> dict[str, int]:
    """What must hold at the end, from the files that the children wrote and the ledger itself."""
    shown: dict[str, set[float]] = defaultdict(set)
    refused: set[str] = set()
    for path in folder.glob("shown-*"):
        for line in path.read_text().splitlines():
            request, answer = json.loads(line)
            if answer is None:
                refused.add(request)
            else:
                shown[request].add(answer)
    with wi.Ledger(url, create=False) as ledger:
        budget_state, entries, answers = ledger.record(dataset)
        found = verify(ledger, dataset)
    paid = [entry.request for entry in entries if entry.kind == "debit"]
    asked = {request for worker in range(workers) for request in requests(worker, debits)}
    assert len(set(paid)) == len(paid), "a request was paid for twice"
    assert set(paid) | refused == asked
    assert accounts or not set(paid) & refused  # with quotas it depends on who asks
    assert all(len(values) == 1 for values in shown.values()), "a request had two answers"
    assert set(shown) <= set(paid), "an answer without a debit"
    assert all(json.loads(answers[request]) in values for request, values in shown.items())
    paid_for: Counter[str | None] = Counter()
    by_quota: Counter[str | None] = Counter()
    for entry in entries:
        if entry.kind == "debit":
            cost = entry.body["costs"]["add-remove"]["epsilon"]
            paid_for[entry.body.get("part")] += cost
            by_quota[entry.body.get("quota")] += cost
    everyone = paid_for.pop(None, 0)
    spent = everyone + max(paid_for.values(), default=0)
    most = budget_state.budget.epsilon // (2 if accounts else 1)  # half in the first period
    assert spent == budget_state.spent.epsilon <= most, "overspent"
    assert accounts or not refused or spent + encoding.EPSILON_UNITS // 1000 > most
    for name, quota in budget_state.accounts.quotas.items():
        assert by_quota[name] == quota.spent.epsilon <= quota.limit.epsilon, "more than a quota"
    return {
        "requests": len(asked),
        "debits": len(paid),
        "refused": len(refused),
        "answers": len(answers),
        "shown": sum(map(len, shown.values())),
        "unanswered": len(found.unanswered),
    }


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("url")
    options.add_argument("folder", type=Path)
    options.add_argument("--debits", type=int, default=200)
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--accounts", action="store_true")
    options.add_argument("--workers", type=int, default=WORKERS)
    given = options.parse_args()
    dataset = given.folder.name
    with wi.Ledger(given.url) as ledger:  # closed before the first child is made
        # Three quarters of all requests can be paid for.
        most = (given.workers * given.debits * 9 // 16 + 0.5) / 1000  # half a price for rounding
        plan = wi.calibrate(wi.Epsilon(str(most)))
        if given.accounts:
            year = datetime.now(UTC).year
            years = [f"{year}..{year + 1}", f"{year + 2}..{year + 9}"]
            ledger.register(dataset, plan, TABLE, schedule={"periods": years})
            for worker in range(0, given.workers, 2):
                ledger.set_quota(dataset, f"worker {worker}", f"1/{2 * given.workers}")
        else:
            ledger.register(dataset, plan)
    began = time.perf_counter()
    killed = run(given, dataset)
    seconds = round(time.perf_counter() - began, 1)
    counts = check(given.url, given.folder, dataset, given.debits, given.accounts, given.workers)
    print(json.dumps({"kills": killed, "seconds": seconds, **counts}))


if __name__ == "__main__":
    main()
