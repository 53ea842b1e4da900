"""Scores for choosing SNPs: the distance to the other side of a threshold, by genotype changes or
label swaps.

Scores are whole numbers, the larger the better, with their sensitivity for the relation asked,
whether or not genotypes are missing; sizes of groups are public, so nothing but the scores depends
on the data.

*Moves*: how far changed people, or exchanged labels, can move a count of alleles. `twos` changes
move a count by 2 each, then `ones` by 1 each, and further ones not at all. Every formula is the
most that k changes reach for one count by itself, so k + 1 changes from a neighbour reach at least
as far. Rows of a table here are eight numbers: people with 0, 1 and 2 copies of A1 and with a
missing genotype, among cases, then among controls. A missing genotype adds to neither count.

*The threshold* is decided exactly: a table is above when A1 is more frequent among cases and χ² ≥
c, c > 0. Floating point decides, and whole numbers wherever it is too close to call. With x copies
of A1 and w of A2 among cases, y and v among controls, D = xv − yw and n = x + w + y + v, above is
D > 0 and nD² ≥ c (x+w)(y+v)(x+y)(w+v). While D > 0 the logarithm of χ² rises with x and v and falls
with w and y: its derivative by w is −2y/D + 1/n − 1/(x+w) − 1/(w+v) < 0, as n ≥ x + w, and by x it
is 2v/D + 1/n − 1/(x+w) − 1/(x+y) > 0, as D ≤ xv. So what is above stays above when x or v grow and
w or y shrink.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np

from whosin import noise
from whosin.errors import InvalidInput, UnknownName, invalid_value
from whosin.exact import Array, read_ranged
from whosin.gwas.association import check_relation, chi2_of_copies, imputed_sensitivity
from whosin.gwas.linear import LINEAR_SCORE_UNITS, stratum_terms
from whosin.gwas.people import (
    COPY_STEP,
    MIN_GROUP_SIZE,
    group_sizes,
    imputed_copies,
    missing_genotypes,
    read_counts,
)


@dataclass(frozen=True, eq=False)
class Moves:
    """Changes of one count in one direction, for every SNP."""

    twos: Array
    ones: Array

    def reach(self, changes: Array) -> Array:
        """The largest step of this many changes."""
        step = np.minimum(2 * changes, changes + self.twos)
        return np.asarray(np.minimum(step, 2 * self.twos + self.ones))


def genotype_gains(table: Array) -> tuple[Moves, Moves, Moves, Moves]:
    """How fast changed cases raise x and lower w, and changed controls lower y and raise v: cases
    come to have two copies of A1, controls none."""
    none, one, _, missing, _, other_one, other_two, other_missing = table.T
    return (
        Moves(none + missing, one),
        Moves(none, one),
        Moves(other_two, other_one),
        Moves(other_two + other_missing, other_one),
    )


def swap_gains(table: Array) -> tuple[Moves, Moves]:
    """How fast exchanges raise x (and lower y as much), and lower w (and raise v)."""
    none, one, _, missing, _, other_one, other_two, other_missing = table.T
    return (
        _best_exchanges(none + missing, one, other_one, other_two),
        _best_exchanges(none, one, other_one, other_two + other_missing),
    )


def _best_exchanges(far: Array, middle: Array, other_middle: Array, other_far: Array) -> Moves:
    """The k-th best exchange is of the k-th furthest case and the k-th furthest control."""
    ones = np.where(
        other_far > far,
        np.minimum(middle, other_far - far),
        np.minimum(other_middle, far - other_far),
    )
    return Moves(np.minimum(far, other_far), ones)


def read_threshold(threshold: object, people: int) -> Fraction:
    """A threshold that some table of this many people reaches: 0 < c ≤ 2N."""
    value = read_ranged(threshold, "threshold", "above 0")
    if value > 2 * people:
        most = f"at most 2N = {2 * people}, the largest possible χ² of N people"
        raise invalid_value("threshold", most, threshold)
    return value


def is_above(x: Array, w: Array, y: Array, v: Array, c: Fraction) -> Array:
    """Whether χ² ≥ c with A1 more frequent among cases."""
    gap = (x * v - y * w).astype(float)
    cases, controls = (x + w).astype(float), (y + v).astype(float)
    left = (cases + controls) * gap * gap
    right = float(c) * cases * controls * (x + y) * (w + v)
    positive = gap > 0
    above: Array = positive & (left >= right)
    (close,) = np.nonzero(positive & (np.abs(left - right) <= 1e-12 * right))
    if len(close):
        above[close] = _is_above_exactly(x[close], w[close], y[close], v[close], c)
    return above


def _is_above_exactly(x: Array, w: Array, y: Array, v: Array, c: Fraction) -> Array:
    """The same in whole numbers of any size, once for each distinct table, where D > 0."""
    tables, back = np.unique(np.stack([x, w, y, v]), axis=1, return_inverse=True)
    answers = []
    for x_, w_, y_, v_ in tables.T.tolist():
        left = (x_ + w_ + y_ + v_) * (x_ * v_ - y_ * w_) ** 2
        right = (x_ + w_) * (y_ + v_) * (x_ + y_) * (w_ + v_)
        answers.append(left * c.denominator >= c.numerator * right)
    return np.asarray(np.array(answers)[back])


# How far a SNP is from the other side of a threshold (Johnson and Shmatikov 2013).
#
# `distance_scores` has sensitivity 1 for the relation that it is asked for, so the
# exponential mechanism may use it, also where genotypes are missing.
#
# Missing genotypes are left out of χ², as in PLINK, so a person whose genotype is missing in one
# study and known in the next changes the sizes of the table too. Take one side, A1 more frequent
# among cases: `threshold` shows that being above is monotone in the four counts of alleles. For k
# changes let each count go as far as k changes can take it (`moves`), whether or not the same k
# changes do that for all four. The fewest k for which these counts are above is the distance to
# gain, and likewise to lose. A neighbour reaches at least as far with k + 1, count by count, so the
# distance moves by at most 1; and of two neighbours on different sides one is at 1 and the other at
# 0. Where nothing is missing, the same changes are the best for every count, and this is the fewest
# changes. The score is the larger one of the two sides.


CHUNK_SNPS = 1 << 14
"""SNPs at a time: some thirty arrays of this length stay in the cache."""
REVERSED_COLUMNS = [2, 1, 0, 3, 6, 5, 4, 7]
"""The same people, with the other allele counted."""


def distance_scores(
    counts: object,
    threshold: object,
    relation: str = "genotype",
    sizes: tuple[int, int] | None = None,
) -> Array:
    """For a SNP beyond the threshold the fewest changes that bring it below, otherwise 1 − the
    fewest that bring it beyond.

    A SNP is beyond when its allelic χ² is at least the threshold; to be below, it is enough that
    the allele which was more frequent in a group no longer is so by that much. Under label swaps, a
    SNP that is beyond under every labelling of these people, or under none, gets the least score,
    −min(R,S): both say nothing about who is a case.

    Args:
        counts: SNPs × 6, people with 0, 1, 2 copies of A1 among cases, then among controls.
        threshold: the χ² threshold, above 0 and at most 2N.
        relation: "genotype" (one genotype changes) or "label-swap" (a case and a control exchange).
        sizes: how many cases and controls there are, where genotypes are missing.

    >>> distance_scores([[0, 0, 4, 1, 2, 1], [1, 0, 3, 0, 2, 2]], 3.84).tolist()
    [1, -1]
    """
    check_relation(relation)
    table = read_counts(counts)
    if not len(table):
        return np.zeros(0, dtype=np.int64)
    known = group_sizes(table)
    people = known if sizes is None else tuple(np.full(len(table), size) for size in sizes)
    if min(people[0].min(), people[1].min()) < MIN_GROUP_SIZE:
        message = f"some SNPs have a genotype of fewer than {MIN_GROUP_SIZE} cases or controls"
        raise InvalidInput(message, field="counts")
    c = read_threshold(threshold, int((people[0] + people[1]).min()))
    if sizes is None:
        missing = np.zeros((len(table), 2), dtype=np.int64)
    else:
        missing = missing_genotypes(table, *sizes)
    eight, starts = np.insert(table, [3, 6], missing, axis=1), range(0, len(table), CHUNK_SNPS)
    chunks = (np.asfortranarray(eight[first : first + CHUNK_SNPS]) for first in starts)
    return np.concatenate([_score_chunk(rows, c, relation == "label-swap") for rows in chunks])


def _score_chunk(table: Array, c: Fraction, swaps: bool) -> Array:
    flipped = table[:, REVERSED_COLUMNS]
    sides = is_above(*_allele_counts(table), c), is_above(*_allele_counts(flipped), c)
    scores = np.empty(len(table), dtype=np.int64)
    beyond = sides[0] | sides[1]
    scores[~beyond] = 1 - _changes_to_gain(table[~beyond], flipped[~beyond], c, swaps)
    above = np.where(sides[0][:, None], table, flipped)[beyond]
    scores[beyond] = _changes_to_cross(above, c, swaps, gaining=False)
    if swaps:
        for row in np.flatnonzero(beyond)[_always_beyond(above, c)]:
            scores[row] = -min(table[row, :4].sum(), table[row, 4:].sum())
    return scores


def _changes_to_gain(table: Array, flipped: Array, c: Fraction, swaps: bool) -> Array:
    """The fewest changes after which one of the two sides is above. First the side on which A1 is
    more frequent already; the other one only where it can do with fewer."""
    x, w, y, v = _allele_counts(table)
    ahead = (x * v >= y * w)[:, None]
    near, far = np.where(ahead, table, flipped), np.where(ahead, flipped, table)
    best = _changes_to_cross(near, c, swaps, gaining=True)
    # Without missing genotypes, what k changes reach is known at once.
    fewer = (far[:, 3] > 0) | (far[:, 7] > 0)
    (full,) = np.nonzero(~fewer & (best > 1))
    fewer[full] = _can_gain(far[full], best[full] - 1, c, swaps)
    (rows,) = np.nonzero(fewer)
    best[rows] = np.minimum(best[rows], _changes_to_cross(far[rows], c, swaps, gaining=True))
    return best


def _allele_counts(table: Array) -> tuple[Array, Array, Array, Array]:
    """(x, w, y, v): copies of A1 and of A2 among cases, then among controls."""
    none, one, two, _, other_none, other_one, other_two, _ = table.T
    return one + 2 * two, one + 2 * none, other_one + 2 * other_two, other_one + 2 * other_none


def _changes_to_cross(table: Array, c: Fraction, swaps: bool, *, gaining: bool) -> Array:
    """The fewest changes after which A1 can be above, where it is not; or, not gaining, after which
    it can be above no longer, where it is. What lowers x and v and raises w and y is what would
    raise and lower them if the other allele were counted."""
    if not len(table):
        return np.zeros(0, dtype=np.int64)
    if not swaps:
        return _fewest_changes(_Rows.of(table, gaining, c))
    crosses = _Exchanges(table, gaining, c)
    most = np.minimum(table[:, :4].sum(axis=1), table[:, 4:].sum(axis=1))
    return _find_least(crosses, most, _guess_changes(crosses.alleles, c, gaining, swaps=True))


def _can_gain(table: Array, k: Array, c: Fraction, swaps: bool) -> Array:
    """Whether k changes are enough to be above, where no genotype is missing."""
    every = np.arange(len(table))
    if swaps:
        return _Exchanges(table, True, c)(every, k)
    rows = _Rows.of(table, True, c)
    kept = rows.keep_sizes(0), rows.keep_sizes(2)
    return rows.some_split_crosses(np.minimum(k, kept[0] + kept[1]), *kept)


class _Exchanges:
    """Whether k exchanges of labels cross, for some of the SNPs."""

    def __init__(self, table: Array, gaining: bool, c: Fraction) -> None:
        moving = table if gaining else table[:, REVERSED_COLUMNS]
        rise, fall = swap_gains(moving) if gaining else swap_gains(moving)[::-1]
        self.values = np.stack([*_allele_counts(table), rise.twos, rise.ones, fall.twos, fall.ones])
        self.gaining, self.c = gaining, c

    @property
    def alleles(self) -> Array:
        return np.asarray(self.values[:4])

    def __call__(self, which: Array, k: Array) -> Array:
        values = self.values if len(which) == self.values.shape[1] else self.values[:, which]
        x, w, y, v = values[:4]
        sign = 1 if self.gaining else -1
        up, down = (sign * Moves(*values[at : at + 2]).reach(k) for at in (4, 6))
        return np.equal(is_above(x + up, w - down, y - up, v + down, self.c), self.gaining)


def _guess_changes(alleles: Array, c: Fraction, gaining: bool, *, swaps: bool) -> Array:
    """About how many changes cross if each moves a count by two copies: the real k at which D is
    √(cRS m(2N − m)/2N), where changes of cases alone, of controls alone, or exchanges move it."""
    x, w, y, v = alleles.astype(float)
    r, s = (x + w) / 2, (y + v) / 2
    n, m = r + s, x + y
    q = float(c) * r * s / np.maximum(2 * n, 1)
    gap, sign = x * s - y * r, 1 if gaining else -1
    if swaps:
        return np.asarray(
            np.ceil(np.abs(np.sqrt(q * m * (2 * n - m)) - gap) / np.maximum(2 * n, 1))
        )
    found = []
    for step, change in ((2 * s, 2.0), (2 * r, -2.0)):
        b, t = sign * step, sign * change
        first, second = b * b + q * t * t, 2 * gap * b - q * t * (2 * n - 2 * m)
        root = np.sqrt(np.maximum(second**2 - 4 * first * (gap**2 - q * m * (2 * n - m)), 0))
        found.append((sign * root - second) / np.maximum(2 * first, 1e-300))
    return np.asarray(np.ceil(np.minimum(*np.maximum(found, 0))))


def _find_least(holds: Callable[[Array, Array], Array], most: Array, guess: Array) -> Array:
    """The least k from 1 to `most` from which on `holds` is true; `most` + 1 where it never is.
    Steps from the guess, each twice as far, until both sides are known; then bisection."""
    low, high = np.zeros(len(most), dtype=np.int64), most + 1
    guessed = np.nan_to_num(guess, nan=1.0, posinf=1e18)
    probe = np.clip(guessed, 1, np.maximum(most, 1)).astype(np.int64)
    (active,) = np.nonzero(most > 0)
    step = 1
    while len(active):
        at = probe[active]
        true = holds(active, at)
        high[active] = np.where(true, at, high[active])
        low[active] = np.where(true, low[active], at)
        active = active[high[active] - low[active] > 1]
        below, above = low[active], high[active]
        near = np.where(probe[active] == above, above - step, below + step)
        inside = (near > below) & (near < above)
        probe[active] = np.where(inside, near, (below + above) // 2)
        step *= 2
    return high


def _least_change(holds: Callable[[Array], Array], most: Array, start: Array | int = 0) -> Array:
    """The least k after `start` and up to `most` from which on `holds` is true; `most` + 1 where it
    never is."""
    low, high = np.broadcast_to(np.asarray(start), most.shape), most + 1
    while (high - low > 1).any():
        middle = np.maximum((low + high) // 2, low + 1)  # where it is known, ask for it again
        true = holds(middle)
        high = np.where(true, np.minimum(middle, high), high)
        low = np.where(true, low, np.minimum(middle, high - 1))
    return high


def _fewest_changes(rows: _Rows) -> Array:
    """The fewest k1 + k2 for which k1 changed cases and k2 changed controls cross.

    While changes keep the sizes of the groups, the tables that are not above are convex: to gain,
    only the ends and breaks of a split k = k1 + k2 matter, and to lose, the two splits around the
    one where G = D − √(cRS m(2N−m)/2N) is least on each linear piece. Changes of missing genotypes
    alter the sizes; they come last, and from there on every split is looked at.
    """
    kept = rows.keep_sizes(0), rows.keep_sizes(2)

    def crosses(which: Array, k: Array) -> Array:
        if len(which) == len(kept[0]):
            return rows.some_split_crosses(k, *kept)
        return rows.take(which).some_split_crosses(k, kept[0][which], kept[1][which])

    guess = _guess_changes(rows.values[:4], rows.c, rows.gaining, swaps=False)
    best = _find_least(crosses, kept[0] + kept[1], guess)
    best = np.where(best > kept[0] + kept[1], rows.people(0) + rows.people(2), best)
    for cases_lead in (False, True):
        start = kept[0] if cases_lead else kept[1]
        (which,) = np.nonzero((rows.people(0 if cases_lead else 2) > start) & (start + 1 < best))
        best[which] = rows.take(which).walk(best[which], start[which] + 1, cases_lead)
    return best


class _Rows:
    """Counts of alleles and their moves: 4 + 8 rows of numbers."""

    def __init__(self, values: Array, gaining: bool, c: Fraction) -> None:
        self.values, self.gaining, self.c = values, gaining, c
        self.signs = (1, -1, -1, 1) if gaining else (-1, 1, 1, -1)
        self.moves = [Moves(values[4 + 2 * i], values[5 + 2 * i]) for i in range(4)]

    @classmethod
    def of(cls, table: Array, gaining: bool, c: Fraction) -> _Rows:
        first, second, third, fourth = genotype_gains(
            table if gaining else table[:, REVERSED_COLUMNS]
        )
        reached = (first, second, third, fourth) if gaining else (second, first, fourth, third)
        parts = [part for each in reached for part in (each.twos, each.ones)]
        return cls(np.stack([*_allele_counts(table), *parts]), gaining, c)

    def take(self, which: Array) -> _Rows:
        return _Rows(self.values[:, which], self.gaining, self.c)

    def people(self, count: int) -> Array:
        """How many people of a group can change one of its two counts."""
        first, second = self.moves[count : count + 2]
        return np.asarray(np.maximum(first.twos + first.ones, second.twos + second.ones))

    def keep_sizes(self, count: int) -> Array:
        """How many changes of a group keep its size: those of people whose genotype is known."""
        first, second = self.moves[count : count + 2]
        fewest: Array = np.minimum(first.twos, second.twos)
        return np.where(first.twos == second.twos, fewest + first.ones, fewest)

    def crosses(self, first: Array, second: Array) -> Array:
        """Whether the counts that these numbers of changes reach are on the other side."""
        changes = (first, first, second, second)
        moved = [self.values[i] + self.signs[i] * self.moves[i].reach(changes[i]) for i in range(4)]
        x, w, y, v = moved
        return np.equal(is_above(x, w, y, v, self.c), self.gaining)

    def some_split_crosses(self, k: Array, cases: Array, controls: Array) -> Array:
        """Whether k changes that keep sizes can cross, at most so many of cases and of controls."""
        mine, others = (
            Moves(np.minimum(self.moves[i].twos, self.moves[i + 1].twos), self.moves[i].ones)
            for i in (0, 2)
        )
        least, most = np.maximum(k - controls, 0), np.minimum(k, cases)
        first = np.clip(mine.twos, least, most)
        second = np.clip(k - others.twos, least, most)
        breaks = (least, np.minimum(first, second), np.maximum(first, second), most)
        crossed = np.zeros(len(k), dtype=bool)
        if self.gaining:
            for split in (least, most):
                crossed |= self.crosses(split, k - split)
            for split in breaks[1:3]:
                (inner,) = np.nonzero(~crossed & (least < split) & (split < most))
                if len(inner):
                    here = split[inner]
                    crossed[inner] = self.take(inner).crosses(here, k[inner] - here)
            return crossed
        x, w, y, v = self.values[:4]
        r, s = (x + w) / 2.0, (y + v) / 2.0
        kappa = np.sqrt(float(self.c) * r * s / (2 * (r + s)))
        for start, end in pairwise(breaks):
            # On this piece both steps are constant: 2 until a group's twos are used up, then 1.
            step = np.where(end <= mine.twos, 2, 1)
            other = np.where(k - start <= others.twos, 2, 1)
            slope = (other * r - step * s) / (kappa * (step + other))
            turn = (r + s) * (1 + slope / np.hypot(1.0, slope))
            m = x - mine.reach(start) + y + others.reach(k - start)
            best = start + np.floor((m - turn) / (step + other)).astype(np.int64)
            for split in (np.clip(best, start, end), np.clip(best + 1, start, end)):
                crossed |= self.crosses(split, k - split)
        return crossed

    def walk(self, best: Array, start: Array, cases_lead: bool) -> Array:
        """Lower k where a split of k crosses in which one group makes at least `start` changes:
        from there on, leave out the splits that cannot, and bisect those that do."""

        def crosses(rows: _Rows, other: Array, leading: Array) -> Array:
            return rows.crosses(leading, other) if cases_lead else rows.crosses(other, leading)

        rows, lead, where, result = self, start, np.arange(len(best)), best.copy()
        while len(where):
            rest = best - 1 - lead
            lower = crosses(rows, rest, lead)
            if lower.any():
                fewer = _least_change(partial(crosses, rows, leading=lead), rest - 1, start=-1)
                best = np.where(lower, lead + fewer, best)
            ahead = _least_change(partial(crosses, rows, rest), best - 1, start=lead)
            lead = np.where(lower, lead, ahead)
            result[where] = best
            open_ = lead < best
            where, best, lead, rows = where[open_], best[open_], lead[open_], rows.take(open_)
        return result


def _always_beyond(table: Array, c: Fraction) -> Array:
    """Indices of SNPs that are beyond under every labelling of their people. It depends only on how
    many people have each genotype, which no exchange changes."""
    margins = table[:, :4] + table[:, 4:]
    cases, people = table[:, :4].sum(axis=1), table.sum(axis=1)
    unknown = _nearest_quotient(margins[:, 3] * cases, people)
    two = _nearest_quotient(margins[:, 2] * cases, people)
    open_ = _labelling_beyond(margins, cases, unknown, two, c)
    return np.array([i for i in np.flatnonzero(open_) if _none_below(margins[i], cases[i], c)], int)


def _nearest_quotient(top: Array, below: Array) -> Array:
    return np.asarray((2 * top + below) // (2 * below))


def _labelling_beyond(
    margins: Array, cases: Array, unknown: Array, two: Array, c: Fraction
) -> Array:
    """Whether labellings with so many missing and so many double carriers among cases are beyond,
    the heterozygotes chosen so that χ² is least; also where there is no such labelling."""
    none_all, one_all, two_all, missing_all = margins.T
    known = cases - unknown
    alleles, people = one_all + 2 * two_all, none_all + one_all + two_all
    low = np.maximum(0, known - two - none_all)
    high = np.minimum(one_all, known - two)
    beyond = np.ones(len(cases), dtype=bool)
    possible = (low <= high) & (two <= two_all) & (known >= 0) & (unknown <= missing_all)
    possible &= (known <= people) & (two >= 0)
    exact = alleles * known // np.maximum(people, 1) - 2 * two
    for guess in (exact, exact + 1):
        one = np.clip(guess, low, np.maximum(low, high))
        x, w = one + 2 * two, 2 * known - one - 2 * two
        y, v = alleles - x, 2 * people - alleles - w
        inside = ~(is_above(x, w, y, v, c) | is_above(w, x, v, y, c))
        beyond &= ~(possible & inside)
    return beyond


def _none_below(margins: Array, cases: int, c: Fraction) -> bool:
    """The same for all labellings of one SNP."""
    for unknown in range(int(min(margins[3], cases)) + 1):
        two = np.arange(int(min(margins[2], cases)) + 1)
        many = np.broadcast_to(margins, (len(two), 4))
        same = np.full(len(two), cases), np.full(len(two), unknown)
        if not _labelling_beyond(many, *same, two, c).all():
            return False
    return True


SNP_SCORE_KINDS = ("distance", "chi2", "linear")
SCORE_STEP = Fraction(1, 256)
"""The grid of χ² as a score to choose by; finer than the published one, since it is never shown."""
SELECTION_THRESHOLD = Fraction(4)
"""The χ² that distances are measured from. It is for choosing SNPs, not for calling them
significant: from p = 5·10⁻⁸ (χ² = 29.7) almost every SNP is far below, a rare one hardly farther
than a common one with a clear association, and chance decides."""


def selection_scores(
    kind: str, table: Array, relation: str, threshold: object, sizes: tuple[int, int] | None = None
) -> Array:
    """Scores of tables of so many cases and controls: "distance" to the threshold, "chi2" on a
    grid, or "linear" without strata."""
    if kind not in SNP_SCORE_KINDS:
        raise UnknownName("score", str(kind), SNP_SCORE_KINDS)
    if kind == "distance":
        return distance_scores(table, threshold, relation, sizes)
    if sizes is None:
        sizes = int(table[:, :3].sum(axis=1).max()), int(table[:, 3:].sum(axis=1).max())
    if kind == "linear":
        threshold = read_threshold(threshold, sum(sizes))
        terms = stratum_terms(table[None], np.array([sizes]), relation)
        return terms.scores(threshold, sum(sizes))
    return noise.Grid(SCORE_STEP).units(imputed_chi2(table, *sizes, relation))


def imputed_chi2(table: Array, cases: int, controls: int, relation: str) -> Array:
    """The allelic χ² of all cases and controls, missing genotypes imputed."""
    x, y = imputed_copies(table, cases, controls, relation)
    step = float(COPY_STEP)
    return chi2_of_copies(x * step, y * step, cases, controls)


def score_sensitivity(kind: str, cases: int, controls: int, relation: str) -> int:
    """How far a neighbour moves a score. Floating point computes χ² to within 2N·2⁻⁴⁸; that much
    is added on both sides."""
    if kind != "chi2":
        return 1 if kind == "distance" else LINEAR_SCORE_UNITS
    slack = Fraction(4 * (cases + controls), 2**48)
    change = imputed_sensitivity("allelic-chi2", cases, controls, relation) + slack
    return noise.Grid(SCORE_STEP).sensitivity(change)


def score_step(kind: str) -> Fraction:
    """What one unit of a score stands for, in its own unit: changes, or χ²."""
    return {"distance": Fraction(1), "linear": Fraction(1, LINEAR_SCORE_UNITS)}.get(
        kind, SCORE_STEP
    )


def selection_scale(sensitivity: int, epsilon: Fraction, top: int) -> Fraction:
    """The scale of the noise with which choosing `top` SNPs costs at most ε: 2Δ/ε for one, with its
    gap (`noise.noisy_max_gap`), and for more by OpenDP's map (`noise.top_k`)."""
    if top == 1:
        return 2 * sensitivity / Fraction(epsilon)
    scale = float(2 * top * sensitivity / epsilon)
    while noise.selection_epsilon(sensitivity, Fraction(scale), top) > epsilon:
        scale *= 1 + 2.0**-50
    return Fraction(scale)
