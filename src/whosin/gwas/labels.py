"""Case labels randomised once: drawn, paid for, kept, and what they say of the true ones.

A label says "case" with probability α of a case and β of a control, α/β = r, drawn once for each
person. Whatever is computed from the labels afterwards is free (F28).

*Symmetric*: α = r/(1+r), β = 1/(1+r), Warner's randomised response. One label moves likelihoods by
r in both directions, an exchange of two labels by r².

*One-sided*: α = 1, β = 1/r. A case is always called one, so the label "case" raises beliefs by r
at most and "control" is certain: this is positive membership privacy under independent beliefs (T4,
T11), and nothing else. Whoever knows how many cases there are can become sure of them, so exact
sizes are never published beside it.

Whose label has which r depends on public facts alone: the plan's prior, or one for each person.
Who has a phenotype is public, the number of labels that say "case" too; the exact one is not.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np

from whosin import noise
from whosin.calibration import Plan, calibrate
from whosin.calibration.targets import Target
from whosin.documents import check_keys, read_json, read_words
from whosin.errors import BudgetRefused, InvalidInput, UnknownName, invalid_value, read_path, spell
from whosin.exact import Array, exp_down, log_down, number_range, rational
from whosin.families import Family, FixedSize, Independent
from whosin.gwas.bed import Groups
from whosin.gwas.people import PersonName, check_instance, read_people, read_person_words
from whosin.gwas.release import PRIVACY_UNIT, account_name
from whosin.gwas.release import study_registration as register_study
from whosin.gwas.study import Study, people_file, read_study
from whosin.ledger import Cost, Ledger, Spend, encoding
from whosin.ledger.registration import PEOPLE_KIND, Registration
from whosin.plain_files import create_file, write_file

LABEL_METHODS = ("symmetric", "one-sided")
LABEL_CODINGS = {"1/2": ("1", "2"), "0/1": ("0", "1")}
"""How controls and cases are written: PLINK's way, and that of REGENIE and SAIGE."""
MISSING_LABEL = "NA"
LABEL_HEADER = ("FID", "IID", "PHENO")
MAX_PRIOR_RANGES = 1_000
"""How many different priors people may have: each is a plan of its own."""
ACCOUNT_NAMES = {"add-remove": "label", "replace": "label-swap"}
"""Which account of a study pays, by the relation of the plan."""
KNOWN_SIZE_ACCOUNTS = (":label-swap", ":stratum-swap", ":genotype")
"""Accounts whose releases state how many cases and controls there are."""


@dataclass(frozen=True, eq=False)
class LabelledPeople:
    """People by name, and who of them is a case or a control; the others have no phenotype.

    Attributes:
        study: their genotypes, by which a ledger knows them again under any name; where there are
            none, their own names do.
    """

    names: list[PersonName]
    groups: Groups
    study: Study | None = None

    @classmethod
    def read(cls, path: str | Path, phenotypes: str | Path | None = None) -> LabelledPeople:
        """PLINK's files, or a .fam or .psam file without genotypes."""
        file = read_path(path, "study")
        beside = {".fam": ".bed", ".psam": ".pgen"}.get(file.suffix)
        alone = beside is not None and not file.with_suffix(beside).exists()
        names, groups = read_people(file if alone else people_file(file), phenotypes)
        return cls(names, groups, None if alone else read_study(file, phenotypes))

    @cached_property
    def order(self) -> Array:
        """The people with a phenotype, by name: a file may have them in any order."""
        known = np.flatnonzero(self.groups.cases | self.groups.controls)
        return np.array(sorted(known.tolist(), key=lambda place: self.names[place]), np.int64)

    def registration(self, method: str, relation: str) -> Registration:
        """What a budget for these people's labels is bound to: the people, under any phenotype."""
        if self.study is not None and relation == "replace":
            return register_study(self.study, "label-swap")
        if self.study is not None:
            known = register_study(self.study, "genotype")
        else:
            print_ = f"{len(self.names)} {_digest_words(map(' '.join, sorted(self.names)))}"
            domains = {"people": {"values": [str(len(self.names))]}}
            source = {"rows": print_, PEOPLE_KIND: print_}
            known = Registration(privacy_unit=PRIVACY_UNIT, domains=domains, source=source)
        return replace(known, domains={**known.domains, "labels": {"values": [method]}})

    def fingerprint(self, ratios: Sequence[Fraction], own: Array) -> str:
        """Who has which label, and which of the ratios: of the question that a debit pays for."""
        words = [f"{case} {ratio}" for ratio in ratios for case in (0, 1)]
        coded = (2 * own + self.groups.cases[self.order]).tolist()
        return _digest_words(
            f"{' '.join(self.names[place])} {words[code]}"
            for place, code in zip(self.order.tolist(), coded, strict=True)
        )


