"""Association results as rows with the columns that geneticists know (PLINK's)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from whosin.exact import Array
from whosin.gwas import Study, allelic_chi2, frequencies, odds_ratios, p_values
from whosin.gwas.derived import TAIL_95, noisy_chi2_p
from whosin.gwas.release import StudyRelease
from whosin.gwas.study import PUBLIC

Row = dict[str, str | int | float]

EXACT = ("F_A", "F_U", "CHISQ", "P", "OR")


def release_rows(release: StudyRelease) -> list[Row]:
    """The published SNPs, best first. F_A_NOISE95 and F_U_NOISE95 (or CHISQ_NOISE95): 95% of the
    noise is within ± that much. P, OR and SE have the noise in them."""
    public = zip(*release.snps.columns(), strict=True)
    rows: list[Row] = [dict(zip(PUBLIC, values, strict=True)) for values in public]
    for name, column in _estimates(release):
        for row, value in zip(rows, column.tolist(), strict=True):
            row[name] = value
    return rows


def _estimates(release: StudyRelease) -> list[tuple[str, Array]]:
    numbers, scale = release.numbers, release.offer.scale
    if release.offer.question.numbers == "nothing":
        return []
    if release.offer.question.numbers == "chi2":
        chi2 = numbers[:, 0]
        within = np.full(len(chi2), TAIL_95 * scale)
        return [("CHISQ", chi2), ("P", noisy_chi2_p(chi2, scale)), ("CHISQ_NOISE95", within)]
    result = release.association()
    low, high = result.interval
    return [
        ("F_A", result.f_a),
        ("F_U", result.f_u),
        ("CHISQ", result.chi2),
        ("P", result.p),
        ("OR", result.odds_ratio),
        ("SE", result.se),
        ("L95", low),
        ("U95", high),
        ("F_A_NOISE95", result.f_a_noise),
        ("F_U_NOISE95", result.f_u_noise),
    ]


def write_release(release: StudyRelease, path: Path) -> None:
    """The published SNPs, tab-separated."""
    rows = release_rows(release)
    lines = ["\t".join(rows[0]), *("\t".join(_cell(v) for v in row.values()) for row in rows)]
    path.touch(0o600)  # a new file is for its owner only
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_exact(study: Study, path: Path) -> None:
    """PLINK's association table, exact: for the curator, not for publication."""
    path.touch(0o600)  # a new file is for its owner only
    with path.open("w", encoding="utf-8") as file:
        file.write("\t".join((*PUBLIC, *EXACT)) + "\n")
        file.writelines(_exact_lines(study))


def _exact_lines(study: Study) -> Iterator[str]:
    chi2 = allelic_chi2(study.counts)
    f_a, f_u = frequencies(study.counts)
    columns = (f_a, f_u, chi2, p_values(chi2), odds_ratios(study.counts))
    public = zip(*study.snps.columns(), strict=True)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    line = "%s\t%s\t%s\t%s\t%s\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\n"
    for names, values in zip(public, numbers, strict=True):
        yield line % (*names, *values)


def _cell(value: str | int | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
