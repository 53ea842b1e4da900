"""Run functions in processes of their own, with a deadline and a memory limit: once, or in a worker
pool.

Tasks go out pickled. Answers come back as plain data in frames of a known length, read by an
unpickler that knows no class; errors come back by name and are made anew here.

A worker process hears neither Ctrl-C nor other people's streams (a foreign library may print rows),
leaves no copy of its memory on disk when it crashes, since that may hold rows too, and ends when
the process that started it ends.

The worker pool is a process that has imported everything and forks itself for each task, which
takes some milliseconds. Nothing of a task is left when it is over, neither memory nor temporary
files; what a killed server leaves of them goes with the next one that starts. The pool has one
thread, so that forking is safe, and ends, with all that it forked, when this process ends. It is
started again if it is gone.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import io
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from math import inf
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from whosin import errors
from whosin.errors import Crashed, OutOfMemory, TookTooLong, spell
from whosin.plain_files import TASK_PREFIX, PrivateFolder, remove_abandoned

__all__ = ["TaskLimits", "WorkerPool", "run_isolated"]

LENGTH_STRUCT = struct.Struct("!Q")
ANSWER_TYPES = (type(None), bool, int, float, str, bytes)


def pack_call(
    function: Callable[..., Any], arguments: tuple[Any, ...], folder: str, memory: int
) -> bytes:
    """A call, as bytes; `folder` is where the process keeps temporary files, and `memory` what it
    may hold. It works in our present folder."""
    where = (os.getcwd(), folder, memory)
    return pickle.dumps((function.__module__, function.__qualname__, arguments, *where))


def run_call(call: bytes) -> bytes:
    """Make a call in this process; its answer or its error as a frame."""
    try:
        module, name, arguments, *_ = pickle.loads(call)
        return _make_frame(("answer", getattr(import_module(module), name)(*arguments)))
    except MemoryError:
        return _make_frame(("memory",))
    except errors.WhosinError as error:
        own = [] if error.parts == (error,) else list(map(_error_data, error.parts))
        return _make_frame(("refusal", *_error_data(error), own))
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else None
        return _make_frame(("system", type(error).__name__, error.errno, error.strerror, name))
    except Exception as error:
        return _make_frame(("unexpected", *kind_and_line(error)))


def _error_data(error: errors.WhosinError) -> tuple[str, str, dict[str, Any]]:
    """An error as plain data: its kind, its message, and what else it holds that is plain."""
    known = {key: value for key, value in vars(error).items() if type(value) in ANSWER_TYPES}
    return type(error).__name__, error.message, known


def is_complete(received: bytearray) -> bool:
    """Whether a whole frame has come."""
    if len(received) < LENGTH_STRUCT.size:
        return False
    return len(received) >= LENGTH_STRUCT.size + int(LENGTH_STRUCT.unpack_from(received)[0])


def read_answer(frame: bytes, too_large: Callable[[], errors.OutOfMemory]) -> Any:
    """What a process answered; its error is raised here."""
    try:
        kind, *rest = _Plain(io.BytesIO(frame[LENGTH_STRUCT.size :])).load()
    except Exception:
        raise errors.Crashed("the worker process gave an answer that cannot be read") from None
    if kind == "answer":
        return rest[0]
    if kind == "memory":
        raise too_large()
    if kind == "refusal":
        *whole, parts = rest
        made = _make_error(*whole)
        if parts:
            vars(made)["mistakes"] = tuple(_make_error(*each) for each in parts)
        raise made
    if kind == "system":
        name, *about = rest
        chosen = getattr(builtins, name, OSError)
        known = isinstance(chosen, type) and issubclass(chosen, OSError)
        raise (chosen if known else OSError)(*about)
    result, where = map(str, rest)
    failed = errors.Crashed(f"internal error, please report it: {result} at {where}")
    vars(failed)["unexpected"] = f"{result} at {where}"
    raise failed


def kind_and_line(error: BaseException) -> tuple[str, str]:
    """The kind of an error and the line of ours that it came from; its words may quote rows."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "whosin" in frame.filename] or frames
    if not own:
        return type(error).__name__, "?"
    file = own[-1].filename.rpartition("whosin/")[2]
    return type(error).__name__, f"whosin/{file}:{own[-1].lineno}"


def _make_frame(answer: tuple[Any, ...]) -> bytes:
    try:
        data = pickle.dumps(_plain_value(answer))
        _Plain(io.BytesIO(data)).load()
    except MemoryError:
        data = pickle.dumps(("memory",))
    except Exception as error:
        data = pickle.dumps(("unexpected", *kind_and_line(error)))
    return LENGTH_STRUCT.pack(len(data)) + data


