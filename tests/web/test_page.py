"""The page in a real browser: the whole round, by mouse and by keyboard, and what can go wrong.

Pictures are taken only where WHOSIN_SCREENSHOTS names a folder for them.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import cast

import duckdb
import pytest
from playwright.sync_api import Page, expect
from pyarrow import parquet

from web_faults import appears, waiting_scan, with_fault
from web_page import (
    ask,
    axe_at_widths,
    choose,
    declare_range,
    declare_values,
    edit,
    go_to,
    load,
    load_file,
    looks,
    open_advanced,
    open_loading,
    release,
    saved,
    shoot,
    unfold,
)
from web_server import ONE, program, run_script, served, write_study
from whosin.app.web.access import add_user
from whosin.app.web.server import running
from whosin.ledger import Ledger

expect.set_options(timeout=120_000)  # a busy machine is no reason to fail


@pytest.fixture
def hospital(tmp_path):
    return served(tmp_path / "data")


def test_the_whole_round(hospital, opened, serving, album, tmp_path):
    """From an adversary to files that make the same run again."""
    url = serving(hospital)
    page = opened(url)
    needs = page.locator(".needs")
    go_to(page, "promise")
    expect(needs).to_contain_text("0.4054")
    page.get_by_label("at most, in per cent").first.fill("30")
    expect(page.locator("#prior-words")).to_contain_text("to 30% (thinks it possible)")
    expect(needs).to_contain_text("1.252")
    drawn = re.compile("30% sure becomes at most 60%")
    expect(needs.locator("svg").first).to_have_attribute("aria-label", drawn)
    expect(needs.locator("svg").nth(1)).to_have_attribute("aria-label", re.compile("accuses 1%"))
    expect(page.locator("#needs-card .people svg")).to_have_attribute(
        "aria-label", re.compile("30 filled before, 60 filled")
    )
    page.locator('[name="target"][value="gamma"]').check()
    expect(needs).to_contain_text("1.07 × less")
    page.locator('[name="target"][value="posterior"]').check()
    page.get_by_label("Yes, the exact number").check()
    expect(needs).to_contain_text("between replace neighbours")
    page.locator('[name="size"][value="no"]').check()

    choose(page, "hospital.parquet", "patient")
    page.get_by_label("Rows of a person that count").fill("3")
    declare_values(page, "ward", "surgery, medicine, maternity, children")
    declare_range(page, "days", 0, 30)
    ask(page)
    expect(page.locator("#cost-0")).to_contain_text("Costs ε = 1.25276, expected error ± 0.6")
    ask(page, "rows")
    second = page.get_by_label("question 2", exact=True)
    second.get_by_label("Call it").fill("visits by ward")
    second.get_by_label("ward").check()
    ask(page, "mean")
    expect(page.locator("#cost-2")).to_contain_text("Costs ε")
    expect(page.locator("#estimate-1")).to_contain_text("Readable in groups of")
    expect(page.locator("#estimate-2")).to_contain_text("By the rows in a group: 100 →")
    expect(page.locator("#total")).to_contain_text("is new to the ledger")
    go_to(page, "release")
    page.get_by_label("A title for the report").fill("Visits of 2025")
    shoot(page, album, "round-before")
    release(page)
    results = page.locator("#results")
    expect(page.get_by_role("heading", name="Visits of 2025")).to_be_focused()
    expect(results.locator("svg")).to_have_count(1)
    expect(page.locator("#release-card")).to_contain_text("What all answers together allow")
    shoot(page, album, "round-after")

    report = saved(page, "HTML report", tmp_path).read_text(encoding="utf-8")
    assert "visits by ward" in report and "<script" not in report
    csv = saved(page, "Download visits by ward as CSV", tmp_path).read_text(encoding="utf-8")
    results.get_by_text("Numbers, and what counts").click()
    shown = [
        re.sub(r"[^\d-]", "", cell)
        for cell in results.locator("tbody tr td:nth-child(2)").all_inner_texts()
    ]
    assert [line.split(",")[1] for line in csv.splitlines()[1:]] == shown
    toml = saved(page, "Scenario (TOML)", tmp_path)
    assert tomllib.loads(toml.read_text(encoding="utf-8"))["adversary"]["prior"] == "5%..30%"
    script = saved(page, "Python script", tmp_path)
    printed = run_script(script, hospital.folder)
    assert all(f"\t{number}\t" in printed for number in shown)

    page.get_by_role("link", name="Ledger").click()
    page.get_by_role("button", name="History of hospital").click()
    expect(page.get_by_text("The chain of digests is intact.")).to_be_visible()
    shoot(page, album, "ledger-after")
    page.goto(f"{url}/#release/data")
    load_file(page, toml)
    expect(page.locator("#query-1-name")).to_have_value("visits by ward")
    go_to(page, "release")
    page.get_by_role("button", name="Show the stored answers").click()
    expect(results.locator("svg")).to_have_count(1)
    go_to(page, "release")
    page.get_by_label("Ask anew").check()
    expect(page.locator("#go-hint")).to_contain_text("The ledger would refuse this")
    expect(page.locator("#go")).to_be_disabled()
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 3


@looks(count=1)
def test_a_profile_is_edited_as_a_curve(hospital, opened, serving, album, tmp_path, size, theme):
    """By mouse, by keys, in the table and as text; what is sent is what the plan reads."""
    page = opened(serving(hospital), size, theme, quiet=False)
    needs = page.locator(".needs")
    go_to(page, "promise")
    page.get_by_label("at most, in per cent").first.fill("100")
    open_advanced(page)
    page.locator('[name="target"][value="profile"]').check()
    text, points = page.locator("#profile"), page.locator(".profile .handle")
    expect(points).to_have_count(3)
    expect(needs).to_contain_text("65.0% from 50.0%")
    first = page.locator("#figures dd").first
    expect(first).to_contain_text("0.619")
    points.nth(2).focus()
    page.keyboard.press("Shift+ArrowUp")
    expect(text).to_have_value("1%:5%, 10%:30%, 50%:70%")
    expect(points.nth(2)).to_be_focused()
    expect(needs).to_contain_text("70.0% from 50.0%")
    expect(points.nth(2)).to_be_focused()  # also once the plan's own curve is there
    page.locator("svg.profile").evaluate("(drawing) => drawing.scrollIntoView({block: 'center'})")
    box, place = page.locator("svg.profile").bounding_box(), points.nth(1).bounding_box()
    assert box is not None and place is not None
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.5, steps=3)
    page.mouse.up()
    moved = re.fullmatch(r"1%:5%, ([\d.]+)%:([\d.]+)%, 50%:70%", text.input_value())
    assert moved and 8 < float(moved[1]) < 16 and 35 < float(moved[2]) < 55
    page.get_by_label("At most after, point 2").fill("40")
    page.get_by_label("At most after, point 2").press("Tab")
    expect(needs).to_contain_text("40.0% from")
    page.get_by_role("button", name="Add a point").click()
    expect(points).to_have_count(4)
    shoot(page, album, f"profile-{size}-{theme}")
    points.nth(3).focus()
    page.keyboard.press("Delete")
    expect(points).to_have_count(3)
    text.fill("0.1:0.05")
    expect(page.locator('[data-error="target.profile"]')).to_contain_text("The profile")
    text.fill("1/10:3/10,0.5:0.6")
    expect(points).to_have_count(2)
    expect(first).to_contain_text("0.4054")
    page.locator('[name="target"][value="tpr"]').check()
    page.locator("#tpr").fill("0.1")
    page.locator("#fpr").fill("0.01")
    expect(needs.locator("svg .cross")).to_have_count(1)
    expect(needs.locator("svg").first).to_have_attribute("aria-label", re.compile("at most 10%"))
    shoot(page, album, f"rates-{size}-{theme}")


def kept(page: Page, folder: Path) -> dict[str, object]:
    """The scenario as the page saves it."""
    expect(page.get_by_role("button", name="Save the scenario")).to_be_enabled()
    return tomllib.loads(saved(page, "Save the scenario", folder).read_text(encoding="utf-8"))


@looks(count=1)
def test_every_adversary_and_target(hospital, opened, serving, album, tmp_path, size, theme):
    """In words, drawn at once, and the same again after saving and loading."""
    page = opened(serving(hospital), size, theme)
    load(page)
    needs = page.locator("#needs-words")
    belief = page.locator('#belief-chart svg[aria-label^="Belief after"]')
    go_to(page, "promise")
    page.get_by_label("Only about a few people").check()
    page.locator("#known").fill("3")
    expect(page.locator("#sizes")).to_have_attribute("disabled", "")
    expect(page.locator("#links")).to_have_attribute("disabled", "")
    shoot(page, album, f"few-{size}-{theme}")
    assert kept(page, tmp_path)["adversary"] == {"prior": "5%..50%", "known": 3}
    few = tmp_path / "scenario.toml"
    few.rename(tmp_path / "few.toml")

    page.get_by_label("What rows say").check()
    for asked in ("#knows", "#sizes", "#links"):
        expect(page.locator(asked)).to_have_attribute("disabled", "")
    expect(page.locator("#figures")).to_contain_text("between replace")
    assert kept(page, tmp_path)["adversary"] == {"prior": "5%..50%", "secret": "value"}
    few.rename(tmp_path / "value.toml")
    page.get_by_label("Who is in it").check()

    page.get_by_label("Nothing at all").check()
    expect(page.locator("#beliefs")).to_have_attribute("disabled", "")
    expect(page.locator("#prior-words")).to_have_text("As unsure as a coin toss.")
    expect(belief).to_have_attribute("aria-label", re.compile("50% sure becomes at most 60%"))
    page.locator('[name="target"][value="gain"]').check()
    page.locator("#gain-text").fill("20")
    expect(needs).to_contain_text("20 percentage points")
    expect(page.locator("#target-words")).to_contain_text("A belief of 50% may become 70%")
    shoot(page, album, f"nothing-{size}-{theme}")
    found = kept(page, tmp_path)
    assert (found["adversary"], found["target"]) == ({"uninformed": True}, {"gain": "20%"})
    few.rename(tmp_path / "nothing.toml")

    open_advanced(page)
    page.locator('[name="target"][value="rho"]').check()
    page.locator("#candidates").fill("25")
    expect(page.locator("#beliefs")).to_have_attribute("disabled", "")
    expect(page.locator("#rho-note")).to_be_visible()
    expect(needs).to_contain_text("any of 25 equally likely candidates")
    expect(page.locator("#target-words")).to_contain_text("4% likely before")
    shoot(page, album, f"rho-{size}-{theme}")
    found = kept(page, tmp_path)
    assert "adversary" not in found and found["target"] == {"rho": "10%", "candidates": 25}
    few.rename(tmp_path / "rho.toml")

    page.reload()
    for name in ("value", "few", "nothing", "rho"):
        load_file(page, tmp_path / f"{name}.toml")
        if name == "value":
            expect(page.get_by_label("What rows say")).to_be_checked()
        elif name == "few":
            expect(page.locator("#known")).to_have_value("3")
            expect(page.get_by_label("Only about a few people")).to_be_checked()
        elif name == "nothing":
            expect(page.get_by_label("Nothing at all")).to_be_checked()
            expect(page.locator("#gain-text")).to_have_value("20")
        else:
            expect(page.locator("#candidates")).to_have_value("25")
            expect(page.locator("#target-rho")).not_to_have_attribute("hidden", "")
        again = kept(page, tmp_path)
        assert again == tomllib.loads((tmp_path / f"{name}.toml").read_text(encoding="utf-8"))


HOSPITAL = """
[adversary]
prior = "5%..50%"
[target]
posterior = "60%"
[table]
source = "hospital.parquet"
privacy_unit = "patient"
"""
RELATED = f"""{HOSPITAL}
[domains]
stays = {{ lower = 0, upper = 20 }}
sex = ["f", "m"]
region = "wards.region"
[[tables]]
name = "people"
source = "people.csv"
[[tables]]
name = "wards"
source = "wards.csv"
public = true
key = "ward"
[[features]]
name = "stays"
kind = "count"
where = "days > 1"
[[queries]]
kind = "mean"
column = "stays"
by = ["sex"]
[[queries]]
kind = "count"
by = ["region"]
"""


EARLY = f"""title = "Early"
{HOSPITAL}
[[queries]]
kind = "count"
"""
HELD = """
const sent = window.fetch;
const ready = new Promise((go) => { window.go = go; });
window.fetch = async (...request) => { await ready; return sent(...request); };
"""


def test_a_file_that_is_chosen_before_the_page_is_ready_is_loaded(
    hospital, opened, serving, tmp_path
):
    (tmp_path / "early.toml").write_text(EARLY, encoding="utf-8")
    page = opened(serving(hospital))
    page.add_init_script(HELD)
    page.reload()
    page.locator("#scenario-file").set_input_files(tmp_path / "early.toml")
    page.evaluate("window.go()")
    expect(page.locator("#title")).to_have_value("Early")
    page.close()  # no other test has the script


@looks(first=1, count=1)
def test_further_tables_and_features(hospital, opened, serving, album, tmp_path, size, theme):
    """A scenario that has them is shown, asked in SQL, priced, released and saved as it was."""
    people = "".join(f"P{number},{'fm'[number % 2]}\n" for number in range(400))
    (hospital.folder / "people.csv").write_text(f"patient,sex\n{people}", encoding="utf-8")
    wards = "ward,region\nsurgery,north\nmedicine,south\nmaternity,north\nchildren,south\n"
    (hospital.folder / "wards.csv").write_text(wards, encoding="utf-8")
    given = tmp_path / "related.toml"
    given.write_text(RELATED, encoding="utf-8")
    page = opened(serving(hospital), size, theme, quiet=False)
    load_file(page, given)
    expect(page.locator("#related")).to_contain_text("people.csv, the same people, at most 1 row")
    expect(page.locator("#related")).to_contain_text("stays: count where days > 1")
    edit(page, "region")
    expect(page.get_by_label("values of region")).to_have_value("wards.region")
    expect(page.locator("#cost-0")).to_contain_text("Costs")
    again = kept(page, tmp_path)
    said = tomllib.loads(RELATED)
    for key in ("tables", "features", "queries"):
        assert again[key] == said[key]
    assert again["domains"]["region"] == "wards.region"
    go_to(page, "questions")
    page.get_by_text("Ask in SQL").click()
    joined = "SELECT sex, COUNT(DISTINCT patient) FROM hospital JOIN people USING (patient)"
    joined += " WHERE age >= 65 GROUP BY 1"
    page.locator("#sql").fill("SELECT MAX(days) FROM hospital")
    page.locator("#add-sql").click()
    expect(page.locator('[data-error="sql"]')).to_contain_text("QUANTILE_CONT(days, 0.99)")
    page.locator("#sql").fill(joined)
    page.locator("#add-sql").click()
    expect(page.locator('[data-error="sql"]')).to_be_empty()
    expect(page.locator("#cost-2")).to_contain_text("Costs")
    third = page.get_by_label("question 3", exact=True)
    expect(third.get_by_label("Only rows where")).to_have_value(re.compile("age >= 65"))
    shoot(page, album, f"related-before-{size}-{theme}")
    release(page)
    expect(page.locator("#answers")).to_contain_text("north")
    shoot(page, album, f"related-after-{size}-{theme}")


@looks(first=3, count=1)
def test_a_synthetic_table(hospital, opened, serving, album, tmp_path, size, theme):
    """From a table in a database to a file with one made-up row for each person."""
    with duckdb.connect(str(hospital.folder / "clinic.duckdb")) as made:
        made.execute(f"CREATE TABLE visits AS FROM '{hospital.folder / 'hospital.parquet'}'")
    page = opened(serving(hospital), size, theme, quiet=False)
    choose(page, "clinic.duckdb::visits", "patient")
    declare_values(page, "ward", "surgery, medicine, maternity, children")
    ask(page, "synthetic")
    question = page.get_by_label("question 1", exact=True)
    question.get_by_label("ward").check()
    message = page.locator('[data-error="queries.0"]')
    expect(message).to_contain_text("shows the size of the data")
    go_to(page, "promise")
    page.get_by_label("Yes, the exact number").check()
    expect(message).to_be_empty()
    expect(page.locator("#cost-0")).to_contain_text("over 5 cells")
    go_to(page, "questions")
    question.get_by_label("Name of the file").fill("../copy.parquet")
    expect(page.locator('[data-error="queries.0.path"]')).to_contain_text("a plain file name")
    question.get_by_label("Name of the file").fill("copy.parquet")
    expect(page.locator("#cost-0")).to_contain_text("over 5 cells")
    shoot(page, album, f"synthetic-before-{size}-{theme}")
    release(page)
    expect(page.locator("#answers")).to_contain_text("copy.parquet")
    shoot(page, album, f"synthetic-after-{size}-{theme}")
    copy = saved(page, "Download copy.parquet", tmp_path)
    assert parquet.read_table(copy).num_rows == 400
    assert kept(page, tmp_path)["queries"][0]["columns"] == ["ward"]
    go_to(page, "questions")
    question.get_by_label("How it is made").select_option("marginals")
    expect(question.get_by_label("How it is made")).to_be_focused()
    question.get_by_text("More about this question").click()
    question.get_by_label("How many rows to draw").fill("50")
    question.get_by_label("Choose tables privately").select_option("yes")
    expect(question.get_by_label("What is believed of a row")).to_have_count(0)
    shoot(page, album, f"synthetic-learned-{size}-{theme}")
    learned = kept(page, tmp_path)["queries"][0]
    assert (learned["method"], learned["length"], learned["choose"]) == ("marginals", 50, True)


@looks(first=1, count=1)
def test_every_view(hospital, opened, serving, album, size, theme):
    """Both widths and both themes: nothing spills, nothing complains. A phone in the dark is where
    most could go wrong; other tests go through every view on a light desktop."""
    url = serving(hospital)
    page = opened(url, size, theme)
    go_to(page, "promise")
    expect(page.locator("#belief-chart svg").first).to_be_visible()
    shoot(page, album, f"start-{size}-{theme}")
    load(page)
    shoot(page, album, f"loaded-{size}-{theme}")
    release(page)
    expect(page.locator("#answers svg")).to_have_count(2)
    shoot(page, album, f"released-{size}-{theme}")
    page.goto(f"{url}/#rules")
    page.get_by_role("button", name="Check").click()
    found = page.locator("#findings")
    expect(found).to_contain_text("4 cells are suppressed: 4 can be worked out exactly")
    expect(found).to_contain_text("must not be published with the table")
    expect(found.locator("tbody tr").first).to_contain_text("C, old")
    expect(found.locator("tbody tr").first).to_contain_text("33.3%")
    shoot(page, album, f"check-{size}-{theme}")
    page.goto(f"{url}/#verify")
    page.get_by_label("A claim: at most").fill("1.5")
    page.get_by_role("button", name="Verify").click()
    expect(page.locator("#verdict")).to_contain_text("is refuted by this case")
    expect(page.locator("#verdict")).to_contain_text("ann")
    shoot(page, album, f"verify-{size}-{theme}")
    page.goto(f"{url}/#notions")
    edge = page.get_by_role("button", name="T5: BDP ⇔ PMP under D_B", exact=True)
    edge.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#theorem")).to_contain_text("Li13 Theorem 4.8")
    shoot(page, album, f"notions-{size}-{theme}")
    page.goto(f"{url}/#distortion")
    page.get_by_role("button", name="Draw").click()
    expect(page.locator("#curves svg")).to_have_count(2)
    shoot(page, album, f"distortion-{size}-{theme}")
    page.goto(f"{url}/#ledger")
    expect(page.locator("#datasets")).to_contain_text("Spent")
    page.get_by_text("Go on with another file").click()
    command = page.locator("#datasets code")
    expect(command).to_contain_text("whosin ledger amend ledger.db hospital --scenario")
    shoot(page, album, f"ledger-{size}-{theme}")
    page.goto(f"{url}/api")
    expect(page.locator("h3", has_text="/api/estimate")).to_be_visible()
    expect(page.locator("#ScenarioBody")).to_contain_text("As [[queries]] of a scenario file")
    shoot(page, album, f"api-{size}-{theme}")


@looks(first=1, count=1)
def test_a_study_from_its_sizes_to_a_plot(hospital, opened, serving, album, tmp_path, size, theme):
    """Forecast, advice, and for its curator the release: nothing is spent before the answer is yes,
    and the table is the one that is saved."""
    write_study(hospital.folder)
    url = serving(hospital)
    page = opened(url, size, theme, quiet=False)
    page.get_by_role("link", name="Study").click()
    message = lambda field: page.locator(f'[data-error="study.{field}"]')  # noqa: E731
    expect(page.locator("#study-pick")).to_be_visible()
    forecast = page.locator("#study-forecast")
    page.get_by_role("button", name="Forecast").click()
    expect(message("relation")).to_contain_text("decides what is protected")
    page.get_by_role("button", name="Advise").click()
    expect(forecast).to_contain_text("smallest study for 95%")
    expect(forecast.locator("tbody tr")).to_have_count(3)
    page.get_by_role("button", name="Use this: Who is a case").click()
    expect(forecast).to_contain_text("The SNP comes back in")
    expect(page.locator("#study-relation")).to_have_value("label-swap")
    for field, wrong, said in (
        ("cases", "many", "whole number"),
        ("odds", "0", "above 0"),
        ("posterior", "40", "50% sure already"),
    ):
        before = page.locator(f"#study-{field}").input_value()
        page.locator(f"#study-{field}").fill(wrong)
        page.get_by_role("button", name="Forecast").click()
        slot = {"odds": "odds_ratio", "posterior": "target.posterior"}.get(field, field)
        expect(message(slot)).to_contain_text(said)
        expect(page.locator(f"#study-{field}")).to_have_attribute("aria-invalid", "true")
        page.locator(f"#study-{field}").fill(before)
    expect(page.locator("#study-go")).to_be_disabled()

    page.get_by_label("A PLINK study in the served folder").select_option("toy")
    page.locator("#study-relation").select_option("genotype")
    page.get_by_role("button", name="Forecast").click()
    expect(forecast).to_contain_text("of 200 SNPs among 300 cases")
    expect(page.locator("#study-snps")).to_have_value("200")
    shoot(page, album, f"study-forecast-{size}-{theme}")
    page.locator("#study-go").click()
    expect(page.locator("#ask")).to_contain_text("This will spend ε = 1.09861 for toy:genotype.")
    expect(page.locator("#ask")).to_contain_text("50.0% sure of a person's genotype, becomes at")
    assert axe_at_widths(page) == []
    page.locator("#ask-no").click()
    expect(page.locator("#study-go")).to_be_enabled()
    assert not Path(hospital.ledger).exists()
    page.locator("#study-go").click()
    page.locator("#ask-yes").click()
    expect(page.get_by_role("heading", name="What is public now")).to_be_focused()
    result = page.locator("#study-result")
    drawn = result.locator(".chart svg").get_attribute("aria-label")
    saved_rows = saved(page, "Table (TSV)", tmp_path).read_text(encoding="utf-8").splitlines()
    [row] = [line.split("\t") for line in saved_rows[1:]]
    assert drawn is not None and row[1] in drawn
    expect(result.locator("tbody tr")).to_contain_text(row[1])
    assert axe_at_widths(page) == []
    shoot(page, album, f"study-released-{size}-{theme}")
    page.locator("#study-go").click()  # the same again: its stored answer
    expect(result.locator(".caution")).to_contain_text("this was asked before")
    expect(result.locator(".chart svg")).to_have_attribute("aria-label", drawn)
    page.locator("#study-posterior").fill("70")
    page.locator("#study-go").click()
    expect(message("release")).to_contain_text("is left; nothing was spent")
    page.goto(f"{url}/#ledger")
    page.get_by_role("button", name="Open top 1 of 200 SNPs").click()
    stored = page.locator("#stored")  # the same as was published
    assert axe_at_widths(page) == []
    expect(stored.locator(".chart svg")).to_have_attribute("aria-label", drawn)
    expect(stored.locator("tbody tr")).to_contain_text(row[1])
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("toy:genotype").debits == 1


def test_wrong_input_is_said_beside_its_field(hospital, opened, serving, tmp_path):
    url = serving(hospital)
    page = opened(url, quiet=False)
    message = lambda field: page.locator(f'[data-error="{field}"]')  # noqa: E731
    go_to(page, "promise")
    page.locator("#high-text").fill("seventy")
    expect(message("adversary.prior")).to_contain_text("must be a finite number")
    expect(page.locator("#high-text")).to_have_attribute("aria-invalid", "true")
    named = page.locator("#high-text").get_attribute("aria-errormessage")
    expect(page.locator(f"#{named}")).to_contain_text("must be a finite number")
    page.locator("#high-text").fill("70")
    expect(message("adversary.prior")).to_be_empty()
    expect(message("target.posterior")).to_contain_text("someone may be 70% sure already")
    page.locator("#high-text").fill("50")
    expect(message("target.posterior")).to_be_empty()
    for wrong in ("lots", "40"):
        page.locator("#posterior-text").fill(wrong)
        expect(message("target.posterior")).not_to_be_empty()
        expect(page.locator("#target-words")).to_be_empty()
    page.locator("#posterior-text").fill("60")
    expect(page.locator("#target-words")).to_contain_text("60%")
    page.get_by_label("Yes, such as families").check()
    page.locator("#group-size").fill("0")
    expect(message("adversary.linked")).to_contain_text("at least 1")
    page.locator('[name="linked"][value="no"]').check()
    page.get_by_label("Only about a few people").check()
    page.locator("#known").fill("some")
    expect(message("adversary.known")).to_contain_text("whole number")
    page.get_by_label("Possibly everything").check()
    open_advanced(page)
    page.locator('[name="target"][value="rho"]').check()
    page.locator("#candidates").fill("1")
    expect(message("target.candidates")).to_contain_text("at least 2")
    page.locator("#candidates").fill("5")
    expect(message("target.rho")).to_contain_text("the adversary believes 1/m = 20% already")
    page.locator('[name="target"][value="posterior"]').check()
    page.locator("#delta").fill("2")
    expect(message("target.delta")).to_contain_text("below 1")
    page.locator("#delta").fill("")

    load(page)
    go_to(page, "questions")
    expect(page.locator("#short-2")).to_contain_text("where age >= 40")  # it is folded
    unfold(page, 2)
    page.locator("#query-2-where").fill("agee >= 40")
    expect(message("queries.2.where")).to_contain_text("did you mean 'age'")
    page.locator("#query-2-where").fill("age >= 40")
    expect(message("queries.2.where")).to_be_empty()
    go_to(page, "price")
    page.locator("#budget summary").click()
    page.get_by_label("Noise").select_option("gaussian")
    expect(message("budget.noise")).to_contain_text("needs a plan with a delta")
    expect(page.locator("#total")).to_have_text("“Price” needs another look.")
    assert axe_at_widths(page) == []
    page.get_by_label("Noise").select_option("laplace")
    edit(page, "days")
    page.get_by_label("upper end of days").fill("much")
    expect(message("domains.days")).to_contain_text("is no number")
    page.get_by_label("upper end of days").fill("-1")
    page.get_by_label("Done with days").last.click()
    expect(message("domains.days")).to_contain_text("before it begins")  # and stays open
    assert axe_at_widths(page) == []
    page.get_by_label("upper end of days").fill("30")
    page.get_by_label("Rows of a person that count").fill("0")
    expect(message("table.max_rows_per_group")).to_contain_text("whole number")
    page.get_by_label("Rows of a person that count").fill("3")
    expect(page.locator("#total")).to_contain_text("In all ε")

    lie = tmp_path / "lie.parquet"
    lie.write_text("who,age\nann,3\n", encoding="utf-8")
    go_to(page, "data")
    page.get_by_label("Or bring one").set_input_files(lie)
    expect(message("name")).to_contain_text("lie.parquet")
    truth = tmp_path / "truth.csv"
    truth.write_text("who,age\nann,3\nbob,5\n", encoding="utf-8")
    page.get_by_label("Or bring one").set_input_files(truth)
    expect(page.locator("#upload-status")).to_contain_text("truth.csv is in the served folder")
    expect(page.locator("#privacy_unit")).to_have_value("")
    expect(page.locator("#ask-hint")).to_have_text("Say under People whose row it is.")
    page.get_by_label("Or bring one").set_input_files([])
    page.get_by_label("Or bring one").set_input_files(truth)  # its name is taken now
    page.get_by_label("Its name here").fill("newer.csv")
    page.locator("#ask-yes").click()
    expect(page.locator("#upload-status")).to_contain_text("newer.csv is in the served folder")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[target]\nspeed = 1\n", encoding="utf-8")
    open_loading(page)
    page.get_by_label("Or a file of yours").set_input_files(wrong)
    expect(message("scenario")).to_contain_text("speed")

    check_words(page)
    page.goto(f"{url}/#rules")
    page.get_by_label("How many people could be in each cell").fill("ward,young,old\nA,40,60\n")
    page.get_by_role("button", name="Check").click()
    expect(message("published.population")).to_contain_text("no row 'B'")
    expect(page.locator("#findings")).to_be_empty()
    page.goto(f"{url}/#verify")
    page.locator("#channel").fill('{"space": 1}')
    page.get_by_role("button", name="Verify").click()
    expect(message("verify.channel")).not_to_be_empty()
    page.goto(f"{url}/#distortion")
    page.get_by_label("Rows", exact=True).fill("many")
    page.get_by_role("button", name="Draw").click()
    expect(message("distortion.rows")).to_contain_text("whole number")
    assert not Path(hospital.ledger).exists()


def test_a_tab_closed_in_the_middle_goes_on_later(hospital, opened, serving, monkeypatch):
    """Paid once, answered once: the page remembers the request's id."""
    url = serving(hospital)
    page = opened(url)
    load(page)
    with_fault(monkeypatch, waiting_scan, str(hospital.folder))
    release(page)
    assert appears(hospital.folder / "scanning")
    context = page.context
    page.close()
    (hospital.folder / "go-on").touch()
    page = context.new_page()
    page.goto(url)
    go_to(page, "release")
    expect(page.locator("#pending")).to_contain_text("was under way")
    page.get_by_role("button", name="Continue it").click()
    expect(page.locator("#answers .answer")).to_have_count(4)
    page.reload()
    expect(page.locator(".needs")).to_contain_text("0.4054")
    expect(page.locator("#pending")).to_be_hidden()
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 4


