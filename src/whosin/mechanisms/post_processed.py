"""Whatever one does to an answer without looking at the data again (Li13 Theorem 3.12)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, flint_rational
from whosin.mechanisms.base import Mechanism, as_channel
from whosin.mechanisms.channel import Channel
from whosin.mechanisms.count_rules import Rule, RuleChain
from whosin.mechanisms.count_rules.rule import FAR
from whosin.mechanisms.count_table import Beyond, CountTable, Spread
from whosin.mechanisms.stochastic import output_names, stochastic
from whosin.spaces import Space, Subsets

Map = (
    Rule | Callable[[Hashable], Hashable] | Mapping[Hashable, Hashable] | Sequence[Sequence[object]]
)


@dataclass(frozen=True)
class PostProcessed(Mechanism):
    """The outputs of a mechanism passed through a fixed, possibly random, map.

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
        before = as_channel(self.mechanism, space)
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
        reach = self.map.reach if isinstance(self.map, Rule) else FAR
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
        floats, exact = stochastic(table, len(old), "one an output", lambda row: f"map row {row}")
        names = output_names(self.outputs, floats.shape[1])
        rows = floats if exact is None else exact
        return [list(zip(names, row, strict=True)) for row in rows]

    def _matrix(
        self, old: tuple[Hashable, ...]
    ) -> tuple[Array, Array | None, tuple[Hashable, ...]]:
        """The map as a table from old outputs to new ones, with the new ones' names."""
        after = CountTable.from_rows(self._stages(old))
        shape = len(old), len(after.outputs)
        floats = np.zeros(shape)
        floats[after.counts, after.columns] = after.floats
        if not after.exact:
            return floats, None, after.outputs
        exact = np.full(shape, flint_rational(0), dtype=object)
        exact[after.counts, after.columns] = after.weights
        return floats, exact, after.outputs

    def _image(self, name: Hashable) -> Hashable:
        if isinstance(name, Beyond):
            return name
        if isinstance(self.map, Mapping):
            if name not in self.map:
                raise InvalidInput("map", "an image for every output", f"none for {name!r}")
            return self.map[name]
        assert callable(self.map)
        return self.map(name)


def as_rule(mechanism: Mechanism) -> Rule | None:
    """A rule, or rules that post-process each other, as one rule; None for anything else."""
    if isinstance(mechanism, Rule):
        return mechanism
    if not isinstance(mechanism, PostProcessed) or not isinstance(mechanism.map, Rule):
        return None
    first = as_rule(mechanism.mechanism)
    if first is None:
        return None
    before = first.rules if isinstance(first, RuleChain) else (first,)
    return RuleChain((*before, mechanism.map))
