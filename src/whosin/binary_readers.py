"""Readers of foreign binary formats, for processes of their own.

Whatever a damaged file does to a library (errors of all kinds, crashes, hangs) happens in another
process; what comes back is plain data, or `InvalidInput` without a word of the file. This module
imports its libraries when it is called and nothing of ours, so that it starts quickly.
"""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput, UnknownName

REFERENCE, HETEROZYGOUS, ALTERNATE = 0, 1, 2
"""cyvcf2's genotype types with gts012; 3 is unknown."""


def check_arrow(path: str) -> None:
    """Read an Arrow file whole and see that every buffer is what its type says: a reader trusts
    lengths and offsets. Whether texts are UTF-8 is not looked at, since that depends on rows."""
    import pyarrow as pa

    try:
        with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
            for number in range(reader.num_record_batches):
                for column in reader.get_batch(number).columns:
                    _column_bytes(column, pa).validate(full=True)
    except Exception:
        message = f"{Path(path).name} is damaged, or is not an Arrow file"
        raise InvalidInput(message, field="table", value=Path(path).name) from None


def _column_bytes(column: Any, pa: Any) -> Any:
    kind = column.type
    if pa.types.is_string(kind):
        return column.view(pa.binary())
    if pa.types.is_large_string(kind):
        return column.view(pa.large_binary())
    if pa.types.is_dictionary(kind):
        column.indices.validate(full=True)
        values = _column_bytes(column.dictionary, pa)
        values.validate(full=True)
        return pa.DictionaryArray.from_arrays(column.indices, values)
    return column