def _plain_value(value: Any) -> Any:
    """A value without the classes that stand for a text or a number."""
    if type(value) in ANSWER_TYPES:
        return value
    if isinstance(value, list | tuple):
        return type(value)(map(_plain_value, value)) if type(value) in (list, tuple) else value
    if type(value) is dict:
        return {_plain_value(key): _plain_value(each) for key, each in value.items()}
    return next((kind(value) for kind in (str, int, float) if isinstance(value, kind)), value)


class _Plain(pickle.Unpickler):
    """Reads plain data only."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


def _make_error(name: str, message: str, known: dict[str, Any]) -> errors.WhosinError:
    kind = getattr(errors, name, errors.Crashed)
    made: errors.WhosinError = kind.__new__(kind)
    made.args = (message,)
    vars(made).update(known)
    return made


MEMORY_POLL_SECONDS = 0.025
"""Seconds between two looks at the memory of a process."""

own_memory: int | None = None
"""What this process itself may hold, if it is one that works for another."""


@dataclass(frozen=True)
class TaskLimits:
    """What a task may take.

    Attributes:
        seconds: from its start to its answer.
        memory: bytes, beyond what the process held at its start.
        hint: what a person can do instead, for the messages.
        processor: seconds of computing, so that a busy machine does not stop what is short; the
            others are seconds of the clock.
    """

    seconds: float
    memory: int
    hint: str = ""
    processor: float | None = None

    def inside(self) -> TaskLimits:
        """The same, but within what this process may hold itself."""
        if own_memory is None or own_memory >= self.memory:
            return self
        return replace(self, memory=own_memory)

    def too_long(self) -> TookTooLong:
        """The error at the deadline."""
        most = self.seconds if self.processor is None else self.processor
        message = f"this takes longer than {spell(most)} seconds"
        return TookTooLong(message, field="seconds", value=most, hint=self.hint)

    def too_large(self) -> OutOfMemory:
        """The error at the limit of memory."""
        message = f"this needs more memory than {spell(self.memory / (1 << 30), 2)} GiB"
        return OutOfMemory(message, field="memory", value=self.memory, hint=self.hint)


def wait_for_answer(
    connection: socket.socket, pid: int, limits: TaskLimits, stop: Callable[[], None]
) -> Any:
    """The answer of a process; however this ends, `stop` has ended the process by then."""
    end = time.monotonic() + limits.seconds
    _, before = process_usage(pid)
    received = bytearray()
    # Not select, which fails where a process has a thousand files open.
    connection.settimeout(MEMORY_POLL_SECONDS)
    try:
        while not is_complete(received):
            computed, held = process_usage(pid)
            if time.monotonic() > end or computed > (limits.processor or inf):
                raise limits.too_long()
            if held - before > limits.memory:
                raise limits.too_large()
            try:
                part = connection.recv(1 << 20)
            except TimeoutError:
                continue
            if not part:
                raise Crashed("the worker process ended without an answer")
            received += part
            if len(received) > limits.memory:
                raise limits.too_large()
        return read_answer(bytes(received), limits.too_large)
    except ConnectionError:
        raise Crashed("the worker process ended without an answer") from None
    finally:
        stop()
        connection.close()


def process_usage(pid: int) -> tuple[float, float]:
    """The seconds of processor time that a process has used, in all its threads, and the bytes that
    it holds; nothing if it is gone."""
    import psutil

    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        return sum(process.cpu_times()[:2]), process.memory_info().rss
    return 0.0, 0.0


def inherit_memory_limit(memory: int | None) -> None:
    """Take over the memory limit of the process that started this one."""
    global own_memory
    own_memory = memory


QUIET_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "PYTHONWARNINGS": "ignore",
}
"""A process that forks must have one thread, and one that is watched should hold little."""


def run_isolated(function: Callable[..., Any], *arguments: Any, limits: TaskLimits) -> Any:
    """What a function of a module answers, from a process of its own.

    Raises:
        TookTooLong, OutOfMemory, Crashed: the process was stopped, or ended by itself.
        WhosinError, OSError: what the function raised.
    """
    limits = limits.inside()
    ours, theirs = socket.socketpair()
    with work_folder() as folder:
        with theirs:
            process = start_interpreter("run_once", theirs)

        def stop() -> None:
            process.kill()
            process.wait()

        call = pack_call(function, arguments, folder, limits.memory)
        with contextlib.suppress(ConnectionError):  # it ended already; the waiting says so
            ours.sendall(LENGTH_STRUCT.pack(len(call)) + call)
        return wait_for_answer(ours, process.pid, limits, stop)


def work_folder() -> PrivateFolder:
    """Where a process keeps temporary files; it goes with the task."""
    return PrivateFolder(TASK_PREFIX, Path(tempfile.gettempdir()))


def start_interpreter(role: str, theirs: socket.socket, *more: object) -> subprocess.Popen[bytes]:
    """An interpreter with our path that runs one function of this module, its role."""
    descriptor = theirs.fileno()
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"from whosin.isolation import {role}; {role}({descriptor}, *{list(more)!r})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | QUIET_ENVIRONMENT,
    )


JOB_STRUCT = struct.Struct("!cQ")
"""What a worker pool is told: start or kill, and the number of the job."""
START_JOB, KILL_JOB = b"s", b"k"
PID_STRUCT = struct.Struct("!q")
PR_SET_PDEATHSIG = 1


def run_once(descriptor: int) -> None:
    """Answer one task and end."""
    _die_with_parent()
    _dump_nothing()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as connection:
        _work_on_task(connection)
    os._exit(0)


def serve_forks(descriptor: int, modules: list[str]) -> None:
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
                if not _handle_request(control, jobs):
                    break
            _reap_children(jobs)
    for pid in jobs.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _handle_request(control: socket.socket, jobs: dict[int, int]) -> bool:
    """Do what is asked; false when nobody asks any longer."""
    data, descriptors, _, _ = socket.recv_fds(control, JOB_STRUCT.size, 1)
    if len(data) < JOB_STRUCT.size:
        return False
    kind, number = JOB_STRUCT.unpack(data)
    if kind == KILL_JOB:
        _reap_children(jobs)
        if number in jobs:
            os.kill(jobs[number], signal.SIGKILL)
        return True
    pid = os.fork()
    if pid == 0:
        control.close()
        _die_with_parent()
        with socket.socket(fileno=descriptors[0]) as connection:
            connection.sendall(PID_STRUCT.pack(os.getpid()))
            _work_on_task(connection)
        os._exit(0)
    os.close(descriptors[0])
    jobs[number] = pid
    return True


def _reap_children(jobs: dict[int, int]) -> None:
    for number, pid in list(jobs.items()):
        if os.waitpid(pid, os.WNOHANG)[0]:
            del jobs[number]


def _work_on_task(connection: socket.socket) -> None:
    call = bytearray()
    while not is_complete(call):
        part = connection.recv(1 << 20)
        if not part:
            return
        call += part
    given = bytes(call[LENGTH_STRUCT.size :])
    *_, home, tempfile.tempdir, memory = pickle.loads(given)
    inherit_memory_limit(memory)
    with contextlib.suppress(OSError):
        os.chdir(home)
    with contextlib.suppress(BrokenPipeError, ConnectionError):
        connection.sendall(run_call(given))


def _die_with_parent() -> None:
    """Linux ends this process with the one that forked it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _dump_nothing() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


