"""Joint budgets: the debits of a dataset add up to the level of all releases together."""

from __future__ import annotations

import json
import math
import random
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import pytest

import postgres
import record_oracle as records
import whosin as wi
from amounts import cases
from refusals import refused
from whosin.errors import BudgetRefused, InvalidInput
from whosin.ledger import (
    Cost,
    JointBudget,
    Spend,
    encoding,
    entries,
    store,
    transaction,
    verify,
)
from whosin.notions.reading import measure_jointly, split_releases

HALF = Fraction(1, 2)
STEP = [["0.8", "0.2"], ["0.3", "0.7"]]
MODEL = {"chain": {"initial": ["1/2", "1/2"], "transition": STEP}, "rows": 4}
ONE = {"query": "sum", "scale": 4}
FIRST = {"query": "sum", "scale": 5, "rows": [0, 1]}
GROUP = {"query": "count", "scale": 6, "rows": {"of": [1, 3]}}


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "ledger.db", who="tester") as opened:
        opened.register("days", wi.calibrate(wi.Epsilon("1.2"), wi.families.SwapOfTwo()))
        yield opened


@pytest.fixture
def running():
    with ExitStack() as stack:
        yield stack


def enumerated(releases: list[tuple[range | list, int]]) -> float:
    """The level of releases together: (rows, scale) each, by enumeration of the joint channel."""
    chain = [[Fraction(p) for p in row] for row in STEP]
    prior = records.markov([HALF, HALF], [chain] * 3)
    channel = {}
    grids = [range(len(rows) + 1) for rows, _ in releases]
    outputs: list = [()]
    for grid in grids:
        outputs = [(*output, y) for output in outputs for y in grid]
    for world in prior:
        sums = [sum(world[r] for r in rows) for rows, _ in releases]
        channel[world] = [
            Fraction(
                math.exp(
                    -sum(
                        abs(y - s) / scale
                        for y, s, (_, scale) in zip(output, sums, releases, strict=True)
                    )
                )
            )
            for output in outputs
        ]
    return records.log(records.bayesian_ratio(prior, channel, 4))


def test_debits_add_up_to_the_joint_level(ledger):
    """Equal releases, windows and groups: what was spent is the enumerated level of all of them,
    and more than the sum of levels where they grow faster."""
    budget = JointBudget(ledger, "days", MODEL)
    everyone, asked = range(4), []
    for number, (release, rows) in enumerate(
        [(ONE, everyone), (FIRST, [0, 1]), (ONE, everyone), (GROUP, [1, 3])]
    ):
        asked.append((rows, release["scale"]))
        truth = enumerated(asked)
        if truth > 1.2:
            with refused("budget", kind=BudgetRefused):
                budget.debit(release, str(number))
            asked.pop()
            continue
        budget.debit(release, str(number))
        spent = ledger.budget_state("days").spent.epsilon / encoding.EPSILON_UNITS
        assert spent == pytest.approx(truth, abs=1e-9)
    assert 2 <= len(asked) < 4
    assert len(budget.releases()) == len(asked)
    assert verify(ledger, "days").debits == len(asked)


def test_a_retry_is_paid_once_and_another_question_refused(ledger):
    budget = JointBudget(ledger, "days", MODEL)
    budget.debit(FIRST, "a")
    budget.debit(GROUP, "b")
    spent = ledger.budget_state("days").spent
    budget.debit(FIRST, "a")
    assert ledger.budget_state("days").spent == spent
    with refused("request", kind=BudgetRefused):
        budget.debit(GROUP, "a")


def test_a_release_measured_without_the_last_one_is_refused(ledger):
    """Two processes that measured at the same time: the second one has to measure again."""
    budget = JointBudget(ledger, "days", MODEL)
    state, paid = ledger.budget_state("days"), budget._paid()
    budget.debit(FIRST, "a")
    late = Spend(
        {"model": dict(budget.model), "release": GROUP},
        {"replace": Cost(1000, encoding.INFINITE_UNITS)},
        after=len(paid),
    )
    assert state.debits == 0
    with refused("request", kind=BudgetRefused):
        ledger.debit("days", "b", late)


