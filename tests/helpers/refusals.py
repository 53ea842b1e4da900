"""What a refusal is about: its field and value, whatever its wording."""

from __future__ import annotations

from collections.abc import Callable

from whosin.errors import WhosinError

ANY = object()


def about(field: str, value: object = ANY) -> Callable[[BaseException], bool]:
    """A check for `pytest.raises`: the error's field, and its value where one is given."""

    def check(error: BaseException) -> bool:
        assert isinstance(error, WhosinError)
        assert error.field == field, error
        assert value is ANY or error.value == value, error
        return True

    return check
