"""`make scoreboard`: audit every case of `cases`, each in its environment, and write the page.

Contract: `docs/scoreboard.md` is made from `.bench/scoreboard.json`, and that from measurements; no
figure on the page is typed in. A library that could not be installed is left out and named.
"""

from __future__ import annotations

import json
import math
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "benchmarks")]

from cases import BUG, CASES, LIBRARY, MECHANISM, Case  # noqa: E402

from measuring import HOME, installed  # noqa: E402

RESULTS, PAGE = HOME / "scoreboard.json", ROOT / "docs" / "scoreboard.md"
HEADINGS = {
    MECHANISM: "Mechanisms whose truth is known",
    BUG: "Known bugs",
    LIBRARY: "Libraries",
}
INTRODUCTION = """# Scoreboard of audits

Each line is one audit by `whosin.audit.two_worlds` of a pair of neighbouring inputs, at 95%
confidence, and at 99% for libraries: what is claimed, what is true where that is known, the bound
that was shown, from how many draws of each input and in how many seconds. A bound is about the pair
that was tried, and each confidence about its own line. A bound below the claim refutes nothing and
proves nothing: other inputs, events or more draws may show more. Made by `make scoreboard` from
what it measured ({machine}).
"""


def measure(case: Case) -> dict[str, Any] | None:
    """What one case shows, in its own environment; None where that cannot be had."""
    python: Path | None = Path(sys.executable)
    if case.packages:
        python = installed(case.environment, [*case.packages, "-e", f"{ROOT}[audit]"])
    if python is None:
        return None
    script = str(Path(__file__).parent / "measure.py")
    run = subprocess.run([str(python), script, case.name], capture_output=True)
    if run.returncode:
        print(f"scoreboard: {case.name}: {run.stderr.decode().splitlines()[-1]}", file=sys.stderr)
        return None
    answer: dict[str, Any] = json.loads(run.stdout.decode().splitlines()[-1])
    return answer


def measure_all() -> dict[str, Any]:
    """All cases, one after the other, kept in `.bench`."""
    rows = []
    for case in CASES:
        row = measure(case)
        if row is not None:
            rows.append(row)
            shown = f"{case.name}: {row['bound']:.4f} in {row['seconds']:.1f} s"
            print(shown, file=sys.stderr)
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    results = {"machine": machine, "rows": rows}
    HOME.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2), encoding="utf-8")
    return results


def _number(value: float | None) -> str:
    return "not known" if value is None else "∞" if value == math.inf else f"{value:.4g}"


def _line(case: Case, row: dict[str, Any]) -> str:
    cells = (
        case.name,
        _number(row["claim"]) + (f" (δ = {row['delta']:g})" if row["delta"] else ""),
        _number(case.truth),
        f"{math.floor(row['bound'] * 10_000) / 10_000:.4f}",
        "refuted" if row["refuted"] else "not refuted",
        f"{row['draws']:,}",
        f"{row['seconds']:.1f}",
        case.about + (" (time counts as output)" if row["timing"] else ""),
    )
    return "| " + " | ".join(cells) + " |"


def page(results: dict[str, Any]) -> Iterator[str]:
    """The page, line by line."""
    rows = {row["name"]: row for row in results["rows"]}
    yield INTRODUCTION.format(machine=results["machine"])
    for group, heading in HEADINGS.items():
        yield f"## {heading}\n"
        yield "| | claimed ε | true ε | bound | the claim is | draws | seconds | what is known |"
        yield "|---|---|---|---|---|---|---|---|"
        cases = [case for case in CASES if case.group == group]
        yield from (_line(case, rows[case.name]) for case in cases if case.name in rows)
        yield ""
        missing = [case.name for case in cases if case.name not in rows]
        if missing:
            yield f"Not measured here: {', '.join(missing)}.\n"


def main(words: list[str]) -> int:
    """Measure, unless the page alone is asked for; write the page."""
    results = json.loads(RESULTS.read_text("utf-8")) if "page" in words else measure_all()
    PAGE.write_text("\n".join(page(results)).rstrip() + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
