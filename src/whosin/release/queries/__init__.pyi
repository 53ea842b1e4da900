# ruff: noqa: I001 (in the order in which people are shown the kinds)
from .base import QUERIES as QUERIES
from .base import Query as Query
from .base import read_query as read_query
from .counts import Count as Count
from .counts import Rows as Rows
from .moments import Sum as Sum
from .moments import Mean as Mean
from .moments import Variance as Variance
from .moments import Deviation as Deviation
from .counts import Histogram as Histogram
from .counts import Keys as Keys
from .quantile import Quantile as Quantile
from .quantile import Median as Median
from .counts import Top as Top
from .quantile import Maximum as Maximum
from .synthetic import Synthetic as Synthetic
from .marginals import Marginals as Marginals

__all__: list[str]
