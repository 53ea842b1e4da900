"""How much memory work may take: what is available, within the limits of control groups."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from whosin.errors import TooLarge
from whosin.spaces import arrays

GIB = 1 << 30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 1 GiB free, and 10 GiB more in caches."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/team/job\n")
    (tmp_path / "groups/team/job").mkdir(parents=True)
    free = SimpleNamespace(free=GIB, available=11 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    monkeypatch.setattr(arrays, "CGROUP_MEMBERSHIPS", tmp_path / "proc/self/cgroup")
    monkeypatch.setattr(arrays, "CGROUP_FOLDER", tmp_path / "groups")
    return tmp_path


def limit(folder: Path, most: object, used: int, cache: int, version: int = 2) -> None:
    names = {2: ("memory.max", "memory.current", "inactive_file")}.get(
        version, ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{most}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {cache}\nfile 7\n")


def test_caches_can_be_had(machine: Path) -> None:
    assert arrays.available_memory() == 11 * GIB * 4 // 5


def test_the_narrowest_group_decides(machine: Path) -> None:
    limit(machine / "groups/team/job", "max", GIB, 0)
    assert arrays.available_memory() == 11 * GIB * 4 // 5
    limit(machine / "groups/team", 4 * GIB, 3 * GIB, GIB)
    assert arrays.available_memory() == 2 * GIB * 4 // 5
    limit(machine / "groups/team/job", 3 * GIB, 2 * GIB, 0)
    assert arrays.available_memory() == GIB * 4 // 5


def test_version_1(machine: Path) -> None:
    (machine / "proc/self/cgroup").write_text("4:cpu,memory:/job\n2:pids:/\n")
    limit(machine / "groups/memory/job", 5 * GIB, 4 * GIB, GIB, version=1)
    assert arrays.available_memory() == 2 * GIB * 4 // 5


def test_without_any_of_it_the_system_is_asked(machine: Path) -> None:
    (machine / "proc/self/cgroup").unlink()
    assert arrays.available_memory() == 11 * GIB * 4 // 5
    limit(machine / "groups/team/job", "nonsense", 0, 0)
    assert arrays.available_memory() == 11 * GIB * 4 // 5


def test_small_work_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """256 MiB are free on any machine: no file of the system is read for less."""
    asked: list[int] = []

    def available() -> int:
        asked.append(1)
        return GIB

    monkeypatch.setattr(arrays, "available_memory", available)
    arrays.require_memory("a table", 256 << 20)
    arrays.require_table("a table", 1 << 20, 32)
    assert not asked
    arrays.require_memory("a table", GIB)
    with pytest.raises(TooLarge, match="1073741824 fit"):
        arrays.require_memory("a table", GIB + 1, lambda limit: f"{limit} fit")
    with pytest.raises(TooLarge, match="with 2 outputs 26 entities fit"):
        arrays.require_table("a table", 1 << 27, 2)
    with pytest.raises(TooLarge, match="with 1 outputs 17 rows of 3 values fit"):
        arrays.require_table("a table", 3**18, 1, 3)
    assert len(asked) == 4
