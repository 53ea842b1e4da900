"""Claims against levels: they hold, are refuted by a case above them, or stay undecided."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import whosin as wi
from refusals import refused
from whosin import beliefs, notions
from whosin.exact import log_up, quarter_tanh_up
from whosin.families import fixed_size
from whosin.notions import BayesianDifferentialPrivacy, Level, PositiveMembership, bayesian_privacy
from whosin.notions.bayesian_privacy import noisy_sum
from whosin.report.html import notebook_html

RESPONSE = wi.mechanisms.RandomizedResponse(keep=Fraction(3, 4))
SURE = wi.families.FixedSize("0.1", "0.4")
WORDS = "verify --mechanism randomized-response --keep 3/4 --family fixed-size="


@pytest.fixture
def unsearched(monkeypatch):
    """Known sizes as of more people, whose odds are not searched."""
    monkeypatch.setattr(fixed_size, "MAX_SEARCHED_PEOPLE", 0)


@pytest.mark.usefixtures("unsearched")
def test_a_claim_inside_the_bracket_is_undecided():
    """Five people within [0.35, 0.4] are two of five, all alike: no swap and no one of m."""
    narrow = wi.families.FixedSize("0.35", "0.4")
    alone = PositiveMembership(narrow).measure(RESPONSE, wi.Subsets(5))
    assert not alone.exact and alone.witness is None and alone.value > 4
    assert alone.holds(4) is None and alone.holds(alone.value) is True
    assert alone.refutation(4) is None
    three = PositiveMembership(SURE).measure(RESPONSE, wi.Subsets(3))
    assert three.lower < 4.2 < three.value
    assert three.holds("4.5") is None and three.holds(three.lower) is None
    assert three.holds(2) is False and three.refutation(2) is three.witness
    case = three.witness
    assert beliefs.gamma(case.ratio, case.prior) == three.lower > 2


@pytest.mark.parametrize(
    ("value", "exact", "lower", "expected"),
    [
        (Fraction(2), True, None, (True, False)),
        (2.0, True, None, (True, False)),
        (3.0, False, None, (None, None)),
        (3.0, False, 1.5, (None, None)),
        (3.0, False, 1.9999, (None, False)),
        (math.inf, True, None, (False, False)),
        (math.inf, False, 1.0, (None, None)),
    ],
)
def test_the_three_outcomes(value, exact, lower, expected):
    level = Level(value, None, exact, (), lower=lower)
    assert (level.holds(2), level.holds("1.999")) == expected
    for everything in (math.inf, "inf", "∞"):
        assert level.holds(everything) is True
    for huge in (10**400, Fraction(10**400), "1e300"):
        assert level.holds(huge) is (True if value < math.inf else level.holds("1.5"))
    with refused("claim"):
        level.holds(math.nan)


def test_a_refuting_case_is_above_the_claim_where_the_level_is_a_limit():
    """Against D_I the level is approached as the prior belief goes to 0 (NMP: to 1); the case shown
    for a claim just below it must be above that claim."""
    for kind, top in ((PositiveMembership, "posterior"), (wi.notions.NegativeMembership, None)):
        for family in (wi.families.Independent(), wi.families.Independent("0.9", 1)):
            level = kind(family).measure(RESPONSE, wi.Subsets(2))
            for claim in (level.value - Fraction(1, 10**9), level.value - Fraction(1, 10**30)):
                case = level.refutation(claim)
                before, after = case.prior, case.posterior
                if top is None:
                    before, after = 1 - before, 1 - after
                assert max(after / before, (1 - before) / (1 - after)) > claim
                belief = case.distribution.belief(wi.Subsets(2), case.entity)
                assert belief == case.prior


PRIOR = wi.priors.Independent((Fraction(1, 3), Fraction(2, 3)))
ON_RECORDS = [
    notions.SemanticPrivacy(),
    notions.BayesianSemanticPrivacy(PRIOR),
    BayesianDifferentialPrivacy(PRIOR),
    notions.Identifiability(wi.priors.Uniform()),
    notions.RecordMembership(PRIOR),
]


@pytest.mark.parametrize("notion", ON_RECORDS, ids=lambda notion: type(notion).__name__)
def test_a_true_claim_is_not_refuted_where_many_cases_tie(notion):
    """More ties than are recomputed: the search's rounding is no case against a claim."""
    space = wi.Records(7, 2)
    nothing = wi.Channel(space, [[Fraction(1, 20)] * 20] * space.worlds)
    level = notion.measure(nothing)
    truth = 1 if notion.unit == "γ" else 0
    assert level.holds(truth) is not False and level.refutation(truth) is None
    assert level.value <= truth + 1e-11 and level.holds(truth + 1e-11) is True
    assert level.value > truth or level.exact
    # e^ε = 1.002: there is no case above it, and one above a little less.
    little = wi.mechanisms.RandomizedResponse(keep=Fraction(501, 1000))
    found = notion.measure(little, wi.Records(5, 2))
    ratio = Fraction(501, 499)
    if notion.unit == "level":
        truth = quarter_tanh_up(ratio)  # 1 at the default, e^±ε at the other value
    else:
        truth = ratio if notion.unit == "γ" else log_up(ratio)
    assert found.holds(truth) is not False and found.value >= truth * (1 - 1e-16)
    assert found.holds(truth * (1 - 1e-6)) is False


