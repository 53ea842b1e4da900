"""Who may use a server: tokens, users, sessions, failed logins; and its settings."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers

from whosin import documents
from whosin.app.web.bodies import RequestRefused
from whosin.errors import EmptyLedger, InvalidInput, StoreFailed, invalid_value
from whosin.ledger import BudgetState, Entry, Ledger
from whosin.ledger.encoding import MARK_DIGITS, mark_asker, read_name
from whosin.ledger.registration import RegisteredTable
from whosin.plain_files import check_plain, replace_file

# Users of a shared server: each has a token, and only a digest of it is kept. A token has 256
# random bits, so a plain SHA-256 cannot be searched; it is shown once. The file is readable by its
# owner only, and is replaced in one step.


LONGEST_NAME = 100


def add_user(path: Path, name: str, curator: bool = False) -> str:
    """Add a user, or give one a new token; return the token.

    Args:
        curator: whether they see everyone's requests, and open budgets and bring files where the
            server lets them.
    """
    name = read_name(name, "--add-user")  # as the ledger spells it: one name, one person
    if len(name) > LONGEST_NAME:
        raise invalid_value("--add-user", f"a name of at most {LONGEST_NAME} letters", repr(name))
    if not path.parent.is_dir():
        raise InvalidInput(
            f"there is no folder for {path.name}",
            field="--users",
            value=path.name,
            hint="make it first",
        )
    check_plain(path, "--users")
    known = read_users(path)
    token = secrets.token_urlsafe(32)
    known[name] = token_digest(token)
    curators = read_curators(path) - {name}
    _write_users(path, known, curators | {name} if curator else curators)
    return token


def remove_user(path: Path, name: str) -> None:
    """Take a user's token back; sessions that it began end with it."""
    known = read_users(path)
    name = name if name in known else read_name(name, "--remove-user")
    if name not in known:
        raise InvalidInput(
            f"{path.name} has no user {name[:LONGEST_NAME]!r}", field="--remove-user", value=name
        )
    del known[name]
    _write_users(path, known, read_curators(path))


def read_users(path: Path) -> dict[str, str]:
    """Names and digests; nobody if there is no file."""
    data = _read_users(path)
    try:
        return {str(name): str(digest) for name, digest in data["users"].items()}
    except (KeyError, AttributeError, TypeError):
        raise _refuse_damaged(path) from None


def read_curators(path: Path) -> set[str]:
    """The users who may decide; nobody if the file does not say."""
    data = _read_users(path)
    listed = data.get("curators", []) if isinstance(data, dict) else []
    return {str(name) for name in listed} if isinstance(listed, list) else set()


def _read_users(path: Path) -> Any:
    try:
        return documents.read_json(path, path.name)
    except FileNotFoundError:
        return {"users": {}}
    except InvalidInput:
        raise _refuse_damaged(path) from None


def _refuse_damaged(path: Path) -> StoreFailed:
    return StoreFailed(f"{path.name} is not a file of users")


def find_user(users: dict[str, str], token: str | None) -> str | None:
    """The user whose token this is; nobody for an unknown one."""
    if not token:
        return None
    own, result = token_digest(token), None
    for name, kept in users.items():
        if hmac.compare_digest(own, kept):
            result = name
    return result


def token_digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _write_users(path: Path, known: dict[str, str], curators: set[str]) -> None:
    data = {"users": known, "curators": sorted(curators & known.keys())}
    text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    replace_file(path, text, "--users")


# Who may use a server: tokens, the sessions of browsers, and failed logins. Whether a token is
# needed is decided when the server starts, and can only become stricter: a file of users that is
# emptied, deleted or damaged later lets nobody in. A browser holds the number of a session, not the
# token; logging out, a new token and the removal of the user all end it. Failed logins are counted
# by address and make unknown tokens from it wait; a token that has been used before is not held up
# by others at its address. Everything kept here is bounded.


COOKIE_NAME = "whosin-session"
FREE_FAILED_LOGINS, MAX_WAIT_SECONDS, FORGET_SECONDS = 5, 300.0, 3600.0
"""Failed logins without a wait, the longest wait and how long failures count, in seconds."""
MAX_ADDRESSES, MAX_SESSIONS, MAX_SESSIONS_PER_USER, MAX_PROVEN_TOKENS = 10_000, 10_000, 20, 10_000
MAX_IDLE_SECONDS, MAX_SESSION_SECONDS = 12 * 3600.0, 7 * 86400.0
"""How long a session lasts without a request, and at most."""


