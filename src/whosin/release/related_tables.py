"""Further tables of the same people, public lookup tables, and their joins.

A private table is joined on the privacy unit and on nothing else, so that what comes to a person's
row is that person's own. A public table is looked up by a column whose values are unique in it; it
is read once, when the table is opened, so that they stay so, and errors may quote its rows. So one
person's rows in all tables move that person's rows here, and nobody else's. No row of the table
itself is lost or doubled by a lookup: whoever is missing in a further table has missing values
there. Only what a question names is joined. Nothing else here looks at rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from whosin.errors import InvalidInput, LazyModule, at, read_whole, spell
from whosin.release.column_expressions import fold_name, free_name, join_columns, select_columns
from whosin.release.conditions import condition_columns, parse_condition, unknown_column
from whosin.release.domains import MAX_VALUES, Domain, Range
from whosin.release.engines.base import Engine
from whosin.release.features import (
    FEATURE_AGGREGATES,
    Feature,
    FeatureInput,
    check_texts,
    order_values,
    read_named,
    readable_values,
    tie_values,
)
from whosin.release.row_values import cast_value, exact_cast, is_usable, rows_with_unit, whole_rows
from whosin.scenario_model import FurtherTableSection

ibis = LazyModule("ibis")

MAX_TABLES = 50
MAX_ROWS = 10**9
JOIN_REASON = (
    "the privacy unit alone, since any other join lets one person's rows meet another's, who "
    "could then move more than their own; a table that is no secret may be public = true"
)


@dataclass(frozen=True)
class FurtherTable:
    """Another table with rows of the same privacy units.

    Args:
        name: what features and the error messages call it.
        source: as for `Table`.
        privacy_unit: the column there that says whose row it is; by default it is called as in the
            table itself.
        max_rows: how many rows of a privacy unit are joined to each of its rows of the table
            itself, at most, chosen at random; 1 by default. Features look at all of them.
    """

    public: ClassVar[bool] = False
    name: str
    source: Any
    privacy_unit: str | None = None
    max_rows: int = 1

    def __post_init__(self) -> None:
        _check_table_texts(self, "name", "privacy_unit")
        read_whole(self.max_rows, "max_rows", 1, MAX_ROWS)


@dataclass(frozen=True)
class LookupTable:
    """A public table whose rows are found by their key: the region of a ward.

    Args:
        name: what domains and error messages call it.
        source: as for `Table`.
        key: its column that is looked up; no value is there twice.
        on: the column that holds the key where it is looked up; by default it is called the same.
        to: the further table whose rows look up; by default the table itself.
    """

    public: ClassVar[bool] = True
    name: str
    source: Any
    key: str
    on: str | None = None
    to: str | None = None

    def __post_init__(self) -> None:
        _check_table_texts(self, "name", "key", "on", "to")


Further: TypeAlias = FurtherTable | LookupTable


def _check_table_texts(table: Further, *names: str) -> None:
    check_texts(table, *names)
    if "." in table.name:
        message = f"name {table.name!r} has a point, which separates tables and columns"
        raise InvalidInput(message, field="name", value=table.name)


def read_tables(given: object) -> tuple[Further, ...]:
    """Further tables as people write them: `FurtherTable(…)`, `LookupTable(…)`, or the keys of a
    scenario file."""
    kinds = (FurtherTable, LookupTable)
    return read_named(given, "tables", MAX_TABLES, kinds, _table_from_keys)


def _table_from_keys(data: object) -> Further:
    given = FurtherTableSection.read(data, "table").given
    kind = LookupTable if given.pop("public", False) else FurtherTable
    known = {each.name for each in fields(kind)}
    for key in (each for each in given if each not in known):
        message = f"{key} is not taken for a table of people, which is joined on {JOIN_REASON}"
        if kind is LookupTable:
            message = f"{key} has no meaning for a public table, which has no people"
        raise InvalidInput(message, field=key, value=given[key], hint="leave it out")
    if kind is LookupTable and "key" not in given:
        raise InvalidInput("a public table needs its key", field="key", hint="add key = …")
    return kind(**given)


MAX_LOOKUP_ROWS = 1_000_000


@dataclass(frozen=True, eq=False)
class Lookup:
    """A public table that was read.

    Attributes:
        declared: what was said about it.
        rows: its usable columns, and the key as the private column has it, in an Arrow table.
        key: what that key is called there.
        names: what its columns are called beside the others, by their own names.
    """

    declared: LookupTable
    rows: Any
    key: str
    names: dict[str, str]

    @property
    def on(self) -> str:
        """The column that holds the key where it is looked up."""
        return self.declared.on or self.declared.key

    @cached_property
    def listed(self) -> Any:
        """The rows as a list that an expression brings along."""
        return ibis.memtable(self.rows)

    def values(self, column: str) -> list[Any]:
        """The different values of a column, sorted: they may be a domain."""
        known = [name for name in self.rows.column_names if name != self.key]
        if column not in known:
            message = f"{self.declared.name} has no column {column!r}"
            hint = f"it has {', '.join(known)}"
            raise InvalidInput(message, field="values", value=column, hint=hint)
        distinct = self.rows.column(column).unique().drop_null().to_pylist()
        if not distinct or len(distinct) > MAX_VALUES or not isinstance(distinct[0], str | int):
            message = f"the column {column!r} cannot be a domain"
            hint = f"that is 1 to {spell(MAX_VALUES)} texts, whole numbers, or true and false"
            raise InvalidInput(message, field="values", value=column, hint=hint)
        return sorted(distinct)


def read_lookup(engine: Engine, declared: LookupTable, opened: Any, held: Any) -> Lookup:
    """Read a public table.

    Args:
        held: the type of the private column that holds the key.
    """
    if declared.key not in opened.columns:
        raise unknown_column("key", declared.key, opened)
    key = free_name("key", opened.columns)
    kept = {name: opened[name] for name, kind in opened.schema().items() if is_usable(kind)}
    known = opened.select(select_columns({key: _fit_key(opened[declared.key], held)} | kept))
    known = known.filter(known[key].notnull())
    try:
        rows = engine.run(known.limit(MAX_LOOKUP_ROWS + 1))
    except InvalidInput:
        raise
    except Exception:
        message = f"the public table {declared.name!r} cannot be read"
        raise InvalidInput(message, field="source") from None
    if len(rows) > MAX_LOOKUP_ROWS:
        message = f"the public table {declared.name!r} has more than {spell(MAX_LOOKUP_ROWS)} rows"
        raise InvalidInput(message, field="source")
    counts = rows.column(key).value_counts().to_pylist()
    if twice := next((each for each in counts if each["counts"] > 1), None):
        message = f"the key of {declared.name} has {twice['values']!r} {twice['counts']} times"
        hint = "each value must be there once"
        raise InvalidInput(message, field="key", value=declared.key, hint=hint)
    return Lookup(declared, rows, key, {})


def _fit_key(key: Any, held: Any) -> Any:
    """The key as the private column has it: texts spell whole numbers in text files."""
    kind = key.type()
    if held.is_string() and (kind.is_string() or kind.is_integer()):
        return key.cast("string")
    if held.is_integer() and (kind.is_string() or kind.is_integer()):
        return exact_cast(cast_value(key, "whole") if kind.is_string() else key, held)
    if (held.is_boolean() and kind.is_boolean()) or (held.is_date() and kind.is_date()):
        return key
    message = f"the key has type {kind}, and the column that looks it up has {held}"
    hint = "use text or whole numbers in both"
    raise InvalidInput(message, field="key", value=str(kind), hint=hint)


@dataclass(eq=False)
class PrivateTable:
    """A table of people, opened, with the public tables that its rows look up.

    Attributes:
        privacy_unit: whose row it is; None where each row is one person.
        max_rows: how many of its rows are joined to a row of the table itself, at most.
        names: what its columns are called beside those of other tables, by their own names.
    """

    data: Any
    privacy_unit: str | None
    max_rows: int = 1
    lookups: list[Lookup] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> dict[str, Any]:
        """The types of all columns, with those that are looked up."""
        result = dict(self.data.schema())
        for each in self.lookups:
            known = each.listed.schema()
            result |= {column: known[name] for name, column in each.names.items()}
        return result

    def rows(self, names: Iterable[str]) -> Any:
        """All rows, with those looked-up columns that are named."""
        wanted = set(names)
        needed = []
        for each in reversed(self.lookups):
            if wanted & set(each.names.values()):
                needed.append(each)
                wanted.add(each.on)
        result = self.data
        for each in reversed(needed):
            more = {column: name for name, column in each.names.items()}
            result = join_columns(result, each.listed, [(each.on, each.key)], more)
        return result


class Database:
    """A table, its further tables and its features.

    Args:
        data: the table itself, opened.
        privacy_unit: its column, or None where each row is one person.
        tables: further tables, with what was opened for each.
    """

    def __init__(
        self,
        engine: Engine,
        data: Any,
        privacy_unit: str | None,
        tables: Sequence[tuple[Further, Any]],
        features: Sequence[Feature],
    ) -> None:
        self.main = PrivateTable(data, privacy_unit)
        self.opened = {declared.name: opened for declared, opened in tables}
        self.tables: dict[str, PrivateTable] = {}
        self.lookups: dict[str, Lookup] = {}
        listed = list(enumerate(tables))  # those of people first, since they may look rows up
        for index, (declared, opened) in sorted(listed, key=lambda each: each[1][0].public):
            with at(f"tables[{index}]"):
                if isinstance(declared, FurtherTable):
                    self.tables[declared.name] = self._private(declared, opened)
                else:
                    self._look_up(engine, declared, opened)
        self.features = {each.name: each for each in features}
        self._name_columns()
        self.kinds = dict(self.main.kinds)
        for table in self.tables.values():
            kinds = table.kinds
            self.kinds |= {column: kinds[name] for name, column in table.names.items()}
        own = [name for each in (self.main, *self.tables.values()) for name in each.kinds]
        asked = [name for each in features for name in _feature_columns(each)]
        self._owner = free_name("owner", [*self.kinds, *own, *self.features, *asked])

    def prepare(self, domains: Mapping[str, Domain]) -> None:
        """Check the features, whose domains are known now."""
        self._domains = domains
        for index, feature in enumerate(self.features.values()):
            with at(f"features[{index}]"):
                known = self._aggregated(self._find_table("table", feature.table), (feature,))
                self.kinds[feature.name] = known[feature.name].type()

    def of_people(self, names: Iterable[str]) -> bool:
        """Whether some names are features and all others have one value for a person: columns that
        were declared constant, and those of tables that join one row. Then a question is about
        people and not about rows."""
        listed = set(names) - {self.main.privacy_unit}
        others = listed - self.features.keys()
        return len(others) < len(listed) and all(map(self._is_single, others))

    def _is_single(self, name: str) -> bool:
        if name in self.main.kinds:
            return name in self._domains and self._domains[name].constant
        tables = [each for each in self.tables.values() if name in each.names.values()]
        return all(each.max_rows == 1 for each in tables)

    def rows(self, names: Iterable[str] | None = None) -> Any:
        """The rows of the table itself with what else is named; everything by default."""
        wanted = set(self.kinds if names is None else names)
        result = self.main.rows(wanted)
        kept = [name for name in self.kinds if name in result.columns]
        if kept != list(result.columns):
            result = result.select(*kept)
        for table in self.tables.values():
            result = self._joined(result, table, wanted)
        return self._with_features(result, wanted)

    def people(self, names: Iterable[str]) -> Any:
        """One row for each privacy unit of the table itself, with what is named: see `of_people`.
        For a column that was declared constant it takes any value that there is, in the same
        pass."""
        wanted, unit = set(names), self.main.privacy_unit
        assert unit is not None
        own = [each for each in self._of(self.main) if each.name in wanted]
        constant = (wanted & self.main.kinds.keys()) - {unit}
        if own or constant:
            base = self._aggregated(self.main, own, constant).rename({unit: self._owner})
        else:
            base = rows_with_unit(self.main.data, unit).select(unit).distinct()
        for table in self.tables.values():
            base = self._joined(base, table, wanted)
        return self._with_features(base, wanted - {each.name for each in own})

    def _private(self, declared: FurtherTable, opened: Any) -> PrivateTable:
        if self.main.privacy_unit is None:
            message = f"the table {declared.name!r} cannot be joined: each row is one person here"
            hint = "a table that is no secret may be public = true"
            raise InvalidInput(message, field="table", value=declared.name, hint=hint)
        unit = declared.privacy_unit or self.main.privacy_unit
        if unit not in opened.columns:
            raise unknown_column("privacy_unit", unit, opened)
        _same_unit(opened[unit], self.main.data[self.main.privacy_unit].type())
        return PrivateTable(opened, unit, declared.max_rows)

    def _look_up(self, engine: Engine, declared: LookupTable, opened: Any) -> None:
        table = self._find_table("to", declared.to)
        on, kinds = declared.on or declared.key, table.kinds
        if on not in kinds:
            raise unknown_column("key" if declared.on is None else "on", on, table.data)
        lookup = read_lookup(engine, declared, opened, kinds[on])
        for name in lookup.rows.column_names:
            if name not in (lookup.key, declared.key):
                lookup.names[name] = _free_column_name(name, declared.name, kinds)
        table.lookups.append(lookup)
        self.lookups[declared.name] = lookup

    def _name_columns(self) -> None:
        taken = set(self.main.kinds)
        for called, table in self.tables.items():
            for name in table.kinds:
                # The privacy unit there too: it is missing for whoever has no row in that table.
                own = {name} if name == table.privacy_unit else set()
                table.names[name] = _free_column_name(name, called, own | taken)
                taken.add(table.names[name])
        for index, name in enumerate(self.features):
            if fold_name(name) in map(fold_name, taken):
                with at(f"features[{index}]"):
                    message = f"name {name!r} is the name of a column already"
                    raise InvalidInput(message, field="name", value=name)

    def _joined(self, base: Any, table: PrivateTable, wanted: set[str]) -> Any:
        """Rows with the wanted columns of a further table: at most its declared `rows` to each."""
        used = {name: column for name, column in table.names.items() if column in wanted}
        if not used:
            return base
        rows = self._owned(table, table.rows(used))
        columns = {column: rows[name] for name, column in used.items()}
        named = rows.select(select_columns({self._owner: rows[self._owner]} | columns))
        chosen = whole_rows(named, self._owner, table.max_rows)
        return self._beside(base, chosen, used.values())

    def _with_features(self, base: Any, wanted: set[str]) -> Any:
        for table in (self.main, *self.tables.values()):
            own = [each for each in self._of(table) if each.name in wanted]
            if own:
                known = self._aggregated(table, own)
                base = self._beside(base, known, [each.name for each in own])
                empty = {
                    each.name: base[each.name].fill_null(FEATURE_AGGREGATES[each.kind].empty)
                    for each in own
                    if FEATURE_AGGREGATES[each.kind].empty is not None
                }
                base = base.mutate(select_columns(empty)) if empty else base
        return base

    def _beside(self, base: Any, known: Any, names: Iterable[str]) -> Any:
        """Rows with columns of a table that is joined on the privacy unit; nobody's row is lost."""
        assert self.main.privacy_unit is not None
        key = [(self.main.privacy_unit, self._owner)]
        return join_columns(base, known, key, {each: each for each in names})

    def _of(self, table: PrivateTable) -> list[Feature]:
        known = self.features.values()
        return [each for each in known if self._find_table("table", each.table) is table]

    def _find_table(self, key: str, name: str | None) -> PrivateTable:
        """The further table of people that a key names; the table itself by default."""
        if name is None:
            return self.main
        if name not in self.tables:
            known = ", ".join(self.tables) or "none is declared"
            message = f"{key} names {name!r}, which is not a further table of people ({known})"
            hint = "leave it out for the table itself"
            raise InvalidInput(message, field=key, value=name, hint=hint)
        return self.tables[name]

    def _owned(self, table: PrivateTable, rows: Any) -> Any:
        """The rows that have an owner, with it, as the table itself spells it."""
        assert table.privacy_unit is not None and self.main.privacy_unit is not None
        kind = self.main.data[self.main.privacy_unit].type()
        whose = _same_unit(rows[table.privacy_unit], kind).name(self._owner)
        return rows_with_unit(rows.mutate(whose), self._owner)

    def _aggregated(
        self, table: PrivateTable, features: Sequence[Feature], constant: Iterable[str] = ()
    ) -> Any:
        """One row for each privacy unit, with features of one table and columns that are
        constant."""
        named = {name for each in features for name in _feature_columns(each)}
        rows = self._owned(table, table.rows(named.union(constant)))
        values = {each.name: self._value(each, rows) for each in features}
        values |= {name: rows[name].arbitrary() for name in constant}
        return rows.group_by(self._owner).aggregate(select_columns(values))

    def _value(self, feature: Feature, rows: Any) -> Any:
        """A feature over a group of rows."""
        aggregate, domain = FEATURE_AGGREGATES[feature.kind], self._domains.get(feature.name)
        if aggregate.takes == "numbers" and not isinstance(domain, Range):
            message = f"the feature {feature.name} adds numbers up and has no range"
            hint = f"declare one in [domains], such as {feature.name} = '0..365'"
            raise InvalidInput(message, field="domain", value=feature.name, hint=hint)
        counts: Any = True
        if feature.where is not None:
            with at("where"):
                counts = parse_condition(feature.where, rows)
        columns = [(key, getattr(feature, key)) for key in ("column", "order", "tie")]
        given = {key: self._column(rows, key, name) for key, name in columns if name is not None}
        value, keys = None, ()
        if "column" in given:
            with at("column"):
                meant = domain if aggregate.is_a_value else None
                value = readable_values(given["column"], aggregate.takes, meant)
            counts = value.notnull() & counts
        if "order" in given:
            with at("order"):
                order = order_values(given["order"])
            counts = order.notnull() & counts
            keys = (order, *(tie_values(given["tie"]) if "tie" in given else ()))
        if counts is True:
            counts = rows[self._owner].notnull()
        result = aggregate.compute(FeatureInput(value, counts, domain, keys))
        return result if aggregate.empty is None else result.fill_null(aggregate.empty)

    def _column(self, rows: Any, key: str, name: str) -> Any:
        if name not in rows.columns or name == self._owner:
            if name in self.features:
                message = f"{key} names {name!r}, a feature, and features are made of columns"
                hint = "name a column of the table"
                raise InvalidInput(message, field=key, value=name, hint=hint)
            raise unknown_column(key, name, rows.drop(self._owner))
        return rows[name]


