"""Every reader of files takes whatever it is given: an object, or one sentence.

A reader may refuse (`WhosinError`) or say that a file cannot be had (`OSError`). Anything else, a
reader that takes long, a message of several lines, or one that quotes a private cell, fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from amounts import some
from file_readers import (
    BLOCKS,
    CHAIN,
    CHANNEL,
    FIRST,
    LARGEST,
    READERS,
    RECORDS,
    SECRET,
    Peak,
    Tally,
    attack,
    check,
    deadline,
)
from mutants import mutants
from whosin.app.cli.main import main
from whosin.errors import WhosinError

VERIFIED = 10_000
"""Files that the soak gives to the command itself."""


@pytest.mark.parametrize("name", READERS)
def test_readers_read_their_own_files(name, tmp_path):
    reader = READERS[name]
    for other, data in reader.others.items():
        (tmp_path / other).write_bytes(data)
    for seed in reader.seeds:
        path = tmp_path / reader.name
        path.write_bytes(seed)
        assert check(reader.read, path, name)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused_in_one_sentence(name, tmp_path):
    tally = attack(name, tmp_path, 80)
    tally.require_sound()
    assert tally.refused > 12, f"{tally.read} were read: the damage does no harm"
    assert tally.read, "none was read: the damage is all alike"


def test_an_attack_tells_what_a_reader_may_not_do(tmp_path):
    def read(path: Path) -> object:
        data = path.read_bytes()
        raise ValueError if data == b"a" else WhosinError(data.decode())

    path, tally = tmp_path / "file", Tally()
    for data in (b"a", b"two\nlines", b"one sentence", f"{SECRET} is wrong".encode(), b""):
        path.write_bytes(data)
        tally.take(read, path, repr(data))
    assert (tally.read, tally.refused, len(tally.faults)) == (0, 1, 2)
    with pytest.raises(AssertionError, match="2 faults"):
        tally.require_sound()


def verified(path: Path) -> object:
    """What `whosin verify` does with a file, to the end."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(["verify", str(path), "--json", "--at-most", "2"])
    assert code in (0, 1, 2, 4), err.getvalue()
    if code == 2:
        raise WhosinError(err.getvalue().strip())
    return json.loads(out.getvalue())


def attack_verify(folder: Path, count: int, start: int = 0) -> Tally:
    path, tally = folder / "file.json", Tally()
    for place, seed in enumerate((CHANNEL, RECORDS, CHAIN, BLOCKS)):
        for number, data in enumerate(
            mutants(json.dumps(seed).encode(), "json", count // 4, start)
        ):
            path.write_bytes(data)
            tally.take(verified, path, f"verify {place}, mutant {number} of {start}")
    return tally


def test_verify_takes_whatever_a_file_holds(tmp_path):
    attack_verify(tmp_path, 16).require_sound()


NUMBER = re.compile(rb'"[0-9./]+"|[0-9]+(\.[0-9]+)?(e-?[0-9]+)?')
TOKEN = re.compile(rb'"[^"]*"|[0-9][0-9.e-]*')
DOCUMENTS = ("channel", "chain", "blocks", "prior", "plan", "scenario")
LONG = "9" * 310


def with_one_number_as(text: str, seed: bytes) -> Iterator[bytes]:
    for found in TOKEN.finditer(seed):
        if NUMBER.fullmatch(found.group()):
            yield seed[: found.start()] + text.encode() + seed[found.end() :]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_whole_numbers_that_no_float_holds_are_refused(name, tmp_path):
    """Wherever they stand: as numbers they would overflow somewhere further in."""
    reader = READERS[name]
    path, tried = tmp_path / reader.name, 0
    for seed in reader.seeds:
        for data in with_one_number_as(LONG, seed):
            path.write_bytes(data)
            with pytest.raises(WhosinError, match="300 digits"):
                reader.read(path)
            tried += 1
    assert tried >= 5


@pytest.mark.parametrize("text", [LONG, '"1e400"', f'"{LONG}"'], ids=["long", "power", "text"])
def test_verify_refuses_numbers_that_no_float_holds(text, tmp_path):
    """To the end, where they would be measured."""
    path, tally = tmp_path / "file.json", Tally()
    for seed in (CHANNEL, CHAIN, BLOCKS):
        *_, last = with_one_number_as(text, json.dumps(seed).encode())
        path.write_bytes(last)
        tally.take(verified, path, f"verify {text[:9]}")
    tally.require_sound()
    assert tally.refused == 3


@pytest.mark.parametrize("count", some([300, 1000], 1))
def test_a_chain_file_with_hundreds_of_scales_is_out_of_reach(count, tmp_path):
    """So many releases have more outputs together than a float can count."""
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(CHAIN | {"scale": [1] * count}), encoding="utf-8")
    with pytest.raises(WhosinError, match=r"8 rows that depend .* take too long"), deadline():
        verified(path)


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
        "distortion --rows 18446744073709551616 --values 2 --epsilon 1",
    ],
)
def test_numbers_beyond_all_measure_are_answered_at_once(line, capfd):
    with deadline():
        code = main(line.split())
    out, err = capfd.readouterr()
    assert code in (0, 2), err
    assert "internal" not in err and len(out) < 10_000


def test_the_soak_has_a_million_files():
    assert sum(reader.soak for reader in READERS.values()) >= 10**6  # VCF files not counted


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
def test_a_million_damaged_files(name, tmp_path, capsys):
    with Peak() as peak:
        tally = attack(name, tmp_path, READERS[name].soak, FIRST)
    with capsys.disabled():
        print(f"\n{name}: {tally.read:,} read, {tally.refused:,} refused, {peak.bytes >> 20} MB")
    tally.require_sound()
    assert tally.read + tally.refused == READERS[name].soak and peak.bytes < LARGEST


@pytest.mark.soak
def test_the_command_takes_ten_thousand_damaged_files(tmp_path, capsys):
    tally = attack_verify(tmp_path, VERIFIED, FIRST)
    with capsys.disabled():
        print(f"\nwhosin verify: {tally.read:,} measured, {tally.refused:,} refused")
    tally.require_sound()
    assert tally.read + tally.refused == VERIFIED
