"""A private release of a study: what it costs, what it is registered as, and what is published.

The cost of a release follows from public facts alone. The plan's ε is spent whole, in whole units
of the ledger: all of it on the choice of SNPs, or half on the choice and half on numbers about
them. The ledger is debited before noise is drawn, and the answer is stored before it is shown; a
retry with the same request shows the same answer. Which genotypes are missing is private: distances
leave them out, as PLINK does, and published numbers impute them (`people.imputed_copies`), so that
groups have public sizes. Errors depend on public things only.

A study is registered with its sizes and its list of SNPs, which are public, and with fingerprints
of its counts, which the ledger seals. They are the same in whatever file the study lies, in
whatever order its people and SNPs are, and whichever of its two alleles is A1. *Label swaps*
protect who is a case: the budget is for the counts of cases and controls. *Genotype changes*
protect genomes, which are the same under every phenotype: the budget is for the pooled counts of
everybody who was genotyped, so all phenotypes share it, and a study of people who have such a
budget under another name is paid from that one.
"""

from __future__ import annotations

import hashlib
import math
import uuid
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from whosin import noise
from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, UnknownName, invalid_value, spell
from whosin.exact import Array, rational, read_ranged
from whosin.gwas.association import (
    STUDY_RELATIONS,
    Association,
    check_relation,
    estimate_association,
    imputed_sensitivity,
)
from whosin.gwas.people import COPY_STEP, Snps, check_instance, imputed_copies
from whosin.gwas.relatives import FAMILY_POLICIES, Families
from whosin.gwas.scores import (
    SELECTION_THRESHOLD,
    SNP_SCORE_KINDS,
    imputed_chi2,
    read_threshold,
    score_sensitivity,
    score_step,
    selection_scale,
    selection_scores,
)
from whosin.gwas.study import Study
from whosin.ledger import Cost, Ledger, Spend, encoding
from whosin.ledger.encoding import read_name
from whosin.ledger.registration import PEOPLE_KIND, Registration
from whosin.ledger.registry import describe_copy
from whosin.noise.additive import MAX_CUBE_DIMENSIONS
from whosin.validation import read_whole

NUMBER_KINDS = ("counts", "chi2", "nothing")
CHI2_STEP = Fraction(1, 100)
"""The grid on which χ² is published."""
MIN_RELEASE_EPSILON = Fraction(1, 10**6)
"""The least ε. With less the answer would be only noise, and wider than integers hold."""


NONE_CHANCE_DIVISOR = 20
CHOICE_SHARE = Fraction(7, 10)
"""How much of ε choosing gets where numbers are published, too (THEORY F30: about .7 for one)."""


