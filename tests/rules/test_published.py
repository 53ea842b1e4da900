"""What a published table says of people: against sums over all integer tables (F23)."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import whosin as wi
from amounts import cases
from command import Result, refused
from refusals import refused as refused_input
from tables_oracle import brute
from whosin.rules import Publication, check_published, posteriors, table_sums
from whosin.rules.publication import read_rule, read_table

F = Fraction
OWN = wi.rules.FromTable([[max(F(0), 1 - abs(F(c, 4) - o)) for o in range(7)] for c in range(24)])
CHAIN = wi.mechanisms.PostProcessed(wi.rules.Suppress(2), wi.rules.Round(3))
RULES: list[Any] = [
    None, wi.rules.Exact(), wi.rules.Suppress(3), wi.rules.Suppress(2, "hidden"),
    wi.rules.Round(3), wi.rules.RandomRound(3),
    wi.rules.CellKey({0: {0: 1}, 1: {-1: "1/4", 0: "1/2", 1: "1/4"}}), OWN, CHAIN,
]  # fmt: skip
HIDDEN = "suppressed"


def spread(rule: Any, count: int) -> list[tuple[Any, Any]]:
    """What is shown for a count, from the definitions."""
    if rule is CHAIN:
        return [(HIDDEN if count == 1 else (2 * count + 3) // 6 * 3, 1)]
    return [(output, wi.exact.rational(p)) for output, p in rule.spread(count)]


def likelihood(rule: Any, secondary: bool, shown: int | None, count: int) -> Fraction:
    if rule is None:
        return F(shown is None or shown == count)
    if shown is None and secondary:
        return F(1)
    wanted = HIDDEN if shown is None else shown
    return sum((F(p) for output, p in spread(rule, count) if output == wanted), F(0))


def lines(rows: int, columns: int, shape: tuple[int, int]) -> Iterator[tuple[int, int, list[int]]]:
    """Where each number stands, and the cells that it counts, from the definition."""
    for row in range(rows + shape[0]):
        for column in range(columns + shape[1]):
            over = range(rows) if row == rows else [row]
            across = range(columns) if column == columns else [column]
            yield row, column, [r * columns + c for r in over for c in across]


class Case:
    """A random publication of a small table."""

    def __init__(self, rng: random.Random) -> None:
        self.rows, self.columns = rng.choice([(1, 3), (2, 2), (2, 3), (1, 4), (3, 2)])
        many = self.rows * self.columns
        self.sizes = [rng.randrange(0, 4) for _ in range(many)]
        self.known = [rng.randrange(n + 1) if rng.random() < 0.2 else 0 for n in self.sizes]
        self.prior = rng.choice([F(1, 10), F(1, 2), F(3, 4), F(1, 3)])
        self.rule = rng.choice(RULES)
        self.secondary = isinstance(self.rule, wi.rules.Suppress) and rng.random() < 0.4
        self.shape = rng.randrange(2), rng.randrange(2)
        if isinstance(self.rule, wi.rules.CellKey):  # counted totals are refused
            self.shape = 0, 0
        counts = [
            k + sum(rng.random() < self.prior for _ in range(n - k))
            for n, k in zip(self.sizes, self.known, strict=True)
        ]
        width = self.columns + self.shape[1]
        self.cells: list[list[int | None]] = [[] for _ in range(self.rows + self.shape[0])]
        self.places = list(lines(self.rows, self.columns, self.shape))
        for row, _, members in self.places:
            single = len(members) == 1
            count = sum(counts[cell] for cell in members)
            self.cells[row].append(self.show(count, single, rng))
        assert all(len(row) == width for row in self.cells)

    def show(self, count: int, single: bool, rng: random.Random) -> int | None:
        if self.rule is None:
            return None if single and rng.random() < 0.5 else count
        outputs, weights = zip(*spread(self.rule, count), strict=True)
        shown = rng.choices(outputs, [float(weight) for weight in weights])[0]
        if shown == HIDDEN or (self.secondary and rng.random() < 0.3):
            return None
        return int(shown)

    def nested(self, flat: Sequence[Any]) -> list[list[Any]]:
        width = self.columns
        return [list(flat[start : start + width]) for start in range(0, len(flat), width)]

    def fits(self, counts: Sequence[int]) -> Fraction:
        weight = F(1)
        for row, column, members in self.places:
            count = sum(counts[cell] for cell in members)
            weight *= likelihood(self.rule, self.secondary, self.cells[row][column], count)
        return weight

    def answer(self) -> list[Any]:
        found = posteriors(
            self.cells, self.nested(self.sizes), self.prior, rule=self.rule,
            secondary=self.secondary, known_in=self.nested(self.known),
        )  # fmt: skip
        return [value for row in found for value in row]


@cases(60, 2000)
def test_posteriors_equal_a_sum_over_all_tables(count):
    rng, moved = random.Random(1), 0
    for _ in range(count):
        case = Case(rng)
        truth = brute(case.sizes, case.known, case.prior, case.fits)
        assert case.answer() == truth, vars(case)
        moved += any(value != case.prior for value in truth)
    assert moved > 0.8 * count


def test_floats_agree_with_whole_numbers(monkeypatch):
    rng = random.Random(2)
    for _ in range(25):
        case = Case(rng)
        exact = case.answer()
        with monkeypatch.context() as patch:
            patch.setattr(table_sums, "MAX_EXACT_LINES", -1)
            patch.setattr(table_sums, "MAX_EXACT_GROUP_COUNTS", rng.choice([0, 3000]))
            assert case.answer() == pytest.approx([float(value) for value in exact], abs=1e-9)


def test_bounds_hold_where_the_sum_does_not_fit(monkeypatch):
    rng, bounded = random.Random(3), 0
    for _ in range(50):
        case = Case(rng)
        exact = case.answer()
        with monkeypatch.context() as patch:
            patch.setattr(table_sums, "MAX_TABLE_LINES", 2)
            patch.setattr(table_sums, "MAX_SUMMED_COUNTS", rng.choice([1, 200_000]))
            made = Publication(
                case.cells, case.nested(case.sizes), case.rule, secondary=case.secondary
            )
            known = case.nested(case.known)
            for finding, truth in zip(
                check_published(made, case.prior, known_in=known), exact, strict=True
            ):
                bounded += finding.bound
                assert finding.posterior >= truth if finding.bound else finding.posterior == truth
    assert bounded > 20


KEYS = 3
BY_KEY = wi.rules.CellKey({0: {0: 1}, 1: dict.fromkeys((-1, 0, 1), F(1, KEYS))})


def changed(people: Sequence[int]) -> int:
    """What is shown for people with these keys, from the definition: keys add up to the cell's."""
    return len(people) + (sum(people) % KEYS - 1 if people else 0)


