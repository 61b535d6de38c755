"""Training, step by step, and what a step is made of."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from reference import slope
from refusing import refuses
from runs import small

from tui_transformer.engine.backend import POOL
from tui_transformer.engine.gradient import gradients
from tui_transformer.errors import InputError, UsageError
from tui_transformer.learning import loop
from tui_transformer.learning.data import lines_of, together
from tui_transformer.learning.loop import Trainer, inserted, kept, new_trainer, with_dropout
from tui_transformer.learning.run import Run
from tui_transformer.learning.tasks import TASKS
from tui_transformer.model import Model


# Training, one step at a time
def trainer(folder: Path, task: str = "next-character", **more: object) -> Trainer:
    settings = small(folder, task, **more)
    return new_trainer(settings, lines_of(settings))


def losses(made: Trainer) -> list[float]:
    return [made.advance().loss for _ in range(made.settings.steps)]


@pytest.mark.parametrize("task", TASKS)
def test_a_seed_makes_the_same_run_bit_for_bit(tmp_path, task):
    first, second, other = (trainer(tmp_path, task, steps=4, seed=seed) for seed in (0, 0, 1))
    course = losses(first)
    assert losses(second) == course != losses(other)
    assert all(np.array_equal(first.weights[name], second.weights[name]) for name in first.weights)


@pytest.mark.parametrize(
    ("task", "more", "bound"),
    [
        ("classify", {"steps": 60, "batch": 8}, 0.6),
        ("next-character", {"steps": 60, "batch": 4}, 2.6),
        ("pairs", {"steps": 80, "batch": 4, "tokens": "characters", "length": 40}, 1.9),
    ],
)
def test_a_toy_is_learned(tmp_path, task, more, bound):
    made = trainer(tmp_path, task, count=300, dropout=0.0, learning_rate=2e-2, **more)
    before = made.validate()
    course = losses(made)
    after = made.validate()
    assert sum(course[-5:]) / 5 < bound < course[0]
    assert after.loss < before.loss
    assert after.accuracy > before.accuracy
    assert after.perplexity == pytest.approx(math.exp(after.loss))


def test_batches_of_a_step_are_as_one_large_batch(tmp_path):
    options = {"dtype": "float64", "dropout": 0.0, "label_smoothing": 0.1, "validation": 0.0, "steps": 4}
    whole = trainer(tmp_path, "pairs", batch=8, **options)
    parts = trainer(tmp_path, "pairs", batch=4, accumulate=2, **options)
    assert losses(parts) == pytest.approx(losses(whole), rel=1e-10)
    for name in whole.weights:
        np.testing.assert_allclose(parts.weights[name], whole.weights[name], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("pad", ["", "[PAD]\n"])
def test_a_short_example_is_read_alone_whatever_fills_its_row(tmp_path, pad):
    words = tmp_path / "words.txt"
    words.write_text(f"[UNK]\n{pad}[MASK]\nthe\ncat\n", encoding="utf-8")
    settings = dataclasses.replace(small(tmp_path, "masked-word", vocab=str(words)), length=7, dropout=0.0)
    made = new_trainer(settings, ["the cat the\n"] * 3)
    made.model = dataclasses.replace(made.model, config=dataclasses.replace(made.model.config, pad_id=None))
    rows = [made.data.rows[place] for place in (0, 1)]
    assert [row.ids.size for row in rows] == [7, 2]
    losses = []
    for several in (rows, rows[1:]):
        trace = made._trace(together(several, made.data.vocabulary.pad_id))
        losses.append(trace.array(trace.program.logits)[-1, :2])
    assert np.allclose(losses[0], losses[1], atol=1e-5)


def test_a_step_is_recorded(tmp_path):
    made = trainer(tmp_path, steps=20)
    record = made.advance()
    assert record.step == made.step == 1
    assert record.learning_rate == pytest.approx(1e-3 / 2)
    assert record.tokens == 4 * 16
    assert 0 < record.epoch < 1
    assert record.tokens_per_second > 0
    assert set(record.norms) == {"embedding", "decoder.0", "decoder.norm", "output"}
    assert math.sqrt(sum(norm**2 for norm in record.norms.values())) == pytest.approx(record.gradient_norm)
    # the learning rate can be changed between steps
    made = trainer(tmp_path, schedule="constant", warm_up=0)
    assert made.advance().learning_rate == 1e-3
    made.learning_rate = 5e-4
    assert made.advance().learning_rate == 5e-4


def test_gradients_are_clipped_once_before_the_step(tmp_path):
    options = {"optimizer": "sgd", "warm_up": 0, "schedule": "constant", "learning_rate": 1.0}
    made = trainer(tmp_path, clip=0.01, **options)
    before = {name: weight.copy() for name, weight in made.weights.items()}
    assert made.advance().gradient_norm > 0.01
    moved = math.sqrt(sum(float(((made.weights[name] - before[name]) ** 2).sum()) for name in before))
    assert moved == pytest.approx(0.01, rel=1e-3)


def test_only_matrices_decay(tmp_path):
    made = trainer(tmp_path, weight_decay=0.5, warm_up=0, schedule="constant")
    for weight in made.weights.values():
        weight[...] = 1.0
    made.update({name: np.zeros_like(weight) for name, weight in made.weights.items()}, 0.1)
    for name, weight in made.weights.items():
        assert weight.flat[0] == pytest.approx(0.95 if weight.ndim > 1 else 1.0), name


def test_gradients_whose_squares_overflow_are_told_from_a_loss_that_is_no_number(tmp_path):
    made = trainer(tmp_path, clip=0)
    made.weights["output.logits.weight"] *= 1e22
    with np.errstate(over="ignore"), pytest.raises(InputError, match=r"began in the norm of all gradients: use"):
        made.advance()


def test_nan_and_overflow_stop_with_the_step_and_the_place_where_they_began(tmp_path, monkeypatch):
    for poisoned in ("decoder.0.feed_forward.hidden.weight", "output.logits.weight"):
        made = trainer(tmp_path)
        made.advance()
        made.weights[poisoned][0, 0] = np.nan
        refuses(f"step 2: .* began in the weight {poisoned}", made.advance)
        assert made.step == 1
    # overflow, in a layer
    made = trainer(tmp_path, dropout=0.1)
    made.weights["decoder.0.self_attention.query.weight"][...] = 1e30
    made.weights["decoder.0.self_attention.key.weight"][...] = 1e30
    refuses(r"began in decoder\.0\.self_attention\.scores, in layer decoder\.0: use", lambda: made.advance())
    # in a gradient alone
    made = trainer(tmp_path, dropout=0.0)
    backward = loop.weight_gradients

    def spoiled(*args, **more):
        loss, slopes = backward(*args, **more)
        slopes["output.logits.bias"][0] = np.inf
        return loss, slopes

    monkeypatch.setattr(loop, "weight_gradients", spoiled)
    before = made.weights["output.logits.bias"].copy()
    refuses("step 1: ", lambda: made.advance())
    assert np.array_equal(made.weights["output.logits.bias"], before)


def test_a_step_takes_no_more_memory_than_is_said_and_what_does_not_fit_is_refused(tmp_path, monkeypatch):
    POOL.clear()
    tracemalloc.start()
    made = trainer(tmp_path, count=200, batch=16, length=64, sizes={"d_model": 64, "heads": 4, "layers": 3})
    for _ in range(2):
        made.advance()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made.memory / 4 < peak < made.memory
    monkeypatch.setattr(loop, "available_memory", lambda: 1000)
    refuses(r"a step needs .* and 1000 B are free: use a smaller --batch", lambda: trainer(tmp_path))


def test_the_weights_of_a_model_that_is_trained_further_are_its_own(tmp_path):
    first = trainer(tmp_path)
    first.model.save(tmp_path / "model")
    settings = dataclasses.replace(small(tmp_path), model=str(tmp_path / "model"), sizes={})
    second = new_trainer(settings, lines_of(settings))
    second.advance()
    saved = Model.load(tmp_path / "model", device="cpu")
    name = "decoder.0.feed_forward.hidden.weight"
    assert np.array_equal(saved.weights.get(name, (16, 64)), first.weights[name])
    assert not np.array_equal(second.weights[name], first.weights[name])


@pytest.mark.parametrize(
    ("task", "more", "says"),
    [
        ("masked-word", {"sizes": {"architecture": "decoder"}}, "masked-word is for an encoder: decoder is a decoder"),
        ("next-word", {"sizes": {"architecture": "encoder"}}, "next-word is for a decoder"),
        ("pairs", {"sizes": {"architecture": "encoder"}}, "pairs is for an encoder-decoder"),
        ("next-word", {"sizes": {"max_length": 8}}, "--length 16: decoder reads 8 tokens"),
        ("next-word", {"sizes": {"heads": 3}}, "not divisible by 3 heads"),
    ],
)
def test_a_model_that_does_not_fit_the_task_is_refused(tmp_path, task, more, says):
    refuses(says, lambda: trainer(tmp_path, task, **more))


@pytest.mark.parametrize("model", ["classifiers/electra-discriminator", "classifiers/opt", "sentences/bert"])
def test_a_model_that_gives_labels_or_vectors_is_refused_before_a_run_is_begun(tmp_path, model):
    settings = small(tmp_path, "classify", model=str(Path(__file__).parents[1] / model))
    with pytest.raises(UsageError, match="has no logits of words, which every task learns: name another --model"):
        Run.start(tmp_path / "run", dataclasses.replace(settings, sizes={}))
    assert not (tmp_path / "run").exists()


# Dropout in a program for training, and nowhere else
IDS = [[2, 5, 3, 6, 4], [3, 3, 2, 7, 6]]
TARGETS = [[5, -1, 6, 4, 7], [2, 4, -1, -1, 5]]


def model(name: str = "decoder", **sizes: object) -> Model:
    settings = {"d_model": 8, "heads": 2, "d_ff": 6, "norm": "pre", "bias": True, "dtype": "float64"} | sizes
    return Model.load(name, device="cpu", **settings)


def test_dropout_stands_behind_the_embedding_and_every_sublayer():
    program = inserted(model("encoder-decoder").program(3, 3), 0.1)
    names = [step.name for step in program.steps if step.name.endswith("dropout")]
    assert names == [
        "embedding.dropout",
        "encoder.0.self_attention.dropout",
        "encoder.0.feed_forward.dropout",
        "decoder.embedding.dropout",
        "decoder.0.self_attention.dropout",
        "decoder.0.cross_attention.dropout",
        "decoder.0.feed_forward.dropout",
    ]
    assert program.step("encoder.0.self_attention.residual").inputs == (names[0], names[1])
    # the embedding is dropped under either of its names
    for positions in ("sinusoidal", "none"):
        program = inserted(model(positions=positions).program(3), 0.1)
        assert "embedding.dropout" in program.by_name
        assert program.step("decoder.0.self_attention.norm").inputs[0] == "embedding.dropout"


def test_the_cells_that_are_dropped_depend_on_seed_batch_and_place_and_others_are_scaled():
    trace = model().trace(ids=IDS)
    assert not [name for name in trace if "dropout" in name]
    assert with_dropout(trace, 0.0, 1, 1) is trace
    name = "decoder.0.feed_forward.dropout"
    places, again, other_batch, other_seed = (
        with_dropout(trace, 0.5, seed, batch) for seed, batch in ((1, 1), (1, 1), (1, 2), (2, 1))
    )
    assert np.array_equal(places[name], again[name])
    for other in (other_batch[name], other_seed[name], places["embedding.dropout"]):
        assert not np.array_equal(places[name] == 0, other == 0)
    # what is kept is divided by its share, so that the mean stays
    some = with_dropout(trace, 0.25, 1, 1)
    before, after = some["decoder.0.feed_forward.output"], some[name]
    assert set(np.unique(np.round(after / before, 12))) == {0.0, round(1 / 0.75, 12)}
    assert kept((400, 500), 0.1, (1, 2, 3)).mean() == pytest.approx(0.9, abs=0.003)


def test_a_gradient_through_dropout_is_the_slope_of_the_loss():
    trace = with_dropout(model().trace(ids=IDS), 0.3, 1, 1)
    computed = gradients(trace, TARGETS).values
    for name, index in (("decoder.0.self_attention.query.weight", (3, 5)), ("embedding.tokens.weight", (3, 2))):
        assert computed[name][index] == pytest.approx(slope(trace, name, index, TARGETS), rel=1e-5)
