"""The words of `vocabulary` as options, the same for every command that takes them.

Contract: a command decorated with `with_words("target", "adversary")` has an option for each word
and gets two mappings, `target` and `adversary`, of the words that were said; `calibration.reading`
reads them. Errors at a path are shown as the option that they are about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from whosin import vocabulary
from whosin.vocabulary import Word

SECTIONS = {
    "target": vocabulary.TARGET,
    "adversary": vocabulary.ADVERSARY,
    "notion_words": vocabulary.NOTION,
    "mechanism_words": vocabulary.MECHANISM,
}
TYPES = {"whole": int | None, "flag": bool, "file": Path | None}
Command = TypeVar("Command", bound=Callable[..., Any])


def with_words(*sections: str, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Give a command the options of these sections, but for some words."""
    words = {
        name: [word for word in SECTIONS[name].values() if word.name not in without]
        for name in sections
    }

    def decorate(command: Command) -> Command:
        def call(**given: Any) -> Any:
            said = {
                name: {word.name: given.pop(_name(word)) for word in listed}
                for name, listed in words.items()
            }
            return command(**given, **{name: _said(values) for name, values in said.items()})

        own = list(signature(command, eval_str=True).parameters.values())
        first = [each for each in own if each.default is Parameter.empty]
        first = [each for each in first if each.name not in sections]
        rest = [each for each in own if each.default is not Parameter.empty]
        options = [_option(word) for listed in words.values() for word in listed]
        result = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*first, *options, *rest)]
        call.__signature__ = signature(command).replace(parameters=result)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in result}
        call.__doc__, call.__name__ = command.__doc__, command.__name__
        call.__module__ = command.__module__
        return call  # type: ignore[return-value]

    return decorate


def as_option(path: str, options: Mapping[str, str]) -> str:
    """The option of a path such as adversary.prior, where a command has one; else the path."""
    section, _, word = path.partition(".")
    known = {*SECTIONS, "budget"}
    return options.get(word, path) if {section, f"{section}_words"} & known else path


def option_of(error: Exception, options: Mapping[str, str], given: Sequence[str]) -> str:
    """The option that an error's field is called by, where it was given; else nothing."""
    option = options.get(str(getattr(error, "field", "")).replace("_", "-"), "")
    said = {word.partition("=")[0] for word in given}
    return option if option.startswith("--") and option in said else ""


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in values.items() if each is not None and each is not False}


def _name(word: Word) -> str:
    return word.name.replace("-", "_")


def _option(word: Word) -> Parameter:
    spelled = [f"--{word.name}", *([word.short] if word.short else [])]
    kind = TYPES.get(word.takes, str | None)
    option = typer.Option(*spelled, help=word.help)
    default = False if word.takes == "flag" else None
    return Parameter(
        _name(word), Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )
