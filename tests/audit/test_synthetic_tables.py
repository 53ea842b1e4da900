"""Audits of synthetic tables: copies are caught, honest tables are not, closest records mislead."""

from __future__ import annotations

import math
from collections import Counter, namedtuple

import numpy as np
import pytest

import whosin as wi
from amounts import cases, some
from attacked import most_alarms
from refusals import about
from whosin.audit.synthetic_data import (
    RISK_MEASURES,
    SCORE_KINDS,
    AuditedTables,
    Risk,
    encode_rows,
    measure_inference,
    read_table,
    score_exact_values,
    score_nearest,
    single_out_by_value,
)
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
    caught = wi.audit.synthetic(train, holdout, copied(rng, train), guesses=100, seed=1)
    assert caught.epsilon > 2 and caught.refutes(1) and not caught.closest_passes
    assert all(risk.low > 0.1 for risk in caught.risks)
    names = [risk["name"] for risk in caught.to_dict()["risks"]]
    assert names == ["singling out by one value", "singling out", "linkability", "inference"]
    found = wi.audit.synthetic(train, holdout, honest(rng, 300), guesses=100, seed=1)
    assert found.epsilon < 0.3 and all(risk.low == 0 for risk in found.risks)


def test_closest_records_pass_while_rows_leak():
    rng = np.random.default_rng(2)
    people = rng.normal(size=(1200, 8))
    train, holdout = people[:600], people[600:]
    made = train + 0.75 * rng.normal(size=train.shape)
    found = wi.audit.synthetic(train, holdout, made, guesses=50, seed=1)
    assert found.closest_passes and found.epsilon > 0.3


@pytest.mark.parametrize("kind", some(SCORE_KINDS, 2))
def test_a_synthesizer_is_audited_as_a_training(kind):
    rng = np.random.default_rng(3)
    rows = population(rng, 200)
    terms = {"score": wi.audit.synthetic_score(kind), "shadows": 0, "seed": 1}
    assert wi.audit.training(lambda rows: copied(rng, rows), rows, **terms).epsilon > 0.5
    assert wi.audit.training(lambda rows: honest(rng, len(rows)), rows, **terms).epsilon < 0.5


@cases(6, 1000)
def test_false_alarms_stay_within_the_level(count):
    rng, false = np.random.default_rng(), Counter[str]()
    for turn in range(count):
        train, holdout = population(rng, 60), population(rng, 40)
        if turn % 2:  # ties: words and small numbers
            train, holdout = (np.round(t[:, :4].astype(float), 1) for t in (train, holdout))
            made = np.round(rng.normal(size=(50, 4)), 1)
        else:
            made = honest(rng, 50)
        found = wi.audit.synthetic(train, holdout, made, guesses=20)
        false["membership"] += found.epsilon > 0
        false.update(risk.name for risk in found.risks if risk.low > 0)
    assert all(alarms <= most_alarms(count) for alarms in false.values()), false


def test_distances_are_mean_differences_by_column():
    made = [[0.0, "x"], [10.0, "y"]]
    rows = encode_rows(made, [[5.0, "x"], [0.0, "z"], [10.0, "y"]])
    known = encode_rows(made, made)
    gaps = np.abs(rows[:, None] - known[None]).sum(axis=2)
    assert gaps[0] == pytest.approx([0.25, 0.75]) and gaps[2] == pytest.approx([1.0, 0.0])
    assert score_nearest(made, [[10.0, "y"]])[0] == 0


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
        wi.audit.synthetic(bad, table, table)
    with pytest.raises(InvalidInput, check=about("holdout")):
        wi.audit.synthetic(table, table, table)


def test_columns_are_matched_by_their_names():
    """A synthesizer may give its columns in another order."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    names = list("abcde")
    train, holdout = (pandas.DataFrame(population(rng, 150), columns=names) for _ in "ab")
    made = train[["e", "c", "a", "d", "b"]]
    expected = wi.audit.synthetic(train, holdout, train, seed=1).epsilon
    assert wi.audit.synthetic(train, holdout, made, seed=1).epsilon == expected > 1
    dicts = made.to_dict("records")
    assert wi.audit.synthetic(train, holdout, dicts, seed=1).epsilon == expected
    with pytest.raises(InvalidInput, check=about("columns of synthetic")):
        wi.audit.synthetic(train, holdout, made.rename(columns={"a": "x"}), seed=1)


def patients(rng, count):
    """Ages that many share, and incomes that nobody shares."""
    return {
        "age": rng.integers(18, 90, count).astype(float),
        "sex": rng.choice(["f", "m"], count),
        "income": rng.lognormal(10, 1, count).round(2),
    }


def listed(table):
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def with_incomes(rng, train, made):
    """An honest table, but for one column, which has the members' own values in another order."""
    return made | {"income": rng.permutation(train["income"])}


