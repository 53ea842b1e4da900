"""A process with so many files open that `select` takes no further one."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

MANY = 1_100


@contextmanager
def many_files() -> Iterator[None]:
    """In this block new files get numbers above 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MANY
    if hard not in (resource.RLIM_INFINITY, -1) and hard < wanted:
        reason = "this system allows too few open files"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    opened: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(MANY)]
        yield
    finally:
        for each in opened:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
