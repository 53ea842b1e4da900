"""Draw from a black box: outputs of many draws, how it is called, and draws with a memory."""

from __future__ import annotations

import inspect
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import Any, Protocol

import numpy as np

from whosin.audit.snapshots import (
    NEGATIVE_ZERO,
    OUTPUT_FIELD,
    Description,
    Raised,
    Record,
    copy_array,
    describe_output,
    drop_float_bits,
    freeze_output,
    is_sparse,
)
from whosin.errors import InvalidInput, MechanismFailed, WhosinError, invalid_value
from whosin.exact import Array

# What a mechanism returned in many draws, as one of three kinds. Outputs are `numbers` (one per
# draw), `vectors` (per draw a row, all of one length) or `forms`: anything else, frozen
# (`snapshots`). Everything here is a copy. Outputs of several kinds together are forms, so that a
# kind or a length that changes from draw to draw, or between the inputs, is a difference like any
# other.


NUMBERS, VECTORS, FORMS = "numbers", "vectors", "forms"
FEW_DRAWS = 64
"""Draws that mostly show already that outputs differ."""


@dataclass(frozen=True)
class Outputs:
    """Outputs of one kind: an array of numbers, of rows, or of frozen objects."""

    kind: str
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        return int(self.values.shape[1]) if self.kind == VECTORS else 0

    def keys(self) -> Array:
        """One key per draw, the same for equal outputs.

        Rows are hashed to 64 bits by a fixed map: should two rows ever meet, they count as one
        output, in the search and in the count alike.
        """
        if self.kind == NUMBERS:
            return _number_bits(self.values)
        if self.kind == VECTORS:
            bits = _number_bits(self.values).view(np.uint64)
            factors = np.random.default_rng(2023).integers(2**61, 2**62, bits.shape[1])
            mixed = bits * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
            mixed *= factors.astype(np.uint64) * np.uint64(2) + np.uint64(1)
            return np.asarray(mixed.sum(axis=1, dtype=np.uint64).view(np.int64))
        return self.values

    def part(self, start: int, stop: int) -> Outputs:
        return Outputs(self.kind, self.values[start:stop])

    def as_forms(self) -> Outputs:
        if self.kind == FORMS:
            return self
        values = self.values
        if values.dtype.kind == "f":
            negative = np.signbit(values) & (values == 0)
            if negative.any():
                values = values.astype(object)
                values[negative] = NEGATIVE_ZERO
        items = values.tolist()
        return Outputs(
            FORMS, _object_array([tuple(i) if self.kind == VECTORS else i for i in items])
        )

    def without_float_bits(self) -> Outputs:
        """The same outputs, with −0.0 as 0.0 and every NaN the same."""
        if self.kind == FORMS:
            return outputs_from_items([drop_float_bits(each) for each in self.values.tolist()])
        plain = self.values.dtype.kind != "f"
        return self if plain else Outputs(self.kind, self.values + 0.0)  # + 0.0: −0 is 0

    def matching(self, kind: str, width: int) -> tuple[Array, Outputs]:
        """Which draws are of another kind (and width), and those draws as that kind."""
        if kind == FORMS or (self.kind == kind and self.width == width):
            return np.ones(len(self), dtype=bool), self.as_forms() if kind == FORMS else self

        def fit(item: object) -> bool:
            if kind == NUMBERS:
                return _is_number(item)
            return isinstance(item, tuple) and len(item) == width and all(map(_is_number, item))

        items = self.as_forms().values.tolist()
        fits = np.array([fit(item) for item in items], dtype=bool)
        shape = (0, width) if kind == VECTORS else (0,)
        rows = [item for item, there in zip(items, fits, strict=True) if there]
        return fits, Outputs(kind, np.array(rows, dtype=float) if rows else np.zeros(shape))

    @cached_property
    def descriptions(self) -> list[Description]:
        """What can be said of each draw; equal outputs share it."""
        items = self.as_forms().values.tolist()
        known = {value: describe_output(value) for value in dict.fromkeys(items)}
        return [known[value] for value in items]


