"""The parts of whosin that need more packages than its core.

Whatever needs an extra asks `require_extras` before it starts, before a file is made or a budget is
touched, so that a missing package is one sentence that says what to install. The extras are those
of `pyproject.toml`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from whosin.errors import MissingExtra

EXTRA_PACKAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "accounting": ("accounting for sampled or repeated noise needs", ("dp_accounting", "scipy")),
    "audit": ("audits need", ("scipy", "sklearn", "threadpoolctl")),
    "charts": ("charts and reports need", ("altair", "vl_convert")),
    "databases": (
        "tables in databases need",
        ("adbc_driver_manager", "adbc_driver_postgresql", "adbc_driver_sqlite"),
    ),
    "frames": ("rows from a CSV file need", ("pandas",)),
    "gwas": ("association studies need", ("opendp", "scipy")),
    "pgen": ("reading .pgen needs", ("pgenlib",)),
    "postgres": ("a ledger on PostgreSQL needs", ("psycopg",)),
    "release": ("releases need", ("duckdb", "ibis", "opendp", "pyarrow", "scipy", "sqlglot")),
    "selection": ("private selection needs", ("opendp",)),
    "spark": ("Spark needs", ("pyspark",)),
    "spreadsheets": ("reading spreadsheets needs", ("python_calamine",)),
    "synthetic": ("learned synthetic tables need", ("jax", "mbi")),
    "distortion": ("the best mechanism needs", ("highspy", "scipy", "threadpoolctl")),
    "vcf": ("reading VCF needs", ("cyvcf2",)),
    "web": ("the page needs", ("fastapi", "tomli_w", "uvicorn")),
}
"""What each extra is for, and the modules that it brings."""


def require_extras(*extras: str) -> None:
    """Refuse to start without these extras."""
    for extra in extras:
        if not is_installed(extra):
            raise MissingExtra(extra, EXTRA_PACKAGES[extra][0])


def is_installed(extra: str) -> bool:
    """Whether all modules of an extra can be found."""
    return all(find_spec(module) is not None for module in EXTRA_PACKAGES[extra][1])


class LazyModule(ModuleType):
    """A module of an extra, or a slow one, that is imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)
