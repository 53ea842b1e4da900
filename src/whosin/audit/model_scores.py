"""Membership scores of models: adapters, canaries, shadow models, and bounds from scores."""

from __future__ import annotations

import copy
import hashlib
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from whosin.audit.bounds import (
    AuditBounds,
    EventCount,
    RankTest,
    log_ratio,
    lower_bound,
    read_confidence,
    read_delta,
    refuse_few,
    tried_ranks,
    upper_bound,
)
from whosin.audit.distinguishers import ByValue
from whosin.audit.event_search import WITH, WITHOUT, Event
from whosin.audit.single_run import BOTH, IN, OUT, make_guesses
from whosin.errors import InvalidInput, UnknownName, invalid_value, spell
from whosin.exact import Array, read_ranged

# How well a model knows each row: adapters, by what models offer and never by what they are. A
# score is one number a row, higher where the model looks as if it was trained on the row. Adapters
# speak to protocols (`predict_proba`, `predict`, `score_samples`, `state_dict` and `eval`, a loss
# function, `.loss` of a text model), so that no package of models is ever imported; a table is read
# as synthetic data. Answers are read from arrays, lists and tensors of any device.


Score = Callable[[Any, Any], Any]
MIN_PROBABILITY = 1e-12
"""Probabilities are kept this far from 0 and 1."""

READABLE_SCORES = "numbers, or tensors that can be brought to the processor's memory"
UNREADABLE_KINDS = {"U": "text", "S": "text", "T": "text", "c": "complex numbers", "M": "dates"}
"""Kinds of arrays that are no scores; the letter is NumPy's."""


def known_score(model: object, rows: object) -> Score:
    """The score of a model that offers one by a known method."""
    labelled = isinstance(rows, tuple) and len(rows) == 2
    if labelled and hasattr(model, "predict_proba"):
        return score_log_odds
    if labelled and hasattr(model, "predict"):
        return score_squared_error
    if hasattr(model, "score_samples"):
        return lambda fitted, asked: fitted.score_samples(asked)
    records = getattr(getattr(model, "dtype", None), "names", None) is not None
    array = records or getattr(model, "ndim", 0) == 2
    if isinstance(model, list) or hasattr(model, "columns") or array:
        from whosin.audit.synthetic_data import synthetic_score

        return synthetic_score()
    offers = "predict_proba or predict (with rows as (features, labels)) or score_samples"
    raise InvalidInput(
        f"{type(model).__name__} has no {offers}", field="score", hint="give score(model, rows)"
    )


