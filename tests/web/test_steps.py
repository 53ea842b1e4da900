"""The guide of the page, step by step: columns in groups, both directions, the look before it pays,
whose budget it is, stored answers; and what axe says of every view.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from playwright.sync_api import Page, expect

from web_page import (
    ask,
    axe_at_widths,
    choose,
    declare_range,
    declare_values,
    edit,
    go_to,
    load,
    release,
    saved,
    shoot,
)
from web_server import SCENARIO, problem, program, served
from whosin import Epsilon, Plan, calibrate
from whosin.app.web.access import Settings, add_user
from whosin.app.web.guide_routes import spell_promise
from whosin.calibration import read_plan
from whosin.ledger import Cost, Ledger, Spend
from whosin.ledger.registration import Registration
from whosin.release.scenario import load_scenario
from whosin.report.evidence import PACK_FILES
from whosin.report.summary import promise_sentence
from whosin.scenario_model import SIGNED_KEYS, AdversarySection, TargetSection

expect.set_options(timeout=120_000)  # a busy machine is no reason to fail
WHOLE_EDITOR = """() => {
  const [box, row] = [".column-box", ".editor"].map((each) =>
    document.querySelector(each).getBoundingClientRect());
  return row.top >= box.top && row.bottom <= box.bottom && row.right <= box.right + 1;
}"""
WARDS = "surgery, medicine, maternity, children"
Opened = Callable[..., Page]
Serving = Callable[[Settings], str]


@pytest.fixture
def hospital(tmp_path: Path) -> Settings:
    return served(tmp_path / "data")


def write_survey(folder: Path) -> None:
    """A table of 46 columns: a person, regions with long names, and 44 answers."""
    names = ["person", "region", *(f"item_{number:02d}" for number in range(44))]
    regions = ("Northern Highlands and Islands", "South")
    rows = (
        [f"p{number}", regions[number % 2], *(str(1 + (number * item) % 7) for item in range(44))]
        for number in range(60)
    )
    lines = "\n".join(",".join(row) for row in (names, *rows))
    (folder / "survey.csv").write_text(lines + "\n", encoding="utf-8")


def test_columns_are_filtered_and_set_in_groups(
    hospital: Settings, opened: Opened, serving: Serving, album: Path | None
) -> None:
    write_survey(hospital.folder)
    page = opened(serving(hospital))
    choose(page, "survey.csv", "person")
    expect(page.locator("#columns tr")).to_have_count(45)
    edit(page, "item_43")  # all of the last editor shows, inside its box
    assert page.evaluate(WHOLE_EDITOR)
    height = page.evaluate("() => document.documentElement.scrollHeight")
    assert height < 1.2 * 860, "46 columns fit about a screen"
    page.get_by_label("Done with item_43").click()
    expect(page.locator("#columns tr").nth(0)).to_contain_text("values")
    expect(page.locator("#columns tr").nth(1)).to_contain_text("not declared")
    page.get_by_label("Filter the columns").fill("item_4")
    expect(page.locator("#columns tr")).to_have_count(4)
    page.get_by_label("Choose all columns that are listed").check()
    page.get_by_role("button", name="Give all the same domain").click()
    page.get_by_label("What the chosen columns may hold").select_option("numbers")
    page.get_by_label("lower end of the chosen columns").fill("20")
    page.get_by_label("upper end of the chosen columns").fill("9")
    expect(page.locator('[data-error="columns"]')).to_contain_text("before it begins (20)")
    page.get_by_label("lower end of the chosen columns").fill("1")
    page.get_by_label("upper end of the chosen columns").fill("7")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#column-count")).to_contain_text("4 of 45 declared")
    expect(page.locator("#columns")).to_contain_text("1 to 7")
    page.get_by_label("Choose item_43").check()
    page.get_by_role("button", name="Leave them out").click()
    expect(page.locator("#column-count")).to_contain_text("3 of 45 declared")
    page.get_by_label("Filter the columns").fill("region")
    page.get_by_label("Choose region").check()
    page.get_by_role("button", name="Look up from the rows").click()
    page.locator("#ask-no").click()
    expect(page.locator("#column-count")).to_contain_text("3 of 45 declared")
    page.get_by_role("button", name="Look up from the rows").click()
    page.locator("#ask-yes").click()
    expect(page.locator("#columns")).to_contain_text("from the rows")
    shoot(page, album, "columns")
    ask(page, "histogram")
    page.locator("#query-0-column").select_option("region")
    expect(page.locator("#cost-0")).to_contain_text("Costs ε")
    expect(page.get_by_role("button", name="Save the scenario")).to_be_enabled()
    text = saved(page, "Save the scenario", hospital.folder).read_text(encoding="utf-8")
    assert "from_rows = true" in text and "item_43" not in text
    go_to(page, "release")
    page.locator("#go").click()
    expect(page.locator("#ask")).to_contain_text("as the report will say: what may be in region")
    page.locator("#ask-yes").click()
    expect(page.locator("#answers svg")).to_be_visible()
    labels = page.locator("#answers svg .label")
    assert "".join(labels.all_text_contents()).startswith("Northern Highlands and Islands")
    whole = "labels => labels.every((label) => label.getBBox().x >= 0)"  # not cut by the edge
    assert labels.evaluate_all(whole)


def test_the_form_survives_a_reload(hospital: Settings, opened: Opened, serving: Serving) -> None:
    url = serving(hospital)
    page = opened(url)
    choose(page, "hospital.parquet", "patient")
    declare_values(page, "ward", "surgery")
    page.get_by_label("Rows of a person that count").fill("3")
    go_to(page, "promise")
    page.locator("#posterior-text").fill("70")
    ask(page)
    page.locator("#query-0-name").fill("patients")
    ask(page, "mean")  # not finished: no column of numbers is declared
    expect(page.locator("#link-questions")).to_contain_text("1 not finished")
    expect(page.locator("#cost-0")).to_contain_text("Costs ε")
    page.reload()
    expect(page.locator("#query-0-name")).to_have_value("patients")
    expect(page.locator("#step-questions")).to_be_visible()
    expect(page.locator("#link-questions")).to_have_attribute("aria-current", "step")
    expect(page.locator("#link-questions")).to_contain_text("1 not finished")
    expect(page.locator("#posterior-text")).to_have_value("70")
    expect(page.locator("#max_rows_per_group")).to_have_value("3")
    expect(page.locator("#link-people")).to_contain_text("1 column declared")
    kept = page.evaluate("() => JSON.stringify(localStorage)")
    assert "answers" not in kept and "token" not in kept
    page.get_by_role("button", name="Start over").click()
    page.locator("#ask-yes").click()
    expect(page.locator("#step-data")).to_be_visible()
    expect(page.locator("#source")).to_have_value("")
    expect(page.locator("#posterior-text")).to_have_value("60")
    assert not Path(hospital.ledger).exists()


def test_another_table_takes_over_what_fits(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    """Nothing that was said is dropped or exchanged without a word, and new files are seen."""
    rows = "person,area,pay\n" + "".join(f'p{n},"north, far",{n}\n' for n in range(9))
    for name in ("june", "july"):
        (hospital.folder / f"{name}.csv").write_text(rows, encoding="utf-8")
    page = opened(serving(hospital))
    choose(page, "june.csv", "person")
    declare_values(page, "area", 'south\n"north, far"')  # as pasted; a value with a comma
    expect(page.locator("#columns")).to_contain_text('south, "north, far"')
    declare_range(page, "pay", 0, 9)
    ask(page, "mean")
    page.get_by_label("question 1", exact=True).get_by_label("area").check()
    ask(page, "histogram")
    expect(page.locator("#title-1")).to_have_text("Number of people by area")
    go_to(page, "data")
    (hospital.folder / "wages.csv").write_text("who,pay\np1,3\n", encoding="utf-8")
    page.evaluate("() => window.dispatchEvent(new Event('focus'))")
    source = page.get_by_label("A table in the served folder")
    source.select_option("wages.csv")
    expect(page.locator("#table-words")).to_contain_text("It has no area.")
    expect(page.locator("#link-questions")).to_contain_text("2 not finished")
    page.get_by_label("Whose row is it?").evaluate("unit => { unit.value = 'who'; }")
    page.get_by_label("Whose row is it?").dispatch_event("change")
    go_to(page, "questions")
    expect(page.locator("#open-0")).to_contain_text("there is no area in this table")
    expect(page.locator("#title-0")).to_have_text("Mean of pay by area")
    go_to(page, "data")
    source.select_option("")
    source.select_option("july.csv")
    kept = "Kept from wages.csv: what 1 column may hold, 2 questions."
    expect(page.locator("#table-words")).to_contain_text(kept)
    source.select_option("june.csv")
    expect(page.locator("#table-words")).to_contain_text("Kept from july.csv: ")
    go_to(page, "people")
    page.get_by_label("Whose row is it?").select_option("person")
    declare_values(page, "area", 'south, "north, far"')
    page.get_by_label("What pay may hold").or_(page.get_by_label("Edit pay")).first.click()
    page.get_by_label("What pay may hold").select_option("none")
    expect(page.locator("#link-questions")).to_contain_text("1 not finished")  # not another column
    expect(page.locator("#open-0")).to_contain_text("between which numbers pay is")
    page.get_by_label("What pay may hold").select_option("numbers")
    expect(page.locator("#link-questions")).to_contain_text("2 questions")
    expect(page.get_by_role("button", name="Save the scenario")).to_be_enabled()
    text = saved(page, "Save the scenario", hospital.folder).read_text(encoding="utf-8")
    assert tomllib.loads(text)["domains"]["area"] == ["south", "north, far"]


def test_other_columns_are_recorded_where_somebody_says_so(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    page = opened(serving(hospital))
    choose(page, "hospital.parquet", "patient")
    ask(page)
    go_to(page, "price")
    page.get_by_label("Share of the budget").fill("25")
    release(page, look=True)
    expect(page.locator("#answers .answer")).to_have_count(1)
    declare_values(page, "ward", WARDS)
    ask(page, "histogram")
    go_to(page, "release")
    expect(page.locator("#whose")).to_contain_text("registered with no domain for 'ward'")
    expect(page.locator("#new-people")).to_be_hidden()
    expect(page.locator("#go")).to_be_disabled()
    page.locator('[name="whose"][value="continues"]').check()
    expect(page.locator("#go-hint")).to_be_empty()
    release(page)
    expect(page.locator("#answers .answer")).to_have_count(2)
    with Ledger(hospital.ledger) as ledger:
        assert ledger.datasets() == ["hospital"]
        assert "amended" in [entry.kind for entry in ledger.history("hospital")]


def test_by_keyboard_alone(hospital: Settings, opened: Opened, serving: Serving) -> None:
    page = opened(serving(hospital))
    expect(page.locator("#link-promise")).to_contain_text("0.4054")
    expect(page.locator("#link-promise .number")).to_have_text("3")  # no tick: nobody was there
    keyboard = page.keyboard
    press_to(page, "source")
    keyboard.type("hosp")
    expect(page.locator("#table-words")).to_contain_text("columns")
    follow(page, "people")
    press_to(page, "privacy_unit")
    keyboard.type("pat")
    expect(page.locator("#privacy_unit")).to_have_value("patient")
    follow(page, "promise")
    press_to(page, "high")
    for _ in range(20):
        keyboard.press("ArrowLeft")
    expect(page.locator("#high-text")).to_have_value("30")
    expect(page.locator("#link-promise")).to_contain_text("1.252")
    expect(page.locator("#link-promise .number")).to_have_text("✓")
    follow(page, "questions")
    press_to(page, "add")
    keyboard.press("Enter")
    expect(page.locator("#query-0-name")).to_be_focused()
    keyboard.type("patients")
    follow(page, "price")
    expect(page.locator("#total")).to_contain_text("In all ε")
    follow(page, "release")
    expect(page.locator("#go")).to_be_enabled()
    press_to(page, "go")
    keyboard.press("Enter")
    expect(page.locator("#ask-no")).to_be_focused()
    keyboard.press("Escape")
    expect(page.locator("#ask")).to_be_hidden()
    assert not Path(hospital.ledger).exists()
    keyboard.press("Enter")
    expect(page.locator("#ask-no")).to_be_focused()
    keyboard.press("Shift+Tab")
    keyboard.press("Enter")
    expect(page.locator("#results-title")).to_be_focused()
    expect(page.locator("#answers")).to_contain_text("patients")
    page.go_back()
    expect(page.locator("#step-release")).to_be_visible()


def press_to(page: Page, target: str, most: int = 80) -> None:
    """Tab until an element has the focus, which must then show."""
    for _ in range(most):
        page.keyboard.press("Tab")
        focused = page.evaluate("() => document.activeElement.id")
        outline = page.evaluate(
            "() => { const at = document.activeElement; "
            "const around = at.closest('.choices label') ?? at; "
            "return at === document.body || at.matches('svg *') || "
            "getComputedStyle(around).outlineStyle !== 'none'; }"
        )
        assert outline, f"the focus on {focused} cannot be seen"
        if focused == target:
            return
    raise AssertionError(f"{target} cannot be reached by Tab")


def follow(page: Page, step: str) -> None:
    """The link of a step, by keyboard; its heading then has the focus."""
    press_to(page, f"link-{step}", 120)
    page.keyboard.press("Enter")
    expect(page.locator(f"#step-{step} h2")).to_be_focused()


def test_a_misspelt_category_stops_before_it_pays(
    hospital: Settings, opened: Opened, serving: Serving, album: Path | None
) -> None:
    page = opened(serving(hospital))
    choose(page, "hospital.parquet", "patient")
    declare_values(page, "ward", "Surgery, medicine, maternity, children")
    ask(page, "histogram")
    expect(page.locator("#cost-0")).to_contain_text("Costs ε")
    go_to(page, "release")
    page.locator("#go").click()
    found = page.locator("#look-found")
    expect(found).to_contain_text("Stopped before anything was spent")
    expect(found).to_contain_text("because of column ward")
    expect(found).to_contain_text("'Surgery'")
    assert axe_at_widths(page) == []
    expect(page.locator("#ask")).to_be_hidden()
    shoot(page, album, "stopped-by-the-look")
    assert not Path(hospital.ledger).exists()
    declare_values(page, "ward", WARDS)
    expect(found).to_be_empty()
    keep_half_for_later(page)
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 1


def keep_half_for_later(page: Page) -> None:
    """What the look found, what stays, and what was paid for is said before it is paid."""
    go_to(page, "release")
    page.locator("#go").click()
    question = page.locator("#ask")
    expect(question).to_contain_text("“Groups a person counts in” (1) leaves out groups of")
    expect(question).to_contain_text("what may be in ward")
    expect(question).to_contain_text("Nothing stays for later questions")
    page.locator("#ask-other").click()
    expect(page.locator("#share")).to_have_value("50")
    expect(page.locator("#share-words")).to_contain_text("ε = 0.202732 stays")
    release(page, look=True)
    expect(page.locator("#answers .answer")).to_have_count(1)
    ask(page)
    go_to(page, "price")
    expect(page.locator("#cautions-0")).to_contain_text("asked and paid for before")
    expect(page.locator("#cautions-1")).to_be_empty()
    page.locator("#share").fill("100")
    go_to(page, "release")
    expect(page.locator("#go-hint")).to_contain_text("needs ε = 0.405465, and ε = 0.202732 is left")
    expect(page.locator("#share-words")).to_contain_text("does not fit")
    ways = page.locator("#refused")
    expect(ways.get_by_role("link", name="Open the stored answers")).to_be_visible()
    ways.get_by_role("button", name="Leave out the question").click()
    expect(page.locator(".query")).to_have_count(1)
    go_to(page, "release")
    ways.get_by_role("button", name="of the promise").click()
    go_to(page, "release")
    expect(page.locator("#go")).to_be_enabled()


def test_both_directions(hospital: Settings, opened: Opened, serving: Serving) -> None:
    page = opened(serving(hospital), quiet=False)
    go_to(page, "promise")
    words = page.locator("#within-words")
    page.locator("#within").fill("20")
    expect(words).to_contain_text("ε = 0.1461")
    expect(words).to_contain_text("53.7% sure")
    expect(words).to_contain_text("What you promise allows it.")
    page.locator("#within").fill("5")
    expect(words).to_contain_text("does not allow it")
    page.locator("#posterior-text").fill("65")
    expect(words).to_contain_text("What you promise allows it.")
    choose(page, "hospital.parquet", "patient")
    go_to(page, "promise")
    words.get_by_role("button", name="Ask for ± 5").click()  # and a question takes just that
    expect(page.locator("#query-0-within")).to_be_focused()
    expect(page.locator("#query-0-within")).to_have_value("5")
    expect(page.locator("#cost-0")).to_contain_text("95% within ± 5")
    go_to(page, "promise")
    page.locator("#within").fill("much")
    expect(page.locator('[data-error="within"]')).not_to_be_empty()
    page.locator("#figures .term").first.click()
    expect(page.locator("#glossary")).to_contain_text("factor of at most e^ε")
    page.keyboard.press("Escape")
    expect(page.locator("#figures .term").first).to_be_focused()


def test_whose_budget_it_is(
    hospital: Settings, opened: Opened, serving: Serving, tmp_path: Path
) -> None:
    """Next month's file is paid from the same budget, or is about new people by somebody's word."""
    served(tmp_path / "more", 300)
    for name in ("february", "march"):
        source = tmp_path / "more" / "hospital.parquet"
        (hospital.folder / f"{name}.parquet").write_bytes(source.read_bytes())
    url = serving(hospital)
    page = opened(url, quiet=False)
    load(page)
    release(page)
    expect(page.locator("#answers .answer")).to_have_count(4)
    choose(page, "february.parquet", "patient")
    expect(page.locator("#link-questions")).to_contain_text("4 questions")  # as they were
    go_to(page, "price")
    expect(page.locator("#total")).to_contain_text("Release asks whose budget pays")
    expect(page.locator("#total")).not_to_contain_text("becomes its whole budget")
    expect(page.locator("#share-words")).to_contain_text("whose budget pays")
    go_to(page, "release")
    for key in ("period", "population"):  # they were those of the other file
        expect(page.locator(f"#about-{key}")).to_have_value("")
    expect(page.locator("#about-controller")).not_to_have_value("")
    expect(page.locator("#whose")).to_contain_text("hospital")
    expect(page.locator("#go")).to_be_disabled()
    page.locator('[name="whose"][value="continues"]').check()
    expect(page.locator("#go-hint")).to_contain_text("The ledger would refuse this")  # all is spent
    page.locator('[name="whose"][value="new"]').check()
    expect(page.locator("#together")).to_contain_text(
        "the answers after this release allow ε = 0.8"
    )
    assert axe_at_widths(page) == []
    release(page)
    expect(page.locator("#step-report")).to_be_visible()
    with Ledger(hospital.ledger) as ledger:
        said = ledger.budget_state("february").registered
        assert said is not None and list(said.registration.apart_from) == ["hospital"]
    page.get_by_role("link", name="Ledger").click()
    expect(page.get_by_label("february", exact=True)).to_contain_text("nobody is in hospital too")
    together = page.get_by_label("What these datasets allow together")
    expect(together).to_contain_text("february and hospital have the same privacy unit")
    together.get_by_role("button", name="% sure").last.click()
    expect(page.locator("#glossary")).to_contain_text("The largest belief")
    page.keyboard.press("Escape")
    assert axe_at_widths(page) == []
    with program(url) as client:  # the same by programs
        march = SCENARIO | {"table": SCENARIO["table"] | {"source": "march.parquet"}}
        asked = march | {"queries": [{"kind": "count"}], "budget": {"share": "1/100"}}
        refused = client.post("/api/release", json={"scenario": asked})
        problem(refused, 409, "continues")
        estimate = client.post("/api/estimate", json=asked).json()
        assert estimate["lookalikes"] == ["february", "hospital"] and estimate["refusal"]
        unknown = client.post("/api/release", json={"scenario": asked | {"continues": "april"}})
        problem(unknown, 409, "continues")
        with Ledger(hospital.ledger) as ledger:
            assert set(ledger.datasets()) == {"february", "hospital"}
        body = {"scenario": asked | {"new_people": True}, "request": "asked-once"}
        first = client.post("/api/release", json=body)
        assert client.post("/api/release", json=body).json() == first.json()  # a retry


def test_what_is_typed_in_per_cent_is_refused_in_per_cent(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    page = opened(serving(hospital), quiet=False)  # refused on purpose
    load(page)
    go_to(page, "price")
    page.get_by_label("Share of the budget").fill("150")
    said = page.locator('[data-error="budget.share"]')
    expect(said).to_have_text(
        "The share of the budget must be above 0% and at most 100%, not 150%."
    )
    go_to(page, "promise")
    page.locator("#low-text").fill("abc")
    said = page.locator('[data-error="adversary.prior"]')
    expect(said).to_have_text("What they believe already must be a finite number, not 'abc'.")


def test_numbers_are_declared_however_the_file_spells_them(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    """A text file's 1.0 is the declared 1."""
    rows = "".join(f"{n % 3}.0,{20 + n}\n" for n in range(60))
    (hospital.folder / "survey.csv").write_text(f"religious,age\n{rows}", encoding="utf-8")
    page = opened(serving(hospital), quiet=False)  # a column is misspelt on purpose
    choose(page, "survey.csv", "each row is one person")
    declare_values(page, "religious", "0, 1, 2")
    ask(page, "histogram")
    go_to(page, "questions")
    page.locator("#query-0-where").fill("agee > 20")
    expect(page.locator('[data-error="queries.0.where"]')).to_contain_text("did you mean “age”")
    page.locator("#query-0-where").fill("")
    release(page, look=True)
    expect(page.locator("#answers .answer h3")).to_have_text("Number of people by religious")


