"""What can be asked of a table. `QUERIES` lists every kind by its name in a scenario file."""

from whosin.release.queries.base import Query, read_query
from whosin.release.queries.counts import Count, Histogram, Rows
from whosin.release.queries.keys import Keys
from whosin.release.queries.marginals import Marginals
from whosin.release.queries.maximum import Maximum
from whosin.release.queries.moments import Mean, Sum, Variance
from whosin.release.queries.quantile import Median, Quantile
from whosin.release.queries.synthetic import Synthetic
from whosin.release.queries.top import Top

KINDS: tuple[type[Query], ...] = (
    Count,
    Rows,
    Sum,
    Mean,
    Variance,
    Histogram,
    Keys,
    Quantile,
    Median,
    Top,
    Maximum,
    Synthetic,
    Marginals,
)
QUERIES = {kind.kind: kind for kind in KINDS}

__all__ = [
    "QUERIES",
    "Count",
    "Histogram",
    "Keys",
    "Marginals",
    "Maximum",
    "Mean",
    "Median",
    "Quantile",
    "Query",
    "Rows",
    "Sum",
    "Synthetic",
    "Top",
    "Variance",
    "read_query",
]
