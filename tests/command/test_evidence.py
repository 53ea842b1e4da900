"""`whosin evidence`, [about] in scenarios, and the report for the officer."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from whosin.app.cli.main import main
from whosin.app.example_data import write_hospital
from whosin.report import evidence
from whosin.scenario_model import SIGNED_KEYS

ABOUT = {
    "controller": 'St. Mary\'s "Hospital"',
    "contact": "data@stmary.example",
    "population": "all patients of two wards",
    "period": "2024",
    "decided_by": "the data board",
    "reasons": "Nobody is more than half sure.",
}


@pytest.fixture
def run(capsys):
    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(each) for each in arguments])
        found = capsys.readouterr()
        return code, found.out, " ".join(found.err.split())

    return call


def write_scenario(folder, **about: str):
    path = write_hospital(folder, patients=60)
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in about.items())
    head, _, rest = path.read_text().partition("[about]")
    path.write_text(f"{head}[about]\n{lines}\n[adversary]{rest.partition('[adversary]')[2]}")
    return path


@pytest.fixture
def scenario(tmp_path):
    return write_scenario(tmp_path, **ABOUT)


def test_a_pack_has_data_with_its_schema_and_an_entry(run, scenario, tmp_path):
    import jsonschema

    code, out, err = run("evidence", scenario, "--save", tmp_path / "pack")
    assert (code, err) == (0, "") and "not legal advice" in out
    files = {each.name for each in (tmp_path / "pack").iterdir()}
    assert files == {"evidence.json", "evidence.schema.json", "evidence.html", "registry.yaml"}
    data = json.loads((tmp_path / "pack" / "evidence.json").read_text())
    schema = json.loads((tmp_path / "pack" / "evidence.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data | {"actors": [{"actor": "nobody"}]}, schema)
    assert data["ledger"] is None and data["about"] == ABOUT
    yaml = pytest.importorskip("yaml")
    entry = yaml.safe_load((tmp_path / "pack" / "registry.yaml").read_text())
    assert entry == data["registry"]["entry"] and len(data["registry"]["commit"]) == 40
    assert {"name", "data_curators", "description", "intended_use", "data_product_type"} | {
        "data_product_region",
        "publication_date",
    } <= entry["deployment"]["basic"].keys()
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] < 0.41


def test_actors_have_the_posteriors_of_their_families(run, scenario):
    """At 50%: the plan's 60%, the known size's 9/13, the controller's certainty."""
    code, out, _ = run("evidence", scenario, "--json")
    assert code == 0
    at_half = {
        each["actor"]: {row["prior"]: row["posterior"] for row in each["posteriors"]}[0.5]
        for each in json.loads(out)["actors"]
    }
    assert at_half["controller"] == 1
    assert at_half["recipient"] == pytest.approx(0.6, abs=1e-9)
    assert at_half["insider"] == pytest.approx(9 / 13, abs=1e-9)
    assert at_half["public"] <= at_half["recipient"] + 1e-9


def test_a_part_of_the_budget_tells_the_public_less(run, scenario):
    scenario.write_text(scenario.read_text() + '\n[budget]\nshare = "1/2"\n')
    data = json.loads(run("evidence", scenario, "--json")[1])
    last = {each["actor"]: each["posteriors"][-1]["posterior"] for each in data["actors"]}
    expected = 1 / (1 + math.exp(-math.log(1.5) / 2))
    assert last["public"] == pytest.approx(expected, abs=1e-6) and last["recipient"] > 0.59


def test_after_a_release_the_pack_has_the_head(run, scenario, tmp_path):
    code, out, _ = run("release", scenario, "--yes", "--json")
    assert code == 0
    head = json.loads(out)["budget_state"]["head"]
    data = json.loads(run("evidence", scenario, "--json")[1])
    assert data["ledger"]["head"] == head and data["ledger"]["debits"] == 4
    assert head in run("evidence", scenario)[1].replace("\n", " ")
    assert (
        json.loads(run("evidence", scenario, "--ledger", tmp_path / "no.db", "--json")[1])["ledger"]
        is None
    )
    assert not (tmp_path / "no.db").exists()
    # The ledger has [about] from then on, for whoever has no scenario, and one without it.
    pages = tmp_path / "officer.html"
    _, _, err = run(
        "ledger", "answers", tmp_path / "ledger.db", "--report", pages, "--for", "officer"
    )
    assert err == "" and ABOUT["reasons"] in pages.read_text()
    scenario.write_text(scenario.read_text().replace(f'controller = "{ABOUT["controller"]}"', ""))
    assert json.loads(run("evidence", scenario, "--json")[1])["about"] == ABOUT


