"""The most frequent cells: OpenDP's noisy top-k on counts of entities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import figures
from whosin.ledger.charge import Charge, Cost
from whosin.noise import selection_epsilon, top_k
from whosin.release.columns.cells import Cells
from whosin.release.engines.base import Progress
from whosin.release.prices.pricing import CONFIDENCE, SLIGHTLY_MORE, Offer, Share
from whosin.release.queries.base import Query
from whosin.release.scans import bounding
from whosin.release.scans.bounding import Bounds, eligible
from whosin.release.table import MOST_ROWS, Table
from whosin.release.what_counts import Counted, beyond
from whosin.validation import whole


@dataclass(frozen=True, kw_only=True)
class Top(Query):
    """Which k values, or combinations of values, most entities have, best first.

    One entity moves each count by at most 1, whatever the number of cells it is in, and all counts
    the same way when it is added or removed. Only the order is released, no counts.

    Args:
        by: declared columns.
        k: how many.
    """

    kind: ClassVar[str] = "top"
    label: ClassVar[str] = "the most frequent values"
    example: ClassVar[tuple[str, str, str]] = ("k", "how many", "3")
    by: Sequence[str] | str
    k: int = 10

    def offer(self, table: Table, share: Share) -> Offer:
        cells = self._cells(table)
        choices = len(self._named(cells))
        if whole(self.k, "k", 1, MOST_ROWS) > choices:
            raise InvalidInput("k", f"at most {choices}, the number of declared cells", self.k)
        expression = table.check(self._expression(table, cells))
        times = self.k * (2 if share.relation == "replace" else 1)
        scale = times / share.epsilon * SLIGHTLY_MORE
        costs = {
            "add-remove": Cost.pure(selection_epsilon(1, scale, self.k, monotonic=True)),
            "replace": Cost.pure(selection_epsilon(1, scale, self.k)),
        }
        within = float(scale) * math.log(choices * self.k / (1 - CONFIDENCE))
        words, charge = f"selection among {choices} cells", Charge(self.asked(table), costs)
        return Offer(
            self,
            share,
            charge,
            words,
            within=within,
            within_words="with 95% probability no value that is left out has more than "
            f"{figures(within, 3, 'up')} people more than one that is named",
            details=scale,
            expression=expression,
        )

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        scale: Fraction = offer.details
        cells = self._cells(table)
        result = table.engine.run(offer.expression, progress)
        counts, named = cells.dense(result, ["people"])[0], self._named(cells)
        chosen = top_k(counts[np.asarray(named)], self.k, scale)
        labels = cells.labels()
        rows = [[rank, *labels[named[index]]] for rank, index in enumerate(chosen, 1)]
        return {"columns": ["rank", *cells.headings("rank")], "rows": rows}

    def counted(self, table: Table) -> Counted:
        cells = self._cells(table)
        left = beyond(cells.columns, cells.domains)
        return Counted(
            table.entity,
            outside=left["outside"],
            by_row=table.by_row,
            unnamed=tuple(left["others"]),
        )

    def _cells(self, table: Table) -> Cells:
        cells = Cells.of(table, self.by)
        if not cells.columns:
            raise InvalidInput("by", "at least one column", "none")
        return cells

    def _named(self, cells: Cells) -> list[int]:
        """The cells without "other", which is no name and which a closed domain does not have."""
        others = [domain.labels[-1] if domain.outside is None else None for domain in cells.domains]
        return [
            index
            for index, label in enumerate(cells.labels())
            if not any(key == other for key, other in zip(label, others, strict=True))
        ]

    def _expression(self, table: Table, cells: Cells) -> Any:
        everywhere = Bounds(1, cells.count)
        return bounding.people(eligible(table, self.where), table, cells, everywhere)
