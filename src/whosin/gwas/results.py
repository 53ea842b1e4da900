"""Tables of results that association programs write: read, and corrected for randomised labels.

PLINK 2 (`.glm.logistic.hybrid`), REGENIE, SAIGE and PLINK 1.9 (`.assoc`; our own tables have its
columns). The effect allele, its frequency among those who are called cases and controls, the
logarithm of its odds ratio and its standard error are read by the names that each program gives
them; tests other than the additive one are left out.

*Correction* (F28). With A and B the shares of true cases among those who are called cases and
controls, frequencies mix, f_case = A f_A + (1−A) f_U and f_control = B f_A + (1−B) f_U, and so

    f_A = ((1−B) f_case − (1−A) f_control) / (A−B),  f_U = (A f_control − B f_case) / (A−B).

The odds ratio is that of f_A and f_U. What a program adjusted for stays: f_case is taken at the
table's odds ratio from f_control. Standard errors to first order, with the uncertainty of A and B.
P-values stay as they are: without an association there is none among randomised labels either.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whosin.documents import MAX_STUDY_BYTES, read_text
from whosin.errors import InvalidInput, read_path
from whosin.exact import Array
from whosin.gwas.association import NORMAL_95
from whosin.gwas.labels import LabelDraw, Purity
from whosin.gwas.people import Snps, check_instance


@dataclass(frozen=True)
class ResultsFormat:
    """The names of a program's columns; `odds` and `log_p` say in which form it writes numbers."""

    program: str
    chromosome: str
    position: str
    name: str
    effect: str
    others: tuple[str, ...]
    beta: str
    error: str
    p: str
    pooled: str
    case: str
    control: str
    advice: str
    odds: str = ""
    log_p: str = ""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """What a table is recognised by."""
        return self.chromosome, self.position, self.name, self.effect


RESULTS_FORMATS = (
    ResultsFormat(
        *("plink2", "#CHROM", "POS", "ID", "A1", ("OMITTED", "REF", "ALT")),
        *("BETA", "LOG(OR)_SE", "P", "A1_FREQ", "A1_CASE_FREQ", "A1_CTRL_FREQ"),
        advice="run plink2 --glm with cols=+a1freq,+a1freqcc",
        odds="OR",
    ),
    ResultsFormat(
        *("REGENIE", "CHROM", "GENPOS", "ID", "ALLELE1", ("ALLELE0",)),
        *("BETA", "SE", "P", "A1FREQ", "A1FREQ_CASES", "A1FREQ_CONTROLS"),
        advice="run REGENIE's second step with --af-cc",
        log_p="LOG10P",
    ),
    ResultsFormat(
        *("SAIGE", "CHR", "POS", "MarkerID", "Allele2", ("Allele1",)),
        *("BETA", "SE", "p.value", "AF_Allele2", "AF_case", "AF_ctrl"),
        advice="run SAIGE's second step for a binary trait",
    ),
    ResultsFormat(
        *("PLINK 1.9", "CHR", "BP", "SNP", "A1", ("A2",)),
        *("BETA", "SE", "P", "MAF", "F_A", "F_U"),
        advice="run plink1.9 --assoc with --ci 0.95",
        odds="OR",
    ),
)
"""Programs whose tables are read."""


@dataclass(frozen=True, eq=False)
class ResultsTable:
    """A program's results, one line a SNP; NaN where it wrote none.

    Attributes:
        snps: `a1` is the effect allele, `a2` the other one ("" where the table does not say).
        case, control: frequencies of the effect allele among those who are called cases and
            controls; NaN where the table has none.
        pooled: its frequency among all; NaN where the table has none.
        beta, error: the logarithm of its odds ratio, and the standard error; None where the table
            has none.
    """

    program: str
    source: str
    snps: Snps
    case: Array
    control: Array
    pooled: Array
    beta: Array | None
    error: Array | None
    p: Array

    def require(self, *wanted: str) -> None:
        """Refuse a table that lacks something: "odds ratios", or the "level" of frequencies."""
        form = next(form for form in RESULTS_FORMATS if form.program == self.program)
        if "odds ratios" in wanted and (self.beta is None or self.error is None):
            columns = f"{form.odds or form.beta} and {form.error}"
            message = f"{self.source} has no odds ratios with standard errors ({columns})"
            raise InvalidInput(message, field=self.source, hint=form.advice)
        if "level" in wanted and np.isnan(self.pooled).all() and np.isnan(self.control).all():
            message = f"{self.source} has no allele frequencies ({form.pooled} or {form.control})"
            raise InvalidInput(message, field=self.source, hint=form.advice)


