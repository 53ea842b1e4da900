"""Code of other people's, run inside the command.

Contract: whatever it prints, by Python or below it, goes to standard error, so that standard output
holds the command's own result and nothing else; and `sys.exit` in it is a failing environment,
never the command's own exit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def user_code() -> Iterator[None]:
    """Send standard output to standard error for as long as the code runs."""
    with redirect_stdout(sys.stderr):
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
