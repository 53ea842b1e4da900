"""Who is a case and who a control, which SNPs and loci are looked at, and counts of callers.

Counts are SNPs × 6, people with 0, 1, 2 copies of A1 among cases, then among controls. Rows may
have fewer people than the groups (missing genotypes), never more.

Phenotypes come from PLINK's .fam file, or from a phenotype file. 2 is a case, 1 a control, 0, -9
and words are missing, as in PLINK; people whose phenotype is missing are left out. Another number
would be a quantitative trait, for which there is `gwas.traits`. PLINK also leaves out people of
unknown sex unless it is told `--allow-no-sex`; here they count, unless `leave_out_no_sex` is set.
Messages never quote a person.

SNPs are public, in the order of the file; lists of people, of SNPs and of allele frequencies that
choose among them (`StudyFilter`) must be public too.

On X outside its pseudo-autosomal regions a male has one copy: it counts as none or two, as in the
file, and a heterozygous male as missing. Y and mitochondrial SNPs are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from whosin.documents import MAX_STUDY_BYTES, read_text, read_words
from whosin.errors import InvalidInput, UnknownName, invalid_value, read_path, read_whole, spell
from whosin.exact import Array, rational, read_ranged
from whosin.gwas.bed import Groups
from whosin.gwas.relatives import find_families

Said = TypeVar("Said")
MAX_COUNT = 1 << 28
"""Groups beyond some hundred million people would not fit the arithmetic."""
COPY_STEP = Fraction(1, 256)
"""The grid of numbers of copies: the mean of a missing genotype is no whole number."""


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
    """Copies of A1 among all cases and all controls in units of `COPY_STEP`, missing genotypes
    imputed. A neighbour moves each of the two numbers by at most 2.

    *Labels secret:* a missing genotype has as many copies as people have on average at that SNP.
    That mean g stays when labels are exchanged, and so does the pooled number; floors of multiples
    of g differ by at most 2, as g does.

    *Genotypes secret:* the mean would move with every genotype, so a missing one has one copy,
    whichever allele is counted. A genotype then moves one of the two numbers alone.
    """
    missing = missing_genotypes(counts, cases, controls)
    x, y = allele_counts(counts)
    units = COPY_STEP.denominator
    if relation == "genotype":
        return (x + missing[:, 0]) * units, (y + missing[:, 1]) * units
    known = np.maximum(cases + controls - missing.sum(axis=1), 1)
    whole, part = (x + y) * units // known, (x + y) * units % known

    def imputed(gone: Array) -> Array:
        return np.asarray(gone * whole + gone * part // known)

    first = x * units + imputed(missing[:, 0])
    return first, (x + y) * units + imputed(missing.sum(axis=1)) - first


CASE, CONTROL = 2, 1
MIN_GROUP_SIZE = 2
"""Groups of fewer are refused: the sensitivities hold from two on."""


PersonName = tuple[str, str]
"""Family and individual."""
KeepList = str | Path | frozenset[PersonName] | None
"""Who is studied: a file of people, or the people; everybody by default."""


def read_people(
    fam: Path,
    phenotypes: str | Path | None = None,
    leave_out_no_sex: bool = False,
    keep: KeepList = None,
) -> tuple[list[PersonName], Groups]:
    """The names of the people of a .fam or .psam file, and who of them is a case or a control.

    Whoever is not in the list `keep` is neither: like people without a phenotype, they stay in the
    study's pooled genotypes, to which a budget for genomes is bound.
    """
    given_file = None if phenotypes is None else read_path(phenotypes, "phenotype file")
    rows = _person_rows(fam)
    names = [(row[0], row[1]) for row in rows]
    _check_distinct(names, fam)
    if given_file is None:
        words = [row[5] for row in rows]
    else:
        words = find_people(names, _phenotype_file(given_file), given_file, "0")
    source = (given_file or fam).name
    if leave_out_no_sex:
        pairs = zip(words, rows, strict=True)
        words = [word if row[4] in ("1", "2") else "0" for word, row in pairs]
    groups = _read_phenotypes(_keep_people(names, words, keep), source)
    return names, _describe_groups(groups, rows, fam)


def _describe_groups(groups: Groups, rows: list[list[str]], fam: Path) -> Groups:
    """Groups with the sexes and families of a .fam file."""
    counted = groups.cases | groups.controls
    sexes = [row[4] for row in rows]
    males = np.array([sex == "1" for sex in sexes]) if {"1", "2"} & set(sexes) else None
    related = find_families(rows, counted, fam.name)
    return replace(groups, related=related, males=males)


MISSING_WORDS = frozenset({"na", "nan", "-9", "none", ".", ""})


def read_trait_people(
    fam: Path, trait: Path, keep: KeepList = None
) -> tuple[list[PersonName], list[str], Groups]:
    """The names of the people of a .fam or .psam file, what a trait file says of each ("NA" of
    people who are not in it, or not in the list `keep`), and who has a value: they are counted by
    turns as cases and as controls, which means nothing."""
    rows = _person_rows(fam)
    names = [(row[0], row[1]) for row in rows]
    _check_distinct(names, fam)
    words = find_people(names, _phenotype_file(trait), trait, "NA")
    words = _keep_people(names, words, keep, "NA")
    valued = np.array([not _is_missing(word) for word in words], dtype=bool)
    turns = np.cumsum(valued) % 2 == 0
    return names, words, _describe_groups(Groups(valued & turns, valued & ~turns), rows, fam)


def _is_missing(word: str) -> bool:
    """NA and the like, and -9 however it is written, as in PLINK."""
    if word.lower() in MISSING_WORDS:
        return True
    try:
        return float(word) == -9
    except ValueError:
        return False


def _person_rows(path: Path) -> list[list[str]]:
    """The rows of a .fam file, or of a .psam file as if it were one: family (0 where there is
    none), individual, father, mother, sex (1, 2 or 0), first phenotype (0 where there is none)."""
    if path.suffix != ".psam":
        rows = read_words(path, MAX_STUDY_BYTES)
        if any(len(row) < 6 for row in rows):
            message = f"{path.name} has lines of fewer than 6 columns; spaces or tabs separate them"
            raise InvalidInput(message, field=path.name)
        return rows
    rows = [row for row in read_words(path, MAX_STUDY_BYTES) if not row[0].startswith("##")]
    header = [word.removeprefix("#").upper() for word in rows[0]] if rows else []
    if header and rows[0][0].upper() in ("#FID", "#IID"):
        rows = rows[1:]
    else:
        header = ["FID", "IID", "PAT", "MAT", "SEX", "PHENO1"]
    if "IID" not in header or any(len(row) < len(header[:5]) for row in rows):
        message = f"{path.name} needs a header such as #FID IID SEX PHENO1, and a word in each cell"
        raise InvalidInput(message, field=path.name)
    known = ("FID", "IID", "SID", "PAT", "MAT", "SEX")
    traits = [place for place, name in enumerate(header) if name not in known]
    places = [header.index(name) if name in header else None for name in known]
    family, person, _, father, mother, sex = places
    wanted = [family, person, father, mother, sex, traits[0] if traits else None]
    people = [["0" if at is None or at >= len(row) else row[at] for at in wanted] for row in rows]
    for row in people:
        row[4] = PSAM_SEXES.get(row[4].upper(), "0")
    return people


PSAM_SEXES = {"1": "1", "M": "1", "2": "2", "F": "2"}


def find_people(
    names: list[PersonName], given: dict[PersonName, Said], file: Path, missing: Said
) -> list[Said]:
    """What a file says of people, `missing` where it says nothing. Where it or the study has no
    families, the individual name decides."""
    if all(family == "0" for family, _ in given) or all(family == "0" for family, _ in names):
        own = [name for _, name in names]
        if len(set(own)) == len(own):
            by_name = {name: word for (_, name), word in given.items()}
            if len(by_name) < len(given):
                message = f"{file.name} has an individual name more than once"
                raise InvalidInput(message, field=file.name, hint="keep one line a person")
            return [by_name.get(name, missing) for name in own]
    return [given.get(name, missing) for name in names]


def _keep_people(
    names: list[PersonName], words: list[str], keep: KeepList, missing: str = "0"
) -> list[str]:
    """Phenotypes of the people in a list; the others' are missing."""
    if keep is None:
        return words
    if isinstance(keep, frozenset):
        pairs = zip(words, names, strict=True)
        return [word if name in keep else missing for word, name in pairs]
    file = read_path(keep, "--keep")
    listed = find_people(names, {name: True for name, _ in read_person_words(file)}, file, False)
    if not any(listed):
        message = f"nobody in {file.name} is in the study"
        hint = "write family and individual name of one person a line, as in the .fam file"
        raise InvalidInput(message, field="--keep", value=file.name, hint=hint)
    return [word if there else missing for word, there in zip(words, listed, strict=True)]


