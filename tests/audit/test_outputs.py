"""Outputs of any kind: what they hold is compared, whatever they come as, and copied at once."""

from __future__ import annotations

import json
import math
import sys
import uuid
from collections import namedtuple
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import whosin as wi
from amounts import cases, some
from attacked import alarms, most_alarms
from refusals import about
from whosin.audit.sampling import FORMS, NUMBERS, VECTORS, join_outputs, read_outputs
from whosin.audit.snapshots import (
    OUTPUT_FIELD,
    PLAIN_NAN,
    HasToken,
    Raised,
    Record,
    TokenAt,
    describe_output,
    freeze_output,
)
from whosin.errors import InvalidInput, MechanismFailed


class Tensor:
    """A stand-in for an array of another library: equal by entry, hashed by identity."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __eq__(self, other):
        return Tensor(self.values == other.values)

    def __hash__(self):
        return id(self)

    def __len__(self):
        return len(self.values)


class Plain(Tensor):
    def __array__(self, dtype=None, copy=None):
        return self.values


class OnlyDlpack(Tensor):
    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class WithGradient(Tensor):
    """As PyTorch does: no array while a gradient is needed, or on another device."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def __dlpack__(self, **options):
        raise BufferError("Can't export tensors that require gradient")

    def tolist(self):
        return self.values.tolist()


def found(mechanism, samples=3_000, **options):
    return wi.audit.two_worlds(mechanism, 1, 0, samples, seed=1, **options)


@pytest.mark.parametrize("kind", [Plain, OnlyDlpack, WithGradient])
def test_tensors_are_read(kind):
    """A leak of 100 standard deviations, as a tensor of all draws, or one a draw."""
    assert found(lambda v, size, rng: kind(100 * v + rng.normal(size=size)), 12_000).epsilon > 5
    assert found(lambda v, rng: {"loss": kind(100 * v + rng.normal())}, 600).epsilon > 4
    assert found(lambda v, rng: kind(rng.normal(size=2)), 600).epsilon < 0.5


def test_buffers_are_copied():
    many, one = np.zeros(10_000), np.zeros(3)
    inner = {"values": [0.0, 0.0]}

    def fill_many(v, size, rng):
        many[:size] = 100 * v + rng.normal(size=size)
        return many[:size]

    def fill_one(v, rng):
        one[:] = 100 * v + rng.normal(size=3)
        return one

    def fill_inner(v, rng):
        inner["values"][0] = 100 * v + rng.normal()
        return inner

    def fill_and_yield(v, size, rng):
        for _ in range(size):
            yield fill_one(v, rng)

    for mechanism in (fill_many, fill_one, fill_inner, fill_and_yield):
        assert found(mechanism, 1_000).epsilon > 4, mechanism.__name__


def respond(v, rng):
    return bool(rng.random() < (0.75 if v else 0.25))


Pair = namedtuple("Pair", "first second")


@dataclass
class Answer:
    value: float
    names: list


class Holder:
    def __init__(self, value):
        self.value = value


