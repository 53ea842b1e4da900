"""What every store must do when something fails after a debit, and in a forked process."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

import release_oracle as oracle
import whosin as wi
from whosin.errors import BudgetRefused
from whosin.ledger import Cost, Spend, verify

PLAN = oracle.PLANS["add-remove"]
ALONE = wi.calibrate(wi.Gamma(2), wi.families.AtMostKnown(3, 0.2, 0.8))
PRICE = Spend({"query": "count"}, {"add-remove": Cost.pure("0.1")})
SUSPENDED = "dataset 'd' is suspended"


def fail() -> object:
    raise MemoryError


# The ledger


def check_suspending(ledger: wi.Ledger) -> None:
    """What holds on every store."""
    ledger.register("d", PLAN)
    ledger.answer("d", PRICE, lambda: 1, "stored")
    racing = ledger.debit("d", "racing", PRICE)
    with pytest.raises(MemoryError):
        ledger.answer("d", PRICE, fail, "failed")
    budget_state = ledger.budget_state("d")
    assert (budget_state.suspended, budget_state.suspensions, budget_state.state) == (
        True,
        1,
        "open",
    )
    assert budget_state.to_dict()["state"] == "suspended"
    for request in ("failed", "racing", "new"):
        with pytest.raises(BudgetRefused, match=SUSPENDED):
            ledger.debit("d", request, PRICE)
    with pytest.raises(BudgetRefused, match=SUSPENDED):
        ledger.debits("d", {"stored": PRICE, "failed": PRICE})
    with pytest.raises(BudgetRefused, match=SUSPENDED):
        ledger.store(racing, 2)
    with pytest.raises(BudgetRefused, match=SUSPENDED):
        ledger.check("d", [PRICE])
    with pytest.raises(BudgetRefused, match=SUSPENDED):
        ledger.admit("d", PLAN)
    assert ledger.answer("d", PRICE, fail, "stored") == 1
    assert ledger.unanswered("d") == {"failed", "racing"}
    assert verify(ledger, "d").unanswered == ("racing", "failed")
    ledger.suspend("d", "racing")
    assert ledger.budget_state("d").suspensions == 2
    after = ledger.resume("d")
    assert (after.suspended, after.suspensions, after.debits) == (False, 2, 3)
    with pytest.raises(BudgetRefused, match="is not suspended"):
        ledger.resume("d")
    assert ledger.store(racing, 2) == 2
    assert ledger.answer("d", PRICE, lambda: 3, "failed") == 3
    ledger.suspend("d")
    ledger.close("d")
    assert ledger.budget_state("d").suspended and ledger.budget_state("d").state == "closed"
    with pytest.raises(BudgetRefused, match="closed already"):
        ledger.close("d")
    assert ledger.resume("d").state == "closed"
    with pytest.raises(BudgetRefused, match="is closed"):
        ledger.debit("d", "new", PRICE)
    kinds = [entry.kind for entry in ledger.history("d")][-4:]
    assert kinds == ["answer", "suspended", "closed", "resumed"]
    verify(ledger, "d")


def check_a_release_of_its_own(ledger: wi.Ledger) -> None:
    """What can be asked only once stays asked once, whatever fails."""
    spend = Spend({"query": "count"}, {}, alone=True, promise=None)
    ledger.register("alone", ALONE)
    promised = replace(spend, promise=wi.ledger.budget.describe_promise(ALONE))
    with pytest.raises(MemoryError):
        ledger.answer("alone", promised, fail, "r")
    with pytest.raises(BudgetRefused, match="is suspended"):
        ledger.answer("alone", promised, lambda: 1, "r")
    assert ledger.resume("alone").state == "complete"
    with pytest.raises(BudgetRefused, match="has had its one release"):
        ledger.debit("alone", "s", promised)
    assert ledger.answer("alone", promised, lambda: 1, "r") == 1
    verify(ledger, "alone")


def check_forking(ledger: wi.Ledger) -> None:
    """A forked process opens connections of its own."""
    ledger.register("d", PLAN)
    child = os.fork()
    if child == 0:
        try:
            ledger.answer("d", PRICE, lambda: 1, "child")
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.answer("d", PRICE, lambda: 2, "parent") == 2
    assert verify(ledger, "d").debits == 2