def test_the_server_stops_while_the_page_is_open(hospital, opened, album):
    with running(hospital) as url:
        page = opened(url, quiet=False)
        load(page)
        go_to(page, "promise")
        page.context.set_offline(True)
        page.locator("#high-text").fill("30")
        expect(page.locator("#offline")).to_be_visible()
        expect(page.locator("#needs-words")).to_contain_text("Waiting for the server")
        steps = page.get_by_role("navigation", name="Steps")
        go_to(page, "release")
        expect(page.locator("#go-hint")).to_have_text("Waiting for the server.")
        expect(page.locator("#go")).to_be_disabled()
        expect(steps).not_to_contain_text("needs another look")  # nothing that was typed is wrong
        page.context.set_offline(False)
        expect(page.locator("#offline")).to_be_hidden()
        expect(page.locator("#go")).to_be_enabled()
        go_to(page, "promise")
        expect(page.locator(".needs")).to_contain_text("1.252")
    page.locator("#high-text").fill("40")
    expect(page.locator("#offline")).to_contain_text("The server has stopped")
    page.get_by_role("link", name="Ledger").click()
    expect(page.locator('[data-error="ledger"]')).to_contain_text("cannot be reached")
    shoot(page, album, "stopped")


def test_the_budget_goes_while_the_page_is_open(hospital, opened, serving):
    """The price was fine a moment ago."""
    url = serving(hospital)
    page = opened(url, quiet=False)
    load(page)
    with program(url) as other:
        every = other.get("/api/scenario", params={"file": "hospital.toml"}).json()["scenario"]
        made = other.post("/api/release", json={"scenario": every, "request": "another-one"})
        assert made.status_code == 200
    go_to(page, "release")
    page.locator("#go").click()  # it asks for the price once more
    expect(page.locator("#go-hint")).to_contain_text("The ledger would refuse this")
    expect(page.locator("#ask")).to_be_hidden()
    expect(page.locator("#results")).to_be_hidden()
    expect(page.locator("#pending")).to_be_hidden()
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 4