def read_results(path: str | Path) -> ResultsTable:
    """Read a table of PLINK 2, REGENIE, SAIGE or PLINK 1.9, also one packed by gzip."""
    file = read_path(path, "results")
    rows = [line.split() for line in _read_lines(file) if line.strip() and line[:2] != "##"]
    header = rows[0] if rows else []
    columns = {name: place for place, name in reversed(list(enumerate(header)))}
    if "CHROM" in columns and "POS" in columns:  # plink2 without its "#"
        columns["#CHROM"] = columns["CHROM"]
    fitting = [form for form in RESULTS_FORMATS if all(key in columns for key in form.key_columns)]
    if not fitting:
        programs = ", ".join(form.program for form in RESULTS_FORMATS)
        message = f"{file.name} has none of the headers that {programs} write"
        raise InvalidInput(message, field=file.name, hint="keep the program's own header line")
    if any(len(row) != len(header) for row in rows):
        message = f"some lines of {file.name} do not have the {len(header)} columns of its header"
        raise InvalidInput(message, field=file.name)
    form, body = fitting[0], rows[1:]
    if "TEST" in columns:
        body = [row for row in body if row[columns["TEST"]] in ("ADD", "ALLELIC")]
    if not body:
        raise InvalidInput(f"{file.name} has no additive tests", field=file.name)
    table = _Columns(file.name, columns, body)
    if form.p not in columns and form.log_p not in columns:
        message = f"{file.name} has no column {form.log_p or form.p}"
        raise InvalidInput(message, field=file.name, value=form.p)
    p = table.numbers(form.p)
    if form.log_p in columns:
        p = 10.0 ** -table.numbers(form.log_p)
    return ResultsTable(
        form.program,
        file.name,
        table.snps(form),
        table.numbers(form.case),
        table.numbers(form.control),
        table.numbers(form.pooled),
        *table.effects(form),
        p,
    )


class _Columns:
    """Columns of a table by their names."""

    def __init__(self, source: str, places: Mapping[str, int], rows: list[list[str]]) -> None:
        self.source, self.places, self.rows = source, places, rows

    def words(self, name: str) -> list[str]:
        place = self.places[name]
        return [row[place] for row in self.rows]

    def numbers(self, name: str) -> Array:
        """A column of numbers; NaN for what is none, and where there is no such column."""
        if name not in self.places:
            return np.full(len(self.rows), np.nan)
        return np.array([_read_float(word) for word in self.words(name)])

    def effects(self, form: ResultsFormat) -> tuple[Array | None, Array | None]:
        error = form.error if form.error in self.places else "SE"
        errors = self.numbers(error) if error in self.places else None
        if form.odds in self.places:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.log(self.numbers(form.odds)), errors
        return (self.numbers(form.beta) if form.beta in self.places else None), errors

    def snps(self, form: ResultsFormat) -> Snps:
        try:
            position = np.array(list(map(int, self.words(form.position))), dtype=np.int64)
        except (ValueError, OverflowError):
            message = f"some positions in {self.source} are not whole numbers"
            raise InvalidInput(message, field=self.source) from None
        effect = self.words(form.effect)
        listed = [self.words(name) for name in form.others if name in self.places]
        other = [""] * len(effect)
        for column in reversed(listed):
            pairs = zip(effect, column, other, strict=True)
            other = [word if word != allele else known for allele, word, known in pairs]
        return Snps(self.words(form.chromosome), self.words(form.name), position, effect, other)