POOL_START_SECONDS = 60.0
"""Seconds for the pool to import its modules."""


class WorkerPool:
    """Runs tasks in processes of their own; safe to use from several threads.

    Args:
        modules: what to import beforehand.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = list(modules)
        self._lock, self._numbers = threading.Lock(), count(1)
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def start(self) -> None:
        """Start it, without waiting until it is ready, and remove what killed ones left."""
        remove_abandoned(Path(gettempdir()))
        with self._lock:
            self._ready()

    def close(self) -> None:
        """End it and all that it works on."""
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._control = self._process = None

    def run(self, function: Callable[..., Any], *arguments: Any, limits: TaskLimits) -> Any:
        """As `isolation.run_isolated`, at once."""
        with work_folder() as folder:
            call = pack_call(function, arguments, folder, limits.memory)
            try:
                connection, number = self._begin()
            except OSError:  # no file left to open, or the pool has just ended
                raise Crashed("no worker process could be started") from None
            try:
                connection.settimeout(POOL_START_SECONDS)
                pid = PID_STRUCT.unpack(_receive_exactly(connection, PID_STRUCT.size))[0]
                connection.settimeout(limits.seconds)
                connection.sendall(LENGTH_STRUCT.pack(len(call)) + call)
                connection.settimeout(None)
            except (OSError, Crashed):
                connection.close()
                self._stop(number)
                raise Crashed("no worker process could be started") from None
            return wait_for_answer(connection, pid, limits, lambda: self._stop(number))

    def _ready(self) -> socket.socket:
        if self._process is None or self._process.poll() is not None or self._control is None:
            if self._control is not None:
                self._control.close()
            ours, theirs = socket.socketpair()
            with theirs:
                self._process = start_interpreter("serve_forks", theirs, self._modules)
            self._control = ours
        return self._control

    def _begin(self) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        number = next(self._numbers)
        try:
            with theirs, self._lock:
                socket.send_fds(
                    self._ready(), [JOB_STRUCT.pack(START_JOB, number)], [theirs.fileno()]
                )
        except OSError:
            ours.close()
            raise
        return ours, number

    def _stop(self, number: int) -> None:
        with self._lock:
            if self._control is not None:
                with contextlib.suppress(OSError):  # it is gone, and with it all that it forked
                    self._control.sendall(JOB_STRUCT.pack(KILL_JOB, number))


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise Crashed("no worker process could be started")
        data += part
    return data