def test_joint_levels_do_not_add_with_others(ledger):
    """Neither an ordinary answer beside joint releases, nor another model, nor the reverse."""
    budget = JointBudget(ledger, "days", MODEL)
    ordinary = Spend({"query": "count"}, {"replace": Cost.pure("0.01")})
    budget.debit(FIRST, "a")
    with refused("dataset", kind=BudgetRefused):
        ledger.debit("days", "b", ordinary)
    with refused("model", kind=BudgetRefused):
        JointBudget(ledger, "days", {**MODEL, "rows": 5}).debit(FIRST, "b")
    ledger.register("other", wi.calibrate(wi.Epsilon(1), wi.families.SwapOfTwo()))
    ledger.debit("other", "a", ordinary)
    with refused("model", kind=BudgetRefused):
        JointBudget(ledger, "other", MODEL).debit(FIRST, "b")
    ledger.register("people", wi.calibrate(wi.Epsilon(1)))
    with refused("dataset", kind=BudgetRefused):
        JointBudget(ledger, "people", MODEL).debit(FIRST, "a")


@pytest.mark.parametrize("kind", ["file", "server"])
def test_a_debit_reads_one_earlier_debit_in_its_own_transaction(
    tmp_path, monkeypatch, kind, running
):
    """However long the history is, and without a second connection, which on a server may be the
    last one that others hold while they wait for this dataset."""
    url, reads = tmp_path / "ledger.db", []
    if kind == "server":
        postgres.require()
        url = running.enter_context(postgres.server()).url
    monkeypatch.setattr(store, "MAX_SERVER_CONNECTIONS", 1)
    with wi.Ledger(url, who="tester", wait=2) as ledger:
        ledger.register("days", wi.calibrate(wi.Epsilon("1.2"), wi.families.SwapOfTwo()))
        spend = Spend({}, {"replace": Cost.pure("0.001")})
        ledger.debits("days", {f"{number}": spend for number in range(100)})
        read = entries.read_entry
        for module in (entries, transaction):
            monkeypatch.setattr(module, "read_entry", lambda row: reads.append(row) or read(row))
        ledger.debit("days", "one more", spend)
        assert len(reads) <= 3  # the last two, and one debit
        with pytest.raises(BudgetRefused, match="do not add with other answers"):
            ledger.debit("days", "joint", replace(spend, after=101))


def test_gaussian_releases_share_a_budget(ledger):
    """Two equal Gaussian releases cost what one with σ/√2 costs; a delta above the plan's is not
    what was promised."""
    plan = wi.calibrate(wi.Epsilon(3), wi.families.SwapOfTwo(), delta=1e-6)
    ledger.register("series", plan)
    model = {"gaussian": {"autoregressive": ["0.6"], "rows": 12}, "delta": 1e-6}
    budget = JointBudget(ledger, "series", model)
    release = {"weights": [1] * 12, "sigma": 8}
    budget.debit(release, "a")
    budget.debit(release, "b")
    spent = ledger.budget_state("series").spent.epsilon / encoding.EPSILON_UNITS
    narrow = {"weights": [1] * 12, "sigma": 8 / math.sqrt(2)}
    assert spent == pytest.approx(budget.level((narrow,)), rel=1e-6)
    with refused("budget", kind=BudgetRefused):
        budget.debit({"weights": [1] * 12, "sigma": 1}, "c")
    with refused("delta", kind=BudgetRefused):
        JointBudget(ledger, "series", {**model, "delta": 1e-3}).debit(release, "d")


@pytest.mark.parametrize(
    ("release", "field"),
    [
        ({"query": "median", "scale": 1}, "query"),
        ({"query": "sum"}, "scale"),
        ({"query": "sum", "scale": 1, "rows": [2, 9]}, "rows"),
        ({"query": "sum", "scale": 1, "rows": [2, 1]}, "rows"),
    ],
)
def test_bad_releases_cost_nothing(ledger, release, field):
    with pytest.raises(InvalidInput) as caught:
        JointBudget(ledger, "days", MODEL).debit(release, "a")
    assert caught.value.field == field
    assert ledger.budget_state("days").debits == 0


