"""Request bodies: bounded, typed, and refused in one shape."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException as exceptions_HTTPException

from whosin import documents, errors
from whosin.errors import InvalidInput
from whosin.isolation import kind_and_line
from whosin.scenario_model import (
    ABOUT_UNSAID,
    AboutSection,
    AdversarySection,
    BudgetSection,
    FeatureSection,
    Flag,
    FurtherTableSection,
    NotionParameters,
    Number,
    RequestedTable,
    ScheduleSection,
    Section,
    TargetSection,
    Whole,
    say,
)
from whosin.scenario_model import Text as ShortText

# JSON bodies, bounded before anything is made of them. A body is read as every JSON file is
# (`documents`: depth, digits, distinct keys), has a bounded number of entries, and holds no half of
# a letter (a lone surrogate), which no file or database could hold. Whatever is wrong is one
# sentence.


MOST_ENTRIES = 200_000
MOST_KEYS = 5_000


class BoundedRequest(Request):
    """A request whose body keeps within bounds."""

    async def json(self) -> Any:
        """Read the body as JSON, within its bounds."""
        if not hasattr(self, "_json"):
            self._json = read_body(await self.body())
        return self._json


class BoundedRoute(APIRoute):
    """A route that reads bounded bodies."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI does, with a bounded request."""
        handler = super().get_route_handler()

        async def bounded(request: Request) -> Response:
            return await handler(BoundedRequest(request.scope, request.receive))

        return bounded


def read_body(body: bytes) -> Any:
    """The value of a body.

    Raises:
        HTTPException: it is none, or too large.
    """
    try:
        text = body.decode("utf-8")
        # Commas inside of texts are counted too: there are at most as many entries.
        if text.count(",") > MOST_ENTRIES:
            raise InvalidInput(f"the body has more than {MOST_ENTRIES:,} entries")
        result = documents.parse_json(text, "the body")
        if _count_keys(result) > MOST_KEYS:
            raise InvalidInput(f"the body has more than {MOST_KEYS:,} keys")
        return result
    except UnicodeError:
        raise HTTPException(
            422, "the body must be JSON in UTF-8; it has letters that are not valid Unicode"
        ) from None
    except InvalidInput as error:
        raise HTTPException(422, str(error)) from None


def _count_keys(value: Any) -> int:
    """How many keys all objects have."""
    level, count = [value], 0
    while level:
        objects = [each for each in level if isinstance(each, dict)]
        count += sum(map(len, objects))
        inner = [part for each in level if isinstance(each, list) for part in each]
        inner += [part for each in objects for part in each.values()]
        level = [part for part in inner if isinstance(part, dict | list)]
    return count


Short = Annotated[str, Field(max_length=200)]
REQUEST_PATTERN = r"^[A-Za-z0-9-]{8,80}$"
REQUEST_WORDS = "8 to 80 letters, digits and dashes"


