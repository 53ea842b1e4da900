"""What every mechanism can do, and a finite channel: Pr[output given world], its exact entries, and
its file."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.documents import MAX_SPELLED_ENTRIES, Spelled, check_keys, read_json
from whosin.errors import (
    InvalidInput,
    Unsupported,
    check_count,
    invalid_value,
    placed,
    read_list,
    read_path,
    shorten,
    shorten_value,
    spell_excess,
    wrong_sum,
)
from whosin.exact import Array, flint_array, is_exact, rational
from whosin.mechanisms.count_table import CountTable
from whosin.mechanisms.entries import Computed, Entries, Floats, Powers, Rationals, Weighted
from whosin.plain_files import write_file
from whosin.spaces import Count, CountLattice, Lattice, Records, Space, Subsets
from whosin.spaces.arrays import (
    extended_float,
    is_narrow,
    require_table,
    smallest_float,
    widen_floats,
)
from whosin.spaces.statistics import CountColumns

if TYPE_CHECKING:
    from whosin.mechanisms.additive_noise import Axis


ROW_SUM_TOLERANCE = 1e-9
MAX_WRITTEN_WORLDS = 10**18


class Mechanism(ABC):
    """A random answer that depends on the world."""

    @abstractmethod
    def channel(self, space: Space | None = None) -> Channel:
        """Pr[output | world] on this space, or the densities at the points that decide (F10)."""

    def on_counts(self, people: int, margin: int = 0) -> CountTable | None:
        """Pr[output | how many of the people are in], where the mechanism sees nothing else and
        that is a table; None otherwise.

        Args:
            margin: how far beyond 0 … people noisy counts are told apart, at least.
        """
        return None


def read_channel(mechanism: object, space: Space | None = None) -> Channel:
    """The channel of what a user handed over."""
    if not isinstance(mechanism, Mechanism):
        raise invalid_value("mechanism", "a mechanism or a channel", repr(mechanism))
    return mechanism.channel(None if space is None else need_space(space, "it"))


def need_space(space: Space | None, mechanism: str) -> Space:
    """The space, or an error that says how to give one."""
    if space is None:
        hint = "call measure(mechanism, space)"
        raise InvalidInput(f"{mechanism} needs a space", field="space", hint=hint)
    if not isinstance(space, Subsets | Records):
        raise invalid_value("space", "Subsets(…) or Records(…)", shorten_value(space))
    return space


def read_stochastic(
    probabilities: object, rows: int, why: str, name: Callable[[int], str]
) -> tuple[Array, Array | None]:
    """Read a table whose rows are distributions: floats, and exact rationals where it has them.

    Args:
        rows: how many there must be; `why` says where that number comes from.
        name: what to call a row in a message.
    """
    floats, exact = _read_entries(probabilities, rows, why)
    _check_rows(floats, exact, name)
    return floats, exact


def _read_entries(probabilities: object, rows: int, why: str) -> tuple[Array, Array | None]:
    """(floats, exact rationals or nothing), both worlds × outputs."""
    try:
        array = np.asarray(probabilities)
    except ValueError:
        message = "probabilities has rows of different lengths"
        hint = "give every world one probability for each output"
        raise InvalidInput(message, field="probabilities", hint=hint) from None
    if array.ndim != 2 or array.shape[1] == 0:
        accepted = "a table of worlds by outputs"
        raise invalid_value("probabilities", accepted, f"an array of shape {array.shape}")
    if array.shape[0] != rows:
        wanted = f"{rows} ({why})" if rows < MAX_WRITTEN_WORLDS else why
        raise invalid_value("number of rows", wanted, array.shape[0])
    if array.dtype.kind == "f":
        doubles = np.ascontiguousarray(array, dtype=np.float64)
        # What is possible stays possible: extended floats reach further down.
        return (array if ((doubles == 0) & (array > 0)).any() else doubles), None
    if array.dtype.kind in "iu":
        exact = flint_array(array.ravel(), array.shape)
        return np.ascontiguousarray(array, dtype=np.float64), exact
    # A list that mixes floats with strings comes out as text: go back to what was given.
    entries = (
        array.ravel() if array.dtype == object else np.array(probabilities, dtype=object).ravel()
    )
    for number, entry in enumerate(entries):
        if isinstance(entry, float) and not np.isfinite(entry):
            row, column = divmod(number, array.shape[1])
            raise invalid_value(f"probability in row {row}, column {column}", "a number", entry)
    try:
        exact = flint_array(entries, array.shape)
    except InvalidInput:
        for number, entry in enumerate(entries):
            row, column = divmod(number, array.shape[1])
            rational(entry, f"probability in row {row}, column {column}")
        raise
    try:
        floats = np.array([float(rational(value)) for value in exact.ravel()]).reshape(array.shape)
    except OverflowError:
        raise invalid_value("probabilities", "between 0 and 1", "above 1e300") from None
    return floats, exact if is_exact(*entries) else None


def _check_rows(floats: Array, exact: Array | None, name: Callable[[int], str]) -> None:
    for bad, wrong in ((np.isnan(floats), "a number"), (floats < 0, "at least 0")):
        if bad.any():
            row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
            raise invalid_value(
                f"probability in {name(int(row))}, column {column}", wrong, floats[row, column]
            )
    if exact is not None:
        sums = exact.sum(axis=1)
        off = np.flatnonzero(sums != 1)
        if len(off):
            where, total = name(int(off[0])), rational(sums[off[0]])
            message = f"the probabilities in {where} must add up to 1, not {shorten(total)}"
            message += f" (off by {spell_excess(total)})"
            raise InvalidInput(message, field=f"sum of {where}", value=total)
        return
    totals = floats.sum(axis=1)
    worst = int(np.argmax(np.abs(totals - 1)))
    if not abs(totals[worst] - 1) <= ROW_SUM_TOLERANCE:
        raise wrong_sum(
            f"sum of {name(worst)}", totals[worst], f"the probabilities in {name(worst)}"
        )


def output_names(outputs: Sequence[Hashable] | None, count: int) -> tuple[Hashable, ...]:
    if outputs is None:
        return tuple(range(count))
    if isinstance(outputs, str) or not isinstance(outputs, Sequence):
        raise invalid_value("outputs", "a list of names", repr(outputs))
    names = tuple(map(_output_name, outputs))
    check_count(len(names), count, "outputs", "names", "columns")
    try:
        distinct = len(set(names))
    except TypeError:
        accepted, hint = "names that can be hashed", "use text, numbers or tuples"
        raise invalid_value("outputs", accepted, names, hint) from None
    if distinct != count:
        raise InvalidInput("outputs has a name more than once", field="outputs", value=names)
    return names


def _output_name(name: Any) -> Any:
    """A name of a file as Python has it: a list is a tuple, a decimal a float."""
    if isinstance(name, Spelled):
        return float(name)
    return tuple(map(_output_name, name)) if isinstance(name, list) else name


def read_space(data: dict[str, object]) -> tuple[Space, Lattice | None]:
    """The worlds, and the counts of people where a file has a row for each count."""
    kind = data.get("kind")
    people = {"kind", "entities"}
    fields = {"subsets": people, "counts": people, "records": {"kind", "rows", "values"}}
    if not isinstance(kind, str) or kind not in fields:
        raise invalid_value("space kind", "'subsets', 'counts' or 'records'", repr(kind))
    check_keys(data, sorted(fields[kind]), "space")
    if kind != "records":
        entities = data.get("entities")
        if not isinstance(entities, list | int):
            raise invalid_value("entities", "a list of names or a number", repr(entities))
        space = Subsets(entities)
        return space, Count().lattice(space) if kind == "counts" else None
    rows, values = data.get("rows"), data.get("values")
    return Records(rows, values), None  # type: ignore[arg-type]


def space_data(space: Space, *, counted: bool = False) -> dict[str, object]:
    if isinstance(space, Records):
        return {"kind": "records", "rows": space.rows, "values": space.values}
    plain = space.entities == tuple(range(space.size))
    entities = space.size if plain else read_names(space.entities, "entities")
    return {"kind": "counts" if counted else "subsets", "entities": entities}


def read_names(names: Iterable[object], field: str) -> list[object]:
    """Names that JSON has: text, numbers, and tuples of these as lists."""
    result: list[object] = []
    for name in names:
        if not isinstance(name, str | int | float | tuple | None):
            message = f"a file cannot hold {shorten_value(name)} as a name"
            hint = "use text, numbers or tuples of these"
            raise InvalidInput(message, field=field, value=name, hint=hint)
        result.append(read_names(name, field) if isinstance(name, tuple) else name)
    return result


def read_decimals(probabilities: object) -> object:
    """Read decimals as the people who wrote them meant them, where every row then sums to 1.

    In a table of more than `MAX_SPELLED_ENTRIES` entries decimals are the floats nearest to
    them."""
    if not isinstance(probabilities, list) or not all(isinstance(r, list) for r in probabilities):
        kind = f"a {type(probabilities).__name__}"
        raise invalid_value("probabilities", "a list with a list for each world", kind)
    for number, row in enumerate(probabilities):
        for column, entry in enumerate(row):
            if isinstance(entry, bool) or not isinstance(entry, int | float | str):
                where = f"probability in row {number}, column {column}"
                raise invalid_value(where, "a number or a string such as '1/3'", repr(entry))
    if sum(map(len, probabilities)) > MAX_SPELLED_ENTRIES:
        return probabilities
    try:
        meant = [[_read_meant(entry) for entry in row] for row in probabilities]
        sums = [sum(rational(entry) for entry in row) for row in meant]
    except InvalidInput:
        return probabilities
    quoted = any(type(entry) is str for row in probabilities for entry in row)
    if quoted or all(total == 1 for total in sums):
        return meant
    return [[float(v) if isinstance(v, Spelled) else v for v in row] for row in probabilities]


def _read_meant(entry: int | float | str) -> int | float | str | Fraction:
    if isinstance(entry, float) and np.isfinite(entry):
        return Fraction(repr(entry))
    return rational(str(entry)) if isinstance(entry, Spelled) else entry


# A finite channel: a row of output probabilities for each world.
#
# Rows are in world order (`Subsets`: bit i of the row's number is entity i; `Records`: row 0 is the
# most significant digit), or in the order of a lattice that says which worlds are alike. A channel
# of rationals stays exact; a channel of floats is taken as the binary fractions it holds. Noise
# with a density is represented by its densities at the points that decide (F10): all rows share one
# normaliser, which cancels in every ratio.

MAX_EXACT_OPERATIONS = 1 << 21
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
        need_space(space, "a channel")
        rows = lattice.worlds if lattice is not None else space.worlds
        why = "one for each class of worlds"
        if lattice is None:
            subsets = isinstance(space, Subsets)
            power, base = (
                (space.size, 2) if isinstance(space, Subsets) else (space.rows, space.values)
            )
            what = "entities" if subsets else f"rows of {base} values"
            why = f"{base}^{power} for {power} {what}"
        floats, exact = read_stochastic(probabilities, rows, why, _row_names(space, lattice))
        self._set(
            space,
            lattice,
            floats,
            Floats(floats) if exact is None else Rationals(exact),
            output_names(outputs, floats.shape[1]),
        )

    def _set(
        self,
        space: Space,
        lattice: Lattice | None,
        likelihoods: Array,
        entries: Entries,
        outputs: Sequence[Hashable],
    ) -> None:
        if lattice is None and isinstance(space, Subsets):
            lattice = CountLattice.single(space)
        self.space, self.lattice, self.likelihoods = space, lattice, likelihoods
        self.entries, self.outputs = entries, tuple(outputs)
        self.axes: tuple[Axis | int, ...] | None = None
        self.is_density = False

    @classmethod
    def from_entries(
        cls,
        space: Space,
        lattice: Lattice | None,
        likelihoods: Array,
        entries: Entries,
        outputs: Sequence[Hashable],
    ) -> Channel:
        """A table whose rows are known to be distributions: floats to search in, and what they are
        exactly."""
        self = cls.__new__(cls)
        self._set(space, lattice, likelihoods, entries, outputs)
        return self

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
        self = cls.from_entries(space, lattice, densities, entries, outputs)
        self.axes, self.is_density = None if axes is None else tuple(axes), True
        return self

    @property
    def is_counted(self) -> bool:
        return isinstance(self.lattice, CountLattice) and len(self.lattice.kinds) == 1

    def on_counts(self, people: int, margin: int = 0) -> CountTable | None:
        if self.is_density or not self.is_counted or self.lattice.space.size != people:  # type: ignore[union-attr]
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
            raise invalid_value("function", "a function of a world", shorten_value(function))
        rows = [function(world) for world in space]
        for row in rows:
            if not isinstance(row, Mapping):
                accepted = "one that returns {output: probability}"
                raise invalid_value("function", accepted, shorten_value(row))
        outputs = list(dict.fromkeys(name for row in rows for name in row))
        return cls(space, [[row.get(name, 0) for name in outputs] for row in rows], outputs)

    @classmethod
    def load(cls, path: str | Path) -> Channel:
        """Read a channel file. "a/b" strings are exact; decimals too, up to `MAX_SPELLED_ENTRIES`
        entries, beyond which they are the floats nearest to them."""
        file = read_path(path)
        data = read_json(file, "channel file", spelled=True)
        with placed(str(file)):
            return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: object) -> Channel:
        known = ("space", "outputs", "probabilities")
        if isinstance(data, dict):
            check_keys(data, known, "channel file")
        if not isinstance(data, dict) or not isinstance(data.get("space"), dict):
            hint = f"a channel is a JSON object with {', '.join(known)}"
            raise InvalidInput("this is not a channel file", field="channel file", hint=hint)
        if "probabilities" not in data:
            message, hint = "the channel has no probabilities", "give a row for each world"
            raise InvalidInput(message, field="probabilities", hint=hint)
        space, lattice = read_space(data["space"])
        probabilities = read_decimals(data["probabilities"])
        return cls(space, probabilities, data.get("outputs"), lattice=lattice)

    def save(self, path: str | Path) -> None:
        """Write a channel file: rationals as "a/b", floats as the shortest decimals that name them.

        Raises:
            Unsupported: the channel has a density.
            InvalidInput: an entity or output has a name that JSON has not.
        """
        self.need_finite("a channel file")
        table = self if self.is_counted else self.on_worlds()
        probabilities = table.likelihoods.tolist()
        if table.exact is not None:
            probabilities = [[str(entry) for entry in row] for row in table.exact]
        data = {
            "space": space_data(self.space, counted=self.is_counted),
            "outputs": read_names(self.outputs, "outputs"),
            "probabilities": probabilities,
        }
        write_file(read_path(path), json.dumps(data, ensure_ascii=False) + "\n")

    def index(self, world: object) -> int:
        """The number of a world: who is in (one name, or a list), or the rows' values."""
        if isinstance(self.space, Subsets):
            return self.space.index([world] if isinstance(world, str | int) else world)  # type: ignore[arg-type]
        return self.space.index(tuple(read_list(world, "world", "a list of the rows' values")))

    def _row(self, world: object) -> int:
        """The row of a world, or of the class that it is in."""
        if self.lattice is None or self.lattice.is_single:
            return self.index(world)
        assert isinstance(self.space, Subsets)
        names = [world] if isinstance(world, str | int) else read_list(world, "world", "a list")
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

    def channel(self, space: Space | None = None) -> Channel:
        if space not in (None, self.space):
            raise invalid_value("space", f"that of the channel, {self.space!r}", repr(space))
        return self

    @property
    def exact(self) -> Array | None:
        """All entries as FLINT rationals, where that is what they are."""
        return self.entries.table if isinstance(self.entries, Rationals) else None

    @property
    def searchable(self) -> Array:
        """The array to search: exact where that is affordable or floats fail, else floats."""
        axes = self.space.size if isinstance(self.space, Subsets) else self.space.rows
        affordable = self.likelihoods.size * axes <= MAX_EXACT_OPERATIONS
        if self.exact is not None and (affordable or self._is_narrow):
            return self.exact
        return widen_floats(self.likelihoods) if self._is_narrow else self.likelihoods

    def searched(self, *, symmetric: bool = False) -> Iterator[tuple[Sequence[int], Array]]:
        """(outputs by number, their likelihoods) for all outputs, some at a time.

        Args:
            symmetric: whether outputs that only repeat others with other people are left out.
        """
        yield range(len(self.outputs)), self.searchable

    @property
    def is_exact(self) -> bool:
        """Whether the entries are rationals, so that levels may be shown as ratios."""
        return isinstance(self.entries, Rationals)

    @property
    def rationals(self) -> Array:
        """The entries as FLINT rationals: the exact ones, or the binary fractions that the floats
        are."""
        if self.exact is not None:
            return self.exact
        if not isinstance(self.entries, Powers):
            return flint_array(self.likelihoods.ravel(), self.likelihoods.shape)
        shape = rows, columns = self.likelihoods.shape
        return flint_array(
            (self.entries.at(r, c) for r in range(rows) for c in range(columns)), shape
        )

    @cached_property
    def wide(self) -> Array:
        """The likelihoods in floats that reach down to the smallest of them."""
        if not self._is_narrow:
            return self.likelihoods
        array = widen_floats(self.likelihoods)
        if self.exact is None:
            return array
        for entry in np.argwhere(
            (array < smallest_float(self.likelihoods.dtype)) & (self.exact != 0)
        ):
            array[tuple(entry)] = extended_float(self.exact[tuple(entry)])
        if ((array == 0) & (self.exact != 0)).any():
            message = "a likelihood of this channel is below the smallest float"
            raise Unsupported(message, field="mechanism")
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
        require_table("a table over all subsets", self.space.worlds, len(self.outputs))
        rows = self.lattice.labels()
        likelihoods, entries = self.likelihoods[rows], self.entries.rows(rows)
        other = Channel.from_entries(self.space, None, likelihoods, entries, self.outputs)
        other.is_density = self.is_density
        return other

    def need_finite(self, what: str) -> None:
        """Refuse operations that need every output, not only the deciding points of a density."""
        if self.is_density:
            message = f"{what} needs finitely many outputs, and this mechanism has a density"
            raise Unsupported(message, field="mechanism")

    def __repr__(self) -> str:
        rows, columns = self.likelihoods.shape
        return f"Channel({self.space!r}, {rows} × {columns})"