def _number_bits(values: Array) -> Array:
    """Numbers as whole numbers, equal ones alike, also when 1 comes as 1.0 in another call."""
    if values.dtype.kind in "iu" and values.size and np.abs(values).max() >= 2**53:
        return values.astype(np.int64)
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def count_draws(raw: Any) -> int:
    """How many outputs an array or list holds; 0 where that cannot be known."""
    shape = getattr(raw, "shape", None)
    if isinstance(shape, tuple) and shape:
        return int(shape[0])  # a sparse array has no length
    return len(raw) if isinstance(raw, Sized) else 0


def read_outputs(raw: Any, size: int) -> Outputs:
    """Read what one call returned for `size` draws."""
    if not isinstance(raw, np.ndarray | list | tuple):
        raw = _split_batch(raw, size)
    if isinstance(raw, np.ma.MaskedArray):
        raw = _unmask_array(raw)
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "iubf" and raw.ndim > 0:
        _check_count(len(raw), size)
        return outputs_from_array(raw)
    if isinstance(raw, np.ndarray) and raw.ndim == 0:
        message = f"the mechanism was asked for {size} outputs and returned one value"
        raise InvalidInput(message, field=OUTPUT_FIELD, value=1)
    _check_count(len(raw), size)
    return outputs_from_items([freeze_output(item) for item in raw])


def _unmask_array(raw: Any) -> Any:
    """A plain array where nothing is masked; otherwise a list, in which what is masked stays so."""
    if raw.ndim == 0 or not np.ma.is_masked(raw):
        return np.asarray(raw.data)
    return [raw[number : number + 1].reshape(raw.shape[1:]) for number in range(len(raw))]


def _split_batch(raw: Any, size: int) -> Any:
    """A list or array out of whatever holds a draw an entry."""
    accepted = f"an array or list of {size} outputs"
    if isinstance(raw, str | bytes | dict) or hasattr(raw, "columns"):
        raise invalid_value(OUTPUT_FIELD, accepted, type(raw).__name__)
    if is_sparse(raw):
        raw = raw.tocsr()  # which has rows
    array = copy_array(raw)
    if array is not None:
        return array
    if not isinstance(raw, Iterable):
        raise invalid_value(OUTPUT_FIELD, accepted, type(raw).__name__)
    return [freeze_output(item) for item in islice(raw, size + 1)]  # each before the next is made


def _check_count(count: int, size: int) -> None:
    if count != size:
        message = f"the mechanism was asked for {size} outputs and returned {count}"
        raise InvalidInput(message, field=OUTPUT_FIELD, value=count)


def outputs_from_array(array: Array) -> Outputs:
    """Numbers or rows of numbers, copied; forms where a NaN is among them."""
    if array.dtype.kind == "f" and np.isnan(array).any():
        return outputs_from_items([freeze_output(row) for row in array])
    if array.ndim == 1:
        return Outputs(NUMBERS, array.copy())
    rows = array.reshape(len(array), -1)
    if rows.shape[1] == 0:
        return Outputs(FORMS, _object_array([()] * len(array)))
    return Outputs(VECTORS, rows.copy())


def outputs_from_items(items: list[Any]) -> Outputs:
    """Frozen outputs, as numbers or vectors where all of them are."""
    if items and all(_is_number(item) for item in items):
        array = np.asarray(items)
        if array.dtype != object:
            return Outputs(NUMBERS, array)
    widths = {len(item) if isinstance(item, tuple) else 0 for item in items}
    rows = len(widths) == 1 and 0 not in widths
    if rows and all(_is_number(value) for item in items for value in item):
        array = np.asarray(items)
        if array.dtype != object:
            return Outputs(VECTORS, array)
    return Outputs(FORMS, _object_array(items))


def join_outputs(parts: Sequence[Outputs]) -> Outputs:
    if len(parts) == 1:
        return parts[0]
    same = align_kinds(parts)
    joined = Outputs(same[0].kind, np.concatenate([part.values for part in same]))
    if all("descriptions" in vars(part) for part in same):
        vars(joined)["descriptions"] = [each for part in same for each in part.descriptions]
    return joined


def align_kinds(parts: Sequence[Outputs]) -> list[Outputs]:
    """The same outputs, all of one kind."""
    one_kind = len({(part.kind, part.width) for part in parts}) == 1
    return list(parts) if one_kind else [part.as_forms() for part in parts]