def test_single_exact_values_are_seen():
    """No row is near a member's, and every member's income is there."""
    rng = np.random.default_rng(4)
    train, holdout, made = (patients(rng, 500) for _ in range(3))
    tables = [listed(each) for each in (train, holdout, with_incomes(rng, train, made))]
    caught = wi.audit.synthetic(*tables, guesses=200, seed=1)
    assert caught.epsilon > 4 and caught.score == "values" and caught.refutes(4)
    assert caught.risks[0].low > 0.95 and caught.risks[0].hits == 200
    honest = wi.audit.synthetic(*tables[:2], listed(made), guesses=200, seed=1)
    assert honest.epsilon < 0.1 and all(risk.low == 0 for risk in honest.risks)


def test_a_synthesizer_that_keeps_single_values_is_seen():
    rng = np.random.default_rng(5)
    rows = listed(patients(rng, 300))

    def fit(rows):
        kept = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return listed(with_incomes(rng, kept, patients(rng, len(rows))))

    assert wi.audit.training(fit, rows, shadows=0, seed=1).epsilon > 3
    near = wi.audit.synthetic_score("density")
    assert wi.audit.training(fit, rows, near, shadows=0, seed=1).epsilon < 0.5


def test_scores_of_values_are_ratios_of_likelihoods():
    made = [["a", 1.0], ["a", 2.0], ["b", 3.0], ["c", 9.0]]
    rows = [["a", 1.0], ["a", 2.5], ["b", 7.0]]
    told = score_exact_values(made, rows)
    # a is in two rows; b is in one, as rare as (2·1 + 1)/(1 + 1) rows, at most 1
    words = {"a": 2 * 4 / 3, "b": 1 * 4 / 3}
    numbers = 1 / (3 + 1) * 4 / 3  # three numbers in one row each, none in two
    counts = {"a": 2, "b": 1}, {1.0: 1, 2.5: 0, 7.0: 0}
    for row, score in zip(rows, told, strict=True):
        word, number = row
        ratio = (1 + counts[0][word] / words[word]) / 2 * (1 + counts[1][number] / numbers) / 2
        assert score == pytest.approx(math.log(ratio))
    order = [2, 0, 1]
    assert score_exact_values(made[::-1], [rows[place] for place in order]) == pytest.approx(
        told[order]
    )


def test_predicates_of_one_column_fit_one_row_of_each():
    made = read_table([[1.0, "x"], [5.0, "y"], [9.0, "y"], [9.0, "z"]], "synthetic")
    train = read_table([[0.0, "x"], [1.0, "q"], [9.5, "q"], [4.0, "y"]], "train")
    other = read_table([[7.0, "q"], [7.0, "q"], [9.0, "y"], [3.0, "y"]], "holdout")
    hits = Counter[tuple[int, int, int]]()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        risk = single_out_by_value(AuditedTables(made, train, other, 10, 0.05, rng))
        hits[risk.hits, risk.control_hits, risk.trials] += 1
    # Rows 0 (= 1, ≤ 1, = x), 1 (= 5) and 3 (= z): in train = 1 and = x fit one row, ≤ 1 two.
    assert set(hits) == {(1, 0, 3), (0, 0, 3)} and hits[1, 0, 3] > hits[0, 0, 3]
    alone = read_table([["x"]] * 4, "synthetic")
    assert single_out_by_value(AuditedTables(alone, alone, alone, 10, 0.05, rng)).trials == 0


def test_sizes_of_tables_are_no_risk():
    """A predicate fits more rows of a larger table."""
    rng = np.random.default_rng(6)
    train, holdout, made = (rng.integers(0, 3000, (size, 3)) for size in (3000, 300, 3000))
    for attack in RISK_MEASURES:
        tables = (read_table(each, "rows") for each in (made, train, holdout))
        assert attack(AuditedTables(*tables, 300, 0.001, rng)).low == 0