class LazyChannel(Channel):
    """A channel whose table is made only for what asks for it.

    Args:
        tabulate: makes the table, or refuses where it is too large.
    """

    def __init__(
        self, space: Subsets, lattice: Lattice, tabulate: Callable[[], Channel], is_density: bool
    ) -> None:
        self.space, self.lattice, self.is_density = space, lattice, is_density
        self._tabulate = tabulate

    @cached_property
    def table(self) -> Channel:
        return self._tabulate()

    def __getattr__(self, name: str) -> Any:
        """What is not known without the table."""
        if name in ("likelihoods", "entries", "outputs", "axes"):
            return getattr(self.table, name)
        raise AttributeError(f"a channel has no {name!r}")

    def __repr__(self) -> str:
        return f"Channel({self.space!r}, by need)"


class CountChannel(LazyChannel):
    """A rule on a count: families find its worst cases from its possible outputs alone.

    Args:
        counts: the positive entries of its table.
    """

    def __init__(self, space: Subsets, counts: CountTable) -> None:
        super().__init__(space, Count().lattice(space), lambda: counts.channel(space), False)
        self.counts, self.outputs = counts, counts.outputs
        if counts.exact:
            self.entries = Computed(counts.likelihood, lambda: self.table.entries.table)  # type: ignore[attr-defined]

    @cached_property
    def columns(self) -> tuple[Array, CountColumns]:
        return self.counts.by_output(self.space)  # type: ignore[arg-type]

    def on_counts(self, people: int, margin: int = 0) -> CountTable | None:
        return self.counts if self.counts.people == people else None


