"""Every reader of files takes whatever it is given: an object, or one sentence.

A reader may refuse (`WhosinError`) or say that a file cannot be had (`OSError`). Anything else, a
reader that takes long, a message of several lines, or one that quotes a private cell, fails.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

import whosin as wi
from mutants import mutants
from whosin.app.cli.main import main
from whosin.documents import read_object
from whosin.errors import WhosinError
from whosin.gwas import read_study
from whosin.notions.files import chain_file, measurement
from whosin.priors.files import prior_of
from whosin.release.scenario import load_scenario

SECONDS = 10
SECRET = "Zaphod77"
"""Stands in every private cell of the seeds."""

CHANNEL = {
    "space": {"kind": "subsets", "entities": ["ann", "bob"]},
    "outputs": ["x", "y"],
    "probabilities": [["1/2", "1/2"], [0.25, 0.75], [0.3, 0.7], [1, 0]],
}
RECORDS = {
    "space": {"kind": "records", "rows": 2, "values": 2},
    "probabilities": [[0.5, 0.5], [0.25, 0.75], [0.3, 0.7], [1, 0]],
}
CHAIN = {
    "chain": {"initial": [0.5, 0.5], "transition": [[0.9, 0.1], ["1/5", 0.8]]},
    "rows": 8,
    "query": "sum",
    "scale": 1,
    "weights": [0, 1],
}
BLOCKS = {
    "blocks": [
        {
            "size": 2,
            "copies": 3,
            "sets": [
                {"present": [0, 1], "probability": "1/2"},
                {"present": [], "probability": 0.5},
            ],
        }
    ],
    "query": "count",
    "scale": 2,
}
PRIORS = (
    {"kind": "independent", "p": [[0.1, 0.9], [0.5, 0.5]]},
    {"kind": "uniform"},
    {"kind": "exchangeable", "sizes": [0.25, 0.5, 0.25]},
    {"kind": "markov-chain", "initial": [0.5, 0.5], "transition": [[0.9, 0.1], [0.2, 0.8]]},
    {"kind": "table", "probabilities": ["1/4", 0.25, 0.5]},
)
SCENARIO = """title = "visits"
[adversary]
prior = "0.05..0.5"
size-known = false
[target]
posterior = 0.6
delta = 0.000001
[table]
source = "visits.parquet"
entity = "patient"
rows = 3
groups = 2
engine = "duckdb"
memory = "1GB"
[domains]
ward = ["north", "south"]
age = {low = 0, high = 120, step = 1}
days = {low = 0, high = 30}
[ledger]
url = "ledger.db"
dataset = "visits"
[budget]
split = "weights"
share = "1/3"
[[queries]]
kind = "count"
by = "ward"
where = "age >= 65 and ward in ('north', 'south')"
[[queries]]
kind = "mean"
column = "days"
weight = 2
name = "stay"
[[queries]]
kind = "quantile"
column = "age"
quantile = 0.5
"""


@dataclass(frozen=True)
class Reader:
    """A reader, the kind of damage, and files that it reads."""

    kind: str
    read: Callable[[Path], object]
    seeds: tuple[bytes, ...]
    name: str = "file.json"


def _json(*values: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(value).encode() for value in values)


def _scores(path: Path) -> object:
    from whosin.app.cli.audit import _table

    return _table(path, "member")


def _users(path: Path) -> object:
    from whosin.app.web.users import read_users

    return read_users(path)


DATA = Path(__file__).parent / "data" / "gwas"
PLANS = tuple(
    wi.calibrate(target, family, delta, "count").to_dict()
    for target, family, delta in (
        (wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), 0),
        (wi.Gamma(2), wi.families.FixedSize(), 0),
        (wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), 1e-6),
    )
)
COUNTS = "CASE_0 CASE_1 CASE_2 CONTROL_0 CONTROL_1 CONTROL_2"
TABLE = (
    f"# cases 5 controls 4\nCHR SNP BP A1 A2 {COUNTS}\n"
    "1 rs1 7 A G 1 2 2 1 2 1\n2 rs2 9 C T 5 0 0 4 0 0\n"
).encode()
SCORES = f"member,score,note\n1,0.5,{SECRET}\n0,0.25,{SECRET}\n1,1e3,{SECRET}\n".encode()

READERS = {
    "channel": Reader("json", wi.Channel.load, _json(CHANNEL, RECORDS)),
    "chain": Reader("json", lambda path: chain_file(read_object(path, "file")), _json(CHAIN)),
    "blocks": Reader("json", lambda path: measurement(read_object(path, "file")), _json(BLOCKS)),
    "prior": Reader("json", lambda path: prior_of(read_object(path, "file")), _json(*PRIORS)),
    "plan": Reader("json", wi.calibration.Plan.load, _json(*PLANS)),
    "scenario": Reader("text", load_scenario, (SCENARIO.encode(),), "file.toml"),
    "counts": Reader("text", read_study, (TABLE,), "counts.tsv"),
    "scores": Reader("text", _scores, (SCORES,), "scores.csv"),
    "users": Reader("json", _users, _json({"users": {"ann": "0" * 64, SECRET: "1" * 64}})),
}
STUDY = (".bed", ".bim", ".fam")


class TooSlow(Exception):
    """A reader computed for longer than `SECONDS`."""


def _alarm(*_: object) -> None:
    raise TooSlow


def check(read: Callable[[Path], object], path: Path, what: str) -> bool:
    """Whether the file was read; fails for anything but an object or one sentence."""
    before = signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        read(path)
    except (WhosinError, OSError) as error:
        message = str(error)
        assert "\n" not in message, what
        assert SECRET not in message, what
        return False
    except BaseException as error:
        pytest.fail(f"{what}: {type(error).__name__}: {error!s:.200}\n{path.read_bytes()[:3000]!r}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return True


def attack(name: str, folder: Path, count: int, start: int = 0) -> tuple[int, int]:
    """(read, refused) among damaged copies of a reader's files."""
    reader = READERS[name]
    path = folder / reader.name
    read = 0
    for place, seed in enumerate(reader.seeds):
        share = count // len(reader.seeds)
        for number, data in enumerate(mutants(seed, reader.kind, share, start)):
            path.write_bytes(data)
            read += check(reader.read, path, f"{name} {place}, mutant {number} of {start}")
    return read, count - read