class Body(BaseModel):
    """A body whose keys are all known."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


class InspectionBody(Body):
    """A table, and what its columns may hold."""

    table: RequestedTable
    domains: dict[Short, Any] = Field(
        default={}, max_length=500, description="By column: a list of values, or {lower, upper}"
    )
    tables: list[FurtherTableSection] = Field(
        default=[], max_length=20, description="As [[tables]] of a scenario file"
    )
    features: list[FeatureSection] = Field(
        default=[], max_length=100, description="As [[features]] of a scenario file"
    )


class SqlBody(InspectionBody):
    """A SELECT, and the table that it asks."""

    sql: str = Field(max_length=10_000, description="One SELECT from the table")


class PlanBody(Body):
    """An adversary and a target, to be planned for."""

    adversary: AdversarySection = AdversarySection.read({}, "adversary")
    target: TargetSection


class AccuracyBody(PlanBody):
    """How exact answers have to be, and the promise that should be kept."""

    target: TargetSection = TargetSection.read({}, "target")
    within: Short = Field(description="95% of answers within ± this of the truth")
    query: Short = Field(default="count", description="count, rows or histogram")
    max_rows_per_group: int = Field(default=1, ge=1, le=10**6)
    max_groups: int = Field(default=1, ge=1, le=10**6)


class DraftBody(Body):
    """A table of the served folder, to be described."""

    source: Short
    dictionary: str | None = Field(
        default=None, max_length=1_000_000, description="A data dictionary (CSV), as text"
    )
    columns: list[Short] = Field(
        default=[], max_length=500, description="Only these; by default all"
    )


class ScenarioBody(InspectionBody, PlanBody):
    """A scenario, as in a scenario file."""

    title: Short = "Release"
    about: AboutSection = ABOUT_UNSAID
    budget: BudgetSection = BudgetSection.read({}, "budget")
    schedule: ScheduleSection = ScheduleSection.read({}, "schedule")
    queries: list[dict[str, Any]] = Field(
        min_length=1, max_length=100, description="As [[queries]] of a scenario file"
    )
    continues: Short | None = Field(
        default=None,
        description="The dataset whose people these are (next month, a correction): its budget "
        "goes on",
    )
    new_people: bool = Field(
        default=False, description="Nobody is in a dataset with the same columns: your word"
    )


class ReleaseBody(Body):
    """A scenario and an id of this release: a retry under the same id neither pays nor answers
    again."""

    scenario: ScenarioBody
    request: str | None = Field(
        default=None,
        pattern=REQUEST_PATTERN,
        description=f"An id of your own: {REQUEST_WORDS}. Without one, the same questions about "
        "the same rows under the same plan are one release, and its stored answers come back",
    )
    preflight: bool = Field(
        default=True,
        description="Look at the rows before it pays, where a curator asks: a declared category "
        "that no row has stops it, and `accept` has to be true for bounds that cut more than a "
        "third of the people; false skips the look",
    )
    accept: bool = Field(
        default=False,
        description="Pay although the look asks (`asks` of /api/preflight), or a 95% interval is "
        "the whole declared range (`meaningless` of /api/estimate); without it that is refused",
    )
    spends: str | None = Field(
        default=None,
        max_length=4000,
        description="What was agreed to: `spends` of /api/preflight. A release that would spend "
        "something else is refused",
    )


class QuotaBody(Body):
    """A share of a dataset's budget that is kept for some people, moved or taken back."""

    dataset: Short
    quota: Short = Field(description="What it is called: a person, a group or a project")
    share: Short | None = Field(
        default=None, description="Of the whole budget, such as 1/4 or 25%: all that they may spend"
    )
    until: Short | None = Field(default=None, description="The last day, such as 2027-12-31")
    members: list[Short] | None = Field(
        default=None, max_length=100, description="Who may spend it; whoever has its name, if none"
    )
    to: Short | None = Field(default=None, description="Move the share to this quota")
    revoke: bool = Field(default=False, description="Take back what is unspent")


class StudyBody(PlanBody):
    """A promise about an association study, and how SNPs are chosen under it."""

    relation: Short | None = Field(
        default=None, description="Between which studies: genotype, label-swap or label"
    )
    top: int = Field(default=1, ge=1, le=1000, description="How many SNPs are chosen")
    numbers: Short = Field(default="counts", description="counts, chi2 or nothing")
    score: Short = Field(default="distance", description="distance, chi2 or linear")
    threshold: Short | None = Field(
        default=None, description="The χ² that the distance is measured from; else the best"
    )
    share: Short | None = Field(
        default=None, description="How much of ε pays for the choice; else the best"
    )


class StudyForecastBody(StudyBody):
    """The sizes of a study, or one of the served folder (for a curator), and what is hoped for."""

    study: Short | None = Field(default=None, description="A PLINK study, instead of its sizes")
    cases: int | None = Field(default=None, ge=2, le=10**7)
    controls: int | None = Field(default=None, ge=2, le=10**7)
    snps: int | None = Field(default=None, ge=1, le=10**8)
    effective_snps: int | None = Field(
        default=None, ge=1, le=10**8, description="How many independent ones they count for"
    )
    odds_ratio: Short = Field(description="Of a SNP that is hoped for; of several: 1.5,2")
    frequency: Short = Field(default="0.3", description="Among controls; one, or one for each")