@dataclass(frozen=True)
class Question:
    """What is asked of a study.

    Args:
        top: how many SNPs are chosen, or None where they are named.
        relation: between which studies the plan's ε is measured: "genotype" or "label-swap".
        score: choose by "distance" to the threshold, or by "chi2".
        numbers: also publish allele "counts" (and what follows from them), "chi2", or "nothing".
        threshold: the χ² that the distance is measured from; it serves to choose, not to call a
            SNP significant. None for the best one that is known.
        share: how much of ε goes to the choice where numbers are published, too; None for the best.
        gap: publish how far the chosen SNP is ahead of the next one; only for top = 1, where it
            costs nothing, and by default there.
        none_of_them: let "none of them" compete for being chosen; only for top = 1.
        named: publish numbers about these SNPs instead, with all of ε. Whoever names them must
            not have looked at the data.
        families: what is done about relatives in the study: "warn", or "protect" them, too, by
            drawing noise for less ε than is paid. (To keep the "first" of each family, read the
            study so.)
    """

    top: int | None
    relation: str
    score: str = "distance"
    numbers: str = "counts"
    threshold: object = None
    share: object = None
    gap: bool | None = None
    none_of_them: bool = False
    named: tuple[str, ...] = ()
    families: str = "warn"

    def __post_init__(self) -> None:
        check_relation(self.relation)
        _check_families(self.families, self.relation)
        named = self.named
        if not isinstance(named, tuple | list) or not all(isinstance(n, str) for n in named):
            raise invalid_value("named SNPs", "a list of names", repr(named)[:80])
        object.__setattr__(self, "named", tuple(named))
        if self.score not in SNP_SCORE_KINDS:
            raise UnknownName("score", str(self.score), SNP_SCORE_KINDS)
        if self.numbers not in NUMBER_KINDS:
            raise UnknownName("numbers", str(self.numbers), NUMBER_KINDS)
        if (self.top is None) != bool(self.named):
            message = "give either top (how many SNPs to select) or the named SNPs, and not both"
            raise InvalidInput(message, field="top", value=self.top)
        if self.top is not None:
            object.__setattr__(self, "top", read_whole(self.top, "top", 1))
        elif self.numbers == "nothing":
            message = "named SNPs are released with numbers; nothing would be released of them"
            raise InvalidInput(
                message, field="numbers", value=self.numbers, hint="choose counts or chi2"
            )
        if len(set(self.named)) < len(self.named):
            raise InvalidInput("a SNP is named twice", field="named SNPs")
        if self.threshold is not None:
            rational(self.threshold, "threshold")
        if self.share is not None:
            read_ranged(self.share, "share", "strictly between 0 and 1")
        for field in ("gap", "none_of_them"):
            if getattr(self, field) and self.top != 1:
                what = f"{field} needs top = 1: the order of several shows no more than itself"
                raise InvalidInput(what, field=field, value=self.top)
        object.__setattr__(self, "gap", self.top == 1 if self.gap is None else bool(self.gap))

    @property
    def size(self) -> int:
        return len(self.named) if self.top is None else self.top


def _check_families(families: object, relation: str) -> None:
    if families not in FAMILY_POLICIES:
        raise UnknownName("families", str(families), FAMILY_POLICIES)
    if families == "protect" and relation != "genotype":
        message = (
            f"relatives are protected under genotype changes alone: under {relation} everybody's "
            "genome is taken as known"
        )
        raise InvalidInput(message, field="families", value=families)


@dataclass(frozen=True)
class StudyCostEstimate:
    """The noise and the cost of a release.

    Attributes:
        snps: how many SNPs the study looked at.
        selection_spread: the scale of the noise on scores, in units of their grid; 0 where SNPs
            are named.
        number_noise: on the numbers, in units of `step`; None without numbers.
        epsilons: what the choice and the numbers cost.
        threshold: the χ² that distances are measured from.
        related: the families of the study, if it has any.
        charge: what is paid where relatives are protected, too; the sum of `epsilons` otherwise.
    """

    question: Question
    plan: Plan
    cases: int
    controls: int
    snps: int
    selection_spread: Fraction
    number_noise: noise.CubeNoise | None
    step: Fraction
    epsilons: tuple[Fraction, Fraction]
    threshold: Fraction
    related: Families | None = None
    charge: Fraction | None = None

    @property
    def none_score(self) -> int:
        """The score of "none of them": SNPs that are not beyond the threshold have at most 0, and
        noise lifts one of them above this in at most one of twenty releases."""
        above = float(self.selection_spread) * math.log(NONE_CHANCE_DIVISOR * self.snps)
        return math.ceil(above)

    @property
    def selection_scale(self) -> float:
        """The scale of the noise on scores, in their own unit: changes, or χ²."""
        return float(self.selection_spread * score_step(self.question.score))

    @property
    def published_noise(self) -> noise.CubeNoise | None:
        """The noise on numbers in their own unit: copies, or χ²."""
        if self.number_noise is None:
            return None
        return replace(self.number_noise, scale=self.number_noise.scale * self.step)

    @property
    def scale(self) -> float:
        """How far noise moves a number: the scale of Laplace noise that is as wide."""
        made = self.published_noise
        return 0.0 if made is None else (made.variance / 2) ** 0.5

    def spend(self) -> Spend:
        asked = self.question
        what = {
            "release": "gwas",
            "top": asked.top,
            "named": list(asked.named),
            "relation": asked.relation,
            "score": asked.score,
            "numbers": asked.numbers,
            "threshold": str(self.threshold),
            "gap": asked.gap,
            "none of them": asked.none_of_them,
            "cases": self.cases,
            "controls": self.controls,
            "snps": self.snps,
        }
        paid = sum(self.epsilons) if self.charge is None else self.charge
        return Spend(what, {self.plan.relation: Cost.pure(paid)})

    def relatives_factor(self) -> float:
        """By how much ε grows for the person of whom relatives say most, 1 without relatives."""
        if self.related is None or self.question.relation != "genotype":
            return 1.0
        several, spent = self.question.size > 1, float(sum(self.epsilons))
        return self.related.worst_factor(
            spent, linked=several, choice=self.question.top is not None
        )


