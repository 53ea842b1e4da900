"""The groups of a group-by, the columns that they are made of, and the number of a row's group.

A name that we add to a table is one that no column of it has, in whatever letters, since engines
take names that differ only in small and capital letters for one. Columns are handed to Ibis with
their names inside, never as Python's keywords: a column may be called self.

Cells follow from the declared domain alone, those of an upper level (by = "canton", where rows have
a municipality) and of a function (month(visit), decade(age)) too. A row is placed by looking at it
alone; what is outside the column's domain is outside here, and goes where that domain says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from whosin.errors import InvalidInput, LazyModule, UnknownName, at, invalid_value, spell
from whosin.exact import Array, Number, rational
from whosin.ledger.registration import CONTENT_KINDS, LIVE_TABLE
from whosin.release.domains import (
    CALENDAR_PARTS,
    CLAMP,
    DROP,
    MAX_GROUP_COUNT,
    CellDomain,
    Dates,
    Domain,
    Parents,
    Range,
    Values,
    check_closed,
    date_code,
)
from whosin.release.engines.base import list_column, whole_numbers
from whosin.release.row_values import number_value, whole_value

if TYPE_CHECKING:
    from whosin.release.table import Table

ibis = LazyModule("ibis")


def fold_name(name: str) -> str:
    """A name, the same for all that some engine may take for one."""
    return name.upper().lower()


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A name that is not taken: the wanted one, or one made from it."""
    known = {fold_name(each) for each in taken}
    while fold_name(wanted) in known:
        wanted += "_"
    return wanted


def select_columns(columns: Mapping[str, Any]) -> list[Any]:
    """Columns by their names, as Ibis takes them in a list."""
    return [column.name(name) for name, column in columns.items()]


def join_columns(
    rows: Any, known: Any, on: Sequence[tuple[str, str]], columns: Mapping[str, str]
) -> Any:
    """All rows, each with columns of the row of another table that has the same key, which must be
    there once; missing where there is none.

    Args:
        on: the columns that make the key, here and there.
        columns: what is taken of the other table, by the names that it gets here.
    """
    used = dict.fromkeys([*(there for _, there in on), *columns.values()])
    ours = {name: free_name(f"joined_{index}", rows.columns) for index, name in enumerate(used)}
    other = known.select(select_columns({ours[name]: known[name] for name in used})).view()
    joined = rows.left_join(other, [rows[here] == other[ours[there]] for here, there in on])
    kept = {name: joined[name] for name in rows.columns}
    return joined.select(
        select_columns(kept | {name: joined[ours[at]] for name, at in columns.items()})
    )


class CellView(CellDomain):
    """Cells that are made of those of a domain."""

    domain: Any

    @property
    def constant(self) -> bool:
        """Whether it is the same in all rows of a privacy unit, since the column is."""
        return bool(self.domain.constant)

    @property
    def outside(self) -> object:
        """What becomes of values outside the domain."""
        return self.domain.outside


