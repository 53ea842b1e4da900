"""Results that show themselves in notebooks.

A room that makes results says only that they can be shown. How they look is for `report` to say,
which is found by its name when a notebook asks, and not before: the imports still run one way, and
plain scripts never load it.
"""

from __future__ import annotations

from importlib import import_module


class Displayed:
    """Something with a rich form in notebooks."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module("whosin.report.html").notebook_html(self))