class StudyReleaseBody(StudyBody):
    """A study of the served folder, to be released; a retry under the same id does not pay."""

    study: Short = Field(description="Its name: the files' without their endings")
    none_of_them: bool = Field(default=False, description="With top = 1: no SNP may win")
    request: str | None = Field(
        default=None, pattern=REQUEST_PATTERN, description=f"An id of your own: {REQUEST_WORDS}"
    )
    spends: str | None = Field(
        default=None,
        max_length=4000,
        description="What was agreed to: `spends` of /api/study/estimate. A release that would "
        "spend something else is refused",
    )
    continues: Short | None = Field(
        default=None, description="The study of the ledger whose people these are"
    )
    new_people: bool = Field(default=False, description="Nobody is in another study: your word")


DatasetName = Annotated[str, Query(max_length=200)]
RequestName = Annotated[str, Query(alias="request", max_length=200)]
PEOPLE_KEYS = ("continues", "new_people")
"""What is said of whose people they are; no keys of a scenario file."""


class TextBody(Section):
    """The text of a scenario file."""

    text: ShortText = say("The file's text (TOML)", MISSING, most=1_000_000)


class VerifyBody(NotionParameters):
    """A channel file's text, and what to measure."""

    channel: ShortText = say("A channel file (JSON), as text", MISSING, most=1_500_000)
    notion: ShortText = say("The notion's name", "membership")
    at_most: Number | None = say("A claim to check")

    def parameters(self) -> dict[str, Any]:
        """The parameters of the notion that were given."""
        given, known = self.given, NotionParameters.known_keys()
        return {name: value for name, value in given.items() if name in known}


class DistortionBody(Section):
    """Rows of one distribution, whose distortion curves are wanted."""

    rows: Whole = say("How many rows there are", MISSING)
    values: Whole = say("How many values a row can have", 2)
    prior: ShortText = say('uniform, or "0.7,0.3"', "uniform", most=400)


MAX_CSV = 300_000


class RuleCheckBody(Section):
    """A table as it would be published, as `whosin rules check` takes it."""

    published: ShortText = say("The table as it would be shown (CSV)", MISSING, most=MAX_CSV)
    population: ShortText = say(
        "How many people could be in each cell (CSV)", MISSING, most=MAX_CSV
    )
    prior: Number = say("How sure anyone is before", MISSING)
    rule: ShortText | None = say("suppress=5, round=5, suppress=8,round=5")
    totals: ShortText = say("counted, or how they are shown", "counted")
    secondary: Flag = say("Further cells were suppressed too", False)
    secondary_by: ShortText | None = say(
        "How they were chosen: next-smallest, next-smallest:hidden"
    )
    before: ShortText | None = say("An earlier table of the same cells", most=MAX_CSV)
    population_before: ShortText | None = say("Its population", most=MAX_CSV)
    secret: ShortText = say("membership, or what else is secret", "membership")


class TokenBody(Section):
    """A user's token, to begin a session with."""

    token: ShortText = say("The token", MISSING)


class Problem(BaseModel):
    """What is wrong, in which field of the request, and what to do, which ends the message."""

    field: str | None
    message: str
    hint: str | None


class Refusal(BaseModel):
    """The one shape of all refusals."""

    error: Problem


def body_data(body: Body) -> dict[str, Any]:
    """The keys that were given, as in a scenario file."""
    given = body.model_fields_set - set(PEOPLE_KEYS)
    listed = {name: getattr(body, name) for name in type(body).model_fields}
    return {name: _plain_data(listed[name]) for name in listed if name in given}


def _plain_data(value: Any) -> Any:
    """A copy that can be changed, of sections as they were written."""
    if isinstance(value, list):
        return [_plain_data(each) for each in value]
    return value.written if isinstance(value, Section) else deepcopy(value)