def test_a_shared_server_asks_who_is_there(hospital, opened, serving, album):
    """Only a curator looks at rows, and sees tables that no budget is for."""
    users = [("Ann", False), ("Chief", True)]
    tokens = {name: add_user(hospital.users, name, curator=chief) for name, chief in users}
    url = serving(hospital)
    asked = {"table": {"source": "hospital.parquet", "privacy_unit": "patient"}}
    with program(url) as client:
        assert client.post("/api/inspect", json=asked).status_code == 401
    for name, status in (("Ann", 403), ("Chief", 200)):
        with program(url, Authorization=f"Bearer {tokens[name]}") as client:
            assert client.post("/api/inspect", json=asked).status_code == status
            assert client.get("/api/hello").json()["curator"] is (name == "Chief")
    page = opened(url, quiet=False)
    page.get_by_label("Your token").fill("guess")
    page.get_by_role("button", name="Enter").click()
    expect(page.locator('[data-error="token"]')).to_contain_text("Nobody has this token")
    shoot(page, album, "login")
    for name in tokens:
        page.get_by_label("Your token").fill(tokens[name])
        page.get_by_role("button", name="Enter").click()
        expect(page.locator("footer")).to_contain_text(f"in the name of {name}")
        options = page.get_by_label("A table in the served folder").locator("option")
        seen = options.filter(has_text="hospital.parquet")
        expect(seen).to_have_count(int(name == "Chief"))
        if name == "Ann":
            expect(page.locator("#look-field")).to_be_hidden()
            page.context.clear_cookies()
            page.reload()
    load(page)
    release(page)
    expect(page.locator("#answers .answer")).to_have_count(4)
    with program(url, Authorization=f"Bearer {tokens['Chief']}") as client:
        rows = client.get("/api/ledger/history", params={"dataset": "hospital"}).json()
    assert {row[2] for row in rows["entries"]} == {"Chief"}
    assert json.dumps(ONE) not in page.content()


