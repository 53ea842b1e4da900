"""Bridges: OpenDP and dp-accounting as they are, other tools by objects of the same shape.

`make bridges` tries every tool itself, in an environment of its own (`try_tools.py`).
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from types import SimpleNamespace

import pytest

import whosin as wi
from refusals import refused
from whosin import bridges
from whosin.bridges import SUPPORTED_TOOLS, Guarantee, debit_guarantee, read


def endless(delta):
    return math.inf


def spent_so_far(*, delta):
    return 1.5


def trained(sampling, **more):
    """The parameters of a training of JAX-Privacy."""
    return SimpleNamespace(delta=1e-5, sampling_method=SimpleNamespace(name=sampling), **more)


def stand_in(module, **attributes):
    """An object whose class is from a module of this name."""
    kind = type("Other", (SimpleNamespace,), {"__module__": f"{module}.part"})
    return kind(**attributes)


@pytest.fixture
def installed(monkeypatch):
    """Every tool at a version that was tried."""
    tried = {tool.package: f"{tool.tried[0]}.0" for tool in SUPPORTED_TOOLS.values()}
    monkeypatch.setattr(bridges, "version", lambda package: tried[package])


@pytest.fixture(scope="module")
def opendp():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def sums(dp, metric=None):
    return dp.vector_domain(dp.atom_domain(bounds=(0, 10))), metric or dp.symmetric_distance()


def test_measurements_of_opendp(opendp):
    dp = opendp
    laplace = sums(dp) >> dp.t.then_sum() >> dp.m.then_laplace(scale=10.0)
    one, two = read(laplace), read(laplace, max_rows=2)
    assert (one.epsilon, one.delta, one.relation, one.tool) == (1, 0, "add-remove", "OpenDP")
    assert two.epsilon == 2 and one.costs["replace"].epsilon == two.costs["add-remove"].epsilon
    gauss = sums(dp) >> dp.t.then_sum() >> dp.m.then_gaussian(scale=10.0)
    assert read(gauss).rho == Fraction(1, 2) and read(gauss).epsilon == math.inf
    known = read(gauss, delta="1e-6")
    assert known.epsilon < 0.5 + 2 * math.sqrt(0.5 * math.log(1e6))
    profile = dp.c.make_zCDP_to_approxDP(gauss)
    at_delta = read(profile, delta="1e-6")
    assert at_delta.epsilon == pytest.approx(5.22, abs=0.01)
    assert known.epsilon == pytest.approx(float(at_delta.epsilon), rel=1e-6)
    fixed = read(dp.c.make_fix_delta(profile, 1e-6))
    assert fixed.epsilon == at_delta.epsilon and float(fixed.delta) == 1e-6
    with refused("delta"):
        read(profile)


def test_contexts_of_opendp(opendp):
    dp = opendp
    context = dp.Context.compositor(
        data=[1, 2],
        privacy_unit=dp.unit_of(contributions=2),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=2,
    )
    assert read(context).epsilon == 1 and "d_in = 2" in read(context).says
    with refused("max_rows", 2):
        read(context, max_rows=2)


def test_events_and_accountants_of_dp_accounting():
    import dp_accounting
    from dp_accounting import rdp

    sampled = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1))
    event = dp_accounting.SelfComposedDpEvent(sampled, 100)
    accountant = rdp.RdpAccountant().compose(event)
    told = read(accountant, delta="1e-5")
    assert told.epsilon == Fraction(accountant.get_epsilon(1e-5)) and told.relation == "add-remove"
    assert 0 < read(event, delta="1e-5").epsilon <= told.epsilon * 1.01
    replaced = rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    ).compose(dp_accounting.GaussianDpEvent(2.0))
    assert read(replaced, delta="1e-5").relation == "replace"
    with refused("delta"):
        read(event)


@pytest.mark.parametrize(
    ("value", "more", "expected"),
    [
        (stand_in("tmlt", epsilon=1, delta=1e-6), {}, (1, 1e-6, None)),
        (stand_in("tmlt", rho=0.5), {}, (math.inf, 0, 0.5)),
        (stand_in("pipeline_dp", _total_epsilon=1, _total_delta=1e-6), {}, (1, 1e-6, None)),
        (stand_in("snsql", epsilon=1.0, delta=1e-5), {"columns": 1}, (1, 1e-5, None)),
        (stand_in("snsql", epsilon=1.0, delta=2.0**-20), {"columns": 3}, (3, 3 * 2.0**-20, None)),
        (stand_in("snsql", spent=(2.0, 2e-5), privacy=None, steps=[]), {}, (2, 2e-5, None)),
        (
            stand_in(
                "snsql",
                spent=(1.5, 0.1),
                k=2,
                privacy=SimpleNamespace(epsilon=1.0, delta=0.25, neighboring="addremove"),
            ),
            {},
            (2, 0.5, None),
        ),
        (
            stand_in("opacus", get_epsilon=lambda delta: 1.5, mechanism=lambda: "rdp"),
            {"delta": "1e-5"},
            (1.5, 1e-5, None),
        ),
        (stand_in("riskcal", get_epsilon=spent_so_far), {"delta": "1e-5"}, (1.5, 1e-5, None)),
        (
            stand_in("jax_privacy", compute_epsilon=lambda updates, params: updates / 1000),
            {"updates": 500, "parameters": trained("POISSON")},
            (0.5, 1e-5, None),
        ),
    ],
    ids=lambda value: getattr(type(value), "__module__", None),
)
def test_shapes_of_other_tools(installed, value, more, expected):
    told = read(value, **more)
    rho = None if told.rho is None else float(told.rho)
    assert (float(told.epsilon), float(told.delta), rho) == expected


@pytest.mark.parametrize(
    ("value", "more", "field"),
    [
        (object(), {}, "from"),
        (stand_in("tmlt"), {}, "from"),
        (stand_in("tmlt", remaining_privacy_budget=stand_in("tmlt", epsilon=2)), {}, "from"),
        (
            stand_in("opacus", get_epsilon=lambda delta: 1.71, mechanism=lambda: "gdp"),
            {"delta": "1e-6"},
            "from",
        ),
        (stand_in("snsql", epsilon=1.0, delta=1e-5), {}, "columns"),
        (stand_in("snsql", epsilon=1.0, delta=None), {"columns": 1}, "delta"),
        (stand_in("snsql", epsilon=1.0, neighboring="any"), {}, "neighboring"),
        (stand_in("snsql", epsilon=1.0, delta=0.0), {"columns": 1, "max_rows": 2}, "max_rows"),
        (stand_in("tmlt", epsilon=1), {"max_rows": 2}, "max_rows"),
        (stand_in("pipeline_dp", _total_epsilon=1, _total_delta=0), {"max_rows": 3}, "max_rows"),
        (Guarantee("other", "1", Fraction(1)), {"max_rows": 2}, "max_rows"),
        (
            stand_in("jax_privacy", compute_epsilon=lambda updates, params: 1),
            {"updates": 5, "parameters": trained("SHUFFLED")},
            "sampling_method",
        ),
        (
            stand_in("jax_privacy", compute_epsilon=lambda updates, params: 1),
            {"updates": 5, "max_rows": 2, "parameters": trained("POISSON", examples_per_user=2)},
            "max_rows",
        ),
        (stand_in("dp_accounting", get_epsilon=lambda d: 1), {"delta": 0.1}, "from"),
        (
            stand_in("opacus", get_epsilon=lambda delta: math.inf, mechanism=str),
            {"delta": "0.1"},
            "epsilon",
        ),
        (stand_in("opacus"), {"delta": "1e-5"}, "from"),
        (
            stand_in("opacus", get_epsilon=lambda delta: 1 / 0, mechanism=str),
            {"delta": "0.1"},
            "from",
        ),
        (stand_in("jax_privacy"), {}, "updates and parameters"),
        (stand_in("snsql", epsilon=-1.0, delta=0), {"columns": 1}, "epsilon"),
        (stand_in("tmlt", epsilon=1), {"max_rows": 0}, "max_rows"),
    ],
)
def test_what_cannot_be_read_is_refused(installed, value, more, field):
    with refused(field, kind=wi.errors.WhosinError):
        read(value, **more)


@pytest.mark.parametrize(
    ("value", "more", "relation"),
    [
        (
            stand_in("snsql", epsilon=1.0, delta=0.0, neighboring="substitute"),
            {"columns": 1},
            "replace",
        ),
        (
            stand_in("jax_privacy", compute_epsilon=lambda updates, params: 1),
            {"updates": 500, "parameters": trained("FIXED_BATCH_SIZE")},
            "replace",
        ),
        (
            stand_in("jax_privacy", compute_epsilon=lambda updates, params: 1),
            {"updates": 500, "parameters": trained("POISSON")},
            "add-remove",
        ),
    ],
)
def test_relations_are_those_of_the_tool(installed, value, more, relation):
    assert read(value, **more).relation == relation


def test_curves_of_replacing_take_both_directions():
    """Under add-remove alone are losses of one direction the curve of "in" against "out"."""
    from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant

    event = PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))
    added = wi.bridges.read_curve(PLDAccountant().compose(event))
    assert isinstance(added, wi.curves.LossCurve)
    replacing = PLDAccountant(NeighboringRelation.REPLACE_ONE).compose(event)
    curve = wi.bridges.read_curve(replacing)
    for epsilon in (0.1, 0.5, 1.0):
        assert curve.delta(epsilon) >= replacing.get_delta(epsilon) - 1e-12
    asymmetric = stand_in("dp_accounting", _pld=added, neighboring_relation=None)
    assert wi.bridges._privacy_losses(asymmetric, "replace") is None
    assert wi.bridges._privacy_losses(replacing, "replace") is not None
    assert wi.bridges.read_curve(Guarantee("other", "1", Fraction(1))).relation == "add-remove"


def test_versions_that_were_not_tried_are_refused(monkeypatch):
    monkeypatch.setattr(bridges, "version", lambda _package: "99.1")
    with refused("from", "99.1"):
        read(stand_in("tmlt", epsilon=1))


def test_groups_and_replacing_cost_more():
    told = Guarantee("other", "1", Fraction(1), Fraction(1, 10**6))
    three = told.for_group(3)
    assert three.epsilon == 3 and three.delta >= 3 * math.exp(2) * 1e-6
    assert Guarantee("other", "1", math.inf, rho=Fraction(1, 2)).for_group(2).rho == 2
    assert set(Guarantee("other", "1", Fraction(1), relation="replace").costs) == {"replace"}
    huge = Guarantee("other", "1", Fraction(700), Fraction(1, 2))
    assert set(huge.costs) == {"add-remove"}


def test_external_debits_are_in_the_chain(tmp_path):
    plan = wi.calibrate(wi.Epsilon(2), wi.families.Independent())
    with wi.Ledger(tmp_path / "l.db") as ledger:
        ledger.register("people", plan)
        told = Guarantee("other", "1", Fraction(3, 2))
        debit_guarantee(ledger, "people", told, "a model", "r1")
        debit_guarantee(ledger, "people", told, "a model", "r1")  # a retry pays once
        assert ledger.budget_state("people").epsilon == pytest.approx(1.5)
        assert [entry.kind for entry in ledger.history("people")][-2:] == ["debit", "answer"]
        wi.ledger.verify(ledger, "people")
        with pytest.raises(wi.errors.BudgetRefused):
            debit_guarantee(ledger, "people", told, "another model")
        with pytest.raises(wi.errors.BudgetRefused):  # no δ in the plan
            debit_guarantee(
                ledger, "people", Guarantee("o", "1", Fraction(1, 10), Fraction(1, 10**6)), "x"
            )
        with refused("title", " "):
            debit_guarantee(ledger, "people", told, " ")


def test_explain_from_another_tool(run, refused_at, tmp_path):
    code = tmp_path / "mine.py"
    code.write_text(
        "import dp_accounting\n"
        "print('noise on standard output')\n"
        "event = dp_accounting.GaussianDpEvent(5.0)\n"
        "def made():\n    return event\n"
        "wrong = 5\n"
    )
    status, out, _ = run(f"explain --from {code}:made --delta 1e-6 --json")
    data = json.loads(out)
    assert status == 0 and data["from"]["tool"] == "dp-accounting" and data["delta"] == 1e-6
    status, out, _ = run(f"explain --from {code}:event --delta 1e-6 --for resident")
    assert status == 0 and "of the 1,000" in " ".join(out.split())
    for words, place in [
        (f"explain --from {code}:wrong", "--from"),
        (f"explain --from {code}:event", "--from"),
        (f"explain --from {code}:event --delta 1e-6 --epsilon 1", "--epsilon"),
        (f"explain --from {code}:event --delta 1e-6 --ledger {tmp_path}/l.db", "--dataset"),
        ("explain --epsilon 1 --ledger x.db", "--from"),
        ("explain --epsilon 1 --for king", "--for"),
    ]:
        assert refused_at(words) == place


def test_the_same_numbers_for_three_audiences():
    from whosin.curves.epsilon_meaning import explain_epsilon
    from whosin.report.document import Marks, per_thousand
    from whosin.report.explanation import AUDIENCE_NAMES, audience_lines

    meaning = explain_epsilon(Fraction(1), Fraction(1, 10**6))
    after = meaning.posterior(meaning.readings[0], Fraction(1, 10))
    shown = math.ceil(after * 1000)
    for audience in AUDIENCE_NAMES:
        text = " ".join(audience_lines(meaning, audience))
        assert f"{shown} of" in text and "fail" in text
    marks = Marks.of(0.1, 0.231)
    drawn = "".join(marks.lines())
    assert (len(drawn), drawn.count("●"), drawn.count("◐")) == (100, 10, 14)
    assert Marks.of(0.5, 0.1).after == 50  # never fewer than before
    assert per_thousand(0.2301) == 231 and per_thousand(1.0) == 1000
