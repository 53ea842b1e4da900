"""What is odd about the outputs of a search, and what is refused for it.

Contract: an audit that could not have seen anything says so; it never passes for one that looked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from whosin.audit.describing import MOST as DESCRIBED
from whosin.audit.describing import Token
from whosin.audit.freezing import Raised
from whosin.audit.outputs import FORMS, NUMBERS, Outputs, alike, join
from whosin.audit.sampling import is_constant, raised
from whosin.audit.tokens import count_tokens
from whosin.audit.trials import distinct_outputs
from whosin.errors import InvalidInput

BLIND = (
    "every output was distinct, without a number and without a part that comes again, so nothing "
    "could be learnt: let the mechanism return what an observer would compare"
)
SHARE = 0.001
"""What comes again in a smaller share of the draws comes again by chance."""
NUMBERED = 0.01
"""Numbers in a smaller share of the draws are an accident of random text."""


def remarks(parts: Sequence[Outputs]) -> Iterator[str]:
    """Sentences about the outputs of a search: with, without, with, without."""
    if is_constant(*parts):
        yield "the output was the same in every draw of both worlds"
    elif all(is_constant(*pair) for pair in (parts[0::2], parts[1::2])):
        yield "no randomness: each world has one output, so any claim of privacy is false"
    elif is_blind(parts):
        yield BLIND
    draws = sum(len(part) for part in parts)
    for name, count in sum((raised(part) for part in parts), Counter()).most_common(3):
        yield f"{count:,} of {draws:,} draws raised {name}, which counts as an output"
    if any(_is_cut(part) for part in parts):
        yield f"of outputs with more than {DESCRIBED:,} parts the others were compared as a whole"


def is_blind(parts: Sequence[Outputs]) -> bool:
    """Whether no event could have told anything: every output is the same, or none comes again."""
    if is_constant(*parts):
        return True
    if len({(part.kind, part.width) for part in parts}) == 1 and parts[0].kind != FORMS:
        return False
    both = join(parts[0::2]), join(parts[1::2])
    both = tuple(alike(both))  # type: ignore[assignment]
    draws = len(both[0]) + len(both[1])
    if both[0].kind != FORMS or distinct_outputs(both) < draws:
        return False
    numbered = sum(bool(_numbers(each)) for each in _descriptions(both))
    counts: Counter[Token] = count_tokens(both[0]) + count_tokens(both[1])
    least = max(3, SHARE * draws)
    again = any(least <= count <= draws - least for count in counts.values())
    return not again and numbered < NUMBERED * draws


def _descriptions(both: Sequence[Outputs]) -> Iterator[object]:
    for outputs in both:
        yield from outputs.descriptions


def _numbers(about: object) -> bool:
    return any(place[-1:] != ("length",) for place in about.numbers)  # type: ignore[attr-defined]


def _is_cut(outputs: Outputs) -> bool:
    return outputs.kind == FORMS and any(not about.whole for about in outputs.descriptions)


def check_returns(parts: Sequence[Outputs]) -> None:
    """Refuse a mechanism that never returned, for one and the same reason in every draw."""
    if all(part.kind != NUMBERS for part in parts) and is_constant(*parts):
        first = parts[0].as_forms().values[0]
        if isinstance(first, Raised):
            accepted = "a function that returns an output in some draw"
            got = f"{first.name}: {first.text} in every draw of both worlds"
            raise InvalidInput("mechanism on the input “with”", accepted, got)