def test_information_in_floats_is_a_bracket():
    """Nothing is said about the table: a sum in floats must not refute that."""
    space = wi.Records(10, 2)
    nothing = wi.Channel(space, np.full((space.worlds, 70), 1 / 70))
    level = notions.MutualInformation(PRIOR).measure(nothing)
    assert 0 < level.value < 1e-9 and level.lower == 0 and level.holds(0) is None


def test_a_refuting_case_on_records_is_above_the_claim():
    """D_* is approached as the prior belief goes to 0, as D_I is."""
    level = notions.RecordMembership(PRIOR).measure(RESPONSE, wi.Records(2, 2))
    assert level.value == 3 and not level.witness.attained
    for claim in (Fraction(2), 3 - Fraction(1, 10**9), 3 - Fraction(1, 10**15)):
        case = level.refutation(claim)
        assert case.posterior / case.prior > claim
        assert case.posterior == beliefs.posterior(case.ratio, case.prior)


@pytest.mark.usefixtures("unsearched")
def test_the_command_has_an_exit_code_and_words_for_each(run):
    wide, narrow = "0.1..0.4", "0.35..0.4"
    for band, entities, claim, code, outcome, words in (
        (narrow, 5, "4", 4, "undecided", "is undecided: no case above the claim was found"),
        (wide, 3, "4.5", 4, "undecided", "is undecided: the worst case found reaches 21/5"),
        (wide, 3, "2", 1, "refuted", "is refuted by this case."),
        (wide, 3, "6", 0, "holds", "holds."),
    ):
        line = [WORDS + band, "--entities", entities, "--at-most", claim]
        found, out, err = run(*line)
        assert (found, err) == (code, "") and words in out.replace("\n", " "), out
        found, out, err = run(*line, "--json")
        data = json.loads(out)
        assert (found, err, data["outcome"]) == (code, "", outcome)
        assert data["holds"] is {"holds": True, "refuted": False, "undecided": None}[outcome]


def test_brackets_of_chains_are_decided_the_same_way(run, tmp_path, monkeypatch):
    """A chain whose windows are cut gives a bracket; a claim inside it is undecided."""
    space, noisy = wi.Records(12, 2), wi.mechanisms.Laplace("sum", 1)
    query = noisy_sum(noisy, space)
    monkeypatch.setattr(bayesian_privacy, "WINDOW_LENGTHS", (1,))
    monkeypatch.setattr(
        bayesian_privacy,
        "MAX_SWEEP_OPERATIONS",
        bayesian_privacy.estimate_sweep(1, query, 2) * 1.01,
    )
    chain = {"initial": [0.5, 0.5], "transition": [[0.9, 0.1], [0.1, 0.9]]}
    prior = wi.priors.MarkovChain(chain["initial"], chain["transition"])
    level = BayesianDifferentialPrivacy(prior).measure(noisy, space)
    assert level.lower < level.value
    path = tmp_path / "days.json"
    for data in ({"chain": chain}, {"chains": [chain, chain]}):
        path.write_text(json.dumps({**data, "rows": 12, "query": "sum", "scale": 1}))
        for code, claim in (
            (0, level.value + 0.01),
            (4, (level.value + level.lower) / 2),
            (1, level.lower - 0.01),
        ):
            found, out, _err = run("verify", path, "--at-most", claim, "--json")
            assert found == code
            assert json.loads(out)["witness"]["ratio"] == pytest.approx(math.exp(level.lower))


@pytest.mark.usefixtures("unsearched")
def test_notebooks_show_both_ends():
    text = notebook_html(PositiveMembership(SURE).measure(RESPONSE, wi.Subsets(3)))
    assert "γ is at most <b>5</b>" in text and "at least 21/5 ≈ 4.2, by the case" in text