def test_a_pack_shows_what_was_recorded_and_what_was_said_later(run, scenario, clock):
    """Of this release, not of another one of the dataset."""
    import jsonschema

    clock(today := "2031-05-06")
    assert run("release", scenario, "--yes")[0] == 0
    before = scenario.read_text()
    scenario.write_text(before.replace(ABOUT["decided_by"], "Somebody else"))
    data = json.loads(run("evidence", scenario, "--json")[1])
    assert data["about"] == ABOUT and data["registry"]["entry"]["deployment"]["implementation"][
        "justification"
    ].endswith(f"Decided by: {ABOUT['decided_by']}.")
    assert data["about_later"] == {
        "decided_by": f"{ABOUT['decided_by']} (recorded with the release;"
        f" the scenario of {today} says: Somebody else)"
    }
    assert data["releases"][0]["about"] == ABOUT | {"title": data["title"]}
    page = " ".join(run("evidence", scenario)[1].split())
    assert "the scenario of" in page and "says: Somebody else" in page
    first, *asked = before.replace(ABOUT["decided_by"], "Somebody else").split("[[queries]]")
    scenario.write_text("[[queries]]".join([first, *(f"{each}\n" for each in asked[::-1])]))
    assert json.loads(run("evidence", scenario, "--json")[1])["about"] == ABOUT  # in any order
    # Another question of the same people is another release: what it says is its own.
    changed = before.replace(ABOUT["decided_by"], "Somebody else").replace("age >= 40", "age >= 65")
    scenario.write_text(changed.replace(f'contact = "{ABOUT["contact"]}"\n', ""))
    code, out, err = run("evidence", scenario, "--json")
    assert code == 0, err
    data = json.loads(out)
    assert data["about"]["decided_by"] == "Somebody else"
    said = f"{ABOUT['contact']} (recorded with an earlier release, on {today})"
    assert data["about_later"] == {"contact": said} and data["about"]["contact"] in said
    jsonschema.validate(data, evidence.evidence_schema())


def test_a_public_number_of_people_is_in_all_papers(run, scenario, tmp_path):
    """T12: from 50% to 9/13 for whoever knows it; also once the scenario says nothing of it."""
    text = scenario.read_text().replace("[table]\n", "[table]\npeople = 61\n")
    scenario.write_text(text)
    officer = tmp_path / "1.html", "--for", "officer"
    assert run("release", scenario, "--yes", "--report", *officer)[0] == 0
    scenario.write_text(text.replace("people = 61\n", ""))
    opened = tmp_path / "2.html", "--for", "officer"
    assert run("ledger", "answers", tmp_path / "ledger.db", "--report", *opened)[0] == 0
    assert run("evidence", scenario, "--save", tmp_path / "pack")[0] == 0
    papers = officer[0], opened[0], tmp_path / "pack" / "evidence.html"
    for page in (each.read_text() for each in papers):
        assert re.search(r"class=bad>[^<]*number of people, 61,[^<]*from 50.0% to 69.3%", page)
        assert "size-known" not in page
    entry = (tmp_path / "pack" / "registry.yaml").read_text()
    assert 'unprotected_quantities: "the number of privacy units"' in entry


