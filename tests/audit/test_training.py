"""Audits of training: coins, canaries, adapters, shadows, failures, resuming."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import whosin as wi
from amounts import cases
from attacked import most_alarms
from refusals import about
from whosin.audit import model_scores
from whosin.audit.model_scores import TrainingRows, plant_canaries
from whosin.errors import InvalidInput, MechanismFailed, WhosinError

RNG = np.random.default_rng(0)
PEOPLE = RNG.normal(size=(300, 4)), RNG.integers(0, 3, 300)


def remember(rows):
    """A model that knows each row of its training data, with noise."""
    return {float(row[0]) for row in rows[0]}


def recall(noise):
    def score(model, rows):
        rng = np.random.default_rng(len(model))
        known = np.array([float(row[0]) in model for row in rows[0]])
        return known + noise * rng.normal(size=len(known))

    return score


def test_a_model_that_remembers_is_refuted_and_one_that_learns_nothing_is_not():
    found = wi.audit.training(remember, PEOPLE, recall(0.3), shadows=0, seed=1)
    assert found.epsilon > 2 and found.posterior(0.5) > 0.85 and found.refutes(1)
    assert found.run.rates == (0.5, 0.5) and found.attack == "plain" and not found.blind
    deaf = wi.audit.training(lambda rows: 1, PEOPLE, lambda model, rows: rows[0][:, 0], seed=1)
    assert deaf.epsilon == 0
    constant = wi.audit.training(lambda rows: 1, PEOPLE, lambda model, rows: np.ones(300), seed=1)
    assert constant.blind and "all scores were the same" in constant.notes[0]


def test_several_runs_are_one_experiment():
    one = wi.audit.training(remember, PEOPLE, recall(1.0), shadows=0, seed=1)
    four = wi.audit.training(remember, PEOPLE, recall(1.0), runs=4, shadows=0, seed=1)
    assert four.run.canaries == 1200 and four.epsilon > one.epsilon
    data = json.loads(json.dumps(four.to_dict()))
    assert data["runs"] == 4 and data["tpr_seen_at_fpr"]["0.1"] > 0.3


def test_shadows_show_more_where_rows_differ():
    """Each row has its own level of scores: only a comparison with shadows sees who was in."""
    base = np.random.default_rng(3).normal(size=300) * 5
    names = {float(row[0]): place for place, row in enumerate(PEOPLE[0])}

    def score(model, rows):
        rng = np.random.default_rng(len(model))
        places = np.array([names[float(row[0])] for row in rows[0]])
        known = np.array([float(row[0]) in model for row in rows[0]])
        return base[places] + known + 0.3 * rng.normal(size=len(known))

    alone = wi.audit.training(remember, PEOPLE, score, shadows=0, seed=1)
    helped = wi.audit.training(remember, PEOPLE, score, shadows=8, seed=1)
    assert helped.attack in ("LiRA", "RMIA")
    assert helped.epsilon > 2 > 1 > alone.epsilon


def test_attacks_never_fail_on_awkward_scores():
    rng = np.random.default_rng(1)
    coins = rng.random((4, 30)) < 0.5
    coins[:, 0], coins[:, 1] = True, False
    for scores in (
        np.zeros((4, 30)),
        np.where(rng.random((4, 30)) < 0.5, math.inf, -math.inf),
        rng.normal(size=(4, 30)) * 1e300,
        np.round(rng.normal(size=(4, 30))),
    ):
        known = model_scores.Shadows(coins, scores)
        for attack in model_scores.SHADOW_ATTACKS.values():
            with np.errstate(all="ignore"):
                assert not np.isnan(attack(scores[0], known)).any()
        assert set(model_scores.choose_attack(known).values()) <= set(model_scores.SHADOW_ATTACKS)


@cases(12, 1000)
def test_false_alarms_stay_within_the_level(count):
    """Fits that keep their promise exactly: each row by randomised response of ε = 1, with shadows,
    heavy tails, ties, and an attack that is chosen."""
    rng, false = np.random.default_rng(), 0
    keep = math.e / (1 + math.e)
    rows = np.arange(60)
    for _ in range(count):
        tails = rng.standard_cauchy(60) if rng.random() < 0.5 else np.zeros(60)

        def fit(inside):
            told = np.isin(rows, inside)
            return np.where(rng.random(60) < keep, told, ~told).astype(float)

        def score(model, asked, tails=tails):
            return model[asked] + tails[asked]

        false += wi.audit.training(fit, rows, score, shadows=4).epsilon > 1
    assert false <= most_alarms(count)


@pytest.mark.parametrize("kind", ["rows", "mislabelled", "outlying"])
def test_canaries_are_planted_and_the_rest_is_always_in(kind):
    rows = TrainingRows.read(PEOPLE)
    changed, places = plant_canaries(rows, 50, kind, np.random.default_rng(1))
    other = np.setdiff1d(np.arange(300), places)
    assert len(places) == 50
    for before, after in zip(rows.take(other), changed.take(other), strict=True):
        assert (before == after).all()
    (features, labels), (_x, known) = changed.take(places), rows.take(places)
    if kind == "mislabelled":
        assert (labels != known).all() and set(labels) <= {0, 1, 2}
    if kind == "outlying":
        assert (np.abs(features) > 4).all()

    sizes = []

    def fit(rows):
        sizes.append(len(rows[0]))
        return remember(rows)

    found = wi.audit.training(fit, PEOPLE, recall(0.1), canaries=50, kind=kind, shadows=0, seed=1)
    assert 250 < sizes[0] < 300 and found.canaries == 50 and found.epsilon > 1


def test_mislabelled_canaries_find_what_rows_hide():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(600, 5))
    people = x, (x[:, 0] > 0).astype(int)
    tree = DecisionTreeClassifier(min_samples_leaf=1, random_state=0)
    plain = wi.audit.training(tree, people, shadows=0, seed=1)
    planted = wi.audit.training(tree, people, canaries=300, kind="mislabelled", shadows=0, seed=1)
    assert planted.epsilon > plain.epsilon + 1


def test_known_methods_of_models_give_scores():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 150))
    labels, target = rng.integers(0, 2, 200), rng.normal(size=200)
    assert wi.audit.training(LogisticRegression(C=1e4), (x, labels), shadows=0, seed=1).epsilon > 1
    assert wi.audit.training(Ridge(alpha=1e-6), (x, target), shadows=0, seed=1).epsilon > 1
    words = np.array(["no", "yes"])[labels]
    assert wi.audit.training(LogisticRegression(C=1e4), (x, words), shadows=0, seed=1).epsilon > 1
    with pytest.raises(InvalidInput, check=about("score")):
        wi.audit.training(lambda rows: object(), x, shadows=0)


class Tensor:
    """What PyTorch's tensors offer: numbers only after `detach` and `cpu`."""

    def __init__(self, values, steps=("detach", "cpu")):
        self.values, self.steps = values, steps

    def detach(self):
        return Tensor(self.values, tuple(s for s in self.steps if s != "detach"))

    def cpu(self):
        assert "detach" not in self.steps
        return Tensor(self.values, ())

    def __array__(self, dtype=None, copy=None):
        if self.steps:
            raise TypeError("can't convert a tensor with a gradient on a device")
        return np.asarray(self.values, dtype=dtype)


