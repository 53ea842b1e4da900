"""Genome-wide association studies: counts, statistics, sensitivities, private releases, the attack.

What is public: which SNPs were looked at, and how many cases and controls there are. Counts and
every statistic of them are private until a release has paid for them.

Names are imported when they are first used, so that counting a file starts at once; they are in
`__init__.pyi`.
"""

from lazy_loader import attach_stub

from whosin.errors import require_extras

require_extras("gwas")

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