def score_log_odds(model: Any, rows: Any) -> Array:
    """The log-odds that the model gives to each row's own label."""
    features, labels = rows
    chances = read_numbers(model.predict_proba(features))
    classes = np.asarray(getattr(model, "classes_", np.arange(chances.shape[1])))
    known = np.asarray(labels)
    order = np.argsort(classes)
    places = np.clip(np.searchsorted(classes[order], known), 0, len(classes) - 1)
    columns = order[places]
    own = chances[np.arange(len(known)), columns]
    own = np.where(classes[columns] == known, own, 0.0)  # a label that the model never saw
    own = np.clip(own, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    return np.asarray(np.log(own) - np.log1p(-own))


def score_squared_error(model: Any, rows: Any) -> Array:
    features, labels = rows
    try:
        known = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        message = "the labels are not numbers, and the model has predict but no predict_proba"
        hint = "give score(model, rows)"
        raise InvalidInput(message, field="labels", hint=hint) from None
    errors = read_numbers(model.predict(features)) - known
    return np.asarray(-(errors.reshape(len(errors), -1) ** 2).sum(axis=1))


def score_loss(loss: Callable[[Any, Any], Any]) -> Score:
    """A score from losses: `loss(model, rows)` gives one loss a row (PyTorch with
    reduction="none", JAX, or anything that can be read as numbers).

    A model with `eval` and `state_dict` (a PyTorch module) is put into its evaluation mode first.
    """

    def score(model: Any, rows: Any) -> Array:
        if hasattr(model, "state_dict") and hasattr(model, "eval"):
            model.eval()
        return -read_numbers(loss(model, rows))

    return score


def score_text_loss(tokenizer: Callable[..., Any], **options: object) -> Score:
    """A score for causal language models in the manner of Hugging Face: the rows are texts, and the
    model is called with the tokenizer's tensors and `labels`, one text at a time.

    Args:
        options: for the tokenizer; `return_tensors="pt"` unless given.
    """
    options = {"return_tensors": "pt"} | options

    def loss(model: Any, rows: Any) -> list[float]:
        losses = []
        for text in rows:
            tokens = tokenizer(text, **options)
            device = getattr(model, "device", None)
            if device is not None and hasattr(tokens, "to"):
                tokens = tokens.to(device)
            answer = model(**tokens, labels=tokens["input_ids"])
            losses.append(float(read_numbers(answer.loss)))
        return losses

    return score_loss(loss)


def read_numbers(values: Any) -> Array:
    """Numbers from an array, a list, or a tensor on any device, with gradients or without."""
    for step in ("detach", "cpu"):
        method = getattr(values, step, None)
        if callable(method):
            values = method()
    if isinstance(values, list | tuple):
        parts = [read_numbers(each) for each in values]
        if len({part.shape for part in parts}) > 1:
            message = "the score returned lists of several lengths, not one number for each row"
            raise InvalidInput(message, field="score")
        return np.array(parts, dtype=np.float64)
    if values is None:
        raise _refuse_answer("nothing")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        got = f"{type(values).__name__}, which raised {type(error).__name__}"
        raise _refuse_answer(got) from error
    if array.dtype.kind in UNREADABLE_KINDS:
        raise _refuse_answer(UNREADABLE_KINDS[array.dtype.kind])
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:  # objects: no cell is quoted
        raise _refuse_answer(type(values).__name__) from error


def _refuse_answer(kind: str) -> InvalidInput:
    message = f"the score returned {kind}"
    return InvalidInput(message, field="score", value=kind, hint=f"return {READABLE_SCORES}")


def read_answer(values: Any, count: int) -> Array:
    """One score a row, checked."""
    array = read_numbers(values)
    if array.shape == (count, 1):
        array = array[:, 0]
    if array.shape != (count,):
        got = "one number" if array.shape == () else f"an array of shape {array.shape}"
        message = f"the score returned {got} for {spell(count)} rows"
        raise InvalidInput(message, field="score", value=array.shape)
    missing = int(np.isnan(array).sum())
    if missing:
        words = "one row" if missing == 1 else f"{spell(missing)} rows"
        message = f"the score returned NaN for {words}"
        raise InvalidInput(message, field="score", value=missing)
    return array


# Training data of any kind: arrays, frames, lists, or a tuple of these: (features, labels). Parts
# are copies, in the order of the rows. Nothing is known of the data but its length and how to take
# rows of it; a digest tells whether it is the same data as before.


ACCEPTED_ROWS = "an array, a frame, a list, or a tuple of these of one length"


@dataclass(frozen=True)
class TrainingRows:
    """Rows to train on.

    Attributes:
        parts: columns of data, all of one length; one, unless the rows are a tuple.
        several: whether a fit is given a tuple.
    """

    parts: tuple[Any, ...]
    several: bool

    @classmethod
    def read(cls, rows: object) -> TrainingRows:
        several = isinstance(rows, tuple) and not hasattr(rows, "_fields")
        parts = tuple(rows) if several else (rows,)  # type: ignore[arg-type]
        lengths = {_part_length(part) for part in parts}
        if len(lengths) != 1:
            counts = " and ".join(str(each) for each in sorted(lengths))
            message = f"the parts of rows have different lengths: {counts}"
            if not lengths:
                message = "rows is an empty tuple"
            raise InvalidInput(message, field="rows", value=sorted(lengths))
        return cls(parts, several)

    def __len__(self) -> int:
        return _part_length(self.parts[0])

    def take(self, places: Array) -> Any:
        taken = tuple(take_rows(part, places) for part in self.parts)
        return taken if self.several else taken[0]

    def digest(self) -> str:
        total = hashlib.sha256()
        for part in self.parts:
            plain = isinstance(part, np.ndarray) and part.dtype != object
            total.update(part.tobytes() if plain else _pickle_part(part))
        return total.hexdigest()


def _part_length(part: Any) -> int:
    shape = getattr(part, "shape", None)
    if isinstance(part, str | bytes | dict) or (shape is None and not hasattr(part, "__len__")):
        raise invalid_value("rows", ACCEPTED_ROWS, type(part).__name__)
    return int(shape[0]) if shape else len(part)


def take_rows(part: Any, places: Array) -> Any:
    """Some rows of an array, a frame or a list."""
    if hasattr(part, "iloc"):
        return part.iloc[places]
    if isinstance(part, list | tuple):
        return [part[row] for row in places.tolist()]
    return part[places]


def _pickle_part(part: Any) -> bytes:
    try:
        return pickle.dumps(part, protocol=5)
    except Exception as error:
        message = f"rows cannot be pickled ({type(error).__name__}: {error})"
        hint = "a resumed audit must be able to tell that they are the same"
        raise InvalidInput(message, field="rows", hint=hint) from error


# Canaries: rows whose presence is random, planted where a model remembers them best. Which rows
# become canaries, and what they become, depends on the generator alone. The other rows are always
# in. Kinds: `rows` as they are; `mislabelled`: with another label than their own; `outlying`: far
# from all others, with a label at random.


ROWS, MISLABELLED, OUTLYING = "rows", "mislabelled", "outlying"
CANARY_KINDS = (ROWS, MISLABELLED, OUTLYING)
OUTLIER_DEVIATIONS = 5.0
"""How many standard deviations from the mean an outlying number is, up to twice as many."""


def plant_canaries(
    rows: TrainingRows, count: int | None, kind: str, rng: np.random.Generator
) -> tuple[TrainingRows, Array]:
    """The rows with canaries in place of some, and where these are; without a count all rows are
    canaries, as they are."""
    if kind not in CANARY_KINDS:
        raise UnknownName("kind of canaries", kind, CANARY_KINDS)
    if count is None:
        if kind != ROWS:
            hint = "say how many by canaries"
            raise InvalidInput(f"{kind} canaries need a number", field="canaries", hint=hint)
        return rows, np.arange(len(rows))
    places = np.sort(rng.choice(len(rows), count, replace=False))
    if kind == ROWS:
        return rows, places
    *features, labels = rows.parts
    if not features:
        message = "rows have no labels, which mislabelled and outlying canaries need"
        raise InvalidInput(message, field="rows", hint="give a tuple (features, labels)")
    if kind == OUTLYING:
        features = [_make_outlying(part, places, rng) for part in features]
    changed = _relabel(labels, places, rng, other=kind == MISLABELLED)
    return TrainingRows((*features, changed), rows.several), places


def _relabel(labels: Any, places: Array, rng: np.random.Generator, *, other: bool) -> Any:
    known = np.asarray(labels)
    values = np.unique(known)
    if known.ndim != 1 or len(values) < 2:
        message = "labels must be a list with at least two different values"
        raise InvalidInput(message, field="labels")
    drawn = values[rng.integers(len(values), size=len(places))]
    if other:
        step = rng.integers(1, len(values), size=len(places))
        drawn = values[(np.searchsorted(values, known[places]) + step) % len(values)]
    return _replace_rows(labels, places, drawn)


def _make_outlying(part: Any, places: Array, rng: np.random.Generator) -> Any:
    try:
        known = np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError):
        message = "outlying canaries need features that are numbers"
        raise InvalidInput(message, field="features") from None
    shape = len(places), *known.shape[1:]
    steps = rng.choice([-OUTLIER_DEVIATIONS, OUTLIER_DEVIATIONS], size=shape) * rng.uniform(
        1, 2, size=shape
    )
    drawn = known.mean(axis=0) + steps * np.maximum(known.std(axis=0), 1e-6)
    return _replace_rows(part, places, drawn.astype(getattr(part, "dtype", np.float64)))


