"""Relatives in a study: families from a pedigree or a kinship table, and what holds for them.

A relative's genome says something of one's own. Against someone who knows every other genome and
the pedigree, and not those of a person and of that person's relatives, a noisy count of copies of
scale 2/ε moves likelihoods between no copy and two copies not by e^ε alone but by

    e^ε · E[z^c | two copies] / E[z^c | no copy],  z = e^(ε/2),

where c = copies among the relatives in the study (F31). Given which alleles are passed on, K of the
relatives' alleles are the person's own and the others are independent of them, so this ratio is a
mean of z^K with weights E[z^(c−K)], polynomials in the allele's frequency f. In the Bernstein basis
both sums have coefficients that are not negative, and the largest quotient of two of them bounds
the ratio for every f; it is the limit for rare alleles where that of f → 0 is the largest.

One parent or child adds exactly ε/2, a twin or both parents ε, a sibling 2 ln((1+z)/2) at most.
Linked SNPs may show which alleles were passed on; then the largest possible K counts. A score that
moves by one for each person whose genotype changes counts every relative as a person.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from whosin.documents import MAX_STUDY_BYTES, read_words
from whosin.errors import InvalidInput, read_path
from whosin.exact import Array
from whosin.notions.messages import convolve_sums

FAMILY_POLICIES = ("warn", "protect", "first")
MAX_PEELED_PEOPLE = 8
"""People whose copies of an allele are told apart at once; in families that are linked more widely
every relative counts as a twin."""
MAX_EXPONENT_BITS = 16_000
"""Of extended floats."""
ROUNDING_MARGIN = 1 + 1e-11
KINSHIP_DEGREES = ((0.354, "twin"), (0.177, "first degree"), (0.0884, "second degree"))
"""KING's limits (Manichaikul et al. 2010) above which a pair is at least so close."""
LEAST_KINSHIP = 0.0442
"""Pairs below KING's limit of the third degree are not counted as relatives."""
KIN_WORDS = {
    "parent": "parent and child",
    "sibling": "siblings",
    "half sibling": "half siblings",
    "other": "more distant relatives",
    "unknown": "people of one family ID, without parents: counted as twins",
    "twin": "twins, or one person twice",
    "first degree": "relatives of the first degree (parent, child, sibling)",
    "second degree": "relatives of the second degree",
    "third degree": "relatives of the third degree",
}
SHARED_ALLELES = {
    "twin": ((2, 1.0),),
    "unknown": ((2, 1.0),),
    "first degree": ((2, 0.25), (1, 0.5), (0, 0.25)),
    "second degree": ((2, 1 / 16), (1, 6 / 16), (0, 9 / 16)),
    "third degree": ((1, 0.25), (0, 0.75)),
}
"""How many alleles such a relative shares, with their probabilities: of those who can be so close,
the ones that say most (siblings; double first cousins, who say more than half siblings)."""

Shape = tuple[tuple[int, int, bool], ...]
"""A pedigree with parents before children: father, mother (−1: unknown), in the study."""


@dataclass(frozen=True)
class FamilyLoad:
    """What one person's relatives add.

    Attributes:
        relatives: how many of the study may share alleles with the person.
        shared: the most alleles that they can share.
        ratio_logarithm: ln of the factor beyond e^ε, for one count; an upper bound.
    """

    relatives: int
    shared: int
    ratio_logarithm: float

    def count_factor(self, epsilon: float) -> float:
        """By how much ε grows for one count."""
        return 1 + self.ratio_logarithm / epsilon


