"""How well a model knows each row: adapters, by what models offer and never by what they are.

Contract: a score is one number a row, higher where the model looks as if it was trained on the row.
Adapters speak to protocols (`predict_proba`, `predict`, `score_samples`, `state_dict` and `eval`, a
loss function, `.loss` of a text model), so that no package of models is ever imported; a table is
read as synthetic data. Answers are read from arrays, lists and tensors of any device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array

Score = Callable[[Any, Any], Any]
SMALLEST = 1e-12
"""Probabilities are kept this far from 0 and 1."""
ANSWER = "scores of the model"
READABLE = "numbers, or tensors that can be brought to the processor's memory"
UNREADABLE = {"U": "text", "S": "text", "T": "text", "c": "complex numbers", "M": "dates"}
"""Kinds of arrays that are no scores; the letter is NumPy's."""


def known_score(model: object, rows: object) -> Score:
    """The score of a model that offers one by a known method."""
    labelled = isinstance(rows, tuple) and len(rows) == 2
    if labelled and hasattr(model, "predict_proba"):
        return from_probabilities
    if labelled and hasattr(model, "predict"):
        return from_predictions
    if hasattr(model, "score_samples"):
        return lambda fitted, asked: fitted.score_samples(asked)
    if isinstance(model, list) or hasattr(model, "columns") or getattr(model, "ndim", 0) == 2:
        from whosin.audit.synthetic.membership import from_synthetic

        return from_synthetic()
    offers = "predict_proba or predict (with rows as (features, labels)) or score_samples"
    raise InvalidInput(
        "score", f"a function score(model, rows) for a model without {offers}", "nothing"
    )


def from_probabilities(model: Any, rows: Any) -> Array:
    """The log-odds that the model gives to each row's own label."""
    features, labels = rows
    chances = numbers(model.predict_proba(features))
    classes = np.asarray(getattr(model, "classes_", np.arange(chances.shape[1])))
    known = np.asarray(labels)
    order = np.argsort(classes)
    places = np.clip(np.searchsorted(classes[order], known), 0, len(classes) - 1)
    columns = order[places]
    own = chances[np.arange(len(known)), columns]
    own = np.where(classes[columns] == known, own, 0.0)  # a label that the model never saw
    own = np.clip(own, SMALLEST, 1 - SMALLEST)
    return np.asarray(np.log(own) - np.log1p(-own))


def from_predictions(model: Any, rows: Any) -> Array:
    """Minus the squared error."""
    features, labels = rows
    try:
        known = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        accepted = "numbers, for a model that has predict and no predict_proba (or give a score)"
        raise InvalidInput("labels", accepted, "others") from None
    errors = numbers(model.predict(features)) - known
    return np.asarray(-(errors.reshape(len(errors), -1) ** 2).sum(axis=1))


def from_loss(loss: Callable[[Any, Any], Any]) -> Score:
    """A score from losses: `loss(model, rows)` gives one loss a row (PyTorch with
    reduction="none", JAX, or anything that can be read as numbers).

    A model with `eval` and `state_dict` (a PyTorch module) is put into its evaluation mode first.
    """

    def score(model: Any, rows: Any) -> Array:
        if hasattr(model, "state_dict") and hasattr(model, "eval"):
            model.eval()
        return -numbers(loss(model, rows))

    return score


def from_text_loss(tokenizer: Callable[..., Any], **options: object) -> Score:
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
            losses.append(float(numbers(answer.loss)))
        return losses

    return from_loss(loss)


def numbers(values: Any) -> Array:
    """Numbers from an array, a list, or a tensor on any device, with gradients or without."""
    for step in ("detach", "cpu"):
        method = getattr(values, step, None)
        if callable(method):
            values = method()
    if isinstance(values, list | tuple):
        parts = [numbers(each) for each in values]
        if len({part.shape for part in parts}) > 1:
            raise InvalidInput(ANSWER, "one for each row asked", "lists of several lengths")
        return np.array(parts, dtype=np.float64)
    if values is None:
        raise InvalidInput(ANSWER, READABLE, "nothing")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        got = f"{type(values).__name__}, which raised {type(error).__name__}"
        raise InvalidInput(ANSWER, READABLE, got) from error
    if array.dtype.kind in UNREADABLE:
        raise InvalidInput(ANSWER, READABLE, UNREADABLE[array.dtype.kind])
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:  # objects: no cell is quoted
        raise InvalidInput(ANSWER, READABLE, type(values).__name__) from error


def read_answer(values: Any, count: int) -> Array:
    """One score a row, checked."""
    array = numbers(values)
    if array.shape == (count, 1):
        array = array[:, 0]
    if array.shape != (count,):
        got = "one number" if array.shape == () else f"an array of shape {array.shape}"
        raise InvalidInput(ANSWER, f"one for each of the {count:,} rows asked", got)
    missing = int(np.isnan(array).sum())
    if missing:
        words = "one row" if missing == 1 else f"{missing:,} rows"
        raise InvalidInput(ANSWER, "numbers", f"NaN for {words}")
    return array