class Module:
    """What PyTorch's modules offer."""

    def __init__(self, known):
        self.known, self.training, self.device = known, True, "gpu"

    def state_dict(self):
        return {"known": self.known}

    def eval(self):
        self.training = False
        return self

    def __call__(self, input_ids, labels):
        assert input_ids is labels and not self.training
        there = tuple(input_ids) in self.known
        return type("Answer", (), {"loss": Tensor(0.1 if there else 1.0 + len(input_ids) / 100)})()


def test_losses_of_tensors_and_texts_give_scores():
    def loss(model, rows):
        assert not model.training
        return Tensor(np.where([float(r[0]) in model.known for r in rows[0]], 0.1, 1.0))

    found = wi.audit.training(
        lambda rows: Module(remember(rows)), PEOPLE, wi.audit.score_loss(loss), shadows=0, seed=1
    )
    assert found.epsilon > 2
    texts = [f"text {place}" for place in range(200)]

    def tokenizer(text, return_tensors):
        assert return_tensors == "pt"
        return Tokens(input_ids=[ord(letter) for letter in text])

    class Tokens(dict):
        def to(self, device):
            assert device == "gpu"
            return self

    def fit(rows):
        return Module({tuple(ord(letter) for letter in text) for text in rows})

    found = wi.audit.training(fit, texts, wi.audit.score_text_loss(tokenizer), shadows=0, seed=1)
    assert found.epsilon > 2


