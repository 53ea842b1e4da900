"""Laws that hold for every channel, prior and family, on small instances that shrink."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies as ours
import whosin as wi
from whosin import beliefs, families
from whosin.mechanisms import Mixture, PostProcessed
from whosin.notions import DifferentialPrivacy, NegativeMembership, PositiveMembership

EXAMPLES = int(os.environ.get("WHOSIN_EXAMPLES", "8"))
few, many = settings(max_examples=EXAMPLES), settings(max_examples=3 * EXAMPLES)
NOTIONS = (PositiveMembership, NegativeMembership)
data = st.data()


def upper(level):
    """What the engine vouches for; and, for a bound, what a witness attains."""
    return level.value if level.lower is None else level.lower


@few
@given(data)
def test_post_processing_never_raises_a_level(data):
    """Li13 Theorem 3.12 for every family, positive and negative; and for DP."""
    channel = data.draw(ours.channels())
    n, outputs = channel.space.size, len(channel.outputs)
    count = data.draw(st.integers(1, 3))
    stage = [data.draw(ours.distributions(count)) for _ in range(outputs)]
    after = PostProcessed(channel, stage).channel()
    family = data.draw(ours.families(n))
    for notion in NOTIONS:
        before_level, after_level = notion(family).measure(channel), notion(family).measure(after)
        assert upper(after_level) <= before_level.value
        if after_level.exact:
            assert after_level.value <= before_level.value
    for relation in ("add-remove", "replace"):
        notion = DifferentialPrivacy(relation)
        assert notion.measure(after).value <= notion.measure(channel).value


@few
@given(data)
def test_a_mixture_never_exceeds_its_parts(data):
    """Li13 Theorem 3.11, the axiom of choice: the coin costs nothing."""
    first = data.draw(ours.channels(outputs=3))
    n = first.space.size
    second = data.draw(ours.channels(n=n, outputs=3))
    weight = data.draw(ours.probabilities)
    mixed = Mixture([first, second], [weight, 1 - weight]).channel()
    family = data.draw(ours.families(n))
    for notion in NOTIONS:
        parts = [notion(family).measure(part).value for part in (first, second)]
        assert upper(notion(family).measure(mixed)) <= max(parts)


@few
@given(data)
def test_larger_families_leak_no_less(data):
    """D_I² ⊆ D_I ⊆ D_U, D_B² ⊆ D_B ⊆ D_U, D_C^m ⊆ D_B, D_N and D_F^β ⊆ D_I, cliques in k."""
    channel = data.draw(ours.channels())
    n = channel.space.size
    beta = data.draw(ours.beliefs)
    prior = data.draw(ours.priors(n))
    chains = [
        [families.OneOfTwo(), families.Independent(), families.AnyPrior()],
        [families.SwapOfTwo(), families.FixedSize(), families.AnyPrior()],
        [families.Uninformed(), families.Independent()],
        [families.FixedProbability(beta), families.Independent()],
        [
            *(families.AtMostKnown(k, beta / 2, (beta + 1) / 2) for k in range(n + 1)),
            families.Independent(beta / 2, (beta + 1) / 2),
        ],
        [families.Independent(), *(families.Cliques(k) for k in range(1, n + 2))],
        [families.Cliques(n), families.AnyPrior()],
        [families.Explicit(prior), families.AnyPrior()],
        *([families.OneOf(m), families.FixedSize()] for m in range(2, n + 1)),
        *([families.OneOf(m, literal=True), families.OneOf(m)] for m in range(2, n + 1)),
    ]
    for notion in NOTIONS:
        for chain in chains:
            levels = [notion(family).measure(channel).value for family in chain]
            assert levels == sorted(levels), chain
        same = [families.OneOfTwo(), families.Independent(), families.Cliques(1)]
        assert len({notion(family).measure(channel).value for family in same}) == 1


@few
@given(data)
def test_wider_beliefs_leak_no_less(data):
    """D_I^[a,b] grows with [a,b]; D_B^[a,b] as a bound."""
    channel = data.draw(ours.channels())
    low, high = data.draw(ours.intervals())
    wider = low * data.draw(ours.probabilities), 1 - (1 - high) * data.draw(ours.probabilities)
    for notion in NOTIONS:
        for family in (families.Independent, families.FixedSize):
            narrow = notion(family(low, high)).measure(channel)
            wide = notion(family(*wider)).measure(channel)
            assert narrow.value <= wide.value
            assert wide.value <= notion(family()).measure(channel).value


@few
@given(data)
def test_names_do_not_matter(data):
    """Permuting entities (with the prior's own) or outputs keeps every level."""
    channel = data.draw(ours.channels())
    n, outputs = channel.space.size, len(channel.outputs)
    order = data.draw(st.permutations(range(n)))
    columns = data.draw(st.permutations(range(outputs)))
    moved = [sum(1 << order[bit] for bit in range(n) if w >> bit & 1) for w in range(2**n)]
    rows = np.empty((2**n, outputs), dtype=object)
    rows[moved] = channel.exact[:, columns]
    other = wi.Channel(channel.space, rows)
    family = data.draw(ours.families(n))
    renamed = family
    if isinstance(family, families.Explicit):
        tables = [prior.probabilities(channel.space) for prior in family.priors]
        renamed = families.Explicit(
            [wi.priors.Table({moved[w]: m for w, m in enumerate(t) if m}) for t in tables]
        )
    for notion in NOTIONS:
        assert notion(family).measure(channel).value == notion(renamed).measure(other).value
    for relation in ("add-remove", "replace"):
        dp = DifferentialPrivacy(relation)
        assert dp.measure(channel).value == dp.measure(other).value


@few
@given(data)
def test_floats_and_rationals_agree(data):
    """The same channel in floats: the same level to 1e-12, and infinite together."""
    channel = data.draw(ours.channels())
    rounded = wi.Channel(channel.space, channel.likelihoods)
    assert rounded.exact is None
    family = data.draw(ours.families(channel.space.size))
    for notion in (
        *(n(family) for n in NOTIONS),
        DifferentialPrivacy(),
        DifferentialPrivacy("replace"),
    ):
        exact, near = notion.measure(channel), notion.measure(rounded)
        assert isinstance(near.value, float) or near.witness is None
        assert near.value == pytest.approx(float(exact.value), rel=1e-12, abs=1e-12)
        assert near.exact == exact.exact


@few
@given(data)
def test_levels_are_at_least_one_and_scale_free(data):
    """γ ≥ 1 and ε ≥ 0 always; 1 for a channel that does not look at the data."""
    channel = data.draw(ours.channels())
    n = channel.space.size
    family = data.draw(ours.families(n))
    blind = wi.Channel(channel.space, [channel.exact[0]] * 2**n)
    for notion in NOTIONS:
        assert notion(family).measure(channel).value >= 1
        assert notion(family).measure(blind).value == 1
    assert DifferentialPrivacy().measure(channel).value >= 0
    assert DifferentialPrivacy().measure(blind).value == 0


@few
@given(data)
def test_negative_membership_is_positive_membership_of_absence(data):
    """NMP of a channel is PMP of the channel on complements, for families closed under them."""
    channel = data.draw(ours.channels())
    mirrored = wi.Channel(channel.space, channel.exact[::-1])
    low, high = data.draw(ours.intervals())
    for family, mirror in (
        (families.Independent(), families.Independent()),
        (families.Independent(low, high), families.Independent(1 - high, 1 - low)),
        (families.FixedSize(), families.FixedSize()),
        (families.AnyPrior(), families.AnyPrior()),
        (families.Uninformed(), families.Uninformed()),
        (families.Cliques(2), families.Cliques(2)),
    ):
        negative = NegativeMembership(family).measure(channel)
        assert negative.value == PositiveMembership(mirror).measure(mirrored).value


@many
@given(ours.beliefs, ours.ratios)
def test_gamma_and_largest_ratio_are_inverse(prior, number):
    """F4 and F5 undo each other exactly, in both orders."""
    assert beliefs.gamma(beliefs.largest_ratio(prior, number), prior) == number
    assert beliefs.largest_ratio(prior, beliefs.gamma(number, prior)) == number


@many
@given(ours.beliefs, ours.ratios)
def test_gamma_is_the_smallest_that_holds(prior, ratio):
    """F2 and F4: both inequalities hold at γ(r, p), one of them with equality."""
    after, level = beliefs.posterior(ratio, prior), beliefs.gamma(ratio, prior)
    assert after <= level * prior and 1 - after >= (1 - prior) / level
    assert after == level * prior or 1 - after == (1 - prior) / level


@many
@given(ours.probabilities, ours.probabilities, ours.ratios, ours.ratios)
def test_posteriors_are_monotone(p, q, r, s):
    """F1 rises with the ratio and with the prior, and r = 1 teaches nothing."""
    p, q = sorted((p, q))
    r, s = sorted((r, s))
    assert beliefs.posterior(r, p) <= beliefs.posterior(s, p)
    assert beliefs.posterior(r, p) <= beliefs.posterior(r, q)
    assert beliefs.posterior(1 / r, p) <= p <= beliefs.posterior(r, p)
    assert beliefs.posterior(Fraction(1), p) == p
    assert beliefs.posterior(math.inf, p) == (1 if p else 0)


@many
@given(ours.intervals(), ours.ratios, ours.probabilities)
def test_the_worst_belief_is_at_an_end(interval, ratio, share):
    """F6: no belief in [a, b] does more than the end found, and the belief named is close to it."""
    low, high = interval
    worst = beliefs.worst_belief(ratio, low, high)
    assert beliefs.gamma(ratio, low + (high - low) * share) <= worst.gamma
    assert 0 < worst.prior < 1 and low <= worst.prior <= high
    named = beliefs.gamma(ratio, worst.prior)
    assert (
        named == worst.gamma if worst.attained else named >= worst.gamma * Fraction(999999, 10**6)
    )


@pytest.mark.soak
def test_all_of_this_on_a_thousand_fresh_examples():
    more = os.environ | {"WHOSIN_EXAMPLES": "1000", "WHOSIN_FRESH": "1"}
    subprocess.run([sys.executable, "-m", "pytest", __file__], env=more, check=True)
