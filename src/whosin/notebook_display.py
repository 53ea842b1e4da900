"""Results that show themselves in notebooks, and when they are printed.

A room that makes results says only that they can be shown. How they look is for `report` to say,
which is found by its name when somebody looks, and not before: the imports still run one way, and
plain scripts never load it.
"""

from __future__ import annotations

from importlib import import_module


class Displayed:
    """Something with a form for people: rich in notebooks, text where it is printed."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module("whosin.report.html").notebook_html(self))

    def __str__(self) -> str:
        return str(import_module("whosin.report.html").result_text(self))