def _digest_words(words: Iterable[str]) -> str:
    text = "\n".join(words).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()


@dataclass(frozen=True)
class LabelGroup:
    """People whose labels were drawn with the same ratio.

    Attributes:
        ratio: r.
        people: how many there are.
        labelled: how many labels say "case".
    """

    ratio: Fraction
    people: int
    labelled: int


def label_rates(ratio: Fraction, method: str) -> tuple[Fraction, Fraction]:
    """(α, β): the probability that the label of a case, and of a control, says "case"."""
    if method == "one-sided":
        return Fraction(1), 1 / ratio
    return ratio / (1 + ratio), 1 / (1 + ratio)


@dataclass(frozen=True)
class Purity:
    """How many of those who are called cases, and controls, are cases (F28).

    Attributes:
        cases, controls: R̂ and Ŝ, the estimated numbers.
        cases_error: the standard error of R̂.
        among_cases, among_controls: the shares A and B of true cases among those who are called
            cases, and among those who are called controls; 0 where labels are one-sided.
        covariance: of the errors of A and of B.
        variance_factor: by how much the variance of a difference of frequencies grows near the
            null hypothesis: (1/n_case + 1/n_control)/(A − B)² over 1/R̂ + 1/Ŝ.
    """

    cases: float
    controls: float
    cases_error: float
    among_cases: float
    among_controls: float
    covariance: tuple[tuple[float, float], tuple[float, float]]
    variance_factor: float

    @property
    def difference(self) -> float:
        """A − B, by which differences of frequencies shrink."""
        return self.among_cases - self.among_controls


