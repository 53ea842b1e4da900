"""A ledger's history as files: JSON with everything, CSV for a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from whosin.ledger import Entry, Standing
from whosin.ledger.chain import canonical

Records = Sequence[tuple[Standing, Sequence[Entry]]]
COLUMNS = ("dataset", "number", "kind", "request", "who", "when", "body", "head")


def json_text(records: Records) -> str:
    """All datasets with all their entries."""
    data = [
        {**standing.to_dict(), "history": [entry.to_dict() for entry in entries]}
        for standing, entries in records
    ]
    return json.dumps({"datasets": data}, ensure_ascii=False, indent=2) + "\n"


def csv_text(records: Records) -> str:
    """One line an entry; `body` is JSON, from which the digests can be recomputed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for _, entries in records:
        for entry in entries:
            named = [entry.dataset, entry.number, entry.kind, entry.request]
            said = [entry.body["who"], entry.body["when"], canonical(entry.body), entry.head]
            writer.writerow([*named, *said])
    return out.getvalue()
