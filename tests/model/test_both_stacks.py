"""BART, Marian, mBART, M2M-100, Pegasus and T5: what they have alike, and each by what it does otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import bart_in_numpy
import numpy as np
import pytest
from both_stacks import CONFIGS, DECODER_IDS, IDS, load, made, traced
from reference import REFERENCES, reference_of
from saved import checkpoint

from tui_transformer.errors import InputError
from tui_transformer.model import Model

LAYERS = 2
SHORT, SHORT_TARGET = [4, 5, 7, 3, 11], [2, 8, 9]
EMBEDDING = ("tokens", "embedding.tokens", "embedding.output")
ATTENTION = (
    *("query", "key", "value", "scores", "scaled", "masked", "weights", "context", "concat", "output"),
    *("residual", "norm"),
)
FEED_FORWARD = ("hidden", "activation", "output", "residual", "norm")


def names_of_layers(more: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The steps of every layer as the family has them; `more` adds to a sublayer."""
    sublayers = {"self_attention": ATTENTION, "cross_attention": ATTENTION, "feed_forward": FEED_FORWARD}
    for stack in ("encoder", "decoder"):
        for layer in range(LAYERS):
            yield f"{stack}.{layer}.output"
            for sublayer, steps in sublayers.items():
                if (stack, sublayer) != ("encoder", "cross_attention"):
                    yield from (f"{stack}.{layer}.{sublayer}.{step}" for step in (*steps, *more.get(sublayer, ())))


OWN_STEPS = {
    "bart": [f"{prefix}embedding.{step}" for prefix in ("", "decoder.") for step in ("positions", "norm")],
    "marian": ["embedding.positions", "decoder.embedding.positions"],
    "t5": ["encoder.norm", "decoder.norm"],
}


@pytest.mark.parametrize("family", CONFIGS)
def test_steps_have_their_public_names(family):
    common = [f"{prefix}{step}" for prefix in ("", "decoder.") for step in EMBEDDING]
    layers = names_of_layers({"self_attention": ("biased",)} if family == "t5" else {})
    wanted = {*common, *OWN_STEPS[family], *layers, "output.logits", "output.probabilities"}
    assert set(reference_of(family).trace().names) == wanted


SUMMARIES = {
    "bart": "bart · d_model 32 · 4 heads · d_ff 96 · 2 + 2 layers",
    "marian": "marian · d_model 32 · 4 heads · d_ff 96 · 2 + 2 layers",
    "t5": "t5 · d_model 32 · 4 heads of 8 · d_ff 96 · 2 + 2 layers",
}


@pytest.mark.parametrize("family", CONFIGS)
def test_the_reference_says_what_it_is(family):
    raw = json.loads((REFERENCES / family / "config.json").read_text())
    config = Model.load(REFERENCES / family, device="cpu").config
    assert config.summary == SUMMARIES[family]
    assert (config.pad_id, config.start_id) == (raw["pad_token_id"], raw["decoder_start_token_id"])


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("bart", {"activation_function": "gelu"}),
        ("bart", {"scale_embedding": False}),
        ("marian", {}),
        ("marian", {"activation_function": "relu"}),
        ("marian", {"scale_embedding": False}),
    ],
)
def test_other_settings_are_computed_as_in_numpy(tmp_path, family, changes):
    model, tensors, config = made(tmp_path, family, **changes)
    wanted = bart_in_numpy.logits(tensors, config, "model.", IDS[family], DECODER_IDS[family])
    np.testing.assert_allclose(traced(model, family)["output.logits"], wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("family", CONFIGS)
def test_padding_at_the_end_changes_nothing_before_it(tmp_path, family):
    model, _, config = made(tmp_path, family)
    longer = [*IDS[family], *[config["pad_token_id"]] * 2]
    padded = model.trace(ids=longer, decoder_ids=DECODER_IDS[family])["output.logits"]
    np.testing.assert_allclose(padded, traced(model, family)["output.logits"], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("family", "changes", "start"),
    [
        ("bart", {"decoder_start_token_id": 4}, 4),
        ("marian", {"decoder_start_token_id": None}, 12),
        ("t5", {"pad_token_id": 3, "decoder_start_token_id": None}, 3),
    ],
)
def test_the_decoder_begins_with_its_start_token_or_with_padding(tmp_path, family, changes, start):
    model, _, _ = made(tmp_path, family, **changes)
    assert model.trace(ids=IDS[family])["decoder.tokens"].tolist() == [start]


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("bart", {"bias": True}),
        ("bart", {"bias": False}),
        ("marian", {}),
        ("t5", {}),
        ("t5", {"head": True, "tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"}),
    ],
)
def test_a_saved_model_is_read_again(tmp_path, family, changes):
    model, _, _ = made(tmp_path / "first", family, **changes)
    model.save(tmp_path / "second")
    again = Model.load(tmp_path / "second", device="cpu", dtype="float64")
    assert again.config == model.config
    assert np.array_equal(*(traced(each, family)["output.logits"] for each in (model, again)))


