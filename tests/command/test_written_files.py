"""Every way of writing a file: through no link, over no pipe or folder, and private where it is."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import whosin as wi
from command import Result
from whosin.app.example_data import write_hospital, write_town
from whosin.errors import InvalidInput
from whosin.mechanisms import Channel
from whosin.plain_files import create_file, link_new, open_plain, replace_file, write_file

CHANNEL = Channel(wi.Subsets(["a"]), [[0.25, 0.75], [0.75, 0.25]], outputs=[0, 1])
PLAN = wi.calibrate(wi.Epsilon(1))
Run = Callable[..., Result]
STUDY_RELEASE = (
    "gwas release PLACE/study --ledger PLACE/g.ledger --request r --top 1 --gamma 2 --prior 0.5 "
    "--relation label-swap --save"
)
STUDY = "--cases 20 --controls 20 --snps 30 --causal 2"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hospital, a ledger with an entry, and a study."""
    from whosin.app.cli.main import main

    folder = tmp_path_factory.mktemp("written")
    write_hospital(folder, 200)
    with wi.Ledger(folder / "books.db") as ledger:
        ledger.register("d", PLAN)
    assert main(["gwas", "simulate", str(folder / "study"), *STUDY.split()]) == 0
    return folder


def _release(option: str, name: str) -> Callable[[Path, Path, Run], int]:
    def write(place: Path, folder: Path, run: Run) -> int:
        ledger = folder / "own-ledger.db"
        code: int = run(
            "release", place / "hospital.toml", "--ledger", ledger, option, folder / name
        )[0]
        if code:
            assert not ledger.exists()  # refused before anything is spent
        return code

    return write


def _command(line: str, name: str) -> Callable[[Path, Path, Run], int]:
    def write(place: Path, folder: Path, run: Run) -> int:
        words = [word.replace("PLACE", str(place)) for word in line.split()]
        code: int = run("", *words, folder / name)[0]
        return code

    return write


def _call(write: Callable[[Path], object]) -> Callable[[Path, Path, Run], int]:
    def attempt(place: Path, folder: Path, run: Run) -> int:
        try:
            write(folder)
        except InvalidInput:
            return 2
        return 0

    return attempt


def _state(folder: Path) -> None:
    rows = np.arange(200.0)
    wi.audit.training(
        lambda given: set(given.ravel().tolist()),
        rows,
        lambda fit, records: [float(each) in fit for each in np.ravel(records)],
        shadows=0,
        state=folder / "state.json",
    )


def _users(place: Path, folder: Path, run: Run) -> int:
    code: int = run("serve --add-user ann --folder", place, "--users", folder / "users.json")[0]
    return code


WAYS: dict[str, tuple[str, bool, Callable[[Path, Path, Run], int]]] = {
    # name: (the file, whether it is private, how it is written)
    "answers as JSON": ("a.json", True, _release("--save", "a.json")),
    "report": ("r.html", True, _release("--report", "r.html")),
    "export as JSON": ("e.json", True, _command("ledger export PLACE/books.db --save", "e.json")),
    "export as CSV": ("e.csv", True, _command("ledger export PLACE/books.db --save", "e.csv")),
    "users": ("users.json", True, _users),
    "audit state": ("state.json", True, _call(_state)),
    "counts": ("c.tsv", True, _command("gwas count PLACE/study --save", "c.tsv")),
    "exact chart": ("c.svg", True, _command("gwas count PLACE/study --save", "c.svg")),
    "associations": ("a.tsv", True, _command("gwas count PLACE/study --assoc", "a.tsv")),
    "study table": ("g.tsv", True, _command(STUDY_RELEASE, "g.tsv")),
    "study page": ("g.html", True, _command(STUDY_RELEASE, "g.html")),
    "simulated study": ("s.fam", False, _command(f"gwas simulate --overwrite {STUDY}", "s")),
    "chart as HTML": ("n.html", False, _command("notions --save", "n.html")),
    "chart as SVG": ("n.svg", False, _command("notions --save", "n.svg")),
    "chart as PNG": ("n.png", False, _command("notions --save", "n.png")),
    "plan": ("p.json", False, _call(lambda folder: PLAN.save(folder / "p.json"))),
    "channel": ("m.json", False, _call(lambda folder: CHANNEL.save(folder / "m.json"))),
    "hospital": ("hospital.toml", False, _call(lambda folder: write_hospital(folder, 20))),
    "town": ("town.csv", False, _call(lambda folder: write_town(folder / "town.csv", 20))),
}  # fmt: skip


def _link(path: Path, elsewhere: Path) -> None:
    elsewhere.write_text("theirs")
    path.symlink_to(elsewhere)


def _loose_link(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere)


def _hard_link(path: Path, elsewhere: Path) -> None:
    elsewhere.write_text("theirs")
    path.hardlink_to(elsewhere)


def _pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path, _: Path) -> None:
    path.mkdir()


