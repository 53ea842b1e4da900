"""A synthetic table: one randomised row for each entity.

Its length is the number of entities, so it exists only where that is known: between neighbours that
replace one entity. Each row is answered on its own: E_d keeps a cell with probability g/(g+m−1),
g ≤ e^ε, else it is one of the m−1 others; with a declared prior it is the best ε-private mechanism
for that prior (T21). What is charged is the DP level.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from whosin.errors import InvalidInput
from whosin.ledger.charge import Charge, Cost
from whosin.release import bounding
from whosin.release.bounding import eligible
from whosin.release.cells import Cells
from whosin.release.engines.base import Progress, Redrawn
from whosin.release.pricing import Offer, Share
from whosin.release.queries.base import Query
from whosin.release.queries.responses import Response, prior_response, uniform_response
from whosin.release.table import Table
from whosin.release.what_counts import Counted, beyond


@dataclass(frozen=True, kw_only=True)
class Synthetic(Query):
    """A table with one randomised row for each entity, in random order, written as Parquet: one
    file, or on Spark a folder of files.

    Args:
        columns: declared columns.
        path: the file to write.
        prior: what is publicly believed about a row: the probability of each combination of
            values, in the order of the declared domains, "other" last in each column. Fewer rows
            change if it is right; cells that it thinks rare may not be shown at all.
    """

    kind: ClassVar[str] = "synthetic"
    label: ClassVar[str] = "a synthetic table (they must know how many)"
    example: ClassVar[tuple[str, str, str]] = ("path", "name of the file", "synthetic.parquet")
    writes_file: ClassVar[bool] = True
    columns: Sequence[str]
    path: str
    prior: Sequence[object] | None = None

    def offer(self, table: Table, share: Share) -> Offer:
        if share.relation != "replace":
            accepted = "asked under a plan whose size is known (replace): its length shows the size"
            raise InvalidInput("synthetic", accepted, share.relation)
        if self.where is not None:
            raise InvalidInput("where", "left out: it would show how many meet it", self.where)
        path = self._path()
        cells = self._cells(table)
        response = self._response(cells, share.epsilon)
        expression = table.check(self._expression(table, cells))
        if not os.access(path.parent, os.W_OK):
            raise InvalidInput("path", "in a folder that can be written to", path.name)
        charge = Charge(self.asked(table), {"replace": Cost.pure(response.epsilon)})
        return Offer(self, share, charge, response.words(), details=response, expression=expression)

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        response: Response = offer.details
        cells = self._cells(table)
        redrawn = Redrawn(offer.expression, cells.count, response.draw, cells.batch)
        written = table.engine.write_rows(redrawn, self.path, progress)
        return {
            "columns": ["file", "rows", "digest"],
            "rows": [[Path(self.path).name, written.rows, written.digest]],
        }

    def counted(self, table: Table) -> Counted:
        cells = self._cells(table)
        outside = beyond(cells.columns, cells.domains)
        return Counted(table.entity, 1, **outside, by_row=table.by_row)

    def publish(self, table: Table, drawn: Any, stored: Any) -> str | None:
        """Only the table whose digest is stored gets its name: one request, one table."""
        name, mine, kept = Path(self.path).name, _digest(drawn), _digest(stored)
        if mine is not None and mine != kept:
            table.engine.discard(self.path, mine)
        if kept is None or table.engine.publish(self.path, kept):
            return None
        return (
            f"{name} is not here: this request wrote its table in another place, or it was changed "
            f"since; its SHA-256 is {kept}"
        )

    def question(self) -> dict[str, Any]:
        """As every query's; the file by its name, so that a ledger does not depend on folders."""
        return super().question() | {"path": Path(self.path).name}

    def _path(self) -> Path:
        if not isinstance(self.path, str | Path) or Path(self.path).suffix != ".parquet":
            raise InvalidInput("path", "a file ending in .parquet", repr(self.path)[:80])
        return Path(self.path)

    def _cells(self, table: Table) -> Cells:
        cells = Cells.of(table, self.columns)
        if not cells.columns:
            raise InvalidInput("columns", "at least one column", "none")
        for column, domain in zip(cells.columns, cells.domains, strict=True):
            if domain.drops:  # the table's length would show that a row was dropped
                accepted = "one that drops no row, for a synthetic table"
                raise InvalidInput(f"domain of {column}", accepted, f"outside {domain.outside!r}")
        return cells

    def _response(self, cells: Cells, epsilon: Fraction) -> Response:
        if self.prior is None:
            return uniform_response(cells.count, epsilon)
        return prior_response(cells.count, self.prior, epsilon)

    def _expression(self, table: Table, cells: Cells) -> Any:
        rows = eligible(table, None)
        base = cells.coded(rows, **bounding.owner(rows, table))
        one = bounding.first(base, [bounding.ENTITY], 1)
        sizes = [len(domain.labels) for domain in cells.domains]
        code = one[cells.names[0]]
        for name, size in zip(cells.names[1:], sizes[1:], strict=True):
            code = code * size + one[name]
        return one.select(code=code)


def _digest(answer: Any) -> str | None:
    return None if answer is None else str(answer["rows"][0][2])
