"""Small nets: leaks in hidden directions, where boxes and sums of columns see little."""

from __future__ import annotations

import math

import numpy as np
import pytest

import whosin as wi
from amounts import some
from whosin.audit import classifiers
from whosin.audit.classifiers import HalfTables, OutputColumns, fit_net, net_pays, score_rows
from whosin.audit.sampling import read_outputs

WIDTH = 24
TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(WIDTH, WIDTH)))[0]


def ring(value, size, rng):
    """Two hidden directions of 24: half of the time a narrow ring, wider for one input."""
    rows = rng.normal(size=(size, WIDTH))
    radius = np.where(rng.random(size) < 0.5, 1.3, 1.0 if value else 1.6)
    radius += 0.15 * rng.normal(size=size)
    rows[:, :2] *= (radius / np.hypot(rows[:, 0], rows[:, 1]))[:, None]
    return rows @ TURN


def product(value, size, rng):
    """The sign of a product of two hidden directions, right in three draws of four."""
    rows = rng.normal(size=(size, WIDTH))
    sign = np.where(rng.random(size) < 0.75, 1, -1) * (1 if value else -1)
    rows[:, 1] = sign * np.sign(rows[:, 0]) * np.abs(rows[:, 1])
    return rows @ TURN


@pytest.mark.parametrize(
    ("leak", "least", "most"),
    some([(ring, 2.0, math.inf), (product, 0.9, math.log(3))], 1, several=True),
)
def test_a_net_finds_hidden_directions(leak, least, most):
    audit = wi.audit.two_worlds(leak, 1, 0, 16_000, seed=1)
    assert least < audit.epsilon <= most, str(audit.event)
    assert "small net's score of the output" in str(audit.event)
    # The event can be counted again.
    rng = np.random.default_rng(2)
    shares = [audit.event.contains(leak(value, 20_000, rng)).mean() for value in (1, 0)]
    assert abs(math.log(shares[0] / shares[1])) > 0.9 * audit.epsilon


@pytest.mark.parametrize(("leak", "most"), some([(ring, 0.4), (product, 0.7)], 1, several=True))
def test_the_other_classifiers_miss_them(leak, most, monkeypatch):
    monkeypatch.setattr(classifiers, "net_pays", lambda *_: False)
    assert wi.audit.two_worlds(leak, 1, 0, 16_000, seed=1).epsilon < most


def _halves(draw, size):
    rng = np.random.default_rng(3)
    worlds = [read_outputs(draw(value, 2 * size, rng), 2 * size) for value in (1, 0)]
    return HalfTables.of(*worlds, OutputColumns.of(*worlds)).split((size, size))


def test_a_net_is_learnt_only_where_it_tells_more_than_the_others():
    hidden, alone = _halves(product, 2000), _halves(lambda _v, n, r: r.normal(size=(n, 3)), 2000)
    nothing = np.zeros(2000), np.zeros(2000)
    everything = np.ones(2000), np.zeros(2000)
    assert net_pays(*hidden, [nothing])
    assert not net_pays(*hidden, [nothing, everything])
    assert not net_pays(*alone, [nothing])
    few = _halves(product, classifiers.MIN_NET_DRAWS - 1)
    assert not net_pays(*few, [nothing])


AWKWARD = {
    "heavy tails": lambda rng: rng.standard_cauchy(2000) ** 9,
    "infinite": lambda rng: np.where(rng.random(2000) < 0.1, math.inf, rng.normal(size=2000)),
    "constant": lambda rng: np.full(2000, 7.0),
    "all infinite": lambda rng: np.full(2000, -math.inf),
    "rare": lambda rng: (rng.random(2000) < 0.001).astype(float),
    "huge": lambda rng: rng.normal(size=2000) * 1e300,
    "tiny": lambda rng: rng.normal(size=2000) * 5e-324,
}


@pytest.mark.parametrize("kind", some(AWKWARD, 3))
@pytest.mark.filterwarnings("error")
def test_awkward_numbers_do_not_spoil_the_others(kind):
    """Beside the awkward column there are two whose product tells the input."""

    def draw(value, size, rng):
        rows = np.column_stack([AWKWARD[kind](rng)[:size], rng.normal(size=(size, 2))])
        rows[:, 2] = np.abs(rows[:, 2]) * np.sign(rows[:, 1]) * (1 if value else -1)
        return rows

    first, second = _halves(draw, 1000)
    net = fit_net(first, 4000)
    scores = [score_rows(net, part[:, : first.columns.count]) for part in second.matrices]
    assert np.isfinite(scores).all()
    assert ((scores[0] > 0).mean() + (scores[1] < 0).mean()) / 2 > 0.9
    again = score_rows(fit_net(first, 4000), second.matrices[0][:, : first.columns.count])
    assert (again == scores[0]).all()
