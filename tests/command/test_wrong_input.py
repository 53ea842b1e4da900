"""What a newcomer types by mistake: one sentence, the option, the accepted range, what to write."""

from __future__ import annotations

import pytest

MINE = """
def noisy(count, size, rng):
    return (count + rng.laplace(0, 1, size)).round(2)
"""
AUDIT = "audit mine.py:noisy --with 1 --without 0"
WRONG = [
    (
        "plan --posterior 0,6 --prior 0.1",
        "--posterior must be a finite number, not '0,6'; write 0.6",
    ),
    (
        "plan --posterior 0.6 --prior 0,05..0,5",
        "--prior must be a finite number, not '0,05'; write 0.05",
    ),
    ("plan --posterior 0.6 --prior 0.1-0.5", "write the range as 0.1..0.5"),
    ("plan --posterior 0.6 --prior 10%-50%", "write the range as 10%..50%"),
    ("plan --epsilon 1 --delta 10^-6", "--delta must be a finite number, not '10^-6'; write 1e-6"),
    ("plan --epsilon 1 --delta 2*10**-6", "write 2e-6"),
    ("plan --posterior half --prior 0.1", "not 'half'; write 0.5, 1/2, 50% or 1e-6"),
    ("plan --epsilon inf", "--epsilon must be a finite number, not 'inf'\n"),
    ("plan --epsilon 1 --steps 0", "--steps must be a whole number of at least 1, not 0"),
    (
        "plan --tpr 0.1",
        "--fpr is missing; with tpr, say the share of other people that this test may accuse",
    ),
    (
        "plan --profile 0.1",
        '--profile must be priors with their largest posteriors, such as "0.1:0.3, 0.5:0.6"',
    ),
    ("explain --epsilon 0", "--epsilon must be above 0"),
    ("explain --epsilon 1 --prior 2", "--prior must be a range inside 0..1"),
    (
        "verify",
        "what to verify must be a channel file (.json) or --mechanism, one of the two, not neither",
    ),
    (
        "verify --mechanism geometric --entities 2",
        "give scale or alpha",
    ),
    (
        "tradeoff",
        "what to find must be exactly one of --epsilon, --distortion, --curve, not none of them",
    ),
    ("tradeoff --epsilon 1 --curve --rows 2", "not --epsilon and --curve"),
    ("tradeoff --rows 0 --epsilon 1", "--rows must be a whole number of at least 1"),
    ("tradeoff --rows 2 --epsilon 1,5", "--epsilon must be a finite number, not '1,5'; write 1.5"),
    ("gwas experiment --people 0", "--people must be a whole number of at least 20, not 0"),
    (f"{AUDIT} --samples 0", "--samples must be a whole number of at least 40, such as"),
    (f"{AUDIT} --samples -5", "--samples must be a whole number of at least 40, such as"),
    (f"{AUDIT} --samples 10", "--samples must be a whole number of at least 40, such as"),
    (f"{AUDIT} --samples 1000,5", "--samples must be a finite number, not '1000,5'; write 1000.5"),
    (f"{AUDIT} --samples 50.5", "--samples must be a whole number of at least 40"),
    (f"{AUDIT} --confidence 95", "--confidence must be at least 0.5 and below 1, not 95"),
    ("audit mine.py:noisy --queries 0", "--queries must be a whole number of at least 1, not 0"),
    (
        "audit mine.py:noisy --queries 2 --relation swap",
        "--relation must be one of add-remove, replace",
    ),
    ("audit --drawn-with a.csv", "--drawn-without must be given with --drawn-with, not nothing"),
    ("audit --drawn-without a.csv", "--drawn-with must be given with --drawn-without, not nothing"),
    (
        "check table p.csv --population p.csv --prior 0.1 --rule suppress=x",
        "needs a whole number",
    ),
    (
        "check table p.csv --population p.csv --prior 0.1 --rule supress=5",
        "'supress=5' is not a rule; did you mean 'suppress'?",
    ),
    ("verify p.csv", "p.csv is not JSON"),
    ("verify key.json", "not 'spaces'; did you mean 'space'?"),
    ("release key.json", "a target and questions, not key.json, a JSON file"),
    ("sql key.json SELECT", "a target and questions, not key.json, a JSON file"),
    ("plan --chain p.csv --epsilon 1", "p.csv is not JSON"),
]
KEY = (
    '{"spaces": {"kind": "subsets", "entities": 1}, "outputs": ["l"], "probabilities": [[1], [1]]}'
)


@pytest.mark.parametrize(("line", "words"), WRONG)
def test_wrong_input_is_said_truly(run, tmp_path, monkeypatch, line, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "p.csv").write_text("ward,a,b\nA,30,40\n", encoding="utf-8")
    (tmp_path / "key.json").write_text(KEY, encoding="utf-8")
    code, out, err = run(line)
    assert (code, out) == (2, "") and words in err
    assert err.startswith("whosin: ") and err.count("\n") == 1


@pytest.mark.parametrize("samples", ["1,000", "1_000", "1e3", "1000"])
def test_numbers_of_samples_may_have_separators(run, tmp_path, monkeypatch, samples):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    code, out, _err = run(f"{AUDIT} --seed 1 --samples {samples}")
    assert code == 0 and "1,000 of each world" in out


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
    ("part", "wrong", "words"),
    [
        ('"ward"', '"Ward"', "must be a column of the table, spelled as in its header, not 'Ward'"),
        ("a =", "c =", "must be a column of the table, spelled as in its header, not 'c'"),
        ('privacy_unit = "ward"', "", "table.privacy_unit must be given as a text, not nothing"),
        ('"0.05..0.5"', "0.05..0.5", 'put a range in quotes, as in "0.05..0.5"'),
        ('"0..50"', "0..50", 'put a range in quotes, as in "0.05..0.5"'),
        (
            '"0..50"',
            "[1, 2",
            "x.toml is not a TOML file: Unclosed array (at line",
        ),
        ('"0..50"', "{ edges = [17] }", "edges must be at least two numbers"),
        ('"0..50"', "{ edges = [] }", "edges must be at least two numbers"),
        ("[[queries]]", "[queries]", "in double brackets, [[queries]], once for each question"),
        ('kind = "count"', 'name = "n"', "top, variance, not nothing"),
        ('"count"\n', '"count"\nwhere = "ward = \\"A\\""', "or a text in single quotes, not 'A'"),
        ("p.csv", "empty", ".csv.gz or .arrow files, all of one format, not empty, which holds no"),
        ("p.csv", "empty.csv", "empty.csv: a folder that holds no csv file"),
        ("p.csv", "z*.csv", "z*.csv: no file matches this pattern"),
        ("p.csv", "p.xyz", "a .parquet, .csv, .csv.gz or .arrow file, or database::table"),
    ],
)
def test_slips_in_a_scenario_are_said_truly(run, tmp_path, part, wrong, words):
    (tmp_path / "p.csv").write_text("ward,a,b\nA,30,40\n", encoding="utf-8")
    for name in ("empty", "empty.csv"):
        (tmp_path / name).mkdir()
    assert part in SCENARIO
    (tmp_path / "x.toml").write_text(SCENARIO.replace(part, wrong), encoding="utf-8")
    code, out, err = run("release", tmp_path / "x.toml", "--dry-run")
    assert (code, out) == (2, "") and words in err, err
    assert err.startswith("whosin: ") and err.count("\n") == 1
