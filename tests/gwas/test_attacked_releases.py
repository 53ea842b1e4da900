"""Neighbouring studies, attacked through what the command draws, stay below the plan.

For every relation and score: two small studies that differ in one person, at a small ε, and the
audit's lower bound on what tells them apart. The same with a sixth of the noise is refuted.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import whosin as wi
from amounts import some
from whosin import gwas
from whosin.gwas import release
from whosin.gwas.linear import Design, StratifiedStudy
from whosin.gwas.question import Question, estimate_study_cost
from whosin.gwas.release import draw_answer

SWAPS = wi.calibrate(wi.Epsilon(1), wi.families.FixedSize())
LABELS = wi.calibrate(wi.Epsilon(1), wi.families.Independent())
STRATA = np.array([0, 0, 0, 0, 1, 1, 1, 1])
SNPS = gwas.Snps(["1"] * 3, ["a", "b", "c"], np.array([1, 900, 5000]), ["A"] * 3, ["C"] * 3)


def made_study(copies: np.ndarray, cases: np.ndarray) -> StratifiedStudy:
    """A study of eight people in two strata."""
    tables = [
        np.stack(
            [(copies[:, g & s] == k).sum(axis=1) for g in (cases, ~cases) for k in range(3)], 1
        )
        for s in (STRATA == 0, STRATA == 1)
    ]
    sizes = int(cases.sum()), int((~cases).sum())
    design = Design(cases, STRATA, np.zeros((8, 0)))
    counts = tables[0] + tables[1]
    return StratifiedStudy(SNPS, counts, *sizes, design=design, tables=np.array(tables))


def neighbours(relation: str) -> tuple[StratifiedStudy, StratifiedStudy]:
    """Two studies that differ as far as one person can make them."""
    cases = np.array([True, True, False, False, True, True, False, False])
    copies = np.array(
        [[2, 2, 0, 0, 2, 2, 0, 0], [0, 0, 0, 1, 0, 1, 1, 0], [0, 2, 2, 0, 1, 0, 0, 1]]
    )
    other, labels = copies.copy(), cases.copy()
    if relation == "genotype":
        other[:, 1] = [0, 2, 0]
    elif relation == "label":
        labels[1] = False
    else:
        labels[[1, 2]] = labels[[2, 1]]
    return made_study(copies, cases), made_study(other, labels)


ASKED = [
    *((r, s, n) for r in gwas.STUDY_RELATIONS for s in ("distance", "linear") for n in ("counts",)),
    *((r, "chi2", "chi2") for r in gwas.STUDY_RELATIONS),
    ("stratum-swap", "linear", "counts"),
    ("label", "linear", "nothing"),
]


def attack(relation, score, numbers, samples, narrow=1, **more):
    plan = LABELS if relation == "label" else SWAPS
    worlds = neighbours(relation)
    share = None if numbers == "nothing" else "0.5"
    asked = Question(1, relation, score, numbers, threshold=2, share=share, **more)
    estimates = [estimate_study_cost(plan, asked, world) for world in worlds]
    assert estimates[0].spend().what == estimates[1].spend().what, "the cost shows nothing"
    estimate = estimates[0]
    cube = estimate.number_noise
    estimate = replace(
        estimate,
        selection_spread=estimate.selection_spread / narrow,
        number_noise=None if cube is None else replace(cube, scale=cube.scale / narrow),
    )

    def draw(world: int) -> tuple[object, ...]:
        answer: dict[str, Any] = draw_answer(estimate, worlds[world])
        numbers = [value // 128 for row in answer["noisy"] for value in row[:2]]
        return (*answer["places"][:1], answer["gap"], *numbers)

    return wi.audit.two_worlds(draw, 1, 0, samples, "0.999")


@pytest.fixture(autouse=True)
def scored_once(monkeypatch):
    """Scores are no matter of chance: each world's are computed once."""
    known = {}
    true = release.score_study

    def remembered(estimate, study):
        if id(study) not in known:
            known[id(study)] = true(estimate, study)
        return known[id(study)]

    monkeypatch.setattr(release, "score_study", remembered)


@pytest.mark.parametrize(("relation", "score", "numbers"), some(ASKED, 2, several=True))
def test_neighbours_stay_below_the_plan(relation, score, numbers):
    found = attack(relation, score, numbers, 1000, none_of_them=score == "distance")
    assert found.epsilon <= SWAPS.epsilon


@pytest.mark.parametrize(
    ("relation", "score", "numbers"),
    some([("genotype", "distance", "counts"), ("label", "linear", "nothing")], 1, several=True),
)
def test_a_sixth_of_the_noise_is_refuted(relation, score, numbers):
    found = attack(relation, score, numbers, 1500, narrow=Fraction(6))
    assert found.refutes(SWAPS.epsilon)
