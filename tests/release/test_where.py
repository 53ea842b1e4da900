"""`where` means what three-valued logic says, on any row; what is no row expression is refused."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import release_oracle as oracle
import where_oracle
from refusals import refused
from where_checks import check_where
from whosin.errors import InvalidInput, UnknownName
from whosin.release.conditions import parse_condition

NAN, INF = float("nan"), math.inf
NUMBERS = ("i", "f")
ROWS = [
    {"i": i, "f": f, "s": s, "b": b}
    for i, f, s, b in zip(
        [0, 1, -3, 7, None, 2, 2**53 + 1, -1, 5, None],
        [0.0, -1.5, NAN, INF, -INF, None, 2.0, 7.0, -0.0, 1.0],
        ["", "A", "ab", "7", "é%", None, "A_", "-1.5", "nan", "B"],
        [True, False, None, True, False, None, True, False, True, None],
        strict=True,
    )
]
DATA = oracle.table(
    pa.table(
        {
            "who": [str(n) for n in range(len(ROWS))],
            "i": pa.array([row["i"] for row in ROWS], pa.int64()),
            "f": pa.array([row["f"] for row in ROWS], pa.float64()),
            "s": pa.array([row["s"] for row in ROWS], pa.string()),
            "b": pa.array([row["b"] for row in ROWS], pa.bool_()),
        }
    )
)

# Each expression is a pair (its text, a function of a row that is a number, or True, False, None).


def both(a, b):
    return False if a is False or b is False else None if a is None or b is None else True


def either(a, b):
    return True if a is True or b is True else None if a is None or b is None else False


def opposite(a):
    return None if a is None else not a


def arithmetic(sign, a, b):
    if a is None or b is None or (sign == "/" and b == 0):
        return None
    a, b = float(a), float(b)
    try:
        found = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else NAN}[sign]
    except OverflowError:
        return None
    return None if math.isnan(found) else found


def compared(sign, a, b):
    if a is None or b is None:
        return None
    return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]


COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
columns = st.sampled_from(NUMBERS).map(lambda name: (name, lambda row: oracle.number(row[name])))
literals = st.sampled_from(["0", "1", "-3", "2.5", "1e3", "7"]).map(
    lambda text: (text, lambda row: float(text))
)
texts = st.just(("s", lambda row: oracle.number(row["s"])))
casts = st.just(("cast(s as double)", lambda row: oracle.number(row["s"])))


def combined(inner):
    return st.tuples(st.sampled_from("+-*/"), inner, inner).map(
        lambda t: (
            f"({t[1][0]} {t[0]} {t[2][0]})",
            lambda row: arithmetic(t[0], t[1][1](row), t[2][1](row)),
        )
    )


numbers = st.recursive(columns | literals | casts, combined, max_leaves=3)
comparisons = st.tuples(st.sampled_from(COMPARISONS), numbers, numbers | texts).map(
    lambda t: (
        f"{t[1][0]} {t[0]} {t[2][0]}",
        lambda row: compared(t[0], t[1][1](row), t[2][1](row)),
    )
)
betweens = st.tuples(numbers, literals, literals, st.booleans()).map(
    lambda t: (
        f"{t[0][0]} {'not ' if t[3] else ''}between {t[1][0]} and {t[2][0]}",
        lambda row: (opposite if t[3] else bool_or_none)(
            both(
                compared(">=", t[0][1](row), t[1][1](row)),
                compared("<=", t[0][1](row), t[2][1](row)),
            )
        ),
    )
)


def bool_or_none(value):
    return value


def listed(t):
    value, items, negated, unknown = t
    text = ", ".join([item[0] for item in items] + ["null"] * unknown)

    def meaning(row):
        found = None if unknown else False
        for item in items:
            found = either(found, compared("=", value[1](row), item[1](row)))
        return opposite(found) if negated else found

    return f"{value[0]} {'not ' if negated else ''}in ({text})", meaning


ins = st.tuples(numbers, st.lists(literals, min_size=1, max_size=3), st.booleans(), st.booleans())
nulls = st.tuples(st.sampled_from([*NUMBERS, "s", "b"]), st.booleans()).map(
    lambda t: (
        f"{t[0]} is {'not ' if t[1] else ''}null",
        lambda row: (missing(row[t[0]])) != t[1],
    )
)


def missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def like(pattern, text):
    """SQL's like, by recursion."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and like(pattern[1:], text[1:])


