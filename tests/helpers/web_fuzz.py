"""A mutator of requests: from requests that are right to requests that are wrong in some way."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import httpx

from web_server import PLAN, SCENARIO, STUDY, write_study

ONE = SCENARIO | {"queries": [{"kind": "count", "where": "age > 30"}]}
FIRST = int(os.environ.get("WHOSIN_SOAK_SEED", "1"))
"""Where the soak's seeds begin."""
SECRET = "Zaphod77"
"""Stands in the cells of `private.csv`, and nowhere else."""
PATIENT = re.compile(r"\bP\d+\b")
PRIVATE: dict[str, Any] = {
    **PLAN,
    "table": {"source": "private.csv", "privacy_unit": "who"},
    "domains": {"age": [0, 120], "note": ["a", "b"]},
    "queries": [{"kind": "mean", "column": "age", "by": ["note"], "where": "note <> 'c'"}],
}
DATASETS = 6
"""Copies of the hospital, so that some have budget left."""
CHANNEL = {
    "space": {"kind": "subsets", "entities": ["ann", "bob"]},
    "outputs": ["low", "high"],
    "probabilities": [["3/4", "1/4"], ["1/2", "1/2"], [0.6, 0.4], ["1/4", "3/4"]],
}
SCENARIO_TEXT = "[target]\nposterior = 0.6\n[table]\nsource = 'x.csv'\nprivacy_unit = 'who'\n"
EVERY_QUERY = [
    {"kind": "count", "by": ["ward"], "where": "days > 3 or ward in ('surgery')"},
    {"kind": "mean", "column": "days", "by": "ward"},
    {"kind": "sum", "column": "days", "weight": 2},
    {"kind": "histogram", "column": "age"},
    {"kind": "quantile", "column": "age", "quantile": 0.5},
    {"kind": "top", "by": ["ward"], "k": 2},
]
OTHER_PLANS: list[dict[str, Any]] = [
    {
        "adversary": {"prior": "0.05..0.5", "size-known": True},
        "queries": [{"kind": "synthetic", "columns": ["ward"], "path": "copy.parquet"}],
    },
    {
        "adversary": {"uninformed": True},
        "queries": [{"kind": "maximum", "universe": {"P1": 3, "P2": 5}, "column": "days"}],
    },
    {
        "target": {"posterior": "0.6", "delta": "1e-6"},
        "queries": [{"kind": "keys", "column": "ward"}],
    },
]
"""What needs another adversary or a delta."""
PUBLISHED = {
    "published": "ward,a,b,total\nA,<5,12,15\n",
    "population": "ward,a,b\nA,40,60\n",
    "prior": "0.1",
}
LOOK = {"table": PRIVATE["table"], "domains": PRIVATE["domains"]}
SELECTS = (
    "SELECT note, COUNT(*) FROM private WHERE age > 3 GROUP BY note",
    "SELECT AVG(age) FILTER (WHERE note = 'a') FROM (SELECT 1) ORDER BY 1 LIMIT ?",
)
QUOTA = {
    "dataset": "hospital",
    "quota": "ward",
    "share": "1/20",
    "until": "2030-12-31",
    "members": ["ann"],
}
STORED = {"dataset": "hospital", "request": "fuzzed-request"}
DICTIONARY = "column,values,lower,upper\nward,surgery|medicine,,\nage,,0,120\n"
FAMILIES = ("independent=0.05..0.5", "cliques=2", "at-most-known=1:0.1..0.9", "uninformed")
DEEP: Any = 1
for _ in range(60):
    DEEP = [DEEP]
ODD: list[Any] = [
    None, True, -1, 0, 1, 2**63, -(2**63) - 1, 10**999, 1e308, 5e-324, -0.0, "", " ", "\0", "0",
    "1/3", "1e-300", "1e400", "inf", "nan", "0.05..0.5", "1..0", "%", "[", "::", "../etc/passwd",
    "/", "hospital.parquet", "clinic.duckdb::main.s.x", "e\u0301", "é", "\u202e", "\ud800", "'; --",
    '"', "\\", "<script>", "a" * 5_000, "age in (" + ",".join(map(str, range(1_500))) + ")",
    "((((" * 200, "weights", "gaussian", "count", "subsets", "ann", [], [[]], [None], [1, "a"],
    list(range(3_000)), ["x"] * 500, {}, {"": {}}, {"lower": 0, "upper": 1},
    {"lower": 1, "upper": 0, "edges": [1e999]}, DEEP, {str(each): each for each in range(600)},
    {"kind": "records", "rows": 2**64, "values": 9},
]  # fmt: skip


