"""Entry point of the `whosin` command; what commands share: options, output, code of users."""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import json
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from whosin.errors import (
    BrokenHistory,
    BudgetRefused,
    Interrupted,
    InvalidInput,
    MechanismFailed,
    MissingExtra,
    ScanFailed,
    StoreFailed,
    UnknownName,
    WhosinError,
    shorten,
)
from whosin.scenario_model import (
    AdversarySection,
    Key,
    MechanismParameters,
    NotionOptions,
    Section,
    TargetSection,
)

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from whosin.calibration import Plan, Process
    from whosin.report.document import Document

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Draw = Annotated[Path | None, typer.Option("--save", help="Draw: x.html, x.svg or x.png.")]
ReportFile = Annotated[
    Path | None, typer.Option("--report", help="Write a report for people: out.html.")
]
ReportReader = Annotated[
    str | None,
    typer.Option("--for", help="officer: a report of the two pages that are to be signed."),
]
Save = Annotated[
    Path | None, typer.Option("--save", help="Write the answers: x.json, x.csv or x.parquet.")
]
Continues = Annotated[
    str | None,
    typer.Option(
        "--continues",
        help="The dataset whose people these are: next month, a correction. Its budget goes on.",
    ),
]
Again = Annotated[
    bool, typer.Option("--again", help="Ask anew what was asked before, and pay again.")
]
NewPeople = Annotated[
    bool, typer.Option("--new-people", help="Nobody is in a dataset with the same columns.")
]
ScenarioFile = Annotated[Path, typer.Argument(help="A scenario file (TOML).")]
StudyPath = Annotated[
    Path, typer.Argument(metavar="STUDY", help="PLINK files (with or without .bed), .vcf, or .tsv.")
]
Phenotypes = Annotated[
    Path | None, typer.Option(help="Who is a case: a file with FID, IID and 1 or 2.")
]
StudyDryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the card; draw and spend nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Spend without asking once more.")]


@dataclass(frozen=True)
class StudyAccount:
    """Where a study's ledger is, and what the study is called in it, as options say it."""

    ledger: Annotated[
        str | None,
        typer.Option(help="A file, or postgresql://…; by default STUDY.ledger beside the study."),
    ] = None
    dataset: Annotated[
        str | None, typer.Option(help="The study's name in the ledger; by default its file's.")
    ] = None

    def find(self, study: Path) -> tuple[str, str]:
        """The ledger's place and the study's name."""
        from whosin.gwas.bed import study_prefix

        base = study_prefix(study)
        place = self.ledger or str(base.with_name(base.name + ".ledger"))
        return place, self.dataset or base.name


@dataclass(frozen=True)
class ProcessOptions:
    """Noise that is added in several steps, as options say it."""

    noise: Annotated[
        str, typer.Option(help="In several steps: gaussian, laplace or discrete-gaussian.")
    ] = "gaussian"
    sample_rate: Annotated[
        str | None, typer.Option(help="DP-SGD: the sampling rate of a step.")
    ] = None
    steps: Annotated[int | None, typer.Option(help="DP-SGD: how many steps.")] = None

    @property
    def given(self) -> bool:
        """Whether there are several steps, or sampled ones."""
        return self.sample_rate is not None or self.steps is not None

    def read(self) -> Process:
        """The same as `calibrate_process` takes it."""
        from whosin.calibration import Process
        from whosin.exact import rational

        rate = float(rational(self.sample_rate, "--sample-rate")) if self.sample_rate else 1.0
        return Process(self.noise, rate, 1 if self.steps is None else self.steps)


def can_ask(*, json: bool) -> bool:
    """Whether there is a person at a terminal."""
    return not json and sys.stdin.isatty()


def confirm_spending(words: str, *, yes: bool, json: bool) -> None:
    """Ask the person at a terminal once more, before anything is paid.

    Args:
        words: what is spent, in a sentence.

    Raises:
        BudgetRefused: the person said no.
    """
    if yes or not can_ask(json=json):
        return
    print(words, file=sys.stderr)
    if not typer.confirm("Spend this for good?", err=True):
        raise BudgetRefused("nothing was spent, as you said")


def plain_json(value: object) -> Any:
    """The JSON form of a value: exact numbers become floats, or "1e435" where none is large enough;
    infinities become "inf"."""
    if isinstance(value, Fraction):
        from whosin.exact import MIN_POWER, format_power

        if abs(value) >= MIN_POWER:
            return format_power(value, "up").replace("10^", "1e")
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): plain_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_json(entry) for entry in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def print_warning(message: str) -> None:
    print(f"whosin: warning: {message}", file=sys.stderr)


def print_json(data: Mapping[str, object]) -> None:
    text = json.dumps(plain_json(data), ensure_ascii=False, indent=2)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        text = json.dumps(plain_json(data), indent=2)
    print(text)


