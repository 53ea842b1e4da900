"""Audit a mechanism on two neighbouring inputs that are given, or on the worst of many pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from whosin.audit.bounds import (
    MIN_DRAWS,
    Audit,
    AuditTerms,
    Progress,
    judge_events,
    log_ratio,
    most_that_can_show,
    read_confidence,
    read_delta,
    read_epsilon,
    read_samples,
    trials_to_show,
)
from whosin.audit.distinguishers import count_tokens
from whosin.audit.event_search import Choices, SampleHalves, pick_events
from whosin.audit.model_scores import take_rows
from whosin.audit.sampling import (
    CHUNK_DRAWS,
    FORMS,
    NUMBERS,
    Mechanism,
    MechanismPair,
    OutputPair,
    Outputs,
    align_kinds,
    check_calls,
    check_fresh,
    check_memory,
    check_output_calls,
    count_repeats,
    is_constant,
    join_outputs,
)
from whosin.audit.snapshots import MAX_PARTS, Raised, Token
from whosin.audit.synthetic_data import TableColumns, read_parts
from whosin.errors import InvalidInput, UnknownName, invalid_value, read_whole, shorten_value, spell

# Two neighbouring inputs: how well can one tell from its output which of two inputs a mechanism
# had? The event is chosen on one set of samples and counted on fresh ones, by an exact test
# (`RatioTest`); the bounds of one result hold together at the stated confidence.


SEARCH_SHARE = 0.25
"""The part of the samples that usually looks for the event; the rest is counted."""
STAGE_SHARES = (1 / 16, SEARCH_SHARE, 1 / 2)
"""A first look, the usual one, and a long one where nothing shows."""
CLEAR_SHARE, FAINT_SHARE = 0.8, 0.01
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
        timing: an observer also sees how long each call takes (`sampling`).
        float_bits: an observer also sees the bits of floats; False: bounds are on what leaks apart
            from these, where −0.0 is 0.0 and every NaN the same.
    """
    terms = AuditTerms.read(samples, confidence, delta, seed, progress, float_bits)
    inputs = MechanismPair(mechanism, (with_, without), terms.seeds, timed=timing)
    if stop_at is not None:
        return audit_rounds(inputs, read_epsilon(stop_at), terms)
    seen, chosen = search_events(inputs, terms)
    return count_events(inputs, seen, terms.samples - seen.draws, terms, chosen)


def check_claim(epsilon: object, samples: object, confidence: object, delta: object = 0) -> None:
    """Refuse too few samples for any outcome to refute a claim, and say how many are enough."""
    error, share, granted = read_confidence(confidence)[1], 1 - SEARCH_SHARE, read_delta(delta)
    claim, size = read_epsilon(epsilon), read_samples(samples)
    if most_that_can_show(max(1, round(size * share)), error, granted) < claim:
        needed = round(trials_to_show(claim, error, granted) * 1.05 / share)
        message = f"{spell(size)} samples could not refute ε = {spell(claim)}, whatever leaks"
        hint = f"draw at least {spell(needed)}"
        raise InvalidInput(message, field="samples", value=size, hint=hint)


