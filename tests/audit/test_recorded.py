"""Samples that were drawn beforehand, and audits in rounds."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import attacked
import whosin as wi
from amounts import cases, some
from attacked import alarms, most_alarms
from refusals import about
from whosin.audit.neighbouring_inputs import plan_rounds
from whosin.audit.recorded_samples import check_independent
from whosin.audit.sampling import check_memory, read_outputs
from whosin.errors import InvalidInput


def draws(seed=0, size=8_000, shift=1.0):
    rng = np.random.default_rng(seed)
    return rng.laplace(shift, 1, size).round(4), rng.laplace(0, 1, size).round(4)


def test_two_samples_and_files(tmp_path):
    with_, without = draws()
    found = wi.audit.samples(with_, without, seed=1)
    assert 0.85 < found.epsilon <= 1 and found.samples == 8_000
    np.save(tmp_path / "a.npy", with_)
    (tmp_path / "b.csv").write_text("answer\n" + "\n".join(map(str, without)))
    assert wi.audit.samples(tmp_path / "a.npy", tmp_path / "b.csv", seed=1).epsilon > 0.8
    for name, values in (("c.jsonl", with_), ("d.jsonl", without)):
        lines = [json.dumps({"n": value, "who": "x"}) for value in values[:2000]]
        (tmp_path / name).write_text("\n".join(lines))
    assert wi.audit.samples(str(tmp_path / "c.jsonl"), tmp_path / "d.jsonl").epsilon > 0.5


def chain(rng, size):
    steps, value = rng.normal(size=size), 0.0
    return np.array([value := 0.9 * value + step for step in steps])


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (lambda a, b, rng: (np.tile(a[:1000], 8), b), "with"),
        (lambda a, b, rng: (a, a), "with and without"),
        (lambda a, b, rng: (a, np.concatenate([b[:7000], a[:1000]])), "with and without"),
        (lambda a, b, rng: (rng.choice(rng.normal(size=8000), 8000), b), "with"),
        (lambda a, b, rng: (np.sort(a), b), "with"),
        (lambda a, b, rng: (chain(rng, 8000), b), "with"),
        (lambda a, b, rng: (b + 1, b), "with and without"),
        (lambda a, b, rng: (np.tile((a > 1)[:500], 16), b > 1), "with"),
        (lambda a, b, rng: (a[:20], b), "samples"),
        (lambda a, b, rng: ([], b), "with"),
        (lambda a, b, rng: (3, b), "with"),
        (lambda a, b, rng: ("missing.npy", b), "samples"),
        (lambda a, b, rng: ("table.parquet", b), "samples"),
    ],
)
def test_plain_misuse_is_refused(spoil, field):
    with pytest.raises(InvalidInput, check=about(field)):
        wi.audit.samples(*spoil(*draws(), np.random.default_rng(3)))


def test_worlds_that_have_a_common_output_each_are_not_called_copies():
    """Both together have two outputs as often; each alone repeats its own in long blocks."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        found = wi.audit.samples(rng.random(2000) < 0.9, rng.random(2000) < 0.1, seed=1)
        assert 1.5 < found.epsilon < math.log(9)


HONEST = {
    "floats": lambda rng, n: rng.standard_cauchy(n),
    "coins": lambda rng, n: rng.random(n) < 0.97,
    "mostly clipped": lambda rng, n: np.clip(rng.laplace(0, 1, n), -0.1, 0.1),
    "steps": lambda rng, n: rng.geometric(0.3, n) * 0.1,
    "words": lambda rng, n: rng.choice(["a", "b", "c"], n).tolist(),
    "rows": lambda rng, n: rng.normal(size=(n, 3)).round(2),
}


@pytest.mark.parametrize("kind", some(HONEST, 1))
@cases(4, 1000)
def test_honest_samples_pass_and_show_nothing(kind, count):
    def audit(run):
        rng = np.random.default_rng(run)
        return wi.audit.samples(HONEST[kind](rng, 400), HONEST[kind](rng, 400)).epsilon

    assert alarms(audit, 0.0, count) <= most_alarms(count)


AWKWARD = {
    **HONEST,
    "rare events": lambda rng, n: rng.random(n) < 0.03,
    "thirds": lambda rng, n: rng.geometric(0.3, n) / 3,
    "wide steps": lambda rng, n: 7.3 + np.rint(rng.laplace(0, 30, n)) * math.pi,
    "two columns": lambda rng, n: np.column_stack(
        [rng.geometric(0.5, n) * 0.1, rng.random(n) < 0.02]
    ),
}


@pytest.mark.parametrize("kind", AWKWARD)
@cases(15, 20_000)
def test_honest_samples_are_not_refused(kind, count):
    """A refusal has a chance of about one in a million: rare outputs and floats on a grid, too."""
    for run in range(count):
        rng = np.random.default_rng([run, count])
        pair = (read_outputs(AWKWARD[kind](rng, 400), 400) for _ in range(2))
        check_independent(*pair)


@pytest.mark.parametrize("step", [0.1, 1 / 3, math.pi])
def test_a_bootstrap_is_refused_beside_an_atom(step):
    """Half of the draws are one value, and the rest comes from few unrounded ones."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rest = rng.choice(rng.normal(size=400) * step, 400)
        drawn = np.where(rng.random(400) < 0.5, step, rest)
        with pytest.raises(InvalidInput, check=about("with")):
            wi.audit.samples(drawn, rng.normal(size=400))


def test_a_sample_with_few_unrounded_values_can_be_declared():
    rng = np.random.default_rng(1)
    values = rng.normal(size=4000)
    pair = rng.choice(values, 4000), rng.choice(values, 4000)
    with pytest.raises(InvalidInput, check=about("with")):
        wi.audit.samples(*pair)
    assert wi.audit.samples(*pair, repeats=True).epsilon < 0.2


def test_rounds_stop_when_the_claim_is_refuted():
    response = attacked.response(1.0)
    found = wi.audit.two_worlds(response, 1, 0, 100_000, seed=1, stop_at=0.5)
    assert found.samples < 30_000 and 0.5 < found.epsilon <= 1
    whole = wi.audit.two_worlds(response, 1, 0, 20_000, seed=1, stop_at=2)
    assert whole.samples == 20_000 and 0.85 < whole.epsilon <= 1


def test_rounds_share_the_samples_and_the_error():
    for samples in (40, 1000, 12_345, 10**6):
        rounds = plan_rounds(samples)
        assert sum(size for size, _ in rounds) == samples
        assert math.isclose(sum(error for _, error in rounds), 1) and min(rounds)[0] > 0


@cases(5, 1000)
def test_rounds_raise_no_false_alarm(count):
    response = attacked.response(0.3)

    def audit(run):
        return wi.audit.two_worlds(response, 1, 0, 3_000, seed=run, stop_at=0.3).epsilon

    assert alarms(audit, 0.3, count) <= most_alarms(count)


@pytest.mark.parametrize("size", [100, 400, pytest.param(3000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("share", [0.002, 0.01, 0.05])
def test_rare_outputs_that_happen_to_be_neighbours_are_honest(size, share):
    """Two of a handful of rare outputs are often close to each other."""
    rng = np.random.default_rng(4)
    for _ in range(100):
        pair = [read_outputs(rng.random(size) < share, size) for _ in "ab"]
        check_independent(*pair)
        check_memory(pair[0])
