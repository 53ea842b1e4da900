"""The model of a scenario: one reader for files, options and requests."""

from __future__ import annotations

from fractions import Fraction

import pytest
from pydantic import ValidationError

from whosin.app.web.bodies import InspectionBody, PlanBody, read_complaint
from whosin.errors import InvalidInput, UnknownName
from whosin.scenario_model import (
    AdversarySection,
    NotionOptions,
    NotionParameters,
    RequestedTable,
    ScenarioModel,
    TableSection,
    TargetSection,
)

TABLE = {"source": "t.csv", "privacy_unit": "who"}


@pytest.mark.parametrize("written", [0.6, "0.6", "3/5", "60%"])
def test_a_number_is_exact_and_kept_as_it_was_written(written):
    section = TargetSection.read({"posterior": written, "delta": None}, "target")
    assert section.posterior == Fraction(3, 5)
    assert section.given == {"posterior": Fraction(3, 5)}
    assert section.written == {"posterior": written}


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        (TargetSection, "posterior", True),
        (TargetSection, "candidates", True),
        (TargetSection, "candidates", 2.0),
        (TargetSection, "profile", True),
        (TargetSection, "hipaa", 1),
        (AdversarySection, "prior", [0.1, True]),
        (AdversarySection, "family", 3),
        (AdversarySection, "size-known", "yes"),
    ],
)
def test_a_value_of_another_kind_is_refused_at_its_key(section, key, value):
    with pytest.raises(InvalidInput) as refused:
        section.read({key: value}, "x")
    assert refused.value.field == refused.value.path == key


def refuse(body, data):
    """The error for a request."""
    with pytest.raises(ValidationError) as refused:
        body.model_validate(data)
    return read_complaint(refused.value.errors())


@pytest.mark.parametrize(
    "key", sorted(TableSection.known_keys().keys() - RequestedTable.known_keys())
)
def test_no_request_has_what_the_owner_of_the_machine_says(key):
    error = refuse(InspectionBody, {"table": {**TABLE, key: "x"}})
    assert isinstance(error, UnknownName) and error.path == f"table.{key}"


def test_no_request_names_a_file_of_a_notion():
    own = NotionOptions.known_keys().keys() - NotionParameters.known_keys()
    assert own == {"gain", "metric", "prior-file"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("known", 10**9 + 1), ("known", -(10**400)), ("family", "x" * 201), ("prior", "1" * 201)],
)
def test_requests_are_bounded(key, value):
    error = refuse(PlanBody, {"adversary": {key: value}, "target": {"gamma": 2}})
    assert error.path == f"adversary.{key}" and len(str(error)) < 200


def test_a_file_and_a_request_are_refused_alike():
    data = {"target": {"posterior": 0.6}, "table": TABLE}
    wrong = {**data, "features": [{"name": "n", "kind": 3}]}
    with pytest.raises(InvalidInput) as refused:
        ScenarioModel.read(wrong, "scenario")
    asked = refuse(InspectionBody, {"table": TABLE, "features": wrong["features"]})
    assert asked.message == refused.value.message
    assert (refused.value.path, asked.path) == ("features[0].kind", "features.0.kind")
