"""Everything that is registered is documented, frozen, and says what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from whosin.app import reference
from whosin.app.cli import parsing
from whosin.families import FAMILIES
from whosin.mechanisms import MECHANISMS, Channel
from whosin.notions import NOTIONS
from whosin.references import PAPERS, THEOREMS

ROOT = Path(__file__).parent.parent


def test_the_reference_page_is_up_to_date():
    """`make reference` writes it."""
    assert (ROOT / "docs" / "reference.md").read_text(encoding="utf-8") == reference.markdown()


@pytest.mark.parametrize("name", FAMILIES)
def test_families_carry_their_facts(name):
    family = FAMILIES[name]
    for fact in ("symbol", "definition", "source", "downward", "upward"):
        assert getattr(family, fact) is not None
    assert all(theorem in THEOREMS for theorem in family.theorems)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"`{family.__name__}(" in readme


def test_every_family_can_be_written_on_the_command_line():
    assert set(parsing._READERS) == set(FAMILIES) - {"explicit"}


@pytest.mark.parametrize("kind", [*FAMILIES.values(), *MECHANISMS.values(), *NOTIONS.values()])
def test_objects_are_frozen_and_explain_themselves(kind):
    assert kind.__doc__ and kind.__module__.startswith("whosin.")
    if kind is not Channel:
        assert kind.__dataclass_params__.frozen


def test_notions_name_their_unit():
    assert {notion.unit for notion in NOTIONS.values()} == {"γ", "ε", "ρ", "level", "nats"}


def test_theorems_cite_papers():
    for theorem in THEOREMS.values():
        assert theorem.papers and all(key in PAPERS for key in theorem.papers)
