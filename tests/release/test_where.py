"""`where` means what three-valued logic says, on any row; what is no row expression is refused."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import ibis
import pyarrow as pa
import pytest

import release_oracle as oracle
import where_oracle
import whosin as wi
from amounts import cases
from refusals import refused
from where_checks import check_where
from whosin.errors import InvalidInput, UnknownName
from whosin.release.conditions import parse_condition

NAN, INF = math.nan, math.inf
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


def evaluated(table: wi.Table, *texts: str) -> list[list[bool]]:
    """Which rows each condition keeps, all in one run of the engine."""
    marks = {f"c{place}": parse_condition(text, table.data) for place, text in enumerate(texts)}
    result = table.engine.run(table.data.select(table.data["who"], **marks)).sort_by("who")
    return [result.column(name).to_pylist() for name in marks]


@cases(120, 4000)
def test_conditions_mean_what_the_documentation_says(count) -> None:
    """Conditions on hostile values, and on Spark in its tests."""
    check_where(oracle.ENGINE, where_oracle.Drawn(1), count)


LARGE = oracle.table(
    {
        "who": list("abc"),
        "i": [2**63 - 1, 1234567890123456789, 1234567890123456788],
        "t": [f"1234567890123456{digit}" for digit in "789"],
        "v": ["vf", "v", "f"],
    }
)
EXTREME = oracle.table(
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
KEPT = [
    # Numbers of many digits became doubles, which several of them share.
    (LARGE, "i = 1234567890123456789", "b"),
    (LARGE, "i = 9223372036854775807", "a"),
    (LARGE, "t = 12345678901234567", "a"),
    (LARGE, "t in (12345678901234567, 12345678901234569)", "ac"),
    (LARGE, "cast(t as bigint) > 12345678901234567", "bc"),
    (LARGE, "(not (i > 1)) is null", ""),
    (LARGE, "trim(v) = 'vf'", "a"),
    # -2^63 divided by -1 makes engines fail, and so does a cast of 2^64 - 1.
    (EXTREME, "i % -1 = 0", "abcd"),
    (EXTREME, "i % 2 = -1", "bd"),
    (EXTREME, "small % -1 = 0", "abcd"),
    (EXTREME, "i % i is null", "c"),
    (EXTREME, "f % 3 is null", "abc"),
    (EXTREME, "7.5 % f = 7.5", "a"),
    (EXTREME, "coalesce(wide, 0) > 9e18", "a"),
    (EXTREME, "if(small < 0, small, i) < 0", "abd"),
    # Dates that do not fit are missing.
    (MOMENTS, "day >= '2020-01-01'", "bc"),
    (MOMENTS, "day < '2020-01-01'", "a"),
    (MOMENTS, "second >= '2020-01-01'", "b"),
    (MOMENTS, "tiny < '2100-01-01 12:00'", "ab"),
    (MOMENTS, "year(day) = 2020", "b"),
    (MOMENTS, "month(second) = 9 and day(second) = 13", "b"),
    (MOMENTS, "extract(year from tiny) = 1970", "a"),
    (MOMENTS, "day = second", "a"),
    (MOMENTS, "cast(text as date) = '2020-02-08'", "b"),
    (MOMENTS, "cast(day as timestamp) > timestamp '2000-01-01'", "bc"),
    (MOMENTS, "cast(day as date) = '2020-02-08'", "b"),
    (MOMENTS, "cast(second as date) = '2020-09-13'", "b"),
    (MOMENTS, "cast(day as varchar) like '____-__-__'", "ab"),
    (MOMENTS, "date_trunc('week', day) = '2020-02-03'", "b"),
    (MOMENTS, "date_trunc('year', second) is null", "cd"),
    (MOMENTS, "date_trunc('quarter', tiny) = '2020-07-01'", "b"),
    (MOMENTS, "hour(second) * 100 + minute(second) = 1226", "b"),
    (MOMENTS, "extract(second from tiny) = 40", "b"),
    (MOMENTS, "coalesce(second, '2020-01-01') = '2020-01-01'", "cd"),
    (MOMENTS, "case when day < '2000-01-01' then second end = day", "a"),
]


@pytest.mark.parametrize("table", [LARGE, EXTREME, MOMENTS], ids=["large", "extreme", "moments"])
def test_extreme_values_are_themselves_or_missing(table) -> None:
    wanted = {text: kept for one, text, kept in KEPT if one is table}
    for (text, kept), found in zip(wanted.items(), evaluated(table, *wanted), strict=True):
        assert "".join(who for who, inside in zip("abcd", found, strict=False) if inside) == kept, (
            text
        )


def test_the_parser_reads_precedence_as_sql_does() -> None:
    first, second = evaluated(DATA, "i = 0 or i = 1 and f > 0", "not i = 0 and b")
    assert first == [row["i"] == 0 for row in ROWS]
    assert second == [row["i"] not in (0, None) and row["b"] is True for row in ROWS]


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
    "text",
    [
        *(each.strip() for line in REFUSED.strip().splitlines() for each in line.split(" | ")),
        # Spark reads a vertical tab in SQL as the letter v.
        *("s = 'a\x0b'", "s like 'a\x0c%'", "s in ('\x01', 'b')"),
        *(None, 5, True, "", "  ", b"i = 1", ["i = 1"], "\x00", "\ud800 = 1"),
    ],
)
def test_what_is_no_row_expression_is_refused(text) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_condition(text, DATA.data)
    assert caught.value.field in ("where", "column in where")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_unknown_columns_are_refused_by_name() -> None:
    with pytest.raises(UnknownName, match="did you mean 'who'"):
        parse_condition("whoo = 'a'", DATA.data)
    for text in ("rowid = 1", "I = 1"):
        with pytest.raises(UnknownName):
            parse_condition(text, DATA.data)


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
    numbers = (f"{text} > 1" for text in (product, sums, divided, cast))
    assert len(evaluated(DATA, chain, listing, nested, *numbers)) == 7
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


NEVER_TRUE = [
    "case when age > 3 then ward else 1 end = 'surgery'",
    "'surgery' = case when ill then age end",
    "coalesce(ward, 1) in ('surgery', 'x')",
    "if(age > 3, ward, 1) <> 'surgery'",
    "case case when ill then ward else 1 end when 'x' then 1 end = 1",
    "abs(age) = 'old'",
    "length(ward) between 'a' and 3",
    "decade(age) > ''",
    "cast(ward as int) = 'nan'",
    "age > 3 and (abs(age)) = ('0x10')",
    "year(day) = 'May'",
]
TYPED_ALONE = ["age = 'old'", "age in (3, 'old')", "case age when '' then 1 end = 1"]
SOMETIMES_TRUE = [
    "case when age > 3 then ward else days end > 2",
    "coalesce(ward, 1) = '3'",
    "abs(age) in ('3', ' 4.5 ')",
    "ward in (1, 'surgery')",
    "age = 3 or ward = '3'",
]
REFUSED_ALIKE = [
    *(
        "case when age > 3 then 'a' else 1 end = 'a'",
        "day > 3 and age",
        "age like 3",
        "ward || 'x' = 'y'",
    ),
    *("length(ward)", "ward = any('x')", "exists (select 1)", "age in (select 1)", "sum(age) > 3"),
    *("random() > 0.5", "agee > 3", "substr(ward, 0, 1) = 's'", "(age, days) = (1, 2)", "age +"),
    *("greatest(age, 1) > 2", "ill is 'x'", "date_trunc('moon', day) = day"),
    *("days = 99999999999999999999", "lower(ward) + 1", "age between 1", "ward in ()", "?"),
    *(
        "ward like 'a\\%'",
        "ward = 'a\x01'",
        "cast(age as text) = '3'",
        "read_csv('x') = 1",
        "1 = $1",
    ),
]


@pytest.fixture
def typed(tmp_path) -> wi.Table:
    data = {"who": ["a", "b"], "ward": ["surgery", "3"], "age": [1.5, None], "days": [1, 2]}
    data |= {"ill": [True, None], "day": [date(2024, 1, 2), None]}
    return wi.Table(pa.table(data), "who", {"ward": ["surgery"], "age": (0, 10)}, name="t")


def test_a_number_is_never_compared_with_a_word(typed) -> None:
    """Such a comparison is never true: it was answered, about nobody."""
    texts = {name: ibis.literal("3", "string") for name in typed.columns}  # as in a CSV file
    for where in (*NEVER_TRUE, *TYPED_ALONE):
        with refused("where", hint=True):
            parse_condition(where, typed.data)
    for where in SOMETIMES_TRUE:
        parse_condition(where, typed.data)
    for where in TYPED_ALONE:
        parse_condition(where, texts)


def test_explained_estimated_and_released_conditions_are_refused_alike(typed, tmp_path) -> None:
    """Whatever is refused is refused in the same words, before anything is paid, by all three."""
    statements = ["SELECT COUNT(*) FROM t WHERE {}", "SELECT SUM(age) FILTER (WHERE {}) FROM t"]

    def words(ask: Any, text: str) -> str:
        try:
            ask(text)
        except InvalidInput as error:
            return error.message
        return ""

    plan = wi.calibrate(wi.Epsilon(1))
    with wi.Session(typed, plan, tmp_path / "l.db", share="1/1000", preflight=False) as session:
        for where in (*NEVER_TRUE, *TYPED_ALONE, *REFUSED_ALIKE, *SOMETIMES_TRUE):
            for text in (each.format(where) for each in statements):
                explained = words(session.parse_sql, text)
                paid = session.budget_state.debits
                assert words(lambda sql: session.dry_run(session.parse_sql(sql)), text) == explained
                assert words(session.sql, text) == explained
                assert bool(explained) == (where not in SOMETIMES_TRUE), text
                assert (session.budget_state.debits == paid) == bool(explained), text