def test_a_later_release_says_which_it_is_and_the_public_has_all(run, scenario, tmp_path, clock):
    """Shares of 1/4 each: 1.5^(1/4), 1.5^(1/2) and 1.5, against someone who is half sure."""
    clock(today := "2031-05-06")
    text = f'{scenario.read_text()}\n[budget]\nshare = "1/4"\n'
    scenario.write_text(text)
    rows = pq.read_table(tmp_path / "hospital.parquet")
    pq.write_table(rows.slice(3), tmp_path / "february.parquet")
    alone, both = (f"{math.ceil(1000 / (1 + 1.5**-share)) / 10}%" for share in (0.25, 0.5))

    def public() -> dict:
        data = json.loads(run("evidence", scenario, "--json")[1])
        return next(each for each in data["actors"] if each["actor"] == "public")

    assert run("release", scenario, "--no-preflight")[0] == 0
    assert public()["posteriors"][-1]["posterior"] == pytest.approx(1 / (1 + 1.5**-0.25), abs=1e-6)
    text = text.replace("hospital.parquet", "february.parquet")
    scenario.write_text(text.replace("[table]\n", '[table]\nname = "hospital"\n'))
    planned = public()  # with what is planned
    assert (
        run("release", scenario, "--no-preflight", "--amend", "--report", tmp_path / "2.html")[0]
        == 0
    )
    assert public() == planned and "all releases" in planned["words"]
    expected = 1 / (1 + 1.5**-0.5)
    assert planned["posteriors"][-1]["posterior"] == pytest.approx(expected, abs=1e-6)
    _, out, _ = run("ledger", "answers", tmp_path / "ledger.db", "--json")
    first, second = (each["request"] for each in json.loads(out)["releases"])
    opened, january = tmp_path / "again.html", tmp_path / "1.html"
    for request, page in ((second, opened), (first, january)):
        given = "--request", request, "--report", page, "--for", "officer"
        assert run("ledger", "answers", tmp_path / "ledger.db", "hospital", *given)[0] == 0
    assert run("evidence", scenario, "--save", tmp_path / "pack")[0] == 0
    for paper in (tmp_path / "2.html", opened, tmp_path / "pack" / "evidence.html"):
        text = paper.read_text()
        for said in (
            f"number 2 of 2: {today} of hospital ({first[:8]}); {today} of hospital (february) "
            f"({second[:8]}, this one)",
            f"hospital, which the dataset had until {today}",
            f"at most {alone} sure from this release alone, {both} from all 2 releases so far, and "
            "60.0% from all",
        ):
            assert said in text
    assert opened.read_text().count(f"{alone} sure from this release alone, {both}") == 2
    assert "number 1 of 2" in january.read_text() and "goes on from" not in january.read_text()


def test_the_registry_takes_the_entry(run, tmp_path):
    """It has the shape of the pinned schema and its own web address, sentences that end once, and
    an author whom nobody knows yet: who decided is not who fills the entry in."""
    import jsonschema

    yaml = pytest.importorskip("yaml")
    about = ABOUT | {"period": "2024.", "population": "All of them.", "decided_by": "Dr. A."}
    asked = '[[queries]]\nkind = "count"\nby = ["ward"]\n'
    path = write_scenario(tmp_path, **about)
    path.write_text(f"{path.read_text()}\n{asked}")
    assert run("evidence", path, "--save", tmp_path / "pack")[0] == 0
    entry = yaml.safe_load((tmp_path / "pack" / "registry.yaml").read_text())
    shape = json.loads(Path(__file__).with_name("registry_schema.json").read_text())
    assert evidence.REGISTRY_COMMIT in shape["$comment"]
    kind = jsonschema.Draft7Validator
    kind(shape, format_checker=kind.FORMAT_CHECKER).validate(entry)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(entry | {"deployment": {"basic": {}}}, shape)
    deployment = entry["deployment"]
    basic, year = deployment["basic"], deployment["basic"]["publication_date"][:4]
    named = (basic["name"], "-".join(basic["data_curators"]), year)
    slug = "_".join(re.sub(r"\W+", "_", each.lower()) for each in named).replace("_", "-")
    assert entry["url_slug"] == slug
    assert deployment["administrative"]["registry_authors"] == [evidence.TO_FILL_IN]
    assert "number of people by ward. Of: All of them. 2024." in basic["description"]
    why = deployment["implementation"]["justification"]
    assert why == "Nobody is more than half sure. Decided by: Dr. A."
    assert ".." not in json.dumps(entry).replace("0.05..0.5", "")


@pytest.mark.parametrize("key", sorted(ABOUT))
def test_what_is_missing_is_named_and_nothing_is_written(run, tmp_path, key):
    rest = {name: words for name, words in ABOUT.items() if name != key}
    path = write_scenario(tmp_path, **rest)
    code, out, err = run("evidence", path, "--save", tmp_path / "pack")
    assert (code, out) == (2, "") and key in err and err.count("[about]") >= 1
    assert not (tmp_path / "pack").exists() and not (tmp_path / "ledger.db").exists()


