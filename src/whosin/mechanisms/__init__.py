"""Mechanisms: the probability of each output in each world.

`MECHANISM_KINDS` is the registry: the command, the reference and contract tests find a mechanism
there. Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin.errors import UnknownName, at, check_kind
from whosin.mechanisms.additive_noise import Gaussian, Geometric, Laplace
from whosin.mechanisms.channel import Channel, Mechanism, read_channel
from whosin.mechanisms.combinations import Composed, Mixture, PostProcessed, Sampled
from whosin.mechanisms.count_rules import CellKey, Exact, FromTable, RandomRound, Round, Suppress
from whosin.mechanisms.finite import (
    ExceptFirst,
    Exponential,
    KMax,
    KMaxAsPublished,
    RandomizedResponse,
)
from whosin.scenario_model import MechanismParameters, Written, describe_object, match_fields

__all__ = ["MECHANISM_KINDS", "CellKey", "Channel", "Composed", "Exact", "ExceptFirst"]
__all__ += ["Exponential", "FromTable", "Gaussian", "Geometric", "KMax", "KMaxAsPublished"]
__all__ += ["Laplace", "Mechanism", "Mixture", "PostProcessed", "RandomRound", "RandomizedResponse"]
__all__ += ["Round", "Sampled", "Suppress", "read_channel", "read_mechanism"]


def __dir__() -> list[str]:
    return __all__


MECHANISM_KINDS: dict[str, type[Mechanism]] = {
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


def read_mechanism(name: str, data: Written) -> Mechanism:
    """A built-in mechanism by its name and its `MechanismParameters`."""
    check_kind(name, str, "mechanism")
    known = {
        each: kind
        for each, kind in MECHANISM_KINDS.items()
        if match_fields(kind, MechanismParameters.known_keys()) is not None
    }
    if name not in known:
        raise UnknownName("mechanism", name, known)
    with at("mechanism"):
        given = MechanismParameters.read(data, "mechanism").given
        return describe_object(known[name], f"the mechanism {name}", given, MechanismParameters)
