"""Objects of other people's that a command names: module:name, or file.py:name.

Contract: a module is looked for in the current folder and in PYTHONPATH; whatever goes wrong while
loading becomes one message.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from whosin.errors import InvalidInput, UnknownName


def load(target: str, what: str = "what to audit") -> Any:
    """The object that `module:name` or `file.py:name` names."""
    return load_with_module(target, what)[0]


def load_with_module(target: str, what: str = "what to audit") -> tuple[Any, ModuleType]:
    """The object that `module:name` or `file.py:name` names, and the module that has it.

    Args:
        what: what the object is for, in messages.
    """
    source, colon, name = target.rpartition(":")
    if not colon or not source or not name:
        accepted = "module:function, path/to/file.py:function or a channel file (.json)"
        raise InvalidInput(what, accepted, repr(target))
    module = _from_file(Path(source), what) if source.endswith(".py") else _module(source, what)
    if not hasattr(module, name):
        public = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise UnknownName(f"function of {source}", name, public)
    return getattr(module, name), module


def _module(name: str, what: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name + ".").startswith(error.name + "."):
            accepted = "a module of the current folder or of PYTHONPATH"
            raise InvalidInput(what, accepted, repr(name)) from None
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _from_file(path: Path, what: str) -> ModuleType:
    if not path.is_file():
        raise InvalidInput(what, "a Python file that exists", str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _broken(str(path), error) from error
    return module


def _broken(name: str, error: BaseException) -> InvalidInput:
    words = " ".join(str(error).split())[:200]
    return InvalidInput(name, "importable", f"{type(error).__name__}: {words}")
