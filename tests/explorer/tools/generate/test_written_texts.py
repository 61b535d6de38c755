"""A text that was written is opened in the explorer, and what writes it is said."""

from __future__ import annotations

import pytest
from driving import WIDE, exploring


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
