"""Routes about association studies: a forecast, advice, and for curators a release."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from whosin.app.cli.main import EXCLUDED_STUDY_WORDS, plain_json, plan_study
from whosin.app.web import folder, tasks
from whosin.app.web.access import Settings, Visitor, has_ledger, request_visitor, server_settings
from whosin.app.web.bodies import (
    BoundedRoute,
    DatasetName,
    RequestName,
    RequestRefused,
    StudyBody,
    StudyForecastBody,
    StudyReleaseBody,
    log_line,
)
from whosin.calibration import Plan
from whosin.errors import (
    Crashed,
    InvalidInput,
    OutOfMemory,
    ScanFailed,
    TookTooLong,
    UnknownName,
    WhosinError,
    at,
    invalid_value,
    is_installed,
    require_extras,
)
from whosin.exact import rational
from whosin.ledger import Entry, Ledger, encoding
from whosin.ledger.registry import suspend_dataset
from whosin.report.card import SECRET_WORDS, cost_words
from whosin.report.document import (
    Paragraph,
    SectionData,
    TextSection,
    TextTable,
    plain_words,
    section_data,
)
from whosin.report.html import render_page
from whosin.report.summary import promise_sentence

if TYPE_CHECKING:
    from whosin.gwas import Study
    from whosin.gwas.prospects import Hope, PublicStudy
    from whosin.gwas.question import StudyCostEstimate
    from whosin.gwas.release import StudyRelease

study_router = APIRouter(tags=["studies"], route_class=BoundedRoute)
PAGE_RELATIONS = ("genotype", "label-swap", "label")
MAX_PAGE_HOPES = 10
FIELD_NAMES = {
    "cases in the study": "cases",
    "controls in the study": "controls",
    "effective SNPs": "effective_snps",
    "odds ratio": "odds_ratio",
    "hopes": "odds_ratio",
    "epsilon": "target",
    "epsilon of the plan": "target",
    "plan": "target",
    "dataset": "continues",
}
"""What the library calls fields of these requests."""
STUDY_CURATOR = ("reads or releases a study", "study", "give its sizes instead")


class StudyNames(BaseModel):
    """The PLINK studies of the served folder; for others than curators none."""

    studies: list[str]


class TextPart(BaseModel):
    """A paragraph, or a table whose columns of numbers are named."""

    text: str = ""
    aside: bool = False
    heads: list[str] = []
    rows: list[list[str]] = []
    right: list[str] = []


class ForecastView(BaseModel):
    """What comes back, in words and as `whosin gwas forecast --json` gives it."""

    cases: int
    controls: int
    snps: int
    lead: str
    parts: list[TextPart]
    forecast: dict[str, Any]


class StudyEstimate(BaseModel):
    """What a release would spend; nothing was drawn. `paid`: it was asked before, and its stored
    answer would be shown. `lacks_budget`: the ledger would refuse it. `lookalikes` are other
    studies of the ledger, where a curator has to say whose people these are; `notes` are for the
    curator."""

    dataset: str
    spends: str
    paid: bool
    lacks_budget: bool
    remaining: float | None
    lookalikes: list[str]
    notes: list[str]
    card: list[SectionData]


class StudyResult(BaseModel):
    """What is published of a study. `picture` is its Manhattan plot, `table` the rows with tabs
    between, and `report` one HTML file, where charts can be drawn."""

    dataset: str
    request: str
    notes: list[str]
    parts: list[TextPart]
    picture: dict[str, Any]
    card: list[SectionData]
    table: str
    report: str | None


@study_router.get("/api/studies")
@tasks.quick_route
def list_studies(settings: Settings, visitor: Visitor) -> StudyNames:
    """The studies that can be released from here."""
    return StudyNames(studies=folder.list_studies(settings.folder) if visitor.curator else [])


@study_router.post("/api/study/forecast")
@tasks.quick_route
def forecast_release(settings: Settings, visitor: Visitor, body: StudyForecastBody) -> ForecastView:
    """The chance that a SNP comes back with these settings and with the best ones. It reads no
    genotype and spends nothing."""
    require_extras("gwas")
    from whosin.gwas.forecast import StudySettings, compare_settings, forecast_study
    from whosin.report import study_forecasts

    with _page_fields():
        relation = _read_relation(body)
        study, hopes = _public_study(settings, visitor, body), _read_hopes(body)
        chosen = StudySettings(
            relation,
            _read_plan(body, relation).epsilon,
            body.top,
            body.score,
            _read_fraction(body.threshold, "threshold"),
            body.numbers,
            _read_fraction(body.share, "share"),
        )
        made = forecast_study(study, chosen, hopes)
        pairs = compare_settings(study, chosen, list(dict.fromkeys(hopes)))
    expected = study_forecasts.describe_expectation(*zip(*pairs, strict=True))
    (said,) = study_forecasts.describe_forecast(made).sections
    best = [study_forecasts.forecast_data(better) for _, better in pairs]
    return ForecastView(
        **_size_keys(study),
        lead=study_forecasts.summarise_expectation(made, [better for _, better in pairs]),
        parts=[*_text_parts([said])[:-1], *_text_parts([expected])],
        forecast=plain_json(study_forecasts.forecast_data(made) | {"best": best}),
    )


@study_router.post("/api/study/advice")
@tasks.quick_route
def advise_release(settings: Settings, visitor: Visitor, body: StudyForecastBody) -> ForecastView:
    """The best settings for what is hoped for, and the smallest study that brings it back in 95% of
    releases; without a relation for all of them."""
    require_extras("gwas")
    from whosin.gwas.forecast import advise_study
    from whosin.report import study_forecasts

    with _page_fields():
        relations = PAGE_RELATIONS if body.relation is None else (_read_relation(body),)
        study, hopes = _public_study(settings, visitor, body), _read_hopes(body)
        epsilons = {each: _read_plan(body, each).epsilon for each in relations}
        top = body.top if "top" in body.model_fields_set else None
        advice = advise_study(study, hopes, epsilons, body.numbers, top=top)
    return ForecastView(
        **_size_keys(study),
        lead=study_forecasts.summarise_advice(advice),
        parts=_text_parts(study_forecasts.describe_advice(advice).sections),
        forecast=plain_json(study_forecasts.advice_data(advice)),
    )


@contextmanager
def _page_fields() -> Iterator[None]:
    """Errors of the library are about fields of these requests."""
    try:
        yield
    except WhosinError as error:
        for each in error.parts:
            if not each.path and each.field in FIELD_NAMES:
                each.path = FIELD_NAMES[each.field]
        raise


def _read_relation(body: StudyBody) -> str:
    if body.relation is None:
        raise InvalidInput(
            "the relation decides what is protected, and has no default",
            field="relation",
            hint=f"choose one of {', '.join(PAGE_RELATIONS)}",
        )
    if body.relation not in PAGE_RELATIONS:
        raise UnknownName("relation", body.relation, PAGE_RELATIONS)
    return body.relation


def _read_plan(body: StudyBody, relation: str) -> Plan:
    """The plan, whose adversary knows the sizes of both groups unless one label may change."""
    written = {"adversary": body.adversary.written, "target": body.target.written}
    for section, keys in written.items():
        for word in keys:
            if word in EXCLUDED_STUDY_WORDS:
                with at(f"{section}.{word}"):
                    message = f"a promise about a study has no {word}"
                    raise InvalidInput(message, field=word, hint="leave it out")
    return plan_study(written["target"], written["adversary"], relation)


def _public_study(settings: Settings, visitor: Visitor, body: StudyForecastBody) -> PublicStudy:
    """The sizes that were given, or those of a study of the folder."""
    from whosin.gwas.forecast import ONE_LABEL
    from whosin.gwas.prospects import PublicStudy
    from whosin.gwas.study import read_public_sizes

    sizes = {name: getattr(body, name) for name in ("cases", "controls", "snps")}
    if body.study is not None:
        visitor.require_curator(*STUDY_CURATOR)
        cases, controls, snps = read_public_sizes(folder.find_study(settings.folder, body.study))
        if body.relation == ONE_LABEL:  # the number of cases is secret
            cases, controls = (cases + controls) // 2, -(-(cases + controls) // 2)
        sizes = {"cases": cases, "controls": controls, "snps": snps}
    for name, size in sizes.items():
        if size is None:
            raise InvalidInput(f"{name} is missing", field=name, hint="say how many there are")
    return PublicStudy(**sizes, effective_snps=body.effective_snps)


def _size_keys(study: PublicStudy) -> dict[str, int]:
    return {"cases": study.cases, "controls": study.controls, "snps": study.snps}


def _read_hopes(body: StudyForecastBody) -> list[Hope]:
    """One hope for each odds ratio, with its frequency."""
    from whosin.gwas.prospects import Hope

    ratios, shares = (
        [part.strip() for part in text.split(",") if part.strip()]
        for text in (body.odds_ratio, body.frequency)
    )
    if not 1 <= len(ratios) <= MAX_PAGE_HOPES:
        accepted = f"one number, or up to {MAX_PAGE_HOPES} with commas between them"
        raise invalid_value("odds_ratio", accepted, body.odds_ratio)
    if len(shares) == 1:
        shares *= len(ratios)
    if len(shares) != len(ratios):
        accepted = f"one number, or one for each odds ratio ({len(ratios)})"
        raise invalid_value("frequency", accepted, body.frequency)
    pairs = zip(ratios, shares, strict=True)
    return [Hope(share, odds_ratio=ratio) for ratio, share in pairs]  # type: ignore[arg-type]


def _read_fraction(text: str | None, field: str) -> Fraction | None:
    return None if text is None else rational(text, field)


def _text_parts(sections: Sequence[TextSection]) -> list[TextPart]:
    """Paragraphs and tables, one after the other."""
    found = []
    for part in (part for section in sections for part in section.parts):
        if isinstance(part, Paragraph):
            found.append(TextPart(text=plain_words(part.text), aside=part.tone == "soft"))
        elif isinstance(part, TextTable):
            rows = [[plain_words(cell) for cell in row] for row in part.rows]
            heads = list(part.columns)
            found.append(TextPart(heads=heads, rows=rows, right=sorted(part.right)))
    return found


# Releases. A study is one of the folder's, the ledger is the server's, and the study is named after
# its files, so that nobody gets a second budget by another name. No file is written here.


@study_router.post("/api/study/estimate")
@tasks.scan_route
def estimate_release(settings: Settings, visitor: Visitor, body: StudyReleaseBody) -> StudyEstimate:
    """What a release of a study would publish and spend; nothing is drawn."""
    require_extras("gwas")
    from whosin.gwas.release import (
        account_name,
        describe_relatives,
        find_paid_request,
        paying_dataset,
        study_registration,
    )
    from whosin.report import gwas

    study, estimate, name = _open_release(settings, visitor, body)
    relation = estimate.question.relation
    registration = study_registration(study, relation)
    notes, remaining, lookalikes = describe_relatives(estimate), None, []
    asked, paid, lacks_budget = f"{name}:{relation}", False, False
    if has_ledger(settings):
        with visitor.ledger(settings, create=False) as ledger, _page_fields():
            account_name(ledger, name, relation)
            pays = paying_dataset(ledger, asked, registration, relation, bool(body.continues))
            if pays != asked:
                notes.append(f"These people are those of {pays!r}, and its budget pays.")
            if pays in ledger.datasets():
                state = ledger.budget_state(pays)
                remaining = state.left_for(ledger.who)
                cost = estimate.spend().cost(estimate.plan.relation)
                paid = bool(find_paid_request(ledger, name, estimate, study, body.request))
                lacks_budget = not paid and cost.epsilon > round(remaining * encoding.EPSILON_UNITS)
            else:
                same = ledger.copies(pays, registration)
                lookalikes = same or ledger.lookalikes(pays, registration)
            asked = pays
    return StudyEstimate(
        dataset=asked,
        spends=_spending_words(estimate, asked, paid=paid),
        paid=paid,
        lacks_budget=lacks_budget,
        remaining=remaining,
        lookalikes=lookalikes,
        notes=notes,
        card=section_data(gwas.estimate_card(estimate)),
    )


def _spending_words(estimate: StudyCostEstimate, dataset: str, *, paid: bool) -> str:
    if paid:
        return f"This was paid for before by {dataset}: its answer is shown, and nothing is spent."
    cost = cost_words(estimate.spend().cost(estimate.plan.relation))
    promise = promise_sentence(estimate.plan, SECRET_WORDS[estimate.question.relation])
    return f"{promise} This will spend {cost} for {dataset}."


def _open_release(
    settings: Settings, visitor: Visitor, body: StudyReleaseBody
) -> tuple[Study, StudyCostEstimate, str]:
    """The counted study, the cost of what is asked of it, and its name in the ledger."""
    from whosin.gwas import read_study
    from whosin.gwas.question import Question, estimate_study_cost

    visitor.require_curator(*STUDY_CURATOR)
    path = folder.find_study(settings.folder, body.study)
    _refuse_own_ledger(settings, path)
    with _page_fields():
        relation = _read_relation(body)
        asked = Question(
            body.top,
            relation,
            body.score,
            body.numbers,
            _read_fraction(body.threshold, "threshold"),
            _read_fraction(body.share, "share"),
            none_of_them=body.none_of_them,
        )
        plan = _read_plan(body, relation)
        study = read_study(path, processes=1)
        return study, estimate_study_cost(plan, asked, study), _study_name(body)


def _refuse_own_ledger(settings: Settings, path: Path) -> None:
    """A study whose budget is in a ledger of its own gets no second one here."""
    own = path.with_name(f"{path.name}.ledger")
    if own.exists() and (
        "://" in settings.ledger or own.resolve() != Path(settings.ledger).resolve()
    ):
        raise RequestRefused(
            409,
            f"the budget of {path.name} is in {own.name}, not in this server's ledger",
            "study",
            f"go on with whosin gwas release, or serve with --ledger {own.name}",
        )


def _study_name(body: StudyReleaseBody) -> str:
    from whosin.gwas.association import LINEAR_RELATIONS, STUDY_RELATIONS

    relations = "|".join((*STUDY_RELATIONS, *LINEAR_RELATIONS))
    return re.sub(f":({relations})$", "", body.continues) if body.continues else body.study


@study_router.post("/api/study/release")
def release_study(request: Request, body: StudyReleaseBody) -> StudyResult:
    """Publish the most associated SNPs of a study, under the rules of `whosin gwas release`:
    debited first, stored, then shown. The same again shows the stored answer; a request with a
    new name asks anew."""
    settings, visitor = server_settings(request), request_visitor(request)
    visitor.require_curator(*STUDY_CURATOR)
    try:
        return tasks.run_scan(request, run_study_release, settings, body, visitor)  # type: ignore[no-any-return]
    except (Crashed, OutOfMemory, TookTooLong) as error:
        words = tasks.server_work(request).always(suspend_study, settings, body)
        if words is None:
            raise
        log_line(f"study {body.study!r} is suspended: {error}")
    raise ScanFailed(words)


def suspend_study(settings: Settings, body: StudyReleaseBody) -> str | None:
    """The task: suspend a study whose process was stopped or crashed after its debit, as other
    datasets are."""
    from whosin.gwas.release import REQUEST_PREFIX

    if not has_ledger(settings):
        return None
    with Ledger(settings.ledger, create=False) as ledger:
        for name in ledger.datasets():
            for request in ledger.unanswered(name, body.request or REQUEST_PREFIX):
                return str(suspend_dataset(ledger, name, request, request))
    return None


def run_study_release(settings: Settings, body: StudyReleaseBody, visitor: Visitor) -> StudyResult:
    """Run a release in its task, and return what the page shows."""
    require_extras("gwas")
    from whosin.gwas.release import (
        account_name,
        find_paid_request,
        paying_dataset,
        publish_study,
        study_registration,
    )

    study, estimate, name = _open_release(settings, visitor, body)
    asked = estimate.question
    with visitor.ledger(settings) as ledger, warnings.catch_warnings(), _page_fields():
        warnings.simplefilter("ignore", UserWarning)  # the notes say it
        _check_account(settings, ledger, body, name)
        registration = study_registration(study, asked.relation)
        account = account_name(ledger, name, asked.relation)
        pays = paying_dataset(ledger, account, registration, asked.relation, bool(body.continues))
        paid = find_paid_request(ledger, name, estimate, study, body.request) is not None
        now = _spending_words(estimate, pays, paid=paid)
        if not paid and body.spends not in (None, now):
            raise RequestRefused(409, "this would spend something else", "spends", now)
        said = {"amend": body.continues is not None, "new_people": body.new_people}
        made = publish_study(study, estimate.plan, asked, ledger, name, body.request, **said)
    return _result_view(made)


@study_router.get("/api/study/answers")
@tasks.scan_route
def open_study_answers(
    settings: Settings, visitor: Visitor, dataset: DatasetName, name: RequestName
) -> StudyResult:
    """The stored answers of a study that was released from this folder; nothing is spent. Its
    files are read again, for what is public about its SNPs."""
    require_extras("gwas")
    from whosin.gwas import read_study
    from whosin.gwas.question import Question
    from whosin.gwas.release import publish_study

    visitor.require_curator(*STUDY_CURATOR)
    unknown = RequestRefused(404, "no release of this id has been answered", "request")
    if not has_ledger(settings):
        raise unknown
    with visitor.ledger(settings, create=False) as ledger:
        state, history, answers = ledger.record(dataset)
        debits = [each for each in history if each.kind == "debit" and each.request == name]
        if not debits or name not in answers or not opens_on_page(debits[0]):
            raise unknown
        what = debits[0].body["what"]
        keys = ("top", "relation", "score", "numbers", "threshold", "share", "gap")
        asked = Question(**{key: what[key] for key in keys}, none_of_them=what["none of them"])
        source = re.sub(":[^:]*$", "", dataset)
        with at("study"):
            study = read_study(folder.find_study(settings.folder, source), processes=1)
        with warnings.catch_warnings(), _page_fields():
            warnings.simplefilter("ignore", UserWarning)  # the notes say it
            # The same request about the same study is answered from the store, and else refused.
            return _result_view(publish_study(study, state.plan, asked, ledger, source, name))


def opens_on_page(entry: Entry) -> bool:
    """Whether a debit is that of a study as this page releases them."""
    what = entry.body["what"]
    if what.get("release") != "gwas":  # labels, a beacon, or an answer of a session
        return False
    plain = what["loci"] is None and not what["named"] and what["families"] == "warn"
    return plain and "trait" not in what and what["relation"] in PAGE_RELATIONS


def _check_account(settings: Settings, ledger: Ledger, body: StudyReleaseBody, name: str) -> None:
    """What the ledger has to know of a study before it is asked."""
    known = [each for each in ledger.datasets() if each.startswith(f"{name}:")]
    if body.continues and not known:
        raise RequestRefused(409, f"the ledger has no study {body.continues!r}", "continues")
    if not known and not settings.register:
        raise RequestRefused(
            409,
            f"study {name!r} has no budget here, and this server opens none",
            "study",
            "its curator opens one with whosin gwas release --ledger",
        )


def _result_view(made: StudyRelease) -> StudyResult:
    from whosin.report import gwas

    *card, said = gwas.describe_study_release(made).sections
    charts = is_installed("charts")
    return StudyResult(
        dataset=made.dataset,
        request=str(made.request),
        notes=list(made.notes),
        parts=_text_parts([said]),
        picture=plain_json(gwas.manhattan_data(made)),
        card=section_data(card),
        table=gwas.release_text(made),
        report=render_page(gwas.describe_study_page(made)) if charts else None,
    )
