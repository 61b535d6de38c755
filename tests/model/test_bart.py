"""BART: its tables, its positions, and names of its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import both_stacks
import numpy as np
import pytest
from bart_in_numpy import logits, shapes
from both_stacks import BART, Made
from encoder_decoders import (
    reference_trace,
)
from plain_numpy import random_tensors
from saved import checkpoint

from tui_transformer.errors import InputError
from tui_transformer.model import Model

IDS, DECODER_IDS = both_stacks.IDS["bart"], both_stacks.DECODER_IDS["bart"]


def made(folder: Path, **changes: Any) -> Made:
    return both_stacks.made(folder, "bart", **changes)


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


def test_as_many_tokens_as_there_are_positions_are_read(tmp_path):
    model, _, _ = made(tmp_path)
    assert np.isfinite(model.trace(ids=[3] * 9)["output.logits"]).all()
    with pytest.raises(InputError, match="10 tokens are more than the 9"):
        model.trace(ids=[3] * 10)


def test_sizes_may_have_their_general_names(tmp_path):
    general = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3}
    own = ("d_model", "encoder_layers", "encoder_attention_heads")
    config = {key: value for key, value in BART.items() if key not in own} | general
    tensors = random_tensors(shapes(BART, "model.", learned=True))
    model = Model.load(checkpoint(tmp_path, config, tensors), device="cpu")
    assert model.config.to_json() == BART | {"tie_word_embeddings": True}


def test_a_missing_tensor_is_named_as_in_the_file(tmp_path):
    wanted = shapes(BART, "model.", learned=True)
    tensors = random_tensors({name: shape for name, shape in wanted.items() if "layers.1.encoder_attn.k" not in name})
    with pytest.raises(InputError, match=r"model\.decoder\.layers\.1\.encoder_attn\.k_proj\.weight is missing"):
        Model.load(checkpoint(tmp_path, BART, tensors), device="cpu")


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
