"""A PostgreSQL server of the tests' own, one for each process of theirs: never as root, in a folder
of its own, gone at the end."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

PASSWORD = "only-for-tests"


def programs() -> Path | None:
    """Where initdb and pg_ctl are: on the path, or where Debian hides them."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return places[-1].parent if places else None


def missing() -> str | None:
    """Why a server cannot be started here, if so."""
    if programs() is None:
        return "PostgreSQL is not installed (on Debian: apt-get install postgresql)"
    if os.getuid() == 0 and _user() is None:
        return "PostgreSQL refuses root, and there is no other user to run it"
    return None


def require() -> None:
    """Skip without PostgreSQL, but never under CI."""
    reason = missing()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


@dataclass(frozen=True)
class Server:
    """A running server; `url` has its password."""

    folder: Path
    url: str

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as the server's user."""
        home = programs()
        assert home is not None
        user = _user() if os.getuid() == 0 else None
        options: dict[str, Any] = {}
        if user is not None:
            options = {"user": user, "group": _group(user), "extra_groups": []}
        command = [str(home / program), *arguments]
        options |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        subprocess.run(command, check=True, cwd=self.folder, timeout=900, **options)

    def start(self) -> None:
        """Start it, and wait until it answers; it listens on a socket in its folder only. What it
        writes survives its own crash, not the machine's."""
        options = ["listen_addresses=''", f"unix_socket_directories='{self.folder}'"]
        options += ["fsync=off", "full_page_writes=off", "shared_buffers=16MB"]
        words = " ".join(f"-c {option}" for option in options)
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", self._data, "-l", log, "-o", words, "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; immediate is a crash."""
        self.run("pg_ctl", "-D", self._data, "-m", mode, "-w", "stop")

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def clear(self) -> None:
        """Drop what tests have left; its database is empty then."""
        with psycopg.connect(self.url.replace("/postgres?", "/template1?"), autocommit=True) as own:
            databases = "SELECT datname FROM pg_database WHERE NOT datistemplate"
            for (name,) in own.execute(databases).fetchall():
                own.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))
            own.execute("CREATE DATABASE postgres")
            roles = "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' AND rolname <> 'whosin'"
            for (name,) in own.execute(roles).fetchall():
                own.execute(SQL("DROP ROLE {}").format(Identifier(name)))


@contextmanager
def server() -> Iterator[Server]:
    """The server of this process, with nothing in it; whoever stops it starts it again."""
    running = _started()
    running.clear()
    yield running


@cache
def _started() -> Server:
    folder = Path(tempfile.mkdtemp(prefix="whosin-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = Server(folder, f"postgresql://whosin:{PASSWORD}@/postgres?host={folder}")
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if os.getuid() == 0:
        user = _user()
        assert user is not None
        for path in (folder, secret):
            shutil.chown(path, user, _group(user))
    options = ("-U", "whosin", "-A", "scram-sha-256", "--pwfile", str(secret))
    made.run("initdb", "-D", made._data, *options, "-E", "UTF8", "--locale=C", "--no-sync")
    made.start()
    atexit.register(_stop, made, os.getpid())
    return made


def _stop(running: Server, owner: int) -> None:
    if os.getpid() == owner:  # and not a fork of it
        running.stop()


def _user() -> str | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


def _group(user: str) -> int:
    return pwd.getpwnam(user).pw_gid