def test_all_that_is_missing_is_named_at_once(run, tmp_path):
    code, _, err = run("evidence", write_scenario(tmp_path))
    assert code == 2 and all(err.count(f'{key} = "…"') == 1 for key in SIGNED_KEYS)
    assert err.count("does not say") == 1


def test_a_folder_with_files_is_not_written_to(run, scenario, tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "mine.txt").write_text("mine")
    code, out, _ = run("evidence", scenario, "--save", tmp_path / "pack")
    assert (code, out) == (2, "")
    assert [each.name for each in (tmp_path / "pack").iterdir()] == ["mine.txt"]
    assert run("evidence", scenario, "--save", tmp_path / "no" / "pack")[0] == 2


@pytest.mark.parametrize("line", ['controller = ""', "controller = 3", 'controler = "x"'])
def test_about_is_checked(run, tmp_path, line):
    path = write_scenario(tmp_path)
    path.write_text(path.read_text().replace("[about]\n", f"[about]\n{line}\n"))
    code, out, err = run("release", path, "--dry-run")
    assert (code, out) == (2, "") and "about" in err and "controller" in err


def test_the_report_for_the_officer(run, scenario, tmp_path):
    for options in (("--for", "officer"), ("--report", tmp_path / "x.html", "--for", "nobody")):
        code, out, _ = run("release", scenario, *options)
        assert (code, out) == (2, "") and not (tmp_path / "ledger.db").exists()
    whole, short = tmp_path / "whole.html", tmp_path / "short.html"
    assert run("release", scenario, "--yes", "--report", whole)[0] == 0
    assert run("release", scenario, "--yes", "--report", short, "--for", "officer")[0] == 0
    assert len(short.read_text()) < len(whole.read_text()) / 2
    assert "the data board" in short.read_text() and '<svg class="marks' not in short.read_text()
    query = "SELECT COUNT(*) FROM hospital"
    code, _, err = run("sql", scenario, query, "--for", "officer")
    assert code == 2 and "--report" in err


def test_a_pack_can_be_signed_and_says_what_it_leaves_open(run, scenario, tmp_path):
    """It has the digest of the answers, what is not promised, fields to sign, and what D_B is."""
    digest = json.loads(run("release", scenario, "--yes", "--json")[1])["digest"]
    assert run("evidence", scenario, "--save", tmp_path / "pack")[0] == 0
    data = json.loads((tmp_path / "pack" / "evidence.json").read_text())
    assert [each["digest"] for each in data["releases"]] == [digest]
    assert len(data["not_promised"]) >= 3 and "69.3%" in data["why_inference_differs"]
    page = (tmp_path / "pack" / "evidence.html").read_text()
    for named in ("What is not promised", "Signatures", digest, "Li et al. 2013", "so 2ε"):
        assert named in page
    out = run("ledger", "answers", tmp_path / "ledger.db")[1]
    assert digest in out


def test_equal_limits_of_recipient_and_public_say_why(run, scenario):
    def words() -> dict[str, str]:
        data = json.loads(run("evidence", scenario, "--json")[1])
        entry = json.dumps(data["registry"]["entry"], ensure_ascii=False)
        found = {each["actor"]: each["words"] for each in data["actors"]}
        assert ("all of the budget" in entry) == ("all of the budget" in found["public"])
        return found

    assert "all of the budget" in words()["public"]
    scenario.write_text(scenario.read_text() + '\n[budget]\nshare = "1/2"\n')
    assert "all of the budget" not in words()["public"]


def test_a_report_to_sign_says_before_it_is_paid_what_is_missing(run, capsys, tmp_path):
    """What a pack asks for, in the same words, with lines that can be pasted as they stand."""
    import tomllib

    from whosin.scenario_model import AboutSection

    path = write_scenario(tmp_path)
    assert main(["evidence", str(path)]) == 2
    refused = capsys.readouterr().err.partition("whosin: ")[2]
    about = tomllib.loads(refused.partition("\n")[2])["about"]
    assert AboutSection.read(about, "about").unsaid == []
    err = run("release", path, "--report", tmp_path / "r.html", "--for", "officer")[2]
    assert " ".join(refused.split()) in err  # in the same words
    path = write_scenario(tmp_path, controller="The board")
    code, _, err = run("evidence", path, "--ledger", tmp_path / "new.db")
    assert code == 2 and "does not say contact, population, period, decided_by, reasons" in err
    assert err.count('= "…"') == 5 and "[about] contact" not in err


