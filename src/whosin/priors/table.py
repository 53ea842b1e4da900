"""A prior written out world by world, and priors from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from whosin.documents import check_keys
from whosin.errors import (
    InvalidInput,
    UnknownName,
    check_count,
    check_kind,
    invalid_value,
    read_list,
    read_whole,
    shorten_value,
    spell,
)
from whosin.exact import Array, probability, rational
from whosin.priors.base import AsNumber, Prior, check_sum
from whosin.priors.correlated import Blocks, MarkovChain, Network
from whosin.priors.independent import Exchangeable, Independent, Uniform
from whosin.priors.sets import Box, ChainBox, Hull
from whosin.spaces import Lattice, Records, Space, Subsets


@dataclass(frozen=True, init=False, eq=False)
class WorldTable(Prior):
    """An explicit distribution over worlds.

    Args:
        probabilities: a list in world order, or a mapping from a world (its number, or the set of
            entities present) to its probability; worlds left out have probability 0.
    """

    support: Mapping[Any, object]
    length: int | None

    def __init__(self, probabilities: Iterable[object] | Mapping[Any, object]) -> None:
        if isinstance(probabilities, Mapping):
            support, length = dict(probabilities), None
        else:
            values = read_list(probabilities, "probabilities", "a list of numbers, or a mapping")
            support = {world: value for world, value in enumerate(values) if value}
            length = len(values)
        object.__setattr__(self, "support", support)
        object.__setattr__(self, "length", length)
        check_sum(self._exact.values(), "probabilities")

    @property
    def parameters(self) -> tuple[object, ...]:
        return tuple(self.support.values())

    @cached_property
    def _exact(self) -> dict[Any, Fraction]:
        return {w: probability(value, "probabilities") for w, value in self.support.items()}

    def worlds(self, space: Space) -> dict[int, Fraction]:
        """World number → probability, positive ones only."""
        if self.length is not None:
            check_count(self.length, space.worlds, "probabilities", "numbers", "worlds")
        table: dict[int, Fraction] = {}
        for world, mass in self._exact.items():
            number = world if isinstance(world, int) else space.index(world)
            if not 0 <= number < space.worlds:
                raise invalid_value("world", f"from 0 to {space.worlds - 1}", number)
            if mass:
                table[number] = table.get(number, Fraction(0)) + mass
        return table

    def check(self, space: Subsets) -> None:
        self.worlds(space)

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        return self._spread(lattice, self.worlds(lattice.space), number)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        table = self.worlds(lattice.space)
        sides = []
        for side in (1, 0):
            kept = {w: m for w, m in table.items() if w >> entity & 1 == side}
            total = sum(kept.values(), Fraction(0))
            sides.append(self._spread(lattice, {w: m / total for w, m in kept.items()}, number))
        return sides[0], sides[1]

    def _spread(self, lattice: Lattice, table: dict[int, Fraction], number: AsNumber) -> Array:
        out = np.zeros(lattice.worlds, dtype=float if number is float else object)
        size = lattice.space.size
        for world, mass in table.items():
            present = [entity for entity in range(size) if world >> entity & 1]
            out[lattice.class_of(present)] += number(mass)
        return out

    def on_records(self, space: Records, number: AsNumber) -> Array:
        """Worlds are given by number or by the tuple of their rows' values."""
        out = np.zeros(space.worlds, dtype=float if number is float else object)
        for world, mass in self.worlds(space).items():
            out[world] = number(mass)
        return out

    def belief(self, space: Subsets, entity: int) -> Fraction:
        table = self.worlds(space)
        inside = sum((m for w, m in table.items() if w >> entity & 1), Fraction(0))
        return inside / sum(table.values())


# Priors on records from files: a prior, a series that follows a chain, blocks of people.
#
# A prior file: {"kind": "markov-chain", "initial": …, "transition": …} and the like; of a set:
# {"kind": "box", "low": […], "high": […]}, or "hull" with "points". A chain file:
# {"chain": {"initial": […], "transition": [[…], …]}, "rows": 1000}, or "chains" with a list. A
# block file: {"blocks": [{"size": 3, "copies": 400, "sets": [{"present": [0, 1, 2], "probability":
# "1/2"}, …]}]}, or "causes": [{"probability": 0.1, "present": 0.8}, …] for what a household shares;
# row i of its records is 1 where person i is present. What is asked of them is `notions.reading`.
# Numbers are read as they are spelled.

MAX_BLOCK_PEOPLE = 100_000
"""People in the blocks of a file."""
MAX_CHAIN_ROWS = 100_000
"""Rows of a chain; ten thousand take some seconds."""
PRIOR_KINDS: dict[str, tuple[Any, ...]] = {
    "independent": (Independent, "p"),
    "uniform": (Uniform,),
    "exchangeable": (Exchangeable, "sizes"),
    "markov-chain": (MarkovChain, "initial", "transition"),
    "table": (
        lambda given: WorldTable([rational(p, "probabilities") for p in given]),
        "probabilities",
    ),
    "hull": (
        lambda given: Hull(
            [read_prior(each) if isinstance(each, dict) else each for each in given]
        ),
        "points",
    ),
    "box": (Box, "low", "high"),
}
"""How a prior is made, and from which lists of its file."""


