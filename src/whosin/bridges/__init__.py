"""Bridges: what other tools' budgets and accountants allow people to believe.

`read` takes an object of OpenDP, dp-accounting, Opacus, JAX-Privacy, Tumult Analytics, PipelineDP,
SmartNoise SQL or riskcal as it is, and gives a `Guarantee`: ε, δ, ρ and what they are about. None
of these packages is imported here: whoever has an object of one has the package.
"""

from whosin.bridges.debits import debit as debit
from whosin.bridges.guarantee import Guarantee as Guarantee
from whosin.bridges.reading import TOOLS as TOOLS
from whosin.bridges.reading import read as read
from whosin.bridges.trade_offs import curve as curve
