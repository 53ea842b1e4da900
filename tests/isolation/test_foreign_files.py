"""Damaged Arrow and VCF files: one sentence, never a crash of this process."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import whosin as wi
from amounts import cases
from file_readers import FIRST
from isolation_tasks import crash
from refusals import refused
from web_server import program, served
from whosin import binary_readers
from whosin.app.web.server import running
from whosin.errors import Crashed, InvalidInput, OutOfMemory
from whosin.gwas import study
from whosin.gwas.study import count_vcf
from whosin.isolation import TaskLimits, WorkerPool
from whosin.release import DuckDB

pytestmark = pytest.mark.usefixtures("own_processes")
LIMITS = TaskLimits(300, 1 << 30)
PEOPLE = 24
DAMAGED_VCF = 10_000


def arrow(path: Path) -> bytes:
    """A file with columns of all kinds."""
    table = pa.table(
        {
            "patient": [f"p{number}" for number in range(40)],
            "age": pa.array([None if n % 7 == 0 else n for n in range(40)], pa.int32()),
            "ward": pa.array(["a", "b"] * 20).dictionary_encode(),
            "days": [[1.5] * (n % 3) for n in range(40)],
            "big": pa.array(["x" * (n % 5) for n in range(40)], pa.large_string()),
        }
    )
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=16)
    return path.read_bytes()


def vcf() -> bytes:
    names = "\t".join(f"P{number}" for number in range(PEOPLE))
    lines = [
        "##fileformat=VCFv4.2",
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        "##contig=<ID=1,length=1000>",
        f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{names}",
    ]
    for place in range(1, 9):
        calls = "\t".join(("0/0", "0/1", "1/1", "./.")[(place * n) % 4] for n in range(PEOPLE))
        others = "C" if place % 4 else "C,G"
        lines.append(f"1\t{place * 10}\trs{place}\tA\t{others}\t.\t.\t.\tGT\t{calls}")
    return ("\n".join(lines) + "\n").encode()


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, a piece cut out, doubled, or a number made huge."""
    kind, found = chance.randrange(4), bytearray(data)
    place = chance.randrange(len(found))
    if kind == 0:
        for _ in range(chance.randrange(1, 5)):
            found[chance.randrange(len(found))] = chance.randrange(256)
    elif kind == 1:
        del found[place : place + chance.randrange(1, 64)]
    elif kind == 2:
        found[place:place] = found[place : place + chance.randrange(1, 64)]
    else:
        found[place : place + 8] = chance.choice([b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\0" * 8])
    return bytes(found)


def scan(path: str) -> int:
    """Everything that a query could touch."""
    with DuckDB() as engine:
        table = engine.open(path)
        found = engine.run(table.aggregate(people=table[0].nunique(), rows=table.count()))
        engine.run(table.limit(1000))
        return int(found["rows"][0].as_py())


def scan_unchecked(path: str) -> int:
    """As before files were checked."""
    from whosin.release.engines import duckdb

    duckdb.require_sound = lambda files: None  # type: ignore[attr-defined]
    return scan(path)


@pytest.fixture(scope="module")
def worker_pool():
    found = WorkerPool(["pyarrow.dataset", "ibis.backends.duckdb"])
    yield found
    found.close()


def _survivors(worker_pool: WorkerPool, folder: Path, count: int) -> dict[str, int]:
    """How mutants end: refused by the check, crashing it, or scanned after it."""
    whole, chance = arrow(folder / "whole.arrow"), random.Random(7)
    ends = {"refused": 0, "crashed the check": 0, "scanned": 0}
    for _ in range(count):
        path = folder / "mutant.arrow"
        path.write_bytes(mutated(whole, chance))
        try:
            worker_pool.run(binary_readers.check_arrow, str(path), limits=LIMITS)
        except InvalidInput:
            ends["refused"] += 1
            continue
        except Crashed:
            ends["crashed the check"] += 1
            continue
        try:
            worker_pool.run(scan_unchecked, str(path), limits=LIMITS)
        except Crashed as error:
            if "internal error" not in str(error):  # an error of the engine is none
                pytest.fail(f"a scan crashed: {path.read_bytes().hex()}")
        except InvalidInput:
            pass
        ends["scanned"] += 1
    return ends


@cases(12, 2000)
def test_what_passes_the_check_does_not_crash_a_scan(worker_pool, tmp_path, count):
    ends = _survivors(worker_pool, tmp_path, count)
    assert ends["refused"] > 1 and ends["scanned"] and sum(ends.values()) == count


def far_offsets(whole: bytes) -> bytes:
    """Offsets of a text column that point far behind its letters: a reader follows them."""
    right, wrong = (
        b"".join(n.to_bytes(4, "little") for n in (0, 2, third, 6)) for third in (4, 2_000_000_000)
    )
    assert right in whole
    return whole.replace(right, wrong, 1)


def test_a_table_of_a_damaged_file_is_refused(tmp_path):
    whole = arrow(tmp_path / "whole.arrow")
    assert set(wi.Table(tmp_path / "whole.arrow", "patient").columns) >= {"patient", "age"}
    damaged = tmp_path / "damaged.arrow"
    damaged.write_bytes(far_offsets(whole))
    for source in (damaged, str(damaged)):
        with refused("table"):
            wi.Table(source, "patient")


def test_a_text_that_is_not_utf8_is_no_damage(tmp_path):
    """Whether rows hold one must not show."""
    letters = pa.array([b"ok", b"\xff\xfe"]).view(pa.string())
    table = pa.table({"patient": pa.array(["a", "b"]), "note": letters})
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    assert wi.Table(tmp_path / "t.arrow", "patient").columns == ("patient", "note")


def test_a_damaged_upload_is_not_kept(tmp_path, worker_pool):
    settings = served(tmp_path / "data", 50)
    whole = arrow(tmp_path / "whole.arrow")
    with running(settings) as url, program(url) as client:
        for name, content, status in (
            ("whole.arrow", whole, 201),
            ("damaged.arrow", far_offsets(whole), 422),
            ("cut.arrow", whole[: len(whole) // 2], 422),
        ):
            answer = client.post("/api/files", params={"name": name}, content=content)
            assert answer.status_code == status, answer.text
        assert client.get("/api/columns", params={"file": "whole.arrow"}).status_code == 200
    assert sorted(path.name for path in settings.folder.glob("*.arrow")) == ["whole.arrow"]


def _phenotypes(folder: Path) -> Path:
    lines = [f"P{number} P{number} {1 + number % 2}" for number in range(PEOPLE)]
    file = folder / "study.pheno"
    file.write_text("\n".join(lines) + "\n")
    return file


def _mutants_of_vcf(folder: Path, count: int) -> None:
    people, chance, whole = _phenotypes(folder), random.Random(3), vcf()
    for _ in range(count):
        path = folder / "mutant.vcf"
        path.write_bytes(mutated(whole, chance))
        said = ""
        try:
            count_vcf(path, people)
        except InvalidInput as error:
            said = str(error)
        assert "P1" not in said


def test_damaged_vcf_files(tmp_path, capfd):
    """One sentence each, and nothing of the library on our streams."""
    file = tmp_path / "whole.vcf"
    file.write_bytes(vcf())
    snps, counts, groups, left_out = count_vcf(file, _phenotypes(tmp_path))
    assert (len(snps), counts.shape, left_out) == (6, (6, 9), 2)
    assert groups.cases.sum() + groups.controls.sum() == PEOPLE
    _mutants_of_vcf(tmp_path, 2)
    assert "".join(capfd.readouterr()) == ""


def test_a_crash_of_a_reader_is_one_sentence(tmp_path, monkeypatch):
    file = tmp_path / "whole.vcf"
    file.write_bytes(vcf())
    monkeypatch.setattr(binary_readers, "vcf_counts", crash)
    with refused("study"):
        count_vcf(file, _phenotypes(tmp_path))
    arrow(tmp_path / "whole.arrow")
    monkeypatch.setattr(binary_readers, "check_arrow", crash)
    with refused("table"):
        wi.Table(tmp_path / "whole.arrow", "patient")


def inline(function, *arguments, limits):
    return function(*arguments)


def read_damaged_vcf(folder: str, seed: int, first: int, end: int) -> tuple[int, int]:
    """(read, refused) of damaged files, all in this process, which may crash: `number` says at
    which one it is."""
    home, whole, ends = Path(folder), vcf(), [0, 0]
    study.isolation = SimpleNamespace(run=inline)  # type: ignore[assignment,attr-defined]
    people = home / "study.pheno"
    for number in range(first, end):
        (home / "number").write_text(str(number))
        (home / "mutant.vcf").write_bytes(mutated(whole, random.Random(f"{seed} {number}")))
        try:
            count_vcf(home / "mutant.vcf", people)
            ends[0] += 1
        except InvalidInput as error:
            if "P1" in str(error) or "\n" in str(error):
                raise ValueError from None
            ends[1] += 1
    return ends[0], ends[1]


def _many_of_vcf(worker_pool: WorkerPool, folder: Path, count: int) -> Counter[str]:
    """How damaged files end, many of them in one process."""
    _phenotypes(folder)
    ends, done = Counter[str](), 0
    while done < count:
        end = min(count, done + 500)
        try:
            read, refused = worker_pool.run(
                read_damaged_vcf, str(folder), FIRST, done, end, limits=TaskLimits(600, 2 << 30)
            )
            ends += Counter(read=read, refused=refused)
            done = end
        except (Crashed, OutOfMemory) as error:
            number = int((folder / "number").read_text())
            if hasattr(error, "unexpected"):
                pytest.fail(f"mutant {number} of {FIRST}: {error}")
            ends += Counter({"before a crash": number - done, "crashed": 1})
            done = number + 1
    return ends


@pytest.mark.soak
def test_ten_thousand_damaged_vcf_files(worker_pool, tmp_path, capsys):
    ends = _many_of_vcf(worker_pool, tmp_path, DAMAGED_VCF)
    with capsys.disabled():
        print(f"\nVCF: {dict(ends)}")
    assert ends.total() == DAMAGED_VCF and ends["refused"] > 500 and ends["read"] > 500
    _mutants_of_vcf(tmp_path, 100)
