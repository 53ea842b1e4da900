"""The pack of evidence about a release: data with a schema, a table for each actor.

It has an entry for the registry of deployments too. It is made from a scenario, its cost estimate
and its ledger's head; no row is read. None of it is legal advice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from whosin.calibration import Plan
from whosin.errors import InvalidInput
from whosin.exact import format_percent, round_up
from whosin.ledger import BudgetState
from whosin.release import CostEstimate, Release
from whosin.release.answer import cost_data
from whosin.release.cost import batch_cost, state_after
from whosin.release.requests import match_answers
from whosin.release.table import dataset_name
from whosin.report.document import (
    Document,
    Paragraph,
    Part,
    Strong,
    format_general,
    list_facts,
    make_section,
    make_table,
    note,
)
from whosin.report.summary import (
    LEGAL_NOTICE,
    NEIGHBOUR_WORDS,
    RECORDED_NOTE,
    RatioBound,
    assess_risks,
    bound_answers,
    bound_cost,
    bound_presence,
    bound_replacement,
    compare_bounds,
    complete_about,
    describe_publications,
    describe_signatures,
    explain_inference,
    explain_public_size,
    later_statements,
    limits_lines,
    list_priors,
    match_noises,
    name_question,
    parameter_facts,
    promise_sentence,
    read_declared,
    unit_facts,
)
from whosin.scenario_model import SIGNED_KEYS, AboutSection

if TYPE_CHECKING:
    from whosin.release.scenario import Scenario

PACK_FILES = ("evidence.json", "evidence.schema.json", "evidence.html", "registry.yaml")
REGISTRY_REPOSITORY = "opendp/deployments-registry-data"
REGISTRY_COMMIT = "3e9c812a924cf01d228f26f6c462c59c391c3f2a"
REGISTRY_SCHEMA = "schemas/deployments-schema.yaml"
"""The schema that `registry_entry` follows, of 15 July 2026: the registry numbers no versions."""
EVIDENCE_VERSION = 1
TO_FILL_IN = "To be filled in before this entry is submitted."


SIZED_FAMILY = "D_B (entities are present independently, given how many there are; any beliefs)"
FAMILY_NOTE = (
    "A family is a set of beliefs that someone may hold (Li et al. 2013). In D_I they believe "
    "something of each person separately; in D_B they also know how many people are in, so that "
    "whoever is in takes the place of another, and the limit is wider."
)


# Who may be looking, and how sure each of them can become.


@dataclass(frozen=True)
class Actor:
    """Someone who may look at a publication.

    Attributes:
        name: controller, recipient, insider or public.
        family: what they may know and believe, by the symbol of the family of priors.
        bound: what the publication can tell them about whether someone is in.
        priors: how sure they may be before, for a table.
    """

    name: str
    words: str
    family: str
    bound: RatioBound
    priors: Sequence[Fraction]


def list_actors(
    plan: Plan, whole: Plan, answers: RatioBound | None = None, *, several: bool = False
) -> list[Actor]:
    """The four actors of a pack.

    Args:
        whole: the plan of the dataset's whole budget.
        answers: what all releases so far allow; by default as much as the plan.
        several: whether there are others than this one.
    """
    wide = list_priors(whole, assumed=False)
    reached = bound_presence(plan) if answers is None else answers
    hidden = "holds the rows and runs the release: nothing is hidden from them"
    gets = f"gets everything that the dataset's budget will ever answer; {whole.family.words()}"
    knows = (
        "may know everything about everyone else, and how many people are in; may believe anything "
        "about the person"
    )
    read = "all releases of the dataset so far" if several else "this release alone"
    reads = f"reads {read}; {plan.family.words()}"
    if all(reached.words(each) == bound_presence(whole).words(each) for each in list_priors(plan)):
        spend = "Together they" if several else "This release"
        reads += f". {spend} may use all of the budget: the public learns what the recipient does"
    return [
        Actor("controller", hidden, "none: the data are known", RatioBound(), wide),
        Actor("recipient", gets, whole.family.summary, bound_presence(whole), list_priors(whole)),
        Actor("insider", knows, SIZED_FAMILY, bound_replacement(whole), wide),
        Actor("public", reads, plan.family.summary, reached, list_priors(plan)),
    ]


def describe_unsaid(about: AboutSection) -> str:
    """What [about] does not say, with lines to be pasted and filled in; empty where it says all."""
    if not (missing := about.unsaid):
        return ""
    described = AboutSection.json_schema()["properties"]
    lines = [f'{key} = "…"  # {described[key]["description"]}' for key in missing]
    head = f"[about] of the scenario does not say {', '.join(missing)}. To paste there:"
    return "\n    ".join([head, *(["[about]"] if not about.written else []), *lines])


def require_about(about: AboutSection) -> None:
    """Refuse to make a pack whose reader would not know who answers for it."""
    if unsaid := describe_unsaid(about):
        raise InvalidInput(unsaid, field=f"about.{about.unsaid[0]}")


def _find_own(scenario: Scenario, releases: Sequence[Release]) -> Release | None:
    """The last release that asked a scenario's questions of its table."""
    file, given = dataset_name(scenario.table.source), scenario.table.name
    names = "", file if given in (None, file) else f"{given} ({file})"

    def is_own(release: Release) -> bool:
        matched = match_answers(scenario.queries, list(release))
        return release.table in names and matched is not None

    return next((each for each in reversed(releases) if is_own(each)), None)