OLD_OFFICE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How encrypted workbooks begin, and those of old versions of Excel."""
SHEET_BATCH_ROWS = 50_000


def sheet_records(path: str, sheet: str | None) -> list[tuple[str, ...]]:
    """The rows of a sheet as texts, the header first; "" where a cell is missing."""
    return [tuple(cell or "" for cell in row) for row in _sheet_rows(path, sheet)]


def sheet_arrow(path: str, sheet: str | None) -> bytes:
    """A sheet as the bytes of an Arrow stream.

    All columns are text, as those of CSV files: every cell of a sheet has a type of its own, so
    that a column's type would depend on rows. Numbers are spelled in full, dates as 2024-01-31.
    """
    import pyarrow as pa

    rows = _sheet_rows(path, sheet)
    names = next(rows)
    schema = pa.schema([pa.field(str(name), pa.string()) for name in names])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        batch: list[tuple[str | None, ...]] = []
        for row in rows:
            batch.append(row)
            if len(batch) == SHEET_BATCH_ROWS:
                writer.write_batch(_text_batch(pa, batch, schema))
                batch = []
        if batch:
            writer.write_batch(_text_batch(pa, batch, schema))
    return bytes(sink.getvalue())


def _text_batch(pa: Any, rows: list[tuple[str | None, ...]], schema: Any) -> Any:
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return pa.record_batch(columns, schema=schema)


def _sheet_rows(path: str, sheet: str | None) -> Iterator[tuple[str | None, ...]]:
    """The header of a sheet, its first row that is not empty, and the rows below it that are not.

    What is right of the header's last name is no part of the table; error values are missing.

    Raises:
        InvalidInput: about the file or its header, whatever the rows are.
    """
    name = Path(path).name
    try:
        found = _open_sheet(path, name, sheet)
        cells = iter(found.iter_rows())
        place, header = next(
            ((at, row) for at, row in enumerate(cells) if any(each != "" for each in row)), (0, [])
        )
        merged = any(
            top <= place <= bottom and left < right
            for (top, left), (bottom, right) in found.merged_cell_ranges or ()
        )
        named = [at for at, each in enumerate(header) if each != ""]
    except InvalidInput:
        raise
    except Exception:
        raise _refuse_sheet(f"{name} is damaged, or is not a workbook", name) from None
    shown = f"sheet {found.name!r} of {name}"
    if not named:
        raise _refuse_sheet(f"{shown} is empty", name, "put a header into its first row")
    if merged:
        message = f"the header of {shown} (row {place + 1}) has merged cells"
        raise _refuse_sheet(message, name, "give each column a name of its own in one row")
    first, end = named[0], named[-1] + 1
    if len(named) != end - first:
        blank = next(at for at in range(first, end) if at not in named)
        message = f"column {blank + 1} of the header of {shown} (row {place + 1}) has no name"
        raise _refuse_sheet(message, name, "name each column in one row")
    yield tuple(_cell_text(each) for each in header[first:end])
    try:
        for row in cells:
            texts = tuple(_cell_text(each) for each in row[first:end])
            if any(each is not None for each in texts):
                yield texts
    except Exception:
        raise _refuse_sheet(f"{name} is damaged, or is not a workbook", name) from None


def _open_sheet(path: str, name: str, sheet: str | None) -> Any:
    from python_calamine import CalamineWorkbook

    with open(path, "rb") as file:
        if file.read(len(OLD_OFFICE_MAGIC)) == OLD_OFFICE_MAGIC:
            message = f"{name} is protected by a password, or is no .xlsx file inside"
            raise _refuse_sheet(message, name, "save it as .xlsx without a password")
    book = CalamineWorkbook.from_path(path)
    names = book.sheet_names
    if sheet is not None and sheet not in names:
        raise UnknownName(f"sheet of {name}", sheet, names)
    return book.get_sheet_by_index(0) if sheet is None else book.get_sheet_by_name(sheet)


def _cell_text(value: object) -> str | None:
    if value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return str(value.date())
    return str(value)


def _refuse_sheet(message: str, name: str, hint: str = "") -> InvalidInput:
    return InvalidInput(message, field="table", value=name, hint=hint)


def vcf_samples(path: str) -> list[str]:
    """The people of a VCF file."""
    try:
        return [str(name) for name in _read_vcf(path).samples]
    except Exception:
        raise _no_vcf(path) from None


def vcf_counts(
    path: str, cases: list[bool], controls: list[bool]
) -> tuple[bytes, list[tuple[str, str, int, str, str]], int]:
    """(counts of each variant as 9 whole numbers of 64 bits: three genotypes of cases, then of
    controls, then of others; chromosome, name, position, A1, A2 of each; variants left out)."""
    import numpy as np

    labelled = (np.array(cases, dtype=bool), np.array(controls, dtype=bool))
    groups = (*labelled, ~(labelled[0] | labelled[1]))
    kinds = (REFERENCE, HETEROZYGOUS, ALTERNATE)
    counts, snps, left_out = array("q"), [], 0
    try:
        for variant in _read_vcf(path):
            if len(variant.ALT) != 1:
                left_out += 1
                continue
            types = variant.gt_types
            counts.extend(int(np.count_nonzero(types[g] == kind)) for g in groups for kind in kinds)
            name = variant.ID or f"{variant.CHROM}:{variant.POS}"
            position = int(variant.POS)
            snps.append((str(variant.CHROM), str(name), position, str(variant.ALT[0]), variant.REF))
        return counts.tobytes(), snps, left_out
    except Exception:
        raise _no_vcf(path) from None


def _read_vcf(path: str) -> Any:
    from cyvcf2 import VCF

    return VCF(path, gts012=True, strict_gt=True)


def _no_vcf(path: str) -> InvalidInput:
    return InvalidInput(f"{Path(path).name} is not a VCF file", field=Path(path).name)


def pvar_columns(path: str) -> tuple[str, str, bytes, str, str, bytes]:
    """The variants of a .pvar, .pvar.zst or .bim file: chromosomes, names, positions (64 bits
    each), first alternate alleles, reference alleles, numbers of alleles (64 bits each). Texts are
    lines: a million of them come back faster in one piece."""
    import numpy as np
    from pgenlib import PvarReader

    try:
        reader = PvarReader(path.encode())
        many = range(reader.get_variant_ct())
        position = np.array([reader.get_variant_pos(i) for i in many], dtype=np.int64)
        alleles = np.diff(np.asarray(reader.get_allele_idx_offsets()).astype(np.int64))
        texts = [
            b"\n".join(column).decode()
            for column in (
                [reader.get_variant_chrom(i) for i in many],
                [reader.get_variant_id(i) for i in many],
                [reader.get_allele_code(i, 1) for i in many],
                [reader.get_allele_code(i, 0) for i in many],
            )
        ]
    except Exception:
        name = Path(path).name
        message = f"{name} is damaged, or is not a list of variants"
        raise InvalidInput(message, field=name, value=name) from None
    return texts[0], texts[1], position.tobytes(), texts[2], texts[3], alleles.tobytes()


def pgen_counts(
    path: str, people: int, alleles: bytes, variants: bytes, groups: list[bytes]
) -> bytes:
    """Numbers of people with 0, 1 and 2 copies of the alternate allele at each of `variants`, three
    (of 64 bits) for each group and three for everybody else; hard calls, phased or not.

    Args:
        alleles: how many alleles each variant of the file has, 64 bits each.
        variants: indices of variants, 32 bits each.
        groups: indices of people, 32 bits each, in their order; nobody is in two groups.
    """
    import numpy as np

    wanted = np.frombuffer(variants, dtype=np.uint32)
    found = np.zeros((len(groups) + 1, len(wanted), 4), dtype=np.uint32)
    indices = wanted.tolist()
    try:
        for table, members in zip(found, [*groups, None], strict=True):
            if members is None or members:
                count = _read_pgen(path, people, alleles, members).count
                for variant, row in zip(indices, table, strict=True):
                    count(variant, row)
    except Exception:
        raise _no_pgen(path) from None
    counts = found[:, :, :3].astype(np.int64)
    counts[-1] -= counts[:-1].sum(axis=0)
    return counts.transpose(1, 0, 2).tobytes()


def pgen_genotypes(
    path: str, people: int, alleles: bytes, variants: bytes, dosages: bool = False
) -> bytes:
    """Copies of the alternate allele, variants × people: whole numbers of 8 bits, or dosages of 32
    bits; below 0 where missing."""
    import numpy as np

    wanted = np.frombuffer(variants, dtype=np.uint32)
    try:
        reader = _read_pgen(path, people, alleles)
        copies: Any = np.empty((len(wanted), people), dtype=np.float32 if dosages else np.int8)
        (reader.read_dosages_list if dosages else reader.read_list)(wanted, copies)
    except Exception:
        raise _no_pgen(path) from None
    return bytes(copies.tobytes())


def _read_pgen(path: str, people: int, alleles: bytes, members: bytes | None = None) -> Any:
    import numpy as np
    from pgenlib import PgenReader

    each = np.frombuffer(alleles, dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(each)]).astype(np.uintp) if (each > 2).any() else None
    subset = None if members is None else np.frombuffer(members, dtype=np.uint32)
    return PgenReader(
        path.encode(),
        raw_sample_ct=people,
        variant_ct=len(each),
        sample_subset=subset,
        allele_idx_offsets=offsets,
    )


def _no_pgen(path: str) -> InvalidInput:
    name = Path(path).name
    message = f"{name} is damaged, or does not belong to the people and variants beside it"
    return InvalidInput(message, field=name, value=name)