def read_prior(data: dict[str, Any]) -> Prior:
    """The prior on records in a prior file's data."""
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in PRIOR_KINDS:
        raise UnknownName("kind of the prior", str(kind), PRIOR_KINDS)
    made, *keys = PRIOR_KINDS[kind]
    check_keys(data, ("kind", *keys), "prior")
    prior: Prior = made(*(_read_list(data, key) for key in keys))
    return prior


def _read_list(data: dict[str, Any], key: str) -> list[Any]:
    return check_kind(data.get(key), list, key, "a list")


ASKED_KEYS = ("query", "scale", "weights", "releases")
"""What such a file asks: see `notions.reading`."""
DEPENDENCE_KEYS = ("chain", "chains", "network", "pedigree")
"""Which of them a file about rows that depend on each other has."""


def read_dependence(data: dict[str, Any]) -> tuple[tuple[Prior, ...], Records]:
    """The priors of a chain, network or pedigree file, and the rows they are about."""
    given = [key for key in DEPENDENCE_KEYS if key in data]
    if len(given) == 1 and given[0] in ("network", "pedigree"):
        check_keys(data, (given[0], *ASKED_KEYS), f"{given[0]} file")
        return _read_network(data) if given[0] == "network" else _read_pedigree(data["pedigree"])
    return read_chains(data)


def _read_network(data: dict[str, Any]) -> tuple[tuple[Network], Records]:
    """{"network": [{"parents": [0], "given": {"0": […], "1": […]}}, …]}: rows in order, the values
    of several parents separated by commas; a row without parents has "given": {"": […]}."""
    nodes: list[tuple[tuple[int, ...], dict[tuple[int, ...], list[Any]]]] = []
    for row, node in enumerate(_read_list(data, "network")):
        where = f"row {row} of the network"
        check_keys(check_kind(node, dict, where, "an object"), ("parents", "given"), where)
        parents = check_kind(node.get("parents", []), list, f"parents of row {row}", "a list")
        table = {}
        for key, chances in check_kind(node.get("given"), dict, f"given of row {row}").items():
            values = [part.strip() for part in key.split(",")] if key else []
            if not all(part.isdecimal() for part in values):
                raise invalid_value(f"given of row {row}", "keyed by the parents' values", key)
            table[tuple(map(int, values))] = check_kind(chances, list, f"given of row {row}")
        nodes.append((tuple(parents), table))
    lengths = {len(chances) for _, table in nodes for chances in table.values()}
    if len(lengths) != 1:
        raise invalid_value("network", "as many probabilities in every row", sorted(lengths))
    space = Records(len(nodes), lengths.pop())
    network = Network(nodes)
    network.factors(space)
    return (network,), space


def _read_pedigree(data: object) -> tuple[tuple[Network], Records]:
    """{"pedigree": {"frequency": 0.1, "people": {"ann": [], "bob": ["father", "mother"], …}}}."""
    data = check_kind(data, dict, "pedigree", "an object with frequency and people")
    check_keys(data, ("frequency", "people"), "pedigree")
    people = check_kind(data.get("people"), dict, "people", "an object: a person, the parents")
    for name, parents in people.items():
        check_kind(parents, list, f"parents of {name}", "a list: the father and the mother")
    network = Network.pedigree(
        {name: tuple(parents or (None, None)) for name, parents in people.items()},
        data.get("frequency"),
    )
    return (network,), Records(len(people), 3)


def read_chains(data: dict[str, Any]) -> tuple[tuple[MarkovChain | ChainBox, ...], Records]:
    """The chains of a chain file, and the rows they are about."""
    check_keys(data, ("chain", "chains", "rows", *ASKED_KEYS), "chain file")
    if ("chain" in data) == ("chains" in data):
        raise InvalidInput(
            "the file has both chain and chains" if "chain" in data else "the file has no chain",
            field="keys of the chain file",
            hint="give chain, or chains for several",
        )
    listed = data.get("chains", [data.get("chain")])
    if not isinstance(listed, list) or not listed:
        raise invalid_value("chains", "a list of chains", repr(listed))
    chains = tuple(map(_read_chain, listed))
    if len(values := {chain.values for chain in chains}) > 1:
        raise invalid_value("chains", "about the same number of values", sorted(values))
    rows = read_whole(data.get("rows"), "rows", 1, MAX_CHAIN_ROWS, ": how long the series is")
    space = Records(rows, chains[0].values)
    for chain in chains:
        chain.check_records(space)
    return chains, space


def _read_chain(data: object) -> MarkovChain | ChainBox:
    """A chain; or chains between bounds, {"low": […], "high": […]} in place of distributions."""
    data = check_kind(data, dict, "chain", "an object with initial and transition")
    check_keys(data, ("initial", "transition", "kind"), "chain")
    rows = _read_list(data, "transition")
    if any(isinstance(each, dict) for each in (data.get("initial"), *rows)):
        return ChainBox(_read_bounded(data.get("initial")), map(_read_bounded, rows))
    return MarkovChain(_read_list(data, "initial"), _read_list(data, "transition"))


