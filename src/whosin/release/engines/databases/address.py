"""Where a table of a database is, as a source says it.

Contract: three forms, `postgresql://host/database::schema.table`, `file.sqlite::table` and
`adbc:driver:uri::table`. Who asks is known from the environment or the client's own files: a source
with a password in it is refused, and the refusal repeats nothing of it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from whosin.errors import InvalidInput

POSTGRESQL, SQLITE = "postgresql", "sqlite"
SCHEMES = ("postgresql", "postgres")
ANY = "adbc:"
START = b"SQLite format 3\0"
FORMS = "postgresql://host/database::schema.table, file::table or adbc:driver:uri::table"
PARAMETERS = frozenset(
    {
        *("host", "hostaddr", "port", "dbname", "user", "service", "passfile", "require_auth"),
        *("connect_timeout", "application_name", "target_session_attrs", "load_balance_hosts"),
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslnegotiation"),
        *("channel_binding", "gssencmode", "krbsrvname", "tcp_user_timeout"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    }
)
"""What a PostgreSQL URL may say. A password, and settings that change what a query means, are not
among it."""
SECRET = re.compile(r"pass|pwd|secret|token|credential|apikey|api_key|private_key", re.I)
OPEN_WORDS = frozenset({"passfile"})


@dataclass(frozen=True)
class Address:
    """A table of a database.

    Attributes:
        system: "postgresql", "sqlite", or the name of an ADBC driver.
        uri: what the driver is given, without a password.
        table: its name there, with its schema where that is not the usual one.
        known: whether `system` is a database that we know, and not just a driver.
    """

    system: str
    uri: str
    table: str
    known: bool = True

    @property
    def remote(self) -> bool:
        """Whether it may be on another machine, so that no file of ours is it."""
        return self.system != SQLITE or not self.known


def read_address(source: object) -> Address | None:
    """The address of a table in a database; None for other sources, DuckDB's own among them.

    Raises:
        InvalidInput: a source like one, which is none.
    """
    if not isinstance(source, str) or not is_database(source):
        return None
    database, mark, table = source.rpartition("::")
    if not mark or not table or table.startswith("1]"):  # an IPv6 address, and no table
        raise InvalidInput("source", f"given with its table: {FORMS}", "none")
    if source.startswith(ANY):
        name, colon, uri = database.removeprefix(ANY).partition(":")
        if not colon or not re.fullmatch(r"[a-z][a-z0-9_]{0,60}", name):
            raise InvalidInput("source", "adbc:driver:uri::table", "another form")
        _refuse_secrets(uri)
        return Address(name, uri, table, known=False)
    if "://" in database:
        _check_url(database)
        return Address(POSTGRESQL, database, table)
    return Address(SQLITE, str(Path(database).resolve()), table)


def is_database(source: str) -> bool:
    """Whether a source names a database that is read through a driver."""
    if source.startswith(ANY) or source.partition("://")[0].lower() in SCHEMES:
        return True
    path, mark, _ = source.partition("::")
    return bool(mark) and is_sqlite(path)


def is_sqlite(path: str | Path) -> bool:
    """Whether a file is an SQLite database, by how it begins."""
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return file.read(len(START)) == START
    except OSError:
        return False


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        secret = parts.password is not None
        asked = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        raise InvalidInput("source", FORMS, "a URL that cannot be read") from None
    _refuse_secrets(url, secret)
    for name, _ in asked:
        if name not in PARAMETERS:
            accepted = "a URL with parameters of a connection, such as sslmode"
            raise InvalidInput("source", accepted, repr(name[:40]))


def _refuse_secrets(uri: str, secret: bool = False) -> None:
    """Secrets are given to the driver by other ways, so that no scenario has to be kept secret."""
    rest = uri.partition("://")[2]
    user = rest.partition("@")[0].partition("/")[0] if "@" in rest else ""
    words = re.findall(r"([A-Za-z_]+)\s*=", uri)
    named = any(SECRET.search(word) and word.lower() not in OPEN_WORDS for word in words)
    if secret or ":" in user or named:
        accepted = (
            "given without a password: it comes from PGPASSWORD, ~/.pgpass or a service file for "
            "PostgreSQL, and from WHOSIN_SOURCE_PASSWORD for other drivers"
        )
        raise InvalidInput("source", accepted, "one with a password")
