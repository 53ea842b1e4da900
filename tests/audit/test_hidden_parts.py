"""What an output holds without showing it: signs of zeros, parity, masks, payloads, bytes."""

from __future__ import annotations

import json
import math
import struct

import numpy as np
import pytest
from scipy import sparse

import whosin as wi
from amounts import cases, some
from attacked import alarms, most_alarms
from whosin.audit.snapshots import NEGATIVE_ZERO, PLAIN_NAN, freeze_output
from whosin.errors import InvalidInput

PAYLOAD = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0005))[0]


def signed_zero(value, size, rng):
    return np.where((rng.random(size) < 0.5) & bool(value), -0.0, 0.0)


def signed_zero_among_floats(value, size, rng):
    noise = np.round(rng.laplace(0, 1, size), 6)
    return np.where(rng.random(size) < 0.1, -0.0 if value else 0.0, noise)


def signed_zero_in_a_field(value, rng):
    return {"x": -0.0 if value else 0.0, "y": round(rng.laplace(), 2)}


def signed_zero_in_a_row(value, size, rng):
    return np.column_stack([np.full(size, -0.0 if value else 0.0), rng.normal(size=size).round(3)])


def odd(value, size, rng):
    return 2 * rng.integers(-(10**9), 10**9, size) + value


def odd_large(value, size, rng):
    return 2 * rng.integers(2**58, 2**60, size) + value


def odd_floats(value, size, rng):
    return 2.0 * rng.integers(-(10**9), 10**9, size) + value


def odd_in_a_row(value, size, rng):
    rows = rng.integers(-(10**9), 10**9, (size, 3))
    rows[:, 1] = 2 * rows[:, 1] + value
    return rows


def odd_beyond_floats(value, rng):
    return {"n": 2 * int(rng.integers(2**60, 2**62)) ** 3 + value}


def masked(value, size, rng):
    """The values are alike; which are masked is not."""
    return np.ma.array(rng.normal(size=size).round(2), mask=rng.random(size) < 0.1 + 0.4 * value)


def masked_rows(value, size, rng):
    mask = np.zeros((size, 3), dtype=bool)
    mask[:, 1] = rng.random(size) < 0.1 + 0.4 * value
    return np.ma.array(rng.normal(size=(size, 3)).round(2), mask=mask)


def under_a_mask(value, rng):
    """Noise where it is seen, and the truth under the mask."""
    return np.ma.array([rng.normal(), 40 + value], mask=[False, True])


def payload(value, size, rng):
    return np.where(rng.random(size) < 0.3, PAYLOAD if value else math.nan, 1.0)


def payload_in_a_field(value, rng):
    return {"x": PAYLOAD if value else math.nan, "y": round(rng.laplace(), 2)}


def packed(value, rng):
    """Bytes that never come again, of which one tells."""
    return rng.bytes(9) + bytes([int(rng.integers(128)) + 128 * (rng.random() < 0.2 + 0.6 * value)])


def packed_text(value, rng):
    return f"{rng.random():.9f} rows {17 + value}".encode()


def stored_zero(value, rng):
    """The same matrix; with the person, a zero is stored."""
    entries = [round(rng.normal(), 2), 0.0][: 1 + value]
    return sparse.csr_matrix((entries, ([0, 0][: 1 + value], [0, 1][: 1 + value])), shape=(2, 3))


def sparse_rows(value, size, rng):
    table = rng.poisson(0.5, (size, 4))
    table[:, 2] += rng.random(size) < 0.8 * value
    return sparse.csr_matrix(table)


HIDDEN = {
    "the sign of 0": (signed_zero, 400),
    "the sign of 0 among floats": (signed_zero_among_floats, 2_000),
    "the sign of 0 in a field": (signed_zero_in_a_field, 400),
    "the sign of 0 in a row": (signed_zero_in_a_row, 400),
    "parity": (odd, 800),
    "parity of large numbers": (odd_large, 800),
    "parity of floats": (odd_floats, 800),
    "parity in a row": (odd_in_a_row, 800),
    "parity beyond floats": (odd_beyond_floats, 800),
    "a mask": (masked, 1_000),
    "a mask of rows": (masked_rows, 1_000),
    "values under a mask": (under_a_mask, 400),
    "a payload": (payload, 800),
    "a payload in a field": (payload_in_a_field, 400),
    "bytes": (packed, 2_000),
    "bytes of text": (packed_text, 400),
    "a stored zero": (stored_zero, 400),
    "sparse rows": (sparse_rows, 2_000),
}
FLOAT_BITS = [name for name in HIDDEN if "sign of 0" in name or "payload" in name]


@pytest.mark.parametrize("name", some(HIDDEN, 10))
def test_what_an_output_hides_is_an_event(name):
    mechanism, samples = HIDDEN[name]
    found = wi.audit.two_worlds(mechanism, 1, 0, samples, seed=1)
    assert found.epsilon > 0.7 and not found.blind, f"{found.epsilon}: {found.event}"
    # The witness can be re-run on draws of one's own.
    rng, many = np.random.default_rng(5), name not in SINGLE
    share = [
        found.event.contains(
            mechanism(value, 300, rng) if many else [mechanism(value, rng) for _ in range(300)]
        ).mean()
        for value in (1, 0)
    ]
    assert (share[0] > share[1]) == (found.event.favours == "with")


