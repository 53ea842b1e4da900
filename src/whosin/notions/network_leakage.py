"""Bayesian differential privacy of noisy sums over networks, blocks and pedigrees, by messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from whosin.errors import Unsupported, spell
from whosin.exact import Array
from whosin.notions.base import Level, Witness
from whosin.notions.bayesian_privacy import CLOSED_ETA, bracket_floats
from whosin.notions.messages import (
    MAX_FALL,
    MAX_MESSAGE_ENTRIES,
    MIN_WEIGHT,
    Message,
    NoisySums,
    OutOfRoom,
    add_noise,
    align_axes,
    convolve_sums,
    find_width,
    join_options,
    mark_options,
    merge_equal,
    output_points,
    step_diameter,
)
from whosin.notions.messages import noisy_sums as noisy_sums
from whosin.priors.base import Factor
from whosin.spaces import Records

# What is computed.
#
# **Connected sets.** The prior is a product of factors; two rows are neighbours when they share
# one. Rows that the known ones separate from row i are independent of it given these, so leaving
# them unknown only adds noise of their own: the worst set of unknown rows is connected, i in it.
#
# **Messages.** Rows are eliminated one by one towards row i. A row is unknown (summed over) or
# known with one of its values, so a message is a list of *options*, one for each choice made behind
# it. An option has the weight D of what is known, and N, the same split by the sum over unknown
# rows, both as functions of the rows that are still there. Pr[y | x_i = v, known] is the noise
# around N(v), over D(v): factors common to all v cancel, so options are scaled, and equal ones are
# one. An option whose unknown rows are cut off from row i is dropped. What looks the same from two
# rows is computed once.
#
# **Which options to combine.** Changing the distribution of one branch at a time shows that the
# leakage of a combination is at most the sum of those of its branches (what the others add is
# post-processing); combinations that cannot exceed the best so far are left out.
#
# **Cutting off.** In a tree that is too large, rows at a distance R from row i are known. Known or
# not, and whatever is behind them, what they say of x_i reaches it through matrices with positive
# entries: each step contracts Hilbert's metric by tanh(Δ/4) (Birkhoff), Δ the logarithm of the
# largest cross-ratio of the step. The sum over the rows that are cut off is a bound η on what the
# cut can change.

MAX_CHOICES = 40_000
"""Options of one message."""
BOUND_SLACK = 1e-11
"""How far a combination must be able to exceed the best so far to be looked at."""
CUT_DISTANCES = (2, 3, 4, 5, 6, 9, 13, 18, 25, 35, 50, 70, 100, 140)


@dataclass(frozen=True)
class _Use:
    """A message as it was used: the row that was eliminated, and the uses that went in."""

    row: int
    number: int
    scope: tuple[int, ...]
    inputs: tuple[_Use, ...]


@dataclass
class WorstCase:
    """The worst case so far, and what no case that was looked at exceeds."""

    value: float = 0.0
    upper: float = 0.0
    case: tuple[int, dict[int, int], tuple[int, int], tuple[Any, ...], tuple[int, ...]] | None = (
        None
    )


@dataclass
class NetworkSearch:
    """The search over all rows, connected sets of unknown rows, known values and outputs.

    Attributes:
        counted: which pairs of values (above, below) are compared; all where it is None.
    """

    factors: Sequence[Factor]
    query: NoisySums
    values: int
    messages: list[Message] = field(default_factory=list)
    numbers: dict[Any, int | None] = field(default_factory=dict)
    roots: dict[Any, WorstCase] = field(default_factory=dict)
    best: WorstCase = field(default_factory=WorstCase)
    cut_rows: set[int] = field(default_factory=set)
    counted: Array | None = None

    def __post_init__(self) -> None:
        self.neighbours: list[set[int]] = [set() for _ in self.query.weights]
        self.factors_of: list[list[int]] = [[] for _ in self.query.weights]
        self.tables: list[Array] = []
        for number, (scope, table) in enumerate(self.factors):
            for row in scope:
                self.neighbours[row] |= set(scope) - {row}
                self.factors_of[row].append(number)
            array = np.array([float(p) for p in table]).reshape((self.values,) * len(scope))
            if (array[array > 0] < MIN_WEIGHT).any() or any(0 < p < MIN_WEIGHT for p in table):
                message = "the prior has a probability that is too small for floats"
                hint = "give it more probability, or none"
                raise Unsupported(message, field="prior", hint=hint)
            self.tables.append(array)
        self.sums = len(self.query.rates)

    # Messages.

    def _eliminate(
        self,
        row: int,
        scope: tuple[int, ...],
        inputs: tuple[_Use, ...],
        tables: Sequence[int],
        cut: bool,
    ) -> _Use:
        """The message that eliminating a row makes for its scope."""
        place = {each: number for number, each in enumerate((row, *scope))}
        key = (
            len(scope),
            cut,
            self.query.weights[row].tobytes(),
            tuple(
                (self.tables[t].tobytes(), tuple(place[r] for r in self.factors[t][0]))
                for t in tables
            ),
            tuple((use.number, tuple(place[r] for r in use.scope)) for use in inputs),
        )
        if key not in self.numbers:
            self.numbers[key] = None
            made = self._make_message(row, (row, *scope), inputs, tables, cut)
            self.numbers[key] = len(self.messages)
            self.messages.append(made)
        number = self.numbers[key]
        if number is None:  # the same message had no room before
            raise OutOfRoom
        return _Use(row, number, scope, inputs)

    def _make_message(
        self,
        row: int,
        axes: tuple[int, ...],
        inputs: Sequence[_Use],
        tables: Sequence[int],
        cut: bool,
    ) -> Message:
        table = np.ones((self.values,) * len(axes))
        for number in tables:
            table = table * align_axes(self.tables[number], self.factors[number][0], axes)
        parts: list[Message] = []
        for value in range(self.values):
            parts.append(self._with_row_known(axes, inputs, table, value))
        if not cut:
            parts.append(self._with_row_unknown(row, axes, inputs, table))
        joined = join_options(parts, self.sums)
        if cut and self.cuttable:
            joined.slack = np.full(len(joined.touches), step_diameter(table))
        return merge_equal(joined)

    def _with_row_known(
        self, axes: tuple[int, ...], inputs: Sequence[_Use], table: Array, value: int
    ) -> Message:
        rest, total = axes[1:], self._start(table[value])
        for use in inputs:
            position = use.scope.index(axes[0])
            message = self.messages[use.number]
            index = (slice(None),) * (1 + position) + (value,)
            left = tuple(r for r in use.scope if r != axes[0])
            if not left:
                # Nothing behind a row that separates matters, if anything is possible there.
                alone = (n for n, touch in enumerate(message.touches) if not touch)
                kept = next((n for n in alone if message.weight[n, value] > 0), None)
                marked = self._start(np.ones((self.values,) * len(rest)))
                marked.origin = [(None, () if kept is None else (kept,))]
                total = self._combine(total, marked.take([] if kept is None else [0]), rest, rest)
                continue
            touches = []
            for each in message.touches:
                moved = [frozenset(n - (n > position) for n in t if n != position) for t in each]
                touches.append(tuple(moved))
            sliced = replace(
                mark_options(message),
                weight=message.weight[index],
                spread=message.spread[index],
                touches=touches,
                slack=message.slack * 0,  # nothing behind a known row matters
            )
            # Unknown rows that only this row connected with row i are cut off.
            sliced = sliced.take([n for n, each in enumerate(touches) if all(each)])
            total = self._combine(total, merge_equal(sliced), left, rest)
        return replace(total, origin=[(value, origin) for _, origin in total.origin])

    def _with_row_unknown(
        self, row: int, axes: tuple[int, ...], inputs: Sequence[_Use], table: Array
    ) -> Message:
        total = self._start(table)
        for use in inputs:
            marked = mark_options(self.messages[use.number])
            total = self._combine(total, marked, use.scope, axes)
        moved = self.shift_values(total.spread, row, 1).sum(axis=1)
        touches = []
        for each in total.touches:
            joined = set(range(len(axes) - 1))
            apart = tuple(frozenset(n - 1 for n in t) for t in each if 0 not in t)
            touches.append((frozenset(joined), *apart))
        origin = [(None, before) for _, before in total.origin]
        slack = total.slack
        if slack.any():
            diameter = step_diameter(table)
            slack = np.minimum(diameter, math.tanh(diameter / 4) * slack)
        return Message(total.weight.sum(axis=1), moved, touches, origin, slack)

    def _start(self, table: Array) -> Message:
        spread = table.reshape(1, *table.shape, *[1] * self.sums)
        return Message(table[None], spread, [()], [(None, ())], np.zeros(1))

    def shift_values(self, spread: Array, row: int, axis: int) -> Array:
        """Move each value of a row by what it adds."""
        weights = self.query.weights[row]
        shape = spread.shape[spread.ndim - self.sums :]
        size = tuple(n + int(w) for n, w in zip(shape, weights.max(axis=0), strict=True))
        result = np.zeros((*spread.shape[: spread.ndim - self.sums], *size), spread.dtype)
        lead = (slice(None),) * axis
        for value, adds in enumerate(weights):
            places = (slice(int(a), int(a) + n) for a, n in zip(adds, shape, strict=True))
            at: Any = (*lead, value, ..., *places)
            result[at] = spread[at[: axis + 1]]
        return result

    def _combine(
        self, total: Message, other: Message, scope: Sequence[int], axes: Sequence[int]
    ) -> Message:
        """All pairs of options, the second ones' scope inside the axes of the first."""
        if len(other.touches) == 0 or len(total.touches) == 0:
            return total.take([])
        pairs = len(total.touches) * len(other.touches)
        grids = (
            total.spread.shape[total.spread.ndim - self.sums :],
            other.spread.shape[other.spread.ndim - self.sums :],
        )
        cells = math.prod(a + b - 1 for a, b in zip(*grids, strict=True))
        if (
            pairs > MAX_CHOICES * 4
            or pairs * self.values ** len(axes) * cells > MAX_MESSAGE_ENTRIES
        ):
            raise OutOfRoom
        order = sorted(range(len(scope)), key=lambda n: axes.index(scope[n]))
        shown = tuple(slice(None) if row in scope else None for row in axes)
        weight = other.weight.transpose(0, *(n + 1 for n in order))[(slice(None), *shown)]
        grid_axes = range(1 + len(scope), other.spread.ndim)
        spread = other.spread.transpose(0, *(n + 1 for n in order), *grid_axes)
        spread = spread[(slice(None), *shown)]
        both = total.weight[:, None] * weight[None]
        joint = convolve_sums(total.spread[:, None], spread[None], self.sums)
        names = {n: axes.index(row) for n, row in enumerate(scope)}
        moved = [tuple(frozenset(names[n] for n in t) for t in each) for each in other.touches]
        touches = [(*one, *two) for one in total.touches for two in moved]
        origin = [(None, (*one, *two)) for _, one in total.origin for _, two in other.origin]
        return merge_equal(
            Message(
                both.reshape(pairs, *both.shape[2:]),
                joint.reshape(pairs, *joint.shape[2:]),
                touches,
                origin,
                np.add.outer(total.slack, other.slack).reshape(-1),
            )
        )

    # One row, and everything around it.

    def search_row(self, row: int, radius: int | None) -> None:
        """Look at all cases about one row, up to a distance from it."""
        region, cut = self._region(row, radius)
        if self.density_fall(region) > MAX_FALL:
            raise OutOfRoom
        active = {each: self.neighbours[each] & region for each in region}
        used: set[int] = {
            number
            for each in region
            for number in self.factors_of[each]
            if not set(self.factors[number][0]) <= region
        }
        uses: list[_Use] = []
        while len(active) > 1:
            out = min((each for each in active if each != row), key=lambda n: (len(active[n]), n))
            around = active.pop(out)
            scope = tuple(sorted(around))
            if len(scope) > MAX_SCOPE_ROWS:
                raise OutOfRoom
            for each in around:
                active[each] = (active[each] | around) - {each, out}
            own = [number for number in self.factors_of[out] if number not in used]
            used.update(own)
            inputs = tuple(use for use in uses if out in use.scope)
            uses = [use for use in uses if out not in use.scope]
            uses.append(self._eliminate(out, scope, inputs, own, out in cut))
        prior = np.ones(self.values)
        for number in self.factors_of[row]:
            if number not in used:
                prior = prior * self.tables[number]
        key = (
            self.query.weights[row].tobytes(),
            prior.tobytes(),
            tuple(sorted(use.number for use in uses)),
            None if self.counted is None else self.counted.tobytes(),
        )
        if key not in self.roots:
            self._compare_branches(row, prior, uses)
            self.roots[key] = replace(self.best)
        same = self.roots[key]
        if same.case is not None and (self.best.case is None or same.value > self.best.value):
            self.best.value, self.best.case = same.value, same.case
        self.best.upper = max(self.best.upper, same.upper)

    def search_widest(self, row: int) -> None:
        """Look at one row with as much around it as there is room for."""
        before = replace(self.best)
        results = []
        for radius in (0, *CUT_DISTANCES) if self.cuttable else (0, 1):
            self.best = replace(before, upper=before.value)
            try:
                self.search_row(row, radius)
            except OutOfRoom:
                break
            if not self._is_possible(self.best):
                continue
            if not (radius and self.cuttable):  # a case, and no bound
                self.best.upper = math.inf
            results.append(self.best)
            if self.best.upper - self.best.value <= CLOSED_ETA:
                break
        if not results:
            raise refuse_size(self, row)
        most = max(results, key=lambda each: each.value)
        # Changing all rows that depend on each other bounds it too, as group privacy does; so does
        # what the row itself says of the others.
        bounds = self.density_fall(self.component(row)), self._influence(row)
        upper = min(*bounds, *(each.upper for each in results))
        self.best = replace(most, upper=max(before.upper, upper, most.value))

    def _influence(self, row: int) -> float:
        """What a row leaks at most, whatever is around it. Given what is known, two of its values
        weigh each of the others' tables by factors of their own alone; so the probabilities of
        these tables are apart by at most the largest over the least of these factors."""
        total = self.density_fall({row})
        for number in self.factors_of[row]:
            table = np.moveaxis(self.tables[number], self.factors[number][0].index(row), 0)
            with np.errstate(divide="ignore"):
                logs = np.log(table.reshape(self.values, -1))
            logs = logs[:, np.isfinite(logs).any(axis=0)]
            if table.ndim > 1 and np.isinf(logs).any():
                return math.inf
            apart = logs[:, None] - logs[None] if table.ndim > 1 else np.zeros(1)
            total += float((apart.max(axis=-1) - apart.min(axis=-1)).max())
        return total

    def _is_possible(self, best: WorstCase) -> bool:
        """Whether what is known in a case is possible with either value of the row."""
        if best.case is None:
            return False
        row, known, values, _, unknown = best.case
        if all((table > 0).all() for table in self.tables):
            return True
        given, rows = self.complete_known(known, (row, *unknown)), self.component(row)
        return all(self.most_likely(rows, {**given, row: value}) for value in values)

    def density_fall(self, region: set[int]) -> float:
        """−ln of the density at the far end of the range of a region's sums."""
        spans = self.query.weights[sorted(region)].max(axis=1).sum(axis=0)
        return float(sum(sum(r) * n for r, n in zip(self.query.rates, spans, strict=True)))

    def components(self) -> Iterator[list[int]]:
        """The rows by parts that are independent of each other."""
        seen: set[int] = set()
        for row in range(len(self.neighbours)):
            if row not in seen:
                part = self.component(row)
                seen |= part
                yield sorted(part)

    def component(self, row: int) -> set[int]:
        """All rows that depend on this one."""
        return self._region(row, None)[0]

    def _region(self, row: int, radius: int | None) -> tuple[set[int], set[int]]:
        """The rows up to a distance, and those of them that have neighbours beyond."""
        region, edge, distance = {row}, {row}, 0
        while edge and (radius is None or distance < radius):
            edge = {near for each in edge for near in self.neighbours[each]} - region
            region |= edge
            distance += 1
        return region, {each for each in region if self.neighbours[each] - region}

    def _compare_branches(self, row: int, prior: Array, uses: Sequence[_Use]) -> None:
        """Combine the options of all branches that could exceed the worst case so far."""
        own = self._start(prior / prior.max())
        own = replace(own, spread=self.shift_values(own.spread, row, 1))
        branches = [mark_options(self.messages[use.number]) for use in uses]
        order = sorted(range(len(uses)), key=lambda n: len(branches[n].touches))
        uses, branches = [uses[n] for n in order], [branches[n] for n in order]
        bounds = [self._leakages(each) for each in (own, *branches)]
        tops = [bound.max(axis=0, initial=-np.inf) for bound in bounds]
        if np.isneginf(most := np.sum(tops, axis=0)).all():
            return
        first, second = np.unravel_index(int(most.argmax()), most.shape)
        greedy = own
        for branch, bound in zip(branches, bounds[1:], strict=True):
            pick = [int(bound[:, first, second].argmax())]
            greedy = self._pair_options(greedy, branch, [0], pick)
        self._note_worst(row, uses, greedy)
        # From here on with what the cut may have taken away.
        bounds = [
            b + each.slack[:, None, None] for b, each in zip(bounds, (own, *branches), strict=True)
        ]
        tops = [bound.max(axis=0) for bound in bounds]
        total, leak = own, bounds[0]
        for number, branch in enumerate(branches):
            rest = sum(tops[number + 2 :], np.zeros_like(tops[0]))
            total, leak = self._extend(total, leak, branch, bounds[number + 1], rest)
            if not len(total.touches):
                return
            if number == len(branches) - 1:
                self._note_worst(row, uses, total)

    def _extend(
        self, total: Message, leak: Array, branch: Message, bound: Array, rest: Array
    ) -> tuple[Message, Array]:
        """The pairs of options that may still exceed the worst case, and what they leak."""
        ones, twos, sizes = [], [], []
        for start in range(0, len(leak), block := max(1, 2_000_000 // max(1, bound.size))):
            most = (leak[start : start + block, None] + bound[None] + rest).max(axis=(2, 3))
            at = np.argwhere(most > self.best.upper + BOUND_SLACK)
            ones.append(at[:, 0] + start)
            twos.append(at[:, 1])
            sizes.append(most[at[:, 0], at[:, 1]])
        first, second, most = (np.concatenate(part) for part in (ones, twos, sizes))
        order = np.argsort(-most, kind="stable")
        cells = self.values * math.prod(
            a + b - 1 for a, b in zip(total.spread.shape[2:], branch.spread.shape[2:], strict=True)
        )
        block = max(1, 1_000_000 // cells)
        if len(order) * cells > 40 * MAX_MESSAGE_ENTRIES:
            raise OutOfRoom
        parts, leaks = [], []
        for start in range(0, len(order), block):
            some = order[start : start + block]
            some = some[most[some] > self.best.upper + BOUND_SLACK]
            if not len(some):
                break
            made = self._pair_options(total, branch, first[some], second[some])
            value = self._leakages(made) + made.slack[:, None, None]
            kept = np.flatnonzero((value + rest).max(axis=(1, 2)) > self.best.upper + BOUND_SLACK)
            parts.append(made.take(kept.tolist()))
            leaks.append(value[kept])
        if not parts:
            return total.take([]), leak[:0]
        return join_options(parts, self.sums), np.concatenate(leaks)

    def _pair_options(self, one: Message, two: Message, first: Any, second: Any) -> Message:
        """Options first[n] of one message with second[n] of another, both about the same row."""
        weight = one.weight[first] * two.weight[second]
        spread = convolve_sums(one.spread[first], two.spread[second], self.sums)
        origin = [
            (None, (*one.origin[a][1], *two.origin[b][1]))
            for a, b in zip(first, second, strict=True)
        ]
        slack = one.slack[first] + two.slack[second]
        made = Message(weight, spread, [()] * len(origin), origin, slack)
        most = weight.max(axis=1)
        made = made.take(np.flatnonzero(most > 0).tolist())
        top = made.weight.max(axis=1, keepdims=True)
        spread_top = made.spread.reshape(len(top), -1).max(axis=1)
        made.weight = made.weight / top
        made.spread = made.spread / spread_top.reshape(-1, *[1] * (made.spread.ndim - 1))
        return made

    def _log_likelihoods(self, message: Message) -> Array:
        """ln Pr[y | v, known], up to a term of the option: options × values × outputs."""
        flat = add_noise(message.spread, self.query.rates)
        with np.errstate(divide="ignore"):
            weight = np.where(message.weight > 0, np.log(message.weight), np.nan)[..., None]
            return np.log(flat) - weight

    def _leakages(self, message: Message) -> Array:
        """max over outputs of ln Pr[y | v] / Pr[y | v'] (options × v × v'), −∞ if impossible."""
        result = np.full((len(message.touches), self.values, self.values), -np.inf)
        outputs = math.prod(
            len(output_points(len(rates), size, len(set(rates)) == 1))
            for rates, size in zip(self.query.rates, message.spread.shape[2:], strict=True)
        )
        block = max(1, 4_000_000 // (self.values * outputs))
        for start in range(0, len(result), block):
            logs = self._log_likelihoods(
                message.take(range(start, min(start + block, len(result))))
            )
            for high, low in product(range(self.values), repeat=2):
                gap = (logs[:, high] - logs[:, low]).max(axis=1)
                result[start : start + block, high, low] = np.where(np.isnan(gap), -np.inf, gap)
        return result if self.counted is None else np.where(self.counted, result, -np.inf)

    def _note_worst(self, row: int, uses: Sequence[_Use], message: Message) -> None:
        leaks = self._leakages(message)
        if len(leaks):
            bound = float((leaks + message.slack[:, None, None]).max())
            self.best.upper = max(self.best.upper, bound)
        most = leaks.max(initial=-np.inf)
        if most == -np.inf or (most <= self.best.value and self.best.case is not None):
            return
        option, high, low = (int(n) for n in np.unravel_index(int(leaks.argmax()), leaks.shape))
        logs = self._log_likelihoods(message.take([option]))[0]
        gap = logs[high] - logs[low]
        # Of the outputs that show as much, the most likely one.
        output = int(np.where(gap >= gap.max() - 1e-12, logs[high], -np.inf).argmax())
        points = [
            output_points(len(rates), size, len(set(rates)) == 1)
            for rates, size in zip(self.query.rates, message.spread.shape[2:], strict=True)
        ]
        at = np.unravel_index(output, [len(each) for each in points])
        known: dict[int, int] = {}
        for use, chosen in zip(uses, message.origin[option][1], strict=True):
            known.update(self._known_rows(use, chosen))
        unknown = tuple(sorted({r for use in uses for r in _use_rows(use)} - known.keys()))
        outputs = tuple(each[int(n)] for each, n in zip(points, at, strict=True))
        case = row, known, (high, low), outputs, unknown
        self.best = WorstCase(float(leaks.max()), self.best.upper, case)

    def _known_rows(self, use: _Use, option: int) -> Iterator[tuple[int, int]]:
        value, inputs = self.messages[use.number].origin[option]
        if value is not None:
            yield use.row, value
        for each, chosen in zip(use.inputs, inputs, strict=True):
            yield from self._known_rows(each, chosen)

    # The cut, and the witness.

    @cached_property
    def cuttable(self) -> bool:
        """Whether the cut has a bound: a forest of pairs of rows with positive entries."""
        pairs = [set(scope) for scope, _ in self.factors if len(scope) > 1]
        edges = sum(len(near) for near in self.neighbours) // 2
        if any(len(pair) > 2 for pair in pairs) or edges != len(pairs):
            return False
        parts = sum(1 for _ in self.components())
        positive = all((t > 0).all() for t in self.tables if t.ndim == 2)
        return positive and edges == len(self.neighbours) - parts

    def complete_known(self, known: dict[int, int], unknown: Iterable[int]) -> dict[int, int]:
        """Possible values for all rows that are neither: the most likely ones given the known."""
        given, skipped = dict(known), set(unknown)
        for row in range(len(self.neighbours)):
            if row not in given:
                self.most_likely(self.component(row), given)
        return {row: value for row, value in given.items() if row not in skipped}

    def factors_within(self, rows: Iterable[int]) -> list[tuple[tuple[int, ...], Array]]:
        """The scopes and tables of the factors of some rows."""
        numbers = sorted({n for row in rows for n in self.factors_of[row]})
        return [(self.factors[n][0], self.tables[n]) for n in numbers]

    def most_likely(self, rows: set[int], given: dict[int, int]) -> bool:
        """Give the rows of a component that have no value the most likely ones, or where that takes
        too long any; whether these are known to be possible."""
        tables: list[tuple[tuple[int, ...], Array]] = []
        for scope, table in self.factors_within(rows):
            rest = tuple(r for r in scope if r not in given)
            tables.append((rest, table[tuple(given.get(r, slice(None)) for r in scope)]))
        if any(not table.any() for _, table in tables):
            return False
        steps: list[tuple[int, tuple[int, ...], Array]] = []
        left = rows - given.keys()
        while left:
            around = {r: {o for scope, _ in tables if r in scope for o in scope} for r in left}
            out = min(left, key=lambda r: (len(around[r]), r))
            if len(around[out]) > MAX_COMPLETED_ROWS:
                given.update(dict.fromkeys(left, 0))
                return all((table > 0).all() for _, table in tables)
            left.remove(out)
            axes = (out, *sorted(around[out] - {out}))
            joint = np.ones((self.values,) * len(axes))
            for scope, table in tables:
                if out in scope:
                    joint = joint * align_axes(table, scope, axes)
            if not joint.any():
                return False
            joint = joint / joint.max()
            tables = [each for each in tables if out not in each[0]]
            tables.append((axes[1:], joint.max(axis=0)))
            steps.append((out, axes[1:], joint))
        for out, others, joint in reversed(steps):
            at: Any = (slice(None), *(given[r] for r in others))
            given[out] = int(joint[at].argmax())
        return True


MAX_SCOPE_ROWS, MAX_COMPLETED_ROWS = 10, 12
"""Rows of a message's scope: tables over one more are formed. The same for one table of values."""


def _use_rows(use: _Use) -> Iterator[int]:
    yield use.row
    for each in use.inputs:
        yield from _use_rows(each)


def measure_network_leakage(factors: Sequence[Factor], space: Records, query: NoisySums) -> Level:
    """The Bayesian-DP leakage of sums over rows whose prior is a product of factors, in nats."""
    search = NetworkSearch(factors, query, space.values)
    for row in range(space.rows):
        search_within_reach(search, row)
    value, upper = search.best.value, search.best.upper
    case = network_witness(search)
    exact, lower, upper, note = bracket_floats(value, upper, max(map(len, search.components())))
    if not exact and not note:
        width = find_width(search.neighbours, search.cut_rows)
        coarse = "" if search.cuttable else f", coarsely: the tree-width is {width} or less"
        note = "Rows far from the one in question are taken as known; the bracket has what that "
        note += f"changes{coarse}."
    return Level(upper, case, exact, ("T14",), lower, note=note)


def search_within_reach(search: NetworkSearch, row: int) -> None:
    """Look at one row with all of its component, or with what of it is in reach."""
    try:
        if row in search.cut_rows:
            search.search_widest(row)
        else:
            search.search_row(row, None)
    except OutOfRoom:
        search.cut_rows |= search.component(row)
        search.search_widest(row)


def refuse_size(search: NetworkSearch, row: int) -> Unsupported:
    region = search.component(row)
    if search.density_fall(region) > MAX_FALL:
        return Unsupported(
            f"{len(region)} rows that depend on each other take too long: the likelihoods of "
            f"{spell(search.sums)} noisy sums over them differ by more than floats hold",
            field="scale",
            value=search.sums,
            hint="use more noise, or fewer releases",
        )
    width = find_width(search.neighbours, region)
    return Unsupported(
        f"the {len(region)} rows around row {row} depend on each other too widely: their "
        f"tree-width is {width} or less, with {search.values} values a row, and there are too many "
        "sets of known rows",
        field="prior",
        value=width,
        hint="chains, trees and households fit; of wider networks there is a bracket where every "
        "combination of values has some probability",
    )


def network_witness(search: NetworkSearch) -> Witness:
    assert search.best.case is not None
    row, known, values, points, unknown = search.best.case
    known = search.complete_known(known, (row, *unknown))
    query, output = search.query, []
    for number, release in query.order:
        steps = points[number][release]
        steps += sum(int(query.weights[each, value, number]) for each, value in known.items())
        output.append(steps * query.step[number] + query.offset[number])
    shown = tuple(int(v) if v.denominator == 1 else float(v) for v in output)
    ratio = math.exp(search.best.value)
    return Witness(
        output=shown[0] if len(shown) == 1 else shown,
        prior=0.5,
        posterior=ratio / (1 + ratio),
        ratio=ratio,
        row=row,
        known=dict(sorted(known.items())),
        values=values,
    )
