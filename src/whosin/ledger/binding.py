"""What a dataset's budget is about: whose rows, of which table, within which bounds.

Contract: it is fixed when a budget is registered, and every debit records what it was asked of. A
debit about another entity, another table, other domains or wider bounds is refused. What does not
change the promise may be amended by the curator, as an entry of its own; the entity and the
universe of a `maximum` never change. Digests of rows are kept under a key that no entry holds, so
that nobody who reads a history can test a guess at the table.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from whosin.errors import BudgetRefused, invalid_value
from whosin.ledger import encoding

CONTENT_KINDS = ("bytes", "rows")
"""Kinds of fingerprints that say the same of equal rows, wherever they lie."""
PEOPLE_KIND = "people"
"""The kind that says whose rows they are, whatever is asked of them: it is compared between
datasets, never within one."""
LIVE_TABLE = "table"
"""The kind that says which table of a server it is, whatever becomes of its rows."""
LONGEST_SHOWN = 60
LATER_KEYS = ("tables", "features")
"""Keys that bindings of older ledgers do not have. They are left out where they are empty."""


@dataclass(frozen=True)
class Registration:
    """A table as a budget knows it.

    Attributes:
        entity: the column that says whose row it is.
        rows, groups: how many rows and cells of an entity count, at most.
        domains: what declared columns may hold, as plain data.
        schema: names and kinds of all columns.
        source: fingerprints of the source by kind: "bytes" of its files, "rows" whatever holds
            them, or the "place" of one that can be neither read nor counted cheaply; "table" is
            which one it is on a server that knows it under any name, "people" whose rows they are.
        universe: digest of the universe of a `maximum`, where one may be asked.
        tables: further tables by name: whose rows they have, how many count, their columns. Their
            fingerprints are in `source`, under "bytes:visits".
        features: what is computed for each entity, by name.
    """

    entity: str
    rows: int = 1
    groups: int = 1
    domains: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    universe: str | None = None
    tables: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("domains", "schema", "source", *LATER_KEYS):
            object.__setattr__(self, name, encoding.plain_copy(getattr(self, name), name))

    def about(self, columns: frozenset[str], universe: str | None = None) -> Registration:
        """The same for one question: with the domains of its columns only."""
        used = {name: self.domains[name] for name in self.domains if name in columns}
        return replace(self, domains=used, universe=universe)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the fingerprints are not sealed."""
        return {key: value for key, value in vars(self).items() if value or key not in LATER_KEYS}


