"""Association studies through the routes: forecasts, advice, and releases by curators alone."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from web_faults import crashing_study, with_fault
from web_server import STUDY, problem, program, served, write_study
from whosin.app.cli.main import main
from whosin.app.web.access import Settings, add_user
from whosin.app.web.server import running
from whosin.calibration import read_plan
from whosin.gwas import (
    Hope,
    PublicStudy,
    Question,
    StudySettings,
    advise_study,
    estimate_study_cost,
    forecast_study,
    read_study,
)
from whosin.ledger import Ledger

PROMISE = {key: STUDY[key] for key in ("adversary", "target")}
HOPED = PROMISE | {"cases": 300, "controls": 300, "snps": 200, "odds_ratio": "1.6"}
ASKED = HOPED | {"relation": "label-swap"}
SIZES = PublicStudy(300, 300, 200)
EPSILON = read_plan(PROMISE["adversary"] | {"size-known": True}, PROMISE["target"]).epsilon


@pytest.fixture
def clinic(tmp_path: Path) -> Settings:
    write_study(tmp_path)
    return served(tmp_path, 20)


@pytest.fixture
def client(clinic: Settings):
    with running(clinic) as url, program(url) as found:
        yield found


def make_release(client: httpx.Client, **keys: object) -> httpx.Response:
    return client.post("/api/study/release", json=STUDY | {"request": "toy-release"} | keys)


def test_a_forecast_is_the_library_s(still):
    view = still.post("/api/study/forecast", json=ASKED | {"top": 2}).json()
    made = forecast_study(SIZES, StudySettings("label-swap", EPSILON, 2), [Hope(0.3, 1.6)])
    assert view["forecast"]["chance"] == pytest.approx(made.chance)
    [best] = view["forecast"]["best"]
    assert best["settings"]["top"] == 1 and best["chance"] > made.chance + 0.1
    tables = [part for part in view["parts"] if part["heads"]]
    assert [table["heads"][2] for table in tables] == ["comes back", "comes back"]
    assert view["lead"].startswith("The SNP comes back in ")


def test_advice_compares_relations_unless_one_is_named(still):
    view = still.post("/api/study/advice", json=HOPED).json()
    listed = {each["settings"]["relation"]: each for each in view["forecast"]["advice"]}
    assert set(listed) == {"genotype", "label-swap", "label"}
    [made] = advise_study(SIZES, [Hope(0.3, 1.6)], {"genotype": EPSILON}).smallest
    assert made is not None and listed["genotype"]["smallest"]["cases"] == made.study.cases
    one = still.post("/api/study/advice", json=ASKED).json()["forecast"]["advice"]
    assert [each["settings"] for each in one] == [listed["label-swap"]["settings"]]
    two = still.post("/api/study/advice", json=HOPED | {"top": 2}).json()["forecast"]["advice"]
    assert {each["settings"]["top"] for each in two} == {2}  # as it was decided
    assert listed["genotype"]["settings"]["top"] == 1


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"cases": 1}, "cases"),
        ({"cases": "many"}, "cases"),
        ({"controls": None}, "controls"),
        ({"snps": 5, "top": 6}, "top"),
        ({"effective_snps": 201}, "effective_snps"),
        ({"relation": None}, "relation"),
        ({"relation": "labels"}, "relation"),
        ({"relation": "label"}, "relation"),
        ({"odds_ratio": "big"}, "odds_ratio"),
        ({"odds_ratio": " , "}, "odds_ratio"),
        ({"odds_ratio": ",".join(["2"] * 11)}, "odds_ratio"),
        ({"frequency": "1"}, "frequency"),
        ({"frequency": "0.1,0.2"}, "frequency"),
        ({"threshold": "-4"}, "threshold"),
        ({"share": "1"}, "share"),
        ({"numbers": "all"}, "numbers"),
        ({"score": "best"}, "score"),
        ({"target": {"posterior": "40%"}}, "target.posterior"),
        ({"target": {"posterior": "75%", "delta": "1e-6"}}, "target.delta"),
        ({"adversary": {"linked": 3}}, "adversary.linked"),
        ({"study": "toy"}, "study"),
    ],
)
def test_wrong_input_names_its_field(still, keys, field):
    problem(still.post("/api/study/forecast", json=ASKED | keys), 422, field)


def test_a_release_is_agreed_to_paid_once_and_shown_again(client, clinic):
    assert client.get("/api/studies").json() == {"studies": ["toy"]}
    sizes = client.post("/api/study/forecast", json=PROMISE | {"study": "toy", "odds_ratio": "4",
                                                               "relation": "genotype"})  # fmt: skip
    assert [sizes.json()[key] for key in ("cases", "controls", "snps")] == [300, 300, 200]
    cost = client.post("/api/study/estimate", json=STUDY).json()
    study = read_study(clinic.folder / "toy")
    plan = read_plan(PROMISE["adversary"] | {"size-known": True}, PROMISE["target"])
    whole = sum(estimate_study_cost(plan, Question(1, "genotype"), study).epsilons)
    assert f"ε = {float(whole):.5f} " in cost["spends"] and cost["lookalikes"] == []
    assert cost["dataset"] == "toy:genotype" and not Path(clinic.ledger).exists()
    problem(make_release(client, spends="This will spend nothing."), 409, "spends")
    made = make_release(client, spends=cost["spends"])
    assert made.status_code == 200, made.text
    again = make_release(client, spends=cost["spends"])
    assert again.json() == made.json()
    repeated = client.post("/api/study/estimate", json=STUDY | {"request": "toy-release"}).json()
    assert repeated["paid"] and not repeated["lacks_budget"]
    other = client.post("/api/study/estimate", json=STUDY).json()
    assert other["lacks_budget"] and not other["paid"]
    heads, row = (line.split("\t") for line in made.json()["table"].splitlines())
    assert heads[:4] == ["CHR", "SNP", "BP", "A1"] and row[1] in study.snps.name
    assert [point["name"] for point in made.json()["picture"]["points"]] == [row[1]]
    assert row[1] in made.json()["report"]
    problem(make_release(client, request="another-one"), 409)
    problem(make_release(client, request="another-one", relation="label-swap"), 409)
    with Ledger(clinic.ledger) as ledger:
        assert ledger.datasets() == ["toy:genotype"]
        assert ledger.budget_state("toy:genotype").debits == 1
    [paid] = client.get("/api/ledger/requests", params={"dataset": "toy:genotype"}).json()[
        "requests"
    ]
    assert (paid["request"], paid["study"], paid["opens"]) == ("toy-release", True, True)
    kept = {"dataset": "toy:genotype", "request": "toy-release"}
    assert client.get("/api/study/answers", params=kept).json() == made.json()
    problem(client.get("/api/study/answers", params=kept | {"request": "other"}), 404, "request")
    (clinic.folder / "toy.bed").unlink()
    problem(client.get("/api/study/answers", params=kept), 422, "study")
    with Ledger(clinic.ledger) as ledger:
        assert ledger.budget_state("toy:genotype").debits == 1


def test_a_release_without_an_id_is_paid_once(client, clinic):
    first, again = (client.post("/api/study/release", json=STUDY).json() for _ in range(2))
    assert (again["request"], again["table"]) == (first["request"], first["table"])
    cost = client.post("/api/study/estimate", json=STUDY).json()
    assert cost["paid"] and not cost["lacks_budget"]
    with Ledger(clinic.ledger) as ledger:
        assert ledger.budget_state("toy:genotype").debits == 1


def test_randomised_labels_are_listed_and_not_opened(client, clinic):
    """They are a file of somebody's, and no answers of a study."""
    line = f"gwas randomise {clinic.folder / 'toy'} --posterior 0.75 --prior 0.5 --yes"
    kept = ["--save", str(clinic.folder / "labels.txt"), "--ledger", str(clinic.ledger)]
    assert main([*line.split(), *kept]) == 0
    with Ledger(clinic.ledger) as ledger:
        [dataset] = ledger.datasets()
    [paid] = client.get("/api/ledger/requests", params={"dataset": dataset}).json()["requests"]
    assert (paid["answered"], paid["study"], paid["opens"]) == (True, False, False)
    asked = {"dataset": dataset, "request": paid["request"]}
    problem(client.get("/api/study/answers", params=asked), 404, "request")
    problem(client.get("/api/ledger/answers", params=asked), 404, "request")


