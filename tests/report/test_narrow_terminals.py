"""On a narrow terminal nothing is cut: every number of the wide output is there."""

from __future__ import annotations

import re

import pytest

from amounts import some
from whosin.app.example_data import write_hospital

COMMANDS = (
    "plan --posterior 0.6 --prior 0.05..0.5",
    "explain --epsilon 1 --prior 0.1..0.7",
    "notions",
    "demo",
    "release hospital.toml --dry-run",
)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.mark.parametrize("columns", some([60, 40], 1))
@pytest.mark.parametrize("line", COMMANDS)
def test_nothing_is_cut(run, tmp_path, monkeypatch, line, columns):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["whosin"])  # which commands to type begin with
    if line.startswith("release"):
        write_hospital(tmp_path, 50)

    def shown(width: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        code, out, err = run(line)
        assert (code, err) == (0, "")
        return out.splitlines()

    narrow = shown(columns)
    # Theorems and commands are left to the terminal to wrap, so that they can be copied.
    left = re.compile(r"T\d+: |whosin |  +[·●×+] ")
    assert [text for text in narrow if len(text) > columns and not left.match(text)] == []
    assert not any("…" in text for text in narrow)
    if line != "demo":  # which draws anew
        missing = set(NUMBER.findall("\n".join(shown(200)))) - set(
            NUMBER.findall("\n".join(narrow))
        )
        assert missing == set()
