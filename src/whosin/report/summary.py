"""The two pages of a release that a person can sign: for everyone, and for the officer.

Page 2 answers what a data protection officer asks: singling out, linkability and inference (Article
29 Working Party, Opinion 05/2014), each with a number and what it rests on, and what NIST SP
800-226 asks of a differentially private release. Neither page is legal advice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from whosin import beliefs
from whosin.calibration import Plan
from whosin.calibration.plan import FAILURE_FACTOR
from whosin.exact import (
    ONE_HALF,
    Number,
    exact_fraction,
    exp_up,
    format_figures,
    format_percent,
    rational,
    round_up,
)
from whosin.ledger import BudgetState
from whosin.ledger.budget import ZERO_COST, Budget, Cost
from whosin.ledger.encoding import INFINITE_UNITS, today
from whosin.ledger.entries import ReleaseRecord
from whosin.ledger.registry import PeopleBudget
from whosin.release import Release
from whosin.release.conditions import add_condition
from whosin.release.domains import describe_domain, read_domain
from whosin.release.queries.base import describe_title
from whosin.report import card
from whosin.report.accounts import people_lines
from whosin.report.document import (
    Paragraph,
    Strong,
    TextSection,
    TextTable,
    format_count,
    format_epsilon,
    format_plural,
    list_facts,
    make_section,
    make_table,
    note,
)
from whosin.scenario_model import ABOUT_UNSAID, AboutSection

if TYPE_CHECKING:
    from whosin.release.scenario import Scenario

LEGAL_NOTICE = (
    "This states what was decided and what follows from it by proof. It is not legal advice, and "
    "no finding that the publication is anonymous in the sense of any law."
)
RARE_SHARE = Fraction(1, 10_000)
"""How many people fit the example of a description."""
TEST_FPR, MORE_THAN_HALF = Fraction(1, 100), Fraction(9, 10)
MAX_NAMED_ITEMS = 8
REQUEST_LETTERS = 8
"""Of a request: enough to open it with."""
UNSAID_WORDS = "not said with the release"
RECORDED_NOTE = (
    "Who answers, and why, is shown as it was recorded with the release; what came later is marked."
)
SURE_OF_MEMBERSHIP = (
    "“Sure” is about one thing: whether a person is in the data. It is not about what the data say "
    "of that person."
)
SURE_OF_A_VALUE = (
    "“Sure” is about one thing: what the data say of a person of whom it is known that they are in "
    "them. Nothing is promised about who is in."
)


@dataclass(frozen=True)
class RatioBound:
    """A bound on a likelihood ratio, which may fail with a probability."""

    ratio: Number = inf
    failure: Fraction = Fraction(0)

    def posterior(self, prior: Fraction) -> float:
        """How sure someone who was `prior` sure can become, rounded up."""
        if self.ratio == inf:
            return 1.0
        return round_up(Fraction(beliefs.posterior(exact_fraction(self.ratio), prior)))

    def words(self, prior: Fraction) -> str:
        """The same in words."""
        no_limit = self.ratio == inf
        return "no limit" if no_limit else format_percent(self.posterior(prior), "up")

    @property
    def exception(self) -> str:
        """That it may fail, as the end of a sentence."""
        chance = format_figures(self.failure, 3, "up") if self.failure else ""
        return f", but for a probability of {chance}" if chance else ""


def bound_presence(plan: Plan) -> RatioBound:
    """Between someone being in and not, for the plan's own adversaries."""
    failure = plan.failure if card.is_dp(plan) else rational(plan.delta)
    return RatioBound(card.promised_ratio(plan), failure)


