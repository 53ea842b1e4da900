"""Who is a case and who is a control: PLINK's .fam file, or a phenotype file.

Contract: 2 is a case, 1 a control, 0, -9 and words are missing, as in PLINK; people whose phenotype
is missing are left out. Another number would be a quantitative trait, which is refused. PLINK also
leaves out people of unknown sex unless it is told `--allow-no-sex`; here they count, unless
`leave_out_no_sex` is set. Messages never quote a person.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whosin.documents import MOST_STUDY, read_rows
from whosin.errors import InvalidInput
from whosin.gwas.kernel import Groups
from whosin.gwas.tables import LARGEST
from whosin.validation import path_of, whole

if TYPE_CHECKING:
    from whosin.exact import Array

CASE, CONTROL = 2, 1
SMALLEST = 2
"""Groups of fewer are refused: the sensitivities hold from two on."""


def read_groups(
    fam: Path, phenotypes: str | Path | None = None, leave_out_no_sex: bool = False
) -> Groups:
    """Cases and controls of a .fam file, their phenotypes from it or from another file."""
    given_file = None if phenotypes is None else path_of(phenotypes, "phenotype file")
    rows = _rows(fam, 6)
    names = [(row[0], row[1]) for row in rows]
    if len(set(names)) < len(names):
        raise InvalidInput(
            fam.name, "text with one line a person (family and individual)", "repeated ones"
        )
    if given_file is None:
        words = [row[5] for row in rows]
    else:
        given = _phenotype_file(given_file)
        words = [given.get(name, "0") for name in names]
    source = (given_file or fam).name
    status = np.array([_status(word, source) for word in words], dtype=np.int64)
    if leave_out_no_sex:
        status[np.array([row[4] not in ("1", "2") for row in rows])] = 0
    groups = Groups(status == CASE, status == CONTROL)
    check_sizes(*groups.sizes, source)
    return groups


def check_sizes(cases: int, controls: int, source: str = "the study") -> None:
    """Refuse groups of fewer than two."""
    for name, size in (("cases", cases), ("controls", controls)):
        if whole(size, f"{name} in {source}", 0) < SMALLEST:
            raise InvalidInput(f"{name} in {source}", f"at least {SMALLEST}", size)
        if size > LARGEST:
            raise InvalidInput(f"{name} in {source}", f"at most {LARGEST:,}", size)


def sample_groups(samples: list[str], phenotypes: str | Path) -> Groups:
    """Cases and controls among the samples of a VCF file, found by their individual name."""
    path = path_of(phenotypes, "phenotype file")
    given: dict[str, str] = {}
    for (_, name), word in _phenotype_file(path).items():
        if name in given:
            raise InvalidInput(path.name, "text with one line an individual name", "repeated ones")
        given[name] = word
    status = np.array([_status(given.get(name, "0"), path.name) for name in samples])
    groups = Groups(status == CASE, status == CONTROL)
    check_sizes(*groups.sizes, path.name)
    return groups


def _phenotype_file(path: Path) -> dict[tuple[str, str], str]:
    """FID, IID and phenotype (a .fam file is one too: then the sixth column counts)."""
    rows = _rows(path, 3)
    if rows and [word.lower() for word in rows[0][:2]] in (["fid", "iid"], ["#fid", "iid"]):
        rows = rows[1:]
    column = 5 if path.suffix == ".fam" else 2
    if any(len(row) <= column for row in rows):
        raise InvalidInput(
            path.name, f"text with at least {column + 1} columns in every line", "fewer"
        )
    found = {(row[0], row[1]): row[column] for row in rows}
    if len(found) < len(rows):
        raise InvalidInput(
            path.name, "text with one line a person (family and individual)", "repeated ones"
        )
    return found


def _rows(path: Path, columns: int) -> list[list[str]]:
    rows = read_rows(path, MOST_STUDY)
    if any(len(row) < columns for row in rows):
        raise InvalidInput(
            path.name, f"text with at least {columns} columns in every line", "fewer"
        )
    return rows


def _status(word: str, source: str) -> int:
    try:
        number = float(word)
    except ValueError:
        return 0
    if number in (CASE, CONTROL):
        return int(number)
    if number in (0, -9) or number != number:
        return 0
    raise InvalidInput(
        f"phenotypes in {source}", "2 (case), 1 (control), 0 or -9 (missing)", "another number"
    )


def group_array(cases: Array, controls: Array) -> Groups:
    """Groups from two Boolean arrays."""
    first, second = np.asarray(cases, dtype=bool), np.asarray(controls, dtype=bool)
    if first.shape != second.shape or first.ndim != 1:
        raise InvalidInput("cases and controls", "Boolean arrays of one length", first.shape)
    if (first & second).any():
        raise InvalidInput("cases and controls", "disjoint", "someone who is both")
    check_sizes(int(first.sum()), int(second.sum()))
    return Groups(first, second)
