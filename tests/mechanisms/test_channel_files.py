"""Channels written to files and read back, drawn from, and certified where kinds of entries mix."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import whosin as wi
from refusals import refused
from whosin.errors import Unsupported
from whosin.mechanisms.entries import Balls, Exponents, Floats, Rationals


def entries(channel):
    return [[Fraction(str(entry)) for entry in row] for row in channel.rationals]


@pytest.mark.parametrize(
    "channel",
    [
        wi.Channel(wi.Subsets(["ann", "bob"]), [["1/3", "2/3"]] * 4, ["yes", "no"]),
        wi.Channel(wi.Subsets(1), [[1 / 3, 2 / 3], [0.1 + 0.2, 0.7]], [(0, "a"), 1.5]),
        wi.Channel(wi.Records(1, 3), np.eye(3, dtype=int)),
        wi.mechanisms.KMax(2).channel(wi.Subsets(3)),
    ],
)
def test_a_channel_file_holds_the_channel(tmp_path, channel):
    channel.save(tmp_path / "channel.json")
    again = wi.Channel.load(tmp_path / "channel.json")
    assert (again.space, again.outputs) == (channel.space, channel.outputs)
    assert entries(again) == entries(channel.on_worlds())
    assert (again.exact is None) == (channel.exact is None)


def test_what_no_file_holds(tmp_path):
    path = tmp_path / "channel.json"
    with refused("mechanism", kind=Unsupported):
        wi.mechanisms.Laplace(wi.statistics.Count(), 1).channel(wi.Subsets(2)).save(path)
    odd = wi.Channel(wi.Subsets(1), [[1], [1]], [frozenset("a")])
    with refused("outputs"):
        odd.save(path)
    assert not path.exists()


def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path):
    path = tmp_path / "mine.json"
    space = {"kind": "subsets", "entities": ["ann"]}
    data = {"space": space, "probabilities": [["1/2", "1/2"], ["1/0", "1/2"]]}
    path.write_text(json.dumps(data), encoding="utf-8")
    with refused("probability in row 1, column 0") as caught:
        wi.Channel.load(path)
    assert caught.value.place == str(path)


def test_a_sampler_draws_the_rows():
    """Counts of 30,000 draws within seven standard deviations; impossible outputs never."""
    channel = wi.Channel(
        wi.Records(2, 2), [["1/2", "1/4", 0, "1/4"]] * 3 + [[0, 0, 1, 0]], list("abcd")
    )
    draw, rng = channel.sampler(), np.random.default_rng(5)
    names, counts = np.unique(draw((0, 1), 30_000, rng), return_counts=True)
    assert list(names) == ["a", "b", "d"]
    for count, p in zip(counts, (0.5, 0.25, 0.25), strict=True):
        assert abs(count - 30_000 * p) < 7 * math.sqrt(30_000 * p * (1 - p))
    assert set(draw([1, 1], 100, rng)) == {"c"}
    assert set(channel.sampler([0, 1, 2, 3])((1, 1), 100, rng)) == {2}
    with refused("world", "(0, 2)"):
        draw((0, 2), 1, rng)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3)])
def test_a_joint_of_noise_and_a_table_is_certified(scale):
    """A table with zeros, rational noise and e^x: each level is at least the truth, by a unit."""
    table = wi.Channel(wi.Subsets(2), [["1/3", "2/3", 0]] * 3 + [["1/2", "1/2", 0]])
    laplace = wi.mechanisms.Laplace(wi.statistics.Count(), scale)
    geometric = wi.mechanisms.Geometric(wi.statistics.Count(), alpha="1/2")
    dp = wi.notions.DifferentialPrivacy()
    for parts, expected in (
        ((table, laplace), math.log(1.5) + float(1 / scale)),
        ((geometric, laplace), math.log(2) + float(1 / scale)),
        ((laplace, laplace), 2 * float(1 / scale)),
        ((geometric, table), math.log(2) + math.log(1.5)),
    ):
        level = dp.measure(wi.mechanisms.Composed(parts), wi.Subsets(2))
        assert expected * (1 - 1e-15) <= level.value <= expected * (1 + 1e-14), parts
    revealing = wi.Channel(wi.Subsets(2), [[1, 0]] * 3 + [[0, 1]])
    joint = wi.mechanisms.Composed((revealing, laplace))
    assert dp.measure(joint, wi.Subsets(2)).value == math.inf


def test_what_the_entries_of_mechanisms_are():
    space, laplace = wi.Subsets(2), wi.mechanisms.Laplace(wi.statistics.Count(), 1)
    kinds = {
        Floats: wi.Channel(space, [[0.5, 0.5]] * 4),
        Rationals: wi.mechanisms.Geometric(wi.statistics.Count(), alpha="1/2"),
        Exponents: wi.mechanisms.Composed((laplace, laplace)),
        Balls: wi.mechanisms.Sampled(laplace, "1/2"),
    }
    for kind, mechanism in kinds.items():
        assert type(mechanism.channel(space).entries) is kind