def bound_replacement(plan: Plan) -> RatioBound:
    """Between any two entries that a person may have, or a person and another one: it is what
    someone who knows the size compares, and someone who guesses what a participant's rows say.

    Where the plan's neighbours differ by an addition, a replacement is a removal and an addition:
    (2ε, (1 + e^ε)δ), and by T18 a ratio of e^(2ε)/(1 − 1/10) but for ten times that δ. Nothing
    follows from a promise that rests on what nobody knows of others.
    """
    sized = next((each.gamma for each in plan.fallback if each.family == "D_B"), inf)
    if not plan.composes or (plan.family.hides_others and plan.delta):
        return RatioBound()
    if isfinite(sized):
        return RatioBound(exact_fraction(sized), rational(plan.delta))
    epsilon, delta = rational(plan.epsilon), rational(plan.dp_delta)
    if plan.relation == "add-remove":
        epsilon, delta = 2 * epsilon, (1 + exp_up(epsilon)) * delta
    if delta * FAILURE_FACTOR >= 1:
        return RatioBound()
    return RatioBound(exp_up(epsilon) / (1 - 1 / FAILURE_FACTOR), delta * FAILURE_FACTOR)


def bound_three(plan: Plan) -> RatioBound:
    """Between three people who come and go together being in and not (T7: 3ε)."""
    pure = plan.composes and not plan.dp_delta and not plan.family.about_records
    held = pure and plan.relation == "add-remove"
    return RatioBound(exp_up(3 * rational(plan.epsilon))) if held else RatioBound()


def bound_answers(state: BudgetState) -> RatioBound:
    """What all answers of a dataset so far allow."""
    failure = Fraction(0) if state.certain else state.plan.failure
    reached = RatioBound(state.ratio, failure), bound_presence(state.plan)
    return min(reached, key=lambda each: each.ratio)


def bound_cost(cost: Cost, plan: Plan) -> RatioBound | None:
    """What answers of this cost allow by themselves; None where their promise is the plan's own."""
    if cost.rho >= INFINITE_UNITS or not plan.composes:
        return None
    return bound_answers(BudgetState("", "open", plan, Budget.of(plan), cost, 1, 1, "", ""))


def list_priors(plan: Plan, *, assumed: bool = True) -> list[Fraction]:
    """Beliefs that tables of evidence begin from: the ends of what the plan assumes, and one half;
    only those that it assumes, or further ones too."""
    low, high = plan.beliefs
    further = {low, high, ONE_HALF} if assumed else {low, high, ONE_HALF, MORE_THAN_HALF}
    return sorted(p for p in further if 0 < p < 1 and (not assumed or low <= p <= high))


# What an officer asks: singling out, linkability, inference.


@dataclass(frozen=True)
class DisclosureRisk:
    """A risk with a number and what that rests on.

    Attributes:
        luck: how often a guess would succeed that sees nothing.
        most: what it can become; None where nothing is bounded.
    """

    name: str
    luck: float
    most: float | None
    answer: str
    assumption: str


def assess_risks(plan: Plan) -> list[DisclosureRisk]:
    """Singling out, linkability and inference: three points of one curve, the plan's (F36).

    A guess is right at most 1 − f(luck) of the time where it would be right with a chance of `luck`
    had it not seen the answers: a description that fits a person, a test whether a record is in,
    what someone's rows say. After the most telling answer a guess of a value may be surer than
    that: such a belief compares two values, a replacement.
    """
    from whosin.curves import tradeoff

    swapped, curve = bound_replacement(plan), tradeoff(plan)
    rare, falsely, half = (
        min(1.0, round_up(exact_fraction(curve.tpr(luck))))
        for luck in (RARE_SHARE, TEST_FPR, ONE_HALF)
    )
    unbounded = "Not bounded: nothing about it follows from this promise."
    singling = inference = unbounded
    described: float | None = None
    inferred: float | None = None
    if swapped.ratio != inf:
        described, inferred = rare, swapped.posterior(ONE_HALF)
        others = format_count(RARE_SHARE.denominator)
        often = format_figures(described * RARE_SHARE.denominator, 3, "up")
        singling = (
            f"A description that 1 in {others} people fit, chosen after reading the publication, "
            f"fits any given participant with a chance of at most {often} in {others}. It may fit "
            f"exactly one of them all the same: of {others} participants about one does by luck."
        )
        tenth = format_percent(swapped.posterior(Fraction(1, 10)), "up")
        inference = (
            "Whoever guesses what a participant's entries say goes from 50% sure to at most "
            f"{format_percent(inferred, 'up')} sure, and from 10% to at most {tenth}, after the "
            f"answers that tell most{swapped.exception}. On average over all answers, guesses of "
            "which half would be right by luck are right at most "
            f"{format_percent(min(half, inferred), 'up')} of the time."
        )
    linking = (
        "Someone who has a person's whole record from elsewhere and tests whether it is in here "
        f"recognises at most {format_percent(falsely, 'up')} of those who are in, if "
        f"{format_percent(TEST_FPR)} of the others are accused by mistake."
    )
    if plan.family.about_records:  # nothing is promised about who is in
        linking = (
            "Someone who has two whole records of a participant from elsewhere and tests which is "
            f"in here recognises the right one in at most {format_percent(falsely, 'up')} of "
            f"cases, if {format_percent(TEST_FPR)} of the wrong ones are taken for right. Whether "
            "someone is in at all is not protected."
        )
    independent = "people's rows do not depend on each other; everyone else's may be known"
    counted = "everything that was published about these people is in one ledger"
    general = "What is true of people in general can be learned, also about a participant"
    return [
        DisclosureRisk("singling out", float(RARE_SHARE), described, singling, independent),
        DisclosureRisk("linkability", float(TEST_FPR), falsely, linking, counted),
        DisclosureRisk("inference", 0.5, inferred, inference, f"{independent}. {general}"),
    ]


