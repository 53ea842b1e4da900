"""A private release: the most associated SNPs, and numbers about them.

Contract: a plan says how much may be learnt, the ledger is debited before noise is drawn, and the
answer is stored before it is shown; a retry with the same request shows the same answer. Genotypes
that are missing count as no copy of A1, so that tables have one public size: which genotypes are
missing is private. Errors depend on public things only.

The plan's ε is spent whole: all of it on the choice, or half on the choice and half on numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin import noise
from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, UnknownName
from whosin.exact import Array, rational
from whosin.gwas.scoring import GENOME_WIDE, SCORES, Scores, scores, selection_scale
from whosin.gwas.sensitivities import RELATIONS, check_relation, sensitivity
from whosin.gwas.snps import Snps
from whosin.gwas.statistics import allelic_chi2
from whosin.gwas.study import Study
from whosin.gwas.tables import allele_counts
from whosin.gwas.threshold import read_threshold
from whosin.ledger import Charge, Cost, Ledger, units

NUMBERS = ("counts", "chi2", "nothing")
CHI2_STEP = Fraction(1, 100)


@dataclass(frozen=True)
class Question:
    """What is asked of a study.

    Args:
        top: how many SNPs.
        relation: between which studies the plan's ε is measured: "genotype" or "label-swap".
        score: choose by "distance" to the threshold, or by "chi2".
        numbers: also publish allele "counts" (and what follows from them), "chi2", or "nothing".
        threshold: the χ² from which on a SNP is significant.
    """

    top: int
    relation: str
    score: str = "distance"
    numbers: str = "counts"
    threshold: object = GENOME_WIDE

    def __post_init__(self) -> None:
        check_relation(self.relation)
        if self.score not in SCORES:
            raise UnknownName("score", str(self.score), SCORES)
        if self.numbers not in NUMBERS:
            raise UnknownName("numbers", str(self.numbers), NUMBERS)
        if isinstance(self.top, bool) or not isinstance(self.top, int) or self.top < 1:
            raise InvalidInput("top", "a whole number of at least 1", self.top)
        rational(self.threshold, "threshold")


@dataclass(frozen=True, eq=False)
class Release:
    """What is published. Everything here may be shown.

    Attributes:
        snps: the chosen SNPs, best first; `places` are their indices in the study.
        numbers: SNPs × 2 noisy copies of A1 among cases and controls, or SNPs × 1 noisy χ².
        scale: of the noise on the numbers, in their own unit.
        epsilons: what the choice and the numbers cost.
        all_snps: every SNP of the study, public, for drawing.
    """

    question: Question
    plan: Plan
    cases: int
    controls: int
    snps: Snps
    places: Array
    numbers: Array
    scale: float
    selection_scale: float
    epsilons: tuple[float, float]
    all_snps: Snps
    dataset: str
    request: str | None


def release(
    study: Study,
    plan: Plan,
    question: Question,
    ledger: Ledger,
    dataset: str,
    request: str | None = None,
) -> Release:
    """Choose SNPs and publish numbers about them, paid from a ledger.

    Raises:
        BudgetRefused: the plan does not fit what is left, or the study was released under the
            other relation before; nothing is drawn.
    """
    check(plan, question, study)
    chosen_cost, number_cost = _split(plan, question.numbers)
    table = study.complete()
    ranked = scores(
        question.score, table, study.cases, study.controls, question.relation, question.threshold
    )
    width = selection_scale(ranked.sensitivity, chosen_cost, question.top)
    spread, step = _number_noise(question, study.cases, study.controls, number_cost)
    name = account(ledger, dataset, question.relation)
    charge = Charge(_what(question, study), {plan.relation: Cost.pure(chosen_cost + number_cost)})
    if request is None or not _answered(ledger, name, request):
        ledger.admit(name, plan)

    def draw() -> dict[str, object]:
        places = _choose(ranked, question.top, width)
        return {"places": places.tolist(), "noisy": _noisy(question, table[places], spread)}

    answer = ledger.answer(name, charge, draw, request)
    places = np.array(answer["places"], dtype=np.int64)
    noisy = np.array(answer["noisy"], dtype=np.int64).reshape(question.top, -1)
    return Release(
        question=question,
        plan=plan,
        cases=study.cases,
        controls=study.controls,
        snps=study.snps.take(places),
        places=places,
        numbers=noisy * float(step),
        scale=float(spread * step),
        selection_scale=width,
        epsilons=(float(chosen_cost), float(number_cost)),
        all_snps=study.snps,
        dataset=name,
        request=request,
    )


def account(ledger: Ledger, dataset: str, relation: str) -> str:
    """The study's name in the ledger, one a relation; levels under two relations do not add."""
    for other in RELATIONS:
        if other != relation and f"{dataset}:{other}" in ledger.datasets():
            raise BudgetRefused(
                f"study {dataset!r} was released under {other} before; its budget is kept for that "
                "relation, and levels under two relations do not add"
            )
    return f"{dataset}:{relation}"