class ColumnChannel(LazyChannel):
    """A channel on maxima that is searched some outputs at a time.

    Args:
        entries, outputs: as in a table.
        columns: the likelihoods of some outputs, by number.
        every: all outputs, some at a time.
        alike: fewer, where others only repeat them with other people.
    """

    def __init__(
        self,
        lazy: tuple[Subsets, Lattice, Callable[[], Channel], bool],
        entries: Entries,
        outputs: Sequence[Hashable],
        columns: Callable[[Sequence[int]], Array],
        every: Sequence[Sequence[int]],
        alike: Sequence[Sequence[int]] | None = None,
    ) -> None:
        super().__init__(*lazy)
        self.entries, self.outputs = entries, tuple(outputs)
        self._columns, self._every, self._alike = columns, every, alike or every

    def searched(self, *, symmetric: bool = False) -> Iterator[tuple[Sequence[int], Array]]:
        for numbers in self._alike if symmetric else self._every:
            yield numbers, self._columns(numbers)


def same_lattice(channels: Sequence[Channel]) -> list[Channel]:
    """The channels as they are when their worlds agree, otherwise spread over all worlds."""
    first = channels[0]
    for channel in channels[1:]:
        if channel.space != first.space:
            raise invalid_value("parts", f"on one space, {first.space!r}", repr(channel.space))
    if all(channel.lattice == first.lattice for channel in channels):
        return list(channels)
    return [channel.on_worlds() for channel in channels]


def _row_names(space: Space, lattice: Lattice | None) -> Callable[[int], str]:
    if lattice is not None:
        return lambda row: f"row {row}"

    def name(row: int) -> str:
        world = space.world(row)
        if isinstance(world, tuple):
            return f"row {row} (world {world})"
        return f"row {row} (world {{{', '.join(map(str, sorted(world, key=str)))}}})"

    return name
