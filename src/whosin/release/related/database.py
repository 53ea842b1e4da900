"""A table with everything that belongs to it, as rows with more columns.

Contract: what comes to a row is found by its entity alone, or by a public list; so one person's
rows in all tables move that person's rows here, and nobody else's. No row of the table itself is
lost by a join: whoever is missing in a further table has missing values there. Only what a question
names is joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whosin.errors import InvalidInput, at
from whosin.release.columns.domains import Domain, Range
from whosin.release.columns.free_names import beside, called, folded, unused
from whosin.release.conditions.casts import cast
from whosin.release.conditions.predicate import columns_in, condition, unknown_column
from whosin.release.conditions.row_values import owned
from whosin.release.engines.base import Engine
from whosin.release.related.aggregates import AGGREGATES, FeatureInput, breaking, ordering, readable
from whosin.release.related.features import Feature
from whosin.release.related.further import Further, FurtherTable, LookupTable
from whosin.release.related.lookups import Lookup, read_lookup
from whosin.release.scans.row_choice import whole_rows


@dataclass(eq=False)
class PrivateTable:
    """A table of people, opened, with the public tables that its rows look up.

    Attributes:
        entity: whose row it is; None where each row is one person.
        own: the columns of the source.
        names: what its columns are called beside those of other tables, by their own names.
    """

    data: Any
    entity: str | None
    declared: FurtherTable | None = None
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
            result = beside(result, each.listed, [(each.on, each.key)], more)
        return result


class Database:
    """A table, its further tables and its features.

    Args:
        data: the table itself, opened.
        entity: its column, or None where each row is one person.
        tables: further tables, with what was opened for each.
    """

    def __init__(
        self,
        engine: Engine,
        data: Any,
        entity: str | None,
        tables: Sequence[tuple[Further, Any]],
        features: Sequence[Feature],
    ) -> None:
        self.main = PrivateTable(data, entity)
        self.opened = {declared.name: opened for declared, opened in tables}
        self.tables: dict[str, PrivateTable] = {}
        self.lookups: dict[str, Lookup] = {}
        for index, (declared, opened) in enumerate(tables):
            with at(f"tables[{index}]"):
                if isinstance(declared, FurtherTable):
                    self.tables[declared.name] = self._private(declared, opened)
        for index, (declared, opened) in enumerate(tables):
            with at(f"tables[{index}]"):
                if isinstance(declared, LookupTable):
                    self._look_up(engine, declared, opened)
        self.features = {each.name: each for each in features}
        self._name_columns()
        self.kinds = self._kinds()
        own = [name for each in (self.main, *self.tables.values()) for name in each.kinds]
        asked = [name for each in features for name in _named(each)]
        self._owner = unused("owner", [*self.kinds, *own, *self.features, *asked])

    def prepare(self, domains: Mapping[str, Domain]) -> None:
        """Check the features, whose domains are known now."""
        self._domains = domains
        for index, feature in enumerate(self.features.values()):
            with at(f"features[{index}]"):
                known = self._aggregated(self._table(feature), (feature,))
                self.kinds[feature.name] = known[feature.name].type()

    def of_people(self, names: Iterable[str]) -> bool:
        """Whether some names are features and all others have one value for a person: columns that
        were declared constant, and those of tables that join one row. Then a question is about
        people and not about rows."""
        listed = set(names) - {self.main.entity}
        others = listed - self.features.keys()
        return len(others) < len(listed) and all(map(self._is_single, others))

    def _is_single(self, name: str) -> bool:
        if name in self.main.kinds:
            return name in self._domains and self._domains[name].constant
        tables = [each for each in self.tables.values() if name in each.names.values()]
        return all(each.declared is not None and each.declared.rows == 1 for each in tables)

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
        """One row for each entity of the table itself, with what is named: see `of_people`. For a
        column that was declared constant it takes any value that there is, in the same pass."""
        wanted, entity = set(names), self.main.entity
        assert entity is not None
        own = [each for each in self._of(self.main) if each.name in wanted]
        constant = (wanted & self.main.kinds.keys()) - {entity}
        if own or constant:
            base = self._aggregated(self.main, own, constant).rename({entity: self._owner})
        else:
            base = owned(self.main.data, entity).select(entity).distinct()
        for table in self.tables.values():
            base = self._joined(base, table, wanted)
        return self._with_features(base, wanted - {each.name for each in own})

    def _private(self, declared: FurtherTable, opened: Any) -> PrivateTable:
        if self.main.entity is None:
            accepted = "public, where each row is one person: there is no entity to join on"
            raise InvalidInput("table", accepted, repr(declared.name))
        entity = declared.entity or self.main.entity
        if entity not in opened.columns:
            raise unknown_column("entity", entity, opened)
        _same_entity(opened[entity], self.main.data[self.main.entity].type())
        return PrivateTable(opened, entity, declared)

    def _look_up(self, engine: Engine, declared: LookupTable, opened: Any) -> None:
        if declared.to is not None and declared.to not in self.tables:
            known = ", ".join(self.tables) or "none"
            raise InvalidInput("to", f"a further table of people: {known}", repr(declared.to))
        table = self.main if declared.to is None else self.tables[declared.to]
        on, kinds = declared.on or declared.key, table.kinds
        if on not in kinds:
            raise unknown_column("key" if declared.on is None else "on", on, table.data)
        lookup = read_lookup(engine, declared, opened, kinds[on])
        for name in lookup.rows.column_names:
            if name not in (lookup.key, declared.key):
                lookup.names[name] = _free(name, declared.name, kinds)
        table.lookups.append(lookup)
        self.lookups[declared.name] = lookup

    def _name_columns(self) -> None:
        taken = dict.fromkeys(self.main.kinds)
        self.main.names = {name: name for name in taken}
        for table in self.tables.values():
            assert table.declared is not None
            for name in table.kinds:
                # The entity there too: it is missing for whoever has no row in that table.
                own = {name} if name == table.entity else set()
                table.names[name] = _free(name, table.declared.name, own.union(taken))
                taken[table.names[name]] = None
        for index, name in enumerate(self.features):
            if folded(name) in map(folded, taken):
                with at(f"features[{index}]"):
                    raise InvalidInput("name", "one that no column has", repr(name))

    def _kinds(self) -> dict[str, Any]:
        result = dict(self.main.kinds)
        for table in self.tables.values():
            kinds = table.kinds
            result |= {column: kinds[name] for name, column in table.names.items()}
        return result

    def _joined(self, base: Any, table: PrivateTable, wanted: set[str]) -> Any:
        """Rows with the wanted columns of a further table: at most its declared `rows` to each."""
        used = {name: column for name, column in table.names.items() if column in wanted}
        if not used:
            return base
        assert table.declared is not None
        rows = self._owned(table, table.rows(used))
        columns = {column: rows[name] for name, column in used.items()}
        named = rows.select(called({self._owner: rows[self._owner]} | columns))
        chosen = whole_rows(named, self._owner, table.declared.rows)
        return self._beside(base, chosen, used.values())

    def _with_features(self, base: Any, wanted: set[str]) -> Any:
        for table in (self.main, *self.tables.values()):
            own = [each for each in self._of(table) if each.name in wanted]
            if own:
                known = self._aggregated(table, own)
                base = self._beside(base, known, [each.name for each in own])
                empty = {
                    each.name: base[each.name].fill_null(AGGREGATES[each.kind].empty)
                    for each in own
                    if AGGREGATES[each.kind].empty is not None
                }
                base = base.mutate(called(empty)) if empty else base
        return base

    def _beside(self, base: Any, known: Any, names: Iterable[str]) -> Any:
        """Rows with columns of a table that is joined on the entity; nobody's row is lost."""
        assert self.main.entity is not None
        return beside(
            base, known, [(self.main.entity, self._owner)], {each: each for each in names}
        )

    def _of(self, table: PrivateTable) -> list[Feature]:
        return [each for each in self.features.values() if self._table(each) is table]

    def _table(self, feature: Feature) -> PrivateTable:
        if feature.table is None:
            return self.main
        if feature.table not in self.tables:
            known = ", ".join(self.tables) or "none"
            accepted = f"a further table of people ({known}), or left out for the table itself"
            raise InvalidInput("table", accepted, repr(feature.table))
        return self.tables[feature.table]

    def _owned(self, table: PrivateTable, rows: Any) -> Any:
        """The rows that have an owner, with it, as the table itself spells it."""
        assert table.entity is not None and self.main.entity is not None
        kind = self.main.data[self.main.entity].type()
        whose = _same_entity(rows[table.entity], kind).name(self._owner)
        return owned(rows.mutate(whose), self._owner)

    def _aggregated(
        self, table: PrivateTable, features: Sequence[Feature], constant: Iterable[str] = ()
    ) -> Any:
        """One row for each entity, with features of one table and columns that are constant."""
        named = {name for each in features for name in _named(each)}
        rows = self._owned(table, table.rows(named.union(constant)))
        values = {each.name: self._value(each, rows) for each in features}
        values |= {name: rows[name].arbitrary() for name in constant}
        return rows.group_by(self._owner).aggregate(called(values))

    def _value(self, feature: Feature, rows: Any) -> Any:
        """A feature over a group of rows."""
        aggregate, domain = AGGREGATES[feature.kind], self._domains.get(feature.name)
        if aggregate.takes == "numbers" and not isinstance(domain, Range):
            accepted = (
                f"declared as a range for {feature.name}, such as 0..365: its steps are summed"
            )
            raise InvalidInput("domain", accepted, "none" if domain is None else "no range")
        counts: Any = True
        if feature.where is not None:
            with at("where"):
                counts = condition(feature.where, rows)
        columns = [(key, getattr(feature, key)) for key in ("column", "order", "tie")]
        given = {key: self._column(rows, key, name) for key, name in columns if name is not None}
        value, keys = None, ()
        if "column" in given:
            with at("column"):
                meant = domain if aggregate.is_a_value else None
                value = readable(given["column"], aggregate.takes, meant)
            counts = value.notnull() & counts
        if "order" in given:
            with at("order"):
                order = ordering(given["order"])
            counts = order.notnull() & counts
            keys = (order, *(breaking(given["tie"]) if "tie" in given else ()))
        if counts is True:
            counts = rows[self._owner].notnull()
        result = aggregate.compute(FeatureInput(value, counts, domain, keys))
        return result if aggregate.empty is None else result.fill_null(aggregate.empty)

    def _column(self, rows: Any, key: str, name: str) -> Any:
        if name not in rows.columns or name == self._owner:
            if name in self.features:
                accepted = "a column of the table: a feature of a feature is not computed"
                raise InvalidInput(key, accepted, repr(name))
            raise unknown_column(key, name, rows.drop(self._owner))
        return rows[name]


def _named(feature: Feature) -> set[str]:
    """The columns that a feature is about."""
    listed = {feature.column, feature.order, feature.tie} - {None}
    return {str(name) for name in listed} | columns_in(feature.where)


def _free(name: str, table: str, taken: Iterable[str]) -> str:
    """A column's name beside others: with its table's before it where it would be there twice."""
    known = {folded(each) for each in taken}
    if folded(name) not in known:
        return name
    result = f"{table}.{name}"
    if folded(result) in known:
        raise InvalidInput("name", "one after which all columns have different names", repr(table))
    return result


def _same_entity(value: Any, kind: Any) -> Any:
    """An entity as the table itself spells it: texts spell whole numbers in text files."""
    own = value.type()
    if kind.is_string() and own.is_integer():
        return value.cast("string")
    if kind.is_integer() and own.is_string():
        return cast(value, "whole")
    kinds = ("string", "integer", "floating", "decimal", "boolean", "date", "timestamp", "binary")
    if not any(getattr(kind, f"is_{each}")() and getattr(own, f"is_{each}")() for each in kinds):
        raise InvalidInput(
            "entity", f"of the type that it has in the table itself, {kind}", str(own)
        )
    return value
