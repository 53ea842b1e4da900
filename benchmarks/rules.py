"""The rules that offices use: exact profiles on many people, and the search for a threshold."""

from __future__ import annotations

from collections.abc import Iterator

import whosin as wi
from measuring import Row, best_of


def rows() -> Iterator[Row]:
    family = wi.families.AtMostKnown(100, "0.05", "0.5")
    for rule in (wi.rules.Suppress(5), wi.rules.Round(5)):
        seconds = best_of(lambda: wi.rules.failure(rule, 10_000, family, "1.2"), repeats=1)  # noqa: B023
        name = f"failure probability of {rule!r}, 10,000 people, 100 known"
        yield Row(name, seconds, "seconds", seconds < 15)
    few = wi.families.AtMostKnown(20, "0.05", "0.5")
    target = wi.Posterior("0.6")
    for kind in ("suppress", "population"):
        seconds = best_of(lambda: wi.rules.plan(kind, target, few, "1e-6", 500), repeats=1)  # noqa: B023
        yield Row(f"plan --rule {kind}, 500 people, 20 known", seconds, "a minute", seconds < 60)
