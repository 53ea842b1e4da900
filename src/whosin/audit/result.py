"""What an audit shows: lower bounds, at a stated confidence, that hold all together.

Contract: `epsilon`, `gamma`, `ratio` and every posterior of one result hold *simultaneously* with
the stated confidence. They are lower bounds on what leaks, for the inputs that were tried: an audit
can refute a claim of privacy, never confirm one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from whosin import beliefs
from whosin.audit.events import Event
from whosin.audit.ratio import RatioTest
from whosin.audit.terms import read_epsilon
from whosin.exact import exp_up, probability, rational, round_up


@dataclass(frozen=True)
class AuditBounds:
    """Lower bounds on leakage.

    Attributes:
        epsilon: on ε, in nats: no smaller ε (with this δ) is true of the mechanism.
        log_ratio: on ln r, r = Pr[S|t]/Pr[S|¬t] of some event S: evidence that someone is *in*.
        delta: the δ that is granted to the mechanism.
    """

    epsilon: float
    log_ratio: float
    confidence: float
    delta: float = field(default=0.0, kw_only=True)

    @property
    def ratio(self) -> float:
        """The lower bound on r itself, rounded down."""
        return math.exp(self.log_ratio) * (1 - 1e-15) if self.log_ratio > 0 else 1.0

    @property
    def gamma(self) -> float:
        """The factor by which some adversary's belief grows at least (T1, T4): r itself."""
        return self.ratio

    def gamma_at(self, prior: object) -> float:
        """The γ that is violated at one prior belief (F4)."""
        return float(beliefs.gamma(self.ratio, float(probability(prior, "prior"))))

    def posterior(self, prior: object = 0.5) -> float:
        """How sure someone with this prior becomes at least, on seeing the event (F1)."""
        return float(beliefs.posterior(self.ratio, float(probability(prior, "prior"))))

    def refutes(self, epsilon: object) -> bool:
        """Whether the claim of ε-DP (with the δ of this audit) is refuted at the confidence."""
        return self.epsilon > read_epsilon(epsilon)

    def to_dict(self) -> dict[str, object]:
        """The bounds for programs."""
        bounds = {"epsilon": self.epsilon, "gamma": self.gamma, "posterior": self.posterior(0.5)}
        return {**bounds, "confidence": self.confidence, "delta": self.delta}


@dataclass(frozen=True)
class EventCount:
    """How often an event happened in both worlds, in fresh draws, and the bound that this gives.

    Attributes:
        trials, others: draws with and without.
        log_ratio: the lower bound on ln of the ratio, favoured world over the other.
    """

    event: Event
    with_hits: int
    without_hits: int
    trials: int
    others: int
    log_ratio: float

    @property
    def estimate(self) -> float:
        """ln of the ratio of frequencies, favoured world over the other; not a bound."""
        hits, other = self.with_hits * self.others, self.without_hits * self.trials
        if self.event.favours == "without":
            hits, other = other, hits
        if hits == 0:
            return -math.inf if other else 0.0
        return math.log(hits / other) if other else math.inf

    def to_dict(self) -> dict[str, object]:
        """The count for programs."""
        numbers = ("with_hits", "without_hits", "trials", "others", "log_ratio", "estimate")
        about = {**self.event.data(), "favours": self.event.favours}
        return about | {key: getattr(self, key) for key in numbers}


@dataclass(frozen=True)
class Audit(AuditBounds):
    """The result of `two_worlds` and `search`.

    Attributes:
        counts: what was counted; the first one gives `epsilon` its event.
        samples: draws of each world, all stages together.
        notes: what one should know besides, such as that the mechanism has no randomness.
        blind: every output was the same; or every output was distinct, and none had a number or a
            part that comes again. Nothing could be learnt, whatever leaks.
        with_, without: the inputs.
        pattern: the name of the pair of inputs, where a search chose it.
        timing: the time of each call was a part of its output: the bounds are of both together.
    """

    counts: tuple[EventCount, ...]
    samples: int
    with_: object
    without: object
    notes: tuple[str, ...] = ()
    pattern: str | None = None
    blind: bool = False
    timing: bool = False

    @property
    def event(self) -> Event:
        """The witness: an event whose probability differs by this much between the worlds."""
        return self.counts[0].event

    def could_refute(self, epsilon: object) -> bool:
        """Whether an event that all draws with and none without are in would refute this claim."""
        claim, count = read_epsilon(epsilon), self.counts[0]
        error, slope = 1 - self.confidence, math.exp(min(claim, 30.0))
        test = RatioTest(count.trials, count.trials, 0, count.others, error, slope, self.delta)
        return test.rejects(claim)

    def samples_to_refute(self, epsilon: object) -> int | None:
        """About how many samples would refute a claim, if the frequencies seen are the truth; None
        where they do not speak against it. A guess, for planning the next audit."""
        count = self.counts[0]
        seen = (count.with_hits, count.trials), (count.without_hits, count.others)
        spread = sum(1 / max(hits, 1) - 1 / trials for hits, trials in seen)
        margin = count.estimate - read_epsilon(epsilon)
        if margin <= math.sqrt(spread) or self.delta:  # within what chance alone does
            return None
        error = 1 - self.confidence
        needed = self.samples * spread * -2 * math.log(error) / min(margin, 50.0) ** 2
        return max(math.ceil(needed), self.samples)

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        return {
            **super().to_dict(),
            "samples": self.samples,
            "with": repr(self.with_),
            "without": repr(self.without),
            "pattern": self.pattern,
            "event": self.counts[0].to_dict(),
            "counts": [count.to_dict() for count in self.counts],
            "notes": list(self.notes),
            "blind": self.blind,
            "timing": self.timing,
        }


def most_that_can_show(trials: int, error: float, delta: float = 0.0) -> float:
    """About the largest ε that this many counted draws of each world could ever show: all hits in
    one world and none in the other."""
    log = -math.log(error)
    return max(0.0, math.log(max(math.exp(-log / trials) - delta, 1e-300) * trials / log))


def trials_to_show(epsilon: float, error: float, delta: float = 0.0) -> int:
    """About how many counted draws of each world an event without misses needs to show ε."""
    ratio = round_up(exp_up(rational(min(epsilon, 60.0)))) + 1
    return math.ceil(ratio * -math.log(error) / (1 - delta)) + 1
