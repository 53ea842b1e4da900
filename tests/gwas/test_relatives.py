"""Relatives in a study: what their genomes add, by enumeration of all transmissions (F31)."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import whosin as wi
from amounts import cases
from refusals import refused
from whosin import gwas
from whosin.gwas import relatives
from whosin.gwas.question import Question, estimate_study_cost
from whosin.gwas.relatives import find_families, kinship_load, read_kinship

LN3 = math.log(3)
FAMILIES = {
    "parent": "1:0:0 2:1:0",
    "both parents": "1:0:0 2:0:0 3:1:2",
    "siblings": "1:f:m 2:f:m",
    "half siblings": "1:f:m 2:f:n",
    "two siblings": "1:f:m 2:f:m 3:f:m",
    "parents and sibling": "f:0:0 m:0:0 1:f:m 2:f:m",
    "grandparent": "g:0:0 p:g:q 1:p:x",
    "cousins": "-g:0:0 -h:0:0 -a:g:h -b:g:h 1:a:x 2:b:y",
    "aunt": "-g:0:0 -h:0:0 -a:g:h 1:g:h 2:a:x",
}
KNOWN = {
    "parent": 1.5, "both parents": 2.0, "siblings": 1.568, "half siblings": 1.284,
    "two siblings": 2.136, "parents and sibling": 2.568,
}  # fmt: skip
"""At ln 3, as F31 has them."""


def rows_of(text):
    """(rows of a .fam file, who is in the study); a name with "-" is not."""
    people = [word.split(":") for word in text.split()]
    women = {mother for _, _, mother in people}
    rows = [
        ("fam", name.lstrip("-"), father, mother, "2" if name.lstrip("-") in women else "1", "1")
        for name, father, mother in people
    ]
    return rows, np.array([not name.startswith("-") for name, *_ in people])


def genomes(rows, f):
    """Every assignment of two alleles to everybody, with its probability, from the definition."""
    names = [row[1] for row in rows]
    founders = [
        (i, side) for i, row in enumerate(rows) for side in (0, 1) if row[2 + side] not in names
    ]
    passed = [(i, side) for i, row in enumerate(rows) for side in (0, 1) if row[2 + side] in names]
    # Parents without a row are one person each: their own two alleles are founders' alleles.
    absent = sorted({rows[i][2 + side] for i, side in founders} - {"0"})
    for drawn in product((0, 1), repeat=2 * len(absent)):
        outside = {name: drawn[2 * k : 2 * k + 2] for k, name in enumerate(absent)}
        unknown = [(i, side) for i, side in founders if rows[i][2 + side] == "0"]
        from_absent = [(i, side) for i, side in founders if rows[i][2 + side] != "0"]
        for alleles in product((0, 1), repeat=len(unknown)):
            chance = Fraction(1)
            for allele in (*drawn, *alleles):
                chance *= f if allele else 1 - f
            for bits in product((0, 1), repeat=len(passed) + len(from_absent)):
                own = [[0, 0] for _ in rows]
                for (i, side), allele in zip(unknown, alleles, strict=True):
                    own[i][side] = allele
                choice = dict(zip([*from_absent, *passed], bits, strict=True))
                for i, side in from_absent:
                    own[i][side] = outside[rows[i][2 + side]][choice[i, side]]
                for i, side in passed:  # parents come first in these files
                    own[i][side] = own[names.index(rows[i][2 + side])][choice[i, side]]
                yield own, chance / 2 ** len(bits)


def level(rows, counted, target, f, z):
    """The largest Pr[y | two copies]/Pr[y | none], over every centre y of the noisy count."""
    given = {0: {}, 2: {}}
    for own, chance in genomes(rows, f):
        copies = sum(own[target])
        if copies != 1:
            total = sum(sum(own[i]) for i in range(len(rows)) if counted[i])
            given[copies][total] = given[copies].get(total, Fraction(0)) + chance
    worst = Fraction(0)
    for y in range(-1, 2 * len(rows) + 2):
        both = [
            sum(p * z ** -abs(y - c) for c, p in given[g].items()) / sum(given[g].values())
            for g in (2, 0)
        ]
        worst = max(worst, both[0] / both[1], both[1] / both[0])
    return worst


SMALL_FREQUENCY = Fraction(1, 10**7)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.soak] * (name == "cousins")) for name in FAMILIES],
)
def test_levels_are_those_of_every_transmission(name):
    """For each person of a family: never above ours, at any frequency and any output, and ours is
    reached where the allele is rare."""
    rows, counted = rows_of(FAMILIES[name])
    z = Fraction(7, 4)
    epsilon = 2 * math.log(z)
    found = find_families(rows, counted)
    [shape] = found.shapes
    ours = {round(load.count_factor(epsilon), 9) for load in relatives.family_loads(shape, epsilon)}
    exact = set()
    # two frequencies for the larger families, whose enumeration takes long
    few = len(rows) > 4
    for target in np.flatnonzero(counted):
        rare = math.log(level(rows, counted, target, SMALL_FREQUENCY, z)) / epsilon
        exact.add(round(rare, 5))
        for f in [Fraction(1, 3)] if few else [Fraction(1, 50), Fraction(1, 4), Fraction(3, 5)]:
            at = math.log(level(rows, counted, target, f, z)) / epsilon
            assert at <= rare + 1e-6
    assert exact == {round(each, 5) for each in ours}


def random_shape(rng):
    """A pedigree, perhaps with loops, parents before children; or None where nobody is related."""
    people = rng.randint(2, 7)
    women = [rng.random() < 0.5 for _ in range(people)]
    shape, passed = [], 0
    for place in range(people):
        father, mother = (
            rng.choice([-1, *(p for p in range(place) if women[p] is woman)])
            for woman in (False, True)
        )
        if passed > 7:
            father = mother = -1
        passed += (father >= 0) + (mother >= 0)
        shape.append((father, mother, rng.random() < 0.8))
    linked, again = {people - 1}, True
    while again:
        more = {
            one
            for place, row in enumerate(shape)
            for one in (place, *row[:2])
            if one >= 0 and linked & {place, *row[:2]}
        }
        linked, again = linked | more, not more <= linked
    place_of = {place: number for number, place in enumerate(sorted(linked))}
    return tuple(
        (*(place_of.get(p, -1) for p in shape[place][:2]), shape[place][2])
        for place in sorted(linked)
    )


def enumerated_load(shape, target, relatives_of, z, frequencies):
    """(Pr[two copies | …] ratios at these frequencies, the most copies of the target's alleles,
    whether its two alleles can be one), by enumeration of all transmissions."""
    founders = sum(parent < 0 for row in shape for parent in row[:2])
    passed = sum(parent >= 0 for row in shape for parent in row[:2])
    most, alike = 0, False
    sums = {f: [Fraction(0)] * 4 for f in frequencies}
    for bits in product((0, 1), repeat=passed):
        choices, fresh, own = iter(bits), iter(range(founders)), []
        for row in shape:
            own.append([next(fresh) if p < 0 else own[p][next(choices)] for p in row[:2]])
        copies = [sum(own[r].count(a) for r in relatives_of) for a in range(founders)]
        mine = set(own[target])
        shared = sum(copies[a] for a in mine)
        most, alike = max(most, shared), alike or len(mine) == 1
        for f, totals in sums.items():
            others = math.prod(1 - f + f * z ** copies[a] for a in range(founders) if a not in mine)
            both, none = f ** len(mine), (1 - f) ** len(mine)
            parts = both * z**shared * others, both, none * others, none
            sums[f] = [a + b for a, b in zip(totals, parts, strict=True)]
    return [a / b / (c / d) for a, b, c, d in sums.values()], most, alike


@cases(60, 1000)
def test_copies_peeled_person_by_person(count):
    """Random pedigrees, loops among them, against every transmission: never above ours at any
    frequency, and where parents are not relatives reached for a rare or a common allele, or
    between two that are."""
    rng, exact, loops = random.Random(48), 0, 0
    frequencies = [Fraction(1, 10**9), Fraction(1, 7), Fraction(3, 5), 1 - Fraction(1, 10**9)]
    for _ in range(count):
        shape = random_shape(rng)
        z = Fraction(rng.choice([1, 5, 40, 1000]), 4) + 1
        for target, near in relatives.near_relatives(shape).items():
            if not near:
                continue
            load = relatives.target_load(shape, target, 2 * math.log(z))
            ratios, most, alike = enumerated_load(shape, target, near, z, frequencies)
            assert load.relatives == len(near)
            assert math.log(max(ratios)) <= load.ratio_logarithm + 1e-12
            if alike:
                assert most <= load.shared <= 2 * len(near)
                loops += 1
            else:
                assert load.shared == most
                reached = math.log(max(ratios)) >= load.ratio_logarithm - 1e-5
                exact += reached
    assert exact > count and loops > count / 100


def test_large_families_and_loops():
    """Thirty grandchildren; and a family in which all are linked to all, as twins."""
    couples = " ".join(f"c{i}:f:m -s{i}:0:0 " for i in range(10))
    children = " ".join(f"{i}a:c{i}:s{i} {i}b:c{i}:s{i} {i}c:c{i}:s{i}" for i in range(10))
    start = time.process_time()
    found = find_families(*rows_of(f"f:0:0 m:0:0 {couples} {children}"))
    assert 10 < found.worst_factor(LN3) < 20
    # Of a child both parents, nine siblings, three children and 27 of the siblings'.
    assert max(load.shared for load in found.loads(LN3)) == 2 + 18 + 3 + 27
    assert time.process_time() - start < 20
    fathers = [f"a{i}:0:0" for i in range(9)]
    mothers = [f"b{i}:0:0" for i in range(9)]
    all_pairs = [f"{i}{j}:a{i}:b{j}" for i in range(9) for j in range(9)]
    found = find_families(*rows_of(" ".join((*fathers, *mothers, *all_pairs))))
    assert found.worst_factor(LN3) == pytest.approx(1 + 2 + 16)  # both parents, and half siblings


@pytest.mark.parametrize("name", list(KNOWN))
def test_known_figures(name):
    rows, counted = rows_of(FAMILIES[name])
    assert abs(find_families(rows, counted).worst_factor(LN3) - KNOWN[name]) < 5e-4


def test_siblings_at_several_levels():
    rows, counted = rows_of(FAMILIES["siblings"])
    found = [find_families(rows, counted).worst_factor(math.log(n)) for n in (2, 3, 9, 27)]
    assert [round(each, 3) for each in found] == [1.543, 1.568, 1.631, 1.686]


def test_linked_snps_and_choices_count_more():
    rows, counted = rows_of(FAMILIES["siblings"])
    found = find_families(rows, counted)
    assert found.worst_factor(LN3, linked=True) == 2 == found.worst_factor(LN3, choice=True)
    less = found.protected_epsilon(LN3, linked=False, choice=False)
    assert LN3 * (1 - 1e-9) < less * found.worst_factor(less) <= LN3
    large = "f:0:0 m:0:0 " + " ".join(f"{i}:f:m" for i in range(1, 12))
    many = find_families(*rows_of(large))
    assert 7 < many.worst_factor(LN3) < 8  # 13, were every relative a twin


def test_families_are_found_and_counted():
    rows, counted = rows_of(FAMILIES["cousins"])
    assert find_families(rows, counted).pairs == {"other": 1}
    bare = [(*("a", "1", "0", "0", "1"), "1"), (*("a", "2", "0", "0", "2"), "1")]
    alone = [("b", "3", "x", "y", "1", "1")]
    found = find_families(bare + alone)
    assert found.pairs == {"unknown": 1} and found.kept.tolist() == [True, False, True]
    assert found.worst_factor(LN3) == pytest.approx(2)
    assert find_families(bare) is None and find_families(alone) is None
    couple = [("a", "1", "0", "0", "1", "1"), ("a", "2", "0", "0", "2", "1")]
    child = [("a", "3", "1", "2", "1", "1")]
    assert find_families(couple + child + alone, np.array([True, True, False, True])) is None


@pytest.mark.parametrize(
    "text",
    [
        "1:2:0 2:1:0",
        "1:1:0",
        "1:2:0 2:3:0 3:1:0",
        "1:2:2 2:0:0",
        "1:a:b 2:b:c",
        "1:2:0 -2:0:0 3:x:2",
    ],
)
def test_impossible_pedigrees_are_refused(text):
    rows, counted = rows_of(text)
    with refused("the .fam file"):
        find_families(rows, counted)


def test_kinship_tables(tmp_path):
    names = [("0", name) for name in "abcde"]
    table = tmp_path / "k.kin0"
    lines = [
        "#IID1 IID2 NSNP HETHET IBS0 KINSHIP",
        "a b 9 1 0 0.25",
        "a c 9 1 0 0.1",
        "d e 9 1 0 0.01",
    ]
    table.write_text("\n".join(lines) + "\n")
    found = read_kinship(table, names, np.ones(5, dtype=bool))
    assert found.pairs == {"first degree": 1, "second degree": 1} and found.people == 3
    assert found.kept.tolist() == [True, False, False, True, True] and found.families == 1
    assert found.worst_factor(LN3) == kinship_load(
        ["first degree", "second degree"], LN3
    ).count_factor(LN3)
    assert read_kinship(table, names, np.array([True, False, False, True, True])) is None
    table.write_text("a b c\n1 2 3\n")
    with refused("k.kin0", hint=True):
        read_kinship(table, names, np.ones(5, dtype=bool))


def test_kin_share_at_most_what_degrees_allow():
    """Several relatives at once: at least each alone, at most the product."""
    kinds = ["first degree", "second degree", "third degree"]
    parts = [kinship_load([kind], LN3).ratio_logarithm for kind in kinds]
    joint = kinship_load(kinds, LN3).ratio_logarithm
    assert max(parts) < joint and sum(parts) < joint <= 5 * LN3 / 2
    siblings = kinship_load(["first degree"], LN3).count_factor(LN3)
    assert abs(siblings - KNOWN["siblings"]) < 5e-4


def test_protected_relatives_get_more_noise_for_the_same_price(tmp_path):
    made = gwas.Simulation(40, 50, 20, 2)
    path = made.write(tmp_path / "s")
    fam = path.with_name("s.fam")
    lines = [line.split() for line in fam.read_text().splitlines()]
    lines[1][:4] = [lines[0][0], lines[1][1], lines[0][1], "0"]
    lines[0][4] = "1"
    fam.write_text("".join(" ".join(row) + "\n" for row in lines))
    study = gwas.read_study(path)
    plan = wi.calibrate(wi.Posterior("0.75"), wi.families.FixedSize("0.5", "0.5"))
    named = (study.snps.name[0],)
    plain, safe = (
        estimate_study_cost(plan, Question(None, "genotype", named=named, families=how), study)
        for how in ("warn", "protect")
    )
    assert plain.spend().costs == safe.spend().costs
    assert float(sum(plain.epsilons)) == pytest.approx(1.5 * float(sum(safe.epsilons)), rel=1e-9)
    chosen = estimate_study_cost(plan, Question(3, "genotype", families="protect"), study)
    assert float(sum(chosen.epsilons)) == pytest.approx(math.log(3) / 2, rel=1e-9)
    with refused("families"):
        Question(3, "label-swap", families="protect")
    kept = gwas.study.keep_first(path)
    assert len(kept) == 89 and (lines[1][0], lines[1][1]) not in kept
