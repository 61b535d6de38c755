"""Qwen2 in the forms that its checkpoints have."""

from __future__ import annotations

import numpy as np
import pytest
from decoders import LLAMA, frequencies, llama_logits, llama_tensors, load, logits

from tui_transformer.errors import InputError
from tui_transformer.model import Model

RAW = {"model_type": "qwen2", **LLAMA}
SLIDES = {"use_sliding_window": True, "sliding_window": 8}
FULL, SLIDING = "full_attention", "sliding_attention"


def tensors(**changes):
    return llama_tensors(LLAMA | changes, biased=("q", "k", "v"))


def model_of(folder, **changes) -> Model:
    return load(folder, RAW | changes, tensors())


def test_query_key_and_value_have_biases(tmp_path):
    wanted = llama_logits(LLAMA, tensors(), frequencies(4, 100.0))
    np.testing.assert_allclose(logits(model_of(tmp_path)), wanted, atol=1e-11)


def test_the_head_may_be_tied(tmp_path):
    tied = {"tie_word_embeddings": True}
    model = load(tmp_path, RAW | tied, tensors(**tied))
    np.testing.assert_allclose(logits(model), llama_logits(LLAMA, tensors(**tied), frequencies(4, 100.0)), atol=1e-11)


@pytest.mark.parametrize(
    "changes",
    [
        {"sliding_window": 3},
        {**SLIDES, "max_window_layers": 2},
        {**SLIDES, "sliding_window": 16, "max_window_layers": 0},
        {**SLIDES, "sliding_window": None, "max_window_layers": 0},
        {**SLIDES, "max_window_layers": 0, "layer_types": [FULL, FULL]},
    ],
)
def test_a_window_that_hides_nothing_changes_nothing(tmp_path, changes):
    wanted = llama_logits(LLAMA, tensors(), frequencies(4, 100.0))
    np.testing.assert_allclose(logits(model_of(tmp_path, **changes)), wanted, atol=1e-11)


@pytest.mark.parametrize(
    ("changes", "windows"),
    [
        ({"max_window_layers": 1}, (None, 3)),
        ({"max_window_layers": 0}, (3, 3)),
        ({"layer_types": [SLIDING, FULL]}, (3, None)),
        ({"layer_types": [FULL, SLIDING], "max_window_layers": 0}, (None, 3)),
    ],
)
def test_layers_slide_as_the_file_says(tmp_path, changes, windows):
    model = model_of(tmp_path, **SLIDES | {"sliding_window": 3} | changes)
    wanted = llama_logits(LLAMA, tensors(), frequencies(4, 100.0), windows)
    np.testing.assert_allclose(logits(model), wanted, atol=1e-11)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_types": [FULL, SLIDING]}, "layer_types says sliding_attention"),
        ({"layer_types": [FULL]}, "layer_types names 1 layers of 2"),
        ({"layer_types": [FULL, "chunked_attention"]}, "layer_types .*chunked_attention"),
        ({"layer_types": FULL}, "layer_types 'full_attention'"),
        ({"use_sliding_window": "no"}, "use_sliding_window 'no'"),
        ({"max_window_layers": -1}, "max_window_layers -1"),
        ({"rope_scaling": {"type": "longrope", "factor": 4.0}}, "type longrope has no short_factor"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        model_of(tmp_path, **changes)