def test_whose_row_it_is_must_be_chosen(hospital, opened, serving, album, tmp_path):
    """The first column of a census is an age: 72 people of 32,561 would have been protected."""
    (hospital.folder / "people.csv").write_text("age,sex\n39,f\n50,m\n38,m\n", encoding="utf-8")
    page = opened(serving(hospital), quiet=False)
    choose(page, "people.csv")
    expect(page.get_by_label("Whose row is it?")).to_have_value("")
    expect(page.locator("#privacy_unit-note")).to_contain_text("Choose the column")
    expect(page.locator("#add-query")).to_have_attribute("hidden", "")
    expect(page.locator("#columns")).to_be_hidden()
    shoot(page, album, "privacy-unit-not-chosen")
    page.get_by_label("Whose row is it?").select_option("each row is one person")
    expect(page.locator("#privacy_unit-note")).to_contain_text("nobody has two rows")
    expect(page.locator("#max_rows_per_group")).to_be_disabled()
    declare_values(page, "sex", "f, m")
    expect(page.get_by_text("the same in all rows of a person")).to_have_count(0)
    ask(page)
    page.get_by_label("question 1", exact=True).get_by_label("sex").check()
    expect(page.locator("#total")).to_contain_text("In all ε")
    expect(page.locator("#cautions-0")).to_be_empty()
    found = kept(page, tmp_path)
    assert found["table"] == {"source": "people.csv", "privacy_unit": "row"}
    release(page)
    expect(page.locator("#answers")).to_contain_text("Privacy unit: each row")
    shoot(page, album, "privacy-unit-row")
    page.reload()
    load_file(page, tmp_path / "scenario.toml")
    expect(page.locator("#privacy_unit")).to_have_value("row")
    assert kept(page, tmp_path) == found