def test_running_totals_are_asked_by_periods(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    days = "".join(f"p{n},{'xy'[n % 2]},2024-0{1 + n % 6}-11\n" for n in range(60))
    (hospital.folder / "days.csv").write_text(f"who,kind,visit\n{days}", "utf-8")
    page = opened(serving(hospital), quiet=False)  # Gaussian noise is chosen later
    choose(page, "days.csv", "who")
    declare_values(page, "kind", "x, y")
    ask(page, "running")
    expect(page.locator("#title-0")).to_have_text("Running number of people")
    expect(page.locator("#open-0")).to_contain_text("declare a column of dates under People")
    edit(page, "visit")
    page.get_by_label("What visit may hold").select_option("dates")
    page.get_by_label("first day of visit").fill("2024-01-01")
    page.get_by_label("last day of visit").fill("2024-06-30")
    go_to(page, "questions")
    column = page.get_by_label("question 1", exact=True).get_by_label("Periods", exact=True)
    listed = [each.inner_text() for each in column.locator("option").all()]
    assert listed[0] == "year(visit)" and "kind" in listed and "who" not in listed
    column.select_option("month(visit)")
    more = page.get_by_text("More about this question")
    more.click()
    for words in ("The last period", "Periods a person counts in", "Periods between"):
        expect(page.locator(".query")).to_contain_text(words)
    expect(page.locator(".query")).not_to_contain_text("privacy unit")
    expect(page.locator("#step-questions")).not_to_contain_text("[")


def test_a_correction_goes_on_with_the_same_budget(
    hospital: Settings, serving: Serving, tmp_path: Path
) -> None:
    served(tmp_path / "more", 300)
    source = tmp_path / "more" / "hospital.parquet"
    (hospital.folder / "corrected.parquet").write_bytes(source.read_bytes())
    first = SCENARIO | {"queries": [{"kind": "count"}], "budget": {"share": "1/4"}}
    corrected = first | {"table": SCENARIO["table"] | {"source": "corrected.parquet"}}
    corrected["continues"] = "hospital"
    with program(serving(hospital)) as client:
        made = client.post("/api/release", json={"scenario": first}).json()
        assert client.post("/api/release", json={"scenario": first}).json() == made
        body: dict[str, Any] = {"scenario": corrected}
        second = client.post("/api/release", json=body)
        assert second.status_code == 200, second.text
        assert second.json()["request"] != made["request"]
        assert client.post("/api/release", json=body).json() == second.json()
        text = client.post("/api/scenario/toml", json=corrected).text
        assert 'dataset = "hospital"' in text
        report = client.post(
            "/api/release/report", json=body | {"request": second.json()["request"]}
        )
        assert report.status_code == 200
        paid = client.get("/api/ledger/requests", params={"dataset": "hospital"}).json()
        assert [each["table"] for each in paid["requests"]] == ["corrected", "hospital"]
        # A pack is of the dataset that paid, and of no other as long as nobody says which it is.
        signed = corrected | {"about": dict.fromkeys(SIGNED_KEYS, "said")}
        pack = client.post("/api/evidence", json=signed)
        assert pack.status_code == 200, pack.text
        found = json.loads(ZipFile(BytesIO(pack.content)).read("evidence.json"))
        assert found["ledger"]["dataset"] == "hospital" and len(found["releases"]) == 2
        assert "number 2 of 2" in found["publications"]["releases so far"]
        signed.pop("continues")
        problem(client.post("/api/evidence", json=signed), 409, "continues")
        # The file before, asked again, shows what was paid for it.
        assert client.post("/api/estimate", json=first).json()["stored"] == made["request"]
        named = first | {"queries": [{"kind": "count", "name": "people", "by": []}]}
        assert client.post("/api/estimate", json=named).json()["stored"] == made["request"]
        again = client.post("/api/release", json={"scenario": first})
        assert again.status_code == 200, again.text
        assert again.json()["answers"] == made["answers"]
        other = first | {"queries": [{"kind": "rows"}]}
        asked = client.post("/api/estimate", json=other).json()
        assert asked["stored"] is None and asked["refusal"] and not asked["lacks_budget"]
        # A further question beside one that was paid for, and one that would say nothing.
        more = corrected | {"queries": [{"kind": "count", "name": "n"}, {"kind": "rows"}]}
        more["budget"] = {"share": "3/4"}
        estimate = client.post("/api/estimate", json=more).json()
        assert estimate["paid"] == [second.json()["request"], None]
        assert estimate["lacks_budget"] and estimate["refusal"]
        assert estimate["today_percent"] == 50.0, "and not 49.9"
        few = corrected | {"table": corrected["table"] | {"people": 12}}
        body = {"scenario": few | {"queries": [{"kind": "mean", "column": "age"}]}}
        problem(client.post("/api/release", json=body), 409)
        with Ledger(hospital.ledger) as ledger:
            assert ledger.budget_state("hospital").debits == 2
        body["accept"] = True
        assert client.post("/api/release", json=body).status_code == 200
    with Ledger(hospital.ledger) as ledger:
        assert ledger.datasets() == ["hospital"] and ledger.budget_state("hospital").debits == 3
        assert "amended" in [entry.kind for entry in ledger.history("hospital")]


def test_whoever_releases_reads_the_promise_and_of_which_rows_answers_are(
    hospital: Settings, opened: Opened, serving: Serving, tmp_path: Path
) -> None:
    """A condition stood neither at the price, nor in the dialog, nor in files."""
    page = opened(serving(hospital))
    promise = promise_sentence(load_scenario(hospital.folder / "hospital.toml").plan)
    load(page)
    expect(page.locator("#prices")).to_contain_text("patients over 40 by age where age >= 40")
    go_to(page, "release")
    page.locator("#go").click()
    expect(page.locator("#ask-words")).to_contain_text(promise)
    expect(page.locator("#ask-words")).to_contain_text("patients over 40 by age where age >= 40: ε")
    page.locator("#ask-yes").click()
    older = page.locator("#answers .answer", has_text="patients over 40")
    expect(older.locator("h3")).to_contain_text("where age >= 40")
    older.locator("summary").click()
    expect(older).to_contain_text("Only rows where age >= 40 count")
    file = saved(page, "Download patients over 40 by age as CSV", tmp_path).read_text(
        encoding="utf-8"
    )
    assert '"age >= 40"' in file
    page.goto(f"{page.url.partition('#')[0]}#ledger")
    expect(page.locator("#datasets")).to_contain_text("where age >= 40")


def test_the_same_again_shows_the_stored_answers(
    hospital: Settings, opened: Opened, serving: Serving, album: Path | None
) -> None:
    url = serving(hospital)
    page = opened(url, quiet=False)  # a pack is refused on purpose
    load(page)
    go_to(page, "price")
    page.locator("#budget summary").click()
    page.get_by_label("Share of the budget").fill("40")
    expect(page.locator("#total")).to_contain_text("In all ε = 0.162186")
    release(page, look=True)
    answers = page.locator("#answers")
    expect(answers.locator(".answer")).to_have_count(4)
    shown = answers.inner_text()
    keep_papers(page, hospital.folder)
    page.reload()  # answers are not kept in the browser: the ledger has them
    expect(page.locator("#step-report")).to_be_visible()
    expect(answers.locator(".answer")).to_have_count(4)
    assert answers.inner_text() == shown
    assert saved(page, "HTML report", hospital.folder).stat().st_size > 1000
    go_to(page, "release")
    page.get_by_role("button", name="Show the stored answers").click()
    expect(page.locator("#step-report")).to_be_visible()
    said = page.locator("#paid-before")
    expect(said).to_have_text(re.compile(r"Paid for on 20\d\d-\S+ \d\d:\d\d; nothing more"))
    assert answers.inner_text() == shown
    go_to(page, "release")
    before = page.locator("#before-words")
    expect(before).to_contain_text("spends nothing")
    page.get_by_label("Ask anew").check()
    expect(before).not_to_contain_text("spends nothing")
    page.locator('[name="look"][value="skip"]').check()
    page.locator("#go").click()
    expect(page.locator("#ask")).to_contain_text("stays for later questions")
    page.locator("#ask-yes").click()
    expect(page.locator("#step-report")).to_be_visible()
    expect(answers.locator(".answer")).to_have_count(4)
    assert answers.inner_text() != shown
    expect(said).to_have_text("")
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 8
    page.get_by_role("link", name="Ledger").click()
    paid = page.get_by_label("paid requests of hospital").locator("tbody tr")
    expect(paid).to_have_count(2)
    paid.nth(1).get_by_role("button").click()
    stored = page.locator("#stored")
    expect(stored.locator(".answer")).to_have_count(4)
    expect(stored.get_by_role("button", name="Officer")).to_be_visible()
    assert stored.locator(".single").first.inner_text() in shown
    with page.expect_download() as waiting:
        stored.get_by_role("button", name="HTML report").click()
    assert "<script" not in Path(waiting.value.path()).read_text(encoding="utf-8")
    shoot(page, album, "opened-from-the-ledger")
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 8
    # With another table in the form, what it says of its people is not said of these.
    page.get_by_role("link", name="Release", exact=True).click()
    go_to(page, "data")
    page.locator("#source").select_option("")
    go_to(page, "release")
    page.locator("#about-controller").fill("somebody else")
    go_to(page, "report")
    pages = saved(page, "Officer’s two pages", hospital.folder).read_text(encoding="utf-8")
    assert "said of controller" in pages and "somebody else" not in pages


def keep_papers(page: Page, folder: Path) -> None:
    """The officer's two pages, and a pack of evidence once it is known who answers for it."""
    pages = saved(page, "Officer’s two pages", folder).read_text(encoding="utf-8")
    whole = saved(page, "HTML report", folder).read_text(encoding="utf-8")
    assert "singling out" in pages and len(pages) < len(whole)
    go_to(page, "release")
    page.locator("#about-controller").fill("")
    go_to(page, "report")
    page.get_by_role("button", name="Officer’s two pages").click()
    expect(page.locator("#ask")).to_contain_text("Who publishes")
    expect(page.locator("#ask-other")).to_be_visible()  # left open, if somebody wants it so
    page.locator("#ask-no").click()
    page.get_by_role("button", name="Evidence pack").click()
    expect(page.locator("#ask-other")).to_be_hidden()
    page.locator("#ask-yes").click()
    expect(page.locator("#about-controller")).to_be_focused()
    expect(page.locator('[data-error="about.controller"]')).not_to_be_empty()
    for key in SIGNED_KEYS:
        page.locator(f"#about-{key}").fill(f"said of {key}")
    go_to(page, "report")
    with ZipFile(saved(page, "Evidence pack", folder)) as pack:
        assert set(pack.namelist()) == set(PACK_FILES)
        found = json.loads(pack.read("evidence.json"))
    assert found["about"]["reasons"].startswith("One resident")  # as it was released
    assert "says: said of reasons" in found["about_later"]["reasons"]
    assert found["ledger"]["debits"] == 4
    assert [each["digest"] in pages for each in found["releases"]] == [True]
    expect(page.locator('[data-error="about.controller"]')).to_be_empty()


def test_an_analyst_gets_nothing_from_rows(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    """No guessed kinds, no domains, no look; what the ledger has registered, and their own."""
    write_survey(hospital.folder)
    tokens = {
        name: add_user(hospital.users, name, curator=chief)
        for name, chief in (("Ann", False), ("Ben", False), ("Chief", True))
    }
    url = serving(hospital)
    table = {"source": "survey.csv", "privacy_unit": "person"}
    domains = {"region": ["Northern Highlands and Islands", "South"]}
    asked = {
        **{key: SCENARIO[key] for key in ("adversary", "target")},
        "table": table,
        "domains": domains,
        "queries": [{"kind": "count", "by": ["region"]}],
        "budget": {"share": "1/10"},
    }

    def client(name: str) -> Any:
        return program(url, Authorization=f"Bearer {tokens[name]}")

    with client("Chief") as chief:
        made = chief.post("/api/release", json={"scenario": asked})
        assert made.status_code == 200, made.text
        kinds = chief.post("/api/draft", json={"source": "survey.csv"}).json()["columns"]
        assert {each["kind"] for each in kinds} == {"text", "values", "numbers"}
    with client("Ann") as ann:
        draft = ann.post("/api/draft", json={"source": "survey.csv"}).json()
        assert {each["kind"] for each in draft["columns"]} == {"text"}
        assert draft["registered"]["privacy_unit"] == "person"
        for path, body in (
            ("/api/draft/rows", {"source": "survey.csv"}),
            ("/api/preflight", asked),
            ("/api/inspect", {"table": table, "domains": domains}),
        ):
            assert ann.post(path, json=body).status_code == 403
        problem(ann.post("/api/estimate", json=asked | {"new_people": True}), 403, "continues")
        own = ann.post("/api/release", json={"scenario": asked})
        assert own.status_code == 200 and own.json()["request"] != made.json()["request"]
        assert ann.post("/api/release", json={"scenario": asked}).json() == own.json()
        requests = ann.get("/api/ledger/requests", params={"dataset": "survey"}).json()["requests"]
        assert [each["request"] for each in requests] == [own.json()["request"]]
    with client("Ben") as ben:
        others = {"dataset": "survey", "request": own.json()["request"]}
        problem(ben.get("/api/ledger/answers", params=others), 404, "request")
        problem(ben.get("/api/ledger/report", params=others), 404, "request")
    page = opened(url, quiet=False)
    page.get_by_label("Your token").fill(tokens["Ann"])
    page.get_by_role("button", name="Enter").click()
    go_to(page, "data")
    page.get_by_label("A table in the served folder").select_option("survey.csv")
    expect(page.locator("#table-words")).to_contain_text("It has a budget")
    expect(page.locator("#privacy_unit")).to_have_value("person")
    go_to(page, "people")
    expect(page.locator("#column-count")).to_contain_text("1 of 45 declared")
    page.get_by_label("Choose region").check()
    expect(page.locator("#group-rows")).to_be_hidden()
    expect(page.locator("#look-field")).to_be_hidden()
    ask(page)
    go_to(page, "price")
    page.locator("#budget summary").click()
    page.get_by_label("Share of the budget").fill("10")
    go_to(page, "release")
    expect(page.locator("#go")).to_be_enabled()
    expect(page.locator("#look-choice")).to_be_hidden()


def test_a_data_dictionary_fills_in(
    hospital: Settings, opened: Opened, serving: Serving, tmp_path: Path
) -> None:
    page = opened(serving(hospital), quiet=False)
    choose(page, "hospital.parquet", "patient")
    page.get_by_text("Fill in from a data dictionary").click()
    other = tmp_path / "other.csv"
    other.write_text("column,values\nheight,1|2\n", encoding="utf-8")
    page.locator("#dictionary").set_input_files(other)
    expect(page.locator('[data-error="dictionary"]')).to_contain_text("no column of this table")
    own = tmp_path / "dictionary.csv"
    text = "column,values,lower,upper\nward,surgery|medicine,,\nage,,0,120\n"
    own.write_text(text, encoding="utf-8")
    page.locator("#dictionary").set_input_files(own)
    expect(page.locator("#dictionary-status")).to_contain_text("2 of")
    expect(page.locator("#columns")).to_contain_text("surgery, medicine")
    edit(page, "age")
    expect(page.get_by_label("upper end of age")).to_have_value("120")
    page.get_by_label("upper end of age").fill("-9")
    expect(page.locator('[data-error="domains.age"]')).to_contain_text("before it begins (0)")
    expect(page.get_by_label("upper end of age")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("upper end of age").fill("120")
    see_what_makes_it_better(page)


def test_a_schedule_and_parts_stay_through_the_form(
    hospital: Settings, opened: Opened, serving: Serving, tmp_path: Path
) -> None:
    """The form dropped the parts, and the server knew no schedule."""
    (hospital.folder / "parts.csv").write_text("who,ward\n" + "a,north\nb,south\n" * 9)
    (hospital.folder / "parts.toml").write_text(
        "[target]\nepsilon = 1\n"
        '[table]\nsource = "parts.csv"\nprivacy_unit = "who"\npart = "least(ward)"\n'
        '[domains]\nward = ["north", "south"]\n'
        '[schedule]\nevery = "year"\nuntil = "2099"\n'
        '[[queries]]\nkind = "count"\npart = "north"\n'
    )
    url = serving(hospital)
    page = opened(url)
    load(page, "parts.toml")
    for _ in range(2):
        words = page.locator("#schedule-words")
        expect(words).to_contain_text("every year, until 2099. These questions spend the share of")
        expect(page.locator("#table-part")).to_have_value("least(ward)")
        expect(page.locator("#total")).to_contain_text("is new to the ledger")
        go_to(page, "release")
        expect(page.locator("#save-scenario")).to_be_enabled()
        made = tomllib.loads(saved(page, "Save the scenario", tmp_path).read_text())
        assert made["schedule"] == {"every": "year", "until": "2099"}
        assert (made["table"]["part"], made["queries"][0]["part"]) == ("least(ward)", "north")
        page.wait_for_timeout(300)
        page.reload()
    release(page)
    expect(page.locator("#answers .answer")).to_have_count(1)
    go_to(page, "price")
    page.get_by_role("button", name="Leave the schedule out").click()
    expect(page.locator("#schedule-words")).not_to_contain_text("every year")
    expect(page.locator("#schedule-words")).to_contain_text("the share of today’s period")


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_a_curator_keeps_shares_for_people(
    hospital: Settings, opened: Opened, serving: Serving, album: Path | None, size: str
) -> None:
    with Ledger(hospital.ledger) as ledger:
        ledger.register("visits", calibrate(Epsilon(1)))
    page = opened(serving(hospital), size, quiet=False)
    expect(page.locator("#step-data")).to_be_visible()
    page.get_by_role("link", name="Ledger", exact=True).click()
    page.get_by_text("Keep a share for some people").click()

    def keep(name: str, share: str, **more: str) -> None:
        page.get_by_label("Person, group or project").fill(name)
        page.get_by_label("Share of the budget, in %").fill(share)
        for label, text in more.items():
            page.get_by_label(label.replace("_", " ")).fill(text)
        page.get_by_role("button", name="Keep it").click()

    keep("lab", "25", Last_day="2099-12-31", Names_of_its_members="ann, eve")
    status = page.locator("#quotas-0 [role=status]")
    expect(status).to_have_text("25% of the budget is kept for lab.")
    expect(page.locator("#datasets")).to_contain_text("lab (ann, eve, until 2099-12-31)")
    expect(page.get_by_label("Person, group or project")).to_be_focused()
    keep("desk", "90")
    said = page.locator('[data-error="quota-0"]')
    expect(said).to_contain_text("would keep more than the 0.75 of the budget")
    keep("desk", "200")
    expect(said).to_be_empty()
    expect(page.locator('[data-error="quota-0.share"]')).to_contain_text("share must be")
    expect(page.get_by_label("Share of the budget, in %")).to_have_attribute("aria-invalid", "true")
    assert axe_at_widths(page) == []
    shoot(page, album, f"quotas-{size}")
    keep("desk", "50")
    expect(status).to_contain_text("kept for desk")
    page.get_by_label("Move the share to").select_option("lab")
    keep("desk", "12.5")
    expect(status).to_contain_text("moved from desk to lab")
    page.get_by_label("Person, group or project").fill("desk")
    page.get_by_role("button", name="Revoke this quota").click()
    page.locator("#ask-yes").click()
    expect(status).to_contain_text("desk is revoked")
    with Ledger(hospital.ledger) as ledger:
        quotas = ledger.budget_state("visits").accounts.quotas
    assert quotas["lab"].limit.epsilon == 375 * 10**9 and not quotas["desk"].members


def test_forty_parts_and_many_debits_have_their_places(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    about = Registration("who", part={"column": "region", "rule": "constant"})
    paid = {relation: Cost.pure("1/1024") for relation in ("replace", "add-remove")}
    with Ledger(hospital.ledger) as ledger:
        schedule = {"every": "month", "until": "2099-12"}
        ledger.register("visits", calibrate(Epsilon(512)), about, schedule=schedule)
        ledger.set_quota("visits", "lab", "1/4")
        for number in range(40):
            spend = Spend({"query": "count"}, paid, registration=about, part=f"region {number}")
            ledger.store(ledger.debit("visits", f"request-{number}/0", spend), 1)
    page = opened(serving(hospital), quiet=False)
    expect(page.locator("#step-data")).to_be_visible()
    page.get_by_role("link", name="Ledger", exact=True).click()
    dataset = page.get_by_label("visits", exact=True)
    dataset.get_by_role("button", name="History of visits").click()
    expect(dataset).to_contain_text("The chain of digests is intact")
    expect(dataset).to_contain_text("Spent by region, the 20 that cost most")
    expect(dataset.get_by_label("Spent by region").locator("li")).to_have_count(20)
    for name in ("paid requests of visits", "history of visits"):
        expect(dataset.get_by_label(name).locator("tbody tr").nth(39)).to_be_attached()
    height = page.evaluate("() => document.documentElement.scrollHeight")
    assert height < 2.5 * 860, "long lists scroll in their places"
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert axe_at_widths(page) == []


def see_what_makes_it_better(page: Page) -> None:
    """Suggestions change the form, and an answer that would say nothing stops the release."""
    for kind in ("count", "histogram"):
        ask(page, kind)
    page.locator("#query-1-column").select_option("ward")
    better = page.locator("#better")
    expect(better).to_contain_text("is inside “Number of people by ward”")
    expect(better).to_contain_text("instead of ± 15")
    go_to(page, "price")
    better.get_by_role("button", name="inside").click()
    expect(better).to_be_empty()
    expect(page.locator(".query")).to_have_count(1)
    ask(page, "mean")
    page.locator("#query-1-column").select_option("age")
    expect(page.locator("#estimate-1")).to_contain_text("By the rows in a group")
    go_to(page, "people")
    page.get_by_label("How many people are in it").fill("12")
    expect(page.locator("#estimate-1")).to_contain_text("this answer would say nothing")
    expect(page.locator("#estimate-0")).to_contain_text("At least 2 of the 2 groups are smaller")
    go_to(page, "promise")
    warning = page.locator("#size-note")
    expect(warning).to_contain_text("they may go from 50% to 69.3% sure")
    page.locator('[name="size"][value="yes"]').check()
    expect(warning).to_be_empty()
    page.locator('[name="size"][value="no"]').check()
    go_to(page, "release")
    expect(page.locator("#empty")).to_contain_text("whole declared range")
    page.locator("#go").click()
    expect(page.locator("#ask")).to_contain_text("whole declared range")
    page.locator("#ask-no").click()
    expect(page.locator("#answers .answer")).to_have_count(0)


def test_axe_reports_nothing(hospital: Settings, opened: Opened, serving: Serving) -> None:
    """On every view and step, before and after a release, and in dialogs."""
    url = serving(hospital)
    page = opened(url, quiet=False)
    found: dict[str, Any] = {}

    def check(name: str) -> None:
        if seen := axe_at_widths(page):
            found[name] = seen

    expect(page.locator("#step-data")).to_be_visible()
    check("empty")
    load(page)
    for step in ("data", "people", "promise", "questions", "price", "release", "report"):
        go_to(page, step)
        check(step)
        height = page.evaluate("() => document.documentElement.scrollHeight")
        assert height < 1.2 * 860, f"{step} fits about a screen"
    edit(page, "ward")
    page.get_by_label("Choose age").check()
    page.get_by_role("button", name="Give all the same domain").click()
    check("editors")
    page.locator("#open-glossary").click()
    check("glossary")
    page.keyboard.press("Escape")
    go_to(page, "release")
    page.locator("#go").click()
    expect(page.locator("#ask")).to_be_visible()
    check("question")
    page.locator("#ask-yes").click()
    expect(page.locator("#answers .answer")).to_have_count(4)
    check("released")
    for view, button, shown in (
        ("rules", "Check", "#findings table"),
        ("verify", "Verify", "#verdict table"),
        ("distortion", "Draw", "#curves svg"),
        ("ledger", "Open", "#stored .answer"),
        ("notions", None, "#map svg"),
    ):
        page.goto(f"{url}/#{view}")
        if button is not None:
            page.locator(f"#view-{view}").get_by_role("button", name=button).first.click()
        expect(page.locator(shown).first).to_be_visible()
        check(view)
    page.goto(f"{url}/api")
    expect(page.locator("h3", has_text="/api/estimate")).to_be_visible()
    check("api")
    assert found == {}, found


def log_in(page: Page, token: str) -> None:
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Enter").click()
    expect(page.locator("footer")).to_contain_text("in the name of")


def test_who_has_a_quota_is_told_what_it_leaves(
    hospital: Settings, opened: Opened, serving: Serving, album: Path | None
) -> None:
    """An analyst with a tenth of the budget once read that all the rest of it was left to her."""
    ann, cyd = (add_user(hospital.users, name, name == "cyd") for name in ("ann", "cyd"))
    url = serving(hospital)
    with program(url, Authorization=f"Bearer {cyd}") as client:
        first = SCENARIO | {"queries": [{"kind": "count"}], "budget": {"share": "1/4"}}
        made = client.post("/api/release", json={"scenario": first})
        assert made.status_code == 200, made.text
        quota = {"dataset": "hospital", "quota": "ann", "share": "1/10"}
        assert client.post("/api/ledger/quota", json=quota).status_code == 200
    page = opened(url, quiet=False)
    log_in(page, ann)
    choose(page, "hospital.parquet")
    ask(page)
    go_to(page, "price")
    total, words = page.locator("#total"), page.locator("#share-words")
    expect(total).to_contain_text("you can spend ε = 0.0405465 on these questions today")
    expect(page.locator('[data-error="budget"]')).to_contain_text("0.0405465 is left to you today")
    go_to(page, "release")
    expect(page.get_by_role("button", name="Spend 10% of the promise")).to_be_visible()
    go_to(page, "price")
    page.locator("#share").fill("50")  # more than hers, and less than there is
    expect(page.locator('[data-error="budget"]')).not_to_contain_text("share =")
    words.get_by_role("button", name="Spend 10% of the promise").click()
    expect(words).to_contain_text("Nothing stays of what you can spend on such questions today")
    page.locator("#share").fill("5")
    expect(words).to_contain_text(
        "ε = 0.0202732 stays of what you can spend on such questions today"
    )
    shoot(page, album, "quota")
    go_to(page, "release")
    page.locator("#go").click()
    expect(page.locator("#ask")).to_contain_text("ε = 0.0202732 stays of what you can spend")
    page.locator("#ask-no").click()


def test_a_server_that_opens_no_budgets_says_how_to_open_one(
    tmp_path: Path, opened: Opened, serving: Serving
) -> None:
    """And not, two lines above, that this promise becomes the whole budget of a new table."""
    page = opened(serving(served(tmp_path, 30, register=False)), quiet=False)
    expect(page.locator("#save-hint")).to_contain_text("Choose a table first")
    choose(page, "hospital.parquet", "patient")
    ask(page)
    expect(page.locator("#save-hint")).to_have_text("")
    expect(page.locator("#link-price")).to_contain_text("ε = 0.405465")  # nobody was there yet
    go_to(page, "price")
    expect(page.locator("#link-price")).to_contain_text("needs another look")
    said = page.locator('[data-error="budget"]')
    expect(said).to_contain_text("whosin ledger create ledger.db hospital --scenario scenario.toml")
    expect(page.locator("#total")).to_contain_text("In all ε")
    expect(page.locator("#total")).not_to_contain_text("new to the ledger")


@pytest.mark.parametrize(
    ("adversary", "target"),
    [
        ({"prior": "0.05..0.5"}, {"posterior": "0.7"}),
        ({}, {"gamma": "4/3"}),
        ({"prior": "5%..50%", "size-known": True}, {"gain": "0.1"}),
        ({"prior": "1/3..1/2", "known": 5}, {"posterior": "0.7"}),
        ({"prior": "0.05..0.5", "secret": "value"}, {"posterior": "0.7"}),
        ({"linked": 3}, {"gamma": "2"}),
        ({"uninformed": True}, {"gamma": "1.5"}),
        ({"prior": "0.1..0.5"}, {"profile": "0.1:0.3,0.5:0.6"}),
        ({"prior": "0.05..0.5"}, {"posterior": "0.7", "delta": "1e-6", "reserve": "0.1"}),
        ({}, {"rho": "0.1", "candidates": 20}),
        ({}, {"tpr": "0.2", "fpr": "0.01"}),
        ({}, {"epsilon": "1"}),
    ],
)
def test_the_promise_of_a_registered_table_is_spelled_as_a_scenario(
    adversary: dict[str, Any], target: dict[str, Any]
) -> None:
    def read(adversary: dict[str, Any], target: dict[str, Any]) -> Plan:
        said = AdversarySection.read(adversary, "adversary")
        return read_plan(said, TargetSection.read(target, "target"))

    plan = read(adversary, target)
    spelled = spell_promise(plan)
    assert spelled is not None
    assert read(**spelled).terms() == plan.terms()
    assert spelled["adversary"].keys() == (adversary or spelled["adversary"]).keys()


def test_a_registered_table_brings_its_promise(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    """The page stood at 60% for a dataset that had been opened with 70%."""
    url = serving(hospital)
    with program(url) as client:
        mine = {"adversary": {"prior": "0.1..0.4"}, "target": {"posterior": "0.7"}}
        first = SCENARIO | mine | {"queries": [{"kind": "count"}], "budget": {"share": "1/4"}}
        assert client.post("/api/release", json={"scenario": first}).status_code == 200
    page = opened(url, quiet=False)
    choose(page, "hospital.parquet")
    go_to(page, "promise")
    expect(page.locator("#posterior-text")).to_have_value("70")
    expect(page.locator("#low-text")).to_have_value("10")
    expect(page.locator("#high-text")).to_have_value("40")


def test_what_was_typed_is_kept_when_the_first_user_is_made(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    """From then on everyone needs a token, also who is at work; and who is in can log out."""
    page = opened(serving(hospital), quiet=False)
    choose(page, "hospital.parquet", "patient")
    declare_values(page, "ward", WARDS)
    ask(page)
    expect(page.locator("#total")).to_contain_text("In all ε")
    cyd, bob = (add_user(hospital.users, name, curator=True) for name in ("cyd", "bob"))
    ask(page, "rows")
    expect(page.locator("#view-login")).to_be_visible()
    log_in(page, cyd)
    expect(page.locator(".query")).to_have_count(2)
    go_to(page, "people")
    expect(page.locator("#columns")).to_contain_text("surgery, medicine")
    expect(page.locator("#total")).to_contain_text("In all ε")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("#view-login")).to_be_visible()
    expect(page.get_by_role("button", name="Log out")).to_have_count(0)
    log_in(page, bob)  # somebody else begins anew
    expect(page.locator("#link-data")).to_contain_text("choose a table")
    page.get_by_role("button", name="Log out").click()
    log_in(page, cyd)
    expect(page.locator(".query")).to_have_count(2)


def test_a_ledger_opened_while_the_page_loads_is_drawn_once(
    hospital: Settings, opened: Opened, serving: Serving
) -> None:
    """Drawn again, it closed a history that had just been opened."""
    url = serving(hospital)
    page = opened(url)
    held: list[Any] = []

    def held_back(route: Any) -> None:
        held.append(route) if not held else route.continue_()

    drawn: list[str] = []
    page.route("**/api/files", held_back)
    page.on("request", lambda each: drawn.append(each.url))
    with page.expect_request("**/api/files"):
        page.reload()
    page.evaluate("location.hash = '#ledger'")
    held[0].continue_()
    expect(page.locator("#datasets")).to_contain_text("Nothing has been released")
    expect(page.locator("#link-data")).to_contain_text("choose a table")
    page.wait_for_load_state("networkidle")
    assert sum(each.endswith("/api/ledger") for each in drawn) == 1
