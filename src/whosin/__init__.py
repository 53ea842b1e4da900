"""whosin: how sure can anyone be that you are in the data?

Worlds, priors, families of priors, mechanisms and notions of privacy as plain objects:

>>> import whosin as wi
>>> notion = wi.notions.PositiveMembership(wi.families.Uninformed())
>>> level = notion.measure(wi.mechanisms.KMax(2), wi.Subsets(6))
>>> print(level.value)
3/2

Rooms are imported when they are first used, so that `import whosin` costs next to nothing. The
names are in `__init__.pyi`.
"""

from lazy_loader import attach_stub

__version__ = "0.2.0.dev0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
