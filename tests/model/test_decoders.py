"""GPT-2 and GPT-NeoX in the forms that their checkpoints have."""

from __future__ import annotations

import numpy as np
import pytest
from decoders import (
    GPT2,
    IDS,
    LLAMA,
    NEOX,
    Tensors,
    check,
    frequencies,
    gpt2_logits,
    gpt2_tensors,
    load,
    logits,
    neox_logits,
    neox_tensors,
)
from plain_numpy import gelu, gelu_tanh

from tui_transformer.engine.ops import Add
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.families import family_of
from tui_transformer.model.families.gpt2 import Gpt2Config

RAW = {"model_type": "gpt2", **GPT2}


def model_of(folder, tensors=None, **changes) -> Model:
    config = RAW | changes
    return load(folder, config, gpt2_tensors(config) if tensors is None else tensors)


def neox(folder, tensors=None, **changes) -> Model:
    config = {"model_type": "gpt_neox", **NEOX, **changes}
    return load(folder, config, neox_tensors(config) if tensors is None else tensors)


TENSORS = gpt2_tensors(GPT2)
TABLE, HEAD = TENSORS["wte.weight"], {"lm_head.weight": np.random.default_rng(1).normal(size=(11, 12))}
NO_TABLE = {f"transformer.{name}": tensor for name, tensor in TENSORS.items() if name != "wte.weight"}
EITHER = (True, False)
FORMS: dict[str, tuple[Tensors, Tensors, tuple[bool, ...]]] = {
    "names without a prefix": (TENSORS, TENSORS, (True,)),
    "names with a prefix": ({f"transformer.{name}": tensor for name, tensor in TENSORS.items()}, TENSORS, (True,)),
    "mask buffers of old files": (
        TENSORS | {"h.0.attn.bias": np.ones((1, 1, 9, 9)), "h.0.attn.masked_bias": np.ones(1)},
        TENSORS,
        (True,),
    ),
    "a head that repeats the table": (TENSORS | {"lm_head.weight": TABLE}, TENSORS, EITHER),
    "the table as the tied head alone": (NO_TABLE | {"lm_head.weight": TABLE}, TENSORS, (True,)),
    "a head of its own": (TENSORS | HEAD, TENSORS | HEAD, EITHER),
}
"""Tensors of a file, those that count, and what the file may say of a tied head."""


@pytest.mark.parametrize(("form", "tied"), [(form, tied) for form, (*_, ties) in FORMS.items() for tied in ties])
def test_a_file_of_any_form_gives_the_same_and_a_head_of_its_own_counts_whatever_it_says(tmp_path, form, tied):
    given, wanted, _ = FORMS[form]
    model = model_of(tmp_path / "first", given, tie_word_embeddings=tied)
    check(model, gpt2_logits(GPT2, wanted))
    assert ("output.logits.weight" in model.program(1).weights) == ("lm_head.weight" in wanted or not tied)
    model.save(tmp_path / "second")
    again = Model.load(tmp_path / "second", device="cpu", dtype="float64")
    assert again.config == model.config
    assert np.array_equal(logits(again), logits(model))


def test_without_a_head_the_last_norm_is_the_end(tmp_path):
    trace = model_of(tmp_path, tie_word_embeddings=False).trace(ids=IDS)
    assert trace.names[-1] == "decoder.norm"
    wanted = gpt2_logits(GPT2, gpt2_tensors(GPT2) | {"lm_head.weight": np.eye(12)})
    np.testing.assert_allclose(trace["decoder.norm"], wanted, atol=1e-11)


def test_sizes_may_have_their_general_names(tmp_path):
    general = {"n_embd": "hidden_size", "n_head": "num_attention_heads", "n_layer": "num_hidden_layers"}
    config = {general.get(key, key): value for key, value in GPT2.items()}
    assert Gpt2Config.from_json(config) == Gpt2Config.from_json(GPT2)
    with pytest.raises(InputError, match="num_attention_heads 6 and n_head 3 are the same setting"):
        Gpt2Config.from_json(GPT2 | {"num_attention_heads": 6})


def of_width(layer: int, width: int) -> float:
    return width**-0.5


SCALES = [
    ({"scale_attn_weights": False}, lambda layer, width: 1.0, "not divided"),
    ({"scale_attn_by_inverse_layer_idx": True}, lambda layer, width: width**-0.5 / (layer + 1), "÷ √4 ÷ 2"),
    (
        {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True},
        lambda layer, width: 1.0 / (layer + 1),
        "÷ 2",
    ),
    ({}, of_width, "÷ √4"),
]


@pytest.mark.parametrize(("changes", "scale", "expression"), SCALES)
def test_scores_are_divided_as_the_file_says(tmp_path, changes, scale, expression):
    model = model_of(tmp_path, **changes)
    check(model, gpt2_logits(GPT2, TENSORS, scale))
    assert model.program(1).step("decoder.1.self_attention.scaled").op.formula == f"score {expression}"


def test_the_activation_and_the_inner_width_are_those_of_the_file_or_four_times_the_model(tmp_path):
    check(model_of(tmp_path, activation_function="gelu"), gpt2_logits(GPT2, TENSORS, activation=gelu))
    config = GPT2 | {"n_inner": None}
    model = model_of(tmp_path, n_inner=None)
    assert model.program(1).shape("decoder.0.feed_forward.hidden") == (1, 48)
    check(model, gpt2_logits(config, gpt2_tensors(config)))


@pytest.mark.parametrize(
    ("family", "sizes", "summary"),
    [
        ("gpt2", GPT2, "GPT-2 · d_model 12 · 3 heads · d_ff 20 · 2 layers"),
        ("llama", LLAMA, "Llama · d_model 12 · 6 heads on 2 key heads · d_ff 20 · 2 layers"),
    ],
)
def test_the_sizes_are_told_in_one_line(family, sizes, summary):
    assert family_of(family).from_json(sizes).summary == summary