@dataclass(frozen=True, eq=False)
class Families:
    """The families of a study.

    Attributes:
        shapes: pedigrees of families with several people in the study, and how many there are.
        kinships: for people without a pedigree, the kinds of their relatives, and how many people
            have such relatives.
        people: how many people have a relative in the study.
        families: how many families have several people in the study.
        pairs: how many pairs of each kind.
        kept: for everybody in the file, whether they are the first of their family in the file.
    """

    shapes: Mapping[Shape, int]
    kinships: Mapping[tuple[str, ...], int]
    people: int
    families: int
    pairs: Mapping[str, int]
    kept: Array

    def loads(self, epsilon: float) -> list[FamilyLoad]:
        """What relatives add, for the people of each kind of family."""
        found = [load for shape in self.shapes for load in family_loads(shape, epsilon)]
        return found + [kinship_load(kinds, epsilon) for kinds in self.kinships]

    def worst_factor(self, epsilon: float, *, linked: bool = False, choice: bool = False) -> float:
        """By how much ε grows for the person of whom relatives say most.

        Args:
            linked: several SNPs are published, which may be linked and so show which alleles were
                passed on.
            choice: SNPs are chosen by scores that count people.
        """
        loads = self.loads(epsilon)
        factors = [load.count_factor(epsilon) for load in loads]
        if linked:
            factors += [1 + load.shared / 2 for load in loads]
        if choice:
            factors += [1 + load.relatives for load in loads]
        return max(factors, default=1.0)

    def protected_epsilon(self, total: float, *, linked: bool, choice: bool) -> float:
        """The largest ε whose worst case among relatives stays within a total, rounded down."""
        low, high = 0.0, total
        for _ in range(60):
            middle = (low + high) / 2
            fits = middle * self.worst_factor(middle, linked=linked, choice=choice) <= total
            low, high = (middle, high) if fits else (low, middle)
        return low


def find_families(
    rows: Sequence[Sequence[str]], counted: Array | None = None, source: str = "the .fam file"
) -> Families | None:
    """The families of people by rows of a .fam file: FID, IID, PAT, MAT and sex; None if nobody has
    a relative. `counted` says who is in the study; the others may link those who are.

    A family ID that all have, or 0, names no family. Where a family ID has several people and none
    of them has a parent, nothing says how they are related: they count as twins.

    Raises:
        InvalidInput: someone is their own ancestor, or has two fathers or two mothers.
    """
    everybody = np.ones(len(rows), dtype=bool)
    studied = everybody if counted is None else counted
    places = _linked_places(rows, studied)
    if not places:
        return None
    linked = [rows[place] for place in places]
    _check_parents(linked, source)
    graph = _Pedigree(linked, studied[places])
    shapes: Counter[Shape] = Counter()
    pairs: Counter[str] = Counter()
    kinships: Counter[tuple[str, ...]] = Counter()
    related: set[int] = set()
    kept = np.ones(len(linked), dtype=bool)
    families = 0
    for members in graph.components(source):
        inside = sorted(node for node in members if graph.counted[node])
        if len(inside) < 2:
            continue
        shape = graph.shape(members)
        found = _pair_kinds(shape)
        if not found:
            continue
        shapes[shape] += 1
        pairs += found
        families += 1
        related |= set(inside)
        kept[inside[1:]] = False
    for inside in graph.bare_families():
        inside = [place for place in inside if place not in related]
        if len(inside) > 1:
            kinships[("unknown",) * (len(inside) - 1)] += len(inside)
            pairs["unknown"] += math.comb(len(inside), 2)
            families += 1
            related |= set(inside)
            kept[inside[1:]] = False
    if not families:
        return None
    everybody[places] = kept
    return Families(dict(shapes), dict(kinships), len(related), families, dict(pairs), everybody)


def _linked_places(rows: Sequence[Sequence[str]], counted: Array) -> list[int]:
    """Who has a parent, is one, or shares a family ID that not everybody in the study has."""
    parents = {(row[0], name) for row in rows for name in row[2:4] if name != "0"}
    sizes = Counter(row[0] for row in rows)
    shared = {name for name, size in sizes.items() if size > 1 and name != "0"}
    if (
        len(shared) == 1
        and {rows[place][0] for place in np.flatnonzero(counted).tolist()} <= shared
    ):
        shared = set()
    if not parents and not shared:
        return []
    return [
        place
        for place, row in enumerate(rows)
        if row[0] in shared or row[2] != "0" or row[3] != "0" or (row[0], row[1]) in parents
    ]


