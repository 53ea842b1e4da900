"""The guides for people who train models: an audit takes fewer than 15 lines of code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "howto"
MOST = 14


def code(page: str, language: str, place: int) -> list[str]:
    """The lines that a reader writes: the program and the command, without what they print."""
    text = (GUIDES / page).read_text("utf-8")
    lines = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[place].splitlines()
    if language == "pycon":
        lines = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
    if language == "console":
        commands = [at for at, line in enumerate(lines) if line.startswith("$ ")]
        assert lines[0].startswith("$ cat ") and len(commands) == 2
        lines = lines[1 : commands[1] + 1]
    return [line for line in lines if line.strip()]


@pytest.mark.parametrize(
    ("page", "language", "place", "words"),
    [
        ("training.md", "console", 0, "sklearn"),
        ("training.md", "py", 0, "import torch"),
        ("synthesizer.md", "console", 0, "def fit"),
        ("synthesizer.md", "pycon", 0, "synthetic"),
    ],
)
def test_an_example_takes_fewer_than_15_lines(page, language, place, words):
    lines = code(page, language, place)
    assert any(words in line for line in lines)
    assert 3 < len(lines) <= MOST
