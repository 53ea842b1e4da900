"""The reference page, made from docstrings and commands: `python -m whosin.app.reference`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import typer

from whosin import (
    audit,
    calibration,
    distortion,
    errors,
    gwas,
    ledger,
    noise,
    priors,
    release,
    theorems,
    vocabulary,
)
from whosin.app.cli.main import app
from whosin.families import FAMILIES
from whosin.mechanisms import MECHANISMS
from whosin.notions import NOTIONS
from whosin.release.engines import ENGINES
from whosin.release.queries import QUERIES

AUDITS = (
    audit.two_worlds,
    audit.search,
    audit.neighbours,
    audit.one_draw,
    audit.one_run,
    audit.curve_run,
    audit.model,
    audit.from_loss,
    audit.from_text_loss,
    audit.from_synthetic,
    audit.gradient_step,
    audit.synthetic_table,
    audit.scores,
    audit.Audit,
    audit.Scores,
    audit.OneRun,
    audit.CurveRun,
    audit.GaussianCurve,
    audit.ApproximateCurve,
    audit.ModelAudit,
    audit.StepAudit,
    audit.SyntheticAudit,
    audit.Event,
)


def markdown() -> str:
    """The whole page."""
    named = [getattr(priors, name) for name in priors.__all__ if name != "Prior"]
    studies = [getattr(gwas, name) for name in gwas.__all__ if not name.isupper()]
    parts = [
        "# Reference",
        "Made from docstrings and commands by `make reference`.",
        _section("Families", "wi.families", FAMILIES.values()),
        _section("Priors", "wi.priors", named),
        _section("Mechanisms", "wi.mechanisms", MECHANISMS.values()),
        _section("Notions", "wi.notions", NOTIONS.values()),
        _section("Targets", "wi", calibration.TARGETS.values()),
        _section("Audits", "wi.audit", AUDITS),
        _section("Noise", "wi.noise", [*noise.SAMPLERS, *noise.SELECTIONS, noise.Grid]),
        _section("Association studies", "wi.gwas", studies),
        _section("Releases", "wi", [release.Table, release.Session, ledger.Ledger]),
        _section("Questions to a table", "wi.queries", QUERIES.values()),
        _section("Engines", "wi.release", ENGINES.values()),
        _section("Plans", "wi", [calibration.calibrate, calibration.Plan]),
        _section("Best mechanisms", "wi.distortion", [distortion.best]),
        _section("Theorems", "wi.theorems", [theorems.convert]),
        _errors(),
        _scenario(),
        _commands(),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, where: str, kinds: Iterable[Callable[..., object]]) -> str:
    blocks = [f"## {title}"]
    for kind in kinds:
        fields = [
            name
            for name, parameter in inspect.signature(kind).parameters.items()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name != "source"
        ]
        text = inspect.getdoc(kind) or ""
        blocks.append(f"### `{where}.{kind.__name__}({', '.join(fields)})`\n\n```text\n{text}\n```")
    return "\n\n".join(blocks)


def _errors() -> str:
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    ours = [each for each in kinds if issubclass(each, errors.WhosinError)]
    lines = [f"- `wi.errors.{each.__name__}`: {_first_sentence(each)}" for each in ours]
    return "\n\n".join(["## Errors", "\n".join(lines)])


def _first_sentence(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")


def _scenario() -> str:
    blocks = ["## Keys of a scenario"]
    for section, words in vocabulary.SCENARIO.items():
        lines = [f"- `{word.name}` {word.help}" for word in words.values()]
        blocks.append("\n\n".join([f"### `[{section}]`", "\n".join(lines)]))
    for section, words in vocabulary.LISTS.items():
        lines = [f"- `{word.name}` {word.help}" for word in words.values()]
        blocks.append("\n\n".join([f"### `[[{section}]]`", "\n".join(lines)]))
    return "\n\n".join(blocks)


def _commands() -> str:
    group = typer.main.get_command(app)
    blocks = ["## Commands"]
    commands = getattr(group, "commands", {})
    for name, command in _flat("", commands):
        lines = [f"### `whosin {name}`", inspect.cleandoc(command.help or "")]
        options = [
            f"- `{', '.join(param.opts)}` {getattr(param, 'help', '') or ''}".rstrip()
            for param in command.params
        ]
        blocks.append("\n\n".join([*lines, "\n".join(options)]))
    return "\n\n".join(blocks)


def _flat(prefix: str, commands: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """All commands, those of groups under the group's name."""
    for name, command in commands.items():
        if hasattr(command, "commands"):
            yield from _flat(f"{prefix}{name} ", command.commands)
        else:
            yield f"{prefix}{name}", command


if __name__ == "__main__":
    print(markdown(), end="")
