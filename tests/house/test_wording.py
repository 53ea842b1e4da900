"""How refusals are worded: the one place where sentences are asserted. Other tests read the field,
value and hint of an error, so that a sentence can be improved here alone."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import whosin as wi
from whosin.errors import WhosinError
from whosin.release.scenario import read_scenario

COMMANDS = {
    "plan --posterior 0,6 --prior 0.1": "--posterior must be a finite number, not '0,6'; write 0.6",
    "plan --posterior half --prior 0.1": (
        "--posterior must be a finite number, not 'half'; write 0.5, 1/2, 50% or 1e-6"
    ),
    "plan --posterior 0.6 --prior 0.1-0.5": (
        "--prior must be a number, not '0.1-0.5'; write the range as 0.1..0.5"
    ),
    "plan --posterior 0.6 --prior 0.05..0.7": (
        "a posterior of 0.6 cannot be kept: someone may be 0.7 sure already; use a posterior above "
        "0.7, or priors below 0.6"
    ),
    "plan --gamma 2 --delta 3": "--delta must be at least 0 and below 1, not 3",
    "plan --epsilon 1 --epsilon 2": "--epsilon is given 2 times; give it once",
    "plan --tpr 0.1": (
        "--fpr is missing; with tpr, say the share of other people that this test may accuse"
    ),
    "explain": "there is no ε to explain; give --epsilon, --rho, --multiplier or --from",
    "explain --epsilon 1 --steps 2": (
        "--steps cannot be given with --epsilon; leave one of them out"
    ),
    "explain --epsilon 1 --relation swap": (
        "--relation must be one of add-remove, replace, not 'swap'"
    ),
    "verify": (
        "nothing to verify is given; give a channel file (.json), or a mechanism such as "
        "--mechanism exact"
    ),
    "verify --mechanism exact": (
        "a built-in mechanism needs the size of the data; give either --entities, or --rows and "
        "--values for records"
    ),
    "distortion": "nothing is asked for; give one of --epsilon, --distortion and --curve",
    "distortion --epsilon 1": "--rows is missing; say how many there are, for example --rows 12",
    "rules plan --rule round --posterior 0.6 --prior 0.1 --known 2 --people 9": (
        "no rule keeps a promise for certain; say how likely it may fail, for example --delta 0.01"
    ),
    "ledger create x.db visits": (
        "dataset 'visits' needs a budget; give --plan FILE, or a target such as --posterior 0.6 "
        "with --prior 0.1"
    ),
    "ledger show none.db": (
        "there is no ledger none.db; see that the path is right, or make one with whosin ledger "
        "create"
    ),
    "release none.toml": "none.toml: no such file or directory",
    "audit function": (
        "there is nothing to audit; name module:function, file.py:function or a channel file, or a "
        "plan by --against"
    ),
    "gwas count kg.bgen": (
        "kg.bgen is a BGEN file, which is not read here; make a .bed of it with `plink2 --bgen "
        "kg.bgen ref-first --sample kg.sample --make-bed --out kg`"
    ),
}


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command(
    run: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(line) == (2, "", f"whosin: {COMMANDS[line]}\n")


SCENARIO: dict[str, Any] = {
    "target": {"posterior": 0.6},
    "adversary": {"prior": "0.05..0.5"},
    "table": {"source": "t.csv", "privacy_unit": "who"},
    "domains": {"ward": ["A", "B"], "age": "0..100"},
    "queries": [{"kind": "count"}],
}
SLIPS: list[tuple[str, Any, str]] = [
    (
        "target",
        None,
        "the scenario has no [target]; add one, for example [target] with posterior = 0.6",
    ),
    ("queries", [], "queries is empty; ask something with [[queries]]"),
    (
        "table",
        {"source": "t.csv"},
        "table.privacy_unit is missing; add privacy_unit = '…' to [table]",
    ),
    (
        "table",
        {"source": "t.csv", "privacy_unit": "Who"},
        "table.privacy_unit: the table has no column 'Who'; did you mean 'who'?",
    ),
    (
        "table",
        {"source": "t.csv", "privacy_unit": "who", "max_groups": 0},
        "table.max_groups must be a whole number of at least 1 and at most 1,000,000,000, not 0",
    ),
    (
        "domains",
        {"agee": "0..1"},
        "domains.agee: the table has no column 'agee'; name a column as the header spells it",
    ),
    ("domains", {"age": "9..1"}, "domains.age: lower is 9, not below upper, 1"),
    ("queries", [{"kind": "sum"}], "queries[0]: a query of kind sum needs column"),
    (
        "queries",
        [{"kind": "count", "where": "SUM(age) > 1"}],
        "queries[0].where has 'SUM(age)', which is not read; use comparisons, and/or/not, in, "
        "between, like, arithmetic, case and coalesce",
    ),
    (
        "queries",
        [{"kind": "mean", "column": "ward"}],
        "queries[0]: the domain of ward is a list of values, and numbers need a range; declare it "
        "in [domains], such as ward = '0..120'",
    ),
    ("queries", [{"kind": "count", "name": "n"}] * 2, "two queries have the name 'n'"),
    (
        "budget",
        {"noise": "gaussian"},
        "budget.noise: gaussian noise needs a plan with a delta, and this plan has none; use noise "
        "= laplace, or plan with a delta",
    ),
]


@pytest.mark.parametrize(("section", "written", "sentence"), SLIPS)
def test_a_scenario(tmp_path: Path, section: str, written: Any, sentence: str) -> None:
    (tmp_path / "t.csv").write_text("who,ward,age\na,A,30\nb,B,40\n", encoding="utf-8")
    data = {**deepcopy(SCENARIO), section: written}
    if written is None:
        del data[section]

    def estimate() -> None:
        scenario = read_scenario(data, tmp_path)
        scenario.estimate_cost(scenario.open_table())

    with pytest.raises(WhosinError) as refused:
        estimate()
    assert str(refused.value) == sentence


CALLS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: wi.calibrate(wi.Rho("0.1", 10)),
        "a rho of 0.1 cannot be kept: the adversary believes 1/m = 0.1 already; use more than 10 "
        "candidates, or a rho above 0.1",
    ),
    (
        lambda: wi.calibrate(wi.Gamma(2), wi.families.AnyPrior()),
        "no ε between neighbours protects against every prior (T3): the noise would have to hide "
        "everyone at once; say how many people may be linked with cliques=k",
    ),
    (lambda: wi.priors.Exchangeable([0.5, 0.4]), "sizes must add up to 1, not 0.9 (off by -0.1)"),
    (
        lambda: wi.families.AtMostKnown(1),
        "low and high must be strictly between 0 and 1, not 0..1; a person who is surely in or out "
        "is one of the k known people",
    ),
    (lambda: wi.mechanisms.Geometric("count"), "give scale or alpha"),
    (
        lambda: wi.mechanisms.Laplace("count", 2).channel(),
        "Laplace needs a space; call measure(mechanism, space)",
    ),
    (
        lambda: wi.Channel(wi.Subsets(1), [[0.5, 0.5], [0.5, 0.6]]),
        "the probabilities in row 1 (world {0}) must add up to 1, not 1.1 (off by +0.1)",
    ),
    (
        lambda: wi.mechanisms.Gaussian("count", 2).channel(wi.Subsets(3)),
        "Gaussian noise has unbounded likelihood ratios, so no pure γ or ε holds for it; allow a "
        "small failure probability δ, or use Laplace or geometric noise",
    ),
    (
        lambda: wi.notions.DifferentialPrivacy(group=2),
        "groups of rows replace each other; use relation='replace' on Records(…), or group=1",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), CALLS)
def test_python(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(WhosinError) as refused:
        call()
    assert str(refused.value) == sentence
