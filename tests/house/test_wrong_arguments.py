"""Whatever object is passed by mistake, the answer is one of whosin's own errors.

The test walks over every public callable of the mathematical rooms, so that a new one is in it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import whosin as wi
from whosin import calibration, distortion, families, mechanisms, noise, notions, priors, theorems
from whosin.errors import WhosinError, check_numbers

ROOMS = (
    *("spaces", "priors", "families", "mechanisms", "notions", "theorems", "calibration"),
    *("distortion", "noise", "beliefs"),
)
WRONG: tuple[object, ...] = (
    *(None, 3, "x", [], object(), -1.5, {"a": 1}, [3], [[3]], (), True, b"x", float("nan"), ...),
)

SUBSETS, RECORDS = wi.Subsets(3), wi.Records(2, 2)
COUNT, HALF = wi.statistics.Count(), priors.Independent(["1/2"] * 3)
CHAIN = priors.MarkovChain(["1/2", "1/2"], [[0.9, 0.1], [0.2, 0.8]])
NOISY = mechanisms.Laplace(COUNT, 2)
ROWS = priors.Independent([["1/2", "1/2"]] * 2)
COINS = [["3/4", "1/4"]] * 8
KNOWN = distortion.find_structure(RECORDS, ROWS)
DP = notions.DifferentialPrivacy("add-remove")

GOOD: dict[Callable[..., Any], dict[str, Any]] = {
    wi.Records: {"rows": 2, "values": 2},
    priors.FixedSize: {"p": ["1/2"] * 3, "size": 2},
    priors.MarkovChain: {"initial": ["1/2", "1/2"], "transition": [[1, 0], [0, 1]]},
    priors.Table: {"probabilities": ["1/2", "1/2"]},
    priors.Exchangeable: {"sizes": ["1/2", "1/2"]},
    priors.Blocks: {"blocks": [((0, 1), {(0,): "1/2", (): "1/2"})]},
    priors.Blocks.cliques: {"groups": [(0, 1), (2,)], "p": "1/2"},
    priors.Network: {"nodes": [((), {(): ("1/2", "1/2")})]},
    families.AtMostKnown: {"k": 1, "low": "1/4", "high": "1/2"},
    families.Independent: {"low": "1/4", "high": "1/2"},
    families.FixedSize: {"low": "1/4", "high": "1/2"},
    families.OneOf: {"m": 3, "literal": False},
    families.Explicit: {"priors": [HALF]},
    mechanisms.Channel: {"space": SUBSETS, "probabilities": COINS, "outputs": ["a", "b"]},
    mechanisms.Channel.from_function: {"space": SUBSETS, "function": lambda _: {"a": 1}},
    mechanisms.Exponential: {
        "score": lambda *_: 1, "outputs": [0, 1], "epsilon": 1, "sensitivity": 1,
    },
    mechanisms.Gaussian: {"statistic": COUNT, "scale": 2},
    mechanisms.Geometric: {"statistic": COUNT, "scale": 2},
    mechanisms.Laplace: {"statistic": COUNT, "scale": 2},
    mechanisms.Mixture: {"parts": [NOISY, NOISY], "weights": ["1/2", "1/2"]},
    mechanisms.PostProcessed: {"mechanism": NOISY, "map": str},
    mechanisms.Sampled: {"mechanism": NOISY, "beta": "1/2"},
    mechanisms.read_channel: {"mechanism": NOISY, "space": SUBSETS},
    notions.BayesianSemanticPrivacy: {"prior": CHAIN},
    notions.SampledDifferentialPrivacy: {"beta": "1/2", "direction": "both"},
    theorems.convert: {"level": DP.measure(NOISY, SUBSETS), "to": DP},
    theorems.build_coupling: {
        "prior": priors.FixedSize(["1/2"] * 3, 2),
        "space": SUBSETS,
        "entity": 0,
    },
    theorems.fallback: {"epsilon": 1.0, "relation": "replace"},
    calibration.Rho: {"rho": "1/2", "m": 5},
    calibration.Process: {"noise": "gaussian", "sample_rate": 0.1, "steps": 10},
    calibration.PlannedQuery: {
        "kind": "sum",
        "lower": 0,
        "upper": 1,
        "max_rows_per_group": 1,
        "max_groups": 1,
    },
    calibration.calibrate: {
        "target": wi.Gamma(2), "family": families.Independent(), "delta": 0.0, "query": "count",
    },
    distortion.PerRow: {"matrices": (((1, 0), (0, 1)),)},
    distortion.best: {"space": RECORDS, "prior": ROWS, "epsilon": 1.0},
    distortion.curves: {"space": RECORDS, "prior": ROWS, "notions": ["dp"], "points": 2},
    distortion.hamming_distortion: {"space": RECORDS, "epsilon": 1.0},
    distortion.h_inverse: {"space": RECORDS, "distortion": 1.0},
    distortion.identifiable_mechanism: {"structure": KNOWN, "epsilon": 1.0},
    distortion.randomized_response: {"epsilon": 1.0, "values": 2},
    distortion.find_structure: {"space": RECORDS, "prior": ROWS},
    noise.bernoulli: {"probability": "1/2", "size": 3},
    noise.categorical: {"probabilities": ["1/2", "1/2"], "size": 3},
    noise.cube: {"scale": 2, "dimensions": 2, "count": 3},
    noise.discrete_gaussian: {"sigma": 2, "size": 3},
    noise.discrete_laplace: {"scale": 2, "size": 3},
    noise.geometric: {"scale": 2, "size": 3},
    noise.noisy_max: {"scores": [1, 2], "scale": 2},
    noise.noisy_max_gap: {"scores": [1, 2], "scale": 2},
    noise.randomized_response: {"codes": [0, 1], "rows": [["1/2", "1/2"]] * 2},
    noise.selection_epsilon: {"sensitivity": 1, "scale": 2, "k": 1},
    noise.top_k: {"scores": [1, 2], "k": 1, "scale": 2},
    noise.uniform: {"n": 3, "size": 3},
    # What people call on objects.
    DP.measure: {"mechanism": NOISY, "space": SUBSETS},
    notions.PositiveMembership(families.Independent()).measure: {
        "mechanism": NOISY, "space": SUBSETS,
    },
    notions.BayesianDifferentialPrivacy(CHAIN).measure: {"mechanism": NOISY, "space": RECORDS},
    NOISY.channel: {"space": SUBSETS},
    mechanisms.KMax(2).channel: {"space": SUBSETS},
    mechanisms.Channel.load: {"path": "no-such-file.json"},
    calibration.Plan.load: {"path": "no-such-file.json"},
    HALF.probabilities: {"space": SUBSETS},
    HALF.as_table: {"space": SUBSETS},
    families.Independent().contains: {"prior": HALF, "space": SUBSETS},
    families.Uninformed().contains: {"prior": HALF, "space": SUBSETS},
    families.Cliques(2).contains: {"prior": HALF, "space": SUBSETS},
    families.Explicit([HALF]).contains: {"prior": HALF, "space": SUBSETS},
    SUBSETS.index: {"present": [0]},
    SUBSETS.world: {"index": 0},
    RECORDS.index: {"world": [0, 1]},
    RECORDS.world: {"index": 0},
    CHAIN.marginals: {"rows": 2},
}  # fmt: skip


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong path may be a right one: nothing is written where the tests run."""
    monkeypatch.chdir(tmp_path)


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public callable, by its name."""
    for room in ROOMS:
        module = import_module(f"whosin.{room}")
        for name in getattr(module, "__all__", vars(module)):
            found = getattr(module, name)
            own = getattr(found, "__module__", "").startswith(f"whosin.{room}")
            if own and callable(found) and not inspect.isabstract(found) and name[0] != "_":
                yield f"{room}.{name}", found


def refused(call: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """What is wrong with the way a call refuses, if anything is."""
    try:
        call(**arguments)
    except (WhosinError, FileNotFoundError) as error:
        text = str(error)
        return None if text and "\n" not in text else f"a message of several lines: {text}"
    except Exception as error:
        given = {name: repr(value)[:40] for name, value in arguments.items()}
        return f"{given}: {type(error).__name__}: {error}"
    return None


CALLS = dict(public())


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_of_every_kind(name):
    call = CALLS[name]
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = [p for p in inspect.signature(call).parameters.values() if p.kind not in kinds]
    needed = [p.name for p in taken if p.default is p.empty]
    optional = [p.name for p in taken if p.default is not p.empty]
    found = []
    for wrong in WRONG:
        every = dict.fromkeys(needed, wrong)
        found += [refused(call, every | {name: wrong}) for name in [*needed[:1], *optional]]
    assert [words for words in found if words] == []


def _name(call: Callable[..., Any]) -> str:
    owner = getattr(call, "__self__", None)
    kind = "" if owner is None or inspect.isclass(owner) else f"{type(owner).__name__}."
    return f"{kind}{call.__qualname__}"


@pytest.mark.parametrize("call", GOOD, ids=_name)
def test_one_wrong_argument_among_right_ones(call):
    good = GOOD[call]
    if "path" not in good:
        call(**good)  # otherwise the test would say nothing
    found = [refused(call, good | {name: wrong}) for name in good for wrong in WRONG]
    assert [words for words in found if words] == []


def test_the_walk_can_fail():
    assert refused(lambda number: number + 1, {"number": None}) is not None
    assert refused(check_numbers(lambda number: number + 1), {"number": None}) is None
    assert len(CALLS) > 100


def test_formulas_keep_their_names_and_numbers():
    assert theorems.semantic_from_dp.__name__ == "semantic_from_dp"
    assert theorems.post_processed(float("inf")) == float("inf")
