"""Draw from a black box: how it is called, how many samples, and tests for dependent draws."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whosin.audit.confidence import read_confidence
from whosin.audit.outputs import (
    FORMS,
    NUMBERS,
    Outputs,
    align_kinds,
    join_outputs,
    outputs_from_items,
    read_outputs,
)
from whosin.audit.snapshots import Raised, freeze_output
from whosin.errors import InvalidInput, MechanismFailed, WhosinError, invalid_value, spell
from whosin.exact import Array, read_ranged
from whosin.validation import read_whole

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
# input. Where each draw is a call of its own, the test of equality is valid for any such function.
# Where one call makes many draws, those of one call are alike in such a function, and `check_calls`
# refuses what shows. What the caller must ensure: given the input, draws are independent of each
# other and of earlier ones.


TURNS, LEAST_CALL = 32, 64
"""Calls in which the draws of one input are made, and draws that each of them makes at least."""
CHUNK_DRAWS = 250_000
"""Draws asked for in one call at most: a million vectors at once would not fit a small machine."""
TELLING_DRAWS = 20
"""This many draws that differ from the commonest one and repeat in order are no accident."""
FEW_DRAWS = 64
"""Draws that mostly show already that outputs differ."""
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


def vectorise(mechanism: object) -> CallForm:
    """The mechanism, and how to call it."""
    return mechanism if isinstance(mechanism, CallForm) else read_call(mechanism)


@dataclass
class MechanismInput:
    """One input of a mechanism, from which samples are drawn.

    Attributes:
        turns: decides which call is whose.
        singly: whether each draw takes a call of its own.
        timed: whether the time of a call is a part of its output (`timing`).
    """

    mechanism: CallForm
    value: object
    name: str
    rng: np.random.Generator
    turns: np.random.Generator = field(default_factory=np.random.default_rng)
    singly: bool = field(init=False)
    timed: bool = False

    def __post_init__(self) -> None:
        self.singly = not self.mechanism.many

    def many(self, size: int) -> Outputs:
        """The outputs of one call for many draws.

        Raises:
            CallFailed: the call raised something that may be an output.
        """
        result: Outputs = self._call(size, lambda raw: read_outputs(raw, size))
        return result

    def refuse_count(self, failure: CallFailed) -> InvalidInput:
        """A call for many draws raised for the first time where draws are counted."""
        hint = (
            "take more samples, so that it shows in the search, or write the mechanism with one "
            "draw a call, m(input, rng), where an exception is an output"
        )
        return self._refuse_error(failure.error, hint)

    def once(self) -> Any:
        """The frozen output of one call for one draw."""
        try:
            return self._call(1, _only_output if self.mechanism.many else freeze_output)
        except CallFailed as failure:
            return Raised.of(failure.error)

    def _call(self, size: int, receive: Callable[[Any], Any]) -> Any:
        """What the mechanism returned, received at once: an iterator may raise later."""
        try:
            return receive(self.mechanism(self.value, size, self.rng))
        except (WhosinError, KeyboardInterrupt):
            raise
        except BROKEN_ERRORS as error:
            raise self._refuse_error(error) from error
        except Exception as error:
            raise CallFailed(error, self) from error
        except SystemExit as error:
            words = f"the mechanism ended the program (sys.exit({error.code!r})) on the input "
            raise MechanismFailed(words + self.name) from error

    def _refuse_error(self, error: BaseException, hint: str = "") -> InvalidInput:
        kind, words = type(error).__name__, " ".join(str(error).split())[:200]
        message = f"the mechanism failed on the input {self.name} with {kind}: {words}"
        usual = "where an observer would see a failure, catch it and return it as an output"
        return InvalidInput(message, field="mechanism", value=kind, hint=hint or usual)


def _only_output(raw: Any) -> Any:
    """The one output of a call for one."""
    return read_outputs(raw, 1).as_forms().values[0]


class CallFailed(Exception):
    """A call raised; `error` is what, for which input."""

    def __init__(self, error: Exception, source: MechanismInput) -> None:
        super().__init__(str(error))
        self.error, self.source = error, source


@dataclass(frozen=True)
class DrawnPair:
    """Fresh outputs of both inputs, and how many draws each call made, in order; nothing where each
    draw was a call of its own, or somebody else drew."""

    outputs: tuple[Outputs, Outputs]
    calls: tuple[list[int], list[int]] = ([], [])


def explore_pair(inputs: Any, size: int) -> DrawnPair:
    """Outputs that are not counted: where a call raises, all are made again, draw by draw."""
    if not isinstance(inputs[0], MechanismInput):
        return DrawnPair((inputs[0].draw(size), inputs[1].draw(size)))
    if not any(source.singly for source in inputs):
        try:
            return _interleave_calls(inputs, size)
        except CallFailed:
            pass
    for source in inputs:  # where one input raises, the other may
        source.singly = True
    return _draw_one_by_one(inputs, size)


def draw_pair(inputs: Any, size: int) -> DrawnPair:
    """Draw fresh outputs of both inputs to count."""
    if not isinstance(inputs[0], MechanismInput):
        return DrawnPair((inputs[0].draw(size), inputs[1].draw(size)))
    if inputs[0].singly:
        return _draw_one_by_one(inputs, size)
    try:
        return _interleave_calls(inputs, size)
    except CallFailed as failure:
        raise failure.source.refuse_count(failure) from failure.error


def _draw_one_by_one(inputs: tuple[MechanismInput, MechanismInput], size: int) -> DrawnPair:
    """A call for each draw; of all orders of the calls one is chosen at random."""
    items: tuple[list[Any], list[Any]] = [], []
    for side in inputs[0].turns.permutation(np.repeat((0, 1), size)).tolist():
        items[side].append(inputs[side].once())
    return DrawnPair((outputs_from_items(items[0]), outputs_from_items(items[1])))


def _interleave_calls(inputs: tuple[MechanismInput, MechanismInput], size: int) -> DrawnPair:
    """Several calls for each input, in an order that is chosen at random."""
    calls = max(1, math.ceil(size / CHUNK_DRAWS), min(TURNS, size // LEAST_CALL))
    sizes = [size // calls + (number < size % calls) for number in range(calls)]
    parts: tuple[list[Outputs], list[Outputs]] = [], []
    for side in inputs[0].turns.permutation(np.repeat((0, 1), calls)).tolist():
        parts[side].append(inputs[side].many(sizes[len(parts[side])]))
    return DrawnPair((join_outputs(parts[0]), join_outputs(parts[1])), (sizes, sizes))


def count_exceptions(outputs: Outputs) -> Counter[str]:
    """How many draws raised, by the kind of exception."""
    if outputs.kind != FORMS:
        return Counter()
    return Counter(each.name for each in outputs.values.tolist() if isinstance(each, Raised))


def check_fresh(first: Outputs, second: Outputs) -> None:
    """Refuse draws that come again in the same order: the mechanism seeds itself at each call."""
    if first.kind != second.kind or not first.repeats(second):
        return
    keys = first.keys()[: len(second)].tolist()
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


def split_draws(total: int) -> list[int]:
    """`total` draws, in calls of at most `CHUNK_DRAWS`."""
    full, rest = divmod(total, CHUNK_DRAWS)
    return [CHUNK_DRAWS] * full + ([rest] if rest else [])


# The terms of an audit: how many samples, at which confidence, granting which δ, from which seed.
# Read once, refused by name, the same for every entry point.


MIN_DRAWS = 40
"""The fewest samples with which an event can be both found and counted."""

Progress = Callable[[int], None]
"""Called with the number of draws of each input that were made since the last call."""


@dataclass(frozen=True)
class AuditTerms:
    """What was agreed before the first draw.

    Attributes:
        samples: draws of each input, all stages together.
        confidence: with which all bounds of the result hold; `error` is what it leaves.
        delta: granted to the mechanism.
        seeds: where randomness begins.
        tell: told how many draws were made.
        float_bits: whether the bits of floats count.
    """

    samples: int
    confidence: float
    error: float
    delta: float
    seeds: np.random.SeedSequence
    tell: Progress
    float_bits: bool = True

    @classmethod
    def read(
        cls,
        samples: object,
        confidence: object,
        delta: object,
        seed: object,
        progress: object,
        float_bits: object = True,
    ) -> AuditTerms:
        """The terms as a caller states them."""
        level, error = read_confidence(confidence)
        if progress is not None and not callable(progress):
            raise invalid_value("progress", "a function of one number", type(progress).__name__)
        tell = progress if progress is not None else _say_nothing
        if not isinstance(float_bits, bool):
            raise invalid_value("float_bits", "True or False", float_bits)
        size = read_samples(samples)
        return cls(size, level, error, read_delta(delta), read_seed(seed), tell, float_bits)


def _say_nothing(_count: int) -> None:
    pass


def read_samples(samples: object) -> int:
    """A whole number of samples that can say something."""
    return read_whole(samples, "samples", MIN_DRAWS, what=" (some 100,000 show most leaks)")


def read_delta(delta: object) -> float:
    """A δ in [0, 1)."""
    return float(read_ranged(delta, "delta", "at least 0 and below 1"))


def read_epsilon(epsilon: object) -> float:
    """Read a claimed ε, or refuse it by name."""
    return float(read_ranged(epsilon, "epsilon", "at least 0"))


def read_seed(seed: object) -> np.random.SeedSequence:
    """Where randomness begins: a whole number for a repeatable run, None for a fresh one."""
    if seed is None:
        return np.random.SeedSequence()
    return np.random.SeedSequence(read_whole(seed, "seed", 0))


def one_thread() -> Any:
    """A context in which linear algebra and trees take one thread, of the libraries that are loaded
    by then: small ones gain little from more, and lose much on a machine that is busy."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