@pytest.mark.soak
def test_dates_and_what_is_derived_from_them(hospital, opened, serving, tmp_path):
    rows = "who,seen\na,2024-05-01\nb,2025-02-03\n"
    (hospital.folder / "seen.csv").write_text(rows, encoding="utf-8")
    page = opened(serving(hospital), quiet=False)
    choose(page, "seen.csv", "who")
    edit(page, "seen")
    page.get_by_label("What seen may hold").select_option("dates in a range")
    page.get_by_label("first day of seen").fill("2024-01-01")
    page.get_by_label("last day of seen").fill("2025-12-31")
    page.get_by_label("Other values in seen").select_option("do not count")
    page.get_by_label("seen: the same in all rows of a person").check()
    ask(page)
    page.get_by_label("question 1", exact=True).get_by_label("year(seen)").check()
    expect(page.locator("#total")).to_contain_text("In all ε")
    found = kept(page, tmp_path)
    wanted = {"lower": "2024-01-01", "upper": "2025-12-31", "constant": True, "outside": "drop"}
    assert found["domains"]["seen"] == wanted and found["queries"][0]["by"] == ["year(seen)"]
    release(page)
    expect(page.locator("#answers")).to_contain_text("rows whose year(seen) was not declared")
    page.reload()
    load_file(page, tmp_path / "scenario.toml")
    edit(page, "seen")
    expect(page.get_by_label("first day of seen")).to_have_value("2024-01-01")
    assert kept(page, tmp_path) == found


