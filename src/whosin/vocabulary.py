"""The words of scenarios, options and requests, as data and as the objects they describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeVar

from whosin.errors import InvalidInput, UnknownName, Unsupported, WhosinError, at, invalid_value
from whosin.validation import check_kind, shorten_value

# The words of a scenario, for who is looking, how sure they may become and which table, as data.
#
# Contract: a word is one thing, whether it is a key of a scenario file, an option of the command or
# a
# field of the page. Targets and families name the words that choose them; `calibration.planning`
# reads
# them all. Nothing is imported here, so that the command can offer its options at once.


@dataclass(frozen=True)
class Word:
    """One word.

    Attributes:
        name: its spelling in files; on the command line it has two dashes before it.
        takes: "number", "whole", "range", "profile" (numbers by numbers), "text", "file", or "flag"
            for true and false.
        help: what it says, in a sentence.
        short: another spelling of the option, if it has one.
        default: what holds where it is not said, if anything does.
    """

    name: str
    takes: str
    help: str
    short: str = ""
    default: str = ""


def _word_table(*listed: Word) -> dict[str, Word]:
    return {word.name: word for word in listed}


TARGET_WORDS = _word_table(
    Word("posterior", "number", "How sure they may become, at most."),
    Word("gamma", "number", "Or the factor γ by which a belief may grow, at most."),
    Word("gain", "number", "Or by how much a belief may rise, at most."),
    Word("advantage", "number", "Or how far an attack's hit rate may exceed its false alarms."),
    Word("tpr", "number", "Or the share of members that any test may recognise, at that fpr."),
    Word("fpr", "number", "The share of other people that this test may accuse."),
    Word("risk", "number", "Or how often someone who must say in or out is wrong, at least."),
    Word("risk-prior", "number", "How sure that person was before."),
    Word("profile", "profile", "Or the most for each prior: 0.1:0.3,0.5:0.6, linear between them."),
    Word("rho", "number", "Or how sure they may become of one of the candidates, at most."),
    Word("candidates", "whole", "How many candidates there are.", "-m"),
    Word("epsilon", "number", "Or plain ε."),
    Word("hipaa", "flag", "Or 1.5%, which Lee and Clifton derive from HIPAA's safe harbour."),
    Word("delta", "number", "The promise may fail with this probability."),
)
"""How sure they may become: exactly one target, and δ if the promise may fail."""

ADVERSARY_WORDS = _word_table(
    Word("prior", "range", "How sure they may be already: 0.05..0.5, or 0.5."),
    Word("size-known", "flag", "They know how many are in the data."),
    Word("linked", "whole", "How many people come and go together, at most."),
    Word("known", "whole", "How many people they know to be in or out, at most."),
    Word("uninformed", "flag", "They know nothing at all."),
    Word("family", "text", "Or name the adversaries: at-most-known=10:0.1..0.9, …"),
    Word(
        "people",
        "whole",
        "How many people there are, at the least.",
        "--entities",
    ),
)
"""Who may be looking."""

TABLE_WORDS = _word_table(
    Word("source", "text", "The file, folder or database::table; postgresql://host/db::table."),
    Word("privacy_unit", "text", 'The column that says whose row it is; "row" for each row.'),
    Word("max_rows_per_group", "whole", "How many rows of a privacy unit count in a group."),
    Word("max_groups", "whole", "How many groups a privacy unit counts in, at most."),
    Word("name", "text", "The dataset's name in the ledger; the file's by default."),
    Word("engine", "text", "duckdb (by default) or spark."),
    Word(
        "memory",
        "text",
        "How much memory DuckDB may use, such as 4GB; beyond that it writes to disk.",
    ),
    Word("spill", "text", "The folder that it writes to then."),
    Word("master", "text", "Where Spark runs."),
    Word("views", "flag", "Whether views of a database may be read."),
)
"""The table."""

FURTHER_TABLE_WORDS = _word_table(
    Word("name", "text", "What features and domains call the table."),
    Word("source", "text", "The file, folder or database::table."),
    Word("privacy_unit", "text", "Its column that says whose row it is; as in [table] by default."),
    Word("max_rows", "whole", "How many rows of a privacy unit are joined; 1 by default."),
    Word("public", "flag", "Whether it is a public table, whose rows are looked up."),
    Word("key", "text", "For a public table: its key column, which has each value once."),
    Word("on", "text", "The column that holds the key; called as the key by default."),
    Word("to", "text", "The further table that looks rows up here; [table] by default."),
)
"""Further tables: of the same people, or public."""

FEATURE_WORDS = _word_table(
    Word("name", "text", "The column's name."),
    Word("kind", "text", "any, count, distinct, sum, max, min, mean, first or last."),
    Word("column", "text", "The column that it is computed from; none to count rows."),
    Word("table", "text", "The further table whose rows it sums up; [table] by default."),
    Word("where", "text", "A condition on rows: others do not count."),
    Word("order", "text", "For first and last: the column that orders a person's rows."),
    Word("tie", "text", "A second column to order by, where the first one ties."),
)
"""A person's own features."""

