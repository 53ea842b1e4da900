"""What `print` shows of results: short, whatever the number of people."""

from __future__ import annotations

from fractions import Fraction

import pytest

import whosin as wi
from whosin import exact, families, mechanisms, notions, rules


def test_results_have_short_forms():
    near = families.AtMostKnown(2, "0.05", "0.5")
    failure = rules.failure(rules.Round(5), 300, near, "3/2")
    level = notions.PositiveMembership(near).measure(rules.Suppress(5), wi.Subsets(300), "0.01")
    space = wi.Records(6, 2)
    record = notions.DifferentialPrivacy("replace").measure(
        mechanisms.RandomizedResponse(keep="501/1000"), space
    )
    listed = families.Explicit([wi.priors.Independent([Fraction(n, 997)] * 200) for n in (1, 2)])
    plans = [
        wi.calibrate(wi.Posterior("0.75"), listed, query="count"),
        rules.plan_rule("suppress", wi.Posterior("0.75"), families.Uninformed(), "0.2", 30),
    ]
    shown = [failure, failure.witness, level, level.witness, record, record.witness, *plans]
    for each in shown:
        assert len(repr(each)) < 600 and type(each).__name__ in repr(each)
    assert "2 others" in repr(failure.witness) and "300" not in repr(level.witness.output)


@pytest.mark.parametrize("share", ["0.001105", "0.00051", "0.998895", "0.0149", "0.00151"])
@pytest.mark.parametrize("rounded", ["up", "down", "nearest"])
def test_percentages_are_never_rounded_to_twice_what_they_are(share, rounded):
    truth = Fraction(share) * 100
    shown = Fraction(exact.format_percent(Fraction(share), rounded).rstrip("%"))
    small, near = min(truth, 100 - truth), min(shown, 100 - shown)
    assert small / 2 <= near <= small * 3 / 2
    assert {"up": shown >= truth, "down": shown <= truth}.get(rounded, True)
