"""Answers as files: JSON with everything, CSV or Parquet with the numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

from whosin.release import Answer, Release
from whosin.report.files import check_writable

SUFFIXES = (".json", ".csv", ".parquet")


def check_path(path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is spent."""
    if path is not None:
        check_writable(path, "--save", SUFFIXES)


def save(release: Release, path: Path) -> list[Path]:
    """Write the answers; CSV and Parquet take one file for each, named after it. An answer of
    several tables is one Parquet file, and a CSV file for each table."""
    check_path(path)
    kind = path.suffix.lower()
    if kind == ".json":
        text = json.dumps(release.to_dict(), ensure_ascii=False, indent=2)
        path.touch(0o600)  # a new file is for its owner only
        path.write_text(text + "\n", encoding="utf-8")
        return [path]
    answers = list(release.answers)
    if kind == ".csv":
        answers = [each for answer in answers for each in answer.tables or (answer,)]
    files = _names(answers, path)
    for answer, file in zip(answers, files, strict=True):
        file.touch(0o600)
        _write(answer, file, kind)
    return files


def _write(answer: Answer, file: Path, kind: str) -> None:
    if kind == ".csv":
        from pyarrow import csv

        csv.write_csv(answer.to_arrow(), file)
    else:
        from pyarrow import parquet

        parquet.write_table(answer.to_arrow(), file)


def _names(answers: list[Answer], path: Path) -> list[Path]:
    if len(answers) == 1:
        return [path]
    files: list[Path] = []
    for number, answer in enumerate(answers, 1):
        plain = re.sub(r"[^\w-]+", "-", answer.title).strip("-").lower() or "answer"
        files.append(path.with_name(f"{path.stem}-{number}-{plain}{path.suffix}"))
    return files
