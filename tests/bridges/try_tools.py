"""Read budgets and accountants of other tools themselves, each in an environment of its own.

Run by `make bridges`; not part of `make test`, since some of the packages are gigabytes. A tool
that cannot be installed is reported, and the exit code is 1.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".bench"
HEAD = "import math\nfrom importlib.metadata import version\nfrom whosin.bridges import read\n"

TOOLS: dict[str, tuple[str, str]] = {
    "opacus": (
        "opacus",
        """
from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant
for kind in (RDPAccountant, PRVAccountant):
    accountant = kind()
    accountant.history = [(1.1, 0.01, 1000)]
    told = read(accountant, delta="1e-5")
    assert float(told.epsilon) == float(accountant.get_epsilon(delta=1e-5)) > 0
""",
    ),
    "riskcal": (
        "riskcal",
        """
from riskcal.accountants import CTDAccountant
accountant = CTDAccountant()
accountant.history = [(1.1, 0.01, 1000)]
told = read(accountant, delta="1e-5")
assert float(told.epsilon) == float(accountant.get_epsilon(delta=1e-5)) > 0
""",
    ),
    "jax_privacy": (
        "jax-privacy",
        """
from jax_privacy import accounting
config = accounting.RdpAccountantConfig()
accountant = accounting.DpsgdTrainingAccountant(dp_accountant_config=config)
params = accounting.DpParams(num_samples=10000, batch_size=100, noise_multipliers=1.1, delta=1e-5)
told = read(accountant, updates=1000, parameters=params)
assert float(told.epsilon) == float(accountant.compute_epsilon(1000, params)) > 0
""",
    ),
    "pipeline_dp": (
        "pipeline-dp",
        """
import pipeline_dp
told = read(pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6))
assert told.epsilon == 1 and float(told.delta) == 1e-6
""",
    ),
    "smartnoise": (
        "smartnoise-sql",
        """
import snsql
from snsql.sql.odometer import OdometerHeterogeneous
privacy = snsql.Privacy(epsilon=1.0, delta=1e-5)
assert read(privacy).epsilon == 1
odometer = OdometerHeterogeneous(privacy)
odometer.spend()
odometer.spend()
told = read(odometer)
assert (float(told.epsilon), float(told.delta)) == tuple(map(float, odometer.spent))
""",
    ),
    "tumult": (
        "tmlt.analytics",
        """
import tmlt.analytics as analytics
assert read(analytics.PureDPBudget(2)).epsilon == 2
told = read(analytics.ApproxDPBudget(1, 1e-6))
assert told.epsilon == 1 and float(told.delta) == 1e-6
assert float(read(analytics.RhoZCDPBudget(0.5)).rho) == 0.5
assert read(analytics.RhoZCDPBudget(0.5), delta="1e-6").epsilon < 10
""",
    ),
    "qif": (
        "qif==1.6.0",
        """
import random
import numpy as np, qif
import whosin as wi
rng = random.Random(0)
for _ in range(200):
    worlds, outputs, guesses = rng.randint(2, 8), rng.randint(1, 6), rng.randint(1, 5)
    draw = lambda n: [max(0, rng.random() - 0.2) for _ in range(n - 1)] + [0.1 + rng.random()]
    table = np.array([draw(outputs) for _ in range(worlds)])
    table /= table.sum(axis=1, keepdims=True)
    prior = np.array(draw(worlds))
    prior /= prior.sum()
    gain = np.array([draw(worlds) for _ in range(guesses)])
    channel = wi.Channel(wi.Records(1, worlds), table)
    belief = wi.priors.Table(prior.tolist())
    for form, theirs in (
        ("multiplicative", qif.measure.g_vuln.mult_leakage),
        ("additive", qif.measure.g_vuln.add_leakage),
    ):
        ours = wi.notions.Leakage(gain.tolist(), belief, form).measure(channel)
        value = theirs(gain, prior, table)
        assert math.isclose(float(ours.value), value, rel_tol=1e-9, abs_tol=1e-9)
    most = wi.notions.MaximalLeakage().measure(channel)
    capacity = qif.measure.bayes_vuln.mult_capacity(table)
    assert math.isclose(math.exp(most.value), capacity, rel_tol=1e-9)
    one = wi.notions.Leakage("identity", belief).measure(channel)
    theirs = qif.measure.bayes_vuln.mult_leakage(prior, table)
    assert math.isclose(float(one.value), theirs, rel_tol=1e-9)
""",
    ),
}


def tried(name: str) -> bool:
    package, script = TOOLS[name]
    place = HOME / f"bridge-{name}"
    python = place / "bin" / "python"
    try:
        if not (place / ".installed").exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            install = [str(python), "-m", "pip", "install", "--quiet", package, "-e", str(ROOT)]
            subprocess.run(install, check=True)
            (place / ".installed").touch()
        said = f"print({name!r}, version({package.partition('==')[0]!r}))\n"
        subprocess.run([str(python), "-c", HEAD + script + said], check=True)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"{name}: {error.__class__.__name__}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    results = [tried(name) for name in sys.argv[1:] or TOOLS]  # all of them, whatever fails
    sys.exit(not all(results))
