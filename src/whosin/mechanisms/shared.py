"""Bringing several channels to one lattice of worlds."""

from __future__ import annotations

from collections.abc import Sequence

from whosin.errors import InvalidInput
from whosin.mechanisms.channel import Channel


def same_lattice(channels: Sequence[Channel]) -> list[Channel]:
    """The channels as they are when their worlds agree, otherwise spread over all worlds.

    Raises:
        InvalidInput: they are on different spaces.
    """
    first = channels[0]
    for channel in channels[1:]:
        if channel.space != first.space:
            raise InvalidInput("parts", f"all on {first.space!r}", f"one on {channel.space!r}")
    if all(channel.lattice == first.lattice for channel in channels):
        return list(channels)
    return [channel.on_worlds() for channel in channels]
