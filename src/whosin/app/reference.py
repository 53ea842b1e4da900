"""The reference page, made from docstrings and commands when the documentation is built."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import typer

import whosin
from whosin import (
    audit,
    bridges,
    calibration,
    curves,
    distortion,
    errors,
    families,
    gwas,
    ledger,
    marginals,
    mechanisms,
    noise,
    notions,
    priors,
    refinement,
    release,
    rules,
    spaces,
    theorems,
)
from whosin.app.cli.main import make_app
from whosin.release import engines, queries
from whosin.scenario_model import ScenarioModel

# (title, the name that users write, where its public names are)
ROOMS = (
    ("Families", "wi.families", families),
    ("Priors", "wi.priors", priors),
    ("Spaces and statistics", "wi.spaces", spaces),
    ("Mechanisms", "wi.mechanisms", mechanisms),
    ("Notions", "wi.notions", notions),
    ("Refinement", "wi.refinement", refinement),
    ("Theorems", "wi.theorems", theorems),
    ("Plans", "wi.calibration", calibration),
    ("Trade-off curves", "wi.curves", curves),
    ("Rules", "wi.rules", rules),
    ("Best mechanisms", "wi.distortion", distortion),
    ("Noise", "wi.noise", noise),
    ("Releases", "wi.release", release),
    ("Questions to a table", "wi.queries", queries),
    ("Engines", "wi.release", engines),
    ("Marginals", "wi.marginals", marginals),
    ("Ledgers", "wi.ledger", ledger),
    ("Audits", "wi.audit", audit),
    ("Association studies", "wi.gwas", gwas),
    ("Other tools", "wi.bridges", bridges),
)


def reference_markdown() -> str:
    parts = [
        "# Reference",
        "Made from docstrings and commands when the documentation is built.",
        *(_room_section(title, where, room) for title, where, room in ROOMS),
        _error_section(),
        _scenario_section(),
        _command_section(),
    ]
    return "\n\n".join(parts) + "\n"


def _room_section(title: str, where: str, room: ModuleType) -> str:
    """What the room shows and what it has registered, by name."""
    shown = [getattr(room, name) for name in room.__all__]
    registered = [kind for item in shown if isinstance(item, Mapping) for kind in item.values()]
    kinds = {
        item.__name__: item
        for item in (*shown, *registered)
        if callable(item) and hasattr(item, "__name__")
    }
    blocks = [f"## {title}"]
    for name in sorted(kinds, key=str.lower):
        prefix = "wi" if getattr(whosin, name, None) is kinds[name] else where
        heading = f"### `{prefix}.{name}({', '.join(_list_fields(kinds[name]))})`"
        blocks.append(f"{heading}\n\n```text\n{inspect.getdoc(kinds[name]) or ''}\n```")
    return "\n\n".join(blocks)


def _list_fields(item: Callable[..., object]) -> list[str]:
    parameters = inspect.signature(item).parameters.items()
    return [
        name
        for name, parameter in parameters
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name != "source"
    ]


def _error_section() -> str:
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    ours = [each for each in kinds if issubclass(each, errors.WhosinError)]
    lines = [f"- `wi.errors.{each.__name__}`: {_first_sentence(each)}" for each in ours]
    return "\n\n".join(["## Errors", "\n".join(lines)])


def _first_sentence(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")


def _scenario_section() -> str:
    blocks = ["## Keys of a scenario"]
    for section in filter(None, (key.kind.section for key in ScenarioModel.known_keys().values())):
        lines = [f"- `{key.name}` {key.description}" for key in section.known_keys().values()]
        blocks.append("\n\n".join([f"### `{section.place}`", "\n".join(lines)]))
    return "\n\n".join(blocks)


def _command_section() -> str:
    group = typer.main.get_command(make_app())
    blocks = ["## Commands"]
    commands = getattr(group, "commands", {})
    for name, command in _flatten_commands("", commands):
        lines = [f"### `whosin {name}`", inspect.cleandoc(command.help or "")]
        options = [
            f"- `{', '.join(param.opts)}` {getattr(param, 'help', '') or ''}".rstrip()
            for param in command.params
        ]
        blocks.append("\n\n".join([*lines, "\n".join(options)]))
    return "\n\n".join(blocks)


def _flatten_commands(prefix: str, commands: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """All commands, those of groups under the group's name."""
    for name, command in commands.items():
        if hasattr(command, "commands"):
            yield from _flatten_commands(f"{prefix}{name} ", command.commands)
        else:
            yield f"{prefix}{name}", command