def test_answers_say_years_and_other_values_as_everywhere(hospital, opened, serving, tmp_path):
    """No "null" below answers, no comma in a year, one name for values that were not declared."""
    rows = "".join(f"p{n},{2024 + n % 2},{('other', 'x')[n % 2]}\n" for n in range(40))
    (hospital.folder / "years.csv").write_text(f"who,year,kind\n{rows}", encoding="utf-8")
    page = opened(serving(hospital), quiet=False)
    choose(page, "years.csv", "who")
    for name, values in (("year", "2024, 2025"), ("kind", "other, x")):
        declare_values(page, name, values)
    ask(page)
    first = page.get_by_label("question 1", exact=True)
    first.get_by_label("year").check()
    first.get_by_label("kind").check()
    with page.expect_response(lambda said: "asked" in (said.request.post_data or "")):
        first.get_by_label("Call it").fill("asked")  # no button works before the price is there
    release(page)
    answers = page.locator("#answers")
    expect(answers).to_contain_text('values of year that were not declared are in "other"')
    expect(answers).to_contain_text('values of kind that were not declared are in "undeclared"')
    answers.get_by_text("Numbers, and what counts").click()
    cells = answers.locator("tbody tr td:nth-child(-n+2)").all_inner_texts()
    labels = [
        (year, kind) for year in ("2024", "2025", "other") for kind in ("other", "x", "undeclared")
    ]
    assert list(zip(cells[::2], cells[1::2], strict=True)) == labels
    assert "null" not in page.locator("#results").inner_text()
    csv = saved(page, "Download asked as CSV", tmp_path).read_text(encoding="utf-8")
    kept_labels = [tuple(line.replace('"', "").split(",")[:2]) for line in csv.splitlines()[1:]]
    assert kept_labels == labels


@pytest.mark.soak
def test_levels_and_sums_of_cells(hospital, opened, serving, tmp_path):
    rows = "who,town,age\na,Bern,3\nb,Biel,40\nc,Genf,70\n"
    (hospital.folder / "towns.csv").write_text(rows, encoding="utf-8")
    page = opened(serving(hospital), quiet=False)
    choose(page, "towns.csv", "who")
    declare_values(page, "town", "Bern, Biel, Genf")
    page.get_by_label("parents of town").fill("canton: BE = Bern, Biel")
    declare_range(page, "age", 0, 120)
    page.get_by_label("bins of age").fill("0, 18, 65, 120")
    ask(page, "marginals")
    card = page.get_by_label("question 1", exact=True)
    for name in ("canton", "cumulative(age)", "ranges(age)"):
        card.get_by_label(name, exact=True).check()
    card.get_by_text("More about this question").click()
    card.get_by_label("Ranges, for ranges").fill("age: 0..65, 18..120")
    expect(page.locator("#columns")).to_contain_text("a parent for every value, not none for")
    edit(page, "town")
    page.get_by_label("parents of town").fill("canton: BE = Bern, Biel; GE = Genf")
    expect(page.locator("#total")).to_contain_text("In all ε")
    found = kept(page, tmp_path)
    cantons = {"BE": ["Bern", "Biel"], "GE": ["Genf"]}
    assert found["domains"]["town"]["parents"] == {"canton": cantons}
    (query,) = found["queries"]
    assert query["columns"] == ["canton", "cumulative(age)", "ranges(age)"]
    assert query["ranges"] == {"age": [[0, 65], [18, 120]]}
    release(page)
    expect(page.locator("#answers")).to_contain_text("canton, cumulative(age)")
    page.reload()
    load_file(page, tmp_path / "scenario.toml")
    edit(page, "town")
    expect(page.get_by_label("parents of town")).to_have_value("canton: BE = Bern, Biel; GE = Genf")
    assert kept(page, tmp_path) == found