SINGLE = {name for name, (mechanism, _) in HIDDEN.items() if mechanism.__code__.co_argcount == 2}


@pytest.mark.parametrize("name", some(HIDDEN, 1))
@cases(4, 300)
def test_what_an_output_hides_raises_no_false_alarm(name, count):
    """The same outputs with one input in both worlds, under another name."""
    mechanism, _ = HIDDEN[name]
    one = (lambda _v, rng: mechanism(1, rng)) if name in SINGLE else None
    many = None if one else (lambda _v, size, rng: mechanism(1, size, rng))

    def run(seed):
        return wi.audit.two_worlds(one or many, 1, 0, 160, seed=seed).epsilon

    assert alarms(run, 0.0, count) <= most_alarms(count)


@pytest.mark.parametrize("name", some(FLOAT_BITS, 3))
def test_apart_from_the_bits_of_floats_nothing_is_left(name):
    mechanism, samples = HIDDEN[name]
    found = wi.audit.two_worlds(mechanism, 1, 0, samples, seed=1, float_bits=False)
    assert found.epsilon == 0 and not found.float_bits
    assert found.to_dict()["float_bits"] is False


def test_noise_that_is_added_in_floats_keeps_its_promise_apart_from_their_bits():
    def laplace(value, size, rng):
        return value + rng.laplace(0, 10, size)

    assert wi.audit.two_worlds(laplace, 1.0, 0.0, 20_000, seed=1).epsilon > 3
    assert wi.audit.two_worlds(laplace, 1.0, 0.0, 20_000, seed=1, float_bits=False).epsilon < 0.1
    rng = np.random.default_rng(1)
    drawn = laplace(1.0, 20_000, rng), laplace(0.0, 20_000, rng)
    assert wi.audit.samples(*drawn, seed=1).epsilon > 3
    assert wi.audit.samples(*drawn, seed=1, float_bits=False).epsilon < 0.1
    with pytest.raises(InvalidInput) as refused:
        wi.audit.two_worlds(laplace, 1.0, 0.0, 400, float_bits="no")
    assert refused.value.field == "float_bits"


def test_parity_counts_apart_from_the_bits_of_floats():
    for name in ("parity", "parity of floats"):
        mechanism, samples = HIDDEN[name]
        assert wi.audit.two_worlds(mechanism, 1, 0, samples, seed=1, float_bits=False).epsilon > 2


def test_values_of_their_own():
    assert freeze_output(-0.0) is NEGATIVE_ZERO and freeze_output(-0.0) != freeze_output(0.0) == 0
    assert freeze_output([-0.0]) != freeze_output([0.0]) and freeze_output(np.array([-0.0])) == (
        NEGATIVE_ZERO,
    )
    assert (
        freeze_output(math.nan) is PLAIN_NAN
        and freeze_output(PAYLOAD) != PLAIN_NAN
        and freeze_output(PAYLOAD) == freeze_output(PAYLOAD)
    )
    plain = np.ma.array([1, 2], mask=[False, False])
    assert (
        freeze_output(plain)
        == freeze_output(np.array([1, 2]))
        != freeze_output(np.ma.array([1, 2], mask=[0, 1]))
    )
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array):
        assert freeze_output(kind([[0, 1], [2, 0]])) == freeze_output(
            sparse.csr_matrix([[0, 1], [2, 0]])
        )


def test_sparse_samples():
    rng = np.random.default_rng(1)
    one, two = (rng.poisson(mean, (400, 3)) for mean in (0.5, 2.5))
    found = wi.audit.samples(sparse.coo_matrix(one), sparse.csc_array(two), seed=1)
    assert found.epsilon > 0.7


def test_nan_of_any_payload_is_one_event_too():
    def mechanism(value, size, rng):
        """A NaN whose payload is new in each draw: with the person more often."""
        payloads = (0x7FF8 << 48) + rng.integers(1, 2**48, size)
        nans = payloads.astype(np.uint64).view(np.float64)
        return np.where(rng.random(size) < 0.2 + 0.6 * value, nans, rng.normal(size=size).round(3))

    found = wi.audit.two_worlds(mechanism, 1, 0, 1_000, seed=1)
    assert found.epsilon > 0.7 and "NaN" in str(found.event)


def test_the_command_has_the_switch(run, tmp_path, monkeypatch):
    (tmp_path / "floating.py").write_text(
        "def laplace(value, size, rng):\n    return value + rng.laplace(0, 10, size)\n"
    )
    monkeypatch.chdir(tmp_path)
    options = ["--with", "1.0", "--without", "0.0", "--at-most", "0.5", "--samples", "20000"]
    target = ["audit", "function", "floating.py:laplace", *options, "--seed", "1", "--json"]
    code, out, _err = run(*target)
    assert code == 1 and json.loads(out)["float_bits"] is True
    code, out, _err = run(*target, "--no-float-bits")
    assert code == 0 and json.loads(out)["float_bits"] is False
    code, _out, err = run("audit", "run", "coins.csv", "--no-float-bits")
    assert code == 2 and "--no-float-bits" in err