likes = st.tuples(st.sampled_from(["A%", "%", "_", "A_", "", "%b"]), st.booleans()).map(
    lambda t: (
        f"s {'not ' if t[1] else ''}like '{t[0]}'",
        lambda row: None if row["s"] is None else like(t[0], row["s"]) != t[1],
    )
)
equals = st.tuples(st.sampled_from(COMPARISONS), st.sampled_from(["A", "", "7", "é%"])).map(
    lambda t: (f"s {t[0]} '{t[1]}'", lambda row: compared(t[0], row["s"], t[1]))
)
truths = st.sampled_from(
    [
        ("b", lambda row: row["b"]),
        ("b = true", lambda row: row["b"]),
        ("b <> false", lambda row: row["b"]),
        ("b is true", lambda row: row["b"] is True),
        ("b is not true", lambda row: row["b"] is not True),
        ("b is false", lambda row: row["b"] is False),
        ("true", lambda row: True),
        ("null", lambda row: None),
        ("i = null", lambda row: None),
        ("b = (null)", lambda row: None),
        ("i / 0 > 1", lambda row: None),
        ("cast(s as int) >= 0", lambda row: compared(">=", oracle.number(row["s"]), -0.5)),
    ]
)
atoms = comparisons | betweens | ins.map(listed) | nulls | likes | equals | truths
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map(lambda e: (f"not ({e[0]})", lambda row: opposite(e[1](row)))),
        st.tuples(inner, inner).map(
            lambda t: (f"({t[0][0]}) and ({t[1][0]})", lambda r: both(t[0][1](r), t[1][1](r)))
        ),
        st.tuples(inner, inner).map(
            lambda t: (f"({t[0][0]}) or ({t[1][0]})", lambda r: either(t[0][1](r), t[1][1](r)))
        ),
    ),
    max_leaves=4,
)


def evaluated(*texts: str) -> list[list[bool]]:
    """Which rows each condition keeps, all in one run of the engine."""
    marks = {f"c{place}": parse_condition(text, DATA.data) for place, text in enumerate(texts)}
    result = DATA.engine.run(DATA.data.select(DATA.data["who"], **marks)).sort_by("who")
    return [result.column(name).to_pylist() for name in marks]


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(conditions, min_size=25, max_size=25))
def test_conditions_mean_what_three_valued_logic_says(cases) -> None:
    found = evaluated(*(text for text, _ in cases))
    for (text, meaning), kept in zip(cases, found, strict=True):
        assert kept == [meaning(row) is True for row in ROWS], text


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 20))]
)
def test_conditions_mean_what_the_documentation_says(seed) -> None:
    """Conditions on hostile values, thousands of them in `make soak`, and on Spark in its tests."""
    check_where(oracle.ENGINE, where_oracle.Drawn(seed), 200)


LARGE = [(2**63 - 1, "1"), (1234567890123456789, "2"), (1234567890123456788, "3")]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("i = 1234567890123456789", ["2"]),
        ("i = 9223372036854775807", ["1"]),
        ("t = 12345678901234567", ["1"]),
        ("t in (12345678901234567, 12345678901234569)", ["1", "3"]),
        ("cast(t as bigint) > 12345678901234567", ["2", "3"]),
        ("(not (i > 1)) is null", []),
        ("trim(v) = 'vf'", ["1"]),
    ],
)
def test_numbers_of_many_digits_are_themselves(text, kept) -> None:
    """They became doubles, which several of them share."""
    data = oracle.table(
        {
            "who": [who for _, who in LARGE],
            "i": [number for number, _ in LARGE],
            "t": [f"1234567890123456{digit}" for digit in "789"],
            "v": ["vf", "v", "f"],
        }
    ).data
    found = oracle.ENGINE.run(data.filter(parse_condition(text, data)).select("who"))
    assert sorted(found.column("who").to_pylist()) == kept


def test_the_parser_reads_precedence_as_sql_does() -> None:
    first, second = evaluated("i = 0 or i = 1 and f > 0", "not i = 0 and b")
    assert first == [row["i"] == 0 for row in ROWS]
    assert second == [row["i"] not in (0, None) and row["b"] is True for row in ROWS]


