"""Workbooks written by hand: what a spreadsheet program saves, and what it should not."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
DAY_ZERO = datetime.datetime(1899, 12, 30)
OLD_FORMAT = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How encrypted workbooks and those of .xls begin."""


def write_workbook(
    path: Path, sheets: Mapping[str, Sequence[Sequence[object]]], merged: str = ""
) -> Path:
    """A workbook with sheets of rows; `merged` is a range of merged cells in each of them."""
    names = list(sheets)
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>'
        for n, name in enumerate(names, 1)
    )
    related = "".join(
        f'<Relationship Id="rId{n}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(names) + 1)
    )
    related += f'<Relationship Id="rId0" Type="{OFFICE}/styles" Target="styles.xml"/>'
    parts = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{TYPES}.worksheet+xml"/>'
        for n in range(1, len(names) + 1)
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{TYPES}.sheet.main+xml"/>'
            f'<Override PartName="/xl/styles.xml" ContentType="{TYPES}.styles+xml"/>'
            f"{parts}</Types>",
        )
        file.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
            f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        file.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{PACKAGE}/relationships">{related}</Relationships>',
        )
        file.writestr(
            "xl/workbook.xml",
            f'<workbook {MAIN} xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        )
        file.writestr(
            "xl/styles.xml",
            f'<styleSheet {MAIN}><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/>'
            '<xf numFmtId="22"/></cellXfs></styleSheet>',
        )
        for number, rows in enumerate(sheets.values(), 1):
            file.writestr(f"xl/worksheets/sheet{number}.xml", _sheet_text(rows, merged))
    return path


def _sheet_text(rows: Sequence[Sequence[object]], merged: str) -> str:
    lines = []
    for number, row in enumerate(rows, 1):
        cells = (_cell(f"{_letters(place)}{number}", value) for place, value in enumerate(row))
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    ranges = f'<mergeCells count="1"><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    return f"<worksheet {MAIN}><sheetData>{''.join(lines)}</sheetData>{ranges}</worksheet>"


def _letters(place: int) -> str:
    return (_letters(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def _cell(where: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{where}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{where}"><v>{value!r}</v></c>'
    if isinstance(value, datetime.datetime):
        days = (value - DAY_ZERO).total_seconds() / 86400
        return f'<c r="{where}" s="2"><v>{days!r}</v></c>'
    if isinstance(value, datetime.date):
        whole = datetime.datetime(value.year, value.month, value.day) - DAY_ZERO
        return f'<c r="{where}" s="1"><v>{whole.days}</v></c>'
    if str(value).startswith("#"):
        return f'<c r="{where}" t="e"><v>{value}</v></c>'
    return f'<c r="{where}" t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'