KINDS = {
    "None or a number": lambda bit, x: x if bit else None,
    "a number or a vector": lambda bit, x: x if bit else [x, x],
    "a number or text": lambda bit, x: x if bit else "none",
    "NaN or a number": lambda bit, x: math.nan if bit else x,
    "vectors of two lengths": lambda bit, x: [x] * (3 + bit),
    "a mapping": lambda bit, x: {"n": x, "bit": bit},
    "a mapping with a key more": lambda bit, x: {"n": x, **({"m": x} if bit else {})},
    "a set": lambda bit, x: {"a", "b"} if bit else {"a"},
    "a named tuple": lambda bit, x: Pair(x, "yes" if bit else "no"),
    "a data class": lambda bit, x: Answer(x, ["yes"] if bit else []),
    "an object": lambda bit, x: Holder([x, "yes" if bit else "no"]),
    "a frame": lambda bit, x: pd.DataFrame({"k": ["a", "b" if bit else "c"], "n": [x, x]}),
    "a frame by an index": lambda bit, x: pd.DataFrame({"n": [x]}, index=["b" if bit else "c"]),
    "a series": lambda bit, x: pd.Series({"a": x, "b" if bit else "c": x}),
    "a complex number": lambda bit, x: complex(x, bit),
    "a fraction": lambda bit, x: (Fraction(3, 2) if bit else Fraction(1, 2), x),
    "a structured array": lambda bit, x: np.array([(x, bit)], dtype=[("x", "f8"), ("b", "?")]),
    "text with numbers": lambda bit, x: f"loss {x:.9f}, bit {int(bit)}.",
    "a number in text": lambda bit, x: f"the sum is {(100 if bit else -100) + x:.6f} today",
    "words": lambda bit, x: f"{'yes' if bit else 'no'} {x:.9f} it is",
    "JSON": lambda bit, x: json.dumps({"n": x, "bit": bit, "deep": [{"x": x}]}),
    "an exception, returned": lambda bit, x: ValueError(f"at {x}") if bit else x,
    "far behind": lambda bit, x: [x] * 300 + ["end" if bit else "fin", x],
    "a number far behind": lambda bit, x: ["w", *[x] * 300, 100.0 * bit + x],
    "deep": lambda bit, x: [[[{"a": (x, [bit, None])}]]],
}


@pytest.mark.parametrize("kind", some(KINDS, 3))
def test_outputs_of_every_kind(kind):
    """Randomised response of ε = ln 3, told in a way that is different in each draw."""
    slow = any(word in kind for word in ("far", "frame", "series"))
    samples = 600 if slow else 2_000
    result = found(lambda v, rng: KINDS[kind](respond(v, rng), rng.normal()), samples)
    assert 0.4 < result.epsilon <= math.log(3) * 1.2, str(result.event)
    assert not result.blind
    json.dumps(result.to_dict(), default=str)


def test_another_kind_in_one_world():
    for other in (None, "none", [1, 2], {}, {"a": 1}, math.nan, ValueError("no")):
        result = found(lambda v, rng, other=other: other if v else rng.normal(), 400)
        assert result.epsilon > 3, repr(other)
        again = [other, 0.5, other]
        assert result.event.contains(again).tolist() == [True, False, True] or (
            result.event.favours == "without"
        )


def histogram(v, rng):
    """Noisy counts above a threshold: the key of one person alone shows now and then."""
    counts = {"a": 50.0, "b": 30.0, "ann": float(v)}
    noisy = {key: count + rng.laplace() for key, count in counts.items()}
    return {key: count for key, count in noisy.items() if count > (0 if v else 1.2) or key != "ann"}


SPELLINGS = {
    "keys": lambda shown: tuple(shown),
    "mapping": lambda shown: shown,
    "pairs": lambda shown: list(shown.items()),
    "tuples": lambda shown: tuple((key, round(count), count) for key, count in shown.items()),
    "flat": lambda shown: tuple(part for pair in shown.items() for part in pair),
    "JSON": json.dumps,
    "JSON of pairs": lambda shown: json.dumps(list(shown.items())),
}


@pytest.mark.parametrize("spellings", some([list(SPELLINGS), ["keys", "pairs", "JSON"]], 1))
def test_a_histogram_says_the_same_however_it_is_spelled(spellings):
    shown = {}
    for name in spellings:
        spell = SPELLINGS[name]
        shown[name] = found(lambda v, rng, spell=spell: spell(histogram(v, rng)), 1_500).epsilon
    assert shown["keys"] > 1
    for name, epsilon in shown.items():
        assert epsilon > 0.85 * shown["keys"], name


RARE = {
    "a word among numbers": lambda odd, rng: (rng.normal(), "odd" if odd else "even", rng.normal()),
    "a code in a vector": lambda odd, rng: np.array([rng.normal(), 7 if odd else 3]),
    "a code in a tuple": lambda odd, rng: (rng.normal(), 7 if odd else 3, "x"),
    "a key": lambda odd, rng: {"n": rng.normal(), **({"k": 1} if odd else {})},
    "a word in text": lambda odd, rng: f"value {rng.normal():.9f} {'odd' if odd else 'even'}",
}


