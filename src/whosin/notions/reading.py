"""Notions from their parameters and from chain or block files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whosin.documents import check_keys, read_object
from whosin.errors import InvalidInput, UnknownName, at, check_kind, invalid_value, read_whole
from whosin.exact import rational
from whosin.families import Explicit, read_family
from whosin.mechanisms import Composed, Laplace, Mechanism
from whosin.notions import NOTION_KINDS
from whosin.notions.base import Notion
from whosin.notions.bayesian_privacy import BayesianDifferentialPrivacy
from whosin.notions.differential_privacy import read_metric
from whosin.notions.gains import read_gain
from whosin.notions.membership import PositiveMembership
from whosin.priors import Prior
from whosin.priors.table import DEPENDENCE_KEYS, read_blocks, read_dependence, read_prior
from whosin.scenario_model import NotionOptions, describe_object, match_fields
from whosin.spaces import Among, Count, Histogram, Records, Space, Statistic, Subsets, Sum

PARAMETER_READERS: dict[str, Callable[[Any], object]] = {
    "family": read_family,
    "gain": read_gain,
    "metric": read_metric,
    "prior-file": lambda file: read_prior(read_object(Path(file), Path(file).name)),
}
"""Parameters whose value is an object of its own."""


def notion_names() -> dict[str, type[Notion]]:
    """Every notion by its name, and by its short names."""
    short = {each: kind for kind in NOTION_KINDS.values() for each in kind.short_names}
    return {**NOTION_KINDS, **short}


def read_notion(name: str, data: Mapping[str, object]) -> Notion:
    """A notion with the parameters that it takes; others said with it are refused."""
    check_kind(name, str, "notion")
    if name not in notion_names():
        raise UnknownName("notion", name, notion_names())
    kind = notion_names()[name]
    keys = NotionOptions.known_keys()
    with at("notion"):
        given = NotionOptions.read(data, "notion").given
        for word, read in PARAMETER_READERS.items():
            if word in (match_fields(kind, keys) or ()):
                value = given.get(word, keys[word].implied)
                if value:
                    with at(word):
                        given[word] = read(value)
        return describe_object(kind, f"the notion {name}", given, NotionOptions)


def plain_words(notion: Notion) -> dict[str, object]:
    """The words that read a notion back, apart from its family and a prior's file."""
    taken = match_fields(type(notion), NotionOptions.known_keys()) or {}
    words = [word for word in taken if word not in ("family", "prior-file")]
    values = {word: getattr(notion, taken[word].name) for word in words}
    return {word: getattr(value, "spelled", value) for word, value in values.items()}


# What a chain file or a block file asks to be measured (the priors in them: `priors.table`).
#
# A chain, network or pedigree file adds "query": "sum", "count" or "histogram", and "scale";
# "weights" says what each value adds to a sum, and a list of scales stands for several releases,
# seen together. A block file adds "scale", of Laplace noise on the number of people present.
@dataclass(frozen=True)
class ChainFile:
    """Rows that depend on each other (chains, a network, a pedigree), and what is asked of them."""

    priors: tuple[Prior, ...]
    space: Records
    statistic: Statistic
    query: str
    scale: object
    releases: tuple[Laplace, ...] = ()

    def mechanism(self) -> Laplace | Composed:
        """The noisy query; several releases of it where the file lists several scales, or all of
        "releases"."""
        if self.releases:
            return Composed(self.releases)
        if self.scale is None or self.scale == []:
            hint = "give the scale of the noise, or a list of scales"
            raise InvalidInput("the chain file has no scale", field="scale", hint=hint)
        if isinstance(self.scale, list):
            return Composed([Laplace(self.statistic, scale) for scale in self.scale])
        return Laplace(self.statistic, self.scale)


def chain_file(data: dict[str, Any], query: str | None = None) -> ChainFile:
    """Read a chain file; `query` overrides what it asks."""
    priors, space = read_dependence(data)
    asked = query or data.get("query", "sum")
    statistics = {"sum": Sum(data.get("weights")), "count": Count(), "histogram": Histogram()}
    if not isinstance(asked, str) or asked not in statistics:
        raise UnknownName("query", str(asked), statistics)
    if "weights" in data and asked != "sum":
        message, value = f"weights have no meaning with {asked}", data["weights"]
        raise InvalidInput(message, field="weights", value=value, hint="leave them out")
    statistics[asked].weights(space)
    listed = check_kind(data.get("releases", []), list, "releases", "a list of releases")
    releases = tuple(read_release(each, space) for each in listed)
    if releases and "scale" in data:
        message = "scale has no meaning beside releases, which have their own"
        raise InvalidInput(message, field="scale", hint="leave it out")
    return ChainFile(priors, space, statistics[asked], asked, data.get("scale"), releases)


def read_release(data: object, space: Records) -> Laplace:
    """One release over rows that depend on each other: "query" ("sum", "count", "histogram"),
    "scale", and where it is about some rows only "rows", [first, last] or {"of": […]}."""
    data = check_kind(data, dict, "releases", "a list of objects")
    check_keys(data, ("query", "scale", "rows", "weights"), "release")
    statistics = {"sum": Sum(data.get("weights")), "count": Count(), "histogram": Histogram()}
    asked = data.get("query", "sum")
    if not isinstance(asked, str) or asked not in statistics:
        raise UnknownName("query", str(asked), statistics)
    statistic: Statistic = statistics[asked]
    if (rows := data.get("rows")) is not None:
        if isinstance(rows, dict):
            check_keys(rows, ("of",), "rows")
            listed = check_kind(rows.get("of"), list, "rows", "a list of rows")
        elif isinstance(rows, list) and len(rows) == 2:
            listed = list(range(read_whole(rows[0], "rows", 0), read_whole(rows[1], "rows", 0) + 1))
        else:
            raise invalid_value("rows", 'the first and the last row, or {"of": […]}', repr(rows))
        if not listed:
            raise invalid_value("rows", "at least one row", repr(rows))
        statistic = Among(statistic, tuple(listed))
    statistic.row_weights(space)
    if "scale" not in data:
        raise InvalidInput("a release has no scale", field="scale", hint="give it one")
    return Laplace(statistic, rational(data["scale"], "scale"))


def read_measurement(data: dict[str, Any]) -> tuple[Notion, Mechanism, Space] | None:
    """What a chain or block file asks to be measured; nothing for other files."""
    if any(key in data for key in DEPENDENCE_KEYS):
        series = chain_file(data)
        one = series.priors[0] if len(series.priors) == 1 else series.priors
        return BayesianDifferentialPrivacy(one), series.mechanism(), series.space
    if "blocks" in data:
        prior, people = read_blocks(data)
        if "scale" not in data:
            hint = "give the scale of the noise"
            raise InvalidInput("the block file has no scale", field="scale", hint=hint)
        noisy = Laplace(Count(), rational(data["scale"], "scale"))
        return PositiveMembership(Explicit([prior])), noisy, Subsets(people)
    return None
