"""Mechanisms made of others: composed, mixed, post-processed, sampled."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np

from whosin.errors import (
    InvalidInput,
    Unsupported,
    check_count,
    invalid_value,
    read_list,
    wrong_sum,
)
from whosin.exact import (
    Array,
    ball_sum,
    certificate_precision,
    flint_rational,
    is_exact,
    probability,
    read_ranged,
)
from whosin.mechanisms.additive_noise import Axis
from whosin.mechanisms.channel import (
    Channel,
    Mechanism,
    output_names,
    read_channel,
    read_stochastic,
    same_lattice,
)
from whosin.mechanisms.count_rules import MAX_CHANGE, Rule, RuleChain
from whosin.mechanisms.count_table import Beyond, CountTable, Spread
from whosin.mechanisms.entries import Balls, Entries, Exponents, Rationals
from whosin.spaces import CountLattice, Space, Subsets
from whosin.spaces.arrays import MIN_LIKELIHOOD, is_narrow, require_table, widen_floats
from whosin.spaces.quotients import sample_entities
from whosin.spaces.worlds import need_subsets


@dataclass(frozen=True)
class Composed(Mechanism):
    """The joint channel of mechanisms run with independent randomness; outputs are tuples.

    Levels under most families do not follow from the parts' levels: measure this.
    """

    parts: Sequence[Mechanism]

    def __post_init__(self) -> None:
        _read_parts(self.parts)

    def channel(self, space: Space | None = None) -> Channel:
        channels = same_lattice([read_channel(part, space) for part in self.parts])
        first = channels[0]
        sizes = [len(channel.outputs) for channel in channels]
        require_table("the joint channel", len(first.likelihoods), prod(sizes))
        outputs = list(product(*(channel.outputs for channel in channels)))
        floats = _outer_rows([channel.likelihoods for channel in channels])
        exacts = [channel.exact for channel in channels]
        known = [exact for exact in exacts if exact is not None]
        exact = _outer_rows(known) if len(known) == len(exacts) else None
        finite = not any(channel.is_density for channel in channels)
        if finite and exact is not None:
            return Channel(first.space, exact, outputs, lattice=first.lattice)
        possible = _outer_rows([channel.likelihoods > 0 for channel in channels])
        if is_narrow(floats) or (possible & (floats == 0)).any():
            floats = _outer_rows([widen_floats(channel.likelihoods) for channel in channels])
            if (possible & (floats == 0)).any():
                message = "the joint likelihoods are below the smallest float"
                hint = "compose fewer releases, or use more noise"
                raise Unsupported(message, field="parts", hint=hint)
        if finite:
            return Channel(first.space, floats, outputs, lattice=first.lattice)
        entries = _joint_entries([channel.entries for channel in channels], sizes, exact)
        axes = _joint_axes(channels)
        return Channel.from_densities(first.space, first.lattice, floats, outputs, entries, axes)


def _read_parts(parts: object) -> tuple[Any, ...]:
    listed = read_list(parts, "parts", "a list of mechanisms")
    if not listed:
        raise invalid_value("parts", "a list of at least one mechanism", "empty")
    return listed


def _joint_axes(channels: Sequence[Channel]) -> list[Axis | int] | None:
    """The coordinates of the joint output, where those of all parts are known."""
    result: list[Axis | int] = []
    for channel in channels:
        if channel.is_density and channel.axes is None:
            return None
        result.extend(channel.axes or (len(channel.outputs),))
    return result


def _joint_entries(parts: Sequence[Entries], sizes: Sequence[int], exact: Array | None) -> Entries:
    """The entries of a joint density: products of the parts', exponents where all have one."""
    if exact is not None:
        return Rationals(exact)
    powers = [part.exponent for part in parts if isinstance(part, Exponents)]

    def exponent(world: int, output: int) -> Fraction:
        indices = map(int, np.unravel_index(output, sizes))
        return sum(
            (power(world, at) for power, at in zip(powers, indices, strict=True)), Fraction()
        )

    def ball(world: int, output: int) -> Any:
        indices = map(int, np.unravel_index(output, sizes))
        with certificate_precision():
            return prod(part.at(world, index) for part, index in zip(parts, indices, strict=True))

    return Exponents(exponent) if len(powers) == len(parts) else Balls(ball)


