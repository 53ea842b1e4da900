"""Implications between notions, one file a paper, as functions between levels.

Each function states its claim and source; `tests/test_theorems.py` holds every one of them against
brute-force enumeration in exact rationals.
"""

from whosin.theorems.coupling import coupling
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

__all__ = [
    "bounded_from_identifiability",
    "bounded_from_unbounded",
    "cliques_from_unbounded",
    "coupling",
    "fixed_size_from_bounded",
    "identifiability_from_bounded",
    "identifiability_from_one_of",
    "independent_from_unbounded",
    "mixed",
    "one_of_from_identifiability",
    "post_processed",
    "ratio_between_any_worlds",
    "sampled_from_sampling",
    "sampling_from_sampled",
    "unbounded_from_independent",
]
