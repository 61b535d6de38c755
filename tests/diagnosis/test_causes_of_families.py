"""Mistakes in what some families alone have: relative biases, segments, scores that are not divided."""

from __future__ import annotations

import numpy as np
import pytest
from dumping import IDS, REFERENCES, blamed, computed, dumped, model_of

from tui_transformer.diagnosis import Input, diagnose
from tui_transformer.model import Model


def test_a_division_where_a_model_has_none_is_seen() -> None:
    model = Model.load(REFERENCES / "gpt_neo")
    trace = model.trace(ids=IDS)
    at = "decoder.0.self_attention"
    scores = np.array(trace[f"{at}.scores"], np.float64)
    width = trace.program.step(f"{at}.query").shape[-1]
    masked = np.where(np.triu(np.ones(scores.shape[-2:], bool), 1), -np.inf, scores / np.sqrt(width))
    first = blamed(diagnose(dumped({f"{at}.scores": scores, f"{at}.masked": masked}), model).first)
    assert first.cause == "scale-added", first.says


def test_segments_that_are_left_out_are_seen() -> None:
    model = Model.load(REFERENCES / "bert")
    trace = model.trace(ids=IDS)
    parts = {f"embedding.{part}": np.array(trace[f"embedding.{part}"], np.float64) for part in ("tokens", "positions")}
    x = sum(parts.values())
    gamma, beta = (np.array(trace[f"embedding.norm.{part}"]) for part in ("weight", "bias"))
    epsilon = trace.program.step("embedding.norm").op.epsilon
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * gamma + beta
    first = blamed(diagnose(dumped(parts | {"embedding.norm": normal}), model).first)
    assert first.cause == "segments-missing", first.says


def test_a_residual_stream_that_a_tool_centred_is_seen() -> None:
    arrays = computed("pre")
    name = "decoder.0.feed_forward.residual"
    arrays[name] = arrays[name] - arrays[name].mean(-1, keepdims=True)
    first = blamed(diagnose(dumped(arrays), model_of("pre")).first)
    assert (first.step, first.cause) == (name, "residual-centred")


@pytest.mark.parametrize("family", ["phi", "qwen3", "olmo2"])
def test_every_cause_can_be_tried_in_every_kind_of_layer(family: str) -> None:
    trace = Model.load(REFERENCES / family).trace(ids=IDS)
    last = [step.name for step in trace.program.steps if step.layer == "decoder.0"][-1]
    wrong = np.array(trace[last]) * np.linspace(0.5, 1.5, len(IDS))[:, None]
    first = blamed(diagnose(dumped({last: wrong}), Model.load(REFERENCES / family)).first)
    assert (first.step, first.cause) == (last, None)


def test_rows_of_keys_in_blocks_that_are_not_rescaled_are_seen_where_keys_are_more_than_queries() -> None:
    model = Model.load("encoder-decoder", layers=1, decoder_layers=1, d_model=16, heads=2, d_ff=24)
    trace = model.trace(ids=IDS, decoder_ids=IDS[:2])
    at = "decoder.0.cross_attention"
    scores = np.array(trace[f"{at}.scaled"], np.float64)
    running = np.maximum.accumulate(scores, -1)[..., [3, 3, 3, 3, 6, 6, 6]]  # blocks of 4 keys
    powers = np.exp(scores - running)
    arrays = {f"{at}.scaled": scores, f"{at}.weights": powers / powers.sum(-1, keepdims=True)}
    first = blamed(diagnose(dumped(arrays), model, Input(np.array([IDS]), np.array([IDS[:2]]))).first)
    assert first.cause == "softmax-rescale-missing", first.says
    assert "in blocks of 4" in first.says
