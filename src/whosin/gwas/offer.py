"""What a release would do and cost, from public facts alone: nothing here looks at a genotype.

Contract: the plan's ε is spent whole, in whole units of the ledger: all of it on the choice of
SNPs, or half on the choice and half on numbers about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin import noise
from whosin.calibration import Plan
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.gwas.reading import instance
from whosin.gwas.scoring import GENOME_WIDE, SCORES, score_sensitivity, selection_scale
from whosin.gwas.sensitivities import check_relation, sensitivity
from whosin.gwas.study import Study
from whosin.gwas.threshold import read_threshold
from whosin.ledger import Charge, Cost, units
from whosin.validation import whole

NUMBERS = ("counts", "chi2", "nothing")
CHI2_STEP = Fraction(1, 100)
"""The grid on which χ² is published."""
LEAST = Fraction(1, 10**6)
"""The least ε. With less the answer would be only noise, and wider than integers hold."""


@dataclass(frozen=True)
class Question:
    """What is asked of a study.

    Args:
        top: how many SNPs are chosen, or None where they are named.
        relation: between which studies the plan's ε is measured: "genotype" or "label-swap".
        score: choose by "distance" to the threshold, or by "chi2".
        numbers: also publish allele "counts" (and what follows from them), "chi2", or "nothing".
        threshold: the χ² from which on a SNP is significant.
        named: publish numbers about these SNPs instead, with all of ε. Whoever names them must
            not have looked at the data.
    """

    top: int | None
    relation: str
    score: str = "distance"
    numbers: str = "counts"
    threshold: object = GENOME_WIDE
    named: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_relation(self.relation)
        named = self.named
        if not isinstance(named, tuple | list) or not all(isinstance(n, str) for n in named):
            raise InvalidInput("named SNPs", "a list of names", repr(named)[:80])
        object.__setattr__(self, "named", tuple(named))
        if self.score not in SCORES:
            raise UnknownName("score", str(self.score), SCORES)
        if self.numbers not in NUMBERS:
            raise UnknownName("numbers", str(self.numbers), NUMBERS)
        if (self.top is None) != bool(self.named):
            raise InvalidInput("top", "given, unless SNPs are named", self.top)
        if self.top is not None:
            object.__setattr__(self, "top", whole(self.top, "top", 1))
        elif self.numbers == "nothing":
            raise InvalidInput("numbers", "counts or chi2, for SNPs that are named", self.numbers)
        if len(set(self.named)) < len(self.named):
            raise InvalidInput("named SNPs", "each named once", "repeated ones")
        rational(self.threshold, "threshold")

    @property
    def size(self) -> int:
        """How many SNPs are published."""
        return len(self.named) if self.top is None else self.top


@dataclass(frozen=True)
class StudyOffer:
    """The noise and the price of a release.

    Attributes:
        snps: how many SNPs the study looked at.
        selection_scale: the scale of the noise on scores; 0 where SNPs are named.
        spread: the scale of the noise on numbers, in units of `step`; 0 without numbers.
        epsilons: what the choice and the numbers cost.
    """

    question: Question
    plan: Plan
    cases: int
    controls: int
    snps: int
    selection_scale: float
    spread: Fraction
    step: Fraction
    epsilons: tuple[Fraction, Fraction]

    @property
    def scale(self) -> float:
        """The scale of the noise on numbers, in their own unit."""
        return float(self.spread * self.step)

    def charge(self) -> Charge:
        """What the ledger is asked to pay."""
        asked = self.question
        what = {
            "release": "gwas",
            "top": asked.top,
            "named": list(asked.named),
            "relation": asked.relation,
            "score": asked.score,
            "numbers": asked.numbers,
            "threshold": str(rational(asked.threshold)),
            "cases": self.cases,
            "controls": self.controls,
            "snps": self.snps,
        }
        return Charge(what, {self.plan.relation: Cost.pure(sum(self.epsilons))})


def price(plan: Plan, question: Question, study: Study) -> StudyOffer:
    """Price a question, or refuse it, by public facts alone."""
    instance(plan, Plan, "plan", "a Plan, such as calibrate(…) makes")
    instance(question, Question, "question", "a Question")
    instance(study, Study, "study", "a Study, such as read_study(…) returns")
    if plan.relation != "replace" or plan.delta:
        raise InvalidInput(
            "plan", "one for people who know the size of the study, without a delta", plan.relation
        )
    if question.size > len(study.snps):
        raise InvalidInput("top", f"at most {len(study.snps)}, the number of SNPs", question.size)
    read_threshold(question.threshold, np.array([study.cases + study.controls]))
    sizes = study.cases, study.controls
    total = Fraction(units.allowed(plan.epsilon, "epsilon of the plan"), units.EPSILON_UNITS)
    if total < LEAST:
        raise InvalidInput("epsilon of the plan", f"at least {float(LEAST):g}", plan.epsilon)
    parts = _split(total, question)
    change = score_sensitivity(question.score, *sizes, question.relation)
    width = selection_scale(change, parts[0], question.size) if question.top else 0.0
    spread, step = _number_noise(question, *sizes, parts[1])
    return StudyOffer(question, plan, *sizes, len(study.snps), width, spread, step, parts)


def _split(total: Fraction, question: Question) -> tuple[Fraction, Fraction]:
    if question.numbers == "nothing":
        return total, Fraction(0)
    return (Fraction(0), total) if question.named else (total / 2, total / 2)


def _number_noise(
    question: Question, cases: int, controls: int, epsilon: Fraction
) -> tuple[Fraction, Fraction]:
    """(scale of the noise in steps, size of a step)."""
    if question.numbers == "nothing":
        return Fraction(0), Fraction(1)
    if question.numbers == "counts":
        change = sensitivity("allele-counts", cases, controls, question.relation, question.size)
        return change / epsilon, Fraction(1)
    grid = noise.Grid(CHI2_STEP)
    change = sensitivity("allelic-chi2", cases, controls, question.relation)
    slack = Fraction(4 * (cases + controls), 2**48)  # of χ² in floating point, as for scores
    steps = grid.sensitivity(question.size * (change + slack), question.size)
    return steps / epsilon, CHI2_STEP