def estimate_study_cost(plan: Plan, question: Question, study: Study) -> StudyCostEstimate:
    """Estimate the cost of a question, or refuse it, by public facts alone.

    Where relatives are protected the noise is that of the largest ε with which the plan holds for
    whoever has most of them in the study, and the plan's ε is paid.
    """
    estimate = replace(_estimate_noise(plan, question, study), related=study.related)
    if question.families != "protect" or study.related is None:
        return estimate
    less = study.related.protected_epsilon(
        float(sum(estimate.epsilons)), linked=question.size > 1, choice=question.top is not None
    )
    reduced = _estimate_noise(replace(plan, epsilon=less), question, study)
    paid = sum(estimate.epsilons, Fraction(0))
    return replace(reduced, plan=plan, related=study.related, charge=paid)


def _estimate_noise(plan: Plan, question: Question, study: Study) -> StudyCostEstimate:
    check_instance(plan, Plan, "plan", "a Plan, such as calibrate(…) makes")
    check_instance(question, Question, "question", "a Question")
    check_instance(study, Study, "study", "a Study, such as read_study(…) returns")
    if plan.relation != "replace" or plan.delta:
        message = (
            "a study is released under a plan for adversaries who know its size (replace "
            "neighbours), without a delta"
        )
        hint = "for example family = 'fixed-size'"
        raise InvalidInput(message, field="plan", value=plan.relation, hint=hint)
    if question.size > len(study.snps):
        raise invalid_value("top", f"at most {len(study.snps)}, the number of SNPs", question.size)
    threshold = read_threshold(choose_threshold(question), study.cases + study.controls)
    sizes = study.cases, study.controls
    field = "epsilon of the plan"
    total = Fraction(encoding.budget_units(plan.epsilon, field), encoding.EPSILON_UNITS)
    if total < MIN_RELEASE_EPSILON:
        raise invalid_value(field, f"at least {spell(MIN_RELEASE_EPSILON)}", plan.epsilon)
    parts = split_epsilon(question, total)
    change = score_sensitivity(question.score, *sizes, question.relation)
    width = selection_scale(change, parts[0], question.size) if question.top else Fraction(0)
    number_noise, step = _number_noise(question, *sizes, parts[1])
    return StudyCostEstimate(
        question,
        plan,
        *sizes,
        len(study.snps),
        selection_spread=width,
        number_noise=number_noise,
        step=step,
        epsilons=parts,
        threshold=threshold,
    )


def choose_threshold(question: Question) -> object:
    return SELECTION_THRESHOLD if question.threshold is None else question.threshold


def split_epsilon(question: Question, total: Fraction) -> tuple[Fraction, Fraction]:
    """What the choice and the numbers get, in whole units of the ledger."""
    if question.named:
        return Fraction(0), total
    if question.numbers == "nothing":
        return total, Fraction(0)
    share = CHOICE_SHARE if question.share is None else rational(question.share, "share")
    units = encoding.EPSILON_UNITS
    chosen = Fraction((share * total * units).__floor__(), units)
    return chosen, total - chosen


