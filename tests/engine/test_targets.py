"""Ablation by name: which cells are set, and which targets do not exist."""

from __future__ import annotations

import numpy as np
import pytest
from reference import IDS, REFERENCES, in_float64, trace_of
from refusing import refuses

from tui_transformer.engine.targets import KINDS, Target, every, parse
from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

FAMILIES = sorted(path.name for path in REFERENCES.iterdir())
BUILT_IN = ["encoder", "decoder", "encoder-decoder"]


def post_norm(**sizes: object) -> Trace:
    return in_float64("encoder", layers=2, **sizes).trace(ids=IDS)


@pytest.mark.parametrize("name", [*FAMILIES, *BUILT_IN])
def test_every_target_can_be_ablated_and_its_text_reads_back(name):
    trace = trace_of(name)
    for kind in KINDS:
        if kind != "feature":  # which a dictionary gives
            targets, last = every(trace.program, kind), trace.program.steps[-1].name
            assert all(parse(str(target)) == target for target in targets)
            for target in targets[:: max(1, len(targets) // 6)]:
                assert np.isfinite(trace.edited(target.edits(trace.program))[last]).all()


@pytest.mark.parametrize("name", [*FAMILIES, *BUILT_IN])
def test_an_ablated_head_adds_nothing_as_with_rows_of_zeros_in_the_output_matrix(name):
    trace = trace_of(name)
    target = every(trace.program, "head")[-1]
    heads, _, width = trace.program.shape(f"{target.place}.context")
    _, matrix, *biases = trace.program.step(f"{target.place}.output").inputs
    weight = trace[matrix].copy()
    weight[target.number * width : (target.number + 1) * width] = 0.0
    bias = trace[biases[0]] if biases else 0.0
    edited = trace.edited(target.edits(trace.program))
    wanted = trace[f"{target.place}.concat"] @ weight + bias
    np.testing.assert_allclose(edited[f"{target.place}.output"], wanted, rtol=1e-9, atol=1e-12)
    assert target.number == heads - 1


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox", "llama", "qwen3", "t5", "vanilla-decoder"])
def test_an_ablated_layer_of_a_pre_norm_model_leaves_the_residual_stream_as_it_was(name):
    trace = trace_of(name)
    for target in every(trace.program, "layer"):
        edits = target.edits(trace.program)
        assert len(edits) == (3 if f"{target.place}.cross_attention.output" in trace else 2)
        entering = parse(f"position:{target.place}:0").edits(trace.program)[0].name
        assert np.array_equal(trace.edited(edits)[f"{target.place}.output"], trace[entering])


def test_a_layer_of_a_post_norm_model_is_its_norms_alone_and_neurons_are_those_of_their_layer():
    trace = post_norm()
    edited = trace.edited(parse("layer:encoder.1").edits(trace.program))
    states = trace["encoder.0.output"]
    for _ in range(2):
        states = (states - states.mean(-1, keepdims=True)) / np.sqrt(states.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(edited["encoder.1.output"], states, rtol=1e-4, atol=1e-6)
    trace = trace_of("llama")
    assert parse("neuron:decoder.0.feed_forward:2").edits(trace.program)[0].name == "decoder.0.feed_forward.gated"
    trace = trace_of("encoder-decoder")
    assert parse("position:decoder.0:1").edits(trace.program)[0].name == "decoder.embedding.output"
    trace = post_norm(d_ff=6)
    neurons = every(trace.program, "neuron:encoder.1.feed_forward")
    assert neurons == tuple(Target("neuron", "encoder.1.feed_forward", i) for i in range(6))


@pytest.mark.parametrize(
    ("text", "step", "index"),
    [
        ("position:4", "embedding.output", np.s_[4]),
        ("position encoder.1 2", "encoder.0.output", np.s_[2]),
        ("neuron:encoder.1.feed_forward:17", "encoder.1.feed_forward.activation", np.s_[:, 17]),
        ("head encoder.0.self_attention 3", "encoder.0.self_attention.context", np.s_[3]),
    ],
)
@pytest.mark.parametrize("mean", [False, True])
def test_a_target_sets_exactly_its_cells(text, step, index, mean):
    trace = post_norm()
    target = parse(text)
    edited = trace.edited(target.edits(trace.program, mean=mean))
    wanted = trace[step].copy()
    wanted[index] = wanted.mean(axis=-2, keepdims=True)[(0,) if text.startswith("pos") else index] if mean else 0.0
    np.testing.assert_allclose(edited[step], wanted, rtol=1e-12)


@pytest.mark.parametrize("of_one", [False, True])
def test_the_means_of_a_layer_are_those_of_the_pass_before_any_of_it_was_set(of_one):
    trace, target = post_norm(), parse("layer:encoder.1")
    edits = target.edits(trace.program, mean=True)
    edited = trace.edited(edits) if of_one else trace.edited_each([edits, edits]).sentence(1)
    for name in target.steps(trace.program):
        means = trace[name].mean(axis=0, keepdims=True)
        np.testing.assert_allclose(edited[name], np.broadcast_to(means, trace[name].shape), rtol=1e-12)
    one_by_one = trace.edited(edits[:1]).edited(edits[1:])
    np.testing.assert_array_equal(edited["encoder.1.output"], one_by_one["encoder.1.output"])


def test_what_does_not_exist_is_named_and_a_model_without_such_parts_says_so():
    for text, says in (
        ("head:encoder.0.self_attention:8", r"context has no head 8: use 0 to 7"),
        ("head:encoder.9.self_attention:0", r"there is no attention 'encoder\.9\.self_attention': use encoder\.0"),
        ("head:encoder.0.self_attention", "is not a head: write head:"),
        ("head", "does not say which head"),
        ("head:a:b:1", "is not a head: write head:"),
        ("layer:decoder.0", r"there is no layer 'decoder\.0': use encoder\.0, encoder\.1"),
        ("layer", "there is no layer ''"),
        ("layer:encoder.0:1", "is not a layer"),
        ("position:5", r"embedding\.output has no position 5: use 0 to 4"),
        ("position:-1", "is not a position"),
        ("position", "does not say which position"),
        ("neuron:encoder.0.feed_forward:999", "has no neuron 999"),
        ("neuron:encoder.0.self_attention:0", "there is no feed-forward layer"),
        ("neurone:3", "is not a head, layer, position, neuron or feature: write"),
        ("", "is not a head, layer"),
    ):
        trace = post_norm()
        refuses(says, lambda text=text, trace=trace: trace.edited(parse(text).edits(trace.program)))
    program = Model.load("attention", device="cpu").program(3)
    for kind in ("layer", "position", "neuron"):
        refuses(f"the model has no {kind}s that can be ablated", lambda kind=kind: every(program, kind))
