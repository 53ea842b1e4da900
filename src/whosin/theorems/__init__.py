"""Implications between notions, one file a paper, as functions between levels.

Each function states its claim and source; `tests/test_theorems.py` holds every one of them against
brute-force enumeration in exact rationals.
"""

from whosin.theorems.conversion import convert
from whosin.theorems.coupling_proof import coupling
from whosin.theorems.information import (
    divergence_from_information,
    information_from_dp,
    membership_from_identifiability,
    shift_from_information,
)
from whosin.theorems.li13 import (
    bounded_from_identifiability,
    bounded_from_unbounded,
    cliques_from_unbounded,
    fixed_size_from_bounded,
    identifiability_from_bounded,
    identifiability_from_one_of,
    independent_from_unbounded,
    mixed,
    one_of_from_identifiability,
    post_processed,
    ratio_between_any_worlds,
    sampled_from_sampling,
    sampling_from_sampled,
    unbounded_from_independent,
)
from whosin.theorems.tramer15 import bounded_from_epsilon, epsilon_from_bounded, fallback
from whosin.theorems.wang14 import dp_from_identifiability, identifiability_from_dp
from whosin.theorems.zhao17 import (
    bayesian_from_membership,
    dp_from_semantic,
    dp_from_semantic_as_published,
    membership_from_bayesian,
    semantic_from_dp,
    semantic_from_dp_as_published,
)

__all__ = [
    "bayesian_from_membership",
    "bounded_from_epsilon",
    "bounded_from_identifiability",
    "bounded_from_unbounded",
    "cliques_from_unbounded",
    "convert",
    "coupling",
    "divergence_from_information",
    "dp_from_identifiability",
    "dp_from_semantic",
    "dp_from_semantic_as_published",
    "epsilon_from_bounded",
    "fallback",
    "fixed_size_from_bounded",
    "identifiability_from_bounded",
    "identifiability_from_dp",
    "identifiability_from_one_of",
    "independent_from_unbounded",
    "information_from_dp",
    "membership_from_bayesian",
    "membership_from_identifiability",
    "mixed",
    "one_of_from_identifiability",
    "post_processed",
    "ratio_between_any_worlds",
    "sampled_from_sampling",
    "sampling_from_sampled",
    "semantic_from_dp",
    "semantic_from_dp_as_published",
    "shift_from_information",
    "unbounded_from_independent",
]
