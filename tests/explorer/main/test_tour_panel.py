"""The card of a tour; and the story of one number, which ends where the tour of what heads look for begins."""

from __future__ import annotations

import re

import pytest
from driving import MEDIUM, NARROW, SMALL, WIDE, exploring
from textual import on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.widgets import Static
from touring import lead_to, state

from tui_transformer.explorer.main.panes.card import TourPanel
from tui_transformer.explorer.main.question import Question
from tui_transformer.explorer.shell.themes import THEMES
from tui_transformer.guide.lecture import Lecture
from tui_transformer.guide.texts import Stop, tour, tours
from tui_transformer.session.pane_fit import LOW

STOP = Stop("scores", "Dot products [b]", "Row i holds \x1b[2J [red]q[/b].", "encoder.0.self_attention.scores")
TOLD = Lecture("own", "What is asked [i]?", (STOP,) * 16)
SIZES = [(160, 45), (120, 36), (100, 30), (80, 24), (40, 12)]
QUESTION = Question("Which [word]?", ("the \x1b[2J", "[b]old", "sailor"), 1, "It is known.")


class Host(App[None]):
    def __init__(self, theme: str = "tui-dark") -> None:
        super().__init__()
        for each in THEMES:
            self.register_theme(each)
        self.theme = theme
        self.asked: list[type[Message]] = []

    def compose(self) -> ComposeResult:
        other = Static("beside " * 2000, id="other", markup=False)
        other.can_focus = True
        other.styles.height = "1fr"
        yield other
        yield TourPanel()

    def on_mount(self) -> None:
        self.query_one(TourPanel).show(TOLD, 3)
        self.query_one(TourPanel).focus()

    @on(TourPanel.Next)
    @on(TourPanel.Back)
    @on(TourPanel.Left)
    @on(TourPanel.Answered)
    def keep(self, event: Message) -> None:
        self.asked.append(type(event))


async def test_a_stop_is_shown_in_a_place_of_its_own_of_at_most_half_the_screen(screen_text):
    async with Host().run_test(size=(160, 45)) as pilot:
        panel, other = pilot.app.query_one(TourPanel), pilot.app.query_one("#other")
        for size in SIZES:
            await pilot.resize_terminal(*size)
            panel.show(TOLD, 3)
            await pilot.pause()
            text = screen_text(pilot.app)
            assert "Stop 3 of 16 · Dot products [b]" in text
            assert ("What is asked [i]?" in text) == (size[1] >= LOW)
            assert "Row i holds ␛[2J [red]q[/b]." in text
            assert "\x1b" not in text
            assert "→ next  ← back  esc leave" in text
            assert not panel.region.overlaps(other.region)
            assert (panel.region.width, panel.region.bottom) == (size[0], size[1])
            assert panel.region.height <= size[1] // 2


async def test_the_card_names_no_stop_that_there_is_not_and_the_keys_that_fit(screen_text, shows):
    async with Host().run_test(size=(12, 8)) as pilot:
        await pilot.pause()
        assert "next" not in screen_text(pilot.app)
        await pilot.resize_terminal(60, 20)
        await shows(pilot.app, "→ next  ← back  esc leave")
        for number, keys in ((1, "─  → next  esc leave"), (16, "─  ← back  esc leave")):
            pilot.app.query_one(TourPanel).show(TOLD, number)
            await shows(pilot.app, keys)


async def test_keys_ask_while_the_panel_has_them():
    ask = {
        TourPanel.Next: ["right", "space"],
        TourPanel.Answered: ["enter"],
        TourPanel.Back: ["left", "h", "backspace"],
        TourPanel.Left: ["escape"],
    }
    async with Host().run_test() as pilot:
        await pilot.pause()
        for asked, keys in ask.items():
            await pilot.press(*keys)
            assert pilot.app.asked == [asked] * len(keys)
            pilot.app.asked.clear()
        pilot.app.query_one("#other").focus()
        await pilot.press("right", "space", "left", "escape")
        assert pilot.app.asked == []


async def test_every_stop_fits_without_scrolling_with_what_came_of_it():
    told = [(name, stop) for name in tours() for stop in tour(name)]
    longest = sorted(told, key=lambda each: len(each[1].text))[-12:]  # larger terminals have more room for all of them
    async with Host().run_test(size=SIZES[0]) as pilot:
        panel = pilot.app.query_one(TourPanel)
        for size, stops in zip(SIZES, (longest, longest, told, told), strict=False):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            for name, stop in stops:
                panel.show(Lecture(name, "", (stop,) * 16), 16)
                panel.say("head 0 of decoder.2.self_attention → 0: Mira 99.9 % → the little dog 12.3 %")
                await pilot.pause(0)
                assert panel.max_scroll_y == 0, (stop.name, size)
        # what came of it is shown until the next
        panel.say("question 99.9 % → [b]statement 97.0 %")
        await pilot.pause()
        shown = panel.query_one("#outcome", Static)
        assert shown.display
        assert "[b]statement" in str(shown.content)
        panel.show(TOLD, 4)
        assert not shown.display


