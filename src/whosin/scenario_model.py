"""The typed model of a scenario: its sections and their keys, each declared in one line.

A section is a frozen dataclass, a type of a key (`Number`, `Range`, `Text`, …) one `Kind`: how it
is read and what JSON Schema says. `Section.read` is the one reader of files, options and requests,
with one set of refusals; numbers stay exact. `Section.json_schema` is the one schema, of
`schema/scenario.json` and of OpenAPI. Pydantic takes sections into the bodies of requests by hooks
that call these two. They are no pydantic models, since every command's options come from them: its
import and the models took 0.2 s of processor time, half of that of `whosin plan --help`. What
nobody but the owner of a machine may say (engines, folders, files) is in a subclass that no
request has.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from functools import cache
from inspect import getdoc
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

from whosin.errors import (
    InvalidInput,
    Mistakes,
    UnknownName,
    Unsupported,
    WhosinError,
    at,
    invalid_value,
    shorten_value,
    spell,
)

MAX_REQUEST_LETTERS = 200
MAX_REQUEST_WHOLE = 10**9
"""What a request may have as a text or a whole number, so that it can be printed and computed with;
the library says which of them make sense."""

MAX_STATEMENT_LETTERS = 2_000
"""What a request may have as a reason in words."""

Written = Mapping[str, object]
Described = TypeVar("Described")


@dataclass(frozen=True, eq=False)
class Kind:
    """What a key takes.

    Attributes:
        name: what a page calls it.
        read: the value of what was written, under a name for messages.
        schema: its JSON Schema.
        option: the type of an option on the command line.
        section: the section that it is, or is a list of.
    """

    name: str
    read: Callable[[Any, str], Any]
    schema: Mapping[str, Any]
    option: Any = str | None
    section: type[Section] | None = None


def _take(accepted: str, *kinds: type) -> Callable[[Any, str], Any]:
    """Read what is of one of these kinds as it is; true and false are no numbers."""

    def read(value: Any, name: str) -> Any:
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return value
        raise invalid_value(name, accepted, shorten_value(value))

    return read


def _read_number(value: object, name: str) -> Fraction:
    """A number; TOML's true is none, though Python would take it for 1."""
    from whosin.exact import rational

    if isinstance(value, bool):
        raise invalid_value(name, "a number such as 0.5", str(value).lower())
    return rational(value, name)


def _read_range(value: object, name: str) -> tuple[Fraction, Fraction]:
    from whosin.exact import number_range

    if isinstance(value, str):
        return number_range(value, name)
    if isinstance(value, list | tuple) and len(value) == 2:
        return _read_number(value[0], name), _read_number(value[1], name)
    return _read_number(value, name), _read_number(value, name)


_read_text, _take_any = _take("text", str), _take("something else than true or false", object)


def _read_statement(value: object, name: str) -> str:
    """A text that says something: one that is blank would print as a blank line to be signed."""
    text = str(_read_text(value, name)).strip()
    if not text:
        raise invalid_value(name, "text", "a blank one", "write it, or leave the key out")
    return text


def _read_source(value: object, name: str) -> object:
    """Where a table is. Programs have other words for it than files: a path, a frame."""
    plain = value is None or isinstance(value, bool | int | float | list | dict)
    return _read_text(value, name) if plain else value


DOMAINS_SCHEMA = {
    "type": "object",
    "additionalProperties": {
        "description": "The values of a column, or the range of its numbers; public knowledge.",
        "type": ["array", "object", "string"],
    },
}