@dataclass
class Login:
    """A browser that has logged in."""

    user: str
    token: str
    began: float
    used: float


class Access:
    """The door of one server.

    Args:
        users: the file of users.
        required: whether a token is needed even if the file names nobody now.
    """

    def __init__(self, users: Path, required: bool = False) -> None:
        self.users = users
        self.required = required or bool(read_users(users))
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, Login] = OrderedDict()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._proven: OrderedDict[str, None] = OrderedDict()

    def user(self, headers: Headers, address: str) -> str | None:
        """The user in whose name a request comes.

        Raises:
            Refused: a token that nobody has, too often from this address.
            StoreFailed: the file of users cannot be read.
        """
        known = read_users(self.users)
        self.required = self.required or bool(known)
        token = _bearer_token(headers)
        if token is not None:
            return self._holder(known, token, address) if self.required else None
        number = _session_cookie(headers)
        return None if number is None else self._session(known, number)

    def login(self, token: str, address: str) -> tuple[str, str]:
        """Begin a session; its user and its number.

        Raises:
            Refused: nobody has this token.
        """
        known = read_users(self.users)
        user = self._holder(known, token, address)
        if user is None:
            raise RequestRefused(401, "nobody has this token", "token")
        number, now = secrets.token_urlsafe(32), time.monotonic()
        with self._lock:
            own = [key for key, each in self._sessions.items() if each.user == user]
            for key in own[: max(0, len(own) - MAX_SESSIONS_PER_USER + 1)]:
                del self._sessions[key]
            self._sessions[token_digest(number)] = Login(user, known[user], now, now)
            _bound_size(self._sessions, MAX_SESSIONS)
        return user, number

    def logout(self, headers: Headers) -> None:
        """End the session of a cookie, or all sessions that a token began."""
        token, number = _bearer_token(headers), _session_cookie(headers)
        with self._lock:
            if number is not None:
                self._sessions.pop(token_digest(number), None)
            if token is not None:
                kept = token_digest(token)
                for key in [key for key, each in self._sessions.items() if each.token == kept]:
                    del self._sessions[key]

    def _session(self, known: dict[str, str], number: str) -> str | None:
        now = time.monotonic()
        with self._lock:
            session = self._sessions.get(token_digest(number))
            if session is None:
                return None
            over = (
                now - session.used > MAX_IDLE_SECONDS or now - session.began > MAX_SESSION_SECONDS
            )
            if over or known.get(session.user) != session.token:
                del self._sessions[token_digest(number)]
                return None
            session.used = now
            return session.user

    def _holder(self, known: dict[str, str], token: str, address: str) -> str | None:
        """Whose token it is. Wrong tokens are counted, and after some of them new tokens have to
        wait."""
        kept, network, now = token_digest(token), _address_network(address), time.monotonic()
        with self._lock:
            count, last = self._failures.get(network, (0, -FORGET_SECONDS))
            count = count if now - last < FORGET_SECONDS else 0
            wait = (
                last + min(MAX_WAIT_SECONDS, 2.0 ** (count - FREE_FAILED_LOGINS)) - now
                if count >= FREE_FAILED_LOGINS
                else 0.0
            )
            if wait > 0 and kept not in self._proven:
                words = f"too many failed logins from this address; wait {wait:.0f} seconds"
                raise RequestRefused(429, words)
            user = find_user(known, token)
            if user is not None:
                self._proven[kept] = None
                _bound_size(self._proven, MAX_PROVEN_TOKENS)
                return user
            self._failures.pop(network, None)
            self._failures[network] = (count + 1, now)
            _bound_size(self._failures, MAX_ADDRESSES)
        if count + 1 >= FREE_FAILED_LOGINS:
            print(f"whosin: {count + 1} failed logins from {network}", file=sys.stderr)
        return None