# Samples that somebody else drew: refuse the ones that are plainly not independent draws. A refusal
# of honest draws has a chance of about one in a million, unless they are floats of full precision
# that come again and are on no grid, such as √count: whoever asks then says that they may. What is
# not refused may still be dependent. Looked for: blocks of outputs that come again, in one sample
# or in both (a file that was cycled, or copied); full-precision floats that come again here and
# there (a bootstrap); draws that predict later ones (a chain, a sorted file); draws that predict
# those of the other sample (one seed for both).


LAG_LENGTHS = (1, 2, 3, 5, 10, 20, 50, 100)
FAR_DEVIATIONS = 18.0
"""Chance reaches a rank correlation with a probability of about e^-18."""
MAX_BLOCK_LENGTH = 400
"""Outputs in a block that is looked for; nearly constant samples would need longer ones."""
DIGITS, LAST_BITS = 12, 8
"""A float that differs from its first 12 digits in more than its last bits was not rounded: chance
does not draw it twice, unless all are on a grid."""
FINE, COARSE = 1e-10, 1e-4
"""Of the range of numbers: what arithmetic with floats may blur, and the least step of a grid."""
REPEATED, OFTEN = 0.02, 20
"""A share of unrounded floats that come again, each at most this often, is that of a bootstrap."""
MAX_COLUMNS = 16
CALL_COUNT, CALL_CHANCE = 30, 1e-8
"""What a call must hold for its mean to be nearly normal, in draws of the rarest kind; and how
likely chance makes means of calls differ as much as is refused."""
RECENT_DRAWS = 5_000
"""Draws of a mechanism that are looked at for a memory."""