@dataclass(frozen=True)
class UpperLevel(CellView):
    """The parents of a column's values, as cells.

    Attributes:
        column: whose values they are the parents of.
        domain: what that column may hold.
        parents: the level.
    """

    column: str
    domain: Values
    parents: Parents

    def __post_init__(self) -> None:
        if self.domain.outside is not None:
            check_closed(len(self.cells))

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell."""
        return self.domain.drops

    @property
    def outside(self) -> str | None:
        """What becomes of a value outside: "drop", or the parent at which it counts."""
        if self.domain.outside is None:
            return None
        return DROP if self.drops else self.cells[self.beyond]

    @property
    def beyond(self) -> int:
        """The number of the cell of what is outside; -1 where it does not count."""
        if self.domain.outside is None or self.drops:
            return super().beyond
        return self.parents.numbers[self.domain.beyond]

    @property
    def cells(self) -> tuple[str, ...]:
        """The values of the upper level, the parents."""
        return self.parents.labels


def declared_levels(domains: Mapping[str, Domain]) -> dict[str, tuple[str, Parents]]:
    """Every level that was declared, with the column that it is of."""
    return {
        each.name: (column, each)
        for column, domain in domains.items()
        if isinstance(domain, Values)
        for each in domain.levels
    }


def check_levels(domains: Mapping[str, Domain], columns: tuple[str, ...]) -> None:
    """No level has the name of a column or of a level of another column, in whatever letters."""
    owners: dict[str, str] = {}
    taken = set(map(fold_name, columns))
    for column, domain in domains.items():
        for each in domain.levels if isinstance(domain, Values) else ():
            field = f"domains.{column}.parents"
            name = fold_name(each.name)
            if name in taken:
                message = f"the level {each.name!r} has the name of a column"
                raise InvalidInput(message, field=field, value=each.name)
            if name in owners:
                message = f"the level {each.name!r} is declared for {owners[name]} already"
                raise InvalidInput(message, field=field, value=each.name)
            owners[name] = column


def root_column(domains: Mapping[str, Domain], name: str) -> str:
    """The column whose level this is; any other name is itself the column."""
    known = declared_levels(domains)
    return known[name][0] if name not in domains and name in known else name


MAX_DECADES = 1_000
FORM_PATTERN = re.compile(r"([a-z]+)\((.+)\)", re.DOTALL)


@dataclass(frozen=True)
class Derived(CellView):
    """A function of a column, as cells.

    Attributes:
        function: its name.
        column: the column that it is computed from.
        domain: what that column may hold.
    """

    function: str
    column: str
    domain: Dates | Range

    def __post_init__(self) -> None:
        if isinstance(self.domain, Range):
            low, high = self.domain.bounds
            if high // 10 - low // 10 >= MAX_DECADES:
                message = f"the range of {self.column} spans more than {MAX_DECADES} decades"
                hint = "group by bins (edges) instead of decade()"
                raise InvalidInput(message, field=f"domain of {self.column}", hint=hint)
        if self.outside is not None:
            check_closed(len(self.cells))

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """What the function can be on the declared domain, rising."""
        if isinstance(self.domain, Dates):
            return tuple(sorted({CALENDAR_PARTS[self.function](day) for day in self.domain.days}))
        low, high = self.domain.bounds
        return tuple(range(int(low // 10) * 10, int(high // 10) * 10 + 1, 10))

    def numbered_days(self) -> tuple[tuple[int, int], ...]:
        """For a function of dates: the code of each declared day, with the number of its cell."""
        assert isinstance(self.domain, Dates)
        numbers = {each: at for at, each in enumerate(self.cells)}
        part = CALENDAR_PARTS[self.function]
        return tuple((date_code(day), numbers[part(day)]) for day in self.domain.days)


@dataclass(frozen=True)
class MergedValues(CellView):
    """Cells of something, some of them taken together.

    Attributes:
        name: whose cells they are: a column, or a function of one.
        domain: its domain.
        parts: for each cell the number of what it is taken into.
        labels: what these are called.
    """

    name: str
    domain: Cellular
    parts: tuple[int, ...]
    labels: tuple[str, ...] = ()

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell."""
        return self.domain.drops

    @property
    def beyond(self) -> int:
        """The number of the cell of what is outside; -1 where it does not count."""
        return -1 if self.domain.beyond < 0 else self.parts[self.domain.beyond]


Cellular: TypeAlias = Domain | Derived | UpperLevel | MergedValues


def base_column(name: str) -> str:
    """The column that a name such as month(visit) is about; any other name is the column's own."""
    result = FORM_PATTERN.fullmatch(name)
    return result[2].strip() if result else name


def derive_column(name: str, column: str, domain: Domain) -> Derived:
    """What a name such as month(visit) means, for a column with a domain."""
    function = name.partition("(")[0]
    if isinstance(domain, Values):
        message = f"{name} needs numbers or dates, and {column} is declared as a list of values"
        raise InvalidInput(message, field=f"domain of {column}", value=name)
    known = tuple(CALENDAR_PARTS) if isinstance(domain, Dates) else ("decade",)
    if function not in known:
        raise UnknownName(f"function of {column}", function, known)
    return Derived(function, column, domain)


