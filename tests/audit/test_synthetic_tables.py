"""Audits of synthetic tables: copies are caught, honest tables are not, closest records mislead."""

from __future__ import annotations

import numpy as np
import pytest

import whosin as wi
from amounts import cases
from attacked import most_alarms
from whosin.audit.synthetic.encoding import Encoding
from whosin.audit.synthetic.guessing import Risk
from whosin.audit.synthetic.membership import SCORES, nearest
from whosin.errors import InvalidInput


def population(rng, count):
    """Numbers and words."""
    x = rng.normal(size=(count, 4))
    words = np.array(["a", "b", "c"])[rng.integers(0, 3, count)]
    return np.column_stack([x.astype(object), words.astype(object)])


def honest(rng, count):
    """A table that was made without the rows."""
    return population(rng, count)


def copied(rng, train):
    return train[rng.integers(len(train), size=len(train))]


def blurred(rng, train, size):
    made = train.copy()
    made[:, :4] = train[:, :4].astype(float) + size * rng.normal(size=(len(train), 4))
    return made


def test_copies_are_caught_and_others_are_not():
    rng = np.random.default_rng(1)
    train, holdout = population(rng, 300), population(rng, 300)
    caught = wi.audit.synthetic_table(train, holdout, copied(rng, train), guesses=100, seed=1)
    assert caught.epsilon > 2 and caught.refutes(1) and not caught.closest_passes
    assert all(risk.low > 0.1 for risk in caught.risks)
    assert [risk["name"] for risk in caught.to_dict()["risks"]] == ["singling out", "linkability"]
    found = wi.audit.synthetic_table(train, holdout, honest(rng, 300), guesses=100, seed=1)
    assert found.epsilon < 0.3 and all(risk.low == 0 for risk in found.risks)


def test_closest_records_pass_while_rows_leak():
    rng = np.random.default_rng(2)
    people = rng.normal(size=(1200, 8))
    train, holdout = people[:600], people[600:]
    made = train + 0.75 * rng.normal(size=train.shape)
    found = wi.audit.synthetic_table(train, holdout, made, guesses=50, seed=1)
    assert found.closest_passes and found.epsilon > 0.3


@pytest.mark.parametrize("kind", list(SCORES))
def test_a_synthesizer_is_audited_as_a_training(kind):
    rng = np.random.default_rng(3)
    rows = population(rng, 200)
    terms = {"score": wi.audit.from_synthetic(kind), "shadows": 0, "seed": 1}
    assert wi.audit.model(lambda rows: copied(rng, rows), rows, **terms).epsilon > 0.5
    assert wi.audit.model(lambda rows: honest(rng, len(rows)), rows, **terms).epsilon < 0.5
    if kind == "density":  # the score of a table, where none is given
        assert wi.audit.model(lambda rows: copied(rng, rows), rows, shadows=0, seed=1).epsilon > 0.5


@cases(10, 1000)
def test_false_alarms_stay_within_the_level(count):
    rng, false = np.random.default_rng(), 0
    for turn in range(count):
        train, holdout = population(rng, 60), population(rng, 40)
        if turn % 2:  # ties: words and small numbers
            train, holdout = (np.round(t[:, :4].astype(float)) for t in (train, holdout))
            made = np.round(rng.normal(size=(50, 4)))
        else:
            made = honest(rng, 50)
        found = wi.audit.synthetic_table(train, holdout, made, guesses=20)
        false += found.epsilon > 0
    assert false <= most_alarms(count)


def test_distances_are_mean_differences_by_column():
    made = [[0.0, "x"], [10.0, "y"]]
    encode = Encoding.of(made)
    rows = encode([[5.0, "x"], [0.0, "z"], [10.0, "y"]], "rows")
    known = encode(made, "synthetic")
    gaps = np.abs(rows[:, None] - known[None]).sum(axis=2)
    assert gaps[0] == pytest.approx([0.25, 0.75]) and gaps[2] == pytest.approx([1.0, 0.0])
    assert nearest(made, [[10.0, "y"]])[0] == 0


def test_risks_are_bounds():
    risk = Risk.of("x", 50, 10, 100, 0.05)
    assert 0 < risk.low < (0.5 - 0.1) / 0.9
    assert Risk.of("x", 10, 10, 100, 0.05).low == 0


@pytest.mark.parametrize(
    "bad",
    [[], [[]], [[1], [1, 2]], [[1.0, 2.0]] * 30, [[1.0]]],
    ids=["empty", "no columns", "ragged", "wide", "short"],
)
def test_tables_that_do_not_fit_are_refused(bad):
    table = [[1.0], [2.0]] * 15
    with pytest.raises(InvalidInput, match="train"):
        wi.audit.synthetic_table(bad, table, table)
    with pytest.raises(InvalidInput, match="holdout must be other people than train"):
        wi.audit.synthetic_table(table, table, table)


def test_columns_are_matched_by_their_names():
    """A synthesizer may give its columns in another order."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    names = list("abcde")
    train, holdout = (pandas.DataFrame(population(rng, 150), columns=names) for _ in "ab")
    made = train[["e", "c", "a", "d", "b"]]
    expected = wi.audit.synthetic_table(train, holdout, train, seed=1).epsilon
    assert wi.audit.synthetic_table(train, holdout, made, seed=1).epsilon == expected > 1
    dicts = made.to_dict("records")
    assert wi.audit.synthetic_table(train, holdout, dicts, seed=1).epsilon == expected
    with pytest.raises(InvalidInput, match="columns of synthetic must be those of train"):
        wi.audit.synthetic_table(train, holdout, made.rename(columns={"a": "x"}), seed=1)
