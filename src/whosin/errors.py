"""Every error raised on purpose, and the checks of arguments and packages that raise them.

One root, `WhosinError`. A message is one sentence: what is wrong, where, what to do. It never
quotes a private value. What programs and tests read of an error is data: `field`, `value` and
`hint`. Numbers are read by `exact`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar


class WhosinError(Exception):
    """The root of all errors raised by whosin.

    Attributes:
        field: which argument, option, key or column is wrong; empty where it is none of these.
        value: what came, as far as it may be shown.
        hint: what to do; the end of the message.
        path: where in a file or a request the error is, such as queries[2].by; empty elsewhere.
        place: the same in words for the file that was read: "line 12, question 3 (ages)".
        paste: a line to paste there instead, where one can be given.
    """

    field: str = ""
    value: object = None
    hint: str = ""
    path: str = ""
    place: str = ""
    paste: str = ""

    def __init__(
        self, message: str, *, field: str = "", value: object = None, hint: str = ""
    ) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.field, self.value, self.hint = field, value, hint

    @property
    def message(self) -> str:
        """What is wrong and what to do, without the path."""
        return super().__str__()

    def __str__(self) -> str:
        """The message. Where there is a place or a path, it names that instead of the field."""
        message, path = self.message, shorten(self.path)
        if self.place:
            return f"{self.place}: {message}"
        name = path.rpartition(".")[2].lstrip("-")
        if not path:
            return message
        for spelled in (name, name.replace("-", "_"), name.replace("-", " ")):
            if message.startswith(f"{spelled} "):
                return f"{path}{message[len(spelled) :]}"
        return f"{path}: {message}" if isinstance(self, InvalidInput) else message

    @property
    def parts(self) -> tuple[WhosinError, ...]:
        """The errors that this one is made of: itself, or several mistakes."""
        return (self,)


@contextmanager
def at(path: str) -> Iterator[None]:
    """Errors in this block are at a path, or below it."""
    try:
        yield
    except WhosinError as error:
        for each in {id(each): each for each in (error, *error.parts)}.values():
            inner = each.path
            each.path = f"{path}{'' if inner[:1] in ('', '[') else '.'}{inner}"
        raise


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Errors in this block are about a file."""
    try:
        yield
    except WhosinError as error:
        error.place = error.place or shorten(place)
        raise


@contextmanager
def at_keys(keys: Collection[str], path: str = "") -> Iterator[None]:
    """Errors in this block that are about one of these keys get the path of that key."""
    try:
        yield
    except WhosinError as error:
        if not error.path and error.field in keys:
            error.path = f"{path}.{error.field}" if path else error.field
        raise


def warn_caller(words: str) -> None:
    """Warn at the line that called this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("whosin."):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, stacklevel=level)


MAX_VALUE_LENGTH = 200


def shorten(value: object) -> str:
    """What came, in one line and not longer than a line."""
    try:
        text = str(value)
    except (ValueError, RecursionError):  # a number of too many digits, a list of lists of lists …
        return f"something too long to show ({type(value).__name__})"
    text = "".join(each if each.isprintable() else " " for each in text[: MAX_VALUE_LENGTH + 1])
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


MAX_SPELLED_NUMBER = 1e18


def spell(number: Any, digits: int = 6) -> str:
    """A number in a message: a whole one with commas, any other with a few digits, and commas
    instead of a power of ten."""
    if isinstance(number, Integral):
        return f"{number:,}"
    text = f"{float(number):.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text and abs(number) < MAX_SPELLED_NUMBER else text


def spell_excess(total: Any) -> str:
    """By how much a sum is not 1, with its sign."""
    return f"{float(total - 1):+.3g}"


class InvalidInput(WhosinError, ValueError):
    """An argument, option, key or file that cannot be used; `field` names it, and `nearest` is what
    was probably meant instead of `value`. `columns` may be meant too, and may be cells of
    somebody's row: see `suggest_columns`."""

    nearest: Any = None
    columns: tuple[str, ...] = ()


