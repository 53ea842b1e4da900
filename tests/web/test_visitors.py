"""What users of a server see of tables, scenarios and each other's requests."""

from __future__ import annotations

import hashlib
import shlex
import shutil
import stat

import duckdb
import pytest

from web_server import ONE, SCENARIO, problem, program, served
from whosin import Epsilon, calibrate
from whosin.app.cli.main import main
from whosin.app.web.access import Visitor, add_user, read_curators, remove_user
from whosin.app.web.server import running
from whosin.ledger import Cost, Ledger, Spend
from whosin.ledger.registration import Registration

ID = "the-same-id"
SOME = ONE | {"budget": {"share": "1/4"}}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def shared(tmp_path):
    """A server with a curator, who has registered the hospital, and two users."""
    settings = served(tmp_path, 60)
    tokens = {name: add_user(settings.users, name, name == "Cyd") for name in ("Ann", "Bob", "Cyd")}
    with running(settings) as url, program(url) as client:

        def ask(who, method, path, **given):
            return client.request(method, path, headers=bearer(tokens[who]), **given)

        made = ask("Cyd", "POST", "/api/release", json={"scenario": SOME, "request": ID})
        assert made.status_code == 200, made.text
        yield settings, ask


def seen(ask, who):
    return [each["name"] for each in ask(who, "GET", "/api/files").json()["tables"]]


def test_a_file_that_shares_its_name_with_a_dataset_is_not_seen(shared):
    settings, ask = shared
    (settings.folder / "hospital.csv").write_text("Ann is patient 4711,surgery\nBob,medicine\n")
    with duckdb.connect(str(settings.folder / "clinic.duckdb")) as made:
        made.execute("CREATE TABLE hospital (secret_column INTEGER)")
    table = "clinic.duckdb::hospital"
    assert set(seen(ask, "Cyd")) == {"hospital.parquet", "hospital.csv", table}
    assert seen(ask, "Ann") == ["hospital.parquet"]
    for file in ("hospital.csv", table):
        answer = ask("Ann", "GET", "/api/columns", params={"file": file})
        assert "4711" not in problem(answer, 422, "table.source")
        other = SCENARIO["table"] | {"source": file}
        answer = ask("Ann", "POST", "/api/estimate", json=ONE | {"table": other})
        assert "one of hospital.parquet" in problem(answer, 422, "table.source")
        assert "secret_column" not in answer.text


def test_a_file_in_the_place_of_a_registered_one_is_not_seen(shared):
    settings, ask = shared
    path = settings.folder / "hospital.parquet"
    shutil.copy(path, settings.folder / "kept.parquet")
    served(settings.folder, 61)
    assert seen(ask, "Ann") == []
    shutil.copy(settings.folder / "kept.parquet", path)
    assert seen(ask, "Ann") == ["hospital.parquet"]


def test_a_registered_table_of_a_database_is_seen(shared):
    settings, ask = shared
    with duckdb.connect(str(settings.folder / "clinic.duckdb")) as made:
        made.execute(f"CREATE TABLE stays AS FROM '{settings.folder / 'hospital.parquet'}'")
        made.execute("UPDATE stays SET days = 1")  # other rows than the hospital's
        made.execute("CREATE TABLE others AS FROM stays LIMIT 3")
    table = SCENARIO["table"] | {"source": "clinic.duckdb::stays"}
    other = SOME | {"table": table, "new_people": True}
    body = {"scenario": other, "request": "of-a-database"}
    assert seen(ask, "Ann") == ["hospital.parquet"]
    assert ask("Cyd", "POST", "/api/release", json=body).status_code == 200
    assert seen(ask, "Ann") == ["hospital.parquet", "clinic.duckdb::stays"]
    columns = ask("Ann", "GET", "/api/columns", params={"file": "clinic.duckdb::stays"})
    assert columns.status_code == 200