def test_cell_keys_are_refused_where_their_changes_are_no_draws_of_their_own():
    """Keys of records, enumerated: totals and a second table tell far more than draws would."""
    worlds: dict[tuple[int, int], list[int]] = {}
    for stayed in product((None, *range(KEYS)), repeat=3):
        for leaver in (None, *range(KEYS)):
            people = [key for key in stayed if key is not None]
            before = changed([*people, leaver] if leaver is not None else people)
            inside = worlds.setdefault((before, changed(people)), [0, 0])
            # A key is as likely as not to be there, and then each of them.
            inside[leaver is not None] += KEYS ** (sum(key is None for key in (*stayed, leaver)))
    assert worlds[2, 1][0] == 0 < worlds[2, 1][1]  # who left was in, for certain
    then = Publication([2], [4], BY_KEY)
    with refused_input("before"):
        check_published(Publication([1], [3], BY_KEY), F(1, 2), then)
    for rule in (BY_KEY, wi.mechanisms.PostProcessed(BY_KEY, wi.rules.Round(2))):
        with refused_input("totals", "counted"):
            posteriors([4, 0, 4], [6, 2], F(1, 2), rule=rule)
        for totals in ("exact", "added"):
            posteriors([4, 0, 4], [6, 2], F(1, 2), rule=rule, totals=totals)
        posteriors([4, 0], [6, 2], F(1, 2), rule=rule)