class OnlyOnGpu:
    """As a tensor of PyTorch on a GPU, where there is no `cpu` to call."""

    def __len__(self):
        return 300

    def numpy(self):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")

    def __array__(self, *_args, **_options):
        return self.numpy()


class Lost(OnlyOnGpu):
    """On a GPU that no longer answers."""

    def cpu(self):
        raise RuntimeError("CUDA error: device-side assert triggered")


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        (lambda rows: np.ones(7), (7,)),
        (lambda rows: 1.0, ()),
        (lambda rows: np.full(300, math.nan), 300),
        (lambda rows: np.append(np.zeros(299), math.nan), 1),
        (lambda rows: ["secret"] * 300, "text"),
        (lambda rows: np.array(["1.5"] * 300), "text"),
        (lambda rows: None, "nothing"),
        (lambda rows: [None] * 300, "nothing"),
        (lambda rows: np.zeros(300) + 1j, "complex numbers"),
        (lambda rows: dict.fromkeys(range(300), 1.0), "dict"),
        (lambda rows: iter([1.0] * 300), "list_iterator"),
        (lambda rows: [[1.0], [1.0, 2.0]], None),
        (lambda rows: OnlyOnGpu(), "OnlyOnGpu, which raised TypeError"),
        (lambda rows: [OnlyOnGpu()] * 300, "OnlyOnGpu, which raised TypeError"),
    ],
)
def test_wrong_scores_are_refused_in_a_sentence(answer, value):
    with pytest.raises(InvalidInput, check=about("score", value)) as refused:
        wi.audit.training(remember, PEOPLE, lambda model, rows: answer(rows), shadows=0)
    assert "secret" not in str(refused.value)


def test_fits_with_a_memory_are_refused():
    same = Module(set())
    with pytest.raises(InvalidInput, check=about("fit")):
        wi.audit.training(lambda rows: same, PEOPLE, lambda m, r: r[0][:, 0], shadows=1)
    people = [[1.0 * place] for place in range(50)]
    with pytest.raises(InvalidInput, check=about("fit")):
        wi.audit.training(lambda rows: rows[0].append(2) or 1, people, lambda m, r: range(len(r)))
    with pytest.raises(InvalidInput, check=about("fit")):
        wi.audit.training(lambda rows: None, PEOPLE)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"rows": "abc"}, "rows"),
        ({"rows": (np.ones(30), np.ones(29))}, "rows"),
        ({"rows": np.ones(3)}, "rows"),
        ({"fit": 3}, "fit"),
        ({"runs": 0}, "runs"),
        ({"shadows": -1}, "shadows"),
        ({"canaries": 301}, "canaries"),
        ({"kind": "gold"}, "kind of canaries"),
        ({"kind": "outlying"}, "canaries"),
        ({"confidence": 2}, "confidence"),
        ({"state": "no/such/folder/state.json"}, "state"),
    ],
    ids=str,
)
def test_bad_input_is_refused_by_name(change, field):
    given = {"fit": remember, "rows": PEOPLE, "score": recall(1.0)} | change
    with pytest.raises(WhosinError, check=about(field)):
        wi.audit.training(**given)


