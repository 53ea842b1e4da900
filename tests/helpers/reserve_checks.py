"""What a budget with a reserve holds and refuses, on either store."""

from __future__ import annotations

import pytest

import whosin as wi
from whosin.errors import BudgetRefused
from whosin.ledger import Cost, Spend, verify

PLAN = wi.calibrate(wi.Epsilon(1), delta=1e-6, reserve="0.3")


def ask(cost: Cost, number: int = 0) -> Spend:
    return Spend({"query": "count", "number": number}, {"add-remove": cost})


def check_reserve(ledger: wi.Ledger) -> None:
    """Pure answers of the reserve and Gaussian ones fit together, in any order, to the unit."""
    pure, gaussian = ask(Cost.pure("0.3")), Cost.gaussian("0.0127")
    for dataset, order in (("first", (pure, ask(gaussian))), ("last", (ask(gaussian), pure))):
        ledger.register(dataset, PLAN)
        for number, spend in enumerate(order):
            ledger.check(dataset, [spend])
            ledger.debit(dataset, f"{number}", spend)
        assert not ledger.debit(dataset, "0", order[0]).new
        state = ledger.budget_state(dataset)
        assert (state.epsilon, state.reading, state.certain) == (1.0, "promised", False)
        rest = Cost(pure.cost("add-remove").epsilon, state.budget.rho - state.spent.rho)
        more = ask(Cost(rest.epsilon, rest.rho + 1))
        for refuse in (ledger.check, lambda *asked: ledger.debits(asked[0], {"more": asked[1][0]})):
            with pytest.raises(BudgetRefused):
                refuse(dataset, [more])
        ledger.debit(dataset, "rest", ask(rest))
        with pytest.raises(BudgetRefused):
            ledger.debit(dataset, "dust", ask(Cost(1, 1)))
        assert verify(ledger, dataset).debits == 3
        assert ledger.budget_state(dataset).spendable == 0
    ledger.register("plain", wi.calibrate(wi.Epsilon(1), delta=1e-6))
    ledger.debit("plain", "0", ask(gaussian))
    with pytest.raises(BudgetRefused):
        ledger.debit("plain", "1", pure)
