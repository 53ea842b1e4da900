"""Who is a case and who is a control: PLINK's .fam file, or a phenotype file.

Contract: 2 is a case, 1 a control, 0, -9 and words are missing, as in PLINK; people whose phenotype
is missing are left out. Another number would be a quantitative trait, which is refused. PLINK also
leaves out people of unknown sex unless it is told `--allow-no-sex`; here they count, unless
`leave_out_no_sex` is set. Messages never quote a person.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from whosin.documents import MOST_STUDY, read_words
from whosin.errors import InvalidInput
from whosin.gwas.kernel import Groups
from whosin.gwas.tables import LARGEST
from whosin.validation import path_of, whole

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
    _check_distinct(names, fam)
    if given_file is None:
        words = [row[5] for row in rows]
    else:
        given = _phenotype_file(given_file)
        words = [given.get(name, "0") for name in names]
    source = (given_file or fam).name
    if leave_out_no_sex:
        pairs = zip(words, rows, strict=True)
        words = [word if row[4] in ("1", "2") else "0" for word, row in pairs]
    return _groups(words, source)


def _groups(words: list[str], source: str) -> Groups:
    """Cases and controls from the phenotypes of people."""
    status = np.array([_status(word, source) for word in words], dtype=np.int64)
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
    return _groups([given.get(name, "0") for name in samples], path.name)


def _phenotype_file(path: Path) -> dict[tuple[str, str], str]:
    """FID, IID and phenotype (a .fam file is one too: then the sixth column counts)."""
    column = 5 if path.suffix == ".fam" else 2
    rows = _rows(path, column + 1)
    if rows and [word.lower() for word in rows[0][:2]] in (["fid", "iid"], ["#fid", "iid"]):
        rows = rows[1:]
    _check_distinct([(row[0], row[1]) for row in rows], path)
    return {(row[0], row[1]): row[column] for row in rows}


def _check_distinct(names: list[tuple[str, str]], path: Path) -> None:
    if len(set(names)) < len(names):
        accepted = "text with one line a person (family and individual)"
        raise InvalidInput(path.name, accepted, "repeated ones")


def _rows(path: Path, columns: int) -> list[list[str]]:
    rows = read_words(path, MOST_STUDY)
    if any(len(row) < columns for row in rows):
        accepted = f"text with at least {columns} columns in every line, apart by spaces or tabs"
        raise InvalidInput(path.name, accepted, "fewer")
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
