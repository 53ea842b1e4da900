"""The papers and theorems that guarantees rest on, as data that the program can print.

Numbers (T1, E1, …) are stable; levels and plans refer to theorems by number, and
docs/theory/numbers.md explains each. A record begins at the margin; its other lines are indented.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    key: str
    authors: str
    title: str
    venue: str
    year: int

    def __str__(self) -> str:
        return f"{self.authors}. {self.title}. {self.venue}, {self.year}."

    def bibtex(self) -> str:
        """An entry for a bibliography."""
        authors = " and ".join(self.authors.split(", "))
        fields = f"author = {{{authors}}}, title = {{{self.title}}}, note = {{{self.venue}}}"
        return f"@misc{{{self.key}, {fields}, year = {{{self.year}}}}}"


@dataclass(frozen=True)
class Theorem:
    """A statement that whosin relies on, with its number and where it is proved."""

    number: str
    statement: str
    source: str

    def __str__(self) -> str:
        return f"{self.number}: {self.statement} [{self.source}]"

    @property
    def papers(self) -> tuple[str, ...]:
        """The keys of the papers that the source names."""
        plain = unicodedata.normalize("NFD", self.source).encode("ascii", "ignore").decode().lower()
        return tuple(key for key in re.findall(r"[a-z]+\d\d", plain) if key in PAPERS)


_PAPER_LINES = """
li13 | Ninghui Li, Wahbeh Qardaji, Dong Su, Yi Wu, Weining Yang | Membership Privacy: A Unifying
    Framework for Privacy Definitions | ACM CCS | 2013
tramer15 | Florian Tramèr, Zhicong Huang, Jean-Pierre Hubaux, Erman Ayday | Differential Privacy
    with Bounded Priors: Reconciling Utility and Privacy in Genome-Wide Association Studies |
    ACM CCS | 2015
zhao17 | Jun Zhao | Relations Among Different Privacy Notions | Allerton | 2017
wang14 | Weina Wang, Lei Ying, Junshan Zhang | On the Relation Between Identifiability,
    Differential Privacy and Mutual-Information Privacy | Allerton | 2014
lee12 | Jaewoo Lee, Chris Clifton | Differential Identifiability | ACM KDD | 2012
homer08 | Nils Homer, Szabolcs Szelinger, Margot Redman, David Duggan, Waibhav Tembe, Jill
    Muehling, John Pearson, Dietrich Stephan, Stanley Nelson, David Craig | Resolving
    Individuals Contributing Trace Amounts of DNA to Highly Complex Mixtures Using High-Density
    SNP Genotyping Microarrays | PLoS Genetics | 2008
sankararaman09 | Sriram Sankararaman, Guillaume Obozinski, Michael Jordan, Eran Halperin |
    Genomic Privacy and Limits of Individual Detection in a Pool | Nature Genetics | 2009
johnson13 | Aaron Johnson, Vitaly Shmatikov | Privacy-Preserving Data Exploration in Genome-Wide
    Association Studies | ACM KDD | 2013
mcsherry09 | Frank McSherry | Privacy Integrated Queries | ACM SIGMOD | 2009
dwork06 | Cynthia Dwork, Frank McSherry, Kobbi Nissim, Adam Smith | Calibrating Noise to
    Sensitivity in Private Data Analysis | TCC | 2006
steinke23 | Thomas Steinke, Milad Nasr, Matthew Jagielski | Privacy Auditing with One (1)
    Training Run | NeurIPS | 2023
berger94 | Roger L. Berger, Dennis D. Boos | P Values Maximized Over a Confidence Set for the
    Nuisance Parameter | Journal of the American Statistical Association | 1994
clopper34 | C. J. Clopper, E. S. Pearson | The Use of Confidence or Fiducial Limits Illustrated
    in the Case of the Binomial | Biometrika | 1934
bichsel21 | Benjamin Bichsel, Samuel Steffen, Ilija Bogunovic, Martin Vechev | DP-Sniper:
    Black-Box Discovery of Differential Privacy Violations using Classifiers | IEEE S&P | 2021
"""

_THEOREM_LINES = """
T1: Pr[S|t] ≤ γ Pr[S|¬t] for all S and t gives γ-PMP under that prior; over a downward scalable
    family the two are equivalent [Li13 Lemma 3.2, Theorem 3.6]
T2: Pr[S|¬t] ≤ γ Pr[S|t] for all S and t gives γ-NMP under that prior; over an upward scalable
    family the two are equivalent [Li13 Theorem 3.10]
T3: (D_U, γ)-PMP holds exactly when Pr[A(T1)∈S] ≤ γ Pr[A(T2)∈S] for all T1 ⊄ T2 [Li13
    Proposition 3.7]
T4: ε-positive UDP, (D_I, e^ε)-PMP and (D_I², e^ε)-PMP are equivalent; so are ε-negative UDP and
    (D_I, e^ε)-NMP [Li13 Theorem 4.5]
