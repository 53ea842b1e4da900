"""Maxima over sets of priors: mixtures of corners, and cells that close in on the least favourable
one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property, reduce
from itertools import combinations
from typing import Any

import numpy as np

from whosin.errors import Unsupported, spell
from whosin.exact import Array, flint_array, flint_rational, rational
from whosin.mechanisms import Channel
from whosin.notions.base import Level
from whosin.notions.bayesian_privacy import (
    NoisySum,
    WorstWindow,
    estimate_sweep,
    measure_chain_leakage,
    noisy_sum,
    sweep_windows,
)
from whosin.notions.gains import GainFunction
from whosin.priors import ChainBox, MarkovChain, Prior, PriorSet
from whosin.priors.sets import Row, WithinBounds, member_prior
from whosin.spaces import Records, Space

# The least favourable prior of a set whose parts (rows, or whole tables) are independent.
#
# Each part's distribution is a mixture of its corners, so a prior of the set is a product of
# mixtures. What is maximised is seldom concave in all parts together. A *cell* has for each part
# some mixtures, and holds the products of their mixtures; what is maximised is bounded over all
# mixtures of these products, also those that are no product. Cells are halved along their longest
# edge until the bound meets a member of the set.

MAX_CORNER_ENTRIES = 1 << 20
"""Combinations of corners times worlds."""
MAX_CELLS, MAX_CELL_PRODUCTS = 600, 20_000
"""Cells that are looked at, and products of their corners in all."""
CELL_GAP = 1e-9
"""How near the bound comes, in proportion to what is maximised where that is above 1."""
MIN_EDGE_LENGTH = 1e-12
FLOAT_SLACK = 1 + 1e-12
"""More than the rounding of sums of products over a cell, after any number of halvings."""
PLAIN_DENOMINATOR = 1000
"""Weights are tried as fractions with at most this denominator."""

Bound = Callable[[list[Array]], tuple[float, Array]]
"""From the distributions of each part to an upper bound over their products' mixtures, and the
weights of the mixture that nearly attains it."""


class SetCorners:
    """The corners of each part of a set of priors on records."""

    def __init__(self, prior: PriorSet, space: Records) -> None:
        self.space, self.sets = space, prior.parts(space)
        self.corners = [each.corners() for each in self.sets]
        many = math.prod(map(len, self.corners))
        if many * space.worlds > MAX_CORNER_ENTRIES:
            raise Unsupported(
                f"the set has {spell(many)} combinations of corners for {spell(space.worlds)} "
                f"tables, more than {spell(MAX_CORNER_ENTRIES)} together",
                field="prior",
                value=many,
                hint="use fewer rows, or fewer distributions for each",
            )

    @cached_property
    def floats(self) -> list[Array]:
        return [np.array([[float(p) for p in row] for row in each]) for each in self.corners]

    def mix(self, weights: Sequence[Array], plain: bool = False) -> Prior:
        """The member with these weights of the corners, exactly."""
        return member_prior(
            [mix_corners(*both, plain) for both in zip(self.corners, weights, strict=True)],
            self.space,
        )


def mix_corners(corners: Sequence[Row], weights: Array, plain: bool = False) -> Row:
    """The mixture of corners with these weights, scaled to sum 1; where `plain`, rounded to small
    denominators first."""
    shares = [Fraction(float(weight)) for weight in weights]
    if plain:
        shares = [share.limit_denominator(PLAIN_DENOMINATOR) for share in shares]
    total = sum(shares, Fraction(0))
    pairs = [(s / total, corner) for s, corner in zip(shares, corners, strict=True) if s]
    values = range(len(corners[0]))
    return tuple(sum((s * corner[v] for s, corner in pairs), Fraction(0)) for v in values)


def product_masses(rows: Sequence[Array]) -> Array:
    """The products of the parts' distributions: combinations × worlds."""

    def combine(first: Array, second: Array) -> Array:
        table = first[:, None, :, None] * second[None, :, None, :]
        return table.reshape(len(first) * len(second), -1)

    return reduce(combine, rows)