Number = Annotated[Fraction, Kind("number", _read_number, {"type": ["number", "string"]})]
"""An exact number: 0.6, "0.6", "3/5" or "60%"."""
Range = Annotated[
    tuple[Fraction, Fraction], Kind("range", _read_range, {"type": ["number", "string", "array"]})
]
Profile = Annotated[object, Kind("profile", _take_any, {"type": ["string", "object"]})]
Whole = Annotated[
    int, Kind("whole", _take("a whole number", Integral), {"type": "integer"}, int | None)
]
Text = Annotated[str, Kind("text", _read_text, {"type": "string"})]
Statement = Annotated[str, Kind("text", _read_statement, {"type": "string"})]
Source = Annotated[Any, Kind("text", _read_source, {"type": "string"})]
Flag = Annotated[bool, Kind("flag", _take("true or false", bool), {"type": "boolean"}, bool)]
FilePath = Annotated[object, Kind("file", _take_any, {"type": "string"}, Path | None)]
Domains = Annotated[
    Mapping[str, Any],
    Kind("domains", _take("a table of columns ([domains])", Mapping), DOMAINS_SCHEMA),
]
Shares = Annotated[Any, Kind("list", _take_any, {"type": "array", "minItems": 1})]
Queries = Annotated[Any, Kind("queries", _take_any, {"type": "array", "minItems": 1})]


@dataclass(frozen=True)
class Key:
    """A key of a section, as `say` declares it."""

    name: str
    attribute: str
    kind: Kind
    required: bool
    description: str
    option: str
    implied: str
    most: int

    def check_request(self, value: object) -> None:
        """Refuse what is too long or too large for a request."""
        if isinstance(value, str) and len(value) > self.most:
            accepted = f"a text of at most {spell(self.most)} letters"
            raise invalid_value(self.name, accepted, f"one of {spell(len(value))}")
        if isinstance(value, int) and abs(value) > MAX_REQUEST_WHOLE:
            raise invalid_value(self.name, f"at most {spell(MAX_REQUEST_WHOLE)}", "more")


def say(
    description: str,
    default: Any = None,
    *,
    spelled: str = "",
    option: str = "",
    implied: str = "",
    most: int = MAX_REQUEST_LETTERS,
) -> Any:
    """Declare a key of a section.

    Args:
        description: what it says, in a sentence.
        default: what holds where it is not said; MISSING if it has to be.
        spelled: its name in files and options, if that is not the attribute's.
        option: another spelling of the option.
        implied: what holds where it has a meaning and is not said.
        most: how many letters a text in a request may have.
    """
    more = {"spelled": spelled, "option": option, "implied": implied, "most": most}
    return field(default=default, metadata={"description": description, **more})