def _replace_rows(part: Any, places: Array, values: Array) -> Any:
    """A copy with other rows at some places."""
    changed = part.copy() if hasattr(part, "copy") else copy.copy(part)
    if hasattr(changed, "iloc"):
        if getattr(changed, "ndim", 1) > 1:
            changed = changed.astype(float)
        changed.iloc[places] = values
    elif isinstance(changed, list):
        for row, value in zip(places.tolist(), values.tolist(), strict=True):
            changed[row] = value
    elif hasattr(changed, "clone"):  # a tensor
        changed = changed.clone()
        changed[places] = changed.new_tensor(values)
    else:
        changed[places] = values
    return changed


# Attacks that learn from shadow models: LiRA (Carlini and others 2022) and RMIA (Zarifzadeh, Liu,
# Shokri 2024). Shadow models are trained on inclusion bits of their own. An attack turns the scores
# of one target run into others that compare better between rows, from the shadows' scores and
# inclusion bits; it never sees the target's inclusion bits, so that whatever it does keeps bounds
# valid. Which attack is used is decided on the shadows alone, each in turn as a target of the
# others. (Counting guesses about *every* run, with the other runs as its shadows, would not be
# valid: the guesses about one run would depend on inclusion bits that are guessed in another.)


PLAIN, LIRA, RMIA = "plain", "LiRA", "RMIA"
MIN_SHADOWS = 3
"""Shadows with which the attacks are tried."""
MAX_JUDGED_SHADOWS = 6
"""Shadows that are taken as targets to compare the attacks."""
TRIAL_ERROR = 0.01
"""Of the bounds by which attacks are compared."""
MAX_SCORE = 1e100
PRIOR_WEIGHT = 1.0
"""How many scores the average over all rows counts for, where one row has few."""


