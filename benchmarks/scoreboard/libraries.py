"""Mechanisms of libraries, each imported in an environment of its own: (mechanism, with, without,
further terms of the audit; `claim` where the library's own map says what it claims for them)."""

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


def pydp_gaussian() -> Made:
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism

    noise = GaussianMechanism(epsilon=1, delta=1e-5, sensitivity=1)
    return lambda value: noise.add_noise(value), 1.0, 0.0, {"delta": 1e-5}


def opendp_redefined_column() -> Made:
    """One person has a row in each of 100 groups, which become one group after truncation."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    groups, delta = 100, 1e-5
    names = ["person", "group"]
    counts = (
        pl.LazyFrame(schema=dict.fromkeys(names, pl.Int64))
        .filter(pl.int_range(pl.len()).over(*names) < 1)
        .filter(pl.struct("group").rank("dense").over("person") < groups + 1)
        .with_columns(group=pl.lit(0, dtype=pl.Int64))
        .group_by("group")
        .agg(dp.len(scale=10.0))
    )
    noisy = dp.m.make_private_lazyframe(
        dp.lazyframe_domain([dp.series_domain(name, dp.atom_domain(T="i64")) for name in names]),
        dp.symmetric_id_distance(identifier=pl.col("person")),
        dp.zero_concentrated_divergence(),
        pl.LazyFrame({"group": [0]}).join(counts, on="group", how="left"),
    )
    claim = dp.c.make_zCDP_to_approxDP(noisy).map(1).epsilon(delta=delta)

    def table(people: int) -> Any:
        rows = [range(people), range(groups)]
        cells = [(person, group) for person in rows[0] for group in rows[1]]
        return pl.LazyFrame(cells, schema=names, orient="row")

    def draw(people: int) -> Any:
        return noisy(tables[people]).collect()["len"].item()

    tables = {people: table(people) for people in (1, 2)}
    return draw, 2, 1, {"delta": delta, "claim": claim}


def opendp_group_length() -> Made:
    """A group of three rows, all of which change."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    schema = {"group": pl.String, "value": pl.Int32}
    domain = dp.lazyframe_domain(
        [
            dp.series_domain("group", dp.atom_domain(T=str)),
            dp.series_domain("value", dp.atom_domain(T="i32")),
        ]
    )
    margin = dp.polars.Margin(by=["group"], max_length=3, max_groups=1, invariant="keys")
    query = pl.LazyFrame(schema=schema).group_by("group")
    noisy = dp.m.make_private_lazyframe(
        dp.with_margin(domain, margin),
        dp.symmetric_distance(),
        dp.max_divergence(),
        query.agg(pl.col("value").dp.sum((-10, 10), scale=30.0)),
    )

    def draw(value: int) -> Any:
        return noisy(tables[value]).collect()["value"].item()

    tables = {
        value: pl.LazyFrame({"group": ["a"] * 3, "value": [value] * 3}, schema=schema)
        for value in (10, -10)
    }
    return draw, 10, -10, {"claim": noisy.map(6)}
