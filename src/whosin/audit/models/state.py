"""What an audit of training has done so far: its coins, its scores, its failures.

Contract: coins are tossed and kept before the first fit, so that an audit that was stopped goes on
with the same ones, and a run is never repeated until it looks better. The file is replaced as a
whole, is readable by its owner alone, and is refused for other rows or other terms.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from whosin import documents
from whosin.audit.models import coins as tossing
from whosin.errors import InvalidInput
from whosin.exact import Array

TARGET, SHADOW = "target", "shadow"
VERSION = 1


@dataclass
class TrainingRun:
    """One fit: its coins, and the scores once it is done."""

    role: str
    coins: Array
    scores: Array | None = None


@dataclass
class TrainingState:
    """All fits of an audit, done and to do.

    Attributes:
        terms: what must be the same when the audit is resumed.
        failures: names of the errors of fits that failed, with the role of each.
    """

    terms: dict[str, object]
    runs: list[TrainingRun]
    failures: list[list[str]] = field(default_factory=list)
    path: Path | None = None

    def save(self) -> None:
        """Replace the file, if there is one."""
        if self.path is None:
            return
        runs = [
            {
                "role": run.role,
                "coins": tossing.spell(run.coins),
                "scores": None if run.scores is None else [_spell(each) for each in run.scores],
            }
            for run in self.runs
        ]
        data = {"version": VERSION, "terms": self.terms, "runs": runs, "failures": self.failures}
        beside = self.path.with_name(self.path.name + ".new")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InvalidInput("state", "a file that can be written", reason) from error


def load(path: Path, terms: dict[str, object], canaries: int) -> TrainingState:
    """The state of an audit that was stopped.

    Raises:
        InvalidInput: it belongs to other rows or terms, or is not the file of an audit.
    """
    data = documents.read_object(path, "state")
    accepted = "a file that this audit wrote"
    try:
        known, runs, failures = data["terms"], data["runs"], data["failures"]
        read = [_run(each, canaries) for each in runs]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidInput("state", accepted, path.name) from None
    if data.get("version") != VERSION or not isinstance(known, dict):
        raise InvalidInput("state", accepted, path.name)
    other = [key for key, value in terms.items() if known.get(key) != value]
    if other:
        words = f"an audit of other {' and '.join(other)}"
        raise InvalidInput("state", "of the same rows and terms, or a new file", words)
    return TrainingState(known, read, [list(each) for each in failures], path)


def _run(entry: Any, canaries: int) -> TrainingRun:
    scores = entry["scores"]
    values = None if scores is None else np.array([float(each) for each in scores])
    if entry["role"] not in (TARGET, SHADOW) or (values is not None and len(values) != canaries):
        raise ValueError(entry["role"])
    return TrainingRun(entry["role"], tossing.read(entry["coins"], canaries), values)


def _spell(score: float) -> float | str:
    return float(score) if np.isfinite(score) else repr(float(score))