MOMENTS = oracle.table(
    pa.table(
        {
            "who": ["a", "b", "c", "d"],
            "day": pa.array([0, 18_300, 2**31 - 2, None], pa.date32()),
            "second": pa.array([0, 1_600_000_000, 2**62, None], pa.timestamp("s")),
            "tiny": pa.array([0, 1_600_000_000 * 10**9, 2**62, None], pa.timestamp("ns")),
            "zoned": pa.array([0, 1, 2, None], pa.timestamp("us", "UTC")),
            "text": ["2020-02-30", "2020-02-08", "x", None],
        }
    )
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("day >= '2020-01-01'", [False, True, True, False]),
        ("day < '2020-01-01'", [True, False, False, False]),
        ("second >= '2020-01-01'", [False, True, False, False]),
        ("tiny < '2100-01-01 12:00'", [True, True, False, False]),
        ("year(day) = 2020", [False, True, False, False]),
        ("month(second) = 9 and day(second) = 13", [False, True, False, False]),
        ("extract(year from tiny) = 1970", [True, False, False, False]),
        ("day = second", [True, False, False, False]),
        ("cast(text as date) = '2020-02-08'", [False, True, False, False]),
        ("cast(day as timestamp) > timestamp '2000-01-01'", [False, True, True, False]),
        ("cast(day as date) = '2020-02-08'", [False, True, False, False]),
        ("cast(second as date) = '2020-09-13'", [False, True, False, False]),
        ("cast(day as varchar) like '____-__-__'", [True, True, False, False]),
        ("date_trunc('week', day) = '2020-02-03'", [False, True, False, False]),
        ("date_trunc('year', second) is null", [False, False, True, True]),
        ("date_trunc('quarter', tiny) = '2020-07-01'", [False, True, False, False]),
        ("hour(second) * 100 + minute(second) = 1226", [False, True, False, False]),
        ("extract(second from tiny) = 40", [False, True, False, False]),
        ("coalesce(second, '2020-01-01') = '2020-01-01'", [False, False, True, True]),
        ("case when day < '2000-01-01' then second end = day", [True, False, False, False]),
    ],
)
def test_dates_that_do_not_fit_are_missing(text, kept) -> None:
    marks = MOMENTS.data.select(MOMENTS.data["who"], c=parse_condition(text, MOMENTS.data))
    assert MOMENTS.engine.run(marks).sort_by("who").column("c").to_pylist() == kept


REFUSED = """
select 1 | exists (select 1) | i in (select 1) | i > (select max(i) from t) | i > all (select 1)
sum(i) > 1 | count(*) > 1 | max(i) over () > 1 | row_number() over () = 1 | i > any([1])
read_text('/etc/passwd') = 'x' | getenv('HOME') = 'x' | current_setting('x') = 'y' | nextval('s')
list_transform([1], x -> x) = [1] | lambda x: x | COLUMNS(*) > 1 | #1 > 1 | $1 > 1 | ? > 1 | :x > 1
i = 1; | i = 1; drop table t | i = 1 -- why | i /* x */ = 1 | pragma version | attach 'x' as y
copy t to 'x' | set memory_limit = '1GB' | install httpfs | call x() | t.i = 1 | main.t.i = 1
s['x'] = 1 | s.x = 1 | {'a': 1} | [i] = [1] | (i, f) = (1, 2) | i = 1 x | i = 1, f = 2
random() > 0.5 | now() > '2020-01-01' | current_date = '2020-01-01' | uuid() = 'x'
case when i then true end | case when b then 1 else 'x' end = 1 | case b when 1 then true end
coalesce(i, 'x') = 1 | coalesce(b, 1) | if(i, true, false) | if(b, 1) | b % 2 | i ** 2 = 4
substr(s, 0, 1) = 'a' | substr(s, -1) = 'a' | substr(s, i) = 'a' | substr(s, 1, -1) = ''
substr(i, 1) = '1' | substr(s, 1.5) = 'a' | substr(s, 12345678901) = 'a' | hour(s) = 1
hour(i) = 1 | date_trunc('month', s) = 'x' | date_trunc('century', s) = 'x' | i // 2 = 1
s ~ 'A' | s similar to 'A' | s glob 'A*' | s like 'A' escape '!' | s like any ('A', 'B')
s like i | s || 'x' = 'Ax' | s collate nocase = 'a' | s like 'a\\_' | regexp_matches(s, 'A')
i between symmetric 3 and 1 | trim(leading 'A' from s) = '' | trim(s, 'A') = '' | lower(i) = '1'
cast(i as date) = '2020-01-01' | cast(i as decimal(3, 1)) = 1 | cast(f as varchar) = '1.0'
cast(i as integer[]) = [1] | cast(i as blob) = 'x' | interval '1 day' > 1 | i = 0x10
1 < i < 3 | b = 1 | b > i | b and i | not i | i is true | i | 1 | s | 'x' | i + 1 | -i
i = 9223372036854775808 | i is distinct from 1
i <=> 1 | i in () | i = 1 limit 1 | (i = 1) limit 1 | i = 1 and | and | ( | )
year(s) = 2020 | i > date '2020-01-01' | unnest([1]) = 1 | i = i + | "i | 'i | i = 1 union select 1
"""