def explain_inference(plan: Plan) -> str:
    """Why inference has another number than the promise, with what each of them assumes; empty
    where it is the same number or none."""
    prior = max(list_priors(plan), default=ONE_HALF)
    bounds = (bound_replacement(plan), ONE_HALF), (bound_presence(plan), prior)
    shown, promised = (bound.words(each) for bound, each in bounds)
    if shown == promised or bounds[0][0].ratio == inf or plan.family.about_records:
        return ""
    twice = ""
    if plan.relation == "add-remove":
        twice = ", and putting others in their place is a removal and an addition, so 2ε"
    return (
        f"Why inference has {shown} and the promise {promised}: the promise is about whether a "
        f"person is in the data, for someone who was at most {format_percent(prior, 'down')} sure "
        f"of it; inference is about what the entries of someone who is in say{twice}."
    )


# The two pages of a release.


def complete_about(about: AboutSection, recorded: Mapping[str, str]) -> AboutSection:
    """[about] as the ledger recorded it with a release, which nothing that is said later changes;
    what was not recorded is as it is said now."""
    kept = {key: words for key, words in recorded.items() if key != "title"}
    return AboutSection.read({**about.written, **kept}, "about")


def later_statements(
    said: Mapping[str, str], recorded: Mapping[str, str], today: str
) -> dict[str, str]:
    """What is said otherwise than it was recorded with a release, or was not recorded, marked as
    such for people."""
    later = {}
    for key, words in said.items():
        if not (before := recorded.get(key)):
            later[key] = f"{words} (said on {today}, after the release)"
        elif before != words:
            now = f"the scenario of {today} says: {words}"
            later[key] = f"{before} (recorded with the release; {now})"
    return later


def read_declared(
    release: Release | None, scenario: Scenario | None
) -> tuple[int | None, Sequence[str]]:
    """(how many people there are, where that is public; what was chosen by looking at the
    rows: domains of columns, bounds), as recorded with a release, or as a scenario says."""
    if release is not None and release.declared:
        return release.declared["people"], release.declared["looked_up"]
    return (None, ()) if scenario is None else (scenario.table.people, scenario.looked_up)


def describe_summary(
    plan: Plan, release: Release, scenario: Scenario | None = None
) -> tuple[TextSection, ...]:
    """Page 1 for everyone, page 2 for the officer."""
    section = ABOUT_UNSAID if scenario is None else scenario.about
    about = dict(complete_about(section, release.about).written)
    people, looked_up = read_declared(release, scenario)
    if scenario is not None:
        title = {"title": scenario.title} if "title" in release.about else {}
        about |= later_statements({**section.written, **title}, release.about, today())
    return (
        *_describe_for_everyone(plan, release, about, looked_up, people),
        *_describe_for_officer(plan, release, about, looked_up),
    )