def read_person_words(path: Path) -> list[tuple[PersonName, list[str]]]:
    """People of a list as PLINK takes it, with what their lines say of them: FID and IID a line, or
    IID alone (the family is then 0), after a header (#FID, #IID) or without one."""
    rows = read_words(path, MAX_STUDY_BYTES)
    head = rows[0][0].upper().removeprefix("#")
    if head == "IID" or all(len(row) == 1 for row in rows):
        rows = [["0", *row] for row in rows]
    if head in ("FID", "IID"):
        rows = rows[1:]
    if any(len(row) < 2 for row in rows):
        message = f"some lines of {path.name} have no individual name beside the family's"
        raise InvalidInput(message, field=path.name, hint="write FID and IID on each line")
    return [((row[0], row[1]), row[2:]) for row in rows]


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


def sample_groups(samples: list[str], phenotypes: str | Path, keep: KeepList = None) -> Groups:
    """Cases and controls among the samples of a VCF file, found by their individual name."""
    path = read_path(phenotypes, "phenotype file")
    names = [("0", name) for name in samples]
    _check_distinct(names, path)
    words = find_people(names, _phenotype_file(path), path, "0")
    return _read_phenotypes(_keep_people(names, words, keep), path.name)


def _phenotype_file(path: Path) -> dict[PersonName, str]:
    """The phenotype of each person of a list; of a .fam or .psam file, its first one."""
    if path.suffix in (".fam", ".psam"):
        given = [((row[0], row[1]), row[5:]) for row in _person_rows(path)]
    else:
        given = read_person_words(path)
    if not all(words for _, words in given):
        message = f"{path.name} has lines without a phenotype"
        raise InvalidInput(message, field=path.name, hint="write FID, IID and 1 or 2 on each line")
    _check_distinct([name for name, _ in given], path)
    return {name: words[0] for name, words in given}