REFUSED = {
    "bart": [
        ("normalize_before", True),
        ("normalize_embedding", False),
        ("add_final_layer_norm", True),
        ("static_position_embeddings", True),
        ("extra_pos_embeddings", 0),
        ("tie_word_embeddings", "no"),
        ("is_encoder_decoder", False),
        ("is_decoder", True),
        ("is_causal", False),
        ("activation_function", "mish"),
        ("scale_embedding", 2),
        ("d_model", 13),
        ("encoder_layers", 0),
        ("decoder_attention_heads", None),
        ("max_position_embeddings", "9"),
        ("pad_token_id", 13),
        ("decoder_start_token_id", -1),
    ],
    "marian": [
        ("share_encoder_decoder_embeddings", "no"),
        ("decoder_vocab_size", 14),
        ("tie_word_embeddings", "no"),
        ("static_position_embeddings", False),
        ("normalize_before", True),
        ("normalize_embedding", True),
        ("add_final_layer_norm", True),
        ("is_encoder_decoder", False),
        ("is_decoder", True),
        ("is_causal", False),
        ("activation_function", "mish"),
        ("encoder_attention_heads", 5),
        ("decoder_start_token_id", 13),
    ],
    "t5": [
        ("feed_forward_proj", "gated-mish"),
        ("feed_forward_proj", "gated-gelu-new"),
        ("feed_forward_proj", 3),
        ("dense_act_fn", "mish"),
        ("is_gated_act", "yes"),
        ("scale_decoder_outputs", None),
        ("relative_attention_num_buckets", 3),
        ("relative_attention_max_distance", 4),
        ("layer_norm_epsilon", 0),
        ("d_kv", None),
        ("num_heads", 0),
        ("is_encoder_decoder", "no"),
        ("is_decoder", True),
        ("is_causal", False),
        ("pad_token_id", 13),
    ],
}


@pytest.mark.parametrize(
    ("family", "key", "value"), [(family, *each) for family, settings in REFUSED.items() for each in settings]
)
def test_a_setting_that_cannot_be_is_refused_by_name(tmp_path, family, key, value):
    checkpoint(tmp_path, CONFIGS[family] | {key: value}, {})
    with pytest.raises(InputError, match=key):
        Model.load(tmp_path, device="cpu")


COPIES = {
    "bart": ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
    "t5": ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"),
}
"""Other names of the table of words in a file."""
TABLE = {"bart": "model.shared.weight", "t5": "shared.weight"}


@pytest.mark.parametrize("family", COPIES)
def test_the_table_may_be_in_the_file_four_times(tmp_path, family):
    model, tensors, config = made(tmp_path / "first", family)
    copied = tensors | dict.fromkeys(COPIES[family], tensors[TABLE[family]])
    more = load(tmp_path / "second", config, copied)
    assert more.config == model.config
    assert np.array_equal(*(traced(each, family)["output.logits"] for each in (model, more)))


@pytest.mark.parametrize(("family", "name"), [(family, name) for family in COPIES for name in COPIES[family]])
def test_the_table_may_have_any_of_its_names(tmp_path, family, name):
    model, tensors, config = made(tmp_path / "first", family)
    tensors[name] = tensors.pop(TABLE[family])
    renamed = load(tmp_path / "second", config, tensors)
    assert np.array_equal(*(traced(each, family)["output.logits"] for each in (model, renamed)))


@pytest.mark.parametrize(("family", "name"), [(family, name) for family in COPIES for name in COPIES[family][:2]])
def test_a_stack_with_an_embedding_of_its_own_is_refused(tmp_path, family, name):
    _, tensors, config = made(tmp_path / "first", family)
    tensors[name] = tensors[TABLE[family]] + 1.0
    with pytest.raises(InputError, match=f"{name} and .*shared.weight differ"):
        Model.load(checkpoint(tmp_path / "second", config, tensors), device="cpu")
