"""How many random cases a test goes through: a share in `make test`, all of them in `make soak`."""

from __future__ import annotations

import pytest


def cases(few: int, everything: int) -> pytest.MarkDecorator:
    """The test as two, by `count`."""
    full = pytest.param(everything, marks=pytest.mark.soak, id=f"all-{everything}")
    return pytest.mark.parametrize("count", [pytest.param(few, id=str(few)), full])
