"""Options that take one value and were given twice: refused, since one would be lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whosin.errors import InvalidInput


def refuse_repeated(command: Any, arguments: Sequence[str]) -> dict[str, str]:
    """Refuse an option of the command (or of the subcommand named) that is given more than once;
    otherwise its options by their names."""
    words = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    while words and hasattr(command, "commands"):
        word = words.pop(0)
        command = command.commands.get(word, command)
    for option in getattr(command, "params", ()):
        names = [name for name in option.opts if name.startswith("-")]
        if not names or option.multiple or option.is_flag:
            continue
        given = [word for word in words if word.partition("=")[0] in names]
        if len(given) > 1:
            raise InvalidInput(names[0], "given once", f"{len(given)} times")
    return {option.opts[0].lstrip("-"): option.opts[0] for option in getattr(command, "params", ())}