@typing.dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(say,))
class Section:
    """Keys that belong together, a frozen dataclass. What is None or false was not said."""

    place: ClassVar[str] = ""
    """Where the keys stand in a file."""

    def __init_subclass__(cls, place: str = "") -> None:
        cls.place = place or cls.place
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    @cache
    def known_keys(cls) -> dict[str, Key]:
        """The keys by their names in files."""
        result, hints = {}, typing.get_type_hints(cls, include_extras=True)
        for each in fields(cls):  # type: ignore[arg-type]
            said = dict(each.metadata)
            name, required = said.pop("spelled") or each.name, each.default is MISSING
            result[name] = Key(name, each.name, _find_kind(hints[each.name]), required, **said)
        return result

    @classmethod
    def read(cls, data: object, name: str) -> Self:
        """The section from what was written; the path of an error begins below it."""
        if isinstance(data, cls):
            return data
        if not isinstance(data, Mapping):
            raise invalid_value(name, f"a section, {cls.place}", shorten_value(data))
        mistakes = Mistakes()
        values = cls.read_values(data, mistakes)
        mistakes.raise_all()
        result = cls(**values)
        written = {each: value for each, value in data.items() if value is not None}
        object.__setattr__(result, "_written", written)
        return result

    @classmethod
    def read_values(cls, data: Written, mistakes: Mistakes) -> dict[str, Any]:
        """The values by attribute, of the keys that can be read; the others are mistakes."""
        keys, values = cls.known_keys(), {}
        for name, value in data.items():
            with mistakes.collect():
                if name not in keys:
                    raise cls.refuse_unknown(str(name))
                if value is not None:
                    with at(name):
                        values[keys[name].attribute] = keys[name].kind.read(value, name)
        for each in keys.values():
            with mistakes.collect():
                if each.required and data.get(each.name) is None:
                    raise cls.refuse_missing(each.name)
        return values

    @classmethod
    def refuse_unknown(cls, name: str) -> UnknownName:
        """The error for a key that there is not."""
        return UnknownName("key", name, cls.known_keys())

    @classmethod
    def refuse_missing(cls, name: str) -> InvalidInput:
        """The error for a key that is not there."""
        hint = f"add {name} = '…' to {cls.place}" if cls.place else ""
        error = InvalidInput(f"{name} is missing", field=name, hint=hint)
        error.path = name
        return error

    @property
    def written(self) -> dict[str, Any]:
        """The keys that were said, as they were written."""
        return dict(getattr(self, "_written", {}))

    @property
    def given(self) -> dict[str, Any]:
        """The keys that were said, with their values."""
        found = {name: getattr(self, its.attribute) for name, its in self.known_keys().items()}
        return {name: each for name, each in found.items() if not (each is None or each is False)}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of the section."""
        keys = cls.known_keys().values()
        required = [each.name for each in keys if each.required]
        return {
            "type": "object",
            "description": (getdoc(cls) or "").partition("\n\n")[0].replace("\n", " "),
            "additionalProperties": False,
            **({"required": required} if required else {}),
            "properties": {
                each.name: {**each.kind.schema, "description": each.description} for each in keys
            },
        }

    @classmethod
    def read_request(cls, data: object) -> Self:
        """The section from a request, which is bounded."""
        if isinstance(data, Mapping):
            for name, value in data.items():
                with at(name):
                    if name not in cls.known_keys():
                        raise cls.refuse_unknown(name)
                    cls.known_keys()[name].check_request(value)
        return cls.read(data, cls.place.strip("[]") or "the body")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        from pydantic_core import core_schema

        name = f"{cls.__module__}.{cls.__qualname__}:{id(cls)}"  # it is a shape of its own
        return core_schema.no_info_plain_validator_function(cls.read_request, ref=name)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: object, handler: object) -> dict[str, Any]:
        return cls.json_schema()


def _find_kind(hint: Any) -> Kind:
    """What a type takes: its own kind, a section, or a list of sections."""
    if isinstance(hint, type) and issubclass(hint, Section):
        return Kind("section", hint.read, hint.json_schema(), section=hint)
    if typing.get_origin(hint) is tuple and issubclass(entry := typing.get_args(hint)[0], Section):

        def read_list(value: object, name: str) -> tuple[Section, ...]:
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise invalid_value(name, f"a list ([[{name}]])", shorten_value(value))
            result, mistakes = [], Mistakes()
            for index, each in enumerate(value):
                with mistakes.collect(f"[{index}]"):
                    result.append(entry.read(each, name.removesuffix("s")))
            mistakes.raise_all()
            return tuple(result)

        schema = {"type": "array", "items": entry.json_schema()}
        return Kind("sections", read_list, schema, section=entry)
    parts = [hint, *typing.get_args(hint)]  # Number, or Number | None
    found = [each for part in parts for each in getattr(part, "__metadata__", ())]
    assert isinstance(found[0], Kind)
    return found[0]


class TargetSection(Section, place="[target]"):
    """How sure they may become: one target, and δ if it may fail."""

    posterior: Number | None = say("How sure they may become, at most.")
    gamma: Number | None = say("Or the factor γ by which a belief may grow, at most.")
    gain: Number | None = say("Or by how much a belief may rise, at most.")
    advantage: Number | None = say("Or how far an attack's hit rate may exceed its false alarms.")
    tpr: Number | None = say("Or the share of members that any test may recognise, at that fpr.")
    fpr: Number | None = say("The share of other people that this test may accuse.")
    risk: Number | None = say("Or how often someone who must say in or out is wrong, at least.")
    risk_prior: Number | None = say("How sure that person was before.", spelled="risk-prior")
    profile: Profile = say("Or the most for each prior: 0.1:0.3,0.5:0.6, linear between them.")
    rho: Number | None = say("Or how sure they may become of one of the candidates, at most.")
    candidates: Whole | None = say("How many candidates there are.", option="-m")
    epsilon: Number | None = say("Or plain ε.")
    hipaa: Flag = say("Or 1.5%, which Lee and Clifton derive from HIPAA's safe harbour.", False)
    delta: Number | None = say("The promise may fail with this probability.")
    reserve: Number | None = say("ε that a ledger keeps for pure answers beside Gaussian ones.")


class AdversarySection(Section, place="[adversary]"):
    """Who may be looking."""

    prior: Range | None = say("How sure they may be already: 0.05..0.5, or 0.5.")
    secret: Text | None = say("membership (default); value: what the rows of someone in it say.")
    size_known: Flag = say("They know how many are in the data.", False, spelled="size-known")
    linked: Whole | None = say("How many people come and go together, at most.")
    known: Whole | None = say("How many people they know to be in or out, at most.")
    uninformed: Flag = say("They know nothing at all.", False)
    family: Text | None = say("Or name the adversaries: at-most-known=10:0.1..0.9, …")
    people: Whole | None = say("How many people there are, at the least.", option="--entities")


class RequestedTable(Section, place="[table]"):
    """The table: a file of the served folder."""

    source: Text = say("The file, folder or database::table; postgresql://host/db::table.", MISSING)
    privacy_unit: Text = say('The column that says whose row it is; "row" for each row.', MISSING)
    max_rows_per_group: Whole | None = say("How many rows of a privacy unit count in a group.")
    max_groups: Whole | None = say("How many groups a privacy unit counts in, at most.")
    from_rows: Flag = say("Whether these bounds were chosen by looking at the rows.", False)
    people: Whole | None = say("How many people are in it, where that is public; for dry runs.")
    part: Text | None = say("The column of parts that are paid side by side; or least(column).")


class TableSection(RequestedTable):
    """The table. The keys that a request has not are for the owner of the machine."""

    name: Text | None = say("The dataset's name in the ledger; the file's by default.")
    engine: Text | None = say("duckdb (by default) or spark.")
    memory: Text | None = say("How much memory DuckDB may use, such as 4GB.")
    spill: Text | None = say("The folder that DuckDB writes to where memory is short.")
    master: Text | None = say("Where Spark runs.")
    views: Flag = say("Whether views of a database may be read.", False)


class FurtherTableSection(Section, place="[[tables]]"):
    """A further table: of the same people, or public."""

    name: Text = say("What features and domains call the table.", MISSING)
    source: Source = say("The file, folder or database::table.", MISSING)
    privacy_unit: Text | None = say("Its own column that says whose row it is; as in [table].")
    max_rows: Whole | None = say("How many rows of a privacy unit are joined; 1 by default.")
    public: Flag = say("Whether it is a public table, whose rows are looked up.", False)
    key: Text | None = say("For a public table: its key column, which has each value once.")
    on: Text | None = say("The column that holds the key; called as the key by default.")
    to: Text | None = say("The further table that looks rows up here; [table] by default.")


class FeatureSection(Section, place="[[features]]"):
    """A person's own feature."""

    name: Text = say("The column's name.", MISSING)
    kind: Text = say("any, count, distinct, sum, max, min, mean, first or last.", MISSING)
    column: Text | None = say("The column that it is computed from; none to count rows.")
    table: Text | None = say("The further table whose rows it sums up; [table] by default.")
    where: Text | None = say("A condition on rows: others do not count.")
    order: Text | None = say("For first and last: the column that orders a person's rows.")
    tie: Text | None = say("A second column to order by, where the first one ties.")


