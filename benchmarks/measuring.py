"""Timing our code and other tools'."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).parent.parent / ".bench"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    seconds: float
    goal: str
    met: bool
    peer: str | None = None
    peer_seconds: float | None = None
    recorded: bool = False
    memory: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        return None if self.peer_seconds is None else self.peer_seconds / self.seconds

    @property
    def peer_text(self) -> str:
        if self.peer is None or self.peer_seconds is None:
            return "nobody"
        return f"{self.peer} {self.peer_seconds:.3g} {self.unit}".rstrip() + (
            " (recorded)" if self.recorded else ""
        )


def best_of(work: Callable[[], object], repeats: int, each: int = 1) -> float:
    """Seconds for one call: the best of `repeats` runs of `each` calls, after a warm-up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(each):
            work()
        times.append((time.perf_counter() - start) / each)
    return min(times)


def processor_of(work: Callable[[], object], repeats: int) -> float:
    """Processor seconds for one call, all threads together: the least of `repeats`.

    They say the same on a busy machine, so that a ratio of two of them is one of the work.
    """
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def installed(name: str, packages: list[str]) -> Path | None:
    """The Python of an environment of its own under `.bench`; None if it cannot be made."""
    place = HOME / name
    python = place / "bin" / "python"
    try:
        if not (place / ".installed").exists():
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
            install = [str(python), "-m", "pip", "install", "--quiet", *packages]
            subprocess.run(install, check=True, capture_output=True)
            (place / ".installed").touch()
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"bench: {name} could not be installed ({error})", file=sys.stderr)
        return None
    return python


def peer(name: str, packages: list[str], script: str) -> dict[str, float] | None:
    """Run a script in the peer's own environment; it prints one JSON object. None if it cannot."""
    python = installed(name, packages)
    if python is None:
        return None
    try:
        run = subprocess.run([str(python), "-c", script], check=True, capture_output=True)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"bench: {name} could not be run ({error})", file=sys.stderr)
        return None
    answer: dict[str, float] = json.loads(run.stdout.decode().splitlines()[-1])
    return answer


def alone(script: str) -> dict[str, float]:
    """Run a script of ours in a fresh process, for its peak memory."""
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    answer: dict[str, float] = json.loads(run.stdout.decode().splitlines()[-1])
    return answer