def read_kinship(
    path: str | Path, names: Sequence[tuple[str, str]], counted: Array
) -> Families | None:
    """The relatives of people by a kinship table, as KING and plink2 --make-king-table write it:
    FID1, IID1, FID2, IID2 (or #IID1, IID2) and KINSHIP. `counted` says who is in the study.

    Several relatives of a person may share the same alleles: they are taken to do so as far as
    their degrees allow, which says most (comonotone sharing).
    """
    file = read_path(path, "--kinship")
    rows = read_words(file, MAX_STUDY_BYTES)
    header = [word.lstrip("#").upper() for word in rows[0]]
    ends = [("FID1", "IID1"), ("FID2", "IID2")]
    if {"ID1", "ID2"} <= set(header):  # KING's .kin0 and .kin
        ends = [("FID1", "ID1"), ("FID2" if "FID2" in header else "FID", "ID2")]
        ends[0] = ("FID1" if "FID1" in header else "FID", "ID1")
    persons = [name for _, name in ends]
    if "KINSHIP" not in header or not set(persons) <= set(header):
        message = f"{file.name} has no columns {persons[0]}, {persons[1]} and KINSHIP"
        hint = "write it with plink2 --make-king-table"
        raise InvalidInput(message, field=file.name, hint=hint)
    if any(len(row) != len(header) for row in rows):
        message = f"some lines of {file.name} do not have the {len(header)} columns of its header"
        raise InvalidInput(message, field=file.name)
    with_family = all(family in header for family, _ in ends)
    places = {
        name if with_family else ("", name[1]): at for at, name in enumerate(names) if counted[at]
    }
    columns = [(header.index(f) if with_family else None, header.index(p)) for f, p in ends]
    degree: dict[tuple[int, int], str] = {}
    for row in rows[1:]:
        kind = _read_degree(row[header.index("KINSHIP")], file.name)
        both = [places.get(("" if f is None else row[f], row[p])) for f, p in columns]
        if kind is not None and both[0] is not None and both[1] is not None and both[0] != both[1]:
            degree[min(both), max(both)] = kind  # type: ignore[type-var, index]
    if not degree:
        return None
    return _group_kin(degree, len(names))


def _group_kin(degree: Mapping[tuple[int, int], str], people: int) -> Families:
    kin: dict[int, list[str]] = defaultdict(list)
    for (one, other), kind in degree.items():
        kin[one].append(kind)
        kin[other].append(kind)
    labels = _label_components(list(degree), people)
    kept = np.ones(people, dtype=bool)
    first: dict[int, int] = {}
    for place in sorted(kin):
        kept[place] = first.setdefault(labels[place], place) == place
    kinships = Counter(tuple(sorted(kinds)) for kinds in kin.values())
    pairs = Counter(degree.values())
    return Families({}, dict(kinships), len(kin), len(first), dict(pairs), kept)


def _read_degree(word: str, source: str) -> str | None:
    try:
        kinship = float(word)
    except ValueError:
        message = f"some kinship coefficients of {source} are not numbers"
        raise InvalidInput(message, field=source) from None
    if not kinship > LEAST_KINSHIP:
        return None
    return next((kind for least, kind in KINSHIP_DEGREES if kinship > least), "third degree")


def kinship_load(kinds: Iterable[str], epsilon: float) -> FamilyLoad:
    """What relatives of these kinds add at most, for rare alleles: E[z^K] where all of them share
    as much as they can at once."""
    laws = [np.array(SHARED_ALLELES[kind]).T for kind in kinds]
    # By share of the luckiest: where the number of shared alleles changes, and what it is between.
    ends = [chances.cumsum()[:-1] for _, chances in laws]
    steps = np.unique(np.concatenate([[0.0, 1.0], *ends]))
    places = [np.searchsorted(each, steps[:-1], side="right") for each in ends]
    shared = sum(numbers[at] for (numbers, _), at in zip(laws, places, strict=True))
    total = float(np.diff(steps) @ math.exp(epsilon / 2) ** shared)
    most = int(sum(numbers[0] for numbers, _ in laws))
    return FamilyLoad(len(laws), most, math.log(total * ROUNDING_MARGIN))


