"""A dictionary of features that is learned: it finds the directions that rows are made of, and is read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tui_transformer.errors import InputError, UsageError
from tui_transformer.features.dictionary import Features, own_dictionary
from tui_transformer.learning import dictionary
from tui_transformer.learning.corpora import lines_of
from tui_transformer.learning.dictionary import Learner, Plan, examples, largest, learn
from tui_transformer.learning.optimizers import Optimizer
from tui_transformer.model.model import Model

WIDTH, TRUE = 16, 24


def made(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are sums of two of so many directions, around a mean; and the directions."""
    random = np.random.default_rng(seed)
    directions = random.standard_normal((TRUE, WIDTH))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    active = np.array([random.choice(TRUE, 2, replace=False) for _ in range(count)])
    strength = random.uniform(3.0, 6.0, active.shape)
    rows = (directions[active] * strength[..., None]).sum(axis=1) + 5.0
    return rows.astype(np.float32), directions


def test_it_finds_the_directions_that_rows_are_sums_of():
    rows, directions = made(20_000)
    learner = Learner(Plan("x", count=48, k=2, steps=1_500, batch=256, rate=5e-3), rows)
    random, first, left = np.random.default_rng(1), 0.0, 0.0
    for _ in range(1_500):
        left = learner.advance(rows[random.integers(0, len(rows), 256)])
        first = first or left
    assert left < 0.03 < 0.3 < first
    found = np.abs(directions @ learner.weights()["W_dec"].T).max(axis=1)
    assert np.count_nonzero(found > 0.97) >= TRUE - 3, np.sort(found)


@pytest.mark.parametrize("name", ["W_enc", "b_enc", "W_dec", "b_dec"])
def test_a_step_goes_down_the_gradient(name: str, monkeypatch: pytest.MonkeyPatch):
    """Against finite differences of Σ ‖x − x̂‖² ÷ n, and of what rested features add to it."""
    rows, _ = made(64)
    learner = Learner(Plan("x", count=20, k=3, steps=10, batch=64), rows)
    weights = learner._weights = {key: each.astype(np.float64) for key, each in learner._weights.items()}
    weights["b_enc"] += np.random.default_rng(3).normal(0, 0.1, 20)
    weights["b_enc"][4:] += 10  # the first four are active in no row, though above 0 in some
    learner._rested[:4] = dictionary.RESTS + 1
    given = {}
    learner._adam = Optimizer((), lambda _, weight, gradient, *__: given.update({id(weight): gradient}))
    monkeypatch.setattr(dictionary, "_of_length_one", lambda rows: rows)
    rows = rows.astype(np.float64)
    dead = np.array([each for each in range(4) if not learner.read(learner.scaled(rows))[0][:, each].any()])
    assert len(dead)
    fixed = learner.read(learner.scaled(rows))[1]

    def loss() -> float:
        wrong = learner.read(learner.scaled(rows))[1]
        z = (learner.scaled(rows) - weights["b_dec"]) @ weights["W_enc"][:, dead] + weights["b_enc"][dead]
        more = largest(z, min(len(dead), WIDTH // 2)) @ weights["W_dec"][dead] + fixed
        return float(np.square(wrong).sum() + dictionary.ALPHA * np.square(more).sum()) / len(rows)

    learner.advance(rows)
    gradient = np.asarray(given[id(weights[name])], np.float64)
    random = np.random.default_rng(4)
    for _ in range(6):
        direction = random.standard_normal(weights[name].shape)
        if name == "W_dec":  # what changes lengths alone is left out
            direction -= (direction * weights[name]).sum(axis=1, keepdims=True) * weights[name]
        before, size = weights[name].copy(), 1e-6
        weights[name][:] = before + size * direction
        up = loss()
        weights[name][:] = before - size * direction
        down = loss()
        weights[name][:] = before
        expected = (up - down) / (2 * size)
        assert float((gradient * direction).sum()) == pytest.approx(expected, rel=1e-3, abs=1e-3)


def test_what_is_saved_reads_as_it_was_measured(tmp_path: Path):
    model, texts = Model.load("story", device="cpu"), list(lines_of("story", 60))
    learned = learn(model, texts, Plan("decoder.1.output", count=96, k=4, steps=60, batch=128))
    learned.save(tmp_path / "d")
    features = Features.load(tmp_path / "d")
    assert (features.count, features.width, features.hook) == (96, 80, "blocks.1.hook_resid_post")
    held_out = np.concatenate([model.trace(text)["decoder.1.output"] for text in texts[19::20]]).astype(np.float64)
    active = features.encode(held_out)
    assert np.count_nonzero(active, axis=1).max() <= 4
    wrong = features.decode(active) - held_out
    left = np.square(wrong).sum() / np.square(held_out - held_out.mean(axis=0)).sum()
    assert learned.left == pytest.approx(left, rel=1e-3)
    assert (learned.dead, learned.rows) == (int((~active.any(axis=0)).sum()), len(held_out))
    assert learned.left < 0.7


def test_a_label_says_where_a_feature_is_strongest():
    model, texts = Model.load("story", device="cpu"), list(lines_of("story", 3, seed=5))
    path = own_dictionary(model.folder)
    assert path is not None
    features = Features.load(path)
    labels = examples(model, features, "decoder.1.output", texts)
    assert len(labels) == features.count
    values = [features.encode(model.trace(text)["decoder.1.output"]) for text in texts]
    feature = int(np.argmax(values[0].max(axis=0)))
    item = int(np.argmax([each[:, feature].max() for each in values]))
    token = model.encode(texts[item]).tokens[int(values[item][:, feature].argmax())]
    word = texts[item][token.start : token.end].strip()
    assert labels[feature].endswith(f"[{word}]")
    assert not labels[int(np.flatnonzero(~np.any([each.any(axis=0) for each in values], axis=0))[0])]


def test_rows_are_read_again_where_not_all_are_held(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dictionary, "HELD", 4_000)
    model, texts = Model.load("copy", device="cpu"), list(lines_of("copy", 60))
    plan, told = Plan("decoder.0.output", count=32, k=4, steps=70, batch=32), []
    assert learn(model, texts, plan, lambda *each: told.append(each)).left < 1
    assert [step for step, _ in told] == list(range(1, 71))


def test_what_cannot_be_learned_is_said_and_a_learning_that_is_stopped_gives_what_it_has():
    model, texts = Model.load("copy", device="cpu"), list(lines_of("copy", 40))
    few, step = ["a b"], "decoder.0.output"
    for error, says, given, plan in (
        (InputError, "1 text is too few: every twentieth", few, Plan(step)),
        (InputError, "too few tokens", few * 20, Plan(step, k=60)),
        (InputError, "no row a token", few, Plan("decoder.0.self_attention.weights")),
        (InputError, "no_step", few, Plan("no_step")),
        (UsageError, "0 active features", few, Plan(step, k=0)),
        (UsageError, "9 features cannot be active", few, Plan(step, count=8, k=9)),
        (InputError, "use fewer features", texts, Plan(step, count=10**9)),
        (InputError, "smaller learning rate", texts, Plan(step, count=16, steps=200, batch=16, rate=1e38)),
    ):
        with pytest.raises(error, match=says):
            learn(model, given, plan)
    asked = iter((False, False, True))
    learned = learn(model, texts, Plan(step, count=16, k=4, steps=500, batch=16), stops=lambda: next(asked))
    assert learned.steps == 3
    assert np.isfinite(learned.left)
