"""Joint budgets: releases over rows that depend on each other, measured together before a debit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whosin.documents import check_keys
from whosin.errors import BudgetRefused, InvalidInput, check_kind
from whosin.exact import rational
from whosin.ledger import encoding
from whosin.ledger.budget import Cost, Spend
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


@dataclass(frozen=True)
class JointBudget:
    """The budget of one dataset whose rows follow a model.

    Args:
        ledger: where the dataset is registered, without a table and for replaced rows:
            a plan against `SwapOfTwo`.
        dataset: its name.
        model: how rows depend on each other, as a chain, network or pedigree file says it, or
            `{"gaussian": {"covariance": …} or {"autoregressive": […], "rows": …}, "delta": …,
            "distance": …}`.
    """

    ledger: Ledger
    dataset: str
    model: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_kind(self.model, dict, "model", "a mapping, as a chain file has it")
        object.__setattr__(self, "model", encoding.plain_copy(self.model, "model"))
        self.level(())

    @property
    def is_gaussian(self) -> bool:
        return "gaussian" in self.model

    def releases(self) -> tuple[dict[str, Any], ...]:
        """The releases that were debited so far, in order."""
        return tuple(entry.body["what"]["release"] for entry in self._paid().values())

    def level(self, releases: tuple[Mapping[str, Any], ...]) -> float:
        """ε of these releases together: what no row leaks more than."""
        from whosin.mechanisms import Composed
        from whosin.notions import BayesianDifferentialPrivacy
        from whosin.notions.reading import read_release
        from whosin.priors.table import DEPENDENCE_KEYS, read_dependence

        if self.is_gaussian:
            return self._gaussian_level(releases)
        if not any(key in self.model for key in DEPENDENCE_KEYS):
            listed = ", ".join((*DEPENDENCE_KEYS, "gaussian"))
            message = f"the model has none of {listed}"
            raise InvalidInput(message, field="model", hint="say how rows depend on each other")
        priors, space = read_dependence(dict(self.model))
        if not releases:
            return 0.0
        joint = Composed([read_release(dict(each), space) for each in releases])
        return float(BayesianDifferentialPrivacy(priors).measure(joint, space).value)

    def _gaussian_level(self, releases: tuple[Mapping[str, Any], ...]) -> float:
        from whosin.notions import GaussianRelease, measure_gaussian_leakage
        from whosin.priors import GaussianVector

        check_keys(dict(self.model), ("gaussian", "delta", "distance"), "model")
        given = check_kind(self.model["gaussian"], dict, "gaussian", "an object")
        check_keys(given, ("covariance", "autoregressive", "rows", "innovation"), "gaussian")
        if "covariance" in given:
            prior = GaussianVector(given["covariance"])
        else:
            prior = GaussianVector.autoregressive(
                given.get("autoregressive", ()), given.get("rows", 0), given.get("innovation", 1)
            )
        if not releases:
            return 0.0
        listed = []
        for each in releases:
            check_keys(dict(each), ("weights", "sigma"), "release")
            listed.append(GaussianRelease(each.get("weights", ()), each.get("sigma")))
        delta, distance = self.model.get("delta"), self.model.get("distance", 1)
        return measure_gaussian_leakage(prior, listed, delta, distance).epsilon

    def debit(self, release: Mapping[str, Any], request: str) -> Debit:
        """Measure the release together with all before it, and pay for what it adds.

        Args:
            release: `{"query": "sum", "scale": 5}`, with "rows": [first, last] for a window or
                {"of": […]} for a group; with a Gaussian model `{"weights": […], "sigma": 5}`.
            request: an id of this release; with the same id it is paid for once.

        Raises:
            BudgetRefused: the joint level would be above the target.
        """
        what = {"model": self.model, "release": encoding.plain_copy(release, "release")}
        self._check_plan()
        paid = self._paid()
        if request in paid:  # at the cost that it had
            body = paid[request].body
            added, after = body["costs"]["replace"]["epsilon"], body["after"]
        else:
            before = [entry.body["what"]["release"] for entry in paid.values()]
            level = encoding.cost_units(self.level((*before, what["release"])), "epsilon")
            spent = self.ledger.budget_state(self.dataset).spent.epsilon
            added, after = max(0, level - spent), len(before)
        cost = Cost(added, encoding.INFINITE_UNITS)
        spend = Spend(what, {"replace": cost}, JOINT_GUARANTEE, after=after)
        return self.ledger.debit(self.dataset, request, spend)

    def _check_plan(self) -> None:
        """The target must be one that this level keeps."""
        state = self.ledger.budget_state(self.dataset)
        if state.budget.relation != "replace" or state.registered is not None:
            message = f"dataset {self.dataset!r} was not registered for joint releases"
            hint = "register one without a table, with a plan for replaced rows (SwapOfTwo)"
            raise BudgetRefused(message, field="dataset", value=self.dataset, hint=hint)
        if self.is_gaussian and rational(self.model.get("delta"), "delta") > rational(
            state.plan.dp_delta
        ):
            message = "the model's delta is above that of the plan"
            raise BudgetRefused(message, field="delta", value=self.model.get("delta"))

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
