"""A generated hospital: made-up patients and visits, for the demonstration and the docs."""

from __future__ import annotations

from pathlib import Path

SCENARIO = """\
title = "Hospital visits (generated data)"

[adversary]                 # who may be looking
prior = "0.05..0.5"         # between 5% and 50% sure that someone is in; may know everyone else

[target]                    # how sure they may become
posterior = 0.6

[table]
source = "hospital.parquet"
entity = "patient"
rows = 3                    # of a patient's visits, up to 3 count in a cell
groups = 2                  # and up to 2 cells

[domains]                   # public: what the columns may hold
ward = ["surgery", "medicine", "maternity", "children"]
age = { edges = [0, 18, 40, 65, 80, 120] }
days = { lower = 0, upper = 30 }

[ledger]
url = "ledger.db"

[[queries]]
kind = "count"
name = "patients"

[[queries]]
kind = "rows"
name = "visits by ward"
by = ["ward"]
weight = 2

[[queries]]
kind = "histogram"
name = "patients over 40 by age"
column = "age"
where = "age >= 40"
groups = 1

[[queries]]
kind = "mean"
name = "days in hospital"
column = "days"
weight = 2
"""


def write_hospital(folder: Path, patients: int = 20_000) -> Path:
    """Write the table and its scenario; return the scenario's path."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    # Made-up people, the same ones every time; the noise of a release never has a seed.
    draw = np.random.default_rng(7)
    visits = 1 + draw.geometric(0.45, patients)
    patient = np.repeat(np.arange(patients), visits)
    age = np.repeat(np.clip(draw.normal(52, 24, patients), 0, 101).astype(int), visits)
    wards = np.array(["surgery", "medicine", "maternity", "children"])
    adult = wards[draw.choice(3, patient.size, p=[0.35, 0.5, 0.15])]
    table = pa.table(
        {
            "patient": np.char.add("P", patient.astype(str)),
            "age": age,
            "ward": np.where(age < 18, "children", adult),
            "days": np.round(draw.gamma(1.6, 2.6, patient.size), 1),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, folder / "hospital.parquet")
    scenario = folder / "hospital.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    return scenario