OBSTACLES = [_link, _loose_link, _pipe, _folder]
"""What is refused; another name of a file is refused too, or gets a file of its own."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """A writer that waits for a pipe would wait for ever."""

    def stop(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


ONE_WRITER = ("chart as HTML", "chart as PNG")
"""Written by what writes a chart as SVG."""


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=[pytest.mark.soak] * (way in ONE_WRITER)) for way in WAYS],
)
def test_what_is_no_plain_file_is_refused(place: Path, tmp_path: Path, run: Run, way: str) -> None:
    name, private, write = WAYS[way]
    for obstacle in OBSTACLES:
        folder, elsewhere = tmp_path / obstacle.__name__, tmp_path / f"else{obstacle.__name__}"
        folder.mkdir()
        obstacle(folder / name, elsewhere)
        kind = stat.S_IFMT((folder / name).lstat().st_mode)
        with at_most(60):
            assert write(place, folder, run) == 2, obstacle
        assert stat.S_IFMT((folder / name).lstat().st_mode) == kind
        if obstacle is _link:
            assert elsewhere.read_text() == "theirs"
        else:
            assert not elsewhere.exists()
    folder, elsewhere = tmp_path / "named", tmp_path / "twice"
    folder.mkdir()
    _hard_link(folder / name, elsewhere)
    refused = write(place, folder, run) != 0
    assert elsewhere.read_text() == "theirs" and (folder / name).samefile(elsewhere) == refused
    folder = tmp_path / "free"
    folder.mkdir()
    before = os.umask(0o022)
    try:
        assert write(place, folder, run) == 0
    finally:
        os.umask(before)
    mode = stat.S_IMODE((folder / name).stat().st_mode)
    assert mode == (0o600 if private else 0o644)
    assert not [each for each in folder.iterdir() if each.name.startswith(f".{name}.")]


def test_a_file_beside_is_not_followed_either(tmp_path: Path, run: Run) -> None:
    """What is replaced as a whole is written under a name that nobody can know before."""
    stranger = tmp_path / "stranger"
    stranger.write_text("theirs")
    for name in ("users.json.new", "state.json.new"):
        (tmp_path / name).symlink_to(stranger)
    assert _users(tmp_path, tmp_path, run) == 0
    _state(tmp_path)
    assert stranger.read_text() == "theirs"


def test_what_takes_a_place_after_the_answers_were_paid_for(
    place: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several answers their files have names of their own; the message says how to go on."""
    ledger, stranger = tmp_path / "own.db", tmp_path / "stranger"
    (tmp_path / "a-1-patients.csv").symlink_to(stranger)
    given = (place / "hospital.toml", "--ledger", ledger, "--request", "r")
    assert run("release", *given, "--save", tmp_path / "a.csv")[0] == 2 and not ledger.exists()
    with monkeypatch.context() as late:  # something takes the place meanwhile
        late.setattr("whosin.app.cli.release.require_new_file", lambda *_: None)
        code, _, err = run("release", *given, "--save", tmp_path / "a.csv")
    assert code == 3 and "--request r" in err and not stranger.exists()
    (tmp_path / "a-1-patients.csv").unlink()
    assert run("release", *given, "--save", tmp_path / "a.csv")[0] == 0
    assert (tmp_path / "a-1-patients.csv").is_file()


def test_an_existing_file_keeps_its_permissions_and_loses_its_text(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("a longer text")
    path.chmod(0o640)
    write_file(path, "new", private=True)
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o640
    write_file(path, b"\0", private=True)
    assert path.read_bytes() == b"\0"
    replace_file(path, "whole")
    assert path.read_text() == "whole" and stat.S_IMODE(path.stat().st_mode) == 0o600
    with create_file(path) as file:
        file.write("ä")
    assert path.read_bytes() == "ä".encode()


def test_what_takes_a_place_between_looking_and_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look before is a courtesy; what was opened decides."""
    monkeypatch.setattr("whosin.plain_files.check_plain", lambda *_: None)
    for obstacle in OBSTACLES:
        path = tmp_path / obstacle.__name__
        obstacle(path, tmp_path / "elsewhere")
        with at_most(20), pytest.raises(InvalidInput):
            open_plain(path, os.O_WRONLY | os.O_CREAT)
        with at_most(20), pytest.raises(InvalidInput):
            open_plain(path, os.O_RDWR)
    assert (tmp_path / "elsewhere").read_text() == "theirs"


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_is_taken_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:

        def link(*_: object, **__: object) -> None:
            raise PermissionError(1, "no hard links here")

        monkeypatch.setattr(os, "link", link)
    made, path = tmp_path / "made", tmp_path / "path"
    made.write_text("new")
    for take in (lambda: path.write_text("old"), lambda: path.symlink_to("nowhere"), path.mkdir):
        take()
        with pytest.raises(FileExistsError):
            link_new(made, path)
        assert made.read_text() == "new"
        path.rmdir() if path.is_dir() else path.unlink()
    link_new(made, path)
    assert path.read_text() == "new" and not made.exists()
