"""Documents as text, for tests that read them."""

from __future__ import annotations

from collections.abc import Sequence

from whosin.report.document import TextSection, section_data


def section_text(sections: Sequence[TextSection]) -> str:
    """The headings and sentences of sections, a line each."""
    return "\n".join(line for each in section_data(sections) for line in (each.title, *each.lines))
