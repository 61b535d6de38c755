"""BART: what it computes, what its steps are called, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bart_in_numpy import logits, shapes
from encoder_decoders import (
    EMBEDDING,
    REFERENCES,
    TOLERANCES,
    checkpoint,
    differences,
    names_of_layers,
    random_tensors,
    reference_trace,
    worst_explanations,
)

from tui_transformer.errors import InputError
from tui_transformer.model import Model

CONFIG = {
    "model_type": "bart",
    "vocab_size": 13,
    "d_model": 12,
    "encoder_layers": 1,
    "encoder_attention_heads": 3,
    "encoder_ffn_dim": 10,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 7,
    "max_position_embeddings": 9,
    "activation_function": "relu",
    "scale_embedding": True,
    "pad_token_id": 1,
    "decoder_start_token_id": 2,
}
IDS, DECODER_IDS = [0, 5, 7, 3, 12, 2], [2, 0, 9, 4]


def made(folder, *, prefix: str = "model.", bias: bool = True, **changes):
    """A model of other sizes than the reference's, and its tensors."""
    config = CONFIG | changes
    wanted = shapes(config, prefix, learned=True) | ({"final_logits_bias": (1, config["vocab_size"])} if bias else {})
    tensors = random_tensors(wanted)
    return Model.load(checkpoint(folder, config, tensors), device="cpu", dtype="float64"), tensors, config


def refused(folder, **changes) -> str:
    checkpoint(folder, CONFIG | changes, {})
    with pytest.raises(InputError) as caught:
        Model.load(folder, device="cpu")
    return str(caught.value)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_every_array_equals_the_reference(dtype):
    far = differences("bart", reference_trace("bart", dtype), final_norm=False)
    assert len(far) == 13
    assert max(far.values()) <= TOLERANCES[dtype], far


def test_steps_have_their_public_names():
    norms = [f"{prefix}embedding.{step}" for prefix in ("", "decoder.") for step in ("positions", "norm")]
    common = [f"{prefix}{step}" for prefix in ("", "decoder.") for step in EMBEDDING]
    wanted = {*common, *norms, *names_of_layers({}), "output.logits", "output.probabilities"}
    assert set(reference_trace("bart").names) == wanted


def test_explanations_give_the_values_that_are_held():
    worst = worst_explanations(reference_trace("bart"))
    assert max(worst.values()) <= 1e-9, worst


def test_the_tables_are_those_of_the_file():
    program = reference_trace("bart").program
    assert program.shape("embedding.tokens.weight") == (360, 32)
    assert (
        program.shape("embedding.positions.weight") == program.shape("decoder.embedding.positions.weight") == (66, 32)
    )
    assert "decoder.embedding.tokens.weight" not in program.weights
    assert "output.logits.weight" not in program.weights


def test_the_first_token_has_the_third_row_of_the_positions():
    trace = reference_trace("bart")
    assert np.array_equal(trace["embedding.positions"][0], trace["embedding.positions.weight"][2])


@pytest.mark.parametrize("prefix", ["model.", ""])
@pytest.mark.parametrize("bias", [True, False])
def test_other_sizes_are_computed_as_in_numpy(tmp_path, prefix, bias):
    model, tensors, config = made(tmp_path, prefix=prefix, bias=bias)
    trace = model.trace(ids=IDS, decoder_ids=DECODER_IDS)
    wanted = logits(tensors, config, prefix, IDS, DECODER_IDS)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("changes", [{"activation_function": "gelu"}, {"scale_embedding": False}])
def test_other_settings_are_computed_as_in_numpy(tmp_path, changes):
    model, tensors, config = made(tmp_path, **changes)
    trace = model.trace(ids=IDS, decoder_ids=DECODER_IDS)
    wanted = logits(tensors, config, "model.", IDS, DECODER_IDS)
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=1e-10, atol=1e-10)


def test_padding_at_the_end_changes_nothing_before_it(tmp_path):
    model, _, _ = made(tmp_path)
    short, padded = (model.trace(ids=ids, decoder_ids=DECODER_IDS) for ids in (IDS, [*IDS, 1, 1]))
    np.testing.assert_allclose(padded["output.logits"], short["output.logits"], rtol=1e-10, atol=1e-10)


def test_the_decoder_begins_with_its_start_token(tmp_path):
    model, _, _ = made(tmp_path, decoder_start_token_id=4)
    assert model.trace(ids=IDS)["decoder.tokens"].tolist() == [4]


def test_as_many_tokens_as_there_are_positions_are_read(tmp_path):
    model, _, _ = made(tmp_path)
    assert np.isfinite(model.trace(ids=[3] * 9)["output.logits"]).all()
    with pytest.raises(InputError, match="10 tokens are more than the 9"):
        model.trace(ids=[3] * 10)


@pytest.mark.parametrize("bias", [True, False])
def test_a_saved_model_is_read_again(tmp_path, bias):
    model, _, _ = made(tmp_path / "first", bias=bias)
    model.save(tmp_path / "second")
    again = Model.load(tmp_path / "second", device="cpu", dtype="float64")
    assert again.config == model.config
    first, second = (each.trace(ids=IDS, decoder_ids=DECODER_IDS)["output.logits"] for each in (model, again))
    assert np.array_equal(first, second)