def test_ids_of_requests_are_each_users_own(shared):
    """Whether somebody has used an id does not show, and the same id is another request."""
    _, ask = shared
    body = {"scenario": SOME, "request": ID}
    absent = ask("Ann", "POST", "/api/release/report", json=body)
    assert problem(absent, 404, "request") == problem(
        ask("Ann", "POST", "/api/release/report", json=body | {"request": "used-by-nobody"}),
        404,
        "request",
    )
    first = ask("Ann", "POST", "/api/release", json=body)
    assert first.status_code == 200 and first.json()["request"] == ID
    spent = first.json()["budget_state"]["debits"]
    again = ask("Ann", "POST", "/api/release", json=body).json()
    assert again["answers"] == first.json()["answers"] and again["budget_state"]["debits"] == spent
    other = ask("Bob", "POST", "/api/release", json=body)
    assert other.status_code == 200 and other.json()["budget_state"]["debits"] != spent
    assert ask("Ann", "POST", "/api/release/report", json=body).status_code == 200
    # As the ledger shows it, an id means the same.
    kept = Visitor("Ann", curator=False).request(ID)
    shown = body | {"request": kept}
    assert kept != ID and kept in ask("Cyd", "GET", "/api/ledger/history?dataset=hospital").text
    for who in ("Ann", "Cyd"):
        answer = ask(who, "POST", "/api/release", json=shown).json()
        assert answer["answers"] == first.json()["answers"]
    assert ask("Bob", "POST", "/api/release/report", json=shown).status_code == 404


@pytest.mark.parametrize("path", ["/api/ledger/answers", "/api/ledger/report"])
def test_a_user_opens_their_own_answers_and_nobody_elses(shared, path):
    """Under the id as it was sent and as the ledger keeps it. What is somebody else's looks like
    what is nobody's."""
    _, ask = shared
    made = {}
    for who, days in (("Ann", "1/8"), ("Bob", "1/16")):  # both under the id that Cyd used, too
        body = {"scenario": SOME | {"budget": {"share": days}}, "request": ID}
        answer = ask(who, "POST", "/api/release", json=body)
        assert answer.status_code == 200, answer.text
        made[who] = answer.json()["answers"]

    def opened(who, request):
        given = {"dataset": "hospital", "request": request}
        return ask(who, "GET", path, params=given)

    paid = ask("Cyd", "GET", "/api/ledger/requests", params={"dataset": "hospital"}).json()
    kept = {each["who"]: each["request"] for each in paid["requests"]}
    assert len(set(kept.values())) == 3
    spent = ask("Cyd", "GET", "/api/ledger").json()["datasets"][0]["budget_state"]["debits"]
    for who, other in (("Ann", "Bob"), ("Bob", "Ann")):
        for request in (ID, kept[who]):
            answer = opened(who, request)
            assert answer.status_code == 200, answer.text
            assert not path.endswith("answers") or answer.json()["answers"] == made[who]
            if path.endswith("answers"):
                assert answer.json()["answers"] == opened("Cyd", kept[who]).json()["answers"]
        refused = problem(opened(who, kept[other]), 404, "request")
        assert refused == problem(opened(who, "used-by-nobody"), 404, "request")
    assert opened("Cyd", ID).status_code == 200
    after = ask("Cyd", "GET", "/api/ledger").json()["datasets"][0]["budget_state"]["debits"]
    assert after == spent


