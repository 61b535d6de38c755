"""GPT-NeoX in the forms that its checkpoints have."""

from __future__ import annotations

import numpy as np
import pytest
from decoders import NEOX, check, frequencies, load, neox_logits, neox_tensors
from plain_numpy import gelu_tanh

from tui_transformer.engine.ops import Add
from tui_transformer.errors import InputError
from tui_transformer.model import Model

RAW = {"model_type": "gpt_neox", **NEOX}
TURNS = frequencies(2)


def model_of(folder, tensors=None, **changes) -> Model:
    config = RAW | changes
    return load(folder, config, neox_tensors(config) if tensors is None else tensors)


def test_attention_and_feed_forward_read_what_enters_the_layer(tmp_path):
    model = model_of(tmp_path)
    check(model, neox_logits(NEOX, neox_tensors(NEOX), TURNS))
    step = model.program(1).step("decoder.1.output")
    assert isinstance(step.op, Add)
    assert step.inputs == (
        "decoder.0.feed_forward.residual",
        "decoder.1.self_attention.output",
        "decoder.1.feed_forward.output",
    )


def test_the_ordinary_order_is_one_after_the_other(tmp_path):
    model = model_of(tmp_path, use_parallel_residual=False)
    wanted = neox_logits(NEOX, neox_tensors(NEOX), TURNS, parallel=False)
    check(model, wanted)
    assert "decoder.0.self_attention.residual" in model.program(1).by_name


def test_attention_may_have_no_biases(tmp_path):
    config = NEOX | {"attention_bias": False}
    model = model_of(tmp_path, attention_bias=False)
    check(model, neox_logits(config, neox_tensors(config), TURNS))


def test_the_head_may_be_tied(tmp_path):
    tensors = neox_tensors(NEOX)
    tensors["embed_out.weight"] = tensors["gpt_neox.embed_in.weight"]
    model = model_of(tmp_path, tensors, tie_word_embeddings=True)
    assert "output.logits.weight" not in model.program(1).weights
    check(model, neox_logits(NEOX, tensors, TURNS))


def test_the_activation_is_that_of_the_file(tmp_path):
    model = model_of(tmp_path, hidden_act="gelu_fast")
    wanted = neox_logits(NEOX, neox_tensors(NEOX), TURNS, activation=gelu_tanh)
    check(model, wanted)


@pytest.mark.parametrize(
    ("changes", "turns"),
    [
        ({"rotary_pct": 1.0, "rotary_emb_base": 50}, frequencies(8, 50.0)),
        ({"rotary_pct": 0.5, "rope_scaling": {"type": "linear", "factor": 4}}, frequencies(4) / 4.0),
        ({"rope_parameters": {"rope_theta": 50, "partial_rotary_factor": 0.5}}, frequencies(4, 50.0)),
    ],
)
def test_old_and_new_spellings_of_rotary_positions_are_read(tmp_path, changes, turns):
    model = model_of(tmp_path, **changes)
    check(model, neox_logits(NEOX, neox_tensors(NEOX), turns))


def test_columns_that_are_not_turned_stay(tmp_path):
    trace = model_of(tmp_path).trace(ids=[1, 2, 3])
    query, turned = (trace[f"decoder.0.self_attention.query{end}"] for end in ("", "_rotated"))
    assert np.array_equal(query[..., 2:], turned[..., 2:])
    assert not np.allclose(query[:, 1:, :2], turned[:, 1:, :2])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 5}, "hidden_size 24 is not divisible by num_attention_heads 5"),
        ({"rotary_pct": 0.4}, "partial_rotary_factor 0.4 of 8 columns of a head is 3"),
        ({"rotary_pct": 1.5}, "partial_rotary_factor 1.5"),
        ({"rotary_emb_base": 0}, "rope_theta 0"),
        ({"rope_scaling": {"type": "longrope", "factor": 2.0}}, "rope_parameters of type longrope has no short_factor"),
        ({"hidden_act": "mish"}, "hidden_act 'mish'"),
        ({"use_parallel_residual": 2}, "use_parallel_residual 2"),
        ({"hidden_size": 48}, "embed_in.weight is 11 × 24"),
        ({"num_attention_heads": 4, "hidden_size": 32}, "embed_in.weight"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        model_of(tmp_path, neox_tensors(NEOX), **changes)
