"""Numbers, people out of 1,000, secrets in words, plain data, and small terminal charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from whosin.errors import InvalidInput, invalid_value
from whosin.exact import Rounding, format_decimals, format_figures
from whosin.families import Explicit, Family
from whosin.plain_files import check_output

if TYPE_CHECKING:
    from whosin.curves.curve import TradeOff
    from whosin.mechanisms import Channel
    from whosin.notions import Level, Notion
    from whosin.refinement import Comparison


WIDTH, HEIGHT, LEAST, MARGIN = 61, 16, 21, 7
MAX_DECADES = 5
"""Rates are drawn from 10^−5 on; each has three lines, so that they are labelled in place."""
Curve = tuple[str, str, Callable[[float], float]]
"""A mark of one character, a name, and the posterior as a function of the prior."""


def belief_plot(
    curves: Sequence[Curve], band: tuple[float, float] = (0.0, 1.0), most: int = 80
) -> str:
    """Posterior against prior, both from 0 to 1; the beliefs that a plan assumes are underlined.

    Args:
        most: how many columns the terminal has.
    """
    width = max(LEAST, min(WIDTH, most - MARGIN))
    cells = [[" "] * width for _ in range(HEIGHT)]
    for mark, _name, posterior in curves:
        for column in range(width):
            value = posterior(column / (width - 1))
            row = HEIGHT - 1 - round(value * (HEIGHT - 1))
            cells[row][column] = mark
    lines = []
    for row, line in enumerate(cells):
        label = {0: "100%", HEIGHT // 2: " 50%", HEIGHT - 1: "  0%"}.get(row, "    ")
        lines.append(f"{label} │{''.join(line).rstrip()}")
    first, last = (round(end * (width - 1)) for end in band)
    axis = "".join("━" if first <= column <= last else "─" for column in range(width))
    lines.append(f"     └{axis}")
    lines.append(f"      0%{'prior belief'.center(width - 6)}100%")
    lines.extend(f"      {mark} {name}" for mark, name, _ in curves)
    return "\n".join(lines)


def rates_plot(
    curve: TradeOff, promise: tuple[Fraction, Fraction] | None = None, most: int = 80
) -> str:
    """How many a test recognises at most (TPR), by how many it accuses by mistake (FPR), on
    logarithmic axes; a target (FPR, TPR) is a cross."""
    width, height = max(LEAST, min(WIDTH, most - MARGIN - 2)), 3 * MAX_DECADES + 1
    cells = [[" "] * width for _ in range(height)]

    def put(mark: str, fpr: float, tpr: float) -> None:
        column, row = (
            round((1 + math.log10(max(rate, 1e-300)) / MAX_DECADES) * (steps - 1))
            for rate, steps in ((fpr, width), (tpr, height))
        )
        if 0 <= column < width and 0 <= row < height:
            cells[height - 1 - row][column] = mark

    rates = [10 ** (MAX_DECADES * (column / (width - 1) - 1)) for column in range(width)]
    for fpr in rates:
        put("·", fpr, fpr)
    for fpr in rates:
        put("●", fpr, float(curve.tpr(fpr)))
    if promise is not None:
        put("✚", float(promise[0]), float(promise[1]))
    lines = []
    for row, line in enumerate(cells):
        label = f"{100 / 10 ** (row // 3):g}%" if row % 3 == 0 else ""
        lines.append(f"{label:>6} │{''.join(line).rstrip()}")
    lines.append(f"       └{'─' * width}")
    across = "accused by mistake" if width > 2 * LEAST else "accused"
    lines.append(f"        0.001%{across.center(width - 10)}100%")
    lines.append("        · guessing")
    lines.append("        ● the best test")
    if promise is not None:
        lines.append("        ✚ the target")
    return "\n".join(lines)


# Tables on terminals of any width. No number and no word is ever cut. Where a table would have to
# cut, its rows are printed one after the other, a line per cell.


def columns_table(*names: str, right: Container[str] = ()) -> Table:
    """A table with these columns, some of them of numbers, which stand to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def facts_table() -> Table:
    """A table of facts: what it is, and how much."""
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    return table


