"""What a dataset's budget is about: whose rows, of which table, within which bounds.

It is fixed when a budget is registered, and every debit records what it was asked of. A debit about
another privacy unit, another table, other domains or wider bounds is refused. What does not change
the promise may be amended by the curator, as an entry of its own; the privacy unit and the universe
of a `maximum` never change. Digests of rows are kept under a key that no entry holds, so that
nobody who reads a history can test a guess at the table.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
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
SALT_LENGTH = 12
"""Of the salt, and of the mark, behind a request about a table that lives."""
MAX_SHOWN_LENGTH = 60
MAX_EARLIER_TABLES = 1_000
"""How many tables that a dataset went on from are known again."""
OPTIONAL_KEYS = ("tables", "features", "apart_from", "part")
"""Keys that are left out where they are empty."""


@dataclass(frozen=True)
class Registration:
    """A table as a budget knows it.

    Attributes:
        privacy_unit: the column that says whose row it is.
        max_rows_per_group, max_groups: the contribution bounds.
        domains: what declared columns may hold, as plain data.
        schema: names and kinds of all columns.
        source: fingerprints of the source by kind: "bytes" of its files, "rows" whatever holds
            them, or the "place" of one that can be neither read nor counted cheaply; "table" is
            which one it is on a server that knows it under any name, "people" whose rows they are.
        universe: digest of the universe of a `maximum`, where one may be asked.
        tables: further tables by name: whose rows they have, how many count, their columns. Their
            fingerprints are in `source`, under "bytes:visits".
        features: what is computed for each privacy unit, by name.
        apart_from: datasets with the same columns that are about other people, by the curator's
            word.
        part: the "column" that puts people into parts, and its "rule": "constant" or "least".
        name: what the table is called, and its file where that is called otherwise: entries say it,
            and nothing depends on it.
    """

    privacy_unit: str
    max_rows_per_group: int = 1
    max_groups: int = 1
    domains: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)
    universe: str | None = None
    tables: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)
    apart_from: Mapping[str, Any] = field(default_factory=dict)
    part: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        for name in ("domains", "schema", "source", *OPTIONAL_KEYS):
            object.__setattr__(self, name, encoding.plain_copy(getattr(self, name), name))

    def about(self, columns: frozenset[str], universe: str | None = None) -> Registration:
        """The same for one question: with the domains of its columns only, and nothing that is said
        of the dataset as a whole."""
        used = {name: self.domains[name] for name in self.domains if name in columns}
        return replace(self, domains=used, universe=universe, apart_from={})

    @property
    def lives(self) -> bool:
        """Whether rows may come and go in what stays the same table, such as one on a server, or
        in what nobody can look at."""
        kinds = [kind.partition(":")[0] for kind in self.source]
        return not kinds or LIVE_TABLE in kinds or ("place" in kinds and "rows" not in kinds)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the fingerprints are not sealed."""
        data = {key: value for key, value in vars(self).items() if key != "name"}
        return {key: value for key, value in data.items() if value or key not in OPTIONAL_KEYS}

    @property
    def named(self) -> dict[str, str]:
        """The table's name, as an entry of the history says it."""
        return {"table": self.name} if self.name else {}


