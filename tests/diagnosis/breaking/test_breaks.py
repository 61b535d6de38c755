"""Mistakes made on purpose: the program that comes of each, and that every cell of it is explained."""

from __future__ import annotations

import numpy as np
import pytest

from tui_transformer.diagnosis.breaking import BREAKS, broken, fitting
from tui_transformer.diagnosis.causes.cause import CPU
from tui_transformer.diagnosis.causes.ops import OtherPairs, TiledContext, TiledScores
from tui_transformer.engine.ops import Context, Rotate, Scores
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions

TRACES = {name: open_session(ModelOptions(model=name), None, None).base for name in ("question", "copy", "dates")}
FITTING = [(name, each.name) for name, trace in TRACES.items() for each in fitting(trace)]
ATTENTION = "encoder.0.self_attention"


def named(name: str):
    return next(each for each in BREAKS if each.name == name)


@pytest.mark.parametrize(("model", "name"), FITTING)
def test_every_cell_of_a_broken_model_is_explained(model, name):
    trace = broken(TRACES[model], (name,))
    for step in trace.program.steps:
        for cell in ((0,) * len(step.shape), tuple(size - 1 for size in step.shape)):
            explained = trace.explain_cell(step.name, cell)
            assert explained.recomputed == pytest.approx(explained.stored, rel=1e-4, abs=1e-4, nan_ok=True), step.name


@pytest.mark.parametrize(("model", "name"), FITTING)
def test_windows_of_a_broken_model_are_parts_of_the_whole(model, name):
    whole = broken(TRACES[model], (name,))
    dropped = Trace(whole.program, whole.weights, whole.givens, 0)
    for step in whole.program.steps:
        region = tuple(range(size // 2, size) for size in step.shape)
        part = whole[step.name][tuple(slice(r.start, r.stop) for r in region)]
        assert np.allclose(dropped.window(step.name, region), part, atol=1e-5, equal_nan=True), step.name


@pytest.mark.parametrize("head", [f"{ATTENTION}:9", "encoder.7.self_attention:0"])
def test_a_head_that_is_not_there_is_refused(head):
    with pytest.raises(InputError, match=r"there is no head . of encoder\.. in this model"):
        broken(TRACES["question"], (f"head:{head}",))


def test_without_the_division_scores_stay_as_they_are():
    trace = broken(TRACES["question"], ("no-scale",))
    assert np.array_equal(trace[f"{ATTENTION}.scaled"], trace[f"{ATTENTION}.scores"])


def test_without_positions_the_order_of_words_does_not_matter():
    session = open_session(ModelOptions(model="question"), "the map hide the sailor", None)
    turned = session.with_text("sailor the hide map the")
    answers = [broken(each.base, ("no-positions",))["embedding.output"] for each in (session, turned)]
    assert np.allclose(answers[0][0], answers[1][-1])


def test_with_a_mask_turned_around_a_query_sees_what_was_hidden():
    step = "decoder.0.self_attention.weights"
    right, wrong = (trace[step] for trace in (TRACES["copy"], broken(TRACES["copy"], ("mask-around",))))
    assert not ((right > 0) & (wrong > 0)).any()
    assert np.triu(wrong[0], 1).any()
    assert not wrong[0, -1].any()


def test_down_the_columns_columns_sum_to_one():
    shares = broken(TRACES["question"], ("softmax-axis",))[f"{ATTENTION}.weights"]
    assert np.allclose(shares.sum(axis=-2), 1)


def test_the_norm_moves_to_the_other_side_and_back():
    right = TRACES["question"]
    once = broken(right, ("norm-place",))
    norms = [step.name for step in once.program.steps if step.role == "norm"]
    assert norms
    last = right.program.steps[-1].name
    assert not np.allclose(once[last], right[last])


def test_a_naive_softmax_is_the_same_until_it_overflows():
    right = TRACES["question"]
    name = f"{ATTENTION}.weights"
    assert np.allclose(broken(right, ("naive-softmax",))[name], right[name], atol=1e-6)
    loud = broken(right.edited(()), ("naive-softmax", "no-scale"))
    assert np.isfinite(loud[name]).all()


def test_tiled_key_heads_are_those_of_other_query_heads():
    rng = np.random.default_rng(0)
    query, key, shares = (rng.standard_normal(shape) for shape in ((1, 4, 3, 2), (1, 2, 3, 2), (1, 4, 3, 3)))
    wrong, right = TiledScores(2).forward(CPU, query, key), Scores(2).forward(CPU, query, key)
    assert np.allclose(wrong[:, [0, 3]], right[:, [0, 3]])
    assert np.allclose(wrong[0, 1], query[0, 1] @ key[0, 1].T)
    assert not np.allclose(wrong[:, 1], right[:, 1])
    wrong, right = TiledContext(2).forward(CPU, shares, key), Context(2).forward(CPU, shares, key)
    assert np.allclose(wrong[0, 1], shares[0, 1] @ key[0, 1])
    assert not np.allclose(wrong[:, 1], right[:, 1])


def test_interleaved_pairs_turn_neighbouring_columns():
    x, places = np.random.default_rng(1).standard_normal((1, 2, 3, 4)), np.arange(3)[None]
    wrong = OtherPairs((1.0, 0.1)).forward(CPU, x, places)
    angle = places[0, 2] * 1.0
    first, second = x[0, 0, 2, :2]
    assert wrong[0, 0, 2, 0] == pytest.approx(first * np.cos(angle) - second * np.sin(angle))
    assert wrong[0, 0, 2, 1] == pytest.approx(second * np.cos(angle) + first * np.sin(angle))
    assert not np.allclose(wrong, Rotate((1.0, 0.1)).forward(CPU, x, places))


def test_names_and_words_are_there_once():
    names = [each.name for each in BREAKS]
    assert len(set(names)) == len(names)
    assert all(each.title and each.lesson and each.absent for each in BREAKS)