def _read_lines(file: Path) -> list[str]:
    if file.suffix != ".gz":
        return read_text(file, file.name, MAX_STUDY_BYTES).splitlines()
    try:
        with gzip.open(file) as packed:
            data = packed.read(MAX_STUDY_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise InvalidInput(f"{file.name} cannot be unpacked", field=file.name) from None
    if len(data) > MAX_STUDY_BYTES:
        raise InvalidInput(f"{file.name} is too large to be read", field=file.name)
    return data.decode("utf-8", "replace").splitlines()


def _read_float(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


@dataclass(frozen=True, eq=False)
class CorrectedResults:
    """A table as it would be with the true labels, up to chance; NaN where the estimate fails.

    Attributes:
        purity: how many of the labels are right.
        f_a, f_u: frequencies of the effect allele among true cases and controls.
        beta, error: the logarithm of the odds ratio, and its standard error.
    """

    table: ResultsTable
    purity: Purity
    f_a: Array
    f_u: Array
    beta: Array
    error: Array

    @property
    def interval(self) -> tuple[Array, Array]:
        """The 95% interval of the odds ratio."""
        with np.errstate(over="ignore"):
            return (
                np.exp(self.beta - NORMAL_95 * self.error),
                np.exp(self.beta + NORMAL_95 * self.error),
            )


def correct_results(table: ResultsTable, draw: LabelDraw) -> CorrectedResults:
    """Correct odds ratios and standard errors for labels that were drawn like this."""
    check_instance(table, ResultsTable, "results", "a ResultsTable, as read_results(…) returns")
    check_instance(draw, LabelDraw, "labels", "a LabelDraw")
    table.require("odds ratios", "level")
    assert table.beta is not None and table.error is not None
    purity = draw.purity()
    share = draw.labelled / draw.people
    control = np.where(
        np.isnan(table.control), control_frequencies(table.pooled, table.beta, share), table.control
    )
    with np.errstate(over="ignore", invalid="ignore"):
        odds = np.exp(table.beta)
        case = odds * control / (1 + (odds - 1) * control)  # whose odds are as much larger
    a, b, gap = purity.among_cases, purity.among_controls, purity.difference
    f_a = ((1 - b) * case - (1 - a) * control) / gap
    f_u = (a * control - b * case) / gap
    inside = (f_a > 0) & (f_a < 1) & (f_u > 0) & (f_u < 1)
    f_a, f_u = np.where(inside, f_a, np.nan), np.where(inside, f_u, np.nan)
    v_a, v_u = f_a * (1 - f_a), f_u * (1 - f_u)
    v_case, v_control = case * (1 - case), control * (1 - control)
    # The table's variance, split as that of two frequencies is: 1/(n f(1−f)) on either side.
    weights = 1 / (share * v_case), 1 / ((1 - share) * v_control)
    squared = table.error**2 / sum(weights)
    by_case = ((1 - b) / v_a + b / v_u) * v_case / gap
    by_control = ((1 - a) / v_a + a / v_u) * v_control / gap
    variance = squared * (weights[0] * by_case**2 + weights[1] * by_control**2)
    # And that of A and B: d ln OR = −(f_A − f_U)/(A−B) · (c_A dA − c_B dB).
    moved = (f_a - f_u) / gap
    first, second = moved * ((1 - b) / v_a + b / v_u), -moved * ((1 - a) / v_a + a / v_u)
    (aa, ab), (_, bb) = purity.covariance
    variance += aa * first**2 + 2 * ab * first * second + bb * second**2
    beta = np.log(f_a / (1 - f_a)) - np.log(f_u / (1 - f_u))
    return CorrectedResults(table, purity, f_a, f_u, beta, np.sqrt(variance))


def control_frequencies(pooled: Array, beta: Array, share: float) -> Array:
    """The frequency among controls that a pooled one and an odds ratio leave, for a share of cases.

    With o the odds ratio: share · of/(1 + (o−1)f) + (1−share) f = pooled, a quadratic in f with
    one root in [0, 1].
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gap = np.expm1(beta)
        a, b = (1 - share) * gap, 1 + share * gap - pooled * gap
        root = np.sqrt(np.maximum(b * b + 4 * a * pooled, 0))
        found = np.where(np.abs(a) < 1e-12, pooled / b, 2 * pooled / (b + root))
    return np.asarray(found)


def match_snps(table: Snps, others: Snps) -> tuple[Array, Array, Array]:
    """(places in the table, places in the others, whether the effect allele is the others' A2), for
    SNPs with the same name, or else the same chromosome and position, and the same alleles."""
    names = {name: place for place, name in enumerate(others.name) if name != "."}
    spots = {
        (chromosome.upper().removeprefix("CHR"), int(at)): place
        for place, (chromosome, at) in enumerate(
            zip(others.chromosome, others.position, strict=True)
        )
    }
    found: list[tuple[int, int, bool]] = []
    for place, (chromosome, name, at, a1, a2) in enumerate(zip(*table.columns(), strict=True)):
        spot = chromosome.upper().removeprefix("CHR"), int(at)
        other = names.get(name, spots.get(spot))
        if other is None:
            continue
        pair = others.a1[other], others.a2[other]
        if a1 not in pair or (a2 and a2 not in pair) or pair[0] == pair[1]:
            continue
        found.append((place, other, a1 == pair[1]))
    ours, theirs, turned = zip(*found, strict=True) if found else ((), (), ())
    return np.array(ours, np.int64), np.array(theirs, np.int64), np.array(turned, bool)


def check_same_snps(tables: Sequence[ResultsTable]) -> None:
    """Refuse tables that are not about the same SNPs in the same order."""
    for table in tables[1:]:
        if table.snps.columns() != tables[0].snps.columns():
            message = f"{table.source} has other SNPs, or alleles, than {tables[0].source}"
            raise InvalidInput(message, field=table.source, hint="write both from the same file")
