"""What stands on the scoreboard of audits: mechanisms with a known truth, known bugs, libraries.

Contract: a case names a function of `mechanisms` (or of `libraries`, run in the library's own
environment at a pinned version), its inputs, its claim, and what is known of it from elsewhere:
the truth, and what its documentation says. Bounds, draws and seconds are measured, never written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MECHANISM, BUG, LIBRARY = "known mechanism", "known bug", "library"


@dataclass(frozen=True)
class Case:
    """One line of the board.

    Attributes:
        made_by: the function that makes the mechanism, in `mechanisms` or `libraries`.
        claim: the ε that is claimed; None where the library states it for these inputs, with its δ.
        truth: the ε of the pair, None where nobody has proved one.
        about: what the library's documentation or the literature says.
        packages: of its environment; none for the one that runs the board.
    """

    name: str
    group: str
    made_by: str
    claim: float | None
    truth: float | None
    about: str
    draws: int = 200_000
    packages: tuple[str, ...] = ()

    @property
    def environment(self) -> str:
        name = self.packages[0].split("==")[0] if self.packages else ""
        return f"audit-{name.replace('[', '-').rstrip(']')}" if name else ""

    @property
    def confidence(self) -> float:
        """Libraries are other people's work: one line in a hundred may be wrong, not in twenty."""
        return 0.99 if self.group == LIBRARY else 0.95


DIFFPRIVLIB = ("diffprivlib==0.6.6", "scikit-learn==1.5.2")
OPENDP = ("opendp==0.16.0",)
OPENDP_POLARS = ("opendp[polars]==0.16.0",)
PYDP = ("python-dp==1.1.5",)
CASES = [
    Case("randomised response", MECHANISM, "response", 1.0, 1.0, "Warner 1965"),
    Case("geometric noise", MECHANISM, "geometric", 0.5, 0.5, "Ghosh et al. 2009"),
    Case("Laplace noise on a grid", MECHANISM, "gridded", 0.1, 0.1, "floats rounded to 2^-20"),
    Case(
        "numpy.random.Generator.laplace",
        BUG,
        "floats",
        0.1,
        math.inf,
        "NumPy offers it for simulation and claims no privacy; added in floats it has none "
        "(Mironov 2012)",
    ),
    Case(
        "sparse vector that shows answers",
        BUG,
        "svt3",
        0.1,
        math.inf,
        "published as private; Lyu, Su and Li 2017, algorithm 3",
        1_000_000,
    ),
    Case(
        "sparse vector without noise on answers",
        BUG,
        "svt5",
        0.1,
        math.inf,
        "published as private; Lyu, Su and Li 2017, algorithm 5",
    ),
    Case(
        "sparse vector that never stops",
        BUG,
        "svt6",
        0.1,
        math.inf,
        "published as private; Lyu, Su and Li 2017, algorithm 6",
        400_000,
    ),
    Case(
        "largest noisy answer itself",
        BUG,
        "noisy_max_value",
        0.1,
        0.25,
        "five answers, noise for the place of the largest; Ding et al. 2018",
        400_000,
    ),
    Case(
        "histogram with a scale for a rate",
        BUG,
        "histogram",
        0.1,
        10.0,
        "noise of scale ε in place of 1/ε; Ding et al. 2018",
    ),
    Case("keys come from the data", BUG, "keys", 1.0, math.inf, "a histogram of what is there"),
    Case("a slow branch, by its time", BUG, "slow", 1.0, math.inf, "found with timing", 4_000),
    Case(
        "diffprivlib 0.6.6, Laplace",
        LIBRARY,
        "diffprivlib_laplace",
        0.1,
        None,
        "its documentation says that sums of several draws protect against inverting the sampler "
        "(Holohan and Braghin 2021); adding noise in floats still shows in the lowest bits (Haney "
        "et al. 2022)",
        60_000,
        DIFFPRIVLIB,
    ),
    Case(
        "diffprivlib 0.6.6, Geometric",
        LIBRARY,
        "diffprivlib_geometric",
        0.1,
        0.1,
        "whole numbers",
        60_000,
        DIFFPRIVLIB,
    ),
    Case(
        "OpenDP 0.16.0, make_laplace",
        LIBRARY,
        "opendp_laplace",
        0.1,
        0.1,
        "exact noise on a grid of floats, with a proof in its documentation",
        60_000,
        OPENDP,
    ),
    Case(
        "PyDP 1.1.5, LaplaceMechanism",
        LIBRARY,
        "pydp_laplace",
        0.1,
        None,
        "Google's library, whose noise is rounded to a grid",
        60_000,
        PYDP,
    ),
    Case(
        "PyDP 1.1.5, GaussianMechanism",
        LIBRARY,
        "pydp_gaussian",
        1.0,
        None,
        "Google's library; the noise is added in floats, and the lowest bits of the sum tell",
        200_000,
        PYDP,
    ),
    Case(
        "OpenDP 0.16.0, a count of a column that was redefined",
        LIBRARY,
        "opendp_redefined_column",
        None,
        None,
        "OpenDP's issue #2949 (September 2026): contributions are bounded by a column, the column "
        "is replaced by a constant, and the map still counts with the bound",
        3_000,
        OPENDP_POLARS,
    ),
    Case(
        "OpenDP 0.16.0, a grouped sum with max_length",
        LIBRARY,
        "opendp_group_length",
        None,
        2.0,
        "OpenDP's issue #2945 (September 2026): a group of at most three rows can differ in six, "
        "three out and three in; the map counts three",
        10_000,
        OPENDP_POLARS,
    ),
]
