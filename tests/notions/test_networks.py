"""Leakage over networks by message passing, against brute force over all sets of known rows."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest

import amounts
import record_oracle as records
import whosin as wi
from refusals import refused
from whosin import statistics
from whosin.errors import Unsupported
from whosin.mechanisms import Composed, Laplace
from whosin.notions import BayesianDifferentialPrivacy, network_leakage
from whosin.notions.network_leakage import measure_network_leakage, noisy_sums
from whosin.priors import MarkovChain, Network

HALF = Fraction(1, 2)


def random_nodes(rng: random.Random, n: int, m: int, width: int, zeros: float) -> list:
    """Rows with up to `width` parents; zeros, ties and probabilities down to 10^-12."""
    nodes = []
    for row in range(n):
        parents = tuple(sorted(rng.sample(range(row), rng.randint(0, min(row, width)))))
        table = {}
        for key in itertools.product(range(m), repeat=len(parents)):
            chances = records.random_distribution(rng, m, zeros)
            if rng.random() < 0.2:
                tiny = Fraction(1, 10 ** rng.randint(3, 12))
                chances = [(p + tiny) / (1 + m * tiny) for p in chances]
            table[key] = chances
        if parents and rng.random() < 0.3:
            same = rng.choice(list(table.values()))
            table = {key: rng.choice([same, chances]) for key, chances in table.items()}
        nodes.append((parents, table))
    return nodes


def random_query(rng: random.Random, n: int, m: int):
    """(mechanism, what each row's values add, the base of the noise in each coordinate)."""
    scale: Fraction = rng.choice([HALF, Fraction(1), Fraction(7, 3), Fraction(20)])
    base = math.exp(-1 / scale)
    kind = rng.choice(["sum", "weights", "histogram", "among", "twice", "windows"])
    if kind == "sum":
        return Laplace("sum", scale), [[(v,) for v in range(m)]] * n, [base]
    if kind == "weights":
        weights = [Fraction(rng.randint(-4, 4), rng.choice([1, 2])) for _ in range(m)]
        return Laplace(statistics.Sum(weights), scale), [[(w,) for w in weights]] * n, [base]
    if kind == "histogram":
        cells = [tuple(int(v == c) for c in range(m)) for v in range(m)]
        return Laplace("histogram", scale), [cells] * n, [base] * m
    if kind == "among":
        rows = rng.sample(range(n), rng.randint(1, n))
        added = [[(v * (r in rows),) for v in range(m)] for r in range(n)]
        return Laplace(statistics.Among("sum", rows), scale), added, [base]
    if kind == "twice":
        other = rng.choice([scale, Fraction(2)])
        both = Composed([Laplace("sum", scale), Laplace("sum", other)])
        return both, [[(v, v) for v in range(m)]] * n, [base, math.exp(-1 / other)]
    end = rng.randint(1, n)
    first, second = range(end), range(end - rng.randint(0, 1), n) or range(1)
    windows = [Laplace(statistics.Among("sum", first), scale)]
    windows.append(Laplace(statistics.Among("count", second), 1))
    added = [[(v * (r in first), int(v > 0) * (r in second)) for v in range(m)] for r in range(n)]
    return Composed(windows), added, [base, math.exp(-1)]


def noisy_rows(n: int, m: int, added: list, bases: list):
    """Outputs (the product grid of all centres) and their densities in each world."""
    centres = {}
    for world in records.worlds(n, m):
        sums = [
            sum((Fraction(added[r][world[r]][c]) for r in range(n)), Fraction(0))
            for c in range(len(bases))
        ]
        centres[world] = tuple(sums)
    outputs = list(
        itertools.product(*(sorted(set(axis)) for axis in zip(*centres.values(), strict=True)))
    )
    channel = {
        world: [
            math.prod(
                Fraction(base ** float(abs(o - c)))
                for base, o, c in zip(bases, output, centre, strict=True)
            )
            for output in outputs
        ]
        for world, centre in centres.items()
    }
    return outputs, channel


def check_level(level, prior: dict, n: int, outputs: list, channel: dict) -> None:
    """The level is that of all sets of known rows, and its witness replays to it."""
    truth = records.log(records.bayesian_ratio(prior, channel, n))
    assert level.exact
    assert level.value == pytest.approx(truth, abs=1e-9)
    case = level.witness
    shown = case.output if isinstance(case.output, tuple) else (case.output,)
    apart = [max(abs(float(a) - float(b)) for a, b in zip(o, shown, strict=True)) for o in outputs]
    assert min(apart) < 1e-9
    place = apart.index(min(apart))
    found = records.replayed(prior, channel, case.row, case.known, case.values, place)
    assert records.log(found) == pytest.approx(truth, abs=1e-9)


@amounts.cases(25, 1500)
def test_every_set_of_known_rows(count):
    """Connected sets of unknown rows are enough, whatever the network and the sums."""
    rng = random.Random(34)
    for _ in range(count):
        m = rng.choice([2, 2, 3])
        n = rng.randint(1, 4 if m == 2 else 3)
        nodes = random_nodes(rng, n, m, rng.choice([1, 1, 2, 3]), rng.choice([0, 0.3, 0.6]))
        mechanism, added, bases = random_query(rng, n, m)
        space = wi.Records(n, m)
        level = measure_network_leakage(
            Network(nodes).factors(space), space, noisy_sums(mechanism, space)
        )
        check_level(level, records.network(nodes, m), n, *noisy_rows(n, m, added, bases))


def test_a_chain_is_a_network():
    """Messages and windows (F13) agree on a series, and so do all releases of it."""
    chain = MarkovChain([HALF, HALF], [["0.8", "0.2"], ["0.3", "0.7"]])
    space, noisy = wi.Records(30, 2), Laplace("sum", 2)
    windows = BayesianDifferentialPrivacy(chain).measure(noisy, space)
    messages = measure_network_leakage(chain.factors(space), space, noisy_sums(noisy, space))
    assert messages.value == pytest.approx(float(windows.value), abs=1e-10)


def tree(n: int, stay: str) -> Network:
    """Each row is like its parent with probability `stay`; two children a row."""
    stays = Fraction(stay)
    table = {(0,): (stays, 1 - stays), (1,): (1 - stays, stays)}
    return Network([((), {(): (HALF, HALF)}), *((((r - 1) // 2,), table) for r in range(1, n))])


def test_the_cut_is_certified(monkeypatch):
    """With less room the bracket contains the level that is computed with more."""
    space, noisy = wi.Records(13, 2), noisy_sums(Laplace("sum", 3), wi.Records(13, 2))
    for stay in ("0.6", "0.75", "0.3"):
        factors = tree(13, stay).factors(space)
        whole = measure_network_leakage(factors, space, noisy)
        assert whole.exact
        with monkeypatch.context() as patched:
            patched.setattr(network_leakage, "MAX_MESSAGE_ENTRIES", 500)
            cut = measure_network_leakage(factors, space, noisy)
        assert not cut.exact
        assert cut.lower <= whole.value <= cut.value
        assert cut.value < 13 / 3  # what group privacy says
        assert cut.note


def test_hundreds_of_rows():
    """Trees of 255 rows: a bracket; 400 rows in families: exact, and the level of one family."""
    notion = BayesianDifferentialPrivacy(tree(255, "0.55"))
    level = notion.measure(Laplace("sum", 5), wi.Records(255, 2))
    assert 0.2 < level.lower <= level.value < 0.5
    family = [((), {(): (HALF, HALF)}), ((0,), {(0,): ("0.9", "0.1"), (1,): ("0.2", "0.8")})]
    shifted = [
        (tuple(parent + 2 * copy for parent in parents), table)
        for copy in range(200)
        for parents, table in family
    ]
    many = BayesianDifferentialPrivacy(Network(shifted))
    many = many.measure(Laplace("sum", 5), wi.Records(400, 2))
    one = BayesianDifferentialPrivacy(Network(family)).measure(Laplace("sum", 5), wi.Records(2, 2))
    assert many.exact
    assert many.value == pytest.approx(float(one.value), abs=1e-10)


def test_too_wide_a_network():
    """The refusal says the width."""
    n = 24
    nodes = [(tuple(range(max(0, r - 8), r)), None) for r in range(n)]
    rng = random.Random(1)
    filled = [
        (
            parents,
            {
                key: records.random_distribution(rng, 2, 0)
                for key in itertools.product(range(2), repeat=len(parents))
            },
        )
        for parents, _ in nodes
    ]
    notion = BayesianDifferentialPrivacy(Network(filled))
    with refused("prior", 8, hint=True, kind=Unsupported):
        notion.measure(Laplace("sum", 3), wi.Records(n, 2))


def test_probabilities_beyond_floats_are_refused():
    """A probability that floats lose is refused, not taken for 0."""
    tiny = Fraction(1, 10**150)
    nodes = [((), {(): (HALF, HALF)}), ((0,), {(0,): (tiny, 1 - tiny), (1,): (HALF, HALF)})]
    space = wi.Records(2, 2)
    query = noisy_sums(Laplace("sum", 1), space)
    with refused("prior", kind=Unsupported):
        measure_network_leakage(Network(nodes).factors(space), space, query)
