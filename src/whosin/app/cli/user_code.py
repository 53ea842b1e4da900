"""Objects that a command names as module:name or file.py:name, and running other people's code."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from whosin.errors import InvalidInput, UnknownName, shorten

# Code of other people's, run inside the command. Whatever it prints, by Python or below it, goes to
# standard error, so that standard output holds the command's own result and nothing else; and
# `sys.exit` or `os._exit` in it is a failing environment, never the command's own exit.


@contextmanager
def user_code() -> Iterator[None]:
    """Send standard output to standard error for as long as the code runs."""
    with redirect_stdout(sys.stderr), _no_sudden_end():
        kept = _redirect_output()
        try:
            yield
        except SystemExit as error:
            from whosin.errors import MechanismFailed

            words = f"the code under audit ended the program (sys.exit({error.code!r}))"
            raise MechanismFailed(words) from error
        finally:
            sys.stderr.flush()
            if kept is not None:
                os.dup2(kept, 1)
                os.close(kept)


@contextmanager
def _no_sudden_end() -> Iterator[None]:
    """Let `os._exit` of this process, whatever its code, be a failing environment; children that
    the code forks end as they like."""
    leave, process = os._exit, os.getpid()

    def end(status: int) -> NoReturn:
        if os.getpid() == process:
            words = f"whosin: the code under audit ended the program (os._exit({status!r}))\n"
            os.write(2, words.encode())
            leave(3)
        leave(status)

    os._exit = end
    try:
        yield
    finally:
        os._exit = leave


def _redirect_output() -> int | None:
    """Point the process's standard output to its standard error; what it was, if that is known."""
    try:
        kept = os.dup(1)
    except OSError:  # closed, or none
        return None
    try:
        os.dup2(2, 1)
    except OSError:
        os.close(kept)
        return None
    return kept


# Objects of other people's that a command names: module:name, or file.py:name. A module is looked
# for in the current folder and in PYTHONPATH; whatever goes wrong while loading becomes one
# message.


def load_object(target: str, what: str = "what to audit") -> Any:
    """The object that `module:name` or `file.py:name` names."""
    return load_with_module(target, what)[0]


def load_with_module(target: str, what: str = "what to audit") -> tuple[Any, ModuleType]:
    """The object that `module:name` or `file.py:name` names, and the module that has it.

    Args:
        what: what the object is for, in messages.
    """
    source, colon, name = target.rpartition(":")
    if not colon or not source or not name:
        message = f"{shorten(repr(target))} names no function"
        hint = "write module:function, path/to/file.py:function or a channel file (.json)"
        raise InvalidInput(message, field=what, value=target, hint=hint)
    module = (
        _import_file(Path(source), what) if source.endswith(".py") else _import_module(source, what)
    )
    if not hasattr(module, name):
        public = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise UnknownName(f"function of {source}", name, public)
    return getattr(module, name), module


def _import_module(name: str, what: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name + ".").startswith(error.name + "."):
            message = f"there is no module {shorten(repr(name))} in this folder or on PYTHONPATH"
            raise InvalidInput(message, field=what, value=name) from None
        raise _import_error(name, what, error) from error
    except (Exception, SystemExit) as error:
        raise _import_error(name, what, error) from error


def _import_file(path: Path, what: str) -> ModuleType:
    if not path.is_file():
        message = f"there is no file {shorten(path)}"
        raise InvalidInput(message, field=what, value=str(path), hint="see its path")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _import_error(str(path), what, error) from error
    return module


def _import_error(name: str, what: str, error: BaseException) -> InvalidInput:
    words = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return InvalidInput(f"{name} cannot be imported: {words}", field=what, value=name)