def _outer_rows(tables: Sequence[Array]) -> Array:
    """Row by row, the outer product of the tables' rows."""
    table = tables[0]
    for other in tables[1:]:
        table = (table[:, :, None] * other[:, None, :]).reshape(len(table), -1)
    return table


@dataclass(frozen=True)
class Mixture(Mechanism):
    """Run `parts[i]` with probability `weights[i]`; equal outputs are one (Li13 Theorem 3.11).

    Args:
        parts: mechanisms on one space, with finitely many outputs.
        weights: probabilities with sum 1; equal ones by default.
    """

    parts: Sequence[Mechanism]
    weights: Sequence[object] | None = None

    def __post_init__(self) -> None:
        parts = _read_parts(self.parts)
        if self.weights is not None:
            weights = read_list(self.weights, "weights", "a list of numbers")
            check_count(len(weights), len(parts), "weights", "numbers", "parts")
            total = sum((probability(w, "weights") for w in weights), Fraction(0))
            if abs(total - 1) > 1e-9:
                raise wrong_sum("weights", total)

    def channel(self, space: Space | None = None) -> Channel:
        channels = same_lattice([read_channel(part, space) for part in self.parts])
        for channel in channels:
            channel.need_finite("a mixture")
        weights = self.weights or [flint_rational(1) / len(channels)] * len(channels)
        outputs: list[Hashable] = list(
            dict.fromkeys(name for channel in channels for name in channel.outputs)
        )
        exact = all(c.exact is not None for c in channels) and is_exact(*weights)
        rows = len(channels[0].likelihoods)
        wide = np.result_type(float, *(channel.likelihoods.dtype for channel in channels))
        table = np.zeros((rows, len(outputs)), dtype=object if exact else wide)
        column = {name: position for position, name in enumerate(outputs)}
        for channel, weight in zip(channels, weights, strict=True):
            where = [column[name] for name in channel.outputs]
            number = flint_rational(weight)
            if exact:
                table[:, where] += channel.exact * number
            else:
                table[:, where] += channel.likelihoods * (int(number.p) / int(number.q))
        return Channel(channels[0].space, table, outputs, lattice=channels[0].lattice)


Map = (
    Rule | Callable[[Hashable], Hashable] | Mapping[Hashable, Hashable] | Sequence[Sequence[object]]
)


@dataclass(frozen=True)
class PostProcessed(Mechanism):
    """The outputs of a mechanism passed through a fixed, possibly random, map (Li13 Theorem 3.12).

    A count with geometric noise has infinitely many outputs. Those so far out that they tell
    nothing more apart are taken together; a rule of `rules` says how far that is, and for other
    maps it is far enough that less than 2^−64 is left.

    Args:
        mechanism: with finitely many outputs, or a count with geometric noise.
        map: a function or mapping from output to output, a rule about counts, or a table
            outputs × new outputs of probabilities.
        outputs: names of the new outputs, with a table.
    """

    mechanism: Mechanism
    map: Map
    outputs: Sequence[Hashable] | None = None

    def channel(self, space: Space | None = None) -> Channel:
        if isinstance(space, Subsets):
            table = self.on_counts(space.size)
            if table is not None:
                return table.channel(space)
        before = read_channel(self.mechanism, space)
        before.need_finite("post-processing")
        floats, exact, outputs = self._matrix(before.outputs)
        if before.exact is not None and exact is not None:
            table_after: Array = before.exact @ exact
        else:
            table_after = before.likelihoods @ floats
        return Channel(before.space, table_after, outputs, lattice=before.lattice)

    def on_counts(self, people: int, margin: int = 0) -> CountTable | None:
        if not isinstance(self.mechanism, Mechanism) or isinstance(self.mechanism, Channel):
            return None
        reach = self.map.reach if isinstance(self.map, Rule) else MAX_CHANGE
        table = self.mechanism.on_counts(people, margin + reach)
        if table is None:
            return None
        stages = dict(zip(table.outputs, self._stages(table.outputs), strict=True))
        return table.then(stages.__getitem__)

    def _stages(self, old: tuple[Hashable, ...]) -> list[Spread]:
        """What becomes of each old output."""
        table = self.map
        if isinstance(table, Rule):
            return [table.applied_to(name) for name in old]
        if isinstance(table, Mapping) or callable(table):
            return [[(self._image(name), flint_rational(1))] for name in old]
        floats, exact = read_stochastic(
            table, len(old), "one an output", lambda row: f"map row {row}"
        )
        names = output_names(self.outputs, floats.shape[1])
        rows = floats if exact is None else exact
        return [list(zip(names, row, strict=True)) for row in rows]

    def _matrix(
        self, old: tuple[Hashable, ...]
    ) -> tuple[Array, Array | None, tuple[Hashable, ...]]:
        """The map as a table from old outputs to new ones, with the new ones' names."""
        after = CountTable.from_rows(self._stages(old))
        return *after.dense(), after.outputs

    def _image(self, name: Hashable) -> Hashable:
        if isinstance(name, Beyond):
            return name
        if isinstance(self.map, Mapping):
            if name not in self.map:
                message = f"map has no entry for the output {name!r}"
                raise InvalidInput(message, field="map", value=name)
            return self.map[name]
        assert callable(self.map)
        return self.map(name)


