from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Static

from tui_transformer.explorer.main.panes.tour import TourPanel
from tui_transformer.explorer.shell.themes import THEMES
from tui_transformer.guide.texts import Stop, tour, tours

STOP = Stop("scores", "Dot products [b]", "Row i holds \x1b[2J [red]q[/b].", "encoder.0.self_attention.scores")


class Host(App[None]):
    def __init__(self, theme: str = "tui-dark") -> None:
        super().__init__()
        for each in THEMES:
            self.register_theme(each)
        self.theme = theme
        self.asked: list[type[TourPanel.Asked]] = []

    def compose(self) -> ComposeResult:
        other = Static("below " * 2000, id="other", markup=False)
        other.can_focus = True
        yield other
        yield TourPanel()

    def on_mount(self) -> None:
        self.query_one(TourPanel).show(STOP, 3, 16)
        self.query_one(TourPanel).focus()

    def on_tour_panel_next(self) -> None:
        self.asked.append(TourPanel.Next)

    def on_tour_panel_back(self) -> None:
        self.asked.append(TourPanel.Back)

    def on_tour_panel_left(self) -> None:
        self.asked.append(TourPanel.Left)


@pytest.mark.parametrize("size", [(160, 45), (80, 24), (40, 12)])
async def test_a_stop_is_shown(screen_text, size):
    async with Host().run_test(size=size) as pilot:
        await pilot.pause()
        text = screen_text(pilot.app)
        assert "3 of 16 · Dot products [b]" in text
        assert "Row i holds ␛[2J [red]q[/b]." in text
        assert "\x1b" not in text
        assert "→ next  ← back  esc leave" in text


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        (["right", "n", "space", "enter"], TourPanel.Next),
        (["left", "p", "backspace"], TourPanel.Back),
        (["escape"], TourPanel.Left),
    ],
)
async def test_keys_ask(keys, asked):
    async with Host().run_test() as pilot:
        await pilot.pause()
        await pilot.press(*keys)
        assert pilot.app.asked == [asked] * len(keys)


async def test_keys_are_those_of_the_panel_alone():
    async with Host().run_test() as pilot:
        pilot.app.query_one("#other").focus()
        await pilot.press("right", "n", "space", "left", "escape")
        assert pilot.app.asked == []


async def test_it_stays_in_the_lower_right_and_leaves_the_rest_free():
    async with Host().run_test(size=(160, 45)) as pilot:
        await pilot.pause()
        panel = pilot.app.query_one(TourPanel)
        assert (panel.region.right, panel.region.bottom) == (160, 44)
        assert panel.region.width <= 42
        assert panel.region.height <= 14
        below = pilot.app.query_one("#other")
        beside = below.region
        panel.display = False
        await pilot.pause()
        assert below.region == beside


async def test_it_covers_no_more_than_the_lower_third_in_full_width():
    async with Host().run_test(size=(160, 45)) as pilot:
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        panel = pilot.app.query_one(TourPanel)
        assert (panel.region.x, panel.region.width, panel.region.bottom) == (0, 80, 23)
        assert panel.region.height <= 8


@pytest.mark.parametrize("size", [(160, 45), (80, 24), (40, 12)])
async def test_every_stop_fits_without_scrolling(size):
    async with Host().run_test(size=size) as pilot:
        panel = pilot.app.query_one(TourPanel)
        for stop in [stop for name in tours() for stop in tour(name)]:
            panel.show(stop, 16, 16)
            await pilot.pause()
            assert panel.max_scroll_y == 0, stop.name


@pytest.mark.parametrize("theme", ["tui-dark", "tui-light"])
async def test_a_small_terminal_and_no_colour(screen_text, monkeypatch, theme):
    monkeypatch.setenv("NO_COLOR", "1")
    async with Host(theme).run_test() as pilot:
        for size in [(5, 3), (1, 1), (40, 12)]:
            await pilot.resize_terminal(*size)
        await pilot.pause()
        assert "Dot products" in screen_text(pilot.app)
