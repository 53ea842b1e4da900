"""Users of a shared server: each has a token, and only a digest of it is kept.

Contract: a token has 256 random bits, so a plain SHA-256 cannot be searched; it is shown once. The
file is readable by its owner only, and is replaced in one step.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path
from typing import Any

from whosin import documents
from whosin.errors import InvalidInput, StoreFailed
from whosin.ledger.names import read_name

LONGEST_NAME = 100


def add_user(path: Path, name: str, curator: bool = False) -> str:
    """Add a user, or give one a new token; return the token.

    Args:
        curator: whether they see everyone's requests, and open budgets and bring files where the
            server lets them.
    """
    name = read_name(name, "--add-user")  # as the ledger spells it: one name, one person
    if len(name) > LONGEST_NAME:
        raise InvalidInput("--add-user", f"a name of at most {LONGEST_NAME} letters", repr(name))
    if not path.resolve().parent.is_dir():
        raise InvalidInput("--users", "a file in an existing folder", path.name)
    known = read_users(path)
    token = secrets.token_urlsafe(32)
    known[name] = digest(token)
    curators = read_curators(path) - {name}
    _write(path, known, curators | {name} if curator else curators)
    return token


def remove_user(path: Path, name: str) -> None:
    """Take a user's token back; sessions that it began end with it."""
    known = read_users(path)
    name = name if name in known else read_name(name, "--remove-user")
    if name not in known:
        raise InvalidInput("--remove-user", "a user of this server", repr(name[:LONGEST_NAME]))
    del known[name]
    _write(path, known, read_curators(path))


def read_users(path: Path) -> dict[str, str]:
    """Names and digests; nobody if there is no file."""
    data = _read(path)
    try:
        return {str(name): str(digest) for name, digest in data["users"].items()}
    except (KeyError, AttributeError, TypeError):
        raise _damaged(path) from None


def read_curators(path: Path) -> set[str]:
    """The users who may decide; nobody if the file does not say."""
    data = _read(path)
    listed = data.get("curators", []) if isinstance(data, dict) else []
    return {str(name) for name in listed} if isinstance(listed, list) else set()


def _read(path: Path) -> Any:
    try:
        return documents.read_json(path, path.name)
    except FileNotFoundError:
        return {"users": {}}
    except InvalidInput:
        raise _damaged(path) from None


def _damaged(path: Path) -> StoreFailed:
    return StoreFailed(f"{path.name} is not a file of users")


def user_of(users: dict[str, str], token: str | None) -> str | None:
    """Whose token it is."""
    if not token:
        return None
    own, result = digest(token), None
    for name, kept in users.items():
        if hmac.compare_digest(own, kept):
            result = name
    return result


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _write(path: Path, known: dict[str, str], curators: set[str]) -> None:
    data = {"users": known, "curators": sorted(curators & known.keys())}
    text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    beside = path.with_name(path.name + ".new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    beside.replace(path)