def test_whose_people_they_are_has_to_be_said(client, clinic):
    assert make_release(client).status_code == 200
    write_study(clinic.folder, "more", seed=2)
    asked = {"study": "more", "request": "second-study"}
    cost = client.post("/api/study/estimate", json=STUDY | {"study": "more"}).json()
    assert cost["lookalikes"] == ["toy:genotype"] and cost["remaining"] is None
    problem(make_release(client, **asked), 409, "continues")
    problem(make_release(client, **asked, continues="less:genotype"), 409, "continues")
    assert make_release(client, **asked, new_people=True).status_code == 200
    for ending in ("bed", "bim", "fam"):
        copy = clinic.folder / f"copy.{ending}"
        copy.write_bytes((clinic.folder / f"toy.{ending}").read_bytes())
    same = client.post("/api/study/estimate", json=STUDY | {"study": "copy"}).json()
    assert same["dataset"] == "toy:genotype" and "its budget pays" in same["notes"][0]
    problem(make_release(client, study="copy", request="third-study", new_people=True), 409)
    write_study(clinic.folder, "next", seed=3)
    later = {"study": "next", "request": "fourth-study", "continues": "toy:genotype"}
    assert "has 0 left" in problem(make_release(client, **later), 409)


def test_a_study_with_a_ledger_of_its_own_gets_no_second_budget(client, clinic):
    (clinic.folder / "toy.ledger").touch()
    for route in ("estimate", "release"):
        problem(client.post(f"/api/study/{route}", json=STUDY), 409, "study")
    assert not Path(clinic.ledger).exists()


