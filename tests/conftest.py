"""What several files of tests share: the command in this process, the same draws in every run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

import chance
from command import Result
from whosin.app.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs the command: the words of a line, then words that stay as they are."""

    def call(line: object = "", *more: object) -> Result:
        capsys.readouterr()
        code = main([*str(line).split(), *map(str, more)])
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


def pytest_configure(config: pytest.Config) -> None:
    soak = config.option.markexpr == "soak"
    settings.load_profile("fresh" if soak or chance.FRESH else "same")


def _begin(item: pytest.Item, name: str) -> None:
    if chance.FRESH or item.get_closest_marker("soak"):
        chance.fresh()
    else:
        chance.start(name)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Iterator[None]:
    """A fixture draws the same whichever test asks for it first."""
    owner = request.node.nodeid if fixturedef.scope == "function" else fixturedef.baseid
    _begin(request._pyfuncitem, f"{owner} {fixturedef.argname} {request.param_index}")
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    _begin(item, item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    finally:
        chance.fresh()
