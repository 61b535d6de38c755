"""BART, and the encoder–decoders of its layers, each by what it does otherwise."""

from __future__ import annotations

import bart_in_numpy
import numpy as np
import pytest
from both_stacks import BART, DECODER_IDS, IDS, load, made, traced
from plain_numpy import random_tensors
from reference import reference_of
from safetensors.numpy import load_file, save_file
from saved import checkpoint

from tui_transformer.errors import InputError
from tui_transformer.model import Model

SHORT, SHORT_TARGET = [4, 5, 7, 3, 11], [2, 8, 9]


def test_the_tables_are_those_of_the_file():
    program = reference_of("bart").trace().program
    assert program.shape("embedding.tokens.weight") == (360, 32)
    assert (
        program.shape("embedding.positions.weight") == program.shape("decoder.embedding.positions.weight") == (66, 32)
    )
    assert "decoder.embedding.tokens.weight" not in program.weights
    assert "output.logits.weight" not in program.weights


def test_the_first_token_has_the_third_row_of_the_positions():
    trace = reference_of("bart").trace()
    assert np.array_equal(trace["embedding.positions"][0], trace["embedding.positions.weight"][2])


@pytest.mark.parametrize("prefix", ["model.", ""])
@pytest.mark.parametrize("bias", [True, False])
def test_other_sizes_of_bart_are_computed_as_in_numpy(tmp_path, prefix, bias):
    model, tensors, config = made(tmp_path, "bart", prefix=prefix, bias=bias)
    trace = traced(model, "bart")
    wanted = bart_in_numpy.logits(tensors, config, prefix, IDS["bart"], DECODER_IDS["bart"])
    np.testing.assert_allclose(trace["output.logits"], wanted, rtol=1e-10, atol=1e-10)


def test_as_many_tokens_as_there_are_positions_are_read(tmp_path):
    model, _, _ = made(tmp_path, "bart")
    assert np.isfinite(model.trace(ids=[3] * 9)["output.logits"]).all()
    with pytest.raises(InputError, match="10 tokens are more than the 9"):
        model.trace(ids=[3] * 10)


def test_sizes_of_bart_may_have_their_general_names(tmp_path):
    general = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3}
    own = ("d_model", "encoder_layers", "encoder_attention_heads")
    config = {key: value for key, value in BART.items() if key not in own} | general
    tensors = random_tensors(bart_in_numpy.shapes(BART, "model.", learned=True))
    model = Model.load(checkpoint(tmp_path, config, tensors), device="cpu")
    assert model.config.to_json() == BART | {"tie_word_embeddings": True}


def test_a_missing_tensor_is_named_as_in_the_file(tmp_path):
    wanted = bart_in_numpy.shapes(BART, "model.", learned=True)
    tensors = random_tensors({name: shape for name, shape in wanted.items() if "layers.1.encoder_attn.k" not in name})
    with pytest.raises(InputError, match=r"model\.decoder\.layers\.1\.encoder_attn\.k_proj\.weight is missing"):
        Model.load(checkpoint(tmp_path, BART, tensors), device="cpu")


def test_a_matrix_of_the_logits_counts_whatever_the_file_says(tmp_path):
    model, tensors, config = made(tmp_path / "first", "bart")
    tensors["lm_head.weight"] = 2.0 * tensors["model.shared.weight"]
    own = load(tmp_path / "second", config, tensors)
    first, second = (traced(each, "bart") for each in (model, own))
    bias = tensors["final_logits_bias"][0]
    np.testing.assert_allclose(second["output.logits"] - bias, 2.0 * (first["output.logits"] - bias), rtol=1e-9)
    own.save(tmp_path / "third")
    assert Model.load(tmp_path / "third", device="cpu").config == own.config


def test_untied_stacks_and_logits_have_tables_of_their_own(tmp_path):
    _, tensors, config = made(tmp_path / "first", "bart")
    table = tensors["model.shared.weight"]
    places = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    own = tensors | {name: table + number for number, name in enumerate(places, 1)}
    model = load(tmp_path / "second", config | {"tie_word_embeddings": False}, own)
    for each in (model, saved_and_loaded(model, tmp_path / "third")):
        trace = traced(each, "bart")
        assert np.array_equal(trace["embedding.tokens.weight"], own[places[0]])
        assert np.array_equal(trace["decoder.embedding.tokens.weight"], own[places[1]])
        assert np.array_equal(trace["output.logits.weight"], own[places[2]].T)


def saved_and_loaded(model: Model, folder) -> Model:
    model.save(folder)
    return Model.load(folder, device="cpu", dtype="float64")