def explore_outputs(inputs: OutputPair, size: int, terms: AuditTerms) -> SampleHalves:
    halves = []
    for part in (size // 2, size - size // 2):
        drawn = inputs.explore(part)
        for outputs in drawn.outputs:
            check_output_calls(outputs, drawn.calls)
        halves.append(drawn.outputs)
        terms.tell(part)
    seen = SampleHalves(halves[0], halves[1])
    one, two, again, other = seen.parts
    for first, second in ((one, again), (two, other), (one, other)):
        check_fresh(first, second)
    check_returns(seen.parts)
    for outputs in seen.parts:
        check_memory(outputs)
    return seen


def search_events(inputs: OutputPair, terms: AuditTerms) -> tuple[SampleHalves, Choices]:
    """Search as long as it pays: samples go where leakage shows, or into a longer search."""
    seen: SampleHalves | None = None
    chosen: Choices | None = None
    for share, enough in zip(STAGE_SHARES, (CLEAR_SHARE, FAINT_SHARE, 0.0), strict=True):
        size = round(terms.samples * share)
        if share < SEARCH_SHARE and size < GLANCE_DRAWS:
            continue
        fresh = explore_outputs(inputs, size - (seen.draws if seen else 0), terms)
        seen = fresh if seen is None else seen.join(fresh)
        if share < SEARCH_SHARE and seen.first[0].kind != NUMBERS:
            continue  # classifiers learn more from more
        chosen = seen.choose(terms.samples - size, terms)
        best = chosen.best
        large = share < SEARCH_SHARE and chosen.estimate > LARGE_LOG_RATIO
        promise = best.sure if share < SEARCH_SHARE else best.promise
        if (promise > enough * best.estimate and not large) or size < GLANCE_DRAWS:
            break
    assert seen is not None and chosen is not None
    return seen, chosen


def count_events(
    inputs: OutputPair,
    seen: SampleHalves,
    trials: int,
    terms: AuditTerms,
    chosen: Choices,
    pattern: str | None = None,
) -> Audit:
    """Count the chosen events on fresh draws."""
    picked = pick_events(chosen)
    hits = np.zeros((len(picked), 2), dtype=np.int64)
    for start in range(0, trials, CHUNK_DRAWS):
        size = min(CHUNK_DRAWS, trials - start)
        drawn = inputs.draw(size)
        for side, outputs in enumerate(drawn.outputs):
            for index, choice in enumerate(picked):
                inside = choice.event.contains(outputs)
                check_calls(inside, drawn.calls)
                hits[index, side] += np.count_nonzero(inside)
        terms.tell(size)
    pairs = [(int(first), int(second)) for first, second in hits]
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
        with_=inputs.values[0],
        without=inputs.values[1],
        notes=tuple(output_warnings(parts)),
        blind=not inputs.timed and is_blind(parts),
        pattern=pattern,
        timing=inputs.timed,
        float_bits=terms.float_bits,
    )


# What is odd about the outputs of a search, and what is refused for it. An audit that could not
# have seen anything says so; it never passes for one that looked.


BLIND_WARNING = (
    "every output was distinct, without a number and without a part that comes again, so nothing "
    "could be learnt: let the mechanism return what an observer would compare"
)
NON_NUMBER_SHARE = 0.001
"""What comes again in a smaller share of the draws comes again by chance."""
NUMBERED_SHARE = 0.01
"""Numbers in a smaller share of the draws are an accident of random text."""


def output_warnings(parts: Sequence[Outputs]) -> Iterator[str]:
    """Sentences about the outputs of a search: with, without, with, without."""
    if is_constant(*parts):
        yield "the output was the same in every draw of both inputs"
    elif all(is_constant(*pair) for pair in (parts[0::2], parts[1::2])):
        yield "no randomness: each input has one output, so any claim of privacy is false"
    elif is_blind(parts):
        yield BLIND_WARNING
    draws = sum(len(part) for part in parts)
    forms = [part for part in parts if part.kind == FORMS]
    items = (item for part in forms for item in part.values.tolist())
    raised = Counter(item.name for item in items if isinstance(item, Raised))
    for name, count in raised.most_common(3):
        yield f"{spell(count)} of {spell(draws)} draws raised {name}, which counts as an output"
    if any(not about.whole for part in forms for about in part.descriptions):
        most = spell(MAX_PARTS)
        yield f"of outputs with more than {most} parts the others were compared as a whole"


def is_blind(parts: Sequence[Outputs]) -> bool:
    """Whether no event could have told anything: every output is the same, or none comes again."""
    if is_constant(*parts):
        return True
    if len({(part.kind, part.width) for part in parts}) == 1 and parts[0].kind != FORMS:
        return False
    both = align_kinds([join_outputs(parts[0::2]), join_outputs(parts[1::2])])
    draws = len(both[0]) + len(both[1])
    if both[0].kind != FORMS or len(count_repeats(both)) < draws:
        return False
    numbered = sum(
        any(place[-1:] != ("length",) for place in about.numbers)
        for outputs in both
        for about in outputs.descriptions
    )
    counts: Counter[Token] = count_tokens(both[0]) + count_tokens(both[1])
    least = max(3, NON_NUMBER_SHARE * draws)
    again = any(least <= count <= draws - least for count in counts.values())
    return not again and numbered < NUMBERED_SHARE * draws


def check_returns(parts: Sequence[Outputs]) -> None:
    """Refuse a mechanism that never returned, for one and the same reason in every draw."""
    if all(part.kind != NUMBERS for part in parts) and is_constant(*parts):
        first = parts[0].as_forms().values[0]
        if isinstance(first, Raised):
            message = (
                f"the mechanism raised {first.name} in every draw of both inputs: {first.text}"
            )
            hint = "catch it and return it where an observer would see it"
            raise InvalidInput(message, field="mechanism", value=first.name, hint=hint)


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


