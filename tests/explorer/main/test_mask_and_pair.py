"""A mask and a pair of sentences in the explorer."""

from __future__ import annotations

import numpy as np
from driving import WIDE, exploring
from reference import REFERENCES

from tui_transformer.engine.edits import Edit
from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions

BERT = ModelOptions(str(REFERENCES / "bert"))
LLAMA = ModelOptions(str(REFERENCES / "llama"), device="cpu")
MASK = (0, 0, 1, 1, 1)


def session():
    return open_session(LLAMA, None, (2, 2, 12, 10, 9), mask=MASK)


def test_a_mask_is_kept_when_cells_are_edited():
    edited = session().with_edits(Edit("embedding.output", (3, 0), 1.0))
    assert edited.trace["input.visible"].tolist() == [False, False, True, True, True]
    assert np.isfinite(edited.trace["output.logits"]).all()
    assert not edited.trace["decoder.0.self_attention.weights"][:, 2:, :2].any()


def test_a_mask_stays_for_as_many_tokens_and_goes_with_others():
    first = session()
    same = first.with_text("waves waves a")
    assert (len(same.encoding.ids), same.mask) == (len(MASK), MASK)
    assert first.with_text("waves").mask is None


async def test_hidden_tokens_are_shown_as_masked():
    async with exploring(WIDE, session=session()) as explorer:
        assert explorer.session.mask == MASK
        assert explorer.session.trace["input.places"].tolist() == [0, 0, 0, 1, 2]


async def test_both_sentences_are_shown_and_have_segments():
    session = open_session(BERT, "The waves", None, pair="a shore")
    async with exploring(WIDE, session=session) as explorer:
        assert "The waves a shore" in explorer.text
        assert explorer.session.encoding.segments[-1] == 1
        await explorer.prompt("/", "A dog")
        assert "A dog a shore" in explorer.text