HOPED = {key: value for key, value in STUDY.items() if key != "study"} | {
    "cases": 300,
    "controls": 300,
    "snps": 200,
    "odds_ratio": "1.5,2",
    "frequency": "0.3",
    "share": "0.7",
}


def _copy(number: int) -> dict[str, Any]:
    table = SCENARIO["table"] | {"source": f"hospital{number}.parquet"}
    queries = [EVERY_QUERY[number % len(EVERY_QUERY)]]
    return SCENARIO | {"table": table, "queries": queries}


def furnish(folder: Path) -> None:
    """What the requests ask about, beside the hospital."""
    for number in range(DATASETS):
        shutil.copy(folder / "hospital.parquet", folder / f"hospital{number}.parquet")
    rows = [f"{SECRET}{n},{n % 90},{SECRET}" for n in range(80)]
    (folder / "private.csv").write_text("\n".join(["who,age,note", *rows]) + "\n")
    write_study(folder)
    with duckdb.connect(str(folder / "clinic.duckdb")) as made:
        made.execute('CREATE TABLE "s.x" (patient VARCHAR, age INTEGER)')


def seeds() -> list[tuple[str, str, Any, dict[str, Any]]]:
    """Requests that are right: method, path, body, parameters."""
    release = {"scenario": ONE, "request": "fuzzed-request"}
    copies = [
        {"scenario": _copy(number), "request": f"request-of-{number}"} for number in range(DATASETS)
    ]
    return [
        *(("POST", "/api/release", each, {}) for each in copies),
        ("GET", "/api/hello", None, {}),
        ("GET", "/api/kinds", None, {}),
        ("POST", "/api/login", {"token": "none"}, {}),
        ("POST", "/api/logout", {}, {}),
        ("POST", "/api/plan", PLAN, {}),
        ("POST", "/api/plan", {"adversary": {"linked": 3}, "target": {"epsilon": "0.5"}}, {}),
        ("POST", "/api/plan", {"target": {"rho": "0.6", "candidates": 5}}, {}),
        ("POST", "/api/plan", PLAN | {"target": {"posterior": 0.6, "delta": "1e-6"}}, {}),
        ("GET", "/api/files", None, {}),
        ("GET", "/api/columns", None, {"file": "hospital.parquet"}),
        ("POST", "/api/files", b"who,age\nann,3\n", {"name": "new.csv"}),
        ("POST", "/api/files", b"ARROW1\0\0damaged", {"name": "new.arrow"}),
        ("POST", "/api/estimate", SCENARIO, {}),
        *(("POST", "/api/estimate", SCENARIO | {"queries": [query]}, {}) for query in EVERY_QUERY),
        *(("POST", "/api/estimate", SCENARIO | other, {}) for other in OTHER_PLANS),
        ("POST", "/api/estimate", PRIVATE, {}),
        ("POST", "/api/release", {"scenario": PRIVATE, "request": "private-request"}, {}),
        ("POST", "/api/rules/check", PUBLISHED, {}),
        *(("POST", "/api/sql", {**LOOK, "sql": sql}, {}) for sql in SELECTS),
        ("POST", "/api/inspect", {"table": PRIVATE["table"], "domains": PRIVATE["domains"]}, {}),
        ("GET", "/api/columns", None, {"file": "private.csv"}),
        ("POST", "/api/release", release, {}),
        ("POST", "/api/release", {"scenario": SCENARIO, "request": "another-one"}, {}),
        ("POST", "/api/release/report", release, {}),
        ("POST", "/api/release/csv", release, {"answer": 0, "table": 0}),
        ("POST", "/api/release/parquet", release, {"answer": 0}),
        ("POST", "/api/release/file", release, {"answer": 0}),
        ("POST", "/api/scenario/toml", SCENARIO, {}),
        ("POST", "/api/scenario/script", release, {}),
        ("POST", "/api/scenario/read", {"text": SCENARIO_TEXT}, {}),
        ("GET", "/api/scenario", None, {"file": "hospital.toml"}),
        *(
            ("POST", "/api/verify", {"channel": json.dumps(CHANNEL), "family": family}, {})
            for family in FAMILIES
        ),
        ("POST", "/api/verify", {"channel": json.dumps(CHANNEL), "notion": "dp"}, {}),
        ("GET", "/api/notions", None, {}),
        ("POST", "/api/distortion", {"rows": 3, "prior": "0.7,0.3"}, {}),
        ("GET", "/api/ledger", None, {}),
        ("GET", "/api/ledger/history", None, {"dataset": "hospital"}),
        ("GET", "/api/ledger/requests", None, {"dataset": "hospital"}),
        ("POST", "/api/ledger/quota", QUOTA, {}),
        *(("GET", f"/api/ledger/{each}", None, STORED) for each in ("answers", "report")),
        ("POST", "/api/draft", {"source": "hospital.parquet", "dictionary": DICTIONARY}, {}),
        ("POST", "/api/draft/rows", {"source": "hospital.parquet", "columns": ["ward"]}, {}),
        ("POST", "/api/plan/accuracy", PLAN | {"within": "20", "query": "histogram"}, {}),
        ("POST", "/api/evidence", SCENARIO, {}),
        ("POST", "/api/preflight", SCENARIO, {}),
        ("POST", "/api/release", {"scenario": ONE | {"continues": "hospital"}}, {}),
        ("GET", "/api/studies", None, {}),
        ("POST", "/api/study/forecast", HOPED, {}),
        ("POST", "/api/study/advice", HOPED, {}),
        ("POST", "/api/study/estimate", STUDY, {}),
        ("GET", "/api/study/answers", None, STORED),
        ("POST", "/api/study/release", STUDY | {"request": "fuzzed-study", "top": 2}, {}),
    ]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a body."""
    found = [path]
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(each, (*path, key))
    return found


def mutate(body: Any, chance: random.Random) -> Any:
    """A body with an odd value, without a part, or with one more."""
    body = copy.deepcopy(body)
    path = chance.choice(places(body))
    if not path:
        return chance.choice(ODD)
    home = body
    for step in path[:-1]:
        home = home[step]
    kind, last = chance.randrange(5), path[-1]
    inside = _object(home[last]) if last == "channel" and kind < 4 else None
    if inside is not None:
        home[last] = json.dumps(mutate(inside, chance))
    elif kind == 0:
        del home[last]
    elif kind == 1 and isinstance(home, dict):
        home[str(chance.choice(ODD))[:300]] = home[last]
    elif kind == 2 and isinstance(home, list):
        home.extend(home * chance.randrange(1, 20))
    elif kind == 3 and isinstance(home[last], str) and home[last]:
        text, place = home[last], chance.randrange(len(home[last]))
        more = chance.choice(["", "\0", "'", "9" * 50, ",", "."])
        home[last] = text[:place] + more + text[place:]
    else:
        home[last] = chance.choice(ODD)
    return body


def _object(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def request(chance: random.Random) -> dict[str, Any]:
    """One request, for httpx."""
    method, path, body, parameters = chance.choice(seeds())
    headers = {"X-Whosin": "fuzz", "Content-Type": "application/json"}
    for _ in range(chance.choice([0, 1, 1, 2, 4])):
        if isinstance(body, bytes):
            cut = chance.randrange(len(body) + 1)
            body = body[:cut] + chance.randbytes(chance.randrange(20)) + body[cut:]
        elif body is not None:
            body = mutate(body, chance)
    content = body if isinstance(body, bytes) else None if body is None else encoded(body)
    if content and chance.random() < 0.05:
        cut = chance.randrange(len(content))
        content = content[:cut] + chance.randbytes(3) + content[cut + chance.randrange(9) :]
    odd_texts = [str(each).encode("utf-8", "surrogatepass") for each in ODD[:40]]
    parameters = {
        key: chance.choice(odd_texts) if chance.random() < 0.4 else value
        for key, value in parameters.items()
    }
    if chance.random() < 0.05:
        method = chance.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "POST", "BREW"])
    if chance.random() < 0.05:
        name = chance.choice(["Origin", "Host", "Cookie", "Authorization", "Content-Type"])
        odd = ["http://[::1", "null", "Bearer x", "a=b; \xff", "text/plain", "[", "", "x" * 4000]
        headers[name] = chance.choice(odd)
    encoded_headers = [(key, value.encode("latin-1")) for key, value in headers.items()]
    return {
        "method": method,
        "url": path,
        "content": content,
        "params": parameters,
        "headers": encoded_headers,
    }


def encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


@dataclass
class Outcome:
    """How requests ended: statuses, requests and the slowest by route, and what no request may
    have."""

    statuses: Counter[int] = field(default_factory=Counter)
    routes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        listed = ", ".join(f"{code}: {count:,}" for code, count in sorted(self.statuses.items()))
        return f"{self.statuses.total():,} requests ({listed}), slowest {self.slowest:.1f} s"


def run(url: str, count: int, seed: int, seconds: float, threads: int = 4) -> Outcome:
    """Send requests; faults do not end it, unless there are many."""
    done, lock = Outcome(), threading.Lock()

    def work(number: int) -> None:
        chance = random.Random(seed * 1000 + number)
        with httpx.Client(base_url=url, timeout=seconds + 110) as client:
            for _ in range(count // threads):
                asked = request(chance)
                began, status = time.monotonic(), 0
                try:
                    answer = client.request(**asked)
                    status = answer.status_code
                    fault = fault_of(asked, answer)
                except httpx.HTTPError as error:
                    fault = type(error).__name__
                took = time.monotonic() - began
                with lock:
                    done.statuses[status] += 1
                    done.routes[asked["url"]] += 1
                    done.slowest = max(done.slowest, took)
                    if fault or took > seconds:
                        why = f"{status} after {took:.1f} s, {fault}"
                        done.faults.append(f"{why}: {asked}"[:3000])
                    if len(done.faults) >= MOST_FAULTS:
                        return

    started = [threading.Thread(target=work, args=[number]) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return done


def fault_of(asked: dict[str, Any], answer: httpx.Response) -> str | None:
    """What is wrong with an answer."""
    if answer.status_code >= 500 and "this server is busy" not in answer.text:
        return f"a fault: {answer.text[:300]}"
    if "Traceback" in answer.text:
        return "a traceback"
    if answer.status_code >= 400 and not _said(asked, answer):
        return f"no sentence: {answer.text[:300]}"
    told = str(asked)
    private = [SECRET] if SECRET in answer.text else []
    private += PATIENT.findall(answer.text) if answer.status_code >= 400 else []
    return next((f"the cell {cell}" for cell in private if cell not in told), None)


def _said(asked: dict[str, Any], answer: httpx.Response) -> bool:
    """Whether a refusal is one sentence in the one shape."""
    if asked["method"] == "HEAD" or not answer.content:
        return True
    if answer.headers.get("content-type", "").startswith("text/plain"):
        return answer.status_code == 400  # what is no HTTP at all
    message = answer.json()["error"]["message"]
    return isinstance(message, str) and 0 < len(message) < 2_000 and "\n" not in message


MOST_FAULTS = 20


class Watched:
    """The largest memory that a process or one of its descendants had, while the block lasts."""

    def __init__(self, pid: int, descendants: Callable[[int], list[int]]) -> None:
        self.pid, self.descendants, self.largest = pid, descendants, 0
        self._stop = threading.Event()

    def __enter__(self) -> Watched:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.05):
            for pid in (self.pid, *self.descendants(self.pid)):
                try:
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                except (OSError, IndexError, ValueError):
                    continue
                self.largest = max(self.largest, pages * 4096)
