"""What a newcomer types by mistake: one sentence, the option, the accepted range, what to write."""

from __future__ import annotations

import pytest

MINE = """
def noisy(count, size, rng):
    return (count + rng.laplace(0, 1, size)).round(2)
"""
AUDIT = "audit function mine.py:noisy --with 1 --without 0"
WRONG = [
    ("plan --posterior 0.6 --prior 0,05..0,5", "--prior"),
    ("plan --posterior 0.6 --prior 10%-50%", "--prior"),
    ("plan --epsilon 1 --delta 10^-6", "--delta"),
    ("plan --epsilon 1 --delta 2*10**-6", "--delta"),
    ("plan --profile 0.1", "--profile"),
    ("explain --epsilon 1 --prior 2", "--prior"),
    ("explain --epsilon 1e9", "--epsilon"),
    ("verify --mechanism geometric --entities 2", "mechanism"),
    ("distortion --rows 2 --epsilon 1,5", "--epsilon"),
    ("gwas experiment --people 0", "--people"),
    ("rules check p.csv --population p.csv --prior 0.1 --rule suppress=x", "--rule"),
    ("rules check p.csv --population p.csv --prior 0.1 --rule supress=5", "--rule"),
    ("verify p.csv", ""),
    ("verify key.json", ""),
    ("release key.json", ""),
    ("sql key.json SELECT", ""),
    ("plan --chain p.csv --epsilon 1", ""),
    (f"{AUDIT} --samples 0", "--samples"),
    (f"{AUDIT} --samples -5", "--samples"),
    (f"{AUDIT} --samples 10", "--samples"),
    (f"{AUDIT} --samples 1000,5", "--samples"),
    (f"{AUDIT} --samples 50.5", "--samples"),
    (f"{AUDIT} --confidence 95", "--confidence"),
    ("audit function mine.py:noisy --queries 0", "--queries"),
    ("audit function mine.py:noisy --queries 2 --relation swap", "--relation"),
]
KEY = (
    '{"spaces": {"kind": "subsets", "entities": 1}, "outputs": ["l"], "probabilities": [[1], [1]]}'
)


@pytest.mark.parametrize(("line", "place"), WRONG)
def test_wrong_input_names_its_option(refused_at, tmp_path, monkeypatch, line, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "p.csv").write_text("ward,a,b\nA,30,40\n", encoding="utf-8")
    (tmp_path / "key.json").write_text(KEY, encoding="utf-8")
    found = refused_at(line)
    assert found == place or not place


@pytest.mark.parametrize("samples", ["1,000", "1e3"])
def test_numbers_of_samples_may_have_separators(run, tmp_path, monkeypatch, samples):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    code, out, _err = run(f"{AUDIT} --seed 1 --samples {samples}")
    assert code == 0 and "1,000 of each input" in out


@pytest.mark.parametrize("spelled", ["0.6", " 0.6", "60%", "60 %", "3/5", "6e-1", "+0.6", ".6"])
def test_spellings_of_one_number(run, spelled):
    code, out, _err = run("plan", "--posterior", spelled, "--prior", "5%..50%")
    assert code == 0 and "becomes at most 60.0% sure" in out


SCENARIO = """[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[table]
source = "p.csv"
privacy_unit = "ward"
[domains]
a = "0..50"
[[queries]]
kind = "count"
"""


@pytest.mark.parametrize(
    ("part", "wrong", "place"),
    [
        ('"0.05..0.5"', "0.05..0.5", ""),
        ('"0..50"', "0..50", ""),
        ('"0..50"', "[1, 2", ""),
        ('"0..50"', "{ edges = [17] }", "domains.a"),
        ('"0..50"', "{ edges = [] }", "domains.a"),
        ("[[queries]]", "[queries]", ""),
        ('kind = "count"', 'name = "n"', "queries[0]"),
        ('"count"\n', '"count"\nwhere = "ward = \\"A\\""', "queries[0].where"),
        ("p.csv", "empty", "table.source"),
        ("p.csv", "empty.csv", ""),
        ("p.csv", "z*.csv", ""),
        ("p.csv", "p.xyz", "table.source"),
    ],
)
def test_slips_in_a_scenario_name_their_key(refused_at, tmp_path, part, wrong, place):
    (tmp_path / "p.csv").write_text("ward,a,b\nA,30,40\n", encoding="utf-8")
    for name in ("empty", "empty.csv"):
        (tmp_path / name).mkdir()
    assert part in SCENARIO
    (tmp_path / "x.toml").write_text(SCENARIO.replace(part, wrong), encoding="utf-8")
    found = refused_at("release", tmp_path / "x.toml", "--dry-run")
    assert found == place or not place