@dataclass(frozen=True)
class RegisteredTable:
    """A binding that a ledger keeps, its fingerprints sealed under the dataset's own key."""

    binding: Registration
    key: str

    @classmethod
    def of(cls, binding: Registration, key: str | None = None) -> RegisteredTable:
        """Seal a table's binding."""
        chosen = secrets.token_hex(32) if key is None else key
        return cls(replace(binding, source=_seal_fingerprints(binding.source, chosen)), chosen)

    @classmethod
    def read(cls, text: str) -> RegisteredTable:
        """What a ledger keeps of it."""
        data = json.loads(text)
        return cls(Registration(**data["binding"]), str(data["key"]))

    def text(self) -> str:
        """What a ledger keeps of it; `read` takes it back."""
        return encoding.canonical_json({"binding": self.binding.to_dict(), "key": self.key})

    def public(self) -> dict[str, Any]:
        """Without fingerprints: what anyone who may ask may see."""
        return {key: value for key, value in self.binding.to_dict().items() if key != "source"}

    def entry(self) -> dict[str, Any]:
        """What an entry of the history says of it."""
        return {**self.public(), "source": _commit_fingerprints(self.binding.source, self.key)}

    def asked(self, binding: Registration) -> dict[str, Any]:
        """A question's binding, once checked, as its debit records it: the schema by its digest,
        and the source by that of the dataset, which it is."""
        data = {**binding.to_dict(), "source": _commit_fingerprints(self.binding.source, self.key)}
        data["schema"] = encoding.digest_text(encoding.canonical_json(data["schema"]))
        return data

    def holds_rows_of(self, binding: Registration) -> bool:
        """Whether the rows are the same, as far as fingerprints tell."""
        mine = _fingerprints_by_table(self.binding)
        others = _fingerprints_by_table(
            replace(binding, source=_seal_fingerprints(binding.source, self.key))
        )
        return any(
            _same_rows(one, each, known=False)
            or (PEOPLE_KIND in one and one[PEOPLE_KIND] == each.get(PEOPLE_KIND))
            for one in mine
            for each in others
        )

    def seal(self, kind: str, print_: str) -> str:
        """A fingerprint that a debit may record: under the dataset's key, which no entry holds."""
        return _seal_fingerprints({kind: print_}, self.key)[kind]

    def has_table(self, name: str, public: bool, source: Mapping[str, str]) -> bool:
        """Whether a further table of this name has these rows, as far as fingerprints tell."""
        known = self.binding.tables.get(name)
        if known is None or known["public"] is not public:
            return False
        return _same_rows(
            _table_fingerprints(self.binding.source, name),
            _seal_fingerprints(source, self.key),
            known=False,
        )

    def difference(self, binding: Registration) -> str | None:
        """What a table asks beyond this, in words; None where it keeps within."""
        mine = self.binding
        if binding.entity != mine.entity:
            return f"the entity {mine.entity!r}, and this is about {binding.entity!r}"
        if binding.universe not in (None, mine.universe):
            kept = "another universe" if mine.universe else "no universe for a maximum"
            return f"{kept}, and this has one of its own"
        if binding.schema != mine.schema:
            return f"other columns: {_describe_columns(mine.schema, binding.schema)}"
        for name, domain in binding.domains.items():
            if name not in mine.domains:
                return f"no domain for {name!r}, and this declares {_domain_words(domain)}"
            if domain != mine.domains[name]:
                declared = _domain_words(mine.domains[name])
                return f"{name!r} as {declared}, and this has {_domain_words(domain)}"
        for name in ("rows", "groups"):
            if getattr(binding, name) > getattr(mine, name):
                return f"{name} = {getattr(mine, name)}, and this has {getattr(binding, name)}"
        return self._difference_in_tables(binding)

    def _difference_in_tables(self, binding: Registration) -> str | None:
        mine = self.binding
        for name, feature in binding.features.items():
            if name not in mine.features:
                return f"no feature {name!r}, and this computes one"
            if feature != mine.features[name]:
                return (
                    f"another feature {name!r}: "
                    f"{_describe_difference(feature, mine.features[name])}"
                )
        for name, table in binding.tables.items():
            if name not in mine.tables:
                return f"no further table {name!r}, and this has one"
            known = mine.tables[name]
            if {**table, "rows": 1} != {**known, "rows": 1}:
                return f"another table {name!r}: {_describe_difference(table, known)}"
            if table.get("rows", 1) > known.get("rows", 1):
                return f"rows = {known['rows']} of {name!r}, and this has {table['rows']}"
        sealed = _seal_fingerprints(binding.source, self.key)
        for name in ("", *binding.tables):
            if not _same_rows(
                _table_fingerprints(mine.source, name),
                _table_fingerprints(sealed, name),
                known=True,
            ):
                what = f"another table {name!r}" if name else "another table"
                return f"{what}: the source has changed, or is not the one it was"
        return None

    def check(self, dataset: str, binding: Registration | None) -> None:
        """A question keeps within what was registered.

        Raises:
            BudgetRefused: it does not; the reason says what differs.
        """
        if binding is None:
            raise BudgetRefused(
                f"dataset {dataset!r} is bound to a table: a debit must say which table it is about"
            )
        result = self.difference(binding)
        if result is not None:
            raise BudgetRefused(
                f"dataset {dataset!r} was registered with {result}; {_describe_way(result)}"
            )

    def amended(self, dataset: str, binding: Registration) -> RegisteredTable:
        """Another table, other domains or bounds under the same promise.

        Raises:
            BudgetRefused: the entity or the universe would change, and with it the promise.
        """
        mine = self.binding
        universe = binding.universe if binding.universe is not None else mine.universe
        fixed = mine.universe is not None and universe != mine.universe
        if binding.entity != mine.entity or fixed:
            self.check(dataset, binding)
        return RegisteredTable.of(replace(binding, universe=universe), self.key)