@dataclass(frozen=True)
class RegisteredTable:
    """A registration that a ledger keeps, its fingerprints sealed under the dataset's own key."""

    registration: Registration
    key: str
    earlier: tuple[Mapping[str, str], ...] = ()
    """The sealed fingerprints of tables that it went on from: a copy of one is still a copy."""

    @classmethod
    def of(cls, registration: Registration, key: str | None = None) -> RegisteredTable:
        """Seal a table's registration."""
        chosen = secrets.token_hex(32) if key is None else key
        return cls(
            replace(registration, source=_seal_fingerprints(registration.source, chosen)), chosen
        )

    @classmethod
    def read(cls, text: str) -> RegisteredTable:
        """What a ledger keeps of it."""
        data = json.loads(text)
        earlier = tuple(data.get("earlier", ()))
        return cls(Registration(**data["registration"]), str(data["key"]), earlier)

    def text(self) -> str:
        """What a ledger keeps of it; `read` takes it back."""
        data = {"registration": self.registration.to_dict(), "key": self.key}
        return encoding.canonical_json(
            data | ({"earlier": list(self.earlier)} if self.earlier else {})
        )

    def public(self) -> dict[str, Any]:
        """Without fingerprints: what anyone who may ask may see."""
        return {key: value for key, value in self.registration.to_dict().items() if key != "source"}

    def entry(self) -> dict[str, Any]:
        """What an entry of the history says of it."""
        return {**self.public(), "source": _commit_fingerprints(self.registration.source, self.key)}

    def body(self) -> dict[str, Any]:
        """What the entry of a registration or an amendment says."""
        return {"registration": self.entry(), **self.registration.named}

    def asked(self, registration: Registration) -> dict[str, Any]:
        """A question's registration, once checked, as its debit records it: the schema by the
        digest, and the source by that of the dataset, which it is."""
        data = registration.to_dict()
        schema = encoding.digest_text(encoding.canonical_json(dict(self.registration.schema)))
        source = _commit_fingerprints(self.registration.source, self.key)
        return {**data, "schema": schema, "source": source}

    def holds_rows_of(self, registration: Registration) -> bool:
        """Whether the rows are the same, as far as fingerprints tell."""
        mine = [
            each
            for source in (self.registration.source, *self.earlier)
            for each in _fingerprints_by_table(replace(self.registration, source=source))
        ]
        others = _fingerprints_by_table(
            replace(registration, source=_seal_fingerprints(registration.source, self.key))
        )
        return any(
            _same_rows(one, each, known=False)
            or (PEOPLE_KIND in one and one[PEOPLE_KIND] == each.get(PEOPLE_KIND))
            for one in mine
            for each in others
        )

    def has_shape_of(self, registration: Registration) -> bool:
        """Whether the privacy unit and the columns are the same: perhaps another month's file."""
        mine = self.registration
        same_unit = mine.privacy_unit == registration.privacy_unit
        return same_unit and dict(mine.schema) == dict(registration.schema)

    def seal(self, kind: str, print_: str) -> str:
        """A fingerprint that a debit may record: under the dataset's key, which no entry holds."""
        return _seal_fingerprints({kind: print_}, self.key)[kind]

    def seal_rows(self, text: str) -> str:
        """The same of what is to be known again of the rows."""
        return self.seal("rows", text)

    def mark_rows(self, registration: Registration, name: str) -> str:
        """A new name of a request about a table that lives, with a mark of its rows of today. Each
        has a salt of its own, so that nobody without the dataset's key can tell whether rows
        changed between two; chance alone where nobody looked at all rows, or can."""
        salted = f"{name}-{secrets.token_hex(SALT_LENGTH // 2)}"
        return salted + (
            self._seal_rows(registration, salted) or secrets.token_hex(SALT_LENGTH // 2)
        )

    def find_rows(
        self, registration: Registration, name: str, requests: Iterable[str]
    ) -> str | None:
        """Which of these requests of a name was about the very rows of today."""
        length = len(name) + 1 + SALT_LENGTH
        for each in requests:
            mark = self._seal_rows(registration, each[:length])
            if mark is not None and each[length:] == mark:
                return each
        return None

    def _seal_rows(self, registration: Registration, beside: str) -> str | None:
        prints = _seal_fingerprints(registration.source, self.key)
        tables = {kind.partition(":")[2] for kind in prints}
        known = [
            next((each[kind] for kind in CONTENT_KINDS if kind in each), None)
            for each in (_table_fingerprints(prints, name) for name in sorted(tables))
        ]
        if None in known:
            return None
        return self.seal_rows(encoding.canonical_json([beside, known]))[:SALT_LENGTH]

    def seal_table(self, registration: Registration) -> RegisteredTable:
        """Another table as this dataset would keep it."""
        return RegisteredTable.of(registration, self.key)

    def has_table(self, name: str, public: bool, source: Mapping[str, str]) -> bool:
        """Whether a further table of this name has these rows, as far as fingerprints tell."""
        known = self.registration.tables.get(name)
        if known is None or known["public"] is not public:
            return False
        mine = _table_fingerprints(self.registration.source, name)
        return _same_rows(mine, _seal_fingerprints(source, self.key), known=False)

    def difference(self, registration: Registration) -> str | None:
        """What a table asks beyond this, in words; None where it keeps within."""
        mine = self.registration
        if registration.privacy_unit != mine.privacy_unit:
            asked = registration.privacy_unit
            return f"the privacy unit {mine.privacy_unit!r}, and this is about {asked!r}"
        if registration.universe not in (None, mine.universe):
            kept = "another universe" if mine.universe else "no universe for a maximum"
            return f"{kept}, and this has one of its own"
        if registration.part and registration.part != mine.part:
            known, asked = (_part_words(each.part) for each in (mine, registration))
            return f"{known}, and this has {asked}"
        schema = self._readable_columns(registration, "", mine.schema, registration.schema)
        if registration.schema != schema:
            return f"other columns: {_describe_columns(schema, registration.schema)}"
        for name, domain in registration.domains.items():
            if name not in mine.domains:
                return f"no domain for {name!r}, and this declares {_domain_words(domain)}"
            if domain != mine.domains[name]:
                declared = _domain_words(mine.domains[name])
                return f"{name!r} as {declared}, and this has {_domain_words(domain)}"
        for name in ("max_rows_per_group", "max_groups"):
            if getattr(registration, name) > getattr(mine, name):
                return f"{name} = {getattr(mine, name)}, and this has {getattr(registration, name)}"
        return self._difference_in_tables(registration)

    def _difference_in_tables(self, registration: Registration) -> str | None:
        mine = self.registration
        for name, feature in registration.features.items():
            if name not in mine.features:
                return f"no feature {name!r}, and this computes one"
            if feature != mine.features[name]:
                change = _describe_difference(feature, mine.features[name])
                return f"another feature {name!r}: {change}"
        for name, table in registration.tables.items():
            if name not in mine.tables:
                return f"no further table {name!r}, and this has one"
            known = mine.tables[name]
            schema = self._readable_columns(registration, name, known["schema"], table["schema"])
            known = {**known, "schema": schema}
            if {**table, "max_rows": 1} != {**known, "max_rows": 1}:
                return f"another table {name!r}: {_describe_difference(table, known)}"
            if table.get("max_rows", 1) > known.get("max_rows", 1):
                most = f"max_rows = {known['max_rows']} of {name!r}"
                return f"{most}, and this has {table['max_rows']}"
        sealed = _seal_fingerprints(registration.source, self.key)
        for name in ("", *registration.tables):
            before, now = (_table_fingerprints(each, name) for each in (mine.source, sealed))
            if not _same_rows(before, now, known=True):
                what = f"another table {name!r}" if name else "another table"
                return f"{what}: the source has changed, or is not the one it was"
        return None

    def _readable_columns(
        self, registration: Registration, table: str, mine: Any, other: Any
    ) -> dict[str, str]:
        """The registered columns; of a table on a server, those that its role may read."""
        before, now = (
            _table_fingerprints(each, table).get(LIVE_TABLE)
            for each in (
                self.registration.source,
                _seal_fingerprints(registration.source, self.key),
            )
        )
        role_chooses = before is not None and before == now
        return {name: kind for name, kind in mine.items() if name in other or not role_chooses}

    def corrects(self, registration: Registration) -> bool:
        """Whether only the domains of a table are declared otherwise."""
        return self.difference(replace(registration, domains={})) is None

    def check(self, dataset: str, registration: Registration | None) -> None:
        """A question keeps within what was registered."""
        if registration is None:
            bound = f"dataset {dataset!r} is bound to a table"
            raise BudgetRefused(f"{bound}: a debit must say which table it is about")
        if (result := self.difference(registration)) is not None:
            way = (
                "its curator can record the change with whosin ledger amend, or release --amend "
                "(amend=True)"
            )
            if result.endswith("and is missing"):
                way += "; whosin ledger answers shows what was paid for"
            if result.startswith(("the privacy unit", "another universe")):
                way = "whom a budget protects is set once and for all"
            raise BudgetRefused(f"dataset {dataset!r} was registered with {result}; {way}")

    def amended(self, dataset: str, registration: Registration) -> RegisteredTable:
        """Another table, other domains or bounds under the same promise.

        Raises:
            BudgetRefused: the privacy unit or the universe would change, and with it the promise.
        """
        mine = self.registration
        universe = registration.universe if registration.universe is not None else mine.universe
        fixed = mine.universe is not None and universe != mine.universe
        if registration.privacy_unit != mine.privacy_unit or fixed:
            self.check(dataset, registration)
        part = registration.part or mine.part
        result = RegisteredTable.of(replace(registration, universe=universe, part=part), self.key)
        known = [*self.earlier, mine.source]
        earlier = [each for each in known if dict(each) != dict(result.registration.source)]
        distinct = {encoding.canonical_json(dict(each)): each for each in earlier}
        return replace(result, earlier=tuple(distinct.values())[-MAX_EARLIER_TABLES:])


def read_registration(registration: object) -> Registration | None:
    """Check that it is a registration, or none."""
    if registration is not None and not isinstance(registration, Registration):
        raise invalid_value(
            "registration", "a Registration, such as register_table(table)", repr(registration)[:80]
        )
    return registration


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


def _fingerprints_by_table(registration: Registration) -> list[dict[str, str]]:
    """The fingerprints of each table of people: public ones may be beside any."""
    private = [name for name, table in registration.tables.items() if not table["public"]]
    return [_table_fingerprints(registration.source, name) for name in ("", *private)]


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


def _part_words(part: Mapping[str, Any]) -> str:
    return f"parts by {part['column']!r} ({part['rule']})" if part else "no parts"


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
        rest = {key: value for key, value in domain.items() if key not in ("lower", "upper")}
        extra = (f"{key} {_flatten(value)}" for key, value in rest.items())
        text = ", ".join([f"{domain['lower']}..{domain['upper']}", *extra])
    else:
        text = ", ".join(map(str, domain.get("values", ())))
        if "outside" in domain:  # first, so that a long list does not hide it
            text = f"outside {domain['outside']}, values {text}"
    return text if len(text) <= MAX_SHOWN_LENGTH else text[:MAX_SHOWN_LENGTH] + "…"


def _flatten(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
