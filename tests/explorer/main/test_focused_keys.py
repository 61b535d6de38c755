"""The line of keys follows the focus and names nothing that is refused; clicks on tokens; the palette's finds."""

from __future__ import annotations

from driving import MEDIUM, NARROW, WIDE, exploring
from textual.command import CommandPalette

WEIGHTS = "encoder.0.self_attention.weights"
FIRST = {"2": "enter its numbers", "3": "enter look inside", "4": "enter look inside", "5": "enter follow"}
FOUND = {
    "attention weights": "Attention weights",
    "open story": "Open story (trained)",
    "tour: which way": "Tour: Which way does every number",
    "setting: positions": "Setting: positions",
}


def line(explorer) -> str:
    return explorer.text.splitlines()[-1]


async def test_enter_comes_first_and_says_what_it_does_in_the_focused_pane():
    async with exploring(WIDE, model="question") as explorer:
        explorer.parts.counting.moment = 0.05  # else the line says the count for that long
        await explorer.press("space", "space")
        assert "[ ] head" not in line(explorer)
        await explorer.go(WEIGHTS)
        assert "[ ] head" in line(explorer)
        async for _ in explorer.sizes(WIDE, MEDIUM, NARROW):
            await explorer.go(WEIGHTS)
            for digit, says in FIRST.items():
                await explorer.press(digit)
                await explorer.until(lambda says=says: line(explorer).startswith(f" {says} "))


async def test_the_card_of_a_tour_has_the_line_of_keys_while_it_has_the_keys():
    async with exploring(MEDIUM, model="question") as explorer:
        await explorer.press("t")
        assert line(explorer).startswith(" enter next stop  ← → stop  esc leave the tour ")
        assert "space next" not in line(explorer)
        await explorer.press("tab")
        await explorer.until(lambda: "next stop" not in line(explorer))
        await explorer.press("escape", "escape")
        assert "stop" not in line(explorer)


async def test_what_would_be_refused_is_not_named():
    async with exploring(WIDE, model="attention") as explorer:
        await explorer.press("space")
        for word in ("sentence", "write", "layer", "lens", "vocabulary", "backward"):
            assert f" {word} " not in line(explorer)


async def test_a_click_on_a_token_chooses_it_and_a_double_click_edits():
    async with exploring(WIDE, model="question", at=WEIGHTS) as explorer:
        await explorer.click(" sailor 22", 2)
        assert explorer.position.place.row == 4
        await explorer.click("sailor hide", 8)
        assert explorer.position.place.row == 5
        await explorer.click("sailor hide", 8, times=2)
        assert explorer.focused_input.value == explorer.session.text


async def test_arrows_go_from_word_to_word_each_named_whole_or_not_at_all_and_enter_edits():
    async with exploring(MEDIUM, model="question", at=WEIGHTS) as explorer:
        tokens = next(text for text in explorer.text.splitlines() if "@0" in text)
        assert tokens.rstrip("│ ").endswith("the 4 @6  …")
        await explorer.press("1", "right", "right")
        assert explorer.position.place.row == 2
        await explorer.press(*["right"] * 6)
        tokens = next(text for text in explorer.text.splitlines() if "@8" in text)
        assert tokens.lstrip("│ ").startswith("… ")
        assert "? 6 @8" in tokens
        await explorer.press("enter")
        assert explorer.focused_input.value == explorer.session.text


async def test_the_palette_finds_steps_models_tours_and_settings():
    async with exploring(WIDE, model="question") as explorer:
        await explorer.press("ctrl+p")
        await explorer.until(lambda: isinstance(explorer.app.screen, CommandPalette))
        for typed, text in FOUND.items():
            await explorer.write(typed)
            await explorer.shown(text)


async def test_the_vocabulary_begins_with_the_words_of_the_sentence():
    async with exploring(WIDE, model="question") as explorer:
        words = explorer.session.encoding
        entries = explorer.main.query_one("#vocabulary")
        shown = [entries._entry(i) for i in range(explorer.session.model.vocabulary.size)]
        used = list(dict.fromkeys(words.ids))
        assert shown[: len(used)] == used
        assert sorted(shown) == list(range(len(shown)))
        assert shown[len(used) :] == sorted(shown[len(used) :])
