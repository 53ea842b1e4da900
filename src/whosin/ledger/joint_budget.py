"""`JointBudget`: a budget of releases that are measured together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whosin.errors import BudgetRefused, InvalidInput, check_kind
from whosin.exact import rational
from whosin.ledger import encoding
from whosin.ledger.budget import JOINT_FAMILIES, Cost, Spend
from whosin.ledger.budget_state import BudgetState
from whosin.ledger.encoding import INFINITE_UNITS
from whosin.ledger.entries import Debit, Entry
from whosin.ledger.ledger import Ledger

# Levels of Bayesian differential privacy do not add, and may grow faster than their sum. So a
# debit keeps its question, and before the next one the whole list is measured as one mechanism.
# What is debited is by how much the joint level grows: the sum of a dataset's debits is the joint
# level, and the ledger compares that with the target. `Spend.after` makes a debit fail that was
# measured without the last one.
#
# *Adaptive analysts.* For one set of known rows, the likelihood of a transcript is that of the
# joint release along the questions that were asked, so a bound on every list that is ever debited
# bounds every transcript. With Gaussian noise each answer given those before is one of two normal
# distributions whose distance depends on the questions alone; the squares add up to the joint one,
# and a cap on their sum that is fixed in advance holds for adaptive analysts (Smith and Thakurta
# 2022). What is promised is the registered target, not what was spent so far.


JOINT_GUARANTEE = "Bayesian differential privacy, measured jointly"
FAMILY_GUARANTEE = "membership privacy, measured jointly"


@dataclass(frozen=True)
class JointBudget:
    """The budget of one dataset whose rows follow a model; whoever publishes draws the noise.

    Args:
        ledger: where the dataset is registered, without a table and for replaced rows:
            a plan against `ValueOfOne` (secret = value).
        dataset: its name.
        model: how rows depend on each other, as a chain, network or pedigree file says it, or
            `{"gaussian": {"covariance": …} or {"autoregressive": […], "rows": …}, "delta": …,
            "distance": …}`; or `{"family": "one-of=3", "people": 20}`, the adversaries of the plan.
    """

    ledger: Ledger
    dataset: str
    model: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_kind(self.model, dict, "model", "a mapping, as a chain file has it")
        object.__setattr__(self, "model", encoding.plain_copy(self.model, "model"))
        self.level(())

    def releases(self) -> tuple[dict[str, Any], ...]:
        """The releases that were debited so far, in order."""
        return _list_releases(self._paid())

    def level(self, releases: Sequence[Mapping[str, Any]]) -> float:
        """ε of these releases together: what no row, or nobody in or out, leaks more than."""
        from whosin.notions.reading import measure_jointly

        return measure_jointly(self.model, releases)

    def debit(
        self, release: Mapping[str, Any] | Sequence[Mapping[str, Any]], request: str
    ) -> Debit:
        """Measure the release together with all before it, and pay for what it adds.

        Args:
            release: `{"query": "sum", "scale": 5}`, with "rows": [first, last] for a window or
                {"of": […]} for a group; with a Gaussian model `{"weights": […], "sigma": 5}`;
                against a family also `{"mechanism": "geometric", "scale": 5}`. A list of them is
                paid for as one.
            request: an id of this release; with the same id it is paid for once.

        Raises:
            BudgetRefused: the joint level would be above the target.
        """
        what = encoding.plain_copy({"model": self.model, "release": release}, "release")
        if not what["release"]:
            message = "there is no release to pay for"
            raise InvalidInput(message, field="releases", hint="give at least one")
        relation = self._check_plan()
        paid = self._paid()
        if request in paid:  # at the cost that it had
            body = paid[request].body
            added, after = body["costs"][relation]["epsilon"], body["after"]
        else:
            together = (*_list_releases(paid), *_read_list(what["release"]))
            found = self.level(together)
            level = encoding.cost_units(found, "epsilon") if found < math.inf else INFINITE_UNITS
            spent = self.ledger.budget_state(self.dataset).spent.epsilon
            added, after = max(0, level - spent), len(paid)
        cost = Cost(added, INFINITE_UNITS)
        guarantee = FAMILY_GUARANTEE if "family" in self.model else JOINT_GUARANTEE
        return self.ledger.debit(
            self.dataset, request, Spend(what, {relation: cost}, guarantee, after=after)
        )

    def _check_plan(self) -> str:
        """The relation of the plan, whose target must be one that this level keeps."""
        state = self.ledger.budget_state(self.dataset)
        if "family" in self.model:
            self._check_family(state)
        elif state.budget.relation != "replace" or state.registered is not None:
            message = f"dataset {self.dataset!r} was not registered for joint releases"
            hint = "register one without a table, with a plan for replaced rows (secret = value)"
            raise BudgetRefused(message, field="dataset", value=self.dataset, hint=hint)
        delta = self.model.get("delta", 0) if "gaussian" in self.model else 0
        if rational(delta, "delta") > rational(state.plan.dp_delta):
            message = "the model's delta is above that of the plan"
            raise BudgetRefused(message, field="delta", value=delta)
        return state.budget.relation

    def _check_family(self, state: BudgetState) -> None:
        """The adversaries must be those of the plan, and levels must not follow from ε."""
        from whosin.families import read_family

        family = read_family(self.model["family"])
        if state.plan.family.canonical() != family.canonical() or state.registered is not None:
            message = f"dataset {self.dataset!r} was not registered for joint releases"
            hint = f"register one without a table, with a plan against {family.spelled}"
            raise BudgetRefused(message, field="dataset", value=self.dataset, hint=hint)
        if family.name not in JOINT_FAMILIES:
            message = f"levels against {family.spelled} are those of ε, which adds up"
            hint = "debit each release at its ε, as other answers"
        elif state.budget.alone and state.plan.delta:
            message = f"how likely several releases against {family.spelled} fail is not known"
            hint = "register a dataset with a plan without delta, or give one release"
        else:
            return
        raise BudgetRefused(message, field="family", value=family.spelled, hint=hint)

    def _paid(self) -> dict[str, Entry]:
        """What was debited, by request; all of it for this model."""
        paid = {}
        for entry in self.ledger.history(self.dataset):
            if entry.kind != "debit":
                continue
            what = entry.body["what"]
            if "after" not in entry.body or what.get("model") != self.model:
                message = f"dataset {self.dataset!r} has releases that are not of this model"
                hint = "levels of several models do not add: register a dataset of its own"
                raise BudgetRefused(message, field="model", hint=hint)
            paid[str(entry.request)] = entry
        return paid


def _read_list(release: Any) -> Sequence[dict[str, Any]]:
    return [release] if isinstance(release, dict) else release


def _list_releases(paid: Mapping[str, Entry]) -> tuple[dict[str, Any], ...]:
    listed = [entry.body["what"]["release"] for entry in paid.values()]
    return tuple(each for release in listed for each in _read_list(release))