def enclose_maximum(
    known: SetCorners, bound: Bound, value: Callable[[Array], float]
) -> tuple[float, list[Array]]:
    """(a number that the maximum does not exceed, the weights of the best member found).

    Args:
        value: what is maximised, for the masses of all worlds.
    """
    sizes = [len(each) for each in known.corners]
    best, weights = -math.inf, [np.eye(size)[0] for size in sizes]
    queue: list[tuple[float, int, list[Array]]] = []

    def add(cell: list[Array], number: int) -> None:
        nonlocal best, weights
        upper, shares = bound([w @ points for w, points in zip(cell, known.floats, strict=True)])
        shares = shares.reshape([len(each) for each in cell])
        axes = range(len(cell))
        sums = [shares.sum(axis=tuple(a for a in axes if a != axis)) for axis in axes]
        mixed = [each @ part for each, part in zip(sums, cell, strict=True)]
        rows = [(w @ points)[None] for w, points in zip(mixed, known.floats, strict=True)]
        if (reached := value(product_masses(rows)[0])) > best:
            best, weights = reached, mixed
        heapq.heappush(queue, (-upper, number, cell))

    add([np.eye(size) for size in sizes], 0)
    for number in range(1, min(MAX_CELLS, MAX_CELL_PRODUCTS // math.prod(sizes)), 2):
        upper, _, cell = queue[0]
        edges = map(_longest_edge, cell, known.floats)
        (length, first, second), part = max((edge, part) for part, edge in enumerate(edges))
        if -upper <= best + CELL_GAP * max(1.0, abs(best)) or length < MIN_EDGE_LENGTH:
            break
        heapq.heappop(queue)
        for place in (first, second):
            half = cell[part].copy()
            half[place] = (half[first] + half[second]) / 2
            add([*cell[:part], half, *cell[part + 1 :]], number + (place == second))
    return max(-queue[0][0], best), weights


def _longest_edge(weights: Array, corners: Array) -> tuple[float, int, int]:
    """(its length, its ends), by the distance of distributions."""
    points = weights @ corners
    far = np.abs(points[:, None] - points[None]).sum(axis=2)
    first, second = np.unravel_index(int(far.argmax()), far.shape)
    return float(far[first, second]), int(first), int(second)


# Leakage over a set of priors.
#
# V after is convex in the prior. For one part the factor is the largest V after over all weights
# w ≥ 0 of corners, whatever their sum, with V before ≤ 1: a convex function on a polytope, largest
# at one of its vertices. The difference is the largest V after − t
# over distributions with V before ≤ t: the same. These are few where corners and guesses are.
# Otherwise cells close in: over mixtures of products V after is at most the mean of its values at
# the products, and V before is linear programming's business.

MAX_BASES = 20_000
"""Choices of tight constraints that are tried."""


class LeakageOver:
    """The leakages of a channel under the priors of a set."""

    def __init__(
        self, gain: GainFunction, is_factor: bool, known: SetCorners, channel: Channel
    ) -> None:
        self.known, self.is_factor, self.channel = known, is_factor, channel
        rows = gain.rows(known.space)
        self.exact_gains = flint_array((g for row in rows for g in row), (len(rows), len(rows[0])))
        self.gains = np.array([[float(g) for g in row] for row in rows])
        self.table = np.asarray(channel.likelihoods, dtype=float)

    def _vulnerabilities(self, masses: Array) -> tuple[Array, Array]:
        """For priors: what each guess gains before, and V after."""
        after = [(masses * column) @ self.gains.T for column in self.table.T]
        return masses @ self.gains.T, sum(each.max(axis=1) for each in after)

    def value(self, mass: Array) -> float:
        before, (after,) = self._vulnerabilities(mass[None])
        most = float(before.max())
        if not self.is_factor:
            return float(after) - most
        return float(after) / most if most else 1.0

    def bound(self, points: list[Array]) -> tuple[float, Array]:
        """Over mixtures of products; any weights of the guesses give a bound."""
        from scipy.optimize import linprog

        before, after = self._vulnerabilities(product_masses(points))
        many, guesses = before.shape
        if self.is_factor:
            # Σ w V after, with Σ w (gain of each guess before) ≤ 1.
            scale = max(float(before.max()), 1e-300)
            found = linprog(-after / scale, before.T / scale, np.ones(guesses), method="highs")
            shares = found.x
        else:
            goal = np.append(-after, 1.0)
            limits = np.column_stack([before.T, -np.ones(guesses)])
            sums = np.append(np.ones(many), 0.0)[None]
            found = linprog(goal, limits, np.zeros(guesses), sums, [1.0], method="highs")
            shares = found.x[:-1] if found.x is not None else None
        weights = np.zeros(guesses)
        if shares is None or not shares.sum() > 0:
            shares = np.ones(many)
        else:
            weights = np.maximum(-found.ineqlin.marginals, 0.0)
        weights = weights / weights.sum() if weights.sum() > 0 else np.full(guesses, 1 / guesses)
        means = before @ weights
        if not self.is_factor:
            worst = (after * FLOAT_SLACK - means / FLOAT_SLACK).max()
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.where(after > 0, after / means, 1.0)
            worst = max(float(ratios.max()) * FLOAT_SLACK, 1.0)
        return float(worst), shares / shares.sum()

    def enumerate_vertices(self) -> Prior | None:
        """The least favourable prior, exactly; nothing where there is more than one part, or too
        much to try."""
        corners = self.known.corners
        if len(corners) != 1:
            return None
        points = flint_array(
            (p for row in corners[0] for p in row), (len(corners[0]), self.known.space.worlds)
        )
        before = points @ self.exact_gains.T
        many, guesses = before.shape
        extra = 0 if self.is_factor else 1
        if math.comb(many + guesses, many) > MAX_BASES:
            return None
        columns = range(self.table.shape[1])
        rationals = self.channel.rationals
        joint = [(points * rationals[:, y]) @ self.exact_gains.T for y in columns]
        best: tuple[Any, Array] | None = None
        for weights in _polytope_vertices(before, extra):
            shares = weights[:many]
            reached = (shares @ before).max()
            if not any(shares) or reached == 0:
                continue
            after = sum((shares @ each).max() for each in joint)
            value = after / reached if self.is_factor else after - reached
            if best is None or value > best[0]:
                best = value, shares
        if best is None:
            best = flint_rational(1), flint_array([1] + [0] * (many - 1), (many,))
        total = best[1].sum()
        mixed = [rational(mass / total) for mass in best[1] @ points]
        return member_prior([tuple(mixed)], self.known.space)


def _polytope_vertices(before: Array, extra: int) -> Iterator[Array]:
    """The vertices of {w ≥ 0, w·before ≤ 1 for each guess}; with one more number t, those of
    {w ≥ 0, Σ w = 1, w·before ≤ t}."""
    from flint import fmpq_mat

    many, guesses = before.shape
    zero, one = flint_rational(0), flint_rational(1)
    size = many + extra
    units = [[one if i == j else zero for j in range(size)] for i in range(many)]
    sides = [[*before[:, g], *([-one] * extra)] for g in range(guesses)]
    lines = [(row, zero) for row in units] + [(row, zero if extra else one) for row in sides]
    always = [([*([one] * many), zero], one)] * extra
    seen = set()
    for chosen in combinations(lines, size - extra):
        basis = [*always, *chosen]
        matrix = fmpq_mat(size, size, [entry for row, _ in basis for entry in row])
        if matrix.det() == 0:
            continue
        found = matrix.solve(fmpq_mat(size, 1, [right for _, right in basis])).entries()
        weights = np.array(found, dtype=object)
        if min(weights[:many]) < 0 or tuple(found) in seen:
            continue
        if ((weights[:many] @ before) <= (weights[-1] if extra else one)).all():
            seen.add(tuple(found))
            yield weights


# Markov chains whose probabilities lie between bounds (F13): not settled at vertices.
#
# A cell is a smaller such set, and a chain inside it is measured. Under another chain of the cell
# each probability differs by a factor between the least m of a lower bound and the largest M of an
# upper bound, each over the measured probability. What a window leaks is a ratio of two ratios of
# sums over paths, each a product of as many probabilities as there are steps in the window: four
# sums, two of them in the numerator, so it differs by at most 2 ln(M/m) times these. A window
# longer than W leaks at most what it does with row i ± W known and η more, and η is at most the
# projective diameter Δ of the matrix's power W: tanh(Δ/4)^(W − 1) Δ (Birkhoff's contraction), Δ
# being bounded by the cell's bounds. Cells are halved along their largest ratio of bounds until the
# largest bound meets a chain that was measured.
MAX_CHAIN_CELLS = 1 << 9
"""Cells that are looked at before the search ends with a wider bracket."""
CHAIN_GAP = 0.01
"""How far apart, relatively, the ends of a bracket are where the search comes to an end."""
WINDOWS_TRIED = (2, 4, 8, 16, 32, 64, 128)
MAX_CHAIN_OPERATIONS = 1e8
"""Element operations that the sweep of one cell may take."""
NEGLIGIBLE_CUT = 1e-6

Cell = tuple[WithinBounds, ...]
"""The sets of the first row's distribution and of each row of the matrix."""


class ChainSearch:
    """The largest leakage of a noisy sum over a set of Markov chains, from below and above.

    Attributes:
        reached: the leakage of `chain`, one of the set; bound: no chain of the set leaks more.
    """

    def __init__(self, space: Records, query: NoisySum) -> None:
        self.rows, self.query = space.rows, query
        self.reached, self.bound = -math.inf, math.inf
        self.chain: MarkovChain | None = None

    def run(self, cell: Cell) -> None:
        queue = [(-self._bound_cell(cell), 0, cell)]
        for number in range(1, MAX_CHAIN_CELLS):
            self.bound = -queue[0][0]
            if self.bound <= self.reached * (1 + CHAIN_GAP) or not queue[0][0]:
                break
            _, _, widest = heapq.heappop(queue)
            for half, part in enumerate(_halve_chains(widest)):
                heapq.heappush(queue, (-self._bound_cell(part), 2 * number + half, part))
        self.bound = max(-queue[0][0], self.reached)

    def _bound_cell(self, cell: Cell) -> float:
        """No chain of the cell leaks more; measures one of them on the way."""
        chain = MarkovChain(cell[0].middle(), [row.middle() for row in cell[1:]])
        slack = (
            step_slack(cell, [[Fraction(p) for p in row.middle()] for row in cell]) * FLOAT_SLACK
        )
        diameter, longest = _largest_diameter(cell[1:]), self.rows - 1
        marginals, most = chain.marginals(self.rows), math.inf
        for reach in (*(w for w in WINDOWS_TRIED if w < longest), longest):
            if estimate_sweep(reach, self.query, chain.values) > MAX_CHAIN_OPERATIONS:
                break
            cut = 0.0
            if reach < longest:
                if diameter == math.inf:
                    continue
                cut = math.tanh(diameter / 4) ** (reach - 1) * diameter * FLOAT_SLACK
            found = WorstWindow(slack)
            sweep_windows(chain, self.rows, self.query, marginals, reach, None, found)
            if found.value > self.reached:
                self.reached, self.chain = found.value, chain
            cut_off = max(found.left + cut, found.right + cut, found.both + 2 * cut)
            if (bound := max(found.most, cut_off)) >= most:  # longer windows have more slack
                break
            most = bound
            if cut < NEGLIGIBLE_CUT:
                break
        return most * FLOAT_SLACK


def step_slack(cell: Cell, measured: Sequence[Sequence[Fraction]]) -> float:
    """How much a step of a window may add to what it leaks under another chain of the cell."""
    factors = [
        (low / p, high / p)
        for row, probabilities in zip(cell, measured, strict=True)
        for (low, high), p in zip(_bounds(row), probabilities, strict=True)
        if p
    ]
    return 2 * math.log(max(high for _, high in factors) / min(low for low, _ in factors))


def _bounds(row: WithinBounds) -> Iterator[tuple[Fraction, Fraction]]:
    return zip(row.low, row.high, strict=True)


def _halve_chains(cell: Cell) -> list[Cell]:
    """The cell in two, along the probability whose bounds are farthest apart."""
    places = [(row, value) for row, each in enumerate(cell) for value in range(each.values)]

    def spread(place: tuple[int, int]) -> Fraction:
        row, value = place
        low, high = cell[row].low[value], cell[row].high[value]
        return high / low if high else Fraction(1)

    row, value = max(places, key=spread)
    return [(*cell[:row], half, *cell[row + 1 :]) for half in cell[row].halves(value)]


def _largest_diameter(rows: Sequence[WithinBounds]) -> float:
    """A bound on the projective diameter of every matrix with these rows: the largest logarithm
    of p(u, v) p(u', v') / (p(u, v') p(u', v))."""
    low, high = (
        np.array([[float(p) for p in side] for side in sides])
        for sides in zip(*((r.low, r.high) for r in rows), strict=True)
    )
    if (low == 0).any():
        return math.inf
    pairs = np.log(high)[:, :, None] - np.log(low)[:, None, :]
    sums = pairs[:, None] + pairs.transpose(0, 2, 1)[None]
    return max(float(sums[~np.eye(len(rows), dtype=bool)].max()), 0.0) if len(rows) > 1 else 0.0


def measure_chain_box(prior: ChainBox, mechanism: object, space: Space | None) -> Level:
    """The Bayesian-DP leakage of a noisy sum over all chains between bounds, as a bracket.

    Raises:
        Unsupported: what is measured is no noisy sum, some probability may be 0 or more, or there
            are too many rows for chains that may mix so slowly.
    """
    query = noisy_sum(mechanism, space) if isinstance(space, Records) else None
    if query is None or not isinstance(space, Records):
        message = (
            "chains between bounds are measured for noise on sums, counts and histograms of rows"
        )
        raise Unsupported(message, field="mechanism", hint="give one chain, or a list of them")
    prior.check_records(space)
    cell = tuple(row.tightened() for row in prior.rows)
    for number, row in enumerate(cell):
        for value, (low, high) in enumerate(_bounds(row)):
            if high > low == 0:
                where = f"row {number - 1} of the transition" if number else "initial"
                raise Unsupported(
                    f"value {value} in {where} may be impossible or not, up to {spell(high)}",
                    field="prior",
                    value=(low, high),
                    hint="give it a lower bound above 0, or two bounds of 0",
                )
    search = ChainSearch(space, query)
    search.run(cell)
    if search.chain is None or search.bound == math.inf:
        raise Unsupported(
            f"{space.rows} rows take too long for chains that may mix so slowly",
            field="rows",
            value=space.rows,
            hint="use fewer rows, narrower bounds, or one chain",
        )
    member = measure_chain_leakage(search.chain, space, query)
    if all(low == high for row in cell for low, high in _bounds(row)):
        return replace(member, prior=search.chain)
    lower = member.value if member.lower is None else member.lower
    bound = max(search.bound, float(lower))
    return Level(bound, member.witness, False, ("T14",), lower, prior=search.chain)