def _describe_for_everyone(
    plan: Plan,
    release: Release,
    about: Mapping[str, str],
    looked_up: Sequence[str],
    public_size: int | None,
) -> Iterator[TextSection]:
    """What was published, the promise, who chose it, what holds if they were wrong."""
    when = f"{release.when[:10]}, {release.when[11:16]} UTC; " if release.when else ""
    numbers = format_plural(sum(len(each.rows) for each in release), "noisy number")
    asked = [name_question(each.title, each.question) for each in release]
    facts = [
        ("title", about.get("title", "")),
        ("what", f"{list_items(asked)} ({numbers})"),
        ("by whom", about.get("controller", UNSAID_WORDS)),
        ("contact", about.get("contact", UNSAID_WORDS)),
        ("when", f"{when}this report is as of {today()}"),
        ("about whom", about.get("population", UNSAID_WORDS)),
        ("period of the data", about.get("period", UNSAID_WORDS)),
        ("replaces", about.get("replaces", "")),
        ("what for", about.get("purpose", "")),
        ("dataset", f"{release.budget_state.dataset}; request {release.request}"),
        *describe_publications(release.publications, release.request).items(),
        ("answers, SHA-256", release.digest),
    ]
    shown = list_facts(*(each for each in facts if each[1]))
    yield make_section("What was published", shown, level=2)
    people = [each for each in card.plan_card(plan) if each.heading == card.PEOPLE_HEADING]
    yield make_section(
        "The promise",
        Paragraph((Strong(promise_sentence(plan)),)),
        SURE_OF_A_VALUE if plan.family.about_records else SURE_OF_MEMBERSHIP,
        *card.describe_delta(plan),
        *_compare_answers(plan, release),
        *(part for part in people[0].parts[:: len(people[0].parts) - 1]),  # a belief, its marks
        level=2,
    )
    chosen = f"The adversary and the target were chosen by {about.get('decided_by')}."
    yield make_section(
        "Who chose this, and why",
        chosen if "decided_by" in about else f"Who chose it was {UNSAID_WORDS}.",
        about.get("reasons", f"Why was {UNSAID_WORDS}."),
        *([note(RECORDED_NOTE)] if release.about else []),
        level=2,
    )
    size = [Paragraph(words, "bad")] if (words := explain_public_size(plan, public_size)) else []
    wrong = *_wrong_choice_parts(plan), *size
    yield make_section("What holds if these choices are wrong", *wrong, level=2)
    limits = limits_lines(plan, release.budget_state, release.people, looked_up)
    yield make_section("What is not promised", *limits, level=2)


def promise_sentence(plan: Plan, secret: str = "") -> str:
    """The promise of a plan in one sentence.

    Args:
        secret: what someone may be sure of, after "sure"; by default what its family is about.
    """
    secret = secret or plan.family.secret
    who, becomes = card.describe_adversary(plan.family, secret)[:-1], plan.target.words()
    comma = "," if "," in who else ""
    about = " of it" if secret in who else f" {secret}"
    return f"{who}{comma} {becomes}{about if becomes.endswith(' sure') else ''}."


def spending_words(what: str, cost: Cost, plan: Plan, promise: str = "") -> str:
    """What a release promises and what it spends, in the sentences that ask whether it may.

    Args:
        promise: in a sentence or two; by default the plan's own.
    """
    spent = f"{what} will spend {card.cost_words(cost)} of {card.budget_words(plan)}, for good."
    return f"{promise or promise_sentence(plan)} {spent}"


def describe_publications(listed: Sequence[ReleaseRecord], request: str) -> dict[str, str]:
    """Which release of its dataset this one is, and which table it goes on from."""
    at = next((at for at, each in enumerate(listed) if each.request == request), None)
    if at is None:
        return {}
    own, last = listed[at], listed[max(0, at + 1 - MAX_NAMED_ITEMS) :]
    days = [
        each.when[:10]
        + (f" of {each.table}" if each.table else "")
        + f" ({each.request[:REQUEST_LETTERS]}{', this one' if each is own else ''})"
        for each in last
    ]
    number = f"this is number {at + 1} of {len(listed)}: {list_items(days)}"
    facts = {"releases so far": number if len(listed) > 1 else "this is the only one"}
    if own.went_on_from:
        table, until = own.went_on_from
        named = f"{table or 'another table'}, which the dataset had until {until[:10]}"
        facts["goes on from"] = f"{named}; the same people, the same budget"
    return facts


