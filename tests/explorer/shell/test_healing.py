"""A widget that cannot draw says so in its place, whoever asked it to draw, and the place heals with the next scene."""

from __future__ import annotations

import pytest
from driving import WIDE, exploring

from tui_transformer.explorer.main.panes.matrix import ChartPane, MatrixPair
from tui_transformer.explorer.main.panes.whole import WholePane

SAID = "cannot be drawn: the program made a mistake"


def fail(*_: object, **__: object) -> None:
    raise ValueError("zip() argument 2 is shorter than argument 1")


async def test_the_whole_that_cannot_be_drawn_says_so_and_heals(monkeypatch: pytest.MonkeyPatch) -> None:
    async with exploring(WIDE, model="question", whole=None) as explorer:
        await explorer.press("space", "space")
        another = {"focus": "tab", "theme": "ctrl+t", "size": "", "step": "space"}
        for key in another.values():
            with monkeypatch.context() as broken:
                broken.setattr(WholePane, "_draw_band", fail)
                await (explorer.press(key) if key else explorer.resize(150, 44))
                assert explorer.app.is_running
                assert SAID in explorer.text.replace("\n", " ")
                assert "Self-attention" not in explorer.text, "nothing of before is left above the numbers of now"
                explorer.main.query_one(WholePane).refresh()
                await explorer.settled()
                assert SAID in explorer.text.replace("\n", " ")
                explorer.app.failures.told.clear()
            await explorer.press("space")
            explorer.app.clear_notifications()
            assert "Self-attention · layer 0" in explorer.text
            await explorer.handled()
            assert SAID not in explorer.text
            explorer.app.failures.told.clear()


async def test_a_scene_that_a_pane_cannot_show_is_said_in_its_place_and_no_other_is_shown(monkeypatch) -> None:
    async with exploring(WIDE, model="question") as explorer:
        for pane in (MatrixPair, ChartPane):
            await explorer.go("encoder.0.self_attention.query")
            with monkeypatch.context() as broken:
                broken.setattr(pane, "show_scene", fail)
                await explorer.press("space")
                assert SAID in explorer.text
                assert explorer.stop == "encoder.0.self_attention.key"
                explorer.app.failures.told.clear()
            await explorer.press("space")
            explorer.app.clear_notifications()
            await explorer.handled()
            assert SAID not in explorer.text