def _number_noise(
    question: Question, cases: int, controls: int, epsilon: Fraction
) -> tuple[noise.CubeNoise | None, Fraction]:
    """(the noise in steps, size of a step). One person has a genotype at every SNP, and each SNP's
    number moves by at most its sensitivity: noise on a cube. Where genotypes are secret, one of
    them moves the copies among cases or those among controls, so each side has all of ε."""
    if question.numbers == "nothing":
        return None, Fraction(1)
    if question.size > MAX_CUBE_DIMENSIONS:
        most = f"at most {spell(MAX_CUBE_DIMENSIONS)} SNPs with numbers"
        raise invalid_value("top" if question.top else "named SNPs", most, question.size)
    if question.numbers == "counts":
        change, step = (
            imputed_sensitivity("allele-counts", cases, controls, question.relation) / COPY_STEP,
            COPY_STEP,
        )
    else:
        slack = Fraction(4 * (cases + controls), 2**48)  # of χ² in floating point, as for scores
        whole = imputed_sensitivity("allelic-chi2", cases, controls, question.relation) + slack
        change, step = Fraction(noise.Grid(CHI2_STEP).sensitivity(whole)), CHI2_STEP
    made = noise.CubeNoise.at_epsilon(change, epsilon, question.size)
    return made.check_drawable("plan for a larger ε", "epsilon of the plan"), step


PRIVACY_UNIT = "person"
LABEL_ACCOUNT = "label"
"""The account of a study whose labels were randomised, one label a neighbour (`gwas.labels`)."""
SHOWN_DIGEST_LETTERS = 16
"""Digits of a digest that people see."""


def study_registration(study: Study, relation: str) -> Registration:
    """What a budget for a study is bound to."""
    names = _digest_counts(study, study.counts[:, :0])[:SHOWN_DIGEST_LETTERS]
    listed = f"{len(study.snps)} of digest {names}"
    pooled = f"{study.people} {_digest_counts(study, study.genotyped())}"
    if relation == "genotype":
        fixed = {"people": str(study.people), "SNPs": listed}
        source = {"rows": pooled, PEOPLE_KIND: pooled}
    else:
        fixed = {"cases": str(study.cases), "controls": str(study.controls), "SNPs": listed}
        source = {"rows": phenotype_fingerprint(study), PEOPLE_KIND: pooled}
    domains = {name: {"values": [value]} for name, value in fixed.items()}
    return Registration(privacy_unit=PRIVACY_UNIT, domains=domains, source=source)


def phenotype_fingerprint(study: Study) -> str:
    return f"{study.cases} {study.controls} {_digest_counts(study, study.counts)}"


def _digest_counts(study: Study, counts: Array) -> str:
    """A digest of the SNPs and their counts (three for each group), by the alleles' alphabet."""
    turned = counts.reshape(len(counts), -1, 3)[:, :, ::-1].reshape(counts.shape)
    lines = zip(*study.snps.columns(), counts.tolist(), turned.tolist(), strict=True)
    return _digest_lines(
        (*place, min(a1, a2), max(a1, a2), *(row if a1 <= a2 else other))
        for *place, a1, a2, row, other in lines
    )


def _digest_lines(lines: Iterable[tuple[object, ...]]) -> str:
    """A digest of lines in any order: how many there are, and the sum of their digests."""
    total = many = 0
    for line in lines:
        text = "\x1f".join(map(str, line)).encode("utf-8", "surrogatepass")
        total += int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
        many += 1
    return hashlib.sha256(f"{many} {total}".encode()).hexdigest()


