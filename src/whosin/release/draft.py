"""Draft a scenario from a table: its columns, domains to declare, and a question of each kind.

A draft is for the curator. The kind of a column comes from the schema, or for text files from the
first rows. What a column may hold comes from a data dictionary, and from the rows only where the
curator says so: such domains are marked `from_rows`, since the promise does not cover what they
tell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from whosin.documents import read_csv, toml_line
from whosin.errors import InvalidInput, UnknownName, require_extras
from whosin.release.contribution_bounds import BOUND_STEPS
from whosin.release.domains import respelled_days
from whosin.release.engines import DuckDB
from whosin.release.queries import QUERIES
from whosin.release.row_values import is_dated, is_usable, number_value

MISSING_WORDS = ("na", "n/a", "nan", "null", "none", ".", "-")
"""What stands in files where there is no number or date; a release reads it as nothing there."""
GUESS_ROWS = 2_000
"""Rows of a text file that the kinds of its columns are guessed from."""
MAX_LISTED_VALUES = 50
"""Distinct values of a column that is taken for categories."""
MAX_LINE_LETTERS = 100
MAX_UNITS_ABOVE = 0.05
"""The share of the privacy units that a bound from the rows leaves rows out of."""
UNIT_NAME_PATTERN = re.compile(
    r"(person|patient|participant|subject|member|customer|client|user|pupil|student|employee|"
    r"household|respondent|resident|individual)?[_ -]?(id|no|nr|number|key)|person|patient",
    re.IGNORECASE,
)
"""Names of columns that may say whose row it is."""
ID_NAME_PATTERN = re.compile(
    rf"(?i:.*[_ -](id|no|nr|key|code)|{UNIT_NAME_PATTERN.pattern})|.*[a-z](Id|ID|Key|Code)"
)
"""Names of columns whose numbers and texts name something, and say nothing by themselves."""
NUMBER_PATTERN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
WHOLE_PATTERN = re.compile(r"([+-]?\d{1,15})(\.0+)?")
CODE_PATTERN = re.compile(r"[+-]?0\d")
DAY_PREFIX = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?")
MISSPELT_DATES = "misspelt dates"
MISSPELT_NOTE = "Its days are not written as 2024-01-31: rewrite them in the file"
DICTIONARY_COLUMNS = {
    "column": ("column", "name", "variable", "field", "variable name", "column name"),
    "kind": ("kind", "type", "data type", "format"),
    "values": ("values", "value", "levels", "categories", "allowed values", "codes", "code"),
    "lower": ("lower", "min", "minimum", "from"),
    "upper": ("upper", "max", "maximum", "to"),
    "about": ("about", "description", "label", "meaning"),
}
"""What the columns of a data dictionary may be called."""


NUMBER_KINDS, CELL_KINDS = ("numbers",), ("values", "dates")
EXAMPLE_KEYS: dict[str, dict[str, Any]] = {
    "count": {},
    "rows": {"by": ("values",)},
    **{
        kind: {"column": NUMBER_KINDS}
        for kind in ("sum", "mean", "variance", "deviation", "median")
    },
    "quantile": {"column": NUMBER_KINDS, "quantile": 0.25},
    "histogram": {"column": CELL_KINDS},
    "keys": {"column": ("text", "values")},
    "top": {"by": ("values",), "k": 3},
    "running": {"column": ("dates",), "upto": "2024-01"},
    "marginals": {"columns": ("values",)},
    "synthetic": {"columns": ("values",), "path": "synthetic.parquet"},
}
"""What a question of each kind asks for; tuples are the kinds of columns that it takes."""
EXAMPLE_NEEDS = {
    "keys": "delta in [target]",
    "running": 'delta in [target], noise = "gaussian" in [budget], edges = "month" in its domain',
    "synthetic": "size-known = true in [adversary]",
}


BLANK_DOMAINS = {
    "values": '["…", "…"]  # FILL IN: values',
    "numbers": "{ lower = …, upper = … }  # FILL IN: numbers",
    "dates": '{ lower = 2024-01-01, upper = 2024-12-31, edges = "month" }  # FILL IN: dates',
    "text": '["…", "…"]  # FILL IN: text with many values: leave it out, or list some',
}
DRAFT_BEGINNING = """\
# A draft. Decide what [adversary] and [target] promise, fill in [table] and [domains],
# and take the # off the questions that you want to ask. Then:
#   whosin inspect THIS-FILE             what the rows are beside it, for your eyes only
#   whosin release THIS-FILE --dry-run   what each answer costs, and how good it will be

