"""Requests made from the description of the routes, right ones and wrong ones, route by route.

schemathesis' own way to make tests makes all requests of its coverage, and the description, while
tests are collected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

from whosin.app.web.access import Settings
from whosin.app.web.server import make_app


@cache
def description() -> dict[str, Any]:
    """The routes as the server describes them."""
    described: dict[str, Any] = make_app(Settings(Path(), "x.db", Path("x.json"))).openapi()
    return described


@cache
def _schema() -> Any:
    return schemathesis.openapi.from_dict(description())


def send_all(count: int, check: Callable[[Any], None]) -> None:
    """Call `check` with so many requests for each route."""
    for path, methods in description()["paths"].items():
        for method in methods:
            send(f"{method.upper()} {path}", count, check)


def send(route: str, count: int, check: Callable[[Any], None]) -> None:
    """Call `check` with requests for a route."""
    method, path = route.split()
    operation = _schema()[path][method]
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    cases = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))

    @settings(max_examples=count, suppress_health_check=list(HealthCheck))
    @given(case=cases)
    def tried(case: Any) -> None:
        check(case)

    tried()