def describe_relatives(estimate: StudyCostEstimate) -> list[str]:
    """What holds for relatives in the study (F31), in a sentence; nothing where there are none."""
    found = estimate.related
    if found is None:
        return []
    families = f"{found.families} {'family' if found.families == 1 else 'families'}"
    who = f"{found.people} of these people have relatives in the study ({families})"
    if estimate.question.relation != "genotype":
        return [
            f"{who}: their genomes are taken as known, and the promise is for beliefs about labels "
            "that do not come from those of relatives"
        ]
    factor = spell(estimate.relatives_factor(), 4)
    if estimate.charge is not None:
        return [f"{who}: the noise is {factor} times as large, so that the promise holds for them"]
    return [
        f"{who}, whose genotypes say something of theirs: for the worst placed of them count on "
        f"{factor} times the ε (--families protect or first)"
    ]


@dataclass(frozen=True, eq=False)
class StudyRelease:
    """What is published. Everything here may be shown.

    Attributes:
        snps: the chosen SNPs, best first; `places` are their indices in the study.
        numbers: SNPs × 2 noisy copies of A1 among cases and controls (their sum is exact where
            labels are secret), or SNPs × 1 noisy χ².
        gap: how far the chosen SNP is ahead of the next, in units of the score; None if not asked.
        all_snps: every SNP of the study, public, for drawing.
        dataset: the study's name in the ledger.
        notes: what people should be told about the budget, in sentences.
    """

    estimate: StudyCostEstimate
    snps: Snps
    places: Array
    numbers: Array
    all_snps: Snps
    dataset: str
    request: str | None
    notes: tuple[str, ...] = ()
    gap: float | None = None

    def association(self) -> Association:
        """Frequencies, p-values and odds ratios that follow from released counts."""
        if self.estimate.question.numbers != "counts":
            raise InvalidInput(
                "frequencies, p-values and odds ratios follow from counts alone, and this "
                "release has "
                f"{self.estimate.question.numbers}",
                field="numbers",
                value=self.estimate.question.numbers,
                hint='ask with numbers = "counts"',
            )
        x, y = self.numbers.T
        estimate = self.estimate
        return estimate_association(
            x,
            y,
            estimate.cases,
            estimate.controls,
            estimate.published_noise,
            pooled=estimate.question.relation != "genotype",
        )


def publish_study(
    study: Study,
    plan: Plan,
    question: Question,
    ledger: Ledger,
    dataset: str,
    request: str | None = None,
    *,
    amend: bool = False,
    new_people: bool | None = None,
) -> StudyRelease:
    """Choose SNPs and publish numbers about them, paid from a ledger.

    Args:
        amend: record that the budget goes on with this study: more people, other SNPs.
        new_people: False where a new study in a ledger that has others is refused; True records
            that nobody is in both, as the curator's word. A study that has a budget under another
            name gets no second one then; None warns of it.

    Raises:
        BudgetRefused: the plan does not fit what is left, the study was released under the other
            relation before, or is another one than the budget is for; nothing is drawn. (Under
            genotype changes other phenotypes of the same people are the same study.)
        ScanFailed: it could not be drawn; the study is suspended.
    """
    estimate = estimate_study_cost(plan, question, study)
    check_instance(ledger, Ledger, "ledger", "a Ledger")
    named = _named_snps(question, study)
    registration = study_registration(study, question.relation)
    asked_name = account_name(ledger, dataset, question.relation)
    _refuse_published_sizes(ledger, asked_name, registration)
    name = _paying_dataset(ledger, asked_name, registration, question.relation, amend)
    notes = describe_relatives(estimate)
    if name != asked_name:
        notes.append(
            f"the people of {asked_name!r} are those of dataset {name!r}, and its budget pays: the "
            "phenotypes of the same genomes share one, which says nothing of who is a case of which"
        )
    paid = request is not None and read_name(request, "request") in ledger.requests(name, request)
    if not paid:
        notes += _open_budget(ledger, name, plan, registration, amend=amend, new_people=new_people)
        # Again: someone may have registered meanwhile.
        account_name(ledger, dataset, question.relation)
    for note in notes:
        warnings.warn(note, stacklevel=2)

    def draw(_: int) -> dict[str, object]:
        return draw_answer(estimate, study, named)

    key = uuid.uuid4().hex if request is None else request
    debit = ledger.debit(name, key, _study_spend(estimate, ledger, name, study, registration))
    [answer] = ledger.answer_debits([debit], key, draw)
    chosen, places = _published_snps(study, answer)
    noisy = np.array(answer["noisy"], dtype=np.int64).reshape(len(chosen), -1)
    numbers = noisy * float(estimate.step)
    gap = answer["gap"]
    ahead = None if gap is None else gap * float(score_step(question.score))
    about = name, key, tuple(notes), ahead
    return StudyRelease(estimate, chosen, places, numbers, study.snps, *about)


