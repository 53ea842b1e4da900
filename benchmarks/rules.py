"""The rules that offices use: exact profiles on many people, and the search for a threshold."""

from __future__ import annotations

import random
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
        seconds = best_of(lambda: wi.rules.plan_rule(kind, target, few, "1e-6", 500), repeats=1)  # noqa: B023
        yield Row(f"rules plan, {kind}, 500 people, 20 known", seconds, "a minute", seconds < 60)
    close = wi.Posterior("0.52")
    seconds = best_of(
        lambda: wi.rules.plan_rule("suppress", close, family, "1e-4", 10_000), repeats=1
    )
    yield Row("rules plan, suppress, 10,000 people, 100 known", seconds, "a minute", seconds < 60)
    table = _table(random.Random(6), 20, 40)
    seconds = best_of(lambda: wi.rules.check_published(table, "0.1"), repeats=1)
    yield Row("rules check, 20 × 20 with totals, 40 suppressed", seconds, "10 s", seconds < 10)


def _table(rng: random.Random, size: int, hidden: int) -> wi.rules.Publication:
    """A table with both margins, and this many cells below 5."""
    table = [[rng.randrange(5, 300) for _ in range(size)] for _ in range(size)]
    for cell in rng.sample(range(size * size), hidden):
        table[cell // size][cell % size] = rng.randrange(1, 5)
    people = [[10 * count for count in row] for row in table]
    shown = [[None if n < 5 else n for n in row] + [sum(row)] for row in table]
    shown.append([sum(each) for each in zip(*table, strict=True)] + [sum(map(sum, table))])
    return wi.rules.Publication(shown, people, wi.rules.Suppress(5))