def print_result(
    json: bool, data: Mapping[str, object], describe: Callable[..., Document], *given: Any
) -> None:
    """Print a result: as one JSON object, or as a document that a function of `report` makes."""
    if json:
        print_json(data)
    else:
        from whosin.report.terminal import print_document

        print_document(describe(*given))


def progress_bar(*columns: ProgressColumn, quiet: bool = False) -> Progress:
    """A bar on standard error, where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=hidden)


# Options that several commands share. A command decorated with `add_options("target", "adversary")`
# has an option for each key of these sections of `scenario_model` and gets two mappings, `target`
# and `adversary`, of the keys that were said; `calibration.planning` reads them. With
# `add_options(filters=read_filters)` it has the options of that function, or data class, and gets
# what it returns as `filters`. Errors at a path are shown as the option that they are about.


OPTION_SECTIONS: dict[str, type[Section]] = {
    "target": TargetSection,
    "adversary": AdversarySection,
    "notion_words": NotionOptions,
    "mechanism_words": MechanismParameters,
}
Command = TypeVar("Command", bound=Callable[..., Any])


def add_options(
    *sections: str, without: tuple[str, ...] = (), **readers: Callable[..., Any]
) -> Callable[[Command], Command]:
    """Give a command, in the place of parameters, the options of sections, but for some keys, and
    the options of readers."""

    def decorate(command: Command) -> Command:
        given_by = {name: _section_reader(name, without) for name in sections} | readers
        parameters = {name: signature(each, eval_str=True) for name, each in given_by.items()}

        def call(**given: Any) -> Any:
            for name, read in given_by.items():
                given[name] = read(**{key: given.pop(key) for key in parameters[name].parameters})
            return command(**given)

        own = signature(command, eval_str=True).parameters.values()
        listed = [
            option.replace(kind=Parameter.KEYWORD_ONLY)
            for each in own
            for option in (
                parameters[each.name].parameters.values() if each.name in given_by else (each,)
            )
        ]
        call.__signature__ = Signature(listed)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in listed}
        call.__doc__, call.__name__ = command.__doc__, command.__name__
        call.__module__ = command.__module__
        return call  # type: ignore[return-value]

    return decorate


def _section_reader(name: str, without: tuple[str, ...]) -> Callable[..., dict[str, Any]]:
    """A function of the keys of a section that returns those that were said."""
    known = OPTION_SECTIONS[name].known_keys().values()
    keys = {key.attribute: key for key in known if key.name not in without}

    def read(**given: Any) -> dict[str, Any]:
        return _given_words({keys[attribute].name: each for attribute, each in given.items()})

    read.__signature__ = Signature(list(map(_make_option, keys.values())))  # type: ignore[attr-defined]
    return read


def refuse_options(given: Mapping[str, object], beside: str) -> None:
    """Refuse the first of these options that was given: it has no meaning beside another one."""
    for option, value in given.items():
        if value is not None:
            message = f"{option} cannot be given with {beside}"
            raise InvalidInput(message, field=option, value=value, hint="leave one of them out")


def option_name(path: str, options: Mapping[str, str]) -> str:
    """The option of a path such as adversary.prior, where a command has one; else the path."""
    section, _, word = path.partition(".")
    known = {*OPTION_SECTIONS, "budget"}
    return options.get(word, path) if {section, f"{section}_words"} & known else path


def error_option(error: Exception, options: Mapping[str, str], given: Sequence[str]) -> str:
    """The option that an error's field is called by, where it was given; else nothing."""
    name = str(getattr(error, "field", "")).replace("_", "-").replace(" ", "-")
    option = options.get(name, "")
    said = {word.partition("=")[0] for word in given}
    return option if option.startswith("--") and option in said else ""


def _given_words(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in values.items() if each is not None and each is not False}


