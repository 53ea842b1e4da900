"""Implications between notions, one file a paper, as functions between levels.

Each function states its claim and source; `tests/theorems/test_theorems.py` holds every one of
them against brute-force enumeration in exact rationals. Numbers such as T7, F12 or E3 are
explained in docs/theory/numbers.md.
"""

from whosin.theorems.notion_map import convert
from whosin.theorems.papers import (
    bayesian_from_membership,
    bounded_from_epsilon,
    bounded_from_identifiability,
    build_coupling,
    divergence_from_information,
    dp_from_identifiability,
    dp_from_semantic,
    dp_from_semantic_as_published,
    epsilon_from_bounded,
    fallback,
    identifiability_from_bounded,
    identifiability_from_dp,
    identifiability_from_one_of,
    information_from_dp,
    membership_from_identifiability,
    mixed,
    one_of_from_identifiability,
    post_processed,
    sampled_from_sampling,
    sampling_from_sampled,
    semantic_from_dp,
    semantic_from_dp_as_published,
    shift_from_information,
)

__all__ = ["bayesian_from_membership", "bounded_from_epsilon", "bounded_from_identifiability"]
__all__ += ["build_coupling", "convert", "divergence_from_information", "dp_from_identifiability"]
__all__ += ["dp_from_semantic", "dp_from_semantic_as_published", "epsilon_from_bounded", "fallback"]
__all__ += ["identifiability_from_bounded", "identifiability_from_dp"]
__all__ += ["identifiability_from_one_of", "information_from_dp", "membership_from_identifiability"]
__all__ += ["mixed", "one_of_from_identifiability", "post_processed", "sampled_from_sampling"]
__all__ += ["sampling_from_sampled", "semantic_from_dp", "semantic_from_dp_as_published"]
__all__ += ["shift_from_information"]


def __dir__() -> list[str]:
    return __all__
