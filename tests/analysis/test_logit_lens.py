"""The logit lens: the model's own last steps on every layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer.analysis.logit_lens import lens_of, words_at
from tui_transformer.engine.edits import Edit
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.model import Model

FOLDERS = sorted(REFERENCES.iterdir())


def trace_of(where: object, dtype: str = "float64", budget: int = 1 << 30) -> Trace:
    model = Model.load(where, device="cpu", dtype=dtype)  # type: ignore[arg-type]
    target = [[1, 2, 3]] if model.has_decoder else None
    return model.trace(ids=[3, 5, 7, 9, 4], decoder_ids=target, budget=budget)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_after_the_last_layer_it_is_the_model_itself(folder: object) -> None:
    trace = trace_of(folder)
    lens = lens_of(trace.program)
    spelled = lens.spell(trace, lens.depths[-1], range(lens.tokens), top=5)
    expected = trace["output.probabilities"]
    np.testing.assert_allclose(spelled.probabilities, np.sort(expected, axis=1)[:, ::-1][:, :5], rtol=1e-9)
    for row in range(lens.tokens):
        for word, probability in words_at(spelled, row):
            assert expected[row, word] == pytest.approx(probability)


def test_an_earlier_layer_goes_through_the_final_norm_and_the_head() -> None:
    trace = trace_of(REFERENCES / "gpt2")
    lens = lens_of(trace.program)
    x = trace["decoder.0.output"]
    scale, shift = trace["decoder.norm.weight"], trace["decoder.norm.bias"]
    normed = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * scale + shift
    expected = normed @ trace["embedding.tokens.weight"].T
    np.testing.assert_allclose(lens.logits(trace, lens.depths[1], range(5)), expected, atol=1e-9)


def test_it_begins_with_what_enters_the_first_layer() -> None:
    lens = lens_of(trace_of(REFERENCES / "vanilla-decoder").program)
    assert [depth.title for depth in lens.depths] == ["embedding", "layer 0", "layer 1"]
    assert lens.depths[0].step == "embedding.output"


def test_beside_an_encoder_it_is_the_decoder_that_spells() -> None:
    lens = lens_of(trace_of(REFERENCES / "t5").program)
    assert lens.depths[0].step == "decoder.embedding.tokens"
    assert lens.tokens == 3


def test_windows_and_blocks_give_the_same() -> None:
    trace = trace_of(REFERENCES / "llama", budget=0)
    lens = lens_of(trace.program)
    whole = [lens.spell(trace, depth, range(5), 3) for depth in lens.depths]
    trace = replace(trace, block=2 * lens.vocabulary)
    for depth, expected in zip(lens.depths, whole, strict=True):
        part = lens.spell(trace, depth, range(1, 5), 3)
        np.testing.assert_allclose(part.probabilities, expected.probabilities[1:])
        assert (part.words == expected.words[1:]).all()


def test_edited_weights_are_used() -> None:
    trace = trace_of(REFERENCES / "gpt2").edited([Edit("decoder.norm.weight", (3,), 50.0)])
    lens = lens_of(trace.program)
    spelled = lens.spell(trace, lens.depths[-1], range(5))
    assert spelled.probabilities[:, 0] == pytest.approx(trace["output.probabilities"].max(axis=1))


def test_a_model_without_a_head_spells_nothing() -> None:
    with pytest.raises(InputError, match="no output head"):
        lens_of(Model.load("attention", device="cpu").trace().program)
