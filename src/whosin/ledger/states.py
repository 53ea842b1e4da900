"""What state a dataset is in: what may still be asked of it.

Contract: a dataset is open, complete (it had a release that allows no other) or closed, and on top
of that it may be halted: an engine failed after a debit, and nothing is drawn until the curator has
looked. Halting and resuming never change the state underneath.
"""

from __future__ import annotations

HALTED = "halted"
BASIC = ("open", "complete", "closed")


def halted(state: str) -> str:
    """The state after a halt."""
    if is_halted(state):
        return state
    return HALTED if state == "open" else f"{HALTED} {state}"


def without_halt(state: str) -> str:
    """The state after the curator has looked."""
    return state.removeprefix(HALTED).strip() or "open"


def closed(state: str) -> str:
    """The state after closing; a halt stays."""
    return halted("closed") if is_halted(state) else "closed"


def is_halted(state: str) -> bool:
    """Whether nothing is drawn."""
    return state.startswith(HALTED)


KNOWN = (*BASIC, *map(halted, BASIC))
