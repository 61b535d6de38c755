"""Probes and directions: against the definitions written out in NumPy, and on models that are trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ended import ended
from plain_numpy import softmax
from reference import in_float64
from refusing import refuses

from tui_transformer import Direction, InputError, Model, Project, direction, generate, gradients_of_cell, probe, record

RNG = np.random.default_rng(5)
X = RNG.normal(size=(200, 6)) * np.array([1.0, 30, 0.1, 2, 5, 1]) + 3
NOISE = RNG.normal(size=200)


@dataclass
class Data:
    """Rows in memory."""

    values: np.ndarray
    text: np.ndarray
    position: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __getitem__(self, at: Any) -> np.ndarray:
        return self.values[at]


def data_of(values: np.ndarray, tokens: int = 1) -> dict[str, Data]:
    rows = np.arange(len(values))
    return {"decoder.3.output": Data(values, rows // tokens, rows % tokens)}


def penalised(x: np.ndarray, penalty: float = 0.01) -> tuple[np.ndarray, float]:
    rows = x - x.mean(axis=0)
    return rows, penalty * rows.var(axis=0).mean()


def test_ridge_is_least_squares_with_rows_for_the_penalty():
    y = X @ np.array([1.0, -2, 3, 0, 0, 1]) + NOISE
    (found,) = probe(data_of(X), y, kind="ridge", held_out=0.25, seed=3)
    assert (found.classes, found.fitted, found.held, found.layer, found.chance) == ((), 150, 50, 3, 0.0)
    out = np.random.default_rng(3).permutation(200)[:50]
    part = ~np.isin(np.arange(200), out)
    rows, ridge = penalised(X[part])
    stacked = np.vstack([rows, np.sqrt(part.sum() * ridge) * np.eye(6)])
    wanted = np.linalg.lstsq(stacked, np.concatenate([y[part] - y[part].mean(), np.zeros(6)]))[0]
    np.testing.assert_allclose(found.weights[:, 0], wanted, rtol=1e-9)
    guess = (X[out] - X[part].mean(axis=0)) @ wanted + y[part].mean()
    np.testing.assert_allclose(found.predict(X[out]), guess)
    r2 = 1 - np.square(y[out] - guess).sum() / np.square(y[out] - y[part].mean()).sum()
    assert found.score == pytest.approx(r2)
    few = probe(data_of(X[:5]), y[:5], kind="ridge", held_out=0.2)[0]  # fewer rows than columns
    rows, ridge = penalised(np.delete(X[:5], np.random.default_rng(0).permutation(5)[0], axis=0))
    kept = np.delete(y[:5], np.random.default_rng(0).permutation(5)[0])
    wanted = np.linalg.solve(rows.T @ rows / 4 + ridge * np.eye(6), rows.T @ (kept - kept.mean()) / 4)
    np.testing.assert_allclose(few.weights[:, 0], wanted, rtol=1e-7)


def test_logistic_of_two_classes_is_what_newton_with_the_whole_hessian_finds():
    y = (X[:, 0] + 0.1 * X[:, 1] + NOISE > 6).astype(int)
    (found,) = probe(data_of(X), np.where(y == 1, "yes", "no"), kind="logistic", held_out=0.1)
    assert found.classes == ("no", "yes")
    order = np.random.default_rng(0)
    groups = [order.permutation(np.flatnonzero(y == each)) for each in (0, 1)]
    part = np.sort(np.concatenate([group[round(0.1 * len(group)) :] for group in groups]))
    rows, ridge = penalised(X[part])
    x, w = np.column_stack([rows, np.ones(len(rows))]), np.zeros(7)
    shrink = np.array([ridge] * 6 + [0.0])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ w))
        hessian = (x.T * (p * (1 - p))) @ x / len(x) + np.diag(shrink)
        w -= np.linalg.solve(hessian, x.T @ (p - y[part]) / len(x) + shrink * w)
    np.testing.assert_allclose(found.weights[:, 0], w[:6], rtol=1e-5, atol=1e-8)
    assert found.own == np.mean((x @ w > 0) == y[part])
    assert found.score == np.mean([found.predict(X[[i]])[0] == ("yes" if y[i] else "no") for i in held_of(part)])


def held_of(part: np.ndarray) -> list[int]:
    return sorted(set(range(200)) - set(part.tolist()))


def test_logistic_of_several_classes_has_no_slope_left():
    y = np.digitize(X[:, 0] + NOISE, [2.0, 3.5])
    (found,) = probe(data_of(X), y, held_out=0.01)
    order = np.random.default_rng(0)
    out = [order.permutation(np.flatnonzero(y == each))[: round(0.01 * (y == each).sum())] for each in range(3)]
    part = held_of(np.concatenate(out))
    rows, ridge = penalised(X[part])
    z = rows @ found.weights + found.bias + X[part].mean(axis=0) @ found.weights
    p = softmax(z)
    slope = rows.T @ (p - np.eye(3)[y[part]]) / len(rows) + ridge * found.weights
    assert np.abs(slope).max() < 1e-6
    assert found.own > np.bincount(y).max() / 200
    refuses("3 classes have a direction each", lambda: found.direction)
    assert len(found.directions) == 3


def test_a_probe_says_how_far_it_is_and_ends_where_that_is_asked():
    said = ended(lambda report: list(probe(data_of(X), NOISE > 0, report=report)), lambda what: what.endswith("step 2"))
    assert said == [f"probe · decoder.3.output · mean · {more}" for more in ("reading", "step 0", "step 1", "step 2")]


def test_difference_of_means_lies_between_them():
    y = X[:, 3] > 3
    (found,) = probe(data_of(X), y, kind="difference", held_out=0.005)
    order = np.random.default_rng(0)
    out = [order.permutation(np.flatnonzero(y == each))[: round(0.005 * (y == each).sum())] for each in (False, True)]
    part = np.array(held_of(np.concatenate(out))) if any(map(len, out)) else np.delete(np.arange(200), 0)
    low, high = X[part][~y[part]].mean(axis=0), X[part][y[part]].mean(axis=0)
    np.testing.assert_allclose(found.direction.vector, high - low)
    np.testing.assert_allclose(
        found.values(np.stack([low, high]))[:, 0], np.array([-1, 1]) * ((high - low) @ (high - low)) / 2
    )


@pytest.mark.parametrize("kind", ["logistic", "ridge", "difference"])
def test_no_text_is_divided_and_what_tokens_share_is_not_learnt(kind: str):
    """Every text has a mark of its own, and labels at random: a probe that saw a token of a text would know it."""
    marks = np.repeat(RNG.normal(size=(120, 60)) * 5, 4, axis=0)
    labels = np.repeat(RNG.integers(0, 2, 120), 4)
    (found,) = probe(data_of(marks, 4), labels, kind=kind, position="every", penalty=1e-4)
    assert found.held % 4 == 0
    assert found.own > 0.7
    assert found.score < 0.7


def test_positions_are_counted_from_both_ends_and_labels_may_be_left_out():
    values, text = np.arange(14.0)[:, None] * np.ones(2), np.repeat(np.arange(6), [1, 2, 3, 3, 3, 2])
    position = np.concatenate([np.arange(n) for n in (1, 2, 3, 3, 3, 2)])
    data = {"decoder.0.output": Data(values, text, position)}
    table = probe(data, ["a", None, "b", "a", "b", "b"], kind="difference", position=[0, -1, 2, "mean"], held_out=0.2)
    assert [(each.position, each.fitted + each.held) for each in table] == [(0, 5), (-1, 5), (2, 3), ("mean", 5)]
    assert " ".join(table.rows()[0]) == "step layer kind position fitted held own score chance classes"
    rows = [None if i == 3 else "b" if i % 2 else "a" for i in range(14)]
    assert probe(data, rows, kind="difference", position="every", held_out=0.2)[0].fitted < 13


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"labels": [1, 2]}, "2 labels are neither for 10 texts nor for 20 rows"),
        ({"labels": [0, 1] * 5 + [1]}, "11 labels are neither for 10 texts nor for 20 rows"),
        ({"labels": ["a"] * 10}, "every label is 'a'"),
        ({"labels": [None] * 10}, "no text has a label"),
        ({"labels": ["a"] * 9 + ["b"], "held_out": 0.9}, "too few texts|every class"),
        ({"labels": range(20)}, "labels of rows have no mean"),
        ({"labels": [0, 1, 2] * 3 + [0], "kind": "difference"}, "between two classes, not 3"),
        ({"labels": [0, 1] * 5, "kind": "svm"}, "no probe is called 'svm': use ridge"),
        ({"labels": [0, 1] * 5, "position": "last"}, "'last' is no position"),
        ({"labels": [0, 1] * 5, "penalty": 0}, "penalty is more than 0"),
        ({"labels": [0, 1] * 5, "penalty": np.inf}, "penalty is more than 0, and finite"),
        ({"labels": [0, 1] * 5, "position": 7}, "a token at 7"),
        ({"labels": [np.nan, *range(9)], "kind": "ridge"}, "a label is NaN or infinity: give None where a text or row"),
        ({"labels": [np.float32("nan"), *[0, 1, 0] * 3]}, "a label is NaN or infinity"),
    ],
)
def test_what_cannot_be_probed_is_said(given: dict, said: str):
    refuses(said, lambda: list(probe(data_of(X[:20], 2), **given)))


@pytest.mark.parametrize("kind", ["ridge", "logistic", "difference"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_overflowed_are_no_probe_that_reads_nothing(kind: str, value: float):
    rows = X[:20].copy()
    rows[3, 1] = value
    with pytest.raises(InputError, match=r"decoder\.3\.output holds NaN or infinity: no probe can be fitted to it"):
        list(probe(data_of(rows), [0, 1] * 10, kind=kind))


def test_a_probe_of_a_model_reads_what_texts_say_and_is_blind_without_its_direction(tmp_path: Path):
    model = Model.load("story", device="cpu")
    animals = ("fox", "crow")
    texts = [
        f"{who} {animals[i % 2]} {did}"
        for i, (who, did) in enumerate(
            (who, did)
            for who in ("The", "Once a", "And so the", "Then the")
            for did in ("found a shell", "went home", "saw the sea", "was tired", "had a key", "was happy")
        )
    ]
    labels = [animals[i % 2] for i in range(len(texts))]
    data = record(model, texts, ["*.output", "1.self_attention.context"], tmp_path)
    table = probe(data, labels, kind="ridge")
    assert [each.step for each in table] == list(data)
    best = table[[each.step for each in table].index(model.program(2).aliases["decoder.0.output"])]
    assert (best.score, best.chance, best.classes) == (1.0, 0.5, ("crow", "fox"))
    for each in (best, table[-1]):
        trace = model.trace(texts[0]).edited(each.remove())
        rows = np.moveaxis(trace[each.step], -2, 0)
        assert np.ptp(each.values(rows)[:, 0] if each is best else rows.sum(axis=2) * 0) < 1e-4
    for each in probe(data, ["fox", "crow", "other"] * (len(texts) // 3), position=-1):  # heads apart, several classes
        rows = np.moveaxis(model.trace(texts[0]).edited(each.remove())[each.step], -2, 0)
        np.testing.assert_allclose(each.values(rows), np.broadcast_to(each.bias, (len(rows), 3)), atol=1e-4)
    context = table[-1]
    assert context.direction.vector.shape == (4, 1, 20)
    trace = model.trace(texts[0])
    edited = trace.edited([context.direction.add(2.0)])
    np.testing.assert_allclose(
        edited[context.step] - trace[context.step],
        np.broadcast_to(2 * context.direction.vector, (4, len(trace["tokens"]), 20)),
        atol=1e-5,
    )


def test_a_label_is_of_every_text_that_was_read_though_it_has_no_row(tmp_path: Path):
    texts = ["The fox ran .", "The crow sat .", "The fox sat .", "The crow ran .", ""]
    data = record(Model.load("story", device="cpu"), texts, ["1.output"], tmp_path)
    assert probe(data, ["a", "b", "a", "b", "c"])[0].classes == ("a", "b")
    for count in (4, 6):
        with pytest.raises(InputError, match=f"{count} labels are neither for 5 texts"):
            list(probe(data, ["a", "b", "a", "b", "c", "a"][:count]))


# Directions


def test_a_direction_is_the_difference_of_means_and_its_words_are_what_the_logits_get():
    model = in_float64("story")
    happy, sad = ["The fox was happy", "A crow was so glad"], ["The fox was sad"]
    for position, pick in ((-1, lambda x: x[-1]), (1, lambda x: x[1]), ("mean", lambda x: x.mean(axis=0))):
        found = direction(model, happy, sad, "2.output", position)
        first, second, third = (pick(model.trace(text)["2.output"]) for text in (*happy, *sad))
        np.testing.assert_allclose(found.vector, (first + second) / 2 - third, atol=1e-12)
    ids = [[model.encode(text).ids for text in texts] for texts in (happy, sad)]
    np.testing.assert_array_equal(
        direction(model, *ids, "2.output").vector, direction(model, happy, sad, "2.output").vector
    )
    padded = [[[*each, *[model.config.pad_id] * 3] for each in texts] for texts in ids]
    for position in (-1, "mean"):
        wanted = direction(model, *ids, "2.output", position).vector
        np.testing.assert_allclose(direction(model, *padded, "2.output", position).vector, wanted, atol=1e-12)
    trace = model.trace("The crow was")
    state = trace["2.output"][-1]
    norm, head = trace.program.by_name["decoder.norm"], trace.program.by_name["output.logits"]
    centred = found.vector - found.vector.mean()
    spread = np.sqrt(np.var(state) + norm.op.epsilon)
    weights = trace[norm.inputs[1]], trace[head.inputs[1]]
    table = weights[1].T if weights[1].shape[1] == 80 else weights[1]
    logits = (centred / spread * weights[0]) @ table
    logits -= logits.mean()
    words = found.words(trace, 3)
    order = np.argsort(-logits)
    assert [word.token for word in words] == [*order[:3], *order[-3:]]
    np.testing.assert_allclose([word.logit for word in words], logits[[*order[:3], *order[-3:]]], atol=1e-9)
    assert words.rows()[0] == {"token": order[0], "word": model.word(order[0]), "logit": pytest.approx(words[0].logit)}


def test_a_direction_steers_what_is_written_and_is_saved_for_the_shell(tmp_path: Path):
    model = Model.load("story", device="cpu")
    found = direction(model, ["The fox saw the crow"], ["The crow saw the fox"], "1.output")
    found.save(tmp_path / "toward.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "toward.npy"), found.vector)
    plain, *others = (
        generate(model, "The fox", edits=edits, max_new_tokens=12)
        for edits in ([], [found.add(6)], [found.remove()], [found.add(0.0)])
    )
    assert others[0] != plain == others[2]


def test_what_has_no_direction_is_said_nor_what_is_none():
    for name, given, said in (
        ("story", (["A"], [], "1.output"), "there is no text"),
        ("story", ("A", ["B"], "1.output"), "texts are a list"),
        ("story", (["A"], ["B"], "nothing"), "no step is called"),
        ("story", (["A"], ["B"], "1.output", 5), "no position '5' in a text of 1 tokens"),
        ("story", (["A"], ["B"], "0.self_attention.weights"), "a column for each token"),
        ("attention", (["A"], ["B"], "attention.context"), "no step is called|has no vocabulary"),
    ):
        refuses(said, lambda given=given, name=name: direction(Model.load(name, device="cpu"), *given))
    with pytest.raises(InputError, match="no logits of words"):
        Direction("attention.context", np.ones(8)).words(Model.load("attention").trace())
    with pytest.raises(InputError, match="there is no position 9: use 0 to 4"):
        Direction("1.output", np.ones(80)).words(Model.load("story").trace("The fox found"), row=9)
    with pytest.raises(InputError, match=r"the direction has 64 columns, and decoder\.1\.\S+ has 80"):
        Direction("1.output", np.ones(64)).words(Model.load("story").trace("The fox found"))
    with pytest.raises(InputError, match="top is -1: use 0 or more"):
        Direction("1.output", np.ones(80)).words(Model.load("story").trace("The fox found"), -1)
    for vector, said in (
        (np.zeros(80), "no direction"),
        (1.0, "a direction is a vector"),
        (np.ones(7), "do not fit"),
        (np.full(80, np.inf), "infinite"),
    ):
        refuses(said, lambda vector=vector: Model.load("story").trace("The fox").edited([Project("1.output", vector)]))


# Its component taken out


def test_a_projection_leaves_nothing_along_the_vector_and_all_at_right_angles():
    model = in_float64("story")
    trace, vector = model.trace("The fox found a shell"), RNG.normal(size=80)
    name, unit = "1.output", vector / np.linalg.norm(vector)
    edited = trace.edited([Project(name, vector, rows=range(1, 3))])
    x = trace[name]
    wanted = x.copy()
    wanted[1:3] -= np.outer(x[1:3] @ unit, unit)
    np.testing.assert_allclose(edited[name], wanted, atol=1e-12)
    np.testing.assert_allclose(edited.window(name, (range(1, 4), range(7, 9))), wanted[1:4, 7:9], atol=1e-12)
    logits, words = trace["output.logits"], RNG.normal(size=512)
    part = model.trace("The fox found a shell", budget=0).edited([Project("output.logits", words)])
    wanted_words = logits - np.outer(logits @ words, words) / (words @ words)
    window = part.window("output.logits", (range(1, 4), range(7, 9)))
    np.testing.assert_allclose(window, wanted_words[1:4, 7:9], atol=1e-9)
    again = edited.edited([Project(name, 5 * vector, rows=range(1, 3))])
    np.testing.assert_allclose(again[name], wanted, atol=1e-12)
    heads = trace.edited([Project("1.self_attention.context", vector.reshape(4, 1, 20), heads=None)])
    context, each = trace["1.self_attention.context"], vector.reshape(4, 20)
    each /= np.linalg.norm(each, axis=1, keepdims=True)
    np.testing.assert_allclose(
        heads["1.self_attention.context"], context - np.einsum("hqd,hd,he->hqe", context, each, each), atol=1e-12
    )


def test_the_gradient_through_a_projection_is_that_of_small_steps():
    model = in_float64("story")
    trace, vector = model.trace("The fox found"), RNG.normal(size=80)
    edits, cell = [Project("0.output", vector)], ("1.output", (2, 5))
    found = gradients_of_cell(trace.edited(edits), *cell).values["embedding.output"]
    from tui_transformer import Edit

    for index in ((0, 3), (2, 40)):
        ends = []
        for size in (1e-5, -1e-5):
            moved = Edit("embedding.output", index, float(trace["embedding.output"][index]) + size)
            ends.append(trace.edited([moved, *edits])[cell[0]][cell[1]])
        assert found[index] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)