T5: ε-BDP, (D_B, e^ε)-PMP and (D_B², e^ε)-PMP are equivalent [Li13 Theorem 4.8]
T6: ε-UDP gives 2ε-BDP; no converse holds [Li13 section 4]
T7: ε-positive UDP gives (D_NI^k, e^(kε))-PMP, and no smaller γ works for all mechanisms [Li13
    section 4.1]
T8: (ρ, m)-DI is equivalent to (D_C^m, γ)-PMP with γ = max(ρm, (m−1)/(m(1−ρ))) [Li13 Theorem
    5.6, on Lee12]
T9: for ρ > 1/2, (ρ, 2)-DI is equivalent to ln(ρ/(1−ρ))-BDP; for m > 2 and ρ > 1/(m−1) some (ρ,
    m)-DI mechanism violates every ε-BDP [Li13 Theorem 5.7, on Lee12]
T10: (β, ε)-positive DPS is equivalent to (D_F^β, γ)-PMP with γ = max(e^ε, (e^ε−1+β)/(β e^ε))
    [Li13 Theorem 5.10]
T11: e^ε ≤ min(g(a,γ), g(b,γ)): ε-UDP gives (γ, D_I^[a,b])-PMP, tight for positive UDP; ε-BDP
    gives (γ, D_B^[a,b])-PMP, tight when a + b = 1 [Tramèr15 section 3]
T12: without bounds on priors ε-UDP gives (e^ε, D_I)-PMP and (e^(2ε), D_B)-PMP; ε-BDP gives
    (e^ε, D_B)-PMP and nothing under D_I [Tramèr15 section 3.4, Li13 section 4]
T13: mixtures of (D, γ)-PMP mechanisms and post-processed ones are (D, γ)-PMP [Li13 Theorems
    3.11, 3.12]
T14: ε-Bayesian DP gives (D_*, e^ε)-PMP; the converse holds for downward scalable families
    [Zhao17 Theorems 3, 4]
T15: ε-DP gives tanh(ε/2)-semantic privacy, and tanh(ε/4)-semantic privacy gives ε-DP; the same
    for Bayesian DP and Bayesian semantic privacy, the second part where the prior allows the
    default [ours, tightening Zhao17 Theorems 1, 2]
T16: the least ε of differential privacy at distortion D is between h⁻¹(D) − ε_X and h⁻¹(D) (at
    least 0); the least identifiability is h⁻¹(D) for D ≤ h(ε̃_X), and at least max(h⁻¹(D), ε_X)
    after [Wang14 Theorem 1]
T17: for D ≤ h(ε̃_X) the identifiability-optimal mechanism E_i also has the least mutual
    information [Wang14 Theorem 2]
T18: if the hockey-stick divergence between neighbours at e^ε is at most δ(ε), then given t the
    ratio exceeds g with probability at most inf over ε < ln g of δ(ε)/(1 − e^ε/g) [ours,
    extending Li13 section 6]
T19: ε-Bayesian DP gives ε-DP under full support; ε-DP gives (ε+ε_X)-identifiability, and
    ε-identifiability gives (ε+ε_X)-DP [Zhao17 (ii), Wang14 (28)]
T20: for independent rows (or blocks of rows) the least distortion at ε, under differential
    privacy or identifiability, is the sum of the rows' own, and a product attains it [ours,
    extending Wang14 section IV]
T21: for one row and Hamming distortion the best ε-private mechanism is randomised response
    among the k likeliest values, for the best k [ours, extending Wang14 section IV]
T22: ε-identifiability under p_X, rows being people in or out, gives ({p_X}, γ)-PMP with γ = max
    over people of max(q/p, (1−p)/(1−q)), q = 1/(1+e^−ε) [ours, answering Wang14]
T23: I(X;Y) ≤ ι gives for every row a mean total variation between posterior and prior of at
    most √(ι/2), and with probability 1−δ over outputs KL(posterior ‖ prior) ≤ ι/δ [ours,
    answering Wang14]
T24: ε-DP on independent binary rows gives I(X;Y) ≤ Σ [H(p(1−q) + (1−p)q) − H(q)], q =
    1/(1+e^ε), attained by randomised response [ours, answering Wang14]
T25: questions about parts that people are put into by their own rows alone are paid side by side:
    E, of those about everyone, + the largest part's level between added or removed people; E +
    max(the largest part's, the two largest of entering and leaving) between replaced ones; alike
    for ρ [McSherry09, the second bound ours]
T26: for independent rows whose distributions lie anywhere in convex sets the least distortion at ε
    under the worst of them is the sum of the rows' own, each one linear program, and a product
    attains it [ours, answering Wang14]
"""


def _split_records(text: str) -> list[str]:
    return [" ".join(record.split()) for record in re.split(r"\n(?=\S)", text.strip())]


PAPERS: dict[str, Paper] = {
    key: Paper(key, authors, title, venue, int(year))
    for key, authors, title, venue, year in (
        record.split(" | ") for record in _split_records(_PAPER_LINES)
    )
}

THEOREMS: dict[str, Theorem] = {
    number: Theorem(number, *rest.removesuffix("]").rsplit(" [", 1))
    for number, rest in (record.split(": ", 1) for record in _split_records(_THEOREM_LINES))
}