def check_independent(with_: Outputs, without: Outputs, *, repeats: bool = False) -> None:
    """Refuse samples that are plainly not independent draws of two inputs.

    Args:
        repeats: unrounded floats may come again: the mechanism has few outputs.
    """
    first, second = align_kinds([with_, without])
    codes = _code_outputs(first, second)
    _check_blocks(*codes)
    if not repeats:
        for outputs, name in ((first, "with"), (second, "without")):
            _check_bootstrap(outputs, name)
    series = [_rank_series(each) for each in (first, second)]
    for name, columns in zip(("with", "without"), series, strict=True):
        lag = _find_memory(columns)
        if lag is not None:
            got = f"each depends on the one {lag} before (sorted, or a chain)"
            raise _refuse_dependence(name, got)
    least = min(len(first), len(second))
    for one, two in zip(*series, strict=True):
        if _ranks_correlate(one[:least], two[:least]):
            raise _refuse_dependence("with and without", "they go together (one seed for both?)")


def check_memory(outputs: Outputs) -> None:
    """Refuse draws of a mechanism that depend on those before them: it has a state."""
    lag = _find_memory(_rank_series(outputs.part(0, RECENT_DRAWS)))
    if lag is not None:
        message = f"each draw of the mechanism depends on the one {lag} before"
        hint = "draws must be independent"
        raise InvalidInput(message, field="mechanism", value=lag, hint=hint)


def check_output_calls(outputs: Outputs, calls: Sequence[int]) -> None:
    """Refuse outputs that depend on the call that made them."""
    if len(calls) > 1:
        for column in _rank_series(outputs):
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


def _find_memory(columns: list[Array]) -> int | None:
    """How many draws before, where a column of ranks depends on earlier draws."""
    for column in columns:
        for lag in LAG_LENGTHS:
            if len(column) > 4 * lag and _ranks_correlate(column[:-lag], column[lag:]):
                return lag
    return None


def _refuse_dependence(name: str, got: str, hint: str = "draw each output afresh") -> InvalidInput:
    message = f"the samples {name} are not independent draws: {got}"
    return InvalidInput(message, field=name, hint=hint)