def print_table(console: Console, table: Table, lead: int = 1) -> None:
    """Print a table, or its rows as entries if a word of it would be cut.

    Args:
        lead: how many columns together name a row.
    """
    with console.capture() as drawn:
        console.print(table)
    cells = (str(cell) for column in table.columns for cell in column.cells)
    words = {word for cell in cells for word in Text.from_markup(cell).plain.split()}
    if words <= set(drawn.get().split()):
        console.print(table)
        return
    heads = [str(column.header) for column in table.columns]
    for row in zip(*(map(str, column.cells) for column in table.columns), strict=True):
        console.print(f"[bold]{' '.join(row[:lead])}[/bold]")
        for head, cell in zip(heads[lead:], row[lead:], strict=True):
            if cell:
                console.print(f"  {head}: {cell}")


FOUR_DIGIT_WIDTH = len("9,999")


def format_short(value: float | Fraction, rounded: Rounding = "nearest") -> str:
    """A few significant digits, with the ratio in front where it is a short one.

    Args:
        rounded: "up" after "at most", "down" after "at least".
    """
    if value == math.inf:
        return "∞"
    if isinstance(value, Fraction) and value.denominator == 1 and abs(value) < 10**6:
        return str(value.numerator)
    if not -1e300 < value < 1e300:
        return "more than 10^300"
    if isinstance(value, Fraction) and value.denominator < 1000 and abs(value.numerator) < 10**4:
        return f"{value.numerator}/{value.denominator} ≈ {format_figures(value)}"
    return format_figures(value, 6, rounded)


def point_words(value: float, spec: str = "") -> str:
    """A point of a column, with commas from five digits on: 2024 may be a year, 20,240 is none."""
    text = f"{value:,{spec}}"
    return (
        text.replace(",", "")
        if len(text.lstrip("-").partition(".")[0]) <= FOUR_DIGIT_WIDTH
        else text
    )


def rounding_side(exact: bool) -> Rounding:
    """How a level is rounded: one that is only bounded, up."""
    return "nearest" if exact else "up"


def is_rounded(value: float | Fraction) -> bool:
    """Whether `format_short` shows fewer digits than the value has."""
    text = format_short(value)
    return not ("/" in text or text == "∞" or (text[-1].isdigit() and Fraction(text) == value))


# Probabilities as people out of 1,000, with a picture in which each mark stands for ten of them.
# This is the form that was understood best in a study with 963 people (Nanayakkara et al. 2023).
# Numbers are rounded towards the greater risk.


MARKS, LINE = 100, 20
BEFORE, AFTER, NEVER = "●", "◐", "○"


def per_thousand(share: float) -> int:
    """People out of 1,000, rounded up."""
    return min(1000, int(format_decimals(share * 1000, 0, "up")))


def per_hundred(share: float) -> int:
    """Marks out of a hundred, rounded up."""
    return min(MARKS, int(format_decimals(share * MARKS, 0, "up")))


@dataclass(frozen=True)
class Marks:
    """A hundred marks, ten people each.

    Attributes:
        before: how many are full before, rounded up.
        after: how many can be full after, at most.
        when: when that is, in words.
    """

    before: int
    after: int
    when: tuple[str, str] = ("before", "after")

    @classmethod
    def of(cls, before: float, after: float, *when: str) -> Marks:
        """The marks for a probability before and one after."""
        numbers = per_hundred(before), max(per_hundred(before), per_hundred(after))
        return cls(*numbers, (when[0], when[1])) if when else cls(*numbers)

    def lines(self) -> list[str]:
        """Five lines of twenty marks."""
        row = BEFORE * self.before + AFTER * (self.after - self.before)
        row += NEVER * (MARKS - self.after)
        return [row[start : start + LINE] for start in range(0, MARKS, LINE)]

    def words(self) -> str:
        """A sentence that says what the marks mean."""
        first, then = self.when
        return f"Each mark is 10 people: {BEFORE} {first}, {BEFORE} and {AFTER} at most {then}."


# What is secret about a person: being in the data, or a value where everyone is known to be in. The
# arithmetic is the same; only the words differ.


@dataclass(frozen=True)
class SecretWords:
    """How one reading is worded.

    Attributes:
        ends: what someone becomes sure of, after "this person …".
        population: who is counted in a population, after "how many …".
        sure: what a promise is about, after "sure".
        given: what a failure probability is given, after "given that …".
        jump: when a count jumps, after "the count jump when …".
    """

    ends: str
    population: str
    sure: str
    given: str
    jump: str


