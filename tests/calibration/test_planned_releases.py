"""What a plan says is what a release draws: one direction only, doubts that count as noise, an ε
with a δ. In the library, in a scenario, through the command and through the page's routes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import whosin as wi
from amounts import some
from documents_shown import section_text
from refusals import refused
from web_server import ONE, problem, program, served
from whosin import families as f
from whosin import release
from whosin.app.web.server import running
from whosin.calibration import Process, accounting, calibrate_process, read_plan
from whosin.calibration.failure import gaussian_delta, gaussian_profile
from whosin.errors import BudgetRefused, InvalidInput
from whosin.exact import format_figures
from whosin.release import Session, Table
from whosin.release.cost import Share
from whosin.release.scenario import read_scenario
from whosin.report.card import plan_card

HALF = Fraction(1, 2)
PEOPLE = [(f"p{place}", place) for place in range(40)]


def people(many: int = 437) -> Table:
    return Table(pa.table({"who": [f"p{n}" for n in range(many)]}), "who", name="people")


# A maximum shows who is absent, and hides only who is in (THEORY 15).


def k_max_advantage(k: int, n: int) -> float:
    """The largest TPR − FPR against one person of n, the others uniform: half the L1 distance."""
    chances = wi.mechanisms.KMax(k).channel(wi.Subsets(n)).on_worlds().likelihoods
    worlds = np.arange(2**n)
    return max(
        np.abs(chances[worlds >> t & 1 == 1].mean(0) - chances[worlds >> t & 1 == 0].mean(0)).sum()
        / 2
        for t in range(n)
    )


def places(plan: wi.calibration.Plan) -> int:
    query = release.Maximum(universe=PEOPLE)
    k: int = query.estimate_cost(people(), Share(plan, Fraction(1))).details
    return k


def test_a_maximum_holds_the_advantage_that_was_asked():
    """3/8 for k = 2, where 1/3 was asked and both directions of γ would have allowed k = 2."""
    assert k_max_advantage(2, 6) == pytest.approx(3 / 8)
    for asked in ("1/3", "3/8", "1/2"):
        k = places(wi.calibrate(wi.Advantage(asked), f.Uninformed()))
        assert k_max_advantage(k, 2 * k) <= float(Fraction(asked)) + 1e-12
    assert places(wi.calibrate(wi.Advantage("1/3"), f.Uninformed())) == 3
    assert places(wi.calibrate(wi.Gamma("1.5"), f.Uninformed())) == 2
    assert places(wi.calibrate(wi.Posterior("0.75"), f.Uninformed())) == 2


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_no_epsilon_holds_for_a_maximum(delta, tmp_path):
    plan = wi.calibrate(wi.Epsilon(1), f.Uninformed(), delta=delta)
    session = Session(people(), plan, tmp_path / "ledger.db", share=1)
    with refused("target"):
        session.release(release.Maximum(universe=PEOPLE))
    assert session.budget_state.debits == 0


def scenario(folder, adversary: dict, target: dict, query: dict):
    (folder / "people.csv").write_text("who\n" + "\n".join(f"p{n}" for n in range(437)) + "\n")
    data = {"adversary": adversary, "target": target, "queries": [query]}
    return read_scenario(data | {"table": {"source": "people.csv", "privacy_unit": "who"}}, folder)


def test_a_scenario_refuses_it_too(tmp_path):
    asked = {"kind": "maximum", "universe": [list(pair) for pair in PEOPLE]}
    with refused("target"):
        scenario(tmp_path, {"uninformed": True}, {"epsilon": 1}, asked).estimate_cost()
    assert scenario(tmp_path, {"uninformed": True}, {"gamma": 1.5}, asked).estimate_cost()


# Someone who knows few: the plan's count is what is drawn.

FEW = f.AtMostKnown(10, "0.1", "0.9")


def few(target, delta=1e-6, entities=1000):
    return wi.calibrate(target, FEW, delta=delta, query="count", entities=entities)


def test_a_count_is_drawn_as_planned(tmp_path):
    """No noise where the plan says none; alone in its ledger, and nothing after it."""
    plan = few(wi.Posterior("0.95"))
    assert plan.noise.kind == "none"
    session = Session(people(), plan, tmp_path / "ledger.db", share=1)
    [estimate] = session.dry_run(release.Count())
    assert (estimate.noise, estimate.within, estimate.spend.alone) == (
        "none: the exact number",
        0,
        True,
    )
    assert session.release(release.Count())[0].rows == ((437, 437, 437),)
    with pytest.raises(BudgetRefused):
        session.release(release.Count(), again=True)
    with pytest.raises(BudgetRefused):
        Session(people(), plan, tmp_path / "ledger.db", share=1, again=True)


def test_noise_of_the_planned_scale():
    """Geometric, of exactly the plan's scale."""
    plan = few(wi.Posterior("0.91"), delta=1e-6, entities=200)
    assert plan.noise.kind == "geometric"
    [part] = release.Count().estimate_cost(people(), Share(plan, Fraction(1))).parts
    assert part.noise.width == Fraction(plan.noise.scale) and part.error == pytest.approx(
        plan.noise.error
    )
    assert part.interval_radius() == plan.noise.within


