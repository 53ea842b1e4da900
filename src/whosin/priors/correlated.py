"""Priors with dependence: blocks, Bayesian networks, pedigrees, Markov chains, Gaussian vectors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from whosin.errors import (
    InvalidInput,
    Unsupported,
    check_count,
    check_kind,
    invalid_value,
    read_list,
    read_tables,
    read_whole,
    shorten_value,
)
from whosin.exact import Array, flint_rational, probability, rational
from whosin.priors.base import (
    AsNumber,
    Factor,
    Prior,
    check_sum,
    convert_array,
    multiply_rows,
    read_distribution,
)
from whosin.spaces.arrays import require_table
from whosin.spaces.quotients import CountLattice, Lattice, spread_on_grid
from whosin.spaces.worlds import Records, Subsets

Block = tuple[Sequence[Hashable], Mapping[Any, object]]


@dataclass(frozen=True, eq=False)
class Blocks(Prior):
    """Any dependence inside a household, none between: Pr[T] = ∏ over blocks of Pr[T ∩ block].

    On a count, a sum or a histogram the blocks' numbers add up, so thousands of blocks are a few
    thousand shifts of an array.

    Args:
        blocks: for each block its members and a mapping from the set of those present to its
            probability; sets left out have probability 0. Everyone belongs to exactly one block.
    """

    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        seen: set[Hashable] = set()
        accepted = "pairs of the members and a mapping from sets of them to probabilities"
        for number, (members, table) in enumerate(read_tables(self.blocks, "blocks", accepted)):
            field, own = f"block {number}", set(members)
            if seen & own or len(own) != len(members):
                twice = seen & own or {each for each in members if members.count(each) > 1}
                message = f"{field} has people who are in another block, or twice in this one"
                shown = shorten_value(sorted(map(str, twice)))
                raise InvalidInput(f"{message}: {shown}", field=field, value=members)
            seen |= own
            for present in table:
                if outside := set(read_list(present, field, "sets of its members")) - own:
                    shown = shorten_value(sorted(map(str, outside)))
                    message = f"{field} has sets with people who are not its members: {shown}"
                    raise InvalidInput(message, field=field, value=present)
        for number, table in enumerate(self._exact):
            check_sum(
                table.values(), f"block {number}", what=f"the probabilities of block {number}"
            )

    @classmethod
    def cliques(cls, groups: Sequence[Sequence[Hashable]], p: object) -> Blocks:
        """Each group is present as a whole with probability p, else absent as a whole."""
        out, accepted = 1 - probability(p, "p"), "lists of the members of each"
        result = [
            read_list(group, "groups", accepted) for group in read_list(groups, "groups", accepted)
        ]
        return cls([(group, {group: p, (): out}) for group in result])

    @classmethod
    def common_cause(
        cls, groups: Sequence[Sequence[Hashable]], causes: Sequence[tuple[object, object]]
    ) -> Blocks:
        """Members of a group are independent of each other given what they share.

        Args:
            groups: the members of each household.
            causes: for each state of what a household shares its probability, and the probability
                with which a member is then present: `[("0.1", "0.8"), ("0.9", "0.05")]` for an
                infection in one household in ten.
        """
        accepted = "pairs of a state's probability and the probability to be present then"
        states = []
        for cause in read_list(causes, "causes", accepted):
            if len(pair := read_list(cause, "causes", accepted)) != 2:
                raise invalid_value("causes", accepted, shorten_value(cause))
            states.append((probability(pair[0], "causes"), probability(pair[1], "causes")))
        check_sum((share for share, _ in states), "causes", what="the probabilities of the causes")
        blocks = []
        for group in read_list(groups, "groups", "lists of the members of each"):
            members = read_list(group, "groups", "lists of the members of each")
            require_table("a table over a block", 1 << len(members), 16)
            table = {
                present: sum(
                    share * chance**size * (1 - chance) ** (len(members) - size)
                    for share, chance in states
                )
                for size in range(len(members) + 1)
                for present in combinations(members, size)
            }
            blocks.append((members, table))
        return cls(blocks)

    @cached_property
    def _exact(self) -> list[dict[frozenset[Hashable], Fraction]]:
        tables = []
        for _members, table in self.blocks:
            merged: dict[frozenset[Hashable], Fraction] = {}
            for present, mass in table.items():
                key = frozenset(present)
                merged[key] = merged.get(key, Fraction(0)) + probability(mass, "probabilities")
            tables.append(merged)
        return tables

    @cached_property
    def _block_of(self) -> dict[Hashable, int]:
        return {each: number for number, (members, _) in enumerate(self.blocks) for each in members}

    @property
    def parameters(self) -> tuple[object, ...]:
        return tuple(mass for _, table in self.blocks for mass in table.values())

    def check(self, space: Subsets) -> None:
        self._check_members(space.entities, "entities")

    def _check_members(self, expected: Iterable[Hashable], what: str) -> None:
        if set(self._block_of) != set(expected):
            raise InvalidInput(
                f"blocks do not cover the {what} of the space",
                field="blocks",
                value=tuple(self._block_of),
                hint=f"put each of the {what} into exactly one block",
            )

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        self.check(lattice.space)
        return self._sum(lattice, self._exact, number)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        self.check(lattice.space)
        name = lattice.space.entities[entity]
        own, belief = self._block_of[name], self.belief(lattice.space, entity)
        sides = []
        for inside in (True, False):
            share = belief if inside else 1 - belief
            table = self._exact[own] if share else {}
            kept = {s: m / share for s, m in table.items() if (name in s) is inside}
            tables = [*self._exact[:own], kept, *self._exact[own + 1 :]]
            sides.append(self._sum(lattice, tables, number))
        return sides[0], sides[1]

    def role(self, grid: CountLattice, entity: int) -> Hashable:
        """What the entity's conditionals depend on: how its block moves the class with and
        without it. The other blocks' part is the same for all blocks that move it alike."""
        name = grid.space.entities[entity]
        moves: dict[tuple[int, bool], Fraction] = {}
        for present, mass in self._exact[self._block_of[name]].items():
            key = grid.class_of(grid.space.position(member) for member in present), name in present
            moves[key] = moves.get(key, Fraction(0)) + mass
        return frozenset(moves.items())

    def _sum(
        self,
        lattice: Lattice,
        tables: list[dict[frozenset[Hashable], Fraction]],
        number: AsNumber,
    ) -> Array:
        """The distribution over classes: shift and add, block by block."""
        kind = float if number is float else object
        if not isinstance(lattice, CountLattice):
            grid, _ = spread_on_grid(lattice, np.zeros((lattice.worlds, 1)))
            spread = np.zeros(lattice.worlds, dtype=kind)
            np.add.at(spread, lattice.labels(), self._sum(grid, tables, number))
            return spread
        positions = {name: position for position, name in enumerate(lattice.space.entities)}
        moves: list[dict[int, Fraction]] = []
        for table in tables:
            move: dict[int, Fraction] = {}
            for present, mass in table.items():
                shift = lattice.class_of(positions[name] for name in present)
                move[shift] = move.get(shift, Fraction(0)) + mass
            moves.append(move)
        total = np.zeros(lattice.worlds, dtype=kind)
        if number is float:
            total[0], reached = 1.0, 1
            for move in moves:
                moved = np.zeros_like(total)
                for shift, mass in move.items():
                    moved[shift : shift + reached] += total[:reached] * float(mass)
                total, reached = moved, reached + max(move, default=0)
            return total
        for index, weight in enumerate(_block_product(moves)):
            total[index] = number(weight)
        return total

    def check_records(self, space: Records) -> None:
        """On records a row is a person, by number, and its value whether they are present."""
        if space.values != 2:
            raise invalid_value("values", "2 for blocks: absent and present", space.values)
        self._check_members(range(space.rows), f"rows 0 to {space.rows - 1}")

    def tables(self) -> list[tuple[tuple[int, ...], tuple[Fraction, ...]]]:
        """For each block its rows, and the probability of each of their worlds, first row first."""
        result = []
        for (members, _), table in zip(self.blocks, self._exact, strict=True):
            rows = tuple(sorted(members))  # type: ignore[type-var]
            require_table("a table over a block", 1 << len(rows), 16)
            masses = [Fraction(0)] * (1 << len(rows))
            for present, mass in table.items():
                masses[sum(1 << (len(rows) - 1 - rows.index(who)) for who in present)] = mass
            result.append((rows, tuple(masses)))
        return result  # type: ignore[return-value]

    def factors(self, space: Records) -> list[Factor]:
        self.check_records(space)
        return list(self.tables())

    def on_records(self, space: Records, number: AsNumber) -> Array:
        """With two values: row i is 1 where person i is present."""
        self.check_records(space)
        require_table("a table over all records", space.worlds, 1)
        rows, masses = zip(*self.tables(), strict=True)
        axes = multiply_rows(masses, number).reshape((2,) * space.rows)
        order = np.argsort([row for block in rows for row in block])
        return np.ascontiguousarray(axes.transpose(order)).reshape(-1)

    def belief(self, space: Subsets, entity: int) -> Fraction:
        name = space.entities[entity]
        table = self._exact[self._block_of[name]]
        return sum((m for s, m in table.items() if name in s), Fraction(0)) / sum(table.values())