def draw_answer(
    estimate: StudyCostEstimate, study: Study, named: Array | None = None
) -> dict[str, object]:
    """Draw what a release publishes, as plain data; `named` are the indices of named SNPs."""
    if estimate.question.top is None:
        chosen, gap = named if named is not None else np.zeros(0, dtype=np.int64), None
    else:
        chosen, gap = choose_snps(estimate, study.counts)
    return {
        "places": chosen.tolist(),
        "snps": study.snps.take(chosen).columns(),
        "noisy": _noisy_numbers(estimate, study.counts[chosen]),
        "gap": gap,
    }


def _published_snps(study: Study, answer: dict[str, Any]) -> tuple[Snps, Array]:
    """The SNPs of an answer as they were when it was drawn, and where they are in this study: a
    retry may bring them in another order, or with the other allele as A1."""
    chromosome, name, position, a1, a2 = answer["snps"]
    chosen = Snps(chromosome, name, np.array(position, dtype=np.int64), a1, a2)
    places = np.array(answer["places"], dtype=np.int64)
    if study.snps.take(places).columns() != chosen.columns():
        keys = zip(*study.snps.columns()[:3], strict=True)
        index = {key: place for place, key in enumerate(keys)}
        wanted = zip(chromosome, name, position, strict=True)
        places = np.array([index.get(key, -1) for key in wanted], dtype=np.int64)
    return chosen, places


def _paying_dataset(
    ledger: Ledger, name: str, registration: Registration, relation: str, amend: bool
) -> str:
    """Whose budget pays: a study's own, or the one that these people's genomes have already."""
    if relation != "genotype":
        return name
    same = [other for other in ledger.copies(name, registration) if other.endswith(f":{relation}")]
    if not same:
        return name
    if name in ledger.datasets() and ledger.budget_state(name).registered is not None:
        if amend:
            raise BudgetRefused(describe_copy(name, same[0]))
        return name
    return same[0]


def _refuse_published_sizes(ledger: Ledger, name: str, registration: Registration) -> None:
    """A release states how many cases there are: not beside one-sided labels of the same people."""
    for other in ledger.copies(name, registration):
        registered = ledger.budget_state(other).registered
        assert registered is not None  # copies are found by their registration
        if registered.registration.domains.get("labels") == {"values": ["one-sided"]}:
            message = (
                f"the labels of these people were randomised one-sidedly as dataset {other!r}, and "
                "a release would state how many cases there are: then those labels promise nothing"
            )
            raise BudgetRefused(message, field="dataset", value=name)


def _study_spend(
    estimate: StudyCostEstimate, ledger: Ledger, name: str, study: Study, registration: Registration
) -> Spend:
    """What is debited. Where phenotypes share a budget it says which one is asked, sealed, so that
    no request is answered with what another phenotype was told."""
    spend = replace(estimate.spend(), registration=registration)
    registered = ledger.budget_state(name).registered
    if estimate.question.relation != "genotype" or registered is None:
        return spend
    phenotype = registered.seal("rows", phenotype_fingerprint(study))
    return replace(spend, what={**spend.what, "phenotype": phenotype})