async def test_a_question_has_its_answers_and_keys_and_none_is_chosen_at_first(screen_text, shows):
    async with Host().run_test(size=(80, 24)) as pilot:
        panel = pilot.app.query_one(TourPanel)
        await pilot.pause()
        await pilot.press("1", "down")
        assert panel.choice is None  # nothing is asked
        panel.ask(QUESTION)
        await pilot.pause()
        text = screen_text(pilot.app)
        assert "Which [word]?" in text
        assert "1: the ␛[2J   2: [b]old   3: sailor" in text
        assert "Row i holds" not in text
        assert "↑ ↓ choose  enter answer  → skip  esc leave the tour" in text
        assert "▸" not in text
        for key, choice in zip(("down", "down", "down", "down", "up", "3", "4"), (0, 1, 2, 2, 1, 2, 2), strict=True):
            await pilot.press(key)
            assert panel.choice == choice
        await shows(pilot.app, "▸3: sailor")
        panel.show(TOLD, 3)
        panel.judge(QUESTION.verdict(0))
        await pilot.pause()
        assert "You said the ␛[2J. It is [b]old. It is known." in screen_text(pilot.app)
        assert "sailor" not in screen_text(pilot.app)
        assert "→ next  ← back  esc leave" in screen_text(pilot.app)


async def test_a_long_text_scrolls_in_a_small_terminal():
    async with Host().run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        panel = pilot.app.query_one(TourPanel)
        longest = max((stop for name in tours() for stop in tour(name)), key=lambda stop: len(stop.text))
        panel.show(Lecture("own", "", (longest, longest)), 1)
        await pilot.pause()
        assert panel.max_scroll_y > 0
        await pilot.press("down")
        await pilot.pause()
        assert panel.scroll_y > 0


@pytest.mark.parametrize("theme", ["tui-dark", "tui-light"])
async def test_a_small_terminal_and_no_colour(shows, theme, no_colors):
    async with Host(theme).run_test() as pilot:
        for size in [(5, 3), (1, 1), (40, 12)]:
            await pilot.resize_terminal(*size)
        await shows(pilot.app, "Dot products")


async def test_a_tour_has_one_counting_alone():
    steps = re.compile(r"\bstep \d+ of \d+|\b\d+/\d+")
    async with exploring(WIDE, model="question", whole=None) as explorer:
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW):
            await explorer.go("encoder.0.self_attention.weights")
            assert steps.search(explorer.text)
            await explorer.press("t")
            for name in ("question", "gradients"):
                await explorer.tour(name)
                for _ in range(3):
                    assert not steps.search(explorer.text)
                    assert len(re.findall(r"Stop \d+ of \d+ · ", explorer.text)) == 1
                    await explorer.press("right")
            await explorer.press("escape")
            assert steps.search(explorer.text)


async def test_the_first_stop_is_one_sentence_and_arrows_at_one_number(colors):
    async with exploring(WIDE, model="question", whole=None) as explorer:
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW, SMALL):
            await explorer.press("t")
            card = explorer.main.query_one(TourPanel)
            words = [str(each.content) for each in card.query(Static) if each.display]
            assert words == [tour("question")[0].text]
            assert re.findall(r"→ *([\d.]+) *←", explorer.text) == [".99"]
            await explorer.press("right", "left")
            assert re.findall(r"→ *([\d.]+) *←", explorer.text) == [".99"]
            explorer.parts.navigation.go_to_cell(column=3)
            await explorer.settled()
            assert not re.search(r"→ *[\d.]+ *←", explorer.text)
            await explorer.press("right")
            assert not re.search(r"→ *[\d.]+ *←", explorer.text)
            await explorer.press("escape")


async def test_the_arrows_are_at_a_number_however_narrow_cells_were_made():
    async with exploring(WIDE, model="question", at="encoder.0.self_attention.weights") as explorer:
        explorer.parts.navigation.look(cell_width=2)
        await explorer.settled()
        await explorer.press("t")
        assert re.findall(r"→ *([\d.]+) *←", explorer.text) == [".99"]
        await explorer.press("escape")
        assert explorer.view.cell_width == 2


async def test_the_first_tour_offers_the_second_at_its_end_and_the_second_ends():
    async with exploring(MEDIUM, model="question") as explorer:
        # it is left at its last stop as at any
        for key in ("right", "escape"):
            await lead_to(explorer, "question", tour("question")[-1].name)
            await explorer.press(key)
            assert not explorer.main.query(TourPanel)
        before = state(explorer)
        await lead_to(explorer, "question", tour("question")[-1].name)
        await explorer.shown("Stop 17 of 17", "t goes on: What do the heads look for?", "t next tour", "enter end")
        assert "next stop" not in explorer.text
        await explorer.press("t")
        await explorer.shown("Stop 1 of 9", "the other three heads look")
        explorer.parts.tour.go(8)
        await explorer.settled()
        assert "goes on" not in explorer.text
        await explorer.press("t")
        assert not explorer.main.query(TourPanel)
        assert state(explorer) == before