def _make_option(key: Key) -> Parameter:
    spelled = [f"--{key.name}", *([key.option] if key.option else [])]
    option = typer.Option(*spelled, help=key.description)
    default = False if key.kind.option is bool else None
    kind: Any = Annotated[key.kind.option, option]
    return Parameter(key.attribute, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


# Code of other people's, run inside the command. Whatever it prints, by Python or below it, goes to
# standard error, so that standard output holds the command's own result and nothing else; and
# `sys.exit` or `os._exit` in it is a failing environment, never the command's own exit.


@contextmanager
def user_code() -> Iterator[None]:
    """Send standard output to standard error for as long as the code runs."""
    with redirect_stdout(sys.stderr), _no_sudden_end():
        kept = _redirect_output()
        try:
            yield
        except SystemExit as error:
            words = f"the code under audit ended the program (sys.exit({error.code!r}))"
            raise MechanismFailed(words) from error
        finally:
            sys.stderr.flush()
            if kept is not None:
                os.dup2(kept, 1)
                os.close(kept)


@contextmanager
def _no_sudden_end() -> Iterator[None]:
    """Let `os._exit` of this process, whatever its code, be a failing environment; children that
    the code forks end as they like."""
    leave, process = os._exit, os.getpid()

    def end(status: int) -> NoReturn:
        if os.getpid() == process:
            words = f"whosin: the code under audit ended the program (os._exit({status!r}))\n"
            os.write(2, words.encode())
            leave(3)
        leave(status)

    os._exit = end
    try:
        yield
    finally:
        os._exit = leave


def _redirect_output() -> int | None:
    """Point the process's standard output to its standard error; what it was, if that is known."""
    try:
        kept = os.dup(1)
    except OSError:  # closed, or none
        return None
    try:
        os.dup2(2, 1)
    except OSError:
        os.close(kept)
        return None
    return kept


# Objects of other people's that a command names: module:name, or file.py:name. A module is looked
# for in the current folder and in PYTHONPATH; whatever goes wrong while loading becomes one
# message.


def load_object(target: str, what: str = "what to audit") -> Any:
    """The object that `module:name` or `file.py:name` names."""
    return load_with_module(target, what)[0]


def load_with_module(target: str, what: str = "what to audit") -> tuple[Any, ModuleType]:
    """The object that `module:name` or `file.py:name` names, and the module that has it.

    Args:
        what: what the object is for, in messages.
    """
    source, colon, name = target.rpartition(":")
    if not colon or not source or not name:
        message = f"{shorten(repr(target))} names no function"
        hint = "write module:function, path/to/file.py:function or a channel file (.json)"
        raise InvalidInput(message, field=what, value=target, hint=hint)
    module = (
        _import_file(Path(source), what) if source.endswith(".py") else _import_module(source, what)
    )
    if not hasattr(module, name):
        public = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise UnknownName(f"function of {source}", name, public)
    return getattr(module, name), module


def _import_module(name: str, what: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name + ".").startswith(error.name + "."):
            message = f"there is no module {shorten(repr(name))} in this folder or on PYTHONPATH"
            raise InvalidInput(message, field=what, value=name) from None
        raise _import_error(name, what, error) from error
    except (Exception, SystemExit) as error:
        raise _import_error(name, what, error) from error


def _import_file(path: Path, what: str) -> ModuleType:
    if not path.is_file():
        message = f"there is no file {shorten(path)}"
        raise InvalidInput(message, field=what, value=str(path), hint="see its path")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _import_error(str(path), what, error) from error
    return module


def _import_error(name: str, what: str, error: BaseException) -> InvalidInput:
    words = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return InvalidInput(f"{name} cannot be imported: {words}", field=what, value=name)


# What the commands about association studies share.

NEIGHBOUR_WORDS = ("secret", "size-known", "linked", "known", "uninformed", "family", "people")
EXCLUDED_STUDY_WORDS = (*NEIGHBOUR_WORDS, "delta", "reserve")
"""Options that a study does not take, since everyone knows how many cases there are."""


def plan_study(
    target: Mapping[str, Any], adversary: Mapping[str, Any], relation: str = "label-swap"
) -> Plan:
    """The plan: everyone knows how many cases there are, unless one label may change by itself."""
    from whosin.calibration import read_plan

    known = {} if relation == "label" else {"size-known": True}
    return read_plan({**adversary, **known}, target)


def read_numbers(text: str, field: str) -> list[int]:
    from whosin.errors import spelled_whole

    return [
        spelled_whole(part.strip().replace("_", ""), field)
        for part in text.split(",")
        if part.strip()
    ]


@contextmanager
def show_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told how much of a work is done."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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


COMMAND_PLACES = {
    "plan": "plan:plan",
    "explain": "explain:explain",
    "verify": "verify:verify",
    "notions": "explain:notions",
    "distortion": "distortion:distortion",
    "release": "release:release",
    "sql": "release:sql",
    "draft": "release:draft",
    "inspect": "release:inspect",
    "evidence": "release:evidence",
    "rules": "rules:app",
    "ledger": "ledger:app",
    "audit": "audit:app",
    "gwas": "gwas:app",
    "serve": "serve:serve",
    "demo": "release:demo",
    "cite": "explain:cite",
}
"""Where each command is: a module of this package, and a function or several commands in it."""


HELP_OPTIONS = ["-h", "--help"]


def make_app(names: Iterable[str] = COMMAND_PLACES) -> typer.Typer:
    """The command with these of its commands; others are neither imported nor known to it."""
    app = typer.Typer(
        name="whosin",
        help="How sure can anyone be that you are in the data?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": HELP_OPTIONS},
    )
    for name in names:
        module, _, attribute = COMMAND_PLACES[name].partition(":")
        found = getattr(importlib.import_module(f"whosin.app.cli.{module}"), attribute)
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
        command = _command(words[0] if words and words[0] in COMMAND_PLACES else None)
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
    result = typer.main.get_command(make_app(COMMAND_PLACES if name is None else [name]))
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