# What is wrong with the shape of a request, as one sentence. Every complaint of the framework
# becomes (field, "field must be …, not …") in the words of `whosin.errors`. What came is named by
# its kind only, since it can be long.


JSON_BODY = "the body must be a JSON object, sent with the header Content-Type: application/json"
ACCEPTED_SHAPES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "string_type": lambda _: "a text",
    "string_too_long": lambda limits: f"a text of at most {limits['max_length']:,} letters",
    "string_pattern_mismatch": lambda limits: {REQUEST_PATTERN: REQUEST_WORDS}[limits["pattern"]],
    "int_type": lambda _: "a whole number",
    "int_parsing": lambda _: "a whole number",
    "int_parsing_size": lambda _: "a whole number of reasonable size",
    "greater_than_equal": lambda limits: f"at least {limits['ge']}",
    "less_than_equal": lambda limits: f"at most {limits['le']}",
    "list_type": lambda _: "a list",
    "too_short": lambda limits: f"a list of at least {limits['min_length']}",
    "too_long": lambda limits: f"at most {limits['max_length']} in all",
    "dict_type": lambda _: "an object with keys",
    "model_type": lambda _: "an object with keys",
    "model_attributes_type": lambda _: "an object with keys",
}
JSON_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
}


def read_complaint(complaints: Sequence[Mapping[str, Any]]) -> errors.WhosinError:
    """The error for the framework's complaints: our own, where a section raised one, each at its
    place in the request."""
    found: list[errors.WhosinError] = []
    for each in complaints:
        path = [part for part in each["loc"] if part not in ("body", "query")]
        own = each.get("ctx", {}).get("error")
        if isinstance(own, errors.WhosinError):
            for part in own.parts:
                part.path = ".".join(filter(None, (*map(str, path), part.path)))
            found += own.parts
            continue
        field, message = describe_complaint(each, path)
        found.append(InvalidInput(message, field=field or ""))
        found[-1].path = field or ""
    return found[0] if len(found) == 1 else errors.SeveralMistakes(found)


def describe_complaint(first: Mapping[str, Any], path: list[Any]) -> tuple[str | None, str]:
    """The field and the sentence for a complaint of the framework."""
    kind, limits = str(first["type"]), first.get("ctx", {})
    if kind == "json_invalid":
        return None, f"the body is not JSON from character {path[0]} on"
    if not path:
        sent = first.get("input")
        got = "" if sent is None or isinstance(sent, bytes) else f", not {_json_kind(sent)}"
        return None, JSON_BODY + got
    if path[-1] == "[key]":
        field = str(path[0])
        return (
            field,
            f"the names in {field} must be at most {limits['max_length']} letters long",
        )
    field = ".".join(map(str, path))
    if kind == "missing":
        return field, f"{field} is missing"
    if kind == "extra_forbidden":
        return field, f"there is no key {field[:120]}"
    spell = ACCEPTED_SHAPES.get(kind)
    accepted = "as /api describes it" if spell is None else spell(limits)
    if kind in ("too_short", "too_long", "greater_than_equal", "less_than_equal"):
        return field, f"{field} must be {accepted}"
    return field, f"{field} must be {accepted}, not {_json_kind(first.get('input'))}"


def describe_refusal(error: exceptions_HTTPException) -> str:
    """The sentence for what the framework refuses by a status alone."""
    if error.status_code == 404:
        return "there is nothing at this address; /api lists the routes"
    if error.status_code == 405:
        return f"this address takes {(error.headers or {}).get('Allow', 'another method')} only"
    if error.status_code == 400:
        return "the body must be JSON in UTF-8, without very deep nesting or very long numbers"
    return str(error.detail)


def _json_kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return "a number" if abs(value) < float("inf") else "a number that is not finite"
    if isinstance(value, str) and len(value) > 40:
        return f"a text of {len(value):,} letters"
    return JSON_KINDS.get(type(value), "a value of another kind")


# Every refusal is `{"error": {"field": …, "message": …, "hint": …}}` with a fitting status; where
# several things are wrong, "mistakes" lists them all, the first too, in the same shape. The
# messages are those of `whosin.errors`, which quote no row. Of any other error only the kind is
# logged, never its words.


