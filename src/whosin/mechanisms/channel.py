"""A finite channel: a row of output probabilities for each world.

Contract: rows are in world order (`Subsets`: bit i of the row's number is entity i; `Records`: row
0 is the most significant digit), or in the order of a lattice that says which worlds are alike. A
channel of rationals stays exact; a channel of floats is taken as the binary fractions it holds.
Noise with a density is represented by its densities at the points that decide (F10): all
rows share one normaliser, which cancels in every ratio.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.documents import check_keys, read_json
from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array, flint_array
from whosin.mechanisms.base import Mechanism, need_space
from whosin.mechanisms.channel_file import decimals, named, space_data, space_from
from whosin.mechanisms.count_table import CountTable
from whosin.mechanisms.entries import Entries, Floats, Rationals, Weighted
from whosin.mechanisms.stochastic import output_names, stochastic
from whosin.spaces import CountLattice, Lattice, Records, Space, Subsets
from whosin.spaces.memory import require_table
from whosin.spaces.width import extended, is_narrow, smallest, widened
from whosin.validation import excerpt, listed, path_of

if TYPE_CHECKING:
    from whosin.mechanisms.noise import Axis

EXACT_WORK = 1 << 21
"""Above this many element operations an exact channel is searched in floats, then certified."""


class Channel(Mechanism):
    """Pr[output | world], world by world.

    Args:
        space: the worlds.
        probabilities: worlds × outputs; floats, or for an exact channel ints, fractions, strings.
        outputs: names of the outputs; 0, 1, … by default.

    Raises:
        InvalidInput: the shape is wrong, an entry is negative or not a number, or a row does not
            sum to 1 (within 1e-9 for floats, exactly for rationals).
    """

    def __init__(
        self,
        space: Space,
        probabilities: object,
        outputs: Sequence[Hashable] | None = None,
        *,
        lattice: Lattice | None = None,
    ) -> None:
        if not isinstance(space, Subsets | Records):
            raise InvalidInput("space", "Subsets(…) or Records(…)", repr(space))
        rows = lattice.worlds if lattice is not None else space.worlds
        why = _describe(space) if lattice is None else "one for each class of worlds"
        floats, exact = stochastic(probabilities, rows, why, _row_names(space, lattice))
        self.space = space
        self.lattice = lattice or (
            CountLattice.single(space) if isinstance(space, Subsets) else None
        )
        self.likelihoods = floats
        self.entries: Entries = Floats(floats) if exact is None else Rationals(exact)
        self.axes: tuple[Axis | int, ...] | None = None
        self.outputs = output_names(outputs, floats.shape[1])

    @classmethod
    def from_densities(
        cls,
        space: Space,
        lattice: Lattice | None,
        densities: Array,
        outputs: Sequence[Hashable],
        entries: Entries,
        axes: Sequence[Axis | int] | None = None,
    ) -> Channel:
        """Densities at deciding points, up to one factor common to all rows.

        Args:
            entries: what they are exactly.
            axes: the coordinates of an output, the first changing slowest: of noise, or the number
                of outputs of a part that has finitely many. None where they are not known.
        """
        self = cls.__new__(cls)
        self.space, self.lattice, self.likelihoods = space, lattice, densities
        self.entries, self.outputs = entries, tuple(outputs)
        self.axes = None if axes is None else tuple(axes)
        self.is_density = True
        return self

    @classmethod
    def from_table(
        cls,
        space: Space,
        lattice: Lattice,
        floats: Array,
        exact: Array | None,
        outputs: Sequence[Hashable],
    ) -> Channel:
        """A table whose rows are known to be distributions: floats, and FLINT rationals if any."""
        self = cls.__new__(cls)
        self.space, self.lattice, self.likelihoods = space, lattice, floats
        self.entries = Floats(floats) if exact is None else Rationals(exact)
        self.axes, self.outputs = None, tuple(outputs)
        return self

    def on_counts(self, people: int, margin: int = 0) -> CountTable | None:
        counted = isinstance(self.lattice, CountLattice) and len(self.lattice.kinds) == 1
        if self.is_density or not counted or self.lattice.space.size != people:  # type: ignore[union-attr]
            return None
        table = self.likelihoods if self.exact is None else self.exact
        return CountTable.from_dense(table, self.outputs)

    @classmethod
    def from_function(
        cls, space: Space, function: Callable[[Any], Mapping[Hashable, object]]
    ) -> Channel:
        """Tabulate a function from a world to {output: probability}."""
        require_table("a table over all worlds", need_space(space, "a function").worlds, 1)
        if not callable(function):
            raise InvalidInput("function", "a function of a world", excerpt(function))
        rows = [function(world) for world in space]
        for row in rows:
            if not isinstance(row, Mapping):
                raise InvalidInput("function", "one that returns a mapping", excerpt(row))
        outputs = list(dict.fromkeys(name for row in rows for name in row))
        return cls(space, [[row.get(name, 0) for name in outputs] for row in rows], outputs)

    @classmethod
    def load(cls, path: str | Path) -> Channel:
        """Read a channel file. "a/b" strings are exact; decimals too, up to `MOST_SPELLED`
        entries, beyond which they are the floats nearest to them."""
        data = read_json(path_of(path), "channel file", spelled=True)
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: object) -> Channel:
        """The channel of a parsed channel file."""
        known = ("space", "outputs", "probabilities")
        if isinstance(data, dict):
            check_keys(data, known, "channel file")
        if not isinstance(data, dict) or not isinstance(data.get("space"), dict):
            raise InvalidInput(
                "channel file", f"an object with {', '.join(known)}", "another value"
            )
        if "probabilities" not in data:
            raise InvalidInput("probabilities", "a list with a row for each world", "nothing")
        space, lattice = space_from(data["space"])
        probabilities = decimals(data["probabilities"])
        return cls(space, probabilities, data.get("outputs"), lattice=lattice)

    def save(self, path: str | Path) -> None:
        """Write a channel file: rationals as "a/b", floats as the shortest decimals that name them.

        Raises:
            Unsupported: the channel has a density.
            InvalidInput: an entity or output has a name that JSON has not.
        """
        self.need_finite("a channel file")
        counted = isinstance(self.lattice, CountLattice) and len(self.lattice.kinds) == 1
        table = self if counted else self.on_worlds()
        probabilities = table.likelihoods.tolist()
        if table.exact is not None:
            probabilities = [[str(entry) for entry in row] for row in table.exact]
        data = {
            "space": space_data(self.space, counted=counted),
            "outputs": named(self.outputs, "outputs"),
            "probabilities": probabilities,
        }
        path_of(path).write_text(json.dumps(data, ensure_ascii=False) + "\n", encoding="utf-8")

    def index(self, world: object) -> int:
        """The number of a world: who is in (one name, or a list), or the rows' values."""
        if isinstance(self.space, Subsets):
            return self.space.index([world] if isinstance(world, str | int) else world)  # type: ignore[arg-type]
        return self.space.index(tuple(listed(world, "world", "a list of the rows' values")))

    def _row(self, world: object) -> int:
        """The row of a world, or of the class that it is in."""
        if self.lattice is None or self.lattice.is_single:
            return self.index(world)
        assert isinstance(self.space, Subsets)
        names = [world] if isinstance(world, str | int) else listed(world, "world", "a list")
        return self.lattice.class_of(self.space.position(name) for name in names)

    def sampler(
        self, labels: Sequence[Hashable] | None = None
    ) -> Callable[[object, int, np.random.Generator], Array]:
        """A function draw(world, size, rng) of outputs. For simulation and audits, not for release.

        Args:
            labels: what to return for each output; the outputs themselves by default.
        """
        self.need_finite("drawing outputs")
        totals = np.cumsum(self.likelihoods, axis=1)
        names = np.empty(len(self.outputs), dtype=object)
        names[:] = self.outputs if labels is None else labels

        def draw(world: object, size: int, rng: np.random.Generator) -> Array:
            row = totals[self._row(world)]
            indices = np.searchsorted(row, rng.random(size) * row[-1], side="right")
            return np.asarray(names[np.minimum(indices, len(names) - 1)])

        return draw

    is_density = False

    def channel(self, space: Space | None = None) -> Channel:
        if space is not None and space != self.space:
            raise InvalidInput("space", f"that of the channel, {self.space!r}", repr(space))
        return self

    @property
    def exact(self) -> Array | None:
        """All entries as FLINT rationals, where that is what they are."""
        return self.entries.table if isinstance(self.entries, Rationals) else None

    @property
    def searchable(self) -> Array:
        """The array to search: exact where that is affordable or floats fail, else floats."""
        axes = self.space.size if isinstance(self.space, Subsets) else self.space.rows
        affordable = self.likelihoods.size * axes <= EXACT_WORK
        if self.exact is not None and (affordable or self._is_narrow):
            return self.exact
        return widened(self.likelihoods) if self._is_narrow else self.likelihoods

    @property
    def rationals(self) -> Array:
        """The entries as FLINT rationals: the exact ones, or the binary fractions that the floats
        are."""
        if self.exact is not None:
            return self.exact
        return flint_array(self.likelihoods.ravel(), self.likelihoods.shape)

    @cached_property
    def wide(self) -> Array:
        """The likelihoods in floats that reach down to the smallest of them.

        Raises:
            Unsupported: no float type does.
        """
        if not self._is_narrow:
            return self.likelihoods
        array = widened(self.likelihoods)
        if self.exact is None:
            return array
        for entry in np.argwhere((array < smallest(self.likelihoods.dtype)) & (self.exact != 0)):
            array[tuple(entry)] = extended(self.exact[tuple(entry)])
        if ((array == 0) & (self.exact != 0)).any():
            raise Unsupported("a likelihood is below the smallest number there is")
        return array

    @cached_property
    def _is_narrow(self) -> bool:
        """Whether some likelihood is too small for a search in its floats."""
        if is_narrow(self.likelihoods):
            return True
        if self.exact is None:
            return False
        gone = self.likelihoods == 0
        return bool(gone.any() and (self.exact[gone] != 0).any())

    def ratio(self, top: Weighted, bottom: Weighted, output: int) -> Fraction | float:
        """Σ weight · Pr[output|world] over one set of worlds, over another: exact, or where e^x
        enters a rational just above (F12). 0/0 is 1 and x/0 infinite."""
        return self.entries.ratio(top, bottom, output)

    def on_worlds(self) -> Channel:
        """The same channel with a row for every world of the space."""
        if self.lattice is None or self.lattice.is_single:
            return self
        assert isinstance(self.space, Subsets)
        require_table("a table over all subsets", self.space.worlds, len(self.outputs))
        return self.relabelled(self.lattice.labels(), CountLattice.single(self.space))

    def relabelled(self, labels: Array, lattice: Lattice) -> Channel:
        """Rows taken by number, on another lattice."""
        other = Channel.__new__(Channel)
        other.space, other.lattice, other.outputs = self.space, lattice, self.outputs
        other.likelihoods = self.likelihoods[labels]
        other.entries = self.entries.rows(labels)
        other.is_density, other.axes = self.is_density, None
        return other

    def need_finite(self, what: str) -> None:
        """Refuse operations that need every output, not only the deciding points of a density."""
        if self.is_density:
            raise Unsupported(f"{what} needs finitely many outputs; this mechanism has a density")

    def __repr__(self) -> str:
        rows, columns = self.likelihoods.shape
        return f"Channel({self.space!r}, {rows} × {columns})"


def same_lattice(channels: Sequence[Channel]) -> list[Channel]:
    """The channels as they are when their worlds agree, otherwise spread over all worlds.

    Raises:
        InvalidInput: they are on different spaces.
    """
    first = channels[0]
    for channel in channels[1:]:
        if channel.space != first.space:
            raise InvalidInput("parts", f"all on {first.space!r}", f"one on {channel.space!r}")
    if all(channel.lattice == first.lattice for channel in channels):
        return list(channels)
    return [channel.on_worlds() for channel in channels]


def _describe(space: Space) -> str:
    if isinstance(space, Subsets):
        return f"2^{space.size} for {space.size} entities"
    return f"{space.values}^{space.rows} for {space.rows} rows of {space.values} values"


def _row_names(space: Space, lattice: Lattice | None) -> Callable[[int], str]:
    if lattice is not None:
        return lambda row: f"row {row}"

    def name(row: int) -> str:
        world = space.world(row)
        if isinstance(world, tuple):
            return f"row {row} (world {world})"
        return f"row {row} (world {{{', '.join(map(str, sorted(world, key=str)))}}})"

    return name
