"""A generated town: made-up residents with a dozen attributes that go together, for the docs."""

from __future__ import annotations

from pathlib import Path

from whosin.exact import Array

DISTRICTS = ("Altstadt", "Bahnhof", "Dorf", "Hafen", "Hochschule", "Industrie", "Rosenberg", "See")
EDUCATION = ("none", "school", "apprenticeship", "college", "university")
WORK = ("child", "student", "employed", "self-employed", "looking", "at home", "retired")
HOUSEHOLD = ("alone", "couple", "family", "single parent", "shared", "institution")
COMMUTE = ("none", "on foot", "bicycle", "bus", "train", "car")
LANGUAGES = ("German", "French", "Italian", "English", "Portuguese", "Albanian", "Turkish")
HEALTH = ("very good", "good", "fair", "poor")


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
    district = chosen(DISTRICTS, 1 + 4.0 * (np.arange(8) // 2 == kind[:, None]))
    education = ones(5) * [0.4, 2, 4, 2, 1 + 0.0] + 3.0 * (np.arange(5) - 1 == kind[:, None])
    education[age < 16] = [5, 1, 0, 0, 0]
    education[age < 25] *= [1, 1, 1, 1, 0.1]
    work = ones(7) * [0, 1, 20, 3, 1.5, 3, 0.3]
    work[age < 25] = [0, 6, 5, 0.1, 1, 0.3, 0]
    work[age < 16] = [1, 0, 0, 0, 0, 0, 0]
    work[age >= 65] = [0, 0, 1, 1, 0, 0.5, 30]
    work = chosen(WORK, work)
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
            "education": chosen(EDUCATION, education),
            "work": work,
            "household": chosen(HOUSEHOLD, household),
            "income": income,
            "commute": chosen(COMMUTE, commute),
            "language": chosen(LANGUAGES, ones(7) * [20, 3, 3, 2, 1.5, 1.5, 1]),
            "health": chosen(HEALTH, health),
            "smokes": chosen(("yes", "no"), 1 + 2.0 * (np.arange(2) == 1) * (kind > 0)[:, None]),
            "votes": chosen(("yes", "no"), 1 + (age / 40)[:, None] * [1, 0]),
        }
    )
    path = Path(path)
    csv.write_csv(table, path)
    return path