def audit_rounds(inputs: OutputPair, claim: float, terms: AuditTerms) -> Audit:
    """Audit round by round until the claim is refuted or the samples are spent."""
    seen: SampleHalves | None = None
    done: list[Audit] = []
    spent = 0
    for size, share in plan_rounds(terms.samples):
        part = replace(terms, error=terms.error * share)
        looked = round(size * SEARCH_SHARE)
        fresh = explore_outputs(inputs, looked, part)
        seen = fresh if seen is None else seen.join(fresh)
        trials = size - looked
        done.append(count_events(inputs, seen, trials, part, seen.choose(trials, part)))
        spent += size
        if done[-1].refutes(claim):
            break
    best = max(done, key=lambda each: each.epsilon)
    return replace(best, log_ratio=max(each.log_ratio for each in done), samples=spent)


# Pairs of neighbouring inputs to try: what one person can change in a vector of queries.
#
# Each of `length` queries moves by at most 1 when one person's data does. *add-remove*: a person
# who comes adds to some queries, so all changes have one sign. *replace*: one person for another,
# so every query may move either way. The patterns are those under which known mistakes leak (Ding
# et al. 2018, Bichsel et al. 2021), and steps at several places.


NEIGHBOUR_RELATIONS = ("add-remove", "replace")


@dataclass(frozen=True, eq=False)
class InputPair:
    """Two neighbouring inputs, with a name for the way in which they differ."""

    name: str
    with_: object
    without: object


