"""Mistral in the forms that its checkpoints have."""

from __future__ import annotations

import numpy as np
import pytest
from decoders import LLAMA, frequencies, llama_logits, llama_tensors, load, logits

from tui_transformer.errors import InputError
from tui_transformer.model import Model

RAW = {"model_type": "mistral", **LLAMA}


def model_of(folder, **changes) -> Model:
    return load(folder, RAW | changes, llama_tensors(LLAMA))


@pytest.mark.parametrize("window", [None, 16, 4096])
def test_without_a_window_it_computes_what_llama_computes(tmp_path, window):
    wanted = llama_logits(LLAMA, llama_tensors(LLAMA), frequencies(4, 100.0))
    np.testing.assert_allclose(logits(model_of(tmp_path, sliding_window=window)), wanted, atol=1e-11)


def test_biases_are_no_setting_of_it(tmp_path):
    assert model_of(tmp_path, attention_bias=True).config.biased == frozenset()


@pytest.mark.parametrize("changes", [{"sliding_window": 15}, {"max_position_embeddings": 32768}])
def test_a_window_shorter_than_the_positions_is_refused_by_name(tmp_path, changes):
    with pytest.raises(InputError, match=r"sliding_window .* is shorter than max_position_embeddings"):
        model_of(tmp_path, **changes)


def test_a_window_that_is_no_length_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="sliding_window 0"):
        model_of(tmp_path, sliding_window=0)
