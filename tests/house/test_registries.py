"""Everything that is registered is documented, frozen, and says what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import whosin as wi
from whosin.app import reference, scenario_schema
from whosin.families import FAMILY_KINDS, read_family
from whosin.mechanisms import MECHANISM_KINDS, Channel
from whosin.notions import NOTION_KINDS
from whosin.references import PAPERS, THEOREMS

ROOT = Path(__file__).parents[2]


def test_the_reference_has_everything_that_is_public():
    """It is made when the documentation is built, and kept nowhere."""
    page = reference.reference_markdown()
    for _, _, room in reference.ROOMS:
        for name in room.__all__:
            if callable(item := getattr(room, name)) and hasattr(item, "__name__"):
                assert f".{item.__name__}(" in page, f"{room.__name__}.{name}"


def test_the_schema_of_scenarios_is_up_to_date():
    assert (ROOT / "schema" / "scenario.json").read_text("utf-8") == scenario_schema.schema_text()


@pytest.mark.parametrize("name", FAMILY_KINDS)
def test_families_carry_their_facts(name):
    family = FAMILY_KINDS[name]
    for fact in ("symbol", "definition", "source", "downward", "upward"):
        assert getattr(family, fact) is not None
    assert all(theorem in THEOREMS for theorem in family.theorems)
    page = (ROOT / "docs" / "theory" / "li13.md").read_text(encoding="utf-8")
    assert f"`{family.__name__}(" in page


SPELLINGS = [
    *(kind.example for kind in FAMILY_KINDS.values() if kind.example),
    *("independent", "independent=1/3", "one-of=3:literal"),
]


@pytest.mark.parametrize("text", SPELLINGS)
def test_families_read_back_what_they_spell(text):
    family = read_family(text)
    assert family.spelled == text and read_family(family.spelled) == family
    low, high = family.beliefs
    assert 0 <= low <= high <= 1 and family.relation in ("add-remove", "replace")
    assert family.words().startswith("someone who") and family.includes(family)
    assert read_family(family.spelled).canonical() == family.canonical()


def test_every_family_but_one_can_be_spelled():
    assert [name for name, kind in FAMILY_KINDS.items() if not kind.example] == ["explicit"]


@pytest.mark.parametrize("name", ["uninformed", "one-of=4", "fixed-probability=0.3"])
def test_a_plan_shows_the_beliefs_that_its_family_has(name, run):
    """These families have one belief each, which a chart must not show as everything."""
    family = read_family(name)
    plan = wi.calibrate(wi.Gamma("1.5"), family)
    assert plan.beliefs == family.beliefs != (0, 1)
    code, out, _ = run(f"plan --gamma 1.5 --family {name}")
    assert code == 0 and out.count("━") == 1


@pytest.mark.parametrize(
    "kind", [*FAMILY_KINDS.values(), *MECHANISM_KINDS.values(), *NOTION_KINDS.values()]
)
def test_objects_are_frozen_and_explain_themselves(kind):
    assert kind.__doc__ and kind.__module__.startswith("whosin.")
    if kind is not Channel:
        assert kind.__dataclass_params__.frozen


def test_notions_name_their_unit():
    units = {"γ", "ε", "ρ", "level", "nats", "leakage"}
    assert {notion.unit for notion in NOTION_KINDS.values()} == units


def test_theorems_cite_papers():
    for theorem in THEOREMS.values():
        assert theorem.papers and all(key in PAPERS for key in theorem.papers)
