"""Public names are imported on first use: each must be found when it is the first to be used."""

from __future__ import annotations

import subprocess
import sys

FIRST_USE = """
import sys
names = "whosin:queries whosin:Table whosin:Session whosin:calibrate whosin.release:queries"
names += " whosin.release:Dates whosin.release:Answer whosin.release.queries:Marginals"
for place in names.split():
    for module in [each for each in sys.modules if each.partition(".")[0] == "whosin"]:
        del sys.modules[module]
    package, _, name = place.partition(":")
    __import__(package)
    getattr(sys.modules[package], name)
print("found")
"""


def test_a_public_name_is_found_when_it_is_used_first() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USE], capture_output=True, text=True, timeout=600
    )
    assert done.stdout == "found\n", done.stderr[-500:]