def _read_bounded(row: Any) -> Any:
    """A distribution, or bounds of one."""
    if not isinstance(row, dict):
        return row
    check_keys(row, ("low", "high"), "bounds of a chain")
    return Box(_read_list(row, "low"), _read_list(row, "high"))


def read_blocks(data: dict[str, Any]) -> tuple[Blocks, int]:
    """The prior of a block file, and how many people it is about."""
    check_keys(data, ("blocks", "query", "scale"), "block file")
    if data.get("query", "count") != "count":
        raise invalid_value("query", "count for blocks", shorten_value(data["query"]))
    listed = data.get("blocks")
    if not isinstance(listed, list) or not listed:
        raise invalid_value("blocks", "a list of blocks", listed)
    blocks: list[tuple[range, dict[tuple[int, ...], object]]] = []
    people = 0
    for number, block in enumerate(listed):
        check_keys(
            check_kind(block, dict, f"block {number}", "an object"),
            ("size", "copies", "sets", "causes"),
            "block",
        )
        size = read_whole(block.get("size"), f"size of block {number}", 1)
        copies = read_whole(block.get("copies", 1), f"copies of block {number}", 1)
        if people + size * copies > MAX_BLOCK_PEOPLE:
            accepted = f"about at most {spell(MAX_BLOCK_PEOPLE)} people"
            raise invalid_value("blocks", accepted, spell(people + size * copies))
        if "causes" in block and "sets" not in block:
            groups = [range(people + n * size, people + (n + 1) * size) for n in range(copies)]
            causes = [
                (check_kind(each, dict, "causes").get("probability"), each.get("present"))
                for each in check_kind(block["causes"], list, f"causes of block {number}")
            ]
            shared = Blocks.common_cause(groups[:1], causes).tables()[0][1]
            for group in groups:
                present = [
                    tuple(who for k, who in enumerate(group) if world >> (size - 1 - k) & 1)
                    for world in range(1 << size)
                ]
                blocks.append((group, dict(zip(present, shared, strict=True))))
            people += size * copies
            continue
        sets = block.get("sets")
        if not isinstance(sets, list) or not all(isinstance(each, dict) for each in sets):
            raise invalid_value(f"sets of block {number}", "a list of objects", repr(sets))
        for _ in range(copies):
            table = {}
            for each in sets:
                check_keys(each, ("present", "probability"), "set")
                present = each.get("present")
                for who in check_kind(present, list, "present", "a list of people"):
                    read_whole(who, "present", 0, size - 1)
                table[tuple(people + who for who in present)] = each.get("probability")
            blocks.append((range(people, people + size), table))
            people += size
    return Blocks(blocks), people


def read_record_prior(
    data: dict[str, Any], rows: int | None = None, values: int | None = None
) -> tuple[Prior, Records]:
    """The one prior of a prior, chain or block file, on the rows that the file or the caller says.

    Args:
        rows, values: what the file leaves open; where it says so itself, the same or nothing.
    """
    prior: Prior
    if any(key in data for key in DEPENDENCE_KEYS):
        listed, space = read_dependence(data)
        if len(listed) != 1:
            raise invalid_value("chains", "one chain, as one prior is needed", len(listed))
        prior, sizes = listed[0], (space.rows, space.values)
    elif "blocks" in data:
        prior, people = read_blocks(data)
        sizes = (people, 2)
    else:
        prior = read_prior(data)
        sizes = _prior_sizes(prior, rows, values)
    for field, asked, inside in (("rows", rows, sizes[0]), ("values", values, sizes[1])):
        if asked not in (None, inside):
            hint = f"leave {field} out"
            raise invalid_value(field, f"{inside}, as the file says", asked, hint)
    return prior, Records(*sizes)


def _prior_sizes(prior: Prior, rows: int | None, values: int | None) -> tuple[int, int]:
    """How many rows of how many values a prior is about, where it says so."""
    count: int | None = rows
    m = 2 if values is None else values
    if isinstance(prior, Exchangeable):
        count, m = len(prior.sizes) - 1, 2
    elif isinstance(prior, MarkovChain):
        m = prior.values
    elif isinstance(prior, Hull) and prior.are_priors:
        return _prior_sizes(prior.points[0], rows, values)
    elif isinstance(prior, Hull | Box):
        count = len(prior.sets) if prior.by_row else rows
        m = prior.sets[0].values if values is None or prior.by_row else values
    elif isinstance(prior, Independent):
        listed: Any = prior.p
        count, m = (len(listed), len(listed[0])) if prior.by_row else (rows, len(listed))
    elif isinstance(prior, WorldTable) and rows is None and m > 1 and prior.length is not None:
        count = next((n for n in range(1, 64) if m**n >= prior.length), 1)
    if count is None:
        message = "the file does not say how many rows there are"
        raise InvalidInput(message, field="rows", hint="give rows")
    return count, m