@dataclass(frozen=True)
class Shadows:
    """Scores of shadow models: a row a model, a column a canary."""

    included: Array
    scores: Array


def lira_scores(scores: Array, shadows: Shadows) -> Array:
    """ln of how much likelier a score is with the row than without, both normal; means of a row
    lean on those of all rows, and spreads are those of all rows."""
    known, targets = _make_finite(shadows.scores), _make_finite(scores)
    centre = known.mean()
    out_mean = _shrunken_means(known, ~shadows.included, np.full(known.shape[1], centre))
    shift = float((known - out_mean)[shadows.included].mean()) if shadows.included.any() else 0.0
    in_mean = _shrunken_means(known, shadows.included, out_mean + shift)
    spreads = [
        max(float((known - mean)[included].std()), 1e-9) if included.any() else 1.0
        for mean, included in ((in_mean, shadows.included), (out_mean, ~shadows.included))
    ]
    inside, outside = (
        -(((targets - mean) / spread) ** 2) / 2 - math.log(spread)
        for mean, spread in zip((in_mean, out_mean), spreads, strict=True)
    )
    return np.asarray(inside - outside)


def rmia_scores(scores: Array, shadows: Shadows) -> Array:
    """The share of all rows whose score rose less, over the mean of the shadows on the scale of
    likelihoods."""
    known, targets = _make_finite(shadows.scores), _make_finite(scores)
    top = known.max(axis=0)
    usual = top + np.log(np.exp(known - top).mean(axis=0))
    rise = targets - usual
    _values, groups, counts = np.unique(rise, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts)[groups] / len(rise))


GUESS_SIDES = (BOTH, IN, OUT)
SHADOW_ATTACKS: dict[str, Callable[[Array, Shadows], Array]] = {
    PLAIN: lambda scores, _shadows: scores,
    LIRA: lira_scores,
    RMIA: rmia_scores,
}


def choose_attack(shadows: Shadows) -> dict[str, str]:
    """For guesses of each side the attack that guesses the shadows' own inclusion bits best."""
    if len(shadows.included) < MIN_SHADOWS:
        return dict.fromkeys(GUESS_SIDES, PLAIN)
    gains = {side: dict.fromkeys(SHADOW_ATTACKS, 0.0) for side in GUESS_SIDES}
    for number in range(min(MAX_JUDGED_SHADOWS, len(shadows.included))):
        kept = np.arange(len(shadows.included)) != number
        others = Shadows(shadows.included[kept], shadows.scores[kept])
        for name, attack in SHADOW_ATTACKS.items():
            told = attack(shadows.scores[number], others)
            for side in GUESS_SIDES:
                # The log-odds that the surest guesses show, at the best number of them.
                made = make_guesses(shadows.included[number], told, side=side, fixed=False)
                pairs = zip(made.tried, made.right, strict=True)
                shown = (lower_bound(right, tried, TRIAL_ERROR) for tried, right in pairs)
                if (least := max(shown, default=0.5)) > 0.5:
                    gains[side][name] += math.log(least / (1 - least))
    return {side: max(gained, key=lambda name: gained[name]) for side, gained in gains.items()}


def _shrunken_means(known: Array, included: Array, prior: Array) -> Array:
    """Means by column of the entries that are marked, leaning on a prior."""
    sums = np.where(included, known, 0.0).sum(axis=0)
    return np.asarray((sums + PRIOR_WEIGHT * prior) / (included.sum(axis=0) + PRIOR_WEIGHT))


