"""Answers from real tables, on DuckDB or Spark, each debited in a ledger before it is shown."""

from whosin.release.answer import Answer, Release
from whosin.release.cost import CostEstimate
from whosin.release.domains import Dates, Range, Values
from whosin.release.engines import DuckDB, Engine, Spark
from whosin.release.features import Feature
from whosin.release.queries import (
    QUERIES,
    Count,
    Deviation,
    Histogram,
    Keys,
    Marginals,
    Maximum,
    Mean,
    Median,
    Quantile,
    Query,
    Rows,
    Sum,
    Synthetic,
    Top,
    Variance,
)
from whosin.release.related_tables import FurtherTable, LookupTable
from whosin.release.session import Session
from whosin.release.table import Table

__all__ = [
    "QUERIES",
    "Answer",
    "CostEstimate",
    "Count",
    "Dates",
    "Deviation",
    "DuckDB",
    "Engine",
    "Feature",
    "FurtherTable",
    "Histogram",
    "Keys",
    "LookupTable",
    "Marginals",
    "Maximum",
    "Mean",
    "Median",
    "Quantile",
    "Query",
    "Range",
    "Release",
    "Rows",
    "Session",
    "Spark",
    "Sum",
    "Synthetic",
    "Table",
    "Top",
    "Values",
    "Variance",
]


def __dir__() -> list[str]:
    return __all__