def test_an_audit_that_was_stopped_goes_on_with_the_same_coins(tmp_path):
    state, seen, again, stops = tmp_path / "state.json", [], [], [3]

    def fit(rows):
        made = seen if stops else again
        made.append(remember(rows))
        if len(made) in stops:
            stops.clear()
            raise KeyboardInterrupt
        return made[-1]

    terms = {"shadows": 4, "state": state}
    with pytest.raises(KeyboardInterrupt):
        wi.audit.training(fit, PEOPLE, recall(0.5), **terms)
    assert state.stat().st_mode & 0o077 == 0
    told: list[int] = []
    found = wi.audit.training(fit, PEOPLE, recall(0.5), **terms, progress=told.append)
    assert len(again) == 3 and again[0] == seen[2] and sum(told) == 5
    assert found == wi.audit.training(None or fit, PEOPLE, recall(0.5), **terms) and len(again) == 3
    with pytest.raises(InvalidInput, match="other shadows"):
        wi.audit.training(fit, PEOPLE, recall(0.5), shadows=5, state=state)
    with pytest.raises(InvalidInput, match="other rows"):
        wi.audit.training(fit, (PEOPLE[0] + 1, PEOPLE[1]), recall(0.5), **terms)
    state.write_text("{}")
    with pytest.raises(InvalidInput, check=about("state", "state.json")):
        wi.audit.training(fit, PEOPLE, recall(0.5), **terms)


def test_fits_that_fail_are_counted(tmp_path):
    calls: list[int] = []

    def fit(rows):
        calls.append(1)
        if len(calls) in (1, 3):  # the first target, and the first shadow
            raise ValueError("out of luck")
        return remember(rows)

    terms = {"shadows": 3, "state": tmp_path / "state.json"}
    found = wi.audit.training(fit, PEOPLE, recall(0.5), **terms)
    assert found.failed == 2 and found.shadows == 2 and found.runs == 1
    assert "2 fits failed (ValueError) and show nothing" in found.notes[0]
    again = wi.audit.training(fit, PEOPLE, recall(0.5), **terms)
    assert again.shadows == 3 and len(calls) == 6

    def never(rows):
        raise ValueError("no luck\nat all")

    with pytest.raises(
        MechanismFailed, match="failed 3 times, last with ValueError: no luck at all"
    ):
        wi.audit.training(never, PEOPLE, recall(0.5))


def test_a_fit_that_is_tried_until_it_leaks_shows_nothing(tmp_path):
    """It is (0, δ)-DP: it fails whatever its rows are, or keeps them, with probability δ."""
    rng, rows, delta = np.random.default_rng(1), np.arange(40.0).reshape(-1, 1), 0.004

    def fit(table):
        if rng.random() > delta:
            raise ValueError("no luck")
        return {"rows": set(table[:, 0].tolist())}

    def score(model, table):
        return [float(value in model["rows"]) + value / 1e6 for value in table[:, 0].tolist()]

    audit = None
    while audit is None:
        with contextlib.suppress(MechanismFailed):
            audit = wi.audit.training(
                fit, rows, score, shadows=0, delta=delta, state=tmp_path / "state.json"
            )
    assert audit.failed > 20 and audit.epsilon == 0 and audit.delta == delta
    assert f"δ was granted {audit.failed + 1} times" in audit.notes[1]


def test_a_failure_says_which_part_failed_and_how():
    def empty(rows):
        raise MemoryError

    with pytest.raises(MechanismFailed, match=r"^fit failed 3 times, last with MemoryError$"):
        wi.audit.training(empty, PEOPLE, recall(0.5))

    def missing(model, rows):
        raise KeyError("row")

    with pytest.raises(MechanismFailed, match=r"^score failed 3 times, last with KeyError: 'row'$"):
        wi.audit.training(remember, PEOPLE, missing)
    with pytest.raises(
        MechanismFailed, match=r"^score failed 3 times, last with RuntimeError: CUDA"
    ):
        wi.audit.training(remember, PEOPLE, lambda model, rows: Lost())
    calls: list[int] = []

    def once(rows):
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("CUDA out of memory")
        return remember(rows)

    words = "every shadow fit failed, last with RuntimeError: CUDA out of memory$"
    with pytest.raises(MechanismFailed, match=words):
        wi.audit.training(once, PEOPLE, recall(0.5), shadows=3)


