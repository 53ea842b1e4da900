"""What is asked of a study, and what it costs: the noise on scores and on numbers.

The cost follows from public facts alone. The plan's ε is spent whole, in whole units of the ledger:
all of it on the choice of SNPs, or a share on the choice and the rest on numbers about them; which
share, and from which threshold distances are measured, the forecast says where the question does
not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from whosin import noise
from whosin.calibration import Plan
from whosin.errors import InvalidInput, UnknownName, invalid_value, read_whole, spell
from whosin.exact import rational, read_ranged
from whosin.gwas.association import LINEAR_RELATIONS, check_relation, imputed_sensitivity
from whosin.gwas.forecast import StudySettings, settle
from whosin.gwas.linear import StratifiedStudy
from whosin.gwas.people import COPY_STEP, Loci, check_instance
from whosin.gwas.prospects import PublicStudy, null_tables
from whosin.gwas.relatives import FAMILY_POLICIES, Families
from whosin.gwas.scores import (
    SELECTION_THRESHOLD,
    SNP_SCORE_KINDS,
    read_threshold,
    score_sensitivity,
    score_step,
    selection_scale,
    selection_scores,
)
from whosin.gwas.study import Study
from whosin.gwas.traits import (
    CHOICE_SHARE,
    EFFECT_UNITS,
    TRAIT_RELATIONS,
    TraitRange,
    TraitStudy,
    effect_noise,
)
from whosin.ledger import Cost, Spend, encoding
from whosin.noise.additive import MAX_CUBE_DIMENSIONS

NUMBER_KINDS = ("counts", "chi2", "effects", "nothing")
CHI2_STEP = Fraction(1, 100)
"""The grid on which χ² is published."""
MIN_RELEASE_EPSILON = Fraction(1, 10**6)
"""The least ε. With less the answer would be only noise, and wider than integers hold."""


NONE_CHANCE_DIVISOR = 20
LEAD_SHARE = Fraction(1, 4)
"""How much of the choice's ε goes to the best SNP of a chosen locus; the rest to the loci."""


