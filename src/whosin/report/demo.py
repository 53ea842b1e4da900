"""The story of `whosin demo`, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from whosin.calibration import Plan
from whosin.exact import decimals
from whosin.release import Offer, Release
from whosin.report import card, releases
from whosin.report.budget import allowed, history_line
from whosin.report.text import print_wrapped


def print_demo(
    title: str, plan: Plan, offers: Sequence[Offer], release: Release, refusal: str
) -> None:
    """Plan, dry run, release, ledger: what the main job looks like."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]")
    console.print("\n[bold]1 plan[/bold]  who may be looking, and how sure they may become")
    for line in (card.who(plan.family), f"Whoever that is {plan.target.words()}."):
        print_wrapped(line)
    level = decimals(plan.epsilon, 4, "down")
    print_wrapped(f"That takes ε = {level} in all ({plan.relation} neighbours).")
    console.print("\n[bold]2 dry run[/bold]  cost and error before anything runs")
    console.print(releases.offer_table(plan, offers))
    console.print("\n[bold]3 release[/bold]  debited first, then answered with exact noise")
    for answer in release:
        console.print(f"\n  [bold]{escape(answer.title)}[/bold]")
        console.print(releases.answer_table(answer))
    console.print("\n[bold]4 ledger[/bold]  what all of it together allows anyone to believe")
    for line in (*allowed(release.standing)[1:], history_line(release.standing)):
        print_wrapped(line)
    print_wrapped(f"A second session is refused: {refusal}.")
    console.print()