def settle_about(
    scenario: Scenario, releases: Sequence[Release], today: str
) -> tuple[AboutSection, dict[str, str]]:
    """Who answers for a scenario and why, as it was recorded with its release, or as it says; and
    what is from elsewhere than from its release, marked as such for people.

    Args:
        releases: of the dataset, oldest first.
    """
    own, said = _find_own(scenario, releases), dict(scenario.about.written)
    recorded: Mapping[str, str] = {} if own is None else own.about
    later = {}
    if own is not None:
        title = {"title": scenario.title} if "title" in recorded else {}
        later = later_statements(said | title, recorded, today)
    for each in releases:
        for key in each.about.keys() - said.keys() - recorded.keys() - {"title"}:
            words = each.about[key]
            later[key] = f"{words} (recorded with an earlier release, on {each.when[:10]})"
            recorded = {**recorded, key: words}
    return complete_about(scenario.about, recorded), later


def evidence_data(
    scenario: Scenario,
    estimates: Sequence[CostEstimate],
    state: BudgetState | None,
    made: str,
    version: str,
    releases: Sequence[Release] = (),
    *,
    refusal: str = "",
    ledger_exists: bool = False,
) -> dict[str, Any]:
    """The evidence about a scenario and its ledger as plain data; `evidence_schema` describes it.

    Args:
        state: the dataset's budget state; None where no ledger knows it yet.
        made: the day.
        version: of whosin.
        releases: of the dataset, whose digests are signed.
        refusal: why the ledger would not answer the scenario now.
    """
    about, later = settle_about(scenario, releases, made)
    require_about(about)
    own = _find_own(scenario, releases)
    title = scenario.title if own is None else own.about.get("title", scenario.title)
    scenario = replace(scenario, about=about, title=title)
    plan = scenario.plan
    named = ((name_question(e.query.title, e.spend.what), e.noise) for e in estimates)
    opened = scenario.open_table()
    columns = dict.fromkeys(name for e in estimates for name in sorted(e.query.names(opened)))
    planned = {name: opened.domains[name] for name in columns if name in opened.domains}
    people = releases[-1].people if releases else None
    table, whole = scenario.table, plan if state is None else state.plan
    size, looked_up = read_declared(own, scenario)
    facts = unit_facts(table.privacy_unit, table.max_rows_per_group, table.max_groups)
    domains = planned if own is None else own.domains
    facts |= parameter_facts(plan, state, match_noises(named), looked_up, domains)
    reached = state_after(plan, estimates if own is None else (), state)
    listed = releases[-1].publications if releases else ()
    alone = bound_cost(batch_cost(estimates, whole), whole)
    several = max(len(listed), len(releases)) > (own is not None)
    answers = None if alone is None else bound_answers(reached)
    actors = list_actors(plan, whole, answers, several=several)
    compared = compare_bounds(alone, reached, len(listed), planned=own is None)
    unknown = scenario.dataset if state is None and ledger_exists else None
    return {
        "version": EVIDENCE_VERSION,
        "whosin": version,
        "made": made,
        "notice": LEGAL_NOTICE,
        "title": scenario.title,
        "about": scenario.about.written,
        "about_later": later,
        "promise": promise_sentence(plan),
        "refusal": refusal if own is None else "",
        "answers_so_far": compared,
        "publications": describe_publications(listed, own.request) if own is not None else {},
        "public_size": explain_public_size(plan, size),
        "plan": plan.to_dict(),
        "parameters": facts,
        "chosen_by_looking": list(looked_up),
        "questions": [
            {
                "title": name_question(each.query.title, each.spend.what),
                "noise": each.noise,
                "cost": cost_data(each.spend.cost(plan.relation)),
            }
            for each in estimates
        ],
        "actors": [
            {
                "actor": actor.name,
                "words": actor.words,
                "family": actor.family,
                "failure": round_up(actor.bound.failure),
                "posteriors": [
                    {"prior": float(prior), "posterior": actor.bound.posterior(prior)}
                    for prior in actor.priors
                ],
            }
            for actor in actors
        ],
        "risks": [vars(each) for each in assess_risks(plan)],
        "why_inference_differs": explain_inference(plan),
        "not_promised": list(limits_lines(plan, state, people, looked_up)),
        "releases": [
            {
                "request": each.request,
                "when": each.when,
                "digest": each.digest,
                "about": dict(each.about),
            }
            for each in releases
        ],
        "ledger": None if state is None else _ledger_data(state),
        "unknown_dataset": unknown,
        "registry": {
            "repository": REGISTRY_REPOSITORY,
            "commit": REGISTRY_COMMIT,
            "schema": REGISTRY_SCHEMA,
            "entry": registry_entry(
                scenario, estimates, state, made, version, actors, (size, looked_up)
            ),
        },
    }


