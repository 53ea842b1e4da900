"""Randomised labels, corrected results, relatives and beacons for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from whosin import beliefs
from whosin.calibration import Plan
from whosin.errors import InvalidInput
from whosin.exact import format_figures, format_percent
from whosin.gwas.association import NORMAL_95
from whosin.gwas.beacons import Beacon, BeaconAnswer
from whosin.gwas.labels import LabelDraw, LabelPlan, LabelRelease, Purity, label_rates
from whosin.gwas.question import StudyCostEstimate
from whosin.gwas.relatives import KIN_WORDS
from whosin.gwas.release import describe_relatives
from whosin.gwas.results import CorrectedResults
from whosin.plain_files import create_file
from whosin.report.card import SECRET_WORDS, plan_card
from whosin.report.document import (
    Document,
    Paragraph,
    TextSection,
    format_epsilon,
    format_plink,
    make_document,
    make_section,
    make_table,
    note,
    plain_words,
)

CORRECTED_COLUMNS = (
    *("CHR", "SNP", "BP", "A1", "A2", "F_A", "F_U", "OR", "SE", "L95", "U95", "P"),
    *("OR_LABELS", "SE_LABELS"),
)
PRINTED_CORRECTIONS = ("CHR", "SNP", "A1", "OR_LABELS", "OR", "SE", "L95", "U95", "P")
SHOWN_SNPS = 10
LABEL_ADVICE = (
    "Labels drawn once serve every SNP, covariate, phenotype model and program, at no further "
    "cost. `whosin gwas release` does better where a few SNPs of a small study are wanted; labels "
    "do better where everything is to be analysed, in large studies, and where cases are rare: the "
    "less sure anyone is before, the fewer labels change."
)


def describe_labels(made: LabelRelease, files: Sequence[Path]) -> Document:
    """The card of labels that were drawn; nothing in it is private."""
    spent = "Drawn before: nothing was spent now." if made.again else ""
    paid = f"ε = {format_epsilon(made.plan.epsilon)} of dataset {made.dataset} was spent."
    written = "Written: " + ", ".join(file.name for file in files) + "."
    return Document(
        "",
        (
            *_label_promise(made.plan),
            make_section("How labels are drawn", *_rate_lines(made.plan)),
            make_section("What the labels leave", *_purity_lines(made.draw)),
            make_section("When to use them", LABEL_ADVICE),
            make_section("", note(f"{spent or paid} {written}")),
        ),
    )


def describe_label_plan(plan: LabelPlan, people: int) -> Document:
    """The card of labels that were not drawn."""
    said = f"A dry run for {people:,} people: nothing was drawn and nothing was spent."
    return Document(
        "",
        (
            *_label_promise(plan),
            make_section("How labels are drawn", *_rate_lines(plan)),
            make_section("When to use them", LABEL_ADVICE),
            make_section("", said),
        ),
    )


def _label_promise(plan: LabelPlan) -> list[TextSection]:
    looking, promise = plan_card(plan.plan, SECRET_WORDS["label"])[:2]
    if len(plan.ranges) > 1:
        looking = make_section(
            "Who is looking",
            "Someone who may know everything about everyone else, and is as sure of each person as "
            "public facts make one: everyone's own prior decides how their label is drawn.",
        )
    if plan.method == "one-sided":
        said = (
            "This is about who is a case. Nothing is promised about who is not: whoever is "
            "labelled a control is one. Nor is anything promised if the exact number of cases is "
            "published: keep it to yourself."
        )
    elif plan.plan.relation == "replace":
        said = "Exchanging the labels of two people stays within this."
    else:
        said = "It holds in both directions: for who is a case, and for who is not."
    return [looking, promise, make_section("", said)]


def label_promise_words(plan: LabelPlan) -> str:
    """Who is looking at labels, and what is promised, for whoever is about to draw them."""
    parts = [part for section in _label_promise(plan)[:2] for part in section.parts]
    return " ".join(plain_words(each.text) for each in parts if isinstance(each, Paragraph))


def _rate_lines(plan: LabelPlan) -> list[Any]:
    rates = [label_rates(ratio, plan.method) for ratio in plan.ratios]
    if len(rates) == 1:
        alpha, beta = rates[0]
        if plan.method == "one-sided":
            turned = format_percent(beta)
            return [f'A case stays a case, and a control becomes "case" with probability {turned}.']
        return [f"Every label is kept with probability {format_percent(alpha)}, else turned."]
    rows = [
        (
            " to ".join(dict.fromkeys(map(format_percent, pair))),
            format_figures(float(ratio), 4, "down"),
            format_percent(alpha),
            format_percent(beta),
        )
        for pair, ratio, (alpha, beta) in zip(plan.ranges, plan.ratios, rates, strict=True)
    ]
    heads = ("prior", "ratio", "case called case", "control called case")
    return [make_table(heads, rows, right=heads)]


def _purity_lines(draw: LabelDraw) -> list[str]:
    said = f'{draw.people:,} people have a label, and {draw.labelled:,} labels say "case".'
    try:
        purity = draw.purity()
    except InvalidInput:
        return [f"{said} That is too few to say how many are right."]
    return [said, *describe_purity(purity, draw.people)]


def describe_purity(purity: Purity, people: int) -> list[str]:
    """How many labels are right, and what that costs an analysis."""
    within = NORMAL_95 * purity.cases_error
    size = people / purity.variance_factor
    return [
        f"About {purity.cases:,.0f} ± {within:,.0f} people are cases: "
        f"{format_percent(purity.among_cases)} of those who are called cases, "
        f"{format_percent(purity.among_controls)} of the others.",
        f"Differences of allele frequencies have {purity.variance_factor:.3g} times the variance "
        f"that true labels would give, as in a study of {size:,.0f} people. P-values hold as they "
        "are; `whosin gwas correct` corrects odds ratios.",
    ]


def label_data(made: LabelRelease) -> dict[str, object]:
    purity = made.draw.purity()
    return {
        **made.draw.to_dict(),
        "people": made.draw.people,
        "labelled": made.draw.labelled,
        "epsilon": made.plan.epsilon,
        "dataset": made.dataset,
        "request": made.request,
        "again": made.again,
        "cases": purity.cases,
        "cases_error": purity.cases_error,
        "among_cases": purity.among_cases,
        "among_controls": purity.among_controls,
        "variance_factor": purity.variance_factor,
    }


def corrected_rows(made: CorrectedResults) -> list[dict[str, Any]]:
    """A line for each SNP, in the order of the table."""
    low, high = made.interval
    assert made.table.beta is not None and made.table.error is not None
    columns = (
        *made.table.snps.columns(),
        *(made.f_a.tolist(), made.f_u.tolist(), np.exp(made.beta).tolist(), made.error.tolist()),
        *(low.tolist(), high.tolist(), made.table.p.tolist()),
        *(np.exp(made.table.beta).tolist(), made.table.error.tolist()),
    )
    return [
        dict(zip(CORRECTED_COLUMNS, values, strict=True)) for values in zip(*columns, strict=True)
    ]


def write_corrected(made: CorrectedResults, path: Path) -> None:
    """Write the corrected table, with PLINK's names and NA where there is no number."""
    with create_file(path, "--save") as file:
        file.write("\t".join(CORRECTED_COLUMNS) + "\n")
        for row in corrected_rows(made):
            file.write("\t".join(format_plink(value) for value in row.values()) + "\n")