def test_two_tables_are_one_publication_of_both():
    """Those who left or joined are cells of their own."""
    rng = random.Random(4)
    for _ in range(50):
        rule = rng.choice([rule for rule in RULES if not isinstance(rule, wi.rules.CellKey)])
        prior = rng.choice([F(1, 4), F(1, 2)])
        sizes = [(rng.randrange(4), rng.randrange(3), rng.randrange(3)) for _ in range(2)]
        sizes = [(s, 0, j) if rng.random() < 0.5 else (s, left, 0) for s, left, j in sizes]
        flat = [size for parts in sizes for size in parts]
        counts = [sum(rng.random() < prior for _ in range(size)) for size in flat]

        def shown(values: Sequence[int], rule: Any = rule) -> list[Any]:
            values = [*values, sum(values)]
            if rule is None:
                return [None if rng.random() < 0.3 else value for value in values[:2]] + values[2:]
            drawn = []
            for value in values:
                outputs, weights = zip(*spread(rule, value), strict=True)
                drawn.append(rng.choices(outputs, [float(weight) for weight in weights])[0])
            return [None if value == HIDDEN else value for value in drawn]

        def both(c: Sequence[int]) -> tuple[list[int], list[int]]:
            return [c[0] + c[1], c[3] + c[4]], [c[0] + c[2], c[3] + c[5]]

        then, now = map(shown, both(counts))

        def fits(c: Sequence[int], then: Any = then, now: Any = now, rule: Any = rule) -> Fraction:
            weight = F(1)
            for values, seen in zip(both(c), (then, now), strict=True):
                for value, output in zip([*values, sum(values)], seen, strict=True):
                    weight *= likelihood(rule, False, output, value)
            return weight

        truth = brute(flat, [0] * 6, prior, fits)
        found = check_published(
            Publication(now, [s + j for s, _, j in sizes], rule), prior,
            Publication(then, [s + left for s, left, _ in sizes], rule),
        )  # fmt: skip
        names = ("stayed", "left", "joined")
        for each in found:
            assert each.posterior == truth[3 * each.column + names.index(each.people)]


def one_moves(rng: random.Random) -> tuple[Any, Any, Any, Any, int, int, bool]:
    """A table and its people, without and with one more person of some cell, who may be in."""
    rows, columns = rng.choice([(2, 2), (3, 4), (1, 5)])
    few = [[rng.randrange(6, 40) for _ in range(columns)] for _ in range(rows)]
    people = [[3 * count for count in row] for row in few]
    row, column, inside = rng.randrange(rows), rng.randrange(columns), rng.random() < 0.5
    many, more = [list(each) for each in few], [list(each) for each in people]
    many[row][column] += inside
    more[row][column] += 1
    return few, people, many, more, row, column, inside


@pytest.mark.parametrize("way", ["left", "joined"])
def test_one_person_between_two_tables_is_found(way):
    """Counts above the threshold, published twice (last month's and this month's, or under two
    filters that differ in one person), say everything about whoever left or joined between."""
    rng = random.Random(5)
    for _ in range(40):
        few, people, many, more, row, column, inside = one_moves(rng)
        rule = rng.choice([None, wi.rules.Exact(), wi.rules.Suppress(5), CHAINED])
        small, large = Publication(few, people, rule), Publication(many, more, rule)
        now, then = (small, large) if way == "left" else (large, small)
        found = check_published(now, "0.1", then)
        (person,) = [each for each in found if each.people == way]
        assert (person.row, person.column) == (row, column)
        assert person.posterior == inside and person.low == person.high == inside


CHAINED = wi.mechanisms.PostProcessed(wi.rules.Suppress(5), wi.rules.Suppress(3))


