"""Code of other people's, run inside the command.

Contract: whatever it prints, by Python or below it, goes to standard error, so that standard output
holds the command's own result and nothing else; and `sys.exit` or `os._exit` in it is a failing
environment, never the command's own exit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import NoReturn


@contextmanager
def user_code() -> Iterator[None]:
    """Send standard output to standard error for as long as the code runs."""
    with redirect_stdout(sys.stderr), _no_sudden_end():
        kept = _redirect()
        try:
            yield
        except SystemExit as error:
            from whosin.errors import MechanismFailed

            words = f"the code under audit ended the program (sys.exit({error.code!r}))"
            raise MechanismFailed(words) from error
        finally:
            sys.stderr.flush()
            if kept is not None:
                os.dup2(kept, 1)
                os.close(kept)


@contextmanager
def _no_sudden_end() -> Iterator[None]:
    """Let `os._exit` of this process, whatever its code, be a failing environment; children that
    the code forks end as they like."""
    leave, process = os._exit, os.getpid()

    def end(status: int) -> NoReturn:
        if os.getpid() == process:
            words = f"whosin: the code under audit ended the program (os._exit({status!r}))\n"
            os.write(2, words.encode())
            leave(3)
        leave(status)

    os._exit = end
    try:
        yield
    finally:
        os._exit = leave


def _redirect() -> int | None:
    """Point the process's standard output to its standard error; what it was, if that is known."""
    try:
        kept = os.dup(1)
    except OSError:  # closed, or none
        return None
    try:
        os.dup2(2, 1)
    except OSError:
        os.close(kept)
        return None
    return kept
