"""Audit samples that were drawn elsewhere, and refuse those that are plainly not independent."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whosin.audit.bounds import MIN_DRAWS, Audit, AuditTerms
from whosin.audit.neighbouring_inputs import check_claim, count_events, search_events
from whosin.audit.sampling import (
    FORMS,
    DrawnPair,
    Outputs,
    align_kinds,
    count_draws,
    find_memory,
    rank_series,
    ranks_correlate,
    read_outputs,
)
from whosin.documents import MAX_STUDY_BYTES, read_number, read_records, read_text
from whosin.errors import InvalidInput, invalid_value, spell
from whosin.exact import Array

# Two neighbouring inputs from samples that were drawn beforehand, in memory or in files. The
# samples are checked for plain dependence (`check_independent`), put in a random order, and split:
# one part chooses the event, the other is counted. What cannot be checked, that each draw was made
# afresh, the caller must ensure.


SAMPLE_SUFFIXES = (".csv", ".txt", ".jsonl", ".npy")


@dataclass
class RecordedPair:
    """Draws of two inputs that are handed out once each."""

    outputs: list[Outputs]
    values: tuple[object, object]
    spent: int = 0
    timed: bool = False

    def draw(self, size: int) -> DrawnPair:
        start, self.spent = self.spent, self.spent + size
        with_, without = (each.part(start, self.spent) for each in self.outputs)
        return DrawnPair((with_, without))

    explore = draw


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
    mixed = []
    for outputs in both:
        order = np.random.default_rng(terms.seeds.spawn(1)[0]).permutation(len(outputs))
        mixed.append(Outputs(outputs.kind, outputs.values[order]))
    labels = [
        str(given) if isinstance(given, str | Path) else f"{spell(len(outputs))} draws"
        for outputs, given in zip(both, (with_, without), strict=True)
    ]
    inputs = RecordedPair(mixed, (labels[0], labels[1]))
    seen, chosen = search_events(inputs, terms)
    return count_events(inputs, seen, size - seen.draws, terms, chosen)


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
        if kind == ".csv":  # without a line of names
            _lines, rows, separator = read_records(path, MAX_STUDY_BYTES)
            values = [tuple(_read_cell(text, separator) for text in row) for row in rows]
            if len(values) > 1 and _is_text(values[0]) and not _is_text(values[1]):
                values = values[1:]
            return [value[0] if len(value) == 1 else value for value in values]
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


def _read_cell(text: str, separator: str) -> float | str:
    value = read_number(text, separator)
    if value is not None:
        return value
    return math.nan if text.lower() == "nan" else text


def _is_text(value: tuple[float | str, ...]) -> bool:
    return all(isinstance(cell, str) for cell in value)


# Samples that somebody else drew: refuse the ones that are plainly not independent draws. A refusal
# of honest draws has a chance of about one in a million, unless they are floats of full precision
# that come again and are on no grid, such as √count: whoever asks then says that they may. What is
# not refused may still be dependent. Looked for: blocks of outputs that come again, in one sample
# or in both (a file that was cycled, or copied); full-precision floats that come again here and
# there (a bootstrap); draws that predict later ones (a chain, a sorted file); draws that predict
# those of the other sample (one seed for both).


MAX_BLOCK_LENGTH = 400
"""Outputs in a block that is looked for; nearly constant samples would need longer ones."""
ROUNDED_DIGITS, MAX_BLURRED_BITS = 12, 8
"""A float that differs from its first 12 digits in more than its last bits was not rounded: chance
does not draw it twice, unless all are on a grid."""
GRID_TOLERANCE, MIN_GRID_STEP = 1e-10, 1e-4
"""Of the range of numbers: what arithmetic with floats may blur, and the least step of a grid."""
BOOTSTRAP_SHARE, MAX_REPEATS = 0.02, 20
"""A share of unrounded floats that come again, each at most this often, is that of a bootstrap."""


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
    series = [rank_series(each) for each in (first, second)]
    for name, columns in zip(("with", "without"), series, strict=True):
        lag = find_memory(columns)
        if lag is not None:
            got = f"each depends on the one {lag} before (sorted, or a chain)"
            raise _refuse_dependence(name, got)
    least = min(len(first), len(second))
    for one, two in zip(*series, strict=True):
        if ranks_correlate(one[:least], two[:least]):
            raise _refuse_dependence("with and without", "they go together (one seed for both?)")


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
    again = (counts > 1) & (counts <= MAX_REPEATS)
    share = counts[again].sum() / len(outputs)
    if share < BOOTSTRAP_SHARE:
        return
    values = outputs.values[index].reshape(len(keys), -1)[again][:2000]
    if any(_are_unrounded(column) and not _lie_on_grid(column) for column in values.T):
        got = f"{spell(100 * share, 2)}% are unrounded numbers that come again (a bootstrap?)"
        hint = "say repeats=True where the mechanism has few outputs"
        raise _refuse_dependence(name, got, hint)


def _are_unrounded(values: Array) -> bool:
    """Whether most have all the digits of a float. What arithmetic does to the last bits of a
    rounded number (0.1 × 3) adds none."""
    texts = (np.format_float_scientific(value, ROUNDED_DIGITS - 1, False) for value in values)
    rounded = np.array([float(text) for text in texts])
    with np.errstate(invalid="ignore"):
        return bool(
            np.mean(np.abs(values - rounded) > MAX_BLURRED_BITS * np.spacing(np.abs(values))) > 0.5
        )


def _lie_on_grid(values: Array) -> bool:
    """Whether all are whole multiples of one step apart: Euclid's algorithm on their distances."""
    distances = np.unique(values[np.isfinite(values)])
    distances = distances - distances[:1]
    if len(distances) < 3:
        return True  # two numbers are on some grid
    fine, step = float(distances[-1]) * GRID_TOLERANCE, 0.0
    for distance in distances[1:].tolist():
        common, rest = distance, step
        while rest > fine:
            common, rest = rest, abs(math.remainder(common, rest))
        # A whole part of the distance again: what rounding blurred would grow from step to step.
        step = distance / round(distance / common)
    return step > float(distances[-1]) * MIN_GRID_STEP
