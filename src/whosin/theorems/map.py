"""The map of notions as it is printed and drawn: a line for each implication and counterexample.

`convert` walks every line; `tests/theorems/test_map_edges.py` holds each against brute force.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """A line of the drawn map.

    Attributes:
        theorem: its number, or one of `REASONS`.
        formula: the level of the target, and on what condition.
        both_ways: whether it is walked in both directions.
    """

    source: str
    target: str
    theorem: str
    formula: str
    both_ways: bool = False


REASONS = {
    "definition": "By definition.",
    "subfamily": "A smaller family of adversaries.",
    "amplification": "Nobody knows who is in a random sample.",
    "independent rows": "Rows that do not depend on each other say nothing about each other.",
}
"""Why an implication holds, where it needs no theorem."""

EDGES: tuple[Edge, ...] = (
    Edge("UDP", "positive UDP", "definition", "ε"),
    Edge("UDP", "negative UDP", "definition", "ε"),
    Edge("UDP", "BDP", "T6", "2ε"),
    Edge("UDP", "(β, ε)-DPS", "amplification", "ln(1 + β(e^ε − 1))"),
    Edge("positive UDP", "PMP under D_I", "T4", "γ = e^ε", True),
    Edge("negative UDP", "NMP under D_I", "T4", "γ = e^ε", True),
    Edge("positive UDP", "PMP under D_I^[a,b]", "T11", "γ(e^ε, [a,b])", True),
    Edge("positive UDP", "PMP under D_NI^k", "T7", "γ = e^(kε)"),
    Edge("BDP", "PMP under D_B", "T5", "γ = e^ε", True),
    Edge("BDP", "PMP under D_B^[a,b]", "T11", "γ(e^ε, [a,b]); back if a+b = 1"),
    Edge("PMP under D_U", "PMP under D_NI^k", "subfamily", "γ"),
    Edge("PMP under D_U", "PMP under D_B", "subfamily", "γ"),
    Edge("PMP under D_NI^k", "PMP under D_I", "subfamily", "γ"),
    Edge("PMP under D_I^[a,b]", "PMP under D_F^β", "subfamily", "γ, a ≤ β ≤ b"),
    Edge("PMP under D_I^[a,b]", "PMP under D_N", "subfamily", "γ, a ≤ 1/2 ≤ b"),
    Edge("PMP under D_I^[a,b]", "PMP under D_K^k", "subfamily", "γ"),
    Edge("PMP under D_B", "PMP under D_C^m", "subfamily", "γ"),
    Edge("BDP", "PMP under D_C^m", "T11", "γ(e^ε, 1/m)"),
    Edge("(ρ, m)-DI", "PMP under D_C^m", "T8", "γ = max(ρm, (m−1)/(m(1−ρ)))", True),
    Edge("(ρ, 2)-DI", "BDP", "T9", "ε = ln(ρ/(1−ρ))", True),
    Edge("(β, ε)-DPS", "PMP under D_F^β", "T10", "γ = max(e^ε, (e^ε−1+β)/(βe^ε))", True),
    Edge("DP on records", "semantic privacy", "T15", "tanh(ε/2); back 4 artanh", True),
    Edge("Bayesian DP", "Bayesian SP", "T15", "tanh(ε/2); back 4 artanh, default possible", True),
    Edge("Bayesian DP", "DP on records", "T19", "ε, prior of full support"),
    Edge("DP on records", "Bayesian DP", "independent rows", "ε, independent rows"),
    Edge("Bayesian SP", "semantic privacy", "T19", "the same level, prior of full support"),
    Edge("semantic privacy", "Bayesian SP", "independent rows", "the same level, independent rows"),
    Edge("DP on records", "identifiability", "T19", "ε + ε_X", True),
    Edge("Bayesian DP", "PMP under D_*", "T14", "γ = e^ε", True),
    Edge(
        "identifiability",
        "PMP under {p_X}",
        "T22",
        "γ = max(q/p, (1−p)/(1−q)), q = 1/(1+e^−ε), binary rows",
    ),
    Edge(
        "DP on records",
        "mutual information",
        "T24",
        "Σ [H(p(1−q)+(1−p)q) − H(q)], q = 1/(1+e^ε), independent binary rows",
    ),
    Edge("mutual information", "mean shift", "T23", "√(ι/2)"),
)


@dataclass(frozen=True)
class Barrier:
    """A known counterexample."""

    source: str
    target: str
    reason: str


BARRIERS: tuple[Barrier, ...] = (
    Barrier("BDP", "UDP", "publishing |T| is 0-BDP and no UDP (T6)"),
    Barrier("(ρ, m)-DI", "BDP", "m > 2: the mechanism of Theorem 5.7 (T9)"),
    Barrier("PMP under D_N", "PMP under D_I", "k-Max is finite under D_N only (Li13 5.1)"),
    Barrier("positive UDP", "negative UDP", "an output possible only for the empty set"),
)
"""Where no implication can hold."""