@dataclass(frozen=True)
class LabelDraw:
    """How labels were drawn. Everything here is public; `save` writes it beside the labels."""

    method: str
    groups: tuple[LabelGroup, ...]

    def __post_init__(self) -> None:
        if self.method not in LABEL_METHODS:
            raise UnknownName("method of the labels", str(self.method), LABEL_METHODS)

    @property
    def people(self) -> int:
        return sum(group.people for group in self.groups)

    @property
    def labelled(self) -> int:
        """How many labels say "case"."""
        return sum(group.labelled for group in self.groups)

    def purity(self) -> Purity:
        """Estimate how many of the labels are right.

        In a group of n people, k of them called cases, R̂ = (k − nβ)/(α − β); A and B are the
        pooled shares. Errors to first order, from the independent coins of cases and controls.

        Raises:
            InvalidInput: the estimate leaves no cases, or no controls.
        """
        cases, true, missed = 0.0, 0.0, 0.0
        spread = np.zeros((3, 3))  # of the errors of R̂, and of true cases under both labels
        for group in self.groups:
            alpha, beta = map(float, label_rates(group.ratio, self.method))
            found = (group.labelled - group.people * beta) / (alpha - beta)
            cases, true, missed = cases + found, true + alpha * found, missed + (1 - alpha) * found
            inside = min(max(found, 0.0), group.people)
            coins = inside * alpha * (1 - alpha), (group.people - inside) * beta * (1 - beta)
            share = 1 / (alpha - beta)
            moved = np.array(
                [
                    [share, share],
                    [1 - alpha * share, -alpha * share],
                    [-1 - (1 - alpha) * share, -(1 - alpha) * share],
                ]
            )
            spread += moved @ np.diag(coins) @ moved.T
        called, others = self.labelled, self.people - self.labelled
        controls = self.people - cases
        if not 0 < cases < self.people or not 0 < called < self.people:
            message = (
                f"of {self.people} labels {called} say case, which leaves an estimate of "
                f"{spell(round(cases, 1))} cases: too few people for what was randomised"
            )
            raise InvalidInput(message, field="labels", value=called)
        first, second = true / called, missed / others
        factor = (1 / called + 1 / others) / (first - second) ** 2 / (1 / cases + 1 / controls)
        scale = np.diag([1 / called, 1 / others])
        (a, b), (c, d) = (scale @ spread[1:, 1:] @ scale).tolist()
        error = math.sqrt(spread[0, 0])
        return Purity(cases, controls, error, first, second, ((a, b), (c, d)), factor)

    def to_dict(self) -> dict[str, object]:
        groups = [asdict(group) | {"ratio": str(group.ratio)} for group in self.groups]
        return {"labels": self.method, "groups": groups}

    def save(self, path: Path) -> None:
        write_file(path, json.dumps(self.to_dict(), indent=2) + "\n", "--save")

    @classmethod
    def load(cls, path: str | Path) -> LabelDraw:
        """Read what `save` writes."""
        file = read_path(path, "labels")
        data = read_json(file, file.name)
        if not isinstance(data, dict) or {"labels", "groups"} - data.keys():
            message = f"{file.name} does not say how labels were drawn"
            hint = "give the .labels.json file that whosin gwas randomise wrote"
            raise InvalidInput(message, field="labels", value=file.name, hint=hint)
        check_keys(data, ("labels", "groups"), file.name)
        try:
            groups = [
                LabelGroup(rational(each["ratio"]), int(each["people"]), int(each["labelled"]))
                for each in data["groups"]
            ]
        except (TypeError, KeyError, ValueError):
            message = f"some groups of {file.name} lack a ratio, people or labelled"
            raise InvalidInput(message, field="groups") from None
        if not groups or any(
            group.ratio <= 1 or not 0 <= group.labelled <= group.people for group in groups
        ):
            message = f"some groups of {file.name} have a ratio of at most 1, or too many labels"
            raise InvalidInput(message, field="groups")
        return cls(data["labels"], tuple(groups))


@dataclass(frozen=True)
class LabelPlan:
    """Which ratio everyone's label has, and what it costs.

    Attributes:
        plan: whose ε is spent: where people have priors of their own, of those with the largest.
        method: "symmetric" or "one-sided".
        ranges: the beliefs, as low and high, that people's own plans are for; one for everybody
            where nobody has a prior of their own.
        epsilons: the ε of each range's plan, in whole units of the ledger.
    """

    plan: Plan
    method: str
    ranges: tuple[tuple[Fraction, Fraction], ...]
    epsilons: tuple[Fraction, ...]

    @property
    def epsilon(self) -> Fraction:
        return max(self.epsilons)

    @property
    def ratios(self) -> tuple[Fraction, ...]:
        """r of each range: e^ε, or e^(ε/2) where an exchange of two labels must stay within ε."""
        labels = 2 if self.plan.relation == "replace" else 1
        return tuple(exp_down(epsilon / labels) for epsilon in self.epsilons)


