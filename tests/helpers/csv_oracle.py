"""What docs/release.md says of the lines of a CSV file, letter by letter, and hostile lines.

Nothing here is shared with the package.
"""

from __future__ import annotations

import random
import re

PIECES = [
    *(b"a", b"b", b"1", b",", b",", b'"', b'""', b'","', b"\x00", b"\xff", b"\x1f", b"\xc3\xa9"),
    *(b" ", b"\\", b"'", b"\xef\xbb\xbf", b"\r", b"NULL", b'"a,b"', b'"a""b"', b"#", b";", b"\t"),
]
EVIL = b'evil,"A,1'


def hostile(seed: int, lines: int) -> bytes:
    """Lines of pieces that could trip a reader."""
    draw = random.Random(seed)
    ends = [b"\n", b"\r\n", b"\r", b"\n\n"]
    found = [b"".join(draw.choices(PIECES, k=draw.randrange(12))) for _ in range(lines)]
    return b"".join(line + draw.choice(ends) for line in found)


def rows(content: bytes, longest: int = 1_000_000) -> list[tuple[str | None, ...]]:
    """The rows of a file with commas, in its order."""
    lines = [line.split(b"\x1f")[0] for line in re.split(rb"\r\n|\r|\n", content)]
    header = lines[0].decode().lstrip("\ufeff")
    found = []
    for line in lines:
        try:
            text = line.decode().lstrip("\ufeff")
        except UnicodeDecodeError:
            continue
        if text and text != header and len(text.encode()) <= longest:
            fields = [_unquoted(field) for field in _fields(text)]
            count = header.count(",") + 1
            padded = (fields + [None] * count)[:count]
            found.append(tuple(padded))
    return found


def _fields(line: str) -> list[str]:
    """By a machine that reads one letter at a time."""
    fields, field, state = [], "", "start"
    for letter in line:
        if state in ("start", "plain") and letter == '"':
            if state == "plain":
                return line.split(",")  # a quote that opens nothing
            state = "quoted"
        elif state == "quoted" and letter == '"':
            state = "closed"
        elif state == "closed" and letter == '"':
            state = "quoted"
        elif state != "quoted" and letter == ",":
            fields.append(field)
            field, state = "", "start"
            continue
        elif state == "closed":
            return line.split(",")  # a quote that closes nothing
        elif state == "start":
            state = "plain"
        field += letter
    if state == "quoted":
        return line.split(",")
    return [*fields, field]


def _unquoted(field: str) -> str | None:
    if len(field) > 1 and field[0] == field[-1] == '"':
        field = field[1:-1].replace('""', '"')
    return field or None