ERROR_STATUS: tuple[tuple[type[errors.WhosinError], int], ...] = (
    (errors.BudgetRefused, 409),
    (errors.BrokenHistory, 409),
    (errors.MissingExtra, 501),
    (errors.ScanFailed, 503),
    (errors.StoreFailed, 503),
    (errors.TooLarge, 413),
    (errors.TookTooLong, 413),
    (errors.OutOfMemory, 413),
    (errors.Crashed, 503),
)
INTERNAL_ERROR = "internal error, please report it; nothing about the data is shown here"


class RequestRefused(Exception):
    """A request that is refused before the library sees it."""

    def __init__(self, status: int, message: str, field: str | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.field, self.hint = status, field, hint

    def __str__(self) -> str:
        """What is wrong, and what to do."""
        message = super().__str__()
        return f"{message}; {self.hint}" if self.hint else message


def refusal_body(field: str | None, message: str, hint: str = "") -> dict[str, Any]:
    """The one shape of all refusals; the message ends with the hint."""
    return {"error": {"field": field, "message": message, "hint": hint or None}}


def install_handlers(app: FastAPI) -> None:
    """Answer every error in that shape."""

    @app.exception_handler(errors.WhosinError)
    def _library(request: Request, error: errors.WhosinError) -> JSONResponse:
        unexpected = getattr(error, "unexpected", None)
        if unexpected is not None:
            log_line(f"internal error: {unexpected}")
            return JSONResponse(refusal_body(None, INTERNAL_ERROR), 500)
        status = next((code for kind, code in ERROR_STATUS if isinstance(error, kind)), 422)
        # What is not wrong with the request itself may name an argument that no request has.
        shown = []
        for each in error.parts:
            named = each.field if status == 422 else ""
            field = each.path.replace("[", ".").replace("]", "") or named or None
            # The message goes without the path: it is shown beside the field.
            shown.append(refusal_body(field, each.message, each.hint)["error"])
        more = {"mistakes": shown} if len(shown) > 1 else {}
        return JSONResponse({"error": shown[0] | more}, status)

    @app.exception_handler(OSError)
    def _system(request: Request, error: OSError) -> JSONResponse:
        log_unexpected(error)
        # The system's own words for the number: an error's may name a file, or quote a row.
        reason = f": {os.strerror(error.errno)}" if error.errno else ""
        return JSONResponse(
            refusal_body(None, f"the server's system failed{reason}; try again"), 503
        )

    @app.exception_handler(RequestRefused)
    def _refused(request: Request, error: RequestRefused) -> JSONResponse:
        return JSONResponse(refusal_body(error.field, str(error), error.hint), error.status)

    @app.exception_handler(RequestValidationError)
    def _shape(request: Request, error: RequestValidationError) -> JSONResponse:
        return _library(request, read_complaint(error.errors()))

    @app.exception_handler(exceptions_HTTPException)
    def _http(request: Request, error: exceptions_HTTPException) -> JSONResponse:
        return JSONResponse(
            refusal_body(None, describe_refusal(error)), error.status_code, error.headers
        )


def log_unexpected(error: Exception) -> None:
    """The kind of an error and where it happened, on standard error. Its words may quote rows."""
    log_line(f"internal error: {' at '.join(kind_and_line(error))}")


def log_request(scope: Any, status: int, seconds: float) -> None:
    """One line of JSON about a request to a route: never its address, which may hold names of
    files, its body, a row or an answer."""
    route, state = scope.get("route"), scope.get("state", {})
    if not getattr(route, "path", "").startswith("/api"):
        return
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "method": scope["method"],
        "route": route.path,
        "status": status,
        "seconds": round(seconds, 3),
        "user": state.get("user"),
        **state.get("told", {}),
    }
    print(json.dumps(line), file=sys.stderr, flush=True)


def log_line(what: str) -> None:
    """Print one line on standard error, the server's log."""
    print(f"whosin: {what}", file=sys.stderr)
