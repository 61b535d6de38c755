"""Circuits of weights, beside the whole d × d matrices and the words × words one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tui_transformer.analysis.circuits import circuits, words_of
from tui_transformer.errors import InputError
from tui_transformer.model import Model

REFERENCES = Path(__file__).parent.parent / "references"


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "bart", "gemma2", "albert", "gpt_oss"])
def test_what_a_head_writes_is_its_part_of_the_attention(name):
    model = Model.load(REFERENCES / name, dtype="float64", device="cpu")
    trace = model.trace(ids=[5, 6, 7], **({"decoder_ids": [0, 5]} if model.has_decoder else {}))
    every = list(circuits(trace))
    assert len(every) == sum(trace.program.shape(each.attention.name)[0] for each in every if each.head == 0)
    for each in every:
        place = each.attention.name.rpartition(".")[0]
        source, _, *biases = trace.program.step(f"{place}.value").inputs
        values = np.array(trace[source]) @ each.value
        for bias in biases:
            shared = each.attention.heads // trace.program.shape(f"{place}.value")[0]
            width = values.shape[1]
            values = values + np.array(trace[bias])[(each.head // shared) * width :][:width]
        written = np.array(trace[f"{place}.weights"])[each.head] @ values
        assert np.allclose(written, np.array(trace[f"{place}.context"])[each.head], atol=1e-12)


def test_values_are_those_of_the_whole_matrices():
    trace = Model.load("copy", dtype="float64", device="cpu").trace(ids=[5, 6, 7])
    words = words_of(trace)
    table = np.array(trace["embedding.tokens.weight"])
    step = trace.program.step("output.logits")
    head = np.array(trace[step.inputs[1]])
    leave = head.T if head.shape == table.shape else head
    for each in circuits(trace):
        rank = each.query.shape[1]
        for matrix, singular, eigen in (
            (each.ov, each.ov_values, each.ov_eigenvalues),
            (each.qk, each.qk_values, each.qk_eigenvalues),
        ):
            assert np.allclose(np.linalg.svd(matrix, compute_uv=False)[:rank], singular, atol=1e-10)
            assert np.isclose(np.trace(matrix), eigen.sum().real, atol=1e-9)
        whole = np.linalg.eigvals(table @ each.ov @ leave)
        assert np.isclose(whole.sum().real / np.abs(whole).sum(), words.copying(each), atol=1e-6)


def test_only_a_layer_and_what_there_is():
    trace = Model.load("copy", device="cpu").trace(ids=[5, 6])
    assert {each.attention.layer for each in circuits(trace, 1)} == {1}
    with pytest.raises(InputError, match="no layer 9"):
        list(circuits(trace, 9))
    with pytest.raises(InputError, match="no circuits"):
        list(circuits(Model.load("attention").trace()))
