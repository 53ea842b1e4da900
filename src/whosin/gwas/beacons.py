"""Beacons: whether anyone has an allele, what each answer says of a person, and a budget for them.

A beacon of N people answers yes where at least one of their 2N alleles is the one asked about, of
frequency f in the population. An adversary who knows the genomes of at most κ of the others, and
takes the rest as drawn from the population, learns from an answer (F32), with q = (1−f)^(2(N−κ)):

- *yes*, of someone who carries the allele: a likelihood ratio of (1 − d q/(1−f)²)/(1 − q), where d
  is how probably a carrier's allele is missed; 1/(1−q) without calling errors;
- *no*, of someone who does not: 1/(1−f)², since one genome less could have had it; of a carrier
  d/(1−f)², and the belief falls to 0 without calling errors.

So a yes costs the logarithm of the first and a no −2 ln(1−f), once: asked again, the stored answer
is shown. This is about positive membership alone: a no may show that someone is not in. Costs add
for alleles that are independent or occur together, and not for those that exclude each other: a SNP
is asked about one of its alleles. Where f is known as a range, a yes costs by its low end, a no by
its high end. Against someone who may know all others there is no bound.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from whosin.calibration import Plan
from whosin.documents import MAX_STUDY_BYTES, read_words
from whosin.errors import (
    BudgetRefused,
    InvalidInput,
    UnknownName,
    invalid_value,
    read_path,
    read_whole,
)
from whosin.exact import ball, ball_up, certificate_precision, log_up, rational, read_ranged
from whosin.gwas.people import check_instance
from whosin.gwas.release import study_registration
from whosin.gwas.study import Study
from whosin.ledger import Cost, Ledger, Spend
from whosin.ledger.registration import Registration
from whosin.ledger.registry import describe_copy

BEACON_ACCOUNT = "beacon"
BEACON_RELATIONS = ("replace", "add-remove")
Allele = tuple[str, str]
"""A SNP's name and one of its alleles."""


@dataclass(frozen=True)
class Beacon:
    """What is known of a beacon.

    Args:
        people: N, how many people it has, the one in question among them.
        known: κ, of how many others the adversary knows the genome at most.
        error: d, how probably the allele of a carrier is missed; the same for a repeat.
        relation: "replace" where everybody knows N; "add-remove" where someone is in or not.
    """

    people: int
    known: int = 0
    error: object = 0
    relation: str = "replace"

    def __post_init__(self) -> None:
        read_whole(self.people, "people", 2)
        read_whole(self.known, "known", 0)
        read_ranged(self.error, "calling error", "at least 0 and below 1")
        if self.relation not in BEACON_RELATIONS:
            raise UnknownName("relation", str(self.relation), BEACON_RELATIONS)
        if self.unknown < 1:
            message = (
                f"someone who knows {self.known} of the {self.people} people can be sure of the "
                "next one: no number of answers keeps a promise"
            )
            raise InvalidInput(message, field="known", value=self.known)

    @property
    def unknown(self) -> int:
        """Whose genomes may explain a yes without the person: N − κ, or N − 1 − κ."""
        return self.people - self.known - (self.relation == "add-remove")

    def ratio(self, frequency: object, *, carrier: bool, answer: bool) -> Any:
        """Pr[answer | in] / Pr[answer | not in] for a person, as a ball."""
        rare = read_ranged(frequency, "frequency", "strictly between 0 and 1")
        missed = rational(self.error)
        others = self.unknown - (self.relation == "replace")  # beside the person, if in
        with certificate_precision():
            if others == self.unknown and not carrier:  # the answer is about the others alone
                return ball(1)
            gone = 1 - ball(rare)
            with_none = gone ** (2 * others) * (ball(missed) if carrier else 1)
            without_none = gone ** (2 * self.unknown)
            if answer:
                return (1 - with_none) / (1 - without_none)
            return with_none / without_none

    def cost(self, frequencies: Sequence[object], *, answer: bool) -> float:
        """What an answer costs: the most that it can raise anyone's odds, as a logarithm, for a
        frequency between the least and the largest of these; rounded up."""
        listed = sorted(
            read_ranged(f, "frequency", "strictly between 0 and 1") for f in frequencies
        )
        if not listed:
            raise InvalidInput("an allele has no frequency", field="frequency")
        f = listed[0] if answer else listed[-1]
        both = [self.ratio(f, carrier=carrier, answer=answer) for carrier in (True, False)]
        with certificate_precision():
            return max(0.0, *(ball_up(each.log()) for each in both if each > 0))

    def belief(self, prior: object, answers: Sequence[tuple[object, bool, bool]]) -> float:
        """How sure one is that someone is in, after answers about independent alleles.

        Args:
            prior: how sure one was before.
            answers: for each, the allele's frequency, whether the person carries it, and whether
                the answer was yes.
        """
        before = read_ranged(prior, "prior", "strictly between 0 and 1")
        with certificate_precision():
            odds = ball(before / (1 - before))
            for f, carrier, answer in answers:
                odds *= self.ratio(f, carrier=carrier, answer=answer)
            return min(1.0, ball_up(odds / (1 + odds)))

    def most_answers(self, epsilon: float, frequency: object, *, answer: bool) -> float:
        """How many such answers an ε pays for; infinite where they are free."""
        cost = self.cost([frequency], answer=answer)
        return math.floor(epsilon / cost) if cost > 0 else math.inf


