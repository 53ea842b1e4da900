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
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from whosin.documents import MAX_STUDY_BYTES, read_words
from whosin.errors import InvalidInput, read_path
from whosin.exact import Array

FAMILY_POLICIES = ("warn", "protect", "first")
MAX_MEIOSES = 14
"""Families with more transmissions are bounded: every relative counts as a twin."""
ROUNDING_MARGIN = 1 + 1e-12
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

    @property
    def linked_factor(self) -> float:
        """By how much it grows where linked SNPs show which alleles were passed on."""
        return 1 + self.shared / 2

    @property
    def choice_factor(self) -> int:
        """By how much it grows for scores that count people."""
        return 1 + self.relatives


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
            linked: several SNPs are published, which may be linked.
            choice: SNPs are chosen by scores that count people.
        """
        loads = self.loads(epsilon)
        factors = [load.count_factor(epsilon) for load in loads]
        if linked:
            factors += [load.linked_factor for load in loads]
        if choice:
            factors += [load.choice_factor for load in loads]
        return max(factors, default=1.0)

    def protected_epsilon(self, total: float, *, linked: bool, choice: bool) -> float:
        """The largest ε whose worst case among relatives stays within a total, rounded down."""
        low, high = 0.0, total
        for _ in range(60):
            middle = (low + high) / 2
            if (
                middle <= 0
                or middle * self.worst_factor(middle, linked=linked, choice=choice) > total
            ):
                high = middle
            else:
                low = middle
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
    parent = list(range(people))
    for (one, other), kind in degree.items():
        kin[one].append(kind)
        kin[other].append(kind)
        parent[_find_root(parent, other)] = _find_root(parent, one)
    kept = np.ones(people, dtype=bool)
    first: dict[int, int] = {}
    for place in sorted(kin):
        kept[place] = first.setdefault(_find_root(parent, place), place) == place
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
    listed = [SHARED_ALLELES[kind] for kind in kinds]
    steps = sorted({0.0, 1.0} | {at for law in listed for at in _cut_points(law)})
    total, z = 0.0, math.exp(epsilon / 2)
    for low, high in pairwise(steps):
        middle = (low + high) / 2
        total += (high - low) * z ** sum(_quantile(law, middle) for law in listed)
    shared = sum(law[0][0] for law in listed)
    return FamilyLoad(len(listed), shared, math.log(total * ROUNDING_MARGIN))


def _cut_points(law: Sequence[tuple[int, float]]) -> list[float]:
    """Where the number of shared alleles changes, by share of the luckiest."""
    return list(np.cumsum([chance for _, chance in law])[:-1])


def _quantile(law: Sequence[tuple[int, float]], at: float) -> int:
    total = 0.0
    for number, chance in law:
        total += chance
        if at < total:
            return number
    return law[-1][0]


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
        root = list(range(len(self.parents)))
        for child, pair in enumerate(self.parents):
            for parent in pair:
                if parent >= 0:
                    root[_find_root(root, child)] = _find_root(root, parent)
        members = defaultdict(list)
        for node in self._order(source):
            members[_find_root(root, node)].append(node)
        return [nodes for nodes in members.values() if len(nodes) > 1]

    def _order(self, source: str) -> list[int]:
        """Everybody, parents before children."""
        waiting = [sum(parent >= 0 for parent in pair) for pair in self.parents]
        children: dict[int, list[int]] = defaultdict(list)
        for child, pair in enumerate(self.parents):
            for parent in pair:
                if parent >= 0:
                    children[parent].append(child)
        ready = [node for node, count in enumerate(waiting) if not count]
        for node in ready:
            for child in children.get(node, ()):
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        if len(ready) < len(self.parents):
            message = f"{source} has someone among their own ancestors: its parents form a loop"
            raise InvalidInput(message, field=source, hint="see PAT and MAT")
        return ready

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


def _find_root(parent: list[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


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


@lru_cache(maxsize=4096)
def family_loads(shape: Shape, epsilon: float) -> tuple[FamilyLoad, ...]:
    """What relatives add for each person of the study in a family."""
    inside = [place for place, (_, _, there) in enumerate(shape) if there]
    ancestors = _ancestors(shape)
    near = {
        target: [
            other
            for other in inside
            if other != target and (ancestors[target] | {target}) & (ancestors[other] | {other})
        ]
        for target in inside
    }
    meioses = sum(parent >= 0 for row in shape for parent in row[:2])
    if meioses > MAX_MEIOSES:
        return tuple(_twin_load(len(near[target]), epsilon) for target in inside)
    alleles, count = _transmit_alleles(shape, meioses)
    return tuple(
        _target_load(alleles, count, target, near[target], epsilon)
        for target in inside
        if near[target]
    )


def _twin_load(relatives: int, epsilon: float) -> FamilyLoad:
    return FamilyLoad(relatives, 2 * relatives, relatives * epsilon)


def _transmit_alleles(shape: Shape, meioses: int) -> tuple[Array, int]:
    """(transmissions × people × 2: which founder's allele everyone has, how many there are)."""
    numbers = np.arange(1 << meioses)
    alleles = np.zeros((1 << meioses, len(shape), 2), dtype=np.int64)
    count = bit = 0
    for place, parents in enumerate(row[:2] for row in shape):
        for side, parent in enumerate(parents):
            if parent < 0:
                alleles[:, place, side] = count
                count += 1
            else:
                alleles[:, place, side] = alleles[numbers, parent, numbers >> bit & 1]
                bit += 1
    return alleles, count


def _target_load(
    alleles: Array, count: int, target: int, relatives: Sequence[int], epsilon: float
) -> FamilyLoad:
    own = alleles[:, target]
    theirs = alleles[:, list(relatives)].reshape(len(alleles), -1)
    copies = np.stack([(theirs == allele).sum(axis=1) for allele in range(count)], axis=1)
    rows = np.arange(len(alleles))
    shared = copies[rows, own[:, 0]] + copies[rows, own[:, 1]]
    most = int(shared.max(initial=0))
    if (own[:, 0] == own[:, 1]).any():  # parents who are relatives: f weighs the transmissions
        return FamilyLoad(len(relatives), most, most * epsilon / 2)
    z = math.exp(epsilon / 2)
    weights = np.zeros((len(alleles), count - 1))  # by how many of the other alleles are copies
    weights[:, 0] = 1
    for allele in range(count):
        other = (own != allele).all(axis=1)
        raised = weights[:, :-1] * (z ** copies[:, allele])[:, None]
        weights[:, 1:] += np.where(other[:, None], raised, 0)
    top = (weights * (z**shared)[:, None]).sum(axis=0)
    ratio = float((top / weights.sum(axis=0)).max()) * ROUNDING_MARGIN
    return FamilyLoad(len(relatives), most, math.log(ratio))