# Marian


def test_the_first_token_has_the_sines_of_0_and_then_the_cosines():
    assert reference_of("marian").trace()["embedding.positions"][0].tolist() == [0.0] * 16 + [1.0] * 16


def test_positions_that_a_file_stores_are_looked_up(tmp_path):
    _, tensors, config = made(tmp_path / "first", "marian")
    stored = {f"model.{stack}.embed_positions.weight": np.eye(9, 12) for stack in ("encoder", "decoder")}
    model = load(tmp_path / "second", config, {**tensors, **stored})
    trace = traced(model, "marian")
    for prefix, ids in (("", IDS["marian"]), ("decoder.", DECODER_IDS["marian"])):
        assert np.array_equal(trace[f"{prefix}embedding.positions"], np.eye(9, 12)[: len(ids)])


def test_the_decoder_begins_with_padding_and_looks_at_it(tmp_path):
    model, _, _ = made(tmp_path, "marian")
    trace = model.trace(ids=IDS["marian"])
    assert trace["decoder.tokens"].tolist() == [12]
    assert trace["decoder.0.self_attention.weights"].tolist() == [[[1.0]], [[1.0]]]


# mBART, M2M-100, Pegasus and mT5


@pytest.mark.parametrize("family", ["mbart", "m2m_100", "pegasus"])
def test_norms_come_before_sublayers_and_after_stacks(changed, family):
    names = changed(family).trace(ids=SHORT, decoder_ids=SHORT_TARGET).names
    for stack in ("encoder", "decoder"):
        assert f"{stack}.norm" in names
        assert names.index(f"{stack}.0.self_attention.norm") < names.index(f"{stack}.0.self_attention.query")


def test_sines_of_an_m2m_100_count_from_behind_the_pad_id_and_are_0_for_padding(changed):
    trace = changed("m2m_100", pad_token_id=1).trace(ids=[7, 1, 9, 8], decoder_ids=SHORT_TARGET)
    pairs = np.arange(16)
    angles = np.array([2, 3, 4])[:, None] / 10000.0 ** (pairs / 15)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(trace["embedding.positions"][[0, 2, 3]], wanted, atol=1e-12)
    assert not trace["embedding.positions"][1].any()


def test_padding_inside_the_decoders_text_hides_nothing_from_later_tokens(changed):
    trace = changed("m2m_100").trace(ids=SHORT, decoder_ids=[1, 7, 1, 8])
    assert (trace["decoder.0.self_attention.weights"] > 0).all(axis=0).tolist() == np.tri(4, dtype=bool).tolist()


def test_positions_of_a_pegasus_are_those_of_the_file_or_sines(tmp_path, changed):
    stored = changed("pegasus").trace(ids=SHORT, decoder_ids=SHORT_TARGET)
    tensors = load_file(tmp_path / "model.safetensors")
    assert np.array_equal(stored["embedding.positions"], tensors["model.encoder.embed_positions.weight"][: len(SHORT)])
    rest = {name: tensor for name, tensor in tensors.items() if "embed_positions" not in name}
    save_file(rest, tmp_path / "model.safetensors")
    trace = Model.load(tmp_path, device="cpu", dtype="float64").trace(ids=SHORT, decoder_ids=SHORT_TARGET)
    angles = np.arange(len(SHORT))[:, None] / 10000.0 ** (np.arange(16) / 16)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(trace["embedding.positions"], wanted, atol=1e-12)


def test_logits_of_an_mt5_are_not_scaled(changed):
    t5, mt5 = (changed("t5", model_type=kind).trace(ids=SHORT, decoder_ids=SHORT_TARGET) for kind in ("t5", "mt5"))
    scaled = t5["output.logits"] * t5["decoder.norm"].shape[-1] ** 0.5
    np.testing.assert_allclose(mt5["output.logits"], scaled, atol=1e-10)


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("mbart", {"normalize_before": False}, "normalize_before False is not supported: only True is"),
        ("mbart", {"d_model": 30}, "d_model 30 is not divisible by"),
        ("m2m_100", {"pad_token_id": None}, "pad_token_id None leaves no position"),
        ("m2m_100", {"is_decoder": True}, "is_decoder True is not supported"),
        ("pegasus", {"extra_pos_embeddings": 2}, "extra_pos_embeddings 2 is not supported: only 1 is"),
        ("pegasus", {"activation_function": "relu6"}, "activation_function 'relu6' is not known"),
    ],
)
def test_what_is_not_computed_is_refused_by_name(changed, family, settings, message):
    with pytest.raises(InputError, match=message):
        changed(family, **settings)