def test_inference_is_what_success_on_others_does_not_explain():
    rng = np.random.default_rng(7)
    known, secret = rng.normal(size=(900, 3)), rng.integers(0, 50, 900)

    def table(part, blur):
        told = known[part] + blur * rng.normal(size=(300, 3))
        # the fourth column follows from the others, for anyone
        return read_table(np.column_stack([told, told.sum(axis=1).round(), secret[part]]), "rows")

    train, holdout, other = (table(slice(at, at + 300), 0) for at in (0, 300, 600))
    honest = measure_inference(AuditedTables(other, train, holdout, 300, 0.05, rng))
    assert honest.low == 0
    leaky = measure_inference(AuditedTables(table(slice(300), 0.1), train, holdout, 300, 0.05, rng))
    assert leaky.low > 0.4 and leaky.column == "column 5"
    assert leaky.control_hits < 40 and leaky.trials == 300
    one = read_table(secret[:, None], "rows")
    assert measure_inference(AuditedTables(one, one, one, 300, 0.05, rng)).trials == 0


def swap(rows):
    """A copy, with its columns in another order."""
    if isinstance(rows, tuple):
        return rows[0].assign(label=rows[1])[["label", "b", "a"]]
    if isinstance(rows, list):  # each row in an order of its own
        return [
            dict(list(row.items())[:: 1 if place % 2 else -1]) for place, row in enumerate(rows)
        ]
    if isinstance(rows, np.ndarray):
        return rows[["b", "a", "label"]]
    return rows[["b", "label", "a"]]


FORMS = ["frame", "parts", "mappings", "records", "polars", "unnamed labels"]


@pytest.mark.parametrize("form", some(FORMS, 3))
def test_a_synthesizer_may_order_its_columns(form):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(8)
    made = {
        "a": rng.normal(size=150),
        "b": rng.normal(50, 9, 150),
        "label": rng.choice([3, 4], 150),
    }
    frame = pandas.DataFrame(made)
    rows = {
        "frame": lambda: frame,
        "parts": lambda: (frame[["a", "b"]], frame["label"]),
        "mappings": lambda: frame.to_dict("records"),
        "records": lambda: frame.to_records(index=False),
        "polars": lambda: pytest.importorskip("polars").DataFrame(made),
        "unnamed labels": lambda: (frame[["a", "b"]], frame["label"].to_numpy()),
    }[form]()
    terms = {"shadows": 0, "seed": 1}
    expected = wi.audit.training(lambda rows: rows.copy(), frame, **terms).epsilon
    assert (
        wi.audit.training(swap, rows, **terms).epsilon == pytest.approx(expected) and expected > 3
    )


def test_columns_that_are_missing_or_more_are_refused():
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(np.arange(90.0).reshape(30, 3), columns=list("abc"))
    changes = {
        "'c'": lambda rows: rows[["a", "b"]],
        "'d'": lambda rows: rows.assign(d=1.0),
        "none called 'a', one more called 'x'": lambda rows: rows.rename(columns={"a": "x"}),
        "two columns called 'a'": lambda rows: rows.set_axis(["a", "a", "b"], axis=1),
        "2 columns": lambda rows: rows.to_numpy()[:, :2],
    }
    for got, fit in changes.items():
        with pytest.raises(InvalidInput, match=got) as refused:
            wi.audit.training(fit, rows, shadows=0)
        assert refused.value.field == "columns of the synthetic table"
    with pytest.raises(InvalidInput, check=about("the synthetic table")):
        wi.audit.training(lambda rows: [{"a": 1}, {"b": 1}], [{"a": 1.0, "b": 2.0}] * 30, shadows=0)


def test_named_rows_are_matched_by_name():
    person = namedtuple("person", ["a", "b"])
    rows = [person(1, "x"), person(3, "y")]
    for table in (rows, {"a": [1, 3], "b": ["x", "y"]}):
        read = read_table(table, "rows")
        assert read.names == ("a", "b") and [list(each) for each in read.cells] == [
            [1, 3],
            ["x", "y"],
        ]
    with pytest.raises(InvalidInput, check=about("rows")):
        read_table({"a": [1, 3], "b": ["x"]}, "rows")