def _code_outputs(first: Outputs, second: Outputs) -> tuple[Array, Array]:
    """Equal outputs of both samples as equal whole numbers."""
    if first.kind == FORMS:
        known: dict[object, int] = {}
        both = [known.setdefault(item, len(known)) for item in (*first.values, *second.values)]
        codes = np.array(both, dtype=np.int64)
    else:
        keys = np.concatenate([first.keys(), second.keys()])
        codes = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    return codes[: len(first)], codes[len(first) :]


def _check_blocks(first: Array, second: Array) -> None:
    """Refuse a block that comes again, so long that chance does not repeat it."""
    codes = np.concatenate([first, second])
    kinds = int(codes.max()) + 1
    shares = [np.bincount(each, minlength=kinds) / len(each) for each in (first, second)]
    # Two draws of one input are alike at least as often as one of each input.
    same = max(float((each**2).sum()) for each in shares)
    if same >= 1:
        return
    needed = (2 * math.log(len(codes)) + math.log(1e12)) / -math.log(max(same, 1e-12))
    length = max(2, math.ceil(needed))
    if length > min(MAX_BLOCK_LENGTH, len(first) // 2, len(second) // 2):
        return
    marks = np.random.default_rng(2023).integers(1, 2**62, kinds, dtype=np.uint64)
    blocks = [_mark_blocks(marks[each], length) for each in (first, second)]
    for name, own in zip(("with", "without"), blocks, strict=True):
        if len(np.unique(own)) < len(own):
            raise _refuse_dependence(name, f"a block of {length} or more outputs comes again")
    if len(np.unique(np.concatenate(blocks))) < sum(len(each) for each in blocks):
        got = f"a block of {length} or more outputs is in both"
        raise _refuse_dependence("with and without", got)


def _mark_blocks(marks: Array, length: int) -> Array:
    """A mark of every block of this many outputs in a row."""
    count = len(marks) - length + 1
    result = np.zeros(count, dtype=np.uint64)
    for step in range(length):
        result = result * np.uint64(0x9E3779B97F4A7C15) + marks[step : step + count]
    return result


def _check_bootstrap(outputs: Outputs, name: str) -> None:
    if outputs.kind == FORMS or outputs.values.dtype.kind != "f":
        return
    keys, index, counts = np.unique(outputs.keys(), return_index=True, return_counts=True)
    again = (counts > 1) & (counts <= OFTEN)
    share = counts[again].sum() / len(outputs)
    if share < REPEATED:
        return
    values = outputs.values[index].reshape(len(keys), -1)[again][:2000]
    if any(_are_unrounded(column) and not _lie_on_grid(column) for column in values.T):
        got = f"{spell(100 * share, 2)}% are unrounded numbers that come again (a bootstrap?)"
        hint = "say repeats=True where the mechanism has few outputs"
        raise _refuse_dependence(name, got, hint)


def _are_unrounded(values: Array) -> bool:
    """Whether most have all the digits of a float. What arithmetic does to the last bits of a
    rounded number (0.1 × 3) adds none."""
    rounded = np.array([float(f"{value:.{DIGITS}g}") for value in values.tolist()])
    with np.errstate(invalid="ignore"):
        return bool(
            np.mean(np.abs(values - rounded) > LAST_BITS * np.spacing(np.abs(values))) > 0.5
        )


def _lie_on_grid(values: Array) -> bool:
    """Whether all are whole multiples of one step apart: Euclid's algorithm on their distances."""
    distances = np.unique(values[np.isfinite(values)])
    distances = distances - distances[:1]
    if len(distances) < 3:
        return True  # two numbers are on some grid
    fine, step = float(distances[-1]) * FINE, 0.0
    for distance in distances[1:].tolist():
        common, rest = distance, step
        while rest > fine:
            common, rest = rest, abs(math.remainder(common, rest))
        # A whole part of the distance again: what rounding blurred would grow from step to step.
        step = distance / round(distance / common)
    return step > float(distances[-1]) * COARSE


def _rank_series(outputs: Outputs) -> list[Array]:
    """Ranks of the numbers, column by column; of forms, whether an output is a common one."""
    from scipy.stats import rankdata

    if outputs.kind == NUMBERS:
        return [rankdata(outputs.values)]
    if outputs.kind == FORMS:
        items = outputs.values.tolist()
        counts: dict[object, int] = {}
        for item in items:
            counts[item] = counts.get(item, 0) + 1
        return [rankdata([counts[item] for item in items])]
    return [rankdata(column) for column in outputs.values.T[:MAX_COLUMNS]]


def _ranks_correlate(one: Array, two: Array) -> bool:
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
    return errors**2 / 2 > FAR_DEVIATIONS * (1 + largest * errors / 3)