# The number of a value's cell in its domain, found inside the engine.
#
# The number comes from a join with the list of declared values, which is hashed once, so that a row
# costs the same however long the list is. Processor time to number and count the cells of 10^6 rows
# of Parquet on DuckDB, beside a CASE with a branch per value, which it replaces:
#
#     declared values      3     20    100   1,000   10,000
#     join, s           0.03   0.03   0.03    0.05     0.05
#     CASE, s           0.02   0.09   0.21    3.31        –
#
# On Spark a join costs more: up to a dozen texts are told apart by a CASE there. On DuckDB up to a
# dozen values are found in a list, which costs a row about as much as a join does (12 values: 0.075
# and 0.067 s; 5: the same), and a hundred joins take seconds to write and to plan.


MAX_CASE_BRANCHES = 12
"""Values of a CASE on Spark, or of a list on DuckDB."""
VALUE, NUMBER = "whosin_value", "whosin_number"


def cell_key(rows: Any, column: str, domain: Cellular) -> Any:
    """What decides a row's cell: the value itself or the code of its day, for `join_cell_numbers`
    to look up, or the number of its cell already."""
    if isinstance(domain, MergedValues):
        return cell_key(rows, domain.name, domain.domain)
    value = rows[domain.column if isinstance(domain, Derived | UpperLevel) else column]
    if isinstance(domain, Values | UpperLevel):
        return listed_value(value, domain.domain if isinstance(domain, UpperLevel) else domain)
    root = domain.domain if isinstance(domain, Derived) else domain
    if isinstance(root, Dates):
        return root.code(value)
    if isinstance(domain, Derived):
        return _interval_number(value, domain, [*map(float, domain.cells)], root.bounds)
    edges = [float(rational(edge)) for edge in root.edges]
    return _interval_number(value, root, edges[:-1], (edges[0], edges[-1]))


def listed_value(value: Any, domain: Values) -> Any:
    """A value as it is compared with declared ones: with whole numbers as a number, however it is
    spelled, unless a text could spell them with more digits than are read."""
    whole = type(domain.values[0]) is int and not value.type().is_boolean()
    if not whole or (value.type().is_string() and max(map(abs, domain.values)) >= 10**18):  # type: ignore[arg-type]
        return value
    return whole_value(value)


def join_cell_numbers(rows: Any, name: str, domain: Cellular) -> Any:
    """Rows with the number of a key's cell instead of the key.

    No value is declared twice, so no row is doubled; what is missing or not declared matches none.
    """
    inner: Any = domain.domain if isinstance(domain, MergedValues) else domain
    parts = domain.parts if isinstance(domain, MergedValues) else ()
    if Range in (type(inner), type(getattr(inner, "domain", None))):
        if not parts:
            return rows
        known = _lookup(tuple(range(len(parts))), "int64", parts)  # its key is a number
    elif isinstance(inner, Values):
        known = _lookup(inner.values, _key_type(rows[name].type()), parts[: len(inner.values)])
    elif isinstance(inner, UpperLevel):
        numbers = tuple(parts[each] if parts else each for each in inner.parents.numbers)
        known = _lookup(inner.domain.values, _key_type(rows[name].type()), numbers)
    else:
        known = _day_lookup(inner, parts)
    known = known.view()  # two columns may have the same list
    result = rows.left_join(known, rows[name] == known[VALUE])
    cell = result[NUMBER].fill_null(domain.beyond)
    return result.select(**{each: result[each] for each in rows.columns} | {name: cell})


def listed_cell_number(key: Any, domain: Cellular, backend: str) -> Any | None:
    """The number of a key's cell without a join, where few values are declared: on Spark by a CASE
    over texts, on DuckDB by the place in a list of texts or whole numbers."""
    inner = domain.domain if isinstance(domain, MergedValues) else domain
    if not isinstance(inner, Values) or len(inner.values) > MAX_CASE_BRANCHES:
        return None
    texts, beyond = key.type().is_string(), ibis.literal(domain.beyond, "int64")
    if backend == "pyspark" and texts:
        parts = domain.parts if isinstance(domain, MergedValues) else range(len(inner.values))
        pairs = zip(inner.values, parts, strict=False)
        branches = [(key == str(value), ibis.literal(cell, "int64")) for value, cell in pairs]
        return ibis.cases(*branches, else_=beyond)
    whole = key.type().is_signed_integer() and all(isinstance(each, int) for each in inner.values)
    if backend != "duckdb" or inner is not domain or not (texts or whole):
        return None
    values = [str(value) if texts else value for value in inner.values]
    listed = ibis.literal(values, "array<string>" if texts else "array<int64>")
    # DuckDB counts places by 32 bits, which Ibis takes for 64: the first cast makes the second one.
    place = listed.index(key if texts else key.cast("int64")).cast("int32").cast("int64")
    return place.nullif(-1).fill_null(beyond)


