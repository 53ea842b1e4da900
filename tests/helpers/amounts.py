"""How many random cases a test goes through: a share in `make test`, all of them in `make soak`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def cases(few: int, everything: int) -> pytest.MarkDecorator:
    """The test as two, by `count`."""
    full = pytest.param(everything, marks=pytest.mark.soak, id=f"all-{everything}")
    return pytest.mark.parametrize("count", [pytest.param(few, id=str(few)), full])


def some(values: Iterable[Any], few: int, *, several: bool = False) -> list[Any]:
    """`few` of the values of a parameter, spread over the list, in `make test`; the others in
    `make soak`. With `several` each value is a tuple of parameters."""
    listed = list(values)
    chosen = {len(listed) * (2 * n + 1) // (2 * few) for n in range(few)}
    return [
        pytest.param(
            *(value if several else (value,)), marks=() if n in chosen else pytest.mark.soak
        )
        for n, value in enumerate(listed)
    ]
