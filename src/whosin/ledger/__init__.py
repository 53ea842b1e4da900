"""The durable budget: debits before noise, answers stored before they are shown, one history.

>>> import tempfile, pathlib
>>> import whosin as wi
>>> folder = tempfile.TemporaryDirectory()
>>> ledger = wi.Ledger(pathlib.Path(folder.name, "ledger.db"))
>>> plan = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"))
>>> round(ledger.register("hospital", plan).remaining, 9)
0.405465108
>>> spend = Spend({"query": "count"}, {"add-remove": Cost.pure("0.3")})
>>> ledger.answer("hospital", spend, lambda: 42, request="first")
42
>>> ledger.answer("hospital", spend, lambda: 43, request="first")     # a retry: paid once
42
>>> ledger.dispose(); folder.cleanup()
"""

from whosin.ledger.budget import Cost, Spend
from whosin.ledger.budget_state import BudgetState
from whosin.ledger.entries import Debit, Entry
from whosin.ledger.joint_budget import JointBudget
from whosin.ledger.ledger import Ledger
from whosin.ledger.verification import HistoryCheck, verify

__all__ = ["BudgetState", "Cost", "Debit", "Entry", "HistoryCheck", "JointBudget", "Ledger"]
__all__ += ["Spend", "verify"]


def __dir__() -> list[str]:
    return __all__
