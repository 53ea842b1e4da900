"""From how sure an adversary may become to the noise that is needed, on the safe side.

`TARGET_KINDS` is the registry. Numbers such as T7 or F9 are explained in docs/theory/numbers.md.
"""

from whosin.calibration.accounting import Process as Process
from whosin.calibration.accounting import ProcessPlan as ProcessPlan
from whosin.calibration.accounting import calibrate_process as calibrate_process
from whosin.calibration.base import Target as Target
from whosin.calibration.plan import Fallback as Fallback
from whosin.calibration.plan import Plan as Plan
from whosin.calibration.plan import PlannedNoise as PlannedNoise
from whosin.calibration.plan import PlannedQuery as PlannedQuery
from whosin.calibration.planning import calibrate as calibrate
from whosin.calibration.planning import read_adversary as read_adversary
from whosin.calibration.planning import read_plan as read_plan
from whosin.calibration.planning import read_target as read_target
from whosin.calibration.rate_targets import Advantage as Advantage
from whosin.calibration.rate_targets import BayesRisk as BayesRisk
from whosin.calibration.rate_targets import Detection as Detection
from whosin.calibration.rate_targets import RateTarget as RateTarget
from whosin.calibration.targets import HIPAA_TARGET as HIPAA_TARGET
from whosin.calibration.targets import TARGET_KINDS as TARGET_KINDS
from whosin.calibration.targets import Epsilon as Epsilon
from whosin.calibration.targets import Gain as Gain
from whosin.calibration.targets import Gamma as Gamma
from whosin.calibration.targets import Posterior as Posterior
from whosin.calibration.targets import Profile as Profile
from whosin.calibration.targets import Rho as Rho

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
