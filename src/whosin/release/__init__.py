"""Answers from real tables, on DuckDB or Spark, each debited in a ledger before it is shown.

Names are imported when they are first used; they are in `__init__.pyi`.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
