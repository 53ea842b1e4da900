"""Spark sessions of our own: their settings, where they spill, what they must not write, and
how far they are.

Contract: nothing that Spark or PySpark writes by itself may quote rows, so their logs are off. A
local session listens to this machine alone.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput, Unsupported
from whosin.interrupts import POLL
from whosin.release.engines.base import Progress
from whosin.release.engines.spilling import SpillFolder

QUOTING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark that quote values of failed expressions."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",  # a log line may quote rows
}

_SPILL_FOLDERS: list[SpillFolder] = []
"""The one folder of this process, once there is one."""


def spill_folder(folder: object) -> SpillFolder:
    """Spark's Java process keeps the folder of its first session, and so do we while we run: made
    anew by a later session it would have no lock, and others would take it for abandoned."""
    if _SPILL_FOLDERS:
        (first,) = _SPILL_FOLDERS
        if folder is not None and Path(str(folder)).resolve() != first.path.parent.resolve():
            accepted = "the one of this program's first Spark session, or left out"
            raise InvalidInput("spill", accepted, Path(str(folder)).name)
        return first
    _SPILL_FOLDERS.append(SpillFolder(folder))
    return _SPILL_FOLDERS[0]


def open_session(master: str, settings: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("whosin")
    fixed = dict(SETTINGS)
    if master.startswith("local"):
        fixed |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        # Local workers are this Python, not the first one on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in (fixed | settings).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception:
        accepted = "Spark cannot start: it needs Java 17 and a master that answers"
        raise Unsupported(f"{accepted}; got {master!r}") from None
    session.sparkContext.setLogLevel("OFF")
    return session


def silence() -> None:
    """Have PySpark write no failures to the error output: they may quote rows."""
    from pyspark.logger import PySparkLogger

    for name in QUOTING:
        PySparkLogger.getLogger(name).disabled = True


def watch(tracker: Any, group: str, progress: Progress, done: threading.Event) -> None:
    """Tell the share of finished tasks. Stages come as they are planned, so it may only grow."""
    share = 0.0
    while not done.wait(POLL):
        with contextlib.suppress(Exception):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            tasks = sum(stage.numTasks for stage in stages if stage)
            finished = sum(stage.numCompletedTasks for stage in stages if stage)
            share = max(share, finished / tasks if tasks else 0.0)
            progress(share)
