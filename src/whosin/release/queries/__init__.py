"""What can be asked of a table. `QUERIES` lists every kind by its name in a scenario file."""

from whosin.release.queries.base import Query, read_query
from whosin.release.queries.counts import Count, Histogram, Keys, Rows, Top
from whosin.release.queries.marginals import Marginals
from whosin.release.queries.moments import Deviation, Mean, Sum, Variance
from whosin.release.queries.quantile import Maximum, Median, Quantile
from whosin.release.queries.synthetic import Synthetic

QUERY_KINDS: tuple[type[Query], ...] = (
    Count,
    Rows,
    Sum,
    Mean,
    Variance,
    Deviation,
    Histogram,
    Keys,
    Quantile,
    Median,
    Top,
    Maximum,
    Synthetic,
    Marginals,
)
QUERIES = {kind.kind: kind for kind in QUERY_KINDS}

__all__ = [
    "QUERIES",
    "Count",
    "Deviation",
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


def __dir__() -> list[str]:
    return __all__
