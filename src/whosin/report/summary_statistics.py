"""GWAS-SSF, the GWAS Catalog's format of summary statistics: a table, and its metadata in YAML.

Version 1.0 (https://github.com/EBISPOT/gwas-summary-statistics-standard, Hayhurst et al. 2022):
eight columns in a fixed order, others behind them, #NA where a value is missing. `beta` is the
logarithm of the odds ratio, so that `standard_error` is that of what stands beside it; `noise95`
says how far 95% of the noise moves the frequency. Everything comes from a release: P, beta and its
standard error have the noise in them. Fields that the format asks for and a study does not know
(genome_assembly, trait_description, …) are left for a person, as comments, and never guessed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path

import numpy as np

from whosin import __version__
from whosin.errors import InvalidInput
from whosin.gwas.release import StudyRelease
from whosin.ledger.encoding import today
from whosin.plain_files import check_output, write_file

SSF_SUFFIX = ".ssf.tsv"
METADATA_SUFFIX = "-meta.yaml"
SSF_COLUMNS = (
    *("chromosome", "base_pair_location", "effect_allele", "other_allele", "beta"),
    *("standard_error", "effect_allele_frequency", "p_value"),
    *("ci_lower", "ci_upper", "rsid", "variant_id", "n", "noise95"),
)
MISSING_WORD = "#NA"
FIELDS_FOR_PEOPLE = {
    "genome_assembly": "GRCh38",
    "trait_description": ["a clear description of the trait"],
    "genotyping_technology": ["Genome-wide genotyping array"],
}
"""What the format asks for and a study does not say, with an example of each."""
CHROMOSOME_NUMBERS = {
    **{str(number): number for number in range(1, 24)},
    "X": 23,
    "Y": 24,
    "24": 24,
    "MT": 25,
    "M": 25,
    "26": 25,
    "25": 23,
    "XY": 23,
    "PAR1": 23,
    "PAR2": 23,
}
"""Numbers of the format by PLINK's names: PLINK's 25 is the pseudo-autosomal part of X."""


def is_ssf(path: Path) -> bool:
    return path.name.lower().endswith(SSF_SUFFIX)


def check_ssf(path: Path, numbers: str) -> None:
    """Refuse, before anything is spent, a file that could not be written."""
    if numbers == "effects":
        message = f"{path.name} is written for cases and controls, not for a quantitative trait"
        raise InvalidInput(message, field="--save", value=path.name, hint="save a .tsv file")
    if numbers != "counts":
        message = f"{path.name} needs effect sizes, which follow from counts alone"
        raise InvalidInput(message, field="--save", value=path.name, hint="add --numbers counts")
    check_output(metadata_path(path), "--save")


def metadata_path(path: Path) -> Path:
    return path.with_name(path.name + METADATA_SUFFIX)


def write_ssf(release: StudyRelease, path: Path) -> None:
    """Write the table and, beside it, `path`-meta.yaml."""
    rows = ssf_rows(release)
    text = "".join("\t".join(row) + "\n" for row in (SSF_COLUMNS, *rows))
    write_file(path, text, "--save", private=True)
    about = describe_metadata(release, path.name, text)
    write_file(metadata_path(path), about, "--save", private=True)


def ssf_rows(release: StudyRelease) -> list[tuple[str, ...]]:
    """The released SNPs by chromosome and position, as words; none where "none of them" won."""
    if not len(release.snps):
        return []
    found, people = release.association(), release.estimate.cases + release.estimate.controls
    frequency = np.clip(release.numbers.sum(axis=1) / (2 * people), 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        beta = np.log(found.odds_ratio)
        low, high = (np.log(end) for end in found.interval)
    numbers = (beta, found.se, frequency, found.p, low, high)
    rows = []
    for place, names in enumerate(zip(*release.snps.columns(), strict=True)):
        chromosome, name, position, a1, a2 = names
        number = CHROMOSOME_NUMBERS.get(chromosome.upper().removeprefix("CHR"))
        alleles = [each if re.fullmatch("[ACGT]+", each) else MISSING_WORD for each in (a1, a2)]
        where = [MISSING_WORD if number is None else str(number), str(position), *alleles]
        values = [_format_number(column[place]) for column in numbers]
        rsid = name if re.fullmatch("rs[0-9]+", name) else MISSING_WORD
        known = MISSING_WORD not in where
        variant = "_".join([*where[:2], a2, a1]) if known else MISSING_WORD
        noise = _format_number(max(found.f_a_noise[place], found.f_u_noise[place]))
        order = (math.inf if number is None else number, int(position))
        rows.append((order, (*where, *values, rsid, variant, str(people), noise)))
    return [row for _, row in sorted(rows)]


def describe_metadata(release: StudyRelease, name: str, text: str) -> str:
    """The YAML file: what is known, in the format's words, and what a person has to add."""
    estimate = release.estimate
    people = estimate.cases + estimate.controls
    sample: dict[str, object] = {
        "case_control_study": True,
        "case_count": estimate.cases,
        "control_count": estimate.controls,
        "sample_size": people,
    }
    fields: dict[str, object] = {
        "date_metadata_last_modified": today(),
        "data_file_name": name,
        "file_type": "GWAS-SSF v1.0",
        "data_file_md5sum": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
        "coordinate_system": "1-based",
        "analysis_software": f"whosin {__version__}",
        "is_harmonised": False,
        "is_sorted": True,
        "author_notes": _describe_noise(release),
    }
    lines = ["---"]
    for key, value in fields.items():
        plain = key.startswith("date")  # the schema wants a date, not a text
        lines.append(f"{key}: {value if plain else json.dumps(value, ensure_ascii=False)}")
    lines += ["samples:", *_yaml_item(sample)]
    lines.append("# The format also asks for these; fill them in:")
    lines += [f"# {key}: {json.dumps(value)}" for key, value in FIELDS_FOR_PEOPLE.items()]
    lines.append("# and for sample_ancestry_category in samples")
    return "\n".join(lines) + "\n"


def _describe_noise(release: StudyRelease) -> str:
    estimate = release.estimate
    asked = estimate.question
    how = (
        f"the {asked.top} most associated of {estimate.snps} SNPs, chosen by a noisy score"
        if asked.top
        else "SNPs that were named without looking at the data"
    )
    return (
        f"A private release of {how}. effect_allele_frequency has noise, 95% of it within noise95 "
        "in each group; beta, standard_error, p_value and the interval follow from noisy counts, "
        f"noise included. Promise: epsilon = {float(sum(estimate.epsilons)):.6g} between studies "
        f"that differ by one {asked.relation.replace('-', ' ')}. SNPs that are not listed are "
        "neither associated nor unassociated."
    )


def _yaml_item(values: dict[str, object]) -> list[str]:
    lines = [f"    {key}: {json.dumps(value)}" for key, value in values.items()]
    return [f"  - {lines[0].strip()}", *lines[1:]]


def _format_number(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else MISSING_WORD
