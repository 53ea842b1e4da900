"""Who may use a server: tokens, the sessions of browsers, and failed logins.

Contract: whether a token is needed is decided when the server starts, and can only become stricter:
a file of users that is emptied, deleted or damaged later lets nobody in. A browser holds the number
of a session, not the token; logging out, a new token and the removal of the user all end it.
Failed logins are counted by address and make unknown tokens from it wait; a token that has been
used before is not held up by others at its address. Everything kept here is bounded.
"""

from __future__ import annotations

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

from starlette.datastructures import Headers

from whosin.app.web.failures import Refused
from whosin.app.web.users import digest, read_users, user_of

COOKIE = "whosin-session"
FREE, LONGEST_WAIT, FORGET = 5, 300.0, 3600.0
"""Failed logins without a wait, the longest wait and how long failures count, in seconds."""
MOST_ADDRESSES, MOST_SESSIONS, MOST_OF_ONE, MOST_PROVEN = 10_000, 10_000, 20, 10_000
IDLE, LONGEST_SESSION = 12 * 3600.0, 7 * 86400.0
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
        token = _bearer(headers)
        if token is not None:
            return self._holder(known, token, address) if self.required else None
        number = _cookie(headers)
        return None if number is None else self._session(known, number)

    def login(self, token: str, address: str) -> tuple[str, str]:
        """Begin a session; its user and its number.

        Raises:
            Refused: nobody has this token.
        """
        known = read_users(self.users)
        user = self._holder(known, token, address)
        if user is None:
            raise Refused(401, "nobody has this token", "token")
        number, now = secrets.token_urlsafe(32), time.monotonic()
        with self._lock:
            own = [key for key, each in self._sessions.items() if each.user == user]
            for key in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
                del self._sessions[key]
            self._sessions[digest(number)] = Login(user, known[user], now, now)
            _bound(self._sessions, MOST_SESSIONS)
        return user, number

    def logout(self, headers: Headers) -> None:
        """End the session of a cookie, or all sessions that a token began."""
        token, number = _bearer(headers), _cookie(headers)
        with self._lock:
            if number is not None:
                self._sessions.pop(digest(number), None)
            if token is not None:
                kept = digest(token)
                for key in [key for key, each in self._sessions.items() if each.token == kept]:
                    del self._sessions[key]

    def _session(self, known: dict[str, str], number: str) -> str | None:
        now = time.monotonic()
        with self._lock:
            session = self._sessions.get(digest(number))
            if session is None:
                return None
            over = now - session.used > IDLE or now - session.began > LONGEST_SESSION
            if over or known.get(session.user) != session.token:
                del self._sessions[digest(number)]
                return None
            session.used = now
            return session.user

    def _holder(self, known: dict[str, str], token: str, address: str) -> str | None:
        """Whose token it is. Wrong tokens are counted, and after some of them new tokens have to
        wait."""
        kept, network, now = digest(token), _network(address), time.monotonic()
        with self._lock:
            count, last = self._failures.get(network, (0, -FORGET))
            count = count if now - last < FORGET else 0
            wait = last + min(LONGEST_WAIT, 2.0 ** (count - FREE)) - now if count >= FREE else 0.0
            if wait > 0 and kept not in self._proven:
                words = f"too many failed logins from this address; wait {wait:.0f} seconds"
                raise Refused(429, words)
            user = user_of(known, token)
            if user is not None:
                self._proven[kept] = None
                _bound(self._proven, MOST_PROVEN)
                return user
            self._failures.pop(network, None)
            self._failures[network] = (count + 1, now)
            _bound(self._failures, MOST_ADDRESSES)
        if count + 1 >= FREE:
            print(f"whosin: {count + 1} failed logins from {network}", file=sys.stderr)
        return None


def _bound(kept: OrderedDict[str, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


def _network(address: str) -> str:
    """An address, or the network of one that is one of 2^64 of the same machine."""
    try:
        result = ip_address(address)
    except ValueError:
        return address[:100]
    return str(ip_network((result, 64), False)) if isinstance(result, IPv6Address) else str(result)


def _bearer(headers: Headers) -> str | None:
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" and value.strip() else None


def _cookie(headers: Headers) -> str | None:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if cookie is None or not cookie.value else cookie.value
