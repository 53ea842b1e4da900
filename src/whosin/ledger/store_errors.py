"""What went wrong with a store, in one line for people: no statement, no values, no password."""

from __future__ import annotations

import errno

LOCKED = "it is locked by another program"
NO_LOCKS = "its file system offers no locks; keep it on a local disk, or use PostgreSQL"

SQLITE = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_PROTOCOL": LOCKED,
    "SQLITE_READONLY": "the file or its folder cannot be written",
    "SQLITE_CANTOPEN": "the file or its folder cannot be opened",
    "SQLITE_PERM": "permission denied",
    "SQLITE_NOTADB": "the file is damaged, or not a ledger",
    "SQLITE_CORRUPT": "the file is damaged",
    "SQLITE_IOERR_LOCK": NO_LOCKS,
    "SQLITE_IOERR_RDLOCK": NO_LOCKS,
    "SQLITE_IOERR_SHMLOCK": NO_LOCKS,
    "SQLITE_IOERR": "the disk failed, or is full",
    "SQLITE_CONSTRAINT": "its tables contradict each other; see `whosin ledger verify`",
    "SQLITE_ERROR": "its tables are not those of a ledger",
}
"""Messages by the name of SQLite's error, or the longest beginning of it."""

POSTGRES = {
    "08": "the connection was lost",
    "23": "its tables contradict each other; see `whosin ledger verify`",
    "25006": "the database cannot be written",
    "28": "the server refused the user or password",
    "40": "another session was in the way; try again",
    "3D000": "the server has no such database",
    "42501": "permission denied",
    "42P01": "its tables are not those of a ledger",
    "53100": "the server's disk is full",
    "53300": "the server has no connection left",
    "55P03": "it is locked by another session",
    "42": "its tables or functions are not those of a ledger",
    "WH": "its rules refuse this entry; see `whosin ledger verify`",
    "57014": "the server stopped the statement",
    "57P": "the server shut the connection down",
}
"""Messages by SQLSTATE, or the beginning of one; see the PostgreSQL manual, appendix A."""

CONNECTING = {
    "password authentication failed": "the server refused the user or password",
    "no password supplied": "the server wants a password",
    "does not exist": "the server has no such database or user",
    "connection refused": "the server cannot be reached",
    "no such file or directory": "the server cannot be reached",
    "could not translate host name": "the server's name is not known",
    "failed to resolve host": "the server's name is not known",
    "timeout": "the server does not answer",
    "the database system is": "the server is starting or stopping",
    "closed the connection": "the connection was lost",
    "the connection is closed": "the connection was lost",
    "the connection is lost": "the connection was lost",
}
"""Messages by PostgreSQL's own words, since a failed connection has no SQLSTATE."""

SYSTEM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk is full",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOLCK: NO_LOCKS,
    errno.EROFS: "the file or its folder cannot be written",
}


def words(error: BaseException) -> str:
    """The reason of a failure of SQLAlchemy, a driver or the system."""
    cause = getattr(error, "orig", None) or error
    name = getattr(cause, "sqlite_errorname", None)
    state = getattr(cause, "sqlstate", None)
    for known, code in ((SQLITE, name), (POSTGRES, state)):
        for sign, reason in known.items():
            if code and code.startswith(sign):
                return reason
    if isinstance(cause, UnicodeError):
        return "the file is damaged"
    if isinstance(cause, OSError) and cause.errno in SYSTEM:
        return SYSTEM[cause.errno]
    if type(error).__name__ == "TimeoutError":
        return "too many threads are using it"
    low = str(cause).lower()
    for sign, reason in CONNECTING.items():
        if state is None and name is None and sign in low:
            return reason
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return "".join(letter if letter.isprintable() else " " for letter in lines[0])[:200]
