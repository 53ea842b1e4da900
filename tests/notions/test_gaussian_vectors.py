"""Gaussian vectors and series with Gaussian noise, against conditioning in exact rationals."""

from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction

import pytest

import amounts
from refusals import refused
from whosin.notions import GaussianRelease, gaussian_leakage, measure_gaussian_leakage
from whosin.notions.gaussian_leakage import epsilon_of_separation
from whosin.priors import GaussianVector


def solve(matrix: list, right: list) -> list:
    """matrix⁻¹ · right (a list of columns' entries by row), by elimination in rationals."""
    n = len(matrix)
    rows = [[*map(Fraction, matrix[r]), *map(Fraction, right[r])] for r in range(n)]
    for column in range(n):
        pivot = next(r for r in range(column, n) if rows[r][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for other in range(n):
            if other != column and rows[other][column]:
                factor = rows[other][column]
                pairs = zip(rows[other], rows[column], strict=True)
                rows[other] = [x - factor * y for x, y in pairs]
    return [row[n:] for row in rows]


def conditional(cov: list, kept: list[int], given: list[int]) -> list:
    """The covariance of some coordinates given others."""
    base = [[cov[a][b] for b in kept] for a in kept]
    if not given:
        return base
    across = [[cov[a][b] for b in kept] for a in given]
    solved = solve([[cov[a][b] for b in given] for a in given], across)
    return [
        [
            base[a][b] - sum(across[g][a] * solved[g][b] for g in range(len(given)))
            for b in range(len(kept))
        ]
        for a in range(len(kept))
    ]


def squared_separation(
    sigma: list, weights: list, variances: list, row: int, known: list
) -> Fraction:
    """(mean of y moved by x_row = 1)ᵀ Var(y | x_row, known)⁻¹ (the same), from the definition."""
    n, k = len(sigma), len(weights)
    cross = [[sum(w[j] * sigma[j][i] for j in range(n)) for i in range(n)] for w in weights]
    noisy = [
        [
            sum(cross[a][j] * weights[b][j] for j in range(n)) + (variances[a] if a == b else 0)
            for b in range(k)
        ]
        for a in range(k)
    ]
    joint = [[*sigma[i], *(cross[a][i] for a in range(k))] for i in range(n)]
    joint += [[*cross[a], *noisy[a]] for a in range(k)]
    outputs = list(range(n, n + k))
    both = conditional(joint, [row, *outputs], known)
    moved = [[both[0][1 + a] / both[0][0]] for a in range(k)]
    left = conditional(joint, outputs, [row, *known])
    return sum(m[0] * s[0] for m, s in zip(moved, solve(left, moved), strict=True))


def random_case(rng: random.Random):
    """A covariance with zeros, ties and ratios up to 10^6, and one to three releases."""
    n = rng.randint(1, 5)
    root = [
        [Fraction(rng.choice([0, 0, 1, -1, rng.randint(-9, 9)])) for _ in range(n)]
        for _ in range(n)
    ]
    small = Fraction(1, rng.choice([1, 10, 1000]))
    scale = [Fraction(rng.choice([1, 1, 1, 30])) for _ in range(n)]
    sigma = [
        [
            scale[a]
            * scale[b]
            * (sum(x * y for x, y in zip(root[a], root[b], strict=True)) + small * (a == b))
            for b in range(n)
        ]
        for a in range(n)
    ]
    k = rng.randint(1, 3)
    weights = [[Fraction(rng.choice([0, 1, 1, 1, -1, 2])) for _ in range(n)] for _ in range(k)]
    if k > 1 and rng.random() < 0.4:
        weights[1] = weights[0]
    deviations = [
        rng.choice([Fraction(1, 2), Fraction(1), Fraction(5), Fraction(40)]) for _ in range(k)
    ]
    return sigma, weights, deviations


@amounts.cases(20, 1500)
def test_every_set_of_known_rows(count):
    """The worst separation over rows and sets of known rows, of all releases together."""
    rng = random.Random(37)
    for _ in range(count):
        sigma, weights, deviations = random_case(rng)
        n = len(sigma)
        variances = [s * s for s in deviations]
        cases = [
            squared_separation(sigma, weights, variances, row, list(known))
            for row in range(n)
            for size in range(n)
            for known in itertools.combinations([r for r in range(n) if r != row], size)
        ]
        truth = math.sqrt(max(cases))
        releases = [GaussianRelease(w, s) for w, s in zip(weights, deviations, strict=True)]
        found = measure_gaussian_leakage(GaussianVector(sigma), releases, "1e-6")
        assert found.exact
        assert found.separation == pytest.approx(truth, rel=1e-6, abs=1e-9)
        known = [r for r in range(n) if r not in (*found.unknown, found.row)]
        replayed = squared_separation(sigma, weights, variances, found.row, known)
        assert math.sqrt(replayed) == pytest.approx(truth, rel=1e-6, abs=1e-9)


def test_branches_that_run_out_bracket_the_level(monkeypatch):
    """With fewer branches the bracket contains the level, and says that it is one."""
    series = GaussianVector.autoregressive(["0.5", "0.3"], 40)
    release = [GaussianRelease([1] * 40, 5)]
    whole = measure_gaussian_leakage(series, release, "1e-6")
    monkeypatch.setattr(gaussian_leakage, "MAX_BRANCHES", 60)
    cut = measure_gaussian_leakage(series, release, "1e-6")
    assert whole.exact
    assert not cut.exact
    assert cut.lower <= whole.epsilon <= cut.epsilon


def test_series():
    """AR(1): autocovariances φ^k/(1 − φ²); no coefficient: independent rows leak what DP says."""
    series = GaussianVector.autoregressive(["0.6"], 4)
    assert series.matrix[0] == pytest.approx([0.6**k / (1 - 0.36) for k in range(4)])
    plain = measure_gaussian_leakage(
        GaussianVector.autoregressive([], 50), [GaussianRelease([1] * 50, 4)], "1e-6"
    )
    assert plain.separation == pytest.approx(1 / 4)
    assert plain.epsilon == pytest.approx(epsilon_of_separation(0.25, 1e-6), rel=1e-6)


def test_separation_and_failure_probability():
    """ε at δ solves the profile of two normal distributions (Balle and Wang 2018, Theorem 8)."""

    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    for separation, delta in ((0.2, 1e-6), (1.0, 1e-3), (3.0, 1e-9)):
        epsilon = epsilon_of_separation(separation, delta)
        first = below(separation / 2 - epsilon / separation)
        failing = first - math.exp(epsilon) * below(-separation / 2 - epsilon / separation)
        assert failing == pytest.approx(delta, rel=1e-6)
        assert failing <= delta


def test_two_releases_are_one_with_less_noise():
    """Two equal releases are one with σ/√2, and two halves of a series are measured jointly."""
    series = GaussianVector.autoregressive(["0.7"], 20)
    twice = measure_gaussian_leakage(series, [GaussianRelease([1] * 20, 6)] * 2, "1e-6")
    once = measure_gaussian_leakage(series, [GaussianRelease([1] * 20, 6 / math.sqrt(2))], "1e-6")
    assert twice.epsilon == pytest.approx(once.epsilon, rel=1e-8)
    halves = [GaussianRelease([int(r < 10) for r in range(20)], 6)]
    one = measure_gaussian_leakage(series, halves, "1e-6")
    halves.append(GaussianRelease([int(r >= 10) for r in range(20)], 6))
    both = measure_gaussian_leakage(series, halves, "1e-6")
    assert one.epsilon < both.epsilon < twice.epsilon


BAD_INPUT = {
    "not positive": (lambda: GaussianVector([[1, 2], [2, 1]]), "covariance"),
    "no variance": (lambda: GaussianVector([[1, 1], [1, 1]]), "covariance"),
    "not symmetric": (lambda: GaussianVector([[1, 0], ["1/2", 1]]), "covariance"),
    "not square": (lambda: GaussianVector([[1, 0]]), "covariance"),
    "not stationary": (lambda: GaussianVector.autoregressive([1], 5), "coefficients"),
    "no innovation": (lambda: GaussianVector.autoregressive(["0.5"], 5, 0), "innovation"),
    "no noise": (lambda: GaussianRelease([1], 0), "sigma"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input(name):
    call, field = BAD_INPUT[name]
    with refused(field):
        call()


def test_bad_questions():
    vector = GaussianVector([[1]])
    for releases, delta, field in (
        ([GaussianRelease([1], 1)], 0, "delta"),
        ([], "1e-6", "releases"),
        ([GaussianRelease([1, 1], 1)], "1e-6", "weights"),
    ):
        with refused(field):
            measure_gaussian_leakage(vector, releases, delta)


def test_a_file_is_measured_without_a_ledger(tmp_path, run):
    """What `verify` says of a file is what its releases leak in Python, and claims have codes."""
    file = tmp_path / "series.json"
    data = {"gaussian": {"autoregressive": ["0.6"], "rows": 5}, "delta": 1e-6}
    data["releases"] = [{"weights": [1] * 5, "sigma": 9}, {"weights": [1, 1, 0, 0, 0], "sigma": 6}]
    file.write_text(json.dumps(data), encoding="utf-8")
    series = GaussianVector.autoregressive(["0.6"], 5)
    listed = [GaussianRelease(each["weights"], each["sigma"]) for each in data["releases"]]
    leak = measure_gaussian_leakage(series, listed, "1e-6")
    code, out, _err = run(f"verify {file} --json")
    said = json.loads(out)
    assert (code, said["value"], said["row"]) == (0, leak.epsilon, leak.row)
    assert said["unknown"] == list(leak.unknown) and said["exact"] is leak.exact
    assert run(f"verify {file} --at-most {leak.epsilon + 0.001}")[0] == 0
    code, out, _err = run(f"verify {file} --at-most {leak.epsilon - 0.001}")
    assert code == 1 and "refuted" in out
    assert run(f"verify {file} --notion dp")[0] == 2
    file.write_text(json.dumps({**data, "releases": []}), encoding="utf-8")
    assert run(f"verify {file}")[0] == 2
