"""Notions from their parameters and from chain or block files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whosin.beliefs import ratio_for_gamma
from whosin.documents import check_keys, read_object
from whosin.errors import (
    InvalidInput,
    UnknownName,
    at,
    check_kind,
    invalid_value,
    read_list,
    read_whole,
)
from whosin.exact import exact_fraction, log_up, rational
from whosin.families import Explicit, read_family
from whosin.mechanisms import Composed, Laplace, Mechanism, read_mechanism
from whosin.notions import NOTION_KINDS
from whosin.notions.base import Notion
from whosin.notions.bayesian_privacy import BayesianDifferentialPrivacy
from whosin.notions.differential_privacy import read_metric
from whosin.notions.gains import read_gain
from whosin.notions.gaussian_leakage import (
    GaussianLeakage,
    GaussianRelease,
    measure_gaussian_leakage,
)
from whosin.notions.membership import PositiveMembership
from whosin.priors import GaussianVector, Prior
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


# Releases that are measured together: of a chain, network or pedigree, of normal rows, or against a
# family of adversaries: {"family": "one-of=3", "people": 20, "releases": [{"query": "sum",
# "weights": [a number for each person], "scale": 5}, {"mechanism": "geometric", "scale": 2}]}.
RELEASE_KEYS = ("query", "scale", "weights")


def split_releases(data: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    """What a file says of the data, and the releases that it asks for."""
    model = {key: each for key, each in data.items() if key not in (*RELEASE_KEYS, "releases")}
    if "releases" in data:
        if "scale" in data:
            message = "scale has no meaning beside releases, which have their own"
            raise InvalidInput(message, field="scale", hint="leave it out")
        return model, tuple(check_kind(data["releases"], list, "releases", "a list of releases"))
    own = {key: data[key] for key in RELEASE_KEYS if key in data}
    scales = own.pop("scale", None)
    if scales is None or scales == []:
        message = "there is no release: the file has no scale"
        raise InvalidInput(message, field="scale", hint="give the scale of the noise, or releases")
    return model, tuple({**own, "scale": each} for each in _read_scales(scales))


def _read_scales(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def measure_jointly(model: Mapping[str, Any], releases: Sequence[Mapping[str, Any]]) -> float:
    """ε of these releases together, rounded up: the largest log ratio that an adversary of the
    model sees, known rows, unknown rows and all.

    Raises:
        InvalidInput: the model or a release makes no sense.
        Unsupported: no exact way to measure them together is known.
    """
    if "gaussian" in model:
        return measure_gaussian_file(model, releases).epsilon if releases else 0.0
    if "family" in model:
        check_keys(dict(model), ("family", "people"), "model")
        notion, space = _read_family_model(model)
        if not releases:
            return 0.0
        gamma = notion.measure(_join_releases(releases), space).value
        if gamma == math.inf:
            return math.inf
        return log_up(ratio_for_gamma(exact_fraction(gamma), *notion.family.beliefs))
    if not any(key in model for key in DEPENDENCE_KEYS):
        listed = ", ".join((*DEPENDENCE_KEYS, "gaussian", "family"))
        message = f"the model has none of {listed}"
        raise InvalidInput(message, field="model", hint="say how rows depend on each other")
    priors, rows = read_dependence(dict(model))
    if not releases:
        return 0.0
    joint = Composed([read_release(dict(each), rows) for each in releases])
    return float(BayesianDifferentialPrivacy(priors).measure(joint, rows).value)


def measure_gaussian_file(
    model: Mapping[str, Any], releases: Sequence[Mapping[str, Any]]
) -> GaussianLeakage:
    """What Gaussian releases over normal rows leak together."""
    check_keys(dict(model), ("gaussian", "delta", "distance"), "model")
    given = check_kind(model["gaussian"], dict, "gaussian", "an object")
    check_keys(given, ("covariance", "autoregressive", "rows", "innovation"), "gaussian")
    if "covariance" in given:
        prior = GaussianVector(given["covariance"])
    else:
        prior = GaussianVector.autoregressive(
            given.get("autoregressive", ()), given.get("rows", 0), given.get("innovation", 1)
        )
    listed = []
    for each in releases:
        check_keys(dict(each), ("weights", "sigma"), "release")
        listed.append(GaussianRelease(each.get("weights", ()), each.get("sigma")))
    delta, distance = model.get("delta"), model.get("distance", 1)
    return measure_gaussian_leakage(prior, listed, delta, distance)


def _read_family_model(model: Mapping[str, Any]) -> tuple[PositiveMembership, Subsets]:
    if "people" not in model:
        hint = "say how many there are, such as 20"
        raise InvalidInput("the model has no people", field="people", hint=hint)
    notion = PositiveMembership(read_family(model["family"]))
    return notion, Subsets(read_whole(model["people"], "people", 1))


def _join_releases(releases: Sequence[Mapping[str, Any]]) -> Mechanism:
    """These releases as one mechanism.

    Laplace noise of scales s_1, s_2, … on one statistic counts as one release whose rate 1/s is
    the sum of theirs: outputs that are all alike show as much as that release does, and no others
    show more. One world against a mean of several: each term is least at that world's own value,
    by the triangle inequality. A mean of several against one: e^x is convex, so outputs that differ
    show at most the mean of what each of them, repeated, does. Independent priors see e^rate beyond
    all values, and never more (the world-level bound).
    """
    merged: dict[Statistic, Any] = {}
    parts: list[Mechanism] = []
    for each in releases:
        made = _read_family_release(each)
        if type(made) is Laplace and isinstance(made.statistic, Statistic):
            merged[made.statistic] = merged.get(made.statistic, 0) + 1 / rational(made.scale)
        else:
            parts.append(made)
    parts += [Laplace(statistic, 1 / rate) for statistic, rate in merged.items()]
    return parts[0] if len(parts) == 1 else Composed(parts)


def _read_family_release(data: object) -> Mechanism:
    data = check_kind(data, dict, "releases", "a list of objects")
    if "mechanism" in data:
        words = {key: each for key, each in data.items() if key != "mechanism"}
        if "table" in words:
            message = "a release has no file of its own"
            raise InvalidInput(message, field="table", hint="use another mechanism")
        return read_mechanism(data["mechanism"], words)
    check_keys(data, RELEASE_KEYS, "release")
    weights = read_list(data.get("weights", ()), "weights", "a list, a number for each person")
    statistics = {"count": Count(), "sum": Sum(weights or None)}
    asked = data.get("query", "count")
    if not isinstance(asked, str) or asked not in statistics:
        raise UnknownName("query", str(asked), statistics)
    if "weights" in data and asked != "sum":
        message = f"weights have no meaning with {asked}"
        raise InvalidInput(message, field="weights", hint="leave them out")
    if "scale" not in data:
        raise InvalidInput("a release has no scale", field="scale", hint="give it one")
    return Laplace(statistics[asked], rational(data["scale"], "scale"))


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
    if "family" in data:
        model, releases = split_releases(data)
        check_keys(model, ("family", "people"), "file")
        if not releases:
            message = "releases is empty"
            raise InvalidInput(message, field="releases", hint="give at least one release")
        notion, space = _read_family_model(model)
        return notion, _join_releases(releases), space
    return None
