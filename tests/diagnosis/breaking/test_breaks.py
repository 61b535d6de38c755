"""Mistakes made on purpose: the program that comes of each, and that every cell of it is explained."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES, in_float64

from tui_transformer import Add, Metric, attribute, circuits, effects, every, gradients_of, graph, paths
from tui_transformer.analysis.statistics import residual_norms
from tui_transformer.diagnosis.breaking import BREAKS, broken, fitting
from tui_transformer.diagnosis.causes.cause import CPU
from tui_transformer.diagnosis.causes.ops import OtherPairs, TiledContext, TiledScores
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.gradient_explanation import explain_gradient
from tui_transformer.engine.ops import Context, Rotate, Scores
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.explorer.run import open_session
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions

TRACES = {name: open_session(ModelOptions(model=name), None, None).base for name in ("question", "copy", "dates")}
FITTING = [(name, each.name) for name, trace in TRACES.items() for each in fitting(trace)]
ATTENTION = "encoder.0.self_attention"


@pytest.mark.parametrize(("model", "name"), FITTING)
def test_every_cell_of_a_broken_model_is_explained_and_windows_are_parts_of_the_whole(model, name):
    whole = broken(TRACES[model], (name,))
    dropped = Trace(whole.program, whole.weights, whole.givens, 0)
    for step in whole.program.steps:
        for cell in ((0,) * len(step.shape), tuple(size - 1 for size in step.shape)):
            explained = whole.explain_cell(step.name, cell)
            assert explained.recomputed == pytest.approx(explained.stored, rel=1e-4, abs=1e-4, nan_ok=True), step.name
        region = tuple(range(size // 2, size) for size in step.shape)
        part = whole[step.name][tuple(slice(r.start, r.stop) for r in region)]
        assert np.allclose(dropped.window(step.name, region), part, atol=1e-5, equal_nan=True), step.name


def test_a_head_that_is_not_there_is_refused_and_names_are_there_once():
    for head in (f"{ATTENTION}:9", "encoder.7.self_attention:0"):
        with pytest.raises(InputError, match=r"there is no head . of encoder\.. in this model"):
            broken(TRACES["question"], (f"head:{head}",))
    names = [each.name for each in BREAKS]
    assert len(set(names)) == len(names)
    assert all(each.title and each.lesson and each.absent for each in BREAKS)


def test_a_break_changes_what_it_says():
    right, name = TRACES["question"], f"{ATTENTION}.weights"
    # without the division, scores stay as they are
    trace = broken(right, ("no-scale",))
    assert np.array_equal(trace[f"{ATTENTION}.scaled"], trace[f"{ATTENTION}.scores"])
    assert [trace.word(3), trace.target_word(3), trace.title] == [right.word(3), right.target_word(3), right.title]
    assert not trace.word(3).isdecimal()
    # a mask turned around shows what was hidden
    step = "decoder.0.self_attention.weights"
    before, after = (trace[step] for trace in (TRACES["copy"], broken(TRACES["copy"], ("mask-around",))))
    assert not ((before > 0) & (after > 0)).any()
    assert np.triu(after[0], 1).any()
    assert not after[0, -1].any()
    # down the columns, columns sum to 1
    assert np.allclose(broken(right, ("softmax-axis",))[name].sum(axis=-2), 1)
    # the norm moves to the other side
    once = broken(right, ("norm-place",))
    norms = [step.name for step in once.program.steps if step.role == "norm"]
    assert norms
    last = right.program.steps[-1].name
    assert not np.allclose(once[last], right[last])
    # a naive softmax is the same until it overflows
    assert np.allclose(broken(right, ("naive-softmax",))[name], right[name], atol=1e-6)
    loud = broken(right.edited(()), ("naive-softmax", "no-scale"))
    assert np.isfinite(loud[name]).all()


def test_without_positions_the_order_of_words_does_not_matter():
    session = open_session(ModelOptions(model="question"), "the map hide the sailor", None)
    turned = session.with_text("sailor the hide map the")
    answers = [broken(each.base, ("no-positions",))["embedding.output"] for each in (session, turned)]
    assert np.allclose(answers[0][0], answers[1][-1])


def test_heads_and_columns_are_paired_otherwise():
    # tiled key heads are those of other query heads
    rng = np.random.default_rng(0)
    query, key, shares = (rng.standard_normal(shape) for shape in ((1, 4, 3, 2), (1, 2, 3, 2), (1, 4, 3, 3)))
    wrong, right = TiledScores(2).forward(CPU, query, key), Scores(2).forward(CPU, query, key)
    assert np.allclose(wrong[:, [0, 3]], right[:, [0, 3]])
    assert np.allclose(wrong[0, 1], query[0, 1] @ key[0, 1].T)
    assert not np.allclose(wrong[:, 1], right[:, 1])
    wrong, right = TiledContext(2).forward(CPU, shares, key), Context(2).forward(CPU, shares, key)
    assert np.allclose(wrong[0, 1], shares[0, 1] @ key[0, 1])
    assert not np.allclose(wrong[:, 1], right[:, 1])
    # interleaved pairs turn neighbouring columns
    x, places = np.random.default_rng(1).standard_normal((1, 2, 3, 4)), np.arange(3)[None]
    wrong = OtherPairs((1.0, 0.1)).forward(CPU, x, places)
    angle = places[0, 2] * 1.0
    first, second = x[0, 0, 2, :2]
    assert wrong[0, 0, 2, 0] == pytest.approx(first * np.cos(angle) - second * np.sin(angle))
    assert wrong[0, 0, 2, 1] == pytest.approx(second * np.cos(angle) + first * np.sin(angle))
    assert not np.allclose(wrong, Rotate((1.0, 0.1)).forward(CPU, x, places))


def test_logits_that_are_no_product_any_more_are_not_said_to_be_none():
    trace = broken(Model.load(REFERENCES / "llama", device="cpu").trace(ids=[6, 7, 8]), ("temperature",))
    for follow in (lambda: attribute(trace, 5), lambda: graph(trace, 5)):
        with pytest.raises(InputError, match=r"output\.logits is “.*”, and no product with a matrix"):
            follow()


@pytest.mark.parametrize("name", ["head", "norm-place"])
def test_a_broken_model_has_the_heads_and_layers_that_it_had(name):
    plain, metric = [TRACES["question"], TRACES["copy"]], Metric("logit", (5,))
    for whole in plain:
        trace = broken(whole, (name,))
        for kind in ("head", "layer"):
            assert every(trace.program, kind) == every(whole.program, kind)
            assert all(np.isfinite(effect.size) for _, effect in effects(trace, kind))
        assert list(map(str, paths(trace, trace, metric=metric).senders)) == list(
            map(str, paths(whole, whole, metric=metric).senders)
        )
        assert len(residual_norms(trace)[0].norms) >= len(residual_norms(whole)[0].norms)
    other = broken(Model.load("copy", device="cpu").trace(ids=[7] * trace.program.shape("tokens")[0]), (name,))
    found = paths(trace, other, [["embedding", "head", "feed_forward"]], metric=metric)
    assert found.values[0, 0] == pytest.approx(found.other, abs=1e-4)  # with all at once


LEARNED = [
    (where, each.name if number is None else f"{each.name}={number}")
    for where, names in (("llama", ()), ("gpt2", ()), ("bart", ("no-residual", "head")))
    for each in BREAKS
    for number in (None, 0.5)
    if (not names or each.name in names) and (number is None or each.name in ("head", "no-residual", "no-feed-forward"))
]
"""Models, and what is broken in them, with a number or without."""


@pytest.mark.parametrize(("where", "name"), LEARNED)
def test_gradients_and_graphs_are_of_what_a_broken_model_computes(where, name):
    model, metric = in_float64(where), Metric("logit", (5,))
    given = {"decoder_ids": [2, 4, 5]} if model.has_decoder else {}
    plain = model.trace(ids=[[6, 7, 8, 9, 0]], mask=[[1, 1, 1, 1, 0]], **given).sentence(0)
    try:
        trace = broken(plain, (name,))
    except InputError:  # nothing of the kind in this model
        return
    if not trace.program.logits or not np.isfinite(trace[trace.program.logits]).all():
        return
    start = trace.program.named("embedding.output")
    slope = gradients_of(trace, metric).values[start]
    for row, column in ((0, 1), (2, 3)):
        way = np.eye(slope.shape[1])[column] * 1e-6
        high, low = (metric.measure(trace.edited([Add(start, sign * way, rows=row)])) for sign in (1, -1))
        assert slope[row, column] == pytest.approx((high - low) / 2e-6, rel=1e-4, abs=1e-6)
    targets = (7, 8, 9, -1, -1)
    held = gradients(trace, targets) if where != "bart" else None
    for step, value in held.values.items() if held is not None else ():
        if step in trace.program.by_name:
            cell = explain_gradient(trace, held, targets, step, tuple(size // 2 for size in value.shape))
            assert cell.recomputed == pytest.approx(cell.stored, rel=1e-6, abs=1e-9), step
    if name.startswith(("keys-tiled", "softmax-axis", "head")) and where != "bart":
        found = graph(trace, 5, heads=True)
        np.testing.assert_allclose(found.weights.sum(axis=1) + found.constants, found.sums, atol=1e-8)


@pytest.mark.parametrize("halved", [(), ("head:decoder.0.self_attention:1=0.5",)])
def test_the_circuits_of_tiled_key_heads_are_those_that_the_pass_reads(halved):
    plain = in_float64("llama").trace(ids=[5, 6, 7])
    trace = broken(plain, ("keys-tiled", *halved))
    for each in circuits(trace):
        place = each.attention.sublayer
        factor = 0.5 if halved and (place, each.head) == ("decoder.0.self_attention", 1) else 1
        values = trace[trace.program.step(f"{place}.value").inputs[0]] @ each.value
        written = trace[f"{place}.weights"][each.head] @ values * factor
        assert np.allclose(written, trace[f"{place}.context"][each.head], atol=1e-12)
        assert np.array_equal(each.key, trace[f"{place}.key.weight"][:, each.head % 2 * 8 :][:, :8])
