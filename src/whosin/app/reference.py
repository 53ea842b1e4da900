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
)
from whosin.app.cli.main import make_app
from whosin.families import FAMILY_KINDS
from whosin.mechanisms import MECHANISM_KINDS
from whosin.notions import NOTION_KINDS
from whosin.release.engines import ENGINE_KINDS
from whosin.release.queries import QUERIES
from whosin.scenario_model import ScenarioModel

AUDIT_FUNCTIONS = (
    audit.two_worlds,
    audit.search,
    audit.neighbouring_vectors,
    audit.one_draw,
    audit.one_run,
    audit.curve_run,
    audit.training,
    audit.score_loss,
    audit.score_text_loss,
    audit.synthetic_score,
    audit.gradient_step,
    audit.synthetic,
    audit.scores,
    audit.Audit,
    audit.Scores,
    audit.OneRun,
    audit.CurveRun,
    audit.GaussianCurve,
    audit.ApproximateCurve,
    audit.TrainingAudit,
    audit.StepAudit,
    audit.SyntheticAudit,
    audit.Event,
)


def reference_markdown() -> str:
    """Return the reference page as Markdown."""
    named = [getattr(priors, name) for name in priors.__all__ if name != "Prior"]
    studies = [getattr(gwas, name) for name in gwas.__all__ if not name.isupper()]
    parts = [
        "# Reference",
        "Made from docstrings and commands by `make reference`.",
        _reference_section("Families", "wi.families", FAMILY_KINDS.values()),
        _reference_section("Priors", "wi.priors", named),
        _reference_section("Mechanisms", "wi.mechanisms", MECHANISM_KINDS.values()),
        _reference_section("Notions", "wi.notions", NOTION_KINDS.values()),
        _reference_section("Targets", "wi", calibration.TARGET_KINDS.values()),
        _reference_section("Audits", "wi.audit", AUDIT_FUNCTIONS),
        _reference_section("Noise", "wi.noise", [*noise.SAMPLERS, *noise.SELECTIONS, noise.Grid]),
        _reference_section("Association studies", "wi.gwas", studies),
        _reference_section("Releases", "wi", [release.Table, release.Session, ledger.Ledger]),
        _reference_section("Questions to a table", "wi.queries", QUERIES.values()),
        _reference_section("Engines", "wi.release", ENGINE_KINDS.values()),
        _reference_section("Plans", "wi", [calibration.calibrate, calibration.Plan]),
        _reference_section("Best mechanisms", "wi.distortion", [distortion.best]),
        _reference_section("Theorems", "wi.theorems", [theorems.convert]),
        _error_section(),
        _scenario_section(),
        _command_section(),
    ]
    return "\n\n".join(parts) + "\n"


def _reference_section(title: str, where: str, kinds: Iterable[Callable[..., object]]) -> str:
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


if __name__ == "__main__":
    print(reference_markdown(), end="")