def add_levels(rows: Any, domains: Mapping[str, Domain], text: object) -> Any:
    """Rows with a column more for each level that a text names, such as a condition. A value that
    was not declared has no parent there."""
    for name, (column, parents) in declared_levels(domains).items():
        if name in str(text):
            domain = domains[column]
            assert isinstance(domain, Values)
            own = tuple(parents.labels[parent] for parent in parents.numbers)
            value, key = listed_value(rows[column], domain), free_name("level_key", rows.columns)
            known, kept = _lookup(domain.values, _key_type(value.type()), own), rows.columns
            marked = rows.mutate(value.name(key))
            joined = join_columns(marked, known, [(key, VALUE)], {name: NUMBER})
            rows = joined.select(*kept, name)
    return rows


MAX_PART_LETTERS = 200


@dataclass(frozen=True)
class PartRule:
    """What puts each privacy unit into at most one part, by its own rows alone (T25): the first of
    its values in a column, in the declared order. What was not declared is in no part.

    Attributes:
        rule: "constant" where the column is said to be the same in all rows of a unit, or "least".
    """

    column: str
    rule: str
    values: tuple[str | int, ...]

    @classmethod
    def read(
        cls, given: str, columns: Mapping[str, Any], domains: Mapping[str, Domain], by_row: bool
    ) -> PartRule:
        """The rule of "region" or "least(region)"."""
        from whosin.release.conditions import unknown_column

        match = FORM_PATTERN.fullmatch(given)
        least = match is not None and match[1] == "least" and given not in columns
        column = match[2].strip() if least and match is not None else given
        if column not in columns:
            raise unknown_column("part", column, columns, domains)
        domain = domains.get(column)
        if not isinstance(domain, Values) or domain.outside not in (None, DROP):
            message = f"the parts by {column!r} are public, and its domain does not list them"
            hint = f"declare its values in [domains], such as {column} = ['north', 'south']"
            raise InvalidInput(message, field="part", value=given, hint=hint)
        if not least and not domain.constant and not by_row:
            raise InvalidInput(
                f"{column!r} may differ between the rows of one person, who would be in several "
                "parts",
                field="part",
                value=given,
                hint=f"declare constant = true in its domain if it never differs, or a rule: part "
                f"= 'least({column})', the first of a person's values in the declared order",
            )
        if any(not 0 < len(str(each)) <= MAX_PART_LETTERS for each in domain.values):
            message = f"a part is called by 1 to {MAX_PART_LETTERS} letters"
            raise InvalidInput(message, field="part", value=given)
        return cls(column, "least" if least else "constant", domain.values)

    def to_dict(self) -> dict[str, str]:
        """Return the fields as plain data for JSON."""
        return {"column": self.column, "rule": self.rule}

    def require_fixed(self, source: Mapping[str, str]) -> None:
        """Refuse a source whose rows may change between two questions."""
        if LIVE_TABLE in source or not set(CONTENT_KINDS) & source.keys():
            raise InvalidInput(
                f"the rows of this table may change, and with them the {self.column} of a person, "
                "who would then be in several parts",
                field="part",
                value=self.column,
                hint=f"declare constant = true in the domain of {self.column} if it never changes",
            )

    def find(self, part: object) -> str:
        """A declared part by its name."""
        known = {str(each): each for each in self.values}
        if str(part) not in known:
            raise UnknownName("part", str(part), known)
        return str(part)

    def number(self, part: str) -> int:
        """The place of a part in the declared order."""
        return [str(each) for each in self.values].index(part)


def _key_type(held: Any) -> str:
    kinds = {"string": held.is_string(), "boolean": held.is_boolean(), "uint64": held.is_uint64()}
    return next((kind for kind, fits in kinds.items() if fits), "int64")