@pytest.mark.parametrize(
    "query",
    [
        release.Count(where="who = 'p1'"),
        release.Rows(),
        release.Count(by="ward"),
        release.Histogram(column="ward"),
    ],
)
def test_other_questions_pay_by_differential_privacy(query):
    """A condition may leave few people, of whom much is known: only a count of all is planned."""
    table = Table(
        pa.table({"who": ["a", "b"], "ward": ["x", "y"]}), "who", {"ward": ["x", "y"]}, name="t"
    )
    estimate = query.estimate_cost(table, Share(few(wi.Posterior("0.95")), HALF))
    assert not estimate.spend.alone and all(part.noise.spread > 0 for part in estimate.parts)


def test_a_scenario_draws_the_planned_count(tmp_path):
    """With `people`; without it, or without known and a δ, the file is refused by that name."""
    who, wanted = {"prior": "0.1..0.9", "known": 10}, {"posterior": "0.95", "delta": "1e-6"}
    found = scenario(tmp_path, who | {"people": 1000}, wanted, {"kind": "count"})
    assert found.plan.noise.kind == "none"
    assert found.open_session().release(found.queries)[0].rows == ((437, 437, 437),)
    for adversary, target in [
        (who, wanted),
        (who | {"people": 1000}, {"posterior": "0.95"}),
        ({"people": 1000}, wanted),
        (who | {"people": 1}, wanted),
    ]:
        with pytest.raises(InvalidInput) as caught:
            read_plan(adversary, target)
        assert caught.value.field in ("people", "entities")


def test_the_page_draws_it_too(tmp_path):
    with running(served(tmp_path)) as url, program(url) as client:
        who = {"prior": "0.5", "known": 10, "people": 1000}
        body = ONE | {"adversary": who, "target": {"posterior": "95%", "delta": "1e-6"}}
        priced = client.post("/api/estimate", json=body).json()
        assert "none: the exact number" in str(priced)
        done = client.post("/api/release", json={"scenario": body, "request": "planned-count"})
        assert done.status_code == 200, done.text
        missing = body | {"adversary": {"prior": "0.1..0.9", "known": 10}}
        asked = {key: missing[key] for key in ("adversary", "target")}
        words = problem(client.post("/api/plan", json=asked), 422, "adversary.people")
        assert "how many could be in" in words
        universe = [["p1", 1], ["p2", 2], ["p3", 3], ["p4", 4]]
        one_sided = ONE | {
            "adversary": {"uninformed": True},
            "target": {"epsilon": "1"},
            "queries": [{"kind": "maximum", "universe": universe}],
        }
        assert "no ε holds" in client.post("/api/estimate", json=one_sided).text