@dataclass(frozen=True)
class Question:
    """What is asked of a study.

    Args:
        top: how many SNPs are chosen, or None where they are named.
        relation: between which studies the plan's ε is measured: "genotype", "label-swap", and for
            linear scores "stratum-swap" or "label" (`gwas.linear`), or "trait" (`gwas.traits`).
        score: choose by "distance" to the threshold, by "chi2", or by "linear" scores.
        numbers: also publish allele "counts" (and what follows from them), "chi2", or "nothing"; of
            a quantitative trait "effects" or "nothing".
        threshold: the χ² that the distance is measured from; it serves to choose, not to call a
            SNP significant. None for the best one that is known.
        share: how much of ε goes to the choice where numbers are published, too; None for the best.
        gap: publish how far the chosen SNP is ahead of the next one; only for top = 1, where it
            costs nothing, and by default there.
        none_of_them: let "none of them" compete for being chosen; only for top = 1.
        named: publish numbers about these SNPs instead, with all of ε. Whoever names them must
            not have looked at the data.
        loci: choose loci instead of SNPs, and where numbers are published the best SNP of each.
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
    loci: Loci | None = None
    families: str = "warn"

    def __post_init__(self) -> None:
        if self.relation not in LINEAR_RELATIONS:
            check_relation(self.relation)
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
        self._check_choice()
        self._check_relation()

    def _check_choice(self) -> None:
        if self.threshold is not None:
            rational(self.threshold, "threshold")
        if self.share is not None:
            read_ranged(self.share, "share", "strictly between 0 and 1")
        for field in ("gap", "none_of_them"):
            if getattr(self, field) and self.top != 1:
                what = f"{field} needs top = 1: the order of several shows no more than itself"
                raise InvalidInput(what, field=field, value=self.top)
        object.__setattr__(self, "gap", self.top == 1 if self.gap is None else bool(self.gap))

    def _check_relation(self) -> None:
        """Labels of strata, and single ones, go with linear scores; relatives with genotypes."""
        if self.families not in FAMILY_POLICIES:
            raise UnknownName("families", str(self.families), FAMILY_POLICIES)
        if self.families == "protect" and self.relation != "genotype":
            message = (
                f"relatives are protected under genotype changes alone: under {self.relation} "
                "everybody's genome is taken as known"
            )
            raise InvalidInput(message, field="families", value=self.families)
        if self.relation in LINEAR_RELATIONS and self.top and self.score != "linear":
            message = f"the relation {self.relation} goes with linear scores"
            hint = "add --score linear"
            raise InvalidInput(message, field="score", value=self.score, hint=hint)
        if self.relation == "label" and self.numbers != "nothing":
            message = (
                "where one label changes the number of cases is as secret as the labels, and no "
                "numbers are published"
            )
            hint = "add --numbers nothing"
            raise InvalidInput(message, field="numbers", value=self.numbers, hint=hint)
        if self.loci is not None and self.named:
            raise InvalidInput("loci are chosen, and named SNPs are not", field="loci")

    @property
    def size(self) -> int:
        return len(self.named) if self.top is None else self.top


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
        lead_spread: as `selection_spread`, for choosing the best SNP of each chosen locus.
        related: the families of the study, if it has any.
        charge: what is paid where relatives are protected, too; the sum of `epsilons` otherwise.
        trait: the range of a quantitative trait (all people are then `cases`), and
            `trait_deviation` its public standard deviation.
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
    lead_spread: Fraction = Fraction(0)
    related: Families | None = None
    charge: Fraction | None = None
    trait: TraitRange | None = None
    trait_deviation: float | None = None

    @property
    def settings(self) -> StudySettings:
        """What the forecast has to know of this release; the SNPs are chosen, not named."""
        asked, total = self.question, sum(self.epsilons)
        share = None if asked.numbers == "nothing" else self.epsilons[0] / total
        settings = forecast_settings(asked, float(total), self.threshold, share)
        return replace(settings, none_score=self.none_score if asked.none_of_them else None)

    @property
    def public_study(self) -> PublicStudy:
        return PublicStudy(self.cases, self.controls, self.snps, effective_snps=self.candidates)

    @property
    def candidates(self) -> int:
        """How many SNPs or loci compete."""
        return count_candidates(self.question, self.snps)

    @cached_property
    def none_score(self) -> int:
        """The score of "none of them": the least level that noise lifts one of all SNPs above in at
        most one of twenty releases if none is associated. It follows from public facts: sizes, and
        alleles of all frequencies from 5% to 50%."""
        asked = self.question.relation
        relation = "label-swap" if asked == "stratum-swap" else asked
        table, weights = null_tables(PublicStudy(self.cases, self.controls, self.snps))
        sizes = self.cases, self.controls
        scores = selection_scores(self.question.score, table, relation, self.threshold, sizes)
        scale = float(self.selection_spread)

        def above(level: float) -> float:
            lifted = np.exp(np.minimum(scores - level, 0) / scale)
            return self.snps * float(weights @ lifted) * NONE_CHANCE_DIVISOR

        low = high = float(scores.min())
        while above(high) > 1:
            low, high = high, high + scale * (1 + math.log(above(high)))
        while high - low > 1:
            middle = (low + high) / 2
            low, high = (middle, high) if above(middle) > 1 else (low, middle)
        return math.ceil(high)

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
        asked, total = self.question, sum(self.epsilons)
        what = {
            "release": "gwas",
            "top": asked.top,
            "named": list(asked.named),
            "relation": asked.relation,
            "score": asked.score,
            "numbers": asked.numbers,
            "threshold": str(self.threshold),
            "share": None if asked.numbers == "nothing" else str(self.epsilons[0] / total),
            "families": asked.families,
            "gap": asked.gap,
            "none of them": asked.none_of_them,
            "loci": None if asked.loci is None else asked.loci.digest(),
            "cases": self.cases,
            "controls": self.controls,
            "snps": self.snps,
        }
        if asked.relation == "label":
            what |= {"cases": None, "controls": None, "people": self.cases + self.controls}
        if self.trait is not None:
            about = [str(self.trait.low), str(self.trait.high), str(self.trait.deviation)]
            what |= {"cases": None, "controls": None, "people": self.cases, "trait": about}
        paid = total if self.charge is None else self.charge
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
    _check_plan(plan, question.relation)
    _check_trait(question, study)
    if question.relation == "stratum-swap" and not isinstance(study, StratifiedStudy):
        message = "labels are exchanged inside strata, and the study has none"
        hint = "give them with --within"
        raise InvalidInput(message, field="relation", value=question.relation, hint=hint)
    if question.size > len(study.snps if question.loci is None else question.loci):
        what = "SNPs" if question.loci is None else "loci"
        most = len(study.snps if question.loci is None else question.loci)
        raise invalid_value("top", f"at most {most}, the number of {what}", question.size)
    sizes = study.cases, study.controls
    if question.relation == "label":  # the number of cases is secret: nothing public uses it
        sizes = sum(sizes) // 2, sum(sizes) - sum(sizes) // 2
    field = "epsilon of the plan"
    total = Fraction(encoding.budget_units(plan.epsilon, field), encoding.EPSILON_UNITS)
    if total < MIN_RELEASE_EPSILON:
        raise invalid_value(field, f"at least {spell(MIN_RELEASE_EPSILON)}", plan.epsilon)
    trait: dict[str, Any] = {}
    if isinstance(study, TraitStudy):  # the forecast knows cases and controls alone
        trait = {"trait": study.trait, "trait_deviation": study.deviation(question.relation)}
        default = SELECTION_THRESHOLD, CHOICE_SHARE
        given = zip((question.threshold, question.share), default, strict=True)
        chosen, share = (usual if known is None else known for known, usual in given)
        settled = replace(question, threshold=chosen, share=share)
    else:
        settled = settle_question(question, PublicStudy(*sizes, len(study.snps)), float(total))
    threshold = read_threshold(settled.threshold, sum(sizes))
    parts = split_epsilon(settled, total)
    change = score_sensitivity(question.score, *sizes, question.relation)
    spreads = [Fraction(0), Fraction(0)]
    if question.top:
        lead = question.loci is not None and question.numbers != "nothing"
        shares = [1 - LEAD_SHARE, LEAD_SHARE] if lead else [Fraction(1)]
        for place, share in enumerate(shares):
            spreads[place] = selection_scale(change, share * parts[0], question.size)
    number_noise, step = _number_noise(question, *sizes, parts[1])
    return StudyCostEstimate(
        question,
        plan,
        *sizes,
        len(study.snps),
        selection_spread=spreads[0],
        number_noise=number_noise,
        step=step,
        epsilons=parts,
        threshold=threshold,
        lead_spread=spreads[1],
        **trait,
    )


def _check_trait(question: Question, study: Study) -> None:
    """What is asked of a quantitative trait is not asked of cases and controls, and conversely."""
    if not isinstance(study, TraitStudy):
        for field, value in (("relation", question.relation), ("numbers", question.numbers)):
            if value in ("trait", "effects"):
                message = f"{value} goes with a quantitative trait, and the study has cases"
                hint = "give the trait with --trait and --trait-range"
                raise InvalidInput(message, field=field, value=value, hint=hint)
        return
    if question.relation not in TRAIT_RELATIONS:
        raise UnknownName("relation", question.relation, TRAIT_RELATIONS)
    if question.numbers not in ("effects", "nothing"):
        raise UnknownName("numbers", question.numbers, ("effects", "nothing"))
    if question.top and question.score != "linear":
        message = "SNPs are chosen by linear scores where the trait is quantitative"
        raise InvalidInput(message, field="score", value=question.score, hint="choose linear")
    if question.none_of_them:
        message = "none_of_them goes with cases and controls, and the trait is quantitative"
        raise InvalidInput(message, field="none_of_them", value=True, hint="leave it out")


def _check_plan(plan: Plan, relation: str) -> None:
    wanted = "add-remove" if relation == "label" else "replace"
    if plan.relation == wanted and not plan.delta:
        return
    which, who, family = "a", "adversaries who know its size", "fixed-size"
    if relation == "label":
        which, who, family = "where one label changes a", "independent beliefs", "independent"
    about = f"{which} study is released under a plan for {who}"
    message = f"{about} ({wanted} neighbours), without a delta"
    hint = f"for example family = {family!r}"
    raise InvalidInput(message, field="plan", value=plan.relation, hint=hint)


def forecast_settings(
    question: Question, epsilon: float, threshold: Fraction | None, share: Fraction | None
) -> StudySettings:
    """What the forecast judges a question by: strata are not known to it, and exchanges inside them
    count like any exchange."""
    relation = "label-swap" if question.relation == "stratum-swap" else question.relation
    about = relation, epsilon, question.size, question.score
    return StudySettings(*about, threshold, question.numbers, share)


def count_candidates(question: Question, snps: int) -> int:
    """How many SNPs or loci compete; loci that overlap for no more than there are SNPs."""
    return snps if question.loci is None else min(len(question.loci), snps)


def settle_question(question: Question, study: PublicStudy, epsilon: float) -> Question:
    """The question with the threshold and the share that the forecast finds best, where none is
    given."""
    if question.named:
        return replace(question, threshold=question.threshold or SELECTION_THRESHOLD)
    if question.threshold is not None and (
        question.share is not None or question.numbers == "nothing"
    ):
        return question
    threshold, share = (
        None if value is None else rational(value, name)
        for name, value in (("threshold", question.threshold), ("share", question.share))
    )
    study = replace(study, effective_snps=count_candidates(question, study.snps))
    found = settle(study, forecast_settings(question, epsilon, threshold, share))
    settled = None if question.numbers == "nothing" else found.share
    return replace(question, threshold=found.threshold, share=settled)


def split_epsilon(question: Question, total: Fraction) -> tuple[Fraction, Fraction]:
    """What the choice and the numbers get, in whole units of the ledger."""
    if question.named:
        return Fraction(0), total
    if question.numbers == "nothing":
        return total, Fraction(0)
    share = rational(question.share, "share")
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
    if question.numbers == "effects":
        made = effect_noise(question.size, question.relation, epsilon)
        return made, Fraction(1, EFFECT_UNITS)
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
