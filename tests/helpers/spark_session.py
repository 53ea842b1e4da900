"""One local Spark for all tests; without Java or pyspark they are skipped, but never under CI."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java that answers many small queries and ends soon."""


def require_spark() -> None:
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK)  # heard by the first session of a process
    missing = [
        name
        for name, found in (
            ("the package pyspark", importlib.util.find_spec("pyspark")),
            ("Java", shutil.which("java") or os.environ.get("JAVA_HOME")),
        )
        if not found
    ]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"Spark's tests need {' and '.join(missing)}")
    if missing:
        pytest.skip(f"Spark needs {' and '.join(missing)}")
