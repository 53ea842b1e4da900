"""A private release: the most associated SNPs, and numbers about them.

Contract: a plan says how much may be learnt, the ledger is debited before noise is drawn, and the
answer is stored before it is shown; a retry with the same request shows the same answer. Genotypes
that are missing count as no copy of A1, so that tables have one public size: which genotypes are
missing is private. Errors depend on public things only.
"""

from __future__ import annotations

import json
import uuid
import warnings
from dataclasses import dataclass, replace

import numpy as np

from whosin import noise
from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput
from whosin.exact import Array
from whosin.gwas.binding import binding_of
from whosin.gwas.derived import Association, association
from whosin.gwas.offer import CHI2_STEP, Question, StudyOffer, price
from whosin.gwas.reading import instance
from whosin.gwas.scoring import scores
from whosin.gwas.sensitivities import RELATIONS
from whosin.gwas.snps import Snps
from whosin.gwas.statistics import allelic_chi2
from whosin.gwas.study import Study
from whosin.gwas.tables import allele_counts
from whosin.ledger import Ledger, halting
from whosin.ledger.binding import Binding
from whosin.ledger.names import read_name
from whosin.ledger.registration import copied


@dataclass(frozen=True, eq=False)
class StudyRelease:
    """What is published. Everything here may be shown.

    Attributes:
        snps: the chosen SNPs, best first; `places` are their indices in the study.
        numbers: SNPs × 2 noisy copies of A1 among cases and controls, or SNPs × 1 noisy χ².
        all_snps: every SNP of the study, public, for drawing.
        dataset: the study's name in the ledger.
        notes: what people should be told about the budget, in sentences.
    """

    offer: StudyOffer
    snps: Snps
    places: Array
    numbers: Array
    all_snps: Snps
    dataset: str
    request: str | None
    notes: tuple[str, ...] = ()

    def association(self) -> Association:
        """Frequencies, p-values and odds ratios that follow from released counts."""
        if self.offer.question.numbers != "counts":
            raise InvalidInput(
                "numbers", "counts, to derive these from", self.offer.question.numbers
            )
        x, y = self.numbers.T
        return association(x, y, self.offer.cases, self.offer.controls, self.offer.scale)


def publish(
    study: Study,
    plan: Plan,
    question: Question,
    ledger: Ledger,
    dataset: str,
    request: str | None = None,
    *,
    amend: bool = False,
    copies: str = "warn",
) -> StudyRelease:
    """Choose SNPs and publish numbers about them, paid from a ledger.

    Args:
        amend: record that the budget goes on with this study: more people, other SNPs.
        copies: "refuse" where a study that has a budget under another name may not get another one.

    Raises:
        BudgetRefused: the plan does not fit what is left, the study was released under the other
            relation before, or is another one than the budget is for; nothing is drawn.
        ScanFailed: it could not be drawn; the study is halted.
    """
    offered = price(plan, question, study)
    instance(ledger, Ledger, "ledger", "a Ledger")
    table = study.complete()
    named = _named(question, study)
    name = account(ledger, dataset, question.relation)
    binding = binding_of(study)
    notes: tuple[str, ...] = ()
    if request is None or not _paid(ledger, name, request):
        notes = _opened(ledger, name, plan, binding, amend=amend, copies=copies)
        account(ledger, dataset, question.relation)  # again: someone may have registered meanwhile

    def draw() -> dict[str, object]:
        chosen = named if question.top is None else choose(offered, table)
        return {"places": chosen.tolist(), "noisy": _noisy(offered, table[chosen])}

    key = uuid.uuid4().hex if request is None else request
    debit = ledger.debit(name, key, replace(offered.charge(), binding=binding))
    if debit.answer is not None:
        answer = json.loads(debit.answer)
    else:
        answer = ledger.store(debit, halting.drawn(ledger, debit, key, draw))
    chosen_indices = np.array(answer["places"], dtype=np.int64)
    noisy = np.array(answer["noisy"], dtype=np.int64).reshape(question.size, -1)
    numbers = noisy * float(offered.step)
    chosen = study.snps.take(chosen_indices)
    return StudyRelease(offered, chosen, chosen_indices, numbers, study.snps, name, key, notes)


def _opened(
    ledger: Ledger, name: str, plan: Plan, binding: Binding, *, amend: bool, copies: str
) -> tuple[str, ...]:
    """Open the study's budget, or see that it is for this study; what is to be noted."""
    notes: tuple[str, ...] = ()
    if name in ledger.datasets():
        if amend:
            ledger.amend(name, binding)
    else:
        notes = tuple(copied(name, other) for other in ledger.copies(name, binding)[:1])
    ledger.admit(name, plan, binding=binding, copies=copies)
    for note in notes:
        warnings.warn(note, stacklevel=3)
    return notes


def account(ledger: Ledger, dataset: str, relation: str) -> str:
    """The study's name in the ledger, one per relation; levels under two relations do not add."""
    for other in RELATIONS:
        if other != relation and f"{dataset}:{other}" in ledger.datasets():
            raise BudgetRefused(
                f"study {dataset!r} was released under {other} before; its budget is kept for that "
                "relation, and levels under two relations do not add"
            )
    return f"{dataset}:{relation}"


def _paid(ledger: Ledger, name: str, request: str) -> bool:
    """Whether this request has been paid for: then it needs no more budget."""
    return read_name(request, "request") in ledger.requests(name, request)


def choose(offered: StudyOffer, table: Array) -> Array:
    """Draw the indices of the SNPs that are published, best first: what the offer prices."""
    asked = offered.question
    values = scores(asked.score, table, asked.relation, asked.threshold)
    return noise.top_k(values, asked.size, offered.selection_scale)


def _named(question: Question, study: Study) -> Array:
    """The indices of SNPs that were named."""
    indices = {name: index for index, name in enumerate(study.snps.name)}
    for name in question.named:
        if name not in indices:
            raise InvalidInput("SNP", f"one of the study's {len(indices):,}", repr(name))
    return np.array([indices[name] for name in question.named], dtype=np.int64)


def _noisy(offered: StudyOffer, table: Array) -> list[list[int]]:
    """The numbers of the chosen SNPs, in steps, with exact noise."""
    if offered.question.numbers == "nothing":
        return []
    if offered.question.numbers == "counts":
        values = np.stack(allele_counts(table), axis=1)
    else:
        values = noise.Grid(CHI2_STEP).units(allelic_chi2(table))[:, None]
    noisy: list[list[int]] = (
        values + noise.discrete_laplace(offered.spread, values.shape)
    ).tolist()
    return noisy