@lru_cache(maxsize=64)
def _lookup(values: tuple[str | int, ...], kind: str, held: tuple[str | int, ...] = ()) -> Any:
    """The declared values, each with its own number, or with what else is held for it, as a
    table."""
    pairs = [*zip(values, held or range(len(values)), strict=True)]
    if kind == "uint64":
        pairs = [(each, other) for each, other in pairs if int(each) >= 0]
    return _memory_table([(str(a) if kind == "string" else a, b) for a, b in pairs], kind)


@lru_cache(maxsize=64)
def _day_lookup(domain: Dates | Derived, parts: tuple[int, ...]) -> Any:
    """The codes of declared days with the numbers of their cells, or of the parts that these are
    in, as a table."""
    pairs = [(code, parts[cell] if parts else cell) for code, cell in domain.numbered_days()]
    return _memory_table(pairs, "int64")


def _memory_table(pairs: list[tuple[Any, Any]], kind: str) -> Any:
    """A table of pairs. Not by `ibis.memtable`, which imports pandas: half a second."""
    import pyarrow as pa
    from ibis.expr.operations import InMemoryTable
    from ibis.formats.pyarrow import PyArrowTableProxy
    from ibis.util import gen_name

    values, held = [value for value, _ in pairs], [held for _, held in pairs]
    kinds = {VALUE: kind, NUMBER: "string" if any(isinstance(x, str) for x in held) else "int64"}
    columns = [list_column(values, kind), list_column(held, kinds[NUMBER])]
    data = PyArrowTableProxy(pa.Table.from_arrays(columns, list(kinds)))
    return InMemoryTable(gen_name("whosin"), ibis.schema(kinds), data).to_expr()


def _interval_number(
    value: Any, domain: CellDomain, starts: list[float], ends: tuple[Number, Number]
) -> Any:
    """Which of the intervals, each from its start to the next, a number between the ends is in: a
    bin or a decade. Numbers are compared, since a division would round."""
    low, high = map(float, ends)
    last, beyond, reading = len(starts) - 1, domain.beyond, number_value(value)
    below, above = (0, last) if domain.outside == CLAMP else (beyond, beyond)
    outside = [(reading.isnull(), beyond), (reading < low, below), (reading > high, above)]
    branches = [(reading < start, at) for at, start in enumerate(starts[1:])]
    return ibis.cases(*outside, *branches, else_=last).cast("int64")


