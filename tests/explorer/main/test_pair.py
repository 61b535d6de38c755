"""A pair of sentences in the explorer."""

from __future__ import annotations

from driving import WIDE, exploring
from reference import REFERENCES

from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions

BERT = str(REFERENCES / "bert")


async def test_both_sentences_are_shown_and_have_segments():
    session = open_session(ModelOptions(BERT), "The waves", None, pair="a shore")
    async with exploring(WIDE, session=session) as explorer:
        assert "The waves a shore" in explorer.text
        assert explorer.session.encoding.segments[-1] == 1
        await explorer.press("/")
        await explorer.answer("A dog")
        assert "A dog a shore" in explorer.text
