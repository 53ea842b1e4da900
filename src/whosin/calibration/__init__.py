"""From how sure an adversary may become to the noise that is needed, on the safe side."""

from whosin.calibration.accounting import Process, ProcessPlan, calibrate_process
from whosin.calibration.plan import Fallback, Noise, Plan
from whosin.calibration.planning import calibrate
from whosin.calibration.queries import PlannedQuery
from whosin.calibration.reading import read_adversary, read_plan, read_target
from whosin.calibration.targets import (
    HIPAA,
    TARGETS,
    Advantage,
    Epsilon,
    Gain,
    Gamma,
    Posterior,
    Rho,
    Target,
)

__all__ = [
    "HIPAA",
    "TARGETS",
    "Advantage",
    "Epsilon",
    "Fallback",
    "Gain",
    "Gamma",
    "Noise",
    "Plan",
    "PlannedQuery",
    "Posterior",
    "Process",
    "ProcessPlan",
    "Rho",
    "Target",
    "calibrate",
    "calibrate_process",
    "read_adversary",
    "read_plan",
    "read_target",
]
