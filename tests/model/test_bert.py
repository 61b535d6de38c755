"""BERT: segments and positions."""

from __future__ import annotations

import numpy as np
import pytest
from encoders import CONFIGS, ROWS, SEGMENTS, WIDTH, named, random_tensors
from saved import checkpoint

from tui_transformer.errors import InputError
from tui_transformer.model import Model


@pytest.fixture
def model(tmp_path) -> Model:
    return Model.load(
        checkpoint(tmp_path, CONFIGS["bert"], named(random_tensors(), "bert")), device="cpu", dtype="float64"
    )


def test_the_embedding_is_the_norm_of_three_rows(model):
    trace, tensors = model.trace(ids=[4, 9]), random_tensors()
    assert trace["embedding.segments.weight"].shape == (SEGMENTS, WIDTH)
    assert np.array_equal(trace["embedding.segments"], tensors["embeddings.token_type_embeddings.weight"][[0, 0]])
    assert np.array_equal(trace["embedding.positions"], tensors["embeddings.position_embeddings.weight"][:2])


def test_as_many_tokens_as_positions_are_read(model):
    assert model.trace(ids=[5] * ROWS)["output.logits"].shape[0] == ROWS
    with pytest.raises(InputError, match=f"{ROWS + 1} tokens are more than the {ROWS}"):
        model.trace(ids=[5] * (ROWS + 1))


def test_a_model_without_padding_masks_nothing(tmp_path):
    config = CONFIGS["bert"] | {"pad_token_id": None}
    model = Model.load(checkpoint(tmp_path, config, named(random_tensors(), "bert")), device="cpu")
    assert np.all(np.isfinite(model.trace(ids=[5, 0, 0])["encoder.0.self_attention.masked"]))