def plan_labels(
    target: Target,
    family: Family,
    method: str = "symmetric",
    ranges: Sequence[tuple[Fraction, Fraction]] = (),
) -> LabelPlan:
    """Plan the ratios for a target: against everybody alike, or by each range of priors.

    Args:
        family: independent beliefs or, for symmetric labels, someone who knows the size.
        ranges: low and high, where people have priors of their own from public facts.

    Raises:
        InvalidInput: one-sided labels, and the adversary knows the size or the target speaks of
            both directions.
    """
    if method not in LABEL_METHODS:
        raise UnknownName("method of the labels", str(method), LABEL_METHODS)
    if not isinstance(target, Target):
        raise invalid_value("target", "a target, such as Posterior(0.75)", type(target).__name__)
    if not isinstance(family, Independent | FixedSize):
        message = "labels are randomised against independent beliefs, or against a known size"
        raise InvalidInput(message, field="family", value=family)
    sized = isinstance(family, FixedSize)
    if sized and method == "one-sided":
        message = (
            "one-sided labels promise nothing against someone who knows how many cases there are: "
            "from the number of labels they can be sure of every case"
        )
        hint = "leave out --size-known, or draw symmetric labels"
        raise InvalidInput(message, field="one-sided", value=method, hint=hint)
    if sized and ranges:
        message = "priors of single people are independent beliefs, and the size is known here"
        raise InvalidInput(message, field="priors", hint="leave out one of the two")
    if len(ranges) > MAX_PRIOR_RANGES:
        message = f"there are {len(ranges)} different priors, and at most {MAX_PRIOR_RANGES} count"
        raise InvalidInput(message, field="priors", value=len(ranges), hint="round them")
    plans = [calibrate(target, Independent(*pair)) for pair in ranges] or [
        calibrate(target, family)
    ]
    field = "epsilon of the plan"
    epsilons = []
    for plan in plans:
        most = plan.epsilon
        if method == "one-sided":
            most = min(most, log_down(rational(target.one_sided_ratio(*plan.beliefs))))
        units = encoding.budget_units(most, field)
        if exp_down(Fraction(units, 2 * encoding.EPSILON_UNITS)) <= 1:
            raise invalid_value(field, "at least 1e-9", most)
        epsilons.append(Fraction(units, encoding.EPSILON_UNITS))
    leading = plans[max(range(len(plans)), key=lambda place: epsilons[place])]
    return LabelPlan(leading, method, tuple(ranges) or (leading.beliefs,), tuple(epsilons))


def read_priors(
    path: str | Path, names: Sequence[PersonName], strata: str | Path | None = None
) -> tuple[list[tuple[Fraction, Fraction]], Array]:
    """The different priors of a file, as low and high, and whose is which.

    A line has FID, IID and a prior such as 0.01 or 0.01..0.2, or the name of a stratum, whose
    prior a second file has: stratum and prior. All must follow from public facts.
    """
    file = read_path(path, "priors")
    known = {} if strata is None else _read_strata(read_path(strata, "strata"))
    listed = read_person_words(file)
    if not all(own for _, own in listed):
        message = f"some lines of {file.name} do not have FID, IID and a prior"
        raise InvalidInput(message, field=file.name)
    given = {name: own[0] for name, own in listed}
    if len(given) < len(listed):
        message = f"{file.name} has a person (family and individual) more than once"
        raise InvalidInput(message, field=file.name, hint="keep one line a person")
    words = [given.get(name) for name in names]
    if lost := sum(word is None for word in words):
        message = f"{file.name} has no prior for {lost} of the people with a phenotype"
        raise InvalidInput(message, field=file.name, value=lost)
    if strata is not None and (unknown := set(words) - set(known)):
        message = f"{file.name} has the stratum {min(map(str, unknown))!r}, which has no prior"
        raise InvalidInput(message, field=file.name, hint="add it to the file of strata")
    spelled = {word: known.get(word) or _read_prior(word, file.name) for word in map(str, words)}
    ranges = sorted(set(spelled.values()))
    places = {pair: place for place, pair in enumerate(ranges)}
    return ranges, np.array([places[spelled[str(word)]] for word in words], dtype=np.int64)


def _read_strata(path: Path) -> dict[str, tuple[Fraction, Fraction]]:
    rows = read_words(path)
    if any(len(row) != 2 for row in rows) or len({row[0] for row in rows}) < len(rows):
        message = f"{path.name} needs one line a stratum, with its name and its prior"
        raise InvalidInput(message, field=path.name)
    if rows[0][1].lower() == "prior":
        rows = rows[1:]
    return {name: _read_prior(word, path.name) for name, word in rows}


def _read_prior(word: str, source: str) -> tuple[Fraction, Fraction]:
    low, high = number_range(word, f"prior in {source}")
    if not 0 < low <= high < 1:
        raise invalid_value(f"prior in {source}", "above 0 and below 1, such as 0.01..0.2", word)
    return low, high


