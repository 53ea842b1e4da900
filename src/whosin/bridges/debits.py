"""External debits: what other tools publish about the same people, paid from the same budget."""

from __future__ import annotations

import uuid

from whosin.bridges.guarantee import Guarantee
from whosin.ledger import Debit, Ledger
from whosin.validation import of_kind


def debit(
    ledger: Ledger,
    dataset: str,
    guarantee: Guarantee,
    title: str,
    request: str | None = None,
) -> Debit:
    """Pay for a release of another tool, before it is shown. Its entry is in the chain like any
    other.

    The tool's unit must be the ledger's entity: whoever debits says so (see `rows` of `read`).

    Args:
        title: what is published, in a few words; the ledger keeps it.
        request: an id, for a retry; by default a fresh one.

    Raises:
        BudgetRefused: it would exceed the budget, or the promise does not add: do not publish.
    """
    charge = of_kind(guarantee, Guarantee, "guarantee").charge(title)
    paid = ledger.debit(dataset, uuid.uuid4().hex if request is None else request, charge)
    if paid.answer is None:
        ledger.store(paid, {"external": guarantee.tool, "title": title})
    return paid
