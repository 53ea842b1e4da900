"""Generated tables for the demonstration and the documentation: a hospital and a town."""

from __future__ import annotations

from pathlib import Path

from whosin.exact import Array
from whosin.plain_files import create_file, write_file

HOSPITAL_SCENARIO = """\
title = "Hospital visits (generated data)"

[about]                     # who answers for it; the report prints it
controller = "A made-up hospital"
contact = "privacy@hospital.example"
population = "all patients of four wards"
period = "2024"
decided_by = "its data protection board"
reasons = "One resident in twenty is a patient; a neighbour may guess. Nobody acts on 60%."

[adversary]                 # who may be looking
prior = "0.05..0.5"         # between 5% and 50% sure that someone is in; may know everyone else

[target]                    # how sure they may become
posterior = 0.6

[table]
source = "hospital.parquet"
privacy_unit = "patient"
max_rows_per_group = 3      # of a patient's visits, up to 3 count in a group
max_groups = 2              # and in up to 2 groups

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
max_groups = 1

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
    with create_file(folder / "hospital.parquet", binary=True) as file:
        parquet.write_table(table, file)
    scenario = folder / "hospital.toml"
    write_file(scenario, HOSPITAL_SCENARIO)
    return scenario


TOWN_DISTRICTS = (
    "Altstadt",
    "Bahnhof",
    "Dorf",
    "Hafen",
    "Hochschule",
    "Industrie",
    "Rosenberg",
    "See",
)
EDUCATION_LEVELS = ("none", "school", "apprenticeship", "college", "university")
WORK_KINDS = ("child", "student", "employed", "self-employed", "looking", "at home", "retired")
HOUSEHOLD_KINDS = ("alone", "couple", "family", "single parent", "shared", "institution")
COMMUTE_KINDS = ("none", "on foot", "bicycle", "bus", "train", "car")
LANGUAGE_NAMES = ("German", "French", "Italian", "English", "Portuguese", "Albanian", "Turkish")
HEALTH_LEVELS = ("very good", "good", "fair", "poor")


def write_town(path: str | Path, people: int = 20_000) -> Path:
    """Write a row for each resident as CSV; the same ones every time, none of them real."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    draw = np.random.default_rng(18)

    def chosen(words: tuple[str, ...], weights: Array) -> Array:
        """A word for each person, by weights of their own."""
        ends = np.cumsum(weights, axis=1)
        indices = (draw.random((people, 1)) * ends[:, -1:] > ends).sum(axis=1)
        result: Array = np.asarray(words)[indices]
        return result

    def ones(length: int) -> Array:
        return np.ones((people, length))

    age = np.clip(draw.gamma(3.2, 13, people), 0, 104).astype(int)
    kind = draw.integers(0, 4, people)  # what people have in common, and the table does not say
    district = chosen(TOWN_DISTRICTS, 1 + 4.0 * (np.arange(8) // 2 == kind[:, None]))
    education = ones(5) * [0.4, 2, 4, 2, 1 + 0.0] + 3.0 * (np.arange(5) - 1 == kind[:, None])
    education[age < 16] = [5, 1, 0, 0, 0]
    education[age < 25] *= [1, 1, 1, 1, 0.1]
    work = ones(7) * [0, 1, 20, 3, 1.5, 3, 0.3]
    work[age < 25] = [0, 6, 5, 0.1, 1, 0.3, 0]
    work[age < 16] = [1, 0, 0, 0, 0, 0, 0]
    work[age >= 65] = [0, 0, 1, 1, 0, 0.5, 30]
    work = chosen(WORK_KINDS, work)
    household = ones(6) * [4, 5, 5, 1, 1 + 0.0, 0.1] + 2.0 * (kind == 2)[:, None] * np.eye(6)[4]
    household[age < 18] = [0, 0, 8, 2, 0.1, 0.1]
    household[age > 80] = [5, 4, 0.5, 0, 0, 4]
    commute = ones(6) * [0.5, 1, 2, 3, 2, 4] + 3.0 * (np.arange(6) - 2 == kind[:, None])
    commute[~np.isin(work, ("student", "employed", "self-employed"))] = [1, 0, 0, 0, 0, 0]
    health = ones(4) * [5, 5, 1.5, 0.5] + (age / 25)[:, None] * [0, 0.5, 1, 0.5]
    income = np.where(age < 16, 0, draw.gamma(2.5, 14_000 + 6_000 * kind)).astype(int)
    table = pa.table(
        {
            "person": np.char.add("R", np.arange(people).astype(str)),
            "sex": chosen(("f", "m"), ones(2)),
            "age": age,
            "district": district,
            "education": chosen(EDUCATION_LEVELS, education),
            "work": work,
            "household": chosen(HOUSEHOLD_KINDS, household),
            "income": income,
            "commute": chosen(COMMUTE_KINDS, commute),
            "language": chosen(LANGUAGE_NAMES, ones(7) * [20, 3, 3, 2, 1.5, 1.5, 1]),
            "health": chosen(HEALTH_LEVELS, health),
            "smokes": chosen(("yes", "no"), 1 + 2.0 * (np.arange(2) == 1) * (kind > 0)[:, None]),
            "votes": chosen(("yes", "no"), 1 + (age / 40)[:, None] * [1, 0]),
        }
    )
    path = Path(path)
    with create_file(path, binary=True) as file:
        csv.write_csv(table, file)
    return path
