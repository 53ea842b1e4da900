"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Draw = Annotated[Path | None, typer.Option("--save", help="Draw: x.html, x.svg or x.png.")]
ScenarioFile = Annotated[Path, typer.Argument(help="A scenario file (TOML).")]
