# ruff: noqa: I001 (in the order in which people are shown the kinds)
from .base import QUERIES as QUERIES
from .base import Query as Query
from .base import read_query as read_query
from .sums import Count as Count
from .sums import Rows as Rows
from .sums import Sum as Sum
from .sums import Mean as Mean
from .sums import Variance as Variance
from .sums import Deviation as Deviation
from .sums import Histogram as Histogram
from .running import Running as Running
from .keys import Keys as Keys
from .quantile import Quantile as Quantile
from .quantile import Median as Median
from .keys import Top as Top
from .quantile import Maximum as Maximum
from .synthetic import Synthetic as Synthetic
from .marginals import Marginals as Marginals

__all__: list[str]
