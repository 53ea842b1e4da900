"""`whosin verify`: the exact leakage of a mechanism, with the case that proves it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.options import Json
from whosin.app.cli.output import print_result
from whosin.documents import read_object
from whosin.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from whosin.mechanisms import Mechanism
    from whosin.spaces import Space

TAKES: dict[str, tuple[str, ...]] = {
    "laplace": ("scale",),
    "geometric": ("scale", "alpha"),
    "gaussian": ("scale",),
    "randomized-response": ("epsilon", "keep"),
    "k-max": ("k",),
    "k-max-published": ("k",),
    "except-first": (),
}
"""The built-in mechanisms, with the options that each takes."""
REFUTED, UNDECIDED = 1, 4
"""Exit codes of a claim; 2 and 3 are for wrong calls and failing environments."""


def verify(
    file: Annotated[
        Path | None, typer.Argument(help="A channel, chain or block file (JSON).")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="A built-in mechanism instead of a file, such as k-max.")
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(help="The adversaries: independent (default), one-of=3, uninformed, …"),
    ] = None,
    notion: Annotated[
        str | None,
        typer.Option(
            help="What to measure: membership (default), nmp, dp, di, dps; on records dp, "
            "bayesian-dp, semantic, bayesian-semantic, identifiability, mutual-information."
        ),
    ] = None,
    prior_file: Annotated[
        Path | None, typer.Option(help="A prior on records (JSON), for the notions that need one.")
    ] = None,
    at_most: Annotated[
        str | None,
        typer.Option(help="A claim to check: exit 0 holds, 1 refuted, 4 undecided."),
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="For dp: add-remove (default) or replace.")
    ] = None,
    direction: Annotated[
        str | None, typer.Option(help="For dp and dps: both (default), positive or negative.")
    ] = None,
    candidates: Annotated[
        int | None, typer.Option("--candidates", "-m", help="For di: how many candidates.")
    ] = None,
    beta: Annotated[str | None, typer.Option(help="For dps: the sampling probability.")] = None,
    entities: Annotated[
        int | None, typer.Option(help="How many people there are, for a built-in mechanism.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Records instead: how many rows.")] = None,
    values: Annotated[int | None, typer.Option(help="Records: how many values a row has.")] = None,
    k: Annotated[int | None, typer.Option("-k", help="k of k-max.")] = None,
    statistic: Annotated[str, typer.Option(help="What noise is added to: count or max.")] = "count",
    scale: Annotated[str | None, typer.Option(help="Scale of Laplace or geometric noise.")] = None,
    alpha: Annotated[str | None, typer.Option(help="α of geometric noise, such as 1/2.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="ε of randomised response.")] = None,
    keep: Annotated[str | None, typer.Option(help="Or its probability of the truth.")] = None,
    json: Json = False,
) -> None:
    """Compute how much a mechanism can raise anyone's belief that someone is in the data.

    The answer is exact, and comes with a witness: the person, the output, what the adversary
    believed before and after. Families: any, independent[=0.05..0.5], one-of-two,
    fixed-size[=0.05..0.5], swap-of-two, one-of=m, fixed-probability=β, uninformed, cliques=k,
    at-most-known=k:0.1..0.9.

    A claim (--at-most) holds, is refuted by a case that is above it, or is undecided: under
    some adversaries the level is known between two numbers only, and the claim is between them.
    """
    from whosin.app.cli.parsing import read_notion
    from whosin.exact import rational
    from whosin.mechanisms import Channel
    from whosin.notions.files import measurement
    from whosin.priors.files import prior_of
    from whosin.report import text
    from whosin.report.data import level_data

    document = None if file is None else read_object(file, "file")
    structured = None if document is None else measurement(document)
    if structured is not None:
        given = {"--mechanism": mechanism, "--family": family, "--notion": notion}
        for option, value in given.items():
            if value is not None:
                raise InvalidInput(option, "left out with a chain or block file", value)
        measured, subject, space = structured
    else:
        said: dict[str, object] = {"family": family, "relation": relation, "direction": direction}
        prior = None if prior_file is None else prior_of(read_object(prior_file, "file"))
        said |= {"m": candidates, "beta": beta, "prior": prior}
        measured = read_notion(notion or "membership", said)
    claim = None if at_most is None else rational(at_most, "--at-most")
    if (file is None) == (mechanism is None):
        raise InvalidInput("input", "a channel file or --mechanism, one of the two", "both or none")
    if structured is not None:
        level = measured.measure(subject, space)
    elif document is not None:
        level = measured.measure(Channel.from_dict(document))
    else:
        assert mechanism is not None
        options = {"k": k, "scale": scale, "alpha": alpha, "epsilon": epsilon, "keep": keep}
        built = _mechanism(mechanism, statistic, options)
        level = measured.measure(built, _space(entities, rows, values))
    print_result(json, level_data(level, measured, claim), text.print_level, level, measured, claim)
    if claim is not None:
        code = {True: 0, False: REFUTED, None: UNDECIDED}[level.holds(claim)]
        if code:
            raise typer.Exit(code)


def _space(entities: int | None, rows: int | None, values: int | None) -> Space:
    from whosin.spaces import Records, Subsets

    if entities is not None and rows is None and values is None:
        return Subsets(entities)
    if entities is None and rows is not None and values is not None:
        return Records(rows, values)
    raise InvalidInput("--entities", "given, or --rows and --values for records", "not that")


def _mechanism(name: str, statistic: str, options: Mapping[str, object]) -> Mechanism:
    """A built-in mechanism from its options; each takes its own and no others."""
    from whosin.exact import rational
    from whosin.mechanisms import MECHANISMS

    if name not in TAKES:
        raise UnknownName("--mechanism", name, TAKES)
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in TAKES[name]:
            raise InvalidInput(f"--{option}", f"left out with --mechanism {name}", given[option])
    if TAKES[name] and not given:
        flags = " or ".join("-k" if option == "k" else f"--{option}" for option in TAKES[name])
        raise InvalidInput(flags, f"given with --mechanism {name}", "nothing")
    values: dict[str, Any] = {
        option: value if option == "k" else rational(value, f"--{option}")
        for option, value in given.items()
    }
    noise = {"statistic": statistic} if "scale" in TAKES[name] else {}
    return MECHANISMS[name](**noise, **values)
