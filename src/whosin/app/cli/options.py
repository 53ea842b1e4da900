"""Options that several commands share, and what commands print."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from whosin.errors import InvalidInput
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

    from whosin.report.document import Document


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Draw = Annotated[Path | None, typer.Option("--save", help="Draw: x.html, x.svg or x.png.")]
ScenarioFile = Annotated[Path, typer.Argument(help="A scenario file (TOML).")]


def plain_json(value: object) -> Any:
    """The JSON form of a value: exact numbers become floats, infinities become "inf"."""
    if isinstance(value, Fraction):
        value = float(value) if abs(value) < Fraction(2) ** 1000 else math.inf
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


# The keys of `scenario_model` as options, the same for every command that takes them. A command
# decorated with `add_options("target", "adversary")` has an option for each key and gets two
# mappings, `target` and `adversary`, of the keys that were said; `calibration.planning` reads
# them. Errors at a path are shown as the option that they are about.


OPTION_SECTIONS: dict[str, type[Section]] = {
    "target": TargetSection,
    "adversary": AdversarySection,
    "notion_words": NotionOptions,
    "mechanism_words": MechanismParameters,
}
Command = TypeVar("Command", bound=Callable[..., Any])


def add_options(*sections: str, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Give a command the options of these sections, but for some keys."""
    keys = {
        name: [
            key for key in OPTION_SECTIONS[name].known_keys().values() if key.name not in without
        ]
        for name in sections
    }

    def decorate(command: Command) -> Command:
        def call(**given: Any) -> Any:
            said = {
                name: {key.name: given.pop(key.attribute) for key in listed}
                for name, listed in keys.items()
            }
            return command(**given, **{name: _given_words(values) for name, values in said.items()})

        own = list(signature(command, eval_str=True).parameters.values())
        first = [each for each in own if each.default is Parameter.empty]
        first = [each for each in first if each.name not in sections]
        rest = [each for each in own if each.default is not Parameter.empty]
        options = [_make_option(key) for listed in keys.values() for key in listed]
        result = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*first, *options, *rest)]
        call.__signature__ = signature(command).replace(parameters=result)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in result}
        call.__doc__, call.__name__ = command.__doc__, command.__name__
        call.__module__ = command.__module__
        return call  # type: ignore[return-value]

    return decorate


def refuse_options(given: Mapping[str, object], beside: str) -> None:
    """Refuse the first of these options that was given: it has no meaning beside another one."""
    for option, value in given.items():
        if value is not None:
            raise InvalidInput(
                f"{option} cannot be given with {beside}",
                field=option,
                value=value,
                hint="leave one of them out",
            )


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
