"""Answers as files: JSON with everything, CSV or Parquet with the numbers and their marks."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

from whosin.release import Answer, Release
from whosin.release.columns.cells import free
from whosin.report.files import check_writable
from whosin.report.table_views import NUMBERS

SUFFIXES = (".json", ".csv", ".parquet")
NOISY = "noisy"


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
        file.write_bytes(csv_bytes(answer) if kind == ".csv" else parquet_bytes(answer))
    return files


def csv_bytes(answer: Answer) -> bytes:
    """An answer, or one table of it, as the text of a CSV file."""
    from pyarrow import csv

    out = io.BytesIO()
    csv.write_csv(file_table(answer), out)
    return out.getvalue()


def parquet_bytes(answer: Answer) -> bytes:
    """An answer, with all its tables, as a Parquet file."""
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(file_table(answer), out)
    return out.getvalue()


def file_table(answer: Answer) -> Any:
    """An answer as a pyarrow Table, as files keep it: `noisy` says of each row whether it is too
    noisy to read. An answer of several tables has a column for each column that a table is by,
    null where a table is not by it."""
    import pyarrow as pa

    table = answer.to_arrow()
    for position, (name, labels) in enumerate(_key_columns(answer).items(), 2):
        column = free(name, [*table.column_names, NOISY])
        table = table.add_column(position, column, pa.array(labels, pa.string()))
    if not answer.noisy:
        return table
    return table.append_column(free(NOISY, table.column_names), pa.array(answer.noisy))


def _key_columns(answer: Answer) -> dict[str, list[str | None]]:
    """For each column that tables are by, its label in each row."""
    tables = answer.tables
    names = dict.fromkeys(key for each in tables for key in each.columns if key not in NUMBERS)
    result: dict[str, list[str | None]] = {name: [] for name in names}
    for each in tables:
        columns = {name: at for at, name in enumerate(each.columns)}
        for name, labels in result.items():
            own = columns.get(name)
            labels += [None if own is None else str(row[own]) for row in each.rows]
    return result


def _names(answers: list[Answer], path: Path) -> list[Path]:
    if len(answers) == 1:
        return [path]
    files: list[Path] = []
    for number, answer in enumerate(answers, 1):
        name = f"{path.stem}-{number}-{plain_name(answer.title)}{path.suffix}"
        files.append(path.with_name(name))
    return files


def plain_name(title: str) -> str:
    """A title as a part of a file's name."""
    return re.sub(r"[^\w-]+", "-", title).strip("-").lower() or "answer"
