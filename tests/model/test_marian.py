"""Marian: its positions, and the token that its decoder begins with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import both_stacks
import numpy as np
from both_stacks import Made
from encoder_decoders import (
    reference_trace,
)
from saved import checkpoint

from tui_transformer.model import Model

IDS, DECODER_IDS = both_stacks.IDS["marian"], both_stacks.DECODER_IDS["marian"]


def made(folder: Path, **changes: Any) -> Made:
    return both_stacks.made(folder, "marian", **changes)


def test_the_first_token_has_the_sines_of_0_and_then_the_cosines():
    assert reference_trace("marian")["embedding.positions"][0].tolist() == [0.0] * 16 + [1.0] * 16


def test_positions_that_a_file_stores_are_looked_up(tmp_path):
    _, tensors, config = made(tmp_path / "first")
    stored = {f"model.{stack}.embed_positions.weight": np.eye(9, 12) for stack in ("encoder", "decoder")}
    model = Model.load(checkpoint(tmp_path / "second", config, {**tensors, **stored}), device="cpu", dtype="float64")
    trace = model.trace(ids=IDS, decoder_ids=DECODER_IDS)
    for prefix, ids in (("", IDS), ("decoder.", DECODER_IDS)):
        assert np.array_equal(trace[f"{prefix}embedding.positions"], np.eye(9, 12)[: len(ids)])


def test_the_decoder_begins_with_padding_and_looks_at_it(tmp_path):
    model, _, _ = made(tmp_path)
    trace = model.trace(ids=IDS)
    assert trace["decoder.tokens"].tolist() == [12]
    assert trace["decoder.0.self_attention.weights"].tolist() == [[[1.0]], [[1.0]]]
