"""A synthetic table, by one of two methods.

"responses": one randomised row for each entity. Its length is the number of entities, so
it exists only where that is known: between neighbours that replace one entity. Each row is answered
on its own: E_d keeps a cell with probability g/(g+m−1), g ≤ e^ε, else it is one of the m−1 others;
with a declared prior it is the best ε-private mechanism for that prior (T21). What is charged is
the DP level.

"marginals": rows drawn from a model of noisy tables (`release.learned`), as many as wanted, under
any plan. What is charged is what the tables, the choices and the figure for its quality cost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from whosin.errors import InvalidInput, UnknownName
from whosin.extras import needs
from whosin.ledger.charge import Charge, Cost
from whosin.release.columns.cells import Cells, check_one_level
from whosin.release.engines.base import Progress, Redrawn
from whosin.release.learned.spanning import SpanningTree
from whosin.release.learned.tables import WAYS, Learning, TableChoice, learning
from whosin.release.prices.pricing import Offer, Share
from whosin.release.queries.base import Query
from whosin.release.queries.marginals import Marginals, column_names
from whosin.release.queries.responses import Response, prior_response, uniform_response
from whosin.release.scans import bounding
from whosin.release.scans.bounding import eligible
from whosin.release.table import Table
from whosin.release.what_counts import Caution, Counted, beyond
from whosin.validation import whole

LEARNED = "marginals"
METHODS = ("responses", LEARNED)
LEARNED_KEYS = ("order", "sets", "choose", "choosing", "length", "rows")
FILE_SAYS = ("method", "chosen", "quality", "promise")
"""Those of the answer's details that a learned file has in its own metadata, under "whosin"."""
BATCH = 1_000_000
"""Rows that are written at a time."""


