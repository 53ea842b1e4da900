"""Reading chain files, block files and priors.

A chain file: {"chain": {"initial": […], "transition": [[…], …]}, "rows": 1000, "query": "sum",
"scale": 1}, or "chains" with a list; "weights" says what each value adds to a sum, and a list of
scales stands for several releases, seen together.
A block file: {"blocks": [{"size": 3, "copies": 400, "sets": [{"present": [0, 1, 2],
"probability": "1/2"}, …]}], "query": "count", "scale": 2}.
A prior file: {"kind": "markov-chain", "initial": …, "transition": …} and the like.
Numbers are read as they are spelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whosin.documents import check_object, read_json
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.mechanisms import Composed, Laplace
from whosin.priors import Blocks, Exchangeable, Independent, MarkovChain, Prior, Table, Uniform
from whosin.spaces import Count, Histogram, Records, Statistic, Subsets, Sum

MOST_PEOPLE = 100_000
"""In the blocks of a file."""
MOST_ROWS = 100_000
"""Of a chain; ten thousand take some seconds."""


@dataclass(frozen=True)
class ChainFile:
    """Series that follow a Markov chain, and what is asked of them."""

    chains: tuple[MarkovChain, ...]
    space: Records
    statistic: Statistic
    query: str
    scale: object

    def mechanism(self) -> Laplace | Composed:
        """The noisy query; several releases of it where the file lists several scales."""
        if self.scale is None or self.scale == []:
            raise InvalidInput("scale", "given in the chain file", "nothing")
        if isinstance(self.scale, list):
            return Composed([Laplace(self.statistic, scale) for scale in self.scale])
        return Laplace(self.statistic, self.scale)


@dataclass(frozen=True)
class BlockFile:
    """Households, and a noisy count of the people present."""

    prior: Blocks
    space: Subsets
    mechanism: Laplace


def load(path: Path) -> dict[str, Any]:
    """The object in a JSON file, decimals as they are spelled."""
    return check_object(read_json(path, "file", spelled=True), "file")


def check_keys(data: dict[str, Any], known: set[str], what: str) -> None:
    """Unknown keys are errors that name the nearest known one."""
    for key in data:
        if key not in known:
            raise UnknownName(f"key of the {what}", key, known)


def chain_file(data: dict[str, Any], query: str | None = None) -> ChainFile:
    """Read a chain file; `query` overrides what it asks."""
    check_keys(data, {"chain", "chains", "rows", "query", "scale", "weights"}, "chain file")
    if ("chain" in data) == ("chains" in data):
        raise InvalidInput("chain file", "'chain' or 'chains', one of the two", "both or none")
    listed = data.get("chains", [data.get("chain")])
    if not isinstance(listed, list) or not listed:
        raise InvalidInput("chains", "a list of chains", repr(listed))
    chains = tuple(_chain(each) for each in listed)
    if len({chain.values for chain in chains}) > 1:
        raise InvalidInput("chains", "of one number of values", "several")
    rows = data.get("rows")
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
        accepted = f"a whole number from 1 to {MOST_ROWS:,}: how long the series is"
        raise InvalidInput("rows", accepted, rows)
    asked = query or data.get("query", "sum")
    statistics = {"sum": Sum(data.get("weights")), "count": Count(), "histogram": Histogram()}
    if not isinstance(asked, str) or asked not in statistics:
        raise UnknownName("query", str(asked), statistics)
    if "weights" in data and asked != "sum":
        raise InvalidInput("weights", f"left out for a {asked}", repr(data["weights"]))
    space = Records(rows, chains[0].values)
    for chain in chains:
        chain.check_records(space)
    statistics[asked].weights(space)
    return ChainFile(chains, space, statistics[asked], asked, data.get("scale"))


def _chain(data: object) -> MarkovChain:
    if not isinstance(data, dict):
        raise InvalidInput("chain", "an object with initial and transition", repr(data))
    check_keys(data, {"initial", "transition", "kind"}, "chain")
    for key in ("initial", "transition"):
        if not isinstance(data.get(key), list):
            raise InvalidInput(key, "a list", repr(data.get(key)))
    return MarkovChain(data["initial"], data["transition"])


def block_file(data: dict[str, Any]) -> BlockFile:
    """Read a block file."""
    prior, people = block_prior(data)
    if "scale" not in data:
        raise InvalidInput("scale", "given in the block file", "nothing")
    noisy = Laplace(Count(), rational(data["scale"], "scale"))
    return BlockFile(prior, Subsets(people), noisy)


def block_prior(data: dict[str, Any]) -> tuple[Blocks, int]:
    """The prior of a block file, and how many people it is about."""
    check_keys(data, {"blocks", "query", "scale"}, "block file")
    if data.get("query", "count") != "count":
        raise InvalidInput("query", "count", repr(data["query"]))
    listed = data.get("blocks")
    if not isinstance(listed, list) or not listed:
        raise InvalidInput("blocks", "a list of blocks", listed)
    blocks: list[tuple[range, dict[tuple[int, ...], object]]] = []
    people = 0
    for number, block in enumerate(listed):
        if not isinstance(block, dict):
            raise InvalidInput(f"block {number}", "an object", repr(block))
        check_keys(block, {"size", "copies", "sets"}, "block")
        size: Any = block.get("size")
        copies: Any = block.get("copies", 1)
        if not _count(size) or not _count(copies):
            got = f"{size} and {copies}"
            raise InvalidInput(f"size and copies of block {number}", "whole numbers", got)
        if people + size * copies > MOST_PEOPLE:
            raise InvalidInput("blocks", f"of at most {MOST_PEOPLE:,} people together", "more")
        sets = block.get("sets")
        if not isinstance(sets, list) or not all(isinstance(each, dict) for each in sets):
            raise InvalidInput(f"sets of block {number}", "a list of objects", repr(sets))
        for _ in range(copies):
            table = {}
            for each in sets:
                check_keys(each, {"present", "probability"}, "set")
                present = each.get("present")
                if not isinstance(present, list) or any(
                    not isinstance(who, int) or not 0 <= who < size for who in present
                ):
                    raise InvalidInput("present", f"people from 0 to {size - 1}", repr(present))
                table[tuple(people + who for who in present)] = each.get("probability")
            blocks.append((range(people, people + size), table))
            people += size
    return Blocks(blocks), people


def prior_file(path: Path) -> Prior:
    """Read a prior on records."""
    return prior_of(load(path))


def prior_of(data: dict[str, Any]) -> Prior:
    """The prior on records in a prior file's data."""
    kinds = {
        "independent": {"kind", "p"},
        "uniform": {"kind"},
        "exchangeable": {"kind", "sizes"},
        "markov-chain": {"kind", "initial", "transition"},
        "table": {"kind", "probabilities"},
    }
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise UnknownName("kind of the prior", str(kind), kinds)
    check_keys(data, kinds[kind], "prior")
    for key in kinds[kind] - {"kind"}:
        if not isinstance(data.get(key), list):
            raise InvalidInput(key, "a list", repr(data.get(key)))
    if kind == "independent":
        return Independent(data["p"])
    if kind == "exchangeable":
        return Exchangeable(data["sizes"])
    if kind == "markov-chain":
        return _chain(data)
    if kind == "table":
        return Table([rational(p, "probabilities") for p in data["probabilities"]])
    return Uniform()


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