def test_labels_in_words_need_a_score_or_probabilities():
    class Predicts:
        def predict(self, rows):
            return np.array(["secret"] * len(rows))

    labels = np.array(["secret", "other"] * 150)
    with pytest.raises(InvalidInput, check=about("labels")):
        wi.audit.training(lambda rows: Predicts(), (PEOPLE[0], labels), shadows=0)


@pytest.mark.parametrize("reason", [errno.EACCES, errno.ENOSPC])
def test_a_state_that_cannot_be_kept_is_refused_before_any_fit(tmp_path, monkeypatch, reason):
    calls: list[int] = []

    def refuse(*_args, **_options):
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr("whosin.plain_files.os.open", refuse)
    with pytest.raises(InvalidInput, check=about("state", os.strerror(reason))):
        wi.audit.training(calls.append, PEOPLE, recall(0.5), state=tmp_path / "state.json")
    assert not calls


def test_a_state_that_is_a_folder_is_refused(tmp_path):
    with pytest.raises(InvalidInput, check=about("state")):
        wi.audit.training(remember, PEOPLE, recall(0.5), state=tmp_path)


def test_a_tree_that_errs_on_nobody_it_has_seen_is_refuted():
    """Whom it misclassifies was surely out; that it is right about the others tells little."""
    images, digits = load_digits(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0)
    found = wi.audit.training(tree, (images, digits), shadows=0, seed=1)
    assert found.epsilon > 2.5 and found.log_ratio < 0.5
    wrong = dict(zip(found.run.outside.tried, found.run.outside.right, strict=True))
    least = min(wrong)
    assert least > 100 and wrong[least] == least


def fit_of(scale, steps=(1, 2)):
    """A fit with values of its own, a fixed one and a list that changes."""
    calls: list[int] = []

    def fit(rows):
        calls.append(len(steps))
        return {"scale": scale, "rows": remember(rows)}

    return fit


def known_rows(model, rows):
    return [model["scale"] * (float(row[0]) in model["rows"]) for row in rows[0]]


def shifted_rows(model, rows):
    return [1 + each for each in known_rows(model, rows)]


def test_a_state_belongs_to_its_fit_and_its_score(tmp_path):
    terms = {"shadows": 0, "seed": 1}
    tree = DecisionTreeClassifier(min_samples_leaf=1, random_state=0)
    fits: dict[str, tuple[object, list[object]]] = {
        "estimator": (
            tree,
            [
                DecisionTreeClassifier(min_samples_leaf=40, random_state=0),
                LogisticRegression(),
                make_pipeline(StandardScaler(), tree),
            ],
        ),
        "pipeline": (
            make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3)),
            [make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=4))],
        ),
    }
    for name, (fit, others) in fits.items():
        state = tmp_path / name
        found = wi.audit.training(fit, PEOPLE, **terms, state=state)
        assert wi.audit.training(clone(fit), PEOPLE, **terms, state=state) == found
        for other in others:
            with pytest.raises(InvalidInput) as refused:
                wi.audit.training(other, PEOPLE, **terms, state=state)
            assert refused.value.field == "state"


def test_a_state_belongs_to_its_function(tmp_path):
    terms = {"shadows": 0, "seed": 1, "state": tmp_path / "state.json"}
    found = wi.audit.training(fit_of(1.0), PEOPLE, known_rows, **terms)
    assert wi.audit.training(fit_of(1.0), PEOPLE, known_rows, **terms) == found
    others = [
        (fit_of(2.0), known_rows),
        (fit_of(1.0, (1,)), known_rows),
        (fit_of(1.0), shifted_rows),
        (partial(fit_of(1.0)), known_rows),
        (lambda rows: {"scale": 0.0, "rows": set()}, known_rows),
    ]
    for fit, score in others:
        with pytest.raises(InvalidInput) as refused:
            wi.audit.training(fit, PEOPLE, score, **terms)
        assert refused.value.field == "state"