def suggest_columns(error: WhosinError) -> WhosinError:
    """The error, which says which columns were meant, at a terminal: there somebody has the file in
    hand. Elsewhere names that may be the cells of a first row would come into logs."""
    for each in error.parts if sys.stderr.isatty() else ():
        if not isinstance(each, InvalidInput) or each.nearest is not None:
            continue
        if nearest := _nearest_name(str(each.value), list(each.columns)):
            message = each.message.removesuffix(each.hint)
            each.nearest, each.hint = nearest, f"did you mean {nearest!r}?"
            each.args = (message + each.hint,)
    return error


def invalid_value(field: str, accepted: str, value: object, hint: str = "") -> InvalidInput:
    """The error for a value outside its accepted range: "delta must be below 1, not 2"."""
    message = f"{shorten(field)} must be {accepted}, not {shorten(value)}"
    return InvalidInput(message, field=field, value=value, hint=hint)


class SeveralMistakes(InvalidInput):
    """Several mistakes of one file, request or call, said at once; programs that look at one error
    find the fields of the first."""

    def __init__(self, mistakes: Iterable[WhosinError], what: str = "") -> None:
        self.mistakes = tuple(mistakes)
        first = self.mistakes[0]
        super().__init__(first.message, field=first.field, value=first.value)
        self.hint, self.path, self.what = first.hint, first.path, what

    @property
    def parts(self) -> tuple[WhosinError, ...]:
        return self.mistakes

    def __str__(self) -> str:
        """All of them, a line each."""
        head = f"{self.what + ' has ' if self.what else ''}{len(self.parts)} mistakes:"
        return "\n".join([head, *(f"  {describe_mistake(each)}" for each in self.parts)])


def describe_mistake(error: WhosinError) -> str:
    """An error, with the line to paste below it."""
    return f"{error}\n    {error.paste}" if error.paste else str(error)


class Mistakes:
    """Mistakes that are collected, to be said at once."""

    def __init__(self) -> None:
        self.found: list[WhosinError] = []

    @contextmanager
    def collect(self, path: str = "") -> Iterator[None]:
        """Keep what is wrong with the input in this block, at a path if there is one. What is
        not (a lost connection, a refused budget) leaves the block."""
        try:
            with at(path) if path else nullcontext():
                yield
        except (InvalidInput, ImpossibleTarget, Unsupported, NoPureLevel) as error:
            said = [(each.path, each.place, each.message) for each in self.found]
            self.found += [
                each for each in error.parts if (each.path, each.place, each.message) not in said
            ]

    def raise_all(self, what: str = "") -> None:
        """Raise what was found, if anything was: one mistake as it is, several as one error."""
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            raise SeveralMistakes(self.found, what)


class EmptyLedger(InvalidInput):
    """A database without a ledger in it, where none may be made."""


class UnknownName(InvalidInput):
    """A name that is not in its list; the message names one that was probably meant.

    That is one that differs by a slip of the fingers (one letter, or two in a long name), or the
    only one that it is a half of.

    Args:
        apart: names of other things, for which nothing is suggested however alike they look.
        otherwise: what else may be meant, as the end of a sentence.
    """

    def __init__(
        self,
        field: str,
        value: str,
        known: Iterable[str],
        apart: Iterable[str] = (),
        otherwise: str = "",
    ) -> None:
        names = sorted(known)
        self.nearest = None if value.lower() in apart else _nearest_name(value, names)
        accepted = f"must be one of {', '.join(names)}{otherwise}, not {shorten(repr(value))}"
        none = f"{shorten(repr(value))} is not there, nor is any other"
        super().__init__(
            f"{shorten(field)} {accepted if names or otherwise else none}",
            field=field,
            value=value,
            hint=f"did you mean {self.nearest!r}?" if self.nearest is not None else "",
        )


class TooLarge(WhosinError):
    """The work does not fit into memory."""

    def __init__(self, what: str, needed: int, limit: int, fits: str) -> None:
        free = _format_bytes(limit)
        super().__init__(
            f"{what} needs {_format_bytes(needed)} of memory, and {free} are free", hint=fits
        )
        self.needed, self.limit = needed, limit


class TookTooLong(WhosinError):
    """A process was stopped at its deadline."""


class OutOfMemory(WhosinError):
    """A process was stopped because it needed more memory than it may have."""


class Crashed(WhosinError):
    """A process ended without an answer, or with an error that no message describes."""