def _bound_size(kept: OrderedDict[str, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def _address_network(address: str) -> str:
    """An address, or the network of one that is one of 2^64 of the same machine."""
    try:
        result = ip_address(address)
    except ValueError:
        return address[:100]
    return str(ip_network((result, 64), False)) if isinstance(result, IPv6Address) else str(result)


def _bearer_token(headers: Headers) -> str | None:
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" and value.strip() else None


def _session_cookie(headers: Headers) -> str | None:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE_NAME)
    except CookieError:
        return None
    return None if cookie is None or not cookie.value else cookie.value


BYTES_PER_MEGABYTE = 1 << 20
LARGEST_BODY = 2 * BYTES_PER_MEGABYTE
"""Bytes of a JSON request, at most."""


@dataclass(frozen=True)
class Settings:
    """One served folder.

    Attributes:
        folder: the only place from which tables are read and to which uploads go.
        ledger: a file, or a database URL.
        users: the file with the hashed tokens; if it names anyone, everyone needs a token.
        names: host names, besides loopback and plain addresses, under which the page is reached.
        login: whether a token is needed even if the file names nobody; once it does, one is.
        register: whether curators may bring files and open budgets for datasets that the ledger
            does not know; otherwise both are done beforehand, on the command.
        largest_upload: in bytes.
        scan_seconds: how long a release may take.
        scan_memory: how many bytes it may hold; the engine spills beyond half of it.
        log: whether each request to a route has a line of JSON on standard error.
    """

    folder: Path
    ledger: str
    users: Path
    names: tuple[str, ...] = ()
    login: bool = False
    register: bool = True
    largest_upload: int = 64 * BYTES_PER_MEGABYTE
    scan_seconds: float = 600.0
    scan_memory: int = 4096 * BYTES_PER_MEGABYTE
    log: bool = False


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# Who asks, and what they may see and decide. Where nobody needs a token, whoever is there is the
# curator. On a server with users, those whom the file of users names as curators decide (open
# budgets, bring files, amend) and see all requests. Anyone else asks what a curator has registered,
# and sees and continues their own requests only: those of others look as if there were none.


DIGEST_NAME_PATTERN = re.compile(rf"[0-9a-f]{{{MARK_DIGITS}}}")


@dataclass(frozen=True)
class Visitor:
    """Whoever makes a request; a task in another process is told.

    Attributes:
        name: the user; None where nobody needs a token.
    """

    name: str | None = None
    curator: bool = True

    def require_curator(self, may: str, field: str | None = None, hint: str = "") -> None:
        """Refuse what only a curator may do."""
        if not self.curator:
            raise RequestRefused(403, f"only a curator {may}", field, hint)

    def require_look(self) -> None:
        """Refuse to look at the rows."""
        self.require_curator("may look at the rows", hint="ask yours to run whosin inspect")

    def ledger(self, settings: Settings, *, create: bool = True) -> Ledger:
        """The server's ledger in this name; it answers a user's own requests only."""
        return Ledger(settings.ledger, who=self.name, create=create, own=not self.curator)

    def request(self, given: str) -> str:
        """A request id as the ledger keeps it. A user's are that user's own: the same id of two
        users is two requests, and nobody learns which ids others have used."""
        own = f"-{self.mark}" if self.mark else ""
        return given if given.endswith(own) else given + own

    @property
    def mark(self) -> str:
        """What tells a user who is no curator from others, in ids and folders; else nothing."""
        if self.curator or self.name is None:
            return ""
        return mark_asker(self.name)

    def tables(self, settings: Settings) -> dict[str, RegisteredTable] | None:
        """The datasets whose tables may be seen, and what they are bound to: all for a curator,
        else those with a budget for a table."""
        if self.curator:
            return None
        if not has_ledger(settings):
            return {}
        with self.ledger(settings, create=False) as ledger:
            result = {name: ledger.budget_state(name).registered for name in ledger.datasets()}
        return {name: table for name, table in result.items() if table is not None}

    def view(self, budget_state: BudgetState) -> BudgetState:
        """A budget state as it may be shown: to a user without what is kept for whom."""
        return budget_state if self.curator else budget_state.seen_by(self.name)

    def sees(self, entry: Entry) -> bool:
        """Whether an entry may be shown: what is about nobody's request, or about one's own."""
        public = entry.request is None and entry.kind != "suspended"
        return self.curator or public or entry.body.get("who") == self.name


def require_dataset(settings: Settings, dataset: str) -> None:
    """Refuse to name a dataset where there is no ledger yet."""
    if not has_ledger(settings):
        raise InvalidInput("the ledger has no datasets yet", field="dataset", value=dataset)


def has_ledger(settings: Settings) -> bool:
    """Whether the server's ledger is there. It is made with the first release, in a file or in a
    database, which is empty until then."""
    if "://" not in settings.ledger and not Path(settings.ledger).exists():
        return False
    try:
        with Ledger(settings.ledger, create=False):
            return True
    except EmptyLedger:
        return False


def server_settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def request_visitor(request: Request) -> Visitor:
    """The visitor who makes a request, by the user that the guard found."""
    name = getattr(request.state, "user", None)
    if not getattr(request.state, "login", False):
        return Visitor(name)
    return Visitor(name, name is not None and name in read_curators(server_settings(request).users))
