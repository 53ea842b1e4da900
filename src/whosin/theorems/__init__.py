"""Implications between notions, one file a paper, as functions between levels.

Each function states its claim and source; `tests/theorems/test_theorems.py` holds every one of
them against brute-force enumeration in exact rationals. Numbers such as T7, F12 or E3 are
explained in docs/theory/numbers.md.
"""

from whosin.theorems.conversion import convert as convert
from whosin.theorems.coupling_proof import coupling as coupling
from whosin.theorems.information import divergence_from_information as divergence_from_information
from whosin.theorems.information import information_from_dp as information_from_dp
from whosin.theorems.information import (
    membership_from_identifiability as membership_from_identifiability,
)
from whosin.theorems.information import shift_from_information as shift_from_information
from whosin.theorems.li13 import bounded_from_identifiability as bounded_from_identifiability
from whosin.theorems.li13 import identifiability_from_bounded as identifiability_from_bounded
from whosin.theorems.li13 import identifiability_from_one_of as identifiability_from_one_of
from whosin.theorems.li13 import mixed as mixed
from whosin.theorems.li13 import one_of_from_identifiability as one_of_from_identifiability
from whosin.theorems.li13 import post_processed as post_processed
from whosin.theorems.li13 import sampled_from_sampling as sampled_from_sampling
from whosin.theorems.li13 import sampling_from_sampled as sampling_from_sampled
from whosin.theorems.tramer15 import bounded_from_epsilon as bounded_from_epsilon
from whosin.theorems.tramer15 import epsilon_from_bounded as epsilon_from_bounded
from whosin.theorems.tramer15 import fallback as fallback
from whosin.theorems.wang14 import dp_from_identifiability as dp_from_identifiability
from whosin.theorems.wang14 import identifiability_from_dp as identifiability_from_dp
from whosin.theorems.zhao17 import bayesian_from_membership as bayesian_from_membership
from whosin.theorems.zhao17 import dp_from_semantic as dp_from_semantic
from whosin.theorems.zhao17 import dp_from_semantic_as_published as dp_from_semantic_as_published
from whosin.theorems.zhao17 import semantic_from_dp as semantic_from_dp
from whosin.theorems.zhao17 import semantic_from_dp_as_published as semantic_from_dp_as_published
