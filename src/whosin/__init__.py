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

_find, __dir__, __all__ = attach_stub(__name__, __file__)
_MOVED = {
    "Count": "whosin.statistics.Count (of worlds) or whosin.queries.Count (of a table)",
    "Sum": "whosin.statistics.Sum (of worlds) or whosin.queries.Sum (of a table)",
    "Histogram": "whosin.statistics.Histogram (of worlds) or whosin.queries.Histogram (of a table)",
    "Max": "whosin.statistics.Max",
    "Query": "whosin.queries, with a class a kind",
}


def __getattr__(name: str) -> object:
    if name in _MOVED:
        raise AttributeError(f"module 'whosin' has no attribute {name!r}: see {_MOVED[name]}")
    return _find(name)