class LedgerSection(Section, place="[ledger]"):
    """Where the budget is kept."""

    url: Text = say("A file, or postgresql://…", "ledger.db")
    dataset: Text | None = say("The dataset's name in the ledger.")


class BudgetSection(Section, place="[budget]"):
    """How a batch divides its budget."""

    split: Text | None = say("weights, relative-error, or optimal: for the least error.")
    noise: Text | None = say("laplace, or gaussian under a delta.")
    share: Number | None = say("The part of the plan's budget for this batch.")


class NotionParameters(Section):
    """The parameters of notions; each notion takes its own."""

    family: Text | None = say(
        "The adversaries: independent (default), one-of=3, uninformed, …", implied="independent"
    )
    relation: Text | None = say("For dp: add-remove (default) or replace.")
    direction: Text | None = say("For dp and dps: both (default), positive or negative.")
    candidates: Whole | None = say("For di: how many candidates there are.", option="-m")
    beta: Number | None = say("For dps: the sampling probability.")
    group: Whole | None = say("For dp on records: how many rows may differ at once.")
    form: Text | None = say("For leakage: multiplicative (default) or additive.")
    default: Whole | None = say("For (bayesian-)semantic: the value that stands for no data, or 0.")


class NotionOptions(NotionParameters):
    """The parameters of notions with those that may name a file, which no request can."""

    gain: FilePath = say(
        "For leakage: identity, tries=3, singling-out=1/4, or a file (JSON).", implied="identity"
    )
    metric: FilePath = say(
        "For metric-privacy: hamming (default), difference, or a file (JSON).", implied="hamming"
    )
    prior_file: FilePath = say(
        "A prior on records (JSON), for the notions that need one.", spelled="prior-file"
    )


