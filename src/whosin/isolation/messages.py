"""What goes to a process and what comes back.

Contract: tasks go out pickled. Answers come back as plain data in frames of a known length, read by
an unpickler that knows no class; errors come back by name and are made anew here.
"""

from __future__ import annotations

import builtins
import io
import os
import pickle
import struct
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from whosin import errors

LENGTH = struct.Struct("!Q")
PLAIN = (type(None), bool, int, float, str, bytes)


def task(
    function: Callable[..., Any], arguments: tuple[Any, ...], folder: str, memory: int
) -> bytes:
    """A call, as bytes; `folder` is where the process keeps temporary files, and `memory` what it
    may hold. It works in our present folder."""
    where = (os.getcwd(), folder, memory)
    return pickle.dumps((function.__module__, function.__qualname__, arguments, *where))


def perform(call: bytes) -> bytes:
    """Make a call in this process; its answer or its error as a frame."""
    try:
        module, name, arguments, *_ = pickle.loads(call)
        return _frame(("answer", getattr(import_module(module), name)(*arguments)))
    except MemoryError:
        return _frame(("memory",))
    except errors.WhosinError as error:
        known = {key: value for key, value in vars(error).items() if type(value) in PLAIN}
        return _frame(("refusal", type(error).__name__, error.message, known))
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else None
        return _frame(("system", type(error).__name__, error.errno, error.strerror, name))
    except Exception as error:
        return _frame(("unexpected", *kind_and_line(error)))


def complete(received: bytearray) -> bool:
    """Whether a whole frame has come."""
    if len(received) < LENGTH.size:
        return False
    return len(received) >= LENGTH.size + int(LENGTH.unpack_from(received)[0])


def answer(frame: bytes, too_large: Callable[[], errors.OutOfMemory]) -> Any:
    """What a process answered; its error is raised here."""
    try:
        kind, *rest = _Plain(io.BytesIO(frame[LENGTH.size :])).load()
    except Exception:
        raise errors.Crashed("the process that worked on this gave no proper answer") from None
    if kind == "answer":
        return rest[0]
    if kind == "memory":
        raise too_large()
    if kind == "refusal":
        raise _error(*rest)
    if kind == "system":
        raise _system(*rest)
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


def _frame(answer: tuple[Any, ...]) -> bytes:
    try:
        data = pickle.dumps(_plain(answer))
        _Plain(io.BytesIO(data)).load()
    except MemoryError:
        data = pickle.dumps(("memory",))
    except Exception as error:
        data = pickle.dumps(("unexpected", *kind_and_line(error)))
    return LENGTH.pack(len(data)) + data


def _plain(value: Any) -> Any:
    """A value without the classes that stand for a text or a number."""
    if type(value) in PLAIN:
        return value
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value
    if type(value) is dict:
        return {_plain(key): _plain(each) for key, each in value.items()}
    return next((kind(value) for kind in (str, int, float) if isinstance(value, kind)), value)


class _Plain(pickle.Unpickler):
    """Reads plain data only."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


def _error(name: str, message: str, known: dict[str, Any]) -> errors.WhosinError:
    kind = getattr(errors, name, errors.Crashed)
    made: errors.WhosinError = kind.__new__(kind)
    made.args = (message,)
    vars(made).update(known)
    return made


def _system(name: str, number: int | None, words: str | None, file: str | None) -> OSError:
    kind = getattr(builtins, name, OSError)
    chosen = kind if isinstance(kind, type) and issubclass(kind, OSError) else OSError
    return chosen(number, words, file)