class NoPureLevel(WhosinError):
    """The likelihood ratio of the mechanism is unbounded by construction (Gaussian noise)."""


class ImpossibleTarget(WhosinError):
    """No mechanism that says anything meets the target; `nearest` is the bound to stay above."""

    def __init__(
        self,
        message: str,
        nearest: object,
        *,
        field: str = "",
        value: object = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, field=field, value=value, hint=hint)
        self.nearest = nearest


class NoImplication(WhosinError):
    """No theorem leads from one notion to another; `counterexample` says why, if that is known."""

    def __init__(self, message: str, counterexample: str | None = None, hint: str = "") -> None:
        super().__init__(message, field="to", hint=hint)
        self.counterexample = counterexample


class BudgetRefused(WhosinError):
    """The ledger refuses a debit, a session or a registration; nothing was spent."""


class StoreFailed(WhosinError):
    """The ledger's store cannot be read or written: a full disk, a lock, a lost connection."""


class ScanFailed(WhosinError):
    """The engine failed while it scanned a table, after the debit, which stands."""


class SourceChanged(ScanFailed):
    """The files of a table were replaced by others with other columns since it was opened."""


class SourceUnreachable(SourceChanged):
    """A database that holds a table does not answer, or does not let us in; no row was read."""

    def __init__(self, system: str, reason: str | None = None, place: str = "") -> None:
        unknown = "does not answer, or does not let this user in"
        known = f"cannot be used: {reason}"
        hint = f"see that it runs{place and f' at {place}'}, and that host and port are right"
        if reason is None:
            hint += ", and database, user and password"
        elif "password" in reason:
            hint = "see that the user is right, and the password (PGPASSWORD, ~/.pgpass)"
        elif "no such" in reason:
            hint = "see that database and user are spelled right"
        super().__init__(
            f"the {system} database of the table {unknown if reason is None else known}",
            hint=hint,
        )


class MechanismFailed(WhosinError):
    """The code under audit ended the program."""


class MissingExtra(WhosinError, ImportError):  # type: ignore[misc]
    """Packages that this part of whosin needs are not installed; `extra` brings them."""

    def __init__(self, extra: str, what: str) -> None:
        name = f"whosin[{extra}]"
        command = f"pip install '{name}'"
        if (Path(__file__).parents[2] / "constraints.txt").is_file():  # a checkout
            command = f".venv/bin/pip install -c constraints.txt -e '.[{extra}]'"
        super().__init__(f"{what} {name}: {command}")
        self.extra = extra


class Interrupted(WhosinError):
    """Someone stopped the work; the message says what stands."""


class BrokenHistory(WhosinError):
    """The ledger's history is not the one that was written; `dataset` names where it breaks."""

    def __init__(self, dataset: str, message: str) -> None:
        super().__init__(f"the history of {dataset!r} is broken: {message}")
        self.dataset = dataset


class Unsupported(WhosinError):
    """A combination of mechanism, space and notion that has no meaning or no known algorithm."""


LONG_NAME_LENGTH = 8


def _nearest_name(got: str, names: list[str]) -> str | None:
    """The name with the fewest slips between, if they are few; among those the one most alike."""
    from difflib import SequenceMatcher  # slow to import, and seldom needed

    if not 1 < len(got) <= MAX_VALUE_LENGTH:
        return None
    near = [
        (slips, -SequenceMatcher(None, got, name).ratio(), name)
        for name in names
        if abs(len(name) - len(got))
        <= (most := 2 if max(len(got), len(name)) >= LONG_NAME_LENGTH else 1)
        and (slips := _edit_distance(got.lower(), name.lower())) <= most
    ]
    if near:
        return min(near)[2]
    stem = got[:-1] if len(got) > 4 else got  # "query" is meant for "queries"
    begun = [name for name in names if name.startswith(stem) and len(name) <= 2 * len(got)]
    return begun[0] if len(begun) == 1 else None


