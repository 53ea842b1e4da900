"""Differential privacy between neighbouring worlds (Li13 Definitions 4.1, 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from whosin.errors import InvalidInput, UnknownName, Unsupported
from whosin.exact import log_up, round_up
from whosin.families.fixed_size import worst_swap
from whosin.families.independent import largest_addition
from whosin.mechanisms import Channel, as_channel
from whosin.notions.base import Notion, certify, on_subsets, witness
from whosin.notions.certain import value_witness
from whosin.notions.groups import group_case
from whosin.notions.level import Level
from whosin.spaces import Records, Space
from whosin.spaces.search import exceeds, first_at_least, largest_ratio
from whosin.validation import whole

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class DifferentialPrivacy(Notion):
    """ln Pr[o|T]/Pr[o|T'] ≤ ε between neighbours T, T', in nats.

    Args:
        relation: "add-remove" (unbounded DP: one entity more or less) or "replace" (bounded DP:
            one entity for another; on records, one row's value for another).
        direction: "both", "positive" (the larger world on top) or "negative"; replacing is
            symmetric, so there it makes no difference.
        group: on records, how many rows may differ at once: the level of a group of k people, which
            is at most k times the level of one, and often less.
    """

    relation: str = "add-remove"
    direction: str = "both"
    group: int = 1
    unit: ClassVar[str] = "ε"
    short_names: ClassVar[tuple[str, ...]] = ("dp",)

    @property
    def title(self) -> str:
        sides = "" if self.direction == "both" else f", {self.direction}"
        people = "" if self.group == 1 else f", groups of {self.group}"
        return f"{super().title} ({self.relation}{sides}{people})"

    def __post_init__(self) -> None:
        if self.relation not in ("add-remove", "replace"):
            raise UnknownName("relation", str(self.relation), ("add-remove", "replace"))
        if self.direction not in ("both", "positive", "negative"):
            raise UnknownName("direction", str(self.direction), ("both", "positive", "negative"))
        object.__setattr__(self, "group", whole(self.group, "group", 1))
        if self.group > 1 and self.relation != "replace":
            raise InvalidInput("group", "1 unless relation is 'replace', on records", self.group)

    @property
    def about_records(self) -> bool | None:  # type: ignore[override]
        return None if self.relation == "replace" else False

    def canonical(self) -> Notion:
        return replace(self, direction="both") if self.relation == "replace" else self

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = as_channel(mechanism, space)
        if isinstance(channel.space, Records):
            return self._on_records(channel) if self.group == 1 else self._of_groups(channel)
        if self.group > 1:
            raise Unsupported("groups are rows of records: they need Records")
        lattice = on_subsets(channel, "differential privacy")
        positive = True
        if self.relation == "replace":
            worst = next(worst_swap(channel.searchable, lattice), None)
            if worst is None:  # one entity only: nobody to replace it with
                return Level(0.0, None, True, (), notion=self)
        else:
            sides = {"both": (True, False), "positive": (True,), "negative": (False,)}
            worst, positive = largest_addition(channel.searchable, lattice, sides[self.direction])
        certificate = certify(channel, worst, positive)
        log = certificate.log
        value = round_up(log) if log is not None else log_up(certificate.ratio)
        value = max(value, 0.0)  # rows of floats that sum to 1 only nearly can give a ratio below 1
        case = witness(channel, worst, certificate, HALF, positive=positive)
        return Level(value, case, True, (), notion=self)

    def _on_records(self, channel: Channel) -> Level:
        if self.relation != "replace":
            raise Unsupported("records are always there: use relation='replace'")
        space, array = channel.space, channel.searchable
        assert isinstance(space, Records)
        best, chosen = None, 0
        for row in range(space.rows):
            view = space.axis(array, row)
            value = largest_ratio(view.max(axis=1), view.min(axis=1))
            if exceeds(value, best):
                best, chosen = value, row
        view = space.axis(array, chosen)
        before, rest = first_at_least(view.max(axis=1), view.min(axis=1), best)
        after, output = divmod(rest, array.shape[1])
        column = view[before, :, rest]
        high = max(range(space.values), key=lambda value: column[value])
        low = min(range(space.values), key=lambda value: column[value])
        stride = space.stride(chosen)
        worlds = [(before * space.values + value) * stride + after for value in (high, low)]
        one = Fraction(1)
        ratio = channel.ratio([(worlds[0], one)], [(worlds[1], one)], output)
        exact = channel.exact is not None
        others = dict(enumerate(space.world(worlds[0])))
        del others[chosen]
        case = value_witness(channel.outputs[output], ratio, chosen, (high, low), others, exact)
        return Level(max(log_up(ratio), 0.0), case, True, (), notion=self)

    def _of_groups(self, channel: Channel) -> Level:
        worlds, output = group_case(channel, self.group)
        one = Fraction(1)
        ratio = channel.ratio([(worlds[0], one)], [(worlds[1], one)], output)
        exact = channel.exact is not None
        assert isinstance(channel.space, Records)
        pairs = dict(enumerate(zip(*map(channel.space.world, worlds), strict=True)))
        known = {row: pair[0] for row, pair in pairs.items() if pair[0] == pair[1]}
        group = {row: pair for row, pair in pairs.items() if pair[0] != pair[1]}
        row = min(group, default=0)
        case = value_witness(channel.outputs[output], ratio, row, pairs[row], known, exact)
        return Level(max(log_up(ratio), 0.0), replace(case, group=group), True, (), notion=self)