@pytest.mark.parametrize("rule", [wi.rules.Round(5), wi.rules.RandomRound(3)], ids=repr)
@pytest.mark.parametrize("way", ["left", "joined"])
@cases(12, 1000)
def test_one_person_between_two_rounded_tables(rule, way, count):
    """What rounding leaves of the difference, against the sum over both counts: with a step of a
    rounded number the person is found, without one they are a little less likely to be in."""
    rng, found_out = random.Random(6), 0
    for _ in range(count):
        few, people, many, more, row, column, inside = one_moves(rng)

        def show(count: int) -> int:
            outputs, weights = zip(*spread(rule, count), strict=True)
            return int(rng.choices(outputs, [float(w) for w in weights])[0])

        shown = [[[show(count) for count in line] for line in table] for table in (few, many)]
        small, large = Publication(shown[0], people, rule), Publication(shown[1], more, rule)
        now, then = (small, large) if way == "left" else (large, small)
        (person,) = [e for e in check_published(now, "0.1", then) if e.people == way]
        assert (person.row, person.column) == (row, column)
        size, weights = people[row][column], [F(0), F(0)]
        for one in (0, 1):
            for others in range(size + 1):
                weight = math.comb(size, others) * F(1, 9) ** (others + one)
                weight *= likelihood(rule, False, shown[0][row][column], others)
                weight *= likelihood(rule, False, shown[1][row][column], others + one)
                weights[one] += weight
        assert person.posterior == weights[1] / sum(weights)
        if isinstance(rule, wi.rules.Round) and shown[0][row][column] < shown[1][row][column]:
            assert person.posterior == 1 and inside
            found_out += 1
    assert found_out or isinstance(rule, wi.rules.RandomRound)


def protected(counts: Sequence[int]) -> list[int | None]:
    """A row and its total: counts of 1 and 2 hidden, and where one is alone, the least other."""
    hidden = {place for place, count in enumerate(counts) if 1 <= count <= 2}
    rest = [place for place in range(len(counts)) if place not in hidden]
    if len(hidden) == 1 and rest:
        hidden.add(min(rest, key=lambda place: (counts[place], place)))
    return [None if place in hidden else count for place, count in enumerate(counts)] + [
        sum(counts)
    ]


@cases(40, 1000)
def test_no_procedure_for_further_cells_makes_anyone_surer_than_said(count):
    """Whoever knows how further cells are chosen learns from the pattern, at most up to `most`."""
    rng, differ = random.Random(8), 0
    for _ in range(count):
        sizes, prior = [rng.randint(1, 6) for _ in range(3)], rng.choice([F(1, 4), F(1, 2)])
        shown = protected([sum(rng.random() < prior for _ in range(size)) for size in sizes])
        truth = brute(sizes, [0] * 3, prior, lambda c, shown=shown: F(protected(c) == shown))
        made = Publication(shown, sizes, wi.rules.Suppress(3), "exact", secondary=True)
        for each, posterior in zip(check_published(made, prior), truth, strict=True):
            assert posterior <= each.most and each.posterior <= each.most
            differ += posterior != each.posterior
    assert differ


def test_populations_whose_weights_are_far_apart():
    """4,000 of 190,000 people: hypergeometric, though each weight alone would underflow."""
    found = check_published(Publication([None, None, 4000], [100_000, 90_000]), "1/2")
    assert [each.posterior for each in found] == pytest.approx([4 / 190] * 2, rel=1e-9)
    assert (found[0].low, found[0].high, found[0].bound) == (0, 4000, False)
    # Nearly everyone is in, whom everyone thought out: as exact numbers, with thousands of digits.
    rare = Publication([[None, None, 1890]], [[1000, 900]])
    (one, two) = check_published(rare, [["1e-6", "1e-7"]])
    assert 0.98 < two.posterior < one.posterior < 1 and one.low == 990
    assert len(str(one.posterior)) < 2000


