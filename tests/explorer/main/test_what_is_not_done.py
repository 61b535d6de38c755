"""What a key does not set off: nothing is laid out, looked through or drawn small that nobody sees."""

from __future__ import annotations

import pytest
from driving import WIDE, exploring
from textual._compositor import Compositor, ReflowResult
from textual.geometry import Size
from textual.widget import Widget

from tui_transformer.explorer.widgets.tile_grid import HeadThumbnails

ATTENTION = "encoder.0.self_attention"


async def test_steps_of_a_long_sentence_do_not_lay_the_screen_out_again(monkeypatch: pytest.MonkeyPatch):
    reflow, layouts = Compositor.reflow, list[Size]()

    def counted(compositor: Compositor, parent: Widget, size: Size) -> ReflowResult:
        layouts.append(size)
        return reflow(compositor, parent, size)

    async with exploring(WIDE, ids=[i % 8 for i in range(64)], whole=None, at=f"{ATTENTION}.weights") as explorer:
        await explorer.press("space", "backspace")
        monkeypatch.setattr(Compositor, "reflow", counted)
        await explorer.press("space", "backspace", "backspace")
        assert explorer.stop == f"{ATTENTION}.masked"
        assert not layouts
        assert explorer.main.query_one("#matrix").cells.show_horizontal_scrollbar


async def test_short_sentences_have_no_line_for_a_scroll_bar_and_heads_are_drawn_small_where_they_are_seen():
    async with exploring(WIDE, model="question", whole=None, at=f"{ATTENTION}.weights") as explorer:
        assert not explorer.main.query_one("#matrix").cells.show_horizontal_scrollbar
        heads = explorer.main.query_one(HeadThumbnails)
        assert not heads.tiles
        await explorer.press("0")
        assert len(heads.tiles) == explorer.scene.view.heads > 1


async def test_a_step_is_looked_through_once():
    async with exploring(WIDE, model="question", at=f"{ATTENTION}.scores") as explorer:
        low, high, _ = explorer.session.extremes(f"{ATTENTION}.scores")
        values = explorer.session.trace[f"{ATTENTION}.scores"]
        assert (low, high) == (values.min(), values.max())
        assert explorer.session.knows_extremes(f"{ATTENTION}.scores")
        assert not explorer.session.knows_extremes("output.logits")
