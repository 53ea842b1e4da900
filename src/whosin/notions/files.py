"""What a chain file or a block file asks to be measured (the priors in them: `priors.files`).

A chain file adds "query": "sum", "count" or "histogram", and "scale"; "weights" says what each
value adds to a sum, and a list of scales stands for several releases, seen together. A block file
adds "scale", of Laplace noise on the number of people present.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.families import Explicit
from whosin.mechanisms import Composed, Laplace, Mechanism
from whosin.notions.base import Notion
from whosin.notions.bayesian_differential_privacy import BayesianDifferentialPrivacy
from whosin.notions.membership import PositiveMembership
from whosin.priors import MarkovChain
from whosin.priors.files import blocks_of, chains_of
from whosin.spaces import Count, Histogram, Records, Space, Statistic, Subsets, Sum


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


def chain_file(data: dict[str, Any], query: str | None = None) -> ChainFile:
    """Read a chain file; `query` overrides what it asks."""
    chains, space = chains_of(data)
    asked = query or data.get("query", "sum")
    statistics = {"sum": Sum(data.get("weights")), "count": Count(), "histogram": Histogram()}
    if not isinstance(asked, str) or asked not in statistics:
        raise UnknownName("query", str(asked), statistics)
    if "weights" in data and asked != "sum":
        raise InvalidInput("weights", f"left out for a {asked}", repr(data["weights"]))
    statistics[asked].weights(space)
    return ChainFile(chains, space, statistics[asked], asked, data.get("scale"))


def measurement(data: dict[str, Any]) -> tuple[Notion, Mechanism, Space] | None:
    """What a chain or block file asks to be measured; nothing for other files."""
    if "chain" in data or "chains" in data:
        series = chain_file(data)
        one = series.chains[0] if len(series.chains) == 1 else series.chains
        return BayesianDifferentialPrivacy(one), series.mechanism(), series.space
    if "blocks" in data:
        prior, people = blocks_of(data)
        if "scale" not in data:
            raise InvalidInput("scale", "given in the block file", "nothing")
        noisy = Laplace(Count(), rational(data["scale"], "scale"))
        return PositiveMembership(Explicit([prior])), noisy, Subsets(people)
    return None