@dataclass(frozen=True, eq=False)
class LabelRelease:
    """Labels that were drawn, for everyone in the file's order: −1 where there is no phenotype.

    Attributes:
        notes: what people should be told about the budget, in sentences.
        again: whether they were drawn before, and cost nothing now.
    """

    people: LabelledPeople
    plan: LabelPlan
    draw: LabelDraw
    labels: Array
    dataset: str
    request: str
    notes: tuple[str, ...]
    again: bool

    def write(self, path: Path, coding: str = "1/2") -> None:
        """Write a phenotype file for plink2, REGENIE and SAIGE, and how it was drawn beside it."""
        words = (*LABEL_CODINGS[read_coding(coding)], MISSING_LABEL)
        with create_file(path, "--save") as file:
            file.write("\t".join(LABEL_HEADER) + "\n")
            pairs = zip(self.people.names, self.labels.tolist(), strict=True)
            file.writelines(f"{fid}\t{iid}\t{words[label]}\n" for (fid, iid), label in pairs)
        self.draw.save(draw_path(path))


def draw_path(path: Path) -> Path:
    """Where a phenotype file's draw is described."""
    return path.with_suffix(".labels.json")


def read_coding(coding: str) -> str:
    if coding not in LABEL_CODINGS:
        raise UnknownName("coding", str(coding), LABEL_CODINGS)
    return coding


def randomise_labels(
    people: LabelledPeople,
    plan: LabelPlan,
    ledger: Ledger,
    dataset: str,
    *,
    own: Array | None = None,
    own_budget: bool = False,
    new_people: bool = False,
    confirm: Callable[[], None] | None = None,
) -> LabelRelease:
    """Draw everyone's label once, paid from a ledger; asked again the same labels come back.

    Args:
        own: for the people with a phenotype, by name, which of the plan's ranges is theirs; all
            have the first one by default.
        own_budget: pay from a budget of this name, although the people have one for the labels of
            another phenotype: the curator's word that the phenotypes say nothing of each other.
        new_people: record that nobody has another budget of the ledger, as the curator's word;
            people who are new to a ledger that has others are refused without it.
        confirm: called before anything is recorded or paid; not if these labels were drawn before.

    Raises:
        BudgetRefused: the plan does not fit what is left, or the number of cases is published.
    """
    check_instance(people, LabelledPeople, "people", "LabelledPeople")
    check_instance(plan, LabelPlan, "plan", "a LabelPlan, such as plan_labels(…) makes")
    check_instance(ledger, Ledger, "ledger", "a Ledger")
    which = np.zeros(len(people.order), dtype=np.int64) if own is None else own
    relation = plan.plan.relation
    registration = people.registration(plan.method, relation)
    asked_name = account_name(ledger, dataset, ACCOUNT_NAMES[relation])
    ratios = plan.ratios
    print_ = people.fingerprint(ratios, which)
    same = ledger.copies(asked_name, registration)
    name, notes = _find_account(ledger, asked_name, registration, own_budget, print_)
    if plan.method == "one-sided":
        _refuse_known_size(ledger, asked_name, registration)
    request = None
    if name in ledger.datasets() and ledger.budget_state(name).registered is not None:
        named = _name_request(ledger, name, print_)
        request = named if named in ledger.requests(name, named) else None
    again = request is not None
    if request is None:
        if confirm is not None:
            confirm()
        if name not in ledger.datasets():
            _refuse_other_relations(ledger, name, registration)
        said = same if own_budget else new_people
        ledger.admit(name, plan.plan, registration=registration, new_people=said)
        account_name(ledger, dataset, ACCOUNT_NAMES[relation])  # again: others register too
        request = _name_request(ledger, name, print_)

    def draw(_: int) -> dict[str, object]:
        codes = people.groups.cases[people.order].astype(np.int64)
        drawn = np.empty_like(codes)
        for place, ratio in enumerate(ratios):
            theirs = which == place
            alpha, beta = label_rates(ratio, plan.method)
            rows = [[1 - beta, beta], [1 - alpha, alpha]]
            drawn[theirs] = noise.randomized_response(codes[theirs], rows)
        bits = np.packbits(drawn.astype(np.uint8)).tobytes()
        return {"people": len(drawn), "labels": base64.b85encode(bits).decode()}

    debit = ledger.debit(name, request, _label_spend(plan, which, registration, request))
    [answer] = ledger.answer_debits([debit], request, draw)
    try:
        packed = np.frombuffer(base64.b85decode(str(answer["labels"])), dtype=np.uint8)
    except (ValueError, binascii.Error):
        raise InvalidInput("the stored labels cannot be read", field="ledger") from None
    drawn = np.unpackbits(packed, count=int(answer["people"])).astype(np.int64)
    labels = np.full(len(people.names), -1, dtype=np.int64)
    labels[people.order] = drawn
    groups = tuple(
        LabelGroup(ratio, int((which == place).sum()), int(drawn[which == place].sum()))
        for place, ratio in enumerate(ratios)
        if (which == place).any()
    )
    made = LabelDraw(plan.method, groups)
    return LabelRelease(people, plan, made, labels, name, request, tuple(notes), again)


