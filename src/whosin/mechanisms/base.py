"""What every mechanism can do: turn into a channel on a space of worlds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from whosin.errors import InvalidInput, invalid_value, shorten_value
from whosin.spaces import Records, Space, Subsets

if TYPE_CHECKING:
    from whosin.mechanisms.channel import Channel
    from whosin.mechanisms.count_table import CountTable


class Mechanism(ABC):
    """A random answer that depends on the world."""

    @abstractmethod
    def channel(self, space: Space | None = None) -> Channel:
        """Pr[output | world] on this space, or the densities at the points that decide (F10)."""

    def on_counts(self, people: int, margin: int = 0) -> CountTable | None:
        """Pr[output | how many of the people are in], where the mechanism sees nothing else and
        that is a table; None otherwise.

        Args:
            margin: how far beyond 0 … people noisy counts are told apart, at least.
        """
        return None


def read_channel(mechanism: object, space: Space | None = None) -> Channel:
    """The channel of what a user handed over."""
    if not isinstance(mechanism, Mechanism):
        raise invalid_value("mechanism", "a mechanism or a channel", repr(mechanism))
    return mechanism.channel(None if space is None else need_space(space, "it"))


def need_space(space: Space | None, mechanism: str) -> Space:
    """The space, or an error that says how to give one."""
    if space is None:
        hint = "call measure(mechanism, space)"
        raise InvalidInput(f"{mechanism} needs a space", field="space", hint=hint)
    if not isinstance(space, Subsets | Records):
        raise invalid_value("space", "Subsets(…) or Records(…)", shorten_value(space))
    return space