def _make_finite(scores: Array) -> Array:
    """Infinite scores moved to just beyond the others, and all of a size that can be squared."""
    scores = np.where(np.isfinite(scores), np.clip(scores, -MAX_SCORE, MAX_SCORE), scores)
    finite = scores[np.isfinite(scores)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    return np.clip(scores, low - 1.0, high + 1.0)


# Scores of members and non-members of a model's training data. Scores are independent draws,
# members' from one distribution and non-members' from another (higher: more likely a member).
# Nothing is chosen: the events are fixed ranks of the other side's scores, from the median to the
# most extreme one, and each takes an equal part of the error (`tried_ranks`). So bounds reach low
# false positive rates, ties never help, and no score is spent on a search. A member's score and
# another's differ as those of one person do who is in the data, or has another in their place:
# bounds are about replacing a person, and a mechanism that is ε-DP for adding or removing one may
# show up to 2ε. A δ is granted to the run as a whole: failures of a probability of δ may betray
# many at once. True positive rates at a false positive rate rest on ranks too (order statistics;
# Clopper and Pearson).


ATTACK_SCORES_FEWEST = 20
MAX_POINTS = 24
"""Points of the drawn curve, all of whose bounds hold together."""


@dataclass(frozen=True)
class Rate:
    """An attack of a false positive rate of at most `fpr`, and its true positive rate.

    The bound on the false positive rate, `low` and `high` hold together at the confidence; `tpr` is
    what was seen.
    """

    fpr: float
    tpr: float
    low: float
    high: float
    threshold: float


@dataclass(frozen=True)
class Scores(AuditBounds):
    """The result of `scores`."""

    relation: ClassVar[str | None] = "replace"
    counts: tuple[EventCount, ...]
    members: Array = field(repr=False)
    non_members: Array = field(repr=False)

    @property
    def blind(self) -> bool:
        """Whether all scores were the same, so that nothing could be learnt."""
        return len(np.unique(np.concatenate([self.members, self.non_members]))) == 1

    def tpr_at(self, fpr: object) -> Rate:
        """The true positive rate of an attack whose false positive rate is at most `fpr`, at the
        confidence.

        Raises:
            InvalidInput: there are too few non-members to show a rate that low.
        """
        most = read_ranged(fpr, "fpr", "strictly between 0 and 1")
        error = read_confidence(self.confidence)[1] / 3  # three bounds
        allowed = _false_positives(len(self.non_members), float(most), error)
        if allowed < 0:
            needed = math.ceil(math.log(error) / math.log1p(-float(most)))
            count = len(self.non_members)
            message = (
                f"{spell(count)} non-members cannot show a false positive rate of {spell(most)}"
            )
            hint = f"give at least {spell(needed)}"
            raise InvalidInput(message, field="non_members", value=count, hint=hint)
        return self._rate_above(allowed, float(most), error)

    def _rate_above(self, rank: int, fpr: float, error: float) -> Rate:
        """The attack above the score of this rank of the non-members."""
        threshold = float(np.sort(self.non_members)[::-1][rank])
        hits, count = int((self.members > threshold).sum()), len(self.members)
        low, high = lower_bound(hits, count, error), upper_bound(hits, count, error)
        return Rate(fpr, hits / count, low, high, threshold)

    def curve(self) -> list[Rate]:
        """Rates from the lowest false positive rate that can be shown to 1; all hold together.

        Each point takes an equal part of the error.
        """
        error = read_confidence(self.confidence)[1] / MAX_POINTS / 3  # three bounds a point
        count = len(self.non_members)
        ranks = np.unique(np.geomspace(1, count, MAX_POINTS).astype(int)) - 1
        # At most `rank` non-members are above the score of that rank.
        return [
            self._rate_above(rank, upper_bound(rank, count, error), error)
            for rank in ranks.tolist()
        ]

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        rates: dict[str, object] = {}
        for fpr in (0.1, 0.01, 0.001):
            try:
                rates[str(fpr)] = vars(self.tpr_at(fpr))
            except InvalidInput:
                rates[str(fpr)] = None
        return {
            **super().to_dict(),
            "members": len(self.members),
            "non_members": len(self.non_members),
            "counts": [count.to_dict() for count in self.counts],
            "tpr_at_fpr": rates,
            "blind": self.blind,
        }


def _false_positives(count: int, fpr: float, error: float) -> int:
    """The most false positives among `count` that still prove a rate of at most `fpr`; −1: none."""
    from scipy.stats import binom

    allowed = int(binom.ppf(error, count, fpr)) + 1
    while allowed >= 0 and upper_bound(allowed, count, error) > fpr:
        allowed -= 1
    return min(allowed, count - 1)


def scores(
    members: object,
    non_members: object,
    confidence: object = 0.95,
    *,
    delta: object = 0,
) -> Scores:
    """Bound from below what an attack's scores tell about membership.

    Args:
        members, non_members: scores of people in the training data and of others like them; lists,
            arrays, or mappings from a person to a score (then nobody may be in both).
        delta: granted to the mechanism; a failure may be shared by all scores of the run.
    """
    (level, _error), granted = read_confidence(confidence), read_delta(delta)
    _check_people(members, non_members)
    inside, outside = read_scores(members, "members"), read_scores(non_members, "non_members")
    for name, values in (("members", inside), ("non_members", outside)):
        refuse_few(name, len(values), ATTACK_SCORES_FEWEST, f"scores of {name}")
    _check_values(inside, outside)
    return compare_scores(inside, outside, level, granted)


def compare_scores(inside: Array, outside: Array, level: float, granted: float) -> Scores:
    """What scores of members and of others show, at a confidence and granting a δ."""
    error = read_confidence(level)[1]
    share = error / (len(tried_ranks(len(outside))) + len(tried_ranks(len(inside))))
    counts = [
        max(
            _count_ranks(inside, outside, favours, share, granted),
            key=lambda count: count.log_ratio,
        )
        for favours in (WITH, WITHOUT)
    ]
    counts.sort(key=lambda count: -count.log_ratio)
    if counts[1].event.favours == WITHOUT:
        del counts[1]  # the event for ε is the one for γ
    return Scores(
        epsilon=counts[0].log_ratio,
        log_ratio=log_ratio(counts),
        confidence=level,
        delta=granted,
        counts=tuple(counts),
        members=inside,
        non_members=outside,
    )


def _count_ranks(
    inside: Array, outside: Array, favours: str, error: float, delta: float
) -> list[EventCount]:
    """What the members above each rank of the others show, or the others below each of theirs."""
    sign = 1 if favours == WITH else -1
    favoured, other = (sign * inside, sign * outside)[::sign]
    ranked, result = np.sort(other)[::-1], []
    for rank in tried_ranks(len(other)):
        beyond = float(ranked[rank])
        hits = int((favoured > beyond).sum()), int((other > beyond).sum())
        bound = RankTest(hits[0], len(favoured), rank, len(other), delta).bound(error)
        event = Event(ByValue(), sign * math.nextafter(beyond, math.inf), favours)
        with_hits, without_hits = hits[::sign]
        result.append(EventCount(event, with_hits, without_hits, len(inside), len(outside), bound))
    return result


def most_scores(
    members: int, non_members: int, confidence: object = 0.95, delta: object = 0
) -> float:
    """The largest ε that this many scores could show: where all members are above all others."""
    inside = np.arange(members) + float(non_members) + 1
    return scores(inside, np.arange(non_members) * 1.0, confidence, delta=delta).epsilon


def read_scores(values: object, name: str) -> Array:
    """A list of numbers (or the values of a mapping), of which some may be infinite."""
    if hasattr(values, "keys") and hasattr(values, "values") and callable(values.values):
        values = list(values.values())
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid_value(name, "a list of numbers", type(values).__name__) from None
    if array.ndim != 1:
        raise invalid_value(name, "a list of numbers", f"an array of shape {array.shape}")
    if np.isnan(array).any():
        hint = "infinite scores count as the surest"
        raise InvalidInput(f"{name} has NaN among its scores", field=name, hint=hint)
    return array


def _check_people(members: object, non_members: object) -> None:
    keys = [set(each.keys()) if hasattr(each, "keys") else set() for each in (members, non_members)]
    shared = len(keys[0] & keys[1])
    if shared:
        message = f"{shared} people are both members and non-members"
        raise InvalidInput(message, field="non_members", value=shared)


def _check_values(members: Array, non_members: Array) -> None:
    """Refuse lists that share too many scores: the same people in both."""
    one, two = np.unique(members), np.unique(non_members)
    smooth = len(one) > 0.9 * len(members) and len(two) > 0.9 * len(non_members)
    shared = len(np.intersect1d(one, two))
    if smooth and shared > 0.1 * min(len(one), len(two)):
        message = f"{shared} unrounded scores of members are those of non-members, too"
        hint = "non-members must be other people"
        raise InvalidInput(message, field="non_members", value=shared, hint=hint)
