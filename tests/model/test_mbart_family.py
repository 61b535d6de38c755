"""mBART, M2M-100, Pegasus and mT5: what they do otherwise than BART and T5."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS, DECODER_IDS = [4, 5, 7, 3, 11], [2, 8, 9]


@pytest.mark.parametrize("family", ["mbart", "m2m_100", "pegasus"])
def test_norms_come_before_sublayers_and_after_stacks(changed, family):
    names = changed(family).trace(ids=IDS, decoder_ids=DECODER_IDS).names
    for stack in ("encoder", "decoder"):
        assert f"{stack}.norm" in names
        assert names.index(f"{stack}.0.self_attention.norm") < names.index(f"{stack}.0.self_attention.query")


def test_sines_of_an_m2m_100_count_from_behind_the_pad_id_and_are_0_for_padding(changed):
    trace = changed("m2m_100", pad_token_id=1).trace(ids=[7, 1, 9, 8], decoder_ids=DECODER_IDS)
    pairs = np.arange(16)
    angles = np.array([2, 3, 4])[:, None] / 10000.0 ** (pairs / 15)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(trace["embedding.positions"][[0, 2, 3]], wanted, atol=1e-12)
    assert not trace["embedding.positions"][1].any()


def test_padding_inside_the_decoders_text_hides_nothing_from_later_tokens(changed):
    trace = changed("m2m_100").trace(ids=IDS, decoder_ids=[1, 7, 1, 8])
    assert (trace["decoder.0.self_attention.weights"] > 0).all(axis=0).tolist() == np.tri(4, dtype=bool).tolist()


def test_positions_of_a_pegasus_are_those_of_the_file_or_sines(tmp_path, changed):
    stored = changed("pegasus").trace(ids=IDS, decoder_ids=DECODER_IDS)
    tensors = load_file(tmp_path / "model.safetensors")
    assert np.array_equal(stored["embedding.positions"], tensors["model.encoder.embed_positions.weight"][: len(IDS)])
    rest = {name: tensor for name, tensor in tensors.items() if "embed_positions" not in name}
    save_file(rest, tmp_path / "model.safetensors")
    trace = Model.load(tmp_path, device="cpu", dtype="float64").trace(ids=IDS, decoder_ids=DECODER_IDS)
    angles = np.arange(len(IDS))[:, None] / 10000.0 ** (np.arange(16) / 16)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(trace["embedding.positions"], wanted, atol=1e-12)


def test_logits_of_an_mt5_are_not_scaled(changed):
    t5, mt5 = (changed("t5", model_type=kind).trace(ids=IDS, decoder_ids=DECODER_IDS) for kind in ("t5", "mt5"))
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
