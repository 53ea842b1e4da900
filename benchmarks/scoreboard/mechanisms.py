"""Mechanisms with a known truth, and known bugs: each function returns (mechanism, with, without,
further terms of the audit)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import attacked
import sniper_mechanisms as sniper

Made = tuple[Any, Any, Any, dict[str, Any]]


def response() -> Made:
    return attacked.response(1.0), 1, 0, {}


def geometric() -> Made:
    def draw(value: int, size: int, rng: np.random.Generator) -> Any:
        chance = 1 - math.exp(-0.5)
        return value + rng.geometric(chance, size) - rng.geometric(chance, size)

    return draw, 1, 0, {}


def gridded() -> Made:
    return attacked.laplace, 1.0, 0.0, {}


def floats() -> Made:
    return sniper.laplace, 1.0, 0.0, {}


def _published(name: str) -> Made:
    (each,) = [case for case in sniper.PUBLISHED if case.name == name]
    return each.gridded, each.with_, each.without, {}


svt3 = partial(_published, "SVT3")
svt5 = partial(_published, "SVT5")
svt6 = partial(_published, "SVT6")
noisy_max_value = partial(_published, "ReportNoisyMax3")
histogram = partial(_published, "NoisyHist2")


def keys() -> Made:
    def draw(people: list[str], rng: np.random.Generator) -> Any:
        counts = {name: people.count(name) + rng.laplace() for name in sorted(set(people))}
        return [(name, round(count, 3)) for name, count in counts.items() if count > 2]

    return draw, ["flu"] * 20 + ["rare"], ["flu"] * 20, {"samples": 8_000}


def slow() -> Made:
    def draw(names: list[str], rng: np.random.Generator) -> bool:
        for _ in range(40 * len(names)):
            rng.random()
        return bool(rng.random() < 0.5)

    return draw, ["ann", "bob", "cy"], ["ann"], {"timing": True}
