"""Sentences compared: what the tokens give to the cosine adds up to it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.analysis.similar import BIAS, SentenceVector, sentence_vector, together
from tui_transformer.errors import InputError
from tui_transformer.model import Model

FOLDER = Path(__file__).parent.parent / "sentences" / "bert"
FIRST, SECOND = [2, 17, 40, 8, 9], [2, 33, 8]
MODES = ("cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


@pytest.fixture
def model() -> Model:
    return Model.load(FOLDER, device="cpu", dtype="float64")


def pooling(folder: Path, mode: str) -> Model:
    """The same layers with one way to pool alone."""
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": mode}))
    modules = json.loads((FOLDER / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:2]))
    return Model.load(folder, device="cpu", dtype="float64")


def test_parts_of_tokens_and_of_the_bias_add_up_to_the_vector(model):
    vector = sentence_vector(model.trace(ids=FIRST))
    assert vector.parts.shape == (len(FIRST) + 1, 16)
    np.testing.assert_allclose(vector.parts.sum(axis=0), vector.whole, atol=1e-12)
    assert vector.parts[BIAS].any()
    assert vector.length == pytest.approx(1.0)


@pytest.mark.parametrize("mode", MODES)
def test_shares_of_pairs_of_tokens_add_up_to_the_cosine(tmp_path, mode):
    model = pooling(tmp_path, mode)
    first, second = (sentence_vector(model.trace(ids=ids)) for ids in (FIRST, SECOND))
    pair = together(first, second)
    cosine = first.whole @ second.whole / np.linalg.norm(first.whole) / np.linalg.norm(second.whole)
    assert pair.cosine == pytest.approx(cosine, abs=1e-12)
    assert pair.shares.sum() == pytest.approx(cosine, abs=1e-12)
    assert pair.shares.shape == (len(FIRST) + 1, len(SECOND) + 1)
    assert not pair.shares[BIAS].any()


def test_they_do_behind_a_matrix_and_an_activation_too(model):
    pair = together(*(sentence_vector(model.trace(ids=ids)) for ids in (FIRST, SECOND)))
    assert pair.shares.sum() == pytest.approx(pair.cosine, abs=1e-12)


def test_a_sentence_of_a_batch_is_the_sentence_alone_and_padding_has_no_part(model):
    batch = model.trace(ids=[FIRST, [*SECOND, 0, 0]])
    alone, vector = sentence_vector(model.trace(ids=SECOND)), sentence_vector(batch, 1)
    np.testing.assert_allclose(vector.whole, alone.whole, atol=1e-12)
    assert not vector.parts[3:5].any()


def test_the_largest_shares_are_named_whatever_their_sign():
    first = SentenceVector(np.array([1.0, 0.0]), np.array([[3.0, 0.0], [-2.0, 0.0], [0.0, 0.0]]))
    second = SentenceVector(np.array([1.0, 1.0]), np.array([[0.5, 1.0], [0.5, 0.0]]))
    largest = together(first, second).largest(3)
    scale = np.sqrt(2.0)
    assert [pair[:2] for pair in largest] == [(0, 0), (0, BIAS), (1, 0)]
    assert [pair[2] for pair in largest] == pytest.approx([1.5 / scale, 1.5 / scale, -1.0 / scale])


def test_a_vector_of_nothing_is_like_no_other():
    nothing = SentenceVector(np.zeros(2), np.zeros((2, 2)))
    pair = together(nothing, nothing)
    assert pair.cosine == 0.0
    assert not pair.shares.any()


def test_a_model_without_modules_makes_no_vector():
    trace = Model.load(REFERENCES / "bert", device="cpu").trace(ids=FIRST)
    with pytest.raises(InputError, match="makes no vector of a sentence"):
        sentence_vector(trace)
