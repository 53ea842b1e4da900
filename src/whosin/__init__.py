"""whosin: how sure can anyone be that you are in the data?

Worlds, priors, families of priors, mechanisms and notions of privacy as plain objects:

>>> import whosin as wi
>>> notion = wi.notions.PositiveMembership(wi.families.Uninformed())
>>> level = notion.measure(wi.mechanisms.KMax(2), wi.Subsets(6))
>>> print(level.value)
3/2
"""

from whosin import beliefs, errors, families, mechanisms, notions, priors, spaces, theorems
from whosin.mechanisms import Channel
from whosin.notions import Level, Witness
from whosin.spaces import Count, Histogram, Max, Records, Subsets, Sum

__version__ = "0.1.0"

__all__ = [
    "Channel",
    "Count",
    "Histogram",
    "Level",
    "Max",
    "Records",
    "Subsets",
    "Sum",
    "Witness",
    "beliefs",
    "errors",
    "families",
    "mechanisms",
    "notions",
    "priors",
    "spaces",
    "theorems",
]
