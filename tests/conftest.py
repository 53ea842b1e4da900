"""What several files of tests share: the command, run in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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
