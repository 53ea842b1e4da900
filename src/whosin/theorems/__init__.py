"""Implications between notions, one file a paper, as functions between levels.

Each function states its claim and source; `tests/theorems/test_theorems.py` holds every one of
them against brute-force enumeration in exact rationals. Numbers such as T7, F12 or E3 are
explained in docs/theory/numbers.md.
"""

from whosin.theorems.notion_map import convert as convert
from whosin.theorems.papers import bayesian_from_membership as bayesian_from_membership
from whosin.theorems.papers import bounded_from_epsilon as bounded_from_epsilon
from whosin.theorems.papers import bounded_from_identifiability as bounded_from_identifiability
from whosin.theorems.papers import build_coupling as build_coupling
from whosin.theorems.papers import divergence_from_information as divergence_from_information
from whosin.theorems.papers import dp_from_identifiability as dp_from_identifiability
from whosin.theorems.papers import dp_from_semantic as dp_from_semantic
from whosin.theorems.papers import dp_from_semantic_as_published as dp_from_semantic_as_published
from whosin.theorems.papers import epsilon_from_bounded as epsilon_from_bounded
from whosin.theorems.papers import fallback as fallback
from whosin.theorems.papers import identifiability_from_bounded as identifiability_from_bounded
from whosin.theorems.papers import identifiability_from_dp as identifiability_from_dp
from whosin.theorems.papers import identifiability_from_one_of as identifiability_from_one_of
from whosin.theorems.papers import information_from_dp as information_from_dp
from whosin.theorems.papers import (
    membership_from_identifiability as membership_from_identifiability,
)
from whosin.theorems.papers import mixed as mixed
from whosin.theorems.papers import one_of_from_identifiability as one_of_from_identifiability
from whosin.theorems.papers import post_processed as post_processed
from whosin.theorems.papers import sampled_from_sampling as sampled_from_sampling
from whosin.theorems.papers import sampling_from_sampled as sampling_from_sampled
from whosin.theorems.papers import semantic_from_dp as semantic_from_dp
from whosin.theorems.papers import semantic_from_dp_as_published as semantic_from_dp_as_published
from whosin.theorems.papers import shift_from_information as shift_from_information

__all__ = [
    "bayesian_from_membership",
    "bounded_from_epsilon",
    "bounded_from_identifiability",
    "build_coupling",
    "convert",
    "divergence_from_information",
    "dp_from_identifiability",
    "dp_from_semantic",
    "dp_from_semantic_as_published",
    "epsilon_from_bounded",
    "fallback",
    "identifiability_from_bounded",
    "identifiability_from_dp",
    "identifiability_from_one_of",
    "information_from_dp",
    "membership_from_identifiability",
    "mixed",
    "one_of_from_identifiability",
    "post_processed",
    "sampled_from_sampling",
    "sampling_from_sampled",
    "semantic_from_dp",
    "semantic_from_dp_as_published",
    "shift_from_information",
]


def __dir__() -> list[str]:
    return __all__
