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
from network_cases import HALF, noisy_rows, random_nodes, random_query, tree
from refusals import refused
from whosin import statistics
from whosin.errors import Unsupported
from whosin.mechanisms import Laplace
from whosin.notions import BayesianDifferentialPrivacy, network_leakage
from whosin.notions.network_leakage import measure_network_leakage, noisy_sums
from whosin.notions.reading import read_measurement
from whosin.priors import Blocks, MarkovChain, Network
from whosin.priors.table import read_blocks


def check_level(level, prior: dict, n: int, outputs: list, channel: dict) -> None:
    """The level is that of all sets of known rows, and its witness replays to it."""
    truth = records.log(records.bayesian_ratio(prior, channel, n))
    assert level.exact or level.value < 1e-13
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
    """A tree of 63 rows: a bracket; 400 rows in families: exact, and the level of one family."""
    notion = BayesianDifferentialPrivacy(tree(63, "0.55"))
    level = notion.measure(Laplace("sum", 5), wi.Records(63, 2))
    assert 0.27 < level.lower < level.value < 0.28
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


@amounts.cases(20, 1000)
def test_brackets_hold_the_level(count, monkeypatch):
    """Where there is no room for all sets of known rows, in whatever network, zeros among its
    probabilities: the level is in the bracket, and the witness is possible and attains the lower
    end."""
    rng, brackets = random.Random(49), 0
    for _ in range(count):
        m = rng.choice([2, 2, 3])
        n = rng.randint(3, 5 if m == 2 else 4)
        nodes = random_nodes(rng, n, m, rng.choice([2, 3]), rng.choice([0, 0, 0.3]))
        mechanism, added, bases = random_query(rng, n, m)
        space = wi.Records(n, m)
        monkeypatch.setattr(network_leakage, "MAX_MESSAGE_ENTRIES", rng.choice([30, 100, 300]))
        try:
            level = measure_network_leakage(
                Network(nodes).factors(space), space, noisy_sums(mechanism, space)
            )
        except Unsupported:  # no case was found that is possible
            continue
        prior, (outputs, channel) = records.network(nodes, m), noisy_rows(n, m, added, bases)
        truth = records.log(records.bayesian_ratio(prior, channel, n))
        assert truth <= level.value + 1e-9
        if level.exact:
            continue
        brackets += 1
        assert level.lower <= truth + 1e-9
        case = level.witness
        shown = case.output if isinstance(case.output, tuple) else (case.output,)
        place = min(
            range(len(outputs)),
            key=lambda k: max(
                abs(float(a) - float(b)) for a, b in zip(outputs[k], shown, strict=True)
            ),
        )
        found = records.replayed(prior, channel, case.row, case.known, case.values, place)
        assert records.log(found) == pytest.approx(level.lower, abs=1e-9)
    assert brackets > count / 5


def test_too_wide_a_network(monkeypatch):
    """A bracket that says the width; no amount of room helps against noise that floats lose."""
    n, rng = 11, random.Random(1)
    nodes = []
    for r in range(n):
        parents = tuple(range(max(0, r - 8), r))
        keys = itertools.product(range(2), repeat=len(parents))
        nodes.append((parents, {key: records.random_distribution(rng, 2, 0) for key in keys}))
    monkeypatch.setattr(network_leakage, "MAX_MESSAGE_ENTRIES", 20_000)
    notion = BayesianDifferentialPrivacy(Network(nodes))
    level = notion.measure(Laplace("sum", 3), wi.Records(n, 2))
    assert not level.exact
    assert 1 / 3 - 1e-9 <= level.lower < level.value <= n / 3 + 1e-9 and "8" in level.note
    with refused("scale", hint=True, kind=Unsupported):
        notion.measure(Laplace("sum", Fraction(1, 500)), wi.Records(n, 2))


def test_a_grid_has_a_bracket():
    """Sixty-four rows, each like the ones above and to its left: by what touches a row."""
    nodes, size = [], 8
    for row, column in itertools.product(range(size), repeat=2):
        parents = [(row - 1) * size + column] * (row > 0) + [row * size + column - 1] * (column > 0)
        table = {}
        for values in itertools.product(range(2), repeat=len(parents)):
            like = Fraction(1, 5) + Fraction(3, 5) * Fraction(sum(values), len(values) or 1)
            one = like if values else HALF
            table[values] = (1 - one, one)
        nodes.append((tuple(parents), table))
    notion = BayesianDifferentialPrivacy(Network(nodes))
    level = notion.measure(Laplace("sum", 5), wi.Records(size**2, 2))
    assert 0.2 < level.lower < level.value < 12 and "width" in level.note


def star(rows: int) -> BayesianDifferentialPrivacy:
    stay = {(0,): ("0.8", "0.2"), (1,): ("0.2", "0.8")}
    return BayesianDifferentialPrivacy(
        Network([((), {(): (HALF, HALF)}), *[((0,), stay)] * (rows - 1)])
    )