def test_sizes_may_have_their_general_names(tmp_path):
    general = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3}
    own = ("d_model", "encoder_layers", "encoder_attention_heads")
    config = {key: value for key, value in CONFIG.items() if key not in own} | general
    tensors = random_tensors(shapes(CONFIG, "model.", learned=True))
    model = Model.load(checkpoint(tmp_path, config, tensors), device="cpu")
    assert model.config.to_json() == CONFIG | {"tie_word_embeddings": True}


@pytest.mark.parametrize(
    ("key", "value"),
    [
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
)
def test_a_setting_that_cannot_be_is_refused_by_name(tmp_path, key, value):
    assert key in refused(tmp_path, **{key: value})


def test_a_missing_tensor_is_named_as_in_the_file(tmp_path):
    wanted = shapes(CONFIG, "model.", learned=True)
    tensors = random_tensors({name: shape for name, shape in wanted.items() if "layers.1.encoder_attn.k" not in name})
    with pytest.raises(InputError, match=r"model\.decoder\.layers\.1\.encoder_attn\.k_proj\.weight is missing"):
        Model.load(checkpoint(tmp_path, CONFIG, tensors), device="cpu")


def test_the_reference_says_what_it_is():
    config = json.loads((REFERENCES / "bart" / "config.json").read_text())
    model = Model.load(REFERENCES / "bart", device="cpu")
    assert model.config.summary == "bart · d_model 32 · 4 heads · d_ff 96 · 2 + 2 layers"
    assert (model.config.pad_id, model.config.start_id) == (config["pad_token_id"], config["decoder_start_token_id"])


COPIES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")


def test_the_table_may_be_in_the_file_four_times(tmp_path):
    model, tensors, config = made(tmp_path / "first")
    table = tensors["model.shared.weight"]
    more = Model.load(
        checkpoint(tmp_path / "second", config, tensors | dict.fromkeys(COPIES, table)), device="cpu", dtype="float64"
    )
    assert more.config == model.config
    assert np.array_equal(*(each.trace(ids=IDS, decoder_ids=DECODER_IDS)["output.logits"] for each in (model, more)))


@pytest.mark.parametrize("name", COPIES)
def test_the_table_may_have_any_of_its_names(tmp_path, name):
    model, tensors, config = made(tmp_path / "first")
    tensors[name] = tensors.pop("model.shared.weight")
    renamed = Model.load(checkpoint(tmp_path / "second", config, tensors), device="cpu", dtype="float64")
    assert np.array_equal(*(each.trace(ids=IDS, decoder_ids=DECODER_IDS)["output.logits"] for each in (model, renamed)))


@pytest.mark.parametrize("name", COPIES[:2])
def test_a_stack_with_an_embedding_of_its_own_is_refused(tmp_path, name):
    _, tensors, config = made(tmp_path / "first")
    tensors[name] = tensors["model.shared.weight"] + 1.0
    with pytest.raises(InputError, match=f"{name} and .*shared.weight differ"):
        Model.load(checkpoint(tmp_path / "second", config, tensors), device="cpu")


def test_a_matrix_of_the_logits_counts_whatever_the_file_says(tmp_path):
    model, tensors, config = made(tmp_path / "first")
    tensors["lm_head.weight"] = 2.0 * tensors["model.shared.weight"]
    own = Model.load(checkpoint(tmp_path / "second", config, tensors), device="cpu", dtype="float64")
    first, second = (each.trace(ids=IDS, decoder_ids=DECODER_IDS) for each in (model, own))
    bias = tensors["final_logits_bias"][0]
    np.testing.assert_allclose(second["output.logits"] - bias, 2.0 * (first["output.logits"] - bias), rtol=1e-9)
    own.save(tmp_path / "third")
    assert Model.load(tmp_path / "third", device="cpu").config == own.config


def test_untied_stacks_and_logits_have_tables_of_their_own(tmp_path):
    _, tensors, config = made(tmp_path / "first")
    table = tensors["model.shared.weight"]
    places = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    own = tensors | {name: table + number for number, name in enumerate(places, 1)}
    folder = checkpoint(tmp_path / "second", config | {"tie_word_embeddings": False}, own)
    model = Model.load(folder, device="cpu", dtype="float64")
    for each in (model, saved_and_loaded(model, tmp_path / "third")):
        trace = each.trace(ids=IDS, decoder_ids=DECODER_IDS)
        assert np.array_equal(trace["embedding.tokens.weight"], own[places[0]])
        assert np.array_equal(trace["decoder.embedding.tokens.weight"], own[places[1]])
        assert np.array_equal(trace["output.logits.weight"], own[places[2]].T)


def saved_and_loaded(model: Model, folder) -> Model:
    model.save(folder)
    return Model.load(folder, device="cpu", dtype="float64")