def count_repeats(parts: Sequence[Outputs]) -> Array:
    """How often each different output is there, in outputs of one kind."""
    if parts[0].kind == FORMS:
        counts = Counter(item for part in parts for item in part.values.tolist())
        return np.array(list(counts.values()))
    return np.unique(np.concatenate([part.keys() for part in parts]), return_counts=True)[1]


def _is_number(item: object) -> bool:
    return isinstance(item, int | float)


def _object_array(items: Sequence[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):  # one by one: NumPy would unpack tuples
        array[index] = item
    return array


TIMED, TIME, OUTPUT = "timed call", "nanoseconds", "output"
"""The record of a timed call, and its parts."""


def drop_time(outputs: Outputs) -> Outputs:
    """The outputs alone, where calls were timed."""
    items = outputs.values.tolist() if outputs.kind == FORMS else []
    if not items or not all(isinstance(i, Record) and i.name == TIMED for i in items):
        return outputs
    return outputs_from_items([dict(item.items)[OUTPUT] for item in items])


# How a mechanism wants to be called, read from its signature. `m(input, size, rng)` returns `size`
# independent outputs; `m(input, rng)` and `m(input)` make one draw per call. A parameter with a
# default is the mechanism's own affair (`m(x, epsilon=1.0)` keeps its ε), unless it is called
# `size` or `rng`, which are then given by name.


Mechanism = Callable[..., Any]
SIZE, RNG = "size", "rng"


@dataclass(frozen=True)
class CallForm:
    """One way to call a mechanism: what follows the input, by position and by name."""

    function: Mechanism
    positional: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    @property
    def many(self) -> bool:
        """Whether one call makes as many draws as it is asked for."""
        return SIZE in self.positional or SIZE in self.named

    def __call__(self, value: object, size: int, rng: np.random.Generator) -> Any:
        given: dict[str, object] = {SIZE: size, RNG: rng}
        rest = [given[name] for name in self.positional]
        return self.function(value, *rest, **{name: given[name] for name in self.named})


def read_call(mechanism: object, *, one_draw: bool = False) -> CallForm:
    """The way in which a mechanism is to be called.

    Args:
        one_draw: it makes one draw per call, whatever its signature looks like.
    """
    if not callable(mechanism):
        raise invalid_value("mechanism", "a function m(input, size, rng)", type(mechanism).__name__)
    try:
        parameters = list(inspect.signature(mechanism).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return CallForm(mechanism) if one_draw else CallForm(mechanism, (SIZE, RNG))
    places = [each for each in parameters if each.kind in _BY_POSITION]
    needed = sum(each.default is each.empty for each in places)
    if any(each.kind is each.VAR_POSITIONAL for each in parameters) and needed <= 1:
        needed = 2 if one_draw and needed else 1 if one_draw else 3
    unknown = [e for e in parameters if e.kind is e.KEYWORD_ONLY and e.default is e.empty]
    if not 1 <= needed <= 3 or any(each.name not in (SIZE, RNG) for each in unknown):
        raise _refuse_signature(mechanism)
    positional = {1: (), 2: (RNG,), 3: (SIZE, RNG)}[needed]
    if needed == 2 and places[1].name == SIZE:
        positional = (SIZE,)
    if one_draw and len(positional) == 2:
        raise _refuse_signature(mechanism)
    others = [
        each.name for each in parameters if each.kind in _BY_NAME and each not in places[:needed]
    ]
    allowed = (RNG,) if one_draw else (SIZE, RNG)
    named = tuple(name for name in allowed if name in others and name not in positional)
    return CallForm(mechanism, positional, named)


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _refuse_signature(mechanism: Any) -> InvalidInput:
    name = getattr(mechanism, "__name__", type(mechanism).__name__)
    shape = f"{name}{inspect.signature(mechanism)}"
    hint = "it must be callable as m(input, size, rng), m(input, rng) or m(input)"
    message = f"{shape} cannot be called with an input alone"
    return InvalidInput(message, field="mechanism", value=shape, hint=hint)


# Drawing from a mechanism: any callable, read with care. Each draw is frozen as soon as it is made.
# An exception that a draw raises is its output: an observer would see it. Only these are never
# outputs, since they show a broken program: wrong calls and names (`TypeError`, `NameError`,
# `AttributeError`, `ImportError`, `NotImplementedError`), exhausted memory or recursion; they are
# refused by name. `sys.exit` is a failing environment. A call for many draws that raises cannot say
# which draw did: if that happens in the search, every draw is made by a call of its own from then
# on; if it happens first in the count, the audit is refused, for a sample that leaves out what
# raised would be biased.
#
# Both inputs are drawn from in turns: which call is whose is random, so that a function which
# counts its calls, or changes with time in another way, and ignores its input favours neither
# input, and nor does a machine that warms up or is busy for a while. Where each draw is a call of
# its own, the test of equality is valid for any such function. Where one call makes many draws,
# those of one call are alike in such a function, and `check_calls` refuses what shows. What the
# caller must ensure: given the input, draws are independent of each other and of earlier ones.
#
# Only where a caller asks, calls are timed: each draw is then a call of its own, and its output a
# record of the output and the nanoseconds until the call returned, so that every ordering sees
# both. What the caller must ensure is that one call does not make the next one slower.


clock = time.perf_counter_ns
"""What the time is read from, in nanoseconds."""
CALL_TURNS, MIN_CALL_DRAWS = 32, 64
"""Calls in which the draws of one input are made, and draws that each of them makes at least."""
CHUNK_DRAWS = 250_000
"""Draws asked for in one call at most: a million vectors at once would not fit a small machine."""
TELLING_DRAWS = 20
"""This many draws that differ from the commonest one and repeat in order are no accident."""
BROKEN_ERRORS = (
    TypeError,
    NameError,
    AttributeError,
    ImportError,
    NotImplementedError,
    RecursionError,
    MemoryError,
)
"""Exceptions that tell of a broken program, and are never outputs."""


def one_draw(function: Mechanism) -> Mechanism:
    """A mechanism from a function that makes one draw per call, `f(input, rng)` or `f(input)`.

    `two_worlds` sees from the signature which kind a function is; say it where that misleads.
    """
    return read_call(function, one_draw=True)


@dataclass(frozen=True)
class DrawnPair:
    """Fresh outputs of both inputs, and how many draws each call for an input made, in order;
    nothing where each draw was a call of its own, or somebody else drew."""

    outputs: tuple[Outputs, Outputs]
    calls: Sequence[int] = ()


class OutputPair(Protocol):
    """Where outputs of two neighbouring inputs come from: a mechanism, or samples.

    Attributes:
        values: the inputs, with and without.
        timed: whether the time of a call is a part of its output.
    """

    values: tuple[object, object]
    timed: bool

    def explore(self, size: int) -> DrawnPair:
        """Outputs that are not counted."""

    def draw(self, size: int) -> DrawnPair:
        """Fresh outputs to count."""


class CallFailed(Exception):
    """A call raised; `error` is what, on which input."""

    def __init__(self, error: Exception, side: int) -> None:
        super().__init__(str(error))
        self.error, self.side = error, side


class MechanismPair:
    """Two neighbouring inputs of a mechanism, each with randomness of its own.

    Args:
        mechanism: a function, or a way to call it (`one_draw`).
        pattern: the name of the pair, where it has one.
        timed: whether the time of a call is a part of its output.
    """

    def __init__(
        self,
        mechanism: object,
        values: tuple[object, object],
        seeds: np.random.SeedSequence,
        pattern: str | None = None,
        timed: bool = False,
    ) -> None:
        self.call = mechanism if isinstance(mechanism, CallForm) else read_call(mechanism)
        self.values, self.pattern, self.timed = values, pattern, timed
        both = seeds.spawn(2)
        self.rngs = [np.random.default_rng(each) for each in both]
        # Which call is whose: apart from the randomness of either input.
        self.turns = np.random.default_rng([int(each.generate_state(1)[0]) for each in both])
        self.singly = timed or not self.call.many
        self.taken = 0

    def explore(self, size: int) -> DrawnPair:
        """Outputs that are not counted: where a call raises, all are made again, draw by draw."""
        if not self.singly:
            try:
                return self._interleave_calls(size)
            except CallFailed:
                self.singly = True
        return self._draw_one_by_one(size)

    def draw(self, size: int) -> DrawnPair:
        if self.singly:
            return self._draw_one_by_one(size)
        try:
            return self._interleave_calls(size)
        except CallFailed as failure:
            hint = (
                "take more samples, so that it shows in the search, or write the mechanism with "
                "one draw a call, m(input, rng), where an exception is an output"
            )
            raise self._refuse_error(failure.error, failure.side, hint) from failure.error

    def _draw_one_by_one(self, size: int) -> DrawnPair:
        """A call for each draw; of all orders of the calls one is chosen at random."""
        items: tuple[list[Any], list[Any]] = [], []
        for side in self.turns.permutation(np.repeat((0, 1), size)).tolist():
            items[side].append(self._draw_once(side))
        return DrawnPair((outputs_from_items(items[0]), outputs_from_items(items[1])))

    def _interleave_calls(self, size: int) -> DrawnPair:
        """Several calls for each input, in an order that is chosen at random."""
        calls = max(1, math.ceil(size / CHUNK_DRAWS), min(CALL_TURNS, size // MIN_CALL_DRAWS))
        sizes = [size // calls + (number < size % calls) for number in range(calls)]
        parts: tuple[list[Outputs], list[Outputs]] = [], []
        for side in self.turns.permutation(np.repeat((0, 1), calls)).tolist():
            asked = sizes[len(parts[side])]
            parts[side].append(self._call(side, asked, partial(read_outputs, size=asked)))
        return DrawnPair((join_outputs(parts[0]), join_outputs(parts[1])), sizes)

    def _draw_once(self, side: int) -> Any:
        """The frozen output of one call for one draw, with its time where calls are timed."""

        def receive(raw: Any) -> Any:
            return read_outputs(raw, 1).as_forms().values[0]

        try:
            output = self._call(side, 1, receive if self.call.many else freeze_output)
        except CallFailed as failure:
            output = Raised.of(failure.error)
        if not self.timed:
            return output
        return Record(((TIME, float(self.taken)), (OUTPUT, output)), TIMED)

    def _call(self, side: int, size: int, receive: Callable[[Any], Any]) -> Any:
        """What the mechanism returned, received at once: an iterator may raise later. The call took
        as long as `taken`."""
        try:
            start = clock()
            try:
                raw = self.call(self.values[side], size, self.rngs[side])
            finally:
                self.taken = clock() - start
            return receive(raw)
        except (WhosinError, KeyboardInterrupt):
            raise
        except BROKEN_ERRORS as error:
            raise self._refuse_error(error, side) from error
        except Exception as error:
            raise CallFailed(error, side) from error
        except SystemExit as error:
            words = f"the mechanism ended the program (sys.exit({error.code!r})) on the input "
            raise MechanismFailed(words + self._name(side)) from error

    def _name(self, side: int) -> str:
        of = "" if self.pattern is None else f" of {self.pattern}"
        return f"“{('with', 'without')[side]}”{of}"

    def _refuse_error(self, error: BaseException, side: int, hint: str = "") -> InvalidInput:
        kind, words = type(error).__name__, " ".join(str(error).split())[:200]
        message = f"the mechanism failed on the input {self._name(side)} with {kind}: {words}"
        usual = "where an observer would see a failure, catch it and return it as an output"
        return InvalidInput(message, field="mechanism", value=kind, hint=hint or usual)


def check_fresh(first: Outputs, second: Outputs) -> None:
    """Refuse draws that come again in the same order: the mechanism seeds itself at each call."""
    if first.kind != second.kind:
        return
    shorter = min(len(first), len(second))
    for count in (min(FEW_DRAWS, shorter), shorter):
        keys, others = (each.part(0, count).keys().tolist() for each in (first, second))
        if keys != others:
            return
    if len(keys) - Counter(keys).most_common(1)[0][1] >= TELLING_DRAWS:
        message = f"two calls of the mechanism made the same {len(keys)} draws"
        hint = "use the rng that it is given"
        raise InvalidInput(message, field="mechanism", value=len(keys), hint=hint)


def is_constant(*parts: Outputs) -> bool:
    """Whether all outputs are one and the same."""
    same = align_kinds(parts)
    first = same[0].keys()[0]
    return all(
        key == first
        for some in (FEW_DRAWS, None)
        for part in same
        for key in Outputs(part.kind, part.values[:some]).keys().tolist()
    )


# Draws that depend on each other: those of one call are alike, or each on the ones before it. A
# refusal of honest draws has a chance of about one in a million; what is not refused may still be
# dependent.


LAG_LENGTHS = (1, 2, 3, 5, 10, 20, 50, 100)
MAX_CORRELATION = 18.0
"""Chance reaches a rank correlation with a probability of about e^-18."""
MAX_RANKED_COLUMNS = 16
CALL_COUNT, CALL_CHANCE = 30, 1e-8
"""What a call must hold for its mean to be nearly normal, in draws of the rarest kind; and how
likely chance makes means of calls differ as much as is refused."""
RECENT_DRAWS = 5_000
"""Draws of a mechanism that are looked at for a memory."""


def check_memory(outputs: Outputs) -> None:
    """Refuse draws of a mechanism that depend on those before them: it has a state."""
    lag = find_memory(rank_series(outputs.part(0, RECENT_DRAWS)))
    if lag is not None:
        message = f"each draw of the mechanism depends on the one {lag} before"
        hint = "draws must be independent"
        raise InvalidInput(message, field="mechanism", value=lag, hint=hint)


def check_output_calls(outputs: Outputs, calls: Sequence[int]) -> None:
    """Refuse outputs that depend on the call that made them."""
    if len(calls) > 1:
        for column in rank_series(outputs):
            check_calls(column, calls)


def check_calls(values: Array, calls: Sequence[int]) -> None:
    """Refuse draws of which those of one call are more alike than those of several: a function that
    counts its calls, or draws some of its noise once a call.

    By the sum of squares between calls, of neighbouring calls together where they are small.

    Args:
        calls: how many draws each call made, in order; none where each made one.
    """
    from scipy.special import chdtrc

    values = np.asarray(values, dtype=np.float64)
    apart = values - values.mean() if len(values) else values
    spread = float((apart**2).mean()) if len(values) else 0.0
    if len(calls) < 2 or spread == 0:
        return
    least = CALL_COUNT * float(np.abs(apart).max()) ** 2 / spread
    ends, start = [], 0
    for end in np.cumsum(calls).tolist():
        if end - start >= least:
            ends.append(end)
            start = end
    if len(ends) < 2:
        return
    ends[-1] = len(values)
    sums = np.add.reduceat(apart, [0, *ends[:-1]])
    between = float((sums**2 / np.diff([0, *ends])).sum()) / spread
    if chdtrc(len(ends) - 1, between) < CALL_CHANCE:
        message = "draws of one call are more alike than draws of different calls"
        hint = "draws must not depend on how often the mechanism was called"
        raise InvalidInput(message, field="mechanism", hint=hint)


def find_memory(columns: list[Array]) -> int | None:
    """How many draws before, where a column of ranks depends on earlier draws."""
    for column in columns:
        for lag in LAG_LENGTHS:
            if len(column) > 4 * lag and ranks_correlate(column[:-lag], column[lag:]):
                return lag
    return None


def rank_series(outputs: Outputs) -> list[Array]:
    """Ranks of the numbers, column by column; of forms, whether an output is a common one."""
    from scipy.stats import rankdata

    if outputs.kind == NUMBERS:
        return [rankdata(outputs.values)]
    if outputs.kind == FORMS:
        items = outputs.values.tolist()
        counts = Counter(items)
        return [rankdata([counts[item] for item in items])]
    return [rankdata(column) for column in outputs.values.T[:MAX_RANKED_COLUMNS]]


def ranks_correlate(one: Array, two: Array) -> bool:
    """Whether the ranks go together more than chance makes them.

    By Bernstein's inequality for the sum of the products: a few rare outputs that meet are soon
    many standard errors away.
    """
    if min(len(one), len(two)) < 30:
        return False
    one, two = one - one.mean(), two - two.mean()
    spread = math.sqrt(len(one)) * float(np.std(one) * np.std(two))
    if spread == 0:
        return False
    errors = abs(float(one @ two)) / spread
    largest = float(np.abs(one).max() * np.abs(two).max()) / spread
    return errors**2 / 2 > MAX_CORRELATION * (1 + largest * errors / 3)


def one_thread() -> Any:
    """A context in which linear algebra and trees take one thread, of the libraries that are loaded
    by then: small ones gain little from more, and lose much on a machine that is busy."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
