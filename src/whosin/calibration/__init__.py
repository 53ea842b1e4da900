"""From how sure an adversary may become to the noise that is needed, on the safe side."""

from whosin.calibration.calibrate import calibrate
from whosin.calibration.plan import Fallback, Plan
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
    "Plan",
    "Posterior",
    "Rho",
    "Target",
    "calibrate",
]
