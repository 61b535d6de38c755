"""The residual stream: which steps are on it, and how long its vectors are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tui_transformer.analysis.norms import residual_norms, row_norms, streams
from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Add, Given, LayerNorm
from tui_transformer.engine.program import Builder
from tui_transformer.model import Model


def stream_of(architecture: str, **sizes: object) -> tuple[str, ...]:
    (stream,) = streams(Model.load(architecture, device="cpu", **sizes).program(3))
    return stream


def test_post_norm_layers_put_sums_and_norms_on_the_stream() -> None:
    stream = stream_of("encoder", layers=2, norm="post")
    parts = [f"{sublayer}.{part}" for sublayer in ("self_attention", "feed_forward") for part in ("residual", "norm")]
    assert stream == ("embedding.output", *(f"encoder.{layer}.{part}" for layer in range(2) for part in parts))


def test_pre_norm_layers_put_sums_and_the_last_norm_on_the_stream() -> None:
    sums = [f"decoder.{layer}.{part}.residual" for layer in range(2) for part in ("self_attention", "feed_forward")]
    assert stream_of("decoder", layers=2, norm="pre") == ("embedding.output", *sums, "decoder.norm")


def test_without_positions_the_stream_starts_at_the_words() -> None:
    assert stream_of("encoder", positions="none")[0] == "embedding.tokens"


def test_bare_attention_has_no_stream() -> None:
    model = Model.load("attention", device="cpu")
    assert streams(model.program(3)) == ()
    assert residual_norms(model.trace()) == ()


def test_every_stack_has_its_own_stream() -> None:
    build = Builder()
    tokens, model = Axis("token", 2, "tokens"), Axis("model", 4)
    for prefix in ("", "decoder."):
        stack = build.within(f"{prefix}embedding")
        x = stack("output", Given(), build.given(f"{prefix}states", tokens, model))
        sublayer = build.within(f"{prefix or 'encoder.'}0.feed_forward")
        out = sublayer("output", Given(), x)
        total = sublayer("residual", Add(), x, out, role="residual")
        sublayer("norm", LayerNorm(1e-5), total, sublayer.weight("g", model), sublayer.weight("b", model), role="norm")
    assert streams(build.program()) == (
        ("embedding.output", "encoder.0.feed_forward.residual", "encoder.0.feed_forward.norm"),
        ("decoder.embedding.output", "decoder.0.feed_forward.residual", "decoder.0.feed_forward.norm"),
    )


def test_row_norms_are_those_of_pythagoras() -> None:
    assert row_norms(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)).tolist() == [5.0, 0.0]
    assert row_norms(np.array([[3e38, 0.0]], dtype=np.float32))[0] == pytest.approx(3e38)


def test_norms_are_means_over_tokens() -> None:
    trace = Model.load("encoder", device="cpu", dtype="float64", layers=2).trace(ids=[1, 2, 3])
    (stack,) = residual_norms(trace)
    assert stack.stack == "encoder"
    assert stack.norms == pytest.approx([np.linalg.norm(trace[step], axis=1).mean() for step in stack.steps])
    assert stack.norms[-1] == pytest.approx(math.sqrt(8), rel=1e-3)  # a fresh layer norm's rows have length √d


def test_padding_is_left_out() -> None:
    model = Model.load("encoder", device="cpu", dtype="float64", pad_id=0)
    (short,), (long,) = (residual_norms(model.trace(ids=ids)) for ids in ([1, 2, 3], [1, 2, 3, 0, 0]))
    assert long.norms == pytest.approx(short.norms)


def test_a_sentence_of_nothing_but_padding_still_has_norms() -> None:
    (stack,) = residual_norms(Model.load("encoder", device="cpu", pad_id=0).trace(ids=[0, 0]))
    assert np.isfinite(stack.norms).all()
