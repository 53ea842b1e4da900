"""Documents: what is said about a result, in sections of parts, with numbers as people read them.

Contract: a document is plain data that every back end can show. Names from files are as they came:
each back end makes them harmless in its own way. Numbers are texts: what stands after "at most" is
rounded up, after "at least" down (`exact.Rounding`); nothing is rounded to a certainty that it is
not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from whosin.exact import MIN_POWER, Rounding, format_decimals, format_figures, format_power
from whosin.exact import format_epsilon as format_epsilon

if TYPE_CHECKING:
    from whosin.release import Answer


class Strong(str):
    """Words that stand out."""

    __slots__ = ()


Words = str | tuple[str, ...]
"""A text, or several one after the other, some of them `Strong`."""
Tone = Literal["plain", "soft", "strong", "good", "bad", "open"]


@dataclass(frozen=True)
class Paragraph:
    """Some sentences. The tones good, bad and open are for verdicts."""

    text: Words
    tone: Tone = "plain"


def note(text: str) -> Paragraph:
    """A remark, less prominent than the rest."""
    return Paragraph(text, "soft")


@dataclass(frozen=True)
class TextTable:
    """Rows of texts.

    Attributes:
        columns: their names; without names it is a table of facts: what it is, and how much.
        right: the columns of numbers, which stand to the right; the first one of a table of facts,
            if anything is named.
        lead: how many columns together name a row.
        most: how many rows a terminal shows; all where it is None.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Words, ...], ...]
    right: frozenset[str] = frozenset()
    lead: int = 1
    most: int | None = None


def make_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Words]],
    right: Sequence[str] = (),
    lead: int = 1,
) -> TextTable:
    """A table of these columns, those of numbers to the right."""
    return TextTable(tuple(columns), tuple(map(tuple, rows)), frozenset(right), lead)


def list_facts(*rows: tuple[Words, Words]) -> TextTable:
    return TextTable((), rows)


@dataclass(frozen=True)
class Chart:
    """A picture, drawn when it is shown.

    Attributes:
        draw: makes it with Altair.
        plot: makes it of letters, in a terminal of so many columns; where it is None a terminal
            shows nothing.
    """

    draw: Callable[[], Any]
    plot: Callable[[int], str] | None = None


BEFORE_MARK, AFTER_MARK, NEVER_MARK = "●", "◐", "○"
MARKS_IN_LINE = 20


@dataclass(frozen=True)
class Marks:
    """A hundred marks, ten people each. People out of 1,000 were understood best in a study with
    963 people (Nanayakkara et al. 2023). Numbers are rounded towards the greater risk.

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
        numbers = count_marks(before), max(count_marks(before), count_marks(after))
        return cls(*numbers, (when[0], when[1])) if when else cls(*numbers)

    def lines(self) -> list[str]:
        """Five lines of twenty marks."""
        row = BEFORE_MARK * self.before + AFTER_MARK * (self.after - self.before)
        row = row.ljust(100, NEVER_MARK)
        return [row[start : start + MARKS_IN_LINE] for start in range(0, 100, MARKS_IN_LINE)]

    def words(self) -> str:
        first, then = self.when
        full, half = BEFORE_MARK, AFTER_MARK
        return f"Each mark is 10 people: {full} {first}, {full} and {half} at most {then}."


@dataclass(frozen=True)
class Theorems:
    """The theorems that a statement rests on, by their numbers."""

    numbers: tuple[str, ...]


@dataclass(frozen=True)
class TableSet:
    """The tables of an answer that has several: `table_views` says how they are read."""

    answer: Answer
    request: str = ""


Part = Paragraph | TextTable | Chart | Marks | Theorems | TableSet


@dataclass(frozen=True)
class TextSection:
    """A part of a document with a heading, which may be empty.

    Attributes:
        aside: a few words beside the heading.
        level: 2 for a chapter, 3 for a section of one.
        new_page: whether it begins a page where it is printed.
    """

    heading: str
    parts: tuple[Part, ...]
    aside: str = ""
    level: int = 3
    new_page: bool = False


@dataclass(frozen=True)
class Document:
    """Everything that is said about a result; `title` may be empty."""

    title: str
    sections: tuple[TextSection, ...]


def make_section(
    heading: str,
    *parts: Part | str,
    aside: str = "",
    level: int = 3,
    new_page: bool = False,
) -> TextSection:
    """A section; texts are its paragraphs."""
    made = tuple(Paragraph(part) if isinstance(part, str) else part for part in parts)
    return TextSection(heading, made, aside, level, new_page)


def make_document(title: str, *parts: Part | str) -> Document:
    """A document of one section without a heading."""
    return Document(title, (make_section("", *parts),))


# Documents as plain data, which a page shows.


@dataclass(frozen=True)
class SectionData:
    """A section of sentences, with its picture of people."""

    title: str
    lines: tuple[str, ...]
    marks: Marks | None = None


def plain_words(words: Words) -> str:
    return words if isinstance(words, str) else "".join(words)


def section_data(sections: Sequence[TextSection]) -> list[SectionData]:
    """The sentences of sections that have a heading."""
    return [
        SectionData(
            section.heading,
            tuple(plain_words(part.text) for part in section.parts if isinstance(part, Paragraph)),
            next((part for part in section.parts if isinstance(part, Marks)), None),
        )
        for section in sections
        if section.heading
    ]


FOUR_DIGIT_WIDTH = len("9,999")


def format_count(count: int) -> str:
    """A number of things, with commas."""
    return f"{count:,}"


def format_plural(count: int, noun: str) -> str:
    """A number of things and what they are: 1 row, 2,000 rows."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def format_general(value: float, digits: int = 6) -> str:
    """A number with at most so many digits, rounded to the nearest: a δ that somebody gave, or an
    estimate."""
    return "∞" if value == math.inf else f"{float(value):.{digits}g}"


