"""Synthetic tables: randomised responses, or rows drawn from a model of noisy marginals.

"responses": one randomised row for each privacy unit. Its length is the number of privacy units, so
it exists only where that is known: between neighbours that replace one privacy unit. Each row is
answered on its own. Without a prior that is E_d (Wang14 eq. 30), which keeps a cell with
probability g/(g+m−1), g ≤ e^ε, else it is one of the m−1 others. With one it is the best ε-private
mechanism for that prior (T21): randomised response among the likeliest cells; a row of another cell
is answered by any of these. What is charged is the DP level. E_i (Wang14 eq. 29), the best for a
level of identifiability, has a DP level of up to ε + ε_X, and at the cost of that level it changes
more rows than E_d does.

"marginals": rows drawn from a model of noisy tables (`release.synthetic_tables`), as many as
wanted, under any plan. What is charged is what the tables, the choices and the figure for its
quality cost.
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

import numpy as np

from whosin.errors import (
    InvalidInput,
    UnknownName,
    invalid_value,
    read_whole,
    require_extras,
    spell,
)
from whosin.exact import Array, exact_fraction, exp_down, format_decimals, log_up, probability
from whosin.ledger.budget import Cost
from whosin.noise import bernoulli, uniform
from whosin.release import contribution_bounds
from whosin.release.column_expressions import GroupGrid, check_one_level
from whosin.release.contribution_bounds import (
    ContributionPolicy,
    CostWarning,
    eligible_rows,
    outside_values,
)
from whosin.release.cost import NOISY_LEVEL, CostEstimate, ExpectedError, Share
from whosin.release.engines.base import Progress, RedrawnFile, WrittenFile
from whosin.release.queries.base import FILE_COLUMNS, Query
from whosin.release.queries.marginals import Marginals, column_names
from whosin.release.synthetic_selection import SELECTION_STRATEGIES, SpanningTree
from whosin.release.synthetic_tables import MarginalSelection, SynthesisPlan, plan_learning
from whosin.release.table import Table


@dataclass(frozen=True)
class RandomizedRow:
    """What becomes of one row's cell.

    Attributes:
        epsilon: the DP level between two values of a row, rounded up.
        kept: the probability that a cell among the shown ones stays as it is.
        changed: the share of rows that change, in the mean over the prior if there is one.
        outputs: the cells that answers come from; None for all.
    """

    name: str
    cells: int
    epsilon: float
    kept: Fraction
    changed: Fraction
    outputs: tuple[int, ...] | None = None

    def words(self) -> str:
        if self.outputs is None:
            kept = format_decimals(100 * self.kept, 1)
            return f"{self.name} over {self.cells} cells, keeps {kept}%"
        changed = f"changes {format_decimals(100 * self.changed, 1)}% of rows"
        several = f"the {len(self.outputs)} likeliest of {self.cells} cells"
        chosen = "always the likeliest cell" if len(self.outputs) == 1 else several
        return f"{self.name}, {chosen}, {changed} if the prior is right"

    def draw(self, codes: Array) -> Array:
        """An answer for each code, exactly."""
        outputs = np.arange(self.cells) if self.outputs is None else np.array(self.outputs)
        if len(outputs) == 1:
            return np.full(len(codes), outputs[0], codes.dtype)
        ranks = np.full(self.cells, -1)
        ranks[outputs] = np.arange(len(outputs))
        positions = ranks[codes]
        stay = bernoulli(self.kept, len(codes)).astype(bool)
        other = uniform(len(outputs) - 1, len(codes))
        inside = np.where(stay, positions, other + (other >= positions))
        outside = uniform(len(outputs), len(codes)) if (positions < 0).any() else positions
        return outputs[np.where(positions < 0, outside, inside)].astype(codes.dtype)


def uniform_response(cells: int, epsilon: Fraction) -> RandomizedRow:
    """E_d (Wang14 eq. 30)."""
    _require_two(cells)
    g = max(exp_down(_epsilon_below(epsilon)), Fraction(1))
    kept = g / (g + cells - 1)
    return RandomizedRow("E_d", cells, log_up(g), kept, 1 - kept)


def prior_response(cells: int, prior: Sequence[object], epsilon: Fraction) -> RandomizedRow:
    """The best ε-private answer for a row of this prior (T21), Hamming distortion."""
    from whosin.distortion.closed_forms import kept_values

    if not isinstance(prior, Sequence) or isinstance(prior, str) or len(prior) != cells:
        message = f"prior must list {cells} probabilities, one for each cell"
        raise InvalidInput(message, field="prior")
    _require_two(cells)
    read = tuple(probability(p, "prior") for p in prior)
    total = sum(read, Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9):
        message = f"prior adds up to {spell(total)}, not 1"
        raise InvalidInput(message, field="prior", value=float(total))
    g = max(exp_down(_epsilon_below(epsilon)), Fraction(1))
    outputs, changed = kept_values(tuple(p / total for p in read), g)
    level = log_up(g) if len(outputs) > 1 else 0.0
    kept = g / (g + len(outputs) - 1)
    return RandomizedRow("best for the prior (T21)", cells, level, kept, changed, tuple(outputs))


def _require_two(cells: int) -> None:
    if cells < 2:
        message = f"columns have {cells} cell together; synthetic rows need at least two"
        raise InvalidInput(message, field="columns", value=cells)


def _epsilon_below(epsilon: Fraction) -> float:
    """A float so far below that a level computed from it and rounded up stays within ε."""
    return float(epsilon) * (1 - 2**-50) - 1e-13


MARGINALS_METHOD = "marginals"
SYNTHETIC_METHODS = ("responses", MARGINALS_METHOD)
LEARNED_KEYS = ("order", "sets", "choose", "choosing", "length", "max_rows_per_group")
FILE_SAYS = ("method", "chosen", "quality", "promise")
"""Those of the answer's details that a learned file has in its own metadata, under "whosin"."""
BATCH_ROWS = 1_000_000
"""Rows that are written at a time."""