class _Pedigree:
    """People and their parents as a graph; parents who have no row of their own come after."""

    def __init__(self, rows: Sequence[Sequence[str]], counted: Array) -> None:
        self.rows = rows
        self.place = {(row[0], row[1]): number for number, row in enumerate(rows)}
        self.parents = [self._parents(row) for row in rows]
        added = len(self.place) - len(rows)
        self.parents += [(-1, -1)] * added
        self.counted = [*counted.tolist(), *[False] * added]

    def _parents(self, row: Sequence[str]) -> tuple[int, int]:
        father, mother = (
            -1 if name == "0" else self.place.setdefault((row[0], name), len(self.place))
            for name in row[2:4]
        )
        return father, mother

    def components(self, source: str) -> list[list[int]]:
        """People who are linked through parents, parents before children."""
        links = [(child, parent) for child, pair in enumerate(self.parents) for parent in pair]
        labels = _label_components([each for each in links if each[1] >= 0], len(self.parents))
        parents = {child: set(pair) - {-1} for child, pair in enumerate(self.parents)}
        members = defaultdict(list)
        try:
            for node in TopologicalSorter(parents).static_order():
                members[labels[node]].append(node)
        except CycleError:
            message = f"{source} has someone among their own ancestors: its parents form a loop"
            raise InvalidInput(message, field=source, hint="see PAT and MAT") from None
        return [nodes for nodes in members.values() if len(nodes) > 1]

    def shape(self, members: Sequence[int]) -> Shape:
        """The pedigree of a family without those who say nothing: people outside the study who have
        no child, or no parent and one child."""
        keep = list(members)
        while True:
            there = set(keep)
            links = Counter(p for node in keep for p in self.parents[node] if p in there)
            gone = {
                node
                for node in keep
                if not self.counted[node]
                and (not links[node] or (links[node] == 1 and not set(self.parents[node]) & there))
            }
            if not gone:
                break
            keep = [node for node in keep if node not in gone]
        number = {node: place for place, node in enumerate(keep)}
        return tuple(
            (
                number.get(self.parents[node][0], -1),
                number.get(self.parents[node][1], -1),
                self.counted[node],
            )
            for node in keep
        )

    def bare_families(self) -> list[list[int]]:
        """People of the study of one family ID, where nobody in the file with this ID has a
        parent."""
        listed: dict[str, list[int]] = defaultdict(list)
        known = {"0"}
        for place, row in enumerate(self.rows):
            if self.counted[place]:
                listed[row[0]].append(place)
            if self.parents[place] != (-1, -1):
                known.add(row[0])
        return [places for name, places in listed.items() if name not in known and len(places) > 1]


