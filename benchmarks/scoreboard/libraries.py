"""Mechanisms of libraries, each imported in an environment of its own: (mechanism, with, without,
further terms of the audit)."""

from __future__ import annotations

from typing import Any

Made = tuple[Any, Any, Any, dict[str, Any]]


def diffprivlib_laplace() -> Made:
    from diffprivlib.mechanisms import Laplace

    noise = Laplace(epsilon=0.1, sensitivity=1)
    return lambda value: noise.randomise(value), 1.0, 0.0, {}


def diffprivlib_geometric() -> Made:
    from diffprivlib.mechanisms import Geometric

    noise = Geometric(epsilon=0.1, sensitivity=1)
    return lambda value: noise.randomise(value), 1, 0, {}


def opendp_laplace() -> Made:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    noise = dp.m.make_laplace(*space, scale=10.0)

    def draw(value: float, size: int, rng: object) -> Any:
        return noise([value] * size)

    return draw, 1.0, 0.0, {}


def pydp_laplace() -> Made:
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    noise = LaplaceMechanism(epsilon=0.1, sensitivity=1)
    return lambda value: noise.add_noise(value), 1.0, 0.0, {}