# An ε with a δ is (ε, δ)-differential privacy.


@pytest.mark.parametrize("epsilon", some([0.1, 1, 3], 2))
@pytest.mark.parametrize("delta", some([1e-9, 1e-5, 0.05], 2))
def test_gaussian_noise_for_an_epsilon_is_the_least(epsilon, delta):
    """δ(ε) of the noise by integrating the definition: at most δ, and not much less."""
    plan = wi.calibrate(wi.Epsilon(epsilon), delta=delta, query="count")
    assert (plan.epsilon, plan.dp_delta, plan.delta) == (epsilon, delta, delta)
    assert "T18" not in plan.theorems and plan.gamma == math.inf and plan.tight
    sigma = plan.noise.scale
    cut = sigma**2 * epsilon + 0.5
    x = np.linspace(cut, cut + 12 * sigma + 2, 400_001)
    density = np.exp(-((x - 1) ** 2) / (2 * sigma**2)) - math.exp(epsilon) * np.exp(
        -(x**2) / (2 * sigma**2)
    )
    truth = np.trapezoid(density, x) / (sigma * math.sqrt(2 * math.pi))
    assert truth == pytest.approx(delta, rel=1e-5) and truth <= delta * (1 + 1e-5)
    assert gaussian_delta(sigma, Fraction(epsilon)) <= delta
    assert gaussian_delta(sigma * (1 - 1e-8), Fraction(epsilon)) > delta
    assert float(gaussian_delta(sigma, Fraction(epsilon))) == pytest.approx(
        float(gaussian_profile(sigma)(np.array([float(epsilon)]))[0]), rel=1e-9
    )


def test_training_for_an_epsilon(monkeypatch):
    """σ = 1.415 for 1,000 steps at rate 0.01, ε = 1 and δ = 10⁻⁵, where T18 asked for 1.668; and
    unsampled runs are one Gaussian, exactly."""
    training = Process("gaussian", 0.01, 1000)
    monkeypatch.setattr(accounting, "LOSS_GRID_STEPS", (1e-2, 1e-3))
    found = calibrate_process(wi.Epsilon(1), training, delta=1e-5)
    assert found.multiplier == pytest.approx(1.4146, abs=5e-3) and found.theorems == ()
    assert found.bound <= found.goal == 1e-5
    once = wi.calibrate(wi.Epsilon(1), delta=1e-5, query="count").noise.scale
    many = calibrate_process(wi.Epsilon(1), Process("gaussian", 1, 100), delta=1e-5)
    assert many.multiplier == pytest.approx(10 * once, rel=1e-9)
    assert gaussian_delta(many.multiplier / 10, Fraction(1)) <= Fraction(1e-5)


@pytest.mark.parametrize("epsilon", [8, 30])
def test_little_noise_is_least_as_well(epsilon, monkeypatch):
    """Below σ = 0.4: what is returned meets the goal and 1% less does not."""
    process = Process("gaussian", 0.01, 1)
    monkeypatch.setattr(accounting, "LOSS_GRID_STEPS", (1e-2, 1e-3))
    found = calibrate_process(wi.Epsilon(epsilon), process, delta=1e-5)
    assert 0.1 < found.multiplier < 0.4
    exact = gaussian_profile(found.multiplier, 0.01)(np.array([float(epsilon)]))[0]
    less = gaussian_profile(0.99 * found.multiplier, 0.01)(np.array([float(epsilon)]))[0]
    assert exact <= 1e-5 < less


