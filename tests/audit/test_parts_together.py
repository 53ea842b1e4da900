"""Leaks that no single part of an output shows: two parts together, and how outputs are built."""

from __future__ import annotations

import math

import numpy as np
import pytest

import whosin as wi
from whosin.audit.classifiers import row_totals
from whosin.audit.distinguishers import TokenCounts
from whosin.audit.sampling import read_outputs
from whosin.audit.snapshots import BuiltFrom, describe_output, freeze_output


def same_or_not(value, rng):
    """Each word is a fair coin by itself; now and then they agree, or differ."""
    one, two = rng.random() < 0.5, rng.random() < 0.5
    if rng.random() < 0.5:
        two = one if value else not one
    words = {"x": float(rng.normal()), "a": "yes" if one else "no", "b": "high" if two else "low"}
    return words | {"noise": float(rng.normal())}


def test_two_words_tell_together():
    found = wi.audit.two_worlds(same_or_not, 1, 0, 2_000, seed=1)
    assert 0.6 < found.epsilon <= math.log(3), str(found.event)


def codes(value, size, rng):
    """Columns 1 and 2 are uniform each; they agree more often with someone in."""
    table = rng.integers(0, 4, (size, 4)).astype(float)
    told = rng.random(size) < 0.4
    table[told, 2] = table[told, 1] if value else (table[told, 1] + 1) % 4
    return np.column_stack([table, rng.normal(size=(size, 2)).round(6)])


def test_two_codes_tell_together():
    found = wi.audit.two_worlds(codes, 1, 0, 8_000, seed=1)
    assert found.epsilon > 0.8, str(found.event)


def somewhere(value, size, rng):
    """One number among blanks: small after few blanks and large after many, or the reverse."""
    place = rng.integers(0, 8, size)
    number = np.abs(rng.normal(size=size)) * np.where((place < 4) == bool(value), 1, -1)
    told = rng.random(size) < 0.7
    number[~told] = rng.normal(size=size)[~told]
    rows = np.where(np.arange(8) < place[:, None], -1000.0, -2000.0)
    rows[np.arange(size), place] = number.round(6)
    return rows


def test_where_a_number_stands_and_how_large_it_is_tell_together():
    """The truth is ln(0.85 / 0.15)."""
    found = wi.audit.two_worlds(somewhere, 1, 0, 6_000, seed=1)
    assert 1.5 < found.epsilon <= math.log(0.85 / 0.15), str(found.event)


def test_totals_of_rows():
    rows = np.array([[7.0, 0, 7, 2, -1], [0, 7, 7, 7, 7], [3, -4, 5, 1, 2]])
    assert row_totals(rows, [7.0, 0.0]).tolist() == [
        [2, 1, 1, -1, 2],
        [4, 1, 0, 0, 0],
        [0, 0, 7, -4, 5],
    ]


def lost(shape):
    """An output that is built otherwise, 3% of the time with and 0.2% without."""

    def draw(value, rng):
        odd = rng.random() < (0.03 if value else 0.002)
        return shape(odd, rng)

    return draw


def _list(rng):
    return rng.normal(size=int(rng.integers(1, 12))).tolist()


SHAPES = {
    "a field is missing": lambda odd, rng: {
        "a": {"n": rng.normal()},
        "b": {} if odd else {"n": rng.normal()},
        "more": _list(rng),
    },
    "a number where there is none": lambda odd, rng: {
        "n": rng.normal() if odd else f"w{rng.integers(1000)}",
        "more": _list(rng),
    },
    "a list of two kinds": lambda odd, rng: {
        "l": [rng.normal(), f"w{rng.integers(1000)}" if odd else rng.normal()],
        "more": _list(rng),
    },
    "an exception inside": lambda odd, rng: {
        "l": [ValueError(f"at {rng.random()}") if odd else rng.normal()],
        "more": _list(rng),
    },
}


FIRST = "a field is missing"


@pytest.mark.parametrize(
    "shape",
    [pytest.param(each, marks=[] if each == FIRST else pytest.mark.soak) for each in SHAPES],
)
def test_how_outputs_are_built(shape):
    found = wi.audit.two_worlds(lost(SHAPES[shape]), 1, 0, 4_000, seed=1)
    assert 1.0 < found.epsilon <= math.log(15), str(found.event)


def test_how_a_part_is_built():
    about = describe_output(
        freeze_output({"a": {"n": 1.5}, "l": [1, "x"], "s": {1, 2}, "e": ValueError("no")})
    )
    built = {token for token in about.tokens if isinstance(token, BuiltFrom)}
    assert BuiltFrom((), "keys", ("a", "e", "l", "s")) in built
    assert BuiltFrom(("a", "n"), "a number") in built
    assert BuiltFrom(("l",), "entries", (2, "number", "text")) in built
    assert (
        BuiltFrom(("s",), "elements", (2,)) in built
        and BuiltFrom(("e",), "raised", ("ValueError",)) in built
    )


def test_tokens_that_are_in_the_same_draws_count_once():
    worlds = [
        read_outputs([{"k": "a"}, {"k": "b"}, {"k": "a"}], 3),
        read_outputs([{"k": "b"}, {"k": "a"}, {}], 3),
    ]
    counted = TokenCounts.of(*worlds)
    apart = list(counted.distinct_tokens().values())
    marks = [counted.marks[token] for token in apart]
    assert len(marks) == len(set(marks)) and counted.trials == (3, 3)