def _feature_columns(feature: Feature) -> set[str]:
    """The columns that a feature is about."""
    listed = {feature.column, feature.order, feature.tie} - {None}
    return {str(name) for name in listed} | condition_columns(feature.where)


def _free_column_name(name: str, table: str, taken: Iterable[str]) -> str:
    """A column's name beside others: with its table's before it where it would be there twice."""
    known = {fold_name(each) for each in taken}
    if fold_name(name) not in known:
        return name
    result = f"{table}.{name}"
    if fold_name(result) in known:
        message = f"name {table!r} gives two columns the same name"
        raise InvalidInput(message, field="name", value=table)
    return result


def _same_unit(value: Any, kind: Any) -> Any:
    """A privacy unit as the table itself spells it, and of its very type, so that no row can fail a
    comparison of the two: texts spell whole numbers in text files."""
    own = value.type()
    if kind.is_string() and own.is_integer():
        return value.cast("string")
    if kind.is_integer() and own.is_string():
        return exact_cast(cast_value(value, "whole"), kind)
    kinds = ("string", "integer", "floating", "decimal", "boolean", "date", "timestamp", "binary")
    if not any(getattr(kind, f"is_{each}")() and getattr(own, f"is_{each}")() for each in kinds):
        message = f"privacy_unit has type {own} here and {kind} in the table itself"
        raise InvalidInput(message, field="privacy_unit", value=str(own))
    return value if kind.is_string() or kind.is_binary() else exact_cast(value, kind)