def _check_distinct(names: list[PersonName], path: Path) -> None:
    if len(set(names)) < len(names):
        message = f"{path.name} has a person (family and individual) more than once"
        raise InvalidInput(message, field=path.name, hint="keep one line a person")


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
    hint = "give a quantitative trait with --trait and --trait-range"
    raise InvalidInput(message, field="phenotypes", hint=hint)


X_CHROMOSOMES = frozenset({"23", "X"})
HAPLOID_CHROMOSOMES = frozenset({"24", "26", "Y", "MT", "M"})
"""The chromosomes that are left out: nobody has two of them, or only some people have one."""
PSEUDOAUTOSOMAL_BOUNDS = {
    "hg18": (2_709_521, 154_584_237),
    "hg19": (2_699_520, 154_931_044),
    "hg38": (2_781_479, 155_701_383),
}
"""Last and first position of the two pseudo-autosomal regions of X, by genome build (those of
PLINK's --split-x)."""


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

    def on(self, chromosomes: frozenset[str]) -> Array:
        """Which SNPs are on these chromosomes (`chrX` is X)."""
        plain = {name: name.upper().removeprefix("CHR") for name in set(self.chromosome)}
        names = {name for name, known in plain.items() if known in chromosomes}
        if not names:
            return np.zeros(len(self), dtype=bool)
        return np.array([chromosome in names for chromosome in self.chromosome])

    def x_linked(self, build: str | None = None) -> Array:
        """Which SNPs males have once: those on X, but for its pseudo-autosomal regions, which have
        a chromosome of their own (25, XY, PAR1, PAR2) or are told by position in a genome build."""
        found = self.on(X_CHROMOSOMES)
        if build is None:
            return found
        first, second = PSEUDOAUTOSOMAL_BOUNDS[build]
        return np.asarray(found & (self.position > first) & (self.position < second))


