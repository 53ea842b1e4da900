"""Fingerprints of a source, so that the same rows are recognised under another name.

Contract: they are for the ledger, which seals them; nobody else sees them, and no error depends on
what they are made of. They are cheap: files above 16 MB are sampled, rows are only looked at where
there are few. Equal files have equal `bytes`, wherever they lie and whatever they are called; equal
rows have equal `rows` in a file, a database or memory, in any order, as long as their values are
spelled alike. Where neither can be had, there is the `place`. For a table on a server this says
which server, database and table it is, by whatever name it is reached; `table` is the number under
which the server keeps it, whatever it is called and whatever becomes of its rows.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from whosin.release.engines import DuckDB
from whosin.release.engines.base import files_of, kind_of
from whosin.release.engines.databases import Address, described, read_address
from whosin.release.table import Table

WHOLE = 16 << 20
"""Bytes of a source that are all read."""
BLOCK, BLOCKS = 1 << 16, 64
"""From a larger source this many blocks of this size are read: evenly spaced, with both ends."""
MOST_BYTES, MOST_CELLS = 32 << 20, 20_000_000
"""The largest files, and the largest tables, whose rows are looked at."""
MEMORY = "1GB"
HEXADECIMAL = 8
"""Digits of a row's digest that are summed: sums of 2^31 rows fit 64 bits."""


def fingerprint(table: Table, *, rows: bool = False) -> dict[str, str]:
    """Fingerprints by kind; those of a further table with its name: "bytes:visits".

    Args:
        rows: look at the rows of files too, to recognise them in a database or another format.
    """
    result = _of_source(table, table.source, rows)
    for each in table.tables:
        own = _of_source(table, each.source, rows)
        result |= {f"{kind}:{each.name}": print_ for kind, print_ in own.items()}
    return result


def _of_source(table: Table, source: object, rows: bool) -> dict[str, str]:
    path = str(source) if isinstance(source, str | Path) else None
    address = read_address(path)
    if address is not None and address.remote:
        return _of_server(address, table, source, rows)
    files = _files(path)
    result = {} if path is None else fingerprint_of_source(path)
    if files:
        rows = rows and sum(os.stat(file).st_size for file in files) <= MOST_BYTES
    if rows or not files:
        counted = _rows(table, source)
        if counted is not None:
            result["rows"] = counted
    return result


def _of_server(address: Address, table: Table, source: object, rows: bool) -> dict[str, str]:
    """Which table of which server it is, however its address is spelled. It is alive, so that its
    rows may differ the next day; they are looked at where a budget is opened for them."""
    facts = described(address)
    result = {"place": _digest(facts.identity)}
    if facts.number is not None:
        result["table"] = _digest(facts.number)
    if rows and facts.size is not None and facts.size <= MOST_BYTES:
        counted = _rows(table, source)
        if counted is not None:
            result["rows"] = counted
    return result


def fingerprint_of_source(source: str) -> dict[str, str]:
    """What can be said of a source without opening it as a table: the bytes of its files, or where
    it lies."""
    files = _files(source)
    return {"bytes": _bytes(files)} if files else {"place": _digest(_resolved(source))}


def _files(source: str | None) -> list[str]:
    """The local files of a source; none for what lies in a database, in memory or elsewhere."""
    if source is None or "::" in source or "://" in source:
        return []
    try:
        return files_of(source, kind_of(source))
    except (OSError, ValueError):
        return []


def _resolved(source: str) -> str:
    file, mark, name = source.partition("::")
    if not file or "://" in file:
        return source
    return f"{Path(file).resolve()}{mark}{name}"


def _bytes(files: list[str]) -> str:
    """A digest of the contents alone: folders and names may change."""
    blocks = max(1, BLOCKS // len(files))
    parts = sorted(_of_file(Path(file), blocks, WHOLE // len(files)) for file in files)
    return _digest("\n".join(parts))


def _of_file(path: Path, blocks: int, whole: int) -> str:
    size = path.stat().st_size
    made = hashlib.sha256(f"{size}\n".encode())
    with path.open("rb") as file:
        if size <= max(whole, BLOCK * blocks):
            while part := file.read(1 << 20):
                made.update(part)
        else:
            for number in range(blocks + 1):
                file.seek((size - BLOCK) * number // blocks)
                made.update(file.read(BLOCK))
    return made.hexdigest()


def _rows(table: Table, source: object) -> str | None:
    """A digest of rows in any order: how many there are, and the sum of their digests."""
    import ibis

    if isinstance(source, ibis.Table) or table.engine.name != "duckdb":
        return None
    try:
        # An engine of its own: what a row does to it must not show in the answers.
        with DuckDB(memory=MEMORY) as engine:
            data = engine.open(source)
            names = sorted(data.columns, key=lambda name: (name.lower(), name))
            count = data.count().name("rows").as_table()
            many = engine.run(count).column("rows")[0].as_py()
            if many * max(1, len(names)) > MOST_CELLS:
                return None
            row = engine.run(_summed(data, names)).to_pylist()[0]
    except Exception:  # it may say something about rows; without this print there are the others
        return None
    header = "\x1f".join(name.lower() for name in names)
    return _digest(f"{header}\n{row['rows']}\n{row['first']}\n{row['second']}")


def _summed(data: Any, names: list[str]) -> Any:
    text = data[names[0]].cast("string").fill_null("")
    for name in names[1:]:
        text = text + "\x1f" + data[name].cast("string").fill_null("")
    digests = data.select(digest=text.hexdigest("md5"))
    parts = {
        name: ("0x" + digests["digest"].substr(start, HEXADECIMAL)).cast("int64").sum()
        for name, start in (("first", 0), ("second", HEXADECIMAL))
    }
    return digests.aggregate(rows=digests.count(), **parts)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
