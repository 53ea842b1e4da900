"""How many threads an audit takes."""

from __future__ import annotations

from typing import Any


def one_thread() -> Any:
    """A context in which linear algebra and trees take one thread, of the libraries that are loaded
    by then: small ones gain little from more, and lose much on a machine that is busy."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