def large(rng: random.Random, size: int, hidden: int, below: int) -> Publication:
    table = [[rng.randrange(below, 300) for _ in range(size)] for _ in range(size)]
    for cell in rng.sample(range(size * size), hidden):
        table[cell // size][cell % size] = rng.randrange(1, below)
    people = [[rng.randrange(3 * n, 20 * n + 5) for n in row] for row in table]
    shown = [[None if n < below else n for n in row] + [sum(row)] for row in table]
    shown.append([sum(each) for each in zip(*table, strict=True)] + [sum(map(sum, table))])
    return Publication(shown, people, wi.rules.Suppress(below))


def test_a_large_table_is_exact():
    found = check_published(large(random.Random(6), 20, 40, 5), "0.1")
    hidden = [each for each in found if each.shown is None]
    assert len(hidden) == 40 and all(each.exact for each in found)
    assert any(each.worked_out for each in hidden) and any(each.within_one for each in hidden)
    assert all(1 <= each.low <= each.high <= 4 for each in hidden)
    for each in found:
        assert each.low <= each.posterior * each.population <= each.high


def test_what_totals_give_away():
    """Without totals a suppressed count is one of 1 to 4; with both it is known."""
    cells, people = [[None, 12], [7, 20]], [[40, 60], [30, 30]]
    rule = wi.rules.Suppress(5)
    alone = check_published(Publication(cells, people, rule), "0.1")[0]
    assert (alone.low, alone.high) == (1, 4) and not alone.worked_out
    totals = [[None, 12, 15], [7, 20, 27], [10, 32, 42]]
    known = check_published(Publication(totals, people, rule), "0.1")[0]
    assert known.worked_out and known.posterior == F(3, 40)
    added = check_published(Publication(totals, people, rule, "added"), "0.1")[0]
    assert added == alone
    fewer = [[14, 18], [8, 3]]
    rounded = Publication(
        [[10, 15, 21], [5, 0, 8], [15, 14, 29]], fewer, wi.rules.Round(5), "exact"
    )
    found = check_published(rounded, "0.1")
    truth = brute([14, 18, 8, 3], [0] * 4, F(1, 10), only_these)
    assert [each.posterior for each in found] == truth


def only_these(counts: Sequence[int]) -> Fraction:
    """Whether these counts fit the rounded cells and the exact totals."""
    a, b, c, d = counts
    rounded = 8 <= a <= 12 and 13 <= b <= 17 and 3 <= c <= 7 and d <= 2
    return F(rounded and (a + b, c + d, a + c, b + d) == (21, 8, 15, 14))


@pytest.mark.parametrize(
    ("published", "population", "options", "field"),
    [
        ([[3, 9, 11]], [[5, 10]], {}, "published[0][2]"),
        ([[3, 9]], [[5, 8]], {}, "published[0][1]"),
        ([[3]], [[5, 8]], {}, "published"),
        ([[3, 1, 2, 3]], [[5, 8]], {}, "published"),
        ([[3, 1], [2]], [[5, 8], [1, 1]], {}, "published"),
        ([[3, -1]], [[5, 8]], {}, "published[0][1]"),
        ([[3, 1]], [[5, 8.5]], {}, "population[0][1]"),
        ([[3, 1]], [[5, 8]], {"prior": 2}, "prior"),
        ([[3, 1]], [[5, 8]], {"prior": [[0.1]]}, "prior"),
        ([[3, 1]], [[5, 8]], {"rule": 5}, "rule"),
        ([[3, 8]], [[5, 8]], {"rule": wi.rules.Suppress(5)}, "published[0][0]"),
        ([[4, 8]], [[5, 9]], {"rule": wi.rules.Round(5)}, "published[0][0]"),
        ([[None, 8]], [[5, 9]], {"rule": wi.rules.Round(5)}, "published[0][0]"),
        ([[3, 1]], [[5, 8]], {"totals": "some"}, "totals"),
        ([[3, 1]], [[5, 8]], {"known_in": [[6, 0]]}, "known_in[0][0]"),
        ([[3, 1]], [[5, 8]], {"known_in": [[4, 0]]}, "published[0][0]"),
        ([], [], {}, "population"),
        (7, [[5]], {}, "published"),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused_in_one_sentence(published, population, options, field):
    prior = options.pop("prior", "0.1")
    with refused_input(field):
        posteriors(published, population, prior, **options)


def test_priors_may_differ_between_cells_and_one_list_is_a_table():
    assert posteriors([None, 3], [4, 6], "1/4") == [F(1, 4), F(1, 2)]
    found = posteriors([[None, None, 3]], [[2, 3]], [["1/2", "1/5"]])
    assert found == [brute_pair(F(1, 2), F(1, 5))]
    assert posteriors([None, 0], [0, 6], "1/4") == [F(1, 4), 0]


def brute_pair(one: Fraction, two: Fraction) -> list[Fraction]:
    """2 and 3 people with beliefs of their own, 3 in all are in."""
    top, bottom = [F(0), F(0)], F(0)
    for x in range(3):
        y = 3 - x
        weight = math.comb(2, x) * one**x * (1 - one) ** (2 - x)
        weight *= math.comb(3, y) * two**y * (1 - two) ** (3 - y)
        top, bottom = [top[0] + x * weight, top[1] + y * weight], bottom + weight
    return [top[0] / bottom / 2, top[1] / bottom / 3]


# Files and the command

TABLE = "ward,young,old,total\nA,<5,12,15\nB,7,<5,9\nC,<5,<5,6\ntotal,12,18,30\n"
FRAME = "ward,old,young\nC,12,10\nA,60,40\nB,30,30\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "published.csv").write_text(TABLE)
    (tmp_path / "frame.csv").write_text(FRAME)
    return tmp_path


def check(run: Callable[..., Result], folder: Path, *words: object) -> Result:
    line = f"rules check {folder}/published.csv --population {folder}/frame.csv"
    return run(line, *words)


def test_the_command_says_what_can_be_worked_out(run, files):
    code, out, err = check(run, files, "--prior", "0.1")
    assert (code, err) == (0, "")
    said = " ".join(out.split())
    assert "4 cells are suppressed: 4 can be worked out exactly" in said
    assert "10.0% sure that this person is in the data; they become 33.3% sure (in C, old)" in said
    assert "must not be published" in said
    code, out, err = check(run, files, "--prior", "0.1", "--secret", "attribute")
    assert "10.0% sure that this person has the value" in " ".join(out.split())


def test_the_command_finds_whoever_left(run, files):
    (files / "earlier.csv").write_text(TABLE.replace("B,7,<5,9", "B,8,<5,10").replace(
        "total,12,18,30", "total,13,18,31"))  # fmt: skip
    (files / "more.csv").write_text(FRAME.replace("B,30,30", "B,30,31"))
    more = ("--before", files / "earlier.csv", "--population-before", files / "more.csv")
    code, out, err = check(run, files, "--prior", "0.1", *more)
    assert (code, err) == (0, "") and "they become 100% sure (in B, young, who left)" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--prior", "1.5"), "prior must be between 0 and 1, not 1.5"),
        (("--prior", "0.1", "--rule", "suppress=0"), "below must be a whole number of at least 1"),
        (("--prior", "0.1", "--rule", "round=1"), "base must be a whole number of at least 2"),
        (("--prior", "0.1", "--rule", "blur=3"), "'blur=3' is not a rule"),
        (("--prior", "0.1", "--rule", "suppress=5:seen"), "zeros must be shown or hidden"),
        (("--prior", "0.1", "--secondary-by", "x"), "write next-smallest or"),
        (("--prior", "0.1", "--secret", "x"), "--secret must be membership or attribute"),
        (("--prior", "0.1", "--before", "x.csv"), "without --population-before"),
    ],
)
def test_wrong_options_are_one_sentence(run, files, words, message):
    refused(check(run, files, *words), message)


def test_a_cell_key_that_does_not_sum_to_1_names_its_file(run, files):
    (files / "keys.csv").write_text("i,j,p\n0,0,1\n1,0,0.5\n1,2,0.4\n")
    result = check(run, files, "--prior", "0.1", "--rule", f"cell-key={files}/keys.csv")
    refused(result, "keys.csv", "probabilities of count 1")


@pytest.mark.parametrize(
    ("table", "frame", "message"),
    [
        (TABLE.replace("15", "55"), FRAME, "published[0][2]"),
        (TABLE, FRAME.replace("C,12,10\n", ""), "no row 'C'"),
        (TABLE, FRAME.replace("old", "aged"), "no column 'old'"),
        (TABLE.replace("12,15", "twelve,15"), FRAME, "line 2 column old must be a whole number"),
        (TABLE, FRAME.replace("60", "<5"), "line 3 column old must be a whole number, not '<5'"),
        (TABLE.replace("B,7,<5", "B,7,<7"), FRAME, "[5, 7]"),
        (TABLE.replace("B,7,<5,9", "B,7,9"), FRAME, "line 3 has 3 cells"),
        (TABLE.replace("B,", "A,"), FRAME, "'A' twice"),
        ("", FRAME, "has nothing"),
        (TABLE.splitlines()[0], FRAME, "has 1 line"),
        (TABLE.replace("\n", "\n\n", 1).replace("12,15", "x1,15"), FRAME, "line 3 column old"),
        (TABLE + '"D,1', FRAME, "not CSV from line 6 on"),
        (TABLE, FRAME.replace("60", "6"), "published[0][1]"),
    ],
)
def test_wrong_files_are_one_sentence(run, files, table, frame, message):
    (files / "published.csv").write_text(table)
    (files / "frame.csv").write_text(frame)
    refused(check(run, files, "--prior", "0.1"), message)


SIDES = {"last": "ward,f,m,{}\na,x,8,10\nb,x,5,9\n", "first": "ward,{},f,m\na,10,x,8\nb,9,x,5\n"}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("label", ["Grand total", "total", "All (f, m)", "Gesamt", "All people"])
def test_totals_are_recognised_at_both_ends(run, files, side, label):
    """Both suppressed cells are known: 10 − 8 and 9 − 5."""
    table = SIDES[side].format(f'"{label}"')
    turned = "\n".join(map(",".join, zip(*csv.reader(table.splitlines()), strict=True)))
    for text in (table, turned if "," not in label else table):
        (files / "published.csv").write_text(text)
        frame = "ward,f,m\na,20,20\nb,20,20\n"
        (files / "frame.csv").write_text(frame if text == table else "x,a,b\nf,20,20\nm,20,20\n")
        result = check(run, files, "--prior", "0.1", "--rule", "suppress=5")
        assert result[0] == 0 and "2 can be worked out exactly" in " ".join(result[1].split())


@pytest.mark.parametrize("side", SIDES)
def test_totals_under_another_name_are_refused(run, files, side):
    (files / "published.csv").write_text(SIDES[side].format("everyone"))
    frame = "ward,everyone,f,m\na,40,20,20\nb,30,10,20\n"
    (files / "frame.csv").write_text(frame)
    result = check(run, files, "--prior", "0.1", "--rule", "suppress=5")
    refused(result, "'everyone' is the sum of")
    (files / "frame.csv").write_text(frame.replace("40", "41"))
    assert check(run, files, "--prior", "0.1", "--rule", "suppress=5")[0] == 0


def test_a_rule_that_contradicts_the_marks_is_refused(run, files):
    for rule in ("suppress=3", "round=5", "suppress=4,round=5"):
        result = check(run, files, "--prior", "0.1", "--rule", rule)
        refused(result, "use suppress=5")


def test_numbers_are_read_as_offices_write_them(tmp_path):
    (tmp_path / "t.csv").write_text('x;a;b;Total\nr;1 234;*;"1\'300"\n', encoding="utf-8")
    table = read_table(tmp_path / "t.csv", "published")
    assert table.cells == ((1234, None, 1300),) and table.columns == ("a", "b")
    (tmp_path / "t.csv").write_text('\ufeffx,"old,\n er",b\n\n"r",7,8\n', encoding="utf-8")
    assert read_table(tmp_path / "t.csv", "published").columns == ("old,\n er", "b")
    assert read_rule("suppress=5:hidden") == wi.rules.Suppress(5, "hidden")
    assert read_rule("random-round=3") == wi.rules.RandomRound(3)
    both = read_rule("suppress=8,round=5")
    assert [dict(both.spread(count)) for count in (0, 7, 8, 13)] == [
        {0: 1}, {HIDDEN: 1}, {10: 1}, {15: 1},
    ]  # fmt: skip
