"""From how sure an adversary may become to the noise that is needed, on the safe side.

`TARGET_KINDS` is the registry. Numbers such as T7 or F9 are explained in docs/theory/numbers.md.
"""

from whosin.calibration.accounting import Process, ProcessPlan, calibrate_process
from whosin.calibration.plan import Fallback, Plan, PlannedNoise, PlannedQuery
from whosin.calibration.planning import calibrate, read_adversary, read_plan, read_target
from whosin.calibration.rate_targets import Advantage, BayesRisk, Detection, RateTarget
from whosin.calibration.targets import (
    HIPAA_TARGET,
    Epsilon,
    Gain,
    Gamma,
    Posterior,
    Profile,
    Rho,
    Target,
)

TARGET_KINDS: dict[str, type[Target]] = {
    kind.name: kind
    for kind in (Gamma, Posterior, Epsilon, Rho, Gain, Advantage, Detection, BayesRisk, Profile)
}

__all__ = [
    "HIPAA_TARGET",
    "TARGET_KINDS",
    "Advantage",
    "BayesRisk",
    "Detection",
    "Epsilon",
    "Fallback",
    "Gain",
    "Gamma",
    "Plan",
    "PlannedNoise",
    "PlannedQuery",
    "Posterior",
    "Process",
    "ProcessPlan",
    "Profile",
    "RateTarget",
    "Rho",
    "Target",
    "calibrate",
    "calibrate_process",
    "read_adversary",
    "read_plan",
    "read_target",
]


def __dir__() -> list[str]:
    return __all__