def neighbouring_vectors(length: int, relation: str = "add-remove") -> list[InputPair]:
    """Pairs of vectors of `length` query answers.

    >>> [pair.name for pair in neighbouring_vectors(2)]
    ['first query', 'last query', 'all queries']
    """
    if relation not in NEIGHBOUR_RELATIONS:
        raise UnknownName("relation", str(relation), NEIGHBOUR_RELATIONS)
    length = read_whole(length, "length", 1)
    zero, one = np.zeros(length), np.ones(length)
    first, last = zero.copy(), zero.copy()
    first[0] = last[-1] = 1
    half = (np.arange(length) < (length + 1) // 2).astype(float)
    result = [
        ("first query", first, zero),
        ("last query", last, zero),
        ("all queries", one, zero),
        ("half of the queries", half, zero),
        ("all but the first query", one - first, zero),
        ("all but the last query", one - last, zero),
    ]
    if relation == "replace":
        result += [
            ("first query up, the rest down", first, one - first),
            ("last query up, the rest down", last, one - last),
            ("first half up, second half down", half, one - half),
        ]
        for count in (2, 3, length // 4):
            tail = (np.arange(length) >= length - count).astype(float)
            if 1 < count < length:
                result.append((f"last {count} queries up, the rest down", tail, one - tail))
    pairs: dict[tuple[bytes, bytes], InputPair] = {}
    for name, up, down in result:
        key = (up.tobytes(), down.tobytes())
        if key not in pairs and (up != down).any():
            pairs[key] = InputPair(name, up, down)
    return list(pairs.values())


SHIFT_STEPS = (-20.0, -5.0, -1.0, 1.0, 5.0, 20.0)


def shift_pair(pair: InputPair, rng: np.random.Generator) -> InputPair:
    """A pair nearby for a search that climbs: some answers moved in both inputs by as much, so that
    the two stay neighbours. Inputs that are no numbers stay as they are."""
    try:
        one, two = (np.array(value, dtype=float) for value in (pair.with_, pair.without))
    except (TypeError, ValueError):
        return pair
    if one.shape != two.shape or one.ndim > 1:
        return pair
    move = rng.choice(SHIFT_STEPS)
    name = pair.name.removesuffix(MOVED_SUFFIX) + MOVED_SUFFIX
    if one.ndim == 0:
        return InputPair(name, float(one + move), float(two + move))
    move = np.where(rng.random(one.shape) < rng.choice([0.2, 0.5, 1.0]), move, 0.0)
    return InputPair(name, one + move, two + move)


MOVED_SUFFIX = ", moved"


# A search over pairs of inputs that spends its samples where leakage shows. Pairs compete on
# samples that are not counted afterwards. In each round every pair that is left gets the same
# number of fresh draws, and the half that promises more goes on (successive halving: Jamieson and
# Talwalkar 2016). The one pair that is left is counted on fresh draws, so its bounds are as valid
# as those of `two_worlds`, however many pairs were tried.


COMPETING_SHARE = 0.4
"""The part of the samples on which pairs compete, and the last pair's event is chosen."""
MAX_PAIRS = 1000
"""Pairs that are tried at most."""
NEARBY_PAIRS = 4
"""Pairs that compete at each step of a climb: the best one and others near it."""


def search(  # noqa: PLR0913 (public parameters, all by name)
    mechanism: Mechanism,
    pairs: Iterable[object],
    samples: int,
    confidence: object = 0.95,
    *,
    delta: object = 0,
    seed: int | None = None,
    progress: Progress | None = None,
    climb: int = 0,
    timing: bool = False,
    float_bits: bool = True,
) -> Audit:
    """Find the pair of neighbouring inputs that leaks most, and bound its leakage from below.

    Args:
        pairs: of inputs (with, without): from `neighbouring_vectors`, or any of your own, also a
            generator.
        samples: draws of each input, over all pairs and stages together.
        climb: how many times the best pair competes with pairs nearby (hill climbing), in which
            answers of a vector are moved in both inputs alike, on a part of the same samples.
        mechanism, timing, float_bits: as for `two_worlds`.
    """
    terms = AuditTerms.read(samples, confidence, delta, seed, progress, float_bits)
    entrants = _read_pairs(pairs)
    rounds = max(1, math.ceil(math.log2(len(entrants))))
    climbs = read_whole(climb, "climb", 0)
    share = int(terms.samples * COMPETING_SHARE) // (rounds + climbs)
    if share // max(len(entrants), NEARBY_PAIRS if climbs else 1) < MIN_DRAWS // 4:
        needed = math.ceil(MIN_DRAWS // 4 * len(entrants) * (rounds + climbs) / COMPETING_SHARE)
        accepted = f"at least {spell(needed)} for {len(entrants)} pairs"
        raise invalid_value("samples", accepted, samples)
    quiet = replace(terms, tell=lambda _count: None)

    def enter(pair: InputPair) -> Entrant:
        both = pair.with_, pair.without
        return Entrant(pair, MechanismPair(mechanism, both, terms.seeds, pair.name, timing))

    def compete(entered: list[Entrant]) -> list[Entrant]:
        """As many fresh draws of each pair; the one that promises most is the first."""
        size = share // len(entered)
        for each in entered:
            each.look(explore_outputs(each.inputs, size, quiet), terms)
        terms.tell(size * len(entered))
        return sorted(entered, key=lambda each: -each.chosen.promise)

    left, spent = [enter(pair) for pair in entrants], 0
    for step in range(rounds):
        spent += share // len(left) * len(left)
        left = compete(left)[: 1 if step == rounds - 1 else max(2, math.ceil(len(left) / 2))]
    best = left[0]
    rng = np.random.default_rng(terms.seeds.spawn(1)[0])
    for _ in range(climbs):
        spent += share // NEARBY_PAIRS * NEARBY_PAIRS
        nearby = [best.pair, *(shift_pair(best.pair, rng) for _ in range(NEARBY_PAIRS - 1))]
        winner = compete([enter(pair) for pair in nearby])[0]
        if winner.pair is best.pair:  # which is better known now
            best.look(winner.seen, terms)
        else:
            best = winner
    trials = terms.samples - spent
    return count_events(best.inputs, best.seen, trials, terms, best.chosen, best.pair.name)


@dataclass
class Entrant:
    """A pair of inputs that competes, what was seen of it, and the events that would be counted."""

    pair: InputPair
    inputs: OutputPair
    seen: SampleHalves = field(init=False)
    chosen: Choices = field(init=False)

    def look(self, fresh: SampleHalves, terms: AuditTerms) -> None:
        """Learn from fresh draws, and from those before."""
        self.seen = self.seen.join(fresh) if hasattr(self, "seen") else fresh
        self.chosen = self.seen.choose(round(terms.samples * (1 - COMPETING_SHARE)), terms)


def _read_pairs(pairs: Iterable[object]) -> list[InputPair]:
    result = []
    try:
        items = list(islice(pairs, MAX_PAIRS + 1))
    except TypeError:
        accepted = "a list or generator of (with, without) pairs"
        raise invalid_value("pairs", accepted, type(pairs).__name__) from None
    for index, item in enumerate(items):
        if isinstance(item, InputPair):
            result.append(item)
        elif isinstance(item, tuple | list) and len(item) == 2:
            result.append(InputPair(f"pair {index}", item[0], item[1]))
        else:
            raise invalid_value("pairs", "(with, without) pairs of inputs", shorten_value(item))
    if not 1 <= len(result) <= MAX_PAIRS:
        many = f"search takes up to {MAX_PAIRS} pairs, and there are more"
        message = many if result else "there are no pairs to search"
        raise InvalidInput(message, field="pairs", value=len(result))
    return result


# Pairs of neighbouring tables to try: a person more, a person less, one person for another.
#
# The people who are most likely to show are tried first: the largest and the smallest of each
# numeric column, those with the rarest values, then others by chance. A table is a data frame, an
# array with a row a person, or a list of rows (mappings, tuples or single values). Names of pairs
# say row numbers, never values.


MAX_PEOPLE = 12


def neighbour_tables(
    table: Any,
    relation: str = "add-remove",
    *,
    person: str | None = None,
    people: int = MAX_PEOPLE,
    seed: int = 0,
) -> list[InputPair]:
    """Pairs of tables that differ in one person.

    Args:
        person: the column that says whose a row is; by default each row is a person of its own.
        people: how many people are tried.

    >>> [pair.name for pair in neighbour_tables([1, 5, 2], people=1)]
    ['row 1 or not', 'row 1 twice or once', 'row 1 alone or nobody']
    """
    if relation not in NEIGHBOUR_RELATIONS:
        raise UnknownName("relation", str(relation), NEIGHBOUR_RELATIONS)
    if not hasattr(table, "__len__") or isinstance(table, str | bytes | dict):
        accepted = "a data frame, an array or a list of rows"
        raise invalid_value("table", accepted, type(table).__name__)
    if len(table) < 2:
        message = f"the table has {len(table)} rows, and neighbouring tables need at least 2"
        raise InvalidInput(message, field="table", value=len(table))
    columns = read_parts([table], "table")
    groups = _rows_by_person(columns, person)
    chosen = _telling_people(columns, groups, np.random.default_rng(seed))
    chosen = chosen[: read_whole(people, "people", 1)]
    result: list[InputPair] = []
    for index, rows in enumerate(chosen):
        result += _table_pairs(table, rows, chosen[index - 1], relation)
    return result


def _table_pairs(
    table: Any, rows: list[int], others: list[int], relation: str
) -> Iterator[InputPair]:
    every = list(range(len(table)))
    rest = [row for row in every if row not in set(rows)]
    name = f"row {rows[0]}" if len(rows) == 1 else f"the person of row {rows[0]}"
    if relation == "add-remove":
        yield InputPair(f"{name} or not", table, _take_rows(table, rest))
        yield InputPair(f"{name} twice or once", _take_rows(table, every + rows), table)
        yield InputPair(f"{name} alone or nobody", _take_rows(table, rows), _take_rows(table, []))
    elif others != rows:
        yield InputPair(f"{name} or row {others[0]} again", table, _take_rows(table, rest + others))


def _take_rows(table: Any, rows: list[int]) -> Any:
    taken = take_rows(table, np.array(rows, dtype=int))
    return taken.reset_index(drop=True) if hasattr(taken, "reset_index") else taken


def _rows_by_person(table: TableColumns, person: str | None) -> list[list[int]]:
    if person is None:
        return [[row] for row in range(len(table))]
    if person not in table.names:
        raise UnknownName("person", person, [str(name) for name in table.names])
    result: dict[Any, list[int]] = {}
    for row, who in enumerate(table.cells[table.names.index(person)].tolist()):
        result.setdefault(who, []).append(row)
    return list(result.values())


def _telling_people(
    table: TableColumns, groups: list[list[int]], rng: np.random.Generator
) -> list[list[int]]:
    """All people, the most likely to show first."""
    owner = {row: group for group, rows in enumerate(groups) for row in rows}
    chosen: list[int] = []
    for cells in table.cells:
        if cells.dtype.kind == "f":
            known = np.isfinite(cells)
            ends = np.where(known, cells, -np.inf), np.where(known, -cells, -np.inf)
            chosen += [owner[int(np.argmax(each))] for each in ends]
        else:
            _words, first, counts = np.unique(cells, return_index=True, return_counts=True)
            chosen.append(owner[int(first[counts == counts.min()].min())])
    chosen += rng.permutation(len(groups)).tolist()
    return [groups[group] for group in dict.fromkeys(chosen)]
