"""The side of the process that works.

Contract: it hears neither Ctrl-C nor other people's streams (a foreign library may print rows),
leaves no copy of its memory on disk when it crashes, since that may hold rows too, and ends when
the process that started it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import tempfile
from importlib import import_module

from whosin.isolation import limits, messages

JOB = struct.Struct("!cQ")
"""What a nursery is told: start or kill, and the number of the job."""
START, KILL = b"s", b"k"
PID = struct.Struct("!q")
PR_SET_PDEATHSIG = 1


def once(descriptor: int) -> None:
    """Answer one task and end."""
    _die_with_parent()
    _dump_nothing()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as connection:
        _work(connection)
    os._exit(0)


def nursery(descriptor: int, modules: list[str]) -> None:
    """Fork a process for each task, until the other side is gone."""
    _dump_nothing()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in modules:
        import_module(module)
    jobs: dict[int, int] = {}
    with socket.socket(fileno=descriptor) as control:
        while True:
            control.settimeout(1.0 if jobs else None)
            with contextlib.suppress(TimeoutError):
                if not _hear(control, jobs):
                    break
            _reap(jobs)
    for pid in jobs.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _hear(control: socket.socket, jobs: dict[int, int]) -> bool:
    """Do what is asked; false when nobody asks any longer."""
    data, descriptors, _, _ = socket.recv_fds(control, JOB.size, 1)
    if len(data) < JOB.size:
        return False
    kind, number = JOB.unpack(data)
    if kind == KILL:
        _reap(jobs)
        if number in jobs:
            os.kill(jobs[number], signal.SIGKILL)
        return True
    pid = os.fork()
    if pid == 0:
        control.close()
        _die_with_parent()
        with socket.socket(fileno=descriptors[0]) as connection:
            connection.sendall(PID.pack(os.getpid()))
            _work(connection)
        os._exit(0)
    os.close(descriptors[0])
    jobs[number] = pid
    return True


def _reap(jobs: dict[int, int]) -> None:
    for number, pid in list(jobs.items()):
        if os.waitpid(pid, os.WNOHANG)[0]:
            del jobs[number]


def _work(connection: socket.socket) -> None:
    call = bytearray()
    while not messages.complete(call):
        part = connection.recv(1 << 20)
        if not part:
            return
        call += part
    given = bytes(call[messages.LENGTH.size :])
    *_, home, tempfile.tempdir, limits.own_memory = pickle.loads(given)
    with contextlib.suppress(OSError):
        os.chdir(home)
    with contextlib.suppress(BrokenPipeError, ConnectionError):
        connection.sendall(messages.perform(given))


def _die_with_parent() -> None:
    """Linux ends this process with the one that forked it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _dump_nothing() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