@pytest.fixture
def monthly(tmp_path):
    """Scenarios of months, of which each asks a third of the budget of the one before."""

    def write(name: str, rows: str) -> Path:
        (tmp_path / f"{name}.csv").write_text("\n".join(["person,ward", *rows.split()]) + "\n")
        about = "".join(f"{key} = {json.dumps(words)}\n" for key, words in ABOUT.items())
        path = tmp_path / f"{name}.toml"
        path.write_text(
            f'[about]\n{about}[adversary]\nprior = "0.05..0.5"\n[target]\nposterior = 0.6\n'
            f'[table]\nsource = "{name}.csv"\nprivacy_unit = "person"\n[domains]\n'
            'ward = ["x", "y"]\n[budget]\nshare = "1/4"\n[[queries]]\nkind = "count"\nby = "ward"\n'
        )
        return path

    return write


def test_a_pack_is_of_the_dataset_that_paid_for_it(run, monthly):
    """A month that went on under another name's budget was called the only release so far."""
    may, june = monthly("may", "a,x b,y c,x"), monthly("june", "a,x b,y d,y")
    july = monthly("july", "a,x b,y e,y")
    asked = "--no-preflight", "--json"
    assert run("release", may, *asked)[0] == 0
    assert run("release", june, *asked, "--continues", "may")[0] == 0
    planned = run("release", july, "--dry-run")[1]
    code, out, err = run("evidence", july)  # nobody said whose people these are
    assert (code, out) == (1, "")
    refusal = " ".join(planned.split()).partition("would be refused: ")[2].partition(" hint")[0]
    assert refusal[:60] in err and "--continues may" in err and "--new-people" in err
    for path, options in ((june, ()), (july, ("--continues", "may"))):
        code, out, err = run("evidence", path, "--json", *options)
        assert code == 0, err
        data = json.loads(out)
        assert data["ledger"]["dataset"] == "may" and len(data["releases"]) == 2
        assert "only one" not in json.dumps(data)
    assert run("evidence", july, "--continues", "april")[0] == 2
    both = "--continues", "may", "--new-people"
    assert run("evidence", july, *both)[0] == 2
    page = " ".join(run("evidence", july, "--new-people")[1].split())
    assert "The ledger does not know dataset 'july'" in page and "no ledger yet" not in page


def test_a_pack_of_a_refused_release_says_so(run, monthly):
    """It said "from all 5 releases so far", of which there were four."""
    path = monthly("may", "a,x b,y c,x")
    assert "from this release, the first one" in " ".join(run("evidence", path)[1].split())
    for _ in range(4):
        assert run("release", path, "--no-preflight", "--again")[0] == 0
    path.write_text(f"{path.read_text()}where = \"ward = 'x'\"\n")
    planned = " ".join(run("release", path, "--dry-run")[1].split())
    refusal = re.search("would be refused: (.+)[.]", planned)
    data = json.loads(run("evidence", path, "--json")[1])
    assert refusal and data["refusal"] and data["refusal"] in refusal[1]
    assert "4 releases so far and this one" in data["answers_so_far"]
    page = " ".join(run("evidence", path)[1].split())
    assert f"would be refused: {data['refusal']}." in page


def test_a_correction_says_in_its_pack_what_it_replaces(run, tmp_path):
    path = write_scenario(tmp_path, **ABOUT, replaces="request 6a23")
    assert run("evidence", path, "--save", tmp_path / "pack")[0] == 0
    data = json.loads((tmp_path / "pack" / "evidence.json").read_text())
    page = (tmp_path / "pack" / "evidence.html").read_text()
    assert data["about"]["replaces"] == "request 6a23" and "request 6a23" in page
    assert re.search(f"as of[^0-9]{{1,40}}{data['made']}", page)


@pytest.mark.parametrize("options", [("--for", "officer"), ()])
def test_explain_says_where_a_scenario_is_explained(run, scenario, options):
    """It was a usage error in a box."""
    code, out, err = run("explain", scenario, *options)
    assert (code, out) == (2, "")
    assert f"whosin evidence {scenario}" in err and "--epsilon" in err
