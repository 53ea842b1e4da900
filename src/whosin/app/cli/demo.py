"""`whosin demo`: the main job, on data made up on the spot."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Plan a noisy count, measure it against many adversaries, and refute a published claim."""
    from fractions import Fraction

    from whosin import families, mechanisms
    from whosin.app.cli.output import print_json
    from whosin.calibration import Posterior, Query, calibrate
    from whosin.notions import PositiveMembership
    from whosin.report import text
    from whosin.report.data import level_data
    from whosin.spaces import Count, Subsets

    people = Subsets(20)
    bounded = families.Independent(Fraction(1, 20), Fraction(1, 2))
    plan = calibrate(Posterior(Fraction(3, 5)), bounded, query=Query("count"))
    assert plan.noise is not None
    count = mechanisms.Laplace(Count(), plan.noise.scale).channel(people)
    adversaries: list[tuple[str, families.Family]] = [
        ("knows nothing at all", families.Uninformed()),
        ("knows everyone else; 5% to 50% sure of this person", bounded),
        ("knows everyone else, any belief about this person", families.Independent()),
        ("knows how many are in the data", families.FixedSize()),
        ("knows that up to 3 come and go together", families.Cliques(3)),
        ("may believe anything whatsoever", families.AnyPrior()),
    ]
    levels = [
        (words, family, PositiveMembership(family).measure(count)) for words, family in adversaries
    ]
    uninformed = PositiveMembership(families.Uninformed())
    small = Subsets(8)
    claimed = Fraction(7, 6)
    published = uninformed.measure(mechanisms.KMaxAsPublished(3), small)
    repaired = uninformed.measure(mechanisms.KMax(3), small)
    if json:
        print_json(
            {
                "plan": plan.to_dict(),
                "count": [
                    {"adversary": words, **level_data(level, PositiveMembership(family))}
                    for words, family, level in levels
                ],
                "published": level_data(
                    published, uninformed, claim=claimed, holds=published.holds(claimed)
                ),
                "repaired": level_data(
                    repaired, uninformed, claim=claimed, holds=repaired.holds(claimed)
                ),
            }
        )
        return
    text.print_demo(plan, levels, (published, repaired, claimed))