@dataclass(frozen=True)
class StudyFilter:
    """Which people and SNPs of a file are studied, by lists that are public.

    Args:
        keep: a file of people, FID and IID a line; or the people.
        extract: a file of SNP names.
        maf: the least frequency of the rarer allele, by `frequencies`.
        frequencies: a file of public allele frequencies (.frq or .afreq of a reference). The
            study's own are private: which SNPs they leave would tell something of its people.
        split_par: the genome build (hg18, hg19, hg38) whose pseudo-autosomal regions of X are
            diploid, where the file does not give them a chromosome of their own.
    """

    keep: KeepList = None
    extract: str | Path | None = None
    maf: object = None
    frequencies: str | Path | None = None
    split_par: str | None = None

    def __post_init__(self) -> None:
        if self.maf is not None and self.frequencies is None:
            message = "--maf needs allele frequencies that are public"
            hint = "give them with --read-freq, a .frq or .afreq file of a reference"
            raise InvalidInput(message, field="--maf", value=str(self.maf), hint=hint)
        if self.frequencies is not None and self.maf is None:
            message = "--read-freq gives frequencies, and --maf does not say which to leave out"
            raise InvalidInput(message, field="--read-freq", hint="add --maf, such as 0.01")
        least = 0 if self.maf is None else read_ranged(self.maf, "--maf", "between 0 and 1")
        if least > Fraction(1, 2):
            raise invalid_value("--maf", "at most 0.5, as the rarer allele is", self.maf)
        if self.split_par is not None and self.split_par not in PSEUDOAUTOSOMAL_BOUNDS:
            raise UnknownName("--split-par", self.split_par, tuple(PSEUDOAUTOSOMAL_BOUNDS))

    def chosen_snps(self, snps: Snps) -> Array:
        """Which SNPs are in the lists."""
        chosen = np.ones(len(snps), dtype=bool)
        if self.extract is not None:
            file = read_path(self.extract, "--extract")
            wanted = {word for row in read_words(file, MAX_STUDY_BYTES) for word in row}
            chosen &= np.array([name in wanted for name in snps.name], dtype=bool)
            _require_some(chosen, "--extract", file, "no SNP of {} is in the study")
        if self.maf is not None and self.frequencies is not None:
            file = read_path(self.frequencies, "--read-freq")
            rarer, least = read_frequencies(file), float(rational(self.maf))
            chosen &= np.array([rarer.get(name, -1.0) >= least for name in snps.name], dtype=bool)
            _require_some(chosen, "--maf", file, "by {} no SNP of the study is so frequent")
        return chosen


def _require_some(chosen: Array, field: str, file: Path, words: str) -> None:
    if not chosen.any():
        raise InvalidInput(words.format(file.name), field=field, value=file.name)


def read_frequencies(path: Path) -> dict[str, float]:
    """The frequency of the rarer allele by SNP name, from a table with a header: PLINK's .frq (SNP,
    MAF), PLINK 2's .afreq (ID, ALT_FREQS), or any table with such columns. SNPs without a number,
    or with several alleles, are left out."""
    rows = [row for row in read_words(path, MAX_STUDY_BYTES) if not row[0].startswith("##")]
    header = [word.removeprefix("#").upper() for word in rows[0]] if rows else []
    name, frequency = (
        next((header.index(word) for word in words if word in header), None)
        for words in (("ID", "SNP"), ("ALT_FREQS", "MAF", "FREQ", "AF"))
    )
    if name is None or frequency is None:
        message = f"the header of {path.name} needs a column ID or SNP, and ALT_FREQS or MAF"
        raise InvalidInput(message, field=path.name)
    found: dict[str, float] = {}
    for row in rows[1:]:
        try:
            value = float(row[frequency])
        except (ValueError, IndexError):
            continue
        if not 0 <= value <= 1:  # false for NaN as well
            if value != value:
                continue
            message = f"some frequencies in {path.name} are not between 0 and 1"
            raise InvalidInput(message, field=path.name)
        found[row[name]] = min(value, 1 - value)
    return found


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


# Loci: sets of SNPs that are chosen as one, from a public map or from windows along the genome.
#
# SNPs that lie close together are inherited together, and compete for being chosen where one of
# them is enough. A locus has the largest score of its SNPs: a neighbour moves it by at most as much
# as any of them, and the same way if all move the same way. The loci are public, and may overlap.
#
# A map has lines of chromosome, first and last position and name (as PLINK's lists of genes), or of
# a SNP and the name of its locus. SNPs in no locus are not chosen.

MAX_WINDOW_KB = 1_000_000


@dataclass(frozen=True, eq=False)
class Loci:
    """SNPs by locus: those of locus i are `places[starts[i]:starts[i + 1]]`.

    Attributes:
        names: of the loci.
        places: indices of SNPs.
        starts: one more than there are loci.
    """

    names: tuple[str, ...]
    places: Array
    starts: Array

    def __len__(self) -> int:
        return len(self.names)

    def largest(self, scores: Array) -> Array:
        """The largest score in each locus."""
        return np.asarray(np.maximum.reduceat(scores[self.places], self.starts[:-1]))

    def digest(self) -> str:
        """Names the loci and their SNPs, for the ledger."""
        parts = "\x1f".join(self.names).encode("utf-8", "surrogatepass")
        numbers = self.places.astype(np.int64).tobytes() + self.starts.astype(np.int64).tobytes()
        return hashlib.sha256(parts + b"\0" + numbers).hexdigest()[:16]

    def members(self, locus: int) -> Array:
        return np.asarray(self.places[self.starts[locus] : self.starts[locus + 1]])