def describe_corrected(made: CorrectedResults, draw: LabelDraw) -> Document:
    """How labels were corrected, and the strongest SNPs."""
    order = np.argsort(np.nan_to_num(made.table.p, nan=2.0), kind="stable")[:SHOWN_SNPS]
    rows = corrected_rows(made)
    shown = PRINTED_CORRECTIONS
    cells = [[format_plink(rows[place][name], 3) for name in shown] for place in order.tolist()]
    words = ("SNP", "A1")
    table = make_table(shown, cells, right=[name for name in shown if name not in words])
    lost = int(np.isnan(made.beta).sum())
    notes = [f"{lost:,} SNPs have no estimate: too rare, or without one before."] if lost else []
    kind = f"{made.table.source} ({made.table.program}, {len(rows):,} SNPs), {draw.method} labels"
    return make_document(f"{kind}.", *describe_purity(made.purity, draw.people), table, *notes)


def relatives_section(estimate: StudyCostEstimate) -> list[TextSection]:
    """What holds for people with relatives in the study; nothing where there are none."""
    found = estimate.related
    if found is None:
        return []
    pairs = ", ".join(f"{count:,} {KIN_WORDS[kind]}" for kind, count in found.pairs.items())
    lines = [*(f"{text[0].upper()}{text[1:]}." for text in describe_relatives(estimate))]
    lines.append(f"Pairs: {pairs}.")
    if estimate.question.relation == "genotype":
        prior = estimate.plan.beliefs[1]
        before = prior if prior < 1 else Fraction(1, 2)
        spent = float(sum(estimate.epsilons)) * estimate.relatives_factor()
        after = beliefs.posterior(math.exp(spent), before)
        kind = "a bound" if found.kinships else "exact"
        lines.append(
            f"That is ε = {format_epsilon(spent)}, from {format_percent(before)} to at most "
            f"{format_percent(float(after), 'up')}, against someone who knows all other genomes "
            f"and the pedigree. It is {kind} for the count of one SNP; for several, which may be "
            "linked, and for choosing, relatives count with all that they may share."
        )
    return [make_section("Relatives in the study", *lines)]


