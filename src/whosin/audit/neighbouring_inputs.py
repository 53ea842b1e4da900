"""Audit a mechanism on two neighbouring inputs: drawn, timed, recorded, or in rounds."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from whosin.audit.confidence import read_confidence
from whosin.audit.distinguisher_search import (
    Pair,
    check_returns,
    is_blind,
    output_warnings,
    score_distinguishers,
)
from whosin.audit.events import (
    Audit,
    Choices,
    choose_events,
    judge_events,
    log_ratio,
    most_that_can_show,
    pick_events,
    trials_to_show,
)
from whosin.audit.outputs import (
    FORMS,
    NUMBERS,
    Outputs,
    align_kinds,
    count_draws,
    join_outputs,
    outputs_from_items,
    read_outputs,
)
from whosin.audit.sampling import (
    MIN_DRAWS,
    AuditTerms,
    CallForm,
    Mechanism,
    MechanismInput,
    Progress,
    check_calls,
    check_fresh,
    check_independent,
    check_memory,
    check_output_calls,
    draw_pair,
    explore_pair,
    read_delta,
    read_epsilon,
    read_samples,
    split_draws,
    vectorise,
)
from whosin.audit.snapshots import Record
from whosin.documents import MAX_STUDY_BYTES, read_number, read_records, read_text
from whosin.errors import InvalidInput, invalid_value, spell

# Two neighbouring inputs whose calls are timed: the time that a call took is a part of its output.
# Only where a caller asks. Each draw is a call of its own, and an output becomes a record of the
# output and the nanoseconds until the call returned, so that every ordering sees both. Calls of
# both inputs are made in turns, and which is first in each turn is random: a machine that warms up,
# slows down or is busy for a while favours neither input. What the caller must ensure is that one
# call does not make the next one slower; where nothing depends on the input, chance alone decides
# which call is whose, and the test of equality holds on any machine.


clock = time.perf_counter_ns
"""What the time is read from, in nanoseconds."""
TIMED, TIME, OUTPUT = "timed call", "nanoseconds", "output"


@dataclass
class Stopwatch:
    """A function, and how long its last call took."""

    function: Callable[..., Any]
    taken: int = 0

    def __call__(self, *given: Any, **named: Any) -> Any:
        start = clock()
        try:
            return self.function(*given, **named)
        finally:
            self.taken = clock() - start


@dataclass
class TimedInput:
    """One of two inputs: its calls wait here until they are asked for."""

    source: MechanismInput
    watch: Stopwatch
    turns: InputPairSampler
    waiting: deque[Any] = field(default_factory=deque)
    singly: bool = True
    timed: bool = True

    @property
    def value(self) -> object:
        return self.source.value

    def call(self) -> None:
        """Make one timed call of the mechanism."""
        output = self.source.once()
        parts = ((TIME, float(self.watch.taken)), (OUTPUT, output))
        self.waiting.append(Record(parts, TIMED))

    def draw(self, size: int) -> Outputs:
        """Fresh outputs; the other input is called as often."""
        self.turns.take(size - len(self.waiting))
        return outputs_from_items([self.waiting.popleft() for _ in range(size)])


@dataclass
class InputPairSampler:
    """Calls of both inputs, each turn in random order."""

    rng: np.random.Generator
    inputs: list[TimedInput] = field(default_factory=list)

    def take(self, count: int) -> None:
        """So many turns, none for a negative number."""
        for first in self.rng.integers(0, 2, max(count, 0)).tolist():
            self.inputs[first].call()
            self.inputs[1 - first].call()


def time_inputs(
    inputs: tuple[MechanismInput, MechanismInput], seed: np.random.SeedSequence
) -> tuple[TimedInput, TimedInput]:
    """Both inputs, called in turns."""
    turns = InputPairSampler(np.random.default_rng(seed))
    for source in inputs:
        watch = Stopwatch(source.mechanism.function)
        call: CallForm = replace(source.mechanism, function=watch)
        turns.inputs.append(TimedInput(replace(source, mechanism=call), watch, turns))
    return turns.inputs[0], turns.inputs[1]


def drop_time(outputs: Outputs) -> Outputs:
    """The outputs alone, where calls were timed."""
    items = outputs.values.tolist() if outputs.kind == FORMS else []
    if not items or not all(isinstance(i, Record) and i.name == TIMED for i in items):
        return outputs
    return outputs_from_items([dict(item.items)[OUTPUT] for item in items])


# Two neighbouring inputs: how well can one tell from its output which of two inputs a mechanism
# had? The event is chosen on one set of samples and counted on fresh ones, by an exact test
# (`RatioTest`); the bounds of one result hold together at the stated confidence.


SEARCH_SHARE = 0.25
"""The part of the samples that usually looks for the event; the rest is counted."""
STAGE_SHARES = (1 / 16, SEARCH_SHARE, 1 / 2)
"""A first look, the usual one, and a long one where nothing shows."""
CLEAR, FAINT = 0.8, 0.01
"""After the first look an event is counted if it surely shows this part of its estimate; after the
usual one, if it promises anything."""
LARGE_LOG_RATIO = 1.0
"""Leaks that look larger are worth the usual look: more of it finds rarer events, and a longer
count adds little."""
GLANCE_DRAWS = 5000
"""Draws that a first look needs."""


def two_worlds(  # noqa: PLR0913 (public parameters, all by name)
    mechanism: Mechanism,
    with_: object,
    without: object,
    samples: int,
    confidence: object = 0.95,
    *,
    delta: object = 0,
    seed: int | None = None,
    progress: Progress | None = None,
    stop_at: object = None,
    timing: bool = False,
    float_bits: bool = True,
) -> Audit:
    """Bound from below how much the mechanism's output tells the input `with_` from `without`.

    Args:
        mechanism: `m(input, size, rng)` with `size` independent outputs, or one draw per call,
            `m(input, rng)` or `m(input)`. Outputs may be anything; an exception is one, too
            (`sampling` says which are not).
        with_, without: neighbouring inputs, with someone's data and without.
        samples: draws of each input, all stages together.
        confidence: with which all bounds of the result hold.
        delta: granted to the mechanism: bounds are then on the ε of an (ε, δ) claim.
        seed: for a repeatable run.
        stop_at: an ε that is claimed: stop as soon as it is refuted (`rounds`).
        timing: an observer also sees how long each call takes (`timing`).
        float_bits: an observer also sees the bits of floats; False: bounds are on what leaks apart
            from these, where −0.0 is 0.0 and every NaN the same.
    """
    terms = AuditTerms.read(samples, confidence, delta, seed, progress, float_bits)
    seeds = terms.seeds.spawn(2)
    turn_seed = terms.seeds.spawn(1)[0] if timing else None
    inputs = open_inputs(vectorise(mechanism), with_, without, seeds, turn_seed=turn_seed)
    if stop_at is not None:
        return audit_rounds(inputs, read_epsilon(stop_at), terms)
    seen, chosen = search_events(inputs, terms)
    return count_events(inputs, seen, terms.samples - seen.draws, terms, chosen=chosen)


def open_inputs(
    draw: CallForm,
    with_: object,
    without: object,
    seeds: list[np.random.SeedSequence],
    pattern: str | None = None,
    *,
    turn_seed: np.random.SeedSequence | None = None,
) -> Any:
    """Both inputs of a mechanism, each with randomness of its own; timed, where the order of turns
    has a seed."""
    of = "" if pattern is None else f" of {pattern}"
    # Apart from the randomness of either input.
    turns = np.random.default_rng([int(each.generate_state(1)[0]) for each in seeds])
    inputs = (
        MechanismInput(draw, with_, f"“with”{of}", np.random.default_rng(seeds[0]), turns),
        MechanismInput(draw, without, f"“without”{of}", np.random.default_rng(seeds[1]), turns),
    )
    return inputs if turn_seed is None else time_inputs(inputs, turn_seed)


def check_claim(epsilon: object, samples: object, confidence: object, delta: object = 0) -> None:
    """Refuse too few samples for any outcome to refute a claim, and say how many are enough."""
    error, share, granted = read_confidence(confidence)[1], 1 - SEARCH_SHARE, read_delta(delta)
    claim, size = read_epsilon(epsilon), read_samples(samples)
    if most_that_can_show(max(1, round(size * share)), error, granted) < claim:
        needed = round(trials_to_show(claim, error, granted) * 1.05 / share)
        message = f"{spell(size)} samples could not refute ε = {spell(claim)}, whatever leaks"
        hint = f"draw at least {spell(needed)}"
        raise InvalidInput(message, field="samples", value=size, hint=hint)


@dataclass(frozen=True)
class SearchDraws:
    """Samples of both inputs that are spent on the search, in two halves."""

    first: Pair
    second: Pair

    @property
    def draws(self) -> int:
        return len(self.first[0]) + len(self.second[0])

    @property
    def parts(self) -> list[Outputs]:
        """The outputs alone, without the time of timed calls."""
        return [drop_time(each) for each in (*self.first, *self.second)]

    def join(self, fresh: SearchDraws) -> SearchDraws:
        """What was seen before and now."""
        first, second = (
            (join_outputs([old[0], new[0]]), join_outputs([old[1], new[1]]))
            for old, new in ((self.first, fresh.first), (self.second, fresh.second))
        )
        return SearchDraws(first, second)

    def choices(self, trials: int, terms: AuditTerms) -> Choices:
        """The best events in each direction, for a count on `trials` draws."""
        tried = score_distinguishers(self.first, self.second, float_bits=terms.float_bits)
        return choose_events(tried, trials, terms.error, terms.delta)


def explore_outputs(
    inputs: tuple[MechanismInput, MechanismInput], size: int, terms: AuditTerms
) -> SearchDraws:
    """Draw what the search looks at."""
    halves = []
    for part in (size // 2, size - size // 2):
        drawn = explore_pair(inputs, part)
        for outputs, calls in zip(drawn.outputs, drawn.calls, strict=True):
            check_output_calls(outputs, calls)
        halves.append(drawn.outputs)
        terms.tell(part)
    seen = SearchDraws(halves[0], halves[1])
    one, two, again, other = seen.parts
    for first, second in ((one, again), (two, other), (one, other)):
        check_fresh(first, second)
    check_returns(seen.parts)
    for outputs in seen.parts:
        check_memory(outputs)
    return seen


def search_events(
    inputs: tuple[MechanismInput, MechanismInput], terms: AuditTerms
) -> tuple[SearchDraws, Choices]:
    """Search as long as it pays: samples go where leakage shows, or into a longer search."""
    seen: SearchDraws | None = None
    chosen: Choices | None = None
    for share, enough in zip(STAGE_SHARES, (CLEAR, FAINT, 0.0), strict=True):
        size = round(terms.samples * share)
        if share < SEARCH_SHARE and size < GLANCE_DRAWS:
            continue
        fresh = explore_outputs(inputs, size - (seen.draws if seen else 0), terms)
        seen = fresh if seen is None else seen.join(fresh)
        if share < SEARCH_SHARE and seen.first[0].kind != NUMBERS:
            continue  # classifiers learn more from more
        chosen = seen.choices(terms.samples - size, terms)
        best = chosen.best
        large = share < SEARCH_SHARE and chosen.estimate > LARGE_LOG_RATIO
        promise = best.sure if share < SEARCH_SHARE else best.promise
        if (promise > enough * best.estimate and not large) or size < GLANCE_DRAWS:
            break
    assert seen is not None and chosen is not None
    return seen, chosen


def count_events(
    inputs: tuple[MechanismInput, MechanismInput],
    seen: SearchDraws,
    trials: int,
    terms: AuditTerms,
    *,
    chosen: Choices | None = None,
    pattern: str | None = None,
) -> Audit:
    """Count the chosen events, by default the best of what was seen, on fresh draws."""
    picked = pick_events(chosen or seen.choices(trials, terms))
    hits = np.zeros((len(picked), 2), dtype=np.int64)
    for size in split_draws(trials):
        drawn = draw_pair(inputs, size)
        for side, (outputs, calls) in enumerate(zip(drawn.outputs, drawn.calls, strict=True)):
            for index, choice in enumerate(picked):
                inside = choice.event.contains(outputs)
                check_calls(inside, calls)
                hits[index, side] += np.count_nonzero(inside)
        terms.tell(size)
    pairs = [(int(first), int(second)) for first, second in hits]
    timed = inputs[0].timed
    parts = seen.parts
    if not terms.float_bits:
        parts = [part.without_float_bits() for part in parts]
    counts = judge_events(picked, pairs, (trials, trials), terms.error, terms.delta)
    return Audit(
        epsilon=counts[0].log_ratio,
        log_ratio=log_ratio(counts),
        confidence=terms.confidence,
        delta=terms.delta,
        counts=counts,
        samples=terms.samples,
        with_=inputs[0].value,
        without=inputs[1].value,
        notes=tuple(output_warnings(parts)),
        blind=not timed and is_blind(parts),
        pattern=pattern,
        timing=timed,
        float_bits=terms.float_bits,
    )


# Two neighbouring inputs from samples that were drawn beforehand, in memory or in files. The
# samples are checked for plain dependence (`check_independent`), put in a random order, and split:
# one part chooses the event, the other is counted. What cannot be checked, that each draw was made
# afresh, the caller must ensure.


SAMPLE_SUFFIXES = (".csv", ".txt", ".jsonl", ".npy")


@dataclass
class RecordedSamples:
    """Draws of one input that are handed out once each."""

    outputs: Outputs
    value: object
    name: str
    singly: bool = False
    spent: int = 0
    timed: bool = False

    def draw(self, size: int) -> Outputs:
        """Return the next draws from the mechanism."""
        self.spent += size
        return self.outputs.part(self.spent - size, self.spent)


def samples(
    with_: object,
    without: object,
    confidence: object = 0.95,
    *,
    delta: object = 0,
    seed: int | None = None,
    repeats: bool = False,
    claim: object = None,
    float_bits: bool = True,
) -> Audit:
    """Bound from below how much two samples of outputs tell their inputs apart.

    Args:
        with_, without: independent draws of the mechanism on two neighbouring inputs: arrays or
            lists, or paths of files (.npy, .jsonl, or .csv and .txt with an output a line).
        repeats: unrounded floats may come again: the mechanism has few outputs.
        float_bits: as for `two_worlds`.
        claim: an ε; samples that are too few to refute it are refused before any is looked at.
    """
    both = _read_samples(with_, "with"), _read_samples(without, "without")
    size = min(len(each) for each in both)
    if size < MIN_DRAWS:
        raise invalid_value("samples", f"at least {MIN_DRAWS} draws of each input", size)
    terms = AuditTerms.read(size, confidence, delta, seed, None, float_bits)
    if claim is not None:
        check_claim(claim, size, confidence, delta)
    check_independent(*both, repeats=repeats)
    inputs = []
    for outputs, given, name in zip(both, (with_, without), ("with", "without"), strict=True):
        order = np.random.default_rng(terms.seeds.spawn(1)[0]).permutation(len(outputs))
        label = str(given) if isinstance(given, str | Path) else f"{spell(len(outputs))} draws"
        mixed = Outputs(outputs.kind, outputs.values[order])
        inputs.append(RecordedSamples(mixed, label, f"“{name}”"))
    pair: Any = tuple(inputs)
    seen, chosen = search_events(pair, terms)
    return count_events(pair, seen, size - seen.draws, terms, chosen=chosen)


def _read_samples(given: object, name: str) -> Outputs:
    if isinstance(given, str | Path):
        given = _read_sample_file(Path(given))
    if getattr(given, "shape", None) == ():
        raise InvalidInput(f"the samples {name} are one number, not an array", field=name)
    if not hasattr(given, "__len__"):
        kind = type(given).__name__
        message = f"the samples {name} must be an array, a list or a path, not {kind}"
        raise InvalidInput(message, field=name, value=kind)
    size = count_draws(given)
    if size == 0:
        raise InvalidInput(f"there are no samples {name}", field=name, value=0)
    return align_kinds([read_outputs(given, size)])[0]


def _read_sample_file(path: Path) -> Any:
    """The outputs in a file; no cell is quoted."""
    kind = path.suffix.lower()
    if kind not in SAMPLE_SUFFIXES:
        message = f"{path.name} is not a file of samples"
        hint = f"its name must end in {', '.join(SAMPLE_SUFFIXES)}"
        raise InvalidInput(message, field="samples", value=path.name, hint=hint)
    try:
        if kind == ".npy":
            return np.load(path, allow_pickle=False)
        if kind == ".csv":
            return _read_csv_rows(path)
        text = read_text(path, path.name, MAX_STUDY_BYTES)
        lines = [line for line in text.split("\n") if line.strip()]
        if kind == ".jsonl":
            return [json.loads(line) for line in lines]
        return [_read_cell(line.rstrip("\r"), "") for line in lines]
    except FileNotFoundError:
        raise InvalidInput(f"{path.name}: no such file", field="samples", value=path.name) from None
    except InvalidInput:
        raise
    except (ValueError, OSError):
        message = f"{path.name} cannot be read as {path.suffix[1:]}"
        raise InvalidInput(message, field="samples", value=path.name) from None


def _read_csv_rows(path: Path) -> list[Any]:
    """The rows of a CSV file, without a line of names."""
    _lines, rows, separator = read_records(path, MAX_STUDY_BYTES)
    values = [tuple(_read_cell(text, separator) for text in row) for row in rows]
    if len(values) > 1 and _is_text(values[0]) and not _is_text(values[1]):
        values = values[1:]
    return [value[0] if len(value) == 1 else value for value in values]


def _read_cell(text: str, separator: str) -> float | str:
    value = read_number(text, separator)
    if value is not None:
        return value
    return math.nan if text.lower() == "nan" else text


def _is_text(value: tuple[float | str, ...]) -> bool:
    return all(isinstance(cell, str) for cell in value)


# An audit that stops as soon as a claim is refuted. The samples come in rounds of growing size, and
# each round has a share of the error that was fixed beforehand, so the bounds of all rounds hold
# together whenever one stops. In each round an event is chosen by everything that was searched so
# far and counted on fresh draws.


ROUND_SHARES = ((1 / 64, 1 / 32), (1 / 16, 1 / 16), (1 / 4, 1 / 8))
"""Shares of the samples and of the error, of all rounds but the last, which has the rest."""


def plan_rounds(samples: int) -> list[tuple[int, float]]:
    """The size of each round and its share of the error; small rounds are left out."""
    result = [(round(samples * size), error) for size, error in ROUND_SHARES]
    result = [(size, error) for size, error in result if size >= 4 * MIN_DRAWS]
    left = samples - sum(size for size, _ in result)
    return [*result, (left, 1 - sum(error for _, error in result))]


def audit_rounds(
    inputs: tuple[MechanismInput, MechanismInput], claim: float, terms: AuditTerms
) -> Audit:
    """Audit round by round until the claim is refuted or the samples are spent."""
    seen: SearchDraws | None = None
    done: list[Audit] = []
    spent = 0
    for size, share in plan_rounds(terms.samples):
        part = replace(terms, error=terms.error * share)
        looked = round(size * SEARCH_SHARE)
        fresh = explore_outputs(inputs, looked, part)
        seen = fresh if seen is None else seen.join(fresh)
        done.append(count_events(inputs, seen, size - looked, part))
        spent += size
        if done[-1].refutes(claim):
            break
    best = max(done, key=lambda each: each.epsilon)
    return replace(best, log_ratio=max(each.log_ratio for each in done), samples=spent)
