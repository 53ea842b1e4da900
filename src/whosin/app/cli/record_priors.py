"""A prior on records from the command line: in words, or from a file, with the space it is about.

Files are those of `whosin verify` and `whosin plan`: a prior file ({"kind": "exchangeable", …}), a
chain file, a block file (row i is 1 where person i is present). What a file says about the number
of rows and values need not be said again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whosin.app.cli import files
from whosin.errors import InvalidInput
from whosin.priors import Exchangeable, Independent, MarkovChain, Prior, Table, Uniform
from whosin.spaces import Records


def in_words(text: str, rows: int | None, values: int | None) -> tuple[Prior, Records]:
    """`uniform`, one distribution for every row, or one a row."""
    if rows is None:
        raise InvalidInput("--rows", "given: how many rows", "nothing")
    space = Records(rows, 2 if values is None else values)
    if text == "uniform":
        return Uniform(), space
    listed = [[part.strip() for part in row.split(",")] for row in text.strip(";").split(";")]
    if any(len(row) != space.values for row in listed):
        raise InvalidInput(
            "--prior", f"uniform, or {space.values} probabilities, as --values says", repr(text)
        )
    if len(listed) not in (1, space.rows):
        raise InvalidInput("--prior", f"one distribution, or {space.rows}, one a row", len(listed))
    return Independent(listed if len(listed) > 1 else listed[0]), space


def from_file(path: Path, rows: int | None, values: int | None) -> tuple[Prior, Records]:
    """The prior in a file, on the space that the file and the options say."""
    data = files.load(path)
    prior: Prior
    if "chain" in data or "chains" in data:
        series = files.chain_file(data)
        if len(series.chains) != 1:
            raise InvalidInput("chains", "one chain: a single prior", len(series.chains))
        prior, sizes = series.chains[0], (series.space.rows, series.space.values)
    elif "blocks" in data:
        prior, people = files.block_prior(data)
        sizes = (people, 2)
    else:
        prior = files.prior_of(data)
        sizes = _sizes(prior, rows, values)
    said = {"--rows": (rows, sizes[0]), "--values": (values, sizes[1])}
    for option, (asked, inside) in said.items():
        if asked is not None and asked != inside:
            raise InvalidInput(option, f"{inside}, as the file says, or left out", asked)
    return prior, Records(*sizes)


def _sizes(prior: Prior, rows: int | None, values: int | None) -> tuple[int, int]:
    """How many rows of how many values a prior is about, where it says so."""
    count: int | None = rows
    m = 2 if values is None else values
    if isinstance(prior, Exchangeable):
        count, m = len(prior.sizes) - 1, 2
    elif isinstance(prior, MarkovChain):
        m = prior.values
    elif isinstance(prior, Independent):
        listed: Any = prior.p
        if isinstance(listed[0], tuple):
            count, m = len(listed), len(listed[0])
        else:
            m = len(listed)
    elif isinstance(prior, Table) and rows is None and m > 1 and prior.length is not None:
        count = next((n for n in range(1, 64) if m**n >= prior.length), 1)
    if count is None:
        raise InvalidInput("--rows", "given: the file does not say how many rows", "nothing")
    return count, m
