"""A text that was written is opened in the explorer, and what writes it is said."""

from __future__ import annotations

import numpy as np
import pytest
from driving import NARROW, WIDE, exploring
from reference import REFERENCES

from tui_transformer import generate
from tui_transformer.explorer.plain.effects import written
from tui_transformer.explorer.tools.generate.steering import Start, prompt_of
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.open_session import open_session
from tui_transformer.text.display import visible


@pytest.mark.parametrize(
    ("model", "texts"),
    [("story", ("Once there was",)), ("story", ("A dog ran", "Once there was a big")), ("dates", ())],
)
async def test_a_text_opens_alone_as_its_words_that_can_be_edited(model: str, texts: list[str]) -> None:
    async with exploring(WIDE, model=model, text=texts[0] if texts else None) as explorer:
        if len(texts) > 1:
            explorer.parts.port.change(explorer.session.with_batch(tuple(texts)))
            await explorer.settled()
        explorer.parts.port.change(explorer.session.with_targets([1] * len(explorer.session.predicted)))
        await explorer.press("W", "space", "space")
        ids = explorer.app.screen.writing.draft.ids
        await explorer.press("E")
        session = explorer.session
        assert (session.predicted, session.batch, session.targets) == (ids, (), None)
        text = session.decoder_text if model == "dates" else session.text
        assert text
        assert "Ġ" not in text
        edited = session.with_decoder_text(text) if model == "dates" else session.with_text(f"{text} a")
        assert edited.predicted[: len(ids)] == ids


async def test_that_a_broken_model_writes_as_it_is_is_said() -> None:
    async with exploring(WIDE, model="story") as explorer:
        explorer.parts.port.change(explorer.session.with_breaks("no-mask"))
        await explorer.press("W")
        assert "the model writes as it is, without what is broken: mask off" in explorer.messages[-1]


async def test_a_sentence_of_a_batch_is_written_on_without_what_it_is_padded_with():
    """It is written on from its last word, as it is where it stands alone."""
    batch = ("Once there was a cat", "Mira and Ben")
    session = open_session(ModelOptions("story", device="cpu"), batch[0], None).with_batch(batch, 1)
    assert session.encoding.tokens[-1].text == "[PAD]"
    start = Start.of(session)
    prompt = prompt_of(start.writer, session)
    assert prompt == session.model.encode(batch[1]).ids
    async with exploring(NARROW, session=session) as explorer:
        await explorer.press("W", "space")
        await explorer.shown("Mira and Ben ne_")
        assert "4 given · 1 written" in explorer.text
    dates = open_session(ModelOptions("dates", device="cpu"), "the 3rd of May 2021", None)
    dates = dates.with_batch(("the 3rd of May 2021", "3 May 2021"), 1)
    masked = Start.of(dates).writer.mask
    assert masked is not None
    assert masked[0] == tuple(int(each != 0) for each in dates.encoding.ids)


async def test_settings_of_a_place_stand_beside_what_was_drawn_by_them() -> None:
    async with exploring(WIDE, model="story", text="Once there was") as explorer:
        await explorer.press("W")
        for top_k, keys in (("3", ["space"] * 4), ("7", ["left"])):
            await explorer.press("comma")
            explorer.app.screen.query_one("#top_k").focus()
            await explorer.handled()
            await explorer.write(top_k)
            await explorer.press("enter", *keys)
        assert "top-k 3 cuts 509" in explorer.text
        assert " top-k 3 · " in explorer.text.splitlines()[0]
        await explorer.press("comma")
        assert explorer.app.screen.query_one("#top_k").value == "3"
        await explorer.press("enter", "right")
        assert "top-k 7 cuts 505" in explorer.text
        assert " top-k 7 · " in explorer.text.splitlines()[0]


def test_without_a_screen_as_many_tokens_are_written_as_are_asked_for() -> None:
    session = open_session(ModelOptions("story"), "Once there was")
    text = generate(session.model, session.text, max_new_tokens=60)
    assert written(session, "60") == f"written: “{visible(session.text + text)}”"


async def test_a_pad_token_that_was_written_is_read_where_the_text_is_opened() -> None:
    async with exploring(WIDE, model=str(REFERENCES / "vanilla-decoder")) as explorer:
        await explorer.press("W", "space", "space")
        state = explorer.app.screen.writing.draft.state
        assert state.ids[-1] == explorer.session.model.config.pad_id
        await explorer.press("E")
        assert explorer.session.predicted == state.ids
        np.testing.assert_allclose(explorer.session.trace["output.probabilities"][-1], state.alone, atol=1e-5)


async def test_what_was_written_after_a_stop_token_was_chosen_by_hand() -> None:
    async with exploring(WIDE, model="dates") as explorer:
        await explorer.press("W", "N")
        assert "the text ends, stop token" in explorer.text
        await explorer.press("y")
        assert "chosen otherwise" not in explorer.messages[-1]
        await explorer.press("enter")
        await explorer.press("y")
        assert "what was chosen otherwise" in explorer.messages[-1]
