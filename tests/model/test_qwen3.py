"""Qwen3 in the forms that its checkpoints have."""

from __future__ import annotations

import numpy as np
import pytest
from decoders import LLAMA, frequencies, llama_logits, llama_tensors, load, logits

from tui_transformer.model import Model
from tui_transformer.model.families.qwen import Qwen3Config

RAW = {"model_type": "qwen3", **LLAMA}


def model_of(folder, biased=(), **changes) -> Model:
    return load(folder, RAW | changes, llama_tensors(LLAMA, biased=biased, head_norms=True))


@pytest.mark.parametrize(("attention_bias", "biased"), [(False, ()), (True, ("q", "k", "v", "o"))])
def test_queries_and_keys_are_normalised_before_they_are_turned(tmp_path, attention_bias, biased):
    wanted = llama_logits(LLAMA, llama_tensors(LLAMA, biased=biased, head_norms=True), frequencies(4, 100.0))
    model = model_of(tmp_path, biased, attention_bias=attention_bias)
    np.testing.assert_allclose(logits(model), wanted, atol=1e-11)
    steps = model.program(1).by_name
    assert steps["decoder.0.self_attention.query_rotated"].inputs[0] == "decoder.0.self_attention.query_norm"


def test_the_width_of_a_head_is_128_where_the_file_does_not_say():
    given = {key: value for key, value in LLAMA.items() if key != "head_dim"}
    assert Qwen3Config.from_json(given).head_width == 128


def test_layers_from_a_number_on_slide(tmp_path):
    model = model_of(tmp_path, use_sliding_window=True, sliding_window=3, max_window_layers=1)
    wanted = llama_logits(LLAMA, llama_tensors(LLAMA, head_norms=True), frequencies(4, 100.0), (None, 3))
    np.testing.assert_allclose(logits(model), wanted, atol=1e-11)