def pack_texts(data: Mapping[str, Any]) -> dict[str, str]:
    """The files of a pack by their names, from `evidence_data`."""
    from whosin.report.html import render_page

    pinned = f"# {REGISTRY_REPOSITORY} {REGISTRY_SCHEMA} at {REGISTRY_COMMIT}\n"
    texts = (
        json.dumps(data, ensure_ascii=False, indent=2) + "\n",
        json.dumps(evidence_schema(), ensure_ascii=False, indent=2) + "\n",
        render_page(describe_evidence(data)),
        pinned + yaml_text(data["registry"]["entry"]),
    )
    return dict(zip(PACK_FILES, texts, strict=True))


def _ledger_data(state: BudgetState) -> dict[str, Any]:
    data = state.to_dict()
    keys = ("dataset", "state", "head", "entries", "debits", "last", "spent_epsilon")
    return {key: data[key] for key in keys}


def evidence_schema() -> dict[str, Any]:
    """The JSON Schema of `evidence_data`."""
    text, number, share = {"type": "string"}, {"type": "number"}, {"type": "number", "maximum": 1}

    def describe(required: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        shape = {"type": "object", "required": list(required), "properties": dict(required)}
        return {**shape, "additionalProperties": False, **more}

    def list_of(shape: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "array", "items": dict(shape)}

    about = {**AboutSection.json_schema(), "required": list(SIGNED_KEYS)}
    words = {"type": "object", "additionalProperties": text}
    cost = {"type": "object", "additionalProperties": {"type": ["number", "null"]}}
    beliefs_schema = list_of(describe({"prior": share, "posterior": share}))
    actor = {
        "actor": {"enum": ["controller", "recipient", "insider", "public"]},
        "words": text,
        "family": text,
        "failure": share,
        "posteriors": beliefs_schema,
    }
    risk = {
        "name": text,
        "luck": share,
        "most": {"type": ["number", "null"]},
        "answer": text,
        "assumption": text,
    }
    kept: dict[str, Any] = {
        "dataset": text,
        "state": text,
        "head": text,
        "entries": number,
        "debits": number,
    }
    kept |= {"last": text, "spent_epsilon": {"type": ["number", "string"]}}
    registry = {"repository": text, "commit": text, "schema": text, "entry": {"type": "object"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Evidence about a release of whosin",
        **describe(
            {
                "version": {"const": EVIDENCE_VERSION},
                "whosin": text,
                "made": {"type": "string", "format": "date"},
                "notice": text,
                "title": text,
                "about": about,
                "about_later": words,
                "promise": text,
                "refusal": text,
                "answers_so_far": text,
                "publications": words,
                "public_size": text,
                "plan": {"type": "object"},
                "parameters": {"type": "object", "additionalProperties": text},
                "chosen_by_looking": list_of(text),
                "questions": list_of(describe({"title": text, "noise": text, "cost": cost})),
                "actors": list_of(describe(actor)),
                "risks": list_of(describe(risk)),
                "why_inference_differs": text,
                "not_promised": list_of(text),
                "releases": list_of(
                    describe({"request": text, "when": text, "digest": text, "about": words})
                ),
                "ledger": {"anyOf": [{"type": "null"}, describe(kept)]},
                "unknown_dataset": {"type": ["string", "null"]},
                "registry": describe(registry),
            }
        ),
    }


def registry_entry(
    scenario: Scenario,
    estimates: Sequence[CostEstimate],
    state: BudgetState | None,
    made: str,
    version: str,
    actors: Sequence[Actor],
    declared: tuple[int | None, Sequence[str]],
) -> dict[str, Any]:
    """An entry for the registry of deployments, as a draft to be looked through and submitted."""
    plan, about = scenario.plan, scenario.about
    published = state.last[:10] if state is not None and state.debits else made
    private = plan.composes and not (plan.family.hides_others and plan.delta)
    parameters = {"epsilon": plan.epsilon} | ({"delta": plan.dp_delta} if plan.dp_delta else {})
    kinds = {each.query.kind for each in estimates}
    looked = ", ".join(declared[1])
    unprotected = (
        [f"what was declared of {looked}, chosen by looking at the rows"] if looked else []
    )
    sized = plan.relation == "replace" or declared[0] is not None
    unprotected += ["the number of privacy units"] if sized else []
    whole = scenario.budget.get("share", 1) == 1 and not scenario.schedule
    noises = "; ".join(dict.fromkeys(each.noise for each in estimates))
    titles = "; ".join(name_question(each.query.title, each.spend.what) for each in estimates)
    named = (scenario.title, about.controller or "", published[:4])
    deployment = {
        "basic": {
            "name": scenario.title,
            "data_curators": [about.controller],
            "intended_use": about.purpose or TO_FILL_IN,
            "data_product_type": "Synthetic data"
            if kinds == {"synthetic"}
            else "Summary statistics",
            "data_product_region": about.region or TO_FILL_IN,
            "description": f"{titles}. Of: {_end(about.population)} {_end(about.period)}",
            "publication_date": published,
        },
        "dp_variant": {
            "variant_name": "Custom"
            if not private
            else "Approximate DP"
            if plan.dp_delta
            else "Pure DP",
            "unprotected_quantities": "; ".join(unprotected) or "none",
        },
        "privacy_loss": {
            "privacy_unit": unit_facts(scenario.table.privacy_unit, 1, 1)["privacy unit"],
            "privacy_unit_details": NEIGHBOUR_WORDS[plan.relation],
            **({"privacy_parameters": parameters} if private else {}),
            "privacy_parameters_details": promise_sentence(plan),
        },
        "deployment_model": {
            "model_name": "Central",
            "actors": " ".join(f"{each.name}: {each.words}." for each in actors),
            "release_type": "One release" if whole else "Many releases",
            "access_type": "Non-interactive",
        },
        "accounting": {"composition": parameter_facts(plan, None, (), (), {})["composition"]},
        "implementation": {
            "mechanisms": f"{noises}. Exact noise in whole numbers, from whosin {version}.",
            "justification": f"{_end(about.reasons)} Decided by: {_end(about.decided_by)}",
        },
        "administrative": {"notes": LEGAL_NOTICE, "registry_authors": [TO_FILL_IN]},
    }
    # The registry checks an address by its own rule.
    url_slug = "_".join(re.sub(r"\W+", "_", each.lower()) for each in named).replace("_", "-")
    return {"url_slug": url_slug, "status": "Draft", "tier": 3, "deployment": deployment}


def _end(words: str | None) -> str:
    """What somebody wrote, as a sentence with an end."""
    text = (words or "").strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def yaml_text(data: Mapping[str, Any], indent: int = 0) -> str:
    """Mappings, lists of texts, texts and numbers as YAML; every text is quoted as in JSON."""
    lines, margin = [], "  " * indent
    for key, value in data.items():
        if isinstance(value, Mapping):
            lines.append(f"{margin}{key}:\n{yaml_text(value, indent + 1)}")
        elif isinstance(value, list):
            listed = "".join(f"{margin}  - {json.dumps(each)}\n" for each in value)
            lines.append(f"{margin}{key}:\n{listed}")
        else:
            lines.append(f"{margin}{key}: {json.dumps(value, ensure_ascii=False)}\n")
    return "".join(lines)


def describe_evidence(data: Mapping[str, Any]) -> Document:
    """A pack for people: the promise, a table for each actor, the risks, the parameters."""
    shown = data["about"] | data["about_later"]
    order = [name for name in ("title", *AboutSection.known_keys()) if name in shown]
    about = [(name.replace("_", " "), shown[name]) for name in order]
    about.append(("as of", data["made"]))
    ledger = data["ledger"]
    actors = []
    for each in data["actors"]:
        rows = [
            (format_percent(row["prior"], "down"), format_percent(row["posterior"], "up"))
            for row in each["posteriors"]
        ]
        but = f"; but for a probability of {format_general(each['failure'], 3)}"
        actors.append(
            make_section(
                each["actor"].capitalize(),
                f"{each['words'][0].upper()}{each['words'][1:]}.",
                f"Family: {each['family']}{but if each['failure'] else ''}.",
                make_table(("sure before", "at most afterwards"), rows, right=("sure before",)),
            )
        )
    asked = [(each["title"], each["noise"]) for each in data["questions"]]
    risks = [(Strong(each["name"]), each["answer"], each["assumption"]) for each in data["risks"]]
    head = "There is no ledger yet: nothing has been released."
    if unknown := data["unknown_dataset"]:
        head = f"The ledger does not know dataset {unknown!r}."
    if ledger is not None:
        last = f"the last entry of {ledger['last']}"
        head = f"Dataset {ledger['dataset']}: head {ledger['head']}, {last}."
    refused = filter(None, [data["refusal"]])
    answers: list[Part | str] = []
    if data["releases"]:
        digests = [
            (each["request"], each["when"][:10], each["digest"]) for each in data["releases"]
        ]
        answers = [
            make_table(("release", "when", "SHA-256 of the answers"), digests),
            f"The answers: whosin ledger answers LEDGER {ledger['dataset']} --request …",
        ]
    return Document(
        f"Evidence: {data['title']}",
        (
            make_section(
                "",
                note(data["notice"]),
                *(Paragraph(f"A release would be refused: {words}.", "bad") for words in refused),
                Paragraph((Strong(data["promise"]),)),
                *filter(None, [data["answers_so_far"]]),
                *(Paragraph(words, "bad") for words in filter(None, [data["public_size"]])),
                list_facts(*about, *data["publications"].items()),
                *([note(RECORDED_NOTE)] if data["releases"] else []),
            ),
            make_section("What is published", make_table(("question", "noise"), asked), level=2),
            make_section(
                "Who may be looking, and how sure they can become", note(FAMILY_NOTE), level=2
            ),
            *actors,
            make_section(
                "Risks",
                make_table(("risk", "at most", "that rests on"), risks),
                *filter(None, [data["why_inference_differs"]]),
                level=2,
            ),
            make_section("What is not promised", *data["not_promised"], level=2),
            make_section("Parameters", list_facts(*data["parameters"].items()), level=2),
            make_section("Ledger", head, *answers, level=2),
            replace(describe_signatures(shown.get("decided_by")), level=2),
        ),
    )
