"""Entry point of the `whosin` command, and `whosin demo`."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from shlex import quote
from shutil import which
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from whosin.app.cli.options import Json, error_option, option_name, print_json
from whosin.errors import (
    BrokenHistory,
    BudgetRefused,
    Interrupted,
    InvalidInput,
    MechanismFailed,
    MissingExtra,
    ScanFailed,
    StoreFailed,
    WhosinError,
    require_extras,
)


def refuse_repeated(command: Any, arguments: Sequence[str]) -> dict[str, str]:
    """The options of the command, or of the subcommand named, by their names.

    One that takes one value and is given twice is refused, since one of the two would be lost.
    """
    words = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    while words and hasattr(command, "commands"):
        word = words.pop(0)
        command = command.commands.get(word, command)
    for option in getattr(command, "params", ()):
        names = [name for name in option.opts if name.startswith("-")]
        if not names or option.multiple or option.is_flag:
            continue
        given = [word for word in words if word.partition("=")[0] in names]
        if len(given) > 1:
            raise InvalidInput(
                f"{names[0]} is given {len(given)} times", field=names[0], hint="give it once"
            )
    return {option.opts[0].lstrip("-"): option.opts[0] for option in getattr(command, "params", ())}


def demo(
    keep: Annotated[
        Path | None, typer.Option(help="Keep the table, scenario, ledger and report here.")
    ] = None,
    json: Json = False,
) -> None:
    """Plan, estimate and release statistics of a generated hospital, with a report and a ledger."""
    require_extras("release", "charts")
    if keep is None:
        with TemporaryDirectory(prefix="whosin-demo-") as folder:
            _tell_story(Path(folder), json=json, kept=False)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InvalidInput(
            f"{keep.name} is there already, and not an empty folder",
            field="--keep",
            value=keep.name,
            hint="choose a new one",
        )
    _tell_story(keep, json=json, kept=True)


def _tell_story(folder: Path, *, json: bool, kept: bool) -> None:
    from whosin.app.example_data import write_hospital
    from whosin.release.scenario import load_scenario
    from whosin.report import html, releases
    from whosin.report.terminal import print_document

    scenario = load_scenario(write_hospital(folder))
    with scenario.open_session() as session:
        estimates = session.dry_run(scenario.queries, **scenario.budget)
        release = scenario.release(session)
    html.save_report(scenario.title, scenario.plan, release, folder / "report.html", scenario)
    try:
        scenario.open_session()
    except BudgetRefused as error:
        refusal = str(error)
    if json:
        data = {
            "estimates": [releases.estimate_data(estimate) for estimate in estimates],
            **release.to_dict(),
        }
        print_json({"title": scenario.title, **data, "second": refusal})
        return
    told = releases.describe_demo(scenario.title, scenario.plan, estimates, release, refusal)
    print_document(told)
    print()
    command = "whosin" if which("whosin") else sys.argv[0]  # as it can be typed here
    if kept:
        print(f"Kept in {folder}: hospital.parquet, hospital.toml, ledger.db, report.html")
        print(f"{command} release {quote(str(folder / 'hospital.toml'))} --dry-run")
    else:
        print("To keep its table and its report:")
        print(f"{command} demo --keep demo")


COMMANDS = {
    "plan": "plan:plan",
    "explain": "explain:explain",
    "verify": "verify:verify",
    "notions": "explain:notions",
    "distortion": "distortion:distortion",
    "release": "release:release",
    "sql": "release:sql",
    "draft": "release:draft",
    "inspect": "release:inspect",
    "evidence": "evidence:evidence",
    "rules": "rules:app",
    "ledger": "ledger:app",
    "audit": "audit:app",
    "gwas": "gwas:app",
    "serve": "serve:serve",
    "demo": "main:demo",
    "cite": "explain:cite",
}
"""Where each command is: a module of this package, and a function or several commands in it."""


HELP_OPTIONS = ["-h", "--help"]


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command with these of its commands; others are neither imported nor known to it."""
    app = typer.Typer(
        name="whosin",
        help="How sure can anyone be that you are in the data?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": HELP_OPTIONS},
    )
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(f"whosin.app.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    app.callback(invoke_without_command=True)(_options)
    return app


def _options(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"whosin {installed('whosin')}")
        raise typer.Exit


READER_GONE = 141
"""The exit code where the output could not be written, as shells know it (128 + SIGPIPE): never 0,
for a claim may have been refuted."""


EXIT_CODES: tuple[tuple[type[WhosinError], int], ...] = (
    (Interrupted, 130),
    (BrokenHistory, 1),
    (BudgetRefused, 1),
    (MechanismFailed, 3),
    (MissingExtra, 3),
    (ScanFailed, 3),
    (StoreFailed, 3),
)
"""By kind of error; every other one is wrong input."""
WRONG_INPUT = 2


def run_command(arguments: Sequence[str]) -> int:
    """Run the command; an error of ours is at the option that it is about.

    Raises:
        WhosinError: the command refuses, or fails.
    """
    options: dict[str, str] = {}
    try:
        words = list(arguments)
        command = _command(words[0] if words and words[0] in COMMANDS else None)
        options = refuse_repeated(command, words)
        result = command(args=words, prog_name="whosin", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except WhosinError as error:
        error.path = option_name(error.path, options) or error_option(error, options, arguments)
        raise


def exit_code(error: WhosinError) -> int:
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), WRONG_INPUT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    That is 0; 1 when a claim fails; 2 for a wrong call or wrong input; 3 for a failing environment;
    4 when a claim is undecided (`verify --at-most`). Messages go to standard error, one line,
    without a traceback.
    """
    try:
        return run_command(sys.argv[1:] if arguments is None else arguments)
    except (typer.Abort, KeyboardInterrupt):
        return _print_failure("interrupted", 130)
    except WhosinError as error:
        return _print_failure(str(error), exit_code(error))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        return _print_failure(
            f"{error.filename}: {(error.strerror or 'cannot be read').lower()}", 2
        )
    except BrokenPipeError:
        # Whoever read our output has gone: stay quiet, also when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except MemoryError:
        return _print_failure("out of memory", 3)
    except OSError as error:
        return _print_failure(str(error), 3)
    except SystemExit as error:
        # Rich leaves this way, with 1, when whoever read our output has gone.
        return READER_GONE if error.code else 0
    except Exception as error:
        # Typer keeps the base class of its usage errors private; they know how to show themselves.
        if not hasattr(error, "show") or not hasattr(error, "exit_code"):
            return _print_failure(
                f"internal error, please report it: {type(error).__name__}: {error}", 3
            )
        error.show()
        return int(error.exit_code)


@cache
def _command(name: str | None) -> Any:
    """The command with one of its commands, or with all of them: this takes some 70 ms."""
    result = typer.main.get_command(make_app(COMMANDS if name is None else [name]))
    _take_plain_values(result)
    return result


class _PlainValue:
    """An option's value, where it is a text, a path that can be read, or not given: Typer 0.29
    would import pydantic for it, and make a model of each option. It gets all the others."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if kind is str and isinstance(value, str):
            return value
        readable = isinstance(value, str) and (
            os.access(value, os.R_OK) or not os.path.lexists(value)
        )
        if kind is Path and readable:
            return Path(value)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _take_plain_values(command: Any) -> None:
    """Let the options of a command, and of the commands in it, take plain values as they are."""
    asked = command.get_help_option(typer.Context(command, help_option_names=HELP_OPTIONS))
    for option in (*command.params, asked):
        # Where Typer has another shape than that of 0.29, it is left as it is.
        if getattr(option, "_runtime_param", True) is None and hasattr(option, "type_descriptor"):
            option._runtime_param = _PlainValue()
    for each in getattr(command, "commands", {}).values():
        _take_plain_values(each)


def _print_failure(message: str, code: int) -> int:
    print(f"whosin: {message}", file=sys.stderr)
    return code


MAX_YOUNG_OBJECTS = 50_000
"""Objects before Python looks for garbage among them: imports alone make as many, and they stay."""


def run() -> None:
    """Run the command as the console script, and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a letter gets its number
            stream.reconfigure(errors="backslashreplace")
    gc.set_threshold(MAX_YOUNG_OBJECTS)
    code = main()
    if threading.active_count() == 1:
        leave_process(code)
    sys.exit(code)


def leave_process(code: int) -> None:
    """End the process after everything that was registered for its end, and leave its memory to
    the system: Python would take apart every module first, a sixth of the time of a small release.
    """
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return  # the usual end says what it can about it
    os._exit(code)
