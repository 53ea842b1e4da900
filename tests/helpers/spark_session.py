"""One local Spark for all tests of a process; without Java or pyspark they are skipped, but never
under CI."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
from functools import cache

import pytest

from whosin.release import Spark

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java that answers many small queries and ends soon."""
QUICK_SETTINGS = {  # for many small queries
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.memory": "2g",
}


def require_spark() -> None:
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)  # heard by the first session
    missing = [] if importlib.util.find_spec("pyspark") else ["the package pyspark"]
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        missing.append("Java")
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"Spark's tests need {' and '.join(missing)}")
    if missing:
        pytest.skip(f"Spark needs {' and '.join(missing)}")


@cache
def shared_spark() -> Spark:
    """Started by the first test that needs it, and stopped when the process ends."""
    require_spark()
    engine = Spark("local[2]", settings=QUICK_SETTINGS)
    atexit.register(engine.close)
    return engine
