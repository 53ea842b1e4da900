"""Every ordering by itself, where nothing leaks: false alarms stay within the level.

Both worlds have one distribution, so any bound above 0 is false. The other orderings are taken out,
so that the one under test always chooses the event.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import whosin as wi
from amounts import cases
from attacked import alarms, most_alarms
from whosin.audit import classifiers, event_search
from whosin.audit.bounds import RatioTest
from whosin.audit.distinguishers import ByFrequency
from whosin.audit.sampling import read_outputs

counting = import_module("whosin.audit.bounds")


def floats(size, rng):
    return rng.laplace(0, 10, size)


def heavy(size, rng):
    return rng.standard_cauchy(size) ** 3


def tied(size, rng):
    """Mostly 0, clipped to a few values, and now and then a float of its own."""
    return np.where(
        rng.random(size) < 0.8, 0.0, np.where(rng.random(size) < 0.5, 0.1, rng.random(size))
    )


def steps(size, rng):
    return rng.geometric(0.02, size) * 0.1


def rows(size, rng):
    return np.column_stack([rng.laplace(0, 1, (size, 3)), rng.integers(0, 3, size)])


def mixed(size, rng):
    words = ("flu", "cold", None, "rare")
    return [
        {"n": float(rng.laplace()), "what": words[min(3, rng.geometric(0.6) - 1)]}
        if rng.random() < 0.9
        else f"failed at {rng.random():.6f}"
        for _ in range(size)
    ]


def codes(size, rng):
    """A column that is nearly always the same, one with rare values, and a float."""
    rare = np.minimum(rng.geometric(0.3, size), 12)
    return np.column_stack(
        [rng.random(size) < 0.02, rare, rng.integers(0, 2, size), rng.normal(size=size)]
    )


def built(size, rng):
    """Fields come and go, lists have many lengths, and now and then there is an exception."""
    return [
        {key: [0.5] * int(rng.integers(0, 9)) for key in "abc" if rng.random() < 0.7}
        if rng.random() < 0.95
        else ValueError(f"at {rng.random():.3f}")
        for _ in range(size)
    ]


def wide(size, rng):
    """Heavy tails in a dozen columns that depend on each other."""
    return rng.standard_cauchy((size, 12)) ** 3 * rng.normal(size=(size, 1))


NULLS = {
    "floats": floats,
    "heavy tails": heavy,
    "ties": tied,
    "steps of 0.1": steps,
    "rows": rows,
    "mixed": mixed,
    "codes": codes,
    "built in many ways": built,
    "wide tails": wide,
}
SAME = ("floats", "heavy tails", "ties", "steps of 0.1", "rows", "mixed")
ORDERINGS = {
    "bits": (event_search.try_float_bits, SAME),
    "values": (event_search.try_values, ("floats", "heavy tails", "ties", "steps of 0.1")),
    "parts": (event_search.try_parts, ("rows", "mixed")),
    "tokens": (event_search.try_tokens, ("mixed", "codes", "built in many ways")),
    "classifiers": (event_search.try_classifiers, ("rows", "codes")),
    "nets": (event_search.try_classifiers, ("rows", "codes", "wide tails")),
}
CASES = [  # the last null of each ordering in `make test`
    pytest.param(name, null, marks=() if null == nulls[-1] else pytest.mark.soak)
    for name, (_, nulls) in ORDERINGS.items()
    for null in nulls
]


def alone(strategy):
    """One strategy; a table of whole outputs where it does not apply."""

    def tried(halves):
        yield from list(strategy(halves)) or [halves.cross_learn(ByFrequency.learn)]

    return tried


@pytest.fixture
def only(monkeypatch):
    """Try one kind of ordering alone; decide only whether the bound is above 0."""

    class Above(RatioTest):
        def bound(self):
            return 1e-9 if self.hits and self.rejects(0.0) else 0.0

    def patch(ordering):
        if ordering == "nets":
            monkeypatch.setattr(classifiers, "CLASSIFIER_LEARNERS", ())
            monkeypatch.setattr(classifiers, "net_pays", lambda *_: True)
        monkeypatch.setattr(
            event_search, "DISTINGUISHER_STRATEGIES", [alone(ORDERINGS[ordering][0])]
        )
        monkeypatch.setattr(counting, "RatioTest", Above)

    return patch


def audit(null, samples=160):
    return lambda run: (
        wi.audit.two_worlds(
            lambda _value, size, rng: NULLS[null](size, rng), 1, 0, samples, seed=run
        ).epsilon
    )


@pytest.mark.parametrize(("ordering", "null"), CASES)
@cases(5, 1000)
def test_an_ordering_raises_no_false_alarm(ordering, null, count, only):
    only(ordering)
    assert alarms(audit(null, 160 if count < 100 else 400), 0.0, count) <= most_alarms(count)


def test_a_net_by_itself_is_what_the_null_runs_try(only):
    only("nets")
    audit = wi.audit.two_worlds(lambda _value, size, rng: wide(size, rng), 1, 0, 160, seed=1)
    assert "small net" in str(audit.event)


@pytest.mark.parametrize("ordering", ["bits"])
def test_events_counted_where_they_were_chosen_are_no_audit(ordering):
    """The same test fails without fresh samples."""
    strategy, nulls = ORDERINGS[ordering]

    def careless(run):
        rng = np.random.default_rng(run)
        pairs = [
            tuple(read_outputs(NULLS[nulls[0]](200, rng), 200) for _ in range(2)) for _ in range(2)
        ]
        halves = event_search.SampleHalves.of(*pairs)
        ordering = next(iter(strategy(halves))).ordering
        hits = [int((ordering.score(each) > 0).sum()) for each in halves.both]
        return float(RatioTest(hits[0], 400, hits[1], 400, 0.05).suggests(0.0))

    assert alarms(careless, 0.0, 20) > most_alarms(20)