def read_binding(binding: object) -> Registration | None:
    """A binding, or none."""
    if binding is not None and not isinstance(binding, Registration):
        raise invalid_value("binding", "a Binding, such as binding_of(table)", repr(binding)[:80])
    return binding


def _seal_fingerprints(source: Mapping[str, str], key: str) -> dict[str, str]:
    secret = bytes.fromhex(key)
    return {
        # Without the table's name: the same rows may be called otherwise elsewhere.
        kind: hmac.new(secret, f"{kind.partition(':')[0]}:{print_}".encode(), "sha256").hexdigest()
        for kind, print_ in source.items()
    }


def _table_fingerprints(source: Mapping[str, str], table: str) -> dict[str, str]:
    """The fingerprints of one table by kind; "" for the one that has the others beside it."""
    parts = ((*key.partition(":")[::2], print_) for key, print_ in source.items())
    return {kind: print_ for kind, name, print_ in parts if name == table}


def _fingerprints_by_table(binding: Registration) -> list[dict[str, str]]:
    """The fingerprints of each table of people: public ones may be beside any."""
    private = [name for name, table in binding.tables.items() if not table["public"]]
    return [_table_fingerprints(binding.source, name) for name in ("", *private)]


def _describe_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Where two descriptions differ."""
    key = next(key for key in (*one, *other) if one.get(key) != other.get(key))
    if isinstance(one.get(key), dict):
        return f"other columns ({key})"
    return f"{key} was {other.get(key, 'left out')}, and is {one.get(key, 'left out')}"


def _commit_fingerprints(sealed: Mapping[str, str], key: str) -> str:
    """One digest for all fingerprints: which ones there are may depend on the rows."""
    text = encoding.canonical_json(dict(sealed))
    return hmac.new(bytes.fromhex(key), text.encode(), hashlib.sha256).hexdigest()


def _same_rows(mine: Mapping[str, str], other: Mapping[str, str], *, known: bool) -> bool:
    """Whether two sources have the same rows: a table on a server is the same whatever becomes of
    its rows; else by their contents if both have a print of one kind, else by their place; `known`
    if neither says anything."""
    if LIVE_TABLE in mine and mine[LIVE_TABLE] == other.get(LIVE_TABLE):
        return True
    for kinds in (CONTENT_KINDS, ("place",)):
        both = [kind for kind in kinds if kind in mine and kind in other]
        if both:
            return any(mine[kind] == other[kind] for kind in both)
    return known and not (mine and other)


def _describe_columns(mine: Mapping[str, str], other: Mapping[str, str]) -> str:
    for name in other:
        if name not in mine:
            return f"{name!r} was not among them"
    for name, kind in mine.items():
        if other.get(name) != kind:
            return f"{name!r} was {kind}, and is {other.get(name, 'missing')}"
    return "not these"


def _domain_words(domain: Mapping[str, Any]) -> str:
    if "lower" in domain:
        extra = [
            f"{key} {_flatten(domain[key])}" for key in domain if key not in ("lower", "upper")
        ]
        text = ", ".join([f"{domain['lower']}..{domain['upper']}", *extra])
    else:
        text = ", ".join(map(str, domain.get("values", ())))
        if "outside" in domain:  # first, so that a long list does not hide it
            text = f"outside {domain['outside']}, values {text}"
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _flatten(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _describe_way(difference: str) -> str:
    if difference.startswith(("the entity", "another universe")):
        return "whom a budget protects is set once and for all"
    return "its curator can record the change with whosin ledger amend, or release --amend"
