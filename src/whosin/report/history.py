"""A ledger's history as files: JSON with everything, CSV for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from whosin.ledger import Entry, Standing
from whosin.ledger.chain import canonical

Records = Sequence[tuple[Standing, Sequence[Entry]]]
COLUMNS = ("dataset", "number", "kind", "request", "who", "when", "body", "head")


def data_of(records: Records, *, entries: bool = True) -> dict[str, list[dict[str, Any]]]:
    """All datasets as plain data, with all their entries if asked for."""
    datasets = []
    for standing, history in records:
        past = {"history": [entry.to_dict() for entry in history]} if entries else {}
        datasets.append(standing.to_dict() | past)
    return {"datasets": datasets}


def json_text(records: Records) -> str:
    """The same as a file."""
    return json.dumps(data_of(records), ensure_ascii=False, indent=2) + "\n"


def csv_text(records: Records) -> str:
    """One line per entry; `body` is JSON, from which the digests can be recomputed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for _, entries in records:
        for entry in entries:
            named = [entry.dataset, entry.number, entry.kind, entry.request]
            said = [entry.body["who"], entry.body["when"], canonical(entry.body), entry.head]
            writer.writerow([*named, *said])
    return out.getvalue()
