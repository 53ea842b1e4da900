"""Who is a case and who a control, which SNPs were looked at, and counts that callers hand over.

Counts are SNPs × 6, people with 0, 1, 2 copies of A1 among cases, then among controls. Rows may
have fewer people than the groups (missing genotypes), never more.

Phenotypes come from PLINK's .fam file, or from a phenotype file. 2 is a case, 1 a control, 0, -9
and words are missing, as in PLINK; people whose phenotype is missing are left out. Another number
would be a quantitative trait, which is refused. PLINK also leaves out people of unknown sex unless
it is told `--allow-no-sex`; here they count, unless `leave_out_no_sex` is set. Messages never quote
a person.

SNPs are public, in the order of the file. Chromosomes X, Y and the mitochondrial one are haploid in
some people, so their genotypes are not three classes; `autosomal` says which SNPs may be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from whosin.documents import MAX_STUDY_BYTES, read_text, read_words
from whosin.errors import InvalidInput, invalid_value, spell
from whosin.exact import Array
from whosin.gwas.bed import Groups
from whosin.gwas.relatives import find_families
from whosin.validation import read_path, read_whole

MAX_COUNT = 1 << 28
"""Groups beyond some hundred million people would not fit the arithmetic."""
COPY_STEP = Fraction(1, 256)
"""The grid of numbers of copies: the mean of a missing genotype is no whole number."""
IMPUTED_FRACTION_DIVISOR = 20
"""One in so many genotypes of a group is imputed at most; see `imputed_copies`."""


def read_counts(counts: object) -> Array:
    try:
        given = np.asarray(counts)
    except ValueError:
        message = "the rows of counts differ in length; every SNP needs six counts"
        raise InvalidInput(message, field="counts") from None
    if given.ndim != 2 or given.shape[1] != 6:
        message = f"counts need one row a SNP with six counts each; the shape is {given.shape}"
        raise InvalidInput(message, field="counts", value=given.shape)
    if given.dtype.kind not in "iuf" and given.size:
        raise invalid_value("counts", "whole numbers", f"values of type {given.dtype}")
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    if (whole != given).any():
        raise InvalidInput("some counts are not whole numbers", field="counts")
    if (whole < 0).any():
        raise InvalidInput("some counts are negative", field="counts")
    if (whole > MAX_COUNT).any():
        raise InvalidInput(f"some counts are above {spell(MAX_COUNT)}", field="counts")
    return whole


def group_sizes(counts: Array) -> tuple[Array, Array]:
    """People with a known genotype among cases and among controls, for every SNP."""
    return counts[:, :3].sum(axis=1), counts[:, 3:].sum(axis=1)


def allele_counts(counts: Array) -> tuple[Array, Array]:
    """Copies of A1 among cases (x) and among controls (y), for every SNP."""
    return counts[:, 1] + 2 * counts[:, 2], counts[:, 4] + 2 * counts[:, 5]


def missing_genotypes(counts: Array, cases: int, controls: int) -> Array:
    """SNPs × 2: how many cases and controls have no known genotype."""
    first, second = group_sizes(counts)
    if (first > cases).any() or (second > controls).any():
        raise InvalidInput(
            f"some SNPs count more people than the study's {cases} cases and {controls} controls",
            field="counts",
        )
    return np.stack([cases - first, controls - second], axis=1)


def imputed_copies(counts: Array, cases: int, controls: int, relation: str) -> tuple[Array, Array]:
    """Copies of A1 among all cases and all controls in units of `COPY_STEP`, where a missing
    genotype has as many as people have on average at that SNP.

    *Label swaps* keep that mean g, so each missing genotype counts g, and an exchange moves each of
    the two numbers by at most 2: floors of multiples of g differ by at most 2, as g does.

    *Genotype changes* move it: of R cases and S controls at most `most_imputed` = L_R and L_S are
    imputed (the others count 0), with g = m / max(known people, N − L), L = L_R + L_S. One person
    moves g by at most 2/(N−L), so the two numbers by at most 2 + L · 2/(N−L) = 2N/(N−L) together,
    and by less than a unit more for each rounding.
    """
    missing = missing_genotypes(counts, cases, controls)
    x, y = allele_counts(counts)
    known = cases + controls - missing.sum(axis=1)
    if relation == "genotype":
        most = most_imputed(cases), most_imputed(controls)
        missing = np.minimum(missing, most)
        known = np.maximum(known, cases + controls - sum(most))
    units = COPY_STEP.denominator
    mean = (x + y) * units
    people = np.maximum(known, 1)
    whole, part = mean // people, mean % people
    first, second = (
        copies * units + gone * whole + gone * part // people
        for copies, gone in zip((x, y), missing.T, strict=True)
    )
    return first, second


def most_imputed(people: int) -> int:
    """How many genotypes of a group are imputed at most, where genotypes are the secret."""
    return people // IMPUTED_FRACTION_DIVISOR


CASE, CONTROL = 2, 1
MIN_GROUP_SIZE = 2
"""Groups of fewer are refused: the sensitivities hold from two on."""


def read_groups(
    fam: Path, phenotypes: str | Path | None = None, leave_out_no_sex: bool = False
) -> Groups:
    """Cases and controls of a .fam file, their phenotypes from it or from another file."""
    return read_people(fam, phenotypes, leave_out_no_sex)[1]


PersonName = tuple[str, str]
"""Family and individual."""


def read_people(
    fam: Path, phenotypes: str | Path | None = None, leave_out_no_sex: bool = False
) -> tuple[list[PersonName], Groups]:
    """The names of the people of a .fam file, and who of them is a case or a control."""
    given_file = None if phenotypes is None else read_path(phenotypes, "phenotype file")
    rows = _read_columns(fam, 6)
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
    groups = _read_phenotypes(words, source)
    counted = groups.cases | groups.controls
    return names, replace(groups, related=find_families(rows, counted, fam.name))


def _read_phenotypes(words: list[str], source: str) -> Groups:
    status = np.array([_read_status(word, source) for word in words], dtype=np.int64)
    groups = Groups(status == CASE, status == CONTROL)
    check_sizes(*groups.sizes, source)
    return groups


def check_sizes(cases: int, controls: int, source: str = "the study") -> None:
    for name, size in (("cases", cases), ("controls", controls)):
        if read_whole(size, f"{name} in {source}", 0) < MIN_GROUP_SIZE:
            raise invalid_value(f"{name} in {source}", f"at least {MIN_GROUP_SIZE}", size)
        if size > MAX_COUNT:
            raise invalid_value(f"{name} in {source}", f"at most {spell(MAX_COUNT)}", size)


def sample_groups(samples: list[str], phenotypes: str | Path) -> Groups:
    """Cases and controls among the samples of a VCF file, found by their individual name."""
    path = read_path(phenotypes, "phenotype file")
    given: dict[str, str] = {}
    for (_, name), word in _phenotype_file(path).items():
        if name in given:
            message = f"{path.name} has an individual name more than once"
            raise InvalidInput(message, field=path.name, hint="keep one line a person")
        given[name] = word
    return _read_phenotypes([given.get(name, "0") for name in samples], path.name)


def _phenotype_file(path: Path) -> dict[tuple[str, str], str]:
    """FID, IID and phenotype (a .fam file is one too: then the sixth column counts)."""
    column = 5 if path.suffix == ".fam" else 2
    rows = _read_columns(path, column + 1)
    if rows and [word.lower() for word in rows[0][:2]] in (["fid", "iid"], ["#fid", "iid"]):
        rows = rows[1:]
    _check_distinct([(row[0], row[1]) for row in rows], path)
    return {(row[0], row[1]): row[column] for row in rows}


def _check_distinct(names: list[tuple[str, str]], path: Path) -> None:
    if len(set(names)) < len(names):
        message = f"{path.name} has a person (family and individual) more than once"
        raise InvalidInput(message, field=path.name, hint="keep one line a person")


def _read_columns(path: Path, columns: int) -> list[list[str]]:
    rows = read_words(path, MAX_STUDY_BYTES)
    if any(len(row) < columns for row in rows):
        message = (
            f"{path.name} has lines with fewer than {columns} columns; spaces or tabs separate them"
        )
        raise InvalidInput(message, field=path.name)
    return rows


def _read_status(word: str, source: str) -> int:
    try:
        number = float(word)
    except ValueError:
        return 0
    if number in (CASE, CONTROL):
        return int(number)
    if number in (0, -9) or number != number:
        return 0
    message = f"{source} has phenotypes other than 2 (case), 1 (control), 0 and -9 (missing)"
    raise InvalidInput(message, field="phenotypes")


HAPLOID_CHROMOSOMES = frozenset({"23", "24", "26", "X", "Y", "MT", "M"})


@dataclass(frozen=True, eq=False)
class Snps:
    """SNPs in the order of their counts; `a1` is the allele that is counted."""

    chromosome: list[str]
    name: list[str]
    position: Array
    a1: list[str]
    a2: list[str]

    def __len__(self) -> int:
        return len(self.name)

    def take(self, which: Array) -> Snps:
        words = self.chromosome, self.name, self.a1, self.a2
        chromosome, name, a1, a2 = ([column[int(index)] for index in which] for column in words)
        return Snps(chromosome, name, self.position[which], a1, a2)

    def columns(self) -> tuple[list[Any], ...]:
        return self.chromosome, self.name, self.position.tolist(), self.a1, self.a2

    def autosomal(self) -> Array:
        """Which SNPs are diploid in everybody."""
        haploid = {
            name for name in set(self.chromosome) if _plain_chromosome(name) in HAPLOID_CHROMOSOMES
        }
        if not haploid:
            return np.ones(len(self), dtype=bool)
        return np.array([chromosome not in haploid for chromosome in self.chromosome])


def _plain_chromosome(chromosome: str) -> str:
    return chromosome.upper().removeprefix("CHR")


def read_bim(path: Path) -> Snps:
    """Read a .bim file: chromosome, name, centimorgans, position, A1, A2."""
    words = read_text(path, path.name, MAX_STUDY_BYTES).split()
    if not words:
        raise InvalidInput(f"{path.name} is empty", field=path.name)
    if len(words) != 6 * count_lines(path):
        raise InvalidInput(f"every line of {path.name} must have six columns", field=path.name)
    try:
        position = np.array([int(word) for word in words[3::6]], dtype=np.int64)
    except (ValueError, OverflowError):
        message = f"some positions in {path.name} are not whole numbers"
        raise InvalidInput(message, field=path.name) from None
    return Snps(words[0::6], words[1::6], position, words[4::6], words[5::6])


def count_lines(path: Path) -> int:
    """How many lines a file has that are not empty."""
    data = path.read_bytes()
    if b"\n\n" in data or b"\r" in data:
        return sum(1 for line in data.splitlines() if line.strip())
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with (done, in all)."""


def check_instance(value: object, kind: type[T], field: str, accepted: str) -> T:
    if not isinstance(value, kind):
        raise invalid_value(field, accepted, type(value).__name__)
    return value


def check_sequence(values: object, field: str) -> list[object]:
    """A list, or another sequence, with something in it."""
    if not isinstance(values, list | tuple | range | np.ndarray) or not len(values):
        raise invalid_value(field, "a list with at least one number", repr(values)[:80])
    return list(values)


def check_progress(progress: object) -> Progress | None:
    """Whom to tell how far a work is."""
    if progress is not None and not callable(progress):
        accepted = "a function of two numbers, done and total"
        raise invalid_value("progress", accepted, type(progress).__name__)
    return progress
