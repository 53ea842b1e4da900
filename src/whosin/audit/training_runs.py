"""Audit a training: include rows at random, fit a model, count the surest guesses."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import secrets
import types
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from whosin import documents
from whosin.audit import model_scores
from whosin.audit.bounds import AuditBounds, Progress, read_confidence, read_delta, refuse_few
from whosin.audit.model_scores import (
    ROWS,
    Score,
    TrainingRows,
    known_score,
    plant_canaries,
    read_answer,
)
from whosin.audit.single_run import IN, MIN_CANARIES, OneRun, bound_run, check_rate
from whosin.errors import (
    InvalidInput,
    MechanismFailed,
    WhosinError,
    invalid_value,
    read_path,
    read_whole,
    spell,
)
from whosin.exact import Array
from whosin.plain_files import check_plain, replace_file


def draw_inclusion(count: int, rng: np.random.Generator | None) -> Array:
    """Fair inclusion bits from secure randomness, or from a generator for a run that repeats."""
    if rng is not None:
        return rng.random(count) < 0.5
    drawn = np.frombuffer(secrets.token_bytes((count + 7) // 8), dtype=np.uint8)
    return np.unpackbits(drawn)[:count].astype(bool)


# What an audit of training has done so far: its inclusion bits, its scores, its failures. Inclusion
# bits are drawn and kept before the first fit, so that an audit that was stopped goes on with the
# same ones, and a run is never repeated until it looks better. The file is replaced as a whole, is
# readable by its owner alone, and is refused for other rows, other terms and another fit or score
# (`fingerprint_fit`).


TARGET, SHADOW = "target", "shadow"
STATE_VERSION = 1


@dataclass
class TrainingRun:
    """One fit: its inclusion bits, and the scores once it is done."""

    role: str
    included: Array
    scores: Array | None = None


@dataclass
class TrainingState:
    """All fits of an audit, done and to do.

    Attributes:
        terms: what must be the same when the audit is resumed.
        failures: names of the errors of fits that failed, with the role of each.
    """

    terms: dict[str, Any]
    runs: list[TrainingRun]
    failures: list[list[str]] = field(default_factory=list)
    path: Path | None = None

    def save(self) -> None:
        """Replace the file, if there is one."""
        if self.path is None:
            return
        runs = [
            {
                "role": run.role,
                "included": "".join("01"[bit] for bit in run.included.astype(int)),
                "scores": None if run.scores is None else [str(each) for each in run.scores],
            }
            for run in self.runs
        ]
        data = {"version": STATE_VERSION, "terms": self.terms, "runs": runs}
        data |= {"failures": self.failures}
        try:
            replace_file(self.path, json.dumps(data), "state")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            message = f"the state file cannot be written: {reason}"
            raise InvalidInput(message, field="state", value=reason) from error


def load_state(path: Path, terms: dict[str, object], canaries: int) -> TrainingState:
    """The state of an audit that was stopped.

    Raises:
        InvalidInput: it belongs to other rows or terms, or is not the file of an audit.
    """
    data = documents.read_object(path, "state")
    message = f"{path.name} is not the state of an audit"
    try:
        known, runs, failures = data["terms"], data["runs"], data["failures"]
        read = [_read_run(each, canaries) for each in runs]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidInput(message, field="state", value=path.name) from None
    if data.get("version") != STATE_VERSION or not isinstance(known, dict):
        raise InvalidInput(message, field="state", value=path.name)
    other = [key for key, value in terms.items() if known.get(key) != value]
    if other:
        message = f"{path.name} is the state of an audit with other {' and '.join(other)}"
        raise InvalidInput(message, field="state", value=path.name, hint="name a new file")
    return TrainingState(known, read, [list(each) for each in failures], path)


def _read_run(entry: Any, canaries: int) -> TrainingRun:
    scores = entry["scores"]
    values = None if scores is None else np.array([float(each) for each in scores])
    included = np.array([bool(int(bit)) for bit in entry["included"]])
    lengths = {len(included), canaries if values is None else len(values)}
    if entry["role"] not in (TARGET, SHADOW) or lengths != {canaries}:
        raise ValueError(entry["role"])
    return TrainingRun(entry["role"], included, values)


# Which function this is: a digest of what it does, as far as one can read it. Two functions with
# one fingerprint have the same code and the same fixed values: defaults, parameters of an
# estimator, and whatever numbers, texts, arrays, functions and classes of the same module they name
# or enclose. What may change from call to call (lists, mappings, generators, open files) and what
# other modules do is not read, so that a function is itself after it was called.


MAX_DEPTH = 12
"""Functions and values inside one another that are read."""
_FIXED_TYPES = (bool, int, float, complex, str, bytes, type(None), type(...), range)


def fingerprint_fit(function: object) -> str:
    """A digest of a function, a class, or an estimator of scikit-learn."""
    told = _describe_value(function, getattr(function, "__module__", None), {}, 0)
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _describe_value(  # noqa: C901 (a case for each kind of value)
    value: Any, module: str | None, seen: dict[int, Any], depth: int
) -> object:
    """What a value is, as plain data; `seen` keeps what was read, so that no id comes again."""

    def inside(*parts: Any) -> list[object]:
        return [_describe_value(part, module, seen, depth + 1) for part in parts]

    def named(parts: Mapping[str, Any]) -> list[object]:
        return [(name, *inside(part)) for name, part in sorted(parts.items())]

    kind = type(value)
    if isinstance(value, _FIXED_TYPES):
        return kind.__name__, value
    if depth > MAX_DEPTH or id(value) in seen:
        return "again", kind.__name__
    seen[id(value)] = value
    match value:
        case np.ndarray() | np.generic() if value.dtype != object:
            return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()
        case tuple():
            return kind.__name__, inside(*value)
        case frozenset():
            return kind.__name__, inside(*sorted(value, key=repr))
        case functools.partial():
            return inside(value.func, value.args), named(value.keywords)
        case types.MethodType():
            return inside(value.__func__, value.__self__)
        case types.CodeType():
            return value.co_code, value.co_names, value.co_varnames, inside(*value.co_consts)
        case types.FunctionType():
            name = value.__module__, value.__qualname__
            if value.__module__ != module:
                return name
            known = inspect.getclosurevars(value)
            defaults = named(value.__kwdefaults__ or {}), inside(value.__defaults__)
            return (
                name,
                inside(value.__code__),
                defaults,
                named({**known.nonlocals, **known.globals}),
            )
        case type():
            fixed = {
                name: part
                for name, part in vars(value).items()
                if isinstance(part, (types.FunctionType, *_FIXED_TYPES)) and name != "__doc__"
            }
            own = named(fixed) if value.__module__ == module else []
            return value.__module__, value.__qualname__, own
    if hasattr(value, "get_params") and hasattr(value, "fit"):
        terms = value.get_params(deep=True).items()
        lists = {name: tuple(part) for name, part in terms if isinstance(part, list)}
        return inside(kind), named(dict(terms) | lists)
    if callable(value) and not isinstance(value, types.BuiltinFunctionType):
        return inside(kind), named(getattr(value, "__dict__", {}))
    return kind.__qualname__, getattr(value, "__qualname__", "")


# Audit a training: rows are included at random, a model is fitted, and the surest guesses are
# counted. Each target run has inclusion bits of its own, drawn before any fit, and a bit touches
# one run alone; so all inclusion bits of all target runs together are one experiment with a known
# rate, and `one_run` combines them exactly. Shadow runs only make scores better. A target fit that
# fails has told something, so its inclusion bits are never used again: it is counted, and new ones
# are drawn. A shadow fit that fails is counted, left out, and tried again when the audit is
# resumed.


FIT_ATTEMPTS = 3
"""Failures of target fits after which an audit gives up."""
MOST_DELTA = 1 - 2**-40
SHOWN_FALSE_POSITIVE_RATES = (0.1, 0.01, 0.001)
FITTING, SCORING = "fit", "score"
"""What a run is doing."""


@dataclass(frozen=True)
class TrainingAudit(AuditBounds):
    """The result of `training`.

    Attributes:
        run: what the guesses of all target runs together show.
        attack: how scores were compared for the guesses that show ε: plain, LiRA or RMIA, decided
            on the shadows, for guesses of each side by themselves.
        seen: true positive rates at low false positive rates, as seen: frequencies, not bounds.
        failed: fits that raised, targets and shadows.
        blind: all scores were the same, so nothing could be learnt.
    """

    relation: ClassVar[str | None] = "add-remove"
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


def training(  # noqa: PLR0913 (public parameters, all by name)
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
) -> TrainingAudit:
    """Bound from below what a way of training tells about who was trained on.

    Args:
        fit: `fit(rows)` returns a model; or an estimator of scikit-learn, of which each run has a
            clone.
        rows: the training data: an array, a frame, a list, or a tuple such as (features, labels).
        score: `score(model, rows)` returns one number a row, higher for rows that the model knows;
            left out for models with `predict_proba`, `predict` or `score_samples`. `score_loss` and
            `score_text_loss` make one from losses.
        runs: fits whose inclusion bits are guessed; their evidence is combined exactly.
        shadows: fits more, from which attacks learn what is usual for each row.
        canaries: how many rows are included at random, the others being always in; left out, all.
        kind: of canaries: rows as they are, mislabelled or outlying.
        state: a file to keep inclusion bits and scores in; an audit that was stopped is resumed
            from it, and refused where the rows, the terms, the fit or the score are others
            (`fingerprint_fit`).
        seed: for inclusion bits that repeat themselves; left out, they are from secure randomness.
        progress: called with 1 after each fit.

    Raises:
        MechanismFailed: target fits failed three times.
    """
    level, _error = read_confidence(confidence)
    granted = read_delta(delta)
    every = TrainingRows.read(rows)
    asked = _resumed_terms(every, runs, shadows, canaries, kind, seed)
    asked |= {"fit": fingerprint_fit(fit), "score": fingerprint_fit(score)}
    kept = _open_state(asked, every, None if state is None else read_path(state, "state"))
    rng = np.random.default_rng(read_whole(kept.terms.get("plant"), "state", 0))
    planted, places = plant_canaries(every, asked["canaries"], kind, rng)
    trainer = Trainer(_check_fit(fit), score, planted, places)
    _run_fits(trainer, kept, progress or (lambda _count: None))
    return _make_result(kept, len(places), kind, level, granted)


def _resumed_terms(
    rows: TrainingRows, runs: object, shadows: object, canaries: object, kind: str, seed: object
) -> dict[str, Any]:
    """What must be the same when an audit is resumed."""
    count = len(rows)
    if canaries is not None:
        canaries = read_whole(canaries, "canaries", MIN_CANARIES, count)
    refuse_few("rows", count, MIN_CANARIES, "rows")
    return {
        "rows": [count, rows.digest()],
        "runs": read_whole(runs, "runs", 1),
        "shadows": read_whole(shadows, "shadows", 0),
        "canaries": canaries,
        "kind": kind,
        "seed": None if seed is None else read_whole(seed, "seed", 0),
    }


def _open_state(asked: dict[str, Any], rows: TrainingRows, path: Path | None) -> TrainingState:
    """The state of before, or a new one, with all inclusion bits drawn."""
    count = asked["canaries"] or len(rows)
    if path is not None:
        check_plain(path, "state")
    if path is not None and path.exists():
        return load_state(path, asked, count)
    if path is not None and not path.parent.is_dir():
        message = f"the folder of the state file {path} does not exist"
        raise InvalidInput(message, field="state", value=str(path))
    rng = None if asked["seed"] is None else np.random.default_rng(asked["seed"])
    roles = [TARGET] * asked["runs"] + [SHADOW] * asked["shadows"]
    start = secrets.randbits(60) if rng is None else int(rng.integers(2**60))
    fits = [TrainingRun(role, draw_inclusion(count, rng)) for role in roles]
    kept = TrainingState(asked | {"plant": start}, fits, path=path)
    kept.save()
    return kept


def _check_fit(fit: Any) -> Callable[[Any], Any]:
    if hasattr(fit, "fit") and hasattr(fit, "get_params"):
        from sklearn.base import clone

        return lambda rows: clone(fit).fit(*rows if isinstance(rows, tuple) else (rows,))
    if not callable(fit):
        accepted = "a function fit(rows) or an estimator of scikit-learn"
        raise invalid_value("fit", accepted, type(fit).__name__)
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

    def __call__(self, included: Array) -> Array:
        """The scores of all canaries after a fit on those that are included."""
        there = np.ones(len(self.rows), dtype=bool)
        there[self.places] = included
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
            hint = "let it return the model"
            raise InvalidInput("fit returned None", field="fit", hint=hint)
        if self.last() is fitted:
            message = "fit returned the model of the run before"
            raise InvalidInput(message, field="fit", hint="let it make a new one at each call")
        try:
            self.last = weakref.ref(fitted)
        except TypeError:  # numbers, lists
            self.last = lambda: None
        if self.rows.digest() != self.digest:
            message = "fit changed the rows that it was given"
            raise InvalidInput(message, field="fit", hint="let it work on a copy")


def _run_fits(trainer: Trainer, kept: TrainingState, tell: Progress) -> None:
    """Every fit that is not done yet."""
    last: Exception | None = None
    for number, run in enumerate(kept.runs):
        tries = 0
        while run.scores is None:
            try:
                run.scores = trainer(run.included)
            except WhosinError:
                raise
            except Exception as error:
                kept.failures.append([run.role, type(error).__name__])
                last, tries = error, tries + 1
                if run.role == SHADOW:
                    kept.save()
                    break
                salt = number, len(kept.failures)
                start = kept.terms["seed"]
                rng = None if start is None else np.random.default_rng([start, *salt])
                run.included = draw_inclusion(len(run.included), rng)
                kept.save()
                if tries >= FIT_ATTEMPTS:
                    told = f"{trainer.stage} failed {tries} times"
                    raise MechanismFailed(f"{told}, last with {_describe_error(error)}") from error
            kept.save()
        tell(1)
    shadow = [run for run in kept.runs if run.role == SHADOW]
    if shadow and all(run.scores is None for run in shadow) and last is not None:
        words = f"every shadow fit failed, last with {_describe_error(last)}"
        raise MechanismFailed(words) from last


def _describe_error(error: Exception) -> str:
    """An error of the code under audit, in one line."""
    about = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {about}" if about else type(error).__name__


def _make_result(
    kept: TrainingState, canaries: int, kind: str, level: float, delta: float
) -> TrainingAudit:
    done = [run for run in kept.runs if run.scores is not None]
    shadow = [run for run in done if run.role == SHADOW]
    targets = [run for run in done if run.role == TARGET]
    known = model_scores.Shadows(
        np.array([run.included for run in shadow]), np.array([run.scores for run in shadow])
    )
    chosen = model_scores.choose_attack(known)
    included = np.concatenate([run.included for run in targets])
    by_attack = {
        name: np.concatenate(
            [model_scores.SHADOW_ATTACKS[name](run.scores, known) for run in targets]  # type: ignore[arg-type]
        )
        for name in set(chosen.values())
    }
    told = {side: by_attack[name] for side, name in chosen.items()}
    # What goes wrong with probability δ may go wrong at each try, and only success is looked at.
    tries = 1 + sum(role == TARGET for role, _name in kept.failures)
    granted = min(delta * tries, MOST_DELTA)
    rate, rates = check_rate(included, 0.5, True, 0.0)
    run = bound_run(included, told, level, read_confidence(level)[1], granted, rates, rate)
    outside = np.sort(told[IN][~included])[::-1]  # ties against the attack
    places = (min(int(fpr * len(outside)), len(outside) - 1) for fpr in SHOWN_FALSE_POSITIVE_RATES)
    seen = [float((told[IN][included] > outside[place]).mean()) for place in places]
    notes = []
    if kept.failures:
        names = ", ".join(sorted({name for _role, name in kept.failures}))
        failed = len(kept.failures)
        many = f"{spell(failed)} fits failed ({names}) and show nothing"
        notes.append(many if failed > 1 else f"1 fit failed ({names}) and shows nothing")
    if delta and tries > 1:
        notes.append(f"δ was granted {spell(tries)} times, once to each try of the target")
    if run.blind:
        notes.append("all scores were the same, so nothing could be learnt")
    return TrainingAudit(
        epsilon=run.epsilon,
        log_ratio=run.log_ratio,
        confidence=level,
        delta=delta,
        run=run,
        attack=chosen[run.side],
        seen=tuple(zip(SHOWN_FALSE_POSITIVE_RATES, seen, strict=True)),
        canaries=canaries,
        kind=kind,
        runs=len(targets),
        shadows=len(shadow),
        failed=len(kept.failures),
        notes=tuple(notes),
        blind=run.blind,
    )
