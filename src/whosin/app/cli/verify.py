"""`whosin verify`: the exact leakage of a mechanism, with the case that proves it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.main import Json, add_options, print_result, refuse_options
from whosin.documents import read_object
from whosin.errors import InvalidInput

if TYPE_CHECKING:
    from whosin.mechanisms import Mechanism
    from whosin.notions import Level, Notion
    from whosin.spaces import Space

REFUTED, UNDECIDED = 1, 4
"""Exit codes of a claim; 2 and 3 are for wrong calls and failing environments."""


@add_options("notion_words", "mechanism_words")
def verify(
    notion_words: Mapping[str, Any],
    mechanism_words: Mapping[str, Any],
    file: Annotated[
        Path | None, typer.Argument(help="A channel, chain or block file (JSON).")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="A built-in mechanism instead of a file, such as k-max.")
    ] = None,
    notion: Annotated[
        str | None,
        typer.Option(
            help="What to measure: membership (default), nmp, dp, di, dps; on records dp, "
            "bayesian-dp, semantic, bayesian-semantic, identifiability, mutual-information; on "
            "both leakage, maximal-leakage, pointwise-leakage, capacity, metric-privacy."
        ),
    ] = None,
    simulated_from: Annotated[
        Path | None,
        typer.Option(
            help="Another channel file: can what FILE shows be simulated from what it shows?"
        ),
    ] = None,
    at_most: Annotated[
        str | None,
        typer.Option(help="A claim to check: exit 0 holds, 1 refuted, 4 undecided."),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(help="The promise may fail with this probability: γ as a bracket."),
    ] = None,
    entities: Annotated[
        int | None, typer.Option(help="How many people there are, for a built-in mechanism.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Records instead: how many rows.")] = None,
    values: Annotated[int | None, typer.Option(help="Records: how many values a row has.")] = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="Debit this ledger for the file's releases, before you publish them."),
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="With --ledger: the dataset's name.")] = None,
    request: Annotated[
        str | None,
        typer.Option(help="With --ledger: an id of these releases; repeated, it costs nothing."),
    ] = None,
    json: Json = False,
) -> None:
    """Compute how much a mechanism can raise anyone's belief that someone is in the data.

    The answer is exact, and comes with a witness: the person, the output, what the adversary
    believed before and after. Families: any, independent[=0.05..0.5], one-of-two,
    fixed-size[=0.05..0.5], swap-of-two, one-of=m, fixed-probability=β, uninformed, cliques=k,
    at-most-known=k:0.1..0.9; on records value[=0.05..0.5].

    A claim (--at-most) holds, is refuted by a case that is above it, or is undecided: under
    some adversaries the level is known between two numbers only, and the claim is between them.

    With --delta the promise may fail with that probability, given that the person is in.

    With --ledger and --dataset the releases of a file are measured together with all that were
    debited there before, and paid for; above the dataset's target they are refused.

    With --simulated-from nobody gains more from FILE than from the other channel (exit 0), or
    somebody does, and is shown (exit 1).
    """
    from whosin.exact import rational
    from whosin.mechanisms import Channel, read_mechanism
    from whosin.notions import PositiveMembership
    from whosin.notions.reading import read_measurement, read_notion
    from whosin.report.levels import describe_level, level_data

    if simulated_from is not None:
        named = {"mechanism": mechanism, "notion": notion, "at-most": at_most, "delta": delta}
        refuse_options(_spell_options(named, notion_words, mechanism_words), "--simulated-from")
        _compare_channels(file, simulated_from, json)
        return
    document = None if file is None else read_object(file, file.name)
    if ledger is not None or dataset is not None or request is not None:
        named = {"mechanism": mechanism, "notion": notion, "at-most": at_most, "delta": delta}
        refuse_options(_spell_options(named, notion_words, mechanism_words), "--ledger")
        _debit_jointly(document, {"--ledger": ledger, "--dataset": dataset}, request, json)
        return
    if document is not None and "gaussian" in document:
        named = {"mechanism": mechanism, "notion": notion, "delta": delta}
        refuse_options(_spell_options(named, notion_words, mechanism_words), "a Gaussian file")
        _measure_gaussian(document, at_most, json)
        return
    structured = None if document is None else read_measurement(document)
    if structured is not None:
        measured, subject, space = structured
        measured, words = _choose_notion(measured, {"notion": notion, **notion_words})
        words = {"mechanism": mechanism, **words, **mechanism_words}
        refuse_options(_spell_options(words), "a chain or block file")
    else:
        measured = read_notion(notion or "membership", notion_words)
    claim = None if at_most is None else rational(at_most, "--at-most")
    failing = rational(delta, "--delta") if delta is not None else Fraction(0)
    if failing and not isinstance(measured, PositiveMembership):
        raise InvalidInput(
            f"--delta is for membership and nmp, and {notion or 'this notion'} is measured here",
            field="--delta",
            value=delta,
            hint="leave it out",
        )
    if (file is None) == (mechanism is None):
        both = file is not None
        raise InvalidInput(
            "FILE and --mechanism cannot be given together"
            if both
            else "nothing to verify is given",
            field="--mechanism" if both else "FILE",
            value=mechanism,
            hint="give a channel file (.json), or a mechanism such as --mechanism exact",
        )
    if structured is not None:
        level = _measure_level(measured, subject, space, failing)
    elif document is not None:
        level = _measure_level(measured, Channel.from_dict(document), None, failing)
    else:
        assert mechanism is not None
        built = read_mechanism(mechanism, mechanism_words)
        level = _measure_level(measured, built, _read_space(entities, rows, values), failing)
    data = level_data(level, measured, claim)
    if failing:
        data["delta"] = failing
    print_result(json, data, describe_level, level, measured, claim)
    if claim is not None:
        code = {True: 0, False: REFUTED, None: UNDECIDED}[level.holds(claim)]
        if code:
            raise typer.Exit(code)


def _choose_notion(measured: Notion, words: dict[str, Any]) -> tuple[Notion, dict[str, Any]]:
    """What a chain file asks to be measured, or its semantic privacy where that is named; and the
    words that are left over."""
    from whosin.notions import BayesianDifferentialPrivacy, BayesianSemanticPrivacy

    name, rest = words["notion"], {**words, "notion": None}
    if isinstance(measured, BayesianDifferentialPrivacy):
        if name in BayesianDifferentialPrivacy.short_names:
            return measured, rest
        if name in BayesianSemanticPrivacy.short_names:
            default = rest.pop("default", None)
            return BayesianSemanticPrivacy(measured.prior, default or 0), rest
    return measured, words


def _debit_jointly(
    document: dict[str, Any] | None,
    place: Mapping[str, str | None],
    request: str | None,
    json: bool,
) -> None:
    """Pay for the releases of a file, measured together with those that were paid before."""
    from whosin.ledger import JointBudget, Ledger
    from whosin.ledger.encoding import canonical_json, digest_text
    from whosin.notions.reading import split_releases
    from whosin.report.levels import describe_joint_debit

    if document is None or None in place.values():
        missing = next((key for key in place if place[key] is None), "FILE")
        hint = "give FILE, --ledger and --dataset together"
        raise InvalidInput(f"a debit needs {missing} too", field=missing, hint=hint)
    where, name = map(str, place.values())
    model, releases = split_releases(document)
    with Ledger(where, create=False) as opened:
        budget = JointBudget(opened, name, model)
        named = request or digest_text(canonical_json(document, "file"))[:16]
        debit = budget.debit(list(releases), named)
        together = budget.releases()
        state = opened.budget_state(name)
        data = {"dataset": name, "request": named, "new": debit.new, "releases": len(together)}
        data |= {"epsilon": budget.level(together), "spent": state.epsilon, "left": state.remaining}
        print_result(json, data, describe_joint_debit, data)


def _measure_gaussian(document: dict[str, Any], at_most: str | None, json: bool) -> None:
    """What the Gaussian releases of a file leak together, and the exit code of a claim."""
    from whosin.exact import rational
    from whosin.notions.reading import measure_gaussian_file, split_releases
    from whosin.report.levels import describe_gaussian_leakage, gaussian_leakage_data

    found = measure_gaussian_file(*split_releases(document))
    claim = None if at_most is None else rational(at_most, "--at-most")
    data = gaussian_leakage_data(found, claim)
    print_result(json, data, describe_gaussian_leakage, data)
    if data["holds"] is not True and claim is not None:
        raise typer.Exit(UNDECIDED if data["holds"] is None else REFUTED)


def _spell_options(*given: Mapping[str, Any]) -> dict[str, Any]:
    return {f"--{word}": value for words in given for word, value in words.items()}


def _compare_channels(file: Path | None, other: Path, json: bool) -> None:
    """Whether one channel can be simulated from another, and the exit code of it."""
    from whosin.mechanisms import Channel
    from whosin.refinement import simulates
    from whosin.report.levels import comparison_data, describe_comparison

    if file is None:
        message = "FILE is missing, the channel that is to be simulated"
        hint = "write whosin verify FILE --simulated-from OTHER"
        raise InvalidInput(message, field="FILE", hint=hint)
    source, target = Channel.load(other), Channel.load(file)
    result = simulates(source, target)
    data = comparison_data(result, source, target)
    print_result(json, data, describe_comparison, result, source, target)
    code = {True: 0, False: REFUTED, None: UNDECIDED}[result.holds]
    if code:
        raise typer.Exit(code)


def _measure_level(
    notion: Notion, mechanism: Mechanism, space: Space | None, delta: Fraction
) -> Level:
    """The level, with a failure probability if there is one."""
    from whosin.notions import PositiveMembership

    if delta:
        assert isinstance(notion, PositiveMembership)
        return notion.measure(mechanism, space, delta=delta)
    return notion.measure(mechanism, space)


def _read_space(entities: int | None, rows: int | None, values: int | None) -> Space:
    from whosin.spaces import Records, Subsets

    if entities is not None and rows is None and values is None:
        return Subsets(entities)
    if entities is None and rows is not None and values is not None:
        return Records(rows, values)
    message = "a built-in mechanism needs the size of the data"
    hint = "give either --entities, or --rows and --values for records"
    raise InvalidInput(message, field="--entities", value=entities, hint=hint)