{title}

[about]  # who answers for the release; the report prints it, and whosin evidence asks for it
# population = "…"      # whom the table is about: all patients of two wards
# controller = "…"
# contact = "…"
# period = "…"          # from when the data are
# decided_by = "…"      # who chose [adversary] and [target], and why:
# reasons = "…"

[adversary]  # who may be looking, and how sure they may be already that someone is in
# prior = "0.05..0.5"   # DECIDE: between 5% and 50% sure, whatever else they know

[target]  # how sure they may become from what is published
# posterior = 0.6       # DECIDE: at most 60% sure

[table]
{source}"""


BUDGET_LINES = (
    "# [budget]  # without a share the first release spends all: nothing is left for a correction",
    '# share = "1/4"',
    "#",
    "# [schedule]  # where something is published every month: without a share it takes a month's",
    '# every = "month"',
    '# until = "2027-12"',
    "",
)


@dataclass(frozen=True)
class ColumnDraft:
    """What a draft says of a column.

    Attributes:
        kind: "values", "numbers", "dates", or "text" for what has too many values to list.
        domain: what it may hold, as a scenario writes it; None where nobody has said so.
        from_rows: whether the domain was read off the rows.
        about: what a data dictionary says of it.
        unasked: why no question is drafted about it.
    """

    name: str
    kind: str
    domain: object = None
    from_rows: bool = False
    about: str = ""
    unasked: str = ""


def draft_scenario(
    source: str,
    privacy_unit: str | None = None,
    dictionary: Path | None = None,
    *,
    from_rows: bool = False,
    shown: str | None = None,
    views: bool = False,
) -> str:
    """The text of a scenario for a table, with comments that say what to decide and to fill in.

    Args:
        source: a file, folder, or database::table, as in [table].
        privacy_unit: the column that says whose row it is, or "row"; otherwise it is to fill in.
        dictionary: a CSV file about the columns, one line a column, or one line a value.
        from_rows: declare what the rows hold, for columns of which nothing else is known.
        shown: how the scenario names the source, if not as it was given.
        views: whether it may be a view of a database.
    """
    require_extras("release")
    with DuckDB(views=views) as engine:
        data = engine.open(source)
        names = list(data.schema())
        if privacy_unit not in (None, "row", *names):
            raise UnknownName("privacy_unit", str(privacy_unit), ("row", *names))
        known = {} if dictionary is None else read_dictionary(dictionary, names)
        asked = [name for name in names if name != privacy_unit]
        columns = draft_columns(engine, data, asked, known, from_rows=from_rows)
        owned = from_rows and privacy_unit in names
        most = _bound_from_rows(engine, data, privacy_unit) if owned else None
    title = Path(source.partition("::")[2] or source).name.partition(".")[0]
    written = toml_line("source", shown or source) + "\nviews = true" * views
    return "\n".join(_scenario_lines(title, written, privacy_unit, names, columns, most))


def read_dictionary(path: Path, names: Sequence[str]) -> dict[str, ColumnDraft]:
    """What a data dictionary says of the columns of a table.

    It has a line a column (column, values separated by | or ;, or lower and upper), or several
    lines a column, each with a value.

    Raises:
        InvalidInput: it has no column of names, or describes no column of the table.
    """
    records = read_csv(path)
    found = {
        key: next((at for at, name in enumerate(records.header) if _plain(name) in spelled), None)
        for key, spelled in DICTIONARY_COLUMNS.items()
    }
    if found["column"] is None:
        message = f"{path.name} has no column that names the table's columns"
        hint = "call it column, name or variable; others are values, lower, upper, description"
        raise InvalidInput(message, field="dictionary", value=path.name, hint=hint)
    spelled = {_plain(name): name for name in names}
    lines: dict[str, list[dict[str, str]]] = {}
    for row in records.rows:
        line = {key: row[at].strip() for key, at in found.items() if at is not None}
        if _plain(line["column"]) in spelled:
            lines.setdefault(spelled[_plain(line["column"])], []).append(line)
    if not lines:
        message = f"{path.name} describes no column of this table"
        hint = f"the table has {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"
        raise InvalidInput(message, field="dictionary", value=path.name, hint=hint)
    return {name: _dictionary_entry(name, entries) for name, entries in lines.items()}


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", " ", name.strip().lower())


def _dictionary_entry(name: str, lines: Sequence[Mapping[str, str]]) -> ColumnDraft:
    about = next((line["about"] for line in lines if line.get("about")), "")
    lower, upper = lines[0].get("lower", ""), lines[0].get("upper", "")
    if lower and upper:
        if DAY_PREFIX.fullmatch(lower):
            return ColumnDraft(name, "dates", {"lower": lower, "upper": upper}, about=about)
        ends = {"lower": _spell_value(lower), "upper": _spell_value(upper)}
        return ColumnDraft(name, "numbers", ends, about=about)
    listed = [line.get("values", "") for line in lines]
    if len(lines) > 1:
        about = ""  # it is about single values
    else:
        listed = re.split(r"\s*[|;]\s*", listed[0])
    values = list(dict.fromkeys(each.partition("=")[0].strip() for each in listed))
    if values := [each for each in values if each]:
        return ColumnDraft(name, "values", _alike(values), about=about)
    kind = lines[0].get("kind", "").lower()
    numeric = any(word in kind for word in ("int", "num", "float", "double", "real", "dec"))
    guessed = "dates" if "date" in kind or "time" in kind else "numbers" if numeric else "values"
    return ColumnDraft(name, guessed, about=about)


def _alike(values: Sequence[str]) -> list[Any]:
    """Whole numbers where all are (3.0 is one, and 03 a code), or else texts."""
    found = [WHOLE_PATTERN.fullmatch(each.strip()) for each in values]
    whole = {int(each[1]): None for each in found if each and not CODE_PATTERN.match(each[1])}
    return list(whole) if len(whole) == len(values) else list(values)


def _spell_value(text: str) -> int | float | str:
    if whole := WHOLE_PATTERN.fullmatch(text):
        return int(whole[1])
    return float(text) if NUMBER_PATTERN.fullmatch(text) else text


def draft_columns(
    engine: DuckDB,
    data: Any,
    names: Sequence[str],
    known: Mapping[str, ColumnDraft],
    *,
    from_rows: bool = False,
    look: bool = True,
) -> list[ColumnDraft]:
    """What a draft says of columns of a table.

    Args:
        known: what a data dictionary says of them.
        from_rows: declare what the rows hold, for columns of which nothing else is known.
        look: guess the kinds of texts from the first rows; otherwise no row is read.
    """
    result = []
    first = None
    usable = [name for name in data.columns if is_usable(data.schema()[name])]
    for name in names:
        kind, draft = data.schema()[name], known.get(name, ColumnDraft(name, ""))
        if draft.domain is None and kind.is_boolean():  # its type says it, and no row
            draft = replace(draft, kind="values", domain=[True, False])
        if name not in usable:
            result.append(replace(draft, kind="text", unasked="nothing can be asked of its type"))
            continue
        if draft.domain is None:
            seen = "text"
            if kind.is_numeric() or is_dated(kind):
                seen = "dates" if is_dated(kind) else "numbers"
            elif look:  # text, which may hold anything
                if first is None:
                    first = engine.run(data.select(usable).limit(GUESS_ROWS))
                texts = [str(v) for v in first.column(name).to_pylist() if v]
                seen = _guess_kind(texts)
            draft = replace(draft, kind=seen)
            if seen == MISSPELT_DATES:
                said = (
                    f"{draft.about.rstrip('.')}. {MISSPELT_NOTE}" if draft.about else MISSPELT_NOTE
                )
                result.append(replace(draft, kind="dates", about=said))
                continue
        named = draft.domain is None and draft.kind in ("numbers", "text")
        if named and ID_NAME_PATTERN.fullmatch(name):
            draft = replace(draft, unasked="an identifier")
        elif from_rows and draft.domain is None:
            draft = _domain_from_rows(engine, data, draft)
        result.append(draft)
    return result


def _drop_missing(values: Sequence[str]) -> list[str]:
    return [each for each in values if each.strip().lower() not in MISSING_WORDS]


def _guess_kind(values: Sequence[str]) -> str:
    values = _drop_missing(values)
    distinct = set(values)
    if values and all(DAY_PREFIX.fullmatch(each) for each in values):
        return "dates"
    if values and all(DAY_PREFIX.fullmatch(each) or respelled_days(each) for each in values):
        return MISSPELT_DATES
    if values and all(NUMBER_PATTERN.fullmatch(each.strip()) for each in values):
        few = len(distinct) <= 5 and all(WHOLE_PATTERN.fullmatch(each.strip()) for each in values)
        return "values" if few else "numbers"
    return "values" if len(distinct) <= MAX_LISTED_VALUES else "text"


def _domain_from_rows(engine: DuckDB, data: Any, draft: ColumnDraft) -> ColumnDraft:
    """The domain that the rows show: their values, or a range that holds them, wider than they
    are."""
    column = data[draft.name]
    if draft.kind in ("numbers", "dates"):
        value = number_value(column) if draft.kind == "numbers" else column
        found = data.aggregate(lower=value.min(), upper=value.max())
        ends = engine.run(found).to_pylist()[0]
        if ends["lower"] is None:
            return draft
        if draft.kind == "numbers":
            lower, upper = _widen_range(float(ends["lower"]), float(ends["upper"]))
            return replace(draft, domain={"lower": lower, "upper": upper}, from_rows=True)
        first, last = f"{str(ends['lower'])[:4]}-01-01", f"{str(ends['upper'])[:4]}-12-31"
        ends = {"lower": first, "upper": last, "edges": "month"}
        return replace(draft, domain=ends, from_rows=True)
    counted = data.group_by(each=column).aggregate(rows=data.count()).limit(MAX_LISTED_VALUES + 2)
    values = [row["each"] for row in engine.run(counted).to_pylist()]
    values = [each for each in values if each not in (None, "")]
    if not values or len(values) > MAX_LISTED_VALUES:
        return replace(draft, kind="text")
    if all(isinstance(each, str) for each in values):
        values = _alike(values)
    return replace(draft, kind="values", domain=sorted(values), from_rows=True)


def _bound_from_rows(engine: DuckDB, data: Any, privacy_unit: Any) -> int:
    """A round number of rows that few privacy units have more of; no unit decides it alone."""
    owned = data.filter(data[privacy_unit].notnull())
    sizes = owned.group_by(privacy_unit).aggregate(n=owned.count())
    steps = (1, *BOUND_STEPS)
    above = {f"above_{step}": (sizes["n"] > step).sum() for step in steps}
    row = engine.run(sizes.aggregate(units=sizes.count(), **above)).to_pylist()[0]
    few = MAX_UNITS_ABOVE * row["units"]
    return next((step for step in steps if (row[f"above_{step}"] or 0) <= few), steps[-1])


def _widen_range(lower: float, upper: float) -> tuple[int | float, int | float]:
    """A range in round numbers that holds both, so that no row's number is an end by itself."""
    step = 10.0 ** math.floor(math.log10(max(abs(lower), abs(upper), 1e-300)))
    low = 0.0 if 0 <= lower < upper / 2 else math.floor(lower / step) * step
    high = math.ceil(upper / step) * step
    ends = [round(end, 12) for end in (low, high if high > low else low + step)]
    return tuple(int(end) if float(end).is_integer() else end for end in ends)  # type: ignore[return-value]