@pytest.mark.parametrize("rows", [20, pytest.param(100, marks=pytest.mark.soak)])
def test_a_star_of_many_rows_is_exact(rows):
    """The worst case is the middle, with every leaf unknown."""
    level = star(rows).measure(Laplace("sum", 20), wi.Records(rows, 2))
    leaf = math.log1p(0.8 * math.expm1(1 / 20)) - math.log1p(0.2 * math.expm1(1 / 20))
    assert level.exact and level.value == pytest.approx(1 / 20 + (rows - 1) * leaf)


def test_a_star_without_room_has_a_bracket(monkeypatch):
    """Everyone else known, or all rows changed: all that is known where a row has that many
    neighbours, and what has no room is tried once and not from each of them."""
    rows = 20
    monkeypatch.setattr(network_leakage, "MAX_MESSAGE_ENTRIES", 3000)
    made, make = [], network_leakage.NetworkSearch._make_message
    monkeypatch.setattr(
        network_leakage.NetworkSearch,
        "_make_message",
        lambda *given: (made.append(given), make(*given))[1],
    )
    level = star(rows).measure(Laplace("sum", 20), wi.Records(rows, 2))
    assert not level.exact and level.lower >= 1 / 20 - 1e-12
    assert level.value == pytest.approx(rows / 20)
    assert len(made) < 10


def test_probabilities_beyond_floats_are_refused():
    """A probability that floats lose is refused, not taken for 0."""
    tiny = Fraction(1, 10**150)
    nodes = [((), {(): (HALF, HALF)}), ((0,), {(0,): (tiny, 1 - tiny), (1,): (HALF, HALF)})]
    space = wi.Records(2, 2)
    query = noisy_sums(Laplace("sum", 1), space)
    with refused("prior", kind=Unsupported):
        measure_network_leakage(Network(nodes).factors(space), space, query)


@amounts.cases(15, 1000)
def test_households(count):
    """Blocks with a common cause: the level is that of all sets of known rows."""
    rng = random.Random(35)
    for _ in range(count):
        people = list(range(rng.randint(1, 5)))
        rng.shuffle(people)
        cut = rng.randint(0, len(people) - 1)
        groups = [group for group in (people[:cut], people[cut:]) if group]
        shares = records.random_distribution(rng, rng.randint(1, 3), 0.2)
        causes = [
            (share, rng.choice([0, 1, HALF, Fraction(rng.randint(1, 99), 100)])) for share in shares
        ]
        n, space = len(people), wi.Records(len(people), 2)
        prior = {}
        for world in records.worlds(n, 2):
            prior[world] = math.prod(
                sum(
                    share * math.prod(p if world[who] else 1 - p for who in group)
                    for share, p in causes
                )
                for group in groups
            )
        scale = rng.choice([HALF, Fraction(1), Fraction(3)])
        level = measure_network_leakage(
            Blocks.common_cause(groups, causes).factors(space),
            space,
            noisy_sums(Laplace("count", scale), space),
        )
        added = [[(0,), (1,)]] * n
        check_level(level, prior, n, *noisy_rows(n, 2, added, [math.exp(-1 / scale)]))


def random_pedigree(rng: random.Random, n: int) -> dict:
    """People with parents among those before them, fathers even and mothers odd."""
    people: dict = {}
    for person in range(n):
        fathers, mothers = [p for p in people if not p % 2], [p for p in people if p % 2]
        people[person] = (
            rng.choice([None, *fathers, *fathers]),
            rng.choice([None, *mothers, *mothers]),
        )
    return people


def transmissions(people: dict, frequency: Fraction) -> dict:
    """Pr[genotypes] by enumeration of which allele each child receives (Mendel), from nothing but
    independent alleles of founders."""
    drawn = [(who, side) for who, both in people.items() for side in (0, 1) if both[side] is None]
    passed = [
        (who, side) for who, both in people.items() for side in (0, 1) if both[side] is not None
    ]
    result: dict = {}
    for alleles in itertools.product((0, 1), repeat=len(drawn)):
        weight = math.prod(frequency if a else 1 - frequency for a in alleles)
        for picks in itertools.product((0, 1), repeat=len(passed)):
            own = dict(zip(drawn, alleles, strict=True))
            chosen = dict(zip(passed, picks, strict=True))
            for who, both in people.items():
                for side in (0, 1):
                    if both[side] is not None:
                        own[who, side] = own[both[side], chosen[who, side]]
            world = tuple(own[who, 0] + own[who, 1] for who in people)
            result[world] = result.get(world, Fraction(0)) + weight / 2 ** len(passed)
    return {w: result.get(w, Fraction(0)) for w in records.worlds(len(people), 3)}


