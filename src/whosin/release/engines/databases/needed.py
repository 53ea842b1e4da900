"""Which columns of a table an expression needs, and which rows it certainly does not.

Contract: columns are found from the end, operation by operation; an operation that is not listed
here needs all of them. A row may be left out where it lies only if the expression drops it first of
all, whoever reads the table: conditions here are weaker than the ones that DuckDB still applies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

PRESENT = "present"


@dataclass(frozen=True)
class RowCondition:
    """A condition on one column: what it compares as, and with what."""

    column: str
    operator: str
    values: tuple[Any, ...] = ()


def needed_columns(expression: Any) -> dict[str, set[str]]:
    """For each table, by its name, the columns that an expression needs."""
    from ibis.expr import operations as ops

    root = expression.op()
    wanted: dict[Any, set[str]] = {}
    waiting = [(root, set(root.schema.names))]
    while waiting:
        relation, names = waiting.pop()
        if relation in wanted and names <= wanted[relation]:
            continue
        wanted[relation] = wanted.get(relation, set()) | names
        waiting += _asked(ops, relation, wanted[relation])
    return {
        each.name: names for each, names in wanted.items() if isinstance(each, ops.DatabaseTable)
    }


def _asked(ops: Any, relation: Any, names: set[str]) -> list[tuple[Any, set[str]]]:
    """What a relation needs of those that it is made from, to give these columns."""
    if isinstance(relation, ops.PhysicalTable):
        return []
    if isinstance(relation, ops.Project):
        used: Iterable[Any] = [relation.values[name] for name in names]
        return [(relation.parent, set()), *_fields(ops, used)]
    if isinstance(relation, ops.Filter):
        return [(relation.parent, names), *_fields(ops, relation.predicates)]
    if isinstance(relation, ops.Aggregate):
        metrics = [value for name, value in relation.metrics.items() if name in names]
        used = [*relation.groups.values(), *metrics]
        return [(relation.parent, set()), *_fields(ops, used)]
    if isinstance(relation, ops.JoinChain):
        used = [relation.values[name] for name in names]
        used += [each for link in relation.rest for each in link.predicates]
        tables = [relation.first, *(link.table for link in relation.rest)]
        return [*((table, set()) for table in tables), *_fields(ops, used)]
    if isinstance(relation, ops.Reference):
        return [(relation.parent, names)]
    if isinstance(relation, ops.Union) and not relation.distinct:
        return [(relation.left, names), (relation.right, names)]
    parents = _met(relation, ops.Relation)
    return [(parent, set(parent.schema.names)) for parent in parents]


def _fields(ops: Any, values: Iterable[Any]) -> Iterator[tuple[Any, set[str]]]:
    """The columns that values are made of; all columns of a relation inside a value."""
    leaves = ops.Field, ops.Relation, ops.CountStar
    for value in values:
        for node in _met(value, leaves, itself=True):
            if isinstance(node, ops.Field):
                yield node.rel, {node.name}
            elif isinstance(node, ops.CountStar):
                yield node.arg, set()
                if node.where is not None:
                    yield from _fields(ops, [node.where])
            else:
                yield node, set(node.schema.names)


def _met(node: Any, kinds: Any, *, itself: bool = False) -> list[Any]:
    """The first nodes of a kind below one, on every way down."""
    if itself and isinstance(node, kinds):
        return [node]
    result: dict[Any, None] = {}
    waiting, seen = list(node.__children__), set()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        if isinstance(each, kinds):
            result[each] = None
        else:
            waiting += each.__children__
    return list(result)


def row_conditions(expression: Any, name: str) -> list[RowCondition]:
    """What every row of a table must meet to count in an expression, as far as it is plain."""
    from ibis.expr import operations as ops

    relations = [expression.op(), *expression.op().find(ops.Relation)]
    readers: dict[Any, set[Any]] = {}
    for relation in relations:
        for parent in _met(relation, ops.Relation):
            readers.setdefault(parent, set()).add(relation)
    tables = [each for each in relations if isinstance(each, ops.DatabaseTable)]
    (table,) = {each for each in tables if each.name == name}
    result: list[RowCondition] = []
    while len(readers.get(table, ())) == 1:
        (reader,) = readers[table]
        if not isinstance(reader, ops.Filter) or reader.parent != table:
            break
        for predicate in reader.predicates:
            result += _plain(ops, predicate, table)
        table = reader
    return result


def _plain(ops: Any, predicate: Any, table: Any) -> Iterator[RowCondition]:
    """The parts of a condition that compare a column with given values."""
    operators = {
        ops.Equals: "=",
        ops.Less: "<",
        ops.LessEqual: "<=",
        ops.Greater: ">",
        ops.GreaterEqual: ">=",
    }
    if isinstance(predicate, ops.Coalesce) and _is_false(ops, predicate.arg[1:]):
        yield from _plain(ops, predicate.arg[0], table)
    elif isinstance(predicate, ops.And):
        yield from _plain(ops, predicate.left, table)
        yield from _plain(ops, predicate.right, table)
    elif isinstance(predicate, ops.NotNull):
        if _is_field(ops, predicate.arg, table):
            yield RowCondition(predicate.arg.name, PRESENT)
    elif type(predicate) in operators:
        left, right = predicate.left, predicate.right
        if _is_field(ops, left, table) and isinstance(right, ops.Literal):
            yield RowCondition(left.name, operators[type(predicate)], (right.value,))
    elif isinstance(predicate, ops.InValues):
        literal = all(isinstance(each, ops.Literal) for each in predicate.options)
        if _is_field(ops, predicate.value, table) and literal:
            yield RowCondition(
                predicate.value.name, "in", tuple(each.value for each in predicate.options)
            )


def _is_field(ops: Any, value: Any, table: Any) -> bool:
    return isinstance(value, ops.Field) and value.rel == table


def _is_false(ops: Any, values: Any) -> bool:
    return len(values) == 1 and isinstance(values[0], ops.Literal) and values[0].value is False