@dataclass(frozen=True)
class GroupGrid:
    """What a query groups by.

    Attributes:
        question: the column that says which of several questions a row is for, where one scan
            answers them all: each question's sums, and its bounds, are of its rows alone.
    """

    columns: tuple[str, ...]
    domains: tuple[Cellular, ...]
    question: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, by: Sequence[str], field: str = "by") -> GroupGrid:
        """Check the columns, which the question names in this field, against declared domains."""
        if isinstance(by, str):
            by = (by,)
        key = cls, str(by)
        if key in table.kept:
            known: GroupGrid = table.kept[key]
            return known
        with at(field):
            if not isinstance(by, list | tuple) or not all(isinstance(each, str) for each in by):
                raise invalid_value(field, "a list of columns", repr(by)[:80])
            domains = tuple(group_domain(table, column) for column in by)
            if len(set(by)) != len(by):
                raise InvalidInput(
                    f"{field} names a column twice: {', '.join(by)}", field=field, value=list(by)
                )
            check_one_level(table, by, field)
            result = cls(tuple(by), domains)
            if result.count > MAX_GROUP_COUNT:
                raise InvalidInput(
                    f"{field} makes {spell(result.count)} groups; at most "
                    f"{spell(MAX_GROUP_COUNT)} are answered",
                    field=field,
                    value=result.count,
                    hint="group by fewer columns, or declare fewer values or bins",
                )
        table.keep(key, result)
        return result

    @cached_property
    def count(self) -> int:
        """How many cells there are; 1 without a group-by."""
        return prod(len(domain.labels) for domain in self.domains)

    @cached_property
    def most(self) -> int:
        """How many cells someone is in at most, if columns that were declared constant are: these
        do not spread anyone over cells. Bounding keeps to this number whatever the rows say."""
        return prod(len(domain.labels) for domain in self.domains if not domain.constant)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key columns inside an expression."""
        return tuple(f"key_{index}" for index in range(len(self.columns)))

    @property
    def keys(self) -> tuple[str, ...]:
        """What an expression groups its sums by."""
        return self.question + self.names

    def headings(self, *taken: str) -> list[str]:
        """The names of the key columns in an answer that has further columns."""
        return [free_column_name(column, taken) for column in self.columns]

    def labels(self) -> list[tuple[str | int, ...]]:
        """The keys of each cell."""
        return list(product(*(domain.labels for domain in self.domains)))

    def batch(self, codes: Array) -> Any:
        """Numbers of cells as a pyarrow RecordBatch of their keys."""
        numbers, rest = [], codes
        for domain in reversed(self.domains):
            numbers.append(rest % len(domain.labels))
            rest = rest // len(domain.labels)
        return self.labelled(numbers[::-1])

    def labelled(self, numbers: Sequence[Array]) -> Any:
        """Rows as a RecordBatch, from the number of each value among the labels of its column."""
        import pyarrow as pa

        columns = [
            pa.DictionaryArray.from_arrays(
                pa.array(each.astype(np.int32)), pa.array([str(label) for label in domain.labels])
            )
            for each, domain in zip(numbers, self.domains, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(self.columns))

    def coded(self, rows: Any, every: bool = False, /, **columns: Any) -> Any:
        """Rows with some of their columns and the key columns: the number of each value among the
        labels of its domain. Rows that a closed domain drops are left out, or where `every` row is
        wanted have -1 there."""
        keys, joined = {}, {}
        backend = rows.get_backend().name
        for name, column, domain in zip(self.names, self.columns, self.domains, strict=True):
            key = cell_key(rows, column, domain)
            number = listed_cell_number(key, domain, backend)
            if number is None:
                joined[name] = domain
            keys[name] = key if number is None else number
        chosen = {**columns, **{name: rows[name] for name in self.question}, **keys}
        # Of rows that are people, in no groups, nothing has to be known but that they are there.
        result = rows.select(**(chosen or {"present": ibis.literal(1, "int8")}))
        for name, domain in joined.items():
            result = join_cell_numbers(result, name, domain)
        for name, domain in zip(self.names, self.domains, strict=True):
            if domain.drops and not every:
                result = result.filter(result[name] >= 0)
        return result

    def dense(self, result: Any, names: Sequence[str]) -> list[Array]:
        """Aggregates by key as whole vectors, a cell that has no rows being 0."""
        sizes = [len(domain.labels) for domain in self.domains]
        flat = np.zeros(result.num_rows, dtype=np.int64)
        for name, size in zip(self.names, sizes, strict=True):
            flat = flat * size + whole_numbers(result.column(name))
        vectors = []
        for name in names:
            vector = np.zeros(self.count, dtype=np.int64)
            vector[flat] = whole_numbers(result.column(name))
            vectors.append(vector)
        return vectors


def group_domain(table: Table, name: str) -> Cellular:
    """The domain of a column, or of a function of one, that has cells."""
    domain = table.grouping(name)
    if isinstance(domain, Range | Dates) and not domain.edges:
        edges = 'edges = "month"' if isinstance(domain, Dates) else "edges = [0, 18, 65, …]"
        raise InvalidInput(
            f"the domain of {name} has no bins to group by",
            field=f"domain of {name}",
            hint=f"give it edges: {{ lower = …, upper = …, {edges} }}",
        )
    return domain


def check_one_level(table: Table, names: Sequence[str], field: str) -> None:
    """A table by two levels of one column would have cells that nobody can be in."""
    seen: dict[str, str] = {}
    for name in names:
        root = root_column(table.domains, name)
        if root in seen and (name != root or seen[root] != root):
            raise InvalidInput(
                f"{field} names {seen[root]!r} and {name!r}, two levels of {root}: the upper one "
                "follows from the lower one",
                field=field,
                value=[seen[root], name],
                hint="name one of them",
            )
        seen[root] = name


def free_column_name(column: str, taken: Sequence[str]) -> str:
    """A column's name, changed a little where an answer has another column of that name."""
    while column in taken:
        column += "_"
    return column
