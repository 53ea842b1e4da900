"""Small counts are not shown."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from whosin.errors import InvalidInput
from whosin.mechanisms.count_rules.rule import Rule
from whosin.mechanisms.count_table import Beyond, Spread
from whosin.validation import MOST_PEOPLE, whole

SUPPRESSED = "suppressed"
ZEROS = ("shown", "hidden")


@dataclass(frozen=True)
class Suppress(Rule):
    """Counts below a threshold are shown as "suppressed", all others as they are.

    Args:
        below: the least count that is shown.
        zeros: "shown" where a count of 0 is shown as 0, as most offices do, or "hidden".
    """

    below: int
    zeros: str = "shown"

    def __post_init__(self) -> None:
        whole(self.below, "below", 1, MOST_PEOPLE)
        if self.zeros not in ZEROS:
            raise InvalidInput("zeros", "shown or hidden", repr(self.zeros))

    @property
    def reach(self) -> int:
        return int(self.below)

    def spread(self, count: int) -> Spread:
        published = count >= self.below or (count == 0 and self.zeros == "shown")
        return [(count if published else SUPPRESSED, 1)]

    def beyond(self, output: Beyond) -> Hashable:
        return SUPPRESSED if output.below else output