def test_an_estimate_says_whether_the_dataset_would_go_on_with_it(shared):
    """`amends`: a curator's other domains need `continues`; want of budget and a user's other
    domains are plain refusals, and what is registered needs nothing."""
    _, ask = shared
    other = SOME | {"domains": {"days": {"lower": 0, "upper": 20}}}

    def priced(who, body):
        answer = ask(who, "POST", "/api/estimate", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    same = priced("Cyd", SOME)
    assert same["refusal"] is None and not same["amends"]
    changed = priced("Cyd", other)
    assert changed["amends"] and changed["refusal"] and not changed["lacks_budget"]
    accepted = priced("Cyd", other | {"continues": "hospital"})
    assert accepted["refusal"] is None and not accepted["amends"]
    theirs = priced("Ann", other)
    assert theirs["refusal"] and not theirs["amends"]
    dear = priced("Cyd", SOME | {"budget": {"share": "1"}})
    assert dear["lacks_budget"] and not dear["amends"]
    people = priced("Cyd", SOME | {"table": SOME["table"] | {"privacy_unit": "ward"}})
    assert people["refusal"] and not people["amends"]
    body = {"scenario": other, "request": "without-a-word"}
    problem(ask("Cyd", "POST", "/api/release", json=body), 409)
    body["scenario"] |= {"continues": "hospital"}
    assert ask("Cyd", "POST", "/api/release", json=body).status_code == 200


def test_the_budget_is_drawn_as_far_as_a_user_may_see_it(shared):
    """A step for each debit that shows, and bars by part, period and quota; what is kept for others
    is one sum without names."""
    settings, ask = shared
    costs = {"north": "1/4", "south": "1/8", None: "1/16"}
    about = Registration("who", part={"column": "region", "rule": "constant"})
    with Ledger(settings.ledger, who="Ann") as ledger:
        schedule = {"every": "year", "until": "2099"}
        ledger.register("visits", calibrate(Epsilon(64)), about, schedule=schedule)
        ledger.set_quota("visits", "sea", "1/128", members=["Ann", "Dan"])
        for number, (part, cost) in enumerate(costs.items()):
            paid = {relation: Cost.pure(cost) for relation in ("replace", "add-remove")}
            spend = Spend({"query": "count"}, paid, registration=about, part=part)
            ledger.store(ledger.debit("visits", f"request-{number}/0", spend), 1)

    def drawn(who):
        given = {"dataset": "visits"}
        return ask(who, "GET", "/api/ledger/requests", params=given).json()["picture"]

    for who in ("Ann", "Cyd"):
        steps = [step["share"] * 64 for step in drawn(who)["steps"]]
        assert steps == pytest.approx([1 / 4, 1 / 4, 5 / 16, 5 / 16])  # parts are side by side
    (now,) = drawn("Bob")["steps"]  # the present total alone
    assert now["share"] * 64 == pytest.approx(5 / 16)
    bars = {each["title"]: each["rows"] for each in drawn("Ann")["bars"]}
    parts = {row["name"]: row["share"] * 64 for row in bars["Spent by region"]}
    assert parts == pytest.approx({"north": 5 / 16, "south": 3 / 16})
    (own,) = bars["Spent of each quota"]
    assert own["name"] == "sea (Ann, Dan)" and own["share"] * 64 / 128 == pytest.approx(7 / 16)
    (free,) = bars["Left beside the quotas"]
    assert free["share"] == pytest.approx(1 - 5 / 16 / 64 - 1 / 16 / 64)
    assert len(bars["What can still be asked"]) == 2
    for path in ("/api/ledger", "/api/ledger/requests?dataset=visits"):
        assert "Dan" in ask("Ann", "GET", path).text
        theirs = ask("Bob", "GET", path).text
        assert not any(name in theirs for name in ("Ann", "Dan", "sea"))
        assert "of others" in theirs


def test_curators_keep_shares_for_people_and_nobody_else_does(shared):
    _, ask = shared

    def keep(who, **body):
        return ask(who, "POST", "/api/ledger/quota", json={"dataset": "hospital"} | body)

    lab = {"quota": "lab", "share": "25%", "members": ["Ann", "eve"]}
    assert "only a curator" in problem(keep("Ann", **lab), 403)
    made = keep("Cyd", **lab, until="2099-12-31")
    assert made.status_code == 200, made.text
    (quota,) = made.json()["budget_state"]["quotas"]
    assert (quota["members"], quota["until"]) == (["Ann", "eve"], "2099-12-31")
    budget = made.json()["budget_state"]["budget_epsilon"]
    assert quota["budget"] == pytest.approx(budget / 4)
    for who in ("Ann", "Cyd"):
        assert ask(who, "GET", "/api/ledger").json()["curator"] is (who == "Cyd")
    more = problem(keep("Cyd", quota="desk", share="4/5"), 409)
    assert "neither spent nor kept" in more
    assert keep("Cyd", quota="desk", share="1/2").status_code == 200
    moved = {"quota": "desk", "share": "1/4", "to": "lab"}
    found = keep("Cyd", **moved).json()["budget_state"]["quotas"]
    assert {each["quota"]: each["budget"] for each in found} == pytest.approx(
        {"lab": budget / 2, "desk": budget / 4}
    )
    gone = {"quota": "desk", "revoke": True}
    found = keep("Cyd", **gone).json()["budget_state"]["quotas"]
    assert {each["quota"]: bool(each["members"]) for each in found} == {"lab": True, "desk": False}
    for wrong, field in (
        (gone | {"share": "1/2"}, "share"),
        (gone | {"revoke": False}, "share"),
        (moved | {"until": "2099-01-01"}, "until"),
        (lab | {"until": "soon"}, "until"),
        (lab | {"share": "2"}, "share"),
        (lab | {"dataset": "nobody's"}, "dataset"),
    ):
        problem(keep("Cyd", **wrong), 422, field)
    for who, keeps in (("Ann", True), ("Cyd", False), ("Bob", False)):  # Ann is in the lab
        price = ask(who, "POST", "/api/estimate", json=SOME).json()
        theirs = budget / 2 if keeps else price["remaining"] - budget / 2
        assert price["today"] == pytest.approx(theirs)
    asked = {"scenario": ONE | {"budget": {"share": "3/4"}}, "accept": True}
    assert "quota 'lab'" in problem(ask("Ann", "POST", "/api/release", json=asked), 409)


def test_users_ask_what_was_decided_and_see_their_own_entries(shared):
    settings, ask = shared
    assert read_curators(settings.users) == {"Cyd"}
    made = ask("Ann", "POST", "/api/release", json={"scenario": SOME, "request": "by-ann-first"})
    assert made.status_code == 200, made.text
    for who, entries in (("Ann", 3), ("Bob", 1), ("Cyd", 5)):
        rows = ask(who, "GET", "/api/ledger/history", params={"dataset": "hospital"}).json()
        assert len(rows["entries"]) == entries
        assert any("hospital" in row[3] for row in rows["entries"]) == (who == "Cyd")
    wards = SOME | {"table": {"source": "hospital.parquet", "privacy_unit": "ward"}}
    maximum = SOME | {
        "adversary": {"uninformed": True},
        "target": {"gamma": "1.5"},
        "queries": [{"kind": "maximum", "universe": [[f"P{n:05}", n] for n in range(8)]}],
    }
    for other in (wards, maximum):
        body = {"scenario": other, "request": "by-bob-001"}
        problem(ask("Bob", "POST", "/api/release", json=body), 409)
    assert "about 'ward'" in ask("Bob", "POST", "/api/estimate", json=wards).json()["refusal"]
    shutil.copy(settings.folder / "hospital.parquet", settings.folder / "january.parquet")
    copy = SOME | {"table": SOME["table"] | {"source": "january.parquet"}, "new_people": True}
    second = ask("Cyd", "POST", "/api/release", json={"scenario": copy, "request": "a-second"})
    assert "are those of dataset" in problem(second, 409)
    remove_user(settings.users, "Cyd")
    assert read_curators(settings.users) == set()


def test_scenario_files_are_for_curators(shared):
    """They may be about any table of the folder, and say what somebody looks for in it."""
    _, ask = shared
    assert ask("Cyd", "GET", "/api/files").json()["scenarios"] == ["hospital.toml"]
    assert ask("Ann", "GET", "/api/files").json()["scenarios"] == []
    known = ask("Cyd", "GET", "/api/scenario", params={"file": "hospital.toml"})
    assert known.status_code == 200
    hidden = ask("Ann", "GET", "/api/scenario", params={"file": "hospital.toml"})
    absent = ask("Ann", "GET", "/api/scenario", params={"file": "nothing!.toml"})
    assert problem(hidden, 422, "file").replace("hospital", "nothing!") == problem(
        absent, 422, "file"
    )


def test_a_curator_is_told_how_to_go_on_with_another_file(shared, monkeypatch):
    """The command that the page shows does it, in the served folder."""
    settings, ask = shared
    (listed,) = ask("Ann", "GET", "/api/ledger").json()["datasets"]
    assert listed["amend"] is None
    (listed,) = ask("Cyd", "GET", "/api/ledger").json()["datasets"]
    served(settings.folder, 61)  # next month's file
    body = {"scenario": SOME, "request": "next-month"}
    assert "amend" in problem(ask("Cyd", "POST", "/api/release", json=body), 409)
    saved = ask("Cyd", "POST", "/api/scenario/toml", json=SOME)
    (settings.folder / "scenario.toml").write_text(saved.text)
    monkeypatch.chdir(settings.folder)
    assert main(shlex.split(listed["amend"])[1:]) == 0
    assert ask("Cyd", "POST", "/api/release", json=body).status_code == 200
    assert seen(ask, "Ann") == ["hospital.parquet"]


# What a user learns of others' files


def further(source, public=False):
    return [{"name": "people", "source": source, "public": public}]


@pytest.mark.parametrize("path", ["/api/estimate", "/api/release", "/api/columns", "/api/sql"])
def test_a_user_learns_no_names_of_files(shared, path):
    """A further table that is there and one that is not are refused in the same words."""
    settings, ask = shared
    (settings.folder / "payroll.csv").write_text("patient,pay\nP1,3\n")
    (settings.folder / "broken.parquet").write_bytes(b"\0")
    with duckdb.connect(str(settings.folder / "clinic.duckdb")) as made:
        made.execute("CREATE TABLE wages (patient VARCHAR)")
    given = {key: SOME[key] for key in ("table", "domains")}
    said = set()
    for source in ("payroll.csv", "broken.parquet", "nowhere.csv", "clinic.duckdb::wages"):
        body = (SOME if path.endswith(("estimate", "release")) else given) | {
            "tables": further(source)
        }
        if path == "/api/release":
            body = {"scenario": body, "request": "asks-for-names"}
        if path == "/api/sql":
            body |= {"sql": "SELECT COUNT(*) FROM hospital"}
        words = problem(ask("Ann", "POST", path, json=body), 422, "tables.0.source")
        said.add(words.replace(source, "NAME"))
        for name in {"payroll", "broken", "wages", "hospital.toml", "users.json"} - {
            source.partition(".")[0],
            source.rpartition("::")[2],
        }:
            assert name not in words
    assert len(said) == 1


KNOWN = {"adversary": {"prior": "0.05..0.5", "size-known": True}}
COPY = {"kind": "synthetic", "columns": ["ward"]}


def test_names_that_are_taken_tell_a_user_nothing(tmp_path):
    """Neither files of the folder nor those of other users change an answer or a price."""
    settings = served(tmp_path, 60)
    tokens = {name: add_user(settings.users, name, name == "Cyd") for name in ("Ann", "Bob", "Cyd")}
    (tmp_path / "payroll.parquet").write_bytes(b"PAR1")
    (tmp_path / "folder.parquet").mkdir()
    some = ONE | KNOWN | {"budget": {"share": "1/16"}}
    with running(settings) as url, program(url) as client:

        def ask(who, path, name, **given):
            scenario = some | {"queries": [COPY | {"path": name}]}
            body = scenario if path == "/api/estimate" else {"scenario": scenario, **given}
            return client.post(path, json=body, headers=bearer(tokens[who]))

        curator = {"scenario": some, "request": "the-first-of-all"}
        made = client.post("/api/release", json=curator, headers=bearer(tokens["Cyd"]))
        assert made.status_code == 200, made.text
        assert ask("Cyd", "/api/estimate", "payroll.parquet").status_code == 409
        prices = set()
        for name in ("payroll.parquet", "folder.parquet", "hospital.parquet", "free.parquet"):
            answer = ask("Ann", "/api/estimate", name)
            assert answer.status_code == 200, answer.text
            prices.add(answer.text.replace(name, "NAME"))
        assert len(prices) == 1
        for who in ("Ann", "Bob"):  # both may have a file of this name
            made = ask(who, "/api/release", "payroll.parquet", request="copies-the-wards")
            assert made.status_code == 200, made.text
            digest = made.json()["answers"][0]["rows"][0][2]
            file = ask(who, "/api/release/file", "payroll.parquet", request="copies-the-wards")
            assert hashlib.sha256(file.content).hexdigest() == digest
        again = ask("Ann", "/api/release", "payroll.parquet", request="copies-once-more")
        problem(again, 409, "queries.0.path")  # their own file is not replaced either
        user = Visitor("Ann", curator=False)
        own = user.request("copies-the-wards")
        seen = ask("Cyd", "/api/release/file", "payroll.parquet", request=own)
        theirs = ask("Ann", "/api/release/file", "payroll.parquet", request="copies-the-wards")
        assert seen.content == theirs.content
    assert (tmp_path / "payroll.parquet").read_bytes() == b"PAR1"
    assert stat.S_IMODE((tmp_path / ".outputs").stat().st_mode) == 0o700
    assert main(["ledger", "verify", settings.ledger]) == 0
