"""Composition scores beside the products of whole d × d matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tui_transformer.analysis.circuits import chance, circuits, compositions
from tui_transformer.errors import UsageError
from tui_transformer.model import Model
from tui_transformer.views.step_view import circuit_view, composition_view

REFERENCES = Path(__file__).parent.parent / "references"
NORM = np.linalg.norm


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_scores_are_those_of_the_whole_matrices(name):
    heads = list(circuits(Model.load(REFERENCES / name, dtype="float64", device="cpu").trace(ids=[5, 6])))
    for reads, matrix in (("Q", lambda h: h.qk), ("K", lambda h: h.qk.T), ("V", lambda h: h.ov)):
        paths = list(compositions(heads, reads))
        per_layer = heads[0].attention.heads
        layers = len(heads) // per_layer
        assert len(paths) == per_layer**2 * layers * (layers - 1) // 2
        for path in paths:
            assert path.source.attention.layer < path.target.attention.layer
            ov, read = path.source.ov, matrix(path.target)
            assert path.score == pytest.approx(NORM(ov @ read) / (NORM(ov) * NORM(read)), rel=1e-9)


def test_chance_is_the_mean_square_of_turned_directions():
    first, *_, last = circuits(Model.load("copy", dtype="float64", device="cpu").trace(ids=[5]))
    rng, scores = np.random.default_rng(0), []
    for _ in range(200):
        turn = np.linalg.qr(rng.standard_normal((64, 64)))[0]
        scores.append((NORM(first.ov @ turn @ last.qk) / (NORM(first.ov) * NORM(last.qk))) ** 2)
    assert np.sqrt(np.mean(scores)) == pytest.approx(chance(first), rel=0.02)


def test_cross_attention_reads_keys_and_values_of_the_encoder():
    model = Model.load(REFERENCES / "bart", dtype="float64", device="cpu")
    heads = list(circuits(model.trace(ids=[5, 6], decoder_ids=[0, 5])))
    keys = [path for path in compositions(heads, "K") if path.target.attention.kind == "cross_attention"]
    assert {path.source.attention.stack for path in keys} == {"encoder"}
    queries = [path for path in compositions(heads, "Q") if path.target.attention.kind == "cross_attention"]
    assert {path.source.attention.stack for path in queries} == {"decoder"}
    with pytest.raises(UsageError, match="reads no 'O'"):
        list(compositions(heads, "O"))


def test_views_hold_the_matrices_and_the_scores():
    heads = list(circuits(Model.load("copy", dtype="float64", device="cpu").trace(ids=[5])))
    view = circuit_view(heads[3], "OV")
    assert np.array_equal(view.window(range(2, 5), range(4)), heads[3].ov[2:5, :4])
    paths = list(compositions(heads, "K"))
    scores = composition_view(heads, paths, "K")
    whole = scores.window(range(len(heads)), range(len(heads)))
    assert np.isfinite(whole).sum() == len(paths)
    assert whole[1, 5] == next(path.score for path in paths if path.source is heads[1] and path.target is heads[5])
    assert (scores.rows.label(1), scores.columns.label(5)) == ("0.1", "1.1")