def format_fixed(value: float, digits: int) -> str:
    """A number with this many decimals, and commas; nothing is shown as −0."""
    return "∞" if value == math.inf else f"{round(float(value), digits) + 0.0:,.{digits}f}"


def format_at_least(value: float) -> str:
    """A number with four decimals, rounded down."""
    return "∞" if value == math.inf else f"{math.floor(value * 10_000) / 10_000:.4f}"


def format_short(value: float | Fraction, rounded: Rounding = "nearest") -> str:
    """A few significant digits, with the ratio in front where it is a short one."""
    if value == math.inf:
        return "∞"
    if isinstance(value, Fraction) and value.denominator == 1 and abs(value) < 10**6:
        return str(value.numerator)
    if value >= MIN_POWER:
        return "about " * (rounded == "nearest") + format_power(value, rounded)
    if isinstance(value, Fraction) and value.denominator < 1000 and abs(value.numerator) < 10**4:
        return f"{value.numerator}/{value.denominator} ≈ {format_figures(value)}"
    return format_figures(value, 6, rounded)


def rounding_side(exact: bool) -> Rounding:
    """How a level is rounded: one that is only bounded, up."""
    return "nearest" if exact else "up"


def is_rounded(value: float | Fraction) -> bool:
    """Whether `format_short` shows fewer digits than the value has."""
    text = format_short(value)
    return not (
        "/" in text
        or text == "∞"
        or value >= MIN_POWER
        or (text[-1].isdigit() and Fraction(text.replace(",", "")) == value)
    )


def format_point(value: float, spec: str = "") -> str:
    """A point of a column, with commas from five digits on: 2024 may be a year, 20,240 is none."""
    text = f"{value:,{spec}}"
    short = len(text.lstrip("-").partition(".")[0]) <= FOUR_DIGIT_WIDTH
    return text.replace(",", "") if short else text


def format_plink(value: object, digits: int = 6) -> str:
    """A cell as PLINK writes it: a number with at most so many digits, NA where there is none."""
    if isinstance(value, float):
        return f"{value:.{digits}g}" if math.isfinite(value) else "NA"
    return str(value) or "NA"


def margin_decimals(margin: float) -> int:
    """Decimals worth showing beside a margin of error: its first two digits."""
    if not margin > 0:
        return 0
    return max(0, min(6, 1 - math.floor(math.log10(margin))))


def per_thousand(share: float) -> int:
    """People out of 1,000, rounded up."""
    return min(1000, int(format_decimals(share * 1000, 0, "up")))


def count_marks(share: float) -> int:
    """Marks out of a hundred, rounded up."""
    return min(100, int(format_decimals(share * 100, 0, "up")))
