"""`Table`: rows with an entity column and declared public domains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unicodedata import normalize

from whosin.errors import InvalidInput, at
from whosin.extras import needs
from whosin.interrupts import run_interruptibly
from whosin.release.casts import usable
from whosin.release.dates import Dates
from whosin.release.derived import Cellular, column_of, derive
from whosin.release.domains import Domain, Range, Values, read_domain
from whosin.release.engines import DuckDB, Engine
from whosin.release.levels import UpperLevel, check_levels, levels_of
from whosin.release.parents import Parents
from whosin.release.predicate import unknown_column
from whosin.validation import whole

PLANNING_PATIENCE = 1.0
"""Seconds to wait, after Ctrl-C, for an engine that is planning."""

MOST_ROWS = 10**9
ROW, EACH_ROW, COLUMN = "row", "each row", "column:"


class Table:
    """A table whose rows belong to entities.

    Args:
        source: a Parquet, CSV or Arrow file (or a folder or pattern of them), a frame in memory, or
            `database.duckdb::table`; on Spark a path, or `::table` for one of the catalogue.
        entity: the column that says whose row it is; rows without one are dropped. Or "row", if
            each row is one person ("each row" where a column is called row; "column:row" is that
            column).
        domains: what columns may hold: a list of values, (lower, upper), `Range(…)`, `Values(…)`.
            Queries may use only declared columns, except in `where`.
        rows: how many rows of an entity count, at most (in each cell, for a group-by); 1 by
            default.
        groups: how many cells of a group-by an entity may be in; 1 by default.
        name: the dataset's name in a ledger; by default the file's, without its ending.
        engine: where it runs: DuckDB in this process by default.

    Everything that is checked here is read from the schema, never from the rows.
    """

    def __init__(
        self,
        source: object,
        entity: str,
        domains: Mapping[str, object] | None = None,
        *,
        rows: int | None = None,
        groups: int | None = None,
        name: str | None = None,
        engine: Engine | None = None,
    ) -> None:
        needs("release")
        given = {"rows": rows, "groups": groups}
        self.stated = frozenset(field for field, value in given.items() if value is not None)
        self.rows, self.groups = (
            1 if value is None else whole(value, field, 1, MOST_ROWS)
            for field, value in given.items()
        )
        if domains is not None and not isinstance(domains, Mapping):
            raise InvalidInput("domains", "a mapping from columns to domains", repr(domains)[:80])
        if engine is not None and not callable(getattr(engine, "open", None)):
            raise InvalidInput("engine", "an engine, such as DuckDB()", repr(engine)[:80])
        self.engine = engine if engine is not None else DuckDB()
        self.source, self.data = source, self.engine.open(source)
        self.name = name if name is not None else dataset_name(source)
        self.entity = self._entity(entity)
        self.by_row = self.entity not in self.columns
        for field, value in given.items():
            self.bound(field, value)
        if not self.by_row and not (
            usable(self.type(self.entity)) or self.type(self.entity).is_binary()
        ):
            accepted = "a column of numbers, texts or dates"
            raise InvalidInput("entity", accepted, str(self.type(self.entity)))
        self.domains: dict[str, Domain] = {}
        for column, domain in (domains or {}).items():
            with at(f"domains.{column}"):
                name = self.column(column, "column")
                self.domains[name] = self._fitting(name, domain)
        check_levels(self.domains, self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.data.columns)

    def column(self, name: object, field: str = "column") -> str:
        """A column that exists."""
        if not isinstance(name, str) or name not in self.columns:
            raise unknown_column(field, str(name), self.data)
        return name

    def bound(self, field: str, own: int | None) -> int:
        """How many rows, or cells, of an entity count for a query that has a bound of its own, or
        the table's."""
        result = int(getattr(self, field)) if own is None else whole(own, field, 1, MOST_ROWS)
        if self.by_row and result > 1:
            raise InvalidInput(field, "1, or left out, where each row is one person", result)
        return result

    def at_default(self, field: str, own: int | None) -> bool:
        """Whether nobody has said how many rows, or cells, of an entity count."""
        return own is None and field not in self.stated and not self.by_row

    def type(self, column: str) -> Any:
        """The Ibis type of a column."""
        return self.data.schema()[column]

    def range(self, column: object) -> Range:
        """The declared range of a numeric column."""
        domain = self.domain(column)
        if not isinstance(domain, Range):
            got = "dates" if isinstance(domain, Dates) else "a list of values"
            raise InvalidInput(f"domain of {column}", "a range, for numbers", got)
        return domain

    def domain(self, column: object) -> Domain:
        """The declared domain of a column."""
        name = self.column(column)
        if name not in self.domains:
            raise InvalidInput("column", "one with a declared domain", repr(name))
        return self.domains[name]

    def grouping(self, name: object) -> Cellular:
        """The domain of a column, of an upper level of one such as canton, or of a function of one
        such as month(visit)."""
        if isinstance(name, str) and name not in self.columns and name in self.levels:
            column, parents = self.levels[name]
            domain = self.domains[column]
            assert isinstance(domain, Values)
            return UpperLevel(column, domain, parents)
        if isinstance(name, str) and name not in self.columns and column_of(name) != name:
            column = self.column(column_of(name))
            return derive(name, column, self.domain(column))
        return self.domain(name)

    @property
    def levels(self) -> dict[str, tuple[str, Parents]]:
        """The upper levels that were declared, each with its column."""
        return levels_of(self.domains)

    def check(self, expression: Any) -> Any:
        """The expression, if the engine can run it; what it cannot, it refuses before any debit.

        The engine plans the whole of it and reads no row, since none are asked for.
        """
        try:
            # Not in the main thread: there DuckDB takes Ctrl-C for a failure of the query.
            run_interruptibly(
                lambda: self.engine.check(expression), lambda: None, patience=PLANNING_PATIENCE
            )
        except Exception:
            failed = True
        else:
            failed = False
        if failed:
            accepted = f"one that {self.engine.name} can run on these columns"
            raise InvalidInput("query", accepted, "another")
        return expression

    def _entity(self, given: object) -> str:
        """The entity's column, or a name that no column has, for each row by itself."""
        if isinstance(given, str):
            if given in (ROW, EACH_ROW):
                if given not in self.columns:
                    return given if given == ROW or ROW in self.columns else ROW
                other = f"{EACH_ROW!r} where each row is one person"
                if EACH_ROW in self.columns:
                    other = "rename the columns where each row is one person"
                raise InvalidInput("entity", f"{COLUMN + given!r} for that column, {other}", given)
            if given not in self.columns and given.startswith(COLUMN):
                return self.column(given.removeprefix(COLUMN), "entity")
        return self.column(given, "entity")

    def _fitting(self, column: str, declared: object) -> Domain:
        domain, kind = read_domain(column, declared), self.type(column)
        # Texts count as the numbers that they spell: a CSV file has nothing else.
        numeric = kind.is_numeric() or kind.is_boolean() or kind.is_string()
        if isinstance(domain, Range) and not numeric:
            raise InvalidInput(f"column {column}", "a column of numbers, for a range", str(kind))
        dated = kind.is_date() or kind.is_timestamp() or kind.is_string()
        if isinstance(domain, Dates) and not dated:
            raise InvalidInput(f"column {column}", "a column of dates, for dates", str(kind))
        if isinstance(domain, Values):
            first = domain.values[0]
            if isinstance(first, str):
                fits, accepted = kind.is_string(), "texts"
            elif isinstance(first, bool):
                fits, accepted = kind.is_boolean(), "true and false"
            else:
                fits, accepted = kind.is_string() or kind.is_integer(), "whole numbers"
            if not fits:
                raise InvalidInput(f"column {column}", f"a column of {accepted}", str(kind))
        return domain


def dataset_name(source: object) -> str:
    """What a ledger calls a table that has no name of its own: its file, or its name in a database,
    without folder and ending, as a ledger spells names."""
    if not isinstance(source, str | Path):
        raise InvalidInput("name", "given for a table in memory: the dataset's name", "nothing")
    text = normalize("NFC", str(source))
    if "::" in text:
        return text.rpartition("::")[2]
    parts = [part for part in Path(text).parts if not any(letter in part for letter in "*?[")]
    return Path(parts[-1]).stem if parts else text