def describe_beacon(
    beacon: Beacon, plan: Plan, frequencies: Sequence[Fraction], answers: int
) -> Document:
    """What answers of a beacon say, and how many a budget allows."""
    prior = plan.beliefs[1] if plan.beliefs[1] < 1 else Fraction(1, 2)
    rows = []
    for f in frequencies:
        costs = [beacon.cost([f], answer=said) for said in (True, False)]
        most = beacon.most_answers(plan.epsilon, f, answer=True)
        after = beacon.belief(prior, [(f, True, True)] * answers)
        rows.append(
            (
                format_figures(float(f), 4),
                *(format_figures(cost, 3, "up") for cost in costs),
                f"{most:,}" if math.isfinite(most) else "any number",
                format_percent(after, "up"),
            )
        )
    heads = ("frequency", "a yes costs", "a no costs", "yes answers", f"after {answers} yes")
    known = f"at most {beacon.known:,} of the others are known"
    return make_document(
        f"A beacon of {beacon.people:,} people, of whom {known}",
        make_table(heads, rows, right=heads),
        f"The promise ({plan.target.words()}) pays ε = "
        f"{format_epsilon(plan.epsilon)}. The last columns are for someone who carries "
        f"every allele asked about, from {format_percent(prior)}.",
        *BEACON_LIMITS,
    )


BEACON_LIMITS = (
    "Against someone who may know everybody else no number of answers is safe, and a no shows "
    "that whoever carries the allele is not in. Costs add for alleles that are independent or "
    "occur together; ask about one allele of a SNP, and of alleles that exclude each other about "
    "the haplotype.",
)


def describe_beacon_answers(answers: Sequence[BeaconAnswer], left: float) -> Document:
    rows = [
        (
            f"{each.snp}:{each.allele}",
            "yes" if each.present else "no",
            "asked before" if each.again else format_figures(each.cost, 3, "up"),
        )
        for each in answers
    ]
    table = make_table(("allele", "present", "cost"), rows, right=("cost",))
    return make_document("", table, f"Left of the budget: ε = {format_epsilon(left)}.")
