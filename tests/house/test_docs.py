"""Every example in README.md, docs/ and the docstrings runs and prints what it says.

In Markdown: ```pycon blocks are doctests, ```python blocks run, and in ```console blocks a line
`$ whosin …` runs the command, with a variable before it, `$ cat FILE` makes the file that is shown,
`$ sed …` runs as it is, and a last line `...` stands for more output; other commands are for people
and are left alone.
Blocks of one page share their variables and a folder.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from pkgutil import walk_packages

import pytest

import whosin
from whosin.app.cli.main import main
from whosin.audit import sampling

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
BLOCK = re.compile(r"^```(pycon|python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAX_WORDS = 45_000
"""Of all pages below docs/: whoever adds a passage shortens another."""
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def console_steps(text: str) -> list[tuple[str, str]]:
    """(command, expected output), with lines continued by a backslash joined."""
    steps: list[tuple[str, str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        elif steps:
            steps[-1] = steps[-1][0], steps[-1][1] + line + "\n"
    return steps


def squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def run_console(text: str, capsys) -> None:
    for command, expected in console_steps(text):
        words = shlex.split(command, comments=True)
        name, _, value = words[0].partition("=")
        with pytest.MonkeyPatch.context() as patch:
            if value:
                patch.setenv(name, value)
                words = words[1:]
            run_step(command, words, expected, capsys)


def run_step(command: str, words: list[str], expected: str, capsys) -> None:
    if words[0] == "cat":
        Path(words[1]).write_text(expected, encoding="utf-8")
    elif words[0] == "sed":
        subprocess.run(command, shell=True, check=True)
    elif words[0] == "whosin":
        capsys.readouterr()
        if words[-2:-1] == [";"]:
            words = words[:-2]
        main(words[1:])
        streams = capsys.readouterr()
        shown = squeeze(streams.out + streams.err)
        if expected.rstrip().endswith("\n..."):  # only the beginning is quoted
            shown, expected = shown[: len(squeeze(expected)) - 4], expected.rstrip()[:-4]
        assert shown == squeeze(expected), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore:before the debit")  # what a look at the rows found
def test_page(page, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "COLUMNS", "100")
    # Time that this thread works, so that no other process changes what an audit of time sees.
    monkeypatch.setattr(sampling, "clock", time.thread_time_ns)
    scope: dict[str, object] = {}
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        kind, body = match.groups()
        line = text[: match.start()].count("\n") + 2
        if kind == "console":
            run_console(body, capsys)
        elif kind == "python":
            exec(compile("\n" * (line - 1) + body, str(page), "exec"), scope)
        else:
            test = doctest.DocTestParser().get_doctest(body, scope, page.name, str(page), line)
            runner = doctest.DocTestRunner(optionflags=FLAGS)
            problems: list[str] = []
            runner.run(test, out=problems.append, clear_globs=False)
            scope.update(test.globs)
            assert not problems, "".join(problems)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path, monkeypatch) -> None:
    """Its cells run one after the other and check what they say; it is small, without outputs."""
    monkeypatch.chdir(tmp_path)
    notebook, scope = json.loads(path.read_text(encoding="utf-8")), {}
    assert path.stat().st_size < 16_000 and notebook["nbformat"] == 4
    codes = [each for each in notebook["cells"] if each["cell_type"] == "code"]
    assert len(codes) > 3 and not any(each["outputs"] for each in codes)
    for each in codes:
        text = "".join(each["source"])
        exec(compile(text, f"{path.name}: {each['id']}", "exec"), scope)
    assert sum("assert " in "".join(each["source"]) for each in codes) >= len(codes) - 1


def test_the_pages_do_not_grow():
    words = {page: len(page.read_text("utf-8").split()) for page in PAGES}
    assert sum(words[page] for page in PAGES if page.is_relative_to(ROOT / "docs")) <= MAX_WORDS
    assert words[ROOT / "README.md"] <= 660


@pytest.mark.parametrize(
    ("page", "language", "words"),
    [
        ("training.md", "console", "sklearn"),
        ("training.md", "py", "import torch"),
        ("synthesizer.md", "console", "def fit"),
        ("synthesizer.md", "pycon", "synthetic"),
    ],
)
def test_an_audit_takes_fewer_than_15_lines_of_code(page, language, words):
    """The program and the command, without what they print."""
    text = (ROOT / "docs" / "howto" / page).read_text("utf-8")
    lines = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[0].splitlines()
    if language == "pycon":
        lines = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
    if language == "console":
        commands = [at for at, line in enumerate(lines) if line.startswith("$ ")]
        assert lines[0].startswith("$ cat ") and len(commands) == 2
        lines = lines[1 : commands[1] + 1]
    assert any(words in line for line in lines)
    assert 3 < len(list(filter(str.strip, lines))) < 15


def test_docstrings():
    failed, examples = [], 0
    for name in ["whosin", *(each.name for each in walk_packages(whosin.__path__, "whosin."))]:
        module = importlib.import_module(name)
        if not module.__doc__:
            failed.append(name)
        elif ">>> " in inspect.getsource(module):  # to look for examples takes longer than to run
            ran = doctest.testmod(module, optionflags=FLAGS)
            examples += ran.attempted
            failed += [name] * bool(ran.failed)
    assert not failed, "no docstring, or an example that fails"
    assert examples


def test_a_wrong_page_fails(tmp_path, capsys):
    with pytest.raises(AssertionError):
        run_console("$ whosin --version\nwhosin 99\n", capsys)
