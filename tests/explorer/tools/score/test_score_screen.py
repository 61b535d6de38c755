"""The screen that scores the text: shaded tokens, sums, a line a token."""

from __future__ import annotations

from driving import WIDE, exploring
from reference import REFERENCES

from tui_transformer.analysis.score import score, text_targets


async def test_a_text_is_scored_as_the_command_scores_it():
    async with exploring(WIDE, model="story", text="Once there was a small girl") as explorer:
        await explorer.app.screen.run_action("open('score')")
        await explorer.shown("How likely the text is", "perplexity")
        assert "Once there was a small girl" in explorer.text
        assert "ln p of the text" in explorer.text
        assert "␣there" in explorer.text
        trace, targets = explorer.session.trace, text_targets(explorer.session.trace, explorer.session.predicted)
        cooler, warmer, smoothed = (
            score(trace, targets, **more) for more in ({}, {"temperature": 1.2}, {"smoothing": 0.1})
        )
        await explorer.shown(f"cross-entropy {cooler.cross_entropy:.4f}", f"0.1: {smoothed.cross_entropy:.4f} nats")
        await explorer.press("+")
        await explorer.shown("temperature 1.2", f"cross-entropy {warmer.cross_entropy:.4f}")
        await explorer.leave()


async def test_a_text_of_one_token_is_said_to_predict_nothing():
    async with exploring(WIDE, model="story", text="Once") as explorer:
        await explorer.app.screen.run_action("open('score')")
        await explorer.shown("no token is predicted")


async def test_what_the_decoder_has_written_is_asked_for_where_that_predicts_nothing():
    async with exploring(WIDE, model=str(REFERENCES / "bart"), text="The waves") as explorer:
        await explorer.press("%")
        assert explorer.messages[-1] == "no token is predicted: give a decoder text of two tokens or more"
