"""Levels with a failure probability: how likely is it that an output says more than promised?

`cases` lists the priors to look at, `bracket` turns them into profiles, failure probabilities and
levels (F9, F21). Both ends are on the safe side of every rounding.
"""

from whosin.notions.failing.bracket import FailureBracket as FailureBracket
from whosin.notions.failing.bracket import LevelAt as LevelAt
from whosin.notions.failing.bracket import bound_within as bound_within
from whosin.notions.failing.bracket import failure as failure
from whosin.notions.failing.bracket import is_above as is_above
from whosin.notions.failing.bracket import level_at as level_at
from whosin.notions.failing.bracket import profile as profile
from whosin.notions.failing.cases import Cases as Cases
from whosin.notions.failing.cases import cases_of as cases_of
