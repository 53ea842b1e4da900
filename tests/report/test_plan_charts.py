"""The pictures of plans: where their lines are, and what the printed noise keeps."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

import whosin as wi
from whosin.calibration import Process, calibrate_process
from whosin.curves import process_curve
from whosin.curves.epsilon_meaning import explain_epsilon
from whosin.report.card import describe_plan, describe_process, plan_charts, process_chart
from whosin.report.charts import rates_drawn
from whosin.report.explanation import explanation_chart
from whosin.report.terminal import print_document, rates_plot

DETECTION = wi.Detection("0.1", "0.01")


def values(chart, **wanted):
    """The rows of all layers of a chart that have these."""
    rows = [row for layer in chart.to_dict()["layer"] for row in layer["data"]["values"]]
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def test_a_curve_is_drawn_at_its_corners():
    plan = wi.calibrate(DETECTION)
    curve = wi.curves.tradeoff(plan)
    corner = next(fpr for fpr, tpr in curve.corners if 0 < fpr < 1)
    assert float(corner) in rates_drawn(curve)
    line = values(plan_charts(plan)[0].draw(), who="the best test")
    assert {"fpr": float(corner), "tpr": float(curve.tpr(corner)), "who": "the best test"} in line
    assert values(plan_charts(plan)[0].draw(), what="the target")[0]["tpr"] == 0.1


def test_a_profile_is_drawn_beside_what_its_plan_lets_anyone_believe():
    chart = plan_charts(wi.calibrate(wi.Profile("0.1:0.3,0.5:0.6")))[0].draw()
    assert [(row["prior"], row["posterior"]) for row in values(chart, who="what is allowed")] == [
        (0.1, 0.3),
        (0.5, 0.6),
    ]


def test_the_title_of_an_epsilon_has_its_delta():
    chart = explanation_chart(explain_epsilon(Fraction(1), Fraction(1, 10**6), "add-remove"))
    assert chart.to_dict()["title"] == ["What ε = 1, δ = 1e-06 (add-remove) means"]


@pytest.mark.parametrize("width", [30, 80])
def test_rates_in_a_terminal(width):
    fpr, tpr = Fraction(1, 100), Fraction(1, 10)
    lines = rates_plot(wi.curves.tradeoff(wi.calibrate(DETECTION)), (fpr, tpr), width).splitlines()
    assert max(map(len, lines[:18])) <= width
    at_ten = next(line for line in lines if line.startswith("   10%"))
    across = (at_ten.index("✚") - 8) / (max(map(len, lines[:17])) - 9)
    assert across == pytest.approx(3 / 5, abs=0.05)


def test_the_noise_that_is_printed_keeps_the_target(capsys):
    """Rounded up: 0.428963 would be too little as 0.4289."""
    sgd = Process("gaussian", 0.01, 100)
    plan = calibrate_process(DETECTION, sgd)
    print_document(describe_process(plan, 0.0))
    printed = re.search(r"Noise multiplier: ([\d.]+)", capsys.readouterr().out)
    assert printed and plan.multiplier <= float(printed[1]) <= plan.multiplier + 1e-4
    assert process_curve(sgd, float(printed[1])).tpr("0.01") <= 0.1
    assert values(process_chart(plan), what="the target")
    for target in (wi.Posterior("0.6"), wi.Gamma("1.5"), wi.Gamma("1.37")):
        count = wi.calibrate(target, wi.families.Independent("0.05", "0.5"), query="count")
        print_document(describe_plan(count))
        shown = re.search(r"noise of scale\s+([\d.]+)", capsys.readouterr().out)
        assert shown and count.noise is not None
        assert count.noise.scale <= float(shown[1]) <= count.noise.scale * 1.001