@dataclass(frozen=True, kw_only=True)
class Synthetic(Query):
    """A table of rows that are nobody's, in random order, written as Parquet: one file, or on Spark
    a folder of files.

    Args:
        columns: declared columns.
        path: the file to write.
        method: "responses" for one randomised row for each entity, where their number is known;
            "marginals" for rows drawn from a model that was learned from noisy tables.
        prior: for "responses", what is publicly believed about a row: the probability of each
            combination of values, in the order of the declared domains, "other" last in each
            column. Fewer rows change if it is right; cells that it thinks rare may not be shown at
            all.
        order: for "marginals", as the keys below: it learns all tables of up to this many columns.
        sets: the tables to learn instead, each a list of columns.
        choose: learn from tables that are chosen privately, rather than from all those of up to
            `order` columns or of `sets`, which are then what it should be good at: "adaptive" in
            rounds, each where the last model was most wrong; "tree" for pairs that join all
            columns, which is quicker; true for the first, or the second where there are many
            tables.
        choosing: the part of the budget for choosing; 1/10 by default, 1/6 with "tree".
        length: how many rows to draw; the noisy number of rows that count by default.
        rows: how many rows of an entity count, in all; the table's own bound by default.
    """

    kind: ClassVar[str] = "synthetic"
    label: ClassVar[str] = "a synthetic table"
    example: ClassVar[tuple[str, str, str]] = ("path", "name of the file", "synthetic.parquet")
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"method": METHODS, "choose": tuple(WAYS)}
    only_with: ClassVar[Mapping[str, tuple[str, str]]] = {
        "prior": ("method", METHODS[0]),
        **dict.fromkeys(LEARNED_KEYS, ("method", LEARNED)),
    }
    writes_file: ClassVar[bool] = True
    columns: Sequence[str]
    path: str
    method: str = "responses"
    prior: Sequence[object] | None = None
    order: int | None = None
    sets: Sequence[Sequence[str]] | None = None
    choose: bool | str = False
    choosing: object = None
    length: int | None = None
    rows: int | None = None

    @property
    def takes_gaussian(self) -> bool:
        return self.method == LEARNED

    def offer(self, table: Table, share: Share) -> Offer:
        if self.method not in METHODS:
            raise UnknownName("method", str(self.method), METHODS)
        self._require_own_keys()
        if self.method == LEARNED:
            return self._learned(table, share)
        if share.relation != "replace":
            accepted = "asked under a plan whose size is known (replace): its length shows the size"
            raise InvalidInput("synthetic", accepted, share.relation)
        if self.where is not None:
            raise InvalidInput("where", "left out: it would show how many meet it", self.where)
        path = self._path()
        cells = self._cells(table)
        response = self._response(cells, share.epsilon)
        expression = table.check(self._expression(table, cells))
        _require_writable(path)
        charge = Charge(self.asked(table), {"replace": Cost.pure(response.epsilon)})
        return Offer(self, share, charge, response.words(), details=response, expression=expression)

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        if self.method == LEARNED:
            return self._drawn(table, offer, progress)
        response: Response = offer.details
        cells = self._cells(table)
        redrawn = Redrawn(offer.expression, cells.count, response.draw, cells.batch)
        written = table.engine.write_rows(redrawn, self.path, progress)
        return {
            "columns": ["file", "rows", "digest"],
            "rows": [[Path(self.path).name, written.rows, written.digest]],
        }

    def counted(self, table: Table) -> Counted:
        if self.method == LEARNED:
            return self._asked().counted(table)
        cells = self._cells(table)
        outside = beyond(cells.columns, cells.domains)
        return Counted(table.entity, 1, **outside, by_row=table.by_row)

    def cautions(self, table: Table) -> tuple[Caution, ...]:
        return self._asked().cautions(table) if self.method == LEARNED else ()

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

    def _require_own_keys(self) -> None:
        """A key of the other method would be ignored."""
        others = ("prior",) if self.method == LEARNED else LEARNED_KEYS
        for key in others:
            if getattr(self, key) not in (None, False):
                other = next(each for each in METHODS if each != self.method)
                raise InvalidInput(key, f'left out, or given with method = "{other}"', "given")

    def _asked(self) -> Marginals:
        """The tables that a learned table should be good at."""
        sets = None if self.sets is None else list(self.sets)
        if self.choose == SpanningTree.name and sets is not None:
            raise InvalidInput("sets", 'left out with choose = "tree": pairs are chosen', "given")
        columns = () if sets is not None else self.columns
        order = self.order
        if self.choose and order is not None:
            order = whole(order, "order", 2, 20)
        return Marginals(columns=columns, order=order, sets=sets, rows=self.rows, where=self.where)

    def _learned(self, table: Table, share: Share) -> Offer:
        needs("synthetic")
        path, names = self._path(), column_names(self.columns)
        self._require_columns(table, names)
        length = None if self.length is None else whole(self.length, "length", 1)
        choice = TableChoice.read(self.choose, self.choosing)
        learned = learning(table, share, self._asked(), names, choice, length)
        expression = learned.scan.expression(table, self.where, learned.rows)
        table.check(expression)
        _require_writable(path)
        charge = Charge(self.asked(table), learned.costs)
        return Offer(self, share, charge, learned.words(), details=learned, expression=expression)

    def _require_columns(self, table: Table, names: Sequence[str]) -> None:
        """A synthetic row has a value in each column, and no ranges or sums of values."""
        check_one_level(table, names, "columns")
        field = "columns" if self.sets is None else "sets"
        for each in chain.from_iterable(self._asked().tables(table).forms):
            if (each.name not in names and each.root in names) or each.cells is None:
                raise InvalidInput(field, "columns as they are in the rows", repr(each.name))

    def _drawn(self, table: Table, offer: Offer, progress: Progress | None) -> Any:
        learned: Learning = offer.details
        scan = learned.scan
        counts = dict(zip(scan.sets, scan.count(table, offer.expression, progress), strict=True))
        drawn = learned.draw(counts, self.length)
        order = [learned.cells.columns.index(name) for name in self.columns]
        cells = Cells(tuple(self.columns), tuple(learned.cells.domains[at] for at in order))
        numbers = [drawn.numbers[at] for at in order]
        details = learned.details(drawn, offer.share)
        about = {key: details[key] for key in FILE_SAYS if key in details}
        schema = cells.labelled([each[:0] for each in numbers]).schema.with_metadata(
            {"whosin": json.dumps(about, ensure_ascii=False)}
        )
        starts = range(0, len(numbers[0]), BATCH)
        batches = (cells.labelled([each[at : at + BATCH] for each in numbers]) for at in starts)
        written = table.engine.write_batches(batches, schema, self.path, progress)
        return {
            "columns": ["file", "rows", "digest"],
            "rows": [[Path(self.path).name, written.rows, written.digest]],
            "details": details,
        }

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


def _require_writable(path: Path) -> None:
    if not os.access(path.parent, os.W_OK):
        raise InvalidInput("path", "in a folder that can be written to", path.name)


def _digest(answer: Any) -> str | None:
    return None if answer is None else str(answer["rows"][0][2])
