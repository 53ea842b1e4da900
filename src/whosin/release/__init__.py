"""Answers from real tables, on DuckDB or Spark, each debited in a ledger before it is shown."""

from whosin.release.answer import Answer, Release
from whosin.release.columns.dates import Dates
from whosin.release.columns.domains import Range, Values
from whosin.release.engines import DuckDB, Engine, Spark
from whosin.release.prices.pricing import Offer
from whosin.release.queries import (
    QUERIES,
    Count,
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
from whosin.release.related.features import Feature
from whosin.release.related.further import FurtherTable, LookupTable
from whosin.release.session import Session
from whosin.release.table import Table

__all__ = [
    "QUERIES",
    "Answer",
    "Count",
    "Dates",
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
    "Offer",
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
