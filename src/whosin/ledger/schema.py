"""The tables of a ledger. `entries` is only ever appended to; `datasets` repeats its last sums.

Format 2: every entry holds the sums after it and the digest of the dataset's terms (see `running`).
Format 1 held neither; `upgrade` brings it here.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import postgresql

VERSION = 2
KIND = "whosin ledger"

metadata = MetaData()

_BYTEWISE = String(200).with_variant(postgresql.VARCHAR(200, collation="C"), "postgresql")
"""Sorted by bytes whatever the database's language, so that an index finds a beginning."""

about = Table(
    "whosin_ledger",
    metadata,
    Column("kind", String(32), primary_key=True),
    Column("version", Integer, nullable=False),
)

datasets = Table(
    "whosin_datasets",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("state", String(16), nullable=False),
    Column("relation", String(16), nullable=False),
    Column("alone", Integer, nullable=False),
    Column("epsilon", BigInteger, nullable=False),
    Column("rho", BigInteger, nullable=False),
    Column("delta", BigInteger, nullable=False),
    Column("spent_epsilon", BigInteger, nullable=False),
    Column("spent_rho", BigInteger, nullable=False),
    Column("spent_delta", BigInteger, nullable=False),
    Column("debits", Integer, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("head", String(64), nullable=False),
    Column("last", String(32), nullable=False),
    Column("plan", Text, nullable=False),
    Column("binding", Text),
)

entries = Table(
    "whosin_entries",
    metadata,
    Column("dataset", String(200), ForeignKey("whosin_datasets.name"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("request", _BYTEWISE),
    Column("body", Text, nullable=False),
    Column("head", String(64), nullable=False),
    # At most one debit and one answer for a request, whatever two processes do at once.
    UniqueConstraint("dataset", "request", "kind", name="whosin_once"),
)

answers = Table(
    "whosin_answers",
    metadata,
    Column("dataset", String(200), ForeignKey("whosin_datasets.name"), primary_key=True),
    Column("request", String(200), primary_key=True),
    Column("answer", Text, nullable=False),
)