def test_a_model_is_needed(ledger):
    with refused("model"):
        JointBudget(ledger, "days", {"rows": 3})


# Against a family: one of m candidates, one probability for all, uninformed.


def rounded(count: int, base: int) -> int:
    return base * ((2 * count + base) // (2 * base))


def random_release(rng: random.Random, n: int):
    """(the release, its outputs, Pr[output | who is in] as a fraction, or a float with e^x)."""
    kind = rng.choice(["randomized-response", "round", "suppress", "sum", "sum", "count"])
    if kind == "randomized-response":
        keep = Fraction(rng.randint(1, 5), 6)
        outputs = list(product((0, 1), repeat=n))

        def shown(world, y):
            same = sum((i in world) == bool(bit) for i, bit in enumerate(y))
            return keep**same * (1 - keep) ** (n - same)

        return {"mechanism": kind, "keep": str(keep)}, outputs, shown
    if kind == "round":
        base = rng.choice([2, 3])
        outputs = sorted({rounded(c, base) for c in range(n + 1)})
        release = {"mechanism": kind, "base": base}
        return release, outputs, lambda world, y: Fraction(rounded(len(world), base) == y)
    if kind == "suppress":
        below = rng.randint(1, n)
        outputs = [0, None, *range(below, n + 1)]

        def seen(world, y):
            count = len(world)
            return Fraction((count if count == 0 or count >= below else None) == y)

        return {"mechanism": kind, "below": below}, outputs, seen
    weights = [rng.choice([0, 1, 1, 3, -2]) for _ in range(n)] if kind == "sum" else [1] * n
    weights = weights if any(weights) else [1] * n
    scale = rng.randint(2, 6)
    subsets = [c for k in range(n + 1) for c in combinations(range(n), k)]
    outputs = sorted({sum(weights[i] for i in subset) for subset in subsets})
    release = {"query": kind, "scale": scale}
    release |= {"weights": weights} if kind == "sum" else {}

    def noisy(world, y):
        return Fraction(math.exp(-abs(y - sum(weights[i] for i in world)) / scale))

    return release, outputs, noisy


def family_ratio(family: str, n: int, worlds, joint) -> Fraction | float:
    """The largest Pr[y | in]/Pr[y | out] over the priors of the family, from its definition."""
    worst, outputs = Fraction(1), range(len(next(iter(joint.values()))))
    name, _, number = family.partition("=")
    if name == "one-of":
        for known in worlds:
            for them in combinations(sorted(set(range(n)) - known), int(number)):
                for t, y in product(them, outputs):
                    others = [joint[known | {o}][y] for o in them if o != t]
                    mean = sum(others) / len(others)
                    worst = max(worst, records.ratio(joint[known | {t}][y], mean))
        return worst
    if name == "at-most-known":
        known, _, band = number.partition(":")
        low, high = map(Fraction, band.split(".."))
        for beliefs in product((0, low, (low + high) / 2, high, 1), repeat=n - 1):
            if sum(p in (0, 1) for p in beliefs) <= int(known):
                for t, y in product(range(n), outputs):
                    who = dict(zip(sorted(set(range(n)) - {t}), beliefs, strict=True))
                    sides = [Fraction(0), Fraction(0)]
                    for world in worlds:
                        mass = math.prod(p if o in world else 1 - p for o, p in who.items())
                        sides[t not in world] += mass * joint[world][y]
                    worst = max(worst, records.ratio(*sides))
        return worst
    beta = Fraction(number) if number else HALF
    for support in worlds if number else [frozenset(range(n))]:
        for t, y in product(support, outputs):
            sides = [Fraction(0), Fraction(0)]
            for size in range(len(support)):
                for others in combinations(sorted(support - {t}), size):
                    mass = beta**size * (1 - beta) ** (len(support) - 1 - size)
                    for side, world in enumerate((frozenset(others) | {t}, frozenset(others))):
                        sides[side] += mass * joint[world][y]
            worst = max(worst, records.ratio(*sides))
    return worst


@cases(100, 1500)
def test_releases_against_a_family_are_measured_together(count):
    """The enumerated joint channel of one to three releases: finite ones in rationals, Laplace
    noise at the product grid of its centres, each release with a coordinate of its own (F10)."""
    rng = random.Random()
    for _ in range(count):
        n = rng.randint(2, 3)
        known = f"at-most-known={rng.randint(0, n)}:{rng.choice(['1/10..2/3', '1/2..1/2'])}"
        some = ["one-of=2", f"one-of={n}", "fixed-probability=1/3", "uninformed"]
        family = rng.choice([*some, known])
        made = [
            random_release(rng, n) for _ in range(rng.choice([1, 2, 2, 3] if n == 2 else [1, 2]))
        ]
        worlds = [frozenset(c) for k in range(n + 1) for c in combinations(range(n), k)]
        joint = {
            world: [
                math.prod(
                    (shown(world, y) for y, (_, _, shown) in zip(seen, made, strict=True)),
                    start=Fraction(1),
                )
                for seen in product(*(outputs for _, outputs, _ in made))
            ]
            for world in worlds
        }
        truth = records.log(family_ratio(family, n, worlds, joint))
        found = measure_jointly({"family": family, "people": n}, [each[0] for each in made])
        assert found == pytest.approx(truth, rel=1e-9, abs=1e-9)
        assert found >= truth - 1e-12


def test_candidates_share_a_budget(tmp_path):
    """ρ = .476 twice is not .952, nor is it harmless: what is debited is the joint level, and one
    that reaches further than the plan is refused."""
    with wi.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.register("di", wi.calibrate(wi.Rho("0.8", m=3)))
        model = {"family": "one-of=3", "people": 4}
        budget = JointBudget(ledger, "di", model)
        release = {"query": "sum", "weights": [0, 1, 4, 5], "scale": 6}
        spent = []
        for number in range(2):
            budget.debit(release, str(number))
            spent.append(ledger.budget_state("di").spent.epsilon / encoding.EPSILON_UNITS)
        one = budget.level((dict(release, scale=3),))
        assert spent[1] == pytest.approx(one, rel=1e-9) and spent[1] != pytest.approx(2 * spent[0])
        with refused("budget", kind=BudgetRefused):
            budget.debit([release] * 20, "many")
        assert len(budget.releases()) == 2
        with refused("dataset", kind=BudgetRefused):  # ordinary answers beside them
            ledger.debit("di", "x", Spend({"query": "count"}, {"replace": Cost.pure("0.01")}))
        with refused("dataset", kind=BudgetRefused):  # other adversaries than the plan's
            JointBudget(ledger, "di", dict(model, family="one-of=4")).debit(release, "y")
        with refused("releases"):
            budget.debit([], "z")


def test_the_joint_question_is_kept_apart_under_add_remove(tmp_path):
    rule = {"mechanism": "randomized-response", "keep": "3/5"}
    ordinary = Spend({"query": "count"}, {"add-remove": Cost.pure("0.01")})
    with wi.Ledger(tmp_path / "ledger.db") as ledger:
        plan = wi.calibrate(wi.Gamma(3), wi.families.FixedProbability("1/3"))
        for name in ("a", "b"):
            ledger.register(name, plan)
        model = {"family": "fixed-probability=1/3", "people": 3}
        JointBudget(ledger, "a", model).debit(rule, "1")
        JointBudget(ledger, "a", model).debit(rule, "2")
        with refused("dataset", kind=BudgetRefused):
            ledger.debit("a", "3", ordinary)
        ledger.debit("b", "1", ordinary)
        with refused("model", kind=BudgetRefused):
            JointBudget(ledger, "b", model).debit(rule, "2")
        ledger.register("any", wi.calibrate(wi.Gamma(3)))
        with refused("family", kind=BudgetRefused):
            JointBudget(ledger, "any", {"family": "independent", "people": 3}).debit(rule, "1")


FEW_KNOWN = wi.families.AtMostKnown(1, "0.1", "0.9")


@pytest.mark.parametrize("kind", ["file", "server"])
def test_few_known_people_share_a_budget(tmp_path, kind, running):
    """A plan for one release holds several that are measured together, and nothing beside them."""
    url = tmp_path / "ledger.db"
    if kind == "server":
        postgres.require()
        url = running.enter_context(postgres.server()).url
    model = {"family": FEW_KNOWN.spelled, "people": 4}
    rule = {"mechanism": "round", "base": 5}
    noisy = {"query": "count", "scale": 3}
    response = {"mechanism": "randomized-response", "keep": "3/5"}
    ordinary = Spend({"query": "count"}, {"add-remove": Cost.pure("0.01")})
    with wi.Ledger(url, who="tester") as ledger:
        plan = wi.calibrate(wi.Gamma(6), FEW_KNOWN)
        for name in ("a", "b"):
            ledger.register(name, plan)
        budget = JointBudget(ledger, "a", model)
        for number, release in enumerate((response, noisy)):
            budget.debit(release, str(number))
        spent = ledger.budget_state("a").spent.epsilon / encoding.EPSILON_UNITS
        assert spent == pytest.approx(budget.level((response, noisy)))
        assert spent > budget.level((response,))
        with refused("dataset", kind=BudgetRefused):
            ledger.debit("a", "x", ordinary)
        with refused("budget", kind=BudgetRefused):
            budget.debit([noisy] * 9, "y")
        with refused("budget", kind=BudgetRefused):  # an answer of 5 gives somebody away
            budget.debit(rule, "z")
        ledger.debit("b", "1", ordinary)
        with refused("dataset", kind=BudgetRefused):
            ledger.debit("b", "2", replace(ordinary, after=1))
        assert verify(ledger, "a").debits == 2 and verify(ledger, "b").debits == 1
        failing = wi.calibrate(wi.Gamma(3), FEW_KNOWN, query="count", entities=4, delta="0.01")
        ledger.register("failing", failing)
        with refused("family", kind=BudgetRefused):
            JointBudget(ledger, "failing", model).debit(rule, "1")


def test_a_file_is_split_into_the_data_and_its_releases():
    chain = {"chain": {"initial": ["1/2", "1/2"], "transition": STEP}, "rows": 4}
    model, releases = split_releases({**chain, "query": "sum", "scale": [4, 5]})
    assert model == chain and releases == (
        {"query": "sum", "scale": 4},
        {"query": "sum", "scale": 5},
    )
    assert split_releases({**chain, "releases": [FIRST]}) == (chain, (FIRST,))
    for data, field in (({**chain, "releases": [FIRST], "scale": 3}, "scale"), (chain, "scale")):
        with refused(field):
            split_releases(data)


def test_verify_debits_a_ledger(tmp_path, run):
    """Once for one request; above the target exit 1 and nothing spent; wrong calls exit 2."""
    days, place = tmp_path / "days.json", tmp_path / "l.db"
    days.write_text(json.dumps({**MODEL, "releases": [FIRST, GROUP]}))
    assert run(f"ledger create {place} days --epsilon 1 --secret value")[0] == 0
    for new in (True, False):
        code, out, _ = run(f"verify {days} --ledger {place} --dataset days --json")
        said = json.loads(out)
        assert code == 0 and said["new"] is new and said["releases"] == 2
        truth = enumerated([([0, 1], 5), ([1, 3], 6)])
        assert said["epsilon"] == pytest.approx(truth) == said["spent"] == 1 - said["left"]
    days.write_text(json.dumps({**MODEL, "scale": 1}))
    code, _, err = run(f"verify {days} --ledger {place} --dataset days")
    assert code == 1 and "nothing was spent" in err
    for wrong in (
        f"--ledger {place}",
        f"--ledger {place} --dataset days --at-most 1",
        "--request a",
    ):
        assert run(f"verify {days} {wrong}")[0] == 2
