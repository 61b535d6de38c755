"""The logit lens by head, beside the terms of a logit and sums by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tui_transformer.analysis.attribution import attribute
from tui_transformer.analysis.head_lens import head_lens
from tui_transformer.errors import InputError
from tui_transformer.model import Model

REFERENCES = Path(__file__).parent.parent / "references"


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2", "gpt_neox", "opt"])
def test_the_difference_of_two_words_is_the_term_of_the_head(name):
    trace = Model.load(REFERENCES / name, dtype="float64", device="cpu").trace(ids=[5, 6, 7, 8])
    terms = {(term.name, term.number): term.value for term in attribute(trace, 9, 11, position=2).terms}
    for each in head_lens(trace, 2):
        context = f"{each.attention.name.rpartition('.')[0]}.context"
        assert each.logits.mean() == pytest.approx(0, abs=1e-9)
        if (context, each.head) in terms:
            assert each.logits[9] - each.logits[11] == pytest.approx(terms[context, each.head], abs=1e-9)
    assert any(number is not None for _, number in terms)


def test_a_post_norm_decoder_is_carried_through_every_norm():
    sizes = {"layers": 2, "heads": 2, "d_model": 8, "norm": "post"}
    trace = Model.load("decoder", dtype="float64", device="cpu", **sizes).trace(ids=[2, 5, 3, 6])
    terms = {(term.name, term.number): term.value for term in attribute(trace, 1, 4, position=3).terms}
    for each in head_lens(trace, 3):
        context = f"{each.attention.name.rpartition('.')[0]}.context"
        assert each.logits[1] - each.logits[4] == pytest.approx(terms[context, each.head], abs=1e-10)


def test_less_the_mean_takes_away_what_a_head_writes_everywhere():
    trace = Model.load(REFERENCES / "gpt2", dtype="float64", device="cpu").trace(ids=[5, 6, 7, 8])
    own, tuned = (list(head_lens(trace, 2, layer=1, less_mean=less)) for less in (False, True))
    name = "decoder.1.self_attention"
    z, matrix = trace[f"{name}.context"], trace[f"{name}.output.weight"]
    x, norm = trace["decoder.1.feed_forward.residual"][2], trace["decoder.norm.weight"]
    head = trace[trace.program.step("output.logits").inputs[1]]
    head = head if head.shape[0] == len(x) else head.T
    for number, (plain, less) in enumerate(zip(own, tuned, strict=True)):
        mean = z[number].mean(axis=0) @ matrix[number * 8 : (number + 1) * 8]
        moved = (mean - mean.mean()) / np.sqrt(x.var() + 1e-5) * norm @ head
        np.testing.assert_allclose(plain.logits - less.logits, moved - moved.mean(), atol=1e-9)
    best = tuned[0].highest(3)
    assert best[0][1] == tuned[0].logits.max()
    assert [value for _, value in best] == sorted((value for _, value in best), reverse=True)


def test_what_spells_no_words_is_refused():
    with pytest.raises(InputError, match="no logits of words"):
        list(head_lens(Model.load("attention").trace(), 0))
    trace = Model.load("copy").trace(ids=[5, 6])
    with pytest.raises(InputError, match="no token 2: tokens are 0 to 1"):
        list(head_lens(trace, 2))
    with pytest.raises(InputError, match="no layer 9"):
        list(head_lens(trace, 1, layer=9))
    bert = Model.load(REFERENCES / "bert").trace(ids=[5, 6])
    with pytest.raises(InputError, match=r"is not linear|no logits of words"):
        list(head_lens(bert, 1))
