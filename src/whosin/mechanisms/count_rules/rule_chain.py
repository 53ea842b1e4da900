"""One rule after another: first nothing below 8, then rounded to 5."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction

from whosin.exact import rational
from whosin.mechanisms.count_rules.rule import Rule
from whosin.mechanisms.count_table import Beyond, Spread


@dataclass(frozen=True)
class RuleChain(Rule):
    """Rules in turn, each on what the one before shows; what is suppressed stays so."""

    rules: tuple[Rule, ...]

    @property
    def reach(self) -> int:
        return sum(rule.reach for rule in self.rules)

    @property
    def keyed(self) -> bool:
        return any(rule.keyed for rule in self.rules)

    def spread(self, count: int) -> Spread:
        weights: dict[Hashable, Fraction] = {count: Fraction(1)}
        for rule in self.rules:
            after: dict[Hashable, Fraction] = {}
            for output, weight in weights.items():
                for name, p in rule.applied_to(output):
                    after[name] = after.get(name, Fraction(0)) + weight * rational(p)
            weights = after
        return list(weights.items())

    def beyond(self, output: Beyond) -> Hashable:
        last: Hashable = output
        for rule in self.rules:
            last = rule.beyond(last) if isinstance(last, Beyond) else last
        return last