def check_one_sided(plan: Plan) -> None:
    """Refuse a plan whose target speaks of absence, too: a no may show that someone is not in."""
    if rational(plan.epsilon) > rational(log_up(plan.target.one_sided_ratio(*plan.beliefs))):
        message = "a beacon keeps no promise about who is not in it"
        hint = "use a gamma, posterior or gain"
        raise InvalidInput(message, field="target", value=plan.target, hint=hint)


def read_allele_frequencies(path: str | Path) -> dict[Allele, tuple[Fraction, ...]]:
    """Public frequencies: SNP, allele, and the allele's frequency in one population or several."""
    file = read_path(path, "frequencies")
    rows = read_words(file, MAX_STUDY_BYTES)
    if rows[0][0].lstrip("#").upper() == "SNP":
        rows = rows[1:]
    if any(len(row) < 3 for row in rows):
        message = f"some lines of {file.name} do not have a SNP, an allele and a frequency"
        raise InvalidInput(message, field=file.name)
    field, between = f"frequency in {file.name}", "strictly between 0 and 1"
    found = {
        (row[0], row[1]): tuple(read_ranged(word, field, between) for word in row[2:])
        for row in rows
    }
    if len(found) < len(rows):
        message = f"{file.name} has an allele more than once"
        raise InvalidInput(message, field=file.name, hint="write all its frequencies on one line")
    return found


@dataclass(frozen=True)
class BeaconAnswer:
    """An answer, what it cost when it was first given, and whether that was before."""

    snp: str
    allele: str
    present: bool
    cost: float
    again: bool


def answer_beacon(
    study: Study,
    plan: Plan,
    beacon: Beacon,
    alleles: Sequence[Allele],
    frequencies: Mapping[Allele, Sequence[Fraction]],
    ledger: Ledger,
    dataset: str,
) -> list[BeaconAnswer]:
    """Whether anyone of the study has each of these alleles, paid from a ledger.

    Whether the budget is enough is seen before the genotypes are looked at, by the dearer answer;
    the answer given is what is paid.

    Raises:
        BudgetRefused: the next answer might cost more than is left; those before it are stored.
    """
    check_instance(study, Study, "study", "a Study, such as read_study(…) returns")
    if beacon.people != study.people:
        raise invalid_value("people", f"{study.people}, as the study has", beacon.people)
    places = {name: place for place, name in enumerate(study.snps.name)}
    for each in alleles:
        _check_allele(study, places, each, frequencies)
    genotype = study_registration(study, "genotype")
    terms = {"known": str(beacon.known), "calling error": str(rational(beacon.error))}
    domains = {**genotype.domains, **{key: {"values": [each]} for key, each in terms.items()}}
    registration = replace(genotype, domains=domains)
    name = f"{dataset}:{BEACON_ACCOUNT}"
    check_one_sided(plan)
    same = ledger.copies(name, registration)
    beacons = (each for each in same if each.endswith(BEACON_ACCOUNT))
    if name not in ledger.datasets() and (other := next(beacons, None)):
        raise BudgetRefused(describe_copy(name, other), field="dataset", value=name)
    ledger.admit(name, plan, resume=True, registration=registration, new_people=same)
    stored = ledger.record(name)[2]
    counts = study.genotyped()
    made = []
    for asked in alleles:
        snp, allele = asked
        request = f"beacon {snp}:{allele}"
        again = request in stored
        if not again:
            _refuse_other_allele(ledger, name, snp, request)
            costs = {said: beacon.cost(frequencies[asked], answer=said) for said in (True, False)}
            ledger.check(name, [_beacon_spend(request, max(costs.values()), registration)])
            none, one, two = counts[places[snp]].tolist()
            first = allele == study.snps.a1[places[snp]]
            present = one + (two if first else none) > 0
            debit = ledger.debit(
                name, request, _beacon_spend(request, costs[present], registration)
            )
            kept = ledger.store(debit, {"present": present, "cost": costs[present]})
            stored = {**stored, request: json.dumps(kept)}
        kept = json.loads(stored[request])
        made.append(BeaconAnswer(snp, allele, bool(kept["present"]), float(kept["cost"]), again))
    return made


def _beacon_spend(request: str, cost: float, registration: Registration) -> Spend:
    words = "at most some people known: positive membership alone"
    return Spend(
        {"release": "beacon", "allele": request},
        {"replace": Cost.pure(cost)},
        guarantee=words,
        registration=registration,
    )


def _check_allele(
    study: Study,
    places: Mapping[str, int],
    allele: Allele,
    frequencies: Mapping[Allele, Sequence[Fraction]],
) -> None:
    snp, letter = allele
    if snp not in places:
        message = f"the study has no SNP {snp!r}"
        raise InvalidInput(message, field="allele", value=snp)
    here = study.snps.a1[places[snp]], study.snps.a2[places[snp]]
    if letter not in here:
        message = f"{snp} has the alleles {here[0]} and {here[1]}, and not {letter!r}"
        raise InvalidInput(message, field="allele", value=letter)
    if allele not in frequencies:
        message = f"there is no public frequency of {snp}:{letter}, and without one no cost"
        raise InvalidInput(message, field="frequencies", value=f"{snp}:{letter}")


def _refuse_other_allele(ledger: Ledger, name: str, snp: str, request: str) -> None:
    """Alleles that exclude each other: their costs do not add."""
    start = f"beacon {snp}:"
    if other := sorted(ledger.requests(name, start) - {request}):
        message = (
            f"{other[0].removeprefix('beacon ')} was answered before, and what two alleles of one "
            "SNP say together is more than the sum of their costs"
        )
        raise BudgetRefused(message, field="allele", value=snp)
