"""Mechanisms: the probability of each output in each world.

`MECHANISMS` is the registry: the command, the reference and contract tests find a mechanism there.
Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin import vocabulary
from whosin.errors import UnknownName, at
from whosin.mechanisms.base import Mechanism as Mechanism
from whosin.mechanisms.base import as_channel as as_channel
from whosin.mechanisms.channel import Channel as Channel
from whosin.mechanisms.composed import Composed as Composed
from whosin.mechanisms.count_rules import CellKey as CellKey
from whosin.mechanisms.count_rules import Exact as Exact
from whosin.mechanisms.count_rules import FromTable as FromTable
from whosin.mechanisms.count_rules import RandomRound as RandomRound
from whosin.mechanisms.count_rules import Round as Round
from whosin.mechanisms.count_rules import Suppress as Suppress
from whosin.mechanisms.except_first import ExceptFirst as ExceptFirst
from whosin.mechanisms.exponential import Exponential as Exponential
from whosin.mechanisms.gaussian import Gaussian as Gaussian
from whosin.mechanisms.geometric import Geometric as Geometric
from whosin.mechanisms.k_max import KMax as KMax
from whosin.mechanisms.k_max import KMaxAsPublished as KMaxAsPublished
from whosin.mechanisms.laplace import Laplace as Laplace
from whosin.mechanisms.mixture import Mixture as Mixture
from whosin.mechanisms.post_processed import PostProcessed as PostProcessed
from whosin.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
from whosin.mechanisms.sampled import Sampled as Sampled
from whosin.validation import of_kind
from whosin.words import Said, describe, takes, words_said

MECHANISMS: dict[str, type[Mechanism]] = {
    "channel": Channel,
    "laplace": Laplace,
    "geometric": Geometric,
    "gaussian": Gaussian,
    "exponential": Exponential,
    "randomized-response": RandomizedResponse,
    "k-max": KMax,
    "k-max-published": KMaxAsPublished,
    "except-first": ExceptFirst,
    "exact": Exact,
    "suppress": Suppress,
    "round": Round,
    "random-round": RandomRound,
    "cell-key": CellKey,
    "from-table": FromTable,
    "mixture": Mixture,
    "post-processed": PostProcessed,
    "sampled": Sampled,
    "composed": Composed,
}


def read_mechanism(name: str, data: Said) -> Mechanism:
    """A built-in mechanism by its name and the words of `vocabulary.MECHANISM`."""
    of_kind(name, str, "mechanism")
    words = vocabulary.MECHANISM
    known = {each: kind for each, kind in MECHANISMS.items() if takes(kind, words) is not None}
    if name not in known:
        raise UnknownName("mechanism", name, known)
    with at("mechanism"):
        return describe(
            known[name], f"the mechanism {name}", words_said(data, words, "mechanism"), words
        )
