"""Searches over neighbouring tables, and searches that climb."""

from __future__ import annotations

import numpy as np
import pytest

import attacked
import whosin as wi
from amounts import cases
from attacked import alarms, most_alarms
from refusals import about
from whosin.audit.neighbouring_inputs import shift_pair
from whosin.errors import InvalidInput, UnknownName


def rows_of(table):
    return sorted(map(repr, table))


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_tables_are_neighbours(relation):
    table = [{"age": age, "what": what} for age, what in ((30, "a"), (90, "a"), (31, "b"))]
    pairs = wi.audit.neighbour_tables(table, relation)
    assert pairs
    for pair in pairs:
        one, two = rows_of(pair.with_), rows_of(pair.without)
        moved = [row for row in {*one, *two} for _ in range(abs(one.count(row) - two.count(row)))]
        assert len(moved) <= (2 if relation == "replace" else 1), pair.name
        assert len(one) - len(two) == (0 if relation == "replace" else 1)
        assert "90" not in pair.name


def test_a_person_has_several_rows_in_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": [1, 1, 2, 3], "pay": [5.0, 6.0, 7.0, 900.0]})
    pairs = {pair.name: pair for pair in wi.audit.neighbour_tables(frame, person="who")}
    assert len(pairs["the person of row 0 or not"].without) == 2
    assert list(pairs["row 3 or not"].without["pay"]) == [5.0, 6.0, 7.0]
    with pytest.raises(UnknownName, check=about("person")):
        wi.audit.neighbour_tables(frame, person="nobody")
    for wrong in (3, "text", [1]):
        with pytest.raises(InvalidInput, check=about("table")):
            wi.audit.neighbour_tables(wrong)


def test_the_search_over_tables_finds_who_is_not_clipped():
    """A sum whose noise is for pay up to 100, in a table where somebody earns more."""
    table = np.array([[20.0], [30.0], [25.0], [9000.0], [40.0], [35.0]])

    def total(rows, size, rng):
        return (float(np.sum(rows)) + rng.laplace(0, 100, size)).round(3)

    found = wi.audit.search(total, wi.audit.neighbour_tables(table, people=3), 6_000, seed=1)
    assert "row 3" in found.pattern and found.refutes(1)


def test_moved_pairs_stay_neighbours():
    rng = np.random.default_rng(1)
    for pair in wi.audit.neighbouring_vectors(5, "replace"):
        near = shift_pair(pair, rng)
        assert np.allclose(near.with_ - near.without, pair.with_ - pair.without)
    text = wi.audit.InputPair("words", "a", "b")
    assert shift_pair(text, rng) is text


def test_climbing_leaves_a_poor_start():
    """A threshold at 20 shows nothing of counts near 0."""

    def above(count, size, rng):
        return (float(count) + rng.laplace(0, 1, size) > 20).astype(int)

    stay = wi.audit.search(above, [(1.0, 0.0)], 20_000, seed=1)
    found = wi.audit.search(above, [(1.0, 0.0)], 20_000, seed=1, climb=6)
    assert stay.epsilon == 0 and found.epsilon > 0.5 and found.pattern.endswith("moved")
    assert abs(found.with_ - found.without) == 1


@cases(3, 1000)
def test_climbing_raises_no_false_alarm(count):
    response = attacked.response(0.5)

    def draw(value, size, rng):
        return response(int(value % 2 == 1), size, rng)

    def audit(run):
        return wi.audit.search(draw, [(1.0, 0.0)], 1_200, seed=run, climb=2).epsilon

    assert alarms(audit, 0.5, count) <= most_alarms(count)