def _edit_distance(one: str, other: str) -> int:
    """How many letters to add, drop, change, or swap with the next, to make one the other."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        here = [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, here[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and (a, one[i - 2]) == (other[j - 2], b):
                cost = min(cost, before[j - 2] + 1)
            here.append(cost)
        before, last = last, here
    return last[-1]


def _format_bytes(count: int) -> str:
    if count >= 1 << 1000:
        return f"2^{count.bit_length() - 1} bytes"
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


Given = ParamSpec("Given")
Result = TypeVar("Result")
Kind = TypeVar("Kind")
MAX_EXCERPT_LENGTH = 80

MAX_SHOWN_ENTRIES, MAX_SHOWN_DENOMINATOR = 3, 10**6
"""Longer lists and fractions are cut off in short forms."""


def shorten_value(value: object) -> str:
    """What came, short enough for a message."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of too many digits
        return shorten(value)
    return text if len(text) <= MAX_EXCERPT_LENGTH else f"{text[:MAX_EXCERPT_LENGTH]}…"


def shorten_result(value: object, *names: str) -> str:
    """A short form of a result for people: some of its fields, long ones cut off, absent ones left
    out."""
    given = [(name, getattr(value, name)) for name in names]
    parts = [f"{name}={_shorten_field(each)}" for name, each in given if each not in (None, "", ())]
    return f"{type(value).__name__}({', '.join(parts)})"


def _shorten_field(value: object) -> str:
    """A number as it is shown, and anything else cut off."""
    if isinstance(value, Fraction) and value.denominator > MAX_SHOWN_DENOMINATOR:
        return f"{spell(value)}" if abs(value) < 10**300 else "above 1e300"
    if isinstance(value, tuple) and len(value) > MAX_SHOWN_ENTRIES:
        return (
            f"({', '.join(map(shorten_value, value[:MAX_SHOWN_ENTRIES]))}, … {len(value)} in all)"
        )
    return shorten_value(value)


def read_list(value: object, field: str, accepted: str) -> tuple[Any, ...]:
    """The entries of a list; a text lists its letters ("ab" is a set of a and b), a mapping or a
    single thing is not a list."""
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return tuple(value)
    raise invalid_value(field, accepted, shorten_value(value))


