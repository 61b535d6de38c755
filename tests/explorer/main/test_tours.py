"""The tours of the trained models in the whole explorer, and where a tour is offered."""

from __future__ import annotations

import pytest
from driving import MEDIUM, NARROW, WIDE, exploring

from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.guide.texts import tour
from tui_transformer.model.found import trained_models

OFFER = "t: a guided tour of this model"


@pytest.mark.parametrize("model", trained_models())
async def test_a_tour_leads_to_its_steps_and_sentences(model):
    async with exploring(NARROW, model=model) as explorer:
        await explorer.press("t")
        for number, stop in enumerate(tour(model), 1):
            assert f"{number} of {len(tour(model))}" in explorer.text
            assert explorer.stop == stop.step
            assert explorer.session.text == stop.sentence
            assert explorer.session.decoder_text == (stop.target or "")
            if stop.row is not None:
                place = explorer.position.place
                assert (place.head, place.row, place.column) == (stop.head or 0, stop.row, stop.column)
            await explorer.press("space")
        assert not explorer.main.query(TourPanel)


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_the_first_stop_offers_the_tour_and_no_other(size):
    async with exploring(size, model="question") as explorer:
        assert OFFER in explorer.text
        await explorer.press("space")
        assert OFFER not in explorer.text


async def test_a_model_without_a_tour_says_so():
    async with exploring(WIDE, model="decoder") as explorer:
        assert OFFER not in explorer.text
        await explorer.press("t")
        await explorer.shown("there is no tour of decoder")
        assert not explorer.main.query(TourPanel)
