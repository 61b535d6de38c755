"""Mistral in the forms that its checkpoints have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from decoders import IDS, LLAMA, frequencies, llama_logits, llama_tensors, load, logits

from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.generation.rules import defaults_of
from tui_transformer.generation.sampling import Settings
from tui_transformer.generation.writing import Writer
from tui_transformer.model import Model

RAW = {"model_type": "mistral", **LLAMA}


def model_of(folder, **changes) -> Model:
    return load(folder, RAW | changes, llama_tensors(LLAMA))


@pytest.mark.parametrize("window", [None, 16, 4096])
def test_without_a_window_it_computes_what_llama_computes(tmp_path, window):
    wanted = llama_logits(LLAMA, llama_tensors(LLAMA), frequencies(4, 100.0))
    np.testing.assert_allclose(logits(model_of(tmp_path, sliding_window=window)), wanted, atol=1e-11)


def test_biases_are_no_setting_of_it(tmp_path):
    assert model_of(tmp_path, attention_bias=True).config.attention().bias == frozenset()


@pytest.mark.parametrize("window", [1, 3, 7, 8])
def test_a_query_sees_so_many_keys_and_its_own_is_the_last(tmp_path, window):
    wanted = llama_logits(LLAMA, llama_tensors(LLAMA), frequencies(4, 100.0), windows=(window, window))
    model = model_of(tmp_path, sliding_window=window)
    np.testing.assert_allclose(logits(model), wanted, atol=1e-11)
    seen = (model.trace(ids=IDS)["decoder.1.self_attention.weights"] > 0).sum(axis=-1)
    assert (seen == np.minimum(np.arange(len(IDS)) + 1, window)).all()


@pytest.mark.parametrize("budget", [0, 1 << 30])
def test_windows_of_dropped_weights_and_explanations_know_the_mask(tmp_path, budget):
    model = model_of(tmp_path, sliding_window=3)
    trace, whole = replace(model.trace(ids=IDS, budget=budget), block=2 * len(IDS)), model.trace(ids=IDS)
    for name in ("masked", "weights"):
        name = f"decoder.1.self_attention.{name}"
        part = trace.window(name, (range(2, 3), range(3, 7), range(1, 6)))
        np.testing.assert_allclose(part, whole[name][2:3, 3:7, 1:6], rtol=1e-12)
    masked = "decoder.0.self_attention.masked"
    notes = {
        column: [item.note for item in trace.explain_cell(masked, (0, 5, column)).items][1:] for column in range(8)
    }
    outside, inside, after = (
        "outside the window of 3",
        "the query may look here",
        "the key comes after the query",
    )
    assert [note for (note,) in notes.values()] == [outside] * 3 + [inside] * 3 + [after] * 2
    assert trace.program.step(masked).op.formula == "score; −∞ outside the last 3 keys, on padding"


def test_padding_is_outside_the_window_of_real_tokens_only(tmp_path):
    model = model_of(tmp_path, sliding_window=3, pad_token_id=10)
    padded = model.trace(ids=[*IDS, 10, 10])
    np.testing.assert_allclose(padded["output.logits"][:-2], logits(model), atol=1e-12)


def test_what_is_written_with_kept_keys_has_the_logits_of_a_whole_run(tmp_path):
    model = model_of(tmp_path, sliding_window=3)
    writer = Writer(model, Settings(greedy=True, max_new_tokens=8), defaults_of(model).rules)
    *_, last = writer.run(writer.begin((3, 1)))
    assert len(last.ids) == 10
    whole = model.trace(ids=last.ids)["output.logits"]
    kept = model.trace(ids=last.ids[:9])
    after = model.trace_after(kept_rows(kept), 9, [last.ids])
    np.testing.assert_allclose(after["output.logits"][-1], whole[-1], atol=1e-12)
    assert [int(row.argmax()) for row in whole[1:-1]] == list(last.written)


def kept_rows(trace: Trace) -> dict[str, np.ndarray]:
    """The keys, after they were turned, and the values of every layer."""
    parts = {"key": "key_rotated", "value": "value"}
    scopes = [f"decoder.{i}.self_attention" for i in range(2)]
    return {f"{scope}.{name}_kept": trace.array(f"{scope}.{step}") for scope in scopes for name, step in parts.items()}


def test_a_window_that_is_no_length_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="sliding_window 0"):
        model_of(tmp_path, sliding_window=0)