def test_the_card_says_what_is_promised_and_what_a_ledger_draws(tmp_path):
    """The σ that the card names for a ledger is the one that a release draws."""
    plan = wi.calibrate(wi.Epsilon(1), delta=1e-5, query="count")
    words = " ".join(section_text(plan_card(plan)).splitlines())
    assert (
        "(ε, δ)-differential privacy with δ = 1e-05" in words and "factor of at most" not in words
    )
    session = Session(people(), plan, tmp_path / "ledger.db", share=1)
    [estimate] = session.dry_run(release.Count(), noise="gaussian")
    assert f"σ = {format_figures(estimate.parts[0].noise.spread, 4, 'up')} " in words


def test_an_epsilon_is_kept_as_it_was_written_and_otherwise_rounded_down():
    """A plan's ε is read by its decimals; 1/3 has none, and the plan's is below."""
    assert wi.calibrate(wi.Epsilon("0.1")).epsilon == wi.calibrate(wi.Epsilon(0.1)).epsilon == 0.1
    plan = wi.calibrate(wi.Epsilon("1/3"))
    above = math.nextafter(plan.epsilon, 1)
    assert Fraction(repr(plan.epsilon)) <= Fraction(1, 3) < Fraction(repr(above))
    assert wi.calibrate(wi.Epsilon("0.3"), f.Cliques(3)).epsilon * 3 <= 0.3


def uncertain_delta(n: int, k: int, p: list[Fraction], epsilon: float, reverse: bool) -> float:
    """δ(ε) of an exact count with one person and without, the others independent."""
    rest = {0: Fraction(1)}
    for each in p:
        longer: dict = {}
        for count, mass in rest.items():
            longer[count + 1] = longer.get(count + 1, Fraction(0)) + mass * each
            longer[count] = longer.get(count, Fraction(0)) + mass * (1 - each)
        rest = longer
    total = 0.0
    for output in range(n + 1):
        top, bottom = rest.get(output - 1, Fraction(0)), rest.get(output, Fraction(0))
        if reverse:
            top, bottom = bottom, top
        total += max(0.0, float(top) - math.exp(epsilon) * float(bottom))
    return total


def test_an_epsilon_against_people_who_know_few_holds_in_both_directions():
    """Beliefs that lean one way make absence show more than presence, or the reverse."""
    for low, high in ((Fraction(1, 20), Fraction(1, 10)), (Fraction(9, 10), Fraction(19, 20))):
        family, n = f.AtMostKnown(1, low, high), 60
        plan = wi.calibrate(wi.Epsilon(2), family, delta=0.05, query="count", entities=n)
        found = [
            uncertain_delta(n, 1, [belief] * (n - 2), 2.0, reverse)
            for belief in (low, high)
            for reverse in (False, True)
        ]
        assert (max(found) <= 0.05) == (plan.noise.kind == "none")


def test_nobody_can_claim_more_people_than_were_registered(tmp_path):
    """A plan for more people needs less noise; the dataset keeps to its own."""
    Session(people(), few(wi.Posterior("0.91"), entities=200), tmp_path / "ledger.db", share=1)
    plan = few(wi.Posterior("0.91"), entities=1000)
    with pytest.raises(BudgetRefused):
        Session(people(), plan, tmp_path / "ledger.db", share=1).release(release.Count())


@pytest.mark.parametrize(
    ("target", "process", "delta"),
    some(
        [
            (wi.Posterior("0.6"), Process("gaussian", 0.01, 1000), 1e-5),
            (wi.Detection("0.1", "0.01"), Process("discrete-gaussian", 0.1, 200), 0.0),
            (wi.Advantage("0.1"), Process("gaussian", 1e-5, 1000), 0.0),
        ],
        1,
        several=True,
    ),
)
def test_the_first_guess_changes_nothing_that_is_found(target, process, delta, monkeypatch):
    family = wi.families.Independent("0.05", "0.5")
    found = calibrate_process(target, process, family, delta)
    monkeypatch.setattr(accounting, "_limit_guess", lambda *given: None)
    again = calibrate_process(target, process, family, delta)
    assert found.multiplier == pytest.approx(again.multiplier, rel=3e-4)
    assert max(found.bound, again.bound) <= found.goal
