"""What can be asked of a table. `QUERIES` lists every kind by its name in a scenario file.

A kind is imported when it is first used; the names are in `__init__.pyi`.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
