"""Every reader of files with files that it reads, and the attack on one: damaged copies by the
thousand, each of which must be read or refused in one sentence."""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import whosin as wi
from mutants import mutants
from whosin.app.cli import audit_subjects
from whosin.app.web.access import read_curators, read_users
from whosin.documents import read_object
from whosin.errors import WhosinError
from whosin.gwas import read_study
from whosin.notions.reading import chain_file, read_measurement
from whosin.priors.table import read_record_prior
from whosin.release.scenario import load_scenario
from whosin.report import card

SECONDS, WALL = 10, 600
"""Of computing, and of the clock on a busy machine."""
LARGEST = 2 << 30
MOST_FAULTS = 20
FIRST = int(os.environ.get("WHOSIN_SOAK_SEED", "1"))
"""Where the soak's seeds begin: another number damages otherwise."""
SECRET = "Zaphod77"
"""Stands in every private cell of the files."""
PEOPLE = 12
CONFIDENCE = Fraction(19, 20)

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
    {"kind": "table", "probabilities": ["1/4", 0.25, 0.5, 0]},
)
TABLE_AND_TARGET = """[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[table]
source = "visits.parquet"
privacy_unit = "patient"
"""
SCENARIOS = (
    """title = "visits"
[adversary]
prior = "0.05..0.5"
size-known = false
[target]
posterior = 0.6
delta = 0.000001
[table]
source = "visits.parquet"
privacy_unit = "patient"
max_rows_per_group = 3
max_groups = 2
engine = "duckdb"
memory = "1GB"
[ledger]
url = "ledger.db"
dataset = "visits"
[[queries]]
kind = "count"
""",
    TABLE_AND_TARGET
    + """[domains]
ward = ["north", "south"]
age = {lower = 0, upper = 120, edges = [0, 18, 120]}
days = [0, 30]
[[queries]]
kind = "count"
by = "ward"
where = "age >= 65 and ward in ('north', 'south')"
""",
    TABLE_AND_TARGET
    + """[budget]
split = "weights"
share = "1/3"
[[queries]]
kind = "mean"
column = "days"
weight = 2
name = "stay"
[[queries]]
kind = "quantile"
column = "age"
quantile = 0.5
""",
)
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
SCORES = (
    "member,score,note\n"
    + "".join(f"{n % 2},{(n * n) % 17 / 4 + n % 2},{SECRET}\n" for n in range(44))
).encode()
RUNS = SCORES.replace(b"member", b"included")
FAM = "".join(f"f{n} {SECRET}{n} 0 0 1 {1 + n % 2}\n" for n in range(PEOPLE)).encode()
BIM = b"1 rs1 0 7 A G\n2 rs2 0 9 C T\n23 rs3 0 11 A C\n"
BED = b"\x6c\x1b\x01" + bytes(range(3 * (PEOPLE // 4)))
PHENOTYPES = "".join(f"f{n} {SECRET}{n} {1 + n % 2}\n" for n in range(PEOPLE)).encode()


@dataclass(frozen=True)
class Reader:
    """A reader, the kind of damage, files that it reads, and how many damaged ones a soak has.

    `others` are files that stand beside it, whole.
    """

    kind: str
    read: Callable[[Path], object]
    seeds: tuple[bytes, ...]
    soak: int
    name: str = "file.json"
    others: dict[str, bytes] = field(default_factory=dict)


def _json(*values: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(value).encode() for value in values)


def _prior(path: Path) -> object:
    """With the number of rows where the file does not say it."""
    try:
        return read_record_prior(read_object(path, "file"))
    except WhosinError as error:
        if getattr(error, "field", None) != "rows":
            raise
    return read_record_prior(read_object(path, "file"), 2, 2)


def _audited(path: Path) -> object:
    flags, values, _people = audit_subjects.read_flags(path, "member")
    found = wi.audit.scores(values[flags], values[~flags], CONFIDENCE)
    return found.to_dict(), found.posterior(0.5)


def _one_run(path: Path) -> object:
    flags, values, people = audit_subjects.read_runs(path)
    return wi.audit.one_run(flags, values, CONFIDENCE, people=people).to_dict()


def _plan(path: Path) -> object:
    plan = wi.calibration.Plan.load(path)
    return card.plan_card(plan), plan.to_dict()


def _study(path: Path) -> object:
    return read_study(path.with_suffix(""))


def _with_phenotypes(path: Path) -> object:
    return read_study(path.with_name("s.bed"), path)


def _chain(path: Path) -> object:
    return chain_file(read_object(path, "file")).mechanism()


def _blocks(path: Path) -> object:
    return read_measurement(read_object(path, "file"))


def _users(path: Path) -> object:
    return read_users(path), read_curators(path)


STUDY = {"s.bed": BED, "s.bim": BIM, "s.fam": FAM}
TOKENS = {"users": {"ann": "0" * 64, SECRET: "1" * 64}, "curators": ["ann"]}
_SCENARIOS = tuple(map(str.encode, SCENARIOS))
READERS = {
    "channel": Reader("json", wi.Channel.load, _json(CHANNEL, RECORDS), 180_000),
    "chain": Reader("json", _chain, _json(CHAIN), 150_000),
    "blocks": Reader("json", _blocks, _json(BLOCKS), 150_000),
    "prior": Reader("json", _prior, _json(*PRIORS), 180_000),
    "plan": Reader("json", _plan, _json(*PLANS), 30_000),
    "scenario": Reader("text", load_scenario, _SCENARIOS, 40_000, "s.toml"),
    "counts": Reader("text", read_study, (TABLE,), 120_000, "counts.tsv"),
    "scores": Reader(
        "text", lambda path: audit_subjects.read_flags(path, "member"), (SCORES,), 40_000, "s.csv"
    ),
    "audited scores": Reader("text", _audited, (SCORES,), 5_000, "scores.csv"),
    "one run": Reader("text", _one_run, (RUNS,), 5_000, "scores.csv"),
    "users": Reader("json", _users, _json(TOKENS), 90_000),
    "bed": Reader("bytes", _study, (BED,), 20_000, "s.bed", STUDY),
    "bim": Reader("text", _study, (BIM,), 15_000, "s.bim", STUDY),
    "fam": Reader("text", _study, (FAM,), 15_000, "s.fam", STUDY),
    "phenotypes": Reader("text", _with_phenotypes, (PHENOTYPES,), 10_000, "people.pheno", STUDY),
}
"""All but those of foreign binary formats (`foreign_files`)."""


class TooSlow(BaseException):
    """A reader computed longer than `SECONDS`."""


TIMERS = ((signal.SIGPROF, signal.ITIMER_PROF, SECONDS), (signal.SIGALRM, signal.ITIMER_REAL, WALL))


def _alarm(*_: object) -> None:
    raise TooSlow


@contextmanager
def deadline() -> Iterator[None]:
    """Raises `TooSlow` where a block computes longer than `SECONDS` or takes longer than `WALL`."""
    before = [signal.signal(number, _alarm) for number, _, _ in TIMERS]
    try:
        for _, timer, seconds in TIMERS:
            signal.setitimer(timer, seconds)
        yield
    finally:
        for (number, timer, _), handler in zip(TIMERS, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


class Fault(AssertionError):
    """What no reader may do; `place` is the same for faults of one cause."""

    place = ""


def check(read: Callable[[Path], object], path: Path, what: str) -> bool:
    """Whether the file was read.

    Raises:
        Fault: neither an object nor one sentence that quotes no private cell.
    """
    try:
        with deadline():
            read(path)
    except (WhosinError, OSError) as error:
        parts = getattr(error, "parts", (error,))  # one sentence each, where there are several
        message = " ".join(map(str, parts))
        if "\n" in message or SECRET in message or not message:
            raise _fault(what, f"said {message[:300]!r}", path, "words") from None
        return False
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        words = f"{type(error).__name__} at {last.filename}:{last.lineno}: {error!s:.200}"
        raise _fault(what, words, path, f"{last.filename}:{last.lineno}") from None
    return True


def _fault(what: str, words: str, path: Path, place: str) -> Fault:
    fault = Fault(f"{what}: {words}\n{path.read_bytes()[:3000]!r}")
    fault.place = place
    return fault


@dataclass
class Tally:
    """How damaged files ended; of faults of one cause the first is kept."""

    read: int = 0
    refused: int = 0
    faults: dict[str, str] = field(default_factory=dict)

    def take(self, read: Callable[[Path], object], path: Path, what: str) -> None:
        """Read one file."""
        try:
            found = check(read, path, what)
        except Fault as fault:
            self.faults.setdefault(fault.place, str(fault))
            return
        self.read, self.refused = self.read + found, self.refused + (not found)

    def require_sound(self) -> None:
        assert not self.faults, "\n".join([f"{len(self.faults)} faults:", *self.faults.values()])


def attack(name: str, folder: Path, count: int, start: int = 0) -> Tally:
    """Read damaged copies of a reader's files."""
    reader, tally = READERS[name], Tally()
    for other, data in reader.others.items():
        (folder / other).write_bytes(data)
    path = folder / reader.name
    for place, seed in enumerate(reader.seeds):
        share = count * (place + 1) // len(reader.seeds) - count * place // len(reader.seeds)
        for number, data in enumerate(mutants(seed, reader.kind, share, start)):
            path.write_bytes(data)
            tally.take(reader.read, path, f"{name} {place}, mutant {number} of {start}")
            if len(tally.faults) >= MOST_FAULTS:
                return tally
    return tally


class Peak:
    """The largest memory that this process had while the block lasted, beyond that at its start;
    0 where the system does not say."""

    bytes = 0

    def __enter__(self) -> Peak:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._before = _status("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = max(0, _status("VmHWM") - self._before)


def _status(key: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024
    except (OSError, StopIteration):
        return 0
