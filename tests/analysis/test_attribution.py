"""Terms of a logit: they sum to it in every family, and each is what taking it out takes away."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tui_transformer.analysis.attribution import attribute
from tui_transformer.errors import InputError
from tui_transformer.model import Model

REFERENCES = sorted((Path(__file__).parent.parent / "references").iterdir())
IDS = [5, 6, 7, 8, 9]


def traced(where, dtype="float64"):
    model = Model.load(where, dtype=dtype, device="cpu")
    return model.trace(ids=IDS, **({"decoder_ids": [0, 5, 6]} if model.has_decoder else {}))


@pytest.mark.parametrize("folder", REFERENCES, ids=lambda folder: folder.name)
@pytest.mark.parametrize("neurons", [False, True])
def test_the_terms_sum_to_the_logit(folder, neurons):
    trace = traced(folder)
    attribution = attribute(trace, 11, 12, neurons=neurons)
    logits = trace["output.logits"][-1]
    assert attribution.logit == logits[11] - logits[12]
    assert abs(attribution.remainder) < 1e-13 * max(1.0, sum(abs(term.value) for term in attribution.terms))


@pytest.mark.parametrize("where", ["story", "copy", "encoder"])
def test_the_first_word_of_the_vocabulary_has_terms_too(where):
    trace = Model.load(where, dtype="float64", device="cpu").trace(ids=[5, 6, 7])
    attribution = attribute(trace, 0)
    assert attribution.logit == trace["output.logits"][-1, 0]
    assert abs(attribution.remainder) < 1e-12


def test_a_head_counts_what_its_rows_of_the_output_matrix_write():
    trace = traced("story")
    attribution = attribute(trace, 11, position=2)
    x = np.array(trace["decoder.2.feed_forward.residual"][2])
    gamma, beta = trace["decoder.norm.weight"], trace["decoder.norm.bias"]
    centred = x - x.mean()
    sigma = np.sqrt((centred**2).mean() + trace.program.step("decoder.norm").op.epsilon)
    table = np.array(trace["embedding.tokens.weight"])[11]
    for layer, head in ((0, 1), (2, 3)):
        at = f"decoder.{layer}.self_attention"
        context = np.array(trace[f"{at}.context"])[head, 2]
        width = len(context)
        written = context @ np.array(trace[f"{at}.output.weight"])[head * width : (head + 1) * width]
        expected = ((written - written.mean()) / sigma * gamma) @ table
        term = next(t for t in attribution.terms if t.name == f"{at}.context" and t.number == head)
        assert term.kind == "head"
        assert np.isclose(term.value, expected, atol=1e-12)
    assert any(term.name == "decoder.norm.bias" and np.isclose(term.value, beta @ table) for term in attribution.terms)


def test_in_float32_the_remainder_is_rounding():
    attribution = attribute(traced("story", "float32"), 11)
    assert 0 < abs(attribution.remainder) < 1e-4


def test_what_cannot_be_attributed_is_refused():
    trace = traced("story")
    for arguments, says in (((99_999,), "no token 99999"), ((1, -3), "no token -3")):
        with pytest.raises(InputError, match=says):
            attribute(trace, *arguments)
    with pytest.raises(InputError, match="no position 7"):
        attribute(trace, 1, position=7)
    with pytest.raises(InputError, match="no logits of words"):
        attribute(Model.load("attention").trace(), 1)
