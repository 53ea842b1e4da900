"""Audit one case and print what was measured as JSON: `python measure.py NAME`.

Run by `board`, in the environment of the case.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tests" / "helpers")]

from cases import CASES, LIBRARY, Case  # noqa: E402

import whosin as wi  # noqa: E402


def measured(case: Case, seed: int = 1) -> dict[str, object]:
    """The bound of one audit, its draws and its seconds."""
    if case.group == LIBRARY:
        import libraries as made
    else:
        import mechanisms as made  # type: ignore[no-redef]
    mechanism, with_, without, terms = getattr(made, case.made_by)()
    samples, claim = terms.pop("samples", case.draws), terms.pop("claim", case.claim)
    start = time.perf_counter()
    found = wi.audit.two_worlds(
        mechanism, with_, without, samples, case.confidence, seed=seed, **terms
    )
    return {
        "name": case.name,
        "bound": found.epsilon,
        "claim": claim,
        "delta": found.delta,
        "refuted": found.refutes(claim),
        "draws": found.samples,
        "seconds": time.perf_counter() - start,
        "event": str(found.event) if found.epsilon else "",
        "timing": found.timing,
    }


if __name__ == "__main__":
    (chosen,) = [case for case in CASES if case.name == sys.argv[1]]
    print(json.dumps(measured(chosen)))
