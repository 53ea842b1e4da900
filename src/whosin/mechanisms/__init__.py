"""Mechanisms: the probability of each output in each world.

`MECHANISMS` is the registry: contract and documentation tests find a mechanism through it.
"""

from whosin.mechanisms.base import Mechanism, as_channel
from whosin.mechanisms.channel import Channel
from whosin.mechanisms.composed import Composed
from whosin.mechanisms.except_first import ExceptFirst
from whosin.mechanisms.exponential import Exponential
from whosin.mechanisms.gaussian import Gaussian
from whosin.mechanisms.geometric import Geometric
from whosin.mechanisms.k_max import KMax, KMaxAsPublished
from whosin.mechanisms.laplace import Laplace
from whosin.mechanisms.mixture import Mixture
from whosin.mechanisms.post_processed import PostProcessed
from whosin.mechanisms.randomized_response import RandomizedResponse
from whosin.mechanisms.sampled import Sampled

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
    "mixture": Mixture,
    "post-processed": PostProcessed,
    "sampled": Sampled,
    "composed": Composed,
}

__all__ = [
    "MECHANISMS",
    "Channel",
    "Composed",
    "ExceptFirst",
    "Exponential",
    "Gaussian",
    "Geometric",
    "KMax",
    "KMaxAsPublished",
    "Laplace",
    "Mechanism",
    "Mixture",
    "PostProcessed",
    "RandomizedResponse",
    "Sampled",
    "as_channel",
]