LEDGER_WORDS = _word_table(
    Word("url", "text", "A file, or postgresql://…"),
    Word("dataset", "text", "The dataset's name in the ledger."),
)
"""Where the budget is kept."""

BUDGET_WORDS = _word_table(
    Word("split", "text", "weights, relative-error, or optimal: for the least error."),
    Word("noise", "text", "laplace, or gaussian under a delta."),
    Word("share", "number", "The part of the plan's budget for this batch."),
)
"""How a batch divides its budget."""

NOTION_WORDS = _word_table(
    Word(
        "family",
        "text",
        "The adversaries: independent (default), one-of=3, uninformed, …",
        default="independent",
    ),
    Word("relation", "text", "For dp: add-remove (default) or replace."),
    Word("direction", "text", "For dp and dps: both (default), positive or negative."),
    Word("candidates", "whole", "For di: how many candidates there are.", "-m"),
    Word("beta", "number", "For dps: the sampling probability."),
    Word("group", "whole", "For dp on records: how many rows may differ at once."),
    Word(
        "gain",
        "file",
        "For leakage: identity, tries=3, singling-out=1/4, or a file (JSON).",
        default="identity",
    ),
    Word("form", "text", "For leakage: multiplicative (default) or additive."),
    Word(
        "metric",
        "file",
        "For metric-privacy: hamming (default), difference, or a file (JSON).",
        default="hamming",
    ),
    Word("prior-file", "file", "A prior on records (JSON), for the notions that need one."),
)
"""The parameters of notions; each notion takes its own."""

MECHANISM_WORDS = _word_table(
    Word("statistic", "text", "What noise is added to: count (default) or max.", default="count"),
    Word("scale", "number", "Scale of Laplace, geometric or Gaussian noise."),
    Word("alpha", "number", "α of geometric noise, such as 1/2."),
    Word("epsilon", "number", "ε of randomised response."),
    Word("keep", "number", "Or its probability of the truth."),
    Word("k", "whole", "k of k-max.", "-k"),
    Word("below", "whole", "Suppress: the least count that is shown."),
    Word("zeros", "text", "Suppress: whether a count of 0 is shown (default) or hidden."),
    Word("base", "whole", "Round and random-round: the base, such as 5."),
    Word("table", "file", "Cell-key: the p-table (columns i, j, p or pcv, ckey, pvalue)."),
)
"""What a built-in mechanism is made of."""

SCENARIO_SECTIONS = {
    "adversary": ADVERSARY_WORDS,
    "target": TARGET_WORDS,
    "table": TABLE_WORDS,
    "ledger": LEDGER_WORDS,
    "budget": BUDGET_WORDS,
}
"""The sections of a scenario that have words of their own; beside them are a title, the domains of
columns and the queries."""

SCENARIO_LISTS = {"tables": FURTHER_TABLE_WORDS, "features": FEATURE_WORDS}
"""The lists of a scenario whose entries have words of their own: [[tables]], [[features]]."""


