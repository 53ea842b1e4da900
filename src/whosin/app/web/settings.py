"""What a server serves, to whom, and how much it takes."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

MEGABYTE = 1 << 20
LARGEST_BODY = 2 * MEGABYTE
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
    """

    folder: Path
    ledger: str
    users: Path
    names: tuple[str, ...] = ()
    login: bool = False
    register: bool = True
    largest_upload: int = 64 * MEGABYTE
    scan_seconds: float = 600.0
    scan_memory: int = 4096 * MEGABYTE


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
