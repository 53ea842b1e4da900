"""What people do on the page, for tests that drive a browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

SIZES = {"desktop": (1280, 860), "phone": (375, 812)}
LOOKS = [("desktop", "light"), ("phone", "dark"), ("desktop", "dark"), ("phone", "light")]


def looks(first: int = 0, count: int = 2) -> pytest.MarkDecorator:
    """Widths and themes: some in `make test`, all where somebody asks for the pictures."""
    order = LOOKS[first:] + LOOKS[:first]
    later = () if os.environ.get("WHOSIN_SCREENSHOTS") else (pytest.mark.soak,)
    listed = [*order[:count], *(pytest.param(*look, marks=later) for look in order[count:])]
    return pytest.mark.parametrize(("size", "theme"), listed)


def shoot(page: Page, album: Path | None, name: str) -> None:
    """Take a picture, and see that nothing is wider than the screen."""
    if album is not None:
        page.screenshot(path=album / f"{name}.png", full_page=True)
    wide = page.evaluate("() => document.documentElement.scrollWidth")
    size = page.viewport_size
    assert size is not None and wide <= size["width"], f"{name} is wider than the screen"


def go_to(page: Page, step: str) -> None:
    """A step of the guide, by its link."""
    page.locator(f"#link-{step}").click()
    expect(page.locator(f"#step-{step}")).to_be_visible()


def open_advanced(page: Page) -> None:
    """By the keyboard: messages above come and go, and move what the mouse aims at."""
    go_to(page, "promise")
    details = page.locator("details:has(#delta)")
    details.locator("> summary").press("Enter")
    expect(details).to_have_attribute("open", "")


def open_loading(page: Page) -> None:
    """The part of the first step that loads scenarios."""
    go_to(page, "data")
    if page.locator("details.load").get_attribute("open") is None:
        page.get_by_text("Load a scenario").click()


def load(page: Page, name: str = "hospital.toml") -> None:
    """Load a scenario of the served folder."""
    open_loading(page)
    page.get_by_label("From the served folder").select_option(name)
    expect(page.locator("#total")).to_contain_text("In all ε")


def load_file(page: Page, path: Path) -> None:
    """Load a scenario file."""
    open_loading(page)
    page.get_by_label("Or a file of yours").set_input_files(path)
    expect(page.locator("#scenario-notes")).to_contain_text("Loaded.")


def choose(page: Page, table: str, unit: str | None = None) -> None:
    """Choose a table, and whose row it is."""
    go_to(page, "data")
    page.get_by_label("A table in the served folder").select_option(table)
    expect(page.locator("#table-words")).to_contain_text(table)
    go_to(page, "people")
    if unit is not None:
        page.get_by_label("Whose row is it?").select_option(unit)


def edit(page: Page, column: str) -> None:
    """Open the editor of a column."""
    go_to(page, "people")
    button = page.get_by_label(f"Edit {column}", exact=True)
    if button.get_attribute("aria-expanded") == "false":
        button.click()


def declare_values(page: Page, column: str, values: str) -> None:
    """Say which values a column may hold."""
    edit(page, column)
    page.get_by_label(f"What {column} may hold").select_option("values")
    page.get_by_label(f"values of {column}").fill(values)


def declare_range(page: Page, column: str, lower: int, upper: int) -> None:
    """Say in which range the numbers of a column are."""
    edit(page, column)
    page.get_by_label(f"What {column} may hold").select_option("numbers")
    page.get_by_label(f"lower end of {column}").fill(str(lower))
    page.get_by_label(f"upper end of {column}").fill(str(upper))


def ask(page: Page, kind: str = "count") -> None:
    """Add a question."""
    go_to(page, "questions")
    page.get_by_label("Ask", exact=True).select_option(kind)
    page.get_by_role("button", name="Add").click()


def unfold(page: Page, question: int) -> None:
    """Open a question that is folded."""
    page.locator(".query > details > summary").nth(question).click()


def release(page: Page, *, look: bool = False) -> None:
    """Release what is asked: skip the look at the rows or not, and say yes."""
    go_to(page, "release")
    if not look and page.locator("#look-choice").is_visible():
        page.locator('[name="look"][value="skip"]').check()
    page.locator("#go").click()
    page.locator("#ask-yes").click()


def saved(page: Page, button: str, folder: Path) -> Path:
    """The file that a button downloads."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


AXE_LOOKS: tuple[tuple[int, int, Literal["light", "dark"], bool], ...] = (
    (1280, 860, "light", True),
    (768, 1024, "light", False),
    (390, 844, "dark", True),
)
"""A width and a height, a theme, and whether contrasts are looked at, which take most of the time
and depend on the theme alone."""


def axe_at_widths(page: Page) -> list[list[str]]:
    """What axe says of the page on a screen, a tablet and a phone, in the light and in the dark,
    and what is wider than one of them. The page is then as it was."""
    before = page.viewport_size
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert before is not None
    found = []
    for width, height, theme, contrasts in AXE_LOOKS:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme)
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append(["too wide", str(width)])
        found += [[*each, f"{width} {theme}"] for each in axe_complaints(page, contrasts)]
    page.set_viewport_size(before)
    page.emulate_media(color_scheme="dark" if dark else "light")
    return found


def axe_complaints(page: Page, contrasts: bool = True) -> list[list[str]]:
    """What axe says of the page as it is: each rule that is broken, and where first."""
    axe = pytest.importorskip("axe_playwright_python.base").AXE_FILE_PATH.read_text("utf-8")
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(f"{axe};0")
    found: list[list[str]] = page.evaluate(
        "(enabled) => axe.run(document, {resultTypes: ['violations'], rules: {'color-contrast':"
        " {enabled}}}).then(({violations}) =>"
        " violations.map(({id, nodes}) => [id, nodes[0].html.slice(0, 200)]))",
        contrasts,
    )
    return found