def _answered(ledger: Ledger, name: str, request: str) -> bool:
    """Whether this request has been paid for: then it needs no more budget."""
    if name not in ledger.datasets():
        return False
    return any(entry.kind == "debit" and entry.request == request for entry in ledger.history(name))


def check(plan: Plan, question: Question, study: Study) -> None:
    """Refuse what no release could answer, by public facts alone."""
    if plan.relation != "replace" or plan.delta:
        raise InvalidInput(
            "plan", "one for people who know the size of the study, without a delta", plan.relation
        )
    if question.top > len(study.snps):
        raise InvalidInput("top", f"at most {len(study.snps)}, as many as SNPs", question.top)
    read_threshold(question.threshold, np.array([study.cases + study.controls]))


def _split(plan: Plan, numbers: str) -> tuple[Fraction, Fraction]:
    """The plan's ε, in whole units of the ledger: for the choice, and for the numbers."""
    whole = Fraction(units.allowed(plan.epsilon, "epsilon of the plan"), units.EPSILON_UNITS)
    return (whole, Fraction(0)) if numbers == "nothing" else (whole / 2, whole / 2)


def _number_noise(
    question: Question, cases: int, controls: int, epsilon: Fraction
) -> tuple[Fraction, Fraction]:
    """(scale of the noise in units, size of a unit)."""
    if question.numbers == "nothing":
        return Fraction(0), Fraction(1)
    if question.numbers == "counts":
        change = sensitivity("allele-counts", cases, controls, question.relation, question.top)
        return change / epsilon, Fraction(1)
    change = sensitivity("allelic-chi2", cases, controls, question.relation)
    slack = Fraction(4 * (cases + controls), 2**48)
    grid = noise.Grid(CHI2_STEP)
    steps = grid.sensitivity(question.top * (change + slack), question.top)
    return steps / epsilon, CHI2_STEP


def _choose(ranked: Scores, top: int, width: float) -> Array:
    return noise.top_k(ranked.values, top, width)


def _noisy(question: Question, table: Array, spread: Fraction) -> list[list[int]]:
    """The numbers of the chosen SNPs, in units, with exact noise."""
    if question.numbers == "nothing":
        return []
    if question.numbers == "counts":
        values = np.stack(allele_counts(table), axis=1)
    else:
        values = noise.Grid(CHI2_STEP).units(allelic_chi2(table))[:, None]
    noisy: list[list[int]] = (values + noise.discrete_laplace(spread, values.shape)).tolist()
    return noisy


def _what(question: Question, study: Study) -> dict[str, object]:
    return {
        "release": "gwas",
        "top": question.top,
        "relation": question.relation,
        "score": question.score,
        "numbers": question.numbers,
        "threshold": str(rational(question.threshold)),
        "cases": study.cases,
        "controls": study.controls,
        "snps": len(study.snps),
    }