def compare_bounds(
    alone: RatioBound | None, state: BudgetState, count: int = 0, *, planned: bool = False
) -> str:
    """How sure a release, all answers so far and the whole budget can make someone; empty where a
    promise does not add to others.

    Args:
        alone: what the release allows by itself.
        count: how many releases there are so far, where that is known.
        planned: whether this one is still to come.
    """
    if alone is None or state.by_itself:
        return ""
    whole, reached = bound_presence(state.plan), bound_answers(state)
    prior = max(list_priors(state.plan), default=ONE_HALF)
    bounds = min(alone, reached, key=lambda each: each.ratio), reached, whole
    one, several, most = (each.words(prior) for each in bounds)
    made = format_plural(count, "release") if count else "answers"
    so_far = f" alone, {several} from all {made} so far{' and this one' if planned else ''}"
    if count + planned == 1:
        so_far = ", the first one" if planned else ", the only one so far"
    exception = RatioBound(failure=max(each.failure for each in bounds)).exception
    return (
        f"Someone who was {format_percent(prior, 'down')} sure beforehand can become at most {one} "
        f"sure from this release{so_far}, and {most} from all that the dataset's budget will ever "
        f"answer{exception}."
    )


def _compare_answers(plan: Plan, release: Release) -> Iterator[Paragraph]:
    """The same of a release; a warning where its dataset answered more than its promise allows."""
    state, listed = release.budget_state, release.publications
    cost = next(
        (each.cost for each in listed if each.request == release.request),
        sum((each.cost for each in release), ZERO_COST),
    )
    if words := compare_bounds(bound_cost(cost, state.plan), state, len(listed)):
        beyond = state.ratio > card.promised_ratio(plan) * (1 + Fraction(1, 10**9))
        said = "The promise is about this release alone. " if beyond else ""
        yield Paragraph(said + words, "bad" if beyond else "plain")


def _wrong_choice_parts(plan: Plan) -> Iterator[TextTable | Paragraph]:
    """How sure people can become who know or believe more than was assumed."""
    priors, inside = list_priors(plan, assumed=False), list_priors(plan)
    assumed, swapped = bound_presence(plan), bound_replacement(plan)
    anyone = next((each.gamma for each in plan.fallback if each.family == "D_I"), inf)
    independent = replace(assumed, ratio=exact_fraction(anyone) if isfinite(anyone) else inf)
    if card.is_dp(plan) and plan.composes and plan.relation == "add-remove":
        independent = assumed  # differential privacy rests on no belief
    heads = [f"from {format_percent(prior, 'down')}" for prior in priors]
    first = [assumed.words(prior) if prior in inside else "–" for prior in priors]
    rows = [("knows and believes what was assumed", *first)]
    names = ["may believe anything beforehand", "also knows how many people are in"]
    if plan.family.about_records:
        names = ["asks who is in, and does not know how many", "may believe anything beforehand"]
    elif plan.relation == "replace":  # the number of people is exact, and may show who is in
        names = ["does not know yet how many people are in", "knows it, and may believe anything"]
    others = zip(
        [*names, "believes that everyone is in, or nobody"],
        [independent, swapped, RatioBound()],
        strict=True,
    )
    rows += [(words, *map(bound.words, priors)) for words, bound in others]
    yield make_table(("how sure someone can become who …", *heads), rows, right=heads)
    yield note(
        "The last line is about someone who expects everyone or nobody: the larger the data, the "
        "more surely an answer tells them which, and no ε limits that."
    )
    if failing := max(assumed.failure, swapped.failure):
        most = format_figures(failing, 3, "up")
        words = f"Each limit may fail with a probability of at most {most}, given that the person"
        yield note(f"{words} is in.")


