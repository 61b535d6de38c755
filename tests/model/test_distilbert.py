"""DistilBERT: no segments, and sines that may take the place of a table of positions."""

from __future__ import annotations

import numpy as np
import pytest
from encoders import CONFIGS, EPSILON, WIDTH, named, random_tensors, states
from saved import checkpoint

from tui_transformer.errors import InputError
from tui_transformer.model import Model

TABLE = "embeddings.position_embeddings.weight"
IDS = [4, 9, 2, 30, 49, 9]


def distilbert(folder, tensors, **settings) -> Model:
    config = CONFIGS["distilbert"] | settings
    return Model.load(checkpoint(folder, config, named(tensors, "distilbert")), device="cpu", dtype="float64")


def sines() -> np.ndarray:
    """Sine in even columns, cosine in odd ones."""
    angles = [[place / 10000 ** (column // 2 * 2 / WIDTH) for column in range(WIDTH)] for place in range(len(IDS))]
    rows = np.array(angles)
    rows[:, 0::2], rows[:, 1::2] = np.sin(rows[:, 0::2]), np.cos(rows[:, 1::2])
    return rows


def test_positions_are_sines_where_the_file_has_no_table(tmp_path):
    tensors = random_tensors()
    without = {name: tensor for name, tensor in tensors.items() if name != TABLE}
    trace = distilbert(tmp_path, without, sinusoidal_pos_embds=True).trace(ids=IDS)
    wanted = states(tensors, np.array(IDS), sines(), epsilon=EPSILON["distilbert"], segments=False)
    np.testing.assert_allclose(trace["embedding.positions"], sines(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace["encoder.2.output"], wanted, rtol=0, atol=1e-10)


def test_a_table_in_the_file_counts_whatever_the_configuration_says(tmp_path):
    tensors = random_tensors()
    trace = distilbert(tmp_path, tensors, sinusoidal_pos_embds=True).trace(ids=IDS)
    assert np.array_equal(trace["embedding.positions"], tensors[TABLE][: len(IDS)])


def test_a_missing_table_is_named_where_positions_are_learned(tmp_path):
    tensors = random_tensors()
    del tensors[TABLE]
    with pytest.raises(InputError, match=r"tensor distilbert.embeddings.position_embeddings.weight is missing"):
        distilbert(tmp_path, tensors)


def test_there_are_no_segments(tmp_path):
    trace = distilbert(tmp_path, random_tensors()).trace(ids=IDS)
    assert "embedding.segments" not in trace
    assert "input.segments" not in trace.program.givens
