"""Whatever one does to an answer without looking at the data again (Li13 Theorem 3.12)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.mechanisms.base import Mechanism, as_channel
from whosin.mechanisms.channel import Channel
from whosin.mechanisms.stochastic import output_names, stochastic
from whosin.spaces import Space


@dataclass(frozen=True)
class PostProcessed(Mechanism):
    """The outputs of a mechanism passed through a fixed, possibly random, map.

    Args:
        mechanism: with finitely many outputs.
        map: a function or mapping from output to output, or a table outputs × new outputs of
            probabilities.
        outputs: names of the new outputs, with a table.
    """

    mechanism: Mechanism
    map: Callable[[Hashable], Hashable] | Mapping[Hashable, Hashable] | Sequence[Sequence[object]]
    outputs: Sequence[Hashable] | None = None

    def channel(self, space: Space | None = None) -> Channel:
        before = as_channel(self.mechanism, space)
        before.need_finite("post-processing")
        floats, exact, outputs = self._stage(before.outputs)
        if before.exact is not None and exact is not None:
            table: Array = before.exact @ exact
        else:
            table = before.likelihoods @ floats
        return Channel(before.space, table, outputs, lattice=before.lattice)

    def _stage(self, old: tuple[Hashable, ...]) -> tuple[Array, Array | None, tuple[Hashable, ...]]:
        """The map as a table from old outputs to new ones, with the new ones' names."""
        table, names = self.map, self.outputs
        if isinstance(table, Mapping) or callable(table):
            images = [self._image(name) for name in old]
            names = list(dict.fromkeys(images))
            table = [[int(image == name) for name in names] for image in images]
        floats, exact = stochastic(table, len(old), "one an output", lambda row: f"map row {row}")
        return floats, exact, output_names(names, floats.shape[1])

    def _image(self, name: Hashable) -> Hashable:
        if isinstance(self.map, Mapping):
            if name not in self.map:
                raise InvalidInput("map", "an image for every output", f"none for {name!r}")
            return self.map[name]
        assert callable(self.map)
        return self.map(name)
