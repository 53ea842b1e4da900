from .base import QUERIES as QUERIES
from .base import Query as Query
from .base import read_query as read_query
from .counts import Count as Count
from .counts import Histogram as Histogram
from .counts import Keys as Keys
from .counts import Rows as Rows
from .counts import Top as Top
from .marginals import Marginals as Marginals
from .moments import Deviation as Deviation
from .moments import Mean as Mean
from .moments import Sum as Sum
from .moments import Variance as Variance
from .quantile import Maximum as Maximum
from .quantile import Median as Median
from .quantile import Quantile as Quantile
from .synthetic import Synthetic as Synthetic

__all__: list[str]
