"""`make bench`: our speed beside that of other tools, measured in one run.

Prints a table and writes `.bench/results.json`. A peer gets an environment of its own under
`.bench/`; one that cannot be installed shows its recorded figure, marked as recorded. Run a part
with `make bench BENCH=engine`.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))

import audit
import chains
import databases
import distortion
import engine
import gwas
import leakage
import ledger
import noise
import planning
import related
import release
import rules
import tables
from measuring import HOME, Row

GROUPS = {
    "engine": engine.rows,
    "leakage": leakage.rows,
    "planning": planning.rows,
    "rules": rules.rows,
    "chains": chains.rows,
    "distortion": distortion.rows,
    "noise": noise.rows,
    "ledger": ledger.rows,
    "audit": audit.rows,
    "gwas": gwas.rows,
    "release": release.rows,
    "databases": databases.rows,
    "related": related.rows,
    "tables": tables.rows,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        print(f"bench: no group {unknown[0]!r}; there are {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names or GROUPS:
        for row in GROUPS[name]():
            rows.append(row)
            beside = f"; {row.peer_text}" if row.peer else ""
            met = "" if row.met else "; NOT MET"
            said = f"{row.work}: {row.seconds:.4g} {row.unit}".rstrip()
            print(f"{said}{beside}{met}", file=sys.stderr)
    table = Table(box=None, pad_edge=False)
    for heading in ("work", "ours", "peer", "ratio", "goal", "met"):
        table.add_column(heading, justify="left" if heading in ("work", "goal") else "right")
    for row in rows:
        table.add_row(
            row.work,
            f"{row.seconds:.4g} {row.unit}".rstrip()
            + (f", {row.memory:.2f} GiB" if row.memory else ""),
            row.peer_text,
            (f"{row.ratio:,.0f}" if row.unit else f"{row.ratio:.3g}") if row.ratio else "",
            row.goal,
            "yes" if row.met else "NO",
        )
    Console(width=150).print(table)
    HOME.mkdir(exist_ok=True)
    results = {
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "rows": [asdict(row) | {"ratio": row.ratio, "met": bool(row.met)} for row in rows],
    }
    (HOME / "results.json").write_text(json.dumps(results, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