def read_tables(value: object, field: str, accepted: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Pairs of a list and a mapping, such as members and the probabilities of their sets."""
    for entry in read_list(value, field, accepted):
        pair = read_list(entry, field, accepted)
        if len(pair) != 2 or not isinstance(pair[1], Mapping):
            raise invalid_value(field, accepted, shorten_value(entry))
        yield read_list(pair[0], field, accepted), pair[1]


def check_kind(value: object, kind: type[Kind], field: str, accepted: str | None = None) -> Kind:
    """The value, if it is of this kind."""
    if isinstance(value, kind):
        return value
    raise invalid_value(field, accepted or f"a {kind.__name__}", shorten_value(value))


def read_path(value: object, field: str = "path") -> Path:
    """The path of a file. Anything else may be a table: a message names its type and no cell."""
    text = fspath(value) if isinstance(value, str | PathLike) else None
    if isinstance(text, str) and text and "\0" not in text:
        return Path(text)
    plain = isinstance(value, str | Real) or value is None
    raise invalid_value(
        field, "the path of a file", shorten_value(value) if plain else type(value).__name__
    )


MAX_POPULATION = 10**10
"""More people than there are."""


def read_whole(
    value: object, field: str, least: int, most: int | None = None, what: str = ""
) -> int:
    """A whole number of at least this, and at most that; `what` says more about it in messages."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if number >= least and (most is None or number <= most):
            return number
    accepted = f"a whole number of at least {least}"
    if most is not None:
        accepted += f" and at most {spell(most)}"
    raise invalid_value(field, accepted + what, shorten_value(value))


def spelled_whole(text: str, field: str) -> int:
    """A whole number from its digits."""
    try:
        return int(text)
    except ValueError:
        raise invalid_value(field, "a whole number", repr(text)) from None


def read_real(value: object, field: str) -> Any:
    """A number as it is: rational, float, ∞. NaN is refused; FLINT's rationals have p and q."""
    if (isinstance(value, Real) and value == value) or hasattr(value, "q"):
        return value
    raise invalid_value(field, "a number", shorten_value(value))


def check_count(
    count: int, expected: int, field: str, what: str, whose: str, hint: str = ""
) -> None:
    """Refuse a list of the wrong length: "p has 3 probabilities for 5 entities"."""
    if count != expected:
        message = f"{field} has {count} {what} for {expected} {whose}"
        raise InvalidInput(message, field=field, value=count, hint=hint)


def require_exactly_one(**given: object) -> None:
    """Refuse none or several of arguments that say the same thing in other words."""
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        names = " or ".join(given)
        ending = ", not both" if named else ""
        raise InvalidInput(f"give {names}{ending}", field=names, value=named)


def wrong_sum(field: str, total: Any, what: str = "") -> InvalidInput:
    """The error for probabilities or weights that do not add up to 1; `what` says whose."""
    off = spell_excess(total)
    message = f"{what or field} must add up to 1, not {spell(total, 12)} (off by {off})"
    return InvalidInput(message, field=field, value=total)


RANGE_CHECKS: dict[str, Callable[[Any], bool]] = {
    "above 0": lambda number: number > 0,
    "above 1": lambda number: number > 1,
    "at least 0": lambda number: number >= 0,
    "at least 1": lambda number: number >= 1,
    "between 0 and 1": lambda number: 0 <= number <= 1,
    "strictly between 0 and 1": lambda number: 0 < number < 1,
    "above 0 and at most 1": lambda number: 0 < number <= 1,
    "at least 0 and below 1": lambda number: 0 <= number < 1,
}
"""Ranges by the words that messages have for them; NaN is in none."""


def check_range(value: Any, field: str, accepted: str) -> Any:
    """The number, if it is in the range that the words say (`RANGE_CHECKS`)."""
    if RANGE_CHECKS[accepted](value):
        return value
    raise invalid_value(field, accepted, value)


def check_numbers(formula: Callable[Given, Result]) -> Callable[Given, Result]:
    """A formula that takes numbers only: rationals, floats, ∞; others are refused by name."""
    names = tuple(signature(formula).parameters)
    last = len(names) - 1  # of *numbers all have its name

    @wraps(formula)
    def checked(*given: Given.args, **named: Given.kwargs) -> Result:
        placed = ((names[min(index, last)], value) for index, value in enumerate(given))
        for name, value in (*placed, *named.items()):
            read_real(value, name)
        return formula(*given, **named)

    return checked


EXTRA_PACKAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "accounting": ("accounting for sampled or repeated noise needs", ("dp_accounting", "scipy")),
    "audit": ("audits need", ("scipy", "sklearn", "threadpoolctl")),
    "charts": ("charts and reports need", ("altair", "vl_convert")),
    "databases": (
        "tables in databases need",
        ("adbc_driver_manager", "adbc_driver_postgresql", "adbc_driver_sqlite"),
    ),
    "frames": ("rows from a CSV file need", ("pandas",)),
    "gwas": ("association studies need", ("opendp", "scipy")),
    "pgen": ("reading .pgen needs", ("pgenlib",)),
    "postgres": ("a ledger on PostgreSQL needs", ("psycopg",)),
    "release": ("releases need", ("duckdb", "ibis", "opendp", "pyarrow", "scipy", "sqlglot")),
    "selection": ("private selection needs", ("opendp",)),
    "spark": ("Spark needs", ("pyspark",)),
    "spreadsheets": ("reading spreadsheets needs", ("python_calamine",)),
    "synthetic": ("learned synthetic tables need", ("jax", "mbi")),
    "distortion": ("the best mechanism needs", ("highspy", "scipy", "threadpoolctl")),
    "vcf": ("reading VCF needs", ("cyvcf2",)),
    "web": ("the page needs", ("fastapi", "tomli_w", "uvicorn")),
}
"""What each extra is for, and the modules that it brings."""


def require_extras(*extras: str) -> None:
    """Refuse to start without these extras."""
    for extra in extras:
        if not is_installed(extra):
            raise MissingExtra(extra, EXTRA_PACKAGES[extra][0])


def is_installed(extra: str) -> bool:
    """Whether all modules of an extra can be found."""
    return all(find_spec(module) is not None for module in EXTRA_PACKAGES[extra][1])


class LazyModule(ModuleType):
    """A module of an extra, or a slow one, that is imported when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        self.__dict__.update(vars(module))  # what it has by now is found without coming here
        return getattr(module, name)
