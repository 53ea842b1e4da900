"""`Absent` before noise."""

from __future__ import annotations

import release_oracle as oracle
from whosin.release.queries import Absent


def test_absent_counts_entities():
    columns = {"who": ["a", "a", "b", "c"], "x": [1, None, None, 3]}
    (people,) = oracle.exact(Absent(column="x"), oracle.table(columns, {}))
    assert list(people) == [2]
