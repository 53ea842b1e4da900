"""One step of private gradient descent: every planted bug is found and named, and nothing else."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from amounts import cases
from attacked import most_alarms
from refusals import about
from whosin.audit import gradient_step
from whosin.errors import InvalidInput, MechanismFailed

CLIP, NOISE = 2.0, 1.1


def clipped(gradients):
    finite = np.nan_to_num(gradients, nan=0.0, posinf=1e150, neginf=-1e150)
    norms = np.linalg.norm(finite, axis=1, keepdims=True)
    return finite * np.minimum(1.0, CLIP / np.maximum(norms, 1e-300))


def noise(size, deviation=NOISE * CLIP):
    return np.random.default_rng().normal(0, deviation, size)


def right(gradients):
    return clipped(gradients).sum(axis=0) + noise(gradients.shape[1])


def unclipped(gradients):
    return gradients.sum(axis=0) + noise(gradients.shape[1])


def by_coordinate(gradients):
    return np.clip(np.nan_to_num(gradients), -CLIP, CLIP).sum(axis=0) + noise(gradients.shape[1])


def of_the_batch(gradients):
    return clipped(gradients.sum(axis=0, keepdims=True))[0] + noise(gradients.shape[1])


def not_scaled(gradients):
    return clipped(gradients).sum(axis=0) + noise(gradients.shape[1], NOISE)


def none_at_the_end(gradients):
    found = noise(gradients.shape[1])
    found[-3:] = 0.0
    return clipped(gradients).sum(axis=0) + found


def same_everywhere(gradients):
    return clipped(gradients).sum(axis=0) + noise(1)


def seeded(gradients):
    rng = np.random.default_rng(5)
    return clipped(gradients).sum(axis=0) + rng.normal(0, NOISE * CLIP, gradients.shape[1])


def silent(gradients):
    return clipped(gradients).sum(axis=0)


def nan_through(gradients):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    scale = np.minimum(1.0, CLIP / np.maximum(norms, 1e-300))
    return (gradients * scale).sum(axis=0) + noise(gradients.shape[1])


class Drifting:
    """New noise that is almost the noise of the call before."""

    def __init__(self):
        self.last = noise(64)

    def __call__(self, gradients):
        self.last = 0.9 * self.last + noise(64) * math.sqrt(1 - 0.81)
        return clipped(gradients).sum(axis=0) + self.last


@pytest.mark.parametrize(
    ("step", "part", "words"),
    [
        (unclipped, "clipping", "moves the sum by about 2,000, not by 2 at most"),
        (by_coordinate, "clipping", "spread over all moves the sum by"),
        (of_the_batch, "clipping", "their sum is clipped, not each of them"),
        (nan_through, "clipping", "not finite"),
        (not_scaled, "noise", "its standard deviation is about 1.1, not 2.2"),
        (none_at_the_end, "noise", "has a standard deviation of about 0, not 2.2"),
        (same_everywhere, "noise", "neighbouring coordinates is alike"),
        (silent, "noise", "its standard deviation is about 0"),
        (seeded, "seed", "199 of 200 calls had exactly the noise of another"),
        (Drifting(), "seed", "consecutive calls have noise alike"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_finding_names_the_broken_part(step, part, words):
    with np.errstate(all="ignore"):
        found = gradient_step(step, clip=CLIP, noise=NOISE, seed=1)
    assert found.refuted
    assert any(finding.part == part and words in str(finding) for finding in found.findings)
    if part in ("clipping", "seed"):
        assert {finding.part for finding in found.findings} <= {part}


RATE = 0.1


def poisson(count):
    return np.flatnonzero(np.random.default_rng().random(count) < RATE)


def fixed_size(count):
    return np.random.default_rng().choice(count, round(RATE * count), replace=False)


def often(count):
    return np.random.default_rng().random(count) < 0.2


def favourite(count):
    return np.union1d(poisson(count), [3])


def in_turn():
    turn = itertools.count()

    def batch(count):
        size = round(RATE * count) + int(np.random.default_rng().integers(-2, 3))
        start = next(turn) * round(RATE * count)
        return np.arange(start, start + size) % count

    return batch


def same_batch():
    batch = poisson(128)
    return lambda count: batch


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (fixed_size, "batches are dealt out, not sampled"),
        (often, ", not 0.1"),
        (favourite, "example 3 is in 1 of the batches"),
        (in_turn(), "less often than by chance"),
        (same_batch(), "more often than by chance"),
    ],
    ids=["fixed size", "often", "favourite", "in turn", "same batch"],
)
def test_a_batch_that_is_not_sampled_as_claimed_is_named(sample, words):
    found = gradient_step(right, clip=CLIP, noise=NOISE, sample=sample, rate=RATE, seed=1)
    assert {finding.part for finding in found.findings} == {"sampling"}
    assert any(words in str(finding) for finding in found.findings)
    assert "sampling" in found.checked


@cases(4, 1000)
def test_a_step_that_keeps_its_claims_is_not_blamed(count):
    false = 0
    for turn in range(count):
        rate = (1, 0.3)[turn % 2]

        def averaged(gradients, rate=rate):
            there = np.random.default_rng().random(len(gradients)) < rate
            return right(gradients[there]) / 8

        found = gradient_step(
            averaged, clip=CLIP, noise=NOISE, rate=rate, share=8, calls=40, dimension=32
        )
        apart = gradient_step(
            right, clip=CLIP, noise=NOISE, sample=poisson, rate=RATE, calls=40, dimension=32
        )
        false += found.refuted + apart.refuted
    assert false <= most_alarms(2 * count)


def test_the_step_as_a_whole_is_bounded():
    found = gradient_step(right, clip=CLIP, noise=0.4 / 2, seed=1)  # claims less noise than it has
    assert not found.refuted and 0 < found.run.mu < 1 / NOISE
    assert found.to_dict()["checked"] == ["clipping", "noise", "seed", "the whole step"]


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"step": lambda gradients: np.ones(3)}, "step", 3),
        ({"step": 3}, "step", "int"),
        ({"clip": 0}, "clip", 0),
        ({"noise": -1}, "noise", -1),
        ({"rate": 2}, "rate", 2),
        ({"examples": 100}, "dimension", 64),
        ({"sample": lambda count: [count + 5]}, "sample", None),
    ],
)
def test_bad_input_is_one_sentence(change, field, value):
    given = {"step": right, "clip": CLIP, "noise": NOISE, "rate": 0.5} | change
    with pytest.raises(InvalidInput, check=about(field, value)):
        gradient_step(given.pop("step"), **given)


def test_a_step_that_fails_is_one_sentence():
    def failing(gradients):
        raise ValueError("no luck")

    with pytest.raises(MechanismFailed, match="the step failed with ValueError: no luck"):
        gradient_step(failing, clip=1, noise=1)