def test_a_sentence_longer_than_the_table_of_positions_is_refused(tmp_path):
    with pytest.raises(InputError, match="more than the 9"):
        model_of(tmp_path).trace(ids=[1] * 10)


@pytest.mark.parametrize(
    ("make", "changes", "message"),
    [
        (model_of, {"n_head": 5}, "n_embd 12 is not divisible by n_head 5"),
        (model_of, {"activation_function": "relu6"}, "activation_function 'relu6' is not known"),
        (model_of, {"add_cross_attention": True}, "add_cross_attention"),
        (model_of, {"is_causal": False}, "is_causal False is not supported: only True is"),
        (model_of, {"per_layer_config": {"1": {"n_inner": 8}}}, "per_layer_config: only layers that are all alike"),
        (model_of, {"n_layer": 0}, "n_layer 0"),
        (model_of, {"n_inner": "wide"}, "n_inner 'wide'"),
        (model_of, {"layer_norm_epsilon": 0}, "layer_norm_epsilon 0"),
        (model_of, {"scale_attn_weights": "yes"}, "scale_attn_weights 'yes'"),
        (model_of, {"tie_word_embeddings": None}, "tie_word_embeddings None"),
        (model_of, {"pad_token_id": "x"}, "pad_token_id 'x'"),
        (model_of, {"quantization_config": {"bits": 4}}, "quantization_config"),
        (model_of, {"n_positions": 8}, "wpe.weight"),
        (neox, {"num_attention_heads": 5}, "hidden_size 24 is not divisible by num_attention_heads 5"),
        (neox, {"rotary_pct": 0.4}, "partial_rotary_factor 0.4 of 8 columns of a head is 3"),
        (neox, {"rotary_pct": 1.5}, "partial_rotary_factor 1.5"),
        (neox, {"rotary_emb_base": 0}, "rope_theta 0"),
        (
            neox,
            {"rope_scaling": {"type": "longrope", "factor": 2.0}},
            "rope_parameters of type longrope has no short_factor",
        ),
        (neox, {"hidden_act": "mish"}, "hidden_act 'mish'"),
        (neox, {"use_parallel_residual": 2}, "use_parallel_residual 2"),
        (neox, {"hidden_size": 48}, "embed_in.weight is 11 × 24"),
        (neox, {"num_attention_heads": 4, "hidden_size": 32}, "embed_in.weight"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(tmp_path, make, changes, message):
    tensors = gpt2_tensors(GPT2) if make is model_of else neox_tensors(NEOX)
    with pytest.raises(InputError, match=message):
        make(tmp_path, tensors, **changes)


@pytest.mark.parametrize(
    ("given", "pad_id"),
    [
        ({"pad_token_id": 3}, 3),
        ({"pad_token_id": 3, "eos_token_id": 3}, None),
        ({"pad_token_id": 3, "eos_token_id": [2, 3]}, None),
        ({"pad_token_id": -1}, None),
        ({}, None),
    ],
)
def test_the_token_that_ends_a_text_is_no_padding(tmp_path, given, pad_id):
    assert model_of(tmp_path, **given).config.pad_id == pad_id


# GPT-NeoX

TURNS = frequencies(2)


def test_attention_and_feed_forward_read_what_enters_the_layer(tmp_path):
    model = neox(tmp_path)
    check(model, neox_logits(NEOX, neox_tensors(NEOX), TURNS))
    step = model.program(1).step("decoder.1.output")
    assert isinstance(step.op, Add)
    assert step.inputs == (
        "decoder.0.feed_forward.residual",
        "decoder.1.self_attention.output",
        "decoder.1.feed_forward.output",
    )


@pytest.mark.parametrize(
    ("changes", "options", "turns"),
    [
        ({"use_parallel_residual": False}, {"parallel": False}, TURNS),
        ({"attention_bias": False}, {}, TURNS),
        ({"tie_word_embeddings": True}, {}, TURNS),
        ({"hidden_act": "gelu_fast"}, {"activation": gelu_tanh}, TURNS),
        ({"rotary_pct": 1.0, "rotary_emb_base": 50}, {}, frequencies(8, 50.0)),
        ({"rotary_pct": 0.5, "rope_scaling": {"type": "linear", "factor": 4}}, {}, frequencies(4) / 4.0),
        ({"rope_parameters": {"rope_theta": 50, "partial_rotary_factor": 0.5}}, {}, frequencies(4, 50.0)),
    ],
)
def test_settings_of_a_neox_and_old_and_new_spellings_of_rotary_positions_are_computed(
    tmp_path, changes, options, turns
):
    config = NEOX | changes
    tensors = neox_tensors(config)
    if config.get("tie_word_embeddings"):
        tensors["embed_out.weight"] = tensors["gpt_neox.embed_in.weight"]
    model = neox(tmp_path, tensors, **changes)
    check(model, neox_logits(config, tensors, turns, **options))
    program = model.program(1)
    assert ("output.logits.weight" in program.weights) != config.get("tie_word_embeddings", False)
    assert ("decoder.0.self_attention.residual" in program.by_name) != config.get("use_parallel_residual", True)


def test_columns_that_are_not_turned_stay(tmp_path):
    trace = neox(tmp_path).trace(ids=[1, 2, 3])
    query, rotated = (trace[f"decoder.0.self_attention.query{end}"] for end in ("", "_rotated"))
    assert np.array_equal(query[..., 2:], rotated[..., 2:])
    assert not np.allclose(query[:, 1:, :2], rotated[:, 1:, :2])