def _label_spend(plan: LabelPlan, which: Array, registration: Registration, request: str) -> Spend:
    what = {
        "release": "labels",
        "method": plan.method,
        "ratios": [str(ratio) for ratio in plan.ratios],
        "people": np.bincount(which, minlength=len(plan.ratios)).tolist(),
        "labels": request,
    }
    costs = {plan.plan.relation: Cost.pure(plan.epsilon)}
    words = "randomised response"
    if plan.method == "one-sided":
        words = "one-sided randomised response: positive membership alone"
    return Spend(what, costs, guarantee=words, registration=registration)


def _name_request(ledger: Ledger, name: str, print_: str) -> str:
    """The request of a draw: the same labels of the same people with the same ratios."""
    registered = ledger.budget_state(name).registered
    assert registered is not None  # it was admitted with its registration
    return f"labels {registered.seal('rows', print_)[:32]}"


def _find_account(
    ledger: Ledger, name: str, registration: Registration, own_budget: bool, print_: str
) -> tuple[str, list[str]]:
    """Whose budget pays, and what is to be said of it: the people's own, under any phenotype, and
    always the one that these very labels were drawn from.

    An account for exchanged labels is bound to the labels, so those of another phenotype have one
    of their own, by the curator's word alone.
    """
    ending = name[name.rindex(":") :]
    same = [other for other in ledger.copies(name, registration) if other.endswith(ending)]
    if not same or name in ledger.datasets():
        return name, []
    for other in same:
        if ledger.requests(other, _name_request(ledger, other, print_)):
            return other, [f"these very labels were drawn before, for dataset {other!r}"]
    if own_budget:
        return name, [
            f"the people of {name!r} are those of dataset {same[0]!r}: each budget is for the "
            "labels of its own phenotype, and where one phenotype says something of the other "
            "both draws say something of both"
        ]
    rows = replace(registration, source={"rows": registration.source["rows"]})
    if not set(same) & set(ledger.copies(name, rows)):
        message = (
            f"the people of {name!r} are those of dataset {same[0]!r}, which has a budget for the "
            "labels of another phenotype"
        )
        hint = "say --own-budget if neither phenotype says anything of the other"
        raise BudgetRefused(message, field="dataset", value=name, hint=hint)
    return same[0], [
        f"the people of {name!r} are those of dataset {same[0]!r}, and its budget pays: labels of "
        "another phenotype may say something of this one (--own-budget, if they cannot)"
    ]


def _refuse_other_relations(ledger: Ledger, name: str, registration: Registration) -> None:
    """Levels of the same people under two relations do not compose."""
    same = ledger.copies(name, registration)
    ending = name[name.rindex(":") :]
    if others := [other for other in same if not other.endswith(ending)]:
        message = (
            f"the people of {name!r} are those of dataset {others[0]!r}, and levels under two "
            "relations do not compose"
        )
        raise BudgetRefused(message, field="dataset", value=name)


def _refuse_known_size(ledger: Ledger, name: str, registration: Registration) -> None:
    """One-sided labels beside an exact number of cases would make someone sure of every case."""
    for other in ledger.copies(name, registration):
        if other.endswith(KNOWN_SIZE_ACCOUNTS):
            message = (
                f"releases of dataset {other!r} state how many cases these people have, and beside "
                "an exact number one-sided labels promise nothing"
            )
            hint = "draw symmetric labels"
            raise BudgetRefused(message, field="one-sided", value=other, hint=hint)
