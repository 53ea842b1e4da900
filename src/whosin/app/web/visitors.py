"""Who asks, and what they may see and decide.

Contract: where nobody needs a token, whoever is there is the curator. On a server with users, those
whom the file of users names as curators decide (open budgets, bring files, amend) and see all
requests. Anyone else asks what a curator has registered, and sees and continues their own requests
only: those of others look as if there were none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request

from whosin.app.web.settings import Settings
from whosin.app.web.users import read_curators
from whosin.errors import InvalidInput
from whosin.ledger import Entry, Ledger
from whosin.ledger.binding import Bound

NAME_DIGITS = 12
"""Digits of the digest of a user's name, in that user's request ids."""


@dataclass(frozen=True)
class Visitor:
    """Whoever makes a request; a task in another process is told.

    Attributes:
        name: the user; None where nobody needs a token.
    """

    name: str | None = None
    curator: bool = True

    def ledger(self, settings: Settings, *, create: bool = True) -> Ledger:
        """The server's ledger in this name; it answers a user's own requests only."""
        return Ledger(settings.ledger, who=self.name, create=create, own=not self.curator)

    def request(self, given: str) -> str:
        """A request id as the ledger keeps it. A user's are that user's own: the same id of two
        users is two requests, and nobody learns which ids others have used."""
        if self.curator or self.name is None:
            return given
        own = "-" + hashlib.sha256(self.name.encode()).hexdigest()[:NAME_DIGITS]
        return given if given.endswith(own) else given + own

    def tables(self, settings: Settings) -> dict[str, Bound] | None:
        """The datasets whose tables may be seen, and what they are bound to: all for a curator,
        else those with a budget for a table."""
        if self.curator:
            return None
        if not has_ledger(settings):
            return {}
        with self.ledger(settings, create=False) as ledger:
            result = {name: ledger.standing(name).bound for name in ledger.datasets()}
        return {name: bound for name, bound in result.items() if bound is not None}

    def sees(self, entry: Entry) -> bool:
        """Whether an entry may be shown: what is about nobody's request, or about one's own."""
        public = entry.request is None and entry.kind != "halted"
        return self.curator or public or entry.body.get("who") == self.name


def has_ledger(settings: Settings) -> bool:
    """Whether the server's ledger is there. A file is made with the first release, and is empty for
    as long as another process is making it."""
    if "://" in settings.ledger:
        return True
    if not Path(settings.ledger).exists():
        return False
    try:
        with Ledger(settings.ledger, create=False):
            return True
    except InvalidInput as error:
        if error.got == "an empty database":
            return False
        raise


def settings_of(request: Request) -> Settings:
    """What this server serves."""
    settings: Settings = request.app.state.settings
    return settings


def visitor_of(request: Request) -> Visitor:
    """Who makes a request."""
    name = getattr(request.state, "user", None)
    if not getattr(request.state, "login", False):
        return Visitor(name)
    return Visitor(name, name is not None and name in read_curators(settings_of(request).users))
