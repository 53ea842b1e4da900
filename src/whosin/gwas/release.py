"""A private release of a study: what it is registered as, what is chosen, and what is published.

The ledger is debited before noise is drawn, and the answer is stored before it is shown; a
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
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from whosin import noise
from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, spell, warn_caller
from whosin.exact import Array, exact_fraction
from whosin.gwas.association import (
    LINEAR_RELATIONS,
    STUDY_RELATIONS,
    Association,
    estimate_association,
)
from whosin.gwas.linear import StratifiedStudy
from whosin.gwas.people import Loci, Snps, check_instance, imputed_copies
from whosin.gwas.question import CHI2_STEP, Question, StudyCostEstimate, estimate_study_cost
from whosin.gwas.scores import imputed_chi2, score_step, selection_scores
from whosin.gwas.study import Study
from whosin.gwas.traits import Effects, TraitStudy, estimate_effects
from whosin.ledger import Ledger, Spend, encoding
from whosin.ledger.encoding import read_name
from whosin.ledger.registration import PEOPLE_KIND, Registration
from whosin.ledger.registry import describe_copy

PRIVACY_UNIT = "person"
SHOWN_DIGEST_LETTERS = 16
"""Digits of a digest that people see."""
REQUEST_PREFIX = "study-"
"""What the names of questions about studies begin with."""


def study_registration(study: Study, relation: str) -> Registration:
    """What a budget for a study is bound to: all of its SNPs, whichever of them are asked for."""
    strata = study.strata_digest() if isinstance(study, StratifiedStudy) else ""
    phenotype, people = phenotype_fingerprint(study), study.cases + study.controls
    study = study.origin or study
    names = _digest_counts(study, study.counts[:, :0])[:SHOWN_DIGEST_LETTERS]
    listed = f"{len(study.snps)} of digest {names}"
    pooled = f"{study.people} {_digest_counts(study, study.genotyped())}"
    if relation == "genotype":
        fixed = {"people": str(study.people), "SNPs": listed}
        source = {"rows": pooled, PEOPLE_KIND: pooled}
    else:
        fixed = {"cases": str(study.cases), "controls": str(study.controls), "SNPs": listed}
        source = {"rows": phenotype, PEOPLE_KIND: pooled}
    if relation in ("label", "trait"):  # nobody is a case, or their number is secret
        fixed = {"people": str(people), "SNPs": listed}
    if relation == "stratum-swap":
        fixed["strata"] = strata
    domains = {name: {"values": [value]} for name, value in fixed.items()}
    return Registration(privacy_unit=PRIVACY_UNIT, domains=domains, source=source)


def phenotype_fingerprint(study: Study) -> str:
    """Names who is a case, or the values of a quantitative trait, whatever range they are clamped
    to."""
    values = f" trait {study.digest}" if isinstance(study, TraitStudy) else ""
    study = study.origin or study
    if values:  # the file's cases and controls mean nothing
        pooled = study.counts[:, :3] + study.counts[:, 3:]
        return f"{study.cases + study.controls} {_digest_counts(study, pooled)}{values}"
    return f"{study.cases} {study.controls} {_digest_counts(study, study.counts)}"


def _digest_counts(study: Study, counts: Array) -> str:
    """A digest of the SNPs and their counts (three for each group), by the alleles' alphabet and in
    any order: how many there are, and the sum of their digests."""
    turned, total = counts.reshape(len(counts), -1, 3)[:, :, ::-1].reshape(counts.shape), 0
    lines = zip(*study.snps.columns(), counts.tolist(), turned.tolist(), strict=True)
    for *place, a1, a2, row, other in lines:
        line = *place, min(a1, a2), max(a1, a2), *(row if a1 <= a2 else other)
        text = "\x1f".join(map(str, line)).encode("utf-8", "surrogatepass")
        total += int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
    return hashlib.sha256(f"{len(counts)} {total}".encode()).hexdigest()


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
        loci: the names of the chosen loci, if loci were asked for; without numbers no SNP is named.
        factors: how many times larger the sampling variance of copies is, by the share of males.
        all_snps: every SNP of the study, public, for drawing.
        public: what is public about effects of a quantitative trait (`TraitStudy.effect_numbers`).
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
    loci: tuple[str, ...] | None = None
    factors: Array | float = 1.0
    public: dict[str, list[float]] | None = None

    def effects(self) -> Effects:
        """Effects of a quantitative trait that follow from released numbers."""
        estimate = self.estimate
        noise, deviation = estimate.published_noise, estimate.trait_deviation
        if self.public is None or noise is None or deviation is None:
            message = "this release has no effects of a quantitative trait"
            raise InvalidInput(
                message, field="numbers", value=estimate.question.numbers, hint="ask for effects"
            )
        about = self.public, estimate.cases, deviation, noise, self.factors
        return estimate_effects(self.numbers, *about)

    def association(self) -> Association:
        """Frequencies, p-values and odds ratios that follow from released counts."""
        estimate, known = self.estimate, self.estimate.question.numbers
        if known != "counts":
            message = f"frequencies, p-values and odds ratios follow from counts, not from {known}"
            hint = 'ask with numbers = "counts"'
            raise InvalidInput(message, field="numbers", value=known, hint=hint)
        x, y = self.numbers.T
        return estimate_association(
            x,
            y,
            estimate.cases,
            estimate.controls,
            estimate.published_noise,
            pooled=estimate.question.relation != "genotype",
            inflation=self.factors,
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
    new_people: bool = False,
) -> StudyRelease:
    """Choose SNPs and publish numbers about them, paid from a ledger.

    Args:
        request: a name for this question, which is paid once. By default it follows from question,
            plan and study: asked again, the stored answer is shown. A new name pays again.
        amend: record that the budget goes on with this study: more people, other SNPs.
        new_people: record that nobody is in another study of the ledger, as the curator's word. A
            new study beside one is refused without it, and people who have a budget under another
            name get no second one.

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
    name = paying_dataset(ledger, asked_name, registration, question.relation, amend)
    notes = describe_relatives(estimate)
    if name != asked_name:
        notes.append(
            f"the people of {asked_name!r} are those of dataset {name!r}, and its budget pays: the "
            "phenotypes of the same genomes share one, which says nothing of who is a case of which"
        )
    asked_of = estimate, study, registration
    key = _name_request(ledger, name, *asked_of) if request is None else request
    if key is not None and read_name(key, "request") in ledger.requests(name, key):
        if request is None:
            notes.append(
                f"this was asked before, as request {key}: the stored answer is shown, and nothing "
                "more is spent; a request with another name asks anew, and pays"
            )
    else:
        notes += _open_budget(ledger, name, plan, registration, amend=amend, new_people=new_people)
        # Again: someone may have registered meanwhile.
        account_name(ledger, dataset, question.relation)
    for note in notes:
        warn_caller(note)

    def draw(_: int) -> dict[str, object]:
        return draw_answer(estimate, study, named)

    if request is None:  # the study is registered by now, which its name depends on
        key = _name_request(ledger, name, *asked_of)
    assert key is not None
    debit = ledger.debit(name, key, _study_spend(ledger, name, *asked_of))
    [answer] = ledger.answer_debits([debit], key, draw)
    chosen, places = _published_snps(study, answer)
    noisy = np.array(answer["noisy"], dtype=np.int64)
    noisy = noisy.reshape(len(chosen), noisy.size // max(len(chosen), 1))
    numbers = noisy * float(estimate.step)
    gap = answer["gap"]
    ahead = None if gap is None else gap * float(score_step(question.score))
    loci = None if answer["loci"] is None else tuple(answer["loci"])
    factors = np.array(answer["factors"], dtype=float)
    about = name, key, tuple(notes), ahead, loci, factors, answer.get("public")
    return StudyRelease(estimate, chosen, places, numbers, study.snps, *about)


def draw_answer(
    estimate: StudyCostEstimate, study: Study, named: Array | None = None
) -> dict[str, object]:
    """Draw what a release publishes, as plain data; `named` are the indices of named SNPs."""
    loci: list[str] | None = None
    gap = None
    if estimate.question.top is None:
        chosen = np.zeros(0, dtype=np.int64) if named is None else named
    elif estimate.question.loci is None:
        chosen, gap = _choose_largest(estimate, score_study(estimate, study))
    else:
        chosen, gap, loci = _choose_loci(estimate, study, estimate.question.loci)
    factors = study.variance_factors()[chosen]
    if isinstance(study, TraitStudy):
        noisy, public = _noisy_effects(estimate, study, chosen)
    else:
        noisy, public = _noisy_numbers(estimate, study.counts[chosen], factors), None
    return {
        "places": chosen.tolist(),
        "snps": study.snps.take(chosen).columns(),
        "noisy": noisy,
        "public": public,
        "gap": gap,
        "loci": loci,
        "factors": factors.tolist(),
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


def paying_dataset(
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


def find_paid_request(
    ledger: Ledger, dataset: str, estimate: StudyCostEstimate, study: Study, request: str | None
) -> str | None:
    """The request under which this was paid for before, whose answer is shown again; None if it
    would be paid for now."""
    relation = estimate.question.relation
    registration = study_registration(study, relation)
    name = paying_dataset(ledger, f"{dataset}:{relation}", registration, relation, amend=False)
    asked = request or _name_request(ledger, name, estimate, study, registration)
    return asked if asked is not None and asked in ledger.requests(name, asked) else None


def _name_request(
    ledger: Ledger,
    name: str,
    estimate: StudyCostEstimate,
    study: Study,
    registration: Registration,
) -> str | None:
    """The name of a question about a study under a plan; None where the ledger does not know the
    dataset. It is made of what the history shows anyway."""
    if name not in ledger.datasets():
        return None
    registered = ledger.budget_state(name).registered
    table = None if registered is None else registered.seal_table(registration).entry()
    asked = _study_spend(ledger, name, estimate, study, registration).what
    data = [asked, estimate.plan.terms(), table and {**table, "apart_from": None}]
    return REQUEST_PREFIX + encoding.digest_text(encoding.canonical_json(data))[:32]


def _study_spend(
    ledger: Ledger, name: str, estimate: StudyCostEstimate, study: Study, registration: Registration
) -> Spend:
    """What is debited. Where phenotypes share a budget it says which one is asked, sealed, so that
    no request is answered with what another phenotype was told."""
    spend = replace(estimate.spend(), registration=registration)
    if study.origin is not None:
        part = _digest_counts(study, study.counts[:, :0])[:SHOWN_DIGEST_LETTERS]
        spend = replace(spend, what={**spend.what, "SNPs of digest": part})
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
    new_people: bool,
) -> list[str]:
    """Open the study's budget, or see that it is for this study; what is to be noted."""
    known, same = name in ledger.datasets(), ledger.copies(name, registration)
    further = not known and _is_further_phenotype(ledger, name, registration)
    said = same if further or known else new_people  # accounts share people
    ledger.admit(name, plan, registration=registration, amend=amend and known, new_people=said)
    return [describe_copy(name, other) for other in same[:1] if further]


def _is_further_phenotype(ledger: Ledger, name: str, registration: Registration) -> bool:
    """Whether the people are known by other phenotypes alone: under label swaps, and where a trait
    is secret, each phenotype is a secret of its own, and has its own budget."""
    rows = replace(registration, source={"rows": registration.source["rows"]})
    same = ledger.copies(name, registration)
    accounts = [name, *same]
    swaps = all(account.endswith((":label-swap", ":trait")) for account in accounts)
    return bool(same) and swaps and not ledger.copies(name, rows)


def account_name(ledger: Ledger, dataset: str, relation: str) -> str:
    """The study's name in the ledger, one per relation; levels under two relations do not add."""
    for other in (*STUDY_RELATIONS, *LINEAR_RELATIONS):
        if other != relation and f"{dataset}:{other}" in ledger.datasets():
            message = (
                f"study {dataset!r} was released under the relation {other} before, and levels "
                "under two relations do not compose"
            )
            raise BudgetRefused(
                message, field="relation", value=relation, hint=f"ask under {other}"
            )
    return f"{dataset}:{relation}"


def score_study(estimate: StudyCostEstimate, study: Study) -> Array:
    """The scores of a study's SNPs, within strata and beside covariates if it has them.

    Sampling makes the χ² of a SNP on X larger by a factor (`Study.variance_factors`; linear scores
    have σ from the genotypes themselves). It is chosen by as many times the threshold, or by a χ²
    that is so much smaller. Neither moves further than before: a distance to any threshold moves by
    1, and whole numbers that differ by at most k still do so after a division and rounding down.
    """
    asked = estimate.question
    sizes = study.cases, study.controls
    if asked.score == "linear" and isinstance(study, StratifiedStudy):
        return study.terms(asked.relation).scores(estimate.threshold, sum(sizes))
    given = asked.score, study.counts, asked.relation
    values = selection_scores(*given, estimate.threshold, sizes)
    factors = study.variance_factors()
    wide = np.flatnonzero(factors != 1)
    if asked.score == "linear" or not len(wide):
        return values
    most = exact_fraction(float(factors[wide].max()))
    if asked.score == "distance":
        beyond = min(estimate.threshold * most, Fraction(2 * sum(sizes)))
        given = asked.score, study.counts[wide], asked.relation
        values[wide] = selection_scores(*given, beyond, sizes)
    else:
        values[wide] = np.floor(values[wide] / float(most)).astype(values.dtype)
    return values


def _choose_largest(estimate: StudyCostEstimate, values: Array) -> tuple[Array, int | None]:
    """Draw the indices of the largest scores, best first, and the gap where it is asked for: what
    the cost estimate costs. None is "none of them"."""
    asked = estimate.question
    if asked.top != 1 or len(values) + asked.none_of_them < 2:
        return noise.top_k(values, asked.size, estimate.selection_spread), None
    candidates = np.append(values, estimate.none_score) if asked.none_of_them else values
    best, gap = noise.noisy_max_gap(candidates, estimate.selection_spread)
    chosen = np.array([best] if best < len(values) else [], dtype=np.int64)
    return chosen, gap if asked.gap else None


def _choose_loci(
    estimate: StudyCostEstimate, study: Study, loci: Loci
) -> tuple[Array, int | None, list[str]]:
    """(the best SNP of each chosen locus where numbers are published, the gap, the loci's names).
    One person has genotypes in all of them, so their choices' costs add up."""
    scores = score_study(estimate, study)
    chosen, gap = _choose_largest(estimate, loci.largest(scores))
    names = [loci.names[locus] for locus in chosen]
    leads = []
    if estimate.lead_spread:
        for locus in chosen:
            members = loci.members(int(locus))
            leads.append(members[noise.noisy_max(scores[members], estimate.lead_spread)])
    return np.array(leads, dtype=np.int64), gap, names


def _named_snps(question: Question, study: Study) -> Array:
    indices = {name: index for index, name in enumerate(study.snps.name)}
    for name in question.named:
        if name not in indices:
            message = f"the study has no SNP {name!r} among its {spell(len(indices))}"
            raise InvalidInput(message, field="SNP", value=name)
    return np.array([indices[name] for name in question.named], dtype=np.int64)


def _noisy_effects(
    estimate: StudyCostEstimate, study: TraitStudy, chosen: Array
) -> tuple[list[list[int]], dict[str, list[float]] | None]:
    """The effects of the chosen SNPs, in steps, with exact noise, and what is public of them."""
    made = estimate.number_noise
    if made is None or not len(chosen):
        return [], None
    values, public = study.effect_numbers(chosen, estimate.question.relation)
    drawn = made.draw().reshape(-1)[: values.size].reshape(values.shape)
    return [list(map(int, row)) for row in values + drawn], public


def _noisy_numbers(estimate: StudyCostEstimate, table: Array, factors: Array) -> list[list[int]]:
    """The numbers of the chosen SNPs, in steps, with exact noise. A χ² is published over its
    factor, which is at least 1."""
    made = estimate.number_noise
    if made is None or not len(table):
        return []
    people = estimate.cases, estimate.controls, estimate.question.relation
    if estimate.question.numbers == "chi2":
        values = noise.Grid(CHI2_STEP).units(imputed_chi2(table, *people) / factors)[:, None]
        drawn = made.draw().T
    else:
        values = np.stack(imputed_copies(table, *people), axis=1)
        drawn = made.draw(2).T
        if estimate.question.relation != "genotype":  # the sum is exact
            drawn[:, 1] = -drawn[:, 0]
    return [list(map(int, row)) for row in values + drawn]