def combine_rules(mechanism: Mechanism) -> Rule | None:
    """A rule, or rules that post-process each other, as one rule; None for anything else."""
    if isinstance(mechanism, Rule):
        return mechanism
    if not isinstance(mechanism, PostProcessed) or not isinstance(mechanism.map, Rule):
        return None
    first = combine_rules(mechanism.mechanism)
    if first is None:
        return None
    before = first.rules if isinstance(first, RuleChain) else (first,)
    return RuleChain((*before, mechanism.map))


MAX_EXACT_SAMPLED_ENTRIES = 1 << 20
"""Up to this many entries are sampled in rationals where floats do not reach."""


@dataclass(frozen=True)
class Sampled(Mechanism):
    """Keep each present entity with probability β, then run the mechanism on what is left (Li13
    Definition 5.8)."""

    mechanism: Mechanism
    beta: object

    def __post_init__(self) -> None:
        read_ranged(self.beta, "beta", "above 0 and at most 1")

    def channel(self, space: Space | None = None) -> Channel:
        before = read_channel(self.mechanism, space)
        subsets = need_subsets(before.space, "sampling entities")
        if not isinstance(before.lattice, CountLattice):
            before = before.on_worlds()
        grid = before.lattice
        assert isinstance(grid, CountLattice)
        exact: Array | None = None
        if before.exact is not None and is_exact(self.beta):
            exact = sample_entities(grid, before.exact, flint_rational(self.beta))
        floats = sample_entities(grid, before.likelihoods, float(probability(self.beta, "beta")))
        low = floats < MIN_LIKELIHOOD  # too small for floats, unless it is 0 in truth
        possible = (before.likelihoods > 0).astype(float)
        if exact is None and low.any() and sample_entities(grid, possible, 0.5)[low].any():
            # In rationals, then: the entries are the binary fractions that the floats are.
            if before.is_density or before.likelihoods.size > MAX_EXACT_SAMPLED_ENTRIES:
                message = (
                    "with a sampling rate this small some outputs are less likely than the "
                    "smallest float"
                )
                raise Unsupported(message, field="beta", value=self.beta, hint="use a larger beta")
            beta = flint_rational(probability(self.beta, "beta"))
            exact = sample_entities(grid, before.rationals, beta)
            exact = exact / exact.sum(axis=1, keepdims=True)
        if before.is_density:
            entries = self._balls(grid, before.entries) if exact is None else Rationals(exact)
            return Channel.from_densities(subsets, grid, floats, before.outputs, entries)
        table = floats if exact is None else exact
        return Channel(subsets, np.asarray(table), before.outputs, lattice=grid)

    def _balls(self, grid: CountLattice, before: Entries) -> Balls:
        """Σ over the samples of a class of Pr[sample] times the ball there."""
        beta = probability(self.beta, "beta")

        def ball(world: int, output: int) -> Any:
            counts = grid.counts(world)
            terms = []
            for kept in product(*(range(count + 1) for count in counts)):
                weight, number = Fraction(1), 0
                for of, j, stride in zip(counts, kept, grid.strides, strict=True):
                    weight *= comb(of, j) * beta**j * (1 - beta) ** (of - j)
                    number += j * stride
                terms.append((before.at(number, output), weight))
            return ball_sum(terms)

        return Balls(ball)
