"""Audit a training: coins decide who is in, a model is fitted, and the surest guesses are counted.

Contract: each target run has coins of its own, tossed before any fit, and a coin touches one run
alone; so all coins of all target runs together are one experiment with a known rate, and `one_run`
combines them exactly. Shadow runs only make scores better (`shadows`). A target fit that fails has
told something, so its coins are never used again: it is counted, and new ones are tossed. A shadow
fit that fails is counted, left out, and tried again when the audit is resumed.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whosin.audit import confidence as exact
from whosin.audit.models import coins as tossing
from whosin.audit.models import shadows as attacks
from whosin.audit.models.canaries import ROWS, plant
from whosin.audit.models.rows import TrainingRows
from whosin.audit.models.scoring import Score, known_score, read_answer
from whosin.audit.models.state import SHADOW, TARGET, TrainingRun, TrainingState, load
from whosin.audit.result import AuditBounds
from whosin.audit.single_run import FEWEST, OneRun, one_run
from whosin.audit.terms import Progress, read_delta
from whosin.errors import InvalidInput, MechanismFailed, WhosinError
from whosin.exact import Array
from whosin.validation import path_of, whole

ATTEMPTS = 3
"""Failures of target fits after which an audit gives up."""
MOST_DELTA = 1 - 2**-40
RATES = (0.1, 0.01, 0.001)
FITTING, SCORING = "fit", "score"
"""What a run is doing."""


@dataclass(frozen=True)
class ModelAudit(AuditBounds):
    """The result of `model`.

    Attributes:
        run: what the guesses of all target runs together show.
        attack: how scores were compared: plain, LiRA or RMIA, decided on the shadows.
        seen: true positive rates at low false positive rates, as seen: frequencies, not bounds.
        failed: fits that raised, targets and shadows.
        blind: all scores were the same, so nothing could be learnt.
    """

    run: OneRun
    attack: str
    seen: tuple[tuple[float, float], ...]
    canaries: int
    kind: str
    runs: int
    shadows: int
    failed: int
    notes: tuple[str, ...] = ()
    blind: bool = False

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        about = ("attack", "canaries", "kind", "runs", "shadows", "failed")
        return {
            **super().to_dict(),
            **{name: getattr(self, name) for name in about},
            "tpr_seen_at_fpr": {str(fpr): tpr for fpr, tpr in self.seen},
            "run": self.run.to_dict(),
            "notes": list(self.notes),
            "blind": self.blind,
        }


def model(
    fit: object,
    rows: object,
    score: Score | None = None,
    *,
    runs: object = 1,
    shadows: object = 8,
    canaries: object = None,
    kind: str = ROWS,
    confidence: object = 0.95,
    delta: object = 0,
    state: object = None,
    seed: object = None,
    progress: Progress | None = None,
) -> ModelAudit:
    """Bound from below what a way of training tells about who was trained on.

    Args:
        fit: `fit(rows)` returns a model; or an estimator of scikit-learn, of which each run has a
            clone.
        rows: the training data: an array, a frame, a list, or a tuple such as (features, labels).
        score: `score(model, rows)` returns one number a row, higher for rows that the model knows;
            left out for models with `predict_proba`, `predict` or `score_samples`. `from_loss` and
            `from_text_loss` make one from losses.
        runs: fits whose coins are guessed; their evidence is combined exactly.
        shadows: fits more, from which attacks learn what is usual for each row.
        canaries: how many rows have a coin, the others being always in; left out, all rows have.
        kind: of canaries: rows as they are, mislabelled or outlying.
        state: a file to keep coins and scores in; an audit that was stopped is resumed from it.
        seed: for coins that repeat themselves; left out, they are from secure randomness.
        progress: called with 1 after each fit.

    Raises:
        MechanismFailed: target fits failed three times.
    """
    level, _error = exact.read_confidence(confidence)
    granted = read_delta(delta)
    asked = _terms(rows, runs, shadows, canaries, kind, seed)
    every = TrainingRows.read(rows)
    kept = _open(asked, every, None if state is None else path_of(state, "state"))
    rng = np.random.default_rng(whole(kept.terms.get("plant"), "state", 0))
    planted, places = plant(every, asked["canaries"], kind, rng)
    trainer = Trainer(_fitting(fit), score, planted, places)
    _train(trainer, kept, progress or (lambda _count: None), seed)
    return _result(kept, len(places), kind, level, granted)


def _terms(
    rows: object, runs: object, shadows: object, canaries: object, kind: str, seed: object
) -> dict[str, Any]:
    """What must be the same when an audit is resumed."""
    every = TrainingRows.read(rows)
    count = len(every)
    if canaries is not None:
        canaries = whole(canaries, "canaries", FEWEST, count)
    elif count < FEWEST:
        raise InvalidInput("rows", f"at least {FEWEST} (some 1,000 show most leaks)", count)
    return {
        "rows": [count, every.digest()],
        "runs": whole(runs, "runs", 1),
        "shadows": whole(shadows, "shadows", 0),
        "canaries": canaries,
        "kind": kind,
        "seed": None if seed is None else whole(seed, "seed", 0),
    }


def _open(asked: dict[str, Any], rows: TrainingRows, path: Path | None) -> TrainingState:
    """The state of before, or a new one, with all coins tossed."""
    count = asked["canaries"] or len(rows)
    if path is not None and path.is_dir():
        raise InvalidInput("state", "a file", f"{path.name}, a folder")
    if path is not None and path.exists():
        return load(path, asked, count)
    if path is not None and not path.parent.is_dir():
        raise InvalidInput("state", "a file in a folder that exists", str(path))
    rng = None if asked["seed"] is None else np.random.default_rng(asked["seed"])
    roles = [TARGET] * asked["runs"] + [SHADOW] * asked["shadows"]
    start = secrets.randbits(60) if rng is None else int(rng.integers(2**60))
    fits = [TrainingRun(role, tossing.toss(count, rng)) for role in roles]
    kept = TrainingState(asked | {"plant": start}, fits, path=path)
    kept.save()
    return kept


def _fitting(fit: Any) -> Callable[[Any], Any]:
    if hasattr(fit, "fit") and hasattr(fit, "get_params"):
        from sklearn.base import clone

        return lambda rows: clone(fit).fit(*rows if isinstance(rows, tuple) else (rows,))
    if not callable(fit):
        accepted = "a function fit(rows) or an estimator of scikit-learn"
        raise InvalidInput("fit", accepted, type(fit).__name__)
    return fit  # type: ignore[no-any-return]


class Trainer:
    """One fit after the other, each scored on all canaries."""

    def __init__(
        self, fit: Callable[[Any], Any], score: Score | None, rows: TrainingRows, places: Array
    ) -> None:
        self.fit, self.score, self.rows, self.places = fit, score, rows, places
        self.digest = rows.digest()
        self.stage = FITTING
        self.last: Callable[[], Any] = lambda: None

    def __call__(self, coins: Array) -> Array:
        """The scores of all canaries after a fit on those whose coins say so."""
        there = np.ones(len(self.rows), dtype=bool)
        there[self.places] = coins
        self.stage = FITTING
        fitted = self.fit(self.rows.take(np.flatnonzero(there)))
        self._check(fitted)
        asked = self.rows.take(self.places)
        score = self.score or known_score(fitted, asked)
        self.stage = SCORING
        return read_answer(score(fitted, asked), len(self.places))

    def _check(self, fitted: object) -> None:
        """Refuse a fit with a memory: runs would not be independent."""
        if fitted is None:
            raise InvalidInput("fit", "a function that returns a model", "None")
        if self.last() is fitted:
            accepted = "a function that makes a new model at each call"
            raise InvalidInput("fit", accepted, "the model of the run before")
        try:
            self.last = weakref.ref(fitted)
        except TypeError:  # numbers, lists
            self.last = lambda: None
        if self.rows.digest() != self.digest:
            raise InvalidInput("fit", "a function that leaves its rows as they are", "other rows")


def _train(trainer: Trainer, kept: TrainingState, tell: Progress, seed: object) -> None:
    """Every fit that is not done yet."""
    last: Exception | None = None
    for number, run in enumerate(kept.runs):
        tries = 0
        while run.scores is None:
            try:
                run.scores = trainer(run.coins)
            except WhosinError:
                raise
            except Exception as error:
                kept.failures.append([run.role, type(error).__name__])
                last, tries = error, tries + 1
                if run.role == SHADOW:
                    kept.save()
                    break
                salt = number, len(kept.failures)
                rng = (
                    None if seed is None else np.random.default_rng([whole(seed, "seed", 0), *salt])
                )
                run.coins = tossing.toss(len(run.coins), rng)
                kept.save()
                if tries >= ATTEMPTS:
                    words = f"{trainer.stage} failed {tries} times, last with {_words(error)}"
                    raise MechanismFailed(words) from error
            kept.save()
        tell(1)
    shadow = [run for run in kept.runs if run.role == SHADOW]
    if shadow and all(run.scores is None for run in shadow) and last is not None:
        raise MechanismFailed(f"every shadow fit failed, last with {_words(last)}") from last


def _words(error: Exception) -> str:
    """An error of the code under audit, in one line."""
    about = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {about}" if about else type(error).__name__


def _result(
    kept: TrainingState, canaries: int, kind: str, level: float, delta: float
) -> ModelAudit:
    done = [run for run in kept.runs if run.scores is not None]
    shadow = [run for run in done if run.role == SHADOW]
    targets = [run for run in done if run.role == TARGET]
    known = attacks.Shadows(
        np.array([run.coins for run in shadow]), np.array([run.scores for run in shadow])
    )
    attack = attacks.choose(known) if shadow else attacks.PLAIN
    coins = np.concatenate([run.coins for run in targets])
    told = np.concatenate(
        [attacks.ATTACKS[attack](run.scores, known) for run in targets]  # type: ignore[arg-type]
    )
    # What goes wrong with probability δ may go wrong at each try, and only success is looked at.
    tries = 1 + sum(role == TARGET for role, _name in kept.failures)
    run = one_run(coins, told, level, min(delta * tries, MOST_DELTA), known_rate=True)
    notes = []
    if kept.failures:
        names, failed = (
            ", ".join(sorted({name for _role, name in kept.failures})),
            len(kept.failures),
        )
        one = f"1 fit failed ({names}) and shows nothing"
        notes.append(one if failed == 1 else f"{failed:,} fits failed ({names}) and show nothing")
    if delta and tries > 1:
        notes.append(f"δ was granted {tries:,} times, once to each try of the target")
    blind = len(np.unique(told)) == 1
    if blind:
        notes.append("all scores were the same, so nothing could be learnt")
    return ModelAudit(
        epsilon=run.epsilon,
        log_ratio=run.log_ratio,
        confidence=level,
        delta=delta,
        run=run,
        attack=attack,
        seen=tuple((fpr, _seen(coins, told, fpr)) for fpr in RATES),
        canaries=canaries,
        kind=kind,
        runs=len(targets),
        shadows=len(shadow),
        failed=len(kept.failures),
        notes=tuple(notes),
        blind=blind,
    )


def _seen(coins: Array, told: Array, fpr: float) -> float:
    """The true positive rate at a false positive rate, as seen; ties against the attack."""
    outside = np.sort(told[~coins])[::-1]
    threshold = outside[min(int(fpr * len(outside)), len(outside) - 1)]
    return float((told[coins] > threshold).mean())
