from . import audit as audit
from . import beliefs as beliefs
from . import calibration as calibration
from . import distortion as distortion
from . import errors as errors
from . import families as families
from . import gwas as gwas
from . import ledger as ledger
from . import mechanisms as mechanisms
from . import noise as noise
from . import notions as notions
from . import priors as priors
from . import references as references
from . import release as release
from . import rules as rules
from . import spaces as spaces
from . import theorems as theorems
from .calibration import Advantage as Advantage
from .calibration import Epsilon as Epsilon
from .calibration import Gain as Gain
from .calibration import Gamma as Gamma
from .calibration import Plan as Plan
from .calibration import Posterior as Posterior
from .calibration import Rho as Rho
from .calibration import calibrate as calibrate
from .ledger import Ledger as Ledger
from .mechanisms import Channel as Channel
from .notions import Level as Level
from .notions import Witness as Witness
from .release import Session as Session
from .release import Table as Table
from .release import queries as queries
from .spaces import Records as Records
from .spaces import Subsets as Subsets
from .spaces import statistics as statistics

__version__: str
__all__: list[str]