def _open_budget(
    ledger: Ledger,
    name: str,
    plan: Plan,
    registration: Registration,
    *,
    amend: bool,
    new_people: bool | None,
) -> list[str]:
    """Open the study's budget, or see that it is for this study; what is to be noted."""
    notes: list[str] = []
    copies = "warn" if new_people is None else "refuse"
    if name in ledger.datasets():
        if amend:
            ledger.amend(name, registration)
    elif new_people is None or _is_further_phenotype(ledger, name, registration):
        notes = [describe_copy(name, other) for other in ledger.copies(name, registration)[:1]]
        # Nobody may register these people under another name meanwhile.
        copies = "warn" if notes else "refuse"
    else:
        registration = ledger.claim_people(name, registration, new_people=new_people)
    ledger.admit(name, plan, registration=registration, copies=copies)
    return notes


def _is_further_phenotype(ledger: Ledger, name: str, registration: Registration) -> bool:
    """Whether the people are known by other phenotypes alone: under label swaps each phenotype is a
    secret of its own, and has its own budget."""
    rows = replace(registration, source={"rows": registration.source["rows"]})
    same = ledger.copies(name, registration)
    accounts = [name, *same]
    swaps = all(account.endswith(":label-swap") for account in accounts)
    return bool(same) and swaps and not ledger.copies(name, rows)


def account_name(ledger: Ledger, dataset: str, relation: str) -> str:
    """The study's name in the ledger, one per relation; levels under two relations do not add."""
    for other in (*STUDY_RELATIONS, LABEL_ACCOUNT):
        if other != relation and f"{dataset}:{other}" in ledger.datasets():
            message = (
                f"study {dataset!r} was released under the relation {other} before, and levels "
                "under two relations do not compose"
            )
            raise BudgetRefused(
                message, field="relation", value=relation, hint=f"ask under {other}"
            )
    return f"{dataset}:{relation}"


def choose_snps(estimate: StudyCostEstimate, table: Array) -> tuple[Array, int | None]:
    """Draw the indices of the SNPs that are published, best first, and the gap where it is asked
    for: what the cost estimate costs. No SNP is "none of them"."""
    asked = estimate.question
    sizes = estimate.cases, estimate.controls
    values = selection_scores(asked.score, table, asked.relation, estimate.threshold, sizes)
    if asked.top != 1 or len(values) + asked.none_of_them < 2:
        return noise.top_k(values, asked.size, estimate.selection_spread), None
    if asked.none_of_them:
        values = np.append(values, estimate.none_score)
    best, gap = noise.noisy_max_gap(values, estimate.selection_spread)
    chosen = np.array([best] if best < len(table) else [], dtype=np.int64)
    return chosen, gap if asked.gap else None


def _named_snps(question: Question, study: Study) -> Array:
    indices = {name: index for index, name in enumerate(study.snps.name)}
    for name in question.named:
        if name not in indices:
            message = f"the study has no SNP {name!r} among its {spell(len(indices))}"
            raise InvalidInput(message, field="SNP", value=name)
    return np.array([indices[name] for name in question.named], dtype=np.int64)


def _noisy_numbers(estimate: StudyCostEstimate, table: Array) -> list[list[int]]:
    """The numbers of the chosen SNPs, in steps, with exact noise."""
    made = estimate.number_noise
    if made is None or not len(table):
        return []
    people = estimate.cases, estimate.controls, estimate.question.relation
    if estimate.question.numbers == "chi2":
        values = noise.Grid(CHI2_STEP).units(imputed_chi2(table, *people))[:, None]
        drawn = made.draw().T
    else:
        values = np.stack(imputed_copies(table, *people), axis=1)
        drawn = made.draw(2).T
        if estimate.question.relation != "genotype":  # the sum is exact
            drawn[:, 1] = -drawn[:, 0]
    return [list(map(int, row)) for row in values + drawn]
