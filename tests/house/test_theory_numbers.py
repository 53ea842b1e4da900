"""Every number of a fact, theorem or erratum that the code mentions is explained in docs."""

from __future__ import annotations

import re
from pathlib import Path

import whosin
from whosin.references import THEOREMS

ROOT = Path(whosin.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
PAGE, ERRATA = DOCS / "theory" / "numbers.md", DOCS / "errata.md"
NUMBER = re.compile(r"\b[TFE]\d{1,2}\b")


def entries() -> dict[str, str]:
    """The text of each number: of facts and theorems on their page, of errata on theirs."""
    facts = re.findall(r"^- \*\*([TF]\d+)\*\* (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    errata = re.findall(r"^## (E\d+): (.+)$", ERRATA.read_text("utf-8"), re.MULTILINE)
    return dict(facts + errata)


def test_the_page_explains_every_number_that_the_code_mentions():
    mentioned = {
        number: path.name
        for path in ROOT.rglob("*.py")
        for number in NUMBER.findall(path.read_text("utf-8"))
    }
    assert len(mentioned) > 40
    assert {each: path for each, path in mentioned.items() if each not in entries()} == {}


def test_the_page_states_the_theorems_as_the_program_does():
    explained = entries()
    for number, theorem in THEOREMS.items():
        assert explained[number].startswith(f"{theorem.statement} [{theorem.source}].")


def test_no_reader_is_sent_to_notes_that_are_not_there():
    assert [path.name for path in ROOT.rglob("*.py") if "THEORY" in path.read_text("utf-8")] == []
