"""Gain functions from words, from files and from what a caller passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from whosin.documents import check_keys, read_object
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.notions.gains.base import GainFunction
from whosin.notions.gains.matrix import GainMatrix
from whosin.notions.gains.singling_out import SinglingOut
from whosin.notions.gains.tries import Tries
from whosin.validation import spelled_whole

GAINS: dict[str, Callable[[str], GainFunction]] = {
    "identity": lambda said: Tries(_nothing(said)),
    "tries": lambda said: Tries(spelled_whole(said, "tries")),
    "singling-out": lambda said: SinglingOut(rational(said, "singling-out")),
}
"""How each is made from what follows its name."""


def _nothing(said: str) -> int:
    if said:
        raise InvalidInput("identity", "said alone; tries=3 allows three tries", said)
    return 1


def read_gain(text: str | Path) -> GainFunction:
    """A gain function by its spelling (identity, tries=3, singling-out=1/4) or from a file: an
    object with `matrix` (rows of numbers, one for each guess) and, if you like, `guesses` (their
    names)."""
    name, _, said = str(text).partition("=")
    if name in GAINS:
        return GAINS[name](said)
    if not str(text).endswith(".json"):
        raise UnknownName("gain", str(text), (*GAINS, "a file that ends in .json"))
    data = read_object(Path(text), "gain")
    check_keys(data, ("matrix", "guesses"), "gain")
    if "matrix" not in data:
        raise InvalidInput("matrix", "a list of rows, one for each guess", "nothing")
    return GainMatrix(data["matrix"], data.get("guesses"))


def gain_of(gain: Any) -> GainFunction:
    """The gain function that a caller means: one, its spelling, or a matrix."""
    if isinstance(gain, GainFunction):
        return gain
    return read_gain(gain) if isinstance(gain, str | Path) else GainMatrix(gain)
