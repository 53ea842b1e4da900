"""Beacons: every answer's likelihood by enumeration of all genomes, costs, and the budget (F32)."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

import whosin as wi
from refusals import refused
from whosin import gwas
from whosin.errors import BudgetRefused
from whosin.gwas.beacons import Beacon, answer_beacon, read_allele_frequencies

PLAN = wi.calibrate(wi.Posterior("0.75"), wi.families.FixedSize(0, "0.5"))


def chances(others, frequencies, own, missed):
    """Pr[answers] for a beacon of `others` people of unknown genomes and of one who carries the
    alleles of `own` (None: nobody more), each allele missed with a probability."""
    found = {}
    for genome in product((0, 1), repeat=2 * others * len(frequencies)):
        chance = Fraction(1)
        for place, allele in enumerate(genome):
            f = frequencies[place % len(frequencies)]
            chance *= f if allele else 1 - f
        there = [any(genome[k :: len(frequencies)]) for k in range(len(frequencies))]
        for calls in product((0, 1), repeat=len(frequencies)):
            weight, seen = chance, []
            for present, carried, call in zip(there, own, calls, strict=True):
                if carried:
                    weight *= 1 - missed if call else missed
                elif call:
                    weight *= 0
                seen.append(present or (carried and bool(call)))
            found[tuple(seen)] = found.get(tuple(seen), Fraction(0)) + weight
    return found


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("known", [0, 1])
@pytest.mark.parametrize("missed", [Fraction(0), Fraction(1, 5)])
def test_beliefs_are_those_of_every_genome(relation, known, missed):
    """Two or three people, two alleles: the known ones carry none, which says most."""
    frequencies, prior = [Fraction(1, 5), Fraction(1, 3)], Fraction(2, 5)
    people = 3 if known or relation == "add-remove" else 2
    beacon = Beacon(people, known, missed, relation)
    for own in product((False, True), repeat=2):
        inside = chances(people - 1 - known, frequencies, own, missed)
        out = chances(
            people - known - (relation == "add-remove"), frequencies, (False, False), missed
        )
        for seen in out:
            answers = list(zip(frequencies, own, seen, strict=True))
            joint = prior * inside.get(seen, Fraction(0))
            exact = joint / (joint + (1 - prior) * out[seen])
            assert math.isclose(beacon.belief(prior, answers), exact, abs_tol=1e-12)
            cost = sum(beacon.cost([f], answer=said) for f, _, said in answers)
            if inside.get(seen):
                assert inside[seen] / out[seen] <= math.exp(cost) * (1 + 1e-12)


def test_closed_forms():
    n, f, d = 50, Fraction(1, 100), Fraction(1, 20)
    q = (1 - f) ** (2 * n)
    assert math.isclose(Beacon(n).cost([f], answer=True), -math.log(1 - q))
    assert math.isclose(Beacon(n).cost([f], answer=False), -2 * math.log(1 - f))
    assert Beacon(n, relation="add-remove").cost([f], answer=False) == 0
    yes = (1 - d * (1 - f) ** (2 * n - 2)) / (1 - q)
    assert math.isclose(Beacon(n, error=d).cost([f], answer=True), math.log(yes))
    posterior = Fraction(1, 2) / (Fraction(1, 2) + Fraction(1, 2) * (1 - q) ** 3)
    assert math.isclose(Beacon(n).belief("0.5", [(f, True, True)] * 3), posterior)
    assert Beacon(n).belief("0.5", [(f, True, False)]) == 0
    # the low end of a range for a yes, the high end for a no
    assert Beacon(n).cost([f, 3 * f], answer=True) == Beacon(n).cost([f], answer=True)
    assert Beacon(n).cost([f, 3 * f], answer=False) == Beacon(n).cost([3 * f], answer=False)


def test_whoever_knows_everybody_else_is_refused():
    for known, relation in ((50, "replace"), (49, "add-remove")):
        with refused("known"):
            Beacon(50, known, relation=relation)
    assert Beacon(50, 49).cost([Fraction(1, 100)], answer=True) > 3


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "l.db") as opened:
        yield opened


def test_answers_are_paid_once_and_kept(ledger):
    study = gwas.Simulation(20, 25, 30, 2).study()
    rare = {
        (name, a1): (Fraction(1, 60), Fraction(1, 30))
        for name, a1 in zip(study.snps.name, study.snps.a1, strict=True)
    }
    asked, beacon = list(rare), Beacon(45, known=3)
    first = answer_beacon(study, PLAN, beacon, asked[:2], rare, ledger, "s")
    pooled = study.genotyped()
    assert [each.present for each in first] == [bool(row[1] + row[2]) for row in pooled[:2]]
    spent = ledger.budget_state("s:beacon").epsilon
    assert spent == pytest.approx(sum(each.cost for each in first), rel=1e-9)
    again = answer_beacon(study, PLAN, beacon, asked[:2], rare, ledger, "s")
    assert all(each.again for each in again) and ledger.budget_state("s:beacon").epsilon == spent
    with pytest.raises(BudgetRefused, match="needs"):
        answer_beacon(study, PLAN, beacon, asked, rare, ledger, "s")
    state = ledger.budget_state("s:beacon")
    assert spent < state.epsilon <= PLAN.epsilon
    with pytest.raises(BudgetRefused, match="those of dataset 's:beacon'"):
        answer_beacon(study, PLAN, beacon, asked[:1], rare, ledger, "the same people")
    name = study.snps.name[0]
    other = (name, study.snps.a2[0])
    with pytest.raises(BudgetRefused, match="one SNP"):
        answer_beacon(study, PLAN, beacon, [other], {other: (Fraction(1, 2),)}, ledger, "s")


def test_two_who_open_beacons_of_the_same_people_at_once_have_one(ledger, monkeypatch):
    study, look = gwas.Simulation(20, 25, 30, 2).study(), wi.Ledger.copies
    asked = study.snps.name[0], study.snps.a1[0]
    known = Beacon(45, known=3), [asked], {asked: (Fraction(1, 60),)}, ledger

    def look_too_early(opened, *about):
        found = look(opened, *about)
        monkeypatch.undo()
        answer_beacon(study, PLAN, *known, "theirs")
        return found

    monkeypatch.setattr(wi.Ledger, "copies", look_too_early)
    with pytest.raises(BudgetRefused, match="theirs:beacon"):
        answer_beacon(study, PLAN, *known, "mine")
    assert ledger.datasets() == ["theirs:beacon"]


def test_wrong_questions_cost_nothing(ledger, tmp_path):
    study = gwas.Simulation(20, 25, 30, 2).study()
    name, letter = study.snps.name[0], study.snps.a1[0]
    public = {(name, letter): (Fraction(1, 3),)}
    for allele, field in (
        (("rs0", "A"), "allele"),
        ((name, "T"), "allele"),
        ((study.snps.name[1], letter), "frequencies"),
    ):
        with refused(field):
            answer_beacon(study, PLAN, Beacon(45), [allele], public, ledger, "s")
    with refused("people"):
        answer_beacon(study, PLAN, Beacon(44), [(name, letter)], public, ledger, "s")
    both = wi.calibrate(wi.Epsilon(1), wi.families.FixedSize())
    with refused("target"):
        answer_beacon(study, both, Beacon(45), [(name, letter)], public, ledger, "s")
    assert ledger.datasets() == []
    file = tmp_path / "f.txt"
    file.write_text("SNP A1 AFR EUR\nrs1 A 0.1 0.2\nrs2 G 1/3\n")
    assert read_allele_frequencies(file)["rs1", "A"] == (Fraction(1, 10), Fraction(1, 5))
    file.write_text("rs1 A 0\n")
    with refused("frequency in f.txt"):
        read_allele_frequencies(file)