def _scenario_lines(
    title: str,
    source: str,
    privacy_unit: str | None,
    names: Sequence[str],
    columns: Sequence[ColumnDraft],
    most: int | None,
) -> Iterator[str]:
    yield DRAFT_BEGINNING.format(title=toml_line("title", title), source=source)
    if privacy_unit is None:
        candidates = [name for name in names if UNIT_NAME_PATTERN.fullmatch(name)]
        hint = f", perhaps {' or '.join(candidates[:3])}" if candidates else ""
        yield f'# privacy_unit = "…"    # FILL IN: the column that says whose row it is{hint};'
        yield '#                         "row" where each row is another person'
    else:
        yield toml_line("privacy_unit", privacy_unit)
    if most is not None:
        yield f"max_rows_per_group = {most}  # few units have more rows"
        yield "from_rows = true        # chosen by looking at the rows, as below"
    elif privacy_unit != "row":
        yield "# max_rows_per_group = 1  # FILL IN: how many of a unit's rows count in a group"
    if privacy_unit != "row":
        yield "# max_groups = 1          # FILL IN: in how many groups a unit counts"
    yield ""
    yield "[domains]  # public: what the columns may hold, known without looking at the rows"
    if any(column.from_rows for column in columns):
        yield "# from_rows: chosen by looking at the rows. The promise does not cover what such a"
        yield "# domain tells: replace it by what is publicly known, or be sure that it is."
    yield from map(_domain_line, columns)
    yield ""
    yield "[ledger]  # remembers what was spent, for everyone who names it"
    yield toml_line("url", "ledger.db") + "       # or postgresql://host/database"
    yield ""
    yield from BUDGET_LINES
    yield from _question_lines(columns)


