"""Bodies of requests: the same keys as a scenario file, with bounds on what a server takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from whosin import vocabulary
from whosin.vocabulary import Word

Text = Annotated[str, Field(max_length=100)]
Spelled = Annotated[
    Text | float, Field(description='A number, or a text that spells one exactly: "0.6", "1/3"')
]
Short = Annotated[str, Field(max_length=200)]
Many = Annotated[int, Field(ge=-(10**9), le=10**9)]
Whole = Annotated[int, Field(ge=-(10**18), le=10**18)]
"""Numbers that can be printed and computed with; the library says which of them make sense."""
REQUEST = r"^[A-Za-z0-9-]{8,80}$"
REQUEST_WORDS = "8 to 80 letters, digits and dashes"


class Body(BaseModel):
    """A body whose keys are all known."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)


TAKES: dict[str, Any] = {
    "number": Spelled,
    "whole": Many,
    "range": Text | float,
    "flag": bool,
    "profile": Text | dict[str, Spelled],
    "text": Text,
}


def _section(name: str, words: Mapping[str, Word], about: str) -> type[Body]:
    """A body with the words of one section of a scenario."""
    keys: dict[str, Any] = {
        word.name.replace("-", "_"): (
            TAKES[word.takes] | None,
            Field(default=None, alias=word.name, description=word.help),
        )
        for word in words.values()
    }
    return create_model(name, __base__=Body, __doc__=about, **keys)


AdversaryBody = _section("AdversaryBody", vocabulary.ADVERSARY, "Who may be looking.")
TargetBody = _section(
    "TargetBody", vocabulary.TARGET, "How sure they may become: one target, and δ if it may fail."
)


class SourceBody(Body):
    """The table: a file of the served folder."""

    source: Short
    entity: Short = Field(description='The column that says whose row it is; "row" for each row')
    rows: Whole = Field(default=1, description="How many rows of an entity count, at most")
    groups: Whole = Field(default=1, description="How many cells of a group-by an entity may be in")


class FurtherBody(Body):
    """A further table: a file of the served folder."""

    name: Text
    source: Short
    entity: Short | None = None
    rows: Whole | None = Field(default=None, description="How many rows of an entity are joined")
    public: bool | None = Field(default=None, description="Whether its rows are looked up by a key")
    key: Short | None = None
    on: Short | None = None
    to: Short | None = None


class BudgetBody(Body):
    """How a batch divides its budget."""

    split: Short = "weights"
    noise: Short = "laplace"
    share: Spelled | None = None


class LookBody(Body):
    """A table, and what its columns may hold."""

    table: SourceBody
    domains: dict[Short, Any] = Field(
        default={}, max_length=500, description="By column: a list of values, or {lower, upper}"
    )
    tables: list[FurtherBody] = Field(
        default=[], max_length=20, description="As [[tables]] of a scenario file"
    )
    features: list[dict[Short, Short]] = Field(
        default=[], max_length=100, description="As [[features]] of a scenario file"
    )


class SqlBody(LookBody):
    """A SELECT, and the table that it asks."""

    sql: str = Field(max_length=10_000, description="One SELECT from the table")


class PlanBody(Body):
    """An adversary and a target."""

    adversary: AdversaryBody = AdversaryBody()  # type: ignore[valid-type]
    target: TargetBody  # type: ignore[valid-type]


class ScenarioBody(LookBody, PlanBody):
    """A scenario, as in a scenario file."""

    title: Short = "Release"
    budget: BudgetBody = BudgetBody()
    queries: list[dict[str, Any]] = Field(
        min_length=1, max_length=100, description="As [[queries]] of a scenario file"
    )


class ReleaseBody(Body):
    """A scenario and an id of this release: a retry under the same id neither pays nor answers
    again."""

    scenario: ScenarioBody
    request: str = Field(pattern=REQUEST, description=f"An id of your own: {REQUEST_WORDS}")


class TextBody(Body):
    """A file's text."""

    text: str = Field(max_length=1_000_000)


# Files are read by the command alone.
NotionWords = _section(
    "NotionWords",
    {name: word for name, word in vocabulary.NOTION.items() if word.takes != "file"},
    "What a notion is measured with.",
)


class VerifyBody(NotionWords):  # type: ignore[misc, valid-type]
    """A channel file's text, and what to measure."""

    channel: str = Field(max_length=1_500_000, description="A channel file (JSON), as text")
    notion: str = Field(default="membership", max_length=100)
    at_most: Spelled | None = Field(default=None, description="A claim to check")

    def words(self) -> dict[str, Any]:
        """The words of the notion that were given."""
        return dict(self.model_dump(by_alias=True, include=set(NotionWords.model_fields)))


class TradeoffBody(Body):
    """Rows of one distribution."""

    rows: Whole
    values: Whole = 2
    prior: str = Field(default="uniform", max_length=400, description='uniform, or "0.7,0.3"')


Csv = Annotated[str, Field(max_length=300_000)]


class PublishedBody(Body):
    """A table as it would be published, as `whosin check table` takes it."""

    published: Csv = Field(description="The table as it would be shown (CSV)")
    population: Csv = Field(description="How many people could be in each cell (CSV)")
    prior: Spelled
    rule: Short | None = Field(default=None, description="suppress=5, round=5, suppress=8,round=5")
    totals: Text = "counted"
    secondary: bool = Field(default=False, description="Further cells were suppressed too")
    secondary_by: Text | None = Field(
        default=None, description="How they were chosen: next-smallest, next-smallest:hidden"
    )
    before: Csv | None = Field(default=None, description="An earlier table of the same cells")
    population_before: Csv | None = None
    secret: Text = "membership"


class TokenBody(Body):
    """A user's token."""

    token: str = Field(max_length=200)


class Problem(BaseModel):
    """What went wrong, and in which field of the request."""

    field: str | None
    message: str


class Refusal(BaseModel):
    """The one shape of all refusals."""

    error: Problem


def data(body: BaseModel) -> dict[str, Any]:
    """The keys that were given, as in a scenario file."""
    return body.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