@pytest.mark.parametrize(
    ("with_", "without", "samples"),
    [(0.02, 0.001, 9_000), pytest.param(0.002, 5e-5, 150_000, marks=pytest.mark.soak)],
)
@pytest.mark.parametrize("kind", some(RARE, 1))
def test_rare_parts_of_mixed_outputs(kind, with_, without, samples):
    """2% with, 0.1% without, inside outputs that are all different; and much rarer ones."""
    shape = RARE[kind]
    result = found(lambda v, rng: shape(rng.random() < (with_ if v else without), rng), samples)
    assert 1.5 < result.epsilon <= math.log(with_ / without), str(result.event)


def null_outputs(kind):
    def draw(_v, rng):
        bit, x = rng.random() < 0.3, rng.standard_cauchy()
        shapes = {
            "mixed": lambda: (x, "a" if bit else "b", int(4 * rng.random())),
            "mapping": lambda: {"n": x, **({"k": x} if bit else {})},
            "text": lambda: f"it is {x:.5f} {'yes' if bit else 'no'}",
            "raising": lambda: 1 / (0 if bit else x),
        }
        return shapes[kind]()

    return lambda run: wi.audit.two_worlds(draw, 1, 0, 300, seed=run).epsilon


NULLS = ["mixed", "mapping", "text", "raising"]


@pytest.mark.parametrize("kind", some(NULLS, 1))
@cases(10, 1000)
def test_forms_raise_no_alarm(kind, count):
    assert alarms(null_outputs(kind), 0.0, count) <= most_alarms(count)


def test_exceptions_are_outputs():
    def sometimes(v, rng):
        if rng.random() < (0.3 if v else 0.03):
            raise ValueError("no")
        return rng.normal()

    def in_a_batch(v, size, rng):
        if (rng.random(size) < (0.3 if v else 0.03)).any():
            raise ValueError("no")
        return rng.normal(size=size)

    for mechanism in (sometimes, in_a_batch):
        result = found(mechanism, confidence=0.999)
        assert 1.4 < result.epsilon <= math.log(10), str(result.event)
        assert "draws raised ValueError, which counts as an output" in result.notes[0]

    def only_with(v, size, rng):
        if v:
            raise KeyError("ann")
        return rng.normal(size=size)

    assert found(only_with, 400).epsilon > 3
    assert found(only_with, 400, delta=0.01).epsilon > 3


class LateFailure:
    """Raises for the first time when it is counted."""

    def __init__(self):
        self.calls = 0

    def __call__(self, v, size, rng):
        self.calls += 1
        if self.calls > 4:
            raise ValueError("late")
        return rng.normal(size=size)


@pytest.mark.parametrize(
    ("mechanism", "raised"),
    [
        (lambda v, rng: v.missing, "AttributeError"),
        (lambda v, rng: v + "x", "TypeError"),
        (lambda v, rng: undefined, "NameError"),  # type: ignore[name-defined]  # noqa: F821
        (lambda v, rng: histogram(v), "TypeError"),  # type: ignore[call-arg]
        (lambda v, rng: [].pop(), "IndexError"),
        (LateFailure(), "ValueError"),
    ],
)
def test_broken_programs_are_no_outputs(mechanism, raised):
    with pytest.raises(InvalidInput, check=about("mechanism", raised)):
        found(mechanism, 400)


def test_an_exit_is_a_failing_environment():
    with pytest.raises(MechanismFailed, match=r"sys.exit\(5\)"):
        found(lambda v, rng: sys.exit(5), 400)
    with pytest.raises(MechanismFailed):
        wi.audit.search(lambda v, size, rng: sys.exit(0), [(1, 0), (2, 0)], 1_000)


@pytest.mark.parametrize(
    "make",
    [
        lambda v, rng: str(uuid.UUID(bytes=rng.bytes(16))),
        lambda v, rng: uuid.UUID(bytes=rng.bytes(16)),
        lambda v, rng: {"id": rng.bytes(8).hex()},
    ],
)
def test_outputs_that_have_nothing_in_common(make):
    result = found(make, 2_000)
    assert result.blind and result.epsilon == 0 and result.to_dict()["blind"] is True
    assert any("nothing could be learnt" in note for note in result.notes)