def explain_public_size(plan: Plan, people: int | None) -> str:
    """What a number of people that is declared public means for a promise against someone
    who does not know it (T12: twice the ε); empty where it changes nothing."""
    if people is None or plan.relation == "replace":
        return ""
    prior, swapped = max(list_priors(plan), default=ONE_HALF), bound_replacement(plan)
    limit = f"can go from {format_percent(prior, 'down')} to {swapped.words(prior)}"
    if swapped.ratio == inf:
        limit = "is promised nothing"
    return (
        f"The number of people, {format_count(people)}, was declared public, and the promise is "
        f"against someone who does not know it. Whoever knows it exactly {limit}"
        f"{swapped.exception}."
    )


def limits_lines(
    plan: Plan, state: BudgetState | None, people: PeopleBudget | None, looked_up: Sequence[str]
) -> Iterator[str]:
    """What the promise does not cover.

    Args:
        people: the datasets that may be about the same people.
    """
    registered = None if state is None else state.registered
    yield (
        "Attributes: the answers tell what is true of people in general, and so of everyone, in "
        "the data or not."
    )
    together = plan.family.adversary().group
    covered = f"more than {together} people" if together > 1 else "people"
    prior, three = max(list_priors(plan), default=ONE_HALF), bound_three(plan)
    numbers = ""
    if three.ratio != inf and together == 1:
        ends = f"{format_percent(prior, 'down')} to at most {three.words(prior)}"
        numbers = f" Where three come and go together, someone can go from {ends}."
    yield (
        f"Relatives: {covered} who are in or out together, such as families, are not covered."
        f"{numbers}"
    )
    others = sorted(registered.registration.apart_from) if registered else []
    apart = f" By the curator's word nobody here is also in {list_items(others)}." if others else ""
    yield (
        "Other publications: what was published about the same people elsewhere adds to this, and "
        f"is not counted.{apart}"
    )
    if people is not None and state is not None:
        others = [each.dataset for each in people.states if each.dataset != state.dataset]
        first = people_lines(people)[0]
        yield f"Other datasets with these columns ({list_items(others)}): {first}"
    if looked_up:
        yield (
            f"Chosen by looking at the rows: what was declared of {list_items(looked_up)}. What "
            "that tells is not covered."
        )


def _describe_for_officer(
    plan: Plan, release: Release, about: Mapping[str, str], looked_up: Sequence[str]
) -> Iterator[TextSection]:
    """Three risks with their numbers, the parameters, and fields to sign."""
    risks = [(Strong(each.name), each.answer, each.assumption) for each in assess_risks(plan)]
    table = make_table(("risk", "at most", "that rests on"), risks)
    why = [note(words)] if (words := explain_inference(plan)) else []
    sure = _compare_answers(plan, release)
    yield make_section("For the officer", *sure, table, *why, level=2, new_page=True)
    named = ((name_question(each.title, each.question), each.noise) for each in release)
    noises = match_noises(named)
    facts = parameter_facts(plan, release.budget_state, noises, looked_up, release.domains)
    facts["answers, SHA-256"] = f"{release.digest} (questions, columns, rows)"
    facts |= {"replaces": about["replaces"]} if "replaces" in about else {}
    yield make_section("Parameters, as NIST SP 800-226 asks", list_facts(*facts.items()))
    yield describe_signatures(about.get("decided_by"))


def describe_signatures(decided_by: str | None) -> TextSection:
    """Fields to sign for whoever decided and for the officer."""
    roles = [("decided by", decided_by or ""), ("data protection officer", "")]
    fields = make_table(("role", "name", "date", "signature"), [(*each, "", "") for each in roles])
    return make_section("Signatures", fields, note(LEGAL_NOTICE))


NEIGHBOUR_WORDS = {
    "add-remove": "add-remove: with and without all rows of one privacy unit",
    "replace": "replace: all rows of one privacy unit replaced; the number of units is known",
}


def match_noises(named: Iterable[tuple[str, str]]) -> list[str]:
    """Which answers have which noise: "mean of age: Laplace, scale 3"."""
    alike = dict[str, dict[str, None]]()
    for name, noise in named:
        alike.setdefault(noise, {})[name] = None
    return [f"{' and '.join(names)}: {noise}" for noise, names in alike.items()]