def attack_study(folder: Path, count: int, start: int = 0) -> None:
    """Damage one of the three files of a PLINK study at a time."""
    for suffix in STUDY:
        (folder / f"s{suffix}").write_bytes((DATA / f"small{suffix}").read_bytes())
    for suffix in STUDY:
        path = folder / f"s{suffix}"
        whole = path.read_bytes()
        kind = "bytes" if suffix == ".bed" else "text"
        for number, data in enumerate(mutants(whole[:4000], kind, count // 3, start)):
            path.write_bytes(data + whole[4000:])
            check(
                lambda place: read_study(place.with_suffix("")),
                path,
                f"{suffix}, mutant {number} of {start}",
            )
        path.write_bytes(whole)


@pytest.mark.parametrize("name", READERS)
def test_readers_read_their_own_files(name, tmp_path):
    reader = READERS[name]
    for seed in reader.seeds:
        path = tmp_path / reader.name
        path.write_bytes(seed)
        assert check(reader.read, path, name)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused_in_one_sentence(name, tmp_path):
    read, refused = attack(name, tmp_path, 300)
    assert refused > 50, f"{read} were read: the damage does no harm"


def test_damaged_studies_are_read_or_refused_in_one_sentence(tmp_path):
    attack_study(tmp_path, 150)


def verified(path: Path) -> object:
    """What `whosin verify` does with a file, to the end."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(["verify", str(path), "--json", "--at-most", "2"])
    assert code in (0, 1, 2, 4), err.getvalue()
    if code == 2:
        raise WhosinError(err.getvalue().strip())
    return json.loads(out.getvalue())


def attack_verify(folder: Path, count: int, start: int = 0) -> None:
    path = folder / "file.json"
    for place, seed in enumerate(_json(CHANNEL, RECORDS, CHAIN, BLOCKS)):
        for number, data in enumerate(mutants(seed, "json", count // 4, start)):
            path.write_bytes(data)
            check(verified, path, f"verify {place}, mutant {number} of {start}")


def test_verify_takes_whatever_a_file_holds(tmp_path):
    attack_verify(tmp_path, 80)


@pytest.mark.parametrize(
    "line",
    [
        "plan --rho 0.1 -m 1" + "0" * 400,
        "plan --posterior 0.6 --family cliques=1" + "0" * 400,
        "plan --gamma 2 --linked 1" + "0" * 30,
        "plan --posterior 0.6 --prior 0.1 --epsilon 5e-324",
        "verify --mechanism k-max -k 1000000000000 --entities 1000000000000",
        "verify --mechanism laplace --scale 1 --rows 18446744073709551616 --values 2",
        "verify --mechanism laplace --scale 1e-300 --entities 5",
        "verify --notion di -m 100000000000000000000 --mechanism k-max -k 2 --entities 5",
        "verify --mechanism laplace --scale 1 --entities 5 --family one-of=1" + "0" * 40,
        "explain 1" + "0" * 400,
        "tradeoff --rows 18446744073709551616 --values 2 --epsilon 1",
    ],
)
def test_numbers_beyond_all_measure_are_answered_at_once(line, capfd):
    before = signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        code = main(line.split())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    out, err = capfd.readouterr()
    assert code in (0, 2), err
    assert "internal" not in err and len(out) < 10_000


@pytest.mark.soak
def test_verify_takes_fifty_thousand_damaged_files(tmp_path):
    for start in range(1, 51):
        attack_verify(tmp_path, 1000, start)


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
def test_a_hundred_thousand_damaged_files_of_each_kind(name, tmp_path):
    for start in range(1, 101):
        attack(name, tmp_path, 1000, start)


@pytest.mark.soak
def test_a_hundred_thousand_damaged_studies(tmp_path):
    for start in range(1, 101):
        attack_study(tmp_path, 1000, start)