@amounts.cases(8, 1000)
def test_pedigrees(count):
    """A pedigree as a network is Mendel's law, and its level that of all sets of known rows."""
    rng = random.Random(36)
    for _ in range(count):
        n = rng.randint(1, 4)
        people = random_pedigree(rng, n)
        frequency = rng.choice([HALF, Fraction(1, 10), Fraction(1, 1000), Fraction(0), Fraction(1)])
        space, network = wi.Records(n, 3), Network.pedigree(people, frequency)
        prior = transmissions(people, frequency)
        assert [Fraction(str(p)) for p in network.on_records(space, Fraction)] == list(
            prior.values()
        )
        scale = rng.choice([Fraction(1), Fraction(4)])
        level = measure_network_leakage(
            network.factors(space), space, noisy_sums(Laplace("sum", scale), space)
        )
        added = [[(0,), (1,), (2,)]] * n
        check_level(level, prior, n, *noisy_rows(n, 3, added, [math.exp(-1 / scale)]))


@pytest.mark.parametrize(
    ("epsilon", "sibling"),
    [(math.log(2), 1.543), (math.log(3), 1.568), (math.log(9), 1.631), (math.log(27), 1.686)],
)
def test_relatives_meet_their_figures(epsilon, sibling):
    """F31: a parent or child adds ε/2, both parents ε, and a sibling what its table says (the
    supremum is over rare alleles)."""

    def leakage(people: dict, rows: list[int], frequency: Fraction = Fraction(1, 10)) -> float:
        notion = BayesianDifferentialPrivacy(Network.pedigree(people, frequency))
        noisy = Laplace(statistics.Among("sum", rows), 2 / epsilon)
        return float(notion.measure(noisy, wi.Records(len(people), 3)).value) / epsilon

    trio = {"f": (None, None), "m": (None, None), "c": ("f", "m")}
    assert leakage({"f": (None, None), "c": ("f", None)}, [0, 1]) == pytest.approx(1.5)
    assert leakage(trio, [0, 1, 2]) == pytest.approx(2)
    rare = leakage({**trio, "d": ("f", "m")}, [2, 3], Fraction(1, 10**6))
    assert rare == pytest.approx(sibling, abs=6e-4)


BAD_PEDIGREES = {
    "a loop": ({"a": ("b", None), "b": ("a", None)}, "parents of a"),
    "two fathers": ({"f": (None, None), "c": ("f", None), "d": (None, "f")}, "parents of d"),
    "a child first": ({"c": ("f", None), "f": (None, None)}, "parents of c"),
    "someone else": ({"c": ("x", None)}, "parents of c"),
    "three parents": ({"c": (None, None, None)}, "parents of c"),
}


@pytest.mark.parametrize("name", BAD_PEDIGREES)
def test_pedigrees_that_cannot_be(name):
    people, field = BAD_PEDIGREES[name]
    with refused(field):
        Network.pedigree(people, HALF)


def test_files():
    """Networks, pedigrees and households from files are those of Python."""
    trio = {"gf": [], "m": [], "c": ["gf", "m"]}
    data = {"pedigree": {"frequency": "1/10", "people": trio}, "scale": 2}
    notion, mechanism, space = read_measurement(data)
    own = Network.pedigree({"gf": (None, None), "m": (None, None), "c": ("gf", "m")}, "1/10")
    same = BayesianDifferentialPrivacy(own).measure(Laplace("sum", 2), wi.Records(3, 3))
    assert notion.measure(mechanism, space).value == same.value
    rows = [{"given": {"": ["1/2", "1/2"]}}]
    rows.append({"parents": [0], "given": {"0": ["0.9", "0.1"], "1": ["0.2", "0.8"]}})
    notion, mechanism, space = read_measurement({"network": rows, "scale": 1})
    chain = Network(
        [((), {(): (HALF, HALF)}), ((0,), {(0,): ("0.9", "0.1"), (1,): ("0.2", "0.8")})]
    )
    same = BayesianDifferentialPrivacy(chain).measure(Laplace("sum", 1), wi.Records(2, 2))
    assert notion.measure(mechanism, space).value == same.value
    causes = [{"probability": "0.1", "present": "0.8"}, {"probability": "0.9", "present": "0.05"}]
    blocks, people = read_blocks({"blocks": [{"size": 2, "copies": 2, "causes": causes}]})
    wanted = Blocks.common_cause([(0, 1), (2, 3)], [("0.1", "0.8"), ("0.9", "0.05")])
    assert people == 4
    assert blocks.tables() == wanted.tables()
    for wrong, field in (
        ({"network": [{"given": {"x": [1]}}]}, "given of row 0"),
        ({"network": [{"given": {"": ["1/2", "1/2"]}}, {"given": {"": [1]}}]}, "network"),
        ({"pedigree": {"frequency": 2, "people": {"a": []}}}, "frequency"),
        ({"pedigree": {"frequency": "1/2", "people": {"a": ["b"]}}}, "parents of a"),
    ):
        with refused(field):
            read_measurement(wrong | {"scale": 1})