SECRET_WORDS = {
    "membership": SecretWords(
        "is in the data", "could be in it", "", "the person is in", "the person joins"
    ),
    "attribute": SecretWords(
        "has the value",
        "are known to be in it, and could have the value",
        " that a person, known to be in the data, has the value",
        "the person has it",
        "the person has the value",
    ),
}


def secret_words(secret: object, field: str = "secret") -> SecretWords:
    """The words for what is secret: being in the data, or having a value."""
    if not isinstance(secret, str) or secret not in SECRET_WORDS:
        raise invalid_value(field, " or ".join(SECRET_WORDS), repr(secret))
    return SECRET_WORDS[secret]


OUTCOME_WORDS: dict[bool | None, str] = {True: "holds", False: "refuted", None: "undecided"}
"""What a check of a claim can find."""
LONGEST_BITS = 10_000
"""About 3,000 digits; Python prints at most 4,300."""


def level_data(level: Level, notion: Notion, claim: Fraction | None = None) -> dict[str, object]:
    """The keys others read: value, exact, witness {entity, output, prior, posterior, ratio,
    attained}; beside them what was measured, as the options of `verify` read it, and what became of
    a claim."""
    from whosin.notions import NOTION_KINDS
    from whosin.notions.reading import plain_words

    names = {kind: name for name, kind in NOTION_KINDS.items()}
    data: dict[str, object] = {
        "notion": names.get(type(notion), type(notion).__name__),
        "family": _family_spelling(notion),
        **plain_words(notion),
        "unit": notion.unit,
        "value": level.value,
        "value_exact": _spell_ratio(level.value),
        "exact": level.exact,
        "lower": level.lower,
        "theorems": list(level.theorems),
        "note": level.note or None,
        "witness": None,
    }
    case = level.witness if claim is None else level.refutation(claim) or level.witness
    if case is not None:
        keys = ["entity", "output", "prior", "posterior", "ratio", "attained"]
        keys += ["row", "known", "values"] if case.row is not None else []
        keys += ["rows_known"] if case.row is not None and case.rows_known is not None else []
        keys += [key for key in ("guess", "against", "group") if getattr(case, key) is not None]
        data["witness"] = {key: getattr(case, key) for key in keys}
        if case.strategy is not None:
            guesses = [{"output": each, "guess": best} for each, best in case.strategy.items()]
            data["witness"] |= {"strategy": guesses}  # type: ignore[operator]
    if claim is not None:
        holds = level.holds(claim)
        data.update(at_most=claim, holds=holds, outcome=OUTCOME_WORDS[holds])
    return data


def comparison_data(result: Comparison, source: Channel, target: Channel) -> dict[str, object]:
    """Whether a channel can be simulated from another: the simulation, or whom it serves better."""
    data: dict[str, object] = {
        "simulated": result.holds,
        "outcome": OUTCOME_WORDS[result.holds],
        "exact": result.exact,
        "distance": result.distance,
        "simulation": result.simulation,
        "outputs": {"source": list(source.outputs), "target": list(target.outputs)},
        "gain": None,
    }
    if result.gain is not None:
        gains = {"guesses": list(result.gain.guesses), "matrix": result.gain.matrix}
        values = {"target": result.target_value, "source": result.source_value}
        data |= {"gain": gains, "prior": "uniform", "worth": values}
    return data


def _family_spelling(notion: Notion) -> str | None:
    """The adversaries, as `--family` reads them."""
    family = getattr(notion, "family", None)
    if not isinstance(family, Family):
        return None
    return repr(family) if isinstance(family, Explicit) else family.spelled


def _spell_ratio(value: object) -> str | None:
    """A ratio, unless it is too long for anyone to read."""
    if not isinstance(value, Fraction):
        return None
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LONGEST_BITS:
        return None
    return str(value)


def check_writable(path: Path, option: str, endings: Sequence[str]) -> None:
    """Refuse a file that could not be written, before any work is done or anything is spent."""
    if path.suffix.lower() not in endings:
        *first, last = endings
        raise invalid_value(option, f"a file ending in {', '.join(first)} or {last}", path.name)
    if not path.parent.is_dir():
        raise InvalidInput(
            f"there is no folder {path.parent}", field=option, value=str(path), hint="make it first"
        )
    check_output(path, option)


def printable_name(name: object) -> str:
    """A name from a file, safe to print: no markup, no control characters."""
    text = str(name)
    return escape("".join(c if c.isprintable() else repr(c)[1:-1] for c in text))