def test_a_column_called_row_is_a_column(hospital, opened, serving, tmp_path):
    (hospital.folder / "odd.csv").write_text("row,x\na,1\na,2\nb,3\n", encoding="utf-8")
    page = opened(serving(hospital), quiet=False)
    for label, spelled in (("row", "column:row"), ("each row is one person", "each row")):
        choose(page, "hospital.parquet")
        choose(page, "odd.csv", label)
        if not page.locator("#title-0").count():  # else it was taken over
            ask(page)
        expect(page.locator("#total")).to_contain_text("In all ε")
        assert kept(page, tmp_path)["table"]["privacy_unit"] == spelled
        load_file(page, tmp_path / "scenario.toml")
        expect(page.locator("#privacy_unit")).to_have_value(spelled)


@looks(first=1, count=1)
def test_defaults_that_nobody_chose_are_warned_of(
    hospital, opened, serving, album, tmp_path, size, theme
):
    page = opened(serving(hospital), size, theme, quiet=False)
    choose(page, "hospital.parquet", "patient")
    declare_values(page, "ward", "surgery, medicine, maternity, children")
    ask(page, "rows")
    page.get_by_label("question 1", exact=True).get_by_label("ward").check()
    cautions = page.locator("#cautions-0")
    expect(cautions).to_contain_text("A person counts in one group only, though ward may differ")
    expect(cautions).to_contain_text("with several rows only one counts")
    ask(page, "histogram")
    shared = page.locator("#cautions .caution")  # said once, of both
    expect(shared).to_have_text(
        re.compile("^Number of rows .* Number of people by ward.* one group only")
    )
    expect(cautions).to_have_text(
        re.compile("^Of a person with several rows only one counts[^A]*$")
    )
    expect(page.locator("#cautions-1")).to_be_empty()
    go_to(page, "price")
    shoot(page, album, f"cautions-{size}-{theme}")
    go_to(page, "people")
    page.get_by_text("Look at the rows, as their curator").click()
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.locator("#look")).to_contain_text("not for publication")
    expect(page.locator("#look")).to_contain_text("the most rows of one person")
    shoot(page, album, f"look-{size}-{theme}")
    page.get_by_label("ward: the same in all rows of a person").check()
    expect(shared).to_have_count(0)
    go_to(page, "questions")
    page.get_by_role("button", name="Remove question 2").click()
    go_to(page, "people")
    expect(cautions).not_to_contain_text("one group only")
    page.get_by_label("Rows of a person that count").fill("1")
    expect(cautions).to_be_empty()
    open_advanced(page)
    page.locator("#delta").fill("0.000001")
    expect(page.locator("#total")).to_contain_text("No answer uses δ: without it the plan would")
    expect(cautions).to_be_empty()
    page.locator("#delta").fill("")
    expect(page.locator("#total")).not_to_contain_text("No answer uses δ")
    ask(page, "top")
    page.get_by_label("question 2", exact=True).get_by_label("ward").check()
    page.get_by_label("question 2", exact=True).get_by_label("how many").fill("2")
    expect(page.locator("#cost-1")).to_contain_text("With 95% probability no value that is left")
    page.get_by_role("button", name="Remove question 2").click()
    edit(page, "ward")
    page.get_by_label("Other values in ward").select_option("do not count")
    found = kept(page, tmp_path)
    assert found["domains"]["ward"]["constant"] is True
    assert found["domains"]["ward"]["outside"] == "drop"
    assert found["table"]["max_rows_per_group"] == 1 and "max_groups" not in found["table"]
    release(page)
    said = "at most 1 row per person and group counts; at most 1 group per person counts"
    expect(page.locator("#answers")).to_contain_text(said)
    expect(page.locator("#answers")).to_contain_text(
        "rows whose ward was not declared do not count"
    )
    expect(page.locator("#answers")).to_contain_text("does not cover what this leaves out")
    shoot(page, album, f"statement-{size}-{theme}")


def test_a_table_that_cannot_be_opened_says_why(hospital, opened, serving, album):
    (hospital.folder / "twice.csv").write_text("who,age,Age\na,1,2\n", encoding="utf-8")
    page = opened(serving(hospital), quiet=False)
    page.get_by_label("A table in the served folder").select_option("twice.csv")
    message = page.locator('[data-error="table.source"]')
    expect(message).to_contain_text("Columns 2 and 3")
    expect(page.locator("#ask-hint")).to_contain_text("cannot be opened")
    go_to(page, "release")
    page.get_by_label("A title for the report").fill("Another")  # asks for the price again
    page.wait_for_timeout(600)
    expect(message).to_contain_text("Columns 2 and 3")
    shoot(page, album, "broken-table")
    choose(page, "hospital.parquet", "patient")
    expect(message).to_be_empty()


def test_an_unfinished_question_is_not_in_the_cost(hospital, opened, serving, album, tmp_path):
    page = opened(serving(hospital), quiet=False)
    choose(page, "hospital.parquet", "patient")
    ask(page)
    expect(page.locator("#total")).to_contain_text("In all ε = 0.405465")
    ask(page, "mean")
    expect(page.locator("#cost-1")).to_contain_text("Not finished, and not in the cost")
    expect(page.locator("#cost-1")).to_contain_text("declare a column of numbers under People")
    expect(page.locator("#total")).to_contain_text("In all ε = 0.405465")
    expect(page.locator("#total")).to_contain_text("One question is not finished")
    expect(page.locator("#go")).to_be_disabled()
    shoot(page, album, "unfinished")
    edit(page, "days")
    page.get_by_label("lower end of days").fill("0")
    expect(page.locator("#cost-1")).to_contain_text("say under People what days may hold")
    page.get_by_label("upper end of days").fill("30")
    expect(page.locator("#cost-1")).to_contain_text("Costs ε")
    expect(page.locator("#total")).not_to_contain_text("not finished")
    expect(page.locator("#go")).to_be_enabled()
    ask(page, "top")
    unfold(page, 0)
    page.get_by_label("question 1", exact=True).get_by_label("Only rows where").fill("agee > 3")
    expect(page.locator('[data-error="queries.0.where"]')).to_contain_text("did you mean 'age'")
    expect(page.locator("#cost-2")).to_contain_text("Not finished")
    for _ in range(3):
        page.get_by_role("button", name="Remove question 1").click()
    many_tables(page, album, tmp_path)