def parameter_facts(
    plan: Plan,
    state: BudgetState | None,
    noises: Sequence[str],
    looked_up: Sequence[str],
    domains: Mapping[str, Any],
) -> dict[str, str]:
    """The privacy unit, the bounds, the parameters, the trust model, the side channels.

    Args:
        noises: which answers have which.
        domains: what the columns of the questions were declared to hold.
    """
    facts = {}
    if state is not None and state.registered is not None:
        kept = state.registered.registration
        facts = unit_facts(kept.privacy_unit, kept.max_rows_per_group, kept.max_groups)
    adds_up = "the ε of all answers add up"
    if plan.dp_delta:
        adds_up += ", or their ρ (zCDP), whichever allows less at this δ"
    held = [f"{name}: {describe_domain(read_domain(name, each))}" for name, each in domains.items()]
    facts |= {
        "neighbouring data": NEIGHBOUR_WORDS[plan.relation],
        "budget": card.budget_words(plan),
        "composition": f"{adds_up}; later questions may depend on earlier answers"
        if plan.composes
        else "none: this promise allows one release",
        "mechanisms": f"{list_items(noises)}; drawn exactly, in whole numbers",
        "trust model": "central: the controller holds the rows; noise protects from everyone else",
        "declared values": "declared by the curator as public"
        + (f", but for {list_items(looked_up)}: chosen by looking" if looked_up else "")
        + (f". {list_items(held)}" if held else ""),
        "side channels": "randomness from the system's secure source, no noise in floating point, "
        "no error that depends on rows; how long a scan takes is not hidden",
    }
    if state is not None:
        facts["budget"] += _spent_words(state)
        facts["ledger"] = f"{state.dataset}; head {state.head} after {state.entries} entries"
    return facts


def _spent_words(state: BudgetState) -> str:
    """What all answers of a dataset have spent of its budget, where it adds up."""
    if not state.debits or state.epsilon == inf:
        return ""
    spent, left = format_epsilon(state.epsilon), format_epsilon(state.spendable)
    answers = format_plural(state.debits, "answer")
    return f"; spent so far ε = {spent}, by {answers}; left ε = {left}"


def unit_facts(privacy_unit: str, max_rows: int | None, max_groups: int | None) -> dict[str, str]:
    """Whose rows are protected, and how many of them count."""
    rows, groups = format_plural(max_rows or 1, "row"), format_plural(max_groups or 1, "group")
    named = f"all rows with the same {privacy_unit} are protected together"
    counted = f"for each {privacy_unit} at most {rows} in any one group, in at most {groups}"
    return {
        "privacy unit": "each row" if privacy_unit == "row" else named,
        "contribution bounds": f"{counted}; more are not counted. An answer with other bounds says "
        "so",
    }


QUESTION_NAMES = {
    "count": "number of people",
    "rows": "number of rows",
    "histogram": "number of people",
    "running": "running number of people",
    "deviation": "standard deviation",
    "keys": "undeclared values",
    "top": "most frequent values",
    "marginals": "tables",
}
"""What kinds of questions are called; the others are called as they are written."""
COUNTS_BY_COLUMN = ("histogram", "running")
"""Kinds whose column says what is counted apart."""


def name_question(title: str, question: Mapping[str, Any]) -> str:
    """What a question is called, and what it is about if nobody gave it a name."""
    kind, named = str(question.get("query")), dict(question)
    bare = title.removesuffix(add_condition("", question))
    if bare in (kind, describe_title(kind, question)) and bare != named.get("name"):
        if kind in COUNTS_BY_COLUMN and "column" in named:
            by = named.get("by", ())
            named["by"] = [named.pop("column"), *([by] if isinstance(by, str) else by)]
        title = describe_title(QUESTION_NAMES.get(kind, kind), named)
    return add_condition(title, question)


def list_items(items: Sequence[str]) -> str:
    """The first of some things, and how many more there are."""
    more = len(items) - MAX_NAMED_ITEMS
    return "; ".join(items[:MAX_NAMED_ITEMS]) + (f"; {more} more" if more > 0 else "")
