"""Hypothesis strategies: spaces, exact channels, priors and families that shrink to small ones."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

import whosin as wi

MOST = 3

sizes = st.integers(1, MOST)
ratios = st.fractions(1, 50, max_denominator=50)
beliefs = st.fractions(Fraction(1, 40), Fraction(39, 40), max_denominator=40)
probabilities = st.fractions(0, 1, max_denominator=12)


@st.composite
def distributions(draw: st.DrawFn, length: int) -> list[Fraction]:
    """Exact probabilities, zeros included."""
    parts = draw(st.lists(st.integers(0, 6), min_size=length, max_size=length).filter(any))
    return [Fraction(part, sum(parts)) for part in parts]


@st.composite
def tables(draw: st.DrawFn, n: int, outputs: int | None = None) -> list[list[Fraction]]:
    """The rows of a channel over n entities."""
    count = outputs or draw(st.integers(1, 4))
    return [draw(distributions(count)) for _ in range(2**n)]


@st.composite
def channels(draw: st.DrawFn, n: int | None = None, outputs: int | None = None) -> wi.Channel:
    """Exact channels over all subsets of a few entities."""
    size = n or draw(sizes)
    return wi.Channel(wi.Subsets(size), draw(tables(size, outputs)))


@st.composite
def priors(draw: st.DrawFn, n: int) -> wi.priors.Prior:
    """Every kind of prior on n entities."""
    inside = st.fractions(Fraction(1, 12), Fraction(11, 12), max_denominator=12)
    return draw(
        st.one_of(
            st.just(wi.priors.Uniform()),
            st.lists(probabilities, min_size=n, max_size=n).map(wi.priors.Independent),
            st.builds(
                wi.priors.FixedSize, st.lists(inside, min_size=n, max_size=n), st.integers(0, n)
            ),
            distributions(n + 1).map(wi.priors.Exchangeable),
            distributions(2**n).map(wi.priors.Table),
        )
    )


@st.composite
def intervals(draw: st.DrawFn) -> tuple[Fraction, Fraction]:
    """Ranges of beliefs with something strictly between 0 and 1 in them."""
    low, high = sorted(draw(st.tuples(probabilities, probabilities)))
    return (low, high) if low < high or 0 < low < 1 else (Fraction(0), Fraction(1))


@st.composite
def families(draw: st.DrawFn, n: int) -> wi.families.Family:
    """Every family in the registry, with parameters that suit n entities."""
    low, high = draw(intervals())
    made: dict[str, st.SearchStrategy[wi.families.Family]] = {
        "any": st.just(wi.families.AnyPrior()),
        "independent": st.just(wi.families.Independent(low, high)),
        "one-of-two": st.just(wi.families.OneOfTwo(low, high)),
        "fixed-size": st.sampled_from([wi.families.FixedSize(), wi.families.FixedSize(low, high)]),
        "swap-of-two": st.just(wi.families.SwapOfTwo()),
        "one-of": st.integers(2, max(n, 2)).map(wi.families.OneOf),
        "fixed-probability": beliefs.map(wi.families.FixedProbability),
        "uninformed": st.just(wi.families.Uninformed()),
        "cliques": st.integers(1, n).map(wi.families.Cliques),
        "at-most-known": st.builds(
            lambda k, ends: wi.families.AtMostKnown(k, *sorted(ends)),
            st.integers(0, n),
            st.tuples(beliefs, beliefs),
        ),
        "explicit": st.lists(priors(n), min_size=1, max_size=3).map(wi.families.Explicit),
    }
    for name, kind in wi.families.FAMILY_KINDS.items():
        if name not in made and not kind.about_records:
            made[name] = st.just(wi.families.read_family(kind.example))
    if n == 1:
        del made["one-of"]
    found: wi.families.Family = draw(st.one_of(*made.values()))
    return found