@dataclass(frozen=True, kw_only=True)
class Synthetic(Query):
    """A table of rows that are nobody's, in random order, written as Parquet: one file, or on Spark
    a folder of files.

    Args:
        columns: declared columns.
        path: the file to write.
        method: "responses" for one randomised row for each privacy unit, where their number is
            known; "marginals" for rows drawn from a model that was learned from noisy tables.
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
        max_rows_per_group: how many rows of a privacy unit count, in all; the table's own bound by
            default.
    """

    kind: ClassVar[str] = "synthetic"
    choices: ClassVar[Mapping[str, Sequence[str]]] = {
        "method": SYNTHETIC_METHODS,
        "choose": tuple(SELECTION_STRATEGIES),
    }
    writes_file: ClassVar[bool] = True
    no_width: ClassVar[tuple[str, str]] = (
        "it is rows, which have no number that could be off",
        "ask for marginals of the same columns with this width",
    )
    columns: Sequence[str]
    path: str
    method: str = "responses"
    prior: Sequence[object] | None = None
    order: int | None = None
    sets: Sequence[Sequence[str]] | None = None
    choose: bool | str = False
    choosing: object = None
    length: int | None = None
    max_rows_per_group: int | None = None

    @property
    def takes_gaussian(self) -> bool:
        return self.method == MARGINALS_METHOD

    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        if self.method not in SYNTHETIC_METHODS:
            raise UnknownName("method", str(self.method), SYNTHETIC_METHODS)
        self._require_own_keys()
        if self.method == MARGINALS_METHOD:
            return self._learned(table, share)
        if share.relation != "replace":
            message = (
                "a synthetic table of as many rows shows the size of the data, and this plan does "
                f"not take that as known ({share.relation} neighbours)"
            )
            hint = f'plan for an adversary who knows the size, or use method = "{MARGINALS_METHOD}"'
            raise InvalidInput(message, field="synthetic", value=share.relation, hint=hint)
        if self.where is not None:
            message = "where would show how many rows meet it, as many as the synthetic table has"
            raise InvalidInput(message, field="where", value=self.where, hint="leave it out")
        path = self._path()
        cells = self._cells(table)
        response = self._response(cells, share.epsilon)
        expression = table.check(self._expression(table, cells))
        self._require_writable(table, path)
        spend = self.make_spend(table, {"replace": Cost.pure(exact_fraction(response.epsilon))})
        return CostEstimate(
            self, share, spend, response.words(), details=response, expression=expression
        )

    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        if self.method == MARGINALS_METHOD:
            return self._drawn(table, estimate, progress)
        response: RandomizedRow = estimate.details
        cells = self._cells(table)
        redrawn = RedrawnFile(estimate.expression, cells.count, response.draw, cells.batch)
        written = table.engine.write_rows(redrawn, self.path, progress, estimate.owner)
        return self._file_answer(written)

    def expected_errors(self, table: Table, estimate: CostEstimate) -> tuple[ExpectedError, ...]:
        if self.method != MARGINALS_METHOD:  # whatever the number of rows
            return (ExpectedError(None, float(estimate.details.changed), of_rows=True),)
        return super().expected_errors(table, estimate)

    def expected_error(self, table: Table, noise: Any, rows: int) -> ExpectedError | None:
        distance = noise.expected_distance(rows)
        return ExpectedError(rows, distance, of_rows=True, noisy=distance > NOISY_LEVEL)

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        if self.method == MARGINALS_METHOD:
            return self._asked().contribution_policy(table)
        cells = self._cells(table)
        outside = outside_values(cells.columns, cells.domains)
        return ContributionPolicy(table.privacy_unit, 1, **outside, by_row=table.by_row)

    def cautions(self, table: Table) -> tuple[CostWarning, ...]:
        return self._asked().cautions(table) if self.method == MARGINALS_METHOD else ()

    def publish(self, table: Table, drawn: Any, stored: Any) -> str | None:
        """Only the table whose digest is stored gets its name: one request, one table."""
        name, mine, kept = Path(self.path).name, _answer_digest(drawn), _answer_digest(stored)
        if mine is not None and mine != kept:
            table.engine.discard(self.path, mine)
        if kept is None or table.engine.publish(self.path, kept):
            return None
        if os.path.lexists(self.path):
            return (
                f"{name} is not the table of this request, whose SHA-256 is {kept}, and nothing is "
                f"replaced: move it away, and ask again under the same request"
            )
        return (
            f"{name} is not here: this request wrote its table in another place, or it was changed "
            f"since; its SHA-256 is {kept}"
        )

    def question(self) -> dict[str, Any]:
        """As every query's; the file by its name, so that a ledger does not depend on folders."""
        return super().question() | {"path": Path(self.path).name}

    def _require_own_keys(self) -> None:
        """A key of the other method would be ignored."""
        others = ("prior",) if self.method == MARGINALS_METHOD else LEARNED_KEYS
        for key in others:
            if getattr(self, key) not in (None, False):
                other = next(each for each in SYNTHETIC_METHODS if each != self.method)
                message = f'{key} has a meaning for method = "{other}" only'
                hint = "leave it out, or change the method"
                raise InvalidInput(message, field=key, value=getattr(self, key), hint=hint)

    def _asked(self) -> Marginals:
        """The tables that a synthetic table should be good at."""
        sets = None if self.sets is None else list(self.sets)
        if self.choose == SpanningTree.name and sets is not None:
            message = 'sets cannot be combined with choose = "tree", which chooses pairs of columns'
            raise InvalidInput(message, field="sets", value=sets, hint="leave it out")
        columns = () if sets is not None else self.columns
        order = self.order
        if self.choose and order is not None:
            order = read_whole(order, "order", 2, 20)
        return Marginals(
            columns=columns,
            order=order,
            sets=sets,
            max_rows_per_group=self.max_rows_per_group,
            where=self.where,
        )

    def _learned(self, table: Table, share: Share) -> CostEstimate:
        require_extras("synthetic")
        path, names = self._path(), column_names(self.columns)
        self._require_columns(table, names)
        length = None if self.length is None else read_whole(self.length, "length", 1)
        choice = MarginalSelection.read(self.choose, self.choosing)
        learned = plan_learning(table, share, self._asked(), names, choice, length)
        expression = learned.scan.expression(table, self.where, learned.rows)
        table.check(expression)
        self._require_writable(table, path)
        spend = self.make_spend(table, learned.costs)
        return CostEstimate(
            self, share, spend, learned.words(), details=learned, expression=expression
        )

    def _require_columns(self, table: Table, names: Sequence[str]) -> None:
        """A synthetic row has a value in each column, and no ranges or sums of values."""
        check_one_level(table, names, "columns")
        field = "columns" if self.sets is None else "sets"
        for each in chain.from_iterable(self._asked().tables(table).forms):
            if (each.name not in names and each.root in names) or each.cells is None:
                message = f"{field} has {each.name!r}, and synthetic rows have plain columns"
                raise InvalidInput(
                    message, field=field, value=each.name, hint="name the column itself"
                )

    def _drawn(self, table: Table, estimate: CostEstimate, progress: Progress | None) -> Any:
        learned: SynthesisPlan = estimate.details
        scan = learned.scan
        counts = dict(zip(scan.sets, scan.count(table, estimate.expression, progress), strict=True))
        drawn = learned.draw(counts, self.length)
        order = [learned.cells.columns.index(name) for name in self.columns]
        cells = GroupGrid(tuple(self.columns), tuple(learned.cells.domains[at] for at in order))
        numbers = [drawn.numbers[at] for at in order]
        details = learned.details(drawn, estimate.share)
        about = {key: details[key] for key in FILE_SAYS if key in details}
        schema = cells.labelled([each[:0] for each in numbers]).schema.with_metadata(
            {"whosin": json.dumps(about, ensure_ascii=False)}
        )
        starts = range(0, len(numbers[0]), BATCH_ROWS)
        batches = (
            cells.labelled([each[at : at + BATCH_ROWS] for each in numbers]) for at in starts
        )
        written = table.engine.write_batches(batches, schema, self.path, progress, estimate.owner)
        return self._file_answer(written) | {"details": details}

    def _file_answer(self, written: WrittenFile) -> dict[str, Any]:
        row = [Path(self.path).name, written.rows, written.digest]
        return {"columns": list(FILE_COLUMNS), "rows": [row]}

    def _require_writable(self, table: Table, path: Path) -> None:
        if not os.access(path.parent, os.W_OK):
            message = f"path {path.name} is in a folder that cannot be written"
            raise InvalidInput(message, field="path", value=path.name)
        table.engine.require_place(self.path)

    def _path(self) -> Path:
        if not isinstance(self.path, str | Path) or Path(self.path).suffix != ".parquet":
            raise invalid_value("path", "a file ending in .parquet", repr(self.path)[:80])
        return Path(self.path)

    def _cells(self, table: Table) -> GroupGrid:
        cells = GroupGrid.of(table, self.columns, "columns")
        if not cells.columns:
            raise InvalidInput("columns is empty", field="columns", hint="name at least one")
        for column, domain in zip(cells.columns, cells.domains, strict=True):
            if domain.drops:  # the table's length would show that a row was dropped
                message = (
                    f"the domain of {column} drops rows (outside = {domain.outside!r}), which the "
                    "length of a synthetic table would show"
                )
                raise InvalidInput(message, field=f"domain of {column}", value=domain.outside)
        return cells

    def _response(self, cells: GroupGrid, epsilon: Fraction) -> RandomizedRow:
        if self.prior is None:
            return uniform_response(cells.count, epsilon)
        return prior_response(cells.count, self.prior, epsilon)

    def _expression(self, table: Table, cells: GroupGrid) -> Any:
        rows = eligible_rows(table, None)
        base = cells.coded(rows, **contribution_bounds.owner_column(rows, table))
        one = contribution_bounds.sample_rows(base, [contribution_bounds.UNIT_COLUMN], 1)
        sizes = [len(domain.labels) for domain in cells.domains]
        code = one[cells.names[0]]
        for name, size in zip(cells.names[1:], sizes[1:], strict=True):
            code = code * size + one[name]
        return one.select(code=code)


def _answer_digest(answer: Any) -> str | None:
    return None if answer is None else str(answer["rows"][0][2])
