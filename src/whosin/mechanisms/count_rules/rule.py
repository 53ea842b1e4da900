"""What the rules have in common: they turn a count into what is shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable

from whosin.errors import InvalidInput
from whosin.mechanisms.base import Mechanism, need_space
from whosin.mechanisms.channel import Channel
from whosin.mechanisms.count_table import Beyond, CountTable, Spread
from whosin.spaces import Space, Subsets

FAR = 1 << 40
"""More than any count: nothing is known of how far a rule reaches."""


class Rule(Mechanism):
    """A rule about how a count is shown: of everyone who is in, or of noisy counts where it
    post-processes another mechanism."""

    @property
    def reach(self) -> int:
        """Counts that are further apart than this share no output, except for those below 0; a
        number that is shown is no further from its count; and no count above it is suppressed."""
        return FAR

    @property
    def keyed(self) -> bool:
        """Whether the people of a cell decide about what is shown, so that sums of cells, and the
        same people in another table, are no new draws."""
        return False

    @abstractmethod
    def spread(self, count: int) -> Spread:
        """What is shown for a count, with probabilities."""

    def beyond(self, output: Beyond) -> Hashable:
        """What is shown for all counts beyond some number."""
        return output

    def applied_to(self, output: Hashable) -> Spread:
        """What is shown for the output of another mechanism: what is no count stays as it is."""
        if isinstance(output, Beyond):
            return [(self.beyond(output), 1)]
        if isinstance(output, int) and not isinstance(output, bool):
            return self.spread(output)
        return [(output, 1)]

    def on_counts(self, people: int, margin: int = 0) -> CountTable:
        return CountTable.from_rows(self.spread(count) for count in range(people + 1))

    def channel(self, space: Space | None = None) -> Channel:
        subsets = need_space(space, type(self).__name__)
        if not isinstance(subsets, Subsets):
            raise InvalidInput("space", "Subsets(…) for a rule about counts", repr(space))
        return self.on_counts(subsets.size).channel(subsets)
