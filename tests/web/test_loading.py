"""Scenarios on the page: every key of the model survives load, edit, reload, save and ask."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from playwright.sync_api import Page, expect
from pyarrow import csv, parquet

from web_page import go_to, load_file, saved
from web_server import served
from whosin.app.scenario_schema import query_keys
from whosin.app.web.access import Settings
from whosin.calibration import read_plan
from whosin.release.domains import read_domain
from whosin.release.queries import QUERIES
from whosin.scenario_model import AboutSection, ScenarioModel, TableSection

expect.set_options(timeout=120_000)  # a busy machine is no reason to fail
Opened = Callable[..., Page]
Serving = Callable[[Settings], str]

STAYS = "who,site,ward,on,age,days,smokes\n" + "".join(
    f"p{n % 7},{'ab'[n % 7 % 2]},{'north' if n % 3 else 'south'},2024-0{1 + n % 6}-03,{20 + n},"
    f"{n % 5},{str(n % 7 > 3).lower()}\n"
    for n in range(40)
)
DOMAINS: dict[str, Any] = {
    "site": {"values": ["a", "b"], "constant": True},
    "ward": {
        "values": ["north", "south", "east"],
        "constant": True,
        "outside": "east",
        "parents": {"side": {"upper": ["north", "east"], "lower": ["south"]}},
    },
    "on": {"lower": "2024-01-01", "upper": "2024-12-31", "edges": "month", "outside": "drop"},
    "age": {"lower": 0, "upper": 120, "edges": [0, 18, 65, 120], "outside": "clamp"},
    "days": {"lower": "0", "upper": "1/3", "step": "1/300", "from_rows": True},
    "smokes": [True, False],
    "visits": {"lower": 0, "upper": 9},
}
ABOUT = {key: f"the {key}" for key in AboutSection.known_keys()}
EVERY = {"where": "age >= 18", "weight": "1/2", "magnitude": 40, "within": 90, "part": "a"}
EVERY |= {"name": ""}
BOUNDS = {"max_rows_per_group": 2, "max_groups": 1}
GROUPED = {**EVERY, **BOUNDS, "by": ["ward", "month(on)"]}
SUMMED = {**GROUPED, "column": "days", "factor": "1/2", "offset": 3}
RANKED = {**GROUPED, "column": "age", "points": 9, "interval": True}
RUNNING = {"column": "month(on)", "upto": "2024-03", "max_periods": 2, "min_gap": 2}
SETS = {"columns": ["ward", "age"], "order": 1, "sets": [["ward"], ["age", "ward"]]}
SETS |= {**EVERY, "max_rows_per_group": 2}
LEARNED = {"method": "marginals", "choose": "mst", "choosing": "1/4", "length": 50}
SIZES = {"weights": [1, 2], "goal": "maximum", "magnitudes": [5, 6], "ranges": {"age": [[18, 65]]}}
QUESTIONS: dict[str, dict[str, Any]] = {
    "count": GROUPED,
    "rows": GROUPED | {"by": ["side"], "within": "80"},
    **dict.fromkeys(("sum", "mean", "variance", "deviation"), SUMMED),
    "histogram": {**GROUPED, "column": "age"},
    "running": GROUPED | RUNNING,
    "keys": {**EVERY, "column": "age", "max_groups": 2},
    "quantile": {**RANKED, "quantile": "1/3"},
    "median": RANKED,
    "top": {**EVERY, "by": ["ward"], "k": 2},
    "maximum": {**EVERY, "universe": [[f"p{n}", n] for n in range(8)]},
    "synthetic": {**SETS, **LEARNED, "path": "copy.parquet", "prior": "1/2"},
    "marginals": {**SETS, **SIZES},
}
COUNT = [{"kind": "count"}]
WHO: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"prior": "1/3", "size-known": True}, {"posterior": "2/3"}),
    ({"prior": "0.05..0.5", "secret": "value"}, {"gain": 0.123456789}),
    ({"linked": 4}, {"gamma": "4/3"}),
    ({"prior": "0.1..0.5", "known": 3, "people": 50}, {"gamma": 2, "delta": "1e-6"}),
    ({"uninformed": True}, {"advantage": "0.1"}),
    ({"family": "at-most-known=3:0.1..0.5", "people": 60}, {"gamma": 2, "delta": 0.01}),
    ({}, {"fpr": "0.01", "tpr": "0.05"}),
    ({}, {"risk-prior": "1/3", "risk": "0.3"}),
    ({}, {"profile": "0.1:0.3,0.5:0.6"}),
    ({}, {"rho": "1/7", "candidates": 20}),
    ({"prior": "0.001..0.01"}, {"hipaa": True}),
    ({}, {"epsilon": 1, "delta": "1e-6", "reserve": "0.3"}),
]


def scenarios() -> list[dict[str, Any]]:
    """Which together have every key that a request may have."""
    table = {
        "source": "stays.parquet",
        "privacy_unit": "who",
        **BOUNDS,
        "part": "site",
        "from_rows": True,
    }
    plain = {"table": table, "domains": DOMAINS | {"ward": DOMAINS["ward"]["values"]}}
    plain["domains"].pop("visits")
    rest: dict[str, Any] = {
        "title": "A year of stays",
        "about": ABOUT,
        "adversary": {"prior": "0.05..0.5"},
        "target": {"epsilon": 1, "delta": "1e-6"},
        "table": table | {"people": 7},
        "tables": [
            {"name": "calls", "source": "calls.csv", "privacy_unit": "caller", "max_rows": 3},
            {"name": "wards", "source": "wards.csv", "public": True, "key": "ward", "on": "ward"},
        ],
        "features": [
            {"name": "visits", "kind": "count", "where": "age > 3"},
            {"name": "ended", "kind": "last", "column": "days", "table": "calls"}
            | {"order": "on", "tie": "days"},
        ],
        "budget": {"split": "relative-error", "noise": "gaussian", "share": "1/3"},
        "schedule": {"every": "year", "until": "2099", "start": "2026", "unspent": "lapses"},
        "domains": DOMAINS,
        "queries": [{"kind": kind, **keys, "name": kind} for kind, keys in QUESTIONS.items()],
    }
    periods = {"periods": ["2026..2050", "2051..2099"], "shares": ["1/3", "2/3"]}
    promises = [
        plain | {"adversary": adversary, "target": target, "queries": COUNT, "title": "t"}
        for adversary, target in WHO
    ]
    return [rest, *promises, promises[0] | {"schedule": periods}]


def test_the_scenarios_have_every_key() -> None:
    for name, key in ScenarioModel.known_keys().items():
        if name == "ledger" or (section := key.kind.section) is None:
            continue  # the server's own
        parts = [each.get(name, {}) for each in scenarios()]
        said = [each for part in parts for each in (part if isinstance(part, list) else [part])]
        owned = {"name", "engine", "memory", "spill", "master", "views"}  # refused in requests
        without = owned if section is TableSection else {"to"}
        assert set().union(*said) >= section.known_keys().keys() - without, name
    for kind, keys in QUESTIONS.items():
        assert keys.keys() == {each.key for each in query_keys(QUERIES[kind])}, kind


def meaning(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """What a scenario says, however its numbers are spelled."""
    model = ScenarioModel.read(scenario, "scenario")
    sections = ("about", "target", "table", "budget", "schedule")
    return {
        **{name: getattr(model, name).given for name in sections},
        "title": model.title,
        "plan": read_plan(model.adversary, model.target),
        "tables": [each.written for each in model.tables],
        "features": [each.written for each in model.features],
        "domains": {name: spelled_domain(name, each) for name, each in model.domains.items()},
        "queries": [spelled_query(each) for each in model.queries],
    }


def spelled_domain(name: str, domain: Any) -> Any:
    read = read_domain(name, domain)
    return read, read.from_rows


def spelled_query(query: Mapping[str, Any]) -> Any:
    """As numbers, where they are."""
    spelled = {key: str(value) if isinstance(value, int) else value for key, value in query.items()}
    return {key: value for key, value in spelled.items() if (key, value) != ("weight", "1")}


@pytest.fixture
def hospital(tmp_path: Path) -> Settings:
    settings = served(tmp_path / "data", 20)
    rows = csv.read_csv(BytesIO(STAYS.encode()))  # true and false are no texts there
    parquet.write_table(rows, settings.folder / "stays.parquet")
    calls = "caller,on,days\n" + "".join(f"p{n % 7},2024-01-0{1 + n},{n}\n" for n in range(7))
    (settings.folder / "calls.csv").write_text(calls, encoding="utf-8")
    (settings.folder / "wards.csv").write_text("ward,floor\nnorth,1\nsouth,2\n", encoding="utf-8")
    return settings


def test_every_key_survives_the_form(
    hospital: Settings, opened: Opened, serving: Serving, tmp_path: Path
) -> None:
    """A promise was another one after loading: `family` and `reserve` were dropped, 1/3 was 33.3…%;
    and questions without a place on the page were gone after a reload."""
    page = opened(serving(hospital), quiet=False)  # some prices are refused
    for number, each in enumerate(scenarios()):
        path = tmp_path / f"{number}.toml"
        path.write_text(tomli_w.dumps(each), encoding="utf-8")
        load_file(page, path)
        go_to(page, "release")
        page.get_by_label("A title for the report").fill(f"edited {number}")
        page.wait_for_timeout(300)
        page.reload()
        with page.expect_request(lambda sent: "edited anew" in (sent.post_data or "")) as asked:
            page.get_by_label("A title for the report").fill("edited anew")
        expect(page.get_by_role("button", name="Save the scenario")).to_be_enabled()
        made = tomllib.loads(saved(page, "Save the scenario", tmp_path).read_text("utf-8"))
        wanted = meaning(each | {"title": "edited anew"})
        for found in map(meaning, [made, dict(asked.value.post_data_json or {})]):
            assert {key: found[key] for key in found if found[key] != wanted[key]} == {}, number