def _label_components(links: Sequence[tuple[int, int]], count: int) -> list[int]:
    """The number of the component of each of so many nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(links).reshape(-1, 2).T
    graph = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(count, count))
    labels: list[int] = connected_components(graph, directed=False)[1].tolist()
    return labels


def _check_parents(rows: Sequence[Sequence[str]], source: str) -> None:
    sexes = {(row[0], row[1]): row[4] for row in rows}
    roles: dict[tuple[str, str], str] = {}
    for row in rows:
        for name, sex in zip(row[2:4], ("1", "2"), strict=True):
            if name == "0":
                continue
            known = roles.setdefault((row[0], name), sex)
            if known != sex or sexes.get((row[0], name), "0") not in (sex, "0", "-9"):
                word = "fathers" if sex == "2" else "mothers"
                message = (
                    f"{source} gives someone two {word}: a parent in PAT is female, one in MAT "
                    "male, or the same person is in both"
                )
                raise InvalidInput(message, field=source, hint="see PAT, MAT and the sexes")


def _pair_kinds(shape: Shape) -> Counter[str]:
    """How the people of a family are related, pair by pair; unrelated ones are left out."""
    kinds: Counter[str] = Counter()
    ancestors = _ancestors(shape)
    inside = [place for place, (_, _, there) in enumerate(shape) if there]
    for one, other in combinations(inside, 2):
        mine, theirs = set(shape[one][:2]) - {-1}, set(shape[other][:2]) - {-1}
        if one in theirs or other in mine:
            kinds["parent"] += 1
        elif len(mine & theirs) == 2:
            kinds["sibling"] += 1
        elif mine & theirs:
            kinds["half sibling"] += 1
        elif (ancestors[one] | {one}) & (ancestors[other] | {other}):
            kinds["other"] += 1
    return kinds


def _ancestors(shape: Shape) -> list[set[int]]:
    found: list[set[int]] = []
    for father, mother, _ in shape:
        parents = {place for place in (father, mother) if place >= 0}
        found.append(parents.union(*(found[place] for place in parents)))
    return found


def near_relatives(shape: Shape) -> dict[int, list[int]]:
    """For each person of the study the others of it with whom they share an ancestor."""
    ancestors = _ancestors(shape)
    lines = [{place, *found} for place, found in enumerate(ancestors)]
    inside = [place for place, (_, _, there) in enumerate(shape) if there]
    return {
        target: [other for other in inside if other != target and lines[target] & lines[other]]
        for target in inside
    }


@lru_cache(maxsize=4096)
def family_loads(shape: Shape, epsilon: float) -> tuple[FamilyLoad, ...]:
    """What relatives add for each person of the study in a family."""
    near = near_relatives(shape)
    return tuple(target_load(shape, target, epsilon) for target in near if near[target])


def target_load(shape: Shape, target: int, epsilon: float) -> FamilyLoad:
    """What relatives add for one person: each counts as a twin where the pedigree has too many
    loops."""
    relatives, ancestors = near_relatives(shape)[target], _ancestors(shape)
    count, twins = len(relatives), 2 * len(relatives)
    bits = sum(parent >= 0 for row in shape for parent in row[:2]) + 2 * len(shape) + 1
    far = max(bits * twins, count * epsilon / math.log(2) + 4 * bits) > MAX_EXPONENT_BITS
    highest = None if far else _copy_weights(shape, target, relatives, np.longdouble(2.0) ** bits)
    if highest is None:
        return FamilyLoad(count, twins, count * epsilon)
    # Transmissions are fewer than 2^bits, so that the exponent is the largest number of copies of
    # two alleles, or of one that the target has twice.
    most = max(int(np.log2(max(each, 1)) // bits) for each in highest[2, 1:3])
    weights, ways = (
        _copy_weights(shape, target, relatives, factor)
        for factor in (np.exp(np.longdouble(epsilon) / 2), np.longdouble(1))
    )
    assert weights is not None and ways is not None
    father, mother = ({one, *ancestors[one]} if one >= 0 else set() for one in shape[target][:2])
    top, bottom = weights[2, 2:], weights[0, :-2]
    if father & mother:  # relatives, so that f weighs the transmissions
        top, bottom = np.convolve(weights[2], ways[0]), np.convolve(weights[0], ways[2])
    ratio = float(np.log((top[bottom > 0] / bottom[bottom > 0]).max())) + math.log(ROUNDING_MARGIN)
    return FamilyLoad(count, most, min(ratio, count * epsilon))


def _copy_weights(shape: Shape, target: int, relatives: Sequence[int], z: Any) -> Array | None:
    """Σ z^c over transmissions and over which of the founders' alleles are copies: by the target's
    copies, and by how many of the founders' alleles are; c, those of relatives. None where too many
    people depend on each other at once.

    People are eliminated one by one: a message is a table of polynomials by the copies of those
    that are still there.
    """
    messages = []
    for place, (father, mother, _) in enumerate(shape):
        parents = [parent for parent in (father, mother) if parent >= 0]
        table = np.zeros((*(3,) * (len(parents) + 1), 3), dtype=np.longdouble)
        for copies in product(range(3), repeat=len(parents)):
            # What an unknown parent passes on is a founder's allele, else one of two.
            ways = [(2 - c, c) for c in copies] + [(1, 1)] * (2 - len(parents))
            for passed in product((0, 1), repeat=2):
                at = *copies, sum(passed), sum(passed[len(parents) :])
                table[at] += ways[0][passed[0]] * ways[1][passed[1]]
        if place in relatives:
            table *= (z ** np.arange(3))[:, None]
        messages.append(((*parents, place), table))
    left = set(range(len(shape)))
    while left:
        scopes = {one: {r for scope, _ in messages if one in scope for r in scope} for one in left}
        out = min(left - {target} or left, key=lambda one: (len(scopes[one]), one))
        axes = (out, *sorted(scopes[out] - {out}))
        if len(axes) > MAX_PEELED_PEOPLE:
            return None
        joint = np.ones((*(1,) * len(axes), 1), dtype=np.longdouble)
        for scope, table in messages:
            if out in scope:
                order = sorted(range(len(scope)), key=lambda n: axes.index(scope[n]))
                shown = tuple(slice(None) if one in scope else None for one in axes)
                table = table.transpose(*order, len(scope))[(*shown, slice(None))]
                joint = convolve_sums(joint, table, 1)
        messages = [each for each in messages if out not in each[0]]
        left.remove(out)
        if out == target:
            return np.asarray(joint.reshape(3, -1))
        messages.append((axes[1:], joint.sum(axis=0)))
    return None