class MechanismParameters(Section):
    """What a built-in mechanism is made of."""

    statistic: Text | None = say("What noise is added to: count (default) or max.", implied="count")
    scale: Number | None = say("Scale of Laplace, geometric or Gaussian noise.")
    alpha: Number | None = say("α of geometric noise, such as 1/2.")
    epsilon: Number | None = say("ε of randomised response.")
    keep: Number | None = say("Or its probability of the truth.")
    k: Whole | None = say("k of k-max.", option="-k")
    below: Whole | None = say("Suppress: the least count that is shown.")
    zeros: Text | None = say("Suppress: whether a count of 0 is shown (default) or hidden.")
    base: Whole | None = say("Round and random-round: the base, such as 5.")
    table: FilePath = say("Cell-key: the p-table (columns i, j, p or pcv, ckey, pvalue).")


class AboutSection(Section, place="[about]"):
    """Who answers for the release, and why it promises what it does; the report prints it."""

    controller: Statement | None = say("Who publishes, and answers for the data.")
    contact: Statement | None = say("Where people can ask about it.")
    population: Statement | None = say("Whom the table is about: all patients of two wards.")
    period: Statement | None = say("From when the data are: 2024, or January to June 2024.")
    replaces: Statement | None = say("What a correction replaces: request 6a23….")
    purpose: Statement | None = say("What the publication is for.", most=MAX_STATEMENT_LETTERS)
    region: Statement | None = say("Which country or region it is about.")
    decided_by: Statement | None = say("Who chose the adversary and the target.")
    reasons: Statement | None = say("Why these, and not others.", most=MAX_STATEMENT_LETTERS)

    @property
    def unsaid(self) -> list[str]:
        """Which of `SIGNED_KEYS` it does not say."""
        return [key for key in SIGNED_KEYS if getattr(self, key) is None]


