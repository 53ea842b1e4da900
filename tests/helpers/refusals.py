"""Refusals by their data: which field, which value, which hint. Wording has snapshots elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from whosin.errors import InvalidInput, WhosinError

ANY_VALUE: Any = object()


@contextmanager
def refused(
    field: str,
    value: object = ANY_VALUE,
    *,
    hint: bool | None = None,
    kind: type[WhosinError] = InvalidInput,
) -> Iterator[pytest.ExceptionInfo[WhosinError]]:
    """Expect an error about this field.

    Args:
        value: what came, if that matters.
        hint: whether the error says what to do, if that matters.
        kind: the class of the error.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.field == field, f"the error is about {error.field!r}: {error}"
    if value is not ANY_VALUE:
        assert error.value == value
    if hint is not None:
        assert bool(error.hint) == hint
    assert "\n" not in str(error)


def about(field: str, value: object = ANY_VALUE) -> Callable[[BaseException], bool]:
    """A check for `pytest.raises`: the error's field, and its value where one is given."""

    def check(error: BaseException) -> bool:
        assert isinstance(error, WhosinError)
        assert error.field == field, error
        assert value is ANY_VALUE or error.value == value, error
        return True

    return check