def _domain_line(column: ColumnDraft) -> str:
    about = " ".join(column.about.split())[:MAX_LINE_LETTERS]
    key = toml_line(column.name, 0).removesuffix(" = 0")
    if column.unasked:
        return f"# {key}  # leave it out: {column.unasked}{about and f'. {about}'}"
    if column.domain is None:
        return f"# {key} = {BLANK_DOMAINS[column.kind]}{about and f'. {about}'}"
    domain: Any = column.domain
    if column.from_rows:
        domain = {"values": domain} if isinstance(domain, list) else domain
        domain = {**domain, "from_rows": True}
    return toml_line(column.name, domain) + (about and f"  # {about}")


def _question_lines(columns: Sequence[ColumnDraft]) -> Iterator[str]:
    """One question of each kind, on columns of the right kind, behind comment signs."""
    for kind in QUERIES.values():
        if (keys := _example_keys(kind.kind, columns)) is not None:
            needs = EXAMPLE_NEEDS.get(kind.kind)
            yield f"# [[queries]]{f'  # needs {needs}' if needs else ''}"
            for key, value in {"kind": kind.kind, **keys}.items():
                yield f"# {toml_line(key, value)}"
            yield "#"


def _example_keys(kind: str, columns: Sequence[ColumnDraft]) -> dict[str, Any] | None:
    """The keys of one question, on the first columns of the right kind; None where the table has
    none, or the kind needs more than columns."""
    if kind not in EXAMPLE_KEYS:
        return None
    keys: dict[str, Any] = {}
    for key, value in EXAMPLE_KEYS[kind].items():
        if not isinstance(value, tuple):
            keys[key] = value
            continue
        asked = [each for each in columns if not each.unasked]
        named = [each.name for wanted in value for each in asked if wanted == each.kind]
        if not named:
            return None
        keys[key] = named[0] if key == "column" else named[: 1 if key == "by" else 3]
    if "upto" in keys:  # the first month of the horizon, where one is declared
        domain = next(each.domain for each in columns if each.name == keys["column"])
        keys["upto"] = str(domain["lower"])[:7] if isinstance(domain, dict) else keys["upto"]
    return keys