def _block_product(moves: list[dict[int, Fraction]]) -> list[Any]:
    """The coefficients of ∏ over blocks of Σ mass · x^shift, by halves."""
    from flint import fmpq_poly

    factors = []
    for move in moves:
        entries = [flint_rational(0)] * (max(move, default=0) + 1)
        for shift, mass in move.items():
            entries[shift] = flint_rational(mass)
        factors.append(fmpq_poly(entries))
    while len(factors) > 1:
        pairs = [factors[start : start + 2] for start in range(0, len(factors), 2)]
        factors = [pair[0] * pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return list(factors[0].coeffs())


Nodes = Sequence[tuple[Sequence[int], Mapping[Any, Sequence[object]]]]


@dataclass(frozen=True, eq=False)
class Network(Prior):
    """A small Bayesian network: Pr[x] = ∏ Pr[x_j | parents of j].

    Args:
        nodes: for each row in order its parents, all of them earlier rows, and a mapping from the
            tuple of their values to the distribution of the row: `((), {(): (0.5, 0.5)})` for a row
            without parents.
    """

    nodes: Nodes

    def __post_init__(self) -> None:
        accepted = "pairs of the parents and a mapping from their values to a distribution"
        for row, (parents, table) in enumerate(read_tables(self.nodes, "nodes", accepted)):
            field = f"parents of row {row}"
            if any(read_whole(parent, field, 0) >= row for parent in parents):
                raise invalid_value(field, "earlier rows", parents)
            for values in table:
                if not isinstance(values, tuple) or len(values) != len(parents):
                    accepted = f"a tuple of the values of its {len(parents)} parents"
                    raise invalid_value(f"table of row {row}", f"keyed by {accepted}", values)
        _ = self._exact

    @cached_property
    def _exact(self) -> list[dict[tuple[int, ...], tuple[Any, ...]]]:
        return [
            {
                tuple(key): read_distribution(row, f"row {number} given {tuple(key)}")
                for key, row in table.items()
            }
            for number, (_parents, table) in enumerate(self.nodes)
        ]

    @classmethod
    def pedigree(
        cls, people: Mapping[Hashable, tuple[Hashable, Hashable]], frequency: object
    ) -> Network:
        """Copies of an allele (0, 1, 2) in families: founders in Hardy–Weinberg proportions, and a
        child receives one copy of each parent's two, either with probability ½ (Mendel).

        Args:
            people: for each person, a row in this order, the father and the mother, or None where
                the pedigree does not have them; parents come first.
            frequency: of the allele among founders.
        """
        check_kind(people, dict, "people", "a mapping from a person to the father and mother")
        rows = {name: row for row, name in enumerate(people)}
        parents = {
            name: read_list(both, f"parents of {name}", "the father and the mother, or None")
            for name, both in people.items()
        }
        _check_pedigree(parents)
        founder = probability(frequency, "frequency")
        nodes = []
        for both in parents.values():
            known = [rows[each] for each in both if each is not None]
            # What an unknown parent passes on is a copy from the population.
            table = {
                copies: _count_copies(
                    [Fraction(c, 2) for c in copies] + [founder] * (2 - len(copies))
                )
                for copies in product(range(3), repeat=len(known))
            }
            nodes.append((tuple(known), table))
        return cls(nodes)

    @property
    def parameters(self) -> tuple[object, ...]:
        return tuple(p for _, table in self.nodes for row in table.values() for p in row)

    def factors(self, space: Records) -> list[Factor]:
        """The distribution of each row given its parents, as tables over parents and row."""
        check_count(len(self.nodes), space.rows, "nodes", "entries", "rows")
        result: list[Factor] = []
        for row, (parents, _table) in enumerate(self.nodes):
            require_table("a table over a row and its parents", space.values ** len(parents), 1)
            masses: list[Fraction] = []
            for key in product(range(space.values), repeat=len(parents)):
                chances = self._exact[row].get(key)
                if chances is None or len(chances) != space.values:
                    accepted = f"{space.values} probabilities given {key}"
                    raise invalid_value(f"table of row {row}", accepted, chances)
                masses.extend(chances)
            result.append(((*parents, row), tuple(masses)))
        return result

    def on_records(self, space: Records, number: AsNumber) -> Array:
        require_table("a table over all records", space.worlds, 1, space.values)
        shape = (space.values,) * space.rows
        mass = np.full(shape, number(1), dtype=float if number is float else object)
        for scope, masses in self.factors(space):
            order = sorted(range(len(scope)), key=scope.__getitem__)
            table = convert_array(masses, number).reshape((space.values,) * len(scope))
            shown = tuple(slice(None) if row in scope else None for row in range(space.rows))
            mass = mass * table.transpose(order)[shown]
        return np.ascontiguousarray(mass).reshape(-1)


def _count_copies(chances: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The distribution of the number of copies, from the chance that either parent passes one."""
    one, two = chances
    return ((1 - one) * (1 - two), one * (1 - two) + two * (1 - one), one * two)


def _check_pedigree(people: Mapping[Hashable, tuple[Any, ...]]) -> None:
    """Refuse pedigrees that cannot be."""
    fathers = {both[0] for both in people.values() if len(both) == 2}
    for name, both in people.items():
        field = f"parents of {name}"
        if len(both) != 2:
            raise invalid_value(field, "two: the father and the mother, or None", len(both))
        for parent in both:
            if parent is not None and parent not in people:
                raise InvalidInput(f"{parent} is a parent of {name} and not in people", field=field)
        if both[1] is not None and both[1] in fathers:
            message = f"{both[1]} is a mother of {name} and a father elsewhere"
            hint = "write the father first and the mother second"
            raise InvalidInput(message, field=field, value=both, hint=hint)
    seen: set[Hashable] = set()
    for name, both in people.items():
        late = [each for each in both if each is not None and each not in seen]
        if late:
            message = f"{name} comes before {late[0]}, a parent"
            if name in _ancestors(name, people):
                message = f"{name} is an ancestor of {name}: the pedigree has a loop"
            hint = "put parents before their children"
            raise InvalidInput(message, field=f"parents of {name}", value=both, hint=hint)
        seen.add(name)


def _ancestors(name: Hashable, people: Mapping[Hashable, tuple[Any, ...]]) -> set[Hashable]:
    found: set[Hashable] = set()
    edge = {name}
    while edge:
        edge = {each for one in edge for each in people[one] if each is not None} - found
        found |= edge
    return found


Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]


@dataclass(frozen=True, init=False)
class MarkovChain(Prior):
    """A person's days, a sequence of places: Pr[x] = initial(x_0) ∏ transition(x_j, x_{j+1}) (F13).

    Args:
        initial: the distribution of the first row.
        transition: one matrix for every step, or a list with one matrix for each step.
    """

    initial: tuple[object, ...]
    transition: tuple[Any, ...]

    def __init__(self, initial: Iterable[object], transition: Iterable[Any]) -> None:
        read_list(transition, "transition", "a matrix, or one for each step")
        object.__setattr__(self, "initial", read_list(initial, "initial", "a list of numbers"))
        object.__setattr__(self, "transition", _nest_tuples(transition))
        _ = self.start, self.steps

    @cached_property
    def start(self) -> Row:
        """The distribution of the first row, exactly."""
        return read_distribution(self.initial, "initial distribution")

    @cached_property
    def steps(self) -> tuple[Matrix, ...]:
        """The transition matrices, exactly: one for all steps, or one for each step."""
        values = len(self.start)
        if not self.transition or not all(isinstance(row, tuple) for row in self.transition):
            raise invalid_value(
                "transition", "a matrix, or one for each step", repr(self.transition)
            )
        nested = self.transition[0] and isinstance(self.transition[0][0], tuple)
        listed = self.transition if nested else (self.transition,)
        checked = []
        for number, matrix in enumerate(listed):
            where = f"transition {number}, row" if nested else "transition row"
            rows = [row for row in matrix if isinstance(row, tuple) and len(row) == values]
            if not len(rows) == len(matrix) == values:
                raise invalid_value(
                    "transition", f"{values} × {values}, as for the initial values", len(matrix)
                )
            checked.append(
                tuple(read_distribution(row, f"{where} {index}") for index, row in enumerate(rows))
            )
        return tuple(checked)

    @property
    def values(self) -> int:
        return len(self.start)

    @property
    def homogeneous(self) -> bool:
        return len(self.steps) == 1

    @property
    def parameters(self) -> tuple[object, ...]:
        return (*self.initial, *_flatten(self.transition))

    def check_records(self, space: Records) -> None:
        check_count(
            self.values, space.values, "initial distribution", "probabilities", "values of a row"
        )
        if not self.homogeneous:
            check_count(len(self.steps), space.rows - 1, "transition", "matrices", "steps")

    def matrix(self, step: int, number: AsNumber = float) -> Array:
        """The matrix from row `step` to the next."""
        chosen = self.steps[0] if self.homogeneous else self.steps[step]
        return np.array([convert_array(row, number) for row in chosen])

    def on_records(self, space: Records, number: AsNumber) -> Array:
        self.check_records(space)
        mass = convert_array(self.start, number)
        for step in range(space.rows - 1):
            last = mass.reshape(-1, space.values)
            mass = (last[:, :, None] * self.matrix(step, number)[None]).reshape(-1)
        return mass

    def factors(self, space: Records) -> list[Factor]:
        self.check_records(space)
        steps = [self.steps[0 if self.homogeneous else n] for n in range(space.rows - 1)]
        pairs = [((n, n + 1), tuple(p for row in s for p in row)) for n, s in enumerate(steps)]
        return [((0,), self.start), *pairs]

    def marginals(self, rows: int) -> Array:
        """Pr[x_j = v] for each row, in floats: rows × values."""
        result = [convert_array(self.start, float)]
        for step in range(read_whole(rows, "rows", 1) - 1):
            result.append(result[-1] @ self.matrix(step))
        return np.array(result)


def _nest_tuples(value: Any) -> Any:
    """Nested lists as nested tuples, so that the prior can be compared and hashed."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return tuple(_nest_tuples(entry) for entry in value)


def _flatten(value: Any) -> list[object]:
    if not isinstance(value, tuple):
        return [value]
    return [entry for part in value for entry in _flatten(part)]


@dataclass(frozen=True, eq=False)
class GaussianVector(Prior):
    """Rows that are jointly normal, for sums with Gaussian noise (`measure_gaussian_leakage`).

    Args:
        covariance: a symmetric and positive matrix, a row and a column for each row of the data.
            The mean does not matter.
    """

    covariance: Sequence[Sequence[object]]

    def __post_init__(self) -> None:
        matrix = self.matrix
        if not np.array_equal(matrix, matrix.T):
            raise InvalidInput("the covariance is not symmetric", field="covariance")
        values = np.linalg.eigvalsh(matrix)
        if values[0] <= MIN_EIGENVALUE_RATIO * values[-1]:
            raise InvalidInput(
                "the covariance is not positive: some weighted sum of the rows has no variance, or "
                "a negative one",
                field="covariance",
                value=float(values[0]),
                hint="add a little variance to each row, or leave out rows that others determine",
            )

    @classmethod
    def autoregressive(
        cls, coefficients: Sequence[object], rows: int, innovation: object = 1
    ) -> GaussianVector:
        """A stationary series x_t = Σ_k coefficient_k x_(t−k) + noise (AR(p)).

        Args:
            coefficients: of the last value first.
            innovation: the variance of the noise of each step.
        """
        listed = read_list(coefficients, "coefficients", "a list of numbers")
        phi = np.array([float(rational(each, "coefficients")) for each in listed])
        variance, order = float(rational(innovation, "innovation")), len(phi)
        if variance <= 0:
            raise invalid_value("innovation", "above 0", innovation)
        read_whole(rows, "rows", 1)
        companion = np.eye(order, k=-1)
        companion[:1] = phi
        if order and np.abs(np.linalg.eigvals(companion)).max() >= 1 - 1e-9:
            raise InvalidInput(
                "the series is not stationary: its coefficients let it grow without end",
                field="coefficients",
                value=listed,
                hint="use smaller coefficients",
            )
        # Yule–Walker: γ_k = Σ_j φ_j γ_|k−j|, and the innovation's variance at k = 0.
        system = np.eye(order + 1)
        for lag in range(order + 1):
            for back in range(1, order + 1):
                system[lag, abs(lag - back)] -= phi[back - 1]
        gamma = list(np.linalg.solve(system, [variance, *[0.0] * order]))
        while len(gamma) < rows:
            gamma.append(float(phi @ gamma[: -order - 1 : -1]) if order else 0.0)
        return cls([[gamma[abs(a - b)] for b in range(rows)] for a in range(rows)])

    @cached_property
    def matrix(self) -> Array:
        """The covariance in floats."""
        rows = [
            [float(rational(each, "covariance")) for each in read_list(row, "covariance", "rows")]
            for row in read_list(self.covariance, "covariance", "a list of rows")
        ]
        if not rows or any(len(row) != len(rows) for row in rows):
            raise invalid_value("covariance", "a square matrix", [len(row) for row in rows][:5])
        return np.array(rows)

    @property
    def parameters(self) -> tuple[object, ...]:
        return tuple(each for row in self.covariance for each in row)

    def on_records(self, space: Records, number: AsNumber) -> Array:
        message = "GaussianVector is about real numbers, not about records of finitely many values"
        hint = "use notions.measure_gaussian_leakage"
        raise Unsupported(message, field="prior", hint=hint)


MIN_EIGENVALUE_RATIO = 1e-10
"""Covariances that are nearer to 0 in some direction than this count as not positive."""