# Words that were said, as values and as what they describe.
#
# Contract: the words are those of `vocabulary`. What is None or false was not said. An error says
# at
# which word it is (`path`), such as prior or candidates.


Said = Mapping[str, object]
Described = TypeVar("Described")


def words_said(data: Said, words: Mapping[str, Word], section: str) -> dict[str, object]:
    """The words of a section that were said, all of them known."""
    check_kind(data, Mapping, section, "an object with words")  # type: ignore[type-abstract]
    for word in data:
        if word not in words:
            with at(section):
                raise UnknownName("key", str(word), words)
    return {word: value for word, value in data.items() if value is not None and value is not False}


def read_value(word: Word, value: object) -> Any:
    """What was said with a word, as it is meant."""
    with at(word.name):
        match word.takes:
            case "flag":
                if not isinstance(value, bool):
                    raise invalid_value(word.name, "true or false", shorten_value(value))
                return value
            case "whole":
                if isinstance(value, bool) or not isinstance(value, Integral):
                    raise invalid_value(word.name, "a whole number", shorten_value(value))
                return int(value)
            case "range":
                return _read_range(value, word.name)
            case "number":
                return _read_number(value, word.name)
        return value


def match_fields(kind: type, words: Mapping[str, Word]) -> dict[str, Any] | None:
    """The fields of a dataclass by the words that fill them; None if it needs what no word says.

    A field has the word of its own name, or the word that the class's `spelled_as` gives it.
    """
    spelled = getattr(kind, "spelled_as", {})
    if not hasattr(kind, "__dataclass_fields__"):
        return None
    known = {spelled.get(each.name, each.name): each for each in fields(kind)}
    if any(word not in words and _is_required(each) for word, each in known.items()):
        return None
    return {word: each for word, each in known.items() if word in words}


def describe_object(
    kind: Callable[..., Described], name: str, said: Said, words: Mapping[str, Word]
) -> Described:
    """The object that these words describe; `name` is what it is called in messages.

    Raises:
        InvalidInput: a word that it does not take, or one is missing.
    """
    taken = match_fields(kind, words)  # type: ignore[arg-type]
    if taken is None:
        raise Unsupported(
            f"{name} cannot be described by options", field=name, hint="make it in Python"
        )
    for word, value in said.items():
        if word not in taken:
            with at(word):
                raise InvalidInput(
                    f"{word} has no meaning with {name}",
                    field=word,
                    value=value,
                    hint="leave it out",
                )
    values = {}
    for word, field in taken.items():
        value = said.get(word, words[word].default or None)
        if value is not None:
            values[field.name] = read_value(words[word], value)
        elif _is_required(field):
            with at(word):
                raise InvalidInput(f"{name} needs {word}", field=word)
    return locate_errors(
        lambda: kind(**values), {field.name: word for word, field in taken.items()} | {"": ""}
    )


def locate_errors(make: Callable[[], Described], words: Mapping[str, str]) -> Described:
    """What is made, whose errors are at the word that filled the field they are about."""
    try:
        return make()
    except WhosinError as error:
        error.path = words.get(getattr(error, "field", ""), words[""])
        raise


def _is_required(field: Any) -> bool:
    return bool(field.default is MISSING and field.default_factory is MISSING)


def _read_number(value: object, field: str) -> Fraction:
    """A number; TOML's true is none, though Python would take it for 1."""
    from whosin.exact import rational

    if isinstance(value, bool):
        raise invalid_value(field, "a number such as 0.5", str(value).lower())
    return rational(value, field)


def _read_range(value: object, field: str) -> tuple[Fraction, Fraction]:
    from whosin.exact import number_range

    if isinstance(value, str):
        return number_range(value, field)
    if isinstance(value, list | tuple) and len(value) == 2:
        return _read_number(value[0], field), _read_number(value[1], field)
    return _read_number(value, field), _read_number(value, field)