def window_loci(snps: Snps, kilobases: object) -> Loci:
    """Windows of so many kilobases, from the start of each chromosome."""
    width = rational(kilobases, "--clump-kb") * 1000
    if not 0 < width <= MAX_WINDOW_KB * 1000:
        raise invalid_value("--clump-kb", f"above 0 and at most {spell(MAX_WINDOW_KB)}", kilobases)
    whole = max(1, round(width))
    numbers = (snps.position // whole).tolist()
    keys = list(zip(snps.chromosome, numbers, strict=True))
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    names = [f"{c}:{n * whole}-{(n + 1) * whole - 1}" for c, n in order]
    pairs = [(order[key], place) for place, key in enumerate(keys)]
    return _collect_loci(names, pairs)


def read_loci(path: str | Path, snps: Snps) -> Loci:
    """The loci of a map file that have SNPs in this study."""
    file = read_path(path, "--loci")
    rows = [row for row in read_words(file, MAX_STUDY_BYTES) if not row[0].startswith("#")]
    lengths = {len(row) for row in rows}
    if lengths == {2}:
        pairs, names = _named_members(rows, snps, file)
    elif lengths == {4}:
        pairs, names = _interval_members(rows, snps, file)
    else:
        message = f"the lines of {file.name} need CHR START END NAME, or a SNP and its locus"
        raise InvalidInput(message, field="--loci", value=file.name)
    if not pairs:
        message = f"no SNP of the study lies in a locus of {file.name}"
        hint = "see that chromosomes have the same names and positions the same genome build"
        raise InvalidInput(message, field="--loci", value=file.name, hint=hint)
    return _collect_loci(names, pairs)


def _named_members(
    rows: list[list[str]], snps: Snps, file: Path
) -> tuple[list[tuple[int, int]], list[str]]:
    places = {name: place for place, name in enumerate(snps.name)}
    if rows and rows[0][0].upper() == "SNP":
        rows = rows[1:]
    absent = sum(row[0] not in places for row in rows)
    if absent:
        message = f"{file.name} names {spell(absent)} SNPs that the study does not have"
        raise InvalidInput(message, field="--loci", value=absent, hint="leave them out of the map")
    order = {name: number for number, name in enumerate(dict.fromkeys(row[1] for row in rows))}
    return [(order[row[1]], places[row[0]]) for row in rows], list(order)


def _interval_members(
    rows: list[list[str]], snps: Snps, file: Path
) -> tuple[list[tuple[int, int]], list[str]]:
    try:
        ends = [(int(row[1]), int(row[2])) for row in rows]
    except ValueError:
        message = f"some positions in {file.name} are not whole numbers"
        raise InvalidInput(message, field="--loci", value=file.name) from None
    if any(first > last for first, last in ends):
        message = f"some loci of {file.name} end before they begin"
        raise InvalidInput(message, field="--loci", value=file.name)
    chromosomes = np.array(snps.chromosome)
    own: dict[str, tuple[Array, Array]] = {}
    for name in set(snps.chromosome):
        where = np.flatnonzero(chromosomes == name)
        order = where[np.argsort(snps.position[where], kind="stable")]
        own[name.upper().removeprefix("CHR")] = order, snps.position[order]
    pairs = []
    nothing = np.zeros(0, dtype=np.int64)
    for number, (row, (first, last)) in enumerate(zip(rows, ends, strict=True)):
        order, at = own.get(row[0].upper().removeprefix("CHR"), (nothing, nothing))
        inside = order[np.searchsorted(at, first) : np.searchsorted(at, last, side="right")]
        pairs += [(number, int(place)) for place in inside]
    return pairs, [row[3] for row in rows]


def _collect_loci(names: list[str], pairs: list[tuple[int, int]]) -> Loci:
    """Loci that have SNPs, in the order of their names."""
    ordered = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
    kept, starts = np.unique(ordered[:, 0], return_index=True)
    ends = np.append(starts, len(ordered))
    return Loci(tuple(names[number] for number in kept), ordered[:, 1], ends)


Progress = Callable[[int, int], None]
"""Called with (done, in all)."""


def check_instance(value: object, kind: type[Said], field: str, accepted: str) -> Said:
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
