"""What several files of tests share: the command in this process, the same draws in every run, the
wheel."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.pathlib import import_path
from hypothesis import HealthCheck, settings

import chance
from command import Result
from kept_worker_pool import KeptWorkerPool
from whosin import isolation
from whosin.app.cli.main import exit_code, main, run_command
from whosin.errors import WhosinError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent
collect_ignore = ["data"]
LONGEST = (
    "spark", "web/test_page.py", "web", "house/test_extras.py", "house/test_docs.py",
    "house/test_extending.py", "ledger/test_postgres.py", "audit/test_outputs.py",
    "release/test_databases.py", "rules/test_planning.py",
)  # fmt: skip
"""What takes longest, or waits for servers meanwhile, and so begins first: small files fill the
processes at the end."""

MEMORY = "/dev/shm"
"""Where Linux keeps files in memory."""
MIN_MEMORY_BYTES = 4 << 30


slow = [HealthCheck.too_slow, HealthCheck.data_too_large]  # a busy machine is no fault of a test
settings.register_profile(
    "same", derandomize=True, deadline=None, database=None, suppress_health_check=slow
)
settings.register_profile("fresh", deadline=None, database=None, suppress_health_check=slow)


def together(nodeid: str) -> str:
    """Which tests run in one process, one after the other: those of a file, since they share what
    it sets up, and all that need Spark, or the worker pool of servers, of which a second would take
    as long again."""
    file = nodeid.partition("::")[0]
    if "spark" in nodeid:
        return "spark"
    return "web" if file.startswith("tests/web/") and not file.endswith("test_page.py") else file


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Sessions on the few made-up rows of tests, of which most would be stopped by a look at them,
    do not look; those of documentation, and of tests that say so, do. Before any fixture: those of
    a module make sessions, too."""
    from whosin.release.session import Session

    documented = item.path.relative_to(ROOT).parts[1] in ("house", "command")
    looks = documented or item.get_closest_marker("looks") is not None
    Session.__init__.__kwdefaults__["preflight"] = looks


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs the command: the words of a line, then words that stay as they are."""

    def call(line: object = "", *more: object) -> Result:
        capsys.readouterr()
        code = main([*str(line).split(), *map(str, more)])
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the day, or the moment, that whosin takes it to be."""

    def set_time(moment: str) -> None:
        day, _, time = moment.partition("T")
        whole = datetime.fromisoformat(f"{day}T{time or '12:00:00'}+00:00")
        monkeypatch.setattr("whosin.ledger.encoding.utc_now", lambda: whole)

    return set_time


@pytest.fixture
def refused_at(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command, which must refuse its input: exit 2, one line, and nothing printed. Gives
    what the error is about: an option, a key of a file, or nothing where a file is not there."""

    def call(line: object = "", *more: object) -> str:
        capsys.readouterr()
        with pytest.raises((WhosinError, FileNotFoundError, IsADirectoryError)) as caught:
            run_command([*str(line).split(), *map(str, more)])
        assert capsys.readouterr().out == ""
        if not isinstance(caught.value, WhosinError):
            return ""
        assert exit_code(caught.value) == 2
        assert "\n" not in str(caught.value)
        return caught.value.path or caught.value.field

    return call


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    from chromium import chromium

    with chromium() as opened:
        yield opened


def pytest_unconfigure(config: pytest.Config) -> None:
    """What is frozen is never freed, and DuckDB's binding lists it when the process ends: below the
    last line of a run in one process. Workers end before that line, and freeing takes them 3 s."""
    if not hasattr(config, "workerinput"):
        gc.unfreeze()


def _keep_files_in_memory() -> None:
    """Where there is room for them: a ledger waits for the disk at each entry, some ten thousand
    times a run."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    room = os.statvfs(MEMORY)
    if room.f_bavail * room.f_frsize > MIN_MEMORY_BYTES and not room.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = MEMORY
        tempfile.tempdir = None


def pytest_configure(config: pytest.Config) -> None:
    _keep_files_in_memory()
    soak = config.option.markexpr == "soak"
    settings.load_profile("fresh" if soak or chance.FRESH else "same")


def _import_in_turn(number: int, processes: int) -> None:
    """In a fresh clone every process would compile every file, which takes as long as all imports:
    each begins elsewhere in the list, and finds the rest compiled."""
    files = sorted(ROOT.glob("tests/*/test_*.py"))
    first = len(files) * number // processes
    for file in files[first:] + files[:first]:
        try:
            import_path(file, mode="importlib", root=ROOT, consider_namespace_packages=False)
        except BaseException:  # collecting it tries once more, and says what is wrong
            sys.modules.pop(".".join(file.relative_to(ROOT).with_suffix("").parts), None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What is collected stays to the end: looking for garbage in it would take a third as long
    again in every process, and later ones would look at it once more."""
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    try:
        if worker is not None and session.config.args == ["tests"]:
            _import_in_turn(int(worker["workerid"][2:]), worker["workercount"])
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)  # looking for garbage takes a twelfth of what tests take
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        group = together(item.nodeid)
        return next((n for n, name in enumerate(LONGEST) if name in group), len(LONGEST))

    items.sort(key=rank)
    names = Counter(item.nodeid for item in items)  # of equal ones the processes run one
    for name, count in names.items():  # an address would differ between the processes
        assert count == 1 and " at 0x" not in name, f"a case needs a name of its own: {name}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """The groups of xdist's own marker do nothing under pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    config.option.loadscopereorder = False
    return Together(config, log)


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
    index = request.param_index  # type: ignore[attr-defined]
    _begin(request._pyfuncitem, f"{owner} {fixturedef.argname} {index}")
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """With Ctrl-C heard: shells start background jobs deaf, and PySpark leaves a handler."""
    _begin(item, item.nodeid)
    if together(item.nodeid) != "spark":
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    finally:
        chance.fresh()


RUN_ISOLATED = isolation.run_isolated


@pytest.fixture(scope="session", autouse=True)
def _one_reader() -> Iterator[None]:
    """One process reads the foreign files of all tests: a new one takes a quarter of a second."""
    kept = KeptWorkerPool()
    isolation.run_isolated = kept.run
    yield
    isolation.run_isolated = RUN_ISOLATED
    kept.close()


@pytest.fixture
def own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of crashes, races and limits: each task in a process of its own, as for people."""
    monkeypatch.setattr(isolation, "run_isolated", RUN_ISOLATED)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that nothing is left in the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    beside = shutil.ignore_patterns("*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "src", folder / "copy" / "src", ignore=beside)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "copy")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", str(folder)]
    command = [sys.executable, "-m", "pip", "wheel", *options, str(folder / "copy")]
    built = subprocess.run(command, capture_output=True, text=True)
    # pip makes an environment for building, with a setuptools that knows today's pyproject files.
    if "setuptools" in built.stderr and "ERROR" in built.stderr and not os.environ.get("CI"):
        pytest.skip("the build backend cannot be fetched")
    assert built.returncode == 0, built.stdout + built.stderr
    (made,) = folder.glob("*.whl")
    return made
