"""Numbers mean what is written: 0.1 is a tenth in Python, in TOML and in a request."""

from __future__ import annotations

import json
import tomllib
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import whosin as wi
from web_server import SCENARIO, program, served
from whosin import release
from whosin.app.web.server import running
from whosin.errors import InvalidInput
from whosin.ledger import Cost, Ledger
from whosin.ledger.budget import Budget
from whosin.noise import LaplaceNoise
from whosin.release import Range
from whosin.release.domains import read_domain
from whosin.release.scenario import load_scenario
from whosin.release.table import _plain_domain

STEPS = ["0.1", "0.05", "0.01", "0.2", "0.3", "0.7", "0.001", "1e-05", "2.5", "0.125"]


@pytest.mark.parametrize("written", STEPS)
@pytest.mark.parametrize("many", [1, 3, 7, 10, 29])
def test_the_clamp_ends_where_it_is_written(written: str, many: int) -> None:
    """A multiple of the step is inside, in each form of the same number."""
    upper = float(Fraction(written) * many)
    texts = read_domain("x", {"lower": "0", "upper": repr(upper), "step": written})
    floats = Range(0.0, upper, float(written))
    toml = tomllib.loads(f"x = {{lower = 0, upper = {upper!r}, step = {written}}}")["x"]
    sent = json.loads(json.dumps(toml))
    for domain in (texts, floats, read_domain("x", toml), read_domain("x", sent)):
        assert isinstance(domain, Range)
        assert domain.units == (0, many) and domain.unit == Fraction(written)
        assert domain.bounds == (Fraction(0), Fraction(written) * many)
    assert _plain_domain(floats) == _plain_domain(
        texts
    )  # one table to a ledger, however it is spelled


@pytest.mark.parametrize("step", [0.1, 0.05, 0.01, 0.2, None])
def test_a_mean_of_ones_is_one(tmp_path, monkeypatch, step: float | None) -> None:
    """Without noise: the answer is the mean of what was clamped to [0, 1]."""
    monkeypatch.setattr(LaplaceNoise, "draw", lambda self, size: np.zeros(size, np.int64))
    source = pa.table({"who": [f"p{i}" for i in range(500)], "x": [1.0] * 500})
    domain = {"lower": 0, "upper": 1} | ({} if step is None else {"step": step})
    table = release.Table(source, privacy_unit="who", name="ones", domains={"x": domain})
    session = release.Session(table, wi.calibrate(wi.Epsilon(2)), tmp_path / "l.db", share=1)
    answer = session.ask(release.Mean(column="x"))
    assert answer.value == 1


@pytest.mark.parametrize(
    "share", [0.1, 0.3, 0.7, 0.9, 0.95, 0.99, "0.9", "90%", "9/10", Fraction(9, 10)]
)
def test_quantiles_take_decimals(share: object) -> None:
    known = share if not isinstance(share, float) else repr(share)
    expected = Fraction(9, 10) if known == "90%" else Fraction(str(known))
    assert release.Quantile(column="x", quantile=share).below == expected


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5])
def test_quantiles_at_the_ends_are_refused(share: float) -> None:
    with pytest.raises(InvalidInput) as caught:
        _ = release.Quantile(column="x", quantile=share).below
    assert caught.value.field == "quantile"


def test_three_tenths_are_all_of_a_budget_of_three_tenths(tmp_path) -> None:
    """0.1 is below its float and 0.3 above: as floats they did not fit."""
    plan = wi.calibrate(wi.Epsilon(0.3))
    assert plan.epsilon == 0.3 and Budget.of(plan).epsilon == 3 * Cost.pure(0.1).epsilon
    assert Budget.of(wi.calibrate(wi.Epsilon("0.3"))) == Budget.of(plan)
    assert Budget.of(plan).part(0.1) == Budget.of(plan).part("1/10")
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.register("d", plan)
        for number in range(3):
            ledger.debit("d", str(number), wi.ledger.Charge({}, {"add-remove": Cost.pure(0.1)}))
        assert ledger.budget_state("d").spendable == 0


def test_a_delta_is_kept_as_it_is_written() -> None:
    given: Any
    for given in (1e-6, "1e-6", "0.000001"):
        plan = wi.calibrate(wi.Epsilon(1), delta=given)
        assert plan.delta == plan.dp_delta == 1e-6
        assert Budget.of(plan).delta == 10**12 // 4


def test_a_family_of_floats_is_that_of_their_decimals() -> None:
    floats, texts = wi.families.Independent(0.1, 0.7), wi.families.Independent("0.1", "0.7")
    assert floats.adversary().low == Fraction(1, 10) and floats.adversary() == texts.adversary()
    plans = [wi.calibrate(wi.Posterior(most), floats) for most in (0.9, "0.9")]
    assert plans[0].epsilon == plans[1].epsilon
    assert wi.noise.Grid(0.1).step == Fraction(1, 10) and wi.noise.Grid(0.1).sensitivity(1.1) == 11


TOML = """
[table]
source = "visits.csv"
privacy_unit = "patient"

[adversary]
prior = {prior}

[target]
posterior = {posterior}

[domains]
x = {{ lower = 0, upper = {upper}, step = {step} }}

[[queries]]
kind = "quantile"
column = "x"
quantile = {share}
"""


def test_a_scenario_means_the_same_with_and_without_quotes(tmp_path, run, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["patient,x", *(f"p{i},{i / 10}" for i in range(10))]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    numbers = {"prior": '"0.1..0.7"', "posterior": "0.9", "upper": "0.3", "step": "0.1"}
    numbers["share"] = "0.9"
    quoted = {key: value if '"' in value else f'"{value}"' for key, value in numbers.items()}
    found: list[Any] = []
    for name, values in (("plain", numbers), ("quoted", quoted)):
        (tmp_path / f"{name}.toml").write_text(TOML.format(**values))
        scenario = load_scenario(tmp_path / f"{name}.toml")
        domain = scenario.open_table().domains["x"]
        assert isinstance(domain, Range)
        [query] = scenario.queries
        assert isinstance(query, release.Quantile)
        found.append((scenario.plan.epsilon, domain.units, domain.bounds, query.below))
        assert run(f"release {name}.toml --dry-run")[0] == 0
    assert found[0] == found[1] and found[0][1] == (0, 3)


def test_a_request_means_the_same_with_and_without_quotes(tmp_path) -> None:
    estimates = []
    with running(served(tmp_path)) as url, program(url) as client:
        for share, step in ((0.9, 0.1), ("0.9", "0.1")):
            body = SCENARIO | {
                "domains": {"days": {"lower": 0, "upper": 30.3, "step": step}},
                "queries": [{"kind": "quantile", "column": "days", "quantile": share}],
            }
            reply = client.post("/api/estimate", json=body)
            assert reply.status_code == 200, reply.text
            estimates.append([each["cost"] for each in reply.json()["estimates"]])
    assert estimates[0] == estimates[1]
