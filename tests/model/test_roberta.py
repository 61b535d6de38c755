"""RoBERTa: places count from behind the pad ID."""

from __future__ import annotations

import numpy as np
import pytest
from encoders import CONFIGS, ROWS, named, random_tensors
from saved import checkpoint

from tui_transformer.errors import InputError
from tui_transformer.model import Model


def roberta(folder, **settings) -> Model:
    return Model.load(
        checkpoint(folder, CONFIGS["roberta"] | settings, named(random_tensors(), "roberta")), device="cpu"
    )


@pytest.mark.parametrize("pad", [0, 1, 3])
def test_tokens_count_from_behind_the_pad_id_and_padding_stays_at_it(tmp_path, pad):
    trace = roberta(tmp_path, pad_token_id=pad).trace(ids=[[9, 8, 7, 6], [9, pad, 8, pad]])
    assert trace["input.places"].tolist() == [
        [pad + 1, pad + 2, pad + 3, pad + 4],
        [pad + 1, pad, pad + 2, pad],
    ]
    assert np.array_equal(trace["embedding.positions"][1, 1], trace["embedding.positions.weight"][pad])


def test_only_padding_at_the_end_is_hidden(tmp_path):
    trace = roberta(tmp_path).trace(ids=[9, 1, 8, 1])
    assert np.isneginf(trace["encoder.0.self_attention.masked"]).any(axis=(0, 1)).tolist() == [False] * 3 + [True]


def test_rows_up_to_the_pad_id_are_not_for_tokens(tmp_path):
    model = roberta(tmp_path)
    assert model.trace(ids=[9] * (ROWS - 2))["input.places"][-1] == ROWS - 1
    with pytest.raises(InputError, match=f"{ROWS - 1} tokens are more than the {ROWS - 2}"):
        model.trace(ids=[9] * (ROWS - 1))


@pytest.mark.parametrize("pad", [None, ROWS - 1])
def test_a_pad_id_that_leaves_no_position_is_refused(tmp_path, pad):
    with pytest.raises(InputError, match=f"pad_token_id {pad} leaves no position"):
        roberta(tmp_path, pad_token_id=pad)
