"""whosin: how sure can anyone be that you are in the data?

Worlds, priors, families of priors, mechanisms and notions of privacy as plain objects:

>>> import whosin as wi
>>> notion = wi.notions.PositiveMembership(wi.families.Uninformed())
>>> level = notion.measure(wi.mechanisms.KMax(2), wi.Subsets(6))
>>> print(level.value)
3/2

Rooms are imported when they are first used, so that `import whosin` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whosin import audit as audit
    from whosin import beliefs as beliefs
    from whosin import calibration as calibration
    from whosin import distortion as distortion
    from whosin import errors as errors
    from whosin import families as families
    from whosin import gwas as gwas
    from whosin import ledger as ledger
    from whosin import mechanisms as mechanisms
    from whosin import noise as noise
    from whosin import notions as notions
    from whosin import priors as priors
    from whosin import references as references
    from whosin import release as release
    from whosin import spaces as spaces
    from whosin import theorems as theorems
    from whosin.calibration import Advantage as Advantage
    from whosin.calibration import Epsilon as Epsilon
    from whosin.calibration import Gain as Gain
    from whosin.calibration import Gamma as Gamma
    from whosin.calibration import Plan as Plan
    from whosin.calibration import Posterior as Posterior
    from whosin.calibration import Rho as Rho
    from whosin.calibration import calibrate as calibrate
    from whosin.ledger import Ledger as Ledger
    from whosin.mechanisms import Channel as Channel
    from whosin.notions import Level as Level
    from whosin.notions import Witness as Witness
    from whosin.release import Session as Session
    from whosin.release import Table as Table
    from whosin.release import queries as queries
    from whosin.spaces import Count as Count
    from whosin.spaces import Histogram as Histogram
    from whosin.spaces import Max as Max
    from whosin.spaces import Records as Records
    from whosin.spaces import Subsets as Subsets
    from whosin.spaces import Sum as Sum
    from whosin.spaces import statistics as statistics

__version__ = "0.1.0"

_ROOMS = (
    "audit",
    "beliefs",
    "calibration",
    "distortion",
    "errors",
    "families",
    "gwas",
    "ledger",
    "mechanisms",
    "noise",
    "notions",
    "priors",
    "references",
    "release",
    "spaces",
    "theorems",
)
_NAMESPACES = {"queries": "release.queries", "statistics": "spaces.statistics"}
"""Questions to a table, and statistics of worlds: both have a Count, a Sum and a Histogram."""
_NAMES = {
    "Advantage": "calibration",
    "Channel": "mechanisms",
    "Count": "spaces",
    "Epsilon": "calibration",
    "Gain": "calibration",
    "Gamma": "calibration",
    "Histogram": "spaces",
    "Ledger": "ledger",
    "Level": "notions",
    "Max": "spaces",
    "Plan": "calibration",
    "Posterior": "calibration",
    "Records": "spaces",
    "Rho": "calibration",
    "Session": "release",
    "Subsets": "spaces",
    "Sum": "spaces",
    "Table": "release",
    "Witness": "notions",
    "calibrate": "calibration",
}

__all__ = ["__version__", *_ROOMS, *_NAMESPACES, *_NAMES]


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"whosin.{name}")
    if name in _NAMESPACES:
        return import_module(f"whosin.{_NAMESPACES[name]}")
    if name in _NAMES:
        return getattr(import_module(f"whosin.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'whosin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