@pytest.mark.parametrize(
    "text", [each for line in REFUSED.strip().splitlines() for each in line.split(" | ")]
)
def test_what_is_no_row_expression_is_refused(text) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_condition(text.strip(), DATA.data)
    assert caught.value.field in ("where", "column in where")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["s = 'a\x0b'", "s like 'a\x0c%'", "s in ('\x01', 'b')"])
def test_control_characters_are_refused(text) -> None:
    """Spark reads a vertical tab in SQL as the letter v."""
    with refused("where"):
        parse_condition(text, DATA.data)


def test_unknown_columns_are_refused_by_name() -> None:
    with pytest.raises(UnknownName, match="did you mean 'who'"):
        parse_condition("whoo = 'a'", DATA.data)
    for text in ("rowid = 1", "I = 1"):
        with pytest.raises(UnknownName):
            parse_condition(text, DATA.data)


@pytest.mark.parametrize(
    "text", [None, 5, True, "", "  ", b"i = 1", ["i = 1"], "\x00", "\ud800 = 1"]
)
def test_what_is_no_text_is_refused(text) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_condition(text, DATA.data)
    assert caught.value.field in ("where", "column in where")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i % -1 = 0", [True, True, True, True]),
        ("i % 2 = -1", [False, True, False, True]),
        ("small % -1 = 0", [True, True, True, True]),
        ("i % i is null", [False, False, True, False]),
        ("f % 3 is null", [True, True, True, False]),
        ("7.5 % f = 7.5", [True, False, False, False]),
        ("coalesce(wide, 0) > 9e18", [True, False, False, False]),
        ("if(small < 0, small, i) < 0", [True, True, False, True]),
    ],
)
def test_remainders_and_choices_of_extreme_numbers(text, expected) -> None:
    """−2^63 divided by −1 makes engines fail, and so does a cast of 2^64 − 1."""
    data = oracle.table(
        pa.table(
            {
                "who": list("abcd"),
                "i": pa.array([-(2**63), -(2**63) + 1, 0, -3], pa.int64()),
                "small": pa.array([-128, -1, 0, 127], pa.int8()),
                "wide": pa.array([2**64 - 1, 1, 0, 2**40], pa.uint64()),
                "f": pa.array([INF, NAN, None, -4.5], pa.float64()),
            }
        )
    )
    marks = data.data.select(data.data["who"], c=parse_condition(text, data.data))
    assert data.engine.run(marks).sort_by("who").column("c").to_pylist() == expected


def test_conditions_whose_sql_would_grow_without_bound_are_refused() -> None:
    """A value that an engine's SQL names twice doubles it at each level."""
    for form in (
        "coalesce({}, f)",
        "(f % {})",
        "case when {} > 1 then f else i end",
        "case {} when 1 then f when 2 then i end",
        "cast(({}) between 0 and 1 as int)",
    ):
        text = "f"
        for _ in range(14):
            text = form.format(text)
        with refused("where"):
            parse_condition(f"{text} > 1", DATA.data)


def test_long_and_deep_conditions_are_refused_or_run() -> None:
    chain = " and ".join(["i = 1"] * 40)
    listing = f"i in ({', '.join(map(str, range(1500)))})"
    nested = "(" * 40 + "i = 1" + ")" * 40
    product, sums = " * ".join(["f"] * 90), " + ".join(["i"] * 90)
    divided = "f / (f / (f / (f / (f / (f / 2)))))"
    cast = "cast(" * 40 + "s" + " as double)" * 40
    texts = (
        chain,
        listing,
        nested,
        f"{product} > 1",
        f"{sums} > 1",
        f"{divided} > 1",
        f"{cast} > 1",
    )
    assert len(evaluated(*texts)) == len(texts)
    for text in (
        " and ".join(["i = 1"] * 1000),
        "(" * 4000 + "i = 1" + ")" * 4000,
        "not " * 2000 + "b",
        f"i in ({','.join(['1'] * 2100)})",
        f"s = '{'x' * 10_000}'",
        "-" * 500 + "i = 1",
        "f / (" * 9 + "f" + ")" * 9 + " > 1",
        f"i + 1 in ({','.join(['1'] * 30)})",
    ):
        with refused("where"):
            parse_condition(text, DATA.data)