def test_random_bytes_are_compared_one_by_one():
    result = found(lambda v, rng: rng.bytes(8), 2_000)
    assert not result.blind and result.epsilon == 0


def test_a_parameter_with_a_default_is_the_mechanisms_own():
    def laplace(x, epsilon=1.0):
        assert epsilon == 1.0
        return round(x + np.random.laplace(0, 1 / epsilon), 3)

    def sized(x, epsilon=1.0, *, size=None, rng=None):
        assert epsilon == 1.0
        return (x + rng.laplace(0, 1 / epsilon, size)).round(3)

    def with_rng(x, epsilon=1.0, rng=None):
        return round(x + rng.laplace(0, 1 / epsilon), 3)

    def only_size(x, size):
        return (x + np.random.laplace(0, 1, size)).round(3)

    for mechanism in (laplace, sized, with_rng, only_size):
        assert 0.6 < found(mechanism, 6_000).epsilon <= 1.2, mechanism.__name__
    assert 0.6 < found(wi.audit.one_draw(with_rng), 6_000).epsilon <= 1.2
    with pytest.raises(InvalidInput, check=about("mechanism")):
        found(lambda x, *, other: 0)


def test_few_samples_of_vectors():
    def draw(v, size, rng):
        return v + rng.normal(size=(size, 3))

    assert found(draw, 100).epsilon >= 0
    pairs = [(value, 0) for value in range(1, 4)]
    assert wi.audit.search(draw, pairs, 1_000, seed=1).epsilon >= 0
    assert found(lambda v, size, rng: np.zeros((size, 0)), 100).epsilon == 0


def test_frozen_outputs():
    assert freeze_output([1, (2.0, np.float32(3))]) == (1, (2.0, 3.0))
    assert freeze_output(np.array([[1, 2], [3, 4]])) == ((1, 2), (3, 4))
    assert freeze_output(math.nan) is PLAIN_NAN and freeze_output({"a": math.nan}) == Record(
        (("a", PLAIN_NAN),)
    )
    assert freeze_output({"b": 1, "a": [2]}) == freeze_output({"a": (2,), "b": 1.0})
    assert freeze_output(ValueError("a\nb")) == Raised("ValueError", "a b")
    assert freeze_output(np.datetime64("2020-01-01")) == freeze_output(np.datetime64("2020-01-01"))
    loop = []
    loop.append(loop)
    with pytest.raises(InvalidInput, check=about(OUTPUT_FIELD)):
        freeze_output(loop)


def test_descriptions():
    spellings = [
        describe_output(freeze_output(spell({"ann": 2.5, "bob": 1.5})))
        for spell in SPELLINGS.values()
    ]
    assert all(HasToken("ann") in each.tokens for each in spellings)
    mapping, pairs = (
        describe_output(freeze_output({"n": 1.5})),
        describe_output(freeze_output([("n", 1.5)])),
    )
    assert mapping.numbers == {("n",): 1.5} and pairs.numbers == {("n", 1): 1.5}
    text = describe_output("x is -2.5e3, on 2020-01-02; 7.")
    assert list(text.numbers.values()) == [-2500.0, 7.0] and HasToken("is") in text.tokens
    assert TokenAt((1,), "b") in describe_output(("a", "b")).tokens
    assert describe_output(10**400).numbers == {(): math.inf}


def test_kinds_of_outputs():
    assert (
        read_outputs([1, 2.5, True], 3).kind == NUMBERS
        and read_outputs([(1, 2), (3, 4)], 2).kind == VECTORS
    )
    mixed = join_outputs(
        [read_outputs([1.0, 2.0], 2), read_outputs([(1, 2)], 1), read_outputs(["x"], 1)]
    )
    assert mixed.kind == FORMS and mixed.values.tolist() == [1.0, 2.0, (1, 2), "x"]
    fits, numbers = mixed.matching(NUMBERS, 0)
    assert fits.tolist() == [True, True, False, False] and numbers.values.tolist() == [1, 2]