def many_tables(page: Page, album: Path | None, folder: Path) -> None:
    """A question of several tables: what it would be worth, its own keys, its tables, its files."""
    declare_values(page, "ward", "surgery, medicine, maternity, children")
    declare_range(page, "age", 0, 120)
    page.get_by_label("bins of age").fill("0, 18, 65, 120")
    ask(page, "marginals")
    question = page.get_by_label("question 1", exact=True)
    expect(page.locator("#cost-0")).to_contain_text("Not finished")
    question.get_by_text("More about this question").click()
    question.get_by_label("Only these tables").fill("ward, years; total")
    expect(page.locator('[data-error="queries.0.sets"]')).to_contain_text("years")
    question.get_by_label("Ranges, for").fill("age: 0..65, 18..120")
    question.get_by_label("Only these tables").fill("ward; ward, ranges(age)")
    expect(page.locator("#estimate-0")).to_contain_text("2 tables: the standard error of a cell")
    asked = cast("list[dict[str, object]]", kept(page, folder)["queries"])
    assert asked[0]["ranges"] == {"age": [[0, 65], [18, 120]]}
    question.get_by_label("Ranges, for").fill("")
    question.get_by_label("Only these tables").fill("ward; ward, age; total")
    question.get_by_label("Which error to make small").select_option("worst")
    expect(page.locator("#estimate-0")).to_contain_text("3 tables: the standard error of a cell")
    go_to(page, "price")
    page.locator("#estimate-0 summary").click()
    estimate = page.locator("#estimate-0 tbody tr")
    expect(page.get_by_label("how exact each table will be").locator("tbody tr")).to_have_count(3)
    expect(estimate.nth(1)).to_contain_text("ward, age")
    expect(page.get_by_label("what will be measured")).to_contain_text("ε =")
    shoot(page, album, "tables-before")
    asked = cast("list[dict[str, object]]", kept(page, folder)["queries"])
    assert asked[0]["sets"] == [["ward"], ["ward", "age"], []] and asked[0]["goal"] == "worst"
    release(page)
    answer = page.locator("#answers .answer")
    expect(answer).to_contain_text("The totals agree: each of the 3 tables adds up to")
    expect(answer.locator("details[open]")).to_have_count(3)
    heat = answer.locator("table.heat")
    expect(heat.locator("tbody tr")).to_have_count(5)
    expect(heat.locator("th[scope=col]")).to_have_count(4)
    unbiased = heat.locator("tbody td").all_inner_texts()
    expect(answer.locator("details").first).to_contain_text("±")
    shoot(page, album, "tables-after")
    expect(answer.locator("details").nth(1)).to_contain_text("for each cell")
    answer.get_by_label("for all cells of a table at once").check()
    expect(answer.locator("details").nth(1)).to_contain_text("for all 20 cells at once")
    answer.get_by_label("whole numbers (biased)").check()
    expect(answer.locator("details").first).to_contain_text("biased, and without margins")
    whole = [int(text.replace(",", "")) for text in heat.locator("tbody td").all_inner_texts()]
    lines = (
        saved(page, "Download ward, age as CSV", folder).read_text(encoding="utf-8").splitlines()
    )
    assert lines[0] == '"ward","age","value","low","high","all_low","all_high","whole","noisy"'
    numbers = [line.split(",") for line in lines[1:]]
    assert [int(row[7]) for row in numbers] == whole
    assert [row[8] == "true" for row in numbers] == [text.startswith("*") for text in unbiased]
    assert all(
        float(text.replace(",", "").strip("*")) == pytest.approx(float(row[2]), abs=1)
        for row, text in zip(numbers, unbiased, strict=True)
    )
    every = parquet.read_table(saved(page, "Download marginals as Parquet", folder))
    assert every.num_rows == 5 + 20 + 1
    page.evaluate(NINETY_ONE)
    listed = page.locator(".listed details")
    expect(listed).to_have_count(91)
    expect(page.locator(".listed table")).to_have_count(0)
    for number in (0, 90):  # one is open at a time, and no other is drawn
        listed.nth(number).locator("summary").click()
        expect(page.locator(".listed details[open]")).to_have_count(1)
        expect(page.locator(".listed table")).to_have_count(1)
    expect(page.locator(".listed .heat tbody td")).to_have_count(600)
    page.get_by_label("Find a table of big").fill("b7, a")
    expect(page.locator(".listed details:visible")).to_have_count(11)  # b7, b70, …


NINETY_ONE = """async () => {
  const { tables } = await import("/static/tables.js");
  const labels = [[...Array(40).keys()], [...Array(15).keys()]];
  const row = ["t", "c", 7, 5, 9, 4, 10, 7];
  const columns = ["table", "cell", "value", "low", "high", "all_low", "all_high", "whole"];
  const rows = Array(600).fill(row);
  const answer = { title: "big", columns, agreement: "", rows, noisy: [], tables: [] };
  for (let number = 0; number < 91; number += 1) {
    answer.tables.push({ title: `a, b${number}`, keys: ["a", "b"], labels,
      start: 0, cells: 600, decimals: 0, margins: ["2", "3"], noisy: 0 });
  }
  const shown = tables(answer, 7, () => "").filter(Boolean);
  document.getElementById("answers").replaceChildren(...shown);
}"""


def check_words(page: Page) -> None:
    """Whatever this page can send and a route refuses, in the page's words."""
    words = page.evaluate(
        """async (errors) => {
          const { inPageWords } = await import("/static/words.js");
          return errors.map((error) => inPageWords(error, [2, 5]));
        }""",
        SAID_BY_ROUTES,
    )
    assert words == SHOWN_ON_THE_PAGE
    most = page.evaluate(
        """async () => {
          const { atMost } = await import("/static/dom.js");
          return [60 / 41, 1.5, 10 * 1.1, 69.2307, "inf"].map((value) => atMost(value));
        }"""
    )
    assert most == ["1.464", "1.5", "11", "69.24", "∞"]  # up, but for what floats round


SAID_BY_ROUTES = [
    {"field": "queries.1.by", "message": "by is missing"},
    {
        "field": "queries.0.max_rows_per_group",
        "message": "queries.0.max_rows_per_group must be a whole number, not a text",
    },
    {"field": "queries.0", "message": "there is no column 'x'; see step 3"},
    {"field": "domains.x", "message": "edges must be at least two numbers, not [3]"},
    {"field": "target.posterior", "message": "posterior must be above the largest prior, 0.7"},
    {"field": "target.delta", "message": "delta must be below 1, not 2"},
    {"field": None, "message": "The server is busy"},
    {
        "field": "budget.share",
        "hint": "write 0.015 for 1.5%",
        "message": "share must be above 0 and at most 1, not 3/2; write 0.015 for 1.5%",
    },
    {
        "field": "budget",
        "message": "the rows have a budget; say --continues may to go on under that budget",
    },
]
SHOWN_ON_THE_PAGE = [
    {"field": "queries.5.by", "message": "What to group by is missing."},
    {"field": "queries.2.max_rows_per_group",
     "message": "Rows of a person that count in a group must be a whole number, not a text."},
    {"field": "queries.2", "message": "There is no column 'x'; see step 3."},
    {"field": "domains.x", "message": "Edges must be at least two numbers, not [3]."},
    {"field": "target.posterior",
     "message": "How sure they may become must be above the largest prior, 70%."},
    {"field": "target.delta", "message": "The probability δ must be below 1, not 2."},
    {"field": None, "message": "The server is busy."},
    {"field": "budget.share",
     "message": "The share of the budget must be above 0% and at most 100%, not 150%."},
    {"field": "budget", "message": "The rows have a budget; say under Release that these are the "
     "people of “may”."},
]  # fmt: skip
