"""The words for who is looking and how sure they may become, as data.

Contract: a word is one thing, whether it is a key of a scenario file, an option of the command or a
field of the page. Targets and families name the words that choose them; `calibration.reading` reads
them all. Nothing is imported here, so that the command can offer its options at once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """One word.

    Attributes:
        name: its spelling in files; on the command line it has two dashes before it.
        takes: "number", "whole", "range", "text", or "flag" for true and false.
        help: what it says, in a sentence.
        short: another spelling of the option, if it has one.
    """

    name: str
    takes: str
    help: str
    short: str = ""


def _words(*listed: Word) -> dict[str, Word]:
    return {word.name: word for word in listed}


TARGET = _words(
    Word("posterior", "number", "The most sure they may become."),
    Word("gamma", "number", "Or the most a belief may grow, ×γ."),
    Word("gain", "number", "Or the most it may grow, as a sum."),
    Word("advantage", "number", "Or the largest TPR − FPR."),
    Word("rho", "number", "Or the most for one of the candidates."),
    Word("candidates", "whole", "How many candidates there are.", "-m"),
    Word("epsilon", "number", "Or plain ε."),
    Word("hipaa", "flag", "Or 1.5%, read out of HIPAA's safe harbour."),
    Word("delta", "number", "The promise may fail with this probability."),
)
"""How sure they may become: exactly one target, and δ if the promise may fail."""

ADVERSARY = _words(
    Word("prior", "range", "How sure they may be already: 0.05..0.5, or 0.5."),
    Word("size-known", "flag", "They know how many are in the data."),
    Word("linked", "whole", "The most people who come and go together."),
    Word("known", "whole", "The most people whom they know to be in or out."),
    Word("uninformed", "flag", "They know nothing at all."),
    Word("family", "text", "Or name the adversaries: at-most-known=10:0.1..0.9, …"),
    Word(
        "people",
        "whole",
        "How many people there are, at the least.",
        "--entities",
    ),
)
"""Who may be looking."""