def test_links_and_parts_of_studies_are_not_there(client, clinic, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    write_study(elsewhere, "secret")
    for ending in ("bed", "bim", "fam"):
        (clinic.folder / f"secret.{ending}").symlink_to(elsewhere / f"secret.{ending}")
    (clinic.folder / "half.bed").touch()
    assert client.get("/api/studies").json() == {"studies": ["toy"]}
    for name in ("secret", "half", "../toy", str(elsewhere / "secret")):
        problem(client.post("/api/study/estimate", json=STUDY | {"study": name}), 422, "study")


def test_only_curators_read_and_release_studies(clinic):
    tokens = {
        name: add_user(clinic.users, name, curator=name == "Chief") for name in ("Ann", "Chief")
    }
    with running(clinic) as url:
        with program(url, Authorization=f"Bearer {tokens['Ann']}") as ann:
            assert ann.get("/api/studies").json() == {"studies": []}
            assert ann.post("/api/study/forecast", json=ASKED).status_code == 200
            named = PROMISE | {"study": "toy", "odds_ratio": "2", "relation": "genotype"}
            problem(ann.post("/api/study/forecast", json=named), 403, "study")
            for route in ("estimate", "release"):
                problem(ann.post(f"/api/study/{route}", json=STUDY), 403, "study")
        assert not Path(clinic.ledger).exists()
        with program(url, Authorization=f"Bearer {tokens['Chief']}") as chief:
            assert make_release(chief).status_code == 200


def test_a_server_that_opens_no_budgets_opens_none_for_studies(tmp_path):
    write_study(tmp_path)
    with running(served(tmp_path, 20, register=False)) as url, program(url) as client:
        problem(make_release(client), 409, "study")


def test_a_crash_suspends_the_study_and_the_request_goes_on(client, clinic, monkeypatch):
    with monkeypatch.context() as patch:
        with_fault(patch, crashing_study)
        words = problem(make_release(client), 503)
    assert "continues without paying again" in words
    problem(make_release(client), 409)
    with Ledger(clinic.ledger) as ledger:
        ledger.resume("toy:genotype")
    assert make_release(client).status_code == 200
    with Ledger(clinic.ledger) as ledger:
        assert ledger.budget_state("toy:genotype").debits == 1


def test_every_page_names_the_same_secret(client, run, clinic):
    """A study's promise is about genotypes or cases, and not about who is in: on the study's card,
    in the ledger, where its answers are opened again, and in the command."""
    made = make_release(client).json()
    [dataset] = client.get("/api/ledger").json()["datasets"]
    for card in (made["card"], dataset["card"]):
        said = " ".join(line for part in card for line in part["lines"])
        assert "sure of a person's genotype" in said
        assert "that a person is in" not in said and "500 are in" not in said
    words = run("ledger show", clinic.ledger)[1]
    assert "sure of a person's genotype" in " ".join(words.split())
    said = " ".join(line for part in made["card"] for line in part["lines"])
    assert "1,000 people known to be in, of whom someone was 50.0% sure of a genotype, 500" in said


def test_cases_are_counted_as_cases(client):
    made = make_release(client, relation="label-swap").json()
    said = " ".join(line for part in made["card"] for line in part["lines"])
    assert "whom someone was 50.0% sure to be a case, 500 are" in said
    assert "accuses 10 of 1,000 people who are no cases" in said
