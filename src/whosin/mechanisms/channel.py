"""A finite channel: a row of output probabilities for each world.

Contract: rows are in world order (`Subsets`: bit i of the row's number is entity i; `Records`: row
0 is the most significant digit), or in the order of a lattice that says which worlds are alike. A
channel of rationals stays exact; a channel of floats is taken as the binary fractions it holds.
Noise with a density is represented by its densities at the points that decide (THEORY F10): all
rows share one normaliser, which cancels in every ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.documents import read_json
from whosin.errors import InvalidInput, Unsupported
from whosin.exact import (
    Array,
    ball_exp,
    ball_ratio_upper,
    ball_sum,
    flint_array,
    flint_rational,
    is_exact,
    rational,
)
from whosin.mechanisms.base import Mechanism, need_space
from whosin.mechanisms.channel_file import decimals, space_from
from whosin.spaces import Grid, Lattice, Records, Space, Subsets
from whosin.spaces.memory import require_table
from whosin.spaces.width import extended, is_narrow, smallest, widened
from whosin.validation import path_of, shown

if TYPE_CHECKING:
    from whosin.mechanisms.noise import Axis

TOLERANCE = 1e-9
MOST_NAMED = 10**18
EXACT_WORK = 1 << 21
"""Above this many element operations an exact channel is searched in floats, then certified."""

Weighted = Iterable[tuple[int, Fraction]]


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
        floats, exact = stochastic(
            probabilities, rows, _describe(space), _row_names(space, lattice)
        )
        self.space = space
        self.lattice = lattice or (Grid.single(space) if isinstance(space, Subsets) else None)
        self.likelihoods = floats
        self.exact = exact
        self.exponents: Callable[[int, int], Fraction] | None = None
        self.balls: Callable[[int, int], Any] | None = None
        self.axes: tuple[Axis | int, ...] | None = None
        self.outputs = output_names(outputs, floats.shape[1])

    @classmethod
    def from_densities(
        cls,
        space: Space,
        lattice: Lattice | None,
        densities: Array,
        outputs: Sequence[Hashable],
        *,
        exponents: Callable[[int, int], Fraction] | None = None,
        balls: Callable[[int, int], Any] | None = None,
        exact: Array | None = None,
        axes: Sequence[Axis | int] | None = None,
    ) -> Channel:
        """Densities at deciding points, up to one factor common to all rows.

        For certificates give one of: `exponents(world, output)`, the exact logarithm of an entry;
        `balls(world, output)`, an Arb ball around it; `exact`, all entries as rationals. `axes`
        are the coordinates of an output, the first changing slowest: of noise, or the number of
        outputs of a part that has finitely many.
        """
        self = cls.__new__(cls)
        self.space, self.lattice, self.likelihoods = space, lattice, densities
        self.exact, self.exponents, self.outputs = exact, exponents, tuple(outputs)
        self.balls = balls
        self.axes = None if axes is None else tuple(axes)
        if exponents is not None and balls is None:
            self.balls = lambda world, output: ball_exp(exponents(world, output))
        self.is_density = True
        return self

    @classmethod
    def from_function(
        cls, space: Space, function: Callable[[Any], Mapping[Hashable, object]]
    ) -> Channel:
        """Tabulate a function from a world to {output: probability}."""
        require_table("a table over all worlds", need_space(space, "a function").worlds, 1)
        if not callable(function):
            raise InvalidInput("function", "a function of a world", shown(function))
        rows = [function(world) for world in space]
        for row in rows:
            if not isinstance(row, Mapping):
                raise InvalidInput("function", "one that returns a mapping", shown(row))
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
        if not isinstance(data, dict) or not isinstance(data.get("space"), dict):
            raise InvalidInput(
                "channel file", f"an object with {', '.join(known)}", "another value"
            )
        for key in data:
            if key not in known:
                raise InvalidInput(
                    "key of the channel file", f"one of {', '.join(known)}", repr(key)
                )
        if "probabilities" not in data:
            raise InvalidInput("probabilities", "a list with a row for each world", "nothing")
        return cls(space_from(data["space"]), decimals(data["probabilities"]), data.get("outputs"))

    is_density = False

    def channel(self, space: Space | None = None) -> Channel:
        if space is not None and space != self.space:
            raise InvalidInput("space", f"that of the channel, {self.space!r}", repr(space))
        return self

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
        for place in np.argwhere((array < smallest(self.likelihoods.dtype)) & (self.exact != 0)):
            array[tuple(place)] = extended(self.exact[tuple(place)])
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
        if self.exact is None and self.balls is not None:
            above, below = (self._ball(worlds, output) for worlds in (top, bottom))
            return ball_ratio_upper(above, below)
        one, two = (self._sum(worlds, output) for worlds in (top, bottom))
        if two == 0:
            return float("inf") if one else Fraction(1)
        return one / two

    def log_ratio(self, top: int, bottom: int, output: int) -> Fraction | None:
        """ln Pr[output|top]/Pr[output|bottom] where it is a rational number by construction."""
        if self.exponents is None:
            return None
        return self.exponents(top, output) - self.exponents(bottom, output)

    def _sum(self, worlds: Weighted, output: int) -> Fraction:
        column = self.likelihoods[:, output] if self.exact is None else self.exact[:, output]
        if isinstance(worlds, tuple) and len(worlds) == 1:
            world, weight = worlds[0]
            return rational(column[world]) * weight
        total = flint_rational(0)
        for world, weight in worlds:
            total += flint_rational(column[world]) * flint_rational(weight)
        return rational(total)

    def _ball(self, worlds: Weighted, output: int) -> Any:
        assert self.balls is not None
        return ball_sum((self.balls(world, output), weight) for world, weight in worlds)

    def on_worlds(self) -> Channel:
        """The same channel with a row for every world of the space."""
        if self.lattice is None or self.lattice.is_single:
            return self
        assert isinstance(self.space, Subsets)
        require_table("a table over all subsets", self.space.worlds, len(self.outputs))
        return self.relabelled(self.lattice.labels(), Grid.single(self.space))

    def relabelled(self, labels: Array, lattice: Lattice) -> Channel:
        """Rows taken by number, on another lattice."""
        other = Channel.__new__(Channel)
        other.space, other.lattice, other.outputs = self.space, lattice, self.outputs
        other.likelihoods = self.likelihoods[labels]
        other.exact = None if self.exact is None else self.exact[labels]
        other.is_density, other.axes = self.is_density, None
        exponents, balls = self.exponents, self.balls
        other.exponents = exponents and (lambda w, o: exponents(int(labels[w]), o))
        other.balls = balls and (lambda w, o: balls(int(labels[w]), o))
        return other

    def need_finite(self, what: str) -> None:
        """Refuse operations that need every output, not only the deciding points of a density."""
        if self.is_density:
            raise Unsupported(f"{what} needs finitely many outputs; this mechanism has a density")

    def __repr__(self) -> str:
        rows, columns = self.likelihoods.shape
        return f"Channel({self.space!r}, {rows} × {columns})"


def _describe(space: Space) -> str:
    if isinstance(space, Subsets):
        return f"2^{space.size} for {space.size} entities"
    return f"{space.values}^{space.rows} for {space.rows} rows of {space.values} values"


def stochastic(
    probabilities: object, rows: int, why: str, name: Callable[[int], str]
) -> tuple[Array, Array | None]:
    """Read a table whose rows are distributions: floats, and exact rationals where it has them.

    Args:
        rows: how many there must be; `why` says where that number comes from.
        name: what to call a row in a message.
    """
    floats, exact = _read(probabilities, rows, why)
    _check_rows(floats, exact, name)
    return floats, exact


def _read(probabilities: object, rows: int, why: str) -> tuple[Array, Array | None]:
    """(floats, exact rationals or nothing), both worlds × outputs."""
    if isinstance(probabilities, np.ndarray) and probabilities.dtype != object:
        array = probabilities
    else:
        try:
            array = np.asarray(probabilities)
        except ValueError:
            raise InvalidInput("probabilities", "rows of equal length", "unequal rows") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInput("probabilities", "a table: worlds × outputs", f"shape {array.shape}")
    if array.shape[0] != rows:
        wanted = f"{rows} ({why})" if rows < MOST_NAMED else why
        raise InvalidInput("number of rows", wanted, array.shape[0])
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, dtype=np.float64), None
    if array.dtype.kind in "iu":
        return np.ascontiguousarray(array, dtype=np.float64), flint_array(
            array.ravel(), array.shape
        )
    # A list that mixes floats with strings comes out as text: go back to what was given.
    entries = (
        array.ravel() if array.dtype == object else np.array(probabilities, dtype=object).ravel()
    )
    for number, entry in enumerate(entries):
        if isinstance(entry, float) and not np.isfinite(entry):
            row, column = divmod(number, array.shape[1])
            raise InvalidInput(f"probability in row {row}, column {column}", "a number", entry)
    exact = flint_array(entries, array.shape)
    try:
        floats = np.array([float(rational(value)) for value in exact.ravel()]).reshape(array.shape)
    except OverflowError:
        raise InvalidInput("probabilities", "between 0 and 1", "a number above 10^300") from None
    return floats, exact if is_exact(*entries) else None


def _check_rows(floats: Array, exact: Array | None, name: Callable[[int], str]) -> None:
    for bad, wrong in ((np.isnan(floats), "a number"), (floats < 0, "at least 0")):
        if bad.any():
            row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
            raise InvalidInput(
                f"probability in {name(int(row))}, column {column}", wrong, floats[row, column]
            )
    if exact is not None:
        sums = exact.sum(axis=1)
        off = np.flatnonzero(sums != 1)
        if len(off):
            total = rational(sums[off[0]])
            by = f"{total} (off by {total - 1}, about {float(total - 1):+.3g})"
            raise InvalidInput(f"sum of {name(int(off[0]))}", "1", by)
        return
    totals = floats.sum(axis=1)
    worst = int(np.argmax(np.abs(totals - 1)))
    if not abs(totals[worst] - 1) <= TOLERANCE:
        by = f"{totals[worst]:.12g} (off by {totals[worst] - 1:+.3g})"
        raise InvalidInput(f"sum of {name(worst)}", "1", by)


def _row_names(space: Space, lattice: Lattice | None) -> Callable[[int], str]:
    if lattice is not None:
        return lambda row: f"row {row}"

    def name(row: int) -> str:
        world = space.world(row)
        if isinstance(world, tuple):
            return f"row {row} (world {world})"
        return f"row {row} (world {{{', '.join(map(str, sorted(world, key=str)))}}})"

    return name


def output_names(outputs: Sequence[Hashable] | None, count: int) -> tuple[Hashable, ...]:
    if outputs is None:
        return tuple(range(count))
    if isinstance(outputs, str) or not isinstance(outputs, Sequence):
        raise InvalidInput("outputs", "a list of names", repr(outputs))
    names = tuple(map(_output_name, outputs))
    if len(names) != count:
        raise InvalidInput("outputs", f"{count} names, one a column", len(names))
    try:
        distinct = len(set(names))
    except TypeError:
        accepted = "hashable names: text, numbers, tuples"
        raise InvalidInput("outputs", accepted, "another object") from None
    if distinct != count:
        raise InvalidInput("outputs", "distinct names", "a name twice")
    return names


def _output_name(name: Any) -> Any:
    return tuple(map(_output_name, name)) if isinstance(name, list) else name
