"""JSON bodies, bounded before anything is made of them.

Contract: a body is read as every JSON file is (`documents`: depth, digits, distinct keys), has a
bounded number of entries, and holds no half of a letter (a lone surrogate), which no file or
database could hold. Whatever is wrong is one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from whosin import documents
from whosin.errors import InvalidInput

MOST_ENTRIES = 200_000
MOST_KEYS = 5_000


class BoundedRequest(Request):
    """A request whose body keeps within bounds."""

    async def json(self) -> Any:
        """The body."""
        if not hasattr(self, "_json"):
            self._json = read_body(await self.body())
        return self._json


class BoundedRoute(APIRoute):
    """A route that reads bounded bodies."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As FastAPI does, with a bounded request."""
        handler = super().get_route_handler()

        async def bounded(request: Request) -> Response:
            return await handler(BoundedRequest(request.scope, request.receive))

        return bounded


def read_body(body: bytes) -> Any:
    """The value of a body.

    Raises:
        HTTPException: it is none, or too large.
    """
    try:
        text = body.decode("utf-8")
        # Commas inside of texts are counted too: there are at most as many entries.
        if text.count(",") > MOST_ENTRIES:
            raise InvalidInput("the body", f"JSON with at most {MOST_ENTRIES:,} entries", "more")
        result = documents.parse_json(text, "the body")
        if _keys(result) > MOST_KEYS:
            raise InvalidInput("the body", f"JSON with at most {MOST_KEYS:,} keys", "more")
        return result
    except UnicodeError:
        raise HTTPException(
            422, "the body must be JSON in UTF-8; it has letters that are not valid Unicode"
        ) from None
    except InvalidInput as error:
        raise HTTPException(422, str(error)) from None


def _keys(value: Any) -> int:
    """How many keys all objects have."""
    level, count = [value], 0
    while level:
        objects = [each for each in level if isinstance(each, dict)]
        count += sum(map(len, objects))
        inner = [part for each in level if isinstance(each, list) for part in each]
        inner += [part for each in objects for part in each.values()]
        level = [part for part in inner if isinstance(part, dict | list)]
    return count