def read_statements(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a ledger records of who answers for a release: [about], and beside it the title."""
    said = {key: words for key, words in given.items() if key != "title"}
    written = dict(AboutSection.read(said, "about").written)
    return written | ({"title": given["title"]} if written and given.get("title") else {})


SIGNED_KEYS = ("controller", "contact", "population", "period", "decided_by", "reasons")
"""What [about] has to say for a pack of evidence, and for pages that somebody signs."""
ABOUT_UNSAID = AboutSection.read({}, "about")


class ScheduleSection(Section, place="[schedule]"):
    """How the budget is divided over time; set when the dataset is opened."""

    every: Text | None = say("day, week, month, quarter or year.")
    until: Text | None = say("The last year, month or day: 2027-12.")
    start: Text | None = say("The first one; the day on which the dataset is opened by default.")
    periods: Shares = say("Or the periods: ['2027-01..2027-06', '2027-07..2027-12'].")
    shares: Shares = say("The share of the budget of each period; equal by default.")
    unspent: Text | None = say("rolls-on (by default) or lapses: what a period leaves.")


class ScenarioModel(Section):
    """A whosin scenario."""

    examples: ClassVar[Mapping[str, str]] = {
        "target": "[target] with posterior = 0.6",
        "table": "[table] with source = 'visits.csv'",
        "queries": "[[queries]] with kind = 'count'; in a draft, take the # off one at the end",
    }
    title: Text | None = say("What to call the release; the file's name by default.")
    about: AboutSection = say("Who answers for it.", ABOUT_UNSAID)
    adversary: AdversarySection = say(
        "Who may be looking; anyone.", AdversarySection.read({}, "adversary")
    )
    target: TargetSection = say("How sure they may become.", MISSING)
    table: TableSection = say("The table.", MISSING)
    tables: tuple[FurtherTableSection, ...] = say("Further tables.", ())
    features: tuple[FeatureSection, ...] = say("People's own features.", ())
    ledger: LedgerSection = say("Where the budget is kept.", LedgerSection.read({}, "ledger"))
    budget: BudgetSection = say(
        "How the batch divides its budget.", BudgetSection.read({}, "budget")
    )
    schedule: ScheduleSection = say(
        "How the budget is divided over time.", ScheduleSection.read({}, "schedule")
    )
    domains: Domains = say("What columns may hold; public knowledge.", None)
    queries: Queries = say("The questions.")

    @classmethod
    def refuse_unknown(cls, name: str) -> UnknownName:
        return UnknownName("key of the scenario", name, cls.known_keys())

    @classmethod
    def refuse_missing(cls, name: str) -> InvalidInput:
        form = cls.examples[name].partition(" ")[0]
        hint = f"add one, for example {cls.examples[name]}"
        return InvalidInput(f"the scenario has no {form}", field="scenario", value=name, hint=hint)


# Objects from keys: a notion or a mechanism takes the keys that its fields are called by.


def match_fields(kind: type, keys: Container[str]) -> dict[str, Any] | None:
    """The fields of a dataclass by the keys that fill them; None if it needs what no key says.

    A field has the key of its own name, or the key that the class's `spelled_as` gives it.
    """
    spelled = getattr(kind, "spelled_as", {})
    if not hasattr(kind, "__dataclass_fields__"):
        return None
    known = {spelled.get(each.name, each.name): each for each in fields(kind)}
    if any(name not in keys and _is_required(each) for name, each in known.items()):
        return None
    return {name: each for name, each in known.items() if name in keys}


def describe_object(
    kind: Callable[..., Described], name: str, given: Written, section: type[Section]
) -> Described:
    """The object that these keys describe; `name` is what it is called in messages.

    Raises:
        InvalidInput: a key that it does not take, or one is missing.
    """
    taken = match_fields(kind, section.known_keys())  # type: ignore[arg-type]
    if taken is None:
        message = f"{name} cannot be described by options"
        raise Unsupported(message, field=name, hint="make it in Python")
    for each in (each for each in given if each not in taken):
        with at(each):
            message = f"{each} has no meaning with {name}"
            raise InvalidInput(message, field=each, value=given[each], hint="leave it out")
    keys = section.known_keys()
    implied = {each: keys[each].implied for each in taken if keys[each].implied}
    values = {taken[each].name: value for each, value in (implied | dict(given)).items()}
    places = {its_field.name: each for each, its_field in taken.items()}
    for attribute, each in places.items():
        if _is_required(taken[each]) and attribute not in values:
            with at(each):
                raise InvalidInput(f"{name} needs {each}", field=each)
    return locate_errors(lambda: kind(**values), places | {"": ""})


def locate_errors(make: Callable[[], Described], names: Mapping[str, str]) -> Described:
    """What is made, whose errors are at the key that filled the field they are about."""
    try:
        return make()
    except WhosinError as error:
        error.path = names.get(getattr(error, "field", ""), names[""])
        raise


def _is_required(its_field: Any) -> bool:
    return bool(its_field.default is MISSING and its_field.default_factory is MISSING)
