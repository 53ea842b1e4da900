"""Public strata and covariates of a study's people, read from PLINK's files.

`--within` has FID, IID and the name of a stratum on each line, `--covar` FID, IID and numbers
(principal components, age, sex); a header may stand above, and may begin with #FID or #IID. Both
are public: under a promise about labels they may come from the same genomes, under one about
genotypes principal components must come from a public reference. Everybody who is counted needs a
value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from whosin.documents import MAX_STUDY_BYTES, read_words
from whosin.errors import InvalidInput, spell
from whosin.exact import Array
from whosin.gwas.bed import MISSING_GENOTYPE, Bed, Groups, sibling_path
from whosin.gwas.linear import Design, LinearTerms, stratum_terms
from whosin.gwas.people import MISSING_WORDS, KeepList, PersonName, Snps, read_people
from whosin.gwas.pgen import Pgen, pgen_siblings
from whosin.gwas.study import (
    COUNT_TABLE_SUFFIXES,
    VARIANT_SUFFIXES,
    Study,
    count_everybody,
    is_pgen,
    open_genotypes,
)
from whosin.validation import read_path

BLOCK_GENOTYPES = 1 << 23
MAX_COVARIATE_DIVISOR = 10
"""At most one column for so many people: with more, fitted values are the genotypes."""


@dataclass(frozen=True, eq=False)
class StratifiedStudy(Study):
    """A study whose linear scores are computed within strata and beside covariates.

    Attributes:
        design: the people's strata and covariates.
        tables: strata × SNPs × 6, counts in each stratum; where there are no covariates.
        genotypes, places, people_places: the file, and which of its SNPs and people are studied.
    """

    design: Design | None = None
    tables: Array | None = None
    genotypes: Bed | Pgen | None = None
    places: Array | None = None
    people_places: Array | None = None

    def terms(self, relation: str) -> LinearTerms:
        """What linear scores are made of."""
        assert self.design is not None
        if self.tables is not None:
            return stratum_terms(self.tables, self.design.sizes(), relation)
        return self.design.terms(self.blocks(), relation)

    def blocks(self) -> Iterator[Array]:
        """Genotypes of the study's SNPs and people: dosages where the file has them."""
        assert self.genotypes is not None and self.places is not None
        step = max(1, BLOCK_GENOTYPES // self.genotypes.people)
        for first in range(0, len(self.places), step):
            part = self.places[first : first + step]
            if isinstance(self.genotypes, Pgen):
                yield self.genotypes.dosages(part, self.people_places)
            else:
                copies = self.genotypes.genotypes(part, self.people_places).astype(np.float32)
                copies[copies == MISSING_GENOTYPE] = np.nan
                yield copies

    def strata_digest(self) -> str:
        """Names who is in which stratum, for the registration of a promise about strata."""
        assert self.design is not None
        return hashlib.sha256(self.design.strata.astype(np.int64).tobytes()).hexdigest()[:16]


def stratify_study(
    study: Study,
    path: str | Path,
    phenotypes: str | Path | None = None,
    keep: KeepList = None,
    within: str | Path | None = None,
    covar: str | Path | None = None,
) -> StratifiedStudy:
    """The study with public strata and covariates of its people.

    Args:
        study: as `read_study` read it from these files.
        within: a file of strata.
        covar: a file of covariates.
    """
    file = read_path(path, "study")
    if file.name.lower().endswith((*COUNT_TABLE_SUFFIXES, *VARIANT_SUFFIXES)):
        message = f"strata and covariates need the people of PLINK files, which {file.name} is not"
        hint = "make a .bed or .pgen of it with plink2"
        raise InvalidInput(message, field="--within" if within else "--covar", hint=hint)
    genotypes, snps, groups = open_genotypes(path, phenotypes, False, keep)
    counted = groups.cases | groups.controls
    (places,) = np.nonzero(counted)
    people = pgen_siblings(path)[2] if is_pgen(path) else sibling_path(path, ".fam")
    names = [
        name for name, own in zip(read_people(people, phenotypes)[0], counted, strict=True) if own
    ]
    design = read_design(groups.cases[counted], names, within, covar)
    strata = design.strata
    chosen = match_snps(study.snps, snps)
    tables = None
    if covar is None:
        tables = np.stack(
            [
                count_everybody(genotypes, _stratum_groups(groups, places[strata == s]), chosen)[
                    :, :6
                ]
                for s in range(int(strata.max()) + 1)
            ]
        )
    known = {field.name: getattr(study, field.name) for field in fields(Study)}
    return StratifiedStudy(
        **known,
        design=design,
        tables=tables,
        genotypes=genotypes,
        places=chosen,
        people_places=places,
    )


def read_design(
    cases: Array, names: list[PersonName], within: str | Path | None, covar: str | Path | None
) -> Design:
    """The strata and covariates of named people, of whom some are cases."""
    strata = np.zeros(len(names), dtype=np.int64) if within is None else _read_strata(within, names)
    numbers = np.zeros((len(names), 0)) if covar is None else _read_covariates(covar, names)
    return Design(cases, strata, span_columns(strata, numbers))


def _stratum_groups(groups: Groups, members: Array) -> Groups:
    own = np.zeros(groups.people, dtype=bool)
    own[members] = True
    return Groups(groups.cases & own, groups.controls & own)


def span_columns(strata: Array, numbers: Array) -> Array:
    """Orthonormal columns that span the strata's indicators and the numbers."""
    people = len(strata)
    indicators = strata[:, None] == np.arange(int(strata.max()) + 1)
    spread = numbers.std(axis=0)
    scaled = (numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1)
    columns = np.concatenate([indicators.astype(float), scaled], axis=1)
    if columns.shape[1] * MAX_COVARIATE_DIVISOR > max(people, MAX_COVARIATE_DIVISOR):
        message = (
            f"there are {columns.shape[1]} strata and covariates for {spell(people)} people, and "
            f"genotypes can be compared beside one for {MAX_COVARIATE_DIVISOR} people at most"
        )
        raise InvalidInput(message, field="--covar", value=columns.shape[1])
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(basis[:, sizes > 1e-9 * sizes.max()])


def match_snps(wanted: Snps, listed: Snps) -> Array:
    """Where the SNPs of a study are in its file: they come in the same order."""
    rows = enumerate(zip(*listed.columns(), strict=True))
    found = []
    for key in zip(*wanted.columns(), strict=True):
        found.append(next(place for place, row in rows if row == key))
    return np.array(found, dtype=np.int64)


def _read_strata(path: str | Path, names: list[PersonName]) -> Array:
    file = read_path(path, "--within")
    words = [row[0] for row in _read_values(file, names, "--within")]
    kinds = sorted(set(words))
    strata = np.array([kinds.index(word) for word in words], dtype=np.int64)
    alone = np.flatnonzero(np.bincount(strata) < 2)
    if len(alone):
        message = f"stratum {kinds[alone[0]]!r} of {file.name} has one person, who fits it exactly"
        hint = "merge it with another stratum, or leave that person out with --keep"
        raise InvalidInput(message, field="--within", value=kinds[alone[0]], hint=hint)
    return strata


def _read_covariates(path: str | Path, names: list[PersonName]) -> Array:
    file = read_path(path, "--covar")
    rows = _read_values(file, names, "--covar")
    try:
        numbers = np.array([[float(word) for word in row] for row in rows])
    except ValueError:
        message = f"some covariates in {file.name} are not numbers"
        hint = "write words as strata (--within), or as columns of 0 and 1"
        raise InvalidInput(message, field="--covar", value=file.name, hint=hint) from None
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"some covariates in {file.name} are not finite", field="--covar")
    return numbers


def _read_values(file: Path, names: list[PersonName], field: str) -> list[list[str]]:
    """What a file says of each of these people; a missing value is refused."""
    rows = read_words(file, MAX_STUDY_BYTES)
    head = rows[0][0].upper().removeprefix("#") if rows else ""
    alone = head == "IID"
    if head in ("IID", "FID"):
        rows = rows[1:]
    first = 1 if alone else 2
    if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) <= first:
        message = f"the lines of {file.name} need FID, IID and as many values on each"
        raise InvalidInput(message, field=field, value=file.name)
    given = {(row[0] if alone else (row[0], row[1])): row[first:] for row in rows}
    if len(given) < len(rows):
        raise InvalidInput(f"{file.name} has a person more than once", field=field, value=file.name)
    found = [given.get(name[1] if alone else name, []) for name in names]
    gone = sum(not row or any(word.lower() in MISSING_WORDS for word in row) for row in found)
    if gone:
        message = (
            f"{file.name} has no value for {spell(gone)} of the {spell(len(names))} people who are "
            "counted"
        )
        hint = "fill it in, or leave them out with --keep"
        raise InvalidInput(message, field=field, value=gone, hint=hint)
    return found
